//! The layout for two GPUs that a text on NVLink proposes (docs/design/blueprint.md): the first has witness, matrices and twiddles and
//! makes the quotient, the second has the points. What either lacks it reads in the other's memory.

use super::{
    memory::{MemoryPlan, MemoryStage, PointBytes},
    shares, sums, Lane, LaneQueries, Queries, Schedule, Share, TransformPlacement, WireSet, WitnessQuery,
};

/// The points of the sum that joins a proof: A, B1, what L and H add up to, and delta.
pub(crate) const JOINED: usize = 4;

/// The second lane sums A and B1 and then B2, over a copy of the witness that it takes out of the first one's memory; the first sums L and H, over
/// points that it reads in the second one's. One lane is both.
pub(super) fn blueprint(queries: Queries, lanes: usize) -> Schedule {
    let (first, second) = (Lane(0), Lane(lanes.clamp(1, 2) - 1));
    let of = |lane, chosen: &[WitnessQuery]| -> Vec<LaneQueries> {
        let of_wires = |wires| {
            let share = Share { lane, range: 0..queries.scalars(wires) };
            let sums = sums(queries, wires, &share).into_iter().filter(|part| chosen.contains(&part.sum)).collect();
            LaneQueries { wires, share, sums }
        };
        WireSet::EACH.into_iter().map(of_wires).filter(|group| !group.sums.is_empty()).collect()
    };
    let witness = [
        of(second, &[WitnessQuery::A, WitnessQuery::B1]),
        of(second, &[WitnessQuery::B2]),
        of(first, &[WitnessQuery::L]),
    ];
    let quotient = shares(queries.h, 1);
    let schedule = Schedule::new(queries, TransformPlacement::on(first), witness.concat(), quotient);
    Schedule { whole: vec![first], points_on: Some(second), ..schedule }
}

/// What a proof takes of both lanes, step by step. `matrices` are the bytes of A and B, `sum` is as [`super::Planned::sum`], `limits` are what the
/// lanes may take.
pub fn blueprint_memory(
    queries: Queries,
    points: PointBytes,
    matrices: u64,
    sum: &dyn Fn(usize, bool) -> u64,
    limits: [u64; 2],
) -> [MemoryPlan; 2] {
    const SCALAR: u64 = size_of::<tandem_ops::Mont>() as u64;
    let (variables, h) = (queries.shape.variables, queries.h);
    let (wires, rows) = (variables as u64 * SCALAR, queries.shape.domain as u64 * SCALAR);
    let of_g1 = (queries.a + queries.b + queries.points(WitnessQuery::L) + h) as u64 * points.g1;
    let all_points = of_g1 + queries.b as u64 * points.g2;
    let stage = |name, work, points| MemoryStage { name, work, points };
    let first = vec![
        stage("1 witness, matrices", wires + matrices, 0),
        // a, b, c and a copy of one.
        stage("2 quotient", wires + matrices + 4 * rows, 0),
        stage("3 sums L, H", wires + rows + sum(variables.max(h), false), 0),
        stage("4 C", SCALAR * JOINED as u64 + sum(JOINED, false), 0),
    ];
    let second = vec![
        stage("1 points", 0, all_points),
        stage("2 sums A, B1", wires + sum(variables, false), all_points),
        stage("3 sum B2", wires + sum(variables, true), all_points),
        stage("4 A, B1 for C", 0, all_points + JOINED as u64 * points.g1),
    ];
    let plan = |(lane, stages, ahead): (usize, Vec<MemoryStage>, u64)| {
        let limit = limits[lane];
        let (reserve, pieces, ahead) = (limit / 16, Vec::new(), Some(ahead));
        let plan = MemoryPlan { lane: Lane(lane), limit, reserve, points_stay: true, ahead, pieces, stages };
        // The values of the next proof come after this one where they have no room beside it.
        if plan.fits() {
            plan
        } else {
            MemoryPlan { ahead: None, ..plan }
        }
    };
    [(0, first, wires), (1, second, 0)].map(plan)
}
