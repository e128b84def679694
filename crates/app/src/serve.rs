//! `tandem serve`, and the workers that it starts.

use clap::Args;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tandem_console::failure::{Failure, Outcome};
use tandem_console::session::Session;
use tandem_console::values::device;
use tandem_console::{files, interrupt, report};
use tandem_service::{Asked, Config, Role, Setting};

/// Bytes of a file of settings at most.
const CONFIG_MAX: u64 = 1 << 20;

/// This very program, also where its file was replaced by a later one since it started.
const SELF: &str = "/proc/self/exe";

/// Where a service has its settings and its data.
#[derive(Args)]
pub(crate) struct Place {
    /// A file of settings, in TOML; options and variables come before it
    #[arg(long, value_name = "FILE", env = "TANDEM_SERVE_CONFIG", hide_env_values = true)]
    config: Option<PathBuf>,
    /// Folder of the database, the witnesses and the uploaded keys [default: ~/.local/state/tandem]
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct Serve {
    #[command(flatten)]
    place: Place,
    /// Address and port; port 0 takes a free one [default: 127.0.0.1:8555]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Path of a Unix socket beside the port, which only your user reaches: large witnesses come faster over it
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Want a token of every caller; tandem tokens makes them
    #[arg(long)]
    tokens: bool,
    /// File of the service's certificate and those that lead to it, in PEM: callers then use https
    #[arg(long, value_name = "FILE")]
    tls_certificate: Option<PathBuf>,
    /// File of its private key, in PEM
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// File of authorities, in PEM: callers then show a certificate that one of them signed, and without --tokens each may do all
    #[arg(long, value_name = "FILE")]
    tls_clients: Option<PathBuf>,
    /// Give up a protection where other machines can reach the service: tls (whoever is on the way reads and changes all) or tokens
    /// (whoever reaches the port may do all); may be given for both
    #[arg(long, value_name = "PROTECTION")]
    without: Vec<String>,
    /// What this node is called among those of a database [default: the machine's name and some digits]
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// Folder whose .zkey files may be registered by path
    #[arg(long, value_name = "FOLDER")]
    key_folder: Option<PathBuf>,
    /// A worker on this device, a process of its own; may be given again and again [default: one, on --device]
    #[arg(long, value_name = "DEVICE")]
    worker: Vec<String>,
    /// Print the settings that hold, as a file of settings, and end
    #[arg(long)]
    print_config: bool,
}

#[derive(Args)]
pub(crate) struct Worker {
    /// MiB of keys on the device
    #[arg(long, value_name = "MIB")]
    key_memory_mib: u64,
    /// MiB of keys that the node copies from the blobs
    #[arg(long, value_name = "MIB", default_value_t = 0)]
    key_cache_mib: u64,
    /// Proofs that each is taken to make
    #[arg(long, value_name = "PROOFS", default_value_t = 1)]
    key_proofs: u64,
}

/// A path as a value of the settings.
fn text(path: &Path) -> Outcome<Setting> {
    path.to_str().map(Into::into).ok_or(Failure::file(path, "the name is no UTF-8"))
}

/// The settings that hold, with options before all others.
pub(crate) fn settings(place: &Place, mut options: Vec<(&'static str, Setting)>) -> Outcome<Config> {
    let file = place.config.as_ref().map(|path| {
        let text = files::read(path, CONFIG_MAX)?;
        let text = std::str::from_utf8(&text).map_err(|_| Failure::file(path, "expected text in UTF-8"))?;
        Ok::<_, Failure>((path, text.to_string()))
    });
    let file = file.transpose()?;
    if let Some(path) = &place.data {
        options.push(("data", text(path)?));
    }
    let file = file.as_ref().map(|(path, text)| (path.as_path(), text.as_str()));
    Config::read(file, |name| std::env::var(name).ok(), options).map_err(Failure::input)
}

impl Serve {
    fn config(&self) -> Outcome<Config> {
        let mut options = Vec::new();
        let files = [
            ("key_folder", &self.key_folder),
            ("socket", &self.socket),
            ("tls_certificate", &self.tls_certificate),
            ("tls_key", &self.tls_key),
            ("tls_clients", &self.tls_clients),
        ];
        for (name, path) in files {
            if let Some(path) = path {
                options.push((name, text(path)?));
            }
        }
        if self.tokens {
            options.push(("tokens", true.into()));
        }
        options.extend(self.listen.iter().map(|listen| ("listen", listen.clone().into())));
        options.extend(self.node.iter().map(|node| ("node", node.clone().into())));
        if !self.without.is_empty() {
            options.push(("without", self.without.clone().into()));
        }
        if !self.worker.is_empty() {
            options.push(("workers", self.worker.clone().into()));
        }
        let config = settings(&self.place, options)?;
        for worker in &config.workers {
            device(worker).map_err(|e| Failure::input(format!("workers: '{worker}': {e}")))?;
        }
        Ok(config)
    }
}

pub(crate) fn run(session: &Session, args: &Serve) -> Outcome {
    let config = args.config()?;
    if args.print_config {
        report::result(&config.to_toml());
        return Ok(());
    }
    let (device, schedule) = (session.device.to_string(), tandem_console::values::name(&session.schedule));
    let threads = tandem_ops::threads::count().to_string();
    let gpu_memory = session.gpu_memory.map(|bytes| bytes.to_string());
    let (memory, proofs) = (config.key_memory_mib.to_string(), config.key_proofs.to_string());
    let cached = config.key_cache_mib.to_string();
    let worker = move |role: Role<'_>| {
        let mut command = Command::new(SELF);
        command.arg0("tandem");
        let of = match role {
            Role::Calculator => {
                command.arg("serve-calculator");
                return command;
            }
            Role::Prover("auto") => &device,
            Role::Prover(of) => of,
        };
        command.args(["serve-worker", "--device", of, "--schedule", &schedule, "--threads", &threads]);
        if let Some(bytes) = &gpu_memory {
            command.args(["--gpu-memory", bytes]);
        }
        command.args(["--key-memory-mib", &memory, "--key-proofs", &proofs, "--key-cache-mib", &cached]);
        command
    };
    interrupt::drain();
    // Without a certificate there is nothing to read again, and closing the terminal ends the program.
    if config.has_tls() {
        interrupt::reload();
    }
    let asked = || match interrupt::asked() {
        true => Asked::Stop,
        false if interrupt::asked_again() => Asked::Reload,
        false => Asked::Nothing,
    };
    let scheme = if config.has_tls() { "https" } else { "http" };
    let ready = |address: std::net::SocketAddr| report::result(&format!("{scheme}://{address}"));
    tandem_service::serve(config, worker, ready, asked).map_err(Failure::input)
}

/// Makes the witness that the service asks for.
pub(crate) fn calculator() -> Outcome {
    tandem_service::calculate().map_err(Failure::device)
}

pub(crate) fn worker(session: &Session, args: &Worker) -> Outcome {
    let open = || tandem_engine::Engine::open_within(&session.device, session.schedule.into(), session.gpu_memory);
    let room = tandem_service::KeyRoom {
        bytes: args.key_memory_mib << 20,
        proofs: args.key_proofs,
        cached: args.key_cache_mib << 20,
    };
    tandem_service::work(open, room).map_err(Failure::device)
}
