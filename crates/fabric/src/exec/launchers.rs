//! Threads that launch beside each other: a launch takes the host some 7 us, and a call over many GPUs as many launches.
//!
//! A thread gets its part of a call by a slot without a lock (`mpsc::sync_channel` of one place), and says by another one that it is done. After
//! its part it looks for the next one for [`AWAKE`] and then sleeps until there is one, so that who calls again soon need not wake it. The caller
//! does the first part itself. A call is over when all parts are: queues get calls in the order in which they were made.

use crate::planner::lock;
use crate::{Error, Result};
use std::sync::mpsc::{sync_channel, Receiver, RecvError, SyncSender, TryRecvError};
use std::sync::Mutex;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// How long who waits looks before it sleeps: some tens of launches.
const AWAKE: Duration = Duration::from_micros(200);

/// With fewer parts the caller does them all: to hand one over takes a part of the time of a launch.
const LEAST: usize = 3;

/// A part of a call.
pub(crate) type Part = Box<dyn FnOnce() -> Result<()> + Send>;

/// Threads, started when first needed, which end with this.
#[derive(Default)]
pub(crate) struct Launchers(Mutex<Vec<Launcher>>);

struct Launcher {
    /// `None` once it is to end.
    parts: Option<SyncSender<Part>>,
    done: Receiver<Result<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Launchers {
    /// Does all parts, beside each other where processors are more than these.
    ///
    /// # Errors
    /// The first part's, in their order, that failed; all have been tried.
    pub(crate) fn run(&self, parts: Vec<Part>) -> Result<()> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        match parts.len() < LEAST || processors <= parts.len() {
            true => one_by_one(parts),
            false => self.beside_each_other(parts),
        }
    }

    fn beside_each_other(&self, parts: Vec<Part>) -> Result<()> {
        // One call at a time.
        let mut launchers = lock(&self.0);
        while launchers.len() + 1 < parts.len() {
            match Launcher::start() {
                Ok(launcher) => launchers.push(launcher),
                // Without threads it takes longer.
                Err(_) => return one_by_one(parts),
            }
        }
        let mut parts = parts.into_iter();
        let own = parts.next();
        let refused: Vec<Option<Part>> =
            launchers.iter().zip(parts).map(|(launcher, part)| launcher.tell(part)).collect();
        let mut results = vec![own.map_or(Ok(()), |own| own())];
        for (launcher, refused) in launchers.iter().zip(refused) {
            results.push(match refused {
                None => wait(&launcher.done).unwrap_or_else(|_| Err(ended())),
                Some(part) => part(),
            });
        }
        results.into_iter().collect()
    }
}

fn one_by_one(parts: Vec<Part>) -> Result<()> {
    let results: Vec<Result<()>> = parts.into_iter().map(|part| part()).collect();
    results.into_iter().collect()
}

fn ended() -> Error {
    Error::invalid("launch", "a thread that launches has ended")
}

/// What comes next: looks for it for a while, then sleeps until it is there.
fn wait<T>(from: &Receiver<T>) -> std::result::Result<T, RecvError> {
    let asleep = Instant::now() + AWAKE;
    loop {
        match from.try_recv() {
            Ok(next) => return Ok(next),
            Err(TryRecvError::Disconnected) => return Err(RecvError),
            Err(TryRecvError::Empty) if Instant::now() < asleep => std::hint::spin_loop(),
            Err(TryRecvError::Empty) => return from.recv(),
        }
    }
}

impl Launcher {
    fn start() -> std::io::Result<Self> {
        let (parts, to_do) = sync_channel::<Part>(1);
        let (say, done) = sync_channel(1);
        let work = move || {
            while let Ok(part) = wait(&to_do) {
                // What the part holds is dropped before the caller goes on.
                if say.send(part()).is_err() {
                    break;
                }
            }
        };
        let thread = Builder::new().name("launch".into()).spawn(work)?;
        Ok(Launcher { parts: Some(parts), done, thread: Some(thread) })
    }

    /// Hands it a part, which comes back where it has ended.
    fn tell(&self, part: Part) -> Option<Part> {
        match &self.parts {
            Some(parts) => parts.send(part).err().map(|refused| refused.0),
            None => Some(part),
        }
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        self.parts = None;
        // It has no part in hand: the call would not be over.
        if let Some(thread) = self.thread.take() {
            _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Barrier};

    fn part(f: impl FnOnce() -> Result<()> + Send + 'static) -> Part {
        Box::new(f)
    }

    /// Each part waits for all others: one after the other they would never end.
    #[test]
    fn parts_are_done_beside_each_other_and_calls_in_order() {
        for count in 1..9 {
            let launchers = Launchers::default();
            let orders: Vec<Arc<Mutex<Vec<usize>>>> = (0..count).map(|_| Arc::default()).collect();
            for call in 0..200 {
                let all = Arc::new(Barrier::new(count));
                let parts = orders.iter().cloned().map(|order| {
                    let all = all.clone();
                    part(move || {
                        all.wait();
                        lock(&order).push(call);
                        Ok(())
                    })
                });
                launchers.beside_each_other(parts.collect()).unwrap();
                // They are done when the call returns.
                assert!(orders.iter().all(|order| lock(order).len() == call + 1));
            }
            assert!(orders.iter().all(|order| lock(order).iter().copied().eq(0..200)));
        }
    }

    #[test]
    fn the_first_failure_is_told_and_all_parts_are_tried() {
        let (launchers, tried) = (Launchers::default(), Arc::new(AtomicUsize::new(0)));
        for (failing, first) in [(&[][..], None), (&[0], Some(0)), (&[3], Some(3)), (&[4, 2], Some(2))] {
            tried.store(0, Ordering::SeqCst);
            let parts = (0..5).map(|number| {
                let (tried, fails) = (tried.clone(), failing.contains(&number));
                part(move || {
                    tried.fetch_add(1, Ordering::SeqCst);
                    if fails {
                        Err(Error::invalid("part", format!("number {number}")))
                    } else {
                        Ok(())
                    }
                })
            });
            let result = launchers.beside_each_other(parts.collect());
            assert_eq!(
                result.err().map(|e| e.to_string().contains(&format!("number {}", first.unwrap()))),
                first.map(|_| true)
            );
            assert_eq!(tried.load(Ordering::SeqCst), 5);
        }
        launchers.beside_each_other(Vec::new()).unwrap();
    }

    /// It takes the call with it, and no later one: the caller does its part.
    #[test]
    fn a_thread_that_dies_fails_one_call() {
        let launchers = Launchers::default();
        let dies = (0..3).map(|number| part(move || if number == 2 { panic!("on purpose") } else { Ok(()) }));
        let error = launchers.beside_each_other(dies.collect()).unwrap_err();
        assert!(error.to_string().contains("has ended"), "{error}");
        for _ in 0..3 {
            launchers.beside_each_other((0..3).map(|_| part(|| Ok(()))).collect()).unwrap();
        }
    }

    /// Nanoseconds of processor time of a thread of this process, by its entry in /proc.
    fn processor_time(thread: &std::path::Path) -> u64 {
        let stat = std::fs::read_to_string(std::path::Path::new("/proc").join(thread).join("schedstat")).unwrap();
        stat.split(' ').next().unwrap().parse().unwrap()
    }

    #[test]
    fn threads_without_work_sleep() {
        let (launchers, threads) = (Launchers::default(), Arc::new(Mutex::new(Vec::new())));
        let parts = (0..4).map(|_| {
            let threads = threads.clone();
            part(move || {
                lock(&threads).push(std::fs::read_link("/proc/thread-self").unwrap());
                Ok(())
            })
        });
        launchers.beside_each_other(parts.collect()).unwrap();
        let own = std::fs::read_link("/proc/thread-self").unwrap();
        let threads: Vec<_> = lock(&threads).iter().filter(|thread| **thread != own).cloned().collect();
        assert_eq!(threads.len(), 3);
        std::thread::sleep(Duration::from_millis(50));
        let before: Vec<u64> = threads.iter().map(|thread| processor_time(thread)).collect();
        std::thread::sleep(Duration::from_millis(200));
        for (thread, before) in threads.iter().zip(before) {
            let busy = processor_time(thread) - before;
            assert!(busy < 1_000_000, "{busy} ns of 200 ms");
        }
    }

    #[test]
    fn few_parts_are_the_callers() {
        let launchers = Launchers::default();
        let caller = std::thread::current().id();
        let own = || part(move || if std::thread::current().id() == caller { Ok(()) } else { Err(ended()) });
        launchers.run(vec![own(), own()]).unwrap();
        assert!(lock(&launchers.0).is_empty());
    }
}
