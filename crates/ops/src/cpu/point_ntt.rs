//! Transforms of points.

use super::{Buf, Cpu};
use crate::point_ntt::{factors, PointNtt};
use crate::{memory, Curve, Group, Result};
use ark_ec::CurveGroup;
use rayon::prelude::*;

type P1<C> = <<C as Curve>::G1 as Group>::Point;
type Ark<C> = <<C as Curve>::G1 as Group>::Ark;

/// Points that one task makes affine.
const PIECE: usize = 1 << 10;

impl<C: Curve> PointNtt<C> for Cpu {
    fn lagrange_points(&self, points: &mut Buf<P1<C>>) -> Result<()> {
        let n = points.data.len();
        let factors = factors::<C>(n)?;
        let mut sums: Vec<Ark<C>> = memory::filled("point NTT", n, Ark::<C>::default())?;
        sums.par_iter_mut().zip(&points.data).for_each(|(sum, point)| *sum = C::G1::to_ark(point) * factors[0]);
        let mut half = n / 2;
        while half > 0 {
            sums.par_chunks_mut(2 * half).enumerate().for_each(|(block, of_block)| {
                let (lower, upper) = of_block.split_at_mut(half);
                lower.par_iter_mut().zip(upper).for_each(|(lower, upper)| {
                    let product = if block == 0 { *upper } else { *upper * factors[block] };
                    *upper = *lower - product;
                    *lower += product;
                });
            });
            half /= 2;
        }
        let bits = n.ilog2();
        let reversed = |at: usize| at.reverse_bits().unbounded_shr(usize::BITS - bits);
        points.data.par_chunks_mut(PIECE).enumerate().for_each(|(piece, to)| {
            let own: Vec<_> = (0..to.len()).map(|i| sums[reversed(piece * PIECE + i)]).collect();
            let affine = Ark::<C>::normalize_batch(&own);
            to.iter_mut().zip(&affine).for_each(|(to, point)| *to = C::G1::from_ark(point));
        });
        Ok(())
    }
}
