//! Teams: the PEs that share memory, and what the host does with them.

mod options;
mod parts;
mod space;

use crate::fault::Record;
use crate::onesided::{atomic_args, wait_args};
use crate::op::Op;
use crate::process::{Group, Meeting, Process};
use crate::queue::{Event, Queue};
use crate::rank::{TeamRank, TeamState, FETCHED};
use crate::word::{compares, width, Atomic, Compare, Word};
use crate::world::World;
use crate::{cuda, ffi, sim, Error, Memory, Result, Space, Symmetric};
use bytemuck::Pod;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use tandem_cuda::{Device, DeviceBuffer, Stream};

pub use options::Options;
use options::{far_problem, shape};

/// The longest timeout; longer ones are cut to it.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// A set of PEs that share memory: GPUs of this machine, or pretend PEs, which are threads and host memory. The PEs are
/// numbered from 0. A handle: clones are the same team. A team is unusable after a [`Fault`](crate::Fault); others go on.
///
/// The PEs may be those of several processes ([`Team::sim_in`], [`Team::cuda_in`]). Each process tells its own PEs what to do, and its host reads and writes the
/// memory of all. What changes the memory that there is ([`Team::alloc`], [`Team::split`], [`crate::Collectives`]) all processes call in
/// the same order with the same arguments. Memory is used again when the last handle of every process is gone.
#[derive(Clone)]
pub struct Team(Arc<Inner>);

struct Inner {
    core: Arc<TeamState>,
    /// Of the PEs of this process, in order.
    queues: Vec<Queue>,
    membership: Option<Arc<Membership>>,
}

impl Team {
    /// A team of `pes` pretend PEs.
    ///
    /// # Errors
    /// None or more than [`crate::MAX_PES`]; options that name other PEs; memory.
    pub fn sim(pes: usize, options: Options) -> Result<Self> {
        let (window, caps, links) = shape(pes, &options, 16 << 30)?;
        let machine = Arc::new(sim::Machine::of(pes, window));
        let memory = machine.memory().clone();
        let world = World::new(machine, window, caps, links, options.initial, None)?;
        Self::of(Self::open(world, Some(memory), &options)?, None)
    }

    /// A team of pretend PEs of all processes that meet, `pes` of them in this one. PEs are numbered by the ranks of their processes. The
    /// options must be the same for all, and [`Options::timeout`] is also how long processes wait for each other.
    ///
    /// # Errors
    /// As for [`Team::sim`]; as of [`Meeting`]; processes of other versions, with other options, or of other users.
    pub fn sim_in(meeting: Meeting, pes: usize, options: Options) -> Result<Self> {
        if pes == 0 {
            return Err(Error::invalid("open a team", "a process of a team has at least one PE"));
        }
        let patience = options.timeout.min(LONGEST_TIMEOUT);
        let group = Group::meet(meeting, pes, &format!("{options:?}"), patience)?;
        let (window, caps, mut links) = shape(group.count(), &options, 16 << 30)?;
        links.divide(group.nodes());
        let machine = Arc::new(sim::Machine::shared(&group, window)?);
        let memory = machine.memory().clone();
        let world = World::new(machine, window, caps, links, options.initial, Some(group.clone()))?;
        let membership = Membership::new(&world, group, patience);
        Self::of(Self::open(world, Some(memory), &options)?, Some(membership))
    }

    /// A team of GPUs, one PE for each of `devices` in this order. A device that is named several times has as many PEs: they share its
    /// memory and its multiprocessors, and run beside each other. That is for tests of programs for several GPUs on one; the times say
    /// nothing of links.
    ///
    /// # Errors
    /// None, or more than [`crate::MAX_PES`]; a device is named several times, and the environment's `CUDA_DEVICE_MAX_CONNECTIONS` is less
    /// than 8 for each, or 32; options that name other PEs; the build or the driver offers no virtual memory management; memory; a device failed.
    pub fn cuda(devices: &[Device], options: Options) -> Result<Self> {
        Self::of(Self::of_gpus(devices, &options, None, false)?, None)
    }

    /// A team of the GPUs of all processes that meet, `devices` of them in this one, as of [`Team::sim_in`]. Every process sees all of
    /// these GPUs. On one GPU the kernels of several processes run beside each other where NVIDIA's MPS serves it, else in turns.
    ///
    /// Over several nodes each process is a node, with one GPU, and sees that one. NVSHMEM, the user's own, carries what queues and the host do
    /// with other PEs; kernels reach their own PE's memory alone. All of a window ([`Options::window`], 1 GiB unless given) has memory from the
    /// start, and a process has one such team at a time.
    ///
    /// # Errors
    /// As for [`Team::cuda`] and [`Team::sim_in`]; [`Options::apart`]; a GPU that another process does not see, or does not reach. Of several
    /// nodes: more processes or GPUs on one; NVSHMEM cannot be used in a process, or is another one there.
    pub fn cuda_in(meeting: Meeting, devices: &[Device], options: Options) -> Result<Self> {
        let op = "open a team of GPUs";
        if devices.is_empty() || !options.apart.is_empty() {
            return Err(Error::invalid(op, "a process of a team has at least one GPU, and none of its PEs are apart"));
        }
        if let Some(problem) = far_problem(meeting.size(), meeting.nodes(), devices.len()) {
            return Err(Error::invalid(op, problem));
        }
        let is_far = meeting.nodes() > 1;
        let patience = options.timeout.min(LONGEST_TIMEOUT);
        let group = Group::meet(meeting, devices.len(), &format!("GPUs, {options:?}"), patience)?;
        let core = Self::of_gpus(devices, &options, Some(&group), is_far)?;
        let membership = Membership::new(&core.world, group, patience);
        Self::of(core, Some(membership))
    }

    /// A team of GPUs, one PE for each of `streams` in this order, which are the PEs' queues ([`Team::queue`]): what else these streams
    /// are told and what the team is told is done in one order.
    ///
    /// # Errors
    /// As for [`Team::cuda`].
    pub fn cuda_on(streams: &[Arc<Stream>], options: Options) -> Result<Self> {
        let devices: Vec<Device> = streams.iter().map(|stream| stream.device()).collect();
        let core = Self::of_gpus(&devices, &options, None, false)?;
        let seats =
            streams.iter().enumerate().map(|(me, stream)| (Arc::new(TeamRank { core: core.clone(), me }), stream));
        let queues = seats.map(|(seat, stream)| Queue::on(seat, stream.clone())).collect::<Result<_>>()?;
        Ok(Team(Arc::new(Inner { core, queues, membership: None })))
    }

    /// With `is_far` the group's processes are nodes.
    fn of_gpus(
        devices: &[Device],
        options: &Options,
        group: Option<&Arc<Group>>,
        is_far: bool,
    ) -> Result<Arc<TeamState>> {
        let pes = group.map_or(devices.len(), |group| group.count());
        let (window, caps, mut links) = shape(pes, options, if is_far { cuda::FAR_WINDOW } else { 256 << 30 })?;
        let far = match group.filter(|_| is_far) {
            Some(group) => {
                links.divide(group.nodes());
                Some(cuda::Far::open(group, devices[0], window, options.timeout.min(LONGEST_TIMEOUT))?)
            }
            None => None,
        };
        let machine = cuda::Machine::new(devices, window, options.checks, &mut links, group, far)?;
        let window = machine.window();
        let world = World::new(Arc::new(machine), window, caps, links, options.initial, group.cloned())?;
        Self::open(world, None, options)
    }

    fn open(world: Arc<World>, pretend: Option<Arc<sim::Memory>>, options: &Options) -> Result<Arc<TeamState>> {
        let members = (0..world.pes()).collect();
        TeamState::new(world, pretend, members, options.timeout.min(LONGEST_TIMEOUT))
    }

    fn of(core: Arc<TeamState>, membership: Option<Arc<Membership>>) -> Result<Self> {
        let seats = core.local().map(|me| Arc::new(TeamRank { core: core.clone(), me }));
        let queues = seats.map(Queue::new).collect::<Result<_>>()?;
        Ok(Team(Arc::new(Inner { core, queues, membership })))
    }

    /// A team of some of the PEs, in this order. It has its own queues, barriers and faults, and the same memory.
    ///
    /// # Errors
    /// None of the PEs, one twice, or one that the team does not have; the team had a fault; memory.
    pub fn split(&self, pes: &[usize]) -> Result<Self> {
        let op = "split a team";
        let core = self.core();
        core.check()?;
        if pes.is_empty() {
            return Err(Error::invalid(op, "a team needs at least one PE"));
        }
        for (i, &pe) in pes.iter().enumerate() {
            core.member(op, pe)?;
            if pes[..i].contains(&pe) {
                return Err(Error::invalid(op, format!("PE {pe} is named twice")));
            }
        }
        let members = pes.iter().map(|&pe| core.members[pe]).collect();
        let part = TeamState::new(core.world.clone(), core.pretend.clone(), members, core.timeout)?;
        Self::of(part, self.0.membership.clone())
    }

    pub(crate) fn core(&self) -> &Arc<TeamState> {
        &self.0.core
    }

    /// Number of PEs.
    pub fn size(&self) -> usize {
        self.core().members.len()
    }

    /// By PE: which PE of the world it is, that is of the team that this one was split from first.
    pub fn members(&self) -> &[usize] {
        &self.core().members
    }

    /// What PE `pe` is, such as `cuda:0`; empty for a PE that the team does not have.
    pub fn name(&self, pe: usize) -> String {
        self.members().get(pe).map_or(String::new(), |&pe| self.core().world.machine.name(pe))
    }

    /// The PEs that this process has, in order: all, unless the team is of several processes.
    pub fn local(&self) -> Vec<usize> {
        self.core().local().collect()
    }

    /// The process that has PE `pe`; `None` where the team is of one process, or has no such PE.
    pub fn process_of(&self, pe: usize) -> Option<Process> {
        self.core().process_of(pe)
    }

    /// PEs of the world that are on the same GPU as PE `pe`, itself among them; 1 for a pretend PE.
    pub(crate) fn sharing(&self, pe: usize) -> usize {
        self.core().world.machine.sharing(self.members()[pe])
    }

    /// Whether the PEs are GPUs.
    pub fn is_cuda(&self) -> bool {
        self.core().pretend.is_none()
    }

    /// Whether PE `from` reaches the memory of PE `to`.
    ///
    /// # Errors
    /// [`Error::NoPeer`] with the reason why it does not; the team does not have them.
    pub fn reaches(&self, from: usize, to: usize) -> Result<()> {
        let core = self.core();
        core.member("reaches", from)?;
        core.member("reaches", to)?;
        core.reach(from, to)
    }

    /// Whether every PE reaches the memory of every other.
    ///
    /// # Errors
    /// [`Error::NoPeer`] of the first pair that does not, with the reason.
    pub fn all_reach(&self) -> Result<()> {
        self.core().all_reach()
    }

    /// Bytes of each PE's heap that have memory, and those of them that are in use.
    pub fn heap_bytes(&self) -> (u64, u64) {
        self.core().world.sizes()
    }

    /// `len` elements of zeros on every PE of the world, at one offset. The heap grows where it must.
    ///
    /// # Errors
    /// A PE has too little memory, or the window is full: then no PE keeps anything. `T` has no size; the team had a
    /// fault; a device failed.
    pub fn alloc<T: Pod>(&self, len: usize) -> Result<Symmetric<T>> {
        let op = "allocate symmetric memory";
        self.core().check()?;
        let bytes = (len as u64).checked_mul(size_of::<T>() as u64);
        match bytes {
            Some(bytes) if size_of::<T>() > 0 => Ok(Symmetric::new(self.core().world.alloc(bytes)?, len)),
            _ => Err(Error::invalid(op, format!("{len} elements of {} bytes", size_of::<T>()))),
        }
    }

    /// Makes a user's memory symmetric: `buffers` has one of the same length for each PE of the team, on that PE's
    /// device. At most 64 regions can be registered at a time. [`Team::unregister`] gives it back.
    ///
    /// # Errors
    /// Another number of buffers, lengths that differ or are 0, memory of another device; too many regions; the team
    /// had a fault; a device failed.
    pub fn register<T: Pod>(&self, buffers: Vec<Memory<T>>) -> Result<Symmetric<T>> {
        let op = "register memory";
        self.core().check()?;
        self.core().world.of_one_process(op)?;
        if buffers.len() != self.size() {
            return Err(Error::invalid(op, format!("{} buffers for {} PEs", buffers.len(), self.size())));
        }
        let len = buffers[0].len();
        if len == 0 || size_of::<T>() == 0 || buffers.iter().any(|buffer| buffer.len() != len) {
            return Err(Error::invalid(op, "the buffers must have one length above 0"));
        }
        let bytes = len as u64 * size_of::<T>() as u64;
        let core = self.core();
        let (at, held) = match &core.pretend {
            Some(memory) => sim::register(memory, &core.members, buffers)?,
            None => cuda::register(&*core.world.machine, &core.world.links, &core.members, buffers)?,
        };
        Ok(Symmetric::new(core.world.register(bytes, at, held, Space::Device)?, len))
    }

    /// Waits until no queue uses the region any more, and gives the memory back, by PE.
    ///
    /// # Errors
    /// `memory` is not registered, or another handle to it exists; a device failed.
    pub fn unregister<T: Pod>(&self, memory: Symmetric<T>) -> Result<Vec<Memory<T>>> {
        let op = "unregister memory";
        self.core().world.synchronize()?;
        let Some(allocation) = Arc::into_inner(memory.into_memory()) else {
            return Err(Error::invalid(op, "another handle to the memory exists"));
        };
        let held = allocation.release().ok_or_else(|| Error::invalid(op, "the memory is the team's own"))?;
        let pretend = match held.downcast::<sim::Registered>() {
            Ok(registered) => return registered.take(),
            Err(held) => held,
        };
        match pretend.downcast::<Vec<DeviceBuffer<T>>>() {
            Ok(buffers) => Ok(buffers.into_iter().map(Memory::Device).collect()),
            Err(_) => Err(Error::invalid(op, "the memory was registered as another type")),
        }
    }

    /// The queue of PE `pe`; [`Team::new_queue`] makes more.
    ///
    /// # Panics
    /// The team does not have the PE, or another process has it ([`Team::local`]).
    #[track_caller]
    pub fn queue(&self, pe: usize) -> &Queue {
        let own = self.0.queues.get(pe).filter(|queue| queue.is_of(pe));
        match own.or_else(|| self.0.queues.iter().find(|queue| queue.is_of(pe))) {
            Some(queue) => queue,
            None => panic!("this process has no PE {pe} of the team: it has {:?} of {}", self.local(), self.size()),
        }
    }

    /// The queues of the PEs that this process has, in order.
    pub fn queues(&self) -> &[Queue] {
        &self.0.queues
    }

    /// One more queue of PE `pe`, beside [`Team::queue`].
    ///
    /// # Errors
    /// The team does not have the PE; the device failed.
    pub fn new_queue(&self, pe: usize) -> Result<Queue> {
        self.core().member("make a queue", pe)?;
        if let Some(process) = self.process_of(pe).filter(|_| !self.core().is_local(pe)) {
            return Err(Error::invalid("make a queue", format!("{process} has PE {pe}")));
        }
        Queue::new(Arc::new(TeamRank { core: self.core().clone(), me: pe }))
    }

    /// One more queue of PE `pe`, which is a GPU: `stream`, of that GPU. What else the stream is told and what the queue is told is done in
    /// one order.
    ///
    /// # Errors
    /// The team does not have the PE, or it is a pretend one; the stream is of another device.
    pub fn queue_on(&self, pe: usize, stream: Arc<Stream>) -> Result<Queue> {
        let op = "queue on a stream";
        self.core().member(op, pe)?;
        let device = self.core().world.machine.device(self.members()[pe]);
        if device.is_some_and(|device| device != stream.device()) {
            let problem = format!("a stream of {} for PE {pe}, which is {}", stream.device(), self.name(pe));
            return Err(Error::invalid(op, problem));
        }
        Queue::on(Arc::new(TeamRank { core: self.core().clone(), me: pe }), stream)
    }

    /// Copies `from` to PE `pe`'s elements. Done when it returns, and in no order with what queues do meanwhile.
    ///
    /// # Errors
    /// The lengths differ; the team does not have the PE, or had a fault; the device failed.
    pub fn write<T: Pod>(&self, pe: usize, to: &Symmetric<T>, from: &[T]) -> Result<()> {
        let op = "write";
        let at = self.host_place(op, to, pe)?;
        if to.len() != from.len() {
            return Err(Error::invalid(op, format!("{} elements to a place of {}", from.len(), to.len())));
        }
        let written = self.core().world.machine.write(self.members()[pe], at, bytemuck::cast_slice(from));
        written.map_err(|error| self.core().check().err().unwrap_or(error))
    }

    /// PE `pe`'s elements. In no order with what queues do meanwhile: synchronize what writes them first.
    ///
    /// # Errors
    /// The team does not have the PE, or had a fault; too little host memory; the device failed.
    pub fn read<T: Pod>(&self, pe: usize, from: &Symmetric<T>) -> Result<Vec<T>> {
        let op = "read";
        let at = self.host_place(op, from, pe)?;
        let mut out: Vec<T> = Vec::new();
        let full = |_| Error::invalid(op, format!("no host memory for {} bytes", from.bytes()));
        out.try_reserve_exact(from.len()).map_err(full)?;
        out.resize(from.len(), T::zeroed());
        let read = self.core().world.machine.read(self.members()[pe], at, bytemuck::cast_slice_mut(&mut out));
        read.map_err(|error| self.core().check().err().unwrap_or(error))?;
        Ok(out)
    }

    /// Changes a word of PE `pe` from the host and returns what it was; done when it returns.
    ///
    /// # Errors
    /// `word` is not one; the team does not have the PE, or had a fault; the device failed.
    pub fn atomic<T: Word>(&self, pe: usize, word: &Symmetric<T>, atomic: Atomic<T>) -> Result<T> {
        self.core().member("atomic", pe)?;
        // The PE's own queue for the host, or that of a PE of this process; its own memory, so that every PE is reached.
        let seat = TeamRank { core: self.core().clone(), me: pe };
        let here = self.core().world.stand_in(self.members()[pe]);
        let old = self.core().state_in(here) + FETCHED;
        let args = atomic_args((&seat, true), "atomic", word, atomic, pe, old)?;
        let world = &self.core().world;
        let _alone = self.core().fetching.lock().unwrap_or_else(PoisonError::into_inner);
        let service = world.service(here);
        let place = args.word;
        service.push(Op::Atomic(args))?;
        self.core().settle(&**service, pe, place, size_of::<T>() as u64)?;
        let mut out = [T::zeroed()];
        world.machine.read(here, old, bytemuck::cast_slice_mut(&mut out))?;
        Ok(out[0])
    }

    /// Blocks until every one of PE `pe`'s `words` compares with `value` as wanted.
    ///
    /// # Errors
    /// A fault, if this takes longer than the team's timeout; the team does not have the PEs; the device failed.
    pub fn wait_until<T: Word>(
        &self,
        pe: usize,
        words: &Symmetric<T>,
        compare: Compare,
        value: T,
        from: Option<usize>,
    ) -> Result<()> {
        let what = ("wait_until", ffi::TANDEM_WAIT_ALL);
        self.watch(what, pe, words, (compare, value), from, |closed| closed.len() == words.len())?;
        Ok(())
    }

    /// Blocks until one of PE `pe`'s `words` does; returns the index of the first that does.
    ///
    /// # Errors
    /// As for [`Team::wait_until`]; there is no word.
    pub fn wait_until_any<T: Word>(
        &self,
        pe: usize,
        words: &Symmetric<T>,
        compare: Compare,
        value: T,
        from: Option<usize>,
    ) -> Result<usize> {
        let what = ("wait_until_any", ffi::TANDEM_WAIT_ANY);
        Ok(self.watch(what, pe, words, (compare, value), from, |closed| !closed.is_empty())?[0])
    }

    /// Blocks until at least one of PE `pe`'s `words` does; returns the indices of all that do, in order.
    ///
    /// # Errors
    /// As for [`Team::wait_until_any`].
    pub fn wait_until_some<T: Word>(
        &self,
        pe: usize,
        words: &Symmetric<T>,
        compare: Compare,
        value: T,
        from: Option<usize>,
    ) -> Result<Vec<usize>> {
        let what = ("wait_until_some", ffi::TANDEM_WAIT_SOME);
        self.watch(what, pe, words, (compare, value), from, |closed| !closed.is_empty())
    }

    /// Looks at words until the indices of those that compare as wanted are enough, and returns them.
    fn watch<T: Word>(
        &self,
        (op, mode): (&'static str, i32),
        pe: usize,
        words: &Symmetric<T>,
        (compare, value): (Compare, T),
        from: Option<usize>,
        enough: impl Fn(&[usize]) -> bool,
    ) -> Result<Vec<usize>> {
        self.core().member(op, pe)?;
        let seat = TeamRank { core: self.core().clone(), me: pe };
        let args = wait_args(&seat, op, words, (compare, value), from, (mode, 0))?;
        let begun = Instant::now();
        loop {
            let (now, closed) = self.closed(pe, words, (compare, value))?;
            if enough(&closed) {
                return Ok(closed);
            }
            // Asked first: what one that has left did is there then.
            let has_left = from.is_some_and(|from| self.core().has_left(from));
            if has_left && enough(&self.closed(pe, words, (compare, value))?.1) {
                continue;
            }
            if has_left || begun.elapsed() > self.core().timeout {
                // The first word that does not.
                let index = (0..now.len()).find(|i| closed.get(*i) != Some(i)).unwrap_or(0);
                let record = Record {
                    what: ffi::TANDEM_FAULT_WAIT as u32,
                    waiter: pe as u32,
                    peer: args.from,
                    place: args.words + index as u64 * width(T::KIND),
                    seen: now[index].to_bits(),
                    wanted: value.to_bits(),
                };
                self.core().give_up(pe, record)?;
            }
            std::thread::sleep(Duration::from_micros(20));
        }
    }

    /// PE `pe`'s words as they are, and the indices of those that compare as wanted.
    fn closed<T: Word>(
        &self,
        pe: usize,
        words: &Symmetric<T>,
        (compare, value): (Compare, T),
    ) -> Result<(Vec<T>, Vec<usize>)> {
        let now = self.read(pe, words)?;
        let is_closed = |i: &usize| compares(T::KIND, compare as i32, now[*i].to_bits(), value.to_bits());
        let closed = (0..now.len()).filter(is_closed).collect();
        Ok((now, closed))
    }

    fn host_place<T: Pod>(&self, op: &'static str, memory: &Symmetric<T>, pe: usize) -> Result<u64> {
        self.core().check()?;
        self.core().member(op, pe)?;
        self.core().address(op, memory, pe)
    }

    /// Adds a barrier to the queue of every PE that this process has. Where PEs do not reach each other it is made of [`Event`]s, which cannot
    /// be recorded and are of one process.
    ///
    /// # Errors
    /// The team had a fault; PEs do not reach each other, and a queue is recording or there are several processes; a device failed.
    pub fn barrier(&self) -> Result<()> {
        use crate::OneSided;
        if self.core().all_reach().is_ok()
            || self.core().group().is_some()
            || self.queues().iter().any(Queue::is_recording)
        {
            return self.queues().iter().try_for_each(OneSided::barrier);
        }
        self.check()?;
        let come = self.queues().iter().map(Queue::record).collect::<Result<Vec<Event>>>()?;
        self.queues().iter().try_for_each(|queue| come.iter().try_for_each(|event| queue.wait(event)))
    }

    /// Blocks until the queues of all PEs of this process ([`Team::queues`]) have done what they were told.
    ///
    /// # Errors
    /// A fault of the team; the first error of a program; a device failed.
    pub fn synchronize(&self) -> Result<()> {
        // All of them, so that nothing runs on after an error.
        let results: Vec<Result<()>> = self.queues().iter().map(Queue::synchronize).collect();
        results.into_iter().collect()
    }

    /// Whether this process says farewell when its last handle to the team and its parts goes: it does, unless this has said otherwise.
    /// Without a farewell the others take it for lost, and their waits for it end. That is for languages in which a value may go when the
    /// program has failed. Does nothing for a team of one process.
    pub fn says_farewell(&self, whether: bool) {
        let membership = self.0.membership.iter();
        membership.for_each(|membership| membership.is_silent.store(!whether, Ordering::Relaxed));
    }

    /// Whether the team can be used.
    ///
    /// # Errors
    /// The fault that it has had.
    pub fn check(&self) -> Result<()> {
        self.core().check()
    }
}

/// A process's part in a world of several. When the last team of the process goes it waits for the queues, and says farewell: the others
/// know then that it has not died.
struct Membership {
    world: Arc<World>,
    group: Arc<Group>,
    patience: Duration,
    /// Whether the process goes without a farewell.
    is_silent: AtomicBool,
}

impl Membership {
    fn new(world: &Arc<World>, group: Arc<Group>, patience: Duration) -> Arc<Self> {
        Arc::new(Membership { world: world.clone(), group, patience, is_silent: AtomicBool::new(false) })
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        if self.is_silent.load(Ordering::Relaxed) {
            return self.group.abandon();
        }
        // Who panics has not done what the others count on.
        if !std::thread::panicking() && self.world.settled_by(Instant::now() + self.patience) {
            self.group.leave();
        }
    }
}
