//! Reductions of elements that lie on the lanes, in host memory or in a file.

use super::random;
use std::time::Instant;
use tandem_engine::gpus::Opened;
use tandem_engine::{element_bytes, of_input, Error, Reduced, Reducer, Result, ToReduced};
use tandem_ops::reduce::{shares, Scalar};
use tandem_ops::{Bls12_381, Bn254, CurveId, ElementKind, HostData, Lane, Reduce, ReduceOp, ReduceWay, Unaligned};

/// How elements that lie on lanes are dealt, and who reads them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dealt {
    /// All on the first lane, which reads them.
    One,
    /// Evenly over all lanes, each of which reads its own.
    Even,
    /// All on the first lane; all lanes read equal shares of them.
    Read,
}

/// Times of reductions.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Measured {
    /// What came out each time.
    pub(crate) result: Reduced,
    /// From the call to the result.
    pub(crate) seconds: Vec<f64>,
    /// What the plan says.
    pub(crate) planned: f64,
}

/// Times of `runs` reductions of host memory or of a file, after one to warm up.
///
/// # Errors
/// As [`Reducer::reduce`]; results differ.
pub(crate) fn bench(
    reducer: &Reducer,
    kind: ElementKind,
    op: ReduceOp,
    data: HostData<'_>,
    runs: usize,
) -> Result<Measured> {
    let planned = match reducer.backend() {
        Opened::Cpu(cpu) => cpu.reduce_host_plan(data).seconds,
        Opened::Cuda(cuda) => cuda.reduce_host_plan(data).seconds,
    };
    measure(runs, planned, || reducer.reduce(kind, op, data))
}

/// Times reductions of elements that are first brought to the lanes.
///
/// # Errors
/// As [`bench`]; not enough memory.
pub(crate) fn bench_resident(
    reducer: &Reducer,
    kind: ElementKind,
    op: ReduceOp,
    data: &[u8],
    dealt: Dealt,
    runs: usize,
) -> Result<Measured> {
    match reducer.backend() {
        Opened::Cpu(cpu) => resident_of(kind, cpu, op, data, dealt, runs),
        Opened::Cuda(cuda) => resident_of(kind, cuda, op, data, dealt, runs),
    }
}

/// Fills `to` with random elements; of floating-point numbers none is infinite.
///
/// # Errors
/// They are no whole number of elements.
pub(crate) fn random_elements(kind: ElementKind, to: &mut [u8]) -> Result<()> {
    let size = element_bytes(kind);
    if !to.len().is_multiple_of(size) {
        return Err(Error::input(format!("{} bytes for elements of {size}", to.len())));
    }
    random::fill(to, |part| match kind {
        ElementKind::U32 | ElementKind::U64 => {}
        ElementKind::F32 => part.chunks_exact_mut(4).for_each(|x| {
            let integer = i32::from_le_bytes([x[0], x[1], x[2], x[3]]);
            x.copy_from_slice(&(integer as f32).to_le_bytes());
        }),
        ElementKind::F64 => part.chunks_exact_mut(8).for_each(|x| {
            let integer = i64::from_le_bytes([x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]]);
            x.copy_from_slice(&(integer as f64).to_le_bytes());
        }),
        // Below 2^253.
        ElementKind::Scalar(_) => part.chunks_exact_mut(size).for_each(|x| x[size - 1] &= 0x1f),
    });
    Ok(())
}

fn measure(runs: usize, planned: f64, mut once: impl FnMut() -> Result<Reduced>) -> Result<Measured> {
    let result = once()?;
    let mut seconds = Vec::with_capacity(runs);
    for run in 0..runs {
        let started = Instant::now();
        let again = once()?;
        seconds.push(started.elapsed().as_secs_f64());
        if !again.is_same(&result) {
            return Err(Error::Device(format!("run {run} gave {again}, another one {result}: nothing to measure")));
        }
    }
    Ok(Measured { result, seconds, planned })
}

fn resident_of<B: Reduce>(
    kind: ElementKind,
    backend: &B,
    op: ReduceOp,
    data: &[u8],
    dealt: Dealt,
    runs: usize,
) -> Result<Measured> {
    let of = match kind {
        ElementKind::U32 => resident::<u32, B>,
        ElementKind::U64 => resident::<u64, B>,
        ElementKind::F32 => resident::<f32, B>,
        ElementKind::F64 => resident::<f64, B>,
        ElementKind::Scalar(CurveId::Bn254) => resident::<Scalar<Bn254>, B>,
        ElementKind::Scalar(CurveId::Bls12_381) => resident::<Scalar<Bls12_381>, B>,
    };
    of(backend, op, data, dealt, runs)
}

fn resident<E: ToReduced, B: Reduce>(
    backend: &B,
    op: ReduceOp,
    data: &[u8],
    dealt: Dealt,
    runs: usize,
) -> Result<Measured> {
    let size = size_of::<E::Wire>();
    let elements = Unaligned::<E::Wire>::new(data).ok_or_else(|| Error::input("no whole elements"))?;
    let ranges = match dealt {
        Dealt::Even => shares(elements.len(), size, backend.lanes()),
        Dealt::One | Dealt::Read => std::iter::once(0..elements.len()).collect(),
    };
    let mut parts = Vec::new();
    for (lane, range) in ranges.into_iter().enumerate().filter(|(_, range)| !range.is_empty()) {
        let mut part = backend.alloc::<E::Wire>(Lane(lane), range.len())?;
        let share = elements.slice(range);
        if let Some(values) = share.aligned() {
            backend.write(&mut part, 0, values)?;
        } else {
            let piece = (64 << 20) / size;
            for at in (0..share.len()).step_by(piece) {
                let values: Vec<E::Wire> = share.slice(at..share.len().min(at + piece)).iter().collect();
                backend.write(&mut part, at, &values)?;
            }
        }
        parts.push(part);
    }
    backend.synchronize()?;
    let parts: Vec<&B::Buf<E::Wire>> = parts.iter().collect();
    let way = Some(if dealt == Dealt::Read { ReduceWay::Peer } else { ReduceWay::Local });
    let held: Vec<(Lane, usize)> =
        parts.iter().map(|p| (tandem_ops::Buffer::lane(*p), tandem_ops::Buffer::len(*p))).collect();
    let planned = backend.reduce_plan::<E>(&held, way).map_err(of_input)?.seconds;
    measure(runs, planned, || {
        backend.reduce::<E>(op, &parts, way).and_then(|result| result.wait()).map(E::value).map_err(of_input)
    })
}
