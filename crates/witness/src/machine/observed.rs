//! A module's run as its [`Recorder`] sees it: the imports that a module calls for each access to its memory.

use super::{Host, Machine, Work};
use crate::native::{Field, Function, Hook, IMPORT_MODULE};
use crate::recording::{Line, Recorder, Refused, STEP_BYTES};
use crate::{Error, Record};
use wasmi::errors::LinkerError;
use wasmi::{Linker, TrapCode};

type At<'a> = wasmi::Caller<'a, Host>;
type Done<T> = Result<T, wasmi::Error>;

pub(super) const ELEMENT_BYTES: u32 = 40;
/// Bytes of an element's limbs.
const INTEGER_BYTES: usize = 32;

/// Steps between looks at the memory that a recording takes.
const STEPS_A_LOOK: usize = 1 << 14;

impl Host {
    /// Starts a recording, if there is memory for it. `field` is that of a module which tells of its accesses.
    pub(super) fn watch(&mut self, field: Option<Field>, which: Record) {
        let bytes = Recorder::bytes_of(self.budget.memory());
        self.recorder = Some(match field {
            None => Err(Refused("it is no module of circom's that is known")),
            Some(field) if self.memory.is_some() && self.budget.take(bytes) => {
                Ok(Box::new(Recorder::new(field, self.budget.memory(), which)))
            }
            Some(_) => Err(Refused(crate::kept::TOO_LITTLE)),
        });
    }

    /// Tells the recorder something. Where that ends the recording, it ends the run: the module is run anew without.
    fn tell<T>(
        &mut self,
        memory: usize,
        what: impl FnOnce(&mut Recorder) -> Result<T, Refused>,
    ) -> Result<T, TrapCode> {
        const TOO_LITTLE: Refused = Refused(crate::kept::TOO_LITTLE);
        const ENDED: TrapCode = TrapCode::UnreachableCodeReached;
        let Some(Ok(recorder)) = &mut self.recorder else { return Err(ENDED) };
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
        } else if steps + STEPS_A_LOOK <= self.recorded {
            self.budget.give((self.recorded - steps) * STEP_BYTES);
            self.recorded = steps;
        }
        told.map_err(|why| {
            self.recorder = Some(Err(why));
            ENDED
        })
    }
}

/// A field function, done and told.
pub(super) fn observed(work: Work, memory: &mut [u8], host: &mut Host) -> Result<u32, TrapCode> {
    let [r, a, b] = work.arguments;
    host.tell(memory.len(), |recorder| {
        match work.function {
            Function::IntZero => recorder.save(memory, r as usize, INTEGER_BYTES)?,
            Function::IntCopy => recorder.save(memory, a as usize, INTEGER_BYTES)?,
            Function::CopyN => recorder.save_elements(memory, r, words_bytes(b))?,
            Function::IsTrue | Function::ToInt | Function::ToLongNormal => recorder.touch(&[r], memory)?,
            Function::Neg | Function::Lnot | Function::Bnot | Function::Inv | Function::EqR => {
                recorder.touch(&[r, a], memory)?;
            }
            _ => recorder.touch(&[r, a, b], memory)?,
        }
        let plan = recorder.before(work.function, work.arguments, memory)?;
        let done = match recorder.divides_anyway(&plan, work.function) {
            true => divide_anyway(work, memory),
            false => work.function.run(&work.field, memory, work.arguments),
        };
        let result = match done {
            Ok(result) => result,
            Err(trap) => return Ok(Err(trap)),
        };
        Ok(Ok(recorder.after(plan, work.function, work.arguments, result, memory)?))
    })?
}

/// Bytes that `Fr_copyn` moves.
fn words_bytes(elements: u32) -> usize {
    (elements.wrapping_mul(ELEMENT_BYTES) / 8 * 8) as usize
}

/// A division of integers, by 1 where it would be by 0.
fn divide_anyway(work: Work, memory: &mut [u8]) -> Result<u32, TrapCode> {
    let [r, a, b] = work.arguments;
    let (function, arguments) = match Function::IsTrue.run(&work.field, memory, [b, 0, 0])? {
        0 if work.function == Function::Idiv => (Function::CopyN, [r, a, 1]),
        // Nothing is left of what is taken from itself.
        0 => (Function::Sub, [r, a, a]),
        _ => (work.function, work.arguments),
    };
    function.run(&work.field, memory, arguments)
}

/// Links the import by which a module tells of an access.
pub(super) fn link_hook(linker: &mut Linker<Host>, name: &str, hook: Hook, field: Field) -> Result<(), LinkerError> {
    const M: &str = IMPORT_MODULE;
    let linked = match hook {
        Hook::Load => linker.func_wrap(M, name, |mut at: At, address: u32, offset: u32, bytes: u32| {
            load(&mut at, place(address, offset), bytes as usize).map(|()| address)
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
        Hook::Copy => linker.func_wrap(M, name, |mut at: At, to: u32, from: u32| copy(&mut at, to, from)),
        Hook::Assign => {
            linker.func_wrap(M, name, move |mut at: At, to: u32, from: u32| assign(&mut at, field, to, from))
        }
        Hook::Assert => linker.func_wrap(M, name, move |mut at: At, value: u32| assert(&mut at, field, value)),
        Hook::Fork => linker.func_wrap(M, name, move |mut at: At, value: u32| fork(&mut at, field, value)),
        Hook::Turn => linker.func_wrap(M, name, |mut at: At| {
            let (memory, host) = parts(&mut at)?;
            Ok(u32::from(host.tell(memory.len(), |recorder| recorder.turn(memory))?))
        }),
        Hook::Repeats => linker.func_wrap(M, name, move |mut at: At, value: u32| {
            let (memory, host) = parts(&mut at)?;
            let is_true = Function::IsTrue.run(&field, memory, [value, 0, 0])?;
            Ok(u32::from(host.tell(memory.len(), |recorder| recorder.repeats(value, is_true != 0, memory))?))
        }),
        Hook::Enter => linker.func_wrap(M, name, |mut at: At| {
            let (memory, host) = parts(&mut at)?;
            Ok(host.tell(memory.len(), |recorder| recorder.enter(memory))?)
        }),
        Hook::Leave => linker.func_wrap(M, name, |mut at: At, result: u32| {
            let (memory, host) = parts(&mut at)?;
            Ok(u32::from(host.tell(memory.len(), |recorder| recorder.leave(result, memory))?))
        }),
        Hook::Index => linker.func_wrap(M, name, move |mut at: At, value: u32| index(&mut at, field, value)),
        Hook::Scale => linker.func_wrap(M, name, |mut at: At, a: u32, b: u32, of_a: u32, of_b: u32| {
            let (memory, host) = parts(&mut at)?;
            host.tell(memory.len(), |recorder| recorder.scale([a, b], [of_a, of_b]))?;
            Ok(a.wrapping_mul(b))
        }),
        Hook::Select => {
            linker.func_wrap(M, name, |mut at: At, to: u32, from: u32, end: u32| select(&mut at, to, from, end))
        }
        Hook::Join => linker.func_wrap(M, name, |mut at: At| {
            let (memory, host) = parts(&mut at)?;
            Ok(host.tell(memory.len(), |recorder| recorder.join(memory))?)
        }),
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
fn load(at: &mut At, place: usize, bytes: usize) -> Done<()> {
    let (memory, host) = parts(at)?;
    Ok(host.tell(memory.len(), |recorder| recorder.read(place, bytes))?)
}

fn store(at: &mut At, place: usize, value: u64, bytes: usize) -> Done<()> {
    let (memory, host) = parts(at)?;
    if place + bytes > memory.len() {
        return Err(TrapCode::MemoryOutOfBounds.into());
    }
    host.tell(memory.len(), |recorder| {
        recorder.save(memory, place, bytes)?;
        recorder.wrote(place, bytes)
    })?;
    memory[place..place + bytes].copy_from_slice(value.to_le_bytes().get(..bytes).ok_or(TrapCode::MemoryOutOfBounds)?);
    Ok(())
}

/// A load and a store of the same bytes.
fn shift(at: &mut At, to: usize, from: usize, bytes: usize) -> Done<()> {
    let (memory, host) = parts(at)?;
    if to.max(from) + bytes > memory.len() {
        return Err(TrapCode::MemoryOutOfBounds.into());
    }
    host.tell(memory.len(), |recorder| {
        recorder.save(memory, to, bytes)?;
        recorder.moved(to, from, bytes)
    })?;
    memory.copy_within(from..from + bytes, to);
    Ok(())
}

/// `Fr_copy`, which goes word by word where that makes a difference.
fn copy(at: &mut At, to: u32, from: u32) -> Done<()> {
    let (memory, host) = parts(at)?;
    host.tell(memory.len(), |recorder| recorder.touch(&[to], memory))?;
    if to.abs_diff(from) >= ELEMENT_BYTES {
        return shift(at, place(to, 0), place(from, 0), ELEMENT_BYTES as usize);
    }
    (0..ELEMENT_BYTES).step_by(8).try_for_each(|i| shift(at, place(to, i), place(from, i), 8))
}

/// `Fr_toInt` of what is a part of an index.
fn index(at: &mut At, field: Field, value: u32) -> Done<u32> {
    let (memory, host) = parts(at)?;
    let plan = host.tell(memory.len(), |recorder| {
        recorder.touch(&[value], memory)?;
        recorder.before(Function::ToInt, [value, 0, 0], memory)
    })?;
    let number = Function::ToInt.run(&field, memory, [value, 0, 0])?;
    host.tell(memory.len(), |recorder| recorder.index(plan, value, number, memory))?;
    Ok(number)
}

/// `Fr_copy` of the entry of an array that indices have led to.
fn select(at: &mut At, to: u32, from: u32, end: u32) -> Done<()> {
    let (memory, host) = parts(at)?;
    let Some(entry) = host.tell(memory.len(), |recorder| recorder.select(from, end, memory))? else {
        return copy(at, to, from);
    };
    copy(at, to, entry.from)?;
    let (memory, host) = parts(at)?;
    Ok(host.tell(memory.len(), |recorder| recorder.selected(to, &entry))?)
}

/// What the idiom of `setInputSignal` does.
fn assign(at: &mut At, field: Field, to: u32, from: u32) -> Done<()> {
    let (memory, host) = parts(at)?;
    let told = host.tell(memory.len(), |recorder| recorder.assign(to, from, memory))?;
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
    Ok(host.tell(memory.len(), |recorder| recorder.assigned(to, told))?)
}

/// `Fr_isTrue` of what is asserted: where it is not, the module prints, which ends the recording.
fn assert(at: &mut At, field: Field, value: u32) -> Done<u32> {
    let (memory, host) = parts(at)?;
    let is_true = Function::IsTrue.run(&field, memory, [value, 0, 0])?;
    Ok(u32::from(host.tell(memory.len(), |recorder| recorder.asserted(value, is_true != 0, memory))?))
}

/// `Fr_isTrue` of what chooses between ways that only calculate.
fn fork(at: &mut At, field: Field, value: u32) -> Done<u32> {
    let (memory, host) = parts(at)?;
    let is_true = Function::IsTrue.run(&field, memory, [value, 0, 0])?;
    Ok(u32::from(host.tell(memory.len(), |recorder| recorder.fork(value, is_true != 0, memory))?))
}

impl Machine<'_> {
    /// The shared element holds the input of this number.
    pub(crate) fn tell_input(&mut self, number: u32) -> Result<(), Error> {
        self.tell(|recorder, shared, _| recorder.input(shared, number))
    }

    /// The shared element holds the value of the next wire.
    pub(crate) fn tell_wire(&mut self) -> Result<(), Error> {
        self.tell(|recorder, shared, memory| recorder.wire(shared, memory))
    }

    fn tell(&mut self, what: impl FnOnce(&mut Recorder, usize, &[u8]) -> Result<(), Refused>) -> Result<(), Error> {
        let (Some(shared), Some(memory)) = (self.shared, self.store.data().memory) else { return Ok(()) };
        let (memory, host) = memory.data_and_store_mut(&mut self.store);
        if !matches!(host.recorder, Some(Ok(_))) {
            return Ok(());
        }
        let told = host.tell(memory.len(), |recorder| what(recorder, shared as usize, memory));
        told.map_err(|_| super::failed("its recording has ended"))
    }

    /// What was recorded of the run so far; or why it was not. `None` of a run that was not to be recorded.
    pub(crate) fn recorded(&mut self) -> Option<Result<Line, &'static str>> {
        let recorder = self.store.data_mut().recorder.take()?;
        Some(recorder.and_then(|recorder| recorder.finish()).map_err(|Refused(why)| why))
    }
}
