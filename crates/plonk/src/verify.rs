//! Verification of proofs.

use crate::check::check_single_points;
use crate::pairings::Pairings;
use crate::polynomial::lagrange;
use crate::transcript::Transcript;
use crate::{Error, Proof, Refusal, Result, VerifyingKey, P1};
use ark_ec::{AffineRepr, CurveGroup, PrimeGroup};
use ark_ff::{AdditiveGroup, Field};
use rayon::prelude::*;
use tandem_ops::{Canonical, Curve, Group};
use tandem_proof::points::check_point;

/// Names of a proof's points.
const POINTS: [&str; 9] = ["A", "B", "C", "Z", "T1", "T2", "T3", "Wxi", "Wxiw"];
/// Names of a proof's evaluations.
const EVALUATIONS: [&str; 6] = ["eval_a", "eval_b", "eval_c", "eval_s1", "eval_s2", "eval_zw"];

/// A verification key whose points have been checked.
pub struct PreparedKey<C: Curve> {
    key: VerifyingKey<C>,
    /// The root of unity whose powers are the domain.
    w: C::Fr,
    pairings: Pairings<C>,
}

impl<C: Curve> PreparedKey<C> {
    /// Checks the key: its points, that tau is in G2 no infinity, and that the columns' cosets are apart.
    ///
    /// # Errors
    /// [`Error::Key`] that names what is wrong.
    pub fn new(key: &VerifyingKey<C>) -> Result<Self> {
        check_single_points(key)?;
        let w = C::root_of_unity(key.domain.trailing_zeros());
        let w = w.ok_or_else(|| Error::Key(format!("a domain of {} rows, which {} has not", key.domain, C::ID)))?;
        Ok(Self { key: key.clone(), w, pairings: Pairings::new(&key.x_2) })
    }

    /// The root of unity whose powers are the domain.
    pub fn root(&self) -> C::Fr {
        self.w
    }

    /// Checks that e(Wxi + u Wxiw, tau G2) = e(xi Wxi + u xi w Wxiw + F - E, G2), and before that all that the equation takes for
    /// granted.
    ///
    /// # Errors
    /// The reason to refuse the proof.
    pub fn verify(&self, publics: &[Canonical], proof: &Proof<C>) -> std::result::Result<(), Refusal> {
        let publics = self.publics(publics)?;
        let evaluations = evaluations(proof)?;
        for (point, name) in proof.points.iter().zip(POINTS) {
            check_point::<C::G1>(point).map_err(|fault| Refusal::Point { name, fault })?;
        }
        let drawn = self.draw(&publics, proof, &evaluations);
        let [wxi, wxiw] = [7, 8].map(|i| C::G1::to_ark(&proof.points[i]));
        let left = || -(wxi.into_group() + wxiw * drawn.u);
        let right = || self.right(&publics, proof, evaluations, &drawn);
        match self.pairings.are_inverse(left, right) {
            true => Ok(()),
            false => Err(Refusal::Equation),
        }
    }

    /// The public values as elements: as many as the key says, each below the modulus.
    fn publics(&self, publics: &[Canonical]) -> std::result::Result<Vec<C::Fr>, Refusal> {
        if publics.len() != self.key.publics {
            return Err(Refusal::PublicCount { has: publics.len(), expected: self.key.publics });
        }
        let element = |(i, value): (usize, &Canonical)| C::from_canonical(*value).ok_or(Refusal::PublicRange(i));
        publics.iter().enumerate().map(element).collect()
    }

    /// The challenges, drawn as the prover draws them.
    fn draw(&self, publics: &[C::Fr], proof: &Proof<C>, evaluations: &[C::Fr; 6]) -> Challenges<C::Fr> {
        let p = &proof.points;
        let draw = |scalars: &[C::Fr], points: &[P1<C>]| -> C::Fr {
            Transcript::default().scalars(scalars).points::<C>(points).challenge()
        };
        let beta: C::Fr = Transcript::default()
            .points::<C>(&self.key.selectors)
            .points::<C>(&self.key.permutation)
            .scalars(publics)
            .points::<C>(&p[..3])
            .challenge();
        let gamma = draw(&[beta], &[]);
        let alpha = draw(&[beta, gamma], &p[3..4]);
        let xi = draw(&[alpha], &p[4..7]);
        let v = Transcript::default().scalars(&[xi]).scalars(evaluations).challenge();
        let u = draw(&[], &p[7..9]);
        Challenges { beta, gamma, alpha, xi, v, u }
    }

    /// xi Wxi + u xi w Wxiw + F - E
    fn right(
        &self,
        publics: &[C::Fr],
        proof: &Proof<C>,
        [a, b, c, s1, s2, zw]: [C::Fr; 6],
        &Challenges { beta, gamma, alpha, xi, v, u }: &Challenges<C::Fr>,
    ) -> <C::G1 as Group>::Ark {
        let VerifyingKey { domain, k: [k1, k2], selectors: [qm, ql, qr, qo, qc], permutation: [ps1, ps2, ps3], .. } =
            self.key;
        let p = &proof.points;
        let xin = xi.pow([domain as u64]);
        let zh = xin - C::Fr::ONE;
        let (l1, pi) = lagrange(publics, xi, self.w, domain);
        let ab = (a + beta * s1 + gamma) * (b + beta * s2 + gamma);
        let r0 = pi - l1 * alpha.square() - alpha * ab * (c + gamma) * zw;
        let of_z = alpha * (a + beta * xi + gamma) * (b + beta * k1 * xi + gamma) * (c + beta * k2 * xi + gamma)
            + l1 * alpha.square()
            + u;
        let [v1, v2, v3, v4, v5] = [1, 2, 3, 4, 5].map(|i| v.pow([i]));
        let e = v1 * a + v2 * b + v3 * c + v4 * s1 + v5 * s2 + u * zw - r0;
        let terms = [
            (qm, a * b),
            (ql, a),
            (qr, b),
            (qo, c),
            (qc, C::Fr::ONE),
            (p[3], of_z),
            (ps3, -alpha * beta * zw * ab),
            (p[4], -zh),
            (p[5], -zh * xin),
            (p[6], -zh * xin.square()),
            (p[0], v1),
            (p[1], v2),
            (p[2], v3),
            (ps1, v4),
            (ps2, v5),
            (p[7], xi),
            (p[8], u * xi * self.w),
            (C::G1::from_ark(&<C::G1 as Group>::Ark::generator().into_affine()), -e),
        ];
        terms.par_iter().map(|(point, k)| C::G1::to_ark(point) * *k).sum()
    }
}

/// What prover and verifier draw of the transcript.
struct Challenges<F> {
    beta: F,
    gamma: F,
    alpha: F,
    xi: F,
    v: F,
    u: F,
}

/// The evaluations of a proof as elements, each below the modulus.
fn evaluations<C: Curve>(proof: &Proof<C>) -> std::result::Result<[C::Fr; 6], Refusal> {
    let mut evaluations = [C::Fr::ZERO; 6];
    for ((value, name), to) in proof.evaluations.iter().zip(EVALUATIONS).zip(&mut evaluations) {
        *to = C::from_canonical(*value).ok_or(Refusal::Evaluation(name))?;
    }
    Ok(evaluations)
}
