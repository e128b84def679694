//! Errors, under the name that callers know.

use std::fmt;

/// Why something failed: one line. Its code is not zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// Tandem's code of the kind of failure, as `tandem_engine::ErrorCode` numbers them.
    pub code: i32,
    message: String,
}

impl Error {
    pub(crate) fn input(message: impl Into<String>) -> Self {
        tandem_engine::Error::input(message).into()
    }

    /// This error, naming the circuit where there are several.
    pub(crate) fn of_circuit(self, index: usize, circuits: usize) -> Self {
        match circuits {
            1 => self,
            _ => Error { message: format!("circuit {index}: {}", self.message), ..self },
        }
    }
}

impl From<tandem_engine::Error> for Error {
    fn from(error: tandem_engine::Error) -> Self {
        Error { code: error.code().number() as i32, message: error.to_string() }
    }
}

impl From<Error> for String {
    fn from(error: Error) -> String {
        error.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
