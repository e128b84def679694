//! A plan tried out: carried out by pretend PEs in host memory, with every byte checked, and with what each of its trees moved over which
//! link and when.

use super::schedule::{schedule, Call, Schedule, Shape};
use super::sim::{Bound, Bytes, Moved, Run};
use super::{relay_chunk, Combine, Kind, Tuning};
use crate::plan::{Gain, Operation, Plan, Step};
use crate::topology::Topology;
use crate::{Error, Ratio, Result};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of host memory that a trial takes, at most.
pub const MAX_MEMORY: u64 = 2 << 30;
/// Bytes of the numbers that are combined.
const UNIT: u64 = 8;

/// What became of it.
#[derive(Debug)]
pub struct Trial {
    /// What was carried out.
    pub schedule: Arc<Schedule>,
    /// The devices of its nodes but host memory, which is the last.
    pub devices: Vec<usize>,
    /// When the PEs began.
    pub began: Instant,
    /// All chunks that were moved, in the order in which they were there.
    pub moved: Vec<Moved>,
    /// By tree and link: what the plan gives it to move.
    planned: Planned,
}

/// Bytes by tree, near end and far end of a link.
type Planned = BTreeMap<(usize, usize, usize), f64>;

/// What a tree moved over a link, one way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Traffic {
    /// The tree of the plan's step, or the path, by its place there.
    pub tree: usize,
    /// The device at the near end of the link.
    pub from: usize,
    /// The device at the far end.
    pub to: usize,
    /// What was moved.
    pub bytes: u64,
    /// What the plan gives the tree to move there: its share of the data, for as often as it passes the link.
    pub planned: f64,
    /// In how many pieces.
    pub chunks: u64,
    /// When the first of them began.
    pub begun: Duration,
    /// When the last of them was there.
    pub ended: Duration,
}

impl Trial {
    /// What each tree moved over each of its links, and over others if it did.
    pub fn traffic(&self) -> Vec<Traffic> {
        let none = |(&(tree, from, to), &planned): (&(usize, usize, usize), &f64)| {
            let (begun, ended) = (Duration::ZERO, Duration::ZERO);
            ((tree, from, to), Traffic { tree, from, to, bytes: 0, planned, chunks: 0, begun, ended })
        };
        let mut all: BTreeMap<(usize, usize, usize), Traffic> = self.planned.iter().map(none).collect();
        for one in &self.moved {
            let channel = &self.schedule.channels[one.channel];
            for link in channel.path.windows(2) {
                let (tree, from, to) = (channel.tree, link[0], link[1]);
                let sum = all.entry((tree, from, to)).or_insert_with(|| none((&(tree, from, to), &0.0)).1);
                sum.begun = if sum.chunks == 0 { one.begun } else { sum.begun.min(one.begun) };
                sum.bytes += one.bytes;
                sum.chunks += 1;
                sum.ended = sum.ended.max(one.ended);
            }
        }
        all.into_values().collect()
    }

    /// The devices with bytes of rings, and how many.
    pub fn rings(&self) -> Vec<(usize, u64)> {
        self.devices
            .iter()
            .copied()
            .zip(self.schedule.staging.iter().copied())
            .filter(|(_, bytes)| *bytes > 0)
            .collect()
    }

    /// Bytes of rings in host memory.
    pub fn host_rings(&self) -> u64 {
        self.schedule.staging[self.schedule.host()]
    }
}

/// The table of a call of so many bytes, in the sense of [`Plan::rate`], as queued calls of large data have it; fewer by less than what
/// parts have in common.
///
/// # Errors
/// As for [`schedule`]; too few bytes.
pub fn table(topology: &Topology, plan: &Plan, bytes: u64) -> Result<Schedule> {
    let mut plan = plan.clone();
    // Such a plan does without its helpers.
    if matches!(plan.gain, Gain::None(_)) {
        plan.request.helpers.clear();
    }
    let request = &plan.request;
    let pes = request.gpus.len();
    let whole = match request.operation {
        Operation::Broadcast | Operation::Reduce | Operation::AllReduce | Operation::Send => bytes,
        _ => bytes / pes as u64,
    };
    let part = whole / UNIT * UNIT;
    if part == 0 {
        return Err(Error::Job(format!("expected {UNIT} bytes for each part at least, found {bytes} bytes in all")));
    }
    let root = request.root.and_then(|root| request.gpus.iter().position(|&gpu| gpu == root)).unwrap_or(0);
    let call = Call { operation: request.operation, root, part, unit: UNIT, in_place: false };
    let tuning = Tuning::default();
    let is_passed_on = pes > 2 && request.operation != Operation::AllToAll;
    let chunk = if is_passed_on { relay_chunk(&tuning, bytes, tuning.workers) } else { tuning.chunk };
    schedule(topology, &plan, &call, &Shape { workers: tuning.workers, chunk, slots: tuning.slots })
}

/// Carries out a plan with `bytes` of data, in the sense of [`Plan::rate`], once: numbers of 64 bits at random, which a reduction adds up. Ends
/// early where `is_over` says so.
///
/// # Errors
/// As for [`table`]; more than [`MAX_MEMORY`]; something was wrong with the result; it was stopped.
pub fn trial(topology: &Topology, plan: &Plan, bytes: u64, is_over: impl Fn() -> bool + Sync) -> Result<Trial> {
    let schedule = table(topology, plan, bytes)?;
    let (job, helpers, _) = plan.request.devices(topology)?;
    let devices: Vec<usize> = job.into_iter().chain(helpers).take(schedule.host()).collect();
    let memory = Blocks::new(&schedule)?;
    let nodes = schedule.host() + 1;
    let at = |which: u64| (0..nodes as u64).map(|node| (3 * node + which) * SPACE).collect();
    let schedule = Arc::new(schedule);
    let bound = Bound {
        schedule: schedule.clone(),
        numbers: Some((Kind::U64, Combine::Sum)),
        pes: (0..nodes).collect(),
        input: at(0),
        output: at(1),
        staging: at(2),
    };
    let run = Run::new(vec![bound]).keeping();
    let results: Vec<_> = std::thread::scope(|scope| {
        let one = |node: usize| {
            let (run, memory, is_over) = (&run, &memory, &is_over);
            scope.spawn(move || run.pe(node, memory, TIMEOUT, is_over, (node as u64 + 1).wrapping_mul(SEED)))
        };
        let threads: Vec<_> = (0..schedule.host()).map(one).collect();
        threads.into_iter().map(|thread| thread.join()).collect()
    });
    for (node, result) in results.into_iter().enumerate() {
        match result {
            Ok(Ok(())) => {}
            Ok(Err(_)) if is_over() => return Err(Error::Job("the trial was stopped".into())),
            Ok(Err(stuck)) => {
                return Err(Error::WrongSchedule(format!("node {node} waited in vain for node {}", stuck.peer)));
            }
            Err(_) => return Err(Error::WrongSchedule(format!("the thread of node {node} ended"))),
        }
    }
    memory.check(&schedule)?;
    let (began, mut moved) = run.kept().unwrap_or_else(|| (Instant::now(), Vec::new()));
    moved.sort_by_key(|one| one.ended);
    let planned = planned(plan, &schedule.call);
    Ok(Trial { schedule, devices, began, moved, planned })
}

/// What a plan gives each tree to move over each link.
fn planned(plan: &Plan, call: &Call) -> Planned {
    let n = plan.request.gpus.len() as u64;
    let all = match call.operation {
        Operation::Broadcast | Operation::Reduce | Operation::AllReduce | Operation::Send => call.part,
        // Of an exchange the plan has what moves.
        Operation::AllToAll => call.part * n * (n - 1),
        _ => call.part * n,
    };
    let mut planned = Planned::new();
    let mut add = |tree: usize, share: Ratio, path: &[usize]| {
        for link in path.windows(2) {
            *planned.entry((tree, link[0], link[1])).or_default() += share.to_f64() * all as f64;
        }
    };
    for step in &plan.steps {
        match step {
            Step::Collect(trees) | Step::Spread(trees) => {
                let all = trees.iter().enumerate();
                all.for_each(|(i, tree)| tree.paths.iter().for_each(|path| add(i, tree.share, path)));
            }
            Step::Send(routes) => routes.iter().enumerate().for_each(|(i, route)| add(i, route.share, &route.path)),
        }
    }
    planned
}

/// How long a PE waits for another one that does nothing.
const TIMEOUT: Duration = Duration::from_secs(60);
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
/// Between the addresses of two blocks.
const SPACE: u64 = 1 << 48;

/// Of each node input, output and rings. Nothing else is touched: who tries to is noted.
struct Blocks {
    blocks: Vec<Mutex<Vec<u8>>>,
    is_left: AtomicBool,
}

impl Bytes for Blocks {
    fn read(&self, from: u64, to: &mut [u8]) {
        let len = to.len();
        self.piece(from, len, |piece| to.copy_from_slice(piece));
    }
    fn write(&self, to: u64, from: &[u8]) {
        self.piece(to, from.len(), |piece| piece.copy_from_slice(from));
    }
}

impl Blocks {
    fn new(schedule: &Schedule) -> Result<Self> {
        let sizes = (0..=schedule.host()).flat_map(|node| {
            let (input, output) = sizes(schedule, node);
            [input, output, schedule.staging[node]]
        });
        let sizes: Vec<u64> = sizes.collect();
        let all = sizes.iter().fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
        if all > MAX_MEMORY {
            let problem =
                format!("a trial of so much data takes {all} bytes of host memory, {MAX_MEMORY} at most; take less");
            return Err(Error::Job(problem));
        }
        let mut random = SEED;
        let mut block = |(i, bytes): (usize, u64)| {
            let mut block = vec![0; bytes as usize];
            if i % 3 == 0 {
                block.chunks_exact_mut(UNIT as usize).for_each(|number| {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    number.copy_from_slice(&random.to_le_bytes());
                });
            }
            Mutex::new(block)
        };
        let blocks = sizes.into_iter().enumerate().map(&mut block).collect();
        Ok(Self { blocks, is_left: AtomicBool::new(false) })
    }

    fn piece(&self, at: u64, len: usize, f: impl FnOnce(&mut [u8])) {
        let (block, first) = ((at / SPACE) as usize, (at % SPACE) as usize);
        let Some(block) = self.blocks.get(block) else { return self.is_left.store(true, Ordering::Relaxed) };
        let mut block = block.lock().unwrap_or_else(PoisonError::into_inner);
        match first.checked_add(len).and_then(|end| block.get_mut(first..end)) {
            Some(piece) => f(piece),
            None => self.is_left.store(true, Ordering::Relaxed),
        }
    }

    /// The numbers of a block.
    fn numbers(&self, node: usize, which: usize) -> Vec<u64> {
        let block = self.blocks[3 * node + which].lock().unwrap_or_else(PoisonError::into_inner);
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
        block.chunks_exact(UNIT as usize).map(number).collect()
    }

    /// Compares every output with the definition.
    fn check(&self, schedule: &Schedule) -> Result<()> {
        if self.is_left.load(Ordering::Relaxed) {
            return Err(Error::WrongSchedule("a node left its input, its output or its rings".into()));
        }
        let (pes, host, call) = (schedule.pes, schedule.host(), &schedule.call);
        let part = (call.part / UNIT) as usize;
        let inputs: Vec<Vec<u64>> = (0..=host).map(|node| self.numbers(node, 0)).collect();
        let from = |node: usize, i: usize| inputs[node][i * part..(i + 1) * part].to_vec();
        let sum = |i: usize| {
            let mut sum = from(0, i);
            for node in 1..pes {
                sum.iter_mut().zip(from(node, i)).for_each(|(a, b)| *a = a.wrapping_add(b));
            }
            sum
        };
        for node in 0..=host {
            let wanted = match call.operation {
                Operation::Download if node == host => (0..pes).flat_map(|other| from(other, 0)).collect(),
                Operation::Download => Vec::new(),
                _ if node >= pes => Vec::new(),
                Operation::Broadcast => from(call.root, 0),
                Operation::Reduce if node == call.root => sum(0),
                Operation::Send if node == 1 => from(0, 0),
                Operation::Reduce | Operation::Send => vec![0; part],
                Operation::AllReduce => sum(0),
                Operation::AllGather => (0..pes).flat_map(|other| from(other, 0)).collect(),
                Operation::ReduceScatter => sum(node),
                Operation::AllToAll => (0..pes).flat_map(|other| from(other, node)).collect(),
                Operation::Upload => from(host, node),
            };
            if self.numbers(node, 1) != wanted {
                return Err(Error::WrongSchedule(format!("node {node} of a trial has something else than it should")));
            }
        }
        Ok(())
    }
}

/// Bytes of a node's input and output.
fn sizes(schedule: &Schedule, node: usize) -> (u64, u64) {
    let (one, all) = (schedule.call.part, schedule.call.part * schedule.pes as u64);
    let is_host = node == schedule.host();
    match schedule.call.operation {
        Operation::Upload if is_host => (all, 0),
        Operation::Download if is_host => (0, all),
        _ if node >= schedule.pes => (0, 0),
        Operation::Broadcast | Operation::Reduce | Operation::AllReduce | Operation::Send => (one, one),
        Operation::AllGather => (one, all),
        Operation::ReduceScatter => (all, one),
        Operation::AllToAll => (all, all),
        Operation::Upload => (0, one),
        Operation::Download => (one, 0),
    }
}
