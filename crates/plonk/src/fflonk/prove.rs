//! The proof.
//!
//! With R_i the polynomial that interpolates C_i where it is opened, W1 commits to
//! F = (C0 - R0) / (X^8 - xi) + alpha (C1 - R1) / (X^4 - xi) + alpha^2 (C2 - R2) / ((X^3 - xi)(X^3 - xi w)).
//! R_i has fewer coefficients than what C_i is divided by: it is what is left over, and is never computed.

use super::key::PLACES;
use super::verify::{Challenges, Opening};
use super::{Fr, PreparedKey, Proof, ProvingKey, G1};
use crate::coset::{column_rows, quotient_of_gates, quotients_of_product, Permuted, COSETS};
use crate::key::FIRST;
use crate::spread::{Polynomial, Spread};
use crate::work::Work;
use crate::{Blinding, HostSpan, PlonkBackend, Request, Result, Witness};
use ark_ff::{AdditiveGroup, Field};
use std::time::Instant;
use tandem_ops::{Bn254, Buffer, Canonical, Curve, Mont, VecOps};
use tandem_proof::{settled, Error};

/// A proof that has been verified, and how the host's time was spent.
pub type Made = tandem_proof::Made<Proof>;

const OP: &str = "prove";

/// Makes a proof and verifies it. `verifier` is of the same key. A request that is cancelled ends within one primitive; the backend and the
/// key serve the next one as if it had not been made.
///
/// # Errors
/// [`Error::Witness`] for a witness of another length; [`Error::Backend`]; [`Error::Interrupted`].
pub fn prove_verified<B: PlonkBackend<Bn254>>(
    backend: &B,
    key: &ProvingKey<B>,
    verifier: &PreparedKey,
    witness: &Witness<Bn254>,
    blinding: &Blinding<Bn254>,
    request: &Request<'_>,
) -> Result<Made> {
    let made = || {
        let shape = key.shape();
        let (has, expected) = (witness.values().len(), shape.variables);
        if has != expected {
            return Err(Error::Witness(format!(
                "the witness has {has} values; the key's circuit has {expected} wires"
            )));
        }
        request.check()?;
        let mut host = Vec::new();
        let publics = &witness.values()[1..=shape.publics];
        let mut work = Work { backend, key: &key.core, blinding, request, host: &mut host };
        let proof = proof(&mut work, key, verifier, witness)?;
        backend.synchronize()?;
        let verdict = HostSpan::of(&mut host, "verify", || verifier.verify(publics, &proof));
        request.progress.finished("verify");
        Ok(Made { proof, verdict, ended: Instant::now(), host })
    };
    settled(backend, made())
}

/// The coefficients of a polynomial in vectors, each of which goes on where the one before ends.
type Parts<'a, B> = &'a [<B as tandem_ops::Backend>::Buf<Mont>];

/// sum X^j p_j(X^m) for the m polynomials, as `len` coefficients.
fn joined<B: PlonkBackend<Bn254>>(
    work: &Work<'_, Bn254, B>,
    polynomials: &[Parts<'_, B>],
    len: usize,
) -> Result<B::Buf<Mont>> {
    work.request.enqueue(FIRST, "join", || {
        let (mut sum, step) = (work.zeros(len)?, polynomials.len());
        for (place, parts) in polynomials.iter().enumerate() {
            let mut first = place;
            for part in *parts {
                VecOps::<Bn254>::add_scaled(work.backend, &mut sum, first, step, part, Bn254::mont(Fr::ONE))?;
                first += part.len() * step;
            }
        }
        Ok(sum)
    })
}

/// C0, from the key's polynomials.
fn c0<B: PlonkBackend<Bn254>>(work: &Work<'_, Bn254, B>) -> Result<B::Buf<Mont>> {
    let mut c0 = work.request.enqueue(FIRST, "join", || work.zeros(8 * work.key.shape.domain))?;
    for (number, place) in PLACES.into_iter().enumerate() {
        let polynomial = work.polynomial(number)?;
        work.request.enqueue(FIRST, "join", || {
            VecOps::<Bn254>::add_scaled(work.backend, &mut c0, place, 8, &polynomial, Bn254::mont(Fr::ONE))
        })?;
    }
    Ok(c0)
}

/// A sum of multiples of polynomials with at most 9n coefficients.
fn sum<B: PlonkBackend<Bn254>>(work: &Work<'_, Bn254, B>, terms: &[(&B::Buf<Mont>, Fr)]) -> Result<B::Buf<Mont>> {
    work.request.enqueue(FIRST, "sum", || work.combined(9 * work.key.shape.domain, terms))
}

fn proof<B: PlonkBackend<Bn254>>(
    work: &mut Work<'_, Bn254, B>,
    key: &ProvingKey<B>,
    verifier: &PreparedKey,
    witness: &Witness<Bn254>,
) -> Result<Proof> {
    let n = work.key.shape.domain;
    let field = |value: &Canonical| Bn254::from_canonical(*value).unwrap_or(Fr::ZERO);
    let x: Vec<Fr> = witness.values()[1..=work.key.shape.publics].iter().map(field).collect();
    work.request.progress.start("prove", 4);
    let commit = |work: &Work<'_, Bn254, B>, polynomial: &B::Buf<Mont>, name| -> Result<G1> {
        Ok(work.committed(work.commit([polynomial], &[name])?)?[0])
    };

    // Round 1
    let mut columns = work.columns(witness)?;
    for (number, column) in columns.iter_mut().enumerate() {
        let few = [work.blinding(2 * number + 1), work.blinding(2 * number + 2)];
        work.request.enqueue(FIRST, "blind", || work.add_few(column, n - 2, &few))?;
    }
    let wire = |number: usize| -> Result<Spread<Bn254, B>> {
        Ok(Spread::here(Polynomial::new(work.interpolated(work.copied(&columns[number])?)?, None)))
    };
    let mut wires = [wire(0)?, wire(1)?, wire(2)?];
    let mut on_cosets = column_rows(work, 0..2, &mut wires)?;
    let [a, b, c] = wires.each_ref().map(Spread::coefficients);
    let t0 = quotient_of_gates(work, [a, b, c], &on_cosets, work.publics(&x)?)?;
    let one = std::slice::from_ref::<B::Buf<Mont>>;
    let c1 = joined(work, &[one(a), one(b), one(c), &t0], 8 * n)?;
    drop(t0);
    let committing = work.commit([&c1], &["MSM C1"])?;
    // No challenge is needed for the third coset.
    on_cosets.extend(column_rows(work, 2..COSETS, &mut wires)?);
    let [a, b, c] = wires.each_ref().map(Spread::coefficients);
    let p1: G1 = work.committed(committing)?[0];

    // Round 2
    let mut at = Challenges::first(&key.verifying, &x, &p1);
    let product = work.grand_product(&columns, at.beta, at.gamma)?;
    drop(columns);
    let of_product = [9, 8, 7].map(|number| work.blinding(number));
    let (z, of_z) = work.blinded(product, &of_product)?;
    let of_z = work.spread(of_z, &of_product)?.arrived(work)?;
    let permuted = Permuted { beta: at.beta, gamma: at.gamma, k: key.verifying.k };
    let [t1, t2] = quotients_of_product(work, [a, b, c], on_cosets, of_z, &permuted)?;
    let c2 = joined(work, &[one(&z), &t1, &t2], 9 * n)?;
    let p2 = commit(work, &c2, "MSM C2")?;

    // Round 3
    at.second(&p2);
    let (xi, xiw) = (at.xi(), at.xi() * verifier.roots().w);
    // Ql, Qr, Qm, Qo, Qc, S1, S2 and S3
    let mut pending = Vec::with_capacity(18);
    for number in [1, 2, 0, 3, 4, 5, 6, 7] {
        pending.extend(work.evaluate([(&*work.polynomial(number)?, xi)])?);
    }
    pending.extend(work.evaluate([a, b, c, &z].map(|polynomial| (polynomial, xi)))?);
    let at_xiw = [&z, &t1[0], &t1[1], &t2[0], &t2[1], &t2[2]].map(|polynomial| (polynomial, xiw));
    pending.extend(work.evaluate(at_xiw)?);
    let mut values = work.evaluated(pending)?;
    let xiwn = xiw.pow([n as u64]);
    let whole = |parts: &[Fr]| parts.iter().rev().fold(Fr::ZERO, |above, part| above * xiwn + part);
    // Z at xi w is the thirteenth, then come the parts of T1 and of T2.
    let of_parts = values.split_off(13);
    values.extend([whole(&of_parts[..2]), whole(&of_parts[2..])]);
    let values: [Fr; 15] = values.try_into().map_err(|_| tandem_ops::Error::invalid(OP, "expected 15 values"))?;
    drop((wires, z, t1, t2));

    // Round 4
    at.third(&values);
    let of_c0 = work.divided(c0(work)?, 8, xi)?;
    let of_c1 = work.divided(work.copied(&c1)?, 4, xi)?;
    let of_c2 = work.divided(work.divided(work.copied(&c2)?, 3, xi)?, 3, xiw)?;
    let f = sum(work, &[(&of_c0, Fr::ONE), (&of_c1, at.alpha), (&of_c2, at.alpha.square())])?;
    drop((of_c0, of_c1, of_c2));
    let w1 = commit(work, &f, "MSM W1")?;

    // Round 5
    at.fourth(&w1);
    let opening = Opening::of(&key.verifying, &verifier.roots(), &x, &values, &at)
        .ok_or_else(|| tandem_ops::Error::invalid(OP, "a challenge that no proof can be made for; make it again"))?;
    let c0 = c0(work)?;
    let mut l = sum(work, &[(&c0, Fr::ONE), (&c1, opening.of_c1), (&c2, opening.of_c2), (&f, -opening.of_w1)])?;
    drop((c0, c1, c2, f));
    work.request.enqueue(FIRST, "sum", || work.add_few(&mut l, 0, &[-opening.value]))?;
    // What is left over is no zero where the witness does not satisfy the circuit; the verifier says so.
    let w2 = commit(work, &work.divided(l, 1, at.y)?, "MSM W2")?;
    let mut evaluations = [Canonical::default(); 16];
    let inverse = opening.divisors.inverse().unwrap_or(Fr::ZERO);
    evaluations.iter_mut().zip(values.iter().chain([&inverse])).for_each(|(to, value)| *to = Bn254::canonical(*value));
    Ok(Proof { points: [p1, p2, w1, w2], evaluations })
}
