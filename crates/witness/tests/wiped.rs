//! Nothing of the inputs is left in the process after a calculation, however it ended.

mod support;

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use support::{fake, run_within, LIMITS, MULTIPLIER};
use tandem_witness::Limits;

/// How often the bytes, each changed by `mask`, lie in the writable memory of this process.
fn occurrences(masked: &[u8], mask: u8) -> usize {
    let mut maps = String::new();
    File::open("/proc/self/maps").unwrap().read_to_string(&mut maps).unwrap();
    let mut memory = File::open("/proc/self/mem").unwrap();
    // One buffer for all, which is overwritten at once.
    let mut buffer = vec![0u8; 1 << 20];
    let mut found = 0;
    for line in maps.lines().filter(|line| line.contains(" rw-p ") || line.contains(" rw-s ")) {
        let (from, rest) = line.split_once('-').unwrap();
        let to = rest.split(' ').next().unwrap();
        let (mut from, to) = (u64::from_str_radix(from, 16).unwrap(), u64::from_str_radix(to, 16).unwrap());
        let own = buffer.as_ptr() as u64..buffer.as_ptr() as u64 + buffer.len() as u64;
        while from < to {
            let length = (to - from).min(buffer.len() as u64) as usize;
            if memory.seek(SeekFrom::Start(from)).is_err() || memory.read_exact(&mut buffer[..length]).is_err() {
                break;
            }
            let starts = 0..(length + 1).saturating_sub(masked.len());
            found += starts
                .filter(|&start| {
                    let bytes = &buffer[start..start + masked.len()];
                    bytes[0] == masked[0] ^ mask
                        && !own.contains(&(from + start as u64))
                        && bytes.iter().zip(masked).all(|(byte, masked)| *byte == masked ^ mask)
                })
                .count();
            // The next piece begins early enough for what lies across.
            from += if from + (length as u64) < to { (length - masked.len()) as u64 } else { length as u64 };
        }
        buffer.fill(0);
    }
    found
}

const MASK: u8 = 0x5a;

/// The low limbs of the secret, 8957380567153255911, masked.
const SECRET: u64 = 8_957_380_567_153_255_911 ^ 0x5a5a_5a5a_5a5a_5a5a;
const DIGITS: [u8; 19] = [8, 9, 5, 7, 3, 8, 0, 5, 6, 7, 1, 5, 3, 2, 5, 5, 9, 1, 1];

/// The low limb of the secret as graphs compute with it, times 2^256 modulo BN254's prime, masked.
const MONTGOMERY: u64 = 13_081_583_223_521_837_217;

/// See operations.circom.
const GRAPH: &[u8] = include_bytes!("data/operations.graph");

/// Builds the JSON around a secret that is in no other place of this process as it is.
fn json(digits: &[u8], before: &str, after: &str) -> String {
    let mut json = String::with_capacity(4096);
    json.push_str(before);
    digits.iter().for_each(|digit| json.push((digit ^ MASK) as char));
    json.push_str(after);
    json
}

/// Where a library calls another for the first time, the loader saves all vector registers on the stack, and with them what was copied
/// last. So the test runs in a process of its own whose libraries are bound before it begins.
#[test]
fn no_secret_stays() {
    const BOUND: &str = "LD_BIND_NOW";
    if std::env::var_os(BOUND).is_none() {
        let mut own = std::process::Command::new(std::env::current_exe().unwrap());
        let output = own.args(["--exact", "no_secret_stays", "--nocapture"]).env(BOUND, "1").output().unwrap();
        let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        assert!(output.status.success() && said[0].contains("1 passed"), "{said:?}");
        return;
    }
    // Its decimal digits, and its limbs as they lie in the module and on the interpreter's stack.
    let low = SECRET.to_le_bytes().to_vec();
    let zeros = [MASK; 4];
    let limbs = [[&low[..4], &zeros].concat(), [&low[4..], &zeros].concat()];
    let digits: Vec<u8> = DIGITS.iter().map(|digit| b'0' + digit).map(|digit| digit ^ MASK).collect();
    let patterns = [&digits, &low, &limbs[0], &limbs[1], &MONTGOMERY.to_le_bytes().to_vec()];
    let clean = |what: &str, inputs: String, module: &[u8], limits: Limits, expected: &str| {
        let ended = run_within(limits, module, &inputs);
        drop(zeroize::Zeroizing::new(inputs));
        match &ended {
            Ok(_) => {
                assert_eq!(expected, "", "{what}");
                assert!(occurrences(&low, MASK) > 0, "the witness has it while it is there");
            }
            Err(error) => assert!(!expected.is_empty() && error.to_string().contains(expected), "{what}: {error}"),
        }
        drop(ended);
        for (pattern, kind) in
            patterns.into_iter().zip(["digits", "limbs", "low limb", "high limb", "as graphs have it"])
        {
            assert_eq!(occurrences(pattern, MASK), 0, "{what}: {kind} left behind");
        }
    };
    let good = || json(&digits, "{\"a\": \"", "\", \"b\": 3}");
    clean("a witness", good(), MULTIPLIER, LIMITS, "");
    clean("a wrong name", json(&digits, "{\"a\": \"", "\", \"c\": 3}"), MULTIPLIER, LIMITS, "signal c is not");
    clean("a wrong value", json(&digits, "{\"a\": \"", "x\", \"b\": 3}"), MULTIPLIER, LIMITS, "signal a: value 0");
    clean("a cut text", json(&digits, "{\"a\": \"", "\", \"b\": "), MULTIPLIER, LIMITS, "not JSON");
    clean("no more steps", good(), MULTIPLIER, Limits { steps: 2_000, ..LIMITS }, "was stopped after");
    let of_graph = || json(&digits, "{\"a\": \"", "\", \"b\": [3, 5]}");
    clean("of a graph", of_graph(), GRAPH, LIMITS, "");
    clean("no more steps of a graph", of_graph(), GRAPH, Limits { steps: 2_000, ..LIMITS }, "operations took");
    // The fake keeps what it is given in its memory and on the interpreter's stack, deep down, and then ends in another way.
    let write = "(func (export \"writeSharedRWMemory\") (param i32 i32))";
    let limbs_of = "\"getFieldNumLen32\") (result i32) (i32.const 1)";
    let prime = "(i32.store (i32.const 0) (i32.const 97))";
    let read = "(param i32) (result i32) (i32.load (i32.const 0))";
    let character = |served: &str| {
        format!(
            "(func $kept (param i32 i64) (local i64 i64 i64 i64)
               (if (local.get 0) (then (call $kept (i32.sub (local.get 0) (i32.const 1)) (local.get 1)))))
             (func $char (export \"getMessageChar\") (result i32) {served} (i32.const 0))"
        )
    };
    // What an import asks for runs on a second stack, and may keep there what it finds in the memory.
    let again = "(call $write)";
    let keep = "(call $kept (i32.const 500) (i64.load (i32.const 4096)))";
    for (end, served, expected) in [
        ("unreachable", again, "the circuit's program failed"),
        ("(call $exception (i32.const 4))", again, "an assertion failed"),
        ("(loop (br 0))", again, "was stopped after"),
        ("(drop (memory.grow (i32.const 2000)))", again, "of memory"),
        ("(call $write)", again, "it calls itself"),
        ("(call $write) unreachable", keep, "the circuit's program failed"),
    ] {
        let deep = format!(
            "(func $deep (param i32 i64) (local i64 i64 i64 i64 i64 i64 i64 i64)
               (if (local.get 0) (then (call $deep (i32.sub (local.get 0) (i32.const 1)) (local.get 1))) (else {end})))
             (func (export \"writeSharedRWMemory\") (param i32 i32)
               (i32.store (i32.add (i32.const 4096) (i32.shl (local.get 0) (i32.const 2))) (local.get 1))
               (if (local.get 0) (then (call $deep (i32.const 500) (i64.extend_i32_u (local.get 1))))))"
        );
        let module = fake(&[
            (write, &deep),
            (limbs_of, "\"getFieldNumLen32\") (result i32) (i32.const 2)"),
            (prime, "(i64.store (i32.const 0) (i64.const 0xfffffffffffffff1))"),
            (read, "(param i32) (result i32) (i32.load (i32.shl (local.get 0) (i32.const 2)))"),
            (support::CHAR, &character(served)),
            ("(func (export \"getInputSize\") (result i32) (i32.const 0))", ""),
        ]);
        clean(end, json(&digits, "{\"a\": \"", "\"}"), &module, LIMITS, expected);
    }
}
