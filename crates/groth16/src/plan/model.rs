//! How long a proof takes by a schedule, in points of a large sum in G1 ([`Costs`]).
//!
//! All lanes have the witness when it was uploaded and exchanged. A lane that transforms does that first, then its sums over the witness, and those
//! over the quotient when its share has come from the lanes that transform.

use super::{Lane, LaneQueries, Queries, Schedule, TransformPlacement};
use crate::tuning::Costs;

/// Rows' transforms that a lane makes, in parts of all of them: products by the matrices, three chains of two transforms each.
pub(super) fn transforms(costs: &Costs, queries: Queries, chains: TransformPlacement, lane: Lane) -> f64 {
    let TransformPlacement { a, b, c_inverse, c_forward } = chains;
    let rows = queries.shape.domain as f64;
    if [b, c_inverse, c_forward].iter().all(|&other| other == a) {
        return if lane == a { costs.row * rows } else { 0.0 };
    }
    // The lane of c multiplies by both matrices, as those of a and b by one.
    let halves = [a, a, b, b, c_inverse, c_forward].iter().filter(|&&of| of == lane).count();
    costs.chain / 2.0 * halves as f64 * rows
}

/// When a lane has its share of the quotient, counted from when the witness has come.
pub(super) fn quotient_there(costs: &Costs, queries: Queries, chains: TransformPlacement, lane: Lane) -> f64 {
    let TransformPlacement { a, b, c_inverse, c_forward } = chains;
    let made = [a, b, c_inverse, c_forward].map(|of| transforms(costs, queries, chains, of));
    let made = made.into_iter().fold(0.0, f64::max);
    if [a, b, c_inverse, c_forward].iter().all(|&of| of == lane) {
        return made;
    }
    made + costs.deal + costs.deal_row * queries.shape.domain as f64
}

/// What the upload of the witness takes that all of so many lanes get.
pub(super) fn upload(costs: &Costs, queries: Queries, lanes: usize) -> f64 {
    let wires = queries.shape.variables as f64;
    let exchanged = if lanes > 1 { costs.exchange * wires } else { 0.0 };
    costs.upload * wires / lanes.clamp(1, costs.links) as f64 + exchanged
}

/// When the last lane has done its work, counted from when the witness has come.
pub(super) fn lanes_end(costs: &Costs, queries: Queries, schedule: &Schedule) -> f64 {
    let chains = schedule.chains;
    let of_lane = |lane: Lane| {
        let groups = schedule.witness.iter().filter(|group| group.share.lane == lane);
        let sums = groups.map(|group| witness_sums(costs, group)).sum::<f64>();
        let before = transforms(costs, queries, chains, lane) + sums;
        let shares = schedule.quotient.iter().filter(|share| share.lane == lane);
        let of_h: f64 = shares.map(|share| quotient_sum(costs, share.range.len())).sum();
        if of_h > 0.0 {
            before.max(quotient_there(costs, queries, chains, lane)) + of_h
        } else {
            before
        }
    };
    lanes(schedule).into_iter().map(of_lane).fold(0.0, f64::max)
}

/// A lane's sums over the same digits, and these.
pub(super) fn witness_sums(costs: &Costs, group: &LaneQueries) -> f64 {
    let sum = |part: &super::QueryShare| match part.set.g2 {
        true => costs.g2_sum.of(part.set.points) + costs.g2_point * part.set.points as f64,
        false => costs.g1_sum.of(part.set.points) + part.set.points as f64,
    };
    costs.digits * group.share.range.len() as f64 + group.sums.iter().map(sum).sum::<f64>()
}

fn quotient_sum(costs: &Costs, points: usize) -> f64 {
    costs.g1_sum.of(points) + costs.h_point * points as f64
}

/// The lanes that have anything to do, each once.
pub(super) fn lanes(schedule: &Schedule) -> Vec<Lane> {
    let TransformPlacement { a, b, c_inverse, c_forward } = schedule.chains;
    let mut lanes = vec![a, b, c_inverse, c_forward];
    lanes.extend(schedule.witness.iter().map(|group| group.share.lane));
    lanes.extend(schedule.quotient.iter().map(|share| share.lane));
    lanes.sort_unstable();
    lanes.dedup();
    lanes
}

/// A proof from its witness on the host to its verdict.
pub(super) fn proof(costs: &Costs, queries: Queries, schedule: &Schedule) -> f64 {
    upload(costs, queries, schedule.whole.len()) + lanes_end(costs, queries, schedule) + costs.host
}

/// How many times as fast as on one lane a proof is by this schedule, in hundredths. There is something to tell where lanes are several.
pub(super) fn foretold(costs: &Costs, queries: Queries, schedule: &Schedule) -> Option<u32> {
    let (_, one) = super::roles::roles(costs, queries, 1, super::ONE_LANE);
    let gain = proof(costs, queries, &one) / proof(costs, queries, schedule);
    (lanes(schedule).len() > 1).then_some((gain * 100.0) as u32)
}

#[cfg(test)]
mod tests {
    use super::super::{Share, WireSet, WitnessQuery, ONE_LANE, THREE_LANES};
    use super::*;
    use tandem_ops::{CurveId, MsmSet};

    const ROWS: usize = 1 << 20;

    /// A lane that sums over the quotient alone waits for it, and so does one that has little else to do; all that multiply by the matrices get
    /// the witness, also those that sum nothing.
    #[test]
    fn a_lane_waits_for_its_share_of_the_quotient() {
        let costs = &Costs::of(CurveId::Bn254);
        let queries = Queries::from(super::super::Shape { variables: ROWS, publics: 1, domain: ROWS });
        let set = MsmSet { g2: false, first: 0, points: 1000 };
        let sums = vec![super::super::QueryShare { sum: WitnessQuery::A, set, points: 0..1000 }];
        let share = Share { lane: Lane(3), range: 0..1000 };
        let group = LaneQueries { wires: WireSet::All, share, sums };
        let dealt = costs.deal + costs.deal_row * ROWS as f64;
        for (chains, made) in [(ONE_LANE, costs.row), (THREE_LANES, costs.chain)] {
            let there = made * ROWS as f64;
            let of_h = costs.g1_sum.of(ROWS) + costs.h_point * ROWS as f64;
            let quotient = |lane| vec![Share { lane, range: 0..ROWS }];
            let plan = Schedule::new(queries, chains, vec![group.clone()], quotient(Lane(3)));
            assert_eq!(lanes_end(costs, queries, &plan), there + dealt + of_h);
            assert_eq!(plan.whole.len(), if chains == ONE_LANE { 2 } else { 4 });
            let plan = Schedule::new(queries, chains, vec![group.clone()], quotient(Lane(0)));
            let stays = if chains == ONE_LANE { 0.0 } else { dealt };
            assert_eq!(lanes_end(costs, queries, &plan), there + stays + of_h);
        }
        // An upload over more links is faster, up to what the host's memory gives; one GPU has nobody to exchange with.
        let upload = |lanes| upload(costs, queries, lanes);
        assert_eq!(upload(1), costs.upload * ROWS as f64);
        assert!(upload(2) < upload(1) && upload(6) < upload(4) && upload(8) == upload(6));
    }
}
