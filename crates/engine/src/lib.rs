//! The front of the prover for programs: devices, resident keys, proofs and their checks, with neither the curve
//! nor the device in any type.
//!
//! The backend is chosen once, in [`Engine::open`]. A [`Key`] stays on the device for any number of proofs. A proof
//! is verified before [`Engine::prove`] returns it; one that fails is made again on the CPU, and reported.
#![forbid(unsafe_code)]

mod device;
mod error;
mod progress;

pub use device::{DeviceChoice, MAX_SIM_LANES};
pub use error::{Error, Result};
pub use progress::{Progress, Silent};
pub use tandem_ops::{CurveId, DeviceKind, Lane, Span};

use std::path::{Path, PathBuf};

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
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    /// What it was, such as `MSM B2`.
    pub name: &'static str,
    /// Lane it ran on; `None` for work of the host.
    pub lane: Option<usize>,
    /// How long it took.
    pub seconds: f64,
}

/// Facts about a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyInfo {
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
}

/// A device that is ready to prove.
pub struct Engine {
    report: DeviceReport,
}

/// A proving key that is resident on the engine's device.
pub struct Key {
    info: KeyInfo,
    stages: Vec<Stage>,
    path: PathBuf,
}

/// The values of a circuit's wires. A secret: wiped when dropped.
pub struct Witness {
    curve: CurveId,
    values: usize,
}

/// A proof that has been verified, and how it came about.
#[derive(Debug, Clone)]
pub struct Proved {
    /// Its curve.
    pub curve: CurveId,
    /// The text of `proof.json`, as snarkjs writes it.
    pub proof_json: String,
    /// The text of `public.json`.
    pub public_json: String,
    /// Host and device times, in the order of the work.
    pub stages: Vec<Stage>,
    /// What ran when on the lanes, for a trace.
    pub spans: Vec<Span>,
    /// The device that made it, in words.
    pub device: String,
    /// Seconds from the call to the verified proof.
    pub seconds: f64,
    /// Set when the device's own proof failed and the CPU had to make it: what happened, one sentence to be shown.
    pub fallback: Option<String>,
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

const LATER: &str = "not wired yet";

impl Engine {
    /// Opens the devices of `choice`.
    ///
    /// # Errors
    /// [`Error::BadInput`] where GPUs are asked for that are not there, with the reason.
    pub fn open(_choice: &DeviceChoice) -> Result<Engine> {
        Err(Error::Device(LATER.into()))
    }

    /// What was opened.
    pub fn report(&self) -> &DeviceReport {
        &self.report
    }

    /// Opens, checks and loads a `.zkey`.
    ///
    /// # Errors
    /// [`Error::BadInput`] for a file that is no good key; [`Error::Device`] where it does not fit.
    pub fn load_key(&self, _path: &Path, _check: KeyCheck, _progress: &dyn Progress) -> Result<Key> {
        Err(Error::Device(LATER.into()))
    }

    /// Makes a key and a witness of a synthetic circuit and loads the key; no file is involved.
    ///
    /// # Errors
    /// The size is out of range or does not fit.
    pub fn synthetic_key(&self, _circuit: Synthetic, _progress: &dyn Progress) -> Result<(Key, Witness)> {
        Err(Error::Device(LATER.into()))
    }

    /// Proves, and verifies the proof. A proof that fails is made again on the CPU; if that one fails too, the
    /// witness is at fault.
    ///
    /// # Errors
    /// [`Error::BadInput`] for a witness of another circuit, or one that does not satisfy it; [`Error::Device`].
    pub fn prove(&self, _key: &Key, _witness: &Witness, _progress: &dyn Progress) -> Result<Proved> {
        Err(Error::Device(LATER.into()))
    }

    /// Seconds that each of `runs` transforms of 2^`log_n` elements took.
    ///
    /// # Errors
    /// The size is out of range or does not fit.
    pub fn bench_ntt(&self, _curve: CurveId, _log_n: u32, _runs: usize) -> Result<Vec<f64>> {
        Err(Error::Device(LATER.into()))
    }

    /// Seconds that each of `runs` sums of 2^`log_n` points in G1 (or G2) took, digits included.
    ///
    /// # Errors
    /// The size is out of range or does not fit.
    pub fn bench_msm(&self, _curve: CurveId, _g2: bool, _log_n: u32, _runs: usize) -> Result<Vec<f64>> {
        Err(Error::Device(LATER.into()))
    }
}

impl Key {
    /// Facts about it.
    pub fn info(&self) -> &KeyInfo {
        &self.info
    }

    /// How long opening, checking and loading took.
    pub fn stages(&self) -> &[Stage] {
        &self.stages
    }

    /// The file it came from; empty for a synthetic one.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Witness {
    /// Reads a `.wtns` file.
    ///
    /// # Errors
    /// [`Error::BadInput`] that names the file and the place in it.
    pub fn read(_path: &Path) -> Result<Witness> {
        Err(Error::Device(LATER.into()))
    }

    /// Takes the values as little-endian 64-bit limbs, each below the curve's scalar modulus. `values` is wiped.
    ///
    /// # Errors
    /// [`Error::BadInput`] if one is not below the modulus.
    pub fn from_values(_curve: CurveId, _values: Vec<[u64; 4]>) -> Result<Witness> {
        Err(Error::Device(LATER.into()))
    }

    /// The curve whose scalar field the values belong to.
    pub fn curve(&self) -> CurveId {
        self.curve
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.values
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values == 0
    }
}

/// Checks a proof: `Ok` if it is valid, [`Error::InvalidProof`] if not.
///
/// # Errors
/// [`Error::InvalidProof`]; [`Error::BadInput`] for files that are malformed or do not belong together.
pub fn verify(_vkey: &Path, _public: &Path, _proof: &Path) -> Result<()> {
    Err(Error::Device(LATER.into()))
}

/// The text of `verification_key.json` for a `.zkey`, as snarkjs writes it.
///
/// # Errors
/// [`Error::BadInput`] that names the file and the place in it.
pub fn export_vkey(_zkey: &Path) -> Result<String> {
    Err(Error::Device(LATER.into()))
}

/// Makes a test key for an `.r1cs` file and writes it as a `.zkey`, whole or not at all. Whoever runs this could
/// know the key's secret: such a key is not for production.
///
/// # Errors
/// [`Error::BadInput`] for a file that is no good circuit or cannot be written.
pub fn setup(_r1cs: &Path, _zkey: &Path, _options: &SetupOptions, _progress: &dyn Progress) -> Result<SetupReport> {
    Err(Error::Device(LATER.into()))
}
