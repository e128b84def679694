//! Spans of work, measured on the devices.

use crate::lane::LaneCtx;
use std::collections::HashMap;
use std::sync::Arc;
use tandem_cuda::{Event, Stream};
use tandem_ops::{Lane, Result, Span, SpanId};

/// Spans that are open and spans that were ended.
pub(crate) struct Spans {
    next: u64,
    open: HashMap<SpanId, Begun>,
    ended: Vec<(Begun, Event)>,
    /// For each lane an event and the microseconds from the backend's creation to it. The device tells the time
    /// between two events in 32 bits, so the event is replaced by later ones to keep the difference small.
    base: Vec<(Event, f64)>,
    /// The first failure to mark a span, which `begin` and `end` cannot return.
    failed: Option<tandem_ops::Error>,
}

/// A span that has begun.
struct Begun {
    lane: Lane,
    /// Whether it runs beside the lane's own order.
    aside: bool,
    name: &'static str,
    start: Event,
}

const OP: &str = "span";

fn stream(lane: &LaneCtx, aside: bool) -> &Stream {
    if aside {
        lane.aside()
    } else {
        lane.stream()
    }
}

impl Spans {
    pub(crate) fn new(lanes: &[Arc<LaneCtx>]) -> tandem_cuda::Result<Self> {
        let base = lanes.iter().map(|l| Ok((l.stream().record_timed()?, 0.0))).collect::<tandem_cuda::Result<_>>()?;
        Ok(Spans { next: 0, open: HashMap::new(), ended: Vec::new(), base, failed: None })
    }

    pub(crate) fn begin(&mut self, lane: &LaneCtx, aside: bool, name: &'static str) -> SpanId {
        let id = SpanId(self.next);
        self.next += 1;
        match stream(lane, aside).record_timed() {
            Ok(start) => {
                self.open.insert(id, Begun { lane: lane.lane, aside, name, start });
            }
            Err(error) => self.fail(lane.error(OP, error)),
        }
        id
    }

    pub(crate) fn end(&mut self, lanes: &[Arc<LaneCtx>], span: SpanId) {
        let Some(begun) = self.open.remove(&span) else { return };
        let lane = &lanes[begun.lane.0];
        match stream(lane, begun.aside).record_timed() {
            Ok(end) => self.ended.push((begun, end)),
            Err(error) => self.fail(lane.error(OP, error)),
        }
    }

    fn fail(&mut self, error: tandem_ops::Error) {
        self.failed.get_or_insert(error);
    }

    pub(crate) fn take(&mut self, lanes: &[Arc<LaneCtx>]) -> Result<Vec<Span>> {
        let ended = std::mem::take(&mut self.ended);
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut spans = Vec::with_capacity(ended.len());
        for (Begun { lane, aside, name, start }, end) in ended {
            let ctx = &lanes[lane.0];
            let (base, base_us) = &self.base[lane.0];
            let measure = || {
                end.synchronize()?;
                Ok((f64::from(base.elapsed_ms(&start)?) * 1e3, f64::from(start.elapsed_ms(&end)?) * 1e3))
            };
            let (from_base, duration_us) = measure().map_err(|e| ctx.error(OP, e))?;
            let start_us = base_us + from_base;
            spans.push(Span { lane, queue: usize::from(aside), name, start_us, duration_us });
            if from_base > 1e6 {
                self.base[lane.0] = (start, start_us);
            }
        }
        Ok(spans)
    }
}
