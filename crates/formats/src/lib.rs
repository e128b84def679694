//! The files of snarkjs and circom, read and written byte for byte as those tools do.
//!
//! | file | reading | writing |
//! |---|---|---|
//! | `.zkey` (Groth16) | [`Zkey::parse`], [`Coefs::matrices`] | [`ZkeyWriter`] |
//! | `.wtns` | [`Wtns::open`] | [`Wtns::write`] |
//! | `.r1cs` | [`R1cs::parse`] | [`R1csWriter`] |
//!
//! Every file is taken to be hostile: lengths, counts, indexes and moduli are checked before they are used, and an
//! error names the place. Nothing here does curve arithmetic: whether points lie on the curve is the prover's to check.
//! [`limits`] states the largest of everything.
#![deny(unsafe_code)]

pub mod container;
pub mod error;
pub mod limits;
mod mapped;
mod modulus;
mod r1cs;
mod wtns;
pub mod zkey;

pub use container::FileKind;
pub use error::{FormatError, Place, Result};
pub use mapped::MappedFile;
pub use r1cs::{Block, Constraint, CustomGate, LinearCombination, R1cs, R1csHeader, R1csWriter};
pub use wtns::Wtns;
pub use zkey::{Coef, Coefs, Matrices, Zkey, ZkeyHeader, ZkeySection, ZkeyWriter};
