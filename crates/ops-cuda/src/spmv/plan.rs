//! Who does which row of a sparse product. Pure: tested without a GPU.

use crate::tuning::spmv::{THREAD_ROW, WARP_ROW};
use rayon::prelude::*;
use tandem_ops::{memory, Result};

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

/// Rows that one task orders.
const TASK_ROWS: usize = 1 << 15;

/// The class of a row: its length, or one of two beyond.
fn class(ends: &[u32]) -> usize {
    match (ends[1] - ends[0]) as usize {
        length @ 0..=THREAD_ROW => length,
        length if length <= WARP_ROW => THREAD_ROW + 1,
        _ => THREAD_ROW + 2,
    }
}

/// Number of classes.
const CLASSES: usize = THREAD_ROW + 3;

/// Orders the rows that lie between `starts`, on all threads. Rows of equal treatment stay in their order.
pub(crate) fn row_order(starts: &[u32]) -> Result<RowOrder> {
    row_order_by(starts, TASK_ROWS)
}

fn row_order_by(starts: &[u32], task_rows: usize) -> Result<RowOrder> {
    let count = starts.len().saturating_sub(1);
    // Each task has the offset after its last row, too.
    let tasks: Vec<&[u32]> =
        (0..count).step_by(task_rows).map(|first| &starts[first..=count.min(first + task_rows)]).collect();
    let count_rows = |task: &&[u32]| {
        let mut counts = [0; CLASSES];
        task.windows(2).for_each(|ends| counts[class(ends)] += 1);
        counts
    };
    let counts: Vec<[usize; CLASSES]> = tasks.par_iter().map(count_rows).collect();
    let of_class = |class: usize| counts.iter().map(|of_task| of_task[class]).sum::<usize>();
    let thread_rows = (0..=THREAD_ROW).map(of_class).sum();
    let warp_rows = of_class(THREAD_ROW + 1);

    let mut rows = memory::filled("spmv", count, 0)?;
    // Where each task puts its rows of each class: class by class, and within a class task by task.
    let mut places: Vec<[&mut [u32]; CLASSES]> = tasks.iter().map(|_| std::array::from_fn(|_| &mut [][..])).collect();
    let mut rest = &mut rows[..];
    for class in 0..CLASSES {
        for (place, counts) in places.iter_mut().zip(&counts) {
            (place[class], rest) = rest.split_at_mut(counts[class]);
        }
    }
    tasks.par_iter().zip(&mut places).enumerate().for_each(|(task, (starts, places))| {
        let mut done = [0; CLASSES];
        for (row, ends) in (task * task_rows..).zip(starts.windows(2)) {
            let class = class(ends);
            places[class][done[class]] = row as u32;
            done[class] += 1;
        }
    });
    Ok(RowOrder { rows, thread_rows, warp_rows })
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
        // Whatever a task has, the last of them too.
        for task_rows in 1..=lengths.len() + 1 {
            let order = row_order_by(&starts, task_rows).unwrap();
            assert_eq!(order.rows, [1, 9, 8, 0, 6, 3, 2, 5, 4, 7], "tasks of {task_rows} rows");
            assert_eq!((order.thread_rows, order.warp_rows), (6, 2));
        }
    }

    #[test]
    fn a_matrix_without_rows() {
        assert_eq!(row_order(&[]).unwrap(), RowOrder::default());
        assert_eq!(row_order(&[0]).unwrap(), RowOrder::default());
    }
}
