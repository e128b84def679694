//! PLONK as snarkjs has it, as a schedule over any [`tandem_ops::Backend`], and [`fflonk`].
//!
//! [`Gates`] are made of a circuit, [`setup::setup`] makes a key of them and of powers of tau, which needs no secret. The key is a
//! [`KeyView`] where it lies and a [`ProvingKey`] on a backend; [`prove_verified`] makes a [`Proof`] of a [`Witness`] and checks it,
//! [`PreparedKey::verify`] checks one. Transcript, polynomials and blinding are those of snarkjs 0.7.6, so that either verifies the
//! other's proofs.
#![forbid(unsafe_code)]

mod additions;
mod basis;
mod blinding;
mod check;
#[cfg(all(debug_assertions, not(test)))]
mod compiled;
mod coset;
pub mod fflonk;
mod gates;
mod key;
pub mod known;
mod model;
mod pairings;
pub mod plan;
mod polynomial;
mod polynomials;
mod prove;
mod rounds;
pub mod setup;
mod spread;
mod stay;
mod sums;
mod transcript;
mod verify;
mod work;

pub use blinding::Blinding;
pub use gates::{Addition, Gates, Shape};
pub use key::{device_bytes, least_bytes, working_bytes, KeyView, ProvingKey, VerifyingKey};
pub use prove::{prove_verified, Made, Proof};
pub use stay::Stay;
pub use tandem_proof::{Error, HostSpan, Layout, Progress, Refusal, Request, Result, Silent, Witness};
pub use verify::PreparedKey;

use tandem_ops::{Backend, BatchInverse, Curve, Gather, Group, Msm, NttProducts, PlonkRows, PointNtt, Scan, VecOps};

/// A point of G1 on the wire.
pub type P1<C> = <<C as Curve>::G1 as Group>::Point;
/// A point of G2 on the wire.
pub type P2<C> = <<C as Curve>::G2 as Group>::Point;

/// Everything that a PLONK proof over `C` asks of a backend.
pub trait PlonkBackend<C: Curve>:
    Backend + Gather + NttProducts<C> + VecOps<C> + PlonkRows<C> + BatchInverse<C> + Scan<C> + PointNtt<C> + Msm<C::G1>
{
}

impl<C: Curve, B> PlonkBackend<C> for B where
    B: Backend
        + Gather
        + NttProducts<C>
        + VecOps<C>
        + PlonkRows<C>
        + BatchInverse<C>
        + Scan<C>
        + PointNtt<C>
        + Msm<C::G1>
{
}

#[cfg(test)]
extern crate self as tandem_plonk;
#[cfg(test)]
#[path = "../tests/support/mod.rs"]
mod support;

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
