//! How far a long operation has come.

/// Hears of progress. Its methods may be called from any thread.
pub trait Progress: Sync {
    /// A task of `total` units begins; the one before is over. `total` is 0 where the size is not known.
    fn start(&self, task: &'static str, total: u64) {
        let _ = (task, total);
    }

    /// `units` more are done.
    fn advance(&self, units: u64) {
        let _ = units;
    }

    /// Asked between units of work; `true` makes the operation end with [`crate::Error::Interrupted`] and leave
    /// no file behind.
    fn cancelled(&self) -> bool {
        false
    }
}

/// Hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {}
