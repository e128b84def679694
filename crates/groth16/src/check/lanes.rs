//! The check of a key with sums on a backend's lanes: for devices that sum many times faster than the host.
//!
//! Whether points lie in the subgroup of prime order is asked of random sums of a whole section, in which each point has a factor of
//! [`FACTOR_BITS`] bits. A point outside is of an order modulo the subgroup that is no less than the least factor q of the cofactor: one
//! residue of its factor at most takes the sum into the subgroup, so that a sum lets it pass with a chance of ceil(2^16 / q) / 2^16 or
//! less. [`rounds`] of them leave a chance below 2^-64. Factors are small, so that a sum takes one window's work. The sums of B in both
//! groups, each round weighed 2^16 times the one before, are those with factors of 16 bits a round: they say that B is the same in both.

use super::sections::{is_whole_curve, Sections};
use super::{absent, check_powers_single_points, check_single_points, Bases};
use crate::key::Sections as KeySections;
use crate::{Error, KeyView, PowersView, Progress, Result};
use ark_ec::models::CurveConfig;
use ark_ec::CurveGroup;
use ark_ff::AdditiveGroup;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha12Rng;
use rayon::prelude::*;
use tandem_ops::memory::{self, Pages};
use tandem_ops::{Canonical, Curve, Group, Msm, ProofBackend, SplitMsm, Stored};

const OP: &str = "check points";

/// Bits of a factor.
const FACTOR_BITS: u32 = 16;

/// Factors that one generator draws.
const CHUNK: usize = 1 << 16;

/// The least factor, above 1, of the cofactor; `None` where the subgroup is all of the curve.
pub(super) fn least_factor<G: Group>() -> Option<u64> {
    let cofactor = <<G::Ark as CurveGroup>::Config as CurveConfig>::COFACTOR;
    let rest =
        |q: u64| cofactor.iter().rev().fold(0, |rest: u128, &limb| ((rest << 64) | u128::from(limb)) % u128::from(q));
    let found = || (2..1 << FACTOR_BITS).find(|&q| rest(q) == 0);
    // A factor above the range of a point's factor would be hit by one of them.
    (!is_whole_curve::<G>()).then(|| found().unwrap_or(1 << FACTOR_BITS))
}

/// Sums that leave a point outside the subgroup a chance below 2^-64; none where there is no such point.
pub(super) fn rounds<G: Group>() -> u32 {
    let range = f64::from(1u32 << FACTOR_BITS);
    let chance = |q: u64| (range / q as f64).ceil() / range;
    least_factor::<G>().map_or(0, |q| (64.0 / -chance(q).log2()).ceil() as u32)
}

/// Rounds that say whether B is the same in both groups.
const ROUNDS_OF_BOTH: u32 = 64_u32.div_ceil(FACTOR_BITS);

/// Whether all points of a key are what [`super::check_points`] asks for, by sums on all lanes of `backend`. Where some are not, or the
/// device erred, it is `false`: [`super::check_points`] says which.
///
/// # Errors
/// [`Error::Key`] for parts that do not fit together, and for a point that belongs to no wire; [`Error::Interrupted`];
/// [`Error::Backend`].
pub fn points_pass<C: Curve, B: ProofBackend<C>>(
    backend: &B,
    key: &KeyView<'_, C>,
    progress: &dyn Progress,
) -> Result<bool> {
    key.check_sizes()?;
    let sections = [key.a.len(), key.b1.len(), key.b2.len(), key.l.len(), key.h.len()];
    progress.start(OP, (key.ic.len() + sections.iter().sum::<usize>()) as u64);
    check_single_points(&key.points)?;
    let host = Sections::new(progress)?;
    // All of the few points of IC, and of the others the curve's equation, which kernels take for granted. Those of G1 are compared with the
    // matrices on the way: B2 is that of B1, if the sums agree.
    let equations = || -> Result<()> {
        host.check::<C::G1>("IC (3)", key.ic.into())?;
        let b2 = || host.equations::<C::G2>("B2 (7)", key.b2, |_, _| Ok(()));
        let (wires, b2) = rayon::join(|| absent::Wires::of(key), b2);
        let (wires, ()) = (wires?, b2?);
        let in_g1 = |name, points, expected: &(dyn Fn(usize) -> absent::Named + Sync)| {
            host.equations::<C::G1>(name, points, |first, points| {
                absent::compare_some::<C>(name, points, first, expected)
            })
        };
        absent::compare_some::<C>("IC (3)", key.ic, 0, |wire| wires.ic(wire))?;
        in_g1("A (5)", key.a, &|wire| wires.a(wire))?;
        in_g1("B1 (6)", key.b1, &|wire| wires.b(wire))?;
        in_g1("C (8)", key.l, &|point| wires.l(point))?;
        in_g1("H (9)", key.h, &absent::h)
    };
    let sums = || sums_pass(backend, &key.sections(), Bases::<C>::generators(), progress);
    judged(both_pass(equations, sums))
}

/// As [`points_pass`], of a key without matrices: whether all points are what [`super::check_powers_points`] asks for.
///
/// # Errors
/// As [`points_pass`].
pub fn powers_pass<C: Curve, B: ProofBackend<C>>(
    backend: &B,
    key: &PowersView<'_, C>,
    progress: &dyn Progress,
) -> Result<bool> {
    key.check_sizes()?;
    let sections = [key.a.len(), key.b1.len(), key.b2.len(), key.l.len(), key.h.len()];
    progress.start(OP, (key.ic.len() + sections.iter().sum::<usize>()) as u64);
    check_powers_single_points(&key.points)?;
    let host = Sections::new(progress)?;
    let equations = || -> Result<()> {
        host.check::<C::G1>("IC", key.ic.into())?;
        host.equations::<C::G1>("H", key.h, |_, _| Ok(()))?;
        host.equations::<C::G1>("L", key.l, |_, _| Ok(()))?;
        host.equations::<C::G1>("A", key.a, |_, _| Ok(()))?;
        host.equations::<C::G1>("B1", key.b1, |_, _| Ok(()))?;
        host.equations::<C::G2>("B2", key.b2, |_, _| Ok(()))
    };
    let bases = Bases::delta(&key.points);
    let sums = || sums_pass(backend, &key.sections(), bases, progress);
    judged(both_pass(|| equations().and_then(|()| absent::none(key)), sums))
}

/// What the sums say where the equations hold: the host looks at these while the lanes add. Sums of what is no point of the curve are some
/// numbers, which nobody asks for then.
fn both_pass(
    equations: impl FnOnce() -> Result<()> + Send,
    sums: impl FnOnce() -> Result<bool> + Send,
) -> Result<bool> {
    let (equations, sums) = rayon::join(equations, sums);
    equations.and(sums)
}

/// A fault of a point is a verdict.
fn judged(verdict: Result<bool>) -> Result<bool> {
    match verdict {
        Err(Error::Key(_)) => Ok(false),
        other => other,
    }
}

fn load<G: Group, B: Msm<G>>(backend: &B, points: Stored<'_, G::Point>) -> Result<SplitMsm<G, B>> {
    Ok(SplitMsm::load(backend, backend.msm_lanes(points.len()), points, 1)?)
}

/// Whether all random sums are those of points of the groups, and those of B the same multiple of `bases` in both.
fn sums_pass<C: Curve, B: ProofBackend<C>>(
    backend: &B,
    key: &KeySections<'_, C>,
    bases: Bases<C>,
    progress: &dyn Progress,
) -> Result<bool> {
    let (in_g1, in_g2) = (rounds::<C::G1>(), rounds::<C::G2>());
    let both = (load::<C::G1, B>(backend, key.b1)?, load::<C::G2, B>(backend, key.b2)?);
    let others = match in_g1 {
        0 => Vec::new(),
        _ => vec![
            (key.a.len(), load::<C::G1, B>(backend, key.a)?),
            (key.l.len(), load(backend, key.l)?),
            (key.h.len(), load(backend, key.h)?),
        ],
    };
    let most = [key.a.len(), key.b1.len(), key.l.len(), key.h.len()].into_iter().max().unwrap_or(0);
    let mut factors = Factors::new(most)?;
    let mut all = (<C::G1 as Group>::Ark::ZERO, <C::G2 as Group>::Ark::ZERO);
    for round in (0..in_g1.max(in_g2).max(ROUNDS_OF_BOTH)).rev() {
        if progress.cancelled() {
            return Err(Error::Interrupted);
        }
        let drawn = factors.of_round(round);
        let scalars = both.0.upload(backend, &drawn[..key.b1.len()])?;
        let sums = (both.0.sum(backend, &scalars)?, both.1.sum(backend, &scalars)?);
        let asked = others.iter().filter(|_| round < in_g1).map(|(points, section)| -> Result<_> {
            let scalars = section.upload(backend, &drawn[..*points])?;
            Ok(section.sum(backend, &scalars)?)
        });
        let asked = asked.collect::<Result<Vec<_>>>()?;
        let (one, other) = (sums.0.wait()?, sums.1.wait()?);
        let mut are_good = (round >= in_g1 || is_good::<C::G1>(one)) && (round >= in_g2 || is_good::<C::G2>(other));
        for sum in asked {
            are_good &= is_good::<C::G1>(sum.wait()?);
        }
        if !are_good {
            return Ok(false);
        }
        for _ in 0..FACTOR_BITS {
            all = (all.0.double(), all.1.double());
        }
        all = (all.0 + one, all.1 + other);
    }
    progress.advance((key.a.len() + key.b1.len() + key.b2.len() + key.l.len() + key.h.len()) as u64);
    Ok(bases.same_multiple(all.0, all.1))
}

/// Whether a sum lies in the subgroup.
fn is_good<G: Group>(sum: G::Ark) -> bool {
    let point = G::from_ark(&sum.into_affine());
    G::is_on_curve(&point) && G::is_in_subgroup(&point)
}

/// Factors of points, which whoever made the key does not know.
pub(super) struct Factors {
    seed: [u8; 32],
    count: usize,
    /// Those of the last round, in memory that all threads touch first: the system takes a while to make it zeros.
    drawn: Pages,
}

impl Factors {
    pub(super) fn new(count: usize) -> Result<Self> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|e| Error::Random(e.to_string()))?;
        let bytes = count.saturating_mul(size_of::<Canonical>());
        memory::check(OP, bytes as u64)?;
        let drawn = Pages::zeros(bytes).ok_or_else(|| memory::refused(OP, bytes as u64))?;
        Ok(Self { seed, count, drawn })
    }

    /// Those of a round: a point has the same one in every section.
    pub(super) fn of_round(&mut self, round: u32) -> &[Canonical] {
        let bytes = self.count * size_of::<Canonical>();
        let factors: &mut [Canonical] = bytemuck::cast_slice_mut(&mut self.drawn[..bytes]);
        factors.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, factors)| {
            let mut rng = ChaCha12Rng::from_seed(self.seed);
            rng.set_stream(u64::from(round) << 32 | chunk as u64);
            for pair in factors.chunks_mut(2) {
                let drawn = rng.next_u32();
                for (factor, half) in pair.iter_mut().zip([drawn & 0xffff, drawn >> 16]) {
                    *factor = Canonical([u64::from(half), 0, 0, 0]);
                }
            }
        });
        factors
    }
}
