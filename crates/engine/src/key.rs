//! Keys: opened, checked, loaded, and proved with.

use crate::blocks::Blocks;
use crate::cache::Content;
use crate::owner::once;
use crate::resident::{Call, OnDevice, StagedFor};
use crate::source::{Held, Made, Source, UNNAMED};
use crate::system::{Fflonk, Groth16, Plonk, Powers, Sizes, System};
use crate::team::{AnyCurve, DynProver, Order, Resident};
use crate::{Error, Fallback, KeyCheck, KeyInfo, Progress, Proved, Publics, Result, Stage, Witness};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::Builder;
use std::time::{Duration, Instant};
use tandem_formats::{
    plonk, zkey, FflonkFile, FflonkHeader, FileKind, FormatError, ParamsFile, ParamsOutline, PlonkFile, PlonkHeader,
    Protocol, RegularFile, ZkeyFile, ZkeyOutline,
};
use tandem_groth16::digits::ProofDigits;
use tandem_groth16::{Layout, Refusal, Witness as Values};
use tandem_ops::timeline::waited_us;
use tandem_ops::{with_curve, Bls12_381, Bn254, Curve, CurveId, Info, Span};

/// A proving key that is resident on the engine's device.
pub struct Key {
    pub(crate) info: KeyInfo,
    pub(crate) stages: Vec<Stage>,
    pub(crate) note: Option<String>,
    pub(crate) path: PathBuf,
    /// Of a key that was opened by what is remembered of its file: whether the file turned out to be another.
    pub(crate) differs: Arc<AtomicBool>,
    pub(crate) inner: Box<dyn AnyKey>,
}

/// Where an engine's keys are loaded, and what they may fall back to.
#[derive(Clone)]
pub(crate) struct KeyLoader {
    pub(crate) team: Arc<dyn DynProver>,
    /// The CPU, where it is not the team itself.
    pub(crate) cpu: Option<Arc<dyn DynProver>>,
    /// Whether the user left the choice of device to the engine, so that the CPU may take over.
    pub(crate) auto: bool,
    pub(crate) layout: Layout,
    /// Proofs that a key is expected to make.
    pub(crate) proofs: u64,
    /// Whether points may be left where they are until a sum takes them: where the CPU makes one proof and no more, or GPUs have little memory.
    pub(crate) points_wait: bool,
    /// How long memory that others hold is waited for.
    pub(crate) patience: Duration,
    pub(crate) wrong_proofs: Arc<AtomicU64>,
}

/// A key of some curve.
pub(crate) trait AnyKey: Send + Sync {
    fn stage(&self, witness: &Witness, progress: &dyn Progress) -> Result<Option<StagedFor>>;
    fn prove(&self, witness: &Witness, staged: Option<StagedFor>, progress: &dyn Progress) -> Result<Proved>;
    fn digits(&self, witness: &Witness) -> Result<ProofDigits>;
    fn plan(&self) -> Option<String>;
    /// Of a key from a file, what the file held.
    fn content(&self) -> Option<Content>;
}

/// A key of one proof system over one curve.
struct CurveKey<C: Curve, S: System<C>> {
    source: Source<C>,
    path: PathBuf,
    verifier: S::Verifier,
    publics: usize,
    on_device: OnDevice<C, S>,
    cpu: Option<Arc<dyn DynProver>>,
    on_cpu: OnceLock<Box<dyn Resident<C, S>>>,
    auto: bool,
    wrong_proofs: Arc<AtomicU64>,
}

/// One stage of the host, from `started` to now.
pub(crate) fn stage(name: &'static str, started: Instant) -> Stage {
    Stage { name, begun: Some(started), seconds: started.elapsed().as_secs_f64(), ..Stage::default() }
}

/// A key that is asked for.
pub(crate) struct Asked<'a> {
    pub(crate) path: &'a Path,
    pub(crate) check: KeyCheck,
    pub(crate) progress: &'a dyn Progress,
    pub(crate) started: Instant,
    /// Whether the device is being opened meanwhile, so that there is time until it is there.
    pub(crate) has_time: bool,
}

/// Opens a key file, checks its points and loads it to where `loader` then says. With `has_time` this is some time after it is asked.
pub(crate) fn open(
    path: &Path,
    check: KeyCheck,
    progress: &dyn Progress,
    has_time: bool,
    loader: impl Fn() -> Result<KeyLoader>,
) -> Result<Key> {
    tandem_ops::threads::ready()?;
    let asked = Asked { path, check, progress, started: Instant::now(), has_time };
    progress.start("open key", 0);
    let (form, curve, file) = look(path)?;
    if let Some(known) = Blocks::recalled(&file).filter(|_| check == KeyCheck::Once) {
        let blocks = known.of(file).map(Arc::new).ok_or_else(|| Error::Internal("a file has two lengths".into()))?;
        let differs = blocks.differs();
        match open_held(form, curve, Held::Blocks(blocks), &asked, &loader) {
            // Another file than the one that is remembered, whatever it looked like: it is read as if it were new.
            Err(_) if differs.load(Ordering::Relaxed) => progress.start("open key", 0),
            done => return done.map(|key| Key { differs, ..key }),
        }
        return open_new(look(path)?, &asked, &loader);
    }
    open_new((form, curve, file), &asked, &loader)
}

/// Opens once more the file of a key that turned out to be another than the one that is remembered.
pub(crate) fn open_again(key: &Key, progress: &dyn Progress, loader: &KeyLoader) -> Result<Key> {
    let asked = Asked { path: &key.path, check: KeyCheck::Once, progress, started: Instant::now(), has_time: false };
    progress.start("open key", 0);
    open_new(look(&key.path)?, &asked, &|| Ok(loader.clone()))
}

/// Opens a key file of which nothing is known but whether its content has been checked.
fn open_new(
    (form, curve, file): (Form, CurveId, RegularFile),
    asked: &Asked<'_>,
    loader: &dyn Fn() -> Result<KeyLoader>,
) -> Result<Key> {
    // Whoever checks the points and loads them has them at hand.
    let keep = if asked.has_time { points(form, curve, &file) } else { Vec::new() };
    let held = Held::of(file, &keep, || asked.progress.cancelled())?;
    open_held(form, curve, held, asked, loader)
}

/// [`open_on`] of the curve and the proof system that the key is for.
fn open_held(
    form: Form,
    curve: CurveId,
    held: Held,
    asked: &Asked<'_>,
    loader: &dyn Fn() -> Result<KeyLoader>,
) -> Result<Key> {
    match form {
        Form::Params => open_on::<Bls12_381, Powers>(held, asked, loader),
        Form::Zkey(Protocol::Fflonk) => open_on::<Bn254, Fflonk>(held, asked, loader),
        Form::Zkey(Protocol::Plonk) => with_curve!(curve, C => open_on::<C, Plonk>(held, asked, loader)),
        Form::Zkey(Protocol::Groth16) => with_curve!(curve, C => open_on::<C, Groth16>(held, asked, loader)),
    }
}

/// Opens, checks and loads a `.zkey`, as [`crate::Engine::load_key`]. The engine is asked for when the key has been read, so that the
/// device may be opened meanwhile, and again where the file turns out to be another than the one that is remembered. Where that takes time, as
/// with GPUs (`has_time`), points are read ahead until `engine` returns.
///
/// # Errors
/// As [`crate::Engine::load_key`]; those of `engine`.
pub fn load_key_on<'e>(
    path: &Path,
    check: KeyCheck,
    progress: &dyn Progress,
    has_time: bool,
    engine: impl Fn() -> Result<&'e crate::Engine>,
) -> Result<Key> {
    open(path, check, progress, has_time, || engine().map(crate::Engine::loader))
}

/// What form a key has in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// snarkjs's, for a protocol.
    Zkey(Protocol),
    /// bellperson's, for Groth16 over BLS12-381.
    Params,
}

impl Form {
    /// The proof system.
    pub(crate) fn protocol(self) -> Protocol {
        match self {
            Form::Zkey(protocol) => protocol,
            Form::Params => Protocol::Groth16,
        }
    }

    /// By the first bytes of a file. What is neither is refused as a `.zkey`.
    fn begins(start: &[u8]) -> Option<Form> {
        (FileKind::of(start) == Some(FileKind::Params)).then_some(Form::Params)
    }

    /// That of a file.
    pub(crate) fn of_file(path: &Path) -> Result<Form> {
        let file = RegularFile::open(path)?;
        let mut start = vec![0; START_BYTES.min(usize::try_from(file.len()).unwrap_or(START_BYTES))];
        file.read_at(&mut start, 0)?;
        match Form::begins(&start) {
            Some(form) => Ok(form),
            None => Ok(Form::Zkey(Protocol::of_file(path)?)),
        }
    }
}

/// Where a file has its sections of points, by its header; nothing of a key whose points are not worth to be kept, or that is none.
fn points(form: Form, curve: CurveId, file: &RegularFile) -> Vec<Range<usize>> {
    let Form::Zkey(Protocol::Groth16) = form else { return Vec::new() };
    with_curve!(curve, C => {
        ZkeyOutline::<C>::read(file).map_or_else(|_| Vec::new(), |key| vec![key.h, key.b2, key.a, key.b1, key.c])
    })
}

/// Bytes that tell what a key file is.
const START_BYTES: usize = 4096;

/// What a key file is: by its header, before more of it is read.
pub(crate) fn look(path: &Path) -> Result<(Form, CurveId, RegularFile)> {
    let form = Form::of_file(path)?;
    let (curve, file) = match form {
        Form::Params => (CurveId::Bls12_381, ParamsFile::open(path)?.into_file()),
        Form::Zkey(Protocol::Groth16) => {
            let file = ZkeyFile::open(path)?;
            (file.curve, file.into_file())
        }
        Form::Zkey(Protocol::Plonk) => {
            let file = PlonkFile::open(path)?;
            (file.curve, file.into_file())
        }
        Form::Zkey(Protocol::Fflonk) => {
            let file = FflonkFile::open(path)?;
            (CurveId::Bn254, file.into_file())
        }
    };
    Ok((form, curve, file))
}

/// What the bytes of a key are.
pub(crate) fn kind(bytes: &[u8]) -> std::result::Result<(Form, CurveId), FormatError> {
    if let Some(form) = Form::begins(&bytes[..bytes.len().min(START_BYTES)]) {
        ParamsOutline::read(&bytes)?;
        return Ok((form, CurveId::Bls12_381));
    }
    let protocol = Protocol::of(bytes)?;
    let curve = match protocol {
        Protocol::Groth16 => zkey::curve(bytes)?,
        Protocol::Plonk => plonk::curve(bytes)?,
        Protocol::Fflonk => FflonkHeader::parse(bytes).map(|_| CurveId::Bn254)?,
    };
    Ok((Form::Zkey(protocol), curve))
}

/// Bytes of device memory that the key in these bytes takes, as [`KeyInfo::device_bytes`] counts them.
pub(crate) fn device_bytes(bytes: &[u8]) -> std::result::Result<u64, FormatError> {
    let (form, curve) = kind(bytes)?;
    Ok(match form.protocol() {
        Protocol::Groth16 => bytes.len() as u64,
        Protocol::Plonk => with_curve!(curve, C => {
            tandem_plonk::device_bytes::<C>(PlonkHeader::<C>::parse(bytes)?.domain_size as usize)
        }),
        Protocol::Fflonk => tandem_plonk::fflonk::device_bytes(FflonkHeader::parse(bytes)?.domain_size as usize),
    })
}

/// Opens a key from the bytes of its file.
pub(crate) fn open_bytes(loader: KeyLoader, bytes: Arc<[u8]>, check: KeyCheck, progress: &dyn Progress) -> Result<Key> {
    tandem_ops::threads::ready()?;
    let asked = Asked { path: Path::new(UNNAMED), check, progress, started: Instant::now(), has_time: false };
    progress.start("open key", 0);
    let (form, curve) = kind(&bytes).map_err(|e| e.in_file(asked.path))?;
    open_held(form, curve, Held::Given(bytes), &asked, &|| Ok(loader.clone()))
}

fn open_on<C: AnyCurve, S: System<C>>(
    held: Held,
    asked: &Asked<'_>,
    loader: &dyn Fn() -> Result<KeyLoader>,
) -> Result<Key> {
    let &Asked { path, progress, started, .. } = asked;
    let mut stages = Vec::new();
    let (loaded, loader) = S::with_view(held.bytes(), path, |view| {
        stages.push(stage("open key", started));
        let Checked { loader, stage, .. } = checked::<C, S>(&held, view, asked, loader)?;
        stages.push(stage);
        Ok((Loaded::<C, S>::of(&loader, view, path, progress)?, loader))
    })?;
    let (source, file_bytes) = (held.source(path), held.bytes().len() as u64);
    // To give back the memory of what was read ahead takes the system a while, and nobody waits for it.
    _ = Builder::new().name("drop key".into()).spawn(move || drop(held));
    stages.push(loaded.stage.clone());
    loaded.key(&loader, source, stages, file_bytes)
}

/// A key whose points are good, and what checked them.
pub(crate) struct Checked {
    loader: KeyLoader,
    pub(crate) content: Content,
    /// Whether they were checked now.
    pub(crate) is_new: bool,
    pub(crate) stage: Stage,
}

/// The loader. Until its device is there, points are read ahead.
fn awaited(
    held: &Held,
    sections: &[Range<usize>],
    asked: &Asked<'_>,
    loader: &dyn Fn() -> Result<KeyLoader>,
) -> Result<KeyLoader> {
    let (Held::Blocks(blocks), true) = (held, asked.has_time) else { return loader() };
    let is_there = AtomicBool::new(false);
    let is_enough = || is_there.load(Ordering::Relaxed) || asked.progress.cancelled();
    std::thread::scope(|scope| {
        // Where no thread can be started, they are read when they are needed.
        _ = Builder::new().name("read ahead".into()).spawn_scoped(scope, || blocks.read_ahead(sections, is_enough));
        let loader = loader();
        is_there.store(true, Ordering::Relaxed);
        loader
    })
}

/// Checks the points of a key unless they are known to be good, and remembers that they are.
pub(crate) fn checked<C: AnyCurve, S: System<C>>(
    held: &Held,
    view: &S::View<'_>,
    asked: &Asked<'_>,
    loader: &dyn Fn() -> Result<KeyLoader>,
) -> Result<Checked> {
    let started = Instant::now();
    asked.progress.start("hash key", 0);
    let content = held.bytes().content();
    let is_new = asked.check == KeyCheck::Always || !content.is_known();
    let hashed = stage("check key", started);
    // Points are checked on the device: where it is still being opened, this waits for it, and the stage does not count that.
    let loader = awaited(held, &S::sections(view), asked, loader)?;
    let started = Instant::now();
    if is_new {
        S::check(C::team(&*loader.team), view, asked.progress).map_err(|e| Error::prover(e, asked.path))?;
        content.remember();
    }
    if let Held::Blocks(blocks) = held {
        blocks.remember();
        // Sums of other systems take the same points again and again.
        if loader.points_wait && S::PROTOCOL == Protocol::Groth16 {
            blocks.let_wait();
        }
    }
    let stage = Stage { seconds: hashed.seconds + started.elapsed().as_secs_f64(), ..hashed };
    Ok(Checked { loader, content, is_new, stage })
}

/// Loads a key that was just made.
pub(crate) fn load_made<C: AnyCurve, S: System<C>>(
    loader: &KeyLoader,
    made: Made<C>,
    progress: &dyn Progress,
) -> Result<Key> {
    let source = Source::Memory(made);
    let loaded = source.with::<S, _>(|view| Loaded::<C, S>::of(loader, view, Path::new(""), progress))?;
    let stages = vec![loaded.stage.clone()];
    loaded.key(loader, source, stages, 0)
}

/// A key on a device.
struct Loaded<C: Curve, S: System<C>> {
    on_device: OnDevice<C, S>,
    note: Option<String>,
    verifier: S::Verifier,
    sizes: Sizes,
    stage: Stage,
}

impl<C: AnyCurve, S: System<C>> Loaded<C, S> {
    fn of(loader: &KeyLoader, view: &S::View<'_>, path: &Path, progress: &dyn Progress) -> Result<Self> {
        let prover_error = |e| Error::prover(e, path);
        let verifier = S::verifier(view).map_err(prover_error)?;
        progress.start("load key", 0);
        let started = Instant::now();
        let (on_device, note) = OnDevice::load(loader, view, path, progress)?;
        Ok(Self { on_device, note, verifier, sizes: S::sizes(view), stage: stage("load key", started) })
    }

    fn key(self, loader: &KeyLoader, source: Source<C>, stages: Vec<Stage>, file_bytes: u64) -> Result<Key> {
        let Sizes { variables, publics, domain } = self.sizes;
        let path = match &source {
            Source::File { path, .. } => path.clone(),
            Source::Bytes(_) => PathBuf::from(UNNAMED),
            Source::Memory(_) => PathBuf::new(),
        };
        let inner = CurveKey::<C, S> {
            source,
            path: path.clone(),
            verifier: self.verifier,
            publics,
            cpu: loader.cpu.clone(),
            on_device: self.on_device,
            on_cpu: OnceLock::new(),
            auto: loader.auto,
            wrong_proofs: loader.wrong_proofs.clone(),
        };
        if inner.on_device.is_away() {
            // What is wrong with the key is said here, and not with the first proof.
            inner.on_cpu()?;
        }
        let (protocol, curve, has_circuit) = (S::PROTOCOL, C::ID, S::HAS_CIRCUIT);
        let info = KeyInfo { protocol, curve, variables, publics, domain, file_bytes, has_circuit };
        Ok(Key { info, stages, note: self.note, path, differs: Arc::default(), inner: Box::new(inner) })
    }
}

/// A proof that was made, and what became of it.
pub(crate) struct Attempt<C: Curve, S: System<C>> {
    /// When its verdict was known.
    ended: Instant,
    proof: S::Points,
    pub(crate) verdict: std::result::Result<(), Refusal>,
    stages: Vec<Stage>,
    spans: Vec<Span>,
}

impl<C: AnyCurve, S: System<C>> CurveKey<C, S> {
    /// The witness as one of the key's curve.
    fn values<'a>(&self, witness: &'a Witness) -> Result<&'a Values<C>> {
        let values = C::values(&witness.values).ok_or_else(|| {
            let (name, has, key) = (witness.name(), witness.curve(), C::ID);
            Error::input(format!("{name}: a witness for {has}; the key is for {key}"))
        })?;
        if !S::HAS_CIRCUIT && values.evaluations().is_none() {
            let key = self.path.display();
            let remedy = "name the circuit that it was made of, too (tandem prove --r1cs, tandem submit --r1cs)";
            return Err(Error::input(format!("{key}: the key has no matrices: {remedy}")));
        }
        Ok(values)
    }

    /// The key on the CPU, loaded when it is first asked for; `None` where the CPU is the device.
    fn on_cpu(&self) -> Result<Option<&dyn Resident<C, S>>> {
        let Some(cpu) = &self.cpu else { return Ok(None) };
        // On its own threads and in its turn: no two threads load it, and none waits for another's proof meanwhile.
        let load = || {
            self.source.with::<S, _>(|view| {
                S::load(C::team(&**cpu), view, Layout::Auto, 1).map_err(|e| Error::prover(e, &self.path))
            })
        };
        once(&self.on_cpu, |work| cpu.run(work), load).map(|loaded| Some(&**loaded))
    }

    /// A proof of another device than the first attempt's.
    fn again(
        &self,
        resident: &dyn Resident<C, S>,
        witness: &Values<C>,
        progress: &dyn Progress,
    ) -> tandem_groth16::Result<Attempt<C, S>> {
        let (verifier, blinding) = (&self.verifier, &S::blinding(witness)?);
        Attempt::of(resident, Order { verifier, witness, uploaded: None, blinding, progress })
    }

    /// What to do about a first attempt that came to nothing: the report of it, or the error to end with.
    fn report(&self, first: &std::result::Result<Attempt<C, S>, tandem_ops::Error>) -> Result<Option<Fallback>> {
        let device = &self.on_device.name;
        let again = if self.cpu.is_none() { "made again" } else { "made again on the CPU" };
        match first {
            Ok(Attempt { verdict: Ok(()), .. }) => Ok(None),
            Ok(Attempt { verdict: Err(refusal), .. }) => Ok(Some(Fallback::WrongProof(format!(
                "the proof made on {device} failed its check ({refusal}) and was {again}; \
                 the device or its driver may be faulty"
            )))),
            Err(error) if self.auto && self.cpu.is_some() => {
                Ok(Some(Fallback::DeviceFailed(format!("{error}; the proof was made on the CPU"))))
            }
            Err(error) => Err(error.clone().into()),
        }
    }
}

impl<C: Curve, S: System<C>> Attempt<C, S> {
    /// One proof of `resident`.
    pub(crate) fn of(resident: &dyn Resident<C, S>, order: Order<'_, C, S>) -> tandem_groth16::Result<Self> {
        let (made, spans) = resident.prove(order)?;
        let mut stages = stages_of(&spans);
        stages.extend(made.host.iter().map(|span| Stage {
            name: span.name,
            begun: Some(span.begun),
            seconds: span.seconds,
            ..Stage::default()
        }));
        Ok(Attempt { ended: made.ended, proof: made.proof, verdict: made.verdict, stages, spans })
    }
}

impl<C: AnyCurve, S: System<C>> AnyKey for CurveKey<C, S> {
    fn stage(&self, witness: &Witness, progress: &dyn Progress) -> Result<Option<StagedFor>> {
        self.on_device.stage(self.values(witness)?, progress, &witness.path)
    }

    fn prove(&self, witness: &Witness, staged: Option<StagedFor>, progress: &dyn Progress) -> Result<Proved> {
        let values = self.values(witness)?;
        let started = Instant::now();
        let (verifier, staged) = (&self.verifier, Mutex::new(staged));
        let call = Call { source: &self.source, verifier, witness: values, staged, progress };
        let (first, remark) = self.on_device.prove(&call, self.auto && self.cpu.is_some(), &witness.path)?;
        let fallback = self.report(&first)?;
        let mut device = self.on_device.name.clone();
        let attempt = match (first, &fallback) {
            (Ok(attempt), None) => attempt,
            (first, _) => {
                // A proof fails its check if the device erred or if the witness does not satisfy the circuit, and
                // the key does not tell which: it holds no right sides of constraints. The CPU's own attempt does.
                let second = match (self.on_cpu()?, &self.cpu) {
                    (Some(resident), Some(cpu)) => {
                        device = device_name(&cpu.info());
                        self.again(resident, values, progress).map_err(|e| Error::prover(e, &witness.path))?
                    }
                    _ => self.on_device.prove(&call, false, &witness.path)?.0?,
                };
                if second.verdict.is_err() {
                    let (name, key) = (witness.name(), self.path.display());
                    let file = if witness.path.as_os_str().is_empty() { "witness.wtns".into() } else { name.clone() };
                    // Where a side of a constraint is a constant they had a wrong sign.
                    let older = match S::PROTOCOL {
                        Protocol::Groth16 => "",
                        Protocol::Plonk | Protocol::Fflonk => ", as snarkjs before 0.7.6 made some",
                    };
                    return Err(Error::Unsatisfied(format!(
                        "{name}: no proof passes its check: the witness does not satisfy the circuit of the key {key}, or the key is \
                         wrong{older}; 'tandem check circuit.r1cs {file}' tells: if it says OK, make the key again from circuit.r1cs, \
                         else the witness"
                    )));
                }
                if first.is_ok() {
                    self.wrong_proofs.fetch_add(1, Ordering::Relaxed);
                }
                second
            }
        };
        let mut stages = vec![Stage { name: "read witness", seconds: witness.seconds, ..Stage::default() }];
        stages.extend(attempt.stages);
        Ok(Proved {
            proof: S::proof(&attempt.proof),
            publics: Publics::of(C::ID, &values.publics(self.publics)),
            stages,
            spans: attempt.spans,
            device,
            seconds: (attempt.ended - started).as_secs_f64(),
            remark,
            fallback,
        })
    }

    fn plan(&self) -> Option<String> {
        self.on_device.plan()
    }

    fn content(&self) -> Option<Content> {
        match &self.source {
            Source::File { blocks, .. } => Some(blocks.content()),
            Source::Bytes(_) | Source::Memory(_) => None,
        }
    }

    fn digits(&self, witness: &Witness) -> Result<ProofDigits> {
        let values = self.values(witness)?;
        self.source.with::<S, _>(|view| S::digits(view, values).map_err(|e| Error::prover(e, &witness.path)))
    }
}

/// All lanes in one line.
pub(crate) fn device_name(info: &Info) -> String {
    match info.lane_names.as_slice() {
        [one] => one.clone(),
        lanes => lanes.join(", "),
    }
}

/// The time and the copies of each kind of work on each lane, in the order in which they first began.
fn stages_of(spans: &[Span]) -> Vec<Stage> {
    let mut spans: Vec<_> = spans.iter().zip(waited_us(spans)).collect();
    spans.sort_by(|a, b| a.0.start_us.total_cmp(&b.0.start_us));
    let mut stages: Vec<Stage> = Vec::new();
    for (&Span { name, lane, duration_us, moved, .. }, waited) in spans {
        let at = stages.iter().position(|stage| stage.name == name && stage.lane == Some(lane.0));
        let at = at.unwrap_or_else(|| {
            stages.push(Stage { name, lane: Some(lane.0), ..Stage::default() });
            stages.len() - 1
        });
        let stage = &mut stages[at];
        stage.seconds += duration_us / 1e6;
        stage.waited += waited / 1e6;
        stage.moved += moved;
    }
    stages
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

    /// Why it is on another device than the engine's, if it is: one sentence to be shown.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Which lane of the engine's device does what in a proof, in lines; `None` where the key is not on it for now ([`Key::note`]).
    pub fn plan(&self) -> Option<String> {
        self.inner.plan()
    }

    /// The digits of the sums of a proof with `witness`, for bounds of what it takes. Reads the points from where the key came from.
    ///
    /// # Errors
    /// [`Error::BadInput`] for a witness of another circuit.
    pub fn digits(&self, witness: &Witness) -> Result<ProofDigits> {
        self.inner.digits(witness)
    }

    /// The file it came from; `the key` for one from bytes, empty for a synthetic one.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
#[path = "key_tests.rs"]
mod tests;
