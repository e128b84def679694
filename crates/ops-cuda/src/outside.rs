//! Values outside memory on their way to a GPU.

use std::sync::{Mutex, PoisonError};
use tandem_cuda::Pieces;
use tandem_ops::{Error, Stored, Wire};

/// The values, and why the first of them that did not come did not.
pub(crate) struct Outside<'a, T: Wire> {
    from: Stored<'a, T>,
    failed: Mutex<Option<Error>>,
}

impl<'a, T: Wire> Outside<'a, T> {
    pub(crate) fn new(from: Stored<'a, T>) -> Self {
        Outside { from, failed: Mutex::default() }
    }

    /// The first failure.
    pub(crate) fn failed(self) -> Option<Error> {
        self.failed.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Wire> Pieces for Outside<'_, T> {
    fn len(&self) -> usize {
        self.from.bytes()
    }

    fn lead(&self) -> usize {
        self.from.blocks().map_or(0, |(lead, _)| lead)
    }

    fn fill(&self, at: usize, into: &mut [u8]) -> bool {
        let Err(error) = self.from.read(at, into) else { return true };
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        false
    }
}
