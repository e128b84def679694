//! Sums, least and greatest elements on any device, with neither the kind of elements nor the device in any type.

use crate::gpus::{self, Opened};
use crate::{random, DeviceChoice, DeviceReport, Error, Result};
use ark_ff::BigInt;
use std::fmt;
use std::time::Instant;
use tandem_ops::reduce::{shares, Scalar};
use tandem_ops::{
    Bls12_381, Bn254, Canonical, CurveId, Element, ElementKind, HostBuf, HostData, Lane, Reduce, ReduceOp, ReduceWay,
    Unaligned,
};

/// A device that reduces.
pub struct Reducer {
    on: Box<dyn Reducing>,
    report: DeviceReport,
}

/// A result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reduced {
    /// Of integers of 32 bits.
    U32(u32),
    /// Of integers of 64 bits.
    U64(u64),
    /// Of floating-point numbers of 32 bits.
    F32(f32),
    /// Of floating-point numbers of 64 bits.
    F64(f64),
    /// Of elements of a scalar field.
    Scalar(Canonical),
}

impl Reduced {
    /// Whether both have the same bits.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Reduced::F32(a), Reduced::F32(b)) => a.to_bits() == b.to_bits(),
            (Reduced::F64(a), Reduced::F64(b)) => a.to_bits() == b.to_bits(),
            _ => self == other,
        }
    }
}

/// Decimal; of floating-point numbers the shortest text that is read as the same number.
impl fmt::Display for Reduced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reduced::U32(x) => x.fmt(f),
            Reduced::U64(x) => x.fmt(f),
            Reduced::F32(x) => fmt::Debug::fmt(x, f),
            Reduced::F64(x) => fmt::Debug::fmt(x, f),
            Reduced::Scalar(x) => BigInt(x.0).fmt(f),
        }
    }
}

/// How elements that lie on lanes are dealt, and who reads them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dealt {
    /// All on the first lane, which reads them.
    One,
    /// Evenly over all lanes, each of which reads its own.
    Even,
    /// All on the first lane; all lanes read equal shares of them.
    Read,
}

/// Times of reductions.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// What came out each time.
    pub result: Reduced,
    /// From the call to the result.
    pub seconds: Vec<f64>,
    /// What the plan says.
    pub planned: f64,
}

/// Bytes of an element.
pub fn element_bytes(kind: ElementKind) -> usize {
    match kind {
        ElementKind::U32 | ElementKind::F32 => 4,
        ElementKind::U64 | ElementKind::F64 => 8,
        ElementKind::Scalar(_) => size_of::<Canonical>(),
    }
}

impl Reducer {
    /// Opens the devices of `choice`.
    ///
    /// # Errors
    /// As [`crate::Engine::open`].
    pub fn open(choice: &DeviceChoice) -> Result<Self> {
        let (opened, why) = gpus::open(choice, usize::MAX)?;
        Ok(Self::of(opened, why))
    }

    /// Opens the first of them alone.
    ///
    /// # Errors
    /// As [`crate::Engine::open`].
    pub fn open_first(choice: &DeviceChoice) -> Result<Self> {
        let (opened, why) = gpus::open(choice, 1)?;
        Ok(Self::of(opened, why))
    }

    fn of(opened: Opened, why: String) -> Self {
        match opened {
            Opened::Cpu(cpu) => Self::on(cpu, why),
            Opened::Cuda(cuda) => Self::on(cuda, why),
        }
    }

    fn on<B: Reduce>(backend: B, why: String) -> Self {
        let info = backend.info();
        let report = DeviceReport { kind: info.kind, lanes: info.lane_names, why };
        Reducer { on: Box::new(backend), report }
    }

    /// What was opened.
    pub fn report(&self) -> &DeviceReport {
        &self.report
    }

    /// The sum, the least or the greatest of the elements, on all lanes.
    ///
    /// # Errors
    /// Bytes that are no whole number of elements, an element of a field that is not below the modulus, the least or greatest of
    /// nothing, a file that cannot be read; the device failed.
    pub fn reduce(&self, kind: ElementKind, op: ReduceOp, data: HostData<'_>) -> Result<Reduced> {
        self.on.host(kind, op, data)
    }

    /// Memory that the device copies from as fast as it can.
    ///
    /// # Errors
    /// Not enough memory.
    pub fn host_buf(&self, bytes: usize) -> Result<HostBuf<u8>> {
        self.on.host_bytes(bytes)
    }

    /// Times of `runs` reductions of host memory or of a file, after one to warm up.
    ///
    /// # Errors
    /// As [`Reducer::reduce`]; results differ.
    pub fn bench(&self, kind: ElementKind, op: ReduceOp, data: HostData<'_>, runs: usize) -> Result<Measured> {
        let planned = self.on.planned(data);
        measure(runs, planned, || self.on.host(kind, op, data))
    }

    /// The same of elements that are first brought to the lanes.
    ///
    /// # Errors
    /// As [`Reducer::bench`]; not enough memory.
    pub fn bench_resident(
        &self,
        kind: ElementKind,
        op: ReduceOp,
        data: &[u8],
        dealt: Dealt,
        runs: usize,
    ) -> Result<Measured> {
        self.on.resident(kind, op, data, dealt, runs)
    }
}

/// Fills `to` with random elements; of floating-point numbers none is infinite.
///
/// # Errors
/// They are no whole number of elements.
pub fn random_elements(kind: ElementKind, to: &mut [u8]) -> Result<()> {
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

/// An element as a result.
trait Value: Element {
    fn value(x: Self::Wire) -> Reduced;
}

macro_rules! values {
    ($($t:ty, $variant:ident);+) => {$(
        impl Value for $t {
            fn value(x: Self::Wire) -> Reduced {
                Reduced::$variant(x)
            }
        }
    )+};
}
values!(u32, U32; u64, U64; f32, F32; f64, F64; Scalar<Bn254>, Scalar; Scalar<Bls12_381>, Scalar);

/// Calls a function that is generic over the elements for the kind at hand.
macro_rules! of_kind {
    ($kind:expr, $function:ident($($argument:expr),*)) => {
        match $kind {
            ElementKind::U32 => $function::<u32, _>($($argument),*),
            ElementKind::U64 => $function::<u64, _>($($argument),*),
            ElementKind::F32 => $function::<f32, _>($($argument),*),
            ElementKind::F64 => $function::<f64, _>($($argument),*),
            ElementKind::Scalar(CurveId::Bn254) => $function::<Scalar<Bn254>, _>($($argument),*),
            ElementKind::Scalar(CurveId::Bls12_381) => $function::<Scalar<Bls12_381>, _>($($argument),*),
        }
    };
}

/// A backend.
trait Reducing: Send + Sync {
    fn host(&self, kind: ElementKind, op: ReduceOp, data: HostData<'_>) -> Result<Reduced>;
    fn host_bytes(&self, bytes: usize) -> Result<HostBuf<u8>>;
    fn planned(&self, data: HostData<'_>) -> f64;
    fn resident(&self, kind: ElementKind, op: ReduceOp, data: &[u8], dealt: Dealt, runs: usize) -> Result<Measured>;
}

impl<B: Reduce> Reducing for B {
    fn host(&self, kind: ElementKind, op: ReduceOp, data: HostData<'_>) -> Result<Reduced> {
        of_kind!(kind, host(self, op, data))
    }

    fn host_bytes(&self, bytes: usize) -> Result<HostBuf<u8>> {
        Ok(self.host_buf(bytes)?)
    }

    fn planned(&self, data: HostData<'_>) -> f64 {
        self.reduce_host_plan(data).seconds
    }

    fn resident(&self, kind: ElementKind, op: ReduceOp, data: &[u8], dealt: Dealt, runs: usize) -> Result<Measured> {
        of_kind!(kind, resident(self, op, data, dealt, runs))
    }
}

fn host<E: Value, B: Reduce>(backend: &B, op: ReduceOp, data: HostData<'_>) -> Result<Reduced> {
    backend.reduce_host::<E>(op, data).map(E::value).map_err(of_input)
}

/// What a caller did wrong is wrong with the elements here.
fn of_input(error: tandem_ops::Error) -> Error {
    match error {
        tandem_ops::Error::Invalid { reason, .. } => Error::BadInput(reason),
        other => other.into(),
    }
}

fn resident<E: Value, B: Reduce>(
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
