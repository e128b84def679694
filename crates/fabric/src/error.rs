//! What can be wrong with a topology or a job.

/// Result of reading a topology or of planning.
pub type Result<T> = std::result::Result<T, Error>;

/// One line that says what was wrong, where, and what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A topology breaks a rule, or its text cannot be read.
    #[error("{place}: {problem}")]
    Topology {
        /// The line or the element.
        place: String,
        /// What was found and what was expected.
        problem: String,
    },
    /// The job does not fit the topology or the operation.
    #[error("{0}")]
    Job(String),
    /// The plan cannot be written in this format.
    #[error("{0}")]
    Export(String),
    /// A plan breaks a rule; see [`crate::plan::check`].
    #[error("wrong plan: {0}")]
    WrongPlan(String),
}

impl Error {
    pub(crate) fn at(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Topology { place: place.into(), problem: problem.into() }
    }
}
