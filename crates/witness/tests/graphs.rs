//! Graphs of circom-witnesscalc: against the WebAssembly of the same circuit, damaged, and beyond limits.

mod support;

use num_bigint::BigUint;
use std::time::Duration;
use support::{run, run_within, LIMITS};
use tandem_witness::{calculate, Error, Limit, Limits};

/// One circuit in two forms, see operations.circom.
const WASM: &[u8] = include_bytes!("data/operations.wasm");
const GRAPH: &[u8] = include_bytes!("data/operations.graph");
const INPUTS: &str = r#"{"a": 7, "b": [3, 5]}"#;

/// The prime of BLS12-381's scalars, little-endian.
const BLS12_381: &str = "52435875175126190479447740508185965837690552500527637822603658699938581184513";

fn prime(decimal: &str) -> BigUint {
    decimal.parse().unwrap()
}

#[test]
fn a_graph_finds_what_the_module_finds() {
    let p = prime("21888242871839275222246405745257275088548364400416034343698204186575808495617");
    let mut values: Vec<BigUint> = [0u32, 1, 2, 3, 64, 253, 254, 255].map(BigUint::from).into();
    values.extend([1u32, 2, 7, 253, 254].map(|below| &p - below));
    values.extend([&p / 2u8, &p / 2u8 + 1u8, (BigUint::from(1u8) << 253u32) - 1u8]);
    // Numbers of no shape, each from the one before.
    for i in 0..16u32 {
        values.push((values[values.len() - 1].pow(3) + i + 5u8) % &p);
    }
    let limits = Limits { steps: 1_000_000_000, ..LIMITS };
    for (i, a) in values.iter().enumerate() {
        for (j, b) in values.iter().enumerate().skip(i % 3).step_by(3) {
            let c = &values[(i * 7 + j) % values.len()];
            // p - 1 with its lowest bit set is p, which is 0: the module ends where it divides by that.
            let c = if *c == &p - 1u8 { &p - 3u8 } else { c.clone() };
            let json = format!(r#"{{"a": "{a}", "b": ["{b}", "{c}"]}}"#);
            let [graph, module] = [GRAPH, WASM].map(|program| run_within(limits, program, &json).unwrap());
            assert_eq!(graph.prime(), module.prime());
            let wire = graph.values().chunks(32).zip(module.values().chunks(32)).position(|(a, b)| a != b);
            assert_eq!((wire, graph.len()), (None, module.len()), "{json}");
        }
    }
}

#[test]
fn wrong_inputs_are_named() {
    for (json, expected) in [
        ("{}", "a (1 value), b (2 values) are missing"),
        (r#"{"a": 1}"#, "b (2 values) is missing"),
        (r#"{"a": 1, "b": [1]}"#, "signal b: too few values, expected 2, found 1"),
        (r#"{"a": 1, "b": [1, 2, 3]}"#, "signal b: too many values, expected 2, found more"),
        (r#"{"a": 1, "b": [1, "x"]}"#, "signal b: value 1 is not an integer in decimal or after 0x"),
        (
            r#"{"a": 1, "b": [1, 2], "c": 1}"#,
            "signal c is not an input of the circuit, whose inputs are a, b; remove or rename it",
        ),
    ] {
        assert_eq!(run(GRAPH, json).unwrap_err(), expected, "{json}");
    }
}

#[test]
fn every_cut_and_every_change_of_a_byte_is_survived() {
    for length in 14..GRAPH.len() {
        let error = run(&GRAPH[..length], INPUTS).unwrap_err();
        assert!(error.starts_with("not a graph of circom-witnesscalc that is whole: at byte "), "{length}: {error}");
    }
    let mut refused = 0;
    for place in 14..GRAPH.len() {
        for bit in 0..8 {
            let mut graph = GRAPH.to_vec();
            graph[place] ^= 1 << bit;
            // Another operation is a graph, too.
            match run(&graph, INPUTS) {
                Ok(witness) => assert_eq!(witness.values()[0], 1),
                Err(error) => {
                    assert!(!error.contains('\n') && error.len() < 1000, "{error}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 1000, "{refused}");
}

#[test]
fn other_programs_of_the_family_are_told() {
    let error = run(b"wtns.cvm.001 and more", "{}").unwrap_err();
    assert!(
        error.starts_with("this is wtns.cvm.001 a, expected wtns.graph.001 or wtns.graph.002; make a graph"),
        "{error}"
    );
}

/// A field of a protocol buffer that holds bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    assert!(bytes.len() < 1 << 14);
    let length = if bytes.len() < 0x80 {
        vec![bytes.len() as u8]
    } else {
        vec![bytes.len() as u8 | 0x80, (bytes.len() >> 7) as u8]
    };
    [vec![number << 3 | 2], length, bytes.to_vec()].concat()
}

/// A field of a protocol buffer that holds a small number.
fn number(number: u8, value: u8) -> Vec<u8> {
    vec![number << 3, value]
}

fn counted(message: &[u8]) -> Vec<u8> {
    field(0, message)[1..].to_vec()
}

fn input(place: u8) -> Vec<u8> {
    field(1, &number(1, place))
}

fn binary(op: u8, a: u8, b: u8) -> Vec<u8> {
    field(4, &[number(1, op), number(2, a), number(3, b)].concat())
}

/// A file of these operations and this description.
fn graph(version: u8, nodes: &[Vec<u8>], about: &[u8]) -> Vec<u8> {
    let mut file = [b"wtns.graph.00", &[b'0' + version][..], &(nodes.len() as u64).to_le_bytes()].concat();
    file.extend(nodes.iter().flat_map(|node| counted(node)));
    let start = file.len() as u64;
    file.extend(counted(about));
    file.extend(start.to_le_bytes());
    file
}

/// A description of the first version: wires, and one input `a` of so many values behind the constant 1.
fn about(wires: &[u8], values: u8) -> Vec<u8> {
    let place = field(2, &[number(1, 1), number(2, values)].concat());
    [field(1, wires), field(2, &[field(1, b"a"), place].concat())].concat()
}

#[test]
fn what_a_graph_refers_to_is_checked() {
    let product = |b: u8| vec![input(0), input(1), binary(0, 1, b)];
    assert_eq!(run(&graph(1, &product(1), &about(&[0, 2], 1)), r#"{"a": 9}"#).unwrap().values()[32], 81);
    for (file, expected) in [
        (graph(1, &product(2), &about(&[0, 2], 1)), "operation 2 uses operation 2, expected an earlier one"),
        (graph(1, &product(1), &about(&[0, 3], 1)), "wire 1 is operation 3, expected one of 3"),
        (graph(1, &[input(0), input(2)], &about(&[0], 1)), "it reads the value 2 of the inputs, expected one of 2"),
        (graph(1, &[input(0), binary(20, 0, 0)], &about(&[0], 1)), "unknown operation 20 of two values"),
        (graph(1, &[input(0), field(3, &number(1, 5))], &about(&[0], 1)), "unknown operation 5 of one value"),
        (graph(1, &[input(0), field(5, &number(1, 1))], &about(&[0], 1)), "unknown operation 1 of three values"),
        (graph(1, &[input(0), field(6, &[])], &about(&[0], 1)), "unknown kind of operation 6"),
        (graph(1, &[input(0), vec![], vec![], vec![]], &about(&[0], 1)), "expected at most 2 operations"),
        (graph(1, &[input(0), vec![], input(0)], &about(&[0], 1)), "an operation is empty"),
        (graph(1, &[input(0), field(2, &field(1, &field(1, &[1; 65])))], &about(&[0], 1)), "a number has 65 bytes"),
        (graph(1, &product(1), &about(&[1], 1)), "the first value of its witness is not 1"),
        (graph(1, &product(1), &about(&[], 1)), "the first value of its witness is not 1"),
        (graph(1, &product(1), &[about(&[0], 1), about(&[0], 1)].concat()), "two inputs have one name"),
        (graph(1, &product(1), &[about(&[0], 1), vec![0x1b]].concat()), "a field has the type 3"),
    ] {
        let error = run(&file, r#"{"a": 9}"#).unwrap_err();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

#[test]
fn a_graph_names_its_field() {
    let half = vec![input(0), input(1), field(2, &field(1, &field(1, &[2]))), binary(1, 1, 2)];
    let of = |prime: &[u8]| graph(1, &half, &[about(&[0, 3], 1), field(3, &field(1, prime))].concat());
    let bls = prime(BLS12_381);
    let witness = run(&of(&bls.to_bytes_le()), r#"{"a": 1}"#).unwrap();
    assert_eq!(witness.prime(), bls.to_bytes_le());
    assert_eq!(BigUint::from_bytes_le(&witness.values()[32..]) * 2u8 % bls, BigUint::from(1u8));
    let error = run(&of(&[97]), r#"{"a": 1}"#).unwrap_err();
    assert_eq!(error, "the graph is over another field than that of bn254 or bls12-381");
}

/// The text that the second version has for its inputs.
struct Described(Vec<u8>);

impl Described {
    fn words(mut self, words: &[u32]) -> Self {
        self.0.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        self
    }
    fn name(self, name: &str) -> Self {
        let mut own = self.words(&[name.len() as u32]);
        own.0.extend(name.as_bytes());
        own
    }
    fn byte(mut self, byte: u8) -> Self {
        self.0.push(byte);
        self
    }
}

/// `p[2]` of a bus with `x` and `q`, where `q` is a bus with `y[2]`; and a number `z`.
fn buses(size: u32, inner: u32, offset: u32) -> Vec<u8> {
    let inputs = Described(vec![]).words(&[2]).name("p").words(&[10, 1, size]).byte(1).name("P");
    let inputs = inputs.name("z").words(&[16, 0]).byte(0);
    let types = inputs.words(&[2]).name("P").words(&[2]).name("x").byte(0).words(&[0, 1, 0]);
    let types = types.name("q").byte(1).words(&[inner, offset, 2, 0]);
    types.name("Q").words(&[1]).name("y").byte(0).words(&[0, 1, 1, 2]).0
}

#[test]
fn buses_are_named_by_path() {
    let nodes: Vec<_> = (0..8).map(input).collect();
    let file =
        |described: &[u8]| graph(2, &nodes, &[field(1, &[0, 1, 2, 3, 4, 5, 6, 7]), field(5, described)].concat());
    let json = r#"{"z": 7, "p": [{"x": 1, "q": {"y": [2, 3]}}, {"q": {"y": [5, 6]}, "x": 4}]}"#;
    let witness = run(&file(&buses(2, 1, 1)), json).unwrap();
    let firsts: Vec<u8> = witness.values().chunks(32).map(|value| value[0]).collect();
    assert_eq!(firsts, [1, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(run(&file(&buses(2, 1, 1)), "{}").unwrap_err(), {
        "p[0].q.y (2 values), p[0].x (1 value), p[1].q.y (2 values), p[1].x (1 value), z (1 value) are missing"
    });
    for (described, expected) in [
        (buses(2, 2, 1), "a bus holds a bus of a type that is not there"),
        // A bus that holds itself.
        (buses(2, 0, 1), "buses hold buses more than 64 deep"),
        (buses(u32::MAX, 1, 1), "more than 2^20 members of buses"),
        (buses(2, 1, 2), "the members of a bus do not follow one another"),
    ] {
        let error = run(&file(&described), json).unwrap_err();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

#[test]
fn limits_hold() {
    let limit = |file: &[u8], limits: Limits| match run_within(limits, file, INPUTS) {
        Err(Error::Limit(limit, text)) => (limit, text),
        other => panic!("{other:?}"),
    };
    let memory = |memory_bytes| limit(GRAPH, Limits { memory_bytes, ..LIMITS });
    for (bytes, what) in [(100, "the graph"), (800, "the names"), (1200, "the inputs"), (2500, "the graph's values")] {
        let (kind, text) = memory(bytes);
        assert!(kind == Limit::Memory && text.starts_with(what), "{bytes}: {text}");
    }
    let (kind, text) = limit(GRAPH, Limits { steps: 1000, ..LIMITS });
    assert!(kind == Limit::Steps && text.contains("operations took"), "{text}");
    // Divisions, each of as many steps as reach a look at the clock five times.
    let nodes: Vec<_> = [input(0), input(1)].into_iter().chain((0..100).map(|_| binary(1, 0, 1))).collect();
    let file = graph(1, &nodes, &about(&[0], 1));
    let run_for = |time, stop: bool| {
        let limits = Limits { time, ..LIMITS };
        calculate(&file, br#"{"a": 3}"#.to_vec().into(), limits, &move || stop).map(drop)
    };
    assert!(run_for(None, false).is_ok());
    assert!(matches!(run_for(Some(Duration::ZERO), false), Err(Error::Limit(Limit::Time, _))));
    assert!(matches!(run_for(None, true), Err(Error::Stopped)));
    // An input of 2^32 - 1 values takes memory only if it may.
    let place = field(2, &[number(1, 1), vec![0x10, 0xff, 0xff, 0xff, 0xff, 0x0f]].concat());
    let large = graph(1, &[input(0)], &[field(1, &[0]), field(2, &[field(1, b"b"), place].concat())].concat());
    let error = run(&large, r#"{"b": [1, 2]}"#).unwrap_err();
    assert!(error.starts_with("signal b: too few values, expected 4294967295"), "{error}");
}
