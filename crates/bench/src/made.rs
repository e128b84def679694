//! Keys of circuits made up for the size: in memory, or, of PLONK and FFLONK, in a folder, from powers of tau whose secret is known.

use std::path::{Path, PathBuf};
use tandem_console::failure::{Failure, Outcome};
use tandem_console::session::{Opened, Session};
use tandem_engine::{
    setup_fflonk, setup_plonk, test_ptau, CurveId, Key, KeyCheck, Protocol, Synthetic, SyntheticKey, Witness,
};
use tempfile::TempDir;

/// A folder of the user's, or one that goes when it is dropped.
pub(crate) enum Folder {
    Kept(PathBuf),
    Temporary(TempDir),
}

impl Folder {
    pub(crate) fn of(keep: Option<&Path>) -> Outcome<Self> {
        let Some(folder) = keep else {
            let made = tempfile::tempdir();
            return made
                .map(Folder::Temporary)
                .map_err(|e| Failure::input(format!("cannot make a temporary folder: {e}")));
        };
        std::fs::create_dir_all(folder).map_err(|e| Failure::file(folder, format!("cannot make this folder: {e}")))?;
        Ok(Folder::Kept(folder.into()))
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Folder::Kept(path) => path,
            Folder::Temporary(folder) => folder.path(),
        }
    }
}

/// A protocol in names of files and rows.
pub(crate) fn name(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Groth16 => "groth16",
        Protocol::Plonk => "plonk",
        Protocol::Fflonk => "fflonk",
    }
}

/// The rows of powers of tau, as a power of two, that keys of 2^`log_n` rows take.
fn power(protocol: Protocol, log_n: u32) -> u32 {
    log_n + if protocol == Protocol::Fflonk { 3 } else { 0 }
}

/// Powers of tau for keys of up to 2^`log_n` rows.
pub(crate) fn ptau(folder: &Path, protocol: Protocol, log_n: u32) -> PathBuf {
    folder.join(format!("powers{}.ptau", power(protocol, log_n)))
}

/// The files of a circuit: constraints, witness and key.
pub(crate) fn files(folder: &Path, protocol: Protocol, log_n: u32) -> [PathBuf; 3] {
    ["r1cs", "wtns", "zkey"].map(|extension| folder.join(format!("{}{log_n}.{extension}", name(protocol))))
}

/// A key with its witness, to be loaded into any number of engines.
pub(crate) enum Made {
    InMemory(Box<SyntheticKey>),
    InFiles { wtns: PathBuf, zkey: PathBuf },
}

impl Made {
    pub(crate) fn load(&self, session: &Session, opened: &Opened) -> Outcome<(Key, Witness)> {
        match self {
            Made::InMemory(made) => Ok(opened.engine.load_synthetic(made, &session.bars)?),
            Made::InFiles { wtns, zkey } => {
                let key = opened.engine.load_key(zkey, KeyCheck::Once, &session.bars)?;
                let witness = opened.engine.read_witness_for(wtns, &key)?;
                Ok((key, witness))
            }
        }
    }
}

/// What keys are made with.
pub(crate) struct Maker<'a> {
    session: &'a Session,
    protocol: Protocol,
    /// Of keys in files, the folder and the powers of tau.
    files: Option<(PathBuf, PathBuf)>,
}

impl<'a> Maker<'a> {
    /// For keys of up to 2^`most` rows.
    pub(crate) fn of(
        session: &'a Session,
        protocol: Protocol,
        circuit: Synthetic,
        keep: Option<&Path>,
    ) -> Outcome<Self> {
        let Synthetic { curve, log_size: most, .. } = circuit;
        if protocol == Protocol::Fflonk && curve != CurveId::Bn254 {
            return Err(Failure::input(format!("FFLONK is for {} alone, not {curve}", CurveId::Bn254)));
        }
        let Some(folder) = keep else { return Ok(Self { session, protocol, files: None }) };
        let folder = Folder::of(Some(folder))?;
        // A size that there is no circuit of is refused before powers of tau are made for it, which takes long.
        let [r1cs, wtns, _] = files(folder.path(), protocol, most);
        circuit.write_for(protocol, &r1cs, &wtns)?;
        let (power, powers) = (power(protocol, most), ptau(folder.path(), protocol, most));
        session.trace.step("powers of tau", || test_ptau(curve, power, None, &powers, &session.bars))?;
        Ok(Self { session, protocol, files: Some((folder.path().into(), powers)) })
    }

    pub(crate) fn make(&self, circuit: Synthetic) -> Outcome<Made> {
        let Self { session, protocol, files: of_files } = self;
        let Some((folder, powers)) = of_files else {
            let made = session.trace.step("make key", || SyntheticKey::make_for(*protocol, circuit, &session.bars))?;
            return Ok(Made::InMemory(Box::new(made)));
        };
        let [r1cs, wtns, zkey] = files(folder, *protocol, circuit.log_size);
        session.trace.step("write circuit", || circuit.write_for(*protocol, &r1cs, &wtns))?;
        let set_up = if *protocol == Protocol::Fflonk { setup_fflonk } else { setup_plonk };
        session.trace.step("make key", || set_up(&r1cs, powers, &zkey, &session.bars))?;
        session.bars.clear();
        Ok(Made::InFiles { wtns, zkey })
    }
}
