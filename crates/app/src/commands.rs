//! The commands that prove, verify and make files.

use crate::cli;
use serde_json::json;
use std::path::Path;
use std::time::Instant;
use tandem_console::failure::{Failure, Outcome};
use tandem_console::files::{self, Outputs};
use tandem_console::report;
use tandem_console::session::Session;
use tandem_engine::{CurveId, KeyCheck, KeyInfo, Proved, Stage, Witness};
use tandem_formats::{FileKind, Wtns};
use tandem_ops::wire::Canonical;
use zeroize::Zeroizing;

/// Bytes of a circuit's WebAssembly. The largest known circuits have tens of MiB.
const WASM_BYTES_MAX: u64 = 1 << 30;
/// Bytes of a circuit's inputs.
const INPUT_BYTES_MAX: u64 = 1 << 30;

pub(crate) fn prove(session: &Session, args: &cli::Prove) -> Outcome {
    if args.more().next().is_some() {
        return crate::many::prove(session, args);
    }
    let outputs = Outputs::open(&[&args.proof, &args.public])?;
    let witness = session.trace.step("read witness", || {
        let key = tandem_engine::key_info(&args.zkey)?;
        Witness::read_for(&args.witness, &key)
    })?;
    prove_and_write(session, &args.zkey, &witness, outputs, &args.options, Vec::new())
}

pub(crate) fn fullprove(session: &Session, args: &cli::Fullprove) -> Outcome {
    let outputs = Outputs::open(&[&args.proof, &args.public])?;
    let begun = Instant::now();
    let (curve, computed) = compute_witness(session, &args.wasm, &args.input, &args.limits)?;
    let witness = Witness::from_values(curve, elements(&computed).collect())?;
    drop(computed);
    let stage = Stage { name: "witness", lane: None, begun: None, seconds: begun.elapsed().as_secs_f64() };
    prove_and_write(session, &args.zkey, &witness, outputs, &args.options, vec![stage])
}

fn prove_and_write(
    session: &Session,
    zkey: &Path,
    witness: &Witness,
    outputs: Outputs,
    options: &cli::ProveOptions,
    mut stages: Vec<Stage>,
) -> Outcome {
    let mut opened = session.open()?;
    // Tables of multiples take longer to make than one proof gains by them.
    opened.engine = opened.engine.for_proofs(1);
    let check = if options.check_key { KeyCheck::Always } else { KeyCheck::Once };
    let key = session.trace.step("load key", || opened.engine.load_key(zkey, check, &session.bars))?;
    session.trace.stages(key.stages());
    if let Some(note) = key.note() {
        session.note(&format!("note: {note}"));
    }
    let proved = session.trace.step("prove", || opened.engine.prove(&key, witness, &session.bars))?;
    session.trace.stages(&proved.stages);
    session.trace.spans(&proved.spans, opened.at);
    session.bars.clear();
    // A device that erred is told of whatever becomes of the files.
    tell_troubles(session, &proved);
    outputs.commit(&[&proved.proof_json, &proved.public_json])?;
    stages.extend_from_slice(key.stages());
    stages.extend_from_slice(&proved.stages);
    if options.json.json {
        report::result(&proved_json(&proved, key.info(), &stages).to_string());
        return Ok(());
    }
    session.note(&describe_proof(&proved, key.info(), &stages));
    Ok(())
}

/// What befell the device while it made a proof.
pub(crate) fn tell_troubles(session: &Session, proved: &Proved) {
    if let Some(remark) = &proved.remark {
        session.note(&format!("note: {remark}"));
    }
    if let Some(problem) = &proved.fallback {
        // Said even with --quiet: the proof is good, the device is not.
        report::note(&format!("warning: {problem}"));
    }
}

fn describe_proof(proved: &Proved, key: &KeyInfo, stages: &[Stage]) -> String {
    format!(
        "proved and verified in {} on {} ({}, {} variables, domain 2^{})\n{}",
        report::seconds(proved.seconds),
        proved.device,
        proved.curve,
        key.variables,
        key.domain.trailing_zeros(),
        report::stages(stages).trim_end()
    )
}

pub(crate) fn proved_json(proved: &Proved, key: &KeyInfo, stages: &[Stage]) -> serde_json::Value {
    json!({
        "curve": proved.curve.snarkjs_name(),
        "device": proved.device,
        "variables": key.variables,
        "publics": key.publics,
        "domain": key.domain,
        "seconds": report::round(proved.seconds),
        "stages": report::stages_json(stages),
        "fallback": proved.fallback,
    })
}

pub(crate) fn witness(session: &Session, args: &cli::Witness) -> Outcome {
    let mut output = tandem_formats::Output::create_secret(&args.witness)?;
    let begun = session.trace.now();
    let (curve, computed) = compute_witness(session, &args.wasm, &args.input, &args.limits)?;
    let values = Zeroizing::new(elements(&computed).map(Canonical).collect::<Vec<_>>());
    drop(computed);
    Wtns::write(&mut output, curve, &values).map_err(|e| output.error(e))?;
    tandem_console::interrupt::check()?;
    tandem_formats::output::commit([output])?;
    let seconds = session.trace.now() - begun;
    if args.json.json {
        let json = json!({"curve": curve.snarkjs_name(), "values": values.len(), "seconds": report::round(seconds)});
        report::result(&json.to_string());
        return Ok(());
    }
    session.note(&format!("witness of {} values ({curve}) in {}", values.len(), report::seconds(seconds)));
    Ok(())
}

/// Runs the circuit's program and names the file that is at fault, or the option, if it fails.
fn compute_witness(
    session: &Session,
    wasm: &Path,
    input: &Path,
    limits: &cli::Limits,
) -> Outcome<(CurveId, tandem_witness::Witness)> {
    let code = files::read(wasm, WASM_BYTES_MAX)?;
    match FileKind::of(&code) {
        Some(FileKind::Wasm) => {}
        found => {
            let found = found.map_or("a file of unknown type", FileKind::describe);
            let problem =
                format!("this is {found}, expected {}; check the order of the arguments", FileKind::Wasm.describe());
            return Err(Failure::file(wasm, problem));
        }
    }
    let text = files::read(input, INPUT_BYTES_MAX)?;
    let limits = limits.of_witness();
    tandem_engine::Progress::start(&session.bars, "witness", 0);
    let calculate = || tandem_witness::calculate(&code, text, limits, &tandem_console::interrupt::asked);
    let witness = session.trace.step("witness", calculate).map_err(|error| match error {
        tandem_witness::Error::Circuit(why) => Failure::file(wasm, why),
        tandem_witness::Error::Inputs(why) => Failure::file(input, why),
        tandem_witness::Error::Limit(limit, why) => {
            Failure::file(wasm, format!("{why}; {} sets the limit", cli::Limits::option(limit)))
        }
        tandem_witness::Error::System(why) => Failure::device(why),
        tandem_witness::Error::Stopped => tandem_engine::Error::Interrupted.into(),
    })?;
    session.bars.clear();
    for line in witness.messages() {
        session.note(&format!("circuit: {line}"));
    }
    let curve = tandem_formats::curve_of_scalar(witness.prime()).ok_or_else(|| {
        Failure::file(
            wasm,
            "the circuit is over another field than BN254's or BLS12-381's; compile it with -p bn128 or -p bls12381",
        )
    })?;
    Ok((curve, witness))
}

/// The values of a witness over a curve's scalars, as little-endian limbs.
fn elements(witness: &tandem_witness::Witness) -> impl ExactSizeIterator<Item = [u64; 4]> + '_ {
    witness.values().chunks_exact(32).map(|bytes| {
        let mut limbs = [0u64; 4];
        for (limb, bytes) in limbs.iter_mut().zip(bytes.chunks_exact(8)) {
            *limb = bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
        }
        limbs
    })
}

pub(crate) fn verify(session: &Session, args: &cli::Verify) -> Outcome {
    let result = session.trace.step("verify", || tandem_engine::verify(&args.vkey, &args.public, &args.proof));
    let why = match result {
        Ok(()) => None,
        Err(tandem_engine::Error::InvalidProof(why)) => Some(why),
        Err(other) => return Err(other.into()),
    };
    match (&why, args.json.json) {
        (_, true) => report::result(&json!({"valid": why.is_none(), "reason": why}).to_string()),
        (None, false) => report::result("OK"),
        (Some(why), false) => {
            report::result("INVALID");
            session.note(why);
        }
    }
    if why.is_some() {
        return Err(Failure::invalid());
    }
    Ok(())
}

pub(crate) fn setup(session: &Session, args: &cli::Setup) -> Outcome {
    let options = tandem_engine::SetupOptions { seed: args.seed.clone() };
    let made = session.trace.step("setup", || tandem_engine::setup(&args.r1cs, &args.zkey, &options, &session.bars))?;
    session.trace.stages(&made.stages);
    session.bars.clear();
    let key = &made.key;
    if args.json.json {
        report::result(
            &json!({
                "curve": key.curve.snarkjs_name(),
                "constraints": made.constraints,
                "variables": key.variables,
                "publics": key.publics,
                "domain": key.domain,
                "bytes": key.file_bytes,
                "production": false,
                "stages": report::stages_json(&made.stages),
            })
            .to_string(),
        );
        return Ok(());
    }
    session.note(&format!(
        "{}: a TEST key ({}, {} constraints, domain 2^{}, {})\n{}",
        args.zkey.display(),
        key.curve,
        made.constraints,
        key.domain.trailing_zeros(),
        report::bytes(key.file_bytes),
        report::stages(&made.stages).trim_end()
    ));
    // Said even with --quiet.
    report::note("warning: not for production: whoever ran this can know the key's secret and forge proofs");
    Ok(())
}

pub(crate) fn export_vkey(session: &Session, args: &cli::ExportVkey) -> Outcome {
    let output = Outputs::open(&[&args.vkey])?;
    let text = session.trace.step("export", || tandem_engine::export_vkey(&args.zkey))?;
    output.commit(&[&text])
}
