//! A key that is missing in the bucket, or has another length there, is put there again by a node that has it: somebody may have removed
//! it, or a rule of the bucket.

use crate::core::Core;
use crate::log::log;
use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A file that all nodes are to have: its name in the bucket, its hash, its bytes, and where this node may have it.
struct Kept {
    name: String,
    hash: String,
    bytes: u64,
    files: Vec<PathBuf>,
}

/// Looks after the keys of a bucket, if there is one, as long as the process lives.
///
/// # Errors
/// One sentence: no thread can be started.
pub(crate) fn start(core: &Arc<Core>) -> Result<(), String> {
    if !core.keys.are_objects() {
        return Ok(());
    }
    let (core, pause) = (core.clone(), Duration::from_secs(core.config.lease_seconds.into()));
    let mut told = HashSet::new();
    let run = move || loop {
        std::thread::sleep(pause);
        if let Err(error) = look(&core, &mut told) {
            log("blobs_failed", &[("reason", &error.to_string())]);
        }
    };
    let thread = std::thread::Builder::new().name("keys".into()).spawn(run);
    thread.map(drop).map_err(|e| format!("no thread can be started: {e}"))
}

fn kept(core: &Core) -> Result<Vec<Kept>, crate::store::StoreError> {
    let files =
        |name: &str, of: Option<&PathBuf>| [Some(core.keys.path(name)), of.cloned()].into_iter().flatten().collect();
    let mut all = Vec::new();
    for key in core.store.keys()? {
        let files = files(&key.path, core.config.keys.get(&key.name));
        all.push(Kept { name: key.path, hash: key.hash, bytes: key.bytes, files });
    }
    for program in core.store.programs()? {
        let files = files(&program.path, core.config.programs.get(&program.key));
        all.push(Kept { name: program.path, hash: program.hash, bytes: program.bytes, files });
    }
    Ok(all)
}

/// `told` has the names that were missing before, and that this node does not have either.
fn look(core: &Core, told: &mut HashSet<String>) -> io::Result<()> {
    // First the rows: what is in one was in the bucket before.
    let kept = kept(core).map_err(io::Error::other)?;
    let listed: HashSet<(String, u64)> = core.keys.list("")?.into_iter().collect();
    for Kept { name, hash, bytes, files } in kept {
        if listed.contains(&(name.clone(), bytes)) {
            told.remove(&name);
            continue;
        }
        let has = |file: &&PathBuf| file.metadata().is_ok_and(|about| about.len() == bytes);
        match files.iter().find(has) {
            Some(file) => {
                core.keys.take_in(file, &name, &hash)?;
                log("key_published", &[("file", &name)]);
            }
            None if told.insert(name.clone()) => {
                log("key_missing", &[("file", &name), ("reason", "it is not in blobs; register the key again")]);
            }
            None => {}
        }
    }
    Ok(())
}
