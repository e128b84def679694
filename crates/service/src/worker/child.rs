//! What a worker does: it opens its device, makes the proofs that it is told to, and says twice a second that it lives.

use super::protocol::{receive, send, Beat, Failure, FromWorker, Made, Order, ToWorker};
use std::collections::HashSet;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{channel, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tandem_engine::{Engine, Error, ErrorCode, KeyStore, Lane, Progress};

/// Between two signs of life.
const BEAT: Duration = Duration::from_millis(500);

/// Bytes of a key that are hashed at a time.
const PIECE: usize = 8 << 20;

/// Runs as a worker of the service, which holds the other end of standard input; returns never but for an error. `open` opens the
/// device, of whose memory keys may take `key_bytes`.
///
/// # Errors
/// Standard input is no socket of the service's, or the device cannot be had.
pub fn work(open: impl FnOnce() -> tandem_engine::Result<Engine>, key_bytes: u64) -> Result<(), String> {
    work_watched(open, key_bytes, &|_, _| {})
}

/// [`work`] that tells of each stage of each proof before it begins, with the number of the attempt: for tests that end or stop the
/// process there.
///
/// # Errors
/// As [`work`].
#[doc(hidden)]
pub fn work_watched(
    open: impl FnOnce() -> tandem_engine::Result<Engine>,
    key_bytes: u64,
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
    let worker = Worker { keys: KeyStore::new(engine, key_bytes), known: Mutex::default(), shared, at };
    for todo in inbox {
        match todo {
            ToWorker::Prove(order) => worker.answer(&order),
            ToWorker::Evict { hash } => {
                worker.keys.evict(&hash);
                worker.note_keys();
            }
            ToWorker::Stop { .. } => {}
        }
    }
    Ok(())
}

/// What the threads of a worker share.
struct Shared {
    to: Mutex<UnixStream>,
    beat: Mutex<Beat>,
    /// The last attempt that was not wanted any more.
    stopped: Mutex<Option<(String, i64)>>,
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
    fn listen(&self, mut from: UnixStream, orders: &Sender<ToWorker>) {
        while let Ok(Some(message)) = receive(&mut from) {
            if let ToWorker::Stop { job, attempt } = &message {
                *lock(&self.stopped) = Some((job.clone(), *attempt));
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
    shared: Arc<Shared>,
    at: &'a (dyn Fn(&str, i64) + Sync),
}

/// Hears of one proof.
struct Watch<'a> {
    worker: &'a Worker<'a>,
    order: &'a Order,
}

impl Watch<'_> {
    fn stage(&self, stage: &str) {
        lock(&self.worker.shared.beat).stage = Some(stage.into());
        (self.worker.at)(stage, self.order.attempt);
    }
}

impl Progress for Watch<'_> {
    fn start(&self, task: &'static str, _: u64) {
        self.stage(task);
    }
    fn enqueued(&self, stage: &'static str, _: Lane) {
        self.stage(stage);
    }
    fn cancelled(&self) -> bool {
        let stopped = lock(&self.worker.shared.stopped);
        stopped.as_ref().is_some_and(|(job, attempt)| *job == self.order.job && *attempt == self.order.attempt)
    }
}

/// Why an order cannot be carried out: a word, a sentence, and whether another time or place may help.
type Refusal = (&'static str, String, bool);

impl Worker<'_> {
    fn answer(&self, order: &Order) {
        let (job, attempt) = (order.job.clone(), order.attempt);
        let answer = match self.prove(order) {
            Ok(made) => FromWorker::Done(made),
            Err((code, reason, is_retryable)) => {
                // The blob's name says nothing to the caller.
                let reason = reason.replace(&order.witness.display().to_string(), "the witness");
                FromWorker::Failed(Failure { job, attempt, code: code.into(), reason, is_retryable })
            }
        };
        lock(&self.shared.beat).stage = None;
        self.note_keys();
        self.shared.tell(&answer);
    }

    fn note_keys(&self) {
        let (keys, key_bytes) = (self.keys.resident(), self.keys.used_bytes());
        let mut beat = lock(&self.shared.beat);
        (beat.keys, beat.key_bytes) = (keys, key_bytes);
    }

    fn prove(&self, order: &Order) -> Result<Made, Refusal> {
        let watch = Watch { worker: self, order };
        watch.stage("key");
        self.compare(order)?;
        self.keys.add_file(&order.key_hash, &order.key).map_err(refusal)?;
        let key = self.keys.get(&order.key_hash, &watch).map_err(refusal)?;
        watch.stage("witness");
        let found = std::fs::metadata(&order.witness).map(|file| file.len());
        if !found.as_ref().is_ok_and(|bytes| *bytes == order.witness_bytes) {
            let found = found.map_or_else(|e| e.to_string(), |bytes| format!("{bytes} bytes"));
            let expected = order.witness_bytes;
            let reason = format!("the stored witness is damaged: {found}, expected {expected} bytes; submit it again");
            return Err(("witness_lost", reason, false));
        }
        let engine = self.keys.engine();
        let witness = engine.read_witness_for(&order.witness, &key).map_err(refusal)?;
        let proved = engine.prove(&key, &witness, &watch).map_err(refusal)?;
        watch.stage("answer");
        let remarks: Vec<_> = proved.fallback.iter().chain(&proved.remark).map(String::as_str).collect();
        Ok(Made {
            job: order.job.clone(),
            attempt: order.attempt,
            proof: proved.proof.to_json(),
            publics: proved.publics.to_json(),
            seconds: proved.seconds,
            device: proved.device.clone(),
            remark: (!remarks.is_empty()).then(|| remarks.join("; ")),
            is_wrong_device: proved.fallback.is_some(),
        })
    }

    /// Fails where the key's file is not the one that was registered.
    fn compare(&self, order: &Order) -> Result<(), Refusal> {
        if lock(&self.known).contains(&order.key_hash) {
            return Ok(());
        }
        let unread =
            |e: std::io::Error| ("key_lost", format!("{}: cannot read the key: {e}", order.key.display()), true);
        if hash_file(&order.key).map_err(unread)? != order.key_hash {
            let path = order.key.display();
            let reason = format!("{path}: the key changed since it was registered; register it under another name");
            return Err(("key_lost", reason, false));
        }
        lock(&self.known).insert(order.key_hash.clone());
        Ok(())
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
