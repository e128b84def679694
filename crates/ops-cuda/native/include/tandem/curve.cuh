#pragma once
// Points of y^2 = x^3 + b. No formula here needs b. Formulas: hyperelliptic.org/EFD, short Weierstrass, a = 0.
#include "fp2.cuh"

namespace tandem {

/// a * b - c * d with merged reductions.
template <class F> TANDEM_HD F mul_sub(F a, F b, F c, F d) {
    using W = typename F::WideType;
    return (W::mul(a, b) - W::mul(c, d)).reduce();
}

/// An affine point; infinity is all zero, which is on none of the curves. The layout of `ops::wire::Point`.
template <class F> struct alignas(16) Affine {
    using Field = F;
    F x, y;

    static TANDEM_HD Affine infinity() { return {F::zero(), F::zero()}; }
    TANDEM_HD bool is_infinity() const { return x.is_zero() && y.is_zero(); }
    TANDEM_HD Affine neg() const { return {x, y.neg()}; }
    friend TANDEM_HD bool operator==(Affine a, Affine b) { return a.x == b.x && a.y == b.y; }
};

/// The point (x / zz, y / zzz) with zz^3 = zzz^2; infinity has zz = 0, so memory filled with zero holds infinity.
template <class F> struct alignas(16) Xyzz {
    using Field = F;
    F x, y, zz, zzz;

    static TANDEM_HD Xyzz infinity() { return {F::zero(), F::zero(), F::zero(), F::zero()}; }
    TANDEM_HD bool is_infinity() const { return zz.is_zero(); }
    static TANDEM_HD Xyzz from_affine(Affine<F> p) {
        if (p.is_infinity()) return infinity();
        return {p.x, p.y, F::one(), F::one()};
    }
    TANDEM_HD Xyzz neg() const { return {x, y.neg(), zz, zzz}; }

    /// 2p for an affine p that is not infinity (mdbl-2008-s-1). Not inlined: additions need it rarely.
    static TANDEM_HD_NOINLINE Xyzz dbl_affine(Affine<F> p) {
        F u = p.y.dbl();
        F v = u.sqr();
        F w = u * v;
        F s = p.x * v;
        F xx = p.x.sqr();
        F m = xx.dbl() + xx;
        F x3 = m.sqr() - s.dbl();
        return {x3, mul_sub(m, s - x3, w, p.y), v, w};
    }
    /// 2 * this (dbl-2008-s-1); infinity stays infinity.
    TANDEM_HD_NOINLINE Xyzz dbl() const {
        Xyzz r = dbl_affine({x, y});
        r.zz *= zz;
        r.zzz *= zzz;
        return r;
    }
    /// this += p, for any two points (madd-2008-s, 8M + 2S with one reduction less).
    TANDEM_HD void add(Affine<F> p) {
        if (p.is_infinity()) return;
        if (is_infinity()) {
            *this = {p.x, p.y, F::one(), F::one()};
            return;
        }
        F dx = p.x * zz - x;
        F dy = p.y * zzz - y;
        if (dx.is_zero()) {
            *this = dy.is_zero() ? dbl_affine(p) : infinity();
            return;
        }
        finish_add(dx, dy, x, y);
    }
    /// this += q, for any two points (add-2008-s, 12M + 2S with one reduction less).
    TANDEM_HD void add(Xyzz q) {
        if (q.is_infinity()) return;
        if (is_infinity()) {
            *this = q;
            return;
        }
        F u = x * q.zz;
        F s = y * q.zzz;
        F dx = q.x * zz - u;
        F dy = q.y * zzz - s;
        if (dx.is_zero()) {
            *this = dy.is_zero() ? dbl() : infinity();
            return;
        }
        zz *= q.zz;
        zzz *= q.zzz;
        finish_add(dx, dy, u, s);
    }
    TANDEM_HD Affine<F> to_affine() const {
        // 1/z = zz / zzz
        F iz3 = zzz.inverse();
        F iz = zz * iz3;
        return {x * iz.sqr(), y * iz3};
    }

  private:
    /// The end of both additions: the points over the common zz, zzz are (u, s) and (u + dx, s + dy).
    TANDEM_HD void finish_add(F dx, F dy, F u, F s) {
        F pp = dx.sqr();
        F ppp = dx * pp;
        F q = u * pp;
        zz *= pp;
        zzz *= ppp;
        F x3 = dy.sqr() - ppp - q.dbl();
        y = mul_sub(dy, q - x3, s, ppp);
        x = x3;
    }
};

/// The point (x / z^2, y / z^3); infinity has z = 0.
template <class F> struct alignas(16) Jacobian {
    using Field = F;
    F x, y, z;

    static TANDEM_HD Jacobian infinity() { return {F::zero(), F::zero(), F::zero()}; }
    TANDEM_HD bool is_infinity() const { return z.is_zero(); }
    static TANDEM_HD Jacobian from_affine(Affine<F> p) {
        if (p.is_infinity()) return infinity();
        return {p.x, p.y, F::one()};
    }
    /// The point `p`: with z = zz, the coordinates x * zz and y * zzz have the denominators zz^2 and zz^3.
    static TANDEM_HD Jacobian from_xyzz(Xyzz<F> p) { return {p.x * p.zz, p.y * p.zzz, p.zz}; }
    TANDEM_HD Jacobian neg() const { return {x, y.neg(), z}; }

    /// 2 * this (dbl-2009-l); infinity stays infinity.
    TANDEM_HD Jacobian dbl() const {
        F a = x.sqr();
        F b = y.sqr();
        F c = b.sqr();
        F d = ((x + b).sqr() - a - c).dbl();
        F e = a.dbl() + a;
        F x3 = e.sqr() - d.dbl();
        F c8 = c.dbl().dbl().dbl();
        return {x3, e * (d - x3) - c8, (y * z).dbl()};
    }
    /// this += p, for any two points (madd).
    TANDEM_HD void add(Affine<F> p) {
        if (p.is_infinity()) return;
        if (is_infinity()) {
            *this = from_affine(p);
            return;
        }
        F zz = z.sqr();
        add_scaled(x, y, p.x * zz, p.y * (z * zz), z);
    }
    /// this += q, for any two points.
    TANDEM_HD void add(Jacobian q) {
        if (q.is_infinity()) return;
        if (is_infinity()) {
            *this = q;
            return;
        }
        F zz = z.sqr();
        F qzz = q.z.sqr();
        add_scaled(x * qzz, y * (q.z * qzz), q.x * zz, q.y * (z * zz), z * q.z);
    }
    TANDEM_HD Affine<F> to_affine() const {
        F iz = z.inverse();
        F iz2 = iz.sqr();
        return {x * iz2, y * (iz * iz2)};
    }

  private:
    /// this = (u1, s1) + (u2, s2), both over the common denominator w.
    TANDEM_HD void add_scaled(F u1, F s1, F u2, F s2, F w) {
        F h = u2 - u1;
        F r = s2 - s1;
        if (h.is_zero()) {
            *this = r.is_zero() ? Jacobian{u1, s1, w}.dbl() : infinity();
            return;
        }
        F hh = h.sqr();
        F hhh = h * hh;
        F v = u1 * hh;
        F x3 = r.sqr() - hhh - v.dbl();
        F y3 = mul_sub(r, v - x3, s1, hhh);
        *this = {x3, y3, w * h};
    }
};

struct Bn254G1 {
    using Field = Fp<Bn254Fp>;
    using Scalar = Fp<Bn254Fr>;
};
struct Bn254G2 {
    using Field = Fp2<Bn254Fp>;
    using Scalar = Fp<Bn254Fr>;
};
struct Bls12381G1 {
    using Field = Fp<Bls12381Fp>;
    using Scalar = Fp<Bls12381Fr>;
};
struct Bls12381G2 {
    using Field = Fp2<Bls12381Fp>;
    using Scalar = Fp<Bls12381Fr>;
};

}  // namespace tandem
