//! The conversation with a circuit's module: the functions that circom 2 exports.
//!
//! Values cross through a small shared memory of one field element, limb by limb (`writeSharedRWMemory`,
//! `readSharedRWMemory`). A signal is named by the FNV-1a hash of its name. The module computes the whole witness when the
//! last input value is set.

use crate::inputs::{Inputs, Shape};
use crate::machine::{failed, not_circom, too_large, Machine, Mode, ASSERTION, LIMBS_MAX, STACK_BYTES};
use crate::number::Modulus;
use crate::recording::Line;
use crate::values::Values;
use crate::{list, Caller, Error, Limits, Record, Result};
use wasmi::TypedFunc;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// A witness: one value per wire, wire 0 first, which is 1. Wiped when dropped.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Witness {
    #[zeroize(skip)]
    prime: Vec<u8>,
    values: Vec<u8>,
}

impl Witness {
    /// `values` begin with 1, each as many bytes as the prime has and below it.
    pub(crate) fn new(prime: Vec<u8>, values: Vec<u8>) -> Self {
        Self { prime, values }
    }

    /// The field's prime, little-endian.
    pub fn prime(&self) -> &[u8] {
        &self.prime
    }

    /// All values, each as many little-endian bytes as the prime has, each below the prime.
    pub fn values(&self) -> &[u8] {
        &self.values
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.values.len() / self.prime.len()
    }

    /// Never: the first value is always there.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

/// Secret values are not printed.
impl std::fmt::Debug for Witness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Witness").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// Runs a circuit's module, see [`crate::calculate`].
pub(crate) fn calculate(wasm: &[u8], json: Zeroizing<Vec<u8>>, limits: Limits, caller: &dyn Caller) -> Result<Witness> {
    run(wasm, Mode::Native, json, limits, caller, |_, done| Ok(done?.witness))
}

/// [`crate::calculate`] of a module without the host's field functions: everything is done by the module's own code. For comparisons.
#[doc(hidden)]
pub fn interpret(wasm: &[u8], json: Zeroizing<Vec<u8>>, limits: Limits, caller: &dyn Caller) -> Result<Witness> {
    run(wasm, Mode::Own, json, limits, caller, |_, done| Ok(done?.witness))
}

/// [`calculate`] of a run that is recorded; or why it cannot be, and then it has ended early.
pub(crate) fn record(
    wasm: &[u8],
    json: &[u8],
    (which, explores): (Record, bool),
    limits: Limits,
    caller: &dyn Caller,
) -> Result<Result<(Line, Done), &'static str>> {
    run(wasm, Mode::Recorded { which, explores }, json, limits, caller, |machine, done| match machine.recorded() {
        Some(Ok(line)) => Ok(Ok((line, done?))),
        Some(Err(why)) => Ok(Err(why)),
        None => Err(failed("it was not recorded")),
    })
}

/// What a run gave.
pub(crate) struct Done {
    /// Names and numbers of values of the inputs, in the order in which they were set.
    pub(crate) signals: Vec<(String, u32)>,
    pub(crate) witness: Witness,
}

fn run<T: Send>(
    wasm: &[u8],
    mode: Mode,
    json: impl AsRef<[u8]> + Send,
    limits: Limits,
    caller: &dyn Caller,
    after: impl FnOnce(&mut Machine, Result<Done>) -> Result<T> + Send,
) -> Result<T> {
    // A stack of known size (see `machine`), which also goes back to the system with all that was on it.
    let thread = std::thread::Builder::new().name("circuit".into()).stack_size(STACK_BYTES);
    std::thread::scope(|scope| {
        let work = || {
            let mut machine = Machine::load(wasm, mode, limits, caller)?;
            let done = Circuit::load(&mut machine, limits, caller).and_then(|mut circuit| circuit.calculate(json));
            after(&mut machine, done)
        };
        let running = thread.spawn_scoped(scope, work);
        let running = running.map_err(|e| Error::System(format!("cannot start a thread for the circuit: {e}")))?;
        running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

struct Circuit<'a, 'm> {
    machine: &'m mut Machine<'a>,
    caller: &'a dyn Caller,
    limits: Limits,
    modulus: Modulus,
    limbs: usize,
    inputs: Option<usize>,
    tells_sizes: bool,
    write_shared: TypedFunc<(i32, i32), ()>,
    read_shared: TypedFunc<i32, i32>,
}

impl<'a, 'm> Circuit<'a, 'm> {
    fn load(machine: &'m mut Machine<'a>, limits: Limits, caller: &'a dyn Caller) -> Result<Self> {
        // Without `getVersion` it is a module of circom 1, or none at all.
        match machine.call::<(), i32>("getVersion", ())? {
            2 => {}
            other => {
                return Err(not_circom(&format!("it was made by circom {other}; compile the circuit with circom 2")))
            }
        }
        let write_shared = machine.export("writeSharedRWMemory")?;
        let read_shared = machine.export("readSharedRWMemory")?;
        let limbs: i32 = machine.call("getFieldNumLen32", ())?;
        let limbs = usize::try_from(limbs)
            .ok()
            .filter(|n| (1..=LIMBS_MAX).contains(n))
            .ok_or_else(|| not_circom(&format!("its field has {limbs} limbs of 32 bits, expected 1 to {LIMBS_MAX}")))?;
        machine.call::<(), ()>("getRawPrime", ())?;
        let mut prime = vec![0; limbs];
        for (i, limb) in prime.iter_mut().enumerate() {
            *limb = machine.invoke(read_shared, i as i32)? as u32;
        }
        let modulus = Modulus::new(prime).ok_or_else(|| not_circom("its field's modulus is not an odd prime"))?;
        // 1: check every assertion while computing, as snarkjs asks for.
        machine.call::<i32, ()>("init", 1)?;
        // Circuits of circom 2.0 before July 2022 do not say how many they need; setting too few leaves them without a witness.
        let inputs = match machine.has("getInputSize") {
            true => Some(usize::try_from(machine.call::<(), i32>("getInputSize", ())?).unwrap_or(0)),
            false => None,
        };
        let tells_sizes = machine.has("getInputSignalSize");
        Ok(Self { machine, caller, limits, modulus, limbs, inputs, tells_sizes, write_shared, read_shared })
    }

    fn calculate(&mut self, json: impl AsRef<[u8]>) -> Result<Done> {
        let inputs = Inputs::read(json.as_ref(), self)?;
        drop(json);
        self.set_all(&inputs)?;
        let signals = inputs.signals().map(|(name, values)| (name.to_string(), values.len() as u32)).collect();
        drop(inputs);
        Ok(Done { signals, witness: self.witness()? })
    }

    fn set_all(&mut self, inputs: &Inputs) -> Result<()> {
        if let Some(needed) = self.inputs.filter(|&needed| inputs.len() < needed) {
            return Err(self.missing(inputs, needed - inputs.len())?);
        }
        let mut first = 0;
        inputs.signals().try_for_each(|(name, values)| {
            self.set(name, values, first)?;
            first += values.len();
            Ok(())
        })
    }

    /// The error of inputs that lack `count` values.
    fn missing(&mut self, inputs: &Inputs, count: usize) -> Result<Error> {
        let values = |n: usize| if n == 1 { "1 value".to_string() } else { format!("{n} values") };
        let mut missing = self.own_inputs()?;
        missing.retain(|(name, _)| inputs.signals().all(|(given, _)| given != name));
        if !missing.is_empty() {
            let named: usize = missing.iter().map(|(_, size)| size).sum();
            let are = if missing.len() == 1 { "is" } else { "are" };
            let more = if named < count { format!(", and {} of others", values(count - named)) } else { String::new() };
            let names = list(missing.iter().map(|(name, size)| format!("{name} ({})", values(*size))));
            return Ok(Error::inputs(format!("{names} {are} missing{more}")));
        }
        let given = list(inputs.signals().map(|(name, given)| format!("{name} ({})", values(given.len()))));
        let (are, needed) = (if count == 1 { "is" } else { "are" }, inputs.len() + count);
        Ok(Error::missing(format!("{} of {needed} {are} missing; given: {given}", values(count))))
    }

    /// Those of the names that the caller knows that are inputs, with the number of their values.
    fn own_inputs(&mut self) -> Result<Vec<(String, usize)>> {
        let mut found = Vec::new();
        if self.tells_sizes {
            for name in self.caller.names() {
                if let Some(size) = self.size(&name)?.filter(|&size| size > 0) {
                    found.push((name, size));
                }
            }
        }
        Ok(found)
    }

    /// Sets a signal, whose first value has the number `first` among all inputs.
    fn set(&mut self, name: &str, values: &Values, first: usize) -> Result<()> {
        let (high, low) = fnv1a(name);
        let set_input: TypedFunc<(i32, i32, i32), ()> = self.machine.export("setInputSignal")?;
        values.try_for_each(self.limbs, |i, value| {
            for (j, &limb) in value.iter().enumerate() {
                self.machine.invoke(self.write_shared, (j as i32, limb as i32))?;
            }
            self.machine.tell_input((first + i) as u32)?;
            self.machine.invoke(set_input, (high, low, i as i32)).map_err(|error| match error {
                // Which input was set last says nothing about a failed assertion, much about the others.
                Error::Inputs(why) if !why.starts_with(ASSERTION) => Error::inputs(format!("signal {name}: {why}")),
                other => other,
            })
        })
    }

    fn witness(&mut self) -> Result<Witness> {
        let size = self.machine.call::<(), i32>("getWitnessSize", ())? as u32;
        let bytes = self.limbs * 4;
        // Each value lies in the module's memory, with a few more bytes beside it.
        let most = self.machine.memory_bytes() / bytes;
        let count = usize::try_from(size).ok().filter(|n| (1..=most).contains(n));
        let count = count.ok_or_else(|| {
            not_circom(&format!("it reports {size} witness values, expected 1 to {most}, which its memory could hold"))
        })?;
        self.machine.take(count * bytes, "the witness")?;
        let mut values = Vec::new();
        values.try_reserve_exact(count * bytes).map_err(|_| too_large(self.limits, "the witness"))?;
        let mut witness = Witness::new(self.modulus.to_bytes(), values);

        let get: TypedFunc<i32, ()> = self.machine.export("getWitness")?;
        let mut element = Zeroizing::new([0u32; LIMBS_MAX]);
        let element = &mut element[..self.limbs];
        for i in 0..count {
            self.machine.read_wire(get, i)?;
            self.machine.read_shared(self.read_shared, element)?;
            self.machine.tell_wire()?;
            if !self.modulus.is_above(element) {
                return Err(failed(&format!("witness value {i} is not below the field's modulus")));
            }
            if i == 0 && (element[0] != 1 || element[1..].iter().any(|&limb| limb != 0)) {
                return Err(failed("the first value of its witness is not 1, which it is for every circuit"));
            }
            witness.values.extend(element.iter().flat_map(|limb| limb.to_le_bytes()));
        }
        Ok(witness)
    }
}

impl Shape for Circuit<'_, '_> {
    fn modulus(&self) -> &Modulus {
        &self.modulus
    }

    fn total(&self) -> Option<usize> {
        self.inputs
    }

    fn size(&mut self, name: &str) -> Result<Option<usize>> {
        if !self.tells_sizes {
            return Ok(None);
        }
        let size = self.machine.call::<(i32, i32), i32>("getInputSignalSize", fnv1a(name))?;
        // Some releases answer -1 for an unknown name, others 0. An input can have no elements, so 0 may be right.
        Ok(Some(usize::try_from(size).unwrap_or(0)))
    }

    fn names(&mut self) -> Result<Vec<String>> {
        Ok(self.own_inputs()?.into_iter().map(|(name, _)| name).collect())
    }

    fn take(&mut self, bytes: usize) -> Result<()> {
        self.machine.take(bytes, "the inputs")
    }

    fn give(&mut self, bytes: usize) {
        self.machine.give(bytes);
    }
}

/// 64-bit FNV-1a of a signal's name, by UTF-16 units as in circom's own calculator, as (high, low) words.
fn fnv1a(name: &str) -> (i32, i32) {
    let hash = name
        .encode_utf16()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, unit| (hash ^ u64::from(unit)).wrapping_mul(0x100_0000_01b3));
    ((hash >> 32) as i32, hash as i32)
}
