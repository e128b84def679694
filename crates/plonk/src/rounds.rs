//! The five rounds of a PLONK proof.

use crate::coset::{quotient, Columns, Permuted, Quotient};
use crate::key::FIRST;
use crate::polynomial::lagrange;
use crate::prove::Proof;
use crate::transcript::Transcript;
use crate::work::Work;
use crate::{PlonkBackend, ProvingKey, Result, Witness};
use ark_ff::{AdditiveGroup, Field};
use tandem_ops::{Canonical, Curve, Mont};

/// Sums over the powers of tau, by what they commit to.
const SUMS: [&str; 9] = ["MSM A", "MSM B", "MSM C", "MSM Z", "MSM T1", "MSM T2", "MSM T3", "MSM Wxi", "MSM Wxiw"];

const OP: &str = "prove";

/// Challenges and evaluations.
struct At<'a, F> {
    publics: &'a [F],
    beta: F,
    gamma: F,
    alpha: F,
    xi: F,
    v: F,
    evaluations: [F; 6],
}

pub(crate) fn proof<C: Curve, B: PlonkBackend<C>>(
    work: &mut Work<'_, C, B>,
    of: &ProvingKey<C, B>,
    witness: &Witness<C>,
) -> Result<Proof<C>> {
    let field = |value: &Canonical| C::from_canonical(*value).unwrap_or(C::Fr::ZERO);
    let publics: Vec<C::Fr> = witness.values()[1..=of.core.shape.publics].iter().map(field).collect();
    work.request.progress.start("prove", SUMS.len() as u64);

    // Round 1: A, B and C.
    let b = |i| work.blinding.b(i);
    let blinding = [[b(2), b(1)], [b(4), b(3)], [b(6), b(5)]];
    let columns = work.columns(witness)?;
    let mut polynomials = Vec::with_capacity(4);
    for (column, blinding) in columns.iter().zip(&blinding) {
        polynomials.push(work.blinded(column, blinding)?);
    }
    let mut points = work.commit(&polynomials.iter().collect::<Vec<_>>(), &SUMS[..3])?;

    // Round 2: Z.
    let vk = &of.verifying;
    let beta: C::Fr = Transcript::default()
        .points::<C>(&vk.selectors)
        .points::<C>(&vk.permutation)
        .scalars(&publics)
        .points::<C>(&points)
        .challenge();
    let gamma: C::Fr = Transcript::default().scalars(&[beta]).challenge();
    let product = work.grand_product(&columns, beta, gamma)?;
    drop(columns);
    polynomials.push(work.blinded(&product, &[b(9), b(8), b(7)])?);
    drop(product);
    points.extend(work.commit(&[&polynomials[3]], &SUMS[3..4])?);

    // Round 3: T1, T2 and T3.
    let alpha: C::Fr = Transcript::default().scalars(&[beta, gamma]).points::<C>(&points[3..]).challenge();
    let parts = parts(work, &publics, &polynomials, [beta, gamma, alpha])?;
    points.extend(work.commit(&parts.each_ref(), &SUMS[4..7])?);

    // Round 4: the values of A, B, C, S1 and S2 at xi, and of Z at xi w.
    let xi: C::Fr = Transcript::default().scalars(&[alpha]).points::<C>(&points[4..]).challenge();
    let [a, b, c, z] = [0, 1, 2, 3].map(|i| &polynomials[i]);
    let [s1, s2] = [5, 6].map(|i| &of.core.polynomials[i]);
    let xiw = xi * work.root();
    let evaluations = work.evaluations([(a, xi), (b, xi), (c, xi), (s1, xi), (s2, xi), (z, xiw)])?;

    // Round 5: Wxi and Wxiw. What is left over is no zero where the witness does not satisfy the circuit; the verifier says so.
    let v: C::Fr = Transcript::default().scalars(&[xi]).scalars(&evaluations).challenge();
    let at = At { publics: &publics, beta, gamma, alpha, xi, v, evaluations };
    let wxi = work.divided(linearisation(work, &at, &polynomials, &parts)?, 1, xi)?;
    drop(parts);
    let z = polynomials.pop().ok_or_else(|| tandem_ops::Error::invalid(OP, "expected Z"))?;
    let wxiw = work.divided(z, 1, xiw)?;
    points.extend(work.commit(&[&wxi, &wxiw], &SUMS[7..])?);
    let points = points.try_into().map_err(|_| tandem_ops::Error::invalid(OP, "expected nine commitments"))?;
    Ok(Proof { points, evaluations: evaluations.map(C::canonical) })
}

/// T1, T2 and T3, where the quotient is T1 + X^n T2 + X^2n T3. They are blinded so that the sum stays.
fn parts<C: Curve, B: PlonkBackend<C>>(
    work: &Work<'_, C, B>,
    publics: &[C::Fr],
    polynomials: &[B::Buf<Mont>],
    [beta, gamma, alpha]: [C::Fr; 3],
) -> Result<[B::Buf<Mont>; 3]> {
    let n = work.key.shape.domain;
    let publics = work.publics(publics)?;
    let quotient_of = Columns {
        columns: [&polynomials[0], &polynomials[1], &polynomials[2]],
        z: &polynomials[3],
        publics: &publics,
        permuted: Permuted { beta, gamma, k: work.key.k },
    };
    let Quotient { parts, above } = quotient(work, &quotient_of, alpha)?;
    let (b10, b11) = (work.blinding(10), work.blinding(11));
    let ends: [&[C::Fr]; 3] = [&[b10], &[b11], &above];
    let mut blinded = Vec::with_capacity(3);
    for ((part, below), end) in parts.iter().zip([C::Fr::ZERO, b10, b11]).zip(ends) {
        blinded.push(work.request.enqueue(FIRST, "blind", || {
            let mut longer = work.combined(n + end.len(), &[(part, C::Fr::ONE)])?;
            work.add_few(&mut longer, 0, &[-below])?;
            work.add_few(&mut longer, n, end)?;
            Ok(longer)
        })?);
    }
    blinded.try_into().map_err(|_| tandem_ops::Error::invalid(OP, "expected three parts").into())
}

/// What Wxi is the quotient of: the linearisation, and v, v^2, .. times A, B, C, S1 and S2, each less its value at xi.
fn linearisation<C: Curve, B: PlonkBackend<C>>(
    work: &Work<'_, C, B>,
    at: &At<'_, C::Fr>,
    polynomials: &[B::Buf<Mont>],
    parts: &[B::Buf<Mont>; 3],
) -> Result<B::Buf<Mont>> {
    let n = work.key.shape.domain;
    let [k1, k2] = work.key.k;
    let &At { beta, gamma, alpha, xi, v, evaluations: [a, b, c, s1, s2, zw], .. } = at;
    let xin = xi.pow([n as u64]);
    let zh = xin - C::Fr::ONE;
    let (l1, pi) = lagrange(at.publics, xi, work.root(), n);
    let p = (a + beta * s1 + gamma) * (b + beta * s2 + gamma);
    let [v1, v2, v3, v4, v5] = [1, 2, 3, 4, 5].map(|i| v.pow([i]));
    let of_key = [a * b, a, b, c, C::Fr::ONE, v4, v5, -alpha * beta * p * zw];
    let of_z = alpha * (a + beta * xi + gamma) * (b + beta * k1 * xi + gamma) * (c + beta * k2 * xi + gamma)
        + alpha.square() * l1;
    let of_proof = [v1, v2, v3, of_z];
    let of_parts = [-zh, -zh * xin, -zh * xin.square()];
    let constant = pi - alpha * p * zw * (c + gamma) - alpha.square() * l1;
    let values = v1 * a + v2 * b + v3 * c + v4 * s1 + v5 * s2;
    work.request.enqueue(FIRST, "linearisation", || {
        let key = work.key.polynomials.iter().zip(of_key);
        let terms: Vec<_> = key.chain(polynomials.iter().zip(of_proof)).chain(parts.iter().zip(of_parts)).collect();
        let mut sum = work.combined(n + 6, &terms)?;
        work.add_few(&mut sum, 0, &[constant - values])?;
        Ok(sum)
    })
}
