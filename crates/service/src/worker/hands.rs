//! The jobs that a worker has in hand: one is proved, the next are read and uploaded beside it.

use crate::held::Held;
use crate::store::{Claim, Lease};
use std::sync::{Arc, Weak};
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

/// A witness that comes, for a worker to read before its job is there.
pub(crate) struct Offer {
    pub(crate) job: String,
    /// The hash of its key.
    pub(crate) key: String,
    pub(crate) bytes: u64,
    pub(crate) held: Weak<Held>,
}

impl Offer {
    /// Before which byte it is all there, while it is read.
    fn upto(&self) -> Option<u64> {
        self.held.upgrade()?.ahead()
    }

    fn end(&self) {
        self.held.upgrade().iter().for_each(|held| held.end_ahead());
    }
}

/// All of them, in the order in which they were given, and what the worker reads ahead, since when.
#[derive(Default)]
pub(super) struct Hands(Vec<Hand>, Vec<(Offer, Instant)>);

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

    /// Whether the worker may read so much ahead, where it may have so many witnesses, and bytes of them.
    pub(super) fn may_read(&mut self, bytes: u64, (in_hand, most): (usize, u64)) -> bool {
        self.1.retain(|(offer, _)| offer.upto().is_some());
        self.0.len() + self.1.len() < in_hand && self.all_bytes().saturating_add(bytes) <= most && !self.are_alone()
    }

    fn all_bytes(&self) -> u64 {
        let ahead = self.1.iter().map(|(offer, _)| offer.bytes);
        self.0.iter().map(|hand| hand.claim.witness_bytes).chain(ahead).fold(0, u64::saturating_add)
    }

    pub(super) fn read_ahead(&mut self, offer: Offer) {
        self.1.push((offer, Instant::now()));
    }

    /// The witnesses that are read ahead, by their jobs.
    pub(super) fn ahead(&self) -> Vec<String> {
        self.1.iter().map(|(offer, _)| offer.job.clone()).collect()
    }

    /// Whether the worker has all of this job's witness by reading ahead. That is over now: it is in hand, or another's.
    pub(super) fn take_ahead(&mut self, job: &str) -> bool {
        let Some(at) = self.1.iter().position(|(offer, _)| offer.job == job) else { return false };
        let (offer, _) = self.1.remove(at);
        offer.upto() == Some(offer.bytes)
    }

    /// Ends what is read ahead where jobs in hand need its place, and what comes more slowly than within `patience`.
    pub(super) fn end_ahead(&mut self, (in_hand, most): (usize, u64), patience: Duration) {
        self.1.retain(|(offer, since)| {
            let upto = offer.upto();
            let is_slow = upto.is_some_and(|upto| upto < offer.bytes) && since.elapsed() > patience;
            if is_slow {
                offer.end();
            }
            upto.is_some() && !is_slow
        });
        while !self.1.is_empty() && (self.0.len() + self.1.len() > in_hand || self.all_bytes() > most) {
            self.1.remove(0).0.end();
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coming::wait_for_end;
    use crate::held::Room;
    use std::io::PipeReader;

    const BYTES: u64 = 1000;
    const PLACES: (usize, u64) = (2, 10 * BYTES);
    const PATIENCE: Duration = Duration::from_secs(3600);

    /// A witness of which so much is there, the worker that reads it, and what its slot knows of that.
    fn offered(room: &Arc<Room>, job: &str, there: u64) -> (Arc<Held>, PipeReader, Offer) {
        let held = room.take(BYTES).unwrap();
        held.write(0, &[vec![1; there as usize]]);
        let pipe = held.begin_ahead().unwrap();
        let offer = Offer { job: job.into(), key: "key".into(), bytes: BYTES, held: Arc::downgrade(&held) };
        (held, pipe, offer)
    }

    /// Only what this worker was offered, of which all is there and which was not let go of since; and once.
    #[test]
    fn what_was_read_ahead_counts_for_its_job_while_it_is_told() {
        let room = Room::new(100 * BYTES);
        let mut hands = Hands::default();
        let mut open = Vec::new();
        for (job, there, is_ended) in
            [("whole", BYTES, false), ("half", BYTES / 2, false), ("ended", BYTES, true), ("dropped", BYTES, false)]
        {
            let (held, pipe, offer) = offered(&room, job, there);
            hands.read_ahead(offer);
            if is_ended {
                held.end_ahead();
            }
            if job != "dropped" {
                open.push((held, pipe));
            }
        }
        assert_eq!(hands.ahead(), ["whole", "half", "ended", "dropped"]);
        let found = ["none", "half", "ended", "dropped", "whole", "whole"].map(|job| hands.take_ahead(job));
        assert_eq!(found, [false, false, false, false, true, false]);
        assert!(hands.ahead().is_empty());
    }

    /// What is read ahead lets go of its place and tells its reader so: the oldest where there are too many, and what is slow.
    #[test]
    fn a_reader_whose_place_is_needed_hears_of_it() {
        let room = Room::new(100 * BYTES);
        let mut hands = Hands::default();
        let mut pipes = Vec::new();
        for (held, pipe, offer) in ["a", "b", "c"].map(|job| offered(&room, job, BYTES)) {
            hands.read_ahead(offer);
            pipes.push((held, pipe));
        }
        hands.end_ahead((2, 2 * BYTES), PATIENCE);
        assert_eq!(hands.ahead(), ["b", "c"]);
        assert!(!hands.may_read(BYTES, (2, 9 * BYTES)) && !hands.may_read(BYTES, (3, 3 * BYTES - 1)));
        assert!(hands.may_read(BYTES, (3, 3 * BYTES)));
        hands.end_ahead((2, 2 * BYTES - 1), PATIENCE);
        assert_eq!(hands.ahead(), ["c"]);
        // One that is all there waits for its job, and one that is slow does not.
        let (held, pipe, offer) = offered(&room, "slow", BYTES - 1);
        hands.read_ahead(offer);
        pipes.push((held, pipe));
        hands.end_ahead(PLACES, Duration::ZERO);
        assert_eq!(hands.ahead(), ["c"]);
        let told: Vec<_> = pipes.iter().map(|(held, _)| held.ahead()).collect();
        assert_eq!(told, [None, None, Some(BYTES), None]);
        // The readers themselves: this would wait for one that is still told.
        [0, 1, 3].into_iter().for_each(|at| wait_for_end(pipes[at].1.try_clone().unwrap()));
    }
}
