//! What can be wrong with a topology.

/// Result of everything in this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// One line that says what was wrong, where, and what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A topology breaks a rule, or its text cannot be read.
    #[error("{place}: {problem}")]
    Topology {
        /// The line or the element.
        place: String,
        /// What was found and what was expected.
        problem: String,
    },
    /// The topology cannot be written in this format.
    #[error("{0}")]
    Export(String),
}

impl Error {
    /// Both may quote a file's text, some of it by way of other libraries' messages.
    pub(crate) fn at(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Topology { place: one_line(place.into()), problem: one_line(problem.into()) }
    }
}

/// At most so many characters, control characters as escapes: no file fills a terminal or writes to it.
fn one_line(text: String) -> String {
    const MOST: usize = 240;
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
