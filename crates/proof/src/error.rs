//! What can go wrong in the prover.

/// Result of the prover's operations.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong. No variant carries data of a witness.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The backend failed, or has too little memory.
    #[error(transparent)]
    Backend(#[from] tandem_ops::Error),
    /// Parts of a key do not fit together, or one is no good point.
    #[error("{0}")]
    Key(String),
    /// The witness does not belong to the key's circuit.
    #[error("{0}")]
    Witness(String),
    /// A circuit that cannot have a key.
    #[error("{0}")]
    Circuit(String),
    /// The place a key is written to refused it.
    #[error("{0}")]
    Output(String),
    /// The operating system gave no randomness.
    #[error("no randomness from the operating system: {0}")]
    Random(String),
    /// [`crate::Progress::cancelled`] said so.
    #[error("interrupted")]
    Interrupted,
}
