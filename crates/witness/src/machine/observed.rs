//! A module's run as its [`Recorder`] sees it: the imports that a module calls for each access to its memory.

use super::{Host, Machine, Work};
use crate::native::{Field, Function, Hook, IMPORT_MODULE};
use crate::recording::{Line, Recorder, Refused, STEP_BYTES};
use wasmi::errors::LinkerError;
use wasmi::{Linker, TrapCode};

type At<'a> = wasmi::Caller<'a, Host>;
type Done<T> = Result<T, wasmi::Error>;

/// Steps between looks at the memory that a recording takes.
const STEPS_A_LOOK: usize = 1 << 14;

impl Host {
    /// Starts a recording, if there is memory for it.
    pub(super) fn watch(&mut self, field: Field) {
        let bytes = Recorder::bytes_of(self.budget.memory());
        self.recorder = Some(match self.memory.is_some() && self.budget.take(bytes) {
            true => Ok(Box::new(Recorder::new(field, self.budget.memory()))),
            false => Err(Refused(crate::kept::TOO_LITTLE)),
        });
    }

    /// Ends the recording; the run goes on.
    pub(super) fn refuse(&mut self, why: &'static str) {
        if let Some(recorder @ Ok(_)) = &mut self.recorder {
            *recorder = Err(Refused(why));
        }
    }

    /// Tells the recorder something, if there still is one.
    fn tell<T>(&mut self, memory: usize, what: impl FnOnce(&mut Recorder) -> Result<T, Refused>) -> Option<T> {
        const TOO_LITTLE: Refused = Refused(crate::kept::TOO_LITTLE);
        let Some(Ok(recorder)) = &mut self.recorder else { return None };
        let mut told = Err(TOO_LITTLE);
        let watched = recorder.watched();
        if watched >= memory {
            told = what(recorder);
        } else if self.budget.take(Recorder::bytes_of(memory) - Recorder::bytes_of(watched)) {
            recorder.watch(memory);
            told = what(recorder);
        }
        let steps = recorder.steps();
        if steps >= self.recorded + STEPS_A_LOOK {
            if !self.budget.take((steps - self.recorded) * STEP_BYTES) {
                told = Err(TOO_LITTLE);
            }
            self.recorded = steps;
        }
        match told {
            Ok(told) => Some(told),
            Err(why) => {
                self.recorder = Some(Err(why));
                None
            }
        }
    }
}

/// A field function, done and told.
pub(super) fn observed(work: Work, memory: &mut [u8], host: &mut Host) -> Result<u32, TrapCode> {
    let plan = host.tell(memory.len(), |recorder| recorder.before(work.function, work.arguments, memory));
    let result = work.function.run(&work.field, memory, work.arguments)?;
    if let Some(plan) = plan {
        host.tell(memory.len(), |recorder| recorder.after(plan, work.function, work.arguments, result, memory));
    }
    Ok(result)
}

/// Links the import by which a module tells of an access.
pub(super) fn link_hook(linker: &mut Linker<Host>, name: &str, hook: Hook, field: Field) -> Result<(), LinkerError> {
    const M: &str = IMPORT_MODULE;
    let linked = match hook {
        Hook::Load => linker.func_wrap(M, name, |mut at: At, address: u32, offset: u32, bytes: u32| {
            load(&mut at, place(address, offset), bytes as usize);
            address
        }),
        Hook::Store32 => linker.func_wrap(M, name, |mut at: At, address: u32, value: u32, offset: u32, bytes: u32| {
            store(&mut at, place(address, offset), value.into(), bytes as usize)
        }),
        Hook::Store64 => linker.func_wrap(M, name, |mut at: At, address: u32, value: u64, offset: u32, bytes: u32| {
            store(&mut at, place(address, offset), value, bytes as usize)
        }),
        Hook::Move => {
            linker.func_wrap(M, name, |mut at: At, to: u32, from: u32, of_from: u32, of_to: u32, bytes: u32| {
                shift(&mut at, place(to, of_to), place(from, of_from), bytes as usize)
            })
        }
        // Word by word, as `Fr_copy` does it.
        Hook::Copy => linker.func_wrap(M, name, |mut at: At, to: u32, from: u32| {
            (0..5).try_for_each(|i| shift(&mut at, place(to, 8 * i), place(from, 8 * i), 8))
        }),
        Hook::Assign => {
            linker.func_wrap(M, name, move |mut at: At, to: u32, from: u32| assign(&mut at, field, to, from))
        }
    };
    linked.map(drop)
}

/// The place of an access. It does not wrap.
fn place(address: u32, offset: u32) -> usize {
    address as usize + offset as usize
}

/// The module's memory, and the host.
fn parts<'a>(at: &'a mut At) -> Done<(&'a mut [u8], &'a mut Host)> {
    let memory = at.data().memory.ok_or(TrapCode::MemoryOutOfBounds)?;
    Ok(memory.data_and_store_mut(at))
}

/// The module loads bytes right after this, and traps if they lie outside.
fn load(at: &mut At, place: usize, bytes: usize) {
    if let Ok((memory, host)) = parts(at) {
        host.tell(memory.len(), |recorder| recorder.read(place, bytes));
    }
}

fn store(at: &mut At, place: usize, value: u64, bytes: usize) -> Done<()> {
    let (memory, host) = parts(at)?;
    let to = memory.get_mut(place..place + bytes).ok_or(TrapCode::MemoryOutOfBounds)?;
    to.copy_from_slice(value.to_le_bytes().get(..bytes).ok_or(TrapCode::MemoryOutOfBounds)?);
    host.tell(memory.len(), |recorder| recorder.wrote(place, bytes));
    Ok(())
}

/// A load and a store of the same bytes.
fn shift(at: &mut At, to: usize, from: usize, bytes: usize) -> Done<()> {
    let (memory, host) = parts(at)?;
    if to.max(from) + bytes > memory.len() {
        return Err(TrapCode::MemoryOutOfBounds.into());
    }
    memory.copy_within(from..from + bytes, to);
    host.tell(memory.len(), |recorder| recorder.moved(to, from, bytes));
    Ok(())
}

/// What the idiom of `setInputSignal` does.
fn assign(at: &mut At, field: Field, to: u32, from: u32) -> Done<()> {
    let (memory, host) = parts(at)?;
    let told = host.tell(memory.len(), |recorder| recorder.assign(to, from, memory));
    let integer = Function::ToInt.run(&field, memory, [from, 0, 0])?;
    let short = |memory: &mut [u8]| {
        let number = memory.get_mut(to as usize..to as usize + 8).ok_or(TrapCode::MemoryOutOfBounds)?;
        number.copy_from_slice(&u64::from(integer).to_le_bytes());
        Function::IntZero.run(&field, memory, [to.wrapping_add(8), 0, 0])
    };
    short(memory)?;
    if Function::EqR.run(&field, memory, [to, from, 0])? != 0 {
        short(memory)?;
    } else {
        Function::CopyN.run(&field, memory, [to, from, 1])?;
    }
    if let Some(told) = told {
        host.tell(memory.len(), |recorder| {
            recorder.assigned(to, told);
            Ok(())
        });
    }
    Ok(())
}

impl Machine<'_> {
    /// The shared element holds the input of this number.
    pub(crate) fn tell_input(&mut self, number: u32) {
        let Some(shared) = self.shared else { return };
        let host = self.store.data_mut();
        let memory = host.budget.memory();
        host.tell(memory, |recorder| recorder.input(shared as usize, number));
    }

    /// The shared element holds the value of the next wire.
    pub(crate) fn tell_wire(&mut self) {
        let (Some(shared), Some(memory)) = (self.shared, self.store.data().memory) else { return };
        let (memory, host) = memory.data_and_store_mut(&mut self.store);
        host.tell(memory.len(), |recorder| recorder.wire(shared as usize, memory));
    }

    /// Steps that it has taken.
    pub(crate) fn taken(&self) -> u64 {
        self.limits.steps - self.steps - self.fuel()
    }

    /// What was recorded of the run so far; or why it was not.
    pub(crate) fn recorded(&mut self) -> Result<Line, &'static str> {
        match self.store.data_mut().recorder.take() {
            Some(Ok(recorder)) => Ok(recorder.finish()),
            Some(Err(Refused(why))) => Err(why),
            None => Err("it is no module of circom's that is known"),
        }
    }
}
