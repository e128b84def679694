//! Where kernels of a team, and its host, write down faults.

use crate::fault::Record;
use crate::{ffi, machine, Result};
use memmap2::{MmapOptions, MmapRaw};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use tandem_cuda::{Device, Pinned};

/// Records in page-locked memory, one a PE, written by kernels.
pub(super) struct Faults {
    memory: Memory,
    size: usize,
}

enum Memory {
    Own(Pinned),
    /// Other processes map it too.
    Shared(Locked),
}

/// Memory of several processes, whose pages are locked.
struct Locked(MmapRaw);

impl Locked {
    fn new(device: Device, memory: &OwnedFd, bytes: usize) -> Result<Self> {
        let failed = |error: std::io::Error| crate::Error::processes("share records of faults", error.to_string());
        device.make_current()?;
        let map = MmapOptions::new().len(bytes).map_raw(memory.as_raw_fd()).map_err(failed)?;
        // SAFETY: the pages are mapped, and unlocked before they are unmapped (Drop).
        let status = unsafe { tandem_cuda::ffi::tandem_cuda_host_register(map.as_mut_ptr(), bytes) };
        match status {
            tandem_cuda::ffi::TANDEM_OK => Ok(Locked(map)),
            code => Err(tandem_cuda::Error::new("lock pages", Some(device), code).into()),
        }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // SAFETY: `new` has locked them, and no kernel of the team is left that writes there.
        let _ = unsafe { tandem_cuda::ffi::tandem_cuda_host_unregister(self.0.as_mut_ptr()) };
    }
}

impl Faults {
    /// Of a team of so many PEs.
    pub(super) fn new(device: Device, size: usize) -> Result<Self> {
        let memory = Pinned::new(device, size * size_of::<ffi::tandem_fault>())?;
        Ok(Faults { memory: Memory::Own(memory), size })
    }

    /// Bytes of the memory of a team of several processes: whole pages.
    pub(super) fn bytes(size: usize) -> usize {
        (size * size_of::<ffi::tandem_fault>()).next_multiple_of(4096)
    }

    /// In memory of [`Faults::bytes`] zeros that all processes of the team map, and whose size stays.
    pub(super) fn shared(device: Device, size: usize, memory: &OwnedFd) -> Result<Self> {
        Ok(Faults { memory: Memory::Shared(Locked::new(device, memory, Self::bytes(size))?), size })
    }

    fn at(&self) -> usize {
        match &self.memory {
            Memory::Own(memory) => memory.address() as usize,
            Memory::Shared(memory) => memory.0.as_mut_ptr() as usize,
        }
    }

    /// The words of 32 bits of a record.
    fn words(&self, pe: usize) -> [&AtomicU32; WORDS] {
        std::array::from_fn(|i| {
            debug_assert!(pe < self.size);
            let at = self.at() + pe * size_of::<ffi::tandem_fault>() + i * size_of::<u32>();
            // SAFETY: the record lies in this value's memory, aligned to 8 as its size is a multiple of that, and lives
            // as long as `self`. The host accesses it through these atomics alone; the device writes whole words.
            unsafe { AtomicU32::from_ptr(at as *mut u32) }
        })
    }
}

const WORDS: usize = size_of::<ffi::tandem_fault>() / size_of::<u32>();
// The order of the words below.
const _: () = {
    assert!(std::mem::offset_of!(ffi::tandem_fault, what) == 0 && std::mem::offset_of!(ffi::tandem_fault, waiter) == 4);
    assert!(std::mem::offset_of!(ffi::tandem_fault, peer) == 8 && std::mem::offset_of!(ffi::tandem_fault, place) == 16);
    assert!(
        std::mem::offset_of!(ffi::tandem_fault, seen) == 24 && std::mem::offset_of!(ffi::tandem_fault, wanted) == 32
    );
};

impl machine::Faults for Faults {
    fn get(&self, pe: usize) -> Option<Record> {
        let words = self.words(pe);
        let what = words[0].load(Ordering::Acquire);
        if what == ffi::TANDEM_FAULT_NONE as u32 {
            return None;
        }
        let one = |i: usize| words[i].load(Ordering::Relaxed);
        let two = |i: usize| u64::from(one(i)) | u64::from(one(i + 1)) << 32;
        Some(Record { what, waiter: one(1), peer: one(2), place: two(4), seen: two(6), wanted: two(8) })
    }

    fn put(&self, pe: usize, record: Record) {
        if self.get(pe).is_some() {
            return;
        }
        let words = self.words(pe);
        words[1].store(record.waiter, Ordering::Relaxed);
        words[2].store(record.peer, Ordering::Relaxed);
        for (i, value) in [(4, record.place), (6, record.seen), (8, record.wanted)] {
            words[i].store(value as u32, Ordering::Relaxed);
            words[i + 1].store((value >> 32) as u32, Ordering::Relaxed);
        }
        words[0].store(record.what, Ordering::Release);
    }

    fn address(&self, pe: usize) -> usize {
        self.at() + pe * size_of::<ffi::tandem_fault>()
    }
}
