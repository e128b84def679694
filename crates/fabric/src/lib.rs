//! The fabric of a machine: which links join its GPUs ([`topology`]), and the best way to move data over all of them
//! ([`plan`]). Both layers are pure: nothing here asks a device.
#![forbid(unsafe_code)]

mod error;
pub mod plan;
mod ratio;
pub mod topology;

pub use error::{Error, Result};
pub use ratio::Ratio;
