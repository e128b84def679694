//! `--trace`: what ran when, in the Chrome trace format (chrome://tracing, ui.perfetto.dev).
//!
//! Names are constants of the program and names of devices: a trace holds nothing of a witness.

use crate::lanes::is_copy;
use serde_json::{json, Value};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tandem_engine::{Gauge, Span, Stage};

/// Rows of a lane: what it does in order, what it does beside that, and copies to it and from it.
const WORK: usize = 0;
const ASIDE: usize = 1;
const COPIES: usize = 2;

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
            for (row, text) in [(WORK, "in order"), (ASIDE, "aside"), (COPIES, "copies")] {
                self.push(row_name(lane + 1, row, text));
            }
        }
        for span in spans {
            let row = match span {
                span if is_copy(span) => COPIES,
                Span { queue: 0, .. } => WORK,
                _ => ASIDE,
            };
            self.push(event(span.lane.0 + 1, row, span.name, opened * 1e6 + span.start_us, span.duration_us));
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

fn name(process: usize, name: &str) -> Value {
    json!({"ph": "M", "pid": process, "name": "process_name", "args": {"name": name}})
}

fn row_name(process: usize, thread: usize, name: &str) -> Value {
    json!({"ph": "M", "pid": process, "tid": thread, "name": "thread_name", "args": {"name": name}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_kept_without_a_file_to_write_to() {
        let stage = Stage { name: "a stage", lane: None, begun: Some(Instant::now()), seconds: 0.1 };
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
}
