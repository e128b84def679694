#pragma once
// Sums, least and greatest elements, in an order that the elements' places alone decide: crates/ops/src/reduce/mod.rs has it.
#include "elements.cuh"
#include "tandem_ops.h"

#include <cuda_runtime.h>

namespace tandem {
namespace reduce {

constexpr uint32_t THREADS = 256;
/// Rows whose loads are under way at once.
constexpr uint32_t BATCH = 8;

/// What a thread loads at once: 16 bytes of small elements, or one.
template <class T> struct alignas(16) Pack {
    static constexpr uint32_t COUNT = sizeof(T) < 16 ? 16 / sizeof(T) : 1;
    T at[COUNT];
};

/// Reads a pack from memory that no one writes while the kernel runs.
template <class T> __device__ __forceinline__ Pack<T> load(const Pack<T>* from) {
    if constexpr (sizeof(Pack<T>) == 16) {
        // It is read once, so that caches need not keep it: 0.2 % faster on an H200.
        const uint4 raw = __ldcs(reinterpret_cast<const uint4*>(from));
        Pack<T> pack;
        memcpy(&pack, &raw, sizeof pack);
        return pack;
    } else {
        // The second half comes from the line that the first has brought.
        return load16_readonly(from);
    }
}

/// A value from the thread of the warp whose number differs in the bits of `mask`.
template <class V> __device__ __forceinline__ V shuffle(V value, int mask) {
    static_assert(sizeof(V) % 4 == 0, "whole words");
    uint32_t words[sizeof(V) / 4];
    memcpy(words, &value, sizeof value);
#pragma unroll
    for (uint32_t& word : words) word = __shfl_xor_sync(0xffffffffu, word, mask);
    memcpy(&value, words, sizeof value);
    return value;
}

/// One value of those of all `COUNT` threads of a block, neighbours first; thread 0 has it.
template <class O, uint32_t COUNT = THREADS>
__device__ __forceinline__ typename O::Value block_tree(typename O::Value value) {
    using Value = typename O::Value;
    __shared__ alignas(16) unsigned char raw[COUNT / 32 * sizeof(Value)];
    Value* warps = reinterpret_cast<Value*>(raw);
#pragma unroll
    for (int mask = 1; mask < 32; mask *= 2) value = O::combine(value, shuffle(value, mask));
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x < 32) {
        value = warps[threadIdx.x % (COUNT / 32)];
#pragma unroll
        for (int mask = 1; mask < int(COUNT / 32); mask *= 2) value = O::combine(value, shuffle(value, mask));
    }
    return value;
}

/// One value for each tile: a block reads it row by row, every thread keeps its columns.
template <class O>
__global__ void __launch_bounds__(THREADS) tiles_kernel(const typename O::Element* data, uint64_t n, uint64_t first,
                                                        typename O::Value* tiles, uint64_t* too_large) {
    using Element = typename O::Element;
    using Value = typename O::Value;
    constexpr uint32_t COUNT = Pack<Element>::COUNT;
    constexpr uint32_t PER_TILE = TANDEM_REDUCE_TILE / sizeof(Element);
    constexpr uint32_t ROWS = PER_TILE / (THREADS * COUNT);
    const uint64_t start = uint64_t(blockIdx.x) * PER_TILE;
    Value columns[COUNT];
#pragma unroll
    for (Value& column : columns) column = O::neutral();
    const auto add = [&](uint32_t k, const Element& x, uint64_t i) {
        columns[k] = O::combine(columns[k], O::lift(x));
        if (!is_element(x)) atomicMin(reinterpret_cast<unsigned long long*>(too_large), first + i);
    };
    if (n - start >= PER_TILE) {
        const Pack<Element>* from = reinterpret_cast<const Pack<Element>*>(data + start) + threadIdx.x;
        for (uint32_t row = 0; row < ROWS; row += BATCH) {
            Pack<Element> pack[BATCH];
#pragma unroll
            for (uint32_t r = 0; r < BATCH; r++) pack[r] = load(from + (row + r) * THREADS);
#pragma unroll
            for (uint32_t r = 0; r < BATCH; r++) {
#pragma unroll
                for (uint32_t k = 0; k < COUNT; k++) {
                    add(k, pack[r].at[k], start + ((row + r) * THREADS + threadIdx.x) * COUNT + k);
                }
            }
        }
    } else {
        for (uint32_t row = 0; row < ROWS; row++) {
#pragma unroll
            for (uint32_t k = 0; k < COUNT; k++) {
                const uint64_t i = start + (row * THREADS + threadIdx.x) * COUNT + k;
                if (i < n) add(k, data[i], i);
            }
        }
    }
#pragma unroll
    for (uint32_t width = 1; width < COUNT; width *= 2) {
#pragma unroll
        for (uint32_t k = 0; k < COUNT; k += 2 * width) columns[k] = O::combine(columns[k], columns[k + width]);
    }
    const Value value = block_tree<O>(columns[0]);
    if (threadIdx.x == 0) tiles[blockIdx.x] = value;
}

/// One element for each group of as many tiles as a block has threads.
template <class O>
__global__ void __launch_bounds__(THREADS)
    groups_kernel(const typename O::Value* tiles, uint64_t count, typename O::Element* groups) {
    const uint64_t i = uint64_t(blockIdx.x) * THREADS + threadIdx.x;
    const typename O::Value value = block_tree<O>(i < count ? tiles[i] : O::neutral());
    if (threadIdx.x == 0) groups[blockIdx.x] = O::lower(value);
}

template <class T> uint64_t tiles_of(uint64_t n) {
    constexpr uint64_t PER_TILE = TANDEM_REDUCE_TILE / sizeof(T);
    return n / PER_TILE + (n % PER_TILE != 0);
}

template <class O>
int32_t launch(const tandem_reduce_args* args, void* scratch, size_t scratch_bytes, tandem_stream stream) {
    using Element = typename O::Element;
    using Value = typename O::Value;
    static_assert(THREADS == TANDEM_REDUCE_GROUP, "a block takes the tiles of a group");
    const uint64_t tiles = tiles_of<Element>(args->n);
    if (tiles > 0x7fffffff) return TANDEM_INVALID;
    if (tiles == 0) return TANDEM_OK;
    if (!args->data || !args->groups || scratch_bytes < tiles * sizeof(Value)) return TANDEM_INVALID;
    if (!std::is_arithmetic_v<Element> && !args->too_large) return TANDEM_INVALID;
    if (reinterpret_cast<uintptr_t>(args->data) % 16) return TANDEM_INVALID;
    const Element* data = reinterpret_cast<const Element*>(args->data);
    Value* values = static_cast<Value*>(scratch);
    tiles_kernel<O><<<uint32_t(tiles), THREADS, 0, stream>>>(data, args->n, args->first, values, args->too_large);
    const uint64_t groups = (tiles + THREADS - 1) / THREADS;
    groups_kernel<O><<<uint32_t(groups), THREADS, 0, stream>>>(values, tiles, reinterpret_cast<Element*>(args->groups));
    return int32_t(cudaGetLastError());
}

/// Scratch: a value of each tile.
template <class T> int32_t scratch(const tandem_reduce_args* args, size_t* bytes) {
    const uint64_t tiles = tiles_of<T>(args->n);
    if (tiles > 0x7fffffff) return TANDEM_INVALID;
    *bytes = tiles * sizeof(T);
    return TANDEM_OK;
}

template <class T>
int32_t launch_any(const tandem_reduce_args* args, void* memory, size_t scratch_bytes, tandem_stream stream) {
    switch (args->op) {
        case TANDEM_REDUCE_SUM: return launch<Sum<T>>(args, memory, scratch_bytes, stream);
        case TANDEM_REDUCE_MIN: return launch<Extreme<T, false>>(args, memory, scratch_bytes, stream);
        case TANDEM_REDUCE_MAX: return launch<Extreme<T, true>>(args, memory, scratch_bytes, stream);
        default: return TANDEM_INVALID;
    }
}

}  // namespace reduce
}  // namespace tandem
