//! The engine: which device, chosen once.

use crate::assignment::Densities;
use crate::each::ReplicatedProver;
use crate::gpus;
use crate::key::{self, KeyLoader};
use crate::recover::PATIENCE;
use crate::resident::StagedFor;
use crate::synthetic::SyntheticKey;
use crate::team::{DynProver, SingleProver};
use crate::witness::StagedWitness;
use crate::{DeviceChoice, DeviceReport, Error, Key, KeyCheck, KeyInfo, Progress, Proved, Result, Witness};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tandem_groth16::Layout;
use tandem_ops::cpu::Cpu;
use tandem_ops::{threads, Bls12_381, Bn254, DeviceKind, ProofBackend};
use tandem_ops_cuda::Cuda;

/// How several GPUs share the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schedule {
    /// All of them on one proof.
    Together(Layout),
    /// Each on proofs of its own: the most proofs a second for callers with several at a time.
    Each,
}

impl Default for Schedule {
    fn default() -> Self {
        Schedule::Together(Layout::Auto)
    }
}

impl Schedule {
    /// Those that make a team.
    fn groups<T>(self, devices: Vec<T>) -> Vec<Vec<T>> {
        match self {
            Schedule::Together(_) => vec![devices],
            Schedule::Each => devices.into_iter().map(|device| vec![device]).collect(),
        }
    }
}

/// A backend that shares the host with others like it, `teams` in all.
fn team<B, F>(teams: usize, open: F) -> Result<Arc<dyn DynProver>>
where
    B: ProofBackend<Bn254> + ProofBackend<Bls12_381>,
    F: Fn() -> tandem_ops::Result<B> + Send + Sync + 'static,
{
    let all = threads::count();
    let threads = all.div_ceil(teams.max(1)).max(LEAST_THREADS).min(all);
    Ok(Arc::new(SingleProver::new(threads, open)?))
}

/// Threads of a team at least, as far as there are so many: it waits for sums on two of them, and verifies meanwhile.
const LEAST_THREADS: usize = 4;

fn one_of(mut teams: Vec<Arc<dyn DynProver>>) -> Arc<dyn DynProver> {
    match teams.len() {
        1 => teams.remove(0),
        _ => Arc::new(ReplicatedProver::new(teams)),
    }
}

/// Proofs that a key is taken to make where nobody says: enough for tables of multiples, too few for the largest of them, which
/// take as long to make as hundreds of proofs.
const PROOFS: u64 = 100;

/// A device that is ready to prove.
pub struct Engine {
    pub(crate) team: Arc<dyn DynProver>,
    /// The CPU, where it is not the team itself.
    cpu: Option<Arc<dyn DynProver>>,
    auto: bool,
    layout: Layout,
    at_once: usize,
    proofs: u64,
    is_for_one: bool,
    patience: Duration,
    report: DeviceReport,
    wrong_proofs: Arc<AtomicU64>,
    pub(crate) densities: Densities,
    /// Whether keys that do not fit are left where they are.
    points_wait: bool,
}

impl Engine {
    /// Opens the devices of `choice` for one proof at a time over all of them.
    ///
    /// # Errors
    /// [`Error::Device`] where GPUs are asked for that cannot be had, with the reason.
    pub fn open(choice: &DeviceChoice) -> Result<Engine> {
        Self::open_as(choice, Schedule::default())
    }

    /// Opens the devices of `choice`, used as `schedule` says.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub fn open_as(choice: &DeviceChoice, schedule: Schedule) -> Result<Engine> {
        Self::open_within(choice, schedule, None)
    }

    /// As [`Engine::open_as`], taking no more than `gpu_memory` bytes of each GPU beside what the runtime takes. What of a key of bellperson, of
    /// PLONK or of FFLONK does not fit is brought to the GPU by each proof, in pieces. Pretend GPUs plan as if they had so much.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub fn open_within(choice: &DeviceChoice, schedule: Schedule, gpu_memory: Option<u64>) -> Result<Engine> {
        let gpus = |wanted: &[u32]| {
            let gpus::Choice { devices, why } = gpus::choose(wanted)?;
            let groups = schedule.groups(devices);
            let count = groups.len();
            let teams = groups.into_iter().map(|group| team(count, move || Cuda::within(&group, gpu_memory)));
            Ok::<_, Error>((one_of(teams.collect::<Result<_>>()?), why))
        };
        let cpu = || team(1, || Ok(Cpu::new(1)));
        let (team, why, auto) = match choice {
            DeviceChoice::Cpu => (cpu()?, String::new(), false),
            // One pretend GPU is the CPU itself.
            DeviceChoice::Sim(lanes) => {
                let lanes: Vec<usize> = schedule.groups((0..*lanes).collect()).iter().map(Vec::len).collect();
                let count = lanes.len();
                let teams = lanes
                    .into_iter()
                    .map(|n| team(count, move || Ok(Cpu::with_memory(n, gpu_memory.unwrap_or(u64::MAX)))));
                (one_of(teams.collect::<Result<_>>()?), String::new(), false)
            }
            DeviceChoice::Cuda(wanted) => {
                let (team, _) = gpus(wanted)?;
                (team, String::new(), false)
            }
            // How many of them a proof uses is decided for each key (`Layout::Auto`).
            DeviceChoice::Auto => match gpus(&[]) {
                Ok((team, why)) => (team, why, true),
                Err(no_gpu) => (cpu()?, no_gpu.to_string(), true),
            },
        };
        let layout = match schedule {
            Schedule::Together(layout) => layout,
            Schedule::Each => Layout::Auto,
        };
        let mut engine = Self::with(team, why, auto, layout)?;
        let has = engine.report.lanes.len();
        if let Some(wanted) = layout.lanes().filter(|&wanted| wanted != has) {
            return Err(Error::input(format!(
                "this schedule is for {wanted} GPUs and the device {choice} is {has}: name {wanted}, as --device cuda:0,1 or sim:2 do"
            )));
        }
        // One proof after the other, a CPU would read them again and again from where there is room for them.
        engine.points_wait = match engine.report.kind {
            DeviceKind::Cpu => false,
            DeviceKind::Sim => gpu_memory.is_some(),
            DeviceKind::Cuda => true,
        };
        if schedule == Schedule::Each {
            engine.at_once = engine.report.lanes.len();
        }
        Ok(engine)
    }

    /// An engine on a backend of the caller's, which is opened once: for tests of what happens when one fails. With `auto` the CPU may take
    /// over.
    #[doc(hidden)]
    pub fn on_backend<B: ProofBackend<Bn254> + ProofBackend<Bls12_381>>(backend: B, auto: bool) -> Result<Engine> {
        let once = Mutex::new(Some(backend));
        let take = move || once.lock().unwrap_or_else(PoisonError::into_inner).take();
        Self::on_backends(
            move || take().ok_or_else(|| tandem_ops::Error::invalid("open", "this backend is opened once")),
            auto,
        )
    }

    /// An engine on backends that `open` gives, one after the other as they fail.
    #[doc(hidden)]
    pub fn on_backends<B, F>(open: F, auto: bool) -> Result<Engine>
    where
        B: ProofBackend<Bn254> + ProofBackend<Bls12_381>,
        F: Fn() -> tandem_ops::Result<B> + Send + Sync + 'static,
    {
        Self::with(team(1, open)?, String::new(), auto, Layout::Auto)
    }

    fn with(team: Arc<dyn DynProver>, why: String, auto: bool, layout: Layout) -> Result<Self> {
        threads::ready()?;
        let info = team.info();
        let cpu: Option<Arc<dyn DynProver>> = match info.kind {
            DeviceKind::Cpu => None,
            DeviceKind::Cuda | DeviceKind::Sim => Some(self::team(1, || Ok(Cpu::new(1)))?),
        };
        let report = DeviceReport { kind: info.kind, lanes: info.lane_names, why };
        let (proofs, patience, wrong_proofs, densities) = (PROOFS, PATIENCE, Arc::default(), Densities::default());
        let (at_once, is_for_one) = (1, false);
        Ok(Self {
            team,
            cpu,
            auto,
            layout,
            at_once,
            proofs,
            is_for_one,
            patience,
            report,
            wrong_proofs,
            densities,
            points_wait: false,
        })
    }

    /// This engine, for keys that make so many proofs each: the more, the larger the tables of multiples it makes of a key's
    /// points, up to nearly all of the devices' memory. Without this it takes them to make a hundred.
    #[must_use]
    pub fn for_proofs(self, proofs: u64) -> Engine {
        Engine { proofs, ..self }
    }

    /// This engine, for keys that make one proof and no more: a Groth16 key on the CPU leaves its points in the file, and each sum of the
    /// proof reads its own. The file has to be there until then.
    #[must_use]
    pub fn for_one_proof(self) -> Engine {
        Engine { proofs: 1, is_for_one: true, ..self }
    }

    /// This engine, for keys that wait so long for GPU memory that other processes hold, when they are loaded and in each proof. Without
    /// this, four seconds.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Engine {
        Engine { patience, ..self }
    }

    /// What was opened.
    pub fn report(&self) -> &DeviceReport {
        &self.report
    }

    /// How many proofs it makes at a time: one, or with [`Schedule::Each`] one on each device.
    pub fn proofs_at_once(&self) -> usize {
        self.at_once
    }

    /// How many proofs of this device failed their check while the CPU's were right. More than none: the device is
    /// not to be trusted.
    pub fn wrong_proofs(&self) -> u64 {
        self.wrong_proofs.load(Ordering::Relaxed)
    }

    pub(crate) fn loader(&self) -> KeyLoader {
        KeyLoader {
            team: self.team.clone(),
            cpu: self.cpu.clone(),
            auto: self.auto,
            layout: self.layout,
            proofs: self.proofs,
            points_wait: self.is_for_one || self.points_wait,
            patience: self.patience,
            wrong_proofs: self.wrong_proofs.clone(),
        }
    }

    /// Opens, checks and loads a `.zkey`.
    ///
    /// # Errors
    /// [`Error::BadInput`] for a file that is no good key; [`Error::OutOfMemory`] where it does not fit; [`Error::Device`].
    pub fn load_key(&self, path: &Path, check: KeyCheck, progress: &dyn Progress) -> Result<Key> {
        key::open(path, check, progress, false, || Ok(self.loader()))
    }

    /// Opens, checks and loads a key from the bytes of a `.zkey`. They are kept as long as the key, which is loaded from them again where the device failed.
    ///
    /// # Errors
    /// [`Error::BadInput`] for what is no good key; [`Error::OutOfMemory`] where it does not fit; [`Error::Device`].
    pub fn load_key_bytes(&self, bytes: impl Into<Arc<[u8]>>, check: KeyCheck, progress: &dyn Progress) -> Result<Key> {
        key::open_bytes(self.loader(), bytes.into(), check, progress)
    }

    /// Reads a `.wtns` file into memory that the devices copy from at full rate. It is kept for the next witness: to make the
    /// first one takes longer than a proof gains by it.
    ///
    /// # Errors
    /// [`Error::BadInput`] that names the file and the place in it.
    pub fn read_witness(&self, path: &Path) -> Result<Witness> {
        Witness::read_in(path, None, |count| self.team.host_buf(count).ok())
    }

    /// Reads a `.wtns` file for a key ([`Engine::read_witness`]): a witness of another curve or with another number of values is refused before its values are read.
    ///
    /// # Errors
    /// As for [`Engine::read_witness`]; [`Error::BadInput`] for a witness of another circuit.
    pub fn read_witness_for(&self, path: &Path, key: &Key) -> Result<Witness> {
        Witness::read_in(path, Some(key.info()), |count| self.team.host_buf(count).ok())
    }

    /// Reads what a `.wtns` file holds from front to back for a key of which this is known ([`Engine::read_witness_for`]): the header comes
    /// before the values, as all tools write them. `name` stands for it in messages. The key need not be loaded.
    ///
    /// # Errors
    /// As for [`Engine::read_witness_for`].
    pub fn read_witness_from(&self, from: impl std::io::Read, name: &Path, key: &KeyInfo) -> Result<Witness> {
        Witness::read_from(from, name, key, |count| self.team.host_buf(count).ok())
    }

    /// Loads a key that was made up and not read from a file, and takes a witness of it.
    ///
    /// # Errors
    /// It does not fit.
    pub fn load_synthetic(&self, made: &SyntheticKey, progress: &dyn Progress) -> Result<(Key, Witness)> {
        let values = made.witness();
        let mut held = self.team.host_buf(values.len()).map_err(|e| Error::prover(e.into(), Path::new("")))?;
        held.copy_from_slice(values);
        let witness = Witness::from_canonical(made.curve(), held, Instant::now())?;
        Ok((made.load(&self.loader(), progress)?, witness))
    }

    /// Proves, and verifies the proof. It may be called from any thread, of a pool too, and from many at once. A device that has too
    /// little memory is waited for and then asked for less, one that fails is opened again; what that comes to is in
    /// [`Proved::remark`]. A proof that fails is made again on the CPU; if that one fails too, the
    /// witness is at fault.
    ///
    /// # Errors
    /// [`Error::BadInput`] for a witness of another circuit; [`Error::Unsatisfied`] for one that does not satisfy it;
    /// [`Error::Device`] and [`Error::OutOfMemory`] where nothing of the above helps;
    /// [`Error::Interrupted`] within one primitive of [`Progress::cancelled`] saying so. The key and the device serve the next proof.
    pub fn prove(&self, key: &Key, witness: &Witness, progress: &dyn Progress) -> Result<Proved> {
        self.prove_with(key, witness, None, progress)
    }

    fn prove_with(
        &self,
        key: &Key,
        witness: &Witness,
        staged: Option<StagedFor>,
        progress: &dyn Progress,
    ) -> Result<Proved> {
        progress.start("prove", 0);
        match key.inner.prove(witness, staged, progress) {
            // As where a key is loaded: it is read as if it were new.
            Err(_) if key.differs.load(Ordering::Relaxed) => {
                let key = key::open_again(key, progress, &self.loader())?;
                progress.start("prove", 0);
                key.inner.prove(witness, None, progress)
            }
            done => done,
        }
    }

    /// Uploads a witness for a proof with `key` that comes later. It may be called while another proof is under way, which it does
    /// not wait for: the next one then finds its witness on the device. Where the device has no room for it, or fails, nothing is
    /// lost: the proof uploads the witness itself.
    ///
    /// # Errors
    /// [`Error::BadInput`] for a witness of another circuit; [`Error::Interrupted`].
    pub fn stage(&self, key: &Key, witness: Witness, progress: &dyn Progress) -> Result<StagedWitness> {
        let staged = key.inner.stage(&witness, progress)?;
        Ok(StagedWitness { witness, staged })
    }

    /// As [`Engine::prove`], with a witness from [`Engine::stage`]. One that was staged for another key is uploaded anew.
    ///
    /// # Errors
    /// As [`Engine::prove`].
    pub fn prove_staged(&self, key: &Key, witness: StagedWitness, progress: &dyn Progress) -> Result<Proved> {
        let StagedWitness { witness, staged } = witness;
        self.prove_with(key, &witness, staged, progress)
    }

    /// The backend, or with [`Schedule::Each`] the first of them, if it is a `B`: to measure what it does.
    pub fn backend<B: Send + Sync + 'static>(&self) -> Option<Arc<B>> {
        self.team.backend().downcast().ok()
    }
}
