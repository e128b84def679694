//! What the proof systems share: a [`Request`] for a proof with its [`Progress`], the [`Witness`], the [`circuit`] that a key is made of,
//! blinding, and [`Error`]. A proof system's own crate has its key, its setup, its schedule and its verifier.
#![forbid(unsafe_code)]

pub mod budget;
pub mod circuit;
mod elements;
mod error;
mod evaluations;
pub mod fixed_base;
mod layout;
mod made;
pub mod points;
pub mod powers;
mod progress;
mod random;
mod request;
mod span;
mod witness;

pub use elements::{Elements, RowFault};
pub use error::{Error, Result};
pub use evaluations::{Evaluations, Wires};
pub use layout::Layout;
pub use made::{Made, Refusal};
pub use progress::{Progress, Silent};
pub use random::random_scalar;
pub use request::{settled, Request};
pub use span::HostSpan;
pub use witness::{Form, Witness};
