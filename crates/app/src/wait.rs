//! `tandem prove --wait`: a process that stays ready, and takes jobs from stdin.
//!
//! Each line is a JSON object, and so is each answer on stdout. A job that fails is answered, and the next one is taken.

use crate::{circuit, cli};
use clap::{Args, FromArgMatches};
use serde::Deserialize;
use serde_json::{json, Value};
use std::io::{BufRead, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{sync_channel, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tandem_console::failure::{Failure, Outcome};
use tandem_console::files::{self, Outputs};
use tandem_console::options::Schedule;
use tandem_console::session::Session;
use tandem_console::{interrupt, report};
use tandem_engine::{Fallback, KeyStore, Proved, StoredKey, Witness};
use tandem_formats::place::Place;

/// Bytes of a line. What is longer is read to its end and refused.
const LINE_BYTES: usize = 64 << 10;

/// Lines that are read ahead.
const AHEAD: usize = 2;

/// How often who waits for a line looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(50);

/// A proof to make, as a line says it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Job {
    /// Stands in the answer.
    #[serde(default)]
    id: Value,
    zkey: PathBuf,
    witness: Option<PathBuf>,
    input: Option<PathBuf>,
    wasm: Option<PathBuf>,
    proof: PathBuf,
    public: PathBuf,
}

/// Where a job's witness comes from.
enum Origin<'a> {
    File(&'a Path),
    Circuit { wasm: &'a Path, input: &'a Path },
}

/// A line of stdin by its number, from 1 on; an error for one that is no job.
type Line = (u64, Result<Vec<u8>, String>);

/// Takes jobs until stdin ends; keys that stay loaded take so many bytes.
pub(crate) fn prove(session: &Session, key_bytes: u64) -> Outcome {
    let opened = session.open()?;
    // Where GPUs share each proof, a second caller reads and uploads the next witness meanwhile.
    let lanes = opened.engine.report().lanes.len();
    let callers = if matches!(session.schedule, Schedule::Each) { 2 * lanes.max(1) } else { 2 };
    let (sender, lines) = sync_channel(AHEAD);
    // Not joined: it may wait for a line that never comes.
    let reader = std::thread::Builder::new().name("jobs".into()).spawn(move || read(&sender));
    reader.map_err(|e| Failure::device(format!("no thread can be started: {e}")))?;
    let worker = Worker {
        session,
        limits: limits()?,
        keys: KeyStore::new(opened.engine, key_bytes),
        lines: Mutex::new(lines),
        is_over: AtomicBool::new(false),
    };
    std::thread::scope(|scope| {
        let spawn = |_| std::thread::Builder::new().spawn_scoped(scope, || worker.work());
        // Where no more threads can be started, there are fewer callers; this thread is one of them.
        let threads: Vec<_> = (1..callers).map_while(|i| spawn(i).ok()).collect();
        let own = worker.work();
        let ended = threads.into_iter().map(|thread| thread.join().unwrap_or_else(|p| std::panic::resume_unwind(p)));
        std::iter::once(own).chain(ended.collect::<Vec<Outcome>>()).collect()
    })
}

/// The bounds of circuits' programs: those of the environment, else the defaults.
fn limits() -> Outcome<cli::Limits> {
    let command = cli::Limits::augment_args(clap::Command::new("limits"));
    let matches = command.try_get_matches_from(["limits"]);
    let limits = matches.and_then(|matches| cli::Limits::from_arg_matches(&matches));
    limits.map_err(|e| Failure::input(e.to_string().lines().next().unwrap_or_default().to_string()))
}

/// Reads lines from stdin until it ends, or nobody wants them.
fn read(to: &SyncSender<Line>) {
    let mut stdin = std::io::stdin().lock();
    for number in 1.. {
        let line = match line(&mut stdin) {
            Ok(None) => return,
            Ok(Some(line)) => line,
            Err(error) => {
                _ = to.send((number, Err(format!("cannot read stdin: {error}"))));
                return;
            }
        };
        if to.send((number, line)).is_err() {
            return;
        }
    }
}

/// The next line without its end; an error text for one that is too long, `None` at the end.
fn line(from: &mut impl BufRead) -> std::io::Result<Option<Result<Vec<u8>, String>>> {
    let mut line = Vec::new();
    from.by_ref().take(LINE_BYTES as u64 + 1).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.pop_if(|last| *last == b'\n').is_some() || line.len() <= LINE_BYTES {
        return Ok(Some(Ok(line)));
    }
    from.skip_until(b'\n')?;
    Ok(Some(Err(format!("expected a line of at most {LINE_BYTES} bytes, this one is longer"))))
}

struct Worker<'a> {
    session: &'a Session,
    limits: cli::Limits,
    keys: KeyStore,
    lines: Mutex<Receiver<Line>>,
    /// Nobody reads the answers any more, or the user has asked to stop.
    is_over: AtomicBool,
}

impl Worker<'_> {
    /// Takes jobs until there are none.
    fn work(&self) -> Outcome {
        while let Some((number, line)) = self.next() {
            let begun = Instant::now();
            let blank = |line: &[u8]| line.iter().all(u8::is_ascii_whitespace);
            let (id, done) = match line {
                Err(why) => (Value::Null, Err(Failure::input(why))),
                Ok(line) if blank(&line) => continue,
                Ok(line) => match serde_json::from_slice::<Job>(&line) {
                    Err(error) => (id_of(&line), Err(Failure::input(format!("the line is no job: {error}")))),
                    Ok(job) => {
                        let done = self.job(&job).map(|proved| (job.proof, job.public, proved));
                        (job.id, done)
                    }
                },
            };
            if interrupt::asked() {
                self.is_over.store(true, Ordering::Relaxed);
                return interrupt::check();
            }
            report::result(&answer(&id, number, begun, done).to_string());
            if !report::is_read() {
                self.is_over.store(true, Ordering::Relaxed);
            }
        }
        interrupt::check()
    }

    fn next(&self) -> Option<Line> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if self.is_over.load(Ordering::Relaxed) || interrupt::asked() {
                return None;
            }
            match lines.recv_timeout(LOOK) {
                Ok(line) => return Some(line),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    fn job(&self, job: &Job) -> Outcome<Proved> {
        let from = job.from()?;
        let outputs = Outputs::open(&[&job.proof, &job.public])?;
        let bars = &self.session.bars;
        let key = self.key(&job.zkey)?;
        let witness = match from {
            Origin::File(path) => self.keys.engine().read_witness_for(path, &key)?,
            Origin::Circuit { wasm, input } => {
                let (curve, values) = circuit::compute(self.session, wasm, input, &self.limits)?;
                Witness::from_values(curve, values.into_vec())?
            }
        };
        // Beside the proof in hand.
        let staged = self.keys.engine().stage(&key, witness, bars)?;
        let proved = self.keys.engine().prove_staged(&key, staged, bars)?;
        crate::commands::tell_troubles(self.session, &proved);
        outputs.commit(&[&proved.proof.to_json(), &proved.publics.to_json()])?;
        Ok(proved)
    }

    /// A key by its path and what its file is now: one that was replaced is another key.
    fn key(&self, zkey: &Path) -> Outcome<StoredKey> {
        let file = zkey.metadata().map_err(|e| Failure::file(zkey, format!("cannot open: {e}")))?;
        let (path, bytes, node) = (zkey.display(), file.len(), file.ino());
        let name = format!("{path} ({bytes} bytes, file {node}, {}.{:09})", file.mtime(), file.mtime_nsec());
        self.keys.add_file(&name, zkey)?;
        Ok(self.keys.get(&name, &self.session.bars)?)
    }
}

impl Job {
    /// Where its witness comes from, after a look at what it names.
    fn from(&self) -> Outcome<Origin<'_>> {
        if !(self.id.is_null() || self.id.is_string() || self.id.is_number()) {
            return Err(Failure::input("expected a text or a number as id"));
        }
        let (from, mut inputs) = match (&self.witness, &self.wasm, &self.input) {
            (Some(witness), None, None) => (Origin::File(witness), vec![witness.clone()]),
            (None, Some(wasm), Some(input)) => (Origin::Circuit { wasm, input }, vec![wasm.clone(), input.clone()]),
            _ => return Err(Failure::input("expected either witness, or wasm and input")),
        };
        inputs.push(self.zkey.clone());
        let outputs = [self.proof.clone(), self.public.clone()];
        for path in inputs.iter().chain(&outputs) {
            if matches!(Place::of(path), Ok(Place::Open(_) | Place::OpenElsewhere(_))) {
                return Err(Failure::file(
                    path,
                    "is open already; name a file: stdin and stdout are those of the jobs",
                ));
            }
        }
        files::check(&outputs, &inputs)?;
        Ok(from)
    }
}

/// The id of a line that is no job, if it can be told.
fn id_of(line: &[u8]) -> Value {
    let mut line = serde_json::from_slice::<Value>(line).unwrap_or_default();
    let id = line.get_mut("id").map(Value::take).unwrap_or_default();
    if id.is_string() || id.is_number() {
        id
    } else {
        Value::Null
    }
}

fn answer(id: &Value, line: u64, begun: Instant, done: Outcome<(PathBuf, PathBuf, Proved)>) -> Value {
    let seconds = report::round(begun.elapsed().as_secs_f64());
    match done {
        Ok((proof, public, proved)) => json!({
            "id": id, "line": line, "ok": true, "proof": proof, "public": public, "seconds": seconds,
            "proof_seconds": report::round(proved.seconds), "device": proved.device, "fallback": proved.fallback.as_ref().map(Fallback::as_str),
        }),
        Err(failure) => json!({
            "id": id, "line": line, "ok": false, "status": failure.exit_status(), "error": failure.to_string(),
            "seconds": seconds,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines as they are read from a text, those that are too long as `None`.
    fn lines(text: &[u8]) -> Vec<Option<usize>> {
        let mut from = std::io::BufReader::with_capacity(7, text);
        let next = || line(&mut from).unwrap();
        std::iter::from_fn(next).map(|line| line.ok().map(|line| line.len())).collect()
    }

    #[test]
    fn lines_are_bounded() {
        let of = |length: usize| vec![b'x'; length];
        assert_eq!(lines(b""), []);
        assert_eq!(lines(b"a\n\nbc"), [Some(1), Some(0), Some(2)]);
        for (length, expected) in [(LINE_BYTES, Some(LINE_BYTES)), (LINE_BYTES + 1, None), (5 * LINE_BYTES, None)] {
            assert_eq!(lines(&of(length)), [expected]);
            assert_eq!(lines(&[&of(length)[..], b"\nnext\n"].concat()), [expected, Some(4)]);
        }
    }

    #[test]
    fn limits_have_defaults() {
        assert!(limits().is_ok_and(|limits| limits.memory_bytes() > 0 && !limits.native));
    }
}
