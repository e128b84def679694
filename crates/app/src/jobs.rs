//! The clients of a service: submit, status, wait, cancel, keys.

use clap::{Args, Subcommand};
use serde_json::{json, Value};
use std::fs::File;
use std::io::{BufWriter, Read};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tandem_console::failure::{Failure, Outcome};
use tandem_console::files::Outputs;
use tandem_console::options::Json;
use tandem_console::server::Server;
use tandem_console::session::Session;
use tandem_console::values::{input, output};
use tandem_console::{interrupt, report};
use tandem_engine::Witness;
use tandem_formats::FileKind;
use tandem_service::client::{Access, CallError, Client, Content, Method};

/// A service that is being started again is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Bytes that tell what a file is.
const START: u64 = 4096;

/// Bytes that go into a pipe at a time.
const PIECE: usize = 1 << 20;

/// Seconds that one request waits for a job.
pub(crate) const WAIT: u32 = 2;

/// Which service.
#[derive(Args)]
pub(crate) struct Service {
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    json: Json,
}

#[derive(Args)]
pub(crate) struct Submit {
    /// A .zkey file, which is uploaded unless the service has it, or the name of a key of the service
    key: PathBuf,
    /// The witness, or the circuit's inputs as JSON
    #[arg(value_parser = input())]
    pub(crate) witness: PathBuf,
    /// Where to write the proof, after waiting for it
    #[arg(value_parser = output(), requires = "public")]
    proof: Option<PathBuf>,
    /// Where to write the public signals
    #[arg(value_parser = output())]
    public: Option<PathBuf>,
    /// For a key of bellperson (params), which holds no matrices: the circuit that it was made of. It stays here
    #[arg(long, value_name = "R1CS", value_parser = input())]
    pub(crate) r1cs: Option<PathBuf>,
    /// An id of yours: submitted again with the same key and witness it is the same job
    #[arg(long)]
    id: Option<String>,
    /// The more, the sooner: -100 to 100
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    priority: i32,
    /// Fail unless the proof is there so soon
    #[arg(long, value_name = "SECONDS")]
    deadline: Option<u32>,
    #[command(flatten)]
    service: Service,
}

#[derive(Args)]
pub(crate) struct Status {
    /// The job; all unless given
    id: Option<String>,
    #[command(flatten)]
    service: Service,
}

#[derive(Args)]
pub(crate) struct Wait {
    /// The job
    id: String,
    /// Where to write the proof
    #[arg(value_parser = output(), requires = "public")]
    proof: Option<PathBuf>,
    /// Where to write the public signals
    #[arg(value_parser = output())]
    public: Option<PathBuf>,
    #[command(flatten)]
    service: Service,
}

#[derive(Args)]
pub(crate) struct Cancel {
    /// The job
    id: String,
    #[command(flatten)]
    service: Service,
}

#[derive(Subcommand)]
pub(crate) enum Keys {
    /// List the keys, and the workers that have them on their devices
    #[command(after_help = "Example:\n  tandem keys list --json")]
    List {
        #[command(flatten)]
        service: Service,
    },
    /// Give a key to the service under a name
    #[command(
        after_help = "Examples:\n  tandem keys add withdraw withdraw.zkey\n  tandem keys add withdraw withdraw.zkey --wasm withdraw.wasm\n  \
        tandem keys add withdraw withdraw.zkey --by-path"
    )]
    Add {
        /// Its name
        name: String,
        /// The .zkey file; with --by-path, where it lies in the service's key_folder
        file: PathBuf,
        /// The circuit's WebAssembly, or a graph of circom-witnesscalc: the service then takes inputs, too
        #[arg(long, value_name = "PROGRAM")]
        wasm: Option<PathBuf>,
        /// Send no file: the service reads it from its key_folder
        #[arg(long)]
        by_path: bool,
        #[command(flatten)]
        service: Service,
    },
    /// Load a key onto the devices before a job needs it, and wait until it is there
    #[command(after_help = "Example:\n  tandem keys preload withdraw")]
    Preload {
        /// Its name
        name: String,
        #[command(flatten)]
        service: Service,
    },
    /// Take a key off the devices where it is idle
    #[command(after_help = "Example:\n  tandem keys evict withdraw")]
    Evict {
        /// Its name
        name: String,
        #[command(flatten)]
        service: Service,
    },
    /// Make the service forget a key, with the jobs that ended with it
    #[command(after_help = "Example:\n  tandem keys remove withdraw")]
    Remove {
        /// Its name
        name: String,
        #[command(flatten)]
        service: Service,
    },
}

impl Submit {
    pub(crate) fn outputs(&self) -> Vec<PathBuf> {
        self.proof.iter().chain(&self.public).cloned().collect()
    }
}

impl Wait {
    pub(crate) fn outputs(&self) -> Vec<PathBuf> {
        self.proof.iter().chain(&self.public).cloned().collect()
    }
}

impl Service {
    pub(crate) fn client(&self) -> Outcome<Client> {
        let access = Access { token: self.server.token()?, authority: self.server.ca.clone(), own: self.server.own() };
        Client::with(&self.server.server, &access).map_err(|e| Failure::input(format!("--server {e}")))
    }

    pub(crate) fn tell(&self, value: &Value, text: impl FnOnce(&Value) -> String) {
        report::result(&if self.json.json { value.to_string() } else { text(value) });
    }
}

pub(crate) fn failure(error: CallError) -> Failure {
    match error.is_callers() {
        true => Failure::input(error.to_string()),
        false => Failure::device(error.to_string()),
    }
}

/// A part of an address: other letters than those of ids and names are none of ours.
fn part(text: &str) -> Outcome<&str> {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    match !text.is_empty() && text.bytes().all(is_plain) {
        true => Ok(text),
        false => Err(Failure::input(format!(
            "'{text}' can be no id and no name: expected letters, digits, '-', '_' and '.'"
        ))),
    }
}

pub(crate) fn submit(session: &Session, args: &Submit) -> Outcome {
    let client = args.service.client()?;
    let outputs = args.outputs();
    let files = open(&outputs)?;
    let key = key(session, &client, &args.key)?;
    let mut path = format!("/v1/jobs?key={key}&priority={}", args.priority);
    path += &args.deadline.map_or(String::new(), |seconds| format!("&deadline_seconds={seconds}"));
    let headers: Vec<_> = args.id.iter().map(|id| ("idempotency-key", id.as_str())).collect();
    let call = |content: Content<'_>| client.call(Method::POST, &path, &headers, content).map_err(failure);
    let job = match &args.r1cs {
        Some(r1cs) => with_sides(&args.witness, r1cs, |witness| call(Content::File(witness)))?,
        None if is_json(&args.witness)? => call(Content::JsonFile(&args.witness))?,
        None => call(Content::File(&args.witness))?,
    };
    let id = text(&job["id"]);
    if files.is_none() {
        args.service.tell(&job, |_| id.clone());
        return Ok(());
    }
    session.note(&format!("job {id}"));
    finish(&client, &args.service, &id, files, &outputs)
}

/// Computes the sides of the circuit's constraints, and calls `send` with a pipe that a witness with these comes out of: it lies in no file.
fn with_sides<T>(witness: &Path, r1cs: &Path, send: impl FnOnce(&Path) -> Outcome<T>) -> Outcome<T> {
    let of_circuit = Witness::read(witness)?.with_circuit(r1cs)?;
    let no_pipe = |e: std::io::Error| Failure::device(format!("no pipe can be made: {e}"));
    let (from, to) = std::io::pipe().map_err(no_pipe)?;
    std::thread::scope(|scope| {
        let written = scope.spawn(move || of_circuit.write_with_sides(BufWriter::with_capacity(PIECE, to)));
        let sent = send(Path::new(&format!("/dev/fd/{}", from.as_raw_fd())));
        // Who still writes hears that nobody reads.
        drop(from);
        let written = written.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let answer = sent?;
        written.map_err(|e| Failure::file(witness, format!("cannot send: {e}")))?;
        Ok(answer)
    })
}

/// Whether a file has inputs. A pipe has a witness: it can be read only once.
fn is_json(path: &Path) -> Outcome<bool> {
    if !path.is_file() {
        return Ok(false);
    }
    let mut start = Vec::new();
    let unread = |e: std::io::Error| Failure::file(path, format!("cannot read: {e}"));
    File::open(path).map_err(unread)?.take(START).read_to_end(&mut start).map_err(unread)?;
    Ok(FileKind::of(&start) == Some(FileKind::Json))
}

/// The name of the key at the service, which gets the file if it does not have it: by the name of its content.
pub(crate) fn key(session: &Session, client: &Client, key: &Path) -> Outcome<String> {
    if !key.exists() {
        return match key.to_str().map(part) {
            Some(Ok(name)) => Ok(name.into()),
            _ => Err(Failure::file(key, "no such file, and this can be no name of a key")),
        };
    }
    let told = || session.note(&format!("{}: uploading the key, once", key.display()));
    client.give_key(key, told).map_err(failure)
}

/// A key's name as it fits into a table of 80 columns; `--json` has all of it.
fn short(name: &Value) -> String {
    const MOST: usize = 24;
    let name = text(name);
    match name.char_indices().nth(MOST) {
        None => name,
        Some(_) => name.chars().take(MOST - 3).chain("...".chars()).collect(),
    }
}

pub(crate) fn status(args: &Status) -> Outcome {
    let client = args.service.client()?;
    let Some(id) = &args.id else {
        let jobs = client.get("/v1/jobs").map_err(failure)?;
        args.service.tell(&jobs, |jobs| {
            let jobs = jobs["jobs"].as_array().map_or(&[][..], Vec::as_slice);
            let row =
                |job: &Value| vec![text(&job["id"]), text(&job["state"]), text(&job["attempt"]), short(&job["key"])];
            let head = ["id", "state", "attempts", "key"].map(String::from).to_vec();
            report::table(&std::iter::once(head).chain(jobs.iter().map(row)).collect::<Vec<_>>())
        });
        return Ok(());
    };
    let job = client.get(&format!("/v1/jobs/{}", part(id)?)).map_err(failure)?;
    args.service.tell(&job, |job| {
        let mut lines = vec![format!("{} {}", text(&job["id"]), text(&job["state"]))];
        lines.extend(job["error"]["message"].as_str().map(String::from));
        for attempt in job["attempts"].as_array().into_iter().flatten() {
            let what = attempt["code"].as_str().unwrap_or("running");
            let why = attempt["message"].as_str().map_or(String::new(), |why| format!(": {why}"));
            lines.push(format!("attempt {} on {}: {what}{why}", text(&attempt["attempt"]), text(&attempt["worker"])));
        }
        lines.join("\n")
    });
    Ok(())
}

pub(crate) fn wait(session: &Session, args: &Wait) -> Outcome {
    let client = args.service.client()?;
    let outputs = args.outputs();
    let files = open(&outputs)?;
    session.bars.clear();
    finish(&client, &args.service, part(&args.id)?, files, &outputs)
}

pub(crate) fn cancel(args: &Cancel) -> Outcome {
    let path = format!("/v1/jobs/{}/cancel", part(&args.id)?);
    let job = args.service.client()?.call(Method::POST, &path, &[], Content::Empty).map_err(failure)?;
    args.service.tell(&job, |job| format!("{} {}", text(&job["id"]), text(&job["state"])));
    Ok(())
}

pub(crate) fn keys(what: &Keys) -> Outcome {
    let path = |name: &str| Ok::<_, Failure>(format!("/v1/keys/{}", part(name)?));
    match what {
        Keys::List { service } => {
            let keys = service.client()?.get("/v1/keys").map_err(failure)?;
            service.tell(&keys, |keys| {
                let keys = keys["keys"].as_array().map_or(&[][..], Vec::as_slice);
                let on = |key: &Value| key["on"].as_array().map_or(0, Vec::len).to_string();
                let row = |key: &Value| {
                    vec![short(&key["name"]), text(&key["curve"]), text(&key["domain"]), text(&key["bytes"]), on(key)]
                };
                let head = ["name", "curve", "rows", "bytes", "workers"].map(String::from).to_vec();
                report::table(&std::iter::once(head).chain(keys.iter().map(row)).collect::<Vec<_>>())
            });
        }
        Keys::Add { name, file, wasm, by_path, service } => {
            let client = service.client()?;
            let key = match by_path {
                true => {
                    let wanted = json!({"name": part(name)?, "path": file, "program": wasm});
                    client.call(Method::POST, "/v1/keys", &[], Content::Json(&wanted))
                }
                false => {
                    let key = client.call(Method::PUT, &path(name)?, &[], Content::File(file));
                    match (key, wasm) {
                        (Ok(_), Some(program)) => {
                            let path = format!("{}/program", path(name)?);
                            client.call(Method::PUT, &path, &[], Content::File(program))
                        }
                        (key, _) => key,
                    }
                }
            };
            service.tell(&key.map_err(failure)?, |key| text(&key["name"]));
        }
        Keys::Preload { name, service } => {
            let client = service.client()?;
            let path = format!("{}/preload?wait={WAIT}", path(name)?);
            // Each time it waits for as long as the service allows.
            let (key, on) = loop {
                let key = client.call(Method::POST, &path, &[], Content::Empty).map_err(failure)?;
                let is_loading = key["loading"] == true;
                let on: Vec<String> = key["on"].as_array().map_or(Vec::new(), |on| on.iter().map(text).collect());
                if !is_loading {
                    break (key, on.join(", "));
                }
            };
            service.tell(&key, |key| format!("{} on {on}", text(&key["name"])));
        }
        Keys::Evict { name, service } => {
            let told = service.client()?.call(Method::POST, &format!("{}/evict", path(name)?), &[], Content::Empty);
            service.tell(&told.map_err(failure)?, |_| name.clone());
        }
        Keys::Remove { name, service } => {
            let told = service.client()?.call(Method::DELETE, &path(name)?, &[], Content::Empty);
            service.tell(&told.map_err(failure)?, |_| name.clone());
        }
    }
    Ok(())
}

fn open(outputs: &[PathBuf]) -> Outcome<Option<Outputs>> {
    let paths: Vec<&Path> = outputs.iter().map(PathBuf::as_path).collect();
    if paths.is_empty() {
        return Ok(None);
    }
    Outputs::open(&paths).map(Some)
}

/// Waits for a job, writes its result, and says how it ended.
fn finish(client: &Client, service: &Service, id: &str, files: Option<Outputs>, outputs: &[PathBuf]) -> Outcome {
    let job = ended(client, id)?;
    match job["state"].as_str() {
        Some("done") => {}
        Some("cancelled") => return Err(Failure::input(format!("the job {id} was cancelled"))),
        _ => {
            let (code, why) = (job["error"]["code"].as_str().unwrap_or(""), text(&job["error"]["message"]));
            let message = format!("the job {id} failed: {why}");
            return Err(match code {
                "bad_input" | "unsatisfied" | "deadline" | "witness_lost" | "key_lost" => Failure::input(message),
                _ => Failure::device(message),
            });
        }
    }
    let result = client.get(&format!("/v1/jobs/{id}/result")).map_err(failure)?;
    if let Some(files) = files {
        files.commit(&[result["proof"].to_string(), result["public"].to_string()])?;
    }
    service.tell(&result, |result| match outputs.first() {
        Some(proof) => format!("{}: proved and verified on {}", proof.display(), text(&result["device"])),
        None => format!("{id} done"),
    });
    Ok(())
}

/// The job when nothing more happens to it.
fn ended(client: &Client, id: &str) -> Outcome<Value> {
    let mut answered = Instant::now();
    loop {
        interrupt::check()?;
        match client.get(&format!("/v1/jobs/{id}?wait={WAIT}")) {
            Ok(job) if ["done", "failed", "cancelled"].iter().any(|state| job["state"] == *state) => return Ok(job),
            Ok(_) => answered = Instant::now(),
            Err(CallError::Unreachable(_)) if answered.elapsed() < PATIENCE => {}
            Err(error) => return Err(failure(error)),
        }
        // A service that drains answers at once.
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), String::from)
}
