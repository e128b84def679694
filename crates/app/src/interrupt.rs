//! Ctrl-C and SIGTERM: no file is left, the exit status is 130.

use crate::failure::Outcome;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

static ASKED: AtomicBool = AtomicBool::new(false);

/// How long the work in hand may take to end by itself, so that secrets are wiped and devices are given back in order.
const GRACE: Duration = Duration::from_millis(700);

/// Begins to listen.
pub(crate) fn install() {
    let handler = || {
        if ASKED.swap(true, Ordering::SeqCst) {
            leave();
        }
        std::thread::spawn(|| {
            std::thread::sleep(GRACE);
            leave();
        });
    };
    // Without a handler the signal still ends the program; unfinished files have hidden names.
    if let Err(error) = ctrlc::set_handler(handler) {
        crate::report::note(&format!("Ctrl-C may leave a hidden .part file: {error}"));
    }
}

/// Whether the user has asked to stop.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}

/// Fails if the user has asked to stop.
pub(crate) fn check() -> Outcome {
    if asked() {
        return Err(tandem_engine::Error::Interrupted.into());
    }
    Ok(())
}

fn leave() -> ! {
    tandem_formats::remove_unfinished();
    std::process::exit(130);
}
