//! Sums in pairs against arkworks: random points, repetitions, opposites and infinities in every place.
#![forbid(unsafe_code)]

use ark_ec::{AffineRepr, CurveGroup, PrimeGroup};
use ark_ff::{BigInt, Field, Fp, MontBackend, MontConfig, PrimeField, UniformRand};
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tandem_field_simd::{Avx512, Bls12381G1, Bls12381G2, Bn254G1, Bn254G2, Group};

/// A coordinate's words, in arkworks' Montgomery form.
trait Coordinate: Field {
    fn words(&self) -> Vec<u64>;
    fn from_words(words: &[u64]) -> Self;
}

impl<P: MontConfig<N>, const N: usize> Coordinate for Fp<MontBackend<P, N>, N> {
    fn words(&self) -> Vec<u64> {
        self.0 .0.to_vec()
    }
    fn from_words(words: &[u64]) -> Self {
        Fp::new_unchecked(BigInt(words.try_into().unwrap()))
    }
}

macro_rules! quadratic {
    ($name:ty) => {
        impl Coordinate for $name {
            fn words(&self) -> Vec<u64> {
                [self.c0.words(), self.c1.words()].concat()
            }
            fn from_words(words: &[u64]) -> Self {
                let (c0, c1) = words.split_at(words.len() / 2);
                Self::new(Coordinate::from_words(c0), Coordinate::from_words(c1))
            }
        }
    };
}
quadratic!(ark_bn254::Fq2);
quadratic!(ark_bls12_381::Fq2);

fn words<C: CurveGroup>(points: &[C], of_point: usize) -> Vec<u64>
where
    C::BaseField: Coordinate,
{
    let word = |p: &C| match p.into_affine().xy() {
        Some((x, y)) => [x.words(), y.words()].concat(),
        None => vec![0; of_point],
    };
    points.iter().flat_map(word).collect()
}

fn agrees<C: CurveGroup, G: Group>()
where
    C::BaseField: Coordinate,
{
    let Some(processor) = Avx512::detect() else {
        eprintln!("skipped: this processor has no AVX-512 IFMA");
        return;
    };
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut invert = |words: &mut [u64]| {
        let inverse = C::BaseField::from_words(words).inverse().unwrap();
        words.copy_from_slice(&inverse.words());
    };
    let mut scratch = G::Scratch::default();
    for groups in [0, 1, 2, 3, 40, 7, 8, 9] {
        let mut counts: Vec<usize> = (0..groups).map(|_| (rng.next_u32() % 9) as usize).collect();
        let total = counts.iter().sum();
        let mut points: Vec<C> = Vec::new();
        for i in 0..total {
            points.push(match rng.next_u32() % 8 {
                0 => C::ZERO,
                1 | 2 if i > 0 => points[i - 1],
                3 if i > 0 => -points[i - 1],
                _ => C::generator() * C::ScalarField::rand(&mut rng),
            });
        }
        let negative: Vec<bool> = (0..total).map(|_| rng.next_u32() & 1 == 1).collect();
        let signed: Vec<C> = points.iter().zip(&negative).map(|(p, n)| if *n { -*p } else { *p }).collect();
        let mut at = 0;
        let expected: Vec<C> = counts
            .iter()
            .map(|n| {
                at += n;
                signed[at - n..at].iter().sum()
            })
            .collect();

        let plain = words(&points, G::WORDS);
        let mut own = plain.clone();
        G::widen(processor, &mut own);
        let mut back = own.clone();
        G::narrow(processor, &mut back);
        assert!(back == plain, "{groups} groups: there and back");
        G::negate(&mut own, |i| negative[i]);
        // At random order, so that all of a group's points are added up.
        let left = G::add_in_pairs(processor, &mut scratch, &mut own, &mut counts, 1, &mut invert).unwrap();
        assert_eq!(left, counts.iter().sum());
        assert!(counts.iter().all(|n| *n < 2));
        let own = &mut own[..left * G::WORDS];
        G::narrow(processor, own);
        let expected: Vec<C> = expected.iter().zip(&counts).filter(|(_, n)| **n == 1).map(|(sum, _)| *sum).collect();
        assert!(*own == words(&expected, G::WORDS), "{groups} groups");
    }
}

/// Points of the curve hold, and no others: each place is damaged in every way that changes what it is.
fn equations_hold<C: CurveGroup, G: Group>()
where
    C::BaseField: Coordinate,
{
    let Some(processor) = Avx512::detect() else { return };
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    let (x, y) = C::generator().into_affine().xy().unwrap();
    let b = (y.square() - x.square() * x).words();
    let modulus = <C::BaseField as Field>::BasePrimeField::MODULUS;
    let (modulus, half): (&[u64], usize) = (modulus.as_ref(), G::WORDS / 2);
    for len in [0, 1, 7, 8, 9, 17] {
        let of = |i: usize, rng: &mut ChaCha8Rng| {
            if i % 5 == 4 {
                C::ZERO
            } else {
                C::generator() * C::ScalarField::rand(rng)
            }
        };
        let points: Vec<C> = (0..len).map(|i| of(i, &mut rng)).collect();
        let good = words(&points, G::WORDS);
        assert!(G::hold(processor, &good, &b), "{len}");
        for at in 0..len {
            let damaged = |damage: &mut dyn FnMut(&mut [u64])| {
                let mut bad = good.clone();
                damage(&mut bad[at * G::WORDS..(at + 1) * G::WORDS]);
                let holds = G::hold(processor, &bad, &b);
                assert!(holds == (bad == good), "point {at} of {len}");
            };
            for bit in [0, 1, 51, 52, 63] {
                damaged(&mut |point| point[rng.next_u32() as usize % G::WORDS] ^= 1 << bit);
            }
            // The same number, once more than once below the modulus.
            for coordinate in 0..G::WORDS / modulus.len() {
                damaged(&mut |point| {
                    let mut carry = false;
                    for (word, p) in point[coordinate * modulus.len()..].iter_mut().zip(modulus) {
                        let (sum, first) = word.overflowing_add(*p);
                        let (sum, second) = sum.overflowing_add(u64::from(carry));
                        (*word, carry) = (sum, first | second);
                    }
                    assert!(!carry);
                });
            }
            damaged(&mut |point| point.fill(u64::MAX));
            damaged(&mut |point| point[..half].fill(0));
            damaged(&mut |point| point[half..].fill(0));
            damaged(&mut |point| point.rotate_left(half));
        }
    }
}

#[test]
fn points_of_the_curve_hold() {
    equations_hold::<ark_bn254::G1Projective, Bn254G1>();
    equations_hold::<ark_bn254::G2Projective, Bn254G2>();
    equations_hold::<ark_bls12_381::G1Projective, Bls12381G1>();
    equations_hold::<ark_bls12_381::G2Projective, Bls12381G2>();
}

/// Levels that are not worth an inversion are left.
#[test]
fn few_pairs_are_left() {
    let Some(processor) = Avx512::detect() else { return };
    let generator = ark_bn254::G1Projective::generator();
    let mut own = words(&[generator; 4], 8);
    let before = own.clone();
    let mut counts = [4];
    let never = &mut |_: &mut [u64]| panic!("no inversion is wanted");
    let scratch = &mut Default::default();
    assert_eq!(Bn254G1::add_in_pairs(processor, scratch, &mut own, &mut counts, 3, never).unwrap(), 4);
    assert!(own == before && counts == [4]);
}

#[test]
fn bn254_g1() {
    agrees::<ark_bn254::G1Projective, Bn254G1>();
}

#[test]
fn bn254_g2() {
    agrees::<ark_bn254::G2Projective, Bn254G2>();
}

#[test]
fn bls12_381_g1() {
    agrees::<ark_bls12_381::G1Projective, Bls12381G1>();
}

#[test]
fn bls12_381_g2() {
    agrees::<ark_bls12_381::G2Projective, Bls12381G2>();
}
