//! Copies between pageable host memory and devices, through page-locked memory that is made once.
//!
//! A device copies at full rate, and beside the host's own work, only from and to page-locked memory, and locking
//! pages is slow. So uploads go through a ring of page-locked slots ([`Staging`]), downloads through blocks that are
//! kept ([`Downloads`]). Both may hold secrets and are overwritten after use.

use crate::error::{Error, Result};
use crate::{ffi, Device, DeviceBuffer, Event, Pinned, Stream};
use bytemuck::Pod;
use std::sync::{Arc, Mutex, MutexGuard};

/// A mutex that a panicking thread has left is used all the same: what it guards here is only memory to overwrite.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Copies bytes in memory; several threads may share the work.
pub type Fill = fn(to: &mut [u8], from: &[u8]);

/// A ring of page-locked slots for uploads to the buffers of one stream.
#[derive(Debug)]
pub struct Staging {
    /// The slots that exist, and the number of the next one to use.
    slots: Mutex<(Vec<Slot>, usize)>,
    count: usize,
    slot_bytes: usize,
    fill: Fill,
}

#[derive(Debug)]
struct Slot {
    memory: Pinned,
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
}

impl Staging {
    /// A ring of `slots` slots of `slot_bytes` each, which are made when they are first needed.
    pub fn new(slots: usize, slot_bytes: usize, fill: Fill) -> Self {
        Staging { slots: Mutex::default(), count: slots.max(1), slot_bytes: slot_bytes.max(1), fill }
    }

    /// Copies `from` to the elements of `to` from `at` on, in the order of its stream. `from` may be reused when this
    /// returns; it blocks while all slots are on their way.
    ///
    /// # Errors
    /// `from` is not a whole number of elements or reaches past the end of `to`; no page-locked memory; the device
    /// failed.
    pub fn upload<T: Pod>(&self, to: &mut DeviceBuffer<T>, at: usize, from: &[u8]) -> Result<()> {
        let op = "copy to device";
        let count = from.len() / size_of::<T>().max(1);
        let end = at.checked_add(count).ok_or_else(|| to.invalid(op))?;
        let (target, bytes) = to.span(op, &(at..end))?;
        if bytes != from.len() {
            return Err(to.invalid(op));
        }
        let mut ring = lock(&self.slots);
        for (index, chunk) in from.chunks(self.slot_bytes).enumerate() {
            let slot = self.next(&mut ring, to.stream().device())?;
            slot.wait()?;
            slot.dirty = slot.dirty.max(chunk.len());
            (self.fill)(&mut slot.memory.bytes()[..chunk.len()], chunk);
            // SAFETY: the chunk's place lies in the span of `to`, whose stream this is. The slot is not touched again
            // before the event below has happened, nor freed (Drop).
            to.stream().call(op, |raw| unsafe {
                let place = target.add(index * self.slot_bytes);
                ffi::tandem_cuda_copy_to_device(place, slot.memory.address(), chunk.len(), raw)
            })?;
            slot.copied = Some(match to.stream().record() {
                Ok(event) => event,
                Err(error) => {
                    // Without an event, only the end of all work says that the slot is free.
                    to.stream().synchronize()?;
                    return Err(error);
                }
            });
        }
        Ok(())
    }

    fn next<'a>(&self, ring: &'a mut (Vec<Slot>, usize), device: Device) -> Result<&'a mut Slot> {
        let (slots, turn) = ring;
        let index = *turn;
        if index == slots.len() {
            slots.push(Slot { memory: Pinned::new(device, self.slot_bytes)?, dirty: 0, copied: None });
        }
        *turn = (index + 1) % self.count;
        Ok(&mut slots[index])
    }

    /// Overwrites what has been copied. Never blocks: a slot that is on its way is left for the next time.
    pub fn wipe(&self) {
        let mut ring = lock(&self.slots);
        for slot in &mut ring.0 {
            if slot.copied.as_ref().is_none_or(|event| event.is_done().unwrap_or(true)) {
                slot.copied = None;
                let dirty = std::mem::take(&mut slot.dirty);
                slot.memory.bytes()[..dirty].fill(0);
            }
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        for slot in &mut lock(&self.slots).0 {
            // A failed device copies no more.
            let _ = slot.wait();
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
