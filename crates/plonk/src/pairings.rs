//! The product of two pairings with points of a key.

use crate::P2;
use ark_ec::pairing::Pairing;
use ark_ec::{CurveGroup, PrimeGroup};
use ark_ff::Zero;
use tandem_ops::{Curve, Group};

type Prepared<C> = <<C as Curve>::Pairing as Pairing>::G2Prepared;
type Sum<C> = <<C as Curve>::G1 as Group>::Ark;

/// tau G2 and G2, with what their pairings take of them.
pub(crate) struct Pairings<C: Curve> {
    x_2: Prepared<C>,
    g2: Prepared<C>,
}

impl<C: Curve> Pairings<C> {
    pub(crate) fn new(x_2: &P2<C>) -> Self {
        let g2 = <C::G2 as Group>::Ark::generator().into_affine();
        Self { x_2: Prepared::<C>::from(C::G2::to_ark(x_2)), g2: Prepared::<C>::from(g2) }
    }

    /// Whether e(left, tau G2) e(right, G2) is 1. Two threads make a factor each.
    pub(crate) fn are_inverse(
        &self,
        left: impl FnOnce() -> Sum<C> + Send,
        right: impl FnOnce() -> Sum<C> + Send,
    ) -> bool {
        let factor = |g1: Sum<C>, g2: &Prepared<C>| C::Pairing::multi_miller_loop([g1.into_affine()], [g2.clone()]).0;
        let (left, right) = rayon::join(|| factor(left(), &self.x_2), || factor(right(), &self.g2));
        let product = ark_ec::pairing::MillerLoopOutput::<C::Pairing>(left * right);
        C::Pairing::final_exponentiation(product).is_some_and(|product| product.is_zero())
    }
}
