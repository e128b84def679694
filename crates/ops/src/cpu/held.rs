//! How much memory a lane's buffers take.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a lane's buffers.
#[derive(Debug, Default)]
pub(super) struct Held {
    now: AtomicU64,
    most: AtomicU64,
}

impl Held {
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
