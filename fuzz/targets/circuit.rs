//! A circuit's inputs, if the text is an object, or else its WebAssembly: refused, or a witness of the field that it names.
#![no_main]

#[path = "support/calculate.rs"]
mod support;

use libfuzzer_sys::fuzz_target;

const MULTIPLIER: &[u8] = include_bytes!("../../crates/witness/tests/data/multiplier.wasm");
const INPUTS: &[u8] = include_bytes!("../../crates/witness/tests/data/multiplier.json");

fuzz_target!(|bytes: &[u8]| {
    let (inputs, wasm) = if bytes.starts_with(b"{") { (bytes, MULTIPLIER) } else { (INPUTS, bytes) };
    support::calculate(wasm, inputs);
});
