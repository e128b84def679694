//! Tables of messages in the memory of PEs, which kernels and pretend PEs read alike.

use super::messages::ranges;
use super::protocol::MESSAGE_SLOTS;
use super::schedule::{Place, Schedule, Shape, GRAIN};
use super::sim::Bound;
use super::tables::{Rows, Table, Tables, ENDPOINT, ROW};
use super::worker::{Part, WIRE};
use crate::planner::{lock, Algorithm, Item, Planner};
use crate::{ffi, Error, Result};
use std::sync::{Arc, Mutex};

pub(crate) type Mail = Tables<Part>;

/// Where a table's words of 64 bits are, the same on every PE: rings, what was read of those that this PE fills, rounds of workers, then
/// what only this PE has.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Workers of every PE.
    pub workers: usize,
    /// The first word that counts rounds.
    pub rounds: usize,
    /// The first of the PE's own: its workers' rows and endpoints.
    pub own: usize,
    /// All of them.
    pub words: usize,
    /// The first that says what was read, one for each channel.
    pub consumed: usize,
}

impl Layout {
    /// Of a table that [`super::messages()`] has made for so many workers.
    ///
    /// # Errors
    /// A worker has more words than a kernel takes.
    pub fn new(schedule: &Schedule, workers: usize) -> Result<Self> {
        let workers = ranges(&schedule.call, workers).len().max(1);
        let consumed = (schedule.staging.iter().copied().max().unwrap_or(0) * WIRE / 8) as usize;
        let rounds = consumed + schedule.channels.len();
        let words = |node: usize| {
            let rows = schedule.transfers.iter().filter(|t| t.at == node);
            rows.map(|t| ROW + (t.sources.len() + t.targets.len()) * ENDPOINT).sum::<usize>() / workers
        };
        let most = (0..schedule.pes).map(words).max().unwrap_or(0);
        if most > ffi::TANDEM_EXEC_MESSAGE_WORDS as usize {
            let (pes, limit) = (schedule.pes, ffi::TANDEM_EXEC_MESSAGE_WORDS);
            return Err(Error::invalid(
                "collective",
                format!("a table of {most} words for {pes} PEs, expected {limit}"),
            ));
        }
        let own = rounds + workers;
        Ok(Layout { workers, rounds, own, words: own + most * workers, consumed })
    }

    /// What a node has of its own, and the rows of each of its workers. `base` has the address of every node's first word.
    pub fn own(&self, bound: &Bound, node: usize, base: &[u64]) -> (Vec<u64>, usize) {
        let schedule = &bound.schedule;
        let all: Vec<_> = schedule.transfers.iter().filter(|t| t.at == node).collect();
        let rows = all.len() / self.workers;
        let mut out: Vec<u64> = Vec::new();
        for worker in all.chunks(rows.max(1)) {
            let mut own = Rows::default();
            for transfer in worker {
                let begin = own.endpoints.len() / ENDPOINT;
                for endpoint in transfer.sources.iter().chain(&transfer.targets) {
                    let (place, consumed, peer) = match endpoint.place {
                        Place::Ring(ch) => {
                            let channel = &schedule.channels[ch];
                            let ring = channel.ring.map_or(0, |ring| ring.at) * WIRE;
                            let other = if channel.from == node { channel.to } else { channel.from };
                            let consumed = base[channel.from] + 8 * (self.consumed + ch) as u64;
                            (base[endpoint.node] + ring, consumed, bound.pes[other])
                        }
                        _ => (bound.address(endpoint, 0), 0, bound.pes[node]),
                    };
                    own.endpoints.extend([place, 0, consumed, peer as u64]);
                }
                let ends = (transfer.sources.len(), transfer.targets.len(), 0);
                own.row(transfer.bytes, 0, schedule.chunk * WIRE, MESSAGE_SLOTS, begin, ends);
            }
            out.extend(own.rows.iter().chain(&own.endpoints));
        }
        (out, rows)
    }
}

/// The table of a call, built where there is none yet.
pub(crate) fn table(tables: &Mutex<Mail>, shared: &Planner, item: &Item) -> Result<Arc<Table<Part>>> {
    let shape = Shape { workers: shared.tuning().workers, chunk: GRAIN, slots: MESSAGE_SLOTS };
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
    let layout = Layout::new(&bound.schedule, shared.tuning().workers)?;
    let memory = team.alloc::<u64>(layout.words)?;
    let base =
        bound.workers().map(|pe| team.core().address("collective", &memory, pe)).collect::<Result<Vec<u64>>>()?;
    let mut parts = vec![None; team.size()];
    for (node, pe) in bound.workers().enumerate() {
        let (own, rows) = layout.own(bound, node, &base);
        // Each process writes what its own PEs read.
        if rows == 0 || !team.core().is_local(pe) {
            continue;
        }
        team.write(pe, &memory.slice(layout.own..layout.own + own.len())?, &own)?;
        let at = |word: usize| base[node] + 8 * word as u64;
        parts[pe] = Some(Part {
            workers: at(layout.own),
            rounds: at(layout.rounds),
            worker_count: layout.workers,
            words: own.len() / layout.workers,
            rows,
            numbers: bound.numbers,
        });
    }
    Ok(Table::new(parts, vec![memory.cast()?], None, bounds))
}
