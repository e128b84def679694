//! A key as a file: what it is, without reading all of it.

use super::coefs::{Coefs, ENTRY};
use super::{contributions, header_of, read_header, Contributions, PointSections};
use crate::container::Heads;
use crate::error::{InFile, Result};
use crate::file::{FileBytes, RegularFile};
use crate::kind::FileKind;
use rayon::prelude::*;
use std::path::Path;
use tandem_ops::{with_curve, Curve, CurveId};

/// Entries that one task counts.
const TASK_ENTRIES: u64 = 1 << 16;

/// A file that holds a Groth16 proving key by its header: all sections have the lengths that it says. Their content has not been
/// looked at ([`super::Zkey::parse`]).
#[derive(Debug)]
pub struct ZkeyFile {
    file: RegularFile,
    /// The curve.
    pub curve: CurveId,
    /// Values of a witness, the leading 1 included.
    pub n_vars: u32,
    /// Public values, without the leading 1.
    pub n_public: u32,
    /// Size of the domain.
    pub domain_size: u32,
    /// Who took part in the key's ceremony; `None` where the file does not say.
    pub contributions: Option<Contributions>,
    /// Where the entries of the matrices begin, and how many there are.
    entries: (u64, u64),
}

impl ZkeyFile {
    /// Looks at a file.
    ///
    /// # Errors
    /// The file cannot be read, or is no Groth16 key for a supported curve; a section has another length than the header says.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = RegularFile::open(path)?;
        let heads = Heads::read(&file, FileKind::Zkey).in_file(path)?;
        let curve = header_of(&heads.container()).in_file(path)?.0;
        with_curve!(curve, C => Self::look::<C>(file, &heads)).in_file(path)
    }

    fn look<C: Curve>(file: RegularFile, heads: &Heads) -> Result<Self> {
        let container = heads.container();
        let (curve, mut section) = header_of(&container)?;
        let header = read_header::<C>(&mut section)?;
        PointSections::of(&container, &header)?;
        let mut coefs = container.section(4)?;
        let n_coefs = Coefs::count(&mut coefs)?;
        Ok(Self {
            file,
            curve,
            n_vars: header.n_vars,
            n_public: header.n_public,
            domain_size: header.domain_size,
            contributions: contributions::<C>(&container)?,
            entries: (coefs.offset() as u64, n_coefs.into()),
        })
    }

    /// The file itself.
    pub fn file(&self) -> &RegularFile {
        &self.file
    }

    /// The file itself, to be read in pieces ([`super::ZkeyOutline`]).
    pub fn into_file(self) -> RegularFile {
        self.file
    }

    /// Reads all of it, for [`super::Zkey::parse`].
    ///
    /// # Errors
    /// As for [`RegularFile::read`].
    pub fn read(&self) -> Result<FileBytes> {
        self.file.read()
    }

    /// Counts the entries of A and of B. Reads them, but keeps none.
    ///
    /// # Errors
    /// The file cannot be read, or an entry is of neither.
    pub fn count_entries(&self) -> Result<[u64; 2]> {
        let (start, count) = self.entries;
        let count_part = |buffer: &mut Vec<u8>, task: u64| {
            let first = task * TASK_ENTRIES;
            buffer.resize((count - first).min(TASK_ENTRIES) as usize * ENTRY, 0);
            self.file.read_at(buffer, start + first * ENTRY as u64)?;
            Coefs::count_by_matrix(buffer, start, first)
        };
        let tasks = (0..count.div_ceil(TASK_ENTRIES)).into_par_iter();
        let counts = tasks.map_init(Vec::new, count_part);
        counts.try_reduce(|| [0; 2], |x, y| Ok([x[0] + y[0], x[1] + y[1]])).in_file(self.file.path())
    }
}
