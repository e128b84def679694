//! The two-lane layout of a text, step by step.

use crate::support::{checked, key};
use std::sync::{Arc, Mutex};
use tandem_groth16::plan::blueprint_memory;
use tandem_groth16::plan::PointBytes;
use tandem_groth16::synthetic::Synthetic;
use tandem_groth16::{
    prove, prove_staged, prove_verified, stage, Blinding, Error, Layout, PreparedKey, Progress, ProvingKey, Request,
    Silent, P1, P2,
};
use tandem_ops::cpu::Cpu;
use tandem_ops::{Backend, Bls12_381, Bn254, Curve, Lane, ScalarRecoding, Timeline};

const FIRST: Lane = Lane(0);
const SECOND: Lane = Lane(1);

/// What the buffers and matrices of a lane take in each step of the plan.
struct Seen(Arc<Cpu>, Mutex<[Vec<u64>; 2]>);

impl Progress for Seen {
    fn enqueued(&self, stage: &'static str, lane: Lane) {
        let ends = match lane {
            FIRST => ["upload matrix B", "witness digits", "MSM H", "MSM C"],
            _ => ["", "MSM B1", "MSM B2", ""],
        };
        if ends.contains(&stage) {
            self.1.lock().unwrap()[lane.0].push(self.0.take_most_bytes(lane));
        }
    }
}

fn each_step_takes_what_the_plan_says<C: Curve>() {
    let circuit = Synthetic { constraints: 1000, publics: 3, dense: 0.5 };
    let key = key::<C>(circuit);
    let view = key.view().unwrap();
    let witness = checked(&circuit.witness::<C>(3).unwrap()).unwrap();
    let cpu = Arc::new(Cpu::new(2));
    let loaded = ProvingKey::load(&*cpu, &view, Layout::Blueprint, 100).unwrap();
    let sizes = view.shape;
    let (wires, rows) = (sizes.variables as u64 * 32, sizes.domain as u64 * 32);
    let matrices = view.matrix_a.bytes() + view.matrix_b.bytes();
    let points = 3 * sizes.variables as u64 - 4 + sizes.domain as u64;
    let points = points * size_of::<P1<C>>() as u64 + sizes.variables as u64 * size_of::<P2<C>>() as u64;

    // All points on the second lane, of the key's own size; the matrices on neither.
    let [first, second] = loaded.memory() else { panic!("a plan for each lane") };
    assert!(second.stages.iter().all(|stage| stage.points >= points && stage.points <= points + 400), "{second}");
    assert!(first.stages.iter().all(|stage| stage.points == 0), "{first}");
    let held = |lane| cpu.point_bytes(lane);
    assert!(held(FIRST) == 0 && held(SECOND) >= points, "{} and {} of {points}", held(FIRST), held(SECOND));
    assert_eq!([FIRST, SECOND].map(|lane| cpu.take_most_bytes(lane)), [0, 0]);

    let seen = Seen(cpu.clone(), Mutex::default());
    let request = Request::new(Timeline::none(), &seen);
    prove(&*cpu, &loaded, &witness, &Blinding::random().unwrap(), &request).unwrap();
    let [of_first, of_second] = seen.1.into_inner().unwrap();
    let sum = |scalars, g2| ScalarRecoding::<C>::sum_bytes(&*cpu, scalars, g2, u64::MAX).all();
    // a, b and c at least; at the end four scalars.
    let least = [wires + matrices, wires + matrices + 3 * rows, wires + rows, 4 * 32];
    for (i, (&took, stage)) in of_first.iter().zip(&first.stages).enumerate() {
        assert!(took >= least[i] && took <= stage.work, "{took}, {} at least: {first}", least[i]);
    }
    // No matrices any more, and no a and b.
    assert_eq!(of_first[2..], least[2..], "{first}");
    assert_eq!(of_second, [wires; 2], "{second}");
    for (stage, g2) in second.stages[1..3].iter().zip([false, true]) {
        assert_eq!(stage.work, wires + sum(sizes.variables, g2), "{second}");
    }
    // Of the proof nothing is left, on the host's order of things.
    for lane in [FIRST, SECOND] {
        cpu.take_most_bytes(lane);
        assert_eq!(cpu.take_most_bytes(lane), 0);
    }
    assert!(held(FIRST) == 0, "the points of the join are gone");
}

#[test]
fn each_step_takes_what_the_plan_says_on_bn254() {
    each_step_takes_what_the_plan_says::<Bn254>();
}

#[test]
fn each_step_takes_what_the_plan_says_on_bls12_381() {
    each_step_takes_what_the_plan_says::<Bls12_381>();
}

/// The second lane reads the witness on the first one before that is told to transform; A, B1 and then B2 are its own; the first makes the
/// quotient, sums L and H, and joins C last.
#[test]
fn the_steps_come_in_the_order_of_the_text() {
    struct Told(Mutex<Vec<(&'static str, usize)>>);
    impl Progress for Told {
        fn enqueued(&self, stage: &'static str, lane: Lane) {
            self.0.lock().unwrap().push((stage, lane.0));
        }
    }
    let circuit = Synthetic { constraints: 255, publics: 1, dense: 0.5 };
    let key = key::<Bn254>(circuit);
    let witness = checked(&circuit.witness::<Bn254>(3).unwrap()).unwrap();
    let cpu = Cpu::new(2);
    let loaded = ProvingKey::load(&cpu, &key.view().unwrap(), Layout::Blueprint, 1).unwrap();
    let verifier = PreparedKey::new(&key.view().unwrap().verifying_key()).unwrap();
    let told = Told(Mutex::default());
    let request = Request::new(cpu.timeline(), &told);
    let made = prove_verified(&cpu, &loaded, &verifier, &witness, &Blinding::random().unwrap(), &request).unwrap();
    assert!(made.verdict.is_ok());
    let told = told.0.into_inner().unwrap();
    let of = |lane| told.iter().filter(|told| told.1 == lane).map(|told| told.0).collect::<Vec<_>>();
    assert_eq!(of(1), ["witness digits", "MSM A", "MSM B1", "witness digits", "MSM B2"]);
    let of_first = of(0);
    assert_eq!(of_first[..4], ["upload witness", "copy to lane", "upload matrix A", "upload matrix B"]);
    let end = ["coset NTT c", "witness digits", "MSM L", "quotient digits", "MSM H", "digits of C", "MSM C"];
    assert_eq!(of_first[of_first.len() - end.len()..], end);
    assert!(made.host.iter().any(|span| span.name == "wait for C"), "{:?}", made.host);
    // A witness that was uploaded ahead is on the first lane alone.
    let staged = stage(&cpu, &loaded, &witness, &Request::silent()).unwrap();
    let blinding = Blinding::random().unwrap();
    let made = prove_staged(&cpu, &loaded, &verifier, staged, &blinding, &Request::silent()).unwrap();
    assert!(made.verdict.is_ok());
}

#[test]
fn other_numbers_of_lanes_and_other_keys_are_refused() {
    let circuit = Synthetic { constraints: 20, publics: 1, dense: 0.5 };
    let key = key::<Bls12_381>(circuit);
    for lanes in [1, 3, 4, 8] {
        let refused = ProvingKey::load(&Cpu::new(lanes), &key.view().unwrap(), Layout::Blueprint, 1).map(|_| ());
        let reason = format!("a layout for 2 lanes; the device has {lanes}");
        assert!(refused.is_err_and(|e| e.to_string().contains(&reason)), "{lanes} lanes");
    }
    let made = tandem_groth16::partition::Partition {
        inputs: 2,
        aux: 1,
        in_a: 0,
        in_b: 0,
        log_domain: 2,
        rows: 3,
        ones: 1.0,
        dense: 0.0,
    };
    let powers = tandem_groth16::partition::PartitionKey::with_period(made, 11, &Silent).unwrap();
    let refused = ProvingKey::load_powers(&Cpu::new(2), &powers.view().unwrap(), Layout::Blueprint, 1).map(|_| ());
    assert!(matches!(refused, Err(Error::Key(text)) if text.contains("blueprint is for Groth16 keys with matrices")));
}

/// What does not fit beside a proof comes after it.
#[test]
fn the_next_witness_waits_where_memory_is_short() {
    let shape = tandem_groth16::Shape { variables: 1 << 20, publics: 1, domain: 1 << 20 };
    let sum = |scalars: usize, _: bool| scalars as u64 * 160;
    let of = |limits| blueprint_memory(shape.into(), PointBytes { g1: 64, g2: 128 }, 100 << 20, &sum, limits);
    let [first, second] = of([400 << 20, 800 << 20]);
    assert!(
        first.fits() && first.ahead == Some(32 << 20) && second.fits() && second.ahead == Some(0),
        "{first}\n{second}"
    );
    let [first, second] = of([300 << 20, 650 << 20]);
    assert!(first.fits() && first.ahead.is_none() && second.fits(), "{first}\n{second}");
    let [first, second] = of([200 << 20, 400 << 20]);
    assert!(!first.fits() && !second.fits(), "{first}\n{second}");
}
