//! A circuit that circom compiled, and modules that are none.

mod support;

use std::sync::Mutex;
use support::{fake, run, CHAR, LIMITS, MULTIPLIER};
use tandem_witness::{calculate, interpret, Caller};

/// The prime of BN254's scalars plus four.
const P_PLUS_4: &str = "21888242871839275222246405745257275088548364400416034343698204186575808495621";

/// The wires of the multiplier are 1, c, a, b.
fn product(json: &str) -> u64 {
    let witness = run(MULTIPLIER, json).unwrap();
    assert_eq!((witness.prime().len(), witness.len(), witness.is_empty()), (32, 4, false));
    let wires: Vec<_> = witness.values().chunks(32).collect();
    assert_eq!((wires[0][0], &wires[0][1..]), (1, &[0; 31][..]));
    assert!(wires[1][8..].iter().all(|&byte| byte == 0));
    u64::from_le_bytes(wires[1][..8].try_into().unwrap())
}

#[test]
fn a_circuit_of_circom_is_computed() {
    assert_eq!(product(r#"{"a": 3, "b": 11}"#), 33);
    assert_eq!(product(include_str!("data/multiplier.json")), 33);
    assert_eq!(product(r#"{"b": true, "a": [[7]]}"#), 7);
    assert_eq!(product(r#"{"a": -3, "b": "-5"}"#), 15);
    assert_eq!(product(r#"{"a": 0, "b": -5}"#), 0);
    assert_eq!(product(&format!(r#"{{"a": "{P_PLUS_4}", "b": 2}}"#)), 8);
    // The last of two members of one name counts, as in JavaScript.
    assert_eq!(product(r#"{"a": 3, "b": 2, "a": 4}"#), 8);
}

/// The host's field functions and the module's own give the same witness.
#[test]
fn native_and_interpreted_witnesses_are_the_same() {
    let other: &[u8] = include_bytes!("data/multiplier_bls12381.wasm");
    let ends = [
        "0",
        "1",
        "-1",
        "2147483647",
        "2147483648",
        "-2147483648",
        "-2147483649",
        P_PLUS_4,
        "0x123456789abcdef123456789abcdef",
    ];
    for wasm in [MULTIPLIER, other] {
        for (a, b) in ends.iter().flat_map(|a| ends.iter().map(move |b| (a, b))) {
            let json = format!(r#"{{"a": "{a}", "b": "{b}"}}"#).into_bytes();
            let native = calculate(wasm, json.clone().into(), LIMITS, &|| false).unwrap();
            let interpreted = interpret(wasm, json.into(), LIMITS, &|| false).unwrap();
            assert!(native.values() == interpreted.values() && native.prime() == interpreted.prime(), "{a} {b}");
        }
    }
}

#[test]
fn wrong_inputs_are_named() {
    for (json, expected) in [
        (r#"{"a": 3}"#, "1 value of 2 is missing; given: a (1 value)"),
        ("{}", "2 values of 2 are missing; given: none"),
        (r#"{"a": 3, "b": 1, "x": 1}"#, "signal x is not an input of the circuit; remove or rename it"),
        (r#"{"a": [3, 4], "b": 1}"#, "signal a: too many values, expected 1, found more"),
        (r#"{"a": [], "b": 1}"#, "signal a: too few values, expected 1, found 0"),
        (r#"{"a": "three", "b": 1}"#, "signal a: value 0 is not an integer in decimal or after 0x"),
        (r#"{"a": "", "b": 1}"#, "signal a: value 0 is not a number"),
        (r#"{"c": 3, "b": 1}"#, "signal c is not an input of the circuit; remove or rename it"),
        (r#"{"a": {"b": 1}, "b": 1}"#, "signal a.b is not an input of the circuit; remove or rename it"),
        (r#"{"a": 3, "b": 1, "a": [3, 4]}"#, "signal a: too many values, expected 1, found more"),
        (r#"{"\n\u001b[2J": 3, "b": 1}"#, "signal [2J is not an input of the circuit; remove or rename it"),
    ] {
        assert_eq!(run(MULTIPLIER, json).unwrap_err(), expected, "{json}");
    }
    for (length, expected) in [(4096, "signal aaa"), (4097, "a signal's name has more than 4096 bytes: aaa")] {
        let error = run(MULTIPLIER, &format!(r#"{{"{}": 3, "b": 1}}"#, "a".repeat(length))).unwrap_err();
        assert!(error.starts_with(expected) && error.ends_with("...") && error.len() < 1100, "{error}");
    }
}

#[test]
fn every_cut_and_many_changes_of_a_module_are_survived() {
    for length in (0..MULTIPLIER.len()).step_by(97).chain(0..64) {
        let error = run(&MULTIPLIER[..length], r#"{"a": 3, "b": 11}"#).unwrap_err();
        assert!(error.starts_with("not a circuit that circom 2 compiled"), "{length}: {error}");
    }
    let mut failures = 0;
    for place in (8..MULTIPLIER.len()).step_by(61) {
        let mut wasm = MULTIPLIER.to_vec();
        wasm[place] ^= 1 << (place % 8);
        // A change in a constant that is not used leaves the result right; anything else is an error in one line.
        if let Err(error) = run(&wasm, r#"{"a": 3, "b": 11}"#) {
            assert!(!error.contains('\n') && error.len() < 1000, "{place}: {error}");
            failures += 1;
        }
    }
    assert!(failures > 100, "{failures}");
}

#[test]
fn a_module_that_is_no_circuit_is_refused() {
    let witness = run(&fake(&[]), "{}").unwrap();
    assert_eq!((witness.prime(), witness.values()), (&[97, 0, 0, 0][..], &[1, 0, 0, 0][..]));

    let with_import = r#"(import "env" "open" (func (param i32))) (memory (export "memory") 1)"#;
    let memory_import = r#"(import "env" "memory" (memory 1)) (memory (export "memory") 1)"#;
    for (change, expected) in [
        ((r#"(memory (export "memory") 1)"#, with_import), "it imports env.open; circom 2 imports only"),
        ((r#"(memory (export "memory") 1)"#, memory_import), "not a circuit that circom 2 compiled"),
        (("\"getVersion\"", "\"version\""), "its export getVersion is missing or has another type"),
        (
            ("(result i32) (i32.const 2)", "(result i64) (i64.const 2)"),
            "its export getVersion is missing or has another",
        ),
        (("(result i32) (i32.const 2)", "(result i32) (i32.const 1)"), "it was made by circom 1"),
        (
            ("\"getFieldNumLen32\") (result i32) (i32.const 1)", "\"getFieldNumLen32\") (result i32) (i32.const 17)"),
            "its field has 17 limbs",
        ),
        (
            ("\"getFieldNumLen32\") (result i32) (i32.const 1)", "\"getFieldNumLen32\") (result i32) (i32.const -1)"),
            "its field has -1 limbs",
        ),
        (("(i32.const 97)", "(i32.const 96)"), "its field's modulus is not an odd prime"),
        (
            ("\"getWitnessSize\") (result i32) (i32.const 1)", "\"getWitnessSize\") (result i32) (i32.const -1)"),
            "it reports 4294967295 witness values, expected 1 to 16384",
        ),
        (
            ("\"getWitnessSize\") (result i32) (i32.const 1)", "\"getWitnessSize\") (result i32) (i32.const 0)"),
            "it reports 0 witness values, expected",
        ),
        (
            ("(i32.store (i32.const 0) (i32.const 1))", "(i32.store (i32.const 0) (i32.const 97))"),
            "witness value 0 is not below the field's modulus",
        ),
        (
            ("(i32.store (i32.const 0) (i32.const 1))", "(i32.store (i32.const 0) (i32.const 96))"),
            "the first value of its witness is not 1",
        ),
        (
            ("(i32.store (i32.const 0) (i32.const 1))", "(i32.store (i32.const 0) (i32.const 0))"),
            "the first value of its witness is not 1",
        ),
        (("(memory (export \"memory\") 1)", "(memory (export \"memory\") 1) (func $s) (start $s)"), "not a circuit"),
    ] {
        let error = run(&fake(&[change]), "{}").unwrap_err();
        assert!(error.contains(expected), "{change:?}: {error}");
    }
    assert!(run(b"", "{}").unwrap_err().contains("magic number"));
    assert!(run(b"\x7fELF\x02\x01\x01\0", "{}").unwrap_err().contains("magic number"));
}

/// Two limbs: the high one must be 0.
#[test]
fn the_whole_first_value_is_compared_with_one() {
    let two = [
        ("\"getFieldNumLen32\") (result i32) (i32.const 1)", "\"getFieldNumLen32\") (result i32) (i32.const 2)"),
        (
            "(param i32) (result i32) (i32.load (i32.const 0))",
            "(param i32) (result i32) (i32.load (i32.shl (local.get 0) (i32.const 2)))",
        ),
        ("(i32.store (i32.const 0) (i32.const 97))", "(i64.store (i32.const 0) (i64.const 0xffffffff00000001))"),
    ];
    let one = ("(i32.store (i32.const 0) (i32.const 1))", "(i64.store (i32.const 0) (i64.const 1))");
    assert_eq!(run(&fake(&[&two[..], &[one]].concat()), "{}").unwrap().len(), 1);
    let high = ("(i32.store (i32.const 0) (i32.const 1))", "(i64.store (i32.const 0) (i64.const 0x100000001))");
    let error = run(&fake(&[&two[..], &[high]].concat()), "{}").unwrap_err();
    assert!(error.contains("the first value of its witness is not 1"), "{error}");
}

/// Circom needs the first release of WebAssembly and no proposal; what nobody needs is not there to be attacked.
#[test]
fn proposals_are_refused() {
    let memory = r#"(memory (export "memory") 1)"#;
    for part in [
        "(func (param f32))",
        "(func (drop (f64.const 1)))",
        "(func (memory.fill (i32.const 0) (i32.const 0) (i32.const 0)))",
        "(func (memory.copy (i32.const 0) (i32.const 0) (i32.const 0)))",
        "(table 1 funcref) (func (drop (table.grow (ref.null func) (i32.const 0))))",
        "(table 1 funcref) (table 1 funcref)",
        "(memory 1)",
        "(func $t (return_call $t))",
        "(func (result i32 i32) (i32.const 0) (i32.const 0))",
        "(func (drop (i32.extend8_s (i32.const 0))))",
        "(global (export \"g\") (mut i32) (i32.const 0))",
        "(global i32 (i32.add (i32.const 0) (i32.const 0)))",
    ] {
        let error = run(&fake(&[(memory, &format!("{memory} {part}"))]), "{}").unwrap_err();
        assert!(error.starts_with("not a circuit that circom 2 compiled"), "{part}: {error}");
    }
    let global = format!("{memory} (table 1 funcref) (global $g (mut i64) (i64.const 0))");
    assert!(run(&fake(&[(memory, &global)]), "{}").is_ok());
}

/// Knows names, and hears what a circuit logs.
#[derive(Default)]
struct Listener {
    names: Vec<String>,
    lines: Mutex<Vec<String>>,
}

impl Caller for Listener {
    fn stop(&self) -> bool {
        false
    }
    fn log(&self, line: &str) {
        self.lines.lock().unwrap().push(line.into());
    }
    fn names(&self) -> Vec<String> {
        self.names.clone()
    }
}

/// What a module logs, and how it ends.
fn heard(wasm: &[u8]) -> (Vec<String>, Result<(), String>) {
    let listener = Listener::default();
    let ended = calculate(wasm, b"{}".to_vec().into(), LIMITS, &listener).map(drop).map_err(|e| e.to_string());
    (listener.lines.into_inner().unwrap(), ended)
}

#[test]
fn missing_and_unknown_inputs_are_named() {
    let says = |names: &[&str], json: &str| {
        let listener = Listener { names: names.iter().map(|n| n.to_string()).collect(), ..Listener::default() };
        calculate(MULTIPLIER, json.as_bytes().to_vec().into(), LIMITS, &listener).unwrap_err().to_string()
    };
    // c is an output and x nothing.
    let names = ["a", "b", "c", "x"];
    assert_eq!(says(&names, r#"{"a": 3}"#), "b (1 value) is missing");
    assert_eq!(says(&names, "{}"), "a (1 value), b (1 value) are missing");
    assert_eq!(says(&["a", "c"], "{}"), "a (1 value) is missing, and 1 value of others");
    assert_eq!(says(&["a", "c"], r#"{"a": 3}"#), "1 value of 2 is missing; given: a (1 value)");
    let unknown = "signal A is not an input of the circuit, whose inputs are a, b; remove or rename it";
    assert_eq!(says(&names, r#"{"A": 3, "b": 1}"#), unknown);
}

/// A module that logs `text` with a value of 255 behind, and goes on with `code`.
fn logging(text: &str, code: &str) -> Vec<u8> {
    let next = format!(
        "(global $g (mut i32) (i32.const 0)) (data (i32.const 100) \"{text}\\00\\n\\00\")
         (func (export \"getMessageChar\") (result i32)
           (global.set $g (i32.add (global.get $g) (i32.const 1)))
           (i32.load8_u (i32.add (global.get $g) (i32.const 99))))"
    );
    let init = format!(
        "(func (export \"init\") (param i32) (local $n i32) (i32.store (i32.const 0) (i32.const 255))
           (call $write) (call $show) (call $write) {code})"
    );
    fake(&[(CHAR, &next), ("(func (export \"init\") (param i32))", &init)])
}

/// As snarkjs does it; what a terminal would obey is shown as spaces.
#[test]
fn text_is_logged_as_it_is() {
    assert_eq!(heard(&logging("a  b ", "")).0, ["a  b  255"]);
    assert_eq!(heard(&logging("\\1b[31m\\09x", "")).0, [" [31m x 255"]);
}

#[test]
fn what_was_logged_before_a_failure_is_heard() {
    let (lines, ended) = heard(&logging("hi", "(call $exception (i32.const 4))"));
    assert_eq!(lines, ["hi 255"]);
    assert!(ended.unwrap_err().contains("an assertion failed"));
}

#[test]
fn no_circuit_logs_for_ever() {
    // Every message is a line feed.
    let next = "(global $g (mut i32) (i32.const 0)) (func (export \"getMessageChar\") (result i32)
        (global.set $g (i32.sub (i32.const 10) (global.get $g))) (global.get $g))";
    let init = "(func (export \"init\") (param i32) (local $n i32)
        (loop (call $write) (br_if 0 (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 10005)))))";
    let (lines, ended) = heard(&fake(&[(CHAR, next), ("(func (export \"init\") (param i32))", init)]));
    assert_eq!(ended, Ok(()));
    assert!(lines.len() == 10_001 && lines[10_000].contains("not shown"), "{}", lines.len());
}
