//! Several jobs of one key as one, and what a service did: clients of a service.

use crate::jobs::{failure, key, text, Service, PATIENCE, WAIT};
use clap::Args;
use serde_json::Value;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tandem_console::failure::{Failure, Outcome};
use tandem_console::files::Outputs;
use tandem_console::session::Session;
use tandem_console::values::{input, output};
use tandem_console::{interrupt, report};
use tandem_service::client::{CallError, Client, Content, Method};

#[derive(Args)]
pub(crate) struct Batch {
    /// A .zkey file, which is uploaded unless the service has it, or the name of a key of the service
    key: PathBuf,
    /// Witnesses (.wtns), and inputs (.json) where the key has a program
    #[arg(required = true, value_parser = input())]
    pub(crate) files: Vec<PathBuf>,
    /// Wait, and write the proofs and their public signals into this folder
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// An id of yours: submitted again with the same key and files it is the same batch
    #[arg(long)]
    id: Option<String>,
    /// The more, the sooner: -100 to 100
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    priority: i32,
    /// Fail those whose proof is not there so soon
    #[arg(long, value_name = "SECONDS")]
    deadline: Option<u32>,
    #[command(flatten)]
    service: Service,
}

#[derive(Args)]
pub(crate) struct Trace {
    /// Where to write it
    #[arg(value_parser = output())]
    pub(crate) file: PathBuf,
    /// How far it goes back
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1440))]
    minutes: u32,
    #[command(flatten)]
    service: Service,
}

impl Batch {
    /// A proof and its public signals for each file.
    pub(crate) fn outputs(&self) -> Vec<PathBuf> {
        let Some(folder) = &self.out else { return Vec::new() };
        let of = |file: &PathBuf| {
            let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            ["proof", "public"].map(|what| folder.join(format!("{stem}.{what}.json")))
        };
        self.files.iter().flat_map(of).collect()
    }
}

pub(crate) fn run(session: &Session, args: &Batch) -> Outcome {
    let client = args.service.client()?;
    let outputs = args.outputs();
    if let Some(folder) = &args.out {
        std::fs::create_dir_all(folder).map_err(|e| Failure::file(folder, format!("cannot make the folder: {e}")))?;
    }
    let key = key(session, &client, &args.key)?;
    let mut path = format!("/v1/batches?key={key}&priority={}", args.priority);
    path += &args.deadline.map_or(String::new(), |seconds| format!("&deadline_seconds={seconds}"));
    let headers: Vec<_> = args.id.iter().map(|id| ("idempotency-key", id.as_str())).collect();
    let batch = client.call(Method::POST, &path, &headers, Content::Archive(&args.files)).map_err(failure)?;
    let id = text(&batch["id"]);
    if args.out.is_none() {
        args.service.tell(&batch, |_| id.clone());
        return Ok(());
    }
    session.note(&format!("batch {id}"));
    wait(&client, &id)?;
    let results = client.get(&format!("/v1/batches/{id}/results")).map_err(failure)?;
    let items = results["items"].as_array().map_or(&[][..], Vec::as_slice);
    for (item, files) in items.iter().zip(outputs.chunks_exact(2)).filter(|(item, _)| item["state"] == "done") {
        let files = [files[0].as_path(), files[1].as_path()];
        Outputs::open(&files)?.commit(&[item["proof"].to_string(), item["public"].to_string()])?;
    }
    args.service.tell(&results, |_| items.iter().map(line).collect::<Vec<_>>().join("\n"));
    match items.iter().filter(|item| item["state"] != "done").count() {
        0 => Ok(()),
        count => Err(Failure::input(format!("{count} of {} jobs gave no proof", items.len()))),
    }
}

/// What became of an item.
fn line(item: &Value) -> String {
    let why = item["error"]["message"].as_str().map_or(String::new(), |why| format!(": {why}"));
    format!("{} {}{why}", text(&item["name"]), text(&item["state"]))
}

/// Waits until all jobs of a batch have ended.
fn wait(client: &Client, id: &str) -> Outcome {
    let mut answered = Instant::now();
    loop {
        interrupt::check()?;
        match client.get(&format!("/v1/batches/{id}?wait={WAIT}")) {
            Ok(batch) if batch["ended"] == true => return Ok(()),
            Ok(_) => answered = Instant::now(),
            Err(CallError::Unreachable(_)) if answered.elapsed() < PATIENCE => {}
            Err(error) => return Err(failure(error)),
        }
        // A service that drains answers at once.
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn trace(args: &Trace) -> Outcome {
    let client = args.service.client()?;
    let file = Outputs::open(&[args.file.as_path()])?;
    let trace = client.get(&format!("/v1/trace?minutes={}", args.minutes)).map_err(failure)?;
    let events = trace["traceEvents"].as_array().map_or(0, Vec::len);
    file.commit(&[trace.to_string()])?;
    report::result(&format!("{}: {events} events", args.file.display()));
    Ok(())
}
