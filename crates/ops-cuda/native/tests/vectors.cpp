// Checks the fields and groups against vectors that tests/host_fields.rs makes with arkworks: on their host path or, built with
// TANDEM_EMULATE_PTX, on the device's carry chains with the instructions emulated.
//
// usage: vectors FILE. The file is a sequence of sections: kind, instance and number of cases as uint32_t, then the
// cases, whose layouts are the structs below. Prints a line per section with what it checked; exits with 1 on the first
// mismatch.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tandem/curve.cuh"

using namespace tandem;

enum Kind : uint32_t { FIELD = 0, BASE_FIELD = 1, GROUP = 2, SUM = 3 };

struct Section {
    uint32_t kind, instance, cases;
};

template <class F> struct FieldCase {
    F a, b, c, d;
    F sum, difference, product, square, doubled, negated, inverse, canonical;
    F product_difference;  // a b - c d
    F is_zero, equal;      // one or zero: whether a = 0, whether a = b
};

template <class F> struct BaseFieldCase {
    F a, b, c, d;
    F a_mont2, b_canonical, product;
    F product_sum;  // a b + c d
};

template <class F> struct GroupCase {
    Affine<F> p, q, sum, doubled, negated;
    F zp, zq;  // not zero: the denominators of p and q in projective forms
};

constexpr int SUM_TERMS = 24;
template <class F> struct SumCase {
    Affine<F> term[SUM_TERMS], sum;
};

static FILE* input;
static uint64_t checks;
static Section section;
static uint32_t case_index;

static void expect(bool ok, const char* what) {
    checks++;
    if (ok) return;
    fprintf(stderr, "mismatch: kind %u, instance %u, case %u: %s\n", section.kind, section.instance, case_index, what);
    exit(1);
}

template <class T> static T read_one() {
    T value;
    if (fread(&value, sizeof value, 1, input) != 1) {
        fprintf(stderr, "the vectors end within kind %u, instance %u\n", section.kind, section.instance);
        exit(2);
    }
    return value;
}

template <class F> static void check(const FieldCase<F>& t) {
    expect(t.a + t.b == t.sum, "a + b");
    expect(t.b + t.a == t.sum, "b + a");
    expect(t.a - t.b == t.difference, "a - b");
    expect((t.b - t.a).neg() == t.difference, "-(b - a)");
    expect(t.a * t.b == t.product, "a * b");
    expect(t.b * t.a == t.product, "b * a");
    expect(t.a.sqr() == t.square, "a.sqr()");
    expect(t.a * t.a == t.square, "a * a");
    expect(t.a.dbl() == t.doubled, "a.dbl()");
    expect(t.a.neg() == t.negated, "a.neg()");
    expect(t.a.inverse() == t.inverse, "a.inverse()");
    expect(t.a.to_canonical() == t.canonical, "a.to_canonical()");
    expect(F::from_canonical(t.canonical) == t.a, "from_canonical");
    expect(mul_sub(t.a, t.b, t.c, t.d) == t.product_difference, "mul_sub");
    expect((t.a.is_zero() ? F::one() : F::zero()) == t.is_zero, "is_zero");
    expect((t.a == t.b ? F::one() : F::zero()) == t.equal, "==");
    expect((t.a != t.b ? F::zero() : F::one()) == t.equal, "!=");
    F x = t.a;
    x += t.b;
    expect(x == t.sum, "+=");
    x = t.a;
    x -= t.b;
    expect(x == t.difference, "-=");
    x = t.a;
    x *= t.b;
    expect(x == t.product, "*=");
    expect(t.a * F::one() == t.a && t.a + F::zero() == t.a, "one and zero");
}

template <class F> static void check(const BaseFieldCase<F>& t) {
    using W = typename F::WideType;
    expect(F::mul2(t.a_mont2, t.b_canonical) == t.product, "mul2");
    expect(W::mul(t.a, t.b).reduce() == t.product, "Wide::mul");
    expect((W::mul(t.a, t.b) + W::mul(t.c, t.d)).reduce() == t.product_sum, "Wide +");
    expect((W::mul(t.a, t.b) - W::mul(t.c, t.d.neg())).reduce() == t.product_sum, "Wide -");
    expect((W::sqr(t.a) - W::mul(t.a, t.a)).reduce() == F::zero(), "Wide::sqr");
    expect(W::sub_exact(W::mul(t.a, t.b) + W::sqr(t.c), W::sqr(t.c)).reduce() == t.product, "sub_exact");
}

template <class F> static Xyzz<F> scaled(const Affine<F>& p, const F& z) {
    if (p.is_infinity()) return Xyzz<F>::infinity();
    F zz = z.sqr(), zzz = zz * z;
    return {p.x * zz, p.y * zzz, zz, zzz};
}

template <class F> static Jacobian<F> scaled_jacobian(const Affine<F>& p, const F& z) {
    if (p.is_infinity()) return Jacobian<F>::infinity();
    return {p.x * z.sqr(), p.y * (z.sqr() * z), z};
}

template <class F> static void expect_point(const Xyzz<F>& got, const Affine<F>& want, const char* what) {
    expect(got.is_infinity() == want.is_infinity(), what);
    expect(got.zz.sqr() * got.zz == got.zzz.sqr(), what);
    expect(got.to_affine() == want, what);
}

template <class F> static void expect_point(const Jacobian<F>& got, const Affine<F>& want, const char* what) {
    expect(got.is_infinity() == want.is_infinity(), what);
    expect(got.to_affine() == want, what);
}

/// Everything that a projective form does, on p, q and on their forms with other denominators.
template <class Point, class F> static void check_form(const GroupCase<F>& t, const Point& p, const Point& q) {
    Point p1 = Point::from_affine(t.p), q1 = Point::from_affine(t.q);
    expect_point(p1, t.p, "from_affine");
    expect_point(p, t.p, "to_affine");
    expect_point(p1.neg(), t.negated, "neg");
    expect_point(p.neg(), t.negated, "neg, scaled");
    expect_point(p1.dbl(), t.doubled, "dbl");
    expect_point(p.dbl(), t.doubled, "dbl, scaled");
    Point r = p1;
    r.add(t.q);
    expect_point(r, t.sum, "mixed add");
    r = p;
    r.add(t.q);
    expect_point(r, t.sum, "mixed add, scaled");
    r = q;
    r.add(t.p);
    expect_point(r, t.sum, "mixed add, exchanged");
    r = p1;
    r.add(q1);
    expect_point(r, t.sum, "add");
    r = p;
    r.add(q);
    expect_point(r, t.sum, "add, scaled");
    r = p;
    r.add(r);
    expect_point(r, t.doubled, "add to itself");
    r = p1;
    r.add(p);
    expect_point(r, t.doubled, "add of the same point in another form");
    r = p;
    r.add(t.negated);
    expect_point(r, Affine<F>::infinity(), "mixed add of the negative");
    r = p1;
    r.add(p.neg());
    expect_point(r, Affine<F>::infinity(), "add of the negative");
    r.add(t.q);
    expect_point(r, t.q, "mixed add to infinity");
}

template <class F> static void check(const GroupCase<F>& t) {
    expect(t.p.neg() == t.negated, "affine neg");
    check_form(t, scaled(t.p, t.zp), scaled(t.q, t.zq));
    check_form(t, scaled_jacobian(t.p, t.zp), scaled_jacobian(t.q, t.zq));
    expect_point(Jacobian<F>::from_xyzz(scaled(t.p, t.zp)), t.p, "from_xyzz");
    if (!t.p.is_infinity()) expect_point(Xyzz<F>::dbl_affine(t.p), t.doubled, "dbl_affine");
}

template <class F> static void check(const SumCase<F>& t) {
    auto mixed = Xyzz<F>::infinity(), full = mixed;
    auto jacobian = Jacobian<F>::infinity();
    for (const Affine<F>& p : t.term) {
        mixed.add(p);
        full.add(Xyzz<F>::from_affine(p));
        jacobian.add(p);
    }
    expect_point(mixed, t.sum, "sum of affine points");
    expect_point(full, t.sum, "sum of XYZZ points");
    expect_point(jacobian, t.sum, "sum in Jacobian form");
}

template <class Case> static void check_all() {
    for (case_index = 0; case_index < section.cases; case_index++) check(read_one<Case>());
}

template <template <class> class Case, class A, class B, class C, class D, class E, class F> static void by_instance() {
    switch (section.instance) {
        case 0: return check_all<Case<A>>();
        case 1: return check_all<Case<B>>();
        case 2: return check_all<Case<C>>();
        case 3: return check_all<Case<D>>();
        case 4: return check_all<Case<E>>();
        case 5: return check_all<Case<F>>();
        default: fprintf(stderr, "no instance %u\n", section.instance), exit(2);
    }
}

int main(int argc, char** argv) {
    if (argc != 2 || !(input = fopen(argv[1], "rb"))) {
        fprintf(stderr, "usage: vectors FILE\n");
        return 2;
    }
    using BnFp = Fp<Bn254Fp>;
    using BnFr = Fp<Bn254Fr>;
    using BlsFp = Fp<Bls12381Fp>;
    using BlsFr = Fp<Bls12381Fr>;
    using BnFp2 = Bn254G2::Field;
    using BlsFp2 = Bls12381G2::Field;
    while (fread(&section, sizeof section, 1, input) == 1) {
        checks = 0;
        switch (section.kind) {
            case FIELD: by_instance<FieldCase, BnFp, BnFr, BlsFp, BlsFr, BnFp2, BlsFp2>(); break;
            case BASE_FIELD: by_instance<BaseFieldCase, BnFp, BnFr, BlsFp, BlsFr, BnFp, BlsFp>(); break;
            case GROUP: by_instance<GroupCase, BnFp, BlsFp, BnFp2, BlsFp2, BnFp, BlsFp>(); break;
            case SUM: by_instance<SumCase, BnFp, BlsFp, BnFp2, BlsFp2, BnFp, BlsFp>(); break;
            default: fprintf(stderr, "no kind %u\n", section.kind); return 2;
        }
        printf("%u %u %u %llu\n", section.kind, section.instance, case_index, static_cast<unsigned long long>(checks));
    }
    return 0;
}
