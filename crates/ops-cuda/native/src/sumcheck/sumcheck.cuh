#pragma once
// Rounds of a sumcheck (crates/ops/src/sumcheck/mod.rs, docs/design/sumcheck.md): values of a round's polynomial, and tables or rows bound to
// a challenge with the values of the round after, each element read once.
//
//   rows before, n      low half | high half        a thread takes the rows i, i + n/4, i + n/2, i + 3n/4, and makes
//   rows after, n / 2   low + r (high - low)        the rows i, i + n/4, a pair of the round after: it adds their product's values
//                                                   where rows come from rows, it overwrites the two behind them with zeros
//
// A thread alone reads and writes its rows, so that rows are bound in place. It adds products unreduced; its values, those of its block, and
// those of all blocks are added by trees. The block that comes last adds those of all; no thread waits for another block.
#include "fields.cuh"
#include "tandem/loops.cuh"
#include "tandem_ops.h"

#include <type_traits>

namespace tandem {
namespace sumcheck {

/// A round's polynomial of degree D: its values at 0, 1, .. D - 1 in these places, without that at 1 where it follows from the round before, and
/// in place D its leading coefficient; of degree 1 the values at 0 and at 1.
template <class F, int D, bool ALL> struct Sums {
    F at[D + 1];

    static TANDEM_HD Sums zero() {
        Sums r;
        TANDEM_UNROLL for (int t = 0; t <= D; t++) r.at[t] = F::zero();
        return r;
    }
};

/// A thread's part of them, in registers: of degree 1 a sum of elements, else of products.
template <class F, int D, bool ALL> struct Totals {
    /// Whether there is a place 1.
    static constexpr bool HAS_ONE = ALL;
    /// Whether code for a product is so long that loops over them stay loops.
    static constexpr bool LOOPS = false;
    std::conditional_t<D == 1, ElementsSum<F>, ProductsSum<F>> at[D + 1];

    static TANDEM_HD Totals zero() {
        Totals r;
        TANDEM_UNROLL for (auto& sum : r.at) sum = sum.zero();
        return r;
    }
    TANDEM_HD void add(int t, F x) { at[t].add(x); }
    TANDEM_HD void add(int t, F x, F y) { at[t].add(x, y); }
    TANDEM_HD Sums<F, D, ALL> sums() const {
        Sums<F, D, ALL> r;
        TANDEM_UNROLL for (int t = 0; t <= D; t++) r.at[t] = at[t].value();
        return r;
    }
};

/// A line, at 0 and then from place to place.
template <class F> struct Line {
    F at, leading;

    TANDEM_HD void next() { at += leading; }
};

/// The product of two lines, at 0 and then from place to place by differences: three products for all places.
template <class F> struct Quadratic {
    F at, leading, difference, second;

    Quadratic() = default;
    TANDEM_HD Quadratic(F x, F x_step, F y, F y_step)
        : at(x * y), leading(x_step * y_step), difference((x + x_step) * (y + y_step) - at), second(leading + leading) {
    }
    TANDEM_HD void next() {
        at += difference;
        difference += second;
    }
};

/// Adds the product of two polynomials, of degree D together.
template <int D, class A, class B, class To> TANDEM_HD void add_places(A a, B b, To& to) {
    to.add(D, a.leading, b.leading);
    const auto place = [&](int t) {
        if (t > 0) {
            a.next();
            b.next();
        }
        if (t != 1 || To::HAS_ONE) to.add(t, a.at, b.at);
    };
    if constexpr (To::LOOPS) {
        TANDEM_LOOP for (int t = 0; t < D; t++) place(t);
    } else {
        TANDEM_UNROLL for (int t = 0; t < D; t++) place(t);
    }
}

/// Adds the product of the lines that are low at 0 and low + step at 1. The leading coefficient takes no sums of steps, and lines in pairs take
/// fewer products than one by one.
template <class F, int D, class To> TANDEM_HD void add_products(const F (&low)[D], const F (&step)[D], To& to) {
    static_assert(D >= 1 && D <= 4, "one to four tables");
    if constexpr (D == 1) {
        to.add(0, low[0]);
        if (To::HAS_ONE) to.add(1, low[0] + step[0]);
    } else if constexpr (D == 2) {
        add_places<D>(Line<F>{low[0], step[0]}, Line<F>{low[1], step[1]}, to);
    } else {
        const Quadratic<F> pair(low[0], step[0], low[1], step[1]);
        if constexpr (D == 3) {
            add_places<D>(pair, Line<F>{low[2], step[2]}, to);
        } else {
            add_places<D>(pair, Quadratic<F>(low[2], step[2], low[3], step[3]), to);
        }
    }
}

/// What is in place t, 0 to TANDEM_SUMCHECK_VALUES - 1, as it leaves a kernel: zero where there is none.
template <class S, int D, bool ALL, class F> TANDEM_HD typename S::Ext value(const Sums<F, D, ALL>& sums, int t) {
    return t > D ? S::Ext::zero() : S::reduced(S::lift(sums.at[t]));
}

/// Tables one by one, of n elements.
template <class S, int D> struct Tables {
    const typename S::Base* table[D];
    uint64_t n;
    TANDEM_HD typename S::Base element(uint64_t i, int j) const { return table[j][i]; }
    /// Tables are the caller's.
    TANDEM_HD void wipe(uint64_t, int) const {}
};

/// n rows of an element of each table.
template <class S, int D> struct Rows {
    typename S::Ext* row;
    uint64_t n;
    TANDEM_HD typename S::Ext element(uint64_t i, int j) const { return row[i * D + j]; }
    TANDEM_HD void wipe(uint64_t i, int j) const { row[i * D + j] = S::Ext::zero(); }
};

/// Adds what rows i and i + n/2 of tables give to the first round, all of its values.
template <class S, int D, class To> TANDEM_HD void add_pair(const Tables<S, D>& tables, uint64_t i, To& to) {
    typename S::Base low[D], step[D];
    TANDEM_UNROLL for (int j = 0; j < D; j++) {
        low[j] = tables.element(i, j);
        step[j] = tables.element(i + tables.n / 2, j) - low[j];
    }
    add_products(low, step, to);
}

/// Binds what becomes the rows i and i + n/4, and adds what these give to the round after, all values but that at 1.
template <class S, int D, class From, class To>
TANDEM_HD void bind_rows(const From& from, typename S::Ext* rows, typename S::Ext r, uint64_t i, To& to) {
    using Ext = typename S::Ext;
    const uint64_t quarter = from.n / 4;
    const auto bind = [&](int j, Ext& low, Ext& high) {
        low = S::line(r, from.element(i, j), from.element(i + 2 * quarter, j));
        high = S::line(r, from.element(i + quarter, j), from.element(i + 3 * quarter, j));
    };
    const auto store = [&](int j, Ext low, Ext high) {
        rows[i * D + j] = S::reduced(low);
        rows[(i + quarter) * D + j] = S::reduced(high);
        from.wipe(i + 2 * quarter, j);
        from.wipe(i + 3 * quarter, j);
    };
    if constexpr (D == 4 && To::LOOPS) {
        Quadratic<Ext> a, b;
        TANDEM_LOOP for (int j = 0; j < D; j += 2) {
            Ext low[2], high[2];
            TANDEM_UNROLL for (int k = 0; k < 2; k++) bind(j + k, low[k], high[k]);
            TANDEM_UNROLL for (int k = 0; k < 2; k++) store(j + k, low[k], high[k]);
            a = b;
            b = Quadratic<Ext>(low[0], high[0] - low[0], low[1], high[1] - low[1]);
        }
        add_places<D>(a, b, to);
    } else {
        Ext low[D], step[D];
        // All is read before anything is written, so that the loads are under way at once.
        TANDEM_UNROLL for (int j = 0; j < D; j++) bind(j, low[j], step[j]);
        TANDEM_UNROLL for (int j = 0; j < D; j++) {
            store(j, low[j], step[j]);
            step[j] = step[j] - low[j];
        }
        add_products(low, step, to);
    }
}

/// Threads that have something to do: one a pair of rows of the round whose values are wanted.
TANDEM_HD uint64_t pairs(uint32_t op, uint64_t n) { return op == TANDEM_SUMCHECK_SUMS ? n / 2 : n / 4; }

}  // namespace sumcheck
}  // namespace tandem
