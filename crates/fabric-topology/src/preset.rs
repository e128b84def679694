//! Machines that are known by name.

use super::figures::{nvlink, pcie, rate, SOCKET};
use super::{Builder, DeviceKind, LinkKind, Topology};
use crate::{Error, Result};

/// Names of presets, each with a line about it.
pub const PRESETS: [(&str, &str); 12] = [
    ("dgx1-v100", "DGX-1 with 8 V100, six NVLinks each, no switch"),
    ("dgx1-v100-4", "GPUs 0 to 3 of a DGX-1 with V100"),
    ("hgx-a100", "HGX with 8 A100 on NVSwitches, NV12"),
    ("hgx-h100", "HGX with 8 H100 on NVSwitches, NV18"),
    ("hgx-h200", "HGX with 8 H200 on NVSwitches, NV18"),
    ("h200-pair", "two H200 of such a box, at measured rates"),
    ("bridge-pairs", "four RTX 3090, two pairs on NV4 bridges, SYS between them"),
    ("a100-mesh4", "four A100, NV4 between each two"),
    ("h100-mesh4", "four H100, NV6 between each two"),
    ("l40s-8", "eight L40S on PCIe switches, no NVLink"),
    ("gb200-trays", "two trays of a GB200 NVL72: two hosts with four GPUs and two CPUs each on common NVSwitches"),
    ("ring5", "five A100 in a ring of NV4, one CPU"),
];

/// NVLinks between the GPUs of a DGX-1 with V100.
const DGX1V: [(usize, usize, u32); 16] = [
    (0, 1, 1),
    (0, 2, 1),
    (0, 3, 2),
    (0, 4, 2),
    (1, 2, 2),
    (1, 3, 1),
    (1, 5, 2),
    (2, 3, 2),
    (2, 6, 1),
    (3, 7, 1),
    (4, 5, 1),
    (4, 6, 1),
    (4, 7, 2),
    (5, 6, 2),
    (5, 7, 1),
    (6, 7, 2),
];

impl Topology {
    /// The machine with this name of [`PRESETS`].
    pub fn preset(name: &str) -> Result<Self> {
        let mut b = Builder::default();
        match name {
            "dgx1-v100" => dgx1(&mut b, 8),
            "dgx1-v100-4" => dgx1(&mut b, 4),
            "hgx-a100" => hgx(&mut b, 80, 12, 16.0),
            "hgx-h100" | "hgx-h200" => hgx(&mut b, 90, 18, 32.0),
            "h200-pair" => h200_pair(&mut b),
            "bridge-pairs" => {
                let gpus = host(&mut b, &[1, 1, 1, 1], 86, 16.0);
                for pair in gpus.chunks_exact(2) {
                    // Measured on such a bridge: 48.9 GB/s one way.
                    b.link(pair[0], pair[1], LinkKind::NvLink, 4, rate(4.0 * nvlink(86)));
                }
            }
            "a100-mesh4" => mesh(&mut b, 80, 4, 16.0),
            "h100-mesh4" => mesh(&mut b, 90, 6, 32.0),
            "l40s-8" => {
                host(&mut b, &[2, 2, 2, 2], 89, 16.0);
            }
            "gb200-trays" => trays(&mut b),
            "ring5" => ring(&mut b, 5),
            _ => {
                let names: Vec<_> = PRESETS.iter().map(|(name, _)| *name).collect();
                return Err(Error::at(format!("preset {name:?}"), format!("expected one of {}", names.join(", "))));
            }
        }
        b.build(name)
    }
}

/// Two NUMA nodes with PCIe switches, half of them each; switch `i` has `on_switch[i]` GPUs below it, a lone GPU needs none.
fn host(b: &mut Builder, on_switch: &[usize], sm: u32, gts: f64) -> Vec<usize> {
    let gpus: Vec<usize> = (0..on_switch.iter().sum())
        .map(|i| b.device(format!("GPU{i}"), DeviceKind::Gpu, &[("sm", &sm.to_string())]))
        .collect();
    let cpus = [0, 1].map(|i: usize| b.device(format!("CPU{i}"), DeviceKind::Cpu, &[("numaid", &i.to_string())]));
    let slot = rate(pcie(gts, 16));
    let mut rest = gpus.as_slice();
    for (i, &n) in on_switch.iter().enumerate() {
        let cpu = cpus[i * 2 / on_switch.len()];
        let (below, others) = rest.split_at(n);
        rest = others;
        if let [gpu] = below {
            b.link(*gpu, cpu, LinkKind::Pcie, 1, slot);
            continue;
        }
        let switch = b.device(format!("PCIe{i}"), DeviceKind::PcieSwitch, &[]);
        b.link(switch, cpu, LinkKind::Pcie, 1, slot);
        below.iter().for_each(|&gpu| b.link(gpu, switch, LinkKind::Pcie, 1, slot));
    }
    b.sockets(&cpus, rate(SOCKET));
    gpus
}

fn dgx1(b: &mut Builder, n: usize) {
    let gpus = host(b, if n == 8 { &[2, 2, 2, 2] } else { &[2, 2] }, 70, 8.0);
    for (i, j, count) in DGX1V.into_iter().filter(|(i, j, _)| *i < n && *j < n) {
        b.link(gpus[i], gpus[j], LinkKind::NvLink, count, rate(f64::from(count) * nvlink(70)));
    }
}

fn hgx(b: &mut Builder, sm: u32, count: u32, gts: f64) {
    let gpus = host(b, &[2, 2, 2, 2], sm, gts);
    let switch = b.device("NVSwitch0", DeviceKind::NvSwitch, &[]);
    for gpu in gpus {
        b.link(gpu, switch, LinkKind::NvLink, count, rate(f64::from(count) * nvlink(sm)));
    }
}

/// Rates measured with copy engines on two H200 of one box, 2026-11: 398 GB/s NVLink, 54.9 GB/s from host memory.
fn h200_pair(b: &mut Builder) {
    let gpus = [0, 1].map(|i: usize| b.device(format!("GPU{i}"), DeviceKind::Gpu, &[("sm", "90")]));
    let cpu = b.device("CPU0", DeviceKind::Cpu, &[("numaid", "0")]);
    gpus.iter().for_each(|&gpu| b.link(gpu, cpu, LinkKind::Pcie, 1, rate(54.9)));
    b.link(gpus[0], gpus[1], LinkKind::NvLink, 18, rate(398.0));
}

fn mesh(b: &mut Builder, sm: u32, count: u32, gts: f64) {
    let gpus = host(b, &[1, 1, 1, 1], sm, gts);
    for i in 0..4 {
        for j in i + 1..4 {
            b.link(gpus[i], gpus[j], LinkKind::NvLink, count, rate(f64::from(count) * nvlink(sm)));
        }
    }
}

/// Hosts are joined by NVLink alone. Each CPU has two GPUs on NVLink-C2C, which carries 450 GB/s each way for both.
fn trays(b: &mut Builder) {
    let gpus: Vec<usize> = (0..8).map(|i| b.device(format!("GPU{i}"), DeviceKind::Gpu, &[("sm", "100")])).collect();
    let cpus: Vec<usize> =
        (0..4).map(|i| b.device(format!("CPU{i}"), DeviceKind::Cpu, &[("numaid", &i.to_string())])).collect();
    let switch = b.device("NVSwitch0", DeviceKind::NvSwitch, &[]);
    for (i, &gpu) in gpus.iter().enumerate() {
        b.link(gpu, cpus[i / 2], LinkKind::NvLink, 1, rate(225.0));
        b.link(gpu, switch, LinkKind::NvLink, 18, rate(18.0 * nvlink(100)));
    }
    cpus.chunks_exact(2).for_each(|host| b.sockets(host, rate(SOCKET)));
}

fn ring(b: &mut Builder, n: usize) {
    let gpus: Vec<usize> = (0..n).map(|i| b.device(format!("GPU{i}"), DeviceKind::Gpu, &[("sm", "80")])).collect();
    let cpu = b.device("CPU0", DeviceKind::Cpu, &[("numaid", "0")]);
    for (i, &gpu) in gpus.iter().enumerate() {
        b.link(gpu, cpu, LinkKind::Pcie, 1, rate(pcie(16.0, 16)));
        b.link(gpu, gpus[(i + 1) % n], LinkKind::NvLink, 4, rate(4.0 * nvlink(80)));
    }
}
