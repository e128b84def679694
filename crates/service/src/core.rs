//! What the threads of the service share, and what they do to jobs: each change of a job goes through here, so that who waits hears.

use crate::blobs::{Blobs, Places};
use crate::calculate::{check_program, Calculator};
use crate::config::{is_name, Config, NAME};
use crate::held::Room;
use crate::history::History;
use crate::log::log;
use crate::metrics::Metrics;
use crate::rates::Rates;
use crate::seal::Seal;
use crate::store::{
    Calculated, Cancelled, Claim, Ending, Failed, Finished, JobResult, KeyRow, Lease, ProgramRow, Store, StoreError,
};
use crate::traces::{Collector, Traces};
use crate::worker::protocol::KeyFile;
use crate::worker::{have, Offer, Slot};
use crate::Role;
use rustls::ServerConfig;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tandem_engine::CurveId;
use tokio::sync::{broadcast, Semaphore};

/// Between two tries to write down what a worker did, while the database fails.
pub(crate) const AGAIN: Duration = Duration::from_millis(200);

/// So long a witness is held before it is looked whether its job has ended.
const HELD: Duration = Duration::from_secs(10);

/// How many ends of jobs a waiting request may be behind before it looks for itself.
const ENDS: usize = 1024;

/// Threads that wait for the disk, beside one for each connection.
pub(crate) const BLOCKING: usize = 16;

/// The code of an attempt that was not begun when another worker could begin it, or when the service was stopped.
pub(crate) const GIVEN_BACK: &str = "given_back";

/// The code of an attempt that failed because blobs cannot be read or written just now.
pub(crate) const STORAGE_FAILED: &str = "storage_failed";

/// Makes the command that runs a process of the service.
pub(crate) type WorkerCommand = Box<dyn Fn(Role<'_>) -> Command + Send + Sync>;

pub(crate) struct Core {
    pub(crate) config: Config,
    pub(crate) store: Store,
    pub(crate) witnesses: Blobs,
    /// Those of them that wait here for a worker of this node.
    pub(crate) held: Arc<Room>,
    pub(crate) keys: Blobs,
    /// Where keys are copied to from `keys`, if nodes share that.
    pub(crate) key_cache: Option<Blobs>,
    /// Hashes of the keys that idle workers of other nodes have.
    pub(crate) elsewhere: Mutex<Vec<String>>,
    /// What hashes of witnesses are keyed with: without it they say nothing of a witness that could be guessed.
    pub(crate) secret: [u8; 32],
    /// What witnesses are encrypted with.
    pub(crate) seal: Seal,
    pub(crate) metrics: Metrics,
    pub(crate) rates: Rates,
    pub(crate) history: History,
    /// Tells a collector of jobs that have ended, where there is one.
    pub(crate) traces: Option<Traces>,
    pub(crate) slots: Vec<Slot>,
    pub(crate) calculators: Vec<Calculator>,
    pub(crate) worker: WorkerCommand,
    /// Names of jobs as they end.
    pub(crate) ends: broadcast::Sender<String>,
    /// The jobs of callers of rapidsnark's interface, by token.
    pub(crate) current: Mutex<HashMap<Option<String>, String>>,
    /// What connections are wrapped in, those of a new certificate too.
    tls: RwLock<Option<Arc<ServerConfig>>>,
    /// What may wait for the disk at a time on behalf of callers.
    pub(crate) room: Arc<Semaphore>,
    drains: AtomicBool,
    results: Sender<Made>,
    /// Results that were made and are not written down.
    unwritten: AtomicUsize,
}

/// A proof of a worker's.
pub(crate) struct Made {
    pub(crate) worker: String,
    pub(crate) claim: Claim,
    pub(crate) result: JobResult,
}

/// Milliseconds since 1970 by the machine's clock, for the log.
pub(crate) fn clock_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

impl Core {
    pub(crate) fn new(
        config: Config,
        store: Store,
        places: Places,
        (secret, seal): ([u8; 32], Seal),
        worker: WorkerCommand,
    ) -> (Core, Receiver<Made>) {
        let slots = config.workers.iter().enumerate().map(|(number, device)| Slot::new(number, device)).collect();
        let calculators = (0..config.calculators).map(Calculator::new).collect();
        let (ends, _) = broadcast::channel(ENDS);
        let (metrics, rates, drains) = (Metrics::default(), Rates::default(), AtomicBool::new(false));
        let ((results, inbox), unwritten) = (channel(), AtomicUsize::new(0));
        let history = History::new(store.now());
        let Places { witnesses, keys, key_cache, .. } = places;
        let room = Arc::new(Semaphore::new(config.connections + BLOCKING));
        // The address was looked at when the settings were read.
        let traces = config.otlp.as_deref().and_then(|url| Collector::new(url).ok()).map(Traces::new);
        let held = Room::new(config.held_memory_mib << 20);
        let core = Core {
            config,
            store,
            witnesses,
            held,
            keys,
            key_cache,
            elsewhere: Mutex::default(),
            secret,
            seal,
            metrics,
            rates,
            history,
            traces,
            slots,
            calculators,
            worker,
            ends,
            current: Mutex::default(),
            tls: RwLock::default(),
            room,
            drains,
            results,
            unwritten,
        };
        (core, inbox)
    }

    /// Milliseconds since 1970 by the clock of the jobs. Deadlines and ages are by it; whether a worker lives is not.
    pub(crate) fn now_ms(&self) -> i64 {
        self.store.now()
    }

    /// What a connection that comes now is wrapped in.
    pub(crate) fn tls(&self) -> Option<Arc<ServerConfig>> {
        self.tls.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_tls(&self, tls: Option<Arc<ServerConfig>>) {
        *self.tls.write().unwrap_or_else(PoisonError::into_inner) = tls;
    }

    /// Reads the files of TLS again. Where they are wrong, those that were read before stay.
    pub(crate) fn reload(&self) {
        match crate::tls::server(&self.config) {
            Ok(tls) => {
                self.set_tls(tls);
                log("reloaded", &[]);
            }
            Err(error) => log("reload_failed", &[("reason", &error)]),
        }
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.drains.load(Ordering::SeqCst)
    }

    /// No job is accepted or begun any more.
    pub(crate) fn drain(&self) {
        self.drains.store(true, Ordering::SeqCst);
        self.slots.iter().for_each(Slot::look);
        self.calculators.iter().for_each(Calculator::wake);
    }

    pub(crate) fn wake(&self) {
        self.slots.iter().for_each(|slot| slot.wake(self.config.in_hand));
    }

    /// [`Core::wake`] where a job is there that a worker may have read ahead: that one first.
    pub(crate) fn wake_for(&self, job: &str) {
        self.slots.iter().filter(|slot| slot.reads(job)).for_each(|slot| slot.wake(self.config.in_hand));
        self.wake();
    }

    /// Has the worker that is likely to get a job read its witness while it comes. That it is another one costs a read.
    pub(crate) fn offer(&self, offer: Offer) {
        let would = |slot: &&Slot| slot.would_read(&offer.key, self.config.in_hand);
        if let Some((_, slot)) =
            self.slots.iter().filter_map(|slot| Some((would(&slot)?, slot))).min_by_key(|(jobs, _)| *jobs)
        {
            slot.offer(offer);
        }
    }

    /// There may be inputs of which a witness is to be calculated.
    pub(crate) fn wake_calculators(&self) {
        self.calculators.iter().for_each(Calculator::wake);
    }

    /// Takes a witness that was calculated, again and again while the database fails.
    pub(crate) fn calculated(&self, lease: &Lease, blob: &str, bytes: u64) {
        let written = self.insist(|| self.store.calculated(lease, blob, bytes, self.now_ms()));
        self.store.release(lease);
        // What is not needed any more: the inputs, or a witness that comes too late.
        let left = match &written {
            Calculated::Now(inputs) => inputs,
            // Which blob that of the inputs was is not known any more: it is swept when it is old.
            Calculated::Before => return self.wake(),
            Calculated::Stale => blob,
        };
        match written {
            Calculated::Stale => self.stale(lease),
            _ => {
                log("job_calculated", &[("job", &lease.job)]);
                self.wake();
            }
        }
        if let Err(error) = self.witnesses.remove(left) {
            log("witness_left", &[("job", &lease.job), ("reason", &error.to_string())]);
        }
    }

    /// Has the result of an attempt written down, again and again while the database fails. It does not wait for that.
    pub(crate) fn finished(&self, made: Made) {
        self.unwritten.fetch_add(1, Ordering::SeqCst);
        let _ = self.results.send(made);
    }

    /// Results that are still to be written down.
    pub(crate) fn unwritten(&self) -> usize {
        self.unwritten.load(Ordering::SeqCst)
    }

    /// Writes down the results of all workers as they come: those that come at once share a sync of the disk.
    pub(crate) fn write_results(&self, inbox: &Receiver<Made>) {
        while let Ok(first) = inbox.recv() {
            let batch: Vec<_> = std::iter::once(first).chain(inbox.try_iter()).collect();
            let begin = |of: &Made| self.store.begin_finish(&of.claim.lease, &of.result, self.now_ms());
            let begun: Vec<_> = batch.iter().map(begin).collect();
            for (of, pending) in batch.iter().zip(begun) {
                let mut pending = Some(pending);
                let written = self.insist(|| pending.take().unwrap_or_else(|| begin(of)).wait());
                self.written(&of.worker, &of.claim, &of.result, written);
                self.unwritten.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }

    fn written(&self, worker: &str, claim: &Claim, result: &JobResult, written: Finished) {
        self.store.release(&claim.lease);
        match written {
            Finished::Done(blob) => {
                self.ended(&claim.lease.job, "done", Some(&blob));
                self.count_proof(worker, claim, result);
                log("job_done", &[("job", &claim.lease.job), ("worker", worker)]);
            }
            Finished::Before(blob) => self.ended(&claim.lease.job, "done", Some(&blob)),
            Finished::Stale => self.stale(&claim.lease),
        }
    }

    fn count_proof(&self, worker: &str, claim: &Claim, result: &JobResult) {
        self.metrics.time("tandem_proof_seconds", &[], result.seconds);
        self.metrics.time("tandem_job_seconds", &[], (self.now_ms() - claim.created_ms).max(0) as f64 / 1e3);
        self.metrics.add("tandem_witness_bytes_total", &[("worker", worker)], claim.witness_bytes as f64);
        let Some(times) = &result.times else { return };
        let stages = [("key", times.key), ("read", times.read), ("upload", times.upload), ("turn", times.turn)];
        for (stage, seconds) in stages {
            self.metrics.time("tandem_stage_seconds", &[("stage", stage)], seconds);
        }
        self.metrics.add("tandem_device_busy_seconds_total", &[("worker", worker)], times.proof);
    }

    /// Writes down that an attempt gave nothing, again and again while the database fails.
    pub(crate) fn attempt_failed(&self, lease: &Lease, ending: &Ending) -> Failed {
        let written = self.insist(|| self.store.fail(lease, ending, self.config.attempts, self.now_ms()));
        self.store.release(lease);
        match &written {
            Failed::Again => {
                match ending.code.as_str() {
                    GIVEN_BACK => self.metrics.add("tandem_given_back_total", &[], 1.0),
                    code => self.metrics.add("tandem_retries_total", &[("code", code)], 1.0),
                }
                self.wake();
                self.wake_calculators();
            }
            Failed::Over(blob) => self.ended(&lease.job, "failed", Some(blob)),
            Failed::Stale => self.stale(lease),
        }
        written
    }

    fn stale(&self, lease: &Lease) {
        self.metrics.add("tandem_stale_writes_total", &[], 1.0);
        log("stale_write", &[("job", &lease.job), ("attempt", &lease.attempt.to_string())]);
    }

    fn insist<T>(&self, mut write: impl FnMut() -> Result<T, StoreError>) -> T {
        loop {
            match write() {
                Ok(value) => return value,
                Err(error) => {
                    self.database_failed(&error);
                    std::thread::sleep(AGAIN);
                }
            }
        }
    }

    pub(crate) fn cancel(&self, id: &str) -> Result<Cancelled, StoreError> {
        let cancelled = self.store.cancel(id, self.now_ms())?;
        if let Cancelled::Now(blob, lease) = &cancelled {
            if let Some(lease) = lease {
                self.store.release(lease);
                self.stop(lease);
            }
            self.ended(id, "cancelled", Some(blob));
        }
        Ok(cancelled)
    }

    /// Tells who waits, and removes the witness, which takes milliseconds where it is large.
    fn ended(&self, id: &str, state: &str, blob: Option<&str>) {
        self.metrics.add("tandem_jobs_ended_total", &[("state", state)], 1.0);
        let _ = self.ends.send(id.into());
        self.held.forget(id);
        if let Some(traces) = &self.traces {
            traces.note(&self.metrics, id);
        }
        let blob = blob.filter(|blob| !blob.is_empty());
        if let Some(error) = blob.and_then(|blob| self.witnesses.remove(blob).err()) {
            log("witness_left", &[("job", id), ("reason", &error.to_string())]);
        }
    }

    /// Fails what is late, forgets what is old, and looks how long the queue is.
    pub(crate) fn tidy(&self) {
        match self.store.expire(self.now_ms()) {
            Ok(late) => late.iter().for_each(|(id, blob)| self.ended(id, "failed", Some(blob))),
            Err(error) => log("database_failed", &[("reason", &error.to_string())]),
        }
        self.expire_leases();
        self.tidy_held();
        // A look that fails leaves a gap in a plot.
        if let Ok([pending, running]) = self.store.open_jobs() {
            self.history.note(self.now_ms(), pending, running);
        }
        let kept = i64::from(self.config.keep_seconds) * 1000;
        if let Err(error) = self.store.forget(self.now_ms().saturating_sub(kept)) {
            log("database_failed", &[("reason", &error.to_string())]);
        }
    }

    /// Lets go of witnesses that are held for jobs of which it was not heard that they ended.
    fn tidy_held(&self) {
        for id in self.held.older(HELD) {
            if self.store.job(&id).is_ok_and(|job| job.is_none_or(|job| job.is_final())) {
                self.held.forget(&id);
            }
        }
        self.held.tidy();
    }

    /// Names a key's file, after a look at its header and its content.
    pub(crate) fn register(&self, name: &str, path: &Path, is_own: bool) -> Result<(KeyRow, bool), Unregistered> {
        if !is_name(name) {
            return Err(Unregistered::Bad(format!("'{name}': {NAME}")));
        }
        let info = tandem_engine::key_info(path).map_err(|e| Unregistered::Bad(e.to_string()))?;
        let hash = crate::hash_file(path).map_err(|e| unread(path, &e))?;
        let (path, is_own) = self.taken_in(path, (&hash, "zkey"), info.file_bytes, is_own)?;
        let curve = match info.curve {
            CurveId::Bn254 => "bn254",
            CurveId::Bls12_381 => "bls12-381",
        };
        let key = KeyRow {
            name: name.into(),
            path,
            hash,
            bytes: info.file_bytes,
            variables: info.variables as u64,
            publics: info.publics as u64,
            domain: info.domain as u64,
            curve: curve.into(),
            is_own,
        };
        let is_new = self.store.add_key(&key, self.now_ms()).map_err(Unregistered::Store)?;
        Ok((key, is_new))
    }

    /// What a file is called in the database, and whether it is the service's own. Where nodes share the folder of keys, a file of this
    /// node's alone is copied there, and it is a name in that folder: nodes may have it in different places.
    fn taken_in(
        &self,
        path: &Path,
        (hash, end): (&str, &str),
        bytes: u64,
        is_own: bool,
    ) -> Result<(String, bool), Unregistered> {
        if !self.store.is_shared() {
            let path = path.to_str().ok_or_else(|| Unregistered::Bad("the path is no UTF-8".into()))?;
            return Ok((path.into(), is_own));
        }
        let name = format!("{hash}.{end}");
        let listed = if is_own { Vec::new() } else { self.keys.list(&name).map_err(|e| unread(path, &e))? };
        if !is_own && !listed.contains(&(name.clone(), bytes)) {
            self.keys.take_in(path, &name, hash).map_err(|e| unread(path, &e))?;
        }
        Ok((name, true))
    }

    /// The file of a key or a program with this hash. That of a bucket is copied here first, as long as that is wanted.
    pub(crate) fn stored(
        &self,
        path: &str,
        hash: &str,
        wanted: &(dyn Fn() -> bool + Sync),
    ) -> std::io::Result<PathBuf> {
        match &self.key_cache {
            None => Ok(path.into()),
            Some(_) if !self.keys.are_objects() => Ok(self.keys.path(path)),
            Some(cache) => {
                let file = cache.path(path);
                have(&file, &self.keys.source(path), hash, self.config.key_cache_mib << 20, wanted)?;
                Ok(file)
            }
        }
    }

    /// A key's file as workers find it.
    pub(crate) fn key_file(&self, key: &KeyRow) -> KeyFile {
        let path = match &self.key_cache {
            Some(cache) => cache.path(&format!("{}.zkey", key.hash)),
            None => PathBuf::from(&key.path),
        };
        KeyFile { path, from: self.key_cache.as_ref().map(|_| self.keys.source(&key.path)), hash: key.hash.clone() }
    }

    /// The keys that each worker loads when it is ready.
    pub(crate) fn preloaded(&self) -> Vec<KeyFile> {
        let find = |name: &String| match self.store.key(name) {
            Ok(key) => key.map(|key| self.key_file(&key)),
            Err(error) => {
                self.database_failed(&error);
                None
            }
        };
        self.config.preload.iter().filter_map(find).collect()
    }

    /// Gives a key the program that calculates its witnesses, after a look at the file.
    pub(crate) fn register_program(&self, key: &str, path: &Path, is_own: bool) -> Result<bool, Unregistered> {
        let (hash, bytes) = check_program(path).map_err(|e| Unregistered::Bad(format!("{}: {e}", path.display())))?;
        let (path, is_own) = self.taken_in(path, (&hash, "program"), bytes, is_own)?;
        let program = ProgramRow { key: key.into(), path, hash, bytes, is_own };
        self.store.add_program(&program, self.now_ms()).map_err(Unregistered::Store)
    }
}

fn unread(path: &Path, error: &std::io::Error) -> Unregistered {
    Unregistered::Bad(format!("{}: {error}", path.display()))
}

/// Why a key was not registered.
pub(crate) enum Unregistered {
    /// The file or its name.
    Bad(String),
    /// The store.
    Store(StoreError),
}

impl std::fmt::Display for Unregistered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unregistered::Bad(why) => f.write_str(why),
            Unregistered::Store(error) => error.fmt(f),
        }
    }
}
