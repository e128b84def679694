//! Plans over two levels: inside of each node one of [`crate::plan()`], and between nodes moves from one node's network to another's, with
//! bounds on what each network has to carry.
//!
//! The model: every node reaches every other through a network of its own, which carries its rate each way at the same time. Data go in
//! pieces, so that a node sends on what has come while more comes. Then an operation takes as long as the busiest network carries its amount.

use crate::{Error, Operation, Ratio, Result};
use std::fmt::Write;

/// One amount that goes from a node to another one. Moves of a step run beside each other, and so do steps as far as pieces allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// The step.
    pub step: usize,
    /// The node that sends.
    pub from: usize,
    /// The node that receives.
    pub to: usize,
    /// How much, in parts: of an all-gather what each PE gives, of a reduce-scatter and an all-to-all what each PE gets from each; of the
    /// others the whole.
    pub amount: Ratio,
    /// Whose data these are, by node; of a reduction, whose have been combined.
    pub of: Vec<usize>,
}

/// What moves between nodes in one operation.
///
/// | operation | moves | most that a network carries one way | bound |
/// |---|---|---|---|
/// | broadcast, reduce | a chain of nodes | the whole | the same: it must leave the root, and enter all others |
/// | all-gather | a ring | all but the least node's own | the same: each node lacks all but its own |
/// | all-to-all | directly | what one node's PEs and all others have for each other | the same |
/// | all-reduce | a reduction, then a broadcast | twice the whole, of two nodes the whole | the whole |
/// | reduce-scatter | a reduction, then a part to each | stated by each plan | the results of a node must enter it |
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Levels {
    /// What is done.
    pub operation: Operation,
    /// By node: its PEs.
    pub pes: Vec<usize>,
    /// In order.
    pub moves: Vec<Move>,
    /// By node: the least that any plan brings in, and out.
    pub bounds: Vec<(Ratio, Ratio)>,
}

impl Levels {
    /// Of nodes with so many PEs each; `root` is the node of a broadcast's or a reduction's root.
    ///
    /// # Errors
    /// No nodes, one without PEs, or a root that is none of them; an operation that goes between two PEs, or to the host.
    pub fn new(operation: Operation, pes: &[usize], root: usize) -> Result<Self> {
        if root >= pes.len() || pes.contains(&0) {
            return Err(Error::Job(format!("node {root} of {}, and each has at least one PE", pes.len())));
        }
        let nodes = pes.len();
        let all: usize = pes.iter().sum();
        let (one, many) = (Ratio::ONE, |n: usize| Ratio::whole(n as i64));
        let mut moves = Vec::new();
        let chain = |moves: &mut Vec<Move>, reversed: bool, root: usize, amount: Ratio| {
            let first = moves.last().map_or(0, |last: &Move| last.step + 1);
            for hop in 1..nodes {
                // A reduction ends at the root, with those after it in front.
                let (from, to) = if reversed { (hop, hop + 1) } else { (hop - 1, hop) };
                let (from, to) = ((root + from) % nodes, (root + to) % nodes);
                let of = if reversed { (1..=hop).map(|i| (root + i) % nodes).collect() } else { vec![root] };
                moves.push(Move { step: first + hop - 1, from, to, amount, of });
            }
        };
        let alone = nodes == 1;
        let zero = Ratio::ZERO;
        let bounds: Vec<(Ratio, Ratio)> = match operation {
            _ if alone => vec![(zero, zero)],
            Operation::Broadcast => {
                chain(&mut moves, false, root, one);
                (0..nodes).map(|node| if node == root { (zero, one) } else { (one, zero) }).collect()
            }
            Operation::Reduce => {
                chain(&mut moves, true, root, one);
                (0..nodes).map(|node| if node == root { (one, zero) } else { (zero, one) }).collect()
            }
            Operation::AllReduce => {
                chain(&mut moves, true, 0, one);
                chain(&mut moves, false, 0, one);
                moves.iter_mut().skip(nodes - 1).for_each(|later| later.of = (0..nodes).collect());
                vec![(one, one); nodes]
            }
            Operation::AllGather => {
                for step in 0..nodes - 1 {
                    for from in 0..nodes {
                        let of = (from + nodes - step) % nodes;
                        moves.push(Move { step, from, to: (from + 1) % nodes, amount: many(pes[of]), of: vec![of] });
                    }
                }
                pes.iter().map(|&own| (many(all - own), many(own))).collect()
            }
            Operation::ReduceScatter => {
                chain(&mut moves, true, 0, many(all));
                let step = nodes - 1;
                let part = |to: usize| Move { step, from: 0, to, amount: many(pes[to]), of: (0..nodes).collect() };
                moves.extend((1..nodes).map(part));
                pes.iter().map(|&own| (many(own), many(all - own))).collect()
            }
            Operation::AllToAll => {
                for (from, &here) in pes.iter().enumerate() {
                    for (to, &there) in pes.iter().enumerate().filter(|(to, _)| *to != from) {
                        moves.push(Move { step: 0, from, to, amount: many(here * there), of: vec![from] });
                    }
                }
                pes.iter().map(|&own| (many(own * (all - own)), many(own * (all - own)))).collect()
            }
            other => {
                return Err(Error::Job(format!("{} has no plan over nodes; it joins two ends", other.name())));
            }
        };
        Ok(Levels { operation, pes: pes.to_vec(), moves, bounds })
    }

    /// What comes into a node's network, and what leaves through it.
    pub fn carried(&self, node: usize) -> (Ratio, Ratio) {
        let sum = |is: &dyn Fn(&Move) -> bool| {
            let amounts = self.moves.iter().filter(|one| is(one)).map(|one| one.amount);
            amounts.fold(Ratio::ZERO, |sum, amount| sum.plus(amount).unwrap_or(sum))
        };
        (sum(&|one| one.to == node), sum(&|one| one.from == node))
    }

    /// The most that a node's network carries one way.
    pub fn most(&self) -> Ratio {
        (0..self.pes.len()).map(|node| self.carried(node)).map(|(a, b)| a.max(b)).max().unwrap_or(Ratio::ZERO)
    }

    /// The most that any plan has one network carry one way at least.
    pub fn bound(&self) -> Ratio {
        self.bounds.iter().map(|&(a, b)| a.max(b)).max().unwrap_or(Ratio::ZERO)
    }

    /// Whether no plan has the busiest network carry less.
    pub fn is_best(&self) -> bool {
        self.most() == self.bound()
    }

    /// A page that says it all; `part` is the bytes of a part.
    pub fn to_text(&self, part: u64) -> String {
        let bytes = |amount: Ratio| format!("{:.0} bytes", amount.to_f64() * part as f64);
        let list = |nodes: &[usize]| nodes.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        let mut out = format!("{} over {} nodes with {} PEs\n", self.operation.name(), self.pes.len(), list(&self.pes));
        // Writing to a string does not fail.
        for one in &self.moves {
            let Move { step, from, to, amount, of } = one;
            let _ = writeln!(out, "step {step}: node {from} -> node {to}: {} of node {}", bytes(*amount), list(of));
        }
        for (node, &(least_in, least_out)) in self.bounds.iter().enumerate() {
            let (comes, leaves) = self.carried(node);
            let (comes, leaves) = (bytes(comes), bytes(leaves));
            let (least_in, least_out) = (bytes(least_in), bytes(least_out));
            let _ = writeln!(out, "node {node}: in {comes} (at least {least_in}), out {leaves} (at least {least_out})");
        }
        let verdict = if self.is_best() { "no plan has less" } else { "a plan may have less" };
        let _ = writeln!(out, "busiest network: {}; bound {}: {verdict}", bytes(self.most()), bytes(self.bound()));
        out
    }
}
