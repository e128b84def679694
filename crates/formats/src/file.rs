//! Files, read into memory of our own.
//!
//! No file is mapped: what was checked is what is used, whatever becomes of the file, and a file that is cut off while it is
//! read is an error and no signal. What a file is, and whether its sections have the lengths that its header says, is looked at before
//! memory is taken for all of it.

use crate::error::{FormatError, Result, MORE_MEMORY};
use nix::fcntl::OFlag;
use rayon::prelude::*;
use std::fs::{File, FileType, Metadata, OpenOptions};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use tandem_ops::memory::{self, Pages};

/// Bytes that one task reads: large enough to be worth a task, small enough to share the work out.
const TASK_BYTES: usize = 4 << 20;

/// A file that is read in pieces has no more bytes than this times those of the machine's memory: GPUs can have more of it than the host.
const MOST_MEMORIES: u64 = 2;

/// A regular file that was opened for reading.
#[derive(Debug)]
pub struct RegularFile {
    file: File,
    path: PathBuf,
    before: Metadata,
}

impl RegularFile {
    /// Opens a file; other kinds have no length to check counts against, and cannot be read twice.
    ///
    /// # Errors
    /// The file is missing, not readable, or no regular file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let fail = |e| FormatError::io(path, "open", e);
        // To open a device may have effects, so the kind is looked at before.
        expect_regular(std::fs::metadata(path).map_err(fail)?.file_type(), path)?;
        // What has become a named pipe since then is opened without waiting for its other end.
        let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
        let file = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path).map_err(fail)?;
        let before = file.metadata().map_err(fail)?;
        expect_regular(before.file_type(), path)?;
        Ok(Self { file, path: path.into(), before })
    }

    /// The name under which it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// What the system said of it when it was opened.
    pub fn metadata(&self) -> &Metadata {
        &self.before
    }

    /// Its length in bytes when it was opened.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u64 {
        self.before.len()
    }

    /// Reads all of it, in parallel.
    ///
    /// # Errors
    /// There is not enough memory; the file cannot be read, or changes meanwhile.
    pub fn read(&self) -> Result<FileBytes> {
        // Not written by us: the pages come with the bytes that are read into them.
        let len = usize::try_from(self.len()).map_err(|_| self.no_room())?;
        let mut pages = Pages::zeros(len).ok_or_else(|| self.no_room())?;
        self.read_at(&mut pages[..len], 0)?;
        self.unchanged()?;
        Ok(FileBytes { pages, len })
    }

    /// Fails where the file has more than twice as many bytes as this machine has memory, though not all of it is read into memory: one that is
    /// mostly holes would be read for ever.
    ///
    /// # Errors
    /// It has.
    pub fn expect_room(&self) -> Result<()> {
        let most = memory::host().total.saturating_mul(MOST_MEMORIES);
        if usize::try_from(self.len()).is_ok() && self.len() <= most {
            Ok(())
        } else {
            Err(self.no_room())
        }
    }

    fn no_room(&self) -> FormatError {
        let problem = format!("the file needs {} bytes of memory, more than there is", self.len());
        FormatError::whole(problem, Some(MORE_MEMORY)).in_file(&self.path)
    }

    /// Fills `bytes` with what the file has from byte `offset` on, in parallel.
    ///
    /// # Errors
    /// The file cannot be read, or has fewer bytes than it had when it was opened.
    pub fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        let read = |(task, part): (usize, &mut [u8])| {
            let at = offset + (task * TASK_BYTES) as u64;
            self.file.read_exact_at(part, at).map_err(|e| match e.kind() {
                std::io::ErrorKind::UnexpectedEof => self.changed(),
                _ => FormatError::io(&self.path, "read", e),
            })
        };
        if bytes.len() <= TASK_BYTES {
            return read((0, bytes));
        }
        bytes.par_chunks_mut(TASK_BYTES).enumerate().try_for_each(read)
    }

    /// Fails if the file is not what it was when it was opened.
    ///
    /// # Errors
    /// Its length or its time of modification is another.
    pub fn unchanged(&self) -> Result<()> {
        let after = self.file.metadata().map_err(|e| FormatError::io(&self.path, "read", e))?;
        if after.len() != self.before.len() || after.modified().ok() != self.before.modified().ok() {
            return Err(self.changed());
        }
        Ok(())
    }

    /// The error of a file that changes.
    pub fn changed(&self) -> FormatError {
        let advice = "try again when nobody writes to it";
        FormatError::whole("the file changed while it was read", Some(advice)).in_file(&self.path)
    }
}

/// The bytes of a whole file in memory.
pub struct FileBytes {
    pages: Pages,
    len: usize,
}

impl std::ops::Deref for FileBytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.pages[..self.len]
    }
}

impl std::fmt::Debug for FileBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FileBytes({} bytes)", self.len)
    }
}

fn expect_regular(kind: FileType, path: &Path) -> Result<()> {
    let (what, advice) = if kind.is_file() {
        return Ok(());
    } else if kind.is_dir() {
        ("a folder", "name a file")
    } else if kind.is_fifo() || kind.is_socket() {
        ("a pipe, not a regular file", "write what comes out of it to a file first")
    } else {
        ("a device, not a regular file", "name a file")
    };
    Err(FormatError::whole(format!("expected a file, this is {what}"), Some(advice)).in_file(path))
}

/// Opens a file of any kind that is read once from front to back, such as a named pipe; waits for a pipe's other end.
pub(crate) fn open_stream(path: &Path) -> Result<File> {
    crate::place::open_to_read(path).map_err(|e| FormatError::io(path, "open", e))
}
