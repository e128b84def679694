//! Which lane does what: pure decisions, made once a key.
//!
//! Three chains of two transforms each lead from the rows' values to the odd coset: a, b, and c = a*b, which cannot
//! start before the values of a and b are there. Sums can be cut anywhere between two points; every lane holds the
//! points of what it sums.

mod roles;

use crate::tuning::Costs;
use std::fmt;
use std::ops::Range;
use tandem_ops::{CurveId, Lane, MsmSet};
pub use tandem_proof::Layout;

/// The sizes of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Wires of the circuit, the constant 1 among them.
    pub variables: usize,
    /// Public outputs and inputs.
    pub publics: usize,
    /// Rows of the domain, a power of two.
    pub domain: usize,
}

/// The lanes of the transforms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransformPlacement {
    /// Sparse product and both transforms of a.
    pub a: Lane,
    /// Sparse product and both transforms of b.
    pub b: Lane,
    /// c = a*b and its inverse transform.
    pub c_inverse: Lane,
    /// The transform of c to the odd coset.
    pub c_forward: Lane,
}

impl TransformPlacement {
    /// All on one lane.
    pub(crate) fn on(lane: Lane) -> Self {
        TransformPlacement { a: lane, b: lane, c_inverse: lane, c_forward: lane }
    }
}

/// A lane's share of a vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// The lane.
    pub lane: Lane,
    /// The elements; never empty.
    pub range: Range<usize>,
}

/// Sums over the witness that one lane makes of the same digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneQueries {
    /// The lane, and the values of the witness that it needs for its sums.
    pub share: Share,
    /// The sums, B2 first.
    pub sums: Vec<QueryShare>,
}

/// Who does what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// The lanes of the transforms.
    pub chains: TransformPlacement,
    /// Lanes that get the whole witness: those of the transforms, and those that sum over all of it.
    pub whole: Vec<Lane>,
    /// The sums over the witness; a lane may occur more than once.
    pub witness: Vec<LaneQueries>,
    /// Shares of the quotient's values, for the sum over H.
    pub quotient: Vec<Share>,
}

impl Schedule {
    fn new(shape: Shape, chains: TransformPlacement, witness: Vec<LaneQueries>, quotient: Vec<Share>) -> Self {
        let mut whole = vec![chains.a, chains.b];
        whole.extend(witness.iter().filter(|w| w.share.range.len() == shape.variables).map(|w| w.share.lane));
        whole.sort_unstable();
        whole.dedup();
        Schedule { chains, whole, witness, quotient }
    }

    /// Scalars that the lane takes apart at a time, at most.
    pub fn scalars(&self, lane: Lane) -> usize {
        let shares = self.witness.iter().map(|w| &w.share).chain(&self.quotient);
        shares.filter(|share| share.lane == lane).map(|share| share.range.len()).max().unwrap_or(0)
    }
}

/// One line for the transforms, one for each lane's sums over the witness, and one for H.
impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TransformPlacement { a, b, c_inverse, c_forward } = self.chains;
        write!(
            f,
            "transforms: a on lane {}, b on lane {}, c from lane {} to lane {}",
            a.0, b.0, c_inverse.0, c_forward.0
        )?;
        for LaneQueries { share, sums } in &self.witness {
            write!(f, "\nlane {}: witness {}..{}", share.lane.0, share.range.start, share.range.end)?;
            sums.iter().try_for_each(|sum| write!(f, ", {:?} {} points", sum.sum, sum.set.points))?;
        }
        write!(f, "\nH:")?;
        let share = |(i, share): (usize, &Share)| {
            write!(f, "{} lane {} {} points", if i == 0 { "" } else { "," }, share.lane.0, share.range.len())
        };
        self.quotient.iter().enumerate().try_for_each(share)
    }
}

/// Lays a proof of this shape out over up to `lanes` lanes, of which there is at least one.
pub fn schedule(curve: CurveId, shape: Shape, lanes: usize, layout: Layout) -> Schedule {
    match layout {
        Layout::Auto => roles::fastest(Costs::of(curve), shape, lanes),
        Layout::Roles => roles::roles(Costs::of(curve), shape, lanes).1,
        Layout::Split => split(shape, lanes),
    }
}

fn split(shape: Shape, lanes: usize) -> Schedule {
    let chains = match lanes {
        0 | 1 => TransformPlacement::on(Lane(0)),
        // Three transforms each: c changes lanes between its two.
        2 => TransformPlacement { a: Lane(0), b: Lane(1), c_inverse: Lane(0), c_forward: Lane(1) },
        _ => TransformPlacement { a: Lane(0), b: Lane(1), c_inverse: Lane(2), c_forward: Lane(2) },
    };
    let witness = shares(shape.variables, lanes);
    let witness = witness.into_iter().map(|share| LaneQueries { sums: sums(shape, &share), share }).collect();
    Schedule::new(shape, chains, witness, shares(shape.domain, lanes))
}

/// Cuts `len` elements into one share a lane, as even as whole elements allow; lanes without any have none.
pub fn shares(len: usize, lanes: usize) -> Vec<Share> {
    let lanes = lanes.max(1);
    // len * lanes stays far below 2^64: both are counts of things in memory.
    let cut = |i: usize| (len as u128 * i as u128 / lanes as u128) as usize;
    (0..lanes).map(|i| Share { lane: Lane(i), range: cut(i)..cut(i + 1) }).filter(|s| !s.range.is_empty()).collect()
}

/// One of the sums over the witness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WitnessQuery {
    /// B in G2: the longest, so it goes first.
    B2,
    /// A in G1.
    A,
    /// B in G1.
    B1,
    /// The private wires' part of C in G1.
    L,
}

/// The points of one sum on one lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryShare {
    /// Which sum.
    pub sum: WitnessQuery,
    /// The set as the backend's plan sees it: `first` counts from the start of the lane's share of the witness.
    pub set: MsmSet,
    /// The points, counted in the key's section.
    pub points: Range<usize>,
}

/// The sums that `share` of the witness takes part in, G2 first. A sum without points there is left out.
pub fn sums(shape: Shape, share: &Share) -> Vec<QueryShare> {
    // L has no points for the constant and the public wires.
    let hidden = shape.publics + 1;
    [
        (WitnessQuery::B2, true, 0),
        (WitnessQuery::A, false, 0),
        (WitnessQuery::B1, false, 0),
        (WitnessQuery::L, false, hidden),
    ]
    .into_iter()
    .filter_map(|(sum, g2, skipped)| {
        let start = share.range.start.max(skipped);
        let points = share.range.end.checked_sub(start).filter(|&n| n > 0)?;
        let set = MsmSet { g2, first: start - share.range.start, points };
        Some(QueryShare { sum, set, points: start - skipped..start - skipped + points })
    })
    .collect()
}

/// Bytes for points of the `free` ones of a lane, after what a proof itself needs, with `scalars` taken apart at a time.
pub fn point_budget_bytes(free: u64, shape: Shape, scalars: usize) -> u64 {
    // For buckets, for what a sum keeps of its additions, and for what a runtime keeps for itself.
    let overhead = (free / 16).max(512 << 20).min(free / 8);
    free.saturating_sub(working_set(shape, scalars)).saturating_sub(overhead)
}

/// What falls to `part` of `all` if they share `bytes` in proportion.
pub fn part_of(bytes: u64, part: usize, all: usize) -> u64 {
    // Not above `bytes`, since a part is not above the whole.
    (u128::from(bytes) * part as u128 / all.max(1) as u128) as u64
}

/// Bytes of a lane that a proof needs beside points and matrices: the witness, the vectors of the three chains and a
/// copy of one, and the digits of `scalars`, sorted out of place.
pub fn working_set(shape: Shape, scalars: usize) -> u64 {
    const SCALAR: u64 = 32;
    /// 26 windows of a 4-byte key and a 4-byte index, twice.
    const DIGITS: u64 = 26 * 8 * 2;
    (shape.variables as u64 + 4 * shape.domain as u64) * SCALAR + scalars as u64 * DIGITS
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::collections::HashMap;

    const SHAPE: Shape = Shape { variables: 1000, publics: 3, domain: 1024 };

    #[test]
    fn a_schedule_prints_itself() {
        let text = |lanes, layout| schedule(CurveId::Bn254, SHAPE, lanes, layout).to_string();
        let one = "transforms: a on lane 0, b on lane 0, c from lane 0 to lane 0\n\
            lane 0: witness 0..1000, B2 1000 points, A 1000 points, B1 1000 points, L 996 points\nH: lane 0 1024 points";
        assert_eq!(text(1, Layout::Split), one);
        let two = "transforms: a on lane 0, b on lane 1, c from lane 0 to lane 1\n\
            lane 0: witness 0..500, B2 500 points, A 500 points, B1 500 points, L 496 points\n\
            lane 1: witness 500..1000, B2 500 points, A 500 points, B1 500 points, L 500 points\n\
            H: lane 0 512 points, lane 1 512 points";
        assert_eq!(text(2, Layout::Split), two);
    }

    #[test]
    fn shares_cover_everything_once() {
        for len in [0, 1, 2, 3, 7, 64, 1000] {
            for lanes in 1..9 {
                let shares = shares(len, lanes);
                let mut next = 0;
                for share in &shares {
                    assert_eq!(share.range.start, next);
                    assert!(share.range.end > next && share.lane.0 < lanes);
                    next = share.range.end;
                }
                assert_eq!(next, len);
                let sizes: Vec<_> = shares.iter().map(|s| s.range.len()).collect();
                assert!(sizes.iter().max().unwrap_or(&0) - sizes.iter().min().unwrap_or(&0) <= 1);
            }
        }
    }

    /// Each point of each section is on exactly one lane, with its own scalar.
    pub(super) fn check_schedule(shape: Shape, lanes: usize, plan: &Schedule) {
        let mut seen: HashMap<_, Vec<Range<usize>>> = HashMap::new();
        for LaneQueries { share, sums } in &plan.witness {
            assert!(share.lane.0 < lanes && share.range.end <= shape.variables && !sums.is_empty());
            assert!(share.range.len() < shape.variables || plan.whole.contains(&share.lane));
            for part in sums {
                assert_eq!(part.points.len(), part.set.points);
                assert!(part.set.first + part.set.points <= share.range.len() && part.set.points > 0);
                let offset = if part.sum == WitnessQuery::L { shape.publics + 1 } else { 0 };
                assert_eq!(share.range.start + part.set.first, part.points.start + offset);
                assert_eq!(part.set.g2, part.sum == WitnessQuery::B2);
                seen.entry(Some(part.sum)).or_default().push(part.points.clone());
            }
        }
        for share in &plan.quotient {
            assert!(share.lane.0 < lanes && !share.range.is_empty());
            seen.entry(None).or_default().push(share.range.clone());
        }
        let private = shape.variables - 1 - shape.publics;
        let all = [
            (Some(WitnessQuery::A), shape.variables),
            (Some(WitnessQuery::B1), shape.variables),
            (Some(WitnessQuery::B2), shape.variables),
        ];
        for (sum, points) in all.into_iter().chain([(Some(WitnessQuery::L), private), (None, shape.domain)]) {
            let mut ranges = seen.remove(&sum).unwrap_or_default();
            ranges.sort_by_key(|r| r.start);
            let end = ranges.iter().fold(0, |end, r| {
                assert_eq!(r.start, end, "{sum:?} {shape:?} on {lanes} lanes: {plan:?}");
                r.end
            });
            assert_eq!(end, points, "{sum:?} {shape:?} on {lanes} lanes");
        }
        let TransformPlacement { a, b, c_inverse, c_forward } = plan.chains;
        assert!([a, b, c_inverse, c_forward].iter().all(|lane| lane.0 < lanes));
        assert!(plan.whole.contains(&a) && plan.whole.contains(&b));
        // No lane has two shares of the quotient, or one sum twice.
        for lane in (0..lanes).map(Lane) {
            let sums = plan.witness.iter().filter(|w| w.share.lane == lane).flat_map(|w| &w.sums);
            let mut sums: Vec<_> = sums.map(|part| format!("{:?}", part.sum)).collect();
            sums.sort();
            assert!(sums.windows(2).all(|w| w[0] != w[1]), "{sums:?}");
            assert!(plan.quotient.iter().filter(|q| q.lane == lane).count() <= 1);
        }
    }

    #[test]
    fn each_point_is_summed_with_its_own_scalar() {
        for publics in [0, 1, 3, 250, 251, 600, 999] {
            let shape = Shape { publics, ..SHAPE };
            for lanes in 1..10 {
                for curve in [CurveId::Bn254, CurveId::Bls12_381] {
                    for layout in [Layout::Auto, Layout::Roles, Layout::Split] {
                        check_schedule(shape, lanes, &schedule(curve, shape, lanes, layout));
                    }
                }
            }
        }
        check_schedule(
            Shape { variables: 1, publics: 0, domain: 1 },
            2,
            &schedule(CurveId::Bn254, Shape { variables: 1, publics: 0, domain: 1 }, 2, Layout::Roles),
        );
    }

    #[test]
    fn two_lanes_carry_three_transforms_each() {
        for (lanes, expected) in [(1, vec![6]), (2, vec![3, 3]), (3, vec![2, 2, 2]), (5, vec![2, 2, 2, 0, 0])] {
            let TransformPlacement { a, b, c_inverse, c_forward } = split(SHAPE, lanes).chains;
            let mut transforms = vec![0; lanes];
            for lane in [a, a, b, b, c_inverse, c_forward] {
                transforms[lane.0] += 1;
            }
            assert_eq!(transforms, expected);
        }
    }

    #[test]
    fn room_for_points_is_what_is_left_and_never_more() {
        let need = working_set(SHAPE, 1024);
        assert_eq!(point_budget_bytes(need, SHAPE, 1024), 0);
        // An eighth is kept back from little memory, a sixteenth from much.
        let free = 8 * (need + 400);
        assert_eq!(point_budget_bytes(free, SHAPE, 1024), free - need - free / 8);
        assert_eq!(point_budget_bytes(u64::MAX, SHAPE, 8), u64::MAX - working_set(SHAPE, 8) - u64::MAX / 16);
        assert_eq!(part_of(1000, 3, 4), 750);
        assert_eq!(part_of(u64::MAX, 5, 5), u64::MAX);
        assert_eq!(part_of(u64::MAX, 0, 0), 0);
    }
}
