//! Jobs: submitted, asked for, waited for, cancelled.

use super::body::{storage, Reader};
use super::caller::Caller;
use super::{blocking, json, Refusal, Reply};
use crate::blobs::random_name;
use crate::core::Core;
use crate::store::{Attempt, Cancelled, Job, KeyRow, NewJob, State, StoreError};
use crate::worker::SlotStatus;
use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use serde_json::{json, Value};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::broadcast::error::RecvError;

/// The header of the caller's id.
const REQUEST_ID: &str = "idempotency-key";

/// Bytes of a `.wtns` file beside its values: heads of sections, and what other programs add.
const WITNESS_HEAD: u64 = 4096;

/// Bytes of a value.
const VALUE: u64 = 32;

/// Jobs in a list at most.
const LIST: u32 = 1000;

/// The parameters behind the `?` of an address: those of `known`, each once.
struct Query<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Query<'a> {
    fn of(request: &'a Request<Incoming>, known: &[&str]) -> Result<Query<'a>, Refusal> {
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

    fn get(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    fn number(&self, name: &str, low: i64, high: i64) -> Result<Option<i64>, Refusal> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let number = text.parse().ok().filter(|number| (low..=high).contains(number));
        number
            .map(Some)
            .ok_or_else(|| Refusal::bad(format!("{name}={text}: expected a whole number from {low} to {high}")))
    }
}

pub(super) async fn submit(core: Arc<Core>, of: Caller, request: Request<Incoming>) -> Result<Reply, Refusal> {
    if core.is_draining() {
        let message = "the service is being stopped and takes no more jobs; send it to another, or again later";
        return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "draining", message));
    }
    let query = Query::of(&request, &["key", "priority", "deadline_seconds"])?;
    let key = query.get("key").ok_or_else(|| Refusal::bad("say which key: POST /v1/jobs?key=NAME"))?.to_string();
    let priority = query.number("priority", -100, 100)?.unwrap_or(0);
    let deadline = query.number("deadline_seconds", 1, 366 * 24 * 3600)?;
    let caller = match request.headers().get(REQUEST_ID) {
        None => None,
        Some(id) => {
            let id =
                id.to_str().ok().filter(|id| (1..=200).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_graphic()));
            let expected = "Idempotency-Key: expected 1 to 200 letters, digits and signs without spaces";
            Some(id.ok_or_else(|| Refusal::bad(expected))?.to_string())
        }
    };
    let (token, of_id) = (of.token.clone(), caller.clone());
    let (reader, key, part) = blocking(&core, move |core| {
        if let (Some(token), None) = (&token, &of_id) {
            core.store.token_room(token)?;
        }
        let key = core.store.key(&key)?.ok_or(StoreError::NoKey(key))?;
        let limit = key.variables.saturating_mul(VALUE).saturating_add(WITNESS_HEAD);
        let reader = Reader::new(request, "a witness of this key", limit, core.config.stall_seconds)?;
        let part = core.witnesses.create(hasher(core, &key)).map_err(|e| storage(&e))?;
        Ok((reader, key, part))
    })
    .await?;
    let part = reader.into_part(part).await?;
    if part.bytes() == 0 {
        return Err(Refusal::bad("the witness is missing: the body is the .wtns file"));
    }
    blocking(&core, move |core| {
        let id = random_name().map_err(|e| storage(&e))?;
        let (digest, bytes) = (part.hash().to_hex().to_string(), part.bytes());
        // First the witness, then the job: a job without its witness would be lost.
        part.keep(&id).map_err(|e| storage(&e))?;
        let now = core.now_ms();
        let job = NewJob {
            id: id.clone(),
            token: of.token,
            request: caller,
            digest,
            key: key.name,
            witness: id.clone(),
            witness_bytes: bytes,
            priority,
            deadline_ms: deadline.map(|seconds| now + seconds * 1000),
        };
        let ageing = i64::from(core.config.ageing_seconds) * 1000;
        let submitted = core.store.submit(&job, now, ageing, core.config.queue);
        if !submitted.as_ref().is_ok_and(|submitted| submitted.is_new) {
            // Should it stay, the next start sweeps it.
            let _ = core.witnesses.remove(&job.witness);
        }
        let submitted = submitted?;
        let (kind, status) = if submitted.is_new { ("new", StatusCode::CREATED) } else { ("again", StatusCode::OK) };
        core.metrics.add("tandem_jobs_submitted_total", &[("kind", kind)], 1.0);
        if submitted.is_new {
            core.wake();
        }
        Ok(json(status, &view(core, &submitted.id)?))
    })
    .await
}

/// What the content of a job is hashed with, begun with its key's.
fn hasher(core: &Core, key: &KeyRow) -> blake3::Hasher {
    let mut hasher = blake3::Hasher::new_keyed(&core.secret);
    hasher.update(key.hash.as_bytes());
    hasher
}

pub(super) async fn list(core: &Arc<Core>, of: Caller, request: &Request<Incoming>) -> Result<Reply, Refusal> {
    let query = Query::of(request, &["state", "limit"])?;
    let limit = query.number("limit", 1, LIST.into())?.unwrap_or(100) as u32;
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
    let wait = Query::of(request, &["wait"])?.number("wait", 0, 24 * 3600)?.unwrap_or(0).min(most);
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
        loop {
            // A job that was cancelled together with its key, or a service that drains, is looked for from time to time.
            let look = until.min(Instant::now() + Duration::from_secs(1));
            match tokio::time::timeout_at(look.into(), ends.recv()).await {
                Ok(Ok(ended)) if ended != id => {}
                Ok(Err(RecvError::Closed)) => return Err(Refusal::bad("the service ends")),
                Ok(_) | Err(_) => break,
            }
        }
    }
}

pub(super) async fn result(core: &Arc<Core>, caller: Caller, id: String) -> Result<Reply, Refusal> {
    let value = blocking(core, move |core| {
        let job = seen_by(core, &caller, &id)?;
        let Some(result) = core.store.result(&id)? else {
            let reason = job.reason.map_or(String::new(), |reason| format!(": {reason}"));
            let message = format!("the job has no result, it is {}{reason}", job.state.name());
            return Err(Refusal::new(StatusCode::CONFLICT, "no_result", message));
        };
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

pub(super) async fn cancel(core: &Arc<Core>, caller: Caller, id: String) -> Result<Reply, Refusal> {
    let job = blocking(core, move |core| {
        seen_by(core, &caller, &id)?;
        match core.cancel(&id)? {
            Cancelled::Now(..) | Cancelled::Ended(State::Cancelled) => view(core, &id),
            Cancelled::Unknown => Err(unknown()),
            Cancelled::Ended(state) => {
                let message = format!("the job is {} already", state.name());
                Err(Refusal::new(StatusCode::CONFLICT, "already_ended", message))
            }
        }
    })
    .await?;
    Ok(json(StatusCode::OK, &job))
}

fn unknown() -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, "no_job", "there is no such job; jobs that ended long ago are forgotten")
}

/// A job, if it is there for this caller: one of another's is not told from none.
fn seen_by(core: &Core, caller: &Caller, id: &str) -> Result<Job, Refusal> {
    core.store.job(id)?.filter(|job| caller.sees(job)).ok_or_else(unknown)
}

/// A job with its attempts.
fn view(core: &Core, id: &str) -> Result<Value, Refusal> {
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
    let has = |status: &SlotStatus| status.leases.iter().any(|lease| lease.job == id);
    let running = core.slots.iter().map(|slot| slot.status()).find(has);
    value["stage"] = running.and_then(|status| status.stage(id).map(String::from)).into();
    Ok(value)
}

fn summary(job: &Job) -> Value {
    let error = job.reason.as_ref().map(|reason| json!({"code": job.code, "message": reason}));
    json!({
        "id": job.id, "request": job.request, "key": job.key, "priority": job.priority, "state": job.state.name(),
        "attempt": job.attempt, "created_ms": job.created_ms, "ended_ms": job.ended_ms, "deadline_ms": job.deadline_ms,
        "error": error,
    })
}
