#pragma once
// Sorts up to TILE keys in one block.
#include "common.cuh"

namespace tandem {
namespace sort {

constexpr uint32_t BIN_BITS = 13;
constexpr uint32_t BINS = 1 << BIN_BITS;
static_assert(BINS == THREADS * 16 && TILE < 1 << 14, "16 bins a thread, and counts that fit");
/// A bin of more keys than this is not searched key by key.
constexpr uint32_t MAX_BIN = 48;

/// The power of two that has room for a tile.
constexpr uint32_t PADDED = 8192;
static_assert(PADDED / 2 < TILE && TILE <= PADDED, "the next power of two");

/// Shared memory of a block that sorts. `index` is where a key stood: it makes the order of equal keys.
template <class K, class V> struct BlockSort {
    K keys[PADDED];
    /// Two bins in a word, and one for each thread of a warp for what is past the end.
    alignas(16) uint32_t bins[BINS / 2 + 32];
    uint16_t index[HAS_VALUES<V> ? PADDED : 1];
    K min_key[WARPS], max_key[WARPS];
    uint32_t warps[32];
};

template <class K> __device__ __forceinline__ K warp_min(K x) {
    for (uint32_t d = 16; d; d /= 2) x = min(x, __shfl_xor_sync(~0u, x, d));
    return x;
}
template <class K> __device__ __forceinline__ K warp_max(K x) {
    for (uint32_t d = 16; d; d /= 2) x = max(x, __shfl_xor_sync(~0u, x, d));
    return x;
}

/// Sorts by comparisons, whatever the keys are: a bitonic network over (key, index), padded to a power of two.
template <class K, class V> __device__ void sort_by_network(BlockSort<K, V>& s, uint32_t length) {
    uint32_t padded = 2;
    while (padded < length) padded *= 2;
    // Past the end lie the greatest keys there are; those that equal them and are in the sequence have smaller indices.
    for (uint32_t i = length + threadIdx.x; i < padded; i += THREADS) {
        s.keys[i] = ~K(0);
        if constexpr (HAS_VALUES<V>) s.index[i] = uint16_t(i);
    }
    __syncthreads();
    for (uint32_t size = 2; size <= padded; size *= 2) {
        for (uint32_t step = size / 2; step; step /= 2) {
            for (uint32_t t = threadIdx.x; t < padded / 2; t += THREADS) {
                const uint32_t i = 2 * t - t % step, j = i + step;
                const bool up = (i & size) == 0;
                const K a = s.keys[i], b = s.keys[j];
                bool greater = a > b;
                if constexpr (HAS_VALUES<V>) greater |= a == b && s.index[i] > s.index[j];
                if (greater == up) {
                    s.keys[i] = b;
                    s.keys[j] = a;
                    if constexpr (HAS_VALUES<V>) {
                        const uint16_t k = s.index[i];
                        s.index[i] = s.index[j];
                        s.index[j] = k;
                    }
                }
            }
            __syncthreads();
        }
    }
}

/// The place of a thread's key number i.
__device__ __forceinline__ uint32_t place_of(uint32_t i) { return i * THREADS + threadIdx.x; }

/// Bins of equal width from the least key on. What is past the end of the sequence has bins of its own, one for each thread of a warp.
template <class K> struct Binning {
    K min_key;
    uint32_t shift, length;

    __device__ __forceinline__ uint32_t operator()(uint32_t i, K x) const {
        return place_of(i) < length ? uint32_t((x - min_key) >> shift) : BINS + 2 * (threadIdx.x % 32);
    }
};

/// The thread's 16 bins, as two vectors of eight counts of 16 bits.
template <class K, class V> __device__ __forceinline__ uint4* own_bins(BlockSort<K, V>& s) {
    return reinterpret_cast<uint4*>(s.bins) + 2 * threadIdx.x;
}

/// Bins between the least and the greatest key, all empty.
template <class K, class V> __device__ __forceinline__ Binning<K> find_bins(BlockSort<K, V>& s, uint32_t length) {
    const uint32_t warp = threadIdx.x / 32;
    K min_key = ~K(0), max_key = 0;
#pragma unroll
    for (uint32_t i = 0; i < ITEMS; i++) {
        const K x = s.keys[place_of(i)];
        if (place_of(i) < length) {
            min_key = min(min_key, x);
            max_key = max(max_key, x);
        }
    }
    min_key = warp_min(min_key);
    max_key = warp_max(max_key);
    if (threadIdx.x % 32 == 0) {
        s.min_key[warp] = min_key;
        s.max_key[warp] = max_key;
    }
    own_bins(s)[0] = own_bins(s)[1] = make_uint4(0, 0, 0, 0);
    __syncthreads();
    for (uint32_t w = 0; w < WARPS; w++) {
        min_key = min(min_key, s.min_key[w]);
        max_key = max(max_key, s.max_key[w]);
    }
    const uint64_t range = uint64_t(max_key - min_key);
    return {min_key, range >> BIN_BITS ? highest_bit(range) - (BIN_BITS - 1) : 0, length};
}

/// Counts the keys of each bin. A key's rank is the number of keys of its bin that were counted before it. No count is above
/// TILE, so that none runs over into the other bin of its word.
template <class K, class V>
__device__ __forceinline__ void count_bins(BlockSort<K, V>& s, const Binning<K>& bin_of, Packed16<ITEMS>& bins,
                                           Packed16<ITEMS>& rank) {
    constexpr uint32_t BATCH = 4;
#pragma unroll
    for (uint32_t i = 0; i < ITEMS; i += BATCH) {
        uint32_t before[BATCH];
#pragma unroll
        for (uint32_t j = 0; j < BATCH; j++) bins.set(i + j, bin_of(i + j, s.keys[place_of(i + j)]));
#pragma unroll
        for (uint32_t j = 0; j < BATCH; j++) {
            const uint32_t bin = bins.get(i + j);
            before[j] = atomicAdd(&s.bins[bin / 2], bin % 2 ? 1u << 16 : 1u);
        }
#pragma unroll
        for (uint32_t j = 0; j < BATCH; j++) rank.set(i + j, before[j] >> (bins.get(i + j) % 2 * 16) & 0xffff);
    }
}

/// Turns the count of each bin into the number of keys in the bins before it. Returns the greatest count of the thread's bins.
template <class K, class V> __device__ __forceinline__ uint32_t scan_bins(BlockSort<K, V>& s) {
    const uint4 low = own_bins(s)[0], high = own_bins(s)[1];
    uint32_t word[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    uint32_t sum = 0, max_count = 0;
#pragma unroll
    for (uint32_t i = 0; i < 8; i++) {
        const uint32_t a = word[i] & 0xffff, b = word[i] >> 16;
        max_count = max(max_count, max(a, b));
        word[i] = sum | (sum + a) << 16;
        sum += a + b;
    }
    uint32_t total;
    const uint32_t before = scan(sum, s.warps, total);
#pragma unroll
    for (uint32_t i = 0; i < 8; i++) word[i] += before | before << 16;
    own_bins(s)[0] = make_uint4(word[0], word[1], word[2], word[3]);
    own_bins(s)[1] = make_uint4(word[4], word[5], word[6], word[7]);
    return max_count;
}

/// The slot of a bin's first key, once the bins have been scanned.
template <class K, class V> __device__ __forceinline__ uint32_t begin_of(const BlockSort<K, V>& s, uint32_t bin) {
    return s.bins[bin / 2] >> (bin % 2 * 16) & 0xffff;
}

/// The slot of each of a thread's keys, when keys stand in the order of their bins: its bin's first, plus the number of keys of the
/// bin that come before it. `index` says where keys stood, with values.
template <class K, class V>
__device__ __forceinline__ void search_bins(const BlockSort<K, V>& s, const Binning<K>& bin_of, const K (&key)[ITEMS],
                                            const Packed16<ITEMS>& index, Packed16<ITEMS>& slot) {
    constexpr uint32_t SEARCHES = 2;
#pragma unroll
    for (uint32_t i = 0; i < ITEMS; i += SEARCHES) {
        uint32_t from[SEARCHES], of[SEARCHES], position[SEARCHES], longest = 0;
#pragma unroll
        for (uint32_t j = 0; j < SEARCHES; j++) {
            const uint32_t bin = min(bin_of(i + j, key[i + j]), BINS - 1);
            from[j] = position[j] = begin_of(s, bin);
            of[j] = max((bin + 1 < BINS ? begin_of(s, bin + 1) : bin_of.length) - from[j], 1u);
            longest = max(longest, of[j]);
        }
#pragma unroll 1
        for (uint32_t k = 0; k < longest; k++) {
#pragma unroll
            for (uint32_t j = 0; j < SEARCHES; j++) {
                const uint32_t other = from[j] + min(k, of[j] - 1);
                const K y = s.keys[other];
                bool before = y < key[i + j];
                if constexpr (HAS_VALUES<V>) {
                    before |= y == key[i + j] && s.index[other] < index.get(i + j);
                } else {
                    before |= y == key[i + j] && other < place_of(i + j);
                }
                position[j] += k < of[j] && before;
            }
        }
#pragma unroll
        for (uint32_t j = 0; j < SEARCHES; j++) slot.set(i + j, position[j]);
    }
}

/// Puts a thread's keys where their slots say.
template <class K, class V>
__device__ __forceinline__ void put_keys(BlockSort<K, V>& s, const K (&key)[ITEMS], const Packed16<ITEMS>& slot,
                                         uint32_t length) {
#pragma unroll
    for (uint32_t i = 0; i < ITEMS; i++) {
        if (place_of(i) < length) s.keys[slot.get(i)] = key[i];
    }
}

/// Sorts the `length` keys in s.keys, of which each thread has written those at place_of(i); with values, s.index then says
/// where each was. It ends with a barrier; there is to be one before `s` is used again.
///
/// Keys are counted into bins of equal width between the least and the greatest key; a key's slot is its bin's first plus
/// the number of smaller keys in the bin (Dobosiewicz, Sorting by distributive partitioning, 1978). Where keys crowd in few bins, a
/// network sorts them.
///
/// Between two steps keys stay in shared memory: there are not the registers to hold them.
template <class K, class V> __device__ void sort_block(BlockSort<K, V>& s, uint32_t length) {
    const Binning<K> bin_of = find_bins(s, length);
    Packed16<ITEMS> bins, rank;
    count_bins(s, bin_of, bins, rank);
    __syncthreads();
    const uint32_t max_count = scan_bins(s);
    // With a bin for each key, those of one bin are equal; values still need their order.
    const bool searches = bin_of.shift || HAS_VALUES<V>;
    if (__syncthreads_or(max_count > MAX_BIN && searches)) {
        if constexpr (HAS_VALUES<V>) {
            for (uint32_t at = threadIdx.x; at < length; at += THREADS) s.index[at] = uint16_t(at);
        }
        sort_by_network(s, length);
        return;
    }
    // Loads before stores: the compiler does not exchange them.
    K key[ITEMS];
    Packed16<ITEMS> slot;
#pragma unroll
    for (uint32_t i = 0; i < ITEMS; i++) {
        key[i] = s.keys[place_of(i)];
        slot.set(i, begin_of(s, bins.get(i)) + rank.get(i));
    }
    __syncthreads();
    put_keys(s, key, slot, length);
    Packed16<ITEMS> index;
    if constexpr (HAS_VALUES<V>) {
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) {
            if (place_of(i) < length) s.index[slot.get(i)] = uint16_t(place_of(i));
        }
    }
    if (searches) {
        __syncthreads();
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) {
            key[i] = s.keys[place_of(i)];
            if constexpr (HAS_VALUES<V>) index.set(i, s.index[place_of(i)]);
        }
        search_bins(s, bin_of, key, index, slot);
        __syncthreads();
        put_keys(s, key, slot, length);
        if constexpr (HAS_VALUES<V>) {
#pragma unroll
            for (uint32_t i = 0; i < ITEMS; i++) {
                if (place_of(i) < length) s.index[slot.get(i)] = uint16_t(index.get(i));
            }
        }
    }
    __syncthreads();
}

}  // namespace sort
}  // namespace tandem
