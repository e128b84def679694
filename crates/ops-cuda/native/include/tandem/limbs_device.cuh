#pragma once
// Multi-limb integers on the device: 32-bit limbs and carry chains in PTX.
//
// Products are laid out so that every chain consists of pairs mad.lo.cc / madc.hi.cc with the same factors and with
// neighbouring accumulators: ptxas makes one IMAD.WIDE of each pair. For that, a sum of products is held as two arrays,
// value = even + 2^32 * odd: a product a[j] * b[i] lies at limbs i + j and i + j + 1, and so belongs to `even` when
// i + j is even and to `odd` (at i + j - 1) when it is odd. Within one array the products of a row do not overlap.
//
// The carry flag passes from one asm statement to the next: they are volatile, hence stay in order, and nothing that
// the compiler may put between them touches the flag.
#include "params.cuh"

#if defined(__CUDACC__)
namespace tandem {
namespace limbs_device {

#define TANDEM_PTX_2(name, op)                                                                                         \
    __device__ __forceinline__ uint32_t name(uint32_t a, uint32_t b) {                                                 \
        uint32_t r;                                                                                                    \
        asm volatile(op " %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));                                                    \
        return r;                                                                                                      \
    }
#define TANDEM_PTX_3(name, op)                                                                                         \
    __device__ __forceinline__ uint32_t name(uint32_t a, uint32_t b, uint32_t c) {                                     \
        uint32_t r;                                                                                                    \
        asm volatile(op " %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));                                        \
        return r;                                                                                                      \
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

/// r = a + b; returns the carry.
template <int N> __device__ __forceinline__ uint32_t add(uint32_t* r, const uint32_t* a, const uint32_t* b) {
    r[0] = add_cc(a[0], b[0]);
#pragma unroll
    for (int i = 1; i < N; i++) r[i] = addc_cc(a[i], b[i]);
    return addc(0, 0);
}

/// r = a - b; returns all ones if there is a borrow, else 0.
template <int N> __device__ __forceinline__ uint32_t sub(uint32_t* r, const uint32_t* a, const uint32_t* b) {
    r[0] = sub_cc(a[0], b[0]);
#pragma unroll
    for (int i = 1; i < N; i++) r[i] = subc_cc(a[i], b[i]);
    return subc(0, 0);
}

/// Subtracts the modulus from a if a is not below it; a < 2p.
template <class P> __device__ __forceinline__ void reduce_once(uint32_t* a) {
    constexpr Limbs<P::N> p = P::modulus();
    uint32_t t[P::N];
    t[0] = sub_cc(a[0], p.limb[0]);
#pragma unroll
    for (int i = 1; i < P::N; i++) t[i] = subc_cc(a[i], p.limb[i]);
    bool below = subc(0, 0) != 0;
#pragma unroll
    for (int i = 0; i < P::N; i++) a[i] = below ? a[i] : t[i];
}

/// acc[0..N] = the products of a[0], a[2], .. with b, side by side.
template <int N> __device__ __forceinline__ void mul_row(uint32_t* acc, const uint32_t* a, uint32_t b) {
#pragma unroll
    for (int j = 0; j < N; j += 2) {
        acc[j] = mul_lo(a[j], b);
        acc[j + 1] = mul_hi(a[j], b);
    }
}

/// acc[0..N] += the products of a[0], a[2], .. with b. The carry is left in the flag.
template <int N> __device__ __forceinline__ void mad_row(uint32_t* acc, const uint32_t* a, uint32_t b) {
    acc[0] = mad_lo_cc(a[0], b, acc[0]);
    acc[1] = madc_hi_cc(a[0], b, acc[1]);
#pragma unroll
    for (int j = 2; j < N; j += 2) {
        acc[j] = madc_lo_cc(a[j], b, acc[j]);
        acc[j + 1] = madc_hi_cc(a[j], b, acc[j + 1]);
    }
}

/// acc[0..N] = from[2..N], followed by two zeros, + the products of a[0], a[2], .. with b + the carry in the flag.
template <int N>
__device__ __forceinline__ void madc_row_shifted(uint32_t* acc, const uint32_t* from, const uint32_t* a, uint32_t b) {
#pragma unroll
    for (int j = 0; j < N - 2; j += 2) {
        acc[j] = madc_lo_cc(a[j], b, from[j + 2]);
        acc[j + 1] = madc_hi_cc(a[j], b, from[j + 3]);
    }
    acc[N - 2] = madc_lo_cc(a[N - 2], b, 0);
    acc[N - 1] = madc_hi(a[N - 2], b, 0);
}

/// Makes limb 0 of the sum zero by adding a multiple of p.
template <class P> __device__ __forceinline__ void cancel_low_limb(uint32_t* even, uint32_t* odd) {
    constexpr Limbs<P::N> p = P::modulus();
    constexpr int N = P::N;
    uint32_t q = even[0] * P::M0;
    mad_row<N>(odd, p.limb + 1, q);
    mad_row<N>(even, p.limb, q);
    odd[N - 1] = addc(odd[N - 1], 0);
}

/// r = a * b / 2^(32 N) mod p, below p. Needs a * b < p * 2^(32 N), and 3p < 2^(32 N + 1) so that no sum overflows.
template <class P> __device__ __forceinline__ void mont_mul(uint32_t* r, const uint32_t* a, const uint32_t* b) {
    constexpr int N = P::N;
    // The two arrays change roles at every limb of b, as the sum moves down by one limb.
    uint32_t x[N], y[N];
    mul_row<N>(y, a + 1, b[0]);
    mul_row<N>(x, a, b[0]);
    cancel_low_limb<P>(x, y);
#pragma unroll
    for (int i = 1; i < N; i++) {
        uint32_t* even = i % 2 ? y : x;
        uint32_t* odd = i % 2 ? x : y;
        // The sum was odd + 2^32 * even with odd[0] = 0; divide by 2^32.
        even[0] = add_cc(even[0], odd[1]);
        madc_row_shifted<N>(odd, odd, a + 1, b[i]);
        mad_row<N>(even, a, b[i]);
        odd[N - 1] = addc(odd[N - 1], 0);
        cancel_low_limb<P>(even, odd);
    }
    // N is even, so after the last limb the sum is y + 2^32 * x with its lowest limb y[0] = ... = 0 dropped.
    r[0] = add_cc(x[0], y[1]);
#pragma unroll
    for (int i = 1; i < N - 1; i++) r[i] = addc_cc(x[i], y[i + 1]);
    r[N - 1] = addc(x[N - 1], 0);
    reduce_once<P>(r);
}

/// r[0..2N] = a * b.
template <int N> __device__ __forceinline__ void mul_wide(uint32_t* r, const uint32_t* a, const uint32_t* b) {
    uint32_t* even = r;
    uint32_t odd[2 * N];  // odd[k] belongs to limb k + 1; the last one stays unused
    mul_row<N>(odd, a + 1, b[0]);
    mul_row<N>(even, a, b[0]);
    even[N] = 0;
#pragma unroll
    for (int i = 1; i < N; i++) {
        // In an odd row the products of a[1], a[3], .. belong to `even`.
        uint32_t* first = i % 2 ? odd + (i - 1) : even + i;
        uint32_t* second = i % 2 ? even + (i + 1) : odd + i;
        // `second` reaches one pair beyond what is there: its lower limb holds the carry of the row before.
        second[0] = mad_lo_cc(a[1], b[i], second[0]);
        second[1] = madc_hi_cc(a[1], b[i], second[1]);
#pragma unroll
        for (int j = 2; j < N - 2; j += 2) {
            second[j] = madc_lo_cc(a[j + 1], b[i], second[j]);
            second[j + 1] = madc_hi_cc(a[j + 1], b[i], second[j + 1]);
        }
        second[N - 2] = madc_lo_cc(a[N - 1], b[i], second[N - 2]);
        second[N - 1] = madc_hi(a[N - 1], b[i], 0);
        mad_row<N>(first, a, b[i]);
        first[N] = addc(0, 0);
    }
    r[1] = add_cc(even[1], odd[0]);
#pragma unroll
    for (int i = 2; i < 2 * N - 1; i++) r[i] = addc_cc(even[i], odd[i - 1]);
    r[2 * N - 1] = addc(even[2 * N - 1], odd[2 * N - 2]);
}

/// r[0..2N] = a * a.
template <int N> __device__ __forceinline__ void sqr_wide(uint32_t* r, const uint32_t* a) { mul_wide<N>(r, a, a); }

/// r = wide / 2^(32 N) mod p, below p. Needs wide < p * 2^(32 N).
template <class P> __device__ __forceinline__ void mont_reduce(uint32_t* r, const uint32_t* wide) {
    constexpr int N = P::N;
    constexpr Limbs<N> p = P::modulus();
    // Adds multiples of p to the low half alone until it is a multiple of 2^(32 N), then adds the high half.
    uint32_t x[N], y[N];
#pragma unroll
    for (int i = 0; i < N; i++) x[i] = wide[i];
    uint32_t q = x[0] * P::M0;
    mul_row<N>(y, p.limb + 1, q);
    mad_row<N>(x, p.limb, q);
    y[N - 1] = addc(y[N - 1], 0);
#pragma unroll
    for (int i = 1; i < N; i++) {
        uint32_t* even = i % 2 ? y : x;
        uint32_t* odd = i % 2 ? x : y;
        even[0] = add_cc(even[0], odd[1]);
        q = even[0] * P::M0;
        madc_row_shifted<N>(odd, odd, p.limb + 1, q);
        mad_row<N>(even, p.limb, q);
        odd[N - 1] = addc(odd[N - 1], 0);
    }
    r[0] = add_cc(x[0], y[1]);
#pragma unroll
    for (int i = 1; i < N - 1; i++) r[i] = addc_cc(x[i], y[i + 1]);
    r[N - 1] = addc(x[N - 1], 0);
    r[0] = add_cc(r[0], wide[N]);
#pragma unroll
    for (int i = 1; i < N - 1; i++) r[i] = addc_cc(r[i], wide[N + i]);
    r[N - 1] = addc(r[N - 1], wide[2 * N - 1]);
    reduce_once<P>(r);
}

}  // namespace limbs_device
}  // namespace tandem
#endif
