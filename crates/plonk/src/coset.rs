//! The quotient, on three cosets of the domain.
//!
//! A polynomial of at most k n coefficients is known from its values on k cosets g w^j H, for w the primitive 4n-th root of unity and g a
//! generator of the field's group. On a coset X^n is the constant (g w^j)^n = g^n i^j, and so Z_H is a constant too: nothing is divided
//! element by element, a polynomial of more than n coefficients is folded to n, and the lanes share the cosets. PLONK's quotient has six
//! coefficients more than three cosets give. They follow from the last ones of its factors.

use crate::key::op;
use crate::polynomial::{invert, powers};
use crate::secret::Secret;
use crate::{PlonkBackend, Request, Result};
use ark_ff::{FftField, Field};
use std::marker::PhantomData;
use tandem_ops::{memory, Buffer, Coset, Curve, Direction, Lane, Mont, Ntt, Pending, VecOps};

/// Cosets of the domain that the quotient is computed on.
pub(crate) const COSETS: usize = 3;
/// Polynomials that a coset has the values of.
pub(crate) const COSET_VALUES: usize = 11;
/// Coefficients that PLONK's quotient has beyond 3n.
pub(crate) const ABOVE: usize = 6;

/// What a coset needs of a key: values of its polynomials there.
pub(crate) struct CosetKey<C: Curve, B: PlonkBackend<C>> {
    lane: Lane,
    /// By what the domain is multiplied.
    shift: C::Fr,
    /// Qm, Ql, Qr, Qo, Qc, S1, S2, S3, L1, X and 1.
    pub(crate) values: Vec<B::Buf<Mont>>,
    /// Takes values to those at w X, for w the domain's root of unity: the next row's.
    next: B::Map,
}

/// The primitive 4n-th root of unity.
fn root<C: Curve>(domain: usize) -> tandem_ops::Result<C::Fr> {
    C::root_of_unity(domain.ilog2() + 2)
        .ok_or_else(|| tandem_ops::Error::invalid("quotient", format!("a domain of {domain} rows")))
}

/// The values of a key's polynomials on all cosets, which the lanes take in turn.
pub(crate) fn cosets<C: Curve, B: PlonkBackend<C>>(
    backend: &B,
    domain: usize,
    polynomials: &[B::Buf<Mont>],
) -> Result<Vec<CosetKey<C, B>>> {
    let w = root::<C>(domain)?;
    let rows = powers(C::root_of_unity(domain.ilog2()).unwrap_or(C::Fr::ONE), domain);
    // Rows are fewer than 2^32.
    let next: Vec<u32> = (1..domain as u32).chain([0]).collect();
    let one = memory::filled("load key", domain, C::mont(C::Fr::ONE))?;
    let coset = |j: usize| {
        let lane = Lane(j % backend.lanes());
        let shift = C::Fr::GENERATOR * w.pow([j as u64]);
        let to_values = op(Direction::Forward, Coset::Shift(C::mont(shift)));
        let mut values = Vec::with_capacity(COSET_VALUES);
        for polynomial in polynomials {
            let mut own = backend.copy(polynomial, 0..domain, lane)?;
            Ntt::<C>::ntt(backend, &mut own, to_values)?;
            values.push(own);
        }
        // L1 = (X^n - 1) / (n (X - 1)), where X^n is the same everywhere.
        let factor =
            (shift.pow([domain as u64]) - C::Fr::ONE) * C::Fr::from(domain as u64).inverse().unwrap_or(C::Fr::ONE);
        let mut l1: Vec<C::Fr> = rows.iter().map(|row| shift * row - C::Fr::ONE).collect();
        invert(&mut l1);
        let l1: Vec<Mont> = l1.into_iter().map(|inverse| C::mont(factor * inverse)).collect();
        let x: Vec<Mont> = rows.iter().map(|row| C::mont(shift * row)).collect();
        for of_row in [&l1, &x, &one] {
            values.push(backend.upload(lane, of_row)?);
        }
        Ok(CosetKey { lane, shift, values, next: backend.load_map(lane, &next, domain)? })
    };
    (0..COSETS).map(coset).collect()
}

/// What the permutation is evaluated with.
pub(crate) struct Permuted<F> {
    pub(crate) beta: F,
    pub(crate) gamma: F,
    /// k1 and k2.
    pub(crate) k: [F; 2],
}

/// What a coset needs of a PLONK proof.
pub(crate) struct Columns<'a, F> {
    /// A, B and C, with their blinding.
    pub(crate) columns: [&'a [F]; 3],
    /// Z, with its blinding.
    pub(crate) z: &'a [F],
    pub(crate) publics: &'a Publics<F>,
    pub(crate) permuted: Permuted<F>,
    /// The last [`ABOVE`] coefficients of S1, S2 and S3.
    pub(crate) sigma: &'a [Vec<F>; 3],
}

/// The polynomial of the public values: - sum x_i L_i.
pub(crate) enum Publics<F> {
    /// So many times L1: one public value at most.
    First(F),
    /// Its coefficients.
    Coefficients(Vec<Mont>),
}

impl<C: Curve, B: PlonkBackend<C>> CosetKey<C, B> {
    /// What X^n is.
    fn xn(&self) -> C::Fr {
        self.shift.pow([self.values[0].len() as u64])
    }

    /// Values of a polynomial.
    fn values(&self, backend: &B, polynomial: &[C::Fr]) -> tandem_ops::Result<B::Buf<Mont>> {
        let (n, xn) = (self.values[0].len(), self.xn());
        let mut folded = Secret::made("quotient", n, 0, |i| C::mont(polynomial[i]))?;
        for (i, c) in polynomial[n..].iter().enumerate() {
            folded[i] = C::mont(polynomial[i] + xn * c);
        }
        let mut values = backend.upload(self.lane, &folded)?;
        Ntt::<C>::ntt(backend, &mut values, op(Direction::Forward, Coset::Shift(C::mont(self.shift))))?;
        Ok(values)
    }

    /// Values of polynomials on this coset.
    fn transformed<const N: usize>(
        &self,
        backend: &B,
        polynomials: [&[C::Fr]; N],
        request: &Request<'_>,
    ) -> Result<[B::Buf<Mont>; N]> {
        let transform = |p: &[C::Fr]| request.enqueue(self.lane, "coset NTT", || self.values(backend, p));
        let values = polynomials.into_iter().map(transform).collect::<Result<Vec<_>>>()?;
        values.try_into().map_err(|_| tandem_ops::Error::invalid("quotient", "a polynomial is missing").into())
    }

    /// Values of the polynomial of the public values.
    fn publics(&self, backend: &B, publics: &Publics<C::Fr>, request: &Request<'_>) -> Result<B::Buf<Mont>> {
        let publics = match publics {
            Publics::First(factor) => {
                let [.., l1, _, _] = &self.values[..] else { return Err(incomplete().into()) };
                return Ok(self.vectors(backend).scaled(l1, *factor)?);
            }
            Publics::Coefficients(publics) => publics,
        };
        request.enqueue(self.lane, "coset NTT", || {
            let mut values = backend.upload(self.lane, publics)?;
            Ntt::<C>::ntt(backend, &mut values, op(Direction::Forward, Coset::Shift(C::mont(self.shift))))?;
            Ok(values)
        })
    }

    /// Values of Z, and of Z at w X.
    fn product(&self, backend: &B, z: &[C::Fr], request: &Request<'_>) -> Result<[B::Buf<Mont>; 2]> {
        let [own] = self.transformed(backend, [z], request)?;
        let next = request.enqueue(self.lane, "next rows", || {
            let mut next = backend.alloc(self.lane, own.len())?;
            backend.gather(&self.next, &own, &mut next)?;
            Ok(next)
        })?;
        Ok([own, next])
    }

    fn vectors<'a>(&self, backend: &'a B) -> Vectors<'a, C, B> {
        Vectors { backend, lane: self.lane, n: self.values[0].len(), of: PhantomData }
    }

    /// Qm a b + Ql a + Qr b + Qo c + Qc + PI
    fn gates(
        &self,
        backend: &B,
        [a, b, c]: &[B::Buf<Mont>; 3],
        publics: B::Buf<Mont>,
    ) -> tandem_ops::Result<B::Buf<Mont>> {
        let [qm, ql, qr, qo, qc, ..] = &self.values[..] else { return Err(incomplete()) };
        let v = self.vectors(backend);
        let mut sum = v.product(&[a, b, qm])?;
        for (column, selector) in [(a, ql), (b, qr), (c, qo)] {
            v.add_product(&mut sum, column, selector)?;
        }
        VecOps::<C>::add(backend, &mut sum, qc)?;
        VecOps::<C>::add(backend, &mut sum, &publics)?;
        Ok(sum)
    }

    /// (Z - 1) L1
    fn first_row(&self, backend: &B, z: &B::Buf<Mont>) -> tandem_ops::Result<B::Buf<Mont>> {
        let [.., l1, _, one] = &self.values[..] else { return Err(incomplete()) };
        let mut first = self.vectors(backend).product(&[z])?;
        VecOps::<C>::sub(backend, &mut first, one)?;
        VecOps::<C>::mul(backend, &mut first, l1)?;
        Ok(first)
    }

    /// (a + beta X + gamma)(b + beta k1 X + gamma)(c + beta k2 X + gamma) Z
    /// - (a + beta S1 + gamma)(b + beta S2 + gamma)(c + beta S3 + gamma) Z(w X)
    fn permutation(
        &self,
        backend: &B,
        [a, b, c]: &[B::Buf<Mont>; 3],
        [z, zw]: [B::Buf<Mont>; 2],
        at: &Permuted<C::Fr>,
    ) -> tandem_ops::Result<B::Buf<Mont>> {
        let [_, _, _, _, _, s1, s2, s3, _, x, one] = &self.values[..] else { return Err(incomplete()) };
        let v = self.vectors(backend);
        let gamma = v.scaled(one, at.gamma)?;
        let times = |mut product: B::Buf<Mont>, places: [&B::Buf<Mont>; 3], k: [C::Fr; 3]| {
            for ((column, place), k) in [a, b, c].into_iter().zip(places).zip(k) {
                let mut term = v.scaled(place, at.beta * k)?;
                VecOps::<C>::add(backend, &mut term, column)?;
                VecOps::<C>::add(backend, &mut term, &gamma)?;
                VecOps::<C>::mul(backend, &mut product, &term)?;
            }
            Ok(product)
        };
        let [k1, k2] = at.k;
        let mut sum = times(z, [x, x, x], [C::Fr::ONE, k1, k2])?;
        let next = times(zw, [s1, s2, s3], [C::Fr::ONE; 3])?;
        VecOps::<C>::sub(backend, &mut sum, &next)?;
        Ok(sum)
    }

    /// The coefficients of the remainder of `sum` / Z_H by X^n - (g w^j)^n.
    fn remainder(&self, backend: &B, mut sum: B::Buf<Mont>, request: &Request<'_>) -> Result<B::Buf<Mont>> {
        request.enqueue(self.lane, "inverse coset NTT", || {
            // Z_H is no zero: g^n is no power of i, as g is no power of w.
            let zh = self.xn() - C::Fr::ONE;
            VecOps::<C>::scale(backend, &mut sum, C::mont(zh.inverse().unwrap_or(C::Fr::ONE)))?;
            Ntt::<C>::ntt(backend, &mut sum, op(Direction::Inverse, Coset::Shift(C::mont(self.shift))))
        })?;
        Ok(sum)
    }
}

fn incomplete() -> tandem_ops::Error {
    tandem_ops::Error::invalid("quotient", "a coset without its polynomials")
}

/// Vectors of `n` elements on a lane.
struct Vectors<'a, C: Curve, B: PlonkBackend<C>> {
    backend: &'a B,
    lane: Lane,
    n: usize,
    of: PhantomData<C>,
}

impl<C: Curve, B: PlonkBackend<C>> Vectors<'_, C, B> {
    fn scaled(&self, of: &B::Buf<Mont>, k: C::Fr) -> tandem_ops::Result<B::Buf<Mont>> {
        let mut copy = self.backend.copy(of, 0..self.n, self.lane)?;
        VecOps::<C>::scale(self.backend, &mut copy, C::mont(k))?;
        Ok(copy)
    }

    fn product(&self, factors: &[&B::Buf<Mont>]) -> tandem_ops::Result<B::Buf<Mont>> {
        let mut product = self.backend.copy(factors[0], 0..self.n, self.lane)?;
        for factor in &factors[1..] {
            VecOps::<C>::mul(self.backend, &mut product, factor)?;
        }
        Ok(product)
    }

    fn add_product(&self, sum: &mut B::Buf<Mont>, a: &B::Buf<Mont>, b: &B::Buf<Mont>) -> tandem_ops::Result<()> {
        let product = self.product(&[a, b])?;
        VecOps::<C>::add(self.backend, sum, &product)
    }
}

/// The 3n + 6 coefficients of PLONK's quotient.
pub(crate) fn quotient<C: Curve, B: PlonkBackend<C>>(
    backend: &B,
    cosets: &[CosetKey<C, B>],
    of: &Columns<'_, C::Fr>,
    alpha: C::Fr,
    request: &Request<'_>,
) -> Result<Secret<C::Fr>> {
    let mut remainders = Vec::with_capacity(cosets.len());
    for coset in cosets {
        let columns = coset.transformed(backend, of.columns, request)?;
        let product = coset.product(backend, of.z, request)?;
        let publics = coset.publics(backend, of.publics, request)?;
        let sum = request.enqueue(coset.lane, "quotient", || {
            let mut sum = coset.gates(backend, &columns, publics)?;
            let mut first = coset.first_row(backend, &product[0])?;
            VecOps::<C>::scale(backend, &mut first, C::mont(alpha.square()))?;
            VecOps::<C>::add(backend, &mut sum, &first)?;
            drop(first);
            let mut permutation = coset.permutation(backend, &columns, product, &of.permuted)?;
            VecOps::<C>::scale(backend, &mut permutation, C::mont(alpha))?;
            VecOps::<C>::add(backend, &mut sum, &permutation)?;
            Ok(sum)
        })?;
        remainders.push(backend.download(&coset.remainder(backend, sum, request)?)?);
    }
    assembled(cosets, remainders, &above::<C>(of, alpha), request)
}

/// The last coefficients of PLONK's quotient T, X^3n to X^(3n + 5): those of T Z_H from X^4n on, which the permutation alone reaches. The last
/// coefficients of a product follow from its factors' last ones.
fn above<C: Curve>(of: &Columns<'_, C::Fr>, alpha: C::Fr) -> Vec<C::Fr> {
    let last = |p: &[C::Fr]| -> [C::Fr; ABOVE] { std::array::from_fn(|i| p[p.len() - 1 - i]) };
    let times = |a: [C::Fr; ABOVE], b: [C::Fr; ABOVE]| -> [C::Fr; ABOVE] {
        std::array::from_fn(|i| (0..=i).map(|k| a[k] * b[i - k]).sum())
    };
    let columns = of.columns.map(last);
    let z = last(of.z);
    // Columns have n + 2 coefficients and Z has n + 3: neither beta X nor gamma is among the last ones of n >= 8.
    let row = columns.into_iter().fold(z, times);
    let n = of.z.len() - 3;
    let w = C::root_of_unity(n.ilog2()).unwrap_or(C::Fr::ONE);
    // w^n is 1.
    let next: [C::Fr; ABOVE] = std::array::from_fn(|i| z[i] * w.pow([(n + 2 - i) as u64]));
    let with_sigma = |mut column: [C::Fr; ABOVE], sigma: &[C::Fr]| {
        // S has n coefficients: two fewer.
        column[2..].iter_mut().zip(sigma.iter().rev()).for_each(|(c, s)| *c += of.permuted.beta * s);
        column
    };
    let moved = columns.into_iter().zip(of.sigma).map(|(c, s)| with_sigma(c, s)).fold(next, times);
    (0..ABOVE).rev().map(|i| alpha * (row[i] - moved[i])).collect()
}

/// The 2n coefficients of what the gates say over Z_H: FFLONK's T0. Its columns have n coefficients.
pub(crate) fn quotient_of_gates<C: Curve, B: PlonkBackend<C>>(
    backend: &B,
    cosets: &[CosetKey<C, B>],
    columns: [&[C::Fr]; 3],
    publics: &Publics<C::Fr>,
    request: &Request<'_>,
) -> Result<Secret<C::Fr>> {
    let cosets = &cosets[..2];
    let mut remainders = Vec::with_capacity(cosets.len());
    for coset in cosets {
        let columns = coset.transformed(backend, columns, request)?;
        let publics = coset.publics(backend, publics, request)?;
        let sum = request.enqueue(coset.lane, "quotient", || coset.gates(backend, &columns, publics))?;
        remainders.push(backend.download(&coset.remainder(backend, sum, request)?)?);
    }
    assembled(cosets, remainders, &[], request)
}

/// The coefficients, 2n of (Z - 1) L1 over Z_H and 3n of what the permutation says over Z_H: FFLONK's T1 and T2.
pub(crate) fn quotients_of_product<C: Curve, B: PlonkBackend<C>>(
    backend: &B,
    cosets: &[CosetKey<C, B>],
    columns: [&[C::Fr]; 3],
    z: &[C::Fr],
    permuted: &Permuted<C::Fr>,
    request: &Request<'_>,
) -> Result<[Secret<C::Fr>; 2]> {
    let (mut first, mut second) = (Vec::with_capacity(cosets.len()), Vec::with_capacity(cosets.len()));
    for (number, coset) in cosets.iter().enumerate() {
        let columns = coset.transformed(backend, columns, request)?;
        let product = coset.product(backend, z, request)?;
        if number < 2 {
            let row = request.enqueue(coset.lane, "quotient", || coset.first_row(backend, &product[0]))?;
            first.push(backend.download(&coset.remainder(backend, row, request)?)?);
        }
        let sum =
            request.enqueue(coset.lane, "quotient", || coset.permutation(backend, &columns, product, permuted))?;
        second.push(backend.download(&coset.remainder(backend, sum, request)?)?);
    }
    Ok([assembled(&cosets[..2], first, &[], request)?, assembled(cosets, second, &[], request)?])
}

/// The coefficients of a polynomial, n for each coset, from its remainders there and those that it has `above` these.
fn assembled<C: Curve, B: PlonkBackend<C>>(
    cosets: &[CosetKey<C, B>],
    pending: Vec<Pending<Vec<Mont>>>,
    above: &[C::Fr],
    request: &Request<'_>,
) -> Result<Secret<C::Fr>> {
    let mut remainders = Vec::with_capacity(pending.len());
    for part in pending {
        request.check()?;
        remainders.push(Secret::new(part.wait()?));
    }
    let (n, m) = (cosets[0].values[0].len(), cosets.len());
    // With T = T_0 + T_1 X^n + .. + T_(m-1) X^((m-1)n) + above X^mn the remainder of a coset on which X^n is c is the sum of T_k c^k and above c^m.
    let constants: Vec<C::Fr> = cosets.iter().map(CosetKey::xn).collect();
    for (remainder, c) in remainders.iter_mut().zip(&constants) {
        let high = c.pow([m as u64]);
        remainder.iter_mut().zip(above).for_each(|(r, a)| *r = C::mont(C::from_mont(*r) - high * a));
    }
    let factors = interpolation(&constants);
    let coefficient = |at: usize| -> C::Fr {
        let (k, i) = (at / n, at % n);
        remainders.iter().zip(&factors).map(|(r, of)| C::from_mont(r[i]) * of[k]).sum()
    };
    let mut coefficients = Secret::made("quotient", m * n, above.len(), coefficient)?;
    coefficients.extend_from_slice(above);
    Ok(coefficients)
}

/// For each point the coefficients of the polynomial that is 1 there and 0 at the others.
fn interpolation<F: Field>(points: &[F]) -> Vec<Vec<F>> {
    let of = |(j, own): (usize, &F)| {
        let mut polynomial = vec![F::ONE];
        for (_, other) in points.iter().enumerate().filter(|(l, _)| *l != j) {
            let scale = (*own - other).inverse().unwrap_or(F::ONE);
            let below = polynomial.iter().map(|c| *c * -*other).chain([F::ZERO]);
            let shifted = [F::ZERO].into_iter().chain(polynomial.iter().copied());
            polynomial = below.zip(shifted).map(|(a, b)| (a + b) * scale).collect();
        }
        polynomial
    };
    points.iter().enumerate().map(of).collect()
}
