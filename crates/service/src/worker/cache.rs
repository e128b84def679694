//! Files of keys that a node copies from the store of blobs: whole or not at all, compared with their hash, the least recently used removed.

use crate::blobs::{random_name, Source};
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Bytes that are copied at a time.
const PIECE: usize = 1 << 20;

/// A file that was used so lately is not removed: another worker of the node may be about to load it.
const IN_USE: Duration = Duration::from_secs(60);

/// Sees to it that `to` is there, a copy of `from` with this hash, in a folder whose files take `most` bytes, or more where all of them are
/// in use. Whether it was copied now.
///
/// # Errors
/// The copy cannot be read or written; [`io::ErrorKind::InvalidData`] where it has another hash.
pub(crate) fn have(
    to: &Path,
    from: &Source,
    hash: &str,
    most: u64,
    wanted: &(dyn Fn() -> bool + Sync),
) -> io::Result<bool> {
    note_use(to);
    if to.exists() {
        // Whether it is what it should be is seen before it is first loaded.
        return Ok(false);
    }
    let (mut source, bytes) = from.open(wanted)?;
    let folder = to.parent().unwrap_or(Path::new("/"));
    make_room(folder, bytes, most, IN_USE)?;
    let part = folder.join(format!("{}.part", random_name()?));
    // Unlike a rename, a link leaves the copy that another worker has made meanwhile, and may be reading.
    let copied = copy(&mut source, &part, hash).and_then(|()| fs::hard_link(&part, to));
    let _ = fs::remove_file(&part);
    match copied {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        copied => copied.map(|()| true),
    }
}

/// Where it stands when a file was last used. The file itself stays untouched: who reads it would take it for changed.
fn mark(of: &Path) -> PathBuf {
    of.with_extension("used")
}

/// Notes that a file is used now. Where that fails, it may be removed and is copied again.
fn note_use(of: &Path) {
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(mark(of));
    let _ = file.and_then(|file| file.set_modified(SystemTime::now()));
}

fn copy(from: &mut impl Read, part: &Path, hash: &str) -> io::Result<()> {
    let mut to = OpenOptions::new().write(true).create_new(true).mode(0o600).open(part)?;
    let mut hasher = blake3::Hasher::new();
    let mut piece = vec![0; PIECE];
    loop {
        match from.read(&mut piece)? {
            0 => break,
            count => {
                hasher.update(&piece[..count]);
                to.write_all(&piece[..count])?;
            }
        }
    }
    if hasher.finalize().to_hex().as_str() != hash {
        let why = "its content is not what was registered; remove the key and register it again";
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    Ok(())
}

/// Removes files, the least recently used first, until `bytes` more have room; not those that were used within `in_use`.
fn make_room(folder: &Path, bytes: u64, most: u64, in_use: Duration) -> io::Result<()> {
    let mut files: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // Another worker may have removed it since.
        let Ok(about) = entry.metadata() else { continue };
        if entry.path().extension().is_some_and(|end| end == "used") {
            continue;
        }
        let used = fs::metadata(mark(&entry.path())).and_then(|mark| mark.modified());
        files.push((used.or_else(|_| about.modified())?, about.len(), entry.path()));
    }
    files.sort();
    let mut all: u64 = files.iter().map(|(_, size, _)| size).sum();
    for (used, size, path) in files {
        if all.saturating_add(bytes) <= most || used.elapsed().is_ok_and(|since| since < in_use) {
            break;
        }
        // A worker that has it open keeps it until it closes it.
        if fs::remove_file(&path).is_ok() {
            let _ = fs::remove_file(mark(&path));
            all -= size;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::unix::fs::MetadataExt;

    fn have(to: &Path, from: &Path, hash: &str, most: u64) -> io::Result<bool> {
        super::have(to, &Source::File(from.into()), hash, most, &|| true)
    }

    fn hash(bytes: &[u8]) -> String {
        blake3::hash(bytes).to_hex().to_string()
    }

    #[test]
    fn keys_are_copied_whole_and_compared() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("cache/to"));
        fs::create_dir(folder.path().join("cache")).unwrap();
        for bytes in [vec![], vec![7], vec![8; PIECE], vec![9; PIECE + 1]] {
            fs::write(&from, &bytes).unwrap();
            assert!(have(&to, &from, &hash(&bytes), 0).unwrap());
            let stamps = || fs::metadata(&to).map(|file| (file.ino(), file.mtime_nsec(), file.ctime_nsec())).unwrap();
            let before = stamps();
            assert!(!have(&to, &from, &hash(&bytes), 0).unwrap());
            assert!(fs::read(&to).unwrap() == bytes && stamps() == before);
            fs::remove_file(&to).unwrap();
        }
        let damaged = have(&to, &from, &hash(b"other"), 0).unwrap_err();
        assert_eq!(damaged.kind(), io::ErrorKind::InvalidData);
        assert_eq!(have(&to, &folder.path().join("none"), "", 0).unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::remove_file(mark(&to)).unwrap();
        assert_eq!(fs::read_dir(folder.path().join("cache")).unwrap().count(), 0);
    }

    #[test]
    fn the_least_recently_used_goes_and_what_is_in_use_stays() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let now = SystemTime::now();
        for (name, age) in [("old", 300), ("older", 400), ("young", 100), ("used", 1)] {
            fs::write(at(name), [0; 10]).unwrap();
            note_use(&at(name));
            let mark = File::options().append(true).open(mark(&at(name))).unwrap();
            mark.set_modified(now - Duration::from_secs(age)).unwrap();
        }
        let there = || ["older", "old", "young", "used"].map(|name| at(name).exists());
        make_room(folder.path(), 10, 50, IN_USE).unwrap();
        assert_eq!(there(), [true; 4]);
        make_room(folder.path(), 10, 49, IN_USE).unwrap();
        assert_eq!(there(), [false, true, true, true]);
        make_room(folder.path(), 1000, 1, IN_USE).unwrap();
        assert_eq!(there(), [false, false, false, true]);
    }
}
