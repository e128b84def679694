//! Calculators: processes of their own that run a circuit's program over a job's inputs, beside the provers.
//!
//! A calculator is started for one job and ends with it. It opens no file but the program: inputs come to it, and the witness goes from
//! it, over the pair of sockets that is its standard input. So what a program leaves in memory goes with its process, and one that is
//! stuck is ended by ending that.

mod child;
mod slot;

pub use child::calculate;
pub(crate) use child::{check_program, PROGRAM_MAX};
pub(crate) use slot::Calculator;

use crate::worker::protocol::{Failure, MESSAGE_MAX};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What a calculator is told. So many bytes of inputs follow.
#[derive(Debug, Serialize, Deserialize)]
struct Task {
    program: PathBuf,
    /// BLAKE3 of the program's file.
    program_hash: String,
    inputs_bytes: u64,
    memory_bytes: u64,
    steps: u64,
    seconds: u64,
}

/// What it answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    /// So many bytes of a `.wtns` file follow.
    Made { bytes: u64 },
    /// There is no witness. The failure's job and attempt are empty: there is only one.
    Failed(Failure),
}

// A message has room for every path.
const _: () = assert!(MESSAGE_MAX > 1 << 20);
