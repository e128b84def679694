//! Keys, proofs and verdicts on circuits made up at random, and on snarkjs's own files.

#[path = "plonk/basis.rs"]
mod basis;
#[path = "plonk/fflonk.rs"]
mod fflonk;
#[path = "plonk/stay.rs"]
mod stay;
mod support;

use ark_ec::CurveGroup;
use ark_ff::{AdditiveGroup, Field, UniformRand};
use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use support::{blinding, owned, powers, Random};
use tandem_conformance::{Step, Stepped};
use tandem_formats::{json, PlonkProof, PlonkVerificationKey};
use tandem_ops::cpu::Cpu;
use tandem_ops::timeline::Moved;
use tandem_ops::{Backend, Bls12_381, Bn254, Canonical, Curve, Group, NttField};
use tandem_plonk::setup::setup;
use tandem_plonk::*;
use tandem_proof::powers::check_powers;
use zeroize::Zeroizing;

/// Lanes, and how they share a proof.
const LAYOUTS: [(usize, Layout); 5] =
    [(1, Layout::Auto), (2, Layout::Auto), (3, Layout::Roles), (5, Layout::Split), (8, Layout::Auto)];

/// Circuits of many shapes, at the borders of domains too: each proof verifies, and is the same on any number of lanes.
fn proofs_of_random_circuits<C: Curve>() {
    for (constraints, publics, seed) in
        [(1, 0, 1), (1, 1, 2), (2, 3, 3), (5, 2, 4), (9, 0, 5), (40, 5, 6), (100, 17, 7), (300, 1, 8)]
    {
        let circuit = Random::<C>::new(constraints, publics, seed);
        let key = owned(&circuit);
        let view = key.view().unwrap();
        let verifier = PreparedKey::new(&view.verifying).unwrap();
        let witness = circuit.witness();
        let publics = witness.values()[1..=publics].to_vec();
        let mut first = None;
        for (lanes, layout) in LAYOUTS {
            let cpu = Cpu::new(lanes);
            let key = ProvingKey::load(&cpu, &view, layout, 1).unwrap();
            let request = Request::new(cpu.timeline(), &Silent);
            cpu.take_moved();
            let made = prove_verified(&cpu, &key, &verifier, &witness, &blinding(), &request).unwrap();
            let of_spans: Moved = request.timeline.take().unwrap().iter().map(|span| span.moved).sum();
            assert_eq!(of_spans, cpu.take_moved(), "every copy has a span");
            assert_eq!(made.verdict, Ok(()), "{constraints} constraints, {lanes} lanes");
            assert_eq!(verifier.verify(&publics, &made.proof), Ok(()));
            assert!(first.is_none_or(|proof| proof == made.proof), "{lanes} lanes {layout:?}");
            first = Some(made.proof);
            if lanes > 1 {
                let first_alone = key.plan().cosets.iter().all(|lane| lane.0 == 0);
                assert_eq!(first_alone, layout == Layout::Roles, "{}", key.plan());
                continue;
            }
            // Other blinding, another proof.
            let other =
                prove_verified(&cpu, &key, &verifier, &witness, &Blinding::random().unwrap(), &Request::silent());
            let other = other.unwrap();
            assert_eq!(other.verdict, Ok(()));
            let same = made.proof.points.iter().zip(&other.proof.points).filter(|(a, b)| a == b).count();
            assert_eq!(same, 0);
            assert!(made.proof.evaluations[..3].iter().zip(&other.proof.evaluations).all(|(a, b)| a != b));
        }
    }
}

#[test]
fn proofs_on_bn254() {
    proofs_of_random_circuits::<Bn254>();
}

#[test]
fn proofs_on_bls12_381() {
    proofs_of_random_circuits::<Bls12_381>();
}

/// Each blinding scalar is in the first commitment that it is to hide, and none in those before it.
#[test]
fn every_blinding_scalar_is_used_where_it_belongs() {
    let circuit = Random::<Bn254>::new(10, 1, 16);
    let key = owned(&circuit);
    let view = key.view().unwrap();
    let verifier = PreparedKey::new(&view.verifying).unwrap();
    let cpu = Cpu::new(1);
    let key = ProvingKey::load(&cpu, &view, Layout::Auto, 1).unwrap();
    let witness = circuit.witness();
    let mut rng = ChaCha8Rng::seed_from_u64(17);
    type Fr = <Bn254 as Curve>::Fr;
    let scalars: [Fr; 11] = std::array::from_fn(|_| Fr::rand(&mut rng));
    let proof = |scalars: [Fr; 11]| {
        let blinding = Blinding::fixed(scalars);
        let made = prove_verified(&cpu, &key, &verifier, &witness, &blinding, &Request::silent()).unwrap();
        assert_eq!(made.verdict, Ok(()));
        made.proof
    };
    let first = proof(scalars);
    for (number, hides) in [0, 0, 1, 1, 2, 2, 3, 3, 3, 4, 5].into_iter().enumerate() {
        let mut changed = scalars;
        changed[number] += Fr::ONE;
        let other = proof(changed);
        let differs = first.points.iter().zip(&other.points).position(|(a, b)| a != b);
        // Columns are committed to in one round: each has its own.
        assert_eq!(differs, Some(hides), "b{}", number + 1);
        if hides < 3 {
            let others = (0..3).filter(|column| *column != hides);
            assert!(others.into_iter().all(|column| first.points[column] == other.points[column]));
        }
    }
}

/// A change of any value of a witness that a constraint names makes a proof that is refused.
#[test]
fn witnesses_that_do_not_satisfy_are_told() {
    let circuit = Random::<Bn254>::new(30, 2, 9);
    let key = owned(&circuit);
    let view = key.view().unwrap();
    let verifier = PreparedKey::new(&view.verifying).unwrap();
    let cpu = Cpu::new(1);
    let key = ProvingKey::load(&cpu, &view, Layout::Auto, 1).unwrap();
    let good = circuit.witness();
    // The last wires are products that constraints define.
    let count = good.values().len();
    for at in [1, 2, count - 20, count - 1] {
        let mut values = good.values().to_vec();
        values[at].0[0] ^= 1;
        let witness = Witness::new(Zeroizing::new(values)).unwrap();
        let made = prove_verified(&cpu, &key, &verifier, &witness, &blinding(), &Request::silent()).unwrap();
        assert_eq!(made.verdict, Err(Refusal::Equation), "value {at}");
    }
    for length in [0, 1, count - 1, count + 1] {
        let mut values = good.values().to_vec();
        values.resize(length, Canonical::default());
        let Ok(witness) = Witness::new(Zeroizing::new(values)) else { continue };
        let error = prove_verified(&cpu, &key, &verifier, &witness, &blinding(), &Request::silent()).unwrap_err();
        assert!(matches!(error, Error::Witness(_)), "{error}");
    }
}

/// snarkjs's proof, and every change of it.
fn verdicts<C: Curve>(vkey: &[u8], proof: &[u8], publics: &[u8]) {
    let key = PlonkVerificationKey::<C>::parse(vkey).unwrap();
    let element = |value| C::from_canonical(value).unwrap();
    let verifying = VerifyingKey {
        publics: key.n_public as usize,
        domain: 1 << key.power,
        k: [element(key.k1), element(key.k2)],
        selectors: key.selectors,
        permutation: key.permutation,
        x_2: key.x_2,
    };
    let verifier = PreparedKey::<C>::new(&verifying).unwrap();
    assert_eq!(C::canonical(verifier.root()), key.w);
    let PlonkProof { points, evaluations } = PlonkProof::<C>::parse(proof).unwrap();
    let proof = Proof { points, evaluations };
    let publics = json::parse_public(publics, C::ID).unwrap();
    assert_eq!(verifier.verify(&publics, &proof), Ok(()));
    assert_eq!(Proof::from_bytes(&proof.to_bytes()), Some(proof));
    assert_eq!(Proof::<C>::from_bytes(&proof.to_bytes()[1..]), None);

    for i in 0..9 {
        // Off the curve; infinity; another point of the group.
        let mut changed = proof;
        bytemuck::bytes_of_mut(&mut changed.points[i])[0] ^= 1;
        assert!(matches!(verifier.verify(&publics, &changed), Err(Refusal::Point { .. })), "{i}");
        changed.points[i] = bytemuck::Zeroable::zeroed();
        assert_eq!(verifier.verify(&publics, &changed), Err(Refusal::Equation), "{i}");
        changed.points[i] = proof.points[(i + 1) % 9];
        assert_eq!(verifier.verify(&publics, &changed), Err(Refusal::Equation), "{i}");
    }
    for i in 0..6 {
        let mut changed = proof;
        changed.evaluations[i].0[0] ^= 1;
        assert_eq!(verifier.verify(&publics, &changed), Err(Refusal::Equation), "{i}");
        changed.evaluations[i] = Canonical([u64::MAX; 4]);
        assert!(matches!(verifier.verify(&publics, &changed), Err(Refusal::Evaluation(_))), "{i}");
    }
    for i in 0..publics.len() {
        let mut changed = publics.clone();
        changed[i].0[0] ^= 1;
        assert_eq!(verifier.verify(&changed, &proof), Err(Refusal::Equation), "{i}");
        changed[i] = Canonical([u64::MAX; 4]);
        assert_eq!(verifier.verify(&changed, &proof), Err(Refusal::PublicRange(i)));
    }
    assert!(matches!(verifier.verify(&publics[1..], &proof), Err(Refusal::PublicCount { .. })));

    // Keys that are none.
    let wrong = |change: &dyn Fn(&mut VerifyingKey<C>)| {
        let mut key = verifying.clone();
        change(&mut key);
        PreparedKey::new(&key).err().unwrap().to_string()
    };
    for (part, change) in [
        (
            "X_2 is the point at infinity",
            &(|k: &mut VerifyingKey<C>| k.x_2 = bytemuck::Zeroable::zeroed()) as &dyn Fn(&mut VerifyingKey<C>),
        ),
        ("X_2 is not on the curve", &|k| bytemuck::bytes_of_mut(&mut k.x_2)[0] ^= 1),
        ("point Qo is not on the curve", &|k| bytemuck::bytes_of_mut(&mut k.selectors[3])[0] ^= 1),
        ("point S2 is not on the curve", &|k| bytemuck::bytes_of_mut(&mut k.permutation[1])[0] ^= 1),
        ("k1 and k2 do not keep the columns apart", &|k| k.k[0] = C::Fr::ONE),
        ("k1 and k2 do not keep the columns apart", &|k| k.k[1] = C::Fr::ZERO),
        ("k1 and k2 do not keep the columns apart", &|k| k.k[1] = k.k[0] * C::root_of_unity(3).unwrap()),
        ("a domain of", &|k| k.domain = 1 << 40),
        ("public values and a domain", &|k| k.publics = 9),
        ("public values and a domain", &|k| k.domain = 12),
    ] {
        assert!(wrong(change).contains(part), "{part}: {}", wrong(change));
    }
}

#[test]
fn proofs_of_snarkjs_are_accepted_and_changed_ones_refused() {
    macro_rules! data {
        ($name:literal) => {
            include_bytes!(concat!("../../formats/tests/data/", $name)).as_slice()
        };
    }
    verdicts::<Bn254>(data!("mul.plonk.vkey.json"), data!("mul.plonk.proof.json"), data!("mul.public.json"));
    verdicts::<Bls12_381>(
        data!("mul_bls.plonk.vkey.json"),
        data!("mul_bls.plonk.proof.json"),
        data!("mul_bls.public.json"),
    );
}

/// Powers of tau that would let a proof tell of its witness, or that are none.
fn powers_that_are_no_good<C: Curve>() {
    let mut rng = ChaCha8Rng::seed_from_u64(10);
    let tau = C::Fr::rand(&mut rng);
    let check = |(powers, x_2): &(Vec<P1<C>>, P2<C>)| check_powers::<C>(powers.as_slice().into(), x_2, 8, &Silent);
    let good = powers::<C>(tau, 14);
    check(&good).unwrap();
    let refused = |what: &str, of: (Vec<P1<C>>, P2<C>)| {
        let message = check(&of).unwrap_err().to_string();
        assert!(message.contains(what), "{what}: {message}");
    };
    // Each row of the domain as tau: Z_H is zero there.
    let w = C::root_of_unity(3).unwrap();
    for row in 0..8 {
        refused("tau is a row of the domain", powers::<C>(w.pow([row]), 14));
    }
    refused("the power 1 of tau in G2 is the point at infinity", powers::<C>(C::Fr::ZERO, 14));
    for at in [1, 2, 8, 13] {
        let mut wrong = good.clone();
        wrong.0[at] = good.0[at - 1];
        refused(if at == 8 { "not those of one tau" } else { "tau" }, wrong);
        let mut wrong = good.clone();
        wrong.0[at] = bytemuck::Zeroable::zeroed();
        refused(&format!("the power {at} of tau is the point at infinity"), wrong);
        let mut wrong = good.clone();
        bytemuck::bytes_of_mut(&mut wrong.0[at])[0] ^= 1;
        refused(&format!("the power {at} of tau is not on the curve"), wrong);
    }
    // All of them by one factor: consistent, but for the generator.
    let scaled = good.0.iter().map(|p| C::G1::from_ark(&(C::G1::to_ark(p) * C::Fr::from(7u64)).into_affine()));
    refused("the power 0 of tau is not the generator", (scaled.collect(), good.1));
    refused("not those of one tau", (good.0.clone(), powers::<C>(tau + C::Fr::ONE, 2).1));
    refused("8 powers of tau for a domain of 8 rows", (good.0[..8].to_vec(), good.1));
}

#[test]
fn powers_of_tau_are_checked() {
    powers_that_are_no_good::<Bn254>();
    powers_that_are_no_good::<Bls12_381>();
    // A set-up asks for that check, and for as many as its key has.
    let circuit = Random::<Bn254>::new(3, 0, 11);
    let gates = Gates::of(&circuit, &Silent).unwrap();
    let n = gates.shape().powers();
    let w = Bn254::root_of_unity(gates.shape().domain.ilog2()).unwrap();
    for ((tau, x_2), what) in [
        (powers::<Bn254>(w, n), "row of the domain"),
        (powers::<Bn254>(w + w, n - 1), "powers of tau; expected"),
        (powers::<Bn254>(w + w, n + 1), "powers of tau; expected"),
    ] {
        let made = setup(&Cpu::new(1), &gates, (&tau, &x_2), &mut setup::OwnedKey::default(), &Silent);
        let message = made.unwrap_err().to_string();
        assert!(message.contains(what), "{message}");
    }
}

#[test]
fn parts_that_do_not_fit_together_are_refused() {
    let circuit = Random::<Bn254>::new(20, 2, 12);
    let key = owned(&circuit);
    let view = key.view().unwrap();
    view.check_sizes().unwrap();
    let refused = |change: &dyn Fn(&mut KeyView<'_, Bn254>), part: &str| {
        let mut wrong = view.clone();
        change(&mut wrong);
        let message = wrong.check_sizes().unwrap_err().to_string();
        assert!(message.contains(part), "{part}: {message}");
        assert!(ProvingKey::load(&Cpu::new(1), &wrong, Layout::Auto, 1).is_err());
    };
    refused(&|k| k.shape.domain = 4, "domain of 4 rows");
    refused(&|k| k.shape.domain = 24, "domain of 24 rows");
    refused(&|k| k.shape.publics = k.shape.variables, "public signals");
    refused(&|k| k.shape.gates = k.shape.domain + 1, "gates");
    refused(&|k| k.verifying.publics += 1, "another shape");
    refused(&|k| k.selectors[2] = k.selectors[2].slice(0..4), "a polynomial: 4");
    refused(&|k| k.maps[1] = k.maps[1].slice(0..1), "a column: 1");
    refused(&|k| k.powers = k.powers.slice(0..5), "powers of tau: 5");
    refused(&|k| k.additions = k.additions.slice(0..0), "additions: 0");
    let high = vec![u32::MAX; view.shape.gates];
    let mut wrong = view.clone();
    wrong.maps[0] = high.as_slice().into();
    assert!(wrong.check_sizes().unwrap_err().to_string().contains("names a signal above"));
    let mut additions: Vec<_> = view.additions.iter().collect();
    additions[0].signals[1] = view.shape.variables as u32;
    let mut wrong = view.clone();
    wrong.additions = additions.as_slice().into();
    assert!(wrong.check_sizes().unwrap_err().to_string().contains("comes after it"));
}

/// Whatever step of its loading finds no room: what is told is not the step, but what the key and a proof need in all.
#[test]
fn a_key_that_does_not_fit_is_refused_with_what_it_needs() {
    let circuit = Random::<Bn254>::new(20, 2, 18);
    let key = owned(&circuit);
    let view = key.view().unwrap();
    let need = device_bytes::<Bn254>(view.shape.domain) + working_bytes::<Bn254>(view.shape.domain);
    let expected = format!("load key on Stepped GPU (cuda:7): needs {need} bytes");
    let mut refused = 0;
    for first in 0.. {
        let steps = AtomicUsize::new(0);
        let stepped = Stepped::new(Arc::new(move |_| match steps.fetch_add(1, Ordering::SeqCst) == first {
            true => Step::OutOfMemory,
            false => Step::Right,
        }));
        match ProvingKey::load(&stepped, &view, Layout::Auto, 1) {
            Err(error) => assert!(error.to_string().starts_with(&expected), "{error}"),
            Ok(_) => break,
        }
        refused += 1;
    }
    assert!(refused > 50, "{refused}");
}

/// A listener that counts sums: those that there are, and those that are done.
#[derive(Default)]
struct Counts([AtomicUsize; 2]);

impl Progress for Counts {
    fn start(&self, _: &'static str, total: u64) {
        self.0[0].store(total as usize, Ordering::SeqCst);
    }
    fn advance(&self, units: u64) {
        self.0[1].fetch_add(units as usize, Ordering::SeqCst);
    }
}

#[test]
fn progress_counts_the_sums() {
    let circuit = Random::<Bn254>::new(20, 2, 13);
    let key = owned(&circuit);
    let view = key.view().unwrap();
    let verifier = PreparedKey::new(&view.verifying).unwrap();
    let cpu = Cpu::new(2);
    let key = ProvingKey::load(&cpu, &view, Layout::Auto, 1).unwrap();
    let counts = Counts::default();
    let request = Request::new(tandem_ops::Timeline::none(), &counts);
    prove_verified(&cpu, &key, &verifier, &circuit.witness(), &blinding(), &request).unwrap();
    assert_eq!(counts.0.map(AtomicUsize::into_inner), [9, 9]);
}

/// A listener that asks to stop after so many looks.
struct StopAfter(AtomicUsize);

impl Progress for StopAfter {
    fn cancelled(&self) -> bool {
        self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_err()
    }
}

#[test]
fn requests_end_where_they_are_cancelled_and_leave_the_key_usable() {
    let circuit = Random::<Bn254>::new(20, 2, 13);
    let key = owned(&circuit);
    let view = key.view().unwrap();
    let verifier = PreparedKey::new(&view.verifying).unwrap();
    let cpu = Cpu::new(2);
    let key = ProvingKey::load(&cpu, &view, Layout::Auto, 1).unwrap();
    let witness = circuit.witness();
    let mut ends = 0;
    for looks in 0..1000 {
        let stop = StopAfter(looks.into());
        let request = Request::new(tandem_ops::Timeline::none(), &stop);
        match prove_verified(&cpu, &key, &verifier, &witness, &blinding(), &request) {
            Err(Error::Interrupted) => ends += 1,
            Ok(made) => {
                assert_eq!(made.verdict, Ok(()));
                break;
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!(ends > 40, "{ends}");
}

#[test]
fn circuits_that_have_no_key_are_refused() {
    let mut circuit = Random::<Bn254>::new(1, 1, 14);
    circuit.rows.clear();
    let message = Gates::of(&circuit, &Silent).err().unwrap().to_string();
    assert!(message.contains("no constraint"), "{message}");
    let stop = StopAfter(0.into());
    let circuit = Random::<Bn254>::new(5000, 0, 15);
    assert!(matches!(Gates::of(&circuit, &stop), Err(Error::Interrupted)));
}
