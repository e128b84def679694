//! The number-theoretic transform: evaluation and interpolation over a group of roots of unity.

use crate::{Backend, Curve, Mont, Result};

/// Order of a vector of 2^k elements: `Natural`, element i at place i, or `BitReversed`, element i at the place
/// whose k-bit number is that of i read backwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// Element i at place i.
    Natural,
    /// Element i at place bitrev(i).
    BitReversed,
}

/// Which way to transform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From n coefficients to n values.
    Forward,
    /// From n values to n coefficients.
    Inverse,
}

/// The set of points: g * w^i for i in 0..n, w the primitive n-th root of unity of the curve's scalar field
/// ([`Curve::root_of_unity`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coset {
    /// g = 1: the subgroup itself.
    Subgroup,
    /// g is the primitive 2n-th root of unity, so that the points are the odd powers of it. snarkjs evaluates its
    /// quotient there. Needs 2n to divide r - 1.
    Odd,
    /// Any g other than zero.
    Shift(Mont),
}

/// One transform.
///
/// `Forward` maps coefficients c to the values v_i = sum_j c_j (g w^i)^j; `Inverse` is its inverse, with the factor
/// 1/n. `input` and `output` say where element i stands before and after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NttOp {
    /// Which way.
    pub direction: Direction,
    /// Over which points.
    pub coset: Coset,
    /// Order of what comes in.
    pub input: Order,
    /// Order of what goes out.
    pub output: Order,
}

/// Transforms over the scalar field of `C`.
pub trait Ntt<C: Curve>: Backend {
    /// Transforms `data` in place. Its length n must be a power of two (1 is one) that divides r - 1; 2n must
    /// too for [`Coset::Odd`].
    ///
    /// # Errors
    /// The length is none of these; the shift is zero; the device failed.
    fn ntt(&self, data: &mut Self::Buf<Mont>, op: NttOp) -> Result<()>;
}
