use super::lanes::Factors;
use super::sections::{combination, is_whole_curve, ROUNDS};
use super::*;
use crate::setup::{setup, Secret};
use crate::synthetic::Synthetic;
use crate::OwnedKey;
use ark_ec::short_weierstrass::{Affine, Projective, SWCurveConfig};
use ark_ec::CurveGroup;
use ark_ff::{AdditiveGroup, BigInteger, Field, PrimeField, UniformRand};
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha12Rng;
use tandem_ops::cpu::trits::{trit, MOST, TRITS};
use tandem_ops::cpu::Cpu;
use tandem_ops::zcash::InMemory;
use tandem_ops::{Bls12_381, Bn254, Stored};

type Base<G> = <<G as Group>::Ark as CurveGroup>::BaseField;
type G1<C> = <C as Curve>::G1;
type G2<C> = <C as Curve>::G2;

fn multiples<G: Group>(count: usize) -> Vec<G::Point> {
    crate::setup::sequence::<G>(count)
}

/// A point outside the subgroup is of an odd order modulo it, 3 or more: of three factors it cancels in one at most.
fn rounds_are_enough<G: Group>(least: Option<u64>) {
    assert_eq!(lanes::least_factor::<G>(), least);
    assert_eq!(is_whole_curve::<G>(), least.is_none());
    assert!(least.is_none_or(|q| q >= 3));
    assert!(f64::from(TRITS * ROUNDS) * 3f64.log2() >= 64.0);
    // As many are run: each takes one number for each point.
    let points = multiples::<G>(9);
    let mut rng = ChaCha12Rng::from_seed([1; 32]);
    assert!(combination::<G>(points.as_slice().into(), true, &mut rng).unwrap().is_some());
    assert_eq!(rng.get_word_pos(), 9 * u128::from(ROUNDS));
}

#[test]
fn rounds_leave_a_chance_of_2_to_the_minus_64() {
    rounds_are_enough::<G1<Bn254>>(None);
    rounds_are_enough::<G2<Bn254>>(Some(10069));
    rounds_are_enough::<G1<Bls12_381>>(Some(3));
    rounds_are_enough::<G2<Bls12_381>>(Some(13));
}

/// Of the factors of 16 bits a point may take those of one residue modulo q.
fn rounds_on_lanes<G: Group>(expected: u32) {
    let rounds = lanes::rounds::<G>();
    assert_eq!(rounds, expected);
    if let Some(q) = lanes::least_factor::<G>() {
        let most = (0..1 << 16).filter(|factor| factor % q == 0).count();
        let chance = |rounds: u32| (most as f64 / f64::from(1 << 16)).powi(rounds as i32);
        assert!(chance(rounds) <= 2f64.powi(-64) && chance(rounds - 1) > 2f64.powi(-64));
    }
}

#[test]
fn rounds_on_lanes_leave_a_chance_of_2_to_the_minus_64() {
    rounds_on_lanes::<G1<Bn254>>(0);
    rounds_on_lanes::<G2<Bn254>>(5);
    rounds_on_lanes::<G1<Bls12_381>>(41);
    rounds_on_lanes::<G2<Bls12_381>>(18);
}

/// All 16 bits of a factor are drawn, anew for each point, round and check; the last one too where their number is odd.
#[test]
fn factors_on_lanes_are_drawn_anew() {
    for count in [1, 2, 3, (1 << 16) + 1, (1 << 17) - 1] {
        let mut factors = [Factors::new(count).unwrap(), Factors::new(count).unwrap()];
        let drawn: Vec<_> =
            factors.iter_mut().flat_map(|f| [0, 1, 40].map(|round| f.of_round(round).to_vec())).collect();
        assert_eq!(factors[0].of_round(40), drawn[2]);
        for (i, one) in drawn.iter().enumerate() {
            assert_eq!(one.len(), count);
            assert!(one.iter().all(|k| k.0[0] < 1 << 16 && k.0[1..] == [0; 3]));
            if count > 1000 {
                let [all, any] = one.iter().fold([u64::MAX, 0], |[all, any], k| [all & k.0[0], any | k.0[0]]);
                assert_eq!([all, any], [0, 0xffff]);
                // Chunks differ, and rounds.
                let last = one.len() - (1 << 16);
                assert!(last == 1 || one[..last] != one[1 << 16..]);
                assert!(drawn[..i].iter().all(|other| other != one));
            }
        }
    }
}

/// A point of the curve, of an order that is not the subgroup's.
fn on_the_curve<P: SWCurveConfig>(rng: &mut ChaCha12Rng) -> Projective<P> {
    loop {
        if let Some(point) = Affine::<P>::get_point_from_x_unchecked(P::BaseField::rand(rng), false) {
            return point.into_group();
        }
    }
}

/// The multiple of any point of the curve: arkworks' own takes the factor modulo the subgroup's order.
fn times<P: SWCurveConfig>(point: Projective<P>, factor: &[u64]) -> Projective<P> {
    ark_ff::BitIteratorBE::new(factor)
        .fold(Projective::ZERO, |sum, bit| sum.double() + if bit { point } else { Projective::ZERO })
}

/// A point of this order, which divides the cofactor.
fn of_order<P: SWCurveConfig>(order: u64, rng: &mut ChaCha12Rng) -> Projective<P> {
    // The cofactor without this factor, the top limb first.
    let mut cofactor = P::COFACTOR.to_vec();
    loop {
        let (mut over, mut rest) = (cofactor.clone(), 0u128);
        for limb in over.iter_mut().rev() {
            let dividend = (rest << 64) | u128::from(*limb);
            (*limb, rest) = ((dividend / u128::from(order)) as u64, dividend % u128::from(order));
        }
        if rest > 0 {
            break;
        }
        cofactor = over;
    }
    loop {
        let mut point = times(times(on_the_curve::<P>(rng), P::ScalarField::MODULUS.as_ref()), &cofactor);
        // Of a power of the order.
        while !point.is_zero() {
            let multiple = times(point, &[order]);
            if multiple.is_zero() {
                return point;
            }
            point = multiple;
        }
    }
}

/// Chunks of the tests below: large enough that their points are not checked one by one.
const SMALL: usize = 600;

/// Points with parts outside the subgroup, wherever they lie and whatever they cancel.
fn points_outside_are_found<P: SWCurveConfig, G: Group<Ark = Projective<P>>>(order: u64) {
    let mut rng = ChaCha12Rng::from_seed([3; 32]);
    let good = multiples::<G>(2 * SMALL + 550);
    let sections = Sections::new(&crate::Silent).unwrap().by(SMALL);
    let check = |points: &[_]| sections.check::<G>("X", points.into()).map_err(|e| e.to_string());
    assert_eq!(check(&good), Ok(()));
    let small = of_order::<P>(order, &mut rng);
    let large = on_the_curve::<P>(&mut rng);
    let last = good.len() - 1;
    let turned = -small;
    for bad in [
        vec![(0, small)],
        vec![(last, small)],
        vec![(SMALL - 1, small)],
        vec![(SMALL, large)],
        vec![(2 * SMALL, large)],
        // The sum of all points is that of good ones.
        vec![(7, small), (8, turned)],
        vec![(SMALL + 3, large), (SMALL + 500, -large)],
        vec![(SMALL - 1, small), (SMALL, turned)],
        // The first is named.
        vec![(1300, small), (700, large), (9, small)],
    ] {
        let mut points = good.clone();
        for &(at, outside) in &bad {
            points[at] = G::from_ark(&(outside + G::to_ark(&points[at])).into_affine());
        }
        let first = bad.iter().map(|&(at, _)| at).min().unwrap();
        let expected = format!("point {first} of section X is not in the subgroup of prime order");
        assert_eq!(check(&points), Err(expected), "{} {}", G::Curve::ID, G::NAME);
    }
}

#[test]
fn points_outside_the_subgroup_of_bn254() {
    points_outside_are_found::<_, G2<Bn254>>(10069);
}

#[test]
fn points_outside_the_subgroup_of_bls12_381() {
    points_outside_are_found::<_, G1<Bls12_381>>(3);
    points_outside_are_found::<_, G2<Bls12_381>>(13);
}

/// Parts outside the subgroup that no pairing sees, as their order has nothing in common with its own, in either section of B.
fn small_parts_of_b_are_found<C: Curve, P1, P2>(orders: (Option<u64>, u64))
where
    P1: SWCurveConfig,
    P2: SWCurveConfig,
    C::G1: Group<Ark = Projective<P1>>,
    C::G2: Group<Ark = Projective<P2>>,
{
    let mut rng = ChaCha12Rng::from_seed([4; 32]);
    let circuit = Synthetic { constraints: 6, publics: 1, dense: 0.5 };
    let mut key = OwnedKey::<C>::default();
    setup::<C>(&circuit, &Secret::from_seed([7; 32]), &mut key, &crate::Silent).unwrap();
    let good = key.view().unwrap();
    let passes = |view: &KeyView<'_, C>| points_pass(&Cpu::new(1), view, &crate::Silent).unwrap();
    assert!(passes(&good));
    let mut in_g1: Vec<_> = good.b1.in_memory().unwrap().iter().collect();
    let mut in_g2: Vec<_> = good.b2.in_memory().unwrap().iter().collect();
    if let Some(order) = orders.0 {
        in_g1[2] = C::G1::from_ark(&(of_order::<P1>(order, &mut rng) + C::G1::to_ark(&in_g1[2])).into_affine());
        assert!(!passes(&KeyView { b1: in_g1.as_slice().into(), ..good.clone() }));
    }
    in_g2[2] = C::G2::from_ark(&(of_order::<P2>(orders.1, &mut rng) + C::G2::to_ark(&in_g2[2])).into_affine());
    assert!(!passes(&KeyView { b2: in_g2.as_slice().into(), ..good.clone() }));
}

/// Points that lie outside memory are checked as those in it: the last of each section is looked at.
#[test]
fn points_outside_memory_are_checked() {
    type C = Bls12_381;
    let circuit = Synthetic { constraints: 6, publics: 1, dense: 0.5 };
    let mut key = OwnedKey::<C>::default();
    setup::<C>(&circuit, &Secret::from_seed([8; 32]), &mut key, &crate::Silent).unwrap();
    let good = key.view().unwrap();
    let sections = [good.a, good.b1, good.l, good.h].map(|s| s.in_memory().unwrap().as_bytes().to_vec());
    let b2 = good.b2.in_memory().unwrap().as_bytes().to_vec();
    // The second coordinate of a section's last point is another one, or the section is as it was.
    for changed in [None, Some(0), Some(1), Some(2), Some(3), Some(4)] {
        let (mut in_g1, mut in_g2) = (sections.clone(), b2.clone());
        if let Some(section) = changed {
            let bytes = in_g1.get_mut(section).unwrap_or(&mut in_g2);
            let at = bytes.len() - 48;
            bytes[at] ^= 1;
        }
        let from = in_g1.each_ref().map(|bytes| InMemory(bytes));
        let [a, b1, l, h] = from.each_ref().map(|from| Stored::outside(from, 0..from.0.len()).unwrap());
        let from = InMemory(&in_g2);
        let b2 = Stored::outside(&from, 0..in_g2.len()).unwrap();
        let view = KeyView { a, b1, b2, l, h, ..good.clone() };
        assert_eq!(points_pass(&Cpu::new(1), &view, &crate::Silent).unwrap(), changed.is_none(), "{changed:?}");
    }
}

#[test]
fn small_parts_of_b() {
    small_parts_of_b_are_found::<Bn254, _, _>((None, 10069));
    small_parts_of_b_are_found::<Bls12_381, _, _>((Some(3), 13));
}

/// A point of order 3 passes one sum in three, and so one round in 2187.
#[test]
fn no_draw_of_factors_lets_a_point_pass() {
    type G = G1<Bls12_381>;
    let mut points = multiples::<G>(3);
    points[1] = G::from_ark(&G::from_xy(Base::<G>::ZERO, Base::<G>::from(2u64)));
    for seed in 0..200 {
        let mut rng = ChaCha12Rng::from_seed([seed; 32]);
        assert!(combination::<G>(points.as_slice().into(), true, &mut rng).unwrap().is_none(), "seed {seed}");
    }
}

/// The sum has the factors that all trits make up, the same in both groups.
fn factors_are_the_same<C: Curve>() {
    let (p, q) = (multiples::<C::G1>(3), multiples::<C::G2>(3));
    let mut rngs = [(); 3].map(|()| ChaCha12Rng::from_seed([5; 32]));
    let in_g1 = combination::<C::G1>(p.as_slice().into(), false, &mut rngs[0]).unwrap().unwrap();
    let in_g2 = combination::<C::G2>(q.as_slice().into(), true, &mut rngs[1]).unwrap().unwrap();
    assert!(Bases::<C>::generators().same_multiple(in_g1, in_g2));
    let mut factors = [C::Fr::ZERO; 3];
    for _ in 0..ROUNDS {
        let digits = [(); 3].map(|()| (rngs[2].next_u32() % (2 * MOST as u32 + 1)) as i32 - MOST);
        for k in 0..TRITS {
            for (factor, digit) in factors.iter_mut().zip(digits) {
                *factor = factor.double() + *factor + C::Fr::from(trit(digit, k));
            }
        }
    }
    let expected: <C::G1 as Group>::Ark = p.iter().zip(factors).map(|(p, k)| C::G1::to_ark(p) * k).sum();
    assert_eq!(in_g1, expected);
    let bits = |k: C::Fr| k.into_bigint().num_bits().min((-k).into_bigint().num_bits());
    assert!(factors.iter().all(|&k| (45..=67).contains(&bits(k))));
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
    let (p, q) = (multiples::<G1<C>>(SMALL + 5), multiples::<G2<C>>(SMALL + 5));
    let sections = Sections::new(&crate::Silent).unwrap().by(SMALL);
    let check = |p: &[_], q: &[_]| {
        let (p, q): (Stored<'_, _>, Stored<'_, _>) = (p.into(), q.into());
        sections.check_both::<C>(Bases::generators(), ("P", p), ("Q", q)).map_err(|e| e.to_string())
    };
    assert_eq!(check(&p, &q), Ok(()));
    for at in [0, SMALL - 1, SMALL, SMALL + 4] {
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
