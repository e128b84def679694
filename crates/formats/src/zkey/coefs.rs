//! Section 4: the matrices A and B of the circuit, entry by entry.

use super::ZkeyHeader;
use crate::container::Reader;
use crate::error::{FormatError, Place, Result, MORE_MEMORY};
use crate::kind::FileKind;
use crate::modulus;
use rayon::prelude::*;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use tandem_ops::{memory, Curve, Mont2, SparseRows};

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
    place: Place,
    domain_size: u32,
    n_vars: u32,
    modulus: &'static [u64; 4],
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
        Ok(Self::of(section.take(section.rest(), "coefficients")?, place, header))
    }

    /// Entries that lie at `place`, as the header and the head of their section say.
    pub(super) fn of<C: Curve>(bytes: &'a [u8], place: Place, header: &ZkeyHeader<C>) -> Self {
        let modulus = modulus::scalar(C::ID);
        Self { bytes, place, domain_size: header.domain_size, n_vars: header.n_vars, modulus }
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
        // Several parts for each thread even out the work.
        let parts = rayon::current_num_threads() * 4;
        if let Some(m) = self.by_parts(self.bytes, parts)? {
            return Ok(m);
        }
        // snarkjs writes rows in order. For a file that does not, a stable sort by row brings it to that form.
        let mut order = room(self.len())?;
        order.extend(0..self.len() as u32);
        order.par_sort_by_key(|&i| Coef::read(&self.bytes[i as usize * ENTRY..][..ENTRY]).constraint);
        let mut sorted = room(self.bytes.len())?;
        order.iter().for_each(|&i| sorted.extend_from_slice(&self.bytes[i as usize * ENTRY..][..ENTRY]));
        self.by_parts(&sorted, parts)?.ok_or_else(|| FormatError::at(self.place.clone(), "expected sortable rows"))
    }

    /// The matrices, or `None` if the rows are not in order.
    fn by_parts(&self, bytes: &[u8], parts: usize) -> Result<Option<Matrices>> {
        let cuts = row_cuts(bytes, parts);
        let seed = RandomState::new().hash_one(0u8);
        let parts: Vec<_> =
            cuts.par_windows(2).map(|w| self.read_part(&bytes[w[0] * ENTRY..w[1] * ENTRY], w[0], seed)).collect();
        // Not collected into a `Result` in parallel: the first error of the file is the one to report.
        let parts = parts.into_iter().collect::<Result<Vec<Part>>>()?;
        let mut ranges = parts.iter().filter_map(|p| p.range);
        let mut end = ranges.next().map(|(_, last)| last);
        let in_order = ranges.all(|(first, last)| end.replace(last).is_some_and(|end| end < first));
        if !in_order || !parts.iter().all(|p| p.sorted) {
            return Ok(None);
        }
        join(parts, self.n_vars as usize, seed).map(Some)
    }

    /// Checks and groups the entries of a part; `first_index` is the index of its first entry in the file.
    fn read_part(&self, bytes: &[u8], first_index: usize, seed: u64) -> Result<Part> {
        let mut part = Part { sorted: true, ..Part::default() };
        let mut distinct = Distinct::new(seed);
        for (i, entry) in bytes.chunks_exact(ENTRY).enumerate() {
            let coef = Coef::read(entry);
            if let Some(problem) = self.problem(&coef) {
                let index = (first_index + i) as u64;
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
            push(&mut rows.value, distinct.index_of(coef.value)?)?;
        }
        part.values = distinct.values;
        Ok(part)
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

/// Cuts the entries into about `parts` parts, never within a row; the indexes of the cuts, both ends included.
fn row_cuts(bytes: &[u8], parts: usize) -> Vec<usize> {
    let count = bytes.len() / ENTRY;
    let row = |i: usize| Coef::read(&bytes[i * ENTRY..][..ENTRY]).constraint;
    let mut cuts = vec![0];
    for part in 1..parts {
        let mut cut = (count / parts * part).max(cuts[cuts.len() - 1]);
        while cut > 0 && cut < count && row(cut) == row(cut - 1) {
            cut += 1;
        }
        cuts.push(cut);
    }
    cuts.push(count);
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
        let (column, value) = (concat(|r| &r.column)?, concat(|r| &r.value)?);
        Ok(SparseRows { columns, starts, column, value, values })
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
        let coefs = Coefs {
            bytes: &bytes,
            place: Place::default(),
            domain_size: ENTRIES,
            n_vars: 7,
            modulus: modulus::scalar(CurveId::Bn254),
        };
        let found = coefs.matrices()?;
        assert_eq!((found.a.column.len() + found.b.column.len(), found.a.values.len()), (bytes.len() / ENTRY, 300_000));
        Ok(())
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
