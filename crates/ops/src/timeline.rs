//! What ran when, for `--trace` and for the table of stages.

use crate::{Lane, Result};
use std::sync::Arc;

/// A handle of a span that was begun and not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(pub u64);

/// The queue of uploads that run beside a lane's own order.
pub const UPLOADS: usize = 2;
/// The queue of copies to other lanes that run beside a lane's own order.
pub const DEALS: usize = 3;

/// One finished span of work on a lane.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Lane it ran on.
    pub lane: Lane,
    /// 0 for what ran in the lane's order, which is one span after the other; others ran beside it.
    pub queue: usize,
    /// What it was. A constant, so that a trace can hold nothing of a witness.
    pub name: &'static str,
    /// Microseconds from the backend's creation to the start of the work on the device.
    pub start_us: f64,
    /// Microseconds it took on the device.
    pub duration_us: f64,
}

/// Notes spans of one request as a backend measures time. A backend implements this; who asks for work has a [`Timeline`].
pub trait Recorder: Send + Sync {
    /// Marks the start of a span in a queue of a lane.
    fn begin(&self, lane: Lane, queue: usize, name: &'static str) -> SpanId;

    /// Marks its end. A span that has ended, or never began, is left as it is.
    fn end(&self, span: SpanId);

    /// Blocks until all spans that were ended are over, and takes them in the order in which they ended.
    ///
    /// # Errors
    /// The device failed meanwhile.
    fn take(&self) -> Result<Vec<Span>>;
}

/// The spans of one request, such as a proof. Each request takes one of its own from [`crate::Backend::timeline`], so that
/// requests that share a backend do not see each other's. Clones are the same timeline.
///
/// ```
/// use tandem_ops::{cpu::Cpu, Backend, Lane};
///
/// # fn main() -> tandem_ops::Result<()> {
/// let backend = Cpu::new(1);
/// let (one, other) = (backend.timeline(), backend.timeline());
/// let span = one.begin(Lane(0), "work");
/// one.end(span);
/// assert!(other.take()?.is_empty());
/// assert_eq!(one.take()?[0].name, "work");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Timeline(Option<Arc<dyn Recorder>>);

impl Timeline {
    /// One that notes spans by `recorder`.
    pub fn new(recorder: impl Recorder + 'static) -> Self {
        Timeline(Some(Arc::new(recorder)))
    }

    /// One that notes nothing, for work that nobody measures.
    pub fn none() -> Self {
        Timeline(None)
    }

    /// Marks the start of a span of work in the order of `lane`, measured on the device.
    pub fn begin(&self, lane: Lane, name: &'static str) -> SpanId {
        self.begin_in(lane, 0, name)
    }

    /// Marks the start of a span in a queue of `lane`: 0 is the lane's own order, [`UPLOADS`] those of
    /// [`crate::Backend::upload_beside`], [`DEALS`] those of [`crate::Backend::deal`]; others run beside it too.
    pub fn begin_in(&self, lane: Lane, queue: usize, name: &'static str) -> SpanId {
        self.0.as_ref().map_or(SpanId(u64::MAX), |recorder| recorder.begin(lane, queue, name))
    }

    /// Marks its end. Only the first call for a span counts.
    pub fn end(&self, span: SpanId) {
        if let Some(recorder) = &self.0 {
            recorder.end(span);
        }
    }

    /// Blocks until all spans that were ended are over, and takes them.
    ///
    /// # Errors
    /// The device failed meanwhile.
    pub fn take(&self) -> Result<Vec<Span>> {
        self.0.as_ref().map_or(Ok(Vec::new()), |recorder| recorder.take())
    }
}

/// Whether it notes spans, not which.
impl std::fmt::Debug for Timeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Timeline(..)" } else { "Timeline(none)" })
    }
}
