//! C of a proof, joined on a lane.
//!
//! C = L + H + s A + r B1 - r s delta. Of that, L + H + t delta goes to a lane, with A and B1, and a sum over four points takes t delta off again:
//! what lies in memory for points, which is not wiped, tells nothing of the witness. t is drawn for each proof. A is in the proof, and B1 is
//! blinded by s.

use crate::finish::Join;
use crate::plan::JOINED;
use crate::{Blinding, ProvingKey, Request, Result};
use ark_ec::CurveGroup;
use ark_ff::Field;
use std::sync::Mutex;
use tandem_ops::timeline::UPLOADS;
use tandem_ops::{Canonical, Curve, Group, Msm, MsmRequest, MsmSet, ProofBackend, ScalarRecoding, Scalars};
use tandem_proof::random_scalar;
use zeroize::Zeroizing;

/// Bytes for the points and all their multiples.
const POINT_BYTES: u64 = 1 << 20;

/// What joins C on the first lane, from points on the lane that has all points; `None` where each lane has its own. The scalars go to the lane
/// now, the points when they are there.
pub(crate) fn join<'a, C: Curve, B: ProofBackend<C>>(
    backend: &'a B,
    key: &'a ProvingKey<C, B>,
    blinding: &Blinding<C>,
    request: &'a Request<'a>,
) -> Result<Option<Join<'a, C>>> {
    let Some(home) = key.schedule.points_on else { return Ok(None) };
    let lane = key.schedule.chains.a;
    let t = random_scalar::<C>()?;
    let mask = C::G1::to_ark(&key.points.delta1) * *t;
    let sets = vec![MsmSet { g2: false, first: 0, points: JOINED }];
    let wanted = MsmRequest { scalars: JOINED, sets, memory_bytes: POINT_BYTES, uses: 1, pipelined: true };
    let plan = ScalarRecoding::<C>::plan(backend, lane, &wanted)?;
    let scalars = [*blinding.s, *blinding.r, C::Fr::ONE, -*t];
    let scalars = Zeroizing::new(scalars.map(|x| C::canonical(x)));
    let digits = request.enqueue(lane, "digits of C", || {
        let scalars = backend.upload::<Canonical>(lane, &scalars[..])?;
        ScalarRecoding::<C>::recode(backend, &plan, Scalars::Canonical(&scalars))
    })?;
    let digits = Mutex::new(digits);
    let join = move |a: &_, b1: &_, rest: <C::G1 as Group>::Ark| {
        let points = CurveGroup::normalize_batch(&[*a, *b1, rest + mask]);
        let points: Vec<_> = points.iter().map(C::G1::from_ark).chain([key.points.delta1]).collect();
        let span = request.timeline.begin_in(home, UPLOADS, "upload points");
        let bases = Msm::<C::G1>::load(backend, home, &plan, 0, (&points[..]).into())?;
        request.timeline.end(span);
        let digits = digits.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let sum = request.enqueue(lane, "MSM C", || Msm::<C::G1>::msm(backend, &bases, &digits, &request.timeline))?;
        Ok(sum.wait()?)
    };
    Ok(Some(Box::new(join)))
}
