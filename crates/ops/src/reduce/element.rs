//! What can be reduced.

use super::ReduceOp;
use crate::{Canonical, Curve, CurveId, Wire};
use ark_ff::{BigInt, BigInteger, PrimeField};
use std::marker::PhantomData;

/// A kind of elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ElementKind {
    /// Unsigned integers of 32 bits.
    U32,
    /// Unsigned integers of 64 bits.
    U64,
    /// Floating-point numbers of 32 bits.
    F32,
    /// Floating-point numbers of 64 bits.
    F64,
    /// Elements of a curve's scalar field, as integers below the modulus.
    Scalar(CurveId),
}

/// Elements of one kind: u32, u64, f32, f64, or [`Scalar`] of a curve.
pub trait Element: Send + Sync + 'static {
    /// An element in memory.
    type Wire: Wire + Copy;
    /// Which kind.
    const KIND: ElementKind;

    /// The element that changes no other: the sum of nothing, the greatest element, or the least.
    fn neutral(op: ReduceOp) -> Self::Wire;
    /// One of two.
    fn combine(op: ReduceOp, a: Self::Wire, b: Self::Wire) -> Self::Wire;
    /// Gives a result one form: there are many numbers that are none.
    fn finish(x: Self::Wire) -> Self::Wire {
        x
    }
    /// Whether it is an element: an integer of a field may be not below the modulus.
    fn is_element(x: &Self::Wire) -> bool {
        let _ = x;
        true
    }
}

macro_rules! integers {
    ($($t:ident, $kind:ident);+) => {$(
        impl Element for $t {
            type Wire = $t;
            const KIND: ElementKind = ElementKind::$kind;

            fn neutral(op: ReduceOp) -> $t {
                if op == ReduceOp::Min { $t::MAX } else { 0 }
            }
            fn combine(op: ReduceOp, a: $t, b: $t) -> $t {
                match op {
                    ReduceOp::Sum => a.wrapping_add(b),
                    ReduceOp::Min => a.min(b),
                    ReduceOp::Max => a.max(b),
                }
            }
        }
    )+};
}
integers!(u32, U32; u64, U64);

macro_rules! floats {
    ($($t:ident, $kind:ident);+) => {$(
        impl Element for $t {
            type Wire = $t;
            const KIND: ElementKind = ElementKind::$kind;

            fn neutral(op: ReduceOp) -> $t {
                match op {
                    ReduceOp::Sum => 0.0,
                    ReduceOp::Min => $t::INFINITY,
                    ReduceOp::Max => $t::NEG_INFINITY,
                }
            }
            fn combine(op: ReduceOp, a: $t, b: $t) -> $t {
                let first_is_less = || a.is_nan() || (!b.is_nan() && a.total_cmp(&b).is_lt());
                let first_is_greater = || a.is_nan() || (!b.is_nan() && a.total_cmp(&b).is_gt());
                let takes_first = match op {
                    ReduceOp::Sum => return a + b,
                    ReduceOp::Min => first_is_less(),
                    ReduceOp::Max => first_is_greater(),
                };
                if takes_first { a } else { b }
            }
            fn finish(x: $t) -> $t {
                if x.is_nan() { $t::NAN } else { x }
            }
        }
    )+};
}
floats!(f32, F32; f64, F64);

/// Elements of the scalar field of `C`, as integers below the modulus.
#[derive(Debug)]
pub struct Scalar<C>(PhantomData<C>);

impl<C: Curve> Element for Scalar<C> {
    type Wire = Canonical;
    const KIND: ElementKind = ElementKind::Scalar(C::ID);

    fn neutral(op: ReduceOp) -> Canonical {
        match op {
            ReduceOp::Min => C::canonical(-C::Fr::from(1u64)),
            ReduceOp::Sum | ReduceOp::Max => Canonical([0; 4]),
        }
    }

    fn combine(op: ReduceOp, a: Canonical, b: Canonical) -> Canonical {
        let (mut sum, other) = (BigInt(a.0), BigInt(b.0));
        match op {
            ReduceOp::Min => return if sum < other { a } else { b },
            ReduceOp::Max => return if sum < other { b } else { a },
            ReduceOp::Sum => {}
        }
        // Both moduli are below 2^255, so nothing is carried.
        sum.add_with_carry(&other);
        let modulus = modulus::<C>();
        if sum >= modulus {
            sum.sub_with_borrow(&modulus);
        }
        Canonical(sum.0)
    }

    fn is_element(x: &Canonical) -> bool {
        BigInt(x.0) < modulus::<C>()
    }
}

fn modulus<C: Curve>() -> BigInt<4> {
    C::Fr::MODULUS
}
