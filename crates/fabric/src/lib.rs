//! The fabric of a machine: which links join its GPUs ([`topology`]), and the best way to move data over all of them
//! ([`plan`]). Both layers are pure; [`probe`] asks the machine.
#![deny(unsafe_code)]

mod error;
pub mod plan;
pub mod probe;
mod ratio;
pub mod topology;

/// The C functions themselves.
#[cfg(tandem_nvcc)]
#[allow(unsafe_code)]
pub mod ffi;
/// The C functions of a build without nvcc.
#[cfg(not(tandem_nvcc))]
#[allow(unsafe_code)]
#[path = "ffi_absent.rs"]
pub mod ffi;

pub use error::{Error, Result};
pub use ratio::Ratio;
