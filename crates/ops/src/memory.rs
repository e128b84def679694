//! How much memory of the host this process may still take.
//!
//! The least of what the machine has available, what its control groups leave, and what its own limits leave. A figure that the
//! system does not give bounds nothing.

use crate::{Error, Result};
use memmap2::{Advice, MmapMut};
use std::fs;
use std::ops::{Deref, DerefMut};
use std::path::Path;

/// Memory of the host as this process sees it, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// The most that it could ever have; `u64::MAX` where nothing bounds it.
    pub total: u64,
    /// What it may still take without swapping; `u64::MAX` where nothing bounds it.
    pub free: u64,
}

impl Memory {
    const UNBOUNDED: Memory = Memory { total: u64::MAX, free: u64::MAX };

    fn and(self, other: Memory) -> Memory {
        Memory { total: self.total.min(other.total), free: self.free.min(other.free) }
    }

    fn of_limit(limit: u64, used: u64) -> Memory {
        Memory { total: limit, free: limit.saturating_sub(used) }
    }
}

/// Memory of the host for this process.
pub fn host() -> Memory {
    host_under(Path::new("/"))
}

/// Requests from this size on are compared with what is free before they are made: the system promises more than it has.
const CHECKED_BYTES: u64 = 64 << 20;

/// The error of `op` for want of `bytes` bytes of the host.
pub fn refused(op: &'static str, bytes: u64) -> Error {
    Error::OutOfMemory { op, device: "the CPU".into(), wanted: bytes, free: host().free }
}

/// Fails if the host has no `bytes` bytes left for `op`.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn check(op: &'static str, bytes: u64) -> Result<()> {
    #[cfg(test)]
    if let Some(free) = FREE.get() {
        return if bytes > free { Err(refused(op, bytes)) } else { Ok(()) };
    }
    if bytes >= CHECKED_BYTES && bytes > host().free {
        return Err(refused(op, bytes));
    }
    Ok(())
}

#[cfg(test)]
thread_local! {
    /// What [`check`] takes for free on this thread, of requests of any size.
    static FREE: std::cell::Cell<Option<u64>> = const { std::cell::Cell::new(None) };
}

/// Calls `f` where `free` bytes are free.
#[cfg(test)]
pub(crate) fn with_free<T>(free: u64, f: impl FnOnce() -> T) -> T {
    FREE.set(Some(free));
    let done = f();
    FREE.set(None);
    done
}

/// A vector that can grow to `len` elements without asking for memory again.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn reserve<T>(op: &'static str, len: usize) -> Result<Vec<T>> {
    let wanted = (len as u64).saturating_mul(size_of::<T>() as u64);
    check(op, wanted)?;
    let mut data = Vec::new();
    data.try_reserve_exact(len).map_err(|_| refused(op, wanted))?;
    Ok(data)
}

/// Empties a vector that is used again, and makes room in it for `len` elements.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn make_room<T>(op: &'static str, data: &mut Vec<T>, len: usize) -> Result<()> {
    data.clear();
    if data.capacity() < len {
        // Not beside what is there: nothing of it is wanted.
        *data = Vec::new();
        *data = reserve(op, len)?;
    }
    Ok(())
}

/// A vector of `len` times `value`, or an error where memory is short.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn filled<T: Clone>(op: &'static str, len: usize, value: T) -> Result<Vec<T>> {
    let mut data = reserve(op, len)?;
    data.resize(len, value);
    Ok(data)
}

/// A vector with a copy of `values`, or an error where memory is short.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn copied<T: Clone>(op: &'static str, values: &[T]) -> Result<Vec<T>> {
    let mut data = reserve(op, values.len())?;
    data.extend_from_slice(values);
    Ok(data)
}

/// Zeros in pages of their own, large ones where the system has them: to touch a gigabyte of small ones for the first time takes a tenth
/// of a second and more, and as long to give them back.
pub struct Pages(MmapMut);

impl Pages {
    /// So many bytes, of which the system makes memory when they are first touched; `None` where it promises no more.
    pub fn zeros(bytes: usize) -> Option<Pages> {
        let map = MmapMut::map_anon(bytes.max(1)).ok()?;
        // A system without large pages serves as well.
        _ = map.advise(Advice::HugePage);
        Some(Pages(map))
    }

    /// Keeps them out of core dumps, and as far as the system allows (`ulimit -l`) out of swap.
    pub(crate) fn hide(&self) {
        _ = self.0.advise(Advice::DontDump);
        _ = self.0.lock();
    }
}

impl Deref for Pages {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for Pages {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

/// [`host`] with the files of `/proc` and `/sys` in another folder.
fn host_under(root: &Path) -> Memory {
    machine(root).and(own_limits(root)).and(groups(root))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The number in KiB after `name`, in bytes.
fn kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

fn machine(root: &Path) -> Memory {
    let text = read(&root.join("proc/meminfo"));
    let figure = |name| kib(&text, name).unwrap_or(u64::MAX);
    Memory { total: figure("MemTotal:"), free: figure("MemAvailable:") }
}

/// `ulimit -v` and `ulimit -d`.
fn own_limits(root: &Path) -> Memory {
    let (limits, status) = (read(&root.join("proc/self/limits")), read(&root.join("proc/self/status")));
    let of = |limit: &str, used: &str| {
        let soft = limits.lines().find_map(|line| line.strip_prefix(limit))?.split_whitespace().next()?;
        Some(Memory::of_limit(soft.parse().ok()?, kib(&status, used).unwrap_or(0)))
    };
    let of = |limit, used| of(limit, used).unwrap_or(Memory::UNBOUNDED);
    of("Max address space", "VmSize:").and(of("Max data size", "VmData:"))
}

/// The names of the files of a hierarchy of control groups.
struct Names {
    mount: &'static [&'static str],
    limit: &'static str,
    used: &'static str,
    /// In `memory.stat`: files in memory that nobody has used for a while, which the system drops when it needs room.
    dropped: &'static str,
}

const V1: Names = Names {
    mount: &["sys/fs/cgroup/memory"],
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    dropped: "total_inactive_file",
};
const V2: Names = Names {
    mount: &["sys/fs/cgroup", "sys/fs/cgroup/unified"],
    limit: "memory.max",
    used: "memory.current",
    dropped: "inactive_file",
};

/// What the control groups leave, this process's own and those around it.
fn groups(root: &Path) -> Memory {
    let text = read(&root.join("proc/self/cgroup"));
    let mut least = Memory::UNBOUNDED;
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let names = match controllers {
            "" => &V2,
            list if list.split(',').any(|name| name == "memory") => &V1,
            _ => continue,
        };
        for mount in names.mount {
            // Within a container, what is mounted there may be its own group, whose path outside means nothing: the mount itself is
            // looked at in any case.
            let around = Path::new(path.trim_start_matches('/')).ancestors();
            let folders = around.map(|group| root.join(mount).join(group));
            least = folders.map(|folder| group(&folder, names)).fold(least, Memory::and);
        }
    }
    least
}

fn group(folder: &Path, names: &Names) -> Memory {
    let number = |name: &str| read(&folder.join(name)).trim().parse::<u64>().ok();
    // `max` where there is none.
    let Some(limit) = number(names.limit) else { return Memory::UNBOUNDED };
    let stat = read(&folder.join("memory.stat"));
    let is_dropped = |line: &&str| line.split_whitespace().next() == Some(names.dropped);
    let dropped = stat.lines().find(is_dropped).and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    Memory::of_limit(limit, number(names.used).unwrap_or(0).saturating_sub(dropped.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_refused_with_both_figures() {
        let free = host().free;
        for len in [1 << 45, usize::MAX / 8, usize::MAX] {
            let wanted = (len as u64).saturating_mul(8);
            match reserve::<u64>("a test", len).unwrap_err() {
                Error::OutOfMemory { op: "a test", wanted: w, free: f, .. } => {
                    assert!(w == wanted && f > free / 8 && f < wanted, "{w} {f}");
                }
                other => panic!("{other}"),
            }
        }
        assert_eq!(filled("a test", 3, 7u8).unwrap(), [7, 7, 7]);
        assert_eq!(copied("a test", &[1, 2]).unwrap(), [1, 2]);
    }

    const MEMINFO: (&str, &str) =
        ("proc/meminfo", "MemTotal:       1000 kB\nMemFree:  10 kB\nMemAvailable:    800 kB\n");
    const LIMITS: &str = "\
Limit                     Soft Limit           Hard Limit           Units
Max data size             DATA                 unlimited            bytes
Max address space         AS                   unlimited            bytes
";
    const STATUS: (&str, &str) = ("proc/self/status", "VmPeak: 999 kB\nVmSize:\t     300 kB\nVmData:\t     100 kB\n");

    fn seen(files: &[(&str, &str)]) -> (u64, u64) {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let Memory { total, free } = host_under(root.path());
        (total, free)
    }

    fn limits(data: &str, address_space: &str) -> String {
        LIMITS.replace("DATA", data).replace("AS ", &format!("{address_space} "))
    }

    #[test]
    fn the_machine_has_what_it_says() {
        assert_eq!(seen(&[MEMINFO]), (1000 << 10, 800 << 10));
        assert_eq!(seen(&[]), (u64::MAX, u64::MAX));
        let none = limits("unlimited", "unlimited");
        assert_eq!(seen(&[MEMINFO, STATUS, ("proc/self/limits", &none)]), (1000 << 10, 800 << 10));
        // This machine has a figure of its own.
        let here = host();
        assert!(here.free > 1 << 20 && here.free <= here.total && here.total < 1 << 50, "{here:?}");
    }

    #[test]
    fn limits_of_the_process_count() {
        let with = |limits: &str| seen(&[MEMINFO, STATUS, ("proc/self/limits", limits)]);
        assert_eq!(with(&limits("unlimited", "409600")), (400 << 10, 100 << 10));
        assert_eq!(with(&limits("512000", "unlimited")), (500 << 10, 400 << 10));
        assert_eq!(with(&limits("512000", "409600")), (400 << 10, 100 << 10));
        // More is used than may be.
        assert_eq!(with(&limits("unlimited", "1024")), (1024, 0));
    }

    #[test]
    fn control_groups_count_up_the_hierarchy() {
        let v2 = ("proc/self/cgroup", "0::/a/b\n");
        let tight = [
            ("sys/fs/cgroup/a/memory.max", "409600\n"),
            ("sys/fs/cgroup/a/memory.current", "204800\n"),
            ("sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 102400\nactive_file 9\n"),
        ];
        let wide = [("sys/fs/cgroup/a/b/memory.max", "max\n"), ("sys/fs/cgroup/a/b/memory.current", "204800\n")];
        assert_eq!(seen(&[&[MEMINFO, v2][..], &wide].concat()), (1000 << 10, 800 << 10));
        assert_eq!(seen(&[&[MEMINFO, v2][..], &wide, &tight].concat()), (400 << 10, 300 << 10));
        // In a container the path is that of the host, and the group itself is mounted.
        let own = [("sys/fs/cgroup/memory.max", "512000"), ("sys/fs/cgroup/memory.current", "0")];
        assert_eq!(seen(&[&[MEMINFO, v2][..], &own].concat()), (500 << 10, 500 << 10));
        // Groups that this process is not in do not matter.
        let other = [("sys/fs/cgroup/c/memory.max", "1024"), ("sys/fs/cgroup/c/memory.current", "0")];
        assert_eq!(seen(&[&[MEMINFO, v2][..], &other].concat()), (1000 << 10, 800 << 10));
    }

    #[test]
    fn control_groups_of_the_first_version_count() {
        let v1 = ("proc/self/cgroup", "5:devices:/\n4:cpu,memory:/x\n0::/\n");
        let group = [
            ("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "409600"),
            ("sys/fs/cgroup/memory/x/memory.usage_in_bytes", "307200"),
            ("sys/fs/cgroup/memory/x/memory.stat", "inactive_file 1\ntotal_inactive_file 51200\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712"),
        ];
        assert_eq!(seen(&[&[MEMINFO, v1][..], &group].concat()), (400 << 10, 150 << 10));
    }
}
