#pragma once
// Products with known factors, which are twiddles, and values that are reduced only where they must be.
//
// A twiddle w < p is kept together with q' = floor(w * 2^256 / p). For any x < 2^256 the quotient
// q = floor(x * q' / 2^256) makes x * w - q * p a number below 2p that is congruent to x * w (V. Shoup's method, as in
// NTL). Only the upper half of x * q' and the lower halves of x * w and q * p are needed: 43 + 28 + 21 wide
// multiplications for BN254 and 43 + 28 + 15 for BLS12-381, where a Montgomery product takes 128.
//
// Between the stages of a transform values lie below 2 * BOUND, where BOUND = 2p if 4p < 2^256, and p otherwise.
#include "tandem/field.cuh"
#include "tandem_ops.h"

namespace tandem {
namespace ntt {

/// p = 1 - 2^SHIFT + 2^(32 * SKIP) * K, which both scalar fields owe to their small low limbs: the product with p
/// takes a shift and a shorter product.
template <class P> struct LowLimbs;
template <> struct LowLimbs<Bn254Fr> {
    static constexpr int SHIFT = 28, SKIP = 1;
};
template <> struct LowLimbs<Bls12381Fr> {
    static constexpr int SHIFT = 32, SKIP = 2;
};

/// -K mod 2^(32 * (8 - SKIP)), of the K above: the complement of p's upper limbs.
template <class P> TANDEM_HD constexpr Limbs<8> negative_k() {
    Limbs<8> p = P::modulus(), r{};
    for (int i = LowLimbs<P>::SKIP; i < 8; i++) r.limb[i - LowLimbs<P>::SKIP] = ~p.limb[i];
    return r;
}

/// BOUND.
template <class P> TANDEM_HD constexpr Limbs<8> bound() {
    Limbs<8> r = P::modulus();
    if (P::BITS > 254) return r;
    for (int i = 7; i > 0; i--) r.limb[i] = r.limb[i] << 1 | r.limb[i - 1] >> 31;
    r.limb[0] <<= 1;
    return r;
}

/// w as an integer, and floor(w * 2^256 / p).
template <class P> struct alignas(16) Twiddle {
    uint32_t w[8];
    uint32_t quotient[8];
};

/// The twiddle for w, given in Montgomery form v = w * 2^256 mod p: w * 2^256 - v is a multiple of p, so the quotient
/// is -v / p mod 2^256.
template <class P> __device__ inline Twiddle<P> make_twiddle(Fp<P> v) {
    constexpr Limbs<8> p = P::modulus();
    Fp<P> w = v.to_canonical();
    Twiddle<P> f;
    // Limb by limb: add the multiple of p that makes the lowest limb left zero.
#pragma unroll
    for (int i = 0; i < 8; i++) {
        f.w[i] = w.limb[i];
        uint32_t m = v.limb[i] * P::M0;
        f.quotient[i] = m;
        uint64_t carry = 0;
#pragma unroll
        for (int j = 0; i + j < 8; j++) {
            carry += uint64_t(m) * p.limb[j] + v.limb[i + j];
            v.limb[i + j] = uint32_t(carry);
            carry >>= 32;
        }
    }
    return f;
}

#if defined(__CUDACC__)
namespace detail {
using namespace limbs_device;

__device__ __forceinline__ uint32_t madc_lo(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t r;
    asm volatile("madc.lo.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
    return r;
}

/// r = a + b, mod 2^256.
__device__ __forceinline__ void add_256(uint32_t* r, const uint32_t* a, const uint32_t* b) {
    r[0] = add_cc(a[0], b[0]);
#pragma unroll
    for (int i = 1; i < 7; i++) r[i] = addc_cc(a[i], b[i]);
    r[7] = addc(a[7], b[7]);
}

/// r = a - b, mod 2^256.
__device__ __forceinline__ void subtract_256(uint32_t* r, const uint32_t* a, const uint32_t* b) {
    r[0] = sub_cc(a[0], b[0]);
#pragma unroll
    for (int i = 1; i < 7; i++) r[i] = subc_cc(a[i], b[i]);
    r[7] = subc(a[7], b[7]);
}

/// The row i of floor(x * y / 2^256), the products of x with y[i] at limbs FIRST, FIRST + 2, ..; limb c is acc[c - 6].
/// Limbs below 6 are left out: all of them together are less than 2^-28 of the quotient's unit.
template <int I, int FIRST> __device__ __forceinline__ void high_row(uint32_t* acc, const uint32_t* x, uint32_t y) {
    constexpr int LAST = (I + 7 - FIRST) % 2 ? I + 6 : I + 7;
    // The products with x[7] open a new pair, whose lower limb may hold the carry of the row before.
    constexpr bool OPENS = LAST == I + 7;
    if constexpr (FIRST > LAST) return;
#pragma unroll
    for (int c = FIRST; c <= LAST; c += 2) {
        uint32_t* at = acc + (c - 6);
        uint32_t low = at[0], high = OPENS && c == LAST ? 0 : at[1];
        at[0] = c == FIRST ? mad_lo_cc(x[c - I], y, low) : madc_lo_cc(x[c - I], y, low);
        at[1] = OPENS && c == LAST ? madc_hi(x[c - I], y, high) : madc_hi_cc(x[c - I], y, high);
    }
    if constexpr (!OPENS) acc[LAST + 2 - 6] = addc(0, 0);
}

template <int I> __device__ __forceinline__ void high_rows(uint32_t* even, uint32_t* odd, const uint32_t* x,
                                                           const uint32_t* y) {
    if constexpr (I < 8) {
        high_row<I, 7>(odd, x, y[I]);
        high_row<I, I == 7 ? 8 : 6>(even, x, y[I]);
        high_rows<I + 1>(even, odd, x, y);
    }
}

/// q = floor(x * y / 2^256), or one less.
__device__ __forceinline__ void multiply_high(uint32_t* q, const uint32_t* x, const uint32_t* y) {
    uint32_t even[10], odd[10];
    even[0] = mul_lo(x[6], y[0]);
    even[1] = mul_hi(x[6], y[0]);
    odd[1] = mul_lo(x[7], y[0]);
    odd[2] = mul_hi(x[7], y[0]);
    even[2] = 0;
    high_rows<1>(even, odd, x, y);
    add_cc(even[1], odd[1]);
#pragma unroll
    for (int i = 0; i < 7; i++) q[i] = addc_cc(even[i + 2], odd[i + 2]);
    q[7] = addc(even[9], odd[9]);
}

/// Adds x * y * 2^(32 * AT) mod 2^256 for one limb y; `even` holds limb c at c, `odd` too.
template <int AT, bool NEW> __device__ __forceinline__ void low_row(uint32_t* even, uint32_t* odd, const uint32_t* x,
                                                                    uint32_t y) {
#pragma unroll
    for (int parity = 0; parity < 2; parity++) {
        const int first = AT + parity;
        uint32_t* acc = first % 2 ? odd : even;
#pragma unroll
        for (int c = first; c < 8; c += 2) {
            const uint32_t f = x[c - AT];
            if (NEW) {
                acc[c] = mul_lo(f, y);
                if (c < 7) acc[c + 1] = mul_hi(f, y);
            } else if (c == 7) {
                acc[7] = c == first ? f * y + acc[7] : madc_lo(f, y, acc[7]);
            } else {
                acc[c] = c == first ? mad_lo_cc(f, y, acc[c]) : madc_lo_cc(f, y, acc[c]);
                acc[c + 1] = c == 6 ? madc_hi(f, y, acc[c + 1]) : madc_hi_cc(f, y, acc[c + 1]);
            }
        }
    }
}

template <int AT, int I> __device__ __forceinline__ void low_rows(uint32_t* even, uint32_t* odd, const uint32_t* x,
                                                                  const uint32_t* y) {
    if constexpr (AT + I < 8) {
        low_row<AT + I, AT + I == 0>(even, odd, x, y[I]);
        low_rows<AT, I + 1>(even, odd, x, y);
    }
}

/// r = a - m if that is not negative, else a.
__device__ __forceinline__ void subtract_if_not_below(uint32_t* a, Limbs<8> m) {
    uint32_t t[8];
    t[0] = sub_cc(a[0], m.limb[0]);
#pragma unroll
    for (int i = 1; i < 8; i++) t[i] = subc_cc(a[i], m.limb[i]);
    const bool below = subc(0, 0) != 0;
#pragma unroll
    for (int i = 0; i < 8; i++) a[i] = below ? a[i] : t[i];
}
}  // namespace detail

/// x, below 2 * BOUND, reduced below BOUND.
template <class P> __device__ __forceinline__ Fp<P> reduce_to_bound(Fp<P> x) {
    detail::subtract_if_not_below(x.limb, bound<P>());
    return x;
}

/// x, below 2 * BOUND, reduced below p.
template <class P> __device__ __forceinline__ Fp<P> reduce(Fp<P> x) {
    if constexpr (P::BITS <= 254) x = reduce_to_bound(x);
    limbs_device::reduce_once<P>(x.limb);
    return x;
}

/// x * w below BOUND, for any x < 2^256 of which x < 2 * BOUND if BOUND is 2p: the result is below
/// p * (1 + x / 2^256 + 2^-28), and 4p / 2^256 < 0.8 for BN254.
template <class P> __device__ __forceinline__ Fp<P> multiply(Fp<P> x, Twiddle<P> f) {
    using namespace limbs_device;
    constexpr int SHIFT = LowLimbs<P>::SHIFT, SKIP = LowLimbs<P>::SKIP;
    constexpr Limbs<8> k = negative_k<P>();
    uint32_t q[8], even[8], odd[8];
    // In this order ptxas keeps everything in registers; the other way round it spills some and is 1.5 % slower.
    detail::low_rows<0, 0>(even, odd, x.limb, f.w);
    detail::multiply_high(q, x.limb, f.quotient);
    detail::low_rows<SKIP, 0>(even, odd, q, k.limb);
    // x * w + 2^(32 SKIP) * q * -K + 2^SHIFT * q - q
    Fp<P> r;
    r.limb[0] = even[0];
    r.limb[1] = add_cc(even[1], odd[1]);
#pragma unroll
    for (int i = 2; i < 7; i++) r.limb[i] = addc_cc(even[i], odd[i]);
    r.limb[7] = addc(even[7], odd[7]);
    uint32_t s[8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const uint32_t below = i == 0 ? 0 : q[i - 1];
        s[i] = SHIFT == 32 ? below : __funnelshift_l(below, q[i], SHIFT % 32);
    }
    detail::add_256(r.limb, r.limb, s);
    detail::subtract_256(r.limb, r.limb, q);
    if constexpr (P::BITS > 254) detail::subtract_if_not_below(r.limb, bound<P>());
    return r;
}

/// (a, t) to (a + t, a - t + BOUND), for a below 2 * BOUND and t below BOUND.
template <class P> __device__ __forceinline__ void add_subtract(Fp<P>& a, Fp<P>& t) {
    constexpr Limbs<8> m = bound<P>();
    a = reduce_to_bound(a);
    Fp<P> d;
    detail::add_256(d.limb, a.limb, m.limb);
    detail::add_256(a.limb, a.limb, t.limb);
    detail::subtract_256(t.limb, d.limb, t.limb);
}
#endif

}  // namespace ntt
}  // namespace tandem
