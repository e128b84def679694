//! A sparse matrix times a witness: the values of the constraints' linear combinations.

use crate::{Backend, Canonical, Curve, Lane, Mont, Mont2, Result};
use rayon::prelude::*;

/// A sparse matrix by rows: row i holds the entries `starts[i]..starts[i + 1]`, each a column and an index into
/// `values`. Coefficients of a circuit take few different values, so they are held once each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SparseRows {
    /// Number of columns; every column index is below it.
    pub columns: usize,
    /// Number of rows + 1 offsets, ascending from 0 to the number of entries.
    pub starts: Vec<u32>,
    /// Column of each entry.
    pub column: Vec<u32>,
    /// Index into `values` of each entry.
    pub value: Vec<u32>,
    /// The different coefficients.
    pub values: Vec<Mont2>,
}

impl SparseRows {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Bytes of all of it.
    pub fn bytes(&self) -> u64 {
        let numbers = [&self.starts, &self.column, &self.value].map(Vec::len).iter().sum::<usize>() * size_of::<u32>();
        (numbers + self.values.len() * size_of::<Mont2>()) as u64
    }

    /// Checks what the fields' descriptions promise, on all threads.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) that names the first broken promise.
    pub fn check(&self) -> Result<()> {
        let fail = |reason: String| Err(crate::Error::invalid("sparse matrix", reason));
        if self.starts.first() != Some(&0) || self.starts.par_windows(2).any(|w| w[0] > w[1]) {
            return fail("row offsets must start at 0 and never fall".into());
        }
        let entries = self.starts.last().map_or(0, |&n| n as usize);
        if self.column.len() != entries || self.value.len() != entries {
            return fail(format!(
                "{entries} entries by the offsets, {} columns, {} values",
                self.column.len(),
                self.value.len()
            ));
        }
        if let Some(c) = first_beyond(&self.column, self.columns) {
            return fail(format!("column {c} of a matrix with {} columns", self.columns));
        }
        if let Some(v) = first_beyond(&self.value, self.values.len()) {
            return fail(format!("value {v} of {} values", self.values.len()));
        }
        Ok(())
    }
}

/// Numbers that one task looks at.
const TASK: usize = 1 << 16;

/// The first of some indices that is not below `end`.
fn first_beyond(indices: &[u32], end: usize) -> Option<u32> {
    let in_task = |task: &[u32]| task.iter().copied().find(|&index| index as usize >= end);
    indices.par_chunks(TASK).find_map_first(in_task)
}

/// Sparse products over the scalar field of `C`.
pub trait SpMv<C: Curve>: Backend {
    /// A matrix in a lane's memory.
    type Matrix: Send + Sync;

    /// Loads a matrix.
    ///
    /// # Errors
    /// The matrix fails [`SparseRows::check`]; not enough memory.
    fn load_matrix(&self, lane: Lane, matrix: &SparseRows) -> Result<Self::Matrix>;

    /// `out[i]` = the product of row i with `x`, for the rows of the matrix; `out` beyond them becomes zero.
    ///
    /// # Errors
    /// `x` has another length than the matrix has columns, or `out` is shorter than its rows.
    fn spmv(&self, matrix: &Self::Matrix, x: &Self::Buf<Canonical>, out: &mut Self::Buf<Mont>) -> Result<()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wherever it lies, the first index that is too large is named, in matrices of one task and of several.
    #[test]
    fn what_breaks_a_promise_is_found() {
        for rows in [1, 3, TASK - 1, TASK, TASK + 1, 3 * TASK + 7] {
            let good = || SparseRows {
                columns: 9,
                starts: (0..=rows as u32).collect(),
                column: (0..rows as u32).map(|i| i % 9).collect(),
                value: (0..rows as u32).map(|i| i % 2).collect(),
                values: vec![Mont2([1, 0, 0, 0]); 2],
            };
            good().check().unwrap();
            let refused = |change: &dyn Fn(&mut SparseRows), text: &str| {
                let mut bad = good();
                change(&mut bad);
                let error = bad.check().unwrap_err().to_string();
                assert!(error.contains(text), "{error}, not {text}");
            };
            for at in [0, rows / 2, rows - 1] {
                refused(
                    &|m| {
                        m.column[at..].fill(13);
                        m.column[at] = 9;
                    },
                    "column 9 of a matrix with 9",
                );
                refused(&|m| m.value[at] = u32::MAX, "value 4294967295 of 2");
                refused(&|m| m.starts[at] = rows as u32 + 1, "row offsets");
            }
            refused(&|m| m.starts[0] = 1, "row offsets must start at 0");
            refused(&|m| _ = m.column.pop(), "columns");
        }
    }
}
