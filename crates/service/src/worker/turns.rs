//! In which order the jobs in a worker's hand get what not all of them can have.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often one that waits looks whether it is still wanted.
pub(super) const LOOK: Duration = Duration::from_millis(20);

/// The place of a job among those in hand: its rank in the queue, then its arrival. The least comes first.
pub(super) type Turn = (i64, u64);

/// Lets in a few at a time: of those that wait, the one whose turn is first.
pub(super) struct Gate {
    room: usize,
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Default)]
struct State {
    inside: usize,
    waiting: BTreeSet<Turn>,
}

/// One that was let in, until it is dropped.
pub(super) struct Inside<'a>(&'a Gate);

impl Gate {
    pub(super) fn new(room: usize) -> Gate {
        Gate { room, state: Mutex::default(), freed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for its turn; `None` where it is not wanted any more.
    pub(super) fn enter(&self, turn: Turn, is_over: impl Fn() -> bool) -> Option<Inside<'_>> {
        let mut state = self.lock();
        state.waiting.insert(turn);
        loop {
            let is_over = is_over();
            let is_next = state.inside < self.room && state.waiting.first() == Some(&turn);
            if is_over || is_next {
                state.waiting.remove(&turn);
                state.inside += usize::from(!is_over);
                // The next one may have room, too.
                self.freed.notify_all();
                return (!is_over).then(|| Inside(self));
            }
            state = self.freed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.lock().inside -= 1;
        self.0.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn waiting(gate: &Gate) -> usize {
        gate.lock().waiting.len()
    }

    #[test]
    fn those_that_wait_enter_by_rank_and_arrival() {
        for room in 1..4 {
            let gate = Gate::new(room);
            let mut first: Vec<_> = (0..room as u64).map(|n| gate.enter((9, n), || false)).collect();
            let entered = Mutex::new(Vec::new());
            std::thread::scope(|scope| {
                // They come in an order that is not theirs.
                for turn in [(5, 11), (-3, 12), (5, 10), (7, 1), (0, 13)] {
                    let (gate, entered) = (&gate, &entered);
                    let before = waiting(gate);
                    scope.spawn(move || {
                        let inside = gate.enter(turn, || false);
                        entered.lock().unwrap().push(turn);
                        drop(inside);
                    });
                    while waiting(gate) == before {
                        std::thread::yield_now();
                    }
                }
                assert!(entered.lock().unwrap().is_empty());
                // A place at a time.
                first.pop();
            });
            assert_eq!(*entered.lock().unwrap(), [(-3, 12), (0, 13), (5, 10), (5, 11), (7, 1)]);
            assert_eq!(gate.lock().inside, room - 1);
        }
    }

    #[test]
    fn one_that_is_not_wanted_leaves_and_takes_no_place() {
        let gate = Gate::new(1);
        let first = gate.enter((0, 0), || false);
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let gone = scope.spawn(|| gate.enter((1, 1), || over.load(Ordering::SeqCst)).is_none());
            let next = scope.spawn(|| gate.enter((2, 2), || false).is_some());
            while waiting(&gate) < 2 {
                std::thread::yield_now();
            }
            over.store(true, Ordering::SeqCst);
            assert!(gone.join().unwrap());
            drop(first);
            assert!(next.join().unwrap());
        });
        assert_eq!(waiting(&gate), 0);
        assert_eq!(gate.lock().inside, 0);
    }
}
