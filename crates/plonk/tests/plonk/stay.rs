//! Keys that do not fit: with less and less memory less of a key stays, no more than the limit is taken, and proofs are the same.

use crate::support::{blinding, fflonk, owned, Random};
use ark_ff::UniformRand;
use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};
use std::sync::Arc;
use tandem_conformance::{Step, Stepped};
use tandem_ops::cpu::Cpu;
use tandem_ops::{Bls12_381, Bn254, Curve, Error as Fault, Lane};
use tandem_plonk::plan::LaneBytes;
use tandem_plonk::*;

/// Lanes, and how they share a proof.
const LAYOUTS: [(usize, Layout); 3] = [(1, Layout::Auto), (2, Layout::Auto), (3, Layout::Split)];

/// What a key was loaded with, and the proof that it made.
type Made = (Stay, Vec<LaneBytes>, Vec<u8>);

/// Proves with less and less memory until the key is refused: from all that it needs to the least.
fn down(name: &str, lanes: usize, expected: &[u8], least: u64, prove: impl Fn(&Cpu) -> Result<Made>) {
    let (mut limit, mut stays) = (u64::MAX, Vec::new());
    let error = loop {
        let cpu = Cpu::with_memory(lanes, limit);
        let (stay, memory, proof) = match prove(&cpu) {
            Ok(made) => made,
            Err(error) => break error,
        };
        assert!(proof == expected, "{name}: {stay} gives another proof");
        let needs = |of: &[LaneBytes]| of.iter().map(LaneBytes::need).max().unwrap_or(0);
        assert!(needs(&memory) <= limit, "{name}: {stay}");
        for (lane, of) in memory.iter().enumerate() {
            // Of the points that come nothing is left.
            let (taken, points) = (cpu.take_most_bytes(Lane(lane)), cpu.point_bytes(Lane(lane)));
            let said = of.need() - of.powers;
            assert!(taken <= said, "{name}: {taken} bytes on lane {lane}, {said} said, {stay}");
            assert!(points <= if stay.powers { of.powers + 1000 } else { 0 }, "{name}: {points} bytes of points");
        }
        stays.push(stay);
        limit = needs(&memory) - 1;
    };
    let Error::Backend(Fault::OutOfMemory { op: "load key", wanted, free, .. }) = error else {
        panic!("{name}, after {stays:?}: {error}")
    };
    assert_eq!(stays.first(), Some(&Stay::ALL), "{name}");
    assert!(stays.iter().any(|stay| !stay.cosets && stay.polynomials), "{name}: {stays:?}");
    let last = stays.last().unwrap();
    assert!(!last.cosets && !last.polynomials && !last.powers && last.pieces > 8, "{name}: {last}");
    // As the error says, that was the least.
    assert!(wanted > free && free <= limit && wanted == limit + 1, "{name}: {wanted} {free} {limit}");
    assert!(lanes > 1 || wanted == least, "{name}: {wanted}, {least} foretold");
}

fn plonk_in_little<C: Curve>() {
    for (constraints, publics, seed) in [(2, 0, 1), (25, 3, 2)] {
        let circuit = Random::<C>::new(constraints, publics, seed);
        let key = owned(&circuit);
        let view = key.view().unwrap();
        let verifier = PreparedKey::new(&view.verifying).unwrap();
        let witness = circuit.witness();
        let (least, host) = least_bytes::<C>(view.shape.domain);
        assert_eq!(host as usize, view.powers.bytes() + 8 * 32 * view.shape.domain);
        let prove = |cpu: &Cpu, layout| {
            let key = ProvingKey::load(cpu, &view, layout, 2)?;
            cpu.take_most_bytes(Lane(0));
            let made = prove_verified(cpu, &key, &verifier, &witness, &blinding(), &Request::silent())?;
            assert_eq!(made.verdict, Ok(()));
            Ok((key.plan().stay, key.memory().to_vec(), made.proof.to_bytes()))
        };
        let expected = prove(&Cpu::new(1), Layout::Auto).unwrap().2;
        for (lanes, layout) in LAYOUTS {
            let name = format!("{constraints} constraints, {lanes} lanes {layout:?}");
            down(&name, lanes, &expected, least, |cpu| prove(cpu, layout));
        }
    }
}

#[test]
fn plonk_proves_in_little_on_bn254() {
    plonk_in_little::<Bn254>();
}

#[test]
fn plonk_proves_in_little_on_bls12_381() {
    plonk_in_little::<Bls12_381>();
}

#[test]
fn fflonk_proves_in_little() {
    use tandem_plonk::fflonk::{least_bytes, prove_verified, PreparedKey, ProvingKey};
    for (constraints, publics, seed) in [(2, 0, 1), (12, 3, 2)] {
        let circuit = Random::<Bn254>::new(constraints, publics, seed);
        let (key, verifying) = fflonk::made(&circuit);
        let view = fflonk::view(&key, &verifying);
        let verifier = PreparedKey::new(&verifying).unwrap();
        let witness = circuit.witness();
        let (least, host) = least_bytes(view.shape.domain);
        assert_eq!(host as usize, view.powers.bytes() + 8 * 32 * view.shape.domain);
        let prove = |cpu: &Cpu, layout| {
            let key = ProvingKey::load(cpu, &view, layout, 2)?;
            let made = prove_verified(cpu, &key, &verifier, &witness, &blinding(), &Request::silent())?;
            assert_eq!(made.verdict, Ok(()));
            Ok((key.plan().stay, key.memory().to_vec(), made.proof.to_bytes()))
        };
        let expected = prove(&Cpu::new(1), Layout::Auto).unwrap().2;
        for (lanes, layout) in LAYOUTS {
            let name = format!("{constraints} constraints, {lanes} lanes {layout:?}");
            down(&name, lanes, &expected, least, |cpu| prove(cpu, layout));
        }
    }
}

/// However many signals are public, a key and a proof take the same: what public values need is there when most is not.
#[test]
fn public_signals_take_little() {
    let circuit = |constraints, publics| {
        let circuit = Random::<Bn254>::new(constraints, publics, 5);
        let gates = Gates::of(&circuit, &Silent).unwrap();
        (circuit, gates)
    };
    // As many rows with one as with many.
    let has_rows = |constraints: &usize| {
        [1, 1152].into_iter().all(|publics| circuit(*constraints, publics).1.shape().domain == 4096)
    };
    let constraints = (100..2000).step_by(50).find(has_rows).unwrap();
    let taken = [1, 1152].map(|publics| {
        let (circuit, gates) = circuit(constraints, publics);
        let tau = <Bn254 as Curve>::Fr::rand(&mut ChaCha8Rng::seed_from_u64(6));
        let key = known::plonk(&Cpu::new(1), gates, tau, &Silent).unwrap();
        let (view, cpu) = (key.view().unwrap(), Cpu::new(1));
        let verifier = PreparedKey::new(&view.verifying).unwrap();
        let key = ProvingKey::load(&cpu, &view, Layout::Auto, 1).unwrap();
        let made = prove_verified(&cpu, &key, &verifier, &circuit.witness(), &blinding(), &Request::silent()).unwrap();
        assert_eq!(made.verdict, Ok(()));
        cpu.take_most_bytes(Lane(0))
    });
    let vector = 4096 * 32;
    assert!(taken[1].abs_diff(taken[0]) <= vector, "{taken:?}");
    println!("{} bytes with 1 public signal, {} with 1152", taken[0], taken[1]);
}

/// Where there is no memory to make Lagrange points, the key does without, and its proofs are the same.
#[test]
fn a_key_does_without_lagrange_points_for_want_of_memory() {
    let circuit = Random::<Bn254>::new(30, 2, 7);
    let key = owned(&circuit);
    let view = key.view().unwrap();
    let verifier = PreparedKey::new(&view.verifying).unwrap();
    let proof = |fails: Option<Step>| -> Result<(bool, Proof<Bn254>)> {
        let step = move |op| if op == "lagrange_points" { fails.unwrap_or(Step::Right) } else { Step::Right };
        let stepped = Stepped::new(Arc::new(step));
        let key = ProvingKey::load(&stepped, &view, Layout::Auto, 1000)?;
        let made =
            prove_verified(&stepped, &key, &verifier, &circuit.witness(), &blinding(), &Request::silent()).unwrap();
        assert_eq!(made.verdict, Ok(()));
        Ok((key.plan().basis, made.proof))
    };
    let (with, expected) = proof(None).unwrap();
    let (without, found) = proof(Some(Step::OutOfMemory)).unwrap();
    assert!(with && !without && found == expected);
    // A device that fails is no want of memory.
    assert!(matches!(proof(Some(Step::Broken)), Err(Error::Backend(Fault::Device { .. }))));
}
