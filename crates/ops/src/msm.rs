//! Multi-scalar multiplication: the sum of k_i * P_i over points that stay where they are.
//!
//! Several sums may share their scalars (A, B in G1, B in G2 and L of a Groth16 key share the witness), so the work
//! comes in three steps: a [`ScalarRecoding::plan`] for all sums over one vector of scalars, made once a key; the points
//! loaded once by that plan ([`Msm::load`]); and for each vector its digits, taken apart and ordered once
//! ([`ScalarRecoding::recode`]) and summed over each set of points ([`Msm::msm`]). One sum alone may be split over lanes
//! ([`SplitMsm`]).

mod split;

pub use split::{DealtScalars, SplitMsm};

use crate::{Backend, Canonical, Curve, Group, Lane, Mont, Pending, Result, Stored, Timeline};

/// Scalars in either form.
pub enum Scalars<'a, B: Backend> {
    /// Integers below the modulus.
    Canonical(&'a B::Buf<Canonical>),
    /// Montgomery form.
    Mont(&'a B::Buf<Mont>),
}

/// A set of points that will be summed with a plan's scalars: `points` points, of which point i belongs to scalar
/// `first + i`. Scalars that have no point in the set do not count in its sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MsmSet {
    /// Whether the points lie in G2.
    pub g2: bool,
    /// The scalar of the first point.
    pub first: usize,
    /// Number of points.
    pub points: usize,
}

/// What a plan is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MsmRequest {
    /// Number of scalars of each vector, at most.
    pub scalars: usize,
    /// The sets of points that share them.
    pub sets: Vec<MsmSet>,
    /// Bytes of the lane's memory that the loaded sets may take together.
    pub memory_bytes: u64,
    /// How often each set will be summed, about: tables that make sums faster are made if they pay.
    pub uses: u64,
    /// Whether other sums and transforms follow at once, as in a proof. They wait for memory that was worked with to be overwritten, so that
    /// ways to add that take much of it must gain more than where a sum is alone.
    pub pipelined: bool,
}

/// Bytes of a lane's memory that a sum takes beside scalars and points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SumBytes {
    /// What it cannot do without: digits, what puts them in order, and buckets.
    pub least: u64,
    /// What it takes beside that where it finds room, and is faster with.
    pub faster: u64,
}

impl SumBytes {
    /// All of it.
    pub fn all(self) -> u64 {
        self.least.saturating_add(self.faster)
    }
}

/// Scalars taken apart into digits and put in order, for any number of sums.
pub trait ScalarRecoding<C: Curve>: Backend {
    /// How to take scalars apart, and how to hold points; decided by a pure function of the request and the device.
    type Plan: Clone + Send + Sync + std::fmt::Debug;
    /// The digits of one vector of scalars on one lane. Wiped when dropped.
    type Entries: Send + 'static;

    /// Decides.
    ///
    /// # Errors
    /// A set reaches past the scalars; the sets do not fit into the memory even in their smallest form.
    fn plan(&self, lane: Lane, request: &MsmRequest) -> Result<Self::Plan>;

    /// All plans that [`ScalarRecoding::plan`] chooses among, and others that do the same in ways that small sizes do not take, but for those with
    /// more than 2^`log_most` buckets. Each gives the same sums, which is what tests ask of it.
    ///
    /// # Errors
    /// Those of [`ScalarRecoding::plan`].
    fn plans(&self, lane: Lane, request: &MsmRequest, log_most: u32) -> Result<Vec<Self::Plan>> {
        let _ = log_most;
        Ok(vec![self.plan(lane, request)?])
    }

    /// What a sum over so many scalars takes, about, of a lane that may take `memory_bytes` in all, beside these and the points, which are
    /// held once; of G2 if it is said.
    fn sum_bytes(&self, scalars: usize, g2: bool, memory_bytes: u64) -> SumBytes {
        /// 26 windows of a 4-byte key and a 4-byte index, twice.
        const DIGITS: u64 = 26 * 8 * 2;
        let _ = (g2, memory_bytes);
        SumBytes { least: (scalars as u64).saturating_mul(DIGITS), faster: 0 }
    }

    /// Takes `scalars` apart: as many as the plan says, or fewer. Fewer count as if zeros followed: a sum is then one over the points
    /// that belong to the first scalars, so that one set of points, such as the powers of a commitment key, serves vectors of any length
    /// up to its own.
    ///
    /// # Errors
    /// More scalars than the plan's; not enough memory.
    fn recode(&self, plan: &Self::Plan, scalars: Scalars<'_, Self>) -> Result<Self::Entries>
    where
        Self: Sized;
}

/// Sums over the group `G`.
pub trait Msm<G: Group>: ScalarRecoding<G::Curve> {
    /// Points in a lane's memory, in whatever form the plan wants them.
    type Bases: Send + Sync;

    /// Loads the set number `set` of the plan's request. The points are taken to lie on the curve, in the subgroup;
    /// any of them may be infinity, and they may repeat. Those outside memory are read piece by piece on their way.
    ///
    /// # Errors
    /// Another number of points than the request says; not enough memory; [`crate::Error::Unread`].
    fn load(&self, lane: Lane, plan: &Self::Plan, set: usize, points: Stored<'_, G::Point>) -> Result<Self::Bases>;

    /// The sum over a set, of the digits' scalars, on the lane of the digits. Points of another lane are read in that lane's memory. What of the
    /// sum runs beside the lane's own order has spans in `timeline`.
    ///
    /// # Errors
    /// Bases and digits of different plans; lanes that do not reach each other's memory; the device failed.
    fn msm(&self, bases: &Self::Bases, digits: &Self::Entries, timeline: &Timeline) -> Result<Pending<G::Ark>>;

    /// Over how many lanes one sum of so many points is to be split ([`SplitMsm`]) to be done soonest: 1 to as many as there are.
    /// Where splitting costs something, small sums are fastest on one.
    fn msm_lanes(&self, points: usize) -> usize {
        points.clamp(1, self.lanes().max(1))
    }
}
