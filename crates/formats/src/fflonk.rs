//! FFLONK proving keys as snarkjs writes them. They are for BN254 alone.
//!
//! ```text
//! 1 protocol       u32: 10 = fflonk
//! 2 header         moduli and counts as of a PLONK key | k1 | k2 | w3 | w4 | w8 | wr | X_2 in G2 | C0 in G1
//! 3 additions      n_additions x { u32 signal | u32 signal | factor | factor }
//! 4 to 6           A, B, C: n_constraints x u32 signal
//! 7 to 11          QL, QR, QM, QO, QC: domain_size coefficients, then 4 domain_size values
//! 12 to 14         S1, S2, S3: coefficients and values, as of QL
//! 15               max(n_public, 1) Lagrange polynomials: coefficients and values, as of QL
//! 16               9 domain_size + 18 powers of tau in G1
//! 17               C0: 8 domain_size coefficients
//! ```
//!
//! Field elements are in Montgomery form. snarkjs writes section 1, sections 3 to 17, then 2.

use crate::container::{misuse, Container, ContainerWriter, Heads, Input, Reader};
use crate::error::{FormatError, InFile, Place, Result};
use crate::file::{FileBytes, RegularFile};
use crate::kind::{FileKind, OtherSystem};
use crate::plonk::write::begin_header;
use crate::plonk::{additions, elements, read_counts, read_scalar, section_of, signals, Addition, Counts};
use crate::zkey::{check_section, header_for, point, points, range, G1Point, G2Point, Protocol};
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;
use tandem_ops::{Bn254, CurveId, Mont, Outside, Stored, Unaligned};

const KIND: FileKind = FileKind::ZkeyOf(OtherSystem::Fflonk);

/// Rows of the domain that no gate has: a proof hides its columns there.
const MORE_ROWS: u32 = 2;

/// What the header of a key says.
#[derive(Debug, Clone, Copy)]
pub struct FflonkHeader {
    /// Signals, those of the additions included.
    pub n_vars: u32,
    /// Public signals, outputs before inputs.
    pub n_public: u32,
    /// Rows of the domain, a power of two.
    pub domain_size: u32,
    /// Signals that additions make.
    pub n_additions: u32,
    /// Gates, those of the public signals included.
    pub n_constraints: u32,
    /// What takes the domain to the cosets of the second and the third column: k1 and k2.
    pub k: [Mont; 2],
    /// Roots of unity: w3, w4, w8 and wr.
    pub roots: [Mont; 4],
    /// tau in G2.
    pub x_2: G2Point<Bn254>,
    /// The commitment to C0.
    pub c0: G1Point<Bn254>,
}

impl FflonkHeader {
    /// Values of a witness, the leading 1 included.
    pub fn witness_values(&self) -> u32 {
        // What reads a header checks it: there are fewer additions than signals.
        self.n_vars - self.n_additions
    }

    /// The header of the bytes of a key, whose sections have the lengths that it says. Their content is not looked at.
    ///
    /// # Errors
    /// They are no FFLONK key for BN254; a section has another length.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        Self::look(&Container::parse(bytes, KIND)?)
    }

    fn look(container: &Container<'_>) -> Result<Self> {
        let (curve, mut section) = header_for(container, Protocol::Fflonk)?;
        if curve != CurveId::Bn254 {
            let problem =
                format!("expected a key for {}, the only curve that FFLONK has, found {curve}", CurveId::Bn254);
            return Err(FormatError::whole(problem, Some("make the key with snarkjs or with tandem")));
        }
        let header = Self::read(&mut section)?;
        for part in FflonkSection::ALL {
            let (id, count, size, what) = part.layout(&header);
            section_of(container, id, count, size, what)?;
        }
        Ok(header)
    }

    fn read(section: &mut Reader<'_>) -> Result<Self> {
        let Counts { n_vars, n_public, domain_size, n_additions, n_constraints } =
            read_counts::<Bn254>(section, MORE_ROWS)?;
        let mut scalar = |name| read_scalar::<Bn254>(section, name);
        let k = [scalar("k1")?, scalar("k2")?];
        let roots = [scalar("w3")?, scalar("w4")?, scalar("w8")?, scalar("wr")?];
        let x_2 = point::<Bn254, _>(section, "X_2")?;
        let c0 = point::<Bn254, _>(section, "C0")?;
        section.end()?;
        Ok(Self { n_vars, n_public, domain_size, n_additions, n_constraints, k, roots, x_2, c0 })
    }
}

/// An FFLONK proving key as a view of its file.
///
/// All lengths, counts and moduli have been checked; signals are in range, additions refer to earlier signals alone, elements and
/// coordinates are below their modulus. Sections 7 to 15 have been measured, and not looked at: what a proof needs of them is in C0.
/// Whether points lie on the curve, and whether C0 and its commitment belong together, has not been checked.
#[derive(Clone)]
pub struct FflonkZkey<'a> {
    /// Sizes and single points.
    pub header: FflonkHeader,
    /// How to make the signals that the circuit does not have.
    pub additions: Unaligned<'a, Addition>,
    /// The signal in each gate's columns A, B and C.
    pub maps: [Unaligned<'a, u32>; 3],
    /// Coefficients of C0, `8 domain_size` of them.
    pub c0: Unaligned<'a, Mont>,
    /// Powers of tau, `9 domain_size + 18` of them. Of those outside memory coordinates have not been looked at.
    pub powers: Stored<'a, G1Point<Bn254>>,
}

impl std::fmt::Debug for FflonkZkey<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FflonkZkey").field("header", &self.header).finish_non_exhaustive()
    }
}

impl<'a> FflonkZkey<'a> {
    /// Reads a key; checks it as the type's description says, large sections in parallel.
    ///
    /// # Errors
    /// The first thing found that is not as the format says.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let file = Container::parse(bytes, KIND)?;
        let header = FflonkHeader::look(&file)?;
        Self::of(header, &file, points::<Bn254, _>(file.section(16)?)?.into())
    }

    /// The key whose powers are read elsewhere.
    fn of(header: FflonkHeader, file: &Container<'a>, powers: Stored<'a, G1Point<Bn254>>) -> Result<Self> {
        let map = |id| signals(file.section(id)?, header.n_vars);
        Ok(Self {
            header,
            additions: additions::<Bn254>(file.section(3)?, header.witness_values())?,
            maps: [map(4)?, map(5)?, map(6)?],
            c0: elements::<Bn254>(file.section(17)?)?,
            powers,
        })
    }
}

/// An FFLONK proving key of which only what a proof takes is read, but for the powers of tau, of which it says where they lie.
#[derive(Debug)]
pub struct FflonkOutline {
    /// Sizes and single points.
    pub header: FflonkHeader,
    /// Bytes of the powers of tau.
    pub powers: Range<usize>,
    place: Place,
    heads: Heads,
}

impl FflonkOutline {
    /// Reads the header. All sections have the lengths that it says; their content has not been looked at.
    ///
    /// # Errors
    /// The first thing found that is not as the format says; `input` cannot be read.
    pub fn read(input: &impl Input) -> Result<Self> {
        let heads = Heads::starts(input, KIND)?;
        let header = FflonkHeader::look(&heads.container())?;
        let section = heads.container().section(16)?;
        let (powers, place) = (range(&section), section.place());
        Ok(Self { header, powers, place, heads })
    }

    /// Reads additions, maps and C0 into memory: some 268 bytes a row and 72 an addition.
    ///
    /// # Errors
    /// There is not so much memory; `input` cannot be read.
    pub fn load(&mut self, input: &impl Input) -> Result<()> {
        self.heads.keep(input, |id, len| match id {
            1..=6 | 17 => std::iter::once(0..len).collect(),
            _ => Vec::new(),
        })
    }

    /// The key as [`FflonkOutline::load`] read it, checked as by [`FflonkZkey::parse`] but for the coordinates of its powers, which stay in
    /// `file`.
    ///
    /// # Errors
    /// The first thing found that is not as the format says.
    pub fn key<'a>(&'a self, file: &'a dyn Outside) -> Result<FflonkZkey<'a>> {
        let powers = Stored::outside(file, self.powers.clone())
            .ok_or_else(|| FormatError::at(self.place.clone(), "expected whole points"))?;
        FflonkZkey::of(self.header, &self.heads.container(), powers)
    }

    /// Checks that all coordinates of the powers are below the modulus, in parallel.
    ///
    /// # Errors
    /// The first point that has one that is not; `input` cannot be read.
    pub fn check_coordinates(&self, input: &impl Input) -> Result<()> {
        check_section::<Bn254, G1Point<Bn254>>(input, &self.powers, &self.place)
    }
}

/// A file that holds an FFLONK proving key by its header: all sections have the lengths that it says. Their content has not been looked at.
#[derive(Debug)]
pub struct FflonkFile {
    file: RegularFile,
    /// What the header says.
    pub header: FflonkHeader,
}

impl FflonkFile {
    /// Looks at a file.
    ///
    /// # Errors
    /// The file cannot be read, or is no FFLONK key for BN254; a section has another length than the header says.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = RegularFile::open(path)?;
        let heads = Heads::read(&file, KIND).in_file(path)?;
        let header = FflonkHeader::look(&heads.container()).in_file(path)?;
        Ok(Self { file, header })
    }

    /// The file itself, to be kept.
    pub fn into_file(self) -> RegularFile {
        self.file
    }

    /// Reads all of it, for [`FflonkZkey::parse`].
    ///
    /// # Errors
    /// As for [`RegularFile::read`].
    pub fn read(&self) -> Result<FileBytes> {
        self.file.read()
    }

    /// The file itself.
    pub fn file(&self) -> &RegularFile {
        &self.file
    }
}

/// Sections 3 to 17 of a key, in the order of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FflonkSection {
    /// 3: signals that additions make.
    Additions,
    /// 4, 5 or 6: the signals of a column, by its number 0 to 2.
    Map(usize),
    /// 7 to 11: QL, QR, QM, QO or QC, by its number 0 to 4.
    Selector(usize),
    /// 12 to 14: S1, S2 or S3, by its number 0 to 2.
    Permutation(usize),
    /// 15: Lagrange polynomials of the first rows.
    Lagrange,
    /// 16: powers of tau.
    Powers,
    /// 17: C0.
    C0,
}

impl FflonkSection {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::Additions,
        Self::Map(0),
        Self::Map(1),
        Self::Map(2),
        Self::Selector(0),
        Self::Selector(1),
        Self::Selector(2),
        Self::Selector(3),
        Self::Selector(4),
        Self::Permutation(0),
        Self::Permutation(1),
        Self::Permutation(2),
        Self::Lagrange,
        Self::Powers,
        Self::C0,
    ];

    /// Number of the section, how many things it has, their bytes, and what they are.
    fn layout(self, header: &FflonkHeader) -> (u32, u64, usize, &'static str) {
        let (gates, domain) = (u64::from(header.n_constraints), u64::from(header.domain_size));
        let elements = |id, count: u64| (id, count * domain, size_of::<Mont>(), "elements");
        match self {
            Self::Additions => (3, header.n_additions.into(), size_of::<Addition>(), "additions"),
            Self::Map(column) => (4 + column as u32, gates, 4, "signals"),
            Self::Selector(number) => elements(7 + number as u32, 5),
            Self::Permutation(number) => elements(12 + number as u32, 5),
            Self::Lagrange => elements(15, 5 * u64::from(header.n_public.max(1))),
            Self::Powers => (16, 9 * domain + 18, size_of::<G1Point<Bn254>>(), "points"),
            Self::C0 => elements(17, 8),
        }
    }
}

/// Writes an FFLONK key from front to back: section 1, sections 3 to 17, then [`FflonkWriter::finish`] writes 2. A section that gets more or less
/// than its length is an error.
#[derive(Debug)]
pub struct FflonkWriter<W> {
    out: ContainerWriter<W>,
    counts: FflonkHeader,
}

/// Sections of a key.
const SECTIONS: u32 = 17;

impl<W: Write> FflonkWriter<W> {
    /// Writes the head of the file and section 1, of a key with the counts of `counts`; the rest of that is not looked at.
    ///
    /// # Errors
    /// Writing fails.
    pub fn new(out: W, counts: FflonkHeader) -> io::Result<Self> {
        let mut out = ContainerWriter::new(out, KIND, 1, SECTIONS)?;
        out.section(1, 4)?;
        out.write(&Protocol::Fflonk.number().to_le_bytes())?;
        Ok(Self { out, counts })
    }

    /// Begins a section.
    ///
    /// # Errors
    /// The section before it is not complete; writing fails.
    pub fn section(&mut self, section: FflonkSection) -> io::Result<()> {
        if !FflonkSection::ALL.contains(&section) {
            return Err(misuse("no such column or polynomial"));
        }
        let (id, count, size, _) = section.layout(&self.counts);
        self.out.section(id, count * size as u64)
    }

    /// Writes bytes of the section begun last.
    ///
    /// # Errors
    /// More than the section holds; writing fails.
    pub fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write(bytes)
    }

    /// Writes section 2 and ends the file; gives the writer back, flushed.
    ///
    /// # Errors
    /// Sections are missing; writing fails.
    pub fn finish(mut self, header: &FflonkHeader) -> io::Result<W> {
        let FflonkHeader { n_vars, n_public, domain_size, n_additions, n_constraints, .. } = *header;
        let counts = [n_vars, n_public, domain_size, n_additions, n_constraints];
        let rest = 6 * size_of::<Mont>() + size_of::<G2Point<Bn254>>() + size_of::<G1Point<Bn254>>();
        begin_header::<Bn254, _>(&mut self.out, counts, rest)?;
        self.out.write(bytemuck::cast_slice(&header.k))?;
        self.out.write(bytemuck::cast_slice(&header.roots))?;
        self.out.write(bytemuck::bytes_of(&header.x_2))?;
        self.out.write(bytemuck::bytes_of(&header.c0))?;
        self.out.finish()
    }
}
