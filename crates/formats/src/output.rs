//! Output files that appear whole or not at all.

use crate::error::{FormatError, Result};
use crate::part::{self, Part};
use crate::place::{self, Place};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

pub use crate::part::{abandon, remove_unfinished};

/// Bytes gathered before each write. What comes in larger pieces is written as it is, without a copy.
const BUFFER: usize = 1 << 16;
/// Permissions of new files, before the umask takes some away, and of those that only their owner may read.
const USUAL: u32 = 0o666;
const SECRET: u32 = 0o600;

/// A file that is being written beside the place where it will appear. Dropped before [`commit`], it leaves nothing.
#[derive(Debug)]
pub struct Output {
    /// As the user named it.
    path: PathBuf,
    /// With links followed.
    destination: PathBuf,
    /// `None` once it has its name, and for a destination that is no regular file.
    part: Option<Part>,
    /// Those of the file that it replaces.
    permissions: Option<Permissions>,
    file: BufWriter<File>,
    written: u64,
}

impl Output {
    /// Begins a file. A destination that is no regular file, and one that is open already, such as `/dev/stdout`, is written
    /// directly: nothing that a file has is lost by it. A link stays, and the file that it names is made or replaced.
    ///
    /// # Errors
    /// The folder is missing, or cannot be written to; a descriptor is not open for writing.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        Self::begin(path.as_ref(), USUAL)
    }

    /// [`Output::create`] for what others must not read: a new file is its owner's alone from the beginning. One that is replaced keeps its
    /// permissions.
    ///
    /// # Errors
    /// As for [`Output::create`].
    pub fn create_secret(path: impl AsRef<Path>) -> Result<Self> {
        Self::begin(path.as_ref(), SECRET)
    }

    fn begin(path: &Path, mode: u32) -> Result<Self> {
        let fail = |doing: &str, e| FormatError::io(path, doing, e);
        let no_name = || io::Error::new(io::ErrorKind::InvalidInput, "expected the name of a file");
        if path.file_name().is_none() && !path.is_dir() {
            return Err(fail("write", no_name()));
        }
        let direct = |destination: &Path, file| Self {
            path: path.into(),
            destination: destination.into(),
            part: None,
            permissions: None,
            file: BufWriter::with_capacity(BUFFER, file),
            written: 0,
        };
        let destination = match Place::of(path).map_err(|e| fail("create a file in its folder", e))? {
            Place::Open(number) => {
                let file = place::open_to_write(number).map_err(|e| fail("write", e))?;
                return Ok(direct(path, file));
            }
            Place::OpenElsewhere(other) => {
                let file = OpenOptions::new().append(true).open(&other).map_err(|e| fail("write", e))?;
                return Ok(direct(&other, file));
            }
            Place::Name(destination) => destination,
        };
        let old = fs::symlink_metadata(&destination).ok();
        match &old {
            Some(old) if old.is_dir() => return Err(fail("write", place::is_folder())),
            Some(old) if !old.is_file() => {
                let file = OpenOptions::new().write(true).open(&destination).map_err(|e| fail("write", e))?;
                return Ok(direct(&destination, file));
            }
            _ => {}
        }
        // What replaces a file that was closed to others is never open to them.
        let mode = if old.is_some() { SECRET } else { mode };
        let (part, file) = Part::create(&destination, mode).map_err(|e| fail("create a file in its folder", e))?;
        Ok(Self { part: Some(part), permissions: old.map(|old| old.permissions()), ..direct(&destination, file) })
    }

    /// The file, as the user named it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes written so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// An error that names this file.
    pub fn error(&self, error: io::Error) -> FormatError {
        FormatError::io(&self.path, "write", error)
    }

    /// Brings everything to the disk, and gives the file its permissions.
    fn finish(&mut self) -> io::Result<()> {
        self.file.flush()?;
        if self.part.is_some() {
            self.file.get_ref().sync_all()?;
        }
        if let Some(permissions) = self.permissions.take() {
            // Where they cannot be set, the file stays its owner's alone.
            let _ = self.file.get_ref().set_permissions(permissions);
        }
        Ok(())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.written += count as u64;
        Ok(count)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
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
        output.finish().map_err(|e| output.error(e))?;
    }
    let parts = outputs.iter_mut().map(|output| (&mut output.part, output.destination.as_path()));
    part::rename(parts).map_err(|(path, e)| FormatError::io(&path, "write", e))?;
    for output in &outputs {
        // Makes the names durable. Not every file system can, and the files are complete either way.
        if let Some(Ok(folder)) = output.destination.parent().map(File::open) {
            let _ = folder.sync_all();
        }
    }
    Ok(())
}

/// Opens a file to which whole lines are appended; makes it where there is none. What is open already is written as it is.
///
/// # Errors
/// What the operating system says, naming the file.
pub fn append(path: impl AsRef<Path>) -> Result<File> {
    let path = path.as_ref();
    let opened = Place::of(path).and_then(|place| match place {
        Place::Open(number) => place::open_to_write(number),
        Place::Name(file) | Place::OpenElsewhere(file) => OpenOptions::new().create(true).append(true).open(file),
    });
    opened.map_err(|e| FormatError::io(path, "append", e))
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
        assert_eq!(output.written(), 3);
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

    /// The permissions of what is in a folder, by name; those of hidden parts under "part".
    fn modes(folder: &Path) -> Vec<(String, u32)> {
        use std::os::unix::fs::PermissionsExt;
        let name = |name: String| if name.ends_with(".part") { "part".into() } else { name };
        let of = |name_: &String| fs::metadata(folder.join(name_)).unwrap().permissions().mode() & 0o777;
        names(folder).iter().map(|n| (name(n.clone()), of(n))).collect()
    }

    #[test]
    fn permissions_are_never_wider_than_in_the_end() {
        use std::os::unix::fs::PermissionsExt;
        let set = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        let expected = |list: &[(&str, u32)]| list.iter().map(|(n, m)| (n.to_string(), *m)).collect::<Vec<_>>();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        // What the umask leaves of the usual ones.
        fs::write(&path, "").unwrap();
        let usual = modes(folder.path())[0].1;
        fs::remove_file(&path).unwrap();
        for (secret, mode) in [(false, usual), (true, 0o600)] {
            let begin = if secret { Output::create_secret } else { Output::create };
            let output = begin(&path).unwrap();
            assert_eq!(modes(folder.path()), expected(&[("part", mode)]));
            commit([output]).unwrap();
            assert_eq!(modes(folder.path()), expected(&[("x", mode)]));
            for old in [0o400, 0o600, 0o640, 0o755] {
                set(&path, old);
                let output = begin(&path).unwrap();
                assert_eq!(modes(folder.path()), expected(&[("part", 0o600), ("x", old)]));
                commit([output]).unwrap();
                assert_eq!(modes(folder.path()), expected(&[("x", old)]));
            }
            fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn none_gets_its_name_before_all_are_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("proof");
        fs::write(&path, "old").unwrap();
        let mut outputs = [Output::create(&path).unwrap(), Output::create("/dev/full").unwrap()];
        for output in &mut outputs {
            output.write_all(b"new").unwrap();
        }
        let full = commit(outputs).unwrap_err().to_string();
        assert!(full.contains("/dev/full: cannot write"), "{full}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["proof"]);
    }

    #[test]
    fn a_name_that_cannot_be_given_leaves_no_part() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let outputs = ["a", "b", "c"].map(|name| Output::create(at(name)).unwrap());
        fs::create_dir(at("b")).unwrap();
        let error = commit(outputs).unwrap_err().to_string();
        assert!(error.contains("b: cannot write"), "{error}");
        assert_eq!(names(folder.path()), ["a", "b"]);
    }

    #[test]
    fn what_is_open_is_written_where_its_last_writer_stopped() {
        use std::os::fd::AsRawFd;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = File::create(&path).unwrap();
        log.write_all(b"a").unwrap();
        let name = format!("/dev/fd/{}", log.as_raw_fd());
        write_atomically(&name, |w| w.write_all(b"b")).unwrap();
        log.write_all(b"c").unwrap();
        append(&name).unwrap().write_all(b"d").unwrap();
        log.write_all(b"e").unwrap();
        append(&path).unwrap().write_all(b"f").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"abcdef");
        assert_eq!(names(folder.path()), ["log"]);
        append(folder.path().join("new")).unwrap().write_all(b"f").unwrap();
        assert_eq!(names(folder.path()), ["log", "new"]);
    }

    #[test]
    fn a_link_to_what_is_yet_to_be_made_stays() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::os::unix::fs::symlink("new", at("link")).unwrap();
        write_atomically(at("link"), |w| w.write_all(b"new")).unwrap();
        assert!(at("link").is_symlink() && !at("new").is_symlink());
        assert_eq!(fs::read(at("new")).unwrap(), b"new");
        std::os::unix::fs::symlink("none/new", at("lost")).unwrap();
        let error = Output::create(at("lost")).unwrap_err().to_string();
        assert!(error.contains("lost: cannot create a file in its folder"), "{error}");
        assert_eq!(names(folder.path()), ["link", "lost", "new"]);
    }

    #[test]
    fn names_may_be_as_long_as_they_get() {
        let folder = tempfile::tempdir().unwrap();
        let name = "n".repeat(255);
        write_atomically(folder.path().join(&name), |w| w.write_all(b"new")).unwrap();
        assert_eq!(names(folder.path()), [name]);
    }
}
