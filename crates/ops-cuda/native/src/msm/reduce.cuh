#pragma once
// Buckets to sums: sum of (k + 1) * B_k, or of (2k + 1) * B_k, over the 2^q buckets of each set.
//
// The buckets of a set are a matrix of 2^h rows and 2^l columns. Row sums R and column sums C cost two additions a
// bucket, in chunks of 2^m buckets a thread. Then sum of k * B_k = 2^l * (sum of i * R_i) + (sum of j * C_j), and each
// of these is the sum over bits b of 2^b * (sum of those whose index has bit b). So q + 1 points a set are left, with the
// powers of two as their weights: the sum of all buckets, and one for each bit of k. Two parts of the buckets go side by side.
#include "accumulate.cuh"

namespace tandem {
namespace msm {

/// How many of each there are.
struct ReduceCounts {
    uint32_t buckets = 0, chunks = 0, rows = 0, columns = 0, sums = 0;
};

/// One part of the buckets.
struct ReducePart {
    uint32_t sets, q, l, h, m;
    ReduceCounts before;

    /// `threads` is what fills the device once; about three times as many even out. Groups of chunks fit `block`.
    ReducePart(const BucketRange& part, const ReduceCounts& before, uint32_t threads, uint32_t block)
        : sets(part.sets), q(part.bits), before(before) {
        l = (q + 1) / 2;
        h = q - l;
        m = 0;
        while (m < h && ((uint64_t(2 * sets) << q >> m) > 3 * threads || 1u << (l - m) > block)) m++;
    }
    /// Chunks of rows; as many of columns.
    TANDEM_HD uint32_t chunks() const { return sets << (q - m); }
    ReduceCounts up_to() const {
        return {before.buckets + (sets << q), before.chunks + chunks(), before.rows + (sets << h),
                before.columns + (sets << l), before.sums + sets * (q + 1)};
    }
};

struct Reduce {
    ReducePart part[2];
    ReduceCounts all;

    Reduce(const tandem_msm_shape& s, uint32_t threads, uint32_t block)
        : part{{bucket_range(s, false), {}, threads, block}, {bucket_range(s, true), part[0].up_to(), threads, block}},
          all(part[1].up_to()) {}
};

/// One level of sums over groups of 2^log_group neighbours.
template <class F> struct Groups {
    const Xyzz<F>* in;
    Xyzz<F>* out;
    uint32_t count, log_group;
};
/// Rows and columns of both parts.
template <class F> struct AllGroups {
    Groups<F> of[4];
};

template <class F>
__global__ void __launch_bounds__(128) sum_chunks(Reduce r, const Xyzz<F>* bucket, Xyzz<F>* rows, Xyzz<F>* columns) {
    uint32_t t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= 2 * r.all.chunks) return;
    const bool second = t >= 2 * r.part[0].chunks();
    const ReducePart d = second ? r.part[1] : r.part[0];
    const uint32_t chunks = d.chunks();
    t -= 2 * d.before.chunks;
    bucket += d.before.buckets;
    rows += d.before.chunks;
    columns += d.before.chunks;
    const Xyzz<F>* from;
    Xyzz<F>* to;
    uint32_t stride;
    if (t < chunks) {
        from = bucket + (size_t(t) << d.m);
        to = rows + t;
        stride = 1;
    } else {
        t -= chunks;
        const uint32_t column = t & ((1u << d.l) - 1), part = t >> d.l & ((1u << (d.h - d.m)) - 1);
        const uint32_t set = t >> (d.q - d.m);
        from = bucket + (size_t(set) << d.q) + (size_t(part) << (d.m + d.l)) + column;
        to = columns + (size_t(set) << (d.q - d.m)) + (size_t(column) << (d.h - d.m)) + part;
        stride = 1u << d.l;
    }
    Xyzz<F> sum = load16(from);
    for (uint32_t k = 1; k < 1u << d.m; k++) add_into(&sum, from + size_t(k) * stride);
    store16(to, sum);
}

/// Halves groups of neighbours until one sum is left of each; `width` is a power of two and at most the block.
template <class F> __device__ __forceinline__ void tree_sum(Xyzz<F>* sum, uint32_t width) {
    const uint32_t fours = blockDim.x / 4, groups = blockDim.x / width;
    for (uint32_t d = width / 2; d > 0; d /= 2) {
        __syncthreads();
        for (uint32_t first = 0; first < groups * d; first += fours) {
            const uint32_t number = first + threadIdx.x / 4;
            const bool active = number < groups * d;
            const uint32_t at = active ? number / d * width + number % d : 0;
            add_by_four(&sum[at], &sum[at + (active ? d : 0)], active);
        }
    }
    __syncthreads();
}

/// Groups of at most a block; the blocks of one after those of the other.
template <class F> __global__ void __launch_bounds__(BLOCK_OF_POINTS<F>) sum_groups(AllGroups<F> all) {
    constexpr uint32_t SIZE = BLOCK_OF_POINTS<F>;
    extern __shared__ uint4 point_memory[];
    Xyzz<F>* sum = reinterpret_cast<Xyzz<F>*>(point_memory);
    Groups<F> g = all.of[0];
    uint32_t block = blockIdx.x;
#pragma unroll
    for (uint32_t k = 1; k < 4; k++) {
        const uint32_t blocks = (g.count + SIZE - 1) / SIZE;
        if (block < blocks) break;
        block -= blocks;
        g = all.of[k];
    }
    const uint32_t at = block * SIZE + threadIdx.x;
    store16(&sum[threadIdx.x], at < g.count ? load16(&g.in[at]) : Xyzz<F>::infinity());
    tree_sum(sum, 1u << g.log_group);
    if (at < g.count && at % (1u << g.log_group) == 0) store16(&g.out[at >> g.log_group], load16(&sum[threadIdx.x]));
}

/// The points that are left: blockIdx.x is the set, blockIdx.y its point, 0 for the sum of all and 1 + b for bit b; those of the second
/// part after those of the first.
template <class F>
__global__ void __launch_bounds__(BLOCK_OF_POINTS<F>)
    sum_bits(Reduce r, const Xyzz<F>* rows, const Xyzz<F>* columns, Xyzz<F>* sums) {
    constexpr uint32_t SIZE = BLOCK_OF_POINTS<F>;
    extern __shared__ uint4 point_memory[];
    Xyzz<F>* sum = reinterpret_cast<Xyzz<F>*>(point_memory);
    const bool second = blockIdx.y > r.part[0].q;
    const ReducePart d = second ? r.part[1] : r.part[0];
    const uint32_t set = blockIdx.x, point = second ? blockIdx.y - r.part[0].q - 1 : blockIdx.y;
    rows += d.before.rows;
    columns += d.before.columns;
    sums += d.before.sums;
    const bool of_columns = point >= 1 && point <= d.l;
    const Xyzz<F>* from = of_columns ? columns + (size_t(set) << d.l) : rows + (size_t(set) << d.h);
    const uint32_t bit = of_columns ? point - 1 : point - 1 - d.l;
    const uint32_t count = point == 0 ? 1u << d.h : 1u << ((of_columns ? d.l : d.h) - 1);
    Xyzz<F> own = Xyzz<F>::infinity();
    for (uint32_t k = threadIdx.x; k < count; k += SIZE) {
        // For a bit, the k-th index that has it.
        const uint32_t low = (1u << bit) - 1;
        const uint32_t index = point == 0 ? k : ((k & ~low) << 1 | (k & low) | 1u << bit);
        add_into(&own, &from[index]);
    }
    store16(&sum[threadIdx.x], own);
    tree_sum(sum, SIZE);
    if (threadIdx.x == 0) store16(&sums[size_t(set) * (d.q + 1) + point], load16(&sum[0]));
}

}  // namespace msm
}  // namespace tandem
