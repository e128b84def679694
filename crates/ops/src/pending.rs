//! Results that are on their way.

use crate::Result;

/// A result that a lane has been told to produce. Dropping it abandons the result, not the work.
#[must_use = "the work is enqueued, but its result is only had by wait()"]
pub struct Pending<T> {
    wait: Box<dyn FnOnce() -> Result<T> + Send>,
    is_ready: bool,
}

impl<T: Send + 'static> Pending<T> {
    /// A result that is there already.
    pub fn ready(value: T) -> Self {
        Pending { wait: Box::new(move || Ok(value)), is_ready: true }
    }

    /// A result that `wait` will bring; `wait` may block.
    pub fn new(wait: impl FnOnce() -> Result<T> + Send + 'static) -> Self {
        Pending { wait: Box::new(wait), is_ready: false }
    }

    /// Whether the result was there from the beginning, so that nothing is waited for. Of one that was on its way it stays `false`.
    pub fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// Blocks until the result is there.
    ///
    /// # Errors
    /// Whatever the device reports for the work behind it.
    pub fn wait(self) -> Result<T> {
        (self.wait)()
    }

    /// Applies `f` to the result when it is waited for.
    pub fn map<U: Send + 'static>(self, f: impl FnOnce(T) -> U + Send + 'static) -> Pending<U> {
        let is_ready = self.is_ready;
        Pending { wait: Box::new(move || self.wait().map(f)), is_ready }
    }
}
