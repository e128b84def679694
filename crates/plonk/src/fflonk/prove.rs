//! The proof.
//!
//! With R_i the polynomial that interpolates C_i where it is opened, W1 commits to
//! F = (C0 - R0) / (X^8 - xi) + alpha (C1 - R1) / (X^4 - xi) + alpha^2 (C2 - R2) / ((X^3 - xi)(X^3 - xi w)).
//! C_i is sum X^j p_j(X^m), and so each quotient is sum X^j q_j(X^m), where q_j is p_j less its value at xi over X - xi: polynomials
//! are divided one by one, and no R_i is interpolated.

use super::verify::{Challenges, Opening};
use super::{Fr, PreparedKey, Proof, ProvingKey, G1};
use crate::coset::{quotient_of_gates, quotients_of_product, Permuted};
use crate::polynomial::{divide, evaluate};
use crate::rounds::Rounds;
use crate::secret::Secret;
use crate::{Blinding, HostSpan, PlonkBackend, Request, Result, Witness};
use ark_ff::{AdditiveGroup, Field};
use rayon::prelude::*;
use std::time::Instant;
use tandem_ops::{Bn254, Canonical, Curve};
use tandem_proof::{settled, Error};

/// A proof that has been verified, and how the host's time was spent.
pub type Made = tandem_proof::Made<Proof>;

type Vector = Secret<Fr>;

const OP: &str = "prove";

/// Adds `k` times the polynomial p(X^stride) X^place.
fn add_spread(sum: &mut [Fr], stride: usize, place: usize, p: &[Fr], k: Fr) {
    sum.par_chunks_mut(stride).with_min_len(1 << 10).zip(p).for_each(|(chunk, c)| chunk[place] += k * c);
}

/// sum X^j p_j(X^m) for the m polynomials, as `len` coefficients.
fn joined(parts: &[&[Fr]], len: usize) -> Result<Vector> {
    let mut sum = Secret::made(OP, len, 0, |_| Fr::ZERO)?;
    for (place, part) in parts.iter().enumerate() {
        add_spread(&mut sum, parts.len(), place, part, Fr::ONE);
    }
    Ok(sum)
}

/// The quotient of a polynomial by X - x for each x, what is left over each time aside.
fn divided(polynomial: &[Fr], by: &[Fr]) -> Result<Vector> {
    let mut quotient = Secret::made(OP, polynomial.len(), 0, |i| polynomial[i])?;
    for x in by {
        _ = divide(&mut quotient, *x);
    }
    Ok(quotient)
}

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
        let rounds = Rounds::new(backend, &key.core, blinding, request, &mut host);
        let proof = prove(rounds, (backend, key, request), verifier, witness, publics)?;
        backend.synchronize()?;
        let verdict = HostSpan::of(&mut host, "verify", || verifier.verify(publics, &proof));
        request.progress.finished("verify");
        Ok(Made { proof, verdict, ended: Instant::now(), host })
    };
    settled(backend, made())
}

fn prove<B: PlonkBackend<Bn254>>(
    mut rounds: Rounds<'_, Bn254, B>,
    (backend, key, request): (&B, &ProvingKey<B>, &Request<'_>),
    verifier: &PreparedKey,
    witness: &Witness<Bn254>,
    publics: &[Canonical],
) -> Result<Proof> {
    let (n, core) = (key.shape().domain, &key.core);
    let field = |value: &Canonical| Bn254::from_canonical(*value).unwrap_or(Fr::ZERO);
    let x: Vec<Fr> = publics.iter().map(field).collect();
    request.progress.start("prove", 4);

    // Round 1
    let signals = rounds.span("signals", |own| own.signals(witness))?;
    let mut columns = [rounds.column(0, &signals)?, rounds.column(1, &signals)?, rounds.column(2, &signals)?];
    drop(signals);
    for (number, column) in columns.iter_mut().enumerate() {
        column[n - 2] = rounds.blinding(2 * number + 1);
        column[n - 1] = rounds.blinding(2 * number + 2);
    }
    let [a, b, c] = [0, 1, 2].map(|number| rounds.interpolate(&columns[number], number));
    let (a, b, c) = (a?, b?, c?);
    let wires: [&[Fr]; 3] = [&a, &b, &c];
    let t0 = quotient_of_gates(backend, &core.cosets, wires, &rounds.publics(&x)?, request)?;
    let of_c1: [&[Fr]; 4] = [&a, &b, &c, &t0[..2 * n]];
    let c1 = rounds.span("join", |_| joined(&of_c1, 8 * n))?;
    let commit = |rounds: &Rounds<'_, Bn254, B>, polynomial: &[Fr], name| -> Result<G1> {
        Ok(rounds.commit(&[polynomial], &[name])?[0])
    };
    let p1 = commit(&rounds, &c1, "MSM C1")?;

    // Round 2
    let mut at = Challenges::first(&key.verifying, &x, &p1);
    let product = rounds
        .span("grand product", |own| own.grand_product([&columns[0], &columns[1], &columns[2]], at.beta, at.gamma))?;
    drop(columns);
    let mut z = rounds.interpolate(&product, 3)?;
    drop(product);
    let [b7, b8, b9] = [7, 8, 9].map(|number| rounds.blinding(number));
    rounds.blind(&mut z, &[b9, b8, b7]);
    let permuted = Permuted { beta: at.beta, gamma: at.gamma, k: key.verifying.k };
    let [t1, t2] = quotients_of_product(backend, &core.cosets, wires, &z, &permuted, request)?;
    let of_c2: [&[Fr]; 3] = [&z, &t1[..n + 3], &t2[..3 * n]];
    let c2 = rounds.span("join", |_| joined(&of_c2, 9 * n))?;
    let p2 = commit(&rounds, &c2, "MSM C2")?;

    // Round 3
    at.second(&p2);
    let (xi, xiw) = (at.xi(), at.xi() * verifier.roots().w);
    let values = rounds.span("evaluations", |_| {
        let q = |place: usize| evaluate(&key.of_c0[place], xi);
        let [a, b, c] = wires.map(|p| evaluate(p, xi));
        let [zw, t1w, t2w] = of_c2.map(|p| evaluate(p, xiw));
        Ok([q(0), q(1), q(3), q(2), q(4), q(5), q(6), q(7), a, b, c, evaluate(&z, xi), zw, t1w, t2w])
    })?;

    // Round 4
    at.third(&values);
    let f = rounds.span("division", |_| {
        let mut f = Secret::made(OP, 9 * n, 0, |_| Fr::ZERO)?;
        for (place, p) in key.of_c0.iter().enumerate() {
            add_spread(&mut f, 8, place, &divided(p, &[xi])?, Fr::ONE);
        }
        for (place, p) in of_c1.iter().enumerate() {
            add_spread(&mut f, 4, place, &divided(p, &[xi])?, at.alpha);
        }
        for (place, p) in of_c2.iter().enumerate() {
            add_spread(&mut f, 3, place, &divided(p, &[xi, xiw])?, at.alpha.square());
        }
        Ok(f)
    })?;
    let w1 = commit(&rounds, &f, "MSM W1")?;

    // Round 5
    at.fourth(&w1);
    let opening = Opening::of(&key.verifying, &verifier.roots(), &x, &values, &at)
        .ok_or_else(|| tandem_ops::Error::invalid(OP, "a challenge that no proof can be made for; make it again"))?;
    let l = rounds.span("division", |_| {
        let mut l = Secret::made(OP, 9 * n, 0, |_| Fr::ZERO)?;
        for (place, p) in key.of_c0.iter().enumerate() {
            add_spread(&mut l, 8, place, p, Fr::ONE);
        }
        add_spread(&mut l, 1, 0, &c1, opening.of_c1);
        add_spread(&mut l, 1, 0, &c2, opening.of_c2);
        add_spread(&mut l, 1, 0, &f, -opening.of_w1);
        l[0] -= opening.value;
        // What is left over is no zero where the witness does not satisfy the circuit; the verifier says so.
        _ = divide(&mut l, at.y);
        Ok(l)
    })?;
    let w2 = commit(&rounds, &l, "MSM W2")?;
    let mut evaluations = [Canonical::default(); 16];
    let inverse = opening.divisors.inverse().unwrap_or(Fr::ZERO);
    evaluations.iter_mut().zip(values.iter().chain([&inverse])).for_each(|(to, value)| *to = Bn254::canonical(*value));
    Ok(Proof { points: [p1, p2, w1, w2], evaluations })
}
