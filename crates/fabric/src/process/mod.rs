//! Teams made of several processes of one host: how they meet, agree, and learn that one is gone.
//!
//! Data never pass here. Processes map each other's memory, and what PEs do with it is what they do inside of one process. Sockets carry
//! what all must agree on (which memory there is, at which offsets), the memory itself as file descriptors, and, by being closed, the end
//! of a process.

mod group;
#[allow(unsafe_code)]
mod launch;
mod meeting;
mod memory;
mod message;
mod socket;
#[cfg(test)]
mod tests;

pub(crate) use group::{Group, Watcher};
pub use launch::{launch, Launch, Launched};
pub use meeting::Meeting;
pub(crate) use memory::{check, make};
pub(crate) use message::{Parcel, MOST_NUMBERS};

use std::fmt;

/// A process that has PEs of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Process {
    /// Its number among them, from 0.
    pub rank: usize,
    /// Its number in the operating system.
    pub pid: u32,
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} (pid {})", self.rank, self.pid)
    }
}
