//! Recordings as bytes.
//!
//! ```text
//! magic, version            16 bytes
//! hash of the program       32
//! field                     1: number of the prime
//! signals, constants, kept, passing, wires, bytes of the steps   4 each, little-endian
//! names                     for each input signal, in order: its length in bytes (2), its name, its number of values (4)
//! constants                 32 each
//! steps                     see below
//! wires                     a reference each
//! hash of all before it     32
//! ```
//!
//! Values lie in four areas: inputs, constants, those that are kept (wires), and those that pass, whose places are used again. A step is
//! an operation's number, the place of its result, and its operands. A reference is a number in LEB128 whose lowest two bits are the
//! area; for kept values it counts back from the next one. A result's place is 0 for the next kept value, or one more than the place of
//! a passing one.

use super::operation::Operation;
use super::{Line, Step, Value};
use crate::native::{Field, Limbs};

/// Changes when what is kept, or what it means, changes. Programs are named by their hash with it.
pub(crate) const VERSION: &str = "tandem recording 4";

const MAGIC: &[u8; 16] = b"tandem record 2\n";

const HASH_BYTES: usize = 32;

/// Bytes of the longest recording that is made.
const BYTES_MAX: usize = 1 << 28;

pub(super) const IS_TRUE: u8 = 0x80;
pub(super) const IS_FALSE: u8 = 0x81;

/// Areas of values.
pub(super) const INPUT: u8 = 0;
pub(super) const CONSTANT: u8 = 1;
pub(super) const KEPT: u8 = 2;
pub(super) const PASSING: u8 = 3;

/// What a recording is of.
pub(crate) struct About<'a> {
    /// Of the module's bytes.
    pub(crate) program: &'a blake3::Hash,
    pub(crate) field: u8,
    /// The inputs, in the order in which they are set.
    pub(crate) signals: &'a [(String, u32)],
}

/// Makes a recording's bytes. `None` where they are too many.
pub(crate) fn write(line: &Line, about: &About) -> Option<Vec<u8>> {
    let last = last_uses(line);
    let mut places = Places { last: &last, kept: 0, passing: 0, free: Vec::new(), of: vec![(0, 0); line.steps.len()] };
    let mut steps = Vec::new();
    for (i, step) in line.steps.iter().enumerate() {
        if last[i] != NEVER {
            places.write(i, step, &mut steps);
        }
        if steps.len() > BYTES_MAX {
            return None;
        }
    }
    let mut wires = Vec::new();
    line.wires.iter().for_each(|&wire| places.refer(wire, &mut wires));
    let mut out = MAGIC.to_vec();
    out.extend(about.program.as_bytes());
    out.push(about.field);
    let counts = [
        about.signals.len(),
        line.constants.len(),
        places.kept as usize,
        places.passing as usize,
        line.wires.len(),
        steps.len(),
    ];
    for count in counts {
        out.extend(u32::try_from(count).ok()?.to_le_bytes());
    }
    for (name, count) in about.signals {
        out.extend(u16::try_from(name.len()).ok()?.to_le_bytes());
        out.extend(name.as_bytes());
        out.extend(count.to_le_bytes());
    }
    out.extend(line.constants.iter().flatten().flat_map(|limb| limb.to_le_bytes()));
    out.extend(steps);
    out.extend(wires);
    out.extend(blake3::hash(&out).as_bytes());
    (out.len() <= BYTES_MAX).then_some(out)
}

/// No step needs it.
const NEVER: u32 = u32::MAX;
/// It is kept to the end.
const ALWAYS: u32 = u32::MAX - 1;

/// For each step the last that uses its value; guards and what may fail are needed themselves.
fn last_uses(line: &Line) -> Vec<u32> {
    let mut last = vec![NEVER; line.steps.len()];
    for wire in &line.wires {
        if let Value::Result(i) = wire {
            last[*i as usize] = ALWAYS;
        }
    }
    for (i, step) in line.steps.iter().enumerate().rev() {
        let operands = match *step {
            Step::IsTrue(a) | Step::IsFalse(a) => [a, a],
            Step::Compute(operation, a, b) if last[i] != NEVER || operation.may_fail() => [a, b],
            Step::Compute(..) => continue,
        };
        if last[i] == NEVER {
            last[i] = i as u32;
        }
        for operand in operands {
            if let Value::Result(of) = operand {
                if last[of as usize] == NEVER {
                    last[of as usize] = i as u32;
                }
            }
        }
    }
    last
}

/// Gives values their places.
struct Places<'a> {
    last: &'a [u32],
    kept: u32,
    passing: u32,
    free: Vec<u32>,
    /// Area and place of each step's value.
    of: Vec<(u8, u32)>,
}

impl Places<'_> {
    fn write(&mut self, i: usize, step: &Step, out: &mut Vec<u8>) {
        match *step {
            Step::IsTrue(a) => {
                out.push(IS_TRUE);
                self.refer(a, out);
            }
            Step::IsFalse(a) => {
                out.push(IS_FALSE);
                self.refer(a, out);
            }
            Step::Compute(operation, a, b) => {
                out.push(operation as u8);
                // Operands are read before the result is stored, so that it may take the place of one.
                let mut operands = Vec::new();
                self.refer(a, &mut operands);
                if !operation.is_unary() {
                    self.refer(b, &mut operands);
                }
                self.leave(i, a);
                if b != a {
                    self.leave(i, b);
                }
                let place = self.place(i);
                put(out, place);
                out.extend(operands);
                if self.last[i] == i as u32 {
                    self.leave(i, Value::Result(i as u32));
                }
                return;
            }
        }
        if let Step::IsTrue(a) | Step::IsFalse(a) = *step {
            self.leave(i, a);
        }
    }

    fn place(&mut self, i: usize) -> u64 {
        if self.last[i] == ALWAYS {
            self.of[i] = (KEPT, self.kept);
            self.kept += 1;
            return 0;
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.passing += 1;
            self.passing - 1
        });
        self.of[i] = (PASSING, place);
        u64::from(place) + 1
    }

    /// A value's place is free after its last use.
    fn leave(&mut self, i: usize, value: Value) {
        if let Value::Result(of) = value {
            let (area, place) = self.of[of as usize];
            if area == PASSING && self.last[of as usize] == i as u32 {
                self.free.push(place);
            }
        }
    }

    fn refer(&self, value: Value, out: &mut Vec<u8>) {
        let (area, place) = match value {
            Value::Input(i) => (INPUT, i),
            Value::Constant(i) => (CONSTANT, i),
            Value::Result(i) => match self.of[i as usize] {
                (KEPT, place) => (KEPT, self.kept - place),
                other => other,
            },
        };
        put(out, u64::from(place) << 2 | u64::from(area));
    }
}

/// A number in LEB128.
fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// A recording as it was kept, its hash and its lengths checked; each step is when it is replayed.
pub(crate) struct Recording<'a> {
    pub(crate) field: Field,
    pub(crate) signals: Vec<(&'a str, u32)>,
    pub(super) inputs: usize,
    pub(super) constants: &'a [u8],
    pub(super) kept: usize,
    pub(super) passing: usize,
    pub(super) wires: usize,
    pub(super) steps: Reader<'a>,
    /// References.
    pub(super) of_wires: Reader<'a>,
}

impl<'a> Recording<'a> {
    /// `None` where it is damaged, of another version, or of another program.
    pub(crate) fn read(bytes: &'a [u8], program: &blake3::Hash) -> Option<Self> {
        let (content, hash) = bytes.split_at_checked(bytes.len().checked_sub(HASH_BYTES)?)?;
        if blake3::hash(content).as_bytes() != hash {
            return None;
        }
        Self::parse(content, program)
    }

    /// What is before the hash.
    pub(super) fn parse(content: &'a [u8], program: &blake3::Hash) -> Option<Self> {
        let mut reader = Reader(content);
        if reader.take(MAGIC.len())? != MAGIC || reader.take(HASH_BYTES)? != program.as_bytes() {
            return None;
        }
        let field = Field::new(crate::native::prime(reader.byte()?)?);
        let mut counts = [0usize; 6];
        for count in &mut counts {
            *count = reader.u32()? as usize;
        }
        let [names, constants, kept, passing, wires, steps] = counts;
        let mut signals = Vec::new();
        let mut inputs = 0usize;
        for _ in 0..names {
            let length = usize::from(u16::from_le_bytes(reader.take(2)?.try_into().ok()?));
            let name = std::str::from_utf8(reader.take(length)?).ok()?;
            let count = reader.u32()?;
            inputs = inputs.checked_add(count as usize)?;
            signals.push((name, count));
        }
        let constants = reader.take(constants.checked_mul(size_of::<Limbs>())?)?;
        let steps = reader.take(steps)?;
        // Each result has a step, and each wire a reference, so that they are bounded by the file.
        let is_bounded = kept <= steps.len() && passing <= steps.len() && wires <= reader.0.len();
        is_bounded.then_some(Self {
            field,
            signals,
            inputs,
            constants,
            kept,
            passing,
            wires,
            steps: Reader(steps),
            of_wires: reader,
        })
    }
}

/// The rest of some bytes.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    /// A number in LEB128, of 35 bits at most.
    #[inline]
    pub(super) fn number(&mut self) -> Option<u64> {
        let first = self.byte()?;
        if first < 0x80 {
            return Some(first.into());
        }
        let mut number = u64::from(first & 0x7f);
        for shift in [7, 14, 21, 28] {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// An operation by its number.
#[inline]
pub(super) fn operation(number: u8) -> Option<Operation> {
    Operation::ALL.get(usize::from(number)).copied()
}
