//! Submissions: a witness or inputs of a key, or many at once.

use super::batch::Files;
use super::body::{storage, Pieces, Reader, Source};
use super::caller::Caller;
use super::jobs::{view, Query};
use super::{batch, blocking, json, Refusal, Reply};
use crate::blobs::{random_name, Part};
use crate::core::Core;
use crate::store::{Form, KeyRow, NewJob, StoreError, Submitted};
use crate::traces::Parent;
use crate::worker::Offer;
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::{HeaderMap, Request, StatusCode};
use std::sync::Arc;

/// The header of the caller's id.
const REQUEST_ID: &str = "idempotency-key";

/// The header of the caller's span (W3C Trace Context).
const TRACE: &str = "traceparent";

/// Bytes of a `.wtns` file beside its values: heads of sections, and what other programs add.
const WITNESS_HEAD: u64 = 4096;

/// Bytes before the values of a `.wtns` file as all tools write it for the curves that there are.
const USUAL_HEAD: u64 = 76;

/// Bytes of a value, and of the number of a wire.
const VALUE: u64 = 32;
const NUMBER: u64 = 4;

/// Bytes of a witness of a key at most. Keys of bellperson are for BLS12-381, and their witnesses come with the sides of the constraints: a
/// row of the domain has two values, and each side names wires.
pub(crate) fn witness_max(key: &KeyRow) -> u64 {
    let sides = match key.curve.as_str() {
        "bls12-381" => key.domain.saturating_mul(2 * VALUE).saturating_add(key.variables.saturating_mul(2 * NUMBER)),
        _ => 0,
    };
    key.variables.saturating_mul(VALUE).saturating_add(sides).saturating_add(WITNESS_HEAD)
}

/// What is said of a job beside its content.
#[derive(Clone)]
pub(crate) struct Wanted {
    pub(crate) key: String,
    pub(crate) priority: i64,
    pub(crate) deadline_seconds: Option<i64>,
    pub(crate) request: Option<String>,
    /// The caller's span.
    pub(crate) parent: Option<Parent>,
}

/// The caller's span, if the head of a request names one.
pub(crate) fn parent_of(headers: &HeaderMap) -> Option<Parent> {
    // Two of them are none.
    let mut named = headers.get_all(TRACE).iter();
    named.next().filter(|_| named.next().is_none()).and_then(|text| Parent::read(text.to_str().ok()?))
}

/// Priorities, and seconds of a deadline, that may be wanted.
pub(crate) const PRIORITIES: (i64, i64) = (-100, 100);
pub(crate) const DEADLINES: (i64, i64) = (1, 366 * 24 * 3600);

impl Wanted {
    fn of(request: &Request<Incoming>) -> Result<Wanted, Refusal> {
        let query = Query::of(request, &["key", "priority", "deadline_seconds"])?;
        let path = request.uri().path();
        let key = query.get("key").ok_or_else(|| Refusal::bad(format!("say which key: POST {path}?key=NAME")))?;
        let priority = query.number("priority", PRIORITIES)?.unwrap_or(0);
        let deadline_seconds = query.number("deadline_seconds", DEADLINES)?;
        let id = request.headers().get(REQUEST_ID).map(|id| request_id(id.as_bytes())).transpose()?;
        let parent = parent_of(request.headers());
        Ok(Wanted { key: key.into(), priority, deadline_seconds, request: id, parent })
    }

    /// A job of a key, as other interfaces submit it.
    pub(super) fn plain(key: &str) -> Wanted {
        Wanted { key: key.into(), priority: 0, deadline_seconds: None, request: None, parent: None }
    }
}

/// The caller's id of a job.
pub(crate) fn request_id(id: &[u8]) -> Result<String, Refusal> {
    let is_id = (1..=200).contains(&id.len()) && id.iter().all(u8::is_ascii_graphic);
    let id = is_id.then(|| String::from_utf8_lossy(id).into_owned());
    let expected = "Idempotency-Key: expected 1 to 200 letters, digits and signs without spaces";
    id.ok_or_else(|| Refusal::bad(expected))
}

/// A job whose content is on its way into a blob.
pub(super) struct Begun {
    pub(super) key: KeyRow,
    id: String,
    form: Form,
    part: Part,
}

/// What is refused before anything of a body is read.
pub(crate) fn check_open(core: &Core) -> Result<(), Refusal> {
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
    /// Begins the blob of a job of this key. Where it `may_be_small`, a small witness is kept in memory until its job is there.
    pub(super) fn new(core: &Core, key: &str, form: Form, may_be_small: bool) -> Result<Begun, Refusal> {
        let key = core.store.key(key)?.ok_or_else(|| StoreError::NoKey(key.into()))?;
        // What the content of a job is hashed with, begun with its key's, and with that of the program.
        let mut hasher = blake3::Hasher::new_keyed(&core.secret);
        hasher.update(key.hash.as_bytes());
        if form == Form::Inputs {
            let program = core.store.program(&key.name)?.ok_or_else(|| StoreError::NoProgram(key.name.clone()))?;
            hasher.update(program.hash.as_bytes());
        }
        let id = random_name().map_err(|e| storage(&e))?;
        let seal = core.seal.of(&id);
        let part = match may_be_small && form == Form::Witness && core.config.small_in_database {
            true => core.witnesses.create_later(&id, hasher, &seal),
            false => core.witnesses.create(&id, hasher, Some(&seal)),
        };
        let part = part.map_err(|e| storage(&e))?;
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
        let content = part.keep(&id).map_err(|e| storage(&e))?;
        Ok(NewJob {
            id: id.clone(),
            token: of.token.clone(),
            request: wanted.request.clone(),
            digest,
            key: key.name,
            form,
            witness: id,
            witness_bytes: bytes,
            content,
            batch: None,
            priority: wanted.priority,
            deadline_ms: wanted.deadline_seconds.map(|seconds| now + seconds * 1000),
            traceparent: wanted.parent.map(|parent| parent.to_string()),
        })
    }
}

/// Submits jobs together: all of them, or none. Blobs that are not needed are removed.
pub(super) fn accept(core: &Core, jobs: Vec<NewJob>, now: i64) -> Result<Vec<Submitted>, Refusal> {
    let blobs: Vec<_> =
        jobs.iter().map(|job| (job.witness.clone(), job.witness_bytes, job.content.is_some())).collect();
    let has_inputs = jobs.iter().any(|job| job.form == Form::Inputs);
    let ageing = i64::from(core.config.ageing_seconds) * 1000;
    let submitted = core.store.submit_all(jobs, now, ageing, core.config.queue);
    let is_unknown = submitted.as_ref().is_err_and(StoreError::is_unknown);
    for (at, (blob, _, is_small)) in blobs.iter().enumerate() {
        // A job that may have been written may need it.
        if !is_unknown && !submitted.as_ref().is_ok_and(|submitted| submitted[at].is_new) {
            core.held.forget(blob);
            // Should it stay, the next start sweeps it.
            let _ = if *is_small { Ok(()) } else { core.witnesses.remove(blob) };
        }
    }
    let submitted = submitted?;
    for (job, (_, bytes, _)) in submitted.iter().zip(&blobs) {
        let kind = if job.is_new { "new" } else { "again" };
        core.metrics.add("tandem_submitted_bytes_total", &[], *bytes as f64);
        core.metrics.add("tandem_jobs_submitted_total", &[("kind", kind)], 1.0);
    }
    if let Some(job) = submitted.iter().find(|job| job.is_new) {
        core.wake_for(&job.id);
        if has_inputs {
            core.wake_calculators();
        }
    }
    Ok(submitted)
}

/// Submits inputs that are there.
pub(super) fn submit_inputs(core: &Core, of: &Caller, wanted: &Wanted, inputs: &[u8]) -> Result<String, Refusal> {
    check_open(core)?;
    let mut begun = Begun::new(core, &wanted.key, Form::Inputs, false)?;
    begun.part().write(inputs).map_err(|e| storage(&e))?;
    let now = core.now_ms();
    let job = begun.keep(of, wanted, now)?;
    let mut submitted = accept(core, vec![job], now)?;
    Ok(submitted.remove(0).id)
}

pub(super) async fn submit(core: Arc<Core>, of: Caller, request: Request<Incoming>) -> Result<Reply, Refusal> {
    let wanted = Wanted::of(&request)?;
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let is_json = kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"));
    let form = if is_json { Form::Inputs } else { Form::Witness };
    let reader = Reader::new(request, form.what(), core.config.stall_seconds);
    let submitted = take(&core, of, wanted, form, reader).await?;
    let status = if submitted.is_new { StatusCode::CREATED } else { StatusCode::OK };
    blocking(&core, move |core| Ok(json(status, &view(core, &submitted.id)?))).await
}

/// Takes in a job's content while it comes, and submits the job.
pub(crate) async fn take<S: Source + 'static>(
    core: &Arc<Core>,
    of: Caller,
    wanted: Wanted,
    form: Form,
    reader: Reader<S>,
) -> Result<Submitted, Refusal> {
    check_open(core)?;
    let (token, wants) = (of.token.clone(), wanted.clone());
    let (begun, most) = blocking(core, move |core| {
        if let (Some(token), None) = (&token, &wants.request) {
            core.store.token_room(token)?;
        }
        let begun = Begun::new(core, &wants.key, form, true)?;
        let most = content_max(core, &begun.key, form);
        Ok((begun, most))
    })
    .await?;
    let Begun { key, id, form, part } = begun;
    let reader = reader.within(most)?;
    // Where it is not said how many bytes come, most come with these. Others are read for nothing.
    let expected = reader.said().unwrap_or_else(|| USUAL_HEAD.saturating_add(key.variables.saturating_mul(VALUE)));
    let room = || {
        let held = if form == Form::Witness { core.held.take(most) } else { None };
        // A worker may read it while it comes: only what is accepted below is proved.
        if let Some(held) = &held {
            let held = Arc::downgrade(held);
            core.offer(Offer { job: id.clone(), key: key.hash.clone(), bytes: expected, held });
        }
        held
    };
    let (part, held) = reader.into_part(part, room).await?;
    blocking(core, move |core| {
        let now = core.now_ms();
        let job = Begun { key, id, form, part }.keep(&of, &wanted, now)?;
        // Before the job is there, so that whichever worker takes it finds it.
        if let Some(held) = held {
            core.held.keep(&job.id, held);
        }
        Ok(accept(core, vec![job], now)?.remove(0))
    })
    .await
}

impl Form {
    /// How the content of a job is called to its caller.
    pub(crate) fn what(self) -> &'static str {
        match self {
            Form::Inputs => "a job's inputs",
            _ => "a witness of this key",
        }
    }
}

/// Submits the files of a tar archive as one.
pub(super) async fn submit_batch(core: Arc<Core>, of: Caller, request: Request<Incoming>) -> Result<Reply, Refusal> {
    check_open(&core)?;
    let wanted = Wanted::of(&request)?;
    let reader = Reader::new(request, BATCH, core.config.stall_seconds);
    let (id, is_new) = take_batch(&core, of, wanted, reader, 1, batch::unpack).await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    blocking(&core, move |core| Ok(json(status, &batch::view(&id, &core.store.batch(&id)?)))).await
}

/// How a batch is called to its caller.
pub(crate) const BATCH: &str = "a batch of this key";

/// Takes in the files of a batch while they come, and submits them as one. The content comes with at most `times` as many bytes as it would
/// have as an archive. Returns the batch's name, and whether a job of it is new.
pub(crate) async fn take_batch<S: Source + 'static>(
    core: &Arc<Core>,
    of: Caller,
    wanted: Wanted,
    reader: Reader<S>,
    times: u64,
    unpack: impl FnOnce(Files<'_>, Pieces) -> Result<Vec<NewJob>, Refusal> + Send + 'static,
) -> Result<(String, bool), Refusal> {
    let (token, wants) = (of.token.clone(), wanted.clone());
    let most = blocking(core, move |core| {
        if let (Some(token), None) = (&token, &wants.request) {
            core.store.token_room(token)?;
        }
        let key = core.store.key(&wants.key)?.ok_or(StoreError::NoKey(wants.key))?;
        Ok(batch::bytes_max(core, &key).saturating_mul(times))
    })
    .await?;
    let core_of = core.clone();
    let unpack = move |body| unpack(Files::new(&core_of, &of, &wanted)?, body);
    let jobs = reader.within(most)?.into_blocking(unpack).await?;
    blocking(core, move |core| {
        let submitted = accept(core, jobs, core.now_ms())?;
        let id = core.store.batch_of(&submitted[0].id)?;
        let id = id
            .ok_or_else(|| Refusal::new(StatusCode::CONFLICT, "other_content", StoreError::OtherContent.to_string()))?;
        Ok((id, submitted.iter().any(|job| job.is_new)))
    })
    .await
}
