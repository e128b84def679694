//! The jobs that a worker has in hand: one is proved, the next are read and uploaded beside it.

use crate::held::Held;
use crate::store::{Claim, Lease};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A job that was given to a worker.
pub(super) struct Hand {
    pub(super) claim: Claim,
    /// The witness, as long as the process may read it.
    _held: Option<Arc<Held>>,
    /// Since when the attempt may take its time: since it was given, or since the last end of another job in hand.
    since: Instant,
    /// Whether the device has turned to its proof.
    pub(super) is_begun: bool,
    /// Since when it is not wanted any more. Its lease is over then.
    pub(super) let_go: Option<Instant>,
}

impl Hand {
    pub(super) fn new(claim: Claim, held: Option<Arc<Held>>) -> Hand {
        Hand { claim, _held: held, since: Instant::now(), is_begun: false, let_go: None }
    }

    fn is_of(&self, job: &str, attempt: i64) -> bool {
        self.claim.lease.job == job && self.claim.lease.attempt == attempt
    }
}

/// All of them, in the order in which they were given.
#[derive(Default)]
pub(super) struct Hands(Vec<Hand>);

impl Hands {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn push(&mut self, hand: Hand) {
        self.0.push(hand);
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = Hand> + '_ {
        self.0.drain(..)
    }

    pub(super) fn find(&mut self, job: &str, attempt: i64) -> Option<&mut Hand> {
        self.0.iter_mut().find(|hand| hand.is_of(job, attempt))
    }

    pub(super) fn take(&mut self, job: &str, attempt: i64) -> Option<Hand> {
        let at = self.0.iter().position(|hand| hand.is_of(job, attempt))?;
        Some(self.0.remove(at))
    }

    /// Of those that are still wanted.
    pub(super) fn leases(&self) -> Vec<Lease> {
        self.0.iter().filter(|hand| hand.let_go.is_none()).map(|hand| hand.claim.lease.clone()).collect()
    }

    /// Bytes of a witness for which there is room beside those in hand, of `most` for all; `None` where none is in hand.
    pub(super) fn room(&self, most: u64) -> Option<u64> {
        let bytes = self.0.iter().map(|hand| hand.claim.witness_bytes).reduce(u64::saturating_add);
        bytes.map(|bytes| most.saturating_sub(bytes))
    }

    /// Whether there is one that wants no other beside it.
    pub(super) fn are_alone(&self) -> bool {
        self.0.iter().any(|hand| hand.claim.is_alone)
    }

    /// Whether none is wanted any more.
    pub(super) fn are_let_go(&self) -> bool {
        self.0.iter().all(|hand| hand.let_go.is_some())
    }

    /// Whether the worker has kept one for so long that is not wanted any more.
    pub(super) fn are_held(&self, bound: Duration) -> bool {
        self.0.iter().any(|hand| hand.let_go.is_some_and(|since| since.elapsed() > bound))
    }

    /// The last one that another worker may have: not the first, and none that has begun.
    pub(super) fn spare(&self) -> Option<Lease> {
        let of = self.0.iter().skip(1).rev().find(|hand| !hand.is_begun && hand.let_go.is_none());
        of.map(|hand| hand.claim.lease.clone())
    }

    /// Those whose deadline is over.
    pub(super) fn late(&self, now_ms: i64) -> Vec<Lease> {
        let is_late = |hand: &&Hand| hand.let_go.is_none() && hand.claim.deadline_ms.is_some_and(|at| at <= now_ms);
        self.0.iter().filter(is_late).map(|hand| hand.claim.lease.clone()).collect()
    }

    /// Takes one that has had longer than `bound`.
    pub(super) fn take_hung(&mut self, bound: Duration) -> Option<Hand> {
        let at = self.0.iter().position(|hand| hand.let_go.is_none() && hand.since.elapsed() > bound)?;
        Some(self.0.remove(at))
    }

    pub(super) fn restart_clocks(&mut self) {
        self.0.iter_mut().for_each(|hand| hand.since = Instant::now());
    }
}
