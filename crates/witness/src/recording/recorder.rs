//! Watches a run of a module, and writes down what it does with values that depend on the inputs.
//!
//! Every access to the memory is told here before or after it is made, see [`crate::native`]. A value that depends on the inputs
//! may be moved, be an operand of a field function, or decide by a guard. Anything else ends the recording, never the run.

use super::explore::{Calls, STRAYED};
use super::fork::Fork;
use super::operation::Operation;
use super::shadow::{Shadow, Tag, ELEMENT, LIMBS, WORD};
use super::table::Lookups;
use super::{Line, Refused, Step, Value};
use crate::kept::{BRANCHED, FAILED};
use crate::native::{is_above, Field, Function, Limbs};
use crate::Record;
use foldhash::fast::RandomState;
use std::collections::{HashMap, HashSet};

type Result<T, E = Refused> = std::result::Result<T, E>;

/// Where circom's functions keep what they are working on, and constants of theirs behind it.
const SCRATCH: std::ops::Range<usize> = 8..88;
const CONSTANTS_END: usize = 1952;

const LONG_NORMAL: u32 = 0x8000_0000;
const LONG_MONTGOMERY: u32 = 0xc000_0000;
const SHORT_MONTGOMERY: u32 = 0x4000_0000;

pub(super) const ELEMENT_BYTES: usize = ELEMENT * WORD;

/// Steps and constants of one recording.
pub(super) const STEPS_MAX: usize = 1 << 27;

/// Bytes that a step takes while it is recorded, with its place among those that are known.
pub(crate) const STEP_BYTES: usize = 64;

pub(crate) struct Recorder {
    field: Field,
    pub(super) shadow: Shadow,
    pub(super) line: Line,
    /// The branch that is being run both ways.
    pub(super) fork: Option<Fork>,
    /// The circuit's functions that are being run.
    pub(super) calls: Calls,
    pub(super) lookups: Lookups,
    places: HashMap<Limbs, u32, RandomState>,
    known: HashMap<Step, Value, RandomState>,
    guarded: HashSet<Step, RandomState>,
    which: Record,
}

/// What the memory says of an operand.
pub(super) enum Operand {
    /// Neither its value nor its form depends on the inputs.
    Plain(Limbs),
    Of(Value),
}

impl Recorder {
    /// Of a module over a field, before it has seen inputs.
    pub(crate) fn new(field: Field, memory_bytes: usize, which: Record) -> Self {
        let mut shadow = Shadow::new(memory_bytes);
        shadow.fill(SCRATCH.start / WORD..SCRATCH.end / WORD, Tag::Opaque);
        let line = Line::default();
        Self {
            field,
            shadow,
            line,
            fork: None,
            calls: Calls::new(),
            lookups: Lookups::default(),
            places: HashMap::default(),
            known: HashMap::default(),
            guarded: HashSet::default(),
            which,
        }
    }

    /// Bytes of the memory that it can watch.
    pub(crate) fn watched(&self) -> usize {
        self.shadow.len() * WORD
    }

    /// Watches a memory that has grown.
    pub(crate) fn watch(&mut self, memory_bytes: usize) {
        self.shadow.grow(memory_bytes);
    }

    /// Bytes that watching a memory takes.
    pub(crate) fn bytes_of(memory_bytes: usize) -> usize {
        Shadow::bytes_of(memory_bytes).saturating_add(Calls::bytes_of(memory_bytes))
    }

    /// Steps, and all else by the steps that would take as much.
    pub(crate) fn steps(&self) -> usize {
        self.line.steps.len() + self.line.constants.len() + self.calls.held()
    }

    /// What was recorded.
    pub(crate) fn finish(self) -> Result<Line> {
        match self.calls.are_runs() {
            true => Ok(self.line),
            false => Err(Refused(STRAYED)),
        }
    }

    /// The module reads bytes by its own code.
    pub(crate) fn read(&self, at: usize, bytes: usize) -> Result<()> {
        match self.shadow.are_clean(at, bytes) {
            true => Ok(()),
            false => Err(Refused("its code reads bytes of a value by itself")),
        }
    }

    /// The module has written bytes by its own code.
    pub(crate) fn wrote(&mut self, at: usize, bytes: usize) -> Result<()> {
        self.wrote_at(at, bytes)?;
        self.shadow.clean(at, bytes);
        Ok(())
    }

    /// The module has moved bytes, as a load and the store behind it do.
    pub(crate) fn moved(&mut self, to: usize, from: usize, bytes: usize) -> Result<()> {
        self.wrote_at(to, bytes)?;
        self.shadow.copy(to, from, bytes)
    }

    fn wrote_at(&self, at: usize, bytes: usize) -> Result<()> {
        match at < CONSTANTS_END && at + bytes > SCRATCH.start {
            true => Err(Refused("it writes where the field's constants are")),
            false => Ok(()),
        }
    }

    /// The host has put the limbs of an input there.
    pub(crate) fn input(&mut self, at: usize, number: u32) -> Result<()> {
        if !at.is_multiple_of(WORD) {
            return Err(Refused("its shared element is at no word"));
        }
        self.wrote_at(at, 8 * WORD)?;
        self.shadow.set_limbs(at / WORD, Value::Input(number));
        Ok(())
    }

    /// The host takes the limbs there for the value of the next wire.
    pub(crate) fn wire(&mut self, at: usize, memory: &[u8]) -> Result<()> {
        let value = match self.shadow.limbs(at / WORD) {
            Some(value) => value,
            None if at.is_multiple_of(WORD) && self.shadow.are_clean(at, 8 * WORD) => {
                let limbs = limbs(memory, at)?;
                self.constant(limbs)?
            }
            None => return Err(Refused("a wire's value is not that of one element")),
        };
        self.line.wires.push(value);
        Ok(())
    }

    /// What is known of an element.
    pub(super) fn operand(&self, memory: &[u8], at: u32) -> Result<Operand> {
        let at = at as usize;
        if !at.is_multiple_of(WORD) {
            return match self.shadow.are_clean(at, ELEMENT_BYTES) {
                true => self.plain(memory, at).map(Operand::Plain),
                false => Err(Refused("an element is at no word")),
            };
        }
        let word = at / WORD;
        if let Some(value) = self.shadow.element(word) {
            return Ok(Operand::Of(value));
        }
        let unknown = Refused("an element is made of parts of others");
        if self.shadow.get(word + 1) != Tag::Clean {
            return Err(unknown);
        }
        let flags = flags(memory, at)?;
        if flags == LONG_NORMAL {
            if let Some(value) = self.shadow.limbs(word + LIMBS) {
                return Ok(Operand::Of(value));
            }
        }
        let counts = match flags {
            0 => (at, 2 * WORD),
            SHORT_MONTGOMERY => (at, ELEMENT_BYTES),
            _ => (at + WORD, ELEMENT_BYTES - WORD),
        };
        match self.shadow.are_clean(counts.0, counts.1) {
            true => self.plain(memory, at).map(Operand::Plain),
            false => Err(unknown),
        }
    }

    /// The value of an element.
    pub(super) fn value(&mut self, memory: &[u8], at: usize) -> Result<Value> {
        let at = u32::try_from(at).map_err(|_| Refused("an element lies outside of the memory"))?;
        match self.operand(memory, at)? {
            Operand::Plain(limbs) => self.constant(limbs),
            Operand::Of(value) => Ok(value),
        }
    }

    /// The value of an element as it lies in the memory.
    fn plain(&self, memory: &[u8], at: usize) -> Result<Limbs> {
        let flags = flags(memory, at)?;
        let value = match flags {
            0 | SHORT_MONTGOMERY => {
                let short = word(memory, at)? as i32;
                let magnitude = [u64::from(short.unsigned_abs()), 0, 0, 0];
                return Ok(if short < 0 { self.field.neg(magnitude) } else { magnitude });
            }
            LONG_NORMAL | LONG_MONTGOMERY => limbs(memory, at + LIMBS * WORD)?,
            _ => return Err(Refused("an element is of no form that is known")),
        };
        if !is_above(self.field.prime, value) {
            return Err(Refused("an element is not below the prime"));
        }
        Ok(if flags == LONG_MONTGOMERY { self.field.mul(value, [1, 0, 0, 0]) } else { value })
    }

    /// A field function is about to be called, as far as it does not depend on what it writes.
    pub(crate) fn before(&self, function: Function, arguments: [u32; 3], memory: &[u8]) -> Result<Plan> {
        let [r, a, b] = arguments;
        match function {
            Function::IntZero | Function::IntCopy | Function::CopyN => return Ok(Plan::Words),
            Function::IsTrue | Function::ToInt | Function::ToLongNormal => {
                return Ok(match self.operand(memory, r)? {
                    Operand::Plain(_) => Plan::Plain([r, r]),
                    Operand::Of(value) => Plan::Of([value, value], [None; 2]),
                });
            }
            Function::EqR => return self.operands(memory, [r, a]),
            _ => {}
        }
        let operation = Operation::of(function).ok_or(Refused("it calls a function that is not known here"))?;
        let b = if operation.is_unary() { a } else { b };
        self.wrote_at(r as usize, ELEMENT_BYTES)?;
        let plan = self.operands(memory, [a, b])?;
        let is_mixed = [(r, a), (r, b), (a, b)].iter().any(|(x, y)| x != y && x.abs_diff(*y) < ELEMENT_BYTES as u32);
        let is_replaced = (r == a || r == b) && !operation.may_replace() || a == b && operation == Operation::Pow;
        let is_plain = matches!(plan, Plan::Plain(_));
        if is_mixed || is_replaced && !is_plain {
            return Err(Refused("a function's operands overlap"));
        }
        Ok(plan)
    }

    fn operands(&self, memory: &[u8], at: [u32; 2]) -> Result<Plan> {
        Ok(match (self.operand(memory, at[0])?, self.operand(memory, at[1])?) {
            (Operand::Plain(_), Operand::Plain(_)) => Plan::Plain(at),
            (a, b) => {
                let plain = |operand: &Operand| if let Operand::Plain(value) = operand { Some(*value) } else { None };
                let value =
                    |operand: &Operand| if let Operand::Of(value) = operand { *value } else { Value::Constant(0) };
                Plan::Of([value(&a), value(&b)], [plain(&a), plain(&b)])
            }
        })
    }

    /// The function has been called, and `memory` is as it left it. Returns the result that the module is to see.
    pub(crate) fn after(
        &mut self,
        plan: Plan,
        function: Function,
        arguments: [u32; 3],
        result: u32,
        memory: &[u8],
    ) -> Result<u32> {
        let [r, a, b] = arguments;
        match plan {
            Plan::Words => self.words(function, arguments).map(|()| result),
            Plan::Plain(operands) => {
                operands.into_iter().try_for_each(|at| self.settle(at, memory, false))?;
                if Operation::of(function).is_some() {
                    self.settle(r, memory, true)?;
                }
                Ok(result)
            }
            Plan::Of(mut values, plain) => {
                for (value, plain) in values.iter_mut().zip(plain) {
                    if let Some(plain) = plain {
                        *value = self.constant(plain)?;
                    }
                }
                self.used(function, [r, a, b], values, result)
            }
        }
    }

    /// An element of which nothing that counts depends on the inputs: what counts now has been written by the function, or was so.
    fn settle(&mut self, at: u32, memory: &[u8], is_result: bool) -> Result<()> {
        let at = at as usize;
        match (flags(memory, at)?, is_result) {
            (0, false) => {}
            (0, true) => self.shadow.clean(at, 2 * WORD),
            _ => self.shadow.clean(at + WORD, ELEMENT_BYTES - WORD),
        }
        Ok(())
    }

    /// Functions that move words.
    fn words(&mut self, function: Function, [r, a, b]: [u32; 3]) -> Result<()> {
        let (to, from, bytes) = match function {
            Function::IntZero => {
                self.wrote(r as usize, 8 * WORD)?;
                return Ok(());
            }
            Function::IntCopy => (a, r, 8 * WORD),
            _ => (r, a, (b.wrapping_mul(ELEMENT_BYTES as u32) / 8 * 8) as usize),
        };
        if bytes == 0 {
            return Ok(());
        }
        self.moved(to as usize, from as usize, bytes)
    }

    /// A function was called on elements of these values.
    fn used(&mut self, function: Function, [r, a, b]: [u32; 3], values: [Value; 2], result: u32) -> Result<u32> {
        let [x, mut y] = values;
        match function {
            Function::IsTrue => return self.branch(x, result != 0),
            Function::ToInt => {
                // Whoever reads the recording would read the number, and other inputs seldom have the same.
                if !matches!(x, Value::Constant(_)) {
                    return Err(Refused("a place in an array depends on its inputs"));
                }
                // It leaves what it was: limbs that are normal, or an element in whatever form.
                return Ok(result);
            }
            Function::ToLongNormal => {
                self.shadow.set(r as usize / WORD + 1, Tag::Clean);
                self.shadow.set_limbs(r as usize / WORD + LIMBS, x);
                return Ok(result);
            }
            Function::EqR => {
                self.retag([(r, x), (a, y)])?;
                let equal = self.compute(Operation::Eq, x, y)?;
                return self.branch(equal, result != 0);
            }
            _ => {}
        }
        let operation = Operation::of(function).ok_or(Refused("it calls a function that is not known here"))?;
        self.retag([(a, x), (if operation.is_unary() { a } else { b }, y)])?;
        if operation.may_fail() && self.is_conditional() && !self.is_nonzero(y) {
            // By 1 where it would be by 0, which must not be where its conditions hold.
            let zero = self.constant([0; 4])?;
            let is_zero = self.compute(Operation::Eq, y, zero)?;
            self.must_not(is_zero)?;
            y = self.compute(Operation::Add, y, is_zero)?;
        }
        let value = self.compute(operation, x, y)?;
        self.retag([(r, value); 2])?;
        Ok(result)
    }

    fn is_nonzero(&self, value: Value) -> bool {
        matches!(value, Value::Constant(i) if self.line.constants.get(i as usize).is_some_and(|limbs| *limbs != [0; 4]))
    }

    /// Elements that a function has used: their form may depend on the inputs from now on.
    pub(super) fn retag(&mut self, elements: [(u32, Value); 2]) -> Result<()> {
        for (at, value) in elements {
            if !(at as usize).is_multiple_of(WORD) {
                return Err(Refused("an element is at no word"));
            }
            // The number of bits of the prime is one, and stays as it is.
            if (at as usize) < CONSTANTS_END {
                return Err(Refused("it calculates with the field's constants"));
            }
            self.shadow.set_element(at as usize / WORD, value)?;
        }
        Ok(())
    }

    /// The module goes on by what a value is, or as it is told here.
    fn branch(&mut self, value: Value, is_true: bool) -> Result<u32> {
        let known = match self.decided(value, is_true) {
            Some(outcome) => Some(outcome),
            None => self.chooses(value, is_true)?,
        };
        if let Some(outcome) = known {
            return Ok(outcome.into());
        }
        if self.which == Record::Unbranched {
            return Err(Refused(BRANCHED));
        }
        self.guard(value, guard(value, is_true))?;
        Ok(is_true.into())
    }

    /// A loop ends unless the element there is true. That it does is what every run has that is recorded by [`Record::Unbranched`].
    pub(crate) fn repeats(&mut self, at: u32, is_true: bool, memory: &[u8]) -> Result<bool> {
        let Operand::Of(value) = self.operand(memory, at)? else { return Ok(is_true) };
        if let Some(outcome) = self.decided(value, is_true) {
            return Ok(outcome);
        }
        if !is_true || !self.calls.are_runs() {
            return self.must_not(value).map(|()| false);
        }
        match self.calls.are_none() {
            true => self.branch(value, true).map(|outcome| outcome != 0),
            // How often it repeats is not known: its ways may have no end.
            false => Err(Refused(BRANCHED)),
        }
    }

    pub(super) fn is_guarded(&self, value: Value, is_true: bool) -> bool {
        self.guarded.contains(&guard(value, is_true))
    }

    fn guard(&mut self, value: Value, guard: Step) -> Result<()> {
        if !matches!(value, Value::Constant(_)) && self.guarded.insert(guard) {
            self.push(guard)?;
        }
        Ok(())
    }

    /// It must be 0 in every run that is recorded.
    pub(super) fn assert_zero(&mut self, value: Value) -> Result<()> {
        self.guard(value, Step::IsFalse(value))
    }

    /// `Fr_isTrue` was called on what is asserted. Every run that is recorded has it true: where it is not, the module prints. Returns what
    /// the module is to see.
    pub(crate) fn asserted(&mut self, at: u32, is_true: bool, memory: &[u8]) -> Result<bool> {
        let value = match self.operand(memory, at)? {
            Operand::Plain(_) if is_true || self.calls.are_runs() => return Ok(is_true),
            Operand::Of(_) if !is_true && self.calls.are_runs() => return Err(Refused(FAILED)),
            Operand::Plain(limbs) => self.constant(limbs)?,
            Operand::Of(value) => value,
        };
        if self.is_conditional() {
            let fails = self.compute(Operation::Lnot, value, value)?;
            self.must_not(fails)?;
        } else {
            self.guard(value, Step::IsTrue(value))?;
        }
        Ok(true)
    }

    /// `setInputSignal`'s way to store an input: short where it fits.
    pub(crate) fn assign(&mut self, to: u32, from: u32, memory: &[u8]) -> Result<Assign> {
        if (to as usize % WORD, from as usize % WORD) != (0, 0) || to.abs_diff(from) < ELEMENT_BYTES as u32 {
            return Err(Refused("an input's element is at no word"));
        }
        self.wrote_at(to as usize, ELEMENT_BYTES)?;
        Ok(match self.operand(memory, from)? {
            Operand::Of(value) if flags(memory, from as usize)? == LONG_NORMAL => Assign(value),
            _ => return Err(Refused("an input is not where it is set from")),
        })
    }

    pub(crate) fn assigned(&mut self, to: u32, Assign(value): Assign) -> Result<()> {
        self.shadow.set_element(to as usize / WORD, value)
    }

    pub(super) fn constant(&mut self, value: Limbs) -> Result<Value> {
        let next = self.line.constants.len();
        if next >= STEPS_MAX {
            return Err(Refused("it has too many constants"));
        }
        let place = *self.places.entry(value).or_insert(next as u32);
        if place as usize == next {
            self.line.constants.push(value);
        }
        Ok(Value::Constant(place))
    }

    fn push(&mut self, step: Step) -> Result<Value> {
        if self.line.steps.len() >= STEPS_MAX {
            return Err(Refused("it takes too many steps"));
        }
        self.line.steps.push(step);
        Ok(Value::Result(self.line.steps.len() as u32 - 1))
    }

    /// The operation that a value is the result of.
    fn step_of(&self, value: Value) -> Option<(Operation, Value, Value)> {
        match value {
            Value::Result(i) => match self.line.steps.get(i as usize) {
                Some(&Step::Compute(operation, a, b)) => Some((operation, a, b)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether a value is 0 or 1 whatever the inputs are.
    pub(super) fn is_bit(&self, value: Value) -> bool {
        self.step_of(value).is_some_and(|(operation, _, _)| operation.is_truth())
    }

    /// The value of an operation: one that is there already, where it is.
    pub(super) fn compute(&mut self, operation: Operation, x: Value, y: Value) -> Result<Value> {
        let of = |value| match value {
            Value::Constant(i) => Some(self.line.constants[i as usize]),
            _ => None,
        };
        const ONE: Limbs = [1, 0, 0, 0];
        match (operation, of(x), of(y)) {
            (_, Some(a), Some(b)) => {
                let value = operation.compute(&self.field, a, b).ok_or(Refused("it divides by zero"))?;
                return self.constant(value);
            }
            (Operation::Add, Some([0, 0, 0, 0]), _) | (Operation::Mul, Some(ONE), _) => return Ok(y),
            (Operation::Add | Operation::Sub, _, Some([0, 0, 0, 0])) | (Operation::Mul, _, Some(ONE)) => return Ok(x),
            (Operation::Mul, Some([0, 0, 0, 0]), _) | (Operation::Mul, _, Some([0, 0, 0, 0])) => {
                return self.constant([0; 4]);
            }
            // `a >> i & 1`, with `i` below the number of bits.
            (Operation::Band, _, Some(ONE)) => {
                if let Some((Operation::Shr, a, by)) = self.step_of(x) {
                    if matches!(of(by), Some([by, 0, 0, 0]) if by < self.field.bits.into()) {
                        return self.compute(Operation::Bit, a, by);
                    }
                }
            }
            // `b (b - 1)`, by which circuits have bits asserted.
            (Operation::Mul, None, None) => {
                let is_less = |less, bit| matches!(self.step_of(less), Some((Operation::Sub, b, one)) if b == bit && of(one) == Some(ONE));
                if self.is_bit(x) && is_less(y, x) || self.is_bit(y) && is_less(x, y) {
                    return self.constant([0; 4]);
                }
            }
            _ => {}
        }
        self.once(Step::Compute(operation, x, y))
    }

    /// The value of a step: one that is there already, where it is.
    pub(super) fn once(&mut self, step: Step) -> Result<Value> {
        if let Some(&value) = self.known.get(&step) {
            return Ok(value);
        }
        let value = self.push(step)?;
        self.known.insert(step, value);
        Ok(value)
    }
}

fn guard(value: Value, is_true: bool) -> Step {
    if is_true {
        Step::IsTrue(value)
    } else {
        Step::IsFalse(value)
    }
}

/// What is to be done after a call, seen before it.
pub(crate) enum Plan {
    /// Words are moved.
    Words,
    /// Nothing in these elements depends on the inputs.
    Plain([u32; 2]),
    /// Something does: the values, and those that are constants so far.
    Of([Value; 2], [Option<Limbs>; 2]),
}

/// An input that is being stored.
pub(crate) struct Assign(Value);

fn bytes<const N: usize>(memory: &[u8], at: usize) -> Result<[u8; N]> {
    let found = memory.get(at..at.saturating_add(N)).and_then(|bytes| bytes.try_into().ok());
    found.ok_or(Refused("an element lies outside of the memory"))
}

fn word(memory: &[u8], at: usize) -> Result<u32> {
    Ok(u32::from_le_bytes(bytes(memory, at)?))
}

fn flags(memory: &[u8], at: usize) -> Result<u32> {
    word(memory, at + WORD)
}

fn limbs(memory: &[u8], at: usize) -> Result<Limbs> {
    let all: [u8; 32] = bytes(memory, at)?;
    Ok(std::array::from_fn(|i| u64::from_le_bytes(std::array::from_fn(|j| all[8 * i + j]))))
}
