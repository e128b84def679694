//! The matrices A and B of a key.

use crate::plan::{Schedule, TransformPlacement};
use crate::{Request, Result};
use tandem_ops::{Curve, Lane, SpMv, SparseRows};

/// A and B, or one of them, on a lane.
pub(crate) struct OnLane<M> {
    pub(crate) lane: Lane,
    pub(crate) a: Option<M>,
    pub(crate) b: Option<M>,
}

/// A and B.
pub(crate) enum Matrices<M> {
    /// On the lanes that multiply by them.
    There(Vec<OnLane<M>>),
    /// On the host: each proof brings them.
    OnHost(Box<[SparseRows; 2]>),
}

/// What multiplies by A and B: on the lanes, or there for one proof.
pub(crate) enum AtHand<'a, M> {
    There(&'a [OnLane<M>]),
    Brought([OnLane<M>; 1]),
}

impl<M> AtHand<'_, M> {
    fn all(&self) -> &[OnLane<M>] {
        match self {
            AtHand::There(all) => all,
            AtHand::Brought(all) => all,
        }
    }

    /// A on a lane.
    pub(crate) fn a(&self, lane: Lane) -> Option<&M> {
        self.all().iter().find(|on| on.lane == lane)?.a.as_ref()
    }

    /// B on a lane.
    pub(crate) fn b(&self, lane: Lane) -> Option<&M> {
        self.all().iter().find(|on| on.lane == lane)?.b.as_ref()
    }
}

impl<M> Matrices<M> {
    /// Where the schedule has them. The lane of c multiplies by both.
    pub(crate) fn of<C: Curve, B: SpMv<C, Matrix = M>>(
        backend: &B,
        schedule: &Schedule,
        [a, b]: [&SparseRows; 2],
    ) -> Result<Self> {
        if schedule.points_on.is_some() {
            [a, b].into_iter().try_for_each(SparseRows::check)?;
            return Ok(Matrices::OnHost(Box::new([a.clone(), b.clone()])));
        }
        let chains = schedule.chains;
        let mut lanes = vec![chains.a, chains.b, chains.c_inverse];
        lanes.sort_unstable();
        lanes.dedup();
        let on = |lane| -> Result<OnLane<M>> {
            let multiplies = |of: Lane| lane == of || lane == chains.c_inverse;
            let load = |rows, chosen: bool| chosen.then(|| backend.load_matrix(lane, rows)).transpose();
            Ok(OnLane { lane, a: load(a, multiplies(chains.a))?, b: load(b, multiplies(chains.b))? })
        };
        Ok(Matrices::There(lanes.into_iter().map(on).collect::<Result<_>>()?))
    }

    /// On the lanes, for as long as the caller has them. Those that a proof brings are for one lane.
    pub(crate) fn at_hand<C: Curve, B: SpMv<C, Matrix = M>>(
        &self,
        backend: &B,
        chains: TransformPlacement,
        request: &Request<'_>,
    ) -> Result<AtHand<'_, M>> {
        let [a, b] = match self {
            Matrices::There(all) => return Ok(AtHand::There(all)),
            Matrices::OnHost(both) => &**both,
        };
        let lane = chains.a;
        let bring = |name, rows| request.enqueue(lane, name, || backend.load_matrix(lane, rows)).map(Some);
        Ok(AtHand::Brought([OnLane { lane, a: bring("upload matrix A", a)?, b: bring("upload matrix B", b)? }]))
    }
}
