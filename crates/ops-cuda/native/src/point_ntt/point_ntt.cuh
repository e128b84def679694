#pragma once
// Inverse transforms over points of G1, from natural to natural order: the butterflies x + z y and x - z y of Cooley and Tukey, in place, from
// natural to bit-reversed order, where z depends on the block alone and is the same at all stages (crates/ops/src/point_ntt.rs). A thread
// makes a butterfly, whose product takes its time. Products go over signed digits of four bits, in Jacobian coordinates, whose doublings,
// 253 of 320 operations, are the cheapest.
#include "../msm/outlined_field_ops.cuh"
#include "tandem_ops.h"

namespace tandem {
namespace point_ntt {

/// Multiples of a point that a product takes: 1 to 8 times, for digits from -8 to 7.
constexpr uint32_t MULTIPLES = 8;
/// Bits of a digit, and digits of a factor.
constexpr uint32_t DIGIT_BITS = 4, DIGITS = 64;
constexpr uint32_t DIGITS_OF_LIMB = 64 / DIGIT_BITS;

template <class F> TANDEM_HD_NOINLINE void add_to(Jacobian<F>* to, const Jacobian<F>* with) {
    Jacobian<F> own = *to;
    own.add(*with);
    *to = own;
}

/// *p times a factor that is biased as tandem_point_ntt_args has it.
template <class F> TANDEM_HD_NOINLINE void multiply(Jacobian<F>* p, const tandem_scalar* biased) {
    Jacobian<F> multiples[MULTIPLES];
    multiples[0] = *p;
    for (uint32_t i = 1; i < MULTIPLES; i++) {
        multiples[i] = multiples[i - 1];
        add_to(&multiples[i], &multiples[0]);
    }
    Jacobian<F> sum = Jacobian<F>::infinity();
    for (uint32_t i = DIGITS; i-- > 0;) {
#if defined(__CUDACC__)
#pragma unroll 1
#endif
        for (uint32_t k = 0; k < DIGIT_BITS; k++) sum = sum.dbl();
        const uint64_t limb = biased->limb[i / DIGITS_OF_LIMB];
        const int32_t digit = int32_t(limb >> (i % DIGITS_OF_LIMB * DIGIT_BITS) & 15) - int32_t(MULTIPLES);
        if (digit == 0) continue;
        Jacobian<F> with = multiples[(digit < 0 ? -digit : digit) - 1];
        if (digit < 0) with = with.neg();
        add_to(&sum, &with);
    }
    *p = sum;
}

/// What thread `i` of n does first: point i times 1/n.
template <class F> TANDEM_HD void start(const Affine<F>* in, Jacobian<F>* points, const tandem_scalar* factors,
                                        uint32_t i) {
    Jacobian<F> p = Jacobian<F>::from_affine(in[i]);
    multiply(&p, &factors[0]);
    points[i] = p;
}

/// Thread `i` of n / 2 at the stage at which 2^log_half butterflies have one factor.
template <class F>
TANDEM_HD void butterfly(Jacobian<F>* points, const tandem_scalar* factors, uint32_t log_half, uint32_t i) {
    const uint32_t half = 1u << log_half, block = i >> log_half, at = (block << log_half) + i;
    Jacobian<F> product = points[at + half];
    if (block > 0) multiply(&product, &factors[block]);
    Jacobian<F> sum = points[at];
    Jacobian<F> difference = sum;
    add_to(&sum, &product);
    product = product.neg();
    add_to(&difference, &product);
    points[at] = sum;
    points[at + half] = difference;
}

/// Thread `thread` of so many in the end: points `thread`, `thread + threads` and so on of 2^log_n become affine with one inversion, each at
/// the place of its number with its bits in reverse. before[i] becomes the product of the thread's denominators before that of point i.
template <class F>
TANDEM_HD void finish(const Jacobian<F>* points, F* before, Affine<F>* out, uint32_t log_n, uint32_t thread,
                      uint32_t threads) {
    const uint32_t n = 1u << log_n;
    if (thread >= n) return;
    const uint32_t count = (n - 1 - thread) / threads + 1;
    F product = F::one();
    for (uint32_t k = 0; k < count; k++) {
        const uint32_t i = thread + k * threads;
        before[i] = product;
        const F z = points[i].z;
        if (!z.is_zero()) product *= z;
    }
    F inverse = product.inverse();
    for (uint32_t k = count; k-- > 0;) {
        const uint32_t i = thread + k * threads;
        uint32_t to = 0;
        for (uint32_t bit = 0; bit < log_n; bit++) to |= (i >> bit & 1u) << (log_n - 1 - bit);
        const Jacobian<F> p = points[i];
        if (p.is_infinity()) {
            out[to] = Affine<F>::infinity();
            continue;
        }
        const F z = inverse * before[i];  // 1 / z
        inverse *= p.z;
        const F zz = z.sqr();
        out[to] = {p.x * zz, p.y * (z * zz)};
    }
}

/// The points' field with products that are called.
template <class G> using Field = msm::Called<typename G::Field>;

#if defined(__CUDACC__)
constexpr uint32_t BLOCK = 128;
/// Points that share an inversion.
constexpr uint32_t BATCH = 8;

template <class F>
__global__ void __launch_bounds__(BLOCK)
    start_kernel(const Affine<F>* in, Jacobian<F>* points, const tandem_scalar* factors, uint32_t n) {
    const uint32_t i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n) start(in, points, factors, i);
}

template <class F>
__global__ void __launch_bounds__(BLOCK)
    butterflies(Jacobian<F>* points, const tandem_scalar* factors, uint32_t log_half, uint32_t count) {
    const uint32_t i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < count) butterfly(points, factors, log_half, i);
}

template <class F>
__global__ void __launch_bounds__(BLOCK)
    finish_kernel(const Jacobian<F>* points, F* before, Affine<F>* out, uint32_t log_n, uint32_t threads) {
    const uint32_t thread = blockIdx.x * BLOCK + threadIdx.x;
    if (thread < threads) finish(points, before, out, log_n, thread, threads);
}

/// Scratch: the points in projective form, and products of their denominators.
template <class G> int32_t scratch(const tandem_point_ntt_args* args, size_t* bytes) {
    if (!args || !bytes || args->log_n > TANDEM_POINT_NTT_MAX_LOG_N) return TANDEM_INVALID;
    *bytes = (sizeof(Jacobian<Field<G>>) + sizeof(Field<G>)) << args->log_n;
    return TANDEM_OK;
}

template <class G>
int32_t launch(const tandem_point_ntt_args* args, void* memory, size_t scratch_bytes, tandem_stream stream) {
    using F = Field<G>;
    size_t needed = 0;
    if (int32_t status = scratch<G>(args, &needed)) return status;
    if (scratch_bytes < needed) return TANDEM_SCRATCH_TOO_SMALL;
    if (!memory || !args->points || !args->factors) return TANDEM_INVALID;
    const auto blocks = [](uint32_t threads) { return (threads + BLOCK - 1) / BLOCK; };
    const uint32_t n = 1u << args->log_n, threads = (n + BATCH - 1) / BATCH;
    Affine<F>* affine = reinterpret_cast<Affine<F>*>(args->points);
    Jacobian<F>* points = static_cast<Jacobian<F>*>(memory);
    F* before = reinterpret_cast<F*>(points + n);
    start_kernel<F><<<blocks(n), BLOCK, 0, stream>>>(affine, points, args->factors, n);
    for (uint32_t log_half = args->log_n; log_half-- > 0;)
        butterflies<F><<<blocks(n / 2), BLOCK, 0, stream>>>(points, args->factors, log_half, n / 2);
    finish_kernel<F><<<blocks(threads), BLOCK, 0, stream>>>(points, before, affine, args->log_n, threads);
    return int32_t(cudaGetLastError());
}
#endif

}  // namespace point_ntt
}  // namespace tandem
