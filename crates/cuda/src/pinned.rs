//! Page-locked host memory.

use crate::error::{check, Error, Result};
use crate::{ffi, Device};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Page-locked host memory, which devices copy from and to at full rate, overwritten with zeros before it is freed.
#[derive(Debug)]
pub struct Pinned {
    memory: *mut u8,
    len: usize,
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
        Ok(Pinned { memory, len })
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
        self.bytes().fill(0);
        // SAFETY: the memory is this value's own and not used after this.
        let _ = unsafe { ffi::tandem_cuda_host_free(self.memory) };
    }
}

/// Page-locked blocks that are kept for the next use: the system takes a millisecond for every two or three MiB that it locks.
#[derive(Debug)]
pub struct PinnedPool {
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
/// No more blocks are kept.
const KEPT_BLOCKS: usize = 16;

impl PinnedPool {
    /// A pool that keeps up to `most_bytes` bytes of unused blocks.
    pub fn new(most_bytes: usize) -> Self {
        PinnedPool { most_bytes, idle: Mutex::default() }
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
            block.memory = Some(Pinned::new(device, size)?);
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
