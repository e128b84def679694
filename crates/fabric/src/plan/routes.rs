//! Plans that send bytes along paths: from one place to others (a flow), and from every GPU to every other.

use super::flow::INFINITE;
use super::lp;
use super::net::Net;
use crate::Ratio;
use std::collections::BTreeMap;

/// A path and its weight.
pub(crate) struct Way {
    pub(crate) nodes: Vec<usize>,
    pub(crate) weight: Ratio,
}

/// Equal parts from `from` (taken as one place) to each of `to`: the ways, in MB/s, and the cut's nodes.
pub(crate) fn spread(net: &Net, from: &[usize], to: &[usize]) -> Option<(Vec<Way>, Vec<bool>)> {
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
        if flow.run(s, t, INFINITE) < targets * p {
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
                ways.push(Way { nodes, weight: Ratio::new(weight.into(), q.into())? });
            }
        }
        return Some((ways, inside));
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

/// All-to-all: the ways, in MB/s (the same sum for each ordered pair), and a price of each edge, which bounds it.
pub(crate) struct Exchange {
    pub(crate) ways: Vec<Way>,
    pub(crate) prices: Vec<(usize, usize, Ratio)>,
}

/// The greatest equal rate from every GPU to every other: a linear program whose columns are one shortest path for each pair.
/// `None` where some pair is not joined.
pub(crate) fn exchange(net: &Net) -> Option<Exchange> {
    let edges: Vec<(usize, usize, i64)> = net.edges().collect();
    let index: BTreeMap<(usize, usize), usize> = edges.iter().enumerate().map(|(i, e)| ((e.0, e.1), i)).collect();
    let capacity: Vec<i64> = edges.iter().map(|e| e.2).collect();
    let column = |prices: &[Ratio]| -> Option<lp::Column<Vec<Vec<usize>>>> {
        let mut paths = Vec::new();
        let mut loads: BTreeMap<usize, i64> = BTreeMap::new();
        for &s in &net.job {
            let before = shortest(net, s, |u, v| prices[index[&(u, v)]])?;
            for &t in net.job.iter().filter(|&&t| t != s) {
                let mut path = vec![t];
                while path[path.len() - 1] != s {
                    let last = path[path.len() - 1];
                    path.push(before[last]?);
                    *loads.entry(index[&(path[path.len() - 1], last)]).or_default() += 1;
                }
                path.reverse();
                paths.push(path);
            }
        }
        Some((paths, loads.into_iter().collect()))
    };
    let priced = |prices: &[Ratio]| edges.iter().zip(prices).map(|(e, p)| (e.0, e.1, *p)).collect();
    let ways = |columns: &[(Vec<Vec<usize>>, Ratio)]| {
        let mut sum: BTreeMap<&Vec<usize>, Ratio> = BTreeMap::new();
        for (paths, y) in columns.iter().filter(|(_, y)| !y.is_zero()) {
            for path in paths {
                let weight = sum.entry(path).or_insert(Ratio::ZERO);
                *weight = weight.plus(*y)?;
            }
        }
        Some(sum.into_iter().map(|(path, weight)| Way { nodes: path.clone(), weight }).collect::<Vec<_>>())
    };
    // Often the shortest paths are best: see whether equal prices, or prices by slowness, prove it.
    let most = capacity.iter().copied().max()?;
    let slow = |c: &i64| Ratio::new(most.into(), (*c).into());
    for prices in [vec![Ratio::ONE; edges.len()], capacity.iter().map(slow).collect::<Option<Vec<_>>>()?] {
        let (paths, loads) = column(&prices)?;
        let rates = loads.iter().map(|&(e, load)| Ratio::new(capacity[e].into(), load.into()));
        let rate = rates.collect::<Option<Vec<_>>>()?.into_iter().min()?;
        if worth(&capacity, &prices, &loads) == Some(rate) {
            return Some(Exchange { ways: ways(&[(paths, rate)])?, prices: priced(&prices) });
        }
    }
    let packing = lp::pack(&capacity, column)?;
    Some(Exchange { ways: ways(&packing.columns)?, prices: priced(&packing.prices) })
}

/// What all capacity costs over what the cheapest column costs: no packing is greater.
fn worth(capacity: &[i64], prices: &[Ratio], loads: &[(usize, i64)]) -> Option<Ratio> {
    let all = capacity.iter().zip(prices).try_fold(Ratio::ZERO, |s, (c, p)| s.plus(p.times(Ratio::whole(*c))?))?;
    let one = loads.iter().try_fold(Ratio::ZERO, |s, &(e, load)| s.plus(prices[e].times(Ratio::whole(load))?))?;
    all.over(one)
}

/// Shortest paths by price and then by hops: the node before each. `None` where fractions overflow.
pub(crate) fn shortest(net: &Net, s: usize, price: impl Fn(usize, usize) -> Ratio) -> Option<Vec<Option<usize>>> {
    let mut best: Vec<Option<(Ratio, usize)>> = vec![None; net.n];
    let mut before = vec![None; net.n];
    let mut is_done = vec![false; net.n];
    best[s] = Some((Ratio::ZERO, 0));
    while let Some(u) = (0..net.n).filter(|&u| !is_done[u] && best[u].is_some()).min_by_key(|&u| best[u]) {
        is_done[u] = true;
        let (cost, hops) = best[u]?;
        for v in (0..net.n).filter(|&v| net.at(u, v) > 0 && !is_done[v]) {
            let new = (cost.plus(price(u, v))?, hops + 1);
            if best[v].is_none_or(|old| new < old) {
                best[v] = Some(new);
                before[v] = Some(u);
            }
        }
    }
    Some(before)
}
