//! Keys: registered by path or by upload, listed, loaded ahead, taken off devices, removed.

use super::body::{storage, Reader, Source};
use super::jobs::{Query, WAIT};
use super::submit::check_open;
use super::{blocking, json, Refusal, Reply};
use crate::calculate::{check_program, PROGRAM_MAX};
use crate::config::{is_name, NAME};
use crate::core::{Core, Unregistered, STORAGE_FAILED};
use crate::log::log;
use crate::store::{KeyRow, StoreError};
use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use serde::Deserialize;
use serde_json::{json, Value};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How what is uploaded is called to its caller.
pub(crate) const KEY: &str = "a key";
pub(crate) const PROGRAM: &str = "a circuit's program";

/// Bytes of a request to register by path.
const REGISTER: u64 = 16 << 10;

/// A key to be registered by path.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Register {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    /// The circuit's program, beside it.
    pub(crate) program: Option<PathBuf>,
}

impl From<Unregistered> for Refusal {
    fn from(error: Unregistered) -> Refusal {
        match error {
            Unregistered::Bad(why) => Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_key", why),
            Unregistered::Store(error) => error.into(),
        }
    }
}

pub(super) async fn list(core: &Arc<Core>) -> Result<Reply, Refusal> {
    let keys = blocking(core, |core| {
        let keys = core.store.keys()?;
        Ok(keys.iter().map(|key| view(core, key)).collect::<Vec<_>>())
    });
    Ok(json(StatusCode::OK, &json!({"keys": keys.await?})))
}

pub(super) async fn one(core: &Arc<Core>, name: String) -> Result<Reply, Refusal> {
    let key = blocking(core, move |core| Ok(view(core, &known(core, &name)?))).await?;
    Ok(json(StatusCode::OK, &key))
}

pub(super) async fn register(core: &Arc<Core>, request: Request<Incoming>) -> Result<Reply, Refusal> {
    let text = Reader::new(request, "this request", core.config.stall_seconds).within(REGISTER)?.whole().await?;
    let wanted: Register = serde_json::from_slice(&text)
        .map_err(|e| Refusal::bad(format!("expected {{\"name\": ..., \"path\": ...}}: {e}")))?;
    let (key, is_new) =
        blocking(core, move |core| by_path(core, &wanted).map(|(key, is_new)| (view(core, &key), is_new))).await?;
    Ok(json(created(is_new), &key))
}

/// Registers a file of the folder of keys, and the program beside it. Returns whether the key is new.
pub(crate) fn by_path(core: &Core, wanted: &Register) -> Result<(KeyRow, bool), Refusal> {
    let forbidden = |why: &str| Refusal::new(StatusCode::FORBIDDEN, "path_not_allowed", why);
    let folder = core.config.key_folder.as_ref();
    let folder = folder.ok_or_else(|| forbidden("this service has no key_folder; upload the key, or set one"))?;
    let outside = || forbidden("the path names no file in the service's key_folder");
    let root = folder.canonicalize().map_err(|_| outside())?;
    // Links are followed first: one in the folder may lead out of it.
    let inside = |path: &PathBuf| {
        let path = folder.join(path).canonicalize().map_err(|_| outside())?;
        let is_inside = path.starts_with(&root) && path.is_file();
        is_inside.then_some(path).ok_or_else(outside)
    };
    let (path, program) = (inside(&wanted.path)?, wanted.program.as_ref().map(inside).transpose()?);
    let registered = core.register(&wanted.name, &path, false)?;
    if let Some(program) = program {
        core.register_program(&wanted.name, &program, false)?;
    }
    Ok(registered)
}

pub(super) async fn upload(core: Arc<Core>, name: String, request: Request<Incoming>) -> Result<Reply, Refusal> {
    let reader = Reader::new(request, KEY, core.config.stall_seconds);
    let (key, is_new) = take(&core, name, reader).await?;
    Ok(json(created(is_new), &blocking(&core, move |core| Ok(view(core, &key))).await?))
}

/// Takes a key in while it comes. Returns whether it is new.
pub(crate) async fn take<S: Source + 'static>(
    core: &Arc<Core>,
    name: String,
    reader: Reader<S>,
) -> Result<(KeyRow, bool), Refusal> {
    if !is_name(&name) {
        return Err(Refusal::bad(format!("'{name}': {NAME}")));
    }
    let reader = reader.within(core.config.max_key_mib << 20)?;
    let part =
        blocking(core, |core| core.keys.create("", blake3::Hasher::new(), None).map_err(|e| storage(&e))).await?;
    let (part, _) = reader.into_part(part, || None).await?;
    blocking(core, move |core| {
        // By its header it must be a key before it gets a name.
        tandem_engine::key_info(part.path()).map_err(|e| {
            let why = e.to_string().replace(&part.path().display().to_string(), "the key");
            Refusal::from(Unregistered::Bad(why))
        })?;
        let hash = part.hash().to_hex().to_string();
        if let Some(other) = core.store.key(&name)?.filter(|key| key.hash != hash) {
            return Err(StoreError::OtherKey(other.name).into());
        }
        let file = format!("{hash}.zkey");
        part.keep(&file).map_err(|e| storage(&e))?;
        Ok(core.register(&name, &core.keys.path(&file), true)?)
    })
    .await
}

pub(super) async fn upload_program(
    core: Arc<Core>,
    name: String,
    request: Request<Incoming>,
) -> Result<Reply, Refusal> {
    let reader = Reader::new(request, PROGRAM, core.config.stall_seconds);
    let (key, is_new) = take_program(&core, name, reader).await?;
    Ok(json(created(is_new), &blocking(&core, move |core| Ok(view(core, &key))).await?))
}

/// Takes the program that calculates a key's witnesses in while it comes. Returns whether it is new.
pub(crate) async fn take_program<S: Source + 'static>(
    core: &Arc<Core>,
    name: String,
    reader: Reader<S>,
) -> Result<(KeyRow, bool), Refusal> {
    let (reader, of) = (reader.within((core.config.max_key_mib << 20).min(PROGRAM_MAX))?, name.clone());
    let part = blocking(core, move |core| {
        known(core, &of)?;
        core.keys.create("", blake3::Hasher::new(), None).map_err(|e| storage(&e))
    });
    let (part, _) = reader.into_part(part.await?, || None).await?;
    blocking(core, move |core| {
        check_program(part.path()).map_err(Unregistered::Bad)?;
        let hash = part.hash().to_hex().to_string();
        if core.store.program(&name)?.is_some_and(|program| program.hash != hash) {
            return Err(StoreError::OtherProgram(name).into());
        }
        let file = format!("{hash}.program");
        part.keep(&file).map_err(|e| storage(&e))?;
        let is_new = core.register_program(&name, &core.keys.path(&file), true)?;
        Ok((known(core, &name)?, is_new))
    })
    .await
}

pub(super) async fn remove(core: &Arc<Core>, name: String) -> Result<Reply, Refusal> {
    blocking(core, move |core| removed(core, &name)).await?;
    Ok(json(StatusCode::OK, &json!({"removed": true})))
}

/// Removes a key that no open job needs, and its files.
pub(crate) fn removed(core: &Core, name: &str) -> Result<(), Refusal> {
    let program = core.store.program(name)?;
    let (key, is_last) = core.store.remove_key(name)?;
    core.slots.iter().for_each(|slot| slot.evict(&key.hash));
    let others = core.store.programs()?;
    let program = program.filter(|own| own.is_own && others.iter().all(|other| other.path != own.path));
    let files = (key.is_own && is_last).then_some(key.path).into_iter().chain(program.map(|program| program.path));
    for file in files {
        if let Err(error) = core.keys.remove(&file) {
            log("key_left", &[("key", name), ("reason", &error.to_string())]);
        }
    }
    Ok(())
}

pub(super) async fn preload(core: &Arc<Core>, name: String, request: &Request<Incoming>) -> Result<Reply, Refusal> {
    let wait = Query::of(request, &["wait"])?.number("wait", WAIT)?.unwrap_or(0);
    let (key, is_loaded) = preloaded(core, name, wait).await?;
    let status = if is_loaded { StatusCode::OK } else { StatusCode::ACCEPTED };
    let mut key = blocking(core, move |core| Ok(view(core, &key))).await?;
    key["loading"] = (!is_loaded).into();
    Ok(json(status, &key))
}

/// Has each worker of this node load a key, and waits for that for so many seconds, or for as long as a request may wait. Returns whether
/// all have it by then; those that have not go on.
pub(crate) async fn preloaded(core: &Arc<Core>, name: String, wait: i64) -> Result<(KeyRow, bool), Refusal> {
    check_open(core)?;
    let wait = wait.clamp(0, core.config.wait_seconds.into());
    let until = Instant::now() + Duration::from_secs(wait as u64);
    let key = blocking(core, move |core| known(core, &name)).await?;
    let file = core.key_file(&key);
    let loads: Vec<_> = core.slots.iter().map(|slot| (&slot.name, slot.load(file.clone()))).collect();
    let mut are_loaded = true;
    for (worker, load) in loads {
        match tokio::time::timeout_at(until.into(), load).await {
            Ok(Ok(Ok(()))) => {}
            Ok(Ok(Err(why))) => return Err(not_loaded(worker, &why)),
            Ok(Err(_)) => {
                let why = format!("{worker}: the worker ended before it had the key; try again in a moment");
                return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "worker_died", why));
            }
            Err(_) => are_loaded = false,
        }
    }
    Ok((key, are_loaded))
}

/// Why a worker does not have a key.
fn not_loaded(worker: &str, (code, reason): &(String, String)) -> Refusal {
    let (status, code) = match code.as_str() {
        "out_of_memory" => (StatusCode::INSUFFICIENT_STORAGE, "out_of_memory"),
        "bad_input" => (StatusCode::UNPROCESSABLE_ENTITY, "bad_key"),
        "key_lost" => (StatusCode::CONFLICT, "key_lost"),
        STORAGE_FAILED => (StatusCode::SERVICE_UNAVAILABLE, STORAGE_FAILED),
        _ => (StatusCode::SERVICE_UNAVAILABLE, "device"),
    };
    Refusal::new(status, code, format!("{worker}: {reason}"))
}

pub(super) async fn evict(core: &Arc<Core>, name: String) -> Result<Reply, Refusal> {
    let name = blocking(core, move |core| evicted(core, &name).map(|()| name)).await?;
    Ok(json(StatusCode::ACCEPTED, &json!({"evicting": name})))
}

/// Takes a key off the devices of this node.
pub(crate) fn evicted(core: &Core, name: &str) -> Result<(), Refusal> {
    let key = known(core, name)?;
    core.slots.iter().for_each(|slot| slot.evict(&key.hash));
    Ok(())
}

pub(crate) fn known(core: &Core, name: &str) -> Result<KeyRow, Refusal> {
    Ok(core.store.key(name)?.ok_or_else(|| StoreError::NoKey(name.into()))?)
}

fn created(is_new: bool) -> StatusCode {
    if is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    }
}

/// The workers of this node that have a key on their device.
pub(crate) fn workers_with<'a>(core: &'a Core, key: &KeyRow) -> Vec<&'a str> {
    let has = |slot: &&crate::worker::Slot| slot.status().beat.is_some_and(|beat| beat.keys.contains(&key.hash));
    core.slots.iter().filter(has).map(|slot| slot.name.as_str()).collect()
}

fn view(core: &Core, key: &KeyRow) -> Value {
    let on = workers_with(core, key);
    // Where the database fails it is as if there were none.
    let program = core.store.program(&key.name).ok().flatten();
    let program = program.map(|program| json!({"hash": program.hash, "bytes": program.bytes}));
    json!({
        "name": key.name, "hash": key.hash, "bytes": key.bytes, "curve": key.curve, "variables": key.variables,
        "public": key.publics, "domain": key.domain, "uploaded": key.is_own, "on": on, "program": program,
    })
}
