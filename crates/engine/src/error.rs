//! What can go wrong, and which exit status it means.

/// Result of the engine's operations.
pub type Result<T> = std::result::Result<T, Error>;

/// One failure, worded for the person at the terminal. Each message is one line.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// A proof was checked and is not valid.
    #[error("{0}")]
    InvalidProof(String),
    /// A file, an option or a witness is not what it should be.
    #[error("{0}")]
    BadInput(String),
    /// A device, or the machine's memory, failed or is missing.
    #[error("{0}")]
    Device(String),
    /// The caller asked to stop ([`crate::Progress::cancelled`]).
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// The exit status of a program that ends with this error: 1 the proof is not valid, 2 bad input, 3 the device
    /// failed, 130 interrupted.
    pub fn exit_status(&self) -> u8 {
        match self {
            Error::InvalidProof(_) => 1,
            Error::BadInput(_) => 2,
            Error::Device(_) => 3,
            Error::Interrupted => 130,
        }
    }

    pub(crate) fn input(message: impl Into<String>) -> Self {
        Error::BadInput(message.into())
    }
}
