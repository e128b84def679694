//! Memory of a pretend PE that other processes map too.

use crate::process::check;
use memmap2::{MmapOptions, MmapRaw};
use std::io::{ErrorKind, Result};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::AtomicU64;

/// Words that several processes have in their memory.
pub(super) struct Shared(MmapRaw);

/// The `bytes` bytes of `memory`, a multiple of 8, which [`make`] has made here or in another process.
pub(super) fn open(memory: &OwnedFd, bytes: u64) -> Result<Shared> {
    check(memory, bytes)?;
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
    use crate::process::make;
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
}
