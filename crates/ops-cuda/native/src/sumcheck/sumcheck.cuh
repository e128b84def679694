#pragma once
// Rounds of a sumcheck (crates/ops/src/sumcheck/mod.rs, docs/design/sumcheck.md): values of a round's polynomial, and tables or columns bound to
// a challenge with the values of the round after, each element read once.
//
//   before, n      low half | high half        a thread takes the elements i, i + n/4, i + n/2, i + 3n/4 of each table, and makes
//   after, n / 2   low + r (high - low)        i and i + n/4, a pair of the round after: it adds their product's values
//
// What comes out of a table is a column, of which the first numbers live. Threads that are neighbours read and write neighbours. A thread alone
// reads and writes its numbers, so that they are bound in place; of four tables two threads share them. It adds products unreduced; its
// values, those of its block, and those of all blocks are added by trees. The block that comes last adds those of all; no thread waits
// for another block.
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
    /// Of the first two tables, or of the two behind them.
    TANDEM_HD typename S::Base half_element(uint64_t i, bool second, int j) const {
        return (second ? table[2 + j] : table[j])[i];
    }
};

/// A column of numbers for each table, `stride` apart, of which the first n live.
template <class S, int D> struct Columns {
    typename S::Ext* column;
    uint64_t stride, n;
    TANDEM_HD typename S::Ext& at(uint64_t i, int j) const { return column[j * stride + i]; }
    TANDEM_HD typename S::Ext element(uint64_t i, int j) const { return at(i, j); }
    TANDEM_HD typename S::Ext half_element(uint64_t i, bool second, int j) const {
        return element(i, second ? 2 + j : j);
    }
};

/// Adds what the elements i and i + n/2 of tables give to the first round, all of its values.
template <class S, int D, class To> TANDEM_HD void add_pair(const Tables<S, D>& tables, uint64_t i, To& to) {
    typename S::Base low[D], step[D];
    TANDEM_UNROLL for (int j = 0; j < D; j++) {
        low[j] = tables.element(i, j);
        step[j] = tables.element(i + tables.n / 2, j) - low[j];
    }
    add_products(low, step, to);
}

/// Binds what becomes i and i + n/4 of the columns, and adds what these give to the round after, all values but that at 1.
template <class S, int D, class From, class To>
TANDEM_HD void bind_pair(const From& from, const Columns<S, D>& columns, typename S::Ext r, uint64_t i, To& to) {
    const uint64_t quarter = from.n / 4;
    typename S::Ext low[D], step[D];
    // All is read before anything is written, so that the loads are under way at once.
    TANDEM_UNROLL for (int j = 0; j < D; j++) {
        low[j] = S::line(r, from.element(i, j), from.element(i + 2 * quarter, j));
        step[j] = S::line(r, from.element(i + quarter, j), from.element(i + 3 * quarter, j));
    }
    TANDEM_UNROLL for (int j = 0; j < D; j++) {
        columns.at(i, j) = S::reduced(low[j]);
        columns.at(i + quarter, j) = S::reduced(step[j]);
        step[j] = step[j] - low[j];
    }
    add_products(low, step, to);
}

/// Whether two threads share a pair that is bound: four tables of large numbers leave no registers for what one thread would add up.
template <class S, int D> constexpr bool IS_SHARED = D == 4 && sizeof(typename S::Ext) > 16;

/// What a thread of two that share a pair of four tables has of places of the product of its two tables: of those that it adds up, and of those
/// that the other one does. The first thread has the tables 0 and 1 and adds up the places 0 and 4; the second has 2 and 3, and adds up 2 and 3.
template <class F> struct Half {
    F mine[2], others[2];

    static TANDEM_HD Half zero() { return {{F::zero(), F::zero()}, {F::zero(), F::zero()}}; }
    static TANDEM_HD Half of(Quadratic<F> product, bool second) {
        F at[4] = {product.at, product.leading};
        product.next();
        product.next();
        at[2] = product.at;
        product.next();
        at[3] = product.at;
        Half r;
        TANDEM_UNROLL for (int k = 0; k < 2; k++) {
            r.mine[k] = pick(second, at[k], at[2 + k]);
            r.others[k] = pick(second, at[2 + k], at[k]);
        }
        return r;
    }

  private:
    static TANDEM_HD F pick(bool second, F a, F b) {
        F r;
        TANDEM_UNROLL for (int i = 0; i < F::N; i++) r.limb[i] = second ? b.limb[i] : a.limb[i];
        return r;
    }
};

/// What it adds up.
template <class F> struct HalfTotals {
    ProductsSum<F> at[2];

    static TANDEM_HD HalfTotals zero() { return {{ProductsSum<F>::zero(), ProductsSum<F>::zero()}}; }
    /// `others` are those of the other thread.
    TANDEM_HD void add(const F (&mine)[2], const F (&others)[2]) {
        TANDEM_UNROLL for (int k = 0; k < 2; k++) at[k].add(mine[k], others[k]);
    }
    TANDEM_HD Sums<F, 4, false> sums(bool second) const {
        auto r = Sums<F, 4, false>::zero();
        const F x = at[0].value(), y = at[1].value();
        if (second) {
            r.at[2] = x;
            r.at[3] = y;
        } else {
            r.at[0] = x;
            r.at[4] = y;
        }
        return r;
    }
};

/// Binds what becomes i and i + n/4 of two tables' columns.
template <class S, class From>
TANDEM_HD Half<typename S::Ext> bind_half(const From& from, const Columns<S, 4>& columns, typename S::Ext r, uint64_t i,
                                          bool second) {
    using Ext = typename S::Ext;
    const uint64_t quarter = from.n / 4;
    Ext low[2], high[2];
    TANDEM_UNROLL for (int j = 0; j < 2; j++) {
        const auto element = [&](int k) { return from.half_element(i + k * quarter, second, j); };
        low[j] = S::line(r, element(0), element(2));
        high[j] = S::line(r, element(1), element(3));
    }
    TANDEM_UNROLL for (int j = 0; j < 2; j++) {
        columns.at(i, 2 * second + j) = low[j];
        columns.at(i + quarter, 2 * second + j) = high[j];
    }
    return Half<Ext>::of(Quadratic<Ext>(low[0], high[0] - low[0], low[1], high[1] - low[1]), second);
}

/// Pairs of the round whose values are wanted.
TANDEM_HD uint64_t pairs(uint32_t op, uint64_t n) { return op == TANDEM_SUMCHECK_SUMS ? n / 2 : n / 4; }

}  // namespace sumcheck
}  // namespace tandem
