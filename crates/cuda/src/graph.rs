//! Work of a stream that is written down once and done often.

use crate::error::{check, Result};
use crate::{ffi, Device, Stream};
use std::sync::{Mutex, PoisonError};

/// What a stream was told between [`Stream::begin_capture`] and [`Stream::end_capture`]. A graph that is dropped while
/// it runs is freed when it is done.
#[derive(Debug)]
pub struct Graph {
    raw: ffi::tandem_graph,
    device: Device,
    /// Held while the graph is launched: the runtime takes one call at a time for a graph.
    turn: Mutex<()>,
}

// SAFETY: the runtime's functions on an executable graph may be called from any thread, one at a time, which `turn` and
// the exclusive access of a drop see to.
unsafe impl Send for Graph {}
// SAFETY: as above.
unsafe impl Sync for Graph {}

impl Stream {
    /// From here on work is written down and not done, by whichever thread it comes.
    ///
    /// # Errors
    /// That is so already; the device failed.
    pub fn begin_capture(&self) -> Result<()> {
        // SAFETY: the stream is alive.
        self.call("begin a graph", |raw| unsafe { ffi::tandem_cuda_capture_begin(raw) })
    }

    /// Ends that, and makes the graph.
    ///
    /// # Errors
    /// Something that was told meanwhile cannot be part of a graph; the device failed. The stream works again.
    pub fn end_capture(&self) -> Result<Graph> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the stream is alive, `raw` valid to write to.
        self.call("make a graph", |stream| unsafe { ffi::tandem_cuda_capture_end(stream, &mut raw) })?;
        Ok(Graph { raw, device: self.device(), turn: Mutex::new(()) })
    }
}

impl Graph {
    /// Does on `stream`, of the same device, what was written down.
    ///
    /// # Errors
    /// The device failed.
    pub fn launch(&self, stream: &Stream) -> Result<()> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.device.make_current()?;
        // SAFETY: graph and stream are alive.
        check("launch a graph", Some(self.device), unsafe { ffi::tandem_cuda_graph_launch(self.raw, stream.raw()) })
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: the handle is this value's own and not used after this.
        let _ = unsafe { ffi::tandem_cuda_graph_destroy(self.raw) };
    }
}
