//! Plans that send bytes along paths: from one place to others (a flow), and from every GPU to every other.

use super::flow::INFINITE;
use super::lp;
use super::net::Net;
use crate::{Error, Ratio, Result};
use std::collections::BTreeMap;

/// Fractions overflow.
pub(crate) fn too_unlike() -> Error {
    Error::Job("the rates of the links are too unlike for exact planning".into())
}

/// A path and its weight.
pub(crate) struct Algorithm {
    pub(crate) nodes: Vec<usize>,
    pub(crate) weight: Ratio,
}

/// Equal parts from `from` (taken as one place) to each of `to`: the ways, in MB/s, and the cut's nodes.
pub(crate) fn spread(net: &Net, from: &[usize], to: &[usize]) -> Result<(Vec<Algorithm>, Vec<bool>)> {
    let (s, t) = (net.n, net.n + 1);
    let targets = to.len() as i64;
    // Each target gets p / q: at first all that could leave the source.
    let first: Vec<bool> = (0..net.n).map(|u| from.contains(&u)).collect();
    let (mut p, mut q, mut inside) = (net.leaving(&first), targets, first);
    loop {
        let scaled = net.scaled(q, 1);
        let mut flow = scaled.flow(2);
        from.iter().for_each(|&u| {
            flow.edge(s, u, INFINITE);
        });
        to.iter().for_each(|&v| {
            flow.edge(v, t, p);
        });
        if flow.run(s, t, INFINITE)? < targets * p {
            inside = flow.reached(s);
            inside.truncate(net.n);
            let short = to.iter().filter(|&&v| !inside[v]).count() as i64;
            (p, q) = (net.leaving(&inside), short);
            continue;
        }
        let over = scaled.edges().enumerate().map(|(i, (u, v, _))| ((u, v), flow.over(2 * i))).filter(|e| e.1 > 0);
        let mut over: BTreeMap<(usize, usize), i64> = over.collect();
        let mut need: Vec<i64> = (0..net.n).map(|v| if to.contains(&v) { p } else { 0 }).collect();
        let mut ways = Vec::new();
        for &u in from {
            while let Some((nodes, weight)) = follow(&mut over, &mut need, u) {
                let weight = Ratio::new(weight.into(), q.into()).ok_or_else(too_unlike)?;
                ways.push(Algorithm { nodes, weight });
            }
        }
        return Ok((ways, inside));
    }
}

/// Takes one path of a flow that begins at `u` and ends where something is needed; circles are taken away.
fn follow(over: &mut BTreeMap<(usize, usize), i64>, need: &mut [i64], u: usize) -> Option<(Vec<usize>, i64)> {
    let mut nodes = vec![u];
    loop {
        let last = nodes[nodes.len() - 1];
        let least = |nodes: &[usize], over: &BTreeMap<(usize, usize), i64>| {
            nodes.windows(2).map(|w| over.get(&(w[0], w[1])).copied().unwrap_or(0)).min().unwrap_or(0)
        };
        let lower = |nodes: &[usize], over: &mut BTreeMap<(usize, usize), i64>, by: i64| {
            nodes.windows(2).for_each(|w| {
                if let Some(x) = over.get_mut(&(w[0], w[1])) {
                    *x -= by;
                }
            });
            over.retain(|_, x| *x > 0);
        };
        if need[last] > 0 && nodes.len() > 1 {
            let weight = need[last].min(least(&nodes, over));
            need[last] -= weight;
            lower(&nodes, over, weight);
            return Some((nodes, weight));
        }
        let next = over.range((last, 0)..(last + 1, 0)).next()?.0 .1;
        if let Some(i) = nodes.iter().position(|&x| x == next) {
            let mut circle = nodes[i..].to_vec();
            circle.push(next);
            let by = least(&circle, over);
            lower(&circle, over, by);
            nodes.truncate(i + 1);
            continue;
        }
        nodes.push(next);
    }
}

/// All-to-all: the rate from every GPU to every other in MB/s, the ways as shares of that, and a price of each edge, which bounds it.
pub(crate) struct Exchange {
    pub(crate) rate: Ratio,
    pub(crate) ways: Vec<Algorithm>,
    pub(crate) prices: Vec<(usize, usize, Ratio)>,
}

/// The greatest equal rate from every GPU to every other: a linear program over trees of paths. `None` where some pair is not joined or fractions
/// overflow.
pub(crate) fn exchange(net: &Net) -> Option<Exchange> {
    let edges: Vec<(usize, usize, i64)> = net.edges().collect();
    let index: BTreeMap<(usize, usize), usize> = edges.iter().enumerate().map(|(i, e)| ((e.0, e.1), i)).collect();
    let capacity: Vec<i64> = edges.iter().map(|e| e.2).collect();
    let cheapest = |prices: &[f64]| net.job.iter().map(|&s| tree(net, s, &index, prices)).collect::<Option<Vec<_>>>();
    // What all capacity costs over what the cheapest trees cost: no rate is greater.
    let worth = |prices: &[Ratio]| {
        let all = capacity.iter().zip(prices).try_fold(Ratio::ZERO, |s, (c, p)| s.plus(p.times(Ratio::whole(*c))?))?;
        let mut cost = Ratio::ZERO;
        for &s in &net.job {
            let far = shortest(net, s, Ratio::ZERO, |u, v, d: Ratio| d.plus(prices[index[&(u, v)]]))?;
            for &t in &net.job {
                cost = cost.plus(far[t]?.0)?;
            }
        }
        all.over(cost)
    };
    let priced = |prices: &[Ratio]| edges.iter().zip(prices).map(|(e, p)| (e.0, e.1, *p)).collect();
    // Often the shortest paths are best: see whether equal prices, or prices by slowness, prove it.
    let most = capacity.iter().copied().max()?;
    for is_slowness in [false, true] {
        let price = |c: &i64| if is_slowness { Ratio::new(most.into(), (*c).into()) } else { Some(Ratio::ONE) };
        let prices = capacity.iter().map(price).collect::<Option<Vec<_>>>()?;
        let trees = cheapest(&prices.iter().map(|p| p.to_f64()).collect::<Vec<_>>())?;
        let mut loads = vec![0; edges.len()];
        trees.iter().flat_map(|t| &t.1).for_each(|&(e, load)| loads[e] += load);
        let rates = capacity.iter().zip(&loads).filter(|(_, load)| **load > 0);
        let rate = rates.map(|(&c, &load)| Ratio::new(c.into(), load.into())).collect::<Option<Vec<_>>>()?;
        let rate = rate.into_iter().min()?;
        if worth(&prices) == Some(rate) {
            let ways =
                trees.into_iter().flat_map(|t| t.0).map(|nodes| Algorithm { nodes, weight: Ratio::ONE }).collect();
            return Some(Exchange { rate, ways, prices: priced(&prices) });
        }
    }
    let packing = lp::pack(&capacity, cheapest, worth, &net.clock)?;
    let mut sum: BTreeMap<&Vec<usize>, Ratio> = BTreeMap::new();
    for ((paths, _), share) in packing.trees.iter().flatten() {
        for path in paths {
            let weight = sum.entry(path).or_insert(Ratio::ZERO);
            *weight = weight.plus(*share)?;
        }
    }
    let ways = sum.into_iter().map(|(path, weight)| Algorithm { nodes: path.clone(), weight }).collect();
    Some(Exchange { rate: packing.rate, ways, prices: priced(&packing.prices) })
}

/// The shortest paths from `s` to all other GPUs of the job, and how many of them take each edge.
fn tree(
    net: &Net,
    s: usize,
    index: &BTreeMap<(usize, usize), usize>,
    prices: &[f64],
) -> Option<lp::Tree<Vec<Vec<usize>>>> {
    let far = shortest(net, s, 0.0, |u, v, d: f64| Some(d + prices[index[&(u, v)]]))?;
    let mut loads: BTreeMap<usize, i64> = BTreeMap::new();
    let mut paths = Vec::with_capacity(net.job.len());
    for &t in net.job.iter().filter(|&&t| t != s) {
        let mut path = vec![t];
        while path[path.len() - 1] != s {
            let last = path[path.len() - 1];
            path.push(far[last]?.2);
            *loads.entry(index[&(path[path.len() - 1], last)]).or_default() += 1;
        }
        path.reverse();
        paths.push(path);
    }
    Some((paths, loads.into_iter().collect()))
}

/// Shortest paths by price and then by hops: of each node both, and the node before it. `None` where fractions overflow.
fn shortest<P: Copy + PartialOrd>(
    net: &Net,
    s: usize,
    zero: P,
    beyond: impl Fn(usize, usize, P) -> Option<P>,
) -> Option<Vec<Option<(P, usize, usize)>>> {
    let mut best: Vec<Option<(P, usize, usize)>> = vec![None; net.n];
    let mut is_done = vec![false; net.n];
    best[s] = Some((zero, 0, s));
    let is_less = |a: &(P, usize, usize), b: &(P, usize, usize)| (a.0, a.1) < (b.0, b.1);
    loop {
        let mut next: Option<usize> = None;
        for u in (0..net.n).filter(|&u| !is_done[u]) {
            let is_nearer = |n: usize| best[u].zip(best[n]).is_some_and(|(a, b)| is_less(&a, &b));
            if best[u].is_some() && next.is_none_or(is_nearer) {
                next = Some(u);
            }
        }
        let Some((u, (cost, hops, _))) = next.and_then(|u| Some((u, best[u]?))) else { return Some(best) };
        is_done[u] = true;
        for v in (0..net.n).filter(|&v| net.at(u, v) > 0 && !is_done[v]) {
            let new = (beyond(u, v, cost)?, hops + 1, u);
            if best[v].is_none_or(|old| is_less(&new, &old)) {
                best[v] = Some(new);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Budget;
    use super::*;
    use tandem_fabric_topology::{Device, DeviceKind, Link, LinkKind, Rate, Topology};

    /// Where links cost nothing, the way of fewest hops is taken, though another one is found first.
    #[test]
    fn of_ways_that_cost_the_same_the_shortest_is_taken() {
        let device = |d| Device { name: format!("GPU{d}"), kind: DeviceKind::Gpu, attributes: BTreeMap::new() };
        let rate = Rate::from_gbs(1.0).expect("a rate");
        let link = |(a, b)| Link { a, b, kind: LinkKind::NvLink, count: 1, forth: rate, back: rate };
        let links = [(0, 1), (1, 2), (2, 4), (0, 3), (3, 4)].map(link);
        let t = Topology::new("two ways", (0..5).map(device).collect(), links.into()).expect("a topology");
        let net = Net::new(&t, &[0, 1, 2, 3, 4], &[], false, Budget::default().begin());
        let index = net.edges().enumerate().map(|(i, e)| ((e.0, e.1), i)).collect();
        let (paths, loads) = tree(&net, 0, &index, &vec![0.0; net.edges().count()]).expect("a tree");
        assert_eq!(paths, [vec![0, 1], vec![0, 1, 2], vec![0, 3], vec![0, 3, 4]]);
        assert_eq!(loads.iter().map(|l| l.1).sum::<i64>(), 6);
        let far = shortest(&net, 0, 0.0, |_, _, d| Some(d)).expect("no overflow");
        assert_eq!(far.iter().map(|f| f.expect("reached").1).collect::<Vec<_>>(), [0, 1, 2, 1, 2]);
    }
}
