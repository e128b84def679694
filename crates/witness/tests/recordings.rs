//! A run that is recorded, and replayed on other inputs: the module's own witness, byte for byte.

mod support;

use std::sync::Mutex;
use support::{LIMITS, MULTIPLIER};
use tandem_witness::{calculate, calculate_kept, Record, Recordings, Used, Witness};

const OTHER_PRIME: &[u8] = include_bytes!("data/multiplier_bls12381.wasm");
const OPERATIONS: &[u8] = include_bytes!("data/operations.wasm");

/// What is kept, in memory.
#[derive(Default)]
struct Memory {
    kept: Mutex<Option<Vec<u8>>>,
    used: Mutex<Vec<Used>>,
}

impl Recordings for Memory {
    fn find(&self, _: &[u8; 32]) -> Option<Vec<u8>> {
        self.kept.lock().unwrap().clone()
    }

    fn keep(&self, _: &[u8; 32], recording: &[u8]) {
        *self.kept.lock().unwrap() = Some(recording.to_vec());
    }

    fn used(&self, how: Used) {
        self.used.lock().unwrap().push(how);
    }
}

impl Memory {
    fn run(&self, wasm: &[u8], json: &str) -> Result<Witness, String> {
        calculate_kept(wasm, json.as_bytes().to_vec().into(), LIMITS, &|| false, self, Record::All)
            .map_err(|e| e.to_string())
    }
}

fn own(wasm: &[u8], json: &str) -> Result<Witness, String> {
    calculate(wasm, json.as_bytes().to_vec().into(), LIMITS, &|| false).map_err(|e| e.to_string())
}

/// Random numbers of many lengths and both signs, always the same.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 ^ self.0 >> 29
    }

    fn number(&mut self) -> String {
        let digits = match self.next() % 4 {
            0 => return format!("\"{}\"", self.next() % 4),
            1 => self.next() % 10,
            2 => self.next() % 20,
            _ => self.next() % 76,
        };
        let digits: String = (0..=digits).map(|_| char::from(b'0' + (self.next() % 10) as u8)).collect();
        format!("\"{}{digits}\"", if self.next().is_multiple_of(3) { "-" } else { "" })
    }
}

impl Memory {
    /// How often a witness was found so.
    fn count(&self, how: Used) -> usize {
        self.used.lock().unwrap().iter().filter(|&&used| used == how).count()
    }
}

/// The recording, where there is one, gives the module's witness, or its error.
fn compare(memory: &Memory, wasm: &[u8], json: &str) {
    match (memory.run(wasm, json), own(wasm, json)) {
        (Ok(found), Ok(expected)) => {
            assert!(found.values() == expected.values() && found.prime() == expected.prime(), "{json}");
        }
        (found, expected) => assert_eq!(found.map(|_| ()), expected.map(|_| ()), "{json}"),
    }
}

#[test]
fn replays_are_the_modules_own() {
    for wasm in [MULTIPLIER, OTHER_PRIME] {
        let (memory, mut random) = (Memory::default(), Random(7));
        for _ in 0..60 {
            compare(&memory, wasm, &format!(r#"{{"a": {}, "b": {}}}"#, random.number(), random.number()));
        }
        assert_eq!((memory.count(Used::Recorded), memory.count(Used::Replayed)), (1, 59));
    }
}

/// Every operation, on values of every kind; a condition takes one branch or the other.
#[test]
fn operations_and_both_branches() {
    let (memory, mut random) = (Memory::default(), Random(8));
    for _ in 0..200 {
        let (a, b, c) = (random.number(), random.number(), random.number());
        compare(&memory, OPERATIONS, &format!(r#"{{"a": {a}, "b": [{b}, {c}]}}"#));
    }
    assert_eq!(memory.count(Used::Recorded), 1);
    let (replayed, left) = (memory.count(Used::Replayed), memory.count(Used::Left));
    assert!(replayed > 40 && left > 40, "{replayed} {left}");
}

#[test]
fn wrong_inputs_are_told_as_the_module_tells_them() {
    let memory = Memory::default();
    compare(&memory, MULTIPLIER, r#"{"a": 3, "b": 4}"#);
    for json in [
        "",
        "3",
        "{}",
        r#"{"a": 3}"#,
        r#"{"a": 3, "b": 4, "c": 5}"#,
        r#"{"a": [1, 2], "b": 3}"#,
        r#"{"a": "x", "b": 1}"#,
    ] {
        compare(&memory, MULTIPLIER, json);
    }
    assert_eq!((memory.count(Used::Recorded), memory.count(Used::Replayed)), (1, 0));
    // A run that fails is not recorded.
    let memory = Memory::default();
    compare(&memory, MULTIPLIER, r#"{"a": 3}"#);
    assert!(memory.kept.lock().unwrap().is_none());
}

#[test]
fn damaged_recordings_are_replaced() {
    let memory = Memory::default();
    let json = r#"{"a": 3, "b": 4}"#;
    compare(&memory, MULTIPLIER, json);
    let whole = memory.kept.lock().unwrap().clone().unwrap();
    for at in (0..whole.len()).step_by(37) {
        if let Some(kept) = memory.kept.lock().unwrap().as_mut() {
            kept[at] ^= 4;
        }
        compare(&memory, MULTIPLIER, json);
        assert_eq!(memory.kept.lock().unwrap().as_ref(), Some(&whole));
    }
    assert_eq!(memory.count(Used::Replayed), 0);
    // Of another program.
    compare(&memory, OTHER_PRIME, json);
    assert_eq!(memory.count(Used::Replayed), 0);
}

/// A short run is recorded behind its witness; with less memory than a recording takes it is not, and may be later.
#[test]
fn short_runs_are_recorded() {
    let memory = Memory::default();
    let json = || r#"{"a": 3, "b": 4}"#.as_bytes().to_vec().into();
    let run = |limits| calculate_kept(MULTIPLIER, json(), limits, &|| false, &memory, Record::Short).unwrap();
    let least = (1..64).map(|mib| tandem_witness::Limits { memory_bytes: mib << 17, ..LIMITS });
    let least = least.into_iter().find(|&limits| calculate(MULTIPLIER, json(), limits, &|| false).is_ok()).unwrap();
    run(least);
    assert!(memory.kept.lock().unwrap().is_none());
    run(LIMITS);
    assert_eq!(memory.count(Used::Recorded), 1);
    run(LIMITS);
    assert_eq!(memory.count(Used::Replayed), 1);
}

/// Of a program that branches on its inputs nothing is kept of short runs but that it does: a branch says something of the inputs.
#[test]
fn branches_are_kept_only_where_all_runs_are() {
    let memory = Memory::default();
    let mut random = Random(9);
    let mut run = |which| {
        let (a, b, c) = (random.number(), random.number(), random.number());
        let json = format!(r#"{{"a": {a}, "b": [{b}, {c}]}}"#);
        let found = calculate_kept(OPERATIONS, json.clone().into_bytes().into(), LIMITS, &|| false, &memory, which);
        assert!(found.ok().map(|w| w.values().to_vec()) == own(OPERATIONS, &json).ok().map(|w| w.values().to_vec()));
    };
    (0..8).for_each(|_| run(Record::Short));
    assert_eq!(memory.kept.lock().unwrap().as_deref(), Some(&b"branches"[..]));
    assert_eq!((memory.count(Used::Recorded), memory.count(Used::Replayed)), (0, 0));
    (0..8).for_each(|_| run(Record::All));
    assert_eq!(memory.count(Used::Recorded), 1);
    assert!(memory.count(Used::Replayed) + memory.count(Used::Left) > 0);
}
