//! Whose threads a backend works on.

use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tandem_groth16::{Progress, Silent};
use tandem_ops::{threads, Result};

/// Threads of a backend's own, which do one thing at a time.
///
/// A thread of a pool that waits for others' part of its work takes up other work of the pool meanwhile. Were that another proof on
/// the same backend, it would wait for the very thread that it keeps busy. So whoever calls waits for its turn without taking up
/// anything, and what has its turn works on threads on which there is nothing else to take up.
pub(crate) struct Owner {
    threads: usize,
    /// `None` where the system starts no more threads: the process's pool then does the work.
    pool: OnceLock<Option<rayon::ThreadPool>>,
    turn: Turn,
}

impl Owner {
    /// With so many threads, which are started when they are first needed.
    pub(crate) fn new(threads: usize) -> Self {
        Owner { threads, pool: OnceLock::new(), turn: Turn::default() }
    }

    /// Runs `work` when all that came before is done. Within `work`, at once.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        let Some(done) = self.run_unless_cancelled(&Silent, work)? else { unreachable!("nobody cancels it") };
        Ok(done)
    }

    /// As [`Owner::run`]; `None` where the caller asked to stop before its turn came.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn run_unless_cancelled<T: Send>(
        &self,
        progress: &dyn Progress,
        work: impl FnOnce() -> T + Send,
    ) -> Result<Option<T>> {
        let pool = |pool: &Option<rayon::ThreadPool>| pool.as_ref().is_some_and(|p| p.current_thread_index().is_some());
        if self.pool.get().is_some_and(pool) {
            return Ok(Some(work()));
        }
        apart(|| {
            let Some(_turn) = self.turn.take(progress) else { return Ok(None) };
            match self.pool.get_or_init(|| threads::pool(self.threads).ok()) {
                Some(pool) => Ok(Some(pool.install(work))),
                None => threads::ready().map(|()| Some(work())),
            }
        })?
    }
}

/// What `cell` holds, made by whoever asks first: `run` lets one caller at a time do so.
///
/// # Errors
/// Those of `run` and of `make`; the next caller tries again.
pub(crate) fn once<T: Send + Sync, E: From<tandem_ops::Error> + Send>(
    cell: &OnceLock<T>,
    run: impl FnOnce(&mut (dyn FnMut() + Send)) -> Result<()>,
    make: impl FnOnce() -> std::result::Result<T, E> + Send,
) -> std::result::Result<&T, E> {
    if cell.get().is_none() {
        let (mut make, mut done) = (Some(make), Ok(()));
        run(&mut || {
            // Another one may have made it before this one's turn came.
            if let Some(make) = make.take().filter(|_| cell.get().is_none()) {
                done = make().map(|made| _ = cell.set(made));
            }
        })?;
        done?;
    }
    Ok(cell.get().unwrap_or_else(|| unreachable!("it was made, or there was an error")))
}

/// Whose turn it is.
#[derive(Default)]
struct Turn {
    is_taken: Mutex<bool>,
    given_back: Condvar,
}

/// How often who waits looks whether its caller has asked to stop.
pub(crate) const LOOK: Duration = Duration::from_millis(20);

impl Turn {
    /// Waits for it; `None` where the caller asked to stop first.
    fn take(&self, progress: &dyn Progress) -> Option<Taken<'_>> {
        let mut is_taken = self.is_taken.lock().unwrap_or_else(PoisonError::into_inner);
        while *is_taken {
            if progress.cancelled() {
                return None;
            }
            is_taken = self.given_back.wait_timeout(is_taken, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
        *is_taken = true;
        Some(Taken(self))
    }
}

/// A turn, which the next one gets when this is dropped. What panicked in it has left nothing half done here.
struct Taken<'a>(&'a Turn);

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        *self.0.is_taken.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.0.given_back.notify_one();
    }
}

/// Runs `work` on a thread that is in no pool, so that it takes up nothing else while it waits.
fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T> {
    if rayon::current_thread_index().is_none() {
        return Ok(work());
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, work).map_err(|e| threads::refused(&e))?;
        Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::prelude::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Instant;

    #[test]
    fn one_thing_is_done_at_a_time_whoever_calls() {
        let owner = Owner::new(2);
        let (busy, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let work = || {
            assert_eq!(busy.fetch_add(1, Ordering::SeqCst), 0);
            // Enough that threads wait for each other.
            let sum: u64 = (0..1000u64).into_par_iter().map(|i| rayon::join(|| i, || 1).0).sum();
            assert_eq!((sum, busy.fetch_sub(1, Ordering::SeqCst)), (499_500, 1));
            done.fetch_add(1, Ordering::SeqCst);
        };
        let calls = threads::pool(2).unwrap();
        calls.install(|| (0..64).into_par_iter().with_max_len(1).for_each(|_| owner.run(work).unwrap()));
        std::thread::scope(|scope| (0..64).for_each(|_| _ = scope.spawn(|| owner.run(work).unwrap())));
        assert_eq!(done.load(Ordering::SeqCst), 128);
        assert_eq!(owner.run(|| owner.run(rayon::current_num_threads).unwrap()).unwrap(), 2);
    }

    /// Where the team has no thread of its own, the process's pool works; where that has none either, it is an error and no panic.
    #[test]
    fn without_threads_of_its_own_the_pool_of_the_process_works() {
        const NAME: &str = "TANDEM_TEST_NO_THREADS";
        let without = || Owner { threads: 2, pool: OnceLock::from(None), turn: Turn::default() };
        let sum = || (0..1000u64).into_par_iter().sum::<u64>();
        if std::env::var_os(NAME).is_some() {
            // Nothing has made the process's pool yet, and no thread can be started.
            for owner in [without(), Owner::new(2)] {
                let refused = owner.run(sum);
                assert!(matches!(refused, Err(tandem_ops::Error::Threads { .. })), "{refused:?}");
            }
            return;
        }
        assert_eq!(without().run(sum).unwrap(), 499_500);
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "owner::tests::without_threads_of_its_own_the_pool_of_the_process_works"]);
        // No thread can have a stack like this.
        child.args(["--test-threads", "1"]).env(NAME, "1").env("RUST_MIN_STACK", (1u64 << 47).to_string());
        let output = child.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && said.contains("1 passed"),
            "{said}{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    /// Of many who ask at once one makes it, in its turn; who comes later takes what there is.
    #[test]
    fn what_is_needed_once_is_made_once() {
        let (owner, made, cell) = (Owner::new(1), AtomicUsize::new(0), OnceLock::new());
        let all = std::sync::Barrier::new(8);
        let get = || {
            all.wait();
            let run = |work: &mut (dyn FnMut() + Send)| owner.run(work);
            let make = || {
                // All the others have found nothing by now, and wait.
                std::thread::sleep(Duration::from_millis(100));
                made.fetch_add(1, Ordering::SeqCst);
                Ok::<_, tandem_ops::Error>(7)
            };
            once(&cell, run, make).copied()
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(get)).collect();
            threads.into_iter().for_each(|thread| assert_eq!(thread.join().unwrap().unwrap(), 7));
        });
        assert_eq!(made.load(Ordering::SeqCst), 1);
        // An error is everybody's own, and the next one tries again.
        let (cell, run) = (OnceLock::new(), |work: &mut (dyn FnMut() + Send)| owner.run(work));
        let refused = || Err::<u8, _>(tandem_ops::Error::invalid("make", "a test"));
        assert!(once(&cell, run, refused).is_err());
        assert_eq!(once(&cell, run, || Ok::<_, tandem_ops::Error>(3)).unwrap(), &3);
    }

    #[test]
    fn a_panic_leaves_the_turn_to_the_next() {
        let owner = Owner::new(1);
        for within in [false, true] {
            let calls = threads::pool(1).unwrap();
            let call = || std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| owner.run(|| panic!("a test"))));
            let panicked = if within { calls.install(call) } else { call() };
            assert!(panicked.is_err());
            assert_eq!(owner.run(|| 7).unwrap(), 7);
        }
    }

    struct Stop;

    impl Progress for Stop {
        fn cancelled(&self) -> bool {
            true
        }
    }

    #[test]
    fn who_is_cancelled_does_not_wait_for_its_turn() {
        let owner = Owner::new(1);
        // Where nobody is before it, the work itself finds out.
        assert_eq!(owner.run_unless_cancelled(&Stop, || 7).unwrap(), Some(7));
        let (begun, release) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                owner.run(|| {
                    begun.wait();
                    release.wait();
                })
            });
            begun.wait();
            assert_eq!(owner.run_unless_cancelled(&Stop, || 7).unwrap(), None);
            release.wait();
        });
        assert_eq!(owner.run(|| 8).unwrap(), 8);
    }

    /// A figure for people: a proof of 2^16 takes 3.5 ms.
    #[test]
    fn the_hand_over_is_short() {
        let owner = Owner::new(2);
        let median = |call: &dyn Fn()| {
            let mut times: Vec<_> = (0..301)
                .map(|_| {
                    let begun = Instant::now();
                    call();
                    begun.elapsed()
                })
                .collect();
            times.sort_unstable();
            times[150]
        };
        let outside = median(&|| owner.run(|| ()).unwrap());
        let pool = threads::pool(1).unwrap();
        let inside = pool.install(|| median(&|| owner.run(|| ()).unwrap()));
        println!("handed over in {outside:?}, from a pool in {inside:?}");
        assert!(outside.as_millis() < 5 && inside.as_millis() < 20, "{outside:?} {inside:?}");
    }
}
