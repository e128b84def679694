//! Writes the Rust code of a description of gRPC: `tandem-proto DESCRIPTOR FOLDER`.
//!
//! The descriptor is what `protoc --include_source_info --descriptor_set_out` writes. The code is one file for each package.

use prost::Message;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, descriptor, folder] = &arguments[..] else { return Err("usage: tandem-proto DESCRIPTOR FOLDER".into()) };
    let bytes = std::fs::read(Path::new(descriptor)).map_err(|e| format!("{descriptor}: {e}"))?;
    let files = prost_types::FileDescriptorSet::decode(&bytes[..]).map_err(|e| format!("{descriptor}: {e}"))?;
    tonic_prost_build::configure()
        .build_transport(false)
        // Pieces are taken out of what was received, without a copy.
        .bytes(".")
        // They have witnesses.
        .skip_debug([".tandem.v1.SubmitRequest", ".tandem.v1.SubmitBatchRequest"])
        .out_dir(folder)
        .compile_fds(files)?;
    Ok(())
}
