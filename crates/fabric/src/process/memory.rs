//! Memory of the host that several processes map.

use rustix::fs::{fallocate, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create};
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use std::io::{Error, ErrorKind, Result};
use std::os::fd::OwnedFd;

/// What keeps a process from taking memory away under the others, which would end them by SIGBUS.
const FIXED: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// `bytes` bytes of zeros, all of which the host has memory for.
pub(crate) fn make(bytes: u64) -> Result<OwnedFd> {
    let memory = memfd_create("tandem-pe", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&memory, bytes)?;
    fallocate(&memory, FallocateFlags::empty(), 0, bytes)?;
    fcntl_add_seals(&memory, FIXED)?;
    Ok(memory)
}

/// Says so unless `memory` has `bytes` bytes, and will have them as long as anybody maps it.
pub(crate) fn check(memory: &OwnedFd, bytes: u64) -> Result<()> {
    let wrong = |what: String| Error::new(ErrorKind::InvalidData, what);
    let found = fstat(memory)?.st_size;
    if u64::try_from(found).ok() != Some(bytes) {
        return Err(wrong(format!("memory of {found} bytes where {bytes} are expected")));
    }
    // What is no such memory has no seals.
    if !fcntl_get_seals(memory).is_ok_and(|seals| seals.contains(FIXED)) {
        return Err(wrong("memory whose size may change".into()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that gives memory which it could take away again is refused.
    #[test]
    fn memory_that_may_change_is_refused() {
        let problem = |memory: &OwnedFd, bytes| check(memory, bytes).err().unwrap().to_string();
        let memory = make(1 << 16).unwrap();
        assert!(ftruncate(&memory, 0).is_err() && ftruncate(&memory, 1 << 17).is_err());
        assert!(problem(&memory, 1 << 15).contains("65536 bytes where 32768"));
        let loose = memfd_create("loose", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&loose, 1 << 16).unwrap();
        assert!(problem(&loose, 1 << 16).contains("may change"));
        fcntl_add_seals(&loose, SealFlags::GROW | SealFlags::SEAL).unwrap();
        assert!(problem(&loose, 1 << 16).contains("may change"));
        let file: OwnedFd = std::fs::File::open("/proc/self/exe").unwrap().into();
        let len = fstat(&file).unwrap().st_size as u64;
        assert!(problem(&file, len).contains("may change"));
    }
}
