//! What joins the GPUs of this machine.
//!
//! [`look`] asks the CUDA runtime, NVML where the driver brought it, and sysfs; [`Facts`] are what they said, as plain data.
//! [`Facts::topology`] makes a [`Topology`] of them, with the figures of [`crate::topology`] for rates or what [`measure`] found. Whatever is missing is left out or assumed, and [`Facts::remarks`] says so; nothing of that fails for it.
//! [`idle()`] says which GPUs nobody uses.

mod assemble;
mod idle;
mod measure;

pub use idle::{idle, idle_devices, Idle};
pub use measure::{measure, Measured};

use crate::topology::Topology;
use crate::Result;
use std::collections::BTreeSet;
use std::path::Path;
use tandem_cuda::nvml::{Capability, Common, NvLink, Nvml, Pcie};
use tandem_cuda::Device;

/// A GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuFacts {
    /// Its number, as in `cuda:0`.
    pub index: u32,
    /// Such as `NVIDIA H200`.
    pub name: String,
    /// PCI address in lower case.
    pub pci: String,
    /// Compute capability as one number, such as 90.
    pub sm: u32,
    /// NUMA node, where the system knows it.
    pub numa: Option<u32>,
    /// Its slot.
    pub pcie: Option<Pcie>,
    /// NVLinks, active and not.
    pub nvlinks: Vec<NvLink>,
    /// Signalling rate of one NVLink each way, MB/s.
    pub nvlink_mbs: Option<u32>,
    /// Why Tandem does not compute on it.
    pub refused: Option<String>,
}

/// The way from one GPU to the memory of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairFacts {
    /// Index into [`Facts::gpus`].
    pub from: usize,
    /// Index into [`Facts::gpus`].
    pub to: usize,
    /// Whether kernels and copies reach it without the host.
    pub access: bool,
    /// Whether atomic operations do.
    pub atomics: bool,
    /// What joins the two over PCIe.
    pub common: Option<Common>,
    /// What is lacking, and why.
    pub lacks: Vec<(Capability, &'static str)>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// In the order of the CUDA runtime.
    pub gpus: Vec<GpuFacts>,
    /// All ordered pairs.
    pub pairs: Vec<PairFacts>,
    /// NUMA nodes of the machine.
    pub nodes: Vec<u32>,
    /// Why there is no GPU, where there is none.
    pub no_gpu: Option<String>,
    /// Why NVML was not asked.
    pub no_nvml: Option<String>,
}

/// Asks the machine.
pub fn look() -> Facts {
    let mut facts = Facts { nodes: nodes(Path::new("/sys/devices/system/node")), ..Facts::default() };
    let found = match tandem_cuda::probe() {
        Ok(found) => found,
        Err(reason) => {
            facts.no_gpu = Some(reason);
            return facts;
        }
    };
    let nvml = match Nvml::load() {
        Ok(nvml) => Some(nvml),
        Err(reason) => {
            facts.no_nvml = Some(reason);
            None
        }
    };
    let handle = |gpu: &GpuFacts| nvml.as_ref().and_then(|nvml| nvml.gpu(&gpu.pci));
    let devices: Vec<Option<Device>> = found.iter().map(|f| f.usable.as_ref().ok().copied()).collect();
    for f in found {
        let pci = f.properties.pci.to_ascii_lowercase();
        let (major, minor) = f.properties.capability;
        let mut gpu = GpuFacts {
            index: f.index,
            name: f.properties.name,
            numa: number(&Path::new("/sys/bus/pci/devices").join(&pci).join("numa_node")),
            pci,
            sm: major * 10 + minor,
            pcie: None,
            nvlinks: Vec::new(),
            nvlink_mbs: None,
            refused: f.usable.err(),
        };
        if let Some(handle) = handle(&gpu) {
            (gpu.pcie, gpu.nvlinks, gpu.nvlink_mbs) = (handle.pcie(), handle.nvlinks(), handle.nvlink_mbs());
        }
        facts.gpus.push(gpu);
    }
    for from in 0..facts.gpus.len() {
        for to in (0..facts.gpus.len()).filter(|&to| to != from) {
            let (access, atomics) = match (devices[from], devices[to]) {
                (Some(a), Some(b)) => {
                    (a.can_access(b).unwrap_or(false), a.peer_attributes(b).is_ok_and(|(_, atomics)| atomics))
                }
                _ => (false, false),
            };
            let mut pair = PairFacts { from, to, access, atomics, common: None, lacks: Vec::new() };
            if let (Some(a), Some(b)) = (handle(&facts.gpus[from]), handle(&facts.gpus[to])) {
                pair.common = a.common(b);
                for capability in [Capability::Read, Capability::Write, Capability::Atomics, Capability::NvLink] {
                    if let Some(Err(reason)) = a.lacks(b, capability) {
                        pair.lacks.push((capability, reason));
                    }
                }
            }
            facts.pairs.push(pair);
        }
    }
    facts
}

/// The topology of these GPUs, in this order, with whatever else the machine has between them.
///
/// # Errors
/// None of them; more than a topology can have.
pub fn topology(devices: &[Device]) -> Result<Topology> {
    let indices: Vec<u32> = devices.iter().map(|device| device.index()).collect();
    look().only(&indices).topology(None)
}

impl Facts {
    /// Those about the GPUs with these numbers, in this order. A number that comes several times is as many GPUs that reach each other.
    fn only(mut self, indices: &[u32]) -> Self {
        let order: Vec<usize> =
            indices.iter().filter_map(|index| self.gpus.iter().position(|gpu| gpu.index == *index)).collect();
        let pair = |from: usize, to: usize| -> Option<PairFacts> {
            if order[from] == order[to] {
                let common = Some(Common::Internal);
                return Some(PairFacts { from, to, access: true, atomics: true, common, lacks: Vec::new() });
            }
            let found = self.pairs.iter().find(|pair| (pair.from, pair.to) == (order[from], order[to]))?;
            Some(PairFacts { from, to, ..found.clone() })
        };
        let all =
            (0..order.len()).flat_map(|from| (0..order.len()).filter(move |to| *to != from).map(move |to| (from, to)));
        self.pairs = all.filter_map(|(from, to)| pair(from, to)).collect();
        self.gpus = order.iter().map(|&gpu| self.gpus[gpu].clone()).collect();
        self
    }
}

/// The NUMA nodes in a folder of sysfs; 0 alone where it says nothing.
fn nodes(folder: &Path) -> Vec<u32> {
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut nodes: Vec<u32> = names
        .filter_map(|entry| entry.file_name().to_str()?.strip_prefix("node")?.parse().ok())
        .collect::<BTreeSet<u32>>()
        .into_iter()
        .take(64)
        .collect();
    if nodes.is_empty() {
        nodes.push(0);
    }
    nodes
}

/// The number in a file; virtual machines write -1 where they do not know.
fn number(file: &Path) -> Option<u32> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_looked_at_without_failing() {
        let facts = look();
        assert!(!facts.nodes.is_empty());
        eprintln!("{facts:#?}\n{:#?}", facts.remarks());
        assert_eq!(facts.no_gpu.is_some(), facts.gpus.is_empty());
        assert_eq!(facts.pairs.len(), facts.gpus.len() * facts.gpus.len().saturating_sub(1));
        if facts.no_gpu.is_none() {
            eprintln!("{}", facts.topology(None).unwrap().to_matrix());
        }
    }

    #[test]
    fn some_of_the_gpus_in_another_order() {
        let gpu = |index| GpuFacts {
            index,
            name: String::new(),
            pci: format!("0000:{index:02x}:00.0"),
            sm: 90,
            numa: None,
            pcie: None,
            nvlinks: Vec::new(),
            nvlink_mbs: None,
            refused: None,
        };
        let all = (0..4).flat_map(|from| (0..4).filter(move |to| *to != from).map(move |to| (from, to)));
        // Atomics tell the pairs apart.
        let pair =
            |(from, to)| PairFacts { from, to, access: true, atomics: from < to, common: None, lacks: Vec::new() };
        let facts = Facts { gpus: [0, 2, 3, 5].map(gpu).into(), pairs: all.map(pair).collect(), ..Facts::default() };
        let some = facts.only(&[5, 0, 7, 2]);
        assert_eq!(some.gpus.iter().map(|gpu| gpu.index).collect::<Vec<_>>(), [5, 0, 2]);
        let atomics = |from, to| some.pairs.iter().find(|p| (p.from, p.to) == (from, to)).map(|p| p.atomics);
        assert_eq!(some.pairs.len(), 6);
        assert_eq!([(0, 1), (1, 0), (1, 2), (2, 1)].map(|(a, b)| atomics(a, b)), [false, true, true, false].map(Some));
    }

    #[test]
    fn nodes_are_counted() {
        assert_eq!(nodes(Path::new("/nowhere")), [0]);
        assert_eq!(number(Path::new("/nowhere")), None);
    }
}
