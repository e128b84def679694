//! A topology from facts: pure.

use super::{Facts, GpuFacts, Measured, PairFacts};
use crate::topology::figures::{nvlink, pcie, rate, MEMORY, SOCKET};
use crate::topology::{Builder, DeviceKind, LinkKind, Rate, Topology};
use crate::Result;
use std::collections::{BTreeMap, BTreeSet};
use tandem_cuda::nvml::{Capability, Common, Remote};

/// GT/s of a PCIe lane, by generation.
fn gts(generation: u32) -> f64 {
    match generation {
        0 | 1 => 2.5,
        2 => 5.0,
        n => 8.0 * f64::from(1u32 << (n.min(8) - 3)),
    }
}

impl GpuFacts {
    /// What its slot carries each way; generation 4 with 16 lanes where nothing says.
    fn slot(&self) -> Rate {
        let (generation, width) = self.pcie.map_or((4, 16), |p| (p.most_generation, p.most_width));
        rate(pcie(gts(generation), width.clamp(1, 32)))
    }
}

impl Facts {
    /// The machine as a topology. Rates are the figures of [`crate::topology`], or those that were measured.
    ///
    /// # Errors
    /// There is no GPU, or more than a topology can have.
    pub fn topology(&self, measured: Option<&Measured>) -> Result<Topology> {
        let mut b = Builder::default();
        let gpus: Vec<usize> = self.gpus.iter().enumerate().map(|(i, gpu)| add(&mut b, i, gpu)).collect();
        let node = |gpu: &GpuFacts| gpu.numa.unwrap_or(self.nodes.first().copied().unwrap_or(0));
        let numbers: BTreeSet<u32> = self.nodes.iter().copied().chain(self.gpus.iter().map(node)).collect();
        let cpus: BTreeMap<u32, usize> = numbers
            .into_iter()
            .map(|n| (n, b.device(format!("CPU{n}"), DeviceKind::Cpu, &[("numaid", &n.to_string())])))
            .collect();
        for (s, group) in self.behind_switches().iter().enumerate() {
            let cpu = cpus[&node(&self.gpus[group[0]])];
            let host = |i: usize| measured.and_then(|m| m.host.get(i).copied());
            let (above, kind) = match group.as_slice() {
                [_] => (cpu, LinkKind::Pcie),
                many => {
                    let switch = b.device(format!("PCIe{s}"), DeviceKind::PcieSwitch, &[]);
                    let up = many.iter().map(|&i| self.gpus[i].slot()).max().unwrap_or(rate(1.0));
                    b.link(switch, cpu, LinkKind::Pcie, 1, up);
                    (switch, LinkKind::Pcie)
                }
            };
            for &i in group {
                let slot = self.gpus[i].slot();
                b.link(gpus[i], above, kind, 1, slot);
                if let (Some((up, down)), Some(link)) = (host(i), b.links.last_mut()) {
                    // From the GPU towards the host is a download.
                    link.forth = Rate::from_gbs(down).unwrap_or(slot);
                    link.back = Rate::from_gbs(up).unwrap_or(slot);
                }
            }
        }
        b.sockets(&cpus.values().copied().collect::<Vec<_>>(), rate(SOCKET));
        self.nvlinks(&mut b, &gpus, measured);
        self.memories(&mut b, &gpus);
        Ok(b.build("this machine")?)
    }

    /// GPUs that share PCIe switches, as groups; a lone GPU is one.
    fn behind_switches(&self) -> Vec<Vec<usize>> {
        let mut group: Vec<usize> = (0..self.gpus.len()).collect();
        for p in &self.pairs {
            if p.common.is_some_and(|c| c <= Common::Switches) {
                let (low, high) = (group[p.from].min(group[p.to]), group[p.from].max(group[p.to]));
                group.iter_mut().filter(|g| **g == high).for_each(|g| *g = low);
            }
        }
        let heads: BTreeSet<usize> = group.iter().copied().collect();
        heads.iter().map(|h| (0..group.len()).filter(|&i| group[i] == *h).collect()).collect()
    }

    /// What joins PEs of one GPU.
    fn memories(&self, b: &mut Builder, gpus: &[usize]) {
        let numbers: BTreeSet<u32> = self.gpus.iter().map(|gpu| gpu.index).collect();
        for number in numbers {
            let on: Vec<usize> = (0..gpus.len()).filter(|&i| self.gpus[i].index == number).collect();
            if on.len() > 1 {
                let memory = b.device(format!("Memory{number}"), DeviceKind::Memory, &[]);
                on.iter().for_each(|&i| b.link(gpus[i], memory, LinkKind::Memory, 1, rate(MEMORY)));
            }
        }
    }

    fn nvlinks(&self, b: &mut Builder, gpus: &[usize], measured: Option<&Measured>) {
        let one = |gpu: &GpuFacts| nvlink(gpu.sm).min(gpu.nvlink_mbs.map_or(f64::MAX, |mbs| f64::from(mbs) / 1000.0));
        let of_pair = |i: usize, j: usize| measured.and_then(|m| m.copy.get(i)?.get(j).copied().flatten());
        let mut pairs: BTreeMap<(usize, usize), u32> = BTreeMap::new();
        let mut switched = vec![0u32; gpus.len()];
        for (i, gpu) in self.gpus.iter().enumerate() {
            for link in gpu.nvlinks.iter().filter(|l| l.active) {
                let other = self.gpus.iter().position(|g| link.remote_pci.as_ref() == Some(&g.pci));
                match (link.remote, other) {
                    // Both ends list a link: it is counted at the lower one.
                    (_, Some(j)) if j != i => *pairs.entry((i.min(j), i.max(j))).or_default() += u32::from(i < j),
                    // What a virtual machine does not show is a switch: bridges join GPUs of one machine.
                    (Remote::Switch | Remote::Unknown, _) => switched[i] += 1,
                    _ => {}
                }
            }
        }
        // What the driver does not let through is no link of a plan; the remarks say why.
        let is_open = |i: usize, j: usize| self.pairs.iter().any(|p| (p.from, p.to) == (i, j) && p.access);
        for ((i, j), count) in pairs.into_iter().filter(|((i, j), count)| *count > 0 && is_open(*i, *j)) {
            let figure = f64::from(count) * one(&self.gpus[i]).min(one(&self.gpus[j]));
            b.link(gpus[i], gpus[j], LinkKind::NvLink, count, rate(figure));
            if let Some(link) = b.links.last_mut() {
                link.forth = of_pair(i, j).and_then(Rate::from_gbs).unwrap_or(link.forth);
                link.back = of_pair(j, i).and_then(Rate::from_gbs).unwrap_or(link.back);
            }
        }
        let is_other = |p: &PairFacts| self.gpus[p.from].index != self.gpus[p.to].index;
        let reaches = |i: usize| self.pairs.iter().any(|p| p.from == i && p.access && is_other(p));
        if !(0..gpus.len()).any(|i| switched[i] > 0 && reaches(i)) {
            return;
        }
        let switch = b.device("NVSwitch0", DeviceKind::NvSwitch, &[]);
        for (i, &count) in switched.iter().enumerate().filter(|(i, count)| **count > 0 && reaches(*i)) {
            b.link(gpus[i], switch, LinkKind::NvLink, count, rate(f64::from(count) * one(&self.gpus[i])));
            let best = |rates: Vec<Option<f64>>| rates.into_iter().flatten().reduce(f64::max).and_then(Rate::from_gbs);
            if let Some(link) = b.links.last_mut() {
                link.forth = best((0..gpus.len()).map(|j| of_pair(i, j)).collect()).unwrap_or(link.forth);
                link.back = best((0..gpus.len()).map(|j| of_pair(j, i)).collect()).unwrap_or(link.back);
            }
        }
    }

    /// What is missing or slower than it could be, a line each.
    pub fn remarks(&self) -> Vec<String> {
        let mut out = Vec::new();
        if let Some(reason) = &self.no_nvml {
            out.push(format!("NVLinks and slots are not known: NVML cannot be loaded ({reason})"));
        }
        for gpu in &self.gpus {
            let name = format!("GPU{}", gpu.index);
            if let Some(reason) = &gpu.refused {
                out.push(format!("{name} is not used: {reason}"));
            }
            let down: Vec<String> = gpu.nvlinks.iter().filter(|l| !l.active).map(|l| l.number.to_string()).collect();
            if !down.is_empty() {
                let all = gpu.nvlinks.len();
                out.push(format!("{name}: {} of {all} NVLinks are down: {}", down.len(), down.join(", ")));
            }
            if let Some(p) = gpu.pcie.filter(|p| p.width < p.most_width) {
                out.push(format!("{name}: the slot runs on {} of {} lanes", p.width, p.most_width));
            }
        }
        for p in &self.pairs {
            out.extend(self.remark(p));
        }
        out
    }

    fn remark(&self, p: &PairFacts) -> Option<String> {
        let reason = |wanted: &[Capability]| {
            let found = p.lacks.iter().find(|(c, _)| wanted.contains(c));
            found.map_or("the driver does not say why", |(_, reason)| reason)
        };
        let (from, to) = (self.gpus[p.from].index, self.gpus[p.to].index);
        if !p.access {
            let why = reason(&[Capability::Read, Capability::Write]);
            return Some(format!("GPU{from} cannot reach the memory of GPU{to}: {why}; copies pass the host"));
        }
        (!p.atomics).then(|| {
            let why = reason(&[Capability::Atomics]);
            format!("GPU{from} has no atomic operations on the memory of GPU{to}: {why}")
        })
    }
}

fn add(b: &mut Builder, i: usize, gpu: &GpuFacts) -> usize {
    let mut attributes = vec![("busid", gpu.pci.clone()), ("sm", gpu.sm.to_string()), ("name", gpu.name.clone())];
    if let Some(p) = gpu.pcie {
        attributes.push(("link_speed", format!("{:?} GT/s PCIe", gts(p.most_generation))));
        attributes.push(("link_width", p.most_width.to_string()));
    }
    let attributes: Vec<(&str, &str)> = attributes.iter().map(|(k, v)| (*k, v.as_str())).collect();
    b.device(format!("GPU{i}"), DeviceKind::Gpu, &attributes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_cuda::nvml::{NvLink, Pcie};

    fn gpu(index: u32) -> GpuFacts {
        let pcie = Pcie { generation: 1, width: 16, most_generation: 5, most_width: 16 };
        GpuFacts {
            index,
            name: "NVIDIA H200".into(),
            pci: format!("0000:{:02x}:00.0", index + 1),
            sm: 90,
            numa: None,
            pcie: Some(pcie),
            nvlinks: Vec::new(),
            nvlink_mbs: Some(26_562),
            refused: None,
        }
    }

    fn link(number: u32, remote: Remote, pci: Option<&str>) -> NvLink {
        NvLink { number, active: true, remote, remote_pci: pci.map(Into::into) }
    }

    fn facts(n: u32) -> Facts {
        let gpus: Vec<GpuFacts> = (0..n).map(gpu).collect();
        let all = (0..n as usize).flat_map(|i| (0..n as usize).filter(move |j| *j != i).map(move |j| (i, j)));
        let pair = |(from, to)| PairFacts { from, to, access: true, atomics: true, common: None, lacks: Vec::new() };
        Facts { gpus, pairs: all.map(pair).collect(), nodes: vec![0, 1], ..Facts::default() }
    }

    #[test]
    fn two_gpus_behind_switches_that_a_virtual_machine_hides() {
        let mut facts = facts(2);
        for gpu in &mut facts.gpus {
            gpu.nvlinks = (0..18).map(|n| link(n, Remote::Unknown, Some("0000:00:00.0"))).collect();
        }
        let t = facts.topology(None).unwrap();
        assert!(t.to_matrix().contains("NV18"), "{}", t.to_matrix());
        assert!(t.to_matrix().contains("370.8"), "{}", t.to_matrix());
        assert!(facts.remarks().is_empty());
        let measured = Measured {
            copy: vec![vec![None, Some(397.5)], vec![Some(396.0), None]],
            host: vec![(55.0, 54.0), (55.5, 54.5)],
            ..Measured::default()
        };
        let t = facts.topology(Some(&measured)).unwrap();
        let text = t.to_matrix();
        assert!(text.contains("396.0") && text.contains("54 / 55 "), "{text}");
    }

    #[test]
    fn bridges_are_counted_once() {
        let mut facts = facts(4);
        for i in 0..4usize {
            let other = facts.gpus[i ^ 1].pci.clone();
            facts.gpus[i].nvlinks = (0..4).map(|n| link(n, Remote::Gpu, Some(&other))).collect();
            facts.gpus[i].sm = 86;
        }
        facts.gpus[2].nvlinks[3].active = false;
        facts.gpus[3].nvlinks[3].active = false;
        for p in &mut facts.pairs {
            p.common = Some(if p.from / 2 == p.to / 2 { Common::Switch } else { Common::System });
            p.access = p.from / 2 == p.to / 2;
            p.lacks = vec![(Capability::Read, "the chipset does not support it")];
        }
        let t = facts.topology(None).unwrap();
        let counts: Vec<u32> = t.links().iter().filter(|l| l.kind == LinkKind::NvLink).map(|l| l.count).collect();
        assert_eq!(counts, [4, 3]);
        assert_eq!(t.devices().iter().filter(|d| d.kind == DeviceKind::PcieSwitch).count(), 2);
        let remarks = facts.remarks();
        assert!(remarks.iter().any(|r| r == "GPU2: 1 of 4 NVLinks are down: 3"), "{remarks:?}");
        let refused = "GPU0 cannot reach the memory of GPU2: the chipset does not support it; copies pass the host";
        assert!(remarks.iter().any(|r| r == refused), "{remarks:?}");
        assert_eq!(remarks.iter().filter(|r| r.contains("cannot reach")).count(), 8);
        // Links that the driver refuses are not planned with.
        facts.pairs.iter_mut().filter(|p| p.from < 2).for_each(|p| p.access = false);
        let t = facts.topology(None).unwrap();
        assert_eq!(t.links().iter().filter(|l| l.kind == LinkKind::NvLink).count(), 1);
        assert!(t.to_matrix().contains("GPU0  X     PIX"), "{}", t.to_matrix());
        assert_eq!(facts.remarks().iter().filter(|r| r.contains("cannot reach")).count(), 10);
    }

    #[test]
    fn pes_of_one_gpu_meet_in_its_memory() {
        let mut facts = facts(2);
        for gpu in &mut facts.gpus {
            gpu.nvlinks = (0..18).map(|n| link(n, Remote::Unknown, Some("0000:00:00.0"))).collect();
        }
        let matrix = |gpus: &[u32]| facts.clone().only(gpus).topology(None).unwrap().to_matrix();
        let text = matrix(&[0, 1, 0, 0]);
        assert!(text.contains("GPU0  X     NV18  SELF  SELF"), "{text}");
        assert!(text.contains("GPU1  NV18  X     NV18  NV18"), "{text}");
        // There is no switch to a GPU that is alone.
        let text = matrix(&[0, 0, 0]);
        assert!(text.contains("GPU0  X     SELF  SELF") && text.contains("GPU0    X       1675.0  1675.0"), "{text}");
        assert!(!text.contains("NV18"), "{text}");
    }

    #[test]
    fn a_lone_gpu_and_slow_slots() {
        let mut facts = facts(1);
        facts.gpus[0].pcie = Some(Pcie { generation: 4, width: 4, most_generation: 4, most_width: 16 });
        facts.gpus[0].numa = Some(3);
        facts.no_nvml = Some("no such file".into());
        let t = facts.topology(None).unwrap();
        assert_eq!(t.gpus().len(), 1);
        assert!(t.devices().iter().any(|d| d.name == "CPU3"));
        assert_eq!(t.links()[0].forth.gbs(), 24.0);
        assert_eq!(facts.remarks().len(), 2);
        assert!(Facts::default().topology(None).is_err());
    }

    #[test]
    fn generations_double() {
        assert_eq!([1, 2, 3, 4, 5, 6].map(gts), [2.5, 5.0, 8.0, 16.0, 32.0, 64.0]);
    }
}
