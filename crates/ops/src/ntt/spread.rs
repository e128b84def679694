//! One transform over several lanes.
//!
//! A vector is dealt to its shards like cards: element i of 2^k elements goes to shard i mod 2^m, where it is number
//! i div 2^m. So lie coefficients, and so lie values. A transform of such a vector exchanges its elements once: with
//! n = 2^k and L = 2^m, the shards' own transforms of n / L elements need nothing of each other, value v of shard l is then
//! element l of the transform of L elements that makes the values v, v + n/L, v + 2 n/L .., all of which belong
//! to shard v mod L. Each shard so sends n/L^2 elements to every other.
//!
//! Blocks of neighbours would not do: coefficients i and i + n/2 meet in the first step of a transform from natural
//! order, values j and j + n/2 come out of the last, and there would be an exchange before and one behind.

use super::{fft, log_size, Ntt, NttOp, Order};
use crate::{Error, NttField, Result};

/// The most shards of a vector.
pub const MAX_SHARDS: usize = 16;

/// How a vector of 2^`log_n` elements lies in 2^`log_shards` shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spread {
    /// How many elements there are, as a power of two; no fewer than shards.
    pub log_n: u32,
    /// How many shards there are, as a power of two.
    pub log_shards: u32,
}

impl Spread {
    /// That of shards of these lengths, for a transform over this coset.
    ///
    /// # Errors
    /// There is no such transform: the number of shards is no power of two up to [`MAX_SHARDS`], or they are not of
    /// one length, or that length is no power of two, or there is no root of unity for all of them together.
    pub fn of<F: NttField>(lengths: impl ExactSizeIterator<Item = usize>, op: &NttOp<F::Element>) -> Result<Self> {
        Spread::of_lengths("ntt", lengths, |len| log_size::<F>(len, 1, op.coset))
    }

    /// That of shards of complex numbers of these lengths.
    ///
    /// # Errors
    /// As [`Spread::of`].
    pub fn of_complex(lengths: impl ExactSizeIterator<Item = usize>) -> Result<Self> {
        Spread::of_lengths(fft::OP, lengths, |len| fft::log_size(len, 1))
    }

    fn of_lengths(
        op: &'static str,
        mut lengths: impl ExactSizeIterator<Item = usize>,
        log_size: impl FnOnce(usize) -> Result<u32>,
    ) -> Result<Self> {
        let count = lengths.len();
        if !count.is_power_of_two() || count > MAX_SHARDS {
            return Err(Error::invalid(op, format!("{count} shards; expected a power of two up to {MAX_SHARDS}")));
        }
        let first = lengths.next().unwrap_or(0);
        if let Some(other) = lengths.find(|&len| len != first) {
            return Err(Error::invalid(op, format!("shards of {first} and of {other} elements; expected one length")));
        }
        let log_n = log_size(first.saturating_mul(count))?;
        Ok(Spread { log_n, log_shards: count.ilog2() })
    }

    /// Number of shards.
    pub fn shards(&self) -> usize {
        1 << self.log_shards
    }

    /// Elements of a shard.
    pub fn len(&self) -> usize {
        1 << (self.log_n - self.log_shards)
    }

    /// Never: a shard has at least one element.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The element that stands at `place` of `shard` where shards are in this order.
    pub fn index(&self, order: Order, shard: usize, place: usize) -> usize {
        crate::naive::place(order, place, self.log_n - self.log_shards) << self.log_shards | shard
    }

    /// The shards, in this order, of a vector in natural order.
    pub fn deal<T: Copy>(&self, order: Order, vector: &[T]) -> Vec<Vec<T>> {
        let shard = |s| (0..self.len()).map(|place| vector[self.index(order, s, place)]).collect();
        (0..self.shards()).map(shard).collect()
    }

    /// The vector in natural order of which these are the shards.
    pub fn collect<T: Copy + Default>(&self, order: Order, shards: &[impl AsRef<[T]>]) -> Vec<T> {
        let mut vector = vec![T::default(); 1 << self.log_n];
        for (s, shard) in shards.iter().enumerate() {
            for (place, &x) in shard.as_ref().iter().enumerate() {
                vector[self.index(order, s, place)] = x;
            }
        }
        vector
    }
}

/// Transforms over the field `F` of one vector that is spread over lanes.
pub trait NttSpread<F: NttField>: Ntt<F> {
    /// Transforms in place the vector of which `shards` are the shards ([`Spread`]). `op` says in which order each
    /// of them is: place j of a shard is that of its element number j, or of number bitrev(j). Shards may lie on any
    /// lanes; on as many as there are shards they are worked on side by side.
    ///
    /// # Errors
    /// [`Spread::of`] finds no such transform; the shift is zero; lanes cannot reach each other's memory; the device
    /// failed. After a failure of the device the contents are undefined.
    fn ntt_spread(&self, shards: &mut [&mut Self::Buf<F::Element>], op: NttOp<F::Element>) -> Result<()>;

    /// Over how many lanes, a power of two, a transform of 2^`log_n` elements is to be spread to be done soonest. Small
    /// ones are fastest on one.
    fn ntt_lanes(&self, log_n: u32) -> usize;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bn254, Coset, Direction};

    fn op(coset: Coset) -> NttOp {
        NttOp { direction: Direction::Forward, coset, input: Order::Natural, output: Order::Natural }
    }

    fn of(lengths: &[usize], coset: Coset) -> Result<Spread> {
        Spread::of::<Bn254>(lengths.iter().copied(), &op(coset))
    }

    #[test]
    fn what_is_dealt_is_collected() {
        let vector: Vec<u32> = (100..132).collect();
        for log_shards in 0..=4 {
            let spread = Spread { log_n: 5, log_shards };
            for order in [Order::Natural, Order::BitReversed] {
                let shards = spread.deal(order, &vector);
                assert_eq!((shards.len(), shards[0].len()), (spread.shards(), spread.len()));
                assert_eq!(spread.collect(order, &shards), vector);
            }
        }
        let spread = Spread { log_n: 4, log_shards: 1 };
        let shards = spread.deal(Order::BitReversed, &(0..16).collect::<Vec<_>>());
        assert_eq!(shards, [vec![0, 8, 4, 12, 2, 10, 6, 14], vec![1, 9, 5, 13, 3, 11, 7, 15]]);
    }

    #[test]
    fn shards_must_fit_together() {
        assert_eq!(of(&[8; 4], Coset::Odd).unwrap(), Spread { log_n: 5, log_shards: 2 });
        assert_eq!(of(&[1 << 24; 16], Coset::Subgroup).unwrap().log_n, 28);
        for (lengths, coset) in [
            (&[][..], Coset::Subgroup),
            (&[8, 8, 8], Coset::Subgroup),
            (&[8, 4], Coset::Subgroup),
            (&[0, 0], Coset::Subgroup),
            (&[3, 3], Coset::Subgroup),
            (&[1; 32], Coset::Subgroup),
            (&[1 << 28; 2], Coset::Subgroup),
            (&[1 << 27; 2], Coset::Odd),
            (&[usize::MAX; 2], Coset::Subgroup),
            (&[1 << 63; 2], Coset::Subgroup),
        ] {
            assert!(matches!(of(lengths, coset), Err(Error::Invalid { .. })), "{lengths:?}");
        }
    }
}
