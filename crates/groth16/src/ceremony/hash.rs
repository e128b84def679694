//! The circuit hash of a ceremony: BLAKE2b of 64 bytes over the points of its first key, as snarkjs takes it.
//!
//! Numbers are of 32 bits and big-endian, points uncompressed: x, then y, canonical and big-endian, of G2 the second half of a coordinate
//! first; infinity is all zeros.

use crate::ceremony::behind::difference;
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
        let difference = |i: usize| match powers.get(n + i) {
            Some(upper) => C::G1::to_ark(upper).into_group() - C::G1::to_ark(&powers[i]),
            None => behind::<C>(phase1, &powers[i]).unwrap_or_default().into(),
        };
        let bytes = |start: usize| {
            let differences: Vec<_> = (start..(start + (1 << 10)).min(hashed)).map(difference).collect();
            let points = <C::G1 as Group>::Ark::normalize_batch(&differences);
            points.iter().flat_map(uncompressed::<C::G1>).collect()
        };
        let pieces: Vec<Vec<u8>> = (0..hashed).into_par_iter().step_by(1 << 10).map(bytes).collect();
        pieces.iter().for_each(|piece| self.0.update(piece));
    }

    pub(super) fn finish(self) -> [u8; 64] {
        self.0.finalize().into()
    }
}

/// What is behind the powers, as if it were a point, less `power`.
fn behind<C: Curve>(phase1: &Phase1<C>, power: &P1<C>) -> Option<Affine<C::G1>> {
    let bytes = phase1.behind.as_ref()?;
    let limbs: Vec<u64> = bytes.chunks_exact(8).map(bytemuck::pod_read_unaligned).collect();
    let of_power: &[u64] = bytemuck::cast_slice(bytemuck::bytes_of(power));
    let halves = |limbs: &'_ [u64]| limbs.split_at_checked(of_power.len() / 2).map(|(x, y)| [x.to_vec(), y.to_vec()]);
    let (p, q) = (halves(&limbs)?, halves(of_power)?);
    let [x, y] = difference(p.each_ref().map(Vec::as_slice), q.each_ref().map(Vec::as_slice))?;
    let [x, y] = [x, y].map(Base::<C::G1>::from_base_prime_field);
    Some(C::G1::from_xy(x, y))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::sequence;
    use tandem_ops::Bn254;

    type G1 = <Bn254 as Curve>::G1;

    /// Fewer powers than snarkjs has pieces for, and more: there it hashes one more than it counts, which here is no point.
    #[test]
    fn differences_are_hashed_in_whole_pieces() {
        for (n, more) in [(2, 0), (1 << 14, 0), (1 << 15, 1)] {
            let powers_g1 = sequence::<G1>(2 * n - 1);
            let behind = vec![0xfb; size_of::<P1<Bn254>>()];
            let point = powers_g1[0];
            let phase1 = Phase1::<Bn254> {
                tau_g2: sequence::<<Bn254 as Curve>::G2>(1)[0],
                beta_g2: sequence::<<Bn254 as Curve>::G2>(1)[0],
                alpha_g1: point,
                beta_g1: point,
                lagrange_g1: vec![point; n],
                lagrange_g2: Vec::new(),
                lagrange_alpha: Vec::new(),
                lagrange_beta: Vec::new(),
                odd: Vec::new(),
                behind: Some(behind.clone()),
                powers_g1,
            };
            // tau^(n + i) - tau^i, of points that are multiples: always n times the generator.
            let each = (G1::to_ark(&phase1.powers_g1[n]).into_group() - G1::to_ark(&phase1.powers_g1[0])).into_affine();
            let mut expected = Blake2b512::new();
            expected.update((n as u32 - 1).to_be_bytes());
            (0..n - 1).for_each(|_| expected.update(uncompressed::<G1>(&each)));
            let limbs = |bytes: &[u8]| bytes.chunks_exact(8).map(bytemuck::pod_read_unaligned).collect::<Vec<u64>>();
            let (p, q) = (limbs(&behind), limbs(bytemuck::bytes_of(&phase1.powers_g1[n - 1])));
            let [x, y] = difference([&p[..4], &p[4..]], [&q[..4], &q[4..]]).unwrap();
            (0..more).for_each(|_| expected.update(uncompressed::<G1>(&G1::from_xy(x, y))));
            let mut found = CircuitHash(Blake2b512::new());
            found.powers(&phase1);
            assert_eq!(found.finish()[..], expected.finalize()[..], "{n} rows");
        }
    }
}
