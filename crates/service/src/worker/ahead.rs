//! Witnesses that a worker reads while they come, before it is known whether it gets their jobs.

use super::protocol::Ahead;
use super::turns::LOOK;
use crate::coming::{wait_for_end, Memory};
use std::collections::HashMap;
use std::fs::File;
use std::io::PipeReader;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use tandem_engine::{Engine, KeyInfo, Witness};

/// All of a worker.
#[derive(Default)]
pub(super) struct Aheads {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// What is known of keys that were used, by their hashes.
    keys: HashMap<String, KeyInfo>,
    /// By the job, what is read of its witness: `None` while it comes.
    read: HashMap<String, Option<Witness>>,
}

impl Aheads {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A key is there: witnesses of it may be read ahead from now on.
    pub(super) fn know(&self, hash: &str, key: &KeyInfo) {
        let mut state = self.lock();
        if !state.keys.contains_key(hash) {
            state.keys.insert(hash.into(), key.clone());
        }
    }

    /// Whether there is anything to read: [`Aheads::read`] is to follow, or [`Aheads::forget`].
    pub(super) fn begin(&self, ahead: &Ahead) -> bool {
        let mut state = self.lock();
        let is_known = state.keys.contains_key(&ahead.key);
        if is_known {
            state.read.insert(ahead.job.clone(), None);
        }
        is_known
    }

    /// Reads it while it comes, and keeps it as long as it counts.
    pub(super) fn read(&self, engine: &Engine, ahead: &Ahead) {
        let witness = self.read_all(engine, ahead);
        let (witness, pipe) = witness.map_or((None, None), |(witness, pipe)| (Some(witness), Some(pipe)));
        {
            let mut state = self.lock();
            match (witness, state.read.contains_key(&ahead.job)) {
                (Some(witness), true) => drop(state.read.insert(ahead.job.clone(), Some(witness))),
                // What is wrong with it is told by who reads it for its job.
                _ => drop(state.read.remove(&ahead.job)),
            }
        }
        self.changed.notify_all();
        if let Some(pipe) = pipe {
            wait_for_end(pipe);
        }
        self.forget(&ahead.job);
    }

    fn read_all(&self, engine: &Engine, ahead: &Ahead) -> Option<(Witness, PipeReader)> {
        let [file, pipe] = ahead.memory.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let (pipe, key) = (PipeReader::from(pipe), self.lock().keys.get(&ahead.key).cloned()?);
        let until = pipe.try_clone().ok()?;
        let mut memory = Memory::new(File::from(file), Some(pipe), ahead.bytes);
        let witness = engine.read_witness_from(&mut memory, Path::new("the witness"), &key).ok()?;
        Some((witness, until))
    }

    /// The witness of a job, if it was read or is just being; once.
    pub(super) fn take(&self, job: &str, wanted: impl Fn() -> bool) -> Option<Witness> {
        let mut state = self.lock();
        while state.read.get(job)?.is_none() && wanted() {
            state = self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.read.remove(job)?
    }

    /// What was read of it does not count.
    pub(super) fn forget(&self, job: &str) {
        let left = self.lock().read.remove(job);
        // To wipe it takes milliseconds: without the lock.
        drop(left);
    }
}
