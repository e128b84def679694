//! A circuit of circom, and modules that pretend to be one.
#![allow(dead_code)] // each test program uses its own part

use tandem_witness::{calculate, Error, Limits, Witness};
use zeroize::Zeroizing;

/// `c <== a * b` (tests/e2e/circuits/multiplier.circom), compiled by circom 2.2.3 for BN254.
pub(crate) const MULTIPLIER: &[u8] = include_bytes!("../data/multiplier.wasm");

/// What tests allow.
pub(crate) const LIMITS: Limits = Limits { memory_bytes: 64 << 20, steps: 10_000_000, time: None };

/// Runs a module within limits.
pub(crate) fn run_within(limits: Limits, wasm: &[u8], json: &str) -> Result<Witness, Error> {
    calculate(wasm, Zeroizing::new(json.into()), limits, &|| false)
}

/// Runs a module; gives the message of an error.
pub(crate) fn run(wasm: &[u8], json: &str) -> Result<Witness, String> {
    run_within(LIMITS, wasm, json).map_err(|e| e.to_string())
}

/// The fake's getMessageChar.
pub(crate) const CHAR: &str = "(func $char (export \"getMessageChar\") (result i32) (i32.const 0))";

/// The fake with another `init`.
pub(crate) fn with_init(code: &str) -> Vec<u8> {
    fake(&[("(func (export \"init\") (param i32))", &format!("(func $i (export \"init\") (param i32) {code})"))])
}

/// A module with the exports of a circuit with one wire; parts can be replaced.
pub(crate) fn fake(replace: &[(&str, &str)]) -> Vec<u8> {
    let mut text = r#"(module
        (import "runtime" "exceptionHandler" (func $exception (param i32)))
        (import "runtime" "printErrorMessage" (func $print))
        (import "runtime" "writeBufferMessage" (func $write))
        (import "runtime" "showSharedRWMemory" (func $show))
        (memory (export "memory") 1)
        (func $char (export "getMessageChar") (result i32) (i32.const 0))
        (func (export "getVersion") (result i32) (i32.const 2))
        (func (export "getFieldNumLen32") (result i32) (i32.const 1))
        (func (export "getRawPrime") (i32.store (i32.const 0) (i32.const 97)))
        (func (export "writeSharedRWMemory") (param i32 i32))
        (func (export "readSharedRWMemory") (param i32) (result i32) (i32.load (i32.const 0)))
        (func (export "init") (param i32))
        (func (export "getInputSignalSize") (param i32 i32) (result i32) (i32.const 1))
        (func (export "getInputSize") (result i32) (i32.const 0))
        (func (export "setInputSignal") (param i32 i32 i32))
        (func (export "getWitnessSize") (result i32) (i32.const 1))
        (func (export "getWitness") (param i32) (i32.store (i32.const 0) (i32.const 1))))"#
        .to_string();
    for (from, to) in replace {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    wat::parse_str(text).unwrap()
}
