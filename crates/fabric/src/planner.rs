//! What collectives are planned with: plans, tables, staging memory; and which of the ways to do an operation is taken. It carries
//! nothing out.

use crate::exec::sim::Bound;
use crate::exec::{direct, messages, relay_chunk, schedule_within, MAX_STAGING};
use crate::exec::{Call, Combine, Kind, Schedule, Shape, Share, Tuning};
use crate::plan::{plan, Operation, Plan, Request, Route, Step};
use crate::topology::{DeviceKind, Topology};
use crate::{Error, Ratio, Result, Symmetric, Team};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is decided before anything is carried out, and what is kept of it.
pub(crate) struct Planner {
    pub(crate) team: Team,
    pub(crate) topology: Topology,
    pub(crate) job: Vec<usize>,
    pub(crate) tuning: Tuning,
    pub(crate) plans: Mutex<HashMap<(Request, bool), Arc<Plan>>>,
    pub(crate) schedules: Mutex<HashMap<Wanted, Arc<Schedule>>>,
    /// By operation and a bit for each PE of the job: [`Planner::is_straight`].
    pub(crate) straight: Mutex<HashMap<(Operation, u64), bool>>,
    /// Rings, on every PE; the sim has those of host memory behind them.
    pub(crate) staging: Mutex<Option<Symmetric<u8>>>,
    /// Of copies from one PE to another: how many hundredths of what their plan gives to ways through host memory these get.
    pub(crate) share: Mutex<Share>,
    /// The part of the last call's bytes that took such a way, as the bits of an f64.
    pub(crate) last_through: AtomicU64,
}

/// Where a table comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Algorithm {
    /// A plan; the share of ways through host memory is to be changed to so many hundredths of what it is there, and 0 does
    /// without them where it can.
    Planned(u64),
    /// [`direct`].
    Direct,
    /// [`messages`].
    Messages,
}

/// What a schedule was made for, and how many operations are done at once.
type Wanted = (Request, Call, Shape, Algorithm, u64);

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
    /// How many operations are done at once, with this one: they share the memory of rings.
    pub(crate) at_once: u64,
}

impl Planner {
    pub(crate) fn planned(&self, operation: Operation, job: &[usize], root: usize, pcie: bool) -> Result<Arc<Plan>> {
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

    /// The plan that is carried out: over the links of the GPUs, and with ways through host memory where `pcie` asks for them or nothing
    /// else joins the PEs.
    pub(crate) fn taken(&self, operation: Operation, job: &[usize], root: usize, pcie: bool) -> Result<Arc<Plan>> {
        let found = self.planned(operation, job, root, pcie)?;
        if found.rate.is_zero() && !pcie {
            return self.planned(operation, job, root, true);
        }
        Ok(found)
    }

    /// The table of an operation.
    pub(crate) fn table(&self, item: &Item, shape: &Shape, way: Algorithm) -> Result<Arc<Schedule>> {
        let (call, job) = (&item.call, &item.job);
        let way = if job.len() == 1 && way != Algorithm::Messages { Algorithm::Direct } else { way };
        let mut request = Request::new(call.operation, job);
        let mut plan = None;
        if let Algorithm::Planned(host) = way {
            let found = self.taken(call.operation, job, job[call.root], host > 0)?;
            request = found.request.clone();
            plan = Some(found);
        }
        let key = (request, *call, *shape, way, item.at_once);
        let most = MAX_STAGING / item.at_once.max(1);
        if let Some(table) = lock(&self.schedules).get(&key) {
            return Ok(table.clone());
        }
        let table = Arc::new(match (way, plan) {
            (Algorithm::Planned(host), Some(plan)) if host > 0 => {
                schedule_within(&self.topology, &self.weighed(&plan, host), call, shape, most)?
            }
            (_, Some(plan)) => schedule_within(&self.topology, &plan, call, shape, most)?,
            (Algorithm::Messages, None) => messages(call, job.len(), shape.workers)?,
            (_, None) => direct(call, job.len(), shape.workers)?,
        });
        self.reached(job, &table)?;
        let mut schedules = lock(&self.schedules);
        if schedules.len() >= MAX_SCHEDULES {
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

    /// Checks that each PE reaches the memory that the table has it read and write.
    fn reached(&self, job: &[usize], table: &Schedule) -> Result<()> {
        let helpers = (0..self.team.size()).filter(|pe| !job.contains(pe));
        let nodes: Vec<usize> = job.iter().copied().chain(helpers.take(table.helpers)).collect();
        for row in &table.transfers {
            for endpoint in row.sources.iter().chain(&row.targets) {
                // Host memory is the node after them, which everyone reaches.
                if let (Some(&me), Some(&pe)) = (nodes.get(row.at), nodes.get(endpoint.node)) {
                    self.team.reaches(me, pe)?;
                }
            }
        }
        Ok(())
    }

    /// Whether every PE of the job reaches every other.
    pub(crate) fn reach_all(&self, item: &Item) -> bool {
        item.job.iter().all(|&a| item.job.iter().all(|&b| self.team.reaches(a, b).is_ok()))
    }

    /// How an operation that goes through queues is done.
    pub(crate) fn way(&self, item: &Item) -> Algorithm {
        let direct = if item.job.len() == 2 { self.tuning.direct_pair } else { self.tuning.direct };
        if self.reach_all(item) && (item.call.part <= direct || self.is_straight(item)) {
            Algorithm::Direct
        } else {
            Algorithm::Planned(0)
        }
    }

    /// Whether links carry as much where each of several PEs reaches into the memory of every other as over the plan's ways. Then nothing is
    /// gained by passing data on, which takes rings, waits and the memory's time.
    fn is_straight(&self, item: &Item) -> bool {
        let Item { call, job, .. } = item;
        // The traffic is that of an exchange of all with all, of an all-reduce twice: its sums come in and go out.
        let times = match call.operation {
            Operation::AllToAll | Operation::AllGather | Operation::ReduceScatter => 1.0,
            Operation::AllReduce => 2.0,
            _ => return false,
        };
        if !self.tuning.straight || job.len() < 3 {
            return false;
        }
        let key = (call.operation, job.iter().fold(0, |bits, pe| bits | 1 << pe));
        if let Some(&known) = lock(&self.straight).get(&key) {
            return known;
        }
        let rates = || -> Result<(f64, f64)> {
            let exchange = self.planned(Operation::AllToAll, job, job[0], false)?;
            let relays = exchange.steps.iter().any(|step| match step {
                Step::Send(routes) => routes.iter().any(|route| self.gpus_on(&route.path) > 2),
                _ => true,
            });
            let plan = self.planned(call.operation, job, job[0], false)?;
            Ok((if relays { 0.0 } else { exchange.rate.to_f64() / times }, plan.rate.to_f64()))
        };
        let is_straight = rates().is_ok_and(|(straight, planned)| straight > 0.0 && straight >= planned * AS_GOOD);
        lock(&self.straight).insert(key, is_straight);
        is_straight
    }

    fn gpus_on(&self, path: &[usize]) -> usize {
        path.iter().filter(|&&d| self.topology.devices()[d].kind == DeviceKind::Gpu).count()
    }

    /// How a table of an operation is cut for so many workers at a time.
    pub(crate) fn shape(&self, item: &Item, workers: usize) -> Shape {
        let call = &item.call;
        let bytes = match call.operation {
            Operation::AllGather | Operation::ReduceScatter => call.part.saturating_mul(item.job.len() as u64),
            _ => call.part,
        };
        // In an all-to-all each sends to each; of two PEs none passes anything on.
        let is_passed_on =
            item.job.len() > 2 && call.operation != Operation::AllToAll && self.way(item) != Algorithm::Direct;
        let chunk = if is_passed_on { relay_chunk(&self.tuning, bytes, workers) } else { self.tuning.chunk };
        Shape { workers, chunk, slots: self.tuning.slots }
    }

    /// Whether copy engines do all of a call.
    pub(crate) fn is_for_engines(&self, items: &[Item]) -> bool {
        let bytes = items.iter().fold(0u64, |sum, item| sum.saturating_add(item.call.part));
        let is_copy = items.iter().all(|item| item.numbers.is_none() && item.job.len() <= 2);
        !self.is_recording() && (is_copy || self.tuning.engines == 0) && bytes >= self.tuning.engines
    }

    /// The operation whose data are so small that messages carry them, if it is alone.
    pub(crate) fn message<'a>(&self, items: &'a [Item]) -> Option<&'a Item> {
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
        if let Some((pe, bytes)) = taken.iter().enumerate().find(|(_, bytes)| **bytes > MAX_STAGING) {
            let problem = format!("{bytes} bytes of rings on PE {pe}; there are {MAX_STAGING} at most");
            return Err(Error::invalid("staging", problem));
        }
        let room = if host == 0 { taken[pes] } else { 0 };
        let most = taken[..pes].iter().copied().max().unwrap_or(0);
        let staging = self.staging(most + room)?;
        let place = |pe: usize, at: u64| -> Result<u64> {
            if pe < pes {
                return Ok(self.team.core().address("collective", &staging, pe)? + at);
            }
            // In the sim host memory is the end of what the first PE has.
            Ok(at + if host == 0 { self.team.core().address("collective", &staging, 0)? + most } else { host })
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

    /// By how many hundredths the ways through host memory are to be changed that a copy from one PE to another takes beside its
    /// links; 0 for anything else.
    pub(crate) fn through(&self, items: &[Item]) -> u64 {
        let [item] = items else { return 0 };
        let is_one_way = matches!(item.call.operation, Operation::Broadcast | Operation::Send) && item.job.len() == 2;
        // In steps of two, so that not every call has a table of its own.
        let share = (lock(&self.share).value() / 2.0).round() as u64 * 2;
        if is_one_way && self.tuning.through_host {
            share
        } else {
            0
        }
    }

    /// Keeps which part of the call's bytes goes through host memory.
    pub(crate) fn goes_through_host(&self, part: f64) {
        self.last_through.store(part.to_bits(), Ordering::Relaxed);
    }

    /// Tells which part of the bytes goes through host memory, of tables that are about to be carried out.
    pub(crate) fn tell_through_host(&self, bounds: &[Bound]) {
        let to_host = |table: &Schedule| -> u64 {
            let rows =
                table.transfers.iter().filter(|row| row.targets.iter().any(|endpoint| endpoint.node == table.host()));
            rows.map(|row| row.bytes).sum()
        };
        let (moved, all) = bounds
            .iter()
            .fold((0, 0), |(moved, all), bound| (moved + to_host(&bound.schedule), all + bound.schedule.call.part));
        self.goes_through_host(moved as f64 / all.max(1) as f64);
    }

    /// Takes the times of a copy that took both ways.
    pub(crate) fn observe(&self, links: f64, host: f64) {
        lock(&self.share).observe(links, host);
    }

    /// Whether it is for copy engines.
    pub(crate) fn is_copied(&self, item: &Item) -> bool {
        item.call.part >= self.tuning.engines && item.numbers.is_none() && item.job.len() <= 2
    }
}

/// Chunks of rings in host memory.
pub(crate) const HOST_SLOTS: u64 = 8;
/// The part of a plan's rate that is as good as all of it: links of the same kind are measured to differ by less.
const AS_GOOD: f64 = 0.98;
/// Tables that are kept for the next time.
const MAX_SCHEDULES: usize = 512;
