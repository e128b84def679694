//! What can go wrong, and which exit status it means.

use std::path::Path;
use tandem_formats::FormatError;

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

    /// Bad input.
    pub fn input(message: impl Into<String>) -> Self {
        Error::BadInput(message.into())
    }

    /// An error of the prover over what came from `file`.
    pub(crate) fn prover(error: tandem_groth16::Error, file: &Path) -> Self {
        use tandem_groth16::Error as E;
        match error {
            E::Backend(e) => Error::Device(e.to_string()),
            E::Random(_) => Error::Device(error.to_string()),
            E::Interrupted => Error::Interrupted,
            // The sink names the file that it writes.
            E::Output(message) => Error::BadInput(message),
            E::Key(_) | E::Witness(_) | E::Circuit(_) if file.as_os_str().is_empty() => Error::input(error.to_string()),
            E::Key(_) | E::Witness(_) | E::Circuit(_) => Error::input(format!("{}: {error}", file.display())),
        }
    }
}

impl From<FormatError> for Error {
    fn from(error: FormatError) -> Self {
        Error::BadInput(error.to_string())
    }
}

impl From<tandem_ops::Error> for Error {
    fn from(error: tandem_ops::Error) -> Self {
        Error::Device(error.to_string())
    }
}
