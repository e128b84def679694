//! Output files that appear whole or not at all.

use crate::error::{FormatError, Result};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes gathered before each write.
const BUFFER: usize = 1 << 20;

/// Files under way, for [`remove_unfinished`].
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A file that is being written beside the place where it will appear. Dropped before [`commit`], it leaves nothing.
#[derive(Debug)]
pub struct Output {
    destination: PathBuf,
    /// The temporary file; `None` once it is renamed, and for a destination that is no regular file.
    temporary: Option<PathBuf>,
    file: BufWriter<File>,
}

impl Output {
    /// Begins a file. A destination that exists and is no regular file, such as `/dev/stdout`, is written directly.
    ///
    /// # Errors
    /// The folder is missing, or cannot be written to.
    pub fn create(destination: impl AsRef<Path>) -> Result<Self> {
        let asked = destination.as_ref();
        let fail = |doing: &str, e| Err(FormatError::io(asked, doing, e));
        // Renaming onto a symbolic link would replace the link, not the file that it names.
        let destination = fs::canonicalize(asked).unwrap_or_else(|_| asked.into());
        let old = fs::metadata(&destination);
        match &old {
            Ok(old) if old.is_dir() => {
                return fail("write", io::Error::new(io::ErrorKind::IsADirectory, "this is a folder, expected a file"));
            }
            Ok(old) if !old.is_file() => {
                return match OpenOptions::new().write(true).open(&destination) {
                    Ok(file) => Ok(Self { destination, temporary: None, file: BufWriter::with_capacity(BUFFER, file) }),
                    Err(e) => fail("write", e),
                };
            }
            _ => {}
        }
        let Some(name) = destination.file_name() else {
            return fail("write", io::Error::new(io::ErrorKind::InvalidInput, "expected the name of a file"));
        };
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let mut own = std::ffi::OsString::from(".");
        own.push(name);
        own.push(format!(".{}-{count}.part", std::process::id()));
        let temporary = destination.with_file_name(own);
        let mut unfinished = unfinished();
        match OpenOptions::new().write(true).create_new(true).open(&temporary) {
            Ok(file) => {
                unfinished.push(temporary.clone());
                // A file that was closed to others stays so. Where the permissions cannot be set, the usual ones apply.
                if let Ok(old) = old {
                    let _ = file.set_permissions(old.permissions());
                }
                let file = BufWriter::with_capacity(BUFFER, file);
                Ok(Self { destination, temporary: Some(temporary), file })
            }
            Err(e) => fail("create a file in its folder", e),
        }
    }

    /// Where the file will appear.
    pub fn path(&self) -> &Path {
        &self.destination
    }

    /// An error that names this file.
    pub fn error(&self, error: io::Error) -> FormatError {
        FormatError::io(&self.destination, "write", error)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        let Some(temporary) = self.temporary.take() else { return };
        let mut unfinished = unfinished();
        // Nothing is left to be done if this fails.
        let _ = fs::remove_file(&temporary);
        unfinished.retain(|path| *path != temporary);
    }
}

/// Makes files appear together: all are on the disk before the first gets its name, so that a full disk or a missing
/// folder leaves the old files as they were. Only a failure of the renaming itself can leave a part of them.
///
/// # Errors
/// What the operating system says; the first file that it concerns is named.
pub fn commit(outputs: impl IntoIterator<Item = Output>) -> Result<()> {
    let mut outputs: Vec<Output> = outputs.into_iter().collect();
    for output in &mut outputs {
        output.file.flush().map_err(|e| output.error(e))?;
        if output.temporary.is_some() {
            output.file.get_ref().sync_all().map_err(|e| output.error(e))?;
        }
    }
    let mut unfinished = unfinished();
    for output in &mut outputs {
        let Some(temporary) = &output.temporary else { continue };
        fs::rename(temporary, &output.destination).map_err(|e| FormatError::io(&output.destination, "write", e))?;
        unfinished.retain(|path| path != temporary);
        output.temporary = None;
    }
    drop(unfinished);
    for output in &outputs {
        // Makes the names durable. Not every file system can, and the files are complete either way.
        if let Some(Ok(folder)) = output.destination.parent().map(File::open) {
            let _ = folder.sync_all();
        }
    }
    Ok(())
}

/// Writes one file that appears whole or not at all.
///
/// # Errors
/// What `write` or the operating system says, naming the file.
pub fn write_atomically(path: impl AsRef<Path>, write: impl FnOnce(&mut Output) -> io::Result<()>) -> Result<()> {
    let mut output = Output::create(path)?;
    write(&mut output).map_err(|e| output.error(e))?;
    commit([output])
}

/// Removes the files under way. For a program that is about to end without dropping them, as on Ctrl-C: no file appears
/// after this, since the lock is kept until the process is gone.
pub fn remove_unfinished() {
    let unfinished = unfinished();
    for path in unfinished.iter() {
        let _ = fs::remove_file(path);
    }
    std::mem::forget(unfinished);
}

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn appears_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::write(&path, "old").unwrap();
        let mut output = Output::create(&path).unwrap();
        output.write_all(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        commit([output]).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["x"]);
    }

    #[test]
    fn failure_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let full = |w: &mut Output| {
            w.write_all(&[7; 100])?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        };
        let error = write_atomically(&path, full).unwrap_err().to_string();
        assert!(error.contains("x: cannot write"), "{error}");
        assert_eq!(names(folder.path()), [""; 0]);
        fs::write(&path, "old").unwrap();
        write_atomically(&path, full).unwrap_err();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["x"]);
    }

    #[test]
    fn several_appear_together_or_not() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let missing = Output::create(at("missing/proof")).unwrap_err().to_string();
        assert!(missing.contains("missing/proof: cannot create a file in its folder"), "{missing}");
        let is_folder = Output::create(folder.path()).unwrap_err().to_string();
        assert!(is_folder.contains("this is a folder"), "{is_folder}");
        let first = Output::create(at("proof")).unwrap();
        let second = Output::create(at("public")).unwrap();
        drop((first, second));
        assert_eq!(names(folder.path()), [""; 0]);
        commit([Output::create(at("proof")).unwrap(), Output::create(at("public")).unwrap()]).unwrap();
        assert_eq!(names(folder.path()), ["proof", "public"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_and_devices_stay_what_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write_atomically(&link, |w| w.write_all(b"new")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
        write_atomically("/dev/null", |w| w.write_all(b"new")).unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        let full = write_atomically("/dev/full", |w| w.write_all(b"new")).unwrap_err().to_string();
        assert!(full.contains("/dev/full: cannot write"), "{full}");
    }
}
