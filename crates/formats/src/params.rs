//! Groth16 keys of bellperson for BLS12-381, as Filecoin's `.params` files hold them.
//!
//! ```text
//! alpha G1 | beta G1 | beta G2 | gamma G2 | delta G1 | delta G2
//! IC, H, L, A, B1 (G1), B2 (G2): each u32 count | points
//! ```
//!
//! Counts are big-endian, points as [`zcash`] says. A has a point for each public wire, the constant included, and one for each private
//! wire that the circuit's left sides name; B1 and B2 have one for each wire, public or private, that its right sides name. H has one less
//! than the domain has rows: tau^i (tau^n - 1) / delta. The file does not say which wires have points; whoever proves knows it.

use crate::container::Input;
use crate::error::{FormatError, InFile, Place, Result, MORE_MEMORY};
use crate::file::RegularFile;
use crate::kind::FileKind;
use crate::limits;
use crate::zkey::{G1Point, G2Point};
use rayon::prelude::*;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;
use tandem_ops::zcash::Encoded;
use tandem_ops::{memory, Bls12_381};

type P1 = G1Point<Bls12_381>;
type P2 = G2Point<Bls12_381>;

/// Bytes of a point of G1 and of one of G2.
const G1: usize = size_of::<P1>();
const G2: usize = size_of::<P2>();

/// Bytes of the points that belong to no wire.
const SINGLE: usize = 3 * G1 + 3 * G2;

/// Bytes of points that one task checks.
const TASK_POINTS: usize = 1 << 14;

/// Points of a key that belong to no wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParamsPoints {
    /// alpha in G1.
    pub alpha_1: P1,
    /// beta in G1.
    pub beta_1: P1,
    /// beta in G2.
    pub beta_2: P2,
    /// gamma in G2.
    pub gamma_2: P2,
    /// delta in G1.
    pub delta_1: P1,
    /// delta in G2.
    pub delta_2: P2,
}

/// A section of points that stays in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamsSection {
    /// Its name.
    pub name: &'static str,
    /// The bytes of its points.
    pub bytes: Range<usize>,
    /// How many points there are.
    pub points: u32,
}

/// A key without its large sections, of which it says where they lie in the file. All counts and lengths have been checked; of the content
/// of the large sections nothing has been looked at.
#[derive(Debug, Clone)]
pub struct ParamsOutline {
    /// Points that belong to no wire.
    pub points: ParamsPoints,
    /// Points of the constant and the public wires.
    pub ic: Vec<P1>,
    /// The quotient's points.
    pub h: ParamsSection,
    /// Those of the private wires.
    pub l: ParamsSection,
    /// A.
    pub a: ParamsSection,
    /// B in G1.
    pub b1: ParamsSection,
    /// B in G2.
    pub b2: ParamsSection,
}

/// What a file says of the sizes of its circuit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParamsSizes {
    /// Wires of the circuit, the constant 1 included.
    pub variables: u32,
    /// Public wires, without the constant.
    pub publics: u32,
    /// Rows of the domain.
    pub domain: u32,
    /// Points of A.
    pub a: u32,
    /// Points of B, in G1 and in G2.
    pub b: u32,
}

/// Names the place of a value.
fn place(name: &str, at: u64) -> Place {
    Place { member: Some(name.into()), offset: Some(at), ..Place::default() }
}

/// A place in a file that is read from front to back.
struct Walk<'a, I> {
    input: &'a I,
    at: u64,
}

impl<I: Input> Walk<'_, I> {
    /// The next `len` bytes, which the file must have.
    fn pass(&mut self, len: u64, name: &str, what: &str) -> Result<Range<usize>> {
        let rest = self.input.len() - self.at;
        if len > rest {
            let problem = format!("expected {len} bytes ({what}), the file ends after {rest}");
            return Err(FormatError::at(place(name, self.at), problem));
        }
        let start = self.at;
        self.at += len;
        match (usize::try_from(start), usize::try_from(self.at)) {
            (Ok(start), Ok(end)) => Ok(start..end),
            _ => Err(FormatError::whole("the file is larger than this machine's memory can be", Some(MORE_MEMORY))),
        }
    }

    /// A section: its count, and where its points lie.
    fn section(&mut self, name: &'static str, size: usize) -> Result<ParamsSection> {
        let at = self.pass(4, name, "number of points")?;
        let mut count = [0; 4];
        self.input.look(&mut count, at.start as u64)?;
        let points = u32::from_be_bytes(count);
        let bytes = self.pass(u64::from(points) * size as u64, name, &format!("{points} points of {size} bytes"))?;
        Ok(ParamsSection { name, bytes, points })
    }
}

/// The finite points that the bytes are, the first of them at `at`.
fn decoded<P: Encoded>(bytes: &[u8], name: &str, at: u64, first: usize) -> Result<Vec<P>> {
    let point = |(i, bytes): (usize, &[u8])| {
        P::decode(bytes).map_err(|fault| {
            let (index, offset) = ((first + i) as u64, at + (i * size_of::<P>()) as u64);
            FormatError::at(Place { index: Some(("point", index)), ..place(name, offset) }, fault.to_string())
        })
    };
    bytes.chunks_exact(size_of::<P>()).enumerate().map(point).collect()
}

/// The point of this name at `at` of the first bytes.
fn single<P: Encoded>(bytes: &[u8], name: &str, at: usize) -> Result<P> {
    let fail = |fault: tandem_ops::zcash::Fault| FormatError::at(place(name, at as u64), fault.to_string());
    P::decode(&bytes[at..at + size_of::<P>()]).map_err(fail)
}

impl ParamsPoints {
    fn of(bytes: &[u8]) -> Result<Self> {
        Ok(Self {
            alpha_1: single(bytes, "alpha_1", 0)?,
            beta_1: single(bytes, "beta_1", G1)?,
            beta_2: single(bytes, "beta_2", 2 * G1)?,
            gamma_2: single(bytes, "gamma_2", 2 * G1 + G2)?,
            delta_1: single(bytes, "delta_1", 2 * G1 + 2 * G2)?,
            delta_2: single(bytes, "delta_2", 3 * G1 + 2 * G2)?,
        })
    }
}

/// Whether a file that begins with these bytes is such a key: it has no magic number, but other files do not begin with six finite points.
pub(crate) fn begins(bytes: &[u8]) -> bool {
    bytes.get(..SINGLE).is_some_and(|single| ParamsPoints::of(single).is_ok())
}

impl ParamsOutline {
    /// Reads the points that belong to no wire and those of the public ones, and the counts of all others.
    ///
    /// # Errors
    /// The first thing found that is not as the format says; `input` cannot be read.
    pub fn read(input: &impl Input) -> Result<Self> {
        let mut start = vec![0; input.len().min(limits::HEAD_BYTES as u64) as usize];
        input.look(&mut start, 0)?;
        match FileKind::of(&start) {
            Some(FileKind::Params) | None => {}
            other => return Err(FileKind::refuse(other, FileKind::Params.describe())),
        }
        let mut walk = Walk { input, at: 0 };
        let head = walk.pass(SINGLE as u64, "single points", "points that belong to no wire")?;
        let points = ParamsPoints::of(&start[head])?;
        let of_ic = walk.section("IC", G1)?;
        let [h, l, a, b1] = ["H", "L", "A", "B1"].map(|name| walk.section(name, G1));
        let outline = Self { points, ic: Vec::new(), h: h?, l: l?, a: a?, b1: b1?, b2: walk.section("B2", G2)? };
        let rest = input.len() - walk.at;
        if rest > 0 {
            let problem = format!("expected the end of the file, found {rest} bytes more");
            return Err(FormatError::at(Place { offset: Some(walk.at), ..Place::default() }, problem));
        }
        outline.check_counts(&of_ic)?;
        let no_room = |e: tandem_ops::Error| FormatError::whole(e.to_string(), Some(MORE_MEMORY));
        let mut ic = memory::filled("IC", of_ic.bytes.len(), 0).map_err(no_room)?;
        input.look(&mut ic, of_ic.bytes.start as u64)?;
        Ok(Self { ic: decoded(&ic, "IC", of_ic.bytes.start as u64, 0)?, ..outline })
    }

    /// Fails unless the counts are those of one circuit.
    fn check_counts(&self, ic: &ParamsSection) -> Result<()> {
        // The count stands before the points.
        let refuse = |section: &ParamsSection, problem: String| {
            Err(FormatError::at(place(section.name, section.bytes.start as u64 - 4), problem))
        };
        if ic.points == 0 {
            return refuse(ic, "expected a point for the constant 1, found none".into());
        }
        let Some(variables) = ic.points.checked_add(self.l.points) else {
            let most = u32::MAX - ic.points;
            return refuse(&self.l, format!("expected at most {most} points, found {}", self.l.points));
        };
        let rows = u64::from(self.h.points) + 1;
        if !rows.is_power_of_two() || rows.ilog2() > limits::PARAMS_DOMAIN_LOG_MAX {
            let most = limits::PARAMS_DOMAIN_LOG_MAX;
            let problem = format!("expected a power of two less 1, up to 2^{most} - 1 points, found {}", self.h.points);
            return refuse(&self.h, problem);
        }
        if self.a.points < ic.points || self.a.points > variables {
            let problem = format!("expected {} to {variables} points, found {}", ic.points, self.a.points);
            return refuse(&self.a, problem);
        }
        if self.b1.points > variables {
            return refuse(&self.b1, format!("expected at most {variables} points, found {}", self.b1.points));
        }
        if self.b2.points != self.b1.points {
            return refuse(
                &self.b2,
                format!("expected {} points, as B1 has, found {}", self.b1.points, self.b2.points),
            );
        }
        Ok(())
    }

    /// The sizes of its circuit.
    pub fn sizes(&self) -> ParamsSizes {
        // The reader has compared them all.
        let inputs = self.ic.len() as u32;
        ParamsSizes {
            variables: inputs + self.l.points,
            publics: inputs - 1,
            domain: self.h.points + 1,
            a: self.a.points,
            b: self.b1.points,
        }
    }

    /// Checks that the bytes of all points of the large sections are finite points', in parallel. Whether they lie on the curve is not
    /// looked at.
    ///
    /// # Errors
    /// The first point that is none; `input` cannot be read.
    pub fn check_points(&self, input: &impl Input) -> Result<()> {
        for section in [&self.h, &self.l, &self.a, &self.b1] {
            check_section::<P1>(input, section)?;
        }
        check_section::<P2>(input, &self.b2)
    }
}

fn check_section<P: Encoded>(input: &impl Input, section: &ParamsSection) -> Result<()> {
    let (task, start) = (TASK_POINTS * size_of::<P>(), section.bytes.start);
    let check_task = |buffer: &mut Vec<u8>, number: usize| {
        let at = start + number * task;
        buffer.resize(task.min(section.bytes.end - at), 0);
        input.look(buffer, at as u64)?;
        decoded::<P>(buffer, section.name, at as u64, number * TASK_POINTS).map(drop)
    };
    let tasks = (0..section.bytes.len().div_ceil(task)).into_par_iter();
    // The first that is bad, not the one that was found first.
    tasks.map_init(Vec::new, check_task).find_first(Result::is_err).unwrap_or(Ok(()))
}

/// A file that holds such a key by its counts. The content of its large sections has not been looked at.
#[derive(Debug)]
pub struct ParamsFile {
    file: RegularFile,
    /// The key without its large sections.
    pub outline: ParamsOutline,
}

impl ParamsFile {
    /// Looks at a file.
    ///
    /// # Errors
    /// The file cannot be read, or is no such key; a section has another length than its count says.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let file = RegularFile::open(&path)?;
        let outline = ParamsOutline::read(&file).in_file(file.path())?;
        Ok(Self { file, outline })
    }

    /// The file itself.
    pub fn file(&self) -> &RegularFile {
        &self.file
    }

    /// The file itself, to be read in pieces ([`ParamsOutline`]).
    pub fn into_file(self) -> RegularFile {
        self.file
    }
}

/// Writes a key: its points that belong to no wire, then IC, H, L, A and B in G1, and B in G2.
///
/// # Errors
/// Writing fails; a section has 2^32 points or more.
pub fn write_params(mut out: impl Write, points: &ParamsPoints, g1: [&[P1]; 5], b2: &[P2]) -> io::Result<()> {
    let ParamsPoints { alpha_1, beta_1, beta_2, gamma_2, delta_1, delta_2 } = points;
    for single in
        [alpha_1.encode(), beta_1.encode(), beta_2.encode(), gamma_2.encode(), delta_1.encode(), delta_2.encode()]
    {
        out.write_all(&single)?;
    }
    for section in g1 {
        write_section(&mut out, section)?;
    }
    write_section(&mut out, b2)
}

fn write_section<P: Encoded>(out: &mut impl Write, points: &[P]) -> io::Result<()> {
    let count = u32::try_from(points.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    out.write_all(&count.to_be_bytes())?;
    points.iter().try_for_each(|point| out.write_all(&point.encode()))
}
