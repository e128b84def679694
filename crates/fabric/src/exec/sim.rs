//! Carries schedules out in host memory, one thread a node.

use super::element::{combine, Combine, Kind};
use super::protocol::{has_room, is_there, notify, Word};
use super::schedule::{Endpoint, Place, Schedule};
use std::borrow::Borrow;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
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

/// A chunk that was written for who waits at the other end of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    /// Which of the schedules.
    pub part: usize,
    /// The channel.
    pub channel: usize,
    /// Its bytes.
    pub bytes: u64,
    /// When it began to be written, from when the run was made.
    pub begun: Duration,
    /// When it was there.
    pub ended: Duration,
}

/// The counters of one channel.
#[derive(Debug)]
struct Counters<W> {
    produced: W,
    consumed: W,
}

/// Schedules that are carried out together, as often as one likes. Counters only grow: in round `r` (from 0) chunk `c` of a
/// channel with `n` chunks is number `r * n + c`. They are words of its own, or `W`, which several processes see.
#[derive(Debug)]
pub struct Run<W = AtomicU64> {
    parts: Vec<(Bound, Vec<Counters<W>>)>,
    /// By PE: the rounds that it has begun, for the others to see.
    ready: Vec<W>,
    /// By PE: the same, for itself.
    rounds: Vec<AtomicU64>,
    /// What was moved, if it is kept, and since when.
    kept: Option<(Instant, Mutex<Vec<Moved>>)>,
}

impl Run {
    /// Together.
    pub fn new(parts: Vec<Bound>) -> Self {
        let words = (0..Self::words(&parts)).map(|_| AtomicU64::new(0)).collect();
        Self::over(parts, words)
    }
}

impl<W: Borrow<AtomicU64>> Run<W> {
    /// How many words the counters of these take.
    pub fn words(parts: &[Bound]) -> usize {
        parts.iter().map(|bound| 2 * bound.schedule.channels.len()).sum::<usize>() + Self::nodes(parts)
    }

    fn nodes(parts: &[Bound]) -> usize {
        parts.iter().flat_map(Bound::workers).max().map_or(0, |last| last + 1)
    }

    /// Together, with counters in `words`, of which there are [`Run::words`], all 0.
    ///
    /// # Panics
    /// There are fewer.
    pub fn over(parts: Vec<Bound>, words: Vec<W>) -> Self {
        assert!(words.len() >= Self::words(&parts), "too few words for the counters");
        let nodes = Self::nodes(&parts);
        let mut words = words.into_iter();
        let ready = words.by_ref().take(nodes).collect();
        let mut counters = |bound: Bound| {
            let mut channels = Vec::with_capacity(bound.schedule.channels.len());
            while channels.len() < bound.schedule.channels.len() {
                // There are as many as the channels have.
                let (Some(produced), Some(consumed)) = (words.next(), words.next()) else { break };
                channels.push(Counters { produced, consumed });
            }
            (bound, channels)
        };
        let parts = parts.into_iter().map(&mut counters).collect();
        Self { parts, ready, rounds: (0..nodes).map(|_| AtomicU64::new(0)).collect(), kept: None }
    }

    /// Keeps what is moved, from now on.
    pub fn keeping(self) -> Self {
        Self { kept: Some((Instant::now(), Mutex::default())), ..self }
    }

    /// What was moved, and since when the times count, where it is kept ([`Run::keeping`]).
    pub fn kept(&self) -> Option<(Instant, Vec<Moved>)> {
        let (since, moved) = self.kept.as_ref()?;
        Some((*since, moved.lock().unwrap_or_else(PoisonError::into_inner).clone()))
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
        notify(self.ready[pe].borrow(), round);
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
                    let missing = waits.iter().find(|wait| !is_there(self.ready[wait.0].borrow(), round));
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
        for target in &transfer.targets {
            let begun = self.kept.as_ref().map(|(since, _)| since.elapsed());
            memory.write(bound.address(target, c), sum);
            if let (Some((since, moved)), Some(begun), Some(channel)) = (&self.kept, begun, target.channel) {
                let one = Moved { part: p, channel, bytes: bytes as u64, begun, ended: since.elapsed() };
                moved.lock().unwrap_or_else(PoisonError::into_inner).push(one);
            }
        }
        let told = transfer.targets.iter().filter_map(|s| s.channel).chain(transfer.notifies.iter().copied());
        let number = |ch: usize| round * schedule.channels[ch].chunks + c;
        told.for_each(|ch| notify(channels[ch].produced.borrow(), number(ch)));
        for source in &transfer.sources {
            if let Place::Ring(ch) = source.place {
                notify(channels[ch].consumed.borrow(), number(ch));
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
        if let Some(other) = others.into_iter().find(|&other| !is_there(self.ready[other].borrow(), round)) {
            return Some((other, self.ready[other].borrow().load_relaxed(), round));
        }
        let number = |ch: usize| round * schedule.channels[ch].chunks + c;
        for s in &transfer.sources {
            let Some(ch) = s.channel else { continue };
            let produced: &AtomicU64 = channels[ch].produced.borrow();
            if !is_there(produced, number(ch)) {
                return Some((bound.pes[schedule.channels[ch].from], produced.load_relaxed(), number(ch)));
            }
        }
        for s in &transfer.targets {
            let Place::Ring(ch) = s.place else { continue };
            let consumed: &AtomicU64 = channels[ch].consumed.borrow();
            if !has_room(consumed, number(ch), schedule.slots) {
                let wanted = number(ch) - schedule.slots;
                return Some((bound.pes[schedule.channels[ch].to], consumed.load_relaxed(), wanted));
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
                while bound.pes[channel.to] == pe && channel.chunks > 0 && !is_there(counters.produced.borrow(), wanted)
                {
                    if begun.elapsed() > timeout || is_over() {
                        let seen = counters.produced.borrow().load_relaxed();
                        return Err(Stuck { waiter: pe, peer: bound.pes[channel.from], seen, wanted });
                    }
                    std::thread::yield_now();
                }
            }
        }
        Ok(())
    }
}
