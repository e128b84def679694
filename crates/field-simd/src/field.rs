//! Vectors of numbers modulo the order of a curve's group, and their transforms.

use crate::fp::Fp;
use crate::ntt::{self, from_words, read, to_words, write, Place, Row};
use crate::prime::{Bls12381Fr, Bn254Fr, Prime};
use crate::Avx512;
use std::collections::TryReserveError;
use zeroize::Zeroizing;

/// Limbs of a number of 256 bits.
const L: usize = 5;

/// Numbers in rows of eight, x 2^260 each, as transforms take their roots of unity and products their known factors.
pub struct Wide(Vec<Row<L>>);

impl std::fmt::Debug for Wide {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Wide({} numbers)", 8 * self.0.len())
    }
}

impl Wide {
    /// Bytes of a number.
    pub const BYTES: usize = size_of::<[u64; L]>();

    /// How many there are.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        8 * self.0.len()
    }
}

/// A scalar field. Numbers are four words of 64 bits, least significant first, in Montgomery form with 2^256, below the
/// modulus before and after. Lengths count words; what is beyond the last eight numbers is left as it is.
pub trait Field: Send + Sync {
    /// Numbers as known factors.
    fn widen(&self, processor: Avx512, numbers: &[u64]) -> Wide;

    /// Roots of unity as [`Field::frequency`] takes them, of the upper half of them, a power of two and eight or more.
    ///
    /// # Errors
    /// There is no memory for them.
    fn roots(&self, processor: Avx512, upper: &[u64]) -> Result<Wide, TryReserveError>;

    /// a_i = a_i b_i
    fn mul(&self, processor: Avx512, a: &mut [u64], b: &[u64]);

    /// a_i = a_i b_i k, where there are as many b as a.
    fn scale(&self, processor: Avx512, a: &mut [u64], b: Option<&Wide>, k: &[u64; 4]);

    /// All levels of a transform of eight or more numbers in natural order, a power of two of them, to bit-reversed order.
    /// Number h + j of `roots` is w^j, for w the primitive 2h-th root of unity; there are 16 or more.
    fn frequency(&self, processor: Avx512, numbers: &mut [u64], roots: &Wide);

    /// All levels of a transform from bit-reversed to natural order, otherwise as [`Field::frequency`]. `odd`: over the
    /// odd powers of the root of twice the order, for which there are twice as many roots.
    fn time(&self, processor: Avx512, numbers: &mut [u64], roots: &Wide, odd: bool);

    /// The levels of a transform whose numbers meet at multiples of `stride`, with `columns` of each row: those of
    /// `frequency`, or of `time` with its `odd` if it is said. A power of two of rows; row r begins at number
    /// r `stride` + `column`, and has a multiple of eight numbers, as `stride` and `column` are.
    fn columns(&self, processor: Avx512, rows: &mut [&mut [u64]], at: Columns<'_>);
}

/// Where in a transform some columns stand.
#[derive(Clone, Copy, Debug)]
pub struct Columns<'a> {
    /// As [`Field::frequency`] takes them.
    pub roots: &'a Wide,
    /// Numbers from a row to the next.
    pub stride: usize,
    /// The first column.
    pub column: usize,
    /// `None` by [`Field::frequency`], else by [`Field::time`], and whether it is odd.
    pub time: Option<bool>,
}

fn rows_of(numbers: usize) -> Zeroizing<Vec<Row<L>>> {
    Zeroizing::new(vec![[[0; 8]; L]; numbers])
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn widen<M: Prime<L>>(numbers: &[u64]) -> Wide {
    let (eights, _) = numbers.as_chunks();
    let mut rows = vec![[[0; 8]; L]; eights.len()];
    for (row, eight) in rows.iter_mut().zip(eights) {
        write(row, from_words::<M, L>(eight).mul(Fp::same(M::FROM_WORDS)).reduced());
    }
    Wide(rows)
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn roots<M: Prime<L>>(upper: &[u64]) -> Result<Wide, TryReserveError> {
    let (eights, _) = upper.as_chunks();
    let mut rows = Vec::new();
    rows.try_reserve_exact(2 * eights.len())?;
    rows.resize(2 * eights.len(), [[0; 8]; L]);
    for (row, eight) in rows[eights.len()..].iter_mut().zip(eights) {
        write(row, from_words::<M, L>(eight).mul(Fp::same(M::FROM_WORDS)).reduced());
    }
    // Number h + j is w^j, and w the square of the root for 2h: it is number 2h + 2j.
    for k in (1..8 * eights.len()).rev() {
        for limb in 0..L {
            rows[k / 8][limb][k % 8] = rows[2 * k / 8][limb][2 * k % 8];
        }
    }
    Ok(Wide(rows))
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn mul<M: Prime<L>>(a: &mut [u64], b: &[u64]) {
    let ((a, _), (b, _)) = (a.as_chunks_mut(), b.as_chunks());
    for (a, b) in a.iter_mut().zip(b) {
        let b = from_words::<M, L>(b).mul(Fp::same(M::FROM_WORDS));
        to_words(from_words::<M, L>(a).mul(b).reduced(), a);
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn scale<M: Prime<L>>(a: &mut [u64], b: Option<&Wide>, k: &[u64; 4]) {
    let mut eight = [0; 32];
    eight.as_chunks_mut().0.fill(*k);
    let k = from_words::<M, L>(&eight).mul(Fp::same(M::FROM_WORDS));
    for (i, a) in a.as_chunks_mut().0.iter_mut().enumerate() {
        let factor = b.map_or(k, |b| read::<M, L>(&b.0[i]).mul(k));
        to_words(from_words::<M, L>(a).mul(factor).reduced(), a);
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn whole<M: Prime<L>>(numbers: &mut [u64], roots: &Wide, time: Option<bool>) {
    let (eights, _) = numbers.as_chunks_mut();
    let mut rows = rows_of(eights.len());
    for (row, eight) in rows.iter_mut().zip(&*eights) {
        write(row, from_words::<M, L>(eight));
    }
    let place = Place { roots: &roots.0, stride: 8, column: 0, odd: time == Some(true) };
    match time {
        None => ntt::frequency::<M, L>(&mut rows, place, true),
        Some(_) => ntt::time::<M, L>(&mut rows, place, true),
    }
    for (row, eight) in rows.iter().zip(eights) {
        to_words(read::<M, L>(row).reduced(), eight);
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn columns<M: Prime<L>>(rows: &mut [&mut [u64]], at: Columns<'_>) {
    let eights = rows.first().map_or(0, |row| row.len() / 32);
    let mut own = rows_of(rows.len());
    for eight in 0..eights {
        let words = eight * 32..(eight + 1) * 32;
        for (own, row) in own.iter_mut().zip(&*rows) {
            if let Some(words) = row[words.clone()].first_chunk() {
                write(own, from_words::<M, L>(words));
            }
        }
        let (stride, column, odd) = (at.stride, at.column + 8 * eight, at.time == Some(true));
        let place = Place { roots: &at.roots.0, stride, column, odd };
        match at.time {
            None => ntt::frequency::<M, L>(&mut own, place, false),
            Some(_) => ntt::time::<M, L>(&mut own, place, false),
        }
        for (own, row) in own.iter().zip(&mut *rows) {
            if let Some(words) = row[words.clone()].first_chunk_mut() {
                to_words(read::<M, L>(own).reduced(), words);
            }
        }
    }
}

macro_rules! field {
    ($name:ident) => {
        impl Field for $name {
            fn widen(&self, _: Avx512, numbers: &[u64]) -> Wide {
                // SAFETY: there is an `Avx512` only where the processor has what the function needs.
                unsafe { widen::<Self>(numbers) }
            }
            fn roots(&self, _: Avx512, upper: &[u64]) -> Result<Wide, TryReserveError> {
                // SAFETY: there is an `Avx512` only where the processor has what the function needs.
                unsafe { roots::<Self>(upper) }
            }
            fn mul(&self, _: Avx512, a: &mut [u64], b: &[u64]) {
                // SAFETY: there is an `Avx512` only where the processor has what the function needs.
                unsafe { mul::<Self>(a, b) }
            }
            fn scale(&self, _: Avx512, a: &mut [u64], b: Option<&Wide>, k: &[u64; 4]) {
                // SAFETY: there is an `Avx512` only where the processor has what the function needs.
                unsafe { scale::<Self>(a, b, k) }
            }
            fn frequency(&self, _: Avx512, numbers: &mut [u64], roots: &Wide) {
                // SAFETY: there is an `Avx512` only where the processor has what the function needs.
                unsafe { whole::<Self>(numbers, roots, None) }
            }
            fn time(&self, _: Avx512, numbers: &mut [u64], roots: &Wide, odd: bool) {
                // SAFETY: there is an `Avx512` only where the processor has what the function needs.
                unsafe { whole::<Self>(numbers, roots, Some(odd)) }
            }
            fn columns(&self, _: Avx512, rows: &mut [&mut [u64]], at: Columns<'_>) {
                // SAFETY: there is an `Avx512` only where the processor has what the function needs.
                unsafe { columns::<Self>(rows, at) }
            }
        }
    };
}
field!(Bn254Fr);
field!(Bls12381Fr);
