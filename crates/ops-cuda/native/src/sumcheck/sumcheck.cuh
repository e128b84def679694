#pragma once
// Rounds of a sumcheck (crates/ops/src/sumcheck/mod.rs, docs/design/sumcheck.md): the values of a round's polynomial, and tables or rows bound to
// a challenge with the values of the round after, each element read once.
//
//   rows before, n      low half | high half        a thread takes the rows i, i + n/4, i + n/2, i + 3n/4, and makes
//   rows after, n / 2   low + r (high - low)        the rows i, i + n/4, a pair of the round after: it adds their product's values
//
// A thread alone reads and writes its rows, so that rows are bound in place. Its values, those of its block, and those of all blocks are added by
// trees. The block that comes last adds those of all; no thread waits for another block.
#include "fields.cuh"
#include "tandem_ops.h"

namespace tandem {
namespace sumcheck {

/// Values of a round's polynomial of degree D, that at t in place t: all of them, or all but that at 1, which follows from the round before.
template <class F, int D, bool ALL> struct Sums {
    F at[D + 1];

    static TANDEM_HD Sums zero() {
        Sums r;
        TANDEM_UNROLL for (int t = 0; t <= D; t++) r.at[t] = F::zero();
        return r;
    }
    TANDEM_HD void add(int t, F x) { at[t] += x; }
};

/// Adds to the values of a round those of the product of the lines that begin at x and go up by `step`; `to` adds one at t.
template <bool ALL, class F, int D, class To> TANDEM_HD void add_products(F (&x)[D], const F (&step)[D], To& to) {
    TANDEM_UNROLL for (int t = 0; t <= D; t++) {
        if (t > 0) {
            TANDEM_UNROLL for (int j = 0; j < D; j++) x[j] += step[j];
        }
        if (t == 1 && !ALL) continue;
        F product = x[0];
        TANDEM_UNROLL for (int j = 1; j < D; j++) product = product * x[j];
        to.add(t, product);
    }
}

/// The value at t, 0 to TANDEM_SUMCHECK_VALUES - 1, as it leaves a kernel: zero where there is none.
template <class S, int D, bool ALL, class F> TANDEM_HD typename S::Ext value(const Sums<F, D, ALL>& sums, int t) {
    return t > D ? S::Ext::zero() : S::reduced(S::lift(sums.at[t]));
}

/// Tables one by one, of n elements.
template <class S, int D> struct Tables {
    const typename S::Base* table[D];
    uint64_t n;
    TANDEM_HD typename S::Base element(uint64_t i, int j) const { return table[j][i]; }
};

/// n rows of an element of each table.
template <class S, int D> struct Rows {
    const typename S::Ext* row;
    uint64_t n;
    TANDEM_HD typename S::Ext element(uint64_t i, int j) const { return row[i * D + j]; }
};

/// Adds what rows i and i + n/2 of tables give to the first round, all of its values.
template <class S, int D, class To> TANDEM_HD void add_pair(const Tables<S, D>& tables, uint64_t i, To& to) {
    typename S::Base low[D], step[D];
    TANDEM_UNROLL for (int j = 0; j < D; j++) {
        low[j] = tables.element(i, j);
        step[j] = tables.element(i + tables.n / 2, j) - low[j];
    }
    add_products<true>(low, step, to);
}

/// Binds what becomes the rows i and i + n/4, and adds what these give to the round after, all values but that at 1.
template <class S, int D, class From, class To>
TANDEM_HD void bind_rows(const From& from, typename S::Ext* rows, typename S::Ext r, uint64_t i, To& to) {
    const uint64_t quarter = from.n / 4;
    typename S::Ext low[D], step[D];
    // All is read before anything is written, so that the loads are under way at once.
    TANDEM_UNROLL for (int j = 0; j < D; j++) {
        low[j] = S::line(r, from.element(i, j), from.element(i + 2 * quarter, j));
        step[j] = S::line(r, from.element(i + quarter, j), from.element(i + 3 * quarter, j));
    }
    TANDEM_UNROLL for (int j = 0; j < D; j++) {
        rows[i * D + j] = S::reduced(low[j]);
        rows[(i + quarter) * D + j] = S::reduced(step[j]);
        step[j] = step[j] - low[j];
    }
    add_products<false>(low, step, to);
}

/// Threads that have something to do: one a pair of rows of the round whose values are wanted.
TANDEM_HD uint64_t pairs(uint32_t op, uint64_t n) { return op == TANDEM_SUMCHECK_SUMS ? n / 2 : n / 4; }

}  // namespace sumcheck
}  // namespace tandem
