#pragma once
// Sort: what the kernels share. Every lane (GPU) runs the same steps:
//
//   sample    takes SAMPLES keys of all lanes; from them follow the digit that comes first and the keys at the lanes' borders
//   count     of every chunk of the lane's keys, how many fall into each bucket
//   exchange  writes each key to the lane that will sort it, bucket by bucket
//   levels    each segment of equal leading digits is split by its next digit, until its pieces fit in a block
//   finish    sorts each piece in shared memory and writes it to where it belongs, which may be on another lane
//
// A key's offset within its bucket follows from the lane, the chunk and, with values, where it stood: that is stable. A radix
// sort from the most significant digit, with the splitters of a sample sort between lanes (docs/design/sort.md). `lane` is a
// GPU, `warp_lane` a thread of a warp.
#include "tandem_ops.h"

#include <cuda_runtime.h>

namespace tandem {
namespace sort {

constexpr uint32_t THREADS = 512;
constexpr uint32_t WARPS = THREADS / 32;
constexpr uint32_t ITEMS = 12;
/// Keys that a block has in hand at a time, and the most that `finish` sorts.
constexpr uint32_t TILE = THREADS * ITEMS;
static_assert(TILE == TANDEM_SORT_BLOCK, "what the header says");
constexpr uint32_t DIGIT_BITS = 9;
constexpr uint32_t DIGITS = 1 << DIGIT_BITS;
constexpr uint32_t MAX_LANES = TANDEM_SORT_LANES;
/// Digits, and two more for the key at each border between lanes: itself and what is above it. A multiple of 32.
constexpr uint32_t BUCKETS = 544;
static_assert(BUCKETS >= DIGITS + 2 * (MAX_LANES - 1) && BUCKETS % 32 == 0 && BUCKETS <= 2 * THREADS, "room");
constexpr uint32_t SAMPLES = TILE;
/// Tiles of a chunk below the first level.
constexpr uint32_t CHUNK = 4 * TILE;
/// Rows of counts of the first level, at most: longer inputs get longer chunks.
constexpr uint32_t FIRST_CHUNKS = 4096;
/// Levels after the exchange: 64 bits in digits of 9, and one for keys outside of what the sample showed.
constexpr uint32_t MAX_LEVELS = 9;

/// Keys of one lane that agree in all bits above the digit at `shift`, or are thought to: `differs` will tell.
struct Segment {
    uint64_t differs;
    uint32_t start;
    uint32_t length;
    uint32_t first_chunk;
    uint32_t chunks;
    uint32_t shift;
    /// Which of the two scratch buffers holds it.
    uint16_t buffer;
    /// Whether this level moves it.
    uint16_t moves;
};

/// Neighbouring keys that `finish` sorts in one block.
struct Group {
    uint32_t start;
    /// The length, times 4, plus the buffer, plus 2 where the keys are equal.
    uint32_t length;
};

/// One number below 2^16 for each of `N` keys of a thread, two in a register. Indices are known when it is compiled.
template <uint32_t N> struct Packed16 {
    uint32_t pair[N / 2];
    __device__ __forceinline__ uint32_t get(uint32_t i) const {
        return i % 2 ? pair[i / 2] >> 16 : pair[i / 2] & 0xffff;
    }
    /// Call it in the order of the indices.
    __device__ __forceinline__ void set(uint32_t i, uint32_t x) { pair[i / 2] = i % 2 ? pair[i / 2] | x << 16 : x; }
};

/// What a lane's kernels leave for each other in its memory. Zero at the start.
struct State {
    uint32_t segments[MAX_LEVELS + 1];
    uint32_t chunks[MAX_LEVELS + 1];
    uint32_t groups;
    uint32_t shift;
    uint64_t base;
    uint64_t splitter[MAX_LANES - 1];
    /// Offset in the whole sequence at which each lane's received keys begin.
    uint64_t cut[MAX_LANES + 1];
    /// Offset in the whole sequence of this lane's first key of each bucket.
    uint64_t offset[BUCKETS];
};

/// What the other lanes write to.
template <class K> struct Inbox {
    K samples[SAMPLES];
    uint32_t lane_counts[MAX_LANES][BUCKETS];
};

/// No value: keys alone.
struct NoValue {};
template <class V> constexpr bool HAS_VALUES = true;
template <> constexpr bool HAS_VALUES<NoValue> = false;

/// A lane's part in a sort, the argument of every kernel.
template <class K, class V> struct Lane {
    uint32_t lane, lanes;
    /// The lane's part of the whole sequence is first[lane] .. first[lane + 1].
    uint64_t first[MAX_LANES + 1];
    /// Keys and values of every lane: read on this one, written on all.
    K* keys[MAX_LANES];
    V* values[MAX_LANES];
    /// Two buffers of `room` keys; the first one's of all lanes.
    K* received[MAX_LANES];
    V* received_values[MAX_LANES];
    K* other;
    V* other_values;
    uint64_t room[MAX_LANES];
    Inbox<K>* inbox[MAX_LANES];
    /// Exclusive or of every key before it is compared, and after: all bits for descending order, else 0.
    K flip;
    uint64_t seed;

    State* state;
    /// 0, or TANDEM_SORT_CROWDED or TANDEM_SORT_UNFINISHED.
    uint32_t* failed;
    Segment* segments[2];
    uint32_t max_segments;
    /// Segment of each chunk.
    uint32_t* chunks[2];
    uint32_t max_chunks;
    /// Rows of BUCKETS. Of each chunk, how many keys each bucket has; after the scan, how many are in the segment's chunks before it.
    uint32_t* chunk_counts;
    /// Rows of BUCKETS. Of each segment, how many keys each bucket has; after the scan, how many are in the buckets before it.
    uint32_t* segment_counts;
    Group* groups;
    uint32_t max_groups;
    /// Keys of a chunk of the first level.
    uint32_t chunk;

    __host__ __device__ uint64_t count() const { return first[lane + 1] - first[lane]; }
    __device__ K* buffer(uint32_t i) const { return i ? other : received[lane]; }
    __device__ V* buffer_values(uint32_t i) const { return i ? other_values : received_values[lane]; }
};

/// Which bucket a key goes to.
template <class K, bool SPLIT> struct Buckets {
    uint32_t shift;
    K base;
    uint32_t splitters;
    const K* splitter;

    __device__ __forceinline__ uint32_t operator()(K key) const {
        const K high = key >> shift;
        uint32_t bucket = high <= base ? 0 : uint32_t(min(K(high - base), K(DIGITS - 1)));
        if (SPLIT) {
            for (uint32_t i = 0; i < splitters; i++) bucket += (key >= splitter[i]) + (key > splitter[i]);
        }
        return bucket;
    }
};

/// The smallest key that agrees with `key` above the digit at `shift`, shifted.
template <class K> __device__ __forceinline__ K base_of(K key, uint32_t shift) {
    return (key >> shift >> DIGIT_BITS) << DIGIT_BITS;
}

/// The highest bit of a number that is not 0.
__device__ __forceinline__ uint32_t highest_bit(uint64_t x) { return 63 - __clzll(x); }

/// The shift of the digit whose highest bit is `bit`.
__device__ __forceinline__ uint32_t digit_shift(uint32_t bit) { return bit < DIGIT_BITS ? 0 : bit - (DIGIT_BITS - 1); }

/// Exclusive sum over the threads of the block; `total` is that of all. `warps` is shared memory of 32 words; it may be used
/// again after the call.
__device__ __forceinline__ uint32_t scan(uint32_t value, uint32_t* warps, uint32_t& total) {
    const uint32_t warp_lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint32_t sum = value;
    for (uint32_t d = 1; d < 32; d *= 2) {
        const uint32_t before = __shfl_up_sync(~0u, sum, d);
        if (warp_lane >= d) sum += before;
    }
    if (warp_lane == 31) warps[warp] = sum;
    __syncthreads();
    uint32_t below = 0;
    total = 0;
    for (uint32_t w = 0; w < WARPS; w++) {
        const uint32_t of = warps[w];
        if (w < warp) below += of;
        total += of;
    }
    __syncthreads();
    return below + sum - value;
}

}  // namespace sort
}  // namespace tandem
