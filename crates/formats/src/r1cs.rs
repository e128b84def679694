//! Constraint systems as circom writes them.
//!
//! ```text
//! 1 header        u32 n8 = 32 | r | u32 n_vars | u32 public outputs | u32 public inputs | u32 private inputs
//!                 | u64 labels | u32 constraints
//! 2 constraints   constraints x 3 x { u32 count | count x { u32 wire | 32 bytes } }:  <A, w> * <B, w> = <C, w>
//! 3 map           n_vars x u64: the label of each wire
//! 4 custom gates  u32 count | count x { name, 0 | u32 count | count x 32 bytes of parameter }
//! 5 their uses    u32 count | count x { u32 gate | u32 count | count x u64 wire }
//! ```
//!
//! Wires are the 1, the public outputs, the public inputs, then all others.

use crate::container::{misuse, Container, ContainerWriter, Heads, Reader};
use crate::error::{FormatError, InFile, Place, Result};
use crate::file::{FileBytes, RegularFile};
use crate::kind::FileKind;
use crate::{limits, modulus};
use rayon::prelude::*;
use std::io::{self, Write};
use std::path::Path;
use tandem_ops::{Canonical, CurveId, Unaligned};

/// Bytes of an entry of a linear combination.
const ENTRY: usize = 36;

/// Constraints of one [`Block`].
const BLOCK: usize = 1 << 12;

/// What the header of a constraint system says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct R1csHeader {
    /// The curve over whose scalars the constraints are.
    pub curve: CurveId,
    /// Wires, that is values of a witness, the leading 1 included.
    pub n_vars: u32,
    /// Public outputs.
    pub n_pub_out: u32,
    /// Public inputs.
    pub n_pub_in: u32,
    /// Private inputs of the program; wires of inputs that circom simplified away are counted too.
    pub n_prv_in: u32,
    /// Signals before simplification.
    pub n_labels: u64,
    /// Constraints.
    pub n_constraints: u32,
}

impl R1csHeader {
    /// Public values, as a zkey counts them.
    pub fn n_public(&self) -> u32 {
        // The reader has checked that the sum is below `n_vars`.
        self.n_pub_out.saturating_add(self.n_pub_in)
    }
}

/// A constraint system as a view of its file. Everything has been checked: counts, wires and values are in range.
#[derive(Clone)]
pub struct R1cs<'a> {
    /// Sizes.
    pub header: R1csHeader,
    /// The label of each wire, where the file has them.
    pub labels: Option<Unaligned<'a, u64>>,
    /// Custom gates (PLONK only); a Groth16 key would leave out what they demand.
    pub custom_gates: Vec<CustomGate>,
    /// How often custom gates are used.
    pub custom_gate_uses: u32,
    constraints: &'a [u8],
    /// Offset of every `BLOCK`-th constraint in `constraints`, and of their end.
    blocks: Vec<usize>,
}

/// A file that holds a constraint system by its header: its wires and constraints are no more than its sections can hold. Their
/// content has not been looked at ([`R1cs::parse`]).
#[derive(Debug)]
pub struct R1csFile {
    file: RegularFile,
    /// Sizes.
    pub header: R1csHeader,
    /// How often custom gates are used.
    pub custom_gate_uses: u32,
}

impl R1csFile {
    /// Looks at a file.
    ///
    /// # Errors
    /// The file cannot be read, or is no constraint system over a supported field; a count is larger than a section can hold.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let file = RegularFile::open(&path)?;
        let look = |heads: Heads| {
            let container = heads.container();
            let header = read_header(container.section(1)?)?;
            check_counts(&container, &header)?;
            let uses = container.has(5).then(|| container.section(5)?.u32("number of uses")).transpose()?;
            Ok((header, uses.unwrap_or(0)))
        };
        let looked = Heads::read(&file, FileKind::R1cs).and_then(look);
        let (header, custom_gate_uses) = looked.in_file(file.path())?;
        Ok(Self { file, header, custom_gate_uses })
    }

    /// Reads all of it, for [`R1cs::parse`].
    ///
    /// # Errors
    /// As for [`RegularFile::read`].
    pub fn read(&self) -> Result<FileBytes> {
        self.file.read()
    }
}

/// A template of custom gates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomGate {
    /// The template's name, as the file has it: show it escaped.
    pub name: String,
    /// Its parameters.
    pub parameters: Vec<Canonical>,
}

/// <A, w> * <B, w> = <C, w>.
#[derive(Debug, Clone, Copy)]
pub struct Constraint<'a> {
    /// A.
    pub a: LinearCombination<'a>,
    /// B.
    pub b: LinearCombination<'a>,
    /// C.
    pub c: LinearCombination<'a>,
}

/// A sum of wires times values.
#[derive(Debug, Clone, Copy)]
pub struct LinearCombination<'a>(&'a [u8]);

impl<'a> LinearCombination<'a> {
    /// How many terms there are.
    pub fn len(&self) -> usize {
        self.0.len() / ENTRY
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Wire and value of each term, in the order of the file. A wire may occur more than once.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u32, Canonical)> + 'a {
        self.0
            .chunks_exact(ENTRY)
            .map(|e| (bytemuck::pod_read_unaligned(&e[..4]), Canonical(bytemuck::pod_read_unaligned(&e[4..ENTRY]))))
    }

    /// Takes a linear combination off the front of `bytes`; `None` if they are too few.
    fn split(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (count, rest) = bytes.split_at_checked(4)?;
        let count: u32 = bytemuck::pod_read_unaligned(count);
        let (terms, rest) = rest.split_at_checked((count as usize).checked_mul(ENTRY)?)?;
        Some((Self(terms), rest))
    }
}

impl<'a> Constraint<'a> {
    fn split(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (a, rest) = LinearCombination::split(bytes)?;
        let (b, rest) = LinearCombination::split(rest)?;
        let (c, rest) = LinearCombination::split(rest)?;
        Some((Self { a, b, c }, rest))
    }
}

/// Constraints that follow one another: the unit of parallel work.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a> {
    /// Index of its first constraint.
    pub first: usize,
    bytes: &'a [u8],
}

impl<'a> Block<'a> {
    /// Its constraints.
    pub fn iter(&self) -> impl Iterator<Item = Constraint<'a>> + 'a {
        let mut rest = self.bytes;
        std::iter::from_fn(move || {
            let (constraint, after) = Constraint::split(rest)?;
            rest = after;
            Some(constraint)
        })
    }
}

impl<'a> R1cs<'a> {
    /// Reads a constraint system and checks all of it, in parallel.
    ///
    /// # Errors
    /// The first thing found that is not as the format says.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let file = Container::parse(bytes, FileKind::R1cs)?;
        let header = read_header(file.section(1)?)?;
        check_counts(&file, &header)?;
        let mut section = file.section(2)?;
        let start = section.place();
        let blocks = split_blocks(section.clone(), header.n_constraints)?;
        let constraints = section.take(section.rest(), "constraints")?;
        let labels = if file.has(3) { Some(read_labels(file.section(3)?, &header)?) } else { None };
        let custom_gates = if file.has(4) { read_custom_gates(file.section(4)?, header.curve)? } else { Vec::new() };
        let custom_gate_uses =
            if file.has(5) { count_uses(file.section(5)?, custom_gates.len(), header.n_vars)? } else { 0 };
        let r1cs = Self { header, labels, custom_gates, custom_gate_uses, constraints, blocks };
        match r1cs.par_blocks().find_map_first(|block| r1cs.problem_in(&block, &start)) {
            Some(error) => Err(error),
            None => Ok(r1cs),
        }
    }

    /// All constraints in order.
    pub fn constraints(&self) -> impl Iterator<Item = Constraint<'a>> + 'a {
        Block { first: 0, bytes: self.constraints }.iter()
    }

    /// The constraints in blocks, for parallel work.
    pub fn par_blocks(&self) -> impl IndexedParallelIterator<Item = Block<'a>> + '_ {
        self.blocks
            .par_windows(2)
            .enumerate()
            .map(|(i, w)| Block { first: i * BLOCK, bytes: &self.constraints[w[0]..w[1]] })
    }

    fn problem_in(&self, block: &Block<'a>, start: &Place) -> Option<FormatError> {
        let r = modulus::scalar(self.header.curve);
        for (i, constraint) in block.iter().enumerate() {
            for lc in [constraint.a, constraint.b, constraint.c] {
                for (wire, value) in lc.iter() {
                    let problem = if wire >= self.header.n_vars {
                        format!("expected a wire below {}, found {wire}", self.header.n_vars)
                    } else if !modulus::is_below(&value.0, r) {
                        "expected a coefficient below the scalar field modulus, found a larger one".into()
                    } else {
                        continue;
                    };
                    let index = Some(("constraint", (block.first + i) as u64));
                    return Some(FormatError::at(Place { index, offset: None, ..start.clone() }, problem));
                }
            }
        }
        None
    }
}

impl std::fmt::Debug for R1cs<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("R1cs").field("header", &self.header).finish_non_exhaustive()
    }
}

fn read_header(mut section: Reader<'_>) -> Result<R1csHeader> {
    let header = R1csHeader {
        curve: section.modulus("scalar field modulus", modulus::curve_of_scalar)?,
        n_vars: section.u32("number of wires")?,
        n_pub_out: section.u32("number of public outputs")?,
        n_pub_in: section.u32("number of public inputs")?,
        n_prv_in: section.u32("number of private inputs")?,
        n_labels: section.u64("number of labels")?,
        n_constraints: section.u32("number of constraints")?,
    };
    section.end()?;
    let public = u64::from(header.n_pub_out) + u64::from(header.n_pub_in);
    if public >= u64::from(header.n_vars) {
        let problem = format!("expected fewer public values than the {} wires, found {public}", header.n_vars);
        return Err(section.error_before(28, problem));
    }
    Ok(header)
}

/// Bounds the counts by what the file holds, so that a few bytes cannot ask for a large key.
fn check_counts(file: &Container<'_>, header: &R1csHeader) -> Result<()> {
    let (n_vars, n_constraints) = (u64::from(header.n_vars), u64::from(header.n_constraints));
    let constraints = file.section(2)?;
    let bytes = constraints.rest() as u64;
    // An empty constraint takes 12 bytes.
    let Some(terms) = bytes.checked_sub(12 * n_constraints).map(|bytes| bytes / ENTRY as u64) else {
        return Err(constraints.error(format!("expected {n_constraints} constraints, found {bytes} bytes")));
    };
    if file.has(3) {
        let labels = file.section(3)?;
        if labels.rest() as u64 != n_vars * 8 {
            return Err(labels.error(format!("expected {n_vars} labels of 8 bytes, found {} bytes", labels.rest())));
        }
    } else if n_vars > terms + 1 {
        // circom always writes the map. Without it, what no constraint names is not there but for the 1.
        let problem = format!(
            "expected at most {} wires in a file without the map of wires to labels, the 1 and one for each term, found {n_vars}",
            terms + 1
        );
        return Err(file.section(1)?.error(problem).advise("compile the circuit with circom 2"));
    }
    Ok(())
}

/// Offsets of the blocks in the section, and of its end.
fn split_blocks(mut section: Reader<'_>, n_constraints: u32) -> Result<Vec<usize>> {
    let start = section.place();
    let bytes = section.take(section.rest(), "constraints")?;
    let mut blocks = Vec::with_capacity(n_constraints as usize / BLOCK + 2);
    let mut rest = bytes;
    for index in 0..n_constraints as usize {
        let at = bytes.len() - rest.len();
        if index % BLOCK == 0 {
            blocks.push(at);
        }
        let Some((_, after)) = Constraint::split(rest) else {
            let offset = start.offset.map(|o| o + at as u64);
            let place = Place { index: Some(("constraint", index as u64)), offset, ..start };
            return Err(FormatError::at(place, "expected a whole constraint, the section ends within it"));
        };
        rest = after;
    }
    if !rest.is_empty() {
        let offset = start.offset.map(|o| o + (bytes.len() - rest.len()) as u64);
        let problem = format!("expected the end of the section, found {} more bytes", rest.len());
        return Err(FormatError::at(Place { offset, ..start }, problem));
    }
    blocks.push(bytes.len());
    Ok(blocks)
}

fn read_labels<'a>(mut section: Reader<'a>, header: &R1csHeader) -> Result<Unaligned<'a, u64>> {
    let start = section.place();
    let labels: Unaligned<u64> = Unaligned::new(section.take(section.rest(), "labels")?)
        .ok_or_else(|| FormatError::at(start.clone(), "expected whole labels"))?;
    if let Some((index, label)) = labels.iter().enumerate().find(|&(_, label)| label >= header.n_labels) {
        let offset = start.offset.map(|o| o + index as u64 * 8);
        let problem = format!("expected a label below {}, found {label}", header.n_labels);
        return Err(FormatError::at(Place { index: Some(("label", index as u64)), offset, ..start }, problem));
    }
    Ok(labels)
}

fn read_custom_gates(mut section: Reader<'_>, curve: CurveId) -> Result<Vec<CustomGate>> {
    let count = section.u32("number of custom gates")?;
    if count > limits::CUSTOM_GATES_MAX {
        let problem = format!("expected at most {} custom gates, found {count}", limits::CUSTOM_GATES_MAX);
        return Err(section.error_before(4, problem));
    }
    let mut gates = Vec::new();
    for _ in 0..count {
        let mut name = Vec::new();
        loop {
            match section.take(1, "name of a custom gate")?[0] {
                0 => break,
                _ if name.len() == limits::CUSTOM_GATE_NAME_MAX => {
                    let max = limits::CUSTOM_GATE_NAME_MAX;
                    return Err(section.error_before(1, format!("expected a name of at most {max} bytes")));
                }
                byte => name.push(byte),
            }
        }
        let n_parameters = section.u32("number of parameters")?;
        let len = (n_parameters as usize).saturating_mul(32);
        let bytes = section.take(len, "parameters")?;
        if modulus::first_not_below::<4>(bytes, modulus::scalar(curve)).is_some() {
            return Err(section.error_before(len, "expected parameters below the scalar field modulus"));
        }
        let parameters = bytes.chunks_exact(32).map(|n| Canonical(bytemuck::pod_read_unaligned(n))).collect();
        gates.push(CustomGate { name: String::from_utf8_lossy(&name).into_owned(), parameters });
    }
    section.end()?;
    Ok(gates)
}

fn count_uses(mut section: Reader<'_>, n_gates: usize, n_vars: u32) -> Result<u32> {
    let count = section.u32("number of uses")?;
    for _ in 0..count {
        let gate = section.u32("custom gate")?;
        if gate as usize >= n_gates {
            let problem = format!("expected a custom gate below {n_gates}, found {gate}");
            return Err(section.error_before(4, problem));
        }
        let n_wires = section.u32("number of wires")?;
        let wires = section.take((n_wires as usize).saturating_mul(8), "wires")?;
        if let Some(wire) = wires.chunks_exact(8).map(bytemuck::pod_read_unaligned).find(|&w: &u64| w >= n_vars.into())
        {
            let problem = format!("expected a wire below {n_vars}, found {wire}");
            return Err(section.error_before(wires.len(), problem));
        }
    }
    section.end()?;
    Ok(count)
}

/// Writes a constraint system, sections in circom's order: constraints, header, map.
#[derive(Debug)]
pub struct R1csWriter<W> {
    out: ContainerWriter<W>,
    header: R1csHeader,
    constraints_left: u32,
}

impl<W: Write> R1csWriter<W> {
    /// Writes the head of the file. `n_terms` is the number of terms of all linear combinations of all constraints
    /// together, from which the section's length follows.
    ///
    /// # Errors
    /// Writing fails.
    pub fn new(out: W, header: &R1csHeader, n_terms: u64) -> io::Result<Self> {
        let mut out = ContainerWriter::new(out, FileKind::R1cs, 1, 3)?;
        let terms = n_terms.checked_mul(ENTRY as u64).ok_or_else(|| misuse("too many terms"))?;
        let len = terms.checked_add(12 * u64::from(header.n_constraints)).ok_or_else(|| misuse("too many terms"))?;
        out.section(2, len)?;
        Ok(Self { out, header: *header, constraints_left: header.n_constraints })
    }

    /// Writes the next constraint: the terms of A, B and C.
    ///
    /// # Errors
    /// More constraints or terms than were announced; writing fails.
    pub fn constraint(&mut self, lcs: [&[(u32, Canonical)]; 3]) -> io::Result<()> {
        let left = self.constraints_left.checked_sub(1);
        self.constraints_left = left.ok_or_else(|| misuse("more constraints than the header says"))?;
        for terms in lcs {
            let count = u32::try_from(terms.len()).map_err(|_| misuse("too many terms"))?;
            self.out.write(&count.to_le_bytes())?;
            for (wire, value) in terms {
                self.out.write(&wire.to_le_bytes())?;
                self.out.write(bytemuck::bytes_of(value))?;
            }
        }
        Ok(())
    }

    /// Writes the header and the map, and ends the file; gives the writer back, flushed.
    ///
    /// # Errors
    /// Fewer constraints or terms than were announced, or another number of labels than of wires; writing fails.
    pub fn finish(mut self, labels: impl ExactSizeIterator<Item = u64>) -> io::Result<W> {
        if self.constraints_left != 0 {
            return Err(misuse("fewer constraints than the header says"));
        }
        let h = self.header;
        if labels.len() as u64 != u64::from(h.n_vars) {
            return Err(misuse("another number of labels than of wires"));
        }
        self.out.section(1, 64)?;
        self.out.write(&32u32.to_le_bytes())?;
        self.out.write(bytemuck::cast_slice(modulus::scalar(h.curve)))?;
        for size in [h.n_vars, h.n_pub_out, h.n_pub_in, h.n_prv_in] {
            self.out.write(&size.to_le_bytes())?;
        }
        self.out.write(&h.n_labels.to_le_bytes())?;
        self.out.write(&h.n_constraints.to_le_bytes())?;
        self.out.section(3, u64::from(h.n_vars) * 8)?;
        for label in labels {
            self.out.write(&label.to_le_bytes())?;
        }
        self.out.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_keep_to_what_the_header_says() {
        let header = R1csHeader {
            curve: tandem_ops::CurveId::Bn254,
            n_vars: 3,
            n_pub_out: 1,
            n_pub_in: 0,
            n_prv_in: 1,
            n_labels: 3,
            n_constraints: 1,
        };
        let says = |terms: u64, rows: usize, labels: u64| {
            let mut writer = R1csWriter::new(Vec::new(), &header, terms).unwrap();
            let term: &[_] = &[(1, Canonical::default())];
            let written = (0..rows).try_for_each(|_| writer.constraint([term, term, term]));
            let labels: Vec<u64> = (0..labels).collect();
            written.and_then(|()| writer.finish(labels.into_iter())).map_err(|e| e.to_string())
        };
        assert!(R1cs::parse(&says(3, 1, 3).unwrap()).is_ok());
        for (terms, rows, labels, part) in [
            (3, 0, 3, "fewer constraints"),
            (6, 2, 3, "more constraints"),
            (2, 1, 3, "more bytes"),
            (4, 1, 3, "fewer bytes"),
            (3, 1, 2, "labels"),
            (3, 1, 4, "labels"),
        ] {
            let said = says(terms, rows, labels);
            assert!(said.as_ref().is_err_and(|said| said.contains(part)), "{part}: {said:?}");
        }
    }
}
