#pragma once
// The field of p = 2^64 - 2^32 + 1 elements.
//
// 2^64 = 2^32 - 1 and 2^96 = -1 modulo p: a product is reduced by additions, and powers of 2, of which 2^12 is a root of
// unity of order 16, multiply by shifts. An element is held as any 64-bit number that is congruent to it, and between
// reductions as a signed number of 96 bits.
#include "host_device.cuh"

namespace tandem {

#if defined(__CUDA_ARCH__)
// clang-format off
// Adds 2^32 - 1 to the number of the two words if there was a carry, which is 0 or 1.
#define TANDEM_GOLDILOCKS_CARRY(lo, hi, carry)                                                                         \
    "{.reg .pred p; .reg .u32 e; setp.ne.u32 p, " carry ", 0; selp.u32 e, 0xffffffff, 0, p;"                            \
    "add.cc.u32 " lo ", " lo ", e; addc.u32 " hi ", " hi ", 0;}"
// Opens a block and leaves of a * b, whose words are t0 to t3, t0 - t3 + 2^32 t1 in x0, x1 and d, which is 0 or -1, and t2 in c0.
// ptxas makes each pair of a mad.lo and a mad.hi one instruction where they are written so.
#define TANDEM_GOLDILOCKS_PRODUCT(a, b)                                                                                \
    "{.reg .u64 x, y, z; .reg .u32 a0, a1, b0, b1, x0, x1, c0, c1, z0, z1, d;"                                          \
    "mov.b64 {a0, a1}, " a "; mov.b64 {b0, b1}, " b ";"                                                                  \
    "mul.wide.u32 x, a0, b0; mul.wide.u32 y, a1, b1; mul.wide.u32 z, a0, b1;"                                           \
    "mov.b64 {x0, x1}, x; mov.b64 {c0, c1}, y; mov.b64 {z0, z1}, z;"                                                    \
    "mad.lo.cc.u32 z0, a1, b0, z0; madc.hi.cc.u32 z1, a1, b0, z1; addc.u32 c1, c1, 0;"                                  \
    "add.cc.u32 x1, x1, z0; addc.cc.u32 c0, c0, z1; addc.u32 c1, c1, 0;"                                                \
    "sub.cc.u32 x0, x0, c1; subc.cc.u32 x1, x1, 0; subc.u32 d, 0, 0;"
// clang-format on
#endif

struct Goldilocks {
    static constexpr uint64_t P = 0xffffffff00000001ull;

    /// Registers of a transform's threads that hold 16 elements or 32, by measurement.
    static constexpr uint32_t REGISTERS[2] = {64, 128};
    typedef uint64_t Stored;
    static constexpr Stored ONE = 1;
    /// What powers of roots of unity are calculated with.
    typedef Stored Power;
    static constexpr bool ROUNDED_POWERS = false;
    TANDEM_HD static Power argument(uint64_t x) { return x; }
    /// (lo + 2^32 hi + 2^64 top), top signed.
    struct Held {
        uint32_t lo, hi;
        int32_t top;
    };

    TANDEM_HD static uint64_t join(uint32_t lo, uint32_t hi) { return uint64_t(hi) << 32 | lo; }
    TANDEM_HD static Held held(Stored x) { return {uint32_t(x), uint32_t(x >> 32), 0}; }

#if defined(__CUDA_ARCH__)
    TANDEM_HD static Held add(Held a, Held b) {
        Held r;
        asm("add.cc.u32 %0, %3, %6; addc.cc.u32 %1, %4, %7; addc.u32 %2, %5, %8;"
            : "=&r"(r.lo), "=&r"(r.hi), "=r"(r.top)
            : "r"(a.lo), "r"(a.hi), "r"(a.top), "r"(b.lo), "r"(b.hi), "r"(b.top));
        return r;
    }

    TANDEM_HD static Held subtract(Held a, Held b) {
        Held r;
        asm("sub.cc.u32 %0, %3, %6; subc.cc.u32 %1, %4, %7; subc.u32 %2, %5, %8;"
            : "=&r"(r.lo), "=&r"(r.hi), "=r"(r.top)
            : "r"(a.lo), "r"(a.hi), "r"(a.top), "r"(b.lo), "r"(b.hi), "r"(b.top));
        return r;
    }

    /// x * 2^(32 q) for a number x = y0 + 2^32 y1 + 2^64 y2 + 2^96 s, s = 0 or -1.
    TANDEM_HD static Held turn_words(uint32_t y0, uint32_t y1, uint32_t y2, int32_t s, int q) {
        Held r;
        if (q == 0) {
            // y0 - y2 + 2^32 (y1 + y2)
            asm("sub.cc.u32 %0, %3, %5; subc.cc.u32 %1, %4, %6; subc.u32 %2, 0, %6;"
                "add.cc.u32 %1, %1, %5; addc.u32 %2, %2, %6;"
                : "=&r"(r.lo), "=&r"(r.hi), "=&r"(r.top)
                : "r"(y0), "r"(y1), "r"(y2), "r"(s));
        } else if (q == 1) {
            // -y1 - y2 + 2^32 (y0 + y1)
            asm("sub.cc.u32 %0, 0, %4; subc.cc.u32 %1, %3, 0; subc.u32 %2, 0, 0;"
                "add.cc.u32 %1, %1, %4; addc.u32 %2, %2, 0;"
                "sub.cc.u32 %0, %0, %5; subc.cc.u32 %1, %1, %6; subc.u32 %2, %2, %6;"
                : "=&r"(r.lo), "=&r"(r.hi), "=&r"(r.top)
                : "r"(y0), "r"(y1), "r"(y2), "r"(s));
        } else {
            // -y0 - y1 + 2^32 (y0 - y2)
            asm("{.reg .u32 a, b; add.cc.u32 a, %3, %4; addc.u32 b, 0, 0;"
                "sub.cc.u32 %0, 0, a; subc.cc.u32 %1, %3, b; subc.u32 %2, 0, 0;"
                "sub.cc.u32 %1, %1, %5; subc.u32 %2, %2, %6;}"
                : "=&r"(r.lo), "=&r"(r.hi), "=&r"(r.top)
                : "r"(y0), "r"(y1), "r"(y2), "r"(s));
        }
        return r;
    }

    /// Any 64-bit number congruent to x, whose top is not negative.
    TANDEM_HD static Stored fold(Held x) {
        // top * 2^64 = top * (2^32 - 1); a carry out of 64 bits is once more 2^32 - 1. The product is for the pipe that
        // additions leave idle, and adds on the way.
        Stored r;
        // clang-format off
        asm("{.reg .u32 a, b, c; mad.lo.cc.u32 a, %3, 0xffffffff, %1; madc.hi.cc.u32 b, %3, 0xffffffff, %2; addc.u32 c, 0, 0;"
            TANDEM_GOLDILOCKS_CARRY("a", "b", "c") "mov.b64 %0, {a, b};}"
            : "=l"(r)
            : "r"(x.lo), "r"(x.hi), "r"(x.top));
        // clang-format on
        return r;
    }
#else
    static __int128 integer(Held x) { return (__int128(x.top) << 64) + join(x.lo, x.hi); }
    static Held held(__int128 x) { return {uint32_t(x), uint32_t(x >> 32), int32_t(x >> 64)}; }

    static Held add(Held a, Held b) { return held(integer(a) + integer(b)); }
    static Held subtract(Held a, Held b) { return held(integer(a) - integer(b)); }
    static Held turn_words(uint32_t y0, uint32_t y1, uint32_t upper, int32_t s, int q) {
        const __int128 w = __int128(1) << 32, y2 = upper + w * s;
        if (q == 0) return held(__int128(y0) - y2 + w * (__int128(y1) + y2));
        if (q == 1) return held(-__int128(y1) - y2 + w * (__int128(y0) + y1));
        return held(-__int128(y0) - y1 + w * (__int128(y0) - y2));
    }
    static Stored fold(Held x) {
        const __int128 r = join(x.lo, x.hi) + __int128(x.top) * 0xffffffff;
        return uint64_t(r) + uint64_t(r >> 64) * 0xffffffff;
    }
#endif

    /// x * 2^s for 0 <= s < 96 and a top of x below 2^(32 - s % 32), but for its sign.
    TANDEM_HD static Held shift(Held x, int s) {
        const int q = s / 32, t = s % 32;
        const int32_t sign = x.top >> 31;
        if (t == 0) return turn_words(x.lo, x.hi, uint32_t(x.top), sign, q);
#if defined(__CUDA_ARCH__)
        return turn_words(x.lo << t, __funnelshift_l(x.lo, x.hi, t), __funnelshift_l(x.hi, x.top, t), sign, q);
#else
        const uint32_t y1 = x.hi << t | x.lo >> (32 - t), y2 = uint32_t(x.top) << t | x.hi >> (32 - t);
        return turn_words(x.lo << t, y1, y2, sign, q);
#endif
    }

    /// (a - b) * w^e for 0 <= e < 16 and the root of unity w = 7^((p - 1) / 32) = 2^78.
    TANDEM_HD static Held subtract_turned(Held a, Held b, int e) {
        if (e == 0) return subtract(a, b);
        const int s = 78 * e % 192;
        return s < 96 ? shift(subtract(a, b), s) : shift(subtract(b, a), s - 96);
    }

    /// x + 2^7 p: in a sum of 32 products, each of a top of 2 or less, no top is negative any more.
    TANDEM_HD static Held raise(Held x) { return add(x, {128, uint32_t(-128), 127}); }

    /// a * b for any 64-bit numbers; top is -1, 0 or 1.
    TANDEM_HD static Held multiply(Stored a, Stored b) {
#if defined(__CUDA_ARCH__)
        Held r;
        // clang-format off
        asm(TANDEM_GOLDILOCKS_PRODUCT("%3", "%4")
            "mad.lo.cc.u32 %0, c0, 0xffffffff, x0; madc.hi.cc.u32 %1, c0, 0xffffffff, x1; addc.u32 %2, d, 0;}"
            : "=&r"(r.lo), "=&r"(r.hi), "=&r"(r.top)
            : "l"(a), "l"(b));
        // clang-format on
        return r;
#else
        const unsigned __int128 t = static_cast<unsigned __int128>(a) * b;
        return held(__int128(uint64_t(t)) - uint32_t(t >> 96) + __int128(uint32_t(t >> 64)) * 0xffffffff);
#endif
    }

    /// a * b as a 64-bit number.
    TANDEM_HD static Stored product(Stored a, Stored b) {
#if defined(__CUDA_ARCH__)
        // A borrow is one more 2^32 - 1 to subtract.
        Stored r;
        // clang-format off
        asm(TANDEM_GOLDILOCKS_PRODUCT("%1", "%2")
            "sub.cc.u32 x0, x0, d; subc.u32 x1, x1, 0;"
            "mad.lo.cc.u32 x0, c0, 0xffffffff, x0; madc.hi.cc.u32 x1, c0, 0xffffffff, x1; addc.u32 d, 0, 0;"
            TANDEM_GOLDILOCKS_CARRY("x0", "x1", "d") "mov.b64 %0, {x0, x1};}"
            : "=l"(r)
            : "l"(a), "l"(b));
        // clang-format on
        return r;
#else
        // A multiple of p makes the top positive.
        return fold(add(multiply(a, b), {2, uint32_t(-2), 1}));
#endif
    }

    TANDEM_HD static Stored sum(Stored a, Stored b) { return fold(add(held(a), held(b))); }

    /// x below p.
    TANDEM_HD static Stored reduce(Stored x) { return x >= P ? x - P : x; }
};

}  // namespace tandem
