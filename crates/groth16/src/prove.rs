//! The proof.

use crate::blinding::Terms;
use crate::finish::{Ending, Part, Sums};
use crate::join::join;
use crate::key::{Points, QuotientShare};
use crate::plan::{TransformPlacement, WireSet, WitnessQuery};
use crate::quotient::{quotient, Dealt};
use crate::{Blinding, Error, Evaluations, HostSpan, PreparedKey, ProvingKey, Request, Result, Shape, Witness, P1, P2};
use ark_ec::CurveGroup;
use ark_ff::Field;
use rayon::prelude::*;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use tandem_ops::timeline::UPLOADS;
use tandem_ops::{
    Arriving, Backend, Buffer, Canonical, Curve, Group, HostBuf, Lane, Mont, Msm, Pending, ProofBackend,
    ScalarRecoding, Scalars, Stored, VecOps,
};
use tandem_proof::{settled, Form};

/// A proof.
#[derive(Debug, Clone, Copy)]
pub struct Proof<C: Curve> {
    /// A in G1.
    pub a: P1<C>,
    /// B in G2.
    pub b: P2<C>,
    /// C in G1.
    pub c: P1<C>,
}

impl<C: Curve> Proof<C> {
    /// A, B and C on the wire, one after the other.
    pub fn to_bytes(&self) -> Vec<u8> {
        [bytemuck::bytes_of(&self.a), bytemuck::bytes_of(&self.b), bytemuck::bytes_of(&self.c)].concat()
    }

    /// The proof with these bytes, not checked; `None` for another number of them.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (a, rest) = bytes.split_at_checked(size_of::<P1<C>>())?;
        let (b, c) = rest.split_at_checked(size_of::<P2<C>>())?;
        Some(Proof {
            a: bytemuck::pod_read_unaligned(a),
            b: bytemuck::pod_read_unaligned(b),
            c: bytemuck::try_pod_read_unaligned(c).ok()?,
        })
    }
}

impl<C: Curve> PartialEq for Proof<C> {
    fn eq(&self, other: &Self) -> bool {
        self.a == other.a && self.b == other.b && self.c == other.c
    }
}

/// A witness on buffers of a key's lanes.
struct Uploaded<C: Curve, B: Backend, W> {
    witness: Witness<C>,
    wires: Vec<W>,
    /// Of a key without matrices, the sides of the constraints.
    sides: Option<Sides<B>>,
    host: Vec<HostSpan>,
}

/// Left and right factors of the rows, with zeros up to the end of the domain, on their way.
pub(crate) type Sides<B> = [Arriving<<B as Backend>::Buf<Mont>>; 2];

/// What a proof works with.
type Wires<C, B> = Uploaded<C, B, <B as Backend>::Buf<Canonical>>;

/// Values on their way to a lane, in the form in which the witness has them.
enum Coming<B: Backend> {
    Canonical(Arriving<B::Buf<Canonical>>),
    Mont(Arriving<B::Buf<Mont>>),
}

/// A witness on its way to a key's lanes, for one proof. Wiped when dropped.
pub struct Staged<C: Curve, B: ProofBackend<C>>(Uploaded<C, B, Coming<B>>);

impl<C: Curve, B: ProofBackend<C>> ProvingKey<C, B> {
    /// Fails unless the witness is of the key's circuit, and brings along what the key asks for.
    fn check_witness(&self, witness: &Witness<C>) -> Result<()> {
        let refuse = |problem: String| Err(Error::Witness(problem));
        let (has, Shape { variables, publics, domain }) = (witness.len(), self.shape());
        if has != variables {
            return refuse(format!("the witness has {has} values; the key's circuit has {variables} wires"));
        }
        if self.matrices.is_some() {
            return Ok(());
        }
        let Some(evaluations) = witness.evaluations() else {
            return refuse(
                "the key has no matrices: name the circuit that it was made of, too (tandem prove --r1cs)".into(),
            );
        };
        let rows = evaluations.a().len();
        if rows > domain {
            return refuse(format!("{rows} rows; the key's domain has {domain}"));
        }
        let named = [("A", evaluations.named_in_a(), self.queries.a), ("B", evaluations.named_in_b(), self.queries.b)];
        for (name, wires, points) in named {
            if wires.len() != points {
                return refuse(format!("{} wires are named in {name}; the key has {points} points there", wires.len()));
            }
            if wires.last().is_some_and(|&last| last as usize >= variables) {
                return refuse(format!("a wire that is named in {name} is none of the circuit's {variables}"));
            }
        }
        // Wires ascend, so that the first so many are the public ones where the last of these is.
        if evaluations.named_in_a().get(publics).is_none_or(|&last| last as usize != publics) {
            return refuse(format!("A names not all of the {} public wires and the constant", publics));
        }
        Ok(())
    }
}

/// Uploads a witness for a proof that comes later, where the key's plan has room for it beside a proof. Other proofs with the key may be under way meanwhile: the upload runs beside them, and
/// their spans are not this one's. Each lane takes all of it over its own link. An exchange of pieces between lanes, enqueued beside a
/// proof, could come in another order on one lane than on another, so that each would wait for the other.
///
/// # Errors
/// [`Error::Witness`] for one of another length; [`Error::Backend`]; [`Error::Interrupted`].
pub fn stage<C: Curve, B: ProofBackend<C>>(
    backend: &B,
    key: &ProvingKey<C, B>,
    witness: &Witness<C>,
    request: &Request<'_>,
) -> Result<Staged<C, B>> {
    if let Some(plan) = key.memory.iter().find(|plan| plan.ahead.is_none()) {
        // It would take what the proof in hand was promised.
        let device = backend.info().lane_names.get(plan.lane.0).cloned().unwrap_or_default();
        let (wanted, free) = ((witness.len() * size_of::<Mont>()) as u64, 0);
        return Err(tandem_ops::Error::OutOfMemory { op: "upload ahead", device, wanted, free }.into());
    }
    let beside = |lanes: &[Lane], form: Form<'_>| {
        let of_lane = |&lane| match form {
            Form::Canonical(values) => backend.upload_beside(lane, values, values.len()).map(Coming::Canonical),
            Form::Mont(values) => backend.upload_beside(lane, values, values.len()).map(Coming::Mont),
        };
        Ok(lanes.iter().map(of_lane).collect::<tandem_ops::Result<_>>()?)
    };
    uploaded(backend, key, witness, request, UPLOADS, beside).map(Staged)
}

/// The witness as `upload` brings it to the lanes that want all of it, in one of their queues, and the sides of the constraints that come with
/// it, in any case beside what the lanes do.
fn uploaded<C: Curve, B: ProofBackend<C>, W>(
    backend: &B,
    key: &ProvingKey<C, B>,
    witness: &Witness<C>,
    request: &Request<'_>,
    queue: usize,
    upload: impl FnOnce(&[Lane], Form<'_>) -> Result<Vec<W>>,
) -> Result<Uploaded<C, B, W>> {
    key.check_witness(witness)?;
    request.check()?;
    let (lanes, mut host) = (&key.schedule.whole, Vec::new());
    let wires = HostSpan::of(&mut host, UPLOAD, || {
        let spans: Vec<_> = lanes.iter().map(|&lane| request.timeline.begin_in(lane, queue, UPLOAD)).collect();
        let wires = upload(lanes, witness.form());
        spans.into_iter().for_each(|span| request.timeline.end(span));
        wires
    })?;
    lanes.iter().for_each(|&lane| request.progress.enqueued(UPLOAD, lane));
    let side = |lane, name, values: &Arc<HostBuf<Mont>>| {
        let span = request.timeline.begin_in(lane, UPLOADS, name);
        let side = backend.upload_beside(lane, values, key.shape().domain)?;
        request.timeline.end(span);
        request.progress.enqueued(name, lane);
        Result::Ok(side)
    };
    let sides = match witness.evaluations().filter(|_| key.matrices.is_none()) {
        Some(evaluations) => {
            let ([a, b], chains) = (evaluations.shared(), key.schedule.chains);
            Some([side(chains.a, "upload a", a)?, side(chains.b, "upload b", b)?])
        }
        None => None,
    };
    Ok(Uploaded { witness: witness.clone(), wires, sides, host })
}

/// Uploads the witness of a proof that begins with it, over all links at once.
fn upload<C: Curve, B: ProofBackend<C>>(
    backend: &B,
    key: &ProvingKey<C, B>,
    witness: &Witness<C>,
    request: &Request<'_>,
) -> Result<Wires<C, B>> {
    let to_all = |lanes: &[Lane], form: Form<'_>| match form {
        Form::Canonical(values) => Ok(backend.upload_to_all(lanes, values, &request.timeline)?),
        Form::Mont(values) => {
            let came = backend.upload_to_all(lanes, values, &request.timeline)?;
            came.into_iter().map(|values| integers(backend, values, request)).collect()
        }
    };
    uploaded(backend, key, witness, request, 0, to_all)
}

/// Elements as the integers that sums take. Lanes do that: they convert in a hundredth of the time in which the values come.
fn integers<C: Curve, B: ProofBackend<C>>(
    backend: &B,
    values: B::Buf<Mont>,
    request: &Request<'_>,
) -> Result<B::Buf<Canonical>> {
    let lane = values.lane();
    request.enqueue(lane, "convert witness", || {
        let mut integers = backend.alloc(lane, values.len())?;
        VecOps::<C>::to_canonical(backend, &values, &mut integers)?;
        Ok(integers)
    })
}

const UPLOAD: &str = "upload witness";

/// Makes a proof. It is not verified here, and a witness that does not satisfy the circuit is not noticed: whoever
/// returns proofs calls [`prove_verified`], or [`PreparedKey::verify`] on each. One that is not valid may tell of its witness.
///
/// # Errors
/// [`Error::Witness`] for one of another length; [`Error::Backend`]; [`Error::Interrupted`].
pub fn prove<C: Curve, B: ProofBackend<C>>(
    backend: &B,
    key: &ProvingKey<C, B>,
    witness: &Witness<C>,
    blinding: &Blinding<C>,
    request: &Request<'_>,
) -> Result<Proof<C>> {
    let made = || {
        let Begun { sums, terms, mut host, .. } =
            begin(backend, key, blinding, request, || upload(backend, key, witness, request))?;
        let ending = Ending { terms, blinding, join: join(backend, key, blinding, request)? };
        let proof = sums.finish(ending, request, &mut host)?;
        backend.synchronize()?;
        Ok(proof)
    };
    settled(backend, made())
}

/// A proof that has been verified, and how the host's time was spent.
pub type Made<C> = tandem_proof::Made<Proof<C>>;

/// Makes a proof and verifies it, for the most part while the lanes still work on it. `verifier` is of the same key. A request that
/// is cancelled ends within one primitive; the backend and the key serve the next one as if it had not been made.
///
/// # Errors
/// As [`prove`].
pub fn prove_verified<C: Curve, B: ProofBackend<C>>(
    backend: &B,
    key: &ProvingKey<C, B>,
    verifier: &PreparedKey<C>,
    witness: &Witness<C>,
    blinding: &Blinding<C>,
    request: &Request<'_>,
) -> Result<Made<C>> {
    make(backend, key, verifier, blinding, request, || upload(backend, key, witness, request))
}

/// As [`prove_verified`], with a witness that [`stage`] has uploaded for this key, on this backend.
///
/// # Errors
/// As [`prove`]; a witness that lies on other lanes than the key wants.
pub fn prove_staged<C: Curve, B: ProofBackend<C>>(
    backend: &B,
    key: &ProvingKey<C, B>,
    verifier: &PreparedKey<C>,
    staged: Staged<C, B>,
    blinding: &Blinding<C>,
    request: &Request<'_>,
) -> Result<Made<C>> {
    let Staged(staged) = staged;
    let lanes = staged.wires.iter().map(|coming| match coming {
        Coming::Canonical(buf) => buf.lane(),
        Coming::Mont(buf) => buf.lane(),
    });
    if staged.witness.len() != key.shape().variables || !lanes.eq(key.schedule.whole.iter().copied()) {
        return Err(tandem_ops::Error::invalid("prove", "the witness was staged for another key").into());
    }
    make(backend, key, verifier, blinding, request, || {
        let Uploaded { witness, wires, sides, host } = staged;
        let arrived = |coming| match coming {
            Coming::Canonical(buf) => Ok(request.arrived(backend, buf)?),
            Coming::Mont(buf) => integers(backend, request.arrived(backend, buf)?, request),
        };
        let wires = wires.into_iter().map(arrived).collect::<Result<_>>()?;
        Ok(Uploaded { witness, wires, sides, host })
    })
}

fn make<C: Curve, B: ProofBackend<C>>(
    backend: &B,
    key: &ProvingKey<C, B>,
    verifier: &PreparedKey<C>,
    blinding: &Blinding<C>,
    request: &Request<'_>,
    wires: impl FnOnce() -> Result<Wires<C, B>>,
) -> Result<Made<C>> {
    let made = || {
        let Begun { sums, terms, witness, mut host } = begin(backend, key, blinding, request, wires)?;
        let publics = &witness.publics(key.shape().publics);
        let ending = Ending { terms, blinding, join: join(backend, key, blinding, request)? };
        let (proof, verdict) = sums.finish_verified(backend, ending, (verifier, publics), request, &mut host)?;
        Ok(Made { proof, verdict, ended: Instant::now(), host })
    };
    settled(backend, made())
}

/// A proof of which everything is enqueued.
struct Begun<C: Curve> {
    sums: Sums<C>,
    terms: Terms<C>,
    witness: Witness<C>,
    host: Vec<HostSpan>,
}

/// Enqueues the proof. What of it depends on the blinding alone is computed meanwhile: a small proof's sums are there
/// before it would be else.
fn begin<C: Curve, B: ProofBackend<C>>(
    backend: &B,
    key: &ProvingKey<C, B>,
    blinding: &Blinding<C>,
    request: &Request<'_>,
    wires: impl FnOnce() -> Result<Wires<C, B>>,
) -> Result<Begun<C>> {
    request.progress.start("prove", key_units(key));
    let terms = OnceLock::new();
    let (sums, witness, host) = rayon::in_place_scope(|scope| {
        scope.spawn(|_| _ = terms.set(blinding.terms(&key.points)));
        let Uploaded { witness, wires, sides, mut host } = wires()?;
        let of_witness = (witness.evaluations(), sides);
        let sums = HostSpan::of(&mut host, "enqueue", || enqueue(backend, key, wires, of_witness, request))?;
        Result::Ok((sums, witness, host))
    })?;
    let Some(terms) = terms.into_inner() else { unreachable!("the scope ended before its task") };
    Ok(Begun { sums, terms, witness, host })
}

/// Enqueues the whole proof: the transforms, the MSMs over the witness, then those over the quotient.
///
/// Where other lanes wait for the transforms' results, these come first. Else they come after the MSMs over the witness: the reduction of
/// an MSM cannot overlap a kernel that fills every multiprocessor (docs/design/msm.md), and transforms do not.
fn enqueue<C: Curve, B: ProofBackend<C>>(
    backend: &B,
    key: &ProvingKey<C, B>,
    wires: Vec<B::Buf<Canonical>>,
    (evaluations, sides): (Option<&Evaluations<C>>, Option<Sides<B>>),
    request: &Request<'_>,
) -> Result<Sums<C>> {
    // A thread for each lane, so that none waits until another has been told all it has to do.
    let sum_witness = |wires: &[_], lanes: &[Lane]| -> Result<Sums<C>> {
        let of_lane = |&lane: &Lane| sum_witness(backend, key, wires, evaluations, lane, request);
        let mut sums = Sums::default();
        for of_lane in lanes.par_iter().map(of_lane).collect::<Vec<_>>() {
            sums.append(of_lane?);
        }
        Ok(sums)
    };
    let quotient = |wires: &[_]| quotient(backend, key, wires, sides, request);
    let TransformPlacement { a, b, c_inverse, c_forward } = key.schedule.chains;
    let all = lanes_of(key.witness.iter().map(|part| part.share.lane));
    let (transforming, summing): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|lane| [a, b, c_inverse, c_forward].contains(lane));
    let others_wait = key.schedule.chains != TransformPlacement::on(a)
        || key.quotient.iter().any(|part| part.share.lane != a)
        || key.schedule.points_on.is_some();
    let mut wires = wires;
    if let (Some(home), Some(first)) = (key.schedule.points_on, wires.first()) {
        // Before the first lane is told more: what reads its memory waits for all that it was told.
        let whole = request.copied(backend, first, 0..first.len(), home)?;
        wires.push(whole);
    }
    let wires = Arc::new(wires);
    let (own, for_others) = (wires.clone(), wires);
    let (first, others) = rayon::join(
        move || {
            if others_wait {
                let quotient = quotient(&own)?;
                return Result::Ok((sum_witness(&own, &transforming)?, quotient));
            }
            let sums = sum_witness(&own, &transforming)?;
            // Where the sides of the rows came with the witness, the transforms' memory is what it took.
            let own = key.matrices.is_some().then_some(own);
            Ok((sums, quotient(own.as_deref().map_or(&[], Vec::as_slice))?))
        },
        move || sum_witness(&for_others, &summing),
    );
    let ((of_transforming, quotient), mut sums) = (first?, others?);
    sums.append(of_transforming);
    let mut shares: Vec<(Lane, Vec<_>)> =
        lanes_of(key.quotient.iter().map(|part| part.share.lane)).into_iter().map(|lane| (lane, Vec::new())).collect();
    for (part, share) in key.quotient.iter().zip(quotient) {
        if let Some((_, of_lane)) = shares.iter_mut().find(|(lane, _)| *lane == part.share.lane) {
            of_lane.push((part, share));
        }
    }
    let of_lane = |(_, shares)| sum_quotient(backend, shares, request);
    for of_lane in shares.into_par_iter().map(of_lane).collect::<Vec<_>>() {
        sums.c.extend(of_lane?);
    }
    Ok(sums)
}

/// Each lane once, in order.
fn lanes_of(lanes: impl Iterator<Item = Lane>) -> Vec<Lane> {
    let mut lanes: Vec<Lane> = lanes.collect();
    lanes.sort_unstable();
    lanes.dedup();
    lanes
}

/// The sums over a lane's shares of the quotient.
fn sum_quotient<C: Curve, B: ProofBackend<C>>(
    backend: &B,
    shares: Vec<(&QuotientShare<C, B>, Dealt<B>)>,
    request: &Request<'_>,
) -> Result<Vec<Part<<C::G1 as Group>::Ark>>> {
    let mut bases = Bringing::new(backend, request);
    let sum = |(part, share): (&QuotientShare<C, B>, Dealt<B>)| {
        let lane = part.share.lane;
        let share = share.made::<C>(backend, request)?;
        let (digits, values) = request.enqueue(lane, "quotient digits", || {
            let values = share.values(backend, request)?;
            Ok((ScalarRecoding::<C>::recode(backend, &part.plan, Scalars::Mont(&values))?, values))
        })?;
        drop(values);
        let sum = bases.sum::<C::G1>("MSM H", (lane, &part.plan), &part.bases, &digits)?;
        Ok(Part::new(sum, units::<C::G1>(part.share.range.len()), request))
    };
    shares.into_iter().map(sum).collect()
}

/// The buffer of `wires` on `lane`, if there is one.
pub(crate) fn on<B: Backend>(wires: &[B::Buf<Canonical>], lane: Lane) -> Option<&B::Buf<Canonical>> {
    wires.iter().find(|buf| buf.lane() == lane)
}

/// The sums over the witness on a lane, which are those that it has points of.
fn sum_witness<C: Curve, B: ProofBackend<C>>(
    backend: &B,
    key: &ProvingKey<C, B>,
    wires: &[B::Buf<Canonical>],
    evaluations: Option<&Evaluations<C>>,
    lane: Lane,
    request: &Request<'_>,
) -> Result<Sums<C>> {
    let mut sums = Sums::default();
    let mut bring = Bringing::new(backend, request);
    for (number, part) in key.witness.iter().enumerate().filter(|(_, part)| part.share.lane == lane) {
        let range = part.share.range.clone();
        let own;
        let named = match part.wires {
            WireSet::All => None,
            WireSet::OfA => evaluations.map(Evaluations::named_in_a),
            WireSet::OfB => evaluations.map(Evaluations::named_in_b),
        };
        let scalars = match (named, on::<B>(wires, lane), wires.first()) {
            (Some(named), Some(whole), _) => {
                own = request.enqueue(lane, "pick wires", || {
                    let map = key.picks.of(backend, (number, lane), (named, range.clone()), whole.len())?;
                    let mut picked = backend.alloc(lane, range.len())?;
                    backend.gather(&map, whole, &mut picked)?;
                    Ok(picked)
                })?;
                &own
            }
            (None, Some(whole), _) if range.len() == whole.len() => whole,
            (None, Some(from), _) | (None, None, Some(from)) => {
                own = request.copied(backend, from, range, lane)?;
                &own
            }
            _ => return Err(tandem_ops::Error::invalid("prove", "no lane has the witness").into()),
        };
        let digits = request.enqueue(lane, "witness digits", || {
            ScalarRecoding::<C>::recode(backend, &part.plan, Scalars::Canonical(scalars))
        })?;
        // G2 takes longest to put together, and the verifier waits for A and B, so that B2 goes first.
        let points = part.share.range.len();
        if let Some(bases) = &part.b2 {
            let sum = bring.sum::<C::G2>("MSM B2", (lane, &part.plan), bases, &digits)?;
            sums.b2.push(Part::new(sum, units::<C::G2>(points), request));
        }
        for (sum, bases) in &part.g1 {
            let pending = bring.sum::<C::G1>(name(*sum), (lane, &part.plan), bases, &digits)?;
            let part = Part::new(pending, units::<C::G1>(points), request);
            match sum {
                WitnessQuery::A => sums.a.push(part),
                WitnessQuery::B1 => sums.b1.push(part),
                WitnessQuery::L | WitnessQuery::B2 => sums.c.push(part),
            }
        }
    }
    Ok(sums)
}

/// Points on their way to sums that take them from where they came from.
struct Bringing<'a, B: Backend> {
    backend: &'a B,
    request: &'a Request<'a>,
    /// What ends when the sums over the last of them, lane by lane, have been enqueued and done.
    marks: VecDeque<(Lane, Pending<Vec<Canonical>>)>,
}

/// Of one lane, points that are summed and points on their way.
const AT_ONCE: usize = 2;

impl<'a, B: Backend> Bringing<'a, B> {
    fn new(backend: &'a B, request: &'a Request<'a>) -> Self {
        Bringing { backend, request, marks: VecDeque::new() }
    }

    /// Enqueues a sum. Where its points wait, they are brought to the lane beside the sum before, whose points are gone before those of the next
    /// sum come.
    fn sum<G: Group>(
        &mut self,
        name: &'static str,
        (lane, plan): (Lane, &B::Plan),
        points: &Points<G, B>,
        digits: &B::Entries,
    ) -> Result<Pending<G::Ark>>
    where
        B: Msm<G>,
    {
        let Self { backend, request, .. } = *self;
        let sum = |bases: &B::Bases| Msm::<G>::msm(backend, bases, digits, &request.timeline);
        let (set, points) = match points {
            Points::There(bases) => return request.enqueue(lane, name, || sum(bases)),
            Points::Waiting { set, points } => (*set, points.stored()),
            Points::OnHost { set, points } => (*set, Stored::from(&points[..])),
        };
        while self.marks.iter().filter(|mark| mark.0 == lane).count() >= AT_ONCE {
            let first = self.marks.iter().position(|mark| mark.0 == lane).and_then(|at| self.marks.remove(at));
            first.map_or(Ok(Vec::new()), |(_, mark)| mark.wait())?;
        }
        request.check()?;
        let span = request.timeline.begin_in(lane, UPLOADS, "upload points");
        let bases = Msm::<G>::load(backend, lane, plan, set, points)?;
        request.timeline.end(span);
        let (pending, mark) = request.enqueue(lane, name, || {
            let pending = sum(&bases)?;
            drop(bases);
            Ok((pending, backend.download(&backend.alloc::<Canonical>(lane, 1)?)?))
        })?;
        self.marks.push_back((lane, mark));
        Ok(pending)
    }
}

/// What a sum counts in a proof's progress: a point of G1 one, a point of G2 three, as products of its coordinates take three of G1's.
fn units<G: Group>(points: usize) -> u64 {
    let degree = <<G::Ark as CurveGroup>::BaseField as Field>::extension_degree();
    points as u64 * (degree * (degree + 1) / 2)
}

/// What all sums of a proof count.
fn key_units<C: Curve, B: ProofBackend<C>>(key: &ProvingKey<C, B>) -> u64 {
    let witness = key.witness.iter().map(|part| {
        let points = part.share.range.len();
        part.b2
            .iter()
            .map(|_| units::<C::G2>(points))
            .chain(part.g1.iter().map(|_| units::<C::G1>(points)))
            .sum::<u64>()
    });
    witness.chain(key.quotient.iter().map(|part| units::<C::G1>(part.share.range.len()))).sum()
}

fn name(sum: WitnessQuery) -> &'static str {
    match sum {
        WitnessQuery::B2 => "MSM B2",
        WitnessQuery::A => "MSM A",
        WitnessQuery::B1 => "MSM B1",
        WitnessQuery::L => "MSM L",
    }
}
