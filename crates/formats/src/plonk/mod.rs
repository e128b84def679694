//! PLONK proving keys as snarkjs writes them.
//!
//! ```text
//! 1 protocol       u32: 2 = plonk
//! 2 header         u32 n8q | q | u32 n8r | r | u32 n_vars | u32 n_public | u32 domain_size | u32 n_additions | u32 n_constraints
//!                  | k1 | k2 | Qm | Ql | Qr | Qo | Qc | S1 | S2 | S3 in G1 | X_2 in G2
//! 3 additions      n_additions x { u32 signal | u32 signal | factor | factor }
//! 4 to 6           A, B, C: n_constraints x u32 signal
//! 7 to 11          Qm, Ql, Qr, Qo, Qc: domain_size coefficients, then 4 domain_size values
//! 12               S1, S2, S3 likewise
//! 13               max(n_public, 1) Lagrange polynomials likewise
//! 14               domain_size + 6 powers of tau in G1
//! ```
//!
//! Field elements are in Montgomery form; values are those on the group of 4 `domain_size`-th roots of unity. Signals from
//! `n_vars - n_additions` on are made by the additions, in order. snarkjs writes sections 3 to 14, then 1 and 2.

mod file;
mod outline;
pub(crate) mod write;

pub use file::PlonkFile;
pub use outline::PlonkOutline;
pub use write::{PlonkSection, PlonkWriter};

use crate::container::{Container, Reader};
use crate::error::{FormatError, Place, Result};
use crate::kind::{FileKind, OtherSystem};
use crate::zkey::{header_for, point, points, G1Point, G2Point, Protocol};
use crate::{limits, modulus};
use bytemuck::{Pod, Zeroable};
use rayon::prelude::*;
use tandem_ops::{Curve, CurveId, Mont, Stored, Unaligned};
use zeroize::Zeroize;

const KIND: FileKind = FileKind::ZkeyOf(OtherSystem::Plonk);

/// Names of the selectors, in the order of the file.
pub const SELECTORS: [&str; 5] = ["Qm", "Ql", "Qr", "Qo", "Qc"];

/// A signal that the circuit does not have: the first factor times the first signal plus the second times the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable, Zeroize)]
#[repr(C)]
pub struct Addition {
    /// The signals that are added.
    pub signals: [u32; 2],
    /// What each is multiplied with.
    pub factors: [Mont; 2],
}

/// What the header of a key says.
#[derive(Debug, Clone, Copy)]
pub struct PlonkHeader<C: Curve> {
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
    /// What takes the domain to the coset of the second column.
    pub k1: Mont,
    /// What takes the domain to the coset of the third column.
    pub k2: Mont,
    /// Commitments to Qm, Ql, Qr, Qo and Qc.
    pub selectors: [G1Point<C>; 5],
    /// Commitments to S1, S2 and S3.
    pub permutation: [G1Point<C>; 3],
    /// tau in G2.
    pub x_2: G2Point<C>,
}

impl<C: Curve> PlonkHeader<C> {
    /// The header of the bytes of a key, whose sections have the lengths that it says. Their content is not looked at.
    ///
    /// # Errors
    /// They are no PLONK key for the curve; a section has another length.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        Self::look(&Container::parse(bytes, KIND)?).map(|(header, _)| header)
    }

    fn look<'a>(file: &Container<'a>) -> Result<(Self, Sections<'a>)> {
        let (curve, mut section) = header_for(file, Protocol::Plonk)?;
        if curve != C::ID {
            let problem = format!("expected a key for {}, found one for {curve}", C::ID);
            return Err(FormatError::whole(problem, Some("use files made for one curve")));
        }
        let header = read_header::<C>(&mut section)?;
        let sections = Sections::of(file, &header)?;
        Ok((header, sections))
    }
}

/// A PLONK proving key as a view of its file.
///
/// All lengths, counts and moduli have been checked; signals are in range, additions refer to earlier signals alone, elements and
/// coordinates are below their modulus. Values of polynomials and the Lagrange polynomials have been measured, and not looked at: a proof
/// needs none of them. Whether points lie on the curve, and whether polynomials and commitments belong together, has not been checked.
#[derive(Clone)]
pub struct PlonkZkey<'a, C: Curve> {
    /// Sizes and single points.
    pub header: PlonkHeader<C>,
    /// How to make the signals that the circuit does not have.
    pub additions: Unaligned<'a, Addition>,
    /// The signal in each gate's columns A, B and C.
    pub maps: [Unaligned<'a, u32>; 3],
    /// Coefficients of Qm, Ql, Qr, Qo and Qc, `domain_size` each.
    pub selectors: [Unaligned<'a, Mont>; 5],
    /// Coefficients of S1, S2 and S3, `domain_size` each.
    pub permutation: [Unaligned<'a, Mont>; 3],
    /// Powers of tau, `domain_size + 6` of them. Of those outside memory coordinates have not been looked at.
    pub powers: Stored<'a, G1Point<C>>,
}

impl<C: Curve> std::fmt::Debug for PlonkZkey<'_, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PlonkZkey").field("header", &self.header).finish_non_exhaustive()
    }
}

/// The curve of a PLONK proving key.
///
/// # Errors
/// The file is no PLONK zkey, or for another curve than those supported.
pub fn curve(bytes: &[u8]) -> Result<CurveId> {
    header_for(&Container::parse(bytes, KIND)?, Protocol::Plonk).map(|(curve, _)| curve)
}

/// More powers of tau than the domain has rows: what blinding makes polynomials longer.
pub const MORE_POWERS: u32 = 6;

/// The least domain: below it the quotient has more coefficients than four times the rows.
pub const DOMAIN_MIN: u32 = 8;

/// What the header of a key of PLONK or FFLONK counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counts {
    pub(crate) n_vars: u32,
    pub(crate) n_public: u32,
    pub(crate) domain_size: u32,
    pub(crate) n_additions: u32,
    pub(crate) n_constraints: u32,
}

/// Reads the counts of a key whose domain has at least `more_rows` rows more than gates.
pub(crate) fn read_counts<C: Curve>(section: &mut Reader<'_>, more_rows: u32) -> Result<Counts> {
    let n_vars = section.u32("number of signals")?;
    let n_public = section.u32("number of public signals")?;
    if n_public >= n_vars {
        let problem = format!("expected fewer public signals than the {n_vars} signals, found {n_public}");
        return Err(section.error_before(4, problem));
    }
    let domain_size = section.u32("domain size")?;
    // The quotient is evaluated on four times as many points.
    let most = limits::two_adicity(C::ID).min(31) - 2;
    if !domain_size.is_power_of_two() || domain_size < DOMAIN_MIN || domain_size.trailing_zeros() > most {
        let problem =
            format!("expected a domain size that is a power of two from {DOMAIN_MIN} to 2^{most}, found {domain_size}");
        return Err(section.error_before(4, problem));
    }
    let n_additions = section.u32("number of additions")?;
    if n_additions >= n_vars {
        let problem = format!("expected fewer additions than the {n_vars} signals, found {n_additions}");
        return Err(section.error_before(4, problem));
    }
    if n_public >= n_vars - n_additions {
        let problem = format!(
            "expected fewer public signals than the {} signals of the circuit, found {n_public}",
            n_vars - n_additions
        );
        return Err(section.error_before(4, problem));
    }
    let n_constraints = section.u32("number of constraints")?;
    let most = domain_size - more_rows;
    if n_constraints > most || n_constraints < n_public {
        let problem = format!("expected {n_public} to {most} constraints, found {n_constraints}");
        return Err(section.error_before(4, problem));
    }
    Ok(Counts { n_vars, n_public, domain_size, n_additions, n_constraints })
}

/// Reads an element of the scalar field.
pub(crate) fn read_scalar<C: Curve>(section: &mut Reader<'_>, name: &'static str) -> Result<Mont> {
    let bytes = section.take(32, name)?;
    match modulus::first_not_below::<4>(bytes, modulus::scalar(C::ID)) {
        Some(_) => Err(section.error_before(32, format!("{name}: {NOT_BELOW}"))),
        None => Ok(Mont(bytemuck::pod_read_unaligned(bytes))),
    }
}

fn read_header<C: Curve>(section: &mut Reader<'_>) -> Result<PlonkHeader<C>> {
    let Counts { n_vars, n_public, domain_size, n_additions, n_constraints } = read_counts::<C>(section, 0)?;
    let (k1, k2) = (read_scalar::<C>(section, "k1")?, read_scalar::<C>(section, "k2")?);
    let mut selectors = [G1Point::<C>::zeroed(); 5];
    for (point_, name) in selectors.iter_mut().zip(SELECTORS) {
        *point_ = point::<C, _>(section, name)?;
    }
    let mut permutation = [G1Point::<C>::zeroed(); 3];
    for (point_, name) in permutation.iter_mut().zip(["S1", "S2", "S3"]) {
        *point_ = point::<C, _>(section, name)?;
    }
    let x_2 = point::<C, _>(section, "X_2")?;
    section.end()?;
    Ok(PlonkHeader { n_vars, n_public, domain_size, n_additions, n_constraints, k1, k2, selectors, permutation, x_2 })
}

const NOT_BELOW: &str = "expected an element below the scalar field modulus, found a larger one";

/// Sections of the lengths that the header says.
struct Sections<'a> {
    additions: Reader<'a>,
    maps: [Reader<'a>; 3],
    selectors: [Reader<'a>; 5],
    permutation: Reader<'a>,
    powers: Reader<'a>,
}

/// A section of `count` things of `size` bytes each.
pub(crate) fn section_of<'a>(file: &Container<'a>, id: u32, count: u64, size: usize, what: &str) -> Result<Reader<'a>> {
    let section = file.section(id)?;
    if section.rest() as u64 != count.saturating_mul(size as u64) {
        let problem = format!("expected {count} {what} of {size} bytes, found {} bytes", section.rest());
        return Err(section.error(problem));
    }
    Ok(section)
}

impl<'a> Sections<'a> {
    fn of<C: Curve>(file: &Container<'a>, header: &PlonkHeader<C>) -> Result<Self> {
        let section = |id, count, size, what| section_of(file, id, count, size, what);
        let (gates, domain) = (u64::from(header.n_constraints), u64::from(header.domain_size));
        let map = |id| section(id, gates, 4, "signals");
        let polynomials = |id, count: u64| section(id, 5 * domain * count, size_of::<Mont>(), "elements");
        let all = Self {
            additions: section(3, header.n_additions.into(), size_of::<Addition>(), "additions")?,
            maps: [map(4)?, map(5)?, map(6)?],
            selectors: [
                polynomials(7, 1)?,
                polynomials(8, 1)?,
                polynomials(9, 1)?,
                polynomials(10, 1)?,
                polynomials(11, 1)?,
            ],
            permutation: polynomials(12, 3)?,
            powers: section(14, domain + u64::from(MORE_POWERS), size_of::<G1Point<C>>(), "points")?,
        };
        polynomials(13, header.n_public.max(1).into())?;
        Ok(all)
    }
}

impl<'a, C: Curve> PlonkZkey<'a, C> {
    /// Reads a key; checks it as the type's description says, large sections in parallel.
    ///
    /// # Errors
    /// The first thing found that is not as the format says.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let (header, sections) = PlonkHeader::<C>::look(&Container::parse(bytes, KIND)?)?;
        let powers = points::<C, _>(sections.powers.clone())?.into();
        Self::of(header, sections, powers)
    }

    /// The key whose powers are read elsewhere.
    fn of(header: PlonkHeader<C>, sections: Sections<'a>, powers: Stored<'a, G1Point<C>>) -> Result<Self> {
        let [a, b, c] = sections.maps;
        let map = |section| signals(section, header.n_vars);
        let n = header.domain_size as usize;
        let one = |section| coefficients::<C, 1>(section, n).map(|[one]| one);
        let [q0, q1, q2, q3, q4] = sections.selectors;
        Ok(Self {
            header,
            additions: additions::<C>(sections.additions, header.n_vars - header.n_additions)?,
            maps: [map(a)?, map(b)?, map(c)?],
            selectors: [one(q0)?, one(q1)?, one(q2)?, one(q3)?, one(q4)?],
            permutation: coefficients::<C, 3>(sections.permutation, n)?,
            powers,
        })
    }
}

/// An error at entry `index` of a section that begins at `start`, each of `size` bytes.
fn at_entry(start: &Place, what: &'static str, index: usize, size: usize, problem: impl Into<String>) -> FormatError {
    let offset = start.offset.map(|o| o + (index * size) as u64);
    FormatError::at(Place { index: Some((what, index as u64)), offset, ..start.clone() }, problem)
}

/// Additions to `own` signals of the circuit.
pub(crate) fn additions<C: Curve>(mut section: Reader<'_>, own: u32) -> Result<Unaligned<'_, Addition>> {
    const SIZE: usize = size_of::<Addition>();
    let start = section.place();
    let bytes = section.take(section.rest(), "additions")?;
    let bad = bytes.par_chunks_exact(SIZE).with_min_len(1 << 10).enumerate().find_map_first(|(i, entry)| {
        let Addition { signals, .. } = bytemuck::pod_read_unaligned(entry);
        // What earlier additions made.
        let known = own + i as u32;
        if let Some(signal) = signals.iter().find(|signal| **signal >= known) {
            return Some((i, format!("expected signals below {known}, found {signal}")));
        }
        modulus::first_not_below::<4>(&entry[8..], modulus::scalar(C::ID)).map(|_| (i, NOT_BELOW.into()))
    });
    match bad {
        Some((index, problem)) => Err(at_entry(&start, "addition", index, SIZE, problem)),
        None => Unaligned::new(bytes).ok_or_else(|| section.error("expected whole additions")),
    }
}

pub(crate) fn signals(mut section: Reader<'_>, n_vars: u32) -> Result<Unaligned<'_, u32>> {
    let start = section.place();
    let bytes = section.take(section.rest(), "signals")?;
    let signal = |entry: &[u8]| bytemuck::pod_read_unaligned::<u32>(entry);
    let bad = bytes.par_chunks_exact(4).with_min_len(1 << 12).position_first(|entry| signal(entry) >= n_vars);
    if let Some(index) = bad {
        let found = signal(&bytes[4 * index..][..4]);
        return Err(at_entry(&start, "gate", index, 4, format!("expected a signal below {n_vars}, found {found}")));
    }
    Unaligned::new(bytes).ok_or_else(|| section.error("expected whole signals"))
}

/// All of a section, elements of the scalar field.
pub(crate) fn elements<C: Curve>(mut section: Reader<'_>) -> Result<Unaligned<'_, Mont>> {
    let (start, count) = (section.place(), section.rest() / size_of::<Mont>());
    elements_of::<C>(&mut section, &start, 0, count)
}

/// The next `count` elements of a section that begins at `start`, the first of which is number `first`.
fn elements_of<'a, C: Curve>(
    section: &mut Reader<'a>,
    start: &Place,
    first: usize,
    count: usize,
) -> Result<Unaligned<'a, Mont>> {
    const SIZE: usize = size_of::<Mont>();
    /// Elements that one task checks.
    const TASK: usize = 1 << 15;
    let bytes = section.take(count * SIZE, "elements")?;
    let r = modulus::scalar(C::ID);
    let bad = bytes
        .par_chunks(TASK * SIZE)
        .enumerate()
        .find_map_first(|(task, part)| modulus::first_not_below::<4>(part, r).map(|i| task * TASK + i));
    if let Some(index) = bad {
        return Err(at_entry(start, "element", first + index, SIZE, NOT_BELOW));
    }
    Unaligned::<Mont>::new(bytes).ok_or_else(|| section.error("expected whole elements"))
}

/// Values of a polynomial in a file for each of its coefficients, which they follow.
const VALUES: usize = 4;

/// The coefficients of the `N` polynomials of a section. Their values are passed over.
fn coefficients<C: Curve, const N: usize>(mut section: Reader<'_>, domain: usize) -> Result<[Unaligned<'_, Mont>; N]> {
    let start = section.place();
    let mut all = [Unaligned::from(&[][..]); N];
    for (number, polynomial) in all.iter_mut().enumerate() {
        *polynomial = elements_of::<C>(&mut section, &start, number * (1 + VALUES) * domain, domain)?;
        section.skip(VALUES * domain * size_of::<Mont>(), "values of a polynomial")?;
    }
    Ok(all)
}
