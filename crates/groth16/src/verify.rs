//! Verification of proofs.

use crate::check::{check_point, Fault};
use crate::{Error, Proof, Result, VerifyingKey};
use ark_ec::pairing::{Pairing, PairingOutput};
use ark_ec::VariableBaseMSM;
use ark_ec::{AffineRepr, CurveGroup};
use tandem_ops::{Canonical, Curve, Group};

type G2Prepared<C> = <<C as Curve>::Pairing as Pairing>::G2Prepared;

/// A verification key whose points have been checked and whose constant pairings have been computed.
pub struct PreparedKey<C: Curve> {
    alpha_beta: PairingOutput<C::Pairing>,
    minus_gamma: G2Prepared<C>,
    minus_delta: G2Prepared<C>,
    ic: Vec<<<C::G1 as Group>::Ark as CurveGroup>::Affine>,
}

/// Why a proof is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Another number of public values than the key's.
    #[error("{has} public values; the verification key has {expected}")]
    PublicCount {
        /// How many came.
        has: usize,
        /// How many the key has.
        expected: usize,
    },
    /// A public value that is not below the modulus: it would stand for another one.
    #[error("public value {0} is not below the modulus")]
    PublicRange(usize),
    /// A point that is none of its group.
    #[error("point {name} of the proof {fault}")]
    Point {
        /// `pi_a`, `pi_b` or `pi_c`.
        name: &'static str,
        /// What is wrong with it.
        fault: Fault,
    },
    /// The pairing equation does not hold.
    #[error("the pairing equation does not hold")]
    Equation,
}

impl<C: Curve> PreparedKey<C> {
    /// Checks all points of the key and prepares it.
    ///
    /// # Errors
    /// [`Error::Key`] that names the point.
    pub fn new(key: &VerifyingKey<C>) -> Result<Self> {
        let fail = |name: &str, fault: Fault| Err(Error::Key(format!("point {name} {fault}")));
        for (name, point) in [("beta", &key.beta2), ("gamma", &key.gamma2), ("delta", &key.delta2)] {
            if let Err(fault) = check_point::<C::G2>(point) {
                return fail(name, fault);
            }
        }
        if let Err(fault) = check_point::<C::G1>(&key.alpha1) {
            return fail("alpha", fault);
        }
        for (i, point) in key.ic.iter().enumerate() {
            if let Err(fault) = check_point::<C::G1>(point) {
                return fail(&format!("IC[{i}]"), fault);
            }
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
        if publics.len() + 1 != self.ic.len() {
            return Err(Refusal::PublicCount { has: publics.len(), expected: self.ic.len() - 1 });
        }
        let point = |name, check: std::result::Result<(), Fault>| check.map_err(|fault| Refusal::Point { name, fault });
        point("pi_a", check_point::<C::G1>(&proof.a))?;
        point("pi_b", check_point::<C::G2>(&proof.b))?;
        point("pi_c", check_point::<C::G1>(&proof.c))?;
        let mut scalars = Vec::with_capacity(publics.len());
        for (i, x) in publics.iter().enumerate() {
            scalars.push(C::from_canonical(*x).ok_or(Refusal::PublicRange(i))?);
        }
        let inputs = <C::G1 as Group>::Ark::msm_unchecked(&self.ic[1..], &scalars) + self.ic[0];
        let left = C::Pairing::multi_pairing(
            [C::G1::to_ark(&proof.a), inputs.into_affine(), C::G1::to_ark(&proof.c)],
            [G2Prepared::<C>::from(C::G2::to_ark(&proof.b)), self.minus_gamma.clone(), self.minus_delta.clone()],
        );
        if left == self.alpha_beta {
            Ok(())
        } else {
            Err(Refusal::Equation)
        }
    }
}
