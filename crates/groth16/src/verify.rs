//! Verification of proofs.

use crate::{Error, Proof, Result, VerifyingKey, P1, P2};
use ark_ec::pairing::{MillerLoopOutput, Pairing, PairingOutput};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{AdditiveGroup, PrimeField};
use rayon::prelude::*;
use tandem_ops::{Canonical, Curve, Group};
use tandem_proof::points::{check_curve, check_finite, check_point, Fault};
use tandem_proof::Refusal;

type G2Prepared<C> = <<C as Curve>::Pairing as Pairing>::G2Prepared;

type Affine<C> = <<<C as Curve>::G1 as Group>::Ark as CurveGroup>::Affine;

/// Points that a thread takes at least of the sum over the public values.
const LEAST_SHARE: usize = 32;

/// A verification key whose points have been checked and whose constant pairings have been computed.
pub struct PreparedKey<C: Curve> {
    alpha_beta: PairingOutput<C::Pairing>,
    minus_gamma: G2Prepared<C>,
    minus_delta: G2Prepared<C>,
    ic: Vec<Affine<C>>,
}

/// A factor of the equation's left side before the final exponentiation, or why there is none.
pub(crate) type Factor<C> = std::result::Result<MillerLoopOutput<<C as Curve>::Pairing>, Refusal>;

/// The quick half of the check of a proof's point, without which nothing is computed with it.
fn on_curve<'p, G: Group>(name: &'static str, point: &'p G::Point) -> std::result::Result<&'p G::Point, Refusal> {
    check_curve::<G>(point).map_err(|fault| Refusal::Point { name, fault })?;
    Ok(point)
}

fn in_subgroup<G: Group>(name: &'static str, point: &G::Point) -> std::result::Result<(), Refusal> {
    if G::is_in_subgroup(point) {
        return Ok(());
    }
    Err(Refusal::Point { name, fault: Fault::Subgroup })
}

/// sum k_i P_i over as many of each. Not ark-ec's own, which makes a pool of threads in every call and panics where the system starts
/// none.
fn combination<C: Curve>(points: &[Affine<C>], scalars: &[C::Fr]) -> <C::G1 as Group>::Ark {
    let (n, sum) = (points.len(), |(points, scalars)| buckets::<C>(points, scalars));
    let share = n.div_ceil(rayon::current_num_threads()).max(LEAST_SHARE);
    points.par_chunks(share).zip(scalars.par_chunks(share)).map(sum).sum()
}

/// sum k_i P_i by one thread: signed digits would halve the buckets, but the inputs are few as a rule.
fn buckets<C: Curve>(points: &[Affine<C>], scalars: &[C::Fr]) -> <C::G1 as Group>::Ark {
    let zero = <C::G1 as Group>::Ark::ZERO;
    let bits = match points.len() {
        0..=2 => return points.iter().zip(scalars).map(|(point, k)| *point * k).sum(),
        n => (n.ilog2() + 2) * 2 / 3,
    };
    let scalars: Vec<_> = scalars.iter().map(|k| k.into_bigint()).collect();
    let window = |sum: <C::G1 as Group>::Ark, first: u32| {
        let mut buckets = vec![zero; (1 << bits) - 1];
        for (point, k) in points.iter().zip(&scalars) {
            let (limb, shift) = (first as usize / 64, first % 64);
            let high = k.as_ref().get(limb + 1).copied().unwrap_or(0);
            let digit = ((u128::from(k.as_ref()[limb]) | u128::from(high) << 64) >> shift) as usize & ((1 << bits) - 1);
            if digit > 0 {
                buckets[digit - 1] += point;
            }
        }
        let mut running = zero;
        let mut total = (0..bits).fold(sum, |sum, _| sum.double());
        for bucket in buckets.iter().rev() {
            running += bucket;
            total += running;
        }
        total
    };
    (0..C::Fr::MODULUS_BIT_SIZE.div_ceil(bits)).rev().map(|w| w * bits).fold(zero, window)
}

impl<C: Curve> PreparedKey<C> {
    /// Checks all points of the key and prepares it. None but those of IC may be infinity: alpha, beta or gamma would let
    /// anyone make proofs, and delta tell of witnesses.
    ///
    /// # Errors
    /// [`Error::Key`] that names the point.
    pub fn new(key: &VerifyingKey<C>) -> Result<Self> {
        let fail = |name: &str, fault: Fault| Err(Error::Key(format!("point {name} {fault}")));
        for (name, point) in [("beta", &key.beta2), ("gamma", &key.gamma2), ("delta", &key.delta2)] {
            if let Err(fault) = check_finite::<C::G2>(point) {
                return fail(name, fault);
            }
        }
        if let Err(fault) = check_finite::<C::G1>(&key.alpha1) {
            return fail("alpha", fault);
        }
        let bad = |(i, point)| check_point::<C::G1>(point).err().map(|fault| (i, fault));
        if let Some((i, fault)) = key.ic.par_iter().enumerate().find_map_first(bad) {
            return fail(&format!("IC[{i}]"), fault);
        }
        if key.ic.is_empty() {
            return Err(Error::Key("the verification key has no IC point".into()));
        }
        let minus = |point| G2Prepared::<C>::from((-C::G2::to_ark(point).into_group()).into_affine());
        Ok(Self {
            alpha_beta: C::Pairing::pairing(C::G1::to_ark(&key.alpha1), C::G2::to_ark(&key.beta2)),
            minus_gamma: minus(&key.gamma2),
            minus_delta: minus(&key.delta2),
            ic: key.ic.iter().map(C::G1::to_ark).collect(),
        })
    }

    /// e(alpha, beta) of the key.
    pub fn alpha_beta(&self) -> PairingOutput<C::Pairing> {
        self.alpha_beta
    }

    /// Checks that e(A, B) = e(alpha, beta) e(IC_0 + sum x_i IC_i, gamma) e(C, delta), and before that all that
    /// the equation takes for granted.
    ///
    /// # Errors
    /// The reason to refuse the proof.
    pub fn verify(&self, publics: &[Canonical], proof: &Proof<C>) -> std::result::Result<(), Refusal> {
        let ((of_inputs, checked), (of_ab, of_c)) = rayon::join(
            || rayon::join(|| self.of_inputs(publics), || Self::check_c(&proof.c)),
            || rayon::join(|| self.of_ab(&proof.a, &proof.b), || self.of_c(&proof.c)),
        );
        self.conclude(of_inputs, of_ab, checked.and(of_c))
    }

    /// What the public values add to the equation.
    pub(crate) fn of_inputs(&self, publics: &[Canonical]) -> Factor<C> {
        if publics.len() + 1 != self.ic.len() {
            return Err(Refusal::PublicCount { has: publics.len(), expected: self.ic.len() - 1 });
        }
        let mut scalars = Vec::with_capacity(publics.len());
        for (i, x) in publics.iter().enumerate() {
            scalars.push(C::from_canonical(*x).ok_or(Refusal::PublicRange(i))?);
        }
        let inputs = combination::<C>(&self.ic[1..], &scalars) + self.ic[0];
        Ok(C::Pairing::multi_miller_loop([inputs.into_affine()], [self.minus_gamma.clone()]))
    }

    /// What A and B add to it.
    pub(crate) fn of_ab(&self, a: &P1<C>, b: &P2<C>) -> Factor<C> {
        let a = on_curve::<C::G1>("pi_a", a)?;
        let b = on_curve::<C::G2>("pi_b", b)?;
        let (checked, factor) = rayon::join(
            || in_subgroup::<C::G1>("pi_a", a).and_then(|()| in_subgroup::<C::G2>("pi_b", b)),
            || C::Pairing::multi_miller_loop([C::G1::to_ark(a)], [G2Prepared::<C>::from(C::G2::to_ark(b))]),
        );
        checked.map(|()| factor)
    }

    /// What C adds to it, if it lies in the subgroup ([`Self::check_c`]). Both are apart so that the thread that has waited for C need
    /// not wake another.
    pub(crate) fn of_c(&self, c: &P1<C>) -> Factor<C> {
        let c = on_curve::<C::G1>("pi_c", c)?;
        Ok(C::Pairing::multi_miller_loop([C::G1::to_ark(c)], [self.minus_delta.clone()]))
    }

    /// Whether C, which lies on the curve, lies in the subgroup.
    pub(crate) fn check_c(c: &P1<C>) -> std::result::Result<(), Refusal> {
        in_subgroup::<C::G1>("pi_c", on_curve::<C::G1>("pi_c", c)?)
    }

    /// Whether the equation holds, from what its parts add to it.
    pub(crate) fn conclude(
        &self,
        of_inputs: Factor<C>,
        of_ab: Factor<C>,
        of_c: Factor<C>,
    ) -> std::result::Result<(), Refusal> {
        let product = of_inputs?.0 * of_ab?.0 * of_c?.0;
        match C::Pairing::final_exponentiation(MillerLoopOutput(product)) {
            Some(left) if left == self.alpha_beta => Ok(()),
            _ => Err(Refusal::Equation),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ec::PrimeGroup;
    use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};
    use tandem_ops::{Bls12_381, Bn254};

    fn agrees<C: Curve>() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let generator = <C::G1 as Group>::Ark::generator();
        for n in [0, 1, 2, 3, 4, 31, 32, 33, 100, 700] {
            let mut random = || <C::Fr as ark_ff::UniformRand>::rand(&mut rng);
            let logs: Vec<C::Fr> = (0..n).map(|_| random()).collect();
            let mut scalars: Vec<C::Fr> = (0..n).map(|_| random()).collect();
            // The ends of the field, small ones, and nothing.
            for (k, value) in scalars.iter_mut().skip(1).zip([-C::Fr::from(1), C::Fr::ZERO, 1.into(), 77.into()]) {
                *k = value;
            }
            let points: Vec<_> = logs.iter().map(|&log| (generator * log).into_affine()).collect();
            let expected: C::Fr = logs.iter().zip(&scalars).map(|(log, k)| *log * k).sum();
            assert_eq!(combination::<C>(&points, &scalars), generator * expected, "{n} points");
        }
    }

    #[test]
    fn sums_over_public_values_are_those_of_the_logarithms() {
        agrees::<Bn254>();
        agrees::<Bls12_381>();
    }
}
