//! Sums, least and greatest elements: of what the GPUs hold, read by the one that holds it or by others over the links between them,
//! and of host memory, which streams to all of them.

mod stream;

use crate::backend::{Cuda, CudaBuf};
use crate::ffi;
use crate::tuning::reduce as tuning;
use std::ffi::c_void;
use tandem_cuda::ffi::tandem_stream;
use tandem_cuda::DeviceBuffer;
use tandem_ops::reduce::plan::{plan, plan_stream, Piece, Rates, ReducePlan};
use tandem_ops::reduce::{combine_groups, too_large, Element, ElementKind, HostData, ReduceOp, ReduceWay, GROUP_BYTES};
use tandem_ops::{Backend, Buffer, CurveId, Error, Lane, Pending, Reduce, Result};

const OP: &str = "reduce";

type Scratch = unsafe extern "C" fn(*const ffi::tandem_reduce_args, *mut usize) -> i32;
type Launcher = unsafe extern "C" fn(*const ffi::tandem_reduce_args, *mut c_void, usize, tandem_stream) -> i32;

/// The launcher of a kind of elements.
fn launcher(kind: ElementKind) -> (Scratch, Launcher) {
    match kind {
        ElementKind::U32 => (ffi::tandem_reduce_u32_scratch, ffi::tandem_reduce_u32),
        ElementKind::U64 => (ffi::tandem_reduce_u64_scratch, ffi::tandem_reduce_u64),
        ElementKind::F32 => (ffi::tandem_reduce_f32_scratch, ffi::tandem_reduce_f32),
        ElementKind::F64 => (ffi::tandem_reduce_f64_scratch, ffi::tandem_reduce_f64),
        ElementKind::Scalar(CurveId::Bn254) => (ffi::tandem_reduce_bn254_scratch, ffi::tandem_reduce_bn254),
        ElementKind::Scalar(CurveId::Bls12_381) => (ffi::tandem_reduce_bls12_381_scratch, ffi::tandem_reduce_bls12_381),
    }
}

fn number(op: ReduceOp) -> u32 {
    let number = match op {
        ReduceOp::Sum => ffi::TANDEM_REDUCE_SUM,
        ReduceOp::Min => ffi::TANDEM_REDUCE_MIN,
        ReduceOp::Max => ffi::TANDEM_REDUCE_MAX,
    };
    number.cast_unsigned()
}

/// What the launcher writes where an element is not below the modulus, and what it finds there before.
const NONE_TOO_LARGE: u64 = u64::MAX;

/// A piece that is being reduced.
struct Launched<W: tandem_ops::Wire> {
    lane: Lane,
    groups: DeviceBuffer<W>,
    /// For elements of a field, the index of the first that is none.
    too_large: Option<DeviceBuffer<u64>>,
    /// Kept until the results are on their way: it is overwritten before it is freed.
    _tiles: DeviceBuffer<u8>,
}

/// Its results on their way to the host.
struct PieceResult<W> {
    groups: Pending<Vec<W>>,
    too_large: Option<Pending<Vec<u64>>>,
}

impl Cuda {
    /// Whether `reader` reads the memory of `owner` without the host.
    fn reaches(&self, reader: Lane, owner: Lane) -> Result<bool> {
        let (reader, owner) = (self.lane(OP, reader)?, self.lane(OP, owner)?);
        reader.device.can_access(owner.device).map_err(|e| reader.error(OP, e))
    }

    fn launch_piece<E: Element>(
        &self,
        op: ReduceOp,
        part: &CudaBuf<E::Wire>,
        piece: &Piece,
        first: usize,
    ) -> Result<Launched<E::Wire>> {
        let (ctx, owner) = (self.lane(OP, piece.lane)?, self.lane(OP, part.lane())?);
        let n = piece.elements.len();
        let groups: DeviceBuffer<E::Wire> = ctx.alloc(OP, (n * size_of::<E::Wire>()).div_ceil(GROUP_BYTES))?;
        let mut index: Option<DeviceBuffer<u64>> = None;
        if matches!(E::KIND, ElementKind::Scalar(_)) {
            let memory = index.insert(ctx.alloc_public(OP, 1)?);
            memory.fill(0..1, NONE_TOO_LARGE as u8).map_err(|e| ctx.error(OP, e))?;
        }
        let args = ffi::tandem_reduce_args {
            data: part.ptr().offset(piece.elements.start).cast().raw(),
            groups: groups.ptr().cast().raw(),
            too_large: index.as_ref().map_or(std::ptr::null_mut(), |memory| memory.ptr().raw()),
            n: n as u64,
            first: (first + piece.elements.start) as u64,
            op: number(op),
        };
        let is_remote = piece.lane != part.lane();
        let follows = |after: &crate::lane::LaneCtx, before: &crate::lane::LaneCtx| {
            let event = before.stream().record().map_err(|e| before.error(OP, e))?;
            after.stream().wait(&event).map_err(|e| after.error(OP, e))
        };
        if is_remote {
            follows(ctx, owner)?;
        }
        let (scratch, launch) = launcher(E::KIND);
        let mut bytes = 0;
        // SAFETY: the query reads the arguments and writes the number alone.
        ctx.launch(OP, |_| unsafe { scratch(&args, &mut bytes) })?;
        let tiles: DeviceBuffer<u8> = ctx.alloc(OP, bytes)?;
        // SAFETY: the part has these elements, which the lane's GPU reaches, and is not written or freed before the launch is done:
        // its stream has been waited for and waits below. The other buffers have room for what is written and are this stream's.
        let launched = ctx.launch(OP, |stream| unsafe { launch(&args, tiles.ptr().raw().cast(), bytes, stream) });
        if is_remote {
            follows(owner, ctx)?;
        }
        launched?;
        Ok(Launched { lane: piece.lane, groups, too_large: index, _tiles: tiles })
    }

    fn fetch<E: Element>(&self, launched: &Launched<E::Wire>) -> Result<PieceResult<E::Wire>> {
        let ctx = self.lane(OP, launched.lane)?;
        let too_large = launched.too_large.as_ref().map(|memory| ctx.download(OP, memory)).transpose()?;
        let groups = ctx.download(OP, &launched.groups)?;
        Ok(PieceResult { groups, too_large })
    }
}

/// What plans count with.
fn rates(kind: ElementKind) -> Rates {
    match kind {
        ElementKind::Scalar(_) => Rates { lane: tuning::SCALARS, ..tuning::RATES },
        _ => tuning::RATES,
    }
}

impl Reduce for Cuda {
    fn reduce_plan<E: Element>(&self, parts: &[(Lane, usize)], way: Option<ReduceWay>) -> Result<ReducePlan> {
        let lanes = self.lanes();
        let plan = |way| plan(parts, size_of::<E::Wire>(), lanes, &rates(E::KIND), way);
        let chosen = plan(way)?;
        for piece in chosen.pieces.iter().filter(|piece| piece.lane != parts[piece.part].0) {
            let owner = parts[piece.part].0;
            if !self.reaches(piece.lane, owner)? {
                let reason = format!("lane {} does not reach the memory of lane {}", piece.lane.0, owner.0);
                return if way.is_none() { plan(Some(ReduceWay::Local)) } else { Err(Error::invalid(OP, reason)) };
            }
        }
        Ok(chosen)
    }

    fn reduce<E: Element>(
        &self,
        op: ReduceOp,
        parts: &[&CudaBuf<E::Wire>],
        way: Option<ReduceWay>,
    ) -> Result<Pending<E::Wire>> {
        let held: Vec<(Lane, usize)> = parts.iter().map(|part| (part.lane(), part.len())).collect();
        let plan = self.reduce_plan::<E>(&held, way)?;
        let mut firsts = vec![0];
        held.iter().for_each(|(_, n)| firsts.push(firsts[firsts.len() - 1] + n));
        let piece = |piece: &Piece| self.launch_piece::<E>(op, parts[piece.part], piece, firsts[piece.part]);
        // All lanes are at work before the first one's results are asked for.
        let launched: Vec<Launched<E::Wire>> = plan.pieces.iter().map(piece).collect::<Result<_>>()?;
        let results: Vec<PieceResult<E::Wire>> =
            launched.iter().map(|piece| self.fetch::<E>(piece)).collect::<Result<_>>()?;
        Ok(Pending::new(move || {
            let mut all = Vec::new();
            for PieceResult { groups, too_large: index } in results {
                if let Some(index) = index.map(Pending::wait).transpose()?.and_then(|found| found.first().copied()) {
                    if index != NONE_TOO_LARGE {
                        return Err(too_large(index));
                    }
                }
                all.extend(groups.wait()?);
            }
            combine_groups::<E>(op, all)
        }))
    }

    fn reduce_host_plan(&self, data: HostData<'_>) -> ReducePlan {
        plan_stream(data.bytes(), stream::is_pinned(self, data), self.lanes(), &tuning::RATES)
    }

    fn reduce_host<E: Element>(&self, op: ReduceOp, data: HostData<'_>) -> Result<E::Wire> {
        stream::run::<E>(self, op, data)
    }
}
