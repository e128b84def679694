//! The first key of a ceremony: of a circuit and the powers of tau that a first phase has made.
//!
//! The equations are those of [`crate::setup`], with gamma and delta 1. tau, alpha and beta are known to nobody, so that each point of the
//! key is a sum of points of phase 1: the polynomials of a wire are sums of Lagrange polynomials of the domain, times coefficients.
//! Nothing is drawn. The key and its circuit hash are those of `snarkjs groth16 setup`, byte for byte.
//!
//! As delta is known, proofs for this key can be forged. It is what contributions to a second phase start from.

mod behind;
mod columns;
mod combine;
mod hash;
mod phase1;
#[cfg(test)]
mod tests;

pub use phase1::Phase1;

use crate::setup::{shape, write_entries, KeySink, Part};
use crate::{Error, KeyPoints, Progress, Result, Shape};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::AdditiveGroup;
use columns::columns;
use combine::combine;
use hash::CircuitHash;
use rayon::prelude::*;
use tandem_ops::{Curve, Group};
use tandem_proof::circuit::Circuit;

/// What [`start`] made beside the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Started {
    /// The key's shape.
    pub shape: Shape,
    /// Names the circuit and phase 1 in the key's section of contributions.
    pub circuit_hash: [u8; 64],
}

/// Makes the key of `circuit` and hands it to `sink`. Holds about 110 bytes for each coefficient
/// of the circuit beside `phase1`, whose points are taken to be good ([`Phase1::check`]).
///
/// # Errors
/// [`Error::Circuit`], also where the circuit has more rows than `phase1` serves; [`Error::Output`]; [`Error::Interrupted`];
/// [`Error::Backend`] where there is not enough memory.
pub fn start<C: Curve>(
    circuit: &dyn Circuit<C>,
    phase1: &Phase1<C>,
    sink: &mut dyn KeySink<C>,
    progress: &dyn Progress,
) -> Result<Started> {
    let shape = shape(circuit)?;
    let Shape { variables, publics, domain } = shape;
    if phase1.domain() != domain {
        let has = phase1.domain();
        return Err(Error::Circuit(format!("points of phase 1 for {has} rows; the circuit needs {domain}")));
    }
    let points = KeyPoints {
        alpha1: phase1.alpha_g1,
        beta1: phase1.beta_g1,
        beta2: phase1.beta_g2,
        gamma2: generator::<C::G2>(),
        delta1: generator::<C::G1>(),
        delta2: generator::<C::G2>(),
    };
    sink.header(shape, &points)?;
    let mut hash = CircuitHash::new(&points);
    let [a, b, c] = columns(circuit, shape, progress)?;
    let entries = u32::try_from(a.len() + b.len())
        .map_err(|_| Error::Circuit("the circuit has more than 2^32 coefficients".into()))?;
    write_entries(circuit, publics, entries, sink, progress)?;

    let of_wire = |wire: usize| {
        combine::<C::G1>(a.terms(wire), &phase1.lagrange_beta)
            + combine::<C::G1>(b.terms(wire), &phase1.lagrange_alpha)
            + combine::<C::G1>(c.terms(wire), &phase1.lagrange_g1)
    };
    let mut g1 = |part, task, wires: std::ops::Range<usize>, point: &(dyn Fn(usize) -> G1<C> + Sync)| {
        progress.start(task, wires.len() as u64);
        sink.begin(part)?;
        hash.count(wires.len());
        pieces::<C::G1>(wires, point, progress, |points| {
            hash.g1::<C>(points);
            sink.points1(points)
        })?;
        if part == Part::Ic {
            sink.begin(Part::H)?;
            sink.points1(&phase1.odd)?;
            hash.powers(phase1);
        }
        Ok::<(), Error>(())
    };
    g1(Part::Ic, "points IC", 0..publics + 1, &of_wire)?;
    g1(Part::L, "points L", publics + 1..variables, &of_wire)?;
    g1(Part::A, "points A", 0..variables, &|wire| combine::<C::G1>(a.terms(wire), &phase1.lagrange_g1))?;
    g1(Part::B1, "points B1", 0..variables, &|wire| combine::<C::G1>(b.terms(wire), &phase1.lagrange_g1))?;
    progress.start("points B2", variables as u64);
    sink.begin(Part::B2)?;
    hash.count(variables);
    let of_b2 = |wire| combine::<C::G2>(b.terms(wire), &phase1.lagrange_g2);
    pieces::<C::G2>(0..variables, &of_b2, progress, |points| {
        hash.g2::<C>(points);
        sink.points2(points)
    })?;
    Ok(Started { shape, circuit_hash: hash.finish() })
}

type G1<C> = <<C as Curve>::G1 as Group>::Ark;

fn generator<G: Group>() -> G::Point {
    G::from_ark(&<G::Ark as CurveGroup>::Affine::generator())
}

/// The points of `wires`, in order and in pieces.
fn pieces<G: Group>(
    wires: std::ops::Range<usize>,
    point: &(dyn Fn(usize) -> G::Ark + Sync),
    progress: &dyn Progress,
    mut out: impl FnMut(&[G::Point]) -> Result<()>,
) -> Result<()> {
    /// A megabyte or two of points, and some thousand sums between two looks at whether the caller wants to stop.
    const PIECE: usize = 1 << 13;
    /// Points that share an inversion.
    const BLOCK: usize = 1 << 6;
    let mut sums = vec![G::Ark::ZERO; wires.len().min(PIECE)];
    for start in wires.clone().step_by(PIECE) {
        if progress.cancelled() {
            return Err(Error::Interrupted);
        }
        let sums = &mut sums[..PIECE.min(wires.end - start)];
        let made: Vec<Vec<G::Point>> = sums
            .par_chunks_mut(BLOCK)
            .enumerate()
            .map(|(block, sums)| {
                sums.iter_mut().enumerate().for_each(|(i, sum)| *sum = point(start + block * BLOCK + i));
                G::Ark::normalize_batch(sums).iter().map(G::from_ark).collect()
            })
            .collect();
        made.iter().try_for_each(|points| out(points))?;
        progress.advance(sums.len() as u64);
    }
    Ok(())
}
