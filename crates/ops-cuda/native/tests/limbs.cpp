// The device's carry chains, with the instructions emulated (TANDEM_EMULATE_PTX), against the host's arithmetic in words of 64 bits: on
// limbs that are 0, 1, all ones or random, and at the bounds that limbs_device.cuh states. What the host's gives, vectors.cpp checks.
//
// usage: limbs CASES. Prints a line for each field; exits with 1 on the first mismatch.
#include <cstdio>
#include <cstdlib>
#include <random>

#include "tandem/field.cuh"

using namespace tandem;

static std::mt19937_64 generator(20261123);

static uint32_t some_limb() {
    switch (generator() % 6) {
        case 0: return 0;
        case 1: return 1;
        case 2: return 0xffffffffu;
        default: return uint32_t(generator());
    }
}

template <int N> static void expect(const uint32_t* got, const uint32_t* want, const char* field, const char* what,
                                    long number) {
    for (int i = 0; i < N; i++) {
        if (got[i] == want[i]) continue;
        fprintf(stderr, "mismatch: %s, %s, case %ld, limb %d\n", field, what, number, i);
        exit(1);
    }
}

/// One below the modulus, now and then; else some limbs below it.
template <class P> static void some_element(uint32_t* a) {
    constexpr Limbs<P::N> p = P::modulus();
    if (generator() % 8 == 0) {
        for (int i = 0; i < P::N; i++) a[i] = p.limb[i];
        a[0] -= 1;
        return;
    }
    for (int i = 0; i < P::N; i++) a[i] = some_limb();
    a[P::N - 1] %= p.limb[P::N - 1];
}

/// A lower half that `mont_reduce` makes more than p of: the last limb that is folded is all ones, and so are the factors of p for the
/// two that are cancelled.
template <class P> static void some_excess(uint32_t* low) {
    constexpr int N = P::N, LAST = limbs_device::FOLDED<P> - 1;
    static_assert(LAST == N - 3, "two limbs are cancelled");
    constexpr Limbs<N> p = P::modulus(), c = P::fold();
    for (int i = 0; i < LAST; i++) low[i] = some_limb();
    uint32_t sum[N + 1] = {};  // of what is folded so far, without `low`
    for (int i = 0; i <= LAST; i++) {
        if (i == LAST) low[i] = 0xffffffffu - sum[0];
        uint64_t carry = uint64_t(sum[0]) + low[i];
        const uint32_t folded = uint32_t(carry);
        carry >>= 32;
        for (int j = 0; j < N; j++) {
            carry += uint64_t(folded) * c.limb[j] + sum[j + 1];
            sum[j] = uint32_t(carry);
            carry >>= 32;
        }
        sum[N] = uint32_t(carry);
    }
    const uint64_t rest = (uint64_t(p.limb[1]) << 32 | p.limb[0]) - (uint64_t(sum[1]) << 32 | sum[0]);
    low[N - 2] = uint32_t(rest);
    low[N - 1] = uint32_t(rest >> 32);
}

/// Limbs of which the upper half is the greatest that `mont_reduce` takes, now and then; else some below.
template <class P> static void some_wide(uint32_t* wide) {
    constexpr int N = P::N;
    constexpr Limbs<N> p = P::modulus();
    for (int i = 0; i < N; i++) wide[i] = generator() % 4 ? some_limb() : 0xffffffffu;
    some_element<P>(wide + N);
    if (limbs_device::FOLDED<P> == 0) return;
    // Below p * 2^(32 N - 1).
    for (int i = 0; i < N - 1; i++) wide[N + i] = wide[N + i] >> 1 | wide[N + i + 1] << 31;
    wide[2 * N - 1] >>= 1;
    if (generator() % 4 == 0) {
        for (int i = 0; i < N - 1; i++) wide[N + i] = p.limb[i] >> 1 | p.limb[i + 1] << 31;
        wide[2 * N - 1] = p.limb[N - 1] >> 1;
        wide[N - 1] &= 0x7fffffffu;
    }
    if constexpr (limbs_device::FOLDED<P> > 0) {
        if (generator() % 2) some_excess<P>(wide);
    }
}

template <class P> static void check(const char* field, long cases) {
    constexpr int N = P::N;
    constexpr Limbs<N> p = P::modulus();
    long of_excess = 0;
    for (long number = 0; number < cases; number++) {
        Fp<P> a, b, c, d, want, got;
        for (Fp<P>* one : {&a, &b, &c, &d}) some_element<P>(one->limb);
        uint32_t wide[2 * N], lazy[N];
        limbs_host::mont_mul<P>(want.limb, a.limb, b.limb);
        limbs_device::mont_mul<P>(got.limb, a.limb, b.limb);
        expect<N>(got.limb, want.limb, field, "mont_mul", number);
        // a * b - c * d, which is often 0 or a.
        if (number % 3 == 0) c = a, d = b;
        if (number % 6 == 0) d.limb[0] &= ~1u;
        limbs_host::mont_mul<P>(got.limb, c.limb, d.limb);
        expect<N>((Wide<P>::mul(a, b) - Wide<P>::mul(c, d)).reduce().limb, (want - got).limb, field,
                  "difference of products", number);
        if constexpr (limbs_device::FOLDED<P> > 0) {
            // Minus a number whose negative has such a lower half: with p * 2^(32 N) added it would be reduced to p or more.
            Fp<P> zero = Fp<P>::zero(), one = zero, excess;
            one.limb[0] = 1;
            some_excess<P>(excess.limb);
            limbs_host::sub<N>(c.limb, zero.limb, excess.limb);
            if (limbs_host::sub<N>(d.limb, c.limb, p.limb)) {
                limbs_host::mont_mul<P>(got.limb, c.limb, one.limb);
                expect<N>((Wide<P>::mul(zero, zero) - Wide<P>::mul(c, one)).reduce().limb, got.neg().limb, field,
                          "minus a number", number);
                of_excess++;
            }
        }
        some_wide<P>(wide);
        limbs_host::mont_reduce<P>(want.limb, wide);
        limbs_device::mont_reduce<P>(got.limb, wide);
        expect<N>(got.limb, want.limb, field, "mont_reduce", number);
        if (limbs_device::FOLDED<P> > 0) {
            limbs_host::add<N>(lazy, a.limb, p.limb);
            limbs_host::mont_mul<P>(want.limb, lazy, b.limb);
            limbs_device::mont_mul<P>(got.limb, lazy, b.limb);
            expect<N>(got.limb, want.limb, field, "mont_mul of a sum", number);
        }
    }
    if (limbs_device::FOLDED<P> > 0 && of_excess < cases / 20) {
        fprintf(stderr, "%s: only %ld of %ld cases are at the bound\n", field, of_excess, cases);
        exit(1);
    }
    printf("%s: %ld cases\n", field, cases);
}

int main(int argc, char** argv) {
    const long cases = argc == 2 ? atol(argv[1]) : 0;
    if (cases < 1) {
        fprintf(stderr, "usage: limbs CASES\n");
        return 2;
    }
    check<Bn254Fp>("BN254 Fp", cases);
    check<Bn254Fr>("BN254 Fr", cases);
    check<Bls12381Fp>("BLS12-381 Fp", cases);
    check<Bls12381Fr>("BLS12-381 Fr", cases);
    return 0;
}
