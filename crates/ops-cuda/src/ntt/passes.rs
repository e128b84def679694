//! Transforms whose numbers are of few words, elements of small fields and complex numbers: their passes over memory
//! (native/src/ntt/small.cuh), one to four, and the tables that these read. Twiddles between passes are computed on the way; a coset's are among them
//! where the transform is forward.

use super::distributed::{Bits, DistributedNttPlan, Target};
use super::plan::{Pass, ShardTwiddleOffset, Twiddles};
use super::spread::{scatter, Shards};
use super::{Launcher, OP};
use crate::ffi;
use crate::lane::LaneCtx;
use crate::tuning::ntt::SMALL_TABLE_BITS;
use std::any::TypeId;
use std::collections::hash_map::{Entry, HashMap};
use std::marker::PhantomData;
use std::sync::PoisonError;
use tandem_cuda::DeviceBuffer;
use tandem_ops::{Result, Unaligned, Wire};

pub(super) const MIN_BITS: u32 = ffi::TANDEM_NTT_SMALL_MIN_LOG_ROWS as u32;
pub(super) const MAX_BITS: u32 = ffi::TANDEM_NTT_SMALL_MAX_LOG_ROWS as u32;
pub(super) const BITS: Bits = Bits { least: MIN_BITS, most: MAX_BITS, passes: 1 };

/// A kind of numbers.
pub(super) trait Numbers: Sized + 'static {
    /// As they lie in memory.
    type Stored: Wire + Default;
    /// log2 of the order of the root of unity whose powers are kept.
    const ORDER_BITS: u32;
    const TWIDDLES: Launcher<ffi::tandem_ntt_small_twiddles_args>;
    const PASS: Launcher<ffi::tandem_ntt_small_pass_args>;
    const SPREAD: Launcher<ffi::tandem_ntt_small_spread_args>;

    /// 1 as an argument of a launcher.
    fn one() -> u64;
    /// The first 2^[`split`] powers of that root, then every 2^split-th.
    fn powers(ctx: &LaneCtx) -> Result<DeviceBuffer<u32>>;
    /// Powers of roots of unity, or of their inverses: of each place the exponent, and log2 of the order.
    fn table(places: &[(u64, u32)], inverse: bool) -> Result<Vec<Self::Stored>>;
}

/// Half the bits of an exponent of the root of the highest order.
pub(super) fn split<N: Numbers>() -> u32 {
    N::ORDER_BITS.div_ceil(2)
}

/// Words of a number.
pub(super) fn words<N: Numbers>() -> usize {
    size_of::<N::Stored>() / size_of::<u32>()
}

/// The passes of vectors of 2^`log_n` elements, no fewer than 2^[`MIN_BITS`]: from the upper bits to the lower ones, or the
/// other way if the input is in bit-reversed order. They are `least` at least, as far as there are bits for them.
pub(super) fn passes(log_n: u32, reversed: bool, least: u32) -> Vec<Pass> {
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
struct AllTables(HashMap<TypeId, Tables>);

/// What every transform over a kind of numbers needs; words.
struct Tables {
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

/// The twiddles between the rounds of all passes, as exponents of the root of order 2^bits.
fn stages() -> Vec<(u64, u32)> {
    let mut table = vec![(0, 0); 2 << MAX_BITS];
    for log_rows in MIN_BITS..=MAX_BITS {
        let first = first_round(log_rows);
        for upper in 0..1usize << first {
            let step = (upper as u64).reverse_bits() >> (u64::BITS - first);
            for lower in 0..1usize << (log_rows - first) {
                table[1 << log_rows | lower << first | upper] = (step * lower as u64, log_rows);
            }
        }
    }
    table
}

/// Words in the lane's memory.
pub(super) fn upload<T: Wire>(ctx: &LaneCtx, table: &[T]) -> Result<DeviceBuffer<u32>> {
    let table = bytemuck::cast_slice::<_, u32>(table);
    let mut on_device = ctx.alloc_public::<u32>(OP, table.len())?;
    ctx.upload(OP, &mut on_device, 0, Unaligned::from(table))?;
    Ok(on_device)
}

impl Tables {
    fn new<N: Numbers>(ctx: &LaneCtx) -> Result<Self> {
        let places = stages();
        let stages = |inverse| upload(ctx, &N::table(&places, inverse)?);
        Ok(Tables { powers: N::powers(ctx)?, stages: [stages(false)?, stages(true)?], twiddles: HashMap::new() })
    }

    /// The table of the twiddles before a pass.
    fn twiddles<N: Numbers>(&mut self, ctx: &LaneCtx, key: TwiddlesKey) -> Result<*const u32> {
        let table = match self.twiddles.entry(key) {
            Entry::Occupied(known) => return Ok(known.get().ptr().raw()),
            Entry::Vacant(new) => new.insert(ctx.alloc_public::<u32>(OP, words::<N>() << key.bits)?),
        };
        let args = ffi::tandem_ntt_small_twiddles_args {
            out: table.ptr().raw(),
            powers: self.powers.ptr().raw(),
            order_bits: N::ORDER_BITS,
            split: split::<N>(),
            bits: key.bits,
            log_rows: key.log_rows,
            reversed: key.reversed.into(),
            inverse: key.inverse.into(),
        };
        // SAFETY: the table has 2^bits numbers, the powers are those of the root of order 2^order_bits.
        ctx.launch(OP, |stream| unsafe { N::TWIDDLES(&args, stream) })?;
        Ok(table.ptr().raw())
    }
}

/// Does something with the tables of a kind of numbers.
fn with_tables<N: Numbers, T>(ctx: &LaneCtx, with: impl FnOnce(&mut Tables) -> Result<T>) -> Result<T> {
    let tables = ctx.cache.of::<AllTables>();
    let mut tables = tables.lock().unwrap_or_else(PoisonError::into_inner);
    with(match tables.0.entry(TypeId::of::<N>()) {
        Entry::Occupied(known) => known.into_mut(),
        Entry::Vacant(new) => new.insert(Tables::new::<N>(ctx)?),
    })
}

/// Where the powers of the root of unity are, for as long as the lane is there.
pub(super) fn kept_powers<N: Numbers>(ctx: &LaneCtx) -> Result<*const u32> {
    with_tables::<N, _>(ctx, |tables| Ok(tables.powers.ptr().raw().cast_const()))
}

/// What the passes over vectors of a lane, or over a shard, have in common.
pub(super) struct Work<'a, N> {
    pub(super) ctx: &'a LaneCtx,
    /// Vectors, and numbers of each that lie on the lane, as a power of two.
    pub(super) count: u64,
    pub(super) log_n: u32,
    pub(super) reversed: bool,
    pub(super) inverse: bool,
    /// By what all numbers are multiplied in the last pass, as an argument, unless by 1.
    pub(super) scale: Option<u64>,
    /// Powers of a coset's shift for the rows of each pass.
    pub(super) coset: Option<DeviceBuffer<u32>>,
    pub(super) of: PhantomData<N>,
}

impl<N: Numbers> Work<'_, N> {
    /// The arguments of pass `i` without memory to work on.
    fn args(
        &self,
        i: usize,
        pass: &Pass,
        last: bool,
        known: ShardTwiddleOffset,
    ) -> Result<ffi::tandem_ntt_small_pass_args> {
        let &Pass { low, log_rows, twiddles } = pass;
        let scale = self.scale.filter(|_| last);
        let bits = if self.reversed { low + log_rows } else { self.log_n - low };
        let plain = self.coset.is_none() && scale.is_none();
        let key = TwiddlesKey { bits, log_rows, reversed: self.reversed, inverse: self.inverse };
        let in_table = plain && twiddles != Twiddles::None && known.bits == 0 && bits <= SMALL_TABLE_BITS;
        let (powers, stages, table) = with_tables::<N, _>(self.ctx, |tables| {
            let table = if in_table { tables.twiddles::<N>(self.ctx, key)? } else { std::ptr::null() };
            let stages = &tables.stages[usize::from(self.inverse)];
            Ok((tables.powers.ptr().raw(), stages.ptr().offset(words::<N>() << log_rows).raw(), table))
        })?;
        let coset = self.coset.as_ref().map(|all| all.ptr().offset((i << MAX_BITS) * words::<N>()).raw().cast_const());
        Ok(ffi::tandem_ntt_small_pass_args {
            input: std::ptr::null(),
            output: std::ptr::null_mut(),
            powers,
            stages,
            twiddles: table,
            coset: coset.unwrap_or(std::ptr::null()),
            scale: scale.unwrap_or_else(N::one),
            count: self.count,
            order_bits: N::ORDER_BITS,
            split: split::<N>(),
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

    /// Does these passes over the vectors at `at`. With `reorder` the output is in the order of the input.
    pub(super) fn run(&self, passes: &[Pass], at: *mut u32, reorder: bool) -> Result<()> {
        let count = passes.len();
        // As in transforms over large fields: the last pass moves elements to other memory.
        let numbers = (self.count as usize) << self.log_n;
        let other = match reorder && count > 1 {
            true => Some(self.ctx.alloc::<u32>(OP, numbers * words::<N>())?),
            false => None,
        };
        let other_at = other.as_ref().map_or(at, |other| other.ptr().raw());
        for (i, pass) in passes.iter().enumerate() {
            let last = i + 1 == count;
            let mut args = self.args(i, pass, last, ShardTwiddleOffset::default())?;
            args.input = if last { other_at } else { at };
            args.output = if i + 2 == count { other_at } else { at };
            args.reorder = (last && reorder).into();
            args.follows = (i > 0).into();
            // SAFETY: input and output hold `count` vectors of 2^log_n numbers, the tables are those of the numbers and of
            // the pass, and all stay until the stream has done the pass.
            self.ctx.launch(OP, |stream| unsafe { N::PASS(&args, stream) })?;
        }
        Ok(())
    }

    /// Pass `i` of the plan on a shard.
    pub(super) fn spread(
        &self,
        shards: &Shards<'_, N::Stored>,
        plan: &DistributedNttPlan,
        i: usize,
        shard: usize,
    ) -> Result<()> {
        let log_shards = shards.spread.log_shards;
        let step = &plan.passes[i];
        let known = match step.exchanged {
            true => ShardTwiddleOffset { bits: log_shards, value: plan.known(shard as u32, log_shards) },
            false => ShardTwiddleOffset::default(),
        };
        let last = i + 1 == plan.passes.len();
        let mut pass = self.args(i, &step.pass, last, known)?;
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
        self.ctx.launch(OP, |stream| {
            if known.bits == 0 && step.target == Target::Stay && !step.sections_in {
                // SAFETY: input and output hold the shard's elements on the lane whose stream this is; the tables are those of the
                // numbers and of the pass, and stay until the stream has done it.
                return unsafe { N::PASS(&args.pass, stream) };
            }
            // SAFETY: as above; each target is the section of this shard in memory that this lane can reach, that nothing else writes
            // to, and that its owner uses after it has waited for this stream.
            unsafe { N::SPREAD(&args, stream) }
        })
    }
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
