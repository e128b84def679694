//! From a plan to a table of transfers.
//!
//! A [`Transfer`] is done by one node, chunk by chunk: it waits for what its sources need and for room at its targets, writes the
//! combination of its sources to every target, and tells those who wait. Everything that a plan can ask for is such a
//! table; the interpreters ([`super::sim`] and the CUDA ones) know nothing of trees.
//!
//! | node | what it is |
//! |---|---|
//! | 0 to n - 1 | the PEs of the job, in the order of the request |
//! | then | its helpers, in the order of the request |
//! | last | host memory |

use crate::plan::{Operation, Plan, Request, Step, Tree};
use crate::topology::{DeviceKind, Topology};
use crate::{Error, Result};
use std::collections::BTreeMap;

/// Bytes of all staging rings of a node together, of all operations that are done at once.
pub const MAX_STAGING: u64 = 64 << 20;
/// Bytes of data that a collective may move to or from one PE.
pub const MAX_BYTES: u64 = 1 << 46;
/// Chunks and parts begin at multiples of this in their buffers, so that they can be moved in whole vectors.
pub const GRAIN: u64 = 16;

/// A collective operation as far as it shapes the schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Call {
    /// What is done.
    pub operation: Operation,
    /// Where a broadcast begins or a reduction ends, as a place in the job.
    pub root: usize,
    /// Bytes of one part: what each PE gives to an all-gather, gets from a reduce-scatter, an upload or a download, sends to each in
    /// an all-to-all; of the whole buffer for the others.
    pub part: u64,
    /// Bytes of an element, which is never torn apart: 1, 2, 4 or 8.
    pub unit: u64,
    /// Whether the input of a PE lies where its own part of the output does.
    pub in_place: bool,
}

/// Choices that have no influence on the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Transfers that a node may do at the same time; trees are split to have as many, where they are large enough. A worker does
    /// one.
    pub workers: usize,
    /// Bytes of a chunk; less where rings would outgrow [`MAX_STAGING`].
    pub chunk: u64,
    /// Chunks that fit into a ring.
    pub slots: u64,
}

/// Which memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// What the caller gave to the node.
    Input,
    /// What the caller gets.
    Output,
    /// The ring of a channel.
    Ring(usize),
}

/// Where a transfer's data is: chunk `c` at `at + c * chunk`, in a ring at `c % slots * chunk` of the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// Whose memory.
    pub node: usize,
    /// Which.
    pub place: Place,
    /// The first byte of the first chunk.
    pub at: u64,
    /// A source: to wait for before a chunk is read. A target: to tell when a chunk is there.
    pub channel: Option<usize>,
}

/// Staging memory for a few chunks, between the transfer that fills it and the one that empties it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ring {
    /// Whose memory.
    pub node: usize,
    /// Its first byte in that node's staging memory.
    pub at: u64,
}

/// Two counters: of chunks that are there, and, where there is a ring, of chunks that were read and may be overwritten.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Channel {
    /// The node that counts up when a chunk is there.
    pub from: usize,
    /// The node that waits for it.
    pub to: usize,
    /// The chunks that pass in all.
    pub chunks: u64,
    /// Where they lie in between; without a ring they lie in the output, and nothing is overwritten.
    pub ring: Option<Ring>,
    /// The devices that the chunks pass, both ends included; empty where no plan says it.
    pub path: Vec<usize>,
    /// The tree of the plan's step, or the path, whose data they are, by its place there; 0 where there is no plan.
    pub tree: usize,
}

/// One row of the table.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Transfer {
    /// The node that does it.
    pub at: usize,
    /// What is combined; one source is copied.
    pub sources: Vec<Endpoint>,
    /// What gets the result.
    pub targets: Vec<Endpoint>,
    /// Channels that are told of each chunk besides those of the targets: of nodes whose input was read.
    pub notifies: Vec<usize>,
    /// How much it is in all.
    pub bytes: u64,
}

/// The table.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Schedule {
    /// What it does.
    pub call: Call,
    /// PEs of the job.
    pub pes: usize,
    /// Helpers; host memory is the node after them.
    pub helpers: usize,
    /// Bytes of a chunk.
    pub chunk: u64,
    /// Chunks in a ring.
    pub slots: u64,
    /// What is done.
    pub transfers: Vec<Transfer>,
    /// What it is ordered by.
    pub channels: Vec<Channel>,
    /// Bytes of staging memory that each node needs.
    pub staging: Vec<u64>,
}

impl Schedule {
    /// The node that is host memory.
    pub fn host(&self) -> usize {
        self.pes + self.helpers
    }

    /// The chunks of a transfer.
    pub fn chunks(&self, transfer: &Transfer) -> u64 {
        transfer.bytes.div_ceil(self.chunk)
    }

    /// Where chunk `c` of a transfer lies in the memory of an endpoint's place (of a ring: in the node's staging memory).
    pub fn offset(&self, endpoint: &Endpoint, c: u64) -> u64 {
        match endpoint.place {
            Place::Input | Place::Output => endpoint.at + c * self.chunk,
            Place::Ring(channel) => self.channels[channel].ring.map_or(0, |r| r.at) + c % self.slots * self.chunk,
        }
    }
}

/// Checks a call whose table is made without a plan: between the PEs alone, each of which reaches every other.
pub(crate) fn checked_without_plan(call: &Call, pes: usize) -> Result<()> {
    checked(call, pes)?;
    if call.operation.uses_host() {
        return Err(Error::Job("host memory takes a plan".into()));
    }
    if call.operation == Operation::Send && pes != 2 {
        return Err(Error::Job("a send joins exactly 2 PEs".into()));
    }
    Ok(())
}

/// Checks a call's sizes.
pub(crate) fn checked(call: &Call, pes: usize) -> Result<()> {
    let job = |text: String| Err(Error::Job(text));
    if !matches!(call.unit, 1 | 2 | 4 | 8) {
        return job(format!("an element has 1, 2, 4 or 8 bytes, not {}", call.unit));
    }
    if !call.part.is_multiple_of(call.unit) {
        return job(format!("{} bytes are not a whole number of elements of {}", call.part, call.unit));
    }
    if call.part.checked_mul(pes.max(1) as u64).is_none_or(|all| all > MAX_BYTES) {
        return job(format!("expected at most {MAX_BYTES} bytes on a PE, found {} for each of {pes}", call.part));
    }
    if call.root >= pes {
        return job(format!("the root, PE {}, is not one of the team's {pes}", call.root));
    }
    if call.in_place && matches!(call.operation, Operation::AllToAll | Operation::Upload | Operation::Download) {
        return job(format!("{} cannot be done in place", call.operation.name()));
    }
    Ok(())
}

/// Cuts `[0, bytes)` by weights into ranges that begin at multiples of [`GRAIN`]; some may be empty.
pub(crate) fn cut(bytes: u64, weights: &[f64]) -> Vec<(u64, u64)> {
    let all: f64 = weights.iter().sum();
    let (mut sum, mut from) = (0.0, 0);
    let mut out = Vec::with_capacity(weights.len());
    for (i, weight) in weights.iter().enumerate() {
        sum += weight;
        let exact = (bytes as f64 * (sum / all)) as u64 / GRAIN * GRAIN;
        let to = if i + 1 == weights.len() { bytes } else { exact.clamp(from, bytes) };
        out.push((from, to));
        from = to;
    }
    out
}

/// The table of a plan for this call.
///
/// # Errors
/// The plan is for another operation or moves nothing; sizes beyond the maxima; rings so many that they do not fit.
pub fn schedule(topology: &Topology, plan: &Plan, call: &Call, shape: &Shape) -> Result<Schedule> {
    schedule_within(topology, plan, call, shape, MAX_STAGING)
}

/// The same, with no more than `staging` bytes of rings on a node.
pub(crate) fn schedule_within(
    topology: &Topology,
    plan: &Plan,
    call: &Call,
    shape: &Shape,
    staging: u64,
) -> Result<Schedule> {
    let request = &plan.request;
    let pes = request.gpus.len();
    checked(call, pes)?;
    if request.operation != call.operation {
        let (planned, called) = (request.operation.name(), call.operation.name());
        return Err(Error::Job(format!("the plan is for {planned}, the call for {called}")));
    }
    let root = request.root.map_or(Some(0), |root| request.gpus.iter().position(|&g| g == root));
    if matches!(call.operation, Operation::Broadcast | Operation::Reduce) && root != Some(call.root) {
        return Err(Error::Job(format!("the plan's root is not PE {}", call.root)));
    }
    if plan.rate.is_zero() {
        return Err(Error::Job(format!(
            "the plan for {} moves nothing: the GPUs are not joined",
            call.operation.name()
        )));
    }
    if shape.chunk == 0 || !shape.chunk.is_multiple_of(GRAIN) || shape.slots == 0 || shape.workers == 0 {
        return Err(Error::Job(format!("a chunk is a multiple of {GRAIN} bytes; chunks, slots and workers are not 0")));
    }
    // As many workers as the busiest node may have.
    let mut workers = shape.workers;
    loop {
        let mut builder = Builder::new(topology, request, call, workers)?;
        builder.steps(plan)?;
        let busiest = builder.busiest();
        if workers == 1 || busiest <= shape.workers {
            return builder.finish(shape, staging);
        }
        workers = (workers * shape.workers / busiest).clamp(1, workers - 1);
    }
}

/// What stays in a PE's own memory is moved so many times as fast as what a worker sends over a link, and gets so many fewer workers.
pub(super) const HOME: usize = 4;
/// Bytes below which a worker is not worth its flags.
pub(super) const MIN_WORKER_BYTES: u64 = 16 << 10;

struct Builder<'a> {
    call: &'a Call,
    topology: &'a Topology,
    /// The devices of the job and of the helpers.
    devices: Vec<usize>,
    pes: usize,
    workers: usize,
    transfers: Vec<Transfer>,
    channels: Vec<Channel>,
}

/// A node on a way, and the devices from the node before it.
#[derive(Clone)]
struct Stop {
    node: usize,
    path: Vec<usize>,
}

/// A way, its share, and its place in the plan.
type Weighed = (f64, Vec<Stop>, usize);

/// A range of the data that takes the same way, and where it begins in inputs and outputs.
#[derive(Clone, Copy)]
struct Stream {
    bytes: u64,
    input: u64,
    output: u64,
    tree: usize,
}

impl<'a> Builder<'a> {
    fn new(topology: &'a Topology, request: &Request, call: &'a Call, workers: usize) -> Result<Self> {
        let (mut devices, helpers, _) = request.devices(topology)?;
        let pes = devices.len();
        devices.extend(helpers);
        Ok(Self { call, topology, devices, pes, workers, transfers: Vec::new(), channels: Vec::new() })
    }

    fn host(&self) -> usize {
        self.devices.len()
    }

    /// The nodes of a path: switches are part of the links, and CPUs with what lies between them are host memory.
    fn stops(&self, path: &[usize]) -> Result<Vec<Stop>> {
        let mut out: Vec<Stop> = Vec::with_capacity(path.len());
        let mut since = 0;
        for (i, &device) in path.iter().enumerate() {
            let node = match self.topology.devices().get(device).map(|d| d.kind) {
                Some(DeviceKind::Gpu) => self.devices.iter().position(|&d| d == device),
                Some(DeviceKind::Cpu) => Some(self.host()),
                Some(DeviceKind::NvSwitch | DeviceKind::PcieSwitch | DeviceKind::Memory) => continue,
                None => None,
            };
            let node =
                node.ok_or_else(|| Error::Job(format!("the plan names device {device}, which is not part of it")))?;
            if out.last().is_none_or(|last| last.node != node) {
                out.push(Stop { node, path: path[since..=i].to_vec() });
                since = i;
            }
        }
        if out.len() < 2 {
            return Err(Error::Job("a path of the plan joins nothing".into()));
        }
        Ok(out)
    }

    /// Host memory does nothing itself: what leaves it is fetched.
    fn worker(&self, from: usize, to: usize) -> usize {
        if from == self.host() {
            to
        } else {
            from
        }
    }

    fn transfer(&mut self, at: usize, sources: Vec<Endpoint>, targets: Vec<Endpoint>, bytes: u64) {
        self.transfers.push(Transfer { at, sources, targets, notifies: Vec::new(), bytes });
    }

    /// Adds the hops after the first of `nodes`; returns the target of the first, and the endpoint where the last hop arrives: the
    /// output of the last node, or a ring in it.
    fn way(&mut self, stops: &[Stop], stream: &Stream, is_ringed: bool) -> (Endpoint, Endpoint) {
        let mut first = None;
        let mut last = self.output(stops[0].node, stream);
        for (i, hop) in stops.windows(2).enumerate() {
            let (u, v) = (hop[0].node, hop[1].node);
            let done_by = self.worker(u, v);
            let is_last = i + 2 == stops.len();
            // Who reads what this hop brings: the next hop's worker, or the node itself.
            let reader = if is_last { v } else { self.worker(v, stops[i + 2].node) };
            let is_ring = !is_last || is_ringed;
            let ring = is_ring.then_some(Ring { node: v, at: 0 });
            // The number of chunks is known when their size is; until then the bytes stand for it.
            let path = hop[1].path.clone();
            let (chunks, tree) = (stream.bytes, stream.tree);
            self.channels.push(Channel { from: done_by, to: reader, chunks, ring, path, tree });
            let channel = self.channels.len() - 1;
            let place = if is_ring { Place::Ring(channel) } else { Place::Output };
            let at = if is_ring { 0 } else { stream.output };
            let target = Endpoint { node: v, place, at, channel: Some(channel) };
            if first.is_none() {
                first = Some(target);
            } else {
                self.transfer(done_by, vec![last], vec![target], stream.bytes);
            }
            last = target;
        }
        (first.unwrap_or(last), last)
    }

    fn input(&self, node: usize, stream: &Stream) -> Endpoint {
        Endpoint { node, place: Place::Input, at: stream.input, channel: None }
    }

    fn output(&self, node: usize, stream: &Stream) -> Endpoint {
        Endpoint { node, place: Place::Output, at: stream.output, channel: None }
    }

    /// One tree: combined towards the root where `collect` has paths, then copied from it where `spread` has.
    fn tree(&mut self, root: usize, collect: &[Vec<Stop>], spread: &[Vec<Stop>], stream: &Stream) {
        let mut arriving: BTreeMap<usize, Vec<Endpoint>> = BTreeMap::new();
        for path in collect {
            let from = path[0].node;
            let (first, last) = self.way(path, stream, true);
            let mut sources = vec![self.input(from, stream)];
            sources.extend(arriving.remove(&from).unwrap_or_default());
            self.transfer(from, sources, vec![first], stream.bytes);
            arriving.entry(path[path.len() - 1].node).or_default().push(last);
        }
        // What each node sends on, and where it has it from.
        let mut have: BTreeMap<usize, Endpoint> = BTreeMap::new();
        let mut targets: BTreeMap<usize, Vec<Endpoint>> = BTreeMap::new();
        for path in spread {
            let (first, last) = self.way(path, stream, false);
            targets.entry(path[0].node).or_default().push(first);
            have.insert(path[path.len() - 1].node, last);
        }
        let mut sources = vec![self.input(root, stream)];
        sources.extend(arriving.remove(&root).unwrap_or_default());
        let mut own = targets.remove(&root).unwrap_or_default();
        // A copy of the root's own input is left out where it is already there.
        if sources.len() > 1 || !self.call.in_place {
            own.insert(0, self.output(root, stream));
        }
        if !own.is_empty() {
            self.transfer(root, sources, own, stream.bytes);
        }
        for (node, targets) in targets {
            let source = have.get(&node).copied().unwrap_or_else(|| self.output(node, stream));
            self.transfer(node, vec![source], targets, stream.bytes);
        }
    }

    /// A range split into parts, one a worker.
    fn split(&self, stream: &Stream, share: f64, trees: usize) -> Vec<Stream> {
        let wanted = ((self.workers as f64 * share * trees as f64) as u64).max(1);
        let workers = wanted.min(stream.bytes.div_ceil(MIN_WORKER_BYTES)).max(1);
        let ranges = cut(stream.bytes, &vec![1.0; workers as usize]);
        let part = |(from, to): (u64, u64)| Stream {
            bytes: to - from,
            input: stream.input + from,
            output: stream.output + from,
            tree: stream.tree,
        };
        ranges.into_iter().filter(|(from, to)| from < to).map(part).collect()
    }

    fn steps(&mut self, plan: &Plan) -> Result<()> {
        match plan.steps.as_slice() {
            [Step::Collect(trees)] => self.trees(trees, &[]),
            [Step::Spread(trees)] => self.trees(&[], trees),
            [Step::Collect(first), Step::Spread(second)] => self.trees(first, second),
            [Step::Send(routes)] => {
                let mut groups: BTreeMap<(usize, usize), Vec<Weighed>> = BTreeMap::new();
                for (i, route) in routes.iter().enumerate() {
                    let stops = self.stops(&route.path)?;
                    let ends = (stops[0].node, stops[stops.len() - 1].node);
                    groups.entry(ends).or_default().push((route.share.to_f64(), stops, i));
                }
                let mut routes = groups.values().map(Vec::len).sum();
                if self.call.operation == Operation::AllToAll {
                    routes += self.pes;
                    let share = 1.0 / (HOME * routes) as f64;
                    (0..self.pes).for_each(|i| {
                        groups.insert((i, i), vec![(share, vec![Stop { node: i, path: Vec::new() }], 0)]);
                    });
                }
                for ((from, to), ways) in groups {
                    let part = self.call.part;
                    let (input, output) = match self.call.operation {
                        Operation::AllToAll => (to as u64 * part, from as u64 * part),
                        Operation::Upload => (to as u64 * part, 0),
                        Operation::Download => (0, from as u64 * part),
                        _ => (0, 0),
                    };
                    let weights: Vec<f64> = ways.iter().map(|w| w.0).collect();
                    for ((weight, stops, tree), (begin, end)) in ways.iter().zip(cut(part, &weights)) {
                        let (bytes, tree) = (end - begin, *tree);
                        let stream = Stream { bytes, input: input + begin, output: output + begin, tree };
                        for part in self.split(&stream, *weight, routes) {
                            let from = stops[0].node;
                            let at = stops.get(1).map_or(from, |next| self.worker(from, next.node));
                            let (first, _) = self.way(stops, &part, false);
                            let sources = vec![self.input(from, &part)];
                            self.transfer(at, sources, vec![first], part.bytes);
                        }
                    }
                }
                Ok(())
            }
            _ => Err(Error::Job("the plan has steps that no operation has".into())),
        }
    }

    /// Trees of a collection and of a spreading; where there are both, they belong together in order.
    fn trees(&mut self, collect: &[Tree], spread: &[Tree]) -> Result<()> {
        let count = collect.len().max(spread.len());
        let shape = if collect.is_empty() { spread } else { collect };
        if !collect.is_empty() && !spread.is_empty() {
            let is_pair = |(a, b): (&Tree, &Tree)| a.root == b.root && a.share == b.share;
            if collect.len() != spread.len() || !collect.iter().zip(spread).all(is_pair) {
                return Err(Error::Job("the trees of the plan's two steps are not the same".into()));
            }
        }
        // All-reduce is one range for all trees; the others have one for the trees of each root.
        let is_one = self.call.operation == Operation::AllReduce;
        let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (i, tree) in shape.iter().enumerate() {
            groups.entry(if is_one { 0 } else { tree.root }).or_default().push(i);
        }
        for members in groups.into_values() {
            let weights: Vec<f64> = members.iter().map(|&i| shape[i].share.to_f64()).collect();
            for (&i, (begin, end)) in members.iter().zip(cut(self.call.part, &weights)) {
                let root = self.devices.iter().position(|&d| d == shape[i].root).filter(|&r| r < self.pes);
                let root = root.ok_or_else(|| Error::Job("a tree's root is not in the job".into()))?;
                let (input, output) = match self.call.operation {
                    Operation::AllGather => (0, root as u64 * self.call.part),
                    Operation::ReduceScatter => (root as u64 * self.call.part, 0),
                    _ => (0, 0),
                };
                let (bytes, tree) = (end - begin, i);
                let stream = Stream { bytes, input: input + begin, output: output + begin, tree };
                let stops = |trees: &[Tree]| -> Result<Vec<Vec<Stop>>> {
                    trees.get(i).map_or(Ok(Vec::new()), |t| t.paths.iter().map(|p| self.stops(p)).collect())
                };
                let (up, down) = (stops(collect)?, stops(spread)?);
                for (k, part) in self.split(&stream, shape[i].share.to_f64(), count).iter().enumerate() {
                    if is_one && !collect.is_empty() {
                        // Such a tree carries as much whatever its root is: in turns all PEs do the work, and each link is busy
                        // both ways from the beginning to the end.
                        let root = (root + k) % self.pes;
                        let (up, down) = rerooted(&down, root);
                        self.tree(root, &up, &down, part);
                    } else {
                        self.tree(root, &up, &down, part);
                    }
                }
            }
        }
        Ok(())
    }

    /// Transfers of the node that has most.
    fn busiest(&self) -> usize {
        let mut count = vec![0; self.host() + 1];
        self.transfers.iter().for_each(|t| count[t.at] += 1);
        count.into_iter().max().unwrap_or(0)
    }

    /// Chooses the size of a chunk, and lays out the rings.
    fn finish(mut self, shape: &Shape, most_staging: u64) -> Result<Schedule> {
        let mut rings = vec![0u64; self.host() + 1];
        self.channels.iter().filter_map(|c| c.ring).for_each(|r| rings[r.node] += 1);
        let most = rings.iter().copied().max().unwrap_or(0).max(1);
        let longest = self.transfers.iter().map(|t| t.bytes).max().unwrap_or(0);
        let chunks = most.saturating_mul(shape.slots);
        let fits = most_staging / chunks / GRAIN * GRAIN;
        if fits == 0 {
            return Err(Error::Job(format!("{chunks} chunks of staging do not fit into {most_staging} bytes")));
        }
        let chunk = shape.chunk.min(fits).min(longest.next_multiple_of(GRAIN)).max(GRAIN);
        let mut staging = vec![0; self.host() + 1];
        for channel in &mut self.channels {
            channel.chunks = channel.chunks.div_ceil(chunk);
            if let Some(ring) = &mut channel.ring {
                ring.at = staging[ring.node];
                staging[ring.node] += chunk * shape.slots;
            }
        }
        Ok(Schedule {
            call: *self.call,
            pes: self.pes,
            helpers: self.devices.len() - self.pes,
            chunk,
            slots: shape.slots,
            transfers: self.transfers,
            channels: self.channels,
            staging,
        })
    }
}

/// The ways of a tree towards `root`, leaves first, and away from it. `down` leads away from any root.
fn rerooted(down: &[Vec<Stop>], root: usize) -> (Vec<Vec<Stop>>, Vec<Vec<Stop>>) {
    let turned = |way: &Vec<Stop>| -> Vec<Stop> {
        let mut nodes: Vec<Stop> = way.iter().rev().cloned().collect();
        // The devices from the node before were those to the node after.
        let paths = way[1..].iter().rev().map(|stop| stop.path.iter().rev().copied().collect());
        nodes[1..].iter_mut().zip(paths).for_each(|(stop, path)| stop.path = path);
        nodes
    };
    let mut away: Vec<Vec<Stop>> = Vec::with_capacity(down.len());
    let mut reached = vec![root];
    let mut at = 0;
    while at < reached.len() {
        for way in down {
            let (a, b) = (way[0].node, way[way.len() - 1].node);
            let next = if a == reached[at] { b } else { a };
            if (a == reached[at] || b == reached[at]) && !reached.contains(&next) {
                reached.push(next);
                away.push(if a == reached[at] { way.clone() } else { turned(way) });
            }
        }
        at += 1;
    }
    (away.iter().rev().map(turned).collect(), away)
}
