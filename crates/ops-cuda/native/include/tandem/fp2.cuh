#pragma once
// The quadratic extension Fp[u] / (u^2 + 1), which both curves use.
#include "field.cuh"

namespace tandem {

template <class P> struct Wide2;

/// c0 + c1 * u with u^2 = -1.
template <class P> struct alignas(16) Fp2 {
    using Params = P;
    using Base = Fp<P>;
    using WideType = Wide2<P>;
    Base c0, c1;

    static TANDEM_HD Fp2 zero() { return {Base::zero(), Base::zero()}; }
    static TANDEM_HD Fp2 one() { return {Base::one(), Base::zero()}; }
    TANDEM_HD bool is_zero() const { return c0.is_zero() && c1.is_zero(); }
    friend TANDEM_HD bool operator==(Fp2 a, Fp2 b) { return a.c0 == b.c0 && a.c1 == b.c1; }
    friend TANDEM_HD bool operator!=(Fp2 a, Fp2 b) { return !(a == b); }

    friend TANDEM_HD Fp2 operator+(Fp2 a, Fp2 b) { return {a.c0 + b.c0, a.c1 + b.c1}; }
    friend TANDEM_HD Fp2 operator-(Fp2 a, Fp2 b) { return {a.c0 - b.c0, a.c1 - b.c1}; }
    friend TANDEM_HD Fp2 operator*(Fp2 a, Fp2 b) { return Wide2<P>::mul(a, b).reduce(); }
    TANDEM_HD Fp2& operator+=(Fp2 b) { return *this = *this + b; }
    TANDEM_HD Fp2& operator-=(Fp2 b) { return *this = *this - b; }
    TANDEM_HD Fp2& operator*=(Fp2 b) { return *this = *this * b; }

    /// (c0 + c1)(c0 - c1) + 2 c0 c1 u.
    TANDEM_HD Fp2 sqr() const { return {Base::add_lazy(c0, c1) * (c0 - c1), (c0 * c1).dbl()}; }
    TANDEM_HD Fp2 dbl() const { return {c0.dbl(), c1.dbl()}; }
    TANDEM_HD Fp2 neg() const { return {c0.neg(), c1.neg()}; }

    TANDEM_HD Fp2 to_canonical() const { return {c0.to_canonical(), c1.to_canonical()}; }
    static TANDEM_HD Fp2 from_canonical(Fp2 a) { return {Base::from_canonical(a.c0), Base::from_canonical(a.c1)}; }

    /// 1 / value = (c0 - c1 u) / (c0^2 + c1^2), and 0 for 0.
    TANDEM_HD_NOINLINE Fp2 inverse() const {
        Base norm = (Wide<P>::sqr(c0) + Wide<P>::sqr(c1)).reduce().inverse();
        return {c0 * norm, c1.neg() * norm};
    }
};

/// A product in Fp2, or a difference of two, before its two Montgomery reductions: three base products by Karatsuba.
template <class P> struct alignas(16) Wide2 {
    Wide<P> c0, c1;

    static TANDEM_HD Wide2 mul(Fp2<P> a, Fp2<P> b) {
        // The lazy sums are below 2p and their product below 4p^2, which must fit the double width.
        static_assert(P::BITS + 2 <= 32 * P::N, "no room for lazy sums");
        Wide<P> v0 = Wide<P>::mul(a.c0, b.c0);
        Wide<P> v1 = Wide<P>::mul(a.c1, b.c1);
        Wide<P> sums = Wide<P>::mul(Fp<P>::add_lazy(a.c0, a.c1), Fp<P>::add_lazy(b.c0, b.c1));
        Wide<P> cross = Wide<P>::sub_exact(Wide<P>::sub_exact(sums, v0), v1);
        return {v0 - v1, cross};
    }
    friend TANDEM_HD Wide2 operator-(Wide2 a, Wide2 b) { return {a.c0 - b.c0, a.c1 - b.c1}; }
    TANDEM_HD Fp2<P> reduce() const { return {c0.reduce(), c1.reduce()}; }
};

}  // namespace tandem
