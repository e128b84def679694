//! Errors of a backend.

/// What can go wrong on a backend. No variant carries data of a witness.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The caller broke the contract of an operation: sizes that do not fit, a buffer of another lane.
    #[error("{op}: {reason}")]
    Invalid {
        /// The operation, as the trait names it.
        op: &'static str,
        /// What was expected and what came.
        reason: String,
    },
    /// More memory than the lane has.
    #[error("{op} on {device}: needs {wanted} bytes, {free} bytes are free")]
    OutOfMemory {
        /// The operation.
        op: &'static str,
        /// The device, in words.
        device: String,
        /// Bytes asked for.
        wanted: u64,
        /// Bytes free when it was refused.
        free: u64,
    },
    /// The device reported a failure; work queued on it has no defined result.
    #[error("{op} on {device} failed: {code_name} ({code}), {text}")]
    Device {
        /// The operation.
        op: &'static str,
        /// The device, in words.
        device: String,
        /// The device's own status code.
        code: i32,
        /// Its name.
        code_name: String,
        /// What the device says that it means.
        text: String,
    },
    /// What lies outside memory could not be read, or is not what it was ([`crate::Outside`]). No device is at fault.
    #[error("{reason}")]
    Unread {
        /// The file, what is wrong with it, and what to do.
        reason: String,
    },
    /// The system starts no thread.
    #[error(
        "no thread can be started ({reason}); at least one is needed: see ulimit -u and the control group's pids.max"
    )]
    Threads {
        /// What the system says.
        reason: String,
    },
    /// Two backends that should agree did not ([`Dual`](https://docs.rs/tandem-conformance)).
    #[error("{op}: {left} and {right} disagree at index {index}")]
    Disagree {
        /// The operation after which they were compared.
        op: &'static str,
        /// Name of the first backend.
        left: String,
        /// Name of the second.
        right: String,
        /// First element that differs.
        index: usize,
    },
}

impl Error {
    /// An [`Error::Invalid`] in short.
    pub fn invalid(op: &'static str, reason: impl Into<String>) -> Self {
        Error::Invalid { op, reason: reason.into() }
    }
}

/// Result of a backend's operation.
pub type Result<T> = std::result::Result<T, Error>;
