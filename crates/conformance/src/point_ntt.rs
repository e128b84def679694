//! Transforms of points.

use crate::{samples, Outcome, Suite};
use ark_ec::{scalar_mul::ScalarMul, CurveGroup, PrimeGroup};
use ark_ff::UniformRand;
use tandem_ops::{naive, Backend, Coset, Curve, DeviceKind, Direction, Group, Lane, Mont, Ntt, NttOp, Order, PointNtt};

type P1<C> = <<C as Curve>::G1 as Group>::Point;

/// Multiples of the generator.
fn multiples<C: Curve>(scalars: &[C::Fr]) -> Vec<P1<C>> {
    let generator = <C::G1 as Group>::Ark::generator();
    generator.batch_mul(scalars).iter().map(C::G1::from_ark).collect()
}

impl<B: Backend> Suite<'_, B> {
    /// Transforms of points.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn point_ntt<C: Curve>(&mut self) -> Outcome
    where
        B: PointNtt<C>,
    {
        for lane in self.lanes() {
            // By the definition, of points that are one another's multiples by nobody knows what.
            for n in [1, 2, 4, 8] {
                let mut rng = samples::rng(n as u64);
                let wire = |point: <C::G1 as Group>::Ark| C::G1::from_ark(&point.into_affine());
                let points: Vec<P1<C>> = (0..n).map(|_| wire(<C::G1 as Group>::Ark::rand(&mut rng))).collect();
                let expected = naive::lagrange_points::<C>(&points).into_iter().flatten();
                let expected: Vec<P1<C>> = expected.map(wire).collect();
                self.basis::<C>(lane, &points, &expected, format_args!("point_ntt of {n}"))?;
            }
            // Infinity at some places and at all of them, and points that are equal or opposite, so that sums are doublings and infinity.
            let one = C::Fr::from(1u64);
            for (what, of) in [("infinity", [0, 0]), ("equal points", [1, 1]), ("some infinity", [0, 1])] {
                for n in [2, 8, 32] {
                    let scalars: Vec<_> = (0..n).map(|i| C::Fr::from(of[usize::from(i % 3 == 1)] as u64)).collect();
                    self.by_scalars::<C>(lane, &scalars, format_args!("point_ntt of {n}, {what}"))?;
                    let opposite: Vec<_> = (0..n).map(|i| if i % 2 == 0 { one } else { -one }).collect();
                    self.by_scalars::<C>(lane, &opposite, format_args!("point_ntt of {n}, opposite points"))?;
                }
            }
            // The roots themselves: all but one point are infinity.
            let root = C::root_of_unity(4).unwrap_or(one);
            let powers: Vec<_> = std::iter::successors(Some(one), |power| Some(*power * root)).take(16).collect();
            self.by_scalars::<C>(lane, &powers, "point_ntt of a tau that is a row")?;
            for n in [0, 3, 6, 7, 9, 31, 33] {
                let mut buf = self.backend.alloc::<P1<C>>(lane, n)?;
                let refused = PointNtt::<C>::lagrange_points(self.backend, &mut buf);
                self.refused(refused, format_args!("point_ntt of {n}"))?;
            }
        }
        // A GPU's kernels differ by size; the CPU does all sizes alike, in pieces of 2^10 points, and a product of a point takes it long.
        let most = if self.backend.info().kind == DeviceKind::Cuda { 14 } else { 11 };
        for log_n in [5, 6, 7, 8, 9, self.log_n.clamp(4, most)] {
            let scalars = samples::elements::<C>(1 << log_n, &mut samples::rng(log_n.into()));
            self.by_scalars::<C>(Lane(0), &scalars, format_args!("point_ntt of 2^{log_n}"))?;
        }
        Ok(())
    }

    /// Multiples of one point become its multiples by the transformed scalars.
    fn by_scalars<C: Curve>(&mut self, lane: Lane, scalars: &[C::Fr], what: impl std::fmt::Display) -> Outcome
    where
        B: PointNtt<C>,
    {
        let (direction, coset, order) = (Direction::Inverse, Coset::Subgroup, Order::Natural);
        let mut values = self.reference.upload(Lane(0), &samples::wire::<C>(scalars))?;
        Ntt::<C>::ntt(&self.reference, &mut values, NttOp { direction, coset, input: order, output: order })?;
        let transformed: Vec<C::Fr> = values.as_slice().iter().map(|value: &Mont| C::from_mont(*value)).collect();
        self.basis::<C>(lane, &multiples::<C>(scalars), &multiples::<C>(&transformed), what)
    }

    fn basis<C: Curve>(
        &mut self,
        lane: Lane,
        points: &[P1<C>],
        expected: &[P1<C>],
        what: impl std::fmt::Display,
    ) -> Outcome
    where
        B: PointNtt<C>,
    {
        let mut buf = self.backend.upload(lane, points)?;
        PointNtt::<C>::lagrange_points(self.backend, &mut buf)?;
        self.holds(&buf, expected, what)
    }
}
