//! Transforms over small fields, of batches.
//!
//! A transform is one to four passes over memory (native/src/ntt/small.cuh). Twiddles between passes are computed on the
//! way; a coset's are among them where the transform is forward. Over a coset the inverse takes one pass more.

use super::distributed::{distributed_plan, lanes_for, Bits, DistributedNttPlan, Target};
use super::plan::{Pass, ShardTwiddleOffset, Twiddles};
use super::spread::{lanes_in_reach, scatter, Shards};
use super::{Shape, OP};
use crate::backend::{Cuda, CudaBuf};
use crate::ffi;
use crate::lane::LaneCtx;
use crate::tuning::ntt::{SMALL_SHARD_BYTES, SMALL_TABLE_BITS};
use ark_ff::{AdditiveGroup, FftField, Field};
use std::collections::hash_map::{Entry, HashMap};
use std::sync::{Arc, PoisonError};
use tandem_cuda::DeviceBuffer;
use tandem_ops::ntt::log_size;
use tandem_ops::{
    BabyBear, Backend, Buffer, Coset, Direction, Error, FieldId, Goldilocks, Ntt, NttField, NttOp, NttSpread, Order,
    Result, Spread, Unaligned,
};

const MIN_BITS: u32 = ffi::TANDEM_NTT_SMALL_MIN_LOG_ROWS as u32;
const MAX_BITS: u32 = ffi::TANDEM_NTT_SMALL_MAX_LOG_ROWS as u32;
const BITS: Bits = Bits { least: MIN_BITS, most: MAX_BITS, passes: 1 };

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
small!(Goldilocks);
small!(BabyBear);

/// The passes of vectors of 2^`log_n` elements, no fewer than 2^[`MIN_BITS`]: from the upper bits to the lower ones, or the
/// other way if the input is in bit-reversed order. They are `least` at least, as far as there are bits for them.
fn passes(log_n: u32, reversed: bool, least: u32) -> Vec<Pass> {
    // Two passes of 2^17 or 2^18 elements have blocks for a third of the GPU.
    let some = if (17..=18).contains(&log_n) { 3 } else { 1 };
    let count = Bits { passes: least, ..BITS }.passes(log_n, some, MIN_BITS);
    let mut done = 0;
    let pass = |i| {
        let log_rows = log_n / count + u32::from(i < log_n % count);
        done += log_rows;
        let twiddles = if i == 0 { Twiddles::None } else { Twiddles::Powers };
        Pass { low: if reversed { done - log_rows } else { log_n - done }, log_rows, twiddles }
    };
    (0..count).map(pass).collect()
}

/// How many stages the first of the two rounds of a pass has; as in native/src/ntt/small.cuh.
fn first_round(log_rows: u32) -> u32 {
    if log_rows <= 4 {
        log_rows
    } else {
        log_rows.div_ceil(2)
    }
}

/// The tables of one GPU. They are roots of unity: nothing secret.
#[derive(Default)]
struct SmallTables(HashMap<FieldId, FieldTables>);

/// What every transform over a field needs; words.
struct FieldTables {
    /// Powers of the root of unity of the highest order: the first 2^split, then every 2^split-th.
    powers: DeviceBuffer<u32>,
    /// The twiddles between the rounds of passes, of forward and inverse transforms; those of a pass of r bits from 2^r on.
    stages: [DeviceBuffer<u32>; 2],
    /// The twiddles before passes, as far as they are in tables: few and small enough to be kept for good.
    twiddles: HashMap<TwiddlesKey, DeviceBuffer<u32>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct TwiddlesKey {
    bits: u32,
    log_rows: u32,
    reversed: bool,
    inverse: bool,
}

/// Half the bits of an exponent of the root of the highest order.
fn split<F: NttField>() -> u32 {
    F::Ark::TWO_ADICITY.div_ceil(2)
}

/// Words of an element.
fn words<F: NttField>() -> usize {
    size_of::<F::Element>() / size_of::<u32>()
}

/// The twiddles between the rounds of all passes.
fn stages<F: NttField>(inverse: bool) -> Option<Vec<F::Element>> {
    let mut table = vec![F::Element::default(); 2 << MAX_BITS];
    for log_rows in MIN_BITS..=MAX_BITS {
        let root = F::root_of_unity(log_rows)?;
        let root = if inverse { root.inverse()? } else { root };
        let first = first_round(log_rows);
        for upper in 0..1usize << first {
            let step = root.pow([(upper as u64).reverse_bits() >> (u64::BITS - first)]);
            let mut twiddle = F::Ark::ONE;
            for lower in 0..1usize << (log_rows - first) {
                table[1 << log_rows | lower << first | upper] = F::element(twiddle);
                twiddle *= step;
            }
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
        Ok(FieldTables { powers, stages: [upload(false)?, upload(true)?], twiddles: HashMap::new() })
    }

    /// The table of the twiddles before a pass.
    fn twiddles<F: Small>(&mut self, ctx: &LaneCtx, key: TwiddlesKey) -> Result<*const u32> {
        let table = match self.twiddles.entry(key) {
            Entry::Occupied(known) => return Ok(known.get().ptr().raw()),
            Entry::Vacant(new) => new.insert(ctx.alloc_public::<u32>(OP, words::<F>() << key.bits)?),
        };
        let args = ffi::tandem_ntt_small_twiddles_args {
            out: table.ptr().raw(),
            powers: self.powers.ptr().raw(),
            order_bits: F::Ark::TWO_ADICITY,
            split: split::<F>(),
            bits: key.bits,
            log_rows: key.log_rows,
            reversed: key.reversed.into(),
            inverse: key.inverse.into(),
        };
        let launcher = match F::FIELD {
            FieldId::Goldilocks => ffi::tandem_ntt_small_twiddles_goldilocks,
            _ => ffi::tandem_ntt_small_twiddles_baby_bear,
        };
        // SAFETY: the table has 2^bits elements, the powers are those of the root of order 2^order_bits.
        ctx.launch(OP, |stream| unsafe { launcher(&args, stream) })?;
        Ok(table.ptr().raw())
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

/// What the passes over vectors of a lane, or over a shard, have in common.
struct Work<'a, F: Small> {
    ctx: &'a LaneCtx,
    /// Vectors, and elements of each that lie on the lane, as a power of two.
    count: u64,
    log_n: u32,
    reversed: bool,
    inverse: bool,
    /// By what all elements are multiplied in the last pass.
    scale: F::Ark,
    /// Powers of a coset's shift for the rows of each pass.
    coset: Option<DeviceBuffer<u32>>,
}

impl<F: Small> Work<'_, F> {
    /// Has coefficients multiplied by powers of `shift` on the way: `below` of each pass are the bits of the index below its rows.
    fn over_coset(mut self, shift: F::Ark, passes: impl ExactSizeIterator<Item = (u32, Pass)>) -> Result<Self> {
        if shift != F::Ark::ONE {
            let table = self.ctx.alloc_public::<u32>(OP, (passes.len() << MAX_BITS) * words::<F>())?;
            for (i, (below, pass)) in passes.enumerate() {
                write_powers::<F>(self.ctx, &table, i << MAX_BITS, shift, 1 << below, 1 << pass.log_rows)?;
            }
            self.coset = Some(table);
        }
        Ok(self)
    }

    /// The arguments of pass `i` without memory to work on.
    fn args(
        &self,
        i: usize,
        pass: &Pass,
        last: bool,
        known: ShardTwiddleOffset,
    ) -> Result<ffi::tandem_ntt_small_pass_args> {
        let &Pass { low, log_rows, twiddles } = pass;
        let tables = self.ctx.cache.of::<SmallTables>();
        let mut tables = tables.lock().unwrap_or_else(PoisonError::into_inner);
        let tables = match tables.0.entry(F::FIELD) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(FieldTables::new::<F>(self.ctx)?),
        };
        let scale = if last { self.scale } else { F::Ark::ONE };
        let bits = if self.reversed { low + log_rows } else { self.log_n - low };
        let plain = self.coset.is_none() && scale == F::Ark::ONE;
        let key = TwiddlesKey { bits, log_rows, reversed: self.reversed, inverse: self.inverse };
        let table = match plain && twiddles != Twiddles::None && known.bits == 0 && bits <= SMALL_TABLE_BITS {
            true => tables.twiddles::<F>(self.ctx, key)?,
            false => std::ptr::null(),
        };
        let coset = self.coset.as_ref().map(|all| all.ptr().offset((i << MAX_BITS) * words::<F>()).raw().cast_const());
        let stages = &tables.stages[usize::from(self.inverse)];
        Ok(ffi::tandem_ntt_small_pass_args {
            input: std::ptr::null(),
            output: std::ptr::null_mut(),
            powers: tables.powers.ptr().raw(),
            stages: stages.ptr().offset(words::<F>() << log_rows).raw(),
            twiddles: table,
            coset: coset.unwrap_or(std::ptr::null()),
            scale: F::word(F::element(scale)),
            count: self.count,
            order_bits: F::Ark::TWO_ADICITY,
            split: split::<F>(),
            log_n: self.log_n,
            low,
            log_rows,
            reversed: self.reversed.into(),
            inverse: self.inverse.into(),
            multiply: (twiddles != Twiddles::None || !plain).into(),
            reorder: 0,
            last: last.into(),
            follows: 0,
        })
    }
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

type Launcher<A> = unsafe extern "C" fn(*const A, tandem_cuda::ffi::tandem_stream) -> i32;

fn pass_launcher<F: Small>() -> Launcher<ffi::tandem_ntt_small_pass_args> {
    match F::FIELD {
        FieldId::Goldilocks => ffi::tandem_ntt_small_pass_goldilocks,
        _ => ffi::tandem_ntt_small_pass_baby_bear,
    }
}

/// 1/n of an inverse transform, else 1.
fn scale_of<F: NttField>(log_n: u32, direction: Direction) -> F::Ark {
    match direction {
        Direction::Forward => F::Ark::ONE,
        Direction::Inverse => F::Ark::from(1u64 << log_n).inverse().unwrap_or(F::Ark::ZERO),
    }
}

/// What the launchers of transforms by their definition take: the root, and of what powers multiply elements before and after.
fn ends<F: Small>(
    log_n: u32,
    direction: Direction,
    shift: F::Ark,
    unshift: F::Ark,
) -> Result<(F::Ark, F::Ark, F::Ark)> {
    let none = || Error::invalid(OP, format!("{} has no 2^{log_n}-th root of unity", F::FIELD));
    let root = F::root_of_unity(log_n).ok_or_else(none)?;
    match direction {
        Direction::Forward => Ok((root, shift, F::Ark::ONE)),
        Direction::Inverse => Ok((root.inverse().ok_or_else(none)?, F::Ark::ONE, unshift)),
    }
}

impl Data<'_> {
    fn transform<F: Small>(&self, op: &NttOp<F::Element>, shift: F::Ark) -> Result<()> {
        let (ctx, log_n, reversed) = (self.ctx, self.log_n, op.input == Order::BitReversed);
        let reorder = op.input == op.output;
        let passes = passes(log_n, reversed, ctx.least_passes);
        let count = passes.len();
        // As in transforms over large fields: the last pass moves elements to other memory.
        let elements = (self.count as usize) << log_n;
        let other = match reorder && count > 1 {
            true => Some(ctx.alloc::<u32>(OP, elements * words::<F>())?),
            false => None,
        };
        let other_at = other.as_ref().map_or(self.at, |other| other.ptr().raw());
        let work = Work::<F> {
            ctx,
            count: self.count,
            log_n,
            reversed,
            inverse: op.direction == Direction::Inverse,
            scale: scale_of::<F>(log_n, op.direction),
            coset: None,
        };
        let below = |&pass: &Pass| (if reversed { log_n - pass.low - pass.log_rows } else { pass.low }, pass);
        let work = work.over_coset(shift, passes.iter().map(below))?;
        for (i, pass) in passes.iter().enumerate() {
            let last = i + 1 == count;
            let mut args = work.args(i, pass, last, ShardTwiddleOffset::default())?;
            args.input = if last { other_at } else { self.at };
            args.output = if i + 2 == count { other_at } else { self.at };
            args.reorder = (last && reorder).into();
            args.follows = (i > 0).into();
            // SAFETY: input and output hold `count` vectors of 2^log_n elements, the tables are those of the field and of
            // the pass, and all stay until the stream has done the pass.
            ctx.launch(OP, |stream| unsafe { pass_launcher::<F>()(&args, stream) })?;
        }
        Ok(())
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

/// A transform that is spread over lanes: the passes of [`super::seam`], with twiddles, coset and 1/n as on one lane.
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
        let work = Work::<F> {
            ctx,
            count: 1,
            log_n: shard_bits,
            reversed: plan.reversed,
            inverse,
            scale: scale_of::<F>(log_n, op.direction) * unshift.pow([shard]),
            coset: None,
        };
        work.over_coset(shift, plan.passes.iter().map(|step| (plan.below(step, log_n, log_shards), step.pass)))
    };
    let works = (0..).zip(contexts.iter().map(Arc::as_ref)).map(work).collect::<Result<Vec<_>>>()?;
    shards.passes(&plan, |shards, i, shard| spread_pass(shards, &plan, i, shard, &works[shard]))?;
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

fn spread_pass<F: Small>(
    shards: &Shards<'_, F::Element>,
    plan: &DistributedNttPlan,
    i: usize,
    shard: usize,
    work: &Work<'_, F>,
) -> Result<()> {
    let log_shards = shards.spread.log_shards;
    let step = &plan.passes[i];
    let known = match step.exchanged {
        true => ShardTwiddleOffset { bits: log_shards, value: plan.known(shard as u32, log_shards) },
        false => ShardTwiddleOffset::default(),
    };
    let last = i + 1 == plan.passes.len();
    let mut pass = work.args(i, &step.pass, last, known)?;
    let (input, output) = shards.ends::<u32>(plan, i, shard);
    (pass.input, pass.output) = (input, output);
    pass.reorder = (last && plan.reorder).into();
    // Before and after an exchange a lane waits for others.
    let stays = |i: usize| plan.passes[i].target == Target::Stay;
    pass.follows = (i > 0 && stays(i - 1) && stays(i)).into();
    let args = ffi::tandem_ntt_small_spread_args {
        pass,
        targets: shards.targets(plan, shard),
        log_shards,
        sections_in: step.sections_in.into(),
        scatter: scatter(step.target),
        known_bits: known.bits,
        known: known.value,
    };
    let launcher = match F::FIELD {
        FieldId::Goldilocks => ffi::tandem_ntt_small_spread_goldilocks,
        _ => ffi::tandem_ntt_small_spread_baby_bear,
    };
    work.ctx.launch(OP, |stream| {
        if known.bits == 0 && step.target == Target::Stay && !step.sections_in {
            // SAFETY: input and output hold the shard's elements on the lane whose stream this is; the tables are those of the
            // field and of the pass, and stay until the stream has done it.
            return unsafe { pass_launcher::<F>()(&args.pass, stream) };
        }
        // SAFETY: as above; each target is the section of this shard in memory that this lane can reach, that nothing else writes
        // to, and that its owner uses after it has waited for this stream.
        unsafe { launcher(&args, stream) }
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_cover_every_bit_once() {
        for log_n in MIN_BITS..=32 {
            for (reversed, least) in [(false, 1), (true, 1), (false, 3), (true, 3), (false, 4), (true, 4)] {
                let mut passes = passes(log_n, reversed, least);
                assert!(passes.len() as u32 >= least.min(log_n / MIN_BITS), "2^{log_n}");
                assert!(passes.iter().enumerate().all(|(i, pass)| (pass.twiddles == Twiddles::None) == (i == 0)));
                assert!(passes.iter().all(|pass| (MIN_BITS..=MAX_BITS).contains(&pass.log_rows)), "2^{log_n}");
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
    fn rounds_are_of_up_to_five_stages_and_make_a_pass() {
        for log_rows in MIN_BITS..=MAX_BITS {
            let first = first_round(log_rows);
            assert!(first <= 5 && log_rows - first <= 4 && first >= log_rows - first);
        }
    }
}
