//! Kernels that stay for a while and take commands from the host, for small data that the host waits for.

use super::super::direct::direct;
use super::super::schedule::{Call, Transfer};
use super::numbered;
use crate::collective::{Item, Shared};
use crate::plan::Operation;
use crate::{ffi, Error, Result, Symmetric, Team};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tandem_cuda::{Device, Pinned, Stream};

pub(super) struct Resident {
    lanes: Vec<Lane>,
    /// Memory of each PE in which the first block of its kernel passes commands on.
    relay: Symmetric<u64>,
}

/// The kernel of one PE.
struct Lane {
    mailbox: Pinned,
    stream: Stream,
    /// The number of the last command.
    last: u32,
    /// Kernels that were launched; as many have ended as the mailbox says.
    launched: u64,
}

const WORDS: usize = ffi::TANDEM_EXEC_COMMAND_WORDS as usize;
const BLOCKS: usize = ffi::TANDEM_EXEC_RESIDENT_BLOCKS as usize;
/// Addresses that fit into a command.
const MOST_ADDRESSES: usize = WORDS / 2 - 2;

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
        self.word(std::mem::offset_of!(ffi::tandem_exec_mailbox, done) + 8 * block).load(Ordering::Acquire)
    }

    fn is_running(&self) -> bool {
        self.word(std::mem::offset_of!(ffi::tandem_exec_mailbox, ended)).load(Ordering::Acquire) < self.launched
    }

    fn post(&mut self, words: &[u64; WORDS / 2]) {
        self.last = if self.last + 1 >= ffi::TANDEM_EXEC_COMMAND_END as u32 { 1 } else { self.last + 1 };
        for i in 0..WORDS {
            let half = words[i / 2] >> (32 * (i % 2)) & u64::from(u32::MAX);
            self.command(i).store(half | u64::from(self.last) << 32, Ordering::Release);
        }
    }

    /// Launches the kernel if there is none; the command that was posted is new to it.
    fn start(&mut self, relay: u64, linger_ns: u64) -> Result<()> {
        if self.is_running() {
            return Ok(());
        }
        self.launched += 1;
        let (mailbox, before, count) = (self.mailbox.address().cast(), self.last - 1, self.launched);
        // SAFETY: mailbox and relay live as long as this value, whose drop waits for the stream; one kernel at a time runs on it.
        self.stream.call("resident kernel", |raw| unsafe {
            ffi::tandem_exec_resident(mailbox, relay as *mut u8, before, count, linger_ns, raw)
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
            Ok(Lane { mailbox, stream: Stream::new(device)?, last: 0, launched: 0 })
        };
        Ok(Self { lanes: numbered(devices).map(lane).collect::<Result<_>>()?, relay: team.alloc(WORDS)? })
    }

    /// Does a small operation at once if the queues are idle and each PE has one combination to do.
    pub(super) fn run(&mut self, shared: &Shared, item: &Item) -> Result<bool> {
        let tuning = shared.tuning();
        let team = shared.team();
        let call = &item.call;
        let is_small = call.part <= tuning.resident && call.operation != Operation::AllToAll;
        if !is_small || !shared.reach_all(item) || item.job.iter().any(|&pe| !team.queue(pe).is_idle()) {
            return Ok(false);
        }
        let rows = rows(call, item.job.len(), tuning.resident_alone)?;
        if rows.iter().any(|row| row.sources.len() + row.targets.len() > MOST_ADDRESSES) {
            return Ok(false);
        }
        let (kind, how) = item.numbers.map_or((ffi::TANDEM_EXEC_BYTES, 0), |(kind, how)| (kind as i32, how as i32));
        let mut posted = Vec::new();
        for row in &rows {
            let pe = item.job[row.at];
            let blocks = if row.bytes <= tuning.resident_alone { 1 } else { BLOCKS };
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
            let relay = team.queue(pe).address(&self.relay)?;
            let lane = &mut self.lanes[pe];
            lane.post(&words);
            lane.start(relay, tuning.linger_ns)?;
            posted.push((pe, relay, blocks));
        }
        for (pe, relay, blocks) in posted {
            self.wait(shared, pe, relay, blocks)?;
        }
        Ok(true)
    }

    fn wait(&mut self, shared: &Shared, pe: usize, relay: u64, blocks: usize) -> Result<()> {
        let lane = &mut self.lanes[pe];
        let number = u64::from(lane.last);
        let mut block = 0;
        let mut since: Option<Instant> = None;
        let mut looks = 0u32;
        loop {
            while block < blocks && lane.done(block) == number {
                block += 1;
            }
            if block == blocks {
                return Ok(());
            }
            looks = looks.wrapping_add(1);
            if !looks.is_multiple_of(64) {
                std::hint::spin_loop();
                continue;
            }
            // The kernel may have ended just before the command came; then none of its blocks has done it.
            if block == 0 && !lane.is_running() && lane.done(0) != number {
                lane.start(relay, shared.tuning().linger_ns)?;
            }
            let begun = *since.get_or_insert_with(Instant::now);
            if begun.elapsed() > shared.team().core().timeout.min(Duration::from_secs(60)) {
                let problem = format!("PE {pe} ({}) does not answer", shared.team().name(pe));
                return Err(Error::invalid("resident kernel", problem));
            }
        }
    }
}

/// One combination for each PE that has something to do. A small reduction to all is done by one PE: the time is that of one
/// command.
fn rows(call: &Call, pes: usize, alone: u64) -> Result<Vec<Transfer>> {
    let mut rows = direct(call, pes, 1)?.transfers;
    if call.operation == Operation::AllReduce && call.part <= alone {
        rows.truncate(1);
        for row in &mut rows {
            row.bytes = call.part;
            row.sources.iter_mut().chain(&mut row.targets).for_each(|spot| spot.at = 0);
        }
    }
    Ok(rows)
}
