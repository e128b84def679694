//! What ran when, for `--trace` and for the table of stages.

/// A handle of a span that was begun and not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(pub u64);

/// One finished span of work on a lane.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Lane it ran on.
    pub lane: crate::Lane,
    /// 0 for what ran in the lane's order, which is one span after the other; others ran beside it.
    pub queue: usize,
    /// What it was. A constant, so that a trace can hold nothing of a witness.
    pub name: &'static str,
    /// Microseconds from the backend's creation to the start of the work on the device.
    pub start_us: f64,
    /// Microseconds it took on the device.
    pub duration_us: f64,
}
