#pragma once
// Multi-limb integers on the device: 32-bit limbs and carry chains in PTX.
//
// Products are laid out so that every chain consists of pairs mad.lo.cc / madc.hi.cc with the same factors and with
// neighbouring accumulators: ptxas makes one IMAD.WIDE of each pair. For that, a sum of products is held as two arrays,
// value = even + 2^32 * odd: a product a[j] * b[i] lies at limbs i + j and i + j + 1, and so belongs to `even` when
// i + j is even and to `odd` (at i + j - 1) when it is odd. Within one array the products of a row do not overlap.
#include "params.cuh"
#include "ptx.cuh"

#if defined(TANDEM_HAS_PTX)
namespace tandem {
namespace limbs_device {

using namespace ptx;

/// r = a + b; returns the carry.
template <int N> TANDEM_DEVICE uint32_t add(uint32_t* r, const uint32_t* a, const uint32_t* b) {
    r[0] = add_cc(a[0], b[0]);
    TANDEM_UNROLL
    for (int i = 1; i < N; i++) r[i] = addc_cc(a[i], b[i]);
    return addc(0, 0);
}

/// r = a - b; returns all ones if there is a borrow, else 0.
template <int N> TANDEM_DEVICE uint32_t sub(uint32_t* r, const uint32_t* a, const uint32_t* b) {
    r[0] = sub_cc(a[0], b[0]);
    TANDEM_UNROLL
    for (int i = 1; i < N; i++) r[i] = subc_cc(a[i], b[i]);
    return subc(0, 0);
}

/// Subtracts the modulus from a if a is not below it; a < 2p.
template <class P> TANDEM_DEVICE void reduce_once(uint32_t* a) {
    constexpr Limbs<P::N> p = P::modulus();
    uint32_t t[P::N];
    t[0] = sub_cc(a[0], p.limb[0]);
    TANDEM_UNROLL
    for (int i = 1; i < P::N; i++) t[i] = subc_cc(a[i], p.limb[i]);
    bool below = subc(0, 0) != 0;
    TANDEM_UNROLL
    for (int i = 0; i < P::N; i++) a[i] = below ? a[i] : t[i];
}

/// acc[0..N] = the products of a[0], a[2], .. with b, side by side.
template <int N> TANDEM_DEVICE void mul_row(uint32_t* acc, const uint32_t* a, uint32_t b) {
    TANDEM_UNROLL
    for (int j = 0; j < N; j += 2) mul_pair(acc[j], acc[j + 1], a[j], b);
}

/// acc[0..N] += the products of a[0], a[2], .. with b. The carry is left in the flag.
template <int N> TANDEM_DEVICE void mad_row(uint32_t* acc, const uint32_t* a, uint32_t b) {
    acc[0] = mad_lo_cc(a[0], b, acc[0]);
    acc[1] = madc_hi_cc(a[0], b, acc[1]);
    TANDEM_UNROLL
    for (int j = 2; j < N; j += 2) {
        acc[j] = madc_lo_cc(a[j], b, acc[j]);
        acc[j + 1] = madc_hi_cc(a[j], b, acc[j + 1]);
    }
}

/// acc[0..N] = from[2..N], followed by two zeros, + the products of a[0], a[2], .. with b + the carry in the flag.
template <int N>
TANDEM_DEVICE void madc_row_shifted(uint32_t* acc, const uint32_t* from, const uint32_t* a, uint32_t b) {
    TANDEM_UNROLL
    for (int j = 0; j < N - 2; j += 2) {
        acc[j] = madc_lo_cc(a[j], b, from[j + 2]);
        acc[j + 1] = madc_hi_cc(a[j], b, from[j + 3]);
    }
    acc[N - 2] = madc_lo_cc(a[N - 2], b, 0);
    acc[N - 1] = madc_hi(a[N - 2], b, 0);
}

/// The q below 2^32 for which low + q * p is a multiple of 2^32, low being the lowest limb.
template <class P> TANDEM_DEVICE uint32_t reduction_factor(uint32_t low) {
    if (P::M0 == 0xefffffffu) return 0u - (low + (low << 28));  // of BN254 Fr: 2^32 - 2^28 - 1
    if (P::M0 == 0xffffffffu) return opaque_negative(low);      // of BLS12-381 Fr
    return low * P::M0;
}

/// (r0, r1) = (c0, c1) + q * limb + the carry in the flag unless FIRST, for a limb of the modulus. Leaves the carry in
/// the flag. A multiplication by 2^32 - 1 (limb 1 of BLS12-381 Fr) is a subtraction.
template <bool FIRST>
TANDEM_DEVICE void mad_limb(uint32_t& r0, uint32_t& r1, uint32_t q, uint32_t limb, uint32_t c0, uint32_t c1) {
    if (limb == 0xffffffffu) {
        uint32_t low = 0u - q, high = q - (q != 0);
        r0 = FIRST ? add_cc(c0, low) : addc_cc(c0, low);
        r1 = addc_cc(c1, high);
    } else {
        r0 = FIRST ? mad_lo_cc(limb, q, c0) : madc_lo_cc(limb, q, c0);
        r1 = madc_hi_cc(limb, q, c1);
    }
}

/// even[0..N] += q * (limbs 0, 2, .. of p) for q = reduction_factor(even[0]); even[0] becomes 0 and is not written. A
/// lowest limb of p that is 1 or 2^32 - 2^28 + 1 (the scalar fields) costs no multiplication. Leaves the carry in the
/// flag.
template <class P> TANDEM_DEVICE void cancel_even(uint32_t* even, uint32_t q) {
    constexpr Limbs<P::N> p = P::modulus();
    constexpr uint32_t p0 = p.limb[0];
    if (p0 == 1 || p0 == 0xf0000001u) {
        // q * p0 = q * 2^32 - q * 2^28 + q; the lowest limbs of even[0] + q and q * 2^28 are equal.
        uint32_t high = p0 == 1 ? 0 : q - (q >> 4);
        add_cc(even[0], q);
        even[1] = addc_cc(even[1], high);
    } else {
        mad_limb<true>(even[0], even[1], q, p0, even[0], even[1]);
    }
    TANDEM_UNROLL
    for (int j = 2; j < P::N; j += 2) mad_limb<false>(even[j], even[j + 1], q, p.limb[j], even[j], even[j + 1]);
}

/// Makes limb 0 of the sum zero by adding a multiple of p.
template <class P> TANDEM_DEVICE void cancel_low_limb(uint32_t* even, uint32_t* odd) {
    constexpr Limbs<P::N> p = P::modulus();
    constexpr int N = P::N;
    uint32_t q = reduction_factor<P>(even[0]);
    mad_limb<true>(odd[0], odd[1], q, p.limb[1], odd[0], odd[1]);
    TANDEM_UNROLL
    for (int j = 2; j < N; j += 2) mad_limb<false>(odd[j], odd[j + 1], q, p.limb[j + 1], odd[j], odd[j + 1]);
    cancel_even<P>(even, q);
    odd[N - 1] = addc(odd[N - 1], 0);
}

/// How many limbs of a product are taken away by folding: x + 2^32 y is x * (2^-32 mod p) + y times 2^32, which needs no q and no
/// product with the lowest limb of p. The last two are cancelled, so that little more than p is left. Where q and that product cost no
/// multiplication, all are (docs/design/field-arithmetic.md).
template <class P> constexpr int FOLDED = P::M0 == 0xefffffffu || P::M0 == 0xffffffffu ? 0 : P::N - 2;

/// r[0..2N] = a * b, limb by limb.
template <int N> TANDEM_DEVICE void mul_wide_by_limbs(uint32_t* r, const uint32_t* a, const uint32_t* b) {
    uint32_t* even = r;
    uint32_t odd[2 * N];  // odd[k] belongs to limb k + 1; the last two stay unused
    mul_row<N>(odd, a + 1, b[0]);
    mul_row<N>(even, a, b[0]);
    TANDEM_UNROLL
    for (int i = 1; i < N; i++) {
        // In an odd row the products of a[1], a[3], .. belong to `even`.
        uint32_t* first = i % 2 ? odd + (i - 1) : even + i;
        uint32_t* second = i % 2 ? even + (i + 1) : odd + i;
        // `second` reaches one pair beyond what is there, and takes the carry of `first` in its upper limb, which has room.
        second[0] = mad_lo_cc(a[1], b[i], second[0]);
        second[1] = madc_hi_cc(a[1], b[i], second[1]);
        TANDEM_UNROLL
        for (int j = 2; j < N - 2; j += 2) {
            second[j] = madc_lo_cc(a[j + 1], b[i], second[j]);
            second[j + 1] = madc_hi_cc(a[j + 1], b[i], second[j + 1]);
        }
        second[N - 2] = madc_lo_cc(a[N - 1], b[i], 0);
        second[N - 1] = madc_hi(a[N - 1], b[i], 0);
        mad_row<N>(first, a, b[i]);
        second[N - 1] = addc(second[N - 1], 0);
    }
    r[1] = add_cc(even[1], odd[0]);
    TANDEM_UNROLL
    for (int i = 2; i < 2 * N - 1; i++) r[i] = addc_cc(even[i], odd[i - 1]);
    r[2 * N - 1] = addc(even[2 * N - 1], 0);
}

/// Limbs from which on a product by halves is faster (docs/design/field-arithmetic.md).
constexpr int KARATSUBA_LIMBS = 12;

/// r[0..2N] = a * b by three products of half the limbs (Karatsuba): a quarter of the multiplications less, for additions
/// on another unit. The sum of the two products in the middle must fit N limbs: a and b are below 2^(32 N - 1).
template <int N> TANDEM_DEVICE void mul_wide_halves(uint32_t* r, const uint32_t* a, const uint32_t* b) {
    constexpr int H = N / 2;
    uint32_t x[H], y[H], middle[N];
    mul_wide_by_limbs<H>(r, a, b);
    mul_wide_by_limbs<H>(r + N, a + H, b + H);
    const uint32_t x_below = sub<H>(x, a, a + H), y_below = sub<H>(y, b + H, b);
    // (low a - high a) * (high b - low b) modulo 2^(32 N): the halves without their signs, less what the signs take away.
    mul_wide_by_limbs<H>(middle, x, y);
    TANDEM_UNROLL
    for (int i = 0; i < H; i++) {
        const uint32_t of_y = y[i] & x_below;
        y[i] = x[i] & y_below;
        x[i] = of_y;
    }
    sub<H>(middle + H, middle + H, x);
    sub<H>(middle + H, middle + H, y);
    add<N>(middle, middle, r);
    add<N>(middle, middle, r + N);
    r[H] = add_cc(r[H], middle[0]);
    TANDEM_UNROLL
    for (int i = 1; i < N; i++) r[H + i] = addc_cc(r[H + i], middle[i]);
    TANDEM_UNROLL
    for (int i = H + N; i < 2 * N - 1; i++) r[i] = addc_cc(r[i], 0);
    r[2 * N - 1] = addc(r[2 * N - 1], 0);
}

/// r[0..2N] = a * b, for a and b below 2^(32 N - 1).
template <int N> TANDEM_DEVICE void mul_wide(uint32_t* r, const uint32_t* a, const uint32_t* b) {
    if constexpr (N >= KARATSUBA_LIMBS) mul_wide_halves<N>(r, a, b);
    else mul_wide_by_limbs<N>(r, a, b);
}

/// Adds the products of a[i] with a[first], a[first + 2], .. into one of the arrays of sqr_wide; `first` is i + 1 for
/// `odd` and i + 2 for `even`, so the products begin at 2 i or 2 i + 2 in it.
template <int N> TANDEM_DEVICE void cross_row(uint32_t* acc, const uint32_t* a, int i, int first) {
    int at = i + first - (first - i) % 2;
    acc[at] = mad_lo_cc(a[first], a[i], acc[at]);
    acc[at + 1] = madc_hi_cc(a[first], a[i], acc[at + 1]);
    at += 2;
    TANDEM_UNROLL
    for (int j = first + 2; j < N; j += 2, at += 2) {
        acc[at] = madc_lo_cc(a[j], a[i], acc[at]);
        acc[at + 1] = madc_hi_cc(a[j], a[i], acc[at + 1]);
    }
    // At most one row before has left a carry there, and the last row leaves none.
    if (at < 2 * N) acc[at] = addc(acc[at], 0);
}

/// r[0..2N] = a * a: the products of different limbs once, doubled, and the squares of the limbs.
template <int N> TANDEM_DEVICE void sqr_wide(uint32_t* r, const uint32_t* a) {
    uint32_t even[2 * N], odd[2 * N];  // as in mul_wide
    TANDEM_UNROLL
    for (int i = 0; i < 2 * N; i++) even[i] = odd[i] = 0;
    TANDEM_UNROLL
    for (int i = 0; i < N - 1; i++) {
        cross_row<N>(odd, a, i, i + 1);
        if (i + 2 < N) cross_row<N>(even, a, i, i + 2);
    }
    r[0] = 0;
    r[1] = odd[0];
    r[2] = add_cc(even[2], odd[1]);
    TANDEM_UNROLL
    for (int i = 3; i < 2 * N - 1; i++) r[i] = addc_cc(even[i], odd[i - 1]);
    r[2 * N - 1] = addc(0, 0);
    TANDEM_UNROLL
    for (int i = 2 * N - 1; i > 1; i--) r[i] = shift_left_1(r[i - 1], r[i]);
    r[1] <<= 1;
    r[0] = mad_lo_cc(a[0], a[0], r[0]);
    r[1] = madc_hi_cc(a[0], a[0], r[1]);
    TANDEM_UNROLL
    for (int i = 1; i < N; i++) {
        r[2 * i] = madc_lo_cc(a[i], a[i], r[2 * i]);
        r[2 * i + 1] = madc_hi_cc(a[i], a[i], r[2 * i + 1]);
    }
}

/// r = wide / 2^(32 N) mod p, below p. Needs wide < p * 2^(32 N), and half of that where limbs are folded.
template <class P> TANDEM_DEVICE void mont_reduce(uint32_t* r, const uint32_t* wide) {
    constexpr int N = P::N;
    constexpr Limbs<N> p = P::modulus();
    static_assert(FOLDED<P> == 0 || p.limb[N - 1] >> 30 == 0,
                  "a sum of two products is below p * 2^(32 N - 1) where 4p < 2^(32 N)");
    // Divides the low half alone by 2^(32 N), to p or, where limbs are folded, p + p / 2^31 at the most; then adds the high half.
    uint32_t x[N], y[N];
    TANDEM_UNROLL
    for (int i = 0; i < N; i++) {
        x[i] = wide[i];
        y[i] = 0;
    }
    if (FOLDED<P> == 0) cancel_low_limb<P>(x, y);
    TANDEM_UNROLL
    for (int i = 1; i < N; i++) {
        uint32_t* even = i % 2 ? y : x;
        uint32_t* odd = i % 2 ? x : y;
        const uint32_t low = odd[0];
        even[0] = add_cc(even[0], odd[1]);
        if (i > FOLDED<P>) {
            uint32_t q = reduction_factor<P>(even[0]);
            TANDEM_UNROLL
            for (int j = 0; j < N - 2; j += 2)
                mad_limb<false>(odd[j], odd[j + 1], q, p.limb[j + 1], odd[j + 2], odd[j + 3]);
            mad_limb<false>(odd[N - 2], odd[N - 1], q, p.limb[N - 1], 0, 0);
            cancel_even<P>(even, q);
        } else if constexpr (FOLDED<P> > 0) {
            constexpr Limbs<N> c = P::fold();
            madc_row_shifted<N>(odd, odd, c.limb + 1, low);
            mad_row<N>(even, c.limb, low);
        }
        odd[N - 1] = addc(odd[N - 1], 0);
        if (i == FOLDED<P>) cancel_low_limb<P>(even, odd);
    }
    r[0] = add_cc(x[0], y[1]);
    TANDEM_UNROLL
    for (int i = 1; i < N - 1; i++) r[i] = addc_cc(x[i], y[i + 1]);
    r[N - 1] = addc(x[N - 1], 0);
    r[0] = add_cc(r[0], wide[N]);
    TANDEM_UNROLL
    for (int i = 1; i < N - 1; i++) r[i] = addc_cc(r[i], wide[N + i]);
    r[N - 1] = addc(r[N - 1], wide[2 * N - 1]);
    reduce_once<P>(r);
}

/// r = a * b / 2^(32 N) mod p, below p. Needs a * b < p * 2^(32 N), and 3p < 2^(32 N + 1) so that no sum overflows; where limbs are folded,
/// half of the former, and a + 2p < 2^(32 N).
template <class P> TANDEM_DEVICE void mont_mul(uint32_t* r, const uint32_t* a, const uint32_t* b) {
    constexpr int N = P::N;
    if (N >= KARATSUBA_LIMBS) {
        uint32_t wide[2 * N];
        mul_wide<N>(wide, a, b);
        mont_reduce<P>(r, wide);
        return;
    }
    // The two arrays change roles at every limb of b, as the sum moves down by one limb.
    uint32_t x[N], y[N];
    mul_row<N>(y, a + 1, b[0]);
    mul_row<N>(x, a, b[0]);
    if (FOLDED<P> == 0) cancel_low_limb<P>(x, y);
    TANDEM_UNROLL
    for (int i = 1; i < N; i++) {
        uint32_t* even = i % 2 ? y : x;
        uint32_t* odd = i % 2 ? x : y;
        // The sum was odd + 2^32 * even, with odd[0] = 0 or to be folded; divide by 2^32.
        const uint32_t low = odd[0];
        even[0] = add_cc(even[0], odd[1]);
        madc_row_shifted<N>(odd, odd, a + 1, b[i]);
        mad_row<N>(even, a, b[i]);
        odd[N - 1] = addc(odd[N - 1], 0);
        if constexpr (FOLDED<P> > 0) {
            constexpr Limbs<N> c = P::fold();
            if (i <= FOLDED<P>) {
                mad_row<N>(odd, c.limb + 1, low);
                mad_row<N>(even, c.limb, low);
                odd[N - 1] = addc(odd[N - 1], 0);
            }
        }
        if (i >= FOLDED<P>) cancel_low_limb<P>(even, odd);
    }
    // N is even, so after the last limb the sum is y + 2^32 * x with its lowest limb y[0] = ... = 0 dropped.
    r[0] = add_cc(x[0], y[1]);
    TANDEM_UNROLL
    for (int i = 1; i < N - 1; i++) r[i] = addc_cc(x[i], y[i + 1]);
    r[N - 1] = addc(x[N - 1], 0);
    reduce_once<P>(r);
}

}  // namespace limbs_device
}  // namespace tandem
#endif
