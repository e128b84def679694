//! Batches: several jobs of one key that came as one tar archive. They stand one behind the other in the queue, so that the key stays on
//! its device.

use super::body::{storage, Pieces};
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
pub(crate) fn bytes_max(core: &Core, key: &KeyRow) -> u64 {
    let item = content_max(core, key, Form::Witness).max(content_max(core, key, Form::Inputs));
    // A head before each file, and what fills its last 512 bytes.
    item.saturating_add(1024).saturating_mul(ITEMS as u64)
}

/// The jobs of a batch while their files come. What was written goes unless it is finished.
pub(crate) struct Files<'a> {
    core: &'a Core,
    of: &'a Caller,
    wanted: &'a Wanted,
    batch: String,
    now: i64,
    jobs: Vec<NewJob>,
}

/// A file that comes.
pub(crate) struct File {
    name: String,
    most: u64,
    begun: Begun,
}

impl Drop for Files<'_> {
    fn drop(&mut self) {
        for job in &self.jobs {
            // Should it stay, the next start sweeps it.
            let _ = self.core.witnesses.remove(&job.witness);
        }
    }
}

impl<'a> Files<'a> {
    pub(super) fn new(core: &'a Core, of: &'a Caller, wanted: &'a Wanted) -> Result<Files<'a>, Refusal> {
        let batch = random_name().map_err(|e| storage(&e))?;
        Ok(Files { core, of, wanted, batch, now: core.now_ms(), jobs: Vec::new() })
    }

    /// Begins the next file.
    pub(crate) fn begin(&self, name: &str, form: Form) -> Result<File, Refusal> {
        if self.jobs.len() == ITEMS {
            return Err(Refusal::bad(format!("expected at most {ITEMS} files in a batch; send several")));
        }
        // A batch has many: none of them stays in memory.
        let begun = Begun::new(self.core, &self.wanted.key, form, false)?;
        let most = content_max(self.core, &begun.key, form);
        Ok(File { name: shown(name), most, begun })
    }

    /// Makes a job of a file that is there as a whole.
    pub(crate) fn keep(&mut self, file: File) -> Result<(), Refusal> {
        let File { name, most, mut begun } = file;
        if begun.part().bytes() == 0 {
            return Err(too_large(&name, 0, most));
        }
        let item = self.jobs.len() as u64;
        let mut job = begun.keep(self.of, self.wanted, self.now)?;
        job.batch = Some((self.batch.clone(), item, name));
        self.jobs.push(job);
        Ok(())
    }

    /// The jobs, if there are any.
    pub(crate) fn finish(mut self) -> Result<Vec<NewJob>, Refusal> {
        if self.jobs.is_empty() {
            return Err(Refusal::bad("the batch has no files: expected .wtns files, or .json files of inputs"));
        }
        let mut jobs = std::mem::take(&mut self.jobs);
        // The caller's id stands for all of them: each has a part of it, and says how many there are.
        let count = jobs.len();
        for (item, job) in jobs.iter_mut().enumerate() {
            job.request = self.wanted.request.as_ref().map(|id| format!("{id}#{item}"));
            job.digest = blake3::hash(format!("{} {item} of {count}", job.digest).as_bytes()).to_hex().to_string();
        }
        Ok(jobs)
    }
}

impl File {
    /// Takes a piece of its content.
    pub(crate) fn write(&mut self, piece: &[u8]) -> Result<(), Refusal> {
        let bytes = self.begun.part().bytes() + piece.len() as u64;
        if bytes > self.most {
            return Err(too_large(&self.name, bytes, self.most));
        }
        self.begun.part().write(piece).map_err(|e| storage(&e))
    }
}

/// A name as it is kept.
fn shown(name: &str) -> String {
    name.chars().take(NAME).map(|c| if c.is_control() { '?' } else { c }).collect()
}

fn too_large(name: &str, bytes: u64, most: u64) -> Refusal {
    let why = format!("{name}: {bytes} bytes; expected 1 to {most}");
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", why)
}

/// Makes a job of each file of a tar archive: one that ends with `.json` is inputs, another a witness.
pub(super) fn unpack(mut files: Files<'_>, body: Pieces) -> Result<Vec<NewJob>, Refusal> {
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
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if !kind.is_file() {
            let is_extra = kind.is_pax_global_extensions() || kind.is_pax_local_extensions() || kind.is_gnu_longname();
            match is_extra && bytes <= EXTRA {
                true => continue,
                false => return Err(Refusal::bad(format!("{}: expected plain files in the archive", shown(&name)))),
            }
        }
        let form = if shown(&name).ends_with(".json") { Form::Inputs } else { Form::Witness };
        let mut file = files.begin(&name, form)?;
        if bytes > file.most {
            return Err(too_large(&file.name, bytes, file.most));
        }
        let mut piece = Zeroizing::new(vec![0; PIECE]);
        loop {
            match entry.read(&mut piece).map_err(bad)? {
                0 => break,
                count => file.write(&piece[..count])?,
            }
        }
        if file.begun.part().bytes() != bytes {
            return Err(Refusal::bad(format!("{}: the archive was cut off; send it again", file.name)));
        }
        files.keep(file)?;
    }
    // What fills the last block.
    std::io::copy(&mut archive.into_inner(), &mut std::io::sink()).map_err(bad)?;
    files.finish()
}

/// The jobs of a batch that this caller sees.
pub(crate) fn known(core: &Core, caller: &Caller, id: &str) -> Result<Vec<Job>, Refusal> {
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
        let (jobs, cancelled) = cancelled(core, &caller, &id)?;
        let mut value = view(&id, &jobs);
        value["cancelled"] = cancelled.into();
        Ok(value)
    })
    .await?;
    Ok(json(StatusCode::OK, &value))
}

/// Cancels the jobs of a batch that have not ended. Returns all of them, and how many were cancelled.
pub(crate) fn cancelled(core: &Core, caller: &Caller, id: &str) -> Result<(Vec<Job>, usize), Refusal> {
    let mut cancelled = 0;
    for job in known(core, caller, id)?.iter().filter(|job| !job.is_final()) {
        cancelled += usize::from(matches!(core.cancel(&job.id)?, Cancelled::Now(..)));
    }
    Ok((known(core, caller, id)?, cancelled))
}
