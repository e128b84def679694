//! The polynomials of a key, and what follows from them at the rows: on the first lane, or on the host until a proof needs them.

use crate::key::{op, FIRST};
use crate::stay::Stay;
use crate::sums::on_host;
use crate::work::Work;
use crate::{PlonkBackend, Result};
use ark_ff::{AdditiveGroup, Field};
use std::ops::Deref;
use std::sync::Arc;
use tandem_ops::{memory, Backend, Buffer, Coset, Curve, Direction, HostBuf, Lane, Mont, Ntt, NttOp, Unaligned};

/// The first column of the permutation among the polynomials.
const S1: usize = 5;

/// Coefficients of Qm, Ql, Qr, Qo, Qc, S1, S2 and S3.
pub(crate) enum Polynomials<B: Backend> {
    /// On the first lane.
    There(There<B>),
    /// On the host.
    OnHost(Vec<Arc<HostBuf<Mont>>>),
}

/// What stays on the first lane.
pub(crate) struct There<B: Backend> {
    pub(crate) coefficients: Vec<B::Buf<Mont>>,
    /// Values of S1, S2 and S3 at the rows.
    pub(crate) sigma: [B::Buf<Mont>; 3],
    /// The rows' roots of unity.
    pub(crate) rows: B::Buf<Mont>,
}

/// A vector of a key that a proof reads.
pub(crate) enum Value<'a, B: Backend> {
    /// It stays.
    There(&'a B::Buf<Mont>),
    /// It is gone with this.
    Made(B::Buf<Mont>),
}

impl<B: Backend> Deref for Value<'_, B> {
    type Target = B::Buf<Mont>;

    fn deref(&self) -> &B::Buf<Mont> {
        match self {
            Value::There(of) => of,
            Value::Made(of) => of,
        }
    }
}

impl<B: Backend> Polynomials<B> {
    /// Puts them where they stay.
    ///
    /// # Errors
    /// Not enough memory; the device failed.
    pub(crate) fn load<C: Curve>(backend: &B, stay: Stay, polynomials: &[Unaligned<'_, Mont>]) -> Result<Self>
    where
        B: PlonkBackend<C>,
    {
        if !stay.polynomials {
            let copy = |of: &Unaligned<'_, Mont>| {
                let mut copy = on_host(backend, of.len())?;
                match of.aligned() {
                    Some(values) => copy.copy_from_slice(values),
                    None => copy.iter_mut().zip(of.iter()).for_each(|(to, value)| *to = value),
                }
                Ok(Arc::new(copy))
            };
            return Ok(Polynomials::OnHost(polynomials.iter().map(copy).collect::<Result<_>>()?));
        }
        let upload = |of: &Unaligned<'_, Mont>| match of.aligned() {
            Some(values) => backend.upload(FIRST, values),
            None => backend.upload(FIRST, &copied(*of)?),
        };
        let coefficients: Vec<B::Buf<Mont>> = polynomials.iter().map(upload).collect::<tandem_ops::Result<_>>()?;
        let sigma = |column: usize| {
            let of = &coefficients[S1 + column];
            at_rows::<C, B>(backend, backend.copy(of, 0..of.len(), FIRST)?)
        };
        let sigma = [sigma(0)?, sigma(1)?, sigma(2)?];
        let rows = at_rows::<C, B>(backend, one_coefficient::<C, B>(backend, coefficients[0].len(), 1, FIRST)?)?;
        Ok(Polynomials::There(There { coefficients, sigma, rows }))
    }

    /// Those that stay on the first lane; none where they lie on the host.
    pub(crate) fn there(&self) -> &[B::Buf<Mont>] {
        match self {
            Polynomials::There(of) => &of.coefficients,
            Polynomials::OnHost(_) => &[],
        }
    }
}

fn copied(of: Unaligned<'_, Mont>) -> tandem_ops::Result<Vec<Mont>> {
    let mut values = memory::reserve("load key", of.len())?;
    values.extend(of.iter());
    Ok(values)
}

/// The coefficients of X^`power`.
fn one_coefficient<C: Curve, B: PlonkBackend<C>>(
    backend: &B,
    len: usize,
    power: usize,
    lane: Lane,
) -> tandem_ops::Result<B::Buf<Mont>> {
    let mut of = backend.alloc(lane, len)?;
    backend.write(&mut of, power, &[C::mont(C::Fr::ONE)])?;
    Ok(of)
}

/// The values at the rows of the polynomial with these coefficients.
fn at_rows<C: Curve, B: PlonkBackend<C>>(backend: &B, mut of: B::Buf<Mont>) -> tandem_ops::Result<B::Buf<Mont>> {
    Ntt::<C>::ntt(backend, &mut of, op(Direction::Forward, Coset::Subgroup))?;
    Ok(of)
}

/// The coefficients of X, and of L1, which are all 1/n, on a lane.
pub(crate) fn x_of<C: Curve, B: PlonkBackend<C>>(
    backend: &B,
    len: usize,
    lane: Lane,
) -> tandem_ops::Result<B::Buf<Mont>> {
    one_coefficient::<C, B>(backend, len, 1, lane)
}

/// See [`x_of`].
pub(crate) fn l1_of<C: Curve, B: PlonkBackend<C>>(
    backend: &B,
    len: usize,
    lane: Lane,
) -> tandem_ops::Result<B::Buf<Mont>> {
    let mut of = one_coefficient::<C, B>(backend, len, 0, lane)?;
    let inverse: NttOp = op(Direction::Inverse, Coset::Subgroup);
    Ntt::<C>::ntt(backend, &mut of, inverse)?;
    Ok(of)
}

impl<C: Curve, B: PlonkBackend<C>> Work<'_, C, B> {
    /// A polynomial of the key, by its number, to be read on the first lane.
    pub(crate) fn polynomial(&self, number: usize) -> Result<Value<'_, B>> {
        match &self.key.polynomials {
            Polynomials::There(of) => Ok(Value::There(&of.coefficients[number])),
            Polynomials::OnHost(of) => Ok(Value::Made(self.brought(&of[number], FIRST)?)),
        }
    }

    /// A polynomial of the key, by its number, as a vector of its own on any lane.
    pub(crate) fn own_polynomial(&self, number: usize, lane: Lane) -> Result<B::Buf<Mont>> {
        match &self.key.polynomials {
            Polynomials::There(of) => {
                let of = &of.coefficients[number];
                self.request.copied(self.backend, of, 0..of.len(), lane)
            }
            Polynomials::OnHost(of) => self.brought(&of[number], lane),
        }
    }

    fn brought(&self, of: &Arc<HostBuf<Mont>>, lane: Lane) -> Result<B::Buf<Mont>> {
        self.request.enqueue(lane, "upload polynomial", || {
            let mut of_lanes = self.backend.upload_to_all(&[lane], of, &self.request.timeline)?;
            of_lanes.pop().ok_or_else(|| tandem_ops::Error::invalid("upload", "no lane"))
        })
    }

    /// Values of S1, S2 and S3 at the rows.
    pub(crate) fn sigma(&self) -> Result<[Value<'_, B>; 3]> {
        if let Polynomials::There(of) = &self.key.polynomials {
            return Ok(of.sigma.each_ref().map(Value::There));
        }
        let made = |column: usize| {
            let of = self.own_polynomial(S1 + column, FIRST)?;
            let values = self.request.enqueue(FIRST, "permutation", || at_rows::<C, B>(self.backend, of))?;
            Ok::<_, crate::Error>(Value::Made(values))
        };
        Ok([made(0)?, made(1)?, made(2)?])
    }

    /// The rows' roots of unity.
    pub(crate) fn rows(&self) -> Result<Value<'_, B>> {
        if let Polynomials::There(of) = &self.key.polynomials {
            return Ok(Value::There(&of.rows));
        }
        let n = self.key.shape.domain;
        let made = || at_rows::<C, B>(self.backend, x_of::<C, B>(self.backend, n, FIRST)?);
        Ok(Value::Made(self.request.enqueue(FIRST, "permutation", made)?))
    }

    /// Adds multiples of the key's polynomials, one factor for each.
    pub(crate) fn add_polynomials(&self, sum: &mut B::Buf<Mont>, factors: &[C::Fr]) -> Result<()> {
        for (number, factor) in factors.iter().enumerate().filter(|(_, factor)| **factor != C::Fr::ZERO) {
            let of = self.polynomial(number)?;
            self.request.enqueue(FIRST, "linearisation", || {
                tandem_ops::VecOps::<C>::add_scaled(self.backend, sum, 0, 1, &of, C::mont(*factor))
            })?;
        }
        Ok(())
    }
}
