//! Carries schedules out in host memory, one thread a node.

use super::element::{combine, Combine, Kind};
use super::protocol::{has_room, is_there, tell, Word};
use super::schedule::{Place, Schedule, Spot};
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
    /// By node: the address of its input, output, and staging memory.
    pub input: Vec<u64>,
    /// Likewise.
    pub output: Vec<u64>,
    /// Likewise.
    pub staging: Vec<u64>,
}

impl Bound {
    /// Where chunk `c` of a spot is.
    pub fn address(&self, spot: &Spot, c: u64) -> u64 {
        let base = match spot.place {
            Place::Input => &self.input,
            Place::Output => &self.output,
            Place::Ring(_) => &self.staging,
        };
        base.get(spot.node).copied().unwrap_or(0) + self.schedule.offset(spot, c)
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
    pub node: usize,
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
    there: AtomicU64,
    read: AtomicU64,
}

/// Schedules that are carried out together, as often as one likes. Counters only grow: in round `r` (from 0) chunk `c` of a
/// channel with `n` chunks is number `r * n + c`.
#[derive(Debug)]
pub struct Run {
    parts: Vec<(Bound, Vec<Counters>)>,
    /// By node: the rounds that it has begun, for the others to see.
    ready: Vec<AtomicU64>,
    /// By node: the same, for itself.
    rounds: Vec<AtomicU64>,
}

impl Run {
    /// Together, all on the same nodes.
    pub fn new(parts: Vec<Bound>) -> Self {
        let nodes = parts.iter().map(|p| p.schedule.host() + 1).max().unwrap_or(0);
        let counters = |bound: Bound| {
            let channels = (0..bound.schedule.channels.len()).map(|_| Counters::default()).collect();
            (bound, channels)
        };
        let words = || (0..nodes).map(|_| AtomicU64::new(0)).collect();
        Self { parts: parts.into_iter().map(counters).collect(), ready: words(), rounds: words() }
    }

    /// Does the part of one node in one round, in an order at random; returns when it is done and all that the node gets is
    /// there. Every node that is not host memory must do its part, each in a thread.
    ///
    /// # Errors
    /// Nothing went on for as long as `timeout`, or `is_over` said so.
    pub fn node(
        &self,
        node: usize,
        memory: &impl Bytes,
        timeout: Duration,
        is_over: impl Fn() -> bool,
        seed: u64,
    ) -> Result<(), Stuck> {
        let round = self.rounds[node].load_relaxed();
        self.rounds[node].store_relaxed(round + 1);
        tell(&self.ready[node], round);
        let mut random = seed | 1;
        let mut open: Vec<(usize, usize, u64)> = Vec::new();
        for (p, (bound, _)) in self.parts.iter().enumerate() {
            let own = bound.schedule.transfers.iter().enumerate().filter(|(_, t)| t.at == node);
            open.extend(own.map(|(t, _)| (p, t, 0)));
        }
        let mut since = Instant::now();
        let (mut sum, mut piece) = (Vec::new(), Vec::new());
        while !open.is_empty() {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let first = (random % open.len() as u64) as usize;
            let turn = (first..open.len()).chain(0..first);
            let mut waits = None;
            let Some(i) = turn.into_iter().find(|&i| {
                let wait = self.obstacle(open[i], node, round);
                waits = waits.or(wait);
                wait.is_none()
            }) else {
                if since.elapsed() > timeout || is_over() {
                    let (peer, seen, wanted) = waits.unwrap_or_default();
                    return Err(Stuck { node, peer, seen, wanted });
                }
                std::thread::yield_now();
                continue;
            };
            since = Instant::now();
            let (p, t, c) = open[i];
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
                        memory.read(from, &mut piece);
                        combine(kind, how, &mut sum, &piece);
                    }
                    _ => memory.read(from, &mut sum),
                }
            }
            transfer.targets.iter().for_each(|target| memory.write(bound.address(target, c), &sum));
            let told = transfer.targets.iter().filter_map(|s| s.channel).chain(transfer.tells.iter().copied());
            let number = |ch: usize| round * schedule.channels[ch].chunks + c;
            told.for_each(|ch| tell(&channels[ch].there, number(ch)));
            for source in &transfer.sources {
                if let Place::Ring(ch) = source.place {
                    tell(&channels[ch].read, number(ch));
                }
            }
            if c + 1 < schedule.chunks(transfer) {
                open[i].2 = c + 1;
            } else {
                open.swap_remove(i);
            }
        }
        self.arrived(node, round, timeout, is_over)
    }

    /// What a transfer's chunk has to wait for: a peer, the value of its counter, and what it has to exceed.
    fn obstacle(&self, (p, t, c): (usize, usize, u64), node: usize, round: u64) -> Option<(usize, u64, u64)> {
        let (bound, channels) = &self.parts[p];
        let schedule = &bound.schedule;
        let transfer = &schedule.transfers[t];
        let spots = || transfer.sources.iter().chain(&transfer.targets);
        // Nobody's memory is touched before its owner has got here.
        let host = schedule.host();
        let absent = spots().find(|s| s.node != node && s.node != host && !is_there(&self.ready[s.node], round));
        if let Some(spot) = absent {
            return Some((spot.node, self.ready[spot.node].load_relaxed(), round));
        }
        let number = |ch: usize| round * schedule.channels[ch].chunks + c;
        for s in &transfer.sources {
            let Some(ch) = s.channel else { continue };
            if !is_there(&channels[ch].there, number(ch)) {
                return Some((schedule.channels[ch].from, channels[ch].there.load_relaxed(), number(ch)));
            }
        }
        for s in &transfer.targets {
            let Place::Ring(ch) = s.place else { continue };
            if !has_room(&channels[ch].read, number(ch), schedule.slots) {
                let wanted = number(ch) - schedule.slots;
                return Some((schedule.channels[ch].to, channels[ch].read.load_relaxed(), wanted));
            }
        }
        None
    }

    /// Waits for all that others bring to a node or fetch from it.
    fn arrived(&self, node: usize, round: u64, timeout: Duration, is_over: impl Fn() -> bool) -> Result<(), Stuck> {
        let begun = Instant::now();
        for (bound, channels) in &self.parts {
            for (channel, counters) in bound.schedule.channels.iter().zip(channels) {
                let wanted = ((round + 1) * channel.chunks).saturating_sub(1);
                while channel.to == node && channel.chunks > 0 && !is_there(&counters.there, wanted) {
                    if begun.elapsed() > timeout || is_over() {
                        let seen = counters.there.load_relaxed();
                        return Err(Stuck { node, peer: channel.from, seen, wanted });
                    }
                    std::thread::yield_now();
                }
            }
        }
        Ok(())
    }
}
