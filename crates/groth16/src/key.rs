//! Keys: as a file holds them, and resident on a backend.

use crate::check::check_single_points;
use crate::plan::{self, Layout, Schedule, Shape, WitnessQuery};
use crate::{Error, Result, P1, P2};
use ark_ff::FftField;
use tandem_ops::{
    Coset, Curve, Lane, Msm, MsmRequest, MsmSet, ProofBackend, ScalarRecoding, SpMv, SparseRows, Stored, Unaligned,
};

/// The points of a key that belong to no wire.
#[derive(Debug, Clone)]
pub struct KeyPoints<C: Curve> {
    /// alpha in G1.
    pub alpha1: P1<C>,
    /// beta in G1.
    pub beta1: P1<C>,
    /// beta in G2.
    pub beta2: P2<C>,
    /// gamma in G2.
    pub gamma2: P2<C>,
    /// delta in G1.
    pub delta1: P1<C>,
    /// delta in G2.
    pub delta2: P2<C>,
}

/// A proving key where it lies, in a file or in memory. Sections are named as in snarkjs's format. Those that are as large as the circuit
/// are read piece by piece where they lie in a file.
#[derive(Clone)]
pub struct KeyView<'a, C: Curve> {
    /// Its sizes.
    pub shape: Shape,
    /// Points that belong to no wire.
    pub points: KeyPoints<C>,
    /// The verification key's points of the constant and the public wires.
    pub ic: Unaligned<'a, P1<C>>,
    /// The left factors of the constraints, with the rows that bind the public wires.
    pub matrix_a: &'a SparseRows,
    /// The right factors.
    pub matrix_b: &'a SparseRows,
    /// A in G1, one point a wire.
    pub a: Stored<'a, P1<C>>,
    /// B in G1, one point a wire.
    pub b1: Stored<'a, P1<C>>,
    /// B in G2, one point a wire.
    pub b2: Stored<'a, P2<C>>,
    /// One point for each private wire.
    pub l: Stored<'a, P1<C>>,
    /// The odd coset's Lagrange basis at tau, over delta: one point a row.
    pub h: Stored<'a, P1<C>>,
}

impl<C: Curve> KeyView<'_, C> {
    /// Checks that the parts have the sizes that the shape says.
    ///
    /// # Errors
    /// [`Error::Key`] that names the first part that has not.
    pub fn check_sizes(&self) -> Result<()> {
        let Shape { variables, publics, domain } = self.shape;
        let log = domain.checked_ilog2().unwrap_or(0);
        if !domain.is_power_of_two() || log > <C::Fr as FftField>::TWO_ADICITY {
            let most = <C::Fr as FftField>::TWO_ADICITY;
            return Err(Error::Key(format!("domain of {domain} rows; expected a power of two up to 2^{most}")));
        }
        if variables == 0 || publics > variables - 1 {
            return Err(Error::Key(format!("{publics} public wires of {variables} wires")));
        }
        for (name, has, expected) in [
            ("IC", self.ic.len(), publics + 1),
            ("A", self.a.len(), variables),
            ("B1", self.b1.len(), variables),
            ("B2", self.b2.len(), variables),
            ("L", self.l.len(), variables - publics - 1),
            ("H", self.h.len(), domain),
            ("columns of matrix A", self.matrix_a.columns, variables),
            ("columns of matrix B", self.matrix_b.columns, variables),
        ] {
            if has != expected {
                return Err(Error::Key(format!("{name}: {has}; expected {expected}")));
            }
        }
        for (name, rows) in [("A", self.matrix_a.rows()), ("B", self.matrix_b.rows())] {
            if rows > domain {
                return Err(Error::Key(format!("matrix {name} has {rows} rows; the domain has {domain}")));
            }
        }
        Ok(())
    }

    /// The verification key.
    pub fn verifying_key(&self) -> VerifyingKey<C> {
        VerifyingKey {
            alpha1: self.points.alpha1,
            beta2: self.points.beta2,
            gamma2: self.points.gamma2,
            delta2: self.points.delta2,
            ic: self.ic.iter().collect(),
        }
    }
}

/// What a verifier needs.
#[derive(Debug, Clone)]
pub struct VerifyingKey<C: Curve> {
    /// alpha in G1.
    pub alpha1: P1<C>,
    /// beta in G2.
    pub beta2: P2<C>,
    /// gamma in G2.
    pub gamma2: P2<C>,
    /// delta in G2.
    pub delta2: P2<C>,
    /// One point for the constant and each public wire.
    pub ic: Vec<P1<C>>,
}

/// A lane's points of the sums over the witness.
pub(crate) struct WitnessShare<C: Curve, B: ProofBackend<C>> {
    pub(crate) share: plan::Share,
    pub(crate) plan: <B as ScalarRecoding<C>>::Plan,
    pub(crate) b2: Option<<B as Msm<C::G2>>::Bases>,
    /// A, B1 and L, in this order.
    pub(crate) g1: Vec<(WitnessQuery, <B as Msm<C::G1>>::Bases)>,
}

/// A lane's points of the sum over the quotient.
pub(crate) struct QuotientShare<C: Curve, B: ProofBackend<C>> {
    pub(crate) share: plan::Share,
    pub(crate) plan: <B as ScalarRecoding<C>>::Plan,
    pub(crate) bases: <B as Msm<C::G1>>::Bases,
}

/// A proving key in the memory of a backend's lanes.
pub struct ProvingKey<C: Curve, B: ProofBackend<C>> {
    pub(crate) shape: Shape,
    pub(crate) points: KeyPoints<C>,
    pub(crate) coset: Coset,
    pub(crate) schedule: Schedule,
    pub(crate) matrix_a: <B as SpMv<C>>::Matrix,
    pub(crate) matrix_b: <B as SpMv<C>>::Matrix,
    pub(crate) witness: Vec<WitnessShare<C, B>>,
    pub(crate) quotient: Vec<QuotientShare<C, B>>,
}

impl<C: Curve, B: ProofBackend<C>> ProvingKey<C, B> {
    /// Loads a key onto the lanes of `backend`, laid out as `layout` says, to make so many `proofs`: the more, the larger the
    /// tables of multiples that pay for themselves. The points that belong to no wire are checked; those of the sections are taken
    /// to be good ([`crate::check::check_points`]).
    ///
    /// # Errors
    /// [`Error::Key`] if the parts do not fit together, or such a point is no good; [`Error::Backend`] if the key does not fit into memory,
    /// or cannot be read.
    pub fn load(backend: &B, view: &KeyView<'_, C>, layout: Layout, proofs: u64) -> Result<Self> {
        view.check_sizes()?;
        check_single_points(&view.points)?;
        let (shape, lanes) = (view.shape, backend.lanes());
        let schedule = plan::schedule(C::ID, shape, lanes, layout);
        backend.expect_uploads_to_all(&schedule.whole);
        let matrix_a = backend.load_matrix(schedule.chains.a, view.matrix_a)?;
        let matrix_b = backend.load_matrix(schedule.chains.b, view.matrix_b)?;
        backend.synchronize()?;

        let rooms = |backend: &B| -> Vec<u64> {
            let free = backend.info().free_bytes;
            let of_lane = |i: usize| {
                free.get(i).map_or(0, |&free| plan::point_budget_bytes(free, shape, schedule.scalars(Lane(i))))
            };
            (0..lanes).map(of_lane).collect()
        };
        let working = |lane: Lane| plan::working_set(shape, schedule.scalars(lane));
        // Points over the quotient come first: there are fewer of them, and their scalars are all of full size, so that what they
        // take is spent best. The others have in any case their share, or what their plain tables take.
        let room = rooms(backend);
        let quotient = schedule
            .quotient
            .iter()
            .map(|share| {
                let (own, others) = (share.range.len() * size_of::<P1<C>>(), lane_bytes::<C>(&schedule, share.lane));
                let room = room[share.lane.0];
                let beside = room.saturating_sub(PLAIN_LEVELS.saturating_mul(others as u64));
                let memory_bytes = beside.max(plan::part_of(room, own, own + others));
                Self::load_quotient(backend, view, share, Worth { memory_bytes, uses: proofs })
                    .map_err(|e| whole_need(e, backend, share.lane, memory_bytes, working(share.lane)))
            })
            .collect::<Result<_>>()?;
        backend.synchronize()?;
        let room = rooms(backend);
        let witness = schedule
            .witness
            .iter()
            .map(|sums| {
                // A lane's groups share what is left in proportion to their points.
                let (lane, own) = (sums.share.lane, group_bytes::<C>(sums));
                let memory_bytes = plan::part_of(room[lane.0], own, lane_bytes::<C>(&schedule, lane));
                Self::load_witness(backend, view, sums, Worth { memory_bytes, uses: proofs })
                    .map_err(|e| whole_need(e, backend, lane, memory_bytes, working(lane)))
            })
            .collect::<Result<_>>()?;
        backend.synchronize()?;
        let points = view.points.clone();
        Ok(Self { shape, points, coset: coset::<C>(shape.domain), schedule, matrix_a, matrix_b, witness, quotient })
    }

    fn load_witness(
        backend: &B,
        view: &KeyView<'_, C>,
        sums: &plan::LaneQueries,
        Worth { memory_bytes, uses }: Worth,
    ) -> Result<WitnessShare<C, B>> {
        let plan::LaneQueries { share, sums: parts } = sums;
        let sets = parts.iter().map(|p| p.set).collect();
        let do_wait = view.b2.may_wait() && [view.a, view.b1, view.l].iter().all(Stored::may_wait);
        let memory_bytes = if do_wait { u64::MAX } else { memory_bytes };
        let request = MsmRequest { scalars: share.range.len(), sets, memory_bytes, uses, pipelined: true };
        let plan = ScalarRecoding::<C>::plan(backend, share.lane, &request)?;
        let (mut b2, mut g1) = (None, Vec::new());
        for (set, part) in parts.iter().enumerate() {
            let load = |points: Stored<'_, P1<C>>| {
                Msm::<C::G1>::load(backend, share.lane, &plan, set, points.slice(part.points.clone()))
            };
            match part.sum {
                WitnessQuery::B2 => {
                    let points = view.b2.slice(part.points.clone());
                    b2 = Some(Msm::<C::G2>::load(backend, share.lane, &plan, set, points)?);
                }
                WitnessQuery::A => g1.push((part.sum, load(view.a)?)),
                WitnessQuery::B1 => g1.push((part.sum, load(view.b1)?)),
                WitnessQuery::L => g1.push((part.sum, load(view.l)?)),
            }
        }
        Ok(WitnessShare { share: share.clone(), plan, b2, g1 })
    }

    fn load_quotient(
        backend: &B,
        view: &KeyView<'_, C>,
        share: &plan::Share,
        Worth { memory_bytes, uses }: Worth,
    ) -> Result<QuotientShare<C, B>> {
        let scalars = share.range.len();
        let sets = vec![MsmSet { g2: false, first: 0, points: scalars }];
        let memory_bytes = if view.h.may_wait() { u64::MAX } else { memory_bytes };
        let request = MsmRequest { scalars, sets, memory_bytes, uses, pipelined: true };
        let plan = ScalarRecoding::<C>::plan(backend, share.lane, &request)?;
        let bases = Msm::<C::G1>::load(backend, share.lane, &plan, 0, view.h.slice(share.range.clone()))?;
        Ok(QuotientShare { share: share.clone(), plan, bases })
    }

    /// Its sizes.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Which lane does what.
    pub fn plan(&self) -> &Schedule {
        &self.schedule
    }
}

/// Multiples of a point in a table that has one for each window of a scalar, where windows have 17 bits or more.
const PLAIN_LEVELS: u64 = 16;

/// What tables of a group of points may cost.
struct Worth {
    /// Nothing bounds it where the points may wait: a sum brings as many of them into memory at a time as there is room for.
    memory_bytes: u64,
    uses: u64,
}

/// A plan that was refused says what it needs of its share of the memory and what the share is. Who reads it wants to know what the key
/// needs with all else, and what is free.
fn whole_need<B: tandem_ops::Backend>(error: Error, backend: &B, lane: Lane, share: u64, working_set: u64) -> Error {
    use tandem_ops::Error::OutOfMemory;
    match (error, backend.info().free_bytes.get(lane.0)) {
        (Error::Backend(OutOfMemory { op: "plan", device, wanted, free: _ }), Some(&free)) => {
            let others = free.saturating_sub(share).max(working_set);
            OutOfMemory { op: "load key", device, wanted: wanted.saturating_add(others), free }.into()
        }
        (error, _) => error,
    }
}

/// Bytes of the points of a group of sums.
fn group_bytes<C: Curve>(group: &plan::LaneQueries) -> usize {
    let bytes =
        |part: &plan::QueryShare| part.points.len() * if part.set.g2 { size_of::<P2<C>>() } else { size_of::<P1<C>>() };
    group.sums.iter().map(bytes).sum()
}

/// Those of all of a lane's sums over the witness.
fn lane_bytes<C: Curve>(schedule: &Schedule, lane: Lane) -> usize {
    schedule.witness.iter().filter(|w| w.share.lane == lane).map(group_bytes::<C>).sum()
}

/// Where the quotient is evaluated: the odd coset, or, for the largest domain of the field, the coset that snarkjs
/// takes instead, of the square of its least non-residue.
pub(crate) fn coset<C: Curve>(domain: usize) -> Coset {
    if domain.ilog2() < <C::Fr as FftField>::TWO_ADICITY {
        return Coset::Odd;
    }
    let mut q = C::Fr::from(2u64);
    while ark_ff::Field::legendre(&q) != ark_ff::LegendreSymbol::QuadraticNonResidue {
        q += C::Fr::from(1u64);
    }
    Coset::Shift(C::mont(q * q))
}
