//! A calculation, and what holds of every one.
#![allow(dead_code)] // each target uses its own part

use tandem_witness::{Caller, Error, Limits, Witness};

/// The multiplier of the tests takes fewer steps.
pub const LIMITS: Limits = Limits { memory_bytes: 64 << 20, steps: 3_000_000, time: None };

/// Hears what the module logs.
pub struct Listener;

impl Caller for Listener {
    fn stop(&self) -> bool {
        false
    }
    fn log(&self, line: &str) {
        assert!(!line.contains(char::is_control));
    }
}

/// Runs the module: an error of one line, or a witness of its field that begins with 1.
pub fn calculate(wasm: &[u8], inputs: &[u8]) {
    of(tandem_witness::calculate(wasm, inputs.to_vec().into(), LIMITS, &Listener));
}

/// The witness of a calculation, if it gave one.
pub fn of(found: Result<Witness, Error>) -> Option<Witness> {
    let witness = match found {
        Ok(witness) => witness,
        Err(Error::System(why)) => panic!("{why}"),
        Err(error) => {
            assert!(!error.to_string().contains(char::is_control));
            return None;
        }
    };
    let prime = witness.prime();
    assert!(!prime.is_empty() && witness.values().len() % prime.len() == 0);
    for value in witness.values().chunks(prime.len()) {
        assert!(value.iter().rev().lt(prime.iter().rev()));
    }
    assert!(witness.values()[0] == 1 && witness.values()[1..prime.len()].iter().all(|&byte| byte == 0));
    Some(witness)
}
