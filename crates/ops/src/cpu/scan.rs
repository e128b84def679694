//! Prefix products, and Horner's scheme over coefficients.

use super::{Buf, Cpu};
use crate::scan::check_divisor;
use crate::{memory, Curve, Mont, Pending, Result, Scan};
use ark_ff::{AdditiveGroup, Field};
use rayon::prelude::*;
use zeroize::Zeroizing;

/// Elements of a chunk.
const GRAIN: usize = 1 << 13;
/// From so many columns on, a table is worked on row by row.
const WIDE: usize = 1 << 10;

/// What `of` makes of each chunk of `size` elements.
fn totals<F: Send + zeroize::Zeroize>(
    op: &'static str,
    data: &[Mont],
    size: usize,
    of: impl Fn(&[Mont]) -> F + Sync + Send,
) -> Result<Zeroizing<Vec<F>>> {
    let mut totals = Zeroizing::new(memory::reserve(op, data.len().div_ceil(size))?);
    data.par_chunks(size).map(of).collect_into_vec(&mut totals);
    Ok(totals)
}

/// A polynomial's value at x.
fn horner<C: Curve>(coefficients: &[Mont], x: C::Fr) -> C::Fr {
    coefficients.iter().rev().fold(C::Fr::ZERO, |sum, &c| sum * x + C::from_mont(c))
}

/// Adds b times each row of m elements to the one before, from the last on. `carry` is what the row behind the last one would be.
fn divide_rows<C: Curve>(rows: &mut [Mont], m: usize, b: C::Fr, carry: &[C::Fr]) {
    let last = rows.len().saturating_sub(1) / m * m;
    for (x, &carry) in rows[last..].iter_mut().zip(carry) {
        *x = C::mont(C::from_mont(*x) + b * carry);
    }
    for i in (0..last).rev() {
        // The last row may be shorter: what it lacks is zero.
        if let Some(&behind) = rows.get(i + m) {
            rows[i] = C::mont(C::from_mont(rows[i]) + b * C::from_mont(behind));
        }
    }
}

/// Adds b times each row of m elements to the one before, from the last on, each row by all threads.
fn divide_wide<C: Curve>(rows: &mut [Mont], m: usize, b: C::Fr) {
    for start in (0..rows.len().saturating_sub(m)).step_by(m).rev() {
        let (row, behind) = rows[start..].split_at_mut(m);
        let add = |(x, &behind): (&mut Mont, &Mont)| *x = C::mont(C::from_mont(*x) + b * C::from_mont(behind));
        row.par_iter_mut().with_min_len(WIDE).zip(&*behind).for_each(add);
    }
}

impl<C: Curve> Scan<C> for Cpu {
    fn prefix_product(&self, data: &mut Buf<Mont>) -> Result<Pending<Mont>> {
        let product = |chunk: &[Mont]| chunk.iter().map(|&x| C::from_mont(x)).product::<C::Fr>();
        let mut before = totals("prefix_product", &data.data, GRAIN, product)?;
        let total = before.iter_mut().fold(C::Fr::ONE, |before, chunk| before * std::mem::replace(chunk, before));
        data.data.par_chunks_mut(GRAIN).zip(&*before).for_each(|(chunk, &before)| {
            let mut product = before;
            for x in chunk {
                let value = C::from_mont(std::mem::replace(x, C::mont(product)));
                product *= value;
            }
        });
        Ok(self.handed(data.lane, size_of::<Mont>(), C::mont(total)))
    }

    fn evaluate(&self, coefficients: &Buf<Mont>, x: Mont) -> Result<Pending<Mont>> {
        let x = C::from_mont(x);
        let values = totals("evaluate", &coefficients.data, GRAIN, |chunk| horner::<C>(chunk, x))?;
        let step = x.pow([GRAIN as u64]);
        let value = C::mont(values.iter().rev().fold(C::Fr::ZERO, |sum, value| sum * step + value));
        Ok(self.handed(coefficients.lane, size_of::<Mont>(), value))
    }

    fn divide(&self, coefficients: &mut Buf<Mont>, m: usize, b: Mont) -> Result<()> {
        check_divisor(m)?;
        let (data, b) = (&mut coefficients.data, C::from_mont(b));
        if m >= WIDE {
            divide_wide::<C>(data, m, b);
            return Ok(());
        }
        // Chunks are whole rows. What the rows behind a chunk make of its columns, the last chunk first.
        let rows = GRAIN / m;
        let column = |chunk: &[Mont], j: usize| {
            let cells = chunk.iter().skip(j).step_by(m).rev();
            cells.fold(C::Fr::ZERO, |sum, &c| sum * b + C::from_mont(c))
        };
        let mut carries =
            totals("divide", data, rows * m, |chunk| (0..m).map(|j| column(chunk, j)).collect::<Vec<C::Fr>>())?;
        let step = b.pow([rows as u64]);
        let mut behind = Zeroizing::new(vec![C::Fr::ZERO; m]);
        for chunk in carries.iter_mut().rev() {
            // The chunk's own total makes room for what is behind it.
            for (total, behind) in chunk.iter_mut().zip(behind.iter_mut()) {
                let own = std::mem::replace(total, *behind);
                *behind = own + step * *behind;
            }
        }
        let chunks = data.par_chunks_mut(rows * m).zip(&*carries);
        chunks.for_each(|(chunk, carry)| divide_rows::<C>(chunk, m, b, carry));
        Ok(())
    }
}
