//! Sends a running service damaged requests, over HTTP and gRPC, and judges what its callers and its operator would see. The service is a
//! black box, as the program is to `fuzz-command-line`: coverage is how many different answers it gives.

mod cases;
mod frames;

use crate::command_line::case::Random;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long an answer may be on its way before the caller says that nothing more comes from it.
const PAUSE: Duration = Duration::from_millis(100);
/// How long the service may then hold the connection.
const MOST_TIME: Duration = Duration::from_secs(20);
/// The word of a refusal where the service is at fault itself.
const DEFECT: &str = "\"code\":\"internal\"";
/// Memory of the service at its most, in KiB: keys and witnesses here have a few thousand bytes.
const MOST_MEMORY_KIB: u64 = 1 << 20;

/// `seconds` of requests made from those of [`cases::seeds`].
pub(crate) fn run(root: &Path, seconds: &str) -> Result<(), String> {
    let seconds: u64 = seconds.parse().map_err(|_| format!("{seconds}: expected a number of seconds"))?;
    let artifacts = root.join("fuzz/artifacts/requests");
    fs::create_dir_all(&artifacts).map_err(|e| format!("{}: {e}", artifacts.display()))?;
    let mut service = Service::start(root)?;
    let seeds = cases::seeds(&service.files()?);
    let (seed, mut random) = Random::seeded()?;
    let (begun, mut runs, mut seen) = (Instant::now(), 0usize, BTreeSet::new());
    // Each as it is, then changes of them.
    while runs < seeds.len() || begun.elapsed() < Duration::from_secs(seconds) {
        let case = match seeds.get(runs) {
            Some(case) => case.clone(),
            None => random.of(&seeds).changed(&mut random, &seeds),
        };
        let request = case.bytes();
        runs += 1;
        let found = match service.send(&request) {
            Ok(reply) => {
                let is_whole = runs <= seeds.len();
                let answer = answer(&reply, is_whole);
                answer.map(|answer| _ = seen.insert(answer)).and_then(|()| service.judge())
            }
            Err(fault) => Err(fault),
        };
        if let Err(fault) = found {
            let file = artifacts.join(format!("{seed:x}-{runs}"));
            fs::write(&file, &request).map_err(|e| format!("{}: {e}", file.display()))?;
            return Err(format!("requests: {fault}\n  cargo xtask replay-request {}", file.display()));
        }
    }
    service.prove()?;
    service.end()?;
    println!("requests: {runs} sent, {} different answers", seen.len());
    match seen.len() < 20 {
        true => Err(format!("{runs} requests with {} answers are no test", seen.len())),
        false => Ok(()),
    }
}

/// Sends one request that was kept, and says what is wrong with what comes of it.
pub(crate) fn replay(root: &Path, file: &str) -> Result<(), String> {
    let request = fs::read(file).map_err(|e| format!("{file}: {e}"))?;
    let mut service = Service::start(root)?;
    let reply = service.send(&request)?;
    println!("{}", String::from_utf8_lossy(&reply));
    answer(&reply, false)?;
    service.judge()?;
    service.prove()?;
    service.end()
}

/// What kind of answer it is: of HTTP the status and the word, of HTTP/2 the types of its frames.
fn answer(reply: &[u8], is_whole: bool) -> Result<String, String> {
    if let Some(types) = frames::types(reply) {
        return Ok(format!("frames {types:?}"));
    }
    let text = String::from_utf8_lossy(reply);
    let status = text.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse::<u16>().ok());
    match status {
        // iden3's prover answers 500 where a caller is at fault, and so does its interface here.
        Some(501 | 502 | 504..) => Err(format!("it answers: {text}")),
        _ if text.contains(DEFECT) => Err(format!("it answers: {text}")),
        Some(status) => {
            let word = text.split("\"code\":\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
            Ok(format!("{status} {word}"))
        }
        None if reply.is_empty() && !is_whole => Ok("nothing".into()),
        None => Err(format!("it answers: {text}")),
    }
}

/// A service of one key, and its folder, both gone at the end.
struct Service {
    process: Child,
    address: String,
    program: PathBuf,
    folder: PathBuf,
}

impl Service {
    fn start(root: &Path) -> Result<Service, String> {
        let program = crate::command_line::program(root)?;
        let folder = std::env::temp_dir().join(format!("tandem-requests-{}", std::process::id()));
        let fail = |e: std::io::Error| format!("{}: {e}", folder.display());
        fs::create_dir_all(folder.join("keys")).map_err(fail)?;
        let at = |name: &str| folder.join(name).display().to_string();
        let of = |name: &str| root.join(name).display().to_string();
        let wasm = of("crates/witness/tests/data/multiplier.wasm");
        fs::write(folder.join("in.json"), "{\"a\": \"3\", \"b\": \"11\"}").map_err(fail)?;
        tandem(&program, &["setup", &of("crates/app/tests/data/multiplier.r1cs"), &at("keys/product.zkey")])?;
        tandem(&program, &["witness", &wasm, &at("in.json"), &at("w.wtns")])?;
        tandem(&program, &["export-vkey", &at("keys/product.zkey"), &at("vkey.json")])?;
        fs::copy(&wasm, folder.join("keys/product.wasm")).map_err(fail)?;
        let settings = format!(
            "data = '{}'\nkey_folder = '{}'\nlisten = '127.0.0.1:0'\nsurvives = 'kill'\nheader_seconds = 2\n\
             stall_seconds = 2\nwait_seconds = 1\nmax_key_mib = 1\ninterfaces = ['grpc', 'rapidsnark', 'iden3']\n\
             [keys]\nproduct = '{}'\n[programs]\nproduct = '{wasm}'\n",
            at("data"),
            at("keys"),
            at("keys/product.zkey")
        );
        fs::write(folder.join("tandem.toml"), settings).map_err(fail)?;
        let mut process = Command::new(&program)
            .args(["serve", "--device", "cpu", "--config", &at("tandem.toml")])
            .env("TANDEM_CACHE_DIR", folder.join("cache"))
            .stdout(Stdio::piped())
            .stderr(fs::File::create(folder.join("log")).map_err(fail)?)
            .spawn()
            .map_err(|e| format!("{}: {e}", program.display()))?;
        let mut address = String::new();
        if let Some(out) = process.stdout.take() {
            BufReader::new(out).read_line(&mut address).map_err(fail)?;
        }
        let service = Service { process, address: address.trim().replace("http://", ""), program, folder };
        match service.address.is_empty() {
            true => Err(format!("the service does not start: {}", service.log())),
            false => Ok(service),
        }
    }

    fn log(&self) -> String {
        fs::read(self.folder.join("log"))
            .map_or_else(|_| String::new(), |log| String::from_utf8_lossy(&log).into_owned())
    }

    /// What good requests are made of: a witness, a key, a program, inputs, a verification key.
    fn files(&self) -> Result<[Vec<u8>; 5], String> {
        let read = |name: &str| fs::read(self.folder.join(name)).map_err(|e| format!("{name}: {e}"));
        Ok([
            read("w.wtns")?,
            read("keys/product.zkey")?,
            read("keys/product.wasm")?,
            read("in.json")?,
            read("vkey.json")?,
        ])
    }

    /// Sends bytes on a connection of their own, and gives what comes back until the service ends it.
    fn send(&self, request: &[u8]) -> Result<Vec<u8>, String> {
        let connect = |e: std::io::Error| format!("it takes no connection: {e}\n{}", self.log());
        let mut stream = TcpStream::connect(&self.address).map_err(connect)?;
        stream.set_read_timeout(Some(PAUSE)).map_err(connect)?;
        stream.set_write_timeout(Some(MOST_TIME)).map_err(connect)?;
        // It may refuse before it has read all, and end the connection.
        _ = stream.write_all(request);
        let (begun, mut reply, mut is_ended, mut piece) = (Instant::now(), Vec::new(), false, vec![0; 1 << 16]);
        loop {
            match stream.read(&mut piece) {
                Ok(0) => return Ok(reply),
                Ok(count) => reply.extend(&piece[..count]),
                Err(e) if matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {
                    if !is_ended {
                        _ = stream.shutdown(Shutdown::Write);
                    }
                    is_ended = true;
                    if begun.elapsed() > MOST_TIME {
                        return Err(format!("it holds a connection for longer than {} s", MOST_TIME.as_secs()));
                    }
                }
                Err(_) => return Ok(reply),
            }
        }
    }

    /// What an operator would see by now.
    fn judge(&mut self) -> Result<(), String> {
        if let Ok(Some(status)) = self.process.try_wait() {
            return Err(format!("it has ended: {status}\n{}", self.log()));
        }
        let log = self.log();
        if let Some(line) = log.lines().find(|line| line.contains("panicked at")) {
            return Err(format!("it says: {line}"));
        }
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak: u64 = peak.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0);
        match peak > MOST_MEMORY_KIB {
            true => Err(format!("it has taken {peak} KiB of memory")),
            false => Ok(()),
        }
    }

    /// A good job still gives a proof that verifies.
    fn prove(&self) -> Result<(), String> {
        let at = |name: &str| self.folder.join(name).display().to_string();
        let server = format!("http://{}", self.address);
        let job =
            ["submit", &at("keys/product.zkey"), &at("w.wtns"), &at("p.json"), &at("u.json"), "--server", &server];
        tandem(&self.program, &job)?;
        tandem(&self.program, &["verify", &at("vkey.json"), &at("u.json"), &at("p.json")])
    }

    /// SIGTERM ends it, with status 0.
    fn end(mut self) -> Result<(), String> {
        let pid = self.process.id().to_string();
        _ = Command::new("kill").args(["-TERM", &pid]).status();
        let begun = Instant::now();
        while begun.elapsed() < MOST_TIME {
            match self.process.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(format!("it ends with {status}\n{}", self.log())),
                _ => std::thread::sleep(Duration::from_millis(20)),
            }
        }
        Err(format!("SIGTERM does not end it within {} s", MOST_TIME.as_secs()))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
        _ = fs::remove_dir_all(&self.folder);
    }
}

fn tandem(program: &Path, args: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(args).output().map_err(|e| format!("{}: {e}", program.display()))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("tandem {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_from_faults() {
        let of = |reply: &str| answer(reply.as_bytes(), false);
        assert_eq!(of("HTTP/1.1 200 OK\r\n\r\n{}").unwrap(), "200 ");
        assert_eq!(of("HTTP/1.1 404 Not Found\r\n\r\n{\"code\":\"no_key\"}").unwrap(), "404 no_key");
        assert_eq!(of("HTTP/1.1 503 Busy\r\n\r\n{\"code\":\"busy\"}").unwrap(), "503 busy");
        assert_eq!(of("").unwrap(), "nothing");
        for fault in ["HTTP/1.1 500 Internal\r\n\r\n{\"code\":\"internal\"}", "HTTP/1.1 x", "HTTP/1.1 504 x", "{}"] {
            of(fault).unwrap_err();
        }
        answer(b"", true).unwrap_err();
    }
}
