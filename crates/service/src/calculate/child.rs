//! What a calculator does.

use super::{Answer, Task};
use crate::worker::hash_file;
use crate::worker::protocol::{receive, send, Failure};
use std::io::{BufWriter, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;
use tandem_engine::CurveId;
use tandem_ops::Canonical;
use tandem_witness::{Error, Limits};
use zeroize::Zeroizing;

/// Bytes of a circuit's program at most.
pub(crate) const PROGRAM_MAX: u64 = 1 << 32;

/// Bytes of a `.wtns` file before its values, as it is written.
const WTNS_HEAD: u64 = 76;

/// Bytes that are sent at a time.
const PIECE: usize = 256 << 10;

/// A code, a sentence, and whether another time may help.
type Refusal = (&'static str, String, bool);

/// Runs as a calculator of the service, which holds the other end of standard input: takes a program and inputs, and gives a witness, or
/// the reason why there is none.
///
/// # Errors
/// Standard input is no socket of the service's, or the service has gone.
pub fn calculate() -> Result<(), String> {
    let no_socket = |e: std::io::Error| format!("a calculator is started by tandem serve, not by hand: {e}");
    let end = std::io::stdin().as_fd().try_clone_to_owned().map_err(no_socket)?;
    let mut service = UnixStream::from(end);
    service.peer_addr().map_err(no_socket)?;
    let gone = |e: std::io::Error| format!("the service has gone: {e}");
    let Some(task) = receive::<Task>(&mut service).map_err(gone)? else { return Ok(()) };
    let mut inputs = Zeroizing::new(vec![0; usize::try_from(task.inputs_bytes).unwrap_or(usize::MAX)]);
    service.read_exact(&mut inputs).map_err(gone)?;
    // Nothing more comes: whatever is read is the end of the service, and this process ends with it, whatever the program is at.
    let mut watched = service.try_clone().map_err(no_socket)?;
    std::thread::spawn(move || {
        let _ = watched.read(&mut [0]);
        std::process::exit(0);
    });
    match witness(&task, inputs) {
        Ok((curve, values)) => {
            let bytes = WTNS_HEAD + values.len() as u64 * 32;
            send(&mut service, &Answer::Made { bytes }).map_err(gone)?;
            let mut out = BufWriter::with_capacity(PIECE, service);
            tandem_formats::Wtns::write(&mut out, curve, &values).map_err(gone)?;
            out.flush().map_err(gone)
        }
        Err((code, reason, is_retryable)) => {
            let failure = Failure { job: String::new(), attempt: 0, code: code.into(), reason, is_retryable };
            send(&mut service, &Answer::Failed(failure)).map_err(gone)
        }
    }
}

fn witness(task: &Task, inputs: Zeroizing<Vec<u8>>) -> Result<(CurveId, Zeroizing<Vec<Canonical>>), Refusal> {
    let program = program(&task.program, &task.program_hash)?;
    let limits = Limits {
        memory_bytes: usize::try_from(task.memory_bytes).unwrap_or(usize::MAX),
        steps: task.steps,
        time: Some(Duration::from_secs(task.seconds)),
    };
    // The circuit's log may hold secret values: nobody hears it.
    let witness = run(&program, inputs, limits).map_err(|error| match error {
        Error::Circuit(why) => ("bad_program", format!("the circuit's program: {why}"), false),
        Error::Inputs(why) | Error::Missing(why) => ("bad_input", format!("the inputs: {why}"), false),
        Error::Limit(_, why) => ("witness_limit", format!("{why}; the service sets the limit"), false),
        Error::System(why) => ("out_of_memory", why, true),
        Error::Stopped => ("internal", "the calculation stopped".into(), false),
    })?;
    let curve = tandem_formats::curve_of_scalar(witness.prime());
    let other_field = "the circuit is over another field than that of bn254 or bls12-381";
    let curve = curve.ok_or_else(|| ("bad_program", other_field.to_string(), false))?;
    let mut values = Zeroizing::new(Vec::with_capacity(witness.values().len() / 32));
    values.extend(witness.values().chunks_exact(32).map(|bytes| {
        let limb =
            |at: usize| bytes[8 * at..8 * at + 8].iter().rev().fold(0, |limb, &byte| limb << 8 | u64::from(byte));
        Canonical([limb(0), limb(1), limb(2), limb(3)])
    }));
    Ok((curve, values))
}

/// The one place that runs a circuit's program.
fn run(program: &[u8], inputs: Zeroizing<Vec<u8>>, limits: Limits) -> tandem_witness::Result<tandem_witness::Witness> {
    tandem_witness::calculate(program, inputs, limits, &|| false)
}

/// The program, which must be the one that was registered.
fn program(path: &Path, hash: &str) -> Result<Vec<u8>, Refusal> {
    let lost = |why: String, again| ("program_lost", format!("{}: {why}", path.display()), again);
    let unread = |e: std::io::Error| lost(format!("cannot read the circuit's program: {e}"), true);
    let file = std::fs::File::open(path).map_err(unread)?;
    let mut program = Vec::new();
    file.take(PROGRAM_MAX).read_to_end(&mut program).map_err(unread)?;
    match blake3::Hasher::new().update_rayon(&program).finalize().to_hex().as_str() == hash {
        true => Ok(program),
        false => Err(lost("the program changed since it was registered; register the key anew".into(), false)),
    }
}

/// BLAKE3 of a program that may be run, in hexadecimal, and its bytes.
///
/// # Errors
/// One sentence without the file's name: it is none.
pub(crate) fn check_program(path: &Path) -> Result<(String, u64), String> {
    let cannot = |e: std::io::Error| format!("cannot read: {e}");
    let mut start = Vec::new();
    let file = std::fs::File::open(path).map_err(cannot)?;
    let bytes = file.metadata().map_err(cannot)?.len();
    file.take(64).read_to_end(&mut start).map_err(cannot)?;
    use tandem_formats::FileKind;
    match FileKind::of(&start) {
        Some(FileKind::Wasm | FileKind::Graph) if bytes < PROGRAM_MAX => {}
        Some(FileKind::Wasm | FileKind::Graph) => {
            return Err(format!("expected less than {PROGRAM_MAX} bytes, found {bytes}"))
        }
        _ => {
            return Err(
                "expected a circuit's WebAssembly (circuit_js/circuit.wasm) or its graph of circom-witnesscalc".into()
            )
        }
    }
    Ok((hash_file(path).map_err(cannot)?, bytes))
}
