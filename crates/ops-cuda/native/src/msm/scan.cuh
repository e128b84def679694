#pragma once
// Sums over the threads of a block.
#include "common.cuh"

namespace tandem {
namespace msm {

/// The sum of `value` over the threads of lower number, for a block of up to 1024 threads; *total is that over all.
__device__ __forceinline__ uint32_t block_exclusive_sum(uint32_t value, uint32_t* total) {
    __shared__ uint32_t warp_sum[32];
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint32_t sum = value;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        uint32_t below = __shfl_up_sync(0xffffffffu, sum, d);
        if (lane >= d) sum += below;
    }
    if (lane == 31) warp_sum[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        uint32_t of_warp = lane < blockDim.x / 32 ? warp_sum[lane] : 0;
#pragma unroll
        for (int d = 1; d < 32; d *= 2) {
            uint32_t below = __shfl_up_sync(0xffffffffu, of_warp, d);
            if (lane >= d) of_warp += below;
        }
        warp_sum[lane] = of_warp;
    }
    __syncthreads();
    const uint32_t before = warp ? warp_sum[warp - 1] : 0;
    *total = warp_sum[31];
    __syncthreads();
    return before + sum - value;
}

}  // namespace msm
}  // namespace tandem
