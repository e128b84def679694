//! The terminal's side of the program: what every command shares, whatever it computes.
//!
//! A command gets a [`session::Session`], prints results by [`report`], ends with a [`failure::Failure`] or without, and writes files by
//! [`files::Outputs`]. [`options`] holds the options that several commands take.
#![forbid(unsafe_code)]

pub mod color;
pub mod drawing;
pub mod failure;
pub mod files;
pub mod interrupt;
pub mod lanes;
pub mod options;
mod png;
pub mod progress;
pub mod report;
pub mod server;
pub mod session;
pub mod sizes;
pub mod trace;
pub mod values;

/// The commit of the sources, or `unknown`.
pub const COMMIT: &str = env!("TANDEM_COMMIT_BUILT");
