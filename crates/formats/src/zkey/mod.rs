//! Groth16 proving keys as snarkjs writes them.
//!
//! ```text
//! 1 protocol       u32: 1 = groth16, 2 = plonk, 10 = fflonk
//! 2 header         u32 n8q | q | u32 n8r | r | u32 n_vars | u32 n_public | u32 domain_size
//!                  | alpha_1 | beta_1 | beta_2 | gamma_2 | delta_1 | delta_2
//! 3 IC             (n_public + 1) G1
//! 4 coefficients   u32 count | count x { u32 matrix | u32 constraint | u32 signal | value * R^2 }
//! 5 A  6 B1  7 B2  n_vars G1, G1, G2
//! 8 C              (n_vars - n_public - 1) G1
//! 9 H              domain_size G1
//! 10 contributions 64 bytes of circuit hash | u32 count | contributions (not in keys made without snarkjs)
//! ```
//!
//! Points are affine in Montgomery form ([`tandem_ops::Point`]).

mod coefs;
mod contributions;
mod file;
mod outline;
mod write;

pub use coefs::{Coef, Coefs, Matrices};
pub use contributions::{distrust, Contribution, ContributionKind, Contributions};
pub use file::ZkeyFile;
pub use outline::ZkeyOutline;
pub(crate) use outline::{check_section, range};
pub use write::{ZkeySection, ZkeyWriter};

use crate::container::{Container, Heads, Reader, START_BYTES};
use crate::error::{FormatError, InFile, Place, Result};
use crate::file::RegularFile;
use crate::kind::{FileKind, OtherSystem};
use crate::{limits, modulus};
use rayon::prelude::*;
use std::path::Path;
use tandem_ops::{Curve, CurveId, Group, Unaligned, Wire};

/// A point of G1 of a curve, on the wire.
pub type G1Point<C> = <<C as Curve>::G1 as Group>::Point;
/// A point of G2 of a curve, on the wire.
pub type G2Point<C> = <<C as Curve>::G2 as Group>::Point;

const GROTH16: u32 = 1;
const PLONK: u32 = 2;
const FFLONK: u32 = 10;

/// What the header of a key says: the sizes, and the points that a proof needs once.
#[derive(Debug, Clone, Copy)]
pub struct ZkeyHeader<C: Curve> {
    /// Values of a witness, the leading 1 included.
    pub n_vars: u32,
    /// Public values, outputs before inputs, without the leading 1.
    pub n_public: u32,
    /// Size of the domain, a power of two within the field's 2-adicity.
    pub domain_size: u32,
    /// alpha in G1.
    pub alpha_1: G1Point<C>,
    /// beta in G1.
    pub beta_1: G1Point<C>,
    /// beta in G2.
    pub beta_2: G2Point<C>,
    /// gamma in G2.
    pub gamma_2: G2Point<C>,
    /// delta in G1.
    pub delta_1: G1Point<C>,
    /// delta in G2.
    pub delta_2: G2Point<C>,
}

/// A Groth16 proving key as a view of its file.
///
/// All lengths, counts and moduli have been checked, and all coordinates are below the modulus. Whether the points lie
/// on the curve has not been checked: that takes curve arithmetic. The coefficients are checked by
/// [`Coefs::matrices`].
#[derive(Clone)]
pub struct Zkey<'a, C: Curve> {
    /// Sizes and single points.
    pub header: ZkeyHeader<C>,
    /// Bases of the public values, `n_public + 1` of them.
    pub ic: Unaligned<'a, G1Point<C>>,
    /// Entries of the matrices A and B.
    pub coefs: Coefs<'a>,
    /// Bases of the witness for A.
    pub a: Unaligned<'a, G1Point<C>>,
    /// Bases of the witness for B in G1.
    pub b1: Unaligned<'a, G1Point<C>>,
    /// Bases of the witness for B in G2.
    pub b2: Unaligned<'a, G2Point<C>>,
    /// Bases of the private values, called L in the paper: for values `n_public + 1..n_vars`.
    pub c: Unaligned<'a, G1Point<C>>,
    /// Bases of the quotient's values on the odd coset, `domain_size` of them.
    pub h: Unaligned<'a, G1Point<C>>,
    /// Who took part in the key's ceremony; `None` where the file does not say.
    pub contributions: Option<Contributions>,
}

impl<C: Curve> std::fmt::Debug for Zkey<'_, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Zkey").field("header", &self.header).field("coefs", &self.coefs.len()).finish_non_exhaustive()
    }
}

/// The curve of a Groth16 proving key.
///
/// # Errors
/// The file is no Groth16 zkey, or for another curve than those supported.
pub fn curve(bytes: &[u8]) -> Result<CurveId> {
    header_of(&Container::parse(bytes, FileKind::Zkey)?).map(|(curve, _)| curve)
}

/// A proof system that keys are read of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Groth16.
    Groth16,
    /// PLONK.
    Plonk,
    /// FFLONK.
    Fflonk,
}

impl std::fmt::Display for Protocol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Protocol::Groth16 => "Groth16",
            Protocol::Plonk => "PLONK",
            Protocol::Fflonk => "FFLONK",
        })
    }
}

impl Protocol {
    /// The number in a key's first section.
    pub(crate) fn number(self) -> u32 {
        match self {
            Protocol::Groth16 => GROTH16,
            Protocol::Plonk => PLONK,
            Protocol::Fflonk => FFLONK,
        }
    }

    /// What a key's file is.
    pub fn kind(self) -> FileKind {
        match self {
            Protocol::Groth16 => FileKind::Zkey,
            Protocol::Plonk => FileKind::ZkeyOf(OtherSystem::Plonk),
            Protocol::Fflonk => FileKind::ZkeyOf(OtherSystem::Fflonk),
        }
    }

    /// The proof system that a key's bytes are for.
    ///
    /// # Errors
    /// The file is no zkey, or for another system.
    pub fn of(bytes: &[u8]) -> Result<Self> {
        Self::of_container(&Container::parse(bytes, of_any(bytes))?)
    }

    /// The protocol of a file, of which no more than the beginnings of its sections are read.
    ///
    /// # Errors
    /// As for [`Protocol::of`]; the file cannot be read.
    pub fn of_file(path: impl AsRef<Path>) -> Result<Self> {
        let file = RegularFile::open(&path)?;
        let mut start = vec![0; usize::try_from(file.len()).map_or(limits::HEAD_BYTES, |n| n.min(limits::HEAD_BYTES))];
        let heads = file.read_at(&mut start, 0).and_then(|()| Heads::starts(&file, of_any(&start)));
        heads.and_then(|heads| Self::of_container(&heads.container())).in_file(file.path())
    }

    fn of_container(file: &Container<'_>) -> Result<Self> {
        let mut section = file.section(1)?;
        match section.u32("protocol")? {
            GROTH16 => Ok(Protocol::Groth16),
            PLONK => Ok(Protocol::Plonk),
            FFLONK => Ok(Protocol::Fflonk),
            other => {
                let problem = format!("expected a Groth16 key (protocol 1), a PLONK key (2) or an FFLONK key (10), found protocol {other}");
                Err(section.error_before(4, problem).advise("make the key with tandem setup or snarkjs"))
            }
        }
    }
}

/// A zkey of whichever system its first bytes say, whose sections messages name. Where the section of the protocol does not come first, a
/// file that begins with section 3 and has as many sections as PLONK's is taken for one: so snarkjs writes them, with the protocol at the end,
/// which may be cut off.
fn of_any(start: &[u8]) -> FileKind {
    let word = |at: usize| start.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
    match FileKind::of(start) {
        Some(kind @ FileKind::ZkeyOf(_)) => kind,
        // The number of sections, and that of the first one.
        Some(FileKind::Zkey)
            if (word(START_BYTES - 4), word(START_BYTES)) == (Some(crate::plonk::write::SECTIONS), Some(3)) =>
        {
            Protocol::Plonk.kind()
        }
        _ => FileKind::Zkey,
    }
}

/// The curve, and the header's bytes behind the moduli.
fn header_of<'a>(file: &Container<'a>) -> Result<(CurveId, Reader<'a>)> {
    header_for(file, Protocol::Groth16)
}

/// The curve of a key for `expected`, and a reader that stands behind the curve in its header.
pub(crate) fn header_for<'a>(file: &Container<'a>, expected: Protocol) -> Result<(CurveId, Reader<'a>)> {
    let found = Protocol::of_container(file)?;
    if found != expected {
        return Err(FileKind::refuse(Some(found.kind()), expected.kind().describe()));
    }
    let mut section = file.section(1)?;
    section.u32("protocol")?;
    section.end()?;
    let mut section = file.section(2)?;
    let curve = section.modulus("base field modulus", modulus::curve_of_base)?;
    let scalar = section.modulus("scalar field modulus", modulus::curve_of_scalar)?;
    if scalar != curve {
        let problem = format!("expected the scalar field modulus of {curve}, found that of {scalar}");
        return Err(section.error_before(32, problem));
    }
    Ok((curve, section))
}

impl<'a, C: Curve> Zkey<'a, C> {
    /// Reads a key; checks it as the type's description says, large sections in parallel.
    ///
    /// # Errors
    /// The first thing found that is not as the format says.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let file = Container::parse(bytes, FileKind::Zkey)?;
        let (curve, mut section) = header_of(&file)?;
        if curve != C::ID {
            let problem = format!("expected a key for {}, found one for {curve}", C::ID);
            return Err(FormatError::whole(problem, Some("use files made for one curve")));
        }
        let header = read_header::<C>(&mut section)?;
        let sections = PointSections::of(&file, &header)?;
        let coefs = Coefs::read::<C>(file.section(4)?, &header)?;
        let contributions = contributions::<C>(&file)?;
        Ok(Self {
            header,
            ic: points::<C, _>(sections.ic)?,
            coefs,
            a: points::<C, _>(sections.a)?,
            b1: points::<C, _>(sections.b1)?,
            b2: points::<C, _>(sections.b2)?,
            c: points::<C, _>(sections.c)?,
            h: points::<C, _>(sections.h)?,
            contributions,
        })
    }
}

/// The sections of points, of the lengths that the header says.
struct PointSections<'a> {
    ic: Reader<'a>,
    a: Reader<'a>,
    b1: Reader<'a>,
    b2: Reader<'a>,
    c: Reader<'a>,
    h: Reader<'a>,
}

impl<'a> PointSections<'a> {
    fn of<C: Curve>(file: &Container<'a>, header: &ZkeyHeader<C>) -> Result<Self> {
        let section = |id, count: u32, size: usize| {
            let section = file.section(id)?;
            let expected = u64::from(count).saturating_mul(size as u64);
            if section.rest() as u64 != expected {
                let problem = format!("expected {count} points of {size} bytes, found {} bytes", section.rest());
                return Err(section.error(problem));
            }
            Ok(section)
        };
        // There are fewer public values than values.
        let (vars, public) = (header.n_vars, header.n_public);
        let (g1, g2) = (size_of::<G1Point<C>>(), size_of::<G2Point<C>>());
        Ok(Self {
            ic: section(3, public + 1, g1)?,
            a: section(5, vars, g1)?,
            b1: section(6, vars, g1)?,
            b2: section(7, vars, g2)?,
            c: section(8, vars - public - 1, g1)?,
            h: section(9, header.domain_size, g1)?,
        })
    }
}

/// Who took part in the key's ceremony, where the file says it.
fn contributions<C: Curve>(file: &Container<'_>) -> Result<Option<Contributions>> {
    file.has(10).then(|| Contributions::read::<C>(file.section(10)?)).transpose()
}

fn read_header<C: Curve>(section: &mut Reader<'_>) -> Result<ZkeyHeader<C>> {
    let n_vars = section.u32("number of values")?;
    let n_public = section.u32("number of public values")?;
    if n_public >= n_vars {
        let problem = format!("expected fewer public values than the {n_vars} values of a witness, found {n_public}");
        return Err(section.error_before(4, problem));
    }
    let domain_size = section.u32("domain size")?;
    if !domain_size.is_power_of_two() || domain_size < limits::DOMAIN_MIN {
        let problem = format!("expected a domain size that is a power of two from 2 on, found {domain_size}");
        return Err(section.error_before(4, problem));
    }
    let log = domain_size.trailing_zeros();
    if log > limits::two_adicity(C::ID) {
        let max = limits::two_adicity(C::ID);
        let problem = format!("expected a domain of at most 2^{max}, the largest of {}, found 2^{log}", C::ID);
        return Err(section.error_before(4, problem));
    }
    let header = ZkeyHeader {
        n_vars,
        n_public,
        domain_size,
        alpha_1: point::<C, _>(section, "alpha_1")?,
        beta_1: point::<C, _>(section, "beta_1")?,
        beta_2: point::<C, _>(section, "beta_2")?,
        gamma_2: point::<C, _>(section, "gamma_2")?,
        delta_1: point::<C, _>(section, "delta_1")?,
        delta_2: point::<C, _>(section, "delta_2")?,
    };
    section.end()?;
    Ok(header)
}

/// The next point, with coordinates below the modulus.
pub(crate) fn point<C: Curve, P: Wire>(section: &mut Reader<'_>, name: &str) -> Result<P> {
    let bytes = section.take(size_of::<P>(), name)?;
    match coordinate_not_below::<C>(bytes) {
        Some(_) => Err(section.error_before(size_of::<P>(), format!("{name}: {NOT_BELOW}"))),
        None => Ok(bytemuck::pod_read_unaligned(bytes)),
    }
}

const NOT_BELOW: &str = "expected coordinates below the base field modulus, found a larger one";

/// Index of the first coordinate that is not below the modulus.
pub fn coordinate_not_below<C: Curve>(bytes: &[u8]) -> Option<usize> {
    let p = modulus::base(C::ID);
    match p.len() {
        4 => modulus::first_not_below::<4>(bytes, p),
        _ => modulus::first_not_below::<6>(bytes, p),
    }
}

/// A section as an array of points, with coordinates below the modulus.
pub(crate) fn points<C: Curve, P: Wire>(mut section: Reader<'_>) -> Result<Unaligned<'_, P>> {
    /// Bytes that one task checks: large enough to be worth a task, small enough to share the work out.
    const TASK_BYTES: usize = 1 << 20;
    let start = section.place();
    let size = size_of::<P>();
    let bytes = section.take(section.rest(), "points")?;
    let per_task = TASK_BYTES / size;
    let bad = bytes.par_chunks(per_task * size).enumerate().find_map_first(|(task, part)| {
        coordinate_not_below::<C>(part).map(|i| task * per_task + i * modulus::base(C::ID).len() * 8 / size)
    });
    if let Some(index) = bad {
        let offset = start.offset.map(|o| o + (index * size) as u64);
        return Err(FormatError::at(Place { index: Some(("point", index as u64)), offset, ..start }, NOT_BELOW));
    }
    Unaligned::new(bytes).ok_or_else(|| section.error("expected whole points"))
}
