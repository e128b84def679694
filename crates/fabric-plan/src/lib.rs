//! The best way to do an operation on a topology, with the bound that proves it best. Planning is arithmetic: it needs no GPU, and
//! the same question has the same answer everywhere.
//!
//! ```
//! use tandem_fabric_plan::{check, plan, Operation, Request};
//! use tandem_fabric_topology::Topology;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Two GPUs of a DGX-1 that use the links of two beside them.
//! let dgx = Topology::preset("dgx1-v100")?;
//! let alone = plan(&dgx, &Request::new(Operation::Broadcast, &[0, 1]))?;
//! let helped = plan(&dgx, &Request::new(Operation::Broadcast, &[0, 1]).with_helpers(&[2, 3]))?;
//! check(&dgx, &helped)?;
//! assert!(alone.is_best() && helped.is_best() && helped.gbs() > alone.gbs());
//! # Ok(())
//! # }
//! ```
//!
//! The model: every link carries its rate each way at the same time, switches do not slow each other down, and large data is cut
//! into chunks that flow through trees and paths as through pipes. Relays (helper GPUs, switches, host memory) only forward: they
//! neither add nor copy. All arithmetic is exact.
//!
//! | operation | method | bound | exact |
//! |---|---|---|---|
//! | broadcast, reduce | relays split off, arborescences packed (Edmonds) | max-flow to the farthest GPU | where as much enters each relay as leaves it |
//! | all-gather, reduce-scatter | the same, equal weight from every GPU (ForestColl) | the least of what leaves a set over the GPUs in it | as above |
//! | all-reduce | spanning trees, each used to reduce and to broadcast | what enters disjoint sets of GPUs over twice their number less one; a cut | without helpers, where links carry as much back as forth; else stated by each plan |
//! | send, upload, download | maximum flow | minimum cut | always |
//! | all-to-all | linear program over trees of paths | its dual: prices of links | unless fractions grow unwieldy; stated by each plan |
//!
//! [`Plan::is_best`] compares the rate with the bound; nothing is claimed beyond that. [`check()`] verifies a plan and its bound
//! without the planner's code.
#![forbid(unsafe_code)]

mod budget;
pub mod check;
mod draw;
mod error;
mod export;
mod flow;
mod levels;
mod lp;
mod net;
mod optimum;
mod pack;
mod ratio;
mod rounds;
mod routes;
mod spanning;
mod split;
mod text;
mod trees;

pub use budget::Budget;
pub use check::check;
pub use error::{Error, Result};
pub use export::NcclGraph;
pub use levels::{Levels, Move};
pub use ratio::Ratio;

use budget::Clock;
use net::Net;
use optimum::{equal_roots, one_root};
use pack::Packed;
use routes::{too_unlike, Algorithm};
use tandem_fabric_topology::{DeviceKind, Topology};

/// GPUs of a job and helpers, together.
pub const MAX_JOB: usize = 32;

/// What is to be done with the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// From the root to all.
    Broadcast,
    /// The sum of all to the root.
    Reduce,
    /// The sum of all to all.
    AllReduce,
    /// The parts of all to all.
    AllGather,
    /// The sum of all, a part to each.
    ReduceScatter,
    /// A part of each to each.
    AllToAll,
    /// From the first GPU to the second.
    Send,
    /// From host memory, an equal part to each GPU.
    Upload,
    /// To host memory, an equal part from each GPU.
    Download,
}

impl Operation {
    /// All of them, with their names.
    pub const ALL: [(Self, &'static str); 9] = [
        (Self::Broadcast, "broadcast"),
        (Self::Reduce, "reduce"),
        (Self::AllReduce, "all-reduce"),
        (Self::AllGather, "all-gather"),
        (Self::ReduceScatter, "reduce-scatter"),
        (Self::AllToAll, "all-to-all"),
        (Self::Send, "send"),
        (Self::Upload, "upload"),
        (Self::Download, "download"),
    ];

    /// The name on the command line and in files.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(op, _)| *op == self).map_or("", |(_, name)| name)
    }

    /// The operation with this name.
    pub fn from_name(text: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, name)| *name == text).map(|(op, _)| *op)
    }

    /// Whether data comes from or goes to host memory.
    pub fn uses_host(self) -> bool {
        matches!(self, Self::Upload | Self::Download)
    }

    fn has_root(self) -> bool {
        matches!(self, Self::Broadcast | Self::Reduce)
    }

    /// Whether this is planned on the graph with all links turned round.
    fn is_reversed(self) -> bool {
        matches!(self, Self::Reduce | Self::ReduceScatter | Self::Download)
    }
}

/// What to plan. GPUs are numbered as in [`Topology::gpus`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Request {
    /// What to do.
    pub operation: Operation,
    /// The GPUs that have or get the data.
    pub gpus: Vec<usize>,
    /// Other GPUs that may forward.
    pub helpers: Vec<usize>,
    /// Where a broadcast begins or a reduction ends; the first GPU unless said.
    pub root: Option<usize>,
    /// Whether data between GPUs may also take PCIe and host memory. Uploads and downloads always may.
    pub pcie: bool,
}

impl Request {
    /// An operation of these GPUs over NVLink, with no helpers.
    pub fn new(operation: Operation, gpus: &[usize]) -> Self {
        Self { operation, gpus: gpus.to_vec(), helpers: Vec::new(), root: None, pcie: false }
    }

    /// With these helpers.
    pub fn with_helpers(mut self, helpers: &[usize]) -> Self {
        self.helpers = helpers.to_vec();
        self
    }

    /// The devices: of the job, of the helpers, of the root.
    ///
    /// # Errors
    /// [`Error::Job`] for one that does not fit the topology or the operation.
    pub fn devices(&self, topology: &Topology) -> Result<(Vec<usize>, Vec<usize>, usize)> {
        let gpus = topology.gpus();
        let job = |message: String| Err(Error::Job(message));
        let mut seen = Vec::new();
        for (list, what) in [(&self.gpus, "the job"), (&self.helpers, "the helpers")] {
            for &g in list {
                if g >= gpus.len() {
                    let last = gpus.len() - 1;
                    return job(format!("there is no GPU {g} in {}; expected 0 to {last}", topology.name()));
                }
                if seen.contains(&g) {
                    let where_else =
                        if self.gpus.contains(&g) && what == "the helpers" { " and in the job" } else { " twice" };
                    return job(format!("GPU {g} is in {what}{where_else}; name each GPU once"));
                }
                seen.push(g);
            }
        }
        if seen.len() > MAX_JOB {
            return job(format!("expected at most {MAX_JOB} GPUs and helpers, found {}", seen.len()));
        }
        let (least, most) = match self.operation {
            Operation::Upload | Operation::Download => (1, MAX_JOB),
            Operation::Send => (2, 2),
            _ => (2, MAX_JOB),
        };
        if !(least..=most).contains(&self.gpus.len()) {
            let expected = if least == most { "exactly" } else { "at least" };
            let name = self.operation.name();
            return job(format!("{name} needs {expected} {least} GPUs, the job has {}", self.gpus.len()));
        }
        let root = self.root.unwrap_or(self.gpus[0]);
        if self.root.is_some() && !self.operation.has_root() {
            return job(format!("{} has no root", self.operation.name()));
        }
        if !self.gpus.contains(&root) {
            return job(format!("the root, GPU {root}, is not in the job"));
        }
        let device = |list: &[usize]| list.iter().map(|&g| gpus[g]).collect::<Vec<_>>();
        Ok((device(&self.gpus), device(&self.helpers), gpus[root]))
    }

    pub(crate) fn may_use_pcie(&self) -> bool {
        self.pcie || self.operation.uses_host()
    }
}

/// A tree that spans the job. Paths lead in the direction of the data, through relays, as devices; in a [`Step::Spread`] parents come
/// before children, in a [`Step::Collect`] after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// The GPU at which the data begins or ends, as a device.
    pub root: usize,
    /// The share of all data that takes this tree.
    pub share: Ratio,
    /// One path for each GPU but the root.
    pub paths: Vec<Vec<usize>>,
}

/// A path on which a share of the data is sent, from its first device to its last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The share of all data that moves.
    pub share: Ratio,
    /// The devices on the way.
    pub path: Vec<usize>,
}

/// What is done at the same time; a later step takes over each chunk where the step before leaves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Shares are combined on the way to their tree's root.
    Collect(Vec<Tree>),
    /// Shares are copied from their tree's root to every GPU of the job.
    Spread(Vec<Tree>),
    /// Shares are sent along paths.
    Send(Vec<Route>),
}

/// What a link has to carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Load {
    /// The device at one end.
    pub from: usize,
    /// The device at the other end.
    pub to: usize,
    /// In MB/s, at the plan's rate.
    pub rate: Ratio,
    /// What it can carry, MB/s.
    pub capacity: i64,
}

/// Why no plan can be faster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Witness {
    /// These devices; what leaves them (enters them for reduce, reduce-scatter and download) is the bottleneck.
    Cut(Vec<usize>),
    /// Sets of devices that split the job's GPUs; what enters them is the bottleneck.
    Parts(Vec<Vec<usize>>),
    /// Prices of links: with them, the data costs at least so much and all links together cost so much.
    Prices(Vec<(usize, usize, Ratio)>),
}

/// What the helpers bring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gain {
    /// No helpers were allowed.
    NotAsked,
    /// The rate without them, in MB/s.
    Over(Ratio),
    /// Nothing: the reason. The plan does without them.
    None(String),
}

/// A plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// What was asked.
    pub request: Request,
    /// Bytes a second, in MB/s, in the sense of nccl-tests' algbw: the size that the operation is called with over its time. For
    /// all-gather the size is what each GPU gets, for reduce-scatter and all-to-all what each GPU has, for send, upload and download all
    /// that moves.
    pub rate: Ratio,
    /// No plan has a greater rate.
    pub bound: Ratio,
    /// Why.
    pub witness: Witness,
    /// What is done.
    pub steps: Vec<Step>,
    /// What each link carries, where it carries something.
    pub loads: Vec<Load>,
    /// What the helpers bring.
    pub gain: Gain,
    /// Whether the budget was used up before the search was done. With a greater one the rate may be greater, or the bound smaller.
    pub is_cut_short: bool,
}

impl Plan {
    /// Whether the rate reaches the bound.
    pub fn is_best(&self) -> bool {
        self.rate == self.bound
    }

    /// By how much of the rate a plan may be faster, at most; `None` where the rate is zero.
    pub fn gap(&self) -> Option<f64> {
        let gap = || self.bound.to_f64() / self.rate.to_f64() - 1.0;
        (!self.rate.is_zero()).then(|| if self.is_best() { 0.0 } else { gap() })
    }

    /// The rate in GB/s.
    pub fn gbs(&self) -> f64 {
        self.rate.to_f64() / 1000.0
    }
}

/// How many hundredths of what an exact plan reaches another plan must reach to be taken for it: it has many more trees.
const WORTH: i64 = 110;

/// Plans an operation.
pub fn plan(topology: &Topology, request: &Request) -> Result<Plan> {
    plan_within(topology, request, &Budget::default())
}

/// Plans an operation, within a budget.
///
/// # Errors
/// As for [`plan`]; the search was cancelled.
pub fn plan_within(topology: &Topology, request: &Request, budget: &Budget) -> Result<Plan> {
    let clock = budget.begin();
    if request.helpers.is_empty() {
        return without_gain(topology, request, &clock);
    }
    let mut plan = without_gain(topology, request, &clock.part(50))?;
    let alone = without_gain(topology, &Request { helpers: Vec::new(), ..request.clone() }, &clock.part(100))?;
    let is_cut_short = plan.is_cut_short || alone.is_cut_short;
    if plan.rate > alone.rate {
        return Ok(Plan { gain: Gain::Over(alone.rate), is_cut_short, ..plan });
    }
    let reason = if plan.bound == alone.rate {
        format!("with the helpers {}", text::bottleneck(topology, request, &plan.witness, plan.bound))
    } else {
        "no faster packing was found with them".into()
    };
    plan.gain = Gain::None(reason);
    Ok(Plan { rate: alone.rate, steps: alone.steps, loads: alone.loads, is_cut_short, ..plan })
}

fn without_gain(topology: &Topology, request: &Request, clock: &Clock) -> Result<Plan> {
    let (job, helpers, _) = request.devices(topology)?;
    let net = Net::new(topology, &job, &helpers, request.may_use_pcie(), clock.part(70));
    let mut witness = None;
    let exact = match exact(topology, request, &net, &mut witness) {
        Ok(exact) => Some(exact),
        Err(Error::Stopped) if !clock.is_cancelled() => None,
        Err(error) => return Err(error),
    };
    let (witness, bound) = match witness {
        Some(witness) => {
            let bound = check::bound(topology, request, &witness)?;
            (witness, bound)
        }
        None => simple_bound(topology, request)?,
    };
    let mut is_cut_short = exact.is_none() || net.clock.is_over();
    let (mut steps, mut rate) = exact.unwrap_or((Vec::new(), Ratio::ZERO));
    if rate < bound {
        let most = if rate.is_zero() { rounds::MOST } else { rounds::FEW };
        let others = rounds::rounds(topology, request, &net, clock, most)?;
        let is_worth = |least: Ratio| others.1.times(Ratio::whole(100)) > least.times(Ratio::whole(WORTH));
        if is_worth(rate) {
            (steps, rate) = others;
        }
        is_cut_short |= clock.is_over();
    }
    let request = request.clone();
    let loads = check::loads(topology, &request, rate, &steps)?;
    Ok(Plan { request, rate, bound, witness, steps, loads, gain: Gain::NotAsked, is_cut_short })
}

/// The least of the bounds that need no search: what leaves or enters single places.
fn simple_bound(topology: &Topology, request: &Request) -> Result<(Witness, Ratio)> {
    let (job, _, root) = request.devices(topology)?;
    let cpus = (0..topology.devices().len()).filter(|&d| topology.devices()[d].kind == DeviceKind::Cpu);
    let witnesses: Vec<Vec<usize>> = match request.operation {
        Operation::Broadcast | Operation::Reduce => vec![vec![root]],
        Operation::Send => vec![vec![job[0]]],
        Operation::Upload | Operation::Download => vec![cpus.collect()],
        _ => job.iter().map(|&d| vec![d]).collect(),
    };
    let bound = |inside: Vec<usize>| {
        let witness = Witness::Cut(inside);
        let bound = check::bound(topology, request, &witness)?;
        Ok((witness, bound))
    };
    let bounds = witnesses.into_iter().map(bound).collect::<Result<Vec<_>>>()?;
    bounds.into_iter().min_by_key(|b| b.1).ok_or_else(|| Error::Job("the job has no GPU".into()))
}

/// The best plan that is found without a search in rounds. `known` gets the bound's witness as soon as there is one.
fn exact(topology: &Topology, request: &Request, net: &Net, known: &mut Option<Witness>) -> Result<(Vec<Step>, Ratio)> {
    let (job, _, root) = request.devices(topology)?;
    let node = |device: usize| net.device.iter().position(|&d| d == device).unwrap_or(0);
    let planned = if request.operation.is_reversed() { net.reversed() } else { net.clone() };
    let cut = |inside: &[bool]| Some(Witness::Cut(net.devices(inside)));
    match request.operation {
        Operation::Broadcast | Operation::Reduce => {
            let (roots, inside) = one_root(&planned, node(root))?;
            *known = cut(&inside);
            let forest = trees::forest(&planned, &roots, |n| Ok(one_root(n, node(root))?.0))?;
            let step = step(net, &forest.trees, forest.total, request.operation.is_reversed());
            Ok((vec![step], forest.rate().ok_or_else(too_unlike)?))
        }
        Operation::AllGather | Operation::ReduceScatter => {
            let (roots, inside) = equal_roots(&planned)?;
            *known = cut(&inside);
            let forest = trees::forest(&planned, &roots, |n| Ok(equal_roots(n)?.0))?;
            let step = step(net, &forest.trees, forest.total, request.operation.is_reversed());
            Ok((vec![step], forest.rate().ok_or_else(too_unlike)?))
        }
        Operation::AllReduce => {
            let ([collect, spread], rate) = trees::all_reduce(topology, request, net, known)?;
            let steps = [(collect, true), (spread, false)];
            Ok((steps.map(|(forest, back)| step(net, &forest.trees, forest.total, back)).to_vec(), rate))
        }
        Operation::Send => {
            let (ways, inside) = routes::spread(net, &[net.job[0]], &[net.job[1]])?;
            *known = cut(&inside);
            sent(net, ways).ok_or_else(too_unlike)
        }
        Operation::Upload | Operation::Download => {
            let is_host = |u: &usize| topology.devices()[net.device[*u]].kind == DeviceKind::Cpu;
            let hosts: Vec<usize> = (0..net.n).filter(is_host).collect();
            if hosts.is_empty() {
                let problem = format!("{} has no CPU, so nothing can be sent from or to it", topology.name());
                return Err(Error::Job(problem));
            }
            let (mut ways, inside) = routes::spread(&planned, &hosts, &planned.job)?;
            *known = cut(&inside);
            if request.operation.is_reversed() {
                ways.iter_mut().for_each(|w| w.nodes.reverse());
            }
            sent(net, ways).ok_or_else(too_unlike)
        }
        Operation::AllToAll => {
            if let Some(inside) = apart(net) {
                *known = cut(&inside);
                return Ok((vec![Step::Send(Vec::new())], Ratio::ZERO));
            }
            // Too many links for the linear program, or fractions that overflow: what rounds find has to do.
            let Some(exchange) = routes::exchange(net) else { return Ok((Vec::new(), Ratio::ZERO)) };
            let (steps, _) = sent(net, exchange.ways).ok_or_else(too_unlike)?;
            let rate = exchange.rate.times(Ratio::whole(job.len() as i64)).ok_or_else(too_unlike)?;
            let price = |(u, v, p): (usize, usize, Ratio)| (net.device[u], net.device[v], p);
            *known = Some(Witness::Prices(exchange.prices.into_iter().map(price).collect()));
            Ok((steps, rate))
        }
    }
}

/// The nodes that a GPU reaches where it does not reach every GPU.
fn apart(net: &Net) -> Option<Vec<bool>> {
    let reach = |&v: &usize| net.flow(0).reached(v);
    net.job.iter().map(reach).find(|inside| net.job.iter().any(|&u| !inside[u]))
}

/// Trees as a step: away from the roots, or turned round.
fn step(net: &Net, trees: &[Packed], total: i64, is_reversed: bool) -> Step {
    let tree = |t: &Packed| {
        let mut paths: Vec<Vec<usize>> =
            t.edges.iter().map(|way| way.iter().map(|&u| net.device[u]).collect()).collect();
        if is_reversed {
            paths.iter_mut().for_each(|p| p.reverse());
            paths.reverse();
        }
        let share = Ratio::new(t.weight.into(), total.into()).unwrap_or(Ratio::ZERO);
        Tree { root: net.device[t.root], share, paths }
    };
    let trees = trees.iter().map(tree).collect();
    if is_reversed {
        Step::Collect(trees)
    } else {
        Step::Spread(trees)
    }
}

/// Ways as a step, and all that moves in MB/s.
fn sent(net: &Net, ways: Vec<Algorithm>) -> Option<(Vec<Step>, Ratio)> {
    let total = ways.iter().try_fold(Ratio::ZERO, |sum, w| sum.plus(w.weight))?;
    let route = |w: Algorithm| {
        let share = w.weight.over(total)?;
        Some(Route { share, path: w.nodes.iter().map(|&u| net.device[u]).collect() })
    };
    Some((vec![Step::Send(ways.into_iter().map(route).collect::<Option<_>>()?)], total))
}
