#pragma once
// One pass of a transform over memory: transforms of 2^log_rows elements, all at once, over the bits
// low .. low + log_rows of the elements' places.
//
// A block takes 4 elements a thread, as columns of 2^log_rows rows each: it copies them to shared memory, multiplies
// them by the twiddles that lie between this pass and the one before, and goes through rounds of up to two stages, in
// which every thread holds 4 elements in registers. A stage at bit b maps the elements (x, y) whose rows differ in
// bit b alone to (x + z y, x - z y), where z depends on the row's bits above b: rows go in in natural order and come
// out in bit-reversed order. Where a pass is to go the other way, its rows are copied in and out in bit-reversed order.
//
// The number of threads that exchange elements between two rounds is 2^(bits left - 2), and they are neighbours: up to
// 7 bits they are of one warp, so that most exchanges need no barrier of the block.
//
// A transform that is spread over lanes goes through the same passes over the places of a shard (spread.cuh says how).
#include "lazy.cuh"
#include "spread.cuh"

#include <cuda_pipeline_primitives.h>

namespace tandem {
namespace ntt {

constexpr uint32_t LOG_HELD = 2, HELD = 1 << LOG_HELD;
constexpr uint32_t LOG_BLOCK = 7, MAX_LOG_ROWS = LOG_BLOCK + LOG_HELD, MIN_LOG_N = 3;
static_assert(MAX_LOG_ROWS == TANDEM_NTT_MAX_LOG_ROWS && MIN_LOG_N == TANDEM_NTT_MIN_LOG_ROWS, "as the header says");
/// Blocks that share a multiprocessor, which leaves 96 registers a thread; measured beside 4 and 6.
constexpr uint32_t BLOCKS = 5;
/// Stage twiddles: node n of 3, of the heap of 1 and 2 that a round of two stages uses, for each setting of the bits
/// above, in quarters of 16 bytes so that neighbouring threads read neighbouring quarters.
constexpr uint32_t STAGE_NODES = HELD - 1, STAGE_BLOCKS = 1u << (MAX_LOG_ROWS - LOG_HELD);
static_assert(STAGE_NODES * STAGE_BLOCKS == TANDEM_NTT_STAGE_TWIDDLES, "as the header says");

#if defined(__CUDACC__)
/// Where the elements of a block stand in memory.
struct Places {
    uint32_t log_rows, log_columns;  // of all columns
    uint32_t low;                    // the place of a row is its number << low
    bool reverse_rows, reverse_columns;

    /// The place of the column's row 0.
    __device__ uint64_t column(uint64_t column) const {
        if (reverse_columns) return uint64_t(reverse_bits(uint32_t(column), log_columns)) << log_rows;
        const uint64_t below = (uint64_t(1) << low) - 1;
        return (column & below) | (column & ~below) << log_rows;
    }
    /// The row in transform order of the row in memory order; the two are the same permutation.
    __device__ uint32_t row(uint32_t row) const { return reverse_rows ? reverse_bits(row, log_rows) : row; }
};

/// Where the block keeps row `row` of its column `column`, in 16-byte words; the upper half of the element lies
/// `elements` words further, at the place with bit 2 turned over. Rows and columns whose numbers differ by powers of
/// two fall into different banks.
__device__ __forceinline__ uint32_t kept_at(uint32_t column, uint32_t row, uint32_t log_rows) {
    const uint32_t at = column << log_rows | row;
    return at ^ ((row >> 3 ^ row >> 6 ^ row >> 9 ^ column) & 7);
}

template <class P> __device__ __forceinline__ Fp<P> kept(const uint4* shared, uint32_t elements, uint32_t at) {
    Fp<P> x;
    reinterpret_cast<uint4*>(x.limb)[0] = shared[at];
    reinterpret_cast<uint4*>(x.limb)[1] = shared[elements + (at ^ 4)];
    return x;
}

template <class P> __device__ __forceinline__ void keep(uint4* shared, uint32_t elements, uint32_t at, Fp<P> x) {
    shared[at] = reinterpret_cast<uint4*>(x.limb)[0];
    shared[elements + (at ^ 4)] = reinterpret_cast<uint4*>(x.limb)[1];
}

template <class P>
__device__ __forceinline__ Twiddle<P> stage_twiddle(const uint4* stages, uint32_t node, uint32_t block) {
    Twiddle<P> f;
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
        const uint4 v = __ldg(stages + ((node - 1) * 4 + i) * STAGE_BLOCKS + block);
        reinterpret_cast<uint4*>(&f)[i] = v;
    }
    return f;
}

/// One stage of a round: pairs at distance DISTANCE, of which those of block j use node HELD / 2 / DISTANCE + j.
template <class P, uint32_t DISTANCE>
__device__ __forceinline__ void stage(Fp<P> (&x)[HELD], const uint4* stages, uint32_t block, bool first_round) {
#pragma unroll
    for (uint32_t j = 0; j < HELD / 2 / DISTANCE; j++) {
        // In the first round the first block's twiddle is 1.
        if (j == 0 && first_round) {
#pragma unroll
            for (uint32_t k = 0; k < DISTANCE; k++) {
                x[k + DISTANCE] = reduce_to_bound(x[k + DISTANCE]);
                add_subtract(x[k], x[k + DISTANCE]);
            }
            continue;
        }
        const Twiddle<P> f = stage_twiddle<P>(stages, HELD / 2 / DISTANCE + j, block);
#pragma unroll
        for (uint32_t k = 2 * j * DISTANCE; k < (2 * j + 1) * DISTANCE; k++) {
            x[k + DISTANCE] = multiply(x[k + DISTANCE], f);
            add_subtract(x[k], x[k + DISTANCE]);
        }
    }
}

/// Multiplies by a power of the root of order 2^order_bits, from its first and its 2^split-th powers.
template <class P>
__device__ __forceinline__ Fp<P> multiply_power(Fp<P> x, const Twiddle<P>* powers, uint32_t split, uint64_t exponent) {
    const uint64_t mask = (uint64_t(1) << split) - 1;
    x = multiply(x, load16_readonly(powers + (exponent & mask)));
    return multiply(x, load16_readonly(powers + (uint64_t(1) << split) + (exponent >> split & mask)));
}

/// Multiplies the element from `place` by its twiddle before the pass.
template <class P, class Args>
__device__ __forceinline__ Fp<P> multiply_before(Fp<P> x, const Args& all, uint64_t place) {
    const tandem_ntt_pass_args& args = pass_of(all);
    uint32_t bits = args.reversed ? args.low + args.log_rows : args.log_n - args.low;
    uint64_t index = args.reversed ? place & ((uint64_t(1) << bits) - 1) : place >> args.low;
    if (args.twiddles) return multiply(x, load16_readonly(reinterpret_cast<const Twiddle<P>*>(args.twiddles) + index));
    if constexpr (is_spread<Args>) {
        index = with_known(index, bits, args.reversed, all.known_bits, all.known);
        bits += all.known_bits;
    }
    uint64_t exponent = twiddle_exponent(index, bits, args.log_rows, args.reversed, args.odd)
                        << (args.order_bits - bits - args.odd);
    if (args.inverse) exponent = 0 - exponent;
    return multiply_power(x, reinterpret_cast<const Twiddle<P>*>(args.powers), args.split, exponent);
}

/// The columns of a block. Whatever is copied in or out goes by units, of which neighbouring threads take neighbouring rows if those are
/// neighbours in memory, else neighbouring columns.
struct Tile {
    uint32_t log_rows, rows, columns, log_block;
    uint64_t first_column;

    __device__ __forceinline__ uint32_t row(uint32_t e, uint32_t low) const {
        return low == 0 ? e & (rows - 1) : e >> log_block;
    }
    __device__ __forceinline__ uint32_t column(uint32_t e, uint32_t low) const {
        return low == 0 ? e >> log_rows : e & (columns - 1);
    }
};

/// The block's columns.
template <class Args> __device__ __forceinline__ Tile tile_of(const Args& all) {
    const uint32_t log_rows = pass_of(all).log_rows;
    const uint32_t columns = blockDim.x * HELD >> log_rows;
    uint32_t block_number = blockIdx.x;
    if constexpr (is_spread<Args>) {
        // Neighbouring blocks write to different sections, so that the ways to all lanes are used all the time.
        const uint32_t log_blocks = 31 - __clz(gridDim.x);
        if (all.scatter == TANDEM_NTT_BY_HIGH_BITS && log_blocks >= all.log_shards)
            block_number = rotate_right(block_number, log_blocks, all.log_shards);
    }
    return {log_rows, 1u << log_rows, columns, uint32_t(31 - __clz(columns)), uint64_t(block_number) * columns};
}

/// Copies the block's columns in, by halves of elements.
template <class P, class Args>
__device__ __forceinline__ void copy_in(uint4* shared, const Args& all, const Tile& tile, const Places& from) {
    const tandem_ntt_pass_args& args = pass_of(all);
    const uint32_t elements = blockDim.x * HELD;
#pragma unroll
    for (uint32_t i = 0; i < 2 * HELD; i++) {
        const uint32_t unit = i * blockDim.x + threadIdx.x, e = unit >> 1, half = unit & 1;
        uint32_t row = tile.row(e, from.low);
        const uint32_t column = tile.column(e, from.low);
        if constexpr (is_spread<Args>)
            if (all.sections_in) row = rotate_left(row, tile.log_rows, all.log_shards);
        uint64_t place = from.column(tile.first_column + column) + (uint64_t(row) << from.low);
        if constexpr (is_spread<Args>)
            if (all.sections_in) place = rotate_right(place, args.log_n, all.log_shards);
        const uint32_t at = kept_at(column, from.row(row), tile.log_rows);
        __pipeline_memcpy_async(shared + (half ? elements + (at ^ 4) : at),
                                reinterpret_cast<const uint4*>(args.input) + 2 * place + half, 16);
    }
    __pipeline_commit();
    __pipeline_wait_prior(0);
}

/// All stages of the pass, in rounds of two on the four elements that a thread holds.
template <class P, class Args>
__device__ __forceinline__ void rounds(uint4* shared, const Args& all, const Tile& tile, const Places& from) {
    const tandem_ntt_pass_args& args = pass_of(all);
    const uint32_t log_rows = tile.log_rows, elements = blockDim.x * HELD;
    const uint4* stages = reinterpret_cast<const uint4*>(args.stages);
    const uint32_t thread = threadIdx.x & (tile.rows / HELD - 1), column = threadIdx.x >> (log_rows - LOG_HELD);
#pragma unroll 1
    for (uint32_t left = log_rows;;) {
        // The thread holds rows block * 2^(below + 2) + k * 2^below + rest for k in 0..4.
        const uint32_t below = left > LOG_HELD ? left - LOG_HELD : 0;
        const uint32_t block = thread >> below, rest = thread & ((1u << below) - 1);
        const uint32_t row = block << (below + LOG_HELD) | rest;
        const bool first_round = left == log_rows;
        Fp<P> x[HELD];
#pragma unroll
        for (uint32_t k = 0; k < HELD; k++)
            x[k] = kept<P>(shared, elements, kept_at(column, row | k << below, log_rows));
        const auto place_of = [&](uint32_t k) {
            return from.column(tile.first_column + column) + (uint64_t(from.row(row | k << below)) << from.low);
        };
        if constexpr (has_products<Args>) {
            if (first_round && all.times) {
#pragma unroll
                for (uint32_t k = 0; k < HELD; k++)
                    x[k] = x[k] * load16_readonly(reinterpret_cast<const Fp<P>*>(all.times) + place_of(k));
            }
        }
        if (first_round && args.multiply) {
#pragma unroll
            for (uint32_t k = 0; k < HELD; k++) x[k] = multiply_before(x[k], all, place_of(k));
        }
        if (left >= 2) stage<P, 2>(x, stages, block, first_round);
        stage<P, 1>(x, stages, block, first_round);
#pragma unroll
        for (uint32_t k = 0; k < HELD; k++) keep(shared, elements, kept_at(column, row | k << below, log_rows), x[k]);
        if (left <= LOG_HELD) break;
        if (left <= LOG_HELD + 5) {
            __syncwarp();
        } else {
            __syncthreads();
        }
        left -= LOG_HELD;
    }
}

/// Writes the block's columns to the shards that are to have them, by halves of elements, so that neighbouring threads fill whole lines of
/// the other lane's memory.
__device__ __forceinline__ void scatter_out(const uint4* shared, const tandem_ntt_spread_args& all, const Tile& tile,
                                            const Places& to) {
    const uint32_t log_n = all.pass.log_n, section_bits = log_n - all.log_shards, elements = blockDim.x * HELD;
    const bool by_low = all.scatter == TANDEM_NTT_BY_LOW_BITS;
#pragma unroll 2
    for (uint32_t i = 0; i < 2 * HELD; i++) {
        const uint32_t unit = i * blockDim.x + threadIdx.x, e = unit >> 1, half = unit & 1;
        uint32_t row = tile.row(e, to.low);
        const uint32_t column = tile.column(e, to.low);
        if (by_low) row = rotate_left(row, tile.log_rows, all.log_shards);
        uint64_t place = to.column(tile.first_column + column) + (uint64_t(row) << to.low);
        if (by_low) place = rotate_right(place, log_n, all.log_shards);
        const uint32_t at = kept_at(column, to.row(row), tile.log_rows);
        uint4* target = reinterpret_cast<uint4*>(all.targets[place >> section_bits]);
        const uint64_t rest = place & ((uint64_t(1) << section_bits) - 1);
        target[2 * rest + half] = shared[half ? elements + (at ^ 4) : at];
    }
}

/// Writes the block's columns.
template <class P, class Args>
__device__ __forceinline__ void copy_out(const uint4* shared, const Args& all, const Tile& tile, const Places& to) {
    const tandem_ntt_pass_args& args = pass_of(all);
    const uint32_t elements = blockDim.x * HELD;
#pragma unroll 2
    for (uint32_t i = 0; i < HELD; i++) {
        const uint32_t e = i * blockDim.x + threadIdx.x;
        const uint32_t row = tile.row(e, to.low), column = tile.column(e, to.low);
        const uint64_t place = to.column(tile.first_column + column) + (uint64_t(row) << to.low);
        Fp<P> x = kept<P>(shared, elements, kept_at(column, to.row(row), tile.log_rows));
        if (args.last) x = reduce(x);
        if constexpr (has_products<Args>) {
            if (all.a) {
                const auto of = [&](const tandem_scalar* v) {
                    return load16_readonly(reinterpret_cast<const Fp<P>*>(v) + place);
                };
                x = of(all.a) * of(all.b) - x;
            }
        }
        store16(reinterpret_cast<Fp<P>*>(args.output) + place, x);
    }
}

/// One pass; `Args` is tandem_ntt_pass_args, or tandem_ntt_spread_args for a pass over a shard, or tandem_ntt_product_args.
template <class P, class Args> __device__ __forceinline__ void pass_of_block(const Args& all) {
    extern __shared__ uint4 shared[];
    const tandem_ntt_pass_args& args = pass_of(all);
    const bool reversed = args.reversed, reorder = args.reorder;
    const uint32_t log_columns = args.log_n - args.log_rows;
    const Tile tile = tile_of(all);
    const Places from{args.log_rows, log_columns, args.low, reversed, reorder && !reversed};
    copy_in<P>(shared, all, tile, from);
    __syncthreads();
    rounds<P>(shared, all, tile, from);
    __syncthreads();

    Places to = from;
    if (reorder) {
        to.low = reversed ? 0 : log_columns;
        to.reverse_rows = !reversed;
        to.reverse_columns = reversed;
    }
    if constexpr (is_spread<Args>) {
        if (all.scatter != TANDEM_NTT_STAY) {
            scatter_out(shared, all, tile, to);
            return;
        }
    }
    copy_out<P>(shared, all, tile, to);
}

template <class P, class Args> __global__ void __launch_bounds__(1 << LOG_BLOCK, BLOCKS) pass_kernel(const Args all) {
    pass_of_block<P>(all);
}

/// A pass over a vector for each blockIdx.y.
template <class P>
__global__ void __launch_bounds__(1 << LOG_BLOCK, BLOCKS) batch_kernel(const tandem_ntt_pass_args first) {
    tandem_ntt_pass_args args = first;
    const uint64_t vector = uint64_t(blockIdx.y) << args.log_n;
    args.input += vector;
    args.output += vector;
    pass_of_block<P>(args);
}
#endif

}  // namespace ntt
}  // namespace tandem
