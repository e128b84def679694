//! Witnesses with recordings that are kept between runs.

use crate::calculator::{self, Recorded};
use crate::native::prime;
use crate::recording::{replay, write, About, Recording, Step, VERSION};
use crate::{graph, Caller, Limits, Result, Witness};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use zeroize::Zeroizing;

/// Where recordings are kept. With [`Record::All`] they hold which way a run took where it branched on its inputs: keep them where the
/// inputs may be.
pub trait Recordings: Sync {
    /// What was kept for the program of this hash.
    fn find(&self, program: &[u8; 32]) -> Option<Vec<u8>>;

    /// Keeps a recording of the program in place of any other; an empty one says that there can be none. It may as well be dropped.
    fn keep(&self, program: &[u8; 32], recording: &[u8]);

    /// Hears what was done.
    fn used(&self, _how: Used) {}
}

/// How a witness was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Used {
    /// By a recording.
    Replayed,
    /// By the module: the recording is of another way through it, or of other inputs.
    Left,
    /// By the module, whose run has been recorded.
    Recorded,
    /// By the module, whose run cannot be recorded, for this reason.
    Refused(&'static str),
}

/// Which runs are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// Those of few steps, which are done twice, once as ever and once recorded. What is kept is the same for all inputs: a run that
    /// branches on them is not recorded.
    Short,
    /// All, also those that branch on their inputs.
    All,
}

/// Steps of a short run.
const SHORT_STEPS: u64 = 1 << 24;

/// [`crate::calculate`], by the recording of an earlier run where there is one that fits these inputs. Else the module is run, and the run
/// is recorded. The witness is the same, and so is each error. Steps are counted by what is done: a replay takes fewer.
///
/// A recording is used only if it is whole, of this version and of this program. What its guards do not allow is done by the module.
///
/// # Errors
/// As for [`crate::calculate`].
pub fn calculate_kept(
    program: &[u8],
    json: Zeroizing<Vec<u8>>,
    limits: Limits,
    caller: &dyn Caller,
    recordings: &dyn Recordings,
    which: Record,
) -> Result<Witness> {
    if program.starts_with(graph::FAMILY) {
        return graph::calculate(program, json, limits, caller);
    }
    let keeper =
        Keeper { program, hash: blake3::Hasher::new_derive_key(VERSION).update(program).finalize(), recordings };
    let kept = recordings.find(keeper.hash.as_bytes());
    // It cannot be recorded, or not so.
    if kept.as_ref().is_some_and(|kept| kept.is_empty() || kept == BRANCHES && which == Record::Short) {
        return calculator::calculate(program, json, limits, caller);
    }
    if let Some(recording) = kept.as_ref().and_then(|kept| Recording::read(kept, &keeper.hash)) {
        let begun = Instant::now();
        if let Some(witness) = replay(&recording, &json, limits, caller)? {
            recordings.used(Used::Replayed);
            return Ok(witness);
        }
        drop(recording);
        drop(kept);
        recordings.used(Used::Left);
        let time = limits.time.map(|time| time.saturating_sub(begun.elapsed()));
        return calculator::calculate(program, json, Limits { time, ..limits }, caller);
    }
    drop(kept);
    match which {
        Record::All => keeper.record(json, limits, caller, which),
        Record::Short => keeper.run(json, limits, caller),
    }
}

struct Keeper<'a> {
    program: &'a [u8],
    hash: blake3::Hash,
    recordings: &'a dyn Recordings,
}

impl Keeper<'_> {
    /// Runs the module, and again for a recording if that was short.
    fn run(&self, json: Zeroizing<Vec<u8>>, limits: Limits, caller: &dyn Caller) -> Result<Witness> {
        let again = Zeroizing::new(json.to_vec());
        let (quiet, begun, mut steps) = (Quiet { caller, has_logged: AtomicBool::new(false) }, Instant::now(), 0);
        let witness = calculator::watched(self.program, json, limits, &quiet, |taken| steps = taken)?;
        let left = Limits {
            steps: limits.steps.saturating_sub(steps),
            time: limits.time.map(|time| time.saturating_sub(begun.elapsed())),
            ..limits
        };
        if steps <= SHORT_STEPS && !quiet.has_logged.load(Ordering::Relaxed) {
            // The witness is there; what goes wrong here ends no more than the recording.
            let stop = || caller.stop();
            _ = self.record(again, left, &stop, Record::Short);
        }
        Ok(witness)
    }

    fn record(&self, json: Zeroizing<Vec<u8>>, limits: Limits, caller: &dyn Caller, which: Record) -> Result<Witness> {
        let again = Zeroizing::new(json.to_vec());
        calculator::record(self.program, json, limits, caller, |recorded| {
            let told = |recorded: &Recorded| which == Record::All || !recorded.line.steps.iter().any(Step::is_guard);
            let recorded = recorded.and_then(|recorded| if told(&recorded) { Ok(recorded) } else { Err(BRANCHED) });
            match recorded.and_then(|recorded| self.proved(recorded, &again, limits, caller)) {
                Ok(bytes) => {
                    self.recordings.keep(self.hash.as_bytes(), &bytes);
                    self.recordings.used(Used::Recorded);
                }
                Err(why) => {
                    // Not for want of memory or time, of which there may be more the next time.
                    if !matches!(why, TOO_LITTLE | ENDED) {
                        let why = if why == BRANCHED { BRANCHES } else { &[] };
                        self.recordings.keep(self.hash.as_bytes(), why);
                    }
                    self.recordings.used(Used::Refused(why));
                }
            }
        })
    }

    /// A recording's bytes, which have given the run's witness again.
    fn proved(
        &self,
        recorded: Recorded,
        json: &[u8],
        limits: Limits,
        caller: &dyn Caller,
    ) -> Result<Vec<u8>, &'static str> {
        let field = number(recorded.witness).ok_or("its field is not known")?;
        let about = About { program: &self.hash, field, signals: &recorded.signals };
        let bytes = write(&recorded.line, &about).ok_or("it would be too long")?;
        drop(recorded.line);
        let recording = Recording::read(&bytes, &self.hash).ok_or("it cannot be read again")?;
        let witness = replay(&recording, json, limits, caller).map_err(|_| ENDED)?.ok_or(TOO_LITTLE)?;
        match witness.values() == recorded.witness.values() {
            true => Ok(bytes),
            false => Err("it gives another witness"),
        }
    }
}

/// Why this recording was not made, though another time it may be.
pub(crate) const TOO_LITTLE: &str = "there is too little memory for it";
const ENDED: &str = "it was stopped";
/// Why it is made with [`Record::All`] alone: each guard would say one bit of the inputs.
const BRANCHED: &str = "it branches on its inputs, and a recording would say how";
/// What is kept of such a program.
const BRANCHES: &[u8] = b"branches";

/// The number of a witness's field in recordings.
fn number(witness: &Witness) -> Option<u8> {
    let is_its =
        |number: &u8| prime(*number).is_some_and(|prime| prime.map(u64::to_le_bytes).concat() == witness.prime());
    (0..u8::MAX).take_while(|number| prime(*number).is_some()).find(is_its)
}

/// Hears whether a circuit logs.
struct Quiet<'a> {
    caller: &'a dyn Caller,
    has_logged: AtomicBool,
}

impl Caller for Quiet<'_> {
    fn stop(&self) -> bool {
        self.caller.stop()
    }

    fn log(&self, line: &str) {
        self.has_logged.store(true, Ordering::Relaxed);
        self.caller.log(line);
    }

    fn names(&self) -> Vec<String> {
        self.caller.names()
    }
}
