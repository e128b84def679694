//! Recordings of circuits' runs, which `tandem-witness` makes and checks: files under the hash of a program.
//!
//! ```text
//! <folder>/recordings/<hash>
//! ```

use super::contents::{forget_beyond, use_now};
use super::lists::name_of_unfinished;
use super::{folder, is_own, make_own, open_own};
use nix::fcntl::{openat, renameat, OFlag};
use nix::sys::stat::{fstat, Mode, SFlag};
use nix::unistd::{geteuid, unlinkat, UnlinkatFlags};
use std::fs::File;
use std::io::{ErrorKind, Read, Result, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

/// The folder of recordings.
pub(super) const RECORDINGS: &str = "recordings";

/// Recordings at most, and their bytes. Beyond, those that were not used for longest are forgotten.
const MOST: usize = 1024;
const MOST_BYTES: u64 = 1 << 30;

/// Bytes of one at most.
const BYTES_MAX: u64 = 1 << 28;

/// What is kept under a hash. Whoever uses it checks it: it may be anything.
pub fn recording(hash: &[u8; 32]) -> Option<Vec<u8>> {
    find_in(&folder()?, hash).ok()
}

/// Keeps a recording under a hash, in place of any other: whole or not at all. Nothing is lost where that fails but time.
pub fn keep_recording(hash: &[u8; 32], bytes: &[u8]) {
    if let Some(folder) = folder() {
        _ = keep_in(&folder, hash, bytes);
    }
}

fn name_of(hash: &[u8; 32]) -> String {
    blake3::Hash::from_bytes(*hash).to_hex().to_string()
}

fn find_in(folder: &Path, hash: &[u8; 32]) -> Result<Vec<u8>> {
    let (recordings, name) = (open_own(&folder.join(RECORDINGS))?, name_of(hash));
    // Opened without waiting for a pipe's other end.
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let file = openat(&recordings, name.as_str(), flags, Mode::empty())?;
    let stat = fstat(&file)?;
    let bytes = u64::try_from(stat.st_size).ok().filter(|&bytes| bytes <= BYTES_MAX);
    let Some(bytes) = bytes.filter(|_| is_own(&stat, SFlag::S_IFREG, geteuid())) else {
        return Err(ErrorKind::InvalidData.into());
    };
    let mut found = Vec::new();
    found.try_reserve_exact(bytes as usize).map_err(|_| ErrorKind::OutOfMemory)?;
    // No more than was asked for, whoever makes it longer now.
    File::from(file).take(bytes).read_to_end(&mut found)?;
    // Where this fails, it is forgotten sooner than others.
    _ = use_now(&recordings, &name);
    Ok(found)
}

fn keep_in(folder: &Path, hash: &[u8; 32], bytes: &[u8]) -> Result<()> {
    if bytes.len() as u64 > BYTES_MAX {
        return Err(ErrorKind::InvalidInput.into());
    }
    let recordings = make_own(&folder.join(RECORDINGS))?;
    // What is left of one that was not finished has a name like others, and is forgotten like them.
    let unfinished = name_of_unfinished();
    let done = write(&recordings, &unfinished, bytes)
        .and_then(|()| Ok(renameat(&recordings, unfinished.as_str(), &recordings, name_of(hash).as_str())?));
    if done.is_err() {
        _ = unlinkat(&recordings, unfinished.as_str(), UnlinkatFlags::NoRemoveDir);
    }
    done.and_then(|()| forget_beyond(recordings, MOST, MOST_BYTES))
}

fn write(folder: &OwnedFd, name: &str, bytes: &[u8]) -> Result<()> {
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    File::from(openat(folder, name, flags, Mode::S_IRUSR | Mode::S_IWUSR)?).write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::super::{clear, list};
    use super::*;
    use std::fs;
    use std::os::unix::fs::{symlink, PermissionsExt};

    #[test]
    fn a_recording_is_replaced_listed_and_cleared() {
        let folder = tempfile::tempdir().unwrap();
        let [hash, other] = [b"a", b"b"].map(|program| *blake3::hash(program).as_bytes());
        assert!(find_in(folder.path(), &hash).is_err());
        keep_in(folder.path(), &hash, b"first").unwrap();
        keep_in(folder.path(), &hash, b"second").unwrap();
        assert_eq!(find_in(folder.path(), &hash).unwrap(), b"second");
        assert!(find_in(folder.path(), &other).is_err());
        let path = folder.path().join(RECORDINGS).join(name_of(&hash));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let contents = list(folder.path()).unwrap();
        assert_eq!((contents.recordings.len(), contents.bytes()), (1, 6));
        clear(folder.path()).unwrap();
        assert!(find_in(folder.path(), &hash).is_err() && !path.exists());
    }

    #[test]
    fn what_others_could_have_written_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let hash = *blake3::hash(b"a").as_bytes();
        keep_in(folder.path(), &hash, b"line").unwrap();
        let recordings = folder.path().join(RECORDINGS);
        let path = recordings.join(name_of(&hash));
        let set_mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        set_mode(&path, 0o622);
        assert!(find_in(folder.path(), &hash).is_err());
        set_mode(&path, 0o600);
        assert!(find_in(folder.path(), &hash).is_ok());
        set_mode(&recordings, 0o777);
        assert!(find_in(folder.path(), &hash).is_err() && keep_in(folder.path(), &hash, b"other").is_err());
        set_mode(&recordings, 0o700);
        // A link is not followed, and too long a file is not read.
        let linked = *blake3::hash(b"b").as_bytes();
        symlink(&path, recordings.join(name_of(&linked))).unwrap();
        assert!(find_in(folder.path(), &linked).is_err());
        File::options().write(true).open(&path).unwrap().set_len(BYTES_MAX + 1).unwrap();
        assert!(find_in(folder.path(), &hash).is_err());
    }
}
