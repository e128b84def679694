//! Transforms over small fields, of batches: the passes of [`super::passes`], and what only fields have. Over a coset the inverse takes one pass more.

use super::distributed::{distributed_plan, lanes_for, Bits};
use super::passes::{passes, split, words, Numbers, Work, BITS, MAX_BITS, MIN_BITS};
use super::plan::Pass;
use super::spread::{lanes_in_reach, Shards};
use super::{Launcher, Shape, OP};
use crate::backend::{Cuda, CudaBuf};
use crate::ffi;
use crate::lane::LaneCtx;
use crate::tuning::ntt::SMALL_SHARD_BYTES;
use ark_ff::{AdditiveGroup, FftField, Field};
use std::marker::PhantomData;
use std::sync::Arc;
use tandem_cuda::DeviceBuffer;
use tandem_ops::ntt::log_size;
use tandem_ops::{
    BabyBear, Backend, Buffer, Coset, Direction, Error, FieldId, Goldilocks, Ntt, NttField, NttOp, NttSpread, Order,
    Result, Spread,
};

/// A field of one or two words.
trait Small: NttField + Numbers<Stored = <Self as NttField>::Element> {
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
    ($field:ident, $twiddles:ident, $pass:ident, $spread:ident) => {
        impl Numbers for $field {
            type Stored = $field;
            const ORDER_BITS: u32 = <Self as NttField>::Ark::TWO_ADICITY;
            const TWIDDLES: Launcher<ffi::tandem_ntt_small_twiddles_args> = ffi::$twiddles;
            const PASS: Launcher<ffi::tandem_ntt_small_pass_args> = ffi::$pass;
            const SPREAD: Launcher<ffi::tandem_ntt_small_spread_args> = ffi::$spread;

            fn one() -> u64 {
                Self::word(Self::element(<Self as NttField>::Ark::ONE))
            }
            fn powers(ctx: &LaneCtx) -> Result<DeviceBuffer<u32>> {
                powers::<Self>(ctx, root::<Self>(Self::ORDER_BITS)?, split::<Self>())
            }
            fn table(places: &[(u64, u32)], inverse: bool) -> Result<Vec<Self>> {
                table::<Self>(places, inverse)
            }
        }

        impl Ntt<$field> for Cuda {
            fn ntt_batch(&self, data: &mut CudaBuf<$field>, count: usize, op: NttOp<$field>) -> Result<()> {
                ntt_batch::<$field>(self, data, count, op)
            }
        }

        impl NttSpread<$field> for Cuda {
            fn ntt_spread(&self, shards: &mut [&mut CudaBuf<$field>], op: NttOp<$field>) -> Result<()> {
                let spread = Spread::of::<$field>(shards.iter().map(|shard| shard.len()), &op)?;
                if let [only] = shards {
                    return Ntt::<$field>::ntt(self, only, op);
                }
                Shards::new(self, shards, spread)?.run(|shards| spread_over::<$field>(shards, &op))
            }

            fn ntt_lanes(&self, log_n: u32) -> usize {
                let elements = SMALL_SHARD_BYTES / size_of::<$field>();
                lanes_in_reach(self, lanes_for(log_n, self.lanes(), elements.ilog2()))
            }
        }
    };
}
small!(
    Goldilocks,
    tandem_ntt_small_twiddles_goldilocks,
    tandem_ntt_small_pass_goldilocks,
    tandem_ntt_small_spread_goldilocks
);
small!(
    BabyBear,
    tandem_ntt_small_twiddles_baby_bear,
    tandem_ntt_small_pass_baby_bear,
    tandem_ntt_small_spread_baby_bear
);

fn root<F: NttField>(log_n: u32) -> Result<F::Ark> {
    let none = || Error::invalid(OP, format!("{} has no 2^{log_n}-th root of unity", F::FIELD));
    F::root_of_unity(log_n).ok_or_else(none)
}

/// Powers of roots of unity, or of their inverses: of each place the exponent, and log2 of the order.
fn table<F: NttField>(places: &[(u64, u32)], inverse: bool) -> Result<Vec<F::Element>> {
    let power = |&(exponent, bits): &(u64, u32)| {
        let exponent = if inverse { (1 << bits) - exponent % (1 << bits) } else { exponent };
        Ok(F::element(root::<F>(bits)?.pow([exponent])))
    };
    places.iter().map(power).collect()
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

/// Powers of `shift` for the rows of each pass, by which coefficients are multiplied on the way: `below` of each pass are the bits of the index below
/// its rows.
fn coset<F: Small>(
    ctx: &LaneCtx,
    shift: F::Ark,
    passes: impl ExactSizeIterator<Item = (u32, Pass)>,
) -> Result<Option<DeviceBuffer<u32>>> {
    if shift == F::Ark::ONE {
        return Ok(None);
    }
    let table = ctx.alloc_public::<u32>(OP, (passes.len() << MAX_BITS) * words::<F>())?;
    for (i, (below, pass)) in passes.enumerate() {
        write_powers::<F>(ctx, &table, i << MAX_BITS, shift, 1 << below, 1 << pass.log_rows)?;
    }
    Ok(Some(table))
}

/// The vectors that are transformed.
struct Data<'a> {
    ctx: &'a LaneCtx,
    at: *mut u32,
    count: u64,
    log_n: u32,
}

/// The coset's shift, never zero, and its inverse.
fn shifts<F: Small>(coset: Coset<F::Element>, log_n: u32) -> Result<(F::Ark, F::Ark)> {
    let shift = match coset {
        Coset::Subgroup => F::Ark::ONE,
        Coset::Odd => F::root_of_unity(log_n + 1).unwrap_or(F::Ark::ZERO),
        Coset::Shift(g) => F::value(g),
    };
    let unshift = shift.inverse().ok_or_else(|| Error::invalid(OP, "the coset's shift is zero"))?;
    Ok((shift, unshift))
}

fn ntt_batch<F: Small>(cuda: &Cuda, data: &CudaBuf<F::Element>, count: usize, op: NttOp<F::Element>) -> Result<()> {
    let log_n = log_size::<F>(data.len(), count, op.coset)?;
    let (shift, unshift) = shifts::<F>(op.coset, log_n)?;
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

/// An element as an argument, unless it is 1.
fn argument<F: Small>(x: F::Ark) -> Option<u64> {
    (x != F::Ark::ONE).then(|| F::word(F::element(x)))
}

/// What the launchers of transforms by their definition take: the root, and of what powers multiply elements before and after.
fn ends<F: Small>(
    log_n: u32,
    direction: Direction,
    shift: F::Ark,
    unshift: F::Ark,
) -> Result<(F::Ark, F::Ark, F::Ark)> {
    let root = root::<F>(log_n)?;
    match direction {
        Direction::Forward => Ok((root, shift, F::Ark::ONE)),
        Direction::Inverse => Ok((root.inverse().unwrap_or(F::Ark::ZERO), F::Ark::ONE, unshift)),
    }
}

impl Data<'_> {
    fn transform<F: Small>(&self, op: &NttOp<F::Element>, shift: F::Ark) -> Result<()> {
        let (ctx, log_n, reversed) = (self.ctx, self.log_n, op.input == Order::BitReversed);
        let passes = passes(log_n, reversed, ctx.least_passes);
        let below = |&pass: &Pass| (if reversed { log_n - pass.low - pass.log_rows } else { pass.low }, pass);
        let work = Work::<F> {
            ctx,
            count: self.count,
            log_n,
            reversed,
            inverse: op.direction == Direction::Inverse,
            scale: argument::<F>(scale_of::<F>(log_n, op.direction)),
            coset: coset::<F>(ctx, shift, passes.iter().map(below))?,
            of: PhantomData,
        };
        work.run(&passes, self.at, op.input == op.output)
    }

    /// Transforms vectors of fewer elements than a pass needs.
    fn tiny<F: Small>(&self, op: &NttOp<F::Element>, shift: F::Ark, unshift: F::Ark) -> Result<()> {
        let (root, before, after) = ends::<F>(self.log_n, op.direction, shift, unshift)?;
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

/// A transform that is spread over lanes: the passes of [`super::distributed`], with twiddles, coset and 1/n as on one lane.
fn spread_over<F: Small>(shards: &mut Shards<'_, F::Element>, op: &NttOp<F::Element>) -> Result<()> {
    let Spread { log_n, log_shards } = shards.spread;
    let inverse = op.direction == Direction::Inverse;
    let (shift, unshift) = shifts::<F>(op.coset, log_n)?;
    let shape = Shape { log_n, direction: op.direction, odd: false, input: op.input, output: op.output };
    let memory = shards.shards.iter().map(|shard| shard.ctx.properties.memory_bytes).min().unwrap_or(0);
    let Some(plan) = distributed_plan(Bits { passes: shards.least_passes(), ..BITS }, &shape, log_shards, memory)
    else {
        return few::<F>(shards, op, shift, unshift);
    };
    let shard_bits = log_n - log_shards;
    let (shift, unshift) = if inverse { (F::Ark::ONE, unshift) } else { (shift, F::Ark::ONE) };
    // Element j of shard s is element s + 2^log_shards j, and is divided by that power of the shift: the part of s with 1/n, ...
    let contexts: Vec<_> = shards.shards.iter().map(|shard| shard.ctx.clone()).collect();
    let work = |(shard, ctx)| {
        let below = plan.passes.iter().map(|step| (plan.below(step, log_n, log_shards), step.pass));
        Ok(Work::<F> {
            ctx,
            count: 1,
            log_n: shard_bits,
            reversed: plan.reversed,
            inverse,
            scale: argument::<F>(scale_of::<F>(log_n, op.direction) * unshift.pow([shard])),
            coset: coset::<F>(ctx, shift, below)?,
            of: PhantomData,
        })
    };
    let works = (0..).zip(contexts.iter().map(Arc::as_ref)).map(work).collect::<Result<Vec<_>>>()?;
    shards.passes(&plan, |shards, i, shard| works[shard].spread(shards, &plan, i, shard))?;
    // ... that of j in a pass of its own.
    if unshift != F::Ark::ONE {
        let step = unshift.pow([1 << log_shards]);
        for shard in &shards.shards {
            let data = Data { ctx: &shard.ctx, at: shard.data(), count: 1, log_n: shard_bits };
            data.scale::<F>(step, op.output)?;
        }
    }
    Ok(())
}

/// Fewer elements than two passes need.
fn few<F: Small>(
    shards: &mut Shards<'_, F::Element>,
    op: &NttOp<F::Element>,
    shift: F::Ark,
    unshift: F::Ark,
) -> Result<()> {
    let Spread { log_n, log_shards } = shards.spread;
    let (root, before, after) = ends::<F>(log_n, op.direction, shift, unshift)?;
    let word = |x| F::word(F::element(x));
    let launcher = match F::FIELD {
        FieldId::Goldilocks => ffi::tandem_ntt_small_tiny_spread_goldilocks,
        _ => ffi::tandem_ntt_small_tiny_spread_baby_bear,
    };
    shards.tiny(|at, shard, shards| {
        let args = ffi::tandem_ntt_small_tiny_spread_args {
            shards,
            output: at.other(),
            root: word(root),
            scale: word(scale_of::<F>(log_n, op.direction)),
            before: word(before),
            after: word(after),
            log_n,
            log_shards,
            shard,
            input_reversed: (op.input == Order::BitReversed).into(),
            output_reversed: (op.output == Order::BitReversed).into(),
        };
        // SAFETY: all shards and the output have 2^(log_n - log_shards) elements, which this lane can reach; the stream has
        // waited for what was done to the shards, and they stay until all lanes have read them.
        at.ctx.launch(OP, |stream| unsafe { launcher(&args, stream) })
    })
}
