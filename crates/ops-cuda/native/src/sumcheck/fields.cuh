#pragma once
// Fields of a sumcheck's tables (Base) and of its challenges (Ext), with what a round does to their elements.
#include "tandem/field.cuh"
#include "tandem/goldilocks.cuh"
#include "tandem/params.cuh"

namespace tandem {
namespace sumcheck {

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
        using G = Goldilocks;
        return {G::sum(G::product(a.c0, b.c0), G::product(7, G::product(a.c1, b.c1))),
                G::sum(G::product(a.c0, b.c1), G::product(a.c1, b.c0))};
    }
    TANDEM_HD Extended& operator+=(Extended b) { return *this = *this + b; }
};

/// Goldilocks: challenges are of its quadratic extension.
struct GoldilocksTables {
    using Base = Element;
    using Ext = Extended;
    static TANDEM_HD Ext lift(Base x) { return {x.x, 0}; }
    static TANDEM_HD Ext lift(Ext x) { return x; }
    static TANDEM_HD Ext line(Ext r, Base low, Base high) {
        const uint64_t step = difference(high.x, low.x);
        return {Goldilocks::sum(low.x, Goldilocks::product(r.c0, step)), Goldilocks::product(r.c1, step)};
    }
    static TANDEM_HD Ext line(Ext r, Ext low, Ext high) { return low + r * (high - low); }
    static TANDEM_HD Ext reduced(Ext x) { return {Goldilocks::reduce(x.c0), Goldilocks::reduce(x.c1)}; }
};

}  // namespace sumcheck
}  // namespace tandem
