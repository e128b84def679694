//! Numbers of bytes, as users write and read them.

use std::ops::RangeInclusive;

/// Bytes of `4096`, `4K`, `4KiB`, `1M`, `1G`; the units are binary.
///
/// # Errors
/// What is expected, where it is none, or none in the range.
pub fn parse(text: &str, range: RangeInclusive<u64>) -> Result<u64, String> {
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

/// Memory to take of a GPU: 1 MiB at least.
///
/// # Errors
/// As [`parse`].
pub fn gpu_memory(text: &str) -> Result<u64, String> {
    parse(text, 1 << 20..=1 << 50)
}

/// `4 KiB` where it is a whole number of a unit.
pub fn write(bytes: u64) -> String {
    let units = [(1u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{} {name}", bytes / unit),
        None => format!("{bytes} B"),
    }
}
