//! Verdicts on proofs: beside those of arkworks, and on points that arkworks takes for granted.

use crate::support::{arkworks_accepts, checked, infinity, key, multiple, Outside};
use ark_ec::{CurveGroup, PrimeGroup};
use ark_ff::{Field, UniformRand};
use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};
use tandem_groth16::check::Fault;
use tandem_groth16::synthetic::Synthetic;
use tandem_groth16::{prove, Blinding, Layout, PreparedKey, Proof, ProvingKey, Refusal, Request, VerifyingKey};
use tandem_ops::cpu::Cpu;
use tandem_ops::{Bls12_381, Bn254, Canonical, Curve, Group};

/// A verification key, public values and a proof that belongs to them.
fn proved<C: Curve>(circuit: Synthetic, seed: u64) -> (VerifyingKey<C>, Vec<Canonical>, Proof<C>) {
    let key = key::<C>(circuit);
    let view = key.view().unwrap();
    let witness = circuit.witness::<C>(seed).unwrap();
    let resident = ProvingKey::load(&Cpu::new(1), &view, Layout::Auto, 1).unwrap();
    let proof =
        prove(&Cpu::new(1), &resident, &checked(&witness).unwrap(), &Blinding::random().unwrap(), &Request::silent())
            .unwrap();
    (view.verifying_key(), witness[1..=circuit.publics].to_vec(), proof)
}

fn times<G: Group>(point: &G::Point, k: <G::Curve as Curve>::Fr) -> G::Point {
    G::from_ark(&(G::Ark::from(G::to_ark(point)) * k).into_affine())
}

fn plus<G: Group>(point: &G::Point, other: &G::Point) -> G::Point {
    G::from_ark(&(G::Ark::from(G::to_ark(point)) + G::to_ark(other)).into_affine())
}

/// What can be done to a proof with points of the subgroups: what it is, and whether it is still valid.
fn changed<C: Curve>(good: Proof<C>, other: Proof<C>, vk: &VerifyingKey<C>, k: C::Fr) -> Vec<(&'static str, Proof<C>)> {
    let (minus, by) = (-C::Fr::from(1u64), k.inverse().unwrap());
    let Proof { a, b, c } = good;
    let (minus_a, minus_b, minus_c) = (times::<C::G1>(&a, minus), times::<C::G2>(&b, minus), times::<C::G1>(&c, minus));
    let delta = C::G2::to_ark(&vk.delta2);
    let b_and_delta = C::G2::from_ark(&(delta * k + C::G2::to_ark(&b)).into_affine());
    vec![
        ("as it is: valid", good),
        ("A and B negated: valid", Proof { a: minus_a, b: minus_b, c }),
        ("A times k, B over k: valid", Proof { a: times::<C::G1>(&a, k), b: times::<C::G2>(&b, by), c }),
        (
            "B plus k delta, C plus k A: valid",
            Proof { a, b: b_and_delta, c: plus::<C::G1>(&c, &times::<C::G1>(&a, k)) },
        ),
        ("A negated", Proof { a: minus_a, b, c }),
        ("B negated", Proof { a, b: minus_b, c }),
        ("C negated", Proof { a, b, c: minus_c }),
        ("all negated", Proof { a: minus_a, b: minus_b, c: minus_c }),
        ("A and C swapped", Proof { a: c, b, c: a }),
        ("A times k", Proof { a: times::<C::G1>(&a, k), b, c }),
        ("B plus k delta", Proof { a, b: b_and_delta, c }),
        ("C plus 1", Proof { a, b, c: plus::<C::G1>(&c, &multiple::<C::G1>(1)) }),
        ("A at infinity", Proof { a: infinity::<C::G1>(), b, c }),
        ("B at infinity", Proof { a, b: infinity::<C::G2>(), c }),
        ("C at infinity", Proof { a, b, c: infinity::<C::G1>() }),
        ("A of another proof", Proof { a: other.a, b, c }),
        ("B of another proof", Proof { a, b: other.b, c }),
        ("C of another proof", Proof { a, b, c: other.c }),
        ("the generators", Proof { a: multiple::<C::G1>(1), b: multiple::<C::G2>(1), c: multiple::<C::G1>(1) }),
        ("the key's own points", Proof { a: vk.alpha1, b: vk.beta2, c }),
        ("infinity", Proof { a: infinity::<C::G1>(), b: infinity::<C::G2>(), c: infinity::<C::G1>() }),
    ]
}

fn verdicts_are_those_of_arkworks<C: Curve>() {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    for (seed, publics) in [(1, 0), (2, 1), (3, 2), (4, 5)] {
        let circuit = Synthetic { constraints: 6 + publics, publics, dense: 0.7 };
        let (vk, inputs, good) = proved::<C>(circuit, seed);
        let (_, other_inputs, other) = proved::<C>(circuit, seed + 100);
        let verifier = PreparedKey::new(&vk).unwrap();
        let same = |what: &str, inputs: &[Canonical], proof: &Proof<C>, valid: bool| {
            let verdict = verifier.verify(inputs, proof);
            assert_eq!(verdict.is_ok(), valid, "{what}, {publics} public values: {verdict:?}");
            assert_eq!(arkworks_accepts(&vk, inputs, proof), valid, "{what}, {publics} public values");
            if !valid {
                assert_eq!(verdict, Err(Refusal::Equation), "{what}");
            }
        };
        for (what, proof) in changed(good, other, &vk, C::Fr::rand(&mut rng)) {
            same(what, &inputs, &proof, what.ends_with("valid"));
        }
        same("another proof", &inputs, &other, inputs == other_inputs);
        for i in 0..publics {
            for value in [C::Fr::from(0u64), C::Fr::from(1u64), -C::Fr::from(1u64), C::Fr::rand(&mut rng)] {
                let mut wrong = inputs.clone();
                wrong[i] = C::canonical(value);
                same("another public value", &wrong, &good, wrong == inputs);
            }
            let mut swapped = inputs.clone();
            swapped.swap(0, i);
            same("public values swapped", &swapped, &good, swapped == inputs);
        }
    }
}

#[test]
fn verdicts_on_bn254() {
    verdicts_are_those_of_arkworks::<Bn254>();
}

#[test]
fn verdicts_on_bls12_381() {
    verdicts_are_those_of_arkworks::<Bls12_381>();
}

/// The equation holds with a point of small order added to A or C: the pairing does not see it.
fn points_outside_the_subgroup_are_refused<C: Outside>() {
    let (vk, inputs, good) = proved::<C>(Synthetic { constraints: 8, publics: 2, dense: 0.5 }, 1);
    let verifier = PreparedKey::new(&vk).unwrap();
    let refused = |name, proof: Proof<C>| {
        assert_eq!(verifier.verify(&inputs, &proof), Err(Refusal::Point { name, fault: Fault::Subgroup }));
    };
    assert_eq!(verifier.verify(&inputs, &good), Ok(()));
    if let Some(outside) = C::outside1() {
        let with_a = Proof { a: plus::<C::G1>(&good.a, &outside), ..good };
        let with_c = Proof { c: plus::<C::G1>(&good.c, &outside), ..good };
        assert!(arkworks_accepts(&vk, &inputs, &with_a) && arkworks_accepts(&vk, &inputs, &with_c));
        refused("pi_a", with_a);
        refused("pi_c", with_c);
        refused("pi_a", Proof { a: outside, ..good });
        refused("pi_c", Proof { c: outside, ..good });
    }
    let outside = C::outside2();
    refused("pi_b", Proof { b: plus::<C::G2>(&good.b, &outside), ..good });
    refused("pi_b", Proof { b: outside, ..good });
    // Infinity and the generator lie in it.
    let at_infinity = Proof { a: infinity::<C::G1>(), b: infinity::<C::G2>(), c: infinity::<C::G1>() };
    assert_eq!(verifier.verify(&inputs, &at_infinity), Err(Refusal::Equation));
    let generator = C::G1::from_ark(&<C::G1 as Group>::Ark::generator().into_affine());
    assert_eq!(verifier.verify(&inputs, &Proof { c: generator, ..good }), Err(Refusal::Equation));
}

#[test]
fn points_outside_the_subgroup() {
    points_outside_the_subgroup_are_refused::<Bn254>();
    points_outside_the_subgroup_are_refused::<Bls12_381>();
}
