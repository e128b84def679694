//! Memory of a team: the host's copies, and what queues are told.

use crate::handles::{self, Failure, Memory, Object};
use crate::{guarded, place};
use std::ffi::c_void;
use tandem_fabric::{Atomic, Compare, OneSided, Queue, Signal, Symmetric, Team};

impl Memory {
    /// Bytes of it, which may be no more than slices can have.
    pub(crate) fn range(&self, at: u64, bytes: u64) -> Result<Symmetric<u8>, Failure> {
        let (len, end) = (self.bytes.len() as u64, at.checked_add(bytes));
        let end = end
            .filter(|end| *end <= len && bytes <= isize::MAX as u64)
            .ok_or_else(|| Failure::argument(format!("bytes {at} and {bytes} from there on; the memory has {len}")))?;
        Ok(self.bytes.slice(at as usize..end as usize)?)
    }

    /// The word of 64 bits at a byte.
    fn word(&self, at: u64) -> Result<Symmetric<u64>, Failure> {
        Ok(self.range(at, 8)?.cast()?)
    }

    pub(crate) fn pe(&self, pe: u32) -> Result<usize, Failure> {
        known(&self.team, pe)
    }

    fn queue(&self, pe: u32) -> Result<&Queue, Failure> {
        Ok(self.team.queue(self.pe(pe)?))
    }
}

fn known(team: &Team, pe: u32) -> Result<usize, Failure> {
    let problem = || Failure::argument(format!("PE {pe} of a team of {}", team.size()));
    Some(pe as usize).filter(|&pe| pe < team.size()).ok_or_else(problem)
}

/// The caller's bytes to be read.
///
/// # Safety
/// They are valid as long as the slice is used.
pub(crate) unsafe fn readable<'a>(from: *const c_void, bytes: u64) -> Result<&'a [u8], Failure> {
    match bytes {
        0 => Ok(&[]),
        _ if from.is_null() => Err(Failure::argument("from is null")),
        // SAFETY: not null, the caller's promise; as many as memory of ours has, so no more than a slice may have.
        _ => Ok(unsafe { std::slice::from_raw_parts(from.cast(), bytes as usize) }),
    }
}

/// Bytes into the caller's place, which has room for them.
///
/// # Safety
/// It is valid for as many.
pub(crate) unsafe fn give(to: *mut c_void, bytes: &[u8]) -> Result<(), Failure> {
    if bytes.is_empty() {
        return Ok(());
    }
    if to.is_null() {
        return Err(Failure::argument("to is null"));
    }
    // SAFETY: not null, the caller's promise; the bytes are a copy of our own.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast(), bytes.len()) };
    Ok(())
}

/// Zeros on every PE.
#[no_mangle]
pub unsafe extern "C" fn tandem_pgas_alloc(team: u64, bytes: u64, memory: *mut u64) -> i32 {
    guarded(|| {
        let memory = place(memory, "memory")?;
        let team = handles::team(team)?;
        let len = usize::try_from(bytes).map_err(|_| Failure::argument(format!("{bytes} bytes")))?;
        let bytes = team.alloc(len)?;
        *memory = handles::add(Object::Memory(Memory { team, bytes }))?;
        Ok(())
    })
}

/// The host's copy to a PE.
#[no_mangle]
pub unsafe extern "C" fn tandem_pgas_write(memory: u64, pe: u32, at: u64, from: *const c_void, bytes: u64) -> i32 {
    guarded(|| {
        let memory = handles::memory(memory)?;
        let to = memory.range(at, bytes)?;
        // SAFETY: as the header asks.
        let from = unsafe { readable(from, bytes) }?;
        Ok(memory.team.write(memory.pe(pe)?, &to, from)?)
    })
}

/// The host's copy from a PE.
#[no_mangle]
pub unsafe extern "C" fn tandem_pgas_read(memory: u64, pe: u32, at: u64, to: *mut c_void, bytes: u64) -> i32 {
    guarded(|| {
        let memory = handles::memory(memory)?;
        let from = memory.range(at, bytes)?;
        let found = memory.team.read(memory.pe(pe)?, &from)?;
        // SAFETY: as the header asks.
        unsafe { give(to, &found) }
    })
}

fn copy(is_put: bool, (pe, peer): (u32, u32), to: (u64, u64), from: (u64, u64), bytes: u64) -> i32 {
    guarded(|| {
        let (target, source) = (handles::memory(to.0)?, handles::memory(from.0)?);
        let peer = target.pe(peer)?;
        let (to, from) = (target.range(to.1, bytes)?, source.range(from.1, bytes)?);
        let overlap = |(a, b): (u64, u64)| a < b + bytes && b < a + bytes;
        if bytes > 0 && pe as usize == peer && to.offset().zip(from.offset()).is_some_and(overlap) {
            return Err(Failure::argument(format!("PE {pe}: what is read and what is written overlap")));
        }
        // Memory of another team is refused by the queue.
        let queue = target.queue(pe)?;
        Ok(if is_put { queue.put(&to, &from, peer) } else { queue.get(&to, &from, peer) }?)
    })
}

/// A copy to a peer.
#[no_mangle]
pub extern "C" fn tandem_pgas_put(pe: u32, peer: u32, to: u64, to_at: u64, from: u64, from_at: u64, bytes: u64) -> i32 {
    copy(true, (pe, peer), (to, to_at), (from, from_at), bytes)
}

/// A copy from a peer.
#[no_mangle]
pub extern "C" fn tandem_pgas_get(pe: u32, peer: u32, to: u64, to_at: u64, from: u64, from_at: u64, bytes: u64) -> i32 {
    copy(false, (pe, peer), (to, to_at), (from, from_at), bytes)
}

/// A change of a peer's word.
#[no_mangle]
pub extern "C" fn tandem_pgas_signal(pe: u32, peer: u32, memory: u64, at: u64, operation: i32, value: u64) -> i32 {
    guarded(|| {
        let memory = handles::memory(memory)?;
        let signal = match operation {
            0 => Signal::Set(value),
            1 => Signal::Add(value),
            _ => return Err(Failure::argument(format!("operation {operation} of a signal: expected SET or ADD"))),
        };
        Ok(memory.queue(pe)?.signal_op(&memory.word(at)?, signal, memory.pe(peer)?)?)
    })
}

/// A wait for a word of one's own.
#[no_mangle]
pub extern "C" fn tandem_pgas_wait(pe: u32, peer: u32, memory: u64, at: u64, compare: i32, value: u64) -> i32 {
    guarded(|| {
        let memory = handles::memory(memory)?;
        let compare = match compare {
            0 => Compare::Eq,
            1 => Compare::Ne,
            2 => Compare::Gt,
            3 => Compare::Ge,
            4 => Compare::Lt,
            5 => Compare::Le,
            _ => return Err(Failure::argument(format!("comparison {compare}: expected EQ to LE, 0 to 5"))),
        };
        Ok(memory.queue(pe)?.signal_wait_until(&memory.word(at)?, compare, value, Some(memory.pe(peer)?))?)
    })
}

/// The host's change of a word.
#[no_mangle]
pub unsafe extern "C" fn tandem_pgas_atomic(
    pe: u32,
    memory: u64,
    at: u64,
    operation: i32,
    operand: u64,
    expected: u64,
    before: *mut u64,
) -> i32 {
    guarded(|| {
        let memory = handles::memory(memory)?;
        let atomic = match operation {
            0 => Atomic::Set(operand),
            1 => Atomic::Add(operand),
            2 => Atomic::And(operand),
            3 => Atomic::Or(operand),
            4 => Atomic::Xor(operand),
            5 => Atomic::CompareSwap { expected, value: operand },
            6 => Atomic::Fetch,
            _ => return Err(Failure::argument(format!("operation {operation}: expected SET to FETCH, 0 to 6"))),
        };
        let was = memory.team.atomic(memory.pe(pe)?, &memory.word(at)?, atomic)?;
        // SAFETY: null, or valid to write to, as the header asks.
        if let Some(before) = unsafe { before.as_mut() } {
            *before = was;
        }
        Ok(())
    })
}
