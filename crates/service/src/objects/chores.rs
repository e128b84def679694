//! What is removed from a bucket: by a thread of its own, so that no job waits for it, and again until the store has done it.

use super::Bucket;
use crate::log::log;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The pause before the store is asked again.
const PAUSE: Duration = Duration::from_secs(1);

/// What is to be removed.
enum Chore {
    Object(String),
    /// The parts of an upload that is given up: of which object, and its name among uploads.
    Parts(String, String),
}

/// A bucket's chores.
pub(super) struct Chores {
    to: Sender<Chore>,
    open: Arc<AtomicUsize>,
    is_away: Arc<AtomicBool>,
}

impl Chores {
    /// Starts the thread of a bucket, which ends with it.
    pub(super) fn start(open: impl FnOnce(Chores) -> Bucket) -> io::Result<Arc<Bucket>> {
        let (to, inbox) = channel();
        let bucket = Arc::new(open(Chores { to, open: Arc::default(), is_away: Arc::default() }));
        let of = Arc::downgrade(&bucket);
        let (open, is_away) = (bucket.chores.open.clone(), bucket.chores.is_away.clone());
        std::thread::Builder::new().name("removals".into()).spawn(move || run(&of, &inbox, &open, &is_away))?;
        Ok(bucket)
    }

    pub(super) fn remove(&self, name: String) {
        self.push(Chore::Object(name));
    }

    pub(super) fn abort(&self, name: String, upload: String) {
        self.push(Chore::Parts(name, upload));
    }

    fn push(&self, chore: Chore) {
        self.open.fetch_add(1, Ordering::SeqCst);
        let _ = self.to.send(chore);
    }

    pub(super) fn is_busy(&self) -> bool {
        self.open.load(Ordering::SeqCst) > 0 && !self.is_away.load(Ordering::SeqCst)
    }
}

fn run(of: &Weak<Bucket>, inbox: &Receiver<Chore>, open: &AtomicUsize, is_away: &AtomicBool) {
    while let Ok(chore) = inbox.recv() {
        loop {
            let Some(bucket) = of.upgrade() else { return };
            let done = match &chore {
                Chore::Object(name) => bucket.delete(name),
                Chore::Parts(name, upload) => bucket.abort(name, upload),
            };
            is_away.store(done.is_err(), Ordering::SeqCst);
            let Err(error) = done else { break };
            log("blob_left", &[("reason", &error.to_string())]);
            drop(bucket);
            std::thread::sleep(PAUSE);
        }
        open.fetch_sub(1, Ordering::SeqCst);
    }
}
