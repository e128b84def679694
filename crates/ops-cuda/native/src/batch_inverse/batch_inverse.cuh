#pragma once
// Inverses of many elements by Montgomery's trick (P. L. Montgomery, 1987, crates/ops/src/batch_inverse.rs): a thread multiplies its
// elements up, inverts the product, and takes it apart from the last element to the first. Zeros are left out.
#include "tandem/field.cuh"
#include "tandem/params.cuh"
#include "tandem_ops.h"

namespace tandem {
namespace batch_inverse {

/// What thread number `thread` of `threads` does: elements `thread`, `thread + threads` and so on of n, so that neighbours read what
/// lies side by side. before[i] becomes the product of the thread's elements before element i.
template <class F> TANDEM_HD void invert(F* data, F* before, uint64_t n, uint64_t thread, uint64_t threads) {
    if (thread >= n) return;
    const uint64_t count = (n - 1 - thread) / threads + 1;
    F product = F::one();
    for (uint64_t k = 0; k < count; k++) {
        const uint64_t i = thread + k * threads;
        const F x = data[i];
        before[i] = product;
        if (!x.is_zero()) product *= x;
    }
    F inverse = product.inverse();
    for (uint64_t k = count; k-- > 0;) {
        const uint64_t i = thread + k * threads;
        const F x = data[i];
        if (x.is_zero()) continue;
        data[i] = inverse * before[i];
        inverse *= x;
    }
}

#if defined(__CUDACC__)
constexpr uint32_t BLOCK = 128;

template <class F>
__global__ void __launch_bounds__(BLOCK) invert_kernel(F* data, F* before, uint64_t n, uint64_t threads) {
    const uint64_t thread = uint64_t(blockIdx.x) * BLOCK + threadIdx.x;
    if (thread < threads) invert(data, before, n, thread, threads);
}

/// Scratch: the products before each element.
template <class F> int32_t scratch(const tandem_batch_inverse_args* args, size_t* bytes) {
    if (args->n > UINT64_MAX / sizeof(F)) return TANDEM_INVALID;
    *bytes = args->n * sizeof(F);
    return TANDEM_OK;
}

template <class F>
int32_t launch(const tandem_batch_inverse_args* args, void* memory, size_t scratch_bytes, tandem_stream stream) {
    static_assert(sizeof(F) == sizeof(tandem_scalar), "one layout on both sides");
    if (args->n == 0) return TANDEM_OK;
    if (args->threads == 0 || args->threads > args->n || args->threads > TANDEM_BATCH_INVERSE_THREADS) {
        return TANDEM_INVALID;
    }
    if (!args->data || !memory || args->n > scratch_bytes / sizeof(F)) return TANDEM_INVALID;
    const uint32_t blocks = uint32_t((args->threads + BLOCK - 1) / BLOCK);
    invert_kernel<F><<<blocks, BLOCK, 0, stream>>>(reinterpret_cast<F*>(args->data), static_cast<F*>(memory), args->n,
                                                   args->threads);
    return int32_t(cudaGetLastError());
}
#endif

}  // namespace batch_inverse
}  // namespace tandem
