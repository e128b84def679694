//! What the threads of the service share, and what they do to jobs: each change of a job goes through here, so that who waits hears.

use crate::blobs::Blobs;
use crate::config::{is_name, Config, NAME};
use crate::history::History;
use crate::log::log;
use crate::metrics::Metrics;
use crate::rates::Rates;
use crate::store::{Cancelled, Claim, Ending, Failed, Finished, JobResult, KeyRow, Lease, Near, Store, StoreError};
use crate::worker::Slot;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tandem_engine::CurveId;
use tokio::sync::broadcast;

/// Between two tries to write down what a worker did, while the database fails.
const AGAIN: Duration = Duration::from_millis(200);

/// How many ends of jobs a waiting request may be behind before it looks for itself.
const ENDS: usize = 1024;

/// The code of an attempt that was not begun when another worker could begin it, or when the service was stopped.
pub(crate) const GIVEN_BACK: &str = "given_back";

/// Makes the command that runs a worker on a device.
pub(crate) type WorkerCommand = Box<dyn Fn(&str) -> Command + Send + Sync>;

pub(crate) struct Core {
    pub(crate) config: Config,
    pub(crate) store: Store,
    pub(crate) witnesses: Blobs,
    pub(crate) keys: Blobs,
    /// Where keys are copied to from `keys`, if that is not this machine's own.
    pub(crate) key_cache: Option<PathBuf>,
    /// What hashes of witnesses are keyed with: without it they say nothing of a witness that could be guessed.
    pub(crate) secret: [u8; 32],
    pub(crate) metrics: Metrics,
    pub(crate) rates: Rates,
    pub(crate) history: History,
    pub(crate) slots: Vec<Slot>,
    pub(crate) worker: WorkerCommand,
    /// Names of jobs as they end.
    pub(crate) ends: broadcast::Sender<String>,
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
        [witnesses, keys]: [Blobs; 2],
        key_cache: Option<PathBuf>,
        secret: [u8; 32],
        worker: WorkerCommand,
    ) -> (Core, Receiver<Made>) {
        let slots = config.workers.iter().enumerate().map(|(number, device)| Slot::new(number, device)).collect();
        let (ends, _) = broadcast::channel(ENDS);
        let (metrics, rates, drains) = (Metrics::default(), Rates::default(), AtomicBool::new(false));
        let ((results, inbox), unwritten) = (channel(), AtomicUsize::new(0));
        let history = History::new(store.now());
        let core = Core {
            config,
            store,
            witnesses,
            keys,
            key_cache,
            secret,
            metrics,
            rates,
            history,
            slots,
            worker,
            ends,
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

    pub(crate) fn is_draining(&self) -> bool {
        self.drains.load(Ordering::SeqCst)
    }

    /// No job is accepted or begun any more.
    pub(crate) fn drain(&self) {
        self.drains.store(true, Ordering::SeqCst);
        self.slots.iter().for_each(Slot::look);
    }

    pub(crate) fn wake(&self) {
        self.slots.iter().for_each(|slot| slot.wake(self.config.in_hand));
    }

    /// Has the result of an attempt written down, again and again while the database fails. It does not wait for that.
    pub(crate) fn finished(&self, made: Made) {
        self.unwritten.fetch_add(1, Ordering::SeqCst);
        let _ = self.results.send(made);
    }

    /// Whether results are still to be written down.
    pub(crate) fn has_unwritten(&self) -> bool {
        self.unwritten.load(Ordering::SeqCst) > 0
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
                let proof = ["tandem_proof_seconds_bucket", "tandem_proof_seconds_sum", "tandem_proof_seconds_count"];
                self.metrics.time(proof, result.seconds);
                let whole = ["tandem_job_seconds_bucket", "tandem_job_seconds_sum", "tandem_job_seconds_count"];
                self.metrics.time(whole, (self.now_ms() - claim.created_ms).max(0) as f64 / 1e3);
                log("job_done", &[("job", &claim.lease.job), ("worker", worker)]);
            }
            Finished::Before(blob) => self.ended(&claim.lease.job, "done", Some(&blob)),
            Finished::Stale => self.stale(&claim.lease),
        }
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
                    log("database_failed", &[("reason", &error.to_string())]);
                    self.metrics.add("tandem_database_failures_total", &[], 1.0);
                    std::thread::sleep(AGAIN);
                }
            }
        }
    }

    pub(crate) fn cancel(&self, id: &str) -> Result<Cancelled, StoreError> {
        let cancelled = self.store.cancel(id, self.now_ms())?;
        if let Cancelled::Now(blob, lease) = &cancelled {
            // Every worker is told: the one that has just taken the job may not have said so yet.
            lease.iter().for_each(|lease| self.slots.iter().for_each(|slot| slot.stop(lease)));
            self.ended(id, "cancelled", Some(blob));
        }
        Ok(cancelled)
    }

    /// Tells who waits, and removes the witness, which takes milliseconds where it is large.
    fn ended(&self, id: &str, state: &str, blob: Option<&str>) {
        self.metrics.add("tandem_jobs_ended_total", &[("state", state)], 1.0);
        let _ = self.ends.send(id.into());
        if let Some(error) = blob.and_then(|blob| self.witnesses.remove(blob).err()) {
            log("witness_left", &[("job", id), ("reason", &error.to_string())]);
        }
    }

    /// Which jobs a worker with these keys would rather have.
    pub(crate) fn near(&self, keys: Vec<String>) -> Near {
        Near { keys, ms: i64::from(self.config.affinity_seconds) * 1000 }
    }

    /// Hears of a job that another node ended, or of work.
    pub(crate) fn heard(&self, job: &str) {
        match job {
            "" => self.wake(),
            job => drop(self.ends.send(job.into())),
        }
    }

    /// What other nodes may know of this one.
    fn report(&self) -> String {
        let workers: Vec<_> = self.slots.iter().map(Slot::status).collect();
        let ready = workers.iter().filter(|worker| worker.is_ready).count();
        let jobs: usize = workers.iter().map(|worker| worker.leases.len()).sum();
        let drains = self.is_draining();
        serde_json::json!({"workers": workers.len(), "ready": ready, "jobs": jobs, "draining": drains}).to_string()
    }

    /// Takes part among the nodes of the database.
    pub(crate) fn join(&self) -> Result<u64, StoreError> {
        self.store.join(env!("CARGO_PKG_VERSION"), &self.report(), self.now_ms())
    }

    /// Says that this node lives, again and again, on a thread that waits for nothing but the database.
    pub(crate) fn beat(&self) {
        let pause = Duration::from_secs(self.config.lease_seconds.into()) / 4;
        let mut is_told = false;
        loop {
            std::thread::sleep(if is_told { AGAIN.min(pause) } else { pause.min(Duration::from_secs(5)) });
            let beat = self.store.beat(&self.report());
            is_told = beat.is_err();
            match beat {
                Ok(Some(lost)) => {
                    for lease in &lost {
                        log("lease_lost", &[("job", &lease.job)]);
                        self.metrics.add("tandem_leases_lost_total", &[], 1.0);
                        self.slots.iter().for_each(|slot| slot.stop(lease));
                    }
                }
                Ok(None) => {
                    log("name_taken", &[("reason", "another program runs under this node's name; this one stops")]);
                    self.drain();
                    return;
                }
                Err(error) => {
                    log("database_failed", &[("reason", &error.to_string())]);
                    self.metrics.add("tandem_database_failures_total", &[], 1.0);
                }
            }
        }
    }

    /// Fails what is late, forgets what is old, and looks how long the queue is.
    pub(crate) fn tidy(&self) {
        match self.store.expire(self.now_ms()) {
            Ok(late) => late.iter().for_each(|(id, blob)| self.ended(id, "failed", Some(blob))),
            Err(error) => log("database_failed", &[("reason", &error.to_string())]),
        }
        match self.store.expire_leases() {
            Ok(lost) if lost.is_empty() => {}
            Ok(lost) => {
                self.metrics.add("tandem_leases_expired_total", &[], lost.len() as f64);
                lost.iter().for_each(|lease| log("lease_expired", &[("job", &lease.job)]));
                self.wake();
            }
            Err(error) => log("database_failed", &[("reason", &error.to_string())]),
        }
        // A look that fails leaves a gap in a plot.
        if let Ok([pending, running]) = self.store.open_jobs() {
            self.history.note(self.now_ms(), pending, running);
        }
        let kept = i64::from(self.config.keep_seconds) * 1000;
        if let Err(error) = self.store.forget(self.now_ms().saturating_sub(kept)) {
            log("database_failed", &[("reason", &error.to_string())]);
        }
    }

    /// Names a key's file, after a look at its header and its content.
    pub(crate) fn register(&self, name: &str, path: &Path, is_own: bool) -> Result<(KeyRow, bool), Unregistered> {
        if !is_name(name) {
            return Err(Unregistered::Bad(format!("'{name}': {NAME}")));
        }
        let info = tandem_engine::key_info(path).map_err(|e| Unregistered::Bad(e.to_string()))?;
        let unread = |e: std::io::Error| Unregistered::Bad(format!("{}: {e}", path.display()));
        let (mut is_own, mut path) = (is_own, path.to_path_buf());
        let hash = if self.store.is_shared() && !is_own {
            // Other nodes have no such path.
            is_own = true;
            let hash = self.keys.take_in(&path).map_err(unread)?;
            path = format!("{hash}.zkey").into();
            hash
        } else {
            crate::hash_file(&path).map_err(unread)?
        };
        if self.store.is_shared() {
            // Nodes may have the folder of blobs in different places.
            path = path.file_name().map(Into::into).unwrap_or(path);
        }
        let path = path.to_str().ok_or_else(|| Unregistered::Bad("the path is no UTF-8".into()))?;
        let curve = match info.curve {
            CurveId::Bn254 => "bn254",
            CurveId::Bls12_381 => "bls12-381",
        };
        let key = KeyRow {
            name: name.into(),
            path: path.into(),
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
