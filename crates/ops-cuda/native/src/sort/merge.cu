#include "merge.cuh"

namespace tandem {
namespace sort {

template <class K, class V> int32_t merge(const tandem_sort_merge_args* args, tandem_stream stream) {
    Merge<K, V> m = {};
    for (uint32_t i = 0; i < 2; i++) {
        m.keys[i] = reinterpret_cast<const K*>(args->keys[i]);
        if constexpr (HAS_VALUES<V>) m.values[i] = reinterpret_cast<const V*>(args->values[i]);
        m.length[i] = args->length[i];
        if (m.length[i] && (!m.keys[i] || (HAS_VALUES<V> && !args->values[i]))) return TANDEM_INVALID;
    }
    m.out = reinterpret_cast<K*>(args->out_keys);
    if constexpr (HAS_VALUES<V>) m.out_values = reinterpret_cast<V*>(args->out_values);
    m.flip = args->descending ? K(~K(0)) : K(0);
    const uint64_t all = m.length[0] + m.length[1], blocks = (all + TILE - 1) / TILE;
    if (all < m.length[0] || blocks > 0x7fffffff) return TANDEM_INVALID;
    if (blocks == 0) return TANDEM_OK;
    if (!m.out || (HAS_VALUES<V> && !args->out_values)) return TANDEM_INVALID;
    const uint32_t bytes = TILE * sizeof(K);
    const cudaError_t status =
        cudaFuncSetAttribute(merge_kernel<K, V>, cudaFuncAttributeMaxDynamicSharedMemorySize, int(bytes));
    if (status != cudaSuccess) return int32_t(status);
    merge_kernel<<<uint32_t(blocks), THREADS, bytes, stream>>>(m);
    return int32_t(cudaGetLastError());
}

template <class K> int32_t cuts(const tandem_sort_cuts_args* args, tandem_stream stream) {
    if (args->runs < 1 || args->runs > MAX_LANES || !args->cuts) return TANDEM_INVALID;
    Cuts<K> c = {};
    c.runs = args->runs;
    uint64_t all = 0;
    for (uint32_t r = 0; r < c.runs; r++) {
        c.keys[r] = reinterpret_cast<const K*>(args->keys[r]);
        c.length[r] = args->length[r];
        all += c.length[r];
        if (c.length[r] && !c.keys[r]) return TANDEM_INVALID;
    }
    for (uint32_t r = 0; r <= c.runs; r++) {
        c.rank[r] = args->rank[r];
        if (c.rank[r] > all) return TANDEM_INVALID;
    }
    c.cuts = args->cuts;
    c.flip = args->descending ? K(~K(0)) : K(0);
    cuts_kernel<<<c.runs + 1, 32 * MAX_LANES, 0, stream>>>(c);
    return int32_t(cudaGetLastError());
}

}  // namespace sort
}  // namespace tandem

using namespace tandem::sort;

extern "C" int32_t tandem_sort_merge(const tandem_sort_merge_args* args, tandem_stream stream) {
    const bool pairs = args->values[0] || args->values[1];
    switch (args->key_bytes) {
        case 4: return pairs ? merge<uint32_t, uint32_t>(args, stream) : merge<uint32_t, NoValue>(args, stream);
        case 8: return pairs ? merge<uint64_t, uint64_t>(args, stream) : merge<uint64_t, NoValue>(args, stream);
        default: return TANDEM_INVALID;
    }
}

extern "C" int32_t tandem_sort_cuts(const tandem_sort_cuts_args* args, tandem_stream stream) {
    switch (args->key_bytes) {
        case 4: return cuts<uint32_t>(args, stream);
        case 8: return cuts<uint64_t>(args, stream);
        default: return TANDEM_INVALID;
    }
}
