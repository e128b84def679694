//! A place for calculators: takes a job that came as inputs, starts a process for it, watches it, and puts the witness where a prover
//! finds it.

use super::{Answer, Task};
use crate::blobs::random_name;
use crate::core::{Core, STORAGE_FAILED};
use crate::log::log;
use crate::objects::SECRET_VARIABLES;
use crate::seal::Opener;
use crate::store::{Ending, Failed, InputsClaim, Lease};
use crate::worker::protocol::{receive, send};
use crate::Role;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// A calculator looks for work, and whether what it does is still wanted, at least so often.
const LOOK: Duration = Duration::from_millis(100);

/// How much longer than its limit a program may take before its process is ended: the limit includes neither its start nor its file.
const GRACE: Duration = Duration::from_secs(30);

/// How long a piece of the witness may take to come.
const STALL: Duration = Duration::from_secs(30);

/// Bytes that are moved at a time.
const PIECE: usize = 64 << 10;

/// The pause before a job is tried again.
const AGAIN_MS: i64 = 500;

/// A place.
pub(crate) struct Calculator {
    /// Such as `calculator:0`.
    pub(crate) name: String,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    is_woken: bool,
    lease: Option<Lease>,
    /// Whether the lease is over.
    is_over: bool,
}

/// Why there is no witness: a code, a sentence, and whether another time may help.
type Refusal = (String, String, bool);

/// A process, which ends with this.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Calculator {
    pub(crate) fn new(number: usize) -> Calculator {
        Calculator { name: format!("calculator:{number}"), state: Mutex::default(), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// There may be work.
    pub(crate) fn wake(&self) {
        self.lock().is_woken = true;
        self.changed.notify_one();
    }

    /// The attempt is not wanted any more.
    pub(crate) fn stop(&self, lease: &Lease) {
        let mut state = self.lock();
        state.is_over |= state.lease.as_ref() == Some(lease);
    }

    /// The job that is calculated.
    pub(crate) fn lease(&self) -> Option<Lease> {
        self.lock().lease.clone()
    }

    /// Works until the service drains.
    pub(crate) fn run(&self, core: &Core) {
        while !core.is_draining() {
            match core.store.claim_inputs(&self.name, core.now_ms(), core.config.calculated_ahead) {
                Ok(Some(claim)) => {
                    {
                        let mut state = self.lock();
                        (state.lease, state.is_over) = (Some(claim.lease.clone()), false);
                    }
                    self.attend(core, &claim);
                    self.lock().lease = None;
                    continue;
                }
                Ok(None) => {}
                Err(error) => log("claim_failed", &[("worker", &self.name), ("reason", &error.to_string())]),
            }
            let mut state = self.lock();
            if !std::mem::take(&mut state.is_woken) {
                let waited = self.changed.wait_timeout(state, LOOK);
                waited.unwrap_or_else(PoisonError::into_inner).0.is_woken = false;
            }
        }
    }

    fn attend(&self, core: &Core, claim: &InputsClaim) {
        let begun = Instant::now();
        let made = self.calculate(core, claim);
        let lease = &claim.lease;
        let (code, reason, again, counts) = match made {
            Ok((blob, bytes)) => {
                core.metrics.time("tandem_calculate_seconds", &[], begun.elapsed().as_secs_f64());
                return core.calculated(lease, &blob, bytes);
            }
            // It was ended by whoever ended the lease, or the service drains.
            Err(None) if core.is_draining() => {
                (crate::core::GIVEN_BACK.into(), "the service is being stopped".into(), Some(0), false)
            }
            Err(None) if claim.deadline_ms.is_some_and(|at| at <= core.now_ms()) => {
                ("deadline".into(), "the deadline passed before the witness was made".into(), None, true)
            }
            Err(None) => return,
            Err(Some((code, reason, is_retryable))) => {
                // A disk that is full is no fault of the job.
                let counts = ![STORAGE_FAILED, "database"].contains(&code.as_str());
                (code, reason, is_retryable.then_some(AGAIN_MS), counts)
            }
        };
        let ending = Ending { code, reason, again, counts, is_alone: false };
        if core.attempt_failed(lease, &ending) != Failed::Stale {
            let (code, reason) = (ending.code.as_str(), ending.reason.as_str());
            log("attempt_failed", &[("job", &lease.job), ("worker", &self.name), ("code", code), ("reason", reason)]);
        }
    }

    /// Whether nobody wants the witness any more.
    fn is_over(&self, core: &Core, claim: &InputsClaim) -> bool {
        self.lock().is_over || core.is_draining() || claim.deadline_ms.is_some_and(|at| at <= core.now_ms())
    }

    /// The blob of the witness, and bytes of its content; `Err(None)` where it is not wanted any more.
    fn calculate(&self, core: &Core, claim: &InputsClaim) -> Result<(String, u64), Option<Refusal>> {
        let refuse = |code: &str, why: String, again| Some((code.to_string(), why, again));
        let database = |e: crate::store::StoreError| refuse("database", e.to_string(), true);
        let key = core.store.key(&claim.key).map_err(database)?;
        let program = core.store.program(&claim.key).map_err(database)?;
        let (Some(key), Some(program)) = (key, program) else {
            return Err(refuse("program_lost", "the key has no program any more".into(), false));
        };
        let are_objects = core.witnesses.are_objects();
        let stored = |e: std::io::Error| {
            let (code, again) = match e.kind() {
                ErrorKind::InvalidData => ("witness_lost", false),
                ErrorKind::NotFound => ("witness_lost", core.store.is_shared() && !are_objects),
                _ if are_objects => (STORAGE_FAILED, true),
                _ => ("witness_lost", true),
            };
            refuse(code, format!("the inputs: {e}"), again)
        };
        let mut inputs = Zeroizing::new(vec![0; usize::try_from(claim.bytes).unwrap_or(usize::MAX)]);
        let (blob, wanted) = (core.witnesses.source(&claim.blob), || !self.is_over(core, claim));
        blob.open(&wanted)
            .and_then(|opened| Opener::open(opened, &core.seal.of(&claim.blob), claim.bytes))
            .and_then(|mut opener| opener.read_exact(&mut inputs))
            .map_err(|e| stored(e).filter(|_| wanted()))?;
        let program_file = core.stored(&program.path, &program.hash, &wanted).map_err(|e| {
            let is_lost = [ErrorKind::InvalidData, ErrorKind::NotFound].contains(&e.kind());
            let code = if is_lost { "program_lost" } else { STORAGE_FAILED };
            refuse(code, format!("the circuit's program: {e}"), e.kind() != ErrorKind::InvalidData).filter(|_| wanted())
        })?;
        let died = |e: std::io::Error| refuse("worker_died", format!("the calculator ended: {e}"), true);
        let (mut to, theirs) = UnixStream::pair().map_err(died)?;
        let mut command = (core.worker)(Role::Calculator);
        for name in SECRET_VARIABLES {
            command.env_remove(name);
        }
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).process_group(0);
        let process = Process(command.spawn().map_err(died)?);
        // The other end is the process's alone now.
        drop(command);
        let task = Task {
            program: program_file,
            program_hash: program.hash,
            inputs_bytes: claim.bytes,
            memory_bytes: core.config.calculator_memory_mib << 20,
            steps: core.config.calculator_steps.saturating_mul(1_000_000),
            seconds: core.config.calculator_seconds.into(),
        };
        to.set_write_timeout(Some(STALL)).map_err(died)?;
        send(&mut to, &task).and_then(|()| to.write_all(&inputs)).map_err(died)?;
        drop(inputs);
        let bound = Instant::now() + Duration::from_secs(core.config.calculator_seconds.into()) + GRACE;
        let first = self.first(core, claim, &mut to, bound)?;
        to.set_read_timeout(Some(STALL)).map_err(died)?;
        let answer = receive::<Answer>(&mut (&first[..]).chain(&mut to)).map_err(died)?;
        let made = match answer {
            Some(Answer::Made { bytes }) => {
                let expected = crate::http::witness_max(&key);
                if bytes > expected {
                    let why = format!("the program gives a witness of {bytes} bytes, the key takes {expected}; both are of different circuits");
                    return Err(refuse("bad_program", why, false));
                }
                store(core, &mut to, bytes)
                    .map_err(|e| refuse(STORAGE_FAILED, format!("the witness cannot be stored: {e}"), true))
            }
            Some(Answer::Failed(failure)) => Err(Some((failure.code, failure.reason, failure.is_retryable))),
            None => Err(died(ErrorKind::UnexpectedEof.into())),
        };
        drop(process);
        made
    }

    /// The first byte of the answer, which comes when the witness is made.
    fn first(
        &self,
        core: &Core,
        claim: &InputsClaim,
        from: &mut UnixStream,
        bound: Instant,
    ) -> Result<[u8; 1], Option<Refusal>> {
        let died = |why: String| Some(("worker_died".to_string(), format!("the calculator ended{why}"), true));
        from.set_read_timeout(Some(LOOK)).map_err(|e| died(format!(": {e}")))?;
        let mut first = [0];
        loop {
            match from.read(&mut first) {
                Ok(0) => return Err(died(String::new())),
                Ok(_) => return Ok(first),
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {}
                Err(e) => return Err(died(format!(": {e}"))),
            }
            if self.is_over(core, claim) {
                return Err(None);
            }
            if Instant::now() > bound {
                return Err(Some((
                    "worker_hung".into(),
                    "the calculator took longer than calculator_seconds".into(),
                    true,
                )));
            }
        }
    }
}

/// Seals the witness that comes.
fn store(core: &Core, from: &mut impl Read, bytes: u64) -> std::io::Result<(String, u64)> {
    let name = random_name()?;
    let mut part = core.witnesses.create(&name, blake3::Hasher::new(), Some(&core.seal.of(&name)))?;
    let mut piece = Zeroizing::new(vec![0; PIECE]);
    let mut rest = bytes;
    while rest > 0 {
        let piece = &mut piece[..rest.min(PIECE as u64) as usize];
        from.read_exact(piece)?;
        part.write(piece)?;
        rest -= piece.len() as u64;
    }
    part.keep(&name)?;
    Ok((name, bytes))
}
