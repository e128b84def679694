#pragma once
// The field of p = 2^64 - 2^32 + 1 elements.
//
// 2^64 = 2^32 - 1 and 2^96 = -1 modulo p: a product is reduced by additions, and powers of 2, of which 2^12 is a root of
// unity of order 16, multiply by shifts. An element is held as any 64-bit number that is congruent to it, and between
// reductions as a signed number of 96 bits.
#include "host_device.cuh"

namespace tandem {

struct Goldilocks {
    static constexpr uint64_t P = 0xffffffff00000001ull;

    /// Threads of a transform that share a multiprocessor, by measurement.
    static constexpr uint32_t RESIDENT_THREADS = 1024;
    typedef uint64_t Stored;
    static constexpr Stored ONE = 1;
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

    /// x * 2^(32 q) for a number x = y0 + 2^32 y1 + 2^64 y2, y2 signed.
    TANDEM_HD static Held turn_words(uint32_t y0, uint32_t y1, int32_t y2, int q) {
        Held r;
        const int32_t s = y2 >> 31;
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
        // top * 2^64 = top * (2^32 - 1); a carry out of 64 bits is once more 2^32 - 1. The products are for the pipe
        // that additions leave idle.
        Stored r;
        asm("{.reg .u64 t; .reg .u32 a, b, c; mul.wide.u32 t, %3, 0xffffffff; mov.b64 {a, b}, t;"
            "add.cc.u32 a, a, %1; addc.cc.u32 b, b, %2; addc.u32 c, 0, 0;"
            "mov.b64 t, {a, b}; mad.wide.u32 %0, c, 0xffffffff, t;}"
            : "=l"(r)
            : "r"(x.lo), "r"(x.hi), "r"(x.top));
        return r;
    }
#else
    static __int128 integer(Held x) { return (__int128(x.top) << 64) + join(x.lo, x.hi); }
    static Held held(__int128 x) { return {uint32_t(x), uint32_t(x >> 32), int32_t(x >> 64)}; }

    static Held add(Held a, Held b) { return held(integer(a) + integer(b)); }
    static Held subtract(Held a, Held b) { return held(integer(a) - integer(b)); }
    static Held turn_words(uint32_t y0, uint32_t y1, int32_t y2, int q) {
        const __int128 w = __int128(1) << 32;
        if (q == 0) return held(__int128(y0) - y2 + w * (__int128(y1) + y2));
        if (q == 1) return held(-__int128(y1) - y2 + w * (__int128(y0) + y1));
        return held(-__int128(y0) - y1 + w * (__int128(y0) - y2));
    }
    static Stored fold(Held x) {
        const __int128 r = join(x.lo, x.hi) + __int128(x.top) * 0xffffffff;
        return uint64_t(r) + uint64_t(r >> 64) * 0xffffffff;
    }
#endif

    /// x * 2^s for 0 <= s < 96 and a top of x below 2^(31 - s % 32), but for its sign.
    TANDEM_HD static Held shift(Held x, int s) {
        const int q = s / 32, t = s % 32;
        if (t == 0) return turn_words(x.lo, x.hi, x.top, q);
#if defined(__CUDA_ARCH__)
        return turn_words(x.lo << t, __funnelshift_l(x.lo, x.hi, t), __funnelshift_l(x.hi, x.top, t), q);
#else
        const uint32_t y1 = x.hi << t | x.lo >> (32 - t), y2 = uint32_t(x.top) << t | x.hi >> (32 - t);
        return turn_words(x.lo << t, y1, int32_t(y2), q);
#endif
    }

    /// (a - b) * w^e for 0 <= e < 8 and the root of unity w = 7^((p - 1) / 16) = 2^156.
    TANDEM_HD static Held subtract_turned(Held a, Held b, int e) {
        if (e == 0) return subtract(a, b);
        const int s = 156 * e % 192;
        return s < 96 ? shift(subtract(a, b), s) : shift(subtract(b, a), s - 96);
    }

    /// x + 2^6 p: in a sum of 16 products, each of a top of 2 or less, no top is negative any more.
    TANDEM_HD static Held raise(Held x) { return add(x, {64, uint32_t(-64), 63}); }

    /// The words of a * b.
    TANDEM_HD static void multiply_words(uint32_t (&t)[4], Stored a, Stored b) {
#if defined(__CUDA_ARCH__)
        // Products of words of equal numbers, and the others beside them: no word has to change its register.
        asm("{.reg .u32 u, v; mul.lo.u32 %0, %4, %6; mul.hi.u32 %1, %4, %6; mul.lo.u32 %2, %5, %7; mul.hi.u32 %3, %5, %7;"
            "mul.lo.u32 u, %4, %7; mul.hi.u32 v, %4, %7;"
            "mad.lo.cc.u32 u, %5, %6, u; madc.hi.cc.u32 v, %5, %6, v; addc.u32 %3, %3, 0;"
            "add.cc.u32 %1, %1, u; addc.cc.u32 %2, %2, v; addc.u32 %3, %3, 0;}"
            : "=&r"(t[0]), "=&r"(t[1]), "=&r"(t[2]), "=&r"(t[3])
            : "r"(uint32_t(a)), "r"(uint32_t(a >> 32)), "r"(uint32_t(b)), "r"(uint32_t(b >> 32)));
#else
        const unsigned __int128 r = static_cast<unsigned __int128>(a) * b;
        for (int i = 0; i < 4; i++) t[i] = uint32_t(r >> (32 * i));
#endif
    }

    /// a * b for any 64-bit numbers; top is -1, 0 or 1.
    TANDEM_HD static Held multiply(Stored a, Stored b) {
        uint32_t t[4];
        multiply_words(t, a, b);
        // t0 - t2 - t3 + 2^32 (t1 + t2)
#if defined(__CUDA_ARCH__)
        Held r;
        asm("{.reg .u32 a, b; add.cc.u32 a, %5, %6; addc.u32 b, 0, 0;"
            "sub.cc.u32 %0, %3, a; subc.cc.u32 %1, %4, b; subc.u32 %2, 0, 0; add.cc.u32 %1, %1, %5; addc.u32 %2, %2, 0;}"
            : "=&r"(r.lo), "=&r"(r.hi), "=&r"(r.top)
            : "r"(t[0]), "r"(t[1]), "r"(t[2]), "r"(t[3]));
        return r;
#else
        return held(__int128(t[0]) - t[2] - t[3] + (__int128(1) << 32) * (__int128(t[1]) + t[2]));
#endif
    }

    /// The same as a 64-bit number.
    TANDEM_HD static Stored product(Stored a, Stored b) {
#if defined(__CUDA_ARCH__)
        uint32_t t[4];
        multiply_words(t, a, b);
        // t0 + 2^32 t1 - t3, where a borrow is one more 2^32 - 1 to subtract; then t2 * (2^32 - 1) and its carry.
        Stored r;
        asm("{.reg .u64 d; .reg .u32 a, b, c, e, f; sub.cc.u32 a, %1, %4; subc.cc.u32 b, %2, 0; subc.u32 c, 0, 0;"
            "sub.cc.u32 a, a, c; subc.u32 b, b, 0;"
            "mul.wide.u32 d, %3, 0xffffffff; mov.b64 {e, f}, d; add.cc.u32 a, a, e; addc.cc.u32 b, b, f; addc.u32 c, 0, 0;"
            "mov.b64 d, {a, b}; mad.wide.u32 %0, c, 0xffffffff, d;}"
            : "=l"(r)
            : "r"(t[0]), "r"(t[1]), "r"(t[2]), "r"(t[3]));
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
