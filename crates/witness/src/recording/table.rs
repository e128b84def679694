//! Places in arrays that depend on the inputs.
//!
//! circom turns an index into a number with `Fr_toInt`, multiplies and adds on the module's stack, and copies from the address that comes out.
//! The module does so here, too, with the indices of its own run. The host takes them out of the address again, so that what is left is the
//! address of the array's first entry, reads the whole array, and has the entry chosen by the sum of the indices:
//!
//! ```text
//! lut[x][y]   ──►   Scale(256, Index(x))  Scale(1, Index(y))  ...  Select(to, address)   ──►   entry 256 x + y of a table of constants
//! ```
//!
//! Each entry must be the same in every run. That the place is one of the array is asserted, as it is that a divisor is not 0.

use super::operation::Operation;
use super::recorder::{Operand, Plan, Recorder, ELEMENT_BYTES, STEPS_MAX};
use super::{Refused, Step, Table, Value};
use crate::kept::FAILED;
use crate::native::{Function, Limbs};
use foldhash::fast::RandomState;
use std::collections::HashMap;

type Result<T, E = Refused> = std::result::Result<T, E>;

/// Entries of the longest array.
const ENTRIES_MAX: u32 = 1 << 16;

const UNKNOWN: Refused = Refused("a place in an array depends on its inputs");

/// Places that are being calculated.
#[derive(Default)]
pub(super) struct Lookups {
    indices: Vec<Index>,
    tables: HashMap<Vec<Limbs>, Table, RandomState>,
}

struct Index {
    /// Where it depends on the inputs.
    value: Option<Value>,
    /// How many entries are passed by each.
    stride: u32,
    /// What it is in this run.
    number: u32,
}

/// An entry that has been found.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Where it lies in this run.
    pub(crate) from: u32,
    value: Value,
}

impl Recorder {
    /// `Fr_toInt` of a part of an index has given this number; `plan` is from before.
    pub(crate) fn index(&mut self, plan: Plan, at: u32, number: u32, memory: &[u8]) -> Result<()> {
        let value = match plan {
            Plan::Of([value @ (Value::Input(_) | Value::Result(_)), _], _) => Some(value),
            plan => self.after(plan, Function::ToInt, [at, 0, 0], number, memory).map(|_| None)?,
        };
        self.lookups.indices.push(Index { value, stride: 1, number });
        Ok(())
    }

    /// A product, of whose factors the last so many indices are parts.
    pub(crate) fn scale(&mut self, factors: [u32; 2], [left, right]: [u32; 2]) -> Result<()> {
        let all = &mut self.lookups.indices;
        let start = all.len().checked_sub((left + right) as usize).ok_or(UNKNOWN)?;
        let (left, right) = all[start..].split_at_mut(left as usize);
        let depends = |indices: &[Index]| indices.iter().any(|index| index.value.is_some());
        let (of, by) = match (depends(left), depends(right)) {
            (true, true) => return Err(UNKNOWN),
            (true, false) => (left, factors[1]),
            _ => (right, factors[0]),
        };
        for index in of.iter_mut().filter(|index| index.value.is_some()) {
            index.stride = index.stride.checked_mul(by).ok_or(UNKNOWN)?;
        }
        Ok(())
    }

    /// What is copied from the place that the last indices have led to, in an array that lies before `end`. `None` where none of them depends
    /// on the inputs.
    pub(crate) fn select(&mut self, from: u32, end: u32, memory: &[u8]) -> Result<Option<Entry>> {
        let indices = std::mem::take(&mut self.lookups.indices);
        let indices: Vec<(Value, u32, u32)> =
            indices.iter().filter_map(|index| Some((index.value?, index.stride, index.number))).collect();
        if indices.is_empty() {
            return Ok(None);
        }
        let number =
            indices.iter().fold(0u32, |sum, (_, stride, number)| sum.wrapping_add(stride.wrapping_mul(*number)));
        let first = from.wrapping_sub(number.wrapping_mul(ELEMENT_BYTES as u32));
        let table = self.table(first, end, memory)?;
        let mut place = self.constant([0; 4])?;
        for &(value, stride, _) in &indices {
            let factor = self.constant([stride.into(), 0, 0, 0])?;
            let part = self.compute(Operation::Mul, factor, value)?;
            place = self.compute(Operation::Add, place, part)?;
            // A number that is no place might lead to one, modulo the prime.
            if (indices.len(), stride) != (1, 1) {
                self.must_be_below(value, table.count)?;
            }
        }
        self.must_be_below(place, table.count)?;
        let is_there = number < table.count;
        if !is_there && !self.is_conditional() {
            return Err(Refused(FAILED));
        }
        let value = self.once(Step::Select(place, table))?;
        Ok(Some(Entry { from: if is_there { from } else { first }, value }))
    }

    /// The entry has been copied.
    pub(crate) fn selected(&mut self, to: u32, entry: &Entry) -> Result<()> {
        self.retag([(to, entry.value); 2])
    }

    /// The entries from an address on that are the same in every run.
    fn table(&mut self, first: u32, end: u32, memory: &[u8]) -> Result<Table> {
        let most = (end.saturating_sub(first) / ELEMENT_BYTES as u32).min(ENTRIES_MAX);
        let mut entries = Vec::new();
        for i in 0..most {
            match self.operand(memory, first + i * ELEMENT_BYTES as u32) {
                Ok(Operand::Plain(limbs)) => entries.push(limbs),
                Ok(Operand::Of(Value::Constant(i))) => entries.push(self.line.constants[i as usize]),
                _ => break,
            }
        }
        if entries.is_empty() {
            return Err(UNKNOWN);
        }
        self.calls.stray(entries.len())?;
        if let Some(table) = self.lookups.tables.get(&entries) {
            return Ok(*table);
        }
        let table = Table { first: self.line.constants.len() as u32, count: entries.len() as u32 };
        if self.line.constants.len() + entries.len() > STEPS_MAX {
            return Err(Refused("it has too many constants"));
        }
        self.line.constants.extend(&entries);
        self.lookups.tables.insert(entries, table);
        Ok(table)
    }

    /// A number that is not negative, and less than `most`.
    fn must_be_below(&mut self, value: Value, most: u32) -> Result<()> {
        use Operation::{Geq, Land, Lnot, Lt};
        let (zero, most) = (self.constant([0; 4])?, self.constant([most.into(), 0, 0, 0])?);
        let (is_less, is_positive) = (self.compute(Lt, value, most)?, self.compute(Geq, value, zero)?);
        let is_below = self.compute(Land, is_less, is_positive)?;
        let is_not = self.compute(Lnot, is_below, is_below)?;
        self.must_not(is_not)
    }
}
