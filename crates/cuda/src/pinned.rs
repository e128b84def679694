//! Page-locked host memory.

use crate::error::{check, Error, Result};
use crate::staging::Workers;
use crate::{ffi, Device};
use std::alloc::{alloc, dealloc, Layout};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{self, Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// Page-locked host memory, which devices copy from and to at full rate, overwritten with zeros before it is freed.
#[derive(Debug)]
pub struct Pinned {
    memory: *mut u8,
    len: usize,
    /// The memory, where the runtime did not allocate it.
    own: Option<Fresh>,
}

// SAFETY: the memory belongs to this value alone.
unsafe impl Send for Pinned {}
// SAFETY: a shared reference gives no access to the bytes but their address.
unsafe impl Sync for Pinned {}

impl Pinned {
    /// For copies of `device`, which becomes current: the runtime would else start the first one.
    ///
    /// # Errors
    /// The system locks no more pages; the device failed.
    pub fn new(device: Device, len: usize) -> Result<Self> {
        device.make_current()?;
        let mut memory = std::ptr::null_mut();
        // SAFETY: `memory` is valid to write to.
        check("allocate page-locked memory", Some(device), unsafe { ffi::tandem_cuda_host_alloc(len, &mut memory) })?;
        // SAFETY: `len` bytes have just been allocated there. They are made zero because a slice needs defined bytes.
        unsafe { memory.write_bytes(0, len) };
        Ok(Pinned { memory, len, own: None })
    }

    /// As [`Pinned::new`], at a fraction of the time where it is much: several threads bring the pages, and the runtime only locks them.
    ///
    /// # Errors
    /// As [`Pinned::new`].
    pub fn at_once(device: Device, len: usize, workers: Workers) -> Result<Self> {
        const OP: &str = "lock pages";
        device.make_current()?;
        let no_room = || Error::new(OP, Some(device), ffi::TANDEM_CUDA_OUT_OF_MEMORY);
        let own = Fresh::zeros(len, workers).ok_or_else(no_room)?;
        // SAFETY: so many bytes are there. They are unlocked before they are given back (Drop).
        check(OP, Some(device), unsafe { ffi::tandem_cuda_host_register(own.memory, len) })?;
        Ok(Pinned { memory: own.memory, len, own: Some(own) })
    }

    /// Its parts of `bytes` each, at least one, as far as there are whole ones. The memory is given back with the last of them.
    pub(crate) fn parts(self, bytes: usize) -> Vec<PinnedPart> {
        let (count, whole) = (self.len / bytes.max(1), Arc::new(self));
        let part =
            |i: usize| PinnedPart { memory: whole.memory.wrapping_add(i * bytes), len: bytes, _whole: whole.clone() };
        (0..count).map(part).collect()
    }

    /// Their number.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where they begin.
    pub fn address(&self) -> *mut u8 {
        self.memory
    }

    /// The bytes; no copy to them may be queued.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: `len` defined bytes, which nothing writes to while this value is borrowed.
        unsafe { std::slice::from_raw_parts(self.memory, self.len) }
    }

    /// The bytes; no copy from or to them may be queued.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: `len` defined bytes, borrowed like the value that owns them.
        unsafe { std::slice::from_raw_parts_mut(self.memory, self.len) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        wipe(self.bytes());
        // SAFETY: the memory is this value's own, and was locked or allocated when it was made. It is not used after this.
        let _ = unsafe {
            match self.own {
                Some(_) => ffi::tandem_cuda_host_unregister(self.memory),
                None => ffi::tandem_cuda_host_free(self.memory),
            }
        };
    }
}

/// A part of page-locked memory.
#[derive(Debug)]
pub(crate) struct PinnedPart {
    memory: *mut u8,
    len: usize,
    _whole: Arc<Pinned>,
}

// SAFETY: no two parts have a byte in common, and nobody uses the whole but to give it back.
unsafe impl Send for PinnedPart {}
// SAFETY: a shared reference gives no access to the bytes but their address, or to read them.
unsafe impl Sync for PinnedPart {}

impl PinnedPart {
    /// Where it begins.
    pub(crate) fn address(&self) -> *mut u8 {
        self.memory
    }

    /// The bytes; no copy to them may be queued.
    #[cfg(test)]
    pub(crate) fn as_slice(&self) -> &[u8] {
        // SAFETY: `len` defined bytes of the whole, which no other part has, and nothing writes to while this value is borrowed.
        unsafe { std::slice::from_raw_parts(self.memory, self.len) }
    }

    /// The bytes; no copy from or to them may be queued.
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: `len` defined bytes of the whole, which no other part has, borrowed like this value.
        unsafe { std::slice::from_raw_parts_mut(self.memory, self.len) }
    }
}

/// Memory of whole pages.
#[derive(Debug)]
struct Fresh {
    memory: *mut u8,
    layout: Layout,
}

/// What pages are multiples of.
const PAGE: usize = 4 << 10;
/// Bytes that a thread touches at a time.
const TOUCHED: usize = 256 << 10;

impl Fresh {
    /// So many zeros, written by all `workers`; `None` where there is no memory for them.
    fn zeros(len: usize, workers: Workers) -> Option<Fresh> {
        let layout = Layout::from_size_align(len.max(1).checked_next_multiple_of(PAGE)?, PAGE).ok()?;
        // SAFETY: the layout has a size.
        let fresh = Fresh { memory: unsafe { alloc(layout) }, layout };
        if fresh.memory.is_null() {
            return None;
        }
        let next = AtomicUsize::new(0);
        let (first, all) = (fresh.memory.expose_provenance(), layout.size());
        workers(&|| loop {
            let at = next.fetch_add(TOUCHED, Relaxed);
            let Some(rest) = all.checked_sub(at).filter(|rest| *rest > 0) else { return };
            let part = std::ptr::with_exposed_provenance_mut::<u8>(first + at);
            // SAFETY: the bytes lie within what has just been allocated, and no other thread gets the same ones.
            unsafe { part.write_bytes(0, rest.min(TOUCHED)) };
        });
        Some(fresh)
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        if !self.memory.is_null() {
            // SAFETY: allocated with this layout, and given back once.
            unsafe { dealloc(self.memory, self.layout) };
        }
    }
}

/// Page-locked blocks that are kept for the next use: the system takes a millisecond for every two or three MiB that it locks.
#[derive(Debug)]
pub struct PinnedPool {
    /// Lend threads for large blocks.
    workers: Option<Workers>,
    most_bytes: usize,
    idle: Mutex<Vec<Pinned>>,
}

/// A block of a pool. What was used of it is overwritten with zeros before it is used again.
#[derive(Debug)]
pub struct PinnedBlock {
    memory: Option<Pinned>,
    used: usize,
    pool: Arc<PinnedPool>,
}

/// Blocks are at least this large, so that most uses find one.
const LEAST_BLOCK: usize = 64 << 10;
/// Blocks from this size on are made by several threads.
const LEAST_LARGE: usize = 64 << 20;
/// No more blocks are kept.
const KEPT_BLOCKS: usize = 16;

impl PinnedPool {
    /// A pool that keeps up to `most_bytes` bytes of unused blocks.
    pub fn new(most_bytes: usize) -> Self {
        PinnedPool { workers: None, most_bytes, idle: Mutex::default() }
    }

    /// As [`PinnedPool::new`]; `workers` bring the pages of large blocks, so that none of them may take one.
    pub fn by(workers: Workers, most_bytes: usize) -> Self {
        PinnedPool { workers: Some(workers), ..PinnedPool::new(most_bytes) }
    }

    /// A block with `bytes` bytes, which are zero, for copies of `device`.
    ///
    /// # Errors
    /// The system locks no more pages; the device failed.
    pub fn take(self: &Arc<Self>, device: Device, bytes: usize) -> Result<PinnedBlock> {
        let mut block = PinnedBlock { memory: None, used: bytes, pool: self.clone() };
        if bytes == 0 {
            return Ok(block);
        }
        {
            let mut idle = self.idle();
            let fitting = (0..idle.len()).filter(|&i| idle[i].len() >= bytes).min_by_key(|&i| idle[i].len());
            block.memory = fitting.map(|index| idle.swap_remove(index));
        }
        if block.memory.is_none() {
            let too_large = || Error::new("allocate page-locked memory", Some(device), ffi::TANDEM_CUDA_OUT_OF_MEMORY);
            // In steps of an eighth, so that sizes that differ little find each other's blocks.
            let step = (bytes.checked_next_power_of_two().ok_or_else(too_large)? / 8).max(LEAST_BLOCK);
            let size = bytes.checked_next_multiple_of(step).ok_or_else(too_large)?;
            let large = self.workers.filter(|_| size >= LEAST_LARGE);
            let at_once = large.and_then(|workers| Pinned::at_once(device, size, workers).ok());
            block.memory = Some(at_once.map_or_else(|| Pinned::new(device, size), Ok)?);
        }
        Ok(block)
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Pinned>> {
        // A panicking thread leaves nothing half done here.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PinnedBlock {
    /// Where it begins; null where it has no bytes.
    pub fn address(&self) -> *mut u8 {
        self.memory.as_ref().map_or(std::ptr::null_mut(), Pinned::address)
    }

    /// The bytes; no copy to them may be queued.
    pub fn as_slice(&self) -> &[u8] {
        self.memory.as_ref().map_or(&[], |memory| &memory.as_slice()[..self.used])
    }

    /// The bytes; no copy from or to them may be queued.
    pub fn bytes(&mut self) -> &mut [u8] {
        match &mut self.memory {
            Some(memory) => &mut memory.bytes()[..self.used],
            None => &mut [],
        }
    }
}

/// Overwrites memory with zeros: on several threads where there is much of it, for one alone writes some ten GB a second.
fn wipe(bytes: &mut [u8]) {
    const LEAST: usize = 64 << 20;
    const THREADS: usize = 8;
    if bytes.len() < LEAST {
        return bytes.fill(0);
    }
    let piece_bytes = bytes.len().div_ceil(4 * THREADS);
    let pieces: Vec<_> = bytes.chunks_mut(piece_bytes).map(Mutex::new).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
            piece.lock().unwrap_or_else(PoisonError::into_inner).fill(0);
        }
    };
    std::thread::scope(|scope| {
        // Where the system starts no more, those that there are do it.
        (1..THREADS).for_each(|_| _ = std::thread::Builder::new().spawn_scoped(scope, work));
        work();
    });
}

impl Drop for PinnedBlock {
    fn drop(&mut self) {
        wipe(self.bytes());
        if let Some(memory) = self.memory.take() {
            let mut idle = self.pool.idle();
            let kept: usize = idle.iter().map(Pinned::len).sum();
            if idle.len() < KEPT_BLOCKS && kept.saturating_add(memory.len()) <= self.pool.most_bytes {
                idle.push(memory);
            }
        }
    }
}

/// Whether all of `bytes` is page-locked, judged by its ends, as memory is locked by the allocation.
pub fn is_pinned(bytes: &[u8]) -> bool {
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
    [first, last].iter().all(|end| {
        let mut locked = 0;
        // SAFETY: the address is only looked up; `locked` is valid to write to.
        let status = unsafe { ffi::tandem_cuda_host_is_locked(*end, &mut locked) };
        status == ffi::TANDEM_OK && locked == 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages come as zeros from several threads, and parts have nothing in common.
    #[test]
    fn parts_are_apart() {
        let three: Workers = |work| std::thread::scope(|scope| (0..3).for_each(|_| _ = scope.spawn(work)));
        for len in [0, 1, PAGE, 3 * PAGE, 3 * TOUCHED + 5] {
            let own = Fresh::zeros(len, three).unwrap();
            assert!(own.layout.size() >= len && own.memory.addr().is_multiple_of(PAGE));
            let whole = Pinned { memory: own.memory, len, own: Some(own) };
            assert!(whole.as_slice().iter().all(|byte| *byte == 0));
            let end = whole.address().addr() + len;
            let size = 5000;
            let mut parts = whole.parts(size);
            assert_eq!(parts.len(), len / size);
            (1u8..).zip(&mut parts).for_each(|(i, part)| part.bytes().fill(i));
            let is_own = |(i, part): (u8, &PinnedPart)| part.as_slice() == vec![i; size];
            assert!((1u8..).zip(&parts).all(is_own) && parts.iter().all(|p| p.address().addr() + size <= end));
            // The others stay where they are when one is gone.
            if parts.len() > 1 {
                parts.swap_remove(0);
                assert!(parts.iter().all(|part| part.as_slice()[0] == part.as_slice()[size - 1]));
            }
        }
        assert!(Fresh::zeros(usize::MAX / 2, three).is_none() && Fresh::zeros(usize::MAX, three).is_none());
    }

    /// As the slots of uploads are made. Where there is no GPU this is passed over.
    #[test]
    fn pages_are_locked_at_once() {
        let Some(&device) = crate::testing::gpus().first() else { return };
        let three: Workers = |work| std::thread::scope(|scope| (0..3).for_each(|_| _ = scope.spawn(work)));
        for len in [1, PAGE, 3 * TOUCHED + 5] {
            let mut whole = Pinned::at_once(device, len, three).unwrap();
            assert!(is_pinned(whole.as_slice()) && whole.as_slice().iter().all(|byte| *byte == 0));
            whole.bytes().fill(7);
            let parts = whole.parts(1);
            assert!(parts.len() == len && parts.iter().all(|part| is_pinned(part.as_slice())));
        }
    }

    /// Where there is no GPU this is passed over.
    #[test]
    fn pools_keep_so_many_bytes_and_so_many_blocks() {
        let Some(&device) = crate::testing::gpus().first() else { return };
        for (most_bytes, taken, kept) in [(3 * LEAST_BLOCK, 5, 3), (usize::MAX, KEPT_BLOCKS + 2, KEPT_BLOCKS)] {
            let pool = Arc::new(PinnedPool::new(most_bytes));
            let blocks: Vec<_> = (0..taken).map(|_| pool.take(device, LEAST_BLOCK).unwrap()).collect();
            drop(blocks);
            assert_eq!(pool.idle().len(), kept);
        }
    }

    /// The runtime gives small pieces of memory again as they were left. Where there is no GPU this is passed over.
    #[test]
    fn memory_is_zero_when_it_comes_and_when_it_goes() {
        let Some(&device) = crate::testing::gpus().first() else { return };
        device.make_current().unwrap();
        let raw = |len: usize| {
            let mut memory = std::ptr::null_mut();
            // SAFETY: `memory` is valid to write to.
            check("a test", Some(device), unsafe { ffi::tandem_cuda_host_alloc(len, &mut memory) }).unwrap();
            memory
        };
        let (mut come, mut gone) = (0, 0);
        for round in 0..64 {
            let len = 64 << (round % 8);
            let dirty = raw(len);
            // SAFETY: so many bytes have just been allocated there; they are freed once.
            unsafe {
                dirty.write_bytes(0xa5, len);
                assert_eq!(ffi::tandem_cuda_host_free(dirty), ffi::TANDEM_OK);
            }
            let mut pinned = Pinned::new(device, len).unwrap();
            come += usize::from(pinned.address() == dirty);
            assert!(pinned.as_slice().iter().all(|byte| *byte == 0), "{len} bytes");
            pinned.bytes().fill(0x5a);
            let address = pinned.address();
            drop(pinned);
            let next = raw(len);
            if next == address {
                gone += 1;
                // SAFETY: so many bytes were allocated there, and written before: by this test, or by the drop that it is about.
                assert!(unsafe { std::slice::from_raw_parts(next, len) }.iter().all(|byte| *byte == 0), "{len} bytes");
            }
            // SAFETY: allocated above, freed once.
            assert_eq!(unsafe { ffi::tandem_cuda_host_free(next) }, ffi::TANDEM_OK);
        }
        assert!(come > 0 && gone > 0, "the same memory came {come} and {gone} times, or this test shows nothing");
    }
}
