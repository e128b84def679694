//! The fabric of a machine: which links join its GPUs ([`topology`]), and the best way to move data over all of them
//! ([`plan`]). Both layers are pure: nothing here asks a device.
#![deny(unsafe_code)]

#[allow(unsafe_code)]
mod cuda;
mod error;
pub mod exec;
mod fault;
mod heap;
pub mod host;
mod machine;
mod onesided;
mod op;
pub mod plan;
pub mod probe;
mod queue;
mod ratio;
mod sim;
mod symmetric;
mod team;
pub mod topology;
mod word;
mod world;

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
pub use fault::{Fault, FaultKind};
pub use host::HostLinks;
pub use onesided::OneSided;
pub use queue::{Event, Graph, Queue};
pub use ratio::Ratio;
pub use sim::Pe;
pub use symmetric::Symmetric;
pub use team::{Memory, Options, Team, MOST_PES};
pub use word::{Atomic, Compare, Signal, Word};
