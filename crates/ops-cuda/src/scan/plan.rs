//! The levels of a scan. Pure: tested without a GPU.

use crate::ffi::TANDEM_SCAN_CHUNK;

/// How many elements the levels of a scan of the columns of a table have, whose last row may be short: n, then one for each chunk of rows
/// and column, until the rows are one chunk.
pub(crate) fn levels(n: usize, columns: usize) -> Vec<usize> {
    let mut levels = vec![n];
    let mut rows = n.div_ceil(columns);
    while rows > TANDEM_SCAN_CHUNK as usize {
        rows = rows.div_ceil(TANDEM_SCAN_CHUNK as usize);
        levels.push(rows * columns);
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_become_smaller_until_one_chunk_is_left() {
        assert_eq!(levels(1, 1), [1]);
        assert_eq!(levels(16, 1), [16]);
        assert_eq!(levels(17, 1), [17, 2]);
        assert_eq!(levels(257, 1), [257, 17, 2]);
        assert_eq!(levels(1 << 20, 1), [1 << 20, 1 << 16, 1 << 12, 1 << 8, 1 << 4]);
        // Rows of 3, the last one of 1.
        assert_eq!(levels(16 * 3, 3), [48]);
        assert_eq!(levels(16 * 3 + 1, 3), [49, 6]);
        assert_eq!(levels(100, 99), [100]);
        for n in [5, 1000, 12_345] {
            for columns in [1, 2, 5] {
                let upper: usize = levels(n, columns)[1..].iter().sum();
                assert!(upper <= n / 15 + columns * 4, "{n}, {columns}: {upper}");
            }
        }
    }
}
