#pragma once
// Hashes of columns: one thread for each, its state in shared memory, or at width 3 in registers.
#include "tandem/params.cuh"
#include "tandem/poseidon.cuh"
#include "tandem_ops.h"

#include <cuda_runtime.h>

namespace tandem {
namespace poseidon {

constexpr uint32_t THREADS = 128;
/// Blocks of an SM that registers must leave room for. Shared memory does where a state has at most 14 slots.
constexpr uint32_t BLOCKS = 4;
constexpr uint32_t MAX_WIDTH = 12;
constexpr uint32_t MAX_BLOCK = 8;

/// The states of a block. A slot is two vectors of 16 bytes; those of neighbouring threads are neighbours.
extern __shared__ uint4 states[];

/// The slots of this thread.
template <class F> struct SharedSlots {
    __device__ __forceinline__ F get(uint32_t i) const {
        F x;
        uint4* to = reinterpret_cast<uint4*>(&x);
        to[0] = states[2 * i * THREADS + threadIdx.x];
        to[1] = states[(2 * i + 1) * THREADS + threadIdx.x];
        return x;
    }
    __device__ __forceinline__ void set(uint32_t i, F x) const {
        const uint4* from = reinterpret_cast<const uint4*>(&x);
        states[2 * i * THREADS + threadIdx.x] = from[0];
        states[(2 * i + 1) * THREADS + threadIdx.x] = from[1];
    }
};

template <class P>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    kernel(Shape shape, const Fp<P>* table, const Fp<P>* input, Fp<P>* output, uint64_t hashes, bool integers) {
    const SharedSlots<Fp<P>> slots;
    const uint64_t i = uint64_t(blockIdx.x) * THREADS + threadIdx.x;
    // Threads do not work together, so those past the end may leave.
    if (i >= hashes) return;
    const uint32_t arity = shape.width - 1;
    TANDEM_LOOP for (uint32_t j = 0; j < arity; j++) {
        Fp<P> x = load16_readonly(input + i * arity + j);
        slots.set(j, integers ? Fp<P>::from_canonical(x) : x);
    }
    const Fp<P> x = hash<P>(shape, table, slots);
    store16(output + i, integers ? x.to_canonical() : x);
}

template <class P>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    kernel3(Shape shape, const Fp<P>* table, const Fp<P>* input, Fp<P>* output, uint64_t hashes, bool integers) {
    const uint64_t i = uint64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (i >= hashes) return;
    Fp<P> a = load16_readonly(input + 2 * i), b = load16_readonly(input + 2 * i + 1);
    if (integers) {
        // One copy of the code for both.
        TANDEM_LOOP for (int k = 0; k < 2; k++) {
            const Fp<P> x = Fp<P>::from_canonical(a);
            a = b;
            b = x;
        }
    }
    const Fp<P> x = hash3<P>(shape.full_rounds, shape.partial_rounds, table, a, b);
    store16(output + i, integers ? x.to_canonical() : x);
}

template <class P> int32_t launch(const tandem_poseidon_args* args, tandem_stream stream) {
    static_assert(sizeof(Fp<P>) == sizeof(tandem_scalar), "one layout on both sides");
    const Shape shape{args->width, args->full_rounds, args->partial_rounds, args->block};
    if (shape.width < 2 || shape.width > MAX_WIDTH || shape.block < 1 || shape.block > MAX_BLOCK) return TANDEM_INVALID;
    if (shape.full_rounds < 4 || shape.full_rounds % 2 || !shape.partial_rounds) return TANDEM_INVALID;
    const uint64_t blocks = (args->hashes + THREADS - 1) / THREADS;
    if (blocks > 0x7fffffff) return TANDEM_INVALID;
    if (blocks == 0) return TANDEM_OK;
    if (!args->table || !args->input || !args->output) return TANDEM_INVALID;
    const auto* table = reinterpret_cast<const Fp<P>*>(args->table);
    const auto* input = reinterpret_cast<const Fp<P>*>(args->input);
    auto* output = reinterpret_cast<Fp<P>*>(args->output);
    const bool integers = args->integers != 0;
    if (shape.width == 3) {
        kernel3<P><<<uint32_t(blocks), THREADS, 0, stream>>>(shape, table, input, output, args->hashes, integers);
        return int32_t(cudaGetLastError());
    }
    const uint32_t bytes = shape.slots() * THREADS * sizeof(Fp<P>);
    // One limit for all shapes: a smaller one would meet launches of larger ones that other threads make.
    constexpr uint32_t MOST_BYTES = (MAX_WIDTH - 1 + MAX_BLOCK) * THREADS * sizeof(Fp<P>);
    cudaError_t status = cudaFuncSetAttribute(kernel<P>, cudaFuncAttributeMaxDynamicSharedMemorySize, int(MOST_BYTES));
    if (status != cudaSuccess) return int32_t(status);
    kernel<P><<<uint32_t(blocks), THREADS, bytes, stream>>>(shape, table, input, output, args->hashes, integers);
    return int32_t(cudaGetLastError());
}

}  // namespace poseidon
}  // namespace tandem
