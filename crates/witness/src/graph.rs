//! Graphs of circom-witnesscalc: a circuit as a list of field operations.
//!
//! The file is 14 bytes of name and version, the number of operations in 64 bits, each operation as a protocol buffer behind its
//! length, a protocol buffer that says which operations are the witness and where inputs go, and in the last 8 bytes where that begins.
//! All numbers are little-endian. An operation refers to earlier ones, so one pass reads the file and computes, and nothing of the
//! operations is kept but their values.

mod field;
mod signals;
mod wire;

use crate::budget::Budget;
use crate::calculator::Witness;
use crate::inputs::{Inputs, Shape};
use crate::machine::too_large;
use crate::number::Modulus;
use crate::{list, Caller, Error, Limit, Limits, Result};
use ark_ff::BigInt;
use field::Field;
use signals::{Names, Signals};
use std::time::Instant;
use wire::{damaged, Message, Node};
use zeroize::Zeroizing;

/// What all files of circom-witnesscalc begin with.
pub(crate) const FAMILY: &[u8] = b"wtns.";
const VERSIONS: [&[u8]; 2] = [b"wtns.graph.001", b"wtns.graph.002"];
/// Bytes of the name and the number of operations.
const HEAD_BYTES: usize = 14 + 8;
const TAIL_BYTES: usize = 8;
/// Bytes of the shortest operation: its length, its kind, the length of what it holds.
const NODE_BYTES_MIN: usize = 3;
/// Bytes of a field element.
const ELEMENT_BYTES: usize = 32;
/// Bytes of a constant. It is reduced, and none of circom is longer than the prime.
const CONSTANT_BYTES_MAX: usize = 64;
/// Steps from one look at the clock to the next, some 0.1 ms.
const LOOK_STEPS: u64 = 100_000;

/// Computes a graph, see [`crate::calculate`].
pub(crate) fn calculate(file: &[u8], json: Zeroizing<Vec<u8>>, limits: Limits, caller: &dyn Caller) -> Result<Witness> {
    let begun = Instant::now();
    let mut budget = Budget::new(limits.memory_bytes);
    if !budget.take(file.len()) {
        return Err(too_large(limits, "the graph"));
    }
    let parts = Parts::of(file)?;
    let about = About::read(parts.about, parts.version, &mut budget, limits)?;
    let run = Run { parts, about: &about, limits, caller, begun };
    match about.prime {
        None => run.calculate::<ark_bn254::Fr>(budget, json),
        Some(prime) if is_modulus::<ark_bn254::Fr>(prime) => run.calculate::<ark_bn254::Fr>(budget, json),
        Some(prime) if is_modulus::<ark_bls12_381::Fr>(prime) => run.calculate::<ark_bls12_381::Fr>(budget, json),
        Some(_) => Err(Error::circuit("the graph is over another field than that of bn254 or bls12-381".into())),
    }
}

fn is_modulus<F: Field>(bytes: &[u8]) -> bool {
    bytes == little_endian(F::MODULUS)
}

fn little_endian(value: BigInt<4>) -> [u8; ELEMENT_BYTES] {
    let mut bytes = [0; ELEMENT_BYTES];
    for (bytes, limb) in bytes.chunks_exact_mut(8).zip(value.0) {
        bytes.copy_from_slice(&limb.to_le_bytes());
    }
    bytes
}

/// The parts of a file.
struct Parts<'a> {
    version: usize,
    count: usize,
    nodes: Message<'a>,
    about: Message<'a>,
}

impl<'a> Parts<'a> {
    fn of(file: &'a [u8]) -> Result<Self> {
        let Some(version) = VERSIONS.iter().position(|version| file.starts_with(version)) else {
            let name: String = file.iter().take(14).map(|&byte| char::from(byte)).collect();
            return Err(Error::circuit(format!(
                "this is {name}, expected wtns.graph.001 or wtns.graph.002; make a graph with build-circuit of circom-witnesscalc, or \
                 name the .wasm that circom writes"
            )));
        };
        let end = file.len().saturating_sub(TAIL_BYTES);
        if end < HEAD_BYTES {
            return Err(damaged(file.len(), &format!("expected at least {} bytes", HEAD_BYTES + TAIL_BYTES)));
        }
        let number =
            |at: usize| file[at..at + 8].iter().rev().fold(0u64, |number, &byte| number << 8 | u64::from(byte));
        let start = usize::try_from(number(end)).ok().filter(|start| (HEAD_BYTES..=end).contains(start));
        let start = start.ok_or_else(|| {
            damaged(
                end,
                &format!("the description of the graph begins at byte {}, expected {HEAD_BYTES} to {end}", number(end)),
            )
        })?;
        let most = (start - HEAD_BYTES) / NODE_BYTES_MIN;
        let count = usize::try_from(number(14)).ok().filter(|&count| count <= most);
        let count = count.ok_or_else(|| {
            damaged(
                14,
                &format!("expected at most {most} operations, which is what it has room for, found {}", number(14)),
            )
        })?;
        let mut about = Message::new(&file[start..end], start);
        let described = about.counted()?;
        if !about.is_empty() {
            return Err(damaged(about.at(), "expected the end of the description, found more"));
        }
        Ok(Self { version, count, nodes: Message::new(&file[HEAD_BYTES..start], HEAD_BYTES), about: described })
    }
}

/// What a graph says of itself.
struct About<'a> {
    /// The operations whose values are the witness.
    wires: Vec<u32>,
    signals: Signals,
    prime: Option<&'a [u8]>,
}

impl<'a> About<'a> {
    fn read(message: Message<'a>, version: usize, budget: &mut Budget, limits: Limits) -> Result<Self> {
        // Each wire has a byte at least.
        if !budget.take(message.bytes().len().saturating_mul(size_of::<u32>())) {
            return Err(too_large(limits, "the graph"));
        }
        let (mut wires, mut prime, mut described) = (Vec::new(), None, None);
        let mut names = Names::new(budget, limits);
        let (at, mut fields) = (message.at(), message);
        while let Some((field, value)) = fields.field()? {
            match field {
                1 => match value {
                    wire::Value::Bytes(mut packed) => {
                        while !packed.is_empty() {
                            wires.push(wire::Value::Number(packed.number()?).small(packed.at())?);
                        }
                    }
                    one => wires.push(one.small(at)?),
                },
                2 if version == 0 => names.entry(value.message(at)?)?,
                3 => prime = Some(wire::big_number(value.message(at)?)?),
                5 if version == 1 => described = Some(value.message(at)?),
                _ => {}
            }
        }
        if let Some(text) = described {
            names.described(text)?;
        }
        let signals = names.finish();
        Ok(Self { wires, signals, prime })
    }
}

/// One calculation.
struct Run<'a> {
    parts: Parts<'a>,
    about: &'a About<'a>,
    limits: Limits,
    caller: &'a dyn Caller,
    begun: Instant,
}

impl Run<'_> {
    fn calculate<F: Field>(&self, budget: Budget, json: Zeroizing<Vec<u8>>) -> Result<Witness> {
        let prime = little_endian(F::MODULUS);
        let limbs = prime.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        let modulus = Modulus::new(limbs).ok_or_else(|| Error::System("the field has no modulus".into()))?;
        let mut circuit = Circuit { signals: &self.about.signals, modulus, budget, limits: self.limits };
        let inputs = Inputs::read(&json, &mut circuit)?;
        drop(json);
        circuit.complete(&inputs)?;
        let places = circuit.places::<F>(&inputs)?;
        drop(inputs);
        let values = self.compute(&places, &mut circuit)?;
        drop(places);
        self.witness(&values, prime, &mut circuit)
    }

    /// The value of each operation.
    fn compute<F: Field>(&self, places: &[F], circuit: &mut Circuit<'_>) -> Result<Zeroizing<Vec<F>>> {
        let mut values: Zeroizing<Vec<F>> = circuit.elements(self.parts.count, "the graph's values")?;
        let (mut nodes, mut steps, mut since) = (self.parts.nodes, self.limits.steps, 0);
        for _ in 0..self.parts.count {
            let message = nodes.counted()?;
            let at = message.at();
            let (value, cost) = operate(Node::read(message)?, &values, places, at)?;
            if cost > steps {
                let (done, count) = (values.len(), self.parts.count);
                let why = format!("{done} of the graph's {count} operations took {} steps", self.limits.steps - steps);
                return Err(Error::limit(Limit::Steps, why));
            }
            (steps, since) = (steps - cost, since + cost);
            if since >= LOOK_STEPS {
                since = 0;
                self.look()?;
            }
            values.push(value);
        }
        match nodes.is_empty() {
            true => Ok(values),
            false => Err(damaged(nodes.at(), "expected the end of the operations, found more")),
        }
    }

    fn look(&self) -> Result<()> {
        if self.caller.stop() {
            return Err(Error::Stopped);
        }
        match self.limits.time {
            Some(time) if self.begun.elapsed() >= time => {
                let seconds = time.as_secs_f64();
                Err(Error::limit(Limit::Time, format!("the graph was stopped after {seconds} s")))
            }
            _ => Ok(()),
        }
    }

    fn witness<F: Field>(&self, values: &[F], prime: [u8; 32], circuit: &mut Circuit<'_>) -> Result<Witness> {
        let bytes = self.about.wires.len().saturating_mul(ELEMENT_BYTES);
        circuit.take_for(bytes, "the witness")?;
        let mut found = Vec::new();
        found.try_reserve_exact(bytes).map_err(|_| too_large(self.limits, "the witness"))?;
        // Wiped from here on, also where a wire is wrong.
        let mut found = Zeroizing::new(found);
        for (wire, &node) in self.about.wires.iter().enumerate() {
            let value = values.get(node as usize).ok_or_else(|| {
                let (at, count) = (self.parts.about.at(), values.len());
                damaged(at, &format!("wire {wire} is operation {node}, expected one of {count}"))
            })?;
            found.extend(little_endian(value.into_bigint()));
        }
        if found.get(..ELEMENT_BYTES) != Some(&little_endian(BigInt::from(1u64))) {
            let why = "the first value of its witness is not 1, which it is for every circuit";
            return Err(damaged(self.parts.about.at(), why));
        }
        Ok(Witness::new(prime.to_vec(), std::mem::take(&mut *found)))
    }
}

/// The value of an operation, and the steps that it took.
fn operate<F: Field>(node: Node<'_>, values: &[F], places: &[F], at: usize) -> Result<(F, u64)> {
    let of = |operand: u32| -> Result<F> {
        values.get(operand as usize).copied().ok_or_else(|| {
            let own = values.len();
            damaged(at, &format!("operation {own} uses operation {operand}, expected an earlier one"))
        })
    };
    let unknown = |op: u32, of: &str| damaged(at, &format!("unknown operation {op} of {of}"));
    match node {
        Node::Input(place) => {
            let value = places.get(place as usize).copied();
            let count = places.len();
            let value = value.ok_or_else(|| {
                damaged(at, &format!("it reads the value {place} of the inputs, expected one of {count}"))
            })?;
            Ok((value, field::NODE_STEPS))
        }
        Node::Constant(bytes) if bytes.len() <= CONSTANT_BYTES_MAX => {
            Ok((F::from_le_bytes_mod_order(bytes), field::NODE_STEPS))
        }
        Node::Constant(bytes) => Err(damaged(at, &format!("a number has {} bytes, expected 64 at most", bytes.len()))),
        Node::Unary(op, a) => {
            let (compute, cost) = field::unary::<F>(op).ok_or_else(|| unknown(op, "one value"))?;
            Ok((compute(of(a)?), cost))
        }
        Node::Binary(op, [a, b]) => {
            let (compute, cost) = field::binary::<F>(op).ok_or_else(|| unknown(op, "two values"))?;
            Ok((compute(of(a)?, of(b)?), cost))
        }
        Node::Select([a, b, c]) => {
            let (condition, yes, no) = (of(a)?, of(b)?, of(c)?);
            Ok((if condition == F::ZERO { no } else { yes }, field::NODE_STEPS))
        }
    }
}

/// What the reader of inputs asks a graph.
struct Circuit<'a> {
    signals: &'a Signals,
    modulus: Modulus,
    budget: Budget,
    limits: Limits,
}

impl Circuit<'_> {
    fn take_for(&mut self, bytes: usize, what: &str) -> Result<()> {
        self.budget.take(bytes).then_some(()).ok_or_else(|| too_large(self.limits, what))
    }

    /// Room for field elements, which are wiped when they are dropped.
    fn elements<F: Field>(&mut self, count: usize, what: &str) -> Result<Zeroizing<Vec<F>>> {
        self.take_for(count.saturating_mul(ELEMENT_BYTES), what)?;
        let mut elements = Vec::new();
        elements.try_reserve_exact(count).map_err(|_| Error::System(format!("the system has no memory for {what}")))?;
        Ok(Zeroizing::new(elements))
    }

    /// Fails where a signal has no values.
    fn complete(&self, inputs: &Inputs) -> Result<()> {
        let given: std::collections::HashSet<&str> = inputs.signals().map(|(name, _)| name).collect();
        let missing: Vec<_> =
            self.signals.iter().filter(|(name, range)| range.len > 0 && !given.contains(name.as_str())).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let are = if missing.len() == 1 { "is" } else { "are" };
        let names = list(missing.iter().map(|(name, range)| match range.len {
            1 => format!("{name} (1 value)"),
            count => format!("{name} ({count} values)"),
        }));
        Err(Error::inputs(format!("{names} {are} missing")))
    }

    /// All values of the inputs by place, behind the constant 1.
    fn places<F: Field>(&mut self, inputs: &Inputs) -> Result<Zeroizing<Vec<F>>> {
        let ends = self.signals.values().map(|range| range.start.saturating_add(range.len));
        let count = usize::try_from(ends.max().unwrap_or(0).max(1)).unwrap_or(usize::MAX);
        let mut places = self.elements(count, "the inputs")?;
        places.resize(count, F::ZERO);
        places[0] = F::ONE;
        for (name, values) in inputs.signals() {
            let start = self.signals.get(name).map_or(0, |range| range.start as usize);
            values.try_for_each(8, |i, limbs| {
                let limb = |i: usize| u64::from(limbs[2 * i]) | u64::from(limbs[2 * i + 1]) << 32;
                let value = F::from_bigint(BigInt([limb(0), limb(1), limb(2), limb(3)]));
                // The reader takes no more values than the signal has, each reduced.
                if let (Some(place), Some(value)) = (places.get_mut(start + i), value) {
                    *place = value;
                }
                Ok::<_, Error>(())
            })?;
        }
        Ok(places)
    }
}

impl Shape for Circuit<'_> {
    fn modulus(&self) -> &Modulus {
        &self.modulus
    }

    fn total(&self) -> Option<usize> {
        None
    }

    fn size(&mut self, name: &str) -> Result<Option<usize>> {
        let len = self.signals.get(name).map_or(0, |range| range.len);
        Ok(Some(usize::try_from(len).unwrap_or(usize::MAX)))
    }

    fn names(&mut self) -> Result<Vec<String>> {
        Ok(self.signals.keys().cloned().collect())
    }

    fn take(&mut self, bytes: usize) -> Result<()> {
        self.take_for(bytes, "the inputs")
    }

    fn give(&mut self, bytes: usize) {
        self.budget.give(bytes);
    }
}
