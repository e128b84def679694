//! A circuit's module at work, within limits of memory, steps and time.
//!
//! The module runs in *slices*: a call that has used up its slice of steps comes back, and goes on with another if the limits
//! allow it and nobody has asked to stop. Slices also bound the native stack. The interpreter goes from operator to operator
//! by tail calls, and where the compiler makes none, such as after a refused `memory.grow`, each operator leaves a frame
//! behind; all of them are gone when a slice ends, and a stack that holds a slice's worth is what the thread gets.
//!
//! An import never calls back into the module. It ends the slice with a [`Request`], which is served from outside, and the
//! call goes on after it.

mod decimal;
mod errors;
mod observed;

use crate::budget::Budget;
use crate::kept::FAILED;
use crate::native::{observe, recognise, Field, Function, Import, Native, Wires, IMPORT_MODULE};
use crate::recording::{Recorder, Refused};
use crate::{one_line, Caller, Error, Limit, Limits, Record, Result};
use decimal::decimal;
use errors::{explain_exception, refused_memory};
pub(crate) use errors::{failed, not_circom, too_large, ASSERTION};
use observed::{link_hook, observed, ELEMENT_BYTES};
use std::time::Instant;
use wasmi::errors::{ErrorKind, InstantiationError, LinkerError};
use wasmi::{
    AsContextMut, Config, CustomFuelCosts, Engine, ExternType, FuncType, Instance, Linker, Memory, Module,
    OperatorCost, Store, TrapCode, TypedFunc, TypedResumableCall, Val, WasmParams, WasmResults,
};
use zeroize::{Zeroize, Zeroizing};

/// Steps of one slice: some 0.1 ms.
const SLICE_STEPS: u64 = 100_000;

/// Steps that one stretch of code without a branch may take. Without `memory.grow` no function is long enough for more.
const STRETCH_STEPS_MAX: u64 = 1 << 24;

/// Steps of one `memory.grow`, beside what it clears. A refused one leaves a native frame: the longest stretch has room for 2^16.
const GROW_STEPS: u8 = 255;

/// Bytes that `memory.grow` clears in one step: 4 GiB, all there can be, are fewer steps than a stretch may take.
const BYTES_CLEARED_A_STEP: u32 = 1024;

/// Bytes of the native stack: 1000 for each `memory.grow` of the longest stretch, 600 for each operator of a slice.
pub(crate) const STACK_BYTES: usize = 64 << 20;

/// Steps that a call into the module costs, and one of an import, by the time they take.
const CALL_STEPS: u64 = 100;
const REQUEST_STEPS: u64 = 500;

/// Steps of a wire that is read without a call.
const WIRE_STEPS: u64 = 100;

/// Bytes of the interpreter's stack of values. All are allocated at once, so that growing leaves no copy behind.
const VALUE_STACK_BYTES: usize = 1_000_000;

/// Bytes that a module takes, parsed and translated, for each byte of its file: 43 for one of a million empty types or functions, 8 for
/// one of circom.
const CODE_FACTOR: usize = 48;

/// Characters of one message of the circuit.
const MESSAGE_CHARS_MAX: usize = 4096;

/// Lines that a circuit may log, and that its trace of a failed assertion may have.
const LINES_MAX: usize = 10_000;
const TRACE_MAX: usize = 1000;

/// Limbs of one field element. The largest field that circom knows has 8.
pub(crate) const LIMBS_MAX: usize = 16;

/// What the host keeps for the module while it runs.
struct Host {
    budget: Budget,
    /// The module's memory, for its field functions.
    memory: Option<Memory>,
    /// The line of a `log` statement so far.
    line: String,
    /// Lines that have been logged.
    lines: usize,
    /// Where an assertion failed, innermost template first.
    trace: Vec<String>,
    /// Writes down what the module does, until it does what cannot be recorded.
    recorder: Option<Result<Box<Recorder>, Refused>>,
    /// Its steps that have been counted.
    recorded: usize,
}

/// How a module's field functions are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// By its own code.
    Own,
    /// By the host, where they are circom's.
    Native,
    /// By the host, and the run is recorded. It ends where that cannot be. Functions are gone all ways where `explores`.
    Recorded { which: Record, explores: bool },
}

/// A module that runs.
pub(crate) struct Machine<'a> {
    store: Store<Host>,
    instance: Instance,
    limits: Limits,
    /// Steps that are not given out yet.
    steps: u64,
    deadline: Option<Instant>,
    /// Where the module keeps the shared element, if that is known.
    shared: Option<u32>,
    /// Where the wires are, if that is known.
    wires: Option<(Wires, Field)>,
    caller: &'a dyn Caller,
    /// An import is being served.
    is_serving: bool,
    /// One has been.
    has_served: bool,
}

impl<'a> Machine<'a> {
    pub(crate) fn load(wasm: &[u8], mode: Mode, limits: Limits, caller: &'a dyn Caller) -> Result<Self> {
        if !wasm.starts_with(b"\0asm") {
            return Err(not_circom("it does not begin with the WebAssembly magic number"));
        }
        let deadline = limits.time.and_then(|time| Instant::now().checked_add(time));
        let mut budget = Budget::new(limits.memory_bytes);
        let code = wasm.len().saturating_mul(CODE_FACTOR);
        if !budget.take(code) {
            return Err(too_large(limits, "the circuit's program"));
        }
        let observed = if let Mode::Recorded { explores, .. } = mode { observe(wasm, explores) } else { None };
        let watched = observed.as_ref().map(|native| native.field);
        let native = observed.or_else(|| if mode == Mode::Own { None } else { recognise(wasm) });
        let wasm = native.as_ref().map_or(wasm, |native| &native.wasm);
        // What was read of the first form is freed, and the second is a little longer.
        budget.give(code);
        if !budget.take(wasm.len().saturating_mul(CODE_FACTOR)) {
            return Err(too_large(limits, "the circuit's program"));
        }
        let engine = Engine::new(&config());
        let module = Module::new(&engine, wasm).map_err(|e| not_circom(&e.to_string()))?;
        let linker = imports(&engine, &module, native.as_ref())?;
        let host = Host {
            budget,
            memory: None,
            line: String::new(),
            lines: 0,
            trace: Vec::new(),
            recorder: None,
            recorded: 0,
        };
        let mut store = Store::new(&engine, host);
        store.limiter(|host| &mut host.budget);
        let instance = linker.instantiate_and_start(&mut store, &module).map_err(|e| match e.kind() {
            ErrorKind::Instantiation(
                InstantiationError::FailedToInstantiateMemory(_) | InstantiationError::FailedToInstantiateTable(_),
            ) => refused_memory(store.data(), limits),
            _ => not_circom(&e.to_string()),
        })?;
        store.data_mut().memory = instance.exports(&store).find_map(|export| export.into_extern().into_memory());
        if let Mode::Recorded { which, .. } = mode {
            store.data_mut().watch(watched, which);
        }
        Ok(Self {
            store,
            instance,
            limits,
            steps: limits.steps,
            deadline,
            shared: native.as_ref().and_then(|native| native.shared),
            wires: native.and_then(|native| Some((native.wires?, native.field))),
            caller,
            is_serving: false,
            has_served: false,
        })
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.instance.get_func(&self.store, name).is_some()
    }

    pub(crate) fn export<P: WasmParams, R: WasmResults>(&self, name: &str) -> Result<TypedFunc<P, R>> {
        self.instance.get_typed_func(&self.store, name).map_err(|_| {
            not_circom(&format!("its export {name} is missing or has another type; compile the circuit with circom 2"))
        })
    }

    pub(crate) fn call<P: WasmParams, R: WasmResults>(&mut self, name: &str, params: P) -> Result<R> {
        let function = self.export(name)?;
        self.invoke(function, params)
    }

    /// Runs a function to its end, slice by slice, and serves the imports that it calls.
    pub(crate) fn invoke<P: WasmParams, R: WasmResults>(&mut self, function: TypedFunc<P, R>, params: P) -> Result<R> {
        self.charge(CALL_STEPS)?;
        let mut state = function.call_resumable(&mut self.store, params);
        loop {
            state = match state.map_err(|error| self.explain(&error))? {
                TypedResumableCall::Finished(result) => return Ok(result),
                TypedResumableCall::OutOfFuel(call) => {
                    self.refill(call.required_fuel())?;
                    call.resume(&mut self.store)
                }
                TypedResumableCall::HostTrap(call) => {
                    let result = match call.host_error().downcast_ref::<Request>() {
                        Some(&Request::Field(work)) => self.compute(work)?,
                        Some(&request) => self.serve(request).map(|()| None)?,
                        None => return Err(self.explain(call.host_error())),
                    };
                    call.resume(&mut self.store, result.as_slice())
                }
            }
        }
    }

    /// Takes steps for work outside of the module.
    fn charge(&mut self, steps: u64) -> Result<()> {
        if self.fuel() < steps {
            self.refill(steps)?;
        }
        self.set_fuel(self.fuel() - steps)
    }

    /// Does a field function for which the slice had too few steps left.
    fn compute(&mut self, work: Work) -> Result<Option<Val>> {
        let mut steps = work.function.steps(work.arguments);
        while steps > 0 {
            let part = steps.min(SLICE_STEPS);
            self.charge(part)?;
            steps -= part;
        }
        let result = work.run(&mut self.store).map_err(|error| self.explain(&error))?;
        Ok(work.function.has_result().then_some(Val::I32(result as i32)))
    }

    /// Starts a slice that has at least `needed` steps.
    fn refill(&mut self, needed: u64) -> Result<()> {
        if self.caller.stop() {
            return Err(Error::Stopped);
        }
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            let seconds = self.limits.time.unwrap_or_default().as_secs_f64();
            return Err(Error::limit(Limit::Time, format!("the circuit's program was stopped after {seconds} s")));
        }
        if needed > STRETCH_STEPS_MAX {
            return Err(failed(&format!("one stretch of its code takes {needed} steps, expected at most 2^24")));
        }
        let left = self.fuel();
        let more = needed.saturating_sub(left).max(SLICE_STEPS).min(self.steps);
        if left + more < needed {
            let steps = self.limits.steps;
            let why = format!("the circuit's program was stopped after {steps} steps; it does not end, or needs more");
            return Err(Error::limit(Limit::Steps, why));
        }
        self.steps -= more;
        self.set_fuel(left + more)
    }

    fn fuel(&self) -> u64 {
        self.store.get_fuel().expect("fuel is switched on")
    }

    fn set_fuel(&mut self, fuel: u64) -> Result<()> {
        self.store.set_fuel(fuel).map_err(|e| failed(&e.to_string()))
    }

    /// Does what an import asked for, with the module's own functions. These may not call imports: nothing bounds how deep that goes.
    fn serve(&mut self, request: Request) -> Result<()> {
        if let Request::Exception(code) = request {
            return Err(explain_exception(code, &self.store.data().trace, self.limits));
        }
        if self.is_serving {
            return Err(failed(&format!("it calls itself through the import {}", request.name())));
        }
        self.is_serving = true;
        self.has_served = true;
        if let Some(recorder) = &mut self.store.data_mut().recorder {
            // Before anyone hears of it: the module is run anew.
            let is_failing = matches!(request, Request::PrintError);
            *recorder = Err(Refused(if is_failing { FAILED } else { "it prints" }));
            return Err(failed("its recording has ended"));
        }
        self.charge(REQUEST_STEPS)?;
        match request {
            Request::ShowElement => {
                let text = self.shared_element()?;
                self.log(&text);
            }
            Request::WriteMessage => {
                let text = self.message()?;
                self.log(&text);
            }
            _ => {
                let text = self.message()?;
                self.keep(&text)?;
            }
        }
        self.is_serving = false;
        Ok(())
    }

    /// The text that the module holds ready, one character a call.
    fn message(&mut self) -> Result<String> {
        let next = self.export::<(), i32>("getMessageChar")?;
        let mut text = String::new();
        for _ in 0..MESSAGE_CHARS_MAX {
            match self.invoke(next, ())? {
                0 => break,
                code => text.push(u32::try_from(code).ok().and_then(char::from_u32).unwrap_or('?')),
            }
        }
        Ok(text)
    }

    /// The shared field element, in decimal digits, as snarkjs prints it.
    fn shared_element(&mut self) -> Result<String> {
        let limbs: i32 = self.call("getFieldNumLen32", ())?;
        let read = self.export::<i32, i32>("readSharedRWMemory")?;
        let mut value = Zeroizing::new([0u32; LIMBS_MAX]);
        for (i, limb) in value.iter_mut().enumerate().take(usize::try_from(limbs).unwrap_or(0)) {
            *limb = self.invoke(read, i as i32)? as u32;
        }
        Ok(decimal(&mut value[..]))
    }

    /// A `log` statement sends its parts one by one and a line feed at the end.
    fn log(&mut self, part: &str) {
        let host = self.store.data_mut();
        if part != "\n" {
            if host.line.len() < MESSAGE_CHARS_MAX {
                if !host.line.is_empty() {
                    host.line.push(' ');
                }
                // No line breaks another, or does anything else to a terminal.
                host.line.extend(part.chars().map(|c| if c.is_control() { ' ' } else { c }));
            }
            return;
        }
        host.lines = host.lines.saturating_add(1);
        match host.lines {
            1..=LINES_MAX => self.caller.log(&host.line),
            n if n == LINES_MAX + 1 => self.caller.log("(it logs more lines, which are not shown)"),
            _ => {}
        }
        host.line.zeroize();
    }

    fn keep(&mut self, line: &str) -> Result<()> {
        if self.store.data().trace.len() < TRACE_MAX {
            let line = one_line(line);
            self.take(line.capacity() + size_of::<String>(), "what the circuit prints")?;
            self.store.data_mut().trace.push(line);
        }
        Ok(())
    }

    /// Has the shared element hold a wire, as `get` does, which is called where it is not known what it does.
    pub(crate) fn read_wire(&mut self, get: TypedFunc<i32, ()>, number: usize) -> Result<()> {
        let (Some((wires, field)), Some(memory)) = (self.wires, self.store.data().memory) else {
            return self.invoke(get, number as i32);
        };
        self.charge(WIRE_STEPS)?;
        let memory = memory.data_mut(&mut self.store);
        let place = wires.numbers.wrapping_add((number as u32) << 2) as usize;
        let done = match memory.get(place..).and_then(|rest| rest.first_chunk()) {
            Some(&bytes) => {
                let signal = u32::from_le_bytes(bytes).wrapping_mul(ELEMENT_BYTES).wrapping_add(wires.signals);
                let copied = Function::CopyN.run(&field, memory, [wires.shared, signal, 1]);
                copied.and_then(|_| Function::ToLongNormal.run(&field, memory, [wires.shared, 0, 0]))
            }
            None => Err(TrapCode::MemoryOutOfBounds),
        };
        done.map(drop).map_err(|trap| self.explain(&trap.into()))
    }

    /// The shared element, limb by limb, as `read` reads it. Where its place is known, no call is needed.
    pub(crate) fn read_shared(&mut self, read: TypedFunc<i32, i32>, element: &mut [u32]) -> Result<()> {
        if let (Some(at), Some(memory)) = (self.shared, self.store.data().memory) {
            let at = at as usize;
            let bytes = memory.data(&self.store).get(at..at + element.len() * 4);
            let bytes = bytes.ok_or_else(|| failed("its shared element lies outside of its memory"))?;
            for (limb, bytes) in element.iter_mut().zip(bytes.chunks_exact(4)) {
                *limb = bytes.iter().rev().fold(0, |limb, &byte| limb << 8 | u32::from(byte));
            }
            return Ok(());
        }
        for (i, limb) in element.iter_mut().enumerate() {
            *limb = self.invoke(read, i as i32)? as u32;
        }
        Ok(())
    }

    /// Bytes of the module's memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.store.data().budget.memory()
    }

    /// Counts bytes that `what` is about to allocate against the limit.
    pub(crate) fn take(&mut self, bytes: usize, what: &str) -> Result<()> {
        if self.store.data_mut().budget.take(bytes) {
            return Ok(());
        }
        Err(too_large(self.limits, what))
    }

    /// Takes back the count of bytes that have been freed.
    pub(crate) fn give(&mut self, bytes: usize) {
        self.store.data_mut().budget.give(bytes);
    }

    fn explain(&self, error: &wasmi::Error) -> Error {
        // An export may be one of the imports.
        if let Some(request) = error.downcast_ref::<Request>() {
            return match *request {
                Request::Exception(code) => explain_exception(code, &self.store.data().trace, self.limits),
                other => failed(&format!("one of its exports is the import {}", other.name())),
            };
        }
        match error.as_trap_code() {
            Some(TrapCode::GrowthOperationLimited) => refused_memory(self.store.data(), self.limits),
            _ => failed(&error.to_string()),
        }
    }

    /// Overwrites what holds signals: the module's memory, what it printed, and the interpreter's stacks of values.
    ///
    /// Out of reach are globals, a memory that is not exported, and copies that the allocator leaves behind where it moves a
    /// memory that grows. Modules of circom have neither of the first two.
    pub(crate) fn wipe(&mut self) {
        let exports: Vec<_> = self.instance.exports(&self.store).map(wasmi::Export::into_extern).collect();
        for memory in exports.into_iter().filter_map(wasmi::Extern::into_memory) {
            memory.data_mut(&mut self.store).zeroize();
        }
        let host = self.store.data_mut();
        host.line.zeroize();
        host.trace.zeroize();
        wipe_stacks(self.store.engine(), self.has_served);
    }
}

/// However the run ends.
impl Drop for Machine<'_> {
    fn drop(&mut self) {
        self.wipe();
    }
}

/// What circom's code needs, and no more: no proposal, no floating-point number, no start function.
fn config() -> Config {
    let mut config = Config::default();
    config
        .wasm_mutable_global(false)
        .wasm_sign_extension(false)
        .wasm_saturating_float_to_int(false)
        .wasm_multi_value(false)
        .wasm_multi_memory(false)
        .wasm_bulk_memory(false)
        .wasm_reference_types(false)
        .wasm_tail_call(false)
        .wasm_extended_const(false)
        .wasm_custom_page_sizes(false)
        .wasm_wide_arithmetic(false)
        .floats(false)
        .allow_start_fn(false)
        .ignore_custom_sections(true);
    config.set_max_stack_height(VALUE_STACK_BYTES).set_min_stack_height(VALUE_STACK_BYTES);
    config.consume_fuel(true).operator_cost(OperatorCost { memory_grow: GROW_STEPS, ..OperatorCost::default() });
    // A call that ran out of fuel while the interpreter translates a function could not go on.
    config.fuel_cost(CustomFuelCosts {
        bytes_copied_per_fuel: BYTES_CLEARED_A_STEP,
        fuel_per_bytes_translated: 0,
        fuel_per_bytes_validated: 0,
    });
    config
}

/// What an import asks the host for.
#[derive(Debug, Clone, Copy)]
enum Request {
    /// To end: something is wrong.
    Exception(i32),
    ShowElement,
    WriteMessage,
    PrintError,
    /// To go on with a field function when its steps are paid.
    Field(Work),
}

impl Request {
    fn name(self) -> &'static str {
        match self {
            Request::Exception(_) => "exceptionHandler",
            Request::ShowElement => "showSharedRWMemory",
            Request::WriteMessage => "writeBufferMessage",
            Request::PrintError => "printErrorMessage",
            Request::Field(work) => work.function.name(),
        }
    }
}

impl std::fmt::Display for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl wasmi::errors::HostError for Request {}

/// A call of one of circom's field functions.
#[derive(Debug, Clone, Copy)]
struct Work {
    function: Function,
    field: Field,
    arguments: [u32; 3],
}

impl Work {
    /// As the module calls it: pays its steps, or ends the slice if they are too few.
    fn call(self, mut caller: wasmi::Caller<Host>) -> Result<u32, wasmi::Error> {
        let (steps, fuel) = (self.function.steps(self.arguments), caller.get_fuel()?);
        if fuel < steps {
            return Err(wasmi::Error::host(Request::Field(self)));
        }
        caller.set_fuel(fuel - steps)?;
        self.run(&mut caller)
    }

    fn run(self, mut store: impl AsContextMut<Data = Host>) -> Result<u32, wasmi::Error> {
        let memory = store.as_context().data().memory.ok_or(TrapCode::MemoryOutOfBounds)?;
        let (memory, host) = memory.data_and_store_mut(store.as_context_mut());
        if host.recorder.is_some() {
            return Ok(observed(self, memory, host)?);
        }
        Ok(self.function.run(&self.field, memory, self.arguments)?)
    }
}

/// Links the import in which a field function is called, by its type.
fn link(
    linker: &mut Linker<Host>,
    name: &str,
    ty: &FuncType,
    function: Function,
    field: Field,
) -> Result<(), LinkerError> {
    let work = move |arguments| Work { function, field, arguments };
    type At<'a> = wasmi::Caller<'a, Host>;
    let linked = match (ty.params().len(), ty.results().len()) {
        (1, 0) => linker.func_wrap(IMPORT_MODULE, name, move |at: At, a: u32| work([a, 0, 0]).call(at).map(drop)),
        (1, _) => linker.func_wrap(IMPORT_MODULE, name, move |at: At, a: u32| work([a, 0, 0]).call(at)),
        (2, 0) => {
            linker.func_wrap(IMPORT_MODULE, name, move |at: At, a: u32, b: u32| work([a, b, 0]).call(at).map(drop))
        }
        (2, _) => linker.func_wrap(IMPORT_MODULE, name, move |at: At, a: u32, b: u32| work([a, b, 0]).call(at)),
        _ => linker
            .func_wrap(IMPORT_MODULE, name, move |at: At, a: u32, b: u32, c: u32| work([a, b, c]).call(at).map(drop)),
    };
    linked.map(drop)
}

/// The functions a circom 2 module may import; those of its first releases are among them. Those that stand for field functions were
/// not in the file: their place says so, not their name.
fn imports(engine: &Engine, module: &Module, native: Option<&Native>) -> Result<Linker<Host>> {
    let mut linker = Linker::new(engine);
    for (index, import) in module.imports().enumerate() {
        let added =
            native.and_then(|native| Some((native, *native.functions.get(index.checked_sub(native.imports)?)?)));
        if let (Some((native, added)), ExternType::Func(ty)) = (added, import.ty()) {
            let linked = match added {
                Import::Field(function) => link(&mut linker, import.name(), ty, function, native.field),
                Import::Hook(hook) => link_hook(&mut linker, import.name(), hook, native.field),
            };
            linked.map_err(|e| failed(&e.to_string()))?;
            continue;
        }
        let place = format!("{}.{}", import.module(), import.name());
        let request = match import.ty() {
            ExternType::Func(_) if import.module() == "runtime" => import.name(),
            _ => "",
        };
        let end = |request| Err::<(), _>(wasmi::Error::host(request));
        let linked = match request {
            "exceptionHandler" => linker.func_wrap("runtime", request, move |code: i32| end(Request::Exception(code))),
            "printErrorMessage" => linker.func_wrap("runtime", request, move || end(Request::PrintError)),
            "writeBufferMessage" => linker.func_wrap("runtime", request, move || end(Request::WriteMessage)),
            "showSharedRWMemory" => linker.func_wrap("runtime", request, move || end(Request::ShowElement)),
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

/// Fills the interpreter's stacks of values with zeros. There is one, and another where an import was served while a call waited.
/// The last few thousand bytes of a stack that was filled to its end can stay.
fn wipe_stacks(engine: &Engine, are_two: bool) {
    // A function whose thousand locals are zero when it begins, and that calls itself until the stack is full:
    // type () -> (), one function, exported as "z", with 1000 locals of i64, whose code is `call 0`.
    const ZEROS: &[u8] = b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x03\x02\x01\0\x07\x05\x01\x01z\0\0\
        \x0a\x09\x01\x07\x01\xe8\x07\x7e\x10\0\x0b";
    let Ok(module) = Module::new(engine, ZEROS) else { return };
    let mut store = Store::new(engine, ());
    let Ok(instance) = Linker::new(engine).instantiate_and_start(&mut store, &module) else { return };
    let Ok(zeros) = instance.get_typed_func::<(), ()>(&store, "z") else { return };
    // Without fuel a call ends at once, and holds one of the stacks while the next fills the other.
    let held = are_two.then(|| zeros.call_resumable(&mut store, ()));
    let _ = store.set_fuel(SLICE_STEPS);
    // It ends by filling the stack.
    let _ = zeros.call(&mut store, ());
    if held.is_some() {
        drop(held);
        let _ = store.set_fuel(SLICE_STEPS);
        let _ = zeros.call(&mut store, ());
    }
}
