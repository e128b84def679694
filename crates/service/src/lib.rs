//! A proving service, on one machine or many: jobs that are never lost, workers that are supervised, HTTP in front.
//!
//! [`serve`] runs it: the [`store`] keeps jobs and keys in one SQLite file, or in a PostgreSQL that nodes share; threads give them to [workers](work), which are processes of
//! their own, and callers speak HTTP and JSON (`openapi.json`), as [`client`] does. `docs/design/service.md` has the states of a job
//! and what is written when.
#![forbid(unsafe_code)]

mod blobs;
mod calculate;
pub mod client;
mod coming;
mod config;
mod core;
mod grpc;
mod held;
mod history;
mod http;
mod installation;
mod keeper;
mod log;
mod metrics;
mod nodes;
mod objects;
pub mod proto;
mod rates;
mod seal;
pub mod store;
mod tls;
mod traces;
mod worker;

pub use calculate::calculate;
pub use config::{Config, Interface, LogForm, Protection, Survives, SETTINGS};
pub use toml::Value as Setting;
pub use worker::{work, work_watched, KeyRoom};

use crate::core::{Core, Made};
use crate::log::log;
use blobs::{private_folder, Places};
use nix::fcntl::{Flock, FlockArg};
use std::fs::{File, OpenOptions};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::Store;

/// The description of the interface, in OpenAPI's JSON.
pub const OPENAPI: &str = include_str!("../openapi.json");

pub use worker::hash_file;

/// So old is a file that nobody needs, and that nobody is still writing: the batches of a day are accepted within it.
const ORPHAN: Duration = Duration::from_secs(24 * 3600);

/// Between two looks for late and old jobs.
const TIDY: Duration = Duration::from_secs(1);

/// How long a start waits for a lock that may be that of a service which has just been killed.
const LOCKED: Duration = Duration::from_secs(2);

/// Between two tries.
const AGAIN: Duration = Duration::from_millis(20);

/// How long a service that ends waits for the collector of traces.
const FLUSH: Duration = Duration::from_secs(2);

/// A process of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role<'a> {
    /// It makes proofs on this device: [`work`].
    Prover(&'a str),
    /// It makes one witness: [`calculate()`].
    Calculator,
}

/// What is asked of a running service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// Nothing.
    Nothing,
    /// To read its certificate and what belongs to it again.
    Reload,
    /// To end when the jobs that run have ended.
    Stop,
}

/// Runs the service until `asked` says to stop and the running jobs have ended. `worker` makes the commands of its processes; `ready` is
/// told the address when callers can reach it.
///
/// # Errors
/// One sentence: a file of TLS is wrong, the data folder is in use or cannot be written, its database is of a later version, the address is
/// taken, a key of the configuration is no key.
pub fn serve(
    config: Config,
    worker: impl Fn(Role<'_>) -> Command + Send + Sync + 'static,
    ready: impl FnOnce(SocketAddr),
    asked: impl Fn() -> Asked,
) -> Result<(), String> {
    log::write_as(config.log);
    let data = config.data.clone();
    let cannot = |path: &Path, what: &str, e: &dyn std::fmt::Display| format!("{}: cannot {what}: {e}", path.display());
    let tls = tls::server(&config)?;
    private_folder(&data).map_err(|e| cannot(&data, "make the data folder", &e))?;
    let _lock = lock(&data)?;
    let store = open_store(&config)?;
    let places = Places::open(&config)?;
    let secrets = installation::secrets(&config, &store, &places.root)?;
    let address = config.listen;
    let (core, results) = Core::new(config, store, places, secrets, Box::new(worker));
    core.set_tls(tls);
    let core = Arc::new(core);
    recover(&core).map_err(|e| cannot(&data, "go on from what is there", &e))?;
    for (name, path) in &core.config.keys {
        let path = path.canonicalize().map_err(|e| format!("keys.{name}: {}: {e}", path.display()))?;
        core.register(name, &path, false).map_err(|e| format!("keys.{name}: {e}"))?;
    }
    for (name, path) in &core.config.programs {
        let path = path.canonicalize().map_err(|e| format!("programs.{name}: {}: {e}", path.display()))?;
        core.register_program(name, &path, false).map_err(|e| format!("programs.{name}: {e}"))?;
    }
    for name in &core.config.preload {
        let key = core.store.key(name).map_err(|e| cannot(&data, "look for keys", &e))?;
        key.ok_or_else(|| {
            format!(
                "preload: no key is called '{name}'; expected a name of [keys], or of a key that was registered before"
            )
        })?;
    }
    let listener =
        TcpListener::bind(address).map_err(|e| format!("{address}: cannot listen: {e}; say another --listen"))?;
    let address = listener.local_addr().map_err(|e| format!("{address}: {e}"))?;
    let socket = core.config.socket.as_deref().map(http::Socket::open).transpose()?;
    // First the leases of an earlier start of this node are given back, then there are workers that take some.
    nodes::join(&core)?;
    keeper::start(&core)?;
    let busy = start_threads(&core, results)?;
    log("ready", &[("address", &address.to_string())]);
    if !address.ip().is_loopback() {
        core.config.without.iter().for_each(|protection| log("unprotected", &[("reason", protection.given_up())]));
    }
    let until = || {
        match asked() {
            Asked::Stop if !core.is_draining() => {
                core.drain();
                log("draining", &[]);
            }
            Asked::Reload => core.reload(),
            Asked::Stop | Asked::Nothing => {}
        }
        core.is_draining() && busy.load(Ordering::SeqCst) == 0 && core.unwritten() == 0 && !core.witnesses.is_busy()
    };
    http::run(&core, listener, socket.as_ref(), || ready(address), until)?;
    drop(socket);
    if let Some(traces) = &core.traces {
        traces.flush(FLUSH);
    }
    // What still runs is begun again by other nodes at once.
    if let Err(error) = core.store.leave() {
        core.database_failed(&error);
    }
    log("stopped", &[]);
    Ok(())
}

/// Starts the threads that do the work beside HTTP. Returns how many workers' threads have not ended.
fn start_threads(core: &Arc<Core>, results: Receiver<Made>) -> Result<Arc<AtomicUsize>, String> {
    let busy = Arc::new(AtomicUsize::new(core.slots.len()));
    for number in 0..core.slots.len() {
        let (core, busy) = (core.clone(), busy.clone());
        let run = move || {
            core.slots[number].run(&core);
            busy.fetch_sub(1, Ordering::SeqCst);
        };
        let thread = std::thread::Builder::new().name(format!("slot {number}")).spawn(run);
        thread.map_err(|e| format!("no thread can be started: {e}"))?;
    }
    for number in 0..core.calculators.len() {
        let core = core.clone();
        let run = move || core.calculators[number].run(&core);
        let thread = std::thread::Builder::new().name(format!("calculator {number}")).spawn(run);
        thread.map_err(|e| format!("no thread can be started: {e}"))?;
    }
    let written = core.clone();
    let results = std::thread::Builder::new().name("results".into()).spawn(move || written.write_results(&results));
    results.map_err(|e| format!("no thread can be started: {e}"))?;
    if core.traces.is_some() {
        let told = core.clone();
        let run = move || told.traces.iter().for_each(|traces| traces.run(&told));
        std::thread::Builder::new()
            .name("traces".into())
            .spawn(run)
            .map_err(|e| format!("no thread can be started: {e}"))?;
    }
    let held = core.held.clone();
    let wiping = std::thread::Builder::new().name("wipe".into()).spawn(move || held.wipe());
    wiping.map_err(|e| format!("no thread can be started: {e}"))?;
    let tidied = core.clone();
    std::thread::spawn(move || loop {
        tidied.tidy();
        std::thread::sleep(TIDY);
    });
    Ok(busy)
}

/// Opens the database of a service, also beside one that runs: for its tokens.
///
/// # Errors
/// One sentence: the data folder or the database cannot be written, or it is of a later version.
pub fn open_store(config: &Config) -> Result<Store, String> {
    if let Some(url) = &config.database {
        let tls = tls::database(config.database_ca.as_deref())?;
        let lease = Duration::from_secs(config.lease_seconds.into());
        return Store::connect(url, tls, &config.node, lease).map_err(|e| e.to_string());
    }
    let database = config.data.join("jobs.db");
    let cannot = |e: &dyn std::fmt::Display| format!("{}: cannot open: {e}", database.display());
    private_folder(&config.data).map_err(|e| cannot(&e))?;
    own_file(&database).map_err(|e| cannot(&e))?;
    Store::open(&database, config.survives.syncs()).map_err(|e| cannot(&e))
}

/// What a start does with what an end left: running jobs wait again, files that nobody needs go.
fn recover(core: &Core) -> Result<(), Box<dyn std::error::Error>> {
    let jobs = core.store.recover(core.now_ms())?;
    // What another node is just writing is not needed yet.
    let age = if core.store.is_shared() { ORPHAN } else { Duration::ZERO };
    let witnesses = core.witnesses.sweep(&core.store.needed_blobs()?, age)?;
    let mut needed = std::collections::HashSet::new();
    let keys = core.store.keys()?.into_iter().filter(|key| key.is_own).map(|key| key.path);
    let programs = core.store.programs()?.into_iter().filter(|program| program.is_own).map(|program| program.path);
    for path in keys.chain(programs) {
        needed.extend(Path::new(&path).file_name().and_then(|name| name.to_str()).map(String::from));
    }
    let keys = core.keys.sweep(&needed, age)?;
    log("recovered", &[("jobs", &jobs.to_string()), ("files_removed", &(witnesses + keys).to_string())]);
    Ok(())
}

/// Keeps a second service off the folder, until the process ends.
fn lock(data: &Path) -> Result<Flock<File>, String> {
    let path = data.join("lock");
    let open = || OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
    let mut file = open().map_err(|e| format!("{}: cannot open: {e}", path.display()))?;
    // Workers that a killed service left hold no lock: the file is closed in them. One that it was just starting has it until then.
    let begun = Instant::now();
    loop {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(lock),
            Err((back, _)) if begun.elapsed() < LOCKED => file = back,
            Err(_) => break,
        }
        std::thread::sleep(AGAIN);
    }
    Err(format!("{}: another tandem serve uses this folder; stop it, or say another --data", data.display()))
}

/// Makes a file for this user alone, if there is none: SQLite gives those beside it the same mode.
fn own_file(path: &Path) -> std::io::Result<()> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path).map(drop)
}

/// How long the service waits for its jobs when it drains.
fn drain_over(core: &Core, begun: Instant) -> bool {
    begun.elapsed() > Duration::from_secs(core.config.drain_seconds.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_given_up_soon_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let held = lock(folder.path()).unwrap();
        let begun = Instant::now();
        let refused = lock(folder.path()).unwrap_err();
        assert!(refused.contains("another tandem serve uses this folder") && begun.elapsed() >= LOCKED, "{refused}");
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| lock(folder.path()).is_ok());
            std::thread::sleep(LOCKED / 10);
            drop(held);
            assert!(waits.join().unwrap());
        });
    }
}
