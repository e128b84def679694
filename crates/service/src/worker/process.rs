//! A worker's process as its slot has it, and why it is ended.

use super::loads::{Loaded, Loads};
use super::protocol::{send, KeyFile, ToWorker};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::time::Instant;
use tokio::sync::oneshot;

/// Why a process is ended.
pub(super) struct Trouble {
    pub(super) why: String,
    /// What befell the jobs that it still has, as a word.
    pub(super) code: &'static str,
    /// Whether it is known which job it was, and has been written down for that one.
    pub(super) is_told: bool,
}

impl Trouble {
    /// It may have been any of the jobs in hand.
    pub(super) fn of_any(code: &'static str, why: impl Into<String>) -> Trouble {
        Trouble { why: why.into(), code, is_told: false }
    }

    /// Whoever did it has been told, the others are bystanders.
    pub(super) fn told(why: impl Into<String>) -> Trouble {
        Trouble { why: why.into(), code: "worker_ended", is_told: true }
    }
}

/// A process, which ends with this.
pub(super) struct Process {
    pub(super) child: Child,
    pub(super) to: UnixStream,
    pub(super) number: u64,
    pub(super) heard: Instant,
    /// Whether it has ended a job by itself, so that another like it is started at once.
    pub(super) was_useful: bool,
    pub(super) loads: Loads,
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

impl Process {
    /// Ends it, so that it reads nothing any more.
    pub(super) fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Tells it to load a key, unless it was told and has not answered.
    pub(super) fn load(&mut self, key: KeyFile, who: Option<oneshot::Sender<Loaded>>) -> Result<(), Trouble> {
        if !self.loads.add(&key.hash, who) {
            return Ok(());
        }
        let sent = send(&mut self.to, &ToWorker::Load(key));
        sent.map_err(|error| Trouble::of_any("worker_died", format!("the worker took no order: {error}")))
    }
}
