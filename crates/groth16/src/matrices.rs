//! The matrices A and B of a key.

use crate::plan::Schedule;
use crate::{Request, Result};
use tandem_ops::{Curve, Lane, SpMv, SparseRows};

/// A and B.
pub(crate) enum Matrices<M> {
    /// On the lanes that multiply by them.
    There([M; 2]),
    /// On the host: each proof brings them.
    OnHost(Box<[SparseRows; 2]>),
}

/// What multiplies by A and B: on the lanes, or there for one proof.
pub(crate) enum AtHand<'a, M> {
    There(&'a [M; 2]),
    Brought([M; 2]),
}

impl<M> AtHand<'_, M> {
    pub(crate) fn both(&self) -> &[M; 2] {
        match self {
            AtHand::There(both) => both,
            AtHand::Brought(both) => both,
        }
    }
}

impl<M> Matrices<M> {
    /// Where the schedule has them.
    pub(crate) fn of<C: Curve, B: SpMv<C, Matrix = M>>(
        backend: &B,
        schedule: &Schedule,
        [a, b]: [&SparseRows; 2],
    ) -> Result<Self> {
        if schedule.points_on.is_some() {
            [a, b].into_iter().try_for_each(SparseRows::check)?;
            return Ok(Matrices::OnHost(Box::new([a.clone(), b.clone()])));
        }
        Ok(Matrices::There([backend.load_matrix(schedule.chains.a, a)?, backend.load_matrix(schedule.chains.b, b)?]))
    }

    /// On the lanes, for as long as the caller has them.
    pub(crate) fn at_hand<C: Curve, B: SpMv<C, Matrix = M>>(
        &self,
        backend: &B,
        lanes: [Lane; 2],
        request: &Request<'_>,
    ) -> Result<AtHand<'_, M>> {
        let [a, b] = match self {
            Matrices::There(both) => return Ok(AtHand::There(both)),
            Matrices::OnHost(both) => &**both,
        };
        let bring = |lane, name, rows| request.enqueue(lane, name, || backend.load_matrix(lane, rows));
        Ok(AtHand::Brought([bring(lanes[0], "upload matrix A", a)?, bring(lanes[1], "upload matrix B", b)?]))
    }
}
