//! What a proof needs, made ready side by side: the device is opened and the key read while the witness is read or computed.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Instant;
use tandem_console::failure::Outcome;
use tandem_console::progress::Bars;
use tandem_console::session::{Opened, Session};
use tandem_console::trace::Beside;
use tandem_engine::{DeviceChoice, Error, Key, KeyCheck, Lane, Progress, Stage};

/// A device and a key on it.
pub(crate) struct Ready {
    pub(crate) opened: Opened,
    pub(crate) key: Key,
    /// How long it took to open the device.
    pub(crate) stage: Stage,
}

/// A key to be loaded.
pub(crate) struct Load<'a> {
    pub(crate) zkey: &'a Path,
    pub(crate) check: KeyCheck,
    /// Proofs that it is to make.
    pub(crate) proofs: u64,
}

impl Load<'_> {
    /// Opens the device, loads the key and calls `work`, side by side where the host has memory for the key and `bytes` more, which
    /// `work` may take; else one after the other, `work` first.
    ///
    /// # Errors
    /// What failed of `work`, the device and the key, in this order, whichever failed first. The key is given up where one of the others
    /// failed.
    pub(crate) fn beside<T>(
        &self,
        session: &Session,
        bytes: u64,
        work: impl FnOnce() -> Outcome<T>,
    ) -> Outcome<(Ready, T)> {
        let key_bytes = tandem_engine::key_info(self.zkey)?.file_bytes;
        if fits(tandem_ops::memory::host().free, key_bytes, bytes) {
            self.all(session, work)
        } else {
            let made = work()?;
            self.all(session, || Ok(made))
        }
    }

    fn all<T>(&self, session: &Session, work: impl FnOnce() -> Outcome<T>) -> Outcome<(Ready, T)> {
        let told = Told { bars: &session.bars, is_stopped: AtomicBool::new(false), task: Mutex::default() };
        let device = Device::default();
        let open = || -> Outcome<Stage> {
            // Whoever waits for the device hears of its end, whatever that is.
            let _end = End(&device);
            let begun = Instant::now();
            let mut opened = session.open_beside().inspect_err(|_| told.stop())?;
            opened.engine = match self.proofs {
                1 => opened.engine.for_one_proof(),
                proofs => opened.engine.for_proofs(proofs),
            };
            let seconds = begun.elapsed().as_secs_f64();
            _ = device.0.set(Some(opened));
            Ok(Stage { name: "open device", seconds, ..Stage::default() })
        };
        let load = || -> Outcome<Key> {
            let engine = || device.0.wait().as_ref().map(|opened| &opened.engine).ok_or(Error::Interrupted);
            let has_time = matches!(session.device, DeviceChoice::Cuda(_) | DeviceChoice::Auto);
            let load = || tandem_engine::load_key_on(self.zkey, self.check, &told, has_time, engine);
            Ok(session.trace.step_beside(Beside::Key, "load key", load)?)
        };
        let (made, stage, key) = std::thread::scope(|scope| {
            let (opening, loading) = (spawn(scope, "open device", &open), spawn(scope, "load key", &load));
            let made = work().inspect_err(|_| told.stop());
            told.show();
            // Where no thread could be started it is done now: the device before the key, which waits for it.
            let stage = opening.map_or_else(&open, join);
            (made, stage, loading.map_or_else(&load, join))
        });
        let (made, stage) = (made?, stage?);
        let opened = device.0.into_inner().flatten().ok_or(Error::Interrupted)?;
        Ok((Ready { opened, key: key?, stage }, made))
    }
}

/// Whether key and witness can be made ready at once: a key takes as much as its file where the CPU holds it, or where it is read whole, and less than
/// that for its matrices.
fn fits(free: u64, key_bytes: u64, witness_bytes: u64) -> bool {
    key_bytes.saturating_mul(2).saturating_add(witness_bytes) <= free
}

/// A device that is being opened: empty until then, `None` if that failed.
#[derive(Default)]
struct Device(OnceLock<Option<Opened>>);

struct End<'a>(&'a Device);

impl Drop for End<'_> {
    fn drop(&mut self) {
        // Not where it has been opened.
        _ = self.0 .0.set(None);
    }
}

fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    work: &'scope (impl Fn() -> T + Sync),
) -> Option<ScopedJoinHandle<'scope, T>> {
    Builder::new().name(name.into()).spawn_scoped(scope, work).ok()
}

fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Progress of the key, which is shown from [`Told::show`] on: until then the bar is that of the work beside it.
struct Told<'a> {
    bars: &'a Bars,
    is_stopped: AtomicBool,
    task: Mutex<Task>,
}

#[derive(Default)]
struct Task {
    is_shown: bool,
    begun: Option<(&'static str, u64)>,
    done: u64,
}

impl Told<'_> {
    /// Ends the loading of the key.
    fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    fn task(&self) -> MutexGuard<'_, Task> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show(&self) {
        let mut task = self.task();
        task.is_shown = true;
        if let Some((name, total)) = task.begun {
            self.bars.start(name, total);
            self.bars.advance(task.done);
        }
    }
}

impl Progress for Told<'_> {
    fn start(&self, name: &'static str, total: u64) {
        let mut task = self.task();
        (task.begun, task.done) = (Some((name, total)), 0);
        if task.is_shown {
            self.bars.start(name, total);
        }
    }

    fn advance(&self, units: u64) {
        let mut task = self.task();
        task.done += units;
        if task.is_shown {
            self.bars.advance(units);
        }
    }

    fn enqueued(&self, stage: &'static str, lane: Lane) {
        if self.task().is_shown {
            self.bars.enqueued(stage, lane);
        }
    }

    fn cancelled(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed) || self.bars.cancelled()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_and_witness_share_the_memory_there_is() {
        assert!(fits(300, 100, 100) && !fits(299, 100, 100));
        assert!(fits(u64::MAX, 1 << 40, 8 << 30) && !fits(u64::MAX - 1, u64::MAX, u64::MAX));
    }
}
