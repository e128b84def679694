//! The quotient, on three cosets of the domain.
//!
//! A polynomial of at most k n coefficients is known from its values on k cosets g w^j H, for w the primitive 4n-th root of unity and g a
//! generator of the field's group. On a coset X^n is the constant (g w^j)^n = g^n i^j, and so Z_H is a constant too: nothing is divided
//! element by element, a polynomial of more than n coefficients is folded to n, and the lanes share the cosets. PLONK's quotient has six
//! coefficients more than three cosets give. They follow from the last ones of its factors.
//!
//! Values on a coset are in bit-reversed order, which transforms reach soonest: all that is done with them is done row by row.

use crate::key::{op, FIRST};
use crate::polynomial::{invert, powers};
use crate::polynomials::{l1_of, x_of, Value};
use crate::spread::Spread;
use crate::stay::Stay;
use crate::work::Work;
use crate::{PlonkBackend, Result};
use ark_ff::{AdditiveGroup, FftField, Field};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;
use tandem_ops::backend::COPY_TO_LANE;
use tandem_ops::{
    Backend, Buffer, Coset, Curve, Direction, Lane, Mont, Ntt, NttOp, NttProducts, Order, PlonkRows, QuotientAt,
    QuotientRows, VecOps,
};

/// Cosets of the domain that the quotient is computed on.
pub(crate) const COSETS: usize = 3;
/// Polynomials that a coset has the values of.
pub(crate) const COSET_VALUES: usize = 10;
/// Vectors of as many elements as rows that a coset takes of a key: those values, and powers.
pub(crate) const COSET_VECTORS: usize = COSET_VALUES + 1;
/// Coefficients that PLONK's quotient has beyond 3n.
pub(crate) const ABOVE: usize = 6;

/// Numbers of L1 and X among the values on a coset, behind the key's polynomials.
const L1: usize = 8;
const X: usize = 9;

/// What a coset needs of a key: values of its polynomials there.
pub(crate) struct CosetKey<C: Curve, B: PlonkBackend<C>> {
    lane: Lane,
    domain: usize,
    /// By what the domain is multiplied.
    pub(crate) shift: C::Fr,
    /// What stays; else each proof makes it.
    there: Option<There<B>>,
    /// Takes values to those at w X, for w the domain's root of unity: the next row's.
    next: Arc<B::Map>,
}

/// What stays of a coset.
struct There<B: Backend> {
    /// Values of Qm, Ql, Qr, Qo, Qc, S1, S2, S3, L1 and X.
    values: Vec<B::Buf<Mont>>,
    /// Powers of the shift: coefficients times these are transformed as over the domain itself.
    powers: B::Buf<Mont>,
}

/// The primitive 4n-th root of unity.
fn root<C: Curve>(domain: usize) -> tandem_ops::Result<C::Fr> {
    C::root_of_unity(domain.ilog2() + 2)
        .ok_or_else(|| tandem_ops::Error::invalid("quotient", format!("a domain of {domain} rows")))
}

/// The values of a key's polynomials on all cosets, each on its lane, where they stay.
pub(crate) fn cosets<C: Curve, B: PlonkBackend<C>>(
    backend: &B,
    domain: usize,
    polynomials: &[B::Buf<Mont>],
    lanes: [Lane; COSETS],
    stay: Stay,
) -> Result<Vec<CosetKey<C, B>>> {
    let w = root::<C>(domain)?;
    let shift = |j: usize| C::Fr::GENERATOR * w.pow([j as u64]);
    // Where the row behind each row lies. Rows are fewer than 2^32.
    let last = domain as u32 - 1;
    let place = |row: u32| row.reverse_bits().unbounded_shr(u32::BITS - domain.ilog2());
    let next: Vec<u32> = (0..=last).into_par_iter().map(|at| place((place(at) + 1) & last)).collect();
    let mut maps: Vec<(Lane, Arc<B::Map>)> = Vec::with_capacity(COSETS);
    for lane in lanes {
        let of_lane = maps.iter().find(|(of, _)| *of == lane).map(|(_, map)| map.clone());
        let map = match of_lane {
            Some(map) => map,
            None => Arc::new(backend.load_map(lane, &next, domain)?),
        };
        maps.push((lane, map));
    }
    drop(next);
    let rows = match stay.cosets {
        true => reversed(&powers(C::root_of_unity(domain.ilog2()).unwrap_or(C::Fr::ONE), domain)),
        false => Vec::new(),
    };
    let coset = |(j, (lane, next)): (usize, (Lane, Arc<B::Map>))| {
        let there = match stay.cosets {
            true => Some(values_there::<C, B>(backend, (lane, shift(j)), polynomials, &rows)?),
            false => None,
        };
        Ok(CosetKey { lane, domain, shift: shift(j), there, next })
    };
    maps.into_iter().enumerate().map(coset).collect()
}

/// What stays of the coset of this `shift`, for a domain of these `rows`.
fn values_there<C: Curve, B: PlonkBackend<C>>(
    backend: &B,
    (lane, shift): (Lane, C::Fr),
    polynomials: &[B::Buf<Mont>],
    rows: &[C::Fr],
) -> Result<There<B>> {
    let domain = rows.len();
    let of_shift: Vec<Mont> = powers(shift, domain).into_par_iter().map(C::mont).collect();
    let of_shift = backend.upload(lane, &of_shift)?;
    let mut values = Vec::with_capacity(COSET_VALUES);
    for polynomial in polynomials {
        let own = backend.copy(polynomial, 0..domain, lane)?;
        values.push(NttProducts::<C>::ntt_of_product(backend, &own, &of_shift, TO_ROWS)?);
    }
    // L1 = (X^n - 1) / (n (X - 1)), where X^n is the same everywhere.
    let factor = (shift.pow([domain as u64]) - C::Fr::ONE) * C::Fr::from(domain as u64).inverse().unwrap_or(C::Fr::ONE);
    let mut l1: Vec<C::Fr> = rows.par_iter().map(|row| shift * row - C::Fr::ONE).collect();
    invert(&mut l1);
    let l1: Vec<Mont> = l1.into_par_iter().map(|inverse| C::mont(factor * inverse)).collect();
    let x: Vec<Mont> = rows.par_iter().map(|row| C::mont(shift * row)).collect();
    for of_row in [&l1, &x] {
        values.push(backend.upload(lane, of_row)?);
    }
    Ok(There { values, powers: of_shift })
}

/// What the permutation is evaluated with.
pub(crate) struct Permuted<F> {
    pub(crate) beta: F,
    pub(crate) gamma: F,
    /// k1 and k2.
    pub(crate) k: [F; 2],
}

/// Values of A, B and C on a coset.
pub(crate) type ColumnRows<B> = [<B as Backend>::Buf<Mont>; 3];

/// Values of A, B and C, and of Z, on a coset.
pub(crate) type AllRows<B> = (ColumnRows<B>, <B as Backend>::Buf<Mont>);

/// What the polynomial of the public values is on a coset: so many times L1, or these values.
type PublicRows<C, B> = (<C as Curve>::Fr, Option<<B as Backend>::Buf<Mont>>);

/// What the quotient needs of a PLONK proof. Polynomials are vectors of coefficients on the first lane.
pub(crate) struct Columns<'a, C: Curve, B: PlonkBackend<C>> {
    /// A, B and C, with their blinding.
    pub(crate) columns: [&'a B::Buf<Mont>; 3],
    /// Z, with its blinding.
    pub(crate) z: &'a B::Buf<Mont>,
    /// Their values on each coset, where they are made ahead.
    pub(crate) rows: Vec<Option<AllRows<B>>>,
    pub(crate) publics: Publics<C, B>,
    pub(crate) permuted: Permuted<C::Fr>,
}

/// The polynomial of the public values: - sum x_i L_i.
pub(crate) enum Publics<C: Curve, B: PlonkBackend<C>> {
    /// So many times L1: one public value at most.
    First(C::Fr),
    /// As many coefficients as there are rows.
    Many(Spread<C, B>),
}

impl<C: Curve, B: PlonkBackend<C>> CosetKey<C, B> {
    /// What X^n is.
    fn xn(&self) -> C::Fr {
        self.shift.pow([self.domain as u64])
    }

    /// Values of one of the key's polynomials, of L1 or of X.
    fn of_key(&self, work: &Work<'_, C, B>, number: usize) -> Result<Value<'_, B>> {
        if let Some(there) = &self.there {
            return Ok(Value::There(there.values.get(number).ok_or_else(incomplete)?));
        }
        let made = match number {
            L1 => work
                .request
                .enqueue(self.lane, "coset of key", || l1_of::<C, B>(work.backend, self.domain, self.lane))?,
            X => work
                .request
                .enqueue(self.lane, "coset of key", || x_of::<C, B>(work.backend, self.domain, self.lane))?,
            _ => work.own_polynomial(number, self.lane)?,
        };
        Ok(Value::Made(self.transformed(work, "coset of key", made)?))
    }

    /// The values here of the polynomial with these n coefficients, in their place.
    fn transformed(&self, work: &Work<'_, C, B>, stage: &'static str, mut of: B::Buf<Mont>) -> Result<B::Buf<Mont>> {
        work.request.enqueue(self.lane, stage, || {
            let coset = Coset::Shift(C::mont(self.shift));
            Ntt::<C>::ntt(work.backend, &mut of, NttOp { coset, ..TO_ROWS })?;
            Ok(of)
        })
    }

    /// Values of a polynomial of n or a few more coefficients on the first lane.
    fn values_of(&self, work: &Work<'_, C, B>, of: &B::Buf<Mont>) -> Result<B::Buf<Mont>> {
        let n = self.domain;
        let left = work.request.enqueue(FIRST, "coset NTT", || {
            let mut left = work.backend.copy(of, 0..n, FIRST)?;
            if of.len() > n {
                let above = work.backend.copy(of, n..of.len(), FIRST)?;
                VecOps::<C>::add_scaled(work.backend, &mut left, 0, 1, &above, C::mont(self.xn()))?;
            }
            Ok(left)
        })?;
        let own = if self.lane == FIRST { left } else { work.request.copied(work.backend, &left, 0..n, self.lane)? };
        self.transformed(work, "coset NTT", own)
    }

    /// Values of A, B and C, of which these are the coefficients.
    fn columns_of(&self, work: &Work<'_, C, B>, [a, b, c]: [&B::Buf<Mont>; 3]) -> Result<ColumnRows<B>> {
        Ok([self.values_of(work, a)?, self.values_of(work, b)?, self.values_of(work, c)?])
    }

    /// All its vectors.
    #[cfg(test)]
    pub(crate) fn vectors(&self) -> impl Iterator<Item = &B::Buf<Mont>> {
        self.there.iter().flat_map(|there| there.values.iter().chain([&there.powers]))
    }

    /// Values of a polynomial on this coset.
    fn values(&self, work: &Work<'_, C, B>, polynomial: &mut Spread<C, B>) -> Result<B::Buf<Mont>> {
        let polynomial = polynomial.on(self.lane);
        let Some(There { powers, .. }) = &self.there else {
            let left = polynomial.left(work, self.xn())?;
            let own = work.request.copied(work.backend, left, 0..left.len(), self.lane)?;
            return self.transformed(work, "coset NTT", own);
        };
        let transformed = |left: &B::Buf<Mont>| NttProducts::<C>::ntt_of_product(work.backend, left, powers, TO_ROWS);
        if self.lane == polynomial.lane() {
            return work.request.enqueue(self.lane, "coset NTT", || transformed(polynomial.left(work, self.xn())?));
        }
        let left = polynomial.left(work, self.xn())?;
        let left = work.request.copied(work.backend, left, 0..left.len(), self.lane)?;
        work.request.enqueue(self.lane, "coset NTT", || transformed(&left))
    }

    /// Values of A, B and C.
    fn columns(&self, work: &Work<'_, C, B>, columns: &mut [Spread<C, B>; 3]) -> Result<ColumnRows<B>> {
        let [a, b, c] = columns;
        Ok([self.values(work, a)?, self.values(work, b)?, self.values(work, c)?])
    }

    /// Values at w X, from those at X.
    fn next(&self, work: &Work<'_, C, B>, own: &B::Buf<Mont>) -> Result<B::Buf<Mont>> {
        work.request.enqueue(self.lane, "next rows", || {
            let mut next = work.backend.alloc(self.lane, own.len())?;
            work.backend.gather(&self.next, own, &mut next)?;
            Ok(next)
        })
    }

    /// Qm a b + Ql a + Qr b + Qo c + Qc + PI
    fn gates(
        &self,
        work: &Work<'_, C, B>,
        columns: &ColumnRows<B>,
        publics: &mut Publics<C, B>,
    ) -> Result<B::Buf<Mont>> {
        let selector = |number: usize| self.of_key(work, number);
        let selectors = [selector(0)?, selector(1)?, selector(2)?, selector(3)?, selector(4)?];
        let mut sum = work.request.enqueue(self.lane, "quotient", || {
            PlonkRows::<C>::gate_rows(work.backend, columns.each_ref(), selectors.each_ref().map(|of| &**of))
        })?;
        drop(selectors);
        match self.publics(work, publics)? {
            (public, None) => {
                let l1 = self.of_key(work, L1)?;
                work.request.enqueue(self.lane, "quotient", || {
                    VecOps::<C>::add_scaled(work.backend, &mut sum, 0, 1, &l1, C::mont(public))
                })?;
            }
            (_, Some(publics)) => {
                work.request.enqueue(self.lane, "quotient", || VecOps::<C>::add(work.backend, &mut sum, &publics))?
            }
        }
        Ok(sum)
    }

    /// The polynomial of the public values here.
    fn publics(&self, work: &Work<'_, C, B>, publics: &mut Publics<C, B>) -> Result<PublicRows<C, B>> {
        Ok(match publics {
            Publics::First(factor) => (*factor, None),
            Publics::Many(publics) => (C::Fr::ZERO, Some(self.values(work, publics)?)),
        })
    }

    /// (Z - 1) L1
    fn first_row(&self, work: &Work<'_, C, B>, z: &B::Buf<Mont>) -> Result<B::Buf<Mont>> {
        let l1 = self.of_key(work, L1)?;
        work.request.enqueue(self.lane, "quotient", || {
            let mut first = work.backend.copy(z, 0..z.len(), self.lane)?;
            VecOps::<C>::mul_sub(work.backend, &mut first, &l1, &l1)?;
            Ok(first)
        })
    }

    /// (a + beta X + gamma)(b + beta k1 X + gamma)(c + beta k2 X + gamma) Z
    /// - (a + beta S1 + gamma)(b + beta S2 + gamma)(c + beta S3 + gamma) Z(w X)
    fn permutation(
        &self,
        work: &Work<'_, C, B>,
        columns: &ColumnRows<B>,
        z: &B::Buf<Mont>,
        at: &Permuted<C::Fr>,
    ) -> Result<B::Buf<Mont>> {
        let (backend, columns) = (work.backend, columns.each_ref());
        let zw = self.next(work, z)?;
        let [k1, k2] = at.k;
        let (beta, gamma) = (C::mont(at.beta), C::mont(at.gamma));
        let factors = [at.beta, at.beta * k1, at.beta * k2].map(C::mont);
        let sigma = [self.of_key(work, 5)?, self.of_key(work, 6)?, self.of_key(work, 7)?];
        let next = work.request.enqueue(self.lane, "quotient", || {
            let places = sigma.each_ref().map(|of| &**of);
            let mut next = PlonkRows::<C>::permuted_rows(backend, columns, places, [beta; 3], gamma)?;
            VecOps::<C>::mul(backend, &mut next, &zw)?;
            Ok(next)
        })?;
        drop((sigma, zw));
        let x = self.of_key(work, X)?;
        work.request.enqueue(self.lane, "quotient", || {
            let mut sum = PlonkRows::<C>::permuted_rows(backend, columns, [&x; 3], factors, gamma)?;
            VecOps::<C>::mul_sub(backend, &mut sum, z, &next)?;
            Ok(sum)
        })
    }

    /// The coefficients of the remainder of `sum` by X^n - (g w^j)^n, in its place.
    fn remainder(&self, work: &Work<'_, C, B>, mut sum: B::Buf<Mont>) -> Result<B::Buf<Mont>> {
        work.request.enqueue(self.lane, "inverse coset NTT", || {
            let coset = Coset::Shift(C::mont(self.shift));
            let from_rows = NttOp { input: Order::BitReversed, ..op(Direction::Inverse, coset) };
            Ntt::<C>::ntt(work.backend, &mut sum, from_rows)?;
            Ok(sum)
        })
    }

    /// What PLONK's quotient times Z_H is on the coset, of the values of A, B, C and Z there.
    fn quotient(
        &self,
        work: &Work<'_, C, B>,
        ([a, b, c], z): &(ColumnRows<B>, B::Buf<Mont>),
        publics: &mut Publics<C, B>,
        at: &Permuted<C::Fr>,
        alpha: C::Fr,
    ) -> Result<B::Buf<Mont>> {
        let values = self.there.as_ref().map_or(&[][..], |there| &there.values);
        let [qm, ql, qr, qo, qc, s1, s2, s3, first, x] = values else { return Err(incomplete().into()) };
        let (public, publics) = self.publics(work, publics)?;
        let zw = self.next(work, z)?;
        let rows = QuotientRows {
            columns: [a, b, c],
            product: [z, &zw],
            selectors: [qm, ql, qr, qo, qc],
            permutation: [s1, s2, s3],
            x,
            first,
        };
        let [alpha, beta, gamma, public] = [alpha, at.beta, at.gamma, public].map(C::mont);
        let at = QuotientAt { alpha, beta, gamma, k: at.k.map(C::mont), public };
        work.request.enqueue(self.lane, "quotient", || {
            let mut sum = PlonkRows::<C>::quotient_rows(work.backend, &rows, &at)?;
            if let Some(publics) = &publics {
                VecOps::<C>::add(work.backend, &mut sum, publics)?;
            }
            Ok(sum)
        })
    }
}

impl<C: Curve, B: PlonkBackend<C>> CosetKey<C, B> {
    /// PLONK's quotient times Z_H on the coset, from the coefficients of A, B and C and of Z, condition by condition: fewer vectors are needed at
    /// a time than for all at once.
    fn quotient_anew(
        &self,
        work: &Work<'_, C, B>,
        (columns, z): ([&B::Buf<Mont>; 3], &B::Buf<Mont>),
        publics: &mut Publics<C, B>,
        permuted: &Permuted<C::Fr>,
        alpha: C::Fr,
    ) -> Result<B::Buf<Mont>> {
        let columns = self.columns_of(work, columns)?;
        let mut sum = self.gates(work, &columns, publics)?;
        let z = self.values_of(work, z)?;
        let mut add = |of: B::Buf<Mont>, factor: C::Fr| {
            work.request.enqueue(self.lane, "quotient", || {
                VecOps::<C>::add_scaled(work.backend, &mut sum, 0, 1, &of, C::mont(factor))
            })
        };
        add(self.permutation(work, &columns, &z, permuted)?, alpha)?;
        drop(columns);
        add(self.first_row(work, &z)?, alpha.square())?;
        Ok(sum)
    }
}

/// From coefficients, times the powers of a coset's shift, to its rows.
const TO_ROWS: NttOp<Mont> =
    NttOp { direction: Direction::Forward, coset: Coset::Subgroup, input: Order::Natural, output: Order::BitReversed };

/// In bit-reversed order, as many elements as a power of two says.
fn reversed<T: Copy + Send + Sync>(of: &[T]) -> Vec<T> {
    let bits = of.len().ilog2();
    (0..of.len()).into_par_iter().map(|i| of[i.reverse_bits().unbounded_shr(usize::BITS - bits)]).collect()
}

pub(crate) fn incomplete() -> tandem_ops::Error {
    tandem_ops::Error::invalid("quotient", "a coset without its polynomials")
}

/// PLONK's quotient.
pub(crate) struct Quotient<C: Curve, B: PlonkBackend<C>> {
    /// Its first 3n coefficients, in parts of n with zeros behind them, each on the lane of a coset.
    pub(crate) parts: Vec<B::Buf<Mont>>,
    /// The coefficients that follow.
    pub(crate) above: [C::Fr; ABOVE],
    /// What it was made of, and nobody needs any more. To be dropped where the lane has nothing else to do: it is overwritten then.
    pub(crate) rows: Vec<AllRows<B>>,
}

/// Values of A, B and C on these cosets, where the key's values stay there. No challenge is needed for them, so that the lanes have work while
/// commitments to A, B and C are waited for. Where the key's values are made anew, so are these, in their turn.
pub(crate) fn column_rows<C: Curve, B: PlonkBackend<C>>(
    work: &Work<'_, C, B>,
    cosets: Range<usize>,
    columns: &mut [Spread<C, B>; 3],
) -> Result<Vec<Option<ColumnRows<B>>>> {
    let rows = |coset: &CosetKey<C, B>| coset.there.is_some().then(|| coset.columns(work, columns)).transpose();
    work.key.cosets[cosets].iter().map(rows).collect()
}

/// Values of Z on all cosets, of which the same holds.
pub(crate) fn product_rows<C: Curve, B: PlonkBackend<C>>(
    work: &Work<'_, C, B>,
    mut z: Spread<C, B>,
) -> Result<Vec<Option<B::Buf<Mont>>>> {
    let rows = |coset: &CosetKey<C, B>| coset.there.is_some().then(|| coset.values(work, &mut z)).transpose();
    work.key.cosets.iter().map(rows).collect()
}

/// PLONK's quotient of these columns, its parts with so many zeros behind them.
pub(crate) fn quotient<C: Curve, B: PlonkBackend<C>>(
    work: &Work<'_, C, B>,
    of: Columns<'_, C, B>,
    alpha: C::Fr,
    more: usize,
) -> Result<Quotient<C, B>> {
    let last = last(work, &of)?;
    let Columns { columns, z, rows, mut publics, permuted } = of;
    let mut remainders = Vec::with_capacity(COSETS);
    for (coset, rows) in work.key.cosets.iter().zip(&rows) {
        let sum = match rows {
            Some(rows) => coset.quotient(work, rows, &mut publics, &permuted, alpha)?,
            None => coset.quotient_anew(work, (columns, z), &mut publics, &permuted, alpha)?,
        };
        remainders.push(coset.remainder(work, sum)?);
    }
    drop(publics);
    let above = above::<C, B>(&permuted, work.key, last()?, alpha);
    let rows = rows.into_iter().flatten().collect();
    Ok(Quotient { parts: assembled(work, &work.key.cosets, remainders, &above, more)?, above, rows })
}

/// The last coefficients of a polynomial, the last one first.
type Last<F> = [F; ABOVE];

/// Enqueues the download of the last coefficients of A, B, C and Z, and gives what waits for them.
fn last<'a, C: Curve, B: PlonkBackend<C>>(
    work: &'a Work<'_, C, B>,
    of: &Columns<'_, C, B>,
) -> Result<impl FnOnce() -> Result<[Last<C::Fr>; 4]> + 'a> {
    let [a, b, c] = of.columns;
    let download = |p: &B::Buf<Mont>| {
        let end = work.backend.copy(p, p.len() - ABOVE..p.len(), FIRST)?;
        work.backend.download(&end)
    };
    let pending = work.request.enqueue(FIRST, "quotient", || {
        let [a, b, c, z] = [a, b, c, of.z].map(download);
        Ok([a?, b?, c?, z?])
    })?;
    Ok(move || {
        let mut all = [[C::Fr::ONE; ABOVE]; 4];
        for (to, pending) in all.iter_mut().zip(pending) {
            let end = zeroize::Zeroizing::new(pending.wait()?);
            to.iter_mut().zip(end.iter().rev()).for_each(|(to, c)| *to = C::from_mont(*c));
        }
        Ok(all)
    })
}

/// The last coefficients of PLONK's quotient T, X^3n to X^(3n + 5): those of T Z_H from X^4n on, which the permutation alone reaches. The last
/// coefficients of a product follow from its factors' last ones.
fn above<C: Curve, B: PlonkBackend<C>>(
    permuted: &Permuted<C::Fr>,
    key: &crate::key::Core<C, B>,
    [a, b, c, z]: [Last<C::Fr>; 4],
    alpha: C::Fr,
) -> [C::Fr; ABOVE] {
    let times = |a: Last<C::Fr>, b: Last<C::Fr>| -> Last<C::Fr> {
        std::array::from_fn(|i| (0..=i).map(|k| a[k] * b[i - k]).sum())
    };
    // Columns have n + 2 coefficients and Z has n + 3: neither beta X nor gamma is among the last ones of n >= 8.
    let row = [a, b, c].into_iter().fold(z, times);
    let n = key.shape.domain;
    let w = key.root();
    // w^n is 1.
    let next: Last<C::Fr> = std::array::from_fn(|i| z[i] * w.pow([(n + 2 - i) as u64]));
    let with_sigma = |mut column: Last<C::Fr>, sigma: &[C::Fr]| {
        // S has n coefficients: two fewer.
        column[2..].iter_mut().zip(sigma.iter().rev()).for_each(|(c, s)| *c += permuted.beta * s);
        column
    };
    let moved = [a, b, c].into_iter().zip(&key.last).map(|(c, s)| with_sigma(c, s)).fold(next, times);
    std::array::from_fn(|i| alpha * (row[ABOVE - 1 - i] - moved[ABOVE - 1 - i]))
}

/// The 2n coefficients of what the gates say over Z_H, in parts of n: FFLONK's T0. Its columns have n coefficients.
pub(crate) fn quotient_of_gates<C: Curve, B: PlonkBackend<C>>(
    work: &Work<'_, C, B>,
    columns: [&B::Buf<Mont>; 3],
    rows: &[Option<ColumnRows<B>>],
    mut publics: Publics<C, B>,
) -> Result<Vec<B::Buf<Mont>>> {
    let cosets = &work.key.cosets[..2];
    let mut remainders = Vec::with_capacity(cosets.len());
    for (coset, rows) in cosets.iter().zip(rows) {
        let sum = match rows {
            Some(rows) => coset.gates(work, rows, &mut publics)?,
            None => coset.gates(work, &coset.columns_of(work, columns)?, &mut publics)?,
        };
        remainders.push(coset.remainder(work, sum)?);
    }
    assembled_at_first(work, cosets, remainders)
}

/// The coefficients in parts of n, two of (Z - 1) L1 over Z_H and three of what the permutation says over Z_H: FFLONK's T1 and T2.
pub(crate) fn quotients_of_product<C: Curve, B: PlonkBackend<C>>(
    work: &Work<'_, C, B>,
    columns: [&B::Buf<Mont>; 3],
    rows: Vec<Option<ColumnRows<B>>>,
    mut z: Spread<C, B>,
    permuted: &Permuted<C::Fr>,
) -> Result<[Vec<B::Buf<Mont>>; 2]> {
    let cosets = &work.key.cosets;
    let (mut first, mut second) = (Vec::with_capacity(cosets.len()), Vec::with_capacity(cosets.len()));
    for (number, (coset, rows)) in cosets.iter().zip(rows).enumerate() {
        let rows = rows.map_or_else(|| coset.columns_of(work, columns), Ok)?;
        let product = coset.values(work, &mut z)?;
        if number < 2 {
            let row = coset.first_row(work, &product)?;
            first.push(coset.remainder(work, row)?);
        }
        let sum = coset.permutation(work, &rows, &product, permuted)?;
        second.push(coset.remainder(work, sum)?);
    }
    let parts = |cosets, of| assembled_at_first(work, cosets, of);
    Ok([parts(&cosets[..2], first)?, parts(cosets, second)?])
}

/// The coefficients of a polynomial in parts of n, each on the lane of a coset, from those that it has `above` these and from what is left on the
/// cosets of its product with Z_H. Each part has so many zeros behind it.
fn assembled<C: Curve, B: PlonkBackend<C>>(
    work: &Work<'_, C, B>,
    cosets: &[CosetKey<C, B>],
    mut remainders: Vec<B::Buf<Mont>>,
    above: &[C::Fr],
    more: usize,
) -> Result<Vec<B::Buf<Mont>>> {
    let n = work.key.shape.domain;
    // Z_H is a constant there, and no zero: g^n is no power of i, as g is no power of w.
    let zh = |c: C::Fr| c - C::Fr::ONE;
    // With T = T_0 + T_1 X^n + .. + T_(m-1) X^((m-1)n) + above X^mn the remainder of a coset on which X^n is c is the sum of T_k c^k and above c^m.
    let constants: Vec<C::Fr> = cosets.iter().map(CosetKey::xn).collect();
    let factors = interpolation(&constants);
    for (remainder, c) in remainders.iter_mut().zip(&constants) {
        let high = c.pow([constants.len() as u64]) * zh(*c);
        let above: Vec<C::Fr> = above.iter().map(|a| -high * a).collect();
        work.request.enqueue(remainder.lane(), "quotient", || work.add_few(remainder, 0, &above))?;
    }
    // Each lane with a coset gets what is left on those of the others, all at once.
    let wanted = cosets.iter().flat_map(|to| (0..cosets.len()).map(move |from| (from, to.lane)));
    let mut wanted: Vec<(usize, Lane)> = wanted.filter(|(from, lane)| remainders[*from].lane() != *lane).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let copies: Vec<_> = wanted.iter().map(|&(from, lane)| (lane, vec![(&remainders[from], 0..n)])).collect();
    let copies = match copies.is_empty() {
        true => Vec::new(),
        false => {
            work.request.check()?;
            let (timeline, progress) = (&work.request.timeline, work.request.progress);
            let mut lanes: Vec<Lane> = wanted.iter().map(|&(from, _)| remainders[from].lane()).collect();
            lanes.sort_unstable();
            lanes.dedup();
            let spans: Vec<_> = lanes.iter().map(|&lane| timeline.begin(lane, COPY_TO_LANE)).collect();
            let copied = work.backend.join(&copies);
            spans.into_iter().for_each(|span| timeline.end(span));
            lanes.into_iter().for_each(|lane| progress.enqueued(COPY_TO_LANE, lane));
            copied?
        }
    };
    let on = |from: usize, lane: Lane| -> &B::Buf<Mont> {
        let copy = wanted.iter().position(|of| *of == (from, lane));
        copy.map_or(&remainders[from], |copy| &copies[copy])
    };
    let mut parts = Vec::with_capacity(cosets.len());
    for (k, to) in cosets.iter().enumerate() {
        let of = |((from, of), c): ((usize, &Vec<C::Fr>), &C::Fr)| {
            (on(from, to.lane), of[k] * zh(*c).inverse().unwrap_or(C::Fr::ONE))
        };
        let terms: Vec<_> = factors.iter().enumerate().zip(&constants).map(of).collect();
        parts.push(work.request.enqueue(to.lane, "quotient", || work.combined(n + more, &terms))?);
    }
    Ok(parts)
}

/// As [`assembled`], of a polynomial that has no more coefficients, on the first lane.
fn assembled_at_first<C: Curve, B: PlonkBackend<C>>(
    work: &Work<'_, C, B>,
    cosets: &[CosetKey<C, B>],
    remainders: Vec<B::Buf<Mont>>,
) -> Result<Vec<B::Buf<Mont>>> {
    let home = |part: B::Buf<Mont>| match part.lane() == FIRST {
        true => Ok(part),
        false => work.copied(&part),
    };
    assembled(work, cosets, remainders, &[], 0)?.into_iter().map(home).collect()
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
