//! The front of the prover for programs: devices, resident keys, proofs and their checks, with neither the curve
//! nor the device in any type.
//!
//! The backend is chosen once, in [`Engine::open`]. A [`Key`] stays on the device for any number of proofs. A proof
//! is verified before [`Engine::prove`] returns it; one that fails is made again on the CPU, and reported.
//!
//! ```
//! use tandem_engine::{export_vkey_bytes, DeviceChoice, Engine, KeyCheck, Silent, Verifier, Witness};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let demo = |name: &str| std::fs::read(format!("{}/../../demo/{name}", env!("CARGO_MANIFEST_DIR")));
//! let (zkey, wtns): (Vec<u8>, Vec<u8>) = (demo("membership.zkey")?, demo("membership.wtns")?);
//!
//! let engine = Engine::open(&DeviceChoice::Auto)?;
//! let key = engine.load_key_bytes(zkey.as_slice(), KeyCheck::Once, &Silent)?;
//! let proved = engine.prove(&key, &Witness::from_bytes(&wtns)?, &Silent)?;
//!
//! println!("{}\n{}", proved.proof.to_json(), proved.publics.to_json());
//! Verifier::from_json(export_vkey_bytes(&zkey)?.as_bytes())?.verify(&proved.publics, &proved.proof)?;
//! # Ok(())
//! # }
//! ```
//!
//! [`Engine`], [`Key`], [`Witness`], [`Proof`] and [`Verifier`] are what a program needs; [`Progress`] hears of a proof and stops it, and
//! every failure is an [`Error`] with an [`ErrorCode`].
#![forbid(unsafe_code)]

use std::time::Instant;
use tandem_ops::with_curve;

mod ahead;
mod assignment;
mod blocks;
pub mod cache;
mod calldata;
mod device;
mod each;
mod error;
mod files;
mod gauges;
pub mod gpus;
mod key;
mod memory;
mod open;
mod owner;
mod partition;
mod poseidon;
mod powers;
mod prepare;
mod proof;
mod ptau;
mod recover;
mod reduce;
mod resident;
mod satisfied;
mod setup_ceremony;
mod setup_fflonk;
mod setup_params;
mod setup_plonk;
pub mod size;
mod solidity;
mod sort;
mod source;
mod store;
mod synthetic;
mod system;
mod team;
mod verifier;
mod witness;

pub use assignment::{Assignment, Density};
pub use calldata::calldata;
pub use device::{DeviceChoice, MAX_SIM_LANES};
pub use error::{Error, ErrorCode, Result};
pub use files::{export_vkey, export_vkey_bytes, key_info, setup};
pub use gauges::{Gauge, Gauges};
pub use key::{load_key_on, Key};
pub use memory::{key_memory, KeyMemory};
pub use open::{Engine, Schedule};
pub use partition::{SyntheticAssignment, SyntheticPartition};
pub use poseidon::{check_leaves, Hasher, ELEMENT_BYTES};
pub use prepare::Prepared;
pub use proof::{Proof, Publics};
pub use ptau::{test_ptau, TEST_POWERS};
pub use reduce::{element_bytes, of_input, Reduced, Reducer, ToReduced};
pub use satisfied::{check_witness, Satisfied};
pub use setup_ceremony::setup_ceremony;
pub use setup_fflonk::setup_fflonk;
pub use setup_params::setup_params;
pub use setup_plonk::setup_plonk;
pub use solidity::{export_solidity, VerifierContract};
pub use sort::Sorter;
pub use store::{KeyStore, StoredKey};
pub use synthetic::SyntheticKey;
pub use tandem_formats::Protocol;
pub use tandem_groth16::digits::{self, ProofDigits};
pub use tandem_groth16::partition::Partition;
pub use tandem_groth16::{Layout, Progress, Silent};
pub use tandem_ops::timeline::{waited_us, Moved, WAIT};
pub use tandem_ops::{CurveId, DeviceKind, Direction, FieldId, Lane, Order, Span};
pub use verifier::{verify, Verifier};
pub use witness::{StagedWitness, Witness};

/// What was opened, in words.
#[derive(Debug, Clone)]
pub struct DeviceReport {
    /// What it runs on.
    pub kind: DeviceKind,
    /// One line a lane, such as `NVIDIA H200 (cuda:0)`.
    pub lanes: Vec<String>,
    /// Why this device and no other, one sentence, for `--device auto`; empty where the user named it.
    pub why: String,
}

/// When the points of a key are checked to lie on their curves and in their subgroups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyCheck {
    /// Once for each content of a key, remembered by its hash in the cache folder.
    #[default]
    Once,
    /// Now, whatever is remembered.
    Always,
}

/// One timed part of an operation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stage {
    /// What it was, such as `MSM B2`.
    pub name: &'static str,
    /// Lane it ran on; `None` for work of the host.
    pub lane: Option<usize>,
    /// When the host began it; `None` for work of a lane, and where nobody noted it.
    pub begun: Option<Instant>,
    /// How long it took.
    pub seconds: f64,
    /// Of that, how long its lane waited for copies that ran elsewhere.
    pub waited: f64,
    /// What its copies moved; nothing for work of the host.
    pub moved: Moved,
}

/// Facts about a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyInfo {
    /// The proof system that it is for.
    pub protocol: Protocol,
    /// Its curve.
    pub curve: CurveId,
    /// Number of wires of the circuit, the constant 1 among them.
    pub variables: usize,
    /// Number of public outputs and inputs.
    pub publics: usize,
    /// Rows of its domain, a power of two.
    pub domain: usize,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Whether it holds the circuit. One of bellperson does not: its witnesses come with the sides of the constraints.
    pub has_circuit: bool,
}

impl KeyInfo {
    /// What a witness file with sides may hold for this key.
    pub(crate) fn sides(&self) -> tandem_formats::ExpectedSides {
        // Files of keys hold both numbers in 32 bits.
        let witness = tandem_formats::WtnsHeader { curve: self.curve, count: self.variables as u32 };
        tandem_formats::ExpectedSides { witness, rows: self.domain as u32 }
    }

    /// Bytes of device memory that the key takes without tables of multiples, of all lanes together. A Groth16 key takes what its file does:
    /// its points and matrices.
    pub fn device_bytes(&self) -> u64 {
        match self.protocol {
            Protocol::Groth16 => self.file_bytes,
            Protocol::Plonk => with_curve!(self.curve, C => tandem_plonk::device_bytes::<C>(self.domain)),
            Protocol::Fflonk => tandem_plonk::fflonk::device_bytes(self.domain),
        }
    }
}

/// A proof that has been verified, and how it came about.
#[derive(Debug, Clone)]
pub struct Proved {
    /// The proof.
    pub proof: Proof,
    /// The public values that it is for.
    pub publics: Publics,
    /// Host and device times, in the order of the work.
    pub stages: Vec<Stage>,
    /// What ran when on the lanes, for a trace.
    pub spans: Vec<Span>,
    /// The device that made it, in words.
    pub device: String,
    /// Seconds from the call to the verified proof.
    pub seconds: f64,
    /// What the device was short of while it made the proof, and what was done about it: one sentence to be shown.
    pub remark: Option<String>,
    /// Set when the device's own proof was not to be had and another attempt made this one.
    pub fallback: Option<Fallback>,
}

/// Why the device's own proof was not to be had. Each has one sentence to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fallback {
    /// The device failed before it had a proof, and the CPU made it.
    DeviceFailed(String),
    /// The device made a proof that failed its check, and a later attempt did not: it computes wrongly.
    WrongProof(String),
}

impl Fallback {
    /// The sentence.
    pub fn as_str(&self) -> &str {
        match self {
            Fallback::DeviceFailed(what) | Fallback::WrongProof(what) => what,
        }
    }
}

impl std::fmt::Display for Fallback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How to make a test key.
#[derive(Debug, Clone, Default)]
pub struct SetupOptions {
    /// Draws the secret from this text and not from the operating system: the same text gives the same key.
    pub seed: Option<String>,
}

/// What [`setup`] made.
#[derive(Debug, Clone)]
pub struct SetupReport {
    /// Facts about the key.
    pub key: KeyInfo,
    /// Constraints of the circuit.
    pub constraints: usize,
    /// Gates of a PLONK key.
    pub gates: Option<usize>,
    /// How long each part took.
    pub stages: Vec<Stage>,
}

/// A circuit made up for measurements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Synthetic {
    /// Its curve.
    pub curve: CurveId,
    /// Binary logarithm of the domain.
    pub log_size: u32,
    /// Share of wires with values of full size, 0 to 1; the others are bits.
    pub dense: f64,
}

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
