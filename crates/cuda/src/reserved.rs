//! Ranges of addresses behind which memory of any device can be put, where every device of a group reaches it.

use crate::error::{check, Error, Result};
use crate::{ffi, Device};
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

const MAP: &str = "map memory";

/// Addresses that belong to this value, at first without memory.
#[derive(Debug)]
pub struct Reserved {
    address: u64,
    bytes: u64,
    /// What has memory, as offsets.
    mapped: Mutex<Vec<Range<u64>>>,
}

/// Devices that one mapping can be open to.
pub const MOST_USERS: usize = 32;

impl Device {
    /// What places and sizes in a [`Reserved`] are multiples of, for memory of this device.
    ///
    /// # Errors
    /// The device or its driver has no virtual memory management; it failed.
    pub fn map_granularity(self) -> Result<u64> {
        let mut bytes = 0;
        // SAFETY: `bytes` is valid to write to.
        check("virtual memory", Some(self), unsafe { ffi::tandem_cuda_granularity(self.raw(), &mut bytes) })?;
        Ok(bytes)
    }
}

impl Reserved {
    /// `bytes` addresses, a multiple of the granularity of every device that will have memory there.
    ///
    /// # Errors
    /// The address space has no such range; the driver has no virtual memory management.
    pub fn new(bytes: u64) -> Result<Self> {
        let mut address = 0;
        // SAFETY: `address` is valid to write to.
        check("reserve addresses", None, unsafe { ffi::tandem_cuda_reserve(bytes, &mut address) })?;
        Ok(Reserved { address, bytes, mapped: Mutex::default() })
    }

    /// The first of them.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Puts memory of `device`, with undefined contents, behind the addresses at `range`, for kernels and copies of
    /// `users`, which must reach it. Nothing is left behind where this fails.
    ///
    /// # Errors
    /// The range is not free or not within the addresses; `device` has too little memory; a user does not reach it.
    pub fn map(&self, range: Range<u64>, device: Device, users: &[Device]) -> Result<()> {
        self.put(range, device, users, |at, bytes, users, count| {
            // SAFETY: the addresses are this value's own and have no memory; `users` has as many numbers as it says.
            unsafe { ffi::tandem_cuda_map(at, bytes, device.raw(), users, count, std::ptr::null_mut()) }
        })
    }

    /// As [`Reserved::map`], with memory that other processes map too, by the file descriptor that is returned.
    ///
    /// # Errors
    /// As [`Reserved::map`]; the driver does not share memory so.
    pub fn map_to_share(&self, range: Range<u64>, device: Device, users: &[Device]) -> Result<OwnedFd> {
        let mut shared = -1;
        self.put(range, device, users, |at, bytes, users, count| {
            // SAFETY: as in `map`; `shared` is valid to write to.
            unsafe { ffi::tandem_cuda_map(at, bytes, device.raw(), users, count, &mut shared) }
        })?;
        // SAFETY: a new file descriptor, which nobody else has.
        Ok(unsafe { OwnedFd::from_raw_fd(shared) })
    }

    /// As [`Reserved::map`], with memory that [`Reserved::map_to_share`] has made in another process, as much of it. The first user is
    /// the device that is named in errors.
    ///
    /// # Errors
    /// As [`Reserved::map`]; no users; `memory` is no such memory, or less.
    pub fn map_shared(&self, range: Range<u64>, memory: &OwnedFd, users: &[Device]) -> Result<()> {
        let Some(&first) = users.first() else { return Err(Error::new(MAP, None, ffi::TANDEM_INVALID)) };
        self.put(range, first, users, |at, bytes, users, count| {
            // SAFETY: as in `map`; the descriptor is open.
            unsafe { ffi::tandem_cuda_map_shared(at, bytes, memory.as_raw_fd(), users, count) }
        })
    }

    /// Calls `map` with the addresses of a range that has no memory yet, and the numbers of the users.
    fn put(
        &self,
        range: Range<u64>,
        device: Device,
        users: &[Device],
        map: impl FnOnce(u64, u64, *const i32, i32) -> i32,
    ) -> Result<()> {
        let mut mapped = self.mapped.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = mapped.iter().any(|other| range.start < other.end && other.start < range.end);
        if range.start >= range.end || range.end > self.bytes || taken || users.len() > MOST_USERS {
            return Err(Error::new(MAP, Some(device), ffi::TANDEM_INVALID));
        }
        let users: Vec<i32> = users.iter().map(|user| user.raw()).collect();
        let (at, bytes) = (self.address + range.start, range.end - range.start);
        check(MAP, Some(device), map(at, bytes, users.as_ptr(), users.len() as i32))?;
        mapped.push(range);
        Ok(())
    }

    /// Takes away the memory that one call of [`Reserved::map`] or its like has put at `range`; nothing may use it any more.
    ///
    /// # Errors
    /// There was no such call; the driver failed.
    pub fn unmap(&self, range: Range<u64>) -> Result<()> {
        let mut mapped = self.mapped.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(index) = mapped.iter().position(|other| *other == range) else {
            return Err(Error::new("unmap memory", None, ffi::TANDEM_INVALID));
        };
        mapped.swap_remove(index);
        self.unmap_range(&range)
    }

    fn unmap_range(&self, range: &Range<u64>) -> Result<()> {
        // SAFETY: the range was mapped by one call and is forgotten now. That nothing uses it is the caller's promise;
        // a device that breaks it has a fault, the host has no reference to it.
        check("unmap memory", None, unsafe {
            ffi::tandem_cuda_unmap(self.address + range.start, range.end - range.start)
        })
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let mapped = std::mem::take(&mut *self.mapped.lock().unwrap_or_else(PoisonError::into_inner));
        // A failed device frees its memory itself.
        for range in &mapped {
            let _ = self.unmap_range(range);
        }
        // SAFETY: the addresses are this value's own, without memory now, and not used after this.
        let _ = unsafe { ffi::tandem_cuda_unreserve(self.address, self.bytes) };
    }
}
