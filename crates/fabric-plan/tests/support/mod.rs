//! Small graphs, and definitions by exhaustion.
#![allow(dead_code, unreachable_pub)] // each test file uses a part

use proptest::strategy::Strategy;
use std::collections::BTreeMap;
use tandem_fabric_plan::{check, plan, Operation, Plan, Ratio, Request};
use tandem_fabric_topology::{Device, DeviceKind, Link, LinkKind, Rate, Topology};

/// GPUs with NVLinks `(a, b, GB/s from a to b, GB/s from b to a)`.
pub fn graph(n: usize, links: &[(usize, usize, u32, u32)]) -> Topology {
    let gpu = |i| Device { name: format!("GPU{i}"), kind: DeviceKind::Gpu, attributes: BTreeMap::new() };
    let rate = |gbs: u32| Rate::from_gbs(gbs.into()).unwrap();
    let link =
        |&(a, b, forth, back)| Link { a, b, kind: LinkKind::NvLink, count: 1, forth: rate(forth), back: rate(back) };
    Topology::new("graph", (0..n).map(gpu).collect(), links.iter().map(link).collect()).unwrap()
}

/// Links for [`graph`].
pub type Links = Vec<(usize, usize, u32, u32)>;

/// Links of random rates between `n` GPUs, some of them missing.
pub fn random_links(n: usize) -> impl Strategy<Value = Links> {
    let pairs: Vec<(usize, usize)> = (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b))).collect();
    let rates = proptest::collection::vec((0u32..=5, 1u32..=5), pairs.len());
    rates.prop_map(move |rates| {
        let link = |(&(a, b), (forth, back)): (&(usize, usize), (u32, u32))| (forth > 0).then_some((a, b, forth, back));
        pairs.iter().zip(rates).filter_map(link).collect()
    })
}

/// Plans, and checks the plan.
#[track_caller]
pub fn planned(topology: &Topology, request: &Request) -> Plan {
    let plan = plan(topology, request).unwrap_or_else(|e| panic!("{request:?}: {e}"));
    check(topology, &plan).unwrap_or_else(|e| panic!("{request:?}: {e}"));
    plan
}

pub fn gbs(num: i128, den: i128) -> Ratio {
    Ratio::new(num * 1000, den).unwrap()
}

/// Capacities in MB/s between the GPUs that take part; the graph has nothing but GPUs.
pub struct Brute {
    cap: Vec<Vec<i64>>,
    job: u32,
    nodes: u32,
}

impl Brute {
    pub fn new(topology: &Topology, request: &Request) -> Self {
        let n = topology.gpus().len();
        // The presets name their GPUs first.
        assert!(topology.gpus() == (0..n).collect::<Vec<_>>() && n <= 8);
        let bits = |list: &[usize]| list.iter().fold(0, |m, g| m | 1 << g);
        let (job, helpers) = (bits(&request.gpus), bits(&request.helpers));
        let mut cap = vec![vec![0; n]; n];
        for l in topology.links().iter().filter(|l| l.kind == LinkKind::NvLink) {
            cap[l.a][l.b] += l.forth.mbs();
            cap[l.b][l.a] += l.back.mbs();
        }
        Self { cap, job, nodes: job | helpers }
    }

    fn leaving(&self, set: u32) -> i64 {
        let n = self.cap.len();
        let inside = |u: usize| set >> u & 1 == 1;
        let outside = |v: usize| (self.nodes & !set) >> v & 1 == 1;
        (0..n).filter(|&u| inside(u)).map(|u| (0..n).filter(|&v| outside(v)).map(|v| self.cap[u][v]).sum::<i64>()).sum()
    }

    fn sets(&self) -> impl Iterator<Item = u32> + '_ {
        (1..1u32 << self.cap.len()).filter(|s| s & !self.nodes == 0 && s & self.job != 0 && s & self.job != self.job)
    }

    /// The least that leaves a set with the root and without all of the job (or that enters its complement).
    pub fn broadcast(&self, root: usize) -> Ratio {
        let cuts = self.sets().filter(|s| s >> root & 1 == 1).map(|s| self.leaving(s));
        Ratio::whole(cuts.min().unwrap())
    }

    pub fn reduce(&self, root: usize) -> Ratio {
        let cuts = self.sets().filter(|s| s >> root & 1 == 0).map(|s| self.leaving(s));
        Ratio::whole(cuts.min().unwrap())
    }

    pub fn all_gather(&self) -> Ratio {
        let n = self.job.count_ones();
        let cut =
            |s: u32| Ratio::new((self.leaving(s) * i64::from(n)).into(), (s & self.job).count_ones().into()).unwrap();
        self.sets().map(cut).min().unwrap()
    }

    /// The least over all partitions of the job into `t > 1` sets of what enters them over `2 (t - 1)`.
    pub fn all_reduce(&self) -> Ratio {
        let gpus: Vec<usize> = (0..self.cap.len()).filter(|g| self.job >> g & 1 == 1).collect();
        // What enters a set of GPUs with its best choice of helpers.
        let enters = |part: u32| {
            let grown = self.sets().map(|s| self.nodes & !s).filter(|s| s & self.job == part);
            grown.map(|s| self.leaving(self.nodes & !s)).min().unwrap()
        };
        let mut best: Option<Ratio> = None;
        let mut open = vec![(0, Vec::<u32>::new())];
        while let Some((i, parts)) = open.pop() {
            if i == gpus.len() {
                if parts.len() > 1 {
                    let all: i64 = parts.iter().map(|&p| enters(p)).sum();
                    let rate = Ratio::new(all.into(), 2 * (parts.len() as i128 - 1)).unwrap();
                    best = Some(best.map_or(rate, |b| b.min(rate)));
                }
                continue;
            }
            for p in 0..=parts.len() {
                let mut more = parts.clone();
                match more.get_mut(p) {
                    Some(part) => *part |= 1 << gpus[i],
                    None => more.push(1 << gpus[i]),
                }
                open.push((i + 1, more));
            }
        }
        best.unwrap()
    }

    pub fn of(&self, operation: Operation, request: &Request) -> Option<Ratio> {
        Some(match operation {
            Operation::Broadcast => self.broadcast(request.root.unwrap_or(request.gpus[0])),
            Operation::Reduce => self.reduce(request.root.unwrap_or(request.gpus[0])),
            Operation::AllGather => self.all_gather(),
            Operation::AllReduce => self.all_reduce(),
            _ => return None,
        })
    }
}

/// All ways to choose `k` of `0..n`.
pub fn choose(n: usize, k: usize) -> Vec<Vec<usize>> {
    (0..1usize << n)
        .filter(|s| s.count_ones() as usize == k)
        .map(|s| (0..n).filter(|i| s >> i & 1 == 1).collect())
        .collect()
}
