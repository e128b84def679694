//! A cluster of PostgreSQL of the test's own, on a free port.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

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
    if !nix::unistd::geteuid().is_root() {
        return Command::new(path);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(path);
    command
}

impl Postgres {
    pub(crate) fn start() -> Postgres {
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = Postgres { folder, port };
        if nix::unistd::geteuid().is_root() {
            assert!(Command::new("chown").arg("postgres").arg(server.folder.path()).status().unwrap().success());
        }
        let data = server.data();
        let mut init = command("initdb");
        init.args(["-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8", "-D"]).arg(&data);
        let done = init.current_dir("/").output().expect("initdb; sh scripts/install-postgres.sh installs it");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        server.begin();
        server
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn control(&self, words: &[&str]) {
        let mut control = command("pg_ctl");
        control.arg("-w").arg("-D").arg(self.data()).args(words).current_dir("/");
        control.stdout(Stdio::null()).stderr(Stdio::null());
        assert!(control.status().unwrap().success(), "{words:?}");
    }

    /// Starts the server on its files.
    pub(crate) fn begin(&self) {
        let options =
            format!("-p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off", self.port);
        let log = self.folder.path().join("data/log");
        self.control(&["-o", &options, "-l", log.to_str().unwrap(), "start"]);
    }

    /// Ends it as a kill would.
    pub(crate) fn end(&self) {
        self.control(&["-m", "immediate", "stop"]);
    }

    /// The URL of its database, by this port.
    pub(crate) fn url_by(&self, port: u16) -> String {
        format!("postgres://postgres@127.0.0.1:{port}/postgres")
    }

    pub(crate) fn url(&self) -> String {
        self.url_by(self.port)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let mut control = command("pg_ctl");
        control.arg("-D").arg(self.data()).args(["-m", "immediate", "stop"]).current_dir("/");
        let _ = control.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

/// Passes connections on to a port until it is cut: then it keeps them open and passes nothing on.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    is_cut: std::sync::Arc<std::sync::atomic::AtomicBool>,
}

impl Proxy {
    pub(crate) fn start(to: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let is_cut = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let cut = is_cut.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = std::net::TcpStream::connect(("127.0.0.1", to)) else { continue };
                let pairs = [(client.try_clone(), server.try_clone()), (Ok(server), Ok(client))];
                for (from, to) in pairs {
                    let (mut from, mut to, cut) = (from.unwrap(), to.unwrap(), cut.clone());
                    std::thread::spawn(move || {
                        use std::io::{Read, Write};
                        let mut piece = [0; 1 << 16];
                        while let Ok(count @ 1..) = from.read(&mut piece) {
                            while cut.load(std::sync::atomic::Ordering::SeqCst) {
                                std::thread::sleep(Duration::from_millis(5));
                            }
                            if to.write_all(&piece[..count]).is_err() {
                                break;
                            }
                        }
                        let _ = to.shutdown(std::net::Shutdown::Both);
                    });
                }
            }
        });
        Proxy { port, is_cut }
    }

    pub(crate) fn cut(&self, is_cut: bool) {
        self.is_cut.store(is_cut, std::sync::atomic::Ordering::SeqCst);
    }
}

/// Waits for something of several nodes.
#[track_caller]
pub(crate) fn wait_long(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(120), "{what}: not within two minutes");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The settings of a node that shares a database and a folder with others.
pub(crate) fn shared(url: &str, blobs: &Path, node: &str) -> String {
    format!(
        "database = '{url}'\nblobs = '{}'\nnode = '{node}'\nlease_seconds = 2\nworkers = ['cpu']\nattempts = 50",
        blobs.display()
    )
}
