//! What the tests of keys, proofs and verdicts share.
#![allow(dead_code)] // each test program uses its own part

use ark_ec::{AffineRepr, CurveGroup, PrimeGroup};
use ark_ff::{AdditiveGroup, Field};
use tandem_groth16::setup::{setup, Circuit, Secret};
use tandem_groth16::{Error, OwnedKey, Proof, Silent, VerifyingKey, Witness, P1, P2};
use tandem_ops::cpu::Cpu;
use tandem_ops::timeline::Moved;
use tandem_ops::{Bls12_381, Bn254, Canonical, Curve, CurveId, Group, Timeline};
use zeroize::Zeroizing;

type Base<G> = <<G as Group>::Ark as CurveGroup>::BaseField;

/// The key of a circuit.
pub(crate) fn key<C: Curve>(circuit: impl Circuit<C>) -> OwnedKey<C> {
    let mut key = OwnedKey::default();
    setup::<C>(&circuit, &Secret::from_seed([7; 32]), &mut key, &Silent).unwrap();
    key
}

/// The values as a witness.
pub(crate) fn checked<C: Curve>(witness: &[Canonical]) -> Result<Witness<C>, Error> {
    Witness::new(Zeroizing::new(witness.to_vec()))
}

/// What the verifier of arkworks says, which shares no code with ours but the pairing. It takes points for granted.
pub(crate) fn arkworks_accepts<C: Curve>(vk: &VerifyingKey<C>, inputs: &[Canonical], proof: &Proof<C>) -> bool {
    let g1 = |p: &P1<C>| C::G1::to_ark(p);
    let g2 = |p: &P2<C>| C::G2::to_ark(p);
    let vk = ark_groth16::VerifyingKey::<C::Pairing> {
        alpha_g1: g1(&vk.alpha1),
        beta_g2: g2(&vk.beta2),
        gamma_g2: g2(&vk.gamma2),
        delta_g2: g2(&vk.delta2),
        gamma_abc_g1: vk.ic.iter().map(g1).collect(),
    };
    let proof = ark_groth16::Proof { a: g1(&proof.a), b: g2(&proof.b), c: g1(&proof.c) };
    let inputs: Vec<C::Fr> = inputs.iter().map(|&x| C::from_canonical(x).unwrap()).collect();
    let vk = ark_groth16::prepare_verifying_key(&vk);
    ark_groth16::Groth16::<C::Pairing>::verify_proof(&vk, &proof, &inputs).unwrap()
}

/// All that was copied since [`Cpu::take_moved`] was called last was copied within spans of this timeline.
pub(crate) fn assert_every_copy_has_a_span(cpu: &Cpu, timeline: &Timeline) {
    let of_spans: Moved = timeline.take().unwrap().iter().map(|span| span.moved).sum();
    assert_eq!(of_spans, cpu.take_moved());
}

/// A multiple of the generator.
pub(crate) fn multiple<G: Group>(k: u64) -> G::Point {
    G::from_ark(&(G::Ark::generator() * <G::Curve as Curve>::Fr::from(k)).into_affine())
}

/// Infinity.
pub(crate) fn infinity<G: Group>() -> G::Point {
    G::from_ark(&G::Ark::ZERO.into_affine())
}

/// A point of the curve outside the subgroup, by the square root of x^3 + b; `None` where the group is all of the curve.
fn outside<G: Group>() -> Option<G::Point> {
    let (x, y) = G::Ark::generator().into_affine().xy().unwrap();
    let b = y.square() - x.square() * x;
    let shift = <Base<G> as Field>::from_base_prime_field_elems(
        (0..Base::<G>::extension_degree()).map(|_| <<Base<G> as Field>::BasePrimeField as Field>::ONE),
    )
    .unwrap();
    (1u64..50).find_map(|i| {
        let x = shift + Base::<G>::from(i);
        let point = G::from_ark(&G::from_xy(x, (x.square() * x + b).sqrt()?));
        (!G::is_in_subgroup(&point)).then_some(point)
    })
}

/// A curve's points that belong to no subgroup.
pub(crate) trait Outside: Curve {
    /// One in G1, of the least order where there is one.
    fn outside1() -> Option<P1<Self>> {
        match Self::ID {
            CurveId::Bn254 => None,
            // (0, 2) has order 3, the factor of the cofactor that random sums find hardest.
            CurveId::Bls12_381 => {
                let (zero, two) = (Base::<Self::G1>::ZERO, Base::<Self::G1>::from(2u64));
                Some(Self::G1::from_ark(&Self::G1::from_xy(zero, two)))
            }
        }
    }
    /// One in G2.
    fn outside2() -> P2<Self> {
        outside::<Self::G2>().unwrap()
    }
}

impl Outside for Bn254 {}
impl Outside for Bls12_381 {}

#[test]
fn points_outside_the_subgroup_are_what_they_say() {
    fn lies_outside<G: Group>(point: &G::Point) {
        assert!(G::is_on_curve(point) && !G::is_in_subgroup(point));
    }
    lies_outside::<<Bn254 as Curve>::G2>(&Bn254::outside2());
    lies_outside::<<Bls12_381 as Curve>::G2>(&Bls12_381::outside2());
    let three = Bls12_381::outside1().unwrap();
    lies_outside::<<Bls12_381 as Curve>::G1>(&three);
    let three = <Bls12_381 as Curve>::G1::to_ark(&three);
    assert!((three + three + three).into_affine().is_zero());
    assert!(Bn254::outside1().is_none() && outside::<<Bn254 as Curve>::G1>().is_none());
}
