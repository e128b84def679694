#pragma once
// What the gates and the permutation of PLONK say, generic over the scalar field. One thread for each row, in a loop over the grid.
#include "tandem/field.cuh"
#include "tandem/params.cuh"
#include "tandem_ops.h"

#include <cuda_runtime.h>

namespace tandem {

constexpr uint32_t ROWS_THREADS = 256;
/// Fills any GPU several times over; the loop over the grid takes the rest.
constexpr uint64_t ROWS_BLOCKS = 4096;

template <class F> struct GateValues {
    F* out;
    const F* columns[3];
    const F* selectors[5];
    uint64_t n;

    __device__ F row(uint64_t i) const {
        F a = columns[0][i], b = columns[1][i];
        F sum = selectors[0][i] * (a * b) + selectors[1][i] * a;
        sum = sum + selectors[2][i] * b;
        sum = sum + selectors[3][i] * columns[2][i];
        return sum + selectors[4][i];
    }
};

template <class F> struct PermutedRows {
    F* out;
    const F* columns[3];
    const F* places[3];
    F factors[3];
    F gamma;
    uint64_t n;

    __device__ F term(int j, uint64_t i) const { return columns[j][i] + factors[j] * places[j][i] + gamma; }
    __device__ F row(uint64_t i) const { return term(0, i) * term(1, i) * term(2, i); }
};

template <class Rows> __global__ void __launch_bounds__(ROWS_THREADS) rows_kernel(const Rows rows) {
    uint64_t step = uint64_t(gridDim.x) * ROWS_THREADS;
    for (uint64_t i = uint64_t(blockIdx.x) * ROWS_THREADS + threadIdx.x; i < rows.n; i += step) {
        rows.out[i] = rows.row(i);
    }
}

template <class Rows> int32_t rows_enqueue(const Rows& rows, tandem_stream stream) {
    if (rows.n == 0) return TANDEM_OK;
    uint64_t blocks = (rows.n + ROWS_THREADS - 1) / ROWS_THREADS;
    if (blocks > ROWS_BLOCKS) blocks = ROWS_BLOCKS;
    rows_kernel<<<uint32_t(blocks), ROWS_THREADS, 0, stream>>>(rows);
    return int32_t(cudaGetLastError());
}

/// Takes the operands over; false if one is missing that a row needs.
template <class F, size_t N> bool rows_take(const F* (&to)[N], const tandem_scalar* const (&from)[N], uint64_t n) {
    static_assert(sizeof(F) == sizeof(tandem_scalar), "one layout on both sides");
    bool all = true;
    for (size_t i = 0; i < N; i++) {
        to[i] = reinterpret_cast<const F*>(from[i]);
        all = all && (from[i] || n == 0);
    }
    return all;
}

template <class F> int32_t gate_rows_launch(const tandem_gate_rows_args* args, tandem_stream stream) {
    GateValues<F> rows;
    rows.out = reinterpret_cast<F*>(args->out);
    rows.n = args->n;
    bool all = rows_take(rows.columns, args->columns, rows.n) && rows_take(rows.selectors, args->selectors, rows.n);
    if (!all || (!rows.out && rows.n)) return TANDEM_INVALID;
    return rows_enqueue(rows, stream);
}

template <class F> int32_t permuted_rows_launch(const tandem_permuted_rows_args* args, tandem_stream stream) {
    PermutedRows<F> rows;
    rows.out = reinterpret_cast<F*>(args->out);
    rows.n = args->n;
    bool all = rows_take(rows.columns, args->columns, rows.n) && rows_take(rows.places, args->places, rows.n);
    if (!all || (!rows.out && rows.n)) return TANDEM_INVALID;
    std::memcpy(rows.factors, args->factors, sizeof rows.factors);
    std::memcpy(&rows.gamma, &args->gamma, sizeof rows.gamma);
    return rows_enqueue(rows, stream);
}

}  // namespace tandem
