//! Any bytes behind the header of a recording that is kept, with the right hash: refused, or a witness of the program's field. Such a file
//! is trusted to be our own, and whatever it holds no access goes astray.
#![no_main]

#[path = "support/calculate.rs"]
mod support;

use libfuzzer_sys::fuzz_target;
use std::sync::{LazyLock, Mutex};
use tandem_witness::{calculate_kept, Limits, Record, Recordings};

const PROGRAM: &[u8] = include_bytes!("../../crates/witness/tests/data/operations.wasm");
const INPUTS: &[u8] = br#"{"a": 7, "b": [3, -5]}"#;

/// A name and the program's hash.
const HEADER_BYTES: usize = 16 + 32;
const HASH_BYTES: usize = 32;

/// A recording of the program.
static WHOLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let memory = Memory::default();
    support::of(calculate_kept(
        PROGRAM,
        INPUTS.to_vec().into(),
        support::LIMITS,
        &support::Listener,
        &memory,
        Record::All,
    ));
    memory.0.into_inner().expect("no other thread")
});

#[derive(Default)]
struct Memory(Mutex<Vec<u8>>);

impl Recordings for Memory {
    fn find(&self, _: &[u8; 32]) -> Option<Vec<u8>> {
        Some(self.0.lock().expect("no other thread").clone()).filter(|kept| !kept.is_empty())
    }

    fn keep(&self, _: &[u8; 32], recording: &[u8]) {
        *self.0.lock().expect("no other thread") = recording.to_vec();
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut kept = [&WHOLE[..HEADER_BYTES], bytes].concat();
    let is_own = kept == WHOLE[..WHOLE.len() - HASH_BYTES];
    kept.extend(blake3::hash(&kept).as_bytes());
    let memory = Memory(Mutex::new(kept));
    // Enough for a replay, and too little for the program, whose run would take most of the time.
    let limits = Limits { memory_bytes: 1 << 20, ..support::LIMITS };
    let found = calculate_kept(PROGRAM, INPUTS.to_vec().into(), limits, &support::Listener, &memory, Record::All);
    let witness = support::of(found);
    if is_own {
        let own = tandem_witness::calculate(PROGRAM, INPUTS.to_vec().into(), support::LIMITS, &support::Listener);
        assert!(witness.expect("a replay").values() == own.expect("a run").values());
    }
});
