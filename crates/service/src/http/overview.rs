//! How the service is, for people who watch: one value with the queue, the workers, the keys, and what happened in the last minutes.

use super::caller::Caller;
use super::{json, Refusal, Reply};
use crate::core::Core;
use crate::history::{steps, Step, LOOK_BACK_MS, STEP_MS};
use crate::store::{Lease, RecentAttempt};
use hyper::StatusCode;
use serde_json::{json, Value};
use std::collections::BTreeMap;

/// Attempts on the timeline at most.
const TIMELINE: u32 = 120;

pub(super) fn overview(core: &Core, caller: &Caller) -> Result<Reply, Refusal> {
    let now = core.now_ms();
    let counts = core.store.counts()?;
    let mut queue: BTreeMap<i64, [i64; 3]> = BTreeMap::new();
    for (state, priority, count, oldest) in &counts.open {
        let of = queue.entry(*priority).or_default();
        let count = i64::try_from(*count).unwrap_or(i64::MAX);
        match state.as_str() {
            "pending" => (of[0], of[2]) = (count, (now - oldest).max(0)),
            _ => of[1] = count,
        }
    }
    let line = |(priority, [pending, running, oldest]): (&i64, &[i64; 3])| json!({"priority": priority, "pending": pending, "running": running, "oldest_ms": oldest});
    let queue: Vec<Value> = queue.iter().rev().map(line).collect();
    let keys = core.store.keys()?;
    let ends = core.store.recent_ends(now - LOOK_BACK_MS)?;
    let (steps, whole) = steps(now, &ends, &core.history.samples());
    let attempts = core.store.recent_attempts(now - LOOK_BACK_MS, TIMELINE)?;
    let workers: Vec<_> = core.slots.iter().map(|slot| (slot.name.as_str(), slot.status())).collect();
    let key_view = |key: &crate::store::KeyRow| {
        let has = |(_, status): &&(&str, crate::worker::SlotStatus)| {
            status.beat.as_ref().is_some_and(|beat| beat.keys.contains(&key.hash))
        };
        let on: Vec<&str> = workers.iter().filter(has).map(|(name, _)| *name).collect();
        json!({"name": key.name, "curve": key.curve, "domain": key.domain, "bytes": key.bytes, "on": on})
    };
    let worker_view = |(name, status): &(&str, crate::worker::SlotStatus)| {
        let job = |lease: &Lease| {
            // A job of another's has a key and a stage, and no name.
            let job = core.store.job(&lease.job)?;
            let name = job.as_ref().filter(|job| caller.sees(job)).map(|job| job.id.as_str());
            let key = job.as_ref().map(|job| job.key.as_str());
            Ok(json!({"job": name, "key": key, "stage": status.stage(&lease.job)}))
        };
        let jobs = status.leases.iter().map(job).collect::<Result<Vec<_>, Refusal>>()?;
        let key_bytes = status.beat.as_ref().map_or(0, |beat| beat.key_bytes);
        Ok(json!({
            "name": name, "ready": status.is_ready, "device": status.device, "jobs": jobs, "key_bytes": key_bytes,
            "restarts": status.restarts, "trouble": status.trouble,
        }))
    };
    let attempt = |of: &RecentAttempt| {
        let name = caller.sees_token(of.token.as_deref()).then_some(of.job.as_str());
        json!({
            "job": name, "key": of.key, "worker": of.worker, "begun_ms": of.begun_ms, "ended_ms": of.ended_ms,
            "code": of.code, "stages": of.times,
        })
    };
    let step = |step: &Step| {
        json!({
            "at_ms": step.at_ms, "pending": step.pending, "running": step.running, "done": step.done,
            "failed": step.failed, "p50_ms": step.percentile(50), "p90_ms": step.percentile(90),
        })
    };
    let ended: BTreeMap<&str, u64> = counts.ended.iter().map(|(state, count)| (state.as_str(), *count)).collect();
    let value = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "time_ms": now,
        "started_ms": core.history.started_ms(),
        "draining": core.is_draining(),
        "queue": queue,
        "ended": ended,
        "workers": workers.iter().map(worker_view).collect::<Result<Vec<Value>, Refusal>>()?,
        "keys": keys.iter().map(key_view).collect::<Vec<_>>(),
        "step_ms": STEP_MS,
        "steps": steps.iter().map(step).collect::<Vec<_>>(),
        "latency": {
            "jobs": whole.done, "p50_ms": whole.percentile(50), "p90_ms": whole.percentile(90), "p99_ms": whole.percentile(99),
        },
        "attempts": attempts.iter().map(attempt).collect::<Vec<_>>(),
    });
    Ok(json(StatusCode::OK, &value))
}
