//! What a name on the command line stands for: a file, or something that is open already.

use crate::system;
use nix::fcntl::{fcntl, FcntlArg, OFlag};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Links that are followed, as on Linux.
const LINKS_MAX: usize = 40;

/// What a path names, links followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A name in a folder that exists, both without links; there may be nothing of this name yet.
    Name(PathBuf),
    /// An open file of this process, by its number, as `/dev/stdout` and `/dev/fd/3` are.
    Open(u32),
    /// An open file of another process.
    OpenElsewhere(PathBuf),
}

impl Place {
    /// Follows links one by one, also the last one, whose file may be yet to be made. What is open already is told from the file
    /// that it is redirected to.
    ///
    /// # Errors
    /// The folder is missing; links lead round in a circle.
    pub fn of(path: &Path) -> io::Result<Self> {
        // These stand also where the system has no /proc.
        let standard = ["/dev/stdin", "/dev/stdout", "/dev/stderr"];
        if let Some(number) = (0..).zip(standard).find_map(|(number, name)| (path == Path::new(name)).then_some(number))
        {
            return Ok(Place::Open(number));
        }
        let mut path = path.to_path_buf();
        for _ in 0..LINKS_MAX {
            let Some(name) = path.file_name() else {
                return Ok(Place::Name(path.canonicalize()?));
            };
            let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let folder = folder.canonicalize()?;
            if let (true, Some(number)) = (holds_open_files(&folder), name.to_str().and_then(|n| n.parse().ok())) {
                let is_own = fs::canonicalize("/proc/self").is_ok_and(|own| folder.starts_with(own));
                return Ok(if is_own { Place::Open(number) } else { Place::OpenElsewhere(folder.join(name)) });
            }
            let whole = folder.join(name);
            match whole.read_link() {
                Ok(to) => path = folder.join(to),
                Err(_) => return Ok(Place::Name(whole)),
            }
        }
        Err(io::Error::from_raw_os_error(nix::libc::ELOOP))
    }
}

/// Whether this is `/proc/N/fd` or `/proc/N/task/M/fd`.
fn holds_open_files(folder: &Path) -> bool {
    folder.starts_with("/proc") && folder.ends_with("fd")
}

/// Opens what is to be read, also a pipe. What this process has open already is read on from where it is.
///
/// # Errors
/// What the operating system says; a folder.
pub fn open_to_read(path: &Path) -> io::Result<File> {
    let file = match Place::of(path)? {
        Place::Open(number) => opened(number, OFlag::O_WRONLY, "it is open for writing only")?,
        Place::Name(path) | Place::OpenElsewhere(path) => File::open(path)?,
    };
    if file.metadata()?.is_dir() {
        return Err(is_folder());
    }
    Ok(file)
}

/// An open file of this process that what is written to goes to its end, or where its last writer stopped.
pub(crate) fn open_to_write(number: u32) -> io::Result<File> {
    opened(number, OFlag::O_RDONLY, "it is open for reading only")
}

/// An open file of this process, refused where it is open in the `wrong` way only.
fn opened(number: u32, wrong: OFlag, why: &str) -> io::Result<File> {
    let file = system::duplicate(number)?;
    let flags = OFlag::from_bits_retain(fcntl(&file, FcntlArg::F_GETFL)?);
    if flags & OFlag::O_ACCMODE == wrong {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    Ok(file)
}

pub(crate) fn is_folder() -> io::Error {
    io::Error::new(io::ErrorKind::IsADirectory, "this is a folder, expected a file")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_is_open_is_told_from_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().canonicalize().unwrap().join(name);
        let file = File::create(at("log")).unwrap();
        let number = file.as_raw_fd() as u32;
        symlink(format!("/dev/fd/{number}"), at("link")).unwrap();
        symlink("/dev/stdout", at("out")).unwrap();
        symlink(at("out"), at("out2")).unwrap();
        let of = |path: &str| Place::of(Path::new(path)).unwrap();
        for path in
            ["/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/", &format!("/proc/{}/fd/", std::process::id())]
        {
            assert_eq!(of(&format!("{path}{number}")), Place::Open(number), "{path}");
        }
        assert_eq!(of(at("link").to_str().unwrap()), Place::Open(number));
        assert_eq!([of("/dev/stdin"), of("/dev/stdout"), of("/dev/stderr")], [0, 1, 2].map(Place::Open));
        assert_eq!(of(at("out2").to_str().unwrap()), Place::Open(1));
        assert_eq!(of("/proc/1/fd/1"), Place::OpenElsewhere("/proc/1/fd/1".into()));
        assert_eq!(of(at("log").to_str().unwrap()), Place::Name(at("log")));
    }

    #[test]
    fn links_are_followed_to_what_is_yet_to_be_made() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().canonicalize().unwrap().join(name);
        fs::create_dir(at("deep")).unwrap();
        symlink("deep/../deep/new", at("a")).unwrap();
        symlink("a", at("b")).unwrap();
        assert_eq!(Place::of(&at("b")).unwrap(), Place::Name(at("deep/new")));
        symlink("none/new", at("c")).unwrap();
        assert_eq!(Place::of(&at("c")).unwrap_err().kind(), io::ErrorKind::NotFound);
        symlink("circle", at("circle")).unwrap();
        assert_eq!(Place::of(&at("circle")).unwrap_err().raw_os_error(), Some(nix::libc::ELOOP));
        // A name that looks like a number is a number only among open files.
        fs::create_dir(at("fd")).unwrap();
        assert_eq!(Place::of(&at("fd/1")).unwrap(), Place::Name(at("fd/1")));
    }

    #[test]
    fn a_way_that_is_not_open_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let file = File::create(&path).unwrap();
        let name = format!("/dev/fd/{}", file.as_raw_fd());
        assert_eq!(open_to_read(Path::new(&name)).unwrap_err().to_string(), "it is open for writing only");
        let file = File::open(&path).unwrap();
        assert_eq!(open_to_write(file.as_raw_fd() as u32).unwrap_err().to_string(), "it is open for reading only");
        assert_eq!(open_to_read(folder.path()).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        assert_eq!(open_to_write(1 << 20).unwrap_err().raw_os_error(), Some(nix::libc::EBADF));
        assert_eq!(open_to_write(u32::MAX).unwrap_err().raw_os_error(), Some(nix::libc::EBADF));
    }
}
