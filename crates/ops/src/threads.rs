//! Threads for work of the host: as many as there are processors, or as many as the system starts.

use crate::{Error, Result};
use rayon::{ThreadBuilder, ThreadPool, ThreadPoolBuilder};
use std::io;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{channel, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// What [`limit`] was told; 0 before.
static LIMIT: AtomicUsize = AtomicUsize::new(0);

/// Sets how many threads work from now on. To be called before any work: pools that there are stay as they are.
pub fn limit(threads: NonZeroUsize) {
    LIMIT.store(threads.get(), Ordering::Relaxed);
}

/// How many threads work on what can be shared out: those of the pool that the caller is in, else what [`limit`] says, else
/// `RAYON_NUM_THREADS`, else one a processor.
pub fn count() -> usize {
    if rayon::current_thread_index().is_some() {
        return rayon::current_num_threads();
    }
    let limit = LIMIT.load(Ordering::Relaxed);
    if limit > 0 {
        return limit;
    }
    let set = std::env::var("RAYON_NUM_THREADS").ok().and_then(|n| n.parse().ok()).filter(|&n| n > 0);
    set.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// A pool of `wanted` threads, at least one, or of fewer where the system starts no more.
///
/// # Errors
/// It starts none.
pub fn pool(wanted: usize) -> Result<ThreadPool> {
    let (builder, sender) = started(wanted.max(1))?;
    builder.spawn_handler(|worker| hand_over(&sender, worker)).build().map_err(|e| refused(&e))
}

/// Makes the pool of the process, which rayon would else make, and panic without threads, when it is first needed. Where there is one,
/// nothing happens.
///
/// # Errors
/// The system starts no thread.
pub fn ready() -> Result<()> {
    static READY: OnceLock<Result<()>> = OnceLock::new();
    let make = || {
        let (builder, sender) = started(count())?;
        // An error here means that somebody else has made it.
        _ = builder.spawn_handler(|worker| hand_over(&sender, worker)).build_global();
        Ok(())
    };
    match rayon::current_thread_index() {
        Some(_) => Ok(()),
        None => READY.get_or_init(make).clone(),
    }
}

/// Threads that wait for work, and a builder of a pool of as many. A pool that started them itself would fail as a whole where one of
/// them cannot be had.
fn started(wanted: usize) -> Result<(ThreadPoolBuilder, Sender<ThreadBuilder>)> {
    let (sender, receiver) = channel::<ThreadBuilder>();
    let receiver = Arc::new(Mutex::new(receiver));
    for had in 0..wanted {
        let receiver = receiver.clone();
        let work = move || {
            let worker = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
            if let Ok(worker) = worker {
                worker.run();
            }
        };
        match std::thread::Builder::new().name(format!("tandem {had}")).spawn(work) {
            Ok(_) => {}
            Err(error) if had == 0 => return Err(refused(&error)),
            Err(_) => return Ok((ThreadPoolBuilder::new().num_threads(had), sender)),
        }
    }
    Ok((ThreadPoolBuilder::new().num_threads(wanted), sender))
}

fn hand_over(sender: &Sender<ThreadBuilder>, worker: ThreadBuilder) -> io::Result<()> {
    sender.send(worker).map_err(|_| io::Error::other("the thread has ended"))
}

/// The error of a thread that could not be started.
pub fn refused(error: &dyn std::fmt::Display) -> Error {
    Error::Threads { reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_has_the_threads_that_were_asked_for() {
        for wanted in [1, 3] {
            let pool = pool(wanted).unwrap();
            assert_eq!(pool.current_num_threads(), wanted);
            assert_eq!(pool.install(count), wanted);
            assert_eq!(pool.install(|| rayon::join(|| 1, || 2)), (1, 2));
        }
        assert_eq!(pool(0).unwrap().current_num_threads(), 1);
        ready().unwrap();
        ready().unwrap();
        assert_eq!(rayon::current_num_threads(), count());
    }
}
