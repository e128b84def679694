use super::Phase1;
use crate::{Error, Silent, P1, P2};
use ark_ec::{CurveGroup, PrimeGroup};
use ark_ff::{AdditiveGroup, Field, UniformRand};
use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};
use tandem_ops::{Bls12_381, Bn254, Curve, Group};

fn g1<C: Curve>(k: C::Fr) -> P1<C> {
    C::G1::from_ark(&(<C::G1 as Group>::Ark::generator() * k).into_affine())
}

fn g2<C: Curve>(k: C::Fr) -> P2<C> {
    C::G2::from_ark(&(<C::G2 as Group>::Ark::generator() * k).into_affine())
}

/// The Lagrange basis of n rows by its definition: sums of powers of tau. The power 2n - 1 of `n` rows and more counts as zero.
fn basis<C: Curve>(powers: &[C::Fr], n: usize) -> Vec<C::Fr> {
    let back = C::root_of_unity(n.ilog2()).unwrap().inverse().unwrap();
    let share = C::Fr::from(n as u64).inverse().unwrap();
    let of_row = |row: usize| {
        let terms = powers.iter().take(n).enumerate().map(|(i, power)| back.pow([(row * i) as u64]) * power);
        terms.fold(C::Fr::ZERO, |sum, term| sum + term) * share
    };
    (0..n).map(of_row).collect()
}

fn phase1<C: Curve>(n: usize, is_truncated: bool) -> Phase1<C> {
    let rng = &mut ChaCha8Rng::seed_from_u64(n as u64);
    let [tau, alpha, beta] = [(); 3].map(|()| C::Fr::rand(rng));
    let powers: Vec<C::Fr> = (0..2 * n).map(|i| tau.pow([i as u64])).collect();
    let l = basis::<C>(&powers, n);
    let doubled = basis::<C>(&powers[..2 * n - usize::from(is_truncated)], 2 * n);
    Phase1 {
        powers_g1: powers[..2 * n - 1].iter().map(|k| g1::<C>(*k)).collect(),
        tau_g2: g2::<C>(tau),
        alpha_g1: g1::<C>(alpha),
        beta_g1: g1::<C>(beta),
        beta_g2: g2::<C>(beta),
        lagrange_g1: l.iter().map(|k| g1::<C>(*k)).collect(),
        lagrange_g2: l.iter().map(|k| g2::<C>(*k)).collect(),
        lagrange_alpha: l.iter().map(|k| g1::<C>(*k * alpha)).collect(),
        lagrange_beta: l.iter().map(|k| g1::<C>(*k * beta)).collect(),
        odd: doubled.iter().skip(1).step_by(2).map(|k| g1::<C>(*k)).collect(),
        behind: None,
    }
}

fn check<C: Curve>() {
    for n in [2, 4, 8] {
        for is_truncated in [false, true] {
            phase1::<C>(n, is_truncated).check(&Silent).unwrap();
        }
    }
    type Change<C> = (&'static str, fn(&mut Phase1<C>));
    let other = |change: fn(&mut Phase1<C>), expected: &str| {
        let mut damaged = phase1::<C>(8, true);
        change(&mut damaged);
        match damaged.check(&Silent) {
            Err(Error::Key(why)) => assert!(why.contains(expected), "expected {expected}, found: {why}"),
            other => panic!("{expected}: {other:?}"),
        }
    };
    let two = C::Fr::from(2_u64);
    // A point of the group, but of another secret; another point of the same; infinity.
    let changes: &[Change<C>] = &[
        ("the powers of tau", |p| p.powers_g1[14] = g1::<C>(C::Fr::from(2_u64))),
        ("the powers of tau", |p| p.tau_g2 = g2::<C>(C::Fr::from(2_u64))),
        ("the power 0 of tau", |p| p.powers_g1[0] = g1::<C>(C::Fr::from(2_u64))),
        ("times alpha", |p| p.alpha_g1 = g1::<C>(C::Fr::from(2_u64))),
        ("beta is not the same", |p| p.beta_g1 = g1::<C>(C::Fr::from(2_u64))),
        ("beta is not the same", |p| p.beta_g2 = g2::<C>(C::Fr::from(2_u64))),
        ("Lagrange basis in G1 is", |p| p.lagrange_g1.swap(2, 3)),
        ("Lagrange basis in G2 is", |p| p.lagrange_g2.swap(6, 7)),
        ("times alpha", |p| p.lagrange_alpha[7] = p.lagrange_alpha[6]),
        ("times alpha", |p| p.lagrange_alpha.clone_from(&p.lagrange_beta)),
        ("times beta", |p| p.lagrange_beta[0] = g1::<C>(C::Fr::from(2_u64))),
        ("doubled domain", |p| p.odd.swap(0, 7)),
        ("doubled domain", |p| p.odd.clone_from(&p.lagrange_g1)),
        ("alpha in G1 is the point at infinity", |p| p.alpha_g1 = g1::<C>(C::Fr::ZERO)),
        ("beta in G1 is the point at infinity", |p| p.beta_g1 = g1::<C>(C::Fr::ZERO)),
        ("beta in G2 is the point at infinity", |p| p.beta_g2 = g2::<C>(C::Fr::ZERO)),
        ("Lagrange basis in G1, point 5, is the point at infinity", |p| p.lagrange_g1[5] = g1::<C>(C::Fr::ZERO)),
        ("Lagrange basis in G2, point 5, is the point at infinity", |p| p.lagrange_g2[5] = g2::<C>(C::Fr::ZERO)),
        ("times alpha, point 0, is the point", |p| p.lagrange_alpha[0] = g1::<C>(C::Fr::ZERO)),
        ("times beta, point 1, is the point", |p| p.lagrange_beta[1] = g1::<C>(C::Fr::ZERO)),
        ("doubled domain, point 7, is the point", |p| p.odd[7] = g1::<C>(C::Fr::ZERO)),
        ("bases of different lengths", |p| p.odd.truncate(7)),
        ("bases of different lengths", |p| p.lagrange_g2.truncate(7)),
        ("bases of different lengths", |p| p.powers_g1.truncate(14)),
    ];
    changes.iter().for_each(|(expected, change)| other(*change, expected));
    // alpha is tied to its basis alone: the one that belongs to another alpha is as good.
    let mut scaled = phase1::<C>(8, false);
    scaled.alpha_g1 = C::G1::from_ark(&(C::G1::to_ark(&scaled.alpha_g1) * two).into_affine());
    scaled.lagrange_alpha.iter_mut().for_each(|p| *p = C::G1::from_ark(&(C::G1::to_ark(p) * two).into_affine()));
    scaled.check(&Silent).unwrap();
}

#[test]
fn each_point_of_phase_1_is_checked() {
    check::<Bn254>();
    check::<Bls12_381>();
}
