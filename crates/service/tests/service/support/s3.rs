//! An S3-compatible store of the test's own, on a free port: versitygw over a folder, which checks signatures and hashes.

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The bucket that is there.
pub(crate) const BUCKET: &str = "tandem";

/// The store, which ends with this.
pub(crate) struct S3 {
    folder: tempfile::TempDir,
    pub(crate) port: u16,
    tls: Option<[PathBuf; 2]>,
    process: Mutex<Option<Child>>,
}

/// Where scripts/install-s3.sh puts the program, or wherever it is.
fn program() -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.build/versitygw/versitygw");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let others = std::env::split_paths(&path).map(|folder| folder.join("versitygw"));
    [own].into_iter().chain(others).find(|path| path.exists())
}

impl S3 {
    /// A store, for a test of this name; without the program it is told that the test is skipped.
    pub(crate) fn start(test: &str) -> Option<S3> {
        S3::with(test, None)
    }

    /// [`S3::start`] that shows a certificate, of these files.
    pub(crate) fn with(test: &str, tls: Option<[PathBuf; 2]>) -> Option<S3> {
        if program().is_none() {
            assert_ne!(
                std::env::var("TANDEM_REQUIRE_S3").as_deref(),
                Ok("1"),
                "no versitygw: sh scripts/install-s3.sh"
            );
            // Past what libtest captures.
            let text = format!("skipped: {test}: no versitygw; sh scripts/install-s3.sh installs it\n");
            std::io::stderr().write_all(text.as_bytes()).unwrap();
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("data").join(BUCKET)).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = S3 { folder, port, tls, process: Mutex::default() };
        server.write_credentials("credentials", "access", "secret");
        server.begin();
        Some(server)
    }

    /// A file of credentials by this name.
    pub(crate) fn write_credentials(&self, name: &str, key: &str, secret: &str) -> PathBuf {
        let file = self.folder.path().join(name);
        let text = format!("[default]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n");
        std::fs::write(&file, text).unwrap();
        file
    }

    pub(crate) fn credentials(&self) -> PathBuf {
        self.folder.path().join("credentials")
    }

    /// Starts it on its files.
    pub(crate) fn begin(&self) {
        let mut command = Command::new(program().unwrap());
        command.args(["--access", "access", "--secret", "secret", "--keep-alive", "--quiet"]);
        command.args(["--port", &format!("127.0.0.1:{}", self.port)]);
        if let Some([certificate, key]) = &self.tls {
            command.arg("--cert").arg(certificate).arg("--key").arg(key);
        }
        command.arg("posix").arg(self.folder.path().join("data"));
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        *self.process.lock().unwrap() = Some(child);
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(20), "versitygw does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Ends it as a kill does.
    pub(crate) fn end(&self) {
        if let Some(mut child) = self.process.lock().unwrap().take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Stops it, so that it is silent, or lets it go on.
    pub(crate) fn freeze(&self, is_frozen: bool) {
        let pid = self.process.lock().unwrap().as_ref().unwrap().id();
        kill(Pid::from_raw(pid as i32), if is_frozen { Signal::SIGSTOP } else { Signal::SIGCONT }).unwrap();
        // A busy machine takes its time.
        let is_stopped = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap().contains(") T ");
        while is_stopped() != is_frozen {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The file that an object of the bucket is in.
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join("data").join(BUCKET).join(name)
    }

    /// Names of the files in a folder of the bucket; what the store keeps for itself is not among them.
    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.at(folder)).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| !name.starts_with('.')).collect();
        names.sort();
        names
    }

    /// Files of uploads that are not put together yet.
    pub(crate) fn parts(&self) -> usize {
        fn files(folder: &Path) -> usize {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| if entry.path().is_dir() { files(&entry.path()) } else { 1 }).sum()
        }
        files(&self.at(".sgwtmp/multipart"))
    }

    /// The settings that lead there, by this port.
    pub(crate) fn settings(&self, port: u16) -> String {
        let credentials = self.credentials();
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!(
            "blobs = 's3://{BUCKET}/unit'\nblobs_endpoint = '{scheme}://127.0.0.1:{port}'\nblobs_credentials = '{}'\n",
            credentials.display()
        )
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        self.end();
    }
}
