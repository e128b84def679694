//! Packs spanning out-trees between the GPUs of a job, given how much starts at each.
//!
//! Trees grow an edge at a time. An edge may be used by as much of a tree as leaves, in every set of GPUs, enough entering
//! capacity for the trees that are not yet in it (Edmonds' condition); one maximum flow tells how much (after ForestColl and
//! Berczi, Frank 2010). Where that is not the whole weight of the tree, the tree is parted in two.

use super::flow::INFINITE;
use super::net::Net;
use super::optimum::Roots;
use super::split::Pieces;
use crate::{Error, Result};

/// A tree that spans the job, with its weight; each edge is a way through relays, parents before children.
#[derive(Debug, Clone)]
pub(crate) struct Packed {
    pub(crate) root: usize,
    pub(crate) weight: i64,
    pub(crate) edges: Vec<Vec<usize>>,
}

/// A tree whose edges are not yet ways.
#[derive(Clone)]
pub(crate) struct Growing {
    pub(crate) weight: i64,
    /// In the order in which they joined, the root first.
    pub(crate) nodes: Vec<usize>,
    pub(crate) edges: Vec<(usize, usize)>,
    pub(crate) depth: Vec<usize>,
}

/// Packs trees of `roots` into `pieces`.
pub(crate) fn pack(like: &Net, pieces: &Pieces, roots: &Roots) -> Result<Vec<Packed>> {
    Ok(by_pieces(grow(pieces.net(like), roots)?, pieces))
}

/// Packs trees of `roots` into a graph without relays.
pub(crate) fn grow(mut net: Net, roots: &Roots) -> Result<Vec<Growing>> {
    let start = |&v: &usize| Growing { weight: roots.at[v], nodes: vec![v], edges: Vec::new(), depth: vec![0] };
    let mut growing: Vec<Growing> = net.job.iter().map(start).filter(|g| g.weight > 0).collect();
    let mut done = Vec::new();
    while let Some(mut tree) = growing.pop() {
        while tree.nodes.len() < net.job.len() {
            let (x, y, amount) = next_edge(&net, &tree, &growing)?;
            if amount < tree.weight {
                growing.push(Growing { weight: tree.weight - amount, ..tree.clone() });
                tree.weight = amount;
            }
            let parent = tree.nodes.iter().position(|&n| n == x).unwrap_or(0);
            tree.depth.push(tree.depth[parent] + 1);
            tree.nodes.push(y);
            tree.edges.push((x, y));
            net.add(x, y, -amount);
        }
        done.push(tree);
    }
    Ok(done)
}

/// The edge nearest the root that can take the whole tree, else the one that can take most of it.
fn next_edge(net: &Net, tree: &Growing, others: &[Growing]) -> Result<(usize, usize, i64)> {
    let mut order: Vec<usize> = (0..tree.nodes.len()).collect();
    order.sort_by_key(|&i| tree.depth[i]);
    let mut best = (0, 0, 0);
    for x in order.into_iter().map(|i| tree.nodes[i]) {
        for &y in net.job.iter().filter(|y| !tree.nodes.contains(y)) {
            let most = net.at(x, y).min(tree.weight);
            if most > best.2 {
                let amount = room(net, others, x, y, most)?;
                if amount > best.2 {
                    best = (x, y, amount);
                }
                if amount == tree.weight {
                    return Ok(best);
                }
            }
        }
    }
    if best.2 == 0 {
        return Err(Error::WrongPlan("a tree cannot grow; the capacities do not meet Edmonds' condition".into()));
    }
    Ok(best)
}

/// How much of a tree may take the edge `(x, y)`, at most `most`.
fn room(net: &Net, others: &[Growing], x: usize, y: usize, most: i64) -> Result<i64> {
    let mut flow = net.flow(others.len());
    let mut need = 0;
    for (i, other) in others.iter().enumerate() {
        flow.edge(x, net.n + i, other.weight);
        for &v in &other.nodes {
            flow.edge(net.n + i, v, INFINITE);
        }
        need += other.weight;
    }
    Ok((flow.run(x, y, need + most)? - need).min(most))
}

/// Gives every edge of every tree its pieces, parting trees where a piece is smaller than the tree. Where pieces exist only for
/// the other direction, they are turned round.
pub(crate) fn by_pieces(trees: Vec<Growing>, pieces: &Pieces) -> Vec<Packed> {
    let mut pieces = pieces.clone();
    // The shortest ways are taken first, from the end.
    pieces.0.values_mut().for_each(|p| p.sort_by_key(|(way, _)| std::cmp::Reverse(way.len())));
    let mut out = Vec::new();
    for tree in trees {
        let key =
            |pieces: &Pieces, (x, y): (usize, usize)| if pieces.0.contains_key(&(x, y)) { (x, y) } else { (y, x) };
        let mut left = tree.weight;
        while left > 0 {
            let mut part = left;
            let mut edges = Vec::with_capacity(tree.edges.len());
            for &(x, y) in &tree.edges {
                let last = pieces.0.get(&key(&pieces, (x, y))).and_then(|p| p.last());
                let (mut way, room) = last.cloned().unwrap_or((vec![x, y], 0));
                if way[0] != x {
                    way.reverse();
                }
                part = part.min(room);
                edges.push(way);
            }
            if part == 0 {
                break; // cannot be, since the trees fit; the checker of plans would report what is missing
            }
            for &edge in &tree.edges {
                let key = key(&pieces, edge);
                if let Some(p) = pieces.0.get_mut(&key) {
                    if let Some(last) = p.last_mut() {
                        last.1 -= part;
                    }
                    if p.last().is_some_and(|last| last.1 == 0) {
                        p.pop();
                    }
                }
            }
            out.push(Packed { root: tree.nodes[0], weight: part, edges });
            left -= part;
        }
    }
    out
}
