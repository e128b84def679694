//! The settings of the service: a file, the environment and options, the later before the earlier.

use crate::traces::Collector;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use toml::{Table, Value};

mod nodes;
mod settings;

pub use settings::SETTINGS;

/// OpenTelemetry's own variable for a collector's address.
const OTLP: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// What accepted jobs and finished results outlive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Survives {
    /// The loss of the machine's power, and what `Kill` names.
    PowerLoss,
    /// The end of any process, at any moment.
    Kill,
}

impl Survives {
    pub(crate) fn syncs(self) -> bool {
        self == Survives::PowerLoss
    }
}

/// An interface of another prover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interface {
    /// That of rapidsnark's `proverServer`.
    Rapidsnark,
    /// That of iden3's `prover-server`.
    Iden3,
    /// gRPC, which stands beside HTTP on the same port.
    Grpc,
}

/// How a line of the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogForm {
    /// `time=… event=… name=value …`
    Text,
    /// An object of JSON.
    Json,
}

/// What stands between the service and who can reach it over a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protection {
    /// Nobody on the way reads or changes what is sent.
    Tls,
    /// Callers show who they are.
    Tokens,
}

impl Protection {
    /// What it means to be without.
    pub(crate) fn given_up(self) -> &'static str {
        match self {
            Protection::Tls => "whoever is on the way reads tokens, witnesses and proofs, and can change them",
            Protection::Tokens => "whoever reaches the port submits, cancels, reads proofs and removes keys",
        }
    }
}

/// What the service is to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Where it listens.
    pub listen: SocketAddr,
    /// A Unix socket beside it, for callers of this user on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket: Option<PathBuf>,
    /// Whether callers show a token.
    pub tokens: bool,
    /// The service's certificate, and those that lead to an authority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_certificate: Option<PathBuf>,
    /// Its private key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_key: Option<PathBuf>,
    /// Authorities of callers, who then show a certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_clients: Option<PathBuf>,
    /// What is given up where other machines can reach the service.
    pub without: Vec<Protection>,
    /// Where its database, witnesses and keys lie.
    pub data: PathBuf,
    /// A database that nodes share. What is printed of it has no password.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "nodes::without_password")]
    pub database: Option<String>,
    /// Authorities of the database's certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database_ca: Option<PathBuf>,
    /// Where witnesses and keys lie that nodes share: a folder, or `s3://bucket/prefix`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blobs: Option<String>,
    /// The store of the bucket, unless it is AWS's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blobs_endpoint: Option<String>,
    /// The region of the bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blobs_region: Option<String>,
    /// Authorities of the store's certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blobs_ca: Option<PathBuf>,
    /// Who reads and writes the bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blobs_credentials: Option<PathBuf>,
    /// What this node is called.
    pub node: String,
    /// How long a node may be silent before its jobs go to others.
    pub lease_seconds: u32,
    /// How much younger a job may be and still come first on a worker that has its key.
    pub affinity_seconds: u32,
    /// MiB of keys that a node keeps of those in `blobs`.
    pub key_cache_mib: u64,
    /// Keys in this folder may be registered by path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_folder: Option<PathBuf>,
    /// Keys that each worker loads when it is ready, by name.
    pub preload: Vec<String>,
    /// A device for each worker, in the words of `--device`.
    pub workers: Vec<String>,
    /// MiB of keys that a worker keeps on its device.
    pub key_memory_mib: u64,
    /// Proofs that a key is taken to make while it is on a device.
    pub key_proofs: u64,
    /// Jobs that a worker has in hand at a time.
    pub in_hand: usize,
    /// MiB of witnesses that a worker has in hand at a time; one is taken whatever its size.
    pub witness_memory_mib: u64,
    /// MiB of witnesses that wait for a worker in memory beside their blobs.
    pub held_memory_mib: u64,
    /// Whether witnesses of at most 64 KiB lie in the database instead of in blobs.
    pub small_in_database: bool,
    /// The key that witnesses are encrypted with; without it a file of the data folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub witness_key: Option<PathBuf>,
    /// Processes at a time that calculate witnesses.
    pub calculators: usize,
    /// MiB that one takes at most.
    pub calculator_memory_mib: u64,
    /// Million steps that a circuit's program may run.
    pub calculator_steps: u64,
    /// Seconds that it may take.
    pub calculator_seconds: u32,
    /// Calculated witnesses that may wait for a prover.
    pub calculated_ahead: u64,
    /// MiB of a job's inputs.
    pub max_inputs_mib: u64,
    /// What is spoken beside HTTP, and as which other provers.
    pub interfaces: Vec<Interface>,
    /// The OpenTelemetry collector that is told of jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otlp: Option<String>,
    /// How a line of the log is written.
    pub log: LogForm,
    /// What accepted jobs and results outlive.
    pub survives: Survives,
    /// How often a job may fail for reasons that may pass.
    pub attempts: i64,
    /// Jobs that may wait.
    pub queue: u64,
    /// MiB of a key that is uploaded.
    pub max_key_mib: u64,
    /// How long a job that ended is kept.
    pub keep_seconds: u32,
    /// What one step of priority is worth.
    pub ageing_seconds: u32,
    /// How long an attempt may take.
    pub proof_seconds: u32,
    /// How long a worker may be silent.
    pub beat_seconds: u32,
    /// Connections at a time.
    pub connections: usize,
    /// How long the head of a request may take.
    pub header_seconds: u32,
    /// How far the body of a request may fall behind its least rate.
    pub stall_seconds: u32,
    /// How long a request may wait for a job.
    pub wait_seconds: u32,
    /// The longest pause before a worker is started again.
    pub backoff_seconds: u32,
    /// How long running jobs may take to end.
    pub drain_seconds: u32,
    /// Keys that are registered at the start: name and file.
    pub keys: BTreeMap<String, PathBuf>,
    /// Programs of keys that are registered at the start: the key's name and the file.
    pub programs: BTreeMap<String, PathBuf>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8555)),
            socket: None,
            tokens: false,
            tls_certificate: None,
            tls_key: None,
            tls_clients: None,
            without: Vec::new(),
            data: PathBuf::new(),
            database: None,
            database_ca: None,
            blobs: None,
            blobs_endpoint: None,
            blobs_region: None,
            blobs_ca: None,
            blobs_credentials: None,
            node: String::new(),
            lease_seconds: 30,
            affinity_seconds: 10,
            key_cache_mib: 128 << 10,
            key_folder: None,
            preload: Vec::new(),
            workers: vec!["auto".into()],
            key_memory_mib: 16 << 10,
            key_proofs: 1,
            in_hand: 4,
            witness_memory_mib: 4096,
            held_memory_mib: 1024,
            small_in_database: true,
            witness_key: None,
            calculators: 2,
            calculator_memory_mib: 8 << 10,
            calculator_steps: 1_000_000,
            calculator_seconds: 600,
            calculated_ahead: 32,
            max_inputs_mib: 64,
            interfaces: Vec::new(),
            otlp: None,
            log: LogForm::Text,
            survives: Survives::PowerLoss,
            attempts: 3,
            queue: 100_000,
            max_key_mib: 64 << 10,
            keep_seconds: 7 * 24 * 3600,
            ageing_seconds: 60,
            proof_seconds: 3600,
            beat_seconds: 20,
            connections: 256,
            header_seconds: 10,
            stall_seconds: 30,
            wait_seconds: 60,
            backoff_seconds: 30,
            drain_seconds: 600,
            keys: BTreeMap::new(),
            programs: BTreeMap::new(),
        }
    }
}

impl Config {
    /// The settings of a file, if there is one, below those of `environment` (by variable), below `options` (by name), over the defaults.
    /// They are checked.
    ///
    /// # Errors
    /// One sentence: which setting, from where, what was expected.
    pub fn read(
        file: Option<(&Path, &str)>,
        environment: impl Fn(&str) -> Option<String>,
        options: impl IntoIterator<Item = (&'static str, Value)>,
    ) -> Result<Config, String> {
        let mut table = match file {
            None => Table::new(),
            Some((path, text)) => {
                let table: Table = toml::from_str(text).map_err(|e| at(path, text, &e))?;
                // By itself, so that a mistake in it is told as the file's.
                toml::from_str::<Config>(text).map_err(|e| at(path, text, &e))?;
                table
            }
        };
        for (name, variable, _) in SETTINGS {
            let Some(text) = environment(variable) else { continue };
            table.insert(name.into(), value(&text));
            let alone = Table::from_iter([(name.to_string(), value(&text))]);
            alone.try_into::<Config>().map_err(|e| format!("{variable}: {}", first_line(&e.to_string())))?;
        }
        if let (false, Some(url)) = (table.contains_key("otlp"), environment(OTLP)) {
            table.insert("otlp".into(), Value::String(url));
        }
        table.extend(options.into_iter().map(|(name, value)| (name.to_string(), value)));
        let mut config: Config = table.try_into().map_err(|e| first_line(&e.to_string()))?;
        if config.data.as_os_str().is_empty() {
            config.data = home(&environment).ok_or("data: no home folder is known; say --data FOLDER")?;
        }
        config.fill_bucket(&environment);
        if config.node.is_empty() {
            config.node = nodes::own_name();
        }
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), String> {
        self.check_reach()?;
        self.check_nodes()?;
        let seconds = [
            ("keep_seconds", self.keep_seconds),
            ("lease_seconds", self.lease_seconds),
            ("affinity_seconds", self.affinity_seconds),
            ("proof_seconds", self.proof_seconds),
            ("calculator_seconds", self.calculator_seconds),
            ("beat_seconds", self.beat_seconds),
            ("header_seconds", self.header_seconds),
            ("stall_seconds", self.stall_seconds),
            ("wait_seconds", self.wait_seconds),
            ("backoff_seconds", self.backoff_seconds),
            ("drain_seconds", self.drain_seconds),
        ];
        let counts = [
            ("attempts", self.attempts, 100),
            ("queue", i64::try_from(self.queue).unwrap_or(i64::MAX), 10_000_000),
            ("connections", i64::try_from(self.connections).unwrap_or(i64::MAX), 10_000),
            ("key_memory_mib", i64::try_from(self.key_memory_mib).unwrap_or(i64::MAX), 1 << 24),
            ("key_proofs", i64::try_from(self.key_proofs).unwrap_or(i64::MAX), 1 << 40),
            ("in_hand", i64::try_from(self.in_hand).unwrap_or(i64::MAX), 64),
            ("witness_memory_mib", i64::try_from(self.witness_memory_mib).unwrap_or(i64::MAX), 1 << 24),
            ("key_cache_mib", i64::try_from(self.key_cache_mib).unwrap_or(i64::MAX), 1 << 24),
            ("max_key_mib", i64::try_from(self.max_key_mib).unwrap_or(i64::MAX), 1 << 24),
            ("workers", self.workers.len() as i64, 64),
            ("calculators", i64::try_from(self.calculators).unwrap_or(i64::MAX), 256),
            ("calculator_memory_mib", i64::try_from(self.calculator_memory_mib).unwrap_or(i64::MAX), 1 << 24),
            ("calculator_steps", i64::try_from(self.calculator_steps).unwrap_or(i64::MAX), 1_000_000_000),
            ("calculated_ahead", i64::try_from(self.calculated_ahead).unwrap_or(i64::MAX), 1_000_000),
            ("max_inputs_mib", i64::try_from(self.max_inputs_mib).unwrap_or(i64::MAX), 1 << 12),
        ];
        let seconds = seconds.map(|(name, value)| (name, i64::from(value), 366 * 24 * 3600));
        for (name, value, most) in counts.into_iter().chain(seconds) {
            if !(1..=most).contains(&value) {
                return Err(format!("{name}: {value}; expected 1 to {most}"));
            }
        }
        if self.held_memory_mib > 1 << 24 {
            return Err(format!("held_memory_mib: {}; expected 0 to {}", self.held_memory_mib, 1 << 24));
        }
        if let Some(url) = &self.otlp {
            Collector::new(url).map_err(|e| format!("otlp ({OTLP}): {e}"))?;
        }
        for (of, name) in
            self.keys.keys().map(|name| ("keys", name)).chain(self.preload.iter().map(|name| ("preload", name)))
        {
            if !is_name(name) {
                return Err(format!("{of}: '{name}': {NAME}"));
            }
        }
        match self.programs.keys().find(|name| !self.keys.contains_key(*name)) {
            Some(name) => Err(format!("programs: '{name}': expected the name of a key of [keys]")),
            None => Ok(()),
        }
    }

    /// Whether the service speaks TLS.
    pub fn has_tls(&self) -> bool {
        self.tls_certificate.is_some()
    }

    /// Where other machines can reach the service, each protection is there or was given up by name.
    fn check_reach(&self) -> Result<(), String> {
        if self.tokens && self.without.contains(&Protection::Tokens) {
            return Err("without: tokens are given up, and tokens = true wants them; leave one out".into());
        }
        if self.tls_certificate.is_some() != self.tls_key.is_some() {
            return Err("tls_certificate and tls_key: expected both or neither".into());
        }
        if self.tls_clients.is_some() && !self.has_tls() {
            return Err(
                "tls_clients: callers show certificates over TLS alone; expected tls_certificate and tls_key".into()
            );
        }
        if self.has_tls() && self.without.contains(&Protection::Tls) {
            return Err("without: tls is given up, and tls_certificate wants it; leave one out".into());
        }
        if self.listen.ip().is_loopback() {
            return Ok(());
        }
        // Whoever shows a certificate is known, if not by name.
        let is_known = self.tokens || self.tls_clients.is_some();
        let wants = [
            (Protection::Tls, self.has_tls(), "tls", "tls_certificate and tls_key (--tls-certificate, --tls-key)"),
            (Protection::Tokens, is_known, "tokens", "tokens = true (--tokens)"),
        ];
        match wants.into_iter().find(|(protection, is_there, ..)| !is_there && !self.without.contains(protection)) {
            None => Ok(()),
            Some((protection, _, name, instead)) => Err(format!(
                "listen: other machines can reach {}; expected 127.0.0.1 or [::1], or {instead}, or, to give it up, without = \
                 [\"{name}\"] (--without {name}): {}",
                self.listen,
                protection.given_up()
            )),
        }
    }

    /// The settings as a file that gives them.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).unwrap_or_default()
    }
}

/// What a key's name looks like.
pub(crate) const NAME: &str = "a name has 1 to 128 letters, digits, '-', '_' and '.', and no '.' in front";

/// Whether this can be a key's name: it is part of addresses and of files' names.
pub(crate) fn is_name(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    (1..=128).contains(&text.len()) && !text.starts_with('.') && text.bytes().all(plain)
}

/// A number, a list, or else the text itself.
fn value(text: &str) -> Value {
    let parsed = toml::from_str::<Table>(&format!("x = {text}")).ok();
    let parsed = parsed.filter(|table| table.len() == 1).and_then(|mut table| table.remove("x"));
    match parsed {
        Some(value @ (Value::Integer(_) | Value::Array(_) | Value::Boolean(_))) => value,
        _ => Value::String(text.into()),
    }
}

fn at(path: &Path, text: &str, error: &toml::de::Error) -> String {
    let line = error.span().map_or(1, |span| text.get(..span.start).unwrap_or("").matches('\n').count() + 1);
    format!("{}: line {line}: {}", path.display(), first_line(error.message()))
}

fn first_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn home(environment: &impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let set = |name| environment(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("XDG_STATE_HOME").map(|f| f.join("tandem")).or_else(|| set("HOME").map(|f| f.join(".local/state/tandem")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(
        file: Option<&str>,
        environment: &[(&str, &str)],
        options: &[(&'static str, Value)],
    ) -> Result<Config, String> {
        let file = file.map(|text| (Path::new("tandem.toml"), text));
        let of = |name: &str| environment.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string());
        Config::read(file, of, options.iter().cloned())
    }

    #[test]
    fn options_come_before_the_environment_and_that_before_the_file() {
        let file = "data = '/file'\nqueue = 1\nattempts = 2\nworkers = ['cpu', 'cpu']\n[keys]\na = '/a.zkey'";
        let environment =
            [("TANDEM_SERVE_QUEUE", "3"), ("TANDEM_SERVE_DATA", "/environment"), ("TANDEM_SERVE_WORKERS", "['sim:2']")];
        let config = read(Some(file), &environment, &[("data", Value::String("/option".into()))]).unwrap();
        assert_eq!((config.data, config.queue, config.attempts), ("/option".into(), 3, 2));
        assert_eq!((config.workers, config.keys.len()), (vec!["sim:2".to_string()], 1));
        // The standard's variable comes after all of ours.
        let standard = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://there:4318");
        let of = |file: Option<&str>, more: &[(&'static str, &'static str)]| {
            read(file, &[&[("HOME", "/home/a"), standard][..], more].concat(), &[]).unwrap().otlp
        };
        assert_eq!(of(None, &[]).as_deref(), Some("http://there:4318"));
        assert_eq!(of(Some("otlp = 'http://file:1'"), &[]).as_deref(), Some("http://file:1"));
        assert_eq!(of(None, &[("TANDEM_SERVE_OTLP", "http://own:1")]).as_deref(), Some("http://own:1"));
        let default = read(None, &[("HOME", "/home/a")], &[]).unwrap();
        assert_eq!(default.data, Path::new("/home/a/.local/state/tandem"));
    }

    #[test]
    fn what_other_machines_reach_is_protected_or_given_up_by_name() {
        let env = |listen, more: &[(&'static str, &'static str)]| {
            let mut all = vec![("HOME", "/h"), ("TANDEM_SERVE_LISTEN", listen)];
            all.extend(more);
            read(None, &all, &[])
        };
        let (tokens, no_tls) = (("TANDEM_SERVE_TOKENS", "true"), ("TANDEM_SERVE_WITHOUT", "['tls']"));
        assert!(env("127.0.0.1:1", &[]).is_ok() && env("[::1]:1", &[]).is_ok());
        assert!(env("0.0.0.0:1", &[tokens]).is_err() && env("0.0.0.0:1", &[no_tls]).is_err());
        assert!(env("0.0.0.0:1", &[tokens, no_tls]).unwrap().tokens);
        assert!(env("0.0.0.0:1", &[("TANDEM_SERVE_WITHOUT", "['tls', 'tokens']")]).is_ok());
        let (certificate, key) = (("TANDEM_SERVE_TLS_CERTIFICATE", "c"), ("TANDEM_SERVE_TLS_KEY", "k"));
        let clients = ("TANDEM_SERVE_TLS_CLIENTS", "a");
        assert!(env("0.0.0.0:1", &[certificate, key, tokens]).unwrap().has_tls());
        assert!(
            env("0.0.0.0:1", &[certificate, key, clients]).is_ok() && env("0.0.0.0:1", &[certificate, key]).is_err()
        );
    }

    #[test]
    fn what_is_printed_can_be_read() {
        let config = read(Some("data = '/d'\nkey_folder = '/k'\ndatabase = 'postgres://a@b/c'\ndatabase_ca = '/ca'\nblobs = 's3://bucket'\nblobs_endpoint = 'https://e'\nblobs_region = 'r'\nblobs_ca = '/ca'\nblobs_credentials = '/c'\nnode = 'n'\ntls_certificate = 'c'\ntls_key = 'k'\ntls_clients = 'a'\nwitness_key = 'w'\nsocket = '/s'\notlp = 'http://c:1'\n[keys]\na = '/a.zkey'\n[programs]\na = '/a.wasm'"), &[], &[]).unwrap();
        assert_eq!(read(Some(&config.to_toml()), &[], &[]).unwrap(), config);
        let names: std::collections::BTreeSet<String> =
            config.to_toml().parse::<Table>().unwrap().keys().cloned().collect();
        let known =
            SETTINGS.iter().map(|(name, ..)| name.to_string()).chain(["keys".into(), "programs".into()]).collect();
        assert_eq!(names, known);
    }

    #[test]
    fn wrong_settings_are_told_with_their_place() {
        let env = |name, value| [("HOME", "/h"), (name, value)];
        for (file, environment, parts) in [
            (
                Some("data = 'd'\nlisten = '0.0.0.0:80'"),
                &[][..],
                &["reach 0.0.0.0:80", "127.0.0.1", "--without tls", "reads"][..],
            ),
            (Some("data = 'd'\nlisten = '[::]:80'\ntokens = true"), &[], &["reach [::]:80", "--without tls"]),
            (Some("data = 'd'\nlisten = '10.0.0.1:80'\nwithout = ['tls']"), &[], &["--tokens", "removes keys"]),
            (Some("data = 'd'\ntokens = true\nwithout = ['tokens']"), &[], &["leave one out"]),
            (Some("data = 'd'\ntls_certificate = 'a'"), &[], &["tls_key", "both or neither"]),
            (Some("data = 'd'\ntls_clients = 'a'"), &[], &["tls_clients", "tls_certificate and tls_key"]),
            (Some("data = 'd'\ntls_certificate = 'a'\ntls_key = 'b'\nwithout = ['tls']"), &[], &["leave one out"]),
            (Some("data = 'd'\nlisten = '[::]:1'\ntls_certificate = 'a'\ntls_key = 'b'"), &[], &["--tokens"]),
            (Some("data = 'd'\nwithout = ['all']"), &[], &["tandem.toml: line 2", "tls", "tokens"]),
            (Some("data = 'd'\nquue = 1"), &[], &["tandem.toml: line 2", "quue"]),
            (Some("queue = \n"), &[], &["tandem.toml: line 1"]),
            (Some("queue = 'many'"), &[], &["tandem.toml: line 1", "expected u64"]),
            (Some("data = 'd'\nqueue = 0"), &[], &["queue: 0; expected 1 to"]),
            (Some("data = 'd'\nattempts = 1000"), &[], &["attempts: 1000; expected 1 to 100"]),
            (Some("data = 'd'\nsurvives = 'all'"), &[], &["tandem.toml: line 2", "power_loss", "kill"]),
            (Some("data = 'd'\ntokens = 'some'"), &[], &["tandem.toml: line 2", "expected a boolean"]),
            (Some("data = 'd'\nin_hand = 0"), &[], &["in_hand: 0; expected 1 to 64"]),
            (Some("data = 'd'\nworkers = []"), &[], &["workers: 0"]),
            (Some("data = 'd'\nheld_memory_mib = 99999999"), &[], &["held_memory_mib: 99999999; expected 0 to"]),
            (Some("data = 'd'\n[keys]\n'../a' = 'b'"), &[], &["keys: '../a'"]),
            (Some("data = 'd'\npreload = ['a/b']"), &[], &["preload: 'a/b'"]),
            (Some("data = 'd'\ninterfaces = ['x']"), &[], &["tandem.toml: line 2", "rapidsnark", "iden3"]),
            (Some("data = 'd'\nlog = 'x'"), &[], &["tandem.toml: line 2", "text", "json"]),
            (Some("data = 'd'\n[programs]\na = 'b'"), &[], &["programs: 'a'", "[keys]"]),
            (None, &env("TANDEM_SERVE_QUEUE", "many"), &["TANDEM_SERVE_QUEUE", "expected u64"]),
            (None, &env("TANDEM_SERVE_LISTEN", "here"), &["TANDEM_SERVE_LISTEN", "socket address"]),
            (Some("data = 'd'\ndatabase = 'postgres://a@b/c'"), &[], &["database and blobs", "both or neither"]),
            (Some("data = 'd'\ndatabase = 'mysql://a@b/c'\nblobs = '/b'"), &[], &["database: expected postgres://"]),
            (Some("data = 'd'\ndatabase = 'postgres://b/c'\nblobs = 'b'"), &[], &["blobs: 'b'", "begins with /"]),
            (Some("data = 'd'\ndatabase = 'postgres://b/c'\nblobs = 's3://B'"), &[], &["blobs: 's3://B'", "3 to 63"]),
            (Some("data = 'd'\nblobs_ca = 'c'"), &[], &["blobs_ca", "blobs = \"s3://bucket/prefix\""]),
            (
                Some("data = 'd'\ndatabase = 'postgres://b/c'\nblobs = 's3://abc'\nblobs_endpoint = 'minio:9000'"),
                &[],
                &["blobs_endpoint: 'minio:9000'", "https://host"],
            ),
            (Some("data = 'd'\nnode = 'a/b'"), &[], &["node: 'a/b'"]),
            (Some("data = 'd'\nlease_seconds = 0"), &[], &["lease_seconds: 0; expected 1 to"]),
            (Some("data = 'd'\notlp = 'collector:4318'"), &[], &["otlp", "http://127.0.0.1:4318"]),
            (Some("data = 'd'"), &env("OTEL_EXPORTER_OTLP_ENDPOINT", "x"), &["OTEL_EXPORTER_OTLP_ENDPOINT"]),
            (None, &[], &["data: no home folder"]),
        ] {
            let error = read(file, environment, &[]).unwrap_err();
            assert!(parts.iter().all(|part| error.contains(part)) && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn names_are_no_paths() {
        assert!(["a", "circuit-1.v2", "A_b"].iter().all(|name| is_name(name)));
        assert!(["", ".", "..", ".a", "a/b", "a b", "ä", &"x".repeat(129)].iter().all(|name| !is_name(name)));
    }
}
