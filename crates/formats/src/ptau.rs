//! The head of a powers of tau file: enough to say what it is.
//!
//! ```text
//! 1 header         u32 n8 | p | u32 power | u32 power of the whole ceremony
//! 2 tau G1         2^(power + 1) - 1 G1           3 tau G2   2^power G2
//! 4 alpha tau G1   5 beta tau G1   2^power G1     6 beta G2  1 G2      7 contributions  u32 count | ...
//! 12 to 15         Lagrange bases, where the file is prepared for phase 2
//! ```

use crate::container::{Container, Heads};
use crate::error::{InFile, Result};
use crate::file::RegularFile;
use crate::kind::FileKind;
use crate::{limits, modulus};
use std::path::Path;
use tandem_ops::CurveId;

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
