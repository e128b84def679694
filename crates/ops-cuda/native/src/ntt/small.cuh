#pragma once
// A pass over memory of a transform over a field whose elements are of one or two words.
//
// A pass does the transforms of the columns: the 2^log_rows elements whose places differ in the bits low .. low +
// log_rows. Before it the element of row r is multiplied by w^(known * r), where `known` are the bits of the point that
// earlier passes have found and w is the root of unity of order 2^(bits of the row and known). That factor is a power
// of the row for each column, and rows that a thread holds are in arithmetic progression: factors are computed.
//
// A block keeps 16 columns, a line of memory or half of one, in shared memory, as tile[row][column] with rows one element
// longer than that: neither rows nor columns then have conflicts of banks, or few. A thread holds 16 elements of one column
// and does up to four stages on them, a round. Rows go in in natural order and come out in bit-reversed order. Where a
// pass is to go the other way, its rows are copied in and out in bit-reversed order.
#include "tandem_ops.h"
#include "tandem/baby_bear.cuh"
#include "tandem/goldilocks.cuh"

namespace tandem {
namespace ntt_small {

constexpr uint32_t LOG_HELD = 4, HELD = 1 << LOG_HELD;

TANDEM_HD constexpr uint32_t reversed_bits(uint32_t x, uint32_t bits) {
    uint32_t r = 0;
    for (uint32_t i = 0; i < bits; i++) r |= (x >> i & 1) << (bits - 1 - i);
    return r;
}

/// The stages of the rounds of a pass.
struct Rounds {
    uint32_t count, first, second, third;
};
TANDEM_HD constexpr Rounds rounds(uint32_t log_rows) {
    return log_rows <= 4   ? Rounds{1, log_rows, 0, 0}
           : log_rows <= 8 ? Rounds{2, (log_rows + 1) / 2, log_rows / 2, 0}
                           : Rounds{3, 3, 3, log_rows - 6};
}

/// The transform of 2^H elements, which come out in bit-reversed order.
template <class F, int H> TANDEM_HD void transform(typename F::Held* x) {
    x[0] = F::raise(x[0]);
    TANDEM_UNROLL
    for (int h = H - 1; h >= 0; h--) {
        TANDEM_UNROLL
        for (int i = 0; i < 1 << H; i++) {
            if (i >> h & 1) continue;
            const typename F::Held a = x[i], b = x[i | 1 << h];
            x[i] = F::add(a, b);
            x[i | 1 << h] = F::subtract_turned(a, b, (i & ((1 << h) - 1)) << (3 - h));
        }
    }
}

#if defined(__CUDACC__)
__device__ __forceinline__ uint32_t reverse_bits(uint32_t x, uint32_t bits) { return bits == 0 ? 0 : __brev(x) >> (32 - bits); }

/// Columns of a block: a line of memory, or half of one. Blocks of more threads wait longer for each other.
constexpr uint32_t LOG_COLUMNS = 4, C = 1u << LOG_COLUMNS;
static_assert(LOG_COLUMNS == LOG_HELD, "a block has a thread for each row");
template <int LOG_ROWS> constexpr uint32_t THREADS = 1u << LOG_ROWS;
/// The tile, and a factor for each row.
template <class F, int LOG_ROWS>
constexpr uint32_t TILE_BYTES = ((C + 2) << LOG_ROWS) * sizeof(typename F::Stored);
/// Blocks that share a multiprocessor, which leaves their threads a number of registers.
template <class F, int LOG_ROWS>
constexpr uint32_t BLOCKS = F::RESIDENT_THREADS / THREADS<LOG_ROWS> > 24 ? 24 : F::RESIDENT_THREADS / THREADS<LOG_ROWS>;

/// A power of the root as its parts: one of its first 2^split powers, and one of its 2^split-th.
template <class F> struct Power {
    typename F::Stored low, high;

    __device__ __forceinline__ Power(const tandem_ntt_small_pass_args& args, uint64_t exponent) {
        const auto* powers = reinterpret_cast<const typename F::Stored*>(args.powers);
        if (args.inverse) exponent = 0 - exponent;
        const uint32_t mask = (1u << args.split) - 1;
        low = __ldg(powers + (uint32_t(exponent) & mask));
        high = __ldg(powers + (1u << args.split) + (uint32_t(exponent >> args.split) & mask));
    }

    __device__ __forceinline__ typename F::Stored value() const { return F::product(low, high); }
};

/// Lets the kernel that was launched before end, and the next one start as blocks become free (PTX, griddepcontrol).
__device__ __forceinline__ void wait_for_pass_before() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/// Where the elements of a block stand in memory.
struct Places {
    uint32_t log_n, log_rows, low;  // the place of a row is its number << low
    bool reverse_rows, reverse_columns;

    /// The place of row 0 of a column of the batch.
    __device__ __forceinline__ uint64_t column(uint64_t number) const {
        const uint32_t log_columns = log_n - log_rows;
        const uint64_t vector = number >> log_columns;
        uint32_t column = uint32_t(number & ((uint64_t(1) << log_columns) - 1));
        if (reverse_columns) column = reverse_bits(column, log_columns);
        const uint32_t below = uint32_t((uint64_t(1) << low) - 1);
        return vector << log_n | (column & below) | uint64_t(column & ~below) << log_rows;
    }
};

/// Copies a tile: calls `copy(tile element, place)` for the thread's elements.
template <class F, int LOG_ROWS, class Copy>
__device__ __forceinline__ void copy_tile(const Places& places, uint64_t first, uint64_t columns, Copy copy) {
    constexpr uint32_t STEP = THREADS<LOG_ROWS> / C;
    if (places.low == 0) {
        // A thread takes a row of all columns.
        const uint32_t row = threadIdx.x;
        const uint32_t to = (places.reverse_rows ? reverse_bits(row, LOG_ROWS) : row) * (C + 1);
        const uint64_t base = places.column(first) + row;
        if (places.reverse_columns && places.log_n > LOG_ROWS) {
            const uint32_t top = places.log_n - LOG_COLUMNS;
#pragma unroll
            for (uint32_t i = 0; i < C; i++)
                copy(to + i, base + (uint64_t(reversed_bits(i, LOG_COLUMNS)) << top));
        } else {
            const uint32_t present = columns - first < C ? uint32_t(columns - first) : C;
#pragma unroll
            for (uint32_t i = 0; i < C; i++)
                if (i < present) copy(to + i, base + (i << LOG_ROWS));
        }
    } else {
        // They take neighbouring columns.
        const uint32_t column = threadIdx.x % C, row = threadIdx.x / C;
        const uint64_t base = places.column(first + column) + (uint64_t(row) << places.low);
        if (places.reverse_rows) {
            const uint32_t to = reverse_bits(row, LOG_ROWS) * (C + 1) + column;
#pragma unroll
            for (uint32_t i = 0; i < HELD; i++)
                copy(to + reversed_bits(i * STEP, LOG_ROWS) * (C + 1), base + (uint64_t(i * STEP) << places.low));
        } else {
#pragma unroll
            for (uint32_t i = 0; i < HELD; i++)
                copy((row + i * STEP) * (C + 1) + column, base + (uint64_t(i * STEP) << places.low));
        }
    }
}

/// H stages on the rows' bits LEFT - H .. LEFT. `factor(i, row)` reads and multiplies what is the i-th element of the thread.
template <class F, int LOG_ROWS, int LEFT, int H, class Read>
__device__ __forceinline__ void round(typename F::Stored* tile, bool inverse, Read read) {
    constexpr uint32_t BELOW = LEFT - H, SIZE = 1 << H;
    const uint32_t column = threadIdx.x % C, thread = threadIdx.x / C;
    typename F::Stored y[HELD];
    typename F::Held x[HELD];
    uint32_t at[HELD >> H];
#pragma unroll
    for (uint32_t q = 0; q < HELD >> H; q++) {
        const uint32_t unit = thread + q * (THREADS<LOG_ROWS> / C);
        const uint32_t row = unit >> BELOW << LEFT | (unit & ((1u << BELOW) - 1));
        at[q] = row * (C + 1) + column;
        read(x + (q << H), tile + at[q], row);
        transform<F, H>(x + (q << H));
#pragma unroll
        for (uint32_t k = 0; k < SIZE; k++) y[q << H | k] = F::fold(x[q << H | k]);
    }
    // Element k is the transform's at bitrev(k), or the inverse's at -bitrev(k).
    if (inverse) {
#pragma unroll
        for (uint32_t i = 0; i < HELD; i++) {
            const uint32_t k = reversed_bits((SIZE - reversed_bits(i % SIZE, H)) % SIZE, H);
            tile[at[i >> H] + (k << BELOW) * (C + 1)] = y[i];
        }
    } else {
#pragma unroll
        for (uint32_t i = 0; i < HELD; i++) tile[at[i >> H] + ((i % SIZE) << BELOW) * (C + 1)] = y[i];
    }
}

/// A later round: elements are multiplied by roots of order 2^(LEFT + bits of the round before), from a table.
template <class F, int LOG_ROWS, int LEFT, int H, int BEFORE>
__device__ __forceinline__ void later_round(typename F::Stored* tile, bool inverse, const typename F::Stored* factors) {
    constexpr uint32_t BELOW = LEFT - H, MASK = (1u << BEFORE) - 1;
    __syncthreads();
    round<F, LOG_ROWS, LEFT, H>(tile, inverse, [&](typename F::Held* x, const typename F::Stored* from, uint32_t row) {
#pragma unroll
        for (uint32_t k = 0; k < 1u << H; k++)
            x[k] = F::multiply(from[(k << BELOW) * (C + 1)], __ldg(factors + ((row | k << BELOW) & MASK)));
    });
}

template <class F, int LOG_ROWS>
__global__ void __launch_bounds__((THREADS<LOG_ROWS>), (BLOCKS<F, LOG_ROWS>))
    pass_kernel(const tandem_ntt_small_pass_args args) {
    typedef typename F::Stored Stored;
    constexpr uint32_t R = 1u << LOG_ROWS;
    constexpr Rounds ROUNDS = rounds(LOG_ROWS);
    extern __shared__ uint4 shared[];
    Stored* tile = reinterpret_cast<Stored*>(shared);
    const uint32_t log_n = args.log_n, log_columns = log_n - LOG_ROWS;
    const bool reversed = args.reversed, reorder = args.reorder, inverse = args.inverse;
    const Places from{log_n, LOG_ROWS, args.low, reversed, reorder && !reversed};
    const uint64_t first = uint64_t(blockIdx.x) * C, columns = args.count << log_columns;

    // The bits of the point that the column knows.
    const uint64_t place = from.column(first + threadIdx.x % C) & ((uint64_t(1) << log_n) - 1);
    const uint32_t bits = reversed ? args.low + LOG_ROWS : log_n - args.low;
    const uint32_t known = reversed ? uint32_t(place & ((uint64_t(1) << args.low) - 1))
                                    : reverse_bits(uint32_t(place >> (args.low + LOG_ROWS)), bits - LOG_ROWS);
    const uint64_t unit = uint64_t(known) << (args.order_bits - bits);
    const Stored* coset = reinterpret_cast<const Stored*>(args.coset);
    constexpr int H = ROUNDS.first, BELOW = LOG_ROWS - H;
    // Where the tile's columns know the same bits, the rows' factors are computed once.
    Stored* row_factors = tile + R * (C + 1);
    const bool shared_factors = args.multiply && !reversed && args.low != 0;
    // Else those of a thread are powers of one, times one.
    const uint32_t row = threadIdx.x;
    const Power<F> factor(args, shared_factors ? unit * row : unit << BELOW);
    const Stored* input = reinterpret_cast<const Stored*>(args.input);
    // The pass before may still be at its end: nothing that it writes is touched until then.
    wait_for_pass_before();
    copy_tile<F, LOG_ROWS>(from, first, columns, [&](uint32_t at, uint64_t place) {
        const uint32_t to = uint32_t(__cvta_generic_to_shared(tile + at));
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(input + place), "n"(sizeof(Stored)));
    });
    asm volatile("cp.async.commit_group;");
    Stored step{};
    if (shared_factors) {
        Stored f = F::product(factor.value(), Stored(args.scale));
        if (coset) f = F::product(f, __ldg(coset + row));
        row_factors[row] = f;
    } else if (args.multiply) {
        step = factor.value();
        if (coset) step = F::product(step, __ldg(coset + ((1u << BELOW) % R)));
    }
    asm volatile("cp.async.wait_all;");
    __syncthreads();

    round<F, LOG_ROWS, LOG_ROWS, H>(tile, inverse, [&](typename F::Held* x, const Stored* at, uint32_t row) {
        if (!args.multiply) {
#pragma unroll
            for (uint32_t k = 0; k < 1u << H; k++) x[k] = F::held(at[(k << BELOW) * (C + 1)]);
            return;
        }
        if (shared_factors) {
#pragma unroll
            for (uint32_t k = 0; k < 1u << H; k++)
                x[k] = F::multiply(at[(k << BELOW) * (C + 1)], row_factors[row | k << BELOW]);
            return;
        }
        // Factor k is the factor of this row times the k-th power of the step.
        Stored even = F::product(Power<F>(args, unit * row).value(), Stored(args.scale));
        if (coset) even = F::product(even, __ldg(coset + row));
        x[0] = F::multiply(at[0], even);
        Stored odd = F::product(even, step), square = F::product(step, step);
#pragma unroll
        for (uint32_t k = 1; k < 1u << H; k++) {
            Stored& f = k % 2 ? odd : even;
            if (k > 1) f = F::product(f, square);
            x[k] = F::multiply(at[(k << BELOW) * (C + 1)], f);
        }
    });
    const Stored* stages = reinterpret_cast<const Stored*>(args.stages);
    if constexpr (ROUNDS.count > 1)
        later_round<F, LOG_ROWS, BELOW, ROUNDS.second, LOG_ROWS>(tile, inverse, stages);
    if constexpr (ROUNDS.count > 2)
        later_round<F, LOG_ROWS, ROUNDS.third, ROUNDS.third, BELOW>(tile, inverse, stages + R);
    __syncthreads();

    Places to = from;
    if (reorder) {
        to.low = reversed ? 0 : log_columns;
        to.reverse_rows = !reversed;
        to.reverse_columns = reversed;
    }
    Stored* output = reinterpret_cast<Stored*>(args.output);
    const bool last = args.last;
    copy_tile<F, LOG_ROWS>(to, first, columns, [&](uint32_t at, uint64_t place) {
        output[place] = last ? F::reduce(tile[at]) : tile[at];
    });
}
#endif

}  // namespace ntt_small
}  // namespace tandem
