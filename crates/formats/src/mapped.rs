//! Files as bytes in memory.

use crate::error::{FormatError, Result};
use std::fs::File;
use std::path::Path;

/// A file mapped into memory, for reading.
///
/// The bytes are the file's own: a program that shortens the file while it is mapped makes this one end with SIGBUS.
/// Key files are replaced, not shortened in place, by all tools of the field. Never map a witness: a mapping cannot be
/// wiped ([`crate::Wtns::open`] reads into memory that can).
#[derive(Debug)]
pub struct MappedFile {
    map: Option<memmap2::Mmap>,
}

impl MappedFile {
    /// Maps a file.
    ///
    /// # Errors
    /// The file is missing, not readable, or no regular file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let (file, len) = open_regular(path)?;
        // An empty mapping is refused by the operating system.
        let map = if len == 0 { None } else { Some(map(&file).map_err(|e| FormatError::io(path, "map", e))?) };
        Ok(Self { map })
    }
}

/// Opens a regular file; other kinds have no length to check counts against.
pub(crate) fn open_regular(path: &Path) -> Result<(File, u64)> {
    let fail = |e| FormatError::io(path, "open", e);
    // Opening a named pipe would block, so its kind is looked at first.
    let kind = std::fs::metadata(path).map_err(fail)?;
    if !kind.is_file() {
        let what = if kind.is_dir() { "a folder" } else { "not a regular file" };
        return Err(FormatError::whole(format!("expected a file, this is {what}"), Some("name a file")).in_file(path));
    }
    let file = File::open(path).map_err(fail)?;
    let len = file.metadata().map_err(fail)?.len();
    Ok((file, len))
}

#[allow(unsafe_code)]
fn map(file: &File) -> std::io::Result<memmap2::Mmap> {
    // SAFETY: the mapping is private and read-only, and every parser of this crate copies a value before it uses it,
    // so bytes changed by another process lead to wrong values, not to broken references. Shortening the file ends
    // the process, which the type's description states.
    unsafe { memmap2::Mmap::map(file) }
}

impl std::ops::Deref for MappedFile {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }
}
