//! As many spanning trees of an undirected graph as there can be (Tutte, Nash-Williams), in whole numbers.
//!
//! Of any family of sets of GPUs, what joins different sets over the number of sets less one bounds the trees. That bound is reached: for `k`
//! of it, the capacity of every edge can be given to its two directions, and `k` roots to the GPUs, so that with the roots in it `k` enters
//! every set (Frank); out-trees of such a graph can be packed. What enters a set, its roots included, is the sum of what enters its GPUs less the
//! capacity inside it, so it is enough to find how much should enter each GPU: a greedy search, a minimum cut for each.

use super::flow::INFINITE;
use super::net::Net;
use super::optimum::Roots;
use crate::Result;

/// A direction for every edge, roots, and the sets that prove that there is no more.
pub(crate) struct Oriented {
    /// Capacities in units of `roots.scale`; both directions of an edge together are twice what `net` had each way.
    pub(crate) net: Net,
    pub(crate) roots: Roots,
    /// Sets that split the job.
    pub(crate) parts: Vec<Vec<usize>>,
}

/// Directs a graph without relays whose edges carry as much each way and count once, for `roots.total / roots.scale` trees. `None` where the GPUs
/// are not joined.
pub(crate) fn orient(net: &Net) -> Result<Option<Oriented>> {
    let mut parts: Vec<Vec<usize>> = net.job.iter().map(|&v| vec![v]).collect();
    // With 2 q units in one of `net`, each direction has c q of an edge of c, and p / q trees have 2 p.
    let (mut p, mut q) = ratio(net, &parts);
    loop {
        if p == 0 {
            return Ok(None);
        }
        let half = net.scaled(q, 1);
        let (more, sets) = fewest(&half, 2 * p)?;
        let total: i64 = more.iter().sum();
        if total <= 2 * p {
            let directed = directed(&half, more, 2 * p, 2 * q)?;
            return Ok(directed.map(|(net, roots)| Oriented { net, roots, parts }));
        }
        (p, q) = ratio(net, &sets);
        parts = sets;
    }
}

/// What enters all sets over twice their number less one.
fn ratio(net: &Net, parts: &[Vec<usize>]) -> (i64, i64) {
    let enters: i64 = parts
        .iter()
        .map(|set| net.edges().filter(|e| !set.contains(&e.0) && set.contains(&e.1)).map(|e| e.2).sum::<i64>())
        .sum();
    let over = 2 * (parts.len() as i64 - 1).max(1);
    let g = i64::try_from(crate::ratio::gcd(enters.into(), over.into())).unwrap_or(1).max(1);
    (enters / g, over / g)
}

/// How much more than half of its edges has to enter each GPU (less, where negative) so that `need` enters every set, as little as can be;
/// and the sets that need it, which split the job.
fn fewest(half: &Net, need: i64) -> Result<(Vec<i64>, Vec<Vec<usize>>)> {
    let s = half.n;
    let mut more = vec![0; half.n];
    half.job.iter().for_each(|&v| more[v] = need);
    let mut sets: Vec<Vec<usize>> = Vec::new();
    for &v in &half.job {
        // The set with v into which the least enters: to have a GPU in it costs its `more`.
        more[v] = 0;
        let mut flow = half.flow(1);
        for &u in half.job.iter().filter(|&&u| u != v) {
            if more[u] > 0 {
                flow.edge(s, u, more[u]);
            } else {
                flow.edge(u, v, -more[u]);
            }
        }
        let negative: i64 = half.job.iter().map(|&u| more[u].min(0)).sum();
        let least = flow.run(s, v, INFINITE)? + negative;
        more[v] = need - least;
        let near = flow.reached(s);
        let mut tight: Vec<usize> = half.job.iter().copied().filter(|&u| !near[u]).collect();
        // Tight sets that meet have a tight union.
        sets.retain(|set| {
            let meets = set.iter().any(|u| tight.contains(u));
            if meets {
                tight.extend(set.iter().filter(|u| !tight.contains(u)).copied().collect::<Vec<_>>());
            }
            !meets
        });
        sets.push(tight);
    }
    Ok((more, sets))
}

/// Gives the two directions of every edge what they carry and the GPUs their roots, so that `more` than half of its edges enters each.
fn directed(half: &Net, mut more: Vec<i64>, need: i64, scale: i64) -> Result<Option<(Net, Roots)>> {
    // What is not needed may start anywhere.
    more[half.job[0]] += need - more.iter().sum::<i64>();
    let edges: Vec<(usize, usize, i64)> = half.edges().collect();
    // What flows from u to v is taken from what enters u and added to what enters v; roots flow in from outside.
    let (s, t, outside) = (half.n, half.n + 1, half.n + 2);
    let mut flow = half.flow(3);
    flow.edge(s, outside, need);
    let rooted: Vec<(usize, usize)> = half.job.iter().map(|&v| (v, flow.edge(outside, v, INFINITE))).collect();
    for &v in &half.job {
        if more[v] > 0 {
            flow.edge(v, t, more[v]);
        } else {
            flow.edge(s, v, -more[v]);
        }
    }
    let wanted: i64 = more.iter().map(|m| m.max(&0)).sum();
    if flow.run(s, t, INFINITE)? != wanted {
        return Ok(None); // cannot be: the sets were found to have enough
    }
    let mut net = half.clone();
    for (i, &(u, v, _)) in edges.iter().enumerate() {
        let moved = flow.over(2 * i);
        net.add(u, v, moved);
        net.add(v, u, -moved);
    }
    let mut at = vec![0; half.n];
    rooted.into_iter().for_each(|(v, edge)| at[v] = flow.over(edge));
    Ok(Some((net, Roots { at, total: need, scale })))
}
