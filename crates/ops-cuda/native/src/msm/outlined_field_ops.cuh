#pragma once
// A field whose products are called and not inlined. An addition of points has ten of them; in fields of many limbs
// that is more code than the instruction cache holds, and minutes of compilation.
#include "tandem/curve.cuh"

namespace tandem {
namespace msm {

template <class F> TANDEM_HD_NOINLINE F called_mul(F a, F b) { return a * b; }
template <class F> TANDEM_HD_NOINLINE F called_sqr(F a) { return a.sqr(); }
template <class F> TANDEM_HD_NOINLINE F called_mul_sub(F a, F b, F c, F d) { return tandem::mul_sub(a, b, c, d); }

/// The layout of F, and those of its functions that points need.
template <class F> struct alignas(16) Called {
    F value;

    static TANDEM_HD Called zero() { return {F::zero()}; }
    static TANDEM_HD Called one() { return {F::one()}; }
    TANDEM_HD bool is_zero() const { return value.is_zero(); }
    friend TANDEM_HD bool operator==(Called a, Called b) { return a.value == b.value; }
    friend TANDEM_HD Called operator+(Called a, Called b) { return {a.value + b.value}; }
    friend TANDEM_HD Called operator-(Called a, Called b) { return {a.value - b.value}; }
    friend TANDEM_HD Called operator*(Called a, Called b) { return {called_mul<F>(a.value, b.value)}; }
    TANDEM_HD Called& operator*=(Called b) { return *this = *this * b; }
    TANDEM_HD Called sqr() const { return {called_sqr<F>(value)}; }
    TANDEM_HD Called dbl() const { return {value.dbl()}; }
    TANDEM_HD Called neg() const { return {value.neg()}; }
    TANDEM_HD Called inverse() const { return {value.inverse()}; }
};

/// a * b - c * d, found before the one in curve.cuh.
template <class P>
TANDEM_HD Called<Fp<P>> mul_sub(Called<Fp<P>> a, Called<Fp<P>> b, Called<Fp<P>> c, Called<Fp<P>> d) {
    return {called_mul_sub<Fp<P>>(a.value, b.value, c.value, d.value)};
}
/// a * b - c * d in Fp2, where four arguments cost more than merged reductions save.
template <class P>
TANDEM_HD Called<Fp2<P>> mul_sub(Called<Fp2<P>> a, Called<Fp2<P>> b, Called<Fp2<P>> c, Called<Fp2<P>> d) {
    return a * b - c * d;
}

}  // namespace msm
}  // namespace tandem
