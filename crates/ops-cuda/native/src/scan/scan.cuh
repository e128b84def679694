#pragma once
// Scans of the columns of a table, level by level (G. E. Blelloch, "Prefix sums and their applications", 1990): a thread takes a chunk of
// rows of one column. `totals` finds what each chunk makes by itself, which is a table of the next level; once that has been scanned,
// `apply` goes on from what precedes each chunk. No thread waits for another.
//
//   level 0    n elements       in rows of `columns`       totals |   ^ apply
//   level 1    a row a chunk of level 0                    totals v   | apply, exclusive
//   ..         until at most TANDEM_SCAN_CHUNK rows are left          | apply, exclusive, nothing precedes
#include "tandem/field.cuh"
#include "tandem/params.cuh"
#include "tandem_ops.h"

namespace tandem {
namespace scan {

/// Elements that a thread loads before it uses the first: their loads are under way at once.
constexpr uint32_t BATCH = 8;
static_assert(TANDEM_SCAN_CHUNK % BATCH == 0, "chunks are whole batches");

/// Products, from the first row on.
template <class F> struct Product {
    static constexpr bool FROM_LAST = false;
    F factor;
    TANDEM_HD F identity() const { return F::one(); }
    TANDEM_HD F next(F before, F x) const { return before * x; }
};

/// Values of polynomials at `factor` by Horner's scheme, from the last row on.
template <class F> struct Horner {
    static constexpr bool FROM_LAST = true;
    F factor;
    TANDEM_HD F identity() const { return F::zero(); }
    TANDEM_HD F next(F before, F x) const { return before * factor + x; }
};

/// A table whose last row may be short, and its chunks: chunks[chunk * columns + column].
template <class F> struct Table {
    F* data;
    F* chunks;
    uint64_t n, columns;
    uint32_t exclusive;

    TANDEM_HD uint64_t threads() const {
        const uint64_t rows = (n - 1) / columns + 1;
        return ((rows - 1) / TANDEM_SCAN_CHUNK + 1) * columns;
    }
    /// Element number `k`, in the order of the scan, of the chunk and column of a thread; it may be past the end.
    template <class Op> TANDEM_HD uint64_t place(uint64_t thread, uint32_t k) const {
        const uint64_t row = thread / columns * TANDEM_SCAN_CHUNK + (Op::FROM_LAST ? TANDEM_SCAN_CHUNK - 1 - k : k);
        return row * columns + thread % columns;
    }
    /// Elements `from` to `from + BATCH` of a thread, as far as they are there.
    template <class Op> TANDEM_HD void load(uint64_t thread, uint32_t from, F (&x)[BATCH]) const {
        TANDEM_UNROLL for (uint32_t k = 0; k < BATCH; k++) {
            const uint64_t i = place<Op>(thread, from + k);
            if (i < n) x[k] = data[i];
        }
    }
};

/// What a thread's chunk makes by itself.
template <class F, class Op> TANDEM_HD void total(const Table<F>& table, const Op& op, uint64_t thread) {
    F sum = op.identity();
    for (uint32_t from = 0; from < TANDEM_SCAN_CHUNK; from += BATCH) {
        F x[BATCH];
        table.template load<Op>(thread, from, x);
        TANDEM_UNROLL for (uint32_t k = 0; k < BATCH; k++) {
            if (table.template place<Op>(thread, from + k) < table.n) sum = op.next(sum, x[k]);
        }
    }
    table.chunks[thread] = sum;
}

/// Scans a thread's chunk. Exclusive: an element becomes what those before it make, else what they and itself make.
template <class F, class Op> TANDEM_HD void apply(const Table<F>& table, const Op& op, uint64_t thread) {
    F sum = table.chunks ? table.chunks[thread] : op.identity();
    for (uint32_t from = 0; from < TANDEM_SCAN_CHUNK; from += BATCH) {
        F x[BATCH];
        table.template load<Op>(thread, from, x);
        TANDEM_UNROLL for (uint32_t k = 0; k < BATCH; k++) {
            const uint64_t i = table.template place<Op>(thread, from + k);
            if (i >= table.n) continue;
            const F before = sum;
            sum = op.next(sum, x[k]);
            table.data[i] = table.exclusive ? before : sum;
        }
    }
}

#if defined(__CUDACC__)
constexpr uint32_t BLOCK = 128;

template <class F, class Op> __global__ void __launch_bounds__(BLOCK) totals_kernel(const Table<F> table, const Op op) {
    const uint64_t thread = uint64_t(blockIdx.x) * BLOCK + threadIdx.x;
    if (thread < table.threads()) total(table, op, thread);
}

template <class F, class Op> __global__ void __launch_bounds__(BLOCK) apply_kernel(const Table<F> table, const Op op) {
    const uint64_t thread = uint64_t(blockIdx.x) * BLOCK + threadIdx.x;
    if (thread < table.threads()) apply(table, op, thread);
}

/// Launches one of the two on a table of which there is a thread for each chunk and column.
template <class F, bool TOTALS, class Op>
int32_t launch(const Table<F>& table, const Op& op, tandem_stream stream) {
    const uint64_t blocks = (table.threads() - 1) / BLOCK + 1;
    if (blocks > 0x7fffffff) return TANDEM_INVALID;
    if (TOTALS) {
        totals_kernel<F><<<uint32_t(blocks), BLOCK, 0, stream>>>(table, op);
    } else {
        apply_kernel<F><<<uint32_t(blocks), BLOCK, 0, stream>>>(table, op);
    }
    return int32_t(cudaGetLastError());
}

template <class F, bool TOTALS> int32_t launch(const tandem_scan_args* args, tandem_stream stream) {
    static_assert(sizeof(F) == sizeof(tandem_scalar), "one layout on both sides");
    if (args->n == 0) return TANDEM_OK;
    if (args->columns == 0 || args->columns > args->n || args->n > UINT64_MAX / sizeof(F)) return TANDEM_INVALID;
    Table<F> table;
    table.data = reinterpret_cast<F*>(args->data);
    table.chunks = reinterpret_cast<F*>(args->chunks);
    table.n = args->n;
    table.columns = args->columns;
    table.exclusive = args->exclusive;
    // Without what precedes them there must be one chunk.
    if (!table.data || (!table.chunks && (TOTALS || table.threads() > table.columns))) return TANDEM_INVALID;
    F factor;
    std::memcpy(&factor, &args->factor, sizeof factor);
    switch (args->op) {
        case TANDEM_SCAN_PRODUCT: return launch<F, TOTALS>(table, Product<F>{factor}, stream);
        case TANDEM_SCAN_HORNER: return launch<F, TOTALS>(table, Horner<F>{factor}, stream);
        default: return TANDEM_INVALID;
    }
}
#endif

}  // namespace scan
}  // namespace tandem
