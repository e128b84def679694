//! Whether the points of a key are what they must be.
//!
//! A proof hides its witness because its polynomials are blinded by multiples of Z_H. That holds where tau is no row of the domain: there
//! Z_H is zero, and a commitment would show the value of a row. It also takes the powers to be those of one tau, the one in G2; else a
//! key could leave the blinding out of what it commits to.

use crate::{Error, Result, VerifyingKey};
use ark_ff::Field;
use tandem_ops::Curve;
use tandem_proof::points::{check_finite, check_point};

/// Checks the points of a verification key, that tau is no infinity in G2, and that the cosets of the columns have no row in common.
///
/// # Errors
/// [`Error::Key`] that names what is wrong.
pub(crate) fn check_single_points<C: Curve>(key: &VerifyingKey<C>) -> Result<()> {
    let names = ["Qm", "Ql", "Qr", "Qo", "Qc", "S1", "S2", "S3"];
    for (name, point) in names.iter().zip(key.selectors.iter().chain(&key.permutation)) {
        check_point::<C::G1>(point).map_err(|fault| Error::Key(format!("point {name} {fault}")))?;
    }
    check_finite::<C::G2>(&key.x_2).map_err(|fault| Error::Key(format!("point X_2 {fault}")))?;
    check_cosets(key.publics, key.domain, key.k)
}

/// Checks the sizes of a key, and that the domain and the columns' cosets have no row in common.
///
/// # Errors
/// [`Error::Key`] that names what is wrong.
pub(crate) fn check_cosets<F: Field>(publics: usize, domain: usize, k: [F; 2]) -> Result<()> {
    if publics > domain || !domain.is_power_of_two() {
        return Err(Error::Key(format!("{publics} public values and a domain of {domain} rows")));
    }
    // A coset of the domain is told by its elements' power.
    let [c1, c2] = k.map(|k| k.pow([domain as u64]));
    if c1.is_zero() || c2.is_zero() || c1 == F::ONE || c2 == F::ONE || c1 == c2 {
        return Err(Error::Key("k1 and k2 do not keep the columns apart; make the key again".into()));
    }
    Ok(())
}
