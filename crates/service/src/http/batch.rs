//! Batches: several jobs of one key that came as one tar archive. They stand one behind the other in the queue, so that the key stays on
//! its device.

use super::body::storage;
use super::caller::Caller;
use super::jobs::{summary, Query, WAIT};
use super::submit::{content_max, Begun, Wanted};
use super::{blocking, json, Refusal, Reply};
use crate::blobs::random_name;
use crate::core::Core;
use crate::store::{Cancelled, Form, Job, KeyRow, NewJob, State};
use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use serde_json::{json, Value};
use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// Items of a batch at most.
const ITEMS: usize = 1000;

/// Bytes of an item's name that are kept.
const NAME: usize = 100;

/// Bytes of what an archive says beside its files, such as long names, at most.
const EXTRA: u64 = 64 << 10;

/// Bytes that are moved at a time.
const PIECE: usize = 64 << 10;

/// Bytes of an archive of a key's witnesses or inputs at most.
pub(super) fn bytes_max(core: &Core, key: &KeyRow) -> u64 {
    let item = content_max(core, key, Form::Witness).max(content_max(core, key, Form::Inputs));
    // A head before each file, and what fills its last 512 bytes.
    item.saturating_add(1024).saturating_mul(ITEMS as u64)
}

/// Makes a job of each file: one that ends with `.json` is inputs, another a witness. What is written goes where this fails.
pub(super) fn unpack(core: &Core, of: &Caller, wanted: &Wanted, body: impl Read) -> Result<Vec<NewJob>, Refusal> {
    let mut jobs = Vec::new();
    let unpacked = unpack_into(core, of, wanted, body, &mut jobs);
    if unpacked.is_err() {
        for job in &jobs {
            let _ = core.witnesses.remove(&job.witness);
        }
    }
    unpacked.map(|()| jobs)
}

fn unpack_into(
    core: &Core,
    of: &Caller,
    wanted: &Wanted,
    body: impl Read,
    jobs: &mut Vec<NewJob>,
) -> Result<(), Refusal> {
    let batch = random_name().map_err(|e| storage(&e))?;
    let now = core.now_ms();
    let mut archive = tar::Archive::new(body);
    let bad =
        |e: std::io::Error| Refusal::bad(format!("the body is no tar archive, or was cut off: {e}; send it again"));
    // Raw: what an archive says of long names and the like would be taken into memory whole.
    for entry in archive.entries().map_err(bad)?.raw(true) {
        let mut entry = entry.map_err(bad)?;
        let (kind, bytes) = (entry.header().entry_type(), entry.size());
        if kind.is_dir() {
            continue;
        }
        let name: String = String::from_utf8_lossy(&entry.path_bytes()).chars().take(NAME).collect();
        let name: String = name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        if !kind.is_file() {
            let is_extra = kind.is_pax_global_extensions() || kind.is_pax_local_extensions() || kind.is_gnu_longname();
            match is_extra && bytes <= EXTRA {
                true => continue,
                false => return Err(Refusal::bad(format!("{name}: expected plain files in the archive"))),
            }
        }
        if jobs.len() == ITEMS {
            return Err(Refusal::bad(format!("expected at most {ITEMS} files in a batch; send several")));
        }
        let form = if name.ends_with(".json") { Form::Inputs } else { Form::Witness };
        let mut begun = Begun::new(core, &wanted.key, form)?;
        let most = content_max(core, &begun.key, form);
        if bytes == 0 || bytes > most {
            let why = format!("{name}: {bytes} bytes; expected 1 to {most}");
            return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", why));
        }
        let mut piece = Zeroizing::new(vec![0; PIECE]);
        loop {
            match entry.read(&mut piece).map_err(bad)? {
                0 => break,
                count => begun.part().write(&piece[..count]).map_err(|e| storage(&e))?,
            }
        }
        if begun.part().bytes() != bytes {
            return Err(Refusal::bad(format!("{name}: the archive was cut off; send it again")));
        }
        let item = jobs.len() as u64;
        let mut job = begun.keep(of, wanted, now)?;
        job.batch = Some((batch.clone(), item, name));
        jobs.push(job);
    }
    // What fills the last block.
    std::io::copy(&mut archive.into_inner(), &mut std::io::sink()).map_err(bad)?;
    if jobs.is_empty() {
        return Err(Refusal::bad("the archive has no files: expected .wtns files, or .json files of inputs"));
    }
    // The caller's id stands for all of them: each has a part of it, and says how many there are.
    let count = jobs.len();
    for (item, job) in jobs.iter_mut().enumerate() {
        job.request = wanted.request.as_ref().map(|id| format!("{id}#{item}"));
        job.digest = blake3::hash(format!("{} {item} of {count}", job.digest).as_bytes()).to_hex().to_string();
    }
    Ok(())
}

fn known(core: &Core, caller: &Caller, id: &str) -> Result<Vec<Job>, Refusal> {
    let jobs: Vec<Job> = core.store.batch(id)?.into_iter().filter(|job| caller.sees(job)).collect();
    match jobs.is_empty() {
        true => Err(Refusal::new(
            StatusCode::NOT_FOUND,
            "no_batch",
            "there is no such batch; those that ended long ago are forgotten",
        )),
        false => Ok(jobs),
    }
}

fn item(job: &Job) -> Value {
    let mut value = summary(job);
    value["item"] = job.item.as_ref().map(|(item, _)| *item).into();
    value["name"] = job.item.as_ref().map(|(_, name)| name.as_str()).into();
    value
}

/// A batch: how many of its jobs are where, and each of them.
pub(super) fn view(id: &str, jobs: &[Job]) -> Value {
    let count = |state: State| jobs.iter().filter(|job| job.state == state).count();
    let counts: serde_json::Map<String, Value> =
        State::ALL.iter().map(|state| (state.name().into(), count(*state).into())).collect();
    json!({
        "id": id, "key": jobs.first().map(|job| job.key.as_str()), "ended": jobs.iter().all(Job::is_final), "counts": counts,
        "items": jobs.iter().map(item).collect::<Vec<_>>(),
    })
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
    let mut ends = core.ends.subscribe();
    loop {
        let (of, caller) = (id.clone(), caller.clone());
        let jobs = blocking(core, move |core| known(core, &caller, &of)).await?;
        if jobs.iter().all(Job::is_final) || core.is_draining() || Instant::now() >= until {
            return Ok(json(StatusCode::OK, &view(&id, &jobs)));
        }
        // Until one of those that are open ends; one whose end is missed is looked for.
        let look = until.min(Instant::now() + Duration::from_secs(1));
        while let Ok(Ok(ended)) = tokio::time::timeout_at(look.into(), ends.recv()).await {
            if jobs.iter().any(|job| job.id == ended) {
                break;
            }
        }
    }
}

pub(super) async fn results(core: &Arc<Core>, caller: Caller, id: String) -> Result<Reply, Refusal> {
    let value = blocking(core, move |core| {
        let jobs = known(core, &caller, &id)?;
        let mut items = Vec::with_capacity(jobs.len());
        for job in &jobs {
            let mut value = item(job);
            if let Some(result) = core.store.result(&job.id)? {
                let parsed = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
                (value["proof"], value["public"]) = (parsed(&result.proof), parsed(&result.publics));
            }
            items.push(value);
        }
        Ok(json!({"id": id, "items": items}))
    })
    .await?;
    Ok(json(StatusCode::OK, &value))
}

pub(super) async fn cancel(core: &Arc<Core>, caller: Caller, id: String) -> Result<Reply, Refusal> {
    let value = blocking(core, move |core| {
        let mut cancelled = 0;
        for job in known(core, &caller, &id)?.iter().filter(|job| !job.is_final()) {
            cancelled += usize::from(matches!(core.cancel(&job.id)?, Cancelled::Now(..)));
        }
        let mut value = view(&id, &known(core, &caller, &id)?);
        value["cancelled"] = cancelled.into();
        Ok(value)
    })
    .await?;
    Ok(json(StatusCode::OK, &value))
}
