//! The random scalars of a proof.

use crate::{KeyPoints, Result, Witness};
use tandem_ops::{Curve, Group};
use tandem_proof::random_scalar;
use zeroize::Zeroizing;

/// The two random scalars that keep a proof from telling anything of its witness. Wiped when dropped.
pub struct Blinding<C: Curve> {
    pub(crate) r: Zeroizing<C::Fr>,
    pub(crate) s: Zeroizing<C::Fr>,
}

impl<C: Curve> Blinding<C> {
    /// Draws both from the operating system.
    ///
    /// # Errors
    /// [`crate::Error::Random`].
    pub fn random() -> Result<Self> {
        Ok(Self { r: random_scalar::<C>()?, s: random_scalar::<C>()? })
    }

    /// Those that came with the witness, or two from the operating system.
    ///
    /// # Errors
    /// [`crate::Error::Random`].
    pub fn of(witness: &Witness<C>) -> Result<Self> {
        match witness.evaluations().and_then(|evaluations| evaluations.blinding()) {
            Some([r, s]) => Ok(Self { r: r.clone(), s: s.clone() }),
            None => Self::random(),
        }
    }

    /// Takes these two. A proof with known blinding gives its witness away: for tests that compare proofs only.
    #[doc(hidden)]
    pub fn fixed(r: C::Fr, s: C::Fr) -> Self {
        Self { r: Zeroizing::new(r), s: Zeroizing::new(s) }
    }

    /// What of a proof depends on the key and the blinding alone.
    pub(crate) fn terms(&self, points: &KeyPoints<C>) -> Terms<C> {
        let (r, s) = (&*self.r, &*self.s);
        let delta1 = C::G1::to_ark(&points.delta1);
        // The product in G2 takes as long as the others together.
        let (b2, (a, b1, c)) = rayon::join(
            || C::G2::to_ark(&points.delta2) * s + C::G2::to_ark(&points.beta2),
            || {
                let a = delta1 * r + C::G1::to_ark(&points.alpha1);
                let b1 = delta1 * s + C::G1::to_ark(&points.beta1);
                (a, b1, delta1 * -(*r * s))
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

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ff::{AdditiveGroup, BigInteger, PrimeField};
    use std::collections::HashSet;
    use tandem_ops::{Bls12_381, Bn254};

    fn draws<C: Curve>() {
        const DRAWS: usize = 64;
        let drawn: Vec<Blinding<C>> = (0..DRAWS).map(|_| Blinding::random().unwrap()).collect();
        let scalars: Vec<C::Fr> = drawn.iter().flat_map(|b| [*b.r, *b.s]).collect();
        assert!(scalars.iter().all(|x| *x != C::Fr::ZERO));
        assert_eq!(scalars.iter().collect::<HashSet<_>>().len(), 2 * DRAWS, "a scalar occurs twice");
        // Each bit is drawn as 0 and as 1. The top one is the least even: it is 1 in a third of the scalars, so that none of
        // 128 has it with a chance below 2^-70.
        let has = |bit: u32, wanted: bool| scalars.iter().any(|x| x.into_bigint().get_bit(bit as usize) == wanted);
        for bit in 0..C::Fr::MODULUS_BIT_SIZE {
            assert!(has(bit, true) && has(bit, false), "bit {bit} is always the same");
        }
    }

    #[test]
    fn scalars_are_different_and_of_full_length() {
        draws::<Bn254>();
        draws::<Bls12_381>();
    }

    /// Both scalars are of a type that wipes itself when it is dropped.
    #[test]
    fn scalars_are_wiped() {
        fn wipes<T: zeroize::ZeroizeOnDrop>(_: &T) {}
        let Blinding { r, s } = Blinding::<Bn254>::random().unwrap();
        wipes(&r);
        wipes(&s);
    }
}
