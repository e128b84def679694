//! What can be wrong with a job or a plan.

/// Result of everything in this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// One line that says what was wrong, and what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The job does not fit the topology or the operation.
    #[error("{0}")]
    Job(String),
    /// The plan cannot be written in this format.
    #[error("{0}")]
    Export(String),
    /// A plan breaks a rule; see [`crate::check()`].
    #[error("wrong plan: {0}")]
    WrongPlan(String),
    /// Planning was cancelled; see [`crate::Budget::cancelled_by`].
    #[error("planning was stopped")]
    Stopped,
}
