//! A witness from what was made of a circuit: WebAssembly, a graph, or a program of this machine.

use crate::commands::START_BYTES;
use crate::{cli, native};
use std::path::Path;
use tandem_console::failure::{Failure, Outcome};
use tandem_console::files;
use tandem_console::session::Session;
use tandem_engine::{cache, CurveId};
use tandem_formats::{FileKind, Wtns};
use tandem_witness::{Record, Recordings, Used};
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
    let text = files::read(input, INPUT_BYTES_MAX)?;
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
        _ => within(session, program, &code, (input, text), limits)?,
    };
    session.bars.clear();
    Ok(computed)
}

/// Runs a program that is not trusted, in this process.
fn within(
    session: &Session,
    program: &Path,
    code: &[u8],
    (input, text): (&Path, Zeroizing<Vec<u8>>),
    limits: &cli::Limits,
) -> Outcome<(CurveId, Values)> {
    // A circuit may have inputs with the names that a proof or a key has, so these are told only where something is wrong.
    let found = FileKind::of(&text[..text.len().min(START_BYTES)]);
    let is_other = found != Some(FileKind::Json);
    let of_inputs = |why: String| match is_other {
        true => FileKind::refuse(found, "the inputs of a circuit (JSON)").in_file(input).into(),
        false => Failure::file(input, why),
    };
    let caller = Caller { session, program, sym: limits.sym.as_deref() };
    if let Some(sym) = caller.sym {
        tandem_formats::sym::signals(sym)?;
    }
    let calculate = || {
        let which = match limits.recordings {
            cli::Recordings::Off => return tandem_witness::calculate(code, text, limits.of_witness(), &caller),
            cli::Recordings::Auto => Record::Unbranched,
            cli::Recordings::All => Record::All,
        };
        tandem_witness::calculate_kept(code, text, limits.of_witness(), &caller, &Kept { session, program }, which)
    };
    let witness = session.trace.step("witness", calculate).map_err(|error| match error {
        tandem_witness::Error::Circuit(why) => Failure::file(program, why),
        tandem_witness::Error::Inputs(why) => of_inputs(why),
        tandem_witness::Error::Missing(why) => of_inputs(format!(
            "{why}; to be told the names, compile with circom --sym and keep the .sym file, or name it with --sym"
        )),
        tandem_witness::Error::Limit(limit, why) => {
            Failure::file(program, format!("{why}; {} sets the limit", cli::Limits::option(limit)))
        }
        tandem_witness::Error::System(why) => Failure::device(why),
        tandem_witness::Error::Stopped => tandem_engine::Error::Interrupted.into(),
    })?;
    let curve = tandem_formats::curve_of_scalar(witness.prime()).ok_or_else(|| {
        Failure::file(
            program,
            "the circuit is over another field than that of bn254 or bls12-381; compile it with -p bn128 or -p bls12381",
        )
    })?;
    Ok((curve, Values::of(witness)))
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
