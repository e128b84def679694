//! Files of elements of one size that must not change while they are read.

use crate::failure::{Failure, Outcome};
use std::fs::{File, Metadata};
use std::path::Path;

/// A file of elements.
pub(crate) struct Source<'a> {
    pub(crate) path: &'a Path,
    pub(crate) file: File,
    before: Metadata,
    /// How many.
    pub(crate) elements: usize,
}

impl<'a> Source<'a> {
    /// Opens a file of elements of `element_bytes` each.
    pub(crate) fn open(path: &'a Path, element_bytes: usize) -> Outcome<Self> {
        let fail = |doing: &str, e: std::io::Error| Failure::file(path, format!("cannot {doing}: {e}"));
        // Opening a named pipe would block, so its kind is looked at first.
        let kind = std::fs::metadata(path).map_err(|e| fail("open", e))?;
        if !kind.is_file() {
            let what = if kind.is_dir() { "a folder" } else { "not a regular file" };
            return Err(Failure::file(path, format!("expected a file, this is {what}; name a file")));
        }
        let file = File::open(path).map_err(|e| fail("open", e))?;
        let before = file.metadata().map_err(|e| fail("open", e))?;
        let bytes = before.len();
        if !bytes.is_multiple_of(element_bytes as u64) {
            let problem = format!("{bytes} bytes; expected a multiple of {element_bytes}, the bytes of an element");
            return Err(Failure::file(path, problem));
        }
        let elements = usize::try_from(bytes / element_bytes as u64);
        let elements = elements.map_err(|_| Failure::file(path, "more elements than this machine can address"))?;
        Ok(Source { path, file, before, elements })
    }

    /// Its length when it was opened.
    pub(crate) fn bytes(&self) -> u64 {
        self.before.len()
    }

    /// Fails if the file is not what it was when it was opened.
    pub(crate) fn unchanged(&self) -> Outcome {
        let after = self.file.metadata().map_err(|e| Failure::file(self.path, format!("cannot read: {e}")))?;
        if after.len() != self.before.len() || after.modified().ok() != self.before.modified().ok() {
            return Err(self.changed());
        }
        Ok(())
    }

    /// The failure of a file that changes.
    pub(crate) fn changed(&self) -> Failure {
        Failure::file(self.path, "the file changed while it was read; try again when nobody writes to it")
    }
}
