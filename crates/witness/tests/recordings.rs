//! A run that is recorded, and replayed on other inputs: the module's own witness, byte for byte.

mod support;

use std::sync::Mutex;
use support::{LIMITS, MULTIPLIER};
use tandem_witness::{calculate, calculate_kept, Recordings, Witness};

const OTHER_PRIME: &[u8] = include_bytes!("data/multiplier_bls12381.wasm");
const OPERATIONS: &[u8] = include_bytes!("data/operations.wasm");

/// What is kept, in memory.
#[derive(Default)]
struct Memory {
    kept: Mutex<Option<Vec<u8>>>,
    refused: Mutex<Option<String>>,
}

impl Recordings for Memory {
    fn find(&self, _: &blake3::Hash) -> Option<Vec<u8>> {
        self.kept.lock().unwrap().clone()
    }

    fn keep(&self, _: &blake3::Hash, recording: &[u8]) {
        *self.kept.lock().unwrap() = Some(recording.to_vec());
    }

    fn refused(&self, why: &str) {
        *self.refused.lock().unwrap() = Some(why.into());
    }
}

impl Memory {
    fn run(&self, wasm: &[u8], json: &str) -> Result<Witness, String> {
        calculate_kept(wasm, json.as_bytes().to_vec().into(), LIMITS, &|| false, self).map_err(|e| e.to_string())
    }
}

fn own(wasm: &[u8], json: &str) -> Result<Witness, String> {
    calculate(wasm, json.as_bytes().to_vec().into(), LIMITS, &|| false).map_err(|e| e.to_string())
}

/// Random numbers of many lengths and both signs, always the same.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 ^ self.0 >> 29
    }

    fn number(&mut self) -> String {
        let digits = match self.next() % 4 {
            0 => return format!("\"{}\"", self.next() % 4),
            1 => self.next() % 10,
            2 => self.next() % 20,
            _ => self.next() % 76,
        };
        let digits: String = (0..=digits).map(|_| char::from(b'0' + (self.next() % 10) as u8)).collect();
        format!("\"{}{digits}\"", if self.next() % 3 == 0 { "-" } else { "" })
    }
}

#[test]
fn time() {
    let (Ok(wasm), Ok(json)) = (std::env::var("WASM"), std::env::var("JSON")) else { return };
    let (wasm, json) = (std::fs::read(wasm).unwrap(), std::fs::read(json).unwrap());
    let limits = tandem_witness::Limits::default();
    let memory = Memory::default();
    let t = std::time::Instant::now();
    let a = calculate(&wasm, json.clone().into(), limits, &|| false).unwrap();
    println!("module {:?}", t.elapsed());
    for _ in 0..3 {
        let t = std::time::Instant::now();
        let b = calculate_kept(&wasm, json.clone().into(), limits, &|| false, &memory).unwrap();
        println!("kept {:?} {:?} {:?}", t.elapsed(), memory.refused.lock().unwrap(), memory.kept.lock().unwrap().as_ref().map(|k| k.len()));
        assert!(a.values() == b.values());
    }
}

#[test]
fn replays_are_the_modules_own() {
    for wasm in [MULTIPLIER, OTHER_PRIME] {
        let memory = Memory::default();
        let mut random = Random(7);
        for _ in 0..60 {
            let json = format!(r#"{{"a": {}, "b": {}}}"#, random.number(), random.number());
            let (found, expected) = (memory.run(wasm, &json).unwrap(), own(wasm, &json).unwrap());
            assert!(found.values() == expected.values() && found.prime() == expected.prime(), "{json}");
        }
        assert_eq!(*memory.refused.lock().unwrap(), None);
        assert!(memory.kept.lock().unwrap().is_some());
    }
    let memory = Memory::default();
    let mut random = Random(8);
    for _ in 0..200 {
        let json = format!(r#"{{"a": {}, "b": [{}, {}]}}"#, random.number(), random.number(), random.number());
        let (found, expected) = (memory.run(OPERATIONS, &json).unwrap(), own(OPERATIONS, &json).unwrap());
        assert!(found.values() == expected.values(), "{json}");
    }
    assert_eq!(*memory.refused.lock().unwrap(), None);
}
