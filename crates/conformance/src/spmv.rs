//! Sparse matrix times witness.

use crate::{samples, Outcome, Suite};
use rand_chacha::{rand_core::RngCore, ChaCha8Rng};
use tandem_ops::{naive, Backend, Canonical, Curve, Lane, Mont, SpMv, SparseRows};

/// A matrix of this shape: most rows with a few entries, every seventh empty, one with an entry in each column;
/// entries of a row repeat columns.
pub(crate) fn matrix<C: Curve>(rows: usize, columns: usize, rng: &mut ChaCha8Rng) -> SparseRows {
    let values: Vec<_> = samples::elements::<C>(17, rng).into_iter().map(C::mont2).collect();
    let mut m = SparseRows { columns, starts: vec![0], values, ..SparseRows::default() };
    for row in 0..rows {
        let entries = match (row, columns) {
            (_, 0) => 0,
            (2, columns) => columns,
            (row, _) if row % 7 == 6 => 0,
            _ => 1 + rng.next_u32() as usize % 5,
        };
        for e in 0..entries {
            m.column.push(if row == 2 { e as u32 } else { rng.next_u32() % columns as u32 });
            m.value.push(rng.next_u32() % m.values.len() as u32);
        }
        m.starts.push(m.column.len() as u32);
    }
    m
}

impl<B: Backend> Suite<'_, B> {
    /// Sparse products.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn spmv<C: Curve>(&mut self) -> Outcome
    where
        B: SpMv<C>,
    {
        let shapes = [(0, 0), (0, 3), (1, 1), (2, 5), (3, 0), (3, 3), (33, 7), (256, 1), (257, 100), (300, 1000)];
        let rng = &mut samples::rng(1);
        for lane in self.lanes() {
            for (rows, columns) in shapes {
                let m = matrix::<C>(rows, columns, rng);
                let x = samples::elements::<C>(columns, rng);
                let expected = samples::wire::<C>(&naive::spmv::<C>(&m, &x));
                for tail in [0, 1, 40] {
                    self.product::<C>(lane, &m, &samples::canonical::<C>(&x), &expected, tail)?;
                }
            }
        }
        let n = 1 << self.log_n;
        let m = matrix::<C>(n - 1, n + 1, rng);
        let x = samples::canonical::<C>(&samples::scalars::<C>("like a witness", n + 1, rng));
        let loaded = SpMv::<C>::load_matrix(&self.reference, Lane(0), &m)?;
        let mut expected = self.reference.alloc(Lane(0), n - 1)?;
        SpMv::<C>::spmv(&self.reference, &loaded, &self.reference.upload(Lane(0), &x)?, &mut expected)?;
        self.product::<C>(Lane(0), &m, &x, expected.as_slice(), 1)?;
        self.bad_matrices::<C>()
    }

    fn product<C: Curve>(&mut self, lane: Lane, m: &SparseRows, x: &[Canonical], rows: &[Mont], tail: usize) -> Outcome
    where
        B: SpMv<C>,
    {
        let loaded = SpMv::<C>::load_matrix(self.backend, lane, m)?;
        let x = self.backend.upload(lane, x)?;
        let mut out = self.backend.upload(lane, &vec![Mont([5; 4]); rows.len() + tail])?;
        SpMv::<C>::spmv(self.backend, &loaded, &x, &mut out)?;
        let expected = [rows, &vec![Mont::default(); tail]].concat();
        self.holds(&out, &expected, format_args!("spmv, {} rows, {} columns, {tail} beyond", m.rows(), m.columns))
    }

    fn bad_matrices<C: Curve>(&mut self) -> Outcome
    where
        B: SpMv<C>,
    {
        let good = matrix::<C>(9, 5, &mut samples::rng(2));
        let spoil = |f: &dyn Fn(&mut SparseRows)| {
            let mut m = good.clone();
            f(&mut m);
            m
        };
        let bad = [
            ("no offsets", spoil(&|m| m.starts.clear())),
            ("a first offset of 1", spoil(&|m| m.starts[0] = 1)),
            ("falling offsets", spoil(&|m| m.starts.swap(2, 3))),
            ("entries missing", spoil(&|m| m.column.truncate(3))),
            ("values missing", spoil(&|m| m.value.truncate(3))),
            ("entries left over", spoil(&|m| m.starts.truncate(4))),
            ("a column past the end", spoil(&|m| m.column[4] = 5)),
            ("a value past the end", spoil(&|m| m.value[4] = 17)),
            ("an offset past the end", spoil(&|m| m.starts[9] = u32::MAX)),
        ];
        for (what, m) in bad {
            self.refused(SpMv::<C>::load_matrix(self.backend, Lane(0), &m), format_args!("a matrix with {what}"))?;
        }
        let nowhere = Lane(self.backend.lanes());
        self.refused(SpMv::<C>::load_matrix(self.backend, nowhere, &good), "a matrix for a lane that is not there")?;
        let loaded = SpMv::<C>::load_matrix(self.backend, Lane(0), &good)?;
        for (columns, rows) in [(4, 9), (6, 9), (0, 9), (5, 8), (5, 0)] {
            let x = self.backend.alloc::<Canonical>(Lane(0), columns)?;
            let mut out = self.backend.alloc::<Mont>(Lane(0), rows)?;
            let refused = SpMv::<C>::spmv(self.backend, &loaded, &x, &mut out);
            self.refused(refused, format_args!("9 x 5 matrix times {columns} into {rows}"))?;
        }
        let last = Lane(self.backend.lanes() - 1);
        if last != Lane(0) {
            for (x, out) in [(last, Lane(0)), (Lane(0), last)] {
                let x = self.backend.alloc::<Canonical>(x, 5)?;
                let mut out = self.backend.alloc::<Mont>(out, 9)?;
                let refused = SpMv::<C>::spmv(self.backend, &loaded, &x, &mut out);
                self.refused(refused, "a product across lanes")?;
            }
        }
        Ok(())
    }
}
