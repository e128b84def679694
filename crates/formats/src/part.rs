//! Hidden files under way beside their places, and the removal of those whose writer is gone.
//!
//! A part is named `.NAME.tandem-0123456789abcdef.part`. Its writer holds a lock on it, which the system releases when the
//! writer ends, however it ends; so a part that can be locked has no writer any more.

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg, OFlag};
use std::collections::HashSet;
use std::ffi::{CString, OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// Random names that are tried.
const ATTEMPTS: usize = 16;
/// Bytes of the file's own name that the part's name repeats: names have at most 255 bytes.
const NAME_MAX: usize = 200;
const MARK: &str = ".tandem-";
const DIGITS: usize = 16;
const END: &str = ".part";

/// Parts under way, for [`remove_unfinished`].
static UNFINISHED: Mutex<Vec<CString>> = Mutex::new(Vec::new());

/// A file under way; removed when dropped, unless it has got its name.
#[derive(Debug)]
pub(crate) struct Part {
    path: PathBuf,
    /// `None` where the file system has no locks: nobody else can lock the part there, either.
    lock: Option<Flock<File>>,
}

impl Part {
    /// Makes an empty part for a file that will be at `destination`, with the permissions `mode` less the umask.
    pub(crate) fn create(destination: &Path, mode: u32) -> io::Result<(Self, File)> {
        let name = destination.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        sweep(destination.parent().unwrap_or(Path::new("/")));
        Self::create_as(destination, mode, || random_name(name))
    }

    /// Makes an empty part for `destination`, with the first of some names that is free. What has one of them, a link too, stays what it
    /// is.
    fn create_as(destination: &Path, mode: u32, mut name: impl FnMut() -> OsString) -> io::Result<(Self, File)> {
        for _ in 0..ATTEMPTS {
            let path = destination.with_file_name(name());
            let mut unfinished = unfinished();
            let file = match OpenOptions::new().write(true).create_new(true).mode(mode).open(&path) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
                file => file?,
            };
            unfinished.push(CString::new(path.as_os_str().as_bytes())?);
            drop(unfinished);
            let mut part = Self { path, lock: None };
            match Flock::lock(file.try_clone()?, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => part.lock = Some(lock),
                // Another run takes it for one without a writer.
                Err((_, Errno::EWOULDBLOCK)) => continue,
                Err(_) => {}
            }
            // Or has done so just before it was locked.
            if fs::symlink_metadata(&part.path).is_ok() {
                return Ok((part, file));
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "found no name for a hidden file that is free"))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let mut unfinished = unfinished();
        // Nothing is left to be done if this fails.
        let _ = fs::remove_file(&self.path);
        forget(&mut unfinished, &self.path);
    }
}

/// Gives parts their names, in one go as far as [`remove_unfinished`] is concerned. Takes those that got theirs out of their
/// slots; the one that failed and those after it stay.
pub(crate) fn rename<'a>(
    parts: impl Iterator<Item = (&'a mut Option<Part>, &'a Path)>,
) -> Result<(), (PathBuf, io::Error)> {
    let mut unfinished = unfinished();
    let mut done = Vec::new();
    let mut result = Ok(());
    for (slot, destination) in parts {
        let Some(part) = slot else { continue };
        if let Err(e) = fs::rename(&part.path, destination) {
            result = Err((destination.into(), e));
            break;
        }
        forget(&mut unfinished, &part.path);
        done.extend(slot.take());
    }
    drop(unfinished);
    // Each looks for its old name, where nothing is any more.
    drop(done);
    result
}

fn forget(unfinished: &mut Vec<CString>, path: &Path) {
    unfinished.retain(|other| other.as_bytes() != path.as_os_str().as_bytes());
}

fn unfinished() -> MutexGuard<'static, Vec<CString>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the files under way. For a program that is about to end without dropping them, as on Ctrl-C: no file appears
/// after this, since the lock is kept until the process is gone.
pub fn remove_unfinished() {
    let unfinished = unfinished();
    remove(&unfinished);
    std::mem::forget(unfinished);
}

/// [`remove_unfinished`] for a thread that may hold the lock itself, or is in a signal handler: waits for it for a second at most, and
/// allocates nothing.
pub fn abandon() {
    for _ in 0..100 {
        match UNFINISHED.try_lock() {
            Ok(unfinished) => {
                remove(&unfinished);
                return std::mem::forget(unfinished);
            }
            Err(TryLockError::Poisoned(poisoned)) => {
                remove(poisoned.get_ref());
                return std::mem::forget(poisoned);
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

fn remove(unfinished: &[CString]) {
    for path in unfinished {
        let _ = nix::unistd::unlink(path.as_c_str());
    }
}

/// `.NAME.tandem-0123456789abcdef.part`
fn random_name(name: &OsStr) -> OsString {
    // The standard library draws the keys of its hash maps from the system's randomness.
    let random = std::collections::hash_map::RandomState::new().build_hasher().finish();
    let name = &name.as_bytes()[..name.len().min(NAME_MAX)];
    let mut own = OsString::from(".");
    own.push(OsStr::from_bytes(name));
    own.push(format!("{MARK}{random:0DIGITS$x}{END}"));
    own
}

fn is_name_of_part(name: &OsStr) -> bool {
    let is_random = |rest: &[u8]| {
        let (before, digits) = rest.split_at(rest.len().saturating_sub(DIGITS));
        before.ends_with(MARK.as_bytes()) && digits.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    };
    name.as_bytes().strip_suffix(END.as_bytes()).is_some_and(|rest| rest.starts_with(b".") && is_random(rest))
}

/// Removes the parts in a folder whose writers are gone; once for each folder.
fn sweep(folder: &Path) {
    static SWEPT: Mutex<Option<HashSet<PathBuf>>> = Mutex::new(None);
    let mut swept = SWEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if swept.get_or_insert_default().insert(folder.into()) {
        remove_dead(folder);
    }
}

fn remove_dead(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten().filter(|entry| is_name_of_part(&entry.file_name())) {
        // One that cannot be opened, locked or removed stays.
        let _ = remove_if_dead(&entry.path());
    }
}

fn remove_if_dead(path: &Path) -> io::Result<()> {
    // No link is followed, and no named pipe waited for.
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let file = OpenOptions::new().write(true).custom_flags(flags.bits()).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.uid() != nix::unistd::geteuid().as_raw() {
        return Ok(());
    }
    let _lock = Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, e)| e)?;
    fs::remove_file(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<OsString> {
        let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    }

    #[test]
    fn names_are_random_and_known_again() {
        let long = OsString::from("n".repeat(255));
        let draw = |name: &OsStr| random_name(name);
        let drawn: HashSet<OsString> = (0..1000).map(|_| draw(OsStr::new("x"))).collect();
        assert_eq!(drawn.len(), 1000);
        assert!(drawn.iter().all(|name| is_name_of_part(name)));
        assert!(draw(&long).len() <= 255 && is_name_of_part(&draw(&long)));
        for other in [
            ".x.1-0.part",
            ".x.tandem-0123456789abcdef",
            "x.tandem-0123456789abcdef.part",
            ".x.tandem-0123456789abcdeF.part",
            ".x.tandem-123456789abcdef.part",
            ".x.0123456789abcdef.part",
            ".part",
        ] {
            assert!(!is_name_of_part(OsStr::new(other)), "{other}");
        }
    }

    #[test]
    fn parts_without_a_writer_are_removed_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let (live, _file) = Part::create(&folder.join("live"), 0o600).unwrap();
        // As a run leaves it that is killed.
        let dead = folder.join(random_name(OsStr::new("dead")));
        fs::write(&dead, "half").unwrap();
        let other = folder.join(".other.part");
        fs::write(&other, "not ours").unwrap();
        let link = folder.join(random_name(OsStr::new("link")));
        std::os::unix::fs::symlink(&other, &link).unwrap();
        let pipe = folder.join(random_name(OsStr::new("pipe")));
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let owned = folder.join(random_name(OsStr::new("owned")));
        fs::write(&owned, "another user's").unwrap();
        // Only root can give files away; others own all that they can make here.
        let given = std::os::unix::fs::chown(&owned, Some(4321), None).is_ok();
        remove_dead(folder);
        assert!(!dead.exists());
        assert!(live.path.exists() && other.exists() && link.is_symlink());
        assert!(fs::symlink_metadata(&pipe).is_ok());
        assert_eq!(owned.exists(), given);
    }

    #[test]
    fn names_that_are_taken_are_let_alone() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "mine").unwrap();
        std::os::unix::fs::symlink("file", at("link")).unwrap();
        std::os::unix::fs::symlink("none", at("lost")).unwrap();
        let mut names = ["file", "link", "lost", "free"].into_iter();
        let (part, _file) = Part::create_as(&at("x"), 0o600, || names.next().unwrap().into()).unwrap();
        assert_eq!(part.path, at("free"));
        assert_eq!(fs::read(at("file")).unwrap(), b"mine");
        let mut tried = 0;
        let all_taken = Part::create_as(&at("x"), 0o600, || {
            tried += 1;
            "file".into()
        });
        assert_eq!((all_taken.unwrap_err().kind(), tried), (io::ErrorKind::AlreadyExists, ATTEMPTS));
        // A failure of another kind is told at once.
        let none = Part::create_as(&at("none/x"), 0o600, || "x".into()).unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_folder_is_swept_by_the_first_part_in_it() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(random_name(OsStr::new("dead"))), "half").unwrap();
        let (part, _file) = Part::create(&folder.path().join("x"), 0o600).unwrap();
        assert_eq!(names(folder.path()), [part.path.file_name().unwrap()]);
        drop(part);
        assert_eq!(names(folder.path()), [""; 0]);
    }
}
