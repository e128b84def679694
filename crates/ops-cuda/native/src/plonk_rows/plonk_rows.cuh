#pragma once
// What the gates and the permutation of PLONK say, generic over the scalar field. One thread for each row, in a loop over the grid.
#include "tandem/field.cuh"
#include "tandem/params.cuh"
#include "tandem_ops.h"

namespace tandem {
namespace plonk_rows {

/// Values of the gates of n rows.
template <class F> struct Gates {
    F* out;
    const F* columns[3];
    const F* selectors[5];
    uint64_t n;

    TANDEM_HD F row(uint64_t i) const {
        const F a = columns[0][i], b = columns[1][i];
        F sum = (selectors[0][i] * a + selectors[2][i]) * b;
        sum = sum + selectors[1][i] * a;
        sum = sum + selectors[3][i] * columns[2][i];
        return sum + selectors[4][i];
    }
};

/// What n rows give to one side of the grand product.
template <class F> struct Permuted {
    F* out;
    const F* columns[3];
    const F* places[3];
    F factors[3];
    F gamma;
    uint64_t n;

    TANDEM_HD F term(int column, uint64_t i) const {
        return columns[column][i] + factors[column] * places[column][i] + gamma;
    }
    TANDEM_HD F row(uint64_t i) const { return term(0, i) * term(1, i) * term(2, i); }
};

#if defined(__CUDACC__)
constexpr uint32_t BLOCK = 256;
/// Fills any GPU several times over; the loop over the grid takes the rest.
constexpr uint64_t BLOCKS = 4096;

template <class Rows> __global__ void __launch_bounds__(BLOCK) kernel(const Rows rows) {
    const uint64_t step = uint64_t(gridDim.x) * BLOCK;
    for (uint64_t i = uint64_t(blockIdx.x) * BLOCK + threadIdx.x; i < rows.n; i += step) rows.out[i] = rows.row(i);
}

template <class Rows> int32_t enqueue(const Rows& rows, tandem_stream stream) {
    if (rows.n == 0) return TANDEM_OK;
    const uint64_t blocks = (rows.n + BLOCK - 1) / BLOCK;
    kernel<<<uint32_t(blocks < BLOCKS ? blocks : BLOCKS), BLOCK, 0, stream>>>(rows);
    return int32_t(cudaGetLastError());
}

/// Takes the operands over; false if one is missing that a row needs.
template <class F, size_t N> bool take(const F* (&to)[N], const tandem_scalar* const (&from)[N], uint64_t n) {
    static_assert(sizeof(F) == sizeof(tandem_scalar), "one layout on both sides");
    bool all = true;
    for (size_t i = 0; i < N; i++) {
        to[i] = reinterpret_cast<const F*>(from[i]);
        all = all && (from[i] || n == 0);
    }
    return all;
}

template <class F> int32_t launch(const tandem_gate_rows_args* args, tandem_stream stream) {
    Gates<F> rows;
    rows.out = reinterpret_cast<F*>(args->out);
    rows.n = args->n;
    const bool all = take(rows.columns, args->columns, rows.n) && take(rows.selectors, args->selectors, rows.n);
    if (!all || (!rows.out && rows.n)) return TANDEM_INVALID;
    return enqueue(rows, stream);
}

template <class F> int32_t launch(const tandem_permuted_rows_args* args, tandem_stream stream) {
    Permuted<F> rows;
    rows.out = reinterpret_cast<F*>(args->out);
    rows.n = args->n;
    const bool all = take(rows.columns, args->columns, rows.n) && take(rows.places, args->places, rows.n);
    if (!all || (!rows.out && rows.n)) return TANDEM_INVALID;
    std::memcpy(rows.factors, args->factors, sizeof rows.factors);
    std::memcpy(&rows.gamma, &args->gamma, sizeof rows.gamma);
    return enqueue(rows, stream);
}
#endif

}  // namespace plonk_rows
}  // namespace tandem
