//! What is remembered between runs: the contents of keys whose points have been checked, and the hashes of their files' blocks.
//!
//! One empty file for each content, `<folder>/checked-keys/<hash>`. Nothing breaks without it; a key is then checked again. Who can write
//! there can have a bad key taken for a good one, so only a folder and files count that belong to this user and that nobody else
//! can write to. A folder of another user's is neither read nor written. The hashes of blocks are in `cache/lists.rs`,
//! recordings of circuits' runs in `cache/recordings.rs`.

mod contents;
pub(crate) mod lists;
mod recordings;

pub use contents::{clear, list, Contents, Remembered};
pub use recordings::{keep_recording, recording};

use nix::fcntl::{open, openat, AtFlags, OFlag};
use nix::sys::stat::{fchmod, fstat, fstatat, FileStat, Mode, SFlag};
use nix::unistd::{geteuid, Uid};
use std::env;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Changes when a check asks for more than it did before: what passed an older one is checked again.
pub(crate) const CHECK: &str = "points 2";

/// The folder: `TANDEM_CACHE_DIR`, else `tandem` in the user's cache folder. `None` where `HOME` is not set either.
pub fn folder() -> Option<PathBuf> {
    let set = |name| env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    set("TANDEM_CACHE_DIR")
        .or_else(|| set("XDG_CACHE_HOME").map(|d| d.join("tandem")))
        .or_else(|| set("HOME").map(|d| d.join(".cache/tandem")))
}

/// The content of a key, as this cache names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Content(blake3::Hash);

impl Content {
    pub(crate) fn of(key: &[u8]) -> Self {
        Self(blake3::Hasher::new_derive_key(CHECK).update_rayon(key).finalize())
    }

    /// That of which this is the hash.
    pub(crate) fn from_hash(hash: blake3::Hash) -> Self {
        Self(hash)
    }

    /// Whether this content has been checked.
    pub(crate) fn is_known(self) -> bool {
        folder().is_some_and(|folder| self.is_known_in(&folder))
    }

    /// Remembers that it has. A folder that cannot be written to, or that others can, is no error: the next run checks again.
    pub(crate) fn remember(self) {
        if let Some(folder) = folder() {
            // Nothing is lost but the time of a check.
            let _ = self.remember_in(&folder);
        }
    }

    fn is_known_in(self, folder: &Path) -> bool {
        let Ok(checked) = open_own(&folder.join(CHECKED)) else { return false };
        // Looked at and not opened, so that nothing waits at the other end of a pipe.
        let name = self.name();
        let marker = fstatat(&checked, name.as_str(), AtFlags::AT_SYMLINK_NOFOLLOW);
        let is_known = marker.is_ok_and(|marker| is_own(&marker, SFlag::S_IFREG, geteuid()));
        if is_known {
            // Where this fails, it is forgotten sooner than others.
            let _ = contents::use_now(&checked, &name);
        }
        is_known
    }

    fn remember_in(self, folder: &Path) -> std::io::Result<()> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        // Only ever a new file: what is there already, a link for one, is left as it is.
        let checked = make_own(&folder.join(CHECKED))?;
        openat(&checked, self.name().as_str(), flags, Mode::S_IRUSR | Mode::S_IWUSR)?;
        contents::forget_oldest(checked)
    }

    pub(crate) fn name(self) -> String {
        self.0.to_hex().to_string()
    }
}

/// The folder of one empty file for each key.
const CHECKED: &str = "checked-keys";

/// Opens such a folder, made where there is none.
fn make_own(path: &Path) -> std::io::Result<OwnedFd> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    open_own(path)
}

/// Opens a folder of this user's that nobody else can write to; one that others could read becomes private.
fn open_own(path: &Path) -> std::io::Result<OwnedFd> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let folder = open(path, flags, Mode::empty())?;
    let stat = fstat(&folder)?;
    if !is_own(&stat, SFlag::S_IFDIR, geteuid()) {
        return Err(std::io::ErrorKind::PermissionDenied.into());
    }
    if Mode::from_bits_truncate(stat.st_mode).intersects(Mode::S_IRWXG | Mode::S_IRWXO) {
        fchmod(&folder, Mode::S_IRWXU)?;
    }
    Ok(folder)
}

/// Whether this is such a file of `user`'s, to which nobody else can write.
fn is_own(stat: &FileStat, kind: SFlag, user: Uid) -> bool {
    SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT == kind
        && stat.st_uid == user.as_raw()
        && !Mode::from_bits_truncate(stat.st_mode).intersects(Mode::S_IWGRP | Mode::S_IWOTH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{symlink, PermissionsExt};

    fn mode(path: &Path) -> u32 {
        path.symlink_metadata().unwrap().permissions().mode() & 0o777
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn what_is_remembered_is_this_users_alone() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("of/tandem");
        let key = Content::of(b"a key");
        assert!(!key.is_known_in(&cache));
        // Not the key's own hash: what an older check found does not count.
        assert!(
            key.0 == blake3::Hasher::new_derive_key(CHECK).update(b"a key").finalize()
                && key.0 != blake3::hash(b"a key")
        );
        key.remember_in(&cache).unwrap();
        assert!(key.is_known_in(&cache) && !Content::of(b"a kez").is_known_in(&cache));
        let checked = cache.join(CHECKED);
        assert_eq!((mode(&cache), mode(&checked), mode(&checked.join(key.name()))), (0o700, 0o700, 0o600));
        assert_eq!(key.remember_in(&cache).unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
        // Readable by others as it was left: it becomes private.
        set_mode(&checked, 0o755);
        assert!(key.is_known_in(&cache));
        assert_eq!(mode(&checked), 0o700);
        // Writable by others: what it holds may be anybody's.
        for open in [0o770, 0o707] {
            set_mode(&checked, open);
            assert!(!key.is_known_in(&cache) && Content::of(b"b").remember_in(&cache).is_err());
        }
        set_mode(&checked, 0o700);
        for open in [0o620, 0o602] {
            set_mode(&checked.join(key.name()), open);
            assert!(!key.is_known_in(&cache));
        }
    }

    #[test]
    fn links_pipes_and_folders_do_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let (cache, target) = (folder.path().join("cache"), folder.path().join("target"));
        fs::write(&target, "precious").unwrap();
        let [linked, dangling, pipe, directory, other] = [b"1", b"2", b"3", b"4", b"5"].map(|key| Content::of(key));
        other.remember_in(&cache).unwrap();
        let checked = cache.join(CHECKED);
        symlink(&target, checked.join(linked.name())).unwrap();
        symlink(folder.path().join("new"), checked.join(dangling.name())).unwrap();
        fs::create_dir(checked.join(directory.name())).unwrap();
        nix::unistd::mkfifo(&checked.join(pipe.name()), Mode::S_IRWXU).unwrap();
        for content in [linked, dangling, pipe, directory] {
            assert!(!content.is_known_in(&cache) && content.remember_in(&cache).is_err());
        }
        assert_eq!(fs::read(&target).unwrap(), b"precious");
        assert!(!folder.path().join("new").exists());

        let elsewhere = folder.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        symlink(&checked, elsewhere.join(CHECKED)).unwrap();
        assert!(other.is_known_in(&cache) && !other.is_known_in(&elsewhere));
        assert!(Content::of(b"6").remember_in(&elsewhere).is_err());
        assert!(!Content::of(b"6").is_known_in(&cache));
    }

    #[test]
    fn what_belongs_to_another_user_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let stat = nix::sys::stat::stat(folder.path()).unwrap();
        let other = Uid::from_raw(geteuid().as_raw() + 1);
        assert!(is_own(&stat, SFlag::S_IFDIR, geteuid()));
        assert!(!is_own(&stat, SFlag::S_IFDIR, other) && !is_own(&stat, SFlag::S_IFREG, geteuid()));
        // Root can give a folder away; for others there are folders of root's.
        if geteuid().is_root() {
            nix::unistd::chown(folder.path(), Some(other), None).unwrap();
            assert!(open_own(folder.path()).is_err());
        } else {
            assert!(open_own(Path::new("/proc/sys")).is_err());
        }
    }
}
