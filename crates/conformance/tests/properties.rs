//! What holds for all inputs, at random sizes and values.

use ark_ec::PrimeGroup;
use ark_ff::{Field, UniformRand};
use proptest::prelude::*;
use rand_chacha::{rand_core::RngCore, rand_core::SeedableRng, ChaCha8Rng};
use tandem_ops::{
    cpu::Cpu, naive, Backend, Bls12_381, Bn254, Buffer, Coset, Curve, Direction, Group, Lane, Mont, Msm, MsmRequest,
    MsmSet, Ntt, NttOp, Order, ScalarRecoding, Scalars, Scan, SpMv, SparseRows, Stored, Timeline, VecOps,
};

const LANE: Lane = Lane(0);

fn random<C: Curve>(n: usize, rng: &mut ChaCha8Rng) -> Vec<C::Fr> {
    (0..n).map(|_| C::Fr::rand(rng)).collect()
}

fn mont<C: Curve>(x: &[C::Fr]) -> Vec<Mont> {
    x.iter().map(|&x| C::mont(x)).collect()
}

fn form(bits: u8, g: Mont) -> NttOp {
    let order = |bit: u8| if bits >> bit & 1 == 0 { Order::Natural } else { Order::BitReversed };
    NttOp {
        direction: if bits & 1 == 0 { Direction::Forward } else { Direction::Inverse },
        coset: [Coset::Subgroup, Coset::Odd, Coset::Shift(g)][usize::from(bits >> 3) % 3],
        input: order(1),
        output: order(2),
    }
}

/// transform(a + k b) = transform(a) + k transform(b), and what the inverse makes of it is a + k b again.
fn transforms_are_linear<C: Curve>(log_n: u32, bits: u8, seed: u64) {
    let (cpu, mut rng) = (Cpu::new(1), ChaCha8Rng::seed_from_u64(seed));
    let (a, b) = (random::<C>(1 << log_n, &mut rng), random::<C>(1 << log_n, &mut rng));
    let (k, op) = (C::Fr::rand(&mut rng), form(bits, C::mont(C::Fr::rand(&mut rng))));
    let transform = |x: &[C::Fr], op| {
        let mut buf = cpu.upload(LANE, &mont::<C>(x)).unwrap();
        Ntt::<C>::ntt(&cpu, &mut buf, op).unwrap();
        buf
    };
    let sum: Vec<_> = a.iter().zip(&b).map(|(a, b)| *a + k * b).collect();
    let mut whole = transform(&sum, op);
    let (mut left, mut right) = (transform(&a, op), transform(&b, op));
    VecOps::<C>::scale(&cpu, &mut right, C::mont(k)).unwrap();
    VecOps::<C>::add(&cpu, &mut left, &right).unwrap();
    assert_eq!(whole.as_slice(), left.as_slice());

    let direction = if op.direction == Direction::Forward { Direction::Inverse } else { Direction::Forward };
    let back = NttOp { direction, input: op.output, output: op.input, ..op };
    Ntt::<C>::ntt(&cpu, &mut whole, back).unwrap();
    assert_eq!(whole.as_slice(), mont::<C>(&sum));
}

/// A product of polynomials by transforms is their product.
fn transforms_multiply<C: Curve>(log_n: u32, seed: u64) {
    let (cpu, mut rng) = (Cpu::new(1), ChaCha8Rng::seed_from_u64(seed));
    let n = 1usize << log_n;
    let (a, b) = (random::<C>(n / 2, &mut rng), random::<C>(n / 2, &mut rng));
    let mut expected = vec![C::Fr::from(0u64); n];
    for (i, a) in a.iter().enumerate() {
        b.iter().enumerate().for_each(|(j, b)| expected[i + j] += *a * b);
    }
    let (n_order, r_order) = (Order::Natural, Order::BitReversed);
    let values = |x: &[C::Fr]| {
        let mut buf = cpu.alloc(LANE, n).unwrap();
        cpu.write(&mut buf, 0, &mont::<C>(x)).unwrap();
        let op = NttOp { direction: Direction::Forward, coset: Coset::Odd, input: n_order, output: r_order };
        Ntt::<C>::ntt(&cpu, &mut buf, op).unwrap();
        buf
    };
    let (mut product, b) = (values(&a), values(&b));
    VecOps::<C>::mul(&cpu, &mut product, &b).unwrap();
    let op = NttOp { direction: Direction::Inverse, coset: Coset::Odd, input: r_order, output: n_order };
    Ntt::<C>::ntt(&cpu, &mut product, op).unwrap();
    assert_eq!(product.len(), n);
    assert_eq!(product.as_slice(), mont::<C>(&expected));
}

/// sum((k + m s) P) = sum(k P) + m sum(s P)
fn sums_are_linear<G: Group>(n: usize, seed: u64) {
    let (cpu, mut rng) = (Cpu::new(1), ChaCha8Rng::seed_from_u64(seed));
    let points: Vec<G::Point> =
        (0..n).map(|_| G::from_ark(&(G::Ark::generator() * <G::Curve as Curve>::Fr::rand(&mut rng)).into())).collect();
    let sets = vec![MsmSet { g2: G::NAME == "G2", first: 0, points: n }];
    let request = MsmRequest { scalars: n, sets, memory_bytes: u64::MAX, uses: 1, pipelined: false };
    let plan = ScalarRecoding::<G::Curve>::plan(&cpu, LANE, &request).unwrap();
    let bases = Msm::<G>::load(&cpu, LANE, &plan, 0, Stored::from(&points[..])).unwrap();
    let sum = |k: &[<G::Curve as Curve>::Fr]| {
        let scalars = cpu.upload(LANE, &mont::<G::Curve>(k)).unwrap();
        let digits = ScalarRecoding::<G::Curve>::recode(&cpu, &plan, Scalars::Mont(&scalars)).unwrap();
        Msm::<G>::msm(&cpu, &bases, &digits, &Timeline::none()).unwrap().wait().unwrap()
    };
    let (k, s) = (random::<G::Curve>(n, &mut rng), random::<G::Curve>(n, &mut rng));
    let m = <G::Curve as Curve>::Fr::from(u64::from(rng.next_u32() % 5));
    let both: Vec<_> = k.iter().zip(&s).map(|(k, s)| *k + m * s).collect();
    assert_eq!(sum(&both), sum(&k) + sum(&s) * m);
}

fn sparse_is_dense<C: Curve>(rows: usize, columns: usize, seed: u64) {
    let (cpu, mut rng) = (Cpu::new(1), ChaCha8Rng::seed_from_u64(seed));
    let values = random::<C>(5, &mut rng).into_iter().map(C::mont2).collect();
    let mut m = SparseRows { columns, starts: vec![0], values, ..SparseRows::default() };
    for _ in 0..rows {
        for _ in 0..rng.next_u32() % 4 {
            m.column.push(rng.next_u32() % columns as u32);
            m.value.push(rng.next_u32() % 5);
        }
        m.starts.push(m.column.len() as u32);
    }
    let x: Vec<_> =
        (0..columns).map(|i| if i % 3 == 0 { C::Fr::from(i as u64 % 2) } else { C::Fr::rand(&mut rng) }).collect();
    let canonical: Vec<_> = x.iter().map(|&x| C::canonical(x)).collect();
    let loaded = SpMv::<C>::load_matrix(&cpu, LANE, &m).unwrap();
    let mut out = cpu.alloc(LANE, rows).unwrap();
    SpMv::<C>::spmv(&cpu, &loaded, &cpu.upload(LANE, &canonical).unwrap(), &mut out).unwrap();
    assert_eq!(out.as_slice(), mont::<C>(&naive::spmv::<C>(&m, &x)));
}

/// f(x) = q(x) (x^m - b) + r(x) for what a division makes of f.
fn divisions_divide<C: Curve>(n: usize, m: usize, seed: u64) {
    let (cpu, mut rng) = (Cpu::new(1), ChaCha8Rng::seed_from_u64(seed));
    let (f, b, x) = (random::<C>(n, &mut rng), C::Fr::rand(&mut rng), C::Fr::rand(&mut rng));
    let mut divided = cpu.upload(LANE, &mont::<C>(&f)).unwrap();
    let value = |buf: &tandem_ops::cpu::Buf<Mont>| {
        C::from_mont(Scan::<C>::evaluate(&cpu, buf, C::mont(x)).unwrap().wait().unwrap())
    };
    let whole = value(&divided);
    Scan::<C>::divide(&cpu, &mut divided, m, C::mont(b)).unwrap();
    let part = |range| value(&cpu.copy(&divided, range, LANE).unwrap());
    let (remainder, quotient) = (part(0..m.min(n)), part(m.min(n)..n));
    assert_eq!(whole, quotient * (x.pow([m as u64]) - b) + remainder);
}

/// A product over two pieces is that of the whole.
fn products_go_on<C: Curve>(n: usize, first: usize, seed: u64) {
    let (cpu, mut rng) = (Cpu::new(1), ChaCha8Rng::seed_from_u64(seed));
    let x = mont::<C>(&random::<C>(n, &mut rng));
    let scan = |x: &[Mont]| {
        let mut buf = cpu.upload(LANE, x).unwrap();
        let total = Scan::<C>::prefix_product(&cpu, &mut buf).unwrap().wait().unwrap();
        (buf, total)
    };
    let (left, right) = x.split_at(first.min(n));
    let (whole, ((left, carry), (mut right, _))) = (scan(&x).0, (scan(left), scan(right)));
    VecOps::<C>::scale(&cpu, &mut right, carry).unwrap();
    assert_eq!(whole.as_slice(), [left.as_slice(), right.as_slice()].concat());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn transforms(log_n in 0u32..13, bits in 0u8..24, seed: u64) {
        transforms_are_linear::<Bn254>(log_n, bits, seed);
        transforms_are_linear::<Bls12_381>(log_n, bits, seed);
    }

    #[test]
    fn products_of_polynomials(log_n in 1u32..8, seed: u64) {
        transforms_multiply::<Bn254>(log_n, seed);
        transforms_multiply::<Bls12_381>(log_n, seed);
    }

    #[test]
    fn divisions(n in 0usize..40_000, m in 1usize..3000, seed: u64) {
        divisions_divide::<Bn254>(n, m, seed);
        divisions_divide::<Bls12_381>(n / 7, m % 50 + 1, seed);
    }

    #[test]
    fn prefix_products(n in 0usize..40_000, first in 0usize..20_000, seed: u64) {
        products_go_on::<Bn254>(n, first, seed);
        products_go_on::<Bls12_381>(n / 7, first / 5, seed);
    }

    #[test]
    fn sparse_products(rows in 0usize..60, columns in 1usize..40, seed: u64) {
        sparse_is_dense::<Bn254>(rows, columns, seed);
        sparse_is_dense::<Bls12_381>(rows, columns, seed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn sums(n in 0usize..70, seed: u64) {
        sums_are_linear::<tandem_ops::G1<Bn254>>(n, seed);
        sums_are_linear::<tandem_ops::G2<Bls12_381>>(n, seed);
    }
}
