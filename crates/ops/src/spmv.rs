//! A sparse matrix times a witness: the values of the constraints' linear combinations.

use crate::{Backend, Canonical, Curve, Lane, Mont, Mont2, Result};

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

    /// Checks what the fields' descriptions promise.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) that names the first broken promise.
    pub fn check(&self) -> Result<()> {
        let fail = |reason: String| Err(crate::Error::invalid("sparse matrix", reason));
        if self.starts.first() != Some(&0) || self.starts.windows(2).any(|w| w[0] > w[1]) {
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
        if let Some(c) = self.column.iter().find(|&&c| c as usize >= self.columns) {
            return fail(format!("column {c} of a matrix with {} columns", self.columns));
        }
        if let Some(v) = self.value.iter().find(|&&v| v as usize >= self.values.len()) {
            return fail(format!("value {v} of {} values", self.values.len()));
        }
        Ok(())
    }
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
