//! The best rates that cuts allow, and how much should start at each GPU.
//!
//! A plan of out-trees is described by its [`Roots`]: `at[v]` of the trees (by weight) are rooted at GPU `v`. Edmonds' theorem: such
//! trees can be packed if and only if the maximum flow from a source, joined to each `v` by an edge of capacity `at[v]`, to every
//! GPU of the job is the whole weight.

use super::flow::INFINITE;
use super::net::Net;
use crate::Result;

/// Weights of the trees by their root, in units of `1 / scale` MB/s.
#[derive(Debug, Clone)]
pub(crate) struct Roots {
    /// By node.
    pub(crate) at: Vec<i64>,
    /// Their sum.
    pub(crate) total: i64,
    /// Units in one MB/s.
    pub(crate) scale: i64,
}

/// All trees from one root: the smallest maximum flow from it to another GPU, with the nodes on its side of that cut.
pub(crate) fn one_root(net: &Net, root: usize) -> Result<(Roots, Vec<bool>)> {
    let cuts = net.job.iter().filter(|&&v| v != root).map(|&v| net.cut(&[root], &[v])).collect::<Result<Vec<_>>>()?;
    let (total, inside) = cuts.into_iter().min_by_key(|c| c.0).unwrap_or((0, vec![false; net.n]));
    let mut at = vec![0; net.n];
    at[root] = total;
    Ok((Roots { at, total, scale: 1 }, inside))
}

/// The greatest weight that every GPU can send equally: the least, over sets of nodes that hold `k > 0` GPUs but not all, of what leaves
/// the set over `k` (ForestColl, arXiv 2402.06787, found here by Newton's method instead of a binary search). Also that set.
pub(crate) fn equal_roots(net: &Net) -> Result<(Roots, Vec<bool>)> {
    let job = net.job.len() as i64;
    let gpus = |inside: &[bool]| net.job.iter().filter(|&&v| inside[v]).count() as i64;
    let single = |v: usize| (0..net.n).map(|u| u == v).collect::<Vec<_>>();
    let mut best = single(net.job[0]);
    // The weight of each root is p / q.
    let (mut p, mut q) = (net.leaving(&best), 1);
    loop {
        let mut better = None;
        let s = net.n;
        let scaled = net.scaled(q, 1);
        for &v in &net.job {
            let mut flow = scaled.flow(1);
            net.job.iter().for_each(|&u| {
                flow.edge(s, u, p);
            });
            if flow.run(s, v, job * p)? == job * p {
                continue;
            }
            let mut inside = flow.reached(s);
            inside.truncate(net.n);
            let (leaves, k) = (net.leaving(&inside), gpus(&inside));
            if leaves * q < p * k {
                (p, q) = (leaves, k);
                better = Some(inside);
                break;
            }
        }
        match better {
            Some(inside) => best = inside,
            None => break,
        }
    }
    let mut at = vec![0; net.n];
    net.job.iter().for_each(|&v| at[v] = p);
    Ok((Roots { at, total: p * job, scale: q }, best))
}

/// Roots chosen freely for the greatest whole weight (Frank 1978): the least, over disjoint sets of GPUs, of what enters them over
/// their number less one. Returns the roots and those sets, each as the GPUs in it.
pub(crate) fn free_roots(net: &Net) -> Result<(Roots, Vec<Vec<usize>>)> {
    let job = net.job.len() as i64;
    let entering = |v: usize| net.edges().filter(|e| e.1 == v).map(|e| e.2).sum::<i64>();
    let mut parts: Vec<Vec<usize>> = net.job.iter().map(|&v| vec![v]).collect();
    // The whole weight is p / q; every GPU by itself is the first family of sets.
    let (mut p, mut q) = (net.job.iter().map(|&v| entering(v)).sum::<i64>(), job - 1);
    loop {
        let (at, sets) = fewest(&net.scaled(q, 1), p)?;
        let total: i64 = at.iter().sum();
        if total <= p {
            // What is missing may start anywhere.
            let mut at = at;
            at[net.job[0]] += p - total;
            return Ok((Roots { at, total: p, scale: q }, parts));
        }
        // total = sum of (p - enters(A)) over the sets, so this is what enters them, in units of 1 / q MB/s.
        let t = sets.len() as i64;
        let enters = t * p - total;
        (p, q) = (enters / q, t - 1);
        parts = sets;
    }
}

/// The least weight at roots such that `need` reaches every GPU, taken away greedily, and disjoint tight sets that prove it.
fn fewest(net: &Net, need: i64) -> Result<(Vec<i64>, Vec<Vec<usize>>)> {
    let s = net.n;
    let mut at = vec![0; net.n];
    net.job.iter().for_each(|&v| at[v] = need);
    let mut sets: Vec<Vec<usize>> = Vec::new();
    for &v in &net.job {
        at[v] = 0;
        let (mut missing, mut tight) = (0, Vec::new());
        for &w in &net.job {
            let mut flow = net.flow(1);
            net.job.iter().for_each(|&u| {
                flow.edge(s, u, at[u]);
            });
            let value = flow.run(s, w, INFINITE)?;
            if need - value > missing {
                missing = need - value;
                let near = flow.reached(s);
                tight = net.job.iter().copied().filter(|&u| !near[u]).collect();
            }
        }
        at[v] = missing;
        if missing > 0 {
            // Tight sets that meet have a tight union.
            let (meets, mut apart): (Vec<_>, Vec<_>) =
                sets.into_iter().partition(|set: &Vec<usize>| set.iter().any(|u| tight.contains(u)));
            meets.into_iter().flatten().for_each(|u| {
                if !tight.contains(&u) {
                    tight.push(u);
                }
            });
            apart.push(tight);
            sets = apart;
        }
    }
    Ok((at, sets))
}
