//! Colour on a terminal, and none elsewhere.

use clap::{ColorChoice, ValueEnum};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::sync::OnceLock;

/// Where a text goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Results.
    Out,
    /// Remarks and errors.
    Err,
}

/// How a text looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Something failed.
    Bad,
    /// Something is not as it should be.
    Warning,
    /// As it should be.
    Good,
}

static CHOICE: OnceLock<ColorChoice> = OnceLock::new();

/// What a command line asks for, before it is known whether it is a good one.
pub fn wanted(args: &[OsString]) -> ColorChoice {
    let texts: Vec<&str> = args.iter().filter_map(|arg| arg.to_str()).collect();
    let after = texts.windows(2).filter(|pair| pair[0] == "--color").map(|pair| pair[1]).next_back();
    let given = texts.iter().filter_map(|arg| arg.strip_prefix("--color=")).next_back().or(after);
    let set = std::env::var("TANDEM_COLOR").ok();
    given.or(set.as_deref()).and_then(|text| ColorChoice::from_str(text, false).ok()).unwrap_or(ColorChoice::Auto)
}

/// Takes the user's choice. The first call counts.
pub fn choose(choice: ColorChoice) {
    _ = CHOICE.set(choice);
}

/// The text in a style, where the stream shows it.
pub fn paint(stream: Stream, style: Style, text: &str) -> String {
    if !is_on(stream) {
        return text.into();
    }
    let code = match style {
        Style::Bad => "1;31",
        Style::Warning => "1;33",
        Style::Good => "1;32",
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

fn is_on(stream: Stream) -> bool {
    let is_terminal = match stream {
        Stream::Out => std::io::stdout().is_terminal(),
        Stream::Err => std::io::stderr().is_terminal(),
    };
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let is_refused = set("NO_COLOR").is_some() || set("TERM").is_none_or(|term| term == "dumb");
    decide(CHOICE.get().copied().unwrap_or(ColorChoice::Auto), is_terminal, is_refused)
}

/// What the user asks for comes before what the surroundings say.
fn decide(choice: ColorChoice, is_terminal: bool, is_refused: bool) -> bool {
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => is_terminal && !is_refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_word_comes_first() {
        for is_terminal in [false, true] {
            for is_refused in [false, true] {
                assert!(decide(ColorChoice::Always, is_terminal, is_refused));
                assert!(!decide(ColorChoice::Never, is_terminal, is_refused));
                assert_eq!(decide(ColorChoice::Auto, is_terminal, is_refused), is_terminal && !is_refused);
            }
        }
    }
}
