//! Carries schedules out in host memory, one thread a node.

use super::element::{combine, Combine, Kind};
use super::protocol::{has_room, is_there, notify, Word};
use super::schedule::{Endpoint, Place, Schedule};
use std::sync::atomic::AtomicU64;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A schedule with addresses.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Bound {
    /// What is done.
    pub schedule: Arc<Schedule>,
    /// How several sources are combined.
    pub numbers: Option<(Kind, Combine)>,
    /// By node: which PE of the team it is; for host memory a number that no PE has.
    pub pes: Vec<usize>,
    /// By node: the address of its input.
    pub input: Vec<u64>,
    /// By node: the address of its output.
    pub output: Vec<u64>,
    /// By node: the address of its staging memory.
    pub staging: Vec<u64>,
}

impl Bound {
    /// The PEs that do something or are read from or written to.
    pub fn workers(&self) -> impl Iterator<Item = usize> + '_ {
        self.pes[..self.schedule.host()].iter().copied()
    }

    /// Where chunk `c` of an endpoint is.
    pub fn address(&self, endpoint: &Endpoint, c: u64) -> u64 {
        let base = match endpoint.place {
            Place::Input => &self.input,
            Place::Output => &self.output,
            Place::Ring(_) => &self.staging,
        };
        base.get(endpoint.node).copied().unwrap_or(0) + self.schedule.offset(endpoint, c)
    }
}

/// Memory by address.
pub trait Bytes {
    /// Copies from it.
    fn read(&self, from: u64, to: &mut [u8]);
    /// Copies to it.
    fn write(&self, to: u64, from: &[u8]);
}

/// A wait that took too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stuck {
    /// Who waited.
    pub waiter: usize,
    /// For whom.
    pub peer: usize,
    /// The value that the counter had.
    pub seen: u64,
    /// The value that it had to exceed.
    pub wanted: u64,
}

/// The counters of one channel.
#[derive(Debug, Default)]
struct Counters {
    produced: AtomicU64,
    consumed: AtomicU64,
}

/// Schedules that are carried out together, as often as one likes. Counters only grow: in round `r` (from 0) chunk `c` of a
/// channel with `n` chunks is number `r * n + c`.
#[derive(Debug)]
pub struct Run {
    parts: Vec<(Bound, Vec<Counters>)>,
    /// By PE: the rounds that it has begun, for the others to see.
    ready: Vec<AtomicU64>,
    /// By PE: the same, for itself.
    rounds: Vec<AtomicU64>,
}

impl Run {
    /// Together.
    pub fn new(parts: Vec<Bound>) -> Self {
        let nodes = parts.iter().flat_map(Bound::workers).max().map_or(0, |last| last + 1);
        let counters = |bound: Bound| {
            let channels = (0..bound.schedule.channels.len()).map(|_| Counters::default()).collect();
            (bound, channels)
        };
        let words = || (0..nodes).map(|_| AtomicU64::new(0)).collect();
        Self { parts: parts.into_iter().map(counters).collect(), ready: words(), rounds: words() }
    }

    /// Does the part of one PE in one round, in an order at random; returns when it is done and all that the PE gets is
    /// there. Every one of [`Bound::workers`] must do its part, each in a thread.
    ///
    /// # Errors
    /// Nothing went on for as long as `timeout`, or `is_over` said so.
    pub fn pe(
        &self,
        pe: usize,
        memory: &impl Bytes,
        timeout: Duration,
        is_over: impl Fn() -> bool,
        seed: u64,
    ) -> Result<(), Stuck> {
        let round = self.rounds[pe].load_relaxed();
        self.rounds[pe].store_relaxed(round + 1);
        notify(&self.ready[pe], round);
        let mut random = seed | 1;
        let mut open: Vec<(usize, usize, u64)> = Vec::new();
        for (p, (bound, _)) in self.parts.iter().enumerate() {
            let own = bound.schedule.transfers.iter().enumerate().filter(|(_, t)| bound.pes[t.at] == pe);
            open.extend(own.map(|(t, _)| (p, t, 0)));
        }
        let mut since = Instant::now();
        let mut buffers = [Vec::new(), Vec::new()];
        while !open.is_empty() {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let first = (random % open.len() as u64) as usize;
            let mut turn = (first..open.len()).chain(0..first);
            let Some(i) = turn.find(|&i| self.obstacle(open[i], pe, round).is_none()) else {
                if since.elapsed() > timeout || is_over() {
                    // Who has not come at all is named before who only waits for that one.
                    let waits: Vec<_> = open.iter().filter_map(|&row| self.obstacle(row, pe, round)).collect();
                    let missing = waits.iter().find(|wait| !is_there(&self.ready[wait.0], round));
                    let (peer, seen, wanted) = missing.or(waits.first()).copied().unwrap_or_default();
                    return Err(Stuck { waiter: pe, peer, seen, wanted });
                }
                std::thread::yield_now();
                continue;
            };
            since = Instant::now();
            if self.step(open[i], round, memory, &mut buffers) {
                open[i].2 += 1;
            } else {
                open.swap_remove(i);
            }
        }
        self.arrived(pe, round, timeout, is_over)
    }

    /// Does a chunk of a transfer and tells who waits for it: whether there are more.
    fn step(
        &self,
        (p, t, c): (usize, usize, u64),
        round: u64,
        memory: &impl Bytes,
        [sum, piece]: &mut [Vec<u8>; 2],
    ) -> bool {
        let (bound, channels) = &self.parts[p];
        let schedule = &bound.schedule;
        let transfer = &schedule.transfers[t];
        let bytes = schedule.chunk.min(transfer.bytes - c * schedule.chunk) as usize;
        sum.resize(bytes, 0);
        piece.resize(bytes, 0);
        for (i, source) in transfer.sources.iter().enumerate() {
            let from = bound.address(source, c);
            match bound.numbers {
                Some((kind, how)) if i > 0 => {
                    memory.read(from, piece);
                    combine(kind, how, sum, piece);
                }
                _ => memory.read(from, sum),
            }
        }
        transfer.targets.iter().for_each(|target| memory.write(bound.address(target, c), sum));
        let told = transfer.targets.iter().filter_map(|s| s.channel).chain(transfer.notifies.iter().copied());
        let number = |ch: usize| round * schedule.channels[ch].chunks + c;
        told.for_each(|ch| notify(&channels[ch].produced, number(ch)));
        for source in &transfer.sources {
            if let Place::Ring(ch) = source.place {
                notify(&channels[ch].consumed, number(ch));
            }
        }
        c + 1 < schedule.chunks(transfer)
    }

    /// What a transfer's chunk has to wait for: a peer, the value of its counter, and what it has to exceed.
    fn obstacle(&self, (p, t, c): (usize, usize, u64), pe: usize, round: u64) -> Option<(usize, u64, u64)> {
        let (bound, channels) = &self.parts[p];
        let schedule = &bound.schedule;
        let transfer = &schedule.transfers[t];
        let endpoints = || transfer.sources.iter().chain(&transfer.targets);
        // Nobody's memory is touched before its owner has got here.
        let others =
            endpoints().filter(|s| s.node != schedule.host()).map(|s| bound.pes[s.node]).filter(|&other| other != pe);
        if let Some(other) = others.into_iter().find(|&other| !is_there(&self.ready[other], round)) {
            return Some((other, self.ready[other].load_relaxed(), round));
        }
        let number = |ch: usize| round * schedule.channels[ch].chunks + c;
        for s in &transfer.sources {
            let Some(ch) = s.channel else { continue };
            if !is_there(&channels[ch].produced, number(ch)) {
                return Some((bound.pes[schedule.channels[ch].from], channels[ch].produced.load_relaxed(), number(ch)));
            }
        }
        for s in &transfer.targets {
            let Place::Ring(ch) = s.place else { continue };
            if !has_room(&channels[ch].consumed, number(ch), schedule.slots) {
                let wanted = number(ch) - schedule.slots;
                return Some((bound.pes[schedule.channels[ch].to], channels[ch].consumed.load_relaxed(), wanted));
            }
        }
        None
    }

    /// Waits for all that others bring to a PE or fetch from it.
    fn arrived(&self, pe: usize, round: u64, timeout: Duration, is_over: impl Fn() -> bool) -> Result<(), Stuck> {
        let begun = Instant::now();
        for (bound, channels) in &self.parts {
            for (channel, counters) in bound.schedule.channels.iter().zip(channels) {
                let wanted = ((round + 1) * channel.chunks).saturating_sub(1);
                while bound.pes[channel.to] == pe && channel.chunks > 0 && !is_there(&counters.produced, wanted) {
                    if begun.elapsed() > timeout || is_over() {
                        let seen = counters.produced.load_relaxed();
                        return Err(Stuck { waiter: pe, peer: bound.pes[channel.from], seen, wanted });
                    }
                    std::thread::yield_now();
                }
            }
        }
        Ok(())
    }
}
