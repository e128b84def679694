//! What all PEs of a team have in common, and one PE's place in it.

use crate::bound::{self, Watch};
use crate::fault::{Fault, Record};
use crate::machine::{CommandQueue, Faults, Late, Seat, RECORD_WORDS};
use crate::op::Op;
use crate::process::{Group, Process, Told, Watcher};
use crate::world::{Allocation, World};
use crate::{ffi, sim, Error, Result, Symmetric};
use bytemuck::Pod;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// PEs that a world can have.
pub const MAX_PES: usize = ffi::TANDEM_FABRIC_MAX_PES as usize;

/// How long copies are asked again and again before their thread sleeps between looks.
const SPIN: Duration = Duration::from_millis(20);

/// Between looks at copies, while a queue is waited for.
const LOOK: Duration = Duration::from_millis(5);

/// Where behind a team's state the word is that the host fetches to.
pub(crate) const FETCHED: u64 = size_of::<ffi::tandem_team_state>().next_multiple_of(8) as u64;
/// Where behind it the record of the PE's fault is, if it is in its memory.
const RECORD: u64 = FETCHED + size_of::<u64>() as u64;
/// Where behind it the boxes are of collectives inside kernels.
const BOXES: u64 = ffi::TANDEM_FABRIC_BOXES as u64;
const _: () = assert!(RECORD + 8 * RECORD_WORDS <= BOXES);
/// Bytes of a box.
const BOX: u64 = 16 * ffi::TANDEM_FABRIC_BOX as u64;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What all PEs of a team have in common.
pub(crate) struct TeamState {
    pub(crate) world: Arc<World>,
    /// The PEs' memory, if they are pretend ones.
    pub(crate) pretend: Option<Arc<sim::Memory>>,
    /// By PE of the team: which PE of the world it is.
    pub(crate) members: Vec<usize>,
    /// By node: the team's PEs that are there.
    pub(crate) nodes: Vec<Vec<usize>>,
    /// The first PE that does not reach another one, and that one, if there are such.
    refused: Option<(usize, usize)>,
    /// A tandem_team_state on each PE, and behind it a word for what the host fetches, room for a record of a fault, and the boxes.
    state: Arc<Allocation>,
    /// Held while that word is used.
    pub(crate) fetching: Mutex<()>,
    pub(crate) faults: Arc<dyn Faults>,
    dead: OnceLock<Fault>,
    /// Copies that queues wait for, and that nothing on a device ends.
    watches: Mutex<Vec<Watch>>,
    /// Held while PEs are told who has left.
    farewells: Mutex<()>,
    /// Barriers that queues of this process's PE were told, where it is a GPU and the others are of other nodes.
    barriers: AtomicU64,
    pub(crate) timeout: Duration,
}

/// One PE's place in a team.
pub struct TeamRank {
    pub(crate) core: Arc<TeamState>,
    pub(crate) me: usize,
}

impl TeamRank {
    /// The address of `memory` on the team's PE `pe`, which this PE reaches; by a queue one of another node too (`by_queue`).
    pub(crate) fn place<T: Pod>(
        &self,
        op: &'static str,
        memory: &Symmetric<T>,
        pe: usize,
        by_queue: bool,
    ) -> Result<u64> {
        let core = &self.core;
        core.check()?;
        core.member(op, pe)?;
        self.reach(pe, by_queue)?;
        core.address(op, memory, pe)
    }

    /// Says with the reason if this PE does not reach the memory of `pe`.
    fn reach(&self, pe: usize, by_queue: bool) -> Result<()> {
        if by_queue && self.core.is_far(self.me, pe) {
            return Ok(());
        }
        self.core.reach(self.me, pe)
    }

    /// The step that copies to `to` from `from`, each of a PE of the team, one of which is this one. Where they do not reach each other it
    /// goes through the host, if it may.
    pub(crate) fn copy<T: Pod>(
        &self,
        op: &'static str,
        (to, target): (&Symmetric<T>, usize),
        (from, source): (&Symmetric<T>, usize),
        (may_cross, by_queue): (bool, bool),
    ) -> Result<Op> {
        same_length(op, to, from)?;
        let core = &self.core;
        core.check()?;
        [target, source].into_iter().try_for_each(|pe| core.member(op, pe))?;
        let is_reached = [target, source].into_iter().try_for_each(|pe| self.reach(pe, by_queue));
        let (place, origin) = (core.address(op, to, target)?, core.address(op, from, source)?);
        let bytes = to.bytes();
        match is_reached {
            Ok(()) => Ok(Op::Copy { to: place, from: origin, bytes }),
            Err(_) if may_cross => Ok(Op::HostStagedCopy {
                to: place,
                from: origin,
                bytes,
                pes: (core.members[target], core.members[source]),
            }),
            Err(error) => Err(error),
        }
    }

    /// The address of this PE's own part of `memory`.
    pub(crate) fn own<T: Pod>(&self, op: &'static str, memory: &Symmetric<T>) -> Result<u64> {
        self.place(op, memory, self.me, false)
    }
}

impl Seat for TeamRank {
    fn handle(&self) -> Option<ffi::tandem_team> {
        self.core.handle(self.me)
    }

    fn next_barrier(&self) -> u64 {
        self.core.barriers.fetch_add(1, Ordering::Relaxed) + 1
    }
}

pub(crate) fn same_length<T: Pod>(op: &'static str, to: &Symmetric<T>, from: &Symmetric<T>) -> Result<()> {
    if to.len() == from.len() {
        return Ok(());
    }
    Err(Error::invalid(op, format!("{} elements to a place of {}", from.len(), to.len())))
}

impl TeamState {
    pub(crate) fn new(
        world: Arc<World>,
        pretend: Option<Arc<sim::Memory>>,
        members: Vec<usize>,
        timeout: Duration,
    ) -> Result<Arc<Self>> {
        let state = world.alloc(BOXES + 2 * members.len() as u64 * BOX)?;
        let place = |&pe: &usize| state.address(pe).map_or(0, |at| at + RECORD);
        let faults = world.machine.faults(&members.iter().map(place).collect::<Vec<_>>())?;
        let mut pairs = (0..members.len()).flat_map(|from| (0..members.len()).map(move |to| (from, to)));
        let refused = pairs.find(|&(from, to)| world.links.apart(members[from], members[to]).is_some());
        let node = |pe: usize| world.links.node(members[pe]);
        let last = (0..members.len()).map(node).max().unwrap_or(0);
        let of = |at: usize| (0..members.len()).filter(|&pe| node(pe) == at).collect::<Vec<_>>();
        let nodes = (0..=last).map(of).filter(|pes| !pes.is_empty()).collect();
        let (fetching, dead, watches, farewells, barriers) = Default::default();
        let group = world.group.clone();
        let team = TeamState {
            world,
            pretend,
            members,
            nodes,
            refused,
            state,
            fetching,
            faults,
            dead,
            watches,
            farewells,
            barriers,
            timeout,
        };
        let team = Arc::new(team);
        if let Some(group) = group {
            let watcher: Arc<dyn Watcher> = team.clone();
            group.watch(&watcher);
        }
        Ok(team)
    }

    /// The PEs that this process has.
    pub(crate) fn local(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.members.len()).filter(|&pe| self.is_local(pe))
    }

    /// Whether this process has the team's PE `pe`.
    pub(crate) fn is_local(&self, pe: usize) -> bool {
        self.members.get(pe).is_some_and(|pe| self.world.local.contains(pe))
    }

    /// The processes of the world, if there are several.
    pub(crate) fn group(&self) -> Option<&Arc<Group>> {
        self.world.group.as_ref()
    }

    /// The process that has the team's PE `pe`, if there are several.
    pub(crate) fn process_of(&self, pe: usize) -> Option<Process> {
        self.group()?.process_of(*self.members.get(pe)?)
    }

    /// Whether the process of the team's PE `pe` has left: it does nothing any more, and all that it did is seen.
    pub(crate) fn has_left(&self, pe: usize) -> bool {
        self.group().is_some_and(|group| self.members.get(pe).is_some_and(|&pe| group.has_left(pe)))
    }

    /// The address of the state of PE `pe` of the world, which the team may not have.
    pub(crate) fn state_in(&self, pe: usize) -> u64 {
        self.state.address(pe).unwrap_or(0)
    }

    /// The error of the fault that the team has had, if it has.
    pub(crate) fn check(&self) -> Result<()> {
        let fault = match self.dead.get() {
            Some(fault) => fault,
            None => {
                let found = (0..self.members.len()).find_map(|pe| Some((pe, self.faults.get(pe)?)));
                let Some((pe, record)) = found.map(|(pe, record)| (pe, self.named(record))) else { return Ok(()) };
                // Kernels tell other nodes nothing.
                if self.pretend.is_none() && self.is_local(pe) {
                    self.tell(pe, record);
                }
                self.dead.get_or_init(|| record.fault(|place| self.world.describe(place), |pe| self.process_of(pe)))
            }
        };
        Err(Error::Fault(Box::new(fault.clone())))
    }

    /// A wait for a barrier of queues, which are made of waits where they count them, as what it is.
    fn named(&self, record: Record) -> Record {
        let arrived = std::mem::offset_of!(ffi::tandem_team_state, arrived) as u64;
        let is_of = |pe: usize| record.place.wrapping_sub(self.state(pe) + arrived) < 8 * MAX_PES as u64;
        let is_barrier = record.what == ffi::TANDEM_FAULT_WAIT as u32 && (0..self.members.len()).any(is_of);
        Record { what: if is_barrier { ffi::TANDEM_FAULT_BARRIER as u32 } else { record.what }, ..record }
    }

    pub(crate) fn member(&self, op: &'static str, pe: usize) -> Result<()> {
        if pe < self.members.len() {
            return Ok(());
        }
        Err(Error::invalid(op, format!("there is no PE {pe}; the team has {}", self.members.len())))
    }

    /// Why the team's PE `from` does not reach the memory of `to`, if it does not.
    pub(crate) fn apart(&self, from: usize, to: usize) -> Option<&str> {
        self.world.links.apart(self.members[from], self.members[to])
    }

    /// Says with the reason if PE `from` does not reach the memory of PE `to`.
    pub(crate) fn reach(&self, from: usize, to: usize) -> Result<()> {
        match self.apart(from, to) {
            None => Ok(()),
            Some(reason) => Err(Error::NoPeer { from, to, reason: reason.into() }),
        }
    }

    /// Fails unless all PEs of the team reach each other.
    pub(crate) fn all_reach(&self) -> Result<()> {
        self.refused.map_or(Ok(()), |(from, to)| self.reach(from, to))
    }

    /// Fails unless the barriers of queues work for all PEs of the team: those of a node reach each other.
    pub(crate) fn all_meet(&self, by_queue: bool) -> Result<()> {
        let far = |(from, to)| by_queue && self.is_far(from, to);
        self.refused.filter(|&pair| !far(pair)).map_or(Ok(()), |(from, to)| self.reach(from, to))
    }

    /// Whether two of the team's PEs are on different nodes.
    pub(crate) fn is_far(&self, a: usize, b: usize) -> bool {
        self.world.links.is_far(self.members[a], self.members[b])
    }

    /// The address of `memory` on the team's PE `pe`.
    pub(crate) fn address<T: Pod>(&self, op: &'static str, memory: &Symmetric<T>, pe: usize) -> Result<u64> {
        if !Arc::ptr_eq(&memory.memory().world, &self.world) {
            return Err(Error::invalid(op, "the memory belongs to the PEs of another world"));
        }
        let missing = || Error::invalid(op, format!("PE {pe} has no part of this registered memory"));
        memory.address(self.members[pe]).ok_or_else(missing)
    }

    /// The address of the state of PE `pe`.
    pub(crate) fn state(&self, pe: usize) -> u64 {
        // Memory of the heap is on every PE.
        self.state_in(self.members[pe])
    }

    /// The address of the box in which PE `pe` keeps what PE `from` sends to it in a round of this turn.
    pub(crate) fn message_box(&self, pe: usize, turn: u64, from: usize) -> u64 {
        self.state(pe) + BOXES + (turn * self.members.len() as u64 + from as u64) * BOX
    }

    pub(crate) fn handle(&self, me: usize) -> Option<ffi::tandem_team> {
        let world = &self.world;
        let mut members = [0; MAX_PES];
        for (to, &from) in members.iter_mut().zip(&self.members) {
            *to = from as u8;
        }
        let apart = (0..self.members.len()).filter(|&pe| self.apart(me, pe).is_some());
        let (regions, region_count) = (world.machine.region_table(self.members[me])?, world.region_count() as u32);
        Some(ffi::tandem_team {
            heap: world.machine.heap(),
            window: world.window,
            own: world.machine.heap() + self.members[me] as u64 * world.window,
            mapped: world.mapped(),
            state: self.state.offset().unwrap_or(0),
            timeout_ns: u64::try_from(self.timeout.as_nanos()).unwrap_or(u64::MAX),
            fault: self.faults.address(me) as *mut ffi::tandem_fault,
            regions: regions as *const ffi::tandem_region,
            ends: world.machine.ends(self.members[me]).unwrap_or(0) as *const u64,
            region_count,
            me: me as u32,
            size: self.members.len() as u32,
            apart: apart.fold(0, |mask, pe| mask | 1 << pe),
            world: members,
        })
    }

    /// Records a fault of a wait of the host, and ends the waits of all PEs.
    pub(crate) fn give_up(&self, pe: usize, record: Record) -> Result<()> {
        self.faults.put(pe, record);
        self.poison(0..self.members.len());
        self.tell(pe, record);
        self.check()
    }

    /// Tells other nodes of a fault of PE `pe`: they see no record.
    pub(crate) fn tell(&self, pe: usize, record: Record) {
        if let Some(group) = self.group() {
            let place = self.world.span().abroad(record.place);
            group.tell(&Told { team: self.state.offset().unwrap_or(0), pe, record: Record { place, ..record } });
        }
    }

    /// Ends the waits of these PEs.
    fn poison(&self, pes: impl Iterator<Item = usize>) {
        let poisoned = std::mem::offset_of!(ffi::tandem_team_state, poisoned) as u64;
        let near = self.local().next();
        for pe in pes.filter(|&pe| near.is_none_or(|near| !self.is_far(near, pe))) {
            // The fault stands and is what is reported; on a device that has failed nothing waits.
            let _ = self.world.machine.write(self.members[pe], self.state(pe) + poisoned, &1u32.to_ne_bytes());
        }
    }

    /// Records that a copy was not done in time, and ends the waits of all PEs.
    pub(crate) fn give_up_copy(&self, late: Late) -> Result<()> {
        let record = Record {
            what: ffi::TANDEM_FAULT_COPY as u32,
            waiter: late.waiter as u32,
            peer: late.peer as u32,
            place: late.place,
            seen: late.waited.as_millis() as u64,
            wanted: late.bytes,
        };
        self.give_up(late.waiter, record)
    }

    /// Remembers copies that the host will wait for.
    pub(crate) fn watch(&self, watch: Watch) -> Result<()> {
        self.look(None, Instant::now())?;
        lock(&self.watches).push(watch);
        Ok(())
    }

    /// Looks at what is remembered and at `newest`, if that is done; copies that take too long are a fault of the team.
    fn look(&self, newest: Option<&mut Watch>, now: Instant) -> Result<bool> {
        let (late, is_done) = bound::look(&mut lock(&self.watches), newest, now)?;
        late.map_or(Ok(is_done), |late| self.give_up_copy(late).map(|()| is_done))
    }

    /// Waits for copies as long as they may take.
    pub(crate) fn settle_copies(&self, mut watch: Watch) -> Result<()> {
        let begun = Instant::now();
        loop {
            let now = Instant::now();
            if self.look(Some(&mut watch), now)? {
                return Ok(());
            }
            // To sleep would end the wait some 0.1 ms late, which is much of a copy of a few milliseconds.
            if now - begun < SPIN {
                std::thread::yield_now();
            } else {
                std::thread::sleep(Duration::from_micros(50));
            }
        }
    }

    /// Waits until a queue has done all that it was told, or copies that it may wait for are late.
    pub(crate) fn watched(&self, queue: &dyn CommandQueue) -> Result<()> {
        let is_watched = !lock(&self.watches).is_empty();
        if let Some(end) = (is_watched || queue.may_be_late()).then(|| queue.mark()).transpose()?.flatten() {
            loop {
                let now = Instant::now();
                if end.synchronize_until(now + LOOK)? {
                    break;
                }
                self.look(None, now)?;
                queue.late(now)?.map_or(Ok(()), |late| self.give_up_copy(late))?;
            }
            // What is done is forgotten.
            self.look(None, Instant::now())?;
        }
        queue.synchronize()
    }

    /// Calls that are remembered.
    #[cfg(test)]
    pub(crate) fn watched_calls(&self) -> usize {
        lock(&self.watches).len()
    }

    /// Waits for what the host has told a queue of PE `pe`, which waits for no other: `bytes` bytes that go to or come from `place`.
    pub(crate) fn settle(&self, queue: &dyn CommandQueue, pe: usize, place: u64, bytes: u64) -> Result<()> {
        let begun = Instant::now();
        if queue.synchronize_until(begun + bound::bound(self.timeout, bytes))? {
            return Ok(());
        }
        self.give_up_copy(Late { peer: pe, waiter: pe, place, waited: begun.elapsed(), bytes })
    }
}

impl Watcher for TeamState {
    fn lost(&self, pes: &Range<usize>) {
        let Some(peer) = self.members.iter().position(|pe| pes.contains(pe)) else { return };
        // Every process that is left does so. Only its own PEs wait here.
        let waiter = self.local().next().unwrap_or(peer);
        let what = ffi::TANDEM_FAULT_PROCESS as u32;
        self.faults
            .put(waiter, Record { what, waiter: waiter as u32, peer: peer as u32, place: 0, seen: 0, wanted: 0 });
        self.poison(self.local());
    }

    fn told(&self, told: &Told) {
        if self.state.offset() != Some(told.team) || told.pe >= self.members.len() {
            return;
        }
        let place = self.world.span().at_home(told.record.place);
        self.faults.put(told.pe, Record { place, ..told.record });
        self.poison(self.local());
    }

    /// Ends the waits of kernels for PEs that have left; the host's look for themselves.
    fn left(&self) {
        let left = std::mem::offset_of!(ffi::tandem_team_state, left) as u64;
        // One after the other, so that a mask with fewer of them is not written last.
        let _one = lock(&self.farewells);
        let gone = (0..self.members.len()).filter(|&pe| self.has_left(pe)).fold(0u32, |mask, pe| mask | 1 << pe);
        for pe in self.local() {
            // Without it waits end by the timeout.
            let _ = self.world.machine.write(self.members[pe], self.state(pe) + left, &gone.to_ne_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Team};

    /// A wait for a word of a barrier is a barrier, and no other is.
    #[test]
    fn waits_of_barriers_are_barriers() {
        let team = Team::sim(3, Options::default()).unwrap();
        let core = team.core();
        let arrived = std::mem::offset_of!(ffi::tandem_team_state, arrived) as u64;
        let named = |what: i32, place: u64| {
            core.named(Record { what: what as u32, waiter: 0, peer: 2, place, seen: 1, wanted: 2 }).what as i32
        };
        for (pe, word) in [(0, 0), (1, 31), (2, 7)] {
            let place = core.state(pe) + arrived + 8 * word;
            assert_eq!(named(ffi::TANDEM_FAULT_WAIT, place), ffi::TANDEM_FAULT_BARRIER);
            assert_eq!(named(ffi::TANDEM_FAULT_COPY, place), ffi::TANDEM_FAULT_COPY);
        }
        for place in [core.state(1) + arrived - 8, core.state(1) + arrived + 8 * MAX_PES as u64, 0] {
            assert_eq!(named(ffi::TANDEM_FAULT_WAIT, place), ffi::TANDEM_FAULT_WAIT);
        }
    }
}
