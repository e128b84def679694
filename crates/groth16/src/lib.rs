//! Groth16 proofs as a schedule over any [`tandem_ops::Backend`].
//!
//! The key is a [`KeyView`] where it lies and a [`ProvingKey`] on a backend; [`prove`] makes a [`Proof`] of a
//! [`Witness`], and [`PreparedKey::verify`] checks it; [`prove_verified`] does both at once. Each call is a [`Request`]
//! with spans of its own, which may be cancelled. The equations are those of snarkjs's keys, whose section H holds the
//! odd coset's Lagrange basis at tau, so that the quotient is never written as coefficients: its sum over H is the sum
//! of a*b - c on the odd coset. Keys of bellperson, whose H has powers of tau, are a [`PowersView`]; for them the quotient is made as
//! coefficients, and the sides of the constraints come with the witness ([`Evaluations`]).
#![forbid(unsafe_code)]

mod blinding;
pub mod ceremony;
pub mod check;
#[cfg(all(debug_assertions, not(test)))]
mod compiled;
pub mod digits;
mod finish;
mod join;
mod key;
mod matrices;
mod owned;
pub mod partition;
pub mod plan;
pub mod powers;
mod prove;
mod quotient;
pub mod setup;
pub mod synthetic;
mod tuning;
mod verify;

pub use blinding::Blinding;
pub use key::{KeyPoints, KeyView, PowersView, ProvingKey, VerifyingKey};
pub use owned::OwnedKey;
pub use plan::{Layout, Queries, Shape};
pub use prove::{prove, prove_staged, prove_verified, stage, Made, Proof, Staged};
pub use tandem_proof::{
    Elements, Error, Evaluations, HostSpan, Progress, Refusal, Request, Result, RowFault, Silent, Wires, Witness,
};
pub use verify::PreparedKey;

use tandem_ops::{Curve, Group};

/// A point of G1 on the wire.
pub type P1<C> = <<C as Curve>::G1 as Group>::Point;
/// A point of G2 on the wire.
pub type P2<C> = <<C as Curve>::G2 as Group>::Point;

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
