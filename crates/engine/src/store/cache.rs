//! Values that are loaded on demand and kept within a budget of bytes.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often who waits looks whether its caller has asked to stop.
const LOOK: Duration = Duration::from_millis(20);

/// Why a value cannot be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refused<E> {
    /// It alone is larger than the budget.
    TooLarge { bytes: u64, budget: u64 },
    /// What is in use leaves too little of the budget.
    InUse { bytes: u64, used: u64, budget: u64 },
    /// Its caller asked to stop while another loaded it.
    Stopped,
    /// To load it failed, here or where it was waited for.
    Load(E),
}

/// Values by name. What is not in use makes room for others, the least recently used first.
pub(crate) struct Cache<V, E> {
    budget: u64,
    state: Mutex<State<V, E>>,
    /// A load ended.
    loaded: Condvar,
}

struct State<V, E> {
    entries: HashMap<String, Entry<V, E>>,
    /// Bytes of all entries.
    used: u64,
    /// Counts uses.
    clock: u64,
}

struct Entry<V, E> {
    bytes: u64,
    last_use: u64,
    slot: Slot<V, E>,
}

enum Slot<V, E> {
    Loading(Arc<Outcome<E>>),
    /// In use as long as somebody else has it too; others get it under the lock only.
    Resident(Arc<V>),
}

/// How a load ended, for those who wait for it: `None` before, and where it says nothing about theirs.
type Outcome<E> = Mutex<Option<E>>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing is left half done under these locks.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<V, E: Clone> Cache<V, E> {
    pub(crate) fn new(budget: u64) -> Self {
        let state = State { entries: HashMap::new(), used: 0, clock: 0 };
        Cache { budget, state: Mutex::new(state), loaded: Condvar::new() }
    }

    /// Bytes that all may take.
    pub(crate) fn budget(&self) -> u64 {
        self.budget
    }

    /// The value of this name, which takes `bytes`. One caller loads it, others who ask meanwhile wait for that and get what came of it,
    /// an error that is `shared` too. After one that is not, the next of them loads it.
    pub(crate) fn get(
        &self,
        name: &str,
        bytes: u64,
        stopped: impl Fn() -> bool,
        shared: impl Fn(&E) -> bool,
        load: impl FnOnce() -> Result<V, E>,
    ) -> Result<Arc<V>, Refused<E>> {
        let mut state = lock(&self.state);
        let mut awaited: Option<Arc<Outcome<E>>> = None;
        loop {
            if let Some(error) = awaited.as_ref().and_then(|outcome| lock(outcome).clone()) {
                return Err(Refused::Load(error));
            }
            state.clock += 1;
            let now = state.clock;
            match state.entries.get_mut(name) {
                Some(Entry { slot: Slot::Resident(value), last_use, .. }) => {
                    *last_use = now;
                    return Ok(value.clone());
                }
                Some(Entry { slot: Slot::Loading(outcome), .. }) => {
                    awaited = Some(outcome.clone());
                    if stopped() {
                        return Err(Refused::Stopped);
                    }
                    state = self.loaded.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
                }
                None => break,
            }
        }
        if bytes > self.budget {
            return Err(Refused::TooLarge { bytes, budget: self.budget });
        }
        let evicted = state.make_room(bytes, self.budget)?;
        let (outcome, last_use) = (Arc::default(), state.clock);
        state.used += bytes;
        let slot = Slot::Loading(Arc::clone(&outcome));
        state.entries.insert(name.into(), Entry { bytes, last_use, slot });
        // Under the lock: nobody counts on their memory before it is there.
        drop(evicted);
        drop(state);
        let loading = Loading { cache: self, name, outcome };
        match load() {
            Ok(value) => Ok(loading.done(value)),
            Err(error) => {
                *lock(&loading.outcome) = shared(&error).then(|| error.clone());
                Err(Refused::Load(error))
            }
        }
    }

    /// Names of what is loaded, the least recently used first.
    pub(crate) fn resident(&self) -> Vec<String> {
        let state = lock(&self.state);
        let resident = |(name, entry): (&String, &Entry<V, E>)| match entry.slot {
            Slot::Resident(_) => Some((entry.last_use, name.clone())),
            Slot::Loading(_) => None,
        };
        let mut names: Vec<_> = state.entries.iter().filter_map(resident).collect();
        names.sort_unstable();
        names.into_iter().map(|(_, name)| name).collect()
    }

    /// Bytes of what is loaded or being loaded.
    pub(crate) fn used(&self) -> u64 {
        lock(&self.state).used
    }

    /// Drops a value, unless it is in use or not there: whether it did.
    pub(crate) fn evict(&self, name: &str) -> bool {
        lock(&self.state).take(name).is_some()
    }
}

impl<V, E> State<V, E> {
    /// Takes out what has to go for `bytes` more. Nothing goes where that does not make room.
    fn make_room<F>(&mut self, bytes: u64, budget: u64) -> Result<Vec<Arc<V>>, Refused<F>> {
        let idle = |entry: &Entry<V, E>| matches!(&entry.slot, Slot::Resident(value) if Arc::strong_count(value) == 1);
        let mut candidates: Vec<_> =
            self.entries.iter().filter(|(_, e)| idle(e)).map(|(name, e)| (e.last_use, name.clone(), e.bytes)).collect();
        candidates.sort_unstable();
        let in_use = self.used - candidates.iter().map(|(_, _, bytes)| bytes).sum::<u64>();
        if bytes > budget.saturating_sub(in_use) {
            return Err(Refused::InUse { bytes, used: in_use, budget });
        }
        let mut evicted = Vec::new();
        for (_, name, _) in candidates {
            // Neither is above the budget.
            if bytes <= budget - self.used {
                break;
            }
            evicted.extend(self.take(&name));
        }
        Ok(evicted)
    }

    fn take(&mut self, name: &str) -> Option<Arc<V>> {
        match &self.entries.get(name)?.slot {
            Slot::Resident(value) if Arc::strong_count(value) == 1 => {}
            _ => return None,
        }
        let entry = self.entries.remove(name)?;
        self.used -= entry.bytes;
        match entry.slot {
            Slot::Resident(value) => Some(value),
            Slot::Loading(_) => None,
        }
    }
}

/// A load under way. One that fails, or panics, leaves no entry.
struct Loading<'a, V, E> {
    cache: &'a Cache<V, E>,
    name: &'a str,
    outcome: Arc<Outcome<E>>,
}

impl<V, E> Loading<'_, V, E> {
    fn done(self, value: V) -> Arc<V> {
        let value = Arc::new(value);
        if let Some(entry) = lock(&self.cache.state).entries.get_mut(self.name) {
            entry.slot = Slot::Resident(value.clone());
        }
        value
    }
}

impl<V, E> Drop for Loading<'_, V, E> {
    fn drop(&mut self) {
        let mut state = lock(&self.cache.state);
        if let Some(Entry { slot: Slot::Loading(_), bytes, .. }) = state.entries.get(self.name) {
            state.used -= *bytes;
            state.entries.remove(self.name);
        }
        drop(state);
        self.cache.loaded.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
    use std::sync::Barrier;

    type Strings = Cache<String, String>;

    fn get(cache: &Strings, name: &str, bytes: u64) -> Result<Arc<String>, Refused<String>> {
        cache.get(name, bytes, || false, |_| true, || Ok(name.to_string()))
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let cache = Strings::new(30);
        for name in ["a", "b", "c"] {
            get(&cache, name, 10).unwrap();
        }
        get(&cache, "a", 10).unwrap();
        assert_eq!(cache.resident(), ["b", "c", "a"]);
        get(&cache, "d", 10).unwrap();
        assert_eq!(cache.resident(), ["c", "a", "d"]);
        // One that takes the room of two.
        get(&cache, "e", 20).unwrap();
        assert_eq!((cache.resident(), cache.used()), (vec!["d".into(), "e".into()], 30));
        assert!(cache.evict("d") && !cache.evict("d") && !cache.evict("x"));
        assert_eq!(cache.used(), 20);
    }

    #[test]
    fn what_is_in_use_never_goes() {
        let cache = Strings::new(30);
        let (a, b) = (get(&cache, "a", 10).unwrap(), get(&cache, "b", 10).unwrap());
        get(&cache, "c", 10).unwrap();
        get(&cache, "d", 10).unwrap();
        assert_eq!(cache.resident(), ["a", "b", "d"]);
        assert_eq!(get(&cache, "e", 20), Err(Refused::InUse { bytes: 20, used: 20, budget: 30 }));
        assert_eq!(cache.resident(), ["a", "b", "d"], "nothing goes in vain");
        assert!(!cache.evict("a"));
        drop(a);
        get(&cache, "e", 20).unwrap();
        assert_eq!(cache.resident(), ["b", "e"]);
        assert_eq!(*b, "b");
    }

    #[test]
    fn budgets_have_edges() {
        let none = Strings::new(0);
        assert_eq!(get(&none, "a", 1), Err(Refused::TooLarge { bytes: 1, budget: 0 }));
        get(&none, "nothing", 0).unwrap();
        let full = Strings::new(10);
        get(&full, "a", 10).unwrap();
        assert_eq!(full.used(), 10, "exactly full");
        assert_eq!(get(&full, "b", 11), Err(Refused::TooLarge { bytes: 11, budget: 10 }));
        assert_eq!(get(&full, "b", u64::MAX), Err(Refused::TooLarge { bytes: u64::MAX, budget: 10 }));
        assert_eq!(full.resident(), ["a"], "what is refused takes nobody's room");
        get(&full, "b", 10).unwrap();
        assert_eq!(full.resident(), ["b"]);
        let all = Strings::new(u64::MAX);
        let _held = get(&all, "a", u64::MAX).unwrap();
        assert_eq!(get(&all, "b", 1), Err(Refused::InUse { bytes: 1, used: u64::MAX, budget: u64::MAX }));
    }

    #[test]
    fn sixteen_threads_wait_for_one_load() {
        let (cache, loads, start) = (Strings::new(10), AtomicUsize::new(0), Barrier::new(16));
        let load = |result: Result<String, String>| {
            start.wait();
            cache.get(
                "a",
                10,
                || false,
                |_| true,
                || {
                    loads.fetch_add(1, SeqCst);
                    std::thread::sleep(Duration::from_millis(100));
                    result
                },
            )
        };
        let all = |result: Result<String, String>| {
            std::thread::scope(|scope| {
                let threads: Vec<_> = (0..16).map(|_| scope.spawn(|| load(result.clone()))).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
            })
        };
        // One that fails has failed for all who waited, and is tried again by who asks next.
        let failed = all(Err("no".into()));
        assert!(failed.iter().all(|result| *result == Err(Refused::Load("no".into()))), "{failed:?}");
        assert_eq!((loads.swap(0, SeqCst), cache.used()), (1, 0));
        let loaded = all(Ok("a".into()));
        assert!(loaded.iter().all(|result| result.as_ref().unwrap().as_str() == "a"));
        assert_eq!((loads.load(SeqCst), cache.used()), (1, 10));
    }

    #[test]
    fn an_error_of_the_loaders_own_is_nobody_elses() {
        let (cache, loading) = (Strings::new(10), Barrier::new(2));
        std::thread::scope(|scope| {
            let first = scope.spawn(|| {
                cache.get(
                    "a",
                    10,
                    || false,
                    |error| error != "stopped",
                    || {
                        loading.wait();
                        std::thread::sleep(Duration::from_millis(50));
                        Err("stopped".into())
                    },
                )
            });
            loading.wait();
            // One that is asked to stop does not wait.
            let stopped = cache.get("a", 10, || true, |_| true, || Ok("never".into()));
            assert_eq!(stopped, Err(Refused::Stopped));
            assert_eq!(*get(&cache, "a", 10).unwrap(), "a");
            assert_eq!(first.join().unwrap(), Err(Refused::Load("stopped".into())));
        });
    }

    #[test]
    fn a_load_that_panics_leaves_nothing() {
        let cache = Strings::new(10);
        let panics = || cache.get("a", 10, || false, |_| true, || panic!("a test"));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
        assert_eq!((cache.used(), cache.resident()), (0, vec![]));
        get(&cache, "a", 10).unwrap();
    }

    /// Values that say when they are made and dropped: there are never more than fit, whoever asks for which when.
    #[test]
    fn sixteen_threads_never_exceed_the_budget() {
        struct Counted<'a>(&'a AtomicU64, u64);
        impl Drop for Counted<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(self.1, SeqCst);
            }
        }
        let (there, had, refused) = (AtomicU64::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        let cache = Cache::<Counted<'_>, String>::new(50);
        std::thread::scope(|scope| {
            for thread in 0..16u64 {
                let (cache, there, had, refused) = (&cache, &there, &had, &refused);
                scope.spawn(move || {
                    for round in 0..200u64 {
                        let key = (thread * 7 + round * 13) % 9;
                        let bytes = 5 + key * 3;
                        let load = || {
                            let now = there.fetch_add(bytes, SeqCst) + bytes;
                            assert!(now <= 50, "{now} bytes");
                            Ok(Counted(there, bytes))
                        };
                        match cache.get(&key.to_string(), bytes, || false, |_| true, load) {
                            Ok(value) => {
                                assert_eq!(value.1, bytes);
                                had.fetch_add(1, SeqCst);
                            }
                            Err(Refused::InUse { .. }) => _ = refused.fetch_add(1, SeqCst),
                            Err(_) => panic!("refused otherwise"),
                        }
                    }
                });
            }
        });
        assert_eq!(had.load(SeqCst) + refused.load(SeqCst), 3200);
        assert!(had.load(SeqCst) > 100, "{had:?}");
        assert_eq!(there.load(SeqCst), cache.used());
    }
}
