//! Poseidon: hashes of columns that lie on a GPU, and of columns that stream through all of them.

mod pipes;

use crate::backend::{Cuda, CudaBuf};
use crate::ffi;
use crate::lane::LaneCtx;
use pipes::Pipes;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use tandem_cuda::ffi::tandem_stream;
use tandem_cuda::{DeviceBuffer, DevicePtr};
use tandem_ops::poseidon::{check_lengths, PoseidonParams, Recurrence, Tables};
use tandem_ops::{Buffer, Canonical, Curve, CurveId, Error, Lane, Mont, Poseidon, Result, Unaligned, Wire};

const OP: &str = "poseidon";

/// The constants of a hash in the memory of every GPU of the team.
pub struct CudaHasher {
    params: PoseidonParams,
    block: usize,
    lanes: Vec<LaneHasher>,
}

struct LaneHasher {
    table: DeviceBuffer<Mont>,
    /// What streaming needs, made when it is first needed.
    pipes: Mutex<Option<Pipes>>,
}

/// Columns and room for their hashes, in a GPU's memory.
struct Columns<T> {
    input: DevicePtr<T>,
    output: DevicePtr<T>,
    hashes: usize,
}

impl CudaHasher {
    /// Calls the launcher on a stream of `lane`'s GPU. Elements are integers unless they are [`Mont`].
    fn launch<C: Curve, T: Wire>(&self, lane: Lane, columns: &Columns<T>, stream: tandem_stream) -> i32 {
        const { assert!(size_of::<T>() == size_of::<ffi::tandem_scalar>()) };
        let args = ffi::tandem_poseidon_args {
            input: columns.input.cast().raw(),
            output: columns.output.cast().raw(),
            table: self.lanes[lane.0].table.ptr().cast().raw(),
            hashes: columns.hashes as u64,
            width: self.params.width() as u32,
            full_rounds: self.params.full_rounds() as u32,
            partial_rounds: self.params.partial_rounds() as u32,
            block: self.block as u32,
            integers: (std::any::TypeId::of::<T>() != std::any::TypeId::of::<Mont>()).into(),
        };
        // SAFETY: the table is what the launcher expects for this width and block; the columns are `arity` elements for each hash and room for
        // the hashes, in live buffers that `stream` orders.
        unsafe {
            match C::ID {
                CurveId::Bn254 => ffi::tandem_poseidon_bn254(&args, stream),
                CurveId::Bls12_381 => ffi::tandem_poseidon_bls12_381(&args, stream),
            }
        }
    }
}

impl<C: Curve> Poseidon<C> for Cuda {
    type Hasher = CudaHasher;

    fn hasher(&self, params: PoseidonParams) -> Result<CudaHasher> {
        let tables = Tables::<C::Fr>::new(params);
        let recurrence = Recurrence::new(params);
        let values = recurrence.as_ref().map_or(tables.values(), Recurrence::values);
        let values: Vec<Mont> = values.iter().map(|&x| C::mont(x)).collect();
        let mut lanes = Vec::new();
        for lane in 0..tandem_ops::Backend::lanes(self) {
            let ctx = self.lane(OP, Lane(lane))?;
            let mut table = ctx.alloc_public(OP, values.len())?;
            ctx.upload(OP, &mut table, 0, values.as_slice().into())?;
            // The streams of the pipes do not wait for the lane's.
            ctx.synchronize()?;
            lanes.push(LaneHasher { table, pipes: Mutex::default() });
        }
        Ok(CudaHasher { params, block: tables.block(), lanes })
    }

    fn poseidon(&self, hasher: &CudaHasher, input: &CudaBuf<Mont>, out: &mut CudaBuf<Mont>) -> Result<()> {
        if input.lane() != out.lane() {
            let reason = format!("columns on lane {}, their hashes on lane {}", input.lane().0, out.lane().0);
            return Err(Error::invalid(OP, reason));
        }
        check_lengths(hasher.params, input.len(), out.len())?;
        if out.lane().0 >= hasher.lanes.len() {
            return Err(Error::invalid(OP, format!("lane {}; the hasher is for {}", out.lane().0, hasher.lanes.len())));
        }
        let columns = Columns { input: input.ptr(), output: out.ptr(), hashes: out.len() };
        self.lane(OP, out.lane())?.launch(OP, |stream| hasher.launch::<C, Mont>(out.lane(), &columns, stream))
    }

    fn poseidon_columns(
        &self,
        hasher: &CudaHasher,
        input: Unaligned<'_, Canonical>,
        out: &mut [Canonical],
    ) -> Result<()> {
        check_lengths(hasher.params, input.len(), out.len())?;
        let (total, count) = (out.len(), hasher.lanes.len());
        let share = |lane: usize| -> Range<usize> { total * lane / count..total * (lane + 1) / count };
        let mut rest = out;
        let mut shares = Vec::with_capacity(count);
        for lane in 0..count {
            let (mine, others) = rest.split_at_mut(share(lane).len());
            shares.push((Lane(lane), mine));
            rest = others;
        }
        let arity = hasher.params.arity();
        let work = |(lane, out): (Lane, &mut [Canonical])| {
            let columns = share(lane.0);
            let input = input.slice(columns.start * arity..columns.end * arity);
            self.stream_columns::<C>(hasher, self.lane(OP, lane)?, input, out)
        };
        if count == 1 {
            return shares.into_iter().try_for_each(work);
        }
        // One thread for each GPU: filling page-locked memory for one must not keep another waiting.
        std::thread::scope(|scope| {
            let threads: Vec<_> = shares.into_iter().map(|share| scope.spawn(|| work(share))).collect();
            let failed = || Err(Error::invalid(OP, "a thread of the host panicked"));
            let done: Vec<Result<()>> = threads.into_iter().map(|t| t.join().unwrap_or_else(|_| failed())).collect();
            done.into_iter().collect()
        })
    }
}

impl Cuda {
    fn stream_columns<C: Curve>(
        &self,
        hasher: &CudaHasher,
        ctx: &Arc<LaneCtx>,
        input: Unaligned<'_, Canonical>,
        out: &mut [Canonical],
    ) -> Result<()> {
        let of_lane = &hasher.lanes[ctx.lane.0];
        let mut pipes = of_lane.pipes.lock().unwrap_or_else(PoisonError::into_inner);
        let pipes = match &mut *pipes {
            Some(pipes) => pipes,
            none => none.insert(Pipes::new(of_lane.table.pool(), hasher.params.arity())),
        };
        pipes.run(ctx, input, out, |stream, input, output, hashes| {
            hasher.launch::<C, Canonical>(ctx.lane, &Columns { input, output, hashes }, stream)
        })
    }
}
