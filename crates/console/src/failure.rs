//! What ends the program early: one line on stderr and an exit status.
//!
//! That a result cannot be printed is no [`Failure`] of a command (`report::result` returns nothing), so that it cannot take the
//! place of the command's own verdict.

use crate::color::{self, Stream, Style};
use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;

/// Result of a command.
pub type Outcome<T = ()> = Result<T, Failure>;

/// Why a command failed.
#[derive(Debug)]
pub struct Failure {
    status: u8,
    /// Empty where everything has been said, or nobody listens any more.
    message: String,
}

impl Failure {
    /// Bad usage or bad input.
    pub fn input(message: impl Into<String>) -> Self {
        Self { status: 2, message: message.into() }
    }

    /// Bad input in a file.
    pub fn file(path: &std::path::Path, problem: impl Display) -> Self {
        Self::input(format!("{}: {problem}", path.display()))
    }

    /// The proof is not valid; stdout has said so.
    pub fn invalid() -> Self {
        Self { status: 1, message: String::new() }
    }

    /// A result is wrong: the device failed.
    pub fn device(message: impl Into<String>) -> Self {
        Self { status: 3, message: message.into() }
    }

    /// A program that was started ended with this status.
    pub fn ended(status: u8, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    /// Nobody reads the rows of a bench any more, so that it measures no further; what it has measured was right.
    pub fn unread() -> Self {
        Self { status: 0, message: String::new() }
    }

    /// The exit status that it stands for.
    pub fn exit_status(&self) -> u8 {
        self.status
    }

    /// Prints the line.
    pub fn show(&self) {
        if !self.message.is_empty() {
            // Where stderr is closed there is nobody to tell.
            let _ = writeln!(std::io::stderr(), "{} {self}", color::paint(Stream::Err, Style::Bad, "error:"));
        }
    }
}

/// Says what failed, in order; the first that did gives the exit status.
pub fn status(ends: impl IntoIterator<Item = Outcome>) -> ExitCode {
    let mut failures: Vec<Failure> = ends.into_iter().filter_map(Outcome::err).collect();
    // An interruption may end several things.
    failures.dedup_by(|a, b| a.status == b.status && a.message == b.message);
    failures.iter().for_each(Failure::show);
    failures.iter().find(|failure| failure.status != 0).map_or(ExitCode::SUCCESS, |first| first.status.into())
}

impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&one_line(&self.message))
    }
}

impl From<tandem_engine::Error> for Failure {
    fn from(error: tandem_engine::Error) -> Self {
        let status = match error {
            tandem_engine::Error::Interrupted => crate::interrupt::status(),
            _ => error.exit_status(),
        };
        Self { status, message: error.to_string() }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_failed_gives_the_status() {
        let of = |ends: Vec<Outcome>| format!("{:?}", status(ends));
        let is = |status: u8| format!("{:?}", ExitCode::from(status));
        let (invalid, input) = (|| Err(Failure::invalid()), || Err(Failure::input("")));
        assert_eq!(of(vec![Ok(()), Ok(()), Ok(())]), is(0));
        assert_eq!(of(vec![invalid(), Ok(()), input()]), is(1));
        assert_eq!(of(vec![invalid(), input(), Ok(())]), is(1));
        assert_eq!(of(vec![Ok(()), Ok(()), input()]), is(2));
        assert_eq!(of(vec![Err(Failure::unread()), Ok(()), Ok(())]), is(0));
        assert_eq!(of(vec![Err(Failure::unread()), input(), Ok(())]), is(2));
        assert_eq!(of(vec![Err(Failure::device("")), input(), input()]), is(3));
    }
}
