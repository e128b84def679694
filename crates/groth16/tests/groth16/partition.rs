//! Made-up partitions: any change to an assignment is noticed.

use crate::support::assert_every_copy_has_a_span;
use ark_ff::Field;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use tandem_groth16::check::check_powers_points;
use tandem_groth16::partition::{Partition, PartitionAssignment, PartitionKey};
use tandem_groth16::{
    prove_verified, stage, Blinding, Elements, Error, Evaluations, Layout, PreparedKey, Progress, ProvingKey, Request,
    Silent, Wires, Witness,
};
use tandem_ops::cpu::Cpu;
use tandem_ops::{Backend, Bls12_381, Curve, HostBuf, Lane, Mont, Timeline};

type Fr = <Bls12_381 as Curve>::Fr;

/// The period of a key that is no test's.
const LONG: u64 = 906_349;

fn element(limbs: &[u64; 4]) -> Fr {
    Bls12_381::from_mont(Mont(*limbs))
}

const SMALL: Partition =
    Partition { log_domain: 9, rows: 500, inputs: 3, aux: 470, in_a: 460, in_b: 130, ones: 0.4, dense: 0.2 };

fn wires(words: &[u64], first: usize) -> Vec<u32> {
    let all = (0..words.len() * 64).filter(|wire| words[wire / 64] >> (wire % 64) & 1 == 1);
    all.map(|wire| (first + wire) as u32).collect()
}

/// As an engine does it.
fn witness(made: &PartitionAssignment) -> Witness<Bls12_381> {
    let (inputs, aux) = (made.inputs.len(), made.aux.len());
    let room = |len| HostBuf::<Mont>::zeros(len).unwrap();
    let values = Elements::copied(&[&made.inputs, &made.aux], room(inputs + aux)).ok().unwrap();
    let in_a = [(0..inputs as u32).collect(), wires(&made.a_aux, inputs)].concat();
    let in_b = [wires(&made.b_inputs, 0), wires(&made.b_aux, inputs)].concat();
    let [in_a, in_b] = [in_a, in_b].map(|wires| Wires::new(wires).unwrap());
    // Rows that do not hold are for the proof to find.
    let side = |side: &[[u64; 4]]| Elements::copied(&[side], room(side.len())).ok().unwrap();
    let evaluations = Evaluations::new(side(&made.a), side(&made.b), in_a, in_b).unwrap();
    Witness::of_elements(values).unwrap().with_evaluations(evaluations)
}

fn passes(key: &PartitionKey, made: &PartitionAssignment, lanes: usize) -> bool {
    let cpu = Cpu::new(lanes);
    let loaded = ProvingKey::load_powers(&cpu, &key.view().unwrap(), Layout::Split, 1).unwrap();
    proves(&cpu, key, &loaded, made)
}

fn proves(cpu: &Cpu, key: &PartitionKey, loaded: &ProvingKey<Bls12_381, Cpu>, made: &PartitionAssignment) -> bool {
    let verifier = PreparedKey::new(&key.view().unwrap().verifying_key()).unwrap();
    let (blinding, request) = (Blinding::random().unwrap(), Request::new(cpu.timeline(), &Silent));
    cpu.take_moved();
    let made = prove_verified(cpu, loaded, &verifier, &witness(made), &blinding, &request).unwrap();
    assert_every_copy_has_a_span(cpu, &request.timeline);
    made.verdict.is_ok()
}

#[test]
fn points_that_do_not_fit_come_in_pieces() {
    let key = PartitionKey::with_period(SMALL, LONG, &Silent).unwrap().waiting();
    let view = key.view().unwrap();
    let (mut seen, mut refused) = (BTreeSet::new(), 0);
    for kib in [40, 60, 80, 90, 100, 120, 140, 160, 180, 200, 220, 240, 260, 300, 10_000] {
        // For many proofs, points that come are copied once; for one they come from where they are.
        for (layout, proofs) in [(Layout::Split, 1000), (Layout::Roles, 1000), (Layout::Split, 1)] {
            let cpu = Cpu::with_memory(2, kib << 10);
            let loaded = match ProvingKey::load_powers(&cpu, &view, layout, proofs) {
                Ok(loaded) => loaded,
                Err(Error::Backend(tandem_ops::Error::OutOfMemory { wanted, free, .. })) => {
                    assert!(wanted > free && free == kib << 10);
                    refused += 1;
                    continue;
                }
                Err(other) => panic!("{other}"),
            };
            for plan in loaded.memory() {
                assert!(plan.fits(), "{plan}");
                assert!(proofs > 1 || !plan.points_stay || plan.most_pieces() == 1, "{plan}");
                seen.insert((plan.points_stay, plan.most_pieces() > 1, plan.ahead.is_some()));
            }
            // One proof after the other, of values that differ.
            for seed in [1, 2] {
                assert!(proves(&cpu, &key, &loaded, &key.assignment(seed).unwrap()), "{kib} KiB, {layout:?}");
            }
            // What no plan has room for is not uploaded ahead.
            let made = key.assignment(3).unwrap();
            let staged = stage(&cpu, &loaded, &witness(&made), &Request::silent());
            let has_room = loaded.memory().iter().all(|plan| plan.ahead.is_some());
            match staged {
                Ok(_) => assert!(has_room),
                Err(Error::Backend(tandem_ops::Error::OutOfMemory { op: "upload ahead", .. })) => assert!(!has_room),
                Err(other) => panic!("{other}"),
            }
        }
    }
    for way in [(true, false, true), (true, true, true), (false, true, false)] {
        assert!(refused > 0 && seen.contains(&way), "{refused}: {seen:?}");
    }
    // Points that may not wait stay, whatever the plan says.
    let key = PartitionKey::with_period(SMALL, LONG, &Silent).unwrap();
    let cpu = Cpu::with_memory(2, 10_000 << 10);
    let loaded = ProvingKey::load_powers(&cpu, &key.view().unwrap(), Layout::Split, 1).unwrap();
    assert!(loaded.memory().iter().all(|plan| plan.points_stay));
}

/// What a lane's buffers take while the transforms run: a, b and c, and no values of wires any more.
#[test]
fn values_of_wires_make_room_for_transforms() {
    struct Seen(Arc<Cpu>, Mutex<u64>);
    impl Progress for Seen {
        fn enqueued(&self, stage: &'static str, lane: Lane) {
            match stage {
                "order rows of a" => _ = self.0.take_most_bytes(lane),
                "(c - d) / 2" => *self.1.lock().unwrap() = self.0.take_most_bytes(lane),
                _ => {}
            }
        }
    }
    let many = Partition { aux: 6000, in_a: 6000, in_b: 1000, ..SMALL };
    let key = PartitionKey::with_period(many, 11 * 19, &Silent).unwrap();
    let cpu = Arc::new(Cpu::new(1));
    let loaded = ProvingKey::load_powers(&*cpu, &key.view().unwrap(), Layout::Auto, 1).unwrap();
    let verifier = PreparedKey::new(&key.view().unwrap().verifying_key()).unwrap();
    let seen = Seen(cpu.clone(), Mutex::new(0));
    let request = Request::new(Timeline::none(), &seen);
    let witness = witness(&key.assignment(1).unwrap());
    let made = prove_verified(&*cpu, &loaded, &verifier, &witness, &Blinding::random().unwrap(), &request).unwrap();
    assert!(made.verdict.is_ok());
    let most = seen.1.into_inner().unwrap();
    let row = 512 * 32;
    assert!(most >= 3 * row && most <= 4 * row, "{most} bytes, of rows of {row}");
}

#[test]
fn proofs_verify_whatever_the_sizes_and_the_period() {
    for (partition, period) in [
        (SMALL, LONG),
        (SMALL, 3 * 11 * 19),
        (SMALL, 11 * 19),
        (Partition { inputs: 2, aux: 1, in_a: 0, in_b: 0, log_domain: 2, rows: 3, ones: 1.0, dense: 0.0 }, 11),
        (Partition { in_b: 470, in_a: 470, rows: 512, ones: 0.0, dense: 1.0, ..SMALL }, LONG),
        // Inputs of more than a word of a density.
        (Partition { inputs: 70, ..SMALL }, LONG),
        // More wires than rows.
        (Partition { log_domain: 8, rows: 256, ..SMALL }, 33),
    ] {
        let key = PartitionKey::with_period(partition, period, &Silent).unwrap();
        check_powers_points(&key.view().unwrap(), &Silent).unwrap();
        for (seed, lanes) in [(0, 1), (1, 3)] {
            assert!(passes(&key, &key.assignment(seed).unwrap(), lanes), "{partition:?}, {period}");
        }
    }
}

/// Each part of an assignment is in some sum, or in the quotient.
#[test]
fn anything_else_is_refused() {
    let key = PartitionKey::with_period(SMALL, 11 * 19, &Silent).unwrap();
    let made = || key.assignment(5).unwrap();
    let one = Bls12_381::mont(Fr::ONE).0;
    let in_b = wires(&made().b_aux, 0)[7] as usize;
    let mut wrong = [made(), made(), made(), made(), made()];
    wrong[0].inputs[1] = one;
    wrong[1].inputs[2] = one;
    wrong[2].aux[in_b] = Bls12_381::mont(Fr::from(ChaCha8Rng::seed_from_u64(3).next_u64())).0;
    wrong[3].a[17] = one;
    wrong[4].b[499] = one;
    assert!(passes(&key, &made(), 2));
    for (i, wrong) in wrong.iter().enumerate() {
        assert!(!passes(&key, wrong, 2), "{i}");
    }
}

#[test]
fn values_have_their_shares_and_sets_their_sizes() {
    let large =
        Partition { inputs: 130, aux: 200_000, in_a: 199_321, in_b: 51_017, log_domain: 18, rows: 210_000, ..SMALL };
    let key = PartitionKey::with_period(large, 11, &Silent).unwrap();
    let made = key.assignment(1).unwrap();
    assert_eq!(made.b_inputs.len(), made.inputs.len().div_ceil(64));
    let one = Bls12_381::mont(Fr::ONE).0;
    let share = |of: &dyn Fn(&[u64; 4]) -> bool| made.aux.iter().filter(|x| of(x)).count() as f64 / 200_000.0;
    assert!((share(&|x| *x == one) - 0.4).abs() < 0.01 && (share(&|x| *x == [0; 4]) - 0.4).abs() < 0.01);
    assert_eq!((wires(&made.a_aux, 0).len(), wires(&made.b_aux, 0).len()), (199_321, 51_017));
    assert!(made
        .a
        .iter()
        .zip(made.b.iter())
        .zip(made.c.iter())
        .all(|((a, b), c)| element(a) * element(b) == element(c)));
    let other = key.assignment(2).unwrap();
    assert!(other.aux[..] != made.aux[..] && other.a[..1000] != made.a[..1000] && made.a[..1000] != made.b[..1000]);
}

#[test]
fn sizes_that_do_not_belong_together_are_refused() {
    for wrong in [
        Partition { inputs: 1, ..SMALL },
        Partition { rows: 3, ..SMALL },
        Partition { rows: 513, ..SMALL },
        Partition { in_a: 471, ..SMALL },
        Partition { in_b: 471, ..SMALL },
        Partition { aux: 0, in_a: 0, in_b: 0, ..SMALL },
        Partition { ones: 0.9, ..SMALL },
        Partition { dense: f64::NAN, ..SMALL },
        Partition { log_domain: 31, ..SMALL },
        Partition { aux: u32::MAX as usize, ..SMALL },
    ] {
        let refused = PartitionKey::make(wrong, &Silent).map(|_| ()).unwrap_err();
        assert!(matches!(refused, Error::Circuit(_)), "{refused}");
    }
    let scaled = Partition { log_domain: 27, rows: 130_279_197, inputs: 328, ..SMALL }.scaled(16);
    assert_eq!(scaled.rows, 63_612);
    PartitionKey::with_period(scaled, 11, &Silent).unwrap();
}
