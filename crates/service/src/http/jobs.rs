//! Jobs: asked for, waited for, cancelled.

use super::caller::Caller;
use super::{blocking, json, Refusal, Reply};
use crate::core::Core;
use crate::store::{Attempt, Cancelled, Job, JobResult, State};
use crate::worker::SlotStatus;
use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use serde_json::{json, Value};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::Receiver;

/// Seconds that a request may want to wait; the settings' bound holds besides.
pub(super) const WAIT: (i64, i64) = (0, 24 * 3600);

/// How often one that waits looks for a job whose end it may have missed.
const LOOK: Duration = Duration::from_secs(1);

/// Jobs in a list, at least and at most, and where nothing is said.
pub(crate) const LIST: (i64, i64) = (1, 1000);
pub(crate) const LISTED: i64 = 100;

/// The parameters behind the `?` of an address: those of `known`, each once.
pub(super) struct Query<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Query<'a> {
    pub(super) fn of(request: &'a Request<Incoming>, known: &[&str]) -> Result<Query<'a>, Refusal> {
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        for pair in request.uri().query().unwrap_or("").split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if !known.contains(&name) || pairs.iter().any(|(before, _)| *before == name) {
                let message =
                    format!("the parameter '{name}' is unknown here or given twice; there are: {}", known.join(", "));
                return Err(Refusal::bad(message));
            }
            pairs.push((name, value));
        }
        Ok(Query(pairs))
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    pub(super) fn number(&self, name: &str, bounds: (i64, i64)) -> Result<Option<i64>, Refusal> {
        self.get(name).map(|text| number(name, text, bounds)).transpose()
    }
}

/// A number within bounds, which belong to it.
pub(crate) fn number(name: &str, text: &str, (low, high): (i64, i64)) -> Result<i64, Refusal> {
    let number = text.parse().ok().filter(|number| (low..=high).contains(number));
    number.ok_or_else(|| Refusal::bad(format!("{name}={text}: expected a whole number from {low} to {high}")))
}

pub(super) async fn list(core: &Arc<Core>, of: Caller, request: &Request<Incoming>) -> Result<Reply, Refusal> {
    let query = Query::of(request, &["state", "limit"])?;
    let limit = query.number("limit", LIST)?.unwrap_or(LISTED) as u32;
    let words = State::ALL.map(State::name).join(", ");
    let state = query.get("state").map(|name| {
        State::from_name(name).ok_or_else(|| Refusal::bad(format!("state={name}: expected one of {words}")))
    });
    let state = state.transpose()?;
    let jobs = blocking(core, move |core| Ok(core.store.jobs(state, of.only(), limit)?)).await?;
    Ok(json(StatusCode::OK, &json!({"jobs": jobs.iter().map(summary).collect::<Vec<_>>()})))
}

pub(super) async fn status(
    core: &Arc<Core>,
    caller: Caller,
    id: String,
    request: &Request<Incoming>,
) -> Result<Reply, Refusal> {
    let most = i64::from(core.config.wait_seconds);
    let wait = Query::of(request, &["wait"])?.number("wait", WAIT)?.unwrap_or(0).min(most);
    let until = Instant::now() + Duration::from_secs(wait as u64);
    // Before the job is looked at, so that no end is missed.
    let mut ends = core.ends.subscribe();
    loop {
        let (of, caller) = (id.clone(), caller.clone());
        let seen = move |core: &Core| {
            let job = seen_by(core, &caller, &of)?;
            let is_over = job.is_final() || core.is_draining() || Instant::now() >= until;
            is_over.then(|| full(core, &job)).transpose()
        };
        if let Some(job) = blocking(core, seen).await? {
            return Ok(json(StatusCode::OK, &job));
        }
        // A job that was cancelled together with its key, or a service that drains, is looked for from time to time.
        ends_of(vec![id.clone()], &mut ends, until.min(Instant::now() + LOOK)).await?;
    }
}

/// Waits until all of these jobs may have ended, or until a time.
pub(crate) async fn ends_of(mut open: Vec<String>, ends: &mut Receiver<String>, until: Instant) -> Result<(), Refusal> {
    while !open.is_empty() {
        match tokio::time::timeout_at(until.into(), ends.recv()).await {
            Ok(Ok(ended)) => open.retain(|id| *id != ended),
            Ok(Err(RecvError::Closed)) => return Err(Refusal::bad("the service ends")),
            // Some were missed, or it is time.
            Ok(Err(RecvError::Lagged(_))) | Err(_) => return Ok(()),
        }
    }
    Ok(())
}

pub(super) async fn result(core: &Arc<Core>, caller: Caller, id: String) -> Result<Reply, Refusal> {
    let value = blocking(core, move |core| {
        let result = result_of(core, &caller, &id)?;
        let damaged = |_| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the stored result is damaged");
        let parsed = |text: &str| serde_json::from_str::<Value>(text).map_err(damaged);
        Ok(json!({
            "id": id, "proof": parsed(&result.proof)?, "public": parsed(&result.publics)?,
            "seconds": result.seconds, "times": result.times, "device": result.device, "remark": result.remark,
        }))
    })
    .await?;
    Ok(json(StatusCode::OK, &value))
}

/// The result of a job that is done.
pub(crate) fn result_of(core: &Core, caller: &Caller, id: &str) -> Result<JobResult, Refusal> {
    let job = seen_by(core, caller, id)?;
    core.store.result(id)?.ok_or_else(|| {
        let reason = job.reason.map_or(String::new(), |reason| format!(": {reason}"));
        let message = format!("the job has no result, it is {}{reason}", job.state.name());
        Refusal::new(StatusCode::CONFLICT, "no_result", message)
    })
}

pub(super) async fn cancel(core: &Arc<Core>, caller: Caller, id: String) -> Result<Reply, Refusal> {
    let job = blocking(core, move |core| {
        cancelled(core, &caller, &id)?;
        view(core, &id)
    })
    .await?;
    Ok(json(StatusCode::OK, &job))
}

/// Cancels a job. One that was cancelled before is.
pub(crate) fn cancelled(core: &Core, caller: &Caller, id: &str) -> Result<(), Refusal> {
    seen_by(core, caller, id)?;
    match core.cancel(id)? {
        Cancelled::Now(..) | Cancelled::Ended(State::Cancelled) => Ok(()),
        Cancelled::Unknown => Err(unknown()),
        Cancelled::Ended(state) => {
            let message = format!("the job is {} already", state.name());
            Err(Refusal::new(StatusCode::CONFLICT, "already_ended", message))
        }
    }
}

fn unknown() -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, "no_job", "there is no such job; jobs that ended long ago are forgotten")
}

/// A job, if it is there for this caller: one of another's is not told from none.
pub(crate) fn seen_by(core: &Core, caller: &Caller, id: &str) -> Result<Job, Refusal> {
    core.store.job(id)?.filter(|job| caller.sees(job)).ok_or_else(unknown)
}

/// A job with its attempts.
pub(super) fn view(core: &Core, id: &str) -> Result<Value, Refusal> {
    full(core, &core.store.job(id)?.ok_or_else(unknown)?)
}

fn full(core: &Core, job: &Job) -> Result<Value, Refusal> {
    let id = job.id.as_str();
    let attempts = core.store.attempts(id)?;
    let attempt = |a: &Attempt| {
        json!({
            "attempt": a.attempt, "worker": a.worker, "begun_ms": a.begun_ms, "ended_ms": a.ended_ms,
            "code": a.code, "message": a.reason,
        })
    };
    let mut value = summary(job);
    value["attempts"] = attempts.iter().map(attempt).collect();
    value["stage"] = stage(core, job).into();
    Ok(value)
}

/// What a worker or a calculator of this node does for a job.
pub(crate) fn stage(core: &Core, job: &Job) -> Option<String> {
    let id = job.id.as_str();
    let has = |status: &SlotStatus| status.leases.iter().any(|lease| lease.job == id);
    let running = core.slots.iter().map(|slot| slot.status()).find(has);
    let is_running = job.state == State::Running;
    let is_calculated = is_running && core.calculators.iter().any(|of| of.lease().is_some_and(|lease| lease.job == id));
    let calculate = is_calculated.then(|| "calculate".to_string());
    running.and_then(|status| status.stage(id).map(String::from)).or(calculate)
}

pub(super) fn summary(job: &Job) -> Value {
    let error = job.reason.as_ref().map(|reason| json!({"code": job.code, "message": reason}));
    json!({
        "id": job.id, "request": job.request, "key": job.key, "priority": job.priority, "state": job.state.name(),
        "inputs": job.is_inputs, "attempt": job.attempt, "created_ms": job.created_ms, "ended_ms": job.ended_ms, "deadline_ms": job.deadline_ms,
        "error": error,
    })
}
