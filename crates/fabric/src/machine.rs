//! What a world stands on: memory of every PE, and ordered queues of work. GPUs ([`crate::cuda`]) and pretend PEs ([`crate::sim`])
//! name this module, and it names neither them nor what stands on it.

use crate::fault::Record;
use crate::op::Op;
use crate::{ffi, Result};
use std::any::Any;
use std::fmt::Debug;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Regions that can be registered at a time.
pub(crate) const MAX_REGIONS: usize = ffi::TANDEM_FABRIC_MAX_REGIONS as usize;

/// Words of 64 bits that a record of a fault takes, where a machine keeps it in its PE's memory.
pub(crate) const RECORD_WORDS: u64 = 7;

/// Memory and queues of the PEs of a world. Addresses and offsets were checked by the caller.
pub(crate) trait Machine: Send + Sync {
    /// The address of PE 0's window.
    fn heap(&self) -> u64;
    /// What memory is mapped in multiples of.
    fn granule(&self) -> u64;
    /// What PE `pe` is, such as `cuda:0`.
    fn name(&self, pe: usize) -> String;
    /// Puts memory, all zero, behind the bytes of PE `pe`'s window from `from` to `to`; all PEs of this process that may reach it do.
    /// Where the world has several processes the others get the memory by what is returned ([`Machine::import`]).
    fn map(&self, pe: usize, from: u64, to: u64) -> Result<Option<OwnedFd>>;
    /// Puts `memory`, which `map` has returned in another process, behind the bytes of a window of that process's PE `pe`.
    fn import(&self, pe: usize, _from: u64, _to: u64, _memory: OwnedFd) -> Result<()> {
        Err(crate::Error::invalid("share memory", format!("{} is of one process", self.name(pe))))
    }
    /// Takes away what a call of `map` or `import` with the same arguments has put there.
    fn unmap(&self, pe: usize, from: u64, to: u64);
    /// Copies to PE `pe`'s memory; done when it returns.
    fn write(&self, pe: usize, to: u64, from: &[u8]) -> Result<()>;
    /// Copies from PE `pe`'s memory; done when it returns.
    fn read(&self, pe: usize, from: u64, to: &mut [u8]) -> Result<()>;
    /// Where a team records its faults. `places` has, by PE of the team, the address of [`RECORD_WORDS`] words of zeros in that PE's
    /// memory, for a machine that keeps them there.
    fn faults(&self, places: &[u64]) -> Result<Arc<dyn Faults>>;
    /// A queue of PE `pe`. One without a seat in a team takes no waits and no barriers.
    fn command_queue(&self, pe: usize, seat: Option<Arc<dyn Seat>>) -> Result<Arc<dyn CommandQueue>>;
    /// A queue of PE `pe` that is a stream of the caller's, of that PE's device.
    fn command_queue_on(
        &self,
        _stream: Arc<tandem_cuda::Stream>,
        _seat: Arc<dyn Seat>,
    ) -> Result<Arc<dyn CommandQueue>> {
        Err(crate::Error::invalid("queue on a stream", "the PE is a pretend one"))
    }
    /// Tells the PEs which regions there are; `slots` is by region.
    fn regions(&self, slots: &[ffi::tandem_region]) -> Result<()>;
    /// Tells kernels that look that an allocation of PE `pe`'s window is the bytes from `from` to `end`, or with an `end` of 0 that
    /// the `bytes` bytes from there are none.
    fn mark(&self, _pe: usize, _from: u64, _bytes: u64, _end: u64) -> Result<()> {
        Ok(())
    }
    /// Where kernels of PE `pe` find where allocations end; `None` where that is not kept.
    fn ends(&self, _pe: usize) -> Option<u64> {
        None
    }
    /// The GPU that PE `pe` is, if it is one.
    fn device(&self, _pe: usize) -> Option<tandem_cuda::Device> {
        None
    }
    /// PEs that are on the same GPU as PE `pe`, itself among them: each has its share of what the GPU holds at once.
    fn sharing(&self, _pe: usize) -> usize {
        1
    }
    /// Where in this process the `bytes` bytes at an address of a window are, if they are there in one piece.
    fn host_address(&self, _at: u64, _bytes: u64) -> Option<u64> {
        None
    }
    /// Where kernels of PE `pe` find the table of regions; `None` if there are no kernels.
    fn region_table(&self, _pe: usize) -> Option<u64> {
        None
    }
}

/// A PE's place in a team, as its queue needs it.
pub(crate) trait Seat: Send + Sync {
    /// The team as kernels of this PE get it; `None` for a pretend PE.
    fn handle(&self) -> Option<ffi::tandem_team>;
    /// The number of the next barrier that a queue of this PE is told, from 1, where queues count them: among GPUs of several nodes.
    fn next_barrier(&self) -> u64;
}

/// The faults of a team.
pub(crate) trait Faults: Send + Sync {
    /// The fault of the team's PE `pe`, if it had one.
    fn get(&self, pe: usize) -> Option<Record>;
    /// Records it, unless there is one already. For pretend PEs and for waits of the host.
    fn put(&self, pe: usize, record: Record);
    /// Where kernels of PE `pe` write it; 0 where there are none.
    fn address(&self, _pe: usize) -> usize {
        0
    }
}

/// An ordered queue of work of one PE.
pub(crate) trait CommandQueue: Send + Sync {
    /// Adds a step. While recording, it is only written down.
    fn push(&self, op: Op) -> Result<()>;
    /// A point that is reached when all steps so far are done; `None` while recording.
    fn mark(&self) -> Result<Option<Arc<dyn Point>>>;
    /// Steps after this begin when the point is reached.
    fn wait(&self, mark: &dyn Point) -> Result<()>;
    /// Blocks until all steps are done.
    fn synchronize(&self) -> Result<()>;
    /// Blocks until all steps are done, or until `end`: whether they are.
    fn synchronize_until(&self, end: Instant) -> Result<bool>;
    /// From here on steps are written down and not done.
    fn begin(&self) -> Result<()>;
    /// Ends what `begin` began.
    fn end(&self) -> Result<Recording>;
    /// Adds all steps that were written down. The recording must be of this queue.
    fn replay(&self, recording: &Recording) -> Result<()>;
    /// Whether steps of it may end at PEs of other nodes and take too long ([`CommandQueue::late`]).
    fn may_be_late(&self) -> bool {
        false
    }
    /// The first such step that takes longer than it may, if one does at the time `now`.
    fn late(&self, _now: Instant) -> Result<Option<Late>> {
        Ok(None)
    }
    /// The stream behind the queue, if there is one.
    fn stream(&self) -> Option<&Arc<tandem_cuda::Stream>> {
        None
    }
}

/// A point in a queue.
pub(crate) trait Point: Any + Debug + Send + Sync {
    /// Whether the queue has got there.
    fn is_done(&self) -> Result<bool>;
    /// Blocks until it has.
    fn synchronize(&self) -> Result<()>;
    /// Blocks until it has been reached, or until `end`: whether it has.
    fn synchronize_until(&self, end: Instant) -> Result<bool>;
}

/// What was not done in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Late {
    /// The PE that has not come, though all that it waits for has.
    pub(crate) peer: usize,
    /// One that waits for it, and the address where.
    pub(crate) waiter: usize,
    pub(crate) place: u64,
    pub(crate) waited: Duration,
    pub(crate) bytes: u64,
}

/// Steps that were written down, as their kind of queue keeps them.
pub(crate) type Recording = Box<dyn Any + Send + Sync>;

/// What PEs cannot do with each other's memory.
#[derive(Debug, Clone)]
pub(crate) struct Links {
    /// By PE and peer: why it does not reach the peer's memory, if it does not.
    apart: Vec<Vec<Option<String>>>,
    /// By PE and peer: whether it reads and writes the peer's memory, but cannot change a word of it atomically.
    without_atomics: Vec<Vec<bool>>,
    /// By PE: its node.
    nodes: Vec<usize>,
}

impl Links {
    /// Everyone reaches everyone.
    pub(crate) fn all(pes: usize) -> Self {
        Links { apart: vec![vec![None; pes]; pes], without_atomics: vec![vec![false; pes]; pes], nodes: vec![0; pes] }
    }

    /// Divides the PEs among nodes.
    pub(crate) fn divide(&mut self, nodes: Vec<usize>) {
        for (a, &here) in nodes.iter().enumerate() {
            for (b, &there) in nodes.iter().enumerate().filter(|(_, &there)| there != here) {
                let reason = format!(
                    "they are on nodes {here} and {there}, and what kernels and programs do needs a direct link; \
                     queues and the host reach it"
                );
                self.apart[a][b] = Some(reason);
            }
        }
        self.nodes = nodes;
    }

    /// The node of a PE.
    pub(crate) fn node(&self, pe: usize) -> usize {
        self.nodes[pe]
    }

    /// Whether two PEs are on different nodes.
    pub(crate) fn is_far(&self, a: usize, b: usize) -> bool {
        self.nodes[a] != self.nodes[b]
    }

    /// Why `from` does not reach the memory of `to`, if it does not.
    pub(crate) fn apart(&self, from: usize, to: usize) -> Option<&str> {
        self.apart[from][to].as_deref()
    }

    /// Whether `from` can change words of `to` atomically.
    pub(crate) fn has_atomics(&self, from: usize, to: usize) -> bool {
        !self.without_atomics[from][to]
    }

    pub(crate) fn part(&mut self, from: usize, to: usize, reason: String) {
        self.apart[from][to] = Some(reason);
    }

    pub(crate) fn without_atomics(&mut self, from: usize, to: usize) {
        self.without_atomics[from][to] = true;
    }
}

/// What keeps a region alive; taken out and dropped once no queue uses it any more.
pub(crate) type RegionOwner = Box<dyn Any + Send>;
