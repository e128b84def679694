//! Memory of a pretend PE that other processes map too.

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{fallocate, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create};
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::AtomicU64;

/// What keeps a process from taking memory away under the others, which would end them by SIGBUS.
const FIXED: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// Words that several processes have in their memory.
pub(super) struct Shared(MmapRaw);

/// `bytes` bytes of zeros, all of which the host has memory for.
pub(super) fn make(bytes: u64) -> Result<OwnedFd> {
    let memory = memfd_create("tandem-pe", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&memory, bytes)?;
    fallocate(&memory, FallocateFlags::empty(), 0, bytes)?;
    fcntl_add_seals(&memory, FIXED)?;
    Ok(memory)
}

/// The `bytes` bytes of `memory`, a multiple of 8, which [`make`] has made here or in another process.
pub(super) fn open(memory: &OwnedFd, bytes: u64) -> Result<Shared> {
    let wrong = |what: String| Error::new(ErrorKind::InvalidData, what);
    let found = fstat(memory)?.st_size;
    if u64::try_from(found).ok() != Some(bytes) {
        return Err(wrong(format!("memory of {found} bytes where {bytes} are expected")));
    }
    // What is no such memory has no seals.
    if !fcntl_get_seals(memory).is_ok_and(|seals| seals.contains(FIXED)) {
        return Err(wrong("memory whose size may change".into()));
    }
    let len = usize::try_from(bytes).map_err(|_| ErrorKind::InvalidInput)?;
    Ok(Shared(MmapOptions::new().len(len).map_raw(memory.as_raw_fd())?))
}

impl AsRef<[AtomicU64]> for Shared {
    fn as_ref(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is aligned to a page, lives as long as `self`, and the seals keep memory behind all of it. Every access to
        // it, by any process, is an atomic one, as to any memory of pretend PEs; every bit pattern is a word.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() / size_of::<AtomicU64>()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn two_mappings_are_one_memory() {
        let memory = make(1 << 16).unwrap();
        let (a, b) = (open(&memory, 1 << 16).unwrap(), open(&memory.try_clone().unwrap(), 1 << 16).unwrap());
        assert!(a.as_ref().iter().all(|word| word.load(Ordering::Relaxed) == 0) && a.as_ref().len() == 1 << 13);
        a.as_ref()[77].store(5, Ordering::Relaxed);
        assert_eq!(b.as_ref()[77].load(Ordering::Relaxed), 5);
        drop((a, memory));
        assert_eq!(b.as_ref()[77].fetch_add(1, Ordering::Relaxed), 5);
    }

    /// A process that gives memory which it could take away again is refused.
    #[test]
    fn memory_that_may_change_is_refused() {
        let problem = |memory: &OwnedFd, bytes| open(memory, bytes).err().unwrap().to_string();
        let memory = make(1 << 16).unwrap();
        assert!(ftruncate(&memory, 0).is_err() && ftruncate(&memory, 1 << 17).is_err());
        assert!(problem(&memory, 1 << 15).contains("65536 bytes where 32768"));
        let loose = memfd_create("loose", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&loose, 1 << 16).unwrap();
        assert!(problem(&loose, 1 << 16).contains("may change"));
        fcntl_add_seals(&loose, SealFlags::GROW | SealFlags::SEAL).unwrap();
        assert!(problem(&loose, 1 << 16).contains("may change"));
        let file: OwnedFd = std::fs::File::open("/proc/self/exe").unwrap().into();
        let len = fstat(&file).unwrap().st_size as u64;
        assert!(problem(&file, len).contains("may change"));
    }
}
