//! One worker as the service sees it: a process that is started, watched, ended and started again, and the jobs that it has in hand.

use super::hands::{Hand, Hands, Offer};
use super::loads::{Loaded, Loads};
use super::process::{Process, Trouble};
use super::protocol::{receive, send, send_with, Ahead, Beat, Fault, FromWorker, KeyFile, Made, Order, ToWorker};
use crate::blobs::Source;
use crate::core::{self, Core, GIVEN_BACK, STORAGE_FAILED};
use crate::log::log;
use crate::objects::SECRET_VARIABLES;
use crate::store::{Claim, Ending, Failed, JobResult, Lease};
use crate::Role;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// A worker looks for work at least so often: for jobs whose pause is over, and for those that another one has not begun.
const LOOK: Duration = Duration::from_millis(200);

/// How long a worker may take to let go of a job that is not wanted any more, before it is ended.
const LET_GO: Duration = Duration::from_secs(5);

/// A witness that comes more slowly is not read ahead: others may need its place.
const COMES: Duration = Duration::from_secs(5);

/// How long others may take up a job before the worker on which it failed gets it again.
const ELSEWHERE_MS: i64 = 5_000;

/// The pause before the second attempt; each further one is twice as long.
const AGAIN_MS: i64 = 100;

/// The pause before a worker is started again; after each that ended no job it is twice as long.
const PAUSE: Duration = Duration::from_millis(100);

/// In place of the number of jobs in hand: there is no worker that could take one.
const ABSENT: usize = usize::MAX;

/// A worker's place, whichever process fills it.
pub(crate) struct Slot {
    /// Its number and device, such as `0:cpu`.
    pub(crate) name: String,
    device: String,
    events: Sender<Event>,
    inbox: Mutex<Option<Receiver<Event>>>,
    /// Jobs in hand, or [`ABSENT`].
    load: AtomicUsize,
    /// Whether it has been told to look for work and has not yet.
    is_woken: AtomicBool,
    /// Whether it had no job in hand at some time since it was last asked.
    was_idle: AtomicBool,
    /// Jobs whose witnesses it reads before they are its own.
    ahead: Mutex<Vec<String>>,
    status: Mutex<SlotStatus>,
}

/// What is known of a worker.
#[derive(Debug, Clone, Default)]
pub(crate) struct SlotStatus {
    pub(crate) is_ready: bool,
    pub(crate) pid: Option<u32>,
    pub(crate) device: String,
    /// Of the jobs in hand, the one that came first in front.
    pub(crate) leases: Vec<Lease>,
    pub(crate) beat: Option<Beat>,
    pub(crate) restarts: u64,
    pub(crate) trouble: Option<String>,
}

impl SlotStatus {
    /// What the worker does for a job in hand.
    pub(crate) fn stage(&self, job: &str) -> Option<&str> {
        self.beat.as_ref()?.stages.get(job).map(String::as_str)
    }
}

enum Event {
    /// There may be work.
    Wake,
    /// Another worker is idle: a job that is not begun may go there.
    Wanted,
    /// A witness comes.
    Offered(Offer),
    /// The attempt is not wanted any more.
    Stop(Lease),
    /// A key is wanted on the device, and somebody may wait for it.
    Load(KeyFile, oneshot::Sender<Loaded>),
    Evict(String),
    /// A process said something.
    Said(u64, FromWorker),
    /// A process has gone, or speaks wrongly.
    Gone(u64, String),
}

impl Slot {
    pub(crate) fn new(number: usize, device: &str) -> Slot {
        let (events, inbox) = channel();
        let name = format!("{number}:{device}");
        let inbox = Mutex::new(Some(inbox));
        let (load, is_woken, was_idle) = (AtomicUsize::new(ABSENT), AtomicBool::new(false), AtomicBool::new(false));
        let (device, ahead, status) = (device.into(), Mutex::default(), Mutex::default());
        Slot { name, device, events, inbox, load, is_woken, was_idle, ahead, status }
    }

    fn lock(&self) -> MutexGuard<'_, SlotStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn status(&self) -> SlotStatus {
        self.lock().clone()
    }

    /// Whether it could begin a job at once.
    pub(crate) fn is_idle(&self) -> bool {
        self.load.load(Ordering::SeqCst) == 0
    }

    /// Whether it could have begun a job at once at some time since this was last asked: what it is at in that moment says less, for a
    /// proof may take no longer than the time between two questions.
    pub(crate) fn was_idle(&self) -> bool {
        self.was_idle.swap(false, Ordering::SeqCst) && self.load.load(Ordering::SeqCst) != ABSENT || self.is_idle()
    }

    /// Tells a worker of work, if it may have so many jobs in hand and one more.
    pub(crate) fn wake(&self, in_hand: usize) {
        if self.load.load(Ordering::SeqCst) < in_hand && !self.is_woken.swap(true, Ordering::SeqCst) {
            let _ = self.events.send(Event::Wake);
        }
    }

    fn ahead(&self) -> MutexGuard<'_, Vec<String>> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it reads the witness of a job that is nobody's yet.
    pub(crate) fn reads(&self, job: &str) -> bool {
        self.ahead().iter().any(|ahead| ahead == job)
    }

    /// Jobs that it has or may get, where it has the key of this hash on its device and could have one more of `in_hand`.
    pub(crate) fn would_read(&self, key: &str, in_hand: usize) -> Option<usize> {
        let load = self.load.load(Ordering::SeqCst);
        let has_key = || self.lock().beat.as_ref().is_some_and(|beat| beat.keys.iter().any(|has| has == key));
        (load < in_hand && has_key()).then(|| load + self.ahead().len())
    }

    /// Has the worker read a witness while it comes.
    pub(crate) fn offer(&self, offer: Offer) {
        let _ = self.events.send(Event::Offered(offer));
    }

    /// Has it look at once how the service is.
    pub(crate) fn look(&self) {
        let _ = self.events.send(Event::Wake);
    }

    /// Asks a worker for a job that it has in hand and has not begun.
    pub(crate) fn want(&self) {
        if (2..ABSENT).contains(&self.load.load(Ordering::SeqCst)) {
            let _ = self.events.send(Event::Wanted);
        }
    }

    /// Tells a worker that an attempt is over.
    pub(crate) fn stop(&self, lease: &Lease) {
        let _ = self.events.send(Event::Stop(lease.clone()));
    }

    /// Has the worker load a key before a job needs it. What comes says what came of it, or that the worker ended.
    pub(crate) fn load(&self, key: KeyFile) -> oneshot::Receiver<Loaded> {
        let (who, loaded) = oneshot::channel();
        let _ = self.events.send(Event::Load(key, who));
        loaded
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
                    let trouble = self.attend(core, &mut process, &inbox).map(|trouble| trouble.why);
                    self.load.store(ABSENT, Ordering::SeqCst);
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
        let mut command = (core.worker)(Role::Prover(&self.device));
        for name in SECRET_VARIABLES {
            command.env_remove(name);
        }
        // A group of its own: Ctrl-C at the terminal is the service's to act on.
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).process_group(0);
        let child = command.spawn()?;
        drop(command);
        let process = Process { child, to, number, heard: Instant::now(), was_useful: false, loads: Loads::default() };
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
    fn attend(&self, core: &Core, process: &mut Process, inbox: &Receiver<Event>) -> Option<Trouble> {
        let mut hands = Hands::default();
        let trouble = self.serve(core, process, inbox, &mut hands).err()?;
        // Before the memory of a witness that it may still read is used again.
        process.end();
        // A process that ended with several jobs in hand may have ended of any of them: none is blamed, and each is tried alone. What
        // befalls it then is its own.
        let several = hands.len() > 1;
        for hand in hands.drain().filter(|hand| hand.let_go.is_none()) {
            let counts = !trouble.is_told && !several;
            self.give_up(core, &hand.claim.lease, trouble.code, &trouble.why, (counts, !trouble.is_told && several));
        }
        self.lock().leases.clear();
        self.ahead().clear();
        Some(trouble)
    }

    /// `Ok` when the service drains and no job is in hand any more.
    fn serve(
        &self,
        core: &Core,
        process: &mut Process,
        inbox: &Receiver<Event>,
        hands: &mut Hands,
    ) -> Result<(), Trouble> {
        let mut looks = true;
        loop {
            if core.is_draining() {
                self.load.store(ABSENT, Ordering::SeqCst);
                hands.end_ahead((0, 0), COMES);
                while self.give_back(core, process, hands, "the service is being stopped")? {}
                if hands.are_let_go() {
                    return Ok(());
                }
            } else if looks && self.lock().is_ready {
                self.fill(core, process, hands)?;
            }
            looks = match inbox.recv_timeout(LOOK) {
                Ok(Event::Wake) => true,
                Ok(Event::Wanted) => {
                    self.give_back(core, process, hands, "another worker is idle")?;
                    false
                }
                Ok(Event::Offered(offer)) => {
                    self.read_ahead(core, process, hands, offer)?;
                    false
                }
                Ok(Event::Load(key, who)) => {
                    process.load(key, Some(who))?;
                    false
                }
                Ok(Event::Evict(hash)) => {
                    let _ = send(&mut process.to, &ToWorker::Evict { hash });
                    false
                }
                Ok(Event::Stop(lease)) => {
                    self.let_go(process, hands, &lease)?;
                    false
                }
                Ok(Event::Said(number, message)) if number == process.number => {
                    process.heard = Instant::now();
                    self.said(core, process, hands, message)?
                }
                Ok(Event::Gone(number, why)) if number == process.number => {
                    return Err(Trouble::of_any("worker_died", why));
                }
                // A process before this one.
                Ok(Event::Said(..) | Event::Gone(..)) => false,
                Err(RecvTimeoutError::Timeout) => {
                    if hands.len() == 0 && self.is_idle() {
                        core.slots.iter().for_each(Slot::want);
                    }
                    true
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
            self.check(core, process, hands)?;
        }
    }

    /// Takes what a process says; whether there may be room for a job more.
    fn said(
        &self,
        core: &Core,
        process: &mut Process,
        hands: &mut Hands,
        message: FromWorker,
    ) -> Result<bool, Trouble> {
        match message {
            FromWorker::Beat(beat) => {
                let before = self.lock().beat.replace(beat.clone()).map_or(Vec::new(), |before| before.keys);
                let gone = before.iter().filter(|key| !beat.keys.contains(key)).count();
                if gone > 0 {
                    core.metrics.add("tandem_key_evictions_total", &[("worker", &self.name)], gone as f64);
                }
            }
            FromWorker::Ready { device } => {
                log("worker_ready", &[("worker", &self.name), ("device", &device)]);
                let mut status = self.lock();
                (status.is_ready, status.device, status.trouble) = (true, device, None);
                drop(status);
                for key in core.preloaded() {
                    process.load(key, None)?;
                }
                return Ok(true);
            }
            FromWorker::Broken { reason } => return Err(Trouble::told(reason)),
            FromWorker::Loaded { hash, refused } => {
                let loaded = refused.map_or(Ok(()), Err);
                process.loads.end(&hash, &loaded);
                let (event, reason) = match &loaded {
                    Ok(()) => ("key_loaded", ""),
                    Err((_, reason)) => ("key_refused", reason.as_str()),
                };
                log(event, &[("worker", &self.name), ("key", &hash), ("reason", reason)]);
                if let Some((_, reason)) = loaded.err().filter(|(code, _)| code == "device") {
                    self.device_failed(core);
                    return Err(Trouble::told(reason));
                }
            }
            FromWorker::Begun { job, attempt } => {
                if let Some(hand) = hands.find(&job, attempt) {
                    hand.is_begun = true;
                }
            }
            FromWorker::Done(made) => {
                process.was_useful = true;
                let Some(hand) = hands.take(&made.job, made.attempt) else { return Ok(false) };
                // First the worker's next job, then the result: the device is not to wait for the disk.
                if !core.is_draining() && made.fault.is_none() {
                    self.fill(core, process, hands)?;
                }
                let done = if hand.let_go.is_none() { self.done(core, hand.claim, made) } else { Ok(()) };
                self.after_end(process, hands);
                done?;
            }
            FromWorker::Failed(failure) => {
                let Some(hand) = hands.take(&failure.job, failure.attempt) else { return Ok(false) };
                // A device that failed once fails again in the same process, and memory that leaked comes back with its end.
                let is_broken = ["device", "out_of_memory"].contains(&failure.code.as_str());
                if hand.let_go.is_none() {
                    let alone = is_broken && hands.len() > 0;
                    let again = failure.is_retryable.then(|| pause(&hand.claim.lease));
                    let (code, reason) = (failure.code, failure.reason.clone());
                    // A store that is away is no fault of the job.
                    let counts = code != STORAGE_FAILED;
                    let ending = Ending { code, reason, again, counts, is_alone: alone };
                    self.failed(core, &hand.claim.lease, &ending);
                }
                self.after_end(process, hands);
                if is_broken {
                    self.device_failed(core);
                    return Err(Trouble::told(failure.reason));
                }
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The jobs in hand that remain have the device from now on, and what was written down may have taken its time.
    fn after_end(&self, process: &mut Process, hands: &mut Hands) {
        process.heard = Instant::now();
        hands.restart_clocks();
        self.publish(hands);
    }

    fn publish(&self, hands: &Hands) {
        self.lock().leases = hands.leases();
        *self.ahead() = hands.ahead();
        self.load.store(hands.len(), Ordering::SeqCst);
    }

    /// Has the process read a witness while it comes, if there is room for it beside the jobs in hand.
    fn read_ahead(&self, core: &Core, process: &Process, hands: &mut Hands, offer: Offer) -> Result<(), Trouble> {
        let Some(held) = offer.held.upgrade() else { return Ok(()) };
        if core.is_draining() || !self.lock().is_ready || !hands.may_read(offer.bytes, room(core)) {
            return Ok(());
        }
        let (Some(reader), Some(pipe)) = (held.reader(), held.begin_ahead()) else { return Ok(()) };
        let Offer { job, key, bytes, .. } = &offer;
        let ahead = Ahead { job: job.clone(), key: key.clone(), bytes: *bytes, memory: Mutex::default() };
        let sent = send_with(&process.to, &ToWorker::Ahead(ahead), &[reader, pipe.as_fd()]);
        hands.read_ahead(offer);
        self.publish(hands);
        sent.map_err(|error| Trouble::of_any("worker_died", format!("the worker took no order: {error}")))
    }

    /// Claims jobs and gives them to the process: one, and more while no other worker is idle.
    fn fill(&self, core: &Core, process: &mut Process, hands: &mut Hands) -> Result<(), Trouble> {
        self.publish(hands);
        self.is_woken.store(false, Ordering::SeqCst);
        while hands.len() < core.config.in_hand && !hands.are_alone() {
            let beside = hands.room(core.config.witness_memory_mib << 20);
            if beside.is_some() && core.slots.iter().any(Slot::is_idle) {
                break;
            }
            let elsewhere = if core.config.workers.len() > 1 || core.store.is_shared() { ELSEWHERE_MS } else { 0 };
            let near = core.near(self.status().beat.map_or(Vec::new(), |beat| beat.keys));
            match core.store.claim_near(&self.name, core.now_ms(), elsewhere, beside, &near) {
                Ok(Some(claim)) => {
                    let held = core.held.hand(&claim.lease.job);
                    let is_ahead = hands.take_ahead(&claim.lease.job) && held.is_some();
                    if let Some(held) = held.as_ref().filter(|_| !is_ahead) {
                        held.end_ahead();
                    }
                    let order = ToWorker::Prove(Box::new(order(core, &claim, is_ahead)));
                    let from = if held.is_some() { "memory" } else { "blob" };
                    core.metrics.add("tandem_witnesses_given_total", &[("from", from)], 1.0);
                    hands.push(Hand::new(claim, held.clone()));
                    hands.end_ahead(room(core), COMES);
                    self.publish(hands);
                    let sent = match held.as_ref().and_then(|held| held.reader()) {
                        Some(reader) => send_with(&process.to, &order, &[reader]),
                        None => send(&mut process.to, &order),
                    };
                    if let Err(error) = sent {
                        return Err(Trouble::of_any("worker_died", format!("the worker took no order: {error}")));
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    log("claim_failed", &[("worker", &self.name), ("reason", &error.to_string())]);
                    break;
                }
            }
        }
        if hands.len() == 0 {
            self.was_idle.store(true, Ordering::SeqCst);
        }
        Ok(())
    }

    /// Gives the last job in hand that has not begun back to the queue, unless it is the only one; whether there was one.
    fn give_back(&self, core: &Core, process: &mut Process, hands: &mut Hands, why: &str) -> Result<bool, Trouble> {
        let Some(lease) = hands.spare() else { return Ok(false) };
        self.let_go(process, hands, &lease)?;
        let (code, reason) = (GIVEN_BACK.into(), why.into());
        let ending = Ending { code, reason, again: Some(0), counts: false, is_alone: false };
        core.attempt_failed(&lease, &ending);
        Ok(true)
    }

    /// Ends what takes too long.
    fn check(&self, core: &Core, process: &mut Process, hands: &mut Hands) -> Result<(), Trouble> {
        hands.end_ahead(room(core), COMES);
        *self.ahead() = hands.ahead();
        let now = core.now_ms();
        for lease in hands.late(now) {
            let reason = "the deadline passed before the proof was made".into();
            let ending = Ending { code: "deadline".into(), reason, again: None, counts: true, is_alone: false };
            self.failed(core, &lease, &ending);
            self.let_go(process, hands, &lease)?;
            process.heard = Instant::now();
        }
        if hands.are_held(LET_GO) {
            return Err(Trouble::told("the worker did not stop when it was told to"));
        }
        if process.heard.elapsed() > Duration::from_secs(core.config.beat_seconds.into()) {
            return Err(Trouble::of_any("worker_hung", "the worker gave no sign of life"));
        }
        let bound = Duration::from_secs(core.config.proof_seconds.into());
        if process.loads.are_late(bound) {
            return Err(Trouble::told(format!(
                "loading a key took longer than proof_seconds, {} s",
                core.config.proof_seconds
            )));
        }
        if let Some(hand) = hands.take_hung(bound) {
            process.end();
            let why = format!("the attempt took longer than proof_seconds, {} s", core.config.proof_seconds);
            self.give_up(core, &hand.claim.lease, "worker_hung", &why, (true, hands.len() > 0));
            return Err(Trouble::told(why));
        }
        Ok(())
    }

    fn done(&self, core: &Core, claim: Claim, made: Made) -> Result<(), Trouble> {
        let fault = made.fault;
        core.metrics.add("tandem_witnesses_read_ahead_total", &[], f64::from(u8::from(made.is_ahead)));
        let result = JobResult {
            proof: made.proof,
            publics: made.publics,
            seconds: made.times.proof,
            times: Some(made.times),
            device: made.device,
            remark: made.remark,
        };
        core.finished(core::Made { worker: self.name.clone(), claim, result });
        match fault {
            None => Ok(()),
            Some(Fault::WrongProof) => {
                core.metrics.add("tandem_wrong_proofs_total", &[("worker", &self.name)], 1.0);
                Err(Trouble::told("the device made a wrong proof, which was made again"))
            }
            Some(Fault::DeviceFailed) => {
                self.device_failed(core);
                Err(Trouble::told("the device failed, and the CPU made the proof"))
            }
        }
    }

    fn device_failed(&self, core: &Core) {
        core.metrics.add("tandem_device_failures_total", &[("worker", &self.name)], 1.0);
    }

    /// Ends an attempt that may be made again.
    fn give_up(&self, core: &Core, lease: &Lease, code: &str, why: &str, (counts, is_alone): (bool, bool)) {
        let (code, reason) = (code.into(), why.into());
        self.failed(core, lease, &Ending { code, reason, again: Some(pause(lease)), counts, is_alone });
    }

    fn failed(&self, core: &Core, lease: &Lease, ending: &Ending) {
        if core.attempt_failed(lease, ending) != Failed::Stale {
            let (code, reason) = (ending.code.as_str(), ending.reason.as_str());
            log("attempt_failed", &[("job", &lease.job), ("worker", &self.name), ("code", code), ("reason", reason)]);
        }
    }

    /// Tells the worker to stop an attempt that it has in hand; [`Slot::check`] sees that it does.
    fn let_go(&self, process: &mut Process, hands: &mut Hands, lease: &Lease) -> Result<(), Trouble> {
        let Some(hand) = hands.find(&lease.job, lease.attempt).filter(|hand| hand.let_go.is_none()) else {
            return Ok(());
        };
        hand.let_go = Some(Instant::now());
        self.publish(hands);
        let stop = ToWorker::Stop { job: lease.job.clone(), attempt: lease.attempt };
        send(&mut process.to, &stop)
            .map_err(|error| Trouble::of_any("worker_died", format!("the worker cannot be told to stop: {error}")))
    }
}

/// The pause before the next attempt.
fn pause(lease: &Lease) -> i64 {
    AGAIN_MS << lease.attempt.clamp(0, 8)
}

/// Witnesses that a worker may have, and bytes of them.
fn room(core: &Core) -> (usize, u64) {
    (core.config.in_hand, core.config.witness_memory_mib << 20)
}

fn order(core: &Core, claim: &Claim, is_ahead: bool) -> Order {
    let Claim { lease, key, .. } = claim;
    Order {
        job: lease.job.clone(),
        attempt: lease.attempt,
        rank: claim.rank,
        key: core.key_file(key),
        witness: claim.content.clone().map_or_else(|| core.witnesses.source(&claim.witness), Source::Here),
        witness_bytes: claim.witness_bytes,
        seal: claim.is_sealed.then(|| core.seal.of(&claim.witness)),
        held: Mutex::default(),
        is_ahead,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_was_idle_if_it_was_since_the_last_question() {
        let slot = Slot::new(0, "cpu");
        assert!(!slot.was_idle() && !slot.is_idle());
        let has = |jobs: usize, was_idle: bool| {
            slot.load.store(jobs, Ordering::SeqCst);
            slot.was_idle.store(was_idle, Ordering::SeqCst);
        };
        // It proves now, and did not a moment ago.
        has(1, true);
        assert_eq!([slot.was_idle(), slot.was_idle()], [true, false]);
        has(0, false);
        assert_eq!([slot.was_idle(), slot.was_idle()], [true, true]);
        // One that is gone was idle for nobody.
        has(ABSENT, true);
        assert!(!slot.was_idle());
    }
}
