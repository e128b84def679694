//! The device's fields and curves on their host path, compiled with the C++ compiler alone, against arkworks.

mod support;

use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{AdditiveGroup, BigInt, Field, Fp, Fp2, Fp2Config, MontBackend, MontConfig, PrimeField, UniformRand};
use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};
use std::path::Path;
use std::process::Command;
use support::{compile, run};
use tandem_ops::{Bls12_381, Bn254, Group, G1, G2};

const FIELD: u32 = 0;
const BASE_FIELD: u32 = 1;
const GROUP: u32 = 2;
const SUM: u32 = 3;
const SUM_TERMS: usize = 24;

/// A field with the layout that it has on the device.
trait Layout: Field {
    /// The Montgomery limbs of a value, least significant byte first.
    fn put(&self, out: &mut Vec<u8>);
    /// The limbs of the integers that a value is, least significant byte first.
    fn put_canonical(&self, out: &mut Vec<u8>);
    /// Values at the borders of the arithmetic.
    fn edges() -> Vec<Self>;
}

impl<P: MontConfig<N>, const N: usize> Layout for Fp<MontBackend<P, N>, N> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.0).0.iter().for_each(|limb| out.extend(limb.to_le_bytes()));
    }
    fn put_canonical(&self, out: &mut Vec<u8>) {
        self.into_bigint().0.iter().for_each(|limb| out.extend(limb.to_le_bytes()));
    }
    fn edges() -> Vec<Self> {
        let r = Self::from(2u64).pow([64 * N as u64]);
        let mut all = vec![Self::ZERO, Self::ONE, -Self::ONE, -Self::from(2u64), Self::from(2u64), r, r * r];
        // The values whose Montgomery limbs are 1, p - 1, (p - 1) / 2, and all ones in the lower half.
        let raw_one = Self::new_unchecked(BigInt::from(1u64));
        let mut low = BigInt([0; N]);
        low.0[..N / 2].fill(u64::MAX);
        let half = Self::MODULUS_MINUS_ONE_DIV_TWO;
        all.extend([raw_one, -raw_one, Self::new_unchecked(half), Self::new_unchecked(low)]);
        all
    }
}

impl<C: Fp2Config<Fp = Fp<MontBackend<P, N>, N>>, P: MontConfig<N>, const N: usize> Layout for Fp2<C> {
    fn put(&self, out: &mut Vec<u8>) {
        self.c0.put(out);
        self.c1.put(out);
    }
    fn put_canonical(&self, out: &mut Vec<u8>) {
        self.c0.put_canonical(out);
        self.c1.put_canonical(out);
    }
    fn edges() -> Vec<Self> {
        let base: Vec<C::Fp> = Layout::edges();
        let some = [C::Fp::ZERO, C::Fp::ONE, -C::Fp::ONE];
        base.iter().flat_map(|&x| some.iter().flat_map(move |&y| [Self::new(x, y), Self::new(y, x)])).collect()
    }
}

/// The file of vectors in the making, and how many cases each section has.
#[derive(Default)]
struct Vectors {
    bytes: Vec<u8>,
    sections: Vec<(u32, u32, u32)>,
}

impl Vectors {
    fn section(&mut self, kind: u32, instance: u32, cases: usize) {
        let cases = u32::try_from(cases).unwrap();
        [kind, instance, cases].iter().for_each(|x| self.bytes.extend(x.to_le_bytes()));
        self.sections.push((kind, instance, cases));
    }

    fn field<F: Layout>(&mut self, instance: u32, random: usize, rng: &mut ChaCha8Rng) {
        let cases = pairs::<F>(random, rng);
        self.section(FIELD, instance, cases.len());
        for (i, &[a, b]) in cases.iter().enumerate() {
            let [d, c] = cases[(7 * i + 3) % cases.len()];
            let flag = |x: bool| if x { F::ONE } else { F::ZERO };
            let out = &mut self.bytes;
            [a, b, c, d, a + b, a - b, a * b, a.square(), a.double(), -a].iter().for_each(|x| x.put(out));
            a.inverse().unwrap_or(F::ZERO).put(out);
            a.put_canonical(out);
            [a * b - c * d, flag(a.is_zero()), flag(a == b)].iter().for_each(|x| x.put(out));
        }
    }

    fn base_field<P: MontConfig<N>, const N: usize>(&mut self, instance: u32, random: usize, rng: &mut ChaCha8Rng) {
        let cases = pairs::<Fp<MontBackend<P, N>, N>>(random, rng);
        let r = Fp::from(2u64).pow([64 * N as u64]);
        self.section(BASE_FIELD, instance, cases.len());
        for (i, &[a, b]) in cases.iter().enumerate() {
            let [d, c] = cases[(7 * i + 3) % cases.len()];
            let out = &mut self.bytes;
            [a, b, c, d, a * r].iter().for_each(|x| x.put(out));
            b.put_canonical(out);
            [a * b, a * b + c * d].iter().for_each(|x| x.put(out));
        }
    }

    fn group<G: Group>(&mut self, instance: u32, random: usize, rng: &mut ChaCha8Rng)
    where
        <G::Ark as CurveGroup>::BaseField: Layout,
    {
        let point = |rng: &mut ChaCha8Rng| <G::Ark as CurveGroup>::Affine::from(G::Ark::rand(rng));
        let zero = <G::Ark as CurveGroup>::Affine::zero();
        let (p, q) = (point(rng), point(rng));
        let g = <G::Ark as CurveGroup>::Affine::generator();
        let negative = (-p.into_group()).into_affine();
        let mut cases = vec![(p, q), (p, p), (p, negative), (p, zero), (zero, p), (zero, zero), (g, g), (g, p)];
        cases.extend((0..random).map(|_| (point(rng), point(rng))));

        self.section(GROUP, instance, cases.len());
        for (p, q) in &cases {
            let sum = (*p + *q).into_affine();
            let doubled = (*p + *p).into_affine();
            let negated = (-p.into_group()).into_affine();
            for point in [p, q, &sum, &doubled, &negated] {
                self.bytes.extend(bytemuck::bytes_of(&G::from_ark(point)));
            }
            for _ in 0..2 {
                <G::Ark as CurveGroup>::BaseField::rand(rng).put(&mut self.bytes);
            }
        }

        // Sums with repeated points, negatives and infinity among the terms.
        self.section(SUM, instance, 4);
        for i in 0..4 {
            let mut terms: Vec<_> = (0..SUM_TERMS).map(|_| point(rng)).collect();
            let first = terms[0];
            terms[1] = first;
            terms[7] = zero;
            terms[9] = (-terms[8].into_group()).into_affine();
            if i == 1 {
                terms.fill(first);
            }
            if i == 2 {
                terms[1] = (-first.into_group()).into_affine();
            }
            let sum = terms.iter().fold(G::Ark::default(), |sum, p| sum + p).into_affine();
            for point in terms.iter().chain([&sum]) {
                self.bytes.extend(bytemuck::bytes_of(&G::from_ark(point)));
            }
        }
    }

    /// Vectors of every kind and instance, with so many random cases for each field and group.
    fn all(random: usize) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(0x7461_6e64_656d);
        let mut vectors = Self::default();
        vectors.field::<ark_bn254::Fq>(0, 10 * random, &mut rng);
        vectors.field::<ark_bn254::Fr>(1, 10 * random, &mut rng);
        vectors.field::<ark_bls12_381::Fq>(2, 10 * random, &mut rng);
        vectors.field::<ark_bls12_381::Fr>(3, 10 * random, &mut rng);
        vectors.field::<ark_bn254::Fq2>(4, 5 * random, &mut rng);
        vectors.field::<ark_bls12_381::Fq2>(5, 5 * random, &mut rng);
        vectors.base_field::<ark_bn254::FqConfig, 4>(0, 10 * random, &mut rng);
        vectors.base_field::<ark_bn254::FrConfig, 4>(1, 10 * random, &mut rng);
        vectors.base_field::<ark_bls12_381::FqConfig, 6>(2, 10 * random, &mut rng);
        vectors.base_field::<ark_bls12_381::FrConfig, 4>(3, 10 * random, &mut rng);
        vectors.group::<G1<Bn254>>(0, random, &mut rng);
        vectors.group::<G1<Bls12_381>>(1, random, &mut rng);
        vectors.group::<G2<Bn254>>(2, random, &mut rng);
        vectors.group::<G2<Bls12_381>>(3, random, &mut rng);
        vectors
    }
}

/// Every pair of edge values, edge values with random ones on either side, equal pairs, and random pairs.
fn pairs<F: Layout>(random: usize, rng: &mut ChaCha8Rng) -> Vec<[F; 2]> {
    let edges = F::edges();
    let mut all: Vec<[F; 2]> = edges.iter().flat_map(|&a| edges.iter().map(move |&b| [a, b])).collect();
    for &edge in &edges {
        all.extend([[edge, F::rand(rng)], [F::rand(rng), edge]]);
    }
    for _ in 0..random {
        let a = F::rand(rng);
        all.extend([[a, F::rand(rng)], [a, a]]);
    }
    all
}

fn agrees_with_arkworks(program: &Path) {
    let name = program.file_name().unwrap().to_str().unwrap();
    let vectors = Vectors::all(40);
    let output = run(program, &vectors.bytes, &format!("{name}.bin"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut checked = Vec::new();
    for line in text.lines() {
        let numbers: Vec<u32> = line.split(' ').map(|x| x.parse().unwrap()).collect();
        let [kind, instance, cases, checks] = numbers[..] else { panic!("unexpected line {line:?}") };
        // The least number of checks that a case of each kind has.
        let least = [21, 6, 70, 8][kind as usize];
        assert!(checks >= cases * least, "only {checks} checks in {cases} cases of kind {kind}");
        checked.push((kind, instance, cases));
    }
    assert_eq!(checked, vectors.sections, "the program did not check what was made for it");
}

#[test]
fn host_path_agrees_with_arkworks() {
    let program = compile("vectors.cpp", "host_fields", &[]);
    agrees_with_arkworks(&program);

    // A wrong expected value must be found: one bit near the end of each section. A group's case ends with two
    // denominators, which any value fits; before them stands the negated point.
    let vectors = Vectors::all(1);
    for (i, &(kind, instance, _)) in vectors.sections.iter().enumerate() {
        let mut corrupt = vectors.bytes.clone();
        let after = if kind == GROUP { 2 * coordinate_bytes(instance) } else { 0 };
        corrupt[section_end(&vectors, i) - after - 8] ^= 1;
        let output = run(&program, &corrupt, "host_fields_corrupt.bin");
        assert_eq!(output.status.code(), Some(1), "a corrupt vector passed in section {i}");
    }
    assert_eq!(section_end(&vectors, vectors.sections.len() - 1), vectors.bytes.len());
    let output = run(&program, &vectors.bytes[..vectors.bytes.len() - 1], "host_fields_short.bin");
    assert_eq!(output.status.code(), Some(2), "a truncated file passed");
}

#[test]
fn device_carry_chains_agree_with_arkworks() {
    let program = compile("vectors.cpp", "host_fields_device", &["-DTANDEM_EMULATE_PTX"]);
    agrees_with_arkworks(&program);
}

#[test]
fn device_carry_chains_hold_at_their_bounds() {
    let program = compile("limbs.cpp", "host_fields_limbs", &["-DTANDEM_EMULATE_PTX"]);
    let output = Command::new(&program).arg("100000").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout).matches(": 100000 cases\n").count(), 4);
}

/// Bytes of a coordinate of each group instance.
fn coordinate_bytes(instance: u32) -> usize {
    [32, 48, 64, 96][instance as usize]
}

fn section_end(vectors: &Vectors, index: usize) -> usize {
    let field_bytes = [32, 32, 48, 32, 64, 96];
    vectors.sections[..=index]
        .iter()
        .map(|&(kind, instance, cases)| {
            let per_case = match kind {
                FIELD => 15 * field_bytes[instance as usize],
                BASE_FIELD => 8 * field_bytes[instance as usize],
                GROUP => 12 * coordinate_bytes(instance),
                _ => 2 * (SUM_TERMS + 1) * coordinate_bytes(instance),
            };
            12 + cases as usize * per_case
        })
        .sum()
}
