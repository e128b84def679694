#pragma once
// The steps of a sort as kernels: histogram, scan, scatter at each level. Blocks take chunks, segments and groups in turn:
// how many there are is known on the device alone.
#include "block.cuh"
#include "partition.cuh"

namespace tandem {
namespace sort {

/// A number that looks random: the finalizer of SplitMix64 (Steele, Lea, Flood 2014).
__device__ __forceinline__ uint64_t splitmix64(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

/// Lane whose part, of those that begin at first[0], first[1] .., has the offset `at`.
__device__ __forceinline__ uint32_t owner_of(const uint64_t* first, uint32_t lanes, uint64_t at) {
    uint32_t lane = 0;
    for (uint32_t i = 1; i < lanes; i++) lane += at >= first[i];
    return lane;
}

/// Every lane writes those of the samples that are its own to all lanes.
template <class K, class V> __global__ void sample_kernel(const Lane<K, V> L) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    const uint64_t at = __umul64hi(splitmix64(L.seed + (i + 1) * 0x9e3779b97f4a7c15), L.first[L.lanes]);
    if (i >= SAMPLES || at < L.first[L.lane] || at >= L.first[L.lane + 1]) return;
    const K key = L.keys[L.lane][at - L.first[L.lane]] ^ L.flip;
    for (uint32_t l = 0; l < L.lanes; l++) L.inbox[l]->samples[i] = key;
}

/// Sorts the samples: the first digit and the keys at the lanes' borders.
template <class K, class V> __global__ void __launch_bounds__(THREADS) splitters_kernel(const Lane<K, V> L) {
    extern __shared__ __align__(16) unsigned char shared[];
    auto& s = *reinterpret_cast<BlockSort<K, NoValue>*>(shared);
    K* samples = L.inbox[L.lane]->samples;
#pragma unroll
    for (uint32_t i = 0; i < ITEMS; i++) s.keys[i * THREADS + threadIdx.x] = samples[i * THREADS + threadIdx.x];
    sort_block(s, SAMPLES);
    samples = s.keys;
    if (threadIdx.x) return;
    const uint64_t differs = samples[0] ^ samples[SAMPLES - 1];
    const uint32_t shift = differs ? digit_shift(highest_bit(differs)) : 0;
    L.state->shift = shift;
    L.state->base = base_of(samples[0], shift);
    for (uint32_t j = 1; j < L.lanes; j++) {
        const uint64_t at = L.first[j] * SAMPLES / L.first[L.lanes];
        L.state->splitter[j - 1] = samples[min(at, uint64_t(SAMPLES - 1))];
    }
}

/// The buckets of the first level. `splitter` is shared memory.
template <class K, class V, bool SPLIT>
__device__ Buckets<K, SPLIT> first_buckets(const Lane<K, V>& L, K* splitter) {
    if (SPLIT && threadIdx.x < L.lanes - 1) splitter[threadIdx.x] = K(L.state->splitter[threadIdx.x]);
    __syncthreads();
    return {L.state->shift, K(L.state->base), L.lanes - 1, splitter};
}

template <class K, class V> __device__ Chunk<K> first_chunk(const Lane<K, V>& L, uint32_t c) {
    const uint64_t from = uint64_t(c) * L.chunk;
    return {L.keys[L.lane] + from, uint32_t(min(uint64_t(L.chunk), L.count() - from)), c};
}

template <class K, class V, bool SPLIT>
__global__ void __launch_bounds__(THREADS) first_histogram_kernel(const Lane<K, V> L, uint32_t chunks) {
    __shared__ uint32_t count[BUCKETS];
    __shared__ K splitter[MAX_LANES];
    const auto buckets = first_buckets<K, V, SPLIT>(L, splitter);
    for (uint32_t c = blockIdx.x; c < chunks; c += gridDim.x) {
        for (uint32_t b = threadIdx.x; b < BUCKETS; b += THREADS) count[b] = 0;
        __syncthreads();
        histogram_chunk(first_chunk(L, c), buckets, L.flip, K(0), count);
        __syncthreads();
        for (uint32_t b = threadIdx.x; b < BUCKETS; b += THREADS) L.chunk_counts[uint64_t(c) * BUCKETS + b] = count[b];
        __syncthreads();
    }
}

/// Scans the counts of the first level, and tells all lanes how many keys of each bucket this one has.
template <class K, class V> __global__ void __launch_bounds__(THREADS)
    first_scan_kernel(const Lane<K, V> L, uint32_t chunks) {
    __shared__ uint32_t partial[WARPS][32];
    const uint32_t bucket = blockIdx.x * 32;
    const uint32_t all = scan_counts(L.chunk_counts + bucket, chunks, partial);
    if (threadIdx.x < 32) {
        for (uint32_t l = 0; l < L.lanes; l++) L.inbox[l]->lane_counts[L.lane][bucket + threadIdx.x] = all;
    }
}

/// What becomes of the buckets of a segment: groups, segments of the next level (`active`), or groups of equal keys (`uniform`).
struct BucketSplit {
    uint32_t start[BUCKETS];
    uint32_t length[BUCKETS];
    /// Whether all keys of it are equal.
    bool equal[BUCKETS];
    Group group[BUCKETS];
    /// Buckets too large for a block, and where their chunks or groups begin.
    uint32_t active[BUCKETS], first_of_active[BUCKETS];
    uint32_t uniform[BUCKETS], first_of_uniform[BUCKETS];
    uint32_t groups, actives, uniforms;
    uint32_t first_group, first_segment, first_chunk;
    uint32_t warps[32];
    bool fits;
};

__device__ __forceinline__ uint32_t chunks_of(uint32_t length) { return (length + CHUNK - 1) / CHUNK; }
__device__ __forceinline__ uint32_t tiles_of(uint32_t length) { return (length + TILE - 1) / TILE; }

/// Small buckets side by side become groups, large ones segments of the next level, and large ones of equal keys groups
/// that need no sorting. `s.start`, `s.length` and `s.equal` are set.
template <class K, class V>
__device__ void emit_pieces(const Lane<K, V>& L, BucketSplit& s, uint32_t level, uint32_t shift, uint32_t buffer) {
    __syncthreads();
    if (threadIdx.x == 0) {
        uint32_t groups = 0, actives = 0, uniforms = 0, pieces = 0, chunks = 0;
        uint32_t start = 0, length = 0;
        const auto close = [&] {
            if (length) s.group[groups++] = {start, length << 2 | buffer};
            length = 0;
        };
        for (uint32_t b = 0; b < BUCKETS; b++) {
            const uint32_t of = s.length[b];
            if (of == 0) continue;
            if (of <= TILE) {
                if (length + of > TILE) close();
                if (length == 0) start = s.start[b];
                length += of;
                continue;
            }
            close();
            if (s.equal[b]) {
                s.first_of_uniform[uniforms] = pieces;
                s.uniform[uniforms++] = b;
                pieces += tiles_of(of);
            } else {
                s.first_of_active[actives] = chunks;
                s.active[actives++] = b;
                chunks += chunks_of(of);
            }
        }
        close();
        s.groups = groups;
        s.actives = actives;
        s.uniforms = uniforms;
        s.first_group = groups + pieces ? atomicAdd(&L.state->groups, groups + pieces) : 0;
        s.first_segment = actives ? atomicAdd(&L.state->segments[level], actives) : 0;
        s.first_chunk = chunks ? atomicAdd(&L.state->chunks[level], chunks) : 0;
        s.fits = s.first_group + groups + pieces <= L.max_groups && s.first_segment + actives <= L.max_segments &&
                 s.first_chunk + chunks <= L.max_chunks;
        if (!s.fits) *L.failed = TANDEM_SORT_UNFINISHED;
    }
    __syncthreads();
    if (!s.fits) return;
    for (uint32_t i = threadIdx.x; i < s.groups; i += THREADS) L.groups[s.first_group + i] = s.group[i];
    const uint32_t warp_lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (uint32_t f = warp; f < s.uniforms; f += WARPS) {
        const uint32_t start = s.start[s.uniform[f]], length = s.length[s.uniform[f]], pieces = tiles_of(length);
        Group* to = L.groups + s.first_group + s.groups + s.first_of_uniform[f];
        for (uint32_t i = warp_lane; i < pieces; i += 32) {
            to[i] = {start + i * TILE, min(TILE, length - i * TILE) << 2 | 2 | buffer};
        }
    }
    for (uint32_t a = warp; a < s.actives; a += WARPS) {
        const uint32_t b = s.active[a], chunks = chunks_of(s.length[b]), to = s.first_segment + a;
        const uint32_t first = s.first_chunk + s.first_of_active[a];
        if (warp_lane == 0) {
            L.segments[level % 2][to] = {0, s.start[b], s.length[b], first, chunks, shift, uint16_t(buffer), 0};
        }
        for (uint32_t i = warp_lane; i < chunks; i += 32) L.chunks[level % 2][first + i] = to;
    }
    __syncthreads();
}

/// From the counts of all lanes: where each bucket goes, where the lanes' parts meet, and what this lane will have.
template <class K, class V> __global__ void __launch_bounds__(THREADS) offsets_kernel(const Lane<K, V> L) {
    __shared__ BucketSplit s;
    __shared__ uint64_t offset[BUCKETS + 1];
    __shared__ uint64_t cut[MAX_LANES + 1];
    __shared__ uint32_t equal[MAX_LANES];
    __shared__ bool fits;
    const auto& lane_counts = L.inbox[L.lane]->lane_counts;
    for (uint32_t b = threadIdx.x; b < BUCKETS; b += THREADS) {
        uint64_t sum = 0;
        for (uint32_t l = 0; l < L.lanes; l++) sum += lane_counts[l][b];
        offset[b] = sum;
        s.equal[b] = false;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        uint64_t sum = 0;
        for (uint32_t b = 0; b < BUCKETS; b++) {
            const uint64_t of = offset[b];
            offset[b] = sum;
            sum += of;
        }
        offset[BUCKETS] = sum;
        K splitter[MAX_LANES];
        for (uint32_t j = 0; j + 1 < L.lanes; j++) splitter[j] = K(L.state->splitter[j]);
        const Buckets<K, true> buckets{L.state->shift, K(L.state->base), L.lanes - 1, splitter};
        cut[0] = 0;
        cut[L.lanes] = sum;
        fits = sum == L.first[L.lanes];
        for (uint32_t j = 1; j < L.lanes; j++) {
            // The splitter lies in the bucket of those that equal it: it counts itself once. Equal keys may be cut
            // anywhere, all others where the splitter is.
            const uint32_t b = buckets(splitter[j - 1]);
            equal[j - 1] = b;
            cut[j] = min(max(L.first[j], offset[b]), offset[b + 1]);
        }
        for (uint32_t l = 0; l < L.lanes; l++) fits = fits && cut[l + 1] - cut[l] <= L.room[l];
        if (!fits) *L.failed = TANDEM_SORT_CROWDED;
    }
    __syncthreads();
    if (!fits) return;
    const uint64_t begin = cut[L.lane], end = cut[L.lane + 1];
    if (threadIdx.x <= L.lanes) L.state->cut[threadIdx.x] = cut[threadIdx.x];
    if (threadIdx.x < L.lanes - 1) s.equal[equal[threadIdx.x]] = true;
    for (uint32_t b = threadIdx.x; b < BUCKETS; b += THREADS) {
        uint64_t before = 0;
        for (uint32_t l = 0; l < L.lane; l++) before += lane_counts[l][b];
        L.state->offset[b] = offset[b] + before;
        const uint64_t from = min(max(offset[b], begin), end), to = min(max(offset[b + 1], begin), end);
        s.start[b] = uint32_t(from - begin);
        s.length[b] = uint32_t(to - from);
    }
    const uint32_t shift = L.state->shift;
    emit_pieces(L, s, 0, shift > DIGIT_BITS ? shift - DIGIT_BITS : 0, 0);
}

template <class K, class V, bool SPLIT>
__global__ void __launch_bounds__(THREADS, 2) exchange_kernel(const Lane<K, V> L, uint32_t chunks) {
    extern __shared__ __align__(16) unsigned char shared[];
    auto& s = *reinterpret_cast<ScatterTile<K, V, uint64_t>*>(shared);
    __shared__ K splitter[MAX_LANES];
    __shared__ uint64_t cut[MAX_LANES];
    if (*L.failed) return;
    if (threadIdx.x < L.lanes) cut[threadIdx.x] = L.state->cut[threadIdx.x];
    const auto buckets = first_buckets<K, V, SPLIT>(L, splitter);
    const auto key_at = [&](uint64_t offset) {
        const uint32_t lane = SPLIT ? owner_of(cut, L.lanes, offset) : 0;
        return L.received[lane] + (offset - cut[lane]);
    };
    const auto value_at = [&](uint64_t offset) {
        const uint32_t lane = SPLIT ? owner_of(cut, L.lanes, offset) : 0;
        return L.received_values[lane] + (offset - cut[lane]);
    };
    for (uint32_t c = blockIdx.x; c < chunks; c += gridDim.x) {
        for (uint32_t b = threadIdx.x; b < BUCKETS; b += THREADS) {
            s.offset[b] = L.state->offset[b] + L.chunk_counts[uint64_t(c) * BUCKETS + b];
        }
        __syncthreads();
        const V* values = nullptr;
        if constexpr (HAS_VALUES<V>) values = L.values[L.lane] + uint64_t(c) * L.chunk;
        scatter_chunk(s, first_chunk(L, c), scatter_to(values, buckets, L.flip, key_at, value_at));
    }
}

template <class K, class V> __device__ Chunk<K> chunk_of(const Lane<K, V>& L, const Segment& of, uint32_t c) {
    const uint32_t from = (c - of.first_chunk) * CHUNK;
    return {L.buffer(of.buffer) + of.start + from, min(CHUNK, of.length - from), c};
}

template <class K, class V> __global__ void __launch_bounds__(THREADS)
    histogram_kernel(const Lane<K, V> L, uint32_t level) {
    __shared__ uint32_t count[BUCKETS];
    const uint32_t chunks = min(L.state->chunks[level], L.max_chunks);
    for (uint32_t c = blockIdx.x; c < chunks; c += gridDim.x) {
        Segment& of = L.segments[level % 2][L.chunks[level % 2][c]];
        const K reference = L.buffer(of.buffer)[of.start];
        for (uint32_t b = threadIdx.x; b < BUCKETS; b += THREADS) count[b] = 0;
        __syncthreads();
        const Buckets<K, false> buckets{of.shift, base_of(reference, of.shift), 0, nullptr};
        uint64_t differs = histogram_chunk(chunk_of(L, of, c), buckets, K(0), reference, count);
        differs =
            uint64_t(__reduce_or_sync(~0u, uint32_t(differs >> 32))) << 32 | __reduce_or_sync(~0u, uint32_t(differs));
        if (threadIdx.x % 32 == 0 && (differs & ~*const_cast<volatile uint64_t*>(&of.differs))) {
            atomicOr(reinterpret_cast<unsigned long long*>(&of.differs), differs);
        }
        __syncthreads();
        for (uint32_t b = threadIdx.x; b < BUCKETS; b += THREADS) L.chunk_counts[uint64_t(c) * BUCKETS + b] = count[b];
        __syncthreads();
    }
}

template <class K, class V> __global__ void __launch_bounds__(THREADS) scan_kernel(const Lane<K, V> L, uint32_t level) {
    __shared__ uint32_t partial[WARPS][32];
    constexpr uint32_t PARTS = BUCKETS / 32;
    const uint64_t parts = uint64_t(min(L.state->segments[level], L.max_segments)) * PARTS;
    for (uint64_t i = blockIdx.x; i < parts; i += gridDim.x) {
        const uint32_t segment = uint32_t(i / PARTS), bucket = uint32_t(i % PARTS) * 32;
        const Segment& of = L.segments[level % 2][segment];
        const uint32_t all =
            scan_counts(L.chunk_counts + uint64_t(of.first_chunk) * BUCKETS + bucket, of.chunks, partial);
        if (threadIdx.x < 32) L.segment_counts[uint64_t(segment) * BUCKETS + bucket + threadIdx.x] = all;
    }
}

/// Decides for each segment whether it moves at this level, and what comes of it.
template <class K, class V> __global__ void __launch_bounds__(THREADS)
    split_kernel(const Lane<K, V> L, uint32_t level) {
    __shared__ BucketSplit s;
    const uint32_t segments = min(L.state->segments[level], L.max_segments);
    for (uint32_t i = blockIdx.x; i < segments; i += gridDim.x) {
        Segment& of = L.segments[level % 2][i];
        const Segment copy = of;
        const bool equal = copy.differs == 0;
        const uint32_t bit = equal ? 0 : highest_bit(copy.differs);
        const bool moves = !equal && bit >= copy.shift && bit < copy.shift + DIGIT_BITS;
        if (!moves) {
            // It stays where it is: as it is, or until the digit in which its keys differ has been found.
            for (uint32_t b = threadIdx.x; b < BUCKETS; b += THREADS) {
                s.start[b] = copy.start;
                s.length[b] = b ? 0 : copy.length;
                s.equal[b] = equal;
            }
            emit_pieces(L, s, level + 1, equal ? 0 : digit_shift(bit), copy.buffer);
            continue;
        }
        uint32_t* totals = L.segment_counts + uint64_t(i) * BUCKETS;
        const uint32_t pair = 2 * threadIdx.x;
        uint32_t a = 0, b = 0, total;
        if (pair < BUCKETS) a = totals[pair], b = totals[pair + 1];
        const uint32_t start = scan(a + b, s.warps, total);
        if (pair < BUCKETS) {
            totals[pair] = start;
            totals[pair + 1] = start + a;
            s.start[pair] = copy.start + start;
            s.start[pair + 1] = copy.start + start + a;
            s.length[pair] = a;
            s.length[pair + 1] = b;
            s.equal[pair] = s.equal[pair + 1] = copy.shift == 0;
        }
        if (threadIdx.x == 0) of.moves = 1;
        emit_pieces(L, s, level + 1, copy.shift > DIGIT_BITS ? copy.shift - DIGIT_BITS : 0, copy.buffer ^ 1);
    }
}

template <class K, class V> __global__ void __launch_bounds__(THREADS, 2)
    scatter_kernel(const Lane<K, V> L, uint32_t level) {
    extern __shared__ __align__(16) unsigned char shared[];
    auto& s = *reinterpret_cast<ScatterTile<K, V, uint32_t>*>(shared);
    const uint32_t chunks = min(L.state->chunks[level], L.max_chunks);
    for (uint32_t c = blockIdx.x; c < chunks; c += gridDim.x) {
        const uint32_t segment = L.chunks[level % 2][c];
        const Segment of = L.segments[level % 2][segment];
        if (!of.moves) continue;
        const Buckets<K, false> buckets{of.shift, base_of(L.buffer(of.buffer)[of.start], of.shift), 0, nullptr};
        for (uint32_t b = threadIdx.x; b < BUCKETS; b += THREADS) {
            s.offset[b] = of.start + L.segment_counts[uint64_t(segment) * BUCKETS + b] +
                          L.chunk_counts[uint64_t(c) * BUCKETS + b];
        }
        __syncthreads();
        K* to = L.buffer(of.buffer ^ 1);
        const auto key_at = [&](uint32_t offset) { return to + offset; };
        V* values_to = nullptr;
        const V* values = nullptr;
        if constexpr (HAS_VALUES<V>) {
            values_to = L.buffer_values(of.buffer ^ 1);
            values = L.buffer_values(of.buffer) + of.start + (c - of.first_chunk) * CHUNK;
        }
        const auto value_at = [&](uint32_t offset) { return values_to + offset; };
        scatter_chunk(s, chunk_of(L, of, c), scatter_to(values, buckets, K(0), key_at, value_at));
    }
}

/// Sorts the groups and writes them to where they belong. With `whole`, the lane's keys are one group that was never moved.
template <class K, class V>
__global__ void __launch_bounds__(THREADS, 2) finish_kernel(const Lane<K, V> L, uint32_t levels, bool whole) {
    extern __shared__ __align__(16) unsigned char shared[];
    auto& s = *reinterpret_cast<BlockSort<K, V>*>(shared);
    if (!whole && L.state->segments[levels] && blockIdx.x == 0 && threadIdx.x == 0) *L.failed = TANDEM_SORT_UNFINISHED;
    const uint32_t groups = whole ? 1 : min(L.state->groups, L.max_groups);
    for (uint32_t g = blockIdx.x; g < groups; g += gridDim.x) {
        const Group group = whole ? Group{0, uint32_t(L.count()) << 2} : L.groups[g];
        const uint32_t length = group.length >> 2;
        const K* keys = (whole ? L.keys[L.lane] : L.buffer(group.length & 1)) + group.start;
        const V* values = nullptr;
        if constexpr (HAS_VALUES<V>)
            values = (whole ? L.values[L.lane] : L.buffer_values(group.length & 1)) + group.start;
        const K flip_in = whole ? L.flip : K(0), flip = L.flip;
        K key[ITEMS];
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) key[i] = keys[min(i * THREADS + threadIdx.x, length - 1)];
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) s.keys[i * THREADS + threadIdx.x] = key[i] ^ flip_in;
        if constexpr (HAS_VALUES<V>) {
            // Values are gathered, so that those of keys that never moved must first be copied.
            if (whole) {
                for (uint32_t i = threadIdx.x; i < length; i += THREADS) L.other_values[i] = values[i];
                __syncthreads();
                values = L.other_values;
            }
        }
        const uint64_t first = (whole ? L.first[L.lane] : L.state->cut[L.lane]) + group.start;
        if (!(group.length & 2)) {
            sort_block(s, length);
        } else if constexpr (HAS_VALUES<V>) {
            // Equal keys are in order. A thread reads what it has written itself.
            for (uint32_t at = threadIdx.x; at < length; at += THREADS) s.index[at] = uint16_t(at);
        }
        const uint32_t to = owner_of(L.first, L.lanes, first);
        if (to == owner_of(L.first, L.lanes, first + length - 1)) {
            K* const out = L.keys[to] + (first - L.first[to]);
#pragma unroll 4
            for (uint32_t at = threadIdx.x; at < length; at += THREADS) out[at] = s.keys[at] ^ flip;
            if constexpr (HAS_VALUES<V>) {
                V* const values_out = L.values[to] + (first - L.first[to]);
#pragma unroll 4
                for (uint32_t at = threadIdx.x; at < length; at += THREADS) values_out[at] = values[s.index[at]];
            }
        } else {
            for (uint32_t at = threadIdx.x; at < length; at += THREADS) {
                const uint32_t lane = owner_of(L.first, L.lanes, first + at);
                const uint64_t offset = first + at - L.first[lane];
                L.keys[lane][offset] = s.keys[at] ^ flip;
                if constexpr (HAS_VALUES<V>) L.values[lane][offset] = values[s.index[at]];
            }
        }
        __syncthreads();
    }
}

}  // namespace sort
}  // namespace tandem
