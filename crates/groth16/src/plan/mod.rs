//! Which lane does what: pure decisions, made once a key.
//!
//! Three chains of two transforms each lead from the rows' values to the odd coset: a, b, and c = a*b, which cannot
//! start before the values of a and b are there. Sums can be cut anywhere between two points; every lane holds the
//! points of what it sums.

mod blueprint;
mod memory;
mod model;
mod roles;

use crate::tuning::Costs;
pub use blueprint::blueprint_memory;
pub(crate) use blueprint::JOINED;
pub use memory::{memory_plan, MemoryPlan, MemoryStage, Planned, PointBytes, MOST_PIECES};
use std::fmt;
use std::ops::Range;
use tandem_ops::{CurveId, Lane, MsmSet};
pub use tandem_proof::Layout;

/// The sizes of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// WireSet of the circuit, the constant 1 among them.
    pub variables: usize,
    /// Public outputs and inputs.
    pub publics: usize,
    /// Rows of the domain, a power of two.
    pub domain: usize,
}

/// How many points the sums of a key have, and of which wires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queries {
    /// The key's sizes.
    pub shape: Shape,
    /// Points of A.
    pub a: usize,
    /// Points of B, in either group.
    pub b: usize,
    /// Points of H.
    pub h: usize,
    /// Whether A and B have points for some wires only, which are picked out of the witness.
    pub picked: bool,
}

/// A key of snarkjs: A and B have a point for each wire, H one for each row.
impl From<Shape> for Queries {
    fn from(shape: Shape) -> Self {
        Queries { shape, a: shape.variables, b: shape.variables, h: shape.domain, picked: false }
    }
}

/// Which wires' values a sum's scalars are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WireSet {
    /// All.
    All,
    /// Those that have points in A.
    OfA,
    /// Those that have points in B.
    OfB,
}

impl WireSet {
    const EACH: [WireSet; 3] = [WireSet::All, WireSet::OfA, WireSet::OfB];
}

impl Queries {
    /// A key whose A and B have so many points, of the wires that the circuit names there, and whose H has powers of tau.
    pub fn picked(shape: Shape, a: usize, b: usize) -> Self {
        Queries { shape, a, b, h: shape.domain - 1, picked: true }
    }

    /// Whose values the scalars of a sum are.
    fn wires(&self, sum: WitnessQuery) -> WireSet {
        match sum {
            WitnessQuery::A if self.picked => WireSet::OfA,
            WitnessQuery::B1 | WitnessQuery::B2 if self.picked => WireSet::OfB,
            _ => WireSet::All,
        }
    }

    /// How many values these are.
    fn scalars(&self, wires: WireSet) -> usize {
        match wires {
            WireSet::All => self.shape.variables,
            WireSet::OfA => self.a,
            WireSet::OfB => self.b,
        }
    }

    /// Values at the start of the scalars that the sum has no points for.
    fn hidden(&self, sum: WitnessQuery) -> usize {
        match sum {
            WitnessQuery::L => self.shape.publics + 1,
            WitnessQuery::A | WitnessQuery::B1 | WitnessQuery::B2 => 0,
        }
    }

    /// Points of a sum.
    fn points(&self, sum: WitnessQuery) -> usize {
        self.scalars(self.wires(sum)) - self.hidden(sum)
    }
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
    pub(crate) const fn on(lane: Lane) -> Self {
        TransformPlacement { a: lane, b: lane, c_inverse: lane, c_forward: lane }
    }
}

/// All on the first lane.
const ONE_LANE: TransformPlacement = TransformPlacement::on(Lane(0));
/// A chain on each of the first three.
const THREE_LANES: TransformPlacement =
    TransformPlacement { a: Lane(0), b: Lane(1), c_inverse: Lane(2), c_forward: Lane(2) };

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
    /// Whose values the scalars are.
    pub wires: WireSet,
    /// The lane, and those of the values that it needs for its sums.
    pub share: Share,
    /// The sums, B2 first.
    pub sums: Vec<QueryShare>,
}

/// Who does what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// The lanes of the transforms.
    pub chains: TransformPlacement,
    /// Lanes that get the witness, all of them at once: those that begin with its products by the matrices, and those that sum over it. To send
    /// a lane less than all of it takes longer: over its own link to the host, or from a lane that has more to do.
    pub whole: Vec<Lane>,
    /// The sums over the witness; a lane may occur more than once.
    pub witness: Vec<LaneQueries>,
    /// Shares of the quotient's values, for the sum over H.
    pub quotient: Vec<Share>,
    /// The lane on which the points of all sums lie, if not each on the lane of its sum. The others read them there, and it reads the witness on
    /// the first of `whole`. Matrices are then brought by each proof, and dropped when the quotient is there.
    pub points_on: Option<Lane>,
    /// How many times as fast as on one lane the cost model says that a proof is, in hundredths, from the witness on the host to the verdict.
    /// `None` on one lane.
    pub foretold: Option<u32>,
}

impl Schedule {
    fn new(queries: Queries, chains: TransformPlacement, witness: Vec<LaneQueries>, quotient: Vec<Share>) -> Self {
        // Where values are picked, the transforms take none, and each lane picks its own.
        let mut whole = if queries.picked { vec![] } else { vec![chains.a, chains.b, chains.c_inverse] };
        whole.extend(witness.iter().map(|w| w.share.lane));
        whole.sort_unstable();
        whole.dedup();
        Schedule { chains, whole, witness, quotient, points_on: None, foretold: None }
    }

    /// The lane that has the points of a lane's sums.
    pub fn home(&self, lane: Lane) -> Lane {
        self.points_on.unwrap_or(lane)
    }

    /// Scalars that the lane takes apart at a time, at most.
    pub fn scalars(&self, lane: Lane) -> usize {
        let shares = self.witness.iter().map(|w| &w.share).chain(&self.quotient);
        shares.filter(|share| share.lane == lane).map(|share| share.range.len()).max().unwrap_or(0)
    }
}

/// One line for the transforms, one for each lane's sums over the witness, one for H, one for the witness's way to several lanes, and what is
/// foretold.
impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TransformPlacement { a, b, c_inverse, c_forward } = self.chains;
        write!(
            f,
            "transforms: a on lane {}, b on lane {}, c from lane {} to lane {}",
            a.0, b.0, c_inverse.0, c_forward.0
        )?;
        for LaneQueries { wires, share, sums } in &self.witness {
            let of = match wires {
                WireSet::All => "witness",
                WireSet::OfA => "wires of A",
                WireSet::OfB => "wires of B",
            };
            write!(f, "\nlane {}: {of} {}..{}", share.lane.0, share.range.start, share.range.end)?;
            sums.iter().try_for_each(|sum| write!(f, ", {:?} {} points", sum.sum, sum.set.points))?;
        }
        write!(f, "\nH:")?;
        let share = |(i, share): (usize, &Share)| {
            write!(f, "{} lane {} {} points", if i == 0 { "" } else { "," }, share.lane.0, share.range.len())
        };
        self.quotient.iter().enumerate().try_for_each(share)?;
        if let (Some(home), Some(first)) = (self.points_on, self.whole.first()) {
            write!(
                f,
                "\nall points on lane {0}, which reads the witness on lane {1}; C is joined on lane {1}, from points on lane {0}",
                home.0, first.0
            )?;
        }
        if let [lanes @ .., last] = &self.whole[..] {
            if !lanes.is_empty() {
                write!(f, "\nwitness: to each of lanes")?;
                lanes.iter().try_for_each(|lane| write!(f, " {},", lane.0))?;
                write!(f, " {} a piece, which all exchange", last.0)?;
            }
        }
        self.foretold
            .map_or(Ok(()), |gain| write!(f, "\nforetold: {}.{:02} times as fast as one lane", gain / 100, gain % 100))
    }
}

/// Lays a proof with such a key out over up to `lanes` lanes, of which there is at least one.
pub fn schedule(curve: CurveId, queries: impl Into<Queries>, lanes: usize, layout: Layout) -> Schedule {
    let (costs, queries) = (&Costs::of(curve), queries.into());
    let schedule = match layout {
        Layout::Auto => roles::fastest(costs, queries, lanes),
        Layout::Roles => roles::all(costs, queries, lanes),
        Layout::Split => split(queries, lanes),
        Layout::Blueprint => blueprint::blueprint(queries, lanes),
    };
    let foretold = model::foretold(costs, queries, &schedule);
    Schedule { foretold, ..schedule }
}

fn split(queries: Queries, lanes: usize) -> Schedule {
    let chains = match lanes {
        0 | 1 => ONE_LANE,
        // Three transforms each: c changes lanes between its two.
        2 => TransformPlacement { a: Lane(0), b: Lane(1), c_inverse: Lane(0), c_forward: Lane(1) },
        _ => THREE_LANES,
    };
    let of = |wires| {
        let shares = shares(queries.scalars(wires), lanes).into_iter();
        shares.map(move |share| LaneQueries { wires, sums: sums(queries, wires, &share), share })
    };
    let witness = WireSet::EACH.into_iter().flat_map(of).filter(|part| !part.sums.is_empty()).collect();
    Schedule::new(queries, chains, witness, shares(queries.h, lanes))
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

/// The sums that `share` of these values takes part in, G2 first. A sum without points there is left out.
pub fn sums(queries: Queries, wires: WireSet, share: &Share) -> Vec<QueryShare> {
    [WitnessQuery::B2, WitnessQuery::A, WitnessQuery::B1, WitnessQuery::L]
        .into_iter()
        .filter(|sum| queries.wires(*sum) == wires)
        .filter_map(|sum| {
            let hidden = queries.hidden(sum);
            let start = share.range.start.max(hidden);
            let points = share.range.end.checked_sub(start).filter(|&n| n > 0)?;
            let set = MsmSet { g2: sum == WitnessQuery::B2, first: start - share.range.start, points };
            Some(QueryShare { sum, set, points: start - hidden..start - hidden + points })
        })
        .collect()
}

/// Bytes for points of the `free` ones of a lane, after what a proof itself needs, with `scalars` taken apart at a time.
pub fn point_budget_bytes(free: u64, queries: impl Into<Queries>, scalars: usize) -> u64 {
    tandem_proof::budget::for_points(free, working_set(queries, scalars))
}

/// What falls to `part` of `all` if they share `bytes` in proportion.
pub fn part_of(bytes: u64, part: usize, all: usize) -> u64 {
    // Not above `bytes`, since a part is not above the whole.
    (u128::from(bytes) * part as u128 / all.max(1) as u128) as u64
}

/// Bytes of a lane that a proof needs beside points and matrices: the witness, the vectors of the three chains and a
/// copy of one, and the digits of `scalars`, sorted out of place. Values that are picked are a copy of the witness's, with their numbers.
pub fn working_set(queries: impl Into<Queries>, scalars: usize) -> u64 {
    const SCALAR: u64 = 32;
    /// 26 windows of a 4-byte key and a 4-byte index, twice.
    const DIGITS: u64 = 26 * 8 * 2;
    /// A value and the number of its wire.
    const PICKED: u64 = SCALAR + 4;
    let Queries { shape, picked, .. } = queries.into();
    let copies = if picked { shape.variables as u64 * PICKED } else { 0 };
    (shape.variables as u64 + 4 * shape.domain as u64) * SCALAR + copies + scalars as u64 * DIGITS
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::collections::HashMap;

    const SHAPE: Shape = Shape { variables: 1000, publics: 3, domain: 1024 };
    const LAYOUTS: [Layout; 4] = [Layout::Auto, Layout::Roles, Layout::Split, Layout::Blueprint];

    #[test]
    fn a_schedule_prints_itself() {
        let text = |lanes, layout| schedule(CurveId::Bn254, SHAPE, lanes, layout).to_string();
        let one = "transforms: a on lane 0, b on lane 0, c from lane 0 to lane 0\n\
            lane 0: witness 0..1000, B2 1000 points, A 1000 points, B1 1000 points, L 996 points\nH: lane 0 1024 points";
        assert_eq!(text(1, Layout::Split), one);
        let two = "transforms: a on lane 0, b on lane 1, c from lane 0 to lane 1\n\
            lane 0: witness 0..500, B2 500 points, A 500 points, B1 500 points, L 496 points\n\
            lane 1: witness 500..1000, B2 500 points, A 500 points, B1 500 points, L 500 points\n\
            H: lane 0 512 points, lane 1 512 points\nwitness: to each of lanes 0, 1 a piece, which all exchange\nforetold: ";
        assert!(text(2, Layout::Split).starts_with(two), "{}", text(2, Layout::Split));
        let blueprint = "transforms: a on lane 0, b on lane 0, c from lane 0 to lane 0\n\
            lane 1: witness 0..1000, A 1000 points, B1 1000 points\nlane 1: witness 0..1000, B2 1000 points\n\
            lane 0: witness 0..1000, L 996 points\nH: lane 0 1024 points\n\
            all points on lane 1, which reads the witness on lane 0; C is joined on lane 0, from points on lane 1\nforetold: ";
        assert!(text(2, Layout::Blueprint).starts_with(blueprint), "{}", text(2, Layout::Blueprint));
    }

    /// More lanes gain more, never as many times as there are; what small proofs gain is not worth the lanes.
    #[test]
    fn what_lanes_gain_is_foretold() {
        let of = |log_rows: u32, lanes, layout| {
            let (variables, domain) = (1 << log_rows, 1 << log_rows);
            schedule(CurveId::Bn254, Shape { variables, publics: 3, domain }, lanes, layout).foretold
        };
        let gains: Vec<u32> = (2..=8).map(|lanes| of(24, lanes, Layout::Auto).unwrap()).collect();
        assert!(
            gains.is_sorted() && gains.iter().zip(2..).all(|(&gain, lanes)| gain > 100 && gain <= 100 * lanes),
            "{gains:?}"
        );
        assert!(gains[0] > 180 && gains[2] > 300, "{gains:?}");
        // Fewer lanes may be worth it than would be fastest.
        assert!(of(20, 8, Layout::Roles) > of(20, 8, Layout::Auto));
        // Where each of three lanes has a chain, eight are not held up by the transforms.
        assert!(gains[6] >= 500, "{gains:?}");
        // One lane has more to do than the other, and nothing is cut.
        for log_rows in [16, 20, 24] {
            let [blueprint, roles] = [Layout::Blueprint, Layout::Roles].map(|layout| of(log_rows, 2, layout).unwrap());
            assert!((90..roles).contains(&blueprint), "2^{log_rows}: {blueprint} and {roles}");
        }
        assert_eq!([of(10, 4, Layout::Auto), of(24, 1, Layout::Roles), of(24, 1, Layout::Split)], [None; 3]);
        let text = schedule(CurveId::Bn254, SHAPE, 2, Layout::Roles).to_string();
        let last = text.lines().last().unwrap();
        assert!(last.starts_with("foretold: ") && last.ends_with(" times as fast as one lane"), "{last}");
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
    pub(super) fn check_schedule(queries: impl Into<Queries>, lanes: usize, plan: &Schedule) {
        let queries = queries.into();
        let shape = queries.shape;
        let mut seen: HashMap<_, Vec<Range<usize>>> = HashMap::new();
        for LaneQueries { wires, share, sums } in &plan.witness {
            assert!(share.lane.0 < lanes && share.range.end <= queries.scalars(*wires) && !sums.is_empty());
            assert!(plan.whole.contains(&share.lane) || plan.points_on == Some(share.lane));
            for part in sums {
                assert_eq!(*wires, queries.wires(part.sum));
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
            (Some(WitnessQuery::A), queries.a),
            (Some(WitnessQuery::B1), queries.b),
            (Some(WitnessQuery::B2), queries.b),
        ];
        for (sum, points) in all.into_iter().chain([(Some(WitnessQuery::L), private), (None, queries.h)]) {
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
        assert!(queries.picked || [a, b, c_inverse].iter().all(|lane| plan.whole.contains(lane)));
        assert!(!plan.whole.is_empty());
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
                    for layout in LAYOUTS {
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

    /// Of keys whose A and B have points for some wires: none in B, few, and all.
    #[test]
    fn each_picked_value_has_its_own_point() {
        let shapes = [SHAPE, Shape { variables: 1, publics: 0, domain: 1 }, Shape { publics: 999, ..SHAPE }];
        for shape in shapes {
            for b in [0, 1, shape.variables / 3, shape.variables] {
                for a in [shape.publics + 1, shape.variables] {
                    let queries = Queries::picked(shape, a, b);
                    for lanes in 1..10 {
                        for layout in LAYOUTS {
                            let plan = schedule(CurveId::Bls12_381, queries, lanes, layout);
                            check_schedule(queries, lanes, &plan);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn two_lanes_carry_three_transforms_each() {
        for (lanes, expected) in [(1, vec![6]), (2, vec![3, 3]), (3, vec![2, 2, 2]), (5, vec![2, 2, 2, 0, 0])] {
            let TransformPlacement { a, b, c_inverse, c_forward } = split(SHAPE.into(), lanes).chains;
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
