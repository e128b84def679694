//! The input signals that a graph names, and the places of their values.

use super::wire::{damaged, Message, Value};
use crate::budget::Budget;
use crate::machine::too_large;
use crate::{Limits, Result};
use std::collections::BTreeMap;

/// Bytes that a signal takes beside its name, rounded up.
const SIGNAL_BYTES: usize = 128;

/// Elements of arrays of buses, and their members, that a graph may name. Each costs a few bytes of the file at least where it is honest.
const MEMBERS_MAX: u32 = 1 << 20;

/// How deep buses may hold buses.
const DEPTH_MAX: usize = 64;

/// Where the values of a signal lie among all inputs, of which the first is the constant 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) start: u64,
    pub(super) len: u64,
}

/// Input signals by name; those of a bus by path, such as `a.b` and `a[0].b`.
pub(super) type Signals = BTreeMap<String, Range>;

/// Counts what the names take.
pub(super) struct Names<'b> {
    budget: &'b mut Budget,
    limits: Limits,
    signals: Signals,
    members: u32,
}

impl<'b> Names<'b> {
    pub(super) fn new(budget: &'b mut Budget, limits: Limits) -> Self {
        Self { budget, limits, signals: Signals::new(), members: 0 }
    }

    pub(super) fn finish(self) -> Signals {
        self.signals
    }

    fn put(&mut self, name: String, range: Range, at: usize) -> Result<()> {
        if !self.budget.take(name.len() + SIGNAL_BYTES) {
            return Err(too_large(self.limits, "the names of the inputs"));
        }
        match self.signals.insert(name, range) {
            None => Ok(()),
            Some(_) => Err(damaged(at, "two inputs have one name")),
        }
    }

    /// An input of the first version: a name, and where its values are.
    pub(super) fn entry(&mut self, mut message: Message<'_>) -> Result<()> {
        let at = message.at();
        let (mut name, mut range) = ("", [0; 2]);
        while let Some((field, value)) = message.field()? {
            match (field, value) {
                (1, value) => name = value.message(at)?.as_text()?,
                (2, value) => {
                    let mut place = value.message(at)?;
                    while let Some((field, value)) = place.field()? {
                        if let 1 | 2 = field {
                            range[field as usize - 1] = value.small(at)?;
                        }
                    }
                }
                (_, Value::Number(_) | Value::Bytes(_) | Value::Fixed) => {}
            }
        }
        let [start, len] = range.map(u64::from);
        self.put(name.into(), Range { start, len }, at)
    }

    /// The inputs of the second version, which knows buses. Places there count from the first input of the circuit.
    pub(super) fn described(&mut self, mut text: Message<'_>) -> Result<()> {
        let mut inputs = Vec::new();
        for _ in 0..text.word()? {
            let (at, name) = (text.at(), text.text()?);
            let start = u64::from(text.word()?);
            let dimensions = dimensions(&mut text)?;
            let bus = if text.take(1)?.bytes() == [1] { Some(text.text()?) } else { None };
            self.count(inputs.len() + 1, at)?;
            inputs.push((at, name, start, dimensions, bus));
        }
        let types = self.types(&mut text)?;
        if !text.is_empty() {
            return Err(damaged(text.at(), "expected the end of the names of the inputs, found more"));
        }
        let first = inputs.iter().map(|input| input.2).min().unwrap_or(0);
        for (at, name, start, dimensions, bus) in inputs {
            let start = start - first + 1;
            let kind = match bus {
                None => Kind::Number,
                Some(bus) => {
                    let named = types.iter().position(|of| of.name == bus);
                    Kind::Bus(named.ok_or_else(|| damaged(at, "an input is a bus of a type that is not there"))?)
                }
            };
            let array = Array { kind, dimensions };
            self.expand(&types, name.into(), start, &array, 0, at)?;
        }
        Ok(())
    }

    fn types<'t>(&mut self, text: &mut Message<'t>) -> Result<Vec<Type<'t>>> {
        let mut types = Vec::new();
        for _ in 0..text.word()? {
            let (at, name) = (text.at(), text.text()?);
            let mut fields = Vec::new();
            for _ in 0..text.word()? {
                let (at, name) = (text.at(), text.text()?);
                let kind = match text.take(1)?.bytes() {
                    [0] => Kind::Number,
                    [1] => Kind::Bus(text.word()? as usize),
                    _ => return Err(damaged(at, "a member of a bus is of an unknown kind, expected 0 or 1")),
                };
                let (offset, _) = (u64::from(text.word()?), text.word()?);
                let array = Array { kind, dimensions: dimensions(text)? };
                self.count(1, at)?;
                fields.push(Member { name, offset, array });
            }
            self.count(1, at)?;
            types.push(Type { name, fields });
        }
        Ok(types)
    }

    fn count(&mut self, members: usize, at: usize) -> Result<()> {
        self.members = self.members.saturating_add(u32::try_from(members).unwrap_or(u32::MAX));
        if self.members > MEMBERS_MAX {
            return Err(damaged(at, "the inputs have more than 2^20 members of buses"));
        }
        Ok(())
    }

    /// Names the numbers of an array that begins at `start`; returns how many there are.
    fn expand(
        &mut self,
        types: &[Type<'_>],
        name: String,
        start: u64,
        array: &Array,
        depth: usize,
        at: usize,
    ) -> Result<u64> {
        let too_many = || damaged(at, "an input has more than 2^32 values");
        let product = array.dimensions.iter().try_fold(1u64, |product, &size| product.checked_mul(size.into()));
        let count = product.filter(|&count| count <= 1 << 32).ok_or_else(too_many)?;
        let Kind::Bus(index) = array.kind else {
            self.put(name, Range { start, len: count }, at)?;
            return Ok(count);
        };
        let bus = types.get(index).ok_or_else(|| damaged(at, "a bus holds a bus of a type that is not there"))?;
        if depth == DEPTH_MAX {
            return Err(damaged(at, "buses hold buses more than 64 deep"));
        }
        let mut taken = 0;
        for element in 0..count {
            let path = format!("{name}{}", subscripts(element, &array.dimensions));
            let mut size = 0;
            self.count(1, at)?;
            for member in &bus.fields {
                self.count(1, at)?;
                let path = format!("{path}.{}", member.name);
                // The offset is that of the member in its bus, and follows from the sizes of those before it.
                if member.offset != size {
                    return Err(damaged(at, "the members of a bus do not follow one another"));
                }
                size += self.expand(types, path, start + taken + size, &member.array, depth + 1, at)?;
            }
            taken += size;
            if taken > 1 << 32 {
                return Err(too_many());
            }
        }
        Ok(taken)
    }
}

/// What a signal, or an element of an array of them, is.
#[derive(Clone, Copy)]
enum Kind {
    Number,
    /// By its place among the types.
    Bus(usize),
}

struct Array {
    kind: Kind,
    dimensions: Vec<u32>,
}

struct Member<'a> {
    name: &'a str,
    offset: u64,
    array: Array,
}

struct Type<'a> {
    name: &'a str,
    fields: Vec<Member<'a>>,
}

fn dimensions(text: &mut Message<'_>) -> Result<Vec<u32>> {
    let count = text.word()? as usize;
    let mut bytes = text.take(count.saturating_mul(4))?;
    (0..count).map(|_| bytes.word()).collect()
}

/// `[1][2]` for the element of this number of an array.
fn subscripts(mut element: u64, dimensions: &[u32]) -> String {
    let mut places = Vec::new();
    for &size in dimensions.iter().rev() {
        places.push(element % u64::from(size));
        element /= u64::from(size);
    }
    places.iter().rev().map(|place| format!("[{place}]")).collect()
}
