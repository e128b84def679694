//! How a lane's memory is planned.

use std::collections::BTreeMap;
use tandem_groth16::plan::{
    memory_plan, schedule, Layout, MemoryPlan, Planned, PointBytes, Queries, Schedule, Shape, WireSet,
};
use tandem_ops::{CurveId, Lane, SumBytes};

const BLS: PointBytes = PointBytes { g1: 96, g2: 192 };

fn queries(log: u32) -> Queries {
    let shape = Shape { variables: 3 << (log - 2), publics: 3, domain: 1 << log };
    Queries::picked(shape, (3 << (log - 2)) - 7, 1 << (log - 3))
}

/// Which point meets which scalar.
fn pairs(schedule: &Schedule) -> BTreeMap<String, Vec<(usize, usize)>> {
    let mut all = BTreeMap::<String, Vec<_>>::new();
    for group in &schedule.witness {
        for sum in &group.sums {
            assert!(sum.set.first + sum.set.points <= group.share.range.len());
            let scalars = group.share.range.start + sum.set.first..;
            let name = format!("{:?} {:?} {:?}", group.share.lane, group.wires, sum.sum);
            all.entry(name).or_default().extend(sum.points.clone().zip(scalars).take(sum.set.points));
        }
    }
    for share in &schedule.quotient {
        let name = format!("{:?} H", share.lane);
        all.entry(name).or_default().extend(share.range.clone().map(|i| (i, i)));
    }
    all
}

#[test]
fn pieces_are_all_that_was_cut() {
    for lanes in 1..4 {
        for layout in [Layout::Split, Layout::Roles] {
            let whole = schedule(CurveId::Bls12_381, queries(9), lanes, layout);
            for pieces in [1, 2, 3, 7, 64] {
                let cut = whole.clone().in_pieces(|_, _| pieces);
                assert_eq!(pairs(&whole), pairs(&cut), "{lanes} lanes, {layout:?}, {pieces} pieces");
                let most = |schedule: &Schedule| schedule.scalars(Lane(0));
                assert!(most(&cut) <= most(&whole).div_ceil(pieces));
            }
            // Each sum has its own number.
            let of = |wires| if wires == Some(WireSet::OfB) { 3 } else { 1 };
            let cut = whole.clone().in_pieces(|_, wires| of(wires));
            let count = |schedule: &Schedule, wires| schedule.witness.iter().filter(|w| w.wires == wires).count();
            assert_eq!(count(&cut, WireSet::OfB), 3 * count(&whole, WireSet::OfB));
            assert_eq!(count(&cut, WireSet::OfA), count(&whole, WireSet::OfA));
            assert_eq!(cut.quotient, whole.quotient);
            assert_eq!(pairs(&whole), pairs(&cut));
        }
    }
}

fn plan(queries: Queries, schedule: &Schedule, may: (bool, bool), limit: u64) -> MemoryPlan {
    plan_with(queries, schedule, may, limit, true)
}

/// As a GPU has it for large sums, which are made in rounds from 4 GiB on, over G2 from 8.
fn plan_with(queries: Queries, schedule: &Schedule, may: (bool, bool), limit: u64, has_rounds: bool) -> MemoryPlan {
    let rounds = |g2: bool, memory: u64| {
        let bytes = 1u64 << if g2 { 31 } else { 30 };
        if has_rounds && memory >= 4 * bytes {
            bytes
        } else {
            0
        }
    };
    let sum =
        |scalars: usize, g2: bool, memory: u64| SumBytes { least: scalars as u64 * 160, faster: rounds(g2, memory) };
    let (may_wait, may_cut) = may;
    let of = Planned { queries, schedule, points: BLS, sum: &sum, may_wait, may_cut };
    memory_plan(&of, (Lane(0), limit))
}

/// From the worst to the best way, and how often each sum is cut.
fn rank(plan: &MemoryPlan) -> (u32, Vec<usize>) {
    let way = 2 * u32::from(plan.points_stay) + u32::from(plan.ahead.is_some());
    (way, plan.pieces.iter().map(|pieces| pieces.1).collect())
}

#[test]
fn points_stay_where_there_is_room() {
    for (lanes, may_cut) in [(1, true), (1, false), (2, true), (2, false)] {
        let queries = queries(26);
        let schedule = schedule(CurveId::Bls12_381, queries, lanes, Layout::Split);
        let of = |gib: u64, may_wait| plan_with(queries, &schedule, (may_wait, may_cut), gib << 30, false);
        let mut have_rounds = false;
        let (mut last, mut ways) = ((0, vec![usize::MAX; 9]), BTreeMap::new());
        for gib in 3..150 {
            let plan = of(gib, true);
            // More memory, a better way, or the same one with fewer pieces.
            let (way, pieces) = rank(&plan);
            let fewer = pieces.iter().zip(&last.1).all(|(now, before)| now <= before);
            assert!(way > last.0 || way == last.0 && fewer, "{gib} GiB: {plan}");
            assert!(plan.fits() || way == 0, "{plan}");
            assert!(may_cut || !plan.points_stay || plan.most_pieces() == 1, "{plan}");
            // With what makes sums faster it is the same way, and no sum has many more pieces; it fits no less.
            let with = super::memory::plan(queries, &schedule, (true, may_cut), gib << 30);
            let (way_with, pieces_with) = rank(&with);
            let few = pieces_with.iter().zip(&pieces).all(|(with, without)| (*without..=3 * without).contains(with));
            assert!(way_with == way && with.fits() == plan.fits() && few, "{gib} GiB: {with} and {plan}");
            have_rounds |= with.stages != plan.stages;
            ways.entry(way).or_insert_with(Vec::new).push(with.most_pieces());
            last = (way, pieces);
            let stays = of(gib, false);
            assert!(stays.points_stay && (stays.fits() || stays.most_pieces() == 1), "{stays}");
            if let (true, true) = (stays.points_stay, stays.fits()) {
                let points = stays.stages[0].points;
                // What is promised to points is there, and no stage takes it.
                assert!(points > 0 && stays.point_room() >= points, "{stays}");
                assert!(stays.point_room() - points == stays.limit - stays.peak(), "{stays}");
            }
        }
        assert!(have_rounds);
        assert_eq!(last, (3, vec![1; last.1.len()]));
        assert!(ways.contains_key(&0) && ways.contains_key(&3), "{ways:?}");
        assert_eq!(ways[&3].iter().any(|&pieces| pieces > 1), may_cut, "{ways:?}");
        // A card of 16 GB.
        let card = of(16, true);
        assert!(card.fits() && (lanes == 2 || !card.points_stay) && card.most_pieces() <= 16, "{card}");
        assert!(!of(3, true).fits());
    }
}

/// The largest partition of Filecoin's on a GPU of 80 GB: 44 GiB of points stay, and the next values come meanwhile.
#[test]
fn a_large_partition_stays_on_80_gb() {
    let shape = Shape { variables: 130_170_221, publics: 327, domain: 1 << 27 };
    let queries = Queries::picked(shape, 129_753_620, 33_112_282);
    let schedule = schedule(CurveId::Bls12_381, queries, 1, Layout::Auto);
    let gib = |x: f64| (x * f64::from(1 << 30)) as u64;
    let stays = plan(queries, &schedule, (true, true), gib(79.1));
    assert!(stays.fits() && stays.points_stay && stays.most_pieces() <= 16, "{stays}");
    assert!(stays.stages[0].points > gib(44.0) && stays.stages[0].points < gib(44.2), "{stays}");
    assert!(plan(queries, &schedule, (true, true), gib(70.0)).points_stay);
    // For one proof nothing is cut to keep them.
    assert!(!plan(queries, &schedule, (true, false), gib(70.0)).points_stay);
    assert!(plan(queries, &schedule, (true, false), gib(139.0)).points_stay);
}

#[test]
fn a_plan_is_a_table() {
    let queries = queries(26);
    let schedule = schedule(CurveId::Bls12_381, queries, 1, Layout::Split);
    let text = plan(queries, &schedule, (true, true), 20 << 30).to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.len() == 7 && lines[0].contains("20480 MiB at most"), "{text}");
    // w comes as elements and becomes integers, 1.5 GiB each; a and b are 2 GiB; the numbers of rows and wires 256 and 224 MiB.
    assert!(lines[2].starts_with("upload") && lines[2].contains("7648"), "{text}");
    assert!(lines[4].starts_with("transforms") && lines[4].contains("8672"), "{text}");
    assert!(lines[6].contains("the next proof"), "{text}");
}
