//! How long the host waits for copies, and what becomes of memory that a device does not let go of.

use crate::machine::{Late, Point};
use crate::Result;
use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the host waits where no team's timeout counts: as long as a team's that is opened with the usual options.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// How long copies of so many bytes may take from when nothing else is in their way: a nanosecond for each byte more than one of a
/// single byte. The slowest links that GPUs have, PCIe 3 with four lanes, carry three bytes in that time.
pub(crate) fn bound(timeout: Duration, bytes: u64) -> Duration {
    timeout.saturating_add(Duration::from_nanos(bytes))
}

/// Gives `what` to a thread that nobody waits for, to be dropped when `wait` has returned: a device may use it until then. Where there
/// is no thread to be had it is never dropped.
pub(crate) fn drop_after<T: Send + 'static>(what: T, wait: impl FnOnce(&T) + Send + 'static) {
    // A closure that is not run is dropped, and this is not dropped with it.
    let kept = ManuallyDrop::new(what);
    let late = std::thread::Builder::new().name("late".into());
    let _ = late.spawn(move || {
        let what = ManuallyDrop::into_inner(kept);
        wait(&what);
    });
}

/// Copies that were told to streams of several PEs, some of which wait for others.
pub(crate) struct Watch {
    /// The points of queues before which nothing begins, by PE of the team.
    pub(crate) begun: Vec<(usize, Arc<dyn Point>)>,
    /// The ends of copies, by PE: each behind all that it waits for.
    pub(crate) steps: VecDeque<(usize, Arc<dyn Point>)>,
    /// How long they may take from when the first PE has come.
    pub(crate) bound: Duration,
    /// When that was seen; some PE is there from the start if not all have a point in `begun`.
    pub(crate) since: Option<Instant>,
    /// The PEs that take part, and an address of each where it gets data; 0 where it gets none.
    pub(crate) pes: Vec<(usize, u64)>,
    /// Of all copies.
    pub(crate) bytes: u64,
}

impl Watch {
    /// What is not done at the time `now`, which is not later than the call, and whether it takes too long; `None` if all is.
    fn look(&mut self, now: Instant) -> Result<Option<(Late, bool)>> {
        let before = self.begun.len();
        keep_open(&mut self.begun)?;
        if self.begun.len() < before || before == 0 {
            self.since.get_or_insert(now);
        }
        // There may be many: as whoever waits for another comes behind it, the first that is not done waits for nobody, and those behind
        // need no look before.
        while self.steps.front().is_some_and(|(_, point)| point.is_done().unwrap_or(false)) {
            self.steps.pop_front();
        }
        self.steps.front().map_or(Ok(true), |(_, point)| point.is_done())?;
        let Some(peer) = self.begun.first().or(self.steps.front()).map(|(pe, _)| *pe) else { return Ok(None) };
        let waited = self.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        let other = self.pes.iter().copied().filter(|(pe, _)| *pe != peer).max_by_key(|(_, place)| *place != 0);
        let (waiter, place) = other.unwrap_or((peer, 0));
        Ok(Some((Late { peer, waiter, place, waited, bytes: self.bytes }, waited > self.bound)))
    }
}

/// Looks at `watches`, the oldest first, of which those that are done are left out. If one takes too long: what the oldest waits for, as
/// the others may wait for that.
pub(crate) fn look(watches: &mut Vec<Watch>, newest: Option<&mut Watch>, now: Instant) -> Result<(Option<Late>, bool)> {
    let (mut first, mut is_late, mut failed, mut is_done) = (None, false, Ok(()), true);
    let mut is_open = |watch: &mut Watch| match watch.look(now) {
        Ok(None) => false,
        Ok(Some((late, is_over))) => {
            first.get_or_insert(late);
            is_late |= is_over;
            true
        }
        Err(error) => {
            failed = Err(error);
            false
        }
    };
    watches.retain_mut(&mut is_open);
    if let Some(watch) = newest {
        is_done = !is_open(watch);
    }
    failed?;
    Ok((first.filter(|_| is_late), is_done))
}

/// Leaves out what is done.
fn keep_open(points: &mut Vec<(usize, Arc<dyn Point>)>) -> Result<()> {
    let mut failed = Ok(());
    points.retain(|(_, point)| {
        point.is_done().map_or_else(
            |error| {
                failed = Err(error);
                true
            },
            |is_done| !is_done,
        )
    });
    failed
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{Error, FaultKind, Options, Team};
    use std::sync::atomic::{AtomicBool, Ordering};

    /// A point that a queue reaches when it is let.
    #[derive(Debug, Default)]
    pub(crate) struct Held(AtomicBool);

    impl Held {
        pub(crate) fn let_go(&self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    impl Point for Held {
        fn is_done(&self) -> Result<bool> {
            Ok(self.0.load(Ordering::SeqCst))
        }

        fn synchronize(&self) -> Result<()> {
            self.synchronize_until(Instant::now() + Duration::from_secs(3600)).map(drop)
        }

        fn synchronize_until(&self, end: Instant) -> Result<bool> {
            while !self.is_done()? {
                if Instant::now() >= end {
                    return Ok(false);
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(true)
        }
    }

    /// So many points.
    fn held(count: usize) -> Vec<Arc<Held>> {
        (0..count).map(|_| Arc::default()).collect()
    }

    fn by_pe(points: &[Arc<Held>], pes: &[usize]) -> Vec<(usize, Arc<dyn Point>)> {
        pes.iter().zip(points).map(|(&pe, point)| (pe, point.clone() as Arc<dyn Point>)).collect()
    }

    const BOUND: Duration = Duration::from_millis(100);

    fn watch(begun: Vec<(usize, Arc<dyn Point>)>, steps: Vec<(usize, Arc<dyn Point>)>) -> Watch {
        Watch { begun, steps: steps.into(), bound: BOUND, since: None, pes: vec![(0, 0), (1, 8), (2, 0)], bytes: 77 }
    }

    #[test]
    fn the_bound_grows_with_the_bytes() {
        let timeout = Duration::from_millis(5);
        assert_eq!(bound(timeout, 0), timeout);
        assert_eq!(bound(timeout, 3 << 30), timeout + Duration::from_nanos(3 << 30));
        assert!(bound(Duration::MAX, u64::MAX) == Duration::MAX);
    }

    /// Of several that are not done it is the one that waits for nobody.
    #[test]
    fn the_pe_that_has_not_come_is_named() {
        let (queues, copies) = (held(3), held(4));
        let mut watch = watch(by_pe(&queues, &[0, 1, 2]), by_pe(&copies, &[2, 0, 2, 1]));
        let begun = Instant::now();
        let at = |ms: u64| begun + Duration::from_millis(ms);
        let mut peer = |ms: u64| watch.look(at(ms)).unwrap().map(|(late, is_late)| (late.peer, late.waiter, is_late));
        // Nobody has come yet: that may take as long as what the queues were told before.
        assert_eq!(peer(0), Some((0, 1, false)));
        assert_eq!(peer(100_000), Some((0, 1, false)));
        queues[0].let_go();
        assert_eq!(peer(200_000), Some((1, 2, false)));
        assert_eq!(peer(200_100), Some((1, 2, false)));
        assert_eq!(peer(200_101), Some((1, 2, true)));
        queues[2].let_go();
        assert_eq!(peer(200_101), Some((1, 2, true)));
        queues[1].let_go();
        // All are there: the first copy is of PE 2, which PE 1 waits for where it gets data.
        assert_eq!(peer(200_050), Some((2, 1, false)));
        copies[1].let_go();
        copies[0].let_go();
        assert_eq!(peer(300_000), Some((2, 1, true)));
        copies[2].let_go();
        assert_eq!(peer(300_000), Some((1, 2, true)));
        copies[3].let_go();
        assert_eq!(peer(300_000), None);
    }

    /// A call whose queues wait for an earlier one does not hide what that waits for.
    #[test]
    fn the_oldest_call_says_who_it_is() {
        let points = held(3);
        let mut long = watch(by_pe(&points, &[2, 0]), Vec::new());
        long.bound = 1000 * BOUND;
        let mut watches = vec![watch(Vec::new(), by_pe(&points[2..], &[1])), long];
        let mut newest = watch(by_pe(&points[1..], &[0, 1]), Vec::new());
        points[2].let_go();
        let begun = Instant::now();
        assert_eq!(look(&mut watches, Some(&mut newest), begun).unwrap(), (None, false));
        assert_eq!(watches.len(), 1, "the first is done");
        let (late, is_done) = look(&mut watches, Some(&mut newest), begun + 2 * BOUND).unwrap();
        assert_eq!((late.map(|late| late.peer), is_done), (Some(2), false));
        points.iter().for_each(|point| point.let_go());
        assert_eq!(look(&mut watches, Some(&mut newest), begun + 2 * BOUND).unwrap(), (None, true));
        assert!(watches.is_empty());
    }

    /// Copies that the host waits for at once, and those that a queue waits for.
    #[test]
    fn late_copies_are_a_fault_of_the_team() {
        for is_now in [true, false] {
            let team = Team::sim(3, Options::default()).unwrap();
            let points = held(2);
            let begun = Instant::now();
            let copies = watch(by_pe(&points[..1], &[1]), by_pe(&points[1..], &[0]));
            let copies = Watch { since: Some(begun), ..copies };
            // Whatever the bound does, the test ends.
            let released = points.clone();
            std::thread::spawn(move || {
                std::thread::sleep(20 * BOUND);
                released.iter().for_each(|point| point.let_go());
            });
            let error = if is_now {
                team.core().settle_copies(copies).unwrap_err()
            } else {
                team.core().watch(copies).unwrap();
                // The queue's own work: it waits for the copies.
                let point = points[1].clone();
                team.queue(0).run(move |_| point.synchronize_until(begun + 20 * BOUND).map(drop)).unwrap();
                team.queue(0).synchronize().unwrap_err()
            };
            assert!(begun.elapsed() > BOUND && begun.elapsed() < 15 * BOUND, "{:?}", begun.elapsed());
            let Error::Fault(fault) = error else { panic!("{error} is no fault") };
            assert_eq!((fault.kind, fault.peer, fault.wanted), (FaultKind::Copy, Some(1), 77), "{fault}");
            assert!(fault.seen >= BOUND.as_millis() as u64 && fault.to_string().contains("for PE 1,"), "{fault}");
            assert!(team.check().is_err());
        }
    }

    /// What comes in time is none, and is forgotten.
    #[test]
    fn copies_that_come_are_none() {
        let team = Team::sim(2, Options::default()).unwrap();
        let points = held(1);
        points[0].let_go();
        team.core().settle_copies(watch(Vec::new(), by_pe(&points, &[0]))).unwrap();
        team.core().watch(watch(Vec::new(), by_pe(&points, &[0]))).unwrap();
        team.queue(1).synchronize().unwrap();
        team.check().unwrap();
        assert_eq!(team.core().watched_calls(), 0);
    }

    /// What is given to a thread is dropped when the wait is over, and not before.
    #[test]
    fn memory_is_dropped_after_the_wait() {
        let (what, point) = (Arc::new(()), Arc::new(Held::default()));
        let (left, until) = (Arc::downgrade(&what), point.clone());
        drop_after(what, move |_| until.synchronize().unwrap());
        std::thread::sleep(Duration::from_millis(20));
        assert!(left.upgrade().is_some());
        point.let_go();
        let begun = Instant::now();
        while left.upgrade().is_some() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it is kept for ever");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
