#pragma once
// Inverses modulo an odd p by division steps (D. J. Bernstein and B.-Y. Yang, "Fast constant-time gcd computation and
// modular inversion", 2019), with delta from 1/2 on.
//
// A step takes (f, g), f odd, to (g, (g - f) / 2) or to (f, (g + f) / 2) or to (f, g / 2). As it looks at the sign of
// delta and at the lowest bit of g alone, 30 steps follow from the low words of f and g: a matrix, which is then
// applied to f and g, and modulo p to d and e, for which f = d * a and g = e * a (mod p). Once g is 0, f is 1 or -1,
// and a's inverse is d or -d. Numbers are signed and in limbs of 30 bits, so that products of a limb and an entry of
// the matrix add up in 64 bits.
#include "params.cuh"

namespace tandem {
namespace divsteps {

constexpr int LIMB_BITS = 30;
constexpr int32_t LIMB_MASK = (1 << LIMB_BITS) - 1;

/// 2^30 times what takes (f, g) to where they are after 30 steps: (u f + v g, q f + r g).
struct Matrix {
    int32_t u, v, q, r;
};

/// The sum of limb[i] * 2^(30 i). All limbs but the last are in 0..2^30; the last one has the sign.
template <class P> struct Signed {
    static constexpr int N = (P::BITS + 2 + LIMB_BITS - 1) / LIMB_BITS;
    int32_t limb[N];

    static TANDEM_HD constexpr Signed modulus() { return from(P::modulus()); }
    static TANDEM_HD constexpr Signed from(Limbs<P::N> a) {
        Signed r{};
        for (int i = 0; i < N; i++) {
            const int at = i * LIMB_BITS / 32, shift = i * LIMB_BITS % 32;
            uint64_t two = 0;
            if (at < P::N) two = a.limb[at];
            if (at + 1 < P::N) two |= uint64_t(a.limb[at + 1]) << 32;
            r.limb[i] = int32_t(two >> shift) & LIMB_MASK;
        }
        return r;
    }
    /// For a value in 0..2^(32 P::N).
    TANDEM_HD Limbs<P::N> to_limbs() const {
        Limbs<P::N> r;
        TANDEM_UNROLL for (int i = 0; i < P::N; i++) {
            const int at = i * 32 / LIMB_BITS, shift = i * 32 % LIMB_BITS;
            uint64_t two = uint32_t(limb[at]);
            if (at + 1 < N) two |= uint64_t(uint32_t(limb[at + 1])) << LIMB_BITS;
            if (at + 2 < N) two |= uint64_t(uint32_t(limb[at + 2])) << (2 * LIMB_BITS);
            r.limb[i] = uint32_t(two >> shift);
        }
        return r;
    }
    TANDEM_HD bool is_zero() const {
        int32_t any = 0;
        TANDEM_UNROLL for (int i = 0; i < N; i++) any |= limb[i];
        return any == 0;
    }
    /// All ones if negative, else 0.
    TANDEM_HD int32_t sign() const { return limb[N - 1] >> 31; }
    /// The lowest 32 bits.
    TANDEM_HD uint32_t low() const { return uint32_t(limb[0]) | uint32_t(limb[1]) << LIMB_BITS; }
    /// (+-this) + (p or 0), for masks of all ones or 0.
    TANDEM_HD Signed combine(int32_t negate, int32_t add) const {
        constexpr Signed p = modulus();
        Signed r;
        int32_t carry = 0;
        TANDEM_UNROLL for (int i = 0; i < N; i++) {
            carry += ((limb[i] ^ negate) - negate) + (p.limb[i] & add);
            r.limb[i] = i + 1 < N ? carry & LIMB_MASK : carry;
            carry >>= LIMB_BITS;
        }
        return r;
    }
};

/// All ones if the lowest bit is set, else 0.
TANDEM_HD uint32_t odd_mask(uint32_t a) {
#if defined(__CUDA_ARCH__)
    uint32_t mask;
    asm("bfe.s32 %0, %1, 0, 1;" : "=r"(mask) : "r"(a));
    return mask;
#else
    return 0u - (a & 1);
#endif
}

/// 15 steps. `f` and `g` are low words; `theta` is delta - 1/2. A row (u, v) of the matrix is kept as u + 2^16 v: its
/// entries are in -2^15..2^15, since (+-2^15, 0) and (0, +-2^15) do not occur in the second row, and the first row is
/// left without its last doubling. Masks instead of predicates, which take longer from one instruction to the next.
TANDEM_HD void half_round(uint32_t& theta, uint32_t& f, uint32_t& g, uint32_t& first, uint32_t& second) {
    TANDEM_UNROLL for (int i = 0; i < LIMB_BITS / 2; i++) {
        const uint32_t odd = odd_mask(g), positive = ~uint32_t(int32_t(theta) >> 31), swap = odd & positive;
        // g +- f if g is odd, minus if delta is positive.
        g = g + ((f ^ positive) & odd) - swap;
        second = second + ((first ^ positive) & odd) - swap;
        // f = (g - f) + f
        f += g & swap;
        first += second & swap;
        theta = (theta ^ swap) + 1;
        g >>= 1;
        if (i + 1 < LIMB_BITS / 2) first <<= 1;
    }
}

/// The two entries of a row.
TANDEM_HD void unpack(uint32_t row, int32_t& a, int32_t& b) {
    a = int16_t(row);
    b = int32_t(row - uint32_t(a)) >> 16;
}

/// 30 steps.
TANDEM_HD Matrix round(uint32_t& theta, uint32_t f, uint32_t g) {
    Matrix half[2];
    TANDEM_UNROLL for (int k = 0; k < 2; k++) {
        uint32_t first = 1, second = 1 << 16;
        half_round(theta, f, g, first, second);
        unpack(first, half[k].u, half[k].v);
        unpack(second, half[k].q, half[k].r);
        half[k].u *= 2;
        half[k].v *= 2;
    }
    const Matrix &a = half[0], &b = half[1];
    return {b.u * a.u + b.v * a.q, b.u * a.v + b.v * a.r, b.q * a.u + b.r * a.q, b.q * a.v + b.r * a.r};
}

/// (f, g) = (u f + v g, q f + r g) / 2^30, which is exact.
template <class P> TANDEM_HD void apply(Matrix m, Signed<P>& f, Signed<P>& g) {
    constexpr int N = Signed<P>::N;
    int64_t a = int64_t(m.u) * f.limb[0] + int64_t(m.v) * g.limb[0];
    int64_t b = int64_t(m.q) * f.limb[0] + int64_t(m.r) * g.limb[0];
    TANDEM_UNROLL for (int i = 1; i < N; i++) {
        a = (a >> LIMB_BITS) + int64_t(m.u) * f.limb[i] + int64_t(m.v) * g.limb[i];
        b = (b >> LIMB_BITS) + int64_t(m.q) * f.limb[i] + int64_t(m.r) * g.limb[i];
        f.limb[i - 1] = int32_t(a) & LIMB_MASK;
        g.limb[i - 1] = int32_t(b) & LIMB_MASK;
    }
    f.limb[N - 1] = int32_t(a >> LIMB_BITS);
    g.limb[N - 1] = int32_t(b >> LIMB_BITS);
}

/// (d, e) = (u d + v e, q d + r e) / 2^30 modulo p: multiples of p are added that make the sums divisible, and that
/// leave them in -2p..p if that is where d and e were.
template <class P> TANDEM_HD void apply_modulo(Matrix m, Signed<P>& d, Signed<P>& e) {
    constexpr int N = Signed<P>::N;
    constexpr Signed<P> p = Signed<P>::modulus();
    constexpr uint32_t inverse = (0u - P::M0) & LIMB_MASK;  // of p, modulo 2^30
    const int32_t d_sign = d.sign(), e_sign = e.sign();
    int32_t x = (m.u & d_sign) + (m.v & e_sign), y = (m.q & d_sign) + (m.r & e_sign);
    int64_t a = int64_t(m.u) * d.limb[0] + int64_t(m.v) * e.limb[0];
    int64_t b = int64_t(m.q) * d.limb[0] + int64_t(m.r) * e.limb[0];
    x -= int32_t((inverse * uint32_t(a) + uint32_t(x)) & LIMB_MASK);
    y -= int32_t((inverse * uint32_t(b) + uint32_t(y)) & LIMB_MASK);
    a += int64_t(p.limb[0]) * x;
    b += int64_t(p.limb[0]) * y;
    TANDEM_UNROLL for (int i = 1; i < N; i++) {
        a = (a >> LIMB_BITS) + int64_t(m.u) * d.limb[i] + int64_t(m.v) * e.limb[i] + int64_t(p.limb[i]) * x;
        b = (b >> LIMB_BITS) + int64_t(m.q) * d.limb[i] + int64_t(m.r) * e.limb[i] + int64_t(p.limb[i]) * y;
        d.limb[i - 1] = int32_t(a) & LIMB_MASK;
        e.limb[i - 1] = int32_t(b) & LIMB_MASK;
    }
    d.limb[N - 1] = int32_t(a >> LIMB_BITS);
    e.limb[N - 1] = int32_t(b >> LIMB_BITS);
}

/// The inverse of an integer below the prime p, and 0 for 0.
template <class P> TANDEM_HD Limbs<P::N> inverse(Limbs<P::N> a) {
    Signed<P> f = Signed<P>::modulus(), g = Signed<P>::from(a), d{}, e{};
    e.limb[0] = 1;
    uint32_t theta = 0;
    while (!g.is_zero()) {
        const Matrix m = round(theta, f.low(), g.low());
        apply_modulo(m, d, e);
        apply(m, f, g);
    }
    d = d.combine(0, d.sign());
    d = d.combine(f.sign(), 0);
    return d.combine(0, d.sign()).to_limbs();
}

}  // namespace divsteps
}  // namespace tandem
