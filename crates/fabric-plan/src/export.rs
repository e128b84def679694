//! Plans for other programs: JSON, trees as XML, NCCL graph XML.

use super::{Gain, Operation, Plan, Step, Tree, Witness};
use crate::ratio::gcd;
use crate::{Error, Ratio, Result};
use serde_json::{json, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use tandem_fabric_topology::{DeviceKind, LinkKind, Topology};

/// Channels of an NCCL graph.
const MAX_CHANNELS: i128 = 32;

impl Plan {
    /// All of the plan as JSON; fractions as text beside the nearest GB/s.
    pub fn to_json(&self, topology: &Topology) -> Value {
        let name = |d: usize| topology.devices()[d].name.as_str();
        let names = |list: &[usize]| list.iter().map(|&d| name(d)).collect::<Vec<_>>();
        let gbs = |rate: Ratio| rate.to_f64() / 1000.0;
        let tree = |t: &Tree| {
            let paths: Vec<_> = t.paths.iter().map(|p| names(p)).collect();
            json!({"root": name(t.root), "share": t.share.to_string(), "paths": paths})
        };
        let step = |step: &Step| match step {
            Step::Collect(trees) => json!({"collect": trees.iter().map(tree).collect::<Vec<_>>()}),
            Step::Spread(trees) => json!({"spread": trees.iter().map(tree).collect::<Vec<_>>()}),
            Step::Send(routes) => {
                let route = |r: &super::Route| json!({"share": r.share.to_string(), "path": names(&r.path)});
                json!({"send": routes.iter().map(route).collect::<Vec<_>>()})
            }
        };
        let witness = match &self.witness {
            Witness::Cut(inside) => json!({"cut": names(inside)}),
            Witness::Parts(parts) => json!({"parts": parts.iter().map(|p| names(p)).collect::<Vec<_>>()}),
            Witness::Prices(prices) => {
                let price =
                    |p: &(usize, usize, Ratio)| json!({"from": name(p.0), "to": name(p.1), "price": p.2.to_string()});
                json!({"prices": prices.iter().filter(|p| !p.2.is_zero()).map(price).collect::<Vec<_>>()})
            }
        };
        let gain = match &self.gain {
            Gain::NotAsked => Value::Null,
            Gain::Over(alone) => json!({"gbs_without_helpers": gbs(*alone)}),
            Gain::None(reason) => json!({"none": reason}),
        };
        let load = |l: &super::Load| json!({"from": name(l.from), "to": name(l.to), "gbs": gbs(l.rate), "capacity_gbs": l.capacity as f64 / 1000.0});
        json!({
            "format": "tandem-plan",
            "version": 1,
            "topology": topology.name(),
            "operation": self.request.operation.name(),
            "gpus": self.request.gpus,
            "helpers": self.request.helpers,
            "pcie": self.request.may_use_pcie(),
            "gbs": gbs(self.rate),
            "mbs": self.rate.to_string(),
            "bound_gbs": gbs(self.bound),
            "bound_mbs": self.bound.to_string(),
            "is_best": self.is_best(),
            "optimal": self.is_best(),
            "gap": self.gap(),
            "is_cut_short": self.is_cut_short,
            "witness": witness,
            "gain": gain,
            "steps": self.steps.iter().map(step).collect::<Vec<_>>(),
            "loads": self.loads.iter().map(load).collect::<Vec<_>>(),
        })
    }

    /// The trees in the XML of ForestColl's kind: `nchunks` of all chunks take a tree; `path` is the way in device names. Trees that
    /// collect have `direction="in"`; operations without trees have one `<tree>` of one send for each path.
    pub fn to_tree_xml(&self, topology: &Topology) -> Result<String> {
        let shares = self.steps.iter().flat_map(|step| match step {
            Step::Collect(trees) | Step::Spread(trees) => trees.iter().map(|t| t.share).collect::<Vec<_>>(),
            Step::Send(routes) => routes.iter().map(|r| r.share).collect(),
        });
        let chunks = common(shares).ok_or_else(|| Error::Export("the shares have no common denominator".into()))?;
        let gpus = topology.gpus();
        // Host memory is -1.
        let rank = |d: usize| gpus.iter().position(|&g| g == d).map_or("-1".into(), |g| g.to_string());
        let mut out = format!(
            "<trees collective=\"{}\" ngpus=\"{}\" nchunks=\"{chunks}\">\n",
            self.request.operation.name(),
            self.request.gpus.len()
        );
        let mut index = 0;
        let mut write = |root: usize, share: Ratio, paths: &[Vec<usize>], direction: &str| {
            let n = share.num() * (chunks / share.den());
            let height = height(root, paths, direction == "in");
            let _ = writeln!(
                out,
                "  <tree root=\"{}\" index=\"{index}\" nchunks=\"{n}\" height=\"{height}\" direction=\"{direction}\">",
                rank(root)
            );
            for path in paths {
                let names: Vec<_> =
                    path.iter().map(|&d| tandem_fabric_topology::escaped(&topology.devices()[d].name)).collect();
                let (src, dst) = (path.first().copied().unwrap_or(root), path.last().copied().unwrap_or(root));
                let _ = writeln!(
                    out,
                    "    <send src=\"{}\" dst=\"{}\" path=\"{}\"/>",
                    rank(src),
                    rank(dst),
                    names.join(",")
                );
            }
            out += "  </tree>\n";
            index += 1;
        };
        for step in &self.steps {
            match step {
                Step::Collect(trees) => trees.iter().for_each(|t| write(t.root, t.share, &t.paths, "in")),
                Step::Spread(trees) => trees.iter().for_each(|t| write(t.root, t.share, &t.paths, "out")),
                Step::Send(routes) => {
                    routes.iter().for_each(|r| write(r.path[0], r.share, std::slice::from_ref(&r.path), "out"));
                }
            }
        }
        out += "</trees>\n";
        Ok(out)
    }

    /// NCCL graph XML (`NCCL_GRAPH_FILE`) for the one communicator that carries the plan out, as of [`Plan::to_nccl_graphs`].
    ///
    /// # Errors
    /// As for [`Plan::to_nccl_graphs`]; it takes several communicators.
    pub fn to_nccl_graph(&self, topology: &Topology) -> Result<String> {
        let mut graphs = self.to_nccl_graphs(topology)?;
        match (graphs.pop(), graphs.len()) {
            (Some(one), 0) => Ok(one.xml),
            (_, others) => Err(Error::Export(format!(
                "the trees pass {} different sets of GPUs, and a channel of NCCL holds all ranks: it takes a communicator, and a file, \
                 for each set",
                others + 1
            ))),
        }
    }

    /// NCCL graph XML, a file for each communicator that it takes: a channel holds every rank of its communicator once, so trees that
    /// pass other helpers are other communicators', and helpers are ranks. Each file has the ring graph and the tree graph, with the same
    /// channels: NCCL uses no more of either than the other has. Where the trees of an all-gather or a reduce-scatter are the rotations of rings,
    /// they are the channels, else every tree must be a chain of GPUs.
    ///
    /// # Errors
    /// What NCCL's graphs cannot say.
    pub fn to_nccl_graphs(&self, topology: &Topology) -> Result<Vec<NcclGraph>> {
        let refuse = |why: &str| Err(Error::Export(format!("NCCL graphs hold rings and chains only: {why}")));
        let (trees, is_collected) = match self.steps.as_slice() {
            [Step::Spread(trees)] | [Step::Collect(_), Step::Spread(trees)] => (trees, false),
            [Step::Collect(trees)] => (trees, true),
            _ => return refuse("this operation has no trees"),
        };
        if trees.is_empty() {
            return refuse("there is no path");
        }
        let mut chains: Vec<(Vec<usize>, Ratio)> = Vec::new();
        for tree in trees {
            let Some(chain) = chain(topology, tree, is_collected) else { return refuse("a tree branches") };
            chains.push((chain, tree.share));
        }
        if matches!(self.request.operation, Operation::AllGather | Operation::ReduceScatter) {
            let Some(rings) = rings(&chains, self.request.gpus.len()) else {
                return refuse("the chains of different roots do not make rings");
            };
            chains = rings;
            if is_collected {
                chains.iter_mut().for_each(|(ring, _)| ring.reverse());
            }
        }
        let mut sets: BTreeMap<Vec<usize>, Vec<(Vec<usize>, Ratio)>> = BTreeMap::new();
        for (chain, share) in chains {
            let mut set = chain.clone();
            set.sort_unstable();
            sets.entry(set).or_default().push((chain, share));
        }
        sets.into_iter().map(|(set, chains)| self.of_communicator(topology, &set, &chains)).collect()
    }

    /// The file of the communicator whose ranks are the devices of `set`.
    fn of_communicator(&self, topology: &Topology, set: &[usize], chains: &[(Vec<usize>, Ratio)]) -> Result<NcclGraph> {
        let refuse = |why: &str| Error::Export(format!("NCCL graphs hold rings and chains only: {why}"));
        let many = || refuse("the shares need more than 32 channels");
        let share = chains.iter().try_fold(Ratio::ZERO, |sum, (_, share)| sum.plus(*share)).ok_or_else(many)?;
        let parts: Option<Vec<Ratio>> = chains.iter().map(|(_, part)| part.over(share)).collect();
        let parts = parts.ok_or_else(many)?;
        let channels = common(parts.iter().copied()).filter(|c| *c <= MAX_CHANNELS).ok_or_else(many)?;
        let speed = self.gbs() * share.to_f64() / channels as f64;
        let gpus = topology.gpus();
        let number = |device: usize| gpus.iter().position(|&gpu| gpu == device).unwrap_or(0);
        let mut xml = "<graphs version=\"1\">\n".to_string();
        // Where NCCL passes from the last rank of a ring to its first.
        let is_closed = chains.iter().all(|(chain, _)| is_joined(topology, chain[0], chain[chain.len() - 1]));
        for (id, pattern, kind) in [(0, 4, if is_closed { "NVL" } else { "SYS" }), (1, 3, "NVL")] {
            let _ = writeln!(
                xml,
                "  <graph id=\"{id}\" pattern=\"{pattern}\" crossnic=\"0\" nchannels=\"{channels}\" speedintra=\"{speed:.3}\" \
                 speedinter=\"{speed:.3}\" latencyinter=\"0\" typeintra=\"{kind}\" typeinter=\"PIX\" samechannels=\"0\">"
            );
            for ((chain, _), part) in chains.iter().zip(&parts) {
                for _ in 0..part.num() * (channels / part.den()) {
                    xml += "    <channel>\n";
                    for &device in chain {
                        // NVML's number, where the topology says it. NCCL reads it as hexadecimal.
                        let dev = topology.devices()[device].attributes.get("dev").and_then(|dev| dev.parse().ok());
                        let _ = writeln!(xml, "      <gpu dev=\"{:x}\"/>", dev.unwrap_or_else(|| number(device)));
                    }
                    xml += "    </channel>\n";
                }
            }
            xml += "  </graph>\n";
        }
        xml += "</graphs>\n";
        Ok(NcclGraph { gpus: set.iter().map(|&device| number(device)).collect(), share, xml })
    }
}

/// What NCCL is told of one communicator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NcclGraph {
    /// Its ranks, as GPUs of the topology; helpers are among them.
    pub gpus: Vec<usize>,
    /// The share of all data that it carries.
    pub share: Ratio,
    /// The file.
    pub xml: String,
}

/// Whether NVLinks join two devices, over a switch or not.
fn is_joined(topology: &Topology, a: usize, b: usize) -> bool {
    let near =
        |device: usize| topology.links_of(device).filter(|(_, link)| link.kind == LinkKind::NvLink).map(|(d, _)| d);
    let is_switch = |d: usize| topology.devices()[d].kind == DeviceKind::NvSwitch;
    near(a).any(|d| d == b || is_switch(d) && near(b).any(|other| other == d))
}

/// The least common denominator, if a file can hold it.
fn common(shares: impl Iterator<Item = Ratio>) -> Option<i128> {
    shares.into_iter().try_fold(1i128, |l, s| (l / gcd(l, s.den())).checked_mul(s.den()).filter(|l| *l < 1 << 53))
}

/// Hops between GPUs of the longest way from the root.
fn height(root: usize, paths: &[Vec<usize>], is_collected: bool) -> usize {
    let mut depth = BTreeMap::from([(root, 0)]);
    let mut step = |path: &Vec<usize>| {
        let (parent, child) = if is_collected { (path.last(), path.first()) } else { (path.first(), path.last()) };
        if let (Some(parent), Some(child)) = (parent, child) {
            let above = depth.get(parent).copied().unwrap_or(0);
            depth.insert(*child, above + 1);
        }
    };
    if is_collected {
        paths.iter().rev().for_each(&mut step);
    } else {
        paths.iter().for_each(&mut step);
    }
    depth.into_values().max().unwrap_or(0)
}

/// The GPUs of a tree that does not branch, from its root, helpers among them; `None` for others and for ways over PCIe.
fn chain(topology: &Topology, tree: &Tree, is_collected: bool) -> Option<Vec<usize>> {
    let mut paths = tree.paths.clone();
    if is_collected {
        paths.iter_mut().for_each(|p| p.reverse());
        paths.reverse();
    }
    let mut out = vec![tree.root];
    for path in paths {
        if path.first() != out.last() {
            return None;
        }
        for &d in &path[1..] {
            match topology.devices()[d].kind {
                DeviceKind::Gpu => out.push(d),
                DeviceKind::NvSwitch | DeviceKind::Memory => {}
                _ => return None,
            }
        }
    }
    let is_simple = out.iter().collect::<BTreeSet<_>>().len() == out.len();
    is_simple.then_some(out)
}

/// Rings of which every rotation is a chain with the same share; the shares of the rings.
fn rings(chains: &[(Vec<usize>, Ratio)], n: usize) -> Option<Vec<(Vec<usize>, Ratio)>> {
    let mut by_ring: BTreeMap<Vec<usize>, BTreeMap<usize, Ratio>> = BTreeMap::new();
    for (chain, share) in chains.iter().filter(|(chain, _)| chain.len() == n) {
        let start = chain.iter().enumerate().min_by_key(|(_, d)| **d)?.0;
        let mut ring = chain.clone();
        ring.rotate_left(start);
        let sum = by_ring.entry(ring).or_default().entry(chain[0]).or_insert(Ratio::ZERO);
        *sum = sum.plus(*share)?;
    }
    let mut out = Vec::new();
    let mut total = Ratio::ZERO;
    for (ring, shares) in by_ring {
        let first = *shares.values().next()?;
        if shares.len() != n || shares.values().any(|s| *s != first) {
            return None;
        }
        let share = first.times(Ratio::whole(n as i64))?;
        total = total.plus(share)?;
        out.push((ring, share));
    }
    (total == Ratio::ONE).then_some(out)
}
