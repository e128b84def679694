//! One worker as the service sees it: a process that is started, watched, ended and started again, and the job that it has.

use super::protocol::{receive, send, Beat, FromWorker, Made, Order, ToWorker};
use crate::core::{now_ms, Core};
use crate::log::log;
use crate::store::{Claim, Failed, JobResult, Lease};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// An idle worker looks for work at least so often: for jobs whose pause is over.
const LOOK: Duration = Duration::from_millis(200);

/// How long a worker may take to let go of a job that is not wanted any more, before it is ended.
const LET_GO: Duration = Duration::from_secs(5);

/// How long others may take up a job before the worker on which it failed gets it again.
const ELSEWHERE_MS: i64 = 5_000;

/// The pause before the second attempt; each further one is twice as long.
const AGAIN_MS: i64 = 100;

/// The pause before a worker is started again; after each that ended no job it is twice as long.
const PAUSE: Duration = Duration::from_millis(100);

/// A worker's place, whichever process fills it.
pub(crate) struct Slot {
    /// Its number and device, such as `0:cpu`.
    pub(crate) name: String,
    device: String,
    events: Sender<Event>,
    inbox: Mutex<Option<Receiver<Event>>>,
    is_idle: AtomicBool,
    status: Mutex<SlotStatus>,
}

/// What is known of a worker.
#[derive(Debug, Clone, Default)]
pub(crate) struct SlotStatus {
    pub(crate) is_ready: bool,
    pub(crate) pid: Option<u32>,
    pub(crate) device: String,
    pub(crate) lease: Option<Lease>,
    pub(crate) beat: Option<Beat>,
    pub(crate) restarts: u64,
    pub(crate) trouble: Option<String>,
}

enum Event {
    /// There may be work.
    Wake,
    /// The attempt is not wanted any more.
    Stop(Lease),
    Evict(String),
    /// A process said something.
    Said(u64, FromWorker),
    /// A process has gone, or speaks wrongly.
    Gone(u64, String),
}

/// What becomes of the process after a job.
enum Next {
    Stays,
    /// It is ended and started again, for this reason.
    Ends(String),
}

/// A process, which ends with this.
struct Process {
    child: Child,
    to: UnixStream,
    number: u64,
    heard: Instant,
    /// Whether it has ended a job by itself, so that another like it is started at once.
    was_useful: bool,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Slot {
    pub(crate) fn new(number: usize, device: &str) -> Slot {
        let (events, inbox) = channel();
        let name = format!("{number}:{device}");
        let inbox = Mutex::new(Some(inbox));
        let (is_idle, status) = (AtomicBool::new(false), Mutex::default());
        Slot { name, device: device.into(), events, inbox, is_idle, status }
    }

    fn lock(&self) -> MutexGuard<'_, SlotStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn status(&self) -> SlotStatus {
        self.lock().clone()
    }

    /// Tells an idle worker of work.
    pub(crate) fn wake(&self) {
        if self.is_idle.swap(false, Ordering::SeqCst) {
            let _ = self.events.send(Event::Wake);
        }
    }

    /// Tells a worker that an attempt is over.
    pub(crate) fn stop(&self, lease: &Lease) {
        let _ = self.events.send(Event::Stop(lease.clone()));
    }

    pub(crate) fn evict(&self, hash: &str) {
        let _ = self.events.send(Event::Evict(hash.into()));
    }

    /// Keeps a worker going until the service drains.
    pub(crate) fn run(&self, core: &Core) {
        let inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(inbox) = inbox else { return };
        let mut pause = PAUSE / 2;
        for number in 1.. {
            let mut was_useful = false;
            let trouble = match self.start(core, number) {
                Ok(mut process) => {
                    let trouble = self.attend(core, &mut process, &inbox);
                    was_useful = process.was_useful;
                    trouble
                }
                Err(error) => Some(format!("the worker cannot be started: {error}")),
            };
            let Some(trouble) = trouble else { break };
            log("worker_ended", &[("worker", &self.name), ("reason", &trouble)]);
            core.metrics.add("tandem_worker_restarts_total", &[("worker", &self.name)], 1.0);
            let restarts = self.lock().restarts + 1;
            *self.lock() = SlotStatus { restarts, trouble: Some(trouble), ..SlotStatus::default() };
            let longest = Duration::from_secs(core.config.backoff_seconds.into());
            pause = if was_useful { PAUSE } else { (pause * 2).min(longest) };
            let over = Instant::now() + pause;
            while Instant::now() < over && !core.is_draining() {
                std::thread::sleep(LOOK.min(pause));
            }
            if core.is_draining() {
                break;
            }
        }
        self.lock().is_ready = false;
    }

    fn start(&self, core: &Core, number: u64) -> std::io::Result<Process> {
        let (to, theirs) = UnixStream::pair()?;
        let mut command = (core.worker)(&self.device);
        // A group of its own: Ctrl-C at the terminal is the service's to act on.
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).process_group(0);
        let child = command.spawn()?;
        drop(command);
        let process = Process { child, to, number, heard: Instant::now(), was_useful: false };
        let mut from = process.to.try_clone()?;
        let events = self.events.clone();
        std::thread::Builder::new().name(format!("hear {}", self.name)).spawn(move || loop {
            let event = match receive(&mut from) {
                Ok(Some(message)) => Event::Said(number, message),
                Ok(None) => Event::Gone(number, "the worker died".into()),
                Err(error) => Event::Gone(number, format!("the worker speaks wrongly: {error}")),
            };
            let is_over = matches!(event, Event::Gone(..));
            if events.send(event).is_err() || is_over {
                break;
            }
        })?;
        self.lock().pid = Some(process.child.id());
        Ok(process)
    }

    /// Works with a process until it is to be ended, and says why; `None` when the service drains.
    fn attend(&self, core: &Core, process: &mut Process, inbox: &Receiver<Event>) -> Option<String> {
        loop {
            if core.is_draining() {
                return None;
            }
            if self.lock().is_ready {
                self.is_idle.store(true, Ordering::SeqCst);
                let elsewhere = if core.config.workers.len() > 1 { ELSEWHERE_MS } else { 0 };
                match core.store.claim(&self.name, now_ms(), elsewhere) {
                    Ok(Some(claim)) => {
                        self.is_idle.store(false, Ordering::SeqCst);
                        self.lock().lease = Some(claim.lease.clone());
                        let next = self.job(core, process, inbox, &claim);
                        self.lock().lease = None;
                        match next {
                            Next::Stays => continue,
                            Next::Ends(why) => return Some(why),
                        }
                    }
                    Ok(None) => {}
                    Err(error) => log("claim_failed", &[("worker", &self.name), ("reason", &error.to_string())]),
                }
            }
            match inbox.recv_timeout(LOOK) {
                Ok(Event::Evict(hash)) => {
                    let _ = send(&mut process.to, &ToWorker::Evict { hash });
                }
                Ok(Event::Said(number, FromWorker::Ready { device })) if number == process.number => {
                    process.heard = Instant::now();
                    log("worker_ready", &[("worker", &self.name), ("device", &device)]);
                    let mut status = self.lock();
                    (status.is_ready, status.device, status.trouble) = (true, device, None);
                }
                Ok(Event::Said(number, FromWorker::Broken { reason })) if number == process.number => {
                    return Some(reason);
                }
                Ok(Event::Said(number, message)) => self.hear(process, number, message),
                Ok(Event::Gone(number, why)) if number == process.number => return Some(why),
                // An attempt that has ended by itself, a process before this one, a wish to look for work.
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
            if process.heard.elapsed() > self.silence(core) {
                return Some("the worker gave no sign of life".into());
            }
        }
    }

    fn silence(&self, core: &Core) -> Duration {
        Duration::from_secs(core.config.beat_seconds.into())
    }

    fn hear(&self, process: &mut Process, number: u64, message: FromWorker) {
        if number == process.number {
            process.heard = Instant::now();
            if let FromWorker::Beat(beat) = message {
                self.lock().beat = Some(beat);
            }
        }
    }

    /// Has a job done, and writes down what came of it.
    fn job(&self, core: &Core, process: &mut Process, inbox: &Receiver<Event>, claim: &Claim) -> Next {
        let Claim { lease, key, .. } = claim;
        let order = Order {
            job: lease.job.clone(),
            attempt: lease.attempt,
            key: key.path.clone().into(),
            key_hash: key.hash.clone(),
            witness: core.witnesses.path(&claim.witness),
            witness_bytes: claim.witness_bytes,
        };
        let (begun, bound) = (Instant::now(), Duration::from_secs(core.config.proof_seconds.into()));
        process.heard = begun;
        if let Err(error) = send(&mut process.to, &ToWorker::Prove(order)) {
            let why = format!("the worker took no order: {error}");
            self.failed(core, lease, "worker_died", &why, true);
            return Next::Ends(why);
        }
        loop {
            match inbox.recv_timeout(LOOK) {
                Ok(Event::Said(number, FromWorker::Done(made)))
                    if number == process.number && is_of(lease, &made.job, made.attempt) =>
                {
                    process.was_useful = true;
                    return self.done(core, claim, made);
                }
                Ok(Event::Said(number, FromWorker::Failed(failure)))
                    if number == process.number && is_of(lease, &failure.job, failure.attempt) =>
                {
                    self.failed(core, lease, &failure.code, &failure.reason, failure.is_retryable);
                    return match failure.code.as_str() {
                        // A device that failed once fails again in the same process, and memory that leaked comes back with its end.
                        "device" | "out_of_memory" => Next::Ends(failure.reason),
                        _ => Next::Stays,
                    };
                }
                Ok(Event::Said(number, message)) => self.hear(process, number, message),
                Ok(Event::Gone(number, why)) if number == process.number => {
                    self.failed(core, lease, "worker_died", &why, true);
                    return Next::Ends(why);
                }
                Ok(Event::Stop(stopped)) if stopped == *lease => return self.let_go(process, inbox, lease),
                Ok(Event::Evict(hash)) => {
                    let _ = send(&mut process.to, &ToWorker::Evict { hash });
                }
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Next::Ends("the service ends".into()),
            }
            if claim.deadline_ms.is_some_and(|deadline| deadline <= now_ms()) {
                self.failed(core, lease, "deadline", "the deadline passed while the proof was made", false);
                return self.let_go(process, inbox, lease);
            }
            let why = if process.heard.elapsed() > self.silence(core) {
                "the worker gave no sign of life".to_string()
            } else if begun.elapsed() > bound {
                format!("the attempt took longer than proof_seconds, {} s", core.config.proof_seconds)
            } else {
                continue;
            };
            self.failed(core, lease, "worker_hung", &why, true);
            return Next::Ends(why);
        }
    }

    fn done(&self, core: &Core, claim: &Claim, made: Made) -> Next {
        let is_wrong_device = made.is_wrong_device;
        let result = JobResult {
            proof: made.proof,
            publics: made.publics,
            seconds: made.seconds,
            device: made.device,
            remark: made.remark,
        };
        core.finished(&self.name, claim, &result);
        if is_wrong_device {
            core.metrics.add("tandem_wrong_proofs_total", &[("worker", &self.name)], 1.0);
            return Next::Ends("the device made a wrong proof, which was made again on the CPU".into());
        }
        Next::Stays
    }

    fn failed(&self, core: &Core, lease: &Lease, code: &str, reason: &str, is_retryable: bool) {
        let again = is_retryable.then(|| AGAIN_MS << lease.attempt.clamp(0, 8));
        if core.attempt_failed(lease, code, reason, again) != Failed::Stale {
            log("attempt_failed", &[("job", &lease.job), ("worker", &self.name), ("code", code), ("reason", reason)]);
        }
    }

    /// Tells the worker to stop, and waits until it has, or not much longer.
    fn let_go(&self, process: &mut Process, inbox: &Receiver<Event>, lease: &Lease) -> Next {
        let late = Next::Ends("the worker did not stop when it was told to".into());
        let stop = ToWorker::Stop { job: lease.job.clone(), attempt: lease.attempt };
        if send(&mut process.to, &stop).is_err() {
            return late;
        }
        let over = Instant::now() + LET_GO;
        while let Some(left) = over.checked_duration_since(Instant::now()) {
            match inbox.recv_timeout(left) {
                Ok(Event::Said(number, FromWorker::Done(Made { job, attempt, .. }))) if number == process.number => {
                    if is_of(lease, &job, attempt) {
                        return Next::Stays;
                    }
                }
                Ok(Event::Said(number, FromWorker::Failed(failure))) if number == process.number => {
                    if is_of(lease, &failure.job, failure.attempt) {
                        return Next::Stays;
                    }
                }
                Ok(Event::Said(number, message)) => self.hear(process, number, message),
                Ok(Event::Gone(number, why)) if number == process.number => return Next::Ends(why),
                Ok(_) => {}
                Err(_) => break,
            }
        }
        late
    }
}

fn is_of(lease: &Lease, job: &str, attempt: i64) -> bool {
    lease.job == job && lease.attempt == attempt
}
