//! What the copies of a proof move, worked out from the key's sizes alone, and how its phases wait for them.

use crate::support::{checked, key};
use std::collections::BTreeMap;
use tandem_groth16::synthetic::Synthetic;
use tandem_groth16::{prove, prove_staged, stage, Blinding, Layout, PreparedKey, ProvingKey, Request, Silent, P1, P2};
use tandem_ops::cpu::Cpu;
use tandem_ops::timeline::{waited_us, Moved, Timeline, WAIT};
use tandem_ops::{Backend, Bls12_381, Bn254, Canonical, Curve, Lane, Span};

/// What spans of each name moved on each lane; those that moved nothing are left out.
type Copies = BTreeMap<(usize, &'static str), Moved>;

fn of_spans(spans: &[Span]) -> Copies {
    let mut copies = Copies::new();
    for span in spans.iter().filter(|span| span.moved != Moved::default()) {
        *copies.entry((span.lane.0, span.name)).or_default() += span.moved;
    }
    copies
}

fn up(bytes: u64) -> Moved {
    Moved { up: bytes, ..Moved::default() }
}

fn down(bytes: usize) -> Moved {
    Moved { down: bytes as u64, ..Moved::default() }
}

fn across(bytes: u64) -> Moved {
    Moved { across: bytes, ..Moved::default() }
}

/// The spans of a proof, whose copies are all that the backend made.
fn spans_of(cpu: &Cpu, made: impl FnOnce(&Request<'_>)) -> Vec<Span> {
    let request = Request::new(cpu.timeline(), &Silent);
    cpu.take_moved();
    made(&request);
    let spans = request.timeline.take().unwrap();
    assert_eq!(spans.iter().map(|span| span.moved).sum::<Moved>(), cpu.take_moved());
    spans
}

const SCALAR: u64 = 32;

/// Every lane gets the whole witness and sums an even share of all. The chains of a, b and c are on the first lanes, and each vector goes to the
/// lanes in shares.
fn split_copies<C: Curve>(lanes: usize, wires: u64, rows: u64, hidden: u64) -> Copies {
    let cut = |of: u64, lane: usize| of * lane as u64 / lanes as u64;
    let mut copies = Copies::new();
    for lane in 0..lanes {
        copies.insert((lane, "upload witness"), up(SCALAR * wires));
        copies.insert((lane, "MSM B2"), down(size_of::<P2<C>>()));
        for sum in ["MSM A", "MSM B1", "MSM L", "MSM H"] {
            copies.insert((lane, sum), down(size_of::<P1<C>>()));
        }
        if cut(wires, lane + 1) <= hidden {
            copies.remove(&(lane, "MSM L"));
        }
    }
    let chains = match lanes {
        1 => vec![],
        2 => vec![0, 1, 1],
        _ => vec![0, 1, 2],
    };
    for lane in chains {
        let others = rows - (cut(rows, lane + 1) - cut(rows, lane));
        *copies.entry((lane, "copy to lane")).or_default() += across(SCALAR * others);
    }
    if lanes == 2 {
        // c changes lanes between its transforms.
        *copies.entry((0, "copy to lane")).or_default() += across(SCALAR * rows);
    }
    copies
}

fn copies_are_foretold<C: Curve>() {
    for (constraints, publics) in [(1, 0), (13, 2), (64, 63), (255, 1), (300, 4)] {
        let circuit = Synthetic { constraints, publics, dense: 0.5 };
        let key = key::<C>(circuit);
        let view = key.view().unwrap();
        let witness = checked(&circuit.witness::<C>(3).unwrap()).unwrap();
        let verifier = PreparedKey::new(&view.verifying_key()).unwrap();
        let blinding = || Blinding::random().unwrap();
        let (wires, rows) = (view.shape.variables as u64, view.shape.domain as u64);
        assert_eq!(wires as usize, witness.len());
        for lanes in 1..=4 {
            if lanes as u64 > rows.min(wires) {
                continue;
            }
            let cpu = Cpu::new(lanes);
            let loaded = ProvingKey::load(&cpu, &view, Layout::Split, 100).unwrap();
            let expected = split_copies::<C>(lanes, wires, rows, publics as u64 + 1);
            let spans = spans_of(&cpu, |request| {
                prove(&cpu, &loaded, &witness, &blinding(), request).unwrap();
            });
            assert_eq!(of_spans(&spans), expected, "{circuit:?} on {lanes} lanes");
            // Uploaded ahead, it moves the same.
            let spans = spans_of(&cpu, |request| {
                let staged = stage(&cpu, &loaded, &witness, request).unwrap();
                prove_staged(&cpu, &loaded, &verifier, staged, &blinding(), request).unwrap();
            });
            assert_eq!(of_spans(&spans), expected, "{circuit:?} on {lanes} lanes, ahead");
        }
        // The witness goes to the first lane and from there to the second, which has all points; matrices come with each proof.
        let cpu = Cpu::new(2);
        let loaded = ProvingKey::load(&cpu, &view, Layout::Blueprint, 100).unwrap();
        let mut expected = Copies::from([
            ((0, "upload witness"), up(SCALAR * wires)),
            ((0, "copy to lane"), across(SCALAR * wires)),
            ((0, "upload matrix A"), up(view.matrix_a.bytes())),
            ((0, "upload matrix B"), up(view.matrix_b.bytes())),
            ((0, "digits of C"), up(4 * SCALAR)),
            ((1, "upload points"), up(4 * size_of::<P1<C>>() as u64)),
            ((1, "MSM B2"), down(size_of::<P2<C>>())),
        ]);
        for sum in [(0, "MSM L"), (0, "MSM H"), (0, "MSM C"), (1, "MSM A"), (1, "MSM B1")] {
            expected.insert(sum, down(size_of::<P1<C>>()));
        }
        if wires <= publics as u64 + 1 {
            expected.remove(&(0, "MSM L"));
        }
        let spans = spans_of(&cpu, |request| {
            prove(&cpu, &loaded, &witness, &blinding(), request).unwrap();
        });
        assert_eq!(of_spans(&spans), expected, "{circuit:?}, the blueprint");
    }
}

#[test]
fn copies_of_a_proof_are_foretold_on_bn254() {
    copies_are_foretold::<Bn254>();
}

#[test]
fn copies_of_a_proof_are_foretold_on_bls12_381() {
    copies_are_foretold::<Bls12_381>();
}

/// A lane waits for the chain that comes from another one, and, within the phase that makes its share of the quotient, for a, b and c.
#[test]
fn phases_tell_how_long_they_wait_for_copies() {
    let circuit = Synthetic { constraints: 255, publics: 1, dense: 0.5 };
    let key = key::<Bn254>(circuit);
    let witness = checked(&circuit.witness::<Bn254>(3).unwrap()).unwrap();
    for (lanes, layout) in [(1, Layout::Split), (2, Layout::Split), (4, Layout::Split), (2, Layout::Blueprint)] {
        let cpu = Cpu::new(lanes);
        let loaded = ProvingKey::load(&cpu, &key.view().unwrap(), layout, 100).unwrap();
        let spans = spans_of(&cpu, |request| {
            prove(&cpu, &loaded, &witness, &Blinding::random().unwrap(), request).unwrap();
        });
        let waited = waited_us(&spans);
        for lane in (0..lanes).map(Lane) {
            let count = |name: &str| spans.iter().filter(|span| span.lane == lane && span.name == name).count();
            let expected = match (lanes, layout, lane.0) {
                // The witness, from the first lane.
                (_, Layout::Blueprint, lane) => lane,
                (1, ..) => 0,
                // c, and the factors.
                (2, _, 1) => 2,
                _ => 1,
            };
            assert_eq!(count(WAIT), expected, "{lane:?} of {lanes}, {layout:?}");
            for (span, waited) in spans.iter().zip(&waited).filter(|(span, _)| span.lane == lane) {
                let waits = span.name == WAIT || span.name == "a*b - c";
                assert!(*waited <= span.duration_us && (*waited > 0.0) == waits, "{waited} of {span:?}");
            }
            assert_eq!(count("a*b - c"), usize::from(lanes > 1 && layout == Layout::Split));
        }
    }
    // The copy itself is what is waited for.
    let cpu = Cpu::new(2);
    let from = cpu.upload(Lane(0), &vec![Canonical([1; 4]); 1 << 16]).unwrap();
    let request = Request::new(cpu.timeline(), &Silent);
    request.copied(&cpu, &from, 0..1 << 16, Lane(1)).unwrap();
    request.copied(&cpu, &from, 0..1 << 16, Lane(0)).unwrap();
    let spans = request.timeline.take().unwrap();
    let [wait, copy] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!((wait.lane, wait.name, copy.lane, copy.name), (Lane(1), WAIT, Lane(0), "copy to lane"));
    assert_eq!((wait.moved, copy.moved), (Moved::default(), across(SCALAR << 16)));
    assert!(wait.duration_us > 0.0 && wait.duration_us <= copy.duration_us);
    assert!(Timeline::none().waiting(Lane(0), || Ok(())).is_ok());
}
