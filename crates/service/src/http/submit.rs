//! Submissions: a witness or inputs of a key, or many at once.

use super::body::{storage, Reader};
use super::caller::Caller;
use super::jobs::{view, Query};
use super::{batch, blocking, json, Refusal, Reply};
use crate::blobs::{random_name, Part};
use crate::core::Core;
use crate::store::{Form, KeyRow, NewJob, StoreError, Submitted};
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::{HeaderMap, Request, StatusCode};
use std::sync::Arc;

/// The header of the caller's id.
const REQUEST_ID: &str = "idempotency-key";

/// Bytes of a `.wtns` file beside its values: heads of sections, and what other programs add.
const WITNESS_HEAD: u64 = 4096;

/// Bytes of a value.
const VALUE: u64 = 32;

/// Bytes of a witness of a key at most.
pub(crate) fn witness_max(key: &KeyRow) -> u64 {
    key.variables.saturating_mul(VALUE).saturating_add(WITNESS_HEAD)
}

/// What is said of a job beside its content.
#[derive(Clone)]
pub(super) struct Wanted {
    pub(super) key: String,
    pub(super) priority: i64,
    pub(super) deadline_seconds: Option<i64>,
    pub(super) request: Option<String>,
}

impl Wanted {
    fn of(request: &Request<Incoming>) -> Result<Wanted, Refusal> {
        let query = Query::of(request, &["key", "priority", "deadline_seconds"])?;
        let path = request.uri().path();
        let key = query.get("key").ok_or_else(|| Refusal::bad(format!("say which key: POST {path}?key=NAME")))?;
        let priority = query.number("priority", -100, 100)?.unwrap_or(0);
        let deadline_seconds = query.number("deadline_seconds", 1, 366 * 24 * 3600)?;
        Ok(Wanted { key: key.into(), priority, deadline_seconds, request: request_id(request.headers())? })
    }

    /// A job of a key, as other interfaces submit it.
    pub(super) fn plain(key: &str) -> Wanted {
        Wanted { key: key.into(), priority: 0, deadline_seconds: None, request: None }
    }
}

fn request_id(headers: &HeaderMap) -> Result<Option<String>, Refusal> {
    let Some(id) = headers.get(REQUEST_ID) else { return Ok(None) };
    let id = id.to_str().ok().filter(|id| (1..=200).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_graphic()));
    let expected = "Idempotency-Key: expected 1 to 200 letters, digits and signs without spaces";
    id.map(|id| Some(id.into())).ok_or_else(|| Refusal::bad(expected))
}

/// A job whose content is on its way into a blob.
pub(super) struct Begun {
    pub(super) key: KeyRow,
    id: String,
    form: Form,
    part: Part,
}

/// What is refused before anything of a body is read.
pub(super) fn check_open(core: &Core) -> Result<(), Refusal> {
    if core.is_draining() {
        let message = "the service is being stopped and takes no more jobs; send it to another, or again later";
        return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "draining", message));
    }
    Ok(())
}

/// The most bytes of a job's content.
pub(super) fn content_max(core: &Core, key: &KeyRow, form: Form) -> u64 {
    match form {
        Form::Inputs => core.config.max_inputs_mib << 20,
        _ => witness_max(key),
    }
}

impl Begun {
    /// Begins the blob of a job of this key.
    pub(super) fn new(core: &Core, key: &str, form: Form) -> Result<Begun, Refusal> {
        let key = core.store.key(key)?.ok_or_else(|| StoreError::NoKey(key.into()))?;
        // What the content of a job is hashed with, begun with its key's, and with that of the program.
        let mut hasher = blake3::Hasher::new_keyed(&core.secret);
        hasher.update(key.hash.as_bytes());
        if form == Form::Inputs {
            let program = core.store.program(&key.name)?.ok_or_else(|| StoreError::NoProgram(key.name.clone()))?;
            hasher.update(program.hash.as_bytes());
        }
        let id = random_name().map_err(|e| storage(&e))?;
        let part = core.witnesses.create(&id, hasher, Some(&core.seal.of(&id))).map_err(|e| storage(&e))?;
        Ok(Begun { key, id, form, part })
    }

    pub(super) fn part(&mut self) -> &mut Part {
        &mut self.part
    }

    /// The job, when its blob is on the disk: one without its witness would be lost.
    pub(super) fn keep(self, of: &Caller, wanted: &Wanted, now: i64) -> Result<NewJob, Refusal> {
        let Begun { key, id, form, part } = self;
        let (digest, bytes) = (part.hash().to_hex().to_string(), part.bytes());
        if bytes == 0 {
            return Err(Refusal::bad(
                "the witness is missing: the body is the .wtns file, or with Content-Type: application/json the inputs",
            ));
        }
        part.keep(&id).map_err(|e| storage(&e))?;
        Ok(NewJob {
            id: id.clone(),
            token: of.token.clone(),
            request: wanted.request.clone(),
            digest,
            key: key.name,
            form,
            witness: id,
            witness_bytes: bytes,
            batch: None,
            priority: wanted.priority,
            deadline_ms: wanted.deadline_seconds.map(|seconds| now + seconds * 1000),
        })
    }
}

/// Submits jobs together: all of them, or none. Blobs that are not needed are removed.
pub(super) fn accept(core: &Core, jobs: Vec<NewJob>, now: i64) -> Result<Vec<Submitted>, Refusal> {
    let blobs: Vec<(String, u64)> = jobs.iter().map(|job| (job.witness.clone(), job.witness_bytes)).collect();
    let has_inputs = jobs.iter().any(|job| job.form == Form::Inputs);
    let ageing = i64::from(core.config.ageing_seconds) * 1000;
    let submitted = core.store.submit_all(jobs, now, ageing, core.config.queue);
    let is_unknown = submitted.as_ref().is_err_and(StoreError::is_unknown);
    for (at, (blob, _)) in blobs.iter().enumerate() {
        // A job that may have been written may need it.
        if !is_unknown && !submitted.as_ref().is_ok_and(|submitted| submitted[at].is_new) {
            // Should it stay, the next start sweeps it.
            let _ = core.witnesses.remove(blob);
        }
    }
    let submitted = submitted?;
    for (job, (_, bytes)) in submitted.iter().zip(&blobs) {
        let kind = if job.is_new { "new" } else { "again" };
        core.metrics.add("tandem_submitted_bytes_total", &[], *bytes as f64);
        core.metrics.add("tandem_jobs_submitted_total", &[("kind", kind)], 1.0);
    }
    if submitted.iter().any(|job| job.is_new) {
        core.wake();
        if has_inputs {
            core.wake_calculators();
        }
    }
    Ok(submitted)
}

/// Submits inputs that are there.
pub(super) fn submit_inputs(core: &Core, of: &Caller, wanted: &Wanted, inputs: &[u8]) -> Result<String, Refusal> {
    check_open(core)?;
    let mut begun = Begun::new(core, &wanted.key, Form::Inputs)?;
    begun.part().write(inputs).map_err(|e| storage(&e))?;
    let now = core.now_ms();
    let job = begun.keep(of, wanted, now)?;
    let mut submitted = accept(core, vec![job], now)?;
    Ok(submitted.remove(0).id)
}

pub(super) async fn submit(core: Arc<Core>, of: Caller, request: Request<Incoming>) -> Result<Reply, Refusal> {
    check_open(&core)?;
    let wanted = Wanted::of(&request)?;
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let is_json = kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"));
    let form = if is_json { Form::Inputs } else { Form::Witness };
    let (token, wants) = (of.token.clone(), wanted.clone());
    let (reader, begun) = blocking(&core, move |core| {
        if let (Some(token), None) = (&token, &wants.request) {
            core.store.token_room(token)?;
        }
        let begun = Begun::new(core, &wants.key, form)?;
        let what = if is_json { "a job's inputs" } else { "a witness of this key" };
        let reader = Reader::new(request, what, content_max(core, &begun.key, form), core.config.stall_seconds)?;
        Ok((reader, begun))
    })
    .await?;
    let Begun { key, id, form, part } = begun;
    let part = reader.into_part(part).await?;
    blocking(&core, move |core| {
        let now = core.now_ms();
        let job = Begun { key, id, form, part }.keep(&of, &wanted, now)?;
        let submitted = accept(core, vec![job], now)?.remove(0);
        let status = if submitted.is_new { StatusCode::CREATED } else { StatusCode::OK };
        Ok(json(status, &view(core, &submitted.id)?))
    })
    .await
}

/// Submits the files of a tar archive as one.
pub(super) async fn submit_batch(core: Arc<Core>, of: Caller, request: Request<Incoming>) -> Result<Reply, Refusal> {
    check_open(&core)?;
    let wanted = Wanted::of(&request)?;
    let (token, wants) = (of.token.clone(), wanted.clone());
    let reader = blocking(&core, move |core| {
        if let (Some(token), None) = (&token, &wants.request) {
            core.store.token_room(token)?;
        }
        let key = core.store.key(&wants.key)?.ok_or(StoreError::NoKey(wants.key))?;
        Reader::new(request, "a batch of this key", batch::bytes_max(core, &key), core.config.stall_seconds)
    })
    .await?;
    let core_of = core.clone();
    let jobs = reader.into_blocking(move |body| batch::unpack(&core_of, &of, &wanted, body)).await?;
    blocking(&core, move |core| {
        let submitted = accept(core, jobs, core.now_ms())?;
        let is_new = submitted.iter().any(|job| job.is_new);
        let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
        let id = core.store.batch_of(&submitted[0].id)?;
        let id = id
            .ok_or_else(|| Refusal::new(StatusCode::CONFLICT, "other_content", StoreError::OtherContent.to_string()))?;
        Ok(json(status, &batch::view(&id, &core.store.batch(&id)?)))
    })
    .await
}
