//! Which GPUs there are, and which of them can be used.

use crate::error::{check, Error, Result};
use crate::ffi;
use std::ffi::CStr;
use std::fmt;

/// A GPU that [`probe`] found usable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Device(u32);

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cuda:{}", self.0)
    }
}

/// What a GPU is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Properties {
    /// Name, such as `NVIDIA H200`.
    pub name: String,
    /// PCI address.
    pub pci: String,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Compute capability, such as (9, 0).
    pub capability: (u32, u32),
    /// Number of multiprocessors.
    pub multiprocessors: u32,
    /// Threads that a multiprocessor holds at once.
    pub threads_per_multiprocessor: u32,
    /// 32-bit registers of a multiprocessor.
    pub registers_per_multiprocessor: u32,
    /// Bytes of second-level cache.
    pub l2_bytes: u64,
    /// Bytes of shared memory of a multiprocessor.
    pub shared_per_multiprocessor: u32,
    /// Bytes of shared memory that one block can be given.
    pub shared_per_block: u32,
    /// Engines that copy beside kernels.
    pub copy_engines: u32,
    /// Whether memory can be allocated in the order of a stream.
    pub memory_pools: bool,
}

/// A GPU of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its number, as in `cuda:0`.
    pub index: u32,
    /// What it is.
    pub properties: Properties,
    /// The device, or in words why it is not used.
    pub usable: std::result::Result<Device, String>,
}

/// The oldest compute capability that is used.
const OLDEST: (u32, u32) = (8, 0);

/// A version, such as (13, 0).
pub type Version = (u32, u32);

/// nvcc's version and the architectures compiled for, or `None` in a build without nvcc.
pub fn built_with() -> Option<(&'static str, &'static str)> {
    Some((option_env!("TANDEM_NVCC_VERSION")?, option_env!("TANDEM_CUDA_ARCHS_BUILT")?))
}

/// The CUDA versions of the driver (`None` where there is none) and of the runtime in this program.
pub fn versions() -> Option<(Option<Version>, Version)> {
    let (mut driver, mut runtime) = (0, 0);
    // SAFETY: both are valid to write to.
    check("versions", None, unsafe { ffi::tandem_cuda_versions(&mut driver, &mut runtime) }).ok()?;
    let pair = |v: i32| (v as u32 / 1000, v as u32 % 1000 / 10);
    Some(((driver > 0).then(|| pair(driver)), pair(runtime)))
}

/// The GPUs of this machine.
///
/// # Errors
/// In words, why there is none: built without CUDA, no driver, a driver that is too old, no GPU. Any failure of the
/// runtime means that there is none.
pub fn probe() -> std::result::Result<Vec<Found>, String> {
    let Some((_, built)) = built_with() else {
        return Err("this program was built without CUDA (no nvcc when it was built)".into());
    };
    let mut count = 0;
    // SAFETY: `count` is valid to write to.
    let status = unsafe { ffi::tandem_cuda_device_count(&mut count) };
    if status != ffi::TANDEM_OK {
        return Err(no_devices(&Error::new("device count", None, status), versions()));
    }
    if count < 1 {
        return Err("the NVIDIA driver reports no GPU".into());
    }
    (0..count as u32).map(|index| found(index, built)).collect()
}

fn found(index: u32, built: &str) -> std::result::Result<Found, String> {
    let properties = properties(index).map_err(|e| format!("cuda:{index} cannot be used: {e}"))?;
    let usable = match refusal(&properties, built) {
        Some(reason) => Err(reason),
        None => Ok(Device(index)),
    };
    Ok(Found { index, properties, usable })
}

/// Puts the runtime's refusal to count devices into words.
fn no_devices(error: &Error, versions: Option<(Option<Version>, Version)>) -> String {
    let reason = match error.code {
        // cudaErrorInsufficientDriver
        35 => match versions {
            Some((Some(driver), runtime)) => format!(
                "the NVIDIA driver is for CUDA {}.{}, older than this program's CUDA {}.{}: update the driver",
                driver.0, driver.1, runtime.0, runtime.1
            ),
            _ => "there is no NVIDIA driver".into(),
        },
        // cudaErrorNoDevice
        100 => "there is no NVIDIA GPU, or CUDA_VISIBLE_DEVICES hides it".into(),
        // cudaErrorInvalidDevice, as some driverless machines say
        101 => "the NVIDIA driver offers no usable GPU".into(),
        _ => "the NVIDIA driver cannot be used".into(),
    };
    format!("{reason} ({}, {})", error.name, error.code)
}

/// Why a GPU is not used.
fn refusal(properties: &Properties, built: &str) -> Option<String> {
    let (major, minor) = properties.capability;
    if properties.capability < OLDEST {
        return Some(format!(
            "compute capability {major}.{minor}; {}.{} (Ampere) or newer is needed",
            OLDEST.0, OLDEST.1
        ));
    }
    if !has_code(properties.capability, built) {
        return Some(format!(
            "this program holds code for {built} and none for compute capability {major}.{minor}; build it with \
             TANDEM_CUDA_ARCHS={major}{minor}"
        ));
    }
    if !properties.memory_pools {
        return Some("its driver cannot allocate memory in the order of a stream".into());
    }
    None
}

/// Whether machine code or PTX of the list `built` (as `TANDEM_CUDA_ARCHS`) runs on `capability`. Machine code runs
/// on the same major version and the same or a later minor one; PTX on anything as new.
fn has_code(capability: (u32, u32), built: &str) -> bool {
    built.split(',').any(|item| {
        let (number, ptx) = item.strip_suffix("+ptx").map_or((item, false), |number| (number, true));
        let Ok(number) = number.parse::<u32>() else { return false };
        let code = (number / 10, number % 10);
        code <= capability && (ptx || code.0 == capability.0)
    })
}

fn properties(index: u32) -> Result<Properties> {
    // SAFETY: the struct is plain numbers and characters, for which all zero is a value.
    let mut raw: ffi::tandem_cuda_properties = unsafe { std::mem::zeroed() };
    // SAFETY: `raw` is valid to write to.
    check("device properties", Some(Device(index)), unsafe {
        ffi::tandem_cuda_device_properties(index as i32, &mut raw)
    })?;
    // A char is as wide as a byte; the native side ends the text within the array.
    let text = |chars: &[core::ffi::c_char]| {
        let bytes: Vec<u8> = chars.iter().map(|&c| c as u8).collect();
        CStr::from_bytes_until_nul(&bytes).map_or(String::new(), |text| text.to_string_lossy().into_owned())
    };
    let number = |value: i32| u32::try_from(value).unwrap_or(0);
    Ok(Properties {
        name: text(&raw.name),
        pci: text(&raw.pci),
        memory_bytes: raw.memory_bytes,
        capability: (number(raw.major), number(raw.minor)),
        multiprocessors: number(raw.multiprocessors),
        threads_per_multiprocessor: number(raw.threads_per_multiprocessor),
        registers_per_multiprocessor: number(raw.registers_per_multiprocessor),
        l2_bytes: number(raw.l2_bytes).into(),
        shared_per_multiprocessor: number(raw.shared_per_multiprocessor),
        shared_per_block: number(raw.shared_per_block),
        copy_engines: number(raw.copy_engines),
        memory_pools: raw.memory_pools == 1,
    })
}

impl Device {
    /// Its number.
    pub fn index(self) -> u32 {
        self.0
    }

    pub(crate) fn raw(self) -> i32 {
        self.0 as i32
    }

    /// Makes it the calling thread's current device, as every launch on one of its streams needs.
    ///
    /// # Errors
    /// The device failed.
    pub fn make_current(self) -> Result<()> {
        // SAFETY: takes numbers only.
        check("set device", Some(self), unsafe { ffi::tandem_cuda_set_device(self.raw()) })
    }

    /// What it is.
    ///
    /// # Errors
    /// The device failed.
    pub fn properties(self) -> Result<Properties> {
        properties(self.0)
    }

    /// Bytes of its memory that no process holds, and all of them.
    ///
    /// # Errors
    /// The device failed.
    pub fn memory_info(self) -> Result<(u64, u64)> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: both are valid to write to.
        check("memory info", Some(self), unsafe { ffi::tandem_cuda_memory_info(self.raw(), &mut free, &mut total) })?;
        Ok((free, total))
    }

    /// Whether this device reaches the memory of `peer` without the host. It does its own.
    ///
    /// # Errors
    /// The device failed.
    pub fn can_access(self, peer: Device) -> Result<bool> {
        // The driver says no, as nothing is to be switched on.
        if self == peer {
            return Ok(true);
        }
        let mut can = 0;
        // SAFETY: `can` is valid to write to.
        check("peer access", Some(self), unsafe {
            ffi::tandem_cuda_can_access_peer(self.raw(), peer.raw(), &mut can)
        })?;
        Ok(can == 1)
    }

    /// How fast the way to the memory of `peer` is among those of this machine (0 is the fastest), and whether atomic
    /// operations work over it. To its own memory they do, and nothing is faster.
    ///
    /// # Errors
    /// The device failed.
    pub fn peer_attributes(self, peer: Device) -> Result<(u32, bool)> {
        if self == peer {
            return Ok((0, true));
        }
        let (mut rank, mut atomics) = (0, 0);
        // SAFETY: both are valid to write to.
        check("peer attributes", Some(self), unsafe {
            ffi::tandem_cuda_peer_attributes(self.raw(), peer.raw(), &mut rank, &mut atomics)
        })?;
        Ok((u32::try_from(rank).unwrap_or(0), atomics == 1))
    }

    #[cfg(test)]
    pub(crate) fn for_tests(index: u32) -> Self {
        Device(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_which_code_runs_where() {
        let release = "80,86,89,90,100,120,90+ptx";
        for capability in [(8, 0), (8, 6), (8, 7), (8, 9), (9, 0), (10, 0), (10, 3), (11, 0), (12, 0), (12, 1), (13, 0)]
        {
            assert!(has_code(capability, release), "{capability:?}");
        }
        assert!(!has_code((7, 5), release));
        assert!(has_code((9, 0), "90"));
        assert!(!has_code((8, 9), "90") && !has_code((10, 0), "90"));
        assert!(has_code((10, 0), "90+ptx") && !has_code((8, 0), "90+ptx"));
        assert!(!has_code((8, 0), "86") && has_code((8, 9), "86"));
        assert!(!has_code((9, 0), "") && !has_code((9, 0), "x"));
    }

    #[test]
    fn refuses_with_a_reason() {
        let mut gpu = Properties {
            name: "Test".into(),
            pci: "0000:00:00.0".into(),
            memory_bytes: 1 << 34,
            capability: (7, 5),
            multiprocessors: 1,
            threads_per_multiprocessor: 1024,
            registers_per_multiprocessor: 65536,
            l2_bytes: 1 << 20,
            shared_per_multiprocessor: 1 << 16,
            shared_per_block: 1 << 16,
            copy_engines: 1,
            memory_pools: false,
        };
        assert!(refusal(&gpu, "80+ptx").unwrap().contains("7.5; 8.0 (Ampere)"));
        gpu.capability = (8, 6);
        assert!(refusal(&gpu, "90").unwrap().contains("none for compute capability 8.6"));
        assert!(refusal(&gpu, "80").unwrap().contains("order of a stream"));
        gpu.memory_pools = true;
        assert_eq!(refusal(&gpu, "80"), None);
    }

    #[test]
    fn every_failure_to_count_is_explained() {
        for (code, expected) in
            [(35, "no NVIDIA driver"), (100, "no NVIDIA GPU"), (101, "offers no usable GPU"), (999, "cannot be used")]
        {
            let text = no_devices(&Error::new("device count", None, code), Some((None, (13, 0))));
            assert!(text.contains(expected) && text.contains(&code.to_string()), "{text}");
        }
        let text = no_devices(&Error::new("device count", None, 35), Some((Some((12, 4)), (13, 0))));
        assert!(text.contains("for CUDA 12.4, older than this program's CUDA 13.0"), "{text}");
    }

    #[test]
    fn probe_gives_devices_or_a_reason() {
        match probe() {
            Ok(found) => assert!(!found.is_empty()),
            Err(reason) => {
                assert!(!reason.is_empty());
                assert_eq!(crate::testing::required(), 0, "{reason}");
            }
        }
        assert_eq!(built_with().is_some(), cfg!(tandem_nvcc));
        assert_eq!(versions().is_some(), cfg!(tandem_nvcc));
    }
}
