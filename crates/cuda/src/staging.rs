//! Copies between pageable host memory and devices, through page-locked memory that is made once.
//!
//! A device copies at full rate, and beside the host's own work, only from and to page-locked memory, and locking
//! pages is slow. So uploads go through a ring of page-locked slots ([`Staging`]), downloads through blocks that are
//! kept ([`Downloads`]). Both may hold secrets and are overwritten after use.

use crate::error::{Error, Result};
use crate::{ffi, is_pinned, Device, DeviceBuffer, DevicePtr, Event, Pinned, Stream};
use bytemuck::Pod;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A mutex that a panicking thread has left is used all the same: what it guards here is only memory to overwrite.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls a function on several threads at once and returns when all have come back from it.
pub type Workers = fn(&(dyn Fn() + Sync));

/// A ring of page-locked slots for uploads to the buffers of one device.
#[derive(Debug)]
pub struct Staging {
    slots: Vec<Mutex<Slot>>,
    slot_bytes: usize,
    /// The slot that the next upload begins with.
    next: AtomicUsize,
    workers: Workers,
}

#[derive(Debug, Default)]
struct Slot {
    /// Made when it is first needed.
    memory: Option<Pinned>,
    /// Bytes at its start that hold what was uploaded last.
    dirty: usize,
    /// Happens when they have been copied.
    copied: Option<Event>,
}

impl Slot {
    fn wait(&mut self) -> Result<()> {
        match self.copied.take() {
            Some(event) => event.synchronize(),
            None => Ok(()),
        }
    }

    /// Copies `from` to the device's memory at `to`, in the order of `stream`, by way of this slot of `bytes` bytes.
    fn send(&mut self, stream: &Stream, to: DevicePtr<u8>, from: &[u8], bytes: usize) -> Result<()> {
        self.wait()?;
        let memory = match &mut self.memory {
            Some(memory) => memory,
            none => none.insert(Pinned::new(stream.device(), bytes)?),
        };
        self.dirty = self.dirty.max(from.len());
        memory.bytes()[..from.len()].copy_from_slice(from);
        let source = memory.address();
        // SAFETY: `Upload` holds the place to write to. The slot is not touched again before the event below has happened,
        // nor freed (Drop).
        stream.call(OP, |raw| unsafe { ffi::tandem_cuda_copy_to_device(to.raw(), source, from.len(), raw) })?;
        match stream.record() {
            Ok(event) => self.copied = Some(event),
            Err(error) => {
                // Without an event, only the end of all work says that the slot is free.
                stream.synchronize()?;
                return Err(error);
            }
        }
        Ok(())
    }
}

const OP: &str = "copy to device";

/// A copy from the host to elements of a buffer, which [`Upload::run`] makes.
#[derive(Debug)]
pub struct Upload<'a> {
    ring: &'a Staging,
    stream: Arc<Stream>,
    to: DevicePtr<u8>,
    from: &'a [u8],
    /// The buffer is written to.
    buffer: PhantomData<&'a mut ()>,
}

impl Staging {
    /// A ring of `slots` slots of `slot_bytes` each, which are made when they are first needed. `workers` lends threads.
    pub fn new(slots: usize, slot_bytes: usize, workers: Workers) -> Self {
        let slots = (0..slots.max(1)).map(|_| Mutex::default()).collect();
        Staging { slots, slot_bytes: slot_bytes.max(1), next: AtomicUsize::new(0), workers }
    }

    /// The copy of `from` to the elements of `to` from `at` on, in the order of its stream.
    ///
    /// # Errors
    /// `from` is not a whole number of elements or reaches past the end of `to`.
    pub fn upload<'a, T: Pod>(&'a self, to: &'a mut DeviceBuffer<T>, at: usize, from: &'a [u8]) -> Result<Upload<'a>> {
        let count = from.len() / size_of::<T>().max(1);
        let end = at.checked_add(count).ok_or_else(|| to.invalid(OP))?;
        let (_, bytes) = to.span(OP, &(at..end))?;
        if bytes != from.len() {
            return Err(to.invalid(OP));
        }
        let target = to.ptr().offset(at).cast();
        Ok(Upload { ring: self, stream: to.stream().clone(), to: target, from, buffer: PhantomData })
    }

    /// Overwrites what has been copied. Never blocks: a slot that is on its way is left for the next time.
    pub fn wipe(&self) {
        let next = AtomicUsize::new(0);
        (self.workers)(&|| {
            while let Some(slot) = self.slots.get(next.fetch_add(1, Relaxed)) {
                // Whoever holds it is about to use it, and to wipe it afterwards.
                let Ok(mut slot) = slot.try_lock() else { continue };
                let Slot { memory: Some(memory), dirty, copied } = &mut *slot else { continue };
                if *dirty > 0 && copied.as_ref().is_none_or(|event| event.is_done().unwrap_or(true)) {
                    *copied = None;
                    memory.bytes()[..std::mem::take(dirty)].fill(0);
                }
            }
        });
    }
}

impl Upload<'_> {
    /// Makes all these copies, side by side: their sources may be reused when this returns. Page-locked sources are copied
    /// as they are, others through the rings' slots, which several threads fill and which may have to be waited for.
    ///
    /// # Errors
    /// No page-locked memory; a device failed.
    pub fn run(uploads: &[Upload<'_>]) -> Result<()> {
        // The runtime would else start the first device to answer.
        let is_locked = |u: &&Upload<'_>| u.stream.device().make_current().is_ok() && is_pinned(u.from);
        let (locked, paged): (Vec<_>, Vec<_>) = uploads.iter().partition(is_locked);
        let started: Vec<Result<Event>> = locked.iter().map(|upload| upload.start()).collect();
        let staged = Self::stage(&paged);
        for (upload, event) in locked.iter().zip(started) {
            // Where there is no event, only the end of all work says that the source is free.
            event.and_then(|event| event.synchronize()).or_else(|error| upload.stream.synchronize().and(Err(error)))?;
        }
        staged
    }

    /// Enqueues the copy of a page-locked source.
    fn start(&self) -> Result<Event> {
        let (to, from) = (self.to.raw(), self.from);
        // SAFETY: the target is in the borrowed buffer, whose stream this is; `run` waits for the copy before it returns.
        self.stream.call(OP, |raw| unsafe { ffi::tandem_cuda_copy_to_device(to, from.as_ptr(), from.len(), raw) })?;
        self.stream.record()
    }

    /// Copies through the rings. Threads take turns among the uploads, so that all links are busy.
    fn stage(uploads: &[&Upload<'_>]) -> Result<()> {
        let chunks = |upload: &Upload<'_>| upload.from.len().div_ceil(upload.ring.slot_bytes);
        let Some(most) = uploads.iter().map(|u| chunks(u)).max() else { return Ok(()) };
        let first: Vec<usize> = uploads.iter().map(|u| u.ring.next.fetch_add(chunks(u), Relaxed)).collect();
        let next = AtomicUsize::new(0);
        let failed = Mutex::new(None);
        let work = || loop {
            let turn = next.fetch_add(1, Relaxed);
            let (index, which) = (turn / uploads.len(), turn % uploads.len());
            if index >= most || lock(&failed).is_some() {
                return;
            }
            let Upload { ring, stream, to, from, .. } = uploads[which];
            let at = index * ring.slot_bytes;
            if at >= from.len() {
                continue;
            }
            let chunk = &from[at..from.len().min(at + ring.slot_bytes)];
            let slot = &ring.slots[first[which].wrapping_add(index) % ring.slots.len()];
            if let Err(error) = lock(slot).send(stream, to.offset(at), chunk, ring.slot_bytes) {
                lock(&failed).get_or_insert(error);
            }
        };
        if most * uploads.len() == 1 {
            work();
        } else {
            (uploads[0].ring.workers)(&work);
        }
        match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        for slot in &self.slots {
            // A failed device copies no more.
            let _ = lock(slot).wait();
        }
    }
}

/// Page-locked blocks for downloads, kept for the next one.
#[derive(Debug, Default)]
pub struct Downloads {
    idle: Mutex<Vec<Pinned>>,
}

/// A larger block is freed after its download.
const KEPT_BLOCK: usize = 16 << 20;
/// No more blocks are kept.
const KEPT_BLOCKS: usize = 16;
/// Blocks are powers of two of at least this size, so that most downloads find one.
const LEAST_BLOCK: usize = 64 << 10;

impl Downloads {
    /// Tells the stream of `from` to copy its elements to the host.
    ///
    /// # Errors
    /// No page-locked memory; the device failed.
    pub fn start<T: Pod>(self: &Arc<Self>, from: &DeviceBuffer<T>) -> Result<Download<T>> {
        let (source, bytes) = from.span("copy to host", &(0..from.len()))?;
        let mut download =
            Download { block: None, done: None, len: from.len(), home: self.clone(), of: std::marker::PhantomData };
        if bytes == 0 {
            return Ok(download);
        }
        let stream: &Stream = from.stream();
        let block = self.take(stream.device(), bytes)?;
        let memory = block.address();
        download.block = Some(block);
        // SAFETY: the block has at least `bytes` bytes, and is neither touched nor freed before the event below has
        // happened; the source is a live buffer of this stream.
        stream.call("copy to host", |raw| unsafe { ffi::tandem_cuda_copy_to_host(memory, source, bytes, raw) })?;
        match stream.record() {
            Ok(event) => download.done = Some(event),
            Err(error) => {
                // Without an event, only the end of all work says that the block is free.
                stream.synchronize()?;
                return Err(error);
            }
        }
        Ok(download)
    }

    fn take(&self, device: Device, bytes: usize) -> Result<Pinned> {
        let mut idle = lock(&self.idle);
        let fitting = (0..idle.len()).filter(|&i| idle[i].len() >= bytes).min_by_key(|&i| idle[i].len());
        match fitting {
            Some(index) => Ok(idle.swap_remove(index)),
            None => {
                drop(idle);
                let too_large =
                    || Error::new("allocate page-locked memory", Some(device), ffi::TANDEM_CUDA_OUT_OF_MEMORY);
                Pinned::new(device, bytes.max(LEAST_BLOCK).checked_next_power_of_two().ok_or_else(too_large)?)
            }
        }
    }

    fn give_back(&self, mut block: Pinned, dirty: usize) {
        block.bytes()[..dirty].fill(0);
        let mut idle = lock(&self.idle);
        if block.len() <= KEPT_BLOCK && idle.len() < KEPT_BLOCKS {
            idle.push(block);
        }
    }
}

/// Elements on their way to the host. Dropping it waits for them to arrive and overwrites them.
#[derive(Debug)]
pub struct Download<T: Pod> {
    block: Option<Pinned>,
    done: Option<Event>,
    len: usize,
    home: Arc<Downloads>,
    of: std::marker::PhantomData<fn() -> T>,
}

impl<T: Pod> Download<T> {
    /// Blocks until they have arrived.
    ///
    /// # Errors
    /// The failure of the copy or of work before it; too little host memory.
    pub fn wait(mut self) -> Result<Vec<T>> {
        let mut out: Vec<T> = Vec::new();
        let (Some(event), Some(block)) = (self.done.take(), self.block.as_mut()) else { return Ok(out) };
        let arrived = event.synchronize();
        let room = out.try_reserve_exact(self.len);
        if arrived.is_ok() && room.is_ok() {
            let bytes = &block.bytes()[..self.len * size_of::<T>()];
            // Blocks are page-aligned, but the cast that checks it would be an unneeded way to fail.
            out.extend(bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned::<T>));
        }
        arrived?;
        room.map_err(|_| Error::new("copy to host: host memory", None, ffi::TANDEM_CUDA_OUT_OF_MEMORY))?;
        Ok(out)
    }
}

impl<T: Pod> Drop for Download<T> {
    fn drop(&mut self) {
        if let Some(event) = self.done.take() {
            // A failed device copies no more.
            let _ = event.synchronize();
        }
        if let Some(block) = self.block.take() {
            self.home.give_back(block, self.len * size_of::<T>());
        }
    }
}
