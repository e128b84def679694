//! Rounds of a sumcheck, by all threads.

use super::{Buf, Cpu};
use crate::sumcheck::{add_products, check_challenge, check_columns, check_tables, RoundValues, TABLES_MAX};
use crate::{memory, Buffer, Lane, Pending, Result, Sumcheck, SumcheckField};
use ark_ff::{AdditiveGroup, Field};
use rayon::prelude::*;

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
    mut store: impl FnMut(usize, [F::Challenge; 2]),
) {
    (0..D).for_each(|j| store(j, [F::challenge(low[j]), F::challenge(high[j])]));
    add_products(sums, low, std::array::from_fn(|j| high[j] - low[j]), false);
}

/// The D columns of `columns`, each cut to its first `count` elements.
fn columns<T, const D: usize>(columns: &mut [T], count: usize) -> [&mut [T]; D] {
    let stride = columns.len() / D;
    let mut columns = columns.chunks_exact_mut(stride);
    std::array::from_fn(|_| columns.next().map_or(&mut [][..], |column| &mut column[..count]))
}

/// Pieces of all columns at the same places: of each column one of `GRAIN` elements, or fewer at the end.
fn pieces<P, const D: usize>(mut columns: [impl Iterator<Item = P>; D], count: usize) -> Vec<[P; D]> {
    let piece = |column: &mut _| Iterator::next(column);
    let pieces = (0..count.div_ceil(GRAIN)).map(|_| {
        let of_all: Vec<P> = columns.iter_mut().filter_map(piece).collect();
        of_all.try_into().ok()
    });
    pieces.map_while(|pieces| pieces).collect()
}

/// Binds tables and stores columns of half as many elements.
fn bind<F: SumcheckField, const D: usize>(
    tables: &[&[F::Element]],
    to: &mut [F::Challenge],
    r: F::Extension,
) -> Sums<F::Extension> {
    let quarter = tables[0].len() / 4;
    let bound = |j: usize, i: usize| {
        let (low, high) = (F::value(tables[j][i]), F::value(tables[j][i + 2 * quarter]));
        F::scaled(r, high - low) + F::lift(low)
    };
    let halves = columns::<_, D>(to, 2 * quarter).map(|column| {
        let (low, high) = column.split_at_mut(quarter);
        low.chunks_mut(GRAIN).zip(high.chunks_mut(GRAIN))
    });
    let piece = |(piece, mut to): (usize, [(&mut [_], &mut [_]); D])| {
        let mut sums = [F::Extension::ZERO; TABLES_MAX + 1];
        for i in 0..to[0].0.len() {
            let at = piece * GRAIN + i;
            let pair = [at, at + quarter].map(|at| std::array::from_fn(|j| bound(j, at)));
            finish::<F, D>(&mut sums, pair, |j, pair| [to[j].0[i], to[j].1[i]] = pair);
        }
        sums
    };
    let pieces = pieces(halves, quarter);
    pieces.into_par_iter().enumerate().map(piece).reduce(|| [F::Extension::ZERO; TABLES_MAX + 1], plus)
}

/// A piece of each quarter of a column: the first two become what is bound, the other two are only read.
type Quarters<'a, T> = ((&'a mut [T], &'a mut [T]), (&'a [T], &'a [T]));

/// Binds columns in place.
fn fold<F: SumcheckField, const D: usize>(
    all: &mut [F::Challenge],
    count: usize,
    r: F::Extension,
) -> Sums<F::Extension> {
    let quarter = count / 4;
    let quarters = columns::<_, D>(all, count).map(|column| {
        let (bound, above) = column.split_at_mut(2 * quarter);
        let (low, high) = bound.split_at_mut(quarter);
        let (above_low, above_high) = above.split_at(quarter);
        let written = low.chunks_mut(GRAIN).zip(high.chunks_mut(GRAIN));
        written.zip(above_low.chunks(GRAIN).zip(above_high.chunks(GRAIN)))
    });
    let piece = |mut quarters: [Quarters<'_, F::Challenge>; D]| {
        let mut sums = [F::Extension::ZERO; TABLES_MAX + 1];
        for i in 0..quarters[0].0 .0.len() {
            let line = |x: F::Challenge, above: F::Challenge| {
                let x = F::extension(x);
                x + r * (F::extension(above) - x)
            };
            let low = std::array::from_fn(|j| line(quarters[j].0 .0[i], quarters[j].1 .0[i]));
            let high = std::array::from_fn(|j| line(quarters[j].0 .1[i], quarters[j].1 .1[i]));
            finish::<F, D>(&mut sums, [low, high], |j, pair| {
                let to = &mut quarters[j].0;
                [to.0[i], to.1[i]] = pair;
            });
        }
        sums
    };
    let pieces = pieces(quarters, quarter);
    pieces.into_par_iter().map(piece).reduce(|| [F::Extension::ZERO; TABLES_MAX + 1], plus)
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
        let mut columns = self.buf(lane, memory::filled(OP, len, F::Challenge::default())?);
        let sums = with_tables!(tables.len(), bind::<F>(&tables, &mut columns.data, r));
        Ok((columns, ready::<F>(self, lane, sums)))
    }

    fn sumcheck_fold(
        &self,
        columns: &mut Buf<F::Challenge>,
        tables: usize,
        count: usize,
        r: F::Challenge,
    ) -> Result<Pending<RoundValues<F>>> {
        const OP: &str = "sumcheck_fold";
        check_columns(OP, columns.len(), tables, count, 4)?;
        let r = check_challenge::<F>(OP, r)?;
        let (lane, columns) = (columns.lane, &mut columns.data[..]);
        Ok(ready::<F>(self, lane, with_tables!(tables, fold::<F>(columns, count, r))))
    }

    fn sumcheck_take(
        &self,
        columns: &Buf<F::Challenge>,
        tables: usize,
        count: usize,
    ) -> Result<Pending<Vec<F::Challenge>>> {
        const OP: &str = "sumcheck_take";
        let stride = check_columns(OP, columns.len(), tables, count, 1)?;
        let mut taken = memory::reserve(OP, tables * count)?;
        columns.as_slice().chunks_exact(stride).for_each(|column| taken.extend_from_slice(&column[..count]));
        Ok(self.handed(columns.lane, size_of_val(&taken[..]), taken))
    }
}
