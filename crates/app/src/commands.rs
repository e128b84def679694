//! The commands that prove, verify and make files.

use crate::beside::{Load, Ready};
use crate::{circuit, cli};
use serde_json::json;
use std::path::Path;
use std::thread::Builder;
use std::time::Instant;
use tandem_console::failure::{Failure, Outcome};
use tandem_console::files::Outputs;
use tandem_console::report;
use tandem_console::session::{Opened, Session};
use tandem_engine::{DeviceChoice, DeviceKind, Fallback, Key, KeyInfo, Proved, Stage, Witness};
use tandem_formats::Wtns;

/// Bytes that tell what a file is.
pub(crate) const START_BYTES: usize = 4096;

pub(crate) fn prove(session: &Session, args: &cli::Prove) -> Outcome {
    let waits = args.waits()?;
    let Some(files) = args.files() else { return crate::wait::prove(session, waits.unwrap_or_default()) };
    if args.more().next().is_some() {
        return crate::many::prove(session, args, files);
    }
    let outputs = Outputs::open(&[files.proof, files.public])?;
    let job =
        Job { zkey: files.zkey, proof: files.proof, outputs, explain: args.explain.explain, options: &args.options };
    let key = tandem_engine::key_info(files.zkey)?;
    let bytes = key.variables as u64 * size_of::<[u64; 4]>() as u64;
    prove_and_write(session, job, bytes, || {
        let read = || {
            let witness = Witness::read_for(files.witness, &key)?;
            match &args.r1cs {
                Some(r1cs) => witness.with_circuit(r1cs),
                None => Ok(witness),
            }
        };
        Ok((session.trace.step("read witness", read)?, None))
    })
}

pub(crate) fn fullprove(session: &Session, args: &cli::Fullprove) -> Outcome {
    let outputs = Outputs::open(&[&args.proof, &args.public])?;
    let job =
        Job { zkey: &args.zkey, proof: &args.proof, outputs, explain: args.explain.explain, options: &args.options };
    prove_and_write(session, job, args.limits.memory_bytes(), || {
        let begun = Instant::now();
        let (curve, values) = circuit::compute(session, &args.wasm, &args.input, &args.limits)?;
        let witness = Witness::from_values(curve, values.into_vec())?;
        let seconds = begun.elapsed().as_secs_f64();
        Ok((witness, Some(Stage { name: "witness", seconds, ..Stage::default() })))
    })
}

/// A proof to make, but for its witness.
struct Job<'a> {
    zkey: &'a Path,
    proof: &'a Path,
    outputs: Outputs,
    explain: bool,
    options: &'a cli::ProveOptions,
}

/// Makes a proof; `witness` may take so many `bytes` of memory.
fn prove_and_write(
    session: &Session,
    job: Job<'_>,
    bytes: u64,
    witness: impl FnOnce() -> Outcome<(Witness, Option<Stage>)>,
) -> Outcome {
    let Job { zkey, proof, outputs, explain, options } = job;
    // Tables of multiples take longer to make than one proof gains by them.
    let load = Load { zkey, check: options.check(), proofs: 1 };
    let (Ready { opened, key, stage }, (witness, computed)) = load.beside(session, bytes, witness)?;
    if session.verbose {
        session.tell(&opened);
    }
    session.trace.stages(key.stages());
    tell_of_key(session, &key, explain);
    let proved = session.trace.step("prove", || opened.engine.prove(&key, &witness, &session.bars))?;
    session.trace.stages(&proved.stages);
    session.trace.spans(&proved.spans, opened.at);
    session.bars.clear();
    // A device that erred is told of whatever becomes of the files.
    tell_troubles(session, &proved);
    outputs.commit(&[&proved.proof.to_json(), &proved.publics.to_json()])?;
    let stages: Vec<Stage> =
        computed.into_iter().chain([stage]).chain(key.stages().iter().chain(&proved.stages).cloned()).collect();
    if options.json.json {
        report::result(&proved_json(&proved, key.info(), &stages).to_string());
        give_back(witness, (key, opened));
        return Ok(());
    }
    let (seconds, device) = (report::seconds(session.begun.elapsed().as_secs_f64()), &proved.device);
    let is_makeshift = session.device == DeviceChoice::Auto && opened.engine.report().kind == DeviceKind::Cpu;
    let why = if is_makeshift { " (no GPU is used: tandem doctor says why)" } else { "" };
    session.note(&format!("{}: proved and verified in {seconds} on {device}{why}", proof.display()));
    if session.verbose {
        session.note(&describe_proof(&proved, key.info(), &stages));
    }
    give_back(witness, (key, opened));
    Ok(())
}

/// Overwrites a witness and frees a key, side by side: where they are large both take a while.
fn give_back(witness: Witness, key: (Key, Opened)) {
    std::thread::scope(|scope| {
        // Where no thread can be started, it is overwritten at once.
        _ = Builder::new().name("wipe witness".into()).spawn_scoped(scope, || drop(witness));
        drop(key);
    });
}

/// Where a key is loaded, where that is not the device that was asked for, and, to `explain`, which lane does what.
pub(crate) fn tell_of_key(session: &Session, key: &Key, explain: bool) {
    if let Some(note) = key.note() {
        session.note(&format!("note: {note}"));
    }
    if explain {
        let plan = key.plan().unwrap_or_else(|| "all on the CPU".into());
        plan.lines().for_each(|line| session.note(&format!("plan: {line}")));
    }
}

/// What befell the device while it made a proof.
pub(crate) fn tell_troubles(session: &Session, proved: &Proved) {
    if let Some(remark) = &proved.remark {
        session.note(&format!("note: {remark}"));
    }
    if let Some(problem) = &proved.fallback {
        // Said even with --quiet: the proof is good, the device is not.
        report::warn(problem.as_str());
    }
}

fn describe_proof(proved: &Proved, key: &KeyInfo, stages: &[Stage]) -> String {
    let size = format!(
        "{} over {}, {} variables, domain 2^{}",
        key.protocol,
        key.curve,
        key.variables,
        key.domain.trailing_zeros()
    );
    let stages = report::stages(stages) + &report::copies(stages);
    format!("{size}; the proof alone in {}:\n{}", report::seconds(proved.seconds), stages.trim_end())
}

pub(crate) fn proved_json(proved: &Proved, key: &KeyInfo, stages: &[Stage]) -> serde_json::Value {
    json!({
        "protocol": key.protocol.to_string(),
        "curve": key.curve.to_string(),
        "device": proved.device,
        "variables": key.variables,
        "publics": key.publics,
        "domain": key.domain,
        "seconds": report::round(proved.seconds),
        "stages": report::stages_json(stages),
        "fallback": proved.fallback.as_ref().map(Fallback::as_str),
    })
}

pub(crate) fn witness(session: &Session, args: &cli::Witness) -> Outcome {
    let mut output = tandem_formats::Output::create_secret(&args.witness)?;
    let begun = session.trace.now();
    let (curve, values) = circuit::compute(session, &args.wasm, &args.input, &args.limits)?;
    let count = values.as_slice().len();
    let written = match &args.r1cs {
        Some(r1cs) => {
            let witness = Witness::from_values(curve, values.into_vec())?.with_circuit(r1cs)?;
            witness.write_with_sides(&mut output)
        }
        None => Wtns::write(&mut output, curve, bytemuck::cast_slice(values.as_slice())),
    };
    written.map_err(|e| output.error(e))?;
    tandem_console::interrupt::check()?;
    tandem_formats::output::commit([output])?;
    let seconds = session.trace.now() - begun;
    if args.json.json {
        let json = json!({"curve": curve.to_string(), "values": count, "seconds": report::round(seconds)});
        report::result(&json.to_string());
        return Ok(());
    }
    session.note(&format!("witness of {} ({curve}) in {}", report::count(count, "value"), report::seconds(seconds)));
    Ok(())
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
        (None, false) => report::verdict(true, "OK"),
        (Some(why), false) => {
            report::verdict(false, "INVALID");
            session.note(why);
        }
    }
    if why.is_some() {
        return Err(Failure::invalid());
    }
    Ok(())
}

pub(crate) fn calldata(session: &Session, args: &cli::Calldata) -> Outcome {
    let text = session.trace.step("calldata", || tandem_engine::calldata(&args.public, &args.proof))?;
    report::result(&text);
    Ok(())
}

pub(crate) fn export_vkey(session: &Session, args: &cli::ExportVkey) -> Outcome {
    let output = Outputs::open(&[&args.vkey])?;
    let text = session.trace.step("export", || tandem_engine::export_vkey(&args.zkey))?;
    output.commit(&[&text])
}

pub(crate) fn export_solidity(session: &Session, args: &cli::ExportSolidity) -> Outcome {
    let output = Outputs::open(&[&args.contract])?;
    let contract = session.trace.step("export", || tandem_engine::export_solidity(&args.key))?;
    output.commit(&[&contract.text])?;
    for remark in &contract.remarks {
        session.note(&format!("note: {remark}"));
    }
    Ok(())
}
