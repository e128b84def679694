//! Words of the model checker, for models outside and inside of the crate.
#![allow(unreachable_pub)] // each of them is a part of a test

use super::Word;
use loom::sync::atomic::{fence, AtomicU64, Ordering};

/// A word; one that is not `ORDERED` does the same without the orders that were asked for, and models of it must fail.
#[derive(Debug, Default)]
pub struct Modelled<const ORDERED: bool>(AtomicU64);

fn order(is_ordered: bool, order: Ordering) -> Ordering {
    if is_ordered {
        order
    } else {
        Ordering::Relaxed
    }
}

impl<const ORDERED: bool> Word for Modelled<ORDERED> {
    fn load_acquire(&self) -> u64 {
        self.0.load(order(ORDERED, Ordering::Acquire))
    }
    fn store_release(&self, value: u64) {
        self.0.store(value, order(ORDERED, Ordering::Release));
    }
    fn load_relaxed(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
    fn store_relaxed(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
    fn change(&self, with: Ordering, mut f: impl FnMut(u64) -> u64) -> u64 {
        let with = order(ORDERED, with);
        self.0.fetch_update(with, with, |old| Some(f(old))).unwrap_or_else(|old| old)
    }
    fn settle() {
        if ORDERED {
            fence(Ordering::SeqCst);
        }
    }
}

/// Runs a model, and its twin, in which the model checker must find what is wrong; with up to `switches` from a thread that could go on, if
/// there are too many interleavings.
#[track_caller]
pub fn only(
    switches: Option<usize>,
    right: impl Fn() + Sync + Send + 'static,
    wrong: impl Fn() + Sync + Send + 'static,
) {
    checked(switches, right);
    let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| checked(switches, wrong)));
    assert!(found.is_err(), "the model does not notice what its twin does wrong");
}

fn checked(switches: Option<usize>, f: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = switches;
    model.check(f);
}

/// Lets others go on until it is so.
pub fn until(condition: impl Fn() -> bool) {
    while !condition() {
        loom::thread::yield_now();
    }
}
