#pragma once
// What sorting by merging needs beside a sort of each lane's keys: where to cut sorted runs, and a merge of two.
#include "common.cuh"

namespace tandem {
namespace sort {

/// Two sorted runs and where to put all of them in order; of equal keys those of the first run come first.
template <class K, class V> struct Merge {
    const K* keys[2];
    const V* values[2];
    uint64_t length[2];
    K* out;
    V* out_values;
    K flip;
};

/// How many elements of run 0 are among the first `rank` of two runs (merge path: Green, McColl, Bader 2012).
template <class K, class At, class Bt>
__device__ uint64_t merge_path(At a, uint64_t a_length, Bt b, uint64_t b_length, uint64_t rank) {
    uint64_t low = rank > b_length ? rank - b_length : 0, high = min(rank, a_length);
    while (low < high) {
        const uint64_t middle = (low + high) / 2;
        // a[middle] is among them unless b's last one that would be is smaller.
        if (b(rank - 1 - middle) < a(middle)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

/// A block merges TILE elements, a thread ITEMS of them.
template <class K, class V> __global__ void __launch_bounds__(THREADS) merge_kernel(const Merge<K, V> m) {
    extern __shared__ __align__(16) unsigned char shared[];
    K* const keys = reinterpret_cast<K*>(shared);
    __shared__ uint64_t begin[2];
    const uint64_t all = m.length[0] + m.length[1], first = uint64_t(blockIdx.x) * TILE;
    const uint32_t length = uint32_t(min(uint64_t(TILE), all - first));
    const auto at = [&](uint32_t run) { return [&m, run](uint64_t i) { return K(m.keys[run][i] ^ m.flip); }; };
    if (threadIdx.x < 2) {
        begin[threadIdx.x] = merge_path<K>(at(0), m.length[0], at(1), m.length[1], first + threadIdx.x * length);
    }
    __syncthreads();
    const uint64_t a_first = begin[0], b_first = first - a_first;
    const uint32_t a_length = uint32_t(begin[1] - a_first), b_length = length - a_length;
    for (uint32_t i = threadIdx.x; i < length; i += THREADS) {
        keys[i] = (i < a_length ? m.keys[0][a_first + i] : m.keys[1][b_first + i - a_length]) ^ m.flip;
    }
    __syncthreads();
    const uint32_t rank = min(threadIdx.x * ITEMS, length);
    const auto a_at = [&](uint64_t i) { return keys[i]; };
    const auto b_at = [&](uint64_t i) { return keys[a_length + i]; };
    uint32_t a = uint32_t(merge_path<K>(a_at, a_length, b_at, b_length, rank)), b = rank - a;
    K key[ITEMS];
    Packed16<ITEMS> from;
#pragma unroll
    for (uint32_t i = 0; i < ITEMS; i++) {
        const bool first_run = a < a_length && (b >= b_length || keys[a] <= keys[a_length + b]);
        const uint32_t slot = min(first_run ? a++ : a_length + b++, length - 1);
        key[i] = keys[slot];
        from.set(i, slot);
    }
    __syncthreads();
#pragma unroll
    for (uint32_t i = 0; i < ITEMS; i++) {
        if (rank + i < length) keys[rank + i] = key[i];
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < length; i += THREADS) m.out[first + i] = keys[i] ^ m.flip;
    if constexpr (HAS_VALUES<V>) {
        V* const values = reinterpret_cast<V*>(shared);
        __syncthreads();
#pragma unroll
        for (uint32_t i = 0; i < ITEMS; i++) {
            const uint32_t slot = from.get(i);
            if (rank + i < length) {
                values[rank + i] =
                    slot < a_length ? m.values[0][a_first + slot] : m.values[1][b_first + slot - a_length];
            }
        }
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < length; i += THREADS) m.out_values[first + i] = values[i];
    }
}

/// Sorted runs on several lanes, and ranks among all their elements.
template <class K> struct Cuts {
    uint32_t runs;
    const K* keys[MAX_LANES];
    uint64_t length[MAX_LANES];
    uint64_t rank[MAX_LANES + 1];
    /// Rows of MAX_LANES: of each run how many elements are among the first `rank`; of equal keys those of earlier runs.
    uint64_t* cuts;
    K flip;
};

/// The first place from which on the run's keys are not below `x`.
template <class K> __device__ uint64_t lower_bound(const Cuts<K>& c, uint32_t run, K x) {
    uint64_t low = 0, high = c.length[run];
    while (low < high) {
        const uint64_t middle = (low + high) / 2;
        if (K(c.keys[run][middle] ^ c.flip) < x) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/// A block for each rank (multisequence selection): it finds the greatest key that at most `rank` elements are below, 5 bits at a time: thread
/// (run, candidate) counts what its run has below the candidate.
template <class K> __global__ void __launch_bounds__(32 * MAX_LANES) cuts_kernel(const Cuts<K> c) {
    constexpr uint32_t STEP = 5;
    __shared__ uint64_t below[MAX_LANES][32];
    const uint32_t candidate = threadIdx.x % 32, run = threadIdx.x / 32;
    const uint64_t rank = c.rank[blockIdx.x];
    K at = 0;
    for (int32_t left = 8 * sizeof(K); left > 0; left -= STEP) {
        const uint32_t shift = left > int32_t(STEP) ? left - STEP : 0;
        const uint32_t candidates = left > int32_t(STEP) ? 32 : 1u << left;
        const K x = K(at | K(candidate) << shift);
        below[run][candidate] = run < c.runs && candidate < candidates ? lower_bound(c, run, x) : 0;
        __syncthreads();
        uint64_t sum = 0;
        for (uint32_t r = 0; r < c.runs; r++) sum += below[r][candidate];
        // More and more keys are below greater candidates; nothing is below the first.
        const uint32_t fits = __popc(__ballot_sync(~0u, candidate < candidates && sum <= rank));
        at = K(at | K(max(fits, 1u) - 1) << shift);
        __syncthreads();
    }
    if (threadIdx.x) return;
    uint64_t sum = 0, cut[MAX_LANES];
    for (uint32_t r = 0; r < c.runs; r++) sum += cut[r] = lower_bound(c, r, at);
    for (uint32_t r = 0; r < c.runs; r++) {
        const uint64_t end = at == K(~K(0)) ? c.length[r] : lower_bound(c, r, K(at + 1));
        const uint64_t take = min(end - cut[r], rank - sum);
        c.cuts[uint64_t(blockIdx.x) * MAX_LANES + r] = cut[r] + take;
        sum += take;
    }
}

}  // namespace sort
}  // namespace tandem
