//! How a lane's memory is planned.

use std::collections::BTreeMap;
use tandem_groth16::plan::{memory_plan, schedule, Layout, PointBytes, Queries, Schedule, Shape, MOST_PIECES};
use tandem_ops::{CurveId, Lane};

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
                let cut = whole.clone().in_pieces(|_| Some(pieces));
                assert_eq!(pairs(&whole), pairs(&cut), "{lanes} lanes, {layout:?}, {pieces} pieces");
                let most = |schedule: &Schedule| schedule.scalars(Lane(0));
                assert!(most(&cut) <= most(&whole).div_ceil(pieces));
            }
            assert_eq!(whole.clone().in_pieces(|_| None), whole);
        }
    }
}

#[test]
fn points_stay_where_there_is_room() {
    for lanes in [1, 2] {
        let (queries, mut last) = (queries(26), usize::MAX);
        let schedule = schedule(CurveId::Bls12_381, queries, lanes, Layout::Split);
        let of = |gib: u64, may_wait| memory_plan(queries, &schedule, BLS, (Lane(0), gib << 30), may_wait);
        for gib in 6..150 {
            let plan = of(gib, true);
            let pieces = plan.pieces.unwrap_or(0);
            // More memory, fewer pieces.
            assert!(pieces <= last, "{gib} GiB: {plan}");
            last = pieces;
            if plan.pieces.is_some_and(|pieces| pieces < MOST_PIECES) {
                assert!(plan.fits(), "{plan}");
            }
            assert!(of(gib, false).pieces.is_none());
        }
        assert_eq!(last, 0);
        // A card of 16 GB.
        let card = of(16, true);
        assert!(card.fits() && card.pieces.is_some_and(|pieces| pieces <= 16), "{card}");
        assert!(!of(4, true).fits());
    }
}

#[test]
fn a_plan_is_a_table() {
    let queries = queries(26);
    let schedule = schedule(CurveId::Bls12_381, queries, 1, Layout::Split);
    let text = memory_plan(queries, &schedule, BLS, (Lane(0), 16 << 30), true).to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.len() == 6 && lines[0].contains("16384 MiB at most"), "{text}");
    // w, a and b are 1.5 + 2 + 2 GiB, and the numbers of rows and wires 0.5 + 0.4.
    assert!(lines[2].starts_with("upload") && lines[2].contains("6560"), "{text}");
    assert!(lines[4].starts_with("transforms") && lines[4].contains("9120"), "{text}");
}
