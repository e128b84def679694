//! Proofs that were made, and what a verifier says of them.

use crate::points::Fault;
use crate::HostSpan;
use std::time::Instant;

/// A proof that has been verified, and how the host's time was spent.
#[derive(Debug)]
pub struct Made<P> {
    /// The proof, right or wrong.
    pub proof: P,
    /// What the verifier says of it.
    pub verdict: std::result::Result<(), Refusal>,
    /// When that was known.
    pub ended: Instant,
    /// What the host did when.
    pub host: Vec<HostSpan>,
}

/// Why a proof is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Another number of public values than the key's.
    #[error("{has} public values; the verification key has {expected}")]
    PublicCount {
        /// How many came.
        has: usize,
        /// How many the key has.
        expected: usize,
    },
    /// A public value that is not below the modulus: it would stand for another one.
    #[error("public value {0} is not below the modulus")]
    PublicRange(usize),
    /// A point that is none of its group.
    #[error("point {name} of the proof {fault}")]
    Point {
        /// Its name in the proof's JSON, such as `pi_a`.
        name: &'static str,
        /// What is wrong with it.
        fault: Fault,
    },
    /// A value of a polynomial that is not below the modulus.
    #[error("{0} of the proof is not below the modulus")]
    Evaluation(&'static str),
    /// The pairing equation does not hold.
    #[error("the pairing equation does not hold")]
    Equation,
}
