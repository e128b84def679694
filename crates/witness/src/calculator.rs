//! The conversation with a circuit's module: the functions that circom 2 exports and imports.
//!
//! Values cross through a small shared memory of one field element, limb by limb (`writeSharedRWMemory`,
//! `readSharedRWMemory`). A signal is named by the FNV-1a hash of its name. The module computes the whole witness when the
//! last input value is set.

use crate::inputs::Signal;
use crate::number::Modulus;
use crate::{Error, Inputs, Result};
use wasmi::errors::{ErrorKind, InstantiationError, LinkerError};
use wasmi::{
    Caller, Config, Engine, ExternType, Instance, Linker, Module, Store, StoreLimits, StoreLimitsBuilder, TrapCode,
    TypedFunc, WasmParams, WasmResults,
};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Limbs of one field element. The largest field that circom knows has 8.
const LIMBS_MAX: usize = 16;

/// Values of one witness: with 8 limbs each they fill 4 GiB, the whole of a 32-bit memory.
const VALUES_MAX: usize = 1 << 27;

/// Characters of one message of the circuit.
const MESSAGE_CHARS_MAX: usize = 4096;

/// Lines of messages that are kept.
const MESSAGES_MAX: usize = 1000;

/// What a circuit may use up.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of memory. A 32-bit module cannot have more than 4 GiB.
    pub memory_bytes: usize,
    /// Steps, of which a core does about 10^9 a second.
    pub steps: u64,
}

impl Default for Limits {
    /// 4 GiB, and 10^12 steps: some fifteen minutes.
    fn default() -> Self {
        Self { memory_bytes: 1 << 32, steps: 1_000_000_000_000 }
    }
}

/// A witness: one value per wire, wire 0 first, which is 1. Wiped when dropped.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Witness {
    #[zeroize(skip)]
    prime: Vec<u8>,
    #[zeroize(skip)]
    messages: Vec<String>,
    values: Vec<u8>,
}

impl Witness {
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

    /// What the circuit's `log` statements said, one line each. This can hold secret values: the circuit's author chose so.
    pub fn messages(&self) -> &[String] {
        &self.messages
    }
}

/// Secret values are not printed.
impl std::fmt::Debug for Witness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Witness").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// Runs a circuit's module (the `.wasm` that circom 2 writes) on `inputs`.
pub fn calculate(wasm: &[u8], inputs: &Inputs, limits: Limits) -> Result<Witness> {
    let mut circuit = Circuit::load(wasm, limits)?;
    let result = circuit.set_all(inputs).and_then(|()| circuit.witness());
    circuit.wipe();
    result
}

/// What the host keeps for the module while it runs.
struct Host {
    limits: StoreLimits,
    /// The line of a `log` statement so far.
    line: String,
    lines: Vec<String>,
    /// Where an assertion failed, innermost template first.
    trace: Vec<String>,
}

struct Circuit {
    store: Store<Host>,
    instance: Instance,
    limits: Limits,
    modulus: Modulus,
    limbs: usize,
    write_shared: TypedFunc<(i32, i32), ()>,
    read_shared: TypedFunc<i32, i32>,
}

impl Circuit {
    fn load(wasm: &[u8], limits: Limits) -> Result<Self> {
        if !wasm.starts_with(b"\0asm") {
            return Err(not_circom("it does not begin with the WebAssembly magic number"));
        }
        let mut config = Config::default();
        config.consume_fuel(true).allow_start_fn(false);
        let engine = Engine::new(&config);
        let module = Module::new(&engine, wasm).map_err(|e| not_circom(&e.to_string()))?;
        let linker = imports(&engine, &module)?;

        let memory_limits =
            StoreLimitsBuilder::new().memory_size(limits.memory_bytes).memories(1).tables(4).table_elements(1 << 20);
        let host = Host { limits: memory_limits.build(), line: String::new(), lines: Vec::new(), trace: Vec::new() };
        let mut store = Store::new(&engine, host);
        store.limiter(|host| &mut host.limits);
        store.set_fuel(limits.steps).map_err(|e| failed(&e.to_string()))?;
        let instance = linker.instantiate_and_start(&mut store, &module).map_err(|e| match e.kind() {
            ErrorKind::Instantiation(InstantiationError::FailedToInstantiateMemory(_)) => too_large(limits),
            _ => not_circom(&e.to_string()),
        })?;

        // Without `getVersion` it is a module of circom 1, or none at all.
        let version: TypedFunc<(), i32> = export(&store, instance, "getVersion")?;
        let write_shared = export(&store, instance, "writeSharedRWMemory")?;
        let read_shared = export(&store, instance, "readSharedRWMemory")?;
        let modulus = Modulus::new(vec![3]).expect("3 is odd");
        let mut circuit = Self { store, instance, limits, modulus, limbs: 0, write_shared, read_shared };
        match circuit.invoke(version, ())? {
            2 => {}
            other => {
                return Err(not_circom(&format!("it was made by circom {other}; compile the circuit with circom 2")))
            }
        }
        let limbs = circuit.call::<(), i32>("getFieldNumLen32", ())?;
        circuit.limbs = usize::try_from(limbs)
            .ok()
            .filter(|n| (1..=LIMBS_MAX).contains(n))
            .ok_or_else(|| not_circom(&format!("its field has {limbs} limbs of 32 bits, expected 1 to {LIMBS_MAX}")))?;
        circuit.call::<(), ()>("getRawPrime", ())?;
        let mut prime = vec![0; circuit.limbs];
        circuit.read_element(&mut prime)?;
        circuit.modulus = Modulus::new(prime).ok_or_else(|| not_circom("its field's modulus is not an odd prime"))?;
        Ok(circuit)
    }

    fn set_all(&mut self, inputs: &Inputs) -> Result<()> {
        // 1: check every assertion while computing, as snarkjs asks for.
        self.call::<i32, ()>("init", 1)?;
        let mut set = 0u64;
        for signal in inputs.signals() {
            self.set(signal)?;
            set += signal.values.len() as u64;
        }
        // Circuits of circom 2.0 before July 2022 do not say how many they need; setting too few leaves them without a witness.
        if self.has("getInputSize") {
            let needed = self.call::<(), i32>("getInputSize", ())?.max(0) as u64;
            if set < needed {
                let given = inputs.signals().iter().map(|s| format!("{} ({})", s.name, s.values.len()));
                return Err(Error::inputs(format!(
                    "the circuit needs {needed} input values and only {set} are given: {}; add the missing signals",
                    list(given)
                )));
            }
        }
        Ok(())
    }

    fn set(&mut self, signal: &Signal) -> Result<()> {
        let (high, low) = fnv1a(&signal.name);
        let name = &signal.name;
        let given = signal.values.len();
        if self.has("getInputSignalSize") {
            let size = self.call::<(i32, i32), i32>("getInputSignalSize", (high, low))?;
            // Some releases answer -1 for an unknown name, others 0. An input can have no elements, so 0 may be right.
            let size = usize::try_from(size).unwrap_or(0);
            if size == 0 && given > 0 {
                return Err(Error::inputs(format!(
                    "signal {name} is not an input of the circuit; remove or rename it"
                )));
            }
            if given != size {
                let problem = if given < size { "too few" } else { "too many" };
                return Err(Error::inputs(format!("signal {name}: {problem} values, expected {size}, found {given}")));
            }
        }
        let set_input: TypedFunc<(i32, i32, i32), ()> = export(&self.store, self.instance, "setInputSignal")?;
        for (i, text) in signal.values.iter().enumerate() {
            let value = self
                .modulus
                .parse(text)
                .map_err(|problem| Error::inputs(format!("signal {name}: value {i} {problem}")))?;
            for (j, &limb) in value.iter().enumerate() {
                self.invoke(self.write_shared, (j as i32, limb as i32))?;
            }
            self.invoke(set_input, (high, low, i as i32)).map_err(|error| match error {
                // Which input was set last says nothing about a failed assertion, much about the others.
                Error::Inputs(why) if !why.starts_with(ASSERTION) => Error::inputs(format!("signal {name}: {why}")),
                other => other,
            })?;
        }
        Ok(())
    }

    fn witness(&mut self) -> Result<Witness> {
        let size = self.call::<(), i32>("getWitnessSize", ())?;
        let count = usize::try_from(size)
            .ok()
            .filter(|n| (1..=VALUES_MAX).contains(n))
            .ok_or_else(|| not_circom(&format!("it reports {} witness values, expected 1 to 2^27", size as u32)))?;
        let bytes = self.limbs * 4;
        let mut values = Vec::new();
        values.try_reserve_exact(count * bytes).map_err(|_| too_large(self.limits))?;
        let messages = std::mem::take(&mut self.store.data_mut().lines);
        let mut witness = Witness { prime: self.modulus.to_bytes(), messages, values };

        let get: TypedFunc<i32, ()> = export(&self.store, self.instance, "getWitness")?;
        let mut element = [0u32; LIMBS_MAX];
        for i in 0..count {
            self.invoke(get, i as i32)?;
            let element = &mut element[..self.limbs];
            self.read_element(element)?;
            if !self.modulus.is_above(element) {
                return Err(failed(&format!("witness value {i} is not below the field's modulus")));
            }
            witness.values.extend(element.iter().flat_map(|limb| limb.to_le_bytes()));
        }
        element.zeroize();
        Ok(witness)
    }

    fn read_element(&mut self, limbs: &mut [u32]) -> Result<()> {
        for (i, limb) in limbs.iter_mut().enumerate() {
            *limb = self.invoke(self.read_shared, i as i32)? as u32;
        }
        Ok(())
    }

    fn has(&self, name: &str) -> bool {
        self.instance.get_func(&self.store, name).is_some()
    }

    fn call<P: WasmParams, R: WasmResults>(&mut self, name: &str, params: P) -> Result<R> {
        let function = export(&self.store, self.instance, name)?;
        self.invoke(function, params)
    }

    fn invoke<P: WasmParams, R: WasmResults>(&mut self, function: TypedFunc<P, R>, params: P) -> Result<R> {
        function.call(&mut self.store, params).map_err(|error| self.explain(&error))
    }

    fn explain(&self, error: &wasmi::Error) -> Error {
        if let Some(exception) = error.downcast_ref::<Exception>() {
            return exception.explain(&self.store.data().trace);
        }
        match error.as_trap_code() {
            Some(TrapCode::OutOfFuel) => failed(&format!(
                "it was stopped after {} steps; it does not end, or needs a higher limit",
                self.limits.steps
            )),
            Some(TrapCode::GrowthOperationLimited) => too_large(self.limits),
            _ => failed(&error.to_string()),
        }
    }

    /// Overwrites the module's memory, which holds all signals.
    fn wipe(&mut self) {
        if let Some(memory) = self.instance.get_memory(&self.store, "memory") {
            memory.data_mut(&mut self.store).zeroize();
        }
    }
}

/// The circuit's own report that something is wrong.
#[derive(Debug)]
struct Exception(i32);

const ASSERTION: &str = "the inputs do not satisfy the circuit";

impl Exception {
    fn explain(&self, trace: &[String]) -> Error {
        let why = match self.0 {
            1 => "the circuit has no such input".into(),
            2 => "more values are given than the circuit has inputs".into(),
            3 => "it is set twice".into(),
            4 if trace.is_empty() => format!("{ASSERTION}: an assertion failed"),
            4 => format!("{ASSERTION}: an assertion failed: {}", list(trace.iter().cloned())),
            5 => return failed("it ran out of memory"),
            6 => "more values are given than the signal has".into(),
            7 => return failed("it reached outside of an array"),
            code => return failed(&format!("it stopped with the unknown code {code}")),
        };
        Error::inputs(why)
    }
}

impl std::fmt::Display for Exception {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "exception {}", self.0)
    }
}

impl wasmi::errors::HostError for Exception {}

/// The functions a circom 2 module may import; those of its first releases are among them.
fn imports(engine: &Engine, module: &Module) -> Result<Linker<Host>> {
    let mut linker = Linker::new(engine);
    for import in module.imports() {
        let place = format!("{}.{}", import.module(), import.name());
        let function = match import.ty() {
            ExternType::Func(_) if import.module() == "runtime" => import.name(),
            _ => "",
        };
        let linked = match function {
            "exceptionHandler" => linker.func_wrap("runtime", function, |code: i32| -> Result<(), wasmi::Error> {
                Err(wasmi::Error::host(Exception(code)))
            }),
            "printErrorMessage" => linker.func_wrap("runtime", function, |mut caller: Caller<'_, Host>| {
                let text = message(&mut caller)?;
                keep(&mut caller.data_mut().trace, text);
                Ok::<(), wasmi::Error>(())
            }),
            "writeBufferMessage" => linker.func_wrap("runtime", function, |mut caller: Caller<'_, Host>| {
                let text = message(&mut caller)?;
                log(caller.data_mut(), &text);
                Ok::<(), wasmi::Error>(())
            }),
            "showSharedRWMemory" => linker.func_wrap("runtime", function, |mut caller: Caller<'_, Host>| {
                let text = shared_element(&mut caller)?;
                log(caller.data_mut(), &text);
                Ok::<(), wasmi::Error>(())
            }),
            _ => {
                let known = "exceptionHandler, printErrorMessage, writeBufferMessage and showSharedRWMemory";
                return Err(not_circom(&format!("it imports {place}; circom 2 imports only runtime's {known}")));
            }
        };
        match linked {
            Ok(_) | Err(LinkerError::DuplicateDefinition { .. }) => {}
            Err(error) => return Err(failed(&error.to_string())),
        }
    }
    Ok(linker)
}

/// The text that the module holds ready, one character a call.
fn message(caller: &mut Caller<'_, Host>) -> Result<String, wasmi::Error> {
    let next = caller_export::<(), i32>(caller, "getMessageChar")?;
    let mut text = String::new();
    for _ in 0..MESSAGE_CHARS_MAX {
        match next.call(&mut *caller, ())? {
            0 => break,
            code => text.push(u32::try_from(code).ok().and_then(char::from_u32).unwrap_or('?')),
        }
    }
    Ok(text)
}

/// The shared field element, in hexadecimal.
fn shared_element(caller: &mut Caller<'_, Host>) -> Result<String, wasmi::Error> {
    let limbs = caller_export::<(), i32>(caller, "getFieldNumLen32")?.call(&mut *caller, ())?;
    let read = caller_export::<i32, i32>(caller, "readSharedRWMemory")?;
    let mut digits = String::new();
    for i in (0..limbs.clamp(0, LIMBS_MAX as i32)).rev() {
        digits.push_str(&format!("{:08x}", read.call(&mut *caller, i)? as u32));
    }
    Ok(match digits.trim_start_matches('0') {
        "" => "0".into(),
        digits => format!("0x{digits}"),
    })
}

fn caller_export<P: WasmParams, R: WasmResults>(
    caller: &mut Caller<'_, Host>,
    name: &str,
) -> Result<TypedFunc<P, R>, wasmi::Error> {
    let function = caller.get_export(name).and_then(|export| export.into_func());
    let function = function.ok_or_else(|| wasmi::Error::new(format!("the export {name} is missing")))?;
    function.typed(&*caller)
}

/// A `log` statement sends its parts one by one and a line feed at the end.
fn log(host: &mut Host, part: &str) {
    if part == "\n" {
        let line = std::mem::take(&mut host.line);
        keep(&mut host.lines, line);
    } else if host.line.len() < MESSAGE_CHARS_MAX {
        if !host.line.is_empty() {
            host.line.push(' ');
        }
        host.line.push_str(part);
    }
}

fn keep(lines: &mut Vec<String>, line: String) {
    if lines.len() < MESSAGES_MAX {
        lines.push(crate::one_line(&line));
    }
}

fn export<P: WasmParams, R: WasmResults>(
    store: &Store<Host>,
    instance: Instance,
    name: &str,
) -> Result<TypedFunc<P, R>> {
    instance.get_typed_func(store, name).map_err(|_| {
        not_circom(&format!("its export {name} is missing or has another type; compile the circuit with circom 2"))
    })
}

fn not_circom(why: &str) -> Error {
    Error::circuit(format!("not a circuit that circom 2 compiled to WebAssembly: {why}"))
}

fn failed(why: &str) -> Error {
    Error::circuit(format!("the circuit's program failed: {why}"))
}

fn too_large(limits: Limits) -> Error {
    failed(&format!("it needs more than the {} MiB of memory that it may have", limits.memory_bytes >> 20))
}

/// 64-bit FNV-1a of a signal's name, by UTF-16 units as in circom's own calculator, as (high, low) words.
fn fnv1a(name: &str) -> (i32, i32) {
    let hash = name
        .encode_utf16()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, unit| (hash ^ u64::from(unit)).wrapping_mul(0x100_0000_01b3));
    ((hash >> 32) as i32, hash as i32)
}

/// The first few of a list that may be long.
fn list(items: impl Iterator<Item = String>) -> String {
    const SHOWN: usize = 8;
    let items: Vec<_> = items.collect();
    match items.len() {
        0 => "none".into(),
        n if n > SHOWN => format!("{} and {} more", items[..SHOWN].join(", "), n - SHOWN),
        _ => items.join(", "),
    }
}
