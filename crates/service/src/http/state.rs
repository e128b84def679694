//! How the service is: ready, its workers, its numbers.

use super::caller::Caller;
use super::{json, Refusal, Reply};
use crate::core::Core;
use crate::metrics::labels;
use crate::nodes::Report;
use crate::store::Lease;
use hyper::StatusCode;
use serde_json::json;

pub(crate) fn ready(core: &Core) -> Result<Reply, Refusal> {
    let not = |message: String| Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", message));
    if core.is_draining() {
        return not("the service is being stopped".into());
    }
    let workers: Vec<_> = core.slots.iter().map(|slot| slot.status()).collect();
    let ready = workers.iter().filter(|worker| worker.is_ready).count();
    if ready == 0 {
        let trouble = workers.iter().find_map(|worker| worker.trouble.clone());
        return not(format!("no worker is ready: {}", trouble.unwrap_or_else(|| "they are being started".into())));
    }
    Ok(json(StatusCode::OK, &json!({"status": "ready", "workers": ready})))
}

pub(super) fn workers(core: &Core, caller: &Caller) -> Result<Reply, Refusal> {
    // A job of another's has a stage and no name.
    let name = |job: &str| {
        let known = core.store.job(job)?.filter(|job| caller.sees(job));
        Ok::<_, Refusal>(known.map(|job| job.id))
    };
    let one = |slot: &crate::worker::Slot| {
        let status = slot.status();
        let job = |lease: &Lease| Ok(json!({"job": name(&lease.job)?, "stage": status.stage(&lease.job)}));
        let jobs = status.leases.iter().map(job).collect::<Result<Vec<_>, Refusal>>()?;
        let keys = status.beat.map_or(Vec::new(), |beat| beat.keys);
        Ok(json!({
            "name": slot.name, "ready": status.is_ready, "pid": status.pid, "device": status.device, "jobs": jobs, "keys": keys,
            "restarts": status.restarts, "trouble": status.trouble,
        }))
    };
    let workers = core.slots.iter().map(one).collect::<Result<Vec<_>, Refusal>>()?;
    Ok(json(StatusCode::OK, &json!({"workers": workers})))
}

/// The programs that take jobs from the same database; this one alone where it is its own.
pub(super) fn nodes(core: &Core) -> Result<Reply, Refusal> {
    let one = |node: &crate::store::Node| {
        let report = Report::read(&node.report);
        json!({
            "name": node.name, "version": node.version, "started_ms": node.started_ms, "seen_ms": node.seen_ms,
            "workers": report.workers, "ready": report.ready, "jobs": report.jobs, "draining": report.draining,
            "idle_keys": report.idle_keys,
        })
    };
    let nodes: Vec<_> = core.store.nodes()?.iter().map(one).collect();
    Ok(json(StatusCode::OK, &json!({"node": core.config.node, "nodes": nodes})))
}

pub(super) fn metrics(core: &Core) -> Result<String, Refusal> {
    // While the database is away, what it would say is left out.
    let counts = core.store.counts().unwrap_or_default();
    let mut gauges = Vec::new();
    for (state, priority, count, _) in &counts.open {
        let of = labels(&[("state", state), ("priority", &priority.to_string())]);
        gauges.push(("tandem_jobs", of, *count as f64));
    }
    for (state, count) in &counts.ended {
        gauges.push(("tandem_jobs", labels(&[("state", state)]), *count as f64));
    }
    for (_, priority, _, oldest) in counts.open.iter().filter(|(state, ..)| state == "pending") {
        let of = labels(&[("priority", &priority.to_string())]);
        gauges.push(("tandem_oldest_pending_seconds", of, (core.now_ms() - oldest).max(0) as f64 / 1e3));
    }
    if core.store.is_shared() {
        let nodes = core.store.nodes().map_or(0, |nodes| nodes.len());
        gauges.push(("tandem_nodes", String::new(), nodes as f64));
    }
    let workers: Vec<_> = core.slots.iter().map(|slot| (labels(&[("worker", &slot.name)]), slot.status())).collect();
    for (of, status) in &workers {
        gauges.push(("tandem_worker_ready", of.clone(), f64::from(u8::from(status.is_ready))));
    }
    for (of, status) in &workers {
        gauges.push(("tandem_worker_busy", of.clone(), f64::from(u8::from(!status.leases.is_empty()))));
    }
    for (of, status) in &workers {
        let bytes = status.beat.as_ref().map_or(0, |beat| beat.key_bytes);
        gauges.push(("tandem_worker_key_bytes", of.clone(), bytes as f64));
    }
    for (of, _) in &workers {
        gauges.push(("tandem_worker_key_budget_bytes", of.clone(), (core.config.key_memory_mib << 20) as f64));
    }
    for (of, status) in &workers {
        let keys = status.beat.as_ref().map_or(0, |beat| beat.keys.len());
        gauges.push(("tandem_worker_keys", of.clone(), keys as f64));
    }
    let busy = core.calculators.iter().filter(|of| of.lease().is_some()).count();
    for (state, count) in [("busy", busy), ("idle", core.calculators.len() - busy)] {
        gauges.push(("tandem_calculators", labels(&[("state", state)]), count as f64));
    }
    for (state, bytes) in ["used", "idle"].into_iter().zip(core.held.bytes()) {
        gauges.push(("tandem_held_memory_bytes", labels(&[("state", state)]), bytes as f64));
    }
    gauges.push(("tandem_held_memory_budget_bytes", String::new(), (core.config.held_memory_mib << 20) as f64));
    gauges.push(("tandem_unwritten_results", String::new(), core.unwritten() as f64));
    Ok(core.metrics.text(&gauges))
}
