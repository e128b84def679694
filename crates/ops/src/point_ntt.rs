//! Transforms of points.

use crate::{Backend, Canonical, Curve, Error, Group, Result};
use ark_ff::{BigInteger, Field, PrimeField};

const OP: &str = "point NTT";

/// A point of G1 on the wire.
type P1<C> = <<C as Curve>::G1 as Group>::Point;

/// Inverse transforms over points of G1, by the butterflies of Cooley and Tukey: n / 2 log2 n products of points with roots of unity.
pub trait PointNtt<C: Curve>: Backend {
    /// Replaces the points P_0 .. P_(n-1) by (1/n) sum_i w^(-i j) P_i for j = 0 .. n-1, w the root of unity of order n. Powers of tau become
    /// the points of the Lagrange basis: L_j(tau) times the first. Points are taken to lie in the group; infinity is one of them. They are
    /// public: nothing of them is overwritten that a device worked with.
    ///
    /// # Errors
    /// n is no power of two, or no root of unity has that order; not enough memory for another two or three points each.
    fn lagrange_points(&self, points: &mut Self::Buf<P1<C>>) -> Result<()>;

    /// How long [`PointNtt::lagrange_points`] of so many points takes, about, in seconds: whether it is worth it is for the caller to decide.
    fn lagrange_seconds(&self, points: usize) -> f64 {
        /// A product on one core of a server.
        const PRODUCT: f64 = 60e-6;
        products(points) * PRODUCT / rayon::current_num_threads() as f64
    }
}

/// Products of points that a transform of n takes, about.
pub fn products(n: usize) -> f64 {
    n as f64 / 2.0 * f64::from(n.max(1).ilog2())
}

/// The root of unity whose powers a transform of n points takes, inverted.
///
/// # Errors
/// n is no power of two, or the field has no such root.
pub fn inverse_root<C: Curve>(n: usize) -> Result<C::Fr> {
    let root = if n.is_power_of_two() { C::root_of_unity(n.ilog2()) } else { None };
    let inverse = root.and_then(|root| root.inverse());
    inverse
        .ok_or_else(|| Error::invalid(OP, format!("{n} points: expected a power of two that {} has roots of", C::ID)))
}

/// What a transform of n points multiplies by: 1/n, then for each i from 1 to n/2 - 1 the power of the inverse root whose number is i with its
/// log2 n - 1 bits in reverse. At every stage the butterflies of block i take element i.
///
/// # Errors
/// Those of [`inverse_root`]; not enough memory.
pub fn factors<C: Curve>(n: usize) -> Result<Vec<C::Fr>> {
    let root = inverse_root::<C>(n)?;
    let mut factors = crate::memory::filled(OP, (n / 2).max(1), C::Fr::ONE)?;
    // Element 2^k + i is element i times the power of the number 2^(log2 n - 2 - k).
    let mut known = 1;
    while known < factors.len() {
        let power = root.pow([(n / 4 / known) as u64]);
        let (before, behind) = factors.split_at_mut(known);
        behind.iter_mut().zip(before).for_each(|(to, from)| *to = *from * power);
        known *= 2;
    }
    factors[0] = C::Fr::from(n as u64).inverse().unwrap_or(C::Fr::ONE);
    Ok(factors)
}

/// A factor for windows of four bits: plus 8 times the sum of all 16^i, so that each hexadecimal digit less 8 is a signed one.
pub fn biased<C: Curve>(factor: C::Fr) -> Canonical {
    let mut integer = factor.into_bigint();
    let mut eights = integer;
    eights.as_mut().fill(0x8888_8888_8888_8888);
    // The modulus is below 2^255.
    integer.add_with_carry(&eights);
    Canonical(integer.0)
}
