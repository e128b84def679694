//! Plans made of trees: packs them, and for all-reduce chooses between two ways to do so.

use super::check::bound;
use super::lp;
use super::net::Net;
use super::optimum::{free_roots, one_root, Roots};
use super::pack::{by_pieces, pack, Growing, Packed};
use super::split::{split, Pieces};
use super::{Request, Witness};
use crate::ratio::gcd;
use crate::topology::Topology;
use crate::{Ratio, Result};
use std::collections::BTreeMap;

/// Trees with their weights, in units of `1 / scale` MB/s.
pub(crate) struct Forest {
    pub(crate) trees: Vec<Packed>,
    pub(crate) total: i64,
    pub(crate) scale: i64,
}

impl Forest {
    /// The sum of the trees in MB/s.
    pub(crate) fn rate(&self) -> Option<Ratio> {
        Ratio::new(self.total.into(), self.scale.into())
    }
}

/// Splits off the relays and packs as much as `best` says is possible. Where a relay is entered by more or less than leaves it,
/// splitting may lose something; then as much as is left is packed.
pub(crate) fn forest(net: &Net, roots: &Roots, best: impl Fn(&Net) -> Roots) -> Result<Forest> {
    let (net, roots) = in_units(net, roots);
    if roots.0.total == 0 {
        return Ok(Forest { trees: Vec::new(), total: 0, scale: 1 });
    }
    let (roots, unit) = roots;
    let pieces = split(&net, &roots);
    let again = best(&pieces.net(&net));
    let (pieces, roots) = if Ratio::new(again.total.into(), again.scale.into()) < Ratio::new(roots.total.into(), 1) {
        (pieces.scaled(again.scale, 1), Roots { scale: roots.scale * again.scale, ..again })
    } else {
        (pieces, roots)
    };
    let trees = pack(&net, &pieces, &roots)?;
    // Units are 1 / scale MB/s times `unit`.
    let trees = trees.into_iter().map(|t| Packed { weight: t.weight * unit, ..t }).collect();
    Ok(Forest { trees, total: roots.total * unit, scale: roots.scale })
}

/// Capacities and roots in the largest unit that divides them all; the unit is counted in `1 / scale` MB/s.
fn in_units(net: &Net, roots: &Roots) -> (Net, (Roots, i64)) {
    let mut all = roots.at.clone();
    all.push(roots.total);
    let unit = net.unit(roots.scale, &all);
    let at = roots.at.iter().map(|x| x / unit).collect();
    let scaled = net.scaled(roots.scale, unit);
    (scaled, (Roots { at, total: roots.total / unit, scale: roots.scale }, unit))
}

/// All-reduce: each tree collects towards its root and spreads from it, so that it uses its links both ways. Returns the forest,
/// the rate that it allows, and the witness of the least bound found.
///
/// First trees from freely chosen roots, for half of every capacity (Frank): this is best where the tightest sets of GPUs cover
/// the job. Else spanning trees of the undirected graph (Tutte, Nash-Williams), by linear programming.
pub(crate) fn all_reduce(topology: &Topology, request: &Request, net: &Net) -> Result<(Forest, Ratio, Witness)> {
    let symmetric = net.symmetric();
    let (roots, parts) = free_roots(&symmetric);
    let mut witnesses = vec![net.job.iter().map(|&v| vec![v]).collect(), covering(net, parts.clone(), true)];
    witnesses.push(covering(net, parts, false));
    for &v in &net.job {
        let inside = one_root(&symmetric, v).1;
        witnesses.push(covering(net, vec![net.job.iter().copied().filter(|&u| inside[u]).collect()], false));
    }
    let first = forest(&symmetric, &roots, |n| free_roots(n).0)?;
    let half = first.rate().and_then(|r| r.over(Ratio::whole(2))).unwrap_or(Ratio::ZERO);
    let mut least = best_witness(topology, request, net, &witnesses)?;
    if half >= least.0 || first.total == 0 {
        return Ok((first, half, least.1));
    }
    if let Some((second, parts)) = undirected(&symmetric, &roots) {
        witnesses.extend(parts);
        least = best_witness(topology, request, net, &witnesses)?;
        if let Some(rate) = second.rate().filter(|r| *r > half) {
            return Ok((second, rate, least.1));
        }
    }
    Ok((first, half, least.1))
}

/// Sets that hold every GPU: the missing ones each in a set of its own, or together in one.
fn covering(net: &Net, mut parts: Vec<Vec<usize>>, is_apart: bool) -> Vec<Vec<usize>> {
    let rest: Vec<usize> = net.job.iter().copied().filter(|v| !parts.iter().flatten().any(|u| u == v)).collect();
    if is_apart {
        parts.extend(rest.into_iter().map(|v| vec![v]));
    } else if !rest.is_empty() {
        parts.push(rest);
    }
    parts
}

/// The least bound of these families of sets; each set takes the fewest relays that make what enters it least.
fn best_witness(
    topology: &Topology,
    request: &Request,
    net: &Net,
    all: &[Vec<Vec<usize>>],
) -> Result<(Ratio, Witness)> {
    let reversed = net.reversed();
    let mut best: Option<(Ratio, Witness)> = None;
    for parts in all.iter().filter(|p| p.len() > 1) {
        let grown = parts.iter().map(|part| {
            let others: Vec<usize> = net.job.iter().copied().filter(|v| !part.contains(v)).collect();
            net.devices(&reversed.cut(part, &others).1)
        });
        let witness = Witness::Parts(grown.collect());
        let rate = bound(topology, request, &witness)?;
        if best.as_ref().is_none_or(|b| rate < b.0) {
            best = Some((rate, witness));
        }
    }
    best.ok_or_else(|| crate::Error::Job("expected at least two GPUs".into()))
}

/// Packs spanning trees of the undirected graph between the GPUs. Also families of GPUs that may show why there are no more.
fn undirected(net: &Net, roots: &Roots) -> Option<(Forest, Vec<Vec<Vec<usize>>>)> {
    let (net, (roots, unit)) = in_units(net, roots);
    let mut pieces: Pieces = split(&net, &roots).both_ways();
    pieces.0.retain(|(u, v), _| u < v);
    let edges: Vec<(usize, usize)> = pieces.0.keys().copied().collect();
    let graph = pieces.net(&net);
    let capacity: Vec<i64> = edges.iter().map(|&(u, v)| graph.at(u, v)).collect();
    let tree = |prices: &[Ratio]| {
        let mut order: Vec<usize> = (0..edges.len()).collect();
        order.sort_by_key(|&e| prices[e]);
        let mut part: Vec<usize> = (0..net.n).collect();
        let mut tree = Vec::new();
        for e in order {
            let (a, b) = (part[edges[e].0], part[edges[e].1]);
            if a != b {
                part.iter_mut().filter(|p| **p == a).for_each(|p| *p = b);
                tree.push(e);
            }
        }
        let takes = tree.iter().map(|&e| (e, 1)).collect();
        (tree.len() + 1 == net.job.len()).then_some((tree, takes))
    };
    let packing = lp::pack(&capacity, tree)?;
    let exact = packing.columns.iter().try_fold(1i128, |l, (_, y)| (l / gcd(l, y.den())).checked_mul(y.den()));
    // Where weights in the common denominator would outgrow 64 bits, they are rounded down.
    let most = i128::from(i64::MAX / 64) / capacity.iter().map(|&c| i128::from(c)).sum::<i128>().max(1);
    let common = i64::try_from(exact.filter(|l| *l <= most).unwrap_or(most.min(1 << 30))).ok()?;
    let mut grown = Vec::new();
    for (tree, y) in &packing.columns {
        let weight = i64::try_from(y.num().checked_mul(common.into())? / y.den()).ok()?;
        if weight > 0 {
            grown.push(rooted(&net, tree.iter().map(|&e| edges[e]).collect(), weight));
        }
    }
    let pieces = pieces.scaled(common, 1);
    let trees: Vec<Packed> =
        by_pieces(grown, &pieces).into_iter().map(|t| Packed { weight: t.weight * unit, ..t }).collect();
    let total = trees.iter().map(|t| t.weight).sum();
    // Links up to a price join GPUs to sets.
    let mut families = Vec::new();
    for limit in &packing.prices {
        let mut part: BTreeMap<usize, usize> = net.job.iter().map(|&v| (v, v)).collect();
        for (&(u, v), _) in edges.iter().zip(&packing.prices).filter(|(_, p)| *p < limit) {
            let (a, b) = (part[&u], part[&v]);
            part.values_mut().filter(|p| **p == a).for_each(|p| *p = b);
        }
        let mut sets: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        part.into_iter().for_each(|(v, p)| sets.entry(p).or_default().push(v));
        families.push(sets.into_values().collect());
    }
    families.sort();
    families.dedup();
    Some((Forest { trees, total, scale: roots.scale * 2 * common }, families))
}

/// Directs a tree away from the GPU from which it is least deep.
fn rooted(net: &Net, edges: Vec<(usize, usize)>, weight: i64) -> Growing {
    let from = |root: usize| {
        let mut tree = Growing { weight, nodes: vec![root], edges: Vec::new(), depth: vec![0] };
        let mut at = 0;
        while at < tree.nodes.len() {
            let u = tree.nodes[at];
            for &(a, b) in &edges {
                let v = if a == u { b } else { a };
                if (a == u || b == u) && !tree.nodes.contains(&v) {
                    tree.nodes.push(v);
                    tree.edges.push((u, v));
                    tree.depth.push(tree.depth[at] + 1);
                }
            }
            at += 1;
        }
        tree
    };
    let trees = net.job.iter().map(|&v| from(v));
    trees.min_by_key(|t| t.depth.iter().max().copied()).unwrap_or_else(|| from(net.job[0]))
}
