#pragma once
// Poseidon by the optimised tables whose layout crates/ops/src/poseidon/tables.rs describes, and at width 3 by that of
// recurrence.rs beside it.
//
// The state of a wide hash lies in slots: `Slots` has `get(i)` and `set(i, x)`. On the device that is shared memory, one
// column for each thread, so that all loops can stay loops: the code is small, no register holds state between products,
// and what limits the rate is wide multiplications alone. The few cells of width 3 stay in registers, and loops over cells
// pass them on from one to the next.
#include "field.cuh"
#include "loops.cuh"

namespace tandem {
namespace poseidon {

/// A hash: cells of the state, rounds, and partial rounds of a block.
struct Shape {
    uint32_t width, full_rounds, partial_rounds, block;

    /// Slots that the state needs: all cells but cell 0, then the S-boxes' outputs of a block.
    TANDEM_HD uint32_t slots() const { return width - 1 + block; }
};

/// So many products of reduced elements can be added to a sum below p * 2^(32 N) before it reaches twice that.
template <class P> TANDEM_HD constexpr int products_between_subtractions() {
    return int((uint64_t(1) << 32) / (uint64_t(P::modulus().limb[P::N - 1]) + 1));
}

template <class P> TANDEM_HD Fp<P> load(const Fp<P>* from) {
#if defined(__CUDA_ARCH__)
    return load16_readonly(from);
#else
    return *from;
#endif
}

/// start + the sum of factors[i] * slot[first + i] for i < count, with one Montgomery reduction.
template <class P, class Slots>
TANDEM_HD_NOINLINE Fp<P> dot(Fp<P> start, const Fp<P>* factors, Slots slots, uint32_t first, uint32_t count) {
    constexpr int N = P::N;
    constexpr int STEP = products_between_subtractions<P>();
    static_assert(STEP >= 1, "a sum of p * 2^(32 N) and one product must be below twice p * 2^(32 N)");
    // start * 2^(32 N) becomes `start` in the reduction.
    Wide<P> sum;
    TANDEM_UNROLL for (int i = 0; i < N; i++) {
        sum.limb[i] = 0;
        sum.limb[N + i] = start.limb[i];
    }
    uint32_t i = 0;
    TANDEM_LOOP for (; i + STEP <= count; i += STEP) {
        TANDEM_UNROLL for (int k = 0; k < STEP; k++) {
            sum = sum + Wide<P>::mul(load(factors + i + k), slots.get(first + i + k));
        }
        limbs::reduce_once<P>(sum.limb + N);
    }
    TANDEM_LOOP for (; i < count; i++) sum = sum + Wide<P>::mul(load(factors + i), slots.get(first + i));
    limbs::reduce_once<P>(sum.limb + N);
    return sum.reduce();
}

/// (x + c)^5
template <class P> TANDEM_HD_NOINLINE Fp<P> s_box(Fp<P> x, Fp<P> c) {
    x = x + c;
    return x * x.sqr().sqr();
}

/// Multiplies the state by a matrix, given by its triangles, and then, with `constants`, passes it through the S-boxes.
template <class P, class Slots>
TANDEM_HD void multiply(const Fp<P>* factors, const Fp<P>* constants, Slots slots, uint32_t width) {
    TANDEM_LOOP for (uint32_t i = 0; i < width; i++) {
        slots.set(i, dot<P>(Fp<P>::zero(), factors, slots, i, width - i));
        factors += width - i;
    }
    // A cell is done when the rows below it are.
    TANDEM_LOOP for (uint32_t i = width; i-- > 0;) {
        Fp<P> x = dot<P>(slots.get(i), factors, slots, 0, i);
        factors += i;
        if (constants) x = s_box<P>(x, load(constants + i));
        slots.set(i, x);
    }
}

/// The hash of the inputs in the slots 0 to width - 2.
template <class P, class Slots> TANDEM_HD Fp<P> hash(Shape shape, const Fp<P>* table, Slots slots) {
    const uint32_t t = shape.width, half = shape.full_rounds / 2;
    const Fp<P>* constants = table;
    const Fp<P>* triangles = constants + shape.full_rounds * t;
    const Fp<P>* before_partial = triangles + t * t;
    const Fp<P>* last = before_partial + t * t;
    const Fp<P>* partial = last + t;

    slots.set(t - 1, Fp<P>::zero());
    TANDEM_LOOP for (uint32_t round = 0; round < shape.full_rounds; round++) {
        // Rounds whose S-boxes follow a matrix have passed them there.
        if (round == 0 || round == half) {
            TANDEM_LOOP for (uint32_t i = 0; i < t; i++) {
                slots.set(i, s_box<P>(slots.get(i), load(constants + round * t + i)));
            }
        }
        if (round + 1 == shape.full_rounds) break;
        const bool to_partial = round + 1 == half;
        multiply<P>(to_partial ? before_partial : triangles, to_partial ? nullptr : constants + (round + 1) * t, slots,
                    t);
        if (!to_partial) continue;

        TANDEM_LOOP for (uint32_t left = shape.partial_rounds; left > 0;) {
            const uint32_t rounds = left < shape.block ? left : shape.block;
            left -= rounds;
            Fp<P> cell = slots.get(t - 1);
            TANDEM_LOOP for (uint32_t r = 0; r < rounds; r++) {
                slots.set(t - 1 + r, s_box<P>(cell, load(partial)));
                cell = dot<P>(Fp<P>::zero(), partial + 1, slots, 0, t + r);
                partial += 1 + t + r;
            }
            TANDEM_LOOP for (uint32_t i = 0; i + 1 < t; i++) {
                slots.set(i, dot<P>(slots.get(i), partial, slots, t - 1, rounds));
                partial += rounds;
            }
            slots.set(t - 1, cell);
        }
    }
    return dot<P>(Fp<P>::zero(), last, slots, 0, t);
}

/// start + the sum of the values times their factors, which are the next of the table, with one Montgomery reduction.
template <class P, class... Values> TANDEM_HD Fp<P> next_sum(const Fp<P>*& table, Fp<P> start, Values... values) {
    constexpr int N = P::N, COUNT = sizeof...(values), STEP = products_between_subtractions<P>();
    const Fp<P> list[] = {values...};
    Wide<P> sum;
    TANDEM_UNROLL for (int i = 0; i < N; i++) {
        sum.limb[i] = 0;
        sum.limb[N + i] = start.limb[i];
    }
    TANDEM_UNROLL for (int i = 0; i < COUNT; i++) {
        sum = sum + Wide<P>::mul(load(table++), list[i]);
        if ((i + 1) % STEP == 0 || i + 1 == COUNT) limbs::reduce_once<P>(sum.limb + N);
    }
    return sum.reduce();
}

/// The hash of two inputs at width 3.
template <class P>
TANDEM_HD Fp<P> hash3(uint32_t full_rounds, uint32_t partial_rounds, const Fp<P>* table, Fp<P> a, Fp<P> b) {
    Fp<P> c = Fp<P>::zero();
    auto shift_in = [&](Fp<P> x) {
        a = b;
        b = c;
        c = x;
    };
    TANDEM_LOOP for (uint32_t round = 1;; round++) {
        TANDEM_LOOP for (int i = 0; i < 3; i++) shift_in(s_box<P>(a, load(table++)));
        if (round == full_rounds) break;
        const bool to_partial = round == full_rounds / 2;
        const Fp<P> y[] = {a, b, c};
        TANDEM_LOOP for (int sums = to_partial ? 2 : 3; sums > 0; sums--)
            shift_in(next_sum<P>(table, y[0], y[1], y[2]));
        if (!to_partial) continue;

        // The S-boxes' inputs and outputs, those of the round at hand, of the one before, and of the one before that.
        Fp<P> u = c, u1 = b, y1 = a, y2 = Fp<P>::zero();
        TANDEM_LOOP for (uint32_t left = partial_rounds; left > 0; left--) {
            const Fp<P> y0 = s_box<P>(u, load(table++));
            // After the last round, all cells.
            TANDEM_LOOP for (int sums = left > 1 ? 1 : 3; sums > 0; sums--)
                shift_in(next_sum<P>(table, y0, u, u1, y1, y2));
            u1 = u;
            u = c;
            y2 = y1;
            y1 = y0;
        }
    }
    return next_sum<P>(table, Fp<P>::zero(), a, b, c);
}

}  // namespace poseidon
}  // namespace tandem
