#pragma once
// Counting keys by bucket, and moving them there.
#include "common.cuh"

namespace tandem {
namespace sort {

/// A chunk to count or move: keys, and the row of counts.
template <class K> struct Chunk {
    const K* keys;
    uint32_t length;
    uint32_t row;
};

/// Adds the keys of a chunk to the block's `count` of each bucket, which is zero before. Returns the bits in which the
/// thread's keys differ from `reference`.
template <class K, bool SPLIT>
__device__ K count_chunk(const Chunk<K>& chunk, const Buckets<K, SPLIT>& buckets, K flip, K reference,
                         uint32_t* count) {
    constexpr uint32_t AT_ONCE = 8;
    K differs = 0;
    for (uint32_t first = 0; first < chunk.length; first += THREADS * AT_ONCE) {
        K key[AT_ONCE];
#pragma unroll
        for (uint32_t i = 0; i < AT_ONCE; i++) {
            key[i] = chunk.keys[min(first + i * THREADS + threadIdx.x, chunk.length - 1)];
        }
#pragma unroll
        for (uint32_t i = 0; i < AT_ONCE; i++) {
            const uint32_t at = first + i * THREADS + threadIdx.x;
            key[i] ^= flip;
            differs |= key[i] ^ reference;
            if (at < chunk.length) atomicAdd(&count[buckets(key[i])], 1u);
        }
    }
    return differs;
}

/// Shared memory of a block that moves keys.
template <class K, class V, class Place> struct Mover {
    static constexpr uint32_t WIDEST = HAS_VALUES<V> && sizeof(V) > sizeof(K) ? sizeof(V) : sizeof(K);
    /// Keys of 32 bits alone take half the registers, and twice as many move a quarter faster, as what goes to one bucket is longer; but
    /// not where lanes share the places and these are 64 bits wide.
    static constexpr uint32_t PER_THREAD = sizeof(K) == 4 && sizeof(Place) == 4 && !HAS_VALUES<V> ? 2 * ITEMS : ITEMS;
    alignas(16) unsigned char slots[THREADS * PER_THREAD * WIDEST];
    /// Place of a bucket's next key, less the slot of its first one in this tile.
    Place place[BUCKETS];
    uint32_t count[BUCKETS];
    uint32_t start[BUCKETS];
    /// With values: of each warp, how many keys of the bucket there are in the warps before it.
    uint16_t before[HAS_VALUES<V> ? WARPS * BUCKETS : 1];
    uint32_t warps[32];

    __device__ K* keys() { return reinterpret_cast<K*>(slots); }
    __device__ V* values() { return reinterpret_cast<V*>(slots); }
};

/// The bucket of what is past the end of a tile: behind all others.
constexpr uint32_t NOWHERE = BUCKETS - 1;
static_assert(NOWHERE >= DIGITS + 2 * (MAX_LANES - 1), "no key's bucket");

/// Ranks of a tile's keys within their buckets, as they stand in the tile; counts them. Each warp has TILE / WARPS keys in
/// a row, 32 at a time.
template <class K, class V, class Place, class BucketOf>
__device__ __forceinline__ void rank_in_order(Mover<K, V, Place>& s, BucketOf bucket_of, Ranks<ITEMS>& rank) {
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint16_t* mine = s.before + warp * BUCKETS;
    for (uint32_t i = lane; i < BUCKETS; i += 32) mine[i] = 0;
    __syncwarp();
#pragma unroll
    for (uint32_t i = 0; i < ITEMS; i++) {
        const uint32_t bucket = bucket_of(i);
        const uint32_t same = __match_any_sync(~0u, bucket);
        const uint32_t before = mine[bucket] + __popc(same & ((1u << lane) - 1));
        rank.set(i, before);
        __syncwarp();
        if ((same >> lane) == 1) mine[bucket] = uint16_t(before + 1);
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

/// Moves the keys of a chunk, tile by tile, each bucket's to consecutive places from s.place on. `key_at(place)` and
/// `value_at(place)` say where a place is in memory. A tile is first put in order in shared memory, so that neighbouring
/// threads write neighbouring places. Nothing here branches on whether a tile is full: threads would wait for one load,
/// one atomic at a time.
template <class K, class V, class Place, class B, class KeyAt, class ValueAt>
__device__ void move_chunk(Mover<K, V, Place>& s, const Chunk<K>& chunk, const V* values, const B& buckets, K flip,
                           KeyAt key_at, ValueAt value_at) {
    constexpr uint32_t ITEMS = Mover<K, V, Place>::PER_THREAD, TILE = THREADS * ITEMS;
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, pair = 2 * threadIdx.x;
    // Without values the order within a bucket is of no account.
    const auto index = [&](uint32_t i) {
        return HAS_VALUES<V> ? warp * (32 * ITEMS) + i * 32 + lane : i * THREADS + threadIdx.x;
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
        for (uint32_t i = 0; i < ITEMS; i++) key[i] ^= flip;
        const auto bucket_of = [&](uint32_t i) { return index(i) < length ? buckets(key[i]) : NOWHERE; };
        Ranks<ITEMS> bucket, rank;
        if constexpr (HAS_VALUES<V>) {
            rank_in_order(s, bucket_of, rank);
        } else {
            if (pair < BUCKETS) s.count[pair] = s.count[pair + 1] = 0;
            __syncthreads();
            constexpr uint32_t AT_ONCE = 4;
#pragma unroll
            for (uint32_t i = 0; i < ITEMS; i += AT_ONCE) {
                uint32_t before[AT_ONCE];
#pragma unroll
                for (uint32_t j = 0; j < AT_ONCE; j++) before[j] = atomicAdd(&s.count[bucket_of(i + j)], 1u);
#pragma unroll
                for (uint32_t j = 0; j < AT_ONCE; j++) rank.set(i + j, before[j]);
            }
        }
        __syncthreads();
        uint32_t a = 0, b = 0, total;
        if (pair < BUCKETS) a = s.count[pair], b = s.count[pair + 1];
        const uint32_t start = scan(a + b, s.warps, total);
        if (pair < BUCKETS) {
            s.start[pair] = start;
            s.start[pair + 1] = start + a;
            s.place[pair] -= start;
            s.place[pair + 1] -= start + a;
        }
        __syncthreads();
        // Loads before stores: the compiler does not exchange them.
        Ranks<ITEMS> slot;
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) {
            const uint32_t b = bucket_of(i);
            uint32_t to = rank.get(i) + s.start[b];
            if constexpr (HAS_VALUES<V>) to += s.before[warp * BUCKETS + b];
            slot.set(i, to);
        }
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) s.keys()[slot.get(i)] = key[i];
        __syncthreads();
        // The next tile's keys are on their way while this one's are written; with values there are not the registers.
        if (!HAS_VALUES<V> && first + TILE < chunk.length) load(first + TILE);
        constexpr uint32_t AT_ONCE = sizeof(Place) > 4 ? 2 : 4;
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i += AT_ONCE) {
            K x[AT_ONCE];
            Place to[AT_ONCE];
#pragma unroll
            for (uint32_t j = 0; j < AT_ONCE; j++) x[j] = s.keys()[(i + j) * THREADS + threadIdx.x];
#pragma unroll
            for (uint32_t j = 0; j < AT_ONCE; j++) {
                const uint32_t b = buckets(x[j]);
                to[j] = s.place[b] + ((i + j) * THREADS + threadIdx.x);
                if constexpr (HAS_VALUES<V>) bucket.set(i + j, b);
            }
#pragma unroll
            for (uint32_t j = 0; j < AT_ONCE; j++) {
                if ((i + j) * THREADS + threadIdx.x < length) *key_at(to[j]) = x[j];
            }
        }
        __syncthreads();
        if constexpr (HAS_VALUES<V>) {
            V value[ITEMS];
#pragma unroll
            for (uint32_t i = 0; i < ITEMS; i++) value[i] = values[first + min(index(i), length - 1)];
#pragma unroll
            for (uint32_t i = 0; i < ITEMS; i++) s.values()[slot.get(i)] = value[i];
            __syncthreads();
#pragma unroll
            for (uint32_t i = 0; i < ITEMS; i++) {
                const uint32_t at = i * THREADS + threadIdx.x;
                const Place to = s.place[bucket.get(i)] + at;
                if (at < length) *value_at(to) = s.values()[at];
            }
            __syncthreads();
            if (first + TILE < chunk.length) load(first + TILE);
        }
        // The next tile's keys of a bucket go behind this one's.
        if (pair < BUCKETS) {
            s.place[pair] += start + a;
            s.place[pair + 1] += start + a + b;
        }
        __syncthreads();
    }
}

/// Turns `chunks` rows of counts from `rows` on into the number of keys in the rows before, for the 32 buckets from there
/// on: of a block, each warp has its part of the rows, a thread a bucket. Returns the sum of all rows.
__device__ inline uint32_t sum_rows(uint32_t* rows, uint32_t chunks, uint32_t (*partial)[32]) {
    constexpr uint32_t AT_ONCE = 8;
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const uint32_t each = (chunks + WARPS - 1) / WARPS;
    const uint32_t begin = min(chunks, warp * each), end = min(chunks, begin + each);
    uint32_t sum = 0;
#pragma unroll 8
    for (uint32_t r = begin; r < end; r++) sum += rows[uint64_t(r) * BUCKETS + lane];
    partial[warp][lane] = sum;
    __syncthreads();
    uint32_t before = 0, all = 0;
    for (uint32_t w = 0; w < WARPS; w++) {
        if (w < warp) before += partial[w][lane];
        all += partial[w][lane];
    }
    for (uint32_t r = begin; r < end; r += AT_ONCE) {
        uint32_t count[AT_ONCE];
#pragma unroll
        for (uint32_t i = 0; i < AT_ONCE; i++) count[i] = r + i < end ? rows[uint64_t(r + i) * BUCKETS + lane] : 0;
#pragma unroll
        for (uint32_t i = 0; i < AT_ONCE; i++) {
            if (r + i < end) rows[uint64_t(r + i) * BUCKETS + lane] = before;
            before += count[i];
        }
    }
    __syncthreads();
    return all;
}

}  // namespace sort
}  // namespace tandem
