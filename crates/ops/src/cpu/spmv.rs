//! Sparse matrix times witness.

use super::held::Holding;
use super::{one_lane, Buf, Cpu};
use crate::timeline::Ends;
use crate::{memory, Buffer, Canonical, Curve, Error, Lane, Mont, Result, SpMv, SparseRows};
use ark_ff::AdditiveGroup;
use rayon::prelude::*;

/// Rows that one task takes at least.
const GRAIN: usize = 256;

/// A sparse matrix in host memory.
#[derive(Debug)]
pub struct Matrix {
    lane: Lane,
    rows: SparseRows,
    /// Each coefficient in Montgomery form: its product with the witness value 1, which is frequent.
    times_one: Vec<Mont>,
    /// Its bytes, for as long as it is there.
    _bytes: Holding,
}

impl<C: Curve> SpMv<C> for Cpu {
    type Matrix = Matrix;

    fn load_matrix(&self, lane: Lane, matrix: &SparseRows) -> Result<Matrix> {
        self.check_lane("load_matrix", lane)?;
        matrix.check()?;
        let one = C::from_mont(Mont(ONE.0));
        const OP: &str = "load_matrix";
        let mut times_one = memory::reserve(OP, matrix.values.len())?;
        times_one.extend(matrix.values.iter().map(|v| C::mont(C::from_mont(Mont(v.0)) * one)));
        let rows = SparseRows {
            columns: matrix.columns,
            starts: memory::copied(OP, &matrix.starts)?,
            column: memory::copied(OP, &matrix.column)?,
            value: memory::copied(OP, &matrix.value)?,
            values: memory::copied(OP, &matrix.values)?,
        };
        self.count(Ends::Up(lane), rows.bytes() as usize);
        let _bytes = Holding::of(&self.held[lane.0], rows.bytes());
        Ok(Matrix { lane, rows, times_one, _bytes })
    }

    fn spmv(&self, matrix: &Matrix, x: &Buf<Canonical>, out: &mut Buf<Mont>) -> Result<()> {
        one_lane("spmv", &[matrix.lane, x.lane(), out.lane()])?;
        let rows = &matrix.rows;
        if x.len() != rows.columns || out.len() < rows.rows() {
            let (columns, n) = (rows.columns, rows.rows());
            let reason = format!("{n} x {columns} matrix, {} values in, {} out", x.len(), out.len());
            return Err(Error::invalid("spmv", reason));
        }
        let row = |i: usize| {
            let mut sum = C::Fr::ZERO;
            for e in rows.starts[i] as usize..rows.starts[i + 1] as usize {
                let (w, v) = (x.data[rows.column[e] as usize], rows.value[e] as usize);
                if w == ONE {
                    sum += C::from_mont(matrix.times_one[v]);
                } else if w != Canonical::default() {
                    // The Montgomery product of the raw limbs, see `Mont2`.
                    sum += C::from_mont(Mont(rows.values[v].0)) * C::from_mont(Mont(w.0));
                }
            }
            C::mont(sum)
        };
        let (head, tail) = out.data.split_at_mut(rows.rows());
        head.par_iter_mut().with_min_len(GRAIN).enumerate().for_each(|(i, out)| *out = row(i));
        tail.fill(Mont::default());
        Ok(())
    }
}

const ONE: Canonical = Canonical([1, 0, 0, 0]);
