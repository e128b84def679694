//! Carries a schedule out on paper: proves it right, and says how long it takes.
//!
//! A schedule is a network of processes that wait for counters which only grow, each written by one of them. What such a
//! network computes does not depend on who goes first, so one run to the end proves that it has no deadlock and what each
//! byte becomes. Whether something is overwritten before it was read does depend on it; [`check()`] therefore runs it in several orders, among them those in which
//! writers run as far ahead as they can and in which readers do.

use super::schedule::{Call, Endpoint, Place, Schedule, Transfer};
use crate::plan::Operation;
use crate::topology::Topology;
use crate::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};

fn wrong<T>(text: impl Into<String>) -> Result<T> {
    Err(Error::WrongSchedule(text.into()))
}

/// What a chunk holds: the inputs that were combined, by node and offset, each with how often.
type Content = BTreeMap<(usize, u64), u32>;

/// Runs a schedule: which transfer may go next is known here, which goes is the caller's choice.
pub(super) struct Run<'a> {
    schedule: &'a Schedule,
    /// By transfer: its next chunk.
    pub(super) next: Vec<u64>,
    produced: Vec<u64>,
    consumed: Vec<u64>,
}

impl<'a> Run<'a> {
    pub(super) fn new(schedule: &'a Schedule) -> Self {
        let (transfers, channels) = (schedule.transfers.len(), schedule.channels.len());
        Self { schedule, next: vec![0; transfers], produced: vec![0; channels], consumed: vec![0; channels] }
    }

    pub(super) fn may(&self, t: usize) -> bool {
        let (transfer, c) = (&self.schedule.transfers[t], self.next[t]);
        let is_there = |s: &Endpoint| s.channel.is_none_or(|ch| self.produced[ch] > c);
        let has_room =
            |s: &Endpoint| !matches!(s.place, Place::Ring(ch) if c >= self.consumed[ch] + self.schedule.slots);
        c < self.schedule.chunks(transfer)
            && transfer.sources.iter().all(is_there)
            && transfer.targets.iter().all(has_room)
    }

    /// Does chunk `next[t]`.
    pub(super) fn step(&mut self, t: usize) {
        let transfer = &self.schedule.transfers[t];
        let told = transfer.targets.iter().filter_map(|s| s.channel).chain(transfer.notifies.iter().copied());
        told.for_each(|ch| self.produced[ch] += 1);
        for endpoint in &transfer.sources {
            if let Place::Ring(ch) = endpoint.place {
                self.consumed[ch] += 1;
            }
        }
        self.next[t] += 1;
    }

    /// An error where something was left undone.
    pub(super) fn finish(&self) -> Result<()> {
        for (t, transfer) in self.schedule.transfers.iter().enumerate() {
            if self.next[t] != self.schedule.chunks(transfer) {
                return wrong(format!(
                    "deadlock: node {} stops at chunk {} of transfer {t}",
                    transfer.at, self.next[t]
                ));
            }
        }
        for (i, channel) in self.schedule.channels.iter().enumerate() {
            let is_read = channel.ring.is_none() || self.consumed[i] == channel.chunks;
            if self.produced[i] != channel.chunks || !is_read {
                return wrong(format!("channel {i} ends at {} of {} chunks", self.produced[i], channel.chunks));
            }
        }
        Ok(())
    }
}

/// The bytes of chunk `c` of a transfer.
fn length(schedule: &Schedule, transfer: &Transfer, c: u64) -> u64 {
    schedule.chunk.min(transfer.bytes - c * schedule.chunk)
}

/// The rules that need no run.
fn structure(schedule: &Schedule) -> Result<()> {
    let nodes = schedule.host() + 1;
    let mut writers = vec![0; schedule.channels.len()];
    let mut readers = vec![0; schedule.channels.len()];
    for (t, transfer) in schedule.transfers.iter().enumerate() {
        if transfer.at >= schedule.host() || transfer.sources.is_empty() || transfer.bytes == 0 {
            return wrong(format!("transfer {t} has nobody to do it, or nothing to do"));
        }
        for (endpoint, is_target) in
            transfer.sources.iter().map(|s| (s, false)).chain(transfer.targets.iter().map(|s| (s, true)))
        {
            if endpoint.node >= nodes || endpoint.channel.is_some_and(|ch| ch >= schedule.channels.len()) {
                return wrong(format!("transfer {t} names a node or a channel that there is not"));
            }
            if let Some(ch) = endpoint.channel {
                let channel = &schedule.channels[ch];
                let end = if is_target { channel.from } else { channel.to };
                if end != transfer.at || channel.chunks != schedule.chunks(transfer) {
                    return wrong(format!("channel {ch} does not fit transfer {t}"));
                }
                if is_target {
                    writers[ch] += 1;
                } else {
                    readers[ch] += 1;
                }
            }
            if let Place::Ring(ch) = endpoint.place {
                let is_own =
                    endpoint.channel == Some(ch) && schedule.channels[ch].ring.is_some_and(|r| r.node == endpoint.node);
                if !is_own {
                    return wrong(format!("transfer {t} uses a ring that is not its channel's"));
                }
            }
            // Helpers and host memory only forward: they have neither input nor output, but for uploads and downloads.
            let is_foreign = endpoint.node >= schedule.pes && !matches!(endpoint.place, Place::Ring(_));
            if is_foreign && !(endpoint.node == schedule.host() && schedule.call.operation.uses_host()) {
                return wrong(format!("transfer {t} uses a buffer of a relay"));
            }
        }
        transfer.notifies.iter().for_each(|&ch| writers[ch] += 1);
        if transfer.at >= schedule.pes && transfer.sources.len() + transfer.targets.len() != 2 {
            return wrong(format!("transfer {t} is a relay's, and does more than forward"));
        }
    }
    let mut used: Vec<Vec<(u64, u64)>> = vec![Vec::new(); nodes];
    for (i, channel) in schedule.channels.iter().enumerate() {
        if writers[i] != 1 || (channel.ring.is_some() && readers[i] != 1) {
            return wrong(format!("channel {i} has {} writers and {} readers", writers[i], readers[i]));
        }
        if let Some(ring) = channel.ring {
            used[ring.node].push((ring.at, ring.at + schedule.slots * schedule.chunk));
        }
    }
    for (node, mut ranges) in used.into_iter().enumerate() {
        ranges.sort_unstable();
        let end = ranges.last().map_or(0, |r| r.1);
        if ranges.windows(2).any(|w| w[0].1 > w[1].0) || end > schedule.staging[node] {
            return wrong(format!("the rings of node {node} overlap or leave its staging memory"));
        }
        if end > super::schedule::MAX_STAGING {
            return wrong(format!("the rings of node {node} take {end} bytes"));
        }
    }
    Ok(())
}

/// What has to be in the outputs: `(node, first byte, bytes, inputs and where in them)`.
fn wanted(call: &Call, pes: usize, host: usize) -> Vec<(usize, u64, u64, Content)> {
    let part = call.part;
    let all = |at: u64| (0..pes).map(|u| ((u, at), 1)).collect::<Content>();
    let one = |u: usize, at: u64| Content::from([((u, at), 1)]);
    let pes64 = |p: usize| p as u64 * part;
    match call.operation {
        Operation::Broadcast => {
            (0..pes).filter(|&v| !(call.in_place && v == call.root)).map(|v| (v, 0, part, one(call.root, 0))).collect()
        }
        Operation::Reduce => vec![(call.root, 0, part, all(0))],
        Operation::AllReduce => (0..pes).map(|v| (v, 0, part, all(0))).collect(),
        Operation::AllGather => (0..pes)
            .flat_map(|v| (0..pes).map(move |u| (v, u)))
            .filter(|(v, u)| !(call.in_place && v == u))
            .map(|(v, u)| (v, pes64(u), part, one(u, 0)))
            .collect(),
        Operation::ReduceScatter => (0..pes).map(|v| (v, 0, part, all(pes64(v)))).collect(),
        Operation::AllToAll => (0..pes)
            .flat_map(|v| (0..pes).map(move |u| (v, u)))
            .map(|(v, u)| (v, pes64(u), part, one(u, pes64(v))))
            .collect(),
        Operation::Send => vec![(1, 0, part, one(0, 0))],
        Operation::Upload => (0..pes).map(|v| (v, 0, part, one(host, pes64(v)))).collect(),
        Operation::Download => (0..pes).map(|v| (host, pes64(v), part, one(v, 0))).collect(),
    }
}

/// Where a byte of a node's output lies in its input when they are one buffer.
fn aliased(call: &Call, node: usize, at: u64) -> Option<u64> {
    match call.operation {
        _ if !call.in_place => None,
        Operation::Broadcast | Operation::Reduce => (node == call.root).then_some(at),
        Operation::AllGather => at.checked_sub(node as u64 * call.part).filter(|x| *x < call.part),
        Operation::ReduceScatter => Some(at + node as u64 * call.part),
        _ => Some(at),
    }
}

/// What the memory holds while a schedule runs on paper.
#[derive(Default)]
struct Memory {
    /// Chunks in outputs by node and first byte: their length and content.
    outputs: BTreeMap<(usize, u64), (u64, Content)>,
    /// Chunks in rings by channel and slot: the chunk's number, length and content, until they are read.
    rings: BTreeMap<(usize, u64), (u64, u64, Content)>,
    /// Inputs that an output in the same place has overwritten: node and range.
    lost: BTreeSet<(usize, u64, u64)>,
}

impl Memory {
    fn take(&mut self, schedule: &Schedule, endpoint: &Endpoint, c: u64, bytes: u64) -> Result<Content> {
        let at = endpoint.at + c * schedule.chunk;
        match endpoint.place {
            Place::Input => {
                if self.lost.iter().any(|&(node, from, to)| node == endpoint.node && from < at + bytes && at < to) {
                    return wrong(format!("input {at} of node {} is overwritten before it is read", endpoint.node));
                }
                Ok(Content::from([((endpoint.node, at), 1)]))
            }
            Place::Output => match self.outputs.get(&(endpoint.node, at)) {
                Some((len, content)) if *len == bytes => Ok(content.clone()),
                _ => wrong(format!("output {at} of node {} is read before it is there", endpoint.node)),
            },
            Place::Ring(ch) => match self.rings.remove(&(ch, c % schedule.slots)) {
                Some((number, len, content)) if number == c && len == bytes => Ok(content),
                _ => wrong(format!("chunk {c} of channel {ch} is read and not there, or of another length")),
            },
        }
    }

    fn put(&mut self, schedule: &Schedule, endpoint: &Endpoint, c: u64, bytes: u64, content: Content) -> Result<()> {
        let at = endpoint.at + c * schedule.chunk;
        match endpoint.place {
            Place::Input => wrong(format!("an input of node {} is written", endpoint.node)),
            Place::Output => {
                if let Some(from) = aliased(&schedule.call, endpoint.node, at) {
                    self.lost.insert((endpoint.node, from, from + bytes));
                }
                match self.outputs.insert((endpoint.node, at), (bytes, content)) {
                    None => Ok(()),
                    Some(_) => wrong(format!("output {at} of node {} is written twice", endpoint.node)),
                }
            }
            Place::Ring(ch) => match self.rings.insert((ch, c % schedule.slots), (c, bytes, content)) {
                None => Ok(()),
                Some((old, ..)) => wrong(format!("chunk {c} of channel {ch} overwrites chunk {old}")),
            },
        }
    }

    /// Does chunk `c` of a transfer.
    fn step(&mut self, schedule: &Schedule, transfer: &Transfer, c: u64) -> Result<()> {
        let bytes = length(schedule, transfer, c);
        let mut content = Content::new();
        for source in &transfer.sources {
            for (input, times) in self.take(schedule, source, c, bytes)? {
                *content.entry(input).or_insert(0) += times;
            }
        }
        transfer.targets.iter().try_for_each(|endpoint| self.put(schedule, endpoint, c, bytes, content.clone()))
    }

    /// Whether the outputs are what they should be, every byte once and none besides.
    fn compare(mut self, schedule: &Schedule) -> Result<()> {
        for (node, first, bytes, content) in wanted(&schedule.call, schedule.pes, schedule.host()) {
            let mut at = first;
            while at < first + bytes {
                let Some((length, found)) = self.outputs.remove(&(node, at)) else {
                    return wrong(format!("output {at} of node {node} is never written"));
                };
                let shift = |((u, from), times): (&(usize, u64), &u32)| ((*u, from + at - first), *times);
                if found != content.iter().map(shift).collect() {
                    return wrong(format!("output {at} of node {node} holds {found:?}"));
                }
                at += length;
            }
            if at > first + bytes {
                return wrong(format!("output {at} of node {node} is past the end"));
            }
        }
        match self.outputs.first_key_value() {
            Some(((node, at), _)) => wrong(format!("output {at} of node {node} is written and should not be")),
            None => Ok(()),
        }
    }
}

/// Proves a schedule right: every byte of every output is written once and is the right combination of inputs; nothing is
/// read before it is there or overwritten before it was read; relays only forward; rings fit; and it comes to an end.
///
/// # Errors
/// The first rule that it breaks.
pub fn check(schedule: &Schedule) -> Result<()> {
    structure(schedule)?;
    let count = schedule.transfers.len();
    // Eager in order, eager in reverse order, in turns, and at random.
    for order in 0..4 {
        let mut run = Run::new(schedule);
        let mut memory = Memory::default();
        let mut random = 0x2545_f491_4f6c_dd1d_u64;
        let mut is_moving = true;
        while is_moving {
            is_moving = false;
            for i in 0..count {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let t = match order {
                    1 => count - 1 - i,
                    3 => (random % count as u64) as usize,
                    _ => i,
                };
                while run.may(t) {
                    memory.step(schedule, &schedule.transfers[t], run.next[t])?;
                    run.step(t);
                    is_moving = true;
                    if order > 1 {
                        break;
                    }
                }
            }
            // Random picks may miss the few that can move.
            is_moving |= order == 3 && (0..count).any(|t| run.may(t));
        }
        run.finish()?;
        memory.compare(schedule)?;
    }
    Ok(())
}

/// The links that each transfer of a schedule uses, with their rates in bytes a second, by target.
type Hops = Vec<Vec<Vec<((usize, usize), f64)>>>;

fn hops(schedule: &Schedule, topology: &Topology) -> Result<Hops> {
    let mut rates: BTreeMap<(usize, usize), f64> = BTreeMap::new();
    for link in topology.links() {
        *rates.entry((link.a, link.b)).or_default() += link.forth.gbs() * 1e9;
        *rates.entry((link.b, link.a)).or_default() += link.back.gbs() * 1e9;
    }
    let way = |endpoint: &Endpoint| -> Result<Vec<((usize, usize), f64)>> {
        let path = endpoint.channel.map_or(&[][..], |ch| &schedule.channels[ch].path);
        let rate = |hop: &[usize]| match rates.get(&(hop[0], hop[1])) {
            Some(rate) => Ok(((hop[0], hop[1]), *rate)),
            None => wrong(format!("no link joins {} and {}", hop[0], hop[1])),
        };
        path.windows(2).map(rate).collect()
    };
    schedule.transfers.iter().map(|t| t.targets.iter().map(way).collect()).collect()
}

/// Seconds that a schedule takes when every link carries its rate each way, one chunk after the other, and nothing else costs time.
///
/// # Errors
/// The schedule does not end, or has hops that no link of the topology joins.
pub fn predict(schedule: &Schedule, topology: &Topology) -> Result<f64> {
    Ok(predict_each(schedule, topology)?.into_iter().fold(0.0, f64::max))
}

/// When each transfer ends, in seconds from the start.
pub(crate) fn predict_each(schedule: &Schedule, topology: &Topology) -> Result<Vec<f64>> {
    let hops = hops(schedule, topology)?;
    let mut run = Run::new(schedule);
    // When each chunk is there and when it was read, by channel; when each link is free; when each transfer can go on.
    let mut produced: Vec<Vec<f64>> = vec![Vec::new(); schedule.channels.len()];
    let mut consumed: Vec<Vec<f64>> = vec![Vec::new(); schedule.channels.len()];
    let mut free: BTreeMap<(usize, usize), f64> = BTreeMap::new();
    let mut ready = vec![0.0f64; schedule.transfers.len()];
    let mut ends = vec![0.0f64; schedule.transfers.len()];
    let begin = |run: &Run<'_>, produced: &[Vec<f64>], consumed: &[Vec<f64>], ready: f64, t: usize| {
        let (transfer, c) = (&schedule.transfers[t], run.next[t] as usize);
        let mut at = ready;
        for s in &transfer.sources {
            at = s.channel.map_or(at, |ch| at.max(produced[ch][c]));
        }
        for s in &transfer.targets {
            if let Place::Ring(ch) = s.place {
                at = c.checked_sub(schedule.slots as usize).map_or(at, |old| at.max(consumed[ch][old]));
            }
        }
        at
    };
    // The transfer that can begin first goes first.
    loop {
        let able =
            (0..ready.len()).filter(|&t| run.may(t)).map(|t| (begin(&run, &produced, &consumed, ready[t], t), t));
        let Some((at, t)) = able.min_by(|a, b| a.0.total_cmp(&b.0)) else { break };
        let transfer = &schedule.transfers[t];
        let bytes = length(schedule, transfer, run.next[t]) as f64;
        // Each target's links are used as soon as they are free; the next chunk follows when the first of them is.
        let (mut first, mut last) = (f64::INFINITY, at);
        for (target, way) in transfer.targets.iter().zip(&hops[t]) {
            let mut done = at;
            for (link, rate) in way {
                let until = free.entry(*link).or_insert(0.0);
                *until = until.max(at) + bytes / rate;
                done = done.max(*until);
            }
            if let Some(ch) = target.channel {
                produced[ch].push(done);
            }
            if !way.is_empty() {
                first = first.min(done);
            }
            last = last.max(done);
        }
        transfer.notifies.iter().for_each(|&ch| produced[ch].push(last));
        for s in &transfer.sources {
            if let Place::Ring(ch) = s.place {
                consumed[ch].push(last);
            }
        }
        ready[t] = if first.is_finite() { first } else { last };
        ends[t] = last;
        run.step(t);
    }
    run.finish()?;
    Ok(ends)
}
