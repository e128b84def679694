#pragma once
// What the host launches.
#include "kernels.cuh"

namespace tandem {
namespace sort {

/// Blocks that take their work in turn: as many as fit on an H200 and similar GPUs.
constexpr uint32_t SMS = 132;

inline uint32_t div_up(uint64_t a, uint64_t b) { return uint32_t((a + b - 1) / b); }

/// Levels that keys of this size may need.
template <class K> constexpr uint32_t LEVELS = 1 + (8 * sizeof(K) + DIGIT_BITS - 1) / DIGIT_BITS;

/// Cuts a lane's scratch memory into its parts, which begin at multiples of 256 bytes.
struct Arena {
    unsigned char* base;
    uint64_t used;
    template <class T> T* take(uint64_t count) {
        T* const part = reinterpret_cast<T*>(base + used);
        used += (count * sizeof(T) + 255) / 256 * 256;
        return part;
    }
};

/// Keys that a lane must have room for, as `room` of crates/ops/src/sort/partition.rs.
inline uint64_t room_for(uint64_t share, uint64_t all, uint32_t lanes) {
    return lanes == 1 ? share : min(all, share + all / 24 + 1024);
}

/// Sets all that follows from L.first, L.lanes, L.lane and the lanes' scratch memory. Returns the bytes that this lane's
/// takes.
template <class K, class V> uint64_t lay_out(Lane<K, V>& L, unsigned char* const* scratch) {
    for (uint32_t l = 0; l < L.lanes; l++) {
        Arena arena{scratch[l], 0};
        L.room[l] = room_for(L.first[l + 1] - L.first[l], L.first[L.lanes], L.lanes);
        L.inbox[l] = arena.take<Inbox<K>>(1);
        L.received[l] = arena.take<K>(L.room[l]);
        if constexpr (HAS_VALUES<V>) L.received_values[l] = arena.take<V>(L.room[l]);
    }
    Arena arena{scratch[L.lane], 0};
    const uint64_t room = L.room[L.lane];
    arena.take<Inbox<K>>(1);
    arena.take<K>(room);
    if constexpr (HAS_VALUES<V>) arena.take<V>(room);
    L.other = arena.take<K>(room);
    if constexpr (HAS_VALUES<V>) L.other_values = arena.take<V>(room);
    L.chunk = TILE * max(1u, div_up(L.count(), uint64_t(TILE) * FIRST_CHUNKS));
    // Segments are longer than a tile.
    L.max_segments = uint32_t(room / TILE) + 1;
    L.max_chunks = max(FIRST_CHUNKS, uint32_t(room / CHUNK) + L.max_segments);
    // Two neighbouring groups are longer than a tile together, unless a segment ends between them.
    L.max_groups = BUCKETS + (2 * LEVELS<K> + 4) * L.max_segments;
    L.state = arena.take<State>(1);
    for (uint32_t i = 0; i < 2; i++) {
        L.segments[i] = arena.take<Segment>(L.max_segments);
        L.chunks[i] = arena.take<uint32_t>(L.max_chunks);
    }
    L.chunk_counts = arena.take<uint32_t>(uint64_t(L.max_chunks) * BUCKETS);
    L.segment_counts = arena.take<uint32_t>(uint64_t(L.max_segments) * BUCKETS);
    L.groups = arena.take<Group>(L.max_groups);
    return arena.used;
}

template <class Kernel> cudaError_t shared_memory(Kernel* kernel, size_t bytes) {
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(bytes));
}

template <class K, class V> cudaError_t sample(const Lane<K, V>& L, cudaStream_t stream) {
    cudaError_t status = cudaMemsetAsync(L.state, 0, sizeof(State), stream);
    if (status == cudaSuccess) status = cudaMemsetAsync(L.failed, 0, sizeof *L.failed, stream);
    if (status != cudaSuccess) return status;
    sample_kernel<<<SAMPLES / 256, 256, 0, stream>>>(L);
    return cudaGetLastError();
}

template <class K, class V> cudaError_t count(const Lane<K, V>& L, cudaStream_t stream) {
    const size_t bytes = sizeof(BlockSort<K, NoValue>);
    cudaError_t status = shared_memory(splitters_kernel<K, V>, bytes);
    if (status != cudaSuccess) return status;
    splitters_kernel<<<1, THREADS, bytes, stream>>>(L);
    const uint32_t chunks = div_up(L.count(), L.chunk);
    if (chunks && L.lanes > 1) {
        first_histogram_kernel<K, V, true><<<min(chunks, 4 * SMS), THREADS, 0, stream>>>(L, chunks);
    } else if (chunks) {
        first_histogram_kernel<K, V, false><<<min(chunks, 4 * SMS), THREADS, 0, stream>>>(L, chunks);
    }
    first_scan_kernel<<<BUCKETS / 32, THREADS, 0, stream>>>(L, chunks);
    return cudaGetLastError();
}

template <class K, class V, bool SPLIT> cudaError_t exchange_as(const Lane<K, V>& L, cudaStream_t stream) {
    const uint32_t chunks = div_up(L.count(), L.chunk);
    const size_t bytes = sizeof(ScatterTile<K, V, uint64_t>);
    const cudaError_t status = shared_memory(exchange_kernel<K, V, SPLIT>, bytes);
    if (status != cudaSuccess) return status;
    offsets_kernel<<<1, THREADS, 0, stream>>>(L);
    if (chunks) exchange_kernel<K, V, SPLIT><<<min(chunks, 2 * SMS), THREADS, bytes, stream>>>(L, chunks);
    return cudaGetLastError();
}

template <class K, class V> cudaError_t exchange(const Lane<K, V>& L, cudaStream_t stream) {
    if constexpr (sizeof(K) == 4) return exchange_as<K, V, true>(L, stream);
    return L.lanes > 1 ? exchange_as<K, V, true>(L, stream) : exchange_as<K, V, false>(L, stream);
}

template <class K, class V> cudaError_t finish(const Lane<K, V>& L, bool whole, cudaStream_t stream) {
    const size_t scatter_bytes = sizeof(ScatterTile<K, V, uint32_t>), finish_bytes = sizeof(BlockSort<K, V>);
    cudaError_t status = shared_memory(scatter_kernel<K, V>, scatter_bytes);
    if (status == cudaSuccess) status = shared_memory(finish_kernel<K, V>, finish_bytes);
    if (status != cudaSuccess) return status;
    for (uint32_t level = 0; level < LEVELS<K> && !whole; level++) {
        const uint32_t blocks = min(L.max_chunks, 4 * SMS);
        histogram_kernel<<<blocks, THREADS, 0, stream>>>(L, level);
        scan_kernel<<<blocks, THREADS, 0, stream>>>(L, level);
        split_kernel<<<min(L.max_segments, 4 * SMS), THREADS, 0, stream>>>(L, level);
        scatter_kernel<<<min(L.max_chunks, 2 * SMS), THREADS, scatter_bytes, stream>>>(L, level);
    }
    const uint32_t blocks = whole ? 1 : min(L.max_groups, 2 * SMS);
    finish_kernel<<<blocks, THREADS, finish_bytes, stream>>>(L, LEVELS<K>, whole);
    return cudaGetLastError();
}

template <class K, class V> bool is_valid(const tandem_sort_args* args) {
    if (args->lanes < 1 || args->lanes > MAX_LANES || args->lane >= args->lanes || args->first[0]) return false;
    for (uint32_t l = 0; l < args->lanes; l++) {
        if (args->first[l + 1] < args->first[l]) return false;
        // Offsets within a lane are 32 bits wide.
        const uint64_t share = args->first[l + 1] - args->first[l];
        if (room_for(share, args->first[args->lanes], args->lanes) > 0xffff0000) return false;
    }
    return args->first[args->lanes] > 0;
}

template <class K, class V> Lane<K, V> lane_of(const tandem_sort_args* args, uint64_t& bytes) {
    Lane<K, V> L = {};
    L.lane = args->lane;
    L.lanes = args->lanes;
    for (uint32_t l = 0; l <= L.lanes; l++) L.first[l] = args->first[l];
    for (uint32_t l = 0; l < L.lanes; l++) {
        L.keys[l] = reinterpret_cast<K*>(args->keys[l]);
        if constexpr (HAS_VALUES<V>) L.values[l] = reinterpret_cast<V*>(args->values[l]);
    }
    L.flip = args->descending ? K(~K(0)) : K(0);
    L.seed = args->seed;
    L.failed = args->failed;
    bytes = lay_out(L, args->scratch);
    return L;
}

/// Whether CUB's sort is the faster one: of 32-bit keys on one lane that do not fit in a block.
template <class K, class V> bool is_for_cub(const Lane<K, V>& L) {
    return sizeof(K) == 4 && L.lanes == 1 && L.count() > TILE;
}

/// All of the sort, by CUB, with `bytes` bytes of memory; without memory it says how many it needs. In by_cub.cuh.
template <class K, class V>
cudaError_t by_cub(const Lane<K, V>& L, bool descending, unsigned char* memory, size_t& bytes, cudaStream_t stream);

template <class K, class V> int32_t room(const tandem_sort_args* args, size_t* bytes) {
    if (!is_valid<K, V>(args)) return TANDEM_INVALID;
    uint64_t all = 0;
    if constexpr (sizeof(K) == 4) {
        const Lane<K, V> L = lane_of<K, V>(args, all);
        if (is_for_cub(L)) return int32_t(by_cub(L, args->descending, nullptr, *bytes, nullptr));
    }
    lane_of<K, V>(args, all);
    *bytes = all;
    return TANDEM_OK;
}

template <class K, class V> int32_t launch(const tandem_sort_args* args, tandem_stream stream) {
    if (!is_valid<K, V>(args) || !args->failed) return TANDEM_INVALID;
    for (uint32_t l = 0; l < args->lanes; l++) {
        if (!args->scratch[l]) return TANDEM_INVALID;
        if (args->first[l + 1] == args->first[l]) continue;
        if (!args->keys[l] || (HAS_VALUES<V> && !args->values[l])) return TANDEM_INVALID;
    }
    uint64_t bytes = 0;
    const Lane<K, V> L = lane_of<K, V>(args, bytes);
    if (is_for_cub(L) != (args->step == TANDEM_SORT_WHOLE && L.count() > TILE)) return TANDEM_INVALID;
    switch (args->step) {
        case TANDEM_SORT_SAMPLE: return int32_t(sample(L, stream));
        case TANDEM_SORT_COUNT: return int32_t(count(L, stream));
        case TANDEM_SORT_EXCHANGE: return int32_t(exchange(L, stream));
        case TANDEM_SORT_FINISH: return int32_t(finish(L, false, stream));
        case TANDEM_SORT_WHOLE: {
            if (L.lanes != 1) return TANDEM_INVALID;
            const cudaError_t status = cudaMemsetAsync(L.failed, 0, sizeof *L.failed, stream);
            if (status != cudaSuccess) return int32_t(status);
            if constexpr (sizeof(K) == 4) {
                size_t all = 0;
                if (is_for_cub(L)) return int32_t(by_cub(L, args->descending, args->scratch[0], all, stream));
            }
            return int32_t(finish(L, true, stream));
        }
        default: return TANDEM_INVALID;
    }
}

}  // namespace sort
}  // namespace tandem
