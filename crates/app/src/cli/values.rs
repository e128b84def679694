//! How the values of options are read.

use clap::builder::{PathBufValueParser, TypedValueParser};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use tandem_engine::DeviceChoice;
use tandem_fabric::topology::MAX_GPUS;

/// Some GPUs of a topology.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Gpus {
    /// All that there are.
    All,
    /// These.
    Listed(Vec<usize>),
}

/// What `-` stands for as an input, and as an output.
pub(super) const STDIN: &str = "/dev/stdin";
pub(crate) const STDOUT: &str = "/dev/stdout";

/// A file to read; `-` is stdin.
pub(crate) fn input() -> impl TypedValueParser<Value = PathBuf> {
    instead_of_dash(STDIN)
}

/// A file to write; `-` is stdout.
pub(crate) fn output() -> impl TypedValueParser<Value = PathBuf> {
    instead_of_dash(STDOUT)
}

fn instead_of_dash(name: &'static str) -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().map(move |path| if path.as_os_str() == "-" { name.into() } else { path })
}

pub(super) fn device(text: &str) -> Result<DeviceChoice, String> {
    text.parse().map_err(|e: tandem_engine::Error| e.to_string())
}

/// The operation's name in `tandem bench`, which is that of nccl-tests, where it is another.
pub(super) fn as_in_bench(name: &str) -> Option<&'static str> {
    let names = [
        ("all-reduce", "allreduce"),
        ("all-gather", "allgather"),
        ("reduce-scatter", "reducescatter"),
        ("all-to-all", "alltoall"),
    ];
    names.into_iter().find(|(ours, _)| *ours == name).map(|(_, other)| other)
}

/// Whether the user's text means the operation of this name.
pub(crate) fn is_operation(name: &str, text: &str) -> bool {
    name == text || as_in_bench(name) == Some(text)
}

/// `all`, or numbers and ranges with both ends, such as `0,2-5`.
pub(super) fn gpus(text: &str) -> Result<Gpus, String> {
    let number = |text: &str| text.parse::<usize>().ok().filter(|n| *n < MAX_GPUS);
    let range = |part: &str| {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        Some(number(low)?..=number(high)?).filter(|range| !range.is_empty())
    };
    if text == "all" {
        return Ok(Gpus::All);
    }
    let ranges: Option<Vec<_>> = text.split(',').map(range).collect();
    let listed = ranges.map(|ranges| Gpus::Listed(ranges.into_iter().flatten().collect()));
    listed.ok_or_else(|| format!("expected numbers of GPUs below {MAX_GPUS}, such as 0,1 or 0-3, or all"))
}

pub(crate) fn share(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|x| (0.0..=1.0).contains(x)).ok_or_else(|| "expected a number from 0 to 1".into())
}

/// `18`, or `16..20` with both ends.
pub(crate) fn range(text: &str) -> Result<RangeInclusive<u32>, String> {
    let number = |t: &str| t.parse::<u32>().ok().filter(|n| *n <= 32);
    let (low, high) = text.split_once("..").unwrap_or((text, text));
    match (number(low), number(high.trim_start_matches('='))) {
        (Some(low), Some(high)) if low <= high => Ok(low..=high),
        _ => Err("expected a number from 0 to 32, or a range such as 16..20".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_read() {
        assert_eq!(gpus("all"), Ok(Gpus::All));
        assert_eq!(gpus("3"), Ok(Gpus::Listed(vec![3])));
        assert_eq!(gpus("7,0-2,5-5"), Ok(Gpus::Listed(vec![7, 0, 1, 2, 5])));
        for text in ["", ",", "0,", "2-1", "a", "-1", "0-", "64", "0-18446744073709551615", "0--1", "all,1"] {
            assert!(gpus(text).is_err(), "{text}");
        }
    }

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
