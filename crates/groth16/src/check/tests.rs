use super::sections::{chance, combination, combined_rounds, least_factor, rounds, Rounds, CHUNK};
use super::*;
use ark_ec::models::CurveConfig;
use ark_ff::{AdditiveGroup, BigInteger};
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha12Rng;
use tandem_ops::{Bls12_381, Bn254, Unaligned};

type Base<G> = <<G as Group>::Ark as CurveGroup>::BaseField;
type G1<C> = <C as Curve>::G1;
type G2<C> = <C as Curve>::G2;

fn multiples<G: Group>(count: usize) -> Vec<G::Point> {
    crate::setup::sequence::<G>(count)
}

/// The least factor of the cofactor, above 1, by trial.
fn least_factor_by_trial<G: Group>() -> Option<u64> {
    let cofactor = <<G::Ark as CurveGroup>::Config as CurveConfig>::COFACTOR;
    let rest =
        |q: u64| cofactor.iter().rev().fold(0u128, |rest, &limb| ((rest << 64) | u128::from(limb)) % u128::from(q));
    (2..20_000).find(|&q| rest(q) == 0)
}

fn rounds_are_enough<G: Group>() {
    assert_eq!(least_factor::<G>(), least_factor_by_trial::<G>());
    let how = rounds::<G>();
    match least_factor::<G>() {
        None => assert_eq!(how.rounds, 0),
        Some(q) => {
            // Of the factors below 2^bits those of one class modulo q.
            let factors = 1u64 << how.bits;
            let most = (0..q).map(|class| (class..factors).step_by(q as usize).count()).max().unwrap();
            assert_eq!(chance(q, how.bits), most as f64 / factors as f64);
            let left = chance(q, how.bits).powi(how.rounds as i32);
            assert!(left <= 0.5f64.powi(64), "{} {}: {left}", G::Curve::ID, G::NAME);
        }
    }
    // As many are run: each takes one number for each point.
    let points = multiples::<G>(9);
    let mut rng = ChaCha12Rng::from_seed([1; 32]);
    assert!(combination::<G>(points.as_slice().into(), how, 0, &mut rng).is_some());
    assert_eq!(rng.get_word_pos(), 9 * u128::from(how.rounds));
    assert!(how.bits < CHUNK.ilog2());
}

#[test]
fn rounds_leave_a_chance_of_2_to_the_minus_64() {
    rounds_are_enough::<G1<Bn254>>();
    rounds_are_enough::<G2<Bn254>>();
    rounds_are_enough::<G1<Bls12_381>>();
    rounds_are_enough::<G2<Bls12_381>>();
}

/// A point of order 3 passes one round in three.
#[test]
fn no_draw_of_factors_lets_a_point_pass() {
    type G = G1<Bls12_381>;
    let mut points = multiples::<G>(20);
    points[7] = G::from_ark(&G::from_xy(Base::<G>::ZERO, Base::<G>::from(2u64)));
    for seed in 0..100 {
        let mut rng = ChaCha12Rng::from_seed([seed; 32]);
        assert!(combination::<G>(points.as_slice().into(), rounds::<G>(), 8, &mut rng).is_none(), "seed {seed}");
    }
}

/// The sum has factors of 64 bits, the same in both groups, and each round's last bits count.
fn factors_are_the_same<C: Curve>() {
    let (p, q) = (multiples::<C::G1>(3), multiples::<C::G2>(3));
    for bits in [1, 2, 7, rounds::<C::G1>().bits] {
        let how = Rounds { rounds: 0, bits };
        let mut rngs = [(); 3].map(|()| ChaCha12Rng::from_seed([bits as u8; 32]));
        let of_first = combined_rounds(bits);
        assert!(of_first * bits >= 64);
        let in_g1 = combination::<C::G1>(p.as_slice().into(), how, of_first, &mut rngs[0]).unwrap();
        let in_g2 = combination::<C::G2>(q.as_slice().into(), how, of_first, &mut rngs[1]).unwrap();
        assert!(same_multiple::<C>(in_g1, in_g2));
        let mut factors = [C::Fr::ZERO; 3];
        for _ in 0..of_first {
            for factor in &mut factors {
                let drawn = rngs[2].next_u32() >> (32 - bits);
                *factor = *factor * C::Fr::from(1u64 << bits) + C::Fr::from(drawn);
            }
        }
        let expected: <C::G1 as Group>::Ark = p.iter().zip(factors).map(|(p, k)| C::G1::to_ark(p) * k).sum();
        assert_eq!(in_g1, expected);
        assert!(factors.iter().any(|k| k.into_bigint().num_bits() > 60));
    }
}

#[test]
fn both_groups_get_the_same_factors() {
    factors_are_the_same::<Bn254>();
    factors_are_the_same::<Bls12_381>();
}

/// The last point of a chunk and the first of the next are found.
#[test]
fn sections_that_differ_in_one_point() {
    type C = Bn254;
    let (p, q) = (multiples::<G1<C>>(CHUNK + 5), multiples::<G2<C>>(CHUNK + 5));
    let sections = Sections::new(&crate::Silent).unwrap();
    let check = |p: &[_], q: &[_]| {
        let (p, q): (Unaligned<'_, _>, Unaligned<'_, _>) = (p.into(), q.into());
        sections.check_both::<C>(("P", p), ("Q", q)).map_err(|e| e.to_string())
    };
    assert_eq!(check(&p, &q), Ok(()));
    for at in [CHUNK - 1, CHUNK] {
        let mut other = p.clone();
        other[at] = p[(at + 1) % p.len()];
        let expected = format!("point {at} of section P and point {at} of section Q do not belong together");
        assert_eq!(check(&other, &q), Err(expected));
    }
}

/// Whoever makes a key must not know the factors.
#[test]
fn factors_are_drawn_anew() {
    let mut seeds: Vec<_> = (0..8).map(|_| *Sections::new(&crate::Silent).unwrap().seed()).collect();
    seeds.sort_unstable();
    seeds.dedup();
    assert_eq!(seeds.len(), 8);
}

fn coordinates_are_below_the_modulus<G: Group>() {
    let modulus = <<Base<G> as Field>::BasePrimeField as PrimeField>::MODULUS;
    let modulus: &[u64] = modulus.as_ref();
    let good = multiples::<G>(1)[0];
    assert_eq!(check_point::<G>(&good), Ok(()));
    for coordinate in 0..size_of::<G::Point>() / 8 / modulus.len() {
        let with = |change: i64| {
            let mut point = good;
            let limbs: &mut [u64] = bytemuck::cast_slice_mut(bytemuck::bytes_of_mut(&mut point));
            limbs[coordinate * modulus.len()..][..modulus.len()].copy_from_slice(modulus);
            limbs[coordinate * modulus.len()] = modulus[0].wrapping_add_signed(change);
            check_point::<G>(&point)
        };
        assert_eq!(with(0), Err(Fault::Range), "coordinate {coordinate}");
        assert_eq!(with(1), Err(Fault::Range), "coordinate {coordinate}");
        assert_eq!(with(-1), Err(Fault::Curve), "coordinate {coordinate}");
    }
}

#[test]
fn a_coordinate_may_not_be_the_modulus() {
    coordinates_are_below_the_modulus::<G1<Bn254>>();
    coordinates_are_below_the_modulus::<G2<Bn254>>();
    coordinates_are_below_the_modulus::<G1<Bls12_381>>();
    coordinates_are_below_the_modulus::<G2<Bls12_381>>();
}
