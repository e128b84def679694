//! The five rounds of a PLONK proof.

use crate::coset::{column_rows, product_rows, quotient, ColumnRows, Columns, Permuted, Quotient, ABOVE, COSETS};
use crate::key::FIRST;
use crate::polynomial::lagrange;
use crate::prove::Proof;
use crate::transcript::Transcript;
use crate::verify::AheadWith;
use crate::work::Work;
use crate::{PlonkBackend, PreparedKey, ProvingKey, Result, Witness, P1};
use ark_ff::{AdditiveGroup, Field};
use tandem_ops::{Backend, Buffer, Canonical, Curve, Mont};

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

/// The proof, and what `verifier` has found of it while the openings were made; `u` joins them there.
///
/// The lanes are never without work but where there is none that needs no challenge: values on cosets are computed while commitments are
/// waited for, and Z is opened while the values at xi are.
pub(crate) fn proof<C: Curve, B: PlonkBackend<C>>(
    work: &mut Work<'_, C, B>,
    of: &ProvingKey<C, B>,
    verifier: &PreparedKey<C>,
    (witness, u): (&Witness<C>, C::Fr),
) -> Result<(Proof<C>, AheadWith<C>)> {
    let field = |value: &Canonical| C::from_canonical(*value).unwrap_or(C::Fr::ZERO);
    let of_witness = &witness.values()[1..=of.core.shape.publics];
    let publics: Vec<C::Fr> = of_witness.iter().map(field).collect();
    work.request.progress.start("prove", SUMS.len() as u64);

    // Round 1: A, B and C.
    let columns = work.columns(witness)?;
    let blinding = [[2, 1], [4, 3], [6, 5]].map(|numbers| numbers.map(|number| work.blinding(number)));
    // What leaves the first lane is dealt before it is told more: sums by values first, which wait for nothing else.
    let values = work.column_values(&columns, &blinding)?;
    let by_values = work.deal_values(values.as_ref())?;
    let homes = work.to_homes(&columns)?;
    let by_values = by_values.map(|dealt| work.sums(dealt, &SUMS[..3])).transpose()?;
    drop(values);
    let [a, b, c] = work.arrived(homes.into())?;
    let [(a, of_a), (b, of_b), (c, of_c)] =
        [work.blinded(a, &blinding[0])?, work.blinded(b, &blinding[1])?, work.blinded(c, &blinding[2])?];
    let dealt = if by_values.is_none() { Some(work.deal([&a, &b, &c])?) } else { None };
    let of_columns = [(of_a, 0), (of_b, 1), (of_c, 2)].map(|(of, number)| work.spread(of, &blinding[number]));
    let committing = match (by_values, dealt) {
        (Some(committing), _) => committing,
        (None, Some(dealt)) => work.sums(dealt, &SUMS[..3])?,
        (None, None) => return Err(tandem_ops::Error::invalid(OP, "columns without commitments").into()),
    };
    let home = work.sent_home([a, b, c])?;
    let [of_a, of_b, of_c] = of_columns;
    let on_cosets =
        column_rows(work, 0..COSETS, &mut [of_a?.arrived(work)?, of_b?.arrived(work)?, of_c?.arrived(work)?])?;
    let mut points = work.committed(committing)?;

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
    let of_product = [9, 8, 7].map(|number| work.blinding(number));
    let (z, of_z) = work.blinded(product, &of_product)?;
    let dealt = work.deal([&z])?;
    let of_z = work.spread(of_z, &of_product)?;
    let committing = work.sums(dealt, &SUMS[3..4])?;
    let of_z = of_z.arrived(work)?;
    let rows = on_cosets.into_iter().zip(product_rows(work, of_z)?).map(|(columns, z)| columns.zip(z)).collect();
    points.extend(work.committed(committing)?);

    // Round 3: T1, T2 and T3.
    let [a, b, c] = work.arrived(home)?;
    let alpha: C::Fr = Transcript::default().scalars(&[beta, gamma]).points::<C>(&points[3..]).challenge();
    let quotient_of = Columns {
        columns: [&a, &b, &c],
        z: &z,
        rows,
        publics: work.publics(&publics)?,
        permuted: Permuted { beta, gamma, k: work.key.k },
    };
    let (parts, used) = parts(work, quotient_of, alpha)?;
    let committing = work.commit(parts.each_ref(), &SUMS[4..7])?;
    let parts = work.sent_home(parts)?;
    drop(used);
    points.extend(work.committed(committing)?);

    // Round 4: the values of A, B, C, S1 and S2 at xi, and of Z at xi w. What opens Z needs no more than that.
    let xi: C::Fr = Transcript::default().scalars(&[alpha]).points::<C>(&points[4..]).challenge();
    let [s1, s2] = [work.polynomial(5)?, work.polynomial(6)?];
    let mut pending = work.evaluate([&a, &b, &c, &s1, &s2].map(|polynomial| (polynomial, xi)))?;
    drop((s1, s2));
    let (zw, wxiw) = work.opened(work.copied(&z)?, xi * work.root())?;
    pending.push(zw);
    let committing = work.commit([&wxiw], &SUMS[8..])?;
    let evaluations = work.evaluated(pending)?;
    let count = |_| tandem_ops::Error::invalid(OP, "expected nine commitments and six values");
    let evaluations: [C::Fr; 6] = evaluations.try_into().map_err(|_| count(()))?;

    // Round 5: Wxi and Wxiw. What is left over is no zero where the witness does not satisfy the circuit; the verifier says so.
    let v: C::Fr = Transcript::default().scalars(&[xi]).scalars(&evaluations).challenge();
    let at = At { publics: &publics, beta, gamma, alpha, xi, v, evaluations };
    let parts = work.arrived(parts)?;
    let wxi = work.divided(linearisation(work, &at, [&a, &b, &c, &z], &parts)?, 1, xi)?;
    let last = work.commit([&wxi], &SUMS[7..8])?;
    // They are overwritten behind the sum.
    drop((a, b, c, z, parts));
    let evaluations = evaluations.map(C::canonical);
    let before: [P1<C>; 7] = points.as_slice().try_into().map_err(|_| count(()))?;
    let begun = work.span("verify", |_| Ok(verifier.begin(of_witness, &before, &evaluations)))?;
    let wxiw: P1<C> = work.committed(committing)?[0];
    let ahead = work.span("verify", |_| Ok(begun.and_then(|begun| verifier.ahead(&begun, &wxiw, u))))?;
    points.extend(work.committed(last)?);
    points.push(wxiw);
    let points = points.try_into().map_err(|_| count(()))?;
    Ok((Proof { points, evaluations }, ahead))
}

/// What the quotient was made of.
type Used<B> = Vec<(ColumnRows<B>, <B as Backend>::Buf<Mont>)>;

/// The polynomials of commitments that sum up to the quotient, of one length, and what it was made of.
type Parts<B> = ([<B as Backend>::Buf<Mont>; 3], Used<B>);

/// T1, T2 and T3, where the quotient is T1 + X^n T2 + X^2n T3. They are blinded so that the sum stays.
fn parts<C: Curve, B: PlonkBackend<C>>(work: &Work<'_, C, B>, of: Columns<'_, C, B>, alpha: C::Fr) -> Result<Parts<B>> {
    let n = work.key.shape.domain;
    let Quotient { mut parts, above, rows } = quotient(work, of, alpha, ABOVE)?;
    let (b10, b11) = (work.blinding(10), work.blinding(11));
    let ends: [&[C::Fr]; 3] = [&[b10], &[b11], &above];
    for ((part, below), end) in parts.iter_mut().zip([C::Fr::ZERO, b10, b11]).zip(ends) {
        work.request.enqueue(part.lane(), "blind", || {
            work.add_few(part, 0, &[-below])?;
            work.add_few(part, n, end)
        })?;
    }
    let parts = parts.try_into().map_err(|_| tandem_ops::Error::invalid(OP, "expected three parts"))?;
    Ok((parts, rows))
}

/// What Wxi is the quotient of: the linearisation, and v, v^2, .. times A, B, C, S1 and S2, each less its value at xi.
fn linearisation<C: Curve, B: PlonkBackend<C>>(
    work: &Work<'_, C, B>,
    at: &At<'_, C::Fr>,
    polynomials: [&B::Buf<Mont>; 4],
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
    let there = work.key.polynomials.there();
    let mut sum = work.request.enqueue(FIRST, "linearisation", || {
        let key = there.iter().zip(of_key);
        let terms: Vec<_> =
            key.chain(polynomials.into_iter().zip(of_proof)).chain(parts.iter().zip(of_parts)).collect();
        let mut sum = work.combined(n + 6, &terms)?;
        work.add_few(&mut sum, 0, &[constant - values])?;
        Ok(sum)
    })?;
    // Those that are not there come one by one.
    if there.is_empty() {
        work.add_polynomials(&mut sum, &of_key)?;
    }
    Ok(sum)
}
