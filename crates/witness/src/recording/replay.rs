//! A recording, computed again on other inputs.

use super::file::{
    operation, Reader, Recording, CONSTANT, IS_FALSE, IS_TRUE, KEPT, MUL_ADD, MUL_ADD_BY, MUL_BY, SELECT,
};
use super::operation::product;
use crate::budget::Budget;
use crate::inputs::{Inputs, Shape};
use crate::native::{is_above, Limbs};
use crate::number::Modulus;
use crate::{Caller, Error, Limit, Limits, Result, Witness};
use std::collections::HashMap;
use std::time::Instant;
use zeroize::Zeroizing;

/// Steps after which the clock is looked at.
const LOOK_STEPS: u64 = 1 << 20;

/// Bytes of a value.
const VALUE_BYTES: usize = size_of::<Limbs>();

/// The witness that the module would compute. `None` where only the module can say: a guard does not hold, the inputs are others than the
/// recording's or wrong, the memory is too little, or the recording is damaged.
pub(crate) fn replay(
    recording: &Recording,
    json: &[u8],
    limits: Limits,
    caller: &dyn Caller,
) -> Result<Option<Witness>> {
    let Some(mut circuit) = Circuit::new(recording, limits) else { return Ok(None) };
    let Ok(inputs) = Inputs::read(json, &mut circuit) else { return Ok(None) };
    let recorded = recording.signals.iter().map(|&(name, count)| (name, count as usize));
    let is_alike = inputs.signals().map(|(name, values)| (name, values.len())).eq(recorded);
    if !is_alike {
        return Ok(None);
    }
    let Some(mut run) = Run::new(recording, &mut circuit.budget, limits, caller) else { return Ok(None) };
    if run.fill(&inputs).is_none() {
        return Ok(None);
    }
    drop(inputs);
    match run.compute(recording)? {
        Some(()) => Ok(run.witness(recording)),
        None => Ok(None),
    }
}

struct Run<'a> {
    /// Inputs, constants, values that are kept, and values that pass.
    values: Zeroizing<Vec<Limbs>>,
    /// Where the areas begin.
    starts: [usize; 4],
    /// How many values they have.
    counts: [usize; 4],
    limits: Limits,
    caller: &'a dyn Caller,
    begun: Instant,
}

impl<'a> Run<'a> {
    fn new(recording: &Recording, budget: &mut Budget, limits: Limits, caller: &'a dyn Caller) -> Option<Self> {
        let counts = [recording.inputs, recording.constants.len() / VALUE_BYTES, recording.kept, recording.passing];
        let (mut starts, mut sum) = ([0; 4], 0usize);
        for (i, count) in counts.into_iter().enumerate() {
            starts[i] = sum;
            sum = sum.checked_add(count)?;
        }
        let bytes = sum.checked_add(recording.wires)?.checked_mul(VALUE_BYTES)?;
        if !budget.take(bytes) {
            return None;
        }
        let mut values = Vec::new();
        values.try_reserve_exact(sum).ok()?;
        values.resize(sum, [0; 4]);
        let mut values = Zeroizing::new(values);
        for (value, bytes) in
            values[starts[usize::from(CONSTANT)]..].iter_mut().zip(recording.constants.chunks_exact(VALUE_BYTES))
        {
            *value = std::array::from_fn(|i| u64::from_le_bytes(std::array::from_fn(|j| bytes[8 * i + j])));
            if !is_above(recording.field.prime, *value) {
                return None;
            }
        }
        Some(Self { values, starts, counts, limits, caller, begun: Instant::now() })
    }

    fn fill(&mut self, inputs: &Inputs) -> Option<()> {
        let mut next = 0;
        for (_, values) in inputs.signals() {
            let filled = values.try_for_each(8, |_, limbs| {
                let place = self.values.get_mut(next).ok_or(())?;
                *place = std::array::from_fn(|i| u64::from(limbs[2 * i]) | u64::from(limbs[2 * i + 1]) << 32);
                next += 1;
                Ok::<_, ()>(())
            });
            filled.ok()?;
        }
        Some(())
    }

    /// The place of what a reference means; `kept` is the next kept value's number.
    #[inline]
    fn place(&self, reference: u64, kept: usize) -> Option<usize> {
        let (area, number) = ((reference & 3) as usize, (reference >> 2) as usize);
        let place = match area == usize::from(KEPT) {
            true => kept.wrapping_sub(number),
            false => number,
        };
        (place < self.counts[area]).then(|| self.starts[area] + place)
    }

    #[inline]
    fn operand(&self, steps: &mut Reader, kept: usize) -> Option<Limbs> {
        self.values.get(self.place(steps.number()?, kept)?).copied()
    }

    /// `None` where a guard does not hold, or a step is none.
    fn compute(&mut self, recording: &Recording) -> Result<Option<()>> {
        let (mut steps, mut kept) = (recording.steps, 0);
        let (mut left, mut since) = (self.limits.steps, 0);
        while !steps.is_empty() {
            let Some(cost) = self.step(recording, &mut steps, &mut kept) else { return Ok(None) };
            since += cost;
            if since >= LOOK_STEPS {
                left = self.look(left, since)?;
                since = 0;
            }
        }
        self.look(left, since)?;
        Ok((kept == recording.kept).then_some(()))
    }

    /// One step, and what it cost.
    #[inline]
    fn step(&mut self, recording: &Recording, steps: &mut Reader, kept: &mut usize) -> Option<u64> {
        let number = steps.byte()?;
        let field = &recording.field;
        if let Some(operation) = operation(number) {
            let (to, before) = self.result(steps, kept)?;
            let a = self.operand(steps, before)?;
            let b = if operation.is_unary() { a } else { self.operand(steps, before)? };
            *self.values.get_mut(to)? = operation.compute(field, a, b)?;
            return Some(operation.steps());
        }
        if number == MUL_ADD {
            let (to, before) = self.result(steps, kept)?;
            let (a, b) = (self.operand(steps, before)?, self.operand(steps, before)?);
            let c = self.operand(steps, before)?;
            *self.values.get_mut(to)? = field.add(product(field, a, b), c);
            return Some(100);
        }
        if number == MUL_BY || number == MUL_ADD_BY {
            let (to, before) = self.result(steps, kept)?;
            let a = self.operand(steps, before)?;
            let other = if number == MUL_BY { [0; 4] } else { self.operand(steps, before)? };
            let by = self.operand(steps, before)?;
            *self.values.get_mut(to)? = field.add(field.mul(a, by), other);
            return Some(100);
        }
        if number == SELECT {
            let (to, before) = self.result(steps, kept)?;
            let index = self.operand(steps, before)?;
            *self.values.get_mut(to)? = self.entry(index, steps.number()?, steps.number()?)?;
            return Some(50);
        }
        let value = self.operand(steps, *kept)?;
        let holds = match number {
            IS_TRUE => value != [0; 4],
            IS_FALSE => value == [0; 4],
            _ => false,
        };
        holds.then_some(50)
    }

    /// An entry of a table, 0 where it has none of this number; `None` where there is no such table.
    fn entry(&self, index: Limbs, first: u64, count: u64) -> Option<Limbs> {
        let end = first.checked_add(count).filter(|&end| end <= self.counts[usize::from(CONSTANT)] as u64)?;
        let place = first.checked_add(index[0]).filter(|&place| index[1..] == [0; 3] && place < end);
        Some(place.map_or([0; 4], |place| self.values[self.starts[usize::from(CONSTANT)] + place as usize]))
    }

    /// The place of a result, and the number of the next kept value from before it, from which references count.
    #[inline]
    fn result(&self, steps: &mut Reader, kept: &mut usize) -> Option<(usize, usize)> {
        let before = *kept;
        Some(match steps.number()? {
            0 => {
                *kept += 1;
                // One too many is seen at the end.
                (self.starts[usize::from(KEPT)] + before, before)
            }
            // The last area ends with the values.
            place => (self.starts[3] + (place - 1) as usize, before),
        })
    }

    /// Looks at the clock, and takes steps.
    fn look(&self, left: u64, taken: u64) -> Result<u64> {
        if self.caller.stop() {
            return Err(Error::Stopped);
        }
        if let Some(time) = self.limits.time.filter(|&time| self.begun.elapsed() >= time) {
            let why = format!("the circuit's recording was stopped after {} s", time.as_secs_f64());
            return Err(Error::limit(Limit::Time, why));
        }
        left.checked_sub(taken).ok_or_else(|| {
            let why = format!("the circuit's recording was stopped after {} steps", self.limits.steps);
            Error::limit(Limit::Steps, why)
        })
    }

    fn witness(&self, recording: &Recording) -> Option<Witness> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(recording.wires * VALUE_BYTES).ok()?;
        let mut bytes = Zeroizing::new(bytes);
        let mut wires = recording.of_wires;
        for _ in 0..recording.wires {
            let value = self.operand(&mut wires, recording.kept)?;
            value.iter().for_each(|limb| bytes.extend(limb.to_le_bytes()));
        }
        let is_right =
            wires.is_empty() && bytes.get(..VALUE_BYTES)?.iter().enumerate().all(|(i, &byte)| byte == u8::from(i == 0));
        is_right.then(|| Witness::new(prime_bytes(recording), std::mem::take(&mut *bytes)))
    }
}

fn prime_bytes(recording: &Recording) -> Vec<u8> {
    recording.field.prime.iter().flat_map(|limb| limb.to_le_bytes()).collect()
}

/// What the reader of inputs asks of a recording.
struct Circuit<'a> {
    modulus: Modulus,
    sizes: HashMap<&'a str, usize>,
    total: usize,
    budget: Budget,
    limits: Limits,
}

impl<'a> Circuit<'a> {
    fn new(recording: &Recording<'a>, limits: Limits) -> Option<Self> {
        let limbs =
            prime_bytes(recording).chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        let sizes = recording.signals.iter().map(|&(name, count)| (name, count as usize)).collect();
        let budget = Budget::new(limits.memory_bytes);
        Some(Self { modulus: Modulus::new(limbs)?, sizes, total: recording.inputs, budget, limits })
    }
}

impl Shape for Circuit<'_> {
    fn modulus(&self) -> &Modulus {
        &self.modulus
    }

    fn total(&self) -> Option<usize> {
        Some(self.total)
    }

    fn size(&mut self, name: &str) -> Result<Option<usize>> {
        Ok(Some(self.sizes.get(name).copied().unwrap_or(0)))
    }

    fn names(&mut self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn take(&mut self, bytes: usize) -> Result<()> {
        let fits = self.budget.take(bytes);
        fits.then_some(()).ok_or_else(|| crate::machine::too_large(self.limits, "the inputs"))
    }

    fn give(&mut self, bytes: usize) {
        self.budget.give(bytes);
    }
}
