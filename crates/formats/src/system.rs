//! The requests to the operating system that have no safe form.
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

/// Asks for large pages under memory that has not been written to yet: to take it page by page costs more than to read a file from
/// memory. Where the system has none, or refuses, nothing changes.
pub(crate) fn prefer_large_pages(memory: &mut [u8]) {
    /// Large pages of the smallest size there is, on x86-64.
    const LARGE: usize = 2 << 20;
    let before = memory.as_ptr().align_offset(LARGE);
    let Some(whole) = memory.get_mut(before..).map(|rest| rest.len() / LARGE * LARGE).filter(|&len| len > 0) else {
        return;
    };
    let start = memory[before..].as_mut_ptr();
    // SAFETY: whole pages of a slice that is borrowed alone. The advice changes how they are backed, not what they hold.
    let _ = unsafe { nix::libc::madvise(start.cast(), whole, nix::libc::MADV_HUGEPAGE) };
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the kernel was asked for large pages of the mapping with this address.
    fn is_advised(address: usize) -> bool {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut is_of_it = false;
        for line in maps.lines() {
            let range = line.split(' ').next().unwrap().split_once('-');
            let ends =
                range.and_then(|(a, b)| Some((usize::from_str_radix(a, 16).ok()?, usize::from_str_radix(b, 16).ok()?)));
            match ends {
                Some((from, to)) => is_of_it = (from..to).contains(&address),
                None if is_of_it && line.starts_with("VmFlags:") => return line.split(' ').any(|flag| flag == "hg"),
                None => {}
            }
        }
        false
    }

    #[test]
    fn large_memory_is_asked_for_in_large_pages() {
        let mut memory = vec![0u8; 64 << 20];
        let middle = memory.as_ptr().addr() + memory.len() / 2;
        assert!(!is_advised(middle));
        prefer_large_pages(&mut memory);
        // A kernel without large pages takes no advice.
        let has_them = std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists();
        assert_eq!(is_advised(middle), has_them);
        assert!(memory.iter().all(|&byte| byte == 0));
        // Less than a page: nothing is asked for, nothing breaks.
        for len in [0, 1, 4096, (2 << 20) - 1] {
            prefer_large_pages(&mut vec![0; len]);
        }
    }
}
