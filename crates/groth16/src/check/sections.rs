//! Sections of a key, chunk by chunk.
//!
//! Each point is checked to satisfy the curve's equation. Whether they lie in the subgroup of prime order is
//! asked of random sums of them, in which each point has a factor of -1, 0 or 1. A point outside is of order 3 or more modulo the
//! subgroup, as no cofactor is even, so that one of its factors at most takes the sum into the subgroup. [`ROUNDS`] times
//! seven sums let it pass with a chance below 2^-64. A round costs about one addition a point where a check of each point costs
//! a hundred or more. The same sums with the same factors, taken of B in both groups, say that it is the same in both.

use super::{check_curve, check_point, Bases, Fault};
use crate::{Error, Progress, Result, P1, P2};
use ark_ec::models::CurveConfig;
use ark_ec::CurveGroup;
use ark_ff::AdditiveGroup;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha12Rng;
use rayon::prelude::*;
use std::ops::Range;
use tandem_ops::cpu::all_on_curve;
use tandem_ops::cpu::trits::{Points, MOST};
use tandem_ops::{memory, Curve, Group, Stored, Unaligned};

/// Rounds of random digits, of [`TRITS`](tandem_ops::cpu::trits::TRITS) factors each, that leave a chance below 2^-64: 3^(7 * 6) is
/// above 2^66.
pub(super) const ROUNDS: u32 = 6;

/// Points that share their random sums: many beside the digits there are, few enough for a core's caches.
const CHUNK: usize = 1 << 16;

/// Points of which only the equations are checked, at a time, and how often the same memory takes them.
const PIECE: usize = 1 << 14;
const MIN_PIECES: usize = 4;

/// Fewer points than this are checked one by one, which costs less than their sums.
const DIRECT: usize = 1 << 9;

/// Whether the subgroup is all of the curve.
pub(super) fn is_whole_curve<G: Group>() -> bool {
    <<G::Ark as CurveGroup>::Config as CurveConfig>::COFACTOR == [1]
}

/// A digit for each of `count` points, all equally likely. The same generator gives the same digits in either group.
fn digits(count: usize, rng: &mut ChaCha12Rng) -> Vec<i32> {
    let values = 2 * MOST.unsigned_abs() + 1;
    // The largest multiple: what is above would make some digits likelier.
    let end = u32::MAX / values * values;
    let mut draw = || loop {
        let drawn = rng.next_u32();
        if drawn < end {
            return (drawn % values) as i32 - MOST;
        }
    };
    (0..count).map(|_| draw()).collect()
}

/// The sum of the points, each with the factor that its trits make up, the first one first; `None` if one of the sums with a single
/// trit is outside the subgroup, where that is `asked`.
pub(super) fn combination<G: Group>(
    points: Unaligned<'_, G::Point>,
    asked: bool,
    rng: &mut ChaCha12Rng,
) -> Result<Option<G::Ark>> {
    let len = points.len();
    let points = Points::<G>::new(len, points.iter().map(|point| G::to_ark(&point)))?;
    let mut combination = G::Ark::ZERO;
    for _ in 0..ROUNDS {
        for sum in points.trit_sums(digits(len, rng))? {
            if asked && !G::is_in_subgroup(&G::from_ark(&sum.into_affine())) {
                return Ok(None);
            }
            combination = combination.double() + combination + sum;
        }
    }
    Ok(Some(combination))
}

/// A section and its name.
type Section<'a, 'n, G> = (&'n str, Stored<'a, <G as Group>::Point>);

/// What looks at one point.
type Look<'a, P> = &'a dyn Fn(&P) -> std::result::Result<(), Fault>;

/// Refuses the first of some points of a section, from number `first` on, that `look` refuses.
fn find_bad<P: tandem_ops::Wire>(name: &str, points: Unaligned<'_, P>, first: usize, look: Look<'_, P>) -> Result<()> {
    let bad = (first..).zip(points.iter()).find_map(|(i, point)| look(&point).err().map(|fault| (i, fault)));
    bad.map_or(Ok(()), |(i, fault)| Err(Error::Key(format!("point {i} of section {name} {fault}"))))
}

/// Refuses the first of some points of a section, from number `first` on, that is not on the curve.
fn find_off_curve<G: Group>(name: &str, points: Unaligned<'_, G::Point>, first: usize) -> Result<()> {
    if all_on_curve::<G>(points) {
        return Ok(());
    }
    find_bad(name, points, first, &check_curve::<G>)
}

/// Checks of the sections of one key.
pub(super) struct Sections<'a> {
    seed: [u8; 32],
    chunk: usize,
    progress: &'a dyn Progress,
}

impl<'a> Sections<'a> {
    /// Draws the seed of the factors: whoever made the key does not know it.
    pub(super) fn new(progress: &'a dyn Progress) -> Result<Self> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|e| Error::Random(e.to_string()))?;
        Ok(Self { seed, chunk: CHUNK, progress })
    }

    #[cfg(test)]
    pub(super) fn seed(&self) -> &[u8; 32] {
        &self.seed
    }

    /// This check with chunks of another size.
    #[cfg(test)]
    pub(super) fn by(self, chunk: usize) -> Self {
        Self { chunk, ..self }
    }

    fn range_of(&self, chunk: usize, len: usize) -> Range<usize> {
        chunk * self.chunk..len.min((chunk + 1) * self.chunk)
    }

    /// The generator of a chunk's factors.
    fn rng(&self, chunk: usize) -> ChaCha12Rng {
        let mut rng = ChaCha12Rng::from_seed(self.seed);
        rng.set_stream(chunk as u64);
        rng
    }

    /// Checks that all points of a section are points of their group.
    ///
    /// # Errors
    /// [`Error::Key`] that names the section and the point; [`Error::Interrupted`].
    pub(super) fn check<G: Group>(&self, name: &str, points: Stored<'_, G::Point>) -> Result<()> {
        self.sums::<G>((name, points), false).map(drop)
    }

    /// Checks that all points of a section satisfy the curve's equation, and what `look` looks at: it gets them in pieces, each with the number
    /// of its first one.
    ///
    /// # Errors
    /// As [`Sections::check`]; those of `look`.
    pub(super) fn equations<G: Group>(
        &self,
        name: &str,
        points: Stored<'_, G::Point>,
        look: impl Fn(usize, Unaligned<'_, G::Point>) -> Result<()> + Sync,
    ) -> Result<()> {
        let size = self.chunk.min(PIECE);
        // Pieces outside memory come into a buffer that is used again.
        let check_piece = |buffer: &mut Vec<u8>, piece: usize| {
            if self.progress.cancelled() {
                return Err(Error::Interrupted);
            }
            let first = piece * size;
            let points = points.slice(first..points.len().min(first + size));
            let values = match points.in_memory() {
                Some(values) => values,
                None => {
                    memory::make_room("check points", buffer, points.bytes())?;
                    buffer.resize(points.bytes(), 0);
                    points.read(0, buffer)?;
                    let whole = || Error::Key(format!("section {name} has no whole points"));
                    Unaligned::new(buffer).ok_or_else(whole)?
                }
            };
            find_off_curve::<G>(name, values, first)?;
            look(first, values)
        };
        let pieces = (0..points.len().div_ceil(size)).into_par_iter().with_min_len(MIN_PIECES);
        pieces.try_for_each_init(Vec::new, check_piece)
    }

    /// Checks that all points of B are points of their groups and the same in both.
    ///
    /// # Errors
    /// As [`Sections::check`].
    pub(super) fn check_both<C: Curve>(
        &self,
        bases: Bases<C>,
        one: Section<'_, '_, C::G1>,
        other: Section<'_, '_, C::G2>,
    ) -> Result<()> {
        let sums = (self.sums::<C::G1>(one, true)?, self.sums::<C::G2>(other, true)?);
        let differs = |(p, q): (&_, &_)| !bases.same_multiple(*p, *q);
        let Some(chunk) = sums.0.par_iter().zip(&sums.1).position_first(differs) else { return Ok(()) };
        let at = self.first_different::<C>(bases, one.1, other.1, self.range_of(chunk, one.1.len()))?;
        let (one, other) = (one.0, other.0);
        Err(Error::Key(format!("point {at} of section {one} and point {at} of section {other} do not belong together")))
    }

    /// The first index in a range of which some point is not the same in both groups.
    fn first_different<C: Curve>(
        &self,
        bases: Bases<C>,
        one: Stored<'_, P1<C>>,
        other: Stored<'_, P2<C>>,
        Range { mut start, mut end }: Range<usize>,
    ) -> Result<usize> {
        while end - start > 1 {
            let middle = start.midpoint(end);
            let (p, q) = (one.slice(start..middle).load()?, other.slice(start..middle).load()?);
            let p = combination::<C::G1>(p.values(), false, &mut self.rng(start))?;
            let q = combination::<C::G2>(q.values(), false, &mut self.rng(start))?;
            match p.zip(q) {
                Some((p, q)) if bases.same_multiple(p, q) => start = middle,
                _ => end = middle,
            }
        }
        Ok(start)
    }

    /// Checks a section's points, and returns the combination of each chunk's, if they are `wanted`.
    fn sums<G: Group>(&self, (name, points): Section<'_, '_, G>, wanted: bool) -> Result<Vec<G::Ark>> {
        let check_chunk = |chunk| {
            if self.progress.cancelled() {
                return Err(Error::Interrupted);
            }
            let range = self.range_of(chunk, points.len());
            let loaded = points.slice(range.clone()).load()?;
            let points = loaded.values();
            let find = |check| find_bad(name, points, range.start, check);
            find_off_curve::<G>(name, points, range.start)?;
            let mut asked = !is_whole_curve::<G>();
            if asked && range.len() < DIRECT {
                find(&check_point::<G>)?;
                asked = false;
            }
            let mut sum = Some(G::Ark::ZERO);
            if asked || wanted {
                sum = combination::<G>(points, asked, &mut self.rng(chunk))?;
            }
            let Some(sum) = sum else {
                find(&check_point::<G>)?;
                return Err(Error::Key(format!("section {name}: a sum of good points is none; the machine errs")));
            };
            self.progress.advance(range.len() as u64);
            Ok(sum)
        };
        let chunks: Vec<_> = (0..points.len().div_ceil(self.chunk)).into_par_iter().map(check_chunk).collect();
        // The first that is bad, not the one that was found first.
        chunks.into_iter().collect()
    }
}
