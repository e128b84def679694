//! Kernels that stay for a while and take commands from the host, for small data that the host waits for.

use super::super::direct::direct;
use super::super::element::{Combine, Kind};
use super::super::schedule::{Call, Schedule, Transfer};
use super::super::share::Share;
use super::super::tables::numbers;
use super::super::tuning::{staged_share, RESIDENT_BLOCKS, SPLIT_BLOCKS, STAGED_BLOCKS, STAGED_SHARES};
use super::numbered;
use crate::bound::{drop_after, PATIENCE};
use crate::fault::Record;
use crate::plan::Operation;
use crate::planner::{Item, Planner};
use crate::rank::MAX_PES;
use crate::{ffi, Error, Result, Symmetric, Team};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tandem_cuda::{Device, Pinned, Stream};

pub(super) struct Resident {
    kernels: Vec<Kernel>,
    /// Memory of each PE in which the first block of its kernel passes commands on, and then the flags of ways through host memory.
    relay: Symmetric<u64>,
    /// Where such ways pass; made when it is first needed.
    ring: Option<Pinned>,
    /// Copies that took such a way.
    turns: u32,
    /// By PEs, from and to, and the power of two below the bytes: how much takes it.
    shares: HashMap<(usize, usize, u32), Share>,
    /// What the last calls came to: finding that out takes as long as a message.
    known: Vec<Known>,
    /// A kernel did not answer or start: nothing more is asked of any.
    is_broken: bool,
}

/// The kernel of one PE.
struct Kernel {
    mailbox: Pinned,
    stream: Stream,
    /// The number of the last command.
    last: u32,
    /// Kernels that were launched; as many have ended as the mailbox says.
    launched: u64,
    /// Whether the last command was to end.
    is_leaving: bool,
}

/// Blocks of a kernel: those that work, and the one that takes commands.
pub(super) const BLOCKS: usize = ffi::TANDEM_EXEC_RESIDENT_BLOCKS as usize + 1;
const WORDS: usize = ffi::TANDEM_EXEC_COMMAND_WORDS as usize;
const POLLERS: usize = ffi::TANDEM_EXEC_POLLERS as usize;
const SCRATCH: usize = ffi::TANDEM_EXEC_SCRATCH_WORDS as usize;
/// Addresses that fit into a plain command.
const MAX_ADDRESSES: usize = WORDS / 2 - 2;
/// Calls that are kept.
const MAX_KNOWN: usize = 16;
/// One with such a way has two.
const _: () = assert!(MAX_ADDRESSES >= 3 + 3);
const _: () = assert!(RESIDENT_BLOCKS <= ffi::TANDEM_EXEC_RESIDENT_BLOCKS as usize);
const _: () = assert!(SPLIT_BLOCKS + STAGED_BLOCKS <= ffi::TANDEM_EXEC_RESIDENT_BLOCKS as usize);

/// A call, and what its PEs do in each round; `None` where that is nothing for resident kernels.
struct Known {
    items: Vec<Key>,
    rounds: Option<Rounds>,
}

type Rounds = Arc<[Vec<Order>]>;

/// An item as far as its commands depend on it.
struct Key {
    call: Call,
    job: Vec<usize>,
    numbers: Option<(Kind, Combine)>,
    input: Vec<u64>,
    output: Vec<u64>,
}

impl Key {
    fn new(item: &Item) -> Self {
        let Item { call, job, numbers, input, output, .. } = item;
        let (job, input, output) = (job.clone(), input.clone(), output.clone());
        Key { call: *call, job, numbers: *numbers, input, output }
    }

    fn is(&self, item: &Item) -> bool {
        self.call == item.call
            && self.input == item.input
            && self.output == item.output
            && self.numbers == item.numbers
            && self.job == item.job
    }
}

/// A PE's part.
#[derive(Clone, Copy)]
struct Order {
    pe: usize,
    words: [u64; WORDS / 2],
    blocks: usize,
    staged_blocks: usize,
}

/// Blocks that are waited for.
struct Awaited {
    pe: usize,
    blocks: Range<usize>,
    is_host: bool,
    /// Whether these wait for another PE, which has to have done its part by the timeout; they then have as long again.
    is_receiver: bool,
    /// Nanoseconds of the slowest of those that have answered.
    took: u32,
}

/// The part of a copy that goes through host memory.
struct Through {
    ends: (usize, usize),
    /// The power of two below all bytes.
    size: u32,
    /// Bytes over the links; the others come behind.
    first: u64,
    bytes: u64,
    ring: u64,
    flags: u64,
}

impl Kernel {
    /// A word of the mailbox at so many bytes.
    fn word(&self, at: usize) -> &AtomicU64 {
        debug_assert!(at + 8 <= size_of::<ffi::tandem_exec_mailbox>());
        // SAFETY: the mailbox is this value's, aligned to a page, and accessed by the host through these atomics alone; the
        // device reads and writes whole words.
        unsafe { AtomicU64::from_ptr(self.mailbox.address().add(at).cast()) }
    }

    fn command(&self, i: usize) -> &AtomicU64 {
        self.word(std::mem::offset_of!(ffi::tandem_exec_mailbox, command) + 8 * i)
    }

    /// The last command that a block has done, and above it how many nanoseconds that took.
    fn answer(&self, block: usize) -> u64 {
        let at = std::mem::offset_of!(ffi::tandem_exec_mailbox, done) + size_of::<ffi::tandem_exec_done>() * block;
        self.word(at).load(Ordering::Acquire)
    }

    /// How many nanoseconds a block took for the last command, if it has done it.
    fn done(&self, block: usize) -> Option<u32> {
        let word = self.answer(block);
        (word as u32 == self.last).then_some((word >> 32) as u32)
    }

    fn is_running(&self) -> bool {
        self.word(std::mem::offset_of!(ffi::tandem_exec_mailbox, ended)).load(Ordering::Acquire) < self.launched
    }

    fn post(&mut self, words: &[u64; WORDS / 2]) {
        self.is_leaving = words[1] == 0;
        self.last = if self.last + 1 >= ffi::TANDEM_EXEC_COMMAND_END as u32 { 1 } else { self.last + 1 };
        let number = u64::from(self.last) << 32;
        let halves: [u64; WORDS] =
            std::array::from_fn(|i| words[i / 2] >> (32 * (i % 2)) & u64::from(u32::MAX) | number);
        for copy in 0..POLLERS {
            halves
                .iter()
                .enumerate()
                .for_each(|(i, half)| self.command(copy * WORDS + i).store(*half, Ordering::Release));
        }
    }

    /// Launches the kernel if there is none; the command that was posted is new to it.
    fn start(&mut self, relay: u64, linger_ns: u64, timeout_ns: u64) -> Result<()> {
        if self.is_running() {
            return Ok(());
        }
        self.launched += 1;
        let (mailbox, before, count) = (self.mailbox.address().cast(), self.last - 1, self.launched);
        // SAFETY: mailbox and relay live as long as the stream is at work (Resident::drop); one kernel at a time runs on it.
        self.stream.call("resident kernel", |raw| unsafe {
            ffi::tandem_exec_resident(mailbox, relay as *mut u8, before, count, linger_ns, timeout_ns, raw)
        })?;
        Ok(())
    }
}

impl Drop for Resident {
    fn drop(&mut self) {
        // The kernels end by themselves soon, where they could begin at all.
        let end = Instant::now() + PATIENCE;
        if self.kernels.iter().all(|kernel| kernel.stream.synchronize_until(end).unwrap_or(true)) {
            return;
        }
        let kept = (std::mem::take(&mut self.kernels), self.ring.take(), self.relay.clone());
        drop_after(kept, |(kernels, ..)| kernels.iter().for_each(|kernel| _ = kernel.stream.synchronize()));
    }
}

impl Resident {
    pub(super) fn new(team: &Team, devices: &[Device]) -> Result<Self> {
        let kernel = |(_, device): (usize, Device)| -> Result<Kernel> {
            let mailbox = Pinned::new(device, size_of::<ffi::tandem_exec_mailbox>())?;
            Ok(Kernel { mailbox, stream: Stream::new(device)?, last: 0, launched: 0, is_leaving: false })
        };
        Ok(Self {
            kernels: numbered(devices).map(kernel).collect::<Result<_>>()?,
            relay: team.alloc(SCRATCH + STAGED_BLOCKS)?,
            ring: None,
            turns: 0,
            shares: HashMap::new(),
            known: Vec::new(),
            is_broken: false,
        })
    }

    /// Lets the kernels end that stay, before others need their multiprocessors.
    pub(super) fn leave(&mut self) {
        for kernel in self.kernels.iter_mut().filter(|kernel| !kernel.is_leaving && kernel.is_running()) {
            kernel.post(&[0; WORDS / 2]);
        }
    }

    /// Does small operations at once if the queues are idle and they consist of direct copies and combinations.
    pub(super) fn run(&mut self, shared: &Planner, items: &[Item]) -> Result<bool> {
        let is_busy = |item: &Item| item.job.iter().any(|&pe| !shared.team().queue(pe).is_idle());
        let bytes = items.iter().map(|item| item.call.part).sum::<u64>();
        if self.is_broken || bytes > shared.tuning().resident || items.iter().any(is_busy) {
            return Ok(false);
        }
        if items.iter().any(|item| at_root(item) > shared.tuning().resident_root) {
            return Ok(false);
        }
        let Some(rounds) = self.rounds(shared, items)? else { return Ok(false) };
        if rounds.len() > 1 && bytes > shared.tuning().resident_rounds {
            return Ok(false);
        }
        let through = match items {
            [item] => self.through(shared, item)?,
            _ => None,
        };
        for round in rounds.iter() {
            let split = match (&through, &round[..]) {
                (Some(through), [one]) => Some(self.split(one, through)),
                _ => None,
            };
            let orders = split.as_ref().map_or(&round[..], |both| both);
            let receiver = split.as_ref().map(|[_, receive]| receive.pe);
            let awaited = match self.round(shared, items, orders, receiver) {
                Ok(awaited) => awaited,
                Err(error) => {
                    self.abandon(shared);
                    return Err(error);
                }
            };
            if let Some(Through { ends: (from, to), size, .. }) = through {
                // By the devices' clocks: to the host both ways end together, as the answers queue behind what passes its memory.
                let time = |is_host: bool| {
                    let took = awaited.iter().filter(|a| a.is_host == is_host).map(|a| a.took);
                    took.max().map_or(0.0, f64::from)
                };
                self.shares.entry((from, to, size)).and_modify(|share| share.observe(time(false), time(true)));
            }
        }
        Ok(true)
    }

    /// Has the commands of a round carried out. `receiver` is the PE that waits for the other.
    fn round(
        &mut self,
        shared: &Planner,
        items: &[Item],
        orders: &[Order],
        receiver: Option<usize>,
    ) -> Result<Vec<Awaited>> {
        // All are told before anything else is done: most kernels are there.
        orders.iter().for_each(|order| self.kernels[order.pe].post(&order.words));
        let mut awaited = Vec::with_capacity(2 * orders.len());
        for order in orders {
            let Order { pe, blocks, staged_blocks, .. } = *order;
            if !self.kernels[pe].is_running() {
                self.start(shared, pe)?;
            }
            let is_receiver = receiver == Some(pe);
            let parts = [(0..blocks, false), (blocks..blocks + staged_blocks, true)];
            let parts = parts.into_iter().filter(|(blocks, _)| !blocks.is_empty());
            awaited.extend(parts.map(|(blocks, is_host)| Awaited { pe, blocks, is_host, is_receiver, took: 0 }));
        }
        self.wait(shared, items, &mut awaited)?;
        Ok(awaited)
    }

    /// After an error: a kernel that has not read its command yet does not carry it out any more, and memory that one of them may
    /// still write is freed behind the ends of all. A device that fails here runs none.
    fn abandon(&mut self, shared: &Planner) {
        self.is_broken = true;
        self.leave();
        for end in self.kernels.iter().filter_map(|kernel| kernel.stream.record().ok()) {
            for stream in shared.team().queues().iter().filter_map(|queue| queue.stream()) {
                let _ = stream.wait(&end);
            }
        }
    }

    /// What PEs do in each round of a call.
    fn rounds(&mut self, shared: &Planner, items: &[Item]) -> Result<Option<Rounds>> {
        let is =
            |known: &&Known| known.items.len() == items.len() && known.items.iter().zip(items).all(|(a, b)| a.is(b));
        if let Some(known) = self.known.iter().find(is) {
            return Ok(known.rounds.clone());
        }
        let mut rounds = None;
        if items.iter().all(|item| shared.reach_all(item)) {
            let table = |item: &Item| direct(&item.call, item.job.len(), 1);
            let tables = items.iter().map(table).collect::<Result<Vec<_>>>()?;
            rounds = orders(items, &tables).map(Arc::from);
        }
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        self.known.push(Known { items: items.iter().map(Key::new).collect(), rounds: rounds.clone() });
        Ok(rounds)
    }

    fn start(&mut self, shared: &Planner, pe: usize) -> Result<()> {
        let relay = shared.team().queue(pe).address(&self.relay)?;
        self.kernels[pe].start(relay, shared.tuning().linger_ns, timeout(shared).as_nanos() as u64)
    }

    /// The way through host memory, for a copy from one PE to another that is large enough for it.
    fn through(&mut self, shared: &Planner, item: &Item) -> Result<Option<Through>> {
        let (tuning, call) = (shared.tuning(), &item.call);
        let is_copy = item.job.len() == 2 && matches!(call.operation, Operation::Broadcast | Operation::Send);
        if !is_copy || !tuning.through_host || call.part < tuning.resident_split {
            return Ok(None);
        }
        let ends = (item.job[call.root], item.job[1 - call.root]);
        let size = call.part.ilog2();
        // Who has a share has a way: looking for one in the plan takes as long as a message.
        if !self.shares.contains_key(&(ends.0, ends.1, size)) && !shared.has_host_way(item) {
            return Ok(None);
        }
        // Flags would begin again.
        let Some(turn) = self.turns.checked_add(1) else { return Ok(None) };
        self.turns = turn;
        let begin = || Share::new(staged_share(call.part), STAGED_SHARES.0, STAGED_SHARES.1);
        let share = self.shares.entry((ends.0, ends.1, size)).or_insert_with(begin).value();
        // Whole vectors, so that both parts can be moved as such.
        let first = |share: f64| (call.part as f64 * (1.0 - share)) as u64 / 4096 * 4096;
        let (first, most) = (first(share), call.part - first(STAGED_SHARES.1));
        let bytes = call.part - first;
        shared.goes_through_host(bytes as f64 / call.part as f64);
        // For the largest share: to lock memory waits for kernels of others.
        let len = usize::try_from(most).map_err(|_| Error::invalid("staging", "too large"))?;
        if self.ring.as_ref().is_none_or(|ring| ring.len() < len) {
            let queue = shared.team().queue(ends.0);
            let device = queue.stream().ok_or_else(|| Error::invalid("collective", "the PE is not a GPU"))?.device();
            self.ring = Some(Pinned::new(device, len.next_power_of_two())?);
        }
        let ring = self.ring.as_ref().map_or(0, |ring| ring.address() as u64);
        let flags = shared.team().queue(ends.1).address(&self.relay)? + 8 * SCRATCH as u64;
        Ok(Some(Through { ends, size, first, bytes, ring, flags }))
    }

    /// Leaves the last bytes of a copy to the way through host memory: what the sender does, and the receiver.
    fn split(&self, sender: &Order, through: &Through) -> [Order; 2] {
        let [_, what, source, targets @ ..] = sender.words;
        let keeps = what >> 8 & 0xff == 2;
        let way = [through.bytes | u64::from(self.turns) << 32, through.ring, through.flags];
        let what = what & 0xffff_ffff | (SPLIT_BLOCKS as u64) << 32;
        let header = |what: u64, way: u32| what | (STAGED_BLOCKS as u64) << 48 | u64::from(way) << 56;
        let (all, own) = (targets[usize::from(keeps)], targets[0]);
        let words = |bytes: u64, what: u64, at: [u64; 3]| {
            let mut words = [0; WORDS / 2];
            words[..2].copy_from_slice(&[bytes, what]);
            words[2..5].copy_from_slice(&way);
            words[5..8].copy_from_slice(&at);
            words
        };
        let way = if keeps { ffi::TANDEM_EXEC_STAGED_SEND_AND_KEEP } else { ffi::TANDEM_EXEC_STAGED_SEND };
        let send = words(through.first, header(what, way as u32), [source, own, all]);
        let receive = header(0, ffi::TANDEM_EXEC_STAGED_RECEIVE as u32);
        let receive = words(0, receive, [all + through.first, 0, 0]);
        [(sender.pe, send, SPLIT_BLOCKS), (through.ends.1, receive, 0)].map(|(pe, words, blocks)| Order {
            pe,
            words,
            blocks,
            staged_blocks: STAGED_BLOCKS,
        })
    }

    /// Until all are done. A PE that takes too long is a fault of the team.
    fn wait(&mut self, shared: &Planner, items: &[Item], awaited: &mut [Awaited]) -> Result<()> {
        let mut looks = 0u32;
        // As of before the last looks: what had come by then has been seen, also if this thread was held up itself.
        let (mut begun, mut waited) = (Instant::now(), Duration::ZERO);
        loop {
            let mut is_done = true;
            for part in awaited.iter_mut() {
                let kernel = &self.kernels[part.pe];
                while let Some(took) = part.blocks.clone().next().and_then(|block| kernel.done(block)) {
                    part.blocks.start += 1;
                    part.took = part.took.max(took);
                }
                is_done &= part.blocks.is_empty();
            }
            if is_done {
                return Ok(());
            }
            looks = looks.wrapping_add(1);
            if !looks.is_multiple_of(64) {
                std::hint::spin_loop();
                continue;
            }
            for part in awaited.iter().filter(|part| !part.blocks.is_empty()) {
                // The kernel may have ended just before the command came; then none of its blocks has done it.
                let kernel = &self.kernels[part.pe];
                if !kernel.is_running() && kernel.done(0).is_none() {
                    self.start(shared, part.pe)?;
                    (begun, waited) = (Instant::now(), Duration::ZERO);
                }
                // A sender waits for nobody: where it was not done in time, it is the one to be named, and not who waits for it.
                if waited > timeout(shared) * if part.is_receiver { 2 } else { 1 } {
                    let record = self.silence(items, part);
                    return shared.team().core().give_up(record.waiter as usize, record);
                }
            }
            waited = begun.elapsed();
        }
    }

    /// The fault of a PE that has not done its part: another one of the call waits for it, at its own output.
    fn silence(&self, items: &[Item], part: &Awaited) -> Record {
        let kernel = &self.kernels[part.pe];
        let item = items.iter().find(|item| item.job.contains(&part.pe));
        let other = item.and_then(|item| item.job.iter().zip(&item.output).find(|(&pe, _)| pe != part.pe));
        // In a job of one PE there is none.
        let (waiter, place) = other.map_or((part.pe, 0), |(&pe, &at)| (pe, at));
        Record {
            what: ffi::TANDEM_FAULT_COMMAND as u32,
            waiter: waiter as u32,
            peer: part.pe as u32,
            place,
            seen: u64::from(kernel.answer(part.blocks.start) as u32),
            wanted: u64::from(kernel.last),
        }
    }
}

fn timeout(shared: &Planner) -> Duration {
    shared.team().core().timeout.min(Duration::from_secs(60))
}

/// The bytes that leave the one PE that sends to several others, or come to the one that gets from them.
fn at_root(item: &Item) -> u64 {
    match item.call.operation {
        Operation::Broadcast | Operation::Reduce if item.job.len() > 2 => {
            item.call.part.saturating_mul(item.job.len() as u64 - 1)
        }
        _ => 0,
    }
}

/// The rows of tables without order, so that each PE has at most one of them in a round; `None` where one does not fit into a command.
fn orders(items: &[Item], tables: &[Schedule]) -> Option<Vec<Vec<Order>>> {
    let mut rounds: Vec<Vec<Order>> = Vec::new();
    let mut count = [0; MAX_PES];
    for (item, table) in items.iter().zip(tables) {
        let orders: Option<Vec<Order>> = match item.call.operation {
            Operation::AllToAll => (0..item.job.len()).map(|me| dealt(item, me)).collect(),
            _ => table.transfers.iter().map(|row| order(item, row)).collect(),
        };
        for order in orders? {
            let round = &mut count[order.pe];
            if *round == rounds.len() {
                rounds.push(Vec::new());
            }
            rounds[*round].push(order);
            *round += 1;
        }
    }
    Some(rounds)
}

/// The command for a row.
fn order(item: &Item, row: &Transfer) -> Option<Order> {
    let sources: Vec<u64> = row.sources.iter().map(|s| item.input[s.node] + s.at).collect();
    let targets: Vec<u64> = row.targets.iter().map(|s| item.output[s.node] + s.at).collect();
    let numbers = (row.sources.len(), row.targets.len());
    let blocks = super::super::tuning::resident_blocks(row.bytes);
    // A sum for all of eight PEs has too many addresses; in symmetric memory one distance stands for half of them.
    let steps: Vec<u64> = sources.iter().zip(&targets).map(|(from, to)| to.wrapping_sub(*from)).collect();
    let is_moved = numbers.0 == numbers.1 && numbers.0 > 1 && steps.iter().all(|step| *step == steps[0]);
    let words = match is_moved {
        true => words(item, row.bytes, numbers, blocks, Some((ffi::TANDEM_EXEC_MOVED, steps[0])), &sources),
        false => words(item, row.bytes, numbers, blocks, None, &[sources, targets].concat()),
    };
    Some(Order { pe: item.job[row.at], words: words?, blocks, staged_blocks: 0 })
}

/// The command for all that a PE sends in an all-to-all.
fn dealt(item: &Item, me: usize) -> Option<Order> {
    let (pes, part) = (item.job.len(), item.call.part);
    let all = super::super::tuning::resident_blocks(part.saturating_mul(pes as u64));
    let blocks = (all / pes).max(1) * pes;
    let own = me as u64 * part;
    let addresses: Vec<u64> =
        std::iter::once(item.input[me]).chain(item.output[..pes].iter().map(|to| to + own)).collect();
    let words = words(item, part, (1, pes), blocks, Some((ffi::TANDEM_EXEC_DEALT, part)), &addresses)?;
    Some(Order { pe: item.job[me], words, blocks, staged_blocks: 0 })
}

/// The words of a command with so many sources and targets, plain or of a form that has a step.
fn words(
    item: &Item,
    bytes: u64,
    (sources, targets): (usize, usize),
    blocks: usize,
    step: Option<(i32, u64)>,
    addresses: &[u64],
) -> Option<[u64; WORDS / 2]> {
    let (kind, how) = numbers(item.numbers);
    let mut words = [0; WORDS / 2];
    words[0] = bytes;
    words[1] = sources as u64
        | (targets as u64) << 8
        | (kind as u64) << 16
        | (how as u64) << 24
        | (blocks as u64) << 32
        | (step.map_or(ffi::TANDEM_EXEC_PLAIN, |(form, _)| form) as u64) << 56;
    let first = if let Some((_, step)) = step {
        words[2] = step;
        3
    } else {
        2
    };
    words.get_mut(first..first + addresses.len())?.copy_from_slice(addresses);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call where each PE's memory lies at a distance of its own, or all the same one, between input and output.
    fn item(operation: Operation, pes: usize, part: u64, is_symmetric: bool) -> Item {
        let input: Vec<u64> = (1..=pes as u64).map(|pe| pe << 40).collect();
        let away = |(pe, at): (usize, &u64)| at + if is_symmetric { 1 << 30 } else { (3 * pe as u64 + 1) << 30 };
        Item {
            call: Call { operation, root: pes / 2, part, unit: 4, in_place: false },
            job: (0..pes).rev().collect(),
            numbers: matches!(operation, Operation::AllReduce).then_some((Kind::F32, Combine::Max)),
            output: input.iter().enumerate().map(away).collect(),
            input,
            keep: Vec::new(),
            at_once: 1,
        }
    }

    /// What a PE does: which addresses it combines into which, and how many bytes.
    type Done = (usize, Vec<u64>, Vec<u64>, u64);

    /// Reads a command as the kernel does.
    fn read(order: &Order) -> Vec<Done> {
        let [bytes, what, rest @ ..] = order.words;
        let count = |shift: u32| (what >> shift & 0xff) as usize;
        let (sources, targets, form) = (count(0), count(8), (what >> 56) as i32);
        assert_eq!((what >> 32 & 0xffff) as usize, order.blocks);
        assert!((1..BLOCKS).contains(&order.blocks));
        match form {
            ffi::TANDEM_EXEC_PLAIN => {
                let (from, to) = rest[..sources + targets].split_at(sources);
                vec![(order.pe, from.to_vec(), to.to_vec(), bytes)]
            }
            ffi::TANDEM_EXEC_MOVED => {
                let from = rest[1..=targets].to_vec();
                let to = from.iter().map(|at| at.wrapping_add(rest[0])).collect();
                vec![(order.pe, from, to, bytes)]
            }
            ffi::TANDEM_EXEC_DEALT => {
                assert!(order.blocks.is_multiple_of(targets));
                let piece = |t: usize| (order.pe, vec![rest[1] + t as u64 * rest[0]], vec![rest[2 + t]], bytes);
                (0..targets).map(piece).collect()
            }
            other => panic!("form {other}"),
        }
    }

    /// Commands say what the table says, each PE's in one round; what has too many addresses is left to other ways.
    #[test]
    fn commands_are_the_rows_of_the_table() {
        for (operation, _) in Operation::ALL.iter().filter(|(operation, _)| !operation.uses_host()) {
            let operation = *operation;
            for (pes, part, is_symmetric) in (1..=16).flat_map(|pes| {
                [(1u64, true), (4, true), (4096, false), (80 << 20, true)].map(|(part, same)| (pes, part * 4, same))
            }) {
                if operation == Operation::Send && pes != 2 {
                    continue;
                }
                let item = item(operation, pes, part, is_symmetric);
                let table = direct(&item.call, pes, 1).unwrap();
                let address = |list: &[u64], ends: &[super::super::super::schedule::Endpoint]| -> Vec<u64> {
                    ends.iter().map(|end| list[end.node] + end.at).collect()
                };
                let rows = table.transfers.iter().map(|row| {
                    let (from, to) = (address(&item.input, &row.sources), address(&item.output, &row.targets));
                    (item.job[row.at], from, to, row.bytes)
                });
                let mut wanted: Vec<Done> = rows.collect();
                let name = format!("{operation:?} of {pes}, {part} bytes");
                let Some(rounds) = orders(std::slice::from_ref(&item), std::slice::from_ref(&table)) else {
                    assert!(pes > 8 || !is_symmetric && pes == 8, "{name} has no commands");
                    continue;
                };
                assert!(rounds.len() <= 1, "{name}: {} rounds", rounds.len());
                let mut found: Vec<Done> = rounds.iter().flatten().flat_map(read).collect();
                found.sort_unstable();
                wanted.sort_unstable();
                assert_eq!(found, wanted, "{name}");
            }
        }
    }

    /// What one PE alone sends to many is soon faster along a chain.
    #[test]
    fn a_root_has_one_link() {
        let of = |operation, pes, part| at_root(&item(operation, pes, part, true));
        assert_eq!(of(Operation::Broadcast, 8, 1000), 7000);
        assert_eq!(of(Operation::Reduce, 3, u64::MAX / 4 * 4), u64::MAX);
        assert_eq!(of(Operation::Broadcast, 2, 1000), 0);
        assert_eq!(of(Operation::AllReduce, 8, 1000), 0);
    }
}
