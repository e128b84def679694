#pragma once
// Keys of 32 bits on one GPU by CUB, whose header comes with the toolkit. It moves them four times, and a key costs it fewer
// instructions (docs/design/sort.md).
#include "launch.cuh"

#include <cub/device/device_radix_sort.cuh>

namespace tandem {
namespace sort {

template <class K, class V>
cudaError_t by_cub(const Lane<K, V>& L, bool descending, unsigned char* memory, size_t& bytes, cudaStream_t stream) {
    const uint64_t n = L.count();
    Arena arena{memory, 0};
    cub::DoubleBuffer<K> keys(L.keys[0], arena.take<K>(n));
    cub::DoubleBuffer<V> values;
    if constexpr (HAS_VALUES<V>) values = {L.values[0], arena.take<V>(n)};
    const auto sort = [&](void* scratch, size_t& size) {
        using Radix = cub::DeviceRadixSort;
        constexpr int BITS = 8 * sizeof(K);
        if constexpr (HAS_VALUES<V>) {
            return descending ? Radix::SortPairsDescending(scratch, size, keys, values, n, 0, BITS, stream)
                              : Radix::SortPairs(scratch, size, keys, values, n, 0, BITS, stream);
        } else {
            return descending ? Radix::SortKeysDescending(scratch, size, keys, n, 0, BITS, stream)
                              : Radix::SortKeys(scratch, size, keys, n, 0, BITS, stream);
        }
    };
    size_t own = 0;
    cudaError_t status = sort(nullptr, own);
    bytes = arena.used + own;
    if (status != cudaSuccess || !memory) return status;
    status = sort(memory + arena.used, own);
    // After an even number of moves they are where they were.
    if (status == cudaSuccess && keys.Current() != L.keys[0]) {
        status = cudaMemcpyAsync(L.keys[0], keys.Current(), n * sizeof(K), cudaMemcpyDeviceToDevice, stream);
    }
    if constexpr (HAS_VALUES<V>) {
        if (status == cudaSuccess && values.Current() != L.values[0]) {
            status = cudaMemcpyAsync(L.values[0], values.Current(), n * sizeof(V), cudaMemcpyDeviceToDevice, stream);
        }
    }
    return status;
}

}  // namespace sort
}  // namespace tandem
