//! Products of pairings with points of a key.

use crate::P2;
use ark_ec::pairing::{MillerLoopOutput, Pairing};
use ark_ec::{CurveGroup, PrimeGroup};
use ark_ff::Zero;
use tandem_ops::{Curve, Group};

type Prepared<C> = <<C as Curve>::Pairing as Pairing>::G2Prepared;
type Target<C> = <<C as Curve>::Pairing as Pairing>::TargetField;
type Sum<C> = <<C as Curve>::G1 as Group>::Ark;
type Affine<C> = <Sum<C> as CurveGroup>::Affine;

/// tau G2 and G2, with what their pairings take of them.
pub(crate) struct Pairings<C: Curve> {
    tau: <C::G2 as Group>::Ark,
    x_2: Prepared<C>,
    g2: Prepared<C>,
}

/// A product of pairings that lacks one factor, with what that takes of its point in G2.
pub(crate) struct Ahead<C: Curve> {
    known: Target<C>,
    last: Prepared<C>,
}

/// A pairing but for the power that all factors share.
fn factor<C: Curve>(g1: Affine<C>, g2: &Prepared<C>) -> Target<C> {
    C::Pairing::multi_miller_loop([g1], [g2.clone()]).0
}

fn is_one<C: Curve>(product: Target<C>) -> bool {
    C::Pairing::final_exponentiation(MillerLoopOutput::<C::Pairing>(product)).is_some_and(|product| product.is_zero())
}

impl<C: Curve> Pairings<C> {
    pub(crate) fn new(x_2: &P2<C>) -> Self {
        let (g2, x_2) = (<C::G2 as Group>::Ark::generator().into_affine(), C::G2::to_ark(x_2));
        Self { tau: x_2.into(), x_2: Prepared::<C>::from(x_2), g2: Prepared::<C>::from(g2) }
    }

    /// Whether e(left, tau G2) e(right, G2) is 1. Two threads make a factor each.
    pub(crate) fn are_inverse(
        &self,
        left: impl FnOnce() -> Sum<C> + Send,
        right: impl FnOnce() -> Sum<C> + Send,
    ) -> bool {
        is_one::<C>(self.product(left, right))
    }

    /// e(left, tau G2) e(right, G2), and what e(P, (tau - xi) G2) takes.
    pub(crate) fn ahead(
        &self,
        left: impl FnOnce() -> Sum<C> + Send,
        right: impl FnOnce() -> Sum<C> + Send,
        xi: C::Fr,
    ) -> Ahead<C> {
        let last = || Prepared::<C>::from((self.tau - <C::G2 as Group>::Ark::generator() * xi).into_affine());
        let (known, last) = rayon::join(|| self.product(left, right), last);
        Ahead { known, last }
    }

    fn product(&self, left: impl FnOnce() -> Sum<C> + Send, right: impl FnOnce() -> Sum<C> + Send) -> Target<C> {
        let (left, right) = rayon::join(
            || factor::<C>(left().into_affine(), &self.x_2),
            || factor::<C>(right().into_affine(), &self.g2),
        );
        left * right
    }
}

impl<C: Curve> Ahead<C> {
    /// Whether the product is 1 with e(`point`, (tau - xi) G2).
    pub(crate) fn makes_one_with(self, point: Affine<C>) -> bool {
        is_one::<C>(self.known * factor::<C>(point, &self.last))
    }
}
