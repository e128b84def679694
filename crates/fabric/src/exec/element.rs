//! What can be combined, and how.

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
}

impl Kind {
    /// Bytes of one.
    pub fn bytes(self) -> u64 {
        match self {
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
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
}

mod sealed {
    pub trait Sealed {}
}

/// Numbers that collectives can combine: `u32`, `i32`, `u64`, `i64`, `f32` and `f64`.
pub trait Number: bytemuck::Pod + sealed::Sealed {
    /// Which it is.
    const KIND: Kind;
    /// The combination of two.
    fn combine(self, other: Self, how: Combine) -> Self;
}

macro_rules! number {
    ($type:ty, $kind:ident, $add:expr) => {
        impl sealed::Sealed for $type {}
        impl Number for $type {
            const KIND: Kind = Kind::$kind;
            fn combine(self, other: Self, how: Combine) -> Self {
                match how {
                    Combine::Sum => $add(self, other),
                    Combine::Min => {
                        if other < self {
                            other
                        } else {
                            self
                        }
                    }
                    Combine::Max => {
                        if self < other {
                            other
                        } else {
                            self
                        }
                    }
                }
            }
        }
    };
}

number!(u32, U32, u32::wrapping_add);
number!(i32, I32, i32::wrapping_add);
number!(u64, U64, u64::wrapping_add);
number!(i64, I64, i64::wrapping_add);
number!(f32, F32, |a: f32, b: f32| a + b);
number!(f64, F64, |a: f64, b: f64| a + b);

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
        Kind::U32 => of::<u32>(how, all, other),
        Kind::I32 => of::<i32>(how, all, other),
        Kind::U64 => of::<u64>(how, all, other),
        Kind::I64 => of::<i64>(how, all, other),
        Kind::F32 => of::<f32>(how, all, other),
        Kind::F64 => of::<f64>(how, all, other),
    }
}
