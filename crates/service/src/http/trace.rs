//! The last minutes as a trace that Perfetto and Chrome open: a track for each worker, a slice for each attempt, and in it its stages.

use super::caller::Caller;
use super::jobs::Query;
use super::{blocking, json, Refusal, Reply};
use crate::core::Core;
use crate::store::RecentAttempt;
use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Jobs of a trace at most.
const JOBS: u32 = 20_000;

/// A day: jobs are kept for longer only where the settings say so.
const MINUTES_MAX: i64 = 24 * 60;

pub(super) async fn trace(core: &Arc<Core>, caller: Caller, request: &Request<Incoming>) -> Result<Reply, Refusal> {
    let minutes = Query::of(request, &["minutes"])?.number("minutes", (1, MINUTES_MAX))?.unwrap_or(5);
    let attempts =
        blocking(core, move |core| Ok(core.store.recent_attempts(core.now_ms() - minutes * 60_000, JOBS)?)).await?;
    Ok(json(StatusCode::OK, &events(&attempts, core.now_ms(), |token| caller.sees_token(token))))
}

/// Events of Chrome's trace format; times are microseconds since 1970. Attempts of a worker overlap where it has several jobs in hand:
/// each is on the first line of its worker that is free then.
fn events(attempts: &[RecentAttempt], now: i64, sees: impl Fn(Option<&str>) -> bool) -> Value {
    let mut workers: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
    let mut events = Vec::new();
    for of in attempts {
        let end = of.ended_ms.unwrap_or(now).max(of.begun_ms);
        let lines = workers.entry(&of.worker).or_default();
        let line = lines.iter().position(|free| *free <= of.begun_ms).unwrap_or(lines.len());
        match lines.get_mut(line) {
            Some(free) => *free = end,
            None => lines.push(end),
        }
        let name = if sees(of.token.as_deref()) { of.job.as_str() } else { "another token's" };
        let code = of.code.as_deref().unwrap_or("running");
        let slice = |name: &str, from: f64, length: f64, args: Value| {
            json!({
                "ph": "X", "name": name, "cat": "job", "pid": of.worker, "tid": line + 1,
                "ts": from * 1e3, "dur": length * 1e3, "args": args,
            })
        };
        let length = (end - of.begun_ms) as f64;
        events.push(slice(&of.key, of.begun_ms as f64, length, json!({"job": name, "code": code})));
        let Some(times) = &of.times else { continue };
        let stages = [
            ("key", times.key),
            ("read", times.read),
            ("upload", times.upload),
            ("turn", times.turn),
            ("proof", times.proof),
        ];
        // They follow one another and end before the attempt does: the rest is the way of the result.
        let mut from = of.begun_ms as f64;
        for (stage, seconds) in stages {
            let length = (seconds * 1e3).min(end as f64 - from).max(0.0);
            events.push(slice(stage, from, length, json!({})));
            from += length;
        }
    }
    // Numbers for workers, as the format wants them, and their names.
    let names: Vec<&str> = workers.keys().copied().collect();
    for event in &mut events {
        let number = names.iter().position(|name| event["pid"] == **name).unwrap_or(0) + 1;
        event["pid"] = number.into();
    }
    let named = names
        .iter()
        .enumerate()
        .map(|(at, name)| json!({"ph": "M", "name": "process_name", "pid": at + 1, "args": {"name": name}}));
    let all: Vec<Value> = named.chain(events.iter().cloned()).collect();
    json!({"displayTimeUnit": "ms", "traceEvents": all})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Times;

    fn attempt(job: &str, worker: &str, begun_ms: i64, ended_ms: Option<i64>) -> RecentAttempt {
        let times = ended_ms.map(|_| Times { key: 0.001, read: 0.002, upload: 0.003, turn: 0.004, proof: 0.005 });
        let (job, worker, code) = (job.into(), worker.into(), ended_ms.map(|_| "done".into()));
        RecentAttempt { job, token: Some("t".into()), key: "k".into(), worker, begun_ms, ended_ms, code, times }
    }

    #[test]
    fn attempts_are_slices_that_do_not_overlap_on_a_line() {
        let attempts = [
            attempt("a", "1:cpu", 1_000, Some(1_020)),
            attempt("b", "1:cpu", 1_010, Some(1_030)),
            attempt("c", "0:cpu", 1_010, None),
            attempt("d", "1:cpu", 1_025, Some(1_040)),
        ];
        let value = events(&attempts, 2_000, |token| token == Some("t"));
        let all = value["traceEvents"].as_array().unwrap();
        let names: Vec<_> =
            all.iter().filter(|event| event["ph"] == "M").map(|event| event["args"]["name"].clone()).collect();
        assert_eq!(names, ["0:cpu", "1:cpu"]);
        let whole = |job: &str| all.iter().find(|event| event["args"]["job"] == job).unwrap();
        let place = |job: &str| (whole(job)["pid"].as_u64().unwrap(), whole(job)["tid"].as_u64().unwrap());
        assert_eq!([place("a"), place("b"), place("c"), place("d")], [(2, 1), (2, 2), (1, 1), (2, 1)]);
        assert_eq!((whole("a")["ts"].as_f64(), whole("a")["dur"].as_f64()), (Some(1e6), Some(2e4)));
        assert_eq!((whole("c")["dur"].as_f64(), &whole("c")["args"]["code"]), (Some(9.9e5), &json!("running")));
        // Three with five stages each, one behind the other, the last 10 ms after the begin.
        let proofs: Vec<_> = all.iter().filter(|event| event["name"] == "proof").collect();
        assert_eq!((proofs.len(), proofs[0]["ts"].as_f64(), proofs[0]["dur"].as_f64()), (3, Some(1.01e6), Some(5e3)));
        // Another's job has no name.
        let value = events(&attempts, 2_000, |_| false);
        assert!(!value.to_string().contains("\"job\":\"a\""));
    }
}
