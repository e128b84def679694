//! Collectives of a team over several nodes, in two levels: inside of each node by its own plan, and between one PE of each node by steps of
//! queues, in pieces that go from node to node without waiting for each other.

use super::Collectives;
use crate::exec::{Call, Combine, Kind, Tuning};
use crate::onesided::OneSided;
use crate::plan::Operation;
use crate::planner::{lock, Item};
use crate::topology::Topology;
use crate::{Compare, Error, Pe, Queue, Result, Signal, Symmetric, Team};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Mutex;

/// Bytes of a piece that goes from node to node.
pub(crate) const PIECE: usize = 1 << 20;

/// The collectives of each node, and what joins them.
pub(super) struct Levels {
    team: Team,
    parts: Vec<Part>,
    /// On the sender, by receiver: the transfers that the receiver is ready for.
    ready: Symmetric<u64>,
    /// On the receiver, by sender: the pieces that have come.
    come: Symmetric<u64>,
    /// By sender and receiver: transfers and pieces so far, which every process counts alike.
    counts: Mutex<HashMap<(usize, usize), (u64, u64)>>,
    /// What a node has combined, and what comes from another one.
    scratch: Mutex<Option<[Symmetric<u8>; 2]>>,
}

/// A node.
struct Part {
    /// PEs of the whole team, next to each other.
    pes: Range<usize>,
    /// Of these alone.
    ways: Collectives,
}

type Numbers = Option<(Kind, Combine)>;

impl Levels {
    /// Of all PEs of a team; `topology` is that of each node.
    pub(super) fn new(team: &Team, topology: &Topology, tuning: Tuning) -> Result<Self> {
        let part = |pes: &Vec<usize>| -> Result<Part> {
            let range = pes[0]..pes[0] + pes.len();
            if !range.clone().eq(pes.iter().copied()) {
                let problem = format!("PEs {pes:?} are of one node, and not next to each other in the team");
                return Err(Error::invalid("collectives", problem));
            }
            let local: Vec<usize> = (0..pes.len()).collect();
            Ok(Part { pes: range, ways: Collectives::of(&team.split(pes)?, topology, &local, tuning)? })
        };
        let parts = team.core().nodes.iter().map(part).collect::<Result<_>>()?;
        let (ready, come) = (team.alloc(team.size())?, team.alloc(team.size())?);
        let (counts, scratch) = Default::default();
        Ok(Levels { team: team.clone(), parts, ready, come, counts, scratch })
    }

    /// Tells the queues of this process's PEs an operation.
    pub(super) fn run(&self, item: &Item) -> Result<()> {
        if self.team.queues().iter().any(Queue::is_recording) {
            return Err(Error::invalid(
                item.call.operation.name(),
                "a collective over several nodes cannot be recorded",
            ));
        }
        let (root, numbers) = (item.job[item.call.root], item.numbers);
        let unit = item.call.unit;
        match (item.call.operation, &item.keep[..]) {
            (Operation::Broadcast, [from, to]) => self.broadcast(root, from, to, unit),
            (Operation::Reduce, [from, to]) => {
                self.reduce(root, from, numbers, unit, |partial| self.keep(root, partial, to))
            }
            (Operation::AllReduce, [from, to]) => {
                self.reduce(0, from, numbers, unit, |partial| self.keep(0, partial, to))?;
                self.broadcast(0, to, to, unit)
            }
            (Operation::ReduceScatter, [from, to]) => self.reduce(0, from, numbers, unit, |partial| {
                let part = |pe: usize| partial.slice(pe * to.len()..(pe + 1) * to.len());
                self.keep(0, &part(0)?, to)?;
                (1..self.team.size()).try_for_each(|pe| self.pass(&[0, pe], &part(pe)?, to))
            }),
            (Operation::AllGather, [from, to]) => self.gather(Some(from), to, unit),
            (Operation::AllGather, [memory]) => self.gather(None, memory, unit),
            (Operation::AllToAll, [from, to]) => self.exchange(from, to),
            (Operation::Send, [from, to]) => self.pass(&item.job, from, to),
            (operation, _) => Err(Error::invalid(operation.name(), "a team of several nodes cannot do that")),
        }
    }

    fn queue(&self, pe: usize) -> Option<&Queue> {
        self.team.core().is_local(pe).then(|| self.team.queue(pe))
    }

    /// Copies of PE `pe`'s own.
    fn keep(&self, pe: usize, from: &Symmetric<u8>, to: &Symmetric<u8>) -> Result<()> {
        self.queue(pe).map_or(Ok(()), |queue| queue.put(to, from, pe))
    }

    /// Does an operation on the PEs of each node for themselves, from which `of` makes an item of the node's job. Every process names those
    /// of all nodes, as all agree on the memory that this takes.
    fn inside(&self, of: impl Fn(&Part) -> Result<Vec<Item>>) -> Result<()> {
        for part in &self.parts {
            let pairs = || {
                let inner = part.ways.team();
                let own = part.pes.clone().enumerate();
                own.filter_map(move |(i, pe)| Some((self.queue(pe)?, inner.queue(i))))
            };
            // The node's team has queues of its own.
            pairs().try_for_each(|(outer, inner)| inner.wait(&outer.record()?))?;
            of(part)?.into_iter().try_for_each(|item| part.ways.run(vec![item]))?;
            pairs().try_for_each(|(outer, inner)| outer.wait(&inner.record()?))?;
        }
        Ok(())
    }

    fn item(
        &self,
        part: &Part,
        (operation, root): (Operation, usize),
        (numbers, unit): (Numbers, u64),
        (from, to): (&Symmetric<u8>, &Symmetric<u8>),
    ) -> Result<Item> {
        let team = part.ways.team();
        let core = team.core();
        let job: Vec<usize> = (0..team.size()).collect();
        let at = |memory: &Symmetric<u8>| -> Result<Vec<u64>> {
            job.iter().map(|&pe| core.address(operation.name(), memory, pe)).collect()
        };
        let (input, output) = (at(from)?, at(to)?);
        let call = Call { operation, root, part: from.bytes(), unit, in_place: input == output };
        Ok(Item { call, numbers, input, output, keep: vec![from.clone(), to.clone()], job, at_once: 1 })
    }

    /// The first PE of each node, that of `root`'s node being `root`, in the order of nodes from `root`'s on.
    fn heads(&self, root: usize) -> Vec<usize> {
        let at = self.parts.iter().position(|part| part.pes.contains(&root)).unwrap_or(0);
        let later = (1..self.parts.len()).map(|i| self.parts[(at + i) % self.parts.len()].pes.start);
        [root].into_iter().chain(later).collect()
    }

    /// Where in a node's job its PE among these is.
    fn head(part: &Part, heads: &[usize]) -> usize {
        heads.iter().find(|head| part.pes.contains(head)).map_or(0, |head| head - part.pes.start)
    }

    fn broadcast(&self, root: usize, from: &Symmetric<u8>, to: &Symmetric<u8>, unit: u64) -> Result<()> {
        let heads = self.heads(root);
        self.say_ready(&heads)?;
        self.pieces(&heads, from, to, to, |_, _| Ok(()))?;
        self.inside(|part| {
            let source = if part.pes.contains(&root) { from } else { to };
            let what = (Operation::Broadcast, Self::head(part, &heads));
            Ok(vec![self.item(part, what, (None, unit), (source, to))?])
        })
    }

    /// The combination of the `from` of all comes to `root`, where `done` takes it from memory that other calls use again.
    fn reduce(
        &self,
        root: usize,
        from: &Symmetric<u8>,
        numbers: Numbers,
        unit: u64,
        done: impl Fn(&Symmetric<u8>) -> Result<()>,
    ) -> Result<()> {
        let Some((kind, how)) = numbers else { return Err(Error::invalid("reduce", "there is nothing to combine")) };
        let [partial, other] = self.scratch(from.len())?;
        let mut path = self.heads(root);
        // To the root, which is the last.
        path.rotate_left(1);
        self.inside(|part| {
            let what = (Operation::Reduce, Self::head(part, &path));
            Ok(vec![self.item(part, what, (numbers, unit), (from, &partial))?])
        })?;
        self.say_ready(&path)?;
        self.pieces(&path, &partial, &other, &partial, |queue, range| {
            let (mine, theirs) = (partial.slice(range.clone())?, other.slice(range)?);
            let keep = [mine.memory().clone(), theirs.memory().clone()];
            let merge = move |pe: &Pe| {
                let (mut sum, piece) = (pe.load(&mine)?, pe.load(&theirs)?);
                crate::exec::combine(kind, how, &mut sum, &piece);
                pe.store(&mine, &sum)
            };
            queue.program(merge, &[&keep[0], &keep[1]])
        })?;
        done(&partial)
    }

    /// The nodes hand the parts of all on in a ring; those of a node are next to each other.
    fn gather(&self, from: Option<&Symmetric<u8>>, to: &Symmetric<u8>, unit: u64) -> Result<()> {
        let size = to.len() / self.team.size();
        let block = |part: &Part| to.slice(part.pes.start * size..part.pes.end * size);
        self.inside(|part| {
            let own = block(part)?;
            let mut item = self.item(part, (Operation::AllGather, 0), (None, unit), (from.unwrap_or(&own), &own))?;
            item.call.part = size as u64;
            if from.is_none() {
                item.input.iter_mut().zip(0..).for_each(|(at, i)| *at += i * size as u64);
                item.call.in_place = true;
                item.keep.truncate(1);
            }
            Ok(vec![item])
        })?;
        let heads: Vec<usize> = self.parts.iter().map(|part| part.pes.start).collect();
        let nodes = heads.len();
        let next = |i: usize| (i + 1) % nodes;
        (0..nodes).try_for_each(|i| self.say_ready(&[heads[i], heads[next(i)]]))?;
        for step in 0..nodes - 1 {
            for i in 0..nodes {
                let block = block(&self.parts[(i + nodes - step) % nodes])?;
                self.send([heads[i], heads[next(i)]], &block, &block)?;
            }
            // All have sent before one waits.
            (0..nodes).try_for_each(|i| self.receive([heads[i], heads[next(i)]]))?;
        }
        self.inside(|part| {
            let others = [0..part.pes.start * size, part.pes.end * size..to.len()];
            let whole = |range: &Range<usize>| -> Result<Item> {
                let rest = to.slice(range.clone())?;
                self.item(part, (Operation::Broadcast, 0), (None, unit), (&rest, &rest))
            };
            others.iter().filter(|range| !range.is_empty()).map(whole).collect()
        })
    }

    fn exchange(&self, from: &Symmetric<u8>, to: &Symmetric<u8>) -> Result<()> {
        let n = self.team.size();
        let size = from.len() / n;
        let part = |memory: &Symmetric<u8>, i: usize| memory.slice(i * size..(i + 1) * size);
        let pairs = || (1..n).flat_map(|shift| (0..n).map(move |pe| [pe, (pe + shift) % n]));
        (0..n).try_for_each(|pe| self.keep(pe, &part(from, pe)?, &part(to, pe)?))?;
        // All say so before one waits for another.
        pairs().try_for_each(|pair| self.say_ready(&pair))?;
        pairs().try_for_each(|[a, b]| self.send([a, b], &part(from, b)?, &part(to, a)?))?;
        pairs().try_for_each(|pair| self.receive(pair))
    }

    /// Sends in one piece what the other PE is ready for, or was before.
    fn send(&self, [pe, after]: [usize; 2], from: &Symmetric<u8>, to: &Symmetric<u8>) -> Result<()> {
        let mut counts = lock(&self.counts);
        let (calls, pieces) = counts.entry((pe, after)).or_default();
        *pieces += 1;
        let Some(queue) = self.queue(pe) else { return Ok(()) };
        queue.signal_wait_until(&self.ready.at(after)?, Compare::Ge, *calls, Some(after))?;
        queue.put_signal(to, from, &self.come.at(pe)?, Signal::Set(*pieces), after)
    }

    /// Waits for what was sent.
    fn receive(&self, [before, pe]: [usize; 2]) -> Result<()> {
        let (_, pieces) = self.counts(before, pe);
        let wait = |queue: &Queue| queue.signal_wait_until(&self.come.at(before)?, Compare::Ge, pieces, Some(before));
        self.queue(pe).map_or(Ok(()), wait)
    }

    /// From the first PE to the second.
    fn pass(&self, path: &[usize], from: &Symmetric<u8>, to: &Symmetric<u8>) -> Result<()> {
        self.say_ready(path)?;
        self.pieces(path, from, to, to, |_, _| Ok(()))
    }

    /// Each PE of the path says to the one before that its memory may be written.
    fn say_ready(&self, path: &[usize]) -> Result<()> {
        for pair in path.windows(2) {
            let mut counts = lock(&self.counts);
            let (calls, _) = counts.entry((pair[0], pair[1])).or_default();
            *calls += 1;
            if let Some(queue) = self.queue(pair[1]) {
                queue.signal_op(&self.ready.at(pair[1])?, Signal::Set(*calls), pair[0])?;
            }
        }
        Ok(())
    }

    fn counts(&self, from: usize, to: usize) -> (u64, u64) {
        lock(&self.counts).get(&(from, to)).copied().unwrap_or_default()
    }

    /// Pieces of the first PE's `from` go along the path: each PE gets one in its `to`, does with it what `merge` says, and sends the same
    /// bytes of `on`.
    fn pieces(
        &self,
        path: &[usize],
        from: &Symmetric<u8>,
        to: &Symmetric<u8>,
        on: &Symmetric<u8>,
        merge: impl Fn(&Queue, Range<usize>) -> Result<()>,
    ) -> Result<()> {
        let pieces: Vec<Range<usize>> = (0..to.len()).step_by(PIECE).map(|at| at..(at + PIECE).min(to.len())).collect();
        for (i, &pe) in path.iter().enumerate() {
            let (before, after) = (i.checked_sub(1).map(|i| path[i]), path.get(i + 1).copied());
            let Some(queue) = self.queue(pe) else { continue };
            if let Some(after) = after {
                let (calls, _) = self.counts(pe, after);
                queue.signal_wait_until(&self.ready.at(after)?, Compare::Ge, calls, Some(after))?;
            }
            for (number, range) in (1..).zip(&pieces) {
                if let Some(before) = before {
                    let come = self.counts(before, pe).1 + number;
                    queue.signal_wait_until(&self.come.at(before)?, Compare::Ge, come, Some(before))?;
                    merge(queue, range.clone())?;
                }
                if let Some(after) = after {
                    let source = if i == 0 { from } else { on };
                    let come = Signal::Set(self.counts(pe, after).1 + number);
                    let (there, here) = (to.slice(range.clone())?, source.slice(range.clone())?);
                    queue.put_signal(&there, &here, &self.come.at(pe)?, come, after)?;
                }
            }
        }
        let mut counts = lock(&self.counts);
        path.windows(2).for_each(|pair| counts.entry((pair[0], pair[1])).or_default().1 += pieces.len() as u64);
        Ok(())
    }

    /// Two memories, each of a length that a call needs.
    fn scratch(&self, len: usize) -> Result<[Symmetric<u8>; 2]> {
        let mut scratch = lock(&self.scratch);
        if scratch.as_ref().is_none_or(|[memory, _]| memory.len() < len) {
            *scratch = None;
            *scratch = Some([self.team.alloc(len)?, self.team.alloc(len)?]);
        }
        match &*scratch {
            Some([a, b]) => Ok([a.slice(0..len)?, b.slice(0..len)?]),
            None => Err(Error::invalid("collective", "there is no memory for parts")),
        }
    }
}
