#pragma once
// What the gates and the permutation of PLONK say, generic over the scalar field. One thread for each row, in a loop over the grid.
#include "tandem/field.cuh"
#include "tandem/params.cuh"
#include "tandem_ops.h"

namespace tandem {
namespace plonk_rows {

// `BESIDE`: blocks on a multiprocessor at a time, at least. It bounds the registers of a thread.

/// Adds the products of a gate: (qm a + qr) b + ql a + qo c.
template <class F> TANDEM_HD void add_gate(ProductSum<typename F::Params>& sum, F a, F b, F c, F qm, F ql, F qr, F qo) {
    sum.add(qm * a + qr, b);
    sum.add(ql, a);
    sum.add(qo, c);
}

/// Values of the gates of n rows.
template <class F> struct Gates {
    static constexpr uint32_t BESIDE = 3;
    F* out;
    const F* columns[3];
    const F* selectors[5];
    uint64_t n;

    TANDEM_HD F row(uint64_t i) const {
        ProductSum<typename F::Params> sum;
        add_gate<F>(sum, columns[0][i], columns[1][i], columns[2][i], selectors[0][i], selectors[1][i], selectors[2][i],
                    selectors[3][i]);
        return sum.total() + selectors[4][i];
    }
};

/// What n rows give to one side of the grand product.
template <class F> struct Permuted {
    static constexpr uint32_t BESIDE = 4;
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
    static constexpr uint32_t BESIDE = 2;
    F* out;
    const F* vectors[15];
    F alpha, beta, gamma, k1, k2, public_factor, alpha_squared;
    uint64_t n;
    /// Whether k1 is 2 and k2 is 3, as nearly always: they are the least numbers that keep the columns' cosets apart.
    bool two_and_three;

    /// The numbers, in the order of tandem_quotient_rows_args.
    TANDEM_HD void set(const F (&numbers)[6]) {
        alpha = numbers[0];
        beta = numbers[1];
        gamma = numbers[2];
        k1 = numbers[3];
        k2 = numbers[4];
        public_factor = numbers[5];
        alpha_squared = alpha * alpha;
        const F two = F::one().dbl();
        two_and_three = k1 == two && k2 == two + F::one();
    }

    TANDEM_HD F row(uint64_t i) const {
        const F a = vectors[0][i], b = vectors[1][i], c = vectors[2][i], z = vectors[3][i];
        const F x = beta * vectors[13][i];
        const F of_b = two_and_three ? x.dbl() : k1 * x, of_c = two_and_three ? of_b + x : k2 * x;
        using Wide = typename F::WideType;
        const Wide own = Wide::mul((a + gamma + x) * (b + gamma + of_b), (c + gamma + of_c) * z);
        const F of_a_and_b = (a + gamma + beta * vectors[10][i]) * (b + gamma + beta * vectors[11][i]);
        const Wide next = Wide::mul(of_a_and_b, (c + gamma + beta * vectors[12][i]) * vectors[4][i]);
        ProductSum<typename F::Params> sum;
        sum.add(alpha, (own - next).reduce());
        // alpha^2 (Z - 1) L1, and the public value's.
        sum.add(alpha_squared * (z - F::one()) + public_factor, vectors[14][i]);
        add_gate<F>(sum, a, b, c, vectors[5][i], vectors[6][i], vectors[7][i], vectors[8][i]);
        return sum.total() + vectors[9][i];
    }
};

#if defined(__CUDACC__)
constexpr uint32_t BLOCK = 256;
/// Fills any GPU several times over; the loop over the grid takes the rest.
constexpr uint64_t BLOCKS = 4096;

template <class Rows> __global__ void __launch_bounds__(BLOCK, Rows::BESIDE) kernel(const Rows rows) {
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
    F numbers[6];
    std::memcpy(numbers, args->numbers, sizeof numbers);
    rows.set(numbers);
    return enqueue(rows, stream);
}
#endif

}  // namespace plonk_rows
}  // namespace tandem
