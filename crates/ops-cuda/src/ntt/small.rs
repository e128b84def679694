//! Transforms over small fields, of batches.
//!
//! A transform is one to four passes over memory (native/src/ntt/small.cuh). Factors between passes are computed on the
//! way; a coset's are among them where the transform is forward. Over a coset the inverse takes one pass more.

use super::OP;
use crate::backend::{Cuda, CudaBuf};
use crate::ffi;
use crate::lane::LaneCtx;
use ark_ff::{AdditiveGroup, FftField, Field};
use std::collections::hash_map::{Entry, HashMap};
use std::sync::PoisonError;
use tandem_cuda::DeviceBuffer;
use tandem_ops::ntt::log_size;
use tandem_ops::{
    BabyBear, Buffer, Coset, Direction, Error, FieldId, Goldilocks, Ntt, NttField, NttOp, Order, Result, Unaligned,
};

const MIN_BITS: u32 = ffi::TANDEM_NTT_SMALL_MIN_LOG_ROWS as u32;
const MAX_BITS: u32 = ffi::TANDEM_NTT_SMALL_MAX_LOG_ROWS as u32;

/// A field of one or two words.
trait Small: NttField {
    /// An element as an argument of a launcher.
    fn word(x: Self::Element) -> u64;
}

impl Small for Goldilocks {
    fn word(x: Goldilocks) -> u64 {
        x.0
    }
}

impl Small for BabyBear {
    fn word(x: BabyBear) -> u64 {
        x.0.into()
    }
}

macro_rules! small {
    ($field:ident) => {
        impl Ntt<$field> for Cuda {
            fn ntt_batch(&self, data: &mut CudaBuf<$field>, count: usize, op: NttOp<$field>) -> Result<()> {
                ntt_batch::<$field>(self, data, count, op)
            }
        }
    };
}
small!(Goldilocks);
small!(BabyBear);

/// Bits of the places that a pass goes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pass {
    low: u32,
    log_rows: u32,
}

/// The passes of vectors of 2^`log_n` elements, no fewer than 2^[`MIN_BITS`]: from the upper bits to the lower ones, or the
/// other way if the input is in bit-reversed order.
fn passes(log_n: u32, reversed: bool) -> Vec<Pass> {
    // Two passes of 2^17 or 2^18 elements have blocks for a third of the GPU.
    let count = if (17..=18).contains(&log_n) { 3 } else { log_n.div_ceil(MAX_BITS) };
    let mut done = 0;
    let pass = |i| {
        let log_rows = log_n / count + u32::from(i < log_n % count);
        done += log_rows;
        Pass { low: if reversed { done - log_rows } else { log_n - done }, log_rows }
    };
    (0..count).map(pass).collect()
}

/// How many stages the rounds of a pass have; as in native/src/ntt/small.cuh.
fn rounds(log_rows: u32) -> &'static [u32] {
    match log_rows {
        0..=4 => &[4],
        5 => &[3, 2],
        6 => &[3, 3],
        7 => &[4, 3],
        8 => &[4, 4],
        _ => &[3, 3, 3],
    }
}

/// The tables of one GPU. They are roots of unity: nothing secret.
#[derive(Default)]
pub(crate) struct SmallTables(HashMap<FieldId, FieldTables>);

/// What every transform over a field needs; words.
struct FieldTables {
    /// Powers of the root of unity of the highest order: the first 2^split, then every 2^split-th.
    powers: DeviceBuffer<u32>,
    /// The factors between the rounds of passes, of forward and inverse transforms; those of a pass of r bits from 2 * 2^r on.
    stages: [DeviceBuffer<u32>; 2],
}

/// Half the bits of an exponent of the root of the highest order.
fn split<F: NttField>() -> u32 {
    F::Ark::TWO_ADICITY.div_ceil(2)
}

/// Words of an element.
fn words<F: NttField>() -> usize {
    size_of::<F::Element>() / size_of::<u32>()
}

/// The factors between the rounds of all passes.
fn stages<F: NttField>(inverse: bool) -> Option<Vec<F::Element>> {
    let mut table = vec![F::Element::default(); 4 << MAX_BITS];
    for log_rows in MIN_BITS..=MAX_BITS {
        let (mut at, mut left) = (2usize << log_rows, log_rows);
        let rounds = rounds(log_rows);
        for &h in &rounds[..rounds.len() - 1] {
            let root = F::root_of_unity(left)?;
            let root = if inverse { root.inverse()? } else { root };
            let below = left - h;
            for upper in 0..1u32 << h {
                let step = root.pow([u64::from(upper.reverse_bits() >> (u32::BITS - h))]);
                let mut factor = F::Ark::ONE;
                for _ in 0..1u32 << below {
                    table[at] = F::element(factor);
                    factor *= step;
                    at += 1;
                }
            }
            left = below;
        }
    }
    Some(table)
}

impl FieldTables {
    fn new<F: Small>(ctx: &LaneCtx) -> Result<Self> {
        let none = || Error::invalid(OP, format!("{} has no root of unity", F::FIELD));
        let root = F::root_of_unity(F::Ark::TWO_ADICITY).ok_or_else(none)?;
        let powers = powers::<F>(ctx, root, split::<F>())?;
        let upload = |inverse| {
            let table = stages::<F>(inverse).ok_or_else(none)?;
            let mut on_device = ctx.alloc_public::<u32>(OP, table.len() * words::<F>())?;
            ctx.upload(OP, &mut on_device, 0, Unaligned::from(bytemuck::cast_slice::<_, u32>(&table)))?;
            Ok(on_device)
        };
        Ok(FieldTables { powers, stages: [upload(false)?, upload(true)?] })
    }
}

/// out_i = base^(step i) for i below `count`, where `out` has so many elements from `at` on.
fn write_powers<F: Small>(
    ctx: &LaneCtx,
    out: &DeviceBuffer<u32>,
    at: usize,
    base: F::Ark,
    step: u64,
    count: usize,
) -> Result<()> {
    let out = out.ptr().offset(at * words::<F>()).raw();
    let args = ffi::tandem_ntt_small_powers_args { out, base: F::word(F::element(base)), step, count: count as u64 };
    let launcher = match F::FIELD {
        FieldId::Goldilocks => ffi::tandem_ntt_small_powers_goldilocks,
        _ => ffi::tandem_ntt_small_powers_baby_bear,
    };
    // SAFETY: the caller's table has `count` elements there, on the lane whose stream this is.
    ctx.launch(OP, |stream| unsafe { launcher(&args, stream) })
}

/// The first 2^split powers of `base`, then every 2^split-th.
fn powers<F: Small>(ctx: &LaneCtx, base: F::Ark, split: u32) -> Result<DeviceBuffer<u32>> {
    let table = ctx.alloc_public::<u32>(OP, (2 << split) * words::<F>())?;
    write_powers::<F>(ctx, &table, 0, base, 1, 1 << split)?;
    write_powers::<F>(ctx, &table, 1 << split, base, 1 << split, 1 << split)?;
    Ok(table)
}

/// The vectors that are transformed.
struct Data<'a> {
    ctx: &'a LaneCtx,
    at: *mut u32,
    count: u64,
    log_n: u32,
}

fn ntt_batch<F: Small>(cuda: &Cuda, data: &CudaBuf<F::Element>, count: usize, op: NttOp<F::Element>) -> Result<()> {
    let log_n = log_size::<F>(data.len(), count, op.coset)?;
    let shift = match op.coset {
        Coset::Subgroup => F::Ark::ONE,
        Coset::Odd => F::root_of_unity(log_n + 1).unwrap_or(F::Ark::ZERO),
        Coset::Shift(g) => F::value(g),
    };
    let unshift = shift.inverse().ok_or_else(|| Error::invalid(OP, "the coset's shift is zero"))?;
    let ctx = cuda.lane(OP, data.lane())?;
    let data = Data { ctx, at: data.ptr().cast().raw(), count: count as u64, log_n };
    match op.direction {
        _ if log_n < MIN_BITS => data.tiny::<F>(&op, shift, unshift),
        Direction::Forward => data.transform::<F>(&op, shift),
        Direction::Inverse => {
            data.transform::<F>(&op, F::Ark::ONE)?;
            match op.coset {
                Coset::Subgroup => Ok(()),
                _ => data.scale::<F>(unshift, op.output),
            }
        }
    }
}

/// 1/n of an inverse transform, else 1.
fn scale_of<F: NttField>(log_n: u32, direction: Direction) -> F::Ark {
    match direction {
        Direction::Forward => F::Ark::ONE,
        Direction::Inverse => F::Ark::from(1u64 << log_n).inverse().unwrap_or(F::Ark::ZERO),
    }
}

impl Data<'_> {
    fn transform<F: Small>(&self, op: &NttOp<F::Element>, shift: F::Ark) -> Result<()> {
        let (ctx, log_n, reversed) = (self.ctx, self.log_n, op.input == Order::BitReversed);
        let (inverse, reorder) = (op.direction == Direction::Inverse, op.input == op.output);
        let passes = passes(log_n, reversed);
        let count = passes.len();
        // As in transforms over large fields: the last pass moves elements to other memory.
        let elements = (self.count as usize) << log_n;
        let other = match reorder && count > 1 {
            true => Some(ctx.alloc::<u32>(OP, elements * words::<F>())?),
            false => None,
        };
        let other_at = other.as_ref().map_or(self.at, |other| other.ptr().raw());
        let coset = match shift == F::Ark::ONE {
            true => None,
            false => Some(ctx.alloc_public::<u32>(OP, (count << MAX_BITS) * words::<F>())?),
        };
        let mut tables = ctx.ntt_small.lock().unwrap_or_else(PoisonError::into_inner);
        let tables = match tables.0.entry(F::FIELD) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(FieldTables::new::<F>(ctx)?),
        };
        let launcher = match F::FIELD {
            FieldId::Goldilocks => ffi::tandem_ntt_small_pass_goldilocks,
            _ => ffi::tandem_ntt_small_pass_baby_bear,
        };
        for (i, pass) in passes.iter().enumerate() {
            if let Some(coset) = &coset {
                let below = if reversed { log_n - pass.low - pass.log_rows } else { pass.low };
                write_powers::<F>(ctx, coset, i << MAX_BITS, shift, 1 << below, 1 << pass.log_rows)?;
            }
        }
        for (i, pass) in passes.iter().enumerate() {
            let last = i + 1 == count;
            let coset_at =
                coset.as_ref().map(|table| table.ptr().offset((i << MAX_BITS) * words::<F>()).raw().cast_const());
            let scale = if last { scale_of::<F>(log_n, op.direction) } else { F::Ark::ONE };
            let args = ffi::tandem_ntt_small_pass_args {
                input: if last { other_at } else { self.at },
                output: if i + 2 == count { other_at } else { self.at },
                powers: tables.powers.ptr().raw(),
                stages: tables.stages[usize::from(inverse)].ptr().offset((2 << pass.log_rows) * words::<F>()).raw(),
                coset: coset_at.unwrap_or(std::ptr::null()),
                scale: F::word(F::element(scale)),
                count: self.count,
                order_bits: F::Ark::TWO_ADICITY,
                split: split::<F>(),
                log_n,
                low: pass.low,
                log_rows: pass.log_rows,
                reversed: reversed.into(),
                inverse: inverse.into(),
                multiply: (i > 0 || coset.is_some() || scale != F::Ark::ONE).into(),
                reorder: (last && reorder).into(),
                last: last.into(),
                follows: (i > 0).into(),
            };
            // SAFETY: input and output hold `count` vectors of 2^log_n elements, the tables are those of the field and of
            // the pass, and all stay until the stream has done the pass.
            ctx.launch(OP, |stream| unsafe { launcher(&args, stream) })?;
        }
        Ok(())
    }

    /// Transforms vectors of fewer elements than a pass needs.
    fn tiny<F: Small>(&self, op: &NttOp<F::Element>, shift: F::Ark, unshift: F::Ark) -> Result<()> {
        let none = || Error::invalid(OP, format!("{} has no 2^{}-th root of unity", F::FIELD, self.log_n));
        let root = F::root_of_unity(self.log_n).ok_or_else(none)?;
        let (root, before, after) = match op.direction {
            Direction::Forward => (root, shift, F::Ark::ONE),
            Direction::Inverse => (root.inverse().ok_or_else(none)?, F::Ark::ONE, unshift),
        };
        let word = |x| F::word(F::element(x));
        let args = ffi::tandem_ntt_small_tiny_args {
            data: self.at,
            root: word(root),
            scale: word(scale_of::<F>(self.log_n, op.direction)),
            before: word(before),
            after: word(after),
            count: self.count,
            log_n: self.log_n,
            input_reversed: (op.input == Order::BitReversed).into(),
            output_reversed: (op.output == Order::BitReversed).into(),
        };
        let launcher = match F::FIELD {
            FieldId::Goldilocks => ffi::tandem_ntt_small_tiny_goldilocks,
            _ => ffi::tandem_ntt_small_tiny_baby_bear,
        };
        // SAFETY: the data are `count` vectors of 2^log_n elements on the lane whose stream this is.
        self.ctx.launch(OP, |stream| unsafe { launcher(&args, stream) })
    }

    /// Multiplies element i of each vector by base^i.
    fn scale<F: Small>(&self, base: F::Ark, order: Order) -> Result<()> {
        let split = self.log_n.div_ceil(2);
        let powers = powers::<F>(self.ctx, base, split)?;
        let args = ffi::tandem_ntt_small_scale_args {
            data: self.at,
            powers: powers.ptr().raw(),
            count: self.count,
            split,
            log_n: self.log_n,
            reversed: (order == Order::BitReversed).into(),
        };
        let launcher = match F::FIELD {
            FieldId::Goldilocks => ffi::tandem_ntt_small_scale_goldilocks,
            _ => ffi::tandem_ntt_small_scale_baby_bear,
        };
        // SAFETY: the data are `count` vectors of 2^log_n elements, the powers are enough for their indices, and are
        // freed in the stream's order.
        self.ctx.launch(OP, |stream| unsafe { launcher(&args, stream) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_cover_every_bit_once_and_blocks_have_neighbours() {
        for log_n in MIN_BITS..=32 {
            for reversed in [false, true] {
                let mut passes = passes(log_n, reversed);
                for pass in &passes {
                    assert!((MIN_BITS..=MAX_BITS).contains(&pass.log_rows), "2^{log_n}: {pass:?}");
                    assert!(pass.low == 0 || pass.low >= 5, "2^{log_n}: {pass:?}");
                    assert!(pass.log_rows == log_n || log_n - pass.log_rows >= 5, "2^{log_n}: {pass:?}");
                }
                if !reversed {
                    passes.reverse();
                }
                let end = passes.iter().fold(0, |at, pass| {
                    assert_eq!(pass.low, at, "2^{log_n}");
                    at + pass.log_rows
                });
                assert_eq!(end, log_n);
            }
        }
    }

    #[test]
    fn rounds_are_of_up_to_four_stages_and_make_a_pass() {
        for log_rows in MIN_BITS..=MAX_BITS {
            assert_eq!(rounds(log_rows).iter().sum::<u32>(), log_rows);
            assert!(rounds(log_rows).iter().all(|&h| h <= 4));
        }
    }
}
