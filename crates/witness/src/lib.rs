//! Witnesses from circom's WebAssembly, and from the graphs of circom-witnesscalc: the same values that `snarkjs wtns calculate` finds.
//!
//! The program is not trusted. A module runs in an interpreter, sees nothing but its own memory and the few functions that circom
//! circuits import. A graph is a list of field operations. Both are bounded in memory, steps and time ([`Limits`]).
#![forbid(unsafe_code)]

mod budget;
mod calculator;
mod graph;
mod inputs;
mod kept;
mod machine;
mod native;
mod number;
mod recording;
mod values;

#[doc(hidden)]
pub use calculator::interpret;
pub use calculator::Witness;
pub use kept::{calculate_kept, calculate_left, replay_kept, Left, Name, Record, Recordings, Used};

use std::time::Duration;
use zeroize::Zeroizing;

/// Runs a circuit's program on inputs. The program is the module (`.wasm`) that circom 2 writes, or a graph that circom-witnesscalc
/// writes (`.wcd`, `.graph`). The inputs are a JSON object that maps names to numbers (integers up to 2^53 - 1, strings in decimal or with
/// `0x`, `0o`, `0b`, booleans), to arrays of them, and to objects for buses.
///
/// `caller` is asked now and then whether to end early, and hears the circuit's `log`. All that holds inputs or signals is overwritten,
/// the text too, however this ends; what cannot be is said where it lies.
///
/// A graph checks no assertions of the circuit: inputs that break one give a witness that the circuit's constraints refuse.
///
/// # Errors
/// The program or the inputs are at fault, a limit is reached, or `caller` asks to stop.
pub fn calculate(program: &[u8], json: Zeroizing<Vec<u8>>, limits: Limits, caller: &dyn Caller) -> Result<Witness> {
    if program.starts_with(graph::FAMILY) {
        return graph::calculate(program, json, limits, caller);
    }
    calculator::calculate(program, json, limits, caller)
}

/// What a circuit may use up.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of memory for all together: the program, its own memory, the inputs, the witness and what the circuit prints.
    /// A 32-bit module cannot have more than 4 GiB for its own.
    pub memory_bytes: usize,
    /// Steps, of which a core does some 10^9 a second; what is slower counts as several.
    pub steps: u64,
    /// Time by the clock; none where it is `None`. Looked at every 0.1 ms or so.
    pub time: Option<Duration>,
}

impl Default for Limits {
    /// 8 GiB, and 10^12 steps: half an hour or more. No limit by the clock, which would make results depend on the machine.
    fn default() -> Self {
        Self { memory_bytes: 1 << 33, steps: 1_000_000_000_000, time: None }
    }
}

/// One of the [`Limits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// [`Limits::memory_bytes`].
    Memory,
    /// [`Limits::steps`].
    Steps,
    /// [`Limits::time`].
    Time,
}

/// Who asks for a witness, and hears of it while the circuit's program runs. A closure that says when to stop is one.
pub trait Caller: Sync {
    /// Whether to end early; asked now and then.
    fn stop(&self) -> bool;

    /// A line of the circuit's `log`, as it comes. It has no control characters, and may hold secret values: the circuit's author chose
    /// so.
    fn log(&self, _line: &str) {}

    /// Names that input signals may have, for messages: a circuit's program tells whether a name is that of an input, and no names.
    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

impl<F: Fn() -> bool + Sync> Caller for F {
    fn stop(&self) -> bool {
        self()
    }
}

/// Why there is no witness. Each message is one line without a file's name: the caller knows which file it gave.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The circuit's file is at fault.
    #[error("{0}")]
    Circuit(String),
    /// The inputs' file is at fault.
    #[error("{0}")]
    Inputs(String),
    /// The inputs' file lacks signals whose names are not known.
    #[error("{0}")]
    Missing(String),
    /// The circuit, or its inputs, need more than a limit.
    #[error("{1}")]
    Limit(Limit, String),
    /// The system refuses memory or a thread that the limits allow.
    #[error("{0}")]
    System(String),
    /// The caller asked to stop.
    #[error("stopped")]
    Stopped,
}

impl Error {
    fn circuit(text: String) -> Self {
        Self::Circuit(shortened(&text))
    }

    fn inputs(text: String) -> Self {
        Self::Inputs(shortened(&text))
    }

    fn missing(text: String) -> Self {
        Self::Missing(shortened(&text))
    }

    fn limit(limit: Limit, text: String) -> Self {
        Self::Limit(limit, shortened(&text))
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

/// The first few of a list that may be long.
fn list(items: impl Iterator<Item = String>) -> String {
    const SHOWN: usize = 8;
    let items: Vec<_> = items.collect();
    match items.len() {
        0 => "none".into(),
        n if n > SHOWN => format!("{} and {} more", items[..SHOWN].join(", "), n - SHOWN),
        _ => items.join(", "),
    }
}

/// Result of this crate's operations.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
