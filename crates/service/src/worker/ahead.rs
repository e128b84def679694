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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coming::Progress;
    use std::path::PathBuf;
    use std::time::{Duration, Instant};
    use tandem_engine::DeviceChoice;

    fn demo(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../demo").join(name)
    }

    /// What a worker is told of a witness that comes.
    fn told(job: &str, content: &[u8], progress: &Progress) -> Ahead {
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, content).unwrap();
        let memory = Mutex::new(Some([file.into(), progress.begin().unwrap().unwrap().into()]));
        Ahead { job: job.into(), key: "key".into(), bytes: content.len() as u64, memory }
    }

    fn wait_for(what: &str, is_so: impl Fn() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < Duration::from_secs(20), "{what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// As long as the pipe is open it is kept, for its job alone and once; whenever the pipe ends, nothing stays.
    #[test]
    fn what_is_read_is_kept_until_the_pipe_ends() {
        let engine = Engine::open(&DeviceChoice::Cpu).unwrap();
        let key = tandem_engine::key_info(&demo("membership.zkey")).unwrap();
        let content = std::fs::read(demo("membership.wtns")).unwrap();
        let (aheads, is_wanted) = (Aheads::default(), || true);
        let none = Progress::default();
        assert!(!aheads.begin(&told("a", &content, &none)), "of a key that was not used");
        aheads.know("key", &key);
        let kept = |job: &str| aheads.lock().read.get(job).map(Option::is_some);
        let all = content.len() as u64;
        // It is all there; it breaks off; another job's order has it let go.
        for (upto, is_taken, is_forgotten) in
            [(all, true, false), (all, false, false), (all / 2, false, false), (all, false, true)]
        {
            let progress = Progress::default();
            let ahead = told("a", &content, &progress);
            assert!(aheads.begin(&ahead));
            assert_eq!((kept("a"), kept("b")), (Some(false), None));
            std::thread::scope(|scope| {
                let reading = scope.spawn(|| aheads.read(&engine, &ahead));
                progress.add(0, upto);
                if is_forgotten {
                    aheads.forget("a");
                } else if upto == all {
                    wait_for("the witness", || kept("a") == Some(true));
                }
                if is_taken {
                    assert!(aheads.take("b", is_wanted).is_none());
                    assert_eq!(aheads.take("a", is_wanted).unwrap().len(), key.variables);
                    assert!(aheads.take("a", is_wanted).is_none());
                }
                progress.end();
                wait_for("the end of who reads", || reading.is_finished());
            });
            assert!(aheads.lock().read.is_empty(), "{upto} {is_taken} {is_forgotten}");
        }
    }
}
