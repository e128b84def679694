//! Collective operations of a team: planned on its topology, carried out by its queues or at once.

mod apart;
mod executor;
mod nodes;
#[cfg(test)]
mod tests;

use crate::exec::element::check;
use crate::exec::mail::Mail;
use crate::exec::{gpu, Call, Combine, Kind, Number, Share, Tuning};
use crate::plan::{Operation, Plan};
use crate::planner::{lock, Item, Planner};
use crate::topology::Topology;
use crate::{Error, HostLinks, Result, Symmetric, Team};
use bytemuck::Pod;
use executor::Executor;
use nodes::Levels;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tandem_cuda::DeviceBuffer;

/// The collective operations of some PEs of a team, with the others as helpers. PEs are numbered as in the team, and parts of
/// buffers go by the order of the job. A handle: clones are the same.
///
/// Every operation is added to the queue ([`Team::queue`]) of each PE that takes part, helpers included, and is done in its
/// order; nothing has happened when the call returns. [`Collectives::now`] gives the same operations done on return. Where the team is of
/// several processes, each calls the same operations in the same order, and tells its own PEs.
///
/// **Several nodes.** The topology is that of each node. Operations are done inside of each node by its own plan, and between one PE of each
/// node through the transport: a broadcast, a reduction and a gather send each node's network no more than the bound of
/// [`crate::plan::Levels`]. The job is the whole team, the PEs of a node are next to each other in it, and nothing is recorded.
///
/// `from` and `to` may be the same memory in `broadcast`, `reduce` and `all_reduce`; else they must not overlap. `all_gather_in_place` takes
/// one memory for both.
#[derive(Clone)]
pub struct Collectives {
    executor: Arc<Executor>,
    /// Where the team is of several nodes.
    levels: Option<Arc<Levels>>,
    is_now: bool,
}

/// Operations that are to be done at the same time; see [`Collectives::together`].
pub struct CollectiveGroup<'a> {
    collectives: &'a Collectives,
    items: Vec<Item>,
}

impl Collectives {
    /// Those of all PEs of `team`. PE `i` is the topology's GPU `i`.
    ///
    /// # Errors
    /// The topology has fewer GPUs than the team PEs; a device failed.
    pub fn new(team: &Team, topology: &Topology) -> Result<Self> {
        Self::of(team, topology, &(0..team.size()).collect::<Vec<_>>(), Tuning::default())
    }

    /// Those of the PEs of `job`; the other PEs of the team help.
    ///
    /// # Errors
    /// As for [`Collectives::new`]; a PE that the team does not have, or one twice, or none.
    pub fn of(team: &Team, topology: &Topology, job: &[usize], tuning: Tuning) -> Result<Self> {
        let op = "collectives";
        let gpus = topology.gpus().len();
        let nodes = &team.core().nodes;
        let pes = nodes.iter().map(Vec::len).max().unwrap_or(0);
        if gpus < pes {
            let problem = format!(
                "the topology has {gpus} GPUs, the team {pes} PEs{}",
                if nodes.len() > 1 { " on a node" } else { "" }
            );
            return Err(Error::invalid(op, problem));
        }
        if team.is_cuda() && nodes.len() > 1 {
            let problem = "GPUs of several nodes have no collectives; use puts, signals and barriers, or NCCL";
            return Err(Error::invalid(op, problem));
        }
        if job.is_empty() {
            return Err(Error::invalid(op, "a job needs at least one PE"));
        }
        for (i, &pe) in job.iter().enumerate() {
            team.core().member(op, pe)?;
            if job[..i].contains(&pe) {
                return Err(Error::invalid(op, format!("PE {pe} is named twice")));
            }
        }
        let levels = if nodes.len() > 1 {
            if !job.iter().copied().eq(0..team.size()) {
                return Err(Error::invalid(op, "the job of a team of several nodes is all of its PEs, in their order"));
            }
            Some(Arc::new(Levels::new(team, topology, tuning)?))
        } else {
            None
        };
        // That of each node has its own.
        let topology = if levels.is_some() { topology.clone() } else { apart::usable(team, topology)? };
        let gpus = if team.is_cuda() { Some(gpu::Gpus::new(team)?) } else { None };
        // Each worker is a block that waits for others: all of them must be there at once.
        let most = gpus.as_ref().map_or(usize::MAX, |gpus| gpus.blocks().saturating_sub(1).max(1));
        let tuning = Tuning { workers: tuning.workers.min(most), ..tuning };
        let planner = Planner {
            team: team.clone(),
            topology,
            job: job.to_vec(),
            tuning,
            plans: Mutex::default(),
            schedules: Mutex::default(),
            straight: Mutex::default(),
            staging: Mutex::default(),
            share: Mutex::new(Share::new(100.0 * tuning.host_share, 10.0, 150.0)),
            last_through: AtomicU64::default(),
        };
        let executor =
            Executor { planner, mail: Mutex::default(), runs: Mutex::default(), gpus, links: Mutex::default() };
        Ok(Self { executor: Arc::new(executor), levels, is_now: false })
    }

    /// These operations, each done on all PEs of this process when the call returns, after all that the queues were told before. Small ones
    /// take a fraction of the time of a launch where the queues are idle.
    pub fn now(&self) -> Self {
        Self { executor: self.executor.clone(), levels: self.levels.clone(), is_now: true }
    }

    /// The team on whose queues the operations are done.
    pub fn team(&self) -> &Team {
        &self.executor.planner.team
    }

    /// The PEs, in the order of parts.
    pub fn job(&self) -> &[usize] {
        &self.executor.planner.job
    }

    /// `root`'s `from` to `to` of every PE.
    ///
    /// # Errors
    /// Lengths that do not fit; memory of another world; `root` is not of the job; the team had a fault; a device failed.
    pub fn broadcast<T: Pod>(&self, root: usize, from: &Symmetric<T>, to: &Symmetric<T>) -> Result<()> {
        self.only(|g| g.broadcast(root, from, to))
    }

    /// `root`'s `to` gets the combination of the `from` of all.
    ///
    /// # Errors
    /// As for [`Collectives::broadcast`].
    pub fn reduce<T: Number>(&self, how: Combine, root: usize, from: &Symmetric<T>, to: &Symmetric<T>) -> Result<()> {
        self.only(|g| g.reduce(how, root, from, to))
    }

    /// Everyone's `to` gets the combination of the `from` of all.
    ///
    /// # Errors
    /// As for [`Collectives::broadcast`].
    pub fn all_reduce<T: Number>(&self, how: Combine, from: &Symmetric<T>, to: &Symmetric<T>) -> Result<()> {
        self.only(|g| g.all_reduce(how, from, to))
    }

    /// Everyone's `to` gets the `from` of all, one after the other.
    ///
    /// # Errors
    /// As for [`Collectives::broadcast`].
    pub fn all_gather<T: Pod>(&self, from: &Symmetric<T>, to: &Symmetric<T>) -> Result<()> {
        self.only(|g| g.all_gather(from, to))
    }

    /// Everyone's `memory` gets all parts, where that of the job's `i`-th PE holds its own already, as the `i`-th.
    ///
    /// # Errors
    /// `memory` is not as many equal parts as the job has PEs; otherwise as for [`Collectives::broadcast`].
    pub fn all_gather_in_place<T: Pod>(&self, memory: &Symmetric<T>) -> Result<()> {
        self.only(|g| g.all_gather_in_place(memory))
    }

    /// [`Collectives::all_gather_in_place`] in memory of the caller's own, a buffer of each GPU of the job in its order: done after all
    /// that the buffers' streams were told before, and what they are told afterwards begins when it is done. Their pools are opened to the
    /// GPUs of the job.
    ///
    /// # Errors
    /// Other buffers than these, or of different lengths; a queue is recording; otherwise as for [`Collectives::all_gather_in_place`].
    pub fn all_gather_buffers<T: Pod>(&self, buffers: &mut [DeviceBuffer<T>]) -> Result<()> {
        let op = Operation::AllGather.name();
        let (team, job) = (&self.executor.planner.team, self.job());
        let len = buffers.first().map_or(0, DeviceBuffer::len);
        if buffers.len() != job.len() || buffers.iter().any(|buffer| buffer.len() != len) {
            let problem = format!("{} buffers for {} PEs, or not all of {len} elements", buffers.len(), job.len());
            return Err(Error::invalid(op, problem));
        }
        if self.executor.planner.is_recording() {
            return Err(Error::invalid(op, "a queue is recording, and a recording cannot keep the buffers"));
        }
        let mut streams = Vec::with_capacity(job.len());
        for (&pe, buffer) in job.iter().zip(&*buffers) {
            let here = buffer.stream().device();
            let stream = team.queue(pe).stream().filter(|stream| stream.device() == here);
            let problem = || format!("memory of {here} for PE {pe}, which is {}", team.name(pe));
            streams.push(stream.ok_or_else(|| Error::invalid(op, problem()))?);
        }
        for (i, buffer) in buffers.iter().enumerate() {
            let peers = streams.iter().enumerate().filter(|(j, _)| i != *j && self.reaches(*j, i));
            peers.map(|(_, stream)| stream.device()).try_for_each(|device| buffer.pool().share(device))?;
        }
        // A queue that is the buffer's own stream needs not wait for it.
        let others = || streams.iter().zip(&*buffers).filter(|(stream, buffer)| !Arc::ptr_eq(stream, buffer.stream()));
        for (stream, buffer) in others() {
            stream.wait(&buffer.record()?)?;
        }
        let at = buffers.iter().map(|buffer| buffer.ptr().raw() as u64).collect();
        let done = self.only(|g| g.gather_in_place::<T>(len, at, Vec::new()));
        // Also what was begun before an error must end before the memory is used or freed.
        let ends = others().map(|(stream, buffer)| buffer.stream().wait(&stream.record()?));
        let ended: Vec<tandem_cuda::Result<()>> = ends.collect();
        done.and(ended.into_iter().collect::<tandem_cuda::Result<()>>().map_err(Error::from))
    }

    /// Whether the job's `i`-th PE reaches the memory of its `j`-th.
    fn reaches(&self, i: usize, j: usize) -> bool {
        self.executor.planner.team.reaches(self.job()[i], self.job()[j]).is_ok()
    }

    /// The `to` of the job's `i`-th PE gets the combination of the `i`-th part of the `from` of all.
    ///
    /// # Errors
    /// As for [`Collectives::broadcast`].
    pub fn reduce_scatter<T: Number>(&self, how: Combine, from: &Symmetric<T>, to: &Symmetric<T>) -> Result<()> {
        self.only(|g| g.reduce_scatter(how, from, to))
    }

    /// The `j`-th part of the `to` of the job's `i`-th PE gets the `i`-th part of the `from` of its `j`-th.
    ///
    /// # Errors
    /// As for [`Collectives::broadcast`].
    pub fn all_to_all<T: Pod>(&self, from: &Symmetric<T>, to: &Symmetric<T>) -> Result<()> {
        self.only(|g| g.all_to_all(from, to))
    }

    /// `from` of the team's PE `source` to `to` of `target`, over every path between them.
    ///
    /// # Errors
    /// As for [`Collectives::broadcast`].
    pub fn send<T: Pod>(&self, source: usize, target: usize, from: &Symmetric<T>, to: &Symmetric<T>) -> Result<()> {
        self.only(|g| g.send(source, target, from, to))
    }

    /// Host memory to the `to` of all, a part to each, over the host links of the whole team ([`HostLinks`]). It is done on return, after
    /// all that the queues of the job's PEs were told before; it cannot be recorded, as the host takes part.
    ///
    /// # Errors
    /// `from` is not as long as the `to` of all together; a queue is recording; otherwise as for [`HostLinks::upload`].
    pub fn upload<T: Pod>(&self, from: &[T], to: &Symmetric<T>) -> Result<()> {
        let links = self.host_links("upload", from.len(), to)?;
        let parts = from.chunks_exact(to.len().max(1));
        self.job().iter().zip(parts).try_for_each(|(&pe, part)| links.upload(pe, to, part).map(drop))
    }

    /// The `from` of all to host memory, one after the other; otherwise as [`Collectives::upload`].
    ///
    /// # Errors
    /// As for [`Collectives::upload`].
    pub fn download<T: Pod>(&self, from: &Symmetric<T>, to: &mut [T]) -> Result<()> {
        let links = self.host_links("download", to.len(), from)?;
        let parts = to.chunks_exact_mut(from.len().max(1));
        self.job().iter().zip(parts).try_for_each(|(&pe, part)| links.download(pe, from, part).map(drop))
    }

    /// The host links, once the job's queues have nothing to do any more.
    fn host_links<T: Pod>(&self, op: &'static str, host: usize, memory: &Symmetric<T>) -> Result<Arc<HostLinks>> {
        let executor = &self.executor;
        executor.planner.team.check()?;
        executor.planner.team.core().world.of_one_process(op)?;
        let (len, job) = (memory.len(), self.job());
        if len.checked_mul(job.len()) != Some(host) {
            let problem = format!("{host} elements of host memory for {len} of each of {} PEs", job.len());
            return Err(Error::invalid(op, problem));
        }
        if job.iter().any(|&pe| executor.planner.team.queue(pe).is_recording()) {
            return Err(Error::invalid(op, "a queue is recording, and the host's part of it cannot be recorded"));
        }
        executor.idle(job.iter().copied())?;
        let mut links = lock(&executor.links);
        let links = links.get_or_insert_with(|| {
            let gpus: Vec<usize> = (0..executor.planner.team.size()).collect();
            // A topology without host memory says nothing about its links.
            let planned = HostLinks::planned(&executor.planner.team, &executor.planner.topology, &gpus);
            Arc::new(planned.unwrap_or_else(|_| HostLinks::new(&executor.planner.team)))
        });
        Ok(links.clone())
    }

    /// Does at the same time what `f` names. They must not touch what another of them writes, and those that combine must
    /// combine the same numbers in the same way.
    ///
    /// # Errors
    /// Those of the operations; then nothing is done.
    pub fn together(&self, f: impl FnOnce(&mut CollectiveGroup<'_>) -> Result<()>) -> Result<()> {
        let mut group = CollectiveGroup { collectives: self, items: Vec::new() };
        f(&mut group)?;
        self.run(group.items)
    }

    fn only(&self, f: impl FnOnce(&mut CollectiveGroup<'_>) -> Result<()>) -> Result<()> {
        self.together(f)
    }

    /// How much of what the plan of a copy from one PE to another gives to host memory the next such copy will send that way, as it
    /// follows from the times of those before; 1 for all.
    pub fn host_share(&self) -> f64 {
        lock(&self.executor.planner.share).value() / 100.0
    }

    /// The part of its bytes that the last call sent through host memory beside the links between GPUs; 0 where it took these alone.
    pub fn through_host(&self) -> f64 {
        f64::from_bits(self.executor.planner.last_through.load(Ordering::Relaxed))
    }

    /// The plan of an operation, and the way in which the next call of so many bytes would be carried out, in words.
    ///
    /// # Errors
    /// The operation needs other GPUs, or a root; the team is of several nodes, whose plans are [`crate::plan::Levels`].
    pub fn plan(&self, operation: Operation) -> Result<Arc<Plan>> {
        if self.levels.is_some() {
            return Err(Error::invalid(
                "plan",
                "a team of several nodes has a plan for each: see Levels of fabric-plan",
            ));
        }
        let job = if operation == Operation::Send {
            &self.executor.planner.job[..2.min(self.executor.planner.job.len())]
        } else {
            self.job()
        };
        self.executor.planner.taken(operation, job, job[0], false)
    }

    pub(crate) fn planner(&self) -> &Planner {
        &self.executor.planner
    }

    /// Tables of messages that were made.
    pub(crate) fn mail(&self) -> &Mutex<Mail> {
        &self.executor.mail
    }

    /// Tells it to the queues of pretend PEs.
    pub(crate) fn in_sim(&self, items: &[Item]) -> Result<()> {
        self.executor.in_sim(items)
    }

    fn run(&self, items: Vec<Item>) -> Result<()> {
        let executor = &self.executor;
        executor.planner.team.check()?;
        if self.is_now && executor.planner.is_recording() {
            return Err(Error::invalid("collective", "a queue is recording, so nothing can be done now"));
        }
        let mut items: Vec<Item> = items.into_iter().filter(|item| item.call.part > 0).collect();
        let at_once = items.len() as u64;
        items.iter_mut().for_each(|item| item.at_once = at_once);
        if !items.is_empty() {
            match (&self.levels, &executor.gpus) {
                (Some(levels), _) => items.iter().try_for_each(|item| levels.run(item))?,
                (None, Some(gpus)) => executor.on_gpus(gpus, &items, self.is_now)?,
                (None, None) => executor.in_sim(&items)?,
            }
        }
        if self.is_now {
            executor.idle(0..executor.planner.team.size())?;
        }
        Ok(())
    }
}

impl CollectiveGroup<'_> {
    /// Adds what [`Collectives::broadcast`] does to the group.
    ///
    /// # Errors
    /// As for [`Collectives::broadcast`].
    pub fn broadcast<T: Pod>(&mut self, root: usize, from: &Symmetric<T>, to: &Symmetric<T>) -> Result<()> {
        self.add(Operation::Broadcast, Some(root), None, from, to, (1, 1))
    }

    /// Adds what [`Collectives::reduce`] does to the group.
    ///
    /// # Errors
    /// As for [`Collectives::reduce`].
    pub fn reduce<T: Number>(
        &mut self,
        how: Combine,
        root: usize,
        from: &Symmetric<T>,
        to: &Symmetric<T>,
    ) -> Result<()> {
        check::<T>(Operation::Reduce.name(), how)?;
        self.add(Operation::Reduce, Some(root), Some((T::KIND, how)), from, to, (1, 1))
    }

    /// Adds what [`Collectives::all_reduce`] does to the group.
    ///
    /// # Errors
    /// As for [`Collectives::all_reduce`].
    pub fn all_reduce<T: Number>(&mut self, how: Combine, from: &Symmetric<T>, to: &Symmetric<T>) -> Result<()> {
        check::<T>(Operation::AllReduce.name(), how)?;
        self.add(Operation::AllReduce, None, Some((T::KIND, how)), from, to, (1, 1))
    }

    /// Adds what [`Collectives::all_gather`] does to the group.
    ///
    /// # Errors
    /// As for [`Collectives::all_gather`].
    pub fn all_gather<T: Pod>(&mut self, from: &Symmetric<T>, to: &Symmetric<T>) -> Result<()> {
        let n = self.collectives.executor.planner.job.len();
        self.add(Operation::AllGather, None, None, from, to, (1, n))
    }

    /// Adds what [`Collectives::all_gather_in_place`] does to the group.
    ///
    /// # Errors
    /// As for [`Collectives::all_gather_in_place`].
    pub fn all_gather_in_place<T: Pod>(&mut self, memory: &Symmetric<T>) -> Result<()> {
        let executor = &self.collectives.executor;
        let at = executor
            .planner
            .job
            .iter()
            .map(|&pe| executor.planner.team.core().address(Operation::AllGather.name(), memory, pe))
            .collect::<Result<_>>()?;
        self.gather_in_place::<T>(memory.len(), at, vec![memory.cast::<u8>()?])
    }

    /// Gathers `len` elements in place at these addresses, by PE of the job.
    fn gather_in_place<T: Pod>(&mut self, len: usize, at: Vec<u64>, keep: Vec<Symmetric<u8>>) -> Result<()> {
        let (operation, size) = (Operation::AllGather, size_of::<T>());
        let job = self.collectives.executor.planner.job.clone();
        if !len.is_multiple_of(job.len()) || size == 0 {
            let problem = format!("{len} elements of {size} bytes in {} parts", job.len());
            return Err(Error::invalid(operation.name(), problem));
        }
        let part = (len / job.len()) as u64 * size as u64;
        let input = at.iter().zip(0..).map(|(at, i)| at + i * part).collect();
        let call = Call { operation, root: 0, part, unit: unit(size), in_place: true };
        self.items.push(Item { call, job, numbers: None, input, output: at, keep, at_once: 1 });
        Ok(())
    }

    /// Adds what [`Collectives::reduce_scatter`] does to the group.
    ///
    /// # Errors
    /// As for [`Collectives::reduce_scatter`].
    pub fn reduce_scatter<T: Number>(&mut self, how: Combine, from: &Symmetric<T>, to: &Symmetric<T>) -> Result<()> {
        check::<T>(Operation::ReduceScatter.name(), how)?;
        let n = self.collectives.executor.planner.job.len();
        self.add(Operation::ReduceScatter, None, Some((T::KIND, how)), from, to, (n, 1))
    }

    /// Adds what [`Collectives::all_to_all`] does to the group.
    ///
    /// # Errors
    /// As for [`Collectives::all_to_all`].
    pub fn all_to_all<T: Pod>(&mut self, from: &Symmetric<T>, to: &Symmetric<T>) -> Result<()> {
        let n = self.collectives.executor.planner.job.len();
        self.add(Operation::AllToAll, None, None, from, to, (n, n))
    }

    /// Adds what [`Collectives::send`] does to the group.
    ///
    /// # Errors
    /// As for [`Collectives::send`].
    pub fn send<T: Pod>(&mut self, source: usize, target: usize, from: &Symmetric<T>, to: &Symmetric<T>) -> Result<()> {
        let op = Operation::Send.name();
        let team = &self.collectives.executor.planner.team;
        if source == target || source.max(target) >= team.size() {
            let problem = format!("from PE {source} to PE {target} of {}; it joins two different PEs", team.size());
            return Err(Error::invalid(op, problem));
        }
        self.item(Operation::Send, vec![source, target], source, None, from, to, (1, 1))
    }

    /// An operation of the whole job. `parts` are those of `from` and of `to`.
    fn add<T: Pod>(
        &mut self,
        operation: Operation,
        root: Option<usize>,
        numbers: Option<(Kind, Combine)>,
        from: &Symmetric<T>,
        to: &Symmetric<T>,
        parts: (usize, usize),
    ) -> Result<()> {
        let job = self.collectives.executor.planner.job.clone();
        let root = root.unwrap_or(job[0]);
        if !job.contains(&root) {
            return Err(Error::invalid(operation.name(), format!("the root, PE {root}, is not in the job")));
        }
        self.item(operation, job, root, numbers, from, to, parts)
    }

    #[allow(clippy::too_many_arguments)] // private, and each is one thing
    fn item<T: Pod>(
        &mut self,
        operation: Operation,
        job: Vec<usize>,
        root: usize,
        numbers: Option<(Kind, Combine)>,
        from: &Symmetric<T>,
        to: &Symmetric<T>,
        (inputs, outputs): (usize, usize),
    ) -> Result<()> {
        let op = operation.name();
        let size = size_of::<T>();
        let part = from.len() / inputs;
        if part * inputs != from.len() || to.len() != part * outputs || size == 0 {
            let problem = format!("{} elements in and {} out, in {inputs} and {outputs} parts", from.len(), to.len());
            return Err(Error::invalid(op, problem));
        }
        if let Some(first) = self.items.iter().find_map(|item| item.numbers) {
            if numbers.is_some_and(|n| n != first) {
                return Err(Error::invalid(op, "operations that are done together must combine alike"));
            }
        }
        // Whether the team had a fault is asked once, when all is known.
        let core = self.collectives.executor.planner.team.core();
        let addresses = |memory: &Symmetric<T>| -> Result<Vec<u64>> {
            job.iter().map(|&pe| core.address(op, memory, pe)).collect()
        };
        let (input, output) = (addresses(from)?, addresses(to)?);
        let may_be_in_place = matches!(operation, Operation::Broadcast | Operation::Reduce | Operation::AllReduce);
        let is_same = input == output && may_be_in_place;
        let overlaps = |(&a, &b): (&u64, &u64)| a < b + to.bytes() && b < a + from.bytes();
        if !from.is_empty() && !is_same && input.iter().zip(&output).any(overlaps) {
            return Err(Error::invalid(op, "what is read and what is written overlap"));
        }
        let call = Call {
            operation,
            root: job.iter().position(|&pe| pe == root).unwrap_or(0),
            part: part as u64 * size as u64,
            unit: numbers.map_or(unit(size), |_| size as u64),
            in_place: is_same,
        };
        let keep = vec![from.cast::<u8>()?, to.cast::<u8>()?];
        self.items.push(Item { call, job, numbers, input, output, keep, at_once: 1 });
        Ok(())
    }
}

/// The largest unit that elements of `size` bytes consist of; a part is a whole number of elements.
fn unit(size: usize) -> u64 {
    [8, 4, 2].into_iter().find(|unit| size.is_multiple_of(*unit as usize)).unwrap_or(1)
}
