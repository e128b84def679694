//! Copies between pageable host memory and devices, through page-locked memory that is made once.
//!
//! A device copies at full rate, and beside the host's own work, only from and to page-locked memory, and locking
//! pages is slow. So uploads go through a ring of page-locked slots ([`Staging`]), downloads through blocks that are
//! kept ([`Downloads`]). Both may hold secrets and are overwritten after use.

use crate::error::{Error, Result};
use crate::pieces::Bytes;
use crate::pinned::PinnedPart;
use crate::traffic;
use crate::{ffi, is_pinned, Device, DeviceBuffer, DevicePtr, Event, Pieces, Pinned, PinnedBlock, PinnedPool, Stream};
use bytemuck::Pod;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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
    workers: Workers,
    /// Held while uploads go through the ring.
    turn: Mutex<()>,
    /// Page-locked sources of copies that are on their way, each with an event that happens when it has been copied.
    held: Mutex<Vec<(Event, Arc<dyn Source>)>>,
}

/// Host memory that a copy may take its time with.
pub trait Source: Send + Sync {
    /// The bytes.
    fn bytes(&self) -> &[u8];
}

impl std::fmt::Debug for dyn Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Source")
    }
}

#[derive(Debug, Default)]
struct Slot {
    /// Made with those of all slots when the first is needed.
    memory: Option<PinnedPart>,
    /// Bytes at its start that hold what was uploaded last.
    dirty: usize,
    /// Happens when they have been copied.
    copied: Option<Arc<Event>>,
}

impl Slot {
    fn wait(&mut self) -> Result<()> {
        match self.copied.take() {
            Some(event) => event.synchronize(),
            None => Ok(()),
        }
    }
}

const OP: &str = "copy to device";

/// A copy from the host to elements of a buffer, which [`Upload::run`] makes.
#[derive(Debug)]
#[must_use = "nothing is copied before Upload::run"]
pub struct Upload<'a> {
    ring: &'a Staging,
    stream: Arc<Stream>,
    to: DevicePtr<u8>,
    from: Bytes<'a>,
    /// The buffer is written to.
    buffer: PhantomData<&'a mut ()>,
}

impl Staging {
    /// A ring of `slots` slots of `slot_bytes` each, which are made when they are first needed. `workers` lends threads.
    pub fn new(slots: usize, slot_bytes: usize, workers: Workers) -> Self {
        let slots = (0..slots.max(1)).map(|_| Mutex::default()).collect();
        Staging { slots, slot_bytes: slot_bytes.max(1), workers, turn: Mutex::default(), held: Mutex::default() }
    }

    /// Queues the copy of bytes of `from` to the elements of `to` from `at` on, if they are page-locked: whether they are. `from`
    /// is kept until they have been copied, or longer, until [`Staging::wipe`] finds that they have.
    ///
    /// # Errors
    /// The bytes are not within `from`, no whole number of elements, or reach past the end of `to`; the device failed.
    pub fn queue<T: Pod>(
        &self,
        to: &mut DeviceBuffer<T>,
        at: usize,
        from: &Arc<dyn Source>,
        bytes: Range<usize>,
    ) -> Result<bool> {
        let source = from.bytes().get(bytes).ok_or_else(|| to.invalid(OP))?;
        let upload = self.upload(to, at, source)?;
        if upload.stream.device().make_current().is_err() || !is_pinned(source) {
            return Ok(false);
        }
        match upload.start(source) {
            Ok(event) => lock(&self.held).push((event, from.clone())),
            Err(error) => {
                // Without an event, only the end of all work says that the source is free.
                upload.stream.synchronize()?;
                return Err(error);
            }
        }
        Ok(true)
    }

    /// The copy of `from` to the elements of `to` from `at` on, in the order of its stream.
    ///
    /// # Errors
    /// `from` is not a whole number of elements or reaches past the end of `to`.
    pub fn upload<'a, T: Pod>(&'a self, to: &'a mut DeviceBuffer<T>, at: usize, from: &'a [u8]) -> Result<Upload<'a>> {
        self.upload_from(to, at, Bytes::Memory(from))
    }

    /// As [`Staging::upload`], of bytes that are brought piece by piece.
    ///
    /// # Errors
    /// As for [`Staging::upload`].
    pub fn upload_pieces<'a, T: Pod>(
        &'a self,
        to: &'a mut DeviceBuffer<T>,
        at: usize,
        from: &'a dyn Pieces,
    ) -> Result<Upload<'a>> {
        self.upload_from(to, at, Bytes::Pieces(from))
    }

    fn upload_from<'a, T: Pod>(
        &'a self,
        to: &'a mut DeviceBuffer<T>,
        at: usize,
        from: Bytes<'a>,
    ) -> Result<Upload<'a>> {
        let count = from.len() / size_of::<T>().max(1);
        let end = at.checked_add(count).ok_or_else(|| to.invalid(OP))?;
        let (_, bytes) = to.span(OP, &(at..end))?;
        if bytes != from.len() {
            return Err(to.invalid(OP));
        }
        let target = to.ptr().offset(at).cast();
        Ok(Upload { ring: self, stream: to.stream().clone(), to: target, from, buffer: PhantomData })
    }

    /// Gives all slots their memory, if they have none. The workers do that, so that none of them may call this. Where the system does not lock
    /// so much at once, each slot gets its own when it is needed.
    fn make_slots(&self, device: Device) {
        if self.slots.iter().any(|slot| lock(slot).memory.is_some()) {
            return;
        }
        let Ok(whole) = Pinned::at_once(device, self.slots.len() * self.slot_bytes, self.workers) else { return };
        for (slot, part) in self.slots.iter().zip(whole.parts(self.slot_bytes)) {
            lock(slot).memory = Some(part);
        }
    }

    /// Overwrites what has been copied, and lets go of sources. Never blocks: a slot that is on its way is left for the next time, and a ring that
    /// is in use for whoever uses it.
    pub fn wipe(&self) {
        lock(&self.held).retain(|(event, _)| !event.is_done().unwrap_or(true));
        let Ok(_turn) = self.turn.try_lock() else { return };
        let is_copied = |slot: &Slot| slot.copied.as_ref().is_none_or(|event| event.is_done().unwrap_or(true));
        let dirty: Vec<&Mutex<Slot>> = self.slots.iter().filter(|slot| lock(slot).dirty > 0).collect();
        if dirty.is_empty() {
            // To wake threads for nothing takes longer than a small sum.
            return;
        }
        let next = AtomicUsize::new(0);
        (self.workers)(&|| {
            while let Some(slot) = dirty.get(next.fetch_add(1, Relaxed)) {
                let mut slot = lock(slot);
                if is_copied(&slot) {
                    slot.copied = None;
                    let dirty = std::mem::take(&mut slot.dirty);
                    slot.memory.iter_mut().for_each(|memory| memory.bytes()[..dirty].fill(0));
                }
            }
        });
    }
}

impl Staging {
    /// Whether no slot holds what was uploaded: [`Staging::wipe`] has overwritten all of it. For tests of who calls it.
    pub fn is_wiped(&self) -> bool {
        self.slots.iter().all(|slot| lock(slot).dirty == 0)
    }
}

impl Upload<'_> {
    /// Makes all these copies, side by side: their sources may be reused when this returns. Page-locked sources are copied
    /// as they are, others through the rings' slots, which several threads fill and which may have to be waited for.
    ///
    /// # Errors
    /// No page-locked memory; a device failed; pieces that [`Pieces::fill`] does not bring.
    pub fn run(uploads: &[Upload<'_>]) -> Result<()> {
        let (mut locked, mut paged) = (Vec::new(), Vec::new());
        for upload in uploads {
            match upload.from {
                // The runtime would else start the first device to answer.
                Bytes::Memory(bytes) if upload.stream.device().make_current().is_ok() && is_pinned(bytes) => {
                    locked.push((upload, bytes));
                }
                _ => paged.push(upload),
            }
        }
        let started: Vec<Result<Event>> = locked.iter().map(|(upload, bytes)| upload.start(bytes)).collect();
        let staged = {
            let mut rings: Vec<&Staging> = paged.iter().map(|upload| upload.ring).collect();
            // In one order everywhere, so that no two callers wait for each other.
            rings.sort_by_key(|ring| std::ptr::from_ref(*ring));
            rings.dedup_by_key(|ring| std::ptr::from_ref(*ring));
            let _turns: Vec<_> = rings.into_iter().map(|ring| lock(&ring.turn)).collect();
            // Before threads wait for slots: the same threads bring their pages.
            let is_needed = |upload: &&&Upload<'_>| upload.pieces() > 0;
            paged.iter().filter(is_needed).for_each(|upload| upload.ring.make_slots(upload.stream.device()));
            Relay::new(paged).run()
        };
        for ((upload, _), event) in locked.iter().zip(started) {
            // Where there is no event, only the end of all work says that the source is free.
            event.and_then(|event| event.synchronize()).or_else(|error| upload.stream.synchronize().and(Err(error)))?;
        }
        staged
    }

    /// Enqueues the copy of its page-locked source, which must stay until the event has happened.
    fn start(&self, from: &[u8]) -> Result<Event> {
        let to = self.to.raw();
        // SAFETY: the target is in the borrowed buffer, whose stream this is. `run` waits for the copy before it returns, and
        // `queue` keeps the source.
        self.stream.call(OP, |raw| unsafe { ffi::tandem_cuda_copy_to_device(to, from.as_ptr(), from.len(), raw) })?;
        traffic::to_device(from.len());
        self.stream.record()
    }

    /// The bytes that go through the ring as number `turn`; none past the last ones.
    fn piece(&self, turn: usize) -> Range<usize> {
        let slot = self.ring.slot_bytes;
        let lead = self.from.lead() % slot;
        let end = |turns: usize| (turns * slot).saturating_sub(lead).min(self.from.len());
        end(turn)..end(turn + 1)
    }

    /// How many pieces there are.
    fn pieces(&self) -> usize {
        let slot = self.ring.slot_bytes;
        match self.from.len() {
            0 => 0,
            len => (len + self.from.lead() % slot).div_ceil(slot),
        }
    }
}

/// Uploads through the rings. Threads fill slots; one thread alone talks to the devices, since many at once would spend
/// more time in the runtime's locks than on their copies.
struct Relay<'a> {
    uploads: Vec<&'a Upload<'a>>,
    /// Taken from the uploads in turn, so that all links are busy.
    chunks: Vec<Chunk>,
    /// The chunk that the next free thread fills.
    next: AtomicUsize,
    /// Threads that fill.
    fillers: AtomicUsize,
    has_sender: AtomicBool,
    failed: AtomicBool,
}

/// A slot's worth of an upload.
struct Chunk {
    upload: usize,
    /// Which bytes of the upload.
    bytes: Range<usize>,
    /// Its slot in the upload's ring.
    slot: usize,
    /// Whether no chunk before it uses the slot.
    first: bool,
    /// The chunk that uses the slot next.
    follower: Option<usize>,
    state: AtomicU8,
}

/// The slot still holds what another chunk left there.
const BUSY: u8 = 0;
/// The slot may be filled.
const FREE: u8 = 1;
/// It has been.
const FULL: u8 = 2;
/// What it was to be filled with did not come.
const LOST: u8 = 3;

/// Chunks of an upload that have been sent.
#[derive(Default)]
struct Sent {
    /// Those after the last event.
    unmarked: Vec<usize>,
    /// Groups on their way in order, each with an event that happens when all of it has arrived.
    marked: VecDeque<(Vec<usize>, Event)>,
}

/// Chunks that share an event: one for each would make the device pause between them.
const GROUP: usize = 4;

impl<'a> Relay<'a> {
    /// The rings are used by nobody else.
    fn new(uploads: Vec<&'a Upload<'a>>) -> Self {
        let mut chunks: Vec<Chunk> = Vec::new();
        // The last chunk of each slot, ring by ring.
        let mut users: Vec<(&Staging, Vec<Option<usize>>, usize)> = Vec::new();
        let most = uploads.iter().map(|upload| upload.pieces()).max().unwrap_or(0);
        for turn in 0..most {
            for (number, upload) in uploads.iter().enumerate() {
                let bytes = upload.piece(turn);
                if bytes.is_empty() {
                    continue;
                }
                let known = users.iter().position(|(ring, ..)| std::ptr::eq(*ring, upload.ring));
                let ring = known.unwrap_or_else(|| {
                    users.push((upload.ring, vec![None; upload.ring.slots.len()], 0));
                    users.len() - 1
                });
                let (_, last, count) = &mut users[ring];
                let slot = *count % last.len();
                *count += 1;
                let before = last[slot].replace(chunks.len());
                if let Some(before) = before {
                    chunks[before].follower = Some(chunks.len());
                }
                let state = AtomicU8::new(BUSY);
                chunks.push(Chunk { upload: number, bytes, slot, first: before.is_none(), follower: None, state });
            }
        }
        Relay {
            uploads,
            chunks,
            next: AtomicUsize::new(0),
            fillers: AtomicUsize::new(0),
            has_sender: AtomicBool::new(false),
            failed: AtomicBool::new(false),
        }
    }

    fn run(self) -> Result<()> {
        let result = Mutex::new(Ok(()));
        let work = || {
            if self.has_sender.swap(true, AcqRel) {
                return self.fill_all();
            }
            let sent = self.send_all();
            self.failed.store(sent.is_err(), Release);
            *lock(&result) = sent;
        };
        match (self.chunks.len(), self.uploads.first()) {
            (0, _) | (_, None) => {}
            (1, _) => work(),
            (_, Some(upload)) => (upload.ring.workers)(&work),
        }
        result.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self, chunk: &Chunk) -> MutexGuard<'_, Slot> {
        lock(&self.uploads[chunk.upload].ring.slots[chunk.slot])
    }

    /// Fills slots as they get free until all have been, or an upload has failed.
    fn fill_all(&self) {
        self.fillers.fetch_add(1, Relaxed);
        while let Some(chunk) = self.chunks.get(self.next.fetch_add(1, Relaxed)) {
            let mut turns = 0;
            while chunk.state.load(Acquire) != FREE {
                if self.failed.load(Acquire) {
                    return;
                }
                spin(&mut turns);
            }
            self.fill(chunk);
        }
    }

    fn fill(&self, chunk: &Chunk) {
        let (bytes, mut slot) = (chunk.bytes.clone(), self.slot(chunk));
        slot.dirty = slot.dirty.max(bytes.len());
        let mut is_there = true;
        if let Some(memory) = &mut slot.memory {
            let into = &mut memory.bytes()[..bytes.len()];
            match self.uploads[chunk.upload].from {
                Bytes::Memory(source) => into.copy_from_slice(&source[bytes]),
                Bytes::Pieces(pieces) => is_there = pieces.fill(bytes.start, into),
            }
        }
        chunk.state.store(if is_there { FULL } else { LOST }, Release);
    }

    fn send_all(&self) -> Result<()> {
        let mut sent: Vec<Sent> = self.uploads.iter().map(|_| Sent::default()).collect();
        let result = self.send_chunks(&mut sent).and_then(|()| self.mark_all(&mut sent));
        for (upload, Sent { unmarked, marked }) in self.uploads.iter().zip(sent) {
            if !unmarked.is_empty() {
                // Without an event, only the end of all work says that the slots are free. A failed device copies no more.
                let _ = upload.stream.synchronize();
            }
            // Whoever uses the slots next waits for what is still on its way.
            for (numbers, event) in marked {
                let event = Arc::new(event);
                numbers.iter().for_each(|&n| self.slot(&self.chunks[n]).copied = Some(event.clone()));
            }
        }
        result
    }

    /// Ends the groups that have begun.
    fn mark_all(&self, sent: &mut [Sent]) -> Result<()> {
        for (upload, sent) in self.uploads.iter().zip(sent).filter(|(_, sent)| !sent.unmarked.is_empty()) {
            let event = upload.stream.record()?;
            sent.marked.push_back((std::mem::take(&mut sent.unmarked), event));
        }
        Ok(())
    }

    /// Sends the chunks in order as they get full, and frees their slots for later ones as they arrive.
    fn send_chunks(&self, sent: &mut [Sent]) -> Result<()> {
        for chunk in self.chunks.iter().filter(|chunk| chunk.first) {
            let Upload { ring, stream, .. } = self.uploads[chunk.upload];
            let mut slot = self.slot(chunk);
            slot.wait()?;
            if slot.memory.is_none() {
                slot.memory = Pinned::new(stream.device(), ring.slot_bytes)?.parts(ring.slot_bytes).pop();
            }
            chunk.state.store(FREE, Release);
        }
        for (number, chunk) in self.chunks.iter().enumerate() {
            let mut turns = 0;
            loop {
                let state = chunk.state.load(Acquire);
                if state == FULL {
                    break;
                }
                if state == LOST {
                    return Err(Error::new("read what is uploaded", None, ffi::TANDEM_INVALID));
                }
                // Where there is no other thread to fill, this one does.
                let alone = state == FREE && self.fillers.load(Relaxed) == 0;
                if alone && self.next.compare_exchange(number, number + 1, Relaxed, Relaxed).is_ok() {
                    self.fill(chunk);
                    continue;
                }
                if state == BUSY {
                    self.mark_all(sent)?;
                }
                if !self.free_arrived(sent)? {
                    spin(&mut turns);
                }
            }
            let Upload { stream, to, .. } = self.uploads[chunk.upload];
            let source = self.slot(chunk).memory.as_ref().map_or(std::ptr::null_mut(), PinnedPart::address);
            let (to, bytes) = (to.offset(chunk.bytes.start).raw(), chunk.bytes.len());
            // SAFETY: the place lies in the buffer that the upload borrows, whose stream this is. The slot is not touched
            // again before the event of its group has happened, or the stream has been waited for, nor freed (Drop).
            stream.call(OP, |raw| unsafe { ffi::tandem_cuda_copy_to_device(to, source, bytes, raw) })?;
            traffic::to_device(bytes);
            sent[chunk.upload].unmarked.push(number);
            if sent[chunk.upload].unmarked.len() == GROUP {
                self.mark_all(sent)?;
            }
        }
        Ok(())
    }

    /// Gives the slots of chunks that have arrived to their followers. Whether there was one.
    fn free_arrived(&self, sent: &mut [Sent]) -> Result<bool> {
        let mut freed = false;
        for Sent { marked, .. } in sent {
            while let Some((numbers, event)) = marked.front() {
                if !event.is_done()? {
                    break;
                }
                for follower in numbers.iter().filter_map(|&n| self.chunks[n].follower) {
                    self.chunks[follower].state.store(FREE, Release);
                }
                marked.pop_front();
                freed = true;
            }
        }
        Ok(freed)
    }
}

/// Waits a little, first for a few cycles, then by letting other threads run.
fn spin(turns: &mut u32) {
    *turns += 1;
    if *turns < 100 {
        std::hint::spin_loop();
    } else {
        std::thread::yield_now();
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        for slot in &self.slots {
            // A failed device copies no more.
            let _ = lock(slot).wait();
        }
        for (event, _) in lock(&self.held).iter() {
            let _ = event.synchronize();
        }
    }
}

/// Page-locked blocks for downloads, kept for the next one.
#[derive(Debug)]
pub struct Downloads {
    pub(crate) blocks: Arc<PinnedPool>,
}

/// No more is kept.
const KEPT_BYTES: usize = 64 << 20;
/// How long a thread that waits for a download stays awake: longer than all but the largest proofs take.
const AWAKE: Duration = Duration::from_millis(50);

impl Default for Downloads {
    fn default() -> Self {
        Downloads { blocks: Arc::new(PinnedPool::new(KEPT_BYTES)) }
    }
}

impl Downloads {
    /// Tells the stream of `from` to copy its elements to the host.
    ///
    /// # Errors
    /// No page-locked memory; the device failed.
    pub fn start<T: Pod>(&self, from: &DeviceBuffer<T>) -> Result<Download<T>> {
        let (source, bytes) = from.span("copy to host", &(0..from.len()))?;
        let stream: &Stream = from.stream();
        let block = self.blocks.take(stream.device(), bytes)?;
        let memory = block.address();
        let mut download = Download { block, done: None, len: from.len(), of: PhantomData };
        if bytes == 0 {
            return Ok(download);
        }
        // SAFETY: the block has at least `bytes` bytes, and is neither touched nor freed before the event below has
        // happened; the source is a live buffer of this stream.
        stream.call("copy to host", |raw| unsafe { ffi::tandem_cuda_copy_to_host(memory, source, bytes, raw) })?;
        traffic::to_host(bytes);
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
}

/// Elements on their way to the host. Dropping it waits for them to arrive and overwrites them.
#[derive(Debug)]
pub struct Download<T: Pod> {
    block: PinnedBlock,
    done: Option<Event>,
    len: usize,
    of: PhantomData<fn() -> T>,
}

impl<T: Pod> Download<T> {
    /// Blocks until they have arrived.
    ///
    /// # Errors
    /// The failure of the copy or of work before it; too little host memory.
    pub fn wait(mut self) -> Result<Vec<T>> {
        let mut out: Vec<T> = Vec::new();
        let Some(event) = self.done.take() else { return Ok(out) };
        event.synchronize_awake(AWAKE)?;
        let room = out.try_reserve_exact(self.len);
        room.map_err(|_| Error::new("copy to host: host memory", None, ffi::TANDEM_CUDA_OUT_OF_MEMORY))?;
        // Blocks are page-aligned, but the cast that checks it would be an unneeded way to fail.
        out.extend(self.block.as_slice().chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned::<T>));
        Ok(out)
    }
}

impl<T: Pod> Drop for Download<T> {
    fn drop(&mut self) {
        if let Some(event) = self.done.take() {
            // A failed device copies no more.
            let _ = event.synchronize();
        }
    }
}

#[cfg(test)]
#[path = "staging_tests.rs"]
mod tests;
