//! The sides of a circuit's constraints behind the values of its witness: what a key without matrices takes beside these.
//!
//! ```text
//! 0x54440001 sides   u32 rows | u32 in A | u32 in B | in A x u32, wires that left factors name | in B x u32, right ones
//!                    rows x 32 bytes, left factors | rows x 32 bytes, right factors: Montgomery form, below r
//! ```
//!
//! Programs that do not know the section pass it over.

use super::{Stream, Wtns, WtnsHeader};
use crate::container::{misuse, Heads};
use crate::error::{FormatError, InFile, Result};
use crate::file::{open_stream, RegularFile};
use crate::kind::FileKind;
use std::io::{self, Read, Write};
use std::path::Path;
use tandem_ops::{memory, Canonical, CurveId, HostBuf, Mont};

/// The section's number.
pub(crate) const SIDES: u32 = 0x5444_0001;

/// Bytes before the lists.
const COUNTS: u64 = 12;

/// The sides of a circuit's constraints at a witness, one element a row, and the wires that they name. Secrets, wiped when dropped. Nothing
/// is known of the elements but their number.
#[derive(Debug)]
pub struct Sides {
    /// Values of left factors.
    pub a: HostBuf<Mont>,
    /// Values of right factors.
    pub b: HostBuf<Mont>,
    /// Wires that left factors name.
    pub in_a: Vec<u32>,
    /// Wires that right factors name.
    pub in_b: Vec<u32>,
}

/// [`Sides`] to be written.
#[derive(Clone, Copy)]
pub struct SidesRef<'a> {
    /// Values of left factors.
    pub a: &'a [Mont],
    /// Values of right factors, as many.
    pub b: &'a [Mont],
    /// Wires that left factors name.
    pub in_a: &'a [u32],
    /// Wires that right factors name.
    pub in_b: &'a [u32],
}

/// What a key takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// Its witnesses.
    pub witness: WtnsHeader,
    /// Rows of its domain: a circuit has no more.
    pub rows: u32,
}

impl Wtns {
    /// Reads a witness from front to back as [`Wtns::read_in`] does, and its sides where it has some. `room` is asked for zeros, once for the
    /// values and once for each side.
    ///
    /// # Errors
    /// As for [`Wtns::open_in`]; the sides have more rows than the key, name more wires than there are, or are not of the length that their
    /// counts say.
    pub fn read_with_sides(
        from: impl Read,
        name: &Path,
        expected: Expected,
        room: impl Fn(usize) -> Option<HostBuf<Canonical>>,
    ) -> Result<(Self, Option<Sides>)> {
        let mut sides = None;
        let mut other = |stream: &mut Stream<_>, id: u32, len: u64| {
            if id != SIDES {
                return stream.skip(len, id);
            }
            if sides.is_some() {
                let problem = "expected this section once, found it a second time";
                return Err(FormatError::at(stream.place(Some(id)), problem));
            }
            sides = Some(Sides::read(stream, len, expected, &room)?);
            Ok(())
        };
        let mut stream = Stream { from, at: 0 };
        let witness = Self::of_stream(&mut stream, Some(expected.witness), &room, &mut other).in_file(name)?;
        Ok((witness, sides))
    }

    /// [`Wtns::read_with_sides`] of a file, or of what comes out of a pipe.
    ///
    /// # Errors
    /// As for it; the file cannot be opened.
    pub fn open_with_sides(
        path: &Path,
        expected: Expected,
        room: impl Fn(usize) -> Option<HostBuf<Canonical>>,
    ) -> Result<(Self, Option<Sides>)> {
        // Of a file it is seen first what it is.
        if path.is_file() || path.is_dir() {
            Heads::read(&RegularFile::open(path)?, FileKind::Wtns).map(drop).in_file(path)?;
        }
        Self::read_with_sides(open_stream(path)?, path, expected, room)
    }

    /// Writes a witness file as snarkjs does, and the sides behind the values.
    ///
    /// # Errors
    /// As for [`Wtns::write`]; one side has more rows than the other, or there are more than 2^32 - 1 rows.
    pub fn write_with_sides(
        out: impl Write,
        curve: CurveId,
        values: &[Canonical],
        sides: SidesRef<'_>,
    ) -> io::Result<()> {
        Self::write_all(out, curve, values, Some(sides))
    }
}

impl SidesRef<'_> {
    /// Bytes of the section.
    pub(super) fn bytes(self) -> u64 {
        COUNTS + 4 * (self.in_a.len() + self.in_b.len()) as u64 + 32 * (self.a.len() + self.b.len()) as u64
    }

    /// Writes the section's content.
    pub(super) fn write(self, mut write: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let SidesRef { a, b, in_a, in_b } = self;
        if a.len() != b.len() {
            return Err(misuse("sides of two lengths"));
        }
        for count in [a.len(), in_a.len(), in_b.len()] {
            let count = u32::try_from(count).map_err(|_| misuse("more than 2^32 - 1 rows or wires"))?;
            write(&count.to_le_bytes())?;
        }
        write(bytemuck::cast_slice(in_a))?;
        write(bytemuck::cast_slice(in_b))?;
        write(bytemuck::cast_slice(a))?;
        write(bytemuck::cast_slice(b))
    }
}

impl Sides {
    fn read<R: Read>(
        stream: &mut Stream<R>,
        len: u64,
        expected: Expected,
        room: impl Fn(usize) -> Option<HostBuf<Canonical>>,
    ) -> Result<Self> {
        let place = stream.place(Some(SIDES));
        let refuse = |problem: String| Err(FormatError::at(place.clone(), problem));
        if len < COUNTS {
            return refuse(format!("expected {COUNTS} bytes or more, found {len}"));
        }
        let mut counts = [[0; 4]; 3];
        stream.fill(counts.as_flattened_mut(), Some(SIDES))?;
        let [rows, in_a, in_b] = counts.map(u32::from_le_bytes);
        let (most, wires) = (expected.rows, expected.witness.count);
        if rows > most || in_a > wires || in_b > wires {
            return refuse(format!(
                "expected at most {most} rows that name {wires} wires, found {rows} that name {in_a} on the left and {in_b} on the right"
            ));
        }
        let bytes = COUNTS + 4 * (u64::from(in_a) + u64::from(in_b)) + 64 * u64::from(rows);
        if bytes != len {
            return refuse(format!("expected {bytes} bytes for {rows} rows, {in_a} and {in_b} wires, found {len}"));
        }
        let [in_a, in_b] = [stream.wires(in_a)?, stream.wires(in_b)?];
        let mut side = || {
            let none = || super::no_room(32 * u64::from(rows));
            let values = room(rows as usize).filter(|values| values.len() >= rows as usize);
            let mut values = values.and_then(HostBuf::cast::<Mont>).ok_or_else(none)?;
            values.truncate(rows as usize);
            stream.fill(bytemuck::cast_slice_mut(&mut values[..]), Some(SIDES))?;
            Ok(values)
        };
        Ok(Sides { a: side()?, b: side()?, in_a, in_b })
    }
}

impl<R: Read> Stream<R> {
    fn wires(&mut self, count: u32) -> Result<Vec<u32>> {
        let none = |_| super::no_room(4 * u64::from(count));
        let mut wires = memory::filled("wires", count as usize, 0u32).map_err(none)?;
        self.fill(bytemuck::cast_slice_mut(&mut wires), Some(SIDES))?;
        Ok(wires)
    }
}
