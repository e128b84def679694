//! How many bytes were copied between the host and devices.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static TO_DEVICE: AtomicU64 = AtomicU64::new(0);
static TO_HOST: AtomicU64 = AtomicU64::new(0);

/// Bytes that uploads and downloads of this process have queued so far, of all devices together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traffic {
    /// From the host.
    pub to_device: u64,
    /// To the host.
    pub to_host: u64,
}

impl Traffic {
    /// What came after `before`.
    #[must_use]
    pub fn since(self, before: Traffic) -> Traffic {
        let (to_device, to_host) = (self.to_device - before.to_device, self.to_host - before.to_host);
        Traffic { to_device, to_host }
    }
}

/// So far.
pub fn traffic() -> Traffic {
    Traffic { to_device: TO_DEVICE.load(Relaxed), to_host: TO_HOST.load(Relaxed) }
}

pub(crate) fn to_device(bytes: usize) {
    TO_DEVICE.fetch_add(bytes as u64, Relaxed);
}

pub(crate) fn to_host(bytes: usize) {
    TO_HOST.fetch_add(bytes as u64, Relaxed);
}
