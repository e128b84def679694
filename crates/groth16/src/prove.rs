//! The proof.

use crate::blinding::Terms;
use crate::finish::{Part, Sums};
use crate::plan::{TransformPlacement, WitnessQuery};
use crate::{Blinding, Error, HostSpan, PreparedKey, ProvingKey, Request, Result, Witness, P1, P2};
use ark_ec::CurveGroup;
use ark_ff::Field;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use tandem_ops::timeline::UPLOADS;
use tandem_ops::{
    Arriving, Backend, Buffer, Canonical, Coset, Curve, Direction, Group, HostBuf, Lane, Mont, Msm, NttOp, Order,
    ProofBackend, ScalarRecoding, Scalars,
};
use tandem_proof::settled;

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
struct Uploaded<C: Curve, W> {
    witness: Witness<C>,
    wires: Vec<W>,
    host: Vec<HostSpan>,
}

/// What a proof works with.
type Wires<C, B> = Uploaded<C, <B as Backend>::Buf<Canonical>>;

/// A witness on its way to a key's lanes, for one proof. Wiped when dropped.
pub struct Staged<C: Curve, B: ProofBackend<C>>(Uploaded<C, Arriving<B::Buf<Canonical>>>);

/// Uploads a witness for a proof that comes later. Other proofs with the key may be under way meanwhile: the upload runs beside them, and
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
    let beside = |lanes: &[Lane], values: &Arc<HostBuf<Canonical>>| {
        lanes.iter().map(|&lane| backend.upload_beside(lane, values)).collect()
    };
    uploaded(key, witness, request, UPLOADS, beside).map(Staged)
}

/// The witness as `upload` brings it to the lanes that want all of it, in one of their queues.
fn uploaded<C: Curve, B: ProofBackend<C>, W>(
    key: &ProvingKey<C, B>,
    witness: &Witness<C>,
    request: &Request<'_>,
    queue: usize,
    upload: impl FnOnce(&[Lane], &Arc<HostBuf<Canonical>>) -> tandem_ops::Result<Vec<W>>,
) -> Result<Uploaded<C, W>> {
    let (has, expected) = (witness.values().len(), key.shape.variables);
    if has != expected {
        return Err(Error::Witness(format!("the witness has {has} values; the key's circuit has {expected} wires")));
    }
    request.check()?;
    let (lanes, mut host) = (&key.schedule.whole, Vec::new());
    let wires = HostSpan::of(&mut host, UPLOAD, || {
        let spans: Vec<_> = lanes.iter().map(|&lane| request.timeline.begin_in(lane, queue, UPLOAD)).collect();
        let wires = upload(lanes, witness.shared());
        spans.into_iter().for_each(|span| request.timeline.end(span));
        wires
    })?;
    lanes.iter().for_each(|&lane| request.progress.enqueued(UPLOAD, lane));
    Ok(Uploaded { witness: witness.clone(), wires, host })
}

/// Uploads the witness of a proof that begins with it, over all links at once.
fn upload<C: Curve, B: ProofBackend<C>>(
    backend: &B,
    key: &ProvingKey<C, B>,
    witness: &Witness<C>,
    request: &Request<'_>,
) -> Result<Wires<C, B>> {
    uploaded(key, witness, request, 0, |lanes, values| backend.upload_to_all(lanes, values, &request.timeline))
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
        let proof = sums.finish(terms, blinding, request, &mut host)?;
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
    let lanes = staged.wires.iter().map(|buf| buf.lane());
    if staged.witness.values().len() != key.shape.variables || !lanes.eq(key.schedule.whole.iter().copied()) {
        return Err(tandem_ops::Error::invalid("prove", "the witness was staged for another key").into());
    }
    make(backend, key, verifier, blinding, request, || {
        let Uploaded { witness, wires, host } = staged;
        let wires = wires.into_iter().map(|buf| backend.arrived(buf)).collect::<tandem_ops::Result<_>>()?;
        Ok(Uploaded { witness, wires, host })
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
        let publics = &witness.values()[1..=key.shape.publics];
        let (proof, verdict) =
            sums.finish_verified(backend, terms, (verifier, publics), blinding, request, &mut host)?;
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
        let Uploaded { witness, wires, mut host } = wires()?;
        let sums = HostSpan::of(&mut host, "enqueue", || enqueue(backend, key, wires, request))?;
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
    request: &Request<'_>,
) -> Result<Sums<C>> {
    let TransformPlacement { a, b, c_inverse, c_forward } = key.schedule.chains;
    let transforms = |lane: Lane| [a, b, c_inverse, c_forward].contains(&lane);
    let others_wait =
        key.schedule.chains != TransformPlacement::on(a) || key.quotient.iter().any(|part| part.share.lane != a);
    // Two threads, so that no lane waits until another has been told all it has to do.
    let (first, others) = rayon::join(
        || {
            if others_wait {
                let quotient = quotient(backend, key, &wires, request)?;
                Result::Ok((sum_witness(backend, key, &wires, transforms, request)?, quotient))
            } else {
                let sums = sum_witness(backend, key, &wires, transforms, request)?;
                Ok((sums, quotient(backend, key, &wires, request)?))
            }
        },
        || sum_witness(backend, key, &wires, |lane| !transforms(lane), request),
    );
    let ((of_transforming, quotient), mut sums) = (first?, others?);
    sums.append(of_transforming);
    drop(wires);
    for (part, values) in key.quotient.iter().zip(quotient) {
        let lane = part.share.lane;
        let digits = request.enqueue(lane, "quotient digits", || {
            ScalarRecoding::<C>::recode(backend, &part.plan, Scalars::Mont(&values))
        })?;
        drop(values);
        let sum = || Msm::<C::G1>::msm(backend, &part.bases, &digits, &request.timeline);
        let sum = request.enqueue(lane, "MSM H", sum)?;
        sums.c.push(Part::new(sum, units::<C::G1>(part.share.range.len()), request));
    }
    Ok(sums)
}

/// The buffer of `wires` on `lane`, if there is one.
fn on<B: Backend>(wires: &[B::Buf<Canonical>], lane: Lane) -> Option<&B::Buf<Canonical>> {
    wires.iter().find(|buf| buf.lane() == lane)
}

/// a*b - c on the odd coset: the share of each lane that sums over it.
fn quotient<C: Curve, B: ProofBackend<C>>(
    backend: &B,
    key: &ProvingKey<C, B>,
    wires: &[B::Buf<Canonical>],
    request: &Request<'_>,
) -> Result<Vec<B::Buf<Mont>>> {
    let TransformPlacement { a, b, c_inverse, c_forward } = key.schedule.chains;
    let (Some(on_a), Some(on_b)) = (on::<B>(wires, a), on::<B>(wires, b)) else {
        return Err(tandem_ops::Error::invalid("prove", "the schedule takes no witness to the transforms").into());
    };
    let n = key.shape.domain;
    let mut va = backend.alloc::<Mont>(a, n)?;
    let mut vb = backend.alloc::<Mont>(b, n)?;
    request.enqueue(a, "sparse product A", || backend.spmv(&key.matrix_a, on_a, &mut va))?;
    request.enqueue(b, "sparse product B", || backend.spmv(&key.matrix_b, on_b, &mut vb))?;

    let (rows, odd) = (Coset::Subgroup, key.coset);
    let (natural, reversed) = (Order::Natural, Order::BitReversed);
    let to_coefficients = NttOp { direction: Direction::Inverse, coset: rows, input: natural, output: reversed };
    let to_odd_coset = NttOp { direction: Direction::Forward, coset: odd, input: reversed, output: natural };
    let transform = |v: &mut B::Buf<Mont>, name, op| request.enqueue(v.lane(), name, || backend.ntt(v, op));
    // On the rows c = a*b, for any witness that satisfies the circuit.
    let there =
        |v: &B::Buf<Mont>| (v.lane() != c_inverse).then(|| request.copied(backend, v, 0..n, c_inverse)).transpose();
    let copies = (there(&va)?, there(&vb)?);
    let mut vc = request.enqueue(c_inverse, "inverse NTT c", || {
        let (a, b) = (copies.0.as_ref().unwrap_or(&va), copies.1.as_ref().unwrap_or(&vb));
        backend.ntt_of_product(a, b, to_coefficients)
    })?;
    drop(copies);
    transform(&mut va, "inverse NTT a", to_coefficients)?;
    transform(&mut vb, "inverse NTT b", to_coefficients)?;
    if c_inverse != c_forward {
        vc = request.copied(backend, &vc, 0..n, c_forward)?;
    }
    transform(&mut va, "coset NTT a", to_odd_coset)?;
    transform(&mut vb, "coset NTT b", to_odd_coset)?;

    let shares = key.quotient.iter().map(|part| (part.share.lane, part.share.range.clone()));
    if [b, c_forward].iter().all(|&lane| lane == a) {
        let quotient = request.enqueue(a, "coset NTT c", || backend.product_less_ntt(&va, &vb, vc, to_odd_coset))?;
        drop((va, vb));
        if let [whole] = &key.quotient[..] {
            if whole.share.lane == a && whole.share.range.len() == n {
                return Ok(vec![quotient]);
            }
        }
        return shares.map(|(lane, range)| request.copied(backend, &quotient, range, lane)).collect();
    }
    transform(&mut vc, "coset NTT c", to_odd_coset)?;
    let share = |(lane, range): (Lane, Range<usize>)| {
        let mut pa = request.copied(backend, &va, range.clone(), lane)?;
        let pb = request.copied(backend, &vb, range.clone(), lane)?;
        let pc = request.copied(backend, &vc, range, lane)?;
        request.enqueue(lane, "a*b - c", || backend.mul_sub(&mut pa, &pb, &pc))?;
        Ok(pa)
    };
    shares.map(share).collect()
}

/// The sums over the witness on the lanes that are `chosen`, on each those that it has points of.
fn sum_witness<C: Curve, B: ProofBackend<C>>(
    backend: &B,
    key: &ProvingKey<C, B>,
    wires: &[B::Buf<Canonical>],
    chosen: impl Fn(Lane) -> bool,
    request: &Request<'_>,
) -> Result<Sums<C>> {
    let mut sums = Sums::default();
    for part in key.witness.iter().filter(|part| chosen(part.share.lane)) {
        let (lane, range) = (part.share.lane, part.share.range.clone());
        let own;
        let scalars = match (on::<B>(wires, lane), wires.first()) {
            (Some(whole), _) if range.len() == whole.len() => whole,
            (Some(from), _) | (None, Some(from)) => {
                own = request.copied(backend, from, range, lane)?;
                &own
            }
            (None, None) => return Err(tandem_ops::Error::invalid("prove", "no lane has the witness").into()),
        };
        let digits = request.enqueue(lane, "witness digits", || {
            ScalarRecoding::<C>::recode(backend, &part.plan, Scalars::Canonical(scalars))
        })?;
        // G2 takes longest to put together, and the verifier waits for A and B, so that B2 goes first.
        let points = part.share.range.len();
        if let Some(bases) = &part.b2 {
            let sum = || Msm::<C::G2>::msm(backend, bases, &digits, &request.timeline);
            let sum = request.enqueue(lane, "MSM B2", sum)?;
            sums.b2.push(Part::new(sum, units::<C::G2>(points), request));
        }
        for (sum, bases) in &part.g1 {
            let pending =
                request.enqueue(lane, name(*sum), || Msm::<C::G1>::msm(backend, bases, &digits, &request.timeline))?;
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
