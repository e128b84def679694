//! The memory that one calculation may hold.

use wasmi::errors::{MemoryError, TableError};
use wasmi::ResourceLimiter;
use wasmi_core::LimiterError;

/// Bytes of a table's element, rounded up.
const ELEMENT_BYTES: usize = 16;

/// Bytes that all parts of a calculation hold together: the program's code, its memory and table, the inputs, the witness
/// and what the circuit prints. Small things of a constant size, such as the stacks, are not counted.
#[derive(Debug)]
pub(crate) struct Budget {
    most: usize,
    /// Of everything but the module's memory and table.
    held: usize,
    memory: usize,
    table: usize,
    /// The system refused memory that the budget allows.
    pub(crate) is_system_short: bool,
}

impl Budget {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, held: 0, memory: 0, table: 0, is_system_short: false }
    }

    /// Bytes of the module's linear memory.
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    /// Counts bytes that are about to be allocated; `false` where they are too many.
    #[must_use]
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        let fits = self.fits(self.held.saturating_add(bytes), self.memory, self.table);
        if fits {
            self.held += bytes;
        }
        fits
    }

    /// Takes back the count of bytes that have been freed.
    pub(crate) fn give(&mut self, bytes: usize) {
        self.held -= bytes;
    }

    fn fits(&self, held: usize, memory: usize, table: usize) -> bool {
        held.saturating_add(memory).saturating_add(table) <= self.most
    }
}

/// A refusal traps: circom's code has no other use for one than to end with an exception.
/// A module without proposals has one memory and one table, so their sizes are numbers. A growth that first ran out of fuel
/// is asked for again, so they are set, not added to.
impl ResourceLimiter for Budget {
    fn memory_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> Result<bool, LimiterError> {
        if !self.fits(self.held, desired, self.table) {
            return Err(LimiterError::ResourceLimiterDeniedAllocation);
        }
        self.memory = desired;
        Ok(true)
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> Result<bool, LimiterError> {
        let bytes = desired.saturating_mul(ELEMENT_BYTES);
        if !self.fits(self.held, self.memory, bytes) {
            return Err(LimiterError::ResourceLimiterDeniedAllocation);
        }
        self.table = bytes;
        Ok(true)
    }

    fn memory_grow_failed(&mut self, error: &MemoryError) -> Result<(), LimiterError> {
        if matches!(error, MemoryError::OutOfSystemMemory) {
            self.is_system_short = true;
            return Err(LimiterError::ResourceLimiterDeniedAllocation);
        }
        Ok(())
    }

    fn table_grow_failed(&mut self, error: &TableError) -> Result<(), LimiterError> {
        if matches!(error, TableError::OutOfSystemMemory) {
            self.is_system_short = true;
            return Err(LimiterError::ResourceLimiterDeniedAllocation);
        }
        Ok(())
    }

    fn instances(&self) -> usize {
        1
    }

    fn tables(&self) -> usize {
        1
    }

    fn memories(&self) -> usize {
        1
    }
}
