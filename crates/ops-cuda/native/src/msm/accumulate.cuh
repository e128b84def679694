#pragma once
// Entries to buckets: a segmented sum in which every thread adds consecutive entries, as many as its neighbours,
// however the scalars are distributed. A bucket that lies inside one thread's stretch is stored; the first and the last
// bucket of a stretch may go on in its neighbours and leave as partial sums, two a thread and in order of bucket, which
// combine_partials adds up block by block until all buckets are whole.
#include "common.cuh"
#include "running_sum.cuh"

namespace tandem {
namespace msm {

/// Entries that are worth a thread.
constexpr uint32_t MIN_STRETCH = 4;

/// The entries of one of `threads` threads.
struct Stretch {
    uint32_t begin, end, length;

    __device__ __forceinline__ Stretch(uint32_t total, uint32_t threads, uint32_t thread) {
        length = max(uint32_t((uint64_t(total) + threads - 1) / threads), MIN_STRETCH);
        const uint64_t from = uint64_t(thread) * length;
        begin = uint32_t(from < total ? from : total);
        end = uint32_t(from + length < total ? from + length : total);
    }
};

/// How a thread keeps its sum, in groups of how many; how many groups the block of a multiprocessor has, here and in rounds, which
/// registers and shared memory must allow. How many of 256 entries are added up one by one while the first round of the others goes
/// forward, and how many groups do that: products beside reads at random (docs/design/msm.md). How many numbers an addition backward keeps in
/// shared memory: with five, y waits in registers for a place.
template <int Groups, int RoundGroups, uint32_t Single, int SingleGroups, uint32_t Slots,
          class RunningSum> struct Tuning {
    static constexpr int THREADS = RunningSum::THREADS, GROUPS = Groups, ROUND_GROUPS = RoundGroups,
                         SINGLE_GROUPS = SingleGroups;
    static constexpr uint32_t SINGLE = Single, SLOTS = Slots;
    using Sum = RunningSum;
};
template <class F> struct AccumulateTuning;
template <> struct AccumulateTuning<Fp<Bn254Fp>> : Tuning<4, 8, 28, 2, 5, RegisterSum<Fp<Bn254Fp>, 128>> {};
template <> struct AccumulateTuning<Called<Fp<Bls12381Fp>>>
    : Tuning<5, 5, 0, 0, 6, SlotSum<Fp<Bls12381Fp>, 128, true, true>> {};
template <> struct AccumulateTuning<Called<Fp2<Bn254Fp>>>
    : Tuning<4, 4, 0, 0, 5, SlotSum<Fp2<Bn254Fp>, 128, true, false>> {};
template <> struct AccumulateTuning<Called<Fp2<Bls12381Fp>>>
    : Tuning<3, 3, 0, 0, 6, SlotSum<Fp2<Bls12381Fp>, 128, false, false>> {};

/// A point to be added; null is infinity.
template <class Field> struct Operand {
    const Field *x, *y;
    bool negative;
};

/// A row of the table and the sign of its point, or a slot.
struct RowRef {
    uint32_t row_and_sign;

    static constexpr uint32_t NONE = 0xffffffffu;  // no row: `valid` allows less than 2^31 of them
    __device__ __forceinline__ bool none() const { return row_and_sign == NONE; }
    __device__ __forceinline__ bool negative() const { return row_and_sign & 1; }
    __device__ __forceinline__ uint32_t row() const { return row_and_sign >> 1; }
};

/// What an entry picks; nothing if its point is not in the set.
__device__ __forceinline__ RowRef pick_row(const tandem_msm_sum_args& a, uint32_t entry, bool there = true) {
    const uint64_t index =
        uint64_t(entry & ((1u << a.shape.index_bits) - 1)) - a.first;  // wraps to a large number below `first`
    const uint32_t level = (entry & ~ENTRY_NEGATIVE) >> a.shape.index_bits;
    if (!there || index >= a.points) return {RowRef::NONE};
    return {(level * uint32_t(a.points) + uint32_t(index)) << 1 | entry >> 31};
}

/// Where an entry's point is; null if it is not in the set.
template <class Field>
__device__ __forceinline__ Operand<Field> operand(const tandem_msm_sum_args& a, uint32_t entry) {
    const RowRef p = pick_row(a, entry);
    if (p.none()) return {nullptr, nullptr, false};
    const Affine<Field>* at = reinterpret_cast<const Affine<Field>*>(a.table) + p.row();
    return {&at->x, &at->y, p.negative()};
}

/// Entries of a chunk: those from `begin` to `middle` are added up one by one, those from there to `end` in rounds.
struct Chunk {
    static constexpr uint32_t ALL = 256;
    uint32_t begin, middle, end;

    /// Chunk `number` of `size` entries; `single` of ALL go one by one.
    __device__ __forceinline__ Chunk(uint32_t total, uint32_t size, uint32_t number, uint32_t single) {
        const uint64_t from = uint64_t(number) * size;
        begin = from < total ? uint32_t(from) : total;
        end = total - begin < size ? total : begin + size;
        middle = begin + uint32_t(uint64_t(end - begin) * single / ALL);
    }
};

/// The last bucket at or after `from` that begins at or before entry `i`, which it therefore holds.
__device__ __forceinline__ uint32_t find_bucket(const uint32_t* offsets, uint32_t buckets, uint32_t from, uint32_t i) {
    if (offsets[from + 1] > i) return from;
    uint32_t lo = from, hi = buckets;
    while (hi - lo > 1) {
        uint32_t mid = lo + (hi - lo) / 2;
        (offsets[mid] <= i ? lo : hi) = mid;
    }
    return lo;
}

/// What is added up: entries of a chunk, one by one.
template <class Field> struct EntrySource {
    tandem_msm_sum_args a;
    uint32_t buckets, size, number, single;

    __device__ __forceinline__ const uint32_t* offsets() const { return a.offsets; }
    __device__ __forceinline__ uint32_t first_bucket() const { return 0; }
    __device__ __forceinline__ uint32_t end_bucket() const { return buckets; }
    __device__ __forceinline__ Chunk chunk() const { return Chunk(a.offsets[buckets], size, number, single); }
    /// From where to where.
    __device__ __forceinline__ uint2 range() const { return make_uint2(chunk().begin, chunk().middle); }
    /// Of a thread that has nothing to add: after all others, or in order of bucket before the rest of the chunk.
    __device__ __forceinline__ uint32_t idle_key() const {
        const Chunk c = chunk();
        if (c.middle == c.end) return NO_BUCKET;
        return find_bucket(a.offsets, buckets, 0, c.middle > c.begin ? c.middle - 1 : c.begin);
    }
    __device__ __forceinline__ uint32_t name(uint32_t i) const { return a.entries[i]; }
    __device__ __forceinline__ Operand<Field> point(uint32_t name) const { return operand<Field>(a, name); }
};

/// Partial sums that a block of combine_partials takes: few, so that several blocks fit a multiprocessor's registers.
constexpr int COMBINE = 128;
/// Threads of a block that keeps one XYZZ point a thread in shared memory: 32 to 48 KiB.
template <class F> constexpr int BLOCK_OF_POINTS = sizeof(Xyzz<F>) <= 192 ? 256 : 128;

template <class F, class Source>
__global__ void __launch_bounds__(AccumulateTuning<F>::THREADS* AccumulateTuning<F>::GROUPS, 1)
    accumulate(Source source, Xyzz<F>* bucket, uint32_t* partial_key, Xyzz<F>* partial) {
    let_next_start();
    const uint32_t t = blockIdx.x * blockDim.x + threadIdx.x, end_bucket = source.end_bucket();
    const uint32_t* offsets = source.offsets();
    const uint2 range = source.range();
    const Stretch stretch(range.y - range.x, gridDim.x * blockDim.x, t);
    const uint32_t end = range.x + stretch.end;
    uint32_t i = range.x + stretch.begin;
    if (i == end) {
        for (uint32_t k = 0; k < 2; k++) {
            partial_key[2 * t + k] = source.idle_key();
            store16(&partial[2 * t + k], Xyzz<F>::infinity());
        }
        return;
    }
    uint32_t b = find_bucket(offsets, end_bucket, source.first_bucket(), i);
    uint32_t stop = min(offsets[b + 1], end);
    uint32_t next = source.name(i);
    bool head = true;
    extern __shared__ uint4 point_memory[];
    using RunningSum = typename AccumulateTuning<F>::Sum;
    RunningSum sum(point_memory);
    for (uint32_t k = 0; k < stretch.length; k++) {
        // Lanes that stored a bucket must not run apart from the others for the rest of the loop.
        __syncwarp();
        if (i >= end) continue;
        const auto p = source.point(next);
        if (i + 1 < end) next = source.name(i + 1);
        if (p.x) sum.add(p.x, p.y, p.negative);
        if (++i == stop) {
            // The end of a bucket, or of the stretch.
            const bool tail = i == end && !head;
            Xyzz<F>* to = head ? &partial[2 * t] : tail ? &partial[2 * t + 1] : &bucket[b];
            store16(reinterpret_cast<Xyzz<typename RunningSum::Field>*>(to), sum.take());
            if (head) partial_key[2 * t] = b;
            if (tail) partial_key[2 * t + 1] = b;
            if (i < end) {
                head = false;
                b = find_bucket(offsets, end_bucket, b + 1, i);
                stop = min(offsets[b + 1], end);
            }
        }
    }
    if (head) {
        partial_key[2 * t + 1] = b;
        store16(&partial[2 * t + 1], Xyzz<F>::infinity());
    }
}

/// Buckets without entries, which nothing else writes: infinity.
template <class F>
__global__ void __launch_bounds__(256) clear_empty(const uint32_t* offsets, uint32_t buckets, Xyzz<F>* bucket) {
    const uint32_t b = blockIdx.x * blockDim.x + threadIdx.x;
    if (b < buckets && offsets[b] == offsets[b + 1]) store16(&bucket[b], Xyzz<F>::infinity());
}

/// Adds neighbours of the same bucket: one block takes COMBINE partial sums in order of bucket and leaves two, its
/// first and its last; buckets between those are whole. With one block all of them are.
template <class F>
__global__ void __launch_bounds__(COMBINE) combine_partials(uint32_t count, const uint32_t* key_in, const Xyzz<F>* in,
                                                            uint32_t* key_out, Xyzz<F>* out, Xyzz<F>* bucket) {
    constexpr uint32_t SIZE = COMBINE;
    extern __shared__ uint4 point_memory[];
    Xyzz<F>* sum = reinterpret_cast<Xyzz<F>*>(point_memory);
    uint32_t* keys = reinterpret_cast<uint32_t*>(sum + SIZE);
    const uint32_t t = threadIdx.x, at = blockIdx.x * SIZE + t;
    const uint32_t key = at < count ? key_in[at] : NO_BUCKET;
    keys[t] = key;
    store16(&sum[t], at < count ? load16(&in[at]) : Xyzz<F>::infinity());
    __syncthreads();
    // Where the run of this key begins: a tree over each run, of which only the first slot keeps its sum.
    uint32_t lo = 0, hi = t;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (keys[mid] == key) hi = mid;
        else lo = mid + 1;
    }
    const uint32_t place = t - lo;
    for (uint32_t d = 1; d < SIZE; d *= 2) {
        const bool take = key != NO_BUCKET && place % (2 * d) == 0 && t + d < SIZE && keys[t + d] == key;
        // No run is longer than d if none is at its start.
        if (!__syncthreads_or(take)) break;
        for (uint32_t takers = __ballot_sync(0xffffffffu, take); takers;) {
            // Four lanes for each of the lowest eight.
            uint32_t rest = takers, mine = 0;
            for (uint32_t k = 0; k < 8; k++) {
                if (k == t % 32 / 4) mine = rest;
                rest &= rest - 1;
            }
            const uint32_t to = mine ? t / 32 * 32 + __ffs(int(mine)) - 1 : t;
            add_by_four(&sum[to], &sum[mine ? to + d : to], mine != 0);
            takers = rest;
        }
        __syncthreads();
    }
    if (place != 0) return;
    const bool first = t == 0, last = keys[SIZE - 1] == key;
    const Xyzz<F> own = load16(&sum[t]);
    if (gridDim.x == 1 || (!first && !last)) {
        if (key != NO_BUCKET) store16(&bucket[key], own);
        return;
    }
    const uint32_t to = 2 * blockIdx.x + (first ? 0 : 1);
    key_out[to] = key;
    store16(&out[to], own);
    if (first && last) {
        key_out[to + 1] = key;
        store16(&out[to + 1], Xyzz<F>::infinity());
    }
}

}  // namespace msm
}  // namespace tandem
