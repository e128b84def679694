//! circom's own code is the measure.

use super::recognise::Parts;
use super::Function;

fn read(path: &str) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

#[test]
#[ignore]
fn print() {
    for path in std::env::var("MODULES").unwrap().split(' ') {
        let wasm = read(path);
        let parts = Parts::read(&wasm).unwrap();
        let hashes = parts.hashes();
        for payload in wasmparser::Parser::new(0).parse_all(&wasm) {
            let wasmparser::Payload::CustomSection(custom) = payload.unwrap() else { continue };
            let wasmparser::KnownCustom::Name(names) = custom.as_known() else { continue };
            for name in names {
                let wasmparser::Name::Function(names) = name.unwrap() else { continue };
                for name in names {
                    let name = name.unwrap();
                    if let Some(f) = Function::ALL.iter().find(|f| f.name() == name.name) {
                        let hash = hashes[name.index as usize - parts.imports as usize];
                        println!("    (Function::{f:?}, \"{}\"),", hash.map_or("none".into(), |h| h.to_hex().to_string()));
                    }
                }
            }
        }
        println!("== {path}");
    }
}
