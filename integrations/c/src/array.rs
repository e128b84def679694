//! Arrays that lie on all PEs of a team.

use crate::handles::{self, Array, Failure, Memory, Object};
use crate::memory::{give, readable};
use crate::{guarded, place};
use std::ffi::c_void;
use tandem_fabric::{Distribution, Layout};

impl Array {
    /// Runs of elements of one PE, for `count` elements from `first` on: the PE, the byte of its part, and the bytes.
    fn runs(&self, first: u64, count: u64) -> Result<Vec<(usize, u64, usize)>, Failure> {
        let end = first.checked_add(count).filter(|end| *end <= self.length as u64).ok_or_else(|| {
            Failure::argument(format!("elements {first} and {count} from there on; the array has {}", self.length))
        })?;
        let (mut at, end) = (first as usize, end as usize);
        let mut runs = Vec::new();
        while at < end {
            let block = self.layout.block().max(1);
            let len = (block - at % block).min(end - at);
            let (pe, place) = self.layout.owner(at);
            runs.push((pe, (place * self.element) as u64, len * self.element));
            at += len;
        }
        Ok(runs)
    }
}

/// An array over all PEs.
#[no_mangle]
pub unsafe extern "C" fn tandem_pgas_array(team: u64, length: u64, element: u64, block: u64, array: *mut u64) -> i32 {
    guarded(|| {
        let array = place(array, "array")?;
        let team = handles::team(team)?;
        let wrong = || Failure::argument(format!("{length} elements of {element} bytes, in blocks of {block}"));
        let number = |value: u64| usize::try_from(value).map_err(|_| wrong());
        let (length, element, block) = (number(length)?, number(element)?, number(block)?);
        if element == 0 || length.checked_mul(element).is_none_or(|bytes| bytes > isize::MAX as usize) {
            return Err(wrong());
        }
        let distribution = if block == 0 { Distribution::Block } else { Distribution::BlockCyclic(block) };
        let layout = Layout::new(length, distribution, team.size())?;
        let most = (0..team.size()).map(|pe| layout.local_len(pe)).max().unwrap_or(0);
        let bytes = team.alloc(most * element)?;
        let part = Memory { team, bytes };
        *array = handles::add(Object::Array(Array { part, layout, length, element }))?;
        Ok(())
    })
}

/// Where an element is.
#[no_mangle]
pub unsafe extern "C" fn tandem_pgas_array_owner(array: u64, index: u64, pe: *mut u32, at: *mut u64) -> i32 {
    guarded(|| {
        let (pe, at) = (place(pe, "pe")?, place(at, "at")?);
        let array = handles::array(array)?;
        let run = array.runs(index, 1)?;
        let (owner, byte, _) = run.first().ok_or_else(Failure::internal)?;
        (*pe, *at) = (*owner as u32, *byte);
        Ok(())
    })
}

/// The memory of the parts.
#[no_mangle]
pub unsafe extern "C" fn tandem_pgas_array_part(array: u64, memory: *mut u64) -> i32 {
    guarded(|| {
        let memory = place(memory, "memory")?;
        *memory = handles::add(Object::Memory(handles::array(array)?.part))?;
        Ok(())
    })
}

/// The host's copy to elements.
#[no_mangle]
pub unsafe extern "C" fn tandem_pgas_array_write(array: u64, first: u64, from: *const c_void, count: u64) -> i32 {
    guarded(|| {
        let array = handles::array(array)?;
        let runs = array.runs(first, count)?;
        // SAFETY: as the header asks; the runs are within the array, whose bytes are no more than a slice may have.
        let mut left = unsafe { readable(from, count * array.element as u64) }?;
        for (pe, at, bytes) in runs {
            let (now, later) = left.split_at(bytes);
            array.part.team.write(pe, &array.part.range(at, bytes as u64)?, now)?;
            left = later;
        }
        Ok(())
    })
}

/// The host's copy of elements.
#[no_mangle]
pub unsafe extern "C" fn tandem_pgas_array_read(array: u64, first: u64, to: *mut c_void, count: u64) -> i32 {
    guarded(|| {
        let array = handles::array(array)?;
        let mut found = Vec::new();
        for (pe, at, bytes) in array.runs(first, count)? {
            found.extend_from_slice(&array.part.team.read(pe, &array.part.range(at, bytes as u64)?)?);
        }
        // SAFETY: as the header asks.
        unsafe { give(to, &found) }
    })
}
