#pragma once
// Histograms of keys by bucket, and the scatter into buckets.
#include "common.cuh"

namespace tandem {
namespace sort {

/// A chunk to count or scatter: keys, and the row of counts.
template <class K> struct Chunk {
    const K* keys;
    uint32_t length;
    uint32_t row;
};

/// Adds the keys of a chunk to the block's `count` of each bucket, which is zero before. Returns the bits in which the
/// thread's keys differ from `reference`.
template <class K, bool SPLIT>
__device__ K histogram_chunk(const Chunk<K>& chunk, const Buckets<K, SPLIT>& buckets, K flip, K reference,
                             uint32_t* count) {
    constexpr uint32_t BATCH = 8;
    K differs = 0;
    for (uint32_t first = 0; first < chunk.length; first += THREADS * BATCH) {
        K key[BATCH];
#pragma unroll
        for (uint32_t i = 0; i < BATCH; i++) {
            key[i] = chunk.keys[min(first + i * THREADS + threadIdx.x, chunk.length - 1)];
        }
#pragma unroll
        for (uint32_t i = 0; i < BATCH; i++) {
            const uint32_t at = first + i * THREADS + threadIdx.x;
            key[i] ^= flip;
            differs |= key[i] ^ reference;
            if (at < chunk.length) atomicAdd(&count[buckets(key[i])], 1u);
        }
    }
    return differs;
}

/// Shared memory of a block that scatters keys, a tile at a time.
template <class K, class V, class Offset> struct ScatterTile {
    static constexpr uint32_t WIDEST = HAS_VALUES<V> && sizeof(V) > sizeof(K) ? sizeof(V) : sizeof(K);
    /// Keys of 32 bits alone take half the registers, and twice as many move a quarter faster, as what goes to one bucket is longer; but
    /// not where lanes share the offsets and these are 64 bits wide.
    static constexpr uint32_t PER_THREAD = sizeof(K) == 4 && sizeof(Offset) == 4 && !HAS_VALUES<V> ? 2 * ITEMS : ITEMS;
    alignas(16) unsigned char slots[THREADS * PER_THREAD * WIDEST];
    /// Offset of a bucket's next key, less the slot of its first one in this tile.
    Offset offset[BUCKETS];
    uint32_t count[BUCKETS];
    uint32_t start[BUCKETS];
    /// With values: of each warp, how many keys of the bucket there are in the warps before it.
    uint16_t before[HAS_VALUES<V> ? WARPS * BUCKETS : 1];
    uint32_t warps[32];

    __device__ K* keys() { return reinterpret_cast<K*>(slots); }
    __device__ V* values() { return reinterpret_cast<V*>(slots); }
};

/// The bucket of what is past the end of a tile: behind all others.
constexpr uint32_t PADDING_BUCKET = BUCKETS - 1;
static_assert(PADDING_BUCKET >= DIGITS + 2 * (MAX_LANES - 1), "no key's bucket");

/// Ranks of a tile's keys within their buckets, as they stand in the tile; counts them. Each warp has TILE / WARPS keys in
/// a row, 32 at a time.
template <class K, class V, class Offset, class BucketOf>
__device__ __forceinline__ void rank_in_order(ScatterTile<K, V, Offset>& s, BucketOf bucket_of, Packed16<ITEMS>& rank) {
    const uint32_t warp_lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint16_t* mine = s.before + warp * BUCKETS;
    for (uint32_t i = warp_lane; i < BUCKETS; i += 32) mine[i] = 0;
    __syncwarp();
#pragma unroll
    for (uint32_t i = 0; i < ITEMS; i++) {
        const uint32_t bucket = bucket_of(i);
        const uint32_t same = __match_any_sync(~0u, bucket);
        const uint32_t before = mine[bucket] + __popc(same & ((1u << warp_lane) - 1));
        rank.set(i, before);
        __syncwarp();
        if ((same >> warp_lane) == 1) mine[bucket] = uint16_t(before + 1);
        __syncwarp();
    }
    __syncthreads();
    for (uint32_t b = threadIdx.x; b < BUCKETS; b += THREADS) {
        uint32_t sum = 0;
#pragma unroll
        for (uint32_t w = 0; w < WARPS; w++) {
            const uint32_t of = s.before[w * BUCKETS + b];
            s.before[w * BUCKETS + b] = uint16_t(sum);
            sum += of;
        }
        s.count[b] = sum;
    }
}

/// What a chunk's scatter writes to, and by which keys: `key_at(offset)` and `value_at(offset)` are addresses.
template <class K, class V, class B, class KeyAt, class ValueAt> struct Scatter {
    const V* values;
    // A copy: behind a reference it takes registers that there are not.
    B buckets;
    K flip;
    KeyAt key_at;
    ValueAt value_at;
};

template <class K, class V, class B, class KeyAt, class ValueAt>
__device__ __forceinline__ Scatter<K, V, B, KeyAt, ValueAt> scatter_to(const V* values, const B& buckets, K flip,
                                                                       KeyAt key_at, ValueAt value_at) {
    return {values, buckets, flip, key_at, value_at};
}

/// Ranks of a tile's keys within their buckets, in the order of the atomics that count them.
template <class K, class V, class Offset, uint32_t N, class BucketOf>
__device__ __forceinline__ void rank_in_any_order(ScatterTile<K, V, Offset>& s, BucketOf bucket_of, Packed16<N>& rank) {
    constexpr uint32_t BATCH = 4;
    const uint32_t pair = 2 * threadIdx.x;
    if (pair < BUCKETS) s.count[pair] = s.count[pair + 1] = 0;
    __syncthreads();
#pragma unroll
    for (uint32_t i = 0; i < N; i += BATCH) {
        uint32_t before[BATCH];
#pragma unroll
        for (uint32_t j = 0; j < BATCH; j++) before[j] = atomicAdd(&s.count[bucket_of(i + j)], 1u);
#pragma unroll
        for (uint32_t j = 0; j < BATCH; j++) rank.set(i + j, before[j]);
    }
}

/// The first slot of each bucket in the tile; offsets are less that from here on, so that offset + slot is where a key goes. Returns what
/// takes the thread's two offsets to the next tile's.
template <class K, class V, class Offset> __device__ __forceinline__ uint3 start_buckets(ScatterTile<K, V, Offset>& s) {
    const uint32_t pair = 2 * threadIdx.x;
    uint32_t a = 0, b = 0, total;
    if (pair < BUCKETS) a = s.count[pair], b = s.count[pair + 1];
    const uint32_t start = scan(a + b, s.warps, total);
    if (pair < BUCKETS) {
        s.start[pair] = start;
        s.start[pair + 1] = start + a;
        s.offset[pair] -= start;
        s.offset[pair + 1] -= start + a;
    }
    return make_uint3(start, a, b);
}

/// Writes the keys that stand in order in the tile, and notes their buckets where values follow.
template <class K, class V, class Offset, uint32_t N, class To>
__device__ __forceinline__ void write_keys(ScatterTile<K, V, Offset>& s, const To& to, uint32_t length,
                                           Packed16<N>& bucket) {
    constexpr uint32_t BATCH = sizeof(Offset) > 4 ? 2 : 4;
#pragma unroll
    for (uint32_t i = 0; i < N; i += BATCH) {
        K x[BATCH];
        Offset at[BATCH];
#pragma unroll
        for (uint32_t j = 0; j < BATCH; j++) x[j] = s.keys()[(i + j) * THREADS + threadIdx.x];
#pragma unroll
        for (uint32_t j = 0; j < BATCH; j++) {
            const uint32_t b = to.buckets(x[j]);
            at[j] = s.offset[b] + ((i + j) * THREADS + threadIdx.x);
            if constexpr (HAS_VALUES<V>) bucket.set(i + j, b);
        }
#pragma unroll
        for (uint32_t j = 0; j < BATCH; j++) {
            if ((i + j) * THREADS + threadIdx.x < length) *to.key_at(at[j]) = x[j];
        }
    }
}

/// Takes a tile's values through shared memory to where its keys went. `index(i)` is where a thread's value stands in the tile.
template <class K, class V, class Offset, uint32_t N, class To, class Index>
__device__ __forceinline__ void move_values(ScatterTile<K, V, Offset>& s, const To& to, uint32_t first, uint32_t length,
                                            Index index, const Packed16<N>& slot, const Packed16<N>& bucket) {
    V value[N];
#pragma unroll
    for (uint32_t i = 0; i < N; i++) value[i] = to.values[first + min(index(i), length - 1)];
#pragma unroll
    for (uint32_t i = 0; i < N; i++) s.values()[slot.get(i)] = value[i];
    __syncthreads();
#pragma unroll
    for (uint32_t i = 0; i < N; i++) {
        const uint32_t at = i * THREADS + threadIdx.x;
        const Offset target = s.offset[bucket.get(i)] + at;
        if (at < length) *to.value_at(target) = s.values()[at];
    }
    __syncthreads();
}

/// Scatters the keys of a chunk, tile by tile, each bucket's to consecutive offsets from s.offset on. A tile is first put in order in
/// shared memory, so that neighbouring threads write to neighbouring addresses. Nothing here branches on whether a tile is full: threads
/// would wait for one load, one atomic at a time.
template <class K, class V, class Offset, class To>
__device__ void scatter_chunk(ScatterTile<K, V, Offset>& s, const Chunk<K>& chunk, const To& to) {
    constexpr uint32_t ITEMS = ScatterTile<K, V, Offset>::PER_THREAD, TILE = THREADS * ITEMS;
    const uint32_t warp_lane = threadIdx.x % 32, warp = threadIdx.x / 32, pair = 2 * threadIdx.x;
    // Without values the order within a bucket is of no account.
    const auto index = [&](uint32_t i) {
        return HAS_VALUES<V> ? warp * (32 * ITEMS) + i * 32 + warp_lane : i * THREADS + threadIdx.x;
    };
    K key[ITEMS];
    const auto load = [&](uint32_t first) {
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) key[i] = chunk.keys[min(first + index(i), chunk.length - 1)];
    };
    load(0);
    for (uint32_t first = 0; first < chunk.length; first += TILE) {
        const uint32_t length = min(TILE, chunk.length - first);
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) key[i] ^= to.flip;
        const auto bucket_of = [&](uint32_t i) { return index(i) < length ? to.buckets(key[i]) : PADDING_BUCKET; };
        Packed16<ITEMS> bucket, rank;
        if constexpr (HAS_VALUES<V>) {
            rank_in_order(s, bucket_of, rank);
        } else {
            rank_in_any_order(s, bucket_of, rank);
        }
        __syncthreads();
        const uint3 next = start_buckets(s);
        __syncthreads();
        // Loads before stores: the compiler does not exchange them.
        Packed16<ITEMS> slot;
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) {
            const uint32_t b = bucket_of(i);
            uint32_t at = rank.get(i) + s.start[b];
            if constexpr (HAS_VALUES<V>) at += s.before[warp * BUCKETS + b];
            slot.set(i, at);
        }
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) s.keys()[slot.get(i)] = key[i];
        __syncthreads();
        // The next tile's keys are on their way while this one's are written; with values there are not the registers.
        if (!HAS_VALUES<V> && first + TILE < chunk.length) load(first + TILE);
        write_keys(s, to, length, bucket);
        __syncthreads();
        if constexpr (HAS_VALUES<V>) {
            move_values(s, to, first, length, index, slot, bucket);
            if (first + TILE < chunk.length) load(first + TILE);
        }
        // The next tile's keys of a bucket go behind this one's.
        if (pair < BUCKETS) {
            s.offset[pair] += next.x + next.y;
            s.offset[pair + 1] += next.x + next.y + next.z;
        }
        __syncthreads();
    }
}

/// Exclusive scan down `chunks` rows of counts, for the 32 buckets from `rows` on: each warp has a part of the rows, a thread
/// of it a bucket. Returns the sum of all rows.
__device__ inline uint32_t scan_counts(uint32_t* rows, uint32_t chunks, uint32_t (*partial)[32]) {
    constexpr uint32_t BATCH = 8;
    const uint32_t warp_lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const uint32_t each = (chunks + WARPS - 1) / WARPS;
    const uint32_t begin = min(chunks, warp * each), end = min(chunks, begin + each);
    uint32_t sum = 0;
#pragma unroll 8
    for (uint32_t r = begin; r < end; r++) sum += rows[uint64_t(r) * BUCKETS + warp_lane];
    partial[warp][warp_lane] = sum;
    __syncthreads();
    uint32_t before = 0, all = 0;
    for (uint32_t w = 0; w < WARPS; w++) {
        if (w < warp) before += partial[w][warp_lane];
        all += partial[w][warp_lane];
    }
    for (uint32_t r = begin; r < end; r += BATCH) {
        uint32_t count[BATCH];
#pragma unroll
        for (uint32_t i = 0; i < BATCH; i++) count[i] = r + i < end ? rows[uint64_t(r + i) * BUCKETS + warp_lane] : 0;
#pragma unroll
        for (uint32_t i = 0; i < BATCH; i++) {
            if (r + i < end) rows[uint64_t(r + i) * BUCKETS + warp_lane] = before;
            before += count[i];
        }
    }
    __syncthreads();
    return all;
}

}  // namespace sort
}  // namespace tandem
