#pragma once
// A sparse matrix times a vector: one thread, warp or block a row, by the row's length. Products are added up without
// reduction and reduced once a row and thread; a zero costs no product, and neither does a one.
#include "tandem/field.cuh"
#include "tandem_ops.h"

namespace tandem {
namespace spmv {

constexpr uint32_t BLOCK = 256, WARP = 32;

template <class P> __device__ __forceinline__ bool is_one(const Fp<P>& x) {
    uint32_t others = x.limb[0] ^ 1;
#pragma unroll
    for (int i = 1; i < P::N; i++) others |= x.limb[i];
    return others == 0;
}

/// The share of thread `lane` of `lanes` in a row's sum.
template <class P>
__device__ Fp<P> partial_sum(const tandem_spmv_args& args, uint32_t row, uint32_t lane, uint32_t lanes) {
    const Fp<P>* values = reinterpret_cast<const Fp<P>*>(args.values);
    const Fp<P>* x = reinterpret_cast<const Fp<P>*>(args.x);
    // Below p * 2^256 at all times.
    Wide<P> sum{};
    const uint32_t end = args.starts[row + 1];
    for (uint64_t i = uint64_t(args.starts[row]) + lane; i < end; i += lanes) {
        const Fp<P> factor = load16_readonly(x + args.column[i]);
        if (factor.is_zero()) continue;
        const Fp<P> value = load16_readonly(values + args.value[i]);
        Wide<P> product{};
        if (is_one(factor)) {
#pragma unroll
            for (int j = 0; j < P::N; j++) product.limb[j] = value.limb[j];
        } else {
            product = Wide<P>::mul(value, factor);
        }
        sum = sum + product;
        limbs_device::reduce_once<P>(sum.limb + P::N);
    }
    return sum.reduce();
}

template <class P> __global__ void __launch_bounds__(BLOCK) thread_rows_kernel(const tandem_spmv_args args) {
    const uint64_t i = blockIdx.x * uint64_t(BLOCK) + threadIdx.x;
    if (i >= args.thread_rows) return;
    const uint32_t row = args.order[i];
    store16(reinterpret_cast<Fp<P>*>(args.output) + row, partial_sum<P>(args, row, 0, 1));
}

/// The sum over a warp, in its first thread.
template <class P> __device__ __forceinline__ Fp<P> warp_sum(Fp<P> x) {
    for (uint32_t distance = WARP / 2; distance > 0; distance /= 2) {
        Fp<P> other;
#pragma unroll
        for (int i = 0; i < P::N; i++) other.limb[i] = __shfl_down_sync(0xffffffffu, x.limb[i], distance);
        x = x + other;
    }
    return x;
}

/// Rows args.order[first + number of the warp].
template <class P> __global__ void __launch_bounds__(BLOCK) warp_rows_kernel(const tandem_spmv_args args) {
    const uint64_t i = blockIdx.x * uint64_t(BLOCK / WARP) + threadIdx.x / WARP;
    if (i >= args.warp_rows) return;
    const uint32_t row = args.order[args.thread_rows + i];
    const Fp<P> sum = warp_sum(partial_sum<P>(args, row, threadIdx.x % WARP, WARP));
    if (threadIdx.x % WARP == 0) store16(reinterpret_cast<Fp<P>*>(args.output) + row, sum);
}

template <class P> __global__ void __launch_bounds__(BLOCK) block_rows_kernel(const tandem_spmv_args args) {
    __shared__ Fp<P> sums[BLOCK / WARP];
    const uint32_t row = args.order[args.thread_rows + args.warp_rows + blockIdx.x];
    const Fp<P> sum = warp_sum(partial_sum<P>(args, row, threadIdx.x, BLOCK));
    if (threadIdx.x % WARP == 0) sums[threadIdx.x / WARP] = sum;
    __syncthreads();
    if (threadIdx.x >= WARP) return;
    const Fp<P> all = warp_sum(threadIdx.x < BLOCK / WARP ? sums[threadIdx.x] : Fp<P>::zero());
    if (threadIdx.x == 0) store16(reinterpret_cast<Fp<P>*>(args.output) + row, all);
}

template <class P> int32_t spmv(const tandem_spmv_args* args, tandem_stream stream) {
    const tandem_spmv_args& a = *args;
    if (a.rows > 0xffffffffu || a.thread_rows > a.rows || a.warp_rows > a.rows - a.thread_rows) return TANDEM_INVALID;
    if (a.output_length < a.rows || (a.output_length > 0 && !a.output)) return TANDEM_INVALID;
    if (a.rows > 0 && (!a.starts || !a.order)) return TANDEM_INVALID;
    const uint64_t block_rows = a.rows - a.thread_rows - a.warp_rows;
    const uint64_t rest = a.output_length - a.rows;
    if (block_rows > 0x7fffffffu) return TANDEM_INVALID;
    if (rest > 0) {
        const cudaError_t error = cudaMemsetAsync(a.output + a.rows, 0, rest * sizeof(tandem_scalar), stream);
        if (error != cudaSuccess) return int32_t(error);
    }
    if (block_rows > 0) block_rows_kernel<P><<<uint32_t(block_rows), BLOCK, 0, stream>>>(a);
    if (a.warp_rows > 0)
        warp_rows_kernel<P><<<uint32_t((a.warp_rows + BLOCK / WARP - 1) / (BLOCK / WARP)), BLOCK, 0, stream>>>(a);
    if (a.thread_rows > 0)
        thread_rows_kernel<P><<<uint32_t((a.thread_rows + BLOCK - 1) / BLOCK), BLOCK, 0, stream>>>(a);
    return int32_t(cudaGetLastError());
}

}  // namespace spmv
}  // namespace tandem
