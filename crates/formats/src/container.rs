//! The binary container that zkey, wtns, r1cs and ptau files share.
//!
//! ```text
//! magic: 4 bytes | version: u32 | sections: u32 | sections x { id: u32 | length: u64 | length bytes }
//! ```
//!
//! All integers are little-endian. Sections follow one another and may come in any order, so two of them cannot
//! overlap, and a wrong length shows as a section that ends outside the file or as a table that does not fill it.
//! snarkjs ignores bytes after the last section; here they are an error, since only a damaged or joined file has them.

use crate::error::{FormatError, Place, Result, MORE_MEMORY};
use crate::file::RegularFile;
use crate::kind::{FileKind, OtherSystem};
use crate::limits;
use std::io::{self, Write};
use std::ops::Range;
use tandem_ops::{memory, CurveId};

impl FileKind {
    fn magic(self) -> Option<&'static [u8; 4]> {
        match self {
            FileKind::Zkey | FileKind::ZkeyOf(_) => Some(b"zkey"),
            FileKind::Wtns => Some(b"wtns"),
            FileKind::R1cs => Some(b"r1cs"),
            FileKind::Ptau => Some(b"ptau"),
            _ => None,
        }
    }

    /// Newest version of the container that snarkjs 0.7.6 reads.
    fn version_max(self) -> u32 {
        match self {
            FileKind::Zkey | FileKind::ZkeyOf(_) | FileKind::Wtns => 2,
            _ => 1,
        }
    }

    /// The name of a section.
    pub fn section_name(self, id: u32) -> &'static str {
        if (self, id) == (FileKind::Wtns, crate::wtns::SIDES) {
            return "sides";
        }
        let names: &[&str] = match self {
            FileKind::Zkey => &[
                "protocol",
                "Groth16 header",
                "IC",
                "coefficients",
                "A points",
                "B1 points",
                "B2 points",
                "C points",
                "H points",
                "contributions",
            ],
            FileKind::ZkeyOf(OtherSystem::Plonk) => &[
                "protocol",
                "PLONK header",
                "additions",
                "A signals",
                "B signals",
                "C signals",
                "Qm",
                "Ql",
                "Qr",
                "Qo",
                "Qc",
                "permutation",
                "Lagrange polynomials",
                "powers of tau",
            ],
            FileKind::ZkeyOf(OtherSystem::Fflonk) => &[
                "protocol",
                "FFLONK header",
                "additions",
                "A signals",
                "B signals",
                "C signals",
                "QL",
                "QR",
                "QM",
                "QO",
                "QC",
                "S1",
                "S2",
                "S3",
                "Lagrange polynomials",
                "powers of tau",
                "C0",
            ],
            FileKind::Wtns => &["header", "values"],
            FileKind::R1cs => &["header", "constraints", "wire to label map", "custom gates", "custom gate uses"],
            FileKind::Ptau => {
                &["header", "tau G1", "tau G2", "alpha tau G1", "beta tau G1", "beta G2", "contributions"]
            }
            _ => &[],
        };
        (id as usize).checked_sub(1).and_then(|i| names.get(i)).copied().unwrap_or("unknown")
    }
}

/// Fails unless `bytes` begin as a file of this kind does.
pub(crate) fn expect_kind(bytes: &[u8], expected: FileKind) -> Result<()> {
    match FileKind::of(bytes) {
        Some(kind) if kind == expected => Ok(()),
        // Which system a key is for stands in a section that may come last.
        Some(FileKind::Zkey) if matches!(expected, FileKind::ZkeyOf(_)) => Ok(()),
        found => Err(FileKind::refuse(found, expected.describe())),
    }
}

/// One section of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    /// Its number; what it holds depends on the kind of file.
    pub id: u32,
    /// Offset of its first byte in the file.
    pub offset: usize,
    /// Its length in bytes.
    pub len: usize,
}

/// Bytes that can be looked at in places.
#[allow(clippy::len_without_is_empty)]
pub trait Input: Sync {
    /// Their number.
    fn len(&self) -> u64;
    /// Fills `bytes` with those from `at` on, none of which lies past the end.
    ///
    /// # Errors
    /// They cannot be read.
    fn look(&self, bytes: &mut [u8], at: u64) -> Result<()>;
}

impl Input for &[u8] {
    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }
    fn look(&self, bytes: &mut [u8], at: u64) -> Result<()> {
        bytes.copy_from_slice(&self[at as usize..][..bytes.len()]);
        Ok(())
    }
}

impl Input for RegularFile {
    fn len(&self) -> u64 {
        self.len()
    }
    fn look(&self, bytes: &mut [u8], at: u64) -> Result<()> {
        self.read_at(bytes, at)
    }
}

/// The version and the sections of a container.
fn table(input: &impl Input, kind: FileKind) -> Result<(u32, Vec<Section>)> {
    let len = input.len();
    let mut start = vec![0; limits::HEAD_BYTES.min(usize::try_from(len).unwrap_or(usize::MAX))];
    input.look(&mut start, 0)?;
    let (version, count) = read_start(&start, kind)?;
    let mut at = START_BYTES as u64;
    let mut sections = Vec::with_capacity(count as usize);
    for index in 0..count {
        let rest = len - at;
        if rest < 12 {
            let place = Place { index: Some(("section header", index.into())), offset: Some(at), ..Place::default() };
            let problem = format!("expected a header of 12 bytes, the file ends after {rest}");
            return Err(FormatError::at(place, problem));
        }
        let mut head = [0; 12];
        input.look(&mut head, at)?;
        at += 12;
        let (id, section) = section_head(&head);
        let (rest, fits) = (len - at, usize::try_from(section).ok());
        let (Some(len), Ok(offset)) = (fits.filter(|_| section <= rest), usize::try_from(at)) else {
            let place = Place { section: Some((id, kind.section_name(id))), offset: Some(at), ..Place::default() };
            return Err(FormatError::at(place, format!("expected {section} bytes, the file ends after {rest}")));
        };
        sections.push(Section { id, offset, len });
        at += section;
    }
    if at != len {
        let problem = format!("expected the end of the file, found {} more bytes", len - at);
        return Err(FormatError::at(Place { offset: Some(at), ..Place::default() }, problem));
    }
    Ok((version, sections))
}

/// Bytes before the first section.
pub(crate) const START_BYTES: usize = 12;

/// The version and the number of sections, from the first bytes of a file.
pub(crate) fn read_start(bytes: &[u8], kind: FileKind) -> Result<(u32, u32)> {
    expect_kind(bytes, kind)?;
    let mut head = Reader { at: 4, ..Reader::of(bytes, 0, None) };
    let version = head.u32("version")?;
    if version == 0 || version > kind.version_max() {
        let problem = format!("expected a version from 1 to {}, found {version}", kind.version_max());
        return Err(head.error_before(4, problem).advise("make the file with snarkjs 0.7 or circom 2"));
    }
    let count = head.u32("number of sections")?;
    if count > limits::SECTIONS_MAX {
        let problem = format!("expected at most {} sections, found {count}", limits::SECTIONS_MAX);
        return Err(head.error_before(4, problem));
    }
    Ok((version, count))
}

/// Number and length of a section.
pub(crate) fn section_head(head: &[u8; 12]) -> (u32, u64) {
    (bytemuck::pod_read_unaligned(&head[..4]), bytemuck::pod_read_unaligned(&head[4..]))
}

/// What is looked at of a file before memory is taken for all of it: its table of sections and the first bytes of each.
#[derive(Debug)]
pub(crate) struct Heads {
    kind: FileKind,
    version: u32,
    sections: Vec<Section>,
    bytes: Vec<Vec<u8>>,
    /// Whether `bytes` are what [`Heads::keep`] was told to keep.
    picked: bool,
}

impl Heads {
    /// Reads them.
    ///
    /// # Errors
    /// As for [`Container::parse`]; the file cannot be read.
    pub(crate) fn read(file: &RegularFile, kind: FileKind) -> Result<Self> {
        Self::with(file, kind, kind == FileKind::Zkey)
    }

    /// Reads them: of the list of contributions no more than of other sections.
    ///
    /// # Errors
    /// As for [`Heads::read`].
    pub(crate) fn starts(file: &impl Input, kind: FileKind) -> Result<Self> {
        Self::with(file, kind, false)
    }

    fn with(file: &impl Input, kind: FileKind, has_list: bool) -> Result<Self> {
        let (version, sections) = table(file, kind)?;
        let bytes = sections.iter().enumerate().map(|(i, section)| {
            // The list of contributions is shown whole.
            let is_list = has_list && section.id == 10 && sections[..i].iter().all(|s| s.id != 10);
            let most = if is_list { limits::CONTRIBUTIONS_BYTES_MAX } else { limits::HEAD_BYTES };
            let mut bytes = vec![0; section.len.min(most)];
            file.look(&mut bytes, section.offset as u64)?;
            Ok(bytes)
        });
        let bytes = bytes.collect::<Result<_>>()?;
        Ok(Self { kind, version, sections, bytes, picked: false })
    }

    /// Reads of each section the ranges that `ranges` gives, which ascend and lie within it: by its number and length. What lies between
    /// them can be passed over ([`Reader::skip`]), and not be taken.
    ///
    /// # Errors
    /// There is no memory for them; the file cannot be read.
    pub(crate) fn keep(&mut self, file: &impl Input, ranges: impl Fn(u32, usize) -> Vec<Range<usize>>) -> Result<()> {
        for (section, kept) in self.sections.iter().zip(&mut self.bytes) {
            let ranges = ranges(section.id, section.len);
            let no_room = |e: tandem_ops::Error| FormatError::whole(e.to_string(), Some(MORE_MEMORY));
            let mut bytes = memory::filled("read key", ranges.iter().map(Range::len).sum(), 0).map_err(no_room)?;
            let mut rest = bytes.as_mut_slice();
            for range in ranges {
                let (part, others) = rest.split_at_mut(range.len());
                file.look(part, (section.offset + range.start) as u64)?;
                rest = others;
            }
            *kept = bytes;
        }
        self.picked = true;
        Ok(())
    }

    /// The file by its heads: values past them cannot be taken.
    pub(crate) fn container(&self) -> Container<'_> {
        let parts = self.bytes.iter().map(Vec::as_slice).collect();
        let (kind, version, picked) = (self.kind, self.version, self.picked);
        Container { parts, kind, version, sections: self.sections.clone(), picked }
    }
}

/// A binary file split into its sections.
#[derive(Debug, Clone)]
pub struct Container<'a> {
    /// The bytes of each section, its first ones, or those that were picked.
    parts: Vec<&'a [u8]>,
    picked: bool,
    /// What kind of file it is.
    pub kind: FileKind,
    /// The version that the file states.
    pub version: u32,
    /// The sections, in the order of the file.
    pub sections: Vec<Section>,
}

impl<'a> Container<'a> {
    /// Reads the table of sections.
    ///
    /// # Errors
    /// Another kind of file, a version or a number of sections that is not supported, or sections that do not fill the
    /// file exactly.
    pub fn parse(bytes: &'a [u8], kind: FileKind) -> Result<Self> {
        let (version, sections) = table(&bytes, kind)?;
        let parts = sections.iter().map(|s| &bytes[s.offset..s.offset + s.len]).collect();
        Ok(Self { parts, kind, version, sections, picked: false })
    }

    /// Whether the file has this section.
    pub fn has(&self, id: u32) -> bool {
        self.sections.iter().any(|s| s.id == id)
    }

    /// The one section with this number.
    pub(crate) fn section(&self, id: u32) -> Result<Reader<'a>> {
        let name = self.kind.section_name(id);
        let place = |s: Option<&Section>| Place {
            section: Some((id, name)),
            offset: s.map(|s| s.offset as u64),
            ..Place::default()
        };
        let mut found = self.sections.iter().zip(&self.parts).filter(|(s, _)| s.id == id);
        let Some((section, bytes)) = found.next() else {
            return Err(FormatError::at(place(None), "expected this section, the file has none"));
        };
        if let Some((second, _)) = found.next() {
            return Err(FormatError::at(place(Some(second)), "expected this section once, found it a second time"));
        }
        let whole = Reader::of(bytes, section.offset, Some((id, name)));
        Ok(Reader { len: section.len, picked: self.picked, ..whole })
    }
}

/// Takes values from the bytes of a section one after the other; no length is trusted.
#[derive(Debug, Clone)]
pub(crate) struct Reader<'a> {
    /// What is in memory: all of it, its head, or all but what will be skipped.
    bytes: &'a [u8],
    /// Whether `bytes` are without those that are skipped.
    picked: bool,
    /// Bytes skipped that are not among `bytes`.
    skipped: usize,
    /// Bytes of the section.
    len: usize,
    /// Offset of `bytes` in the file.
    base: usize,
    at: usize,
    section: Option<(u32, &'static str)>,
}

impl<'a> Reader<'a> {
    /// A reader of `bytes`, which are at `base` of the file.
    pub(crate) fn of(bytes: &'a [u8], base: usize, section: Option<(u32, &'static str)>) -> Self {
        Self { bytes, picked: false, skipped: 0, len: bytes.len(), base, at: 0, section }
    }

    /// Offset in the file of the next byte.
    pub(crate) fn offset(&self) -> usize {
        self.base + self.at
    }

    /// Bytes left.
    pub(crate) fn rest(&self) -> usize {
        self.len - self.at
    }

    /// The place of the next byte.
    pub(crate) fn place(&self) -> Place {
        Place { section: self.section, offset: Some(self.offset() as u64), ..Place::default() }
    }

    /// An error at the next byte.
    pub(crate) fn error(&self, problem: impl Into<String>) -> FormatError {
        FormatError::at(self.place(), problem)
    }

    /// An error at the value of `len` bytes that was just read.
    pub(crate) fn error_before(&self, len: usize, problem: impl Into<String>) -> FormatError {
        let place = Place { offset: Some(self.offset().saturating_sub(len) as u64), ..self.place() };
        FormatError::at(place, problem)
    }

    /// The next `len` bytes.
    pub(crate) fn take(&mut self, len: usize, what: &str) -> Result<&'a [u8]> {
        if len > self.rest() {
            let end = if self.section.is_some() { "section" } else { "file" };
            return Err(self.error(format!("expected {len} bytes ({what}), the {end} ends after {}", self.rest())));
        }
        let at = self.at - self.skipped;
        let Some(bytes) = self.bytes.get(at..at + len) else {
            let problem = format!("expected {what} within the first {} bytes of the section", self.bytes.len());
            return Err(self.error(problem));
        };
        self.at += len;
        Ok(bytes)
    }

    /// Passes over the next `len` bytes, which need not be in memory.
    pub(crate) fn skip(&mut self, len: usize, what: &str) -> Result<()> {
        if len > self.rest() {
            return Err(self.error(format!("expected {len} bytes ({what}), the section ends after {}", self.rest())));
        }
        self.at += len;
        if self.picked {
            self.skipped += len;
        }
        Ok(())
    }

    /// The next little-endian `u32`.
    pub(crate) fn u32(&mut self, what: &str) -> Result<u32> {
        self.take(4, what).map(bytemuck::pod_read_unaligned)
    }

    /// The next little-endian `u64`.
    pub(crate) fn u64(&mut self, what: &str) -> Result<u64> {
        self.take(8, what).map(bytemuck::pod_read_unaligned)
    }

    /// The next field modulus, with its width before it, as one of those that `known` recognises.
    pub(crate) fn modulus(&mut self, what: &str, known: fn(&[u8]) -> Option<CurveId>) -> Result<CurveId> {
        let width = self.u32("width of the modulus")?;
        // No supported field is wider than 48 bytes; 64 lets the message name the modulus of others.
        if width == 0 || width > 64 || width % 8 != 0 {
            return Err(self.error_before(4, format!("expected a {what} of 32 or 48 bytes, found {width}")));
        }
        let bytes = self.take(width as usize, what)?;
        known(bytes).ok_or_else(|| {
            let digits: String = bytes.iter().rev().map(|b| format!("{b:02x}")).collect();
            let problem =
                format!("expected the {what} of bn254 or bls12-381, found 0x{}", digits.trim_start_matches('0'));
            self.error_before(width as usize, problem).advise("make the file for one of these curves")
        })
    }

    /// Fails unless all bytes were taken.
    pub(crate) fn end(&self) -> Result<()> {
        if self.rest() != 0 {
            return Err(self.error(format!("expected the end of the section, found {} more bytes", self.rest())));
        }
        Ok(())
    }
}

/// Writes a container whose section lengths are known before their content.
#[derive(Debug)]
pub(crate) struct ContainerWriter<W> {
    out: W,
    sections_left: u32,
    bytes_left: u64,
}

impl<W: Write> ContainerWriter<W> {
    /// Writes the head of the file.
    pub(crate) fn new(mut out: W, kind: FileKind, version: u32, sections: u32) -> io::Result<Self> {
        let magic = kind.magic().ok_or_else(|| misuse("this kind of file is no container"))?;
        out.write_all(magic)?;
        out.write_all(&version.to_le_bytes())?;
        out.write_all(&sections.to_le_bytes())?;
        Ok(Self { out, sections_left: sections, bytes_left: 0 })
    }

    /// Begins a section of `len` bytes.
    pub(crate) fn section(&mut self, id: u32, len: u64) -> io::Result<()> {
        self.check_section_full()?;
        self.sections_left =
            self.sections_left.checked_sub(1).ok_or_else(|| misuse("more sections than the head of the file says"))?;
        self.out.write_all(&id.to_le_bytes())?;
        self.out.write_all(&len.to_le_bytes())?;
        self.bytes_left = len;
        Ok(())
    }

    /// Writes bytes of the section.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let left = self.bytes_left.checked_sub(bytes.len() as u64);
        self.bytes_left = left.ok_or_else(|| misuse("more bytes than the length of the section says"))?;
        self.out.write_all(bytes)
    }

    /// Ends the file; gives the writer back.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.check_section_full()?;
        if self.sections_left != 0 {
            return Err(misuse("fewer sections than the head of the file says"));
        }
        self.out.flush()?;
        Ok(self.out)
    }

    fn check_section_full(&self) -> io::Result<()> {
        match self.bytes_left {
            0 => Ok(()),
            _ => Err(misuse("fewer bytes than the length of the section says")),
        }
    }
}

/// The caller of a writer broke its contract.
pub(crate) fn misuse(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a writer says that is told of `sections` and writes as `write` does.
    fn says(
        sections: u32,
        write: impl FnOnce(&mut ContainerWriter<Vec<u8>>) -> io::Result<()>,
    ) -> std::result::Result<usize, String> {
        let mut writer = ContainerWriter::new(Vec::new(), FileKind::Wtns, 2, sections).unwrap();
        write(&mut writer).and_then(|()| writer.finish()).map(|out| out.len()).map_err(|e| e.to_string())
    }

    #[test]
    fn writers_keep_to_what_the_head_says() {
        assert_eq!(says(1, |w| w.section(1, 2).and_then(|()| w.write(&[0; 2]))), Ok(12 + 12 + 2));
        assert_eq!(says(0, |_| Ok(())), Ok(12));
        let refused = |said: std::result::Result<usize, String>, part: &str| {
            assert!(said.as_ref().unwrap_err().contains(part), "{said:?}")
        };
        refused(says(1, |_| Ok(())), "fewer sections");
        refused(says(2, |w| w.section(1, 0)), "fewer sections");
        refused(says(1, |w| w.section(1, 0).and_then(|()| w.section(2, 0))), "more sections");
        refused(says(1, |w| w.section(1, 2).and_then(|()| w.write(&[0]))), "fewer bytes");
        refused(says(2, |w| w.section(1, 2).and_then(|()| w.section(2, 0))), "fewer bytes");
        refused(says(1, |w| w.section(1, 2).and_then(|()| w.write(&[0; 3]))), "more bytes");
        assert!(ContainerWriter::new(Vec::new(), FileKind::Json, 1, 1).is_err());
    }
}
