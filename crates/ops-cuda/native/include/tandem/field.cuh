#pragma once
// Prime fields. An `Fp` holds value * 2^(32 N) mod p (Montgomery form), always below p.
//
// Arguments are passed by value: a reference into memory would have its limbs loaded one by one between the steps of a
// carry chain, and ptxas then makes two instructions of each product instead of one.
#include "inverse.cuh"
#include "limbs_device.cuh"
#include "limbs_host.cuh"

namespace tandem {

#if defined(__CUDA_ARCH__) || defined(TANDEM_EMULATE_PTX)
namespace limbs = limbs_device;
#else
namespace limbs = limbs_host;
#endif

template <class P> struct Wide;

/// An element of the prime field with parameters P (params.cuh). Limbs are little-endian, as in the Rust wire types.
template <class P> struct alignas(16) Fp {
    using Params = P;
    using WideType = Wide<P>;
    static constexpr int N = P::N;
    uint32_t limb[N];

    static TANDEM_HD Fp zero() {
        Fp r;
        TANDEM_UNROLL for (int i = 0; i < N; i++) r.limb[i] = 0;
        return r;
    }
    static TANDEM_HD Fp one() { return from_limbs(P::r()); }

    TANDEM_HD bool is_zero() const {
        uint32_t any = 0;
        TANDEM_UNROLL for (int i = 0; i < N; i++) any |= limb[i];
        return any == 0;
    }
    friend TANDEM_HD bool operator==(Fp a, Fp b) {
        uint32_t any = 0;
        TANDEM_UNROLL for (int i = 0; i < N; i++) any |= a.limb[i] ^ b.limb[i];
        return any == 0;
    }
    friend TANDEM_HD bool operator!=(Fp a, Fp b) { return !(a == b); }

    friend TANDEM_HD Fp operator+(Fp a, Fp b) {
        Fp r;
        limbs::add<N>(r.limb, a.limb, b.limb);
        limbs::reduce_once<P>(r.limb);
        return r;
    }
    friend TANDEM_HD Fp operator-(Fp a, Fp b) {
        constexpr Limbs<N> p = P::modulus();
        Fp r, add;
        uint32_t mask = limbs::sub<N>(r.limb, a.limb, b.limb);
        TANDEM_UNROLL for (int i = 0; i < N; i++) add.limb[i] = p.limb[i] & mask;
        limbs::add<N>(r.limb, r.limb, add.limb);
        return r;
    }
    friend TANDEM_HD Fp operator*(Fp a, Fp b) {
        Fp r;
        limbs::mont_mul<P>(r.limb, a.limb, b.limb);
        return r;
    }
    TANDEM_HD Fp& operator+=(Fp b) { return *this = *this + b; }
    TANDEM_HD Fp& operator-=(Fp b) { return *this = *this - b; }
    TANDEM_HD Fp& operator*=(Fp b) { return *this = *this * b; }

    TANDEM_HD Fp sqr() const { return Wide<P>::sqr(*this).reduce(); }
    TANDEM_HD Fp dbl() const { return *this + *this; }
    TANDEM_HD Fp neg() const { return zero() - *this; }

    /// a + b without reduction, as a factor of one product with a reduced factor.
    static TANDEM_HD Fp add_lazy(Fp a, Fp b) {
        Fp r;
        limbs::add<N>(r.limb, a.limb, b.limb);
        return r;
    }

    /// Montgomery product of raw limbs: a * b / 2^(32 N). A Mont2 value times a canonical one is in Montgomery form.
    static TANDEM_HD Fp mul2(Fp a, Fp b) { return a * b; }
    /// The integer that the element is, in the limbs of an Fp.
    TANDEM_HD Fp to_canonical() const {
        uint32_t wide[2 * N];
        TANDEM_UNROLL for (int i = 0; i < N; i++) {
            wide[i] = limb[i];
            wide[N + i] = 0;
        }
        Fp r;
        limbs::mont_reduce<P>(r.limb, wide);
        return r;
    }
    /// The element that an integer below p is.
    static TANDEM_HD Fp from_canonical(Fp integer) { return integer * from_limbs(P::r2()); }

    /// 1 / value, and 0 for 0.
    TANDEM_HD_NOINLINE Fp inverse() const {
        Limbs<N> raw;
        TANDEM_UNROLL for (int i = 0; i < N; i++) raw.limb[i] = limb[i];
        // value * 2^(32 N) has an inverse that lacks two factors of 2^(32 N).
        return from_canonical(from_canonical(from_limbs(divsteps::inverse<P>(raw))));
    }

  private:
    static TANDEM_HD Fp from_limbs(const Limbs<N>& from) {
        Fp r;
        TANDEM_UNROLL for (int i = 0; i < N; i++) r.limb[i] = from.limb[i];
        return r;
    }
};

/// A double-width integer: a product, or sums and differences of products, before its one Montgomery reduction.
/// `reduce` needs a value below p * 2^(32 N), in base fields half of that. As 2p < 2^(32 N) for every field here, and
/// 4p for base fields, a sum of two products of reduced elements is one.
template <class P> struct alignas(16) Wide {
    static constexpr int N = P::N;
    uint32_t limb[2 * N];

    /// a * b. Either factor may be a sum by `Fp::add_lazy`.
    static TANDEM_HD Wide mul(Fp<P> a, Fp<P> b) {
        Wide r;
        limbs::mul_wide<N>(r.limb, a.limb, b.limb);
        return r;
    }
    static TANDEM_HD Wide sqr(Fp<P> a) {
        Wide r;
        limbs::sqr_wide<N>(r.limb, a.limb);
        return r;
    }
    /// The sum as integers; the caller knows that it fits.
    friend TANDEM_HD Wide operator+(Wide a, Wide b) {
        Wide r;
        limbs::add<2 * N>(r.limb, a.limb, b.limb);
        return r;
    }
    /// The difference as integers; the caller knows that a >= b.
    static TANDEM_HD Wide sub_exact(Wide a, Wide b) {
        Wide r;
        limbs::sub<2 * N>(r.limb, a.limb, b.limb);
        return r;
    }
    /// a - b, plus p * 2^(32 N - 1) if that is negative. For a and b below p * 2^(32 N - 1), so is the result.
    friend TANDEM_HD Wide operator-(Wide a, Wide b) {
        constexpr Limbs<N> p = P::modulus();
        Wide r;
        uint32_t add[N + 1];
        const uint32_t mask = limbs::sub<2 * N>(r.limb, a.limb, b.limb);
        add[0] = p.limb[0] << 31 & mask;
        TANDEM_UNROLL for (int i = 1; i < N; i++) add[i] = (p.limb[i] << 31 | p.limb[i - 1] >> 1) & mask;
        add[N] = p.limb[N - 1] >> 1 & mask;
        limbs::add<N + 1>(r.limb + N - 1, r.limb + N - 1, add);
        return r;
    }
    TANDEM_HD Fp<P> reduce() const {
        Wide a = *this;
        Fp<P> r;
        limbs::mont_reduce<P>(r.limb, a.limb);
        return r;
    }
};

/// A sum of products of reduced elements of a scalar field. A reduction costs as much as a product, and one does for `MOST` of them:
/// their sum is below MOST p^2, and so below p * 2^(32 N).
template <class P> struct ProductSum {
    static constexpr uint32_t MOST = uint32_t((uint64_t(1) << 32) / (uint64_t(P::modulus().limb[P::N - 1]) + 1));
    static_assert(MOST >= 2, "there is room for the sum of two products");
    Fp<P> reduced = Fp<P>::zero();
    Wide<P> held;
    uint32_t count = 0;

    TANDEM_HD void add(Fp<P> a, Fp<P> b) {
        const Wide<P> product = Wide<P>::mul(a, b);
        held = count ? held + product : product;
        if (++count < MOST) return;
        reduced = total();
        count = 0;
    }
    TANDEM_HD Fp<P> total() const { return count ? reduced + held.reduce() : reduced; }
};

}  // namespace tandem
