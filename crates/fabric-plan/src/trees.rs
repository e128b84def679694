//! Plans made of trees: packs them, and for all-reduce chooses between two ways to do so.

use super::check::bound;
use super::net::Net;
use super::optimum::{equal_roots, free_roots, one_root, Roots};
use super::pack::{by_pieces, grow, pack, Growing, Packed};
use super::spanning::{orient, Oriented};
use super::split::split;
use super::{Request, Witness};
use crate::ratio::gcd;
use crate::{Ratio, Result};
use tandem_fabric_topology::Topology;

/// Trees with their weights, in units of `1 / scale` MB/s.
#[derive(Clone)]
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
pub(crate) fn forest(net: &Net, roots: &Roots, best: impl Fn(&Net) -> Result<Roots>) -> Result<Forest> {
    let (net, roots) = in_units(net, roots);
    if roots.0.total == 0 {
        return Ok(Forest { trees: Vec::new(), total: 0, scale: 1 });
    }
    let (roots, unit) = roots;
    let pieces = split(&net, &roots)?;
    let again = best(&pieces.net(&net))?;
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

/// All-reduce: trees that collect, trees with the same roots that spread, and the rate that they allow together; `known` gets the witness of the least bound
/// found. Most often each tree collects towards its root and spreads from it, so that it uses its links both ways.
///
/// First trees from freely chosen roots, for half of every capacity (Frank): this is best where the tightest sets of GPUs cover
/// the job. Else spanning trees of the undirected graph (Tutte, Nash-Williams), which is always best without helpers where links carry as much
/// back as forth. Where they do not, also trees of both kinds that have nothing in common but their roots.
pub(crate) fn all_reduce(
    topology: &Topology,
    request: &Request,
    net: &Net,
    known: &mut Option<Witness>,
) -> Result<([Forest; 2], Ratio)> {
    let symmetric = net.symmetric();
    let (roots, parts) = free_roots(&symmetric)?;
    let mut witnesses = vec![net.job.iter().map(|&v| vec![v]).collect(), covering(net, parts.clone(), true)];
    witnesses.push(covering(net, parts, false));
    for &v in &net.job {
        let inside = one_root(&symmetric, v)?.1;
        witnesses.push(covering(net, vec![net.job.iter().copied().filter(|&u| inside[u]).collect()], false));
    }
    let half = |trees: (i64, i64)| Ratio::new(trees.0.into(), 2 * i128::from(trees.1)).unwrap_or(Ratio::ZERO);
    let at_most = half((roots.total, roots.scale));
    let mut least = best_witness(topology, request, net, &witnesses)?;
    *known = Some(least.1.clone());
    let mut second = None;
    if at_most < least.0 {
        if let Some((forest, parts)) = undirected(&symmetric, &roots)? {
            witnesses.push(parts);
            least = best_witness(topology, request, net, &witnesses)?;
            *known = Some(least.1.clone());
            second = forest.rate().map(|rate| (forest, rate));
        }
    }
    // Relays may keep the first trees from what they could reach.
    let is_better = |than: Ratio| second.as_ref().is_some_and(|s| s.1 > than);
    let (forest, rate) = if is_better(at_most) {
        None
    } else {
        let first = forest(&symmetric, &roots, |n| Ok(free_roots(n)?.0))?;
        let rate = half((first.total, first.scale));
        (!is_better(rate)).then_some((first, rate))
    }
    .or(second)
    .ok_or_else(|| crate::Error::WrongPlan("no trees".into()))?;
    if rate < least.0 {
        if let Some((forests, more)) = in_turn(net)?.filter(|(_, more)| *more > rate) {
            return Ok((forests, more));
        }
    }
    Ok(([forest.clone(), forest], rate))
}

/// A reduce-scatter and an all-gather that share every link in proportion to their times. `None` where the GPUs are not joined.
fn in_turn(net: &Net) -> Result<Option<([Forest; 2], Ratio)>> {
    let equal = |net: &Net| forest(net, &equal_roots(net)?.0, |n| Ok(equal_roots(n)?.0));
    let forests = [equal(&net.reversed())?, equal(net)?];
    let rate = || {
        let [collect, spread] = [forests[0].rate()?, forests[1].rate()?];
        collect.times(spread)?.over(collect.plus(spread)?)
    };
    Ok(rate().and_then(|rate| Some((paired(&forests)?, rate))))
}

/// These trees, parted so that those of both forests have the same roots and shares in the same order. `None` where weights outgrow 64
/// bits.
fn paired([a, b]: &[Forest; 2]) -> Option<[Forest; 2]> {
    let g = i64::try_from(gcd(a.total.into(), b.total.into())).ok()?;
    let (times_a, times_b) = (b.total / g, a.total / g);
    let total = a.total.checked_mul(times_a)?;
    let mut out = [a, b].map(|_| Forest { trees: Vec::new(), total, scale: 1 });
    let mut left: Vec<i64> = b.trees.iter().map(|t| t.weight * times_b).collect();
    for tree in &a.trees {
        let mut need = tree.weight * times_a;
        for (other, left) in b.trees.iter().zip(&mut left).filter(|(other, _)| other.root == tree.root) {
            let weight = need.min(*left);
            if weight > 0 {
                (need, *left) = (need - weight, *left - weight);
                for (forest, tree) in out.iter_mut().zip([tree, other]) {
                    forest.trees.push(Packed { weight, ..tree.clone() });
                }
            }
        }
    }
    Some(out)
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

/// The least bound of these families of sets, each set with the fewest relays that make what enters it least, and of single cuts.
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
            Ok(net.devices(&reversed.cut(part, &others)?.1))
        });
        let witness = Witness::Parts(grown.collect::<Result<_>>()?);
        let rate = bound(topology, request, &witness)?;
        if best.as_ref().is_none_or(|b| rate < b.0) {
            best = Some((rate, witness));
        }
    }
    // The data of a set of GPUs has to leave it.
    let (first, others) = (net.job[0], &net.job[1..]);
    let pairs = others.iter().flat_map(|&v| [(first, v), (v, first)]);
    let cuts = pairs.map(|(from, to)| net.cut(&[from], &[to])).collect::<Result<Vec<_>>>()?;
    if let Some((_, inside)) = cuts.into_iter().min_by_key(|cut| cut.0) {
        let witness = Witness::Cut(net.devices(&inside));
        let rate = bound(topology, request, &witness)?;
        if best.as_ref().is_none_or(|b| rate < b.0) {
            best = Some((rate, witness));
        }
    }
    best.ok_or_else(|| crate::Error::Job("expected at least two GPUs".into()))
}

/// Packs spanning trees of the undirected graph between the GPUs, once relays are split off. Also the sets that show why there are no more of them.
fn undirected(net: &Net, roots: &Roots) -> Result<Option<(Forest, Vec<Vec<usize>>)>> {
    let (net, (roots, unit)) = in_units(net, roots);
    // Both directions of `pieces` have what its edges carry, in halves of a unit.
    let pieces = split(&net, &roots)?.both_ways();
    let Some(Oriented { net: directed, roots: all, parts }) = orient(&pieces.net(&net))? else { return Ok(None) };
    let mut once = pieces.scaled(all.scale, 1);
    once.0.retain(|(u, v), _| u < v);
    let grown = grow(directed, &all)?.into_iter().map(|tree| rooted(&net, tree.edges, tree.weight)).collect();
    let trees: Vec<Packed> =
        by_pieces(grown, &once).into_iter().map(|t| Packed { weight: t.weight * unit, ..t }).collect();
    let total = trees.iter().map(|t| t.weight).sum();
    Ok(Some((Forest { trees, total, scale: roots.scale * 2 * all.scale }, parts)))
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

#[cfg(test)]
mod tests {
    use super::super::Budget;
    use super::*;
    use tandem_fabric_topology::{Device, DeviceKind};

    /// A chain has its root in the middle, wherever the job begins, so that data takes the fewest steps.
    #[test]
    fn trees_are_directed_from_where_they_are_least_deep() {
        let device = |d| Device { name: format!("GPU{d}"), kind: DeviceKind::Gpu, attributes: Default::default() };
        let t = Topology::new("five", (0..5).map(device).collect(), Vec::new()).expect("a topology");
        for job in [[0, 1, 2, 3, 4], [4, 2, 0, 1, 3]] {
            let net = Net::new(&t, &job, &[], false, Budget::default().begin());
            let tree = rooted(&net, vec![(0, 1), (2, 1), (2, 3), (4, 3)], 7);
            assert_eq!((tree.nodes[0], tree.weight), (2, 7));
            let depths: Vec<(usize, usize)> = tree.nodes.iter().copied().zip(tree.depth).collect();
            assert_eq!(depths, [(2, 0), (1, 1), (3, 1), (0, 2), (4, 2)]);
            assert_eq!(tree.edges, [(2, 1), (2, 3), (1, 0), (3, 4)]);
        }
    }
}
