//! The number-theoretic transform: evaluation and interpolation over a group of roots of unity.

pub mod cube;
pub mod fft;
mod grid;
pub mod spread;

pub use fft::{Complex, Fft};
pub use spread::{NttSpread, Spread, MAX_SHARDS};

use crate::{Backend, Buffer, Curve, Error, Mont, NttField, Result, VecOps};
use ark_ff::FftField;

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

/// The set of points: g * w^i for i in 0..n, w the primitive n-th root of unity of the field
/// ([`NttField::root_of_unity`]). `E` are the field's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coset<E = Mont> {
    /// g = 1: the subgroup itself.
    Subgroup,
    /// g is the primitive 2n-th root of unity, so that the points are the odd powers of it. snarkjs evaluates its
    /// quotient there. Needs 2n to divide the order of the field's group.
    Odd,
    /// Any g other than zero.
    Shift(E),
}

/// One transform.
///
/// `Forward` maps coefficients c to the values v_i = sum_j c_j (g w^i)^j; `Inverse` is its inverse, with the factor
/// 1/n. `input` and `output` say where element i stands before and after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NttOp<E = Mont> {
    /// Which way.
    pub direction: Direction,
    /// Over which points.
    pub coset: Coset<E>,
    /// Order of what comes in.
    pub input: Order,
    /// Order of what goes out.
    pub output: Order,
}

/// Transforms over the field `F`; a curve stands for its scalar field.
pub trait Ntt<F: NttField>: Backend {
    /// Transforms each of the `count` vectors that `data` holds one behind the other, in place. `data` has `count` n
    /// elements, where n must be a power of two (1 is one) for which there is a root of unity; for [`Coset::Odd`] there
    /// must be one for 2n.
    ///
    /// # Errors
    /// The length is none of these, or `count` is zero; the shift is zero; the device failed.
    fn ntt_batch(&self, data: &mut Self::Buf<F::Element>, count: usize, op: NttOp<F::Element>) -> Result<()>;

    /// Transforms `data` in place: a batch of one.
    ///
    /// # Errors
    /// As [`Ntt::ntt_batch`].
    fn ntt(&self, data: &mut Self::Buf<F::Element>, op: NttOp<F::Element>) -> Result<()> {
        self.ntt_batch(data, 1, op)
    }
}

/// Transforms that begin or end with a pointwise product, as those of a proof's quotient do. Elements are multiplied as they stand, whatever
/// order that is. What each does is done one after the other unless a backend has a faster way.
pub trait NttProducts<C: Curve>: Ntt<C> + VecOps<C> {
    /// The transform of a_i * b_i, in memory of its own.
    ///
    /// # Errors
    /// As [`Ntt::ntt`] and [`VecOps::mul`].
    fn ntt_of_product(&self, a: &Self::Buf<Mont>, b: &Self::Buf<Mont>, op: NttOp) -> Result<Self::Buf<Mont>> {
        product_then_ntt::<C, Self>(self, a, b, op)
    }

    /// a_i * b_i less the transform of c, whose memory may become the result's.
    ///
    /// # Errors
    /// As [`Ntt::ntt`] and [`VecOps::mul_sub`].
    fn product_less_ntt(
        &self,
        a: &Self::Buf<Mont>,
        b: &Self::Buf<Mont>,
        c: Self::Buf<Mont>,
        op: NttOp,
    ) -> Result<Self::Buf<Mont>> {
        ntt_then_product::<C, Self>(self, a, b, c, op)
    }
}

/// [`NttProducts::ntt_of_product`], one after the other.
///
/// # Errors
/// As there.
pub fn product_then_ntt<C: Curve, B: Ntt<C> + VecOps<C> + ?Sized>(
    backend: &B,
    a: &B::Buf<Mont>,
    b: &B::Buf<Mont>,
    op: NttOp,
) -> Result<B::Buf<Mont>> {
    let mut product = backend.copy(a, 0..a.len(), a.lane())?;
    VecOps::<C>::mul(backend, &mut product, b)?;
    Ntt::<C>::ntt(backend, &mut product, op)?;
    Ok(product)
}

/// [`NttProducts::product_less_ntt`], one after the other.
///
/// # Errors
/// As there.
pub fn ntt_then_product<C: Curve, B: Ntt<C> + VecOps<C> + ?Sized>(
    backend: &B,
    a: &B::Buf<Mont>,
    b: &B::Buf<Mont>,
    mut c: B::Buf<Mont>,
    op: NttOp,
) -> Result<B::Buf<Mont>> {
    Ntt::<C>::ntt(backend, &mut c, op)?;
    let mut product = backend.copy(a, 0..a.len(), a.lane())?;
    VecOps::<C>::mul_sub(backend, &mut product, b, &c)?;
    Ok(product)
}

/// The size 2^k of each of `count` vectors of together `len` elements over `F`, as k.
///
/// # Errors
/// There is no transform of such vectors over this coset.
pub fn log_size<F: NttField>(len: usize, count: usize, coset: Coset<F::Element>) -> Result<u32> {
    let most = <F::Ark as FftField>::TWO_ADICITY - u32::from(coset == Coset::Odd);
    let n = if count > 0 && len.is_multiple_of(count) { len / count } else { 0 };
    if n.is_power_of_two() && n.ilog2() <= most {
        return Ok(n.ilog2());
    }
    let over = if coset == Coset::Odd { " over the odd coset" } else { "" };
    Err(Error::invalid("ntt", format!("{count} vectors of together {len} elements{over}; expected vectors whose size is a power of two up to 2^{most}")))
}

/// The example of the guide is a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/transforms.md")]
struct Guide;
