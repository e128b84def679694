//! A PostgreSQL of the test's own, on a free port.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

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
    // What stands in the home of who runs the tests is not for it.
    command.current_dir("/").env("HOME", "/");
    command
}

impl Postgres {
    pub(crate) fn start() -> Postgres {
        let server = Postgres::make();
        server.begin();
        server
    }

    /// One with TLS: with this certificate and its key, for connections of this kind alone: `hostssl`, or `host` for any.
    pub(crate) fn with_tls([certificate, key]: &[String; 2], kind: &str) -> Postgres {
        let server = Postgres::make();
        let write = |name: &str, text: &str| {
            // As the server's user, for the server looks whose they are.
            let mut shell = command("sh");
            shell.args(["-c", "umask 077 && cat > \"$0\""]).arg(server.data().join(name));
            let mut child = shell.stdin(Stdio::piped()).spawn().unwrap();
            child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
            assert!(child.wait().unwrap().success());
        };
        write("server.crt", certificate);
        write("server.key", key);
        write("pg_hba.conf", &format!("{kind} all all 127.0.0.1/32 trust\n"));
        write("postgresql.conf", "ssl = on\nssl_cert_file = 'server.crt'\nssl_key_file = 'server.key'\n");
        server.begin();
        server
    }

    fn make() -> Postgres {
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

    /// What its first database answers: rows as lines, columns with `|` between them.
    pub(crate) fn ask(&self, sql: &str) -> String {
        let mut psql = command("psql");
        psql.args(["-A", "-t", "-h", "127.0.0.1", "-U", "postgres", "-p", &self.port.to_string(), "-c", sql]);
        let said = psql.output().unwrap();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        String::from_utf8(said.stdout).unwrap()
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
