//! How the values of options are read.

use tandem_fabric::topology::MAX_GPUS;

/// Some GPUs of a topology.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Gpus {
    /// All that there are.
    All,
    /// These.
    Listed(Vec<usize>),
}

/// The GPUs that may help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Helpers {
    /// These, whoever uses them.
    Named(Gpus),
    /// Those that nobody uses.
    Idle,
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

/// As [`gpus`], or `idle`.
pub(super) fn helpers(text: &str) -> Result<Helpers, String> {
    match text {
        "idle" => Ok(Helpers::Idle),
        _ => gpus(text).map(Helpers::Named).map_err(|why| format!("{why}, or idle")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_ones_are_for_helpers() {
        assert_eq!(helpers("idle"), Ok(Helpers::Idle));
        for text in ["all", "2", "0-3"] {
            assert_eq!(helpers(text), gpus(text).map(Helpers::Named), "{text}");
        }
        assert!(gpus("idle").is_err() && helpers("Idle").is_err() && helpers("idle,2").is_err());
    }

    #[test]
    fn gpus_are_read() {
        assert_eq!(gpus("all"), Ok(Gpus::All));
        assert_eq!(gpus("3"), Ok(Gpus::Listed(vec![3])));
        assert_eq!(gpus("7,0-2,5-5"), Ok(Gpus::Listed(vec![7, 0, 1, 2, 5])));
        for text in ["", ",", "0,", "2-1", "a", "-1", "0-", "64", "0-18446744073709551615", "0--1", "all,1"] {
            assert!(gpus(text).is_err(), "{text}");
        }
    }
}
