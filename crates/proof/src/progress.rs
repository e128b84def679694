//! How far a long operation has come, and who may stop it.

use tandem_ops::Lane;

/// Hears of progress. Its methods may be called from any thread.
pub trait Progress: Sync {
    /// A task of `total` units begins; the one before is over. `total` is 0 where the size is not known.
    fn start(&self, task: &'static str, total: u64) {
        let _ = (task, total);
    }

    /// The backend, which makes one proof at a time, turns to this one: what came before was waiting.
    fn turn(&self) {}

    /// `units` more are done.
    fn advance(&self, units: u64) {
        let _ = units;
    }

    /// A stage of a proof, such as `MSM B2`, was given to `lane`, which does it in its order.
    fn enqueued(&self, stage: &'static str, lane: Lane) {
        let _ = (stage, lane);
    }

    /// A stage of a proof is done, and its result is on the host: a sum, or the proof's verification.
    fn finished(&self, stage: &'static str) {
        let _ = stage;
    }

    /// Asked between units of work, and before and after every primitive of a proof; `true` makes the operation end with
    /// [`crate::Error::Interrupted`] and leave no file behind.
    fn cancelled(&self) -> bool {
        false
    }
}

/// Hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {}
