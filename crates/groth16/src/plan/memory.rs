//! What a lane's memory is used for, stage by stage, and whether a key's points stay in it.

use super::{LaneQueries, Queries, QueryShare, Schedule, Share};
use std::fmt;
use tandem_ops::{Lane, MsmSet};

/// A field element.
const SCALAR: u64 = 32;
/// 26 windows of a 4-byte key and a 4-byte index, twice.
const DIGITS: u64 = 26 * 8 * 2;
/// The number of a wire or of a row.
const NUMBER: u64 = 4;
/// Pieces that points are cut into, at most. Each has buckets of its own to add up.
pub const MOST_PIECES: usize = 64;
/// Pieces in memory at a time: one that is summed, and one on its way.
const AT_ONCE: u64 = 2;

/// A part of a proof, and what it takes of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryStage {
    /// What is done.
    pub name: &'static str,
    /// Vectors, digits and numbers.
    pub work: u64,
    /// Points.
    pub points: u64,
}

/// How a lane's memory is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryPlan {
    /// The lane.
    pub lane: Lane,
    /// What it may take.
    pub limit: u64,
    /// For buckets, and for what a runtime keeps for itself.
    pub reserve: u64,
    /// Pieces that the points of each sum are brought in, proof after proof; `None` where they stay.
    pub pieces: Option<usize>,
    /// The stages of a proof in their order.
    pub stages: Vec<MemoryStage>,
}

impl MemoryPlan {
    /// What the largest stage takes.
    pub fn peak(&self) -> u64 {
        self.stages.iter().map(|stage| stage.work + stage.points).max().unwrap_or(0).saturating_add(self.reserve)
    }

    /// Whether all stages stay within the limit.
    pub fn fits(&self) -> bool {
        self.peak() <= self.limit
    }
}

/// A table, in MiB.
impl fmt::Display for MemoryPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        write!(f, "memory of lane {}: ", self.lane.0)?;
        match self.pieces {
            None => write!(f, "points stay there")?,
            Some(pieces) => write!(f, "points of each sum come in {pieces} pieces")?,
        }
        write!(f, ", {} MiB at most\n{:24} {:>9} {:>9} {:>9}", mib(self.limit), "stage", "work MiB", "points", "all")?;
        for MemoryStage { name, work, points } in &self.stages {
            let all = work + points + self.reserve;
            write!(f, "\n{name:24} {:>9} {:>9} {:>9}", mib(*work), mib(*points), mib(all))?;
        }
        Ok(())
    }
}

/// Bytes of a point.
#[derive(Debug, Clone, Copy)]
pub struct PointBytes {
    /// Of G1.
    pub g1: u64,
    /// Of G2.
    pub g2: u64,
}

impl PointBytes {
    fn of(self, group: &LaneQueries) -> u64 {
        group.sums.iter().map(|sum| sum.points.len() as u64 * if sum.set.g2 { self.g2 } else { self.g1 }).sum()
    }

    /// Of the largest sum.
    fn largest(self, group: &LaneQueries) -> u64 {
        group
            .sums
            .iter()
            .map(|sum| sum.points.len() as u64 * if sum.set.g2 { self.g2 } else { self.g1 })
            .max()
            .unwrap_or(0)
    }
}

/// The plan of a lane that may take `limit` bytes: points stay where there is room for them, else they come in as few pieces as fit. Where none
/// fits it is the one that takes least.
pub fn memory_plan(
    queries: Queries,
    schedule: &Schedule,
    points: PointBytes,
    (lane, limit): (Lane, u64),
    may_wait: bool,
) -> MemoryPlan {
    let of = |pieces| with_pieces(queries, schedule, points, (lane, limit), pieces);
    let stay = of(None);
    if stay.fits() || !may_wait {
        return stay;
    }
    let mut least = of(Some(1));
    for pieces in 2..=MOST_PIECES {
        if least.fits() {
            break;
        }
        least = of(Some(pieces));
    }
    least
}

fn with_pieces(
    queries: Queries,
    schedule: &Schedule,
    points: PointBytes,
    (lane, limit): (Lane, u64),
    pieces: Option<usize>,
) -> MemoryPlan {
    let (wires, rows) = (queries.shape.variables as u64 * SCALAR, queries.shape.domain as u64 * SCALAR);
    let chains = schedule.chains;
    let has = |what: bool| u64::from(what);
    let (a, b) = (has(chains.a == lane), has(chains.b == lane));
    let witness = has(schedule.whole.contains(&lane)) * wires;
    let groups: Vec<&LaneQueries> = schedule.witness.iter().filter(|group| group.share.lane == lane).collect();
    let quotient = schedule.quotient.iter().find(|share| share.lane == lane).map_or(0, |share| share.range.len());
    let cut = |count: usize| count.div_ceil(pieces.unwrap_or(1)) as u64;
    let of_h = quotient as u64 * points.g1;
    let resident = match pieces {
        None => groups.iter().map(|group| points.of(group)).sum::<u64>() + of_h,
        Some(_) => 0,
    };
    let in_flight = |all: u64| pieces.map_or(0, |pieces| AT_ONCE * all.div_ceil(pieces as u64));
    // Where values are picked, the sides of the rows are there from the start, with the order of the rows.
    let (sides, numbers) = match queries.picked {
        true => {
            let order = (a + b) * queries.shape.domain as u64 * NUMBER;
            let picks: u64 = groups.iter().map(|group| group.share.range.len() as u64 * NUMBER).sum();
            ((a + b) * rows, order + picks)
        }
        false => (0, 0),
    };
    let sum = |group: &&LaneQueries| {
        let scalars = cut(group.share.range.len());
        let picked = if queries.picked { scalars * SCALAR } else { 0 };
        (scalars * DIGITS + picked, in_flight(points.largest(group)))
    };
    let largest = groups.iter().map(sum).max_by_key(|(work, points)| work + points).unwrap_or((0, 0));
    // a, b, c and a copy of one; what the sides were before they were put in order is one of them.
    let transforms = if a + b > 0 || chains.c_inverse == lane || chains.c_forward == lane { 4 * rows } else { 0 };
    // The quotient and a copy of the lane's share of it.
    let shares = has(chains.a == lane) * rows + quotient as u64 * SCALAR;
    let stage = |name, work, points| MemoryStage { name, work: work + numbers, points: resident + points };
    let stages = vec![
        stage("upload", witness + sides, 0),
        stage("sums over the witness", witness + sides + largest.0, largest.1),
        stage("transforms", transforms, 0),
        stage("sum over the quotient", shares + cut(quotient) * DIGITS, in_flight(of_h)),
    ];
    MemoryPlan { lane, limit, reserve: (limit / 16).min(1 << 30), pieces, stages }
}

impl Schedule {
    /// A schedule in which the shares of each lane are cut into as many parts, one behind the other.
    pub fn in_pieces(self, pieces: impl Fn(Lane) -> Option<usize>) -> Self {
        let parts = |share: &Share| -> Vec<Share> {
            let count = pieces(share.lane).unwrap_or(1);
            let of = super::shares(share.range.len(), count).into_iter();
            let place = |part: Share| share.range.start + part.range.start..share.range.start + part.range.end;
            of.map(|part| Share { lane: share.lane, range: place(part) }).collect()
        };
        let quotient = self.quotient.iter().flat_map(parts).collect();
        let witness = self
            .witness
            .iter()
            .flat_map(|group| parts(&group.share).into_iter().map(move |share| part_of_group(group, share)))
            .filter(|group| !group.sums.is_empty())
            .collect();
        Schedule { quotient, witness, ..self }
    }
}

/// The sums of a group that take part in a share of its scalars.
fn part_of_group(group: &LaneQueries, share: Share) -> LaneQueries {
    let sums = group.sums.iter().filter_map(|sum| {
        // Scalars, counted from the start of all of these wires.
        let first = group.share.range.start + sum.set.first;
        let (from, to) = (first.max(share.range.start), (first + sum.set.points).min(share.range.end));
        let points = to.checked_sub(from).filter(|&n| n > 0)?;
        let start = sum.points.start + (from - first);
        let set = MsmSet { first: from - share.range.start, points, ..sum.set };
        Some(QueryShare { sum: sum.sum, set, points: start..start + points })
    });
    LaneQueries { wires: group.wires, sums: sums.collect(), share }
}
