//! Page-locked host memory.

use crate::error::{check, Result};
use crate::{ffi, Device};

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
