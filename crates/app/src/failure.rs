//! What ends the program early: one line on stderr and an exit status.

use std::fmt::Display;
use std::io::Write;

/// Result of a command.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    status: u8,
    /// Empty where everything has been said, or nobody listens any more.
    message: String,
}

impl Failure {
    /// Bad usage or bad input.
    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self { status: 2, message: message.into() }
    }

    /// The same, about a file.
    pub(crate) fn file(path: &std::path::Path, problem: impl Display) -> Self {
        Self::input(format!("{}: {problem}", path.display()))
    }

    /// The proof is not valid; stdout has said so.
    pub(crate) fn invalid() -> Self {
        Self { status: 1, message: String::new() }
    }

    /// A result is wrong: the device failed.
    pub(crate) fn device(message: impl Into<String>) -> Self {
        Self { status: 3, message: message.into() }
    }

    /// Nobody reads stdout any more.
    pub(crate) fn closed_pipe() -> Self {
        Self { status: 0, message: String::new() }
    }

    pub(crate) fn status(&self) -> u8 {
        self.status
    }

    /// Prints the line.
    pub(crate) fn show(&self) {
        if !self.message.is_empty() {
            // Where stderr is closed there is nobody to tell.
            let _ = writeln!(std::io::stderr(), "error: {self}");
        }
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&one_line(&self.message))
    }
}

impl From<tandem_engine::Error> for Failure {
    fn from(error: tandem_engine::Error) -> Self {
        Self { status: error.exit_status(), message: error.to_string() }
    }
}

impl From<tandem_formats::FormatError> for Failure {
    fn from(error: tandem_formats::FormatError) -> Self {
        Self::input(error.to_string())
    }
}

/// Names of files and of signals can hold anything.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
