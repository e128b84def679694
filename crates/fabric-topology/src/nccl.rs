//! NCCL topology XML (`NCCL_TOPO_FILE`, `NCCL_TOPO_DUMP_FILE`): read and written.
//!
//! The format has no rates but counts of NVLinks and speed and width of PCIe; rates come from [`super::figures`]. Network cards are
//! passed over. All NVSwitches become one device. Attributes are kept, so that what was read is written again.

use super::figures::{nvlink, pcie, rate, SOCKET};
use super::{
    shape, Builder, Device, DeviceKind, LinkKind, Rate, Topology, MAX_COUNT, MAX_DEPTH, MAX_DEVICES, MAX_FILE,
    MAX_GPUS, MAX_NODES,
};
use crate::{Error, Result};
use roxmltree::{Document, Node, ParsingOptions};
use std::collections::BTreeMap;
use std::fmt::Write;

const NAME: &str = "NCCL topology";

type Attributes = BTreeMap<String, String>;

/// What has been read so far.
#[derive(Default)]
struct Reader<'a> {
    /// Bus, attributes, the device above.
    gpus: Vec<Gpu<'a>>,
    cpus: Vec<Attributes>,
    switches: Vec<(Attributes, Above, Rate)>,
}

#[derive(Clone, Copy)]
enum Above {
    Cpu(usize),
    Switch(usize),
}

struct Gpu<'a> {
    dev: u32,
    sm: u32,
    cpu: usize,
    attributes: Attributes,
    above: Above,
    slot: Rate,
    element: Node<'a, 'a>,
}

fn place(node: Node<'_, '_>) -> String {
    let line = node.document().text_pos_at(node.range().start).row;
    format!("line {line} (<{}>)", node.tag_name().name())
}

fn attributes(node: Node<'_, '_>) -> Attributes {
    node.attributes().map(|a| (a.name().to_string(), a.value().to_string())).collect()
}

fn number(node: Node<'_, '_>, name: &str, max: u32) -> Result<u32> {
    let text = node.attribute(name).ok_or_else(|| Error::at(place(node), format!("expected the attribute {name}")))?;
    let number = text.parse().ok().filter(|n| *n <= max);
    number.ok_or_else(|| Error::at(place(node), format!("{name}: expected a number up to {max}, found {text:?}")))
}

/// What the slot carries; 8 GT/s and 16 lanes where the file does not say. In virtual machines NCCL writes what Linux tells it of a
/// link that it does not know: no speed, `Unknown` or `Unknown speed`, and a width of 0 or 255.
fn slot(node: Node<'_, '_>) -> Result<Rate> {
    let given = |name, unknown: &[&str]| node.attribute(name).filter(|text| !unknown.contains(text));
    let refused = |name, expected, text| Error::at(place(node), format!("{name}: expected {expected}, found {text:?}"));
    let gts = match given("link_speed", &["", "Unknown", "Unknown speed"]) {
        None => 8.0,
        Some(text) => {
            let number = text.strip_suffix(" PCIe").unwrap_or(text).strip_suffix("GT/s").map(str::trim_end);
            let gts = number.and_then(|n| n.parse().ok()).filter(|gts| (1.0..=1024.0).contains(gts));
            gts.ok_or_else(|| refused("link_speed", "1 to 1024 GT/s, such as \"32.0 GT/s PCIe\"", text))?
        }
    };
    let width = match given("link_width", &["", "0", "255"]) {
        None => 16,
        Some(text) => {
            let width = text.parse().ok().filter(|lanes| (1..=64).contains(lanes));
            width.ok_or_else(|| refused("link_width", "1 to 64 lanes", text))?
        }
    };
    Ok(rate(pcie(gts, width)))
}

impl<'a> Reader<'a> {
    fn pci(&mut self, node: Node<'a, 'a>, cpu: usize, above: Above, depth: usize) -> Result<()> {
        if depth > MAX_DEPTH {
            return Err(Error::at(place(node), format!("expected at most {MAX_DEPTH} levels of elements")));
        }
        if self.switches.len() >= MAX_DEVICES {
            return Err(Error::at(place(node), format!("expected at most {MAX_DEVICES} devices")));
        }
        let class = node.attribute("class").unwrap_or_default();
        if class.starts_with("0x0604") {
            self.switches.push((attributes(node), above, slot(node)?));
            let this = Above::Switch(self.switches.len() - 1);
            for child in node.children().filter(|c| c.has_tag_name("pci")) {
                self.pci(child, cpu, this, depth + 1)?;
            }
        } else if let Some(element) = node.children().find(|c| c.has_tag_name("gpu")) {
            let mut all = attributes(node);
            all.extend(attributes(element));
            let (dev, sm) = (number(element, "dev", u32::MAX)?, number(element, "sm", 1000)?);
            if self.gpus.len() >= MAX_GPUS {
                return Err(Error::at(place(element), format!("expected at most {MAX_GPUS} GPUs")));
            }
            if self.gpus.iter().any(|g| g.dev == dev) {
                return Err(Error::at(place(element), format!("there is already a GPU with dev {dev}")));
            }
            self.gpus.push(Gpu { dev, sm, cpu, attributes: all, above, slot: slot(node)?, element });
        }
        Ok(())
    }

    fn build(mut self) -> Result<Topology> {
        self.gpus.sort_by_key(|g| g.dev);
        let mut b = Builder::default();
        let mut add = |name: String, kind: DeviceKind, attributes: &Attributes| {
            b.devices.push(Device { name, kind, attributes: attributes.clone() });
            b.devices.len() - 1
        };
        let gpus: Vec<usize> =
            self.gpus.iter().map(|g| add(format!("GPU{}", g.dev), DeviceKind::Gpu, &g.attributes)).collect();
        let text = |a: &Attributes, key: &str| a.get(key).cloned().unwrap_or_default();
        let cpus: Vec<usize> =
            self.cpus.iter().map(|a| add(format!("CPU{}", text(a, "numaid")), DeviceKind::Cpu, a)).collect();
        let switches: Vec<usize> = self
            .switches
            .iter()
            .map(|(a, ..)| add(format!("PCIe {}", text(a, "busid")), DeviceKind::PcieSwitch, a))
            .collect();
        let device = |above: Above| match above {
            Above::Cpu(i) => cpus[i],
            Above::Switch(i) => switches[i],
        };
        for (g, gpu) in self.gpus.iter().enumerate() {
            b.link(gpus[g], device(gpu.above), LinkKind::Pcie, 1, gpu.slot);
        }
        for (s, (_, above, slot)) in self.switches.iter().enumerate() {
            b.link(switches[s], device(*above), LinkKind::Pcie, 1, *slot);
        }
        b.sockets(&cpus, rate(SOCKET));
        self.nvlinks(&mut b, &gpus, &cpus)?;
        b.build(NAME)
    }

    fn nvlinks(&self, b: &mut Builder, gpus: &[usize], cpus: &[usize]) -> Result<()> {
        // Links between GPUs stand at both; kept by the lower and the higher one, counted from each.
        let mut pairs: BTreeMap<(usize, usize), [u32; 2]> = BTreeMap::new();
        let (mut to_switch, mut to_cpu) = (vec![0; gpus.len()], vec![0; gpus.len()]);
        for (g, gpu) in self.gpus.iter().enumerate() {
            for link in gpu.element.children().filter(|c| c.has_tag_name("nvlink")) {
                let count = number(link, "count", MAX_COUNT)?;
                let target = link.attribute("target").unwrap_or_default();
                let class = link.attribute("tclass").unwrap_or("0x03");
                if count == 0 {
                    return Err(Error::at(place(link), "count: expected at least 1, found 0"));
                }
                if class.starts_with("0x0680") {
                    let ends = if class == "0x068001" { &mut to_cpu } else { &mut to_switch };
                    ends[g] = u32::min(ends[g] + count, MAX_COUNT);
                    continue;
                }
                let other = self.gpus.iter().position(|o| o.attributes.get("busid").is_some_and(|x| x == target));
                let Some(other) = other.filter(|&o| o != g) else {
                    return Err(Error::at(place(link), format!("target: there is no other GPU with busid {target:?}")));
                };
                let counts = pairs.entry((g.min(other), g.max(other))).or_default();
                let mine = &mut counts[usize::from(g > other)];
                if *mine > 0 {
                    return Err(Error::at(place(link), format!("there is already a link to {target}")));
                }
                *mine = count;
            }
            for link in gpu.element.children().filter(|c| c.has_tag_name("c2c")) {
                let (count, bw) = (number(link, "count", MAX_COUNT)?, number(link, "bw", 1_000_000)?);
                let carried = Rate::from_gbs(f64::from(count) * f64::from(bw) / 1000.0)
                    .ok_or_else(|| Error::at(place(link), "bw and count: expected at least 1"))?;
                b.link(gpus[g], cpus[gpu.cpu], LinkKind::NvLink, count, carried);
            }
        }
        for ((i, j), counts) in pairs {
            if counts[0] != counts[1] {
                let (a, b) = (self.gpus[i].dev, self.gpus[j].dev);
                let problem = format!("{} NVLinks from GPU{a} to GPU{b} but {} back", counts[0], counts[1]);
                return Err(Error::at(place(self.gpus[i].element), problem));
            }
            let one = nvlink(self.gpus[i].sm).min(nvlink(self.gpus[j].sm));
            b.link(gpus[i], gpus[j], LinkKind::NvLink, counts[0], rate(f64::from(counts[0]) * one));
        }
        let carried = |g: usize, count: u32| rate(f64::from(count) * nvlink(self.gpus[g].sm));
        if to_switch.iter().any(|c| *c > 0) {
            let s = b.device("NVSwitch0", DeviceKind::NvSwitch, &[]);
            for (g, &count) in to_switch.iter().enumerate().filter(|(_, c)| **c > 0) {
                b.link(gpus[g], s, LinkKind::NvLink, count, carried(g, count));
            }
        }
        for (g, &count) in to_cpu.iter().enumerate().filter(|(_, c)| **c > 0) {
            b.link(gpus[g], cpus[self.gpus[g].cpu], LinkKind::NvLink, count, carried(g, count));
        }
        Ok(())
    }
}

impl Topology {
    /// Reads NCCL topology XML.
    pub fn from_nccl_xml(text: &str) -> Result<Self> {
        if text.len() > MAX_FILE {
            return Err(Error::at("size", format!("expected at most {MAX_FILE} bytes, found {}", text.len())));
        }
        shape::check(text)?;
        let options = ParsingOptions { nodes_limit: MAX_NODES, ..ParsingOptions::default() };
        let document = Document::parse_with_options(text, options)
            .map_err(|e| Error::at(format!("line {}", e.pos().row), format!("not XML: {e}")))?;
        let root = document.root_element();
        if !root.has_tag_name("system") {
            return Err(Error::at(place(root), "expected <system version=\"1\">, the root of an NCCL topology"));
        }
        if let Some(version) = root.attribute("version").filter(|v| *v != "1") {
            return Err(Error::at(place(root), format!("expected version 1, found {version:?}")));
        }
        let mut reader = Reader::default();
        for cpu in root.children().filter(|c| c.has_tag_name("cpu")) {
            // Every pair of them is linked.
            if reader.cpus.len() >= MAX_DEVICES {
                return Err(Error::at(place(cpu), format!("expected at most {MAX_DEVICES} devices")));
            }
            reader.cpus.push(attributes(cpu));
            let this = reader.cpus.len() - 1;
            for pci in cpu.children().filter(|c| c.has_tag_name("pci")) {
                reader.pci(pci, this, Above::Cpu(this), 0)?;
            }
        }
        reader.build()
    }

    /// Writes NCCL topology XML. PCIe rates that were not read from such a file become the nearest speed and width; NVLink rates become
    /// counts.
    ///
    /// # Errors
    /// A GPU hangs on no CPU over PCIe; attributes of devices contradict each other or the format.
    pub fn to_nccl_xml(&self) -> Result<String> {
        let mut writer = Writer { topology: self, is_written: vec![false; self.devices.len()], out: String::new() };
        writer.out += "<system version=\"1\">\n";
        for cpu in self.of_kind(DeviceKind::Cpu) {
            let numa = self.devices[cpu].attributes.get("numaid").cloned().unwrap_or_else(|| cpu.to_string());
            let host = [
                ("numaid", numa.as_str()),
                ("arch", "x86_64"),
                ("vendor", "GenuineIntel"),
                ("familyid", "6"),
                ("modelid", "85"),
            ];
            writer.open("cpu", cpu, &host, 1);
            writer.below(cpu, 2);
            writer.out += "  </cpu>\n";
        }
        writer.out += "</system>\n";
        if let Some(gpu) = self.gpus().into_iter().find(|&g| !writer.is_written[g]) {
            let name = &self.devices[gpu].name;
            return Err(Error::Export(format!("{name} hangs on no CPU over PCIe, which NCCL's format cannot say")));
        }
        // Attributes from elsewhere may be of GPUs that have one number, or of no bus.
        match Self::from_nccl_xml(&writer.out) {
            Ok(_) => Ok(writer.out),
            Err(error) => Err(Error::Export(format!("attributes of devices do not fit NCCL's format, {error}"))),
        }
    }

    fn busid(&self, device: usize) -> String {
        let own = self.devices[device].attributes.get("busid").cloned();
        own.unwrap_or_else(|| format!("0000:{:02x}:00.0", device + 1))
    }
}

struct Writer<'a> {
    topology: &'a Topology,
    is_written: Vec<bool>,
    out: String,
}

const PCI: [&str; 8] =
    ["busid", "class", "vendor", "device", "subsystem_vendor", "subsystem_device", "link_speed", "link_width"];

impl Writer<'_> {
    /// Opens an element with the device's attributes, or these where it has none.
    fn open(&mut self, tag: &str, device: usize, defaults: &[(&str, &str)], level: usize) {
        let own = &self.topology.devices[device].attributes;
        let is_gpu = tag == "gpu";
        let is_split = self.topology.devices[device].kind == DeviceKind::Gpu;
        let mut all: BTreeMap<&str, &str> = defaults.iter().copied().collect();
        all.extend(
            own.iter().map(|(k, v)| (k.as_str(), v.as_str())).filter(|(k, _)| !is_split || PCI.contains(k) != is_gpu),
        );
        let _ = write!(self.out, "{:1$}<{tag}", "", level * 2);
        for (key, value) in all {
            let _ = write!(self.out, " {key}=\"{}\"", escaped(value));
        }
        self.out += ">\n";
    }

    fn below(&mut self, above: usize, level: usize) {
        self.is_written[above] = true;
        let below: Vec<(usize, i64)> = self
            .topology
            .links_of(above)
            .filter(|(_, l)| l.kind == LinkKind::Pcie)
            .map(|(other, l)| (other, l.forth.min(l.back).mbs()))
            .filter(|(other, _)| self.topology.devices[*other].kind != DeviceKind::Cpu)
            .collect();
        for (device, mbs) in below {
            if self.is_written[device] {
                continue;
            }
            let is_gpu = self.topology.devices[device].kind == DeviceKind::Gpu;
            let (speed, width) = nearest(mbs as f64 / 1000.0);
            let (bus, speed, width) = (self.topology.busid(device), format!("{speed:?} GT/s PCIe"), width.to_string());
            let class = if is_gpu { "0x030200" } else { "0x060400" };
            let defaults = [("busid", bus.as_str()), ("class", class), ("link_speed", &speed), ("link_width", &width)];
            self.open("pci", device, &defaults, level);
            if is_gpu {
                self.is_written[device] = true;
                self.gpu(device, level + 1);
            } else {
                self.below(device, level + 1);
            }
            let _ = writeln!(self.out, "{:1$}</pci>", "", level * 2);
        }
    }

    fn gpu(&mut self, gpu: usize, level: usize) {
        let t = self.topology;
        let number = t.gpus().iter().position(|&g| g == gpu).unwrap_or(0).to_string();
        self.open("gpu", gpu, &[("dev", &number), ("rank", &number), ("sm", "80"), ("gdr", "0")], level);
        for (other, link) in t.links_of(gpu).filter(|(_, l)| l.kind == LinkKind::NvLink) {
            let (bus, class) = match t.devices[other].kind {
                DeviceKind::Gpu => (t.busid(other), "0x030200"),
                DeviceKind::Cpu => {
                    let bw = link.forth.min(link.back).mbs() / i64::from(link.count);
                    let _ = writeln!(self.out, "{:1$}<c2c bw=\"{bw}\" count=\"{2}\"/>", "", level * 2 + 2, link.count);
                    continue;
                }
                _ => ("0000:00:00.0".into(), "0x068000"),
            };
            let count = link.count;
            let (bus, indent) = (escaped(&bus), level * 2 + 2);
            let _ = writeln!(self.out, "{:indent$}<nvlink target=\"{bus}\" count=\"{count}\" tclass=\"{class}\"/>", "");
        }
        let _ = writeln!(self.out, "{:1$}</gpu>", "", level * 2);
    }
}

/// The speed in GT/s and the width that come nearest to a rate in GB/s.
fn nearest(gbs: f64) -> (f64, u32) {
    let all = [2.5, 5.0, 8.0, 16.0, 32.0, 64.0].into_iter().flat_map(|gts| [16, 8, 4, 2, 1].map(|width| (gts, width)));
    let error = |(gts, width): (f64, u32)| (pcie(gts, width) - gbs).abs();
    all.min_by(|a, b| error(*a).total_cmp(&error(*b))).unwrap_or((8.0, 16))
}

/// Text for an attribute of XML.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            c => out.push(c),
        }
    }
    out
}
