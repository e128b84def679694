//! A transform that is spread over lanes: the passes of [`super::distributed`], each on all shards.
//!
//! Lanes meet at the exchange alone: a shard is sent to when its lane has the memory for it, and is worked on again when
//! all others have sent. Both waits are the devices'; the host only enqueues.

use super::distributed::{distributed_plan, lanes_for, Bits, DistributedNttPlan, ShardPass, Target};
use super::plan::{ShardTwiddleOffset, Twiddles, BITS};
use super::{pass_args, shift_of, Data, Kind, Shape, OP};
use crate::backend::{Cuda, CudaBuf};
use crate::ffi;
use crate::lane::LaneCtx;
use crate::tuning::ntt::SHARD_BITS;
use ark_ff::{AdditiveGroup, Field};
use std::sync::Arc;
use tandem_cuda::{DeviceBuffer, Event};
use tandem_ops::{
    Backend, Bls12_381, Bn254, Buffer, Coset, Curve, CurveId, Direction, Error, Lane, Mont, Ntt, NttOp, NttSpread,
    Order, Result, Spread, Wire,
};

macro_rules! curve {
    ($curve:ident) => {
        impl NttSpread<$curve> for Cuda {
            fn ntt_spread(&self, shards: &mut [&mut CudaBuf<Mont>], op: NttOp) -> Result<()> {
                let spread = Spread::of::<$curve>(shards.iter().map(|shard| shard.len()), &op)?;
                if let [only] = shards {
                    return Ntt::<$curve>::ntt(self, only, op);
                }
                Shards::new(self, shards, spread)?.run(|shards| shards.enqueue::<$curve>(op))
            }

            fn ntt_lanes(&self, log_n: u32) -> usize {
                lanes_in_reach(self, lanes_for(log_n, self.lanes(), SHARD_BITS))
            }
        }
    };
}
curve!(Bn254);
curve!(Bls12_381);

/// So many lanes if their GPUs reach each other's memory, else one.
pub(super) fn lanes_in_reach(cuda: &Cuda, lanes: usize) -> usize {
    let near = |lane| matches!(in_reach(cuda, Lane(0), Lane(lane)), Ok(true));
    if (1..lanes).all(near) {
        lanes
    } else {
        1
    }
}

/// Whether the GPUs of two lanes read and write each other's memory.
fn in_reach(cuda: &Cuda, a: Lane, b: Lane) -> Result<bool> {
    let (a, b) = (cuda.lane(OP, a)?, cuda.lane(OP, b)?);
    let reaches = |from: &LaneCtx, to: &LaneCtx| from.device.can_access(to.device).map_err(|e| from.error(OP, e));
    Ok(a.lane == b.lane || (reaches(a, b)? && reaches(b, a)?))
}

/// A shard, and memory of its size on its lane.
pub(super) struct Shard<'a, E: Wire> {
    pub(super) ctx: Arc<LaneCtx>,
    buf: &'a mut CudaBuf<E>,
    other: DeviceBuffer<E>,
}

impl<E: Wire> Shard<'_, E> {
    /// The shard's memory, for a launcher that calls elements `T`.
    pub(super) fn data<T>(&self) -> *mut T {
        self.buf.ptr().cast().raw()
    }

    /// The other.
    pub(super) fn other<T>(&self) -> *mut T {
        self.other.ptr().cast().raw()
    }

    /// Makes the other memory the shard's.
    fn swap(&mut self) {
        std::mem::swap(self.buf.memory(), &mut self.other);
    }
}

/// All shards of a vector.
pub(super) struct Shards<'a, E: Wire> {
    pub(super) shards: Vec<Shard<'a, E>>,
    pub(super) spread: Spread,
}

/// What stands for the shards of a vector in the arguments of launchers.
pub(super) type Addresses<T> = [T; ffi::TANDEM_NTT_MAX_SHARDS as usize];

impl<'a, E: Wire> Shards<'a, E> {
    pub(super) fn new(cuda: &Cuda, bufs: &'a mut [&mut CudaBuf<E>], spread: Spread) -> Result<Self> {
        let lanes: Vec<Lane> = bufs.iter().map(|buf| buf.lane()).collect();
        for (i, &lane) in lanes.iter().enumerate() {
            for &other in &lanes[..i] {
                if !in_reach(cuda, lane, other)? {
                    let reason =
                        format!("the GPUs of lanes {} and {} do not reach each other's memory", lane.0, other.0);
                    return Err(Error::invalid(OP, reason));
                }
            }
        }
        let shard = |buf: &'a mut &mut CudaBuf<E>| {
            let ctx = cuda.lane(OP, buf.lane())?.clone();
            // It may hold what is secret, and is overwritten when it is dropped.
            let other = ctx.alloc::<E>(OP, buf.len())?;
            Ok(Shard { ctx, buf, other })
        };
        Ok(Shards { shards: bufs.iter_mut().map(shard).collect::<Result<_>>()?, spread })
    }

    /// How many passes there are at least.
    pub(super) fn least_passes(&self) -> u32 {
        self.shards.iter().map(|shard| shard.ctx.least_passes).max().unwrap_or(1)
    }

    pub(super) fn run(mut self, enqueue: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let done = enqueue(&mut self);
        if done.is_err() {
            // Other lanes may still write to what is freed when the shards are dropped.
            self.shards.iter().for_each(|shard| drop(shard.ctx.synchronize()));
        }
        done
    }

    /// Does every pass of the plan on every shard: `pass(passes, i, shard)`.
    pub(super) fn passes(
        &mut self,
        plan: &DistributedNttPlan,
        pass: impl Fn(&Self, usize, usize) -> Result<()>,
    ) -> Result<()> {
        let ready = self.record()?;
        for (i, step) in plan.passes.iter().enumerate() {
            let sends = step.target != Target::Stay;
            if sends {
                self.wait(&ready)?;
            }
            for shard in 0..self.shards.len() {
                pass(self, i, shard)?;
            }
            if sends {
                let sent = self.record()?;
                self.wait(&sent)?;
            }
        }
        // From bit-reversed order what was received stays where it is, unless the last pass has moved it.
        if plan.reversed && !plan.reorder {
            self.shards.iter_mut().for_each(Shard::swap);
        }
        Ok(())
    }

    /// Where pass `i` reads, and where it writes if that stays in the shard.
    pub(super) fn ends<T>(&self, plan: &DistributedNttPlan, i: usize, shard: usize) -> (*mut T, *mut T) {
        let (data, other) = (self.shards[shard].data(), self.shards[shard].other());
        match (plan.reversed, plan.passes[i].exchanged) {
            (_, false) => (data, data),
            (false, true) => (other, data),
            (true, true) => (other, if i + 1 == plan.passes.len() && plan.reorder { data } else { other }),
        }
    }

    /// The sections that a shard sends to, by their names in places.
    pub(super) fn targets<T>(&self, plan: &DistributedNttPlan, shard: usize) -> Addresses<*mut T> {
        let Spread { log_n, log_shards } = self.spread;
        let mut targets = [std::ptr::null_mut(); ffi::TANDEM_NTT_MAX_SHARDS as usize];
        let mine = plan.section(shard as u32, log_shards) as usize;
        for (name, target) in (0..self.shards.len() as u32).zip(&mut targets) {
            let to = &self.shards[plan.named(name, log_shards) as usize];
            *target = to.other.ptr().offset(mine << (log_n - 2 * log_shards)).cast().raw();
        }
        targets
    }

    /// Does a transform of few elements: `launch(shard, number, all)` fills the shard's other memory from all shards.
    pub(super) fn tiny<T>(
        &mut self,
        launch: impl Fn(&Shard<'_, E>, u32, Addresses<*const T>) -> Result<()>,
    ) -> Result<()> {
        let mut shards = [std::ptr::null::<T>(); ffi::TANDEM_NTT_MAX_SHARDS as usize];
        self.shards.iter().zip(&mut shards).for_each(|(shard, at)| *at = shard.data::<T>().cast_const());
        let ready = self.record()?;
        self.wait(&ready)?;
        for (i, shard) in self.shards.iter().enumerate() {
            launch(shard, i as u32, shards)?;
        }
        let read = self.record()?;
        self.wait(&read)?;
        self.shards.iter_mut().for_each(Shard::swap);
        Ok(())
    }

    /// An event on each lane: all that it was told so far.
    fn record(&self) -> Result<Vec<(Lane, Event)>> {
        let mut events: Vec<(Lane, Event)> = Vec::with_capacity(self.shards.len());
        for Shard { ctx, .. } in &self.shards {
            if events.iter().all(|(lane, _)| *lane != ctx.lane) {
                events.push((ctx.lane, ctx.stream().record().map_err(|e| ctx.error(OP, e))?));
            }
        }
        Ok(events)
    }

    /// Each lane goes on when the events of all others have happened.
    fn wait(&self, events: &[(Lane, Event)]) -> Result<()> {
        let mut waiting: Vec<Lane> = Vec::with_capacity(events.len());
        for Shard { ctx, .. } in &self.shards {
            if waiting.contains(&ctx.lane) {
                continue;
            }
            waiting.push(ctx.lane);
            for (_, event) in events.iter().filter(|(lane, _)| *lane != ctx.lane) {
                ctx.stream().wait(event).map_err(|e| ctx.error(OP, e))?;
            }
        }
        Ok(())
    }
}

/// The bits of the scatter of a pass in arguments.
pub(super) fn scatter(target: Target) -> u32 {
    (match target {
        Target::Stay => ffi::TANDEM_NTT_STAY,
        Target::ByHighBits => ffi::TANDEM_NTT_BY_HIGH_BITS,
        Target::ByLowBits => ffi::TANDEM_NTT_BY_LOW_BITS,
    }) as u32
}

/// Over the scalar field of a curve.
impl Shards<'_, Mont> {
    fn enqueue<C: Curve>(&mut self, op: NttOp) -> Result<()> {
        let Spread { log_n, log_shards } = self.spread;
        let inverse = op.direction == Direction::Inverse;
        let shift = shift_of::<C>(op.coset, log_n)?;
        let memory = self.shards.iter().map(|shard| shard.ctx.properties.memory_bytes).min().unwrap_or(0);
        let shape = |odd| Shape { log_n, direction: op.direction, odd, input: op.input, output: op.output };
        let of = Bits { passes: self.least_passes(), ..BITS };
        let plan = |odd| distributed_plan(of, &shape(odd), log_shards, memory);
        if op.coset == Coset::Odd && !inverse {
            if let Some(plan) = plan(true) {
                return self.transform::<C>(&shape(true), &plan);
            }
        }
        if let (Some(g), false) = (shift, inverse) {
            self.scale::<C>(g, op.input)?;
        }
        match plan(false) {
            Some(plan) => self.transform::<C>(&shape(false), &plan)?,
            None => self.few::<C>(&shape(false))?,
        }
        if let (Some(g), true) = (shift, inverse) {
            self.scale::<C>(g.inverse().unwrap_or(C::Fr::ZERO), op.output)?;
        }
        Ok(())
    }

    fn transform<C: Curve>(&mut self, shape: &Shape, plan: &DistributedNttPlan) -> Result<()> {
        let kind = Kind { reversed: plan.reversed, odd: shape.odd, inverse: shape.direction == Direction::Inverse };
        self.passes(plan, |shards, i, shard| shards.pass::<C>(plan, i, &plan.passes[i], shard, kind))
    }

    fn pass<C: Curve>(
        &self,
        plan: &DistributedNttPlan,
        i: usize,
        step: &ShardPass,
        shard: usize,
        kind: Kind,
    ) -> Result<()> {
        let Spread { log_n, log_shards } = self.spread;
        let shard_bits = log_n - log_shards;
        let Shard { ctx, .. } = &self.shards[shard];
        let known = match step.exchanged {
            true => ShardTwiddleOffset { bits: log_shards, value: plan.known(shard as u32, log_shards) },
            false => ShardTwiddleOffset::default(),
        };
        let last = i + 1 == plan.passes.len();
        let mut args = pass_args::<C>(ctx, &step.pass, kind, log_n, known)?;
        args.log_n = shard_bits;
        args.last = last.into();
        args.reorder = (last && plan.reorder).into();
        (args.input, args.output) = {
            let (input, output) = self.ends::<ffi::tandem_scalar>(plan, i, shard);
            (input.cast_const(), output)
        };
        if step.target == Target::Stay
            && !step.sections_in
            && (!args.twiddles.is_null() || step.pass.twiddles == Twiddles::None)
        {
            let launcher = match C::ID {
                CurveId::Bn254 => ffi::tandem_ntt_pass_bn254,
                CurveId::Bls12_381 => ffi::tandem_ntt_pass_bls12_381,
            };
            // SAFETY: input and output hold 2^shard_bits elements on the lane whose stream this is; the tables were made
            // for this pass, and stay until the stream has done it.
            return ctx.launch(OP, |stream| unsafe { launcher(&args, stream) });
        }
        let args = ffi::tandem_ntt_spread_args {
            pass: args,
            targets: self.targets(plan, shard),
            log_shards,
            sections_in: step.sections_in.into(),
            scatter: scatter(step.target),
            known_bits: known.bits,
            known: known.value,
        };
        let launcher = match C::ID {
            CurveId::Bn254 => ffi::tandem_ntt_spread_bn254,
            CurveId::Bls12_381 => ffi::tandem_ntt_spread_bls12_381,
        };
        // SAFETY: as above; each target is the section of this shard, of 2^(shard_bits - log_shards) elements, in memory that
        // this lane can reach, that nothing else writes to, and that its owner uses after it has waited for this stream.
        ctx.launch(OP, |stream| unsafe { launcher(&args, stream) })
    }

    /// Fewer elements than two passes need.
    fn few<C: Curve>(&mut self, shape: &Shape) -> Result<()> {
        let Spread { log_n, log_shards } = self.spread;
        let (root, scale) = super::tiny_root::<C>(shape.direction, log_n)?;
        let launcher = match C::ID {
            CurveId::Bn254 => ffi::tandem_ntt_tiny_spread_bn254,
            CurveId::Bls12_381 => ffi::tandem_ntt_tiny_spread_bls12_381,
        };
        self.tiny(|at, shard, shards| {
            let args = ffi::tandem_ntt_tiny_spread_args {
                shards,
                output: at.other(),
                root,
                scale,
                log_n,
                log_shards,
                shard,
                input_reversed: (shape.input == Order::BitReversed).into(),
                output_reversed: (shape.output == Order::BitReversed).into(),
            };
            // SAFETY: all shards and the output have 2^(log_n - log_shards) elements, which this lane can reach; the stream has
            // waited for what was done to the shards, and they stay until all lanes have read them.
            at.ctx.launch(OP, |stream| unsafe { launcher(&args, stream) })
        })
    }

    /// Multiplies element i by base^i.
    fn scale<C: Curve>(&self, base: C::Fr, in_order: Order) -> Result<()> {
        let Spread { log_n, log_shards } = self.spread;
        let step = base.pow([1 << log_shards]);
        let mut first = C::Fr::ONE;
        for shard in &self.shards {
            let data = Data { ctx: &shard.ctx, at: shard.data(), count: 1, log_n: log_n - log_shards };
            data.scale::<C>(first, step, in_order)?;
            first *= base;
        }
        Ok(())
    }
}
