//! What a stream is told for PEs of other nodes.

use super::far::Far;
use super::windows::{Step, What};
use crate::bound::bound;
use crate::machine::{Late, Point};
use crate::{ffi, Result};
use std::collections::VecDeque;
use std::mem::offset_of;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tandem_cuda::ffi::TANDEM_OK;
use tandem_cuda::Stream;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The steps of a stream that end at PEs of other nodes.
pub(super) struct FarQueue {
    pub(super) far: Arc<Far>,
    /// Where it keeps what it stores.
    slot: Mutex<Option<u64>>,
    told: Steps,
}

/// Those that are not known to be done, in the order of the stream.
#[derive(Default)]
struct Steps(Mutex<VecDeque<Told>>);

/// A step that was told.
struct Told {
    /// When the stream gets to it, and when it is done.
    begun: Arc<dyn Point>,
    end: Arc<dyn Point>,
    /// When it was first seen to have begun.
    since: Option<Instant>,
    /// How long it may take from then on.
    bound: Duration,
    /// The PE of the team that it is at, and that whose stream it is.
    peer: usize,
    waiter: usize,
    place: u64,
    bytes: u64,
}

/// The PE of a team that a PE of the world is.
fn member(team: &ffi::tandem_team, pe: usize) -> usize {
    team.world[..team.size as usize].iter().position(|&member| usize::from(member) == pe).unwrap_or(0)
}

impl Steps {
    /// The first step that is not done and takes longer than it may, if it does at the time `now`.
    fn look(&self, now: Instant) -> Result<Option<Late>> {
        let mut told = lock(&self.0);
        while let Some(first) = told.front_mut() {
            if first.end.is_done()? {
                told.pop_front();
                continue;
            }
            if !first.begun.is_done()? {
                break;
            }
            let waited = now.saturating_duration_since(*first.since.get_or_insert(now));
            let Told { peer, waiter, place, bytes, .. } = *first;
            return Ok((waited > first.bound).then_some(Late { peer, waiter, place, waited, bytes }));
        }
        Ok(None)
    }
}

impl FarQueue {
    pub(super) fn new(far: &Arc<Far>) -> Self {
        FarQueue { far: far.clone(), slot: Mutex::default(), told: Steps::default() }
    }

    /// Tells a stream a step; what follows on the stream begins when it is done at the other PE.
    pub(super) fn push(&self, stream: &Stream, team: &ffi::tandem_team, step: Step) -> Result<()> {
        const OP: &str = "reach another node";
        let Step { pe, what, place, bytes } = step;
        self.far.is_there(OP, pe)?;
        if bytes == 0 {
            return Ok(());
        }
        let (pes, size) = (self.far.pes, bytes as usize);
        let begun = Arc::new(stream.record()?);
        // SAFETY (of all below): whoever made the step has checked its addresses and lengths against allocations of this world, whose windows are
        // in NVSHMEM's memory and whose PEs are NVSHMEM's; they are not freed before this stream has got past it (World::retire).
        match what {
            What::Put { to, from } => stream.call("put", |raw| {
                // SAFETY: as above.
                unsafe { pes.put(to, from, size, pe, raw) };
                TANDEM_OK
            })?,
            What::Get { to, from } => stream.call("get", |raw| {
                // SAFETY: as above.
                unsafe { pes.get(to, from, size, pe, raw) };
                TANDEM_OK
            })?,
            What::Store { to, value } => {
                let slot = self.slot()?;
                let args = ffi::tandem_fabric_store_args { to: slot, value, bytes };
                stream.call("store", |raw| {
                    // SAFETY: as above; the slot is this queue's own and holds 16 bytes.
                    match unsafe { ffi::tandem_fabric_store(&args, raw) } {
                        TANDEM_OK => {
                            // SAFETY: likewise.
                            unsafe { pes.put(to, slot, size, pe, raw) };
                            TANDEM_OK
                        }
                        code => code,
                    }
                })?
            }
            What::Signal { word, value, is_added } => stream.call("signal", |raw| {
                // SAFETY: as above; words are aligned.
                unsafe { pes.signal(word, value, is_added, pe, raw) };
                TANDEM_OK
            })?,
        }
        stream.call("quiet", |raw| {
            // SAFETY: the stream is of the PE's device.
            unsafe { pes.quiet(raw) };
            TANDEM_OK
        })?;
        let (peer, bound) = (member(team, pe), bound(Duration::from_nanos(team.timeout_ns), bytes));
        let (waiter, end) = (team.me as usize, Arc::new(stream.record()?));
        // What is done is forgotten; what is late is the host's to find when it waits.
        self.look(Instant::now())?;
        lock(&self.told.0).push_back(Told { begun, end, since: None, bound, peer, waiter, place, bytes });
        Ok(())
    }

    /// The first step that is not done and takes longer than it may, if it does at the time `now`.
    pub(super) fn look(&self, now: Instant) -> Result<Option<Late>> {
        self.told.look(now)
    }

    /// Tells a stream to say to all PEs of the team that it has come to its barrier, the `round`-th of its PE, and to wait for each of them to say
    /// so: their counts are those of barriers of kernels (`arrived`), which a team over nodes has none of.
    pub(super) fn barrier(&self, stream: &Stream, team: &ffi::tandem_team, round: u64) -> Result<()> {
        let arrived = |pe: usize| team.state + offset_of!(ffi::tandem_team_state, arrived) as u64 + 8 * pe as u64;
        let others = || (0..team.size as usize).filter(|&other| other != team.me as usize);
        for other in others() {
            let pe = usize::from(team.world[other]);
            if self.far.has_left(pe) {
                // It is missed below.
                continue;
            }
            let (offset, windows) = (arrived(team.me as usize), &self.far.windows);
            let what = What::Signal { word: team.own + offset, value: 1, is_added: true };
            let place = windows.heap + pe as u64 * windows.window + offset;
            self.push(stream, team, Step { pe, what, place, bytes: 8 })?;
        }
        for other in others() {
            let args = ffi::tandem_fabric_wait_args {
                words: team.own + arrived(other),
                count: 1,
                wanted: round,
                found: 0,
                mode: ffi::TANDEM_WAIT_ALL,
                compare: ffi::TANDEM_CMP_GE,
                kind: ffi::TANDEM_WORD_U64,
                from: other as u32,
            };
            stream.call("barrier", |raw| {
                // SAFETY: the word is of the team's state, which lives as long as the team.
                unsafe { ffi::tandem_fabric_wait(team, &args, raw) }
            })?;
        }
        self.settle(stream, team)
    }

    /// Makes a stream that has waited see what came before what it has waited for.
    pub(super) fn settle(&self, stream: &Stream, team: &ffi::tandem_team) -> Result<()> {
        self.far.settle(stream, team.own + team.state + offset_of!(ffi::tandem_team_state, round) as u64)
    }

    fn slot(&self) -> Result<u64> {
        let mut slot = lock(&self.slot);
        if let Some(slot) = *slot {
            return Ok(slot);
        }
        Ok(*slot.insert(self.far.slot()?))
    }

    /// Gives back what it has, as the queue goes; its stream may be at work still.
    pub(super) fn leave(&self, stream: &Stream) {
        // Without an event the slot is not used again.
        if let (Some(slot), Ok(end)) = (lock(&self.slot).take(), stream.record()) {
            self.far.give_back(slot, end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bound::tests::Held;

    const BOUND: Duration = Duration::from_millis(100);

    /// A step at PE `peer` that has begun, or is done, when it is let.
    fn told(peer: usize) -> (Told, Arc<Held>, Arc<Held>) {
        let (begun, end) = (Arc::<Held>::default(), Arc::<Held>::default());
        let told = Told {
            begun: begun.clone(),
            end: end.clone(),
            since: None,
            bound: BOUND,
            peer,
            waiter: 9,
            place: 8 * peer as u64,
            bytes: 5,
        };
        (told, begun, end)
    }

    /// It is the first that is not done, from when it was seen to have begun; what waits for other work is not late.
    #[test]
    fn a_step_that_takes_too_long_names_its_pe() {
        let steps = Steps::default();
        let ((first, first_begun, first_end), (second, second_begun, second_end)) = (told(3), told(4));
        *lock(&steps.0) = [first, second].into();
        let start = Instant::now();
        let look = |ms: u64| steps.look(start + Duration::from_millis(ms)).unwrap();
        assert_eq!(look(10_000), None);
        first_begun.let_go();
        assert_eq!((look(20_000), look(20_100)), (None, None));
        let waited = Duration::from_millis(101);
        assert_eq!(look(20_101), Some(Late { peer: 3, waiter: 9, place: 24, waited, bytes: 5 }));
        first_end.let_go();
        assert_eq!(look(20_102), None);
        second_begun.let_go();
        assert_eq!((look(30_000), look(30_100)), (None, None));
        assert_eq!(look(30_101).map(|late| late.peer), Some(4));
        second_end.let_go();
        assert_eq!(look(40_000), None);
        assert!(lock(&steps.0).is_empty());
    }
}
