#pragma once
// A pass over memory of a transform over a field whose elements are of one or two words, or of complex numbers.
//
// A pass does the transforms of the columns: the 2^log_rows elements whose places differ in the bits low .. low +
// log_rows. Before it the element of row r is multiplied by w^(known * r), where `known` are the bits of the point that
// earlier passes have found and w is the root of unity of order 2^(bits of the row and known). That twiddle is a power
// of the row for each column, and rows that a thread holds are in arithmetic progression: twiddles are computed, unless
// there is a table of them.
//
// A block takes 16 columns, a line of memory or half of one. A thread holds 16 elements of one column, or 32, and does up to
// five stages on them; that is done twice, with an exchange in shared memory between. What the first round reads and what the
// last one writes goes straight from memory to registers and back: neighbouring threads take neighbouring columns, or
// neighbouring rows where it is rows that are neighbours in memory. Then what exchanges elements are threads of one warp. Rows
// go in in natural order and come out in bit-reversed order; where a pass is to go the other way, its rows are read and
// written in bit-reversed order. Rows that would not be neighbours so go through shared memory once more.
//
// A transform that is spread over lanes goes through the same passes over the places of a shard (spread.cuh says how).
#include "spread.cuh"
#include "tandem/baby_bear.cuh"
#include "tandem/goldilocks.cuh"

namespace tandem {
namespace ntt_small {

using ntt::reverse_bits;
using ntt::rotate_right;

TANDEM_HD constexpr uint32_t reversed_bits(uint32_t x, uint32_t bits) {
    uint32_t r = 0;
    for (uint32_t i = 0; i < bits; i++) r |= (x >> i & 1) << (bits - 1 - i);
    return r;
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
            x[i | 1 << h] = F::subtract_turned(a, b, (i & ((1 << h) - 1)) << (4 - h));
        }
    }
}

#if defined(__CUDACC__)
/// Columns of a block.
constexpr uint32_t LOG_COLUMNS = 4, C = 1u << LOG_COLUMNS;

/// How a block does a pass.
template <class F, int LOG_ROWS> struct Form {
    static constexpr uint32_t R = 1u << LOG_ROWS;
    /// Stages of the two rounds; as in ops-cuda/src/ntt/small.rs.
    static constexpr int FIRST = LOG_ROWS <= 4 ? LOG_ROWS : (LOG_ROWS + 1) / 2, SECOND = LOG_ROWS - FIRST;
    /// Elements of a thread.
    static constexpr int LOG_HELD = FIRST > 4 ? FIRST : 4, HELD = 1 << LOG_HELD;
    static constexpr uint32_t THREADS = (R * C) >> LOG_HELD, THREADS_OF_COLUMN = R >> LOG_HELD;
    /// Blocks that share a multiprocessor, which leaves their threads a number of registers.
    static constexpr uint32_t BLOCKS_THAT_FIT = 65536 / F::REGISTERS[LOG_HELD - 4] / THREADS;
    static constexpr uint32_t BLOCKS = BLOCKS_THAT_FIT > 24 ? 24 : BLOCKS_THAT_FIT;
    /// Row by row with one element more, and one more after 16 rows: neither 16 rows side by side nor every 16th have conflicts
    /// of banks, for the elements of 8 bytes.
    static constexpr uint32_t TILE_BYTES = (R * (C + 1) + (R >> 4) + C) * sizeof(typename F::Stored);
};

/// Where the tile has the first column's element of a row. That of a | b is the sum of both where no bit is of both.
__device__ constexpr uint32_t kept_at(uint32_t row) { return row * (C + 1) + (row >> 4); }

/// A power of the root from its parts: one of its first 2^split powers, and one of its 2^split-th.
template <class F, class Args>
__device__ __forceinline__ typename F::Power kept_power(const Args& args, uint64_t exponent) {
    const auto* powers = reinterpret_cast<const typename F::Power*>(args.powers);
    if (args.inverse) exponent = 0 - exponent;
    const uint32_t mask = (1u << args.split) - 1;
    const auto low = __ldg(powers + (uint32_t(exponent) & mask));
    return F::product(low, __ldg(powers + (1u << args.split) + (uint32_t(exponent >> args.split) & mask)));
}

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
    /// The number in memory of a row.
    __device__ __forceinline__ uint32_t row(uint32_t row) const {
        return reverse_rows ? reverse_bits(row, log_rows) : row;
    }
};

/// The k-th of elements that are so many bytes apart.
template <class T> __device__ __forceinline__ T* step(T* from, uint32_t bytes, uint32_t k) {
    return reinterpret_cast<T*>(const_cast<char*>(reinterpret_cast<const char*>(from)) + uint64_t(bytes) * k);
}

using ntt::pass_of;
TANDEM_HD const tandem_ntt_small_pass_args& pass_of(const tandem_ntt_small_pass_args& args) { return args; }
TANDEM_HD const tandem_ntt_small_pass_args& pass_of(const tandem_ntt_small_spread_args& args) { return args.pass; }
template <class Args> constexpr bool is_spread = std::is_same<Args, tandem_ntt_small_spread_args>::value;

/// Where an element is read from that stands at a place.
template <class T> __device__ __forceinline__ const T* source(const tandem_ntt_small_spread_args& all, uint64_t place) {
    if (all.sections_in) place = rotate_right(place, all.pass.log_n, all.log_shards);
    return reinterpret_cast<const T*>(all.pass.input) + place;
}

/// Where an element is written to whose place it is.
template <class T> __device__ __forceinline__ T* target(const tandem_ntt_small_spread_args& all, uint64_t place) {
    if (all.scatter == TANDEM_NTT_STAY) return reinterpret_cast<T*>(all.pass.output) + place;
    if (all.scatter == TANDEM_NTT_BY_LOW_BITS) place = rotate_right(place, all.pass.log_n, all.log_shards);
    const uint32_t section_bits = all.pass.log_n - all.log_shards;
    return reinterpret_cast<T*>(all.targets[place >> section_bits]) + (place & ((uint64_t(1) << section_bits) - 1));
}

/// The twiddles before a pass of the rows of a thread, where they are computed.
template <class F, int LOG_ROWS, class Args>
__device__ __forceinline__ void multiply_powers(typename F::Held* x, const typename F::Stored* y, const Args& all,
                                                uint64_t place, uint32_t unit) {
    typedef typename F::Power Power;
    typedef Form<F, LOG_ROWS> S;
    constexpr uint32_t BELOW = LOG_ROWS - S::FIRST;
    const tandem_ntt_small_pass_args& args = pass_of(all);
    // The bits of the point that the column knows.
    uint32_t bits = args.reversed ? args.low : args.log_n - args.low - LOG_ROWS;
    uint64_t known = args.reversed ? place & ((uint64_t(1) << bits) - 1) : place >> (args.low + LOG_ROWS);
    if constexpr (is_spread<Args>) {
        known = ntt::with_known(known, bits, args.reversed, all.known_bits, all.known);
        bits += all.known_bits;
    }
    if (!args.reversed) known = reverse_bits(uint32_t(known), bits);
    const uint64_t one = known << (args.order_bits - bits - LOG_ROWS);
    const Power* coset = reinterpret_cast<const Power*>(args.coset);
    // Twiddle k is that of the first row times the k-th power of the step.
    Power by = kept_power<F>(args, one << BELOW);
    if (coset) by = F::product(by, __ldg(coset + ((1u << BELOW) % S::R)));
    const Power square = F::product(by, by);
#pragma unroll
    for (uint32_t q = 0; q < S::HELD >> S::FIRST; q++) {
        const uint32_t row = unit + q * S::THREADS_OF_COLUMN;
        Power even = F::product(kept_power<F>(args, one * row), F::argument(args.scale));
        if (coset) even = F::product(even, __ldg(coset + row));
        Power odd = F::product(even, by);
        x[q << S::FIRST] = F::multiply(y[q << S::FIRST], even);
#pragma unroll
        for (uint32_t k = 1; k < 1u << S::FIRST; k++) {
            Power& f = k % 2 ? odd : even;
            if constexpr (F::ROUNDED_POWERS) {
                // The k-th power has k times the error of the first.
                f = F::product(kept_power<F>(args, one * (row + (k << BELOW))), F::argument(args.scale));
            } else if (k > 1) {
                f = F::product(f, square);
            }
            x[q << S::FIRST | k] = F::multiply(y[q << S::FIRST | k], f);
        }
    }
}

/// Element k of a transform of 2^H is that at bitrev(k); that of the inverse at -bitrev(k), which is to stand where this says.
template <int H> __device__ constexpr uint32_t negated(uint32_t k) {
    return reversed_bits(((1u << H) - reversed_bits(k, H)) % (1u << H), H);
}

/// One pass; `Args` is tandem_ntt_small_pass_args, or tandem_ntt_small_spread_args for a pass over a shard. All in one function: with its
/// parts as functions the compiler spills other registers, and a transform of BabyBear takes up to a tenth longer.
template <class F, int LOG_ROWS, class Args>
__global__ void __launch_bounds__((Form<F, LOG_ROWS>::THREADS), (Form<F, LOG_ROWS>::BLOCKS))
    pass_kernel(const Args all) {
    typedef typename F::Stored Stored;
    typedef Form<F, LOG_ROWS> S;
    constexpr int FIRST = S::FIRST, SECOND = S::SECOND, LAST = SECOND ? SECOND : FIRST, HELD = S::HELD;
    constexpr uint32_t OF_COLUMN = S::THREADS_OF_COLUMN, BELOW = LOG_ROWS - FIRST;
    extern __shared__ uint4 shared[];
    Stored* tile = reinterpret_cast<Stored*>(shared);
    const tandem_ntt_small_pass_args& args = pass_of(all);
    const uint32_t log_n = args.log_n, log_columns = log_n - LOG_ROWS;
    const bool reversed = args.reversed, reorder = args.reorder, inverse = args.inverse;
    const Places from{log_n, LOG_ROWS, args.low, reversed, reorder && !reversed};
    uint32_t block = blockIdx.x;
    if constexpr (is_spread<Args>) {
        // Neighbouring blocks write to different sections, so that the ways to all lanes are used all the time.
        const uint32_t log_blocks = 31 - __clz(gridDim.x);
        if (all.scatter == TANDEM_NTT_BY_HIGH_BITS && log_blocks >= all.log_shards)
            block = uint32_t(rotate_right(block, log_blocks, all.log_shards));
    }
    const uint64_t first = uint64_t(block) * C, columns = args.count << log_columns;

    // A round is done on units of rows that are equal in the other stages' bits; a thread has the units `unit` + q OF_COLUMN.
    const bool rows_in = from.low == 0;
    uint32_t column = rows_in ? threadIdx.x / OF_COLUMN : threadIdx.x % C;
    uint32_t unit = rows_in ? threadIdx.x % OF_COLUMN : threadIdx.x / C;
    bool present = first + column < columns;
    uint64_t place = from.column(first + column);
    const uint64_t in_vector = place & ((uint64_t(1) << log_n) - 1);
    const Stored* twiddles = reinterpret_cast<const Stored*>(args.twiddles);
    if (twiddles)
        twiddles += reversed ? in_vector & ((uint64_t(1) << (args.low + LOG_ROWS)) - 1) : in_vector >> args.low;
    // The pass before may still be at its end: nothing that it writes is touched until then.
    wait_for_pass_before();

    Stored y[HELD];
    typename F::Held x[HELD];
    {
        uint32_t bytes = uint32_t(sizeof(Stored)) << from.low;
        const Stored* input = reinterpret_cast<const Stored*>(args.input) + place;
        // Reads what is in row base | more, of which `more` is a constant and `at` is for `base`.
        const auto read = [&](const Stored* at, uint32_t base, uint32_t more) {
            if constexpr (is_spread<Args>)
                if (all.sections_in) return *source<Stored>(all, place + (uint64_t(base + more) << from.low));
            return *step(at, bytes, more);
        };
        const auto row_of = [](uint32_t i) { return (i >> FIRST) * OF_COLUMN + (i % (1u << FIRST) << BELOW); };
        if (rows_in && reversed) {
            // Neighbours in memory are no neighbours of those a thread needs.
            Stored* to = tile + column + kept_at(reverse_bits(unit, LOG_ROWS));
            if (present)
#pragma unroll
                for (uint32_t i = 0; i < HELD; i++)
                    to[kept_at(reversed_bits(i * OF_COLUMN, LOG_ROWS))] = read(input + unit, unit, i * OF_COLUMN);
            __syncwarp();
            const Stored* at = tile + column + kept_at(unit);
#pragma unroll
            for (uint32_t i = 0; i < HELD; i++) y[i] = at[kept_at(row_of(i))];
        } else if (present) {
            const uint32_t base = from.row(unit);
            const Stored* at = step(input, bytes, base);
            if (reversed) {
#pragma unroll
                for (uint32_t i = 0; i < HELD; i++) y[i] = read(at, base, reversed_bits(row_of(i), LOG_ROWS));
            } else {
#pragma unroll
                for (uint32_t i = 0; i < HELD; i++) y[i] = read(at, base, row_of(i));
            }
        }
        if (twiddles) {
            if (reversed) {
                const Stored* at = step(twiddles, bytes, reverse_bits(unit, LOG_ROWS));
#pragma unroll
                for (uint32_t i = 0; i < HELD; i++)
                    x[i] = F::multiply(y[i], __ldg(step(at, bytes, reversed_bits(row_of(i), LOG_ROWS))));
            } else {
                const Stored* at = twiddles + unit;
#pragma unroll
                for (uint32_t i = 0; i < HELD; i++) x[i] = F::multiply(y[i], __ldg(at + row_of(i)));
            }
        } else if (args.multiply) {
            multiply_powers<F, LOG_ROWS>(x, y, all, in_vector, unit);
        } else {
#pragma unroll
            for (uint32_t i = 0; i < HELD; i++) x[i] = F::held(y[i]);
        }
    }
#pragma unroll
    for (int q = 0; q < HELD >> FIRST; q++) transform<F, FIRST>(x + (q << FIRST));

    Places to = from;
    if (reorder) {
        to.low = reversed ? 0 : log_columns;
        to.reverse_rows = !reversed;
        to.reverse_columns = reversed;
    }
    const bool rows_out = to.low == 0;
    if constexpr (SECOND > 0) {
        Stored* kept = tile + column + kept_at(unit);
        if (inverse) {
#pragma unroll
            for (uint32_t i = 0; i < HELD; i++)
                kept[kept_at((i >> FIRST) * OF_COLUMN + (negated<FIRST>(i % (1u << FIRST)) << BELOW))] = F::fold(x[i]);
        } else {
#pragma unroll
            for (uint32_t i = 0; i < HELD; i++)
                kept[kept_at((i >> FIRST) * OF_COLUMN + (i % (1u << FIRST) << BELOW))] = F::fold(x[i]);
        }
        if (rows_in && rows_out) {
            __syncwarp();
        } else {
            __syncthreads();
            column = rows_out ? threadIdx.x / OF_COLUMN : threadIdx.x % C;
            unit = rows_out ? threadIdx.x % OF_COLUMN : threadIdx.x / C;
        }
        // Elements are multiplied by roots of order 2^log_rows, from a table.
        const Stored* stages = reinterpret_cast<const Stored*>(args.stages) + unit;
        const Stored* rows = tile + column + kept_at(unit << SECOND);
#pragma unroll
        for (uint32_t q = 0; q < HELD >> SECOND; q++) {
            const Stored* at = rows + kept_at(q * OF_COLUMN << SECOND);
            x[q << SECOND] = F::held(at[0]);
#pragma unroll
            for (uint32_t k = 1; k < 1u << SECOND; k++)
                x[q << SECOND | k] = F::multiply(at[kept_at(k)], __ldg(stages + (k << FIRST) + q * OF_COLUMN));
            transform<F, SECOND>(x + (q << SECOND));
        }
    }
#pragma unroll
    for (uint32_t i = 0; i < HELD; i++) {
        y[i] = F::fold(x[i]);
        if (args.last) y[i] = F::reduce(y[i]);
    }

    present = first + column < columns;
    place = to.column(first + column);
    const uint32_t bytes = uint32_t(sizeof(Stored)) << to.low;
    Stored* output = reinterpret_cast<Stored*>(args.output) + place;
    const auto write = [&](Stored* at, uint32_t base, uint32_t more, Stored value) {
        if constexpr (is_spread<Args>) {
            if (all.scatter != TANDEM_NTT_STAY) {
                *target<Stored>(all, place + (uint64_t(base + more) << to.low)) = value;
                return;
            }
        }
        *step(at, bytes, more) = value;
    };
    if (rows_out && !to.reverse_rows) {
        Stored* kept = tile + column + kept_at(unit << LAST);
        if (inverse) {
#pragma unroll
            for (uint32_t i = 0; i < HELD; i++)
                kept[kept_at(((i >> LAST) * OF_COLUMN << LAST) + negated<LAST>(i % (1u << LAST)))] = y[i];
        } else {
#pragma unroll
            for (uint32_t i = 0; i < HELD; i++)
                kept[kept_at(((i >> LAST) * OF_COLUMN << LAST) + i % (1u << LAST))] = y[i];
        }
        __syncwarp();
        const Stored* at = tile + column + kept_at(unit);
        if (present)
#pragma unroll
            for (uint32_t i = 0; i < HELD; i++) write(output + unit, unit, i * OF_COLUMN, at[kept_at(i * OF_COLUMN)]);
    } else if (present) {
        const uint32_t base = to.row(unit << LAST);
        Stored* at = step(output, bytes, base);
        const auto write_all = [&](auto place_of) {
#pragma unroll
            for (uint32_t i = 0; i < HELD; i++) {
                const uint32_t row = (i >> LAST) * OF_COLUMN << LAST;
                write(at, base, place_of(row, i % (1u << LAST)), y[i]);
            }
        };
        if (to.reverse_rows) {
            if (inverse) {
                write_all([](uint32_t row, uint32_t k) { return reversed_bits(row | negated<LAST>(k), LOG_ROWS); });
            } else {
                write_all([](uint32_t row, uint32_t k) { return reversed_bits(row | k, LOG_ROWS); });
            }
        } else if (inverse) {
            write_all([](uint32_t row, uint32_t k) { return row | negated<LAST>(k); });
        } else {
            write_all([](uint32_t row, uint32_t k) { return row | k; });
        }
    }
}
#endif

}  // namespace ntt_small
}  // namespace tandem
