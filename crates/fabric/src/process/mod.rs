//! Teams made of several processes: how they meet, agree, and learn that one is gone.
//!
//! Processes of one node map each other's memory, and what PEs do with it is what they do inside of one process. Sockets carry what all
//! must agree on (which memory there is, at which offsets), the memory itself as file descriptors, and, by being closed, the end of a
//! process. Data pass here between nodes alone: each process answers requests for the memory of its PEs ([`Transport`]).

#[cfg(test)]
mod far_tests;
mod group;
#[allow(unsafe_code)]
mod launch;
#[allow(unsafe_code)]
mod lent;
mod meeting;
mod memory;
mod message;
mod nodes;
mod socket;
mod stream;
#[cfg(test)]
mod tests;
mod transport;

pub(crate) use group::{End, Group, Watcher};
pub use launch::{launch, Launch, Launched, Node};
pub(crate) use lent::Lent;
pub use meeting::Meeting;
pub(crate) use memory::{check, make};
pub(crate) use message::{Parcel, Told, MOST_NUMBERS};
pub(crate) use transport::{Change, Failure, Local, Span, Target, Transport};

use std::fmt;

/// A process that has PEs of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Process {
    /// Its number among them, from 0.
    pub rank: usize,
    /// Its number in the operating system.
    pub pid: u32,
    /// The node that it is on, if there are several.
    pub node: Option<usize>,
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let node = self.node.map_or(String::new(), |node| format!(" on node {node}"));
        write!(f, "process {} (pid {}{node})", self.rank, self.pid)
    }
}
