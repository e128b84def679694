//! Pretend PEs: threads for queues, host memory for windows. Every operation does what it does on GPUs; no GPU is needed. PEs of other
//! processes have their queues there and their windows here too; those of other nodes are asked for what theirs hold ([`Far`]).

mod access;
mod far;
mod memory;
#[cfg(test)]
mod model;
#[allow(unsafe_code)]
mod range;
mod records;
#[allow(unsafe_code)]
mod shared;

pub(crate) use access::{access, change};
pub(crate) use far::{Far, Lost, LEARN};
pub(crate) use memory::{settle, Memory, Unmapped, Word};
use range::AddressRange;

use crate::machine::{self, Point, Recording, RegionOwner, Seat};
use crate::op::Op;
use crate::process;
use crate::{ffi, Error, Result};
use bytemuck::Pod;
use std::any::Any;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Where windows begin. No address of a pretend PE is one of this process.
const HEAP: u64 = 1 << 50;
/// Where registered memory begins.
const REGIONS: u64 = 1 << 56;
/// Memory is mapped in multiples of this many bytes.
const GRANULE: u64 = 64 << 10;
/// What memory is mapped in multiples of that several processes share: they agree on each piece.
const SHARED_GRANULE: u64 = 1 << 20;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The memory of pretend PEs.
pub(crate) struct Machine {
    window: u64,
    memory: Arc<Memory>,
    /// Whether other processes map the memory too.
    is_shared: bool,
    /// Where the windows lie in this process, if they lie in one range of its addresses.
    range: Option<Arc<AddressRange>>,
    far: Option<Arc<Far>>,
}

impl Machine {
    /// Of `pes` PEs of one process, whose windows lie in one range of its addresses where the system has such a one.
    pub(crate) fn of(pes: usize, window: u64) -> Self {
        Self::new(pes, window, false, None)
    }

    /// Of the PEs of several processes, of which those of a node share each piece of memory that is mapped.
    ///
    /// # Errors
    /// There is no thread that answers other nodes.
    pub(crate) fn shared(group: &Arc<process::Group>, window: u64) -> Result<Self> {
        let machine = Self::new(group.count(), window, true, Far::new(group, window).map(Arc::new));
        let own: Arc<dyn process::Target> =
            Arc::new(far::Own { memory: machine.memory.clone(), window, pes: group.local() });
        machine.far.iter().for_each(|far| machine.memory.reach(far.clone()));
        group.serve(&own)?;
        Ok(machine)
    }

    fn new(pes: usize, window: u64, is_shared: bool, far: Option<Arc<Far>>) -> Self {
        let memory = Memory::default();
        let range = AddressRange::new(pes as u64 * window).map(Arc::new);
        range.iter().for_each(|range| memory.keep(HEAP, range.clone()));
        Machine { window, memory: Arc::new(memory), is_shared, range, far }
    }

    /// Puts memory of several processes at an address of a window.
    fn place(&self, at: u64, bytes: u64, memory: &OwnedFd) -> std::io::Result<()> {
        match &self.range {
            Some(range) => {
                range.share(at - HEAP..at - HEAP + bytes, memory)?;
                self.memory.show(at, bytes);
            }
            None => self.memory.put(at, shared::open(memory, bytes)?),
        }
        Ok(())
    }

    /// The memory itself.
    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    fn window_of(&self, pe: usize) -> u64 {
        HEAP + pe as u64 * self.window
    }

    fn no_memory(&self, pe: usize, wanted: u64, reason: impl std::fmt::Display) -> Error {
        let reason = format!("the host has no memory for it: {reason}");
        Error::OutOfMemory { pe, device: machine::Machine::name(self, pe), wanted, reason }
    }
}

impl machine::Machine for Machine {
    fn heap(&self) -> u64 {
        HEAP
    }

    fn granule(&self) -> u64 {
        if self.is_shared {
            SHARED_GRANULE
        } else {
            GRANULE
        }
    }

    fn name(&self, pe: usize) -> String {
        format!("sim:{pe}")
    }

    fn map(&self, pe: usize, from: u64, to: u64) -> Result<Option<OwnedFd>> {
        let (at, bytes) = (self.window_of(pe) + from, to - from);
        if !self.is_shared {
            let none = |wanted| self.no_memory(pe, wanted, "so much cannot be allocated");
            return self.memory.map(at, bytes).map(|()| None).map_err(none);
        }
        let made = process::make(bytes).and_then(|memory| self.place(at, bytes, &memory).map(|()| memory));
        made.map(Some).map_err(|error| self.no_memory(pe, bytes, error))
    }

    fn import(&self, pe: usize, from: u64, to: u64, memory: OwnedFd) -> Result<()> {
        let placed = self.place(self.window_of(pe) + from, to - from, &memory);
        placed.map_err(|error| self.no_memory(pe, to - from, error))
    }

    fn unmap(&self, pe: usize, from: u64, to: u64) {
        let at = self.window_of(pe) + from;
        self.memory.unmap(at);
        // Where that fails the memory stays until the range goes.
        let range = self.range.as_ref().filter(|_| self.is_shared);
        range.iter().for_each(|range| _ = range.clear(at - HEAP..at - HEAP + to - from));
    }

    fn write(&self, _pe: usize, to: u64, from: &[u8]) -> Result<()> {
        if let Some((far, pe)) = self.far.as_ref().and_then(|far| Some((far, far.pe_of(to)?))) {
            memory::settle();
            return far.write(pe, to, from).map_err(|lost| far.error("write", lost));
        }
        self.memory.write(to, from).map_err(outside)?;
        memory::settle();
        Ok(())
    }

    fn read(&self, _pe: usize, from: u64, to: &mut [u8]) -> Result<()> {
        memory::settle();
        if let Some((far, pe)) = self.far.as_ref().and_then(|far| Some((far, far.pe_of(from)?))) {
            return far.read(pe, from, to).map_err(|lost| far.error("read", lost));
        }
        self.memory.read(from, to).map_err(outside)
    }

    fn faults(&self, places: &[u64]) -> Result<Arc<dyn machine::Faults>> {
        let is_far = |at| self.far.as_ref().is_some_and(|far| far.pe_of(at).is_some());
        Ok(Arc::new(records::Records::at(&self.memory, places, is_far).map_err(outside)?))
    }

    fn command_queue(&self, pe: usize, seat: Option<Arc<dyn Seat>>) -> Result<Arc<dyn machine::CommandQueue>> {
        let shared = Arc::new(Shared::default());
        let worker = Worker { memory: self.memory.clone(), far: self.far.clone(), _seat: seat };
        let (mine, name) = (shared.clone(), self.name(pe));
        let failed = |e: std::io::Error| Error::invalid("make a queue", format!("{name}: no thread: {e}"));
        std::thread::Builder::new().name(name.clone()).spawn(move || mine.work(&worker)).map_err(failed)?;
        Ok(Arc::new(ThreadQueue { shared, recording: Mutex::new(None) }))
    }

    fn regions(&self, _slots: &[ffi::tandem_region]) -> Result<()> {
        Ok(())
    }

    fn host_address(&self, at: u64, bytes: u64) -> Option<u64> {
        self.memory.host_address(at, bytes)
    }
}

fn outside(at: memory::Unmapped) -> Error {
    Error::invalid("access of symmetric memory", format!("address {:#x} is not mapped", at.0))
}

/// A queue: its worker ends when the queue is gone and its work is done.
struct ThreadQueue {
    shared: Arc<Shared>,
    recording: Mutex<Option<Vec<Op>>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// Jobs that were ever added, and those of them that are done.
    added: u64,
    done: u64,
    /// The first error of a program since the last time that someone waited.
    failed: Option<Error>,
    closed: bool,
}

enum Job {
    Op(Op),
    Wait(Ticket),
}

/// Who does what a queue says.
struct Worker {
    memory: Arc<Memory>,
    far: Option<Arc<Far>>,
    /// Kept until the queue is done: with it goes what the jobs work on.
    _seat: Option<Arc<dyn Seat>>,
}

impl Worker {
    fn run(&self, op: &Op) -> Result<()> {
        match op {
            Op::Run(program) => catch_unwind(AssertUnwindSafe(|| program()))
                .unwrap_or_else(|_| Err(Error::invalid("run a program", "it panicked"))),
            Op::Wait(_) | Op::Barrier => {
                Err(Error::invalid("queue of the host", "it is of no team, and takes no waits"))
            }
            op => match self.far.as_ref().and_then(|far| Some((far, far.perform(&self.memory, op)?))) {
                Some((far, done)) => done.map_err(|lost| far.error("access of symmetric memory", lost)),
                None => access(&self.memory, op).map_err(outside),
            },
        }
    }
}

/// A point in a queue: so many jobs are done.
#[derive(Clone)]
pub(crate) struct Ticket {
    queue: Arc<Shared>,
    number: u64,
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "job {}", self.number)
    }
}

impl Ticket {
    fn wait(&self) {
        let state = lock(&self.queue.state);
        let waiting = self.queue.changed.wait_while(state, |state| state.done < self.number);
        drop(waiting.unwrap_or_else(PoisonError::into_inner));
    }

    fn wait_until(&self, end: Instant) -> bool {
        let state = lock(&self.queue.state);
        let left = end.saturating_duration_since(Instant::now());
        let waiting = self.queue.changed.wait_timeout_while(state, left, |state| state.done < self.number);
        !waiting.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

impl Point for Ticket {
    fn is_done(&self) -> Result<bool> {
        Ok(lock(&self.queue.state).done >= self.number)
    }

    fn synchronize(&self) -> Result<()> {
        self.wait();
        Ok(())
    }

    fn synchronize_until(&self, end: Instant) -> Result<bool> {
        Ok(self.wait_until(end))
    }
}

impl Shared {
    fn add(&self, jobs: impl IntoIterator<Item = Job>) {
        let mut state = lock(&self.state);
        for job in jobs {
            state.jobs.push_back(job);
            state.added += 1;
        }
        self.changed.notify_all();
    }

    fn work(&self, worker: &Worker) {
        loop {
            let job = {
                let idle = |state: &mut State| state.jobs.is_empty() && !state.closed;
                let waiting = self.changed.wait_while(lock(&self.state), idle);
                match waiting.unwrap_or_else(PoisonError::into_inner).jobs.pop_front() {
                    Some(job) => job,
                    None => return,
                }
            };
            let result = match &job {
                Job::Op(op) => worker.run(op),
                Job::Wait(ticket) => {
                    ticket.wait();
                    Ok(())
                }
            };
            let mut state = lock(&self.state);
            state.done += 1;
            match result {
                // The team knows of its faults.
                Ok(()) | Err(Error::Fault(_)) => {}
                Err(error) => drop(state.failed.get_or_insert(error)),
            }
            self.changed.notify_all();
            drop(state);
            // Only now, and unlocked: what is freed with it looks at the queues.
            drop(job);
        }
    }
}

impl machine::CommandQueue for ThreadQueue {
    fn push(&self, op: Op) -> Result<()> {
        match &mut *lock(&self.recording) {
            Some(steps) => steps.push(op),
            None => self.shared.add([Job::Op(op)]),
        }
        Ok(())
    }

    fn mark(&self) -> Result<Option<Arc<dyn Point>>> {
        if lock(&self.recording).is_some() {
            return Ok(None);
        }
        let number = lock(&self.shared.state).added;
        Ok(Some(Arc::new(Ticket { queue: self.shared.clone(), number })))
    }

    fn wait(&self, mark: &dyn Point) -> Result<()> {
        let Some(ticket) = (mark as &dyn Any).downcast_ref::<Ticket>() else {
            return Err(Error::invalid("wait for an event", "the event is of a GPU, the queue of a pretend PE"));
        };
        self.shared.add([Job::Wait(ticket.clone())]);
        Ok(())
    }

    fn synchronize(&self) -> Result<()> {
        let number = lock(&self.shared.state).added;
        Ticket { queue: self.shared.clone(), number }.wait();
        self.failed()
    }

    fn synchronize_until(&self, end: Instant) -> Result<bool> {
        let number = lock(&self.shared.state).added;
        let is_done = Ticket { queue: self.shared.clone(), number }.wait_until(end);
        self.failed().map(|()| is_done)
    }

    fn begin(&self) -> Result<()> {
        *lock(&self.recording) = Some(Vec::new());
        Ok(())
    }

    fn end(&self) -> Result<Recording> {
        Ok(Box::new(lock(&self.recording).take().unwrap_or_default()))
    }

    fn replay(&self, recording: &Recording) -> Result<()> {
        let Some(steps) = recording.downcast_ref::<Vec<Op>>() else {
            return Err(Error::invalid("launch a graph", "the graph is of a GPU, the queue of a pretend PE"));
        };
        match &mut *lock(&self.recording) {
            Some(outer) => outer.extend(steps.iter().cloned()),
            None => self.shared.add(steps.iter().cloned().map(Job::Op)),
        }
        Ok(())
    }
}

impl ThreadQueue {
    /// The first error of a program since the last time.
    fn failed(&self) -> Result<()> {
        lock(&self.shared.state).failed.take().map_or(Ok(()), Err)
    }
}

impl Drop for ThreadQueue {
    fn drop(&mut self) {
        lock(&self.shared.state).closed = true;
        self.shared.changed.notify_all();
    }
}

/// Memory that a user gave: where each PE has it.
pub(crate) struct Registered {
    memory: Arc<Memory>,
    at: Vec<u64>,
    bytes: u64,
}

/// Makes blocks of the elements of each PE.
pub(crate) fn register<T: Pod>(
    memory: &Arc<Memory>,
    members: &[usize],
    buffers: Vec<crate::Memory<T>>,
) -> Result<([u64; 32], RegionOwner)> {
    let bytes = (buffers[0].len() * size_of::<T>()) as u64;
    let mut at = [0; 32];
    let mut registered = Registered { memory: memory.clone(), at: Vec::new(), bytes };
    for (&pe, buffer) in members.iter().zip(&buffers) {
        let crate::Memory::Host(elements) = buffer else {
            return Err(Error::invalid("register memory", "a GPU's buffer for a pretend PE"));
        };
        let no_memory = |_| Error::invalid("register memory", format!("no host memory for {bytes} bytes"));
        at[pe] = memory.map_free(REGIONS, bytes.next_multiple_of(8)).map_err(no_memory)?;
        registered.at.push(at[pe]);
        memory.write(at[pe], bytemuck::cast_slice(elements)).map_err(outside)?;
    }
    Ok((at, Box::new(registered) as Box<dyn Any + Send>))
}

impl Registered {
    /// The elements as they are now.
    pub(crate) fn take<T: Pod>(self) -> Result<Vec<crate::Memory<T>>> {
        let size = size_of::<T>() as u64;
        if size == 0 || !self.bytes.is_multiple_of(size) {
            return Err(Error::invalid("unregister memory", "the memory was registered as another type"));
        }
        let one = |&at: &u64| {
            let mut out = vec![T::zeroed(); (self.bytes / size) as usize];
            self.memory.read(at, bytemuck::cast_slice_mut(&mut out)).map_err(outside)?;
            Ok(crate::Memory::Host(out))
        };
        self.at.iter().map(one).collect()
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        for &at in &self.at {
            self.memory.unmap(at);
        }
    }
}
