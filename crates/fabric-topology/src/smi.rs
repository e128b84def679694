//! The matrix of `nvidia-smi topo -m`: read, and printed with rates.
//!
//! The text names links but no rates. Assumed: 20 GB/s for one NVLink (20.6 where the bundles are of 18, as on H100 and
//! H200) and 24 GB/s for a PCIe slot (generation 4, x16). Where a GPU's bundles add up to more links than any GPU has (18),
//! each bundle is the GPU's whole connection to a switch.

use super::figures::{rate, SOCKET};
use super::{Builder, DeviceKind, Link, LinkKind, Topology, MAX_GPUS};
use crate::{Error, Result};
use std::fmt::Write;

/// NVLinks of a GPU, at most (H100 to B200).
const MOST_NVLINKS: u32 = 18;
const PCIE_GBS: f64 = 24.0;

/// How two GPUs are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    Itself,
    NvLink(u32),
    /// PIX, PXB: the same PCIe switches.
    Switch,
    /// PHB, NODE: the same NUMA node.
    Node,
    /// SYS: another NUMA node.
    System,
}

impl Relation {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "X" => Self::Itself,
            "PIX" | "PXB" => Self::Switch,
            "PHB" | "NODE" => Self::Node,
            "SYS" | "SOC" => Self::System,
            _ => Self::NvLink(text.strip_prefix("NV")?.parse().ok().filter(|n| (1..=1024).contains(n))?),
        })
    }
}

/// Removes what terminals add: underlines of the header.
fn plain(line: &str) -> String {
    let mut out = String::new();
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            chars.by_ref().find(char::is_ascii_alphabetic);
        } else {
            out.push(c);
        }
    }
    out
}

impl Topology {
    /// Reads the text of `nvidia-smi topo -m`; network cards and the legend are passed over.
    pub fn from_smi_matrix(text: &str) -> Result<Self> {
        let lines: Vec<String> = text.lines().map(plain).collect();
        let header = lines
            .iter()
            .position(|l| l.split_whitespace().next() == Some("GPU0") && !l.split_whitespace().any(|w| w == "X"))
            .ok_or_else(|| Error::at("line 1", "expected the header of nvidia-smi topo -m (GPU0 GPU1 ...)"))?;
        let columns: Vec<&str> = lines[header].split_whitespace().take_while(|w| is_device(w)).collect();
        let n = columns.iter().filter(|c| c.starts_with("GPU")).count();
        if n > MAX_GPUS || columns.iter().take(n).enumerate().any(|(i, c)| *c != format!("GPU{i}")) {
            let problem = format!("expected columns GPU0, GPU1, ... without gaps, at most {MAX_GPUS}");
            return Err(Error::at(format!("line {}", header + 1), problem));
        }
        let mut rows: Vec<Option<(usize, Vec<Relation>)>> = vec![None; n];
        let mut affinity = vec![String::new(); n];
        for (at, line) in lines.iter().enumerate().skip(header + 1) {
            let mut words = line.split_whitespace();
            let Some(i) = words.next().and_then(|w| w.strip_prefix("GPU")).and_then(|w| w.parse::<usize>().ok()) else {
                continue;
            };
            let place = format!("line {} (GPU{i})", at + 1);
            if i >= n || rows[i].is_some() {
                return Err(Error::at(
                    place,
                    format!("expected one row for each of GPU0 to GPU{}", n.saturating_sub(1)),
                ));
            }
            let cells: Vec<&str> = words.collect();
            if cells.len() < columns.len() {
                return Err(Error::at(place, format!("expected {} columns, found {}", columns.len(), cells.len())));
            }
            let cell = |(j, text): (usize, &&str)| {
                Relation::parse(text).filter(|r| (*r == Relation::Itself) == (i == j)).ok_or_else(|| {
                    let problem =
                        format!("expected X, NV1, PIX, PXB, PHB, NODE or SYS in column GPU{j}, found {text:?}");
                    Error::at(place.clone(), problem)
                })
            };
            rows[i] = Some((at + 1, cells[..n].iter().enumerate().map(cell).collect::<Result<_>>()?));
            affinity[i] = cells[columns.len()..].get(1).map_or(String::new(), |s| s.to_string());
        }
        let mut matrix = Vec::with_capacity(n);
        for (i, row) in rows.into_iter().enumerate() {
            matrix.push(row.ok_or_else(|| Error::at(format!("GPU{i}"), "expected a row, found none"))?);
        }
        for i in 0..n {
            for j in 0..i {
                if matrix[i].1[j] != matrix[j].1[i] {
                    let problem = format!("GPU{i} to GPU{j} differs from GPU{j} to GPU{i}");
                    return Err(Error::at(format!("line {}", matrix[i].0), problem));
                }
            }
        }
        let matrix: Vec<Vec<Relation>> = matrix.into_iter().map(|(_, row)| row).collect();
        assemble(&matrix, &affinity)
    }

    /// The matrix as `nvidia-smi topo -m` prints it, then the rates in GB/s out of the row's GPU into the column's.
    pub fn to_matrix(&self) -> String {
        let gpus = self.gpus();
        let names: Vec<&str> = gpus.iter().map(|&g| self.devices[g].name.as_str()).collect();
        let rows = |cell: &dyn Fn(usize, usize) -> String| {
            let mut table = vec![std::iter::once(String::new()).chain(names.iter().map(|n| n.to_string())).collect()];
            for (i, name) in names.iter().enumerate() {
                let cells = (0..gpus.len()).map(|j| if i == j { "X".into() } else { cell(gpus[i], gpus[j]) });
                table.push(std::iter::once(name.to_string()).chain(cells).collect::<Vec<_>>());
            }
            table
        };
        let kinds = rows(&|a, b| self.relation(a, b));
        let rates = rows(&|a, b| self.direct_gbs(a, b).map_or("-".into(), |r| format!("{:.1}", r)));
        let (n, s) = (gpus.len(), if gpus.len() == 1 { "" } else { "s" });
        let mut out = format!("{}: {n} GPU{s}\n\n", self.name);
        out += &aligned(&kinds);
        let links = if self.of_kind(DeviceKind::Memory).is_empty() { "NVLink" } else { "NVLink and memory" };
        let _ = writeln!(out, "\n{links}, GB/s each way (row to column; - where there is none):");
        out += &aligned(&rates);
        let is_host = |l: &&Link| !l.kind.is_direct();
        if !self.links.iter().any(|l| is_host(&l)) {
            return out + "\nNo host and PCIe links.\n";
        }
        out += "\nHost and PCIe links, GB/s each way:\n";
        for l in self.links.iter().filter(is_host) {
            let (a, b) = (&self.devices[l.a].name, &self.devices[l.b].name);
            let rate = if l.forth == l.back { l.forth.to_string() } else { format!("{} / {}", l.forth, l.back) };
            let _ = writeln!(out, "{a} - {b}: {rate} ({})", l.kind.name());
        }
        out
    }

    /// NVLink rate between two GPUs, directly or through an NVSwitch; between two PEs of one GPU that of its memory.
    fn direct_gbs(&self, a: usize, b: usize) -> Option<f64> {
        let out = |from: usize, to: usize| {
            let link = self.links_of(from).find(|(other, l)| *other == to && l.kind.is_direct())?.1;
            Some(if link.a == from { link.forth } else { link.back })
        };
        let mut total = out(a, b).map_or(0.0, |r| r.gbs());
        for s in [DeviceKind::Memory, DeviceKind::NvSwitch].into_iter().flat_map(|kind| self.of_kind(kind)) {
            if let (Some(up), Some(down)) = (out(a, s), out(s, b)) {
                total += up.min(down).gbs();
            }
        }
        (total > 0.0).then_some(total)
    }

    /// The word of `nvidia-smi topo -m` for two GPUs.
    fn relation(&self, a: usize, b: usize) -> String {
        let bundle = |x: usize, y: usize| {
            self.links_of(x).find(|(o, l)| *o == y && l.kind == LinkKind::NvLink).map(|(_, l)| l.count)
        };
        let shares = |s: &usize| [a, b].iter().all(|&gpu| self.links_of(gpu).any(|(other, _)| other == *s));
        if self.of_kind(DeviceKind::Memory).iter().any(shares) {
            return "SELF".into();
        }
        let switched = || {
            let via = |s: &usize| Some(bundle(a, *s)?.min(bundle(b, *s)?));
            self.of_kind(DeviceKind::NvSwitch).iter().find_map(via)
        };
        if let Some(count) = bundle(a, b).or_else(switched) {
            return format!("NV{count}");
        }
        let (up_a, up_b) = (self.ancestors(a), self.ancestors(b));
        let shared = up_a.iter().find(|d| up_b.contains(d));
        match shared {
            Some(&d) if self.devices[d].kind == DeviceKind::PcieSwitch => {
                let hops = up_a.iter().position(|x| *x == d).max(up_b.iter().position(|x| *x == d));
                if hops == Some(0) { "PIX" } else { "PXB" }.into()
            }
            Some(_) => {
                let direct = |up: &[usize]| up.len() == 1;
                if direct(&up_a) && direct(&up_b) { "PHB" } else { "NODE" }.into()
            }
            None => "SYS".into(),
        }
    }

    /// The shortest way from a GPU up to a NUMA node over PCIe: switches, then the node.
    fn ancestors(&self, gpu: usize) -> Vec<usize> {
        let mut below = vec![None; self.devices.len()];
        let mut queue = std::collections::VecDeque::from([gpu]);
        while let Some(at) = queue.pop_front() {
            if self.devices[at].kind == DeviceKind::Cpu {
                let mut up = vec![at];
                while let Some(d) = below[up[up.len() - 1]].filter(|&d| d != gpu) {
                    up.push(d);
                }
                up.reverse();
                return up;
            }
            for (next, link) in self.links_of(at) {
                let is_up = link.kind == LinkKind::Pcie && self.devices[next].kind != DeviceKind::Gpu;
                if is_up && below[next].is_none() {
                    below[next] = Some(at);
                    queue.push_back(next);
                }
            }
        }
        Vec::new()
    }
}

fn is_device(word: &str) -> bool {
    let tail = word.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    (word.starts_with("GPU") || word.starts_with("NIC") || word.starts_with("mlx"))
        && tail.chars().next().is_some_and(|c| c.is_ascii_digit())
}

fn assemble(matrix: &[Vec<Relation>], affinity: &[String]) -> Result<Topology> {
    let n = matrix.len();
    // The NUMA node and the PCIe switch of each GPU, by the lowest GPU that shares it.
    let (mut node, mut switch): (Vec<usize>, Vec<usize>) = ((0..n).collect(), (0..n).collect());
    let merge = |group: &mut Vec<usize>, i: usize, j: usize| {
        let (low, high) = (group[i].min(group[j]), group[i].max(group[j]));
        group.iter_mut().filter(|g| **g == high).for_each(|g| *g = low);
    };
    for (i, row) in matrix.iter().enumerate() {
        for (j, relation) in row.iter().enumerate().take(i) {
            match relation {
                Relation::Switch => {
                    merge(&mut switch, i, j);
                    merge(&mut node, i, j);
                }
                Relation::Node => merge(&mut node, i, j),
                _ => {}
            }
        }
    }
    // Behind NVLink the matrix hides the PCIe relation: the affinity decides, unless SYS stands between the groups.
    for i in 0..n {
        for j in 0..i {
            let apart = || {
                (0..n).any(|a| {
                    (0..n).any(|b| node[a] == node[i] && node[b] == node[j] && matrix[a][b] == Relation::System)
                })
            };
            if matches!(matrix[i][j], Relation::NvLink(_)) && affinity[i] == affinity[j] && !apart() {
                merge(&mut node, i, j);
            }
        }
    }
    let mut b = Builder::default();
    let gpus: Vec<usize> = (0..n).map(|i| b.device(format!("GPU{i}"), DeviceKind::Gpu, &[])).collect();
    let mut heads = node.clone();
    heads.sort_unstable();
    heads.dedup();
    let cpus: Vec<usize> =
        (0..heads.len()).map(|c| b.device(format!("CPU{c}"), DeviceKind::Cpu, &[("numaid", &c.to_string())])).collect();
    let cpu_of = |i: usize| cpus[heads.iter().position(|h| *h == node[i]).unwrap_or(0)];
    for i in 0..n {
        let below: Vec<usize> = (0..n).filter(|&j| switch[j] == i).collect();
        match below.as_slice() {
            [] => {}
            [one] => b.link(gpus[*one], cpu_of(i), LinkKind::Pcie, 1, rate(PCIE_GBS)),
            many => {
                let s = b.device(format!("PCIe{i}"), DeviceKind::PcieSwitch, &[]);
                b.link(s, cpu_of(i), LinkKind::Pcie, 1, rate(PCIE_GBS));
                many.iter().for_each(|&j| b.link(gpus[j], s, LinkKind::Pcie, 1, rate(PCIE_GBS)));
            }
        }
    }
    b.sockets(&cpus, rate(SOCKET));
    nvlinks(&mut b, &gpus, matrix);
    b.build("nvidia-smi topo -m")
}

fn nvlinks(b: &mut Builder, gpus: &[usize], matrix: &[Vec<Relation>]) {
    let n = gpus.len();
    let bundle = |i: usize, j: usize| match matrix[i][j] {
        Relation::NvLink(count) => Some(count),
        _ => None,
    };
    let carried = |count: u32| {
        let one = if count == MOST_NVLINKS { super::figures::nvlink(90) } else { super::figures::nvlink(80) };
        rate(f64::from(count) * one)
    };
    let is_switched = |i: usize| (0..n).filter_map(|j| bundle(i, j)).sum::<u32>() > MOST_NVLINKS;
    if (0..n).any(is_switched) {
        let s = b.device("NVSwitch0", DeviceKind::NvSwitch, &[]);
        for (i, &gpu) in gpus.iter().enumerate() {
            if let Some(count) = (0..n).filter_map(|j| bundle(i, j)).max() {
                b.link(gpu, s, LinkKind::NvLink, count, carried(count));
            }
        }
        return;
    }
    for i in 0..n {
        for j in i + 1..n {
            if let Some(count) = bundle(i, j) {
                b.link(gpus[i], gpus[j], LinkKind::NvLink, count, carried(count));
            }
        }
    }
}

/// Rows with columns of one width, to the left.
fn aligned(rows: &[Vec<String>]) -> String {
    let width = rows.iter().flatten().map(|c| c.chars().count()).max().unwrap_or(0) + 2;
    let line =
        |row: &Vec<String>| row.iter().map(|c| format!("{c:width$}")).collect::<String>().trim_end().to_string() + "\n";
    rows.iter().map(line).collect()
}
