//! Requests to the operating system that have no safe form: a second handle of an open file, a signal's handler, the process's end, and how
//! memory is allocated.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::OnceLock;

/// One more handle of the open file that has this number in the process: what is written follows what others wrote to it.
pub(crate) fn duplicate(number: u32) -> io::Result<File> {
    let number = i32::try_from(number).map_err(|_| io::Error::from_raw_os_error(nix::libc::EBADF))?;
    // SAFETY: the number is not -1, and the borrow ends with this statement, which only asks the kernel to duplicate it; one that
    // is not open is refused. The user named an open file of this process, so that sharing it is what is wanted.
    let own = unsafe { BorrowedFd::borrow_raw(number) }.try_clone_to_owned()?;
    Ok(File::from(own))
}

/// Requests of so many bytes and more get pages of their own, which the system has back as soon as they are freed.
#[cfg(target_env = "gnu")]
const OWN_PAGES: i32 = 512 << 10;

/// Lets the system have large pieces of memory back when they are freed. Of itself the allocator of glibc takes to keeping them, up to 32 MiB
/// each, once one was freed, and a program then has far more memory than it uses. To be called before there are threads.
pub fn give_memory_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it sets a number of the allocator, for which any value will do, before another thread could read it.
    unsafe {
        nix::libc::mallopt(nix::libc::M_MMAP_THRESHOLD, OWN_PAGES);
    }
}

/// Bytes of small pieces that each arena keeps.
#[cfg(target_env = "gnu")]
const KEPT: i32 = 64 << 20;

/// Keeps smaller pieces of memory when they are freed, for a program that takes and frees them all the time: beside [`give_memory_back`] the
/// allocator of glibc gives them back where 128 KiB lie together, and fresh pages take a thread as long as to fill them. To be called before
/// there are threads.
pub fn keep_small_pieces() {
    #[cfg(target_env = "gnu")]
    // SAFETY: as in `give_memory_back`.
    unsafe {
        nix::libc::mallopt(nix::libc::M_TRIM_THRESHOLD, KEPT);
    }
}

/// Exit status and line of a program that aborts.
static LAST: OnceLock<(i32, &'static str)> = OnceLock::new();

/// From here on a program that aborts, as where memory is exhausted or a stack overflows, removes its files under way, says
/// `line` (which ends with a newline) on stderr and exits with `status`. The first call counts.
///
/// # Errors
/// The operating system refuses; the program then ends by the signal and leaves hidden files.
pub fn on_abort(status: i32, line: &'static str) -> io::Result<()> {
    use nix::sys::signal::{sigaction, SaFlags, SigAction, SigHandler, SigSet, Signal};
    LAST.get_or_init(|| (status, line));
    let action = SigAction::new(SigHandler::Handler(aborted), SaFlags::empty(), SigSet::all());
    // SAFETY: the handler calls only what may be called in a signal handler: it reads atomics, tries a lock without waiting for it
    // and makes system calls; it neither allocates nor returns.
    unsafe { sigaction(Signal::SIGABRT, &action) }?;
    Ok(())
}

extern "C" fn aborted(_: nix::libc::c_int) {
    let (status, line) = *LAST.get().unwrap_or(&(3, ""));
    crate::part::abandon();
    // Where stderr is closed there is nobody to tell.
    let _ = nix::unistd::write(io::stderr(), line.as_bytes());
    // SAFETY: ends the process at once, without destructors or handlers of exit.
    unsafe { nix::libc::_exit(status) }
}
