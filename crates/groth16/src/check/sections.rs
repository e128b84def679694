//! Sections of a key, chunk by chunk.
//!
//! Each point is checked to satisfy the curve's equation. Whether they lie in the subgroup of prime order is
//! asked of random sums of them: in each round every point gets a random small factor, and a sum that lies in the
//! subgroup says so of all its points but with the chance [`Rounds`] is chosen by. One round costs about one addition
//! a point where a check of each point costs a hundred or more. The same sums with the same factors, taken of B in both groups,
//! say that it is the same in both.

use super::{check_curve, check_point, same_multiple, Fault};
use crate::{Error, Progress, Result, P1, P2};
use ark_ec::CurveGroup;
use ark_ff::AdditiveGroup;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha12Rng;
use rayon::prelude::*;
use std::ops::Range;
use tandem_ops::{Curve, CurveId, Group, Unaligned};

/// How many rounds of random factors, and how many bits each has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rounds {
    pub(super) rounds: u32,
    pub(super) bits: u32,
}

/// Bits of the factors of which a chance of 2^-64 is left.
const SOUND_BITS: u32 = 64;

/// The least prime factor of a group's cofactor; `None`: the group is all of the curve.
pub(super) fn least_factor<G: Group>() -> Option<u64> {
    match (G::Curve::ID, G::NAME) {
        (CurveId::Bn254, "G1") => None,
        (CurveId::Bn254, _) => Some(10069),
        (CurveId::Bls12_381, "G1") => Some(3),
        (CurveId::Bls12_381, _) => Some(13),
    }
}

/// The chance for a point outside the subgroup to pass a round: it has a part of order q at least, which cancels for at most
/// ceil(2^bits / q) of its 2^bits factors.
pub(super) fn chance(q: u64, bits: u32) -> f64 {
    ((1u64 << bits).div_ceil(q)) as f64 / (1u64 << bits) as f64
}

/// The rounds that leave a chance below 2^-64 for a point outside the subgroup to pass. Both groups of a curve take
/// factors of as many bits.
pub(super) fn rounds<G: Group>() -> Rounds {
    let bits = match G::Curve::ID {
        CurveId::Bn254 => 10,
        CurveId::Bls12_381 => 8,
    };
    let rounds = |q| (f64::from(SOUND_BITS) / -chance(q, bits).log2()).ceil() as u32;
    Rounds { rounds: least_factor::<G>().map_or(0, rounds), bits }
}

/// Points that share their random sums.
pub(super) const CHUNK: usize = 1 << 14;

/// The sum of the points with a random factor each, in each round. The same generator gives the same factors in either group.
fn random_sums<'p, G: Group>(
    points: Unaligned<'p, G::Point>,
    Rounds { rounds, bits }: Rounds,
    rng: &'p mut ChaCha12Rng,
) -> impl Iterator<Item = G::Ark> + 'p {
    let mut buckets = vec![G::Ark::ZERO; 1 << bits];
    (0..rounds).map(move |_| {
        buckets.fill(G::Ark::ZERO);
        for point in points.iter() {
            buckets[(rng.next_u32() >> (32 - bits)) as usize] += G::to_ark(&point);
        }
        // sum k * bucket_k, as a sum of running sums from the top.
        let (mut running, mut sum) = (G::Ark::ZERO, G::Ark::ZERO);
        for bucket in buckets[1..].iter().rev() {
            running += bucket;
            sum += running;
        }
        sum
    })
}

/// Rounds whose factors of so many bits make up one of 64 bits or more.
pub(super) fn combined_rounds(bits: u32) -> u32 {
    SOUND_BITS.div_ceil(bits)
}

/// Whether the points lie in the subgroup, asked in `how` many rounds: if so, the sum of the points with the factors that the first
/// `combined` rounds' make up, of `bits` bits each.
pub(super) fn combination<G: Group>(
    points: Unaligned<'_, G::Point>,
    how: Rounds,
    combined: u32,
    rng: &mut ChaCha12Rng,
) -> Option<G::Ark> {
    let all = Rounds { rounds: how.rounds.max(combined), ..how };
    let mut combination = G::Ark::ZERO;
    for (round, sum) in (0..).zip(random_sums::<G>(points, all, rng)) {
        if round < how.rounds && !G::is_in_subgroup(&G::from_ark(&sum.into_affine())) {
            return None;
        }
        if round < combined {
            for _ in 0..how.bits {
                combination.double_in_place();
            }
            combination += sum;
        }
    }
    Some(combination)
}

/// A section and its name.
type Section<'a, 'n, G> = (&'n str, Unaligned<'a, <G as Group>::Point>);

/// Checks of the sections of one key.
pub(super) struct Sections<'a> {
    seed: [u8; 32],
    progress: &'a dyn Progress,
}

impl<'a> Sections<'a> {
    /// Draws the seed of the factors: whoever made the key does not know it.
    pub(super) fn new(progress: &'a dyn Progress) -> Result<Self> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|e| Error::Random(e.to_string()))?;
        Ok(Self { seed, progress })
    }

    #[cfg(test)]
    pub(super) fn seed(&self) -> &[u8; 32] {
        &self.seed
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
    pub(super) fn check<G: Group>(&self, name: &str, points: Unaligned<'_, G::Point>) -> Result<()> {
        self.sums::<G>((name, points), false).map(drop)
    }

    /// Checks that all points of B are points of their groups and the same in both.
    ///
    /// # Errors
    /// As above.
    pub(super) fn check_both<C: Curve>(
        &self,
        one: Section<'_, '_, C::G1>,
        other: Section<'_, '_, C::G2>,
    ) -> Result<()> {
        let sums = (self.sums::<C::G1>(one, true)?, self.sums::<C::G2>(other, true)?);
        let differs = |(p, q): (&_, &_)| !same_multiple::<C>(*p, *q);
        let Some(chunk) = sums.0.par_iter().zip(&sums.1).position_first(differs) else { return Ok(()) };
        let at = self.first_different::<C>(one.1, other.1, chunk_range(chunk, one.1.len()));
        let (one, other) = (one.0, other.0);
        Err(Error::Key(format!("point {at} of section {one} and point {at} of section {other} do not belong together")))
    }

    /// The first index in a range of which some point is not the same in both groups.
    fn first_different<C: Curve>(
        &self,
        one: Unaligned<'_, P1<C>>,
        other: Unaligned<'_, P2<C>>,
        Range { mut start, mut end }: Range<usize>,
    ) -> usize {
        while end - start > 1 {
            let (middle, how) = (start.midpoint(end), Rounds { rounds: 0, ..rounds::<C::G1>() });
            let of_first = combined_rounds(how.bits);
            let p = combination::<C::G1>(one.slice(start..middle), how, of_first, &mut self.rng(start));
            let q = combination::<C::G2>(other.slice(start..middle), how, of_first, &mut self.rng(start));
            match p.zip(q) {
                Some((p, q)) if same_multiple::<C>(p, q) => start = middle,
                _ => end = middle,
            }
        }
        start
    }

    /// Checks a section's points, and returns the sum of each chunk with factors of 64 bits, if they are `wanted`.
    fn sums<G: Group>(&self, (name, points): Section<'_, '_, G>, wanted: bool) -> Result<Vec<G::Ark>> {
        let find = |range: Range<usize>, check: &dyn Fn(&G::Point) -> std::result::Result<(), Fault>| {
            let at = range.into_iter().find_map(|i| check(&points.get(i)).err().map(|fault| (i, fault)));
            at.map_or(Ok(()), |(i, fault)| Err(Error::Key(format!("point {i} of section {name} {fault}"))))
        };
        let check_chunk = |chunk| {
            if self.progress.cancelled() {
                return Err(Error::Interrupted);
            }
            let range = chunk_range(chunk, points.len());
            find(range.clone(), &check_curve::<G>)?;
            let mut how = rounds::<G>();
            // The points of a short chunk are checked one by one: the sums would cost more.
            if range.len() < 1 << (how.bits + 1) {
                find(range.clone(), &check_point::<G>)?;
                how = Rounds { rounds: 0, bits: range.len().ilog2().max(1) };
            }
            let combined = if wanted { combined_rounds(how.bits) } else { 0 };
            let Some(sum) = combination::<G>(points.slice(range.clone()), how, combined, &mut self.rng(chunk)) else {
                find(range, &check_point::<G>)?;
                return Err(Error::Key(format!("section {name}: a sum of good points is none; the machine errs")));
            };
            self.progress.advance(range.len() as u64);
            Ok(sum)
        };
        (0..points.len().div_ceil(CHUNK)).into_par_iter().map(check_chunk).collect()
    }
}

fn chunk_range(chunk: usize, len: usize) -> Range<usize> {
    chunk * CHUNK..len.min((chunk + 1) * CHUNK)
}
