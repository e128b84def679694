//! A range of addresses of this process, which has memory where it is written to.

use super::SHARED_GRANULE;
use crate::process;
use rustix::mm::{mmap, mmap_anonymous, MapFlags, ProtFlags};
use std::io::{Error, ErrorKind, Result};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicU64;

/// Words of zeros. Only those that were written to take memory.
pub(crate) struct AddressRange(memmap2::MmapMut);

impl AddressRange {
    /// `bytes` bytes, a multiple of 8; `None` where the system has no such range.
    pub(crate) fn new(bytes: u64) -> Option<Self> {
        let bytes = usize::try_from(bytes).ok()?;
        memmap2::MmapOptions::new().len(bytes).no_reserve_swap().map_anon().ok().map(AddressRange)
    }

    /// Puts `memory`, which [`process::make`] has made here or in another process, behind these bytes of the range, multiples of
    /// [`SHARED_GRANULE`].
    pub(super) fn share(&self, bytes: Range<u64>, memory: &OwnedFd) -> Result<()> {
        let (at, len) = self.place(&bytes)?;
        process::check(memory, bytes.end - bytes.start)?;
        // SAFETY: the bytes lie in this value's mapping, are lent as atomic words alone, and have memory before and after: what is there is
        // replaced in one step, and the seals that were looked at keep the new memory's size.
        unsafe { mmap(at, len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::FIXED, memory, 0) }?;
        Ok(())
    }

    /// Puts zeros of this process alone behind these bytes of the range.
    pub(super) fn clear(&self, bytes: Range<u64>) -> Result<()> {
        let (at, len) = self.place(&bytes)?;
        let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
        // SAFETY: as in `share`.
        unsafe { mmap_anonymous(at, len, ProtFlags::READ | ProtFlags::WRITE, flags) }?;
        Ok(())
    }

    /// Where these bytes are, if the range has them.
    fn place(&self, bytes: &Range<u64>) -> Result<(*mut std::ffi::c_void, usize)> {
        let is_inside = bytes.start < bytes.end && bytes.end <= self.0.len() as u64;
        if !is_inside || ![bytes.start, bytes.end].iter().all(|at| at.is_multiple_of(SHARED_GRANULE)) {
            return Err(Error::new(ErrorKind::InvalidInput, format!("bytes {bytes:?} of a range of {}", self.0.len())));
        }
        Ok((self.0.as_ptr().cast_mut().wrapping_add(bytes.start as usize).cast(), (bytes.end - bytes.start) as usize))
    }
}

impl AsRef<[AtomicU64]> for AddressRange {
    fn as_ref(&self) -> &[AtomicU64] {
        let at = self.0.as_ptr().cast::<AtomicU64>();
        // SAFETY: the pages are this value's own, aligned and all initialised, or memory that other processes have too, whose size is sealed;
        // it lends them as atomic words alone.
        unsafe { std::slice::from_raw_parts(at, self.0.len() / size_of::<AtomicU64>()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn memory_is_shared_where_it_is_put() {
        let (unit, memory) = (SHARED_GRANULE, process::make(4 * SHARED_GRANULE).unwrap());
        let [a, b] = [16, 32].map(|units| AddressRange::new(units * unit).unwrap());
        a.as_ref()[0].store(7, Ordering::Relaxed);
        a.share(4 * unit..8 * unit, &memory).unwrap();
        b.share(28 * unit..32 * unit, &memory).unwrap();
        let word = |units: u64| (units * unit / 8) as usize;
        a.as_ref()[word(5) + 3].store(11, Ordering::Relaxed);
        assert_eq!(b.as_ref()[word(29) + 3].load(Ordering::Relaxed), 11);
        b.as_ref()[word(32) - 1].store(13, Ordering::Relaxed);
        assert_eq!(a.as_ref()[word(8) - 1].load(Ordering::Relaxed), 13);
        a.clear(4 * unit..8 * unit).unwrap();
        assert_eq!(a.as_ref()[word(5) + 3].load(Ordering::Relaxed), 0);
        assert_eq!((a.as_ref()[0].load(Ordering::Relaxed), b.as_ref()[word(29) + 3].load(Ordering::Relaxed)), (7, 11));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let unit = SHARED_GRANULE;
        let (range, memory) = (AddressRange::new(8 * unit).unwrap(), process::make(2 * unit).unwrap());
        let outside = [7 * unit..9 * unit, unit..unit, u64::MAX - unit..u64::MAX];
        let odd = [4096..2 * unit + 4096, unit..2 * unit, unit..4 * unit];
        for bytes in outside.into_iter().chain(odd) {
            assert!(range.share(bytes.clone(), &memory).is_err(), "{bytes:?}");
        }
        assert!(range.clear(8 * unit..9 * unit).is_err());
        range.share(6 * unit..8 * unit, &memory).unwrap();
    }
}
