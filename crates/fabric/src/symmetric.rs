//! Memory that every PE has.

use crate::world::Allocation;
use crate::{Error, Result};
use bytemuck::Pod;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

/// `len` elements on every PE of a world, or a part of them. A handle: it can be cloned and cut, and the memory is freed
/// when the last handle is gone and every queue has got to where it is then. Operations say whose elements they mean.
pub struct Symmetric<T: Pod> {
    memory: Arc<Allocation>,
    /// The first element, counted from the start of the allocation in bytes.
    start: u64,
    len: usize,
    of: PhantomData<fn() -> T>,
}

impl<T: Pod> Clone for Symmetric<T> {
    fn clone(&self) -> Self {
        Symmetric { memory: self.memory.clone(), start: self.start, len: self.len, of: PhantomData }
    }
}

impl<T: Pod> std::fmt::Debug for Symmetric<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} elements of {} bytes from byte {} of {:?}", self.len, size_of::<T>(), self.start, self.memory)
    }
}

impl<T: Pod> Symmetric<T> {
    /// All of `memory`, which has room for `len` elements.
    pub(crate) fn new(memory: Arc<Allocation>, len: usize) -> Self {
        Symmetric { memory, start: 0, len, of: PhantomData }
    }

    /// Number of elements on each PE.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes on each PE.
    pub fn bytes(&self) -> u64 {
        self.len as u64 * size_of::<T>() as u64
    }

    /// The elements of `range`.
    ///
    /// # Errors
    /// The range is past the end.
    pub fn slice(&self, range: Range<usize>) -> Result<Self> {
        if range.start > range.end || range.end > self.len {
            return Err(Error::invalid(
                "slice of symmetric memory",
                format!("elements {} to {} of {}", range.start, range.end, self.len),
            ));
        }
        let start = self.start + range.start as u64 * size_of::<T>() as u64;
        Ok(Symmetric { memory: self.memory.clone(), start, len: range.len(), of: PhantomData })
    }

    /// The element `index`.
    ///
    /// # Errors
    /// It is past the end.
    pub fn at(&self, index: usize) -> Result<Self> {
        self.slice(index..index.saturating_add(1))
    }

    /// These bytes as elements of another type.
    ///
    /// # Errors
    /// They are not a whole number of those, or do not begin at a multiple of their alignment.
    pub fn cast<U: Pod>(&self) -> Result<Symmetric<U>> {
        let size = size_of::<U>() as u64;
        if size == 0 || !self.bytes().is_multiple_of(size) || !self.start.is_multiple_of(align_of::<U>() as u64) {
            return Err(Error::invalid(
                "cast of symmetric memory",
                format!("{} bytes from byte {} are no elements of {size} bytes", self.bytes(), self.start),
            ));
        }
        let len = usize::try_from(self.bytes() / size).unwrap_or(usize::MAX);
        Ok(Symmetric { memory: self.memory.clone(), start: self.start, len, of: PhantomData })
    }

    /// The address of the first element on PE `world_pe`, the same for every PE of the process. `None` for a PE that the world
    /// does not have, or that has no part of a registered region.
    ///
    /// Memory is of no team, so this is the number in the world, which [`Team::members`](crate::Team::members) gives for the PE
    /// of a team that was split off. [`Queue::address`](crate::Queue::address) needs no number: it is that of the queue's PE.
    pub fn address(&self, world_pe: usize) -> Option<u64> {
        if world_pe >= self.memory.world.pes() {
            return None;
        }
        Some(self.memory.address(world_pe)? + self.start)
    }

    /// Where in this process the elements of PE `world_pe` are, all in one piece: of a pretend PE, whose [`Symmetric::address`] is no place of
    /// this process. Those of two PEs are as far apart as their addresses. `None` for a GPU, for registered memory, and where the system had
    /// no such range of addresses.
    ///
    /// The memory stays as long as a handle does. Queues access it as atomic words: order other accesses by what the team offers.
    pub fn host_address(&self, world_pe: usize) -> Option<u64> {
        let at = self.address(world_pe)?;
        self.memory.world.machine.host_address(at, self.bytes())
    }

    /// Where in every PE's window the first element is; `None` for registered memory.
    pub fn offset(&self) -> Option<u64> {
        Some(self.memory.offset()? + self.start)
    }

    pub(crate) fn memory(&self) -> &Arc<Allocation> {
        &self.memory
    }

    /// The handle's memory, if this is the last handle.
    pub(crate) fn into_memory(self) -> Arc<Allocation> {
        self.memory
    }
}
