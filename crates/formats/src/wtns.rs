//! Witness files.
//!
//! ```text
//! 1 header   u32 n8 = 32 | r | u32 count
//! 2 values   count x 32 bytes, the integers below r
//! ```
//!
//! A file may have the sides of the constraints, too ([`Sides`]).
//!
//! A witness is a secret: it is held in memory that is wiped when dropped, and no error shows a value of it.

mod sides;

pub(crate) use sides::SIDES;
pub use sides::{Expected, Sides, SidesRef};

use crate::container::{misuse, read_start, section_head, Container, ContainerWriter, Heads, Reader, START_BYTES};
use crate::error::{FormatError, InFile, Place, Result};
use crate::file::{open_stream, RegularFile};
use crate::kind::FileKind;
use crate::{limits, modulus};
use rayon::prelude::*;
use std::io::{self, Read, Write};
use std::path::Path;
use tandem_ops::{Canonical, CurveId, HostBuf};
use zeroize::Zeroizing;

/// Bytes that are taken from a pipe at a time.
const PIECE_BYTES: usize = 1 << 22;

/// What a witness says of itself; no secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WtnsHeader {
    /// The curve whose scalars the values are.
    pub curve: CurveId,
    /// How many values there are, the leading 1 included.
    pub count: u32,
}

/// A witness, wiped when dropped.
#[derive(Debug)]
pub struct Wtns {
    /// The curve whose scalars the values are.
    pub curve: CurveId,
    /// The values, the leading 1 first; all are below the modulus.
    pub values: HostBuf<Canonical>,
}

impl WtnsHeader {
    /// Reads the header of a file and no value.
    ///
    /// # Errors
    /// The file cannot be read, or its sections are not as the format says.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let file = RegularFile::open(path)?;
        let look = |heads: Heads| Self::of(&heads.container()).map(|(header, _)| header);
        Heads::read(&file, FileKind::Wtns).and_then(look).in_file(file.path())
    }

    /// The header, and the section of values, of the length that it says.
    fn of<'a>(file: &Container<'a>) -> Result<(Self, Reader<'a>)> {
        let header = Self::read(file.section(1)?)?;
        let values = file.section(2)?;
        header.check_values(values.rest() as u64, values.place())?;
        Ok((header, values))
    }

    fn read(mut section: Reader<'_>) -> Result<Self> {
        let curve = section.modulus("scalar field modulus", modulus::curve_of_scalar)?;
        let count = section.u32("number of values")?;
        if count == 0 {
            return Err(section.error_before(4, "expected at least the leading 1, found no value"));
        }
        section.end()?;
        Ok(Self { curve, count })
    }

    fn check_values(self, bytes: u64, place: Place) -> Result<()> {
        if bytes != u64::from(self.count) * 32 {
            let problem = format!("expected {} values of 32 bytes, found {bytes} bytes", self.count);
            return Err(FormatError::at(place, problem));
        }
        Ok(())
    }

    /// Fails unless this is what a key needs.
    fn expect(self, key: Option<WtnsHeader>) -> Result<()> {
        let Some(key) = key.filter(|key| *key != self) else { return Ok(()) };
        let problem = if self.curve == key.curve {
            format!("the witness has {} values; the circuit of the key has {}", self.count, key.count)
        } else {
            format!("a witness for {}; the key is for {}", self.curve, key.curve)
        };
        Err(FormatError::whole(problem, Some("make both from the same compilation of the circuit")))
    }
}

impl Wtns {
    /// Reads a witness file, or a witness that comes out of a pipe.
    ///
    /// # Errors
    /// The file cannot be read, or is not as [`Wtns::parse`] wants it.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_in(path, None, |count| HostBuf::zeros(count).ok())
    }

    /// Reads a file into memory of the caller's: `room` is asked for zeros, as many as there are values. Where a key is known, it says what
    /// is `expected`; another witness is refused before its values are read.
    ///
    /// A pipe is read once from front to back, so it gives the header before the values, as all tools write them.
    ///
    /// # Errors
    /// As for [`Wtns::open`]; it is not what is expected.
    pub fn open_in(
        path: impl AsRef<Path>,
        expected: Option<WtnsHeader>,
        room: impl FnOnce(usize) -> Option<HostBuf<Canonical>>,
    ) -> Result<Self> {
        let path = path.as_ref();
        let kind = std::fs::metadata(path).map_err(|e| FormatError::io(path, "open", e))?;
        if kind.is_file() || kind.is_dir() {
            return Self::of_file(&RegularFile::open(path)?, expected, room).in_file(path);
        }
        let mut stream = Stream { from: open_stream(path)?, at: 0 };
        Self::of_stream(&mut stream, expected, room, &mut pass_over).in_file(path)
    }

    /// Reads a witness from front to back, as out of a pipe: the header comes before the values. `expected` and `room` are those of
    /// [`Wtns::open_in`]; errors name `name` as the file. The values are read into the memory that they stay in.
    ///
    /// # Errors
    /// As for [`Wtns::open_in`].
    pub fn read_in(
        from: impl Read,
        name: &Path,
        expected: WtnsHeader,
        room: impl FnOnce(usize) -> Option<HostBuf<Canonical>>,
    ) -> Result<Self> {
        Self::of_stream(&mut Stream { from, at: 0 }, Some(expected), room, &mut pass_over).in_file(name)
    }

    fn of_file(
        file: &RegularFile,
        expected: Option<WtnsHeader>,
        room: impl FnOnce(usize) -> Option<HostBuf<Canonical>>,
    ) -> Result<Self> {
        let heads = Heads::read(file, FileKind::Wtns)?;
        let (header, section) = WtnsHeader::of(&heads.container())?;
        header.expect(expected)?;
        // Read into the memory that they stay in, so that no second copy of the secret exists.
        let mut values = header.room(room)?;
        file.read_at(bytemuck::cast_slice_mut(&mut values[..]), section.offset() as u64)?;
        file.unchanged()?;
        check_values(&values, header.curve, section.place())?;
        Ok(Self { curve: header.curve, values })
    }

    /// `other` reads or passes over the sections that are none of a witness's own, each to its end.
    fn of_stream<R: Read>(
        stream: &mut Stream<R>,
        expected: Option<WtnsHeader>,
        room: impl FnOnce(usize) -> Option<HostBuf<Canonical>>,
        other: &mut OtherSection<'_, R>,
    ) -> Result<Self> {
        let mut start = [0; START_BYTES];
        let got = stream.read(&mut start)?;
        let (_, sections) = read_start(&start[..got], FileKind::Wtns)?;
        let (mut header, mut room, mut read) = (None, Some(room), None);
        for _ in 0..sections {
            let mut head = [0; 12];
            stream.fill(&mut head, None)?;
            let (id, len) = section_head(&head);
            let place = stream.place(Some(id));
            if stream.at.saturating_add(len) > limits::WTNS_BYTES_MAX {
                let problem = format!("expected at most {} bytes, found {len} in this section", limits::WTNS_BYTES_MAX);
                return Err(FormatError::at(place, problem));
            }
            match (id, header) {
                (1, None) if len <= limits::HEAD_BYTES as u64 => {
                    let (base, mut bytes) = (stream.at as usize, vec![0; len as usize]);
                    stream.fill(&mut bytes, Some(1))?;
                    let found = WtnsHeader::read(Reader::of(&bytes, base, Some((1, FileKind::Wtns.section_name(1)))))?;
                    found.expect(expected)?;
                    header = Some(found);
                }
                (1, None) => return Err(FormatError::at(place, format!("expected a header of 40 bytes, found {len}"))),
                (2, None) => {
                    let problem = "expected the header before the values, which a pipe gives only once";
                    return Err(FormatError::at(place, problem).advise("write the witness to a file first"));
                }
                (2, Some(header)) if room.is_some() => {
                    header.check_values(len, place.clone())?;
                    let values = stream.values(header, expected.is_some(), room.take())?;
                    check_values(&values, header.curve, place)?;
                    read = Some(Self { curve: header.curve, values });
                }
                (1 | 2, Some(_)) => {
                    let problem = "expected this section once, found it a second time";
                    return Err(FormatError::at(place, problem));
                }
                _ => other(stream, id, len)?,
            }
        }
        if stream.read(&mut [0])? != 0 {
            return Err(FormatError::at(stream.place(None), "expected the end of the file, found more bytes"));
        }
        let missing = if header.is_some() { 2 } else { 1 };
        let place = Place { section: Some((missing, FileKind::Wtns.section_name(missing))), ..Place::default() };
        read.ok_or_else(|| FormatError::at(place, "expected this section, the file has none"))
    }

    /// Reads a witness from the bytes of its file.
    ///
    /// # Errors
    /// The first thing found that is not as the format says.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let (header, mut section) = WtnsHeader::of(&Container::parse(bytes, FileKind::Wtns)?)?;
        let place = section.place();
        let mut values = header.room(|count| HostBuf::zeros(count).ok())?;
        bytemuck::cast_slice_mut(&mut values[..]).copy_from_slice(section.take(section.rest(), "values")?);
        check_values(&values, header.curve, place)?;
        Ok(Self { curve: header.curve, values })
    }

    /// Writes a witness file as snarkjs does.
    ///
    /// # Errors
    /// The values are none of a witness: the first is not 1, one is not below the modulus, or there are more than 2^32 - 1; writing
    /// fails.
    pub fn write(out: impl Write, curve: CurveId, values: &[Canonical]) -> io::Result<()> {
        Self::write_all(out, curve, values, None)
    }

    fn write_all(out: impl Write, curve: CurveId, values: &[Canonical], sides: Option<SidesRef<'_>>) -> io::Result<()> {
        let count = u32::try_from(values.len()).map_err(|_| misuse("more than 2^32 - 1 values"))?;
        check_values(values, curve, Place::default())
            .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e.bare()))?;
        let mut out = ContainerWriter::new(out, FileKind::Wtns, 2, 2 + u32::from(sides.is_some()))?;
        out.section(1, 40)?;
        out.write(&32u32.to_le_bytes())?;
        out.write(bytemuck::cast_slice(modulus::scalar(curve)))?;
        out.write(&count.to_le_bytes())?;
        out.section(2, values.len() as u64 * 32)?;
        out.write(bytemuck::cast_slice(values))?;
        if let Some(sides) = sides {
            out.section(SIDES, sides.bytes())?;
            sides.write(|bytes| out.write(bytes))?;
        }
        out.finish().map(drop)
    }
}

impl WtnsHeader {
    /// Memory for the values.
    fn room(self, room: impl FnOnce(usize) -> Option<HostBuf<Canonical>>) -> Result<HostBuf<Canonical>> {
        let count = self.count as usize;
        let mut values = room(count).filter(|room| room.len() >= count).ok_or_else(|| no_room(count as u64 * 32))?;
        values.truncate(count);
        Ok(values)
    }
}

/// What is done with a section of this number and of so many bytes: all of these are read.
type OtherSection<'a, R> = dyn FnMut(&mut Stream<R>, u32, u64) -> Result<()> + 'a;

/// What a pipe gives, from front to back.
struct Stream<R> {
    from: R,
    /// Bytes that came.
    at: u64,
}

impl<R: Read> Stream<R> {
    fn place(&self, section: Option<u32>) -> Place {
        let section = section.map(|id| (id, FileKind::Wtns.section_name(id)));
        Place { section, offset: Some(self.at), ..Place::default() }
    }

    /// Fills `bytes` as far as there are any; gives their number.
    fn read(&mut self, bytes: &mut [u8]) -> Result<usize> {
        let mut got = 0;
        while got < bytes.len() {
            match self.from.read(&mut bytes[got..]) {
                Ok(0) => break,
                Ok(more) => got += more,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(FormatError::whole(format!("cannot read: {e}"), None)),
            }
        }
        self.at += got as u64;
        Ok(got)
    }

    /// Fills all of `bytes`.
    fn fill(&mut self, bytes: &mut [u8], section: Option<u32>) -> Result<()> {
        let place = self.place(section);
        match self.read(bytes)? {
            got if got == bytes.len() => Ok(()),
            got => {
                let problem = format!("expected {} bytes, the file ends after {got}", bytes.len());
                Err(FormatError::at(place, problem))
            }
        }
    }

    /// Passes over bytes.
    fn skip(&mut self, len: u64, section: u32) -> Result<()> {
        let mut buffer = [0; 4096];
        for start in (0..len).step_by(buffer.len()) {
            let part = (len - start).min(buffer.len() as u64) as usize;
            self.fill(&mut buffer[..part], Some(section))?;
        }
        Ok(())
    }

    /// The values. Unless their number is known to be a key's, memory is taken as they come: what a header says of a pipe is no more
    /// than a claim.
    fn values(
        &mut self,
        header: WtnsHeader,
        is_known: bool,
        room: Option<impl FnOnce(usize) -> Option<HostBuf<Canonical>>>,
    ) -> Result<HostBuf<Canonical>> {
        let len = u64::from(header.count) * 32;
        if is_known {
            let mut values = header.room(|count| room.and_then(|room| room(count)))?;
            self.fill(bytemuck::cast_slice_mut(&mut values[..]), Some(2))?;
            return Ok(values);
        }
        let mut pieces = Vec::new();
        for start in (0..len).step_by(PIECE_BYTES) {
            let mut piece = Zeroizing::new(vec![0u8; (len - start).min(PIECE_BYTES as u64) as usize]);
            self.fill(&mut piece, Some(2))?;
            pieces.push(piece);
        }
        let mut values = header.room(|count| room.and_then(|room| room(count)))?;
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut values[..]);
        bytes.chunks_mut(PIECE_BYTES).zip(&pieces).for_each(|(to, piece)| to.copy_from_slice(piece));
        Ok(values)
    }
}

fn pass_over<R: Read>(stream: &mut Stream<R>, id: u32, len: u64) -> Result<()> {
    stream.skip(len, id)
}

fn no_room(len: u64) -> FormatError {
    FormatError::whole(format!("the witness needs {len} bytes of memory, more than there is"), None)
}

/// Values that a thread checks at least.
const CHECKED_TOGETHER: usize = 1 << 17;

fn check_values(values: &[Canonical], curve: CurveId, start: Place) -> Result<()> {
    let at = |index: usize, problem: String| {
        let offset = start.offset.map(|o| o + index as u64 * 32);
        Err(FormatError::at(Place { index: Some(("value", index as u64)), offset, ..start.clone() }, problem))
    };
    let r = modulus::scalar(curve);
    let is_large = |v: &Canonical| !modulus::is_below(&v.0, r);
    // Few parts: to wake a thread takes as long as it checks some thousand values, and to start them much longer.
    let found = match values.len() > CHECKED_TOGETHER {
        true => values.par_iter().with_min_len(CHECKED_TOGETHER).position_first(is_large),
        false => values.iter().position(is_large),
    };
    if let Some(index) = found {
        return at(index, format!("expected a value below the scalar field modulus of {curve}, found a larger one"));
    }
    if values.first() != Some(&Canonical([1, 0, 0, 0])) {
        return at(0, "expected the first value of a witness to be 1, found another".into());
    }
    Ok(())
}
