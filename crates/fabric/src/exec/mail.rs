//! Tables of messages in the memory of PEs, which kernels and pretend PEs read alike.

use super::lane::{Part, WIRE};
use super::messages::ranges;
use super::protocol::HALVES;
use super::schedule::{Place, Schedule, Shape, GRAIN};
use super::sim::Bound;
use super::tables::{Rows, Table, Tables, ROW, SPOT};
use crate::planner::{lock, Algorithm, Item, Planner};
use crate::{ffi, Error, Result};
use std::sync::{Arc, Mutex};

pub(crate) type Mail = Tables<Part>;

/// Where a table's words of 64 bits are, the same on every PE: rings, what was read of those that this PE fills, rounds of lanes, then
/// what only this PE has.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Lanes of every PE.
    pub lanes: usize,
    /// The first word that counts rounds.
    pub rounds: usize,
    /// The first of the PE's own: its lanes' rows and spots.
    pub own: usize,
    /// All of them.
    pub words: usize,
    /// The first that says what was read, one for each channel.
    pub read: usize,
}

impl Layout {
    /// Of a table that [`super::messages()`] has made for so many lanes.
    ///
    /// # Errors
    /// A lane has more words than a kernel takes.
    pub fn new(schedule: &Schedule, lanes: usize) -> Result<Self> {
        let lanes = ranges(&schedule.call, lanes).len().max(1);
        let read = (schedule.staging.iter().copied().max().unwrap_or(0) * WIRE / 8) as usize;
        let rounds = read + schedule.channels.len();
        let words = |node: usize| {
            let rows = schedule.transfers.iter().filter(|t| t.at == node);
            rows.map(|t| ROW + (t.sources.len() + t.targets.len()) * SPOT).sum::<usize>() / lanes
        };
        let most = (0..schedule.pes).map(words).max().unwrap_or(0);
        if most > ffi::TANDEM_EXEC_MESSAGE_WORDS as usize {
            let (pes, limit) = (schedule.pes, ffi::TANDEM_EXEC_MESSAGE_WORDS);
            return Err(Error::invalid(
                "collective",
                format!("a table of {most} words for {pes} PEs, expected {limit}"),
            ));
        }
        let own = rounds + lanes;
        Ok(Layout { lanes, rounds, own, words: own + most * lanes, read })
    }

    /// What a node has of its own, and the rows of each of its lanes. `base` has the address of every node's first word.
    pub fn own(&self, bound: &Bound, node: usize, base: &[u64]) -> (Vec<u64>, usize) {
        let schedule = &bound.schedule;
        let all: Vec<_> = schedule.transfers.iter().filter(|t| t.at == node).collect();
        let rows = all.len() / self.lanes;
        let mut out: Vec<u64> = Vec::new();
        for lane in all.chunks(rows.max(1)) {
            let mut own = Rows::default();
            for transfer in lane {
                let begin = own.spots.len() / SPOT;
                for spot in transfer.sources.iter().chain(&transfer.targets) {
                    let (place, read, peer) = match spot.place {
                        Place::Ring(ch) => {
                            let channel = &schedule.channels[ch];
                            let ring = channel.ring.map_or(0, |ring| ring.at) * WIRE;
                            let other = if channel.from == node { channel.to } else { channel.from };
                            let read = base[channel.from] + 8 * (self.read + ch) as u64;
                            (base[spot.node] + ring, read, bound.pes[other])
                        }
                        _ => (bound.address(spot, 0), 0, bound.pes[node]),
                    };
                    own.spots.extend([place, 0, read, peer as u64]);
                }
                let ends = (transfer.sources.len(), transfer.targets.len(), 0);
                own.row(transfer.bytes, 0, schedule.chunk * WIRE, HALVES, begin, ends);
            }
            out.extend(own.rows.iter().chain(&own.spots));
        }
        (out, rows)
    }
}

/// The table of a call, built where there is none yet.
pub(crate) fn table(tables: &Mutex<Mail>, shared: &Planner, item: &Item) -> Result<Arc<Table<Part>>> {
    let shape = Shape { lanes: shared.tuning().lanes, chunk: GRAIN, slots: HALVES };
    let schedule = shared.table(item, &shape, Algorithm::Messages)?;
    let host = shared.team().size();
    let nodes: Vec<usize> = item.job.iter().copied().chain([host]).collect();
    let by_node = |list: &[u64]| (0..nodes.len()).map(|i| list.get(i).copied().unwrap_or(0)).collect();
    let (input, output) = (by_node(&item.input), by_node(&item.output));
    let bound = Bound { schedule, numbers: item.numbers, pes: nodes, input, output, staging: Vec::new() };
    lock(tables).get(vec![bound], |bounds| build(shared, bounds))
}

fn build(shared: &Planner, bounds: Vec<Bound>) -> Result<Table<Part>> {
    let team = shared.team();
    let bound = bounds.first().ok_or_else(|| Error::invalid("collective", "nothing to do"))?;
    let layout = Layout::new(&bound.schedule, shared.tuning().lanes)?;
    let memory = team.alloc::<u64>(layout.words)?;
    let base = bound.workers().map(|pe| team.queue(pe).address(&memory)).collect::<Result<Vec<u64>>>()?;
    let mut parts = vec![None; team.size()];
    for (node, pe) in bound.workers().enumerate() {
        let (own, rows) = layout.own(bound, node, &base);
        if rows == 0 {
            continue;
        }
        team.write(pe, &memory.slice(layout.own..layout.own + own.len())?, &own)?;
        let at = |word: usize| base[node] + 8 * word as u64;
        parts[pe] = Some(Part {
            lanes: at(layout.own),
            rounds: at(layout.rounds),
            lane_count: layout.lanes,
            words: own.len() / layout.lanes,
            rows,
            numbers: bound.numbers,
        });
    }
    Ok(Table::new(parts, vec![memory.cast()?], None, bounds))
}
