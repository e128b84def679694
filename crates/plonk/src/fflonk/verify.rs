//! Verification of proofs.

use super::{Fr, Proof, Roots, VerifyingKey, EVALUATIONS, G1, POINTS};
use crate::check::check_cosets;
use crate::pairings::Pairings;
use crate::polynomial::lagrange;
use crate::transcript::Transcript;
use crate::{Error, Refusal, Result};
use ark_ec::{AffineRepr, CurveGroup, PrimeGroup};
use ark_ff::{AdditiveGroup, Field};
use rayon::prelude::*;
use tandem_ops::{Bn254, Canonical, Curve, Group};
use tandem_proof::points::{check_finite, check_point};

type Ark1 = <<Bn254 as Curve>::G1 as Group>::Ark;

/// A verification key whose points have been checked.
pub struct PreparedKey {
    key: VerifyingKey,
    roots: Roots,
    pairings: Pairings<Bn254>,
}

/// The value of a polynomial, its constant first.
fn value(x: Fr, coefficients: &[Fr]) -> Fr {
    coefficients.iter().rev().fold(Fr::ZERO, |sum, c| sum * x + c)
}

fn draw(scalars: &[Fr], points: &[G1]) -> Fr {
    Transcript::default().scalars(scalars).points::<Bn254>(points).challenge()
}

/// Challenges of a proof, each drawn when what it depends on is known; zero before.
#[derive(Default)]
pub(super) struct Challenges {
    pub(super) beta: Fr,
    pub(super) gamma: Fr,
    seed: Fr,
    pub(super) alpha: Fr,
    pub(super) y: Fr,
}

impl Challenges {
    /// beta and gamma.
    pub(super) fn first(key: &VerifyingKey, publics: &[Fr], c1: &G1) -> Self {
        let transcript = Transcript::default().points::<Bn254>(&[key.c0]).scalars(publics);
        let beta = transcript.points::<Bn254>(&[*c1]).challenge();
        Challenges { beta, gamma: draw(&[beta], &[]), ..Self::default() }
    }

    /// xi, by its 24th root.
    pub(super) fn second(&mut self, c2: &G1) {
        self.seed = draw(&[self.gamma], &[*c2]);
    }

    /// alpha.
    pub(super) fn third(&mut self, values: &[Fr; 15]) {
        self.alpha = Transcript::default().scalars(&[self.seed]).scalars(values).challenge();
    }

    /// y.
    pub(super) fn fourth(&mut self, w1: &G1) {
        self.y = draw(&[self.alpha], &[*w1]);
    }

    /// Where polynomials are evaluated.
    pub(super) fn xi(&self) -> Fr {
        self.seed.pow([24])
    }
}

/// What is opened at y: C0 + `of_c1` C1 + `of_c2` C2 - `of_w1` F, which is `value` there.
pub(super) struct Opening {
    pub(super) of_c1: Fr,
    pub(super) of_c2: Fr,
    pub(super) of_w1: Fr,
    pub(super) value: Fr,
    /// What snarkjs's contract divides by, all in one product.
    pub(super) divisors: Fr,
}

impl Opening {
    /// Of a proof with these public and these other values; `None` where a challenge hits a root.
    pub(super) fn of(
        key: &VerifyingKey,
        roots: &Roots,
        publics: &[Fr],
        values: &[Fr; 15],
        at: &Challenges,
    ) -> Option<Self> {
        let &VerifyingKey { domain, k: [k1, k2], .. } = key;
        let &Challenges { beta, gamma, alpha, y, .. } = at;
        let [ql, qr, qm, qo, qc, s1, s2, s3, a, b, c, z, zw, t1w, t2w] = *values;
        let (xi, w) = (at.xi(), roots.w);
        let xiw = xi * w;
        let zh = xi.pow([domain as u64]) - Fr::ONE;
        let over_zh = zh.inverse()?;
        let (l1, pi) = lagrange(publics, xi, w, domain);
        // What the polynomials that are not sent must be at xi.
        let t0 = (ql * a + qr * b + qm * a * b + qo * c + qc + pi) * over_zh;
        let t1 = (z - Fr::ONE) * l1 * over_zh;
        let row = (a + beta * xi + gamma) * (b + beta * k1 * xi + gamma) * (c + beta * k2 * xi + gamma) * z;
        let t2 = (row - (a + beta * s1 + gamma) * (b + beta * s2 + gamma) * (c + beta * s3 + gamma) * zw) * over_zh;

        let [y3, y4, y8] = [3, 4, 8].map(|n| y.pow([n]));
        let (m0, m1, m2) = (y8 - xi, y4 - xi, (y3 - xi) * (y3 - xiw));
        // C0 is sum p_j(xi) h^j at each h with h^8 = xi, and so is the polynomial of degree 7 with these coefficients.
        let r0 = value(y, &[ql, qr, qo, qm, qc, s1, s2, s3]);
        let r1 = value(y, &[a, b, c, t0]);
        let r2 =
            (value(y, &[z, t1, t2]) * (y3 - xiw) - value(y, &[zw, t1w, t2w]) * (y3 - xi)) * (xi - xiw).inverse()?;
        let (of_c1, of_c2) = (alpha * m0 * m1.inverse()?, alpha.square() * m0 * m2.inverse()?);

        let rows = (0..publics.len().max(1)).scan(Fr::ONE, |row, _| Some(std::mem::replace(row, *row * w)));
        let by_rows: Fr = rows.map(|row| Fr::from(domain as u64) * (xi - row)).product();
        let [of_s0, of_s1] = [(8_u64, 6, m0), (4, 2, m1)].map(|(n, h, m)| -Fr::from(n).pow([n]) * xi.pow([h + 1]) * m);
        let of_s2 = |own: Fr, other: Fr| Fr::from(27_u64) * own.square() * (own - other).pow([3]) * (y3 - own);
        let divisors = m1 * m2 * zh * of_s0 * of_s1 * of_s2(xi, xiw) * of_s2(xiw, xi) * by_rows;
        Some(Opening { of_c1, of_c2, of_w1: m0, value: r0 + of_c1 * r1 + of_c2 * r2, divisors })
    }
}

impl PreparedKey {
    /// Checks the key: its points, that tau is in G2 no infinity, and that the columns' cosets are apart.
    ///
    /// # Errors
    /// [`Error::Key`] that names what is wrong.
    pub fn new(key: &VerifyingKey) -> Result<Self> {
        check_point::<<Bn254 as Curve>::G1>(&key.c0).map_err(|fault| Error::Key(format!("point C0 {fault}")))?;
        check_finite::<<Bn254 as Curve>::G2>(&key.x_2).map_err(|fault| Error::Key(format!("point X_2 {fault}")))?;
        check_cosets(key.publics, key.domain, key.k)?;
        let roots = Roots::of(key.domain.trailing_zeros());
        let roots = roots.ok_or_else(|| Error::Key(format!("a domain of {} rows, which bn254 has not", key.domain)))?;
        Ok(Self { key: key.clone(), roots, pairings: Pairings::new(&key.x_2) })
    }

    /// The roots of unity of its domain.
    pub fn roots(&self) -> Roots {
        self.roots
    }

    /// Checks that e(C0 + alpha m0/m1 C1 + alpha^2 m0/m2 C2 - m0 W1 - r + y W2, G2) = e(W2, tau G2), and before that all that the
    /// equation takes for granted. m0, m1 and m2 are what vanishes on the points at which C0, C1 and C2 are opened, at y; r is what the
    /// values say that the sum is there.
    ///
    /// # Errors
    /// The reason to refuse the proof.
    pub fn verify(&self, publics: &[Canonical], proof: &Proof) -> std::result::Result<(), Refusal> {
        let VerifyingKey { c0, .. } = self.key;
        if publics.len() != self.key.publics {
            return Err(Refusal::PublicCount { has: publics.len(), expected: self.key.publics });
        }
        let mut x = Vec::with_capacity(publics.len());
        for (i, value) in publics.iter().enumerate() {
            x.push(Bn254::from_canonical(*value).ok_or(Refusal::PublicRange(i))?);
        }
        let mut values = [Fr::ZERO; 16];
        for ((value, name), to) in proof.evaluations.iter().zip(EVALUATIONS).zip(&mut values) {
            *to = Bn254::from_canonical(*value).ok_or(Refusal::Evaluation(name))?;
        }
        for (point, name) in proof.points.iter().zip(POINTS) {
            check_point::<<Bn254 as Curve>::G1>(point).map_err(|fault| Refusal::Point { name, fault })?;
        }

        let [c1, c2, w1, w2] = proof.points;
        let [values @ .., inverse] = values;
        let mut at = Challenges::first(&self.key, &x, &c1);
        at.second(&c2);
        at.third(&values);
        at.fourth(&w1);
        let opening = Opening::of(&self.key, &self.roots, &x, &values, &at).ok_or(Refusal::Equation)?;
        if inverse * opening.divisors != Fr::ONE {
            return Err(Refusal::Equation);
        }

        let g1 = |point: &G1| <Bn254 as Curve>::G1::to_ark(point);
        let right = || -> Ark1 {
            let terms = [
                (g1(&c1), opening.of_c1),
                (g1(&c2), opening.of_c2),
                (g1(&w1), -opening.of_w1),
                (g1(&w2), at.y),
                (Ark1::generator().into_affine(), -opening.value),
            ];
            terms.par_iter().map(|(point, k)| *point * *k).sum::<Ark1>() + g1(&c0)
        };
        match self.pairings.are_inverse(|| -g1(&w2).into_group(), right) {
            true => Ok(()),
            false => Err(Refusal::Equation),
        }
    }
}
