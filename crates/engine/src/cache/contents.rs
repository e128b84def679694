//! The contents of the cache folder as a whole: listed, limited and cleared.
//!
//! Only what this program makes is counted or removed: files of this user's with a name that it gives. What else lies there stays.

use super::lists::LISTS;
use super::recordings::RECORDINGS;
use super::{is_own, open_own, CHECKED};
use crate::{Error, Result};
use nix::dir::Dir;
use nix::fcntl::AtFlags;
use nix::sys::stat::{fstatat, utimensat, SFlag, UtimensatFlags};
use nix::sys::time::TimeSpec;
use nix::unistd::{geteuid, unlinkat, UnlinkatFlags};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Files of a folder at most. Beyond, those that were not used for longest are forgotten.
const MOST: usize = 1024;

/// Bytes of a folder's files at most: lists of the blocks of 2 TiB of keys.
const MOST_BYTES: u64 = 64 << 20;

/// Something that is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remembered {
    /// Its file's name: the hash of a key's content, of what the system says of a key's file, or of a circuit's program.
    pub name: String,
    /// Bytes of the file.
    pub bytes: u64,
    /// When it was made or last used.
    pub used: SystemTime,
}

/// What the cache folder holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents {
    /// The keys whose points have been checked, the least recently used first.
    pub checked_keys: Vec<Remembered>,
    /// Hashes of the blocks of keys' files, in the same order.
    pub block_lists: Vec<Remembered>,
    /// Recordings of circuits' runs, in the same order.
    pub recordings: Vec<Remembered>,
}

impl Contents {
    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.checked_keys.iter().chain(&self.block_lists).chain(&self.recordings).map(|file| file.bytes).sum()
    }
}

/// What the cache in `folder` holds; nothing where it is not there yet.
///
/// # Errors
/// [`Error::BadInput`] where it is another user's, or others can write to it: nothing there counts.
pub fn list(folder: &Path) -> Result<Contents> {
    let of = |name| match open(folder, name)? {
        Some(opened) => remembered(opened).map_err(|e| unread(&folder.join(name), &e)),
        None => Ok(Vec::new()),
    };
    Ok(Contents { checked_keys: of(CHECKED)?, block_lists: of(LISTS)?, recordings: of(RECORDINGS)? })
}

/// Forgets all that the cache in `folder` holds, and returns what that was. The folder stays, and what others put there.
///
/// # Errors
/// As for [`list`]; a file that cannot be removed.
pub fn clear(folder: &Path) -> Result<Contents> {
    let contents = list(folder)?;
    let all = [(LISTS, &contents.block_lists), (CHECKED, &contents.checked_keys), (RECORDINGS, &contents.recordings)];
    for (name, files) in all {
        let Some(opened) = open(folder, name)? else { continue };
        for file in files {
            let told =
                |e| Error::input(format!("{}: cannot remove it: {e}", folder.join(name).join(&file.name).display()));
            remove(&opened, &file.name).map_err(told)?;
        }
    }
    Ok(contents)
}

fn unread(folder: &Path, error: &io::Error) -> Error {
    Error::input(format!("{}: cannot read this cache folder: {error}", folder.display()))
}

fn open(folder: &Path, name: &str) -> Result<Option<OwnedFd>> {
    let path = folder.join(name);
    match open_own(&path) {
        Ok(folder) => Ok(Some(folder)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Err(Error::input(format!(
            "{}: not used as a cache: it is another user's, or others can write to it; chmod 700 it if it is yours",
            path.display()
        ))),
        Err(e) => Err(unread(&path, &e)),
    }
}

/// Says that a file of the folder is used now.
pub(super) fn use_now(folder: &OwnedFd, name: &str) -> nix::Result<()> {
    utimensat(folder, name, &TimeSpec::UTIME_NOW, &TimeSpec::UTIME_NOW, UtimensatFlags::NoFollowSymlink)
}

/// Forgets what was not used for longest, as far as there is too much of it.
pub(super) fn forget_oldest(folder: OwnedFd) -> io::Result<()> {
    forget_beyond(folder, MOST, MOST_BYTES)
}

/// Forgets what was not used for longest, until no more than `most` files of so many bytes are left.
pub(super) fn forget_beyond(folder: OwnedFd, most: usize, most_bytes: u64) -> io::Result<()> {
    let all = remembered(folder.try_clone()?)?;
    let (mut count, mut bytes) = (all.len(), all.iter().map(|file| file.bytes).sum::<u64>());
    for file in &all {
        if count <= most && bytes <= most_bytes {
            break;
        }
        remove(&folder, &file.name)?;
        (count, bytes) = (count - 1, bytes - file.bytes);
    }
    Ok(())
}

/// Removes a name, not what it may link to. One that is gone already is no error.
fn remove(folder: &impl AsFd, name: &str) -> io::Result<()> {
    match unlinkat(folder, name, UnlinkatFlags::NoRemoveDir) {
        Err(nix::errno::Errno::ENOENT) => Ok(()),
        result => Ok(result?),
    }
}

/// The files of this user's with the name of a hash, the least recently used first.
fn remembered(folder: OwnedFd) -> io::Result<Vec<Remembered>> {
    let mut folder = Dir::from_fd(folder)?;
    let names: Vec<_> =
        folder.iter().map(|entry| entry.map(|e| e.file_name().to_owned())).collect::<nix::Result<_>>()?;
    let is_hex = |b: &u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
    let mut all = Vec::new();
    for name in names {
        let Some(name) = name.to_str().ok().filter(|name| name.len() == 64 && name.as_bytes().iter().all(is_hex))
        else {
            continue;
        };
        let stat = fstatat(&folder, name, AtFlags::AT_SYMLINK_NOFOLLOW);
        let Some(stat) = stat.ok().filter(|stat| is_own(stat, SFlag::S_IFREG, geteuid())) else { continue };
        let since =
            Duration::new(u64::try_from(stat.st_mtime).unwrap_or(0), u32::try_from(stat.st_mtime_nsec).unwrap_or(0));
        let used = UNIX_EPOCH.checked_add(since).unwrap_or(UNIX_EPOCH);
        all.push(Remembered { name: name.into(), bytes: u64::try_from(stat.st_size).unwrap_or(0), used });
    }
    all.sort_by(|a, b| (a.used, &a.name).cmp(&(b.used, &b.name)));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::super::Content;
    use super::*;
    use std::fs::{self, File, Permissions};
    use std::os::unix::fs::{symlink, PermissionsExt};

    fn names(contents: &Contents) -> Vec<&str> {
        contents.checked_keys.iter().map(|key| key.name.as_str()).collect()
    }

    /// Checks of four contents, used one hour after the other; then the first is used again.
    #[test]
    fn the_least_recently_used_is_forgotten_first() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("cache");
        assert_eq!(list(&cache).unwrap(), Contents::default());
        let keys = [b"a", b"b", b"c", b"d"].map(|key| Content::of(key));
        for (hours, key) in (1..).zip(keys) {
            key.remember_in(&cache).unwrap();
            let marker = File::open(cache.join(CHECKED).join(key.name())).unwrap();
            marker.set_modified(UNIX_EPOCH + Duration::from_secs(3600 * hours)).unwrap();
        }
        assert!(keys[0].is_known_in(&cache));
        let expected = [1, 2, 3, 0].map(|i: usize| keys[i].name());
        let listed = list(&cache).unwrap();
        assert_eq!(names(&listed), expected);
        assert_eq!(listed.checked_keys[0].used, UNIX_EPOCH + Duration::from_secs(7200));
        let forget = |most, bytes| forget_beyond(open(&cache, CHECKED).unwrap().unwrap(), most, bytes).unwrap();
        forget(4, 0);
        assert_eq!(list(&cache).unwrap(), listed);
        forget(2, 0);
        assert_eq!(names(&list(&cache).unwrap()), expected[2..]);
        assert!(!keys[1].is_known_in(&cache) && keys[0].is_known_in(&cache));
    }

    /// The limit holds whenever one more is remembered.
    #[test]
    fn what_is_remembered_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let first = Content::of(b"first");
        first.remember_in(folder.path()).unwrap();
        let checked = folder.path().join(CHECKED);
        for i in 0..MOST {
            fs::write(checked.join(format!("{i:064x}")), []).unwrap();
        }
        let marker = File::open(checked.join(first.name())).unwrap();
        marker.set_modified(UNIX_EPOCH).unwrap();
        let last = Content::of(b"last");
        last.remember_in(folder.path()).unwrap();
        let listed = list(folder.path()).unwrap();
        assert_eq!(listed.checked_keys.len(), MOST);
        assert!(last.is_known_in(folder.path()) && !first.is_known_in(folder.path()));
    }

    #[test]
    fn only_what_is_its_own_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let key = Content::of(b"key");
        key.remember_in(folder.path()).unwrap();
        let checked = folder.path().join(CHECKED);
        let (target, linked) = (folder.path().join("target"), checked.join("a".repeat(64)));
        fs::write(&target, "precious").unwrap();
        symlink(&target, &linked).unwrap();
        fs::create_dir(checked.join("b".repeat(64))).unwrap();
        let others = ["notes.txt", &"A".repeat(64), &"c".repeat(63)].map(|name| checked.join(name));
        others.iter().for_each(|other| fs::write(other, "not ours").unwrap());
        let cleared = clear(folder.path()).unwrap();
        assert_eq!(names(&cleared), [key.name()]);
        assert_eq!(cleared.bytes(), 0);
        assert!(!key.is_known_in(folder.path()) && list(folder.path()).unwrap() == Contents::default());
        assert!(linked.is_symlink() && checked.join("b".repeat(64)).is_dir());
        assert!(others.iter().all(|other| other.exists()));
        assert_eq!(fs::read(&target).unwrap(), b"precious");
        assert_eq!(clear(folder.path()).unwrap(), Contents::default());
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        Content::of(b"key").remember_in(folder.path()).unwrap();
        let checked = folder.path().join(CHECKED);
        fs::set_permissions(&checked, Permissions::from_mode(0o777)).unwrap();
        for refused in [list(folder.path()), clear(folder.path())] {
            assert!(refused.unwrap_err().to_string().contains("others can write to it; chmod 700"));
        }
        assert_eq!(fs::read_dir(&checked).unwrap().count(), 1);
        // A link is not followed.
        let elsewhere = tempfile::tempdir().unwrap();
        fs::set_permissions(&checked, Permissions::from_mode(0o700)).unwrap();
        symlink(&checked, elsewhere.path().join(CHECKED)).unwrap();
        assert!(list(elsewhere.path()).is_err() && clear(elsewhere.path()).is_err());
        assert_eq!(fs::read_dir(&checked).unwrap().count(), 1);
    }
}
