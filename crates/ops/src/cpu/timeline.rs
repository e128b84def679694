//! Spans of work, measured by the host's clock.

use crate::timeline::{Moved, Recorder};
use crate::{Lane, Result, Span, SpanId};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The spans of one request.
pub(super) struct Recorded {
    /// When the backend was made.
    epoch: Instant,
    spans: Mutex<Spans>,
}

#[derive(Default)]
struct Spans {
    next: u64,
    open: HashMap<u64, (Lane, usize, &'static str, Instant)>,
    done: Vec<Span>,
}

impl Recorded {
    pub(super) fn new(epoch: Instant) -> Self {
        Recorded { epoch, spans: Mutex::default() }
    }

    fn spans(&self) -> MutexGuard<'_, Spans> {
        // A panic elsewhere while spans were noted leaves them usable.
        self.spans.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recorder for Recorded {
    fn begin(&self, lane: Lane, queue: usize, name: &'static str) -> SpanId {
        let mut spans = self.spans();
        let id = spans.next;
        spans.next += 1;
        spans.open.insert(id, (lane, queue, name, Instant::now()));
        SpanId(id)
    }

    fn end(&self, span: SpanId, moved: Moved) {
        let now = Instant::now();
        let mut spans = self.spans();
        if let Some((lane, queue, name, start)) = spans.open.remove(&span.0) {
            let us = |d: Duration| d.as_secs_f64() * 1e6;
            let (start_us, duration_us) = (us(start.duration_since(self.epoch)), us(now.duration_since(start)));
            spans.done.push(Span { lane, queue, name, start_us, duration_us, moved });
        }
    }

    fn take(&self) -> Result<Vec<Span>> {
        Ok(std::mem::take(&mut self.spans().done))
    }
}
