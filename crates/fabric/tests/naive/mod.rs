//! Numbers and their combinations, for tests of collectives here and in other crates.
#![allow(dead_code, unreachable_pub)] // each test file uses a part

use crate::teams::numbers;
use std::fmt::Debug;
use tandem_fabric::exec::{Bf16, Combine, Number, F16};

/// Said another way than by the crate: integers on 128 bits, floating-point numbers on 64 and rounded once.
pub trait Naive: Number + Debug + Send + Sync {
    /// One that looks like nothing.
    fn random(bits: u64) -> Self;
    /// The combination of two.
    fn naive(self, other: Self, how: Combine) -> Self;
    /// Its bits.
    fn bits(self) -> u64;
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl Naive for $type {
            fn random(bits: u64) -> Self {
                bits as Self
            }
            fn naive(self, other: Self, how: Combine) -> Self {
                let (a, b) = (self as i128, other as i128);
                (match how {
                    Combine::Sum => a + b,
                    Combine::Product => a.wrapping_mul(b),
                    Combine::Min => a.min(b),
                    Combine::Max => a.max(b),
                    Combine::And => a & b,
                    Combine::Or => a | b,
                    Combine::Xor => a ^ b,
                }) as Self
            }
            fn bits(self) -> u64 {
                self as u64
            }
        }
    )*};
}
integers! { u8 i8 u16 i16 u32 i32 u64 i64 }

macro_rules! floats {
    ($($type:ty, $to:expr, $from:expr, $bits:expr;)*) => {$(
        impl Naive for $type {
            fn random(bits: u64) -> Self {
                $from((bits % 2001) as f64 / 16.0 - 62.5)
            }
            fn naive(self, other: Self, how: Combine) -> Self {
                let (a, b): (f64, f64) = ($to(self), $to(other));
                $from(match how {
                    Combine::Sum => a + b,
                    Combine::Product => a * b,
                    Combine::Min => a.min(b),
                    _ => a.max(b),
                })
            }
            fn bits(self) -> u64 {
                $bits(self)
            }
        }
    )*};
}
floats! {
    f64, |x| x, |x| x, |x: f64| x.to_bits();
    f32, f64::from, |x: f64| x as f32, |x: f32| x.to_bits().into();
    F16, |x| f64::from(f32::from(x)), |x: f64| F16::from(x as f32), |x: F16| x.0.into();
    Bf16, |x| f64::from(f32::from(x)), |x: f64| Bf16::from(x as f32), |x: Bf16| x.0.into();
}

/// The operations of a kind.
pub fn operations<T: Number>() -> impl Iterator<Item = Combine> {
    Combine::ALL.into_iter().filter(|how| T::IS_INTEGER || !how.is_of_bits())
}

/// So many of them.
pub fn random<T: Naive>(len: usize, seed: u64) -> Vec<T> {
    numbers::<u64>(len, seed).into_iter().map(T::random).collect()
}

/// The bits of the combination of all inputs, element by element and in their order.
pub fn sums<T: Naive>(inputs: &[Vec<T>], how: Combine) -> Vec<u64> {
    let one = |i: usize| inputs[1..].iter().fold(inputs[0][i], |sum, input| sum.naive(input[i], how)).bits();
    (0..inputs[0].len()).map(one).collect()
}

/// The bits of all.
pub fn bits<T: Naive>(values: &[T]) -> Vec<u64> {
    values.iter().map(|value| value.bits()).collect()
}
