//! Who does which row of a sparse product. Pure: tested without a GPU.

use crate::tuning::spmv::{THREAD_ROW, WARP_ROW};

/// The rows in the order in which they are done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RowOrder {
    /// All rows: those that one thread each does, by length, so that the threads of a warp finish together; then those
    /// of one warp each; then those of one block each.
    pub(crate) rows: Vec<u32>,
    /// How many are done by one thread each.
    pub(crate) thread_rows: usize,
    /// How many are done by one warp each.
    pub(crate) warp_rows: usize,
}

/// Orders the rows that lie between `starts`. Rows of equal treatment stay in their order.
pub(crate) fn row_order(starts: &[u32]) -> RowOrder {
    // The class of a row: its length, or one of two beyond.
    let class = |pair: &[u32]| match (pair[1] - pair[0]) as usize {
        length @ 0..=THREAD_ROW => length,
        length if length <= WARP_ROW => THREAD_ROW + 1,
        _ => THREAD_ROW + 2,
    };
    let mut next = [0usize; THREAD_ROW + 4];
    for pair in starts.windows(2) {
        next[class(pair) + 1] += 1;
    }
    for i in 1..next.len() {
        next[i] += next[i - 1];
    }
    let thread_rows = next[THREAD_ROW + 1];
    let warp_rows = next[THREAD_ROW + 2] - thread_rows;
    let mut rows = vec![0; starts.len().saturating_sub(1)];
    for (row, pair) in starts.windows(2).enumerate() {
        let at = &mut next[class(pair)];
        rows[*at] = row as u32;
        *at += 1;
    }
    RowOrder { rows, thread_rows, warp_rows }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_done_once_by_those_who_suit_its_length() {
        let lengths = [3, 0, WARP_ROW, THREAD_ROW, 5000, THREAD_ROW + 1, 3, WARP_ROW + 1, 1, 0];
        let mut starts = vec![0u32];
        for length in lengths {
            starts.push(starts[starts.len() - 1] + length as u32);
        }
        let order = row_order(&starts);
        assert_eq!(order.rows, [1, 9, 8, 0, 6, 3, 2, 5, 4, 7]);
        assert_eq!((order.thread_rows, order.warp_rows), (6, 2));
    }

    #[test]
    fn a_matrix_without_rows() {
        assert_eq!(row_order(&[]), RowOrder::default());
        assert_eq!(row_order(&[0]), RowOrder::default());
    }
}
