//! Keys of a tau that is known, and commitments to columns by their values.

use crate::support::{blinding, fflonk, owned, powers, Random};
use ark_ff::{Field, UniformRand};
use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};
use tandem_ops::cpu::Cpu;
use tandem_ops::{Bls12_381, Bn254, Curve, Mont, Stored, Unaligned, Wire};
use tandem_plonk::setup::OwnedKey;
use tandem_plonk::*;

fn all<T: Wire + PartialEq>(of: Unaligned<'_, T>) -> Vec<T> {
    of.iter().collect()
}

fn points<P: Wire>(of: Stored<'_, P>) -> Vec<u8> {
    let mut bytes = vec![0; of.bytes()];
    of.read(0, &mut bytes).unwrap();
    bytes
}

fn keys_of_a_known_tau<C: Curve>() {
    for (constraints, publics, seed) in [(1, 0, 1), (5, 2, 2), (40, 5, 3), (100, 17, 4)] {
        let circuit = Random::<C>::new(constraints, publics, seed);
        let expected = owned(&circuit);
        let tau = C::Fr::rand(&mut ChaCha8Rng::seed_from_u64(0));
        let gates = Gates::of(&circuit, &Silent).unwrap();
        let made: OwnedKey<C> = known::plonk(&Cpu::new(1), gates, tau, &Silent).unwrap();
        let (expected, made) = (expected.view().unwrap(), made.view().unwrap());
        let verifying =
            |key: &VerifyingKey<C>| (key.publics, key.domain, key.k, key.selectors, key.permutation, key.x_2);
        assert_eq!(verifying(&made.verifying), verifying(&expected.verifying));
        assert_eq!((made.shape, all(made.additions)), (expected.shape, all(expected.additions)));
        assert_eq!(made.maps.map(all), expected.maps.map(all));
        assert_eq!(made.selectors.map(all), expected.selectors.map(all));
        assert_eq!(made.permutation.map(all), expected.permutation.map(all));
        assert!(points(made.powers) == points(expected.powers));
    }
}

/// They are those of the set-up, byte for byte.
#[test]
fn keys_of_a_known_tau_are_those_of_the_set_up() {
    keys_of_a_known_tau::<Bn254>();
    keys_of_a_known_tau::<Bls12_381>();
    for (constraints, publics, seed) in [(1, 0, 1), (5, 2, 2), (40, 5, 3)] {
        let circuit = Random::<Bn254>::new(constraints, publics, seed);
        let (expected, verifying) = fflonk::made(&circuit);
        let expected = fflonk::view(&expected, &verifying);
        let gates = Gates::of_fflonk(&circuit, &Silent).unwrap();
        let tau = <Bn254 as Curve>::Fr::from(987_654_321_u64);
        let made = known::fflonk(&Cpu::new(1), gates, tau, &Silent).unwrap();
        let made = made.view();
        let of = |key: &tandem_plonk::fflonk::VerifyingKey| (key.publics, key.domain, key.k, key.x_2, key.c0);
        assert_eq!(of(&made.verifying), of(&expected.verifying));
        assert_eq!((made.shape, all(made.additions)), (expected.shape, all(expected.additions)));
        assert_eq!(made.maps.map(all), expected.maps.map(all));
        assert!(all::<Mont>(made.c0) == all(expected.c0) && points(made.powers) == points(expected.powers));
    }
}

fn columns_by_their_values<C: Curve>() {
    for (constraints, publics, seed) in [(1, 0, 1), (5, 2, 2), (40, 5, 3), (100, 17, 4)] {
        let circuit = Random::<C>::new(constraints, publics, seed);
        let key = owned(&circuit);
        let view = key.view().unwrap();
        let verifier = PreparedKey::new(&view.verifying).unwrap();
        let witness = circuit.witness();
        let publics = &witness.values()[1..=publics];
        let proof = |lanes: usize, layout, proofs| {
            let cpu = Cpu::new(lanes);
            let key = ProvingKey::load(&cpu, &view, layout, proofs).unwrap();
            assert_eq!(key.plan().basis, proofs >= 400, "{proofs} proofs");
            let made = prove_verified(&cpu, &key, &verifier, &witness, &blinding(), &Request::silent()).unwrap();
            assert_eq!(made.verdict, Ok(()));
            made.proof
        };
        let expected = proof(1, Layout::Auto, 1);
        assert_eq!(verifier.verify(publics, &expected), Ok(()));
        for (lanes, layout, proofs) in
            [(1, Layout::Auto, 399), (1, Layout::Auto, 400), (2, Layout::Auto, u64::MAX), (5, Layout::Split, 1000)]
        {
            assert!(proof(lanes, layout, proofs) == expected, "{constraints} constraints, {lanes} lanes");
        }
    }
}

/// Proofs are the same, byte for byte, on any number of lanes.
#[test]
fn columns_by_their_values_give_the_same_proofs() {
    columns_by_their_values::<Bn254>();
    columns_by_their_values::<Bls12_381>();
}

/// What is random is in the sums by values, too: the same columns hidden by other scalars are other commitments.
#[test]
fn columns_by_their_values_are_blinded() {
    let circuit = Random::<Bn254>::new(20, 1, 9);
    let key = owned(&circuit);
    let (view, cpu) = (key.view().unwrap(), Cpu::new(1));
    let verifier = PreparedKey::new(&view.verifying).unwrap();
    let key = ProvingKey::load(&cpu, &view, Layout::Auto, 1000).unwrap();
    assert!(key.plan().basis);
    let proof = |changed: Option<usize>| {
        let mut scalars = [<Bn254 as Curve>::Fr::ONE; 11];
        if let Some(scalar) = changed {
            scalars[scalar] += <Bn254 as Curve>::Fr::ONE;
        }
        let blinding = Blinding::fixed(scalars);
        let made = prove_verified(&cpu, &key, &verifier, &circuit.witness(), &blinding, &Request::silent()).unwrap();
        assert_eq!(made.verdict, Ok(()));
        made.proof.points
    };
    let first = proof(None);
    for scalar in 0..6 {
        let other = proof(Some(scalar));
        let differ: Vec<usize> = (0..3).filter(|&column| first[column] != other[column]).collect();
        assert_eq!(differ, [scalar / 2], "scalar {scalar}");
    }
}

/// Powers of another length, or of too few, are refused before anything is made of them.
#[test]
fn powers_that_are_missing_are_refused() {
    let key = owned(&Random::<Bn254>::new(5, 1, 9));
    let mut view = key.view().unwrap();
    let (tau, _) = powers::<Bn254>(<Bn254 as Curve>::Fr::from(7_u64), view.shape.domain + 1);
    view.powers = tau.as_slice().into();
    let error = ProvingKey::load(&Cpu::new(1), &view, Layout::Auto, 1000).err().unwrap();
    assert!(error.to_string().contains("powers of tau"), "{error}");
}
