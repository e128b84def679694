//! What ran when and what it copied, for `--trace` and for the table of stages.

use crate::{Lane, Result};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A handle of a span that was begun and not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(pub u64);

/// The queue of uploads that run beside a lane's own order.
pub const UPLOADS: usize = 2;
/// The queue of copies to other lanes that run beside a lane's own order.
pub const DEALS: usize = 3;

/// The name of spans in which a lane's order stands still until a copy is there that runs elsewhere: one from another lane, or an upload
/// beside. [`waited_us`] tells how much of another span they are.
pub const WAIT: &str = "wait for copy";

/// Bytes that copies move, by direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    /// From the host to a lane.
    pub up: u64,
    /// From a lane to the host.
    pub down: u64,
    /// From a lane to another.
    pub across: u64,
}

impl std::ops::AddAssign for Moved {
    fn add_assign(&mut self, other: Moved) {
        self.up += other.up;
        self.down += other.down;
        self.across += other.across;
    }
}

impl std::iter::Sum for Moved {
    fn sum<I: Iterator<Item = Moved>>(all: I) -> Moved {
        let mut sum = Moved::default();
        all.for_each(|moved| sum += moved);
        sum
    }
}

/// The ends of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// From the host to this lane.
    Up(Lane),
    /// From this lane to the host.
    Down(Lane),
    /// From the first lane to the second. Where they are one, nothing goes over a link, and nothing counts.
    Across(Lane, Lane),
}

impl Ends {
    /// What a copy of so many bytes moves.
    pub fn moved(self, bytes: usize) -> Moved {
        let (bytes, none) = (bytes as u64, Moved::default());
        match self {
            Ends::Up(_) => Moved { up: bytes, ..none },
            Ends::Down(_) => Moved { down: bytes, ..none },
            Ends::Across(from, to) if from == to => none,
            Ends::Across(..) => Moved { across: bytes, ..none },
        }
    }

    /// Whose spans a copy belongs to: the lane's; between two lanes that of the one that sends, unless it has none open.
    fn lanes(self) -> [Lane; 2] {
        match self {
            Ends::Up(lane) | Ends::Down(lane) => [lane; 2],
            Ends::Across(from, to) => [from, to],
        }
    }
}

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
    /// What the copies move that were enqueued within it, and not within a span inside it: each copy counts once.
    pub moved: Moved,
}

/// For each span the microseconds of it in which its lane waited for copies, as [`WAIT`] spans tell. 0 for spans beside a lane's order, which
/// does not wait in them.
pub fn waited_us(spans: &[Span]) -> Vec<f64> {
    let end = |span: &Span| span.start_us + span.duration_us;
    let waits: Vec<&Span> = spans.iter().filter(|span| span.name == WAIT).collect();
    let of = |span: &Span| {
        let of_lane = waits.iter().filter(|wait| span.queue == 0 && wait.lane == span.lane);
        let within = |wait: &&Span| (end(wait).min(end(span)) - wait.start_us.max(span.start_us)).max(0.0);
        of_lane.map(within).sum::<f64>().min(span.duration_us)
    };
    spans.iter().map(of).collect()
}

/// Notes spans of one request as a backend measures time. A backend implements this; who asks for work has a [`Timeline`].
pub trait Recorder: Send + Sync {
    /// Marks the start of a span in a queue of a lane.
    fn begin(&self, lane: Lane, queue: usize, name: &'static str) -> SpanId;

    /// Marks its end, and notes what was copied meanwhile. A span that has ended, or never began, is left as it is.
    fn end(&self, span: SpanId, moved: Moved);

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
pub struct Timeline(Option<Arc<Noted>>);

/// Tells the backends of a process apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackendId(u64);

impl BackendId {
    /// That of no other backend.
    pub fn fresh() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        BackendId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// What all clones of a timeline share.
struct Noted {
    backend: BackendId,
    recorder: Box<dyn Recorder>,
    /// What was copied within each span that is open.
    open: Mutex<HashMap<SpanId, Moved>>,
}

impl Noted {
    fn open(&self) -> MutexGuard<'_, HashMap<SpanId, Moved>> {
        // A panic elsewhere while spans were noted leaves them usable.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A span that a thread has begun. Who fails may leave it open: it is of no account once its timeline is gone.
struct Begun {
    backend: BackendId,
    of: Weak<Noted>,
    span: SpanId,
    lane: Lane,
}

thread_local! {
    /// What this thread has begun and not ended, the innermost last. A copy belongs to the request whose thread enqueues it, which no
    /// operation of a backend is told. Within a span rayon may have the thread do work of other backends.
    static BEGUN: RefCell<Vec<Begun>> = const { RefCell::new(Vec::new()) };
}

/// Counts a copy that this thread enqueues on a backend: to the last span that it has begun on the copy's lane there and not ended, if there is
/// one. Backends call it for each copy.
pub fn count(backend: BackendId, ends: Ends, bytes: usize) {
    let moved = ends.moved(bytes);
    if moved == Moved::default() {
        return;
    }
    BEGUN.with_borrow_mut(|begun| {
        for lane in ends.lanes() {
            while let Some(at) = begun.iter().rposition(|span| (span.backend, span.lane) == (backend, lane)) {
                let Begun { of, span, .. } = &begun[at];
                if of.upgrade().is_some_and(|of| of.open().get_mut(span).map(|all| *all += moved).is_some()) {
                    return;
                }
                // Another thread ended it, or nobody will.
                begun.remove(at);
            }
        }
    });
}

impl Timeline {
    /// One of this backend that notes spans by `recorder`.
    pub fn new(backend: BackendId, recorder: impl Recorder + 'static) -> Self {
        Timeline(Some(Arc::new(Noted { backend, recorder: Box::new(recorder), open: Mutex::default() })))
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
        let Some(noted) = &self.0 else { return SpanId(u64::MAX) };
        let span = noted.recorder.begin(lane, queue, name);
        noted.open().insert(span, Moved::default());
        BEGUN.with_borrow_mut(|begun| {
            begun.retain(|span| span.of.strong_count() > 0);
            begun.push(Begun { backend: noted.backend, of: Arc::downgrade(noted), span, lane });
        });
        span
    }

    /// Marks its end. Only the first call for a span counts.
    pub fn end(&self, span: SpanId) {
        let Some(noted) = &self.0 else { return };
        let Some(moved) = noted.open().remove(&span) else { return };
        BEGUN.with_borrow_mut(|begun| {
            begun.retain(|of| of.span != span || !std::ptr::eq(of.of.as_ptr(), Arc::as_ptr(noted)));
        });
        noted.recorder.end(span, moved);
    }

    /// What `work` tells `lane` to wait for, copies that run elsewhere, in a span of the lane's wait.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn waiting<T>(&self, lane: Lane, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let span = self.begin(lane, WAIT);
        let result = work();
        self.end(span);
        result
    }

    /// Blocks until all spans that were ended are over, and takes them.
    ///
    /// # Errors
    /// The device failed meanwhile.
    pub fn take(&self) -> Result<Vec<Span>> {
        self.0.as_ref().map_or(Ok(Vec::new()), |noted| noted.recorder.take())
    }
}

/// Whether it notes spans, not which.
impl std::fmt::Debug for Timeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Timeline(..)" } else { "Timeline(none)" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::Cpu;
    use crate::{Backend, Mont};

    const MIB: usize = 1 << 20;

    fn moved(timeline: &Timeline, name: &str) -> Moved {
        timeline.take().unwrap().iter().filter(|span| span.name == name).map(|span| span.moved).sum()
    }

    /// Each copy counts once, in the innermost span of its lane that the thread has open.
    #[test]
    fn copies_belong_to_the_innermost_span_of_their_lane() {
        let (cpu, none) = (Cpu::new(3), Moved::default());
        let timeline = cpu.timeline();
        let [first, second, third] = [0, 1, 2].map(Lane);
        let outer = timeline.begin(first, "outer");
        let inner = timeline.begin(first, "inner");
        let other = timeline.begin(second, "other");
        let mut buf = cpu.upload(first, &[Mont::default(); 10]).unwrap();
        cpu.write(&mut buf, 3, &[Mont::default(); 2]).unwrap();
        timeline.end(inner);
        // From the lane that sends; on one lane nothing goes anywhere.
        cpu.copy(&buf, 0..7, third).unwrap();
        cpu.copy(&buf, 0..7, first).unwrap();
        // The lane that sends has no span.
        let far = cpu.upload(third, &[1u32; 9]).unwrap();
        cpu.copy(&far, 0..5, second).unwrap();
        drop(cpu.download(&far).unwrap());
        timeline.end(outer);
        drop(cpu.download(&buf).unwrap());
        timeline.end(other);
        let spans = timeline.take().unwrap();
        let of = |name| spans.iter().find(|span| span.name == name).unwrap().moved;
        assert_eq!(of("inner"), Moved { up: 12 * 32, ..none });
        assert_eq!(of("outer"), Moved { across: 7 * 32, ..none });
        assert_eq!(of("other"), Moved { across: 5 * 4, ..none });
    }

    /// What one request copies does not count for another, nor on another thread or backend, nor after it was left.
    #[test]
    fn copies_belong_to_the_request_that_enqueues_them() {
        let lane = Lane(0);
        let (cpu, other) = (Cpu::new(1), Cpu::new(1));
        let count = |ends, bytes| count(cpu.id(), ends, bytes);
        let (left, here, there) = (cpu.timeline(), cpu.timeline(), cpu.timeline());
        let outer = here.begin(lane, "here");
        left.begin(lane, "left");
        drop(left);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let span = there.begin(lane, "there");
                count(Ends::Down(lane), MIB);
                there.end(span);
                count(Ends::Down(lane), MIB);
            });
        });
        count(Ends::Up(lane), 5);
        other.upload(lane, &[1u8; 100]).unwrap();
        // Ended elsewhere, and twice.
        let inner = here.begin(lane, "inner");
        std::thread::scope(|scope| _ = scope.spawn(|| here.end(inner)));
        count(Ends::Up(lane), 7);
        here.end(inner);
        here.end(outer);
        count(Ends::Up(lane), 9);
        assert_eq!(moved(&there, "there"), Moved { down: MIB as u64, ..Moved::default() });
        let spans = here.take().unwrap();
        let up: Vec<_> = spans.iter().map(|span| (span.name, span.moved.up)).collect();
        assert_eq!(up, [("inner", 0), ("here", 12)]);
        BEGUN.with_borrow(|begun| assert!(begun.is_empty()));
    }

    #[test]
    fn waits_are_shares_of_the_spans_they_are_in() {
        let span = |lane, queue, name, start_us, duration_us| Span {
            lane: Lane(lane),
            queue,
            name,
            start_us,
            duration_us,
            moved: Moved::default(),
        };
        let spans = [
            span(0, 0, "phase", 10.0, 50.0),
            span(0, 0, WAIT, 9.5, 20.5),
            span(0, 0, WAIT, 40.0, 5.0),
            span(1, 0, WAIT, 30.0, 4.0),
            span(0, 1, "aside", 10.0, 50.0),
            span(0, 0, "next", 60.0, 1.0),
            span(1, 0, "elsewhere", 10.0, 22.0),
        ];
        assert_eq!(waited_us(&spans), [25.0, 20.5, 5.0, 4.0, 0.0, 0.0, 2.0]);
    }
}
