//! The files of snarkjs and circom, read and written byte for byte as those tools do.
//!
//! | file | reading | writing |
//! |---|---|---|
//! | `.zkey` (Groth16) | [`Zkey::parse`], [`Coefs::matrices`]; piece by piece [`ZkeyOutline::read`] | [`ZkeyWriter`] |
//! | `.zkey` (PLONK) | [`PlonkZkey::parse`] | [`PlonkWriter`] |
//! | `.zkey` (FFLONK) | [`FflonkZkey::parse`] | [`FflonkWriter`] |
//! | `.wtns` | [`Wtns::open`], [`Wtns::open_with_sides`] | [`Wtns::write`], [`Wtns::write_with_sides`] |
//! | `.r1cs` | [`R1cs::parse`] | [`R1csWriter`] |
//! | `.sym` | [`sym::names_of`] | |
//! | `.params` (Groth16 of bellperson) | [`ParamsOutline::read`] | [`write_params`] |
//! | `.ptau` | [`PtauHeader::parse`], [`PtauFile`] | [`PtauWriter`] |
//! | `verification_key.json` | [`VerificationKey::parse`], [`PlonkVerificationKey::parse`] | [`VerificationKey::to_json`], [`PlonkVerificationKey::to_json`] |
//! | `proof.json` | [`Proof::parse`], [`PlonkProof::parse`] | [`Proof::to_json`], [`PlonkProof::to_json`] |
//! | `public.json` | [`json::parse_public`] | [`json::public_to_json`] |
//!
//! [`RegularFile`] brings a file into memory, [`output`] makes files appear whole or not at all. What a large file is, without reading
//! all of it, say [`ZkeyFile`], [`R1csFile`], [`ParamsFile`], [`WtnsHeader`] and [`PtauHeader`].
//!
//! Every file is taken to be hostile: lengths, counts, indexes and moduli are checked before they are used, and an
//! error names the place. Nothing here does curve arithmetic: whether points lie on the curve is the prover's to check.
//! [`limits`] states the largest of everything.
#![deny(unsafe_code)]

pub mod container;
pub mod error;
mod fflonk;
mod file;
pub mod json;
mod kind;
pub mod limits;
mod modulus;
pub mod output;
mod params;
mod part;
pub mod place;
pub mod plonk;
pub mod ptau;
mod r1cs;
pub mod sym;
mod system;
mod wtns;
pub mod zkey;

pub use error::{FormatError, Place, Result};
pub use fflonk::{FflonkFile, FflonkHeader, FflonkOutline, FflonkSection, FflonkWriter, FflonkZkey};
pub use file::{FileBytes, RegularFile};
pub use json::{FflonkProof, FflonkVerificationKey, PlonkProof, PlonkVerificationKey, Proof, VerificationKey};
pub use kind::{FileKind, OtherSystem};
pub use modulus::curve_of_scalar;
pub use output::{remove_unfinished, write_atomically, Output};
pub use params::{write_params, ParamsFile, ParamsOutline, ParamsPoints, ParamsSection, ParamsSizes};
pub use plonk::{PlonkFile, PlonkHeader, PlonkOutline, PlonkWriter, PlonkZkey};
pub use ptau::{PtauFile, PtauHeader, PtauWriter};
pub use r1cs::{Block, Constraint, CustomGate, LinearCombination, R1cs, R1csFile, R1csHeader, R1csWriter};
pub use system::{give_memory_back, keep_small_pieces, on_abort};
pub use wtns::{Expected as ExpectedSides, Sides, SidesRef, Wtns, WtnsHeader};
pub use zkey::{Coef, Coefs, Matrices, Protocol, Zkey, ZkeyFile, ZkeyHeader, ZkeyOutline, ZkeySection, ZkeyWriter};

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
