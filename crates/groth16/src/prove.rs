//! The proof.

use crate::blinding::Terms;
use crate::finish::{HostSpan, Sums};
use crate::plan::{Chains, Sum};
use crate::{Blinding, Error, PreparedKey, ProvingKey, Refusal, Result, Witness, P1, P2};
use std::ops::Range;
use std::sync::OnceLock;
use std::time::Instant;
use tandem_ops::{
    Backend, Buffer, Canonical, Coset, Curve, Digits, Direction, Lane, Mont, Msm, NttOp, Order, ProofBackend, Scalars,
};

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

impl<C: Curve> PartialEq for Proof<C> {
    fn eq(&self, other: &Self) -> bool {
        self.a == other.a && self.b == other.b && self.c == other.c
    }
}

/// Makes a proof. It is not verified here, and a witness that does not satisfy the circuit is not noticed: whoever
/// returns proofs calls [`prove_verified`], or [`PreparedKey::verify`] on each. One that is not valid may tell of its witness.
///
/// # Errors
/// [`Error::Witness`] for one of another length; [`Error::Backend`].
pub fn prove<C: Curve, B: ProofBackend<C>>(
    backend: &B,
    key: &ProvingKey<C, B>,
    witness: &Witness<C>,
    blinding: &Blinding<C>,
) -> Result<Proof<C>> {
    let mut host = Vec::new();
    let (sums, terms) = begin(backend, key, witness, blinding, &mut host)?;
    let proof = sums.finish(terms, blinding, &mut host)?;
    backend.synchronize()?;
    Ok(proof)
}

/// A proof that has been verified, and how the host's time was spent.
#[derive(Debug)]
pub struct Made<C: Curve> {
    /// The proof, right or wrong.
    pub proof: Proof<C>,
    /// What the verifier says of it, as [`PreparedKey::verify`] would.
    pub verdict: std::result::Result<(), Refusal>,
    /// When that was known.
    pub ended: Instant,
    /// What the host did when.
    pub host: Vec<HostSpan>,
}

/// Makes a proof and verifies it, for the most part while the lanes still work on it. `verifier` is of the same key.
///
/// # Errors
/// As [`prove`].
pub fn prove_verified<C: Curve, B: ProofBackend<C>>(
    backend: &B,
    key: &ProvingKey<C, B>,
    verifier: &PreparedKey<C>,
    witness: &Witness<C>,
    blinding: &Blinding<C>,
) -> Result<Made<C>> {
    let mut host = Vec::new();
    let (sums, terms) = begin(backend, key, witness, blinding, &mut host)?;
    let publics = &witness.values()[1..=key.shape.publics];
    let (proof, verdict) = sums.finish_verified(backend, terms, verifier, publics, blinding, &mut host)?;
    Ok(Made { proof, verdict, ended: Instant::now(), host })
}

/// Tells the lanes what to do. What of the proof depends on the blinding alone is computed meanwhile: a small proof's sums are there
/// before it would be else.
fn begin<C: Curve, B: ProofBackend<C>>(
    backend: &B,
    key: &ProvingKey<C, B>,
    witness: &Witness<C>,
    blinding: &Blinding<C>,
    host: &mut Vec<HostSpan>,
) -> Result<(Sums<C>, Terms<C>)> {
    let terms = OnceLock::new();
    let sums = rayon::in_place_scope(|scope| {
        scope.spawn(|_| _ = terms.set(blinding.terms(&key.points)));
        enqueue(backend, key, witness, host)
    })?;
    let Some(terms) = terms.into_inner() else { unreachable!("the scope ended before its task") };
    Ok((sums, terms))
}

/// Tells the lanes all that the sums of the proof take: the transforms, the sums over the witness, then those over the quotient.
/// Where other lanes wait for the transforms' results, these come first. Else they come after the sums over the witness: what such a
/// sum leaves to be put together, which takes little of a GPU but minds a full one (docs/design/msm.md), is then done beside them.
fn enqueue<C: Curve, B: ProofBackend<C>>(
    backend: &B,
    key: &ProvingKey<C, B>,
    witness: &Witness<C>,
    host: &mut Vec<HostSpan>,
) -> Result<Sums<C>> {
    let (has, expected) = (witness.values().len(), key.shape.variables);
    if has != expected {
        return Err(Error::Witness(format!("the witness has {has} values; the key's circuit has {expected} wires")));
    }
    let lanes = &key.schedule.whole;
    let wires = HostSpan::of(host, "upload witness", || {
        let spans: Vec<_> = lanes.iter().map(|&lane| backend.begin(lane, "upload witness")).collect();
        let wires = backend.upload_to_all(lanes, witness.shared());
        spans.into_iter().for_each(|span| backend.end(span));
        wires
    })?;
    HostSpan::of(host, "enqueue", || {
        let Chains { a, b, c_inverse, c_forward } = key.schedule.chains;
        let transforms = |lane: Lane| [a, b, c_inverse, c_forward].contains(&lane);
        let others_wait = key.schedule.chains != Chains::on(a) || key.quotient.iter().any(|part| part.share.lane != a);
        // Two threads, so that no lane waits until another has been told all it has to do.
        let (first, others) = rayon::join(
            || {
                if others_wait {
                    let quotient = quotient(backend, key, &wires)?;
                    Result::Ok((sum_witness(backend, key, &wires, transforms)?, quotient))
                } else {
                    let sums = sum_witness(backend, key, &wires, transforms)?;
                    Ok((sums, quotient(backend, key, &wires)?))
                }
            },
            || sum_witness(backend, key, &wires, |lane| !transforms(lane)),
        );
        let ((of_transforming, quotient), mut sums) = (first?, others?);
        sums.append(of_transforming);
        drop(wires);
        for (part, values) in key.quotient.iter().zip(&quotient) {
            let lane = part.share.lane;
            let digits = timed(backend, lane, "quotient digits", || {
                Digits::<C>::digits(backend, &part.plan, Scalars::Mont(values))
            })?;
            sums.c.push(timed(backend, lane, "MSM H", || Msm::<C::G1>::msm(backend, &part.bases, &digits))?);
        }
        Ok(sums)
    })
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
) -> Result<Vec<B::Buf<Mont>>> {
    let Chains { a, b, c_inverse, c_forward } = key.schedule.chains;
    let (Some(on_a), Some(on_b)) = (on::<B>(wires, a), on::<B>(wires, b)) else {
        return Err(tandem_ops::Error::invalid("prove", "the schedule takes no witness to the transforms").into());
    };
    let n = key.shape.domain;
    let mut va = backend.alloc::<Mont>(a, n)?;
    let mut vb = backend.alloc::<Mont>(b, n)?;
    timed(backend, a, "sparse product A", || backend.spmv(&key.matrix_a, on_a, &mut va))?;
    timed(backend, b, "sparse product B", || backend.spmv(&key.matrix_b, on_b, &mut vb))?;

    let (rows, odd) = (Coset::Subgroup, key.coset);
    let (natural, reversed) = (Order::Natural, Order::BitReversed);
    let to_coefficients = NttOp { direction: Direction::Inverse, coset: rows, input: natural, output: reversed };
    let to_odd_coset = NttOp { direction: Direction::Forward, coset: odd, input: reversed, output: natural };
    let transform = |v: &mut B::Buf<Mont>, name, op| timed(backend, v.lane(), name, || backend.ntt(v, op));
    // On the rows c = a*b, for any witness that satisfies the circuit.
    let there = |v: &B::Buf<Mont>| (v.lane() != c_inverse).then(|| copied(backend, v, 0..n, c_inverse)).transpose();
    let copies = (there(&va)?, there(&vb)?);
    let mut vc = timed(backend, c_inverse, "inverse NTT c", || {
        let (a, b) = (copies.0.as_ref().unwrap_or(&va), copies.1.as_ref().unwrap_or(&vb));
        backend.ntt_of_product(a, b, to_coefficients)
    })?;
    drop(copies);
    transform(&mut va, "inverse NTT a", to_coefficients)?;
    transform(&mut vb, "inverse NTT b", to_coefficients)?;
    if c_inverse != c_forward {
        vc = copied(backend, &vc, 0..n, c_forward)?;
    }
    transform(&mut va, "coset NTT a", to_odd_coset)?;
    transform(&mut vb, "coset NTT b", to_odd_coset)?;

    let shares = key.quotient.iter().map(|part| (part.share.lane, part.share.range.clone()));
    if [b, c_forward].iter().all(|&lane| lane == a) {
        let quotient = timed(backend, a, "coset NTT c", || backend.product_less_ntt(&va, &vb, vc, to_odd_coset))?;
        drop((va, vb));
        if let [whole] = &key.quotient[..] {
            if whole.share.lane == a && whole.share.range.len() == n {
                return Ok(vec![quotient]);
            }
        }
        return shares.map(|(lane, range)| copied(backend, &quotient, range, lane)).collect();
    }
    transform(&mut vc, "coset NTT c", to_odd_coset)?;
    let share = |(lane, range): (Lane, Range<usize>)| {
        let mut pa = copied(backend, &va, range.clone(), lane)?;
        let pb = copied(backend, &vb, range.clone(), lane)?;
        let pc = copied(backend, &vc, range, lane)?;
        timed(backend, lane, "a*b - c", || backend.mul_sub(&mut pa, &pb, &pc))?;
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
) -> Result<Sums<C>> {
    let mut sums = Sums::default();
    for part in key.witness.iter().filter(|part| chosen(part.share.lane)) {
        let (lane, range) = (part.share.lane, part.share.range.clone());
        let own;
        let scalars = match (on::<B>(wires, lane), wires.first()) {
            (Some(whole), _) if range.len() == whole.len() => whole,
            (Some(from), _) | (None, Some(from)) => {
                own = copied(backend, from, range, lane)?;
                &own
            }
            (None, None) => return Err(tandem_ops::Error::invalid("prove", "no lane has the witness").into()),
        };
        let digits = timed(backend, lane, "witness digits", || {
            Digits::<C>::digits(backend, &part.plan, Scalars::Canonical(scalars))
        })?;
        // G2 takes longest to put together, and the verifier waits for A and B, so that B2 goes first.
        if let Some(bases) = &part.b2 {
            sums.b2.push(timed(backend, lane, "MSM B2", || Msm::<C::G2>::msm(backend, bases, &digits))?);
        }
        for (sum, bases) in &part.g1 {
            let pending = timed(backend, lane, name(*sum), || Msm::<C::G1>::msm(backend, bases, &digits))?;
            match sum {
                Sum::A => sums.a.push(pending),
                Sum::B1 => sums.b1.push(pending),
                Sum::L | Sum::B2 => sums.c.push(pending),
            }
        }
    }
    Ok(sums)
}

/// A copy, with a span where it goes from lane to lane.
fn copied<B: Backend, T: tandem_ops::Wire>(
    backend: &B,
    from: &B::Buf<T>,
    range: Range<usize>,
    lane: Lane,
) -> Result<B::Buf<T>> {
    if from.lane() == lane {
        return Ok(backend.copy(from, range, lane)?);
    }
    timed(backend, from.lane(), "copy to lane", || backend.copy(from, range, lane))
}

/// Runs `work` within a span on the lane's timeline.
fn timed<B: Backend, T>(
    backend: &B,
    lane: Lane,
    name: &'static str,
    work: impl FnOnce() -> tandem_ops::Result<T>,
) -> Result<T> {
    let span = backend.begin(lane, name);
    let result = work();
    backend.end(span);
    Ok(result?)
}

fn name(sum: Sum) -> &'static str {
    match sum {
        Sum::B2 => "MSM B2",
        Sum::A => "MSM A",
        Sum::B1 => "MSM B1",
        Sum::L => "MSM L",
    }
}
