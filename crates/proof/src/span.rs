//! What the host did when.

use std::time::Instant;

/// What the host did when, for a trace.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HostSpan {
    /// What it was.
    pub name: &'static str,
    /// When it began.
    pub begun: Instant,
    /// How long it took.
    pub seconds: f64,
}

impl HostSpan {
    /// Runs `work` and notes when.
    pub fn of<T>(spans: &mut Vec<HostSpan>, name: &'static str, work: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let result = work();
        spans.push(HostSpan { name, begun, seconds: begun.elapsed().as_secs_f64() });
        result
    }
}
