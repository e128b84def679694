//! What a worker does: it opens its device, makes the proofs that it is told to, and says twice a second that it lives.

use super::ahead::Aheads;
use super::protocol::{receive_with, send, Ahead, Beat, Failure, Fault, FromWorker, KeyFile, Made, Order, ToWorker};
use super::turns::{Gate, Inside, Turn, LOOK};
use crate::blobs::Source;
use crate::coming::Memory;
use crate::core::STORAGE_FAILED;
use crate::seal::Opener;
use crate::store::Times;
use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{channel, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tandem_engine::{Engine, Error, ErrorCode, Fallback, KeyStore, Lane, Progress, Silent, StoredKey, Witness};

/// Between two signs of life.
const BEAT: Duration = Duration::from_millis(500);

/// Bytes of a key that are hashed at a time.
const PIECE: usize = 8 << 20;

/// What keys may take of a worker's device.
#[derive(Debug, Clone, Copy)]
pub struct KeyRoom {
    /// Bytes of all of them.
    pub bytes: u64,
    /// Proofs that each is taken to make: with more than one it gets tables of multiples and is there alone
    /// ([`KeyStore::for_proofs`]).
    pub proofs: u64,
    /// Bytes of the files that this node copies from the store of blobs; those in use may be more.
    pub cached: u64,
}

/// Runs as a worker of the service, which holds the other end of standard input; returns never but for an error. `open` opens the
/// device, of whose memory keys may take `room`.
///
/// # Errors
/// Standard input is no socket of the service's, or the device cannot be had.
pub fn work(open: impl FnOnce() -> tandem_engine::Result<Engine>, room: KeyRoom) -> Result<(), String> {
    work_watched(open, room, &|_, _| {})
}

/// [`work`] that tells of each stage of each proof before it begins, with the number of the attempt: for tests that end or stop the
/// process there. Of a job that came while another was in hand, stages are called `beside key` and so on.
///
/// # Errors
/// As [`work`].
#[doc(hidden)]
pub fn work_watched(
    open: impl FnOnce() -> tandem_engine::Result<Engine>,
    room: KeyRoom,
    at: &(dyn Fn(&str, i64) + Sync),
) -> Result<(), String> {
    let no_socket = |e: std::io::Error| format!("a worker is started by tandem serve, not by hand: {e}");
    let end = std::io::stdin().as_fd().try_clone_to_owned().map_err(no_socket)?;
    let from = UnixStream::from(end);
    from.peer_addr().map_err(no_socket)?;
    let to = from.try_clone().map_err(no_socket)?;
    let shared = Arc::new(Shared { to: Mutex::new(to), beat: Mutex::default(), stopped: Mutex::default() });
    let (orders, inbox) = channel();
    let thread = |name: &str, body: Box<dyn FnOnce() + Send>| {
        std::thread::Builder::new().name(name.into()).spawn(body).map_err(|e| format!("no thread can be started: {e}"))
    };
    let beating = shared.clone();
    thread("beat", Box::new(move || beating.beat()))?;
    let listening = shared.clone();
    thread("orders", Box::new(move || listening.listen(from, &orders)))?;
    let engine = match open() {
        Ok(engine) => engine,
        Err(error) => {
            shared.tell(&FromWorker::Broken { reason: error.to_string() });
            return Err(error.to_string());
        }
    };
    shared.tell(&FromWorker::Ready { device: engine.report().lanes.join(", ") });
    // On a device there is the witness of the proof, and that of the next one.
    let device = Gate::new(2 * engine.proofs_at_once());
    let next = Gate::new(engine.proofs_at_once());
    let keys = KeyStore::new(engine, room.bytes).for_proofs(room.proofs);
    let (known, hands) = (Mutex::default(), Hands::default());
    let cache_bytes = room.cached;
    let aheads = Aheads::default();
    let worker = &Worker { keys, known, hands, aheads, device, next, shared, cache_bytes, at };
    // A thread for each job in hand, of which the service gives a few at a time. The engine makes one proof at a time, so that one
    // is proved while the next is uploaded and others are read.
    std::thread::scope(|scope| {
        // Keys that are loaded ahead come one after the other, beside the jobs.
        let (loads, ahead) = channel::<KeyFile>();
        let loading = move || ahead.iter().for_each(|key| or_die(|| worker.load(&key)));
        if std::thread::Builder::new().name("loads".into()).spawn_scoped(scope, loading).is_err() {
            std::process::exit(101);
        }
        for (arrival, todo) in (0..).zip(inbox) {
            match todo {
                ToWorker::Prove(order) => {
                    let order: Arc<Order> = order.into();
                    let own = order.clone();
                    let turn = (order.rank, arrival);
                    let hand = move || or_die(|| worker.answer(&own, turn));
                    if std::thread::Builder::new().name("hand".into()).spawn_scoped(scope, hand).is_err() {
                        // Where no more threads can be started this one does it, and what comes meanwhile waits.
                        worker.answer(&order, turn);
                    }
                }
                ToWorker::Ahead(ahead) if worker.aheads.begin(&ahead) => {
                    let job = ahead.job.clone();
                    let read = move || or_die(|| worker.read_ahead(&ahead));
                    if std::thread::Builder::new().name("ahead".into()).spawn_scoped(scope, read).is_err() {
                        worker.aheads.forget(&job);
                    }
                }
                ToWorker::Ahead(_) => {}
                // Who loads them ends with this.
                ToWorker::Load(key) => drop(loads.send(key)),
                ToWorker::Evict { hash } => {
                    worker.keys.evict(&hash);
                    worker.note_keys();
                }
                ToWorker::Stop { .. } => {}
            }
        }
    });
    Ok(())
}

/// What the threads of a worker share.
struct Shared {
    to: Mutex<UnixStream>,
    beat: Mutex<Beat>,
    /// The attempts that are not wanted any more. Those that were over before they were stopped stay: a few bytes each.
    stopped: Mutex<HashSet<(String, i64)>>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// A service that cannot be told has gone, and takes no proof either.
    fn tell(&self, message: &FromWorker) {
        if send(&mut *lock(&self.to), message).is_err() {
            std::process::exit(0);
        }
    }

    fn beat(&self) {
        loop {
            let beat = lock(&self.beat).clone();
            self.tell(&FromWorker::Beat(beat));
            std::thread::sleep(BEAT);
        }
    }

    /// Ends the process with the service, whatever the device is at.
    fn listen(&self, from: UnixStream, orders: &Sender<ToWorker>) {
        while let Ok(Some((mut message, mut beside))) = receive_with(&from) {
            match &mut message {
                ToWorker::Stop { job, attempt } => drop(lock(&self.stopped).insert((job.clone(), *attempt))),
                ToWorker::Prove(order) => order.held = Mutex::new(beside.pop()),
                ToWorker::Ahead(ahead) => ahead.memory = Mutex::new(beside.try_into().ok()),
                _ => {}
            }
            if orders.send(message).is_err() {
                break;
            }
        }
        std::process::exit(0);
    }
}

struct Worker<'a> {
    keys: KeyStore,
    /// Hashes of the keys whose files have been compared with them.
    known: Mutex<HashSet<String>>,
    hands: Hands,
    /// Witnesses that are read before their jobs are in hand.
    aheads: Aheads,
    /// Who may have a witness on the device.
    device: Gate,
    /// Who may ask the engine for a proof: it takes those that ask at once in any order.
    next: Gate,
    shared: Arc<Shared>,
    /// Bytes of keys that are copied here from the blobs.
    cache_bytes: u64,
    at: &'a (dyn Fn(&str, i64) + Sync),
}

/// Jobs in hand.
#[derive(Default)]
struct Hands {
    counts: Mutex<Counts>,
    /// One is over.
    freed: Condvar,
}

#[derive(Default)]
struct Counts {
    all: usize,
    /// Those that have their key or ask for it.
    with_key: usize,
    /// Those for whose key there was no room yet.
    roomless: BTreeSet<Turn>,
}

/// Hears of one proof.
struct Watch<'a> {
    worker: &'a Worker<'a>,
    order: &'a Order,
    /// Whether another one was in hand when it came.
    is_beside: bool,
    /// When its turn came.
    turn: Mutex<Option<Instant>>,
    /// Its place among those that ask, until its turn comes.
    asks: Mutex<Option<Inside<'a>>>,
}

impl Watch<'_> {
    fn stage(&self, stage: &str) {
        lock(&self.worker.shared.beat).stages.insert(self.order.job.clone(), stage.into());
        let name = if self.is_beside { format!("beside {stage}") } else { stage.into() };
        (self.worker.at)(&name, self.order.attempt);
    }
}

impl Progress for Watch<'_> {
    fn start(&self, task: &'static str, _: u64) {
        self.stage(task);
    }
    fn turn(&self) {
        // A device that was opened again turns to it once more.
        lock(&self.turn).get_or_insert_with(Instant::now);
        drop(lock(&self.asks).take());
        let (job, attempt) = (self.order.job.clone(), self.order.attempt);
        self.worker.shared.tell(&FromWorker::Begun { job, attempt });
        self.stage("turn");
    }
    fn enqueued(&self, stage: &'static str, _: Lane) {
        self.stage(stage);
    }
    fn cancelled(&self) -> bool {
        lock(&self.worker.shared.stopped).contains(&(self.order.job.clone(), self.order.attempt))
    }
}

/// A defect ends the process, as it would without other jobs in hand: what is broken goes with it.
fn or_die(act: impl FnOnce()) {
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(act)).is_err() {
        std::process::exit(101);
    }
}

/// Why an order cannot be carried out: a word, a sentence, and whether another time or place may help.
type Refusal = (&'static str, String, bool);

impl Worker<'_> {
    fn answer(&self, order: &Order, turn: Turn) {
        let (job, attempt) = (order.job.clone(), order.attempt);
        let others = {
            let mut counts = lock(&self.hands.counts);
            counts.all += 1;
            counts.all - 1
        };
        let mut holds = false;
        let made = self.prove(order, turn, others > 0, &mut holds);
        {
            let mut counts = lock(&self.hands.counts);
            counts.all -= 1;
            counts.with_key -= usize::from(holds);
            counts.roomless.remove(&turn);
            self.hands.freed.notify_all();
        }
        let (answer, witness) = match made {
            Ok((made, witness)) => (FromWorker::Done(made), Some(witness)),
            Err((code, reason, is_retryable)) => {
                // The blob's name says nothing to the caller.
                let reason = reason.replace(&order.witness.shown(), "the witness");
                (FromWorker::Failed(Failure { job, attempt, code: code.into(), reason, is_retryable }), None)
            }
        };
        // The service uses the memory again.
        drop(lock(&order.held).take());
        lock(&self.shared.beat).stages.remove(&order.job);
        lock(&self.shared.stopped).remove(&(order.job.clone(), order.attempt));
        self.note_keys();
        self.shared.tell(&answer);
        // To wipe a large one takes a third of its proof: nobody waits for it.
        drop(witness);
    }

    fn note_keys(&self) {
        let (keys, key_bytes) = (self.keys.resident(), self.keys.used_bytes());
        let mut beat = lock(&self.shared.beat);
        (beat.keys, beat.key_bytes) = (keys, key_bytes);
    }

    /// The key of an order. Where keys of other jobs in hand leave no room for it, it waits for these, and those behind it for it:
    /// `holds` counts it among those that have theirs.
    fn key(&self, order: &Order, turn: Turn, watch: &Watch<'_>, holds: &mut bool) -> Result<StoredKey, Refusal> {
        self.have(&order.key, &|| !watch.cancelled())?;
        loop {
            self.wait_while(watch, |counts| counts.roomless.first().is_some_and(|first| *first < turn))?;
            lock(&self.hands.counts).with_key += 1;
            let error = match self.keys.get(&order.key.hash, watch) {
                Ok(key) => {
                    *holds = true;
                    lock(&self.hands.counts).roomless.remove(&turn);
                    self.hands.freed.notify_all();
                    return Ok(key);
                }
                Err(error) => error,
            };
            let others = {
                let mut counts = lock(&self.hands.counts);
                counts.with_key -= 1;
                self.hands.freed.notify_all();
                if !matches!(error, Error::OutOfMemory(_)) || counts.with_key == 0 {
                    return Err(refusal(error));
                }
                counts.roomless.insert(turn);
                counts.with_key
            };
            self.wait_while(watch, |counts| counts.with_key >= others)?;
        }
    }

    /// Waits for the ends of others, as long as it is wanted itself.
    fn wait_while(&self, watch: &Watch<'_>, is_so: impl Fn(&Counts) -> bool) -> Result<(), Refusal> {
        let mut counts = lock(&self.hands.counts);
        while is_so(&counts) {
            if watch.cancelled() {
                return Err(refusal(Error::Interrupted));
            }
            counts = self.hands.freed.wait_timeout(counts, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }

    /// The proof of an order, and its witness, which is wiped when it is dropped.
    fn prove(&self, order: &Order, turn: Turn, is_beside: bool, holds: &mut bool) -> Result<(Made, Witness), Refusal> {
        let watch = Watch { worker: self, order, is_beside, turn: Mutex::default(), asks: Mutex::default() };
        let mut clock = Clock(Instant::now());
        watch.stage("key");
        let key = self.key(order, turn, &watch, holds)?;
        let key_seconds = clock.lap();
        watch.stage("witness");
        let engine = self.keys.engine();
        self.aheads.know(&order.key.hash, key.info());
        let ahead = order.is_ahead.then(|| self.aheads.take(&order.job, || !watch.cancelled())).flatten();
        let is_ahead = ahead.is_some();
        let witness = match ahead {
            Some(witness) => witness,
            None => read(engine, order, &key, &|| !watch.cancelled())?,
        };
        let read_seconds = clock.lap();
        watch.stage("wait");
        let inside = self.device.enter(turn, || watch.cancelled()).ok_or_else(|| refusal(Error::Interrupted))?;
        let wait_seconds = clock.lap();
        let staged = engine.stage(&key, witness, &watch).map_err(refusal)?;
        let upload_seconds = clock.lap();
        let asks = self.next.enter(turn, || watch.cancelled()).ok_or_else(|| refusal(Error::Interrupted))?;
        *lock(&watch.asks) = Some(asks);
        let witness = staged.witness().clone();
        let proved = engine.prove_staged(&key, staged, &watch).map_err(refusal)?;
        let (asked, ended) = (clock.0, Instant::now());
        drop(inside);
        let turned = lock(&watch.turn).unwrap_or(asked);
        watch.stage("answer");
        let (fallback, remark) = (proved.fallback.as_ref().map(Fallback::as_str), proved.remark.as_deref());
        let remarks: Vec<_> = fallback.into_iter().chain(remark).collect();
        let fault = proved.fallback.as_ref().map(|fallback| match fallback {
            Fallback::DeviceFailed(_) => Fault::DeviceFailed,
            Fallback::WrongProof(_) => Fault::WrongProof,
        });
        let made = Made {
            job: order.job.clone(),
            attempt: order.attempt,
            proof: proved.proof.to_json(),
            publics: proved.publics.to_json(),
            times: Times {
                key: key_seconds,
                read: read_seconds,
                upload: upload_seconds,
                turn: wait_seconds + (turned - asked).as_secs_f64(),
                proof: (ended - turned).as_secs_f64(),
            },
            device: proved.device.clone(),
            remark: (!remarks.is_empty()).then(|| remarks.join("; ")),
            fault,
            is_ahead,
        };
        Ok((made, witness))
    }

    fn read_ahead(&self, ahead: &Ahead) {
        (self.at)("ahead", 0);
        self.aheads.read(self.keys.engine(), ahead);
    }

    /// Sees to it that a key's file is here, and the one that was registered.
    fn have(&self, key: &KeyFile, wanted: &(dyn Fn() -> bool + Sync)) -> Result<(), Refusal> {
        if let Some(from) = &key.from {
            self.copy(key, from, wanted)?;
        }
        self.compare(key)?;
        self.keys.add_hashed_file(&key.hash, &key.path).map_err(refusal)
    }

    /// Copies the key from where all nodes have theirs, if it is not here.
    fn copy(&self, key: &KeyFile, from: &Source, wanted: &(dyn Fn() -> bool + Sync)) -> Result<(), Refusal> {
        let copied = super::have(&key.path, from, &key.hash, self.cache_bytes, wanted);
        let copied = copied.map_err(|error| {
            let reason = format!("the key cannot be had from the blobs: {error}");
            match (error.kind(), from) {
                (ErrorKind::InvalidData, _) => ("key_lost", reason, false),
                // A node that has a copy may take the job, and publishes the key again.
                (ErrorKind::NotFound, _) | (_, Source::File(_) | Source::Here(_)) => ("key_lost", reason, true),
                (_, Source::Object(_)) => (STORAGE_FAILED, reason, true),
            }
        })?;
        if copied {
            lock(&self.known).insert(key.hash.clone());
        }
        Ok(())
    }

    /// Fails where the key's file is not the one that was registered.
    fn compare(&self, key: &KeyFile) -> Result<(), Refusal> {
        if lock(&self.known).contains(&key.hash) {
            return Ok(());
        }
        let path = key.path.display();
        let unread = |e: std::io::Error| ("key_lost", format!("{path}: cannot read the key: {e}"), true);
        if hash_file(&key.path).map_err(unread)? != key.hash {
            let reason = format!("{path}: the key changed since it was registered; register it under another name");
            return Err(("key_lost", reason, false));
        }
        lock(&self.known).insert(key.hash.clone());
        Ok(())
    }

    /// Puts a key on the device before a job needs it, and says what came of it.
    fn load(&self, key: &KeyFile) {
        (self.at)("preload", 0);
        let refused = self.ahead(key).err().map(|(code, reason, _)| (code.into(), reason));
        self.note_keys();
        // Before the answer, so that whoever hears of that finds the key where it is.
        let beat = lock(&self.shared.beat).clone();
        self.shared.tell(&FromWorker::Beat(beat));
        self.shared.tell(&FromWorker::Loaded { hash: key.hash.clone(), refused });
    }

    fn ahead(&self, key: &KeyFile) -> Result<(), Refusal> {
        self.have(key, &|| true)?;
        {
            let mut counts = lock(&self.hands.counts);
            if !counts.roomless.is_empty() {
                let reason = "jobs in hand wait for room for their keys; try again when they are done";
                return Err(("out_of_memory", reason.into(), true));
            }
            // A job for whose key there is no room meanwhile waits, as it does for other jobs.
            counts.with_key += 1;
        }
        let loaded = self.keys.get(&key.hash, &Silent).map(|loaded| self.aheads.know(&key.hash, loaded.info()));
        lock(&self.hands.counts).with_key -= 1;
        self.hands.freed.notify_all();
        loaded.map_err(refusal)
    }
}

/// The memory that came with an order, if the whole witness can be in it.
fn held(order: &Order) -> Option<File> {
    let file = File::from(lock(&order.held).take()?);
    file.metadata().is_ok_and(|about| about.len() >= order.witness_bytes).then_some(file)
}

/// Reads the witness of an order.
fn read(
    engine: &Engine,
    order: &Order,
    key: &StoredKey,
    wanted: &(dyn Fn() -> bool + Sync),
) -> Result<Witness, Refusal> {
    let lost = |why: String| ("witness_lost", why, false);
    let name = PathBuf::from(order.witness.shown());
    let Some(seal) = &order.seal else {
        // What versions before sealing stored, in a folder.
        let found = std::fs::metadata(&name).map(|file| file.len());
        if !found.as_ref().is_ok_and(|bytes| *bytes == order.witness_bytes) {
            let found = found.map_or_else(|e| e.to_string(), |bytes| format!("{bytes} bytes"));
            let expected = order.witness_bytes;
            return Err(lost(format!(
                "the stored witness is damaged: {found}, expected {expected} bytes; submit it again"
            )));
        }
        return engine.read_witness_for(&name, key).map_err(refusal);
    };
    let damage = |e: std::io::Error| {
        let reason = format!("the witness: {e}");
        // One that is damaged stays so; one that is gone may be there for another node, whose folder is mounted.
        match (e.kind(), &order.witness) {
            (ErrorKind::InvalidData, _) | (ErrorKind::NotFound, Source::Object(_) | Source::Here(_)) => lost(reason),
            (ErrorKind::NotFound, Source::File(_)) => ("witness_lost", reason, order.key.from.is_some()),
            (_, Source::File(_) | Source::Here(_)) => ("witness_lost", reason, true),
            (_, Source::Object(_)) => (STORAGE_FAILED, reason, true),
        }
    };
    let (witness, failure) = match held(order) {
        Some(file) => {
            let mut memory = Memory::new(file, None, order.witness_bytes);
            (engine.read_witness_from(&mut memory, &name, key.info()), memory.failure())
        }
        None => {
            let opened = order.witness.open(wanted);
            let opened = opened.and_then(|opened| Opener::open(opened, seal, order.witness_bytes));
            let mut opener = opened.map_err(damage)?;
            (engine.read_witness_from(&mut opener, &name, key.info()), opener.failure())
        }
    };
    // What is wrong with the blob comes before what is wrong with the witness.
    match failure {
        Some(error) => Err(damage(error)),
        None => witness.map_err(refusal),
    }
}

/// Since when a stage goes on.
struct Clock(Instant);

impl Clock {
    /// Seconds of the stage that is over.
    fn lap(&mut self) -> f64 {
        let now = Instant::now();
        let seconds = (now - self.0).as_secs_f64();
        self.0 = now;
        seconds
    }
}

/// BLAKE3 of a file in hexadecimal, read piece by piece: what stands for a key's content.
///
/// # Errors
/// The file cannot be read.
pub fn hash_file(path: &Path) -> std::io::Result<String> {
    let mut file = std::fs::File::open(path)?;
    let mut hasher = blake3::Hasher::new();
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hasher.finalize().to_hex().to_string()),
            count => hasher.update_rayon(&piece[..count]),
        };
    }
}

fn refusal(error: Error) -> Refusal {
    let code = match error.code() {
        ErrorCode::InvalidProof => "invalid_proof",
        ErrorCode::BadInput => "bad_input",
        ErrorCode::Unsatisfied => "unsatisfied",
        ErrorCode::Device => "device",
        ErrorCode::OutOfMemory => "out_of_memory",
        ErrorCode::Interrupted => "interrupted",
        _ => "internal",
    };
    (code, error.to_string(), error.code().is_retryable())
}
