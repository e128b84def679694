//! Keys: registered by path or by upload, listed, taken off devices, removed.

use super::body::{storage, Reader};
use super::{blocking, json, Refusal, Reply};
use crate::config::{is_name, NAME};
use crate::core::{Core, Unregistered};
use crate::log::log;
use crate::store::{KeyRow, StoreError};
use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use serde::Deserialize;
use serde_json::{json, Value};
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes of a request to register by path.
const REGISTER: u64 = 16 << 10;

/// A key to be registered by path.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Register {
    name: String,
    path: PathBuf,
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
    let text = Reader::new(request, "this request", REGISTER, core.config.stall_seconds)?.whole().await?;
    let wanted: Register = serde_json::from_slice(&text)
        .map_err(|e| Refusal::bad(format!("expected {{\"name\": ..., \"path\": ...}}: {e}")))?;
    let (key, is_new) = blocking(core, move |core| {
        let forbidden = |why: &str| Refusal::new(StatusCode::FORBIDDEN, "path_not_allowed", why);
        let folder = core.config.key_folder.as_ref();
        let folder = folder.ok_or_else(|| forbidden("this service has no key_folder; upload the key, or set one"))?;
        let outside = || forbidden("the path names no file in the service's key_folder");
        // Links are followed first: one in the folder may lead out of it.
        let path = folder.join(&wanted.path).canonicalize().map_err(|_| outside())?;
        let folder = folder.canonicalize().map_err(|_| outside())?;
        if !path.starts_with(&folder) || !path.is_file() {
            return Err(outside());
        }
        let (key, is_new) = core.register(&wanted.name, &path, false)?;
        Ok((view(core, &key), is_new))
    })
    .await?;
    Ok(json(created(is_new), &key))
}

pub(super) async fn upload(core: Arc<Core>, name: String, request: Request<Incoming>) -> Result<Reply, Refusal> {
    if !is_name(&name) {
        return Err(Refusal::bad(format!("'{name}': {NAME}")));
    }
    let limit = core.config.max_key_mib << 20;
    let reader = Reader::new(request, "a key", limit, core.config.stall_seconds)?;
    let part = blocking(&core, |core| core.keys.create(blake3::Hasher::new()).map_err(|e| storage(&e))).await?;
    let part = reader.into_part(part).await?;
    let (key, is_new) = blocking(&core, move |core| {
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
        let (key, is_new) = core.register(&name, &core.keys.path(&file), true)?;
        Ok((view(core, &key), is_new))
    })
    .await?;
    Ok(json(created(is_new), &key))
}

pub(super) async fn remove(core: &Arc<Core>, name: String) -> Result<Reply, Refusal> {
    blocking(core, move |core| {
        let (key, is_last) = core.store.remove_key(&name)?;
        core.slots.iter().for_each(|slot| slot.evict(&key.hash));
        if key.is_own && is_last {
            if let Err(error) = core.keys.remove(&key.path) {
                log("key_left", &[("key", &name), ("reason", &error.to_string())]);
            }
        }
        Ok(())
    })
    .await?;
    Ok(json(StatusCode::OK, &json!({"removed": true})))
}

pub(super) async fn evict(core: &Arc<Core>, name: String) -> Result<Reply, Refusal> {
    let key = blocking(core, move |core| known(core, &name)).await?;
    core.slots.iter().for_each(|slot| slot.evict(&key.hash));
    Ok(json(StatusCode::ACCEPTED, &json!({"evicting": key.name})))
}

fn known(core: &Core, name: &str) -> Result<KeyRow, Refusal> {
    Ok(core.store.key(name)?.ok_or_else(|| StoreError::NoKey(name.into()))?)
}

fn created(is_new: bool) -> StatusCode {
    if is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    }
}

fn view(core: &Core, key: &KeyRow) -> Value {
    let has = |slot: &&crate::worker::Slot| slot.status().beat.is_some_and(|beat| beat.keys.contains(&key.hash));
    let on: Vec<&str> = core.slots.iter().filter(has).map(|slot| slot.name.as_str()).collect();
    json!({
        "name": key.name, "hash": key.hash, "bytes": key.bytes, "curve": key.curve, "variables": key.variables,
        "public": key.publics, "domain": key.domain, "uploaded": key.is_own, "on": on,
    })
}
