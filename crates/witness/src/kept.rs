//! Witnesses with recordings that are kept between runs.

use crate::calculator::{self, Done};
use crate::native::prime;
use crate::recording::{replay, write, About, Line, Recording, STRAYED, TOO_MANY, VERSION};
use crate::{graph, Caller, Error, Limit, Limits, Result, Witness};
use std::time::{Duration, Instant};
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
    /// Those that do not branch on their inputs, so that what is kept is the same for all. Of a program that takes many steps it is the
    /// third run.
    Unbranched,
    /// All, also those that branch on their inputs.
    All,
}

/// Steps within which the first run of a program is recorded.
const SHORT_STEPS: u64 = 28_000_000;

/// The hash by which what is kept of a program is found, made as the program goes by. So a program whose recording fits need not be in
/// memory.
#[derive(Debug, Clone)]
pub struct Name(blake3::Hasher);

impl Name {
    /// Of no bytes yet.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self(blake3::Hasher::new_derive_key(VERSION))
    }

    /// Takes the next bytes of the program.
    pub fn add(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }
}

/// That a program's recording does not fit these inputs, or they are wrong. [`calculate_left`] then runs the module at once.
#[derive(Debug, Clone, Copy)]
pub struct Left {
    program: blake3::Hash,
    time: Duration,
}

/// The witness by the recording of an earlier run, where there is one that fits these inputs. Where there is none, or it does not fit,
/// [`calculate_left`] goes on.
///
/// # Errors
/// A limit is reached, or `caller` asks to stop.
pub fn replay_kept(
    name: &Name,
    json: &[u8],
    limits: Limits,
    caller: &dyn Caller,
    recordings: &dyn Recordings,
) -> Result<Result<Witness, Option<Left>>> {
    let program = name.0.finalize();
    replayed(&program, recordings.find(program.as_bytes()), json, limits, caller, recordings)
}

/// [`crate::calculate`], by the recording of an earlier run where there is one that fits these inputs. Else the module is run, and the run
/// is recorded. Where that cannot be, or goes wrong, the module is run anew as ever. The witness is the same, and so is each error. Steps
/// are counted by what is done: a replay takes fewer, and a run that is left counts as none.
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
    calculate_left(None, program, json, limits, caller, recordings, which)
}

/// [`calculate_kept`] after [`replay_kept`] of these inputs. What that has left is not tried again, if the program is still the one whose
/// name was taken.
///
/// # Errors
/// As for [`crate::calculate`].
pub fn calculate_left(
    left: Option<Left>,
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
    let mut name = Name::new();
    name.add(program);
    let keeper = Keeper { program, hash: name.0.finalize(), recordings };
    let within = |spent: Duration| Limits { time: limits.time.map(|time| time.saturating_sub(spent)), ..limits };
    if let Some(left) = left.filter(|left| left.program == keeper.hash) {
        return calculator::calculate(program, json, within(left.time), caller);
    }
    let kept = recordings.find(keeper.hash.as_bytes());
    let plain = |json| calculator::calculate(program, json, limits, caller);
    let is_first = match (kept.as_deref(), which) {
        (Some(b""), _) | (Some(BRANCHES | LATE), Record::Unbranched) => return plain(json),
        (Some(LONG), Record::Unbranched) => {
            recordings.keep(keeper.hash.as_bytes(), AGAIN);
            return plain(json);
        }
        // A recorded run might not end within a time in which another does.
        (Some(AGAIN), Record::Unbranched) if limits.time.is_some() => return plain(json),
        (Some(AGAIN), Record::Unbranched) => {
            // Whatever comes of it, it is not tried again.
            recordings.keep(keeper.hash.as_bytes(), LATE);
            false
        }
        _ => true,
    };
    match replayed(&keeper.hash, kept, &json, limits, caller, recordings)? {
        Ok(witness) => return Ok(witness),
        Err(Some(left)) => return calculator::calculate(program, json, within(left.time), caller),
        Err(None) => {}
    }
    let begun = Instant::now();
    let most = if is_first && which == Record::Unbranched { SHORT_STEPS } else { u64::MAX };
    if let Some(witness) = keeper.record(&json, limits, caller, which, most)? {
        return Ok(witness);
    }
    calculator::calculate(program, json, within(begun.elapsed()), caller)
}

/// By what was kept. The error says whether that is a recording.
fn replayed(
    program: &blake3::Hash,
    kept: Option<Vec<u8>>,
    json: &[u8],
    limits: Limits,
    caller: &dyn Caller,
    recordings: &dyn Recordings,
) -> Result<Result<Witness, Option<Left>>> {
    let Some(recording) = kept.as_ref().and_then(|kept| Recording::read(kept, program)) else { return Ok(Err(None)) };
    let begun = Instant::now();
    if let Some(witness) = replay(&recording, json, limits, caller)? {
        recordings.used(Used::Replayed);
        return Ok(Ok(witness));
    }
    recordings.used(Used::Left);
    Ok(Err(Some(Left { program: *program, time: begun.elapsed() })))
}

struct Keeper<'a> {
    program: &'a [u8],
    hash: blake3::Hash,
    recordings: &'a dyn Recordings,
}

impl Keeper<'_> {
    /// Runs the module once, recorded, for so many steps at most. `None` where only a run that is not recorded can say what comes of it.
    fn record(
        &self,
        json: &[u8],
        limits: Limits,
        caller: &dyn Caller,
        which: Record,
        most: u64,
    ) -> Result<Option<Witness>> {
        let begun = Instant::now();
        let within = Limits { steps: limits.steps.min(most), ..limits };
        let mut recorded = calculator::record(self.program, json, (which, true), within, caller);
        let is_recorded =
            |recorded: &Result<Result<_, _>>| !matches!(recorded, Ok(Err(why)) if ![TOO_LITTLE, FAILED].contains(why));
        if which == Record::All && !is_recorded(&recorded) {
            // Guards may do where not all ways can be gone.
            let time = limits.time.map(|time| time.saturating_sub(begun.elapsed()));
            recorded = calculator::record(self.program, json, (which, false), Limits { time, ..within }, caller);
        }
        let recorded = match recorded {
            Ok(recorded) => recorded,
            Err(error @ (Error::Stopped | Error::Limit(Limit::Time, _))) => return Err(error),
            Err(Error::Limit(Limit::Steps, _)) if within.steps < limits.steps => Err(MANY),
            // It is told by the run that is not recorded.
            Err(_) => return Ok(None),
        };
        let proved =
            recorded.and_then(|(line, done)| Ok((self.proved(line, &done, json, limits, caller)?, done.witness)));
        match proved {
            Ok((bytes, witness)) => {
                self.recordings.keep(self.hash.as_bytes(), &bytes);
                self.recordings.used(Used::Recorded);
                Ok(Some(witness))
            }
            Err(why) => {
                // Another time there may be more memory or time, or right inputs.
                let marker = match why {
                    TOO_LITTLE | ENDED | FAILED => None,
                    BRANCHED | STRAYED | TOO_MANY => Some(BRANCHES),
                    MANY => Some(LONG),
                    _ => Some(&b""[..]),
                };
                marker.iter().for_each(|marker| self.recordings.keep(self.hash.as_bytes(), marker));
                self.recordings.used(Used::Refused(why));
                Ok(None)
            }
        }
    }

    /// A recording's bytes, which have given the run's witness again.
    fn proved(
        &self,
        line: Line,
        done: &Done,
        json: &[u8],
        limits: Limits,
        caller: &dyn Caller,
    ) -> Result<Vec<u8>, &'static str> {
        let field = number(&done.witness).ok_or("its field is not known")?;
        let about = About { program: &self.hash, field, signals: &done.signals };
        let bytes = write(&line, &about).ok_or("it would be too long")?;
        drop(line);
        let recording = Recording::read(&bytes, &self.hash).ok_or("it cannot be read again")?;
        let witness = replay(&recording, json, limits, caller).map_err(|_| ENDED)?.ok_or(TOO_LITTLE)?;
        match witness.values() == done.witness.values() {
            true => Ok(bytes),
            false => Err("it gives another witness"),
        }
    }
}

/// Why this recording was not made, though another time it may be.
pub(crate) const TOO_LITTLE: &str = "there is too little memory for it";
const ENDED: &str = "it was stopped";
pub(crate) const FAILED: &str = "what it asserts does not hold";
/// Why it is made with [`Record::All`] alone: each guard would say one bit of the inputs.
pub(crate) const BRANCHED: &str = "it branches on its inputs, and a recording would say how";
/// Why a first run of a program that takes long is not recorded, but with [`Record::All`].
const MANY: &str = "it takes many steps";

/// What is kept of a program in place of a recording: that its runs branch, and that they are long: one was seen, two were seen, and
/// one was recorded since, of which nothing came.
const BRANCHES: &[u8] = b"branches";
const LONG: &[u8] = b"long";
const AGAIN: &[u8] = b"again";
const LATE: &[u8] = b"late";

/// The number of a witness's field in recordings.
fn number(witness: &Witness) -> Option<u8> {
    let is_its =
        |number: &u8| prime(*number).is_some_and(|prime| prime.map(u64::to_le_bytes).concat() == witness.prime());
    (0..u8::MAX).take_while(|number| prime(*number).is_some()).find(is_its)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::Value;

    struct Nowhere;

    impl Recordings for Nowhere {
        fn find(&self, _: &[u8; 32]) -> Option<Vec<u8>> {
            None
        }

        fn keep(&self, _: &[u8; 32], _: &[u8]) {}
    }

    /// A recording is held against the run that it was made of: one input, which is the second wire.
    #[test]
    fn what_gives_another_witness_is_not_kept() {
        let keeper = Keeper { program: b"", hash: blake3::hash(b"program"), recordings: &Nowhere };
        let proved = |prime: Vec<u8>, second: u8| {
            let line = Line {
                steps: Vec::new(),
                constants: vec![[1, 0, 0, 0]],
                wires: vec![Value::Constant(0), Value::Input(0)],
            };
            let mut values = vec![0; 64];
            (values[0], values[32]) = (1, second);
            let done = Done { signals: vec![("a".into(), 1)], witness: Witness::new(prime, values) };
            keeper.proved(line, &done, br#"{"a": 5}"#, Limits::default(), &|| false).map(drop)
        };
        let bn254 = prime(0).unwrap().map(u64::to_le_bytes).concat();
        assert_eq!(proved(bn254.clone(), 5), Ok(()));
        assert_eq!(proved(bn254, 6), Err("it gives another witness"));
        assert_eq!(proved(vec![97; 32], 5), Err("its field is not known"));
    }
}
