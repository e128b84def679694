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

    /// Reads the header of a file, and no points.
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
    /// Sections of points that are there: number, offset and bytes.
    sections: Vec<(u32, u64, u64)>,
}

/// Sections of points, by number.
const SECTIONS: [(u32, &str); 9] = [
    (2, "tau G1"),
    (3, "tau G2"),
    (4, "alpha tau G1"),
    (5, "beta tau G1"),
    (6, "beta G2"),
    (12, "Lagrange basis in G1"),
    (13, "Lagrange basis in G2"),
    (14, "Lagrange basis times alpha"),
    (15, "Lagrange basis times beta"),
];

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
            let there = SECTIONS.into_iter().filter(|(id, _)| container.has(*id));
            let section = |(id, _)| container.section(id).map(|s| (id, s.offset() as u64, s.rest() as u64));
            Ok((header, there.map(section).collect::<Result<_>>()?))
        };
        let looked = Heads::read(&file, FileKind::Ptau).and_then(look);
        let (header, sections) = looked.in_file(file.path())?;
        Ok(Self { file, header, sections })
    }

    /// The first `count` powers of tau in G1. Of all points that a file gives, coordinates are below the modulus; whether they are points of
    /// the group is not checked.
    ///
    /// # Errors
    /// The file has fewer, is for another curve, or cannot be read; a coordinate is not below the modulus.
    pub fn powers_g1<C: Curve>(&self, count: usize) -> Result<Vec<G1Point<C>>> {
        self.points::<C, _>(2, 0, count)
    }

    /// The first `count` powers of tau in G2.
    ///
    /// # Errors
    /// Those of [`PtauFile::powers_g1`].
    pub fn powers_g2<C: Curve>(&self, count: usize) -> Result<Vec<G2Point<C>>> {
        self.points::<C, _>(3, 0, count)
    }

    /// alpha and beta in G1.
    ///
    /// # Errors
    /// Those of [`PtauFile::powers_g1`].
    pub fn alpha_beta_g1<C: Curve>(&self) -> Result<[G1Point<C>; 2]> {
        let first = |id| self.points::<C, G1Point<C>>(id, 0, 1).map(|points| points[0]);
        Ok([first(4)?, first(5)?])
    }

    /// beta in G2.
    ///
    /// # Errors
    /// Those of [`PtauFile::powers_g1`].
    pub fn beta_g2<C: Curve>(&self) -> Result<G2Point<C>> {
        Ok(self.points::<C, G2Point<C>>(6, 0, 1)?[0])
    }

    /// A Lagrange basis of `rows` rows in G1, `rows` being a power of two. That of twice as many rows as the file serves lacks the highest
    /// power of tau.
    ///
    /// # Errors
    /// The file is not prepared for phase 2; those of [`PtauFile::powers_g1`].
    pub fn lagrange_g1<C: Curve>(&self, basis: LagrangeBasis, rows: usize) -> Result<Vec<G1Point<C>>> {
        let id = match basis {
            LagrangeBasis::Powers => 12,
            LagrangeBasis::Alpha => 14,
            LagrangeBasis::Beta => 15,
        };
        // Bases of fewer rows come before.
        self.points::<C, _>(id, rows as u64 - 1, rows)
    }

    /// The Lagrange basis of `rows` rows in G2.
    ///
    /// # Errors
    /// Those of [`PtauFile::lagrange_g1`].
    pub fn lagrange_g2<C: Curve>(&self, rows: usize) -> Result<Vec<G2Point<C>>> {
        self.points::<C, _>(13, rows as u64 - 1, rows)
    }

    /// The bytes of a point behind the first `count` powers of tau in G1, whatever they are; `None` where the file ends before.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn behind_powers_g1<C: Curve>(&self, count: usize) -> Result<Option<Vec<u8>>> {
        let mut bytes = vec![0; size_of::<G1Point<C>>()];
        let Some((_, start, _)) = self.sections.iter().find(|(id, ..)| *id == 2) else { return Ok(None) };
        let at = start + count as u64 * bytes.len() as u64;
        if at + bytes.len() as u64 > self.file.len() {
            return Ok(None);
        }
        self.file.read_at(&mut bytes, at).in_file(self.file.path())?;
        Ok(Some(bytes))
    }

    /// `count` points of a section from the `from`-th on.
    fn points<C: Curve, P: Wire>(&self, id: u32, from: u64, count: usize) -> Result<Vec<P>> {
        let name = SECTIONS.iter().find(|(other, _)| *other == id).map_or("points", |(_, name)| name);
        let whole = |problem: String, remedy| FormatError::whole(problem, Some(remedy)).in_file(self.file.path());
        if self.header.curve != C::ID {
            let problem = format!("expected powers of tau for {}, found those for {}", C::ID, self.header.curve);
            return Err(whole(problem, "use files made for one curve"));
        }
        let Some(&(_, start, bytes)) = self.sections.iter().find(|(other, ..)| *other == id) else {
            let problem = format!("no {name} in section {id}: the powers of tau are not prepared for phase 2");
            return Err(whole(problem, "prepare them with npx snarkjs powersoftau prepare phase2"));
        };
        let place = |offset| Place { section: Some((id, name)), offset: Some(offset), ..Place::default() };
        let problem = |offset, problem: String| FormatError::at(place(offset), problem).in_file(self.file.path());
        let has = bytes / size_of::<P>() as u64;
        if from + count as u64 > has {
            let wanted = from + count as u64;
            return Err(problem(start, format!("expected {wanted} points or more, found {has}")));
        }
        let start = start + from * size_of::<P>() as u64;
        let mut points = tandem_ops::memory::filled("read powers of tau", count, P::zeroed())
            .map_err(|e| whole(e.to_string(), MORE_MEMORY))?;
        self.file.read_at(bytemuck::cast_slice_mut(&mut points), start).in_file(self.file.path())?;
        if let Some(at) = coordinate_not_below::<C>(bytemuck::cast_slice(&points)) {
            let width = modulus::base(C::ID).len() as u64 * 8;
            let found = "expected coordinates below the base field modulus, found a larger one".to_string();
            return Err(problem(start + at as u64 * width, found));
        }
        Ok(points)
    }
}

/// What a Lagrange basis in G1 is multiplied by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LagrangeBasis {
    /// By 1: that of the powers of tau.
    Powers,
    /// By alpha.
    Alpha,
    /// By beta.
    Beta,
}
