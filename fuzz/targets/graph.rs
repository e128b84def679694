//! A graph of circom-witnesscalc: refused, or a witness of the field that it names.
#![no_main]

#[path = "support/calculate.rs"]
mod support;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| support::calculate(bytes, br#"{"a": 7, "b": [3, -5]}"#));
