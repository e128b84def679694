//! Files of elements of one size that must not change while they are read.

use std::fs::File;
use std::path::Path;
use tandem_console::failure::{Failure, Outcome};
use tandem_formats::RegularFile;

/// A file of elements.
pub(crate) struct Source<'a> {
    pub(crate) path: &'a Path,
    regular: RegularFile,
    /// How many.
    pub(crate) elements: usize,
}

impl<'a> Source<'a> {
    /// Opens a file of elements of `element_bytes` each.
    pub(crate) fn open(path: &'a Path, element_bytes: usize) -> Outcome<Self> {
        let regular = RegularFile::open(path)?;
        let bytes = regular.len();
        if !bytes.is_multiple_of(element_bytes as u64) {
            let problem = format!("{bytes} bytes; expected a multiple of {element_bytes}, the bytes of an element");
            return Err(Failure::file(path, problem));
        }
        let elements = usize::try_from(bytes / element_bytes as u64);
        let elements = elements.map_err(|_| Failure::file(path, "more elements than this machine can address"))?;
        Ok(Source { path, regular, elements })
    }

    /// The open file.
    pub(crate) fn file(&self) -> &File {
        self.regular.file()
    }

    /// Its length when it was opened.
    pub(crate) fn bytes(&self) -> u64 {
        self.regular.len()
    }

    /// Fails if the file is not what it was when it was opened.
    pub(crate) fn unchanged(&self) -> Outcome {
        Ok(self.regular.unchanged()?)
    }

    /// The failure of a file that changes.
    pub(crate) fn changed(&self) -> Failure {
        self.regular.changed().into()
    }
}
