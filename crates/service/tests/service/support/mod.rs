//! What the drills share: a service and workers that are this very test program, started again; keys; raw connections.

pub(crate) mod drill;
#[path = "../../../../app/tests/support/files.rs"]
pub(crate) mod files;
pub(crate) mod grpc;
pub(crate) mod postgres;
#[allow(dead_code)] // unit tests of the library use the rest
pub(crate) mod proxy;
pub(crate) mod s3;

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tandem_conformance::{Step, Stepped};
use tandem_engine::{CurveId, DeviceChoice, Engine, Proof, Publics, SetupOptions, Silent, Verifier};
use tandem_service::client::{CallError, Client, Content, Method};
use tandem_service::{Asked, Config, Role};

/// Which part of the tests a child process plays, and in which folder.
pub(crate) const CHILD: &str = "TANDEM_TEST_CHILD";
const FOLDER: &str = "TANDEM_TEST_FOLDER";

/// The file that tells workers what to suffer: lines of a word, a stage, and the attempt.
const FAULT: &str = "fault";

/// This program as a child.
fn child(role: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["child", "--exact", "--nocapture"]).env(CHILD, role).env(FOLDER, folder);
    command.env("TANDEM_CACHE_DIR", folder.join("cache"));
    command
}

/// What the test called `child` does: nothing, unless it was started as a child.
pub(crate) fn play() {
    let (Ok(role), Ok(folder)) = (std::env::var(CHILD), std::env::var(FOLDER)) else { return };
    let folder = PathBuf::from(folder);
    match role.as_str() {
        "serve" => serve(&folder),
        "calculate" => calculate(&folder),
        device => work(device, &folder),
    }
    std::process::exit(0);
}

fn asked(folder: &Path) -> Asked {
    match (folder.join("stop").exists(), std::fs::remove_file(folder.join("reload"))) {
        (true, _) => Asked::Stop,
        (false, Ok(())) => Asked::Reload,
        _ => Asked::Nothing,
    }
}

/// A calculator that suffers what files tell it to.
fn calculate(folder: &Path) {
    if std::fs::remove_file(folder.join("broken-calculator")).is_ok() {
        return;
    }
    while folder.join("slow-calculator").exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = tandem_service::calculate();
}

fn serve(folder: &Path) {
    // As the program does: a file that may not grow is an error, not the end.
    nix::sys::signal::SigSet::from(Signal::SIGXFSZ).thread_block().unwrap();
    let path = folder.join("tandem.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let config = Config::read(Some((&path, &text)), |_| None, []).unwrap();
    let of = folder.to_path_buf();
    let worker = move |role: Role<'_>| match role {
        Role::Prover(device) => child(device, &of),
        Role::Calculator => child("calculate", &of),
    };
    let ready = |address: std::net::SocketAddr| {
        std::fs::write(folder.join("address.part"), address.to_string()).unwrap();
        std::fs::rename(folder.join("address.part"), folder.join("address")).unwrap();
    };
    if let Err(error) = tandem_service::serve(config, worker, ready, || asked(folder)) {
        std::fs::write(folder.join("refused"), error).unwrap();
    }
}

fn work(device: &str, folder: &Path) {
    let steps = AtomicUsize::new(0);
    let at = |stage: &str, attempt: i64| {
        let Ok(fault) = std::fs::read_to_string(folder.join(FAULT)) else { return };
        let attempt = attempt.to_string();
        let of = fault.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let Some(words) = of.into_iter().find(|words| words[1..] == [stage, &attempt]) else { return };
        let own = Pid::this();
        match words[0] {
            "kill" => kill(own, Signal::SIGKILL).unwrap(),
            "freeze" => kill(own, Signal::SIGSTOP).unwrap(),
            "slow" => std::thread::sleep(Duration::from_secs(4)),
            "hang" => std::thread::sleep(Duration::from_secs(3600)),
            "note" => std::fs::write(folder.join("noted"), "").unwrap(),
            "panic" => panic!("as the test wants it"),
            "pause" => {
                std::fs::write(folder.join("paused"), "").unwrap();
                wait_for("go", || folder.join("go").exists());
            }
            "step" => {
                let file = format!("step{}", steps.fetch_add(1, Ordering::SeqCst));
                wait_for("its step", || folder.join(&file).exists());
            }
            other => panic!("{other}"),
        }
    };
    let choice = match device {
        "sim:2" => DeviceChoice::Sim(2),
        _ => DeviceChoice::Cpu,
    };
    let open = || match std::fs::remove_file(folder.join("broken-device")) {
        Ok(()) => Err(tandem_engine::Error::Device("the device is broken, as the test wants it".into())),
        Err(_) if device == "stepped" => stepped(folder, true),
        Err(_) if device == "strict" => stepped(folder, false),
        Err(_) => Engine::open(&choice),
    };
    let path = folder.join("tandem.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let config = Config::read(Some((&path, &text)), |_| None, []).unwrap();
    let (bytes, cached) = (config.key_memory_mib << 20, config.key_cache_mib << 20);
    let room = tandem_service::KeyRoom { bytes, proofs: config.key_proofs, cached };
    let _ = tandem_service::work_watched(open, room, &at);
}

/// A GPU that does as the file `device` says: it breaks, computes wrongly, or without such a file is right. With `auto` the CPU takes over.
fn stepped(folder: &Path, auto: bool) -> tandem_engine::Result<Engine> {
    let file = folder.join("device");
    let script = Arc::new(move |_: &'static str| match std::fs::read_to_string(&file).as_deref() {
        Ok("broken") => Step::Broken,
        Ok("wrong") => Step::Wrong,
        _ => Step::Right,
    });
    Engine::on_backends(move || Ok(Stepped::new(script.clone())), auto)
}

/// Waits until something is so; fails the test after a minute.
#[track_caller]
pub(crate) fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}: not within a minute");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A service in a folder of its own.
pub(crate) struct Service {
    pub(crate) folder: tempfile::TempDir,
    process: Option<Child>,
}

impl Drop for Service {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Service {
    /// Starts one with these settings more than the folder and any free port, and a key of 2^4 rows called `small`.
    pub(crate) fn start(settings: &str) -> Service {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        make_key(at, "small", 12);
        // The least that is proved and read at once, unless the test is about more.
        let in_hand = if settings.contains("in_hand") { "" } else { "in_hand = 2\n" };
        let listen = if settings.contains("listen") { "" } else { "listen = '127.0.0.1:0'\n" };
        let text = format!(
            "{in_hand}{listen}data = '{}'\nbackoff_seconds = 1\n{settings}\n[keys]\nsmall = '{}'\n",
            at.join("data").display(),
            at.join("small.zkey").display()
        );
        std::fs::write(at.join("tandem.toml"), text).unwrap();
        let mut service = Service { folder, process: None };
        service.restart();
        service
    }

    /// Why a service with these settings does not start.
    pub(crate) fn refuses(settings: &str) -> String {
        let (service, why) = Self::refusal(&format!("workers = ['cpu']\n{settings}"));
        assert!(!service.at("data").exists());
        why
    }

    /// Why a node with these settings does not start.
    pub(crate) fn refuses_node(settings: &str) -> String {
        Self::refusal(settings).1
    }

    fn refusal(settings: &str) -> (Service, String) {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let text = format!("listen = '127.0.0.1:0'\ndata = '{}'\n{settings}\n", data.display());
        std::fs::write(folder.path().join("tandem.toml"), text).unwrap();
        let process = child("serve", folder.path()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Should it start after all, it ends with this.
        let mut service = Service { folder, process: Some(process) };
        wait_for("the refusal", || service.at("refused").exists());
        assert!(service.process.take().unwrap().wait().unwrap().success() && !service.at("address").exists());
        let why = std::fs::read_to_string(service.at("refused")).unwrap();
        (service, why)
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts it again on the same files.
    pub(crate) fn restart(&mut self) {
        self.restart_with(&[]);
    }

    /// [`Service::restart`] with these variables more. As an operator's supervisor would, it tries again where the database does not answer yet.
    pub(crate) fn restart_with(&mut self, variables: &[(&str, &str)]) {
        let mut why = String::new();
        for _ in 0..5 {
            let _ = std::fs::remove_file(self.at("address"));
            let _ = std::fs::remove_file(self.at("refused"));
            let log = std::fs::OpenOptions::new().create(true).append(true).open(self.at("log")).unwrap();
            let mut command = child("serve", self.folder.path());
            command.envs(variables.iter().copied());
            self.process = Some(command.stdout(Stdio::null()).stderr(log).spawn().unwrap());
            wait_for("the address", || self.at("address").exists() || self.at("refused").exists());
            if self.at("address").exists() {
                return;
            }
            why = std::fs::read_to_string(self.at("refused")).unwrap();
            assert!(why.contains("the database is not there"), "{why}");
            self.kill();
        }
        panic!("{why}");
    }

    /// kill -9.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Tells it to stop, and waits until it has.
    pub(crate) fn stop(&mut self) {
        std::fs::write(self.at("stop"), "").unwrap();
        self.process.take().unwrap().wait().unwrap();
        std::fs::remove_file(self.at("stop")).unwrap();
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.as_ref().unwrap().id()
    }

    pub(crate) fn address(&self) -> String {
        std::fs::read_to_string(self.at("address")).unwrap().replace("0.0.0.0", "127.0.0.1")
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(&self.address()).unwrap()
    }

    pub(crate) fn fault(&self, text: &str) {
        std::fs::write(self.at("fault.part"), text).unwrap();
        std::fs::rename(self.at("fault.part"), self.at(FAULT)).unwrap();
    }

    /// Submits the small witness.
    pub(crate) fn submit(&self, id: Option<&str>) -> Result<Value, CallError> {
        self.submit_to("/v1/jobs?key=small", id, "small.wtns")
    }

    pub(crate) fn submit_to(&self, path: &str, id: Option<&str>, witness: &str) -> Result<Value, CallError> {
        let headers: Vec<_> = id.iter().map(|id| ("idempotency-key", *id)).collect();
        self.client().call(Method::POST, path, &headers, Content::File(&self.at(witness)))
    }

    pub(crate) fn post(&self, path: &str) -> Result<Value, CallError> {
        self.client().call(Method::POST, path, &[], Content::Empty)
    }

    /// The job when it has ended.
    #[track_caller]
    pub(crate) fn ended(&self, id: &str) -> Value {
        let begun = Instant::now();
        loop {
            let job = self.client().get(&format!("/v1/jobs/{id}?wait=20")).unwrap();
            if ["done", "failed", "cancelled"].contains(&job["state"].as_str().unwrap()) {
                return job;
            }
            assert!(begun.elapsed() < Duration::from_secs(80), "{job}");
        }
    }

    /// Fails the test unless the job's proof is valid.
    pub(crate) fn verify(&self, verifier: &Verifier, id: &str) {
        let result = self.client().get(&format!("/v1/jobs/{id}/result")).unwrap();
        let proof = Proof::from_json(CurveId::Bn254, result["proof"].to_string().as_bytes()).unwrap();
        let publics = Publics::from_json(CurveId::Bn254, result["public"].to_string().as_bytes()).unwrap();
        verifier.verify(&publics, &proof).unwrap();
    }

    pub(crate) fn verifier(&self) -> Verifier {
        Verifier::from_json(tandem_engine::export_vkey(&self.at("small.zkey")).unwrap().as_bytes()).unwrap()
    }

    /// The value of a metric with its labels; 0 where there is none.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        let page = self.raw(request, Duration::from_secs(10));
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map_or(0.0, |value| value.parse().unwrap())
    }

    /// Names of the witnesses that are stored: those of files, and those of a database of its own.
    pub(crate) fn witnesses(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.at("data/witnesses")).unwrap();
        let mut all: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        let database = self.at("data/jobs.db");
        if database.exists() {
            let db = rusqlite::Connection::open(database).unwrap();
            let mut small = db.prepare("SELECT job FROM witnesses").unwrap();
            all.extend(small.query_map([], |row| row.get::<_, String>(0)).unwrap().map(Result::unwrap));
        }
        all
    }

    /// Sends bytes as they are, and returns what comes back until the service closes, or for so long.
    pub(crate) fn raw(&self, bytes: &[u8], patience: Duration) -> String {
        let mut stream = TcpStream::connect(self.address()).unwrap();
        stream.set_read_timeout(Some(patience)).unwrap();
        // It may be closed before everything is sent.
        let _ = stream.write_all(bytes);
        let mut reply = Vec::new();
        let mut piece = [0; 4096];
        while let Ok(count) = stream.read(&mut piece) {
            if count == 0 {
                break;
            }
            reply.extend_from_slice(&piece[..count]);
        }
        String::from_utf8_lossy(&reply).into_owned()
    }
}

/// What a worker does for a job; empty where none has it.
pub(crate) fn stage(service: &Service, id: &str) -> String {
    let job = service.client().get(&format!("/v1/jobs/{id}")).unwrap();
    job["stage"].as_str().unwrap_or_default().into()
}

/// How an attempt of each ended.
pub(crate) fn codes(job: &Value) -> Vec<&str> {
    job["attempts"].as_array().unwrap().iter().map(|attempt| attempt["code"].as_str().unwrap_or("")).collect()
}

/// The status and the word of a refusal.
#[track_caller]
pub(crate) fn refused(outcome: Result<Value, CallError>) -> (u16, String) {
    match outcome {
        Err(CallError::Refused { status, code, message }) => {
            assert!(!message.is_empty());
            (status, code)
        }
        other => panic!("expected a refusal: {other:?}"),
    }
}

/// Makes a test key and a witness of a chain of so many squarings.
pub(crate) fn make_key(folder: &Path, name: &str, squarings: u32) {
    let (r1cs, wtns) = files::squarings(squarings);
    std::fs::write(folder.join(format!("{name}.wtns")), wtns).unwrap();
    make_key_of(folder, name, &r1cs);
}

/// Makes a test key of a circuit.
pub(crate) fn make_key_of(folder: &Path, name: &str, r1cs: &[u8]) {
    let path = |end: &str| folder.join(format!("{name}.{end}"));
    std::fs::write(path("r1cs"), r1cs).unwrap();
    let options = SetupOptions { seed: Some(name.into()) };
    tandem_engine::setup(&path("r1cs"), &path("zkey"), &options, &Silent).unwrap();
}
