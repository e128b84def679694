//! Section 4: the matrices A and B of the circuit, entry by entry.

use super::ZkeyHeader;
use crate::container::{Input, Reader};
use crate::error::{FormatError, Place, Result, MORE_MEMORY};
use crate::kind::FileKind;
use crate::modulus;
use rayon::prelude::*;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Range;
use tandem_ops::memory::{self, Pages};
use tandem_ops::{Curve, Mont2, SparseRows};

/// Bytes of an entry: matrix, constraint and signal of 4 each, the value of 32.
pub(super) const ENTRY: usize = 44;

/// One entry of A or B.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coef {
    /// 0 for A, 1 for B.
    pub matrix: u32,
    /// The row.
    pub constraint: u32,
    /// The column: an index into the witness.
    pub signal: u32,
    /// The value times R^2.
    pub value: Mont2,
}

impl Coef {
    fn read(entry: &[u8]) -> Self {
        let word = |at| bytemuck::pod_read_unaligned(&entry[at..at + 4]);
        let value = Mont2(bytemuck::pod_read_unaligned(&entry[12..ENTRY]));
        Self { matrix: word(0), constraint: word(4), signal: word(8), value }
    }

    pub(super) fn to_bytes(self) -> [u8; ENTRY] {
        let mut out = [0; ENTRY];
        out[..4].copy_from_slice(&self.matrix.to_le_bytes());
        out[4..8].copy_from_slice(&self.constraint.to_le_bytes());
        out[8..12].copy_from_slice(&self.signal.to_le_bytes());
        out[12..].copy_from_slice(bytemuck::bytes_of(&self.value));
        out
    }
}

/// The entries as the file holds them. [`Coefs::iter`] gives them unchecked, [`Coefs::matrices`] checks all.
#[derive(Debug, Clone)]
pub struct Coefs<'a> {
    bytes: &'a [u8],
    limits: Limits,
}

/// The matrices A and B by rows. Both have one row for each constraint that has an entry in either, those that bind the
/// public values included.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Matrices {
    /// A.
    pub a: SparseRows,
    /// B.
    pub b: SparseRows,
}

impl<'a> Coefs<'a> {
    pub(super) fn read<C: Curve>(mut section: Reader<'a>, header: &ZkeyHeader<C>) -> Result<Self> {
        Self::count(&mut section)?;
        let place = section.place();
        Ok(Self { bytes: section.take(section.rest(), "coefficients")?, limits: Limits::of(place, header) })
    }

    /// How many entries a section says it has, and has.
    pub(super) fn count(section: &mut Reader<'_>) -> Result<u32> {
        let count = section.u32("number of coefficients")?;
        if section.rest() as u64 != u64::from(count) * ENTRY as u64 {
            let problem = format!("expected {count} coefficients of {ENTRY} bytes, found {} bytes", section.rest());
            return Err(section.error(problem));
        }
        Ok(count)
    }

    /// How many of some entries are A's, and how many are B's; they begin with that of index `first` of those at `start` of the file.
    pub(super) fn count_by_matrix(entries: &[u8], start: u64, first: u64) -> Result<[u64; 2]> {
        let mut counts = [0; 2];
        for (index, entry) in (first..).zip(entries.chunks_exact(ENTRY)) {
            let matrix = Coef::read(entry).matrix;
            let Some(count) = counts.get_mut(matrix as usize) else {
                let section = Some((4, FileKind::Zkey.section_name(4)));
                let offset = Some(start + index * ENTRY as u64);
                let place = Place { section, index: Some(("coefficient", index)), offset, member: None };
                return Err(FormatError::at(place, not_a_matrix(matrix)));
            };
            *count += 1;
        }
        Ok(counts)
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.bytes.len() / ENTRY
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The entries in the order of the file, unchecked.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Coef> + 'a {
        self.bytes.chunks_exact(ENTRY).map(Coef::read)
    }

    /// Checks all entries and sorts them into rows, in parallel.
    ///
    /// # Errors
    /// The first entry with a matrix, a row, a column or a value out of range.
    pub fn matrices(&self) -> Result<Matrices> {
        self.limits.matrices(&self.bytes, 0..self.bytes.len())
    }
}

/// What entries must be.
#[derive(Debug, Clone)]
pub(super) struct Limits {
    place: Place,
    domain_size: u32,
    n_vars: u32,
    modulus: &'static [u64; 4],
}

impl Limits {
    /// Those of entries at `place`.
    pub(super) fn of<C: Curve>(place: Place, header: &ZkeyHeader<C>) -> Self {
        let modulus = modulus::scalar(C::ID);
        Self { place, domain_size: header.domain_size, n_vars: header.n_vars, modulus }
    }

    /// Checks the entries in these bytes of `input` and sorts them into rows, in parallel, reading them piece by piece.
    ///
    /// # Errors
    /// As for [`Coefs::matrices`]; `input` cannot be read.
    pub(super) fn matrices(&self, input: &impl Input, bytes: Range<usize>) -> Result<Matrices> {
        // Several parts for each thread even out the work.
        let parts = rayon::current_num_threads() * 4;
        if let Some(m) = self.by_parts(input, bytes.clone(), parts)? {
            return Ok(m);
        }
        // snarkjs writes rows in order. For a file that does not, a stable sort by row brings it to that form.
        let no_room = || {
            let problem = format!("the coefficients need {} bytes of memory, more than there is", bytes.len());
            FormatError::whole(problem, Some(MORE_MEMORY))
        };
        let mut all = Pages::zeros(bytes.len()).ok_or_else(no_room)?;
        let all = &mut all[..bytes.len()];
        input.look(all, bytes.start as u64)?;
        let mut order = room(all.len() / ENTRY)?;
        order.extend(0..(all.len() / ENTRY) as u32);
        order.par_sort_by_key(|&i| Coef::read(&all[i as usize * ENTRY..][..ENTRY]).constraint);
        let mut sorted = room(all.len())?;
        order.iter().for_each(|&i| sorted.extend_from_slice(&all[i as usize * ENTRY..][..ENTRY]));
        let sorted = self.by_parts(&&sorted[..], 0..sorted.len(), parts)?;
        sorted.ok_or_else(|| FormatError::at(self.place.clone(), "expected sortable rows"))
    }

    /// The matrices, or `None` if the rows are not in order.
    fn by_parts(&self, input: &impl Input, bytes: Range<usize>, parts: usize) -> Result<Option<Matrices>> {
        let cuts = cuts(bytes.start, bytes.len() / ENTRY, parts);
        let seed = RandomState::new().hash_one(0u8);
        let parts: Vec<_> = cuts.par_windows(2).map(|w| self.read_part(input, bytes.start, w[0]..w[1], seed)).collect();
        // Not collected into a `Result` in parallel: the first error of the file is the one to report.
        let parts = parts.into_iter().collect::<Result<Vec<Part>>>()?;
        let mut ranges = parts.iter().filter_map(|p| p.range);
        let mut end = ranges.next().map(|(_, last)| last);
        let in_order = ranges.all(|(first, last)| end.replace(last).is_some_and(|end| end <= first));
        if !in_order || !parts.iter().all(|p| p.sorted) {
            return Ok(None);
        }
        join(parts, self.n_vars as usize, seed).map(Some)
    }

    /// Checks and groups `entries`, of those that begin at byte `start` of `input`.
    fn read_part(&self, input: &impl Input, start: usize, entries: Range<usize>, seed: u64) -> Result<Part> {
        let mut part = Part { sorted: true, ..Part::default() };
        let mut distinct = Distinct::new(seed);
        let (mut at, end) = (start + entries.start * ENTRY, start + entries.end * ENTRY);
        let (mut index, mut buffer) = (entries.start as u64, room(PIECE + ENTRY)?);
        while at < end {
            // Behind what is left of the piece before: the start of an entry that goes on in this one.
            let (left, piece) = (buffer.len(), at..end.min((at / PIECE + 1) * PIECE));
            buffer.resize(left + piece.len(), 0);
            input.look(&mut buffer[left..], at as u64)?;
            at = piece.end;
            let whole = buffer.len() / ENTRY * ENTRY;
            for entry in buffer[..whole].chunks_exact(ENTRY) {
                self.take(&mut part, &mut distinct, Coef::read(entry), index)?;
                index += 1;
            }
            buffer.drain(..whole);
        }
        part.values = distinct.values;
        Ok(part)
    }

    /// Takes the next entry of a part, which is number `index` of the file.
    fn take(&self, part: &mut Part, distinct: &mut Distinct, coef: Coef, index: u64) -> Result<()> {
        if let Some(problem) = self.problem(&coef) {
            let offset = self.place.offset.map(|o| o + index * ENTRY as u64);
            let place = Place { index: Some(("coefficient", index)), offset, ..self.place.clone() };
            return Err(FormatError::at(place, problem));
        }
        let (first, last) = part.range.unwrap_or((coef.constraint, coef.constraint));
        part.sorted &= last <= coef.constraint;
        part.range = Some((first, coef.constraint));
        let rows = &mut part.matrices[coef.matrix as usize];
        match rows.lengths.last_mut() {
            Some((row, length)) if *row == coef.constraint => *length += 1,
            _ => push(&mut rows.lengths, (coef.constraint, 1))?,
        }
        push(&mut rows.column, coef.signal)?;
        push(&mut rows.value, distinct.index_of(coef.value)?)
    }

    fn problem(&self, coef: &Coef) -> Option<String> {
        if coef.matrix > 1 {
            return Some(not_a_matrix(coef.matrix));
        }
        if coef.constraint >= self.domain_size {
            return Some(format!(
                "expected a constraint below the domain's {}, found {}",
                self.domain_size, coef.constraint
            ));
        }
        if coef.signal >= self.n_vars {
            return Some(format!("expected a signal below the {} of the circuit, found {}", self.n_vars, coef.signal));
        }
        if !modulus::is_below(&coef.value.0, self.modulus) {
            return Some("expected a value below the scalar field modulus, found a larger one".into());
        }
        None
    }
}

fn not_a_matrix(found: u32) -> String {
    format!("expected matrix 0 or 1, found {found}")
}

/// The entries of some rows, in order.
#[derive(Default)]
struct Part {
    /// First and last row; `None` without entries.
    range: Option<(u32, u32)>,
    sorted: bool,
    matrices: [PartRows; 2],
    values: Vec<Mont2>,
}

#[derive(Default)]
struct PartRows {
    /// Each row that has entries, and how many.
    lengths: Vec<(u32, u32)>,
    column: Vec<u32>,
    /// Index into the part's values.
    value: Vec<u32>,
}

/// Bytes that a part reads at a time: a piece of the file that begins at a multiple of it, so that a file that is read in blocks is read once.
const PIECE: usize = 1 << 20;

/// Cuts `count` entries, the first of which is at byte `start`, into `parts` or fewer, near the borders of pieces; the indexes of the cuts,
/// both ends included. A row may go on in the next part.
fn cuts(start: usize, count: usize, parts: usize) -> Vec<usize> {
    let pieces = start / PIECE..(start + count * ENTRY).div_ceil(PIECE);
    let border = |part: usize| pieces.start + pieces.len() * part / parts;
    let cut = |part: usize| ((border(part) * PIECE).saturating_sub(start).div_ceil(ENTRY)).min(count);
    let mut cuts: Vec<usize> = (1..parts).map(cut).chain([0, count]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

/// Room for so many elements.
fn room<T>(len: usize) -> Result<Vec<T>> {
    memory::reserve("coefficients", len).map_err(|e| FormatError::whole(e.to_string(), Some(MORE_MEMORY)))
}

/// Appends to a vector, which doubles its room where it is full.
fn push<T>(to: &mut Vec<T>, element: T) -> Result<()> {
    if to.len() == to.capacity() {
        let more = to.len().max(1 << 10);
        let refused = |_| FormatError::whole("there is no memory for its coefficients", Some(MORE_MEMORY));
        to.try_reserve_exact(more).map_err(refused)?;
    }
    to.push(element);
    Ok(())
}

/// Puts parts in order of their rows together.
fn join(mut parts: Vec<Part>, columns: usize, seed: u64) -> Result<Matrices> {
    // The parts' own values become the matrices' common ones, in order of first appearance.
    let mut distinct = Distinct::new(seed);
    let number = |part: &Part| -> Result<Vec<u32>> {
        let mut numbers = room(part.values.len())?;
        part.values.iter().try_for_each(|&v| distinct.index_of(v).map(|index| numbers.push(index)))?;
        Ok(numbers)
    };
    let renumbered = parts.iter().map(number).collect::<Result<Vec<Vec<u32>>>>()?;
    parts.par_iter_mut().zip(&renumbered).for_each(|(part, new)| {
        for rows in &mut part.matrices {
            rows.value.iter_mut().for_each(|v| *v = new[*v as usize]);
        }
    });
    let n_rows = parts.iter().filter_map(|p| p.range).next_back().map_or(0, |(_, last)| last as usize + 1);
    let matrix = |m: usize, values: Vec<Mont2>| -> Result<SparseRows> {
        let rows = || parts.iter().map(move |p| &p.matrices[m]);
        let mut starts = room(n_rows + 1)?;
        let mut entries = 0;
        for &(row, length) in rows().flat_map(|r| &r.lengths) {
            starts.resize(row as usize + 1, entries);
            entries += length;
        }
        starts.resize(n_rows + 1, entries);
        let concat = |of: fn(&PartRows) -> &Vec<u32>| -> Result<Vec<u32>> {
            let mut all = room(entries as usize)?;
            rows().for_each(|r| all.extend_from_slice(of(r)));
            Ok(all)
        };
        let (column, value) = rayon::join(|| concat(|r| &r.column), || concat(|r| &r.value));
        Ok(SparseRows { columns, starts, column: column?, value: value?, values })
    };
    let mut values = room(distinct.values.len())?;
    values.extend_from_slice(&distinct.values);
    let (a, b) = rayon::join(|| matrix(0, values), || matrix(1, distinct.values));
    Ok(Matrices { a: a?, b: b? })
}

/// Numbers different values in order of first appearance.
struct Distinct {
    values: Vec<Mont2>,
    index: HashMap<Key, u32, Seed>,
}

impl Distinct {
    fn new(seed: u64) -> Self {
        Self { values: Vec::new(), index: HashMap::with_hasher(Seed(seed)) }
    }

    fn index_of(&mut self, value: Mont2) -> Result<u32> {
        // Most coefficients of a circuit are 1 or -1, which are among the first: a comparison is cheaper than a hash.
        if let Some(index) = self.values.iter().take(4).position(|v| *v == value) {
            return Ok(index as u32);
        }
        let refused = |_| FormatError::whole("there is no memory for its coefficients", Some(MORE_MEMORY));
        self.index.try_reserve(1).map_err(refused)?;
        let next = self.values.len() as u32;
        let index = *self.index.entry(Key(value.0)).or_insert(next);
        if index == next {
            push(&mut self.values, value)?;
        }
        Ok(index)
    }
}

#[derive(PartialEq, Eq)]
struct Key([u64; 4]);

impl std::hash::Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.iter().for_each(|&limb| state.write_u64(limb));
    }
}

/// A fast hash of limbs: each is multiplied into 128 bits and folded. The secret start keeps a file from being made to
/// collide.
#[derive(Clone, Copy)]
struct Seed(u64);

impl BuildHasher for Seed {
    type Hasher = Fold;
    fn build_hasher(&self) -> Fold {
        Fold(self.0)
    }
}

struct Fold(u64);

impl Hasher for Fold {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.write_u64(b.into()));
    }
    fn write_u64(&mut self, limb: u64) {
        // Binary digits of pi, made odd: any odd number with well-mixed bits serves.
        let product = u128::from(self.0 ^ limb) * 0x2443_f6a8_885a_308d;
        self.0 = (product as u64 ^ (product >> 64) as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use tandem_ops::{threads, CurveId};

    const ENTRIES: u32 = 300_000;

    /// As many entries, of different values, in or out of the order of rows.
    fn matrices(is_sorted: bool) -> Result<()> {
        let mut bytes = Vec::new();
        if bytes.try_reserve_exact(ENTRIES as usize * ENTRY).is_err() || threads::ready().is_err() {
            println!("nothing tried");
            return Ok(());
        }
        for i in 0..ENTRIES {
            let constraint = if is_sorted { i } else { ENTRIES - 1 - i };
            let value = Mont2([i.into(), 1, 2, 3]);
            bytes.extend(Coef { matrix: i % 2, constraint, signal: i % 7, value }.to_bytes());
        }
        let modulus = modulus::scalar(CurveId::Bn254);
        let limits = Limits { place: Place::default(), domain_size: ENTRIES, n_vars: 7, modulus };
        let coefs = Coefs { bytes: &bytes, limits };
        let found = coefs.matrices()?;
        assert_eq!((found.a.column.len() + found.b.column.len(), found.a.values.len()), (bytes.len() / ENTRY, 300_000));
        Ok(())
    }

    /// Cuts are in order, none is made twice, and between two of them, but for the ends, lie whole pieces but for an entry.
    #[test]
    fn parts_are_made_of_pieces() {
        for start in [0, 1, PIECE - 3, 7 * PIECE + 100] {
            for count in [0, 1, 2, PIECE / ENTRY, 3 * PIECE / ENTRY + 1, 40 * PIECE / ENTRY] {
                for parts in [1, 2, 8, 64] {
                    let cuts = cuts(start, count, parts);
                    assert!((cuts[0], cuts[cuts.len() - 1]) == (0, count) && cuts.len() <= parts + 1);
                    assert!(cuts.is_sorted_by(|a, b| a < b) && (count == 0) == (cuts.len() == 1));
                    let inner = cuts.iter().filter(|&&cut| cut > 0 && cut < count);
                    inner.for_each(|cut| assert!((start + cut * ENTRY) % PIECE < ENTRY));
                    assert!(count < 30 * PIECE / ENTRY || cuts.len() >= parts.min(30), "{cuts:?} of {parts}");
                }
            }
        }
    }

    /// Entries of rows of many lengths, those that go on in other parts among them, wherever they begin in the file.
    #[test]
    fn rows_go_on_in_the_next_part() {
        threads::ready().unwrap();
        let modulus = modulus::scalar(CurveId::Bn254);
        let limits = Limits { place: Place::default(), domain_size: 1 << 20, n_vars: 7, modulus };
        let (mut bytes, mut expected) = (vec![0; 99], Matrices::default());
        for m in [&mut expected.a, &mut expected.b] {
            (m.columns, m.starts) = (7, vec![0]);
        }
        // The longest is longer than a part.
        for (row, length) in [3, 0, 70_000, 1, 1, 0, 40_000, 2].into_iter().enumerate() {
            for i in 0..length {
                let (matrix, signal, value) = (i % 3 / 2, i % 7, i % 5);
                let (constraint, value) = (row as u32, Mont2([value.into(), 0, 0, 0]));
                bytes.extend(Coef { matrix, constraint, signal, value }.to_bytes());
                let of = if matrix == 0 { &mut expected.a } else { &mut expected.b };
                of.column.push(signal);
                of.value.push(i % 5);
            }
            for m in [&mut expected.a, &mut expected.b] {
                m.starts.push(m.column.len() as u32);
            }
        }
        let plain = |m: &SparseRows| -> Vec<(u32, Mont2)> {
            m.column.iter().zip(&m.value).map(|(&column, &value)| (column, m.values[value as usize])).collect()
        };
        let values: Vec<_> = (0..5).map(|i| Mont2([i, 0, 0, 0])).collect();
        (expected.a.values, expected.b.values) = (values.clone(), values);
        for parts in [1, 2, 3, 8, 64] {
            let found = limits.by_parts(&&bytes[..], 99..bytes.len(), parts).unwrap().unwrap();
            for (found, expected) in [(&found.a, &expected.a), (&found.b, &expected.b)] {
                assert!(found.starts == expected.starts && found.columns == 7 && found.check().is_ok());
                assert!(plain(found) == plain(expected), "{parts} parts");
            }
        }
    }

    /// Runs itself again with less and more memory: there an allocation that nobody guards ends the process.
    #[test]
    fn too_little_memory_is_an_error() {
        const NAME: &str = "TANDEM_TEST_LIMITED_COEFFICIENTS";
        if let Ok(order) = std::env::var(NAME) {
            match matrices(order == "sorted") {
                Ok(()) => println!("made"),
                Err(error) if error.to_string().contains("memory") => println!("refused"),
                Err(other) => panic!("{other}"),
            }
            return;
        }
        for order in ["sorted", "unsorted"] {
            let (mut made, mut refused) = (0, 0);
            for mib in (16..120).step_by(4).chain([1000]) {
                let mut limited = Command::new("sh");
                limited.args(["-c", &format!("ulimit -d {}; exec \"$@\"", mib << 10), "sh"]);
                limited.arg(std::env::current_exe().unwrap());
                limited.args(["--exact", "zkey::coefs::tests::too_little_memory_is_an_error", "--nocapture"]);
                limited.args(["--test-threads", "1"]).env(NAME, order);
                // Small stacks: they count as data, too.
                limited.env("RAYON_NUM_THREADS", "2").env("RUST_MIN_STACK", "1048576").env("MALLOC_ARENA_MAX", "1");
                let output = limited.output().unwrap();
                let said = String::from_utf8_lossy(&output.stdout);
                let errors = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{order}, {mib} MiB: {said}{errors}");
                made += usize::from(said.contains("made"));
                refused += usize::from(said.contains("refused"));
            }
            assert!(made > 0 && refused > 3, "{order}: {made} made, {refused} refused");
        }
    }
}
