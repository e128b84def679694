//! One lane transforms, or three, the others sum, and all end at the same time.
//!
//! All the sums stand in a line: H, A, L, B1, B2. The first lane does the transforms and takes what it can of the line
//! until a common end, the next lane goes on from there, and so on (McNaughton's rule): each lane has a piece of the line,
//! and a sum is cut only where a piece ends. H can be summed only after the transforms, so that where many lanes share it, each
//! fills the time before with other sums. The earliest end at which the lanes take all of the line is searched for.
//!
//! Where lanes are so many that the first would end last with nothing but the transforms and its part of H, each of three lanes has a chain.

use super::{
    model, Lane, LaneQueries, MsmSet, Queries, QueryShare, Range, Schedule, Share, TransformPlacement, WireSet,
    WitnessQuery, ONE_LANE, THREE_LANES,
};
use crate::tuning::{BucketReductionCost, Costs};

/// A sum of the line; `None` is that over H.
#[derive(Debug, Clone, Copy)]
struct Item {
    sum: Option<WitnessQuery>,
    points: usize,
    point_cost: f64,
    buckets: BucketReductionCost,
}

/// A lane's part of a sum: points counted in the key's section.
type Piece = (Option<WitnessQuery>, Range<usize>);

/// Where two lanes share the line it is cut in L, and parts come last: what the host waits for at the end are then H and L, with which nothing is
/// left to do but to add them, while B1 is yet to be multiplied.
fn line(costs: &Costs, queries: Queries) -> Vec<Item> {
    let g1 = |sum, point_cost, points| Item { sum, points, point_cost, buckets: costs.g1_sum };
    let of_witness = |sum| g1(Some(sum), 1.0, queries.points(sum));
    let items = [
        g1(None, costs.h_point, queries.h),
        of_witness(WitnessQuery::A),
        of_witness(WitnessQuery::L),
        of_witness(WitnessQuery::B1),
        Item {
            sum: Some(WitnessQuery::B2),
            points: queries.points(WitnessQuery::B2),
            point_cost: costs.g2_point,
            buckets: costs.g2_sum,
        },
    ];
    items.into_iter().filter(|item| item.points > 0).collect()
}

/// A part of a sum is made where its points cost so many times as much as its buckets. Which of these gives the earliest end depends on the sizes.
const WORTH: [f64; 3] = [0.3, 1.0, 4.0];

/// The pieces of each lane if all are to end by `end`, where a part of a sum is `worth` it; `None` if they cannot.
fn cut(
    costs: &Costs,
    queries: Queries,
    lanes: usize,
    chains: TransformPlacement,
    (end, worth): (f64, f64),
) -> Option<Vec<Vec<Piece>>> {
    let items = line(costs, queries);
    let mut done = vec![0; items.len()];
    let mut pieces: Vec<Vec<Piece>> = Vec::new();
    for lane in 0..lanes {
        let mut left = end - model::transforms(costs, queries, chains, Lane(lane));
        let there = model::quotient_there(costs, queries, chains, Lane(lane));
        let mut of_lane: Vec<Piece> = Vec::new();
        // Whose digits the lane has.
        let mut digits_of: Vec<WireSet> = Vec::new();
        for (item, done) in items.iter().zip(&mut done).filter(|(item, done)| **done < item.points) {
            let waits = item.sum.is_none() && left > end - there;
            let room = if waits { end - there } else { left };
            let rest = item.points - *done;
            // The first whole sum over the witness pays for the digits of all whole ones, a part for its own.
            let wires = item.sum.map(|sum| queries.wires(sum));
            let digits = if wires.is_some() { costs.digits } else { 0.0 };
            let are_new = wires.filter(|wires| !digits_of.contains(wires));
            let shared = are_new.map_or(0.0, |wires| digits * queries.scalars(wires) as f64);
            let whole = item.buckets.of(item.points) + shared + item.points as f64 * item.point_cost;
            let (points, cost) = if *done == 0 && whole <= room {
                digits_of.extend(are_new);
                (rest, whole)
            } else {
                let each = item.point_cost + digits;
                // A lane that has nothing but a part of B2 ends early enough for A and B to be verified before the others end.
                let alone = item.sum == Some(WitnessQuery::B2) && of_lane.is_empty();
                let room = if alone { room - costs.verify } else { room };
                let fitting = item.buckets.fitting(room, each).clamp(0.0, rest as f64) as usize;
                let buckets = item.buckets.of(fitting);
                let is_worth = fitting == rest || fitting as f64 * each >= worth * buckets;
                (if is_worth { fitting } else { 0 }, buckets + fitting as f64 * each)
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
pub(super) fn roles(
    costs: &Costs,
    queries: impl Into<Queries>,
    lanes: usize,
    chains: TransformPlacement,
) -> (f64, Schedule) {
    let queries = queries.into();
    let one_lane = |item: Item| item.buckets.of(item.points) + item.points as f64 * item.point_cost;
    let digits: usize = match queries.picked {
        true => WireSet::EACH.into_iter().map(|wires| queries.scalars(wires)).sum(),
        false => queries.shape.variables,
    };
    // All on the first lane is possible by then.
    let latest = 1.0
        + costs.row * queries.shape.domain as f64
        + costs.digits * digits as f64
        + model::quotient_there(costs, queries, chains, Lane(lanes))
        + costs.verify
        + line(costs, queries).into_iter().map(one_lane).sum::<f64>();
    let (mut least, mut best) = (f64::INFINITY, Vec::new());
    for worth in WORTH {
        let (mut early, mut late) = (0.0, latest);
        let mut found = cut(costs, queries, lanes.max(1), chains, (late, worth)).unwrap_or_default();
        for _ in 0..40 {
            let end = (early + late) / 2.0;
            match cut(costs, queries, lanes.max(1), chains, (end, worth)) {
                Some(pieces) => (late, found) = (end, pieces),
                None => early = end,
            }
        }
        if late < least {
            (least, best) = (late, found);
        }
    }
    let share = |(lane, pieces): (usize, &Vec<Piece>)| {
        let range = pieces.iter().find(|(sum, _)| sum.is_none())?.1.clone();
        Some(Share { lane: Lane(lane), range })
    };
    let quotient = best.iter().enumerate().filter_map(share).collect();
    let witness = best.iter().enumerate().flat_map(|(lane, pieces)| lane_sums(queries, Lane(lane), pieces)).collect();
    (least, Schedule::new(queries, chains, witness, quotient))
}

/// Over all lanes, with the transforms on one of them or on three.
pub(super) fn all(costs: &Costs, queries: Queries, lanes: usize) -> Schedule {
    let (_, one) = roles(costs, queries, lanes, ONE_LANE);
    // Without matrices the lane of c takes the values of the rows from the others.
    if lanes < 3 || queries.picked {
        return one;
    }
    let (_, three) = roles(costs, queries, lanes, THREE_LANES);
    let end = |schedule| model::lanes_end(costs, queries, schedule);
    if end(&three) < end(&one) {
        three
    } else {
        one
    }
}

/// Over as many lanes as are worth their cost.
pub(super) fn fastest(costs: &Costs, queries: impl Into<Queries>, lanes: usize) -> Schedule {
    let queries = queries.into();
    let over = |count: usize| {
        let schedule = all(costs, queries, count);
        (model::proof(costs, queries, &schedule) + costs.lane * (count - 1) as f64, schedule)
    };
    let (mut least, mut best) = over(1);
    for count in 2..=lanes {
        let (cost, schedule) = over(count);
        if cost < least {
            (least, best) = (cost, schedule);
        }
    }
    best
}

/// A lane's sums over the witness: whole ones of the same values share their digits. A part of a sum has digits of its own, since to pass
/// over the digits of scalars that it has no points for takes as long as to add them.
fn lane_sums(queries: Queries, lane: Lane, pieces: &[Piece]) -> Vec<LaneQueries> {
    let of_witness = pieces.iter().filter_map(|(sum, points)| Some(((*sum)?, points.clone())));
    let is_whole = |(sum, points): &(WitnessQuery, Range<usize>)| points.len() == queries.points(*sum);
    let (mut whole, parts): (Vec<_>, Vec<_>) = of_witness.partition(is_whole);
    // B2 takes longest to put together on the host.
    whole.sort_by_key(|(sum, _)| *sum != WitnessQuery::B2);
    let (of_b2, parts): (Vec<_>, Vec<_>) = parts.into_iter().partition(|(sum, _)| *sum == WitnessQuery::B2);
    let mut groups: Vec<Vec<_>> = of_b2.into_iter().map(|part| vec![part]).collect();
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
    use super::super::{schedule, Layout, Shape};
    use super::*;
    use tandem_ops::CurveId;

    const CURVES: [CurveId; 2] = [CurveId::Bn254, CurveId::Bls12_381];

    fn shape(log_n: u32) -> Shape {
        Shape { variables: (1 << log_n) - 1, publics: 1, domain: 1 << log_n }
    }

    fn loads(costs: &Costs, shape: Shape, plan: &Schedule, lanes: usize) -> Vec<f64> {
        let mut loads = vec![0.0; lanes];
        let rows = shape.domain as f64;
        match plan.chains == ONE_LANE {
            true => loads[0] = costs.row * rows,
            false => loads[..3].fill(costs.chain * rows),
        }
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
            let costs = &Costs::of(curve);
            for log_n in [20, 22, 24] {
                let shape = shape(log_n);
                let (one, plan) = roles(costs, shape, 1, ONE_LANE);
                assert_eq!(loads(costs, shape, &plan, 1)[0].max(one) - one, 0.0);
                for (lanes, chains) in (2..=8).map(|n| (n, ONE_LANE)).chain((3..=8).map(|n| (n, THREE_LANES))) {
                    let (end, plan) = roles(costs, shape, lanes, chains);
                    check_schedule(shape, lanes, &plan);
                    let loads = loads(costs, shape, &plan, lanes);
                    let longest = loads.iter().copied().fold(0.0, f64::max);
                    assert!(longest <= end * 1.0001, "{longest} {end}");
                    assert!(model::lanes_end(costs, shape.into(), &plan) <= end * 1.0001, "{plan}");
                    // Each cut costs a sum's fixed costs, and a lane its own digits; nothing else is lost but where the quotient comes late.
                    let lost = costs.g2_sum.of(shape.variables) + costs.digits * shape.variables as f64 + costs.verify;
                    let there = model::quotient_there(costs, shape.into(), chains, Lane(lanes));
                    let of_h = costs.g1_sum.of(shape.domain) + costs.h_point * (shape.domain / lanes) as f64;
                    let least = (one / lanes as f64 + lost).max((there + of_h) * 1.1);
                    assert!(end <= least, "2^{log_n} on {lanes}, {chains:?}: {end}, expected {least}");
                }
            }
        }
    }

    /// No other schedule over the same GPUs is faster by more than 5 %, what lanes cost counted.
    #[test]
    fn auto_loses_to_no_other_schedule() {
        for curve in CURVES {
            let costs = &Costs::of(curve);
            for log_n in 10..=26 {
                for lanes in [1, 2, 3, 4, 6, 8] {
                    let time = |layout| {
                        let plan = schedule(curve, shape(log_n), lanes, layout);
                        let used = model::lanes(&plan).len();
                        let cost = model::proof(costs, shape(log_n).into(), &plan) + costs.lane * (used - 1) as f64;
                        (cost, plan)
                    };
                    let (auto, plan) = time(Layout::Auto);
                    for layout in [Layout::Roles, Layout::Split] {
                        let (other, _) = time(layout);
                        assert!(auto <= other * 1.05, "2^{log_n} on {lanes}: {auto}, {layout:?} {other}\n{plan}");
                    }
                }
            }
        }
    }

    #[test]
    fn three_lanes_transform_where_one_would_hold_up_the_others() {
        for curve in CURVES {
            let chains = |log_n, lanes| schedule(curve, shape(log_n), lanes, Layout::Auto).chains;
            for log_n in [18, 20, 22, 24] {
                assert_eq!(chains(log_n, 2), ONE_LANE);
            }
            assert_eq!([22, 24].map(|log_n| chains(log_n, 8)), [THREE_LANES; 2]);
            assert_eq!(chains(24, 4), ONE_LANE);
            // Keys whose wires are picked have no matrices for the lane of c.
            let picked = Queries::picked(shape(24), 1 << 23, 1 << 22);
            assert_eq!(schedule(curve, picked, 8, Layout::Auto).chains, ONE_LANE);
        }
    }

    #[test]
    fn sums_are_cut_no_more_than_needed() {
        for curve in CURVES {
            for log_n in 10..=24 {
                for lanes in 1..=8 {
                    let plan = roles(&Costs::of(curve), shape(log_n), lanes, ONE_LANE).1;
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
                let plan = fastest(&Costs::of(curve), shape(log_n), 2);
                check_schedule(shape(log_n), 2, &plan);
                plan.witness.iter().map(|w| w.share.lane).chain(plan.quotient.iter().map(|q| q.lane)).max()
            };
            assert_eq!([10, 13, 18, 22].map(lanes), [0, 0, 1, 1].map(|lane| Some(Lane(lane))));
            let costs = Costs { lane: 10e6, ..Costs::of(curve) };
            assert_eq!(fastest(&costs, shape(12), 8), roles(&costs, shape(12), 1, ONE_LANE).1);
        }
    }

    #[test]
    fn a_second_lane_is_taken_where_it_was_measured_to_pay() {
        let costs = &Costs::of(CurveId::Bn254);
        let one_lane = |shape| fastest(costs, shape, 2) == roles(costs, shape, 1, ONE_LANE).1;
        // aes-128-ctr, a published key: two H200s take as long as one (docs/design/proof-scheduling.md).
        assert!(one_lane(Shape { variables: 41405, publics: 1152, domain: 1 << 16 }));
        assert!(!one_lane(shape(16)));
    }
}
