//! One thread's part of a transfer: a queue, two slots, chunks as they are claimed.
#![allow(unsafe_code)]

use super::claims::Claims;
use super::{PAGEABLE_CHUNK, PINNED_CHUNK};
use crate::bound::bound;
use crate::machine::Late;
use crate::op::Op;
use crate::world::PinnedLoan;
use crate::{Error, Event, OneSided, Queue, Result, Symmetric, Team};
use std::marker::PhantomData;
use std::time::Instant;
use tandem_cuda::{ffi, Pinned};

/// The caller's memory, in parts that several threads use at once, each its own.
#[derive(Clone, Copy)]
pub(super) struct Host<'a> {
    memory: *mut u8,
    len: usize,
    is_upload: bool,
    of: PhantomData<&'a mut [u8]>,
}

// SAFETY: threads touch ranges that `Claims` gives to one of them alone; those of an upload are only read.
unsafe impl Send for Host<'_> {}
// SAFETY: as above.
unsafe impl Sync for Host<'_> {}

impl<'a> Host<'a> {
    pub(super) fn from(bytes: &'a [u8]) -> Self {
        Host { memory: bytes.as_ptr().cast_mut(), len: bytes.len(), is_upload: true, of: PhantomData }
    }

    pub(super) fn to(bytes: &'a mut [u8]) -> Self {
        Host { memory: bytes.as_mut_ptr(), len: bytes.len(), is_upload: false, of: PhantomData }
    }

    /// The address of a range, which is within.
    fn at(&self, start: usize, len: usize) -> *mut u8 {
        assert!(start <= self.len && len <= self.len - start, "a chunk within the caller's memory");
        self.memory.wrapping_add(start)
    }
}

/// What the workers of a transfer have in common.
pub(super) struct Job<'a> {
    pub(super) team: &'a Team,
    pub(super) pe: usize,
    pub(super) there: &'a Symmetric<u8>,
    pub(super) host: Host<'a>,
    pub(super) chunk: usize,
    pub(super) claims: &'a Claims,
    /// The PEs whose links take part, as the claims count them.
    pub(super) links: &'a [usize],
    /// Bytes that may be on their way over a link at the same time.
    pub(super) in_flight: u64,
}

/// Memory between the caller's and the device's.
enum Block {
    /// The device copies from and to the caller's memory itself.
    None,
    /// Page-locked; what a device may still use when it goes is freed later.
    Pinned(PinnedLoan),
    /// Of a pretend PE's window.
    Window(Symmetric<u8>),
}

struct Slot {
    block: Block,
    /// Where data of another PE passes; made when first needed.
    ring: Option<Symmetric<u8>>,
    /// A copy that has been queued: the chunk's range, and when it is done.
    busy: Option<(usize, usize, Event)>,
}

/// A thread's queue and slots.
pub(super) struct Worker {
    /// The PE whose link it uses.
    pub(super) via: usize,
    /// Among those of this link.
    pub(super) number: usize,
    pub(super) queue: Queue,
    slots: [Slot; 2],
    bytes: usize,
}

impl Worker {
    /// `is_pinned` if the caller's memory will be.
    pub(super) fn new(team: &Team, via: usize, number: usize, is_pinned: bool) -> Result<Self> {
        let queue = team.new_queue(via)?;
        let bytes = if is_pinned { PINNED_CHUNK } else { PAGEABLE_CHUNK };
        let slot = || -> Result<Slot> {
            let block = match queue.stream() {
                Some(_) if is_pinned => Block::None,
                Some(stream) => {
                    Block::Pinned(PinnedLoan::new(&team.core().world, Pinned::new(stream.device(), bytes)?))
                }
                None => Block::Window(team.alloc(bytes)?),
            };
            Ok(Slot { block, ring: None, busy: None })
        };
        let slots = [slot()?, slot()?];
        Ok(Worker { via, number, queue, slots, bytes })
    }

    /// Copies chunks until none is left. Returns the number of bytes. The caller's memory is in no copy any more when it returns, whatever
    /// happened; after an error the worker's own may be, and the worker is of no use.
    pub(super) fn run(&mut self, job: &Job<'_>) -> Result<u64> {
        let done = self.copy(job);
        if done.is_err() {
            job.claims.stop();
            self.release();
        }
        done
    }

    fn copy(&mut self, job: &Job<'_>) -> Result<u64> {
        let link = job.links.iter().position(|&via| via == self.via).unwrap_or(0);
        let mut moved = 0;
        for slot in (0..self.slots.len()).cycle() {
            self.finish(slot, job)?;
            let Some(chunk) = job.claims.next(link) else { break };
            let start = chunk * job.chunk;
            let len = job.chunk.min(job.there.len() - start);
            self.start(slot, start, len, job)?;
            moved += len as u64;
        }
        (0..self.slots.len()).try_for_each(|slot| self.finish(slot, job))?;
        Ok(moved)
    }

    /// Waits until no device uses the caller's memory: one that copies from it and to it itself cannot be stopped, and the memory is the
    /// caller's again when the transfer returns. A failed device uses none.
    fn release(&self) {
        if self.slots.iter().any(|slot| matches!(slot.block, Block::None)) {
            let _ = self.queue.commands().synchronize();
        }
    }

    /// Queues a chunk.
    fn start(&mut self, index: usize, start: usize, len: usize, job: &Job<'_>) -> Result<()> {
        let there = job.there.slice(start..start + len)?;
        let (queue, slot) = (&self.queue, &mut self.slots[index]);
        let is_direct = self.via == job.pe;
        if !is_direct && slot.ring.is_none() {
            slot.ring = Some(job.team.alloc(self.bytes)?);
        }
        let ring = slot.ring.as_ref().map(|ring| ring.slice(0..len)).transpose()?;
        let near = if is_direct { &there } else { ring.as_ref().unwrap_or(&there) };
        let caller = job.host.at(start, len);
        if job.host.is_upload {
            // SAFETY: the chunk lies in the caller's memory, which lives until the transfer returns, and no one writes it.
            let chunk = unsafe { std::slice::from_raw_parts(caller, len) };
            match &mut slot.block {
                Block::None => {}
                Block::Pinned(block) => block.bytes()[..len].copy_from_slice(chunk),
                Block::Window(block) => job.team.write(self.via, &block.slice(0..len)?, chunk)?,
            }
            host_copy(queue, near, &slot.block, caller, self.via, true)?;
            if !is_direct {
                queue.put(&there, near, job.pe)?;
            }
        } else {
            if !is_direct {
                queue.get(near, &there, job.pe)?;
            }
            host_copy(queue, near, &slot.block, caller, self.via, false)?;
        }
        slot.busy = Some((start, len, queue.record()?));
        Ok(())
    }

    /// Waits for what a slot has in flight, and takes what has arrived.
    fn finish(&mut self, index: usize, job: &Job<'_>) -> Result<()> {
        let slot = &mut self.slots[index];
        let Some((start, len, event)) = slot.busy.take() else { return Ok(()) };
        self.await_event(&event, start, len, job)?;
        let slot = &mut self.slots[index];
        if job.host.is_upload {
            return Ok(());
        }
        // SAFETY: the chunk is this thread's, lies in the caller's memory, and no copy to it is queued any more.
        let caller = || unsafe { std::slice::from_raw_parts_mut(job.host.at(start, len), len) };
        match &mut slot.block {
            Block::None => {}
            Block::Pinned(block) => caller().copy_from_slice(&block.bytes()[..len]),
            Block::Window(block) => caller().copy_from_slice(&job.team.read(self.via, &block.slice(0..len)?)?),
        }
        Ok(())
    }

    /// Waits for a chunk as long as it may take. That it takes longer is a fault of the team: this link's PE has not done it.
    fn await_event(&self, event: &Event, start: usize, len: usize, job: &Job<'_>) -> Result<()> {
        let core = job.team.core();
        let begun = Instant::now();
        if event.synchronize_until(begun + bound(core.timeout, job.in_flight))? {
            return Ok(());
        }
        let place = core.address("copy of host memory", &job.there.slice(start..start + len)?, job.pe)?;
        let (peer, waiter, bytes) = (self.via, job.pe, len as u64);
        core.give_up_copy(Late { peer, waiter, place, waited: begun.elapsed(), bytes })
    }

    /// Overwrites slots and rings. Nothing is in flight.
    pub(super) fn wipe(&mut self, team: &Team) -> Result<()> {
        for slot in &mut self.slots {
            match &mut slot.block {
                Block::None => {}
                Block::Pinned(block) => block.bytes().fill(0),
                Block::Window(block) => team.write(self.via, block, &vec![0; block.len()])?,
            }
            if let Some(ring) = &slot.ring {
                let to = self.queue.address(ring)?;
                self.queue.issue(Op::Fill { to, bytes: ring.bytes(), value: 0 }, &[ring.memory()])?;
            }
        }
        let bytes = (self.slots.len() * self.bytes) as u64;
        team.core().settle(self.queue.commands(), self.via, 0, bytes)
    }
}

/// The step between host memory and `near`, which is memory of the queue's own PE.
fn host_copy(
    queue: &Queue,
    near: &Symmetric<u8>,
    block: &Block,
    caller: *mut u8,
    via: usize,
    is_upload: bool,
) -> Result<()> {
    let host = match block {
        Block::Window(block) => {
            let block = block.slice(0..near.len())?;
            return if is_upload { queue.put(near, &block, via) } else { queue.put(&block, near, via) };
        }
        Block::Pinned(block) => block.address() as *mut u8,
        Block::None => caller,
    };
    let Some(stream) = queue.stream() else {
        return Err(Error::invalid("copy of host memory", "a pretend PE has no page-locked memory"));
    };
    let device = queue.address(near)? as *mut u8;
    // SAFETY: `near` is alive memory of this PE with as many bytes. The host memory is page-locked, lives until the event behind this
    // has been waited for (`Worker::run` never returns before), and is not touched until then.
    stream.call(if is_upload { "upload" } else { "download" }, |stream| unsafe {
        if is_upload {
            ffi::tandem_cuda_copy_to_device(device, host, near.len(), stream)
        } else {
            ffi::tandem_cuda_copy_to_host(host, device, near.len(), stream)
        }
    })?;
    Ok(())
}
