//! Keys: as a file holds them, and resident on a backend.

use crate::check::{check_powers_single_points, check_single_points};
use crate::matrices::Matrices;
use crate::plan::{self, Layout, MemoryPlan, Planned, PointBytes, Queries, Schedule, Shape, WireSet, WitnessQuery};
use crate::powers::rows_of;
use crate::{Error, Result, P1, P2};
use ark_ff::FftField;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use tandem_ops::{
    Coset, Curve, DeviceKind, Gather, Group, HostBuf, Lane, Later, Msm, MsmRequest, MsmSet, ProofBackend,
    ScalarRecoding, SpMv, SparseRows, Stored, Unaligned,
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

/// A key without matrices where it lies, as bellperson makes it: A and B have points for those wires that the circuit names there, and H
/// has powers of tau. Which wires these are, and the sides of the constraints, comes with each witness ([`crate::Evaluations`]).
#[derive(Clone)]
pub struct PowersView<'a, C: Curve> {
    /// Its sizes.
    pub shape: Shape,
    /// Points that belong to no wire.
    pub points: KeyPoints<C>,
    /// The verification key's points of the constant and the public wires.
    pub ic: Unaligned<'a, P1<C>>,
    /// A in G1: first those of the constant and the public wires, all of them.
    pub a: Stored<'a, P1<C>>,
    /// B in G1.
    pub b1: Stored<'a, P1<C>>,
    /// B in G2, of the same wires.
    pub b2: Stored<'a, P2<C>>,
    /// One point for each private wire.
    pub l: Stored<'a, P1<C>>,
    /// tau^i (tau^n - 1) / delta for the domain's n rows: one point less than there are rows.
    pub h: Stored<'a, P1<C>>,
}

/// Points that sums are over.
#[derive(Clone, Copy)]
pub(crate) struct Sections<'a, C: Curve> {
    pub(crate) a: Stored<'a, P1<C>>,
    pub(crate) b1: Stored<'a, P1<C>>,
    pub(crate) b2: Stored<'a, P2<C>>,
    pub(crate) l: Stored<'a, P1<C>>,
    pub(crate) h: Stored<'a, P1<C>>,
}

/// Fails unless the sizes are those of a circuit, with a domain of up to 2^`most` rows.
fn check_shape(Shape { variables, publics, domain }: Shape, most: u32) -> Result<()> {
    let log = domain.checked_ilog2().unwrap_or(0);
    if !domain.is_power_of_two() || log > most {
        return Err(Error::Key(format!("domain of {domain} rows; expected a power of two up to 2^{most}")));
    }
    if variables == 0 || publics > variables - 1 {
        return Err(Error::Key(format!("{publics} public wires of {variables} wires")));
    }
    Ok(())
}

/// Fails for the first part that has another number of elements than expected.
fn check_counts(parts: &[(&str, usize, usize)]) -> Result<()> {
    match parts.iter().find(|(_, has, expected)| has != expected) {
        Some((name, has, expected)) => Err(Error::Key(format!("{name}: {has}; expected {expected}"))),
        None => Ok(()),
    }
}

impl<'a, C: Curve> PowersView<'a, C> {
    /// How many points its sums have.
    pub fn queries(&self) -> Queries {
        Queries::picked(self.shape, self.a.len(), self.b1.len())
    }

    pub(crate) fn sections(&self) -> Sections<'a, C> {
        Sections { a: self.a, b1: self.b1, b2: self.b2, l: self.l, h: self.h }
    }

    /// Checks that the parts have the sizes that the shape says.
    ///
    /// # Errors
    /// [`Error::Key`] that names the first part that has not.
    pub fn check_sizes(&self) -> Result<()> {
        let Shape { variables, publics, domain } = self.shape;
        // The quotient is made on the odd coset, among the roots of unity of the doubled domain.
        check_shape(self.shape, <C::Fr as FftField>::TWO_ADICITY - 1)?;
        if u32::try_from(variables).is_err() {
            return Err(Error::Key(format!("{variables} wires; expected less than 2^32")));
        }
        check_counts(&[
            ("IC", self.ic.len(), publics + 1),
            ("L", self.l.len(), variables - publics - 1),
            ("H", self.h.len(), domain - 1),
            ("B2", self.b2.len(), self.b1.len()),
        ])?;
        for (name, has, least) in [("A", self.a.len(), publics + 1), ("B1", self.b1.len(), 0)] {
            if has < least || has > variables {
                return Err(Error::Key(format!("{name}: {has}; expected {least} to {variables}")));
            }
        }
        Ok(())
    }

    /// The verification key.
    pub fn verifying_key(&self) -> VerifyingKey<C> {
        verifying_key(&self.points, self.ic)
    }
}

fn verifying_key<C: Curve>(points: &KeyPoints<C>, ic: Unaligned<'_, P1<C>>) -> VerifyingKey<C> {
    VerifyingKey {
        alpha1: points.alpha1,
        beta2: points.beta2,
        gamma2: points.gamma2,
        delta2: points.delta2,
        ic: ic.iter().collect(),
    }
}

impl<'a, C: Curve> KeyView<'a, C> {
    pub(crate) fn sections(&self) -> Sections<'a, C> {
        Sections { a: self.a, b1: self.b1, b2: self.b2, l: self.l, h: self.h }
    }

    /// Checks that the parts have the sizes that the shape says.
    ///
    /// # Errors
    /// [`Error::Key`] that names the first part that has not.
    pub fn check_sizes(&self) -> Result<()> {
        let Shape { variables, publics, domain } = self.shape;
        check_shape(self.shape, <C::Fr as FftField>::TWO_ADICITY)?;
        check_counts(&[
            ("IC", self.ic.len(), publics + 1),
            ("A", self.a.len(), variables),
            ("B1", self.b1.len(), variables),
            ("B2", self.b2.len(), variables),
            ("L", self.l.len(), variables - publics - 1),
            ("H", self.h.len(), domain),
            ("columns of matrix A", self.matrix_a.columns, variables),
            ("columns of matrix B", self.matrix_b.columns, variables),
        ])?;
        for (name, rows) in [("A", self.matrix_a.rows()), ("B", self.matrix_b.rows())] {
            if rows > domain {
                return Err(Error::Key(format!("matrix {name} has {rows} rows; the domain has {domain}")));
            }
        }
        Ok(())
    }

    /// The verification key.
    pub fn verifying_key(&self) -> VerifyingKey<C> {
        verifying_key(&self.points, self.ic)
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
    pub(crate) wires: WireSet,
    pub(crate) share: plan::Share,
    pub(crate) plan: <B as ScalarRecoding<C>>::Plan,
    pub(crate) b2: Option<Points<C::G2, B>>,
    /// A, B1 and L, in this order.
    pub(crate) g1: Vec<(WitnessQuery, Points<C::G1, B>)>,
}

/// A lane's points of the sum over the quotient.
pub(crate) struct QuotientShare<C: Curve, B: ProofBackend<C>> {
    pub(crate) share: plan::Share,
    pub(crate) plan: <B as ScalarRecoding<C>>::Plan,
    pub(crate) bases: Points<C::G1, B>,
}

/// Points of a sum: on the lane, or where they came from until the sum takes them.
pub(crate) enum Points<G: Group, B: Msm<G>> {
    There(B::Bases),
    /// In memory that devices copy from at full rate.
    OnHost {
        set: usize,
        points: HostBuf<G::Point>,
    },
    Waiting {
        set: usize,
        points: Later<G::Point>,
    },
}

/// Where points are until a sum takes them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// On the lane.
    No,
    /// In a copy of their own on the host.
    OnHost,
    /// Where they came from.
    There,
}

impl<G: Group, B: Msm<G>> Points<G, B> {
    /// Those of set number `set` of a plan, loaded unless they are to wait.
    fn of(
        backend: &B,
        (lane, plan, set): (Lane, &B::Plan, usize),
        points: Stored<'_, G::Point>,
        wait: Wait,
    ) -> tandem_ops::Result<Self> {
        let Some(later) = points.later().filter(|_| wait != Wait::No) else {
            return Ok(Points::There(Msm::<G>::load(backend, lane, plan, set, points)?));
        };
        let copy = if wait == Wait::OnHost { backend.host_copy::<G::Point>(points.len()) } else { None };
        match copy {
            Some(mut copy) => {
                points.read_parallel(0, bytemuck::cast_slice_mut(&mut copy))?;
                Ok(Points::OnHost { set, points: copy })
            }
            None => Ok(Points::Waiting { set, points: later }),
        }
    }
}

/// A proving key in the memory of a backend's lanes.
pub struct ProvingKey<C: Curve, B: ProofBackend<C>> {
    pub(crate) queries: Queries,
    pub(crate) points: KeyPoints<C>,
    pub(crate) coset: Coset,
    pub(crate) schedule: Schedule,
    /// A and B; `None` of a key without matrices, whose H has powers of tau.
    pub(crate) matrices: Option<Matrices<<B as SpMv<C>>::Matrix>>,
    /// Of a key without matrices, which row each point of the domain is, for a and for b, unless they come in this order.
    pub(crate) rows: Option<[Arc<<B as Gather>::Map>; 2]>,
    pub(crate) witness: Vec<WitnessShare<C, B>>,
    pub(crate) quotient: Vec<QuotientShare<C, B>>,
    pub(crate) picks: Picks<B>,
    /// How the memory of each lane is used, where it was planned.
    pub(crate) memory: Vec<MemoryPlan>,
}

/// Which values a lane's sums are over, by the number of its share: of the last proof, as those of a circuit are the same each time.
pub(crate) struct Picks<B: Gather>(Mutex<Vec<Pick<B::Map>>>);

/// The number of a share, the wires that it is of, and the map of its own.
type Pick<M> = (usize, Arc<Vec<u32>>, Arc<M>);

impl<B: Gather> Picks<B> {
    /// The map of the values `wires[range]` of `of` for the sums of share number `share`, which lies on `lane`.
    pub(crate) fn of(
        &self,
        backend: &B,
        (share, lane): (usize, Lane),
        (wires, range): (&Arc<Vec<u32>>, Range<usize>),
        of: usize,
    ) -> tandem_ops::Result<Arc<B::Map>> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let held = lock().iter().find(|held| held.0 == share).map(|(_, wires, map)| (wires.clone(), map.clone()));
        if let Some((held, map)) = held {
            if Arc::ptr_eq(&held, wires) || held == *wires {
                return Ok(map);
            }
        }
        lock().retain(|held| held.0 != share);
        let map = Arc::new(backend.load_map(lane, &wires[range], of)?);
        lock().push((share, wires.clone(), map.clone()));
        Ok(map)
    }
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
        let matrices = Some([view.matrix_a, view.matrix_b]);
        Self::load_sections(backend, view.shape.into(), &view.points, matrices, view.sections(), layout, proofs)
    }

    /// As [`ProvingKey::load`], of a key without matrices.
    ///
    /// # Errors
    /// As [`ProvingKey::load`].
    pub fn load_powers(backend: &B, view: &PowersView<'_, C>, layout: Layout, proofs: u64) -> Result<Self> {
        view.check_sizes()?;
        Self::load_sections(backend, view.queries(), &view.points, None, view.sections(), layout, proofs)
    }

    fn load_sections(
        backend: &B,
        queries: Queries,
        points: &KeyPoints<C>,
        matrices: Option<[&SparseRows; 2]>,
        sections: Sections<'_, C>,
        layout: Layout,
        proofs: u64,
    ) -> Result<Self> {
        let check = || match matrices {
            Some(_) => check_single_points(points),
            None => check_powers_single_points(points),
        };
        // The one keeps threads of the host busy, the other the link, and the key is there when both have ended well.
        let load = || Self::load_unchecked(backend, queries, points, matrices, sections, layout, proofs);
        let (loaded, checked) = rayon::join(load, check);
        checked.and(loaded)
    }

    /// As [`ProvingKey::load_sections`], but for the points that belong to no wire.
    fn load_unchecked(
        backend: &B,
        queries: Queries,
        points: &KeyPoints<C>,
        matrices: Option<[&SparseRows; 2]>,
        sections: Sections<'_, C>,
        layout: Layout,
        proofs: u64,
    ) -> Result<Self> {
        let lanes = backend.lanes();
        if let Some(wanted) = layout.lanes().filter(|&wanted| wanted != lanes) {
            let reason = format!("a layout for {wanted} lanes; the device has {lanes}");
            return Err(tandem_ops::Error::invalid("load key", reason).into());
        }
        if matrices.is_none() {
            layout.check_any_system("bellperson, without matrices")?;
        }
        let schedule = plan::schedule(C::ID, queries, lanes, layout);
        let memory = match matrices {
            Some(matrices) if schedule.points_on.is_some() => two_lane_plans::<C, B>(backend, queries, matrices),
            None => memory_plans::<C, B>(backend, queries, &schedule, &sections, proofs > 1),
            Some(_) => Vec::new(),
        };
        let waits = |lane: Lane| memory.get(lane.0).is_some_and(|plan| !plan.points_stay);
        if let Some(plan) = memory.iter().find(|plan| !plan.points_stay && !plan.fits()) {
            let device = backend.info().lane_names.get(plan.lane.0).cloned().unwrap_or_default();
            let (wanted, free) = (plan.peak(), plan.limit);
            return Err(tandem_ops::Error::OutOfMemory { op: "plan", device, wanted, free }.into());
        }
        // A file's are else read, compared with their hashes and decoded by each proof.
        let waiting: usize =
            (0..lanes).map(Lane).filter(|lane| waits(*lane)).map(|lane| all_bytes::<C>(&schedule, lane)).sum();
        let has_room = proofs > 1 && waiting as u64 <= tandem_ops::memory::host().free / 2;
        let wait = |lane| match (waits(lane), has_room) {
            (false, _) => Wait::No,
            (true, true) => Wait::OnHost,
            (true, false) => Wait::There,
        };
        let pieces = |lane: Lane, wires| memory.get(lane.0).map_or(1, |plan| plan.pieces_of(wires));
        let schedule = schedule.in_pieces(pieces);
        backend.expect_uploads_to_all(&schedule.whole);
        let rows = match matrices {
            Some(_) => None,
            None => rows_of::<C>(queries.shape.domain)?,
        };
        let map =
            |lane| backend.load_map(lane, rows.as_deref().unwrap_or_default(), queries.shape.domain).map(Arc::new);
        let (on_a, on_b) = (schedule.chains.a, schedule.chains.b);
        let both = || -> Result<_> {
            let of_a = map(on_a)?;
            Ok([of_a.clone(), if on_b == on_a { of_a } else { map(on_b)? }])
        };
        let maps = rows.is_some().then(both).transpose()?;
        drop(rows);
        let matrices = matrices.map(|both| Matrices::of::<C, B>(backend, &schedule, both)).transpose()?;
        backend.synchronize()?;

        let before = backend.info().free_bytes;
        let rooms = |backend: &B| -> Vec<u64> {
            let free = backend.info().free_bytes;
            let of_lane = |i: usize| match (memory.get(i), free.get(i), before.get(i)) {
                (Some(plan), Some(&free), Some(&before)) if plan.fits() => {
                    plan.point_room().saturating_sub(before.saturating_sub(free))
                }
                (_, Some(&free), _) => plan::point_budget_bytes(free, queries, schedule.scalars(Lane(i))),
                _ => 0,
            };
            (0..lanes).map(of_lane).collect()
        };
        let working = |lane: Lane| plan::working_set(queries, schedule.scalars(lane));
        // Points over the quotient come first: there are fewer of them, and their scalars are all of full size, so that what they
        // take is spent best. The others have in any case their share, or what their plain tables take.
        let room = rooms(backend);
        let quotient = schedule
            .quotient
            .iter()
            .map(|share| {
                let bytes = |share: &plan::Share| share.range.len() * size_of::<P1<C>>();
                let home = schedule.home(share.lane);
                let of_lane = schedule.quotient.iter().filter(|other| schedule.home(other.lane) == home);
                let (all, others) = (of_lane.map(bytes).sum(), lane_bytes::<C>(&schedule, home));
                let room = room[home.0];
                let beside = room.saturating_sub(PLAIN_LEVELS.saturating_mul(others as u64));
                let of_all = beside.max(plan::part_of(room, all, all + others));
                let memory_bytes = plan::part_of(of_all, bytes(share), all);
                let worth = Worth { home, memory_bytes, uses: proofs, wait: wait(share.lane) };
                Self::load_quotient(backend, sections.h, share, worth)
                    .map_err(|e| whole_need(e, backend, home, memory_bytes, working(home)))
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
                let home = schedule.home(lane);
                let memory_bytes = plan::part_of(room[home.0], own, lane_bytes::<C>(&schedule, home));
                let worth = Worth { home, memory_bytes, uses: proofs, wait: wait(lane) };
                Self::load_witness(backend, sections, sums, worth)
                    .map_err(|e| whole_need(e, backend, home, memory_bytes, working(home)))
            })
            .collect::<Result<_>>()?;
        backend.synchronize()?;
        let (points, coset, picks) = (points.clone(), coset::<C>(queries.shape.domain), Picks(Mutex::default()));
        Ok(Self { queries, points, coset, schedule, matrices, rows: maps, witness, quotient, picks, memory })
    }

    fn load_witness(
        backend: &B,
        sections: Sections<'_, C>,
        sums: &plan::LaneQueries,
        Worth { home, memory_bytes, uses, wait }: Worth,
    ) -> Result<WitnessShare<C, B>> {
        let waits = wait != Wait::No;
        let plan::LaneQueries { wires, share, sums: parts } = sums;
        let sets = parts.iter().map(|p| p.set).collect();
        let do_wait = sections.b2.may_wait() && [sections.a, sections.b1, sections.l].iter().all(Stored::may_wait);
        let do_wait = waits || do_wait && backend.info().kind != DeviceKind::Cuda;
        let memory_bytes = if do_wait { u64::MAX } else { memory_bytes };
        let uses = if waits { 1 } else { uses };
        let request = MsmRequest { scalars: share.range.len(), sets, memory_bytes, uses, pipelined: true };
        let plan = ScalarRecoding::<C>::plan(backend, share.lane, &request)?;
        let (mut b2, mut g1) = (None, Vec::new());
        for (set, part) in parts.iter().enumerate() {
            let at = (home, &plan, set);
            let load = |points: Stored<'_, P1<C>>| {
                Points::<C::G1, B>::of(backend, at, points.slice(part.points.clone()), wait)
            };
            match part.sum {
                WitnessQuery::B2 => {
                    let points = sections.b2.slice(part.points.clone());
                    b2 = Some(Points::<C::G2, B>::of(backend, at, points, wait)?);
                }
                WitnessQuery::A => g1.push((part.sum, load(sections.a)?)),
                WitnessQuery::B1 => g1.push((part.sum, load(sections.b1)?)),
                WitnessQuery::L => g1.push((part.sum, load(sections.l)?)),
            }
        }
        Ok(WitnessShare { wires: *wires, share: share.clone(), plan, b2, g1 })
    }

    fn load_quotient(
        backend: &B,
        h: Stored<'_, P1<C>>,
        share: &plan::Share,
        Worth { home, memory_bytes, uses, wait }: Worth,
    ) -> Result<QuotientShare<C, B>> {
        let waits = wait != Wait::No;
        let scalars = share.range.len();
        let sets = vec![MsmSet { g2: false, first: 0, points: scalars }];
        let do_wait = waits || h.may_wait() && backend.info().kind != DeviceKind::Cuda;
        let memory_bytes = if do_wait { u64::MAX } else { memory_bytes };
        let uses = if waits { 1 } else { uses };
        let request = MsmRequest { scalars, sets, memory_bytes, uses, pipelined: true };
        let plan = ScalarRecoding::<C>::plan(backend, share.lane, &request)?;
        let points = h.slice(share.range.clone());
        let bases = Points::<C::G1, B>::of(backend, (home, &plan, 0), points, wait)?;
        Ok(QuotientShare { share: share.clone(), plan, bases })
    }

    /// Its sizes.
    pub fn shape(&self) -> Shape {
        self.queries.shape
    }

    /// Which lane does what.
    pub fn plan(&self) -> &Schedule {
        &self.schedule
    }

    /// How the memory of each lane is used: of keys without matrices, and by the blueprint.
    pub fn memory(&self) -> &[MemoryPlan] {
        &self.memory
    }
}

/// Multiples of a point in a table that has one for each window of a scalar, where windows have 17 bits or more.
const PLAIN_LEVELS: u64 = 16;

/// What tables of a group of points may cost.
struct Worth {
    /// Where the points lie.
    home: Lane,
    /// Nothing bounds it where the points may wait: a sum brings as many of them into memory at a time as there is room for.
    memory_bytes: u64,
    uses: u64,
    /// Whether the points are brought to the lane by each sum, and from where.
    wait: Wait,
}

/// How each lane's memory is used, by what is free of it. Points of the CPU's own wait within its sums, where they may.
fn memory_plans<C: Curve, B: ProofBackend<C>>(
    backend: &B,
    queries: Queries,
    schedule: &Schedule,
    Sections { a, b1, b2, l, h }: &Sections<'_, C>,
    may_cut: bool,
) -> Vec<MemoryPlan> {
    let info = backend.info();
    let may_wait = b2.may_wait() && [a, b1, l, h].iter().all(|section| section.may_wait());
    let may_wait = may_wait && info.kind != DeviceKind::Cpu;
    let points = PointBytes { g1: size_of::<P1<C>>() as u64, g2: size_of::<P2<C>>() as u64 };
    let sum = |scalars, g2, memory| ScalarRecoding::<C>::sum_bytes(backend, scalars, g2, memory);
    let of = Planned { queries, schedule, points, sum: &sum, may_wait, may_cut };
    info.free_bytes.iter().enumerate().map(|(lane, &free)| plan::memory_plan(&of, (Lane(lane), free))).collect()
}

/// How the memory of both lanes of the blueprint is used, by what is free of it.
fn two_lane_plans<C: Curve, B: ProofBackend<C>>(
    backend: &B,
    queries: Queries,
    matrices: [&SparseRows; 2],
) -> Vec<MemoryPlan> {
    let points = PointBytes { g1: size_of::<P1<C>>() as u64, g2: size_of::<P2<C>>() as u64 };
    let free = backend.info().free_bytes;
    let limits = std::array::from_fn(|lane| free.get(lane).copied().unwrap_or(0));
    // The second lane sums.
    let sum = |scalars, g2| ScalarRecoding::<C>::sum_bytes(backend, scalars, g2, limits[1]).all();
    // With the order in which the rows are done.
    let matrices = matrices.iter().map(|rows| rows.bytes() + 4 * rows.rows() as u64).sum();
    plan::blueprint_memory(queries, points, matrices, &sum, limits).into()
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
    schedule.witness.iter().filter(|w| schedule.home(w.share.lane) == lane).map(group_bytes::<C>).sum()
}

/// Those of all of a lane's sums.
fn all_bytes<C: Curve>(schedule: &Schedule, lane: Lane) -> usize {
    let quotient = schedule.quotient.iter().filter(|share| schedule.home(share.lane) == lane);
    lane_bytes::<C>(schedule, lane) + quotient.map(|share| share.range.len() * size_of::<P1<C>>()).sum::<usize>()
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
