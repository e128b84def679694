//! Witnesses from circom's WebAssembly: the same values that `snarkjs wtns calculate` finds.
//!
//! The module is not trusted. It runs in an interpreter, sees nothing but its own memory and the few functions that circom
//! circuits import, and is bounded in memory and steps ([`Limits`]).
#![forbid(unsafe_code)]

mod calculator;
mod inputs;
mod number;

pub use calculator::{calculate, Limits, Witness};
pub use inputs::Inputs;

/// Why there is no witness. Each message is one line without a file's name: the caller knows which file it gave.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The circuit's file is at fault.
    #[error("{0}")]
    Circuit(String),
    /// The inputs' file is at fault.
    #[error("{0}")]
    Inputs(String),
}

impl Error {
    fn circuit(text: String) -> Self {
        Self::Circuit(one_line(text))
    }

    fn inputs(text: String) -> Self {
        Self::Inputs(one_line(text))
    }
}

/// At most so many characters, control characters as escapes: names of signals, of imports and of whatever a circuit says come from files.
fn one_line(text: String) -> String {
    const MOST: usize = 1000;
    if text.len() <= MOST && !text.contains(char::is_control) {
        return text;
    }
    let escaped = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    let mut line: String = text.chars().take(MOST).map(escaped).collect();
    if text.chars().nth(MOST).is_some() {
        line.push_str("...");
    }
    line
}

/// Result of this crate's operations.
pub type Result<T, E = Error> = std::result::Result<T, E>;
