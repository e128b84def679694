//! Discrete Fourier transforms. A vector is put into bit-reversed order and goes through the butterflies of [`decimate_time`]. One that is spread
//! over lanes goes through the same ones: the first levels are those of the shards by themselves, the others meet after the exchange. So the
//! results are the same bytes on any number of lanes.

use super::spread::exchange;
use super::{decimate_time, reverse_bits, Numbers, Roots, Table, CHUNK};
use crate::cpu::{Buf, Cpu};
use crate::ntt::fft::{log_size, root, Complex, OP};
use crate::{Direction, Fft, Lane, Order, Result, Spread};
use rayon::prelude::*;
use std::marker::PhantomData;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Complex numbers as what butterflies calculate with.
struct Of<T>(PhantomData<T>);

impl<T: Complex> Numbers for Of<T> {
    type Stored = T;
    type Value = T;

    #[inline]
    fn stored(x: T) -> T {
        x
    }
    #[inline]
    fn loaded(x: T) -> T {
        x
    }
}

impl Roots {
    fn complex<T: Complex>(&self, log_n: u32) -> Result<Arc<Table<T>>> {
        self.get_or_make::<Of<T>>(log_n, || {
            let fill = |upper: &mut [T]| {
                upper.par_iter_mut().with_min_len(CHUNK).enumerate().for_each(|(i, w)| *w = root(i as u64, log_n));
                Ok(())
            };
            Ok(Table { elements: Self::make(OP, log_n, fill)?, wide: None })
        })
    }
}

/// The inverse is the conjugate of the forward transform of the conjugates, divided by n: what goes in.
fn before<T: Complex>(data: &mut [T], direction: Direction) {
    if direction == Direction::Inverse {
        data.par_iter_mut().with_min_len(CHUNK).for_each(|x| *x = x.conjugate());
    }
}

/// What comes out of a transform of 2^`log_n` numbers.
fn after<T: Complex>(data: &mut [T], direction: Direction, log_n: u32) {
    if direction == Direction::Inverse {
        let over_n = 1.0 / (1u64 << log_n) as f64;
        data.par_iter_mut().with_min_len(CHUNK).for_each(|x| *x = x.conjugate().times(over_n));
    }
}

/// The transform of the numbers, from natural to natural order.
fn whole<T: Complex>(data: &mut [T], table: &Table<T>) {
    reverse_bits(data);
    decimate_time::<Of<T>>(data, &table.elements, false);
}

impl<T: Complex> Fft<T> for Cpu {
    fn fft_batch(&self, buf: &mut Buf<T>, count: usize, direction: Direction) -> Result<()> {
        let log_n = log_size(buf.data.len(), count)?;
        let table = self.roots.complex::<T>(log_n)?;
        buf.data.par_chunks_mut(1 << log_n).for_each(|data| {
            before(data, direction);
            whole(data, &table);
            after(data, direction, log_n);
        });
        Ok(())
    }

    fn fft_spread(&self, shards: &mut [&mut Buf<T>], direction: Direction) -> Result<()> {
        let spread = Spread::of_complex(shards.iter().map(|shard| shard.data.len()))?;
        let (log_n, count) = (spread.log_n, spread.shards());
        if spread.len() < count {
            // Values of one transform across the shards belong to several of them.
            let parts: Vec<&[T]> = shards.iter().map(|shard| shard.as_slice()).collect();
            let mut all = self.buf(Lane(0), spread.collect(Order::Natural, &parts));
            self.fft(&mut all, direction)?;
            let dealt = spread.deal(Order::Natural, &all.data).into_iter().map(Zeroizing::new);
            shards.iter_mut().zip(dealt).for_each(|(shard, dealt)| shard.data.copy_from_slice(&dealt));
            return Ok(());
        }
        let table = self.roots.complex::<T>(log_n)?;
        for shard in shards.iter_mut() {
            before(&mut shard.data, direction);
            whole(&mut shard.data, &table);
        }
        exchange(shards);
        // Shard s has, from each shard in turn, the values number s, s + count, s + 2 count .. of its transform.
        let columns = spread.len() / count;
        for (s, shard) in shards.iter_mut().enumerate() {
            let data = &shard.data;
            let column = |c: usize| {
                let mut column: Vec<T> = (0..count).map(|from| data[from * columns + c]).collect();
                reverse_bits(&mut column);
                across(&mut column, &table.elements, s + count * c, spread.len());
                column
            };
            let all: Vec<Vec<T>> = (0..columns).into_par_iter().with_min_len(64).map(column).collect();
            for (c, column) in all.into_iter().map(Zeroizing::new).enumerate() {
                column.iter().enumerate().for_each(|(t, &x)| shard.data[t * columns + c] = x);
            }
            after(&mut shard.data, direction, log_n);
        }
        Ok(())
    }
}

/// The last levels of a transform, whose blocks were so far of `len` numbers, for those of the same number in each block.
fn across<T: Complex>(column: &mut [T], table: &[T], number: usize, len: usize) {
    let mut half = 1;
    while half < column.len() {
        for blocks in column.chunks_exact_mut(2 * half) {
            let (lo, hi) = blocks.split_at_mut(half);
            for (m, (x, y)) in lo.iter_mut().zip(hi).enumerate() {
                let product = *y * table[half * len + m * len + number];
                (*x, *y) = (*x + product, *x - product);
            }
        }
        half *= 2;
    }
}
