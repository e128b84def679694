//! Verification of proofs.

use crate::check::check_single_points;
use crate::pairings::{Ahead, Pairings};
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
        let [points @ .., wxi, wxiw] = &proof.points;
        let begun = self.begin(publics, points, &proof.evaluations)?;
        self.end(&begun, [wxi, wxiw])
    }

    /// What can be checked and computed of a proof before it has its openings: a prover does so while they are made.
    ///
    /// # Errors
    /// The reason to refuse the proof.
    pub(crate) fn begin(
        &self,
        publics: &[Canonical],
        points: &[P1<C>; OPENED],
        evaluations: &[Canonical; 6],
    ) -> std::result::Result<Begun<C>, Refusal> {
        let publics = self.publics(publics)?;
        let evaluations = elements::<C>(evaluations)?;
        check_points::<C>(points, &POINTS[..OPENED])?;
        let drawn = self.draw(&publics, points, &evaluations);
        let sum = self.sum(&publics, points, evaluations, &drawn);
        Ok(Begun { sum, z: points[3], zw: evaluations[5], xi: drawn.xi })
    }

    /// All of the equation that can be computed without Wxi, which comes last. `u` joins the two openings as in [`PreparedKey::verify`], which
    /// draws it of both: here it is random, and nobody else knows it before the proof is made, so that the equation holds only if both do.
    ///
    /// # Errors
    /// The reason to refuse the proof.
    pub(crate) fn ahead(&self, begun: &Begun<C>, wxiw: &P1<C>, u: C::Fr) -> AheadWith<C> {
        check_points::<C>(&[*wxiw], &POINTS[OPENED + 1..])?;
        let &Begun { sum, z, zw, xi } = begun;
        let left = || C::G1::to_ark(wxiw) * u;
        let generator = C::G1::from_ark(&<C::G1 as Group>::Ark::generator().into_affine());
        let right = || -(sum + summed::<C>(&[(z, u), (generator, -u * zw), (*wxiw, u * xi * self.w)]));
        Ok(self.pairings.ahead(left, right, xi))
    }

    /// The rest: e(Wxi, (tau - xi) G2), which with what is there makes 1.
    ///
    /// # Errors
    /// The reason to refuse the proof.
    pub(crate) fn finish(&self, ahead: Ahead<C>, wxi: &P1<C>) -> std::result::Result<(), Refusal> {
        check_points::<C>(&[*wxi], &POINTS[OPENED..OPENED + 1])?;
        match ahead.makes_one_with(C::G1::to_ark(wxi)) {
            true => Ok(()),
            false => Err(Refusal::Equation),
        }
    }

    /// The rest of [`PreparedKey::verify`], with the openings.
    ///
    /// # Errors
    /// The reason to refuse the proof.
    fn end(&self, begun: &Begun<C>, openings: [&P1<C>; 2]) -> std::result::Result<(), Refusal> {
        let [wxi, wxiw] = openings.map(|point| *point);
        check_points::<C>(&[wxi, wxiw], &POINTS[OPENED..])?;
        let &Begun { sum, z, zw, xi } = begun;
        let u: C::Fr = Transcript::default().points::<C>(&[wxi, wxiw]).challenge();
        let left = || -(C::G1::to_ark(&wxi).into_group() + C::G1::to_ark(&wxiw) * u);
        let generator = C::G1::from_ark(&<C::G1 as Group>::Ark::generator().into_affine());
        let right = || sum + summed::<C>(&[(z, u), (generator, -u * zw), (wxi, xi), (wxiw, u * xi * self.w)]);
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
    fn draw(&self, publics: &[C::Fr], p: &[P1<C>; OPENED], evaluations: &[C::Fr; 6]) -> Challenges<C::Fr> {
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
        Challenges { beta, gamma, alpha, xi, v }
    }

    /// F - E, but for what u is multiplied by.
    fn sum(
        &self,
        publics: &[C::Fr],
        p: &[P1<C>; OPENED],
        [a, b, c, s1, s2, zw]: [C::Fr; 6],
        &Challenges { beta, gamma, alpha, xi, v }: &Challenges<C::Fr>,
    ) -> <C::G1 as Group>::Ark {
        let VerifyingKey { domain, k: [k1, k2], selectors: [qm, ql, qr, qo, qc], permutation: [ps1, ps2, ps3], .. } =
            self.key;
        let xin = xi.pow([domain as u64]);
        let zh = xin - C::Fr::ONE;
        let (l1, pi) = lagrange(publics, xi, self.w, domain);
        let ab = (a + beta * s1 + gamma) * (b + beta * s2 + gamma);
        let r0 = pi - l1 * alpha.square() - alpha * ab * (c + gamma) * zw;
        let of_z = alpha * (a + beta * xi + gamma) * (b + beta * k1 * xi + gamma) * (c + beta * k2 * xi + gamma)
            + l1 * alpha.square();
        let [v1, v2, v3, v4, v5] = [1, 2, 3, 4, 5].map(|i| v.pow([i]));
        let e = v1 * a + v2 * b + v3 * c + v4 * s1 + v5 * s2 - r0;
        summed::<C>(&[
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
            (C::G1::from_ark(&<C::G1 as Group>::Ark::generator().into_affine()), -e),
        ])
    }
}

/// Points of a proof before its openings.
const OPENED: usize = 7;

/// A proof that was checked as far as can be without its openings.
pub(crate) struct Begun<C: Curve> {
    /// F - E, but for what u is multiplied by.
    sum: <C::G1 as Group>::Ark,
    z: P1<C>,
    zw: C::Fr,
    xi: C::Fr,
}

/// What a verifier says of a proof without Wxi.
pub(crate) type AheadWith<C> = std::result::Result<Ahead<C>, Refusal>;

/// The sum of multiples of points, each of which a thread may make.
fn summed<C: Curve>(terms: &[(P1<C>, C::Fr)]) -> <C::G1 as Group>::Ark {
    terms.par_iter().map(|(point, k)| C::G1::to_ark(point) * *k).sum()
}

/// Fails unless these are points of G1.
fn check_points<C: Curve>(points: &[P1<C>], names: &[&'static str]) -> std::result::Result<(), Refusal> {
    points
        .iter()
        .zip(names)
        .try_for_each(|(point, name)| check_point::<C::G1>(point).map_err(|fault| Refusal::Point { name, fault }))
}

/// What prover and verifier draw of the transcript before the openings.
struct Challenges<F> {
    beta: F,
    gamma: F,
    alpha: F,
    xi: F,
    v: F,
}

/// The evaluations of a proof as elements, each below the modulus.
fn elements<C: Curve>(of_proof: &[Canonical; 6]) -> std::result::Result<[C::Fr; 6], Refusal> {
    let mut elements = [C::Fr::ZERO; 6];
    for ((value, name), to) in of_proof.iter().zip(EVALUATIONS).zip(&mut elements) {
        *to = C::from_canonical(*value).ok_or(Refusal::Evaluation(name))?;
    }
    Ok(elements)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::{blinding, owned, Random};
    use crate::{Layout, ProvingKey, Request};
    use tandem_ops::cpu::Cpu;
    use tandem_ops::{Bls12_381, Bn254};

    const PUBLICS: usize = 2;

    /// A prover's own check of its proof, part by part, asks of the openings what [`PreparedKey::verify`] asks.
    fn openings_are_checked<C: Curve>() {
        let circuit = Random::<C>::new(40, PUBLICS, 31);
        let key = owned(&circuit);
        let (view, cpu, witness) = (key.view().unwrap(), Cpu::new(1), circuit.witness());
        let loaded = ProvingKey::load(&cpu, &view, Layout::Auto, 1).unwrap();
        let verifier = PreparedKey::new(&view.verifying).unwrap();
        let made = crate::prove_verified(&cpu, &loaded, &verifier, &witness, &blinding(), &Request::silent()).unwrap();
        let Proof { points: [before @ .., wxi, wxiw], evaluations } = made.proof;
        let begun = verifier.begin(&witness.values()[1..=PUBLICS], &before, &evaluations).ok().unwrap();
        let ahead = |wxiw: &P1<C>| verifier.ahead(&begun, wxiw, C::Fr::from(77_u64));
        assert!(verifier.finish(ahead(&wxiw).ok().unwrap(), &wxi).is_ok());
        // Good points in each other's place.
        assert!(matches!(verifier.finish(ahead(&wxi).ok().unwrap(), &wxiw), Err(Refusal::Equation)));
        let damaged = |mut point: P1<C>| {
            bytemuck::bytes_of_mut(&mut point)[0] ^= 1;
            point
        };
        assert!(matches!(ahead(&damaged(wxiw)), Err(Refusal::Point { name: "Wxiw", .. })));
        let refused = verifier.finish(ahead(&wxiw).ok().unwrap(), &damaged(wxi));
        assert!(matches!(refused, Err(Refusal::Point { name: "Wxi", .. })));
    }

    #[test]
    fn openings_are_checked_where_they_come_last() {
        openings_are_checked::<Bn254>();
        openings_are_checked::<Bls12_381>();
    }
}
