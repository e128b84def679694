//! Witness files.
//!
//! ```text
//! 1 header   u32 n8 = 32 | r | u32 count
//! 2 values   count x 32 bytes, the integers below r
//! ```
//!
//! A witness is a secret: it is held in memory that is wiped when dropped, and no error shows a value of it.

use crate::container::{Container, ContainerWriter, FileKind, Reader};
use crate::error::{FormatError, InFile, Place, Result};
use crate::mapped::open_regular;
use crate::{limits, modulus};
use rayon::prelude::*;
use std::io::{self, Read, Write};
use std::path::Path;
use tandem_ops::{Canonical, CurveId, HostBuf};

/// A witness, wiped when dropped.
#[derive(Debug)]
pub struct Wtns {
    /// The curve whose scalars the values are.
    pub curve: CurveId,
    /// The values, the leading 1 first; all are below the modulus.
    pub values: HostBuf<Canonical>,
}

impl Wtns {
    /// Reads a witness file.
    ///
    /// # Errors
    /// The file cannot be read, or is not as [`Wtns::parse`] wants it.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_in(path, |count| HostBuf::zeros(count).ok())
    }

    /// The same in memory of the caller's: `room` is asked for zeros, as many as the file's bytes take.
    ///
    /// # Errors
    /// As for [`Wtns::open`].
    pub fn open_in(path: impl AsRef<Path>, room: impl FnOnce(usize) -> Option<HostBuf<Canonical>>) -> Result<Self> {
        let path = path.as_ref();
        let (mut file, len) = open_regular(path)?;
        if len > limits::WTNS_BYTES_MAX {
            let problem = format!("expected at most {} bytes, the file has {len}", limits::WTNS_BYTES_MAX);
            return Err(FormatError::whole(problem, None).in_file(path));
        }
        // The file is read into the memory that the values will stay in, so that no second copy of the secret exists.
        let count = (len as usize).div_ceil(32);
        let mut buffer = room(count).filter(|room| room.len() >= count).ok_or_else(|| no_room(len)).in_file(path)?;
        let bytes = &mut bytemuck::cast_slice_mut(&mut buffer[..])[..len as usize];
        file.read_exact(bytes).map_err(|e| FormatError::io(path, "read", e))?;
        let (curve, section) = values_section(bytes).in_file(path)?;
        let (start, len) = (section.offset(), section.rest());
        bytes.copy_within(start..start + len, 0);
        buffer.truncate(len / 32);
        check_values(&buffer, curve, section_place(start)).in_file(path)?;
        Ok(Self { curve, values: buffer })
    }

    /// Reads a witness from the bytes of its file.
    ///
    /// # Errors
    /// The first thing found that is not as the format says.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let (curve, mut section) = values_section(bytes)?;
        let start = section.offset();
        let bytes = section.take(section.rest(), "values")?;
        let mut values = HostBuf::zeros(bytes.len() / 32).map_err(|_| no_room(bytes.len() as u64))?;
        bytemuck::cast_slice_mut(&mut values[..]).copy_from_slice(bytes);
        check_values(&values, curve, section_place(start))?;
        Ok(Self { curve, values })
    }

    /// Writes a witness file as snarkjs does.
    ///
    /// # Errors
    /// Writing fails; more than 2^32 - 1 values.
    pub fn write(out: impl Write, curve: CurveId, values: &[Canonical]) -> io::Result<()> {
        let count = u32::try_from(values.len()).map_err(|_| crate::container::misuse("more than 2^32 - 1 values"))?;
        let mut out = ContainerWriter::new(out, FileKind::Wtns, 2, 2)?;
        out.section(1, 40)?;
        out.write(&32u32.to_le_bytes())?;
        out.write(bytemuck::cast_slice(modulus::scalar(curve)))?;
        out.write(&count.to_le_bytes())?;
        out.section(2, values.len() as u64 * 32)?;
        out.write(bytemuck::cast_slice(values))?;
        out.finish().map(drop)
    }
}

fn no_room(len: u64) -> FormatError {
    FormatError::whole(format!("the witness needs {len} bytes of memory, more than there is"), None)
}

/// The curve and the section of the values, of the length that the header says.
fn values_section(bytes: &[u8]) -> Result<(CurveId, Reader<'_>)> {
    let file = Container::parse(bytes, FileKind::Wtns)?;
    let mut header = file.section(1)?;
    let curve = header.modulus("scalar field modulus", modulus::curve_of_scalar)?;
    let count = header.u32("number of values")?;
    if count == 0 {
        return Err(header.error_before(4, "expected at least the leading 1, found no value"));
    }
    header.end()?;
    let values = file.section(2)?;
    if values.rest() as u64 != u64::from(count) * 32 {
        return Err(values.error(format!("expected {count} values of 32 bytes, found {} bytes", values.rest())));
    }
    Ok((curve, values))
}

fn section_place(start: usize) -> Place {
    Place { section: Some((2, FileKind::Wtns.section_name(2))), offset: Some(start as u64), ..Place::default() }
}

fn check_values(values: &[Canonical], curve: CurveId, start: Place) -> Result<()> {
    let at = |index: usize, problem: String| {
        let offset = start.offset.map(|o| o + index as u64 * 32);
        Err(FormatError::at(Place { index: Some(("value", index as u64)), offset, ..start.clone() }, problem))
    };
    let r = modulus::scalar(curve);
    if let Some(index) = values.par_iter().position_first(|v| !modulus::is_below(&v.0, r)) {
        return at(index, format!("expected a value below the scalar field modulus of {curve}, found a larger one"));
    }
    if values.first() != Some(&Canonical([1, 0, 0, 0])) {
        return at(0, "expected the first value of a witness to be 1, found another".into());
    }
    Ok(())
}
