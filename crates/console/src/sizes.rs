//! Sizes as nccl-tests take them: from, to, factor; and how they are written.

use tandem_engine::size;
pub use tandem_engine::size::write;

/// Bytes of `4096`, `4K`, `4KiB`, `1M`, `1G`; the units are binary, as in nccl-tests.
pub fn parse(text: &str) -> Result<u64, String> {
    size::parse(text, 1..=MOST)
}

/// Memory of a GPU, as [`parse`] has it.
pub fn gpu_memory(text: &str) -> Result<u64, String> {
    size::gpu_memory(text)
}

/// The largest size.
pub const MOST: u64 = 16 << 30;

/// The sizes from `least` to `most`, each `factor` times the one before.
pub fn all(least: u64, most: u64, factor: u64) -> Vec<u64> {
    std::iter::successors(Some(least), |n| n.checked_mul(factor)).take_while(|n| *n <= most).collect()
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
