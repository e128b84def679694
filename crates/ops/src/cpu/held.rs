//! How much memory a lane's buffers take.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// Bytes of a lane's buffers.
#[derive(Debug, Default)]
pub(super) struct Held {
    now: AtomicU64,
    most: AtomicU64,
}

/// Bytes of what is no buffer, for as long as it is there.
#[derive(Debug)]
pub(super) struct Holding {
    held: Arc<Held>,
    bytes: u64,
}

impl Holding {
    pub(super) fn of(held: &Arc<Held>, bytes: u64) -> Self {
        held.add(bytes);
        Holding { held: held.clone(), bytes }
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.held.remove(self.bytes);
    }
}

impl Held {
    pub(super) fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    pub(super) fn add(&self, bytes: u64) {
        let now = self.now.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.most.fetch_max(now, Ordering::Relaxed);
    }

    pub(super) fn remove(&self, bytes: u64) {
        self.now.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// The most that there was since the last call; what there is now counts for the next one.
    pub(super) fn take_most(&self) -> u64 {
        self.most.swap(self.now.load(Ordering::Relaxed), Ordering::Relaxed)
    }
}
