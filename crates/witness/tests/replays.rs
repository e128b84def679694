//! A run that is recorded, and replayed on other inputs: the module's own witness, byte for byte.

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use support::{fake, LIMITS, MULTIPLIER};
use tandem_witness::{
    calculate, calculate_kept, calculate_left, replay_kept, Caller, Error, Limits, Name, Record, Recordings, Used,
    Witness,
};

const OTHER_PRIME: &[u8] = include_bytes!("data/multiplier_bls12381.wasm");
const OPERATIONS: &[u8] = include_bytes!("data/operations.wasm");
const ASSERTS: &[u8] = include_bytes!("data/asserts.wasm");
const BRANCHES: &[u8] = include_bytes!("data/branches.wasm");
const FUNCTIONS: &[u8] = include_bytes!("data/functions.wasm");
const WAYS: &[u8] = include_bytes!("data/ways.wasm");
const TABLES: &[u8] = include_bytes!("data/tables.wasm");

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

/// Every operation, on values of every kind; the ways of a condition only calculate.
#[test]
fn operations() {
    let (memory, mut random) = (Memory::default(), Random(8));
    for _ in 0..200 {
        let (a, b, c) = (random.number(), random.number(), random.number());
        compare(&memory, OPERATIONS, &format!(r#"{{"a": {a}, "b": [{b}, {c}]}}"#));
    }
    assert_eq!((memory.count(Used::Recorded), memory.count(Used::Replayed)), (1, 199));
}

/// The recording of one input, of either way of each branch, gives the witnesses of all, and says nothing of which it was.
#[test]
fn both_ways_are_recorded() {
    let numbers = ["0", "1", "2", "3", "7", "-1", "-5", "340282366920938463463374607431768211456"];
    let inputs = |random: &mut Random| -> Vec<String> {
        let both = numbers.iter().flat_map(|a| numbers.iter().map(move |b| (a.to_string(), b.to_string())));
        let random = (0..20).map(|_| (random.number().replace('"', ""), random.number().replace('"', "")));
        both.chain(random.collect::<Vec<_>>())
            .map(|(a, b)| format!(r#"{{"a": "{a}", "b": "{b}", "one": 1}}"#))
            .collect()
    };
    let mut first: Option<Vec<u8>> = None;
    for recorded in
        [r#"{"a": 0, "b": 3, "one": 1}"#, r#"{"a": 3, "b": 0, "one": 1}"#, r#"{"a": 9, "b": "-4", "one": 1}"#]
    {
        let (memory, mut random) = (Memory::default(), Random(10));
        let run = |json: &str| {
            let bytes = json.as_bytes().to_vec().into();
            let found = calculate_kept(WAYS, bytes, LIMITS, &|| false, &memory, Record::Unbranched).unwrap();
            assert!(found.values() == own(WAYS, json).unwrap().values(), "{recorded}: {json}");
        };
        run(recorded);
        inputs(&mut random).iter().for_each(|json| run(json));
        assert_eq!((memory.count(Used::Recorded), memory.count(Used::Replayed)), (1, numbers.len().pow(2) + 20));
        let kept = memory.kept.lock().unwrap().clone().unwrap();
        assert!(*first.get_or_insert_with(|| kept.clone()) == kept, "{recorded}");
    }
}

/// Inputs of the circuit of functions. Numbers are few, so that they are often alike.
fn arguments(random: &mut Random) -> String {
    let most = [2, 4, 100, 256][(random.next() % 4) as usize];
    let mut list = || [(); 3].map(|()| (random.next() >> 20) % most);
    let (mut a, mut b) = (list(), list());
    match random.next() % 8 {
        0 => a[2] = 77,
        1 => a[2] = b[2],
        2 => b[0] = 0,
        3 => (a[0], b[0]) = (9, 0),
        _ => {}
    }
    format!(r#"{{"a": {a:?}, "b": {b:?}}}"#)
}

/// The recording of one run gives the witnesses of all, whichever ways they go, says nothing of which they were, and leaves what fails.
#[test]
fn functions_are_gone_all_ways() {
    let numbers = |json: &str| -> Vec<u64> {
        json.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
    };
    let fails = |json: &str| own(FUNCTIONS, json).is_err();
    let repeats = |json: &str| numbers(json)[2] == 77;
    let mut random = Random(11);
    let mut first: Option<Vec<u8>> = None;
    let mut seen = [0; 4];
    for recorded in 0..12 {
        let memory = Memory::default();
        let run = |json: &str| {
            let bytes = json.as_bytes().to_vec().into();
            let found = calculate_kept(FUNCTIONS, bytes, LIMITS, &|| false, &memory, Record::Unbranched);
            let values = |witness: Witness| witness.values().to_vec();
            assert_eq!(found.map(values).map_err(|e| e.to_string()), own(FUNCTIONS, json).map(values), "{json}");
        };
        let start =
            std::iter::repeat_with(|| arguments(&mut random)).find(|json| !fails(json) && !repeats(json)).unwrap();
        run(&start);
        let kept = memory.kept.lock().unwrap().clone().unwrap();
        assert!(*first.get_or_insert_with(|| kept.clone()) == kept, "{start}");
        for _ in 0..60 / (recorded + 1) {
            let json = arguments(&mut random);
            run(&json);
            let is_left = memory.used.lock().unwrap().last() == Some(&Used::Left);
            assert_eq!(is_left, fails(&json) || repeats(&json), "{json}");
            seen[usize::from(fails(&json)) + 2 * usize::from(repeats(&json))] += 1;
        }
    }
    assert!(seen.iter().all(|&count| count > 0), "{seen:?}");
}

/// The recording of one input gives the entries of tables for all, and says nothing of which one it was. Places beyond a table are left.
#[test]
fn places_in_tables_are_recorded() {
    let mut first: Option<Vec<u8>> = None;
    for recorded in [r#"{"a": 0, "b": 0}"#, r#"{"a": 2, "b": 3}"#, r#"{"a": 1, "b": 1}"#] {
        let memory = Memory::default();
        let run = |json: &str| {
            let found =
                calculate_kept(TABLES, json.as_bytes().to_vec().into(), LIMITS, &|| false, &memory, Record::Unbranched);
            let values = |witness: Witness| witness.values().to_vec();
            assert_eq!(found.map(values).map_err(|e| e.to_string()), own(TABLES, json).map(values), "{json}");
        };
        run(recorded);
        let kept = memory.kept.lock().unwrap().clone().unwrap();
        assert!(*first.get_or_insert_with(|| kept.clone()) == kept, "{recorded}");
        for (a, b) in (0..3).flat_map(|a| (0..4).map(move |b| (a, b))) {
            run(&format!(r#"{{"a": {a}, "b": {b}}}"#));
            assert_eq!(memory.used.lock().unwrap().last(), Some(&Used::Replayed), "{a} {b}");
        }
        // Negative, beyond all tables, and what a number of 32 bits would not tell from a place.
        for a in ["-1", "-3", "9", "70000", "4294967296", "4294967297", "340282366920938463463374607431768211456"] {
            for json in [format!(r#"{{"a": "{a}", "b": 1}}"#), format!(r#"{{"a": 1, "b": "{a}"}}"#)] {
                run(&json);
                assert_eq!(memory.used.lock().unwrap().last(), Some(&Used::Left), "{json}");
            }
        }
        assert_eq!(memory.count(Used::Recorded), 1);
    }
}

/// A loop of a function that does not end at once is a branch.
#[test]
fn functions_with_loops_are_not_recorded() {
    let json = r#"{"a": [1, 2, 77], "b": [3, 4, 5]}"#;
    for (which, kept) in [(Record::Unbranched, &b"branches"[..]), (Record::All, b"tandem record 4\n")] {
        let memory = Memory::default();
        let found = calculate_kept(FUNCTIONS, json.as_bytes().to_vec().into(), LIMITS, &|| false, &memory, which);
        assert!(found.unwrap().values() == own(FUNCTIONS, json).unwrap().values());
        assert!(memory.kept.lock().unwrap().as_ref().unwrap().starts_with(kept));
        assert_eq!(memory.count(Used::Recorded), usize::from(which == Record::All));
    }
}

/// A loop on inputs that ends at once is no branch. Where it does not, the run is left to the module.
#[test]
fn loops_that_end_at_once_are_recorded() {
    let memory = Memory::default();
    compare(&memory, BRANCHES, r#"{"a": 9, "b": 0}"#);
    compare(&memory, BRANCHES, r#"{"a": 8, "b": 0}"#);
    compare(&memory, BRANCHES, r#"{"a": 9, "b": 2}"#);
    assert_eq!(*memory.used.lock().unwrap(), [Used::Recorded, Used::Replayed, Used::Left]);
}

#[test]
fn branches_that_are_not_ways_are_guards() {
    let (memory, mut random) = (Memory::default(), Random(8));
    for _ in 0..200 {
        let (a, b) = (random.next() % 9, random.next() % 9);
        compare(&memory, BRANCHES, &format!(r#"{{"a": {a}, "b": {b}}}"#));
    }
    assert_eq!(memory.count(Used::Recorded), 1);
    let (replayed, left) = (memory.count(Used::Replayed), memory.count(Used::Left));
    assert!(replayed > 10 && left > 40, "{replayed} {left}");
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

/// With less memory than a recording takes a run is not recorded, and may be later.
#[test]
fn short_runs_are_recorded() {
    let memory = Memory::default();
    let json = || r#"{"a": 3, "b": 4}"#.as_bytes().to_vec().into();
    let run = |limits| calculate_kept(MULTIPLIER, json(), limits, &|| false, &memory, Record::Unbranched).unwrap();
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
        let json = format!(r#"{{"a": {}, "b": {}}}"#, random.next() % 9, random.next() % 9 + 1);
        let found = calculate_kept(BRANCHES, json.clone().into_bytes().into(), LIMITS, &|| false, &memory, which);
        assert!(found.ok().map(|w| w.values().to_vec()) == own(BRANCHES, &json).ok().map(|w| w.values().to_vec()));
    };
    (0..8).for_each(|_| run(Record::Unbranched));
    assert_eq!(memory.kept.lock().unwrap().as_deref(), Some(&b"branches"[..]));
    assert_eq!((memory.count(Used::Recorded), memory.count(Used::Replayed)), (0, 0));
    (0..8).for_each(|_| run(Record::All));
    assert_eq!(memory.count(Used::Recorded), 1);
    assert!(memory.count(Used::Replayed) + memory.count(Used::Left) > 0);
}

/// What the circuit asserts is no branch: the recording is the same for all inputs, and others are refused as the module refuses them.
#[test]
fn assertions_are_recorded() {
    let (memory, other) = (Memory::default(), Memory::default());
    let run = |memory: &Memory, json: &str| {
        let found =
            calculate_kept(ASSERTS, json.as_bytes().to_vec().into(), LIMITS, &|| false, memory, Record::Unbranched);
        let values = |witness: Witness| witness.values().to_vec();
        assert_eq!(found.map(values).map_err(|e| e.to_string()), own(ASSERTS, json).map(values), "{json}");
    };
    run(&memory, r#"{"a": 2, "b": 5}"#);
    assert!(memory.kept.lock().unwrap().is_none());
    run(&memory, r#"{"a": 1, "b": 5}"#);
    run(&memory, r#"{"a": 0, "b": "-77"}"#);
    run(&memory, r#"{"a": 2, "b": 5}"#);
    assert_eq!(
        *memory.used.lock().unwrap(),
        [Used::Refused("what it asserts does not hold"), Used::Recorded, Used::Replayed, Used::Left]
    );
    run(&other, r#"{"a": 0, "b": 3}"#);
    assert!(other.kept.lock().unwrap().is_some() && *other.kept.lock().unwrap() == *memory.kept.lock().unwrap());
}

/// A program that is known by its name alone: its recording is replayed, and one that does not fit is not tried again.
#[test]
fn a_name_does_for_a_replay() {
    let memory = Memory::default();
    let replay = |program: &[u8], json: &str| {
        let mut name = Name::new();
        program.chunks(1000).for_each(|piece| name.add(piece));
        replay_kept(&name, json.as_bytes(), LIMITS, &|| false, &memory).unwrap()
    };
    let (right, wrong) = (r#"{"a": 1, "b": 5}"#, r#"{"a": 2, "b": 5}"#);
    assert!(matches!(replay(ASSERTS, right), Err(None)));
    memory.run(ASSERTS, right).unwrap();
    assert_eq!(replay(ASSERTS, right).unwrap().values(), own(ASSERTS, right).unwrap().values());
    // Of another program.
    assert!(matches!(replay(&ASSERTS[..ASSERTS.len() - 1], right), Err(None)));
    let left = replay(ASSERTS, wrong).unwrap_err();
    let run = |program: &[u8], json: &str| {
        let json = json.as_bytes().to_vec().into();
        calculate_left(left, program, json, LIMITS, &|| false, &memory, Record::All).map_err(|e| e.to_string())
    };
    let values = |found: Result<Witness, String>| found.map(|witness| witness.values().to_vec());
    assert_eq!(values(run(ASSERTS, wrong)), values(own(ASSERTS, wrong)));
    assert_eq!(*memory.used.lock().unwrap(), [Used::Recorded, Used::Replayed, Used::Left]);
    // What was left is not that of a program which took its place.
    let json = r#"{"a": 3, "b": 4}"#;
    assert_eq!(values(run(MULTIPLIER, json)), values(own(MULTIPLIER, json)));
    assert_eq!(memory.used.lock().unwrap().last(), Some(&Used::Recorded));
}

/// Hears what a circuit logs, and says stop once: when asked for the so many-th time.
struct Listener {
    lines: Mutex<Vec<String>>,
    left: AtomicUsize,
}

impl Caller for Listener {
    fn stop(&self) -> bool {
        self.left.fetch_sub(1, Ordering::Relaxed) == 0
    }

    fn log(&self, line: &str) {
        self.lines.lock().unwrap().push(line.into());
    }
}

/// A run that is left before it prints is not heard.
#[test]
fn what_is_logged_is_heard_once() {
    let char = r#"(global $g (mut i32) (i32.const 0)) (data (i32.const 100) "hi\00\n\00")
        (func (export "getMessageChar") (result i32) (global.set $g (i32.add (global.get $g) (i32.const 1)))
          (i32.load8_u (i32.add (global.get $g) (i32.const 99))))"#;
    let init = r#"(func (export "init") (param i32) (call $write) (call $write))"#;
    let wasm = fake(&[(support::CHAR, char), (r#"(func (export "init") (param i32))"#, init)]);
    for which in [Record::Unbranched, Record::All] {
        let listener = Listener { lines: Mutex::default(), left: AtomicUsize::new(usize::MAX) };
        let memory = Memory::default();
        // The second time it is known.
        for lines in [&["hi"][..], &["hi", "hi"]] {
            calculate_kept(&wasm, b"{}".to_vec().into(), LIMITS, &listener, &memory, which).unwrap();
            assert_eq!(*listener.lines.lock().unwrap(), lines);
        }
        assert_eq!(*memory.used.lock().unwrap(), [Used::Refused("it prints")]);
    }
}

/// Whenever it is stopped, and whatever runs out: stopped, or what a run gives that is not recorded.
#[test]
fn limits_and_stops_hold_whenever_they_come() {
    let json = || br#"{"a": 1, "b": 4}"#.to_vec().into();
    let shown =
        |found: Result<Witness, Error>| found.map(|witness| witness.values().to_vec()).map_err(|e| e.to_string());
    let plain = |limits| shown(calculate(ASSERTS, json(), limits, &|| false));
    for which in [Record::Unbranched, Record::All] {
        for steps in (0..40).map(|i| 1 << (i / 2)).chain((0..20).map(|i| 3000 * i)) {
            let (limits, memory) = (Limits { steps, ..LIMITS }, Memory::default());
            let found = calculate_kept(ASSERTS, json(), limits, &|| false, &memory, which);
            assert_eq!(shown(found), plain(limits), "{steps}");
            // Another time there may be more.
            assert!(memory.kept.lock().unwrap().as_ref().is_none_or(|kept| kept.len() > 100));
        }
        for mebibytes in 1..16 {
            let limits = Limits { memory_bytes: mebibytes << 19, ..LIMITS };
            let found = calculate_kept(ASSERTS, json(), limits, &|| false, &Memory::default(), which);
            assert_eq!(shown(found), plain(limits), "{mebibytes}");
        }
        let (expected, mut stopped) = (plain(LIMITS), 0);
        for left in 0..12 {
            let (memory, listener) =
                (Memory::default(), Listener { lines: Mutex::default(), left: AtomicUsize::new(left) });
            match calculate_kept(ASSERTS, json(), LIMITS, &listener, &memory, which) {
                Err(Error::Stopped) => stopped += 1,
                found => assert_eq!(shown(found), expected),
            }
            // Not that it cannot be recorded.
            assert!(memory.kept.lock().unwrap().as_ref().is_none_or(|kept| !kept.is_empty()));
        }
        assert!((1..12).contains(&stopped), "{stopped}");
        let no_time = Limits { time: Some(std::time::Duration::ZERO), ..LIMITS };
        let found = calculate_kept(ASSERTS, json(), no_time, &|| false, &Memory::default(), which);
        assert_eq!(shown(found), plain(no_time));
    }
}
