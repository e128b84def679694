//! The random scalars of a proof.

use crate::{Error, KeyPoints, Result};
use ark_ff::PrimeField;
use tandem_ops::{Canonical, Curve, Group};
use zeroize::Zeroize;

/// The two random scalars that keep a proof from telling anything of its witness. Wiped when dropped.
pub struct Blinding<C: Curve> {
    pub(crate) r: C::Fr,
    pub(crate) s: C::Fr,
}

impl<C: Curve> Blinding<C> {
    /// Draws both from the operating system.
    ///
    /// # Errors
    /// [`Error::Random`].
    pub fn random() -> Result<Self> {
        Ok(Self { r: random_scalar::<C>()?, s: random_scalar::<C>()? })
    }

    /// Takes these two. A proof with known blinding gives its witness away: for tests that compare proofs only.
    #[doc(hidden)]
    pub fn fixed(r: C::Fr, s: C::Fr) -> Self {
        Self { r, s }
    }

    /// What of a proof depends on the key and the blinding alone.
    pub(crate) fn terms(&self, points: &KeyPoints<C>) -> Terms<C> {
        let delta1 = C::G1::to_ark(&points.delta1);
        // The product in G2 takes as long as the others together.
        let (b2, (a, b1, c)) = rayon::join(
            || C::G2::to_ark(&points.delta2) * self.s + C::G2::to_ark(&points.beta2),
            || {
                let a = delta1 * self.r + C::G1::to_ark(&points.alpha1);
                let b1 = delta1 * self.s + C::G1::to_ark(&points.beta1);
                (a, b1, delta1 * -(self.r * self.s))
            },
        );
        Terms { a, b1, b2, c }
    }
}

/// alpha + r delta, beta + s delta in both groups, and -r s delta.
pub(crate) struct Terms<C: Curve> {
    pub(crate) a: <C::G1 as Group>::Ark,
    pub(crate) b1: <C::G1 as Group>::Ark,
    pub(crate) b2: <C::G2 as Group>::Ark,
    pub(crate) c: <C::G1 as Group>::Ark,
}

impl<C: Curve> Drop for Blinding<C> {
    fn drop(&mut self) {
        self.r.zeroize();
        self.s.zeroize();
    }
}

/// A scalar of which all values are equally likely: bits of the modulus's length are drawn until they are below it.
fn random_scalar<C: Curve>() -> Result<C::Fr> {
    let bits = C::Fr::MODULUS_BIT_SIZE;
    let mut limbs = [0u64; 4];
    loop {
        getrandom::fill(bytemuck::bytes_of_mut(&mut limbs)).map_err(|e| Error::Random(e.to_string()))?;
        limbs[3] &= u64::MAX >> (256 - bits);
        let scalar = C::from_canonical(Canonical(limbs));
        limbs.zeroize();
        if let Some(scalar) = scalar {
            return Ok(scalar);
        }
    }
}
