#pragma once
// Fp2 with products that are called and not inlined. An addition of points has ten of them; for a field of 12 limbs
// that would be more code than an instruction cache holds, and minutes of compilation.
#include "tandem/curve.cuh"

namespace tandem {
namespace msm {

template <class P> TANDEM_HD_NOINLINE Fp2<P> called_mul(Fp2<P> a, Fp2<P> b) { return a * b; }
template <class P> TANDEM_HD_NOINLINE Fp2<P> called_sqr(Fp2<P> a) { return a.sqr(); }

/// The layout and the functions of Fp2.
template <class P> struct alignas(16) CalledFp2 {
    Fp2<P> value;

    static TANDEM_HD CalledFp2 zero() { return {Fp2<P>::zero()}; }
    static TANDEM_HD CalledFp2 one() { return {Fp2<P>::one()}; }
    TANDEM_HD bool is_zero() const { return value.is_zero(); }
    friend TANDEM_HD bool operator==(CalledFp2 a, CalledFp2 b) { return a.value == b.value; }
    friend TANDEM_HD CalledFp2 operator+(CalledFp2 a, CalledFp2 b) { return {a.value + b.value}; }
    friend TANDEM_HD CalledFp2 operator-(CalledFp2 a, CalledFp2 b) { return {a.value - b.value}; }
    friend TANDEM_HD CalledFp2 operator*(CalledFp2 a, CalledFp2 b) { return {called_mul<P>(a.value, b.value)}; }
    TANDEM_HD CalledFp2& operator*=(CalledFp2 b) { return *this = *this * b; }
    TANDEM_HD CalledFp2 sqr() const { return {called_sqr<P>(value)}; }
    TANDEM_HD CalledFp2 dbl() const { return {value.dbl()}; }
    TANDEM_HD CalledFp2 neg() const { return {value.neg()}; }
    TANDEM_HD CalledFp2 inverse() const { return {value.inverse()}; }
};

/// a * b - c * d, found before the one in curve.cuh. Calls cost less than what merged reductions would save.
template <class P>
TANDEM_HD CalledFp2<P> mul_sub(CalledFp2<P> a, CalledFp2<P> b, CalledFp2<P> c, CalledFp2<P> d) {
    return a * b - c * d;
}

}  // namespace msm
}  // namespace tandem
