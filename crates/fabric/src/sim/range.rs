//! A range of addresses of this process, which has memory where it is written to.

use std::sync::atomic::AtomicU64;

/// Words of zeros. Only those that were written to take memory.
pub(crate) struct AddressRange(memmap2::MmapMut);

impl AddressRange {
    /// `bytes` bytes, a multiple of 8; `None` where the system has no such range.
    pub(crate) fn new(bytes: u64) -> Option<Self> {
        let bytes = usize::try_from(bytes).ok()?;
        memmap2::MmapOptions::new().len(bytes).no_reserve_swap().map_anon().ok().map(AddressRange)
    }
}

impl AsRef<[AtomicU64]> for AddressRange {
    fn as_ref(&self) -> &[AtomicU64] {
        let at = self.0.as_ptr().cast::<AtomicU64>();
        // SAFETY: the pages are this value's own, aligned and all initialised; it lends them as atomic words alone.
        unsafe { std::slice::from_raw_parts(at, self.0.len() / size_of::<AtomicU64>()) }
    }
}
