//! Randomness of proofs.

use crate::{Error, Result};
use ark_ff::PrimeField;
use tandem_ops::{Canonical, Curve};
use zeroize::Zeroizing;

/// A scalar of which all values are equally likely: bits of the modulus's length are drawn until they are below it.
///
/// # Errors
/// [`Error::Random`] where the operating system gives none.
pub fn random_scalar<C: Curve>() -> Result<Zeroizing<C::Fr>> {
    let bits = C::Fr::MODULUS_BIT_SIZE;
    let mut limbs = Zeroizing::new([0u64; 4]);
    loop {
        getrandom::fill(bytemuck::bytes_of_mut(&mut *limbs)).map_err(|e| Error::Random(e.to_string()))?;
        limbs[3] &= u64::MAX >> (256 - bits);
        if let Some(scalar) = C::from_canonical(Canonical(*limbs)) {
            return Ok(Zeroizing::new(scalar));
        }
    }
}
