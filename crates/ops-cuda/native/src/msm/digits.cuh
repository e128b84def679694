#pragma once
// Scalars to entries ordered by bucket, in two counting sorts: tiles of scalars are split by the high bits of the
// bucket into partitions, then each partition is ordered by the low bits. Each sort counts once, before it knows where
// partitions or buckets begin, and keeps the counts for when it moves entries. Entries of one bucket come in any order,
// which changes no sum. Zero digits never become entries.
#include "common.cuh"
#include "scan.cuh"

namespace tandem {
namespace msm {

constexpr int DIGIT_THREADS = 512;
/// Words of shared memory that a block takes for its threads' scalars.
constexpr uint32_t SCALAR_WORDS = 9 * DIGIT_THREADS;
constexpr int ORDER_THREADS = 1024;
/// Entries of one thread of the second sort.
constexpr int ORDER_ITEMS = 16;
constexpr uint32_t ORDER_CHUNK = ORDER_THREADS * ORDER_ITEMS;
/// Shared memory that a tile's entries may take: two blocks a multiprocessor.
constexpr uint32_t TILE_BYTES = 84 * 1024;
static_assert(TILE_BYTES / sizeof(uint2) < 65536 && ORDER_CHUNK < 65536, "counts are kept in 16 bits");

/// Sizes that follow from the shape.
struct DigitsLayout {
    uint32_t buckets, low_bits, partitions, tile, tile_threads, tiles, max_entries, max_items;

    explicit DigitsLayout(const tandem_msm_shape& s) {
        buckets = bucket_count(s);
        uint32_t bits = 0;
        while ((uint64_t(1) << bits) < buckets) bits++;
        // Up to 2^10 partitions, so that a tile has runs of a dozen entries for each.
        low_bits = bits <= 10 ? bits : bits <= 20 ? 10 : bits - 10;
        partitions = div_up(buckets, 1u << low_bits);
        tile = uint32_t(TILE_BYTES / sizeof(uint2)) / s.windows / 32 * 32;
        if (tile > 2 * DIGIT_THREADS) tile = 2 * DIGIT_THREADS;
        tile_threads = tile > DIGIT_THREADS ? (tile / 2 + 31) / 32 * 32 : tile;
        tiles = div_up(s.scalars, tile);
        max_entries = uint32_t(s.scalars * s.windows);
        max_items = div_up(max_entries, ORDER_CHUNK) + partitions;
    }
    size_t count_shared() const { return (SCALAR_WORDS + 2 * partitions) * sizeof(uint32_t); }
    size_t tile_shared(const tandem_msm_shape& s) const {
        return (SCALAR_WORDS + 2 * partitions) * sizeof(uint32_t) + size_t(tile) * s.windows * sizeof(uint2);
    }
    size_t counters_shared() const { return sizeof(uint32_t) << low_bits; }
    size_t order_shared() const { return counters_shared() + ORDER_CHUNK * (sizeof(uint32_t) + sizeof(uint16_t)); }
};

struct DigitsScratch {
    uint16_t* keys;  // the low bits of the bucket
    // Each tile's entries by partition, and each work item's by bucket. One memory: the first sort is done with its counts
    // when the second begins to count. At most some two bytes an entry and two a bucket.
    uint16_t *tile_count, *item_count;
    uint32_t *values, *partition_count, *partition_start, *partition_cursor, *item_start, *bucket_count,
        *bucket_cursor;

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

/// Calls f(bucket, entry) for each non-zero digit of scalar i. `words` has room for SCALAR_WORDS; a thread uses its own.
template <class P, bool ODD, class Function>
__device__ __forceinline__ void for_each_digit(const tandem_msm_digits_args& a, uint32_t i, uint32_t* words, Function f) {
    static_assert(P::N == 8, "scalars have 256 bits");
    Fp<P> x = load16_readonly(reinterpret_cast<const Fp<P>*>(a.scalars) + i);
    if (a.montgomery) x = x.to_canonical();
    // Of x and r - x the smaller: one bit less. 0 stays.
    constexpr Limbs<8> r = P::modulus();
    Fp<P> other, diff;
    limbs::sub<8>(other.limb, r.limb, x.limb);
    const uint32_t negative = limbs::sub<8>(diff.limb, other.limb, x.limb);
    if (negative) x = other;
    // Bits at any place are read from two words at a place that is known only then: not from registers.
    uint32_t* own = words + threadIdx.x;
#pragma unroll
    for (int k = 0; k < 8; k++) own[k * DIGIT_THREADS] = x.limb[k];
    own[8 * DIGIT_THREADS] = 0;

    const uint32_t c = a.shape.window_bits, sets = a.shape.bucket_sets;
    const uint32_t half = 1u << (c - 1), mask = (half << 1) - 1, buckets = half >> ODD;
    const uint32_t by_sets = 65536 / sets + 1;  // place * by_sets >> 16 is place / sets, for places up to 2^8
    uint32_t carry = 0, bit = 0;
    for (uint32_t place = 0; place < a.shape.places;) {
        const uint32_t* at = own + bit / 32 * DIGIT_THREADS;
        const uint32_t word = __funnelshift_r(at[0], at[DIGIT_THREADS], bit);
        uint32_t digit;
        if (ODD) {
            // What is left of x, plus the carry, ends in so many zeros.
            const uint32_t zeros = uint32_t(__ffs(int((word ^ (0u - carry)) | 0x80000000u))) - 1;
            // Zeros and window where both lie in the word; else the zeros go first.
            place += zeros;
            bit += zeros;
            if (zeros + c > 32) continue;
            digit = (word >> zeros & mask) + carry;
        } else {
            digit = (word & mask) + carry;
        }
        carry = digit > half;
        const uint32_t sign = (negative ^ (0u - carry)) & ENTRY_NEGATIVE;
        if (carry) digit = (half << 1) - digit;
        const uint32_t level = sets == 1 ? place : place * by_sets >> 16, set = place - level * sets;
        if (digit) f(set * buckets + ((digit - 1) >> ODD), sign | level << a.shape.index_bits | i);
        bit += c;
        place += ODD ? c : 1;
    }
}

/// The same for all scalars of a tile, by one block.
template <class P, bool ODD, class Function>
__device__ __forceinline__ void for_each_digit_of_tile(const tandem_msm_digits_args& a, const DigitsLayout& l, uint32_t tile,
                                                       uint32_t* words, Function f) {
    const uint64_t begin = uint64_t(tile) * l.tile;
    const uint64_t end = begin + l.tile < a.shape.scalars ? begin + l.tile : a.shape.scalars;
    for (uint64_t i = begin + threadIdx.x; i < end; i += blockDim.x) for_each_digit<P, ODD>(a, uint32_t(i), words, f);
}

/// Exclusive sums of in[0..count] by one block; put(k, sum) takes them. Returns the sum of all.
template <class Get, class Put> __device__ __forceinline__ uint32_t block_scan(uint32_t count, Get get, Put put) {
    uint32_t before = 0;
    for (uint32_t base = 0; base < count; base += blockDim.x) {
        const uint32_t k = base + threadIdx.x;
        uint32_t total, sum = block_exclusive_sum(k < count ? get(k) : 0, &total);
        if (k < count) put(k, before + sum);
        before += total;
    }
    return before;
}

/// Blocks go over several tiles each, so that few add to the counts of all.
template <class P, bool ODD>
__global__ void __launch_bounds__(DIGIT_THREADS)
    count_partitions(tandem_msm_digits_args a, DigitsLayout l, DigitsScratch s) {
    extern __shared__ uint32_t words[];
    uint32_t* count = words + SCALAR_WORDS;  // of a tile
    uint32_t* sum = count + l.partitions;    // of the block's tiles
    for (uint32_t p = threadIdx.x; p < l.partitions; p += blockDim.x) count[p] = sum[p] = 0;
    for (uint32_t tile = blockIdx.x; tile < l.tiles; tile += gridDim.x) {
        __syncthreads();
        for_each_digit_of_tile<P, ODD>(a, l, tile, words, [&](uint32_t bucket, uint32_t) {
            atomicAdd(&count[bucket >> l.low_bits], 1);
        });
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
        l.partitions, [&](uint32_t p) { return (s.partition_count[p] + ORDER_CHUNK - 1) / ORDER_CHUNK; },
        [&](uint32_t p, uint32_t sum) { s.item_start[p] = sum; });
    if (threadIdx.x == 0) {
        s.partition_start[l.partitions] = offsets[l.buckets] = entries;
        s.item_start[l.partitions] = items;
    }
}

/// The first sort: a tile's entries are put in order of partition in shared memory and written out in runs.
template <class P, bool ODD>
__global__ void __launch_bounds__(DIGIT_THREADS)
    split_partitions(tandem_msm_digits_args a, DigitsLayout l, DigitsScratch s) {
    extern __shared__ uint32_t words[];
    uint32_t* cursor = words + SCALAR_WORDS;
    uint32_t* base = cursor + l.partitions;
    uint2* entry = reinterpret_cast<uint2*>(base + l.partitions);
    // The scan hands a thread the counts that it read here: no barrier.
    const uint16_t* count = s.tile_count + size_t(blockIdx.x) * l.partitions;
#pragma unroll 4
    for (uint32_t p = threadIdx.x; p < l.partitions; p += blockDim.x) cursor[p] = count[p];
    uint32_t total = block_scan(
        l.partitions, [&](uint32_t p) { return cursor[p]; },
        [&](uint32_t p, uint32_t sum) {
            base[p] = cursor[p] ? atomicAdd(&s.partition_cursor[p], cursor[p]) - sum : 0;
            cursor[p] = sum;
        });
    __syncthreads();
    for_each_digit_of_tile<P, ODD>(a, l, blockIdx.x, words, [&](uint32_t bucket, uint32_t value) {
        entry[atomicAdd(&cursor[bucket >> l.low_bits], 1)] = make_uint2(bucket, value);
    });
    __syncthreads();
    for (uint32_t at = threadIdx.x; at < total; at += blockDim.x) {
        const uint2 e = entry[at];
        const uint32_t to = base[e.x >> l.low_bits] + at;
        s.keys[to] = uint16_t(e.x & ((1u << l.low_bits) - 1));
        s.values[to] = e.y;
    }
}

/// A stretch of up to ORDER_CHUNK entries of one partition.
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
        begin = s.partition_start[lo] + (item - s.item_start[lo]) * ORDER_CHUNK;
        end = min(begin + ORDER_CHUNK, s.partition_start[lo + 1]);
        return true;
    }
};

static __global__ void __launch_bounds__(DIGIT_THREADS) count_buckets(DigitsLayout l, DigitsScratch s) {
    extern __shared__ uint32_t count[];
    WorkItem item;
    if (!item.find(l, s, blockIdx.x)) return;
    const uint32_t mask = (1u << l.low_bits) - 1;
    for (uint32_t b = threadIdx.x; b <= mask; b += blockDim.x) count[b] = 0;
    __syncthreads();
#pragma unroll 4
    for (uint32_t at = item.begin + threadIdx.x; at < item.end; at += blockDim.x) atomicAdd(&count[s.keys[at]], 1);
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
    uint16_t* key = reinterpret_cast<uint16_t*>(value + ORDER_CHUNK);
    WorkItem item;
    if (!item.find(l, s, blockIdx.x)) return;
    const uint32_t counters = 1u << l.low_bits, first = item.partition << l.low_bits;
    // The scan hands a thread the counts that it read here: no barrier.
    const uint16_t* counted = s.item_count + (size_t(blockIdx.x) << l.low_bits);
#pragma unroll 4
    for (uint32_t b = threadIdx.x; b < counters; b += ORDER_THREADS) count[b] = counted[b];
    block_scan(counters, [&](uint32_t b) { return count[b]; }, [&](uint32_t b, uint32_t sum) { count[b] = sum; });
    __syncthreads();
#pragma unroll 4
    for (uint32_t at = item.begin + threadIdx.x; at < item.end; at += ORDER_THREADS) {
        const uint32_t low = s.keys[at], entry = s.values[at], to = atomicAdd(&count[low], 1);
        value[to] = entry;
        key[to] = uint16_t(low);
    }
    __syncthreads();
    // Each counter, which is now where its run ends, becomes what takes a place in the stretch to one among all entries.
    // From the last one down, since the one below says where a run begins.
    for (uint32_t base = (counters - 1) / ORDER_THREADS * ORDER_THREADS;; base -= ORDER_THREADS) {
        const uint32_t b = base + threadIdx.x;
        uint32_t begin = 0, end = 0;
        if (b < counters) {
            begin = b ? count[b - 1] : 0;
            end = count[b];
        }
        __syncthreads();
        if (end > begin) count[b] = atomicAdd(&s.bucket_cursor[first + b], end - begin) - begin;
        __syncthreads();
        if (base == 0) break;
    }
    const uint32_t size = item.end - item.begin;
#pragma unroll 4
    for (uint32_t at = threadIdx.x; at < size; at += ORDER_THREADS) entries[count[key[at]] + at] = value[at];
}

inline int32_t digits_scratch(const tandem_msm_digits_args* args, size_t* bytes) {
    if (!args || !bytes || !valid(args->shape)) return TANDEM_INVALID;
    Arena arena(nullptr);
    DigitsScratch(arena, DigitsLayout(args->shape));
    *bytes = arena.used();
    return 0;
}

template <class P, bool ODD>
int32_t digits(const tandem_msm_digits_args* args, void* scratch, tandem_stream stream) {
    const DigitsLayout l(args->shape);
    Arena arena(scratch);
    const DigitsScratch s(arena, l);

    TANDEM_TRY(cudaMemsetAsync(s.partition_count, 0, l.partitions * sizeof(uint32_t), stream));
    TANDEM_TRY(cudaMemsetAsync(s.bucket_count, 0, l.buckets * sizeof(uint32_t), stream));
    const auto count = count_partitions<P, ODD>;
    const auto split = split_partitions<P, ODD>;
    uint32_t threads = 0;
    TANDEM_TRY(wave(count, l.tile_threads, l.count_shared(), &threads));
    uint32_t blocks = threads / l.tile_threads;
    if (blocks > l.tiles) blocks = l.tiles;
    count<<<blocks, l.tile_threads, l.count_shared(), stream>>>(*args, l, s);
    scan_partitions<<<1, 1024, 0, stream>>>(l, s, args->offsets);
    TANDEM_TRY(allow_shared(split, l.tile_shared(args->shape)));
    split<<<l.tiles, l.tile_threads, l.tile_shared(args->shape), stream>>>(*args, l, s);
    TANDEM_TRY(allow_shared(count_buckets, l.counters_shared()));
    count_buckets<<<l.max_items, DIGIT_THREADS, l.counters_shared(), stream>>>(l, s);
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
    return odd_digits(args->shape) ? digits<P, true>(args, scratch, stream) : digits<P, false>(args, scratch, stream);
}

}  // namespace msm
}  // namespace tandem
