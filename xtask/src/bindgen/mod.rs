//! Rust bindings of the native headers.
//!
//! A header is written in a small, strict subset of C ([`parse`]), so that no C compiler is needed to read it. For
//! each crate with native code two files are made of it ([`emit`]) and committed: `src/ffi.rs`, the declarations, and
//! `native/src/layout.cu`, where nvcc checks the sizes and offsets that the Rust side asserts too.

mod emit;
mod macros;
mod parse;

use std::path::Path;

/// A header and the crate it belongs to.
struct Unit {
    /// Folder of the crate.
    krate: &'static str,
    /// Name of the header in `native/include`.
    header: &'static str,
    /// Headers of the same folder that it includes; what they declare comes behind its own.
    parts: &'static [&'static str],
    /// Where the Rust side finds the types of headers that this one includes.
    imports: &'static [Import],
}

/// A header of another crate.
struct Import {
    header: &'static str,
    krate: &'static str,
    /// Its bindings as a Rust path.
    path: &'static str,
}

const CUDA: Import = Import { header: "tandem_cuda.h", krate: "crates/cuda", path: "tandem_cuda::ffi" };
const FABRIC: Import = Import { header: "tandem_fabric.h", krate: "crates/fabric", path: "tandem_fabric::ffi" };
/// Imports stand in the order in which they include each other.
const UNITS: [Unit; 4] = [
    Unit { krate: CUDA.krate, header: CUDA.header, parts: &[], imports: &[] },
    Unit { krate: FABRIC.krate, header: FABRIC.header, parts: &[], imports: &[CUDA] },
    Unit { krate: "crates/fabric-examples", header: "tandem_fabric_examples.h", parts: &[], imports: &[CUDA, FABRIC] },
    Unit {
        krate: "crates/ops-cuda",
        header: "tandem_ops.h",
        parts: &["tandem_ops_ntt_small.h", "tandem_ops_sort.h", "tandem_ops_sumcheck.h"],
        imports: &[CUDA],
    },
];

/// Makes the files, or says which are not what they should be.
pub(crate) fn run(root: &Path, check: bool) -> Result<(), String> {
    let mut differing = Vec::new();
    for unit in &UNITS {
        for (path, text) in generate(root, unit)? {
            let path = format!("{}/{path}", unit.krate);
            let full = root.join(&path);
            if std::fs::read_to_string(&full).is_ok_and(|now| now == text) {
                continue;
            }
            if check {
                differing.push(path);
            } else {
                std::fs::write(&full, text).map_err(|e| format!("{path}: {e}"))?;
                println!("wrote {path}");
            }
        }
    }
    if differing.is_empty() {
        return Ok(());
    }
    Err(format!("not what the headers say: {}; run `cargo xtask bindgen`", differing.join(", ")))
}

/// The files of one crate, by their paths in it.
fn generate(root: &Path, unit: &Unit) -> Result<[(&'static str, String); 2], String> {
    let read = |krate: &str, header: &str| {
        let path = format!("{krate}/native/include/{header}");
        std::fs::read_to_string(root.join(&path)).map(|text| (path.clone(), text)).map_err(|e| format!("{path}: {e}"))
    };
    let mut known = parse::Types::default();
    for import in unit.imports {
        let (path, text) = read(import.krate, import.header)?;
        let header = parse::header(&text, &known).map_err(|e| format!("{path}:{e}"))?;
        known.add(&header, import.path, import.header);
    }
    let mut parts = Vec::new();
    for part in unit.parts {
        let (path, text) = read(unit.krate, part)?;
        parts.extend(parse::header(&text, &known).map_err(|e| format!("{path}:{e}"))?);
        known.allow(part);
    }
    let (path, text) = read(unit.krate, unit.header)?;
    let mut header = parse::header(&text, &known).map_err(|e| format!("{path}:{e}"))?;
    header.extend(parts);
    Ok([
        ("src/ffi.rs", emit::rust(unit.header, &header, &known)),
        ("native/src/layout.cu", emit::layout(unit.header, &header)),
    ])
}

#[cfg(test)]
mod tests {
    #[test]
    fn bindings_are_up_to_date() {
        super::run(&crate::root(), true).unwrap();
    }
}
