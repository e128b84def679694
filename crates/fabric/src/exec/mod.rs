//! Carrying plans out.
//!
//! A [`schedule()`] turns a plan into a table of transfers, [`check()`] proves the table right, and [`predict()`] says how long it takes at
//! the topology's rates. All three are pure. A [`sim::Run`] carries it out in host memory; on GPUs a kernel on each, or their copy
//! engines, do. Small data goes as messages with a flag in every word: [`mail`] lays out their rings for kernels and for the sim alike, and a
//! [`worker`] does in the sim what a block of the kernel does. [`crate::Collectives`] chooses.

mod check;
mod direct;
pub(crate) mod element;
#[allow(unsafe_code)]
pub(crate) mod gpu;
mod launchers;
pub mod mail;
mod messages;
pub mod protocol;
mod schedule;
mod share;
mod short;
pub mod sim;
#[allow(unsafe_code)]
mod small;
pub(crate) mod tables;
pub mod trial;
mod tuning;
pub mod worker;

pub(crate) use check::predict_each;
pub use check::{check, predict};
pub use direct::direct;
pub(crate) use element::combine;
pub use element::{Combine, Kind, Number};
pub use messages::messages;
pub(crate) use schedule::schedule_within;
pub use schedule::{schedule, Call, Channel, Endpoint, Place, Ring, Schedule, Shape, Transfer};
pub use schedule::{GRAIN, MAX_BYTES, MAX_STAGING};
pub use share::Share;
pub use short::{Bf16, F16};
pub use small::{Small, SmallCall};
pub(crate) use tuning::relay_chunk;
pub use tuning::Tuning;
