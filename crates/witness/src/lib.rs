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
        Self::Circuit(shortened(&text))
    }

    fn inputs(text: String) -> Self {
        Self::Inputs(shortened(&text))
    }
}

fn shortened(text: &str) -> String {
    const MOST: usize = 1000;
    let mut line = one_line(text);
    if let Some((end, _)) = line.char_indices().nth(MOST) {
        line.truncate(end);
        line += "...";
    }
    line
}

/// Names of signals and imports, and what a circuit says, come from files: no line of them breaks another or fills a terminal.
fn one_line(text: &str) -> String {
    let words: Vec<_> = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|w| !w.is_empty()).collect();
    words.join(" ")
}

/// Result of this crate's operations.
pub type Result<T, E = Error> = std::result::Result<T, E>;
