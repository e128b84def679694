//! Polynomials on the lanes that take their values on cosets, and vectors on their way from lane to lane.
//!
//! Copies are dealt: they run beside what the lanes do. One begins when all is done that the lane which it leaves was told before, so that what is
//! to leave a lane is dealt before the lane is told more.

use crate::key::FIRST;
use crate::work::Work;
use crate::{PlonkBackend, Result};
use ark_ff::Field;
use std::ops::Range;
use tandem_ops::{Arriving, Buffer, Curve, Lane, Mont, VecOps};
use zeroize::Zeroizing;

/// A polynomial on one lane.
pub(crate) struct Polynomial<C: Curve, B: PlonkBackend<C>> {
    /// What is left over of it by X^n - `at`: n coefficients.
    left: B::Buf<Mont>,
    at: C::Fr,
    /// The coefficients beyond n.
    above: Option<B::Buf<Mont>>,
}

impl<C: Curve, B: PlonkBackend<C>> Polynomial<C, B> {
    /// Of what is `left` over at the rows, where X^n is 1, and of its coefficients beyond n.
    pub(crate) fn new(left: B::Buf<Mont>, above: Option<B::Buf<Mont>>) -> Self {
        Self { left, at: C::Fr::ONE, above }
    }

    /// Where it lies.
    pub(crate) fn lane(&self) -> Lane {
        self.left.lane()
    }

    /// What is left over where X^n is `at`: the coefficient of X^(n + k) counts `at` times for X^k.
    pub(crate) fn left(&mut self, work: &Work<'_, C, B>, at: C::Fr) -> tandem_ops::Result<&B::Buf<Mont>> {
        let from = std::mem::replace(&mut self.at, at);
        if let Some(above) = &self.above {
            VecOps::<C>::add_scaled(work.backend, &mut self.left, 0, 1, above, C::mont(at - from))?;
        }
        Ok(&self.left)
    }
}

/// A polynomial on one lane, or on each lane that has a coset.
pub(crate) struct Spread<C: Curve, B: PlonkBackend<C>> {
    first: Polynomial<C, B>,
    others: Vec<Polynomial<C, B>>,
}

impl<C: Curve, B: PlonkBackend<C>> Spread<C, B> {
    /// Where it is. Its values on a coset of another lane take a copy in the order of this one.
    pub(crate) fn here(polynomial: Polynomial<C, B>) -> Self {
        Self { first: polynomial, others: Vec::new() }
    }

    /// Its coefficients, where it has no more than n.
    pub(crate) fn coefficients(&self) -> &B::Buf<Mont> {
        &self.first.left
    }

    /// On this lane; on the first one that has it where this one has not.
    pub(crate) fn on(&mut self, lane: Lane) -> &mut Polynomial<C, B> {
        self.others.iter_mut().find(|of| of.lane() == lane).unwrap_or(&mut self.first)
    }
}

/// A polynomial that is dealt to lanes.
pub(crate) enum Spreading<C: Curve, B: PlonkBackend<C>> {
    Here(Polynomial<C, B>),
    /// With its coefficients beyond n.
    Coming(Vec<Arriving<B::Buf<Mont>>>, Zeroizing<Vec<C::Fr>>),
}

impl<C: Curve, B: PlonkBackend<C>> Spreading<C, B> {
    /// For what the lanes are told from here on.
    pub(crate) fn arrived(self, work: &Work<'_, C, B>) -> Result<Spread<C, B>> {
        let (arriving, above) = match self {
            Spreading::Here(polynomial) => return Ok(Spread::here(polynomial)),
            Spreading::Coming(arriving, above) => (arriving, above),
        };
        let of_lane = |arriving: Arriving<B::Buf<Mont>>| {
            let left = work.request.arrived(work.backend, arriving)?;
            let few = || work.request.enqueue(left.lane(), "blind", || work.few_on(left.lane(), &above));
            let few = (!above.is_empty()).then(few).transpose()?;
            Ok(Polynomial::new(left, few))
        };
        let mut of_lanes = arriving.into_iter().map(of_lane);
        let nowhere = || tandem_ops::Error::invalid("deal", "a polynomial for no lane");
        let first = of_lanes.next().ok_or_else(nowhere)??;
        Ok(Spread { first, others: of_lanes.collect::<Result<_>>()? })
    }
}

impl<C: Curve, B: PlonkBackend<C>> Work<'_, C, B> {
    /// Deals a polynomial whose coefficients beyond n are these to the lanes that have cosets whose values stay there.
    pub(crate) fn spread(&self, polynomial: Polynomial<C, B>, above: &[C::Fr]) -> Result<Spreading<C, B>> {
        let mut lanes = self.key.plan.cosets.to_vec();
        lanes.sort_unstable();
        lanes.dedup();
        if !self.key.plan.stay.cosets || lanes == [polynomial.lane()] {
            return Ok(Spreading::Here(polynomial));
        }
        let Polynomial { left, .. } = polynomial;
        let shares: Vec<_> = lanes.into_iter().map(|lane| (0..left.len(), lane)).collect();
        Ok(Spreading::Coming(self.dealt(left, &shares)?, above.to_vec().into()))
    }

    /// Columns on the lanes that interpolate them.
    pub(crate) fn to_homes(&self, columns: &[B::Buf<Mont>; 3]) -> Result<[Arriving<B::Buf<Mont>>; 3]> {
        // Copies first: what is dealt waits for all that the lane was told.
        let [a, b, c] = columns.each_ref().map(|column| self.copied(column));
        let [of_a, of_b, of_c] = self.key.plan.columns;
        Ok([self.sent(a?, of_a)?, self.sent(b?, of_b)?, self.sent(c?, of_c)?])
    }

    /// A vector on its way to a lane.
    pub(crate) fn sent(&self, of: B::Buf<Mont>, lane: Lane) -> Result<Arriving<B::Buf<Mont>>> {
        if of.lane() == lane {
            return Ok(Arriving::new(of));
        }
        let range = 0..of.len();
        self.dealt(of, &[(range, lane)])?.pop().ok_or_else(|| tandem_ops::Error::invalid("deal", "no copy").into())
    }

    /// Vectors on their way to the first lane.
    pub(crate) fn sent_home<const N: usize>(&self, of: [B::Buf<Mont>; N]) -> Result<Vec<Arriving<B::Buf<Mont>>>> {
        of.into_iter().map(|vector| self.sent(vector, FIRST)).collect()
    }

    fn dealt(&self, of: B::Buf<Mont>, shares: &[(Range<usize>, Lane)]) -> Result<Vec<Arriving<B::Buf<Mont>>>> {
        self.request.check()?;
        let mut dealt = self.backend.deal(vec![of], shares, &self.request.timeline)?;
        Ok(dealt.pop().unwrap_or_default())
    }

    /// Vectors for what their lanes are told from here on.
    pub(crate) fn arrived<const N: usize>(&self, of: Vec<Arriving<B::Buf<Mont>>>) -> Result<[B::Buf<Mont>; N]> {
        let arrived = |vector| self.request.arrived(self.backend, vector);
        let there = of.into_iter().map(arrived).collect::<tandem_ops::Result<Vec<_>>>()?;
        there.try_into().map_err(|_| tandem_ops::Error::invalid("deal", "another number of vectors").into())
    }
}
