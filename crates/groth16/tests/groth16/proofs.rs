//! Keys, proofs and their checks on the CPU and on pretend GPUs, on both curves.

use crate::support::{assert_every_copy_has_a_span, checked, key};
use ark_ff::UniformRand;
use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};
use tandem_groth16::setup::{setup, Secret};
use tandem_groth16::synthetic::Synthetic;
use tandem_groth16::{
    check, prove, prove_verified, Blinding, Error, Layout, OwnedKey, PreparedKey, Proof, ProvingKey, Refusal, Request,
    Silent,
};
use tandem_ops::cpu::Cpu;
use tandem_ops::{Backend, Bls12_381, Bn254, Canonical, Curve, Lane, Span};

fn proof_as<C: Curve>(
    key: &OwnedKey<C>,
    witness: &[Canonical],
    (lanes, layout): (usize, Layout),
    blinding: &Blinding<C>,
) -> Proof<C> {
    let backend = Cpu::new(lanes);
    let resident = ProvingKey::load(&backend, &key.view().unwrap(), layout, 100).unwrap();
    let request = Request::new(backend.timeline(), &Silent);
    backend.take_moved();
    let proof = prove(&backend, &resident, &checked(witness).unwrap(), blinding, &request).unwrap();
    assert_every_copy_has_a_span(&backend, &request.timeline);
    proof
}

fn proof<C: Curve>(key: &OwnedKey<C>, witness: &[Canonical], lanes: usize, blinding: &Blinding<C>) -> Proof<C> {
    proof_as(key, witness, (lanes, Layout::Auto), blinding)
}

const CIRCUITS: [(usize, usize, f64); 9] = [
    (1, 0, 0.0),
    (1, 0, 1.0),
    (2, 0, 0.5),
    (2, 1, 1.0),
    (3, 0, 0.7),
    (13, 2, 0.5),
    (64, 63, 0.5),
    (200, 0, 0.3),
    (255, 1, 0.5),
];

/// What a lane does comes in the order in which it is told.
#[test]
fn sums_over_the_witness_come_first_where_no_lane_waits_for_transforms() {
    let circuit = Synthetic { constraints: 255, publics: 1, dense: 0.5 };
    let (key, witness) = (key::<Bn254>(circuit), circuit.witness::<Bn254>(3).unwrap());
    for (lanes, layout, sums_first) in [(1, Layout::Auto, true), (1, Layout::Split, true), (2, Layout::Split, false)] {
        let backend = Cpu::new(lanes);
        let resident = ProvingKey::load(&backend, &key.view().unwrap(), layout, 100).unwrap();
        let request = Request::new(backend.timeline(), &Silent);
        prove(&backend, &resident, &checked(&witness).unwrap(), &Blinding::random().unwrap(), &request).unwrap();
        let spans = request.timeline.take().unwrap();
        for lane in (0..lanes).map(Lane) {
            let begins = |part| {
                let of_part = |s: &&Span| s.lane == lane && s.name.starts_with(part);
                spans.iter().filter(of_part).map(|s| s.start_us).collect::<Vec<_>>()
            };
            let (sums, transforms) = (begins("MSM A"), begins("inverse NTT"));
            assert!(!sums.is_empty() && !transforms.is_empty(), "{lane:?} of {lanes}, {layout:?}: {spans:?}");
            let first = sums.iter().all(|sum| transforms.iter().all(|transform| sum < transform));
            assert_eq!(first, sums_first, "{lane:?} of {lanes}, {layout:?}");
        }
    }
}

fn proofs_verify_and_are_the_same_on_any_number_of_lanes<C: Curve>() {
    for (constraints, publics, dense) in CIRCUITS {
        let circuit = Synthetic { constraints, publics, dense };
        let key = key::<C>(circuit);
        check::check_points(&key.view().unwrap(), &Silent).unwrap();
        let witness = circuit.witness::<C>(3).unwrap();
        let inputs = &witness[1..=publics];
        let verifier = PreparedKey::new(&key.view().unwrap().verifying_key()).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let (r, s) = (C::Fr::rand(&mut rng), C::Fr::rand(&mut rng));
        let one = proof(&key, &witness, 1, &Blinding::fixed(r, s));
        verifier.verify(inputs, &one).unwrap();
        for lanes in 2..=8 {
            for layout in [Layout::Auto, Layout::Roles, Layout::Split] {
                let made = proof_as(&key, &witness, (lanes, layout), &Blinding::fixed(r, s));
                assert_eq!(made, one, "{circuit:?} on {lanes} lanes, {layout:?}");
            }
        }
        let made = proof_as(&key, &witness, (2, Layout::Blueprint), &Blinding::fixed(r, s));
        assert_eq!(made, one, "{circuit:?}, the blueprint");
        let random = proof(&key, &witness, 1, &Blinding::random().unwrap());
        verifier.verify(inputs, &random).unwrap();
        assert!(random.a != one.a && random.b != one.b && random.c != one.c);
    }
}

#[test]
fn proofs_on_bn254() {
    proofs_verify_and_are_the_same_on_any_number_of_lanes::<Bn254>();
}

#[test]
fn proofs_on_bls12_381() {
    proofs_verify_and_are_the_same_on_any_number_of_lanes::<Bls12_381>();
}

/// The verifier of arkworks accepts, which shares no code with ours but the pairing.
fn arkworks_accepts<C: Curve>(key: &OwnedKey<C>, inputs: &[Canonical], proof: &Proof<C>) -> bool {
    crate::support::arkworks_accepts(&key.view().unwrap().verifying_key(), inputs, proof)
}

fn arkworks_agrees<C: Curve>() {
    let circuit = Synthetic { constraints: 90, publics: 3, dense: 0.5 };
    let key = key::<C>(circuit);
    let witness = circuit.witness::<C>(1).unwrap();
    let proof = proof(&key, &witness, 3, &Blinding::random().unwrap());
    assert!(arkworks_accepts(&key, &witness[1..4], &proof));
    assert!(!arkworks_accepts(&key, &witness[2..5], &proof));
}

#[test]
fn arkworks_accepts_our_proofs() {
    arkworks_agrees::<Bn254>();
    arkworks_agrees::<Bls12_381>();
}

fn changes_are_refused<C: Curve>() {
    let circuit = Synthetic { constraints: 20, publics: 2, dense: 0.5 };
    let key = key::<C>(circuit);
    let witness = circuit.witness::<C>(1).unwrap();
    let inputs = &witness[1..3];
    let good = proof(&key, &witness, 1, &Blinding::random().unwrap());
    let verifier = PreparedKey::new(&key.view().unwrap().verifying_key()).unwrap();
    verifier.verify(inputs, &good).unwrap();

    let mut swapped = good;
    std::mem::swap(&mut swapped.a, &mut swapped.c);
    assert_eq!(verifier.verify(inputs, &swapped), Err(Refusal::Equation));
    for i in 0..3 {
        let mut bad = good;
        let change = |bad: &mut Proof<C>, change: &dyn Fn(&mut [u8])| match i {
            0 => change(bytemuck::bytes_of_mut(&mut bad.a)),
            1 => change(bytemuck::bytes_of_mut(&mut bad.b)),
            _ => change(bytemuck::bytes_of_mut(&mut bad.c)),
        };
        change(&mut bad, &|bytes| bytes[0] ^= 1);
        assert!(matches!(verifier.verify(inputs, &bad), Err(Refusal::Point { fault: check::Fault::Curve, .. })));
        change(&mut bad, &|bytes| bytes.fill(0xff));
        assert!(matches!(verifier.verify(inputs, &bad), Err(Refusal::Point { fault: check::Fault::Range, .. })));
    }
    for i in 0..2 {
        let mut bad = [inputs[0], inputs[1]];
        bad[i].0[0] ^= 1;
        assert_eq!(verifier.verify(&bad, &good), Err(Refusal::Equation));
        // An equal value, written as another integer.
        let modulus = <C::Fr as ark_ff::PrimeField>::MODULUS;
        let mut sum = ark_ff::BigInt(inputs[i].0);
        ark_ff::BigInteger::add_with_carry(&mut sum, &modulus);
        bad = [inputs[0], inputs[1]];
        bad[i] = Canonical(sum.0);
        assert_eq!(verifier.verify(&bad, &good), Err(Refusal::PublicRange(i)));
    }
    assert_eq!(verifier.verify(&inputs[..1], &good), Err(Refusal::PublicCount { has: 1, expected: 2 }));
    // A value that would be left out of the equation.
    assert_eq!(verifier.verify(&witness[1..4], &good), Err(Refusal::PublicCount { has: 3, expected: 2 }));
}

#[test]
fn changed_proofs_and_inputs_are_refused() {
    changes_are_refused::<Bn254>();
    changes_are_refused::<Bls12_381>();
}

#[test]
fn a_wrong_witness_makes_no_valid_proof() {
    let circuit = Synthetic { constraints: 40, publics: 1, dense: 0.5 };
    let key = key::<Bn254>(circuit);
    let good = circuit.witness::<Bn254>(1).unwrap();
    let verifier = PreparedKey::new(&key.view().unwrap().verifying_key()).unwrap();
    for wire in 1..good.len() {
        let mut bad = good.clone();
        bad[wire].0[0] ^= 2;
        let proof = proof(&key, &bad, 1, &Blinding::random().unwrap());
        assert_eq!(verifier.verify(&bad[1..2], &proof), Err(Refusal::Equation), "wire {wire}");
    }
}

/// What is verified while it is made is what the verifier says of it afterwards.
#[test]
fn proofs_are_verified_while_they_are_made() {
    let circuit = Synthetic { constraints: 40, publics: 2, dense: 0.5 };
    let key = key::<Bls12_381>(circuit);
    let other = self::key::<Bls12_381>(Synthetic { publics: 3, ..circuit });
    let prepared = |key: &OwnedKey<Bls12_381>| PreparedKey::new(&key.view().unwrap().verifying_key()).unwrap();
    let (verifier, wrong_verifier) = (prepared(&key), prepared(&other));
    let good = circuit.witness::<Bls12_381>(1).unwrap();
    let mut bad = good.clone();
    bad[20].0[0] ^= 1;
    for lanes in [1, 3] {
        let backend = Cpu::new(lanes);
        let resident = ProvingKey::load(&backend, &key.view().unwrap(), Layout::Roles, 1).unwrap();
        let make = |verifier: &PreparedKey<Bls12_381>, witness: &[Canonical]| {
            let blinding = Blinding::random().unwrap();
            prove_verified(&backend, &resident, verifier, &checked(witness).unwrap(), &blinding, &Request::silent())
                .unwrap()
        };
        for (witness, expected) in [(&good, Ok(())), (&bad, Err(Refusal::Equation))] {
            let made = make(&verifier, witness);
            assert_eq!(made.verdict, expected);
            assert_eq!(verifier.verify(&witness[1..3], &made.proof), expected);
            assert!(arkworks_accepts(&key, &witness[1..3], &made.proof) == expected.is_ok());
            assert!(made.host.windows(2).all(|w| w[0].begun <= w[1].begun), "{:?}", made.host);
        }
        assert_eq!(make(&wrong_verifier, &good).verdict, Err(Refusal::PublicCount { has: 2, expected: 3 }));
    }
}

#[test]
fn a_witness_of_the_wrong_form_is_refused() {
    let circuit = Synthetic { constraints: 40, publics: 1, dense: 0.5 };
    let key = key::<Bn254>(circuit);
    let good = circuit.witness::<Bn254>(1).unwrap();
    let backend = Cpu::new(1);
    let resident = ProvingKey::load(&backend, &key.view().unwrap(), Layout::Auto, 1).unwrap();
    let is = |error: Error, reason: &str| {
        assert!(matches!(&error, Error::Witness(text) if text.contains(reason)), "{error}");
    };
    let refused = |witness: &[Canonical], reason: &str| {
        let witness = checked(witness).unwrap();
        is(prove(&backend, &resident, &witness, &Blinding::random().unwrap(), &Request::silent()).unwrap_err(), reason);
    };
    refused(&good[..good.len() - 1], "41 values; the key's circuit has 42 wires");
    refused(&[good.clone(), vec![good[1]]].concat(), "43 values");
    let malformed = |witness: &[Canonical], reason: &str| {
        is(checked::<Bn254>(witness).err().unwrap(), reason);
    };
    malformed(&[], "value 0");
    let mut bad = good.clone();
    bad[0].0[0] = 2;
    malformed(&bad, "value 0");
    bad = good.clone();
    bad[30] = Canonical(<ark_bn254::Fr as ark_ff::PrimeField>::MODULUS.0);
    malformed(&bad, "value 30 of the witness is not below the modulus");
    bad[30].0[0] -= 1;
    assert!(checked::<Bn254>(&bad).is_ok());
}

#[test]
fn the_same_seed_makes_the_same_key_and_another_seed_another() {
    let circuit = Synthetic { constraints: 5, publics: 1, dense: 1.0 };
    let make = |seed| {
        let mut key = OwnedKey::<Bn254>::default();
        setup::<Bn254>(&circuit, &Secret::from_seed([seed; 32]), &mut key, &Silent).unwrap();
        let vk = key.view().unwrap().verifying_key();
        (vk.ic, vk.alpha1, vk.delta2)
    };
    assert_eq!(make(1), make(1));
    assert_ne!(make(1), make(2));
}
