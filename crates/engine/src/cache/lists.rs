//! Hashes of the blocks of key files, so that a key that was read before is read once.
//!
//! ```text
//! <folder>/key-blocks/<name>     16 bytes "tandem blocks 2\n" | 32 bytes for each block, in order
//! ```
//!
//! The name is a hash of what the system says of the file: device, inode, length, times of modification and of change. It only finds the list.
//! What a list says counts where the root above its hashes is a content that is remembered as checked, so that one which is damaged, old, of
//! another file or forged is none. It has one length for a file's, which is looked at before it is read.

use super::contents::{forget_oldest, use_now};
use super::{folder, is_own, make_own, open_own};
use blake3::hazmat::ChainingValue;
use nix::fcntl::{openat, renameat, OFlag};
use nix::sys::stat::{fstat, Mode, SFlag};
use nix::unistd::{geteuid, unlinkat, UnlinkatFlags};
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read, Result, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The folder of lists.
pub(super) const LISTS: &str = "key-blocks";

/// What a list begins with: changes with its form.
const HEAD: &[u8; 16] = b"tandem blocks 2\n";

/// The list of a file of so many blocks.
pub(crate) fn find(file: &Metadata, blocks: usize) -> Option<Vec<ChainingValue>> {
    find_in(&folder()?, file, blocks).ok()
}

/// Keeps the list of a file. Nothing is lost where that fails but the time of a reading.
pub(crate) fn keep(file: &Metadata, hashes: &[ChainingValue]) {
    if let Some(folder) = folder() {
        _ = keep_in(&folder, file, hashes);
    }
}

fn find_in(folder: &Path, file: &Metadata, blocks: usize) -> Result<Vec<ChainingValue>> {
    let (lists, name) = (open_own(&folder.join(LISTS))?, name_of(file));
    // Opened without waiting for a pipe's other end.
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let list = openat(&lists, name.as_str(), flags, Mode::empty())?;
    let stat = fstat(&list)?;
    let bytes = HEAD.len() + blocks * size_of::<ChainingValue>();
    if !is_own(&stat, SFlag::S_IFREG, geteuid()) || u64::try_from(stat.st_size).ok() != Some(bytes as u64) {
        return Err(ErrorKind::InvalidData.into());
    }
    let (mut list, mut head) = (File::from(list), [0; HEAD.len()]);
    list.read_exact(&mut head)?;
    if head != *HEAD {
        return Err(ErrorKind::InvalidData.into());
    }
    let mut hashes = Vec::new();
    hashes.try_reserve_exact(blocks).map_err(|_| ErrorKind::OutOfMemory)?;
    hashes.resize(blocks, [0; 32]);
    list.read_exact(hashes.as_flattened_mut())?;
    // Where this fails, it is forgotten sooner than others.
    _ = use_now(&lists, &name);
    Ok(hashes)
}

/// A list appears whole under its name, in the place of an older one.
fn keep_in(folder: &Path, file: &Metadata, hashes: &[ChainingValue]) -> Result<()> {
    let lists = make_own(&folder.join(LISTS))?;
    // What is left of one that was not finished has a name like others, and is forgotten like them.
    let unfinished = name_of_unfinished();
    let done = write(&lists, &unfinished, hashes)
        .and_then(|()| Ok(renameat(&lists, unfinished.as_str(), &lists, name_of(file).as_str())?));
    if done.is_err() {
        _ = unlinkat(&lists, unfinished.as_str(), UnlinkatFlags::NoRemoveDir);
    }
    done.and_then(|()| forget_oldest(lists))
}

fn write(lists: &OwnedFd, name: &str, hashes: &[ChainingValue]) -> Result<()> {
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let mut list = File::from(openat(lists, name, flags, Mode::S_IRUSR | Mode::S_IWUSR)?);
    list.write_all(HEAD)?;
    list.write_all(hashes.as_flattened())
}

/// A name that no other thread or process gives now.
pub(super) fn name_of_unfinished() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut hasher = blake3::Hasher::new_derive_key("tandem unfinished file 1");
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    hasher.update(&std::process::id().to_le_bytes()).update(&since.to_le_bytes());
    hasher.update(&COUNT.fetch_add(1, Ordering::Relaxed).to_le_bytes()).finalize().to_hex().to_string()
}

/// By what a file is found again.
pub(crate) fn name_of(file: &Metadata) -> String {
    let mut hasher = blake3::Hasher::new_derive_key("tandem key file 1");
    for number in [file.dev(), file.ino(), file.len()] {
        hasher.update(&number.to_le_bytes());
    }
    for number in [file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec()] {
        hasher.update(&number.to_le_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

#[cfg(test)]
#[path = "lists_tests.rs"]
mod tests;
