#pragma once
// Scalars to entries ordered by bucket, in two counting sorts: tiles of scalars are split by the high bits of the
// bucket into partitions, then each partition is ordered by the low bits. Each sort counts once, before it knows where
// partitions or buckets begin, and keeps the counts for when it moves entries. Entries of one bucket come in any order,
// which changes no sum. Zero digits never become entries.
#include "common.cuh"
#include "scan.cuh"

namespace tandem {
namespace msm {

/// Threads of a tile at most, of a block that counts what is sorted already, and of one that orders it.
constexpr int TILE_THREADS = 1024, COUNT_THREADS = 512, ORDER_THREADS = 1024;
/// Of what is read and moved, a thread has so many on their way at once: each step is made for all of them before the next.
constexpr int BATCH = 4;
/// Words of shared memory for a thread's scalar.
constexpr uint32_t SCALAR_WORDS = 9;
/// Tiles of each multiprocessor at least, where there are enough scalars.
constexpr uint32_t TILES_EACH = 4;
/// Bytes of an entry in shared memory: its bits, and 16 more.
constexpr uint32_t MOVED_BYTES = sizeof(uint32_t) + sizeof(uint16_t);
/// Scalars of a tile at most: their numbers have 15 bits.
constexpr uint32_t MOST_OF_TILE = 1u << 15;
/// Shared memory of a block besides: what its functions declare, and a KiB that the device takes.
constexpr uint32_t STATIC_SHARED = 2048;

/// What a device has: multiprocessors, and shared memory that a block may take.
struct Device {
    uint32_t multiprocessors, shared;

    static cudaError_t current(Device* to) {
        int device = 0, count = 0, shared = 0;
        cudaError_t status = cudaGetDevice(&device);
        if (status == cudaSuccess) status = cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
        if (status == cudaSuccess)
            status = cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
        *to = {uint32_t(count), uint32_t(shared)};
        return status;
    }
};

/// Sizes that follow from the shape and the device.
struct DigitsLayout {
    uint32_t buckets, low_bits, partitions, tile, tile_threads, tiles, chunk, max_entries, max_items;
    uint32_t by_sets;  // place * by_sets >> 16 is place / bucket_sets, for places up to 2^8

    DigitsLayout(const tandem_msm_shape& s, const Device& device) {
        buckets = bucket_count(s);
        uint32_t bits = 0;
        while ((uint64_t(1) << bits) < buckets) bits++;
        // Up to 2^10 partitions, so that a tile has runs of some thirty entries for each.
        low_bits = bits <= 10 ? bits : bits <= 20 ? 10 : bits - 10;
        partitions = div_up(buckets, 1u << low_bits);
        // What is written goes to the L2 cache in pieces of a run within 128 bytes, and as many of these are done in a time whether they are
        // long or short: a tile has as many entries as there is room for (docs/design/msm.md).
        const uint32_t shared = device.shared - STATIC_SHARED;
        const uint32_t room = (shared - TILE_THREADS * SCALAR_WORDS * 4 - 8 * partitions) / MOVED_BYTES / s.windows;
        const uint32_t share = div_up(s.scalars, TILES_EACH * device.multiprocessors);
        tile = room < share ? room : share;
        if (tile > MOST_OF_TILE) tile = MOST_OF_TILE;
        tile = tile < 32 ? 32 : tile / 32 * 32;
        tile_threads = div_up(div_up(tile, div_up(tile, TILE_THREADS)), 32) * 32;
        tiles = div_up(s.scalars, tile);
        // Two blocks a multiprocessor, but one where runs would be of four entries.
        const uint32_t of_block = low_bits < 12 ? device.shared / 2 - STATIC_SHARED : shared;
        chunk =
            (of_block - uint32_t(counters_shared())) / MOVED_BYTES / (BATCH * ORDER_THREADS) * BATCH * ORDER_THREADS;
        max_entries = uint32_t(s.scalars * s.windows);
        max_items = div_up(max_entries, chunk) + partitions;
        by_sets = 65536 / s.bucket_sets + 1;
    }
    size_t count_shared() const { return (tile_threads * SCALAR_WORDS + 2 * partitions) * sizeof(uint32_t); }
    size_t tile_shared(const tandem_msm_shape& s) const {
        return count_shared() + size_t(tile) * s.windows * MOVED_BYTES;
    }
    size_t counters_shared() const { return sizeof(uint32_t) << low_bits; }
    size_t order_shared() const { return counters_shared() + chunk * MOVED_BYTES; }
};

struct DigitsScratch {
    uint16_t* keys;  // the low bits of the bucket
    // Each tile's entries by partition, and each work item's by bucket. One memory: the first sort is done with its counts
    // when the second begins to count. At most some two bytes an entry and two a bucket.
    uint16_t *tile_count, *item_count;
    uint32_t *values, *partition_count, *partition_start, *partition_cursor, *item_start, *bucket_count, *bucket_cursor;

    DigitsScratch(Arena& arena, const DigitsLayout& l) {
        keys = arena.take<uint16_t>(l.max_entries);
        const size_t of_tiles = size_t(l.tiles) * l.partitions, of_items = size_t(l.max_items) << l.low_bits;
        tile_count = item_count = arena.take<uint16_t>(of_tiles > of_items ? of_tiles : of_items);
        values = arena.take<uint32_t>(l.max_entries);
        partition_count = arena.take<uint32_t>(l.partitions);
        partition_start = arena.take<uint32_t>(l.partitions + 1);
        partition_cursor = arena.take<uint32_t>(l.partitions);
        item_start = arena.take<uint32_t>(l.partitions + 1);
        bucket_count = arena.take<uint32_t>(l.buckets);
        bucket_cursor = arena.take<uint32_t>(l.buckets);
    }
};

/// A digit: its bucket, below that 8 bits of level; NONE if it is 0, or if there was none left.
struct Digit {
    uint32_t bucket_and_level;
    bool negative;

    static constexpr uint32_t NONE = 0xffffffffu;  // level 255 is that of one bucket set, of up to 2^23 buckets
    __device__ __forceinline__ bool none() const { return bucket_and_level == NONE; }
    __device__ __forceinline__ uint32_t bucket() const { return bucket_and_level >> 8; }
};

/// Where windows begin: one behind the other, which may have levels for powers of two, or anywhere.
enum class Windows { FOLLOWING, WITH_POWERS, ANYWHERE };

/// The digits of a scalar, from the lowest on.
template <class P, Windows W> class Digits {
    static constexpr bool ODD = W == Windows::ANYWHERE;

  public:
    /// Of scalar i. `words` has room for SCALAR_WORDS of each thread of the block.
    __device__ __forceinline__ Digits(const tandem_msm_digits_args& a, uint32_t i, uint32_t* words)
        : own_(words + threadIdx.x), stride_(blockDim.x) {
        static_assert(P::N == 8, "scalars have 256 bits");
        Fp<P> x = load16_readonly(reinterpret_cast<const Fp<P>*>(a.scalars) + i);
        if (a.montgomery) x = x.to_canonical();
        // Of x and r - x the smaller: one bit less. 0 stays.
        constexpr Limbs<8> r = P::modulus();
        Fp<P> other, diff;
        limbs::sub<8>(other.limb, r.limb, x.limb);
        negative_ = limbs::sub<8>(diff.limb, other.limb, x.limb) != 0;
        if (negative_) x = other;
        // Bits at any place are read from two words at a place that is known only then: not from registers.
#pragma unroll
        for (int k = 0; k < 8; k++) own_[k * stride_] = x.limb[k];
        own_[8 * stride_] = 0;
        if (!ODD && a.shape.carry_free_windows) look_ahead(a.shape);
    }
    /// Whether there may be more.
    __device__ __forceinline__ bool more(const tandem_msm_shape& s) const { return place_ < s.window_positions; }

    /// Goes on by a window, or by some zeros. Without a branch, so that several are on their way at once.
    __device__ __forceinline__ Digit next(const tandem_msm_shape& s, uint32_t by_sets) {
        const uint32_t c = s.window_bits, half = 1u << (c - 1), mask = (half << 1) - 1;
        const bool is = more(s);
        uint32_t digit = bits_from(ODD ? place_ : place_ * c);
        bool window = is;
        if (ODD) {
            // What is left of x, plus the carry, ends in so many zeros.
            const uint32_t zeros = uint32_t(__ffs(int((digit ^ (0u - carry_)) | 0x80000000u))) - 1;
            place_ += zeros;
            // Zeros and window where both lie in the word; else the zeros go first.
            window = is && zeros + c <= 32;
            digit >>= zeros;
        }
        digit = (digit & mask) + carry_;
        bool above = digit > half;
        if (!ODD) {
            // Where that keeps the last place from a carry, an even digit does otherwise.
            const uint32_t below = s.window_positions - 2 - place_;
            if (below < s.carry_free_windows && carries(s, digit) == 3 && !(allowed_ >> (2 * below + above) & 1))
                above = !above;
        }
        if (above) digit = (half << 1) - digit;
        uint32_t level, bucket;
        if (W == Windows::WITH_POWERS) {
            // Of the odd part, or behind all of those.
            const uint32_t zeros = uint32_t(__ffs(int(digit | 0x80000000u))) - 1;
            const bool by_power = zeros < s.levels_per_window;
            level = place_ * s.levels_per_window + (by_power ? zeros : 0);
            bucket = by_power ? digit >> zeros >> 1 : half / 2 - 1 + (digit >> s.levels_per_window);
        } else {
            level = place_ * by_sets >> 16;
            bucket = ((place_ - level * s.bucket_sets) << (c - 1 - ODD)) + ((digit - 1) >> ODD);
            if (!ODD && s.carry_free_windows) {
                // Behind the levels of places below, of which these have two.
                const uint32_t first = s.window_positions - 1 - s.carry_free_windows, twice = digit > half;
                level += (place_ > first ? place_ - first : 0) + twice;
                bucket = (digit >> twice) - 1;
            }
        }
        if (window) {
            carry_ = above;
            place_ += ODD ? c : 1;
        }
        return {window && digit ? bucket << 8 | level : Digit::NONE, negative_ != above};
    }

  private:
    uint32_t* own_;
    uint32_t stride_, carry_ = 0, place_ = 0;
    uint32_t allowed_ =
        0;  // of the places below the last, from the uppermost on, two bits: which carries from it lead to none in the end
    bool negative_;

    /// 32 bits of the scalar.
    __device__ __forceinline__ uint32_t bits_from(uint32_t bit) const {
        bit = min(bit, 32 * SCALAR_WORDS - 33);
        const uint32_t* at = own_ + bit / 32 * stride_;
        return __funnelshift_r(at[0], at[stride_], bit);
    }
    /// Which carries a digit with its own carry may have at a place that is carry-free: bit 0 for none, bit 1 for one.
    __device__ __forceinline__ static uint32_t carries(const tandem_msm_shape& s, uint32_t digit) {
        const bool halves = !(digit & 1) && (W != Windows::WITH_POWERS || digit & ((1u << s.levels_per_window) - 1));
        return halves ? 3 : 1u << (digit > 1u << (s.window_bits - 1));
    }
    /// From the uppermost place down: which carries into it it can take.
    __device__ __forceinline__ void look_ahead(const tandem_msm_shape& s) {
        uint32_t allowed = 1;
        allowed_ = allowed;
        for (uint32_t below = 1; below < s.carry_free_windows; below++) {
            const uint32_t digit =
                bits_from((s.window_positions - 1 - below) * s.window_bits) & ((1u << s.window_bits) - 1);
            allowed = uint32_t((carries(s, digit) & allowed) != 0) | uint32_t((carries(s, digit + 1) & allowed) != 0)
                                                                         << 1;
            allowed_ |= allowed << 2 * below;
        }
    }
};

/// Numbers 0..count that are a thread's of a block: as many as its neighbours', one after the other.
struct ThreadRange {
    uint32_t begin, end;

    __device__ __forceinline__ explicit ThreadRange(uint32_t count) {
        const uint32_t each = (count + blockDim.x - 1) / blockDim.x;
        begin = min(threadIdx.x * each, count);
        end = min(begin + each, count);
    }
};

/// Exclusive sums of get(0..count) by one block; put(k, sum) takes them, from the thread whose own k is. Returns the sum of all.
template <class Get, class Put> __device__ __forceinline__ uint32_t block_scan(uint32_t count, Get get, Put put) {
    const ThreadRange own(count);
    uint32_t total, all = 0;
    for (uint32_t k = own.begin; k < own.end; k++) all += get(k);
    uint32_t sum = block_exclusive_sum(all, &total);
    for (uint32_t k = own.begin; k < own.end; k++) {
        const uint32_t value = get(k);
        put(k, sum);
        sum += value;
    }
    return total;
}

/// Blocks go over several tiles each, so that few add to the counts of all.
template <class P, Windows W>
__global__ void __launch_bounds__(TILE_THREADS, 2)
    count_partitions(tandem_msm_digits_args a, DigitsLayout l, DigitsScratch s) {
    extern __shared__ uint32_t count[];    // of a tile
    uint32_t* sum = count + l.partitions;  // of the block's tiles
    uint32_t* words = sum + l.partitions;
    for (uint32_t p = threadIdx.x; p < l.partitions; p += blockDim.x) count[p] = sum[p] = 0;
    for (uint32_t tile = blockIdx.x; tile < l.tiles; tile += gridDim.x) {
        __syncthreads();
        const uint64_t begin = uint64_t(tile) * l.tile;
        const uint64_t end = begin + l.tile < a.shape.scalars ? begin + l.tile : a.shape.scalars;
        for (uint64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
            Digits<P, W> digits(a, uint32_t(i), words);
            while (digits.more(a.shape)) {
                const Digit digit = digits.next(a.shape, l.by_sets);
                if (!digit.none()) atomicAdd(&count[digit.bucket() >> l.low_bits], 1);
            }
        }
        __syncthreads();
        uint16_t* to = s.tile_count + size_t(tile) * l.partitions;
        for (uint32_t p = threadIdx.x; p < l.partitions; p += blockDim.x) {
            const uint32_t c = count[p];
            to[p] = uint16_t(c);
            sum[p] += c;
            count[p] = 0;
        }
    }
    // A thread's own sums: no barrier.
    for (uint32_t p = threadIdx.x; p < l.partitions; p += blockDim.x)
        if (sum[p]) atomicAdd(&s.partition_count[p], sum[p]);
}

/// Where partitions, and the work items of the second sort, begin. One block.
static __global__ void __launch_bounds__(1024) scan_partitions(DigitsLayout l, DigitsScratch s, uint32_t* offsets) {
    uint32_t entries = block_scan(
        l.partitions, [&](uint32_t p) { return s.partition_count[p]; },
        [&](uint32_t p, uint32_t sum) { s.partition_start[p] = s.partition_cursor[p] = sum; });
    uint32_t items = block_scan(
        l.partitions, [&](uint32_t p) { return (s.partition_count[p] + l.chunk - 1) / l.chunk; },
        [&](uint32_t p, uint32_t sum) { s.item_start[p] = sum; });
    if (threadIdx.x == 0) {
        s.partition_start[l.partitions] = offsets[l.buckets] = entries;
        s.item_start[l.partitions] = items;
    }
}

/// The first sort: a tile's entries are put in order of partition in shared memory and written out in runs.
template <class P, Windows W>
__global__ void __launch_bounds__(TILE_THREADS, 1)
    split_partitions(tandem_msm_digits_args a, DigitsLayout l, DigitsScratch s) {
    extern __shared__ uint32_t cursor[];
    uint32_t* base = cursor + l.partitions;
    uint32_t* words = base + l.partitions;
    // Of an entry the bucket, below it 8 bits of level; the scalar's number in the tile, below it the sign.
    uint32_t* bucket_and_level = words + SCALAR_WORDS * blockDim.x;
    uint16_t* number_and_sign = reinterpret_cast<uint16_t*>(bucket_and_level + l.tile * a.shape.windows);
    const uint16_t* count = s.tile_count + size_t(blockIdx.x) * l.partitions;
    const uint32_t total = block_scan(
        l.partitions, [&](uint32_t p) { return count[p]; },
        [&](uint32_t p, uint32_t sum) {
            base[p] = count[p] ? atomicAdd(&s.partition_cursor[p], count[p]) - sum : 0;
            cursor[p] = sum;
        });
    __syncthreads();
    const uint32_t first = blockIdx.x * l.tile, scalars = min(l.tile, uint32_t(a.shape.scalars) - first);
    for (uint32_t i = threadIdx.x; i < scalars; i += blockDim.x) {
        Digits<P, W> digits(a, first + i, words);
        while (digits.more(a.shape)) {
            Digit digit[BATCH];
            uint32_t to[BATCH];
#pragma unroll
            for (int k = 0; k < BATCH; k++) digit[k] = digits.next(a.shape, l.by_sets);
#pragma unroll
            for (int k = 0; k < BATCH; k++)
                if (!digit[k].none()) to[k] = atomicAdd(&cursor[digit[k].bucket() >> l.low_bits], 1);
#pragma unroll
            for (int k = 0; k < BATCH; k++)
                if (!digit[k].none()) {
                    bucket_and_level[to[k]] = digit[k].bucket_and_level;
                    number_and_sign[to[k]] = uint16_t(i << 1 | digit[k].negative);
                }
        }
    }
    __syncthreads();
    for (uint32_t begin = threadIdx.x; begin < total; begin += BATCH * blockDim.x) {
        uint32_t at[BATCH], own[BATCH], value[BATCH], to[BATCH];
#pragma unroll
        for (int k = 0; k < BATCH; k++) {
            at[k] = begin + k * blockDim.x;
            const uint32_t within = min(at[k], total - 1);
            own[k] = bucket_and_level[within];
            value[k] = number_and_sign[within];
        }
#pragma unroll
        for (int k = 0; k < BATCH; k++) {
            to[k] = base[own[k] >> 8 >> l.low_bits] + at[k];
            value[k] = value[k] << 31 | (own[k] & 0xff) << a.shape.index_bits | (first + (value[k] >> 1));
        }
#pragma unroll
        for (int k = 0; k < BATCH; k++)
            if (at[k] < total) {
                s.keys[to[k]] = uint16_t(own[k] >> 8 & ((1u << l.low_bits) - 1));
                s.values[to[k]] = value[k];
            }
    }
}

/// A stretch of up to `chunk` entries of one partition.
struct WorkItem {
    uint32_t partition, begin, end;

    __device__ __forceinline__ bool find(const DigitsLayout& l, const DigitsScratch& s, uint32_t item) {
        if (item >= s.item_start[l.partitions]) return false;
        uint32_t lo = 0, hi = l.partitions;  // the last partition with item_start <= item
        while (hi - lo > 1) {
            uint32_t mid = (lo + hi) / 2;
            (s.item_start[mid] <= item ? lo : hi) = mid;
        }
        partition = lo;
        begin = s.partition_start[lo] + (item - s.item_start[lo]) * l.chunk;
        end = min(begin + l.chunk, s.partition_start[lo + 1]);
        return true;
    }
};

static __global__ void __launch_bounds__(COUNT_THREADS) count_buckets(DigitsLayout l, DigitsScratch s) {
    extern __shared__ uint32_t count[];
    WorkItem item;
    if (!item.find(l, s, blockIdx.x)) return;
    const uint32_t mask = (1u << l.low_bits) - 1;
    for (uint32_t b = threadIdx.x; b <= mask; b += blockDim.x) count[b] = 0;
    __syncthreads();
    for (uint32_t at = item.begin + threadIdx.x; at < item.end; at += 2 * BATCH * COUNT_THREADS) {
        uint16_t key[2 * BATCH];
#pragma unroll
        for (int k = 0; k < 2 * BATCH; k++)
            if (at + k * COUNT_THREADS < item.end) key[k] = s.keys[at + k * COUNT_THREADS];
#pragma unroll
        for (int k = 0; k < 2 * BATCH; k++)
            if (at + k * COUNT_THREADS < item.end) atomicAdd(&count[key[k]], 1);
    }
    __syncthreads();
    uint16_t* to = s.item_count + (size_t(blockIdx.x) << l.low_bits);
    for (uint32_t b = threadIdx.x; b <= mask; b += blockDim.x) {
        const uint32_t c = count[b];
        to[b] = uint16_t(c);
        if (c) atomicAdd(&s.bucket_count[(item.partition << l.low_bits) + b], c);
    }
}

/// Where buckets begin. One block a partition.
static __global__ void __launch_bounds__(256) scan_buckets(DigitsLayout l, DigitsScratch s, uint32_t* offsets) {
    const uint32_t first = blockIdx.x << l.low_bits;
    const uint32_t count = min(1u << l.low_bits, l.buckets - first), start = s.partition_start[blockIdx.x];
    block_scan(
        count, [&](uint32_t b) { return s.bucket_count[first + b]; },
        [&](uint32_t b, uint32_t sum) { offsets[first + b] = s.bucket_cursor[first + b] = start + sum; });
}

/// The second sort: a stretch is put in order in shared memory and written out in runs. Two blocks a multiprocessor: what
/// takes time is the way from one barrier to the next.
static __global__ void __launch_bounds__(ORDER_THREADS, 2)
    order_entries(DigitsLayout l, DigitsScratch s, uint32_t* entries) {
    extern __shared__ uint32_t count[];
    uint32_t* value = count + (1u << l.low_bits);
    uint16_t* key = reinterpret_cast<uint16_t*>(value + l.chunk);
    WorkItem item;
    if (!item.find(l, s, blockIdx.x)) return;
    const uint32_t counters = 1u << l.low_bits, first = item.partition << l.low_bits;
    const uint16_t* counted = s.item_count + (size_t(blockIdx.x) << l.low_bits);
    block_scan(counters, [&](uint32_t b) { return counted[b]; }, [&](uint32_t b, uint32_t sum) { count[b] = sum; });
    __syncthreads();
    for (uint32_t at = item.begin + threadIdx.x; at < item.end; at += BATCH * ORDER_THREADS) {
        uint32_t own_key[BATCH], own_value[BATCH], to[BATCH];
#pragma unroll
        for (int k = 0; k < BATCH; k++)
            if (at + k * ORDER_THREADS < item.end) {
                own_key[k] = s.keys[at + k * ORDER_THREADS];
                own_value[k] = s.values[at + k * ORDER_THREADS];
            }
#pragma unroll
        for (int k = 0; k < BATCH; k++)
            if (at + k * ORDER_THREADS < item.end) to[k] = atomicAdd(&count[own_key[k]], 1);
#pragma unroll
        for (int k = 0; k < BATCH; k++)
            if (at + k * ORDER_THREADS < item.end) {
                value[to[k]] = own_value[k];
                key[to[k]] = uint16_t(own_key[k]);
            }
    }
    __syncthreads();
    // Each counter, which is now where its run ends, becomes what takes a place in the stretch to one among all entries.
    // From the last ones down, since the one below says where a run begins.
    constexpr uint32_t STEP = BATCH * ORDER_THREADS;
    for (uint32_t base = (counters - 1) / STEP * STEP;; base -= STEP) {
        uint32_t begin[BATCH], end[BATCH];
#pragma unroll
        for (int k = 0; k < BATCH; k++) {
            const uint32_t b = base + threadIdx.x + k * ORDER_THREADS;
            begin[k] = b && b < counters ? count[b - 1] : 0;
            end[k] = b < counters ? count[b] : 0;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BATCH; k++) {
            const uint32_t b = base + threadIdx.x + k * ORDER_THREADS;
            if (end[k] > begin[k]) count[b] = atomicAdd(&s.bucket_cursor[first + b], end[k] - begin[k]) - begin[k];
        }
        __syncthreads();
        if (base == 0) break;
    }
    const uint32_t size = item.end - item.begin;
    for (uint32_t at = threadIdx.x; at < size; at += BATCH * ORDER_THREADS) {
        uint32_t own[BATCH], to[BATCH];
#pragma unroll
        for (int k = 0; k < BATCH; k++)
            if (at + k * ORDER_THREADS < size) {
                own[k] = value[at + k * ORDER_THREADS];
                to[k] = key[at + k * ORDER_THREADS];
            }
#pragma unroll
        for (int k = 0; k < BATCH; k++)
            if (at + k * ORDER_THREADS < size) to[k] = count[to[k]] + at + k * ORDER_THREADS;
#pragma unroll
        for (int k = 0; k < BATCH; k++)
            if (at + k * ORDER_THREADS < size) entries[to[k]] = own[k];
    }
}

inline int32_t digits_scratch(const tandem_msm_digits_args* args, size_t* bytes) {
    if (!args || !bytes || !valid(args->shape)) return TANDEM_INVALID;
    Device device;
    TANDEM_TRY(Device::current(&device));
    Arena arena(nullptr);
    DigitsScratch(arena, DigitsLayout(args->shape, device));
    *bytes = arena.used();
    return 0;
}

template <class P, Windows W>
int32_t digits(const tandem_msm_digits_args* args, void* scratch, tandem_stream stream) {
    Device device;
    TANDEM_TRY(Device::current(&device));
    const DigitsLayout l(args->shape, device);
    Arena arena(scratch);
    const DigitsScratch s(arena, l);

    TANDEM_TRY(cudaMemsetAsync(s.partition_count, 0, l.partitions * sizeof(uint32_t), stream));
    TANDEM_TRY(cudaMemsetAsync(s.bucket_count, 0, l.buckets * sizeof(uint32_t), stream));
    const auto count = count_partitions<P, W>;
    const auto split = split_partitions<P, W>;
    uint32_t threads = 0;
    TANDEM_TRY(wave(count, l.tile_threads, l.count_shared(), &threads));
    uint32_t blocks = threads / l.tile_threads;
    if (blocks > l.tiles) blocks = l.tiles;
    count<<<blocks, l.tile_threads, l.count_shared(), stream>>>(*args, l, s);
    scan_partitions<<<1, 1024, 0, stream>>>(l, s, args->offsets);
    TANDEM_TRY(allow_shared(split, l.tile_shared(args->shape)));
    split<<<l.tiles, l.tile_threads, l.tile_shared(args->shape), stream>>>(*args, l, s);
    TANDEM_TRY(allow_shared(count_buckets, l.counters_shared()));
    count_buckets<<<l.max_items, COUNT_THREADS, l.counters_shared(), stream>>>(l, s);
    scan_buckets<<<l.partitions, 256, 0, stream>>>(l, s, args->offsets);
    TANDEM_TRY(allow_shared(order_entries, l.order_shared()));
    order_entries<<<l.max_items, ORDER_THREADS, l.order_shared(), stream>>>(l, s, args->entries);
    return int32_t(cudaGetLastError());
}

template <class P>
int32_t digits(const tandem_msm_digits_args* args, void* scratch, size_t scratch_bytes, tandem_stream stream) {
    size_t needed = 0;
    if (int32_t status = digits_scratch(args, &needed)) return status;
    if (!scratch || scratch_bytes < needed) return TANDEM_SCRATCH_TOO_SMALL;
    if (odd_digits(args->shape)) return digits<P, Windows::ANYWHERE>(args, scratch, stream);
    return args->shape.levels_per_window > 1 ? digits<P, Windows::WITH_POWERS>(args, scratch, stream)
                                             : digits<P, Windows::FOLLOWING>(args, scratch, stream);
}

}  // namespace msm
}  // namespace tandem
