//! Parameters: loaded once a file and shared.

use crate::cuda::Error;
use crate::{Proof, PROOF};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::UNIX_EPOCH;
use tandem_engine::{size, Assignment, DeviceChoice, Engine, Key, KeyCheck, KeyStore, Schedule, Silent, StagedWitness};
use tandem_formats::ParamsFile;

/// Where keys are loaded, opened when it is first asked for. A device that cannot be opened is tried again the next time.
static STORE: Mutex<Option<Arc<KeyStore>>> = Mutex::new(None);

/// Bytes of keys that stay loaded, in MiB.
const BUDGET: &str = "TANDEM_KEY_MEMORY";

/// Bytes that are taken of each GPU, at most.
const GPU_MEMORY: &str = "TANDEM_GPU_MEMORY";

fn store() -> Result<Arc<KeyStore>, Error> {
    let mut store = STORE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(store) = &*store {
        return Ok(store.clone());
    }
    Ok(store.insert(Arc::new(open(|name| std::env::var(name).ok())?)).clone())
}

/// What the variables of the environment ask for.
fn open(variable: impl Fn(&str) -> Option<String>) -> Result<KeyStore, Error> {
    let variable = |name: &str| variable(name).filter(|text| !text.is_empty());
    let device = variable("TANDEM_DEVICE").map_or(Ok(DeviceChoice::Auto), |text| DeviceChoice::from_str(&text))?;
    let budget = match variable(BUDGET) {
        None => u64::MAX,
        Some(text) => match text.parse::<u64>().ok().and_then(|mib| mib.checked_mul(1 << 20)) {
            Some(bytes) if bytes > 0 => bytes,
            _ => return Err(Error::input(format!("{BUDGET}: '{text}'; expected a number of MiB"))),
        },
    };
    let wrong = |text: &str, problem| Error::input(format!("{GPU_MEMORY}: '{text}': {problem}"));
    let bytes = |text: String| size::gpu_memory(&text).map_err(|problem| wrong(&text, problem));
    let gpu_memory = variable(GPU_MEMORY).map(bytes).transpose()?;
    Ok(KeyStore::new(Engine::open_within(&device, Schedule::default(), gpu_memory)?, budget))
}

/// A `.params` file. Clones are the same parameters.
#[derive(Clone, Default)]
pub struct SRS(pub(crate) Option<Arc<Loaded>>);

pub(crate) enum Loaded {
    /// In the store, by name. It is loaded again where it was evicted.
    Named { store: Arc<KeyStore>, name: String },
    /// This handle's own.
    Own { store: Arc<KeyStore>, key: Box<Key> },
}

/// A file and the state that it is in: one that was replaced has another name.
fn name_of(path: &Path, file: &ParamsFile) -> Result<String, Error> {
    let canonical = path.canonicalize().map_err(|e| Error::input(format!("{}: cannot open: {e}", path.display())))?;
    let metadata = file.file().metadata();
    let changed = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    Ok(format!("{} {} {:?}", canonical.display(), metadata.len(), changed.unwrap_or_default()))
}

impl SRS {
    /// Reads, checks and loads a file. With `cache` all handles of the file share what is loaded, which happens once, also where several
    /// threads ask for it; without, it belongs to this handle and its clones.
    ///
    /// # Errors
    /// The file is missing, damaged or no key of bellperson, or a device failed or has too little memory.
    pub fn try_new(srs_path: PathBuf, cache: bool) -> Result<Self, Error> {
        let file = ParamsFile::open(&srs_path).map_err(tandem_engine::Error::from)?;
        let store = store()?;
        let loaded = if cache {
            let name = name_of(&srs_path, &file)?;
            store.add_file(&name, &srs_path)?;
            // What is wrong with it is said here, and not by the first proof.
            drop(store.get(&name, &Silent)?);
            Loaded::Named { store, name }
        } else {
            let key = Box::new(store.engine().load_key(&srs_path, KeyCheck::Once, &Silent)?);
            Loaded::Own { store, key }
        };
        Ok(SRS(Some(Arc::new(loaded))))
    }

    /// Gives the memory of parameters that were cached back, as soon as no proof uses them. The handles stay good: the next proof loads the
    /// file again.
    pub fn evict(&self) {
        if let Some(Loaded::Named { store, name }) = self.0.as_deref() {
            store.evict(name);
        }
    }

    /// Makes and verifies a proof of each.
    pub(crate) fn prove(&self, assignments: &[Assignment<'_>]) -> Result<Vec<Proof>, Error> {
        match self.0.as_deref() {
            None => Err(Error::input("the parameters are not loaded: make them with SRS::try_new")),
            Some(Loaded::Own { store, key }) => prove_all(store.engine(), key, assignments),
            Some(Loaded::Named { store, name }) => prove_all(store.engine(), &*store.get(name, &Silent)?, assignments),
        }
    }
}

/// Makes the proofs in order. The next circuit is prepared on a thread of its own, which waits until it is taken: no more than one lies ready.
fn prove_all(engine: &Engine, key: &Key, assignments: &[Assignment<'_>]) -> Result<Vec<Proof>, Error> {
    if let [one] = assignments {
        return Ok(vec![prepare(engine, key, one).and_then(|ready| prove(engine, key, ready))?]);
    }
    std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel(0);
        let prepare_all = move || {
            for assignment in assignments {
                let ready = prepare(engine, key, assignment);
                let is_last = ready.is_err();
                // Who proves has failed where nobody takes it.
                if sender.send(ready).is_err() || is_last {
                    return;
                }
            }
        };
        let started = Builder::new().name("prepare circuits".into()).spawn_scoped(scope, prepare_all);
        started.map_err(|e| Error::input(format!("cannot start a thread: {e}")))?;
        let one = |(i, ready): (usize, Result<StagedWitness, Error>)| {
            let told = |e: Error| e.of_circuit(i, assignments.len());
            let ready = ready.map_err(told)?;
            let values = ready.witness().clone();
            let proof = prove(engine, key, ready).map_err(told)?;
            // The last to hold the values overwrites them, which takes as long as to copy them. The next proof need not wait for it.
            _ = Builder::new().name("wipe values".into()).spawn_scoped(scope, move || drop(values));
            Ok(proof)
        };
        receiver.into_iter().enumerate().map(one).collect()
    })
}

/// Copies what bellperson has computed, and uploads it beside what the device does.
fn prepare(engine: &Engine, key: &Key, assignment: &Assignment<'_>) -> Result<StagedWitness, Error> {
    let (has, expected) = (assignment.inputs.len(), key.info().publics + 1);
    if has != expected {
        let problem = format!("{has} inputs with the constant 1; the key's circuit has {expected}");
        return Err(Error::input(format!("{}: {problem}", key.path().display())));
    }
    Ok(engine.stage(key, engine.assignment(assignment)?, &Silent)?)
}

fn prove(engine: &Engine, key: &Key, ready: StagedWitness) -> Result<Proof, Error> {
    let proved = engine.prove_staged(key, ready, &Silent)?;
    if let Some(told) = proved.fallback.as_ref().map(|fallback| fallback.as_str()).or(proved.remark.as_deref()) {
        eprintln!("tandem: {told}");
    }
    let has = proved.proof.as_bytes().len();
    let expected = || Error::input(format!("a proof of {has} bytes; expected {PROOF}"));
    proved.proof.as_bytes().try_into().map_err(|_| expected())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_groth16::partition::Partition;

    const SIZES: Partition =
        Partition { log_domain: 12, rows: 4000, inputs: 3, aux: 3900, in_a: 3900, in_b: 900, ones: 0.4, dense: 0.1 };

    #[test]
    fn variables_choose_the_device_and_its_memory() {
        let of = |memory: &'static str| {
            open(move |name| match name {
                "TANDEM_DEVICE" => Some("sim:2".into()),
                GPU_MEMORY => Some(memory.into()),
                _ => None,
            })
        };
        let made = tandem_engine::SyntheticPartition::make(SIZES, true, &Silent).unwrap();
        for (memory, expected) in [("2MiB", Some("2 MiB at most")), ("", None)] {
            let store = of(memory).unwrap();
            let key = store.engine().load_partition(&made, &Silent).unwrap();
            let plan = key.plan().unwrap();
            match expected {
                Some(expected) => assert!(plan.contains(expected), "{plan}"),
                None => assert!(!plan.contains(" 2 MiB at most"), "{plan}"),
            }
        }
        for wrong in ["0", "2Tib", "100K", "much"] {
            let error = of(wrong).map(|_| ()).unwrap_err().to_string();
            assert!(error.starts_with("TANDEM_GPU_MEMORY: ") && error.contains(wrong), "{error}");
        }
        let no_device = open(|name| (name == "TANDEM_DEVICE").then(|| "gpu".into())).map(|_| ()).unwrap_err();
        assert!(no_device.to_string().contains("'gpu'"));
    }
}
