//! Sizes as nccl-tests take them: from, to, factor; and how they are written.

use std::ops::RangeInclusive;

/// Bytes of `4096`, `4K`, `4KiB`, `1M`, `1G`; the units are binary, as in nccl-tests.
pub fn parse(text: &str) -> Result<u64, String> {
    bytes(text, 1..=MOST)
}

/// Memory of a GPU, as [`parse`] has it.
pub fn gpu_memory(text: &str) -> Result<u64, String> {
    bytes(text, 1 << 20..=1 << 50)
}

fn bytes(text: &str, range: RangeInclusive<u64>) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1u64 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        _ => 0,
    };
    let bytes = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(unit)).filter(|n| range.contains(n));
    let (least, most) = (range.start(), range.end());
    let least = if *least == 1 { "1".into() } else { write(*least) };
    bytes.ok_or_else(|| format!("expected bytes from {least} to {} such as 4096, 64K, 1M or 1G", write(*most)))
}

/// The largest size.
pub const MOST: u64 = 16 << 30;

/// The sizes from `least` to `most`, each `factor` times the one before.
pub fn all(least: u64, most: u64, factor: u64) -> Vec<u64> {
    std::iter::successors(Some(least), |n| n.checked_mul(factor)).take_while(|n| *n <= most).collect()
}

/// `4 KiB` where it is a whole number of a unit.
pub fn write(bytes: u64) -> String {
    let units = [(1u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{} {name}", bytes / unit),
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_written() {
        for (text, bytes) in
            [("1", 1), ("4096", 4096), ("4K", 4096), ("64KiB", 65536), ("1m", 1 << 20), ("16G", 16 << 30)]
        {
            assert_eq!(parse(text), Ok(bytes));
        }
        for text in ["", "0", "K", "-1", "1.5M", "17G", "1T", "99999999999999999999", "1 M", "١"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!([1, 4096, 5000, 1 << 20, 3 << 30].map(write), ["1 B", "4 KiB", "5000 B", "1 MiB", "3 GiB"]);
    }

    #[test]
    fn sizes_grow_by_the_factor() {
        assert_eq!(all(4096, 1 << 20, 16), [4096, 65536, 1 << 20]);
        assert_eq!(all(1, 1, 2), [1]);
        assert_eq!(all(2, 1, 2), [0u64; 0]);
        assert_eq!(all(1 << 33, u64::MAX, 1 << 40).len(), 1);
    }
}
