//! `tandem prove --more`: several proofs with one key, as many at a time as the schedule has use for.

use crate::cli;
use crate::commands::{proved_json, Opened, Session};
use crate::failure::Outcome;
use crate::files::Outputs;
use crate::report;
use serde_json::json;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use tandem_engine::{Key, KeyCheck, Proved};

/// One proof to make.
struct Job<'a> {
    witness: &'a Path,
    outputs: [&'a Path; 2],
}

pub(crate) fn prove(session: &Session, args: &cli::Prove) -> Outcome {
    fn job(paths: [&Path; 3]) -> Job<'_> {
        Job { witness: paths[0], outputs: [paths[1], paths[2]] }
    }
    let mut jobs = vec![job([&args.witness, &args.proof, &args.public])];
    let more: Vec<_> = args.more().collect();
    jobs.extend(more.iter().map(|[witness, proof, public]| job([witness, proof, public])));

    let mut opened = session.open()?;
    opened.engine = opened.engine.for_proofs(jobs.len() as u64);
    let check = if args.options.check_key { KeyCheck::Always } else { KeyCheck::Once };
    let key = session.trace.step("load key", || opened.engine.load_key(&args.zkey, check, &session.bars))?;
    session.trace.stages(key.stages());
    if let Some(note) = key.note() {
        session.note(&format!("note: {note}"));
    }
    let begun = Instant::now();
    let proofs = all(session, &opened, &key, &jobs)?;
    let rate = proofs.len() as f64 / begun.elapsed().as_secs_f64();
    session.bars.clear();

    for problem in proofs.iter().filter_map(|proved| proved.fallback.as_ref()) {
        // Said even with --quiet: the proof is good, the device is not.
        report::note(&format!("warning: {problem}"));
    }
    if args.options.json.json {
        let proofs: Vec<_> = proofs.iter().map(|proved| proved_json(proved, key.info(), &proved.stages)).collect();
        report::result(&json!({"proofs": proofs, "proofs_per_s": report::round(rate)}).to_string());
        return Ok(());
    }
    for (job, proved) in jobs.iter().zip(&proofs) {
        let (witness, seconds) = (job.witness.display(), report::seconds(proved.seconds));
        session.note(&format!("{witness}: proved and verified in {seconds} on {}", proved.device));
    }
    session.note(&format!("{} proofs, {rate:.1} a second from witness file to proof file", proofs.len()));
    Ok(())
}

/// Makes the proofs. Each caller reads a witness, has it proved, writes, and goes on; after a failure none begins another.
fn all(session: &Session, opened: &Opened, key: &Key, jobs: &[Job<'_>]) -> Outcome<Vec<Proved>> {
    // Where GPUs share each proof, a second caller reads the next witness meanwhile.
    let lanes = opened.engine.report().lanes.len();
    let callers = if matches!(session.schedule, cli::Schedule::Each) { 2 * lanes.max(1) } else { 2 };
    let next = AtomicUsize::new(0);
    let done = Mutex::new((0..jobs.len()).map(|_| None).collect::<Vec<Option<Proved>>>());
    let one = |job: &Job<'_>| -> Outcome<Proved> {
        let outputs = Outputs::open(&job.outputs)?;
        let witness = session.trace.step("read witness", || opened.engine.read_witness(job.witness))?;
        let proved = opened.engine.prove(key, &witness, &session.bars)?;
        session.trace.stages(&proved.stages);
        session.trace.spans(&proved.spans, opened.at);
        outputs.commit(&[&proved.proof_json, &proved.public_json])?;
        Ok(proved)
    };
    let caller = || -> Outcome {
        while let Some((index, job)) = Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, jobs.get(i)?)))
        {
            let proved = one(job).inspect_err(|_| next.store(jobs.len(), Ordering::Relaxed))?;
            done.lock().unwrap_or_else(PoisonError::into_inner)[index] = Some(proved);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..callers.min(jobs.len())).map(|_| scope.spawn(caller)).collect();
        let ended = threads.into_iter().map(|thread| thread.join().unwrap_or_else(|p| std::panic::resume_unwind(p)));
        // All of them end, whichever failed first.
        ended.collect::<Vec<Outcome>>().into_iter().collect::<Outcome<()>>()
    })?;
    Ok(done.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().flatten().collect())
}
