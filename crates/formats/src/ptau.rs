//! Powers of tau files: their head, and the points that a set-up takes.
//!
//! ```text
//! 1 header         u32 n8 | p | u32 power | u32 power of the whole ceremony
//! 2 tau G1         2^(power + 1) - 1 G1           3 tau G2   2^power G2
//! 4 alpha tau G1   5 beta tau G1   2^power G1     6 beta G2  1 G2      7 contributions  u32 count | ...
//! 12 to 15         Lagrange bases, where the file is prepared for phase 2
//! ```

mod write;

pub use write::{PtauSection, PtauWriter};

use crate::container::{Container, Heads};
use crate::error::{FormatError, InFile, Place, Result, MORE_MEMORY};
use crate::file::RegularFile;
use crate::kind::FileKind;
use crate::zkey::{coordinate_not_below, G1Point, G2Point};
use crate::{limits, modulus};
use std::path::Path;
use tandem_ops::{Curve, CurveId, Wire};

/// What a powers of tau file says of itself. Its points are not looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PtauHeader {
    /// The curve.
    pub curve: CurveId,
    /// The file serves up to 2^this constraints.
    pub power: u32,
    /// The ceremony served up to 2^this.
    pub ceremony_power: u32,
    /// Whether it has the Lagrange bases that a set-up needs.
    pub is_prepared: bool,
    /// Contributions; `None` where the file has no section of them.
    pub n_contributions: Option<u32>,
}

impl PtauHeader {
    /// Reads the header and checks that the sections of points have the lengths that it says.
    ///
    /// # Errors
    /// The first thing found that is not as the format says.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        Self::of(&Container::parse(bytes, FileKind::Ptau)?)
    }

    /// The same of a file, of which no points are read.
    ///
    /// # Errors
    /// The file cannot be read, or is not as [`PtauHeader::parse`] wants it.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let file = RegularFile::open(&path)?;
        Heads::read(&file, FileKind::Ptau).and_then(|heads| Self::of(&heads.container())).in_file(file.path())
    }

    fn of(file: &Container<'_>) -> Result<Self> {
        let mut section = file.section(1)?;
        let curve = section.modulus("base field modulus", modulus::curve_of_base)?;
        let max = limits::two_adicity(curve);
        let power = section.u32("power")?;
        if power > max {
            return Err(section.error_before(4, format!("expected a power of at most {max}, found {power}")));
        }
        let ceremony_power = section.u32("power of the ceremony")?;
        if ceremony_power > max {
            let problem = format!("expected a ceremony's power of at most {max}, found {ceremony_power}");
            return Err(section.error_before(4, problem));
        }
        section.end()?;
        let coordinate = modulus::base(curve).len() as u64 * 8;
        let (g1, g2, n) = (2 * coordinate, 4 * coordinate, 1u64 << power);
        for (id, expected) in [(2, (2 * n - 1) * g1), (3, n * g2), (4, n * g1), (5, n * g1), (6, g2)] {
            let points = file.section(id)?;
            if points.rest() as u64 != expected {
                let problem = format!("expected {expected} bytes of points for 2^{power}, found {}", points.rest());
                return Err(points.error(problem));
            }
        }
        let n_contributions = if file.has(7) { Some(file.section(7)?.u32("number of contributions")?) } else { None };
        Ok(Self { curve, power, ceremony_power, is_prepared: file.has(12), n_contributions })
    }
}

/// A powers of tau file, of which points are read as they are asked for.
#[derive(Debug)]
pub struct PtauFile {
    file: RegularFile,
    /// What the file says of itself.
    pub header: PtauHeader,
    /// Offsets of the powers in G1 and in G2.
    offsets: [u64; 2],
}

impl PtauFile {
    /// Opens a file and looks at its header.
    ///
    /// # Errors
    /// As for [`PtauHeader::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let file = RegularFile::open(&path)?;
        let look = |heads: Heads| {
            let container = heads.container();
            let header = PtauHeader::of(&container)?;
            let offset = |id| container.section(id).map(|section| section.offset() as u64);
            Ok((header, [offset(2)?, offset(3)?]))
        };
        let looked = Heads::read(&file, FileKind::Ptau).and_then(look);
        let (header, offsets) = looked.in_file(file.path())?;
        Ok(Self { file, header, offsets })
    }

    /// The first `count` powers of tau in G1, with coordinates below the modulus. Whether they are points of the group is not checked.
    ///
    /// # Errors
    /// The file has fewer, or cannot be read; a coordinate is not below the modulus.
    pub fn powers_g1<C: Curve>(&self, count: usize) -> Result<Vec<G1Point<C>>> {
        self.points::<C, _>((2, "tau G1"), self.offsets[0], (2u64 << self.header.power) - 1, count)
    }

    /// The first `count` powers of tau in G2, likewise.
    ///
    /// # Errors
    /// As for [`PtauFile::powers_g1`].
    pub fn powers_g2<C: Curve>(&self, count: usize) -> Result<Vec<G2Point<C>>> {
        self.points::<C, _>((3, "tau G2"), self.offsets[1], 1 << self.header.power, count)
    }

    fn points<C: Curve, P: Wire>(
        &self,
        section: (u32, &'static str),
        start: u64,
        has: u64,
        count: usize,
    ) -> Result<Vec<P>> {
        let place = |offset| Place { section: Some(section), offset: Some(offset), ..Place::default() };
        let problem = |offset, problem: String| FormatError::at(place(offset), problem).in_file(self.file.path());
        if self.header.curve != C::ID {
            let problem = format!("expected powers of tau for {}, found those for {}", C::ID, self.header.curve);
            return Err(FormatError::whole(problem, Some("use files made for one curve")).in_file(self.file.path()));
        }
        if count as u64 > has {
            return Err(problem(start, format!("expected {count} points or more, found {has}")));
        }
        let mut points = tandem_ops::memory::filled("read powers of tau", count, P::zeroed())
            .map_err(|e| FormatError::whole(e.to_string(), Some(MORE_MEMORY)).in_file(self.file.path()))?;
        self.file.read_at(bytemuck::cast_slice_mut(&mut points), start).in_file(self.file.path())?;
        if let Some(at) = coordinate_not_below::<C>(bytemuck::cast_slice(&points)) {
            let width = modulus::base(C::ID).len() as u64 * 8;
            let found = "expected coordinates below the base field modulus, found a larger one".to_string();
            return Err(problem(start + at as u64 * width, found));
        }
        Ok(points)
    }
}
