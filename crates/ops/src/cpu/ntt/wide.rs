//! Transforms eight butterflies at a time, where the processor can.
//!
//! A transform of more than [`WHOLE`] numbers is one of columns, whose rows are far apart, and then one of each row. A
//! task gathers some columns, does all of their levels, and writes them back.

use super::{reversed, CHUNK};
use crate::cpu::simd::Eight;
use crate::{memory, NttField, Order, Result};
use ark_ff::Field;
use rayon::prelude::*;
use tandem_field_simd::{Columns, Wide};

/// log2 of the numbers that stay in a core's own cache for all of their levels.
const WHOLE: u32 = 11;
/// log2 of the rows of columns that do.
const ROWS: u32 = 9;
/// Columns that a task takes at a time.
const WIDTH: usize = 64;
/// Transforms of fewer numbers are left to others.
pub(super) const LEAST: usize = 64;

impl Eight {
    /// Roots of unity as [`Eight::forward`] takes them, of the upper half of them, eight or more.
    pub(super) fn roots<E: bytemuck::Pod>(self, upper: &[E]) -> Result<Wide> {
        let bytes = (2 * upper.len() * Wide::BYTES) as u64;
        memory::check("ntt", bytes)?;
        self.field.roots(self.simd, bytemuck::cast_slice(upper)).map_err(|_| memory::refused("ntt", bytes))
    }

    /// All levels of a transform of [`LEAST`] numbers or more: from natural order, or from bit-reversed order, to the other.
    pub(super) fn forward<E: bytemuck::Pod>(self, data: &mut [E], roots: &Wide, from: Order, odd: bool) {
        let log_n = data.len().ilog2();
        let data: &mut [u64] = bytemuck::cast_slice_mut(data);
        let mut steps = steps(log_n);
        let whole = |data: &mut [u64]| {
            data.par_chunks_mut(4 << log_n.min(WHOLE)).for_each(|part| match from {
                Order::Natural => self.field.frequency(self.simd, part, roots),
                Order::BitReversed => self.field.time(self.simd, part, roots, odd),
            });
        };
        match from {
            Order::Natural => {
                steps.iter().for_each(|&(log_m, log_rows)| self.columns(data, log_m, log_rows, roots, None));
                whole(data);
            }
            Order::BitReversed => {
                whole(data);
                steps.reverse();
                steps.iter().for_each(|&(log_m, log_rows)| self.columns(data, log_m, log_rows, roots, Some(odd)));
            }
        }
    }

    /// The levels that join 2^`log_rows` rows, in each part of 2^`log_m` numbers.
    fn columns(self, data: &mut [u64], log_m: u32, log_rows: u32, roots: &Wide, time: Option<bool>) {
        let stride = 1 << (log_m - log_rows);
        let width = WIDTH.min(stride);
        data.par_chunks_mut(4 << log_m).for_each(|part| {
            let mut tasks: Vec<Vec<&mut [u64]>> = Vec::new();
            tasks.resize_with(stride / width, || Vec::with_capacity(1 << log_rows));
            for row in part.chunks_mut(4 * stride) {
                tasks.iter_mut().zip(row.chunks_mut(4 * width)).for_each(|(task, columns)| task.push(columns));
            }
            tasks.par_iter_mut().enumerate().for_each(|(t, rows)| {
                self.field.columns(self.simd, rows, Columns { roots, stride, column: t * width, time });
            });
        });
    }

    /// Multiplies the element of index i by g^i. There are [`LEAST`] or more.
    pub(super) fn scale_by_powers<F: NttField>(self, data: &mut [F::Element], order: Order, first: F::Ark, g: F::Ark) {
        let bits = data.len().ilog2();
        let chunk_bits = bits.min(CHUNK.ilog2());
        let step = if order == Order::Natural { g } else { g.pow([1 << (bits - chunk_bits)]) };
        let mut steps = vec![F::Element::default(); 1 << chunk_bits];
        let mut power = F::Ark::ONE;
        for p in 0..steps.len() {
            let place = if order == Order::Natural { p } else { reversed(p, chunk_bits) };
            steps[place] = F::element(power);
            power *= step;
        }
        let steps = self.field.widen(self.simd, bytemuck::cast_slice(&steps));
        data.par_chunks_mut(1 << chunk_bits).enumerate().for_each(|(c, chunk)| {
            let exponent = if order == Order::Natural { c << chunk_bits } else { reversed(c, bits - chunk_bits) };
            let k = Self::words::<F>(first * g.pow([exponent as u64]));
            self.field.scale(self.simd, bytemuck::cast_slice_mut(chunk), Some(&steps), &k);
        });
    }
}

/// For each step of a transform of 2^`log_n` numbers from natural order, whose last levels are within [`WHOLE`] numbers:
/// log2 of the numbers that meet, and of the rows in which they stand.
fn steps(log_n: u32) -> Vec<(u32, u32)> {
    let mut levels = log_n.saturating_sub(WHOLE);
    let mut count = levels.div_ceil(ROWS);
    let (mut log_m, mut steps) = (log_n, Vec::new());
    while levels > 0 {
        let rows = levels.div_ceil(count);
        steps.push((log_m, rows));
        (log_m, levels, count) = (log_m - rows, levels - rows, count - 1);
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_leave_whole_rows() {
        assert_eq!(steps(6), []);
        assert_eq!(steps(WHOLE), []);
        assert_eq!(steps(20), [(20, 9)]);
        assert_eq!(steps(21), [(21, 5), (16, 5)]);
        for log_n in 0..=32 {
            let left = steps(log_n).iter().fold(log_n, |left, &(log_m, rows)| {
                assert!(log_m == left && (1..=ROWS).contains(&rows));
                left - rows
            });
            assert_eq!(left, log_n.min(WHOLE));
        }
    }
}
