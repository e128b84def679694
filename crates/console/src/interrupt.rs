//! Ctrl-C and the other signals that ask a program to end: no file is left, the exit status is 128 and the signal's number.

use crate::failure::Outcome;
use nix::sys::signal::{SigSet, Signal};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

/// The first of them that came; 0 before.
static ASKED: AtomicI32 = AtomicI32::new(0);

/// Whether the first signal only asks, and the program ends by itself when it has nothing more to do.
static DRAINS: AtomicBool = AtomicBool::new(false);

/// How often SIGHUP came that means to read files again; below 0: it ends the program.
static AGAIN: AtomicI32 = AtomicI32::new(-1);

/// How long the work in hand may take to end by itself, so that secrets are wiped and devices are given back in order.
const GRACE: Duration = Duration::from_millis(700);

/// Begins to listen: the signals are held back from all threads, but for one that waits for them. To be called before any other
/// thread is made.
pub fn install() {
    // With this one held back, a write beyond a file's largest size is an error like that of a full disk.
    let full = SigSet::from(Signal::SIGXFSZ).thread_block();
    let signals = ends();
    let wait = move || loop {
        if let Ok(signal) = signals.wait() {
            end(signal);
        }
    };
    let listening = full
        .and_then(|()| signals.thread_block())
        .map_err(std::io::Error::from)
        .and_then(|()| std::thread::Builder::new().name("signals".into()).spawn(wait));
    // Without a listener a signal still ends the program; unfinished files have hidden names.
    if let Err(error) = listening {
        let _ = signals.thread_unblock();
        crate::report::note(&format!("Ctrl-C may leave a hidden .part file: {error}"));
    }
}

/// What ends a program. Closing the terminal does unless the program was started to outlive it, as by nohup.
fn ends() -> SigSet {
    let mut signals: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGQUIT, Signal::SIGXCPU].into_iter().collect();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    if ignored.unwrap_or(0) >> (Signal::SIGHUP as i32 - 1) & 1 == 0 {
        signals.add(Signal::SIGHUP);
    }
    signals
}

/// From now on the first signal only asks ([`asked`]): for a program that ends what it has begun. A second one ends it.
pub fn drain() {
    DRAINS.store(true, Ordering::SeqCst);
}

/// From now on SIGHUP does not end the program: it asks to read files again ([`asked_again`]).
pub fn reload() {
    AGAIN.store(0, Ordering::SeqCst);
}

/// Whether SIGHUP came since this was asked last.
pub fn asked_again() -> bool {
    AGAIN.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |count| (count > 0).then_some(0)).is_ok()
}

fn end(signal: Signal) {
    if signal == Signal::SIGHUP
        && AGAIN.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| (n >= 0).then_some(1)).is_ok()
    {
        return;
    }
    let is_first = ASKED.compare_exchange(0, signal as i32, Ordering::SeqCst, Ordering::SeqCst).is_ok();
    if is_first && signal != Signal::SIGQUIT && DRAINS.load(Ordering::SeqCst) {
        return;
    }
    let later = || {
        std::thread::sleep(GRACE);
        leave();
    };
    if !is_first || signal == Signal::SIGQUIT || std::thread::Builder::new().spawn(later).is_err() {
        leave();
    }
}

/// Whether the user has asked to stop.
pub fn asked() -> bool {
    ASKED.load(Ordering::SeqCst) != 0
}

/// The exit status of a program that was asked to stop: 130 after Ctrl-C, 143 after SIGTERM.
pub fn status() -> u8 {
    match ASKED.load(Ordering::SeqCst) {
        0 => 128 + Signal::SIGINT as u8,
        signal => 128 + signal as u8,
    }
}

/// Fails if the user has asked to stop.
pub fn check() -> Outcome {
    if asked() {
        return Err(tandem_engine::Error::Interrupted.into());
    }
    Ok(())
}

fn leave() -> ! {
    tandem_formats::remove_unfinished();
    std::process::exit(status().into());
}
