//! Who reduces what: a pure function of where the elements lie and how fast memories and links are.

use super::GROUP_BYTES;
use crate::{Error, Lane, Result};
use std::ops::Range;

/// How lanes share the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReduceWay {
    /// Every lane reduces what it holds.
    Local,
    /// Every lane reduces an equal share of each part, which it reads from the memory of the lane that holds it.
    Peer,
    /// From host memory, to every lane over its own link.
    Stream,
}

/// Elements of a part that one lane reduces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Which part.
    pub part: usize,
    /// Which of its elements: whole groups, but for the end of the part.
    pub elements: Range<usize>,
    /// Who reduces them.
    pub lane: Lane,
}

/// Who reduces what.
#[derive(Debug, Clone, PartialEq)]
pub struct ReducePlan {
    /// How.
    pub way: ReduceWay,
    /// The pieces in the order of the elements. Of host memory there are none: lanes take what comes.
    pub pieces: Vec<Piece>,
    /// How long it takes.
    pub seconds: f64,
}

/// How fast a backend's memories and links are, in bytes a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// A lane's memory is read.
    pub memory: f64,
    /// A lane reduces what its memory holds.
    pub lane: f64,
    /// A lane reads that of another.
    pub peer: f64,
    /// A lane's link to page-locked host memory, and the most over all links.
    pub pinned: [f64; 2],
    /// A lane's link to other host memory, and to files.
    pub paged: [f64; 2],
    /// Seconds from the call to the result, beside the reading.
    pub latency: f64,
}

/// Ranges of `count` elements of `element_bytes` for `lanes` lanes: whole groups but for the last, and as even as that allows.
pub fn shares(count: usize, element_bytes: usize, lanes: usize) -> Vec<Range<usize>> {
    let per_group = GROUP_BYTES / element_bytes.max(1);
    let (groups, lanes) = (count.div_ceil(per_group), lanes.max(1));
    let end = |lane: usize| (groups * lane / lanes).saturating_mul(per_group).min(count);
    (0..lanes).map(|lane| end(lane)..end(lane + 1)).collect()
}

/// The plan for parts that lie on lanes, each a lane and its number of elements.
///
/// # Errors
/// No such lane; [`ReduceWay::Stream`], which is for host memory.
pub fn plan(
    parts: &[(Lane, usize)],
    element_bytes: usize,
    lanes: usize,
    rates: &Rates,
    way: Option<ReduceWay>,
) -> Result<ReducePlan> {
    if let Some((lane, _)) = parts.iter().find(|(lane, _)| lane.0 >= lanes) {
        return Err(Error::invalid("reduce", format!("lane {} of {lanes}", lane.0)));
    }
    let make = |way: ReduceWay| {
        let pieces = match way {
            ReduceWay::Peer => spread(parts, element_bytes, lanes),
            _ => parts.iter().enumerate().map(|(part, &(lane, n))| Piece { part, elements: 0..n, lane }).collect(),
        };
        let pieces: Vec<Piece> = pieces.into_iter().filter(|piece: &Piece| !piece.elements.is_empty()).collect();
        let seconds = rates.latency + reading(parts, &pieces, element_bytes, lanes, rates);
        ReducePlan { way, pieces, seconds }
    };
    match way {
        Some(ReduceWay::Stream) => {
            Err(Error::invalid("reduce", "elements in the memory of lanes do not stream from the host"))
        }
        Some(way) => Ok(make(way)),
        None => {
            let (local, peer) = (make(ReduceWay::Local), make(ReduceWay::Peer));
            Ok(if peer.seconds < local.seconds { peer } else { local })
        }
    }
}

/// Pieces of every part for all lanes, beginning with the one that holds it.
fn spread(parts: &[(Lane, usize)], element_bytes: usize, lanes: usize) -> Vec<Piece> {
    let of_part = |(part, &(lane, n)): (usize, &(Lane, usize))| {
        let share = move |(i, elements)| Piece { part, elements, lane: Lane((lane.0 + i) % lanes) };
        shares(n, element_bytes, lanes).into_iter().enumerate().map(share)
    };
    parts.iter().enumerate().flat_map(of_part).collect()
}

/// The longest that any memory, link or lane is busy.
fn reading(parts: &[(Lane, usize)], pieces: &[Piece], element_bytes: usize, lanes: usize, rates: &Rates) -> f64 {
    let mut lane_busy = vec![0.0; lanes];
    let mut memory_busy = vec![0.0; lanes];
    let mut link_busy = vec![0.0; lanes];
    for piece in pieces {
        let bytes = (piece.elements.len() * element_bytes) as f64;
        let (from, to) = (parts[piece.part].0 .0, piece.lane.0);
        memory_busy[from] += bytes / rates.memory;
        if from == to {
            lane_busy[to] += bytes / rates.lane;
        } else {
            lane_busy[to] += bytes / rates.peer.min(rates.lane);
            link_busy[from] += bytes / rates.peer;
        }
    }
    [lane_busy, memory_busy, link_busy].concat().into_iter().fold(0.0, f64::max)
}

/// The plan for `bytes` bytes of host memory.
pub fn plan_stream(bytes: u64, is_pinned: bool, lanes: usize, rates: &Rates) -> ReducePlan {
    let [link, most] = if is_pinned { rates.pinned } else { rates.paged };
    // A lane takes whole groups.
    let busy = lanes.min(usize::try_from(bytes.div_ceil(GROUP_BYTES as u64)).unwrap_or(lanes)).max(1);
    let seconds = rates.latency + bytes as f64 / (link * busy as f64).min(most);
    ReducePlan { way: ReduceWay::Stream, pieces: Vec::new(), seconds }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: Rates =
        Rates { memory: 4600e9, lane: 4600e9, peer: 380e9, pinned: [53e9, 105e9], paged: [35e9, 70e9], latency: 20e-6 };

    fn is_near(a: f64, b: f64) -> bool {
        (a / b - 1.0).abs() < 0.02
    }

    #[test]
    fn shares_are_whole_groups() {
        let group = GROUP_BYTES / 8;
        for (count, lanes) in [(0, 1), (1, 3), (group, 2), (group + 1, 2), (7 * group - 3, 3), (64 * group, 8)] {
            let shares = shares(count, 8, lanes);
            assert_eq!((shares.len(), shares[0].start, shares[lanes - 1].end), (lanes, 0, count));
            for pair in shares.windows(2) {
                assert_eq!(pair[0].end, pair[1].start);
                assert!(pair[0].end % group == 0 || pair[0].end == count);
            }
        }
        assert_eq!(shares(64 * group, 8, 2), [0..32 * group, 32 * group..64 * group]);
    }

    #[test]
    fn memory_bound_work_stays_where_it_lies() {
        let n = 1usize << 30;
        // On one GPU: its memory is the limit, whoever reads it.
        let one = plan(&[(Lane(0), n)], 8, 2, &RATES, None).unwrap();
        assert_eq!(one.way, ReduceWay::Local);
        assert_eq!(one.pieces, [Piece { part: 0, elements: 0..n, lane: Lane(0) }]);
        assert!(is_near(one.seconds, 8.59e9 / 4600e9));
        let halves = plan(&[(Lane(0), n / 2), (Lane(1), n / 2)], 8, 2, &RATES, None).unwrap();
        assert_eq!(halves.way, ReduceWay::Local);
        assert!(is_near(halves.seconds, one.seconds / 2.0));
        // Half read through the link takes as long as the link needs.
        let peer = plan(&[(Lane(0), n)], 8, 2, &RATES, Some(ReduceWay::Peer)).unwrap();
        let half = |i: usize, lane| Piece { part: 0, elements: i * n / 2..(i + 1) * n / 2, lane: Lane(lane) };
        assert_eq!(peer.pieces, [half(0, 0), half(1, 1)]);
        assert!(is_near(peer.seconds, 4.29e9 / 380e9));
    }

    #[test]
    fn links_help_where_lanes_are_slower_than_they() {
        let rates = Rates { lane: 200e9, ..RATES };
        let uneven = [(Lane(0), 1 << 21), (Lane(1), 1 << 28)];
        let peer = plan(&uneven, 8, 2, &rates, None).unwrap();
        assert_eq!(peer.way, ReduceWay::Peer);
        assert!(is_near(peer.seconds, f64::from(1 << 30) / 200e9 + 1e-4));
        let total: usize = peer.pieces.iter().map(|p| p.elements.len()).sum();
        assert_eq!(total, (1 << 21) + (1 << 28));
        assert!(peer.pieces.windows(2).all(|p| (p[0].part, p[0].elements.end) <= (p[1].part, p[1].elements.end)));
        // Of a part that is one group, one lane takes all.
        assert_eq!(peer.pieces.len(), 3);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert!(plan(&[(Lane(2), 1)], 8, 2, &RATES, None).is_err());
        assert!(plan(&[(Lane(0), 1)], 8, 2, &RATES, Some(ReduceWay::Stream)).is_err());
        assert!(plan(&[], 8, 2, &RATES, None).unwrap().pieces.is_empty());
    }

    #[test]
    fn streams_add_their_links_up_to_a_limit() {
        let seconds = |lanes, is_pinned| plan_stream(8 << 30, is_pinned, lanes, &RATES).seconds;
        assert!(is_near(seconds(1, true), 8.59e9 / 53e9));
        assert!(is_near(seconds(2, true), 8.59e9 / 105e9));
        assert!(is_near(seconds(4, true), seconds(2, true)));
        assert!(is_near(seconds(2, false), 8.59e9 / 70e9));
        // One group has nothing to share.
        assert!(is_near(plan_stream(1 << 24, true, 2, &RATES).seconds, plan_stream(1 << 24, true, 1, &RATES).seconds));
    }
}
