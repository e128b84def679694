//! What can be wrong with a topology, a job, or the use of a team.

use crate::Fault;
use std::time::Duration;

/// Result of everything in this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// One line that says what was wrong, where, and what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A topology breaks a rule, or its text cannot be read.
    #[error(transparent)]
    Topology(#[from] tandem_fabric_topology::Error),
    /// A job cannot be planned, or a plan breaks a rule.
    #[error(transparent)]
    Plan(#[from] tandem_fabric_plan::Error),
    /// The call does not fit the team or its plan.
    #[error("{0}")]
    Job(String),
    /// A schedule breaks a rule; see [`crate::exec::check()`].
    #[error("wrong schedule: {0}")]
    WrongSchedule(String),
    /// A length, an index, a PE or a combination that an operation does not allow.
    #[error("{op}: {problem}")]
    Invalid {
        /// The operation.
        op: &'static str,
        /// What was found and what was expected.
        problem: String,
    },
    /// A PE had too little memory for an allocation. No PE keeps any part of it.
    #[error("symmetric memory: PE {pe} ({device}) cannot add {wanted} bytes to its heap: {reason}")]
    OutOfMemory {
        /// The PE of the world.
        pe: usize,
        /// Its device.
        device: String,
        /// Bytes by which its heap had to grow.
        wanted: u64,
        /// What stood against it.
        reason: String,
    },
    /// Processes have not met, do not agree, or one of them is gone.
    #[error("{op}: {problem}")]
    Processes {
        /// The operation.
        op: &'static str,
        /// Which process has not done what was expected.
        problem: String,
    },
    /// Two PEs do not reach each other's memory.
    #[error("PE {from} does not reach the memory of PE {to}: {reason}")]
    NoPeer {
        /// The PE of the team that was to access.
        from: usize,
        /// The PE of the team whose memory it was to access.
        to: usize,
        /// Why it does not.
        reason: String,
    },
    /// A kernel whose blocks wait for each other does not fit on a device at once.
    #[error("{0}")]
    NotResident(String),
    /// A wait took too long, or an access went past the end. The team is unusable from then on.
    #[error("the team is unusable: {0}")]
    Fault(Box<Fault>),
    /// A device has not done in time what the host waits for, which nothing else is in the way of.
    #[error("{op}: {device} has not moved {bytes} bytes in {waited:.1?}; look whether it works (nvidia-smi) and what holds it up")]
    Late {
        /// The operation.
        op: &'static str,
        /// The device.
        device: String,
        /// Bytes that were to be copied or overwritten.
        bytes: u64,
        /// How long it was waited for.
        waited: Duration,
    },
    /// A device failed.
    #[error(transparent)]
    Device(#[from] tandem_cuda::Error),
}

impl Error {
    pub(crate) fn invalid(op: &'static str, problem: impl Into<String>) -> Self {
        Self::Invalid { op, problem: problem.into() }
    }

    pub(crate) fn processes(op: &'static str, problem: impl Into<String>) -> Self {
        Self::Processes { op, problem: problem.into() }
    }
}
