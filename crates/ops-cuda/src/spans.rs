//! Spans of work, measured on the devices.

use crate::lane::LaneCtx;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tandem_cuda::{Event, Stream};
use tandem_ops::timeline::{Moved, Recorder, DEALS, UPLOADS};
use tandem_ops::{Lane, Result, Span, SpanId};

/// The queue of what runs beside a lane's own order.
pub(crate) const ASIDE: usize = 1;

/// An event of a lane and the microseconds from the backend's creation to it.
type Base = (Arc<Event>, f64);

/// What the times of all timelines of a backend are measured from: a base for each lane. The device tells the time between two
/// events in 32 bits, so a base is replaced by later ones to keep the difference small.
pub(crate) struct Clock(Mutex<Vec<Base>>);

impl Clock {
    pub(crate) fn new(lanes: &[Arc<LaneCtx>]) -> tandem_cuda::Result<Self> {
        let base = |lane: &Arc<LaneCtx>| Ok((Arc::new(lane.stream().record_timed()?), 0.0));
        Ok(Clock(Mutex::new(lanes.iter().map(base).collect::<tandem_cuda::Result<_>>()?)))
    }

    /// The bases as they are now. The devices have passed them, so that they come before whatever is begun from here on.
    fn bases(&self) -> Vec<Base> {
        self.lock().clone()
    }

    /// Measures from `base` from here on, unless a later one is there.
    fn advance(&self, lane: Lane, base: Base) {
        let current = &mut self.lock()[lane.0];
        if base.1 > current.1 {
            *current = base;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Base>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The spans of one request.
pub(crate) struct Recorded {
    lanes: Vec<Arc<LaneCtx>>,
    clock: Arc<Clock>,
    bases: Vec<Base>,
    spans: Mutex<Spans>,
}

/// Spans that are open and spans that were ended.
#[derive(Default)]
struct Spans {
    next: u64,
    open: HashMap<SpanId, Begun>,
    ended: Vec<(Begun, Event, Moved)>,
    /// The first failure to mark a span, which `begin` and `end` cannot return.
    failed: Option<tandem_ops::Error>,
}

/// A span that has begun.
struct Begun {
    lane: Lane,
    queue: usize,
    name: &'static str,
    start: Event,
}

const OP: &str = "span";

fn stream(lane: &LaneCtx, queue: usize) -> &Stream {
    match queue {
        0 => lane.stream(),
        UPLOADS => lane.upload_stream(),
        DEALS => lane.deal_stream(),
        _ => lane.reduce_stream(),
    }
}

impl Recorded {
    pub(crate) fn new(lanes: &[Arc<LaneCtx>], clock: &Arc<Clock>) -> Self {
        Recorded { lanes: lanes.to_vec(), clock: clock.clone(), bases: clock.bases(), spans: Mutex::default() }
    }

    fn spans(&self) -> MutexGuard<'_, Spans> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Spans {
    fn fail(&mut self, error: tandem_ops::Error) {
        self.failed.get_or_insert(error);
    }
}

impl Recorder for Recorded {
    fn begin(&self, lane: Lane, queue: usize, name: &'static str) -> SpanId {
        let Some(ctx) = self.lanes.get(lane.0) else { return SpanId(u64::MAX) };
        let mut spans = self.spans();
        let id = SpanId(spans.next);
        spans.next += 1;
        match stream(ctx, queue).record_timed() {
            Ok(start) => _ = spans.open.insert(id, Begun { lane, queue, name, start }),
            Err(error) => spans.fail(ctx.error(OP, error)),
        }
        id
    }

    fn end(&self, span: SpanId, moved: Moved) {
        let mut spans = self.spans();
        let Some(begun) = spans.open.remove(&span) else { return };
        let ctx = &self.lanes[begun.lane.0];
        match stream(ctx, begun.queue).record_timed() {
            Ok(end) => spans.ended.push((begun, end, moved)),
            Err(error) => spans.fail(ctx.error(OP, error)),
        }
    }

    fn take(&self) -> Result<Vec<Span>> {
        let (ended, failed) = {
            let mut spans = self.spans();
            (std::mem::take(&mut spans.ended), spans.failed.take())
        };
        if let Some(error) = failed {
            return Err(error);
        }
        let mut bases = self.bases.clone();
        let mut spans = Vec::with_capacity(ended.len());
        for (Begun { lane, queue, name, start }, end, moved) in ended {
            let ctx = &self.lanes[lane.0];
            let (base, base_us) = &bases[lane.0];
            let measure = || {
                end.synchronize()?;
                Ok((f64::from(base.elapsed_ms(&start)?) * 1e3, f64::from(start.elapsed_ms(&end)?) * 1e3))
            };
            let (from_base, duration_us) = measure().map_err(|e| ctx.error(OP, e))?;
            let start_us = base_us + from_base;
            spans.push(Span { lane, queue, name, start_us, duration_us, moved });
            if from_base > 1e6 {
                bases[lane.0] = (Arc::new(start), start_us);
                self.clock.advance(lane, bases[lane.0].clone());
            }
        }
        Ok(spans)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// The lane of the first GPU. Where there is none the test is passed over.
    fn lanes() -> Option<Vec<Arc<LaneCtx>>> {
        let &device = tandem_cuda::testing::gpus().first()?;
        Some(vec![Arc::new(LaneCtx::new(Lane(0), device, 1).unwrap())])
    }

    fn span(of: &Recorded, queue: usize, name: &'static str) {
        of.end(of.begin(Lane(0), queue, name), Moved::default());
    }

    /// A base that is a second old is replaced by a later one, and times go on from where they were.
    #[test]
    fn times_go_on_over_many_bases() {
        let Some(lanes) = lanes() else { return };
        let clock = Arc::new(Clock::new(&lanes).unwrap());
        let mut last = 0.0;
        // Two of one time: the one that is taken later brings a base that is no later.
        let mut old = Recorded::new(&lanes, &clock);
        for second in 0..3_u32 {
            std::thread::sleep(Duration::from_millis(1050));
            let new = Recorded::new(&lanes, &clock);
            for recorded in [&old, &new] {
                span(recorded, 0, "x");
            }
            for recorded in [&new, &old] {
                let spans = recorded.take().unwrap();
                let start = spans[0].start_us;
                assert!(start >= f64::from(second + 1) * 1.05e6 && start < last + 2e6, "{start} us after {last} us");
                let base = clock.bases()[0].1;
                assert!(base >= f64::from(second + 1) * 1.05e6, "base {base}");
            }
            last = clock.bases()[0].1;
            old = new;
        }
    }

    /// Times that are taken in another order than they were measured in do not put an older base in a later one's place.
    #[test]
    fn a_base_is_never_older_than_the_one_before() {
        let Some(lanes) = lanes() else { return };
        let clock = Arc::new(Clock::new(&lanes).unwrap());
        let (first, second) = (Recorded::new(&lanes, &clock), Recorded::new(&lanes, &clock));
        for recorded in [&first, &second] {
            std::thread::sleep(Duration::from_millis(1050));
            span(recorded, 0, "x");
        }
        let later = second.take().unwrap()[0].start_us;
        let earlier = first.take().unwrap()[0].start_us;
        assert!(1.05e6 <= earlier && earlier + 1.05e6 <= later, "{earlier} and {later} us");
        assert_eq!(clock.bases()[0].1, later);
    }

    #[test]
    fn spans_are_of_their_own_streams() {
        let Some(lanes) = lanes() else { return };
        let recorded = Recorded::new(&lanes, &Arc::new(Clock::new(&lanes).unwrap()));
        let mut busy = lanes[0].alloc::<u8>("test", 1 << 28).unwrap();
        let work = recorded.begin(Lane(0), 0, "work");
        (0..100).for_each(|value| busy.fill(0..1 << 28, value).unwrap());
        recorded.end(work, Moved::default());
        span(&recorded, ASIDE, "aside");
        span(&recorded, UPLOADS, "upload");
        span(&recorded, DEALS, "deal");
        let spans = recorded.take().unwrap();
        let ended = |name| spans.iter().find(|s| s.name == name).map(|s| s.start_us + s.duration_us).unwrap();
        assert!(["aside", "upload", "deal"].into_iter().all(|name| ended(name) < ended("work")), "{spans:?}");
        assert!(recorded.take().unwrap().is_empty());
    }

    #[test]
    fn a_lane_that_is_not_there_has_no_spans() {
        let Some(lanes) = lanes() else { return };
        let recorded = Recorded::new(&lanes, &Arc::new(Clock::new(&lanes).unwrap()));
        let open = recorded.begin(Lane(0), 0, "open");
        recorded.end(recorded.begin(Lane(1), 0, "nowhere"), Moved::default());
        assert!(recorded.take().unwrap().is_empty());
        recorded.end(open, Moved::default());
        recorded.end(open, Moved::default());
        assert_eq!(recorded.take().unwrap().len(), 1);
    }

    /// `begin` and `end` return no error: `take` does, and once.
    #[test]
    fn a_failure_is_told_when_spans_are_taken() {
        let Some(lanes) = lanes() else { return };
        let recorded = Recorded::new(&lanes, &Arc::new(Clock::new(&lanes).unwrap()));
        span(&recorded, 0, "x");
        for what in ["first", "second"] {
            recorded.spans().fail(tandem_ops::Error::invalid(OP, what));
        }
        let error = recorded.take().unwrap_err().to_string();
        assert!(error.contains("first"), "{error}");
        assert!(recorded.take().unwrap().is_empty());
    }
}
