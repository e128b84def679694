//! What queues are told, after all checks: plain addresses and numbers, which every machine interprets.

use crate::ffi;
use crate::Result;
use std::sync::Arc;

/// A function that runs on a pretend PE, which it knows.
type Program = Arc<dyn Fn() -> Result<()> + Send + Sync>;

/// One step of a queue. Addresses are those that every PE of the process has.
#[derive(Clone)]
pub enum Op {
    /// Bytes from one place to another.
    Copy { to: u64, from: u64, bytes: u64 },
    /// Bytes from one place to another, between two PEs of the world that do not reach each other: `pes` are that of `to` and that of
    /// `from`.
    HostStagedCopy { to: u64, from: u64, bytes: u64, pes: (usize, usize) },
    /// Every byte becomes the value.
    Fill { to: u64, bytes: u64, value: u8 },
    /// Elements with gaps between them.
    Strided(ffi::tandem_fabric_strided_args),
    /// Up to 16 bytes that the operation carries.
    Store(ffi::tandem_fabric_store_args),
    /// A change of a word.
    Atomic(ffi::tandem_fabric_atomic_args),
    /// A wait for words of this PE.
    Wait(ffi::tandem_fabric_wait_args),
    /// A barrier of the team.
    Barrier,
    /// A function, on a pretend PE alone.
    Run(Program),
}
