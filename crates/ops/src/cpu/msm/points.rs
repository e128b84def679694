//! The points of a sum, as their additions take them.

use super::buckets::{add_in_pairs, Term, Xy, MIN_PAIRS, OP};
use super::GRAIN;
use crate::cpu::simd;
use crate::curve::BaseField;
use crate::{memory, Group, Result, Stored, Unaligned, Wire};
use ark_ec::{AffineRepr, CurveGroup, PrimeGroup};
use ark_ff::Field;
use rayon::prelude::*;
use tandem_field_simd::{Avx512, Group as _};

/// Bytes of points outside memory that are read at a time: enough for all threads. Tests have several pieces of few points.
const PIECE_BYTES: usize = if cfg!(test) { 1 << 10 } else { 4 << 20 };

/// Whether all points have coordinates below the modulus and satisfy the curve's equation, or are infinity, as far as the processor's wide
/// registers tell. `false` says nothing: whoever is told so looks at each point.
pub fn all_on_curve<G: Group>(points: Unaligned<'_, G::Point>) -> bool {
    simd::default().is_some_and(|simd| all_hold::<G>(simd, points))
}

fn all_hold<G: Group>(simd: Avx512, points: Unaligned<'_, G::Point>) -> bool {
    const BLOCK: usize = 64;
    let Some((x, y)) = G::Ark::generator().into_affine().xy() else { return false };
    // A point of the group has it.
    let b = G::from_ark(&G::from_xy(y.square() - x.square() * x, x));
    let words: &[u64] = bytemuck::cast_slice(std::slice::from_ref(&b));
    let mut own = [<G::Point as bytemuck::Zeroable>::zeroed(); BLOCK];
    points.as_bytes().chunks(BLOCK * size_of::<G::Point>()).all(|bytes| {
        let own = &mut own[..bytes.len() / size_of::<G::Point>()];
        bytemuck::cast_slice_mut(own).copy_from_slice(bytes);
        G::Simd::hold(simd, bytemuck::cast_slice(own), &words[..words.len() / 2])
    })
}

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

    /// Points of the wire, brought here on all threads where they lie outside memory.
    pub(super) fn load(op: &'static str, simd: Option<Avx512>, points: Stored<'_, G::Point>) -> Result<Self> {
        let mut all = Self::of_size(op, simd, points.len())?;
        match (&mut all, points.in_memory()) {
            (Points::Plain(own), Some(points)) => own.par_extend(wire(points).map(|p| Xy::new(G::to_ark(&p)))),
            (Points::Plain(own), None) => {
                let piece = PIECE_BYTES / size_of::<G::Point>();
                let mut bytes = memory::filled(op, points.len().min(piece) * size_of::<G::Point>(), 0)?;
                for from in (0..points.len()).step_by(piece) {
                    let bytes = &mut bytes[..(points.len() - from).min(piece) * size_of::<G::Point>()];
                    points.read_parallel(from * size_of::<G::Point>(), bytes)?;
                    own.par_extend(wire(Unaligned::whole(bytes)).map(|p: G::Point| Xy::new(G::to_ark(&p))));
                }
            }
            (Points::Wide(_, own), Some(points)) => own.par_extend(wire(points)),
            // Straight to their places.
            (Points::Wide(_, own), None) => {
                own.resize(points.len(), bytemuck::Zeroable::zeroed());
                points.read_parallel(0, bytemuck::cast_slice_mut(own))?;
            }
        }
        if let Points::Wide(simd, own) = &mut all {
            widen::<G>(*simd, own);
        }
        Ok(all)
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

    /// Adds up the `terms` within groups of `counts[i]` of them, of which `scratch` has the counts, while it pays. What is left then stands in
    /// its `sums`, in the order of the groups, of which its `counts` then has the sizes.
    pub(super) fn add_up(&self, terms: &[Term], scratch: &mut Scratch<G>) -> Result<()> {
        let Scratch { sums, counts, points, levels, inverses, products } = scratch;
        match self {
            Points::Plain(own) => {
                memory::make_room(OP, sums, terms.len())?;
                // Two passes and no branch on the sign: the loads from all over the points overlap.
                sums.extend(terms.iter().map(|t| own[t.index()]));
                for (sum, term) in sums.iter_mut().zip(terms) {
                    sum.y = [sum.y, -sum.y][usize::from(term.is_negative())];
                }
                memory::make_room(OP, inverses, terms.len() / 2)?;
                memory::make_room(OP, products, terms.len() / 2)?;
                add_in_pairs(sums, counts, inverses, products);
            }
            Points::Wide(simd, own) => {
                memory::make_room(OP, points, terms.len())?;
                points.extend(terms.iter().map(|t| own[t.index()]));
                let words = bytemuck::cast_slice_mut(points);
                G::Simd::negate(words, |i| terms[i].is_negative());
                let left = G::Simd::add_in_pairs(*simd, levels, words, counts, MIN_PAIRS, &mut G::invert_coordinate)
                    .map_err(|_| memory::refused(OP, size_of_val(&points[..]) as u64))?;
                points.truncate(left);
                G::Simd::narrow(*simd, bytemuck::cast_slice_mut(points));
                memory::make_room(OP, sums, left)?;
                sums.extend(points.iter().map(|p| Xy::new(G::to_ark(p))));
            }
        }
        Ok(())
    }
}

/// What the sums of pieces use, one after the other.
pub(super) struct Scratch<G: Group> {
    /// What is left of the buckets, in order.
    pub(super) sums: Vec<Xy<BaseField<G>>>,
    /// How many sums of each bucket.
    pub(super) counts: Vec<usize>,
    points: Vec<G::Point>,
    levels: <G::Simd as tandem_field_simd::Group>::Scratch,
    inverses: Vec<BaseField<G>>,
    products: Vec<BaseField<G>>,
}

impl<G: Group> Default for Scratch<G> {
    fn default() -> Self {
        Scratch {
            sums: Vec::new(),
            counts: Vec::new(),
            points: Vec::new(),
            levels: Default::default(),
            inverses: Vec::new(),
            products: Vec::new(),
        }
    }
}

fn widen<G: Group>(simd: Avx512, points: &mut [G::Point]) {
    points.par_chunks_mut(GRAIN).for_each(|points| G::Simd::widen(simd, bytemuck::cast_slice_mut(points)));
}

fn wire<P: Wire>(points: Unaligned<'_, P>) -> impl IndexedParallelIterator<Item = P> + '_ {
    (0..points.len()).into_par_iter().with_min_len(GRAIN).map(move |i| points.get(i))
}
