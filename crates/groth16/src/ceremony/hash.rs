//! The circuit hash of a ceremony: BLAKE2b of 64 bytes over the points of its first key, as snarkjs takes it.
//!
//! Numbers are of 32 bits and big-endian, points uncompressed: x, then y, canonical and big-endian, of G2 the second half of a coordinate
//! first; infinity is all zeros.

use crate::ceremony::Phase1;
use crate::{KeyPoints, P1, P2};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{BigInteger, Field, PrimeField};
use blake2::{Blake2b512, Digest};
use rayon::prelude::*;
use tandem_ops::{Curve, Group};

type Affine<G> = <<G as Group>::Ark as CurveGroup>::Affine;
type Prime<G> = <Base<G> as Field>::BasePrimeField;
type Base<G> = <<G as Group>::Ark as CurveGroup>::BaseField;
/// Coordinates of a point that is not infinity.
type Xy<G> = (Base<G>, Base<G>);

/// The hash of what came so far.
pub(super) struct CircuitHash(Blake2b512);

impl CircuitHash {
    /// Begins with the points that belong to no wire.
    pub(super) fn new<C: Curve>(points: &KeyPoints<C>) -> Self {
        let mut hash = Self(Blake2b512::new());
        hash.g1::<C>(&[points.alpha1, points.beta1]);
        hash.g2::<C>(&[points.beta2, points.gamma2]);
        hash.g1::<C>(&[points.delta1]);
        hash.g2::<C>(&[points.delta2]);
        hash
    }

    /// How many points follow.
    pub(super) fn count(&mut self, points: usize) {
        self.0.update((points as u32).to_be_bytes());
    }

    pub(super) fn g1<C: Curve>(&mut self, points: &[P1<C>]) {
        self.points::<C::G1>(points);
    }

    pub(super) fn g2<C: Curve>(&mut self, points: &[P2<C>]) {
        self.points::<C::G2>(points);
    }

    fn points<G: Group>(&mut self, points: &[G::Point]) {
        let bytes = |points: &[G::Point]| points.iter().flat_map(|p| uncompressed::<G>(&G::to_ark(p))).collect();
        let pieces: Vec<Vec<u8>> = points.par_chunks(1 << 10).map(bytes).collect();
        pieces.iter().for_each(|piece| self.0.update(piece));
    }

    /// The powers of tau times its vanishing polynomial, tau^(n + i) - tau^i, of which the quotient is a sum. snarkjs hashes them in pieces
    /// of 2^14: where there are more than one, the last is as long as the others, and takes powers beyond the n - 1 that it counts.
    pub(super) fn powers<C: Curve>(&mut self, phase1: &Phase1<C>) {
        const PIECE: usize = 1 << 14;
        let (n, powers) = (phase1.domain(), &phase1.powers_g1);
        self.count(n - 1);
        let hashed = if n - 1 > PIECE { (n - 1).next_multiple_of(PIECE) } else { n - 1 };
        let difference = |i: usize| {
            let upper = powers.get(n + i).map_or_else(|| behind::<C>(phase1), |p| C::G1::to_ark(p).xy());
            let lower = C::G1::to_ark(&powers[i]).xy();
            // Each is finite, and no two powers are each other's opposite: check_powers and a random tau see to that.
            upper.zip(lower).map_or_else(Affine::<C::G1>::zero, |(p, q)| subtract::<C::G1>(p, q))
        };
        let bytes = |start: usize| {
            let piece = start..(start + (1 << 10)).min(hashed);
            piece.flat_map(|i| uncompressed::<C::G1>(&difference(i))).collect()
        };
        let pieces: Vec<Vec<u8>> = (0..hashed).into_par_iter().step_by(1 << 10).map(bytes).collect();
        pieces.iter().for_each(|piece| self.0.update(piece));
    }

    pub(super) fn finish(self) -> [u8; 64] {
        self.0.finalize().into()
    }
}

/// What is behind the powers, read as a point that it need not be.
fn behind<C: Curve>(phase1: &Phase1<C>) -> Option<Xy<C::G1>> {
    let bytes = phase1.behind.as_ref()?;
    let (x, y) = bytes.split_at_checked(bytes.len() / 2)?;
    // Limbs are in Montgomery form: times R, R being 2^64 to the number of limbs.
    let unit =
        Base::<C::G1>::from_base_prime_field(Prime::<C::G1>::from(2_u64)).pow([4 * bytes.len() as u64]).inverse()?;
    let coordinate =
        |bytes| Base::<C::G1>::from_base_prime_field(Prime::<C::G1>::from_le_bytes_mod_order(bytes)) * unit;
    Some((coordinate(x), coordinate(y)))
}

/// p - q by the chord through p and -q. The curve's equation plays no part, so that snarkjs's result is had also where p is no point of it.
fn subtract<G: Group>(p: Xy<G>, q: Xy<G>) -> Affine<G> {
    let Some(slope) = (p.0 - q.0).inverse().map(|run| (p.1 + q.1) * run) else { return Affine::<G>::zero() };
    let x = slope.square() - p.0 - q.0;
    let y = slope * (p.0 - x) - p.1;
    G::from_xy(x, y)
}

fn uncompressed<G: Group>(point: &Affine<G>) -> Vec<u8> {
    let width = Prime::<G>::MODULUS_BIT_SIZE.div_ceil(64) as usize * 8;
    let halves = <Base<G> as Field>::extension_degree() as usize;
    let Some((x, y)) = point.xy() else { return vec![0; 2 * width * halves] };
    let bytes = |coordinate: Base<G>| {
        let mut halves: Vec<Vec<u8>> =
            coordinate.to_base_prime_field_elements().map(|half| half.into_bigint().to_bytes_be()).collect();
        halves.reverse();
        halves.concat()
    };
    [bytes(x), bytes(y)].concat()
}
