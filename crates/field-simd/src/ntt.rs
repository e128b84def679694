//! Transforms of radix 2 of numbers modulo p, eight butterflies at a time.
//!
//! The numbers are rows of eight. A level of distance h adds and subtracts rows that are h / stride rows apart; the last
//! three levels, or the first, are within the rows. Between levels numbers are below 4p (D. Harvey, "Faster arithmetic for
//! number-theoretic transforms").

use crate::fp::Fp;
use crate::prime::Prime;
use crate::words::{gather_four, join, load, scatter_four, split, store, V};
use core::arch::x86_64::*;

/// Limbs of eight numbers.
pub(crate) type Row<const L: usize> = [[u64; 8]; L];

#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn read<M: Prime<L>, const L: usize>(row: &Row<L>) -> Fp<M, L> {
    let mut out = [_mm512_setzero_si512(); L];
    for i in 0..L {
        out[i] = load(&row[i]);
    }
    Fp::of(out)
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn write<M, const L: usize>(row: &mut Row<L>, x: Fp<M, L>) {
    for i in 0..L {
        store(&mut row[i], x.0[i]);
    }
}

/// Eight numbers of four words each.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn from_words<M: Prime<L>, const L: usize>(words: &[u64; 32]) -> Fp<M, L> {
    Fp::of(split(&gather_four(words)))
}

/// Numbers below p to four words each.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn to_words<M, const L: usize>(x: Fp<M, L>, to: &mut [u64; 32]) {
    let mut words = [_mm512_setzero_si512(); 4];
    join(&x.0, &mut words);
    scatter_four(words, to);
}

/// By what butterflies multiply, and where in the whole transform the rows stand.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a, const L: usize> {
    /// Number h + j of the roots, eight in a row: w^j for w the primitive 2h-th root of unity.
    pub(crate) roots: &'a [Row<L>],
    /// Elements from a row to the next: 8 where they follow each other.
    pub(crate) stride: usize,
    /// The first element of row 0 within a stride.
    pub(crate) column: usize,
    /// Whether to transform over the odd powers of the root of twice the order.
    pub(crate) odd: bool,
}

impl<const L: usize> Place<'_, L> {
    /// The factors of the butterflies of row number `j`, counted from the first of their block, of those `distance` rows apart.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn root<M: Prime<L>>(&self, distance: usize, j: usize) -> Fp<M, L> {
        let at = ((distance + j) * self.stride + self.column) / 8;
        if !self.odd {
            return read(&self.roots[at]);
        }
        let (a, b): (Fp<M, L>, Fp<M, L>) = (read(&self.roots[2 * at]), read(&self.roots[2 * at + 1]));
        let odd = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
        let mut out = a.0;
        for i in 0..L {
            out[i] = _mm512_permutex2var_epi64(a.0[i], odd, b.0[i]);
        }
        Fp::of(out)
    }

    /// The factors within a row, at distance 2^`log`: 1 for the first of two.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn inner<M: Prime<L>>(&self, log: usize) -> Fp<M, L> {
        let (a, b): (Fp<M, L>, Fp<M, L>) = (read(&self.roots[0]), read(&self.roots[1]));
        let index = match (log, self.odd) {
            (0, false) => [1; 8],
            (1, false) => [2, 3, 2, 3, 2, 3, 2, 3],
            (_, false) => [4, 5, 6, 7, 4, 5, 6, 7],
            (0, true) => [3; 8],
            (1, true) => [5, 7, 5, 7, 5, 7, 5, 7],
            (_, true) => [9, 11, 13, 15, 9, 11, 13, 15],
        };
        let index = load(&index);
        let mut out = a.0;
        for i in 0..L {
            out[i] = _mm512_permutex2var_epi64(a.0[i], index, b.0[i]);
        }
        Fp::choose(SECOND[log], Fp::same(M::ONE), Fp::of(out))
    }
}

/// The second ones of two at distance 1, 2 and 4.
const SECOND: [__mmask8; 3] = [0b1010_1010, 0b1100_1100, 0b1111_0000];

/// Each number in the place of the one at distance 2^`log`.
#[inline]
#[target_feature(enable = "avx512f")]
fn swapped<M: Prime<L>, const L: usize>(x: Fp<M, L>, log: usize) -> Fp<M, L> {
    let swap = |v: V| match log {
        0 => _mm512_permutex_epi64::<0xb1>(v),
        1 => _mm512_shuffle_i64x2::<0xb1>(v, v),
        _ => _mm512_shuffle_i64x2::<0x4e>(v, v),
    };
    let mut out = x.0;
    for v in &mut out {
        *v = swap(*v);
    }
    Fp::of(out)
}

/// Two rows of which none is the other.
#[inline]
fn two<T>(rows: &mut [T], first: usize, second: usize) -> Option<(&mut T, &mut T)> {
    let (low, high) = rows.split_at_mut_checked(second)?;
    Some((low.get_mut(first)?, high.first_mut()?))
}

/// Natural to bit-reversed order: (x, y) -> (x + y, (x - y) w), greatest distance first.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(crate) fn frequency<M: Prime<L>, const L: usize>(rows: &mut [Row<L>], place: Place<'_, L>, inner: bool) {
    let mut distance = rows.len() / 2;
    while distance > 0 {
        for start in (0..rows.len()).step_by(2 * distance) {
            for j in 0..distance {
                let Some((lo, hi)) = two(rows, start + j, start + j + distance) else { continue };
                let (x, y): (Fp<M, L>, Fp<M, L>) = (read(lo), read(hi));
                write(lo, x.plus(y).less(M::P4).carried());
                write(hi, x.minus(y).plus(Fp::same(M::P4)).carried().mul(place.root(distance, j)));
            }
        }
        distance /= 2;
    }
    if inner {
        let (four, two) = (place.inner(2), place.inner(1));
        for row in rows {
            let mut x: Fp<M, L> = read(row);
            for (log, root) in [(2, four), (1, two)] {
                x = add_or_subtract(x, log, M::P4).carried().mul(root);
            }
            write(row, add_or_subtract(x, 0, M::P2).carried());
        }
    }
}

/// x + y in the first places, x - y + k in the second.
#[inline]
#[target_feature(enable = "avx512f")]
fn add_or_subtract<M: Prime<L>, const L: usize>(x: Fp<M, L>, log: usize, k: [u64; L]) -> Fp<M, L> {
    let other = swapped(x, log);
    Fp::choose(SECOND[log], x.plus(other), other.minus(x).plus(Fp::same(k)))
}

/// Bit-reversed to natural order: (x, y) -> (x + y w, x - y w), least distance first.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(crate) fn time<M: Prime<L>, const L: usize>(rows: &mut [Row<L>], place: Place<'_, L>, inner: bool) {
    if inner {
        let roots = [place.inner(0), place.inner(1), place.inner(2)];
        for row in &mut *rows {
            let mut x: Fp<M, L> = read(row);
            for (log, root) in roots.into_iter().enumerate() {
                // Numbers below 2p: a factor 1 reduces, too.
                x = add_or_subtract(x.mul(root), log, M::P2).carried();
            }
            write(row, x);
        }
    }
    let mut distance = 1;
    while distance < rows.len() {
        for start in (0..rows.len()).step_by(2 * distance) {
            for j in 0..distance {
                let Some((lo, hi)) = two(rows, start + j, start + j + distance) else { continue };
                let (x, y): (Fp<M, L>, Fp<M, L>) = (read(lo), read(hi));
                let (x, y) = (x.less(M::P2), y.mul(place.root(distance, j)));
                write(lo, x.plus(y).carried());
                write(hi, x.minus(y).plus(Fp::same(M::P2)).carried());
            }
        }
        distance *= 2;
    }
}
