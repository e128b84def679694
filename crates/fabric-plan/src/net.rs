//! The part of a topology that a job may use, as a graph with whole capacities.

use super::budget::Clock;
use super::flow::{Flow, INFINITE};
use crate::ratio::gcd;
use crate::Result;
use tandem_fabric_topology::{DeviceKind, Topology};

/// Capacities between nodes, dense. Nodes that are not of the job only forward.
#[derive(Debug, Clone)]
pub(crate) struct Net {
    pub(crate) n: usize,
    cap: Vec<i64>,
    /// The nodes of the job.
    pub(crate) job: Vec<usize>,
    /// The device of each node.
    pub(crate) device: Vec<usize>,
    /// What the search may still take.
    pub(crate) clock: Clock,
}

impl Net {
    /// A net of these nodes without links.
    pub(crate) fn bare(&self) -> Self {
        Self { cap: vec![0; self.cap.len()], ..self.clone() }
    }

    /// The devices of the job, its helpers, and the switches; PCIe and what hangs on it where `pcie` allows. Capacities in MB/s.
    pub(crate) fn new(topology: &Topology, job: &[usize], helpers: &[usize], pcie: bool, clock: Clock) -> Self {
        let may = |d: usize| match topology.devices()[d].kind {
            DeviceKind::Gpu => job.contains(&d) || helpers.contains(&d),
            DeviceKind::NvSwitch | DeviceKind::Memory => true,
            DeviceKind::Cpu | DeviceKind::PcieSwitch => pcie,
        };
        let device: Vec<usize> = (0..topology.devices().len()).filter(|&d| may(d)).collect();
        let node = |d: usize| device.iter().position(|&x| x == d);
        let job = job.iter().filter_map(|&d| node(d)).collect();
        let cap = vec![0; device.len() * device.len()];
        let mut net = Self { n: device.len(), cap, job, device: device.clone(), clock };
        for link in topology.links() {
            if let (Some(a), Some(b)) = (node(link.a), node(link.b)) {
                if pcie || link.kind.is_direct() {
                    net.add(a, b, link.forth.mbs());
                    net.add(b, a, link.back.mbs());
                }
            }
        }
        net
    }

    pub(crate) fn at(&self, u: usize, v: usize) -> i64 {
        self.cap[u * self.n + v]
    }

    pub(crate) fn add(&mut self, u: usize, v: usize, capacity: i64) {
        self.cap[u * self.n + v] += capacity;
    }

    pub(crate) fn edges(&self) -> impl Iterator<Item = (usize, usize, i64)> + '_ {
        (0..self.n * self.n).map(|i| (i / self.n, i % self.n, self.cap[i])).filter(|e| e.2 > 0)
    }

    pub(crate) fn is_job(&self, node: usize) -> bool {
        self.job.contains(&node)
    }

    pub(crate) fn reversed(&self) -> Self {
        let mut out = self.bare();
        self.edges().for_each(|(u, v, c)| out.add(v, u, c));
        out
    }

    /// The part that carries as much back as forth.
    pub(crate) fn symmetric(&self) -> Self {
        let mut out = self.clone();
        for u in 0..self.n {
            for v in 0..self.n {
                out.cap[u * self.n + v] = self.at(u, v).min(self.at(v, u));
            }
        }
        out
    }

    /// All capacities times `times`, over `over`, which must divide them.
    pub(crate) fn scaled(&self, times: i64, over: i64) -> Self {
        Self { cap: self.cap.iter().map(|c| c * times / over).collect(), ..self.clone() }
    }

    /// The greatest common divisor of all capacities times `times`, and of `others`.
    pub(crate) fn unit(&self, times: i64, others: &[i64]) -> i64 {
        let all = self.cap.iter().map(|c| c * times).chain(others.iter().copied());
        i64::try_from(all.fold(0, |g, x| gcd(g, x.into()))).unwrap_or(1).max(1)
    }

    /// What leaves a set of nodes.
    pub(crate) fn leaving(&self, inside: &[bool]) -> i64 {
        self.edges().filter(|&(u, v, _)| inside[u] && !inside[v]).map(|e| e.2).sum()
    }

    /// The network for maximum flows, with `more` nodes after the graph's own.
    pub(crate) fn flow(&self, more: usize) -> Flow {
        let mut flow = Flow::new(self.n + more, self.clock.clone());
        self.edges().for_each(|(u, v, c)| {
            flow.edge(u, v, c);
        });
        flow
    }

    /// What can flow from all of `from` to all of `to`, and the smallest such cut's nodes.
    pub(crate) fn cut(&self, from: &[usize], to: &[usize]) -> Result<(i64, Vec<bool>)> {
        let (s, t) = (self.n, self.n + 1);
        let mut flow = self.flow(2);
        from.iter().for_each(|&u| {
            flow.edge(s, u, INFINITE);
        });
        to.iter().for_each(|&v| {
            flow.edge(v, t, INFINITE);
        });
        let value = flow.run(s, t, INFINITE)?;
        let mut inside = flow.reached(s);
        inside.truncate(self.n);
        Ok((value, inside))
    }

    /// The devices of a set of nodes.
    pub(crate) fn devices(&self, inside: &[bool]) -> Vec<usize> {
        (0..self.n).filter(|&u| inside[u]).map(|u| self.device[u]).collect()
    }
}
