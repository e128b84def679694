//! Who uses a GPU, and whether others may use it beside them.

use super::{Gpu, Nvml};
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_uint, c_ulonglong, CStr};

/// Processes that a list is read of, at most.
const MOST_PROCESSES: usize = 1024;
/// `NVML_ERROR_NOT_SUPPORTED`
const NOT_SUPPORTED: c_int = 3;
/// `NVML_ERROR_INSUFFICIENT_SIZE`
const INSUFFICIENT_SIZE: c_int = 7;

/// Bytes in use that say of a GPU without processes that one is hidden, such as that of another container: a context alone takes more.
const IDLE_MEMORY: u64 = 128 << 20;
/// Hundredths of the time with a kernel that say so; the driver's own work is below.
const IDLE_BUSY: u32 = 5;

/// `nvmlProcessInfo_t`
#[repr(C)]
#[derive(Clone, Copy)]
struct ProcessInfo {
    pid: c_uint,
    memory: c_ulonglong,
    instances: [c_uint; 2],
}

/// `nvmlUtilization_t`
#[repr(C)]
struct Rates {
    gpu: c_uint,
    memory: c_uint,
}

/// `nvmlMemory_v2_t`
#[repr(C)]
struct MemoryInfo {
    version: c_uint,
    total: c_ulonglong,
    reserved: c_ulonglong,
    free: c_ulonglong,
    used: c_ulonglong,
}

/// What a process has on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct User {
    /// Its number, as the driver's namespace has it.
    pub pid: u32,
    /// Bytes of memory, where the library says it.
    pub memory: Option<u64>,
}

/// Who uses a GPU. What the library does not say is in words why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage {
    /// The processes that compute or draw on it.
    pub users: Result<Vec<User>, String>,
    /// Hundredths of the last second or less in which a kernel ran.
    pub busy: Result<u32, String>,
    /// Bytes of its memory in use, without what the driver keeps for itself.
    pub memory: Result<u64, String>,
    /// Whether it is divided into instances (MIG).
    pub is_divided: Result<bool, String>,
}

impl Usage {
    /// Whether nobody but the process `own` uses the GPU. What is not known counts as use.
    ///
    /// # Errors
    /// In words, who uses it, or what is not known.
    pub fn idle(&self, own: u32) -> Result<(), String> {
        if self.is_divided.clone().map_err(|why| format!("whether it is divided (MIG) is not known: {why}"))? {
            return Err("it is divided into instances (MIG)".into());
        }
        let users = self.users.as_ref().map_err(|why| format!("its processes are not known: {why}"))?;
        let others: Vec<String> = users.iter().filter(|u| u.pid != own).map(|u| u.pid.to_string()).collect();
        match others.as_slice() {
            [] => {}
            [one] => return Err(format!("process {one} uses it")),
            many => return Err(format!("processes {} use it", many.join(", "))),
        }
        let busy = *self.busy.as_ref().map_err(|why| format!("how busy it is is not known: {why}"))?;
        let is_own = users.iter().any(|u| u.pid == own);
        if busy > IDLE_BUSY && !is_own {
            return Err(format!("it is busy for {busy} % of the time, with no process of this namespace"));
        }
        let used = *self.memory.as_ref().map_err(|why| format!("its memory in use is not known: {why}"))?;
        let own_memory: Option<u64> = users.iter().map(|u| u.memory).sum();
        let own_memory = own_memory.ok_or("how much of its memory is this process's is not known")?;
        match used.saturating_sub(own_memory) {
            others if others > IDLE_MEMORY => Err(format!("{} MiB of its memory are in use", others >> 20)),
            _ => Ok(()),
        }
    }
}

impl Nvml {
    /// What a status means.
    fn told(&self, function: &str, status: c_int) -> String {
        type F = unsafe extern "C" fn(c_int) -> *const c_char;
        // SAFETY: the signature is that of nvml.h.
        let text = unsafe { self.symbol::<F>(b"nvmlErrorString\0").map(|f| f(status)) };
        // SAFETY: nvml.h: a constant text that ends with a zero byte.
        let text = text.filter(|text| !text.is_null()).map(|text| unsafe { CStr::from_ptr(text) }.to_string_lossy());
        format!("{function}: {}, status {status}", text.as_deref().unwrap_or("an error"))
    }
}

impl Gpu<'_> {
    /// Who uses it now.
    pub fn usage(&self) -> Usage {
        Usage { users: self.users(), busy: self.busy(), memory: self.memory(), is_divided: self.is_divided() }
    }

    /// Calls the function with this name, which has no zero byte, by `call`.
    fn asked<F: Copy>(&self, name: &str, call: impl FnOnce(F) -> c_int) -> Result<c_int, String> {
        let with_zero = [name.as_bytes(), b"\0"].concat();
        // SAFETY: the callers name functions with the signature of `F` in nvml.h.
        let function = unsafe { self.nvml.symbol::<F>(&with_zero) };
        Ok(call(*function.ok_or_else(|| format!("the driver's library has no {name}"))?))
    }

    fn users(&self) -> Result<Vec<User>, String> {
        let mut all = BTreeMap::new();
        let kinds = ["Compute", "Graphics", "MPSCompute"];
        for kind in kinds {
            for user in self.users_of(kind)? {
                all.insert(user.pid, user);
            }
        }
        Ok(all.into_values().collect())
    }

    fn users_of(&self, kind: &str) -> Result<Vec<User>, String> {
        type F = unsafe extern "C" fn(super::Handle, *mut c_uint, *mut ProcessInfo) -> c_int;
        let name = format!("nvmlDeviceGet{kind}RunningProcesses_v3");
        let mut found = vec![ProcessInfo { pid: 0, memory: 0, instances: [0; 2] }; MOST_PROCESSES];
        let mut count = MOST_PROCESSES as c_uint;
        // SAFETY: the signature and the struct are those of nvml.h; `count` says how many there is room for.
        let status = self.asked::<F>(&name, |f| unsafe { f(self.handle, &mut count, found.as_mut_ptr()) })?;
        match status {
            0 => found.truncate(count as usize),
            // A GPU that only computes has none that draw.
            NOT_SUPPORTED if kind != "Compute" => found.clear(),
            INSUFFICIENT_SIZE => return Err(format!("{name}: there are more than {MOST_PROCESSES}")),
            _ => return Err(self.nvml.told(&name, status)),
        }
        let user = |p: &ProcessInfo| User { pid: p.pid, memory: (p.memory != c_ulonglong::MAX).then_some(p.memory) };
        Ok(found.iter().map(user).collect())
    }

    fn busy(&self) -> Result<u32, String> {
        type F = unsafe extern "C" fn(super::Handle, *mut Rates) -> c_int;
        let name = "nvmlDeviceGetUtilizationRates";
        let mut rates = Rates { gpu: 0, memory: 0 };
        // SAFETY: the signature and the struct are those of nvml.h.
        match self.asked::<F>(name, |f| unsafe { f(self.handle, &mut rates) })? {
            0 => Ok(rates.gpu.max(rates.memory)),
            status => Err(self.nvml.told(name, status)),
        }
    }

    fn memory(&self) -> Result<u64, String> {
        type F = unsafe extern "C" fn(super::Handle, *mut MemoryInfo) -> c_int;
        let name = "nvmlDeviceGetMemoryInfo_v2";
        // NVML_STRUCT_VERSION(Memory, 2)
        let version = size_of::<MemoryInfo>() as c_uint | 2 << 24;
        let mut memory = MemoryInfo { version, total: 0, reserved: 0, free: 0, used: 0 };
        // SAFETY: the signature and the struct are those of nvml.h.
        match self.asked::<F>(name, |f| unsafe { f(self.handle, &mut memory) })? {
            0 => Ok(memory.used),
            status => Err(self.nvml.told(name, status)),
        }
    }

    fn is_divided(&self) -> Result<bool, String> {
        type F = unsafe extern "C" fn(super::Handle, *mut c_uint, *mut c_uint) -> c_int;
        let name = "nvmlDeviceGetMigMode";
        let (mut now, mut then) = (0, 0);
        // SAFETY: the signature is that of nvml.h.
        match self.asked::<F>(name, |f| unsafe { f(self.handle, &mut now, &mut then) })? {
            0 => Ok(now != 0),
            NOT_SUPPORTED => Ok(false),
            status => Err(self.nvml.told(name, status)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layouts_are_those_of_the_header() {
        assert_eq!((size_of::<ProcessInfo>(), size_of::<Rates>(), size_of::<MemoryInfo>()), (24, 8, 40));
    }

    #[test]
    fn a_gpu_is_idle_where_nobody_is_known_to_use_it() {
        let own = User { pid: 7, memory: Some(600 << 20) };
        let idle = Usage { users: Ok(vec![]), busy: Ok(0), memory: Ok(3 << 20), is_divided: Ok(false) };
        assert_eq!(idle.idle(7), Ok(()));
        // What this process itself does there is no use by another.
        let mine = Usage { users: Ok(vec![own]), busy: Ok(90), memory: Ok(603 << 20), ..idle.clone() };
        assert_eq!(mine.idle(7), Ok(()));
        fn unknown<T>() -> Result<T, String> {
            Err("nvmlX: Insufficient Permissions, status 4".into())
        }
        let cases: [(Usage, &str); 10] = [
            (Usage { users: Ok(vec![own]), ..idle.clone() }, "process 7 uses it"),
            (Usage { users: Ok(vec![own, User { pid: 9, memory: None }]), ..idle.clone() }, "processes 7, 9 use it"),
            (Usage { users: unknown(), ..idle.clone() }, "its processes are not known: nvmlX"),
            (Usage { busy: Ok(6), ..idle.clone() }, "busy for 6 %"),
            (Usage { busy: unknown(), ..idle.clone() }, "how busy it is is not known"),
            (Usage { memory: Ok(129 << 20), ..idle.clone() }, "129 MiB of its memory"),
            (Usage { memory: unknown(), ..idle.clone() }, "memory in use is not known"),
            (Usage { is_divided: Ok(true), ..idle.clone() }, "MIG"),
            (Usage { is_divided: unknown(), ..idle.clone() }, "divided (MIG) is not known"),
            (Usage { memory: Ok(800 << 20), ..mine.clone() }, "200 MiB of its memory"),
        ];
        for (usage, why) in cases {
            let own = if usage.memory == Ok(800 << 20) { 7 } else { 1 };
            let found = usage.idle(own).unwrap_err();
            assert!(found.contains(why), "expected {why:?}, found {found:?}");
        }
        let hidden = User { memory: None, ..own };
        let found = Usage { users: Ok(vec![hidden]), ..mine }.idle(7).unwrap_err();
        assert!(found.contains("this process's is not known"), "{found}");
    }
}
