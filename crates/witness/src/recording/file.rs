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
//! an operation's number, the place of its result, and its operands. A product that only a sum behind it needs is a step with that sum. A
//! constant by which another value is multiplied may be in Montgomery's form. What selects an entry has its table behind it: the number of its first constant, and of how many. A reference is a number in LEB128 whose lowest two bits are the
//! area; for kept values it counts back from the next one. A result's place is 0 for the next kept value, or one more than the place of
//! a passing one.

use super::constants::{self, Constants};
use super::operation::Operation;
use super::{Line, Step, Value};
use crate::native::{Field, Limbs};

/// Changes when what is kept, or what it means, changes. Programs are named by their hash with it.
pub(crate) const VERSION: &str = "tandem recording 7";

const MAGIC: &[u8; 16] = b"tandem record 4\n";

const HASH_BYTES: usize = 32;

/// Bytes of the longest recording that is made.
const BYTES_MAX: usize = 1 << 28;

pub(super) const IS_TRUE: u8 = 0x80;
pub(super) const IS_FALSE: u8 = 0x81;
/// `a b + c`.
pub(super) const MUL_ADD: u8 = 0x82;
/// An entry of a table.
pub(super) const SELECT: u8 = 0x83;
/// `a c`, and `a c + b`, of a constant in Montgomery's form, which comes last.
pub(super) const MUL_BY: u8 = 0x84;
pub(super) const MUL_ADD_BY: u8 = 0x85;

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
    let last = last_uses(line, &uses(line));
    let mut places = Places {
        line,
        last: &last,
        constants: needed(line, &last, Field::new(crate::native::prime(about.field)?)),
        kept: 0,
        passing: 0,
        free: Vec::new(),
        of: vec![(0, 0); line.steps.len()],
    };
    let mut steps = Vec::new();
    for (i, step) in line.steps.iter().enumerate() {
        if last[i] < WITHIN {
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
        places.constants.values().len(),
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
    out.extend(places.constants.values().iter().flatten().flat_map(|limb| limb.to_le_bytes()));
    out.extend(steps);
    out.extend(wires);
    out.extend(blake3::hash(&out).as_bytes());
    (out.len() <= BYTES_MAX).then_some(out)
}

/// No step needs it.
const NEVER: u32 = u32::MAX;
/// It is a product within the one step that needs it.
const WITHIN: u32 = u32::MAX - 1;
/// It is kept to the end.
const ALWAYS: u32 = u32::MAX - 2;

/// What a step needs: two values, or one twice.
fn operands(step: &Step) -> [Value; 2] {
    match *step {
        Step::IsTrue(a) | Step::IsFalse(a) | Step::Select(a, _) => [a, a],
        Step::Compute(_, a, b) => [a, b],
    }
}

/// How many steps need each step's value, up to 2. Guards and what may fail are needed themselves, and so are wires, twice.
fn uses(line: &Line) -> Vec<u8> {
    let mut uses = vec![0; line.steps.len()];
    line.wires.iter().for_each(|wire| use_of(wire, &mut uses, 2));
    for (i, step) in line.steps.iter().enumerate().rev() {
        let is_needed = match step {
            Step::Compute(operation, ..) => uses[i] > 0 || operation.may_fail(),
            Step::Select(..) => uses[i] > 0,
            Step::IsTrue(_) | Step::IsFalse(_) => true,
        };
        if is_needed {
            // What is needed for itself is no part of another step.
            uses[i] = uses[i].max(1);
            operands(step).iter().for_each(|operand| use_of(operand, &mut uses, 1));
        }
    }
    uses
}

fn use_of(value: &Value, uses: &mut [u8], count: u8) {
    if let Value::Result(i) = value {
        uses[*i as usize] = (uses[*i as usize] + count).min(2);
    }
}

/// For each step the last that uses its value.
fn last_uses(line: &Line, uses: &[u8]) -> Vec<u32> {
    let mut last = vec![NEVER; line.steps.len()];
    let reach = |value: Value, last: &mut Vec<u32>, at: u32| {
        if let Value::Result(of) = value {
            if last[of as usize] == NEVER {
                last[of as usize] = at;
            }
        }
    };
    line.wires.iter().for_each(|&wire| reach(wire, &mut last, ALWAYS));
    for (i, step) in line.steps.iter().enumerate().rev() {
        if uses[i] == 0 || last[i] == WITHIN {
            continue;
        }
        if last[i] == NEVER {
            last[i] = i as u32;
        }
        let mut needs = operands(step);
        if let Some((product, factors, other)) = within(line, step, |i| uses[i] == 1) {
            last[product] = WITHIN;
            factors.into_iter().for_each(|factor| reach(factor, &mut last, i as u32));
            needs = [other, other];
        }
        needs.into_iter().for_each(|need| reach(need, &mut last, i as u32));
    }
    last
}

/// The product in a sum, which is one that nothing else needs: its number, its factors, and what is added.
fn within(line: &Line, step: &Step, is_it: impl Fn(usize) -> bool) -> Option<(usize, [Value; 2], Value)> {
    let Step::Compute(Operation::Add, a, b) = *step else { return None };
    [(b, a), (a, b)].into_iter().find_map(|(product, other)| {
        let Value::Result(i) = product else { return None };
        match line.steps.get(i as usize) {
            Some(&Step::Compute(Operation::Mul, x, y)) if is_it(i as usize) => Some((i as usize, [x, y], other)),
            _ => None,
        }
    })
}

/// The constants that steps and wires need.
fn needed<'a>(line: &'a Line, last: &[u32], field: Field) -> Constants<'a> {
    let mut constants = Constants::new(&line.constants, field);
    line.wires.iter().for_each(|&wire| constants.need(wire));
    for (_, step) in line.steps.iter().enumerate().filter(|&(i, _)| last[i] < WITHIN) {
        parts(line, last, step).needs.into_iter().for_each(|value| constants.need(value));
        if let Step::Select(_, table) = *step {
            (table.first..table.first + table.count).for_each(|entry| constants.need(Value::Constant(entry)));
        }
    }
    constants.numbered()
}

/// A step as it is written.
struct Parts {
    number: u8,
    needs: Vec<Value>,
    /// A constant that comes behind these, in Montgomery's form.
    factor: Option<u32>,
}

fn parts(line: &Line, last: &[u32], step: &Step) -> Parts {
    let (number, mut needs) = match *step {
        Step::IsTrue(a) => (IS_TRUE, vec![a]),
        Step::IsFalse(a) => (IS_FALSE, vec![a]),
        Step::Select(a, _) => (SELECT, vec![a]),
        Step::Compute(operation, a, b) => match within(line, step, |i| last[i] == WITHIN) {
            Some((_, [x, y], other)) => (MUL_ADD, vec![x, y, other]),
            None if operation.is_unary() => (operation as u8, vec![a]),
            None => (operation as u8, vec![a, b]),
        },
    };
    let by = match number {
        MUL_ADD => MUL_ADD_BY,
        _ if number == Operation::Mul as u8 => MUL_BY,
        _ => return Parts { number, needs, factor: None },
    };
    for (i, other) in [(0, 1), (1, 0)] {
        match needs[i] {
            Value::Constant(constant) if constants::is_factor(line, constant, needs[other]) => {
                needs.remove(i);
                return Parts { number: by, needs, factor: Some(constant) };
            }
            _ => {}
        }
    }
    Parts { number, needs, factor: None }
}

/// Gives values their places.
struct Places<'a> {
    line: &'a Line,
    last: &'a [u32],
    constants: Constants<'a>,
    kept: u32,
    passing: u32,
    free: Vec<u32>,
    /// Area and place of each step's value.
    of: Vec<(u8, u32)>,
}

impl Places<'_> {
    fn write(&mut self, i: usize, step: &Step, out: &mut Vec<u8>) {
        let Parts { number, needs, factor } = parts(self.line, self.last, step);
        out.push(number);
        // Operands are read before the result is stored, so that it may take the place of one.
        let mut operands = Vec::new();
        needs.iter().for_each(|&value| self.refer(value, &mut operands));
        if let Some(constant) = factor {
            put(&mut operands, u64::from(self.constants.factor(constant)) << 2 | u64::from(CONSTANT));
        }
        for (k, value) in needs.iter().enumerate() {
            if !needs[..k].contains(value) {
                self.leave(i, *value);
            }
        }
        let has_result = matches!(step, Step::Compute(..) | Step::Select(..));
        if has_result {
            put(out, self.place(i));
        }
        out.extend(operands);
        if let Step::Select(_, table) = *step {
            put(out, self.constants.plain(table.first).into());
            put(out, table.count.into());
        }
        if self.last[i] == i as u32 && has_result {
            self.leave(i, Value::Result(i as u32));
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
            Value::Constant(i) => (CONSTANT, self.constants.plain(i)),
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
        // Where there are four bytes and one of them is the last, without a branch for each.
        if let Some(&bytes) = self.0.first_chunk() {
            let word = u32::from_le_bytes(bytes);
            let ends = !word & 0x8080_8080;
            if ends != 0 {
                let bits = ends.trailing_zeros() + 1;
                let word = word & (u32::MAX >> (32 - bits));
                self.0 = &self.0[bits as usize / 8..];
                return Some(spread(word));
            }
        }
        self.long_number()
    }

    fn long_number(&mut self) -> Option<u64> {
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

/// The number that four bytes hold, of seven bits each.
#[inline]
fn spread(word: u32) -> u64 {
    u64::from(word & 0x7f | word >> 1 & 0x3f80 | word >> 2 & 0x1f_c000 | word >> 3 & 0xfe0_0000)
}

/// An operation by its number.
#[inline]
pub(super) fn operation(number: u8) -> Option<Operation> {
    Operation::ALL.get(usize::from(number)).copied()
}
