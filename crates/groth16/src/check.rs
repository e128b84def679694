//! Whether the points of a key are points of their groups.
//!
//! Each point is checked to satisfy the curve's equation. Whether they lie in the subgroup of prime order is
//! asked of random sums of them: in each round every point gets a random small factor, and a sum that lies in the
//! subgroup says so of all its points but with the chance [`Rounds`] is chosen by. One round costs about one addition
//! a point where a check of each point costs a hundred or more.

use crate::{Error, KeyView, Progress, Result};
use ark_ec::CurveGroup;
use ark_ff::{AdditiveGroup, Field, PrimeField};
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha12Rng;
use rayon::prelude::*;
use tandem_ops::{Curve, CurveId, Group, Unaligned};

/// What is wrong with a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A coordinate that is not below the modulus.
    Range,
    /// It does not satisfy the curve's equation.
    Curve,
    /// It does not lie in the subgroup of prime order.
    Subgroup,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Fault::Range => "has a coordinate that is not below the modulus",
            Fault::Curve => "is not on the curve",
            Fault::Subgroup => "is not in the subgroup of prime order",
        })
    }
}

/// Checks one point in full.
///
/// # Errors
/// What is wrong with it.
pub fn check_point<G: Group>(point: &G::Point) -> std::result::Result<(), Fault> {
    check_curve::<G>(point)?;
    if G::is_in_subgroup(point) {
        Ok(())
    } else {
        Err(Fault::Subgroup)
    }
}

/// Checks that a point's coordinates are below the modulus and satisfy the curve's equation.
pub(crate) fn check_curve<G: Group>(point: &G::Point) -> std::result::Result<(), Fault> {
    type Base<G> = <<<G as Group>::Ark as CurveGroup>::BaseField as Field>::BasePrimeField;
    let modulus = Base::<G>::MODULUS;
    let modulus: &[u64] = modulus.as_ref();
    let limbs: &[u64] = bytemuck::cast_slice(bytemuck::bytes_of(point));
    if limbs.chunks(modulus.len()).any(|c| c.iter().rev().cmp(modulus.iter().rev()).is_ge()) {
        return Err(Fault::Range);
    }
    if G::is_on_curve(point) {
        Ok(())
    } else {
        Err(Fault::Curve)
    }
}

/// How many rounds of random factors, and how many bits each has, leave a chance below 2^-64 for a point outside the
/// subgroup to pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rounds {
    rounds: u32,
    bits: u32,
}

/// By the least prime factor q of the cofactor: a point outside the subgroup has a part of order q at least, which
/// cancels in a round for at most ceil(2^bits / q) of its 2^bits factors. `None`: the group is all of the curve.
fn rounds<G: Group>() -> Option<Rounds> {
    let (q, bits) = match (G::Curve::ID, G::NAME) {
        (CurveId::Bn254, "G1") => return None,
        (CurveId::Bn254, _) => (10069u64, 10),
        (CurveId::Bls12_381, "G1") => (3, 8),
        (CurveId::Bls12_381, _) => (13, 8),
    };
    let chance = ((1u64 << bits).div_ceil(q)) as f64 / (1u64 << bits) as f64;
    Some(Rounds { rounds: (64.0 / -chance.log2()).ceil() as u32, bits })
}

/// Points that share their random sums.
const CHUNK: usize = 1 << 14;

fn chunk_in_subgroup<G: Group>(points: Unaligned<'_, G::Point>, how: Rounds, rng: &mut ChaCha12Rng) -> bool {
    let mut buckets = vec![G::Ark::ZERO; 1 << how.bits];
    (0..how.rounds).all(|_| {
        buckets.fill(G::Ark::ZERO);
        for point in points.iter() {
            buckets[(rng.next_u32() >> (32 - how.bits)) as usize] += G::to_ark(&point);
        }
        // sum k * bucket_k, as a sum of running sums from the top.
        let (mut running, mut sum) = (G::Ark::ZERO, G::Ark::ZERO);
        for bucket in buckets[1..].iter().rev() {
            running += bucket;
            sum += running;
        }
        G::is_in_subgroup(&G::from_ark(&sum.into_affine()))
    })
}

/// Checks all points of a section.
///
/// # Errors
/// [`Error::Key`] that names the section and the point; [`Error::Interrupted`].
fn check_section<G: Group>(
    name: &str,
    points: Unaligned<'_, G::Point>,
    subgroup: bool,
    progress: &dyn Progress,
) -> Result<()> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|e| Error::Random(e.to_string()))?;
    let find = |start: usize, end: usize, check: &dyn Fn(&G::Point) -> std::result::Result<(), Fault>| {
        let at = (start..end).find_map(|i| check(&points.get(i)).err().map(|fault| (i, fault)));
        at.map_or(Ok(()), |(i, fault)| Err(Error::Key(format!("point {i} of section {name} {fault}"))))
    };
    (0..points.len().div_ceil(CHUNK)).into_par_iter().try_for_each(|chunk| {
        if progress.cancelled() {
            return Err(Error::Interrupted);
        }
        let (start, end) = (chunk * CHUNK, points.len().min((chunk + 1) * CHUNK));
        find(start, end, &check_curve::<G>)?;
        if let (true, Some(how)) = (subgroup, rounds::<G>()) {
            let mut rng = ChaCha12Rng::from_seed(seed);
            rng.set_stream(chunk as u64);
            // A short section is checked point by point: the sums would cost more.
            let short = end - start < 1 << (how.bits + 1);
            if short || !chunk_in_subgroup::<G>(points.slice(start..end), how, &mut rng) {
                find(start, end, &check_point::<G>)?;
            }
        }
        progress.advance((end - start) as u64);
        Ok(())
    })
}

/// Checks that every point of the key is below the modulus, on its curve, and, with `subgroup`, in its subgroup. The
/// few points that a verifier uses are always checked in full.
///
/// # Errors
/// [`Error::Key`] that names the point; [`Error::Interrupted`].
pub fn check_points<C: Curve>(key: &KeyView<'_, C>, subgroup: bool, progress: &dyn Progress) -> Result<()> {
    key.check_sizes()?;
    let total = key.ic.len() + key.a.len() + key.b1.len() + key.b2.len() + key.l.len() + key.h.len();
    progress.start("check points", total as u64);
    let points = &key.points;
    for (name, point) in [("alpha", &points.alpha1), ("beta", &points.beta1), ("delta", &points.delta1)] {
        check_point::<C::G1>(point).map_err(|fault| Error::Key(format!("point {name} in G1 {fault}")))?;
    }
    for (name, point) in [("beta", &points.beta2), ("gamma", &points.gamma2), ("delta", &points.delta2)] {
        check_point::<C::G2>(point).map_err(|fault| Error::Key(format!("point {name} in G2 {fault}")))?;
    }
    check_section::<C::G1>("IC (3)", key.ic, true, progress)?;
    check_section::<C::G1>("A (5)", key.a, subgroup, progress)?;
    check_section::<C::G1>("B1 (6)", key.b1, subgroup, progress)?;
    check_section::<C::G2>("B2 (7)", key.b2, subgroup, progress)?;
    check_section::<C::G1>("C (8)", key.l, subgroup, progress)?;
    check_section::<C::G1>("H (9)", key.h, subgroup, progress)
}
