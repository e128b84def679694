//! `--trace`: what ran when, in the Chrome trace format (chrome://tracing, ui.perfetto.dev).
//!
//! Names are constants of the program and names of devices: a trace holds nothing of a witness.

use crate::lanes::is_copy;
use serde_json::{json, Map, Value};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tandem_engine::{waited_us, Gauge, Moved, Span, Stage, WAIT};

/// Rows of a lane: what it does in order, what it does beside that, copies to it and from it, and when its order waits for copies.
const WORK: usize = 0;
const ASIDE: usize = 1;
const COPIES: usize = 2;
const WAITS: usize = 3;

/// Rows of the host: what it does in order, the stages of that, and what it does beside.
const HOST: usize = 0;
const STAGES: usize = 1;

/// The first process of what went over links: there are fewer lanes.
const LINKS: usize = 1000;

/// A piece of data that went over a link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chunk {
    /// When it set out.
    pub begun: Instant,
    /// How long it took.
    pub seconds: f64,
    /// Its size.
    pub bytes: u64,
}

/// What the host does beside its work in order, each on a row of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    /// Opens the device.
    Device = 2,
    /// Reads and loads the key.
    Key = 3,
}

/// Collects events where there is a file to write them to: else nothing is kept, however many proofs are made. The host is process 0, lane `n` of the device is process `n + 1`.
pub struct Trace {
    begun: Instant,
    events: Option<Mutex<Vec<Value>>>,
}

impl Trace {
    /// Begins now.
    pub fn new(is_wanted: bool) -> Self {
        Self { begun: Instant::now(), events: is_wanted.then(|| Mutex::new(vec![name(0, "host")])) }
    }

    /// Runs and records one step of the host.
    pub fn step<T>(&self, what: &'static str, run: impl FnOnce() -> T) -> T {
        self.step_on(HOST, what, run)
    }

    /// Runs and records one step of the host that it does beside others.
    pub fn step_beside<T>(&self, row: Beside, what: &'static str, run: impl FnOnce() -> T) -> T {
        self.step_on(row as usize, what, run)
    }

    fn step_on<T>(&self, row: usize, what: &'static str, run: impl FnOnce() -> T) -> T {
        let start = self.begun.elapsed();
        let result = run();
        let duration = self.begun.elapsed() - start;
        self.push(event(0, row, what, start.as_secs_f64() * 1e6, duration.as_secs_f64() * 1e6));
        result
    }

    /// Records the host's stages whose beginning is known, on a row of their own.
    pub fn stages(&self, stages: &[Stage]) {
        if self.events.is_none() {
            return;
        }
        for stage in stages {
            if let Some(begun) = stage.begun {
                let start = begun.saturating_duration_since(self.begun).as_secs_f64();
                self.push(event(0, STAGES, stage.name, start * 1e6, stage.seconds * 1e6));
            }
        }
    }

    /// Records the device's spans. Their clock started with the backend, `opened` after this trace.
    pub fn spans(&self, spans: &[Span], opened: f64) {
        if self.events.is_none() {
            return;
        }
        let mut lanes: Vec<usize> = spans.iter().map(|s| s.lane.0).collect();
        lanes.sort_unstable();
        lanes.dedup();
        for lane in lanes {
            self.push(name(lane + 1, &format!("lane {lane}")));
            for (row, text) in [(WORK, "in order"), (ASIDE, "aside"), (COPIES, "copies"), (WAITS, "waits")] {
                self.push(row_name(lane + 1, row, text));
            }
        }
        for (span, waited) in spans.iter().zip(waited_us(spans)) {
            let row = match span {
                span if span.name == WAIT => WAITS,
                span if is_copy(span) => COPIES,
                Span { queue: 0, .. } => WORK,
                _ => ASIDE,
            };
            let mut event = event(span.lane.0 + 1, row, span.name, opened * 1e6 + span.start_us, span.duration_us);
            let args = args(span, waited);
            if !args.is_empty() {
                event["args"] = args.into();
            }
            self.push(event);
        }
    }

    /// Records what the device drew and moved.
    pub fn gauges(&self, gauges: &[Gauge]) {
        for Gauge { lane, at, name, value } in gauges {
            let at = at.saturating_duration_since(self.begun).as_secs_f64();
            self.push(json!({"ph": "C", "pid": lane + 1, "name": name, "ts": at * 1e6, "args": {"value": value}}));
        }
    }

    /// Records what went over links as process `number` of those that stand behind host and lanes: a row for each link.
    pub fn traffic(&self, number: usize, title: &str, links: &[(String, Vec<Chunk>)]) {
        let process = LINKS + number;
        self.push(name(process, title));
        for (row, (link, chunks)) in links.iter().enumerate() {
            self.push(row_name(process, row, link));
            for chunk in chunks {
                let start = chunk.begun.saturating_duration_since(self.begun).as_secs_f64();
                let mut event = event(process, row, "chunk", start * 1e6, chunk.seconds * 1e6);
                event["args"] = json!({"bytes": chunk.bytes});
                self.push(event);
            }
        }
    }

    /// Seconds since the trace began.
    pub fn now(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// The file's text.
    pub fn to_json(&self) -> String {
        let events = self.events().map(|events| events.clone()).unwrap_or_default();
        json!({"displayTimeUnit": "ms", "traceEvents": events}).to_string()
    }

    fn push(&self, event: Value) {
        if let Some(mut events) = self.events() {
            events.push(event);
        }
    }

    fn events(&self) -> Option<MutexGuard<'_, Vec<Value>>> {
        Some(self.events.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn event(process: usize, thread: usize, name: &str, start_us: f64, duration_us: f64) -> Value {
    json!({"ph": "X", "pid": process, "tid": thread, "name": name, "ts": start_us, "dur": duration_us})
}

/// What a span copied and how much of it was a wait, as far as there is any of it.
fn args(span: &Span, waited_us: f64) -> Map<String, Value> {
    let Moved { up, down, across } = span.moved;
    let bytes = [("host_to_device_bytes", up), ("device_to_host_bytes", down), ("device_to_device_bytes", across)];
    let bytes = bytes.into_iter().filter(|(_, bytes)| *bytes > 0).map(|(name, bytes)| (name, bytes.into()));
    // A wait is one from end to end.
    let share = (span.name != WAIT && waited_us > 0.0)
        .then(|| ("waited_for_copies_share", (waited_us / span.duration_us).into()));
    bytes.chain(share).map(|(name, value)| (name.to_string(), value)).collect()
}

fn name(process: usize, name: &str) -> Value {
    json!({"ph": "M", "pid": process, "name": "process_name", "args": {"name": name}})
}

fn row_name(process: usize, thread: usize, name: &str) -> Value {
    json!({"ph": "M", "pid": process, "tid": thread, "name": "thread_name", "args": {"name": name}})
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_engine::Lane;

    #[test]
    fn nothing_is_kept_without_a_file_to_write_to() {
        let stage = Stage { name: "a stage", begun: Some(Instant::now()), seconds: 0.1, ..Stage::default() };
        for (is_wanted, kept) in [(false, 0), (true, 1 + 3)] {
            let trace = Trace::new(is_wanted);
            trace.step("a step", || ());
            trace.stages(std::slice::from_ref(&stage));
            trace.gauges(&[Gauge { lane: 1, at: Instant::now(), name: "power, W", value: 700.5 }]);
            let text: Value = serde_json::from_str(&trace.to_json()).unwrap();
            let events = text["traceEvents"].as_array().unwrap();
            assert_eq!(events.len(), kept);
            // A counter of the lane's process.
            let is_right = |event: &Value| {
                event["ph"] == "C"
                    && event["pid"] == 2
                    && event["args"]["value"] == 700.5
                    && event["ts"].as_f64() > Some(0.0)
            };
            assert!(events.last().is_none_or(is_right), "{text}");
        }
    }
    /// What was copied, and how much of a phase its lane waited.
    #[test]
    fn spans_tell_what_they_moved_and_waited() {
        let span = |name, start_us, moved| Span { lane: Lane(2), queue: 0, name, start_us, duration_us: 8.0, moved };
        let none = Moved::default();
        let trace = Trace::new(true);
        trace.spans(
            &[
                span("idle", 100.0, none),
                span("sum", 200.0, Moved { down: 64, ..none }),
                span("phase", 300.0, Moved { up: 5, down: 6, across: 7 }),
                Span { duration_us: 6.0, ..span(WAIT, 301.0, none) },
            ],
            0.5,
        );
        let text: Value = serde_json::from_str(&trace.to_json()).unwrap();
        let events = text["traceEvents"].as_array().unwrap();
        let of = |name: &str| events.iter().find(|event| event["ph"] == "X" && event["name"] == name).unwrap();
        assert_eq!(of("idle").get("args"), None);
        assert_eq!(of("sum")["args"], json!({"device_to_host_bytes": 64}));
        let phase = json!({
            "host_to_device_bytes": 5,
            "device_to_host_bytes": 6,
            "device_to_device_bytes": 7,
            "waited_for_copies_share": 0.75,
        });
        assert_eq!(of("phase")["args"], phase);
        assert_eq!((&of(WAIT)["tid"], of(WAIT).get("args")), (&json!(WAITS), None));
        assert_eq!((&of("phase")["pid"], &of("phase")["tid"]), (&json!(3), &json!(WORK)));
    }
}
