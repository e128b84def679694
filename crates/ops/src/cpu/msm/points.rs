//! The points of a sum, as their additions take them.

use super::buckets::{add_in_pairs, Term, Xy, MIN_PAIRS, OP};
use super::GRAIN;
use crate::curve::BaseField;
use crate::{memory, Group, Result, Unaligned};
use ark_ec::CurveGroup;
use rayon::prelude::*;
use tandem_field_simd::{Avx512, Group as _};

/// Points that are added up in pairs.
pub(super) enum Points<G: Group> {
    /// One after another, by arkworks.
    Plain(Vec<Xy<BaseField<G>>>),
    /// Eight at a time; wide, in the sense of [`tandem_field_simd::Group`].
    Wide(Avx512, Vec<G::Point>),
}

impl<G: Group> Points<G> {
    /// Room for `len` points.
    pub(super) fn of_size(op: &'static str, simd: Option<Avx512>, len: usize) -> Result<Self> {
        Ok(match simd {
            None => Points::Plain(memory::reserve(op, len)?),
            Some(simd) => Points::Wide(simd, memory::reserve(op, len)?),
        })
    }

    /// The first `len` of `points`, or all if there are fewer.
    pub(super) fn of_affine(
        op: &'static str,
        simd: Option<Avx512>,
        len: usize,
        points: impl Iterator<Item = <G::Ark as CurveGroup>::Affine>,
    ) -> Result<Self> {
        let mut own = Self::of_size(op, simd, len)?;
        match &mut own {
            Points::Plain(own) => own.extend(points.take(len).map(Xy::new)),
            Points::Wide(simd, own) => {
                own.extend(points.take(len).map(|p| G::from_ark(&p)));
                widen::<G>(*simd, own);
            }
        }
        Ok(own)
    }

    /// Other points, held in the same way.
    pub(super) fn alike(&self, op: &'static str, points: &[Xy<BaseField<G>>]) -> Result<Self> {
        let simd = match self {
            Points::Plain(_) => None,
            Points::Wide(simd, _) => Some(*simd),
        };
        let affine = points.iter().map(|p| if p.is_infinity() { Default::default() } else { G::from_xy(p.x, p.y) });
        Self::of_affine(op, simd, points.len(), affine)
    }

    /// Appends points of the wire, for which there is room.
    pub(super) fn append(&mut self, points: Unaligned<'_, G::Point>) {
        let at = (0..points.len()).into_par_iter().with_min_len(GRAIN);
        match self {
            Points::Plain(own) => own.par_extend(at.map(|i| Xy::new(G::to_ark(&points.get(i))))),
            Points::Wide(simd, own) => {
                let before = own.len();
                own.par_extend(at.map(|i| points.get(i)));
                widen::<G>(*simd, &mut own[before..]);
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Points::Plain(own) => own.len(),
            Points::Wide(_, own) => own.len(),
        }
    }

    /// What an addition costs, in multiplications of arkworks.
    pub(super) fn addition(&self) -> usize {
        match self {
            Points::Plain(_) => 6,
            Points::Wide(..) => 3,
        }
    }

    pub(super) fn is_infinity(&self, i: usize) -> bool {
        match self {
            Points::Plain(own) => own[i].is_infinity(),
            Points::Wide(_, own) => own[i] == bytemuck::Zeroable::zeroed(),
        }
    }

    /// Adds up the `terms` within groups of `counts[i]` of them, while it pays. What is left stands in the order of the
    /// groups, of which `counts` then has the sizes.
    pub(super) fn add_up(&self, terms: &[Term], counts: &mut [usize]) -> Result<Vec<Xy<BaseField<G>>>> {
        match self {
            Points::Plain(own) => {
                let mut sums = memory::reserve(OP, terms.len())?;
                // Two passes and no branch on the sign: the loads from all over the points overlap.
                sums.extend(terms.iter().map(|t| own[t.index()]));
                for (sum, term) in sums.iter_mut().zip(terms) {
                    sum.y = [sum.y, -sum.y][usize::from(term.is_negative())];
                }
                add_in_pairs(&mut sums, counts)?;
                Ok(sums)
            }
            Points::Wide(simd, own) => {
                let mut points: Vec<G::Point> = memory::reserve(OP, terms.len())?;
                points.extend(terms.iter().map(|t| own[t.index()]));
                let words = bytemuck::cast_slice_mut(&mut points);
                G::Simd::negate(words, |i| terms[i].is_negative());
                let left = G::Simd::add_in_pairs(*simd, words, counts, MIN_PAIRS, &mut G::invert_coordinate)
                    .map_err(|_| memory::refused(OP, size_of_val(&points[..]) as u64))?;
                points.truncate(left);
                G::Simd::narrow(*simd, bytemuck::cast_slice_mut(&mut points));
                // Sums of all tasks are kept until the last is there: no more room than they take.
                let mut sums = memory::reserve(OP, left)?;
                sums.extend(points.iter().map(|p| Xy::new(G::to_ark(p))));
                Ok(sums)
            }
        }
    }
}

fn widen<G: Group>(simd: Avx512, points: &mut [G::Point]) {
    points.par_chunks_mut(GRAIN).for_each(|points| G::Simd::widen(simd, bytemuck::cast_slice_mut(points)));
}
