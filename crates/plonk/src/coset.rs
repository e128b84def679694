//! The quotient, on four cosets of the domain.
//!
//! The quotient has fewer than 4n coefficients, so its values on the cosets g w^j H say all of it, for w the primitive 4n-th root of unity,
//! g a generator of the field's group and j from 0 to 3. On a coset X^n is the constant (g w^j)^n = g^n i^j, and so Z_H is a constant too:
//! nothing is divided element by element, a polynomial of more than n coefficients is folded to n, and the lanes share the cosets.

use crate::key::op;
use crate::{PlonkBackend, Request, Result};
use ark_ff::{AdditiveGroup, FftField, Field};
use rayon::prelude::*;
use std::marker::PhantomData;
use tandem_ops::{memory, Buffer, Coset, Curve, Direction, Lane, Mont, Ntt, Pending, VecOps};
use zeroize::Zeroizing;

/// Cosets of the domain that the quotient is computed on.
pub(crate) const COSETS: usize = 4;
/// Polynomials that a coset has the values of.
pub(crate) const COSET_VALUES: usize = 11;

/// What a coset needs of a key: values of its polynomials there.
pub(crate) struct CosetKey<C: Curve, B: PlonkBackend<C>> {
    lane: Lane,
    /// By what the domain is multiplied.
    shift: C::Fr,
    /// Qm, Ql, Qr, Qo, Qc, S1, S2, S3, L1, X and 1.
    pub(crate) values: Vec<B::Buf<Mont>>,
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
    let n = C::Fr::from(domain as u64);
    // L1 = 1/n (1 + X + .. + X^(n-1))
    let l1 = memory::filled("load key", domain, C::mont(n.inverse().unwrap_or(C::Fr::ONE)))?;
    let mut x = memory::filled("load key", domain, Mont::default())?;
    x[1] = C::mont(C::Fr::ONE);
    let one = memory::filled("load key", domain, C::mont(C::Fr::ONE))?;
    let coset = |j: usize| {
        let lane = Lane(j % backend.lanes());
        let shift = C::Fr::GENERATOR * w.pow([j as u64]);
        let to_values = op(Direction::Forward, Coset::Shift(C::mont(shift)));
        let mut values = Vec::with_capacity(polynomials.len() + 3);
        for polynomial in polynomials {
            let mut own = backend.copy(polynomial, 0..domain, lane)?;
            Ntt::<C>::ntt(backend, &mut own, to_values)?;
            values.push(own);
        }
        for coefficients in [&l1, &x] {
            let mut own = backend.upload(lane, coefficients)?;
            Ntt::<C>::ntt(backend, &mut own, to_values)?;
            values.push(own);
        }
        values.push(backend.upload(lane, &one)?);
        Ok(CosetKey { lane, shift, values })
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
    /// The polynomial of the public values.
    pub(crate) publics: &'a [Mont],
    pub(crate) permuted: Permuted<F>,
}

impl<C: Curve, B: PlonkBackend<C>> CosetKey<C, B> {
    /// Values of a polynomial where the domain is multiplied by `shift`; of both of this coset's shifts X^n is the same constant.
    fn values(&self, backend: &B, polynomial: &[C::Fr], shift: C::Fr) -> tandem_ops::Result<B::Buf<Mont>> {
        let n = self.values[0].len();
        let xn = self.shift.pow([n as u64]);
        let mut folded = Zeroizing::new(memory::reserve("quotient", n)?);
        folded.extend(polynomial[..n].iter().map(|c| C::mont(*c)));
        for (i, c) in polynomial[n..].iter().enumerate() {
            folded[i] = C::mont(polynomial[i] + xn * c);
        }
        let mut values = backend.upload(self.lane, &folded)?;
        Ntt::<C>::ntt(backend, &mut values, op(Direction::Forward, Coset::Shift(C::mont(shift))))?;
        Ok(values)
    }

    /// Values of polynomials on this coset.
    fn transformed<const N: usize>(
        &self,
        backend: &B,
        polynomials: [&[C::Fr]; N],
        request: &Request<'_>,
    ) -> Result<[B::Buf<Mont>; N]> {
        let transform = |p: &[C::Fr]| request.enqueue(self.lane, "coset NTT", || self.values(backend, p, self.shift));
        let values = polynomials.into_iter().map(transform).collect::<Result<Vec<_>>>()?;
        values.try_into().map_err(|_| tandem_ops::Error::invalid("quotient", "a polynomial is missing").into())
    }

    /// Values of the polynomial of the public values.
    fn publics(&self, backend: &B, publics: &[Mont], request: &Request<'_>) -> Result<B::Buf<Mont>> {
        request.enqueue(self.lane, "coset NTT", || {
            let mut values = backend.upload(self.lane, publics)?;
            Ntt::<C>::ntt(backend, &mut values, op(Direction::Forward, Coset::Shift(C::mont(self.shift))))?;
            Ok(values)
        })
    }

    /// Values of Z, and of Z at w X.
    fn product(&self, backend: &B, z: &[C::Fr], request: &Request<'_>) -> Result<[B::Buf<Mont>; 2]> {
        let w = C::root_of_unity(self.values[0].len().ilog2()).unwrap_or(C::Fr::ONE);
        let [own] = self.transformed(backend, [z], request)?;
        let next = request.enqueue(self.lane, "coset NTT", || self.values(backend, z, self.shift * w))?;
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
            let zh = self.shift.pow([self.values[0].len() as u64]) - C::Fr::ONE;
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

/// The 4n coefficients of PLONK's quotient.
pub(crate) fn quotient<C: Curve, B: PlonkBackend<C>>(
    backend: &B,
    cosets: &[CosetKey<C, B>],
    of: &Columns<'_, C::Fr>,
    alpha: C::Fr,
    request: &Request<'_>,
) -> Result<Zeroizing<Vec<C::Fr>>> {
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
    assembled::<C>(remainders, request)
}

/// The 4n coefficients of what the gates say over Z_H: FFLONK's T0.
pub(crate) fn quotient_of_gates<C: Curve, B: PlonkBackend<C>>(
    backend: &B,
    cosets: &[CosetKey<C, B>],
    columns: [&[C::Fr]; 3],
    publics: &[Mont],
    request: &Request<'_>,
) -> Result<Zeroizing<Vec<C::Fr>>> {
    let mut remainders = Vec::with_capacity(cosets.len());
    for coset in cosets {
        let columns = coset.transformed(backend, columns, request)?;
        let publics = coset.publics(backend, publics, request)?;
        let sum = request.enqueue(coset.lane, "quotient", || coset.gates(backend, &columns, publics))?;
        remainders.push(backend.download(&coset.remainder(backend, sum, request)?)?);
    }
    assembled::<C>(remainders, request)
}

/// The 4n coefficients of (Z - 1) L1 over Z_H, and of what the permutation says over Z_H: FFLONK's T1 and T2.
pub(crate) fn quotients_of_product<C: Curve, B: PlonkBackend<C>>(
    backend: &B,
    cosets: &[CosetKey<C, B>],
    columns: [&[C::Fr]; 3],
    z: &[C::Fr],
    permuted: &Permuted<C::Fr>,
    request: &Request<'_>,
) -> Result<[Zeroizing<Vec<C::Fr>>; 2]> {
    let (mut first, mut second) = (Vec::with_capacity(cosets.len()), Vec::with_capacity(cosets.len()));
    for coset in cosets {
        let columns = coset.transformed(backend, columns, request)?;
        let product = coset.product(backend, z, request)?;
        let row = request.enqueue(coset.lane, "quotient", || coset.first_row(backend, &product[0]))?;
        first.push(backend.download(&coset.remainder(backend, row, request)?)?);
        let sum =
            request.enqueue(coset.lane, "quotient", || coset.permutation(backend, &columns, product, permuted))?;
        second.push(backend.download(&coset.remainder(backend, sum, request)?)?);
    }
    Ok([assembled::<C>(first, request)?, assembled::<C>(second, request)?])
}

/// The 4n coefficients of a polynomial, from its remainders on the four cosets.
fn assembled<C: Curve>(pending: Vec<Pending<Vec<Mont>>>, request: &Request<'_>) -> Result<Zeroizing<Vec<C::Fr>>> {
    let mut remainders = Vec::with_capacity(pending.len());
    for part in pending {
        request.check()?;
        remainders.push(Zeroizing::new(part.wait()?));
    }
    let [r0, r1, r2, r3] = &remainders[..] else {
        return Err(tandem_ops::Error::invalid("quotient", "expected four cosets").into());
    };
    let n = r0.len();
    // With T = T0 + T1 X^n + T2 X^2n + T3 X^3n the remainder of coset j is the sum of T_k (g^n i^j)^k: an inverse transform of
    // four elements, and powers of g^n.
    let i = root::<C>(n)?.pow([n as u64]);
    let quarter = C::Fr::from(4u64).inverse().unwrap_or(C::Fr::ONE);
    let gn = C::Fr::GENERATOR.pow([n as u64]).inverse().unwrap_or(C::Fr::ONE);
    let i_inverse = i.inverse().unwrap_or(C::Fr::ONE);
    let factors: Vec<[C::Fr; 4]> =
        (0..4u64).map(|k| std::array::from_fn(|j| quarter * gn.pow([k]) * i_inverse.pow([k * j as u64]))).collect();
    let mut coefficients = Zeroizing::new(memory::filled("quotient", 4 * n, C::Fr::ZERO)?);
    for (part, factors) in coefficients.chunks_mut(n).zip(&factors) {
        part.par_iter_mut().with_min_len(1 << 10).enumerate().for_each(|(m, to)| {
            let values = [r0[m], r1[m], r2[m], r3[m]];
            *to = values.iter().zip(factors).map(|(value, factor)| C::from_mont(*value) * factor).sum();
        });
    }
    Ok(coefficients)
}
