//! How the values of options are read.

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::ValueEnum;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use tandem_engine::DeviceChoice;

/// What `-` stands for as an input.
pub const STDIN: &str = "/dev/stdin";
/// What it stands for as an output.
pub const STDOUT: &str = "/dev/stdout";

/// A file to read; `-` is stdin.
pub fn input() -> impl TypedValueParser<Value = PathBuf> {
    instead_of_dash(STDIN)
}

/// A file to write; `-` is stdout.
pub fn output() -> impl TypedValueParser<Value = PathBuf> {
    instead_of_dash(STDOUT)
}

fn instead_of_dash(name: &'static str) -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().map(move |path| if path.as_os_str() == "-" { name.into() } else { path })
}

/// A choice of devices, such as `cuda:0,1`.
///
/// # Errors
/// What is wrong with the text.
pub fn device(text: &str) -> Result<DeviceChoice, String> {
    text.parse().map_err(|e: tandem_engine::Error| e.to_string())
}

/// A share, from 0 to 1.
///
/// # Errors
/// What is expected.
pub fn share(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|x| (0.0..=1.0).contains(x)).ok_or_else(|| "expected a number from 0 to 1".into())
}

/// `18`, or `16..20` with both ends.
///
/// # Errors
/// What is expected.
pub fn range(text: &str) -> Result<RangeInclusive<u32>, String> {
    let number = |t: &str| t.parse::<u32>().ok().filter(|n| *n <= 32);
    let (low, high) = text.split_once("..").unwrap_or((text, text));
    match (number(low), number(high.trim_start_matches('='))) {
        (Some(low), Some(high)) if low <= high => Ok(low..=high),
        _ => Err("expected a number from 0 to 32, or a range such as 16..20".into()),
    }
}

/// A value as users write it.
pub fn name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read() {
        assert_eq!(range("18"), Ok(18..=18));
        assert_eq!(range("16..20"), Ok(16..=20));
        assert_eq!(range("16..=20"), Ok(16..=20));
        for text in ["", "..", "20..16", "33", "a", "1..2..3", "-1"] {
            assert!(range(text).is_err(), "{text}");
        }
    }
}
