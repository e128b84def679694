//! A PostgreSQL of the test's own, on a free port, and what stands between it and a node.
#![allow(dead_code)] // each test program uses its own part

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The server, which ends with this.
pub(crate) struct Postgres {
    folder: tempfile::TempDir,
    pub(crate) port: u16,
}

/// A program of the server, wherever the distribution has it.
fn program(name: &str) -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let found = versions.map(|version| version.path().join("bin").join(name)).find(|path| path.exists());
    found.unwrap_or_else(|| name.into())
}

/// A command that does not run as root, which the server refuses.
fn command(name: &str) -> Command {
    let path = program(name);
    let mut command = match nix::unistd::geteuid().is_root() {
        false => Command::new(path),
        true => {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(path);
            command
        }
    };
    command.current_dir("/");
    command
}

impl Postgres {
    pub(crate) fn start() -> Postgres {
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = Postgres { folder, port };
        if nix::unistd::geteuid().is_root() {
            let own = Command::new("chown").arg("postgres").arg(server.folder.path()).status();
            assert!(own.unwrap().success(), "no user postgres; sh scripts/install-postgres.sh makes it");
        }
        let mut init = command("initdb");
        init.args(["-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8", "--locale=C", "-D"]).arg(server.data());
        let done = init.output().expect("initdb; sh scripts/install-postgres.sh installs it");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        server.begin();
        server
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn control(&self, words: &[&str]) -> bool {
        let mut control = command("pg_ctl");
        control.arg("-w").arg("-D").arg(self.data()).args(words);
        control.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
    }

    /// Starts the server on its files.
    pub(crate) fn begin(&self) {
        let options =
            format!("-p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off", self.port);
        let log = self.data().join("log");
        let begun = self.control(&["-o", &options, "-l", log.to_str().unwrap(), "start"]);
        assert!(begun, "{}", std::fs::read_to_string(log).unwrap_or_default());
    }

    /// Ends it as a kill would.
    pub(crate) fn end(&self) {
        assert!(self.control(&["-m", "immediate", "stop"]));
    }

    /// The URL of a database of this name, which is made.
    pub(crate) fn database(&self, name: &str) -> String {
        // So long may a name be.
        let name = &name[..name.len().min(63)];
        let sql = format!("CREATE DATABASE {name}");
        let mut psql = command("psql");
        psql.args(["-q", "-h", "127.0.0.1", "-U", "postgres", "-p", &self.port.to_string(), "-c", &sql]);
        assert!(psql.status().unwrap().success());
        format!("postgres://postgres@127.0.0.1:{}/{name}", self.port)
    }

    /// Does this in its first database, in a transaction that stays open until the child ends.
    pub(crate) fn hold(&self, sql: &str) -> Child {
        let (sql, port) = (format!("BEGIN; {sql}; SELECT 'held'"), self.port.to_string());
        let mut psql = command("psql");
        psql.args(["-q", "-A", "-t", "-h", "127.0.0.1", "-U", "postgres", "-p", &port]);
        let mut child = psql.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        writeln!(child.stdin.as_mut().unwrap(), "{sql};").unwrap();
        let mut said = BufReader::new(child.stdout.as_mut().unwrap()).lines();
        assert!(said.any(|line| line.unwrap() == "held"));
        child
    }

    /// The URL of its first database, by this port.
    pub(crate) fn url_by(&self, port: u16) -> String {
        format!("postgres://postgres@127.0.0.1:{port}/postgres")
    }

    pub(crate) fn url(&self) -> String {
        self.url_by(self.port)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.control(&["-m", "immediate", "stop"]);
    }
}

/// Nobody's authorities: what a database without TLS is spoken to with.
pub(crate) fn no_tls() -> rustls::ClientConfig {
    let tls = rustls::ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into());
    let tls = tls.with_safe_default_protocol_versions().unwrap();
    tls.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth()
}

/// Passes connections on to a port until it is cut: then it keeps them open and passes nothing on, as a network that drops everything.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    is_cut: AtomicBool,
    /// The next answer to what has these words is lost, with its connection.
    loses: Mutex<Option<&'static str>>,
}

impl Proxy {
    pub(crate) fn start(to: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, state) = (listener.local_addr().unwrap().port(), Arc::new(State::default()));
        let of = state.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(("127.0.0.1", to)) else { continue };
                let [there, back] = [&server, &client].map(|of| of.try_clone().unwrap());
                let is_lost = Arc::new(AtomicBool::new(false));
                let (state, lost) = (of.clone(), is_lost.clone());
                std::thread::spawn(move || ask(client, there, &state, &lost));
                let state = of.clone();
                std::thread::spawn(move || answer(server, back, &state, &is_lost));
            }
        });
        Proxy { port, state }
    }

    pub(crate) fn cut(&self, is_cut: bool) {
        self.state.is_cut.store(is_cut, Ordering::SeqCst);
    }

    pub(crate) fn lose(&self, words: &'static str) {
        *self.state.loses.lock().unwrap() = Some(words);
    }

    pub(crate) fn has_lost(&self) -> bool {
        self.state.loses.lock().unwrap().is_none()
    }
}

fn ask(from: TcpStream, to: TcpStream, state: &State, is_lost: &AtomicBool) {
    pass(from, to, state, |piece| {
        let mut loses = state.loses.lock().unwrap();
        if loses.is_some_and(|words| piece.windows(words.len()).any(|part| part == words.as_bytes())) {
            is_lost.store(true, Ordering::SeqCst);
            *loses = None;
        }
        true
    });
}

fn answer(from: TcpStream, to: TcpStream, state: &State, is_lost: &AtomicBool) {
    pass(from, to, state, |_| !is_lost.load(Ordering::SeqCst));
}

fn pass(mut from: TcpStream, mut to: TcpStream, state: &State, goes_on: impl Fn(&[u8]) -> bool) {
    let mut piece = [0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut piece) {
        while state.is_cut.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(5));
        }
        if !goes_on(&piece[..count]) || to.write_all(&piece[..count]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
