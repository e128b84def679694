//! Tables for small data: PEs write into rings of each other and nowhere else.
//!
//! So no PE needs to know that another one's buffers are ready, and a kernel can send data and flag in one store (the low-latency
//! protocol of [`super::protocol`]).

use super::protocol::MESSAGE_SLOTS;
use super::schedule::{checked_without_plan, cut, Call, Channel, Endpoint, Place, Ring, Schedule, Transfer, GRAIN};
use crate::plan::Operation;
use crate::Result;

/// Bytes of a worker: what one block sends with one word of data a thread.
const WORKER_BYTES: u64 = 4096;

/// The table in which each PE first sends what others need and then takes what has come: in this order, so that one block can do all
/// of a worker's rows. Combinations are made in the order of the job, so that all PEs get the same bits.
///
/// # Errors
/// Sizes beyond the maxima, or an operation on host memory.
pub fn messages(call: &Call, pes: usize, workers: usize) -> Result<Schedule> {
    checked_without_plan(call, pes)?;
    let ranges = ranges(call, workers);
    let longest = ranges.iter().map(|(begin, end)| end - begin).max().unwrap_or(0);
    let mut table = Table { call, pes, transfers: Vec::new(), channels: Vec::new() };
    for (begin, end) in ranges {
        table.worker(begin, end - begin);
    }
    let chunk = longest.next_multiple_of(GRAIN).max(GRAIN);
    let mut staging = vec![0; pes + 1];
    for ring in table.channels.iter_mut().filter_map(|channel| channel.ring.as_mut()) {
        ring.at = staging[ring.node];
        staging[ring.node] += MESSAGE_SLOTS * chunk;
    }
    let Table { transfers, channels, .. } = table;
    Ok(Schedule { call: *call, pes, helpers: 0, chunk, slots: MESSAGE_SLOTS, transfers, channels, staging })
}

/// The bytes of each part that the workers do: all of them the same rows.
pub(super) fn ranges(call: &Call, workers: usize) -> Vec<(u64, u64)> {
    let workers = (workers as u64).min(call.part.div_ceil(WORKER_BYTES)).max(1) as usize;
    cut(call.part, &vec![1.0; workers]).into_iter().filter(|(begin, end)| begin < end).collect()
}

struct Table<'a> {
    call: &'a Call,
    pes: usize,
    transfers: Vec<Transfer>,
    channels: Vec<Channel>,
}

impl Table<'_> {
    /// Whether `from` has something for `to`.
    fn is_sent(&self, from: usize, to: usize) -> bool {
        from != to
            && match self.call.operation {
                Operation::Broadcast => from == self.call.root,
                Operation::Reduce => to == self.call.root,
                Operation::Send => from == 0,
                _ => true,
            }
    }

    /// All rows for bytes `[begin, begin + bytes)` of each part: first all that is sent, then all that arrives.
    fn worker(&mut self, begin: u64, bytes: u64) {
        let mut arriving: Vec<Vec<Option<Endpoint>>> = vec![vec![None; self.pes]; self.pes];
        let mut order = Vec::with_capacity(self.pes);
        for me in 0..self.pes {
            let rows = self.outgoing(me, begin, &mut arriving);
            // In place, the PE's own numbers are overwritten only after they were sent.
            let waits = self.call.in_place && self.call.operation == Operation::AllReduce && !rows.is_empty();
            let sent = waits.then(|| self.channel(me, me, None));
            for (at, targets) in rows {
                let source = Endpoint { node: me, place: Place::Input, at, channel: None };
                let notifies = sent.into_iter().collect();
                self.transfers.push(Transfer { at: me, sources: vec![source], targets, notifies, bytes });
            }
            order.push(sent);
        }
        for (me, (sent, arriving)) in order.into_iter().zip(&arriving).enumerate() {
            self.incoming(me, (begin, bytes), sent, arriving);
        }
    }

    /// What a PE sends, and what of it stays and is not combined: where it lies in the input, and where it goes. Notes with those that
    /// get it what arrives from whom.
    fn outgoing(&mut self, me: usize, begin: u64, arriving: &mut [Vec<Option<Endpoint>>]) -> Vec<(u64, Vec<Endpoint>)> {
        let (part, operation) = (self.call.part, self.call.operation);
        let own = |pe: usize| pe as u64 * part + begin;
        // What a PE sends to different PEs is in different places.
        let is_dealt = matches!(operation, Operation::ReduceScatter | Operation::AllToAll);
        let mut rows: Vec<(u64, Vec<Endpoint>)> = Vec::new();
        let mut add = |input: u64, endpoint: Endpoint| match rows.last_mut().filter(|_| !is_dealt) {
            Some(row) => row.1.push(endpoint),
            None => rows.push((input, vec![endpoint])),
        };
        // Not all to the same PE at first.
        for i in 1..self.pes {
            let to = (me + i) % self.pes;
            if self.is_sent(me, to) {
                let endpoint = self.ring(me, to);
                arriving[to][me] = Some(endpoint);
                add(if is_dealt { own(to) } else { begin }, endpoint);
            }
        }
        let kept = match operation {
            Operation::Broadcast if me == self.call.root => Some((begin, begin)),
            Operation::AllGather => Some((begin, own(me))),
            Operation::AllToAll => Some((own(me), own(me))),
            _ => None,
        };
        if let Some((input, at)) = kept.filter(|_| !self.call.in_place) {
            add(input, Endpoint { node: me, place: Place::Output, at, channel: None });
        }
        rows
    }

    /// What a PE does with what arrives: it combines all with its own, or puts each where it belongs.
    fn incoming(&mut self, me: usize, (begin, bytes): (u64, u64), order: Option<usize>, arriving: &[Option<Endpoint>]) {
        let (part, operation) = (self.call.part, self.call.operation);
        let own = |pe: usize| pe as u64 * part + begin;
        let mut put = |sources: Vec<Endpoint>, at: u64| {
            let target = Endpoint { node: me, place: Place::Output, at, channel: None };
            self.transfers.push(Transfer { at: me, sources, targets: vec![target], notifies: Vec::new(), bytes });
        };
        match operation {
            Operation::Reduce if me != self.call.root => {}
            Operation::Reduce | Operation::AllReduce | Operation::ReduceScatter => {
                let at = if operation == Operation::ReduceScatter { own(me) } else { begin };
                let mine = Endpoint { node: me, place: Place::Input, at, channel: order };
                put(arriving.iter().map(|from| from.unwrap_or(mine)).collect(), begin);
            }
            _ => {
                let is_apart = matches!(operation, Operation::AllGather | Operation::AllToAll);
                for (from, endpoint) in arriving.iter().enumerate() {
                    if let Some(endpoint) = endpoint {
                        put(vec![*endpoint], if is_apart { own(from) } else { begin });
                    }
                }
            }
        }
    }

    fn channel(&mut self, from: usize, to: usize, ring: Option<Ring>) -> usize {
        self.channels.push(Channel { from, to, chunks: 1, ring, path: Vec::new(), tree: 0 });
        self.channels.len() - 1
    }

    /// A message's ring; its place in the staging memory is found when all are known.
    fn ring(&mut self, from: usize, to: usize) -> Endpoint {
        let channel = self.channel(from, to, Some(Ring { node: to, at: 0 }));
        Endpoint { node: to, place: Place::Ring(channel), at: 0, channel: Some(channel) }
    }
}
