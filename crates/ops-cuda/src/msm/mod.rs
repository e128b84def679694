//! Multi-scalar multiplication. How it is computed: native/src/msm.

mod ahead;
mod finish;
mod memory;
mod plan;
mod rounds;
#[cfg(test)]
mod same_plans;

use crate::backend::{Cuda, CudaBuf};
use crate::ffi;
use crate::lane::LaneCtx;
use crate::spans::ASIDE;
pub(crate) use ahead::Ahead;
use ark_ff::AdditiveGroup;
use plan::{Field, Shape};
use rounds::BatchAffinePlan;
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tandem_cuda::ffi::tandem_stream;
use tandem_cuda::{DeviceBuffer, DevicePtr, Event};
use tandem_ops::{
    Backend, Buffer, Curve, CurveId, Error, Group, Lane, Msm, MsmRequest, MsmSet, Pending, Result, ScalarRecoding,
    Scalars, Stored, SumBytes, Timeline,
};
use zeroize::Zeroizing;

/// How the scalars of a request are taken apart and its points held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MsmPlan {
    curve: CurveId,
    request: MsmRequest,
    /// `None` where there are no scalars.
    shape: Option<Shape>,
    /// Of each set.
    rounds: Vec<BatchAffinePlan>,
}

impl MsmPlan {
    fn new<C: Curve>(
        request: &MsmRequest,
        shape: Option<Shape>,
        rounds: impl Fn(&Shape, Field, &MsmSet) -> BatchAffinePlan,
    ) -> Self {
        let of_set =
            |set| shape.as_ref().map_or(BatchAffinePlan::default(), |shape| rounds(shape, Field::of::<C>(), set));
        MsmPlan { curve: C::ID, request: request.clone(), shape, rounds: request.sets.iter().map(of_set).collect() }
    }
}

/// The non-zero digits of a vector of scalars, ordered by bucket.
pub struct MsmDigits {
    plan: MsmPlan,
    lane: Lane,
    entries: DeviceBuffer<u32>,
    /// Where the entries of each bucket begin.
    offsets: DeviceBuffer<u32>,
    /// What it took to order them. The first sum has it overwritten behind its additions: nobody waits for that there.
    scratch: Mutex<Option<DeviceBuffer<u8>>>,
}

/// What a sum over so many scalars takes on a GPU beside these and the points, as [`ScalarRecoding::sum_bytes`] has it. No GPU is needed.
pub fn sum_bytes<C: Curve>(scalars: usize, g2: bool, memory_bytes: u64) -> SumBytes {
    memory::sum_bytes(scalars, g2, Field::of::<C>(), memory_bytes)
}

/// A set of points with its multiples, level after level.
pub struct MsmBases<G: Group> {
    plan: MsmPlan,
    set: usize,
    lane: Lane,
    table: DeviceBuffer<G::Point>,
    /// Those of the plan, or fewer where a sum found no room for them.
    rounds: Mutex<BatchAffinePlan>,
    /// When the points are there.
    written: Event,
    /// When the last sum of each other lane has read the points.
    read: Mutex<Vec<(Lane, Event)>>,
}

impl<G: Group> MsmBases<G> {
    /// What is told to a lane from here on may read the points in the memory of their own.
    fn let_read(&self, from: &LaneCtx, to: &LaneCtx) -> Result<()> {
        const OP: &str = "msm";
        if !to.device.can_access(from.device).map_err(|e| to.error(OP, e))? {
            let reason = format!("the GPU of lane {} does not reach the memory of lane {}", to.lane.0, from.lane.0);
            return Err(Error::invalid(OP, reason));
        }
        to.stream().wait(&self.written).map_err(|e| to.error(OP, e))
    }

    /// The points stay until a lane has done all that it was told.
    fn keep_for(&self, reader: &LaneCtx) -> Result<()> {
        let done = reader.stream().record().map_err(|e| reader.error("msm", e))?;
        let mut read = lock(&self.read);
        read.retain(|(lane, _)| *lane != reader.lane);
        read.push((reader.lane, done));
        Ok(())
    }
}

impl<G: Group> Drop for MsmBases<G> {
    fn drop(&mut self) {
        for (_, done) in lock(&self.read).drain(..) {
            // A failure here is one of the device, which the next call reports.
            let _ = self.table.stream().wait(&done);
        }
    }
}

/// Launchers of a group.
struct Launchers {
    table_scratch: unsafe extern "C" fn(*const ffi::tandem_msm_table_args, *mut usize) -> i32,
    table: unsafe extern "C" fn(*const ffi::tandem_msm_table_args, *mut c_void, usize, tandem_stream) -> i32,
    sum_scratch: unsafe extern "C" fn(*const ffi::tandem_msm_sum_args, *mut usize) -> i32,
    accumulate: unsafe extern "C" fn(*const ffi::tandem_msm_sum_args, *mut c_void, usize, tandem_stream) -> i32,
    reduce: unsafe extern "C" fn(*const ffi::tandem_msm_sum_args, *mut c_void, usize, tandem_stream) -> i32,
}

macro_rules! launchers {
    ($table_scratch:ident $table:ident $sum_scratch:ident $accumulate:ident $reduce:ident) => {
        Launchers {
            table_scratch: ffi::$table_scratch,
            table: ffi::$table,
            sum_scratch: ffi::$sum_scratch,
            accumulate: ffi::$accumulate,
            reduce: ffi::$reduce,
        }
    };
}

impl Launchers {
    fn of<G: Group>() -> Self {
        match (G::Curve::ID, is_g2::<G>()) {
            (CurveId::Bn254, false) => launchers!(
                tandem_msm_table_bn254_g1_scratch tandem_msm_table_bn254_g1
                tandem_msm_sum_bn254_g1_scratch tandem_msm_accumulate_bn254_g1 tandem_msm_reduce_bn254_g1
            ),
            (CurveId::Bn254, true) => launchers!(
                tandem_msm_table_bn254_g2_scratch tandem_msm_table_bn254_g2
                tandem_msm_sum_bn254_g2_scratch tandem_msm_accumulate_bn254_g2 tandem_msm_reduce_bn254_g2
            ),
            (CurveId::Bls12_381, false) => launchers!(
                tandem_msm_table_bls12_381_g1_scratch tandem_msm_table_bls12_381_g1
                tandem_msm_sum_bls12_381_g1_scratch tandem_msm_accumulate_bls12_381_g1 tandem_msm_reduce_bls12_381_g1
            ),
            (CurveId::Bls12_381, true) => launchers!(
                tandem_msm_table_bls12_381_g2_scratch tandem_msm_table_bls12_381_g2
                tandem_msm_sum_bls12_381_g2_scratch tandem_msm_accumulate_bls12_381_g2 tandem_msm_reduce_bls12_381_g2
            ),
        }
    }
}

/// What a panicking thread has left here is whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_g2<G: Group>() -> bool {
    G::NAME == <G::Curve as Curve>::G2::NAME
}

fn check_curve<C: Curve>(op: &'static str, plan: &MsmPlan) -> Result<()> {
    if plan.curve == C::ID {
        return Ok(());
    }
    Err(Error::invalid(op, format!("a plan for {}, used for {}", plan.curve, C::ID)))
}

impl<C: Curve> ScalarRecoding<C> for Cuda {
    type Plan = MsmPlan;
    type Entries = MsmDigits;

    fn plan(&self, lane: Lane, request: &MsmRequest) -> Result<MsmPlan> {
        let ctx = self.lane("plan MSM", lane)?;
        let memory_bytes = ctx.properties.memory_bytes;
        let shape = plan::plan(request, Field::of::<C>())?;
        if let Some(shape) = &shape {
            self.ahead.expect::<C>(ctx, shape, &request.sets);
        }
        Ok(MsmPlan::new::<C>(request, shape, |shape, field, set| {
            BatchAffinePlan::new(shape, field, request, set, memory_bytes)
        }))
    }

    fn plans(&self, lane: Lane, request: &MsmRequest, log_most: u32) -> Result<Vec<MsmPlan>> {
        let memory_bytes = self.lane("plan MSM", lane)?.properties.memory_bytes;
        let mut plans = Vec::new();
        // One number of powers of two for each width of windows.
        let shapes = plan::shapes(request, Field::of::<C>())?.into_iter();
        let shapes = shapes.filter(|shape| {
            shape.levels_per_window == 1
                || shape.levels_per_window == (2 + shape.window_bits % 3).min(shape.window_bits - 2)
        });
        let shapes = shapes.chain(plan::shapes_between(request, Field::of::<C>())?);
        for shape in shapes.filter(|shape| shape.buckets() <= 1 << log_most.min(u64::BITS - 1)) {
            let chosen =
                |shape: &Shape, field, set: &MsmSet| BatchAffinePlan::new(shape, field, request, set, memory_bytes);
            plans.push(MsmPlan::new::<C>(request, Some(shape), chosen));
            let forced = MsmPlan::new::<C>(request, Some(shape), |shape, _, _| BatchAffinePlan::in_any_case(shape));
            if plans.last() != Some(&forced) {
                plans.push(forced);
            }
        }
        Ok(plans)
    }

    fn sum_bytes(&self, scalars: usize, g2: bool, memory_bytes: u64) -> SumBytes {
        sum_bytes::<C>(scalars, g2, memory_bytes)
    }

    fn recode(&self, plan: &MsmPlan, scalars: Scalars<'_, Self>) -> Result<MsmDigits> {
        const OP: &str = "digits";
        check_curve::<C>(OP, plan)?;
        let (ptr, len, lane, montgomery) = match &scalars {
            Scalars::Canonical(buf) => (scalar_ptr(buf), buf.len(), buf.lane(), 0),
            Scalars::Mont(buf) => (scalar_ptr(buf), buf.len(), buf.lane(), 1),
        };
        let planned = plan.request.scalars;
        if len > planned {
            return Err(Error::invalid(OP, format!("{len} scalars for a plan of {planned} at most")));
        }
        if len == 0 && planned > 0 {
            // One zero, which has no digits: the launcher takes at least one scalar.
            return ScalarRecoding::<C>::recode(self, plan, Scalars::Mont(&self.alloc(lane, 1)?));
        }
        let ctx = self.lane(OP, lane)?;
        let Some(shape) = &plan.shape else {
            let (entries, offsets) = (ctx.alloc(OP, 0)?, ctx.alloc(OP, 0)?);
            return Ok(MsmDigits { plan: plan.clone(), lane, entries, offsets, scratch: Mutex::default() });
        };
        let entries = ctx.alloc(OP, shape.entries().unwrap_or(u64::MAX) as usize)?;
        let offsets = ctx.alloc(OP, shape.buckets() as usize + 1)?;
        // Fewer scalars than planned have fewer entries, of the same levels and indices.
        let shape = Shape { scalars: len as u64, ..*shape };
        let args = ffi::tandem_msm_digits_args {
            shape: shape.raw(),
            scalars: ptr,
            montgomery,
            entries: entries.ptr().raw(),
            offsets: offsets.ptr().raw(),
        };
        let (query, launch): (
            unsafe extern "C" fn(*const ffi::tandem_msm_digits_args, *mut usize) -> i32,
            unsafe extern "C" fn(*const ffi::tandem_msm_digits_args, *mut c_void, usize, tandem_stream) -> i32,
        ) = match C::ID {
            CurveId::Bn254 => (ffi::tandem_msm_digits_bn254_scratch, ffi::tandem_msm_digits_bn254),
            CurveId::Bls12_381 => (ffi::tandem_msm_digits_bls12_381_scratch, ffi::tandem_msm_digits_bls12_381),
        };
        let scratch = ctx.launch_with_scratch(
            OP,
            // SAFETY: `bytes` is valid to write to; the query reads nothing else than the arguments.
            |bytes| unsafe { query(&args, bytes) },
            // SAFETY: all pointers are live buffers of this lane with the room that the header asks for.
            |scratch, bytes, stream| unsafe { launch(&args, scratch, bytes, stream) },
        )?;
        Ok(MsmDigits { plan: plan.clone(), lane, entries, offsets, scratch: Mutex::new(Some(scratch)) })
    }
}

fn scalar_ptr<T: tandem_ops::Wire>(buf: &CudaBuf<T>) -> *const ffi::tandem_scalar {
    const { assert!(size_of::<T>() == size_of::<ffi::tandem_scalar>()) };
    buf.ptr().cast().raw()
}

impl<G: Group> Msm<G> for Cuda {
    type Bases = MsmBases<G>;

    fn load(&self, lane: Lane, plan: &MsmPlan, set: usize, points: Stored<'_, G::Point>) -> Result<MsmBases<G>> {
        const OP: &str = "load points";
        check_curve::<G::Curve>(OP, plan)?;
        let Some(of) = plan.request.sets.get(set) else {
            return Err(Error::invalid(OP, format!("set {set} of a plan of {} sets", plan.request.sets.len())));
        };
        if of.g2 != is_g2::<G>() || of.points != points.len() {
            let group = if of.g2 { "G2" } else { "G1" };
            let reason = format!("{} points of {} for a set of {} of {group}", points.len(), G::NAME, of.points);
            return Err(Error::invalid(OP, reason));
        }
        let ctx = self.lane(OP, lane)?;
        let levels = plan.shape.map_or(0, |shape| shape.table_levels as usize);
        let len = of.points.checked_mul(levels).ok_or_else(|| Error::invalid(OP, "too many points"))?;
        // Those of one sum come beside what the lane does.
        let mut table = match plan.request.uses {
            1 => ctx.alloc_public_on_upload_stream::<G::Point>(OP, len)?,
            _ => ctx.alloc_public::<G::Point>(OP, len)?,
        };
        if let (Some(shape), 1..) = (plan.shape, of.points) {
            ctx.upload_stored(OP, &mut table, points)?;
            ctx.move_to_stream(OP, &mut table)?;
            let args = ffi::tandem_msm_table_args {
                shape: shape.raw(),
                points: of.points as u64,
                table: table.ptr().cast().raw(),
            };
            let launchers = Launchers::of::<G>();
            ctx.launch_with_scratch(
                OP,
                // SAFETY: `bytes` is valid to write to; the query reads nothing else than the arguments.
                |bytes| unsafe { (launchers.table_scratch)(&args, bytes) },
                // SAFETY: the table has room for `levels` times the points, of which the first are written.
                |scratch, bytes, stream| unsafe { (launchers.table)(&args, scratch, bytes, stream) },
            )?;
        }
        let written = table.record().map_err(|e| ctx.error(OP, e))?;
        let (rounds, read) = (Mutex::new(plan.rounds[set]), Mutex::default());
        Ok(MsmBases { plan: plan.clone(), set, lane, table, rounds, written, read })
    }

    fn msm(&self, bases: &MsmBases<G>, digits: &MsmDigits, timeline: &Timeline) -> Result<Pending<G::Ark>> {
        const OP: &str = "msm";
        if bases.plan != digits.plan {
            return Err(Error::invalid(OP, "points and digits are of different plans"));
        }
        let (home, ctx) = (self.lane(OP, bases.lane)?, self.lane(OP, digits.lane)?);
        let set = bases.plan.request.sets[bases.set];
        let (Some(shape), 1..) = (bases.plan.shape, set.points) else {
            return Ok(Pending::ready(G::Ark::ZERO));
        };
        let launchers = Launchers::of::<G>();
        // x and y, zz and zzz.
        let sums = ctx.alloc_on_reduce_stream::<G::Point>(OP, 2 * shape.sums())?;
        let mut args = ffi::tandem_msm_sum_args {
            shape: shape.raw(),
            first: set.first as u64,
            points: set.points as u64,
            table: bases.table.ptr().cast().raw(),
            entries: digits.entries.ptr().raw(),
            offsets: digits.offsets.ptr().raw(),
            sums: sums.ptr().cast().raw(),
            rounds: 0,
            chunk: 0,
        };
        let memory = |args: &ffi::tandem_msm_sum_args| {
            let mut bytes = 0;
            // SAFETY: `bytes` is valid to write to; the query reads nothing else than the arguments.
            ctx.launch(OP, |_| unsafe { (launchers.sum_scratch)(args, &mut bytes) })?;
            Ok((bytes, ctx.alloc::<u8>(OP, bytes)?))
        };
        let (bytes, mut scratch) = loop {
            let rounds = *lock(&bases.rounds);
            (args.rounds, args.chunk) = (rounds.rounds, rounds.chunk);
            match memory(&args) {
                // To find that out takes long: the sums to come need not.
                Err(Error::OutOfMemory { .. }) if rounds.rounds > 0 => *lock(&bases.rounds) = rounds.with_less(),
                result => break result?,
            }
        };
        let is_far = home.lane != ctx.lane;
        if is_far {
            bases.let_read(home, ctx)?;
        }
        let (memory, raw) = (scratch.ptr(), |memory: DevicePtr<u8>| memory.raw().cast::<c_void>());
        // SAFETY: all pointers are live buffers of this lane, made for this shape and set; the points may lie in the memory of another, which
        // this one reaches, are there by now, and stay until this is done.
        let launched = ctx.launch(OP, |stream| unsafe { (launchers.accumulate)(&args, raw(memory), bytes, stream) });
        if is_far {
            bases.keep_for(ctx)?;
        }
        launched?;
        if let Some(scratch) = lock(&digits.scratch).take() {
            ctx.free_on_cleanup_stream(OP, scratch)?;
        }
        ctx.move_to_reduce_stream(OP, &mut scratch)?;
        let span = timeline.begin_in(ctx.lane, ASIDE, "buckets to sums");
        // SAFETY: as above; the entries, the offsets and the points, which may be gone by then, are not read.
        ctx.launch_on_reduce_stream(OP, |stream| unsafe { (launchers.reduce)(&args, raw(memory), bytes, stream) })?;
        timeline.end(span);
        let sums = ctx.download(OP, &sums)?;
        ctx.free_on_cleanup_stream(OP, scratch)?;
        Ok(Pending::new(move || {
            let sums = Zeroizing::new(sums.wait()?);
            Ok(finish::finish::<G>(&shape, sums.as_chunks().0))
        }))
    }

    fn msm_lanes(&self, points: usize) -> usize {
        let group = crate::tuning::msm::GroupId { curve: G::Curve::ID, g2: is_g2::<G>() };
        plan::lanes_for(points, self.lanes(), group.measured().shard_points)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ec::{CurveGroup, PrimeGroup};
    use tandem_ops::{Bls12_381, Canonical};

    type G1 = <Bls12_381 as Curve>::G1;

    /// Rounds take more memory than a sum in XYZZ coordinates alone: with no more than that it is made without them, and with less it is an
    /// error. Where there is no GPU this is passed over.
    #[test]
    fn a_sum_without_room_for_rounds_is_made_without() {
        const N: usize = 1 << 16;
        let Some(&device) = tandem_cuda::testing::gpus().first() else { return };
        let roomy = Cuda::open(&[device]).unwrap();
        let set = MsmSet { g2: false, first: 0, points: N };
        let request = MsmRequest {
            scalars: N,
            sets: vec![set],
            memory_bytes: (N * size_of::<<G1 as Group>::Point>()) as u64,
            uses: 1,
            pipelined: false,
        };
        let plans = ScalarRecoding::<Bls12_381>::plans(&roomy, Lane(0), &request, 24).unwrap();
        let has_rounds = |plan: &MsmPlan| plan.shape.unwrap().window_bits == 13 && plan.rounds[0].rounds > 0;
        let plan = plans.into_iter().find(has_rounds).unwrap();
        let scratch = |rounds| {
            let args = ffi::tandem_msm_sum_args {
                shape: plan.shape.unwrap().raw(),
                first: 0,
                points: N as u64,
                table: std::ptr::null(),
                entries: std::ptr::null(),
                offsets: std::ptr::null(),
                sums: std::ptr::null_mut(),
                rounds,
                chunk: plan.rounds[0].chunk,
            };
            let mut bytes = 0;
            let ctx = roomy.lane("test", Lane(0)).unwrap();
            // SAFETY: `bytes` is valid to write to; the query reads no memory.
            ctx.launch("test", |_| unsafe { (Launchers::of::<G1>().sum_scratch)(&args, &mut bytes) }).unwrap();
            bytes as u64
        };
        let (least, with_rounds) = (scratch(0), scratch(plan.rounds[0].rounds));
        assert!(with_rounds > least, "{with_rounds} and {least} bytes for {plan:?}");

        let one = <G1 as Group>::Ark::generator();
        let points: Vec<_> = std::iter::successors(Some(one), |point| Some(*point + one)).take(N).collect();
        let points: Vec<_> = <G1 as Group>::Ark::normalize_batch(&points).iter().map(G1::from_ark).collect();
        let scalars: Vec<u64> = (1..=N as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let logarithm: <Bls12_381 as Curve>::Fr = (1u64..)
            .zip(&scalars)
            .map(|(i, k)| <Bls12_381 as Curve>::Fr::from(i) * <Bls12_381 as Curve>::Fr::from(*k))
            .sum();
        let wire: Vec<Canonical> = scalars.iter().map(|k| Canonical([*k, 0, 0, 0])).collect();
        let sum = |memory: u64| {
            let mut cuda = Cuda::open(&[device])?;
            std::sync::Arc::get_mut(&mut cuda.lanes[0]).unwrap().most_bytes = memory;
            let bases = Msm::<G1>::load(&cuda, Lane(0), &plan, 0, points.as_slice().into())?;
            let scalars = cuda.upload(Lane(0), &wire)?;
            let digits = ScalarRecoding::<Bls12_381>::recode(&cuda, &plan, Scalars::Canonical(&scalars))?;
            let sums = [0, 1].map(|_| Msm::<G1>::msm(&cuda, &bases, &digits, &Timeline::none())?.wait());
            let rounds = *lock(&bases.rounds);
            let [first, second] = sums;
            assert_eq!(first.as_ref().ok(), second.ok().as_ref());
            Ok((first?, rounds))
        };
        for memory in [with_rounds, with_rounds - 1, least] {
            let rounds = if memory == with_rounds { plan.rounds[0] } else { BatchAffinePlan::default() };
            assert_eq!(sum(memory).unwrap(), (one * logarithm, rounds), "{memory} bytes");
        }
        match sum(least - 1) {
            Err(Error::OutOfMemory { wanted, .. }) => assert_eq!(wanted, least),
            other => panic!("{other:?}"),
        }
    }
}
