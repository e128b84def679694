#pragma once
// Numbers of 16 bits, and the operations that combine two numbers.
#include "memory.cuh"

namespace tandem {
namespace fabric {
namespace detail {

template <class To, class From> TANDEM_FABRIC_FN To same_bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "the sizes are equal");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

/// Rounded to the nearest number of IEEE 754's binary16, to the even one of two.
TANDEM_FABRIC_FN uint16_t half_of(float value) {
#if defined(__CUDA_ARCH__)
    uint16_t half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
    return half;
#else
    uint32_t bits = same_bits<uint32_t>(value);
    const uint32_t sign = bits >> 16 & 0x8000;
    bits &= 0x7fffffff;
    // From 2^16 on, and what is no number.
    if (bits >= 0x47800000) return uint16_t(sign | (bits > 0x7f800000 ? 0x7e00 : 0x7c00));
    if (bits < 0x38800000) {
        // Below 2^-14 all are multiples of 2^-24, as are the floats around 0.5: the addition rounds.
        return uint16_t(sign | (same_bits<uint32_t>(same_bits<float>(bits) + 0.5f) - 0x3f000000));
    }
    // Exponents of 112 less; a half of the last place is added, or a little less where the last bit is 0.
    bits += 0xc8000fff + (bits >> 13 & 1);
    return uint16_t(sign | bits >> 13);
#endif
}

TANDEM_FABRIC_FN float float_of(uint16_t half) {
#if defined(__CUDA_ARCH__)
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
    return value;
#else
    const uint32_t sign = uint32_t(half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 0x3ff;
    if (exponent == 0) {
        const float value = float(fraction) * (1.0f / (1 << 24));
        return sign != 0 ? -value : value;
    }
    return same_bits<float>(sign | (exponent == 31 ? 0x7f800000 : (exponent + 112) << 23) | fraction << 13);
#endif
}

}  // namespace detail

/// A number of IEEE 754's binary16: the bits of CUDA's __half. Sums and products are rounded once.
struct f16 {
    uint16_t bits;
    f16() = default;
    TANDEM_FABRIC_FN explicit f16(float value) : bits(detail::half_of(value)) {}
    TANDEM_FABRIC_FN explicit operator float() const { return detail::float_of(bits); }
};

/// The upper half of a float: the bits of CUDA's __nv_bfloat16.
struct bf16 {
    uint16_t bits;
    bf16() = default;
    TANDEM_FABRIC_FN explicit bf16(float value) {
        const uint32_t all = detail::same_bits<uint32_t>(value);
        const bool is_nan = (all & 0x7fffffff) > 0x7f800000;
        // To the nearest, to the even one of two; what is no number stays none.
        bits = uint16_t((is_nan ? all | 0x400000 : all + 0x7fff + (all >> 16 & 1)) >> 16);
    }
    TANDEM_FABRIC_FN explicit operator float() const { return detail::same_bits<float>(uint32_t(bits) << 16); }
};

#define TANDEM_SHORT_FLOAT(TYPE)                                                          \
    TANDEM_FABRIC_FN TYPE operator+(TYPE a, TYPE b) { return TYPE(float(a) + float(b)); } \
    TANDEM_FABRIC_FN TYPE operator*(TYPE a, TYPE b) { return TYPE(float(a) * float(b)); } \
    TANDEM_FABRIC_FN bool operator<(TYPE a, TYPE b) { return float(a) < float(b); }
TANDEM_SHORT_FLOAT(f16)
TANDEM_SHORT_FLOAT(bf16)
#undef TANDEM_SHORT_FLOAT

// The operations of reductions. One of the caller's own is any object that can be called likewise, such as a product of
// matrices; Sum and Product take every type with `+` and `*`, such as field elements. It has to be associative, and what
// it gives for two numbers the same on all PEs.

/// Integers wrap around.
struct Sum {
    template <class T> TANDEM_FABRIC_FN T operator()(T a, T b) const {
        if constexpr (std::is_integral<T>::value) {
            return T(uint64_t(a) + uint64_t(b));
        } else {
            return a + b;
        }
    }
};

/// Integers wrap around.
struct Product {
    template <class T> TANDEM_FABRIC_FN T operator()(T a, T b) const {
        if constexpr (std::is_integral<T>::value) {
            return T(uint64_t(a) * uint64_t(b));
        } else {
            return a * b;
        }
    }
};

/// The least; what a NaN gives depends on the order, which is that of the PEs.
struct Min {
    template <class T> TANDEM_FABRIC_FN T operator()(T a, T b) const { return b < a ? b : a; }
};

/// The greatest; likewise.
struct Max {
    template <class T> TANDEM_FABRIC_FN T operator()(T a, T b) const { return a < b ? b : a; }
};

struct And {
    template <class T> TANDEM_FABRIC_FN T operator()(T a, T b) const { return T(a & b); }
};

struct Or {
    template <class T> TANDEM_FABRIC_FN T operator()(T a, T b) const { return T(a | b); }
};

struct Xor {
    template <class T> TANDEM_FABRIC_FN T operator()(T a, T b) const { return T(a ^ b); }
};

}  // namespace fabric
}  // namespace tandem
