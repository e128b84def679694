//! Kernels that stay for a while and take commands from the host, for small data that the host waits for.

use super::super::direct::direct;
use super::super::schedule::{Schedule, Transfer};
use super::super::share::Share;
use super::super::tuning::{way_share, RESIDENT_BLOCKS, SPLIT_BLOCKS, WAY_BLOCKS, WAY_SHARES};
use super::numbered;
use super::tables::numbers;
use crate::collective::{Item, Shared};
use crate::plan::Operation;
use crate::team::MOST_PES;
use crate::{ffi, Error, Result, Symmetric, Team};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tandem_cuda::{Device, Pinned, Stream};

pub(super) struct Resident {
    lanes: Vec<Lane>,
    /// Memory of each PE in which the first block of its kernel passes commands on, and then the flags of ways through host memory.
    relay: Symmetric<u64>,
    /// Where such ways pass; made when it is first needed.
    ring: Option<Pinned>,
    /// Copies that took such a way.
    turns: u32,
    /// By PEs, from and to, and the power of two below the bytes: how much takes it.
    shares: HashMap<(usize, usize, u32), Share>,
    /// The tables of the last calls: making one takes as long as a message.
    tables: Vec<Arc<Schedule>>,
    /// A kernel did not answer: nothing more is asked of any.
    is_broken: bool,
}

/// The kernel of one PE.
struct Lane {
    mailbox: Pinned,
    stream: Stream,
    /// The number of the last command.
    last: u32,
    /// Kernels that were launched; as many have ended as the mailbox says.
    launched: u64,
    /// Whether the last command was to end.
    is_leaving: bool,
}

const WORDS: usize = ffi::TANDEM_EXEC_COMMAND_WORDS as usize;
const LOOKERS: usize = ffi::TANDEM_EXEC_LOOKERS as usize;
const SCRATCH: usize = ffi::TANDEM_EXEC_SCRATCH_WORDS as usize;
/// Addresses that fit into a command without a way through host memory.
const MOST_ADDRESSES: usize = WORDS / 2 - 2;
/// Tables that are kept.
const MOST_TABLES: usize = 16;
/// One with such a way has two.
const _: () = assert!(MOST_ADDRESSES >= 3 + 3);
const _: () = assert!(RESIDENT_BLOCKS <= ffi::TANDEM_EXEC_RESIDENT_BLOCKS as usize);
const _: () = assert!(SPLIT_BLOCKS + WAY_BLOCKS <= ffi::TANDEM_EXEC_RESIDENT_BLOCKS as usize);

/// A PE's part.
struct Order {
    pe: usize,
    words: [u64; WORDS / 2],
    blocks: usize,
    way_blocks: usize,
}

/// Blocks that are waited for.
struct Awaited {
    pe: usize,
    blocks: Range<usize>,
    is_host: bool,
    done: Option<Instant>,
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

impl Lane {
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

    fn done(&self, block: usize) -> u64 {
        let at = std::mem::offset_of!(ffi::tandem_exec_mailbox, done) + size_of::<ffi::tandem_exec_done>() * block;
        self.word(at).load(Ordering::Acquire)
    }

    fn is_running(&self) -> bool {
        self.word(std::mem::offset_of!(ffi::tandem_exec_mailbox, ended)).load(Ordering::Acquire) < self.launched
    }

    fn post(&mut self, words: &[u64; WORDS / 2]) {
        self.is_leaving = words[1] == 0;
        self.last = if self.last + 1 >= ffi::TANDEM_EXEC_COMMAND_END as u32 { 1 } else { self.last + 1 };
        for i in 0..LOOKERS * WORDS {
            let half = words[i % WORDS / 2] >> (32 * (i % 2)) & u64::from(u32::MAX);
            self.command(i).store(half | u64::from(self.last) << 32, Ordering::Release);
        }
    }

    /// Launches the kernel if there is none; the command that was posted is new to it.
    fn start(&mut self, relay: u64, linger_ns: u64, timeout_ns: u64) -> Result<()> {
        if self.is_running() {
            return Ok(());
        }
        self.launched += 1;
        let (mailbox, before, count) = (self.mailbox.address().cast(), self.last - 1, self.launched);
        // SAFETY: mailbox and relay live as long as this value, whose drop waits for the stream; one kernel at a time runs on it.
        self.stream.call("resident kernel", |raw| unsafe {
            ffi::tandem_exec_resident(mailbox, relay as *mut u8, before, count, linger_ns, timeout_ns, raw)
        })?;
        Ok(())
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        // It ends by itself soon.
        let _ = self.stream.synchronize();
    }
}

impl Resident {
    pub(super) fn new(team: &Team, devices: &[Device]) -> Result<Self> {
        let lane = |(_, device): (usize, Device)| -> Result<Lane> {
            let mailbox = Pinned::new(device, size_of::<ffi::tandem_exec_mailbox>())?;
            Ok(Lane { mailbox, stream: Stream::new(device)?, last: 0, launched: 0, is_leaving: false })
        };
        Ok(Self {
            lanes: numbered(devices).map(lane).collect::<Result<_>>()?,
            relay: team.alloc(SCRATCH + WAY_BLOCKS)?,
            ring: None,
            turns: 0,
            shares: HashMap::new(),
            tables: Vec::new(),
            is_broken: false,
        })
    }

    /// Lets the kernels end that stay, before others need their multiprocessors.
    pub(super) fn leave(&mut self) {
        for lane in self.lanes.iter_mut().filter(|lane| !lane.is_leaving && lane.is_running()) {
            lane.post(&[0; WORDS / 2]);
        }
    }

    /// Does small operations at once if the queues are idle and they consist of direct copies and combinations.
    pub(super) fn run(&mut self, shared: &Shared, items: &[Item]) -> Result<bool> {
        let is_busy = |item: &Item| item.job.iter().any(|&pe| !shared.team().queue(pe).is_idle());
        let bytes = items.iter().map(|item| item.call.part).sum::<u64>();
        if self.is_broken
            || bytes > shared.tuning().resident
            || items.iter().any(|item| is_busy(item) || !shared.reach_all(item))
        {
            return Ok(false);
        }
        let tables = items.iter().map(|item| self.table(item)).collect::<Result<Vec<_>>>()?;
        let mut rows = tables.iter().flat_map(|table| &table.transfers);
        if rows.any(|row| row.sources.len() + row.targets.len() > MOST_ADDRESSES) {
            return Ok(false);
        }
        let rounds = rounds(items, &tables);
        if rounds.len() > 1 && bytes > shared.tuning().resident_rounds {
            return Ok(false);
        }
        let through = match items {
            [item] => self.through(shared, item)?,
            _ => None,
        };
        for mut orders in rounds {
            if let (Some(through), [one]) = (&through, &mut orders[..]) {
                let receiver = self.split(one, through);
                orders.push(receiver);
            }
            let mut awaited = Vec::with_capacity(2 * orders.len());
            // All are told before anything else is done: most kernels are there.
            orders.iter().for_each(|order| self.lanes[order.pe].post(&order.words));
            for order in &orders {
                let Order { pe, blocks, way_blocks, .. } = *order;
                if !self.lanes[pe].is_running() {
                    self.start(shared, pe)?;
                }
                let parts = [(0..blocks, false), (blocks..blocks + way_blocks, true)];
                let parts = parts.into_iter().filter(|(blocks, _)| !blocks.is_empty());
                awaited.extend(parts.map(|(blocks, is_host)| Awaited { pe, blocks, is_host, done: None }));
            }
            let begun = Instant::now();
            if let Err(error) = self.wait(shared, &mut awaited, begun) {
                self.is_broken = true;
                return Err(error);
            }
            if let Some(Through { ends: (from, to), size, .. }) = through {
                let time = |is_host: bool| {
                    let ends = awaited.iter().filter(|a| a.is_host == is_host).filter_map(|a| a.done);
                    ends.max().map_or(0.0, |end| (end - begun).as_secs_f64())
                };
                self.shares.entry((from, to, size)).and_modify(|share| share.observe(time(false), time(true)));
            }
        }
        Ok(true)
    }

    fn table(&mut self, item: &Item) -> Result<Arc<Schedule>> {
        let pes = item.job.len();
        if let Some(table) = self.tables.iter().find(|table| table.call == item.call && table.pes == pes) {
            return Ok(table.clone());
        }
        if self.tables.len() >= MOST_TABLES {
            self.tables.clear();
        }
        let table = Arc::new(direct(&item.call, pes, 1)?);
        self.tables.push(table.clone());
        Ok(table)
    }

    fn start(&mut self, shared: &Shared, pe: usize) -> Result<()> {
        let relay = shared.team().queue(pe).address(&self.relay)?;
        self.lanes[pe].start(relay, shared.tuning().linger_ns, timeout(shared).as_nanos() as u64)
    }

    /// The way through host memory, for a copy from one PE to another that is large enough for it.
    fn through(&mut self, shared: &Shared, item: &Item) -> Result<Option<Through>> {
        let (tuning, call) = (shared.tuning(), &item.call);
        let is_copy = item.job.len() == 2 && matches!(call.operation, Operation::Broadcast | Operation::Send);
        if !is_copy || !tuning.through_host || call.part < tuning.resident_split || !shared.has_host_way(item) {
            return Ok(None);
        }
        // Flags would begin again.
        let Some(turn) = self.turns.checked_add(1) else { return Ok(None) };
        self.turns = turn;
        let ends = (item.job[call.root], item.job[1 - call.root]);
        let size = call.part.ilog2();
        let begin = || Share::new(way_share(call.part), WAY_SHARES.0, WAY_SHARES.1);
        let share = self.shares.entry((ends.0, ends.1, size)).or_insert_with(begin).value();
        // Whole vectors, so that both parts can be moved as such.
        let first = (call.part as f64 * (1.0 - share)) as u64 / 4096 * 4096;
        let bytes = call.part - first;
        shared.goes_through_host(bytes as f64 / call.part as f64);
        let len = usize::try_from(bytes).map_err(|_| Error::invalid("staging", "too large"))?;
        if self.ring.as_ref().is_none_or(|ring| ring.len() < len) {
            let queue = shared.team().queue(ends.0);
            let device = queue.stream().ok_or_else(|| Error::invalid("collective", "the PE is not a GPU"))?.device();
            self.ring = Some(Pinned::new(device, len.next_power_of_two())?);
        }
        let ring = self.ring.as_ref().map_or(0, |ring| ring.address() as u64);
        let flags = shared.team().queue(ends.1).address(&self.relay)? + 8 * SCRATCH as u64;
        Ok(Some(Through { ends, size, first, bytes, ring, flags }))
    }

    /// Leaves the last bytes of a copy to the way through host memory; returns what the receiver does.
    fn split(&self, sender: &mut Order, through: &Through) -> Order {
        let [_, what, source, targets @ ..] = sender.words;
        let keeps = what >> 8 & 0xff == 2;
        let way = [through.bytes | u64::from(self.turns) << 32, through.ring, through.flags];
        let what = what & 0xffff_ffff | (SPLIT_BLOCKS as u64) << 32;
        let header = |what: u64, way: u32| what | (WAY_BLOCKS as u64) << 48 | u64::from(way) << 56;
        let (all, own) = (targets[usize::from(keeps)], targets[0]);
        let words = |bytes: u64, what: u64, at: [u64; 3]| {
            let mut words = [0; WORDS / 2];
            words[..2].copy_from_slice(&[bytes, what]);
            words[2..5].copy_from_slice(&way);
            words[5..8].copy_from_slice(&at);
            words
        };
        let way = if keeps { ffi::TANDEM_EXEC_WAY_SEND_AND_KEEP } else { ffi::TANDEM_EXEC_WAY_SEND };
        sender.words = words(through.first, header(what, way as u32), [source, own, all]);
        (sender.blocks, sender.way_blocks) = (SPLIT_BLOCKS, WAY_BLOCKS);
        let receive = header(0, ffi::TANDEM_EXEC_WAY_RECEIVE as u32);
        let words = words(0, receive, [all + through.first, 0, 0]);
        Order { pe: through.ends.1, words, blocks: 0, way_blocks: WAY_BLOCKS }
    }

    /// Until all are done.
    fn wait(&mut self, shared: &Shared, awaited: &mut [Awaited], begun: Instant) -> Result<()> {
        let mut looks = 0u32;
        loop {
            let mut is_done = true;
            for part in awaited.iter_mut().filter(|part| part.done.is_none()) {
                let lane = &self.lanes[part.pe];
                while !part.blocks.is_empty() && lane.done(part.blocks.start) == u64::from(lane.last) {
                    part.blocks.start += 1;
                }
                part.done = part.blocks.is_empty().then(Instant::now);
                is_done &= part.done.is_some();
            }
            if is_done {
                return Ok(());
            }
            looks = looks.wrapping_add(1);
            if !looks.is_multiple_of(64) {
                std::hint::spin_loop();
                continue;
            }
            for part in awaited.iter().filter(|part| part.done.is_none()) {
                // The kernel may have ended just before the command came; then none of its blocks has done it.
                let lane = &self.lanes[part.pe];
                if !lane.is_running() && lane.done(0) != u64::from(lane.last) {
                    self.start(shared, part.pe)?;
                }
                // What one of them may wait for is later than what it says itself.
                if begun.elapsed() > 2 * timeout(shared) {
                    let problem = format!("PE {} ({}) does not answer", part.pe, shared.team().name(part.pe));
                    return Err(Error::invalid("resident kernel", problem));
                }
            }
        }
    }
}

fn timeout(shared: &Shared) -> Duration {
    shared.team().core().timeout.min(Duration::from_secs(60))
}

/// The rows of tables without order, so that each PE has at most one of them in a round.
fn rounds(items: &[Item], tables: &[Arc<Schedule>]) -> Vec<Vec<Order>> {
    let mut rounds: Vec<Vec<Order>> = Vec::new();
    let mut count = [0; MOST_PES];
    for (item, table) in items.iter().zip(tables) {
        for row in &table.transfers {
            let order = order(item, row);
            let round = &mut count[order.pe];
            if *round == rounds.len() {
                rounds.push(Vec::new());
            }
            rounds[*round].push(order);
            *round += 1;
        }
    }
    rounds
}

/// The command for a row.
fn order(item: &Item, row: &Transfer) -> Order {
    let (kind, how) = numbers(item.numbers);
    let blocks = super::super::tuning::resident_blocks(row.bytes);
    let mut words = [0; WORDS / 2];
    words[0] = row.bytes;
    words[1] = row.sources.len() as u64
        | (row.targets.len() as u64) << 8
        | (kind as u64) << 16
        | (how as u64) << 24
        | (blocks as u64) << 32;
    let sources = row.sources.iter().map(|s| item.input[s.node] + s.at);
    let targets = row.targets.iter().map(|s| item.output[s.node] + s.at);
    for (word, at) in words[2..].iter_mut().zip(sources.chain(targets)) {
        *word = at;
    }
    Order { pe: item.job[row.at], words, blocks, way_blocks: 0 }
}
