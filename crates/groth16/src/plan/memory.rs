//! What a lane's memory is used for, stage by stage, and whether a key's points stay in it.

use super::{LaneQueries, Queries, QueryShare, Schedule, Share, WireSet};
use std::fmt;
use tandem_ops::{Lane, MsmSet, SumBytes};

/// A field element.
const SCALAR: u64 = 32;
/// The number of a wire or of a row.
const NUMBER: u64 = 4;
/// Pieces that a sum is cut into, at most, where each proof brings its points. Each piece has buckets of its own to add up.
pub const MOST_PIECES: usize = 64;
/// Pieces of a sum, at most, where points stay, or where room for the next proof's values is made by cutting.
const MOST_BY_CHOICE: usize = 16;
/// So many times as many pieces leave of what makes sums faster more than half: over 2^27 scalars on an H200 rounds save a fifth, 100 ms, and
/// each piece more adds up 7 million buckets of its own, 17 ms.
const MORE_PIECES: usize = 3;
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
    /// For tables of transforms, and for what a runtime keeps for itself.
    pub reserve: u64,
    /// Whether the points stay on the lane. Else each proof brings them, piece by piece.
    pub points_stay: bool,
    /// What the values of the next proof take, where they may come while a proof is made.
    pub ahead: Option<u64>,
    /// Pieces of each sum, at least one: over the wires of a set, or over the quotient for `None`.
    pub pieces: Vec<(Option<WireSet>, usize)>,
    /// The stages of a proof in their order.
    pub stages: Vec<MemoryStage>,
}

impl MemoryPlan {
    /// What the largest stage takes.
    pub fn peak(&self) -> u64 {
        let stage = |stage: &MemoryStage| stage.work + stage.points;
        self.stages.iter().map(stage).max().unwrap_or(0).saturating_add(self.beside())
    }

    /// What is there beside any stage.
    fn beside(&self) -> u64 {
        self.reserve.saturating_add(self.ahead.unwrap_or(0))
    }

    /// Whether all stages stay within the limit.
    pub fn fits(&self) -> bool {
        self.peak() <= self.limit
    }

    /// What points that stay may take, with all their multiples.
    pub fn point_room(&self) -> u64 {
        let work = self.stages.iter().map(|stage| stage.work).max().unwrap_or(0);
        self.limit.saturating_sub(work).saturating_sub(self.beside())
    }

    /// Pieces of the sums over the wires of a set, or over the quotient.
    pub fn pieces_of(&self, wires: Option<WireSet>) -> usize {
        self.pieces.iter().find(|pieces| pieces.0 == wires).map_or(1, |pieces| pieces.1)
    }

    /// The most pieces that a sum has.
    pub fn most_pieces(&self) -> usize {
        self.pieces.iter().map(|pieces| pieces.1).max().unwrap_or(1)
    }
}

/// A table, in MiB.
impl fmt::Display for MemoryPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        write!(f, "memory of lane {}: ", self.lane.0)?;
        match (self.points_stay, self.most_pieces()) {
            (true, 1) => write!(f, "points stay there")?,
            (true, pieces) => write!(f, "points stay there, sums have up to {pieces} pieces")?,
            (false, pieces) => write!(f, "points of each sum come in up to {pieces} pieces")?,
        }
        write!(f, ", {} MiB at most\n{:24} {:>9} {:>9} {:>9}", mib(self.limit), "stage", "work MiB", "points", "all")?;
        for MemoryStage { name, work, points } in &self.stages {
            let all = work + points + self.beside();
            write!(f, "\n{name:24} {:>9} {:>9} {:>9}", mib(*work), mib(*points), mib(all))?;
        }
        match self.ahead {
            Some(bytes) => write!(f, "\nof all: {} MiB for the values of the next proof", mib(bytes)),
            None => write!(f, "\nthe values of the next proof come after this one"),
        }
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
    fn each<'a>(self, group: &'a LaneQueries) -> impl Iterator<Item = u64> + 'a {
        group.sums.iter().map(move |sum| sum.points.len() as u64 * if sum.set.g2 { self.g2 } else { self.g1 })
    }
}

/// What the memory of a lane is planned for.
#[derive(Clone, Copy)]
pub struct Planned<'a> {
    /// A key without matrices.
    pub queries: Queries,
    /// Who does what.
    pub schedule: &'a Schedule,
    /// Of its points.
    pub points: PointBytes,
    /// What a sum over so many scalars takes beside these and the points, of G2 if it is said, of a lane that may take so many bytes
    /// ([`tandem_ops::ScalarRecoding::sum_bytes`]).
    pub sum: &'a dyn Fn(usize, bool, u64) -> SumBytes,
    /// Whether points may be brought by each proof.
    pub may_wait: bool,
    /// Whether sums may be cut so that points stay: for one proof that gains nothing.
    pub may_cut: bool,
}

/// A way to use the memory.
#[derive(Clone, Copy)]
struct Way {
    points_stay: bool,
    has_room_ahead: bool,
    most_pieces: usize,
}

/// The plan of a lane that may take `limit` bytes. Points stay where there is room for them, if need be beside sums in pieces; else they come
/// in pieces. If there is room the values of the next proof come meanwhile. Each sum has as few pieces as fit with what makes it faster, or
/// without it where that would take many more. Where nothing fits, it is the plan that takes least.
pub fn memory_plan(of: &Planned<'_>, (lane, limit): (Lane, u64)) -> MemoryPlan {
    let with = |points_stay, has_room_ahead, most_pieces| {
        with_pieces(of, (lane, limit), Way { points_stay, has_room_ahead, most_pieces })
    };
    let staying = if of.may_cut { MOST_BY_CHOICE } else { 1 };
    let ways = [(true, true, staying), (true, false, staying), (false, true, MOST_BY_CHOICE)];
    let ways = ways.into_iter().filter(|way| way.0 || of.may_wait);
    let found = ways.map(|(stay, ahead, most)| with(stay, ahead, most)).find(MemoryPlan::fits);
    found.unwrap_or_else(|| if of.may_wait { with(false, false, MOST_PIECES) } else { with(true, false, 1) })
}

fn with_pieces(of: &Planned<'_>, (lane, limit): (Lane, u64), way: Way) -> MemoryPlan {
    let Planned { queries, schedule, points, .. } = *of;
    let (wires, rows) = (queries.shape.variables as u64 * SCALAR, queries.shape.domain as u64 * SCALAR);
    let chains = schedule.chains;
    let has = |what: bool| u64::from(what);
    let (a, b) = (has(chains.a == lane), has(chains.b == lane));
    let witness = has(schedule.whole.contains(&lane)) * wires;
    let groups: Vec<&LaneQueries> = schedule.witness.iter().filter(|group| group.share.lane == lane).collect();
    let quotient = schedule.quotient.iter().find(|share| share.lane == lane).map_or(0, |share| share.range.len());
    let of_h = quotient as u64 * points.g1;
    let all_points = groups.iter().flat_map(|group| points.each(group)).sum::<u64>() + of_h;
    let resident = if way.points_stay { all_points } else { 0 };
    // Where values are picked, the sides of the rows are there from the start, with the order of the rows.
    let (sides, numbers) = match queries.picked {
        true => {
            let order = (a | b) * queries.shape.domain as u64 * NUMBER;
            let picking = groups.iter().filter(|group| group.wires != WireSet::All);
            let picks: u64 = picking.map(|group| group.share.range.len() as u64 * NUMBER).sum();
            ((a + b) * rows, order + picks)
        }
        false => (0, 0),
    };
    let reserve = limit / 16;
    let ahead = way.has_room_ahead.then_some(witness + sides);
    // As few pieces as fit beside what is there anyway: their number, and what they take.
    let cut = |there: u64, scalars: usize, sum: &dyn Fn(usize) -> SumBytes, largest: u64| {
        let room = limit.saturating_sub(reserve + ahead.unwrap_or(0) + numbers + resident + there);
        let in_flight = |pieces: usize| if way.points_stay { 0 } else { AT_ONCE * largest.div_ceil(pieces as u64) };
        let fits = |pieces: usize, work: u64| work.saturating_add(in_flight(pieces)) <= room;
        let bytes = |pieces: usize| sum(scalars.div_ceil(pieces));
        let fewest = (1..way.most_pieces).find(|&pieces| fits(pieces, bytes(pieces).least)).unwrap_or(way.most_pieces);
        let fast =
            (fewest..=way.most_pieces.min(MORE_PIECES * fewest)).find(|&pieces| fits(pieces, bytes(pieces).all()));
        let fast = fast.filter(|&pieces| bytes(pieces).faster > 0).map(|pieces| (pieces, bytes(pieces).all()));
        let (pieces, work) = fast.unwrap_or_else(|| (fewest, bytes(fewest).least));
        (pieces, work, in_flight(pieces))
    };
    let mut pieces = Vec::new();
    let mut largest = (0, 0);
    for group in groups {
        let has_g2 = group.sums.iter().any(|sum| sum.set.g2);
        let picked = if queries.picked && group.wires != WireSet::All { SCALAR } else { 0 };
        let sum = |scalars: usize| {
            let bytes = (of.sum)(scalars, has_g2, limit);
            SumBytes { least: bytes.least + scalars as u64 * picked, ..bytes }
        };
        let most = points.each(group).max().unwrap_or(0);
        let (count, work, in_flight) = cut(witness + sides, group.share.range.len(), &sum, most);
        pieces.push((Some(group.wires), count));
        largest = std::cmp::max_by_key(largest, (work, in_flight), |(work, points)| work + points);
    }
    let sum = |scalars: usize| (of.sum)(scalars, false, limit);
    let (count, sum_of_h, h_in_flight) = cut(quotient as u64 * SCALAR, quotient, &sum, of_h);
    pieces.push((None, count));
    // The values as they came, and as integers.
    let upload = if queries.picked { 2 * witness } else { witness };
    // a, b, c and a copy of one; what the sides were before they were put in order is one of them.
    let transforms = if a + b > 0 || chains.c_inverse == lane || chains.c_forward == lane { 4 * rows } else { 0 };
    let stage = |name, work, points| MemoryStage { name, work: work + numbers, points: resident + points };
    let stages = vec![
        stage("upload", upload + sides, 0),
        stage("sums over the witness", witness + sides + largest.0, largest.1),
        stage("transforms", transforms, 0),
        stage("sum over the quotient", quotient as u64 * SCALAR + sum_of_h, h_in_flight),
    ];
    MemoryPlan { lane, limit, reserve, points_stay: way.points_stay, ahead, pieces, stages }
}

impl Schedule {
    /// A schedule in which the shares of each lane are cut into as many parts as `pieces` says, one behind the other: of the sums over the
    /// wires of a set, or over the quotient for `None`.
    pub fn in_pieces(self, pieces: impl Fn(Lane, Option<WireSet>) -> usize) -> Self {
        let parts = |share: &Share, wires| -> Vec<Share> {
            let of = super::shares(share.range.len(), pieces(share.lane, wires)).into_iter();
            let place = |part: Share| share.range.start + part.range.start..share.range.start + part.range.end;
            of.map(|part| Share { lane: share.lane, range: place(part) }).collect()
        };
        let quotient = self.quotient.iter().flat_map(|share| parts(share, None)).collect();
        let of_group = |group: &LaneQueries| {
            let parts = parts(&group.share, Some(group.wires)).into_iter();
            parts.map(|share| part_of_group(group, share)).collect::<Vec<_>>()
        };
        let witness = self.witness.iter().flat_map(of_group).filter(|group| !group.sums.is_empty()).collect();
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
