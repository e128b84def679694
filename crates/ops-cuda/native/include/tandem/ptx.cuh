#pragma once
// The instructions with a carry flag, one function each.
//
// On the device the flag passes from one asm statement to the next: they are volatile, hence stay in order, and nothing
// that the compiler may put between them touches the flag. With TANDEM_EMULATE_PTX the same functions are plain C++ with
// a flag of their own, so that a machine without a GPU can test the carry chains.
#include "host_device.cuh"

#if defined(__CUDACC__) && !defined(TANDEM_EMULATE_PTX)
#define TANDEM_HAS_PTX
#define TANDEM_DEVICE __device__ __forceinline__
namespace tandem {
namespace ptx {

#define TANDEM_PTX_2(name, op)                                      \
    TANDEM_DEVICE uint32_t name(uint32_t a, uint32_t b) {           \
        uint32_t r;                                                 \
        asm volatile(op " %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); \
        return r;                                                   \
    }
#define TANDEM_PTX_3(name, op)                                                  \
    TANDEM_DEVICE uint32_t name(uint32_t a, uint32_t b, uint32_t c) {           \
        uint32_t r;                                                             \
        asm volatile(op " %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c)); \
        return r;                                                               \
    }
TANDEM_PTX_2(add_cc, "add.cc.u32")
TANDEM_PTX_2(addc_cc, "addc.cc.u32")
TANDEM_PTX_2(addc, "addc.u32")
TANDEM_PTX_2(sub_cc, "sub.cc.u32")
TANDEM_PTX_2(subc_cc, "subc.cc.u32")
TANDEM_PTX_2(subc, "subc.u32")
TANDEM_PTX_2(mul_lo, "mul.lo.u32")
TANDEM_PTX_2(mul_hi, "mul.hi.u32")
TANDEM_PTX_3(mad_lo_cc, "mad.lo.cc.u32")
TANDEM_PTX_3(madc_lo_cc, "madc.lo.cc.u32")
TANDEM_PTX_3(madc_hi_cc, "madc.hi.cc.u32")
TANDEM_PTX_3(madc_hi, "madc.hi.u32")
#undef TANDEM_PTX_2
#undef TANDEM_PTX_3

/// (low, high) = a * b. As one instruction: apart, ptxas adds to the upper half by a second multiplication.
TANDEM_DEVICE void mul_pair(uint32_t& low, uint32_t& high, uint32_t a, uint32_t b) {
    asm volatile("{.reg .u64 t; mul.wide.u32 t, %2, %3; mov.b64 {%0, %1}, t;}"
                 : "=r"(low), "=r"(high)
                 : "r"(a), "r"(b));
}

/// The upper word of (high, low) shifted left by one bit.
TANDEM_DEVICE uint32_t shift_left_1(uint32_t low, uint32_t high) { return __funnelshift_l(low, high, 1); }

/// -a. Where ptxas sees a negation, it moves it into the products of the result and makes two instructions of each.
TANDEM_DEVICE uint32_t opaque_negative(uint32_t a) {
    uint32_t r;
    asm volatile("{.reg .u32 t; not.b32 t, %1; add.u32 %0, t, 1;}" : "=r"(r) : "r"(a));
    return r;
}

}  // namespace ptx
}  // namespace tandem
#elif defined(TANDEM_EMULATE_PTX)
#define TANDEM_HAS_PTX
#define TANDEM_DEVICE inline
namespace tandem {
namespace ptx {

inline thread_local uint32_t carry_flag = 0;

inline uint32_t with_carry(uint64_t sum) {
    carry_flag = uint32_t(sum >> 32) & 1;
    return uint32_t(sum);
}
inline uint32_t low(uint32_t a, uint32_t b) { return uint32_t(uint64_t(a) * b); }
inline uint32_t high(uint32_t a, uint32_t b) { return uint32_t(uint64_t(a) * b >> 32); }

inline uint32_t add_cc(uint32_t a, uint32_t b) { return with_carry(uint64_t(a) + b); }
inline uint32_t addc_cc(uint32_t a, uint32_t b) { return with_carry(uint64_t(a) + b + carry_flag); }
inline uint32_t addc(uint32_t a, uint32_t b) { return a + b + carry_flag; }
inline uint32_t sub_cc(uint32_t a, uint32_t b) { return with_carry(uint64_t(a) - b); }
inline uint32_t subc_cc(uint32_t a, uint32_t b) { return with_carry(uint64_t(a) - b - carry_flag); }
inline uint32_t subc(uint32_t a, uint32_t b) { return a - b - carry_flag; }
inline uint32_t mul_lo(uint32_t a, uint32_t b) { return low(a, b); }
inline uint32_t mul_hi(uint32_t a, uint32_t b) { return high(a, b); }
inline void mul_pair(uint32_t& to_low, uint32_t& to_high, uint32_t a, uint32_t b) {
    to_low = low(a, b);
    to_high = high(a, b);
}
inline uint32_t mad_lo_cc(uint32_t a, uint32_t b, uint32_t c) { return add_cc(low(a, b), c); }
inline uint32_t madc_lo_cc(uint32_t a, uint32_t b, uint32_t c) { return addc_cc(low(a, b), c); }
inline uint32_t madc_hi_cc(uint32_t a, uint32_t b, uint32_t c) { return addc_cc(high(a, b), c); }
inline uint32_t madc_hi(uint32_t a, uint32_t b, uint32_t c) { return addc(high(a, b), c); }
inline uint32_t shift_left_1(uint32_t low, uint32_t high) { return high << 1 | low >> 31; }
inline uint32_t opaque_negative(uint32_t a) { return 0u - a; }

}  // namespace ptx
}  // namespace tandem
#endif
