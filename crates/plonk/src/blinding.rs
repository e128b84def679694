//! The random scalars of a proof.

use crate::Result;
use tandem_ops::Curve;
use tandem_proof::random_scalar;
use zeroize::Zeroizing;

/// Scalars that a proof takes: two for each column, three for the grand product, two for the parts of the quotient.
const COUNT: usize = 11;

/// The random scalars that keep a proof from telling anything of its witness. Wiped when dropped.
pub struct Blinding<C: Curve>(Zeroizing<[C::Fr; COUNT]>);

impl<C: Curve> Blinding<C> {
    /// Draws them from the operating system.
    ///
    /// # Errors
    /// [`crate::Error::Random`].
    pub fn random() -> Result<Self> {
        let mut all = Zeroizing::new([C::Fr::from(0u64); COUNT]);
        for scalar in all.iter_mut() {
            *scalar = *random_scalar::<C>()?;
        }
        Ok(Self(all))
    }

    /// Takes these. A proof with known blinding gives its witness away: for tests that compare proofs only.
    #[doc(hidden)]
    pub fn fixed(scalars: [C::Fr; COUNT]) -> Self {
        Self(Zeroizing::new(scalars))
    }

    /// b1 to b11, as the paper counts them.
    pub(crate) fn b(&self, number: usize) -> C::Fr {
        self.0[number - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use tandem_ops::Bn254;

    #[test]
    fn scalars_are_different_and_wiped() {
        fn wipes<T: zeroize::ZeroizeOnDrop>(_: &T) {}
        let drawn: Vec<_> = (0..8).map(|_| Blinding::<Bn254>::random().unwrap()).collect();
        let all: HashSet<_> = drawn.iter().flat_map(|b| (1..=COUNT).map(|i| b.b(i))).collect();
        assert_eq!(all.len(), 8 * COUNT);
        wipes(&drawn[0].0);
    }
}
