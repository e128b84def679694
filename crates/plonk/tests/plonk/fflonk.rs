//! FFLONK on circuits made up at random.

use super::support::fflonk::{made, view, Owned};
use super::support::{blinding, powers, Random};
use super::LAYOUTS;
use ark_ff::{Field, UniformRand};
use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};
use std::sync::atomic::{AtomicUsize, Ordering};
use tandem_ops::cpu::Cpu;
use tandem_ops::timeline::Moved;
use tandem_ops::{Backend, Bn254, Canonical, Curve, NttField};
use tandem_plonk::fflonk::*;
use tandem_plonk::{Blinding, Error, Gates, Layout, Progress, Refusal, Request, Shape, Silent, Witness, P1};
use zeroize::Zeroizing;

type Fr = <Bn254 as Curve>::Fr;

/// Circuits of many shapes, at the borders of domains too: each proof verifies, and is the same on any number of lanes.
#[test]
fn proofs_of_random_circuits() {
    for (constraints, publics, seed) in
        [(1, 0, 1), (1, 1, 2), (2, 3, 3), (5, 2, 4), (9, 0, 5), (40, 5, 6), (100, 17, 7), (300, 1, 8)]
    {
        let circuit = Random::<Bn254>::new(constraints, publics, seed);
        let (key, verifying) = made(&circuit);
        let Shape { domain, gates, .. } = key.shape.unwrap();
        assert!(gates + 2 <= domain && key.others == 5 * domain * (8 + publics.max(1)));
        let verifier = PreparedKey::new(&verifying).unwrap();
        let witness = circuit.witness();
        let public = witness.values()[1..=publics].to_vec();
        let mut first: Option<Proof> = None;
        for (lanes, layout) in LAYOUTS {
            let cpu = Cpu::new(lanes);
            let key = ProvingKey::load(&cpu, &view(&key, &verifying), layout, 1).unwrap();
            let request = Request::new(cpu.timeline(), &Silent);
            cpu.take_moved();
            let made = prove_verified(&cpu, &key, &verifier, &witness, &blinding(), &request).unwrap();
            let of_spans: Moved = request.timeline.take().unwrap().iter().map(|span| span.moved).sum();
            assert_eq!(of_spans, cpu.take_moved(), "every copy has a span");
            assert_eq!(made.verdict, Ok(()), "{constraints} constraints, {lanes} lanes");
            assert_eq!(verifier.verify(&public, &made.proof), Ok(()));
            assert!(first.is_none_or(|proof| proof.to_bytes() == made.proof.to_bytes()), "{lanes} lanes {layout:?}");
            assert_eq!(Proof::from_bytes(&made.proof.to_bytes()).unwrap().to_bytes(), made.proof.to_bytes());
            first = Some(made.proof);
        }
    }
}

/// Each blinding scalar is in the first commitment that it is to hide: those of the columns in C1, those of Z in C2.
#[test]
fn every_blinding_scalar_is_used_where_it_belongs() {
    let circuit = Random::<Bn254>::new(10, 1, 16);
    let (key, verifying) = made(&circuit);
    let verifier = PreparedKey::new(&verifying).unwrap();
    let cpu = Cpu::new(1);
    let key = ProvingKey::load(&cpu, &view(&key, &verifying), Layout::Auto, 1).unwrap();
    let witness = circuit.witness();
    let mut rng = ChaCha8Rng::seed_from_u64(17);
    let scalars: [Fr; 11] = std::array::from_fn(|_| Fr::rand(&mut rng));
    let proof = |scalars: [Fr; 11]| {
        let made =
            prove_verified(&cpu, &key, &verifier, &witness, &Blinding::fixed(scalars), &Request::silent()).unwrap();
        assert_eq!(made.verdict, Ok(()));
        made.proof
    };
    let first = proof(scalars);
    for (number, hides) in [0, 0, 0, 0, 0, 0, 1, 1, 1].into_iter().enumerate() {
        let mut changed = scalars;
        changed[number] += Fr::ONE;
        let other = proof(changed);
        let differs = first.points.iter().zip(&other.points).position(|(a, b)| a != b);
        assert_eq!(differs, Some(hides), "b{}", number + 1);
    }
}

#[test]
fn witnesses_that_do_not_satisfy_are_told() {
    let circuit = Random::<Bn254>::new(30, 2, 9);
    let (key, verifying) = made(&circuit);
    let verifier = PreparedKey::new(&verifying).unwrap();
    let cpu = Cpu::new(1);
    let key = ProvingKey::load(&cpu, &view(&key, &verifying), Layout::Auto, 1).unwrap();
    let good = circuit.witness();
    let count = good.values().len();
    for at in [1, 2, count - 20, count - 1] {
        let mut values = good.values().to_vec();
        values[at].0[0] ^= 1;
        let witness = Witness::new(Zeroizing::new(values)).unwrap();
        let made = prove_verified(&cpu, &key, &verifier, &witness, &blinding(), &Request::silent()).unwrap();
        assert_eq!(made.verdict, Err(Refusal::Equation), "value {at}");
    }
    let mut values = good.values().to_vec();
    values.push(Canonical::default());
    let witness = Witness::new(Zeroizing::new(values)).unwrap();
    let error = prove_verified(&cpu, &key, &verifier, &witness, &blinding(), &Request::silent()).err().unwrap();
    assert!(matches!(error, Error::Witness(_)), "{error}");
}

#[test]
fn parts_that_do_not_fit_together_are_refused() {
    let circuit = Random::<Bn254>::new(20, 2, 13);
    let (key, verifying) = made(&circuit);
    let refused = |change: &dyn Fn(&mut KeyView<'_>), part: &str| {
        let mut wrong = view(&key, &verifying);
        change(&mut wrong);
        let error = ProvingKey::load(&Cpu::new(1), &wrong, Layout::Auto, 1).err().unwrap().to_string();
        assert!(error.contains(part), "{error}");
    };
    let Shape { domain, gates, .. } = key.shape.unwrap();
    refused(&|k| k.shape.domain = 12, "domain of 12 rows");
    refused(&|k| k.shape.domain = 4, "domain of 4 rows");
    refused(&|k| k.shape.gates = domain - 1, "of which two have none");
    refused(&|k| k.shape.gates = gates + 1, "a column");
    refused(&|k| k.verifying.publics = 1, "of another shape");
    refused(&|k| k.shape.publics = k.shape.variables, "public signals");
    refused(&|k| k.shape.additions += 1, "additions");
    refused(&|k| k.c0 = k.c0.slice(0..8), "C0: 8; expected");
    refused(&|k| k.powers = k.powers.slice(0..9), "powers of tau: 9; expected");
    let high = vec![u32::MAX; gates];
    let mut wrong = view(&key, &verifying);
    wrong.maps[2] = high.as_slice().into();
    assert!(wrong.check_sizes().unwrap_err().to_string().contains("names a signal above"));
    let mut additions = key.additions.clone();
    additions[0].signals[1] = key.shape.unwrap().variables as u32;
    let mut wrong = view(&key, &verifying);
    wrong.additions = additions.as_slice().into();
    assert!(wrong.check_sizes().unwrap_err().to_string().contains("comes after it"));
    // Powers of tau that are too few for a set-up, and of two secrets.
    let gates = Gates::of_fflonk(&circuit, &Silent).unwrap();
    let (mut tau, x_2) = powers::<Bn254>(Fr::from(5_u64), 9 * domain + 18);
    let set_up = |tau: &[P1<Bn254>]| {
        setup(&Cpu::new(1), &gates, (tau, &x_2), &mut Owned::default(), &Silent).err().unwrap().to_string()
    };
    assert!(set_up(&tau[1..]).contains("powers of tau; expected"));
    tau.swap(7, 8);
    assert!(set_up(&tau).contains("powers of tau"));
    // Roots of unity: of the domain, and such that tau^3 or tau^4 is in it.
    let root = |log_n| <Bn254 as NttField>::root_of_unity(log_n).unwrap();
    let roots = Roots::of(domain.ilog2()).unwrap();
    for (secret, what) in [
        (root(domain.ilog2()), "tau is a row"),
        (roots.w3, "tau^3 is a row"),
        // wr is in the domain, whose order three does not divide.
        (roots.wr, "tau is a row"),
        (root(domain.ilog2() + 2), "tau^4 is a row"),
        (root(domain.ilog2() + 1), "tau^4 is a row"),
    ] {
        let (tau, x_2) = powers::<Bn254>(secret, 9 * domain + 18);
        let made = setup(&Cpu::new(1), &gates, (&tau, &x_2), &mut Owned::default(), &Silent);
        let error = made.err().unwrap().to_string();
        assert!(error.contains(what), "{what}: {error}");
    }
}

/// A listener that asks to stop after so many looks, and counts sums.
struct StopAfter(AtomicUsize, [AtomicUsize; 2]);

impl Progress for StopAfter {
    fn start(&self, _: &'static str, total: u64) {
        self.1[0].store(total as usize, Ordering::SeqCst);
    }
    fn advance(&self, units: u64) {
        self.1[1].fetch_add(units as usize, Ordering::SeqCst);
    }
    fn cancelled(&self) -> bool {
        self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_err()
    }
}

#[test]
fn requests_end_where_they_are_cancelled_and_leave_the_key_usable() {
    let circuit = Random::<Bn254>::new(20, 2, 13);
    let (key, verifying) = made(&circuit);
    let verifier = PreparedKey::new(&verifying).unwrap();
    let cpu = Cpu::new(2);
    let key = ProvingKey::load(&cpu, &view(&key, &verifying), Layout::Auto, 1).unwrap();
    let witness = circuit.witness();
    let mut ends = 0;
    for looks in 0..1000 {
        let stop = StopAfter(looks.into(), Default::default());
        let request = Request::new(tandem_ops::Timeline::none(), &stop);
        match prove_verified(&cpu, &key, &verifier, &witness, &blinding(), &request) {
            Err(Error::Interrupted) => ends += 1,
            Ok(made) => {
                assert_eq!(made.verdict, Ok(()));
                assert_eq!(stop.1.map(AtomicUsize::into_inner), [4, 4]);
                break;
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!(ends > 40, "{ends}");
}
