//! Witnesses with recordings that are kept between runs.

use crate::native::{number, prime, Field};
use crate::recording::{replay, write, About, Recording};
use crate::{calculator, graph, Caller, Limits, Result, Witness};
use zeroize::Zeroizing;

/// Where recordings are kept. They hold what a run's course says of its inputs, such as the place in an array that was used: keep them
/// where the inputs may be.
pub trait Recordings: Sync {
    /// What was kept for the program of this hash.
    fn find(&self, program: &blake3::Hash) -> Option<Vec<u8>>;

    /// Keeps a recording of the program, in place of any other. It may as well be dropped.
    fn keep(&self, program: &blake3::Hash, recording: &[u8]);

    /// There is no recording of this run, for this reason.
    fn refused(&self, _why: &str) {}
}

/// [`crate::calculate`], by the recording of an earlier run where there is one that fits these inputs. Else the module is run, and the run
/// is recorded. The witness is the same, and so is each error.
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
) -> Result<Witness> {
    if program.starts_with(graph::FAMILY) {
        return graph::calculate(program, json, limits, caller);
    }
    let hash = blake3::hash(program);
    let kept = recordings.find(&hash);
    let recording = kept.as_ref().and_then(|kept| Recording::read(kept, &hash));
    if let Some(recording) = &recording {
        if let Some(witness) = replay(recording, &json, limits, caller)? {
            return Ok(witness);
        }
        // Another branch is taken than in the recording. One of this run would not fit better.
        return calculator::calculate(program, json, limits, caller);
    }
    let again = Zeroizing::new(json.to_vec());
    calculator::record(program, json, limits, caller, |recorded| {
        let kept = recorded.map_err(str::to_string).and_then(|recorded| {
            let field = field_of(recorded.witness).ok_or("its field is not known")?;
            let about = About { program: &hash, field, signals: &recorded.signals };
            let bytes = write(&recorded.line, &about).ok_or("it would be too long")?;
            drop(recorded.line);
            // The proof of it.
            let recording = Recording::read(&bytes, &hash).ok_or("it cannot be read again")?;
            let witness = replay(&recording, &again, limits, caller).map_err(|error| error.to_string())?;
            let witness = witness.ok_or("it cannot be replayed")?;
            match witness.values() == recorded.witness.values() {
                true => Ok(bytes),
                false => Err("it gives another witness".to_string()),
            }
        });
        match kept {
            Ok(bytes) => recordings.keep(&hash, &bytes),
            Err(why) => recordings.refused(&why),
        }
    })
}

fn field_of(witness: &Witness) -> Option<u8> {
    (0..).map_while(prime).find_map(|prime| {
        let bytes = prime.map(u64::to_le_bytes).concat();
        (bytes == witness.prime()).then(|| number(&Field::new(prime))).flatten()
    })
}
