//! Results that are on their way.

use crate::Result;

/// A result that a lane has been told to produce. Dropping it abandons the result, not the work.
#[must_use = "the work is enqueued, but its result is only had by wait()"]
pub struct Pending<T>(Box<dyn FnOnce() -> Result<T> + Send>);

impl<T: Send + 'static> Pending<T> {
    /// A result that is there already.
    pub fn ready(value: T) -> Self {
        Pending(Box::new(move || Ok(value)))
    }

    /// A result that `wait` will bring; `wait` may block.
    pub fn new(wait: impl FnOnce() -> Result<T> + Send + 'static) -> Self {
        Pending(Box::new(wait))
    }

    /// Blocks until the result is there.
    ///
    /// # Errors
    /// Whatever the device reports for the work behind it.
    pub fn wait(self) -> Result<T> {
        (self.0)()
    }

    /// Applies `f` to the result when it is waited for.
    pub fn map<U: Send + 'static>(self, f: impl FnOnce(T) -> U + Send + 'static) -> Pending<U> {
        Pending::new(move || self.wait().map(f))
    }
}
