//! Copies of a lane's memory to the host.

use super::LaneCtx;
use std::sync::Arc;
use std::time::Duration;
use tandem_cuda::ffi::tandem_stream;
use tandem_cuda::{DeviceBuffer, Event};
use tandem_ops::timeline::{count, Ends};
use tandem_ops::{HostBuf, Pending, Result, Wire};

impl LaneCtx {
    /// Starts the copy of a buffer to the host.
    pub(crate) fn download<T: Wire>(
        self: &Arc<Self>,
        op: &'static str,
        from: &DeviceBuffer<T>,
    ) -> Result<Pending<Vec<T>>> {
        count(self.backend, Ends::Down(self.lane), from.len() * size_of::<T>());
        let download = self.downloads.start(from).map_err(|e| self.error(op, e))?;
        Ok(self.pending(op, || download.wait()))
    }

    /// As [`LaneCtx::download`], to memory of the caller's, of as many elements.
    pub(crate) fn download_to<T: Wire>(
        self: &Arc<Self>,
        op: &'static str,
        from: &DeviceBuffer<T>,
        mut to: HostBuf<T>,
    ) -> Result<Pending<HostBuf<T>>> {
        count(self.backend, Ends::Down(self.lane), from.len() * size_of::<T>());
        // SAFETY: the memory has as many elements, does not move with the value, and is dropped by `Filling`, which waits.
        let done = unsafe { from.copy_to_host(to.as_mut_ptr().cast()) };
        if done.is_err() {
            drop(from.stream().synchronize());
        }
        let filling = Filling { until: Until(done.map_err(|e| self.error(op, e))?), to };
        let lane = self.clone();
        Ok(Pending::new(move || {
            lane.staging.wipe();
            filling.wait().map_err(|e| lane.error(op, e))
        }))
    }

    /// `len` elements that what `launch` launches on the lane's stream writes to the host, and then any number but zero to the word: it gets
    /// both addresses, and gives the launcher's status.
    ///
    /// # Safety
    /// As for [`tandem_cuda::Downloads::told_by`].
    pub(crate) unsafe fn told_by<T: Wire>(
        self: &Arc<Self>,
        op: &'static str,
        len: usize,
        launch: impl FnOnce(*mut T, *mut u32, tandem_stream) -> i32,
    ) -> Result<Pending<Vec<T>>> {
        count(self.backend, Ends::Down(self.lane), len * size_of::<T>());
        let enqueue =
            |memory: *mut u8, word: *mut u32| self.stream.call(op, |stream| launch(memory.cast(), word, stream));
        // SAFETY: the caller's promise; it is launched on this stream.
        let told = unsafe { self.downloads.told_by(&self.stream, len, enqueue) }.map_err(|e| self.error(op, e))?;
        Ok(self.pending(op, || told.wait()))
    }

    fn pending<T: Wire>(
        self: &Arc<Self>,
        op: &'static str,
        wait: impl FnOnce() -> tandem_cuda::Result<Vec<T>> + Send + 'static,
    ) -> Pending<Vec<T>> {
        let lane = self.clone();
        Pending::new(move || {
            // While the device works, the host has time to overwrite what it has uploaded.
            lane.staging.wipe();
            wait().map_err(|e| lane.error(op, e))
        })
    }
}

/// Dropping it waits for what happens.
struct Until(Event);

impl Drop for Until {
    fn drop(&mut self) {
        // A failed device copies no more.
        let _ = self.0.synchronize();
    }
}

/// Memory that is being written, until it is. Fields are dropped in this order.
struct Filling<T: Wire> {
    until: Until,
    to: HostBuf<T>,
}

/// How long a thread that waits for a copy does not go to sleep.
const AWAKE: Duration = Duration::from_millis(50);

impl<T: Wire> Filling<T> {
    fn wait(self) -> tandem_cuda::Result<HostBuf<T>> {
        self.until.0.synchronize_awake(AWAKE)?;
        Ok(self.to)
    }
}
