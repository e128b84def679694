//! `tandem bench serve`: drives a running service, and says what its callers wait for.

use crate::plot::{Plot, PlotFile};
use crate::rows::Rows;
use clap::Args;
use serde_json::{json, Value};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tandem_console::failure::{Failure, Outcome};
use tandem_console::server::Server;
use tandem_console::session::Session;
use tandem_console::{interrupt, report, values};
use tandem_engine::{CurveId, Proof, Publics, Verifier};
use tandem_service::client::{Access, Bytes, CallError, Client, Content, Method};
use zeroize::Zeroizing;

#[derive(Args)]
pub(crate) struct BenchServe {
    /// Proving keys and witnesses in turn; jobs take the pairs one after the other
    #[arg(required = true, num_args = 2.., value_names = ["ZKEY", "WITNESS"], value_parser = values::input())]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    server: Server,
    /// Another node of the same database, which gets jobs in its turn; may be given several times
    #[arg(long, value_name = "ADDRESS")]
    node: Vec<String>,
    /// Callers, each of which submits a job, waits for its proof and submits the next; several numbers are measured one after the other
    #[arg(short = 'c', long, value_name = "NUMBERS", value_delimiter = ',', default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1000))]
    clients: Vec<u32>,
    /// Submit so many jobs a second at random times instead, whatever is done; latency counts from the time at which a job was due
    #[arg(long, value_name = "JOBS", conflicts_with = "clients", value_parser = rate)]
    rate: Option<f64>,
    /// Jobs to measure, after one for each key to warm up
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    jobs: u32,
    /// Append one JSON row for each measurement to this file, or print it on stdout for -
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) plot: PlotFile,
}

/// A service that is not asked for so many is no load.
fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().ok().filter(|rate| (0.001..=1e5).contains(rate));
    rate.ok_or_else(|| "expected jobs a second, from 0.001 to 100000".into())
}

/// Most jobs at random times that are under way at once: each has a thread.
const MOST_OPEN: usize = 512;

/// Seconds that one request waits for a job.
const WAIT: u32 = 5;

/// A key of the service with a witness.
struct Work {
    name: String,
    /// Read once, as a caller has it that has just made it: to read it again for each job would take a share of the service's cores.
    witness: Bytes,
    curve: CurveId,
    verifier: Verifier,
}

/// Where the time of a job goes, one stage after the other.
const STAGES: [&str; 8] = ["submit", "queue", "key", "read", "upload", "turn", "proof", "end"];

/// The stages that [`Seen`] asks for by name, as places in [`STAGES`].
const QUEUE: usize = 1;
const READ: usize = 3;
const UPLOAD: usize = 4;
const TURN: usize = 5;
const PROOF: usize = 6;

/// A job that was done.
struct Done {
    /// From when it was due to when its caller knew that it is done.
    latency: f64,
    /// Seconds of each of [`STAGES`].
    stages: [f64; 8],
    /// When its worker had it, in milliseconds since 1970.
    with_worker: (f64, f64),
    worker: String,
    device: String,
    /// Its number among the pairs of key and witness, and what it gave.
    work: usize,
    proof: Proof,
    publics: Publics,
}

pub(crate) fn run(session: &Session, args: &BenchServe) -> Outcome {
    let rows = Rows::open(session, args.json.as_deref())?;
    let mut plot = Plot::open(&args.plot, "callers", "proofs/s")?;
    let access = Access { token: args.server.token()?, authority: args.server.ca.clone(), own: args.server.own() };
    let client = Client::with(&args.server.server, &access).map_err(|e| Failure::input(format!("--server {e}")))?;
    let others = args.node.iter().map(|node| Client::with(node, &access));
    let others = others.collect::<Result<Vec<_>, _>>().map_err(|e| Failure::input(format!("--node {e}")))?;
    let (pairs, []) = args.files.as_chunks::<2>() else {
        return Err(Failure::input("expected a witness after each key"));
    };
    let works = pairs.iter().map(|[key, witness]| work(session, &client, key, witness)).collect::<Outcome<Vec<_>>>()?;
    for (other, node) in others.iter().zip(&args.node) {
        is_node_of(other, node, &works)?;
    }
    let clients: Vec<Client> = std::iter::once(client).chain(others).collect();
    warm_up(&clients, &works)?;
    let names: Vec<_> = works.iter().map(|work| work.name.as_str()).collect();
    let head = ["callers", "proofs/s", "p50 ms", "p90 ms", "p99 ms", "no job", "no proof", "added ms"];
    let mut table = vec![head.map(String::from).to_vec()];
    let of_stages = std::iter::once("callers").chain(STAGES).map(String::from);
    let (mut stages, mut binds) = (vec![of_stages.collect::<Vec<_>>()], String::new());
    let loads: Vec<Load> = match args.rate {
        Some(rate) => vec![Load::Open(rate)],
        None => args.clients.iter().map(|clients| Load::Closed(*clients)).collect(),
    };
    for load in loads {
        let begun = Instant::now();
        let done = match load {
            Load::Closed(callers) => closed(&clients, &works, callers as usize, args.jobs as usize)?,
            Load::Open(rate) => open(&clients, &works, rate, args.jobs as usize)?,
        };
        let seen = Seen::of(&done, begun.elapsed().as_secs_f64());
        let callers = match load {
            Load::Closed(clients) => clients.to_string(),
            Load::Open(rate) => format!("{rate}/s"),
        };
        verify(&works, &done)?;
        table.push(seen.cells(&callers));
        stages.push(seen.stage_cells(&callers));
        let [what, why] = seen.binds();
        binds += &format!("{callers}: {what}\n  {why}\n");
        let mut row = seen.row();
        match load {
            Load::Closed(clients) => row["clients"] = clients.into(),
            Load::Open(rate) => row["rate"] = rate.into(),
        }
        if clients.len() > 1 {
            row["nodes"] = clients.len().into();
        }
        row["keys"] = names.iter().map(|name| Value::from(*name)).collect();
        rows.append_row(done.first().map_or("", |done| &done.device), row)?;
        if let Load::Closed(clients) = load {
            plot.add("proofs/s", f64::from(clients), seen.rate);
        }
    }
    let stages = report::table(&stages);
    rows.table(&table, &format!("of a job, the middle in ms:\n{stages}\n{binds}"));
    plot.write("Proofs of a service")
}

/// How jobs come.
#[derive(Clone, Copy)]
enum Load {
    /// So many callers, one job each at a time.
    Closed(u32),
    /// So many a second at random times.
    Open(f64),
}

/// Sees to it that the service has the key.
fn work(session: &Session, client: &Client, key: &Path, witness: &Path) -> Outcome<Work> {
    let told = || session.note(&format!("{}: uploading the key, once", key.display()));
    let name = client.give_key(key, told).map_err(failed)?;
    let verifier = Verifier::from_json(tandem_engine::export_vkey(key)?.as_bytes())?;
    let read = std::fs::read(witness).map(Zeroizing::new);
    let read = read.map_err(|e| Failure::input(format!("{}: cannot read: {e}", witness.display())))?;
    Ok(Work { name, witness: Bytes::from_owner(read), curve: verifier.curve(), verifier })
}

/// Fails unless a node knows the keys, which were given to another one.
fn is_node_of(client: &Client, node: &str, works: &[Work]) -> Outcome {
    for work in works {
        match client.get(&format!("/v1/keys/{}", work.name)) {
            Ok(_) => {}
            Err(CallError::Refused { status: 404, .. }) => {
                let why = "it does not have the key that --server has; expected a node of the same database";
                return Err(Failure::input(format!("--node {node}: {why}")));
            }
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(())
}

/// Loads the keys onto the devices of all nodes, and has each key make a proof.
fn warm_up(clients: &[Client], works: &[Work]) -> Outcome {
    for client in clients {
        for work in works {
            interrupt::check()?;
            let path = format!("/v1/keys/{}/preload?wait=60", work.name);
            match client.call(Method::POST, &path, &[], Content::Empty) {
                // Whoever may not, or has no room for all of them, loads a key with its first job.
                Ok(_) | Err(CallError::Refused { .. }) => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }
    for number in 0..works.len() {
        verify(works, &[one(clients, works, number, Instant::now())?])?;
    }
    Ok(())
}

fn failed(error: CallError) -> Failure {
    match error.is_callers() {
        true => Failure::input(error.to_string()),
        false => Failure::device(error.to_string()),
    }
}

/// The job of this number, which was due at a time, from its submission to its proof: works take turns, and after each round of them nodes.
fn one(clients: &[Client], works: &[Work], number: usize, due: Instant) -> Outcome<Done> {
    interrupt::check()?;
    let client = &clients[number / works.len() % clients.len()];
    let number = number % works.len();
    let work = &works[number];
    let path = format!("/v1/jobs?key={}", work.name);
    let sent = Instant::now();
    let mut job = client.call(Method::POST, &path, &[], Content::Bytes(&work.witness)).map_err(failed)?;
    let submit = sent.elapsed().as_secs_f64();
    let id = job["id"].as_str().unwrap_or_default().to_string();
    while !["done", "failed", "cancelled"].iter().any(|state| job["state"] == *state) {
        interrupt::check()?;
        job = client.get(&format!("/v1/jobs/{id}?wait={WAIT}")).map_err(failed)?;
    }
    let (latency, took) = (due.elapsed().as_secs_f64(), sent.elapsed().as_secs_f64());
    if job["state"] != "done" {
        return Err(Failure::device(format!(
            "nothing to measure: the job {id} ended as {}: {}",
            job["state"], job["error"]
        )));
    }
    let result = client.get(&format!("/v1/jobs/{id}/result")).map_err(failed)?;
    let proof = Proof::from_json(work.curve, result["proof"].to_string().as_bytes())?;
    let publics = Publics::from_json(work.curve, result["public"].to_string().as_bytes())?;
    let last = job["attempts"].as_array().and_then(|attempts| attempts.last()).cloned().unwrap_or_default();
    let number_of = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let with_worker = (number_of(&last["begun_ms"]), number_of(&last["ended_ms"]));
    let queue = (with_worker.0 - number_of(&job["created_ms"])).max(0.0) / 1e3;
    let mut stages = [submit, queue, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    for (stage, name) in STAGES.iter().enumerate().filter(|(stage, _)| (QUEUE + 1..=PROOF).contains(stage)) {
        stages[stage] = number_of(&result["times"][*name]);
    }
    // What is left: orders to the worker, the result written down, the caller told.
    stages[PROOF + 1] = (took - stages.iter().sum::<f64>()).max(0.0);
    let (worker, device) = (text(&last["worker"]), text(&result["device"]));
    Ok(Done { latency, stages, with_worker, worker, device, work: number, proof, publics })
}

/// Verifies every proof once more, when the clock has stopped.
fn verify(works: &[Work], done: &[Done]) -> Outcome {
    for done in done {
        interrupt::check()?;
        works[done.work].verifier.verify(&done.publics, &done.proof)?;
    }
    Ok(())
}

fn closed(clients: &[Client], works: &[Work], callers: usize, jobs: usize) -> Outcome<Vec<Done>> {
    let next = AtomicUsize::new(0);
    let caller = || -> Outcome<Vec<Done>> {
        let mut done = Vec::new();
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= jobs {
                return Ok(done);
            }
            done.push(one(clients, works, i, Instant::now())?);
        }
    };
    std::thread::scope(|scope| {
        let spawn = |_| std::thread::Builder::new().spawn_scoped(scope, caller);
        let threads = (0..callers).map(spawn).collect::<std::io::Result<Vec<_>>>();
        let threads = threads.map_err(|e| Failure::device(format!("cannot start {callers} threads: {e}")))?;
        let ended = threads.into_iter().map(|thread| thread.join().unwrap_or_else(|p| std::panic::resume_unwind(p)));
        Ok(ended.collect::<Outcome<Vec<_>>>()?.into_iter().flatten().collect())
    })
}

/// Jobs at the times of a Poisson process: the gaps are exponential.
fn open(clients: &[Client], works: &[Work], rate: f64, jobs: usize) -> Outcome<Vec<Done>> {
    let (done, under_way) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
    let started = Instant::now();
    std::thread::scope(|scope| {
        let mut due = Duration::ZERO;
        for i in 0..jobs {
            // Of the hash of its number: the same times in every run.
            let word = blake3::hash(&i.to_le_bytes());
            let uniform =
                f64::from(u32::from_le_bytes(word.as_bytes()[..4].try_into().unwrap_or_default())) / 2f64.powi(32);
            due += Duration::from_secs_f64(-(1.0 - uniform).ln() / rate);
            std::thread::sleep(due.saturating_sub(started.elapsed()));
            interrupt::check()?;
            if under_way.fetch_add(1, Ordering::SeqCst) >= MOST_OPEN {
                return Err(Failure::device(format!(
                    "{MOST_OPEN} jobs are under way, and {rate} more come each second: the service makes fewer; lower --rate"
                )));
            }
            let (done, under_way) = (&done, &under_way);
            let job = move || {
                let ended = one(clients, works, i, started + due);
                under_way.fetch_sub(1, Ordering::SeqCst);
                done.lock().unwrap_or_else(|p| p.into_inner()).push(ended);
            };
            let begun = std::thread::Builder::new().spawn_scoped(scope, job);
            begun.map_err(|e| Failure::device(format!("cannot start a thread: {e}")))?;
        }
        Ok(())
    })?;
    done.into_inner().unwrap_or_else(|p| p.into_inner()).into_iter().collect()
}

/// What was seen of some jobs.
struct Seen {
    rate: f64,
    jobs: usize,
    /// Least to greatest.
    latencies: Vec<f64>,
    /// The middle of what the service adds to a proof, waiting for others aside.
    added: f64,
    /// The middle of each of [`STAGES`].
    stages: [f64; 8],
    /// Shares of the time in which workers had no job, and made no proof.
    no_job: f64,
    no_proof: f64,
    workers: usize,
}

impl Seen {
    fn of(done: &[Done], seconds: f64) -> Self {
        let sorted = |of: &dyn Fn(&Done) -> f64| {
            let mut values: Vec<f64> = done.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        let mut workers: HashMap<&str, Vec<(f64, f64)>> = HashMap::new();
        for done in done {
            workers.entry(&done.worker).or_default().push(done.with_worker);
        }
        let all = seconds * workers.len().max(1) as f64;
        let worked: f64 = workers.values_mut().map(|spans| covered(spans)).sum::<f64>() / 1e3;
        let proved: f64 = done.iter().map(|done| done.stages[PROOF]).sum();
        let added =
            |done: &Done| done.latency - [QUEUE, TURN, PROOF].map(|stage| done.stages[stage]).iter().sum::<f64>();
        Seen {
            rate: done.len() as f64 / seconds,
            jobs: done.len(),
            latencies: sorted(&|done| done.latency),
            added: percentile(&sorted(&added), 50),
            stages: std::array::from_fn(|stage| percentile(&sorted(&|done| done.stages[stage]), 50)),
            no_job: (1.0 - worked / all).max(0.0),
            no_proof: (1.0 - proved / all).max(0.0),
            workers: workers.len(),
        }
    }

    fn cells(&self, callers: &str) -> Vec<String> {
        let ms = |share| format!("{:.1}", percentile(&self.latencies, share) * 1e3);
        let share = |of: f64| format!("{:.1} %", of * 100.0);
        let rate = format!("{:.2}", self.rate);
        let added = format!("{:.1}", self.added * 1e3);
        vec![callers.into(), rate, ms(50), ms(90), ms(99), share(self.no_job), share(self.no_proof), added]
    }

    fn stage_cells(&self, callers: &str) -> Vec<String> {
        let ms = self.stages.iter().map(|seconds| format!("{:.2}", seconds * 1e3));
        std::iter::once(callers.to_string()).chain(ms).collect()
    }

    /// What more proofs a second would take, and by which figures: a line each.
    fn binds(&self) -> [String; 2] {
        let workers = match self.workers {
            1 => "the worker".into(),
            n => format!("{n} workers"),
        };
        let without =
            |what: &str, share: f64| format!("{workers} without a {what} for {:.0} % of the time", share * 100.0);
        if self.no_job > 0.1 {
            let submit = self.stages[0] * 1e3;
            return ["callers bind".into(), format!("{}; submitting: {submit:.1} ms", without("job", self.no_job))];
        }
        let idle = without("proof", self.no_proof);
        let beside = (self.stages[READ] + self.stages[UPLOAD]) * 1e3;
        match self.no_proof > 0.05 {
            // The device is there before the witness is.
            true if beside > self.stages[TURN] * 1e3 => {
                ["witnesses bind".into(), format!("{idle}; read and upload: {beside:.1} ms")]
            }
            true => ["what is between proofs binds".into(), format!("{idle}, though jobs wait")],
            false => ["proofs bind".into(), idle],
        }
    }

    fn row(&self) -> Value {
        let ms = |share| report::round(percentile(&self.latencies, share) * 1e3);
        let stages = STAGES.iter().zip(self.stages).map(|(name, seconds)| (*name, report::round(seconds * 1e3)));
        json!({
            "what": "serve", "runs": self.jobs, "proofs_per_s": report::round(self.rate), "workers": self.workers,
            "ms_median": ms(50), "ms_p90": ms(90), "ms_p99": ms(99), "ms_max": ms(100),
            "idle": report::round(self.no_job), "no_proof": report::round(self.no_proof),
            "ms_added": report::round(self.added * 1e3), "ms_stages": stages.collect::<HashMap<_, _>>(),
        })
    }
}

/// How much of the line some spans cover together.
fn covered(spans: &mut [(f64, f64)]) -> f64 {
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut sum, mut end) = (0.0, f64::NEG_INFINITY);
    for &mut (from, to) in spans {
        sum += (to - from.max(end)).max(0.0);
        end = end.max(to);
    }
    sum
}

/// The value that `share` of a hundred values do not exceed, of values from the least to the greatest.
fn percentile(sorted: &[f64], share: usize) -> f64 {
    match (sorted.len() * share).div_ceil(100) {
        0 => sorted.first().copied().unwrap_or(f64::NAN),
        rank => sorted[rank - 1],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_seen() {
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        assert_eq!([0, 50, 51, 90, 99, 100].map(|share| percentile(&values, share)), [1.0, 5.0, 6.0, 9.0, 10.0, 10.0]);
        assert!(percentile(&[], 50).is_nan());
    }

    #[test]
    fn spans_that_overlap_count_once() {
        assert_eq!(covered(&mut []), 0.0);
        assert_eq!(covered(&mut [(4.0, 6.0), (0.0, 2.0), (1.0, 3.0), (1.5, 1.75), (6.0, 7.0)]), 6.0);
    }

    /// Two jobs with a worker from `begun` to `ended`.
    fn seen(spans: [(f64, f64); 2], read: f64, turn: f64, proof: f64, seconds: f64) -> Seen {
        let publics = Publics::from_json(CurveId::Bn254, b"[]").unwrap();
        let proof_of_zeros = Proof::from_bytes(CurveId::Bn254, &[0; 256]).unwrap();
        let done = spans.map(|(begun, ended)| Done {
            latency: 1.5,
            stages: [0.1, 0.2, 0.0, read, 0.0, turn, proof, 0.1],
            with_worker: (begun * 1e3, ended * 1e3),
            worker: "cpu-0".into(),
            device: "CPU".into(),
            work: 0,
            proof: proof_of_zeros.clone(),
            publics: publics.clone(),
        });
        Seen::of(&done, seconds)
    }

    #[test]
    fn what_binds_is_named() {
        let callers = seen([(0.0, 1.0), (2.0, 3.0)], 0.1, 0.3, 0.9, 4.0);
        assert_eq!((callers.rate, callers.workers, (callers.no_job * 100.0).round()), (0.5, 1, 50.0));
        assert!((callers.added - 0.1).abs() < 1e-9 && (callers.stages[PROOF] - 0.9).abs() < 1e-9);
        let said = |seen: &Seen| seen.binds().join(": ");
        assert!(said(&callers).starts_with("callers bind: ") && said(&callers).ends_with("100.0 ms"));
        // Both with the worker all the time: they overlap.
        let both = [(0.0, 2.0), (0.0, 2.0)];
        let witnesses = seen(both, 0.9, 0.3, 0.6, 2.0);
        assert!(witnesses.no_job < 1e-9 && (witnesses.no_proof - 0.4).abs() < 1e-9);
        assert!(said(&witnesses).starts_with("witnesses bind: ") && said(&witnesses).contains("40 %"));
        assert!(said(&seen(both, 0.1, 0.3, 0.6, 2.0)).starts_with("what is between proofs binds: "));
        // Several are read at a time: each takes longer than a proof, and waits for the device all the same.
        assert!(said(&seen(both, 0.9, 1.2, 0.6, 2.0)).starts_with("what is between proofs binds: "));
        assert!(said(&seen(both, 0.1, 0.3, 0.98, 2.0)).starts_with("proofs bind: the worker without a proof for 2 %"));
        assert_eq!((callers.cells("2").len(), callers.stage_cells("2").len()), (8, 1 + STAGES.len()));
        // The longest of each fit a terminal.
        for mut seen in [callers, witnesses, seen(both, 0.1, 0.3, 0.6, 2.0), seen(both, 0.1, 0.3, 0.98, 2.0)] {
            seen.workers = 99;
            seen.stages = seen.stages.map(|seconds| seconds * 1e3);
            let said = seen.binds();
            assert!(said.iter().all(|line| line.len() <= 78), "{said:?}");
        }
    }

    #[test]
    fn rates_are_those_of_a_load() {
        assert_eq!(rate("2.5"), Ok(2.5));
        for wrong in ["0", "-1", "nan", "inf", "x", ""] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }
}
