//! A witness from what was made of a circuit: WebAssembly, a graph, or a program of this machine.

use crate::commands::START_BYTES;
use crate::{cli, native};
use std::fs::Metadata;
use std::io::{ErrorKind, Read};
use std::path::Path;
use tandem_console::failure::{Failure, Outcome};
use tandem_console::files;
use tandem_console::session::Session;
use tandem_engine::{cache, CurveId};
use tandem_formats::place::{self, Place};
use tandem_formats::{FileKind, Wtns};
use tandem_witness::{Left, Name, Record, Recordings, Used};
use zeroize::Zeroizing;

/// Bytes of a circuit's program. The largest known circuits have tens of MiB as WebAssembly, and some hundreds as graphs.
const PROGRAM_BYTES_MAX: u64 = 1 << 32;
/// Bytes of a circuit's inputs.
const INPUT_BYTES_MAX: u64 = 1 << 30;

/// The values of a witness, wire by wire, as little-endian limbs: as they were computed, or copied.
pub(crate) enum Values {
    Computed(tandem_witness::Witness),
    Copied(Zeroizing<Vec<[u64; 4]>>),
}

impl Values {
    /// Values that need not be copied to be elements, or their copy.
    fn of(witness: tandem_witness::Witness) -> Self {
        match bytemuck::try_cast_slice::<u8, [u64; 4]>(witness.values()) {
            Ok(_) => Self::Computed(witness),
            Err(_) => Self::Copied(Zeroizing::new(copied(&witness))),
        }
    }

    pub(crate) fn as_slice(&self) -> &[[u64; 4]] {
        match self {
            Self::Computed(witness) => bytemuck::cast_slice(witness.values()),
            Self::Copied(values) => values,
        }
    }

    pub(crate) fn into_vec(self) -> Vec<[u64; 4]> {
        match self {
            Self::Computed(witness) => copied(&witness),
            Self::Copied(mut values) => std::mem::take(&mut *values),
        }
    }
}

/// Runs the circuit's program, and names the file that is at fault, or the option, if it fails.
pub(crate) fn compute(
    session: &Session,
    program: &Path,
    input: &Path,
    limits: &cli::Limits,
) -> Outcome<(CurveId, Values)> {
    let run = Run { session, program, input, limits };
    let mut before = None;
    if let Some(name) = named(program, limits) {
        let text = files::read(input, INPUT_BYTES_MAX)?;
        match run.replay(&name, &text)? {
            Ok(found) => return Ok(found),
            Err(left) => before = Some((text, left)),
        }
    }
    // A program is no secret, and overwriting megabytes takes time.
    let code = std::mem::take(&mut *files::read(program, PROGRAM_BYTES_MAX)?);
    let found = FileKind::of(&code[..code.len().min(START_BYTES)]);
    match found {
        Some(FileKind::Wasm | FileKind::Graph) => {}
        Some(FileKind::Elf) if limits.native => {}
        Some(FileKind::Elf) => {
            let why =
                "this is an ELF program or library, expected a WebAssembly module or a circom-witnesscalc graph; \
                       if circom --c made it and you trust it as any program that you run, add --native";
            return Err(Failure::file(program, why));
        }
        _ => return Err(FileKind::refuse(found, FileKind::Wasm.describe()).in_file(program).into()),
    }
    let (text, left) = match before {
        Some(before) => before,
        None => (files::read(input, INPUT_BYTES_MAX)?, None),
    };
    tandem_engine::Progress::start(&session.bars, "witness", 0);
    let computed = match found {
        Some(FileKind::Elf) => {
            drop(code);
            let file = session.trace.step("witness", || native::run(session, program, text, limits))?;
            let name = format!("the witness that {} wrote", program.display());
            let Wtns { curve, values } = Wtns::parse(&file).map_err(|e| e.in_file(Path::new(&name)))?;
            let values = values.iter().map(|value| value.0).collect();
            (curve, Values::Copied(Zeroizing::new(values)))
        }
        _ => run.module(&code, text, left)?,
    };
    session.bars.clear();
    Ok(computed)
}

/// Bytes of a program that are read at a time: they stay in a processor's own cache.
const PIECE: usize = 1 << 16;

/// The name by which a WebAssembly's recording is kept, where it is a file, which can be read again if there is none. A program whose
/// recording fits is not kept in memory: pages for megabytes take longer than to hash them. Whatever is wrong is told where it is read whole.
fn named(program: &Path, limits: &cli::Limits) -> Option<Name> {
    // A file of names is looked at before anything runs.
    if limits.recordings == cli::Recordings::Off || limits.sym.is_some() {
        return None;
    }
    // What is open already and what comes out of a pipe can be read but once.
    let can_be_read_again = matches!(Place::of(program), Ok(Place::Name(path)) if path.is_file());
    let mut file = can_be_read_again.then(|| place::open_to_read(program).ok()).flatten()?;
    let length = file.metadata().ok().filter(Metadata::is_file)?.len();
    let (mut name, mut piece, mut passed) = (Name::new(), vec![0; PIECE], 0);
    loop {
        let mut filled = 0;
        while filled < PIECE {
            match file.read(&mut piece[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        if passed == 0 && FileKind::of(&piece[..filled.min(START_BYTES)]) != Some(FileKind::Wasm) {
            return None;
        }
        name.add(&piece[..filled]);
        passed += filled as u64;
        if passed > length.min(PROGRAM_BYTES_MAX) {
            return None;
        }
        if filled < PIECE {
            return Some(name);
        }
    }
}

/// Where a program that is not trusted is run, in this process, or its recording.
struct Run<'a> {
    session: &'a Session,
    program: &'a Path,
    input: &'a Path,
    limits: &'a cli::Limits,
}

impl Run<'_> {
    /// By the recording of an earlier run.
    fn replay(&self, name: &Name, text: &[u8]) -> Outcome<Result<(CurveId, Values), Option<Left>>> {
        let Self { session, program, .. } = *self;
        let (caller, kept) = (self.caller(), Kept { session, program });
        tandem_engine::Progress::start(&session.bars, "witness", 0);
        let replay = || tandem_witness::replay_kept(name, text, self.limits.of_witness(), &caller, &kept);
        match session.trace.step("witness", replay).map_err(|error| self.failure(error, Some(FileKind::Json)))? {
            Ok(witness) => {
                session.bars.clear();
                Ok(Ok(self.values(witness)?))
            }
            Err(left) => Ok(Err(left)),
        }
    }

    /// By the module, or a graph.
    fn module(&self, code: &[u8], text: Zeroizing<Vec<u8>>, left: Option<Left>) -> Outcome<(CurveId, Values)> {
        let Self { session, program, limits, .. } = *self;
        // A circuit may have inputs with the names that a proof or a key has, so these are told only where something is wrong.
        let found = FileKind::of(&text[..text.len().min(START_BYTES)]);
        let (caller, kept) = (self.caller(), Kept { session, program });
        if let Some(sym) = caller.sym {
            tandem_formats::sym::signals(sym)?;
        }
        let calculate = || {
            let which = match limits.recordings {
                cli::Recordings::Off => return tandem_witness::calculate(code, text, limits.of_witness(), &caller),
                cli::Recordings::Auto => Record::Unbranched,
                cli::Recordings::All => Record::All,
            };
            tandem_witness::calculate_left(left, code, text, limits.of_witness(), &caller, &kept, which)
        };
        let witness = session.trace.step("witness", calculate).map_err(|error| self.failure(error, found))?;
        self.values(witness)
    }

    fn caller(&self) -> Caller<'_> {
        Caller { session: self.session, program: self.program, sym: self.limits.sym.as_deref() }
    }

    /// Names the file that is at fault, or the option; `found` is what the inputs look like.
    fn failure(&self, error: tandem_witness::Error, found: Option<FileKind>) -> Failure {
        let of_inputs = |why: String| match found {
            Some(FileKind::Json) => Failure::file(self.input, why),
            _ => FileKind::refuse(found, "the inputs of a circuit (JSON)").in_file(self.input).into(),
        };
        match error {
            tandem_witness::Error::Circuit(why) => Failure::file(self.program, why),
            tandem_witness::Error::Inputs(why) => of_inputs(why),
            tandem_witness::Error::Missing(why) => of_inputs(format!(
                "{why}; to be told the names, compile with circom --sym and keep the .sym file, or name it with --sym"
            )),
            tandem_witness::Error::Limit(limit, why) => {
                Failure::file(self.program, format!("{why}; {} sets the limit", cli::Limits::option(limit)))
            }
            tandem_witness::Error::System(why) => Failure::device(why),
            tandem_witness::Error::Stopped => tandem_engine::Error::Interrupted.into(),
        }
    }

    fn values(&self, witness: tandem_witness::Witness) -> Outcome<(CurveId, Values)> {
        let curve = tandem_formats::curve_of_scalar(witness.prime()).ok_or_else(|| {
            Failure::file(
                self.program,
                "the circuit is over another field than that of bn254 or bls12-381; compile it with -p bn128 or -p bls12381",
            )
        })?;
        Ok((curve, Values::of(witness)))
    }
}

/// What the circuit's program may ask of us.
struct Caller<'a> {
    session: &'a Session,
    program: &'a Path,
    /// The file of names that the user gave.
    sym: Option<&'a Path>,
}

impl tandem_witness::Caller for Caller<'_> {
    fn stop(&self) -> bool {
        tandem_console::interrupt::asked()
    }

    fn log(&self, line: &str) {
        self.session.note(&format!("circuit: {line}"));
    }

    /// From the file that circom --sym writes, where it stands as circom left it: a wrong one only makes messages poorer.
    fn names(&self) -> Vec<String> {
        let beside = self.program.with_extension("sym");
        let above = self.program.parent().and_then(|folder| Some(folder.parent()?.join(beside.file_name()?)));
        let named = self.sym.map(Path::to_path_buf);
        let files: Vec<_> =
            if named.is_some() { named.into_iter().collect() } else { above.into_iter().chain([beside]).collect() };
        let found = files.iter().filter(|file| file.is_file()).find_map(|file| tandem_formats::sym::signals(file).ok());
        found.map_or_else(Vec::new, |names| names.into_iter().collect())
    }
}

/// The recordings in the cache folder.
struct Kept<'a> {
    session: &'a Session,
    program: &'a Path,
}

impl Recordings for Kept<'_> {
    fn find(&self, program: &[u8; 32]) -> Option<Vec<u8>> {
        cache::recording(program)
    }

    fn keep(&self, program: &[u8; 32], recording: &[u8]) {
        cache::keep_recording(program, recording);
    }

    fn used(&self, how: Used) {
        if !self.session.verbose {
            return;
        }
        let how = match how {
            Used::Replayed => "replayed the recording of an earlier run",
            Used::Left => "these inputs take another way than the recorded run: ran its program",
            Used::Recorded => "recorded this run",
            Used::Refused(why) => {
                return self.session.note(&format!("{}: not recorded: {why}", self.program.display()))
            }
        };
        self.session.note(&format!("{}: {how}", self.program.display()));
    }
}

/// The values of a witness over a curve's scalars, as little-endian limbs.
fn copied(witness: &tandem_witness::Witness) -> Vec<[u64; 4]> {
    witness.values().chunks_exact(32).map(bytemuck::pod_read_unaligned).collect()
}
