//! The constants of a recording: those of a run that are needed, and in the form in which they are.

use super::{Line, Operation, Step, Value};
use crate::native::{Field, Limbs};
use std::collections::HashMap;

/// A run has many more constants than are needed, which were folded.
pub(super) struct Constants<'a> {
    of_line: &'a [Limbs],
    field: Field,
    is_needed: Vec<bool>,
    /// The new number of each of the line's that is needed.
    numbers: Vec<u32>,
    values: Vec<Limbs>,
    /// The numbers of those in Montgomery's form.
    factors: HashMap<u32, u32>,
}

impl<'a> Constants<'a> {
    pub(super) fn new(of_line: &'a [Limbs], field: Field) -> Self {
        let is_needed = vec![false; of_line.len()];
        Self { of_line, field, is_needed, numbers: Vec::new(), values: Vec::new(), factors: HashMap::new() }
    }

    /// Says that a value is needed as it is.
    pub(super) fn need(&mut self, value: Value) {
        if let Value::Constant(i) = value {
            self.is_needed[i as usize] = true;
        }
    }

    /// Numbers those that are needed, in their order, so that a table's stay one behind another.
    pub(super) fn numbered(mut self) -> Self {
        for (&constant, &is_needed) in self.of_line.iter().zip(&self.is_needed) {
            self.numbers.push(self.values.len() as u32);
            if is_needed {
                self.values.push(constant);
            }
        }
        self
    }

    /// The number of one that is needed as it is.
    pub(super) fn plain(&self, constant: u32) -> u32 {
        self.numbers[constant as usize]
    }

    /// The number of one in Montgomery's form.
    pub(super) fn factor(&mut self, constant: u32) -> u32 {
        *self.factors.entry(constant).or_insert_with(|| {
            self.values.push(self.field.mul(self.of_line[constant as usize], self.field.r2));
            self.values.len() as u32 - 1
        })
    }

    pub(super) fn values(&self) -> &[Limbs] {
        &self.values
    }
}

/// Whether a product with this constant is best taken with it in Montgomery's form: one reduction in place of two. Products with bits, and of two
/// numbers of one limb, take none as they are. What circuits multiply with bits are small numbers and powers of two, or their negatives.
pub(super) fn is_factor(line: &Line, constant: u32, other: Value) -> bool {
    !is_bit(line, other, 4) && is_mixed(line.constants[constant as usize])
}

/// Whether a value is known to be 0 or 1, looking at so many products before it.
fn is_bit(line: &Line, value: Value, depth: u32) -> bool {
    let Value::Result(i) = value else { return false };
    match line.steps[i as usize] {
        Step::Compute(Operation::Mul, a, b) => depth > 0 && is_bit(line, a, depth - 1) && is_bit(line, b, depth - 1),
        Step::Compute(operation, ..) => operation.is_truth(),
        _ => false,
    }
}

/// Whether a number has several bits in each of its limbs, as no power of two has and nothing near one, and hardly a negative of such.
fn is_mixed(limbs: Limbs) -> bool {
    limbs.iter().all(|limb| limb.count_ones() > 1)
}
