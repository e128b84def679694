//! The GPUs, CPUs and switches of a machine, the links between them, and what each link carries: known machines by name, NCCL's
//! XML, the matrix of `nvidia-smi topo -m`, JSON of our own, and drawings. It needs no GPU.
//!
//! ```
//! use tandem_fabric_topology::{LinkKind, Topology};
//!
//! # fn main() -> tandem_fabric_topology::Result<()> {
//! let dgx = Topology::preset("dgx1-v100")?;
//! let nvlinks = dgx.links().iter().filter(|link| link.kind == LinkKind::NvLink).map(|link| link.count).sum::<u32>();
//! assert_eq!((dgx.gpus().len(), nvlinks), (8, 24));
//!
//! // A file in any of the formats, told apart by its text.
//! let read = Topology::read(dgx.to_json().as_bytes())?;
//! assert_eq!(read, dgx);
//! assert!(dgx.to_svg().starts_with("<svg"));
//! # Ok(())
//! # }
//! ```
//!
//! Rates are whole MB/s (10^6 bytes a second), so that planning is exact. A [`Topology`] is checked once, where it is
//! made; everything behind that may rely on the rules of [`Topology::new`].
#![forbid(unsafe_code)]

pub mod draw;
mod error;
mod json;
pub mod layout;
mod nccl;
pub mod picture;
mod preset;
mod shape;
mod smi;
mod wrap;

pub use error::{Error, Result};
pub use nccl::escaped;
pub use preset::PRESETS;
pub use wrap::{wrapped, COLUMNS};

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// GPUs that a topology may have.
pub const MAX_GPUS: usize = 64;
/// Devices of all kinds.
pub const MAX_DEVICES: usize = 256;
/// Links; 64 GPUs joined pairwise have 2016.
pub const MAX_LINKS: usize = 4096;
/// Characters of a name or of an attribute's value, as in NCCL.
pub const MAX_TEXT: usize = 255;
/// Attributes of a device.
pub const MAX_ATTRIBUTES: usize = 32;
/// Bytes of a file that is read.
pub const MAX_FILE: usize = 4 << 20;
/// Elements of a file of XML, with their texts and comments.
pub const MAX_NODES: u32 = 100_000;
/// Levels of elements of such a file.
pub const MAX_DEPTH: usize = 16;
/// Attributes of such an element; parsers compare each with all others.
pub const MAX_ELEMENT_ATTRIBUTES: usize = 2 * MAX_ATTRIBUTES;
/// Single NVLinks that a link may bundle.
pub const MAX_COUNT: u32 = 1024;

/// What a link carries one way, in MB/s; from 1 MB/s to 1 PB/s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u32);

impl Rate {
    /// From GB/s (10^9 bytes a second), rounded to MB/s. `None` unless it is finite and from 0.001 to 1 000 000 GB/s.
    pub fn from_gbs(gbs: f64) -> Option<Self> {
        let mbs = (gbs * 1000.0).round();
        (1.0..=1e9).contains(&mbs).then_some(Self(mbs as u32))
    }

    /// In GB/s.
    pub fn gbs(self) -> f64 {
        f64::from(self.0) / 1000.0
    }

    /// In MB/s.
    pub fn mbs(self) -> i64 {
        self.0.into()
    }

    /// What one of so many equal parts has of it.
    pub fn over(self, parts: usize) -> Self {
        Self((f64::from(self.0) / parts.max(1) as f64).max(1.0) as u32)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.gbs())
    }
}

/// What a device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeviceKind {
    /// A GPU.
    Gpu,
    /// A NUMA node: CPU cores and their memory.
    Cpu,
    /// A PCIe switch.
    PcieSwitch,
    /// The NVSwitches of a machine, which do not slow each other down, as one.
    NvSwitch,
    /// The memory of a GPU on which there are several PEs, each a [`DeviceKind::Gpu`].
    Memory,
}

/// What a link is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkKind {
    /// One or more bundled NVLinks (also NVLink-C2C).
    NvLink,
    /// PCI Express.
    Pcie,
    /// Between NUMA nodes.
    Socket,
    /// Within a GPU, between a PE and the memory that it shares with others.
    Memory,
}

impl DeviceKind {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Gpu, "gpu"),
        (Self::Cpu, "cpu"),
        (Self::PcieSwitch, "pcie-switch"),
        (Self::NvSwitch, "nvswitch"),
        (Self::Memory, "memory"),
    ];

    /// The name in our JSON.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }

    fn from_name(text: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, name)| *name == text).map(|(kind, _)| *kind)
    }

    /// Whether it only forwards what others send.
    pub fn is_switch(self) -> bool {
        matches!(self, Self::PcieSwitch | Self::NvSwitch | Self::Memory)
    }
}

impl LinkKind {
    const ALL: [(Self, &'static str); 4] =
        [(Self::NvLink, "nvlink"), (Self::Pcie, "pcie"), (Self::Socket, "socket"), (Self::Memory, "memory")];

    /// The name in our JSON.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }

    fn from_name(text: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, name)| *name == text).map(|(kind, _)| *kind)
    }

    /// Whether GPUs reach each other by such links without the host.
    pub fn is_direct(self) -> bool {
        matches!(self, Self::NvLink | Self::Memory)
    }

    /// Whether such a link may join devices of these kinds.
    fn joins(self, a: DeviceKind, b: DeviceKind) -> bool {
        use DeviceKind::{Cpu, Gpu, Memory, NvSwitch, PcieSwitch};
        match self {
            Self::NvLink => [a, b].iter().all(|k| matches!(k, Gpu | NvSwitch | Cpu)),
            Self::Pcie => [a, b].iter().all(|k| matches!(k, Gpu | PcieSwitch | Cpu)),
            Self::Socket => a == Cpu && b == Cpu,
            Self::Memory => matches!((a, b), (Gpu, Memory) | (Memory, Gpu)),
        }
    }
}

/// A device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Unique in the topology.
    pub name: String,
    /// What it is.
    pub kind: DeviceKind,
    /// What other formats say of it (`busid`, `sm`, `numaid`, `link_speed`); planning does not read them.
    pub attributes: BTreeMap<String, String>,
}

/// A link between two devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// One end, as an index into [`Topology::devices`].
    pub a: usize,
    /// The other end.
    pub b: usize,
    /// What it is.
    pub kind: LinkKind,
    /// How many single links it bundles.
    pub count: u32,
    /// What it carries from `a` to `b`.
    pub forth: Rate,
    /// What it carries from `b` to `a`.
    pub back: Rate,
}

/// A machine: devices and links that have been checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    name: String,
    devices: Vec<Device>,
    links: Vec<Link>,
}

/// The formats that [`Topology::read`] knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Our JSON.
    Json,
    /// NCCL topology XML.
    NcclXml,
    /// The text of `nvidia-smi topo -m`.
    SmiMatrix,
}

impl Topology {
    /// Checks the rules: the maxima of this module, at least one GPU, names that are unique and printable, attributes whose names are
    /// words, links between two different known devices of kinds that such a link can join, at most one of a kind between two devices.
    pub fn new(name: &str, devices: Vec<Device>, links: Vec<Link>) -> Result<Self> {
        let most = |what: &str, n: usize, max: usize| {
            if n > max {
                return Err(Error::at(what, format!("expected at most {max}, found {n}")));
            }
            Ok(())
        };
        printable("the topology's name", name)?;
        most("devices", devices.len(), MAX_DEVICES)?;
        most("GPUs", devices.iter().filter(|d| d.kind == DeviceKind::Gpu).count(), MAX_GPUS)?;
        most("links", links.len(), MAX_LINKS)?;
        let mut names = BTreeSet::new();
        for (i, device) in devices.iter().enumerate() {
            let place = format!("devices[{i}]");
            printable(&place, &device.name)?;
            most(&format!("{place} ({}): attributes", device.name), device.attributes.len(), MAX_ATTRIBUTES)?;
            for (key, value) in &device.attributes {
                if !is_word(key) {
                    let problem =
                        format!("expected a letter or _, then letters, digits, _, - and ., at most {MAX_TEXT}");
                    return Err(Error::at(format!("{place}: an attribute's name ({key:?})"), problem));
                }
                if value.chars().count() > MAX_TEXT || value.chars().any(char::is_control) {
                    let problem = format!("expected at most {MAX_TEXT} printable characters");
                    return Err(Error::at(format!("{place}: attribute {key}"), problem));
                }
            }
            if !names.insert(device.name.as_str()) {
                return Err(Error::at(place, format!("the name {} is taken; names must be unique", device.name)));
            }
        }
        if !devices.iter().any(|d| d.kind == DeviceKind::Gpu) {
            return Err(Error::at("devices", "expected at least one GPU, found none"));
        }
        let mut seen = BTreeSet::new();
        for (i, link) in links.iter().enumerate() {
            let end = |e: usize| {
                devices.get(e).ok_or_else(|| Error::at(format!("links[{i}]"), format!("there is no device {e}")))
            };
            let (a, b) = (end(link.a)?, end(link.b)?);
            let place = format!("links[{i}] ({}-{})", a.name, b.name);
            if link.a == link.b {
                return Err(Error::at(place, "a link joins two different devices"));
            }
            if !link.kind.joins(a.kind, b.kind) {
                let problem = format!("{} cannot join {} and {}", link.kind.name(), a.kind.name(), b.kind.name());
                return Err(Error::at(place, problem));
            }
            if !(1..=MAX_COUNT).contains(&link.count) {
                return Err(Error::at(place, format!("expected a count from 1 to {MAX_COUNT}, found {}", link.count)));
            }
            if !seen.insert((link.kind, link.a.min(link.b), link.a.max(link.b))) {
                let problem = format!("there is already a {} link between them; add the rates up", link.kind.name());
                return Err(Error::at(place, problem));
            }
        }
        Ok(Self { name: name.into(), devices, links })
    }

    /// Reads a file in the format that its text shows: JSON, XML, or else the matrix of `nvidia-smi topo -m`.
    pub fn read(text: &[u8]) -> Result<Self> {
        if text.len() > MAX_FILE {
            return Err(Error::at("size", format!("expected at most {MAX_FILE} bytes, found {}", text.len())));
        }
        let text = std::str::from_utf8(text)
            .map_err(|e| Error::at(format!("byte {}", e.valid_up_to()), "expected text in UTF-8"))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        match Self::format(text) {
            Some(Format::Json) => Self::from_json(text),
            Some(Format::NcclXml) => Self::from_nccl_xml(text),
            Some(Format::SmiMatrix) => Self::from_smi_matrix(text),
            None => {
                let problem =
                    "expected our JSON ({...}), NCCL topology XML (<system ...>) or the text of nvidia-smi topo -m";
                Err(Error::at("line 1", problem))
            }
        }
    }

    fn format(text: &str) -> Option<Format> {
        match text.trim_start().chars().next()? {
            '{' => Some(Format::Json),
            '<' => Some(Format::NcclXml),
            _ if text.contains("GPU0") => Some(Format::SmiMatrix),
            _ => None,
        }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All devices.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// All links.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The devices that are GPUs: the job's GPU number `i` is `gpus()[i]`.
    pub fn gpus(&self) -> Vec<usize> {
        self.of_kind(DeviceKind::Gpu)
    }

    fn of_kind(&self, kind: DeviceKind) -> Vec<usize> {
        (0..self.devices.len()).filter(|&d| self.devices[d].kind == kind).collect()
    }

    /// The links of a device, each with the device at its other end.
    pub fn links_of(&self, device: usize) -> impl Iterator<Item = (usize, &Link)> {
        self.links.iter().filter_map(move |link| match (link.a == device, link.b == device) {
            (true, _) => Some((link.b, link)),
            (_, true) => Some((link.a, link)),
            _ => None,
        })
    }
}

fn printable(place: &str, text: &str) -> Result<()> {
    if text.is_empty() || text.chars().count() > MAX_TEXT || text.chars().any(char::is_control) {
        return Err(Error::at(place, format!("expected 1 to {MAX_TEXT} printable characters")));
    }
    Ok(())
}

/// Whether it can name an attribute of XML, too.
fn is_word(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.len() <= MAX_TEXT
        && text.chars().all(is_inner)
}

/// Collects devices and links for readers and presets.
#[derive(Default)]
pub struct Builder {
    devices: Vec<Device>,
    /// The links so far.
    pub links: Vec<Link>,
}

impl Builder {
    /// Adds a device; returns its number.
    pub fn device(&mut self, name: impl Into<String>, kind: DeviceKind, attributes: &[(&str, &str)]) -> usize {
        let attributes = attributes.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        self.devices.push(Device { name: name.into(), kind, attributes });
        self.devices.len() - 1
    }

    /// A link that carries `rate` each way.
    pub fn link(&mut self, a: usize, b: usize, kind: LinkKind, count: u32, rate: Rate) {
        self.links.push(Link { a, b, kind, count, forth: rate, back: rate });
    }

    /// Links every pair of NUMA nodes.
    pub fn sockets(&mut self, cpus: &[usize], rate: Rate) {
        for (i, &a) in cpus.iter().enumerate() {
            for &b in &cpus[i + 1..] {
                self.link(a, b, LinkKind::Socket, 1, rate);
            }
        }
    }

    /// The topology.
    ///
    /// # Errors
    /// It breaks a rule of [`Topology::new`].
    pub fn build(self, name: &str) -> Result<Topology> {
        Topology::new(name, self.devices, self.links)
    }
}

/// Figures that are used where a format names a link but no rate; GB/s each way.
pub mod figures {
    use super::Rate;

    /// One NVLink of a GPU of this architecture (NCCL 2.30, `src/graph/topo.h`; 20.0 for one it does not list).
    pub fn nvlink(sm: u32) -> f64 {
        match sm {
            60 | 61 => 18.0,
            86 => 12.0,
            90..=99 => 20.6,
            100..=120 => 40.1,
            _ => 20.0,
        }
    }

    /// PCIe: NCCL's 6 GB/s a lane and 8 GT/s, over eight lanes (`src/graph/topo.cc`): 12 for generation 3 x16.
    pub fn pcie(gts: f64, width: u32) -> f64 {
        gts * f64::from(width) * 0.09375
    }

    /// Between NUMA nodes (NCCL's figure for Skylake and later).
    pub const SOCKET: f64 = 20.0;

    /// A copy within the memory of one GPU: half of what an H100's memory moves, as it is read and written.
    pub const MEMORY: f64 = 1675.0;

    /// As a rate; 1 MB/s for what is none.
    pub fn rate(gbs: f64) -> Rate {
        Rate::from_gbs(gbs).unwrap_or(Rate(1))
    }
}
