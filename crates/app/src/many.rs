//! `tandem prove --more`: several proofs with one key, as many at a time as the schedule has use for.

use crate::beside::{Load, Ready};
use crate::cli;
use crate::commands::{proved_json, tell_of_key, tell_troubles};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tandem_console::failure::Outcome;
use tandem_console::files::Outputs;
use tandem_console::options::Schedule;
use tandem_console::report;
use tandem_console::session::{Opened, Session};
use tandem_engine::{Key, KeyInfo, Proved};

/// One proof to make.
struct Job<'a> {
    witness: &'a Path,
    outputs: [&'a Path; 2],
}

pub(crate) fn prove(session: &Session, args: &cli::Prove, first: cli::ProveFiles<'_>) -> Outcome {
    fn job(paths: [&Path; 3]) -> Job<'_> {
        Job { witness: paths[0], outputs: [paths[1], paths[2]] }
    }
    let mut jobs = vec![job([first.witness, first.proof, first.public])];
    let more: Vec<_> = args.more().collect();
    jobs.extend(more.iter().map(|[witness, proof, public]| job([witness, proof, public])));

    let load = Load { zkey: first.zkey, check: args.options.check(), proofs: jobs.len() as u64 };
    let (Ready { opened, key, .. }, ()) = load.beside(session, 0, || Ok(()))?;
    session.tell(&opened);
    session.trace.stages(key.stages());
    tell_of_key(session, &key, args.explain.explain);
    let told = Told::new(session, key.info(), args.options.json.json);
    let begun = Instant::now();
    let made = all(session, &opened, &key, &jobs, &told);
    let rate = jobs.len() as f64 / begun.elapsed().as_secs_f64();
    session.bars.clear();
    told.finish(made.is_ok().then_some(rate));
    made?;
    if !args.options.json.json {
        session.note(&format!("{} proofs, {rate:.1} a second from witness file to proof file", jobs.len()));
    }
    Ok(())
}

/// Makes the proofs. Each caller reads a witness, has it proved, writes, and goes on; after a failure none begins another.
fn all(session: &Session, opened: &Opened, key: &Key, jobs: &[Job<'_>], told: &Told<'_>) -> Outcome {
    // Where GPUs share each proof, a second caller reads and uploads the next witness meanwhile.
    let lanes = opened.engine.report().lanes.len();
    let callers = if matches!(session.schedule, Schedule::Each) { 2 * lanes.max(1) } else { 2 };
    let next = AtomicUsize::new(0);
    let one = |job: &Job<'_>| -> Outcome<Proved> {
        let outputs = Outputs::open(&job.outputs)?;
        let witness = session.trace.step("read witness", || opened.engine.read_witness_for(job.witness, key))?;
        // Beside the proof in hand.
        let staged = opened.engine.stage(key, witness, &session.bars)?;
        let proved = opened.engine.prove_staged(key, staged, &session.bars)?;
        session.trace.stages(&proved.stages);
        session.trace.spans(&proved.spans, opened.at);
        outputs.commit(&[&proved.proof.to_json(), &proved.publics.to_json()])?;
        Ok(proved)
    };
    let caller = || -> Outcome {
        while let Some((index, job)) = Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, jobs.get(i)?)))
        {
            let proved = one(job).inspect_err(|_| {
                next.store(jobs.len(), Ordering::Relaxed);
                told.fail();
            })?;
            told.tell(index, job, &proved);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let spawn = |_| std::thread::Builder::new().spawn_scoped(scope, caller);
        // Where no more threads can be started, there are fewer callers; this thread is one of them.
        let threads: Vec<_> = (1..callers.min(jobs.len())).map_while(|i| spawn(i).ok()).collect();
        let own = caller();
        let ended = threads.into_iter().map(|thread| thread.join().unwrap_or_else(|p| std::panic::resume_unwind(p)));
        // All of them end, whichever failed first.
        std::iter::once(own).chain(ended.collect::<Vec<Outcome>>()).collect()
    })
}

/// Results that wait until those before them have been told; who is further ahead waits.
const AHEAD: usize = 256;

/// Tells results as they come, in the order of the proofs, and keeps none of them.
struct Told<'a> {
    session: &'a Session,
    key: &'a KeyInfo,
    is_json: bool,
    state: Mutex<State>,
    moved: Condvar,
}

struct State {
    /// The first that has not been told.
    next: usize,
    waiting: BTreeMap<usize, String>,
    has_failed: bool,
}

impl<'a> Told<'a> {
    fn new(session: &'a Session, key: &'a KeyInfo, is_json: bool) -> Self {
        if is_json {
            report::result("{\"proofs\":[");
        }
        let state = State { next: 0, waiting: BTreeMap::new(), has_failed: false };
        Told { session, key, is_json, state: Mutex::new(state), moved: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, index: usize, job: &Job<'_>, proved: &Proved) {
        tell_troubles(self.session, proved);
        let text = if self.is_json {
            let comma = if index > 0 { "," } else { "" };
            format!("{comma}{}", proved_json(proved, self.key, &proved.stages))
        } else {
            let (witness, seconds) = (job.witness.display(), report::seconds(proved.seconds));
            format!("{witness}: proved and verified in {seconds} on {}", proved.device)
        };
        let mut state = self.state();
        while index >= state.next + AHEAD && !state.has_failed {
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waiting.insert(index, text);
        while let Some(text) = {
            let next = state.next;
            state.waiting.remove(&next)
        } {
            state.next += 1;
            if self.is_json {
                report::result(&text);
            } else {
                self.session.note(&text);
            }
        }
        drop(state);
        self.moved.notify_all();
    }

    /// Nobody waits for the results before its own any more.
    fn fail(&self) {
        self.state().has_failed = true;
        self.moved.notify_all();
    }

    /// Ends what was told; `rate` is that of all proofs, if they were made.
    fn finish(self, rate: Option<f64>) {
        if self.is_json {
            report::result(&format!("],\"proofs_per_s\":{}}}", json!(rate.map(report::round))));
        }
    }
}
