//! The prover of a sumcheck over a product of multilinear polynomials.
//!
//! A table of 2^k elements is a polynomial of degree 1 in each of k variables: its values on {0, 1}^k, the first variable being the
//! highest bit of an index. Of d tables, the sum over all indices of the products of their elements is shown in k rounds
//! (C. Lund, L. Fortnow, H. Karloff, N. Nisan, "Algebraic Methods for Interactive Proof Systems", J. ACM 39, 1992). In a round
//! one variable is left free, the later ones are summed over {0, 1}: a polynomial of degree d, of which the prover tells the values at
//! 0, 1, .. d. The verifier's challenge then takes that variable's place: tables are bound to it and become half as long.
//!
//! [`prove`] is the protocol over any [`Sumcheck`] backend, [`verify`] its other side. What is claimed in the end, the values of the
//! polynomials at the point of all challenges, is for the caller to show, such as by openings of commitments.

mod field;
mod prove;
mod verify;

pub use field::{Goldilocks2Config, SumcheckField};
pub use prove::{host_rows, prove, Proved};
pub use verify::{verify, SumcheckProof};

use crate::{Backend, Error, Lane, Pending, Result};
use ark_ff::Field;

/// Most tables of a product.
pub const TABLES_MAX: usize = 4;

/// A round's polynomial of degree d, as backends find it: its values at 0, 1, .. d - 1 in these places, and in place d its leading coefficient,
/// which takes fewer steps than the value at d. Of degree 1 there are the values at 0 and at 1. Behind place d there are zeros.
pub type RoundValues<F> = [<F as SumcheckField>::Challenge; TABLES_MAX + 1];

/// The rounds of a sumcheck over tables on one lane. Rounds begin with the highest bit, so that neighbours stay neighbours and columns can be
/// bound in place; and so that a lane needs no other for its rounds where elements are dealt to lanes by their lowest bits ([`prove`]).
///
/// # Errors
/// Every operation: there are none or more than [`TABLES_MAX`] tables, lengths or lanes differ, a length is no power of two or too short;
/// the challenge is not below the modulus; not enough memory; the device failed.
#[allow(clippy::missing_errors_doc)]
pub trait Sumcheck<F: SumcheckField>: Backend {
    /// The first round's values, of tables of at least 2 elements.
    fn sumcheck_sums(&self, tables: &[&Self::Buf<F::Element>]) -> Result<Pending<RoundValues<F>>>;

    /// Binds the first variable of tables of n elements, at least 4, to `r`: new memory of a column of n / 2 for each table, one behind the
    /// other. With them come the values of the round after, but for that at 1, which is zero: it is known from what the round before claims.
    #[allow(clippy::type_complexity)]
    fn sumcheck_bind(
        &self,
        tables: &[&Self::Buf<F::Element>],
        r: F::Challenge,
    ) -> Result<(Self::Buf<F::Challenge>, Pending<RoundValues<F>>)>;

    /// Binds the next variable of the first `count` elements of each of `tables` columns, at least 4, to `r`, in place: the first half of them
    /// holds what comes out, the second is undefined. Values as from [`Sumcheck::sumcheck_bind`].
    fn sumcheck_fold(
        &self,
        columns: &mut Self::Buf<F::Challenge>,
        tables: usize,
        count: usize,
        r: F::Challenge,
    ) -> Result<Pending<RoundValues<F>>>;

    /// The first `count` elements of each of `tables` columns, one column behind the other, for the host: a power of two.
    fn sumcheck_take(
        &self,
        columns: &Self::Buf<F::Challenge>,
        tables: usize,
        count: usize,
    ) -> Result<Pending<Vec<F::Challenge>>>;
}

fn check_length(op: &'static str, n: usize, least: usize) -> Result<()> {
    if !n.is_power_of_two() || n < least {
        return Err(Error::invalid(op, format!("tables of {n} elements; expected a power of two from {least} on")));
    }
    Ok(())
}

fn check_tables_count(op: &'static str, tables: usize) -> Result<()> {
    if !(1..=TABLES_MAX).contains(&tables) {
        return Err(Error::invalid(op, format!("{tables} tables; expected 1 to {TABLES_MAX}")));
    }
    Ok(())
}

/// The lane and the length of tables with these lanes and lengths.
///
/// # Errors
/// [`Error::Invalid`]: see [`Sumcheck`]; a length is below `least`.
pub fn check_tables(op: &'static str, tables: &[(Lane, usize)], least: usize) -> Result<(Lane, usize)> {
    check_tables_count(op, tables.len())?;
    let (lane, n) = tables[0];
    if let Some((other, len)) = tables.iter().find(|table| **table != (lane, n)) {
        let reason = format!("tables of {n} elements on lane {} and of {len} on lane {}", lane.0, other.0);
        return Err(Error::invalid(op, reason));
    }
    check_length(op, n, least)?;
    Ok((lane, n))
}

/// How many elements each of `tables` columns has of a buffer of `len`, of which the first `count` are wanted: a power of two, and at least `least`.
///
/// # Errors
/// [`Error::Invalid`]: see [`Sumcheck::sumcheck_fold`].
pub fn check_columns(op: &'static str, len: usize, tables: usize, count: usize, least: usize) -> Result<usize> {
    check_tables_count(op, tables)?;
    check_length(op, count, least)?;
    if !len.is_multiple_of(tables) || count > len / tables {
        return Err(Error::invalid(op, format!("{count} elements of each of {tables} columns in a buffer of {len}")));
    }
    Ok(len / tables)
}

/// The challenge as a value.
///
/// # Errors
/// [`Error::Invalid`]: it is not below the modulus.
pub fn check_challenge<F: SumcheckField>(op: &'static str, r: F::Challenge) -> Result<F::Extension> {
    F::checked(r).ok_or_else(|| Error::invalid(op, "the challenge is not below the modulus"))
}

/// Adds what a pair of rows gives to a round's polynomial ([`RoundValues`]): the product of the lines through `low` at 0 and `low + step` at 1.
/// The value at 1 is added if that is asked for.
#[inline]
pub(crate) fn add_products<E: Field, const D: usize>(
    sums: &mut [E; TABLES_MAX + 1],
    low: [E; D],
    step: [E; D],
    with_one: bool,
) {
    let product = |factors: &[E; D]| factors[1..].iter().fold(factors[0], |product, factor| product * factor);
    let mut at = low;
    for (t, sum) in sums.iter_mut().enumerate().take(D.max(2)) {
        if t > 0 {
            at.iter_mut().zip(&step).for_each(|(at, step)| *at += step);
        }
        if t != 1 || with_one {
            *sum += product(&at);
        }
    }
    if D > 1 {
        sums[D] += product(&step);
    }
}

/// The value at d of a polynomial of degree d, of which there are the values at 0, 1, .. d - 1 and the leading coefficient: the d-th difference
/// of its values, the sum of (-1)^(d - k) (d over k) times that at k, is d! times the leading coefficient.
fn last_value<E: Field>(values: &[E]) -> E {
    let d = values.len() - 1;
    let (mut sum, mut binomial, mut factorial) = (E::ZERO, 1u64, 1u64);
    for (k, &value) in values[..d].iter().enumerate() {
        let term = value * E::from(binomial);
        sum += if (d - k).is_multiple_of(2) { -term } else { term };
        binomial = binomial * (d - k) as u64 / (k + 1) as u64;
        factorial *= (k + 1) as u64;
    }
    sum + values[d] * E::from(factorial)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bn254;
    use ark_ff::UniformRand;
    use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};

    #[test]
    fn the_last_value_follows_from_the_leading_coefficient() {
        type Fr = <Bn254 as crate::Curve>::Fr;
        let mut rng = ChaCha8Rng::seed_from_u64(6);
        for degree in 2..=TABLES_MAX {
            let c: Vec<Fr> = (0..=degree).map(|_| Fr::rand(&mut rng)).collect();
            let at = |t: usize| crate::naive::value(&c, Fr::from(t as u64));
            let known: Vec<Fr> = (0..degree).map(at).chain([c[degree]]).collect();
            assert_eq!(last_value(&known), at(degree), "degree {degree}");
        }
    }
}
