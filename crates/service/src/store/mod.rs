//! What is known of jobs, attempts, results, keys and nodes, and the only place that speaks SQL: one file of SQLite for one service, or a
//! database of PostgreSQL for many. Each statement stands once, in words that both understand; `sqlite` and `postgres` say what differs.
//!
//! Every method is written whole or not at all, and is on the disk when it returns, but for a claim, which costs nothing if it is lost.
//! What comes at once shares a transaction and a sync of the disk. The time is the caller's, in milliseconds since 1970: [`Store::now`].

mod db;
mod inputs;
mod jobs;
mod keys;
mod nodes;
mod postgres;
mod programs;
mod read;
mod recent;
mod sqlite;
mod tokens;
mod writer;

pub use inputs::{Calculated, Form, InputsClaim};
pub use jobs::{Cancelled, Claim, Ending, Failed, Finished, Lease, Near, NewJob, Submitted};
pub use keys::KeyRow;
pub use nodes::Node;
pub use programs::ProgramRow;
pub use read::{Attempt, Counts, Job, JobResult, State, Times};
pub use recent::{RecentAttempt, RecentEnd};
pub use tokens::{NewToken, Role, Token};
pub use writer::Pending;

use db::Db;
use jobs::Holder;
use postgres::{Address, Postgres};
use std::collections::HashSet;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use writer::Writer;

/// The schema's versions, oldest first. They only ever become more: a file of an older version is taken forwards, one step a
/// transaction.
const MIGRATIONS: [&str; 7] = [
    include_str!("schema.sql"),
    include_str!("schema2.sql"),
    include_str!("schema3.sql"),
    include_str!("schema_inputs.sql"),
    include_str!("schema_nodes.sql"),
    include_str!("schema_traces.sql"),
    include_str!("schema_witnesses.sql"),
];

/// What the store refuses, or why it failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database failed: the disk, or the file.
    #[error("the database failed: {0}")]
    Database(String),
    /// Its disk has no room.
    #[error("the database failed: {0}")]
    Full(String),
    /// It cannot be reached, or did not answer. What was to be written may have been.
    #[error("the database is not there: {0}")]
    Lost(String),
    /// The file is no database of this program, or of a later version.
    #[error("{0}")]
    Foreign(String),
    /// The caller's id was used with another key or another witness.
    #[error("the id was used before with another key or another witness; give each job an id of its own")]
    OtherContent,
    /// The thread that writes has ended.
    #[error("the database's thread has ended, which is a defect of tandem; start the service again")]
    Ended,
    /// As many jobs wait as may.
    #[error("{0} jobs wait already, as many as may; try again when some are done")]
    QueueFull(u64),
    /// The token is not valid any more.
    #[error("the token was revoked")]
    Revoked,
    /// The token has as many jobs as it may.
    #[error("{0} jobs of this token wait or run, as many as may; try again when some are done")]
    TokenJobs(u64),
    /// Another key has this name.
    #[error("another key is called '{0}' already; give this one another name, or remove that one")]
    OtherKey(String),
    /// The key has another program.
    #[error("the key '{0}' has another program; remove the key, or give it another name")]
    OtherProgram(String),
    /// The key has no program.
    #[error("the key '{0}' has no program for witnesses; give it one (tandem keys add NAME FILE --wasm PROGRAM), or submit a witness")]
    NoProgram(String),
    /// No key has this name.
    #[error("no key is called '{0}'; register it first")]
    NoKey(String),
    /// Jobs that are not done need the key.
    #[error("{jobs} jobs that are not done need the key '{name}'; wait for them or cancel them")]
    KeyInUse {
        /// The key.
        name: String,
        /// How many.
        jobs: u64,
    },
}

impl StoreError {
    /// Whether the disk has no room.
    pub fn is_full(&self) -> bool {
        matches!(self, StoreError::Full(_))
    }

    /// Whether it is not known that nothing was written.
    pub fn is_unknown(&self) -> bool {
        matches!(self, StoreError::Lost(_))
    }

    /// A failure that befalls several.
    fn of_all(&self) -> StoreError {
        match self {
            StoreError::Full(why) => StoreError::Full(why.clone()),
            StoreError::Lost(why) => StoreError::Lost(why.clone()),
            other => StoreError::Database(other.to_string()),
        }
    }
}

/// Result of the store's operations.
pub type Result<T> = std::result::Result<T, StoreError>;

/// The database.
pub struct Store {
    /// Reads what is written, also while more is.
    reader: Mutex<Box<dyn Db + Send>>,
    writer: Writer,
    holder: Holder,
    shared: Option<Shared>,
}

/// What there is of a database that nodes share.
struct Shared {
    /// What this node is called.
    node: String,
    address: Address,
    /// Prolongs leases, whatever the other connections wait for.
    beats: Mutex<Postgres>,
    /// The leases that are to be prolonged.
    held: Mutex<HashSet<Lease>>,
    /// A time by the database's clock, and when it was that.
    clock: Mutex<(i64, Instant)>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn no_thread(e: std::io::Error) -> StoreError {
    StoreError::Foreign(format!("no thread can be started: {e}"))
}

impl Store {
    /// Opens the file, or makes it, and takes its schema to the version of this program. With `syncs`, what is acknowledged survives a
    /// loss of power too, not only the end of the process.
    ///
    /// # Errors
    /// It cannot be opened, is no database of ours, or is of a later version.
    pub fn open(path: &Path, syncs: bool) -> Result<Store> {
        let [reader, db] = sqlite::open(path, syncs)?;
        let writer = Writer::start(Box::new(db)).map_err(no_thread)?;
        let holder = Holder { run: tokens::random_hex::<8>()?, lease_ms: None };
        Ok(Store { reader: Mutex::new(Box::new(reader)), writer, holder, shared: None })
    }

    /// Uses the database of a URL as the node of this name, and takes its schema to the version of this program. A claim holds for
    /// `lease` unless it is prolonged ([`Store::beat`]).
    ///
    /// # Errors
    /// The URL is none, the database cannot be reached, is of a later version, or the operating system gives no random numbers.
    pub fn connect(url: &str, tls: rustls::ClientConfig, node: &str, lease: Duration) -> Result<Store> {
        let address = Address::new(url, tls)?;
        let db = address.connect()?;
        db.migrate_all()?;
        let (reader, beats) = (address.connect()?, address.connect()?);
        let clock = Mutex::new((time_of(&beats)?, Instant::now()));
        let writer = Writer::start(Box::new(db)).map_err(no_thread)?;
        let (node, beats, held) = (node.into(), Mutex::new(beats), Mutex::default());
        let shared = Some(Shared { node, address, beats, held, clock });
        let lease_ms = Some(i64::try_from(lease.as_millis()).unwrap_or(i64::MAX));
        let holder = Holder { run: tokens::random_hex::<8>()?, lease_ms };
        Ok(Store { reader: Mutex::new(Box::new(reader)), writer, holder, shared })
    }

    /// Whether several nodes may use the database.
    pub fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Milliseconds since 1970: by the database's clock where nodes share it, carried on by a clock that nobody sets; else by the
    /// machine's.
    pub fn now(&self) -> i64 {
        let Some(shared) = &self.shared else {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            return i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
        };
        let (time, at) = *lock(&shared.clock);
        time.saturating_add(i64::try_from(at.elapsed().as_millis()).unwrap_or(i64::MAX))
    }

    /// How a worker of this node is called among those of all.
    fn worker(&self, name: &str) -> String {
        self.shared.as_ref().map_or(name.into(), |shared| format!("{}/{name}", shared.node))
    }

    fn db(&self) -> MutexGuard<'_, Box<dyn Db + Send>> {
        lock(&self.reader)
    }

    /// Writes, whole, or not at all where `body` fails.
    fn write<T: Send + 'static>(&self, body: impl FnOnce(&dyn Db) -> Result<T> + Send + 'static) -> Result<T> {
        self.writer.write(true, body).wait()
    }
}

/// The database's clock.
fn time_of(db: &Postgres) -> Result<i64> {
    db.row(&format!("SELECT {}", postgres::NOW), &[])?.map_or(Ok(0), |row| row.at(0))
}

#[cfg(test)]
#[path = "../../tests/service/support/postgres.rs"]
#[allow(dead_code)] // the drills use the rest
mod server;

#[cfg(test)]
mod tests {
    use super::sqlite::migrate;
    use super::*;
    use rusqlite::Connection;

    #[test]
    fn the_schema_goes_forwards_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jobs.db");
        drop(Store::open(&path, true).unwrap());
        // To open it again changes nothing; a later version keeps what is there; then the older program refuses.
        drop(Store::open(&path, true).unwrap());
        let mut db = Connection::open(&path).unwrap();
        db.execute("INSERT INTO keys VALUES ('k', 'p', 'h', 1, 2, 3, 4, 'c', 0, 5)", []).unwrap();
        let later = [&MIGRATIONS[..], &["ALTER TABLE keys ADD COLUMN note TEXT"]].concat();
        migrate(&mut db, &later, &path).unwrap();
        let kept: (String, Option<String>) =
            db.query_row("SELECT name, note FROM keys", [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        assert_eq!(kept, ("k".into(), None));
        drop(db);
        let refused = Store::open(&path, true).err().unwrap().to_string();
        assert!(refused.contains("version 8, this program knows 7; run a later tandem"), "{refused}");
    }

    /// What a service of the first version left.
    const LEFT: &str = "INSERT INTO keys VALUES ('k', 'p', 'h', 1, 2, 3, 4, 'c', 0, 5);
        INSERT INTO jobs (id, request, digest, key, witness, witness_bytes, priority, rank, state, created_ms) VALUES
        ('waits', 'r', 'd', 'k', 'w', 7, 0, 1, 'pending', 1), ('done', NULL, 'd', 'k', 'w', 7, 0, 0, 'done', 0);
        INSERT INTO results (job, attempt, proof, publics, seconds, device) VALUES ('done', 1, '{}', '[]', 1.5, 'CPU')";

    fn goes_on(store: &Store, version: usize) {
        let result = store.result("done").unwrap().unwrap();
        assert_eq!((result.seconds, result.times), (1.5, None), "version {version}");
        // No token's, under the caller's id that it had.
        let job = store.job("waits").unwrap().unwrap();
        assert_eq!((job.token, job.request.as_deref()), (None, Some("r")), "version {version}");
        let claim = store.claim("0", 9, 0, None).unwrap().unwrap();
        let found = (claim.lease.job.as_str(), claim.is_alone, claim.is_sealed);
        assert_eq!(found, ("waits", false, false), "version {version}");
        let new = NewToken { name: "a".into(), role: Role::Submit, jobs: None, rate: None };
        let token = store.add_token(&new, 1).unwrap();
        assert_eq!(store.token(&token).unwrap().unwrap().name, "a", "version {version}");
    }

    /// What a service of any earlier version left goes on under this one, from the first version on.
    #[test]
    fn files_of_earlier_versions_are_taken_forwards() {
        for version in 1..MIGRATIONS.len() {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("jobs.db");
            let mut db = Connection::open(&path).unwrap();
            migrate(&mut db, &MIGRATIONS[..version], &path).unwrap();
            db.execute_batch(LEFT).unwrap();
            drop(db);
            goes_on(&Store::open(&path, true).unwrap(), version);
        }
    }

    /// So do databases; a later version is refused, what fails leaves the version before, and nodes may start at once.
    #[test]
    fn databases_of_earlier_versions_are_taken_forwards() {
        let server = server::Postgres::start();
        let connect = |url: &str, node: &str| Store::connect(url, server::no_tls(), node, Duration::from_secs(60));
        for version in 1..MIGRATIONS.len() {
            let url = server.database(&format!("version{version}"));
            let db = Address::new(&url, server::no_tls()).unwrap().connect().unwrap();
            db.migrate(&MIGRATIONS[..version]).unwrap();
            db.batch(LEFT).unwrap();
            goes_on(&connect(&url, "a").unwrap(), version);
        }
        let url = server.database("later");
        let nodes: Vec<_> = std::thread::scope(|scope| {
            let threads = ["a", "b", "c"].map(|node| scope.spawn(|| connect(&url, node)));
            threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect()
        });
        drop(nodes);
        let db = Address::new(&url, server::no_tls()).unwrap().connect().unwrap();
        db.batch("INSERT INTO keys VALUES ('k', 'p', 'h', 1, 2, 3, 4, 'c', 0, 5)").unwrap();
        for bound in ["statement_timeout", "idle_in_transaction_session_timeout"] {
            let set: Option<String> = db.row(&format!("SHOW {bound}"), &[]).unwrap().map(|row| row.at(0).unwrap());
            assert_eq!(set.as_deref(), Some("10s"), "{bound}");
        }
        let broken = [&MIGRATIONS[..], &["CREATE TABLE more (x TEXT)", "CREATE TABLE keys (x TEXT)"]].concat();
        assert!(db.migrate(&broken).is_err());
        assert_eq!(connect(&url, "a").unwrap().keys().unwrap().len(), 1);
        db.migrate(&broken[..=MIGRATIONS.len()]).unwrap();
        let refused = connect(&url, "a").err().unwrap().to_string();
        assert!(refused.contains("version 8, this program knows 7; run a later tandem"), "{refused}");
        for (url, part) in [("postgres://", "the host is missing"), ("postgres://h:x/", "database: ")] {
            let refused = connect(url, "a").err().unwrap().to_string();
            assert!(refused.contains(part), "{refused}");
        }
    }

    #[test]
    fn a_migration_that_fails_leaves_the_version_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jobs.db");
        let mut db = Connection::open(&path).unwrap();
        let broken = [&MIGRATIONS[..], &["CREATE TABLE more (x TEXT); CREATE TABLE keys (x TEXT)"]].concat();
        assert!(migrate(&mut db, &broken, &path).is_err());
        drop(db);
        let store = Store::open(&path, true).unwrap();
        let more = store.db().number("SELECT count(*) FROM sqlite_schema WHERE name = 'more'", &[]).unwrap();
        assert_eq!(more, 0);
    }

    #[test]
    fn other_peoples_databases_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jobs.db");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE theirs (x TEXT)").unwrap();
        let refused = Store::open(&path, true).err().unwrap().to_string();
        assert!(refused.contains("a database of another program"), "{refused}");
        std::fs::write(&path, "no database at all, but long enough to be looked at").unwrap();
        assert!(Store::open(&path, true).is_err());
    }
}
