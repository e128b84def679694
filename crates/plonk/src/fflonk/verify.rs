//! Verification of proofs.

use super::{Fr, Proof, Roots, VerifyingKey, EVALUATIONS, G1, POINTS};
use crate::check::check_cosets;
use crate::rounds::lagrange;
use crate::transcript::Transcript;
use crate::{Error, Refusal, Result};
use ark_ec::pairing::Pairing;
use ark_ec::{AffineRepr, CurveGroup, PrimeGroup};
use ark_ff::{AdditiveGroup, Field, Zero};
use tandem_ops::{Bn254, Canonical, Curve, Group};
use tandem_proof::points::{check_finite, check_point};

type Ark1 = <<Bn254 as Curve>::G1 as Group>::Ark;
type Ark2 = <<Bn254 as Curve>::G2 as Group>::Ark;

/// A verification key whose points have been checked.
pub struct PreparedKey {
    key: VerifyingKey,
    roots: Roots,
}

/// The value of a polynomial, its constant first.
fn at(x: Fr, coefficients: &[Fr]) -> Fr {
    coefficients.iter().rev().fold(Fr::ZERO, |sum, c| sum * x + c)
}

fn draw(scalars: &[Fr], points: &[G1]) -> Fr {
    Transcript::default().scalars(scalars).points::<Bn254>(points).challenge()
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
        Ok(Self { key: key.clone(), roots })
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
        let VerifyingKey { domain, k: [k1, k2], c0, x_2, .. } = self.key;
        let w = self.roots.w;
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
        let beta: Fr = Transcript::default().points::<Bn254>(&[c0]).scalars(&x).points::<Bn254>(&[c1]).challenge();
        let gamma = draw(&[beta], &[]);
        let seed = draw(&[gamma], &[c2]);
        let [ql, qr, qm, qo, qc, s1, s2, s3, a, b, c, z, zw, t1w, t2w, inverse] = values;
        let alpha: Fr = Transcript::default().scalars(&[seed]).scalars(&values[..15]).challenge();
        let y = draw(&[alpha], &[w1]);

        let xi = seed.pow([24]);
        let xiw = xi * w;
        let zh = xi.pow([domain as u64]) - Fr::ONE;
        let (l1, pi) = lagrange(&x, xi, w, domain);
        let over_zh = zh.inverse().ok_or(Refusal::Equation)?;
        // What the polynomials that are not sent must be at xi.
        let t0 = (ql * a + qr * b + qm * a * b + qo * c + qc + pi) * over_zh;
        let t1 = (z - Fr::ONE) * l1 * over_zh;
        let row = (a + beta * xi + gamma) * (b + beta * k1 * xi + gamma) * (c + beta * k2 * xi + gamma) * z;
        let t2 = (row - (a + beta * s1 + gamma) * (b + beta * s2 + gamma) * (c + beta * s3 + gamma) * zw) * over_zh;

        let [y3, y4, y8] = [3, 4, 8].map(|n| y.pow([n]));
        let (m0, m1, m2) = (y8 - xi, y4 - xi, (y3 - xi) * (y3 - xiw));
        let over = |m: Fr| m.inverse().ok_or(Refusal::Equation);
        let (over_m1, over_m2, over_step) = (over(m1)?, over(m2)?, over(xi - xiw)?);
        // C0 is sum p_j(xi) h^j at each h with h^8 = xi, and so is the polynomial of degree 7 with these coefficients.
        let r0 = at(y, &[ql, qr, qo, qm, qc, s1, s2, s3]);
        let r1 = at(y, &[a, b, c, t0]);
        let r2 = (at(y, &[z, t1, t2]) * (y3 - xiw) - at(y, &[zw, t1w, t2w]) * (y3 - xi)) * over_step;
        let (of_c1, of_c2) = (alpha * m0 * over_m1, alpha.square() * m0 * over_m2);

        // What snarkjs's contract divides by, all in one product.
        let rows = (0..x.len().max(1)).scan(Fr::ONE, |row, _| Some(std::mem::replace(row, *row * w)));
        let by_rows: Fr = rows.map(|row| Fr::from(domain as u64) * (xi - row)).product();
        let [of_s0, of_s1] = [(8_u64, 6, m0), (4, 2, m1)].map(|(n, h, m)| -Fr::from(n).pow([n]) * xi.pow([h + 1]) * m);
        let of_s2 = |own: Fr, other: Fr| Fr::from(27_u64) * own.square() * (own - other).pow([3]) * (y3 - own);
        if inverse * m1 * m2 * zh * of_s0 * of_s1 * of_s2(xi, xiw) * of_s2(xiw, xi) * by_rows != Fr::ONE {
            return Err(Refusal::Equation);
        }

        let g1 = |point: &G1| <Bn254 as Curve>::G1::to_ark(point);
        let left = g1(&c0) * Fr::ONE + g1(&c1) * of_c1 + g1(&c2) * of_c2 - g1(&w1) * m0 + g1(&w2) * y
            - Ark1::generator() * (r0 + of_c1 * r1 + of_c2 * r2);
        let g2 = Ark2::generator().into_affine();
        let product = <Bn254 as Curve>::Pairing::multi_pairing(
            [left.into_affine(), (-g1(&w2).into_group()).into_affine()],
            [g2, <Bn254 as Curve>::G2::to_ark(&x_2)],
        );
        if product.is_zero() {
            Ok(())
        } else {
            Err(Refusal::Equation)
        }
    }
}
