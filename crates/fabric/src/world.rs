//! The symmetric memory that all teams over one set of PEs share.

use crate::bound::{bound, drop_after, PATIENCE};
use crate::heap::{Fit, Heap, ALIGN};
use crate::machine::{CommandQueue, Faults, Links, Machine, Point, RegionOwner, MAX_REGIONS};
use crate::op::Op;
use crate::place::Span;
use crate::process::{Group, Parcel, MOST_NUMBERS};
use crate::{ffi, Error, Result, Space};
use std::collections::HashSet;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tandem_cuda::Pinned;

const GROW: &str = "grow symmetric memory";
const NO_REGION: ffi::tandem_region = ffi::tandem_region { bytes: 0, at: [0; 32] };

/// The PEs that share memory, and that memory: all those of a process, or of several ([`Group`]). In the latter each process has a world;
/// they have the same heap, as they change it together, in the same order.
pub(crate) struct World {
    pub(crate) machine: Arc<dyn Machine>,
    /// Bytes from one PE's window to the next.
    pub(crate) window: u64,
    /// By PE: bytes that its heap may have.
    caps: Vec<u64>,
    pub(crate) links: Links,
    /// The processes, if there are several.
    pub(crate) group: Option<Arc<Group>>,
    /// The PEs of this process.
    pub(crate) local: Range<usize>,
    /// For what the host reads and writes: one queue for each PE of this process, which waits for no other.
    service: Vec<Arc<dyn CommandQueue>>,
    /// For what is freed: one queue for each PE of this process, which waits for all others.
    janitor: Vec<Arc<dyn CommandQueue>>,
    heap: Mutex<Heap>,
    /// What is free once all these points are reached.
    leaving: Mutex<Vec<Leaving>>,
    /// The ends of queues that are gone and may still be at work, and where their faults go.
    departed: Mutex<Vec<RetiredQueue>>,
    regions: Mutex<Vec<ffi::tandem_region>>,
    /// Every queue that was made, as long as it lives.
    command_queues: Mutex<Vec<Weak<dyn CommandQueue>>>,
    /// How long it waits for its queues when it goes.
    patience: Duration,
}

/// Memory on every PE of a world. It is given back when the last handle to it is gone and all queues have got to where
/// they are then.
pub struct Allocation {
    pub(crate) world: Arc<World>,
    kind: Kind,
}

enum Kind {
    /// So many bytes at this offset of every window.
    Heap { offset: u64, bytes: u64 },
    /// A user's memory, or host memory: the slot of the region, and what keeps it alive.
    Region { slot: usize, bytes: u64, at: Box<[u64; 32]>, held: Mutex<Option<RegionOwner>>, space: Space },
}

/// What is free once all these points are reached.
type Leaving = (PendingFree, Vec<Arc<dyn Point>>);

/// The end of a queue that is gone, and where its team's faults go.
type RetiredQueue = (Arc<dyn Point>, Arc<dyn Faults>);

enum PendingFree {
    /// The allocation at this offset.
    Heap(u64),
    /// A region: its slot, and what keeps it alive.
    Region(usize, Option<RegionOwner>),
    /// Memory of the host.
    PinnedLoan(Pinned),
}

/// A mutex that a panicking thread has left is used all the same: what it guards is changed in one step.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    pub(crate) fn new(
        machine: Arc<dyn Machine>,
        window: u64,
        caps: Vec<u64>,
        links: Links,
        initial: u64,
        group: Option<Arc<Group>>,
    ) -> Result<Arc<Self>> {
        let local = group.as_ref().map_or(0..caps.len(), |group| group.local());
        let command_queues = || local.clone().map(|pe| machine.command_queue(pe, None)).collect::<Result<Vec<_>>>();
        let (service, janitor) = (command_queues()?, command_queues()?);
        let command_queues = service.iter().chain(&janitor).map(Arc::downgrade).collect();
        let world = World {
            machine,
            window,
            caps,
            links,
            group,
            local,
            service,
            janitor,
            heap: Mutex::new(Heap::new(window)),
            leaving: Mutex::default(),
            departed: Mutex::default(),
            regions: Mutex::new(vec![NO_REGION; MAX_REGIONS]),
            command_queues: Mutex::new(command_queues),
            patience: PATIENCE,
        };
        if initial > 0 {
            world.grow(&mut lock(&world.heap), initial)?;
        }
        Ok(Arc::new(world))
    }

    pub(crate) fn pes(&self) -> usize {
        self.caps.len()
    }

    /// The address of PE `pe`'s window.
    pub(crate) fn window_of(&self, pe: usize) -> u64 {
        self.machine.heap() + pe as u64 * self.window
    }

    /// Bytes of each window that have memory, and those of them that are in use.
    pub(crate) fn sizes(&self) -> (u64, u64) {
        let heap = lock(&self.heap);
        (heap.mapped(), heap.used())
    }

    /// Bytes of each window that have memory.
    pub(crate) fn mapped(&self) -> u64 {
        lock(&self.heap).mapped()
    }

    /// A PE of this process through which the host does what it does with PE `pe`: that one, if it has it.
    pub(crate) fn stand_in(&self, pe: usize) -> usize {
        if self.local.contains(&pe) {
            pe
        } else {
            self.local.start
        }
    }

    /// The queue of what the host does with PE `pe` of this process.
    pub(crate) fn service(&self, pe: usize) -> &Arc<dyn CommandQueue> {
        &self.service[pe - self.local.start]
    }

    /// Says with the reason if there are PEs of other processes.
    pub(crate) fn of_one_process(&self, op: &'static str) -> Result<()> {
        match &self.group {
            None => Ok(()),
            Some(_) => Err(Error::invalid(op, "a team of several processes cannot do that")),
        }
    }

    /// A new queue.
    pub(crate) fn command_queue(
        &self,
        make: impl FnOnce(&dyn Machine) -> Result<Arc<dyn CommandQueue>>,
    ) -> Result<Arc<dyn CommandQueue>> {
        let queue = make(&*self.machine)?;
        let mut command_queues = lock(&self.command_queues);
        command_queues.retain(|queue| queue.strong_count() > 0);
        command_queues.push(Arc::downgrade(&queue));
        Ok(queue)
    }

    /// Remembers the end of a queue that goes away: nothing is freed that it may still use.
    pub(crate) fn depart(&self, end: Arc<dyn Point>, faults: Arc<dyn Faults>) {
        let mut departed = lock(&self.departed);
        departed.retain(|(mark, _)| !mark.is_done().unwrap_or(true));
        departed.push((end, faults));
    }

    /// `bytes` bytes of zeros at one offset of every window.
    pub(crate) fn alloc(self: &Arc<Self>, bytes: u64) -> Result<Arc<Allocation>> {
        let mut heap = lock(&self.heap);
        self.reclaim(&mut heap, false, bytes)?;
        let offset = loop {
            match heap.take(bytes) {
                Fit::At(offset) => break offset,
                Fit::Grow(to) => self.grow(&mut heap, to)?,
                Fit::Full => {
                    if !self.reclaim(&mut heap, true, bytes)? {
                        return Err(Error::invalid(
                            "allocate symmetric memory",
                            format!(
                                "{bytes} bytes do not fit: the window of a PE is {} bytes, of which {} are in use; \
                                 open the team with a larger one (Options::window)",
                                self.window,
                                heap.used()
                            ),
                        ));
                    }
                }
            }
        };
        if let Err(error) = self.mark(offset, bytes, offset + bytes) {
            heap.give_back(offset);
            return Err(error);
        }
        Ok(Arc::new(Allocation { world: self.clone(), kind: Kind::Heap { offset, bytes } }))
    }

    /// Tells all PEs where an allocation ends, or with an `end` of 0 that it is gone.
    fn mark(&self, offset: u64, bytes: u64, end: u64) -> Result<()> {
        self.local.clone().try_for_each(|pe| self.machine.mark(pe, offset, bytes, end))
    }

    /// Gives every PE memory up to `to`, or none of them.
    fn grow(&self, heap: &mut Heap, to: u64) -> Result<()> {
        let from = heap.mapped();
        let to = to.next_multiple_of(self.machine.granule()).min(self.window);
        // Every process knows this of all PEs.
        if let Some(pe) = (0..self.pes()).find(|&pe| to > self.caps[pe]) {
            let reason = format!("the heap has {from} bytes and may have {}", self.caps[pe]);
            return Err(Error::OutOfMemory { pe, device: self.machine.name(pe), wanted: to - from, reason });
        }
        let mut done = Vec::new();
        if let Err(error) = self.give(from, to, &mut done) {
            done.into_iter().for_each(|pe| self.machine.unmap(pe, from, to));
            return Err(error);
        }
        heap.grow(to);
        Ok(())
    }

    /// Puts memory behind every window of this node, from `from` to `to`; `done` gets the PEs that have it, also after an error. A process
    /// makes that of its own PEs, hands it to the others of its node, and takes theirs. All, of other nodes too, come to the same end.
    fn give(&self, from: u64, to: u64, done: &mut Vec<usize>) -> Result<()> {
        let mut memory = Vec::new();
        let made = self.local.clone().try_for_each(|pe| {
            memory.extend(self.machine.map(pe, from, to)?);
            done.push(pe);
            Ok(())
        });
        let Some(group) = &self.group else { return made };
        let given = self.agree(group, to, made, memory)?;
        let near = group.near();
        let others = group.pes().iter().zip(given).filter(|(pes, _)| **pes != self.local && near.contains(&pes.start));
        let mut pieces = others.flat_map(|(pes, memory)| pes.clone().zip(memory));
        let taken = pieces.try_for_each(|(pe, memory)| {
            self.machine.import(pe, from, to, memory)?;
            done.push(pe);
            Ok(())
        });
        let all =
            if done.len() == near.len() { Ok(()) } else { Err(Error::invalid(GROW, "a process gave too little")) };
        self.agree(group, to, taken.and(all), Vec::new()).map(drop)
    }

    /// Tells the other processes what has become of this one's part of growing the heaps, and gives them memory; what they give, by rank.
    /// Where one of them has failed all do.
    fn agree(&self, group: &Group, to: u64, own: Result<()>, memory: Vec<OwnedFd>) -> Result<Vec<Vec<OwnedFd>>> {
        let note = own.as_ref().err().map_or(String::new(), Error::to_string);
        let parcel = Parcel { note, memory, ..Parcel::about(format!("grow each heap to {to} bytes")) };
        let parcels = group.exchange(GROW, parcel)?;
        own?;
        let failed = parcels.iter().zip(group.pes()).find(|(parcel, _)| !parcel.note.is_empty());
        if let Some((parcel, pes)) = failed {
            let process = group.process_of(pes.start).map_or(String::new(), |process| process.to_string());
            return Err(Error::processes(GROW, format!("{process}: {}", parcel.note)));
        }
        Ok(parcels.into_iter().map(|parcel| parcel.memory).collect())
    }

    /// Takes back what is used no longer, with `wait` all that was dropped; whether there was any. Before an allocation of `bytes` bytes.
    fn reclaim(&self, heap: &mut Heap, wait: bool, bytes: u64) -> Result<bool> {
        // Taken out: who drops an allocation must not wait for this to end.
        let leaving = std::mem::take(&mut *lock(&self.leaving));
        let before = leaving.len();
        let (mut free, mut kept) = (Vec::new(), Vec::new());
        for (what, marks) in leaving {
            let mut done = true;
            for mark in &marks {
                if wait {
                    mark.synchronize()?;
                }
                done = done && mark.is_done()?;
            }
            if done {
                free.push(what);
            } else {
                kept.push((what, marks));
            }
        }
        let mut any = kept.len() < before;
        if let Some(group) = &self.group {
            let agreed = self.free_in_all(group, heap, &free, bytes);
            let of_all: &[u64] = agreed.as_deref().unwrap_or_default();
            let (now, later) = free.into_iter().partition(|what| match what {
                PendingFree::Heap(offset) => of_all.contains(offset),
                _ => agreed.is_ok(),
            });
            free = now;
            kept.extend(Vec::<PendingFree>::into_iter(later).map(|what| (what, Vec::new())));
            any = !of_all.is_empty();
            if agreed.is_err() {
                lock(&self.leaving).append(&mut kept);
            }
            agreed?;
        }
        for what in free {
            match what {
                PendingFree::Heap(offset) => {
                    if let Some((_, bytes)) = heap.find(offset) {
                        self.mark(offset, bytes, 0)?;
                    }
                    heap.give_back(offset);
                }
                PendingFree::Region(slot, held) => {
                    drop(held);
                    let mut regions = lock(&self.regions);
                    regions[slot] = NO_REGION;
                    self.machine.regions(&regions)?;
                }
                PendingFree::PinnedLoan(memory) => drop(memory),
            }
        }
        lock(&self.leaving).append(&mut kept);
        Ok(any)
    }

    /// The offsets of allocations that every process has dropped and no queue of any uses: their memory is wiped in all windows. `free` are
    /// those of this process.
    fn free_in_all(&self, group: &Group, heap: &Heap, free: &[PendingFree], bytes: u64) -> Result<Vec<u64>> {
        let op = "allocate symmetric memory";
        let offset = |what: &PendingFree| match what {
            PendingFree::Heap(offset) => Some(*offset),
            _ => None,
        };
        let mut numbers: Vec<u64> = free.iter().filter_map(offset).collect();
        numbers.sort_unstable();
        numbers.truncate(MOST_NUMBERS);
        let parcels = group.exchange(op, Parcel { numbers, ..Parcel::about(format!("allocate {bytes} bytes")) })?;
        let all: Vec<HashSet<u64>> = parcels.into_iter().map(|parcel| parcel.numbers.into_iter().collect()).collect();
        let is_free = |offset: &u64| all.iter().all(|numbers| numbers.contains(offset));
        let mut of_all: Vec<u64> = all[0].iter().copied().filter(is_free).collect();
        of_all.sort_unstable();
        if of_all.is_empty() {
            return Ok(of_all);
        }
        for (&offset, (pe, janitor)) in
            of_all.iter().flat_map(|offset| self.local.clone().zip(&self.janitor).map(move |one| (offset, one)))
        {
            if let Some((_, bytes)) = heap.find(offset) {
                let to = self.window_of(pe) + offset;
                janitor.push(Op::Fill { to, bytes: bytes.next_multiple_of(ALIGN), value: 0 })?;
            }
        }
        self.janitor.iter().try_for_each(|janitor| janitor.synchronize())?;
        group.exchange(op, Parcel::about(format!("use {} pieces of memory again", of_all.len())))?;
        Ok(of_all)
    }

    /// A region of `bytes` bytes at these addresses; 0 for PEs that have none of it. `held` is dropped when no queue
    /// uses the region any more.
    pub(crate) fn register(
        self: &Arc<Self>,
        bytes: u64,
        at: [u64; 32],
        held: RegionOwner,
        space: Space,
    ) -> Result<Arc<Allocation>> {
        self.reclaim(&mut lock(&self.heap), false, 0)?;
        let mut regions = lock(&self.regions);
        let Some(slot) = regions.iter().position(|region| region.bytes == 0) else {
            return Err(Error::invalid(
                "register memory",
                format!("{MAX_REGIONS} regions are registered, and there can be no more at a time"),
            ));
        };
        regions[slot] = ffi::tandem_region { bytes, at };
        if let Err(error) = self.machine.regions(&regions) {
            regions[slot] = NO_REGION;
            return Err(error);
        }
        let kind = Kind::Region { slot, bytes, at: Box::new(at), held: Mutex::new(Some(held)), space };
        Ok(Arc::new(Allocation { world: self.clone(), kind }))
    }

    /// Slots of the table of regions up to the last that is used.
    pub(crate) fn region_count(&self) -> usize {
        lock(&self.regions).iter().rposition(|region| region.bytes > 0).map_or(0, |i| i + 1)
    }

    /// Blocks until all queues have done what they were told.
    pub(crate) fn synchronize(&self) -> Result<()> {
        let departed: Vec<Arc<dyn Point>> = lock(&self.departed).iter().map(|(mark, _)| mark.clone()).collect();
        departed.iter().try_for_each(|mark| mark.synchronize())?;
        let command_queues: Vec<Arc<dyn CommandQueue>> =
            lock(&self.command_queues).iter().filter_map(Weak::upgrade).collect();
        command_queues.iter().try_for_each(|queue| queue.synchronize())
    }

    /// Whether all queues have done what they were told, once they have and until `end` at the most.
    pub(crate) fn settled_by(&self, end: Instant) -> bool {
        let departed: Vec<Arc<dyn Point>> = lock(&self.departed).iter().map(|(mark, _)| mark.clone()).collect();
        let queues: Vec<Arc<dyn CommandQueue>> = lock(&self.command_queues).iter().filter_map(Weak::upgrade).collect();
        departed.iter().all(|mark| mark.synchronize_until(end).unwrap_or(true))
            && queues.iter().all(|queue| queue.synchronize_until(end).unwrap_or(true))
    }

    /// Frees what `what` says after all that queues of this process have been told so far; memory of the heap is overwritten first.
    fn retire(&self, what: PendingFree, bytes: u64) -> Result<()> {
        let command_queues: Vec<Arc<dyn CommandQueue>> =
            lock(&self.command_queues).iter().filter_map(Weak::upgrade).collect();
        let mut marks: Vec<Arc<dyn Point>> = lock(&self.departed).iter().map(|(mark, _)| mark.clone()).collect();
        for queue in &command_queues {
            marks.extend(queue.mark()?);
        }
        // Where there are several processes it is wiped once all of them have dropped it.
        if let (PendingFree::Heap(offset), None) = (&what, &self.group) {
            let mut wiped = Vec::new();
            for (pe, janitor) in self.local.clone().zip(&self.janitor) {
                for mark in &marks {
                    janitor.wait(&**mark)?;
                }
                let to = self.window_of(pe) + *offset;
                janitor.push(Op::Fill { to, bytes: bytes.next_multiple_of(ALIGN), value: 0 })?;
                wiped.extend(janitor.mark()?);
            }
            marks = wiped;
        }
        lock(&self.leaving).push((what, marks));
        Ok(())
    }

    /// Where the windows are.
    pub(crate) fn span(&self) -> Span {
        Span { heap: self.machine.heap(), bytes: self.pes() as u64 * self.window }
    }

    /// Where an address is, in words.
    pub(crate) fn describe(&self, address: u64) -> String {
        for pe in 0..self.pes() {
            let offset = address.wrapping_sub(self.window_of(pe));
            if offset < self.window {
                return match lock(&self.heap).find(offset) {
                    Some((at, bytes)) => {
                        format!("byte {} of the {bytes} bytes at offset {at:#x} of the symmetric heap", offset - at)
                    }
                    None => format!("offset {offset:#x} of the symmetric heap, where nothing is allocated"),
                };
            }
        }
        for (slot, region) in lock(&self.regions).iter().enumerate() {
            for &at in region.at.iter().filter(|&&at| at != 0) {
                if address.wrapping_sub(at) < region.bytes {
                    return format!("byte {} of region {slot} of {} bytes", address - at, region.bytes);
                }
            }
        }
        format!("address {address:#x}, which is not symmetric memory")
    }
}

impl Allocation {
    /// Its bytes on each PE.
    pub(crate) fn bytes(&self) -> u64 {
        match self.kind {
            Kind::Heap { bytes, .. } | Kind::Region { bytes, .. } => bytes,
        }
    }

    /// Its address on PE `pe` of the world, if that PE has it.
    pub(crate) fn address(&self, pe: usize) -> Option<u64> {
        match &self.kind {
            Kind::Heap { offset, .. } => Some(self.world.window_of(pe) + offset),
            Kind::Region { at, .. } => Some(at[pe]).filter(|&at| at != 0),
        }
    }

    /// Where in the windows it is; `None` for a registered region.
    pub(crate) fn offset(&self) -> Option<u64> {
        match self.kind {
            Kind::Heap { offset, .. } => Some(offset),
            Kind::Region { .. } => None,
        }
    }

    /// Where it lies.
    pub(crate) fn space(&self) -> Space {
        match self.kind {
            Kind::Heap { .. } => Space::Device,
            Kind::Region { space, .. } => space,
        }
    }

    /// Takes out what keeps a user's memory alive.
    pub(crate) fn release(&self) -> Option<RegionOwner> {
        match &self.kind {
            Kind::Region { held, space: Space::Device, .. } => lock(held).take(),
            _ => None,
        }
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        let what = match &self.kind {
            Kind::Heap { offset, .. } => PendingFree::Heap(*offset),
            Kind::Region { slot, held, .. } => PendingFree::Region(*slot, lock(held).take()),
        };
        // Where a device has failed, what it had is not used again.
        let _ = self.world.retire(what, self.bytes());
    }
}

/// Page-locked memory that queues of a world use. It is given back when all of them have got to where they are when this goes.
pub(crate) struct PinnedLoan {
    world: Arc<World>,
    memory: Option<Pinned>,
}

impl PinnedLoan {
    pub(crate) fn new(world: &Arc<World>, memory: Pinned) -> Self {
        PinnedLoan { world: world.clone(), memory: Some(memory) }
    }

    pub(crate) fn len(&self) -> usize {
        self.memory.as_ref().map_or(0, Pinned::len)
    }

    /// The bytes; no copy from or to them may be queued.
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        self.memory.as_mut().map_or(&mut [], Pinned::bytes)
    }

    pub(crate) fn address(&self) -> u64 {
        self.memory.as_ref().map_or(0, |memory| memory.address() as u64)
    }
}

impl Drop for PinnedLoan {
    fn drop(&mut self) {
        // Where a device has failed, nothing uses it any more.
        let _ = self.memory.take().map(|memory| self.world.retire(PendingFree::PinnedLoan(memory), 0));
    }
}

/// What of a world queues may still use.
struct Remains {
    command_queues: Vec<Arc<dyn CommandQueue>>,
    departed: Vec<RetiredQueue>,
    leaving: Vec<Leaving>,
    _machine: Arc<dyn Machine>,
}

impl Remains {
    fn marks(&self) -> impl Iterator<Item = &Arc<dyn Point>> {
        self.departed.iter().map(|(mark, _)| mark).chain(self.leaving.iter().flat_map(|(_, marks)| marks))
    }

    /// Whether no queue uses any of it, once that is so and until `end` at the most. A failed device uses nothing.
    fn is_free_by(&self, end: Instant) -> bool {
        self.marks().all(|mark| mark.synchronize_until(end).unwrap_or(true))
            && self.command_queues.iter().all(|queue| queue.synchronize_until(end).unwrap_or(true))
    }

    fn wait(&self) {
        self.marks().for_each(|mark| _ = mark.synchronize());
        self.command_queues.iter().for_each(|queue| _ = queue.synchronize());
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // Memory must not go away under a kernel. What is registered goes back to its owner when no queue uses it any more.
        let remains = Remains {
            command_queues: self.service.drain(..).chain(self.janitor.drain(..)).collect(),
            departed: std::mem::take(&mut *lock(&self.departed)),
            leaving: std::mem::take(&mut *lock(&self.leaving)),
            _machine: self.machine.clone(),
        };
        let bytes = lock(&self.heap).mapped().saturating_mul(self.caps.len() as u64);
        if !remains.is_free_by(Instant::now() + bound(self.patience, bytes)) {
            drop_after(remains, Remains::wait);
        }
    }
}

impl std::fmt::Debug for Allocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes of symmetric memory", self.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bound::tests::Held;

    /// Who drops a world waits for its queues for a while; its memory goes when they are done, however late.
    #[test]
    fn a_world_whose_queues_do_not_end_is_left_to_them() {
        for is_held in [false, true] {
            let machine = Arc::new(crate::sim::Machine::of(1, 2 << 20));
            let memory = Arc::downgrade(&machine);
            let mut world = World::new(machine, 2 << 20, vec![2 << 20], Links::all(1), 0, None).unwrap();
            Arc::get_mut(&mut world).unwrap().patience = Duration::from_millis(200);
            let held = Arc::new(Held::default());
            if !is_held {
                held.let_go();
            }
            world.depart(held.clone(), world.machine.faults(&[]).unwrap());
            let begun = Instant::now();
            drop(world);
            let took = begun.elapsed();
            assert!(took < Duration::from_secs(5) && (took >= Duration::from_millis(200)) == is_held, "{took:?}");
            assert_eq!(memory.upgrade().is_some(), is_held);
            held.let_go();
            while memory.upgrade().is_some() {
                assert!(begun.elapsed() < Duration::from_secs(60), "its memory stays");
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}
