//! Modules of circom's that look at the bytes of values by themselves: not recorded, or replayed rightly.

use crate::native::{put, Function, Parts};
use crate::{calculate, calculate_kept, Limits, Record, Recordings, Used};
use std::sync::Mutex;

pub(super) const MULTIPLIER: &[u8] = include_bytes!("../../tests/data/multiplier.wasm");

/// The shared element's limbs, and a place that the module does not use.
const SHARED: i32 = 1992;
pub(super) const FREE: i32 = 60_000;

#[derive(Default)]
pub(super) struct Memory {
    kept: Mutex<Vec<u8>>,
    pub(super) used: Mutex<Vec<Used>>,
}

impl Memory {
    pub(super) fn kept(&self) -> Vec<u8> {
        self.kept.lock().unwrap().clone()
    }
}

impl Recordings for Memory {
    fn find(&self, _: &[u8; 32]) -> Option<Vec<u8>> {
        Some(self.kept.lock().unwrap().clone()).filter(|kept| !kept.is_empty())
    }

    fn keep(&self, _: &[u8; 32], recording: &[u8]) {
        *self.kept.lock().unwrap() = recording.to_vec();
    }

    fn used(&self, how: Used) {
        self.used.lock().unwrap().push(how);
    }
}

/// The multiplier whose exports begin with other code.
pub(super) fn with(prefixes: &[(&str, &[u8])]) -> Vec<u8> {
    let imports = Parts::read(MULTIPLIER).unwrap().imports;
    module(MULTIPLIER, false, &|index| {
        let prefix = prefixes.iter().find(|(export, _)| number(MULTIPLIER, export) == index as u32 + imports);
        prefix.map(|(_, code)| code.to_vec())
    })
}

/// A module whose functions begin with other code, and that has a global number, if need be.
pub(super) fn module(wasm: &[u8], has_global: bool, prefix: &dyn Fn(usize) -> Option<Vec<u8>>) -> Vec<u8> {
    rewritten(wasm, has_global, |index, locals, code| [locals, &prefix(index).unwrap_or_default(), code].concat())
}

/// A module whose functions are made of their locals and their code.
fn rewritten(wasm: &[u8], has_global: bool, made: impl Fn(usize, &[u8], &[u8]) -> Vec<u8>) -> Vec<u8> {
    const EXPORTS: u8 = 7;
    let parts = Parts::read(wasm).unwrap();
    let mut out = wasm[..8].to_vec();
    for (id, range) in &parts.sections {
        let mut contents = wasm[range.clone()].to_vec();
        if *id == 10 {
            contents.clear();
            put(&mut contents, parts.bodies.len() as u32);
            for (index, body) in parts.bodies.iter().enumerate() {
                let start = body.get_operators_reader().unwrap().original_position() - body.range().start;
                let (locals, code) = body.as_bytes().split_at(start);
                let body = made(index, locals, code);
                put(&mut contents, body.len() as u32);
                contents.extend(body);
            }
        }
        if *id == EXPORTS && has_global {
            out.extend(b"\x06\x06\x01\x7f\x01\x41\0\x0b");
        }
        out.push(*id);
        put(&mut out, contents.len() as u32);
        out.extend(contents);
    }
    out
}

/// A call of one of circom's functions.
pub(super) fn calls(wasm: &[u8], function: Function, arguments: &[i32]) -> Vec<u8> {
    let parts = Parts::read(wasm).unwrap();
    let found = parts.field_functions().unwrap().1;
    let index = found.iter().position(|found| *found == Some(function)).unwrap() as u32 + parts.imports;
    call_number(index, arguments)
}

pub(super) fn call_number(index: u32, arguments: &[i32]) -> Vec<u8> {
    let mut code: Vec<u8> = arguments.iter().flat_map(|&argument| constant(argument)).collect();
    code.push(0x10);
    put(&mut code, index);
    code
}

/// The number of an export.
pub(super) fn number(wasm: &[u8], export: &str) -> u32 {
    for payload in wasmparser::Parser::new(0).parse_all(wasm) {
        if let wasmparser::Payload::ExportSection(exports) = payload.unwrap() {
            return exports.into_iter().map(Result::unwrap).find(|found| found.name == export).unwrap().index;
        }
    }
    unreachable!()
}

/// `i32.const`, for numbers of three bytes.
pub(super) fn constant(number: i32) -> Vec<u8> {
    vec![0x41, number as u8 | 0x80, (number >> 7) as u8 | 0x80, (number >> 14) as u8 & 0x7f]
}

pub(super) fn code(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

pub(super) const LOAD: &[u8] = b"\x28\x02\0";
const LOAD_BYTE: &[u8] = b"\x2d\0\0";
pub(super) const STORE: &[u8] = b"\x36\x02\0";
const STORE_BYTE: &[u8] = b"\x3a\0\0";
const ONE: &[u8] = b"\x41\x01";
const AND: &[u8] = b"\x71";

/// Records a run, and replays it on other inputs: how each was done.
pub(super) fn runs(wasm: &[u8]) -> Vec<Used> {
    let memory = Memory::default();
    for json in [r#"{"a": 3, "b": 5}"#, r#"{"a": 4, "b": 7}"#, r#"{"a": "-9", "b": "1000000000000000000000"}"#] {
        let json = json.as_bytes();
        let limits = Limits { memory_bytes: 64 << 20, ..Limits::default() };
        let expected = calculate(wasm, json.to_vec().into(), limits, &|| false).unwrap();
        let found = calculate_kept(wasm, json.to_vec().into(), limits, &|| false, &memory, Record::All).unwrap();
        assert!(found.values() == expected.values());
    }
    memory.used.into_inner().unwrap()
}

pub(super) fn refused(wasm: &[u8], why: &'static str) {
    assert_eq!(runs(wasm), [Used::Refused(why); 3]);
}

#[test]
fn what_reads_no_value_by_itself_is_recorded() {
    let recorded = [Used::Recorded, Used::Replayed, Used::Replayed];
    assert_eq!(runs(MULTIPLIER), recorded);
    // A limb is moved to where nobody looks.
    let moved = code(&[&constant(FREE), &constant(SHARED), LOAD, STORE]);
    assert_eq!(runs(&with(&[("setInputSignal", &moved)])), recorded);
    // It is read there once other bytes are in its place.
    let read = code(&[&constant(FREE), ONE, STORE, &constant(FREE + 4), &constant(FREE), LOAD, ONE, AND, STORE]);
    assert_eq!(runs(&with(&[("setInputSignal", &moved), ("getWitness", &read)])), recorded);
}

#[test]
fn what_reads_bytes_of_values_is_not() {
    const READS: &str = "its code reads bytes of a value by itself";
    // The second input becomes another if the first is odd.
    let read = code(&[&constant(FREE), &constant(SHARED), LOAD, ONE, AND, STORE]);
    refused(&with(&[("setInputSignal", &read)]), READS);
    let byte = code(&[&constant(FREE), &constant(SHARED), LOAD_BYTE, STORE]);
    refused(&with(&[("setInputSignal", &byte)]), READS);
    // Moved first, and read where it is then.
    let moved = code(&[&constant(FREE), &constant(SHARED), LOAD, STORE]);
    let later = code(&[&constant(FREE + 4), &constant(FREE), LOAD, ONE, AND, STORE]);
    refused(&with(&[("setInputSignal", &moved), ("getWitness", &later)]), READS);
    // A part of what was moved is overwritten, and the rest is read.
    let cut = code(&[&constant(FREE), ONE, STORE_BYTE, &constant(FREE + 4), &constant(FREE), LOAD, ONE, AND, STORE]);
    refused(&with(&[("setInputSignal", &moved), ("getWitness", &cut)]), READS);
    // What the field functions leave behind.
    let scratch = code(&[&constant(FREE), b"\x41\x10", LOAD, ONE, AND, STORE]);
    refused(&with(&[("getWitness", &scratch)]), READS);
}

#[test]
fn what_changes_values_or_constants_by_itself_is_not() {
    // A limb of an input.
    let change = code(&[&constant(SHARED), ONE, STORE]);
    let found = runs(&with(&[("setInputSignal", &change)]));
    assert!(matches!(found[..], [Used::Refused(_), Used::Refused(_), Used::Refused(_)]), "{found:?}");
    // The prime's bits, which shifts read.
    let constants = code(&[b"\x41\xd8\0", ONE, STORE]);
    refused(&with(&[("getWitness", &constants)]), "it writes where the field's constants are");
}

#[test]
fn what_prints_is_not() {
    // The import writeBufferMessage, whose number is 2.
    refused(&with(&[("getWitness", b"\x10\x02")]), "it prints");
    // The import printErrorMessage.
    refused(&with(&[("getWitness", b"\x10\x01")]), "what it asserts does not hold");
}

/// A limb of a wire's value that does not belong to it.
#[test]
fn wires_are_whole_values() {
    let moved = code(&[&constant(FREE), &constant(SHARED), LOAD, STORE]);
    // readSharedRWMemory's element is put together after the last getWitness: of the one before.
    let mixed = code(&[&constant(SHARED + 4), &constant(FREE), LOAD, STORE]);
    let found = runs(&with(&[("setInputSignal", &moved), ("getWitness", &mixed)]));
    // getWitness copies a whole element over it.
    assert_eq!(found, [Used::Recorded, Used::Replayed, Used::Replayed]);
}

/// Without the parts that are known as a whole nothing is recorded, for inputs would be guarded, or not be seen.
#[test]
fn modules_that_set_inputs_in_another_way_are_not() {
    const UNKNOWN: &str = "it is no module of circom's that is known";
    let nop = &b"\x01"[..];
    for export in ["readSharedRWMemory", "writeSharedRWMemory"] {
        refused(&with(&[(export, nop)]), UNKNOWN);
    }
    // The number of an input is used outside of the idiom, whose local it is.
    refused(&with(&[("setInputSignal", b"\x20\x07\x1a")]), UNKNOWN);
    assert_eq!(runs(&with(&[("setInputSignal", nop)])), [Used::Recorded, Used::Replayed, Used::Replayed]);
}

/// What the module's own code makes invalid is not valid where the host does it.
#[test]
fn invalid_modules_stay_so() {
    // A load of 32 bits with a store of 64, a store that is aligned too far, and a load.
    let (from, to) = (constant(SHARED), constant(FREE));
    let mixed = code(&[&to, &from, LOAD, b"\x3e\x02\0"]);
    let store = code(&[&to, ONE, b"\x36\x03\0"]);
    let load = code(&[&to, &from, b"\x28\x03\0", STORE]);
    for wrong in [mixed, store, load] {
        invalid(&with(&[("getWitness", &wrong)]));
    }
    // The idiom's local is a number of 64 bits, and its `if` gives one of 32.
    let parts = Parts::read(MULTIPLIER).unwrap();
    let (own, parameters) = ((number(MULTIPLIER, "setInputSignal") - parts.imports) as usize, 3);
    let with_type = |ty: u8| {
        rewritten(MULTIPLIER, false, |index, locals, code| {
            if index != own {
                return [locals, code].concat();
            }
            // One group, of 32 bits: the last before the idiom's, its own, and the rest.
            assert_eq!((locals[0], locals[2]), (1, 0x7f));
            let before = 7 - parameters;
            [&[3, before, 0x7f, 1, ty, locals[1] - before - 1, 0x7f], code].concat()
        })
    };
    assert_eq!(runs(&with_type(0x7f)), [Used::Recorded, Used::Replayed, Used::Replayed]);
    invalid(&with_type(0x7e));
    let body = &parts.bodies[own];
    let decides = body.as_bytes().windows(2).rposition(|bytes| bytes == [0x04, 0x40]).unwrap();
    let all: Vec<usize> = (0..=decides).filter(|&i| body.as_bytes()[i..i + 2] == [0x04, 0x40]).collect();
    for at in all {
        let mut wasm = MULTIPLIER.to_vec();
        wasm[body.range().start + at + 1] = 0x7f;
        invalid(&wasm);
    }
}

/// It is refused, recorded or not, in the same words.
fn invalid(wasm: &[u8]) {
    let json = || br#"{"a": 3, "b": 5}"#.to_vec().into();
    let expected = calculate(wasm, json(), Limits::default(), &|| false).unwrap_err().to_string();
    let memory = Memory::default();
    let found = calculate_kept(wasm, json(), Limits::default(), &|| false, &memory, Record::All);
    assert_eq!(found.unwrap_err().to_string(), expected);
    assert!(memory.used.into_inner().unwrap().is_empty());
}

/// Of a program that takes many steps no recording is made by default, and that is remembered.
#[test]
fn long_runs_are_left_and_remembered() {
    // A local counts to 3,000,000.
    let counts = b"\x03\x40\x20\x03\x41\x01\x6a\x22\x03\x41\xc0\x8d\xb7\x01\x49\x0d\0\x0b";
    let wasm = with(&[("setInputSignal", counts)]);
    let memory = Memory::default();
    let timed = Limits { time: Some(std::time::Duration::from_secs(600)), ..Limits::default() };
    let with = |which, limits, kept: &[u8]| {
        let json = br#"{"a": 3, "b": 5}"#.to_vec();
        calculate_kept(&wasm, json.into(), limits, &|| false, &memory, which).unwrap();
        assert!(memory.kept.lock().unwrap().starts_with(kept));
    };
    let run = |which, kept| with(which, Limits::default(), kept);
    run(Record::Unbranched, b"long");
    run(Record::Unbranched, b"again");
    with(Record::Unbranched, timed, b"again");
    const MANY: Used = Used::Refused("it takes many steps");
    assert_eq!(*memory.used.lock().unwrap(), [MANY]);
    run(Record::Unbranched, b"tandem");
    run(Record::Unbranched, b"tandem");
    assert_eq!(*memory.used.lock().unwrap(), [MANY, Used::Recorded, Used::Replayed]);
    // Where nothing comes of the third run, the fourth is not recorded.
    for kept in [&b"again"[..], b"late"] {
        *memory.kept.lock().unwrap() = kept.to_vec();
        memory.used.lock().unwrap().clear();
        let little = Limits { memory_bytes: 3 << 20, ..Limits::default() };
        with(Record::Unbranched, little, b"late");
        let tried = [Used::Refused("there is too little memory for it")];
        assert_eq!(*memory.used.lock().unwrap(), tried[usize::from(kept == b"late")..]);
    }
    // By --recordings all it is.
    run(Record::All, b"tandem");
    *memory.kept.lock().unwrap() = b"long".to_vec();
    run(Record::All, b"tandem");
    // The time that is told is that of the limit, and not what was left for another run.
    let limits = Limits { time: Some(std::time::Duration::from_millis(5)), ..Limits::default() };
    let json = br#"{"a": 3, "b": 5}"#.to_vec();
    let error = calculate_kept(&wasm, json.into(), limits, &|| false, &Memory::default(), Record::All).unwrap_err();
    assert!(error.to_string().ends_with("was stopped after 0.005 s"), "{error}");
}

/// Nothing, or the end of the run, if what was put on the stack is not 0.
const TRAP_IF: &[u8] = b"\x04\x40\0\x0b";

/// The host does what the module would: it copies forward, moves no more bytes than were moved, and ends where they lie outside.
#[test]
fn accesses_are_the_modules_own() {
    let recorded = [Used::Recorded, Used::Replayed, Used::Replayed];
    let set = |at: i32| code(&[&constant(at), ONE, STORE]);
    let parts = Parts::read(MULTIPLIER).unwrap();
    let copy = (0..parts.bodies.len()).find(|&index| parts.is_copy(index)).unwrap() as u32 + parts.imports;
    let mut call = vec![0x10];
    put(&mut call, copy);
    // Words of 64 bits 0 1 0 0 ..., copied by one word: all become 0.
    let forward =
        code(&[&set(FREE + 8), &constant(FREE + 8), &constant(FREE), &call, &constant(FREE + 16), LOAD, TRAP_IF]);
    assert_eq!(runs(&with(&[("getWitness", &forward)])), recorded);
    // A load of 64 bits, of which 32 are stored, leaves those behind.
    let low = code(&[&set(FREE + 4), &constant(FREE), &constant(FREE + 16), b"\x29\x03\0", b"\x3e\x02\0"]);
    let kept = code(&[&low, &constant(FREE + 4), LOAD, b"\x45", TRAP_IF]);
    assert_eq!(runs(&with(&[("getWitness", &kept)])), recorded);
    for outside in
        [code(&[&constant(FREE), b"\x41\x7c", LOAD, STORE]), code(&[b"\x41\x7c", &constant(FREE), LOAD, STORE])]
    {
        let wasm = with(&[("getWitness", &outside)]);
        let json = || br#"{"a": 3, "b": 5}"#.to_vec().into();
        let expected = calculate(&wasm, json(), Limits::default(), &|| false).unwrap_err().to_string();
        let found = calculate_kept(&wasm, json(), Limits::default(), &|| false, &Memory::default(), Record::All);
        assert_eq!(found.unwrap_err().to_string(), expected);
    }
}

/// A memory that grows is watched where it has grown, and what watching takes is counted.
#[test]
fn memory_is_watched_and_counted() {
    // One page more, to which a limb is moved.
    const BYTES: usize = 11 << 16;
    let grown = code(&[ONE, b"\x40\0\x1a", &constant(BYTES as i32), &constant(SHARED), LOAD, STORE]);
    assert_eq!(runs(&with(&[("setInputSignal", &grown)])), [Used::Recorded, Used::Replayed, Used::Replayed]);
    let read = code(&[&constant(FREE), &constant(BYTES as i32), LOAD, ONE, AND, STORE]);
    let wasm = with(&[("setInputSignal", &grown), ("getWitness", &read)]);
    refused(&wasm, "its code reads bytes of a value by itself");
    let least = |is_enough: &dyn Fn(Limits) -> bool| {
        let mut sizes = (1..1024).map(|i| Limits { memory_bytes: i << 16, ..Limits::default() });
        sizes.find(|&limits| is_enough(limits)).unwrap().memory_bytes
    };
    let json = || br#"{"a": 3, "b": 5}"#.to_vec().into();
    let plain = least(&|limits| calculate(MULTIPLIER, json(), limits, &|| false).is_ok());
    let recorded = least(&|limits| {
        let memory = Memory::default();
        _ = calculate_kept(MULTIPLIER, json(), limits, &|| false, &memory, Record::All);
        let is_recorded = memory.used.lock().unwrap().contains(&Used::Recorded);
        is_recorded
    });
    assert!(recorded > plain + 2 * BYTES, "{recorded} {plain}");
}

/// What is recorded takes memory, and so does watching what a memory has grown by: where there is too little, the module runs alone.
#[test]
fn recorded_steps_and_grown_memory_are_counted() {
    const ELEMENT: i32 = SHARED - 8;
    let how = |wasm: &[u8], memory_bytes| {
        let memory = Memory::default();
        let limits = Limits { memory_bytes, ..Limits::default() };
        let json = br#"{"a": 3, "b": 5}"#.to_vec();
        calculate_kept(wasm, json.into(), limits, &|| false, &memory, Record::All).unwrap();
        let used = memory.used.into_inner().unwrap();
        used[0]
    };
    const TOO_LITTLE: Used = Used::Refused("there is too little memory for it");
    // The input is squared again and again, until a local has counted so far.
    let squares = |count: u32| {
        let long = code(&[&constant(ELEMENT + 4), b"\x41\x80\x80\x80\x80\x78", STORE]);
        let first = [long, calls(MULTIPLIER, Function::Mul, &[FREE, ELEMENT, ELEMENT])].concat();
        let next = calls(MULTIPLIER, Function::Mul, &[FREE, FREE, FREE]);
        let wasm = code(&[
            &first,
            b"\x03\x40",
            &next,
            b"\x20\x03\x41\x01\x6a\x22\x03",
            &constant(count as i32),
            b"\x49\x0d\0\x0b",
        ]);
        with(&[("setInputSignal", &wasm)])
    };
    // Of 64 bytes a step.
    assert_eq!(how(&squares(1000), 12 << 20), Used::Recorded);
    assert_eq!(how(&squares(200_000), 12 << 20), TOO_LITTLE);
    assert_eq!(how(&squares(200_000), 64 << 20), Used::Recorded);
    // Pages for each input, of which each is watched with twice as many bytes.
    let grown = |pages: u8| with(&[("setInputSignal", &code(&[b"\x41", &[pages], b"\x40\0\x1a"]))]);
    assert_eq!(how(&grown(1), 12 << 20), Used::Recorded);
    assert_eq!(how(&grown(50), 12 << 20), TOO_LITTLE);
    assert_eq!(how(&grown(50), 32 << 20), Used::Recorded);
}

/// Each byte of the idiom that stores an input counts: with another the module is not recorded, or still gives what it gives.
#[test]
fn altered_idioms_give_what_the_module_gives() {
    let parts = Parts::read(MULTIPLIER).unwrap();
    let body = &parts.bodies[(number(MULTIPLIER, "setInputSignal") - parts.imports) as usize];
    let shared = [&[0x41][..], &[0xc0, 0x0f, 0x10]].concat();
    let at = body.as_bytes().windows(4).position(|bytes| bytes == shared).unwrap() + body.range().start - 2;
    let limits = Limits { memory_bytes: 64 << 20, steps: 10_000_000, time: None };
    let mut recorded = 0;
    for i in at..at + 90 {
        let mut wasm = MULTIPLIER.to_vec();
        wasm[i] ^= 1;
        let memory = Memory::default();
        for json in [r#"{"a": 3, "b": 5}"#, r#"{"a": 5000000000, "b": "-1"}"#] {
            let json = || json.as_bytes().to_vec().into();
            let shown = |found: crate::Result<crate::Witness>| {
                found.map(|witness| witness.values().to_vec()).map_err(|e| e.to_string())
            };
            let expected = shown(calculate(&wasm, json(), limits, &|| false));
            assert_eq!(shown(calculate_kept(&wasm, json(), limits, &|| false, &memory, Record::All)), expected, "{i}");
        }
        recorded += usize::from(memory.used.lock().unwrap().contains(&Used::Recorded));
    }
    assert!(recorded < 20, "{recorded}");
}
