//! NVIDIA's management library, loaded where the driver brought it: NVLinks, PCIe slots, why two GPUs cannot reach
//! each other, what a GPU draws and moves, and who uses it. Nothing depends on it: a machine without it is described by less.

mod usage;

pub use usage::{Usage, User};

use libloading::{Library, Symbol};
use std::ffi::{c_char, c_int, c_uint, CStr, CString};

/// NVLinks that a GPU may have (`NVML_NVLINK_MAX_LINKS`).
const MOST_LINKS: u32 = 36;
/// `NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON`
const FIELD_NVLINK_SPEED: c_uint = 90;
/// `NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX`, of all links where the scope is `ALL_LINKS`
const FIELD_NVLINK_SENT: c_uint = 138;
/// `NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX`
const FIELD_NVLINK_RECEIVED: c_uint = 139;
const ALL_LINKS: c_uint = c_uint::MAX;

type Handle = *mut core::ffi::c_void;

/// `nvmlPciInfo_t`
#[repr(C)]
struct PciInfo {
    legacy: [c_char; 16],
    numbers: [c_uint; 5],
    bus_id: [c_char; 32],
}

/// `nvmlFieldValue_t`
#[repr(C)]
struct FieldValue {
    field: c_uint,
    scope: c_uint,
    times: [i64; 2],
    kind: c_uint,
    status: c_int,
    value: [u8; 8],
}

/// What stands at the other end of an NVLink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remote {
    /// A GPU.
    Gpu,
    /// A processor.
    Cpu,
    /// An NVSwitch.
    Switch,
    /// The library does not say.
    Unknown,
}

/// One NVLink of a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NvLink {
    /// Its number.
    pub number: u32,
    /// Whether it carries data.
    pub active: bool,
    /// What it leads to.
    pub remote: Remote,
    /// The PCI address of that, such as `0000:3b:00.0`, in lower case; all zero in some virtual machines.
    pub remote_pci: Option<String>,
}

/// A PCIe slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pcie {
    /// The generation now; idle GPUs slow down.
    pub generation: u32,
    /// Lanes now.
    pub width: u32,
    /// The generation that GPU and slot reach together.
    pub most_generation: u32,
    /// The lanes that they reach together.
    pub most_width: u32,
}

/// How two GPUs are joined over PCIe, in the words of `nvidia-smi topo -m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Common {
    /// One board.
    Internal,
    /// One PCIe switch (PIX).
    Switch,
    /// Several PCIe switches (PXB).
    Switches,
    /// One host bridge (PHB).
    HostBridge,
    /// One NUMA node (NODE).
    Node,
    /// The machine (SYS).
    System,
}

/// What two GPUs may be capable of with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// Reading the other's memory.
    Read,
    /// Writing it.
    Write,
    /// Over NVLink.
    NvLink,
    /// Atomic operations on it.
    Atomics,
}

/// What a GPU does now; what the library does not say is left out.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Reading {
    /// Watts that it draws, over about a second.
    pub power: Option<f64>,
    /// MHz of its multiprocessors.
    pub clock: Option<u32>,
    /// MHz of its memory.
    pub memory_clock: Option<u32>,
    /// Kilobytes a second that it sends over PCIe, and that it receives, over 20 ms each. To read them takes as long.
    pub pcie: Option<[u32; 2]>,
    /// KiB of data that it has sent over all its NVLinks, and that it has received, since the driver was loaded.
    pub nvlink: Option<[u64; 2]>,
}

/// The library.
pub struct Nvml {
    library: Library,
}

impl std::fmt::Debug for Nvml {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Nvml")
    }
}

/// A GPU, as the library names it.
#[derive(Debug, Clone, Copy)]
pub struct Gpu<'a> {
    nvml: &'a Nvml,
    handle: Handle,
}

impl Nvml {
    /// Loads the driver's library.
    ///
    /// # Errors
    /// In words, why it cannot be used.
    pub fn load() -> Result<Self, String> {
        let name = "libnvidia-ml.so.1";
        let why = |e: libloading::Error| {
            let reason = std::error::Error::source(&e).map_or_else(|| e.to_string(), ToString::to_string);
            if reason.starts_with(name) {
                reason
            } else {
                format!("{name}: {reason}")
            }
        };
        // SAFETY: the library's initialisers only set up its own state; it is the driver's own.
        let library = unsafe { Library::new(name) }.map_err(why)?;
        let nvml = Nvml { library };
        // SAFETY: the signature is that of nvml.h.
        let status = unsafe { nvml.symbol::<unsafe extern "C" fn() -> c_int>(b"nvmlInit_v2\0").map(|f| f()) };
        match status {
            Some(0) => Ok(nvml),
            Some(code) => Err(format!("nvmlInit_v2 failed with status {code}")),
            None => Err("nvmlInit_v2 is missing".into()),
        }
    }

    /// # Safety
    /// `T` is the type of the function that nvml.h declares with this name, which ends with a zero byte.
    unsafe fn symbol<T>(&self, name: &[u8]) -> Option<Symbol<'_, T>> {
        // SAFETY: the caller's promise.
        unsafe { self.library.get(name) }.ok()
    }

    /// The GPU with a PCI address.
    pub fn gpu(&self, pci: &str) -> Option<Gpu<'_>> {
        type F = unsafe extern "C" fn(*const c_char, *mut Handle) -> c_int;
        let text = CString::new(pci).ok()?;
        let mut handle: Handle = std::ptr::null_mut();
        // SAFETY: the signature is that of nvml.h; the text ends with a zero byte and the handle is valid to write to.
        let status = unsafe { self.symbol::<F>(b"nvmlDeviceGetHandleByPciBusId_v2\0")?(text.as_ptr(), &mut handle) };
        (status == 0).then_some(Gpu { nvml: self, handle })
    }
}

impl Gpu<'_> {
    /// A number that a function of the form (device, number*) gives.
    fn number(&self, name: &[u8]) -> Option<u32> {
        type F = unsafe extern "C" fn(Handle, *mut c_uint) -> c_int;
        let mut value = 0;
        // SAFETY: the callers name functions with this signature in nvml.h.
        let status = unsafe { self.nvml.symbol::<F>(name)?(self.handle, &mut value) };
        (status == 0).then_some(value)
    }

    /// A number that a function of the form (device, link, number*) gives, or with an enumeration in the place of a link.
    fn of_link(&self, name: &[u8], link: u32) -> Option<u32> {
        type F = unsafe extern "C" fn(Handle, c_uint, *mut c_uint) -> c_int;
        let mut value = 0;
        // SAFETY: the callers name functions with this signature in nvml.h; its enumerations are unsigned numbers.
        let status = unsafe { self.nvml.symbol::<F>(name)?(self.handle, link, &mut value) };
        (status == 0).then_some(value)
    }

    /// A number that a function of the form (device, device, number*) gives, or of the form (device, device, index, number*) with an
    /// `index`.
    fn with(&self, other: Gpu<'_>, name: &[u8], index: Option<u32>) -> Option<u32> {
        type Plain = unsafe extern "C" fn(Handle, Handle, *mut c_uint) -> c_int;
        type Indexed = unsafe extern "C" fn(Handle, Handle, c_uint, *mut c_uint) -> c_int;
        let mut value = 0;
        // SAFETY: the callers name functions with the signature that `index` chooses.
        let status = unsafe {
            match index {
                None => self.nvml.symbol::<Plain>(name)?(self.handle, other.handle, &mut value),
                Some(index) => self.nvml.symbol::<Indexed>(name)?(self.handle, other.handle, index, &mut value),
            }
        };
        (status == 0).then_some(value)
    }

    /// Its NVLinks.
    pub fn nvlinks(&self) -> Vec<NvLink> {
        let link = |number| {
            let active = self.of_link(b"nvmlDeviceGetNvLinkState\0", number)? == 1;
            let remote = match self.of_link(b"nvmlDeviceGetNvLinkRemoteDeviceType\0", number) {
                Some(0) => Remote::Gpu,
                Some(1) => Remote::Cpu,
                Some(2) => Remote::Switch,
                _ => Remote::Unknown,
            };
            Some(NvLink { number, active, remote, remote_pci: self.remote_pci(number) })
        };
        (0..MOST_LINKS).filter_map(link).collect()
    }

    fn remote_pci(&self, link: u32) -> Option<String> {
        type F = unsafe extern "C" fn(Handle, c_uint, *mut PciInfo) -> c_int;
        let mut info = PciInfo { legacy: [0; 16], numbers: [0; 5], bus_id: [0; 32] };
        // SAFETY: the signature and the struct are those of nvml.h.
        let status =
            unsafe { self.nvml.symbol::<F>(b"nvmlDeviceGetNvLinkRemotePciInfo_v2\0")?(self.handle, link, &mut info) };
        let bytes = info.bus_id.map(|c| c as u8);
        let text = CStr::from_bytes_until_nul(&bytes).ok()?.to_str().ok()?;
        (status == 0 && !text.is_empty()).then(|| short(text))
    }

    /// The bytes of a field's value.
    fn field(&self, field: c_uint, scope: c_uint) -> Option<[u8; 8]> {
        type F = unsafe extern "C" fn(Handle, c_int, *mut FieldValue) -> c_int;
        let mut value = FieldValue { field, scope, times: [0; 2], kind: 0, status: -1, value: [0; 8] };
        // SAFETY: the signature and the struct are those of nvml.h; one value is asked for.
        let status = unsafe { self.nvml.symbol::<F>(b"nvmlDeviceGetFieldValues\0")?(self.handle, 1, &mut value) };
        (status == 0 && value.status == 0).then_some(value.value)
    }

    /// What one of its NVLinks can carry each way by its signalling rate, in MB/s.
    pub fn nvlink_mbs(&self) -> Option<u32> {
        let [a, b, c, d, ..] = self.field(FIELD_NVLINK_SPEED, 0)?;
        Some(u32::from_ne_bytes([a, b, c, d])).filter(|&mbs| mbs > 0)
    }

    /// What it draws and moves.
    pub fn reading(&self) -> Reading {
        // NVML_CLOCK_SM and NVML_CLOCK_MEM; NVML_PCIE_UTIL_TX_BYTES and NVML_PCIE_UTIL_RX_BYTES.
        let clock = |kind| self.of_link(b"nvmlDeviceGetClockInfo\0", kind);
        let pcie = |way| self.of_link(b"nvmlDeviceGetPcieThroughput\0", way);
        let nvlink = |field| self.field(field, ALL_LINKS).map(u64::from_ne_bytes);
        let both = |sent: Option<u64>, received: Option<u64>| Some([sent?, received?]);
        Reading {
            power: self.number(b"nvmlDeviceGetPowerUsage\0").map(|milliwatts| f64::from(milliwatts) / 1e3),
            clock: clock(1),
            memory_clock: clock(2),
            pcie: pcie(0).and_then(|sent| Some([sent, pcie(1)?])),
            nvlink: both(nvlink(FIELD_NVLINK_SENT), nvlink(FIELD_NVLINK_RECEIVED)),
        }
    }

    /// Its slot.
    pub fn pcie(&self) -> Option<Pcie> {
        Some(Pcie {
            generation: self.number(b"nvmlDeviceGetCurrPcieLinkGeneration\0")?,
            width: self.number(b"nvmlDeviceGetCurrPcieLinkWidth\0")?,
            most_generation: self.number(b"nvmlDeviceGetMaxPcieLinkGeneration\0")?,
            most_width: self.number(b"nvmlDeviceGetMaxPcieLinkWidth\0")?,
        })
    }

    /// What joins it to another over PCIe.
    pub fn common(&self, other: Gpu<'_>) -> Option<Common> {
        Some(match self.with(other, b"nvmlDeviceGetTopologyCommonAncestor\0", None)? {
            0 => Common::Internal,
            10 => Common::Switch,
            20 => Common::Switches,
            30 => Common::HostBridge,
            40 => Common::Node,
            50 => Common::System,
            _ => return None,
        })
    }

    /// Why it lacks a capability with another: `Ok` where it has it, `None` where the library does not say.
    pub fn lacks(&self, other: Gpu<'_>, capability: Capability) -> Option<Result<(), &'static str>> {
        let index = match capability {
            Capability::Read => 0,
            Capability::Write => 1,
            Capability::NvLink => 2,
            Capability::Atomics => 3,
        };
        Some(match self.with(other, b"nvmlDeviceGetP2PStatus\0", Some(index))? {
            0 => Ok(()),
            1 => Err("the chipset does not support it"),
            2 => Err("the GPU does not support it"),
            3 => Err("the way between their PCIe roots does not support it"),
            4 => Err("a setting of the driver disables it"),
            5 => Err("it is not supported"),
            _ => Err("the driver does not say why"),
        })
    }
}

/// A PCI address with a domain of four digits, as Linux and the CUDA runtime write it.
fn short(pci: &str) -> String {
    let text = pci.to_ascii_lowercase();
    match text.split_once(':') {
        Some((domain, rest)) if domain.len() > 4 && domain.starts_with("0000") => format!("{}:{rest}", &domain[4..]),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_one_form() {
        assert_eq!(short("00000000:3B:00.0"), "0000:3b:00.0");
        assert_eq!(short("00010000:3B:00.0"), "00010000:3b:00.0");
        assert_eq!(short("0000:3b:00.0"), "0000:3b:00.0");
    }

    #[test]
    fn the_layouts_are_those_of_the_header() {
        assert_eq!((size_of::<PciInfo>(), size_of::<FieldValue>()), (68, 40));
    }

    #[test]
    fn a_machine_without_it_says_why() {
        match Nvml::load() {
            Ok(nvml) => assert!(nvml.gpu("ffff:ff:1f.7").is_none()),
            Err(reason) => assert!(!reason.is_empty()),
        }
    }
}
