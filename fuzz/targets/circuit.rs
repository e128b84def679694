//! A circuit's inputs, if the text is an object, or else its WebAssembly: refused, or a witness of the field that it names.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tandem_witness::{calculate, Inputs, Limits};

const MULTIPLIER: &[u8] = include_bytes!("../../crates/witness/tests/data/multiplier.wasm");
const INPUTS: &[u8] = include_bytes!("../../crates/witness/tests/data/multiplier.json");
/// The multiplier takes fewer steps.
const LIMITS: Limits = Limits { memory_bytes: 64 << 20, steps: 3_000_000 };

fuzz_target!(|bytes: &[u8]| {
    let (inputs, wasm) = if bytes.starts_with(b"{") { (bytes, MULTIPLIER) } else { (INPUTS, bytes) };
    let witness = match Inputs::from_json(inputs).and_then(|inputs| calculate(wasm, &inputs, LIMITS)) {
        Ok(witness) => witness,
        Err(error) => return assert!(!error.to_string().contains(char::is_control)),
    };
    let prime = witness.prime();
    assert!(!prime.is_empty() && witness.values().len() % prime.len() == 0);
    for value in witness.values().chunks(prime.len()) {
        assert!(value.iter().rev().lt(prime.iter().rev()));
    }
});
