//! What can be combined, and how.

use super::short::{Bf16, F16};
use crate::{Error, Result};

/// Kinds of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Kind {
    /// `u32`
    U32 = 0,
    /// `i32`
    I32 = 1,
    /// `u64`
    U64 = 2,
    /// `i64`
    I64 = 3,
    /// `f32`
    F32 = 4,
    /// `f64`
    F64 = 5,
    /// `u8`
    U8 = 7,
    /// `i8`
    I8 = 8,
    /// `u16`
    U16 = 9,
    /// `i16`
    I16 = 10,
    /// [`F16`]
    F16 = 11,
    /// [`Bf16`]
    Bf16 = 12,
}

impl Kind {
    /// Bytes of one.
    pub fn bytes(self) -> u64 {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 | Self::Bf16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// Whether kernels that stay combine such numbers in this way.
    pub(crate) fn is_resident(self, how: Combine) -> bool {
        (self as i32) < 6 && matches!(how, Combine::Sum | Combine::Min | Combine::Max)
    }
}

/// How several numbers become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Combine {
    /// Their sum; integers wrap around. Sums of floating-point numbers depend on the order, which is the schedule's.
    Sum = 0,
    /// The least; what a NaN gives depends on the order.
    Min = 1,
    /// The greatest; likewise.
    Max = 2,
    /// Their product; integers wrap around.
    Product = 3,
    /// The bits that all have; of integers, as the next two.
    And = 4,
    /// The bits that any has.
    Or = 5,
    /// The bits that an odd number of them have.
    Xor = 6,
}

impl Combine {
    /// All of them.
    pub const ALL: [Self; 7] = [Self::Sum, Self::Min, Self::Max, Self::Product, Self::And, Self::Or, Self::Xor];

    /// Whether it is of the bits, which floating-point numbers are not combined by.
    pub fn is_of_bits(self) -> bool {
        matches!(self, Self::And | Self::Or | Self::Xor)
    }
}

mod sealed {
    pub trait Sealed {}
}

/// Numbers that collectives can combine: integers of 8 to 64 bits, [`F16`], [`Bf16`], `f32` and `f64`.
pub trait Number: bytemuck::Pod + sealed::Sealed {
    /// Which it is.
    const KIND: Kind;
    /// Whether it is an integer, whose bits can be combined.
    const IS_INTEGER: bool;
    /// The combination of two; `self` where the operation is not one of this number.
    fn combine(self, other: Self, how: Combine) -> Self;
}

fn least<T: PartialOrd>(a: T, b: T) -> T {
    if b < a {
        b
    } else {
        a
    }
}

fn greatest<T: PartialOrd>(a: T, b: T) -> T {
    if a < b {
        b
    } else {
        a
    }
}

macro_rules! integers {
    ($($type:ty, $kind:ident;)*) => {$(
        impl sealed::Sealed for $type {}
        impl Number for $type {
            const KIND: Kind = Kind::$kind;
            const IS_INTEGER: bool = true;
            fn combine(self, other: Self, how: Combine) -> Self {
                match how {
                    Combine::Sum => self.wrapping_add(other),
                    Combine::Product => self.wrapping_mul(other),
                    Combine::Min => least(self, other),
                    Combine::Max => greatest(self, other),
                    Combine::And => self & other,
                    Combine::Or => self | other,
                    Combine::Xor => self ^ other,
                }
            }
        }
    )*};
}

macro_rules! floats {
    ($($type:ty, $kind:ident;)*) => {$(
        impl sealed::Sealed for $type {}
        impl Number for $type {
            const KIND: Kind = Kind::$kind;
            const IS_INTEGER: bool = false;
            fn combine(self, other: Self, how: Combine) -> Self {
                match how {
                    Combine::Sum => self + other,
                    Combine::Product => self * other,
                    Combine::Min => least(self, other),
                    Combine::Max => greatest(self, other),
                    Combine::And | Combine::Or | Combine::Xor => self,
                }
            }
        }
    )*};
}

integers! {
    u8, U8; i8, I8; u16, U16; i16, I16; u32, U32; i32, I32; u64, U64; i64, I64;
}
floats! {
    F16, F16; Bf16, Bf16; f32, F32; f64, F64;
}

/// Fails where `how` is not an operation of these numbers.
pub(crate) fn check<T: Number>(op: &'static str, how: Combine) -> Result<()> {
    if T::IS_INTEGER || !how.is_of_bits() {
        return Ok(());
    }
    let problem =
        format!("{how:?} of {:?}, whose bits are not combined; cast the memory to integers of its size", T::KIND);
    Err(Error::invalid(op, problem))
}

/// Combines `other` into `all`, both whole numbers of elements.
pub(crate) fn combine(kind: Kind, how: Combine, all: &mut [u8], other: &[u8]) {
    fn of<T: Number>(how: Combine, all: &mut [u8], other: &[u8]) {
        let size = size_of::<T>();
        for (a, b) in all.chunks_exact_mut(size).zip(other.chunks_exact(size)) {
            let sum = bytemuck::pod_read_unaligned::<T>(a).combine(bytemuck::pod_read_unaligned(b), how);
            a.copy_from_slice(bytemuck::bytes_of(&sum));
        }
    }
    match kind {
        Kind::U8 => of::<u8>(how, all, other),
        Kind::I8 => of::<i8>(how, all, other),
        Kind::U16 => of::<u16>(how, all, other),
        Kind::I16 => of::<i16>(how, all, other),
        Kind::F16 => of::<F16>(how, all, other),
        Kind::Bf16 => of::<Bf16>(how, all, other),
        Kind::U32 => of::<u32>(how, all, other),
        Kind::I32 => of::<i32>(how, all, other),
        Kind::U64 => of::<u64>(how, all, other),
        Kind::I64 => of::<i64>(how, all, other),
        Kind::F32 => of::<f32>(how, all, other),
        Kind::F64 => of::<f64>(how, all, other),
    }
}
