//! A PLONK key as a file: what it is, without reading all of it.

use super::{read_header, Sections, KIND};
use crate::container::Heads;
use crate::error::{InFile, Result};
use crate::file::{FileBytes, RegularFile};
use crate::zkey::{header_for, Protocol};
use std::path::Path;
use tandem_ops::{with_curve, Curve, CurveId};

/// A file that holds a PLONK proving key by its header: all sections have the lengths that it says. Their content has not been looked at
/// ([`super::PlonkZkey::parse`]).
#[derive(Debug)]
pub struct PlonkFile {
    file: RegularFile,
    /// The curve.
    pub curve: CurveId,
    /// Signals, those of the additions included.
    pub n_vars: u32,
    /// Public signals.
    pub n_public: u32,
    /// Rows of the domain.
    pub domain_size: u32,
    /// Signals that additions make.
    pub n_additions: u32,
    /// Gates.
    pub n_constraints: u32,
}

impl PlonkFile {
    /// Looks at a file.
    ///
    /// # Errors
    /// The file cannot be read, or is no PLONK key for a supported curve; a section has another length than the header says.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = RegularFile::open(path)?;
        let heads = Heads::read(&file, KIND).in_file(path)?;
        let curve = header_for(&heads.container(), Protocol::Plonk).in_file(path)?.0;
        with_curve!(curve, C => Self::look::<C>(file, &heads)).in_file(path)
    }

    fn look<C: Curve>(file: RegularFile, heads: &Heads) -> Result<Self> {
        let container = heads.container();
        let (curve, mut section) = header_for(&container, Protocol::Plonk)?;
        let header = read_header::<C>(&mut section)?;
        Sections::of(&container, &header)?;
        Ok(Self {
            file,
            curve,
            n_vars: header.n_vars,
            n_public: header.n_public,
            domain_size: header.domain_size,
            n_additions: header.n_additions,
            n_constraints: header.n_constraints,
        })
    }

    /// Values of a witness, the leading 1 included.
    pub fn witness_values(&self) -> u32 {
        // The header's check: there are fewer additions than signals.
        self.n_vars - self.n_additions
    }

    /// The file itself.
    pub fn file(&self) -> &RegularFile {
        &self.file
    }

    /// The file itself, to be kept.
    pub fn into_file(self) -> RegularFile {
        self.file
    }

    /// Reads all of it, for [`super::PlonkZkey::parse`].
    ///
    /// # Errors
    /// As for [`RegularFile::read`].
    pub fn read(&self) -> Result<FileBytes> {
        self.file.read()
    }
}
