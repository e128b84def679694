//! Sums, least and greatest elements on any device, with neither the kind of elements nor the device in any type.

use crate::gpus::{self, Opened};
use crate::{DeviceChoice, DeviceReport, Error, Result};
use ark_ff::BigInt;
use std::fmt;
use tandem_ops::reduce::Scalar;
use tandem_ops::{
    with_curve, Backend, Bls12_381, Bn254, Canonical, Element, ElementKind, HostBuf, HostData, Reduce, ReduceOp,
};

/// A device that reduces.
pub struct Reducer {
    on: Opened,
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

    fn of(on: Opened, why: String) -> Self {
        let report = on.report(why);
        Reducer { on, report }
    }

    /// The backend that reduces.
    pub fn backend(&self) -> &Opened {
        &self.on
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
        match &self.on {
            Opened::Cpu(cpu) => host_of(kind, cpu, op, data),
            Opened::Cuda(cuda) => host_of(kind, cuda, op, data),
        }
    }

    /// Memory that the device copies from as fast as it can.
    ///
    /// # Errors
    /// Not enough memory.
    pub fn host_buf(&self, bytes: usize) -> Result<HostBuf<u8>> {
        Ok(match &self.on {
            Opened::Cpu(cpu) => cpu.host_buf(bytes)?,
            Opened::Cuda(cuda) => cuda.host_buf(bytes)?,
        })
    }
}

/// An element as a result.
pub trait ToReduced: Element {
    /// The result.
    fn value(x: Self::Wire) -> Reduced;
}

macro_rules! values {
    ($($t:ty, $variant:ident);+) => {$(
        impl ToReduced for $t {
            fn value(x: Self::Wire) -> Reduced {
                Reduced::$variant(x)
            }
        }
    )+};
}
values!(u32, U32; u64, U64; f32, F32; f64, F64; Scalar<Bn254>, Scalar; Scalar<Bls12_381>, Scalar);

fn host_of<B: Reduce>(kind: ElementKind, backend: &B, op: ReduceOp, data: HostData<'_>) -> Result<Reduced> {
    match kind {
        ElementKind::U32 => host::<u32, B>(backend, op, data),
        ElementKind::U64 => host::<u64, B>(backend, op, data),
        ElementKind::F32 => host::<f32, B>(backend, op, data),
        ElementKind::F64 => host::<f64, B>(backend, op, data),
        ElementKind::Scalar(curve) => with_curve!(curve, C => host::<Scalar<C>, B>(backend, op, data)),
    }
}

fn host<E: ToReduced, B: Reduce>(backend: &B, op: ReduceOp, data: HostData<'_>) -> Result<Reduced> {
    backend.reduce_host::<E>(op, data).map(E::value).map_err(of_input)
}

/// The error of a reduction: what a caller did wrong is wrong with the elements.
pub fn of_input(error: tandem_ops::Error) -> Error {
    match error {
        tandem_ops::Error::Invalid { reason, .. } => Error::BadInput(reason),
        other => other.into(),
    }
}
