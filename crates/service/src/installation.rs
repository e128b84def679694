//! The secrets of an installation, and what all its nodes must have in common.
//!
//! Nodes have the key for witnesses as a file of their own, which the operator copies: it lies neither in the database nor in the folder
//! that they share, so that who copies either sees no witness. The database has a mark of it, the hash of a fixed text keyed with it, by
//! which a node with another key is refused before it takes a job. The folder of blobs has a mark, too: one that is not mounted has none. So
//! has a bucket.

use crate::blobs::Root;
use crate::config::Config;
use crate::objects::Bucket;
use crate::seal::{Seal, KEY};
use crate::store::Store;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// What the mark of a secret is the hash of.
const MARK: &[u8] = b"tandem: mark of a secret of an installation";

/// The object that marks a bucket.
const OBJECT: &str = "installation";

/// From what hashes of contents are keyed with, where nodes share one key.
const DIGESTS: &str = "tandem 2026-11-26 hashes of the contents of jobs";

/// What hashes of contents are keyed with, and what witnesses are sealed with.
///
/// # Errors
/// One sentence: a file cannot be read or made, or is another one than that of the other nodes.
pub(crate) fn secrets(config: &Config, store: &Store, blobs: &Root) -> Result<([u8; KEY], Seal), String> {
    let path = config.witness_key.clone().unwrap_or_else(|| config.data.join("witness_key"));
    if !store.is_shared() {
        return Ok((made(&config.data.join("secret"))?, Seal::new(made(&path)?)));
    }
    let copy = "copy the file witness_key of another node here, for this user alone";
    match blobs {
        Root::Folder(folder) => {
            let other = "the folder is another one than that of the other nodes; mount theirs";
            agreed(store, "blobs", &folder.join("installation"), other).map(drop)?;
        }
        Root::Bucket(bucket) => same_bucket(store, bucket)?,
    }
    let key =
        agreed(store, "witness_key", &path, &format!("the key is another one than that of the other nodes; {copy}"))?;
    Ok((blake3::derive_key(DIGESTS, &key), Seal::new(key)))
}

/// A secret that all nodes have: made by the first of them.
fn agreed(store: &Store, name: &str, path: &Path, other: &str) -> Result<[u8; KEY], String> {
    let failed = |e: crate::store::StoreError| e.to_string();
    let differs = || format!("{}: {other}", path.display());
    if store.agreed(name).map_err(failed)?.is_some() && !path.exists() {
        return Err(differs());
    }
    let secret = made(path)?;
    let mark = blake3::keyed_hash(&secret, MARK).to_hex().to_string();
    match store.agree(name, &mark).map_err(failed)? == mark {
        true => Ok(secret),
        false => Err(differs()),
    }
}

/// Fails where the bucket is not that of the other nodes. Its mark is an object whose content the database has: so nodes that begin at
/// once write the same, and one whose bucket has none when there was one before is told.
fn same_bucket(store: &Store, bucket: &Bucket) -> Result<(), String> {
    let failed = |e: crate::store::StoreError| e.to_string();
    let other = || {
        format!(
            "{}: the bucket is another one than that of the other nodes; name theirs in blobs",
            bucket.shown(OBJECT)
        )
    };
    let random = crate::blobs::random_name().map_err(|e| e.to_string())?;
    let mark = store.agree("bucket", &random).map_err(failed)?;
    match bucket.get(OBJECT).map_err(|e| e.to_string())? {
        Some(found) if found == mark.as_bytes() => {}
        Some(_) => return Err(other()),
        None if store.agreed("bucket_marked").map_err(failed)?.is_some() => return Err(other()),
        None => bucket.put(OBJECT, mark.into_bytes().into()).map_err(|e| e.to_string())?,
    }
    store.agree("bucket_marked", "1").map(drop).map_err(failed)
}

/// 32 random bytes in a file, made where there is none.
fn made(path: &Path) -> Result<[u8; KEY], String> {
    secret(path).map_err(|e| format!("{}: cannot read {KEY} bytes: {e}", path.display()))
}

fn secret(path: &Path) -> std::io::Result<[u8; KEY]> {
    let mut secret = [0; KEY];
    match File::open(path) {
        Ok(mut file) => file.read_exact(&mut secret)?,
        Err(e) if e.kind() == ErrorKind::NotFound => {
            getrandom::fill(&mut secret).map_err(|e| std::io::Error::other(e.to_string()))?;
            // Of nodes that make it at once, each has a name of its own for it until it is whole.
            let part = path.with_extension(format!("{}.part", crate::blobs::random_name()?));
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
            file.write_all(&secret)?;
            file.sync_all()?;
            // Unlike a rename, a link leaves a file that has come meanwhile.
            let linked = fs::hard_link(&part, path);
            fs::remove_file(&part)?;
            match linked {
                Err(e) if e.kind() == ErrorKind::AlreadyExists => File::open(path)?.read_exact(&mut secret)?,
                linked => linked?,
            }
        }
        Err(e) => return Err(e),
    }
    Ok(secret)
}
