//! Rounds of a sumcheck, by all threads.

use super::{Buf, Cpu};
use crate::sumcheck::{add_products, check_challenge, check_rows, check_tables, RoundValues, TABLES_MAX};
use crate::{memory, Buffer, Lane, Pending, Result, Sumcheck, SumcheckField};
use ark_ff::{AdditiveGroup, Field};
use rayon::prelude::*;
use zeroize::Zeroize;

/// Pairs of rows that one task takes.
const GRAIN: usize = 1 << 10;

type Sums<E> = [E; TABLES_MAX + 1];

fn plus<E: Field>(mut a: Sums<E>, b: Sums<E>) -> Sums<E> {
    a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
    a
}

fn ready<F: SumcheckField>(cpu: &Cpu, lane: Lane, sums: Sums<F::Extension>) -> Pending<RoundValues<F>> {
    cpu.handed(lane, size_of::<RoundValues<F>>(), sums.map(F::challenge))
}

/// Calls `$f::<$($t),*, D>` for D tables.
macro_rules! with_tables {
    ($count:expr, $f:ident::<$t:ty>($($arg:expr),*)) => {
        match $count {
            1 => $f::<$t, 1>($($arg),*),
            2 => $f::<$t, 2>($($arg),*),
            3 => $f::<$t, 3>($($arg),*),
            _ => $f::<$t, 4>($($arg),*),
        }
    };
}

/// All of the first round's values.
fn sums<F: SumcheckField, const D: usize>(tables: &[&[F::Element]]) -> Sums<F::Extension> {
    let half = tables[0].len() / 2;
    let chunk = |start: usize| {
        let mut sums = [F::Ark::ZERO; TABLES_MAX + 1];
        for i in start..(start + GRAIN).min(half) {
            let low: [F::Ark; D] = std::array::from_fn(|j| F::value(tables[j][i]));
            let step = std::array::from_fn(|j| F::value(tables[j][i + half]) - low[j]);
            add_products(&mut sums, low, step, true);
        }
        sums
    };
    let starts = (0..half.div_ceil(GRAIN)).into_par_iter().map(|i| i * GRAIN);
    starts.map(chunk).reduce(|| [F::Ark::ZERO; TABLES_MAX + 1], plus).map(F::lift)
}

/// Stores two rows that are a pair of the next round, and adds what they give to its values.
fn finish<F: SumcheckField, const D: usize>(
    sums: &mut Sums<F::Extension>,
    [low, high]: [[F::Extension; D]; 2],
    [low_row, high_row]: [&mut [F::Challenge]; 2],
) {
    for j in 0..D {
        (low_row[j], high_row[j]) = (F::challenge(low[j]), F::challenge(high[j]));
    }
    add_products(sums, low, std::array::from_fn(|j| high[j] - low[j]), false);
}

/// Binds tables and stores rows, of which there are half as many.
fn bind<F: SumcheckField, const D: usize>(
    tables: &[&[F::Element]],
    rows: &mut [F::Challenge],
    r: F::Extension,
) -> Sums<F::Extension> {
    let quarter = tables[0].len() / 4;
    let bound = |j: usize, i: usize| {
        let (low, high) = (F::value(tables[j][i]), F::value(tables[j][i + 2 * quarter]));
        F::scaled(r, high - low) + F::lift(low)
    };
    let (low, high) = rows.split_at_mut(quarter * D);
    let chunks = low.par_chunks_mut(GRAIN * D).zip(high.par_chunks_mut(GRAIN * D)).enumerate();
    let chunk = |(chunk, (low, high)): (usize, (&mut [_], &mut [_]))| {
        let mut sums = [F::Extension::ZERO; TABLES_MAX + 1];
        for (i, rows) in low.chunks_exact_mut(D).zip(high.chunks_exact_mut(D)).enumerate() {
            let at = chunk * GRAIN + i;
            let pair = [at, at + quarter].map(|at| std::array::from_fn(|j| bound(j, at)));
            finish::<F, D>(&mut sums, pair, [rows.0, rows.1]);
        }
        sums
    };
    chunks.map(chunk).reduce(|| [F::Extension::ZERO; TABLES_MAX + 1], plus)
}

/// Binds rows in place.
fn fold<F: SumcheckField, const D: usize>(rows: &mut [F::Challenge], r: F::Extension) -> Sums<F::Extension> {
    let quarter = rows.len() / 4;
    let (bound, upper) = rows.split_at_mut(2 * quarter);
    let (low, high) = bound.split_at_mut(quarter);
    let (above_low, above_high) = upper.split_at(quarter);
    let written = low.par_chunks_mut(GRAIN * D).zip(high.par_chunks_mut(GRAIN * D));
    let read = above_low.par_chunks(GRAIN * D).zip(above_high.par_chunks(GRAIN * D));
    let chunk = |((low, high), (above_low, above_high)): ((&mut [_], &mut [_]), (&[_], &[_]))| {
        let mut sums = [F::Extension::ZERO; TABLES_MAX + 1];
        let above = above_low.chunks_exact(D).zip(above_high.chunks_exact(D));
        for ((low, high), above) in low.chunks_exact_mut(D).zip(high.chunks_exact_mut(D)).zip(above) {
            let bound = |row: &[F::Challenge], above: &[F::Challenge]| {
                std::array::from_fn(|j| {
                    let x = F::extension(row[j]);
                    x + r * (F::extension(above[j]) - x)
                })
            };
            let pair = [bound(low, above.0), bound(high, above.1)];
            finish::<F, D>(&mut sums, pair, [low, high]);
        }
        sums
    };
    written.zip(read).map(chunk).reduce(|| [F::Extension::ZERO; TABLES_MAX + 1], plus)
}

fn shapes<F: SumcheckField>(tables: &[&Buf<F::Element>]) -> Vec<(Lane, usize)> {
    tables.iter().map(|table| (table.lane(), table.len())).collect()
}

impl<F: SumcheckField> Sumcheck<F> for Cpu {
    fn sumcheck_sums(&self, tables: &[&Buf<F::Element>]) -> Result<Pending<RoundValues<F>>> {
        let (lane, _) = check_tables("sumcheck_sums", &shapes::<F>(tables), 2)?;
        let tables: Vec<_> = tables.iter().map(|table| table.as_slice()).collect();
        Ok(ready::<F>(self, lane, with_tables!(tables.len(), sums::<F>(&tables))))
    }

    fn sumcheck_bind(
        &self,
        tables: &[&Buf<F::Element>],
        r: F::Challenge,
    ) -> Result<(Buf<F::Challenge>, Pending<RoundValues<F>>)> {
        const OP: &str = "sumcheck_bind";
        let (lane, n) = check_tables(OP, &shapes::<F>(tables), 4)?;
        let r = check_challenge::<F>(OP, r)?;
        let tables: Vec<_> = tables.iter().map(|table| table.as_slice()).collect();
        // Of a buffer's length at the most: four tables of half their elements.
        let len = (n / 2).saturating_mul(tables.len());
        let mut rows = self.buf(lane, memory::filled(OP, len, F::Challenge::default())?);
        let sums = with_tables!(tables.len(), bind::<F>(&tables, &mut rows.data, r));
        Ok((rows, ready::<F>(self, lane, sums)))
    }

    fn sumcheck_fold(
        &self,
        rows: &mut Buf<F::Challenge>,
        tables: usize,
        r: F::Challenge,
    ) -> Result<Pending<RoundValues<F>>> {
        const OP: &str = "sumcheck_fold";
        let half = check_rows(OP, rows.len(), tables)? / 2 * tables;
        let r = check_challenge::<F>(OP, r)?;
        let sums = with_tables!(tables, fold::<F>(&mut rows.data, r));
        rows.data[half..].iter_mut().zeroize();
        rows.data.truncate(half);
        Ok(ready::<F>(self, rows.lane, sums))
    }
}
