//! Collective operations of a team: planned on its topology, carried out by its queues or at once.

use crate::exec::sim::{Bound, Bytes, Run};
use crate::exec::{direct, gpu, messages, schedule, Call, Combine, Kind, Number, Schedule, Shape, Tuning};
use crate::onesided::OneSided;
use crate::op::Op;
use crate::plan::{plan, Operation, Plan, Request, Route, Step};
use crate::topology::{DeviceKind, LinkKind, Topology};
use crate::world::Allocation;
use crate::{Error, HostLinks, Pe, Ratio, Result, Symmetric, Team};
use bytemuck::Pod;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The collective operations of some PEs of a team, with the others as helpers. PEs are numbered as in the team, and parts of
/// buffers go by the order of the job. A handle: clones are the same.
///
/// Every operation is added to the queue ([`Team::queue`]) of each PE that takes part, helpers included, and is done in its
/// order; nothing has happened when the call returns. [`Collectives::now`] gives the same operations done on return.
///
/// `from` and `to` may be the same memory in `broadcast`, `reduce` and `all_reduce`; else they must not overlap.
#[derive(Clone)]
pub struct Collectives {
    shared: Arc<Shared>,
    is_now: bool,
}

pub(crate) struct Shared {
    team: Team,
    topology: Topology,
    job: Vec<usize>,
    tuning: Tuning,
    plans: Mutex<HashMap<(Request, bool), Arc<Plan>>>,
    schedules: Mutex<HashMap<Wanted, Arc<Schedule>>>,
    /// Rings, on every PE; the sim has those of host memory behind them.
    staging: Mutex<Option<Symmetric<u8>>>,
    gpus: Option<gpu::Gpus>,
    /// Made when first needed.
    links: Mutex<Option<Arc<HostLinks>>>,
}

/// Where a table comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Way {
    /// A plan; the share of ways through host memory is to be changed to so many hundredths of what it is there, and 0 does
    /// without them where it can.
    Planned(u64),
    /// [`direct`].
    Direct,
    /// [`messages`].
    Messages,
}

/// What a schedule was made for.
type Wanted = (Request, Call, Shape, Way);

/// One operation with its memory.
pub(crate) struct Item {
    pub(crate) call: Call,
    /// The PEs of the job.
    pub(crate) job: Vec<usize>,
    pub(crate) numbers: Option<(Kind, Combine)>,
    /// By PE of the job.
    pub(crate) input: Vec<u64>,
    pub(crate) output: Vec<u64>,
    /// What must stay.
    pub(crate) keep: Vec<Symmetric<u8>>,
}

/// Operations that are to be done at the same time; see [`Collectives::together`].
pub struct Together<'a> {
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
        if gpus < team.size() {
            let problem = format!("the topology has {gpus} GPUs, the team {} PEs", team.size());
            return Err(Error::invalid(op, problem));
        }
        if job.is_empty() {
            return Err(Error::invalid(op, "a job needs at least one PE"));
        }
        for (i, &pe) in job.iter().enumerate() {
            team.queues().get(pe).ok_or_else(|| Error::invalid(op, format!("there is no PE {pe}")))?;
            if job[..i].contains(&pe) {
                return Err(Error::invalid(op, format!("PE {pe} is named twice")));
            }
        }
        // Where the driver keeps two PEs apart, their links are of no use; then everything goes through host memory.
        let is_apart = (0..team.size()).any(|a| (0..team.size()).any(|b| team.reaches(a, b).is_err()));
        let links = topology.links().iter().filter(|l| !is_apart || l.kind != LinkKind::NvLink).cloned().collect();
        let topology = Topology::new(topology.name(), topology.devices().to_vec(), links)?;
        let gpus = if team.is_cuda() { Some(gpu::Gpus::new(team, &tuning)?) } else { None };
        let shared = Shared {
            team: team.clone(),
            topology,
            job: job.to_vec(),
            tuning,
            plans: Mutex::default(),
            schedules: Mutex::default(),
            staging: Mutex::default(),
            gpus,
            links: Mutex::default(),
        };
        Ok(Self { shared: Arc::new(shared), is_now: false })
    }

    /// The same operations, each done on all PEs when the call returns, after all that the queues were told before. Small ones
    /// take a fraction of the time of a launch where the queues are idle.
    pub fn now(&self) -> Self {
        Self { shared: self.shared.clone(), is_now: true }
    }

    /// The team on whose queues the operations are done.
    pub fn team(&self) -> &Team {
        &self.shared.team
    }

    /// The PEs, in the order of parts.
    pub fn job(&self) -> &[usize] {
        &self.shared.job
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
        let shared = &self.shared;
        shared.team.check()?;
        let (len, job) = (memory.len(), self.job());
        if len.checked_mul(job.len()) != Some(host) {
            let problem = format!("{host} elements of host memory for {len} of each of {} PEs", job.len());
            return Err(Error::invalid(op, problem));
        }
        if job.iter().any(|&pe| shared.team.queue(pe).is_recording()) {
            return Err(Error::invalid(op, "a queue is recording, and the host's part of it cannot be recorded"));
        }
        shared.idle(job)?;
        let mut links = lock(&shared.links);
        let links = links.get_or_insert_with(|| {
            let gpus: Vec<usize> = (0..shared.team.size()).collect();
            // A topology without host memory says nothing about its links.
            let planned = HostLinks::planned(&shared.team, &shared.topology, &gpus);
            Arc::new(planned.unwrap_or_else(|_| HostLinks::new(&shared.team)))
        });
        Ok(links.clone())
    }

    /// Does at the same time what `f` names. They must not touch what another of them writes, and those that combine must
    /// combine the same numbers in the same way.
    ///
    /// # Errors
    /// Those of the operations; then nothing is done.
    pub fn together(&self, f: impl FnOnce(&mut Together<'_>) -> Result<()>) -> Result<()> {
        let mut group = Together { collectives: self, items: Vec::new() };
        f(&mut group)?;
        self.run(group.items)
    }

    fn only(&self, f: impl FnOnce(&mut Together<'_>) -> Result<()>) -> Result<()> {
        self.together(f)
    }

    /// The plan of an operation, and the way in which the next call of so many bytes would be carried out, in words.
    ///
    /// # Errors
    /// The operation needs other GPUs, or a root.
    pub fn plan(&self, operation: Operation) -> Result<Arc<Plan>> {
        let job =
            if operation == Operation::Send { &self.shared.job[..2.min(self.shared.job.len())] } else { self.job() };
        self.shared.planned(operation, job, job[0], false)
    }

    fn run(&self, items: Vec<Item>) -> Result<()> {
        let shared = &self.shared;
        shared.team.check()?;
        if self.is_now && shared.is_recording() {
            return Err(Error::invalid("collective", "a queue is recording, so nothing can be done now"));
        }
        let items: Vec<Item> = items.into_iter().filter(|item| item.call.part > 0).collect();
        if !items.is_empty() {
            match &shared.gpus {
                Some(gpus) => shared.on_gpus(gpus, &items, self.is_now)?,
                None => shared.in_sim(&items)?,
            }
        }
        if self.is_now {
            shared.idle(&(0..shared.team.size()).collect::<Vec<_>>())?;
        }
        Ok(())
    }
}

impl Together<'_> {
    /// See [`Collectives::broadcast`].
    ///
    /// # Errors
    /// Likewise.
    pub fn broadcast<T: Pod>(&mut self, root: usize, from: &Symmetric<T>, to: &Symmetric<T>) -> Result<()> {
        self.add(Operation::Broadcast, Some(root), None, from, to, (1, 1))
    }

    /// See [`Collectives::reduce`].
    ///
    /// # Errors
    /// Likewise.
    pub fn reduce<T: Number>(
        &mut self,
        how: Combine,
        root: usize,
        from: &Symmetric<T>,
        to: &Symmetric<T>,
    ) -> Result<()> {
        self.add(Operation::Reduce, Some(root), Some((T::KIND, how)), from, to, (1, 1))
    }

    /// See [`Collectives::all_reduce`].
    ///
    /// # Errors
    /// Likewise.
    pub fn all_reduce<T: Number>(&mut self, how: Combine, from: &Symmetric<T>, to: &Symmetric<T>) -> Result<()> {
        self.add(Operation::AllReduce, None, Some((T::KIND, how)), from, to, (1, 1))
    }

    /// See [`Collectives::all_gather`].
    ///
    /// # Errors
    /// Likewise.
    pub fn all_gather<T: Pod>(&mut self, from: &Symmetric<T>, to: &Symmetric<T>) -> Result<()> {
        let n = self.collectives.shared.job.len();
        self.add(Operation::AllGather, None, None, from, to, (1, n))
    }

    /// See [`Collectives::reduce_scatter`].
    ///
    /// # Errors
    /// Likewise.
    pub fn reduce_scatter<T: Number>(&mut self, how: Combine, from: &Symmetric<T>, to: &Symmetric<T>) -> Result<()> {
        let n = self.collectives.shared.job.len();
        self.add(Operation::ReduceScatter, None, Some((T::KIND, how)), from, to, (n, 1))
    }

    /// See [`Collectives::all_to_all`].
    ///
    /// # Errors
    /// Likewise.
    pub fn all_to_all<T: Pod>(&mut self, from: &Symmetric<T>, to: &Symmetric<T>) -> Result<()> {
        let n = self.collectives.shared.job.len();
        self.add(Operation::AllToAll, None, None, from, to, (n, n))
    }

    /// See [`Collectives::send`].
    ///
    /// # Errors
    /// Likewise.
    pub fn send<T: Pod>(&mut self, source: usize, target: usize, from: &Symmetric<T>, to: &Symmetric<T>) -> Result<()> {
        let op = Operation::Send.name();
        let team = &self.collectives.shared.team;
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
        let job = self.collectives.shared.job.clone();
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
        let team = &self.collectives.shared.team;
        let addresses = |memory: &Symmetric<T>| -> Result<Vec<u64>> {
            job.iter().map(|&pe| team.queue(pe).address(memory)).collect()
        };
        let (input, output) = (addresses(from)?, addresses(to)?);
        let may_be_in_place = matches!(operation, Operation::Broadcast | Operation::Reduce | Operation::AllReduce);
        let is_same = input == output && may_be_in_place;
        let overlaps = |(&a, &b): (&u64, &u64)| a < b + to.bytes() && b < a + from.bytes();
        if !from.is_empty() && !is_same && input.iter().zip(&output).any(overlaps) {
            return Err(Error::invalid(op, "what is read and what is written overlap"));
        }
        // The largest unit that an element consists of; a part is a whole number of elements.
        let unit =
            numbers.map_or_else(|| [8, 4, 2, 1].into_iter().find(|u| size.is_multiple_of(*u)).unwrap_or(1), |_| size);
        let call = Call {
            operation,
            root: job.iter().position(|&pe| pe == root).unwrap_or(0),
            part: part as u64 * size as u64,
            unit: unit as u64,
            in_place: is_same,
        };
        let keep = vec![from.cast::<u8>()?, to.cast::<u8>()?];
        self.items.push(Item { call, job, numbers, input, output, keep });
        Ok(())
    }
}

impl Shared {
    fn planned(&self, operation: Operation, job: &[usize], root: usize, pcie: bool) -> Result<Arc<Plan>> {
        let mut request = Request::new(operation, job);
        request.helpers = (0..self.team.size()).filter(|pe| !job.contains(pe)).collect();
        request.root = matches!(operation, Operation::Broadcast | Operation::Reduce).then_some(root);
        request.pcie = pcie;
        let key = (request, pcie);
        if let Some(plan) = lock(&self.plans).get(&key) {
            return Ok(plan.clone());
        }
        let mut found = plan(&self.topology, &key.0)?;
        // A plan that does without helpers does not have their nodes.
        if matches!(found.gain, crate::plan::Gain::None(_)) {
            found.request.helpers.clear();
        }
        let found = Arc::new(found);
        lock(&self.plans).insert(key, found.clone());
        Ok(found)
    }

    /// The table of an operation.
    pub(crate) fn table(&self, item: &Item, shape: &Shape, way: Way) -> Result<Arc<Schedule>> {
        let (call, job) = (&item.call, &item.job);
        let way = if job.len() == 1 && way != Way::Messages { Way::Direct } else { way };
        let mut request = Request::new(call.operation, job);
        let mut plan = None;
        if let Way::Planned(host) = way {
            let mut found = self.planned(call.operation, job, job[call.root], host > 0)?;
            if found.rate.is_zero() && host == 0 {
                found = self.planned(call.operation, job, job[call.root], true)?;
            }
            request = found.request.clone();
            plan = Some(found);
        }
        let key = (request, *call, *shape, way);
        if let Some(table) = lock(&self.schedules).get(&key) {
            return Ok(table.clone());
        }
        let table = Arc::new(match (way, plan) {
            (Way::Planned(host), Some(plan)) if host > 0 => {
                schedule(&self.topology, &self.weighed(&plan, host), call, shape)?
            }
            (_, Some(plan)) => schedule(&self.topology, &plan, call, shape)?,
            (Way::Messages, None) => messages(call, job.len(), shape.lanes)?,
            (_, None) => direct(call, job.len(), shape.lanes)?,
        });
        let mut schedules = lock(&self.schedules);
        if schedules.len() >= MOST_SCHEDULES {
            schedules.clear();
        }
        schedules.insert(key, table.clone());
        Ok(table)
    }

    /// Whether the topology has a way through host memory from one PE of a job to the other.
    pub(crate) fn has_host_way(&self, item: &Item) -> bool {
        let plan = self.planned(item.call.operation, &item.job, item.job[item.call.root], true);
        plan.is_ok_and(|plan| self.through_host(&plan) > 0.0)
    }

    fn is_host(&self, paths: &[Vec<usize>]) -> bool {
        paths.iter().flatten().any(|&d| self.topology.devices()[d].kind == DeviceKind::Cpu)
    }

    /// The share of a plan that goes through host memory.
    fn through_host(&self, plan: &Plan) -> f64 {
        let of = |step: &Step| -> f64 {
            match step {
                Step::Spread(trees) | Step::Collect(trees) => {
                    trees.iter().filter(|t| self.is_host(&t.paths)).map(|t| t.share.to_f64()).sum()
                }
                Step::Send(routes) => {
                    let through = |r: &&Route| self.is_host(std::slice::from_ref(&r.path));
                    routes.iter().filter(through).map(|r| r.share.to_f64()).sum()
                }
            }
        };
        plan.steps.iter().map(of).sum()
    }

    /// The plan with other shares: those of ways through host memory are `hundredths` of what they were.
    fn weighed(&self, plan: &Plan, hundredths: u64) -> Plan {
        let mut plan = plan.clone();
        let through = self.through_host(&plan);
        if through <= 0.0 || through >= 1.0 {
            return plan;
        }
        let wanted = (through * hundredths as f64 / 100.0).min(1.0);
        let change = |is_host: bool, share: &mut Ratio| {
            let factor = if is_host { wanted / through } else { (1.0 - wanted) / (1.0 - through) };
            *share = Ratio::new((share.to_f64() * factor * 1e9) as i128, 1_000_000_000).unwrap_or(*share);
        };
        for step in &mut plan.steps {
            match step {
                Step::Spread(trees) | Step::Collect(trees) => {
                    trees.iter_mut().for_each(|t| change(self.is_host(&t.paths), &mut t.share));
                }
                Step::Send(routes) => {
                    routes.iter_mut().for_each(|r| change(self.is_host(std::slice::from_ref(&r.path)), &mut r.share));
                }
            }
        }
        plan
    }

    /// Whether every PE of the job reaches every other.
    pub(crate) fn reach_all(&self, item: &Item) -> bool {
        item.job.iter().all(|&a| item.job.iter().all(|&b| self.team.reaches(a, b).is_ok()))
    }

    /// How an operation that goes through queues is done.
    pub(crate) fn way(&self, item: &Item) -> Way {
        if item.call.part <= self.tuning.direct && self.reach_all(item) {
            Way::Direct
        } else {
            Way::Planned(0)
        }
    }

    /// The operation whose data are so small that messages carry them, if it is alone.
    fn message<'a>(&self, items: &'a [Item]) -> Option<&'a Item> {
        let [item] = items else { return None };
        let is_small = item.call.part * item.job.len() as u64 <= self.tuning.messages;
        (item.job.len() > 1 && is_small && self.reach_all(item)).then_some(item)
    }

    /// Gives tables addresses. `host` is the address of staging in host memory.
    pub(crate) fn bind(
        &self,
        items: &[Item],
        tables: Vec<Arc<Schedule>>,
        host: u64,
    ) -> Result<(Vec<Bound>, Symmetric<u8>)> {
        // By PE: what the tables before have taken.
        let pes = self.team.size();
        let mut taken = vec![0u64; pes + 1];
        let mut nodes = Vec::new();
        for (item, table) in items.iter().zip(&tables) {
            let helpers = (0..pes).filter(|pe| !item.job.contains(pe)).take(table.helpers);
            let all: Vec<usize> = item.job.iter().copied().chain(helpers).chain([pes]).collect();
            let at: Vec<u64> = all.iter().map(|&pe| taken[pe]).collect();
            all.iter().zip(&table.staging).for_each(|(&pe, bytes)| taken[pe] += bytes);
            nodes.push((all, at));
        }
        let room = if host == 0 { taken[pes] } else { 0 };
        let most = taken[..pes].iter().copied().max().unwrap_or(0);
        let staging = self.staging(most + room)?;
        let place = |pe: usize, at: u64| -> Result<u64> {
            if pe < pes {
                return Ok(self.team.queue(pe).address(&staging)? + at);
            }
            // In the sim host memory is the end of what the first PE has.
            Ok(at + if host == 0 { self.team.queue(0).address(&staging)? + most } else { host })
        };
        let bounds = items.iter().zip(tables).zip(nodes).map(|((item, schedule), (nodes, at))| {
            let by_node = |list: &[u64]| (0..nodes.len()).map(|i| list.get(i).copied().unwrap_or(0)).collect();
            let staging = nodes.iter().zip(at).map(|(&pe, at)| place(pe, at)).collect::<Result<_>>()?;
            let (input, output) = (by_node(&item.input), by_node(&item.output));
            Ok(Bound { schedule, numbers: item.numbers, pes: nodes, input, output, staging })
        });
        Ok((bounds.collect::<Result<_>>()?, staging))
    }

    fn staging(&self, bytes: u64) -> Result<Symmetric<u8>> {
        let mut staging = lock(&self.staging);
        if let Some(memory) = staging.as_ref().filter(|memory| memory.bytes() >= bytes) {
            return Ok(memory.clone());
        }
        let len = usize::try_from(bytes.next_power_of_two()).map_err(|_| Error::invalid("staging", "too large"))?;
        let memory = self.team.alloc::<u8>(len)?;
        *staging = Some(memory.clone());
        Ok(memory)
    }

    pub(crate) fn team(&self) -> &Team {
        &self.team
    }

    pub(crate) fn tuning(&self) -> &Tuning {
        &self.tuning
    }

    /// Whether a queue of the team is recording.
    pub(crate) fn is_recording(&self) -> bool {
        self.team.queues().iter().any(|queue| queue.is_recording())
    }

    /// Waits until the queues of these PEs have done what they were told.
    fn idle(&self, pes: &[usize]) -> Result<()> {
        let busy = pes.iter().map(|&pe| self.team.queue(pe)).filter(|queue| !queue.is_idle());
        let results: Vec<Result<()>> = busy.map(|queue| queue.synchronize()).collect();
        results.into_iter().collect()
    }

    fn on_gpus(&self, gpus: &gpu::Gpus, items: &[Item], is_now: bool) -> Result<()> {
        if is_now && gpus.resident(self, items)? {
            return Ok(());
        }
        let bytes: u64 = items.iter().map(|item| item.call.part).sum();
        let is_copy = items.iter().all(|item| item.numbers.is_none());
        if !self.is_recording() && (is_copy || self.tuning.engines == 0) && bytes >= self.tuning.engines {
            return gpus.engines(self, items, is_now);
        }
        match self.message(items) {
            Some(item) => gpus.messages(self, item),
            None => gpus.fused(self, items, is_now),
        }
    }

    fn in_sim(&self, items: &[Item]) -> Result<()> {
        let shape = Shape { lanes: self.tuning.lanes, chunk: self.tuning.chunk, slots: self.tuning.slots };
        let way = |item: &Item| if self.message(items).is_some() { Way::Messages } else { self.way(item) };
        let tables = items.iter().map(|item| self.table(item, &shape, way(item)));
        let (bounds, staging) = self.bind(items, tables.collect::<Result<_>>()?, 0)?;
        let mut workers: Vec<usize> = bounds.iter().flat_map(Bound::workers).collect();
        workers.sort_unstable();
        workers.dedup();
        let run = Arc::new(Run::new(bounds));
        let mut keep: Vec<&Arc<Allocation>> = items.iter().flat_map(|item| &item.keep).map(Symmetric::memory).collect();
        keep.push(staging.memory());
        for pe in workers {
            let run = run.clone();
            let timeout = self.team.core().timeout;
            let program = move |pe: &Pe| {
                let seed = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(pe.me() as u64 + 1);
                let done = run.pe(pe.me(), pe, timeout, || pe.is_over(), seed);
                done.map_err(|stuck| pe.late(stuck.peer as u32, 0, stuck.seen, stuck.wanted))
            };
            self.team.queue(pe).issue(Op::Run(Arc::new(program)), &keep)?;
        }
        Ok(())
    }
}

/// Tables that are kept for the next time.
const MOST_SCHEDULES: usize = 512;

impl Bytes for Pe {
    fn read(&self, from: u64, to: &mut [u8]) {
        self.read_at(from, to);
    }
    fn write(&self, to: u64, from: &[u8]) {
        self.write_at(to, from);
    }
}
