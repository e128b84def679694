//! Witnesses from circom's WebAssembly: the same values that `snarkjs wtns calculate` finds.
//!
//! The module is not trusted. It runs in an interpreter, sees nothing but its own memory and the few functions that circom
//! circuits import, and is bounded in memory and steps ([`Limits`]).
#![forbid(unsafe_code)]

mod calculator;
mod inputs;
mod number;

pub use calculator::{calculate, Limits, Witness};
pub use inputs::Inputs;

/// Why there is no witness. Each message is one line without a file's name: the caller knows which file it gave.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The circuit's file is at fault.
    #[error("{0}")]
    Circuit(String),
    /// The inputs' file is at fault.
    #[error("{0}")]
    Inputs(String),
}

/// Result of this crate's operations.
pub type Result<T, E = Error> = std::result::Result<T, E>;
