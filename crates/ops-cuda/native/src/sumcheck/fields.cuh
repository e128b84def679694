#pragma once
// Fields of a sumcheck's tables (Base) and of its challenges (Ext), with what a round does to their elements.
#include "tandem/field.cuh"
#include "tandem/goldilocks.cuh"
#include "tandem/params.cuh"

namespace tandem {
namespace sumcheck {

/// A sum of elements.
template <class F> struct ElementsSum {
    F sum;
    static TANDEM_HD ElementsSum zero() { return {F::zero()}; }
    TANDEM_HD void add(F x) { sum += x; }
    TANDEM_HD F value() const { return sum; }
};

/// A sum of products of elements, reduced once, when it is read.
template <class F> struct ProductsSum;

/// Of a scalar field: an integer, of fewer than 2^32 products.
template <class P> struct ProductsSum<Fp<P>> {
    static constexpr int N = P::N;
    uint32_t limb[2 * N + 1];

    static TANDEM_HD ProductsSum zero() {
        ProductsSum r;
        TANDEM_UNROLL for (int i = 0; i <= 2 * N; i++) r.limb[i] = 0;
        return r;
    }
    TANDEM_HD void add(Fp<P> a, Fp<P> b) { add(Wide<P>::mul(a, b)); }
    TANDEM_HD void add(const Wide<P>& product) { limb[2 * N] += limbs::add<2 * N>(limb, limb, product.limb); }
    TANDEM_HD Fp<P> value() const {
        Wide<P> low;
        TANDEM_UNROLL for (int i = 0; i < 2 * N; i++) low.limb[i] = limb[i];
        // A reduction takes what is below p * 2^(32 N); this is below 2^(64 N).
        TANDEM_UNROLL for (uint32_t k = 0; k < ProductSum<P>::MOST; k++) limbs::reduce_once<P>(low.limb + N);
        // high * 2^(64 N), divided by 2^(32 N) as the rest is.
        Fp<P> high = Fp<P>::zero();
        high.limb[0] = limb[2 * N];
        return low.reduce() + Fp<P>::from_canonical(high);
    }
};

/// A scalar field: challenges are its elements.
template <class P> struct Scalars {
    using Base = Fp<P>;
    using Ext = Fp<P>;
    static TANDEM_HD Ext lift(Base x) { return x; }
    /// low + r * (high - low)
    static TANDEM_HD Ext line(Ext r, Base low, Base high) { return low + r * (high - low); }
    static TANDEM_HD Ext reduced(Ext x) { return x; }
};

/// a - b as any 64-bit number that is congruent to it, as sums and products of Goldilocks are.
TANDEM_HD uint64_t difference(uint64_t a, uint64_t b) {
    // With 2p, whose words are 2, 2^32 - 2 and 1, it is not negative.
    using G = Goldilocks;
    return G::fold(G::add(G::subtract(G::held(a), G::held(b)), {2, uint32_t(-2), 1}));
}

/// x as a 64-bit number, for a top of -2^28 or more: as many products' tops, each -1 or more, make.
TANDEM_HD uint64_t folded(Goldilocks::Held x) {
    // 2^28 p.
    constexpr int32_t FAR = 1 << 28;
    return Goldilocks::fold(Goldilocks::add(x, {uint32_t(FAR), uint32_t(-FAR), FAR - 1}));
}

/// 7 x, for a top below 2^28.
TANDEM_HD Goldilocks::Held times7(Goldilocks::Held x) {
    const Goldilocks::Held eight = {x.lo << 3, x.hi << 3 | x.lo >> 29, int32_t(uint32_t(x.top) << 3 | x.hi >> 29)};
    return Goldilocks::subtract(eight, x);
}

/// An element of Goldilocks.
struct Element {
    uint64_t x;
    static TANDEM_HD Element zero() { return {0}; }
    friend TANDEM_HD Element operator+(Element a, Element b) { return {Goldilocks::sum(a.x, b.x)}; }
    friend TANDEM_HD Element operator-(Element a, Element b) { return {difference(a.x, b.x)}; }
    friend TANDEM_HD Element operator*(Element a, Element b) { return {Goldilocks::product(a.x, b.x)}; }
    TANDEM_HD Element& operator+=(Element b) { return *this = *this + b; }
};

/// c0 + c1 X with X^2 = 7.
struct alignas(16) Extended {
    uint64_t c0, c1;
    static TANDEM_HD Extended zero() { return {0, 0}; }
    friend TANDEM_HD Extended operator+(Extended a, Extended b) {
        return {Goldilocks::sum(a.c0, b.c0), Goldilocks::sum(a.c1, b.c1)};
    }
    friend TANDEM_HD Extended operator-(Extended a, Extended b) {
        return {difference(a.c0, b.c0), difference(a.c1, b.c1)};
    }
    friend TANDEM_HD Extended operator*(Extended a, Extended b) {
        return {folded(product0(a, b)), folded(product1(a, b))};
    }
    TANDEM_HD Extended& operator+=(Extended b) { return *this = *this + b; }

    /// What is in c0 and in c1 of the product, whose tops are -8 to 15.
    static TANDEM_HD Goldilocks::Held product0(Extended a, Extended b) {
        using G = Goldilocks;
        return G::add(G::multiply(a.c0, b.c0), times7(G::multiply(a.c1, b.c1)));
    }
    static TANDEM_HD Goldilocks::Held product1(Extended a, Extended b) {
        using G = Goldilocks;
        return G::add(G::multiply(a.c0, b.c1), G::multiply(a.c1, b.c0));
    }
};

/// Of 2^24 products at the most, of which no thread has more.
template <> struct ProductsSum<Element> {
    Goldilocks::Held sum;
    static TANDEM_HD ProductsSum zero() { return {{0, 0, 0}}; }
    TANDEM_HD void add(Element a, Element b) { sum = Goldilocks::add(sum, Goldilocks::multiply(a.x, b.x)); }
    TANDEM_HD Element value() const { return {folded(sum)}; }
};

/// Of 2^24 products at the most.
template <> struct ProductsSum<Extended> {
    Goldilocks::Held c0, c1;
    static TANDEM_HD ProductsSum zero() { return {{0, 0, 0}, {0, 0, 0}}; }
    TANDEM_HD void add(Extended a, Extended b) {
        c0 = Goldilocks::add(c0, Extended::product0(a, b));
        c1 = Goldilocks::add(c1, Extended::product1(a, b));
    }
    TANDEM_HD Extended value() const { return {folded(c0), folded(c1)}; }
};

/// Goldilocks: challenges are of its quadratic extension.
struct GoldilocksTables {
    using Base = Element;
    using Ext = Extended;
    static TANDEM_HD Ext lift(Base x) { return {x.x, 0}; }
    static TANDEM_HD Ext lift(Ext x) { return x; }
    static TANDEM_HD Ext line(Ext r, Base low, Base high) {
        using G = Goldilocks;
        const uint64_t step = difference(high.x, low.x);
        return {folded(G::add(G::held(low.x), G::multiply(r.c0, step))), G::product(r.c1, step)};
    }
    static TANDEM_HD Ext line(Ext r, Ext low, Ext high) {
        using G = Goldilocks;
        const Ext step = high - low;
        return {folded(G::add(G::held(low.c0), Ext::product0(r, step))),
                folded(G::add(G::held(low.c1), Ext::product1(r, step)))};
    }
    static TANDEM_HD Ext reduced(Ext x) { return {Goldilocks::reduce(x.c0), Goldilocks::reduce(x.c1)}; }
};

}  // namespace sumcheck
}  // namespace tandem
