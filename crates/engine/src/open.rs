//! The engine: which device, chosen once.

use crate::gpus;
use crate::key::{self, Place, Source};
use crate::team::{AnyCurve, AnyTeam, OneTeam};
use crate::{CurveId, DeviceChoice, DeviceReport, Error, Key, KeyCheck, Progress, Proved, Result, Synthetic, Witness};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Instant;
use tandem_groth16::setup::{setup, Secret};
use tandem_groth16::{synthetic, Layout, OwnedKey};
use tandem_ops::cpu::Cpu;
use tandem_ops::{Bls12_381, Bn254, DeviceKind, ProofBackend};
use zeroize::Zeroizing;

/// A device that is ready to prove.
pub struct Engine {
    team: Box<dyn AnyTeam>,
    /// The CPU, where it is not the team itself.
    cpu: Option<Arc<dyn AnyTeam>>,
    auto: bool,
    layout: Layout,
    report: DeviceReport,
    wrong_proofs: Arc<AtomicU64>,
}

impl Engine {
    /// Opens the devices of `choice`.
    ///
    /// # Errors
    /// [`Error::Device`] where GPUs are asked for that cannot be had, with the reason.
    pub fn open(choice: &DeviceChoice) -> Result<Engine> {
        let named = String::new();
        match choice {
            DeviceChoice::Cpu => Ok(Self::with(OneTeam::new(Cpu::new(1)), named, false)),
            // One pretend GPU is the CPU itself.
            DeviceChoice::Sim(lanes) => Ok(Self::with(OneTeam::new(Cpu::new(*lanes)), named, false)),
            DeviceChoice::Cuda(wanted) => {
                Ok(Self::with(OneTeam::new(gpus::open(&gpus::choose(wanted)?)?), named, false))
            }
            DeviceChoice::Auto => {
                let opened = gpus::choose_one().and_then(|choice| Ok((gpus::open(&choice)?, choice.why)));
                Ok(match opened {
                    Ok((team, why)) => Self::with(OneTeam::new(team), why, true),
                    Err(no_gpu) => Self::with(OneTeam::new(Cpu::new(1)), no_gpu.to_string(), true),
                })
            }
        }
    }

    /// An engine on a backend of the caller's: for tests of what happens when one fails.
    #[doc(hidden)]
    pub fn on_backend<B: ProofBackend<Bn254> + ProofBackend<Bls12_381>>(backend: B) -> Engine {
        Self::with(OneTeam::new(backend), String::new(), false)
    }

    fn with(team: impl AnyTeam + 'static, why: String, auto: bool) -> Self {
        let info = team.info();
        let cpu: Option<Arc<dyn AnyTeam>> = match info.kind {
            DeviceKind::Cpu => None,
            DeviceKind::Cuda | DeviceKind::Sim => Some(Arc::new(OneTeam::new(Cpu::new(1)))),
        };
        let report = DeviceReport { kind: info.kind, lanes: info.lane_names, why };
        Self { team: Box::new(team), cpu, auto, layout: Layout::Auto, report, wrong_proofs: Arc::default() }
    }

    /// Lays proofs out over the lanes as `layout` says, with the keys that are loaded from now on.
    #[must_use]
    pub fn with_layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// What was opened.
    pub fn report(&self) -> &DeviceReport {
        &self.report
    }

    /// How many proofs of this device failed their check while the CPU's were right. More than none: the device is
    /// not to be trusted.
    pub fn wrong_proofs(&self) -> u64 {
        self.wrong_proofs.load(Ordering::Relaxed)
    }

    fn place(&self) -> Place<'_> {
        Place {
            team: &*self.team,
            cpu: self.cpu.clone(),
            auto: self.auto,
            layout: self.layout,
            wrong_proofs: self.wrong_proofs.clone(),
        }
    }

    /// Opens, checks and loads a `.zkey`.
    ///
    /// # Errors
    /// [`Error::BadInput`] for a file that is no good key; [`Error::Device`] where it does not fit.
    pub fn load_key(&self, path: &Path, check: KeyCheck, progress: &dyn Progress) -> Result<Key> {
        key::open(&self.place(), path, check, progress)
    }

    /// Makes a key and a witness of a synthetic circuit and loads the key; no file is involved.
    ///
    /// # Errors
    /// The size is out of range or does not fit.
    pub fn synthetic_key(&self, circuit: Synthetic, progress: &dyn Progress) -> Result<(Key, Witness)> {
        let circuit_of = circuit.circuit()?;
        match circuit.curve {
            CurveId::Bn254 => self.synthetic::<Bn254>(circuit_of, progress),
            CurveId::Bls12_381 => self.synthetic::<Bls12_381>(circuit_of, progress),
        }
    }

    fn synthetic<C: AnyCurve>(&self, circuit: synthetic::Synthetic, progress: &dyn Progress) -> Result<(Key, Witness)> {
        let error = |e| Error::prover(e, Path::new(""));
        let started = Instant::now();
        let mut made = OwnedKey::<C>::default();
        setup(&circuit, &Secret::from_seed([0; 32]), &mut made, progress).map_err(error)?;
        let setup_stage = key::stage("make key", started);
        let started = Instant::now();
        let values = Zeroizing::new(circuit.witness::<C>(0).map_err(error)?);
        let witness = Witness::from_canonical(C::ID, values, started)?;
        let source = Source::Memory(Box::new(made));
        let mut key = key::load::<C>(&self.place(), source, Path::new(""), None, progress)?;
        key.stages.insert(0, setup_stage);
        Ok((key, witness))
    }

    /// Proves, and verifies the proof. A proof that fails is made again on the CPU; if that one fails too, the
    /// witness is at fault.
    ///
    /// # Errors
    /// [`Error::BadInput`] for a witness of another circuit, or one that does not satisfy it; [`Error::Device`].
    pub fn prove(&self, key: &Key, witness: &Witness, progress: &dyn Progress) -> Result<Proved> {
        progress.start("prove", 0);
        key.inner.prove(witness)
    }

    /// Seconds that each of `runs` forward transforms of 2^`log_n` elements took on the first lane.
    ///
    /// # Errors
    /// The size is out of range or does not fit.
    pub fn bench_ntt(&self, curve: CurveId, log_n: u32, runs: usize) -> Result<Vec<f64>> {
        match curve {
            CurveId::Bn254 => Bn254::team(&*self.team).bench_ntt(log_n, runs),
            CurveId::Bls12_381 => Bls12_381::team(&*self.team).bench_ntt(log_n, runs),
        }
    }

    /// Seconds that each of `runs` sums of 2^`log_n` points in G1 (or G2) took on the first lane, digits included.
    ///
    /// # Errors
    /// The size is out of range or does not fit.
    pub fn bench_msm(&self, curve: CurveId, g2: bool, log_n: u32, runs: usize) -> Result<Vec<f64>> {
        match curve {
            CurveId::Bn254 => Bn254::team(&*self.team).bench_msm(g2, log_n, runs),
            CurveId::Bls12_381 => Bls12_381::team(&*self.team).bench_msm(g2, log_n, runs),
        }
    }
}
