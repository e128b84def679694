//! The five rounds of a proof.
//!
//! Polynomials are vectors of coefficients on the host, which blinds, evaluates and divides them; lanes transform them and sum over the
//! powers of tau. What belongs to the witness is wiped when it is dropped.

use crate::coset::{quotient, Columns, Permuted, Publics};
use crate::key::{op, Core};
use crate::polynomial::{add_scaled, divide, evaluate, invert, powers, running_product};
use crate::prove::Proof;
use crate::secret::Secret;
use crate::transcript::Transcript;
use crate::{Blinding, HostSpan, PlonkBackend, ProvingKey, Request, Result, Witness, P1};
use ark_ec::CurveGroup;
use ark_ff::{AdditiveGroup, Field};
use rayon::prelude::*;
use tandem_ops::{memory, Canonical, Coset, Curve, Direction, Group, Lane, Mont, Ntt, VecOps};

/// A polynomial, or values.
type Vector<F> = Secret<F>;

/// A proof under way.
pub(crate) struct Rounds<'a, C: Curve, B: PlonkBackend<C>> {
    backend: &'a B,
    key: &'a Core<C, B>,
    blinding: &'a Blinding<C>,
    request: &'a Request<'a>,
    host: &'a mut Vec<HostSpan>,
}

/// Sums over the powers of tau, by what they commit to.
const SUMS: [&str; 9] = ["MSM A", "MSM B", "MSM C", "MSM Z", "MSM T1", "MSM T2", "MSM T3", "MSM Wxi", "MSM Wxiw"];

const OP: &str = "prove";

impl<'a, C: Curve, B: PlonkBackend<C>> Rounds<'a, C, B> {
    pub(crate) fn new(
        backend: &'a B,
        key: &'a Core<C, B>,
        blinding: &'a Blinding<C>,
        request: &'a Request<'a>,
        host: &'a mut Vec<HostSpan>,
    ) -> Self {
        Self { backend, key, blinding, request, host }
    }

    /// The lane that a transform runs on: they take turns.
    fn lane(&self, turn: usize) -> Lane {
        Lane(turn % self.backend.lanes())
    }

    /// The values of all signals, signal 0 as zero, those of the additions behind those of the witness.
    pub(crate) fn signals(&self, witness: &Witness<C>) -> Result<Vector<C::Fr>> {
        let shape = self.key.shape;
        // They have been checked to be below the modulus.
        let value = |i: usize| C::from_canonical(witness.values()[i]).unwrap_or(C::Fr::ZERO);
        let mut signals = Secret::made(OP, witness.values().len(), shape.additions, value)?;
        signals[0] = C::Fr::ZERO;
        signals.reserve_exact(shape.additions);
        for addition in &self.key.additions {
            let [one, other] = addition.signals.map(|signal| signals[signal as usize]);
            let [k, l] = addition.factors.map(C::from_mont);
            signals.push(k * one + l * other);
        }
        Ok(signals)
    }

    /// The signals in a column, zeros in the rows behind the gates.
    pub(crate) fn column(&self, number: usize, signals: &[C::Fr]) -> Result<Vector<C::Fr>> {
        let map = &self.key.maps[number];
        let value = |i: usize| map.get(i).map_or(C::Fr::ZERO, |signal| signals[*signal as usize]);
        Ok(Secret::made(OP, self.key.shape.domain, 0, value)?)
    }

    /// The polynomial with these values on the domain.
    pub(crate) fn interpolate(&self, values: &[C::Fr], turn: usize) -> Result<Vector<C::Fr>> {
        let wire = Secret::made(OP, values.len(), 0, |i| C::mont(values[i]))?;
        let lane = self.lane(turn);
        let coefficients = self.request.enqueue(lane, "inverse NTT", || {
            let mut values = self.backend.upload(lane, &wire)?;
            Ntt::<C>::ntt(self.backend, &mut values, op(Direction::Inverse, Coset::Subgroup))?;
            self.backend.download(&values)
        })?;
        let coefficients = Secret::new(coefficients.wait()?);
        // Room for what blinding adds, so that no copy is left behind.
        Ok(Secret::made(OP, coefficients.len(), 8, |i| C::from_mont(coefficients[i]))?)
    }

    /// Adds `blinding` times X^n - 1; its first coefficient first.
    pub(crate) fn blind(&self, polynomial: &mut Vec<C::Fr>, blinding: &[C::Fr]) {
        for (c, b) in polynomial.iter_mut().zip(blinding) {
            *c -= b;
        }
        polynomial.extend_from_slice(blinding);
    }

    /// A random scalar of the proof, by its number.
    pub(crate) fn blinding(&self, number: usize) -> C::Fr {
        self.blinding.b(number)
    }

    /// Commitments to polynomials, each by a sum of this name.
    pub(crate) fn commit(&self, polynomials: &[&[C::Fr]], names: &[&'static str]) -> Result<Vec<P1<C>>> {
        let pending = polynomials.iter().zip(names).map(|(polynomial, &sum)| {
            let scalar = |i: usize| polynomial.get(i).map_or(Canonical::default(), |c| C::canonical(*c));
            let scalars = Secret::made(OP, self.key.powers, 0, scalar)?;
            let sum = self.request.enqueue(Lane(0), sum, || {
                let scalars = self.key.sums.upload(self.backend, &scalars)?;
                self.key.sums.sum(self.backend, &scalars)
            })?;
            Ok(sum)
        });
        let pending = pending.collect::<Result<Vec<_>>>()?;
        let mut sums = Vec::with_capacity(pending.len());
        for (sum, name) in pending.into_iter().zip(names) {
            self.request.check()?;
            sums.push(sum.wait()?);
            self.request.progress.finished(name);
            self.request.progress.advance(1);
        }
        let affine = <C::G1 as Group>::Ark::normalize_batch(&sums);
        Ok(affine.iter().map(C::G1::from_ark).collect())
    }

    /// The values of the grand product: the first is 1, each next one is the last times what its row gives.
    pub(crate) fn grand_product(&self, columns: [&[C::Fr]; 3], beta: C::Fr, gamma: C::Fr) -> Result<Vector<C::Fr>> {
        let n = self.key.shape.domain;
        let rows = powers(C::root_of_unity(n.ilog2()).unwrap_or(C::Fr::ONE), n);
        let [k1, k2] = self.key.k;
        let [a, b, c] = columns;
        let [s1, s2, s3] = &self.key.sigma;
        let below =
            |i: usize| (a[i] + beta * s1[i] + gamma) * (b[i] + beta * s2[i] + gamma) * (c[i] + beta * s3[i] + gamma);
        let mut factors = Secret::made(OP, n, 0, below)?;
        invert(&mut factors);
        factors.par_iter_mut().with_min_len(1 << 10).enumerate().for_each(|(i, factor)| {
            let x = beta * rows[i];
            *factor *= (a[i] + x + gamma) * (b[i] + x * k1 + gamma) * (c[i] + x * k2 + gamma);
        });
        // The product of all is 1, unless the permutation does not belong to the gates, or a device erred when it was loaded: the verifier
        // notices, and which of them it was shows when the proof is made again.
        running_product(&mut factors);
        Ok(factors)
    }

    pub(crate) fn prove(&mut self, of: &ProvingKey<C, B>, witness: &Witness<C>) -> Result<Proof<C>> {
        let field = |value: &Canonical| C::from_canonical(*value).unwrap_or(C::Fr::ZERO);
        let publics: Vec<C::Fr> = witness.values()[1..=self.key.shape.publics].iter().map(field).collect();
        self.request.progress.start("prove", SUMS.len() as u64);
        let (columns, mut polynomials, mut points) = self.columns(witness)?;

        let vk = &of.verifying;
        let beta: C::Fr = Transcript::default()
            .points::<C>(&vk.selectors)
            .points::<C>(&vk.permutation)
            .scalars(&publics)
            .points::<C>(&points)
            .challenge();
        let gamma: C::Fr = Transcript::default().scalars(&[beta]).challenge();
        polynomials.push(self.product(columns, beta, gamma)?);
        points.extend(self.commit(&[&polynomials[3]], &SUMS[3..4])?);

        let alpha: C::Fr = Transcript::default().scalars(&[beta, gamma]).points::<C>(&points[3..]).challenge();
        let parts = self.quotient(&publics, &polynomials, [beta, gamma, alpha])?;
        points.extend(self.commit(&[&parts[0], &parts[1], &parts[2]], &SUMS[4..7])?);

        let xi: C::Fr = Transcript::default().scalars(&[alpha]).points::<C>(&points[4..]).challenge();
        let evaluations = self.evaluations(&of.permutation, &polynomials, xi)?;
        let v: C::Fr = Transcript::default().scalars(&[xi]).scalars(&evaluations).challenge();
        let at = At { publics: &publics, beta, gamma, alpha, xi, v, evaluations };
        let openings = self.openings(&at, polynomials, parts)?;
        points.extend(self.commit(&[&openings[0], &openings[1]], &SUMS[7..])?);
        let points = points.try_into().map_err(|_| tandem_ops::Error::invalid(OP, "expected nine commitments"))?;
        Ok(Proof { points, evaluations: evaluations.map(C::canonical) })
    }

    /// Round 1: the columns, A, B and C, and their commitments.
    fn columns(&mut self, witness: &Witness<C>) -> Result<Round1<C>> {
        let b = |i| self.blinding.b(i);
        let signals = self.span("signals", |own| own.signals(witness))?;
        let columns = [self.column(0, &signals)?, self.column(1, &signals)?, self.column(2, &signals)?];
        drop(signals);
        let mut polynomials = Vec::with_capacity(4);
        for (number, column) in columns.iter().enumerate() {
            let mut polynomial = self.interpolate(column, number)?;
            self.blind(&mut polynomial, &[b(2 * number + 2), b(2 * number + 1)]);
            polynomials.push(polynomial);
        }
        let first: Vec<&[C::Fr]> = polynomials.iter().map(|p| p.as_slice()).collect();
        let points = self.commit(&first, &SUMS[..3])?;
        Ok((columns, polynomials, points))
    }

    /// Round 2: Z.
    fn product(&mut self, columns: [Vector<C::Fr>; 3], beta: C::Fr, gamma: C::Fr) -> Result<Vector<C::Fr>> {
        let b = |i| self.blinding.b(i);
        let product =
            self.span("grand product", |own| own.grand_product([&columns[0], &columns[1], &columns[2]], beta, gamma))?;
        drop(columns);
        let mut z = self.interpolate(&product, 3)?;
        self.blind(&mut z, &[b(9), b(8), b(7)]);
        Ok(z)
    }

    /// Round 3: T1, T2 and T3, where the quotient is T1 + X^n T2 + X^2n T3.
    fn quotient(
        &mut self,
        publics: &[C::Fr],
        polynomials: &[Vector<C::Fr>],
        [beta, gamma, alpha]: [C::Fr; 3],
    ) -> Result<[Vector<C::Fr>; 3]> {
        let (n, b) = (self.key.shape.domain, |i| self.blinding.b(i));
        let pi = self.publics(publics)?;
        let quotient_of = Columns {
            columns: [&polynomials[0], &polynomials[1], &polynomials[2]],
            z: &polynomials[3],
            publics: &pi,
            permuted: Permuted { beta, gamma, k: self.key.k },
            sigma: &self.key.last,
        };
        let t = quotient(self.backend, &self.key.cosets, &quotient_of, alpha, self.request)?;
        // The parts are blinded so that the sum stays.
        let part = |coefficients: &[C::Fr], below: C::Fr, above: Option<C::Fr>| -> Result<Vector<C::Fr>> {
            let mut part = Secret::made(OP, coefficients.len(), 1, |i| coefficients[i])?;
            part[0] -= below;
            part.extend(above);
            Ok(part)
        };
        Ok([
            part(&t[..n], C::Fr::ZERO, Some(b(10)))?,
            part(&t[n..2 * n], b(10), Some(b(11)))?,
            part(&t[2 * n..3 * n + 6], b(11), None)?,
        ])
    }

    /// Round 4: the values of A, B, C, S1 and S2 at xi, and of Z at xi w.
    fn evaluations(
        &mut self,
        [s1, s2]: &[Vec<C::Fr>; 2],
        polynomials: &[Vector<C::Fr>],
        xi: C::Fr,
    ) -> Result<[C::Fr; 6]> {
        let w = C::root_of_unity(self.key.shape.domain.ilog2()).unwrap_or(C::Fr::ONE);
        self.span("evaluations", |_| {
            let [a, b, c, z] = [0, 1, 2, 3].map(|i| &polynomials[i]);
            Ok([
                evaluate(a, xi),
                evaluate(b, xi),
                evaluate(c, xi),
                evaluate(s1, xi),
                evaluate(s2, xi),
                evaluate(z, xi * w),
            ])
        })
    }

    /// Round 5: Wxi and Wxiw.
    fn openings(
        &mut self,
        at: &At<'_, C::Fr>,
        mut polynomials: Vec<Vector<C::Fr>>,
        parts: [Vector<C::Fr>; 3],
    ) -> Result<[Vector<C::Fr>; 2]> {
        let w = C::root_of_unity(self.key.shape.domain.ilog2()).unwrap_or(C::Fr::ONE);
        let mut wxi = self.linearisation(at, &polynomials, &parts)?;
        drop(parts);
        // What is left over is no zero where the witness does not satisfy the circuit; the verifier says so.
        _ = self.span("division", |_| Ok(divide(&mut wxi, at.xi)))?;
        let mut wxiw = polynomials.pop().unwrap_or_default();
        drop(polynomials);
        _ = self.span("division", |_| Ok(divide(&mut wxiw, at.xi * w)))?;
        Ok([wxi, wxiw])
    }

    /// Work of the host with its time.
    pub(crate) fn span<T>(&mut self, name: &'static str, work: impl FnOnce(&Self) -> Result<T>) -> Result<T> {
        self.request.check()?;
        let begun = std::time::Instant::now();
        let result = work(self);
        self.host.push(HostSpan { name, begun, seconds: begun.elapsed().as_secs_f64() });
        result
    }

    /// The polynomial of the public values.
    pub(crate) fn publics(&self, publics: &[C::Fr]) -> Result<Publics<C::Fr>> {
        if publics.len() <= 1 {
            return Ok(Publics::First(-publics.iter().sum::<C::Fr>()));
        }
        let mut values = memory::filled(OP, self.key.shape.domain, C::Fr::ZERO)?;
        values.iter_mut().zip(publics).for_each(|(value, x)| *value = -*x);
        let coefficients = self.interpolate(&values, 0)?;
        Ok(Publics::Coefficients(coefficients.par_iter().with_min_len(1 << 10).map(|c| C::mont(*c)).collect()))
    }

    /// What Wxi is the quotient of: the linearisation, and v, v^2, .. times A, B, C, S1 and S2, each less its value at xi.
    fn linearisation(
        &mut self,
        at: &At<'_, C::Fr>,
        polynomials: &[Vector<C::Fr>],
        parts: &[Vector<C::Fr>; 3],
    ) -> Result<Vector<C::Fr>> {
        let (n, backend) = (self.key.shape.domain, self.backend);
        let [k1, k2] = self.key.k;
        let &At { beta, gamma, alpha, xi, v, evaluations: [a, b, c, s1, s2, zw], .. } = at;
        let xin = xi.pow([n as u64]);
        let zh = xin - C::Fr::ONE;
        let w = C::root_of_unity(n.ilog2()).unwrap_or(C::Fr::ONE);
        let (l1, pi) = lagrange(at.publics, xi, w, n);
        let p = (a + beta * s1 + gamma) * (b + beta * s2 + gamma);
        let [v1, v2, v3, v4, v5] = [1, 2, 3, 4, 5].map(|i| v.pow([i]));
        // What lies on the device: selectors and permutation.
        let factors = [a * b, a, b, c, C::Fr::ONE, v4, v5, -alpha * beta * p * zw];
        let sum = self.request.enqueue(Lane(0), "linearisation", || {
            let mut sum = backend.alloc::<Mont>(Lane(0), n)?;
            for (polynomial, factor) in self.key.polynomials.iter().zip(factors) {
                let mut term = backend.copy(polynomial, 0..n, Lane(0))?;
                VecOps::<C>::scale(backend, &mut term, C::mont(factor))?;
                VecOps::<C>::add(backend, &mut sum, &term)?;
            }
            backend.download(&sum)
        })?;
        let sum = Secret::new(sum.wait()?);
        self.span("linearisation", |_| {
            let coefficient = |i: usize| sum.get(i).map_or(C::Fr::ZERO, |c| C::from_mont(*c));
            let mut r = Secret::made(OP, n + 6, 0, coefficient)?;
            let of_z = alpha * (a + beta * xi + gamma) * (b + beta * k1 * xi + gamma) * (c + beta * k2 * xi + gamma)
                + alpha.square() * l1;
            let others = [
                (&polynomials[3], of_z),
                (&parts[0], -zh),
                (&parts[1], -zh * xin),
                (&parts[2], -zh * xin.square()),
                (&polynomials[0], v1),
                (&polynomials[1], v2),
                (&polynomials[2], v3),
            ];
            for (polynomial, factor) in others {
                add_scaled(&mut r, polynomial, factor);
            }
            r[0] += pi - alpha * p * zw * (c + gamma) - alpha.square() * l1;
            r[0] -= v1 * a + v2 * b + v3 * c + v4 * s1 + v5 * s2;
            Ok(r)
        })
    }
}

/// Columns of values, polynomials A, B and C, and their commitments.
type Round1<C> = ([Vector<<C as Curve>::Fr>; 3], Vec<Vector<<C as Curve>::Fr>>, Vec<P1<C>>);

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

/// L1 and the polynomial of the public values at `xi`, for a domain of `n` powers of `w`.
pub(crate) fn lagrange<F: Field>(publics: &[F], xi: F, w: F, n: usize) -> (F, F) {
    // L_i = w^i (xi^n - 1) / (n (xi - w^i))
    let rows = powers(w, publics.len().max(1));
    let mut values: Vec<F> = rows.iter().map(|row| xi - row).collect();
    invert(&mut values);
    let factor = (xi.pow([n as u64]) - F::ONE) * F::from(n as u64).inverse().unwrap_or(F::ONE);
    values.iter_mut().zip(rows).for_each(|(value, row)| *value *= factor * row);
    (values[0], -publics.iter().zip(&values).map(|(x, l)| *x * l).sum::<F>())
}
