//! One lane transforms, the others sum, and all end at the same time.
//!
//! All the sums stand in a line: H, A, L, B1, B2. The first lane does the transforms and takes what it can of the line
//! until a common end, the next lane goes on from there, and so on (McNaughton's rule): each lane has a piece of the line,
//! and a sum is cut only where a piece ends. H can be summed only after the transforms, so that where many lanes share it, each
//! fills the time before with other sums. The earliest end at which the lanes take all of the line is searched for.

use super::{
    Lane, LaneQueries, MsmSet, Queries, QueryShare, Range, Schedule, Share, TransformPlacement, WireSet, WitnessQuery,
};
use crate::tuning::Costs;

/// A sum of the line; `None` is that over H.
#[derive(Debug, Clone, Copy)]
struct Item {
    sum: Option<WitnessQuery>,
    points: usize,
    point_cost: f64,
    fixed_cost: f64,
}

/// A lane's part of a sum: points counted in the key's section.
type Piece = (Option<WitnessQuery>, Range<usize>);

/// Where two lanes share the line it is cut in L, and parts come last: what the host waits for at the end are then H and L, with which nothing is
/// left to do but to add them, while B1 is yet to be multiplied.
fn line(costs: &Costs, queries: Queries) -> Vec<Item> {
    let g1 = |sum, point_cost, points| Item { sum, points, point_cost, fixed_cost: costs.g1_sum.of(points) };
    let of_witness = |sum| g1(Some(sum), 1.0, queries.points(sum));
    let in_g2 = queries.points(WitnessQuery::B2);
    let items = [
        g1(None, costs.h_point, queries.h),
        of_witness(WitnessQuery::A),
        of_witness(WitnessQuery::L),
        of_witness(WitnessQuery::B1),
        Item {
            sum: Some(WitnessQuery::B2),
            points: in_g2,
            point_cost: costs.g2_point,
            fixed_cost: costs.g2_sum.of(in_g2),
        },
    ];
    items.into_iter().filter(|item| item.points > 0).collect()
}

/// The pieces of each lane if all are to end by `end`; `None` if they cannot.
fn cut(costs: &Costs, queries: Queries, lanes: usize, end: f64) -> Option<Vec<Vec<Piece>>> {
    let transforms = costs.row * queries.shape.domain as f64;
    let items = line(costs, queries);
    let mut done = vec![0; items.len()];
    let mut pieces: Vec<Vec<Piece>> = Vec::new();
    for lane in 0..lanes {
        let mut left = if lane == 0 { end - transforms } else { end };
        let mut of_lane: Vec<Piece> = Vec::new();
        // Whose digits the lane has.
        let mut digits_of: Vec<WireSet> = Vec::new();
        for (item, done) in items.iter().zip(&mut done).filter(|(item, done)| **done < item.points) {
            // The quotient is there when the first lane has transformed.
            let waits = item.sum.is_none() && left > end - transforms;
            let room = if waits { end - transforms } else { left };
            let rest = item.points - *done;
            // The first whole sum over the witness pays for the digits of all whole ones, a part for its own.
            let wires = item.sum.map(|sum| queries.wires(sum));
            let digits = if wires.is_some() { costs.digits } else { 0.0 };
            let are_new = wires.filter(|wires| !digits_of.contains(wires));
            let shared = are_new.map_or(0.0, |wires| digits * queries.scalars(wires) as f64);
            let whole = item.fixed_cost + shared + item.points as f64 * item.point_cost;
            let (points, cost) = if *done == 0 && whole <= room {
                digits_of.extend(are_new);
                (rest, whole)
            } else {
                let each = item.point_cost + digits;
                let fitting = ((room - item.fixed_cost) / each).clamp(0.0, rest as f64) as usize;
                // A part is worth its fixed cost again.
                let worth = fitting == rest || fitting as f64 * each >= item.fixed_cost;
                (if worth { fitting } else { 0 }, item.fixed_cost + fitting as f64 * each)
            };
            if points > 0 {
                left -= cost;
                of_lane.push((item.sum, *done..*done + points));
                *done += points;
            }
            // What is left of the line is the next lane's, but a lane that only waits for the quotient has room for more.
            if points < rest && !waits {
                break;
            }
        }
        pieces.push(of_lane);
    }
    items.iter().zip(&done).all(|(item, &done)| done == item.points).then_some(pieces)
}

/// The earliest end, and the layout that reaches it.
pub(super) fn roles(costs: Costs, queries: impl Into<Queries>, lanes: usize) -> (f64, Schedule) {
    let queries = queries.into();
    let one_lane = |item: Item| item.fixed_cost + item.points as f64 * item.point_cost;
    let digits: usize = match queries.picked {
        true => WireSet::EACH.into_iter().map(|wires| queries.scalars(wires)).sum(),
        false => queries.shape.variables,
    };
    // All on the first lane is possible by then.
    let mut late = 1.0
        + costs.row * queries.shape.domain as f64
        + costs.digits * digits as f64
        + line(&costs, queries).into_iter().map(one_lane).sum::<f64>();
    let mut early = 0.0;
    let mut best = cut(&costs, queries, lanes.max(1), late).unwrap_or_default();
    for _ in 0..40 {
        let end = (early + late) / 2.0;
        match cut(&costs, queries, lanes.max(1), end) {
            Some(pieces) => (late, best) = (end, pieces),
            None => early = end,
        }
    }
    let share = |(lane, pieces): (usize, &Vec<Piece>)| {
        let range = pieces.iter().find(|(sum, _)| sum.is_none())?.1.clone();
        Some(Share { lane: Lane(lane), range })
    };
    let quotient = best.iter().enumerate().filter_map(share).collect();
    let witness = best.iter().enumerate().flat_map(|(lane, pieces)| lane_sums(queries, Lane(lane), pieces)).collect();
    (late, Schedule::new(queries, TransformPlacement::on(Lane(0)), witness, quotient))
}

/// Over all lanes.
pub(super) fn all(costs: Costs, queries: Queries, lanes: usize) -> Schedule {
    let (end, schedule) = roles(costs, queries, lanes);
    foretold(schedule, roles(costs, queries, 1).0 / end, lanes)
}

/// Over as many lanes as are worth their cost.
pub(super) fn fastest(costs: Costs, queries: impl Into<Queries>, lanes: usize) -> Schedule {
    let queries = queries.into();
    let (one, schedule) = roles(costs, queries, 1);
    let (mut end, mut best, mut used) = (one, schedule, 1);
    for count in 2..=lanes {
        let (of_lanes, schedule) = roles(costs, queries, count);
        let of_lanes = of_lanes + costs.lane * (count - 1) as f64;
        if of_lanes < end {
            (end, best, used) = (of_lanes, schedule, count);
        }
    }
    foretold(best, one / end, used)
}

/// A schedule over so many lanes, of which there is something to tell if they are several.
fn foretold(schedule: Schedule, gain: f64, lanes: usize) -> Schedule {
    Schedule { foretold: (lanes > 1).then_some((gain * 100.0) as u32), ..schedule }
}

/// A lane's sums over the witness: whole ones of the same values share their digits. A part of a sum has digits of its own, since to pass
/// over the digits of scalars that it has no points for takes as long as to add them.
fn lane_sums(queries: Queries, lane: Lane, pieces: &[Piece]) -> Vec<LaneQueries> {
    let of_witness = pieces.iter().filter_map(|(sum, points)| Some(((*sum)?, points.clone())));
    let is_whole = |(sum, points): &(WitnessQuery, Range<usize>)| points.len() == queries.points(*sum);
    let (mut whole, parts): (Vec<_>, Vec<_>) = of_witness.partition(is_whole);
    // B2 takes longest to put together on the host.
    whole.sort_by_key(|(sum, _)| *sum != WitnessQuery::B2);
    let mut groups = Vec::new();
    while let Some((first, _)) = whole.first() {
        let wires = queries.wires(*first);
        let (group, others) = whole.into_iter().partition(|(sum, _)| queries.wires(*sum) == wires);
        groups.push(group);
        whole = others;
    }
    groups.extend(parts.into_iter().map(|part| vec![part]));
    groups.into_iter().filter_map(|group| together(queries, lane, group)).collect()
}

/// Sums that share the digits of all values that any of them needs.
fn together(queries: Queries, lane: Lane, group: Vec<(WitnessQuery, Range<usize>)>) -> Option<LaneQueries> {
    let wires = queries.wires(group.first()?.0);
    let start = group.iter().map(|(sum, points)| points.start + queries.hidden(*sum)).min()?;
    let end = group.iter().map(|(sum, points)| points.end + queries.hidden(*sum)).max()?;
    let share = |(sum, points): (WitnessQuery, Range<usize>)| {
        let first = points.start + queries.hidden(sum) - start;
        QueryShare { sum, set: MsmSet { g2: sum == WitnessQuery::B2, first, points: points.len() }, points }
    };
    Some(LaneQueries { wires, share: Share { lane, range: start..end }, sums: group.into_iter().map(share).collect() })
}

#[cfg(test)]
mod tests {
    use super::super::tests::check_schedule;
    use super::super::Shape;
    use super::*;
    use tandem_ops::CurveId;

    const CURVES: [CurveId; 2] = [CurveId::Bn254, CurveId::Bls12_381];

    fn shape(log_n: u32) -> Shape {
        Shape { variables: (1 << log_n) - 1, publics: 1, domain: 1 << log_n }
    }

    fn loads(costs: &Costs, shape: Shape, plan: &Schedule, lanes: usize) -> Vec<f64> {
        let mut loads = vec![0.0; lanes];
        loads[0] = costs.row * shape.domain as f64;
        for share in &plan.quotient {
            loads[share.lane.0] += costs.g1_sum.of(share.range.len()) + costs.h_point * share.range.len() as f64;
        }
        for LaneQueries { share, sums, .. } in &plan.witness {
            loads[share.lane.0] += costs.digits * share.range.len() as f64;
            for part in sums {
                let (point, ends) = if part.set.g2 { (costs.g2_point, costs.g2_sum) } else { (1.0, costs.g1_sum) };
                loads[share.lane.0] += ends.of(part.set.points) + point * part.set.points as f64;
            }
        }
        loads
    }

    #[test]
    fn lanes_end_together() {
        for curve in CURVES {
            let costs = Costs::of(curve);
            for log_n in [20, 22, 24] {
                let shape = shape(log_n);
                let (one, plan) = roles(costs, shape, 1);
                assert_eq!(loads(&costs, shape, &plan, 1)[0].max(one) - one, 0.0);
                for lanes in 2..=8 {
                    let (end, plan) = roles(costs, shape, lanes);
                    check_schedule(shape, lanes, &plan);
                    let loads = loads(&costs, shape, &plan, lanes);
                    let longest = loads.iter().copied().fold(0.0, f64::max);
                    assert!(longest <= end * 1.0001, "{longest} {end}");
                    // Each cut costs a sum's fixed costs, and a lane its own digits; nothing else is lost.
                    let lost = costs.g2_sum.of(shape.variables) + costs.digits * shape.variables as f64;
                    let least = (one / lanes as f64 + lost).max(costs.row * shape.domain as f64 * 1.5);
                    assert!(end <= least, "2^{log_n} on {lanes}: {end}, expected {least}");
                }
            }
        }
    }

    #[test]
    fn sums_are_cut_no_more_than_needed() {
        for curve in CURVES {
            for log_n in 10..=24 {
                for lanes in 1..=8 {
                    let plan = roles(Costs::of(curve), shape(log_n), lanes).1;
                    let pieces = plan.quotient.len() + plan.witness.iter().map(|w| w.sums.len()).sum::<usize>();
                    // One at each border of two lanes, and H on top where many share it.
                    let cuts = if lanes > 2 { 2 * (lanes - 1) } else { lanes - 1 };
                    assert!(pieces <= 5 + cuts, "{pieces} pieces on {lanes} lanes");
                    // Digits of scalars that a sum has no points for are none but the public wires'.
                    for LaneQueries { share, sums, .. } in &plan.witness {
                        assert!(sums.iter().all(|part| part.set.points + 2 >= share.range.len()), "{plan:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn small_proofs_stay_on_one_lane_and_large_ones_do_not() {
        for curve in CURVES {
            let lanes = |log_n| {
                let plan = fastest(Costs::of(curve), shape(log_n), 2);
                check_schedule(shape(log_n), 2, &plan);
                plan.witness.iter().map(|w| w.share.lane).chain(plan.quotient.iter().map(|q| q.lane)).max()
            };
            assert_eq!([10, 13, 18, 22].map(lanes), [0, 0, 1, 1].map(|lane| Some(Lane(lane))));
            let costs = Costs { lane: 10e6, ..Costs::of(curve) };
            assert_eq!(fastest(costs, shape(12), 8), roles(costs, shape(12), 1).1);
        }
    }

    #[test]
    fn a_second_lane_is_taken_where_it_was_measured_to_pay() {
        let costs = Costs::of(CurveId::Bn254);
        let one_lane = |shape| fastest(costs, shape, 2) == roles(costs, shape, 1).1;
        // aes-128-ctr, a published key: two H200s take as long as one (docs/design/proof-scheduling.md).
        assert!(one_lane(Shape { variables: 41405, publics: 1152, domain: 1 << 16 }));
        assert!(!one_lane(shape(16)));
    }
}
