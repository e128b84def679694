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

/// What must vanish on the domain, on n rows of a coset.
template <class F> struct Quotient {
    F* out;
    const F* vectors[15];
    F alpha, beta, gamma, k1, k2, public_factor;
    uint64_t n;

    TANDEM_HD F row(uint64_t i) const {
        F a = vectors[0][i], b = vectors[1][i], c = vectors[2][i];
        F sum = (vectors[5][i] * a + vectors[7][i]) * b;
        sum = sum + vectors[6][i] * a;
        sum = sum + vectors[8][i] * c;
        sum = sum + vectors[9][i];
        a = a + gamma;
        b = b + gamma;
        c = c + gamma;
        const F x = beta * vectors[13][i], z = vectors[3][i];
        const F own = (a + x) * (b + k1 * x) * (c + k2 * x) * z;
        const F next =
            (a + beta * vectors[10][i]) * (b + beta * vectors[11][i]) * (c + beta * vectors[12][i]) * vectors[4][i];
        const F first = vectors[14][i];
        return sum + alpha * (own - next + alpha * (first * (z - F::one()))) + public_factor * first;
    }
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

template <class F> int32_t launch(const tandem_quotient_rows_args* args, tandem_stream stream) {
    Quotient<F> rows;
    rows.out = reinterpret_cast<F*>(args->out);
    rows.n = args->n;
    if (!take(rows.vectors, args->vectors, rows.n) || (!rows.out && rows.n)) return TANDEM_INVALID;
    F* const numbers[] = {&rows.alpha, &rows.beta, &rows.gamma, &rows.k1, &rows.k2, &rows.public_factor};
    for (size_t i = 0; i < 6; i++) std::memcpy(numbers[i], &args->numbers[i], sizeof(F));
    return enqueue(rows, stream);
}
#endif

}  // namespace plonk_rows
}  // namespace tandem
