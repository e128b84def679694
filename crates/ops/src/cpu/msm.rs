//! Multi-scalar multiplication.

use super::{one_lane, Cpu};
use crate::{
    Buffer, Canonical, Curve, Digits, Error, Group, Lane, Msm, MsmRequest, Pending, Result, Scalars, Unaligned,
};
use ark_ec::{CurveGroup, VariableBaseMSM};
use ark_ff::{AdditiveGroup, BigInt};
use std::sync::Arc;
use zeroize::Zeroize;

/// What was asked for, checked.
#[derive(Debug, Clone)]
pub struct Plan(Arc<MsmRequest>);

/// Scalars.
pub struct CpuDigits {
    lane: Lane,
    plan: Plan,
    scalars: Vec<Canonical>,
}

impl Drop for CpuDigits {
    fn drop(&mut self) {
        self.scalars.iter_mut().zeroize();
    }
}

/// The points of one set.
pub struct Bases<G: Group> {
    lane: Lane,
    plan: Plan,
    set: usize,
    points: Vec<<G::Ark as CurveGroup>::Affine>,
}

impl<C: Curve> Digits<C> for Cpu {
    type Plan = Plan;
    type Digits = CpuDigits;

    fn plan(&self, lane: Lane, request: &MsmRequest) -> Result<Plan> {
        self.check_lane("plan", lane)?;
        for (i, set) in request.sets.iter().enumerate() {
            if set.first.checked_add(set.points).is_none_or(|end| end > request.scalars) {
                let reason =
                    format!("set {i}: {} points from {} on, {} scalars", set.points, set.first, request.scalars);
                return Err(Error::invalid("plan", reason));
            }
        }
        Ok(Plan(Arc::new(request.clone())))
    }

    fn digits(&self, plan: &Plan, scalars: Scalars<'_, Self>) -> Result<CpuDigits> {
        let (lane, scalars) = match scalars {
            Scalars::Canonical(buf) => (buf.lane(), buf.as_slice().to_vec()),
            Scalars::Mont(buf) => (buf.lane(), buf.as_slice().iter().map(|&x| C::canonical(C::from_mont(x))).collect()),
        };
        let digits = CpuDigits { lane, plan: plan.clone(), scalars };
        if digits.scalars.len() != plan.0.scalars {
            let reason = format!("{} scalars, the plan is for {}", digits.scalars.len(), plan.0.scalars);
            return Err(Error::invalid("digits", reason));
        }
        Ok(digits)
    }
}

impl<G: Group> Msm<G> for Cpu {
    type Bases = Bases<G>;

    fn load(&self, lane: Lane, plan: &Plan, set: usize, points: Unaligned<'_, G::Point>) -> Result<Bases<G>> {
        self.check_lane("load", lane)?;
        let Some(spec) = plan.0.sets.get(set) else {
            return Err(Error::invalid("load", format!("set {set} of a plan with {}", plan.0.sets.len())));
        };
        if spec.points != points.len() {
            return Err(Error::invalid("load", format!("{} points, the plan has {}", points.len(), spec.points)));
        }
        Ok(Bases { lane, plan: plan.clone(), set, points: points.iter().map(|p| G::to_ark(&p)).collect() })
    }

    fn msm(&self, bases: &Bases<G>, digits: &CpuDigits) -> Result<Pending<G::Ark>> {
        one_lane("msm", &[bases.lane, digits.lane])?;
        if bases.plan.0 != digits.plan.0 {
            return Err(Error::invalid("msm", "points and digits of different plans"));
        }
        let set = bases.plan.0.sets[bases.set];
        let mut scalars: Vec<BigInt<4>> =
            digits.scalars[set.first..set.first + set.points].iter().map(|k| BigInt(k.0)).collect();
        let sum = if scalars.is_empty() { G::Ark::ZERO } else { G::Ark::msm_bigint(&bases.points, &scalars) };
        scalars.iter_mut().for_each(|k| k.0.zeroize());
        Ok(Pending::ready(sum))
    }
}
