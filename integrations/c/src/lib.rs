//! The fabric for C, and for whatever calls C: `include/tandem_pgas.h` says what each function does.
//!
//! Handles are numbers in a table, never addresses: one that was closed is refused. Nothing panics across the border, and every length is
//! checked before memory is touched.
#![allow(clippy::missing_safety_doc)] // The header has it: pointers are valid for as many bytes as the call names.

mod array;
mod handles;
mod memory;

use handles::{Failure, Object};
use std::cell::RefCell;
use std::ffi::{c_char, CStr, CString};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::time::Duration;
use tandem_fabric::{Options, Team};

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Does a call: its code, and the words for [`tandem_pgas_error`].
fn guarded(f: impl FnOnce() -> Result<(), Failure>) -> i32 {
    let done = catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|_| Err(Failure::internal()));
    let Err(failure) = done else { return 0 };
    let text = CString::new(failure.text.replace('\0', " ")).unwrap_or_default();
    LAST.with_borrow_mut(|last| *last = text);
    failure.code
}

/// A place that the caller has for a result.
fn place<'a, T>(to: *mut T, name: &str) -> Result<&'a mut T, Failure> {
    // SAFETY: null, or valid to write to, as the header asks.
    unsafe { to.as_mut() }.ok_or_else(|| Failure::argument(format!("{name} is null")))
}

/// What was wrong with the thread's last call that failed.
#[no_mangle]
pub extern "C" fn tandem_pgas_error() -> *const c_char {
    LAST.with_borrow(|last| last.as_ptr())
}

/// The GPUs that a text names.
fn devices(text: &str) -> Result<Vec<tandem_cuda::Device>, Failure> {
    let wrong = || Failure::argument(format!("devices {text:?}: expected sim:4, cuda or cuda:0,1"));
    let list = text.strip_prefix("cuda").ok_or_else(wrong)?;
    let found = tandem_cuda::probe().map_err(Failure::device)?;
    let usable = |gpu: &tandem_cuda::Found| gpu.usable.clone().map_err(Failure::device);
    if list.is_empty() {
        return found.iter().map(usable).collect();
    }
    let number = |text: &str| -> Result<tandem_cuda::Device, Failure> {
        let number: u32 = text.parse().map_err(|_| wrong())?;
        let gpu = found.iter().find(|gpu| gpu.index == number);
        usable(gpu.ok_or_else(|| Failure::argument(format!("there is no GPU {number} among {}", found.len())))?)
    };
    list.strip_prefix(':').ok_or_else(wrong)?.split(',').map(number).collect()
}

/// Opens a team.
#[no_mangle]
pub unsafe extern "C" fn tandem_pgas_open(text: *const c_char, timeout_ms: u64, team: *mut u64) -> i32 {
    guarded(|| {
        let team = place(team, "team")?;
        if text.is_null() {
            return Err(Failure::argument("devices is null"));
        }
        // SAFETY: not null, and a text that ends with a zero byte, as the header asks.
        let text = unsafe { CStr::from_ptr(text) }.to_str().map_err(|_| Failure::argument("devices is no UTF-8"))?;
        let mut options = Options::default();
        if timeout_ms > 0 {
            options.timeout = Duration::from_millis(timeout_ms);
        }
        let opened = match text.strip_prefix("sim:") {
            Some(pes) => {
                let wrong = |_| Failure::argument(format!("devices {text:?}: no number of pretend PEs"));
                Team::sim(pes.parse().map_err(wrong)?, options)?
            }
            None => Team::cuda(&devices(text)?, options)?,
        };
        *team = handles::add(Object::Team(opened))?;
        Ok(())
    })
}

/// Number of PEs.
#[no_mangle]
pub unsafe extern "C" fn tandem_pgas_size(team: u64, pes: *mut u32) -> i32 {
    guarded(|| {
        *place(pes, "pes")? = handles::team(team)?.size() as u32;
        Ok(())
    })
}

/// Gives a handle back.
#[no_mangle]
pub extern "C" fn tandem_pgas_close(handle: u64) -> i32 {
    guarded(|| handles::remove(handle).map(drop))
}

/// Waits for all queues.
#[no_mangle]
pub extern "C" fn tandem_pgas_synchronize(team: u64) -> i32 {
    guarded(|| Ok(handles::team(team)?.synchronize()?))
}

/// A barrier of all PEs.
#[no_mangle]
pub extern "C" fn tandem_pgas_barrier(team: u64) -> i32 {
    guarded(|| Ok(handles::team(team)?.barrier()?))
}
