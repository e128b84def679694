//! What the user sets, and what is told of decisions.

use std::sync::OnceLock;

/// `TANDEM_NCCL`
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Quiet,
    Log,
    Off,
}

fn mode() -> Mode {
    static MODE: OnceLock<Mode> = OnceLock::new();
    *MODE.get_or_init(|| match std::env::var("TANDEM_NCCL").as_deref() {
        Err(_) | Ok("" | "on") => Mode::Quiet,
        Ok("log") => Mode::Log,
        Ok("off") => Mode::Off,
        Ok(other) => {
            eprintln!("tandem-nccl: TANDEM_NCCL={other:?}: expected on, off or log; all calls go to NCCL");
            Mode::Off
        }
    })
}

/// Whether every call goes to NCCL.
pub(crate) fn is_off() -> bool {
    mode() == Mode::Off
}

/// Tells of a decision, where the user asks for that.
pub(crate) fn log(text: impl FnOnce() -> String) {
    if mode() == Mode::Log {
        eprintln!("tandem-nccl: {}", text());
    }
}

/// Tells of something that is wrong.
pub(crate) fn warn(text: &str) {
    eprintln!("tandem-nccl: {text}");
}
