//! What is known of jobs, attempts, results and keys: one SQLite file, and the only place that speaks SQL.
//!
//! Every method is written whole or not at all, and is on the disk when it returns, but for a claim, which costs nothing if it is lost.
//! What comes at once shares a transaction and a sync of the disk. The time is the caller's, in milliseconds since 1970.

mod inputs;
mod jobs;
mod keys;
mod programs;
mod read;
mod recent;
mod tokens;
mod writer;

pub use inputs::{Form, InputsClaim};
pub use jobs::{Cancelled, Claim, Ending, Failed, Finished, Lease, NewJob, Submitted};
pub use keys::KeyRow;
pub use programs::ProgramRow;
pub use read::{Attempt, Counts, Job, JobResult, State, Times};
pub use recent::{RecentAttempt, RecentEnd};
pub use tokens::{NewToken, Role, Token};
pub use writer::Pending;

use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use writer::Writer;

/// How long one connection to the file waits for another.
const BUSY: Duration = Duration::from_secs(5);

/// The schema's versions, oldest first. They only ever become more: a file of an older version is taken forwards, one step a
/// transaction.
const MIGRATIONS: [&str; 4] = [
    include_str!("schema.sql"),
    include_str!("schema2.sql"),
    include_str!("schema3.sql"),
    include_str!("schema_inputs.sql"),
];

/// What marks the file as ours, in its header: "TNDM".
const APPLICATION: i64 = 0x544e_444d;

/// What the store refuses, or why it failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// SQLite failed: the disk, or the file.
    #[error("the database failed: {0}")]
    Database(#[from] rusqlite::Error),
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
        use rusqlite::ErrorCode::{DiskFull, SystemIoFailure};
        let StoreError::Database(rusqlite::Error::SqliteFailure(error, _)) = self else { return false };
        matches!(error.code, DiskFull | SystemIoFailure)
    }
}

/// Result of the store's operations.
pub type Result<T> = std::result::Result<T, StoreError>;

/// The database.
pub struct Store {
    /// Reads what is written, also while more is.
    reader: Mutex<Connection>,
    writer: Writer,
}

impl Store {
    /// Opens the file, or makes it, and takes its schema to the version of this program. With `syncs`, what is acknowledged survives a
    /// loss of power too, not only the end of the process.
    ///
    /// # Errors
    /// It cannot be opened, is no database of ours, or is of a later version.
    pub fn open(path: &Path, syncs: bool) -> Result<Store> {
        let mut db = Connection::open(path)?;
        db.busy_timeout(BUSY)?;
        db.pragma_update(None, "journal_mode", "wal")?;
        db.pragma_update(None, "foreign_keys", true)?;
        migrate(&mut db, &MIGRATIONS, path)?;
        let reader = Connection::open(path)?;
        reader.busy_timeout(BUSY)?;
        reader.pragma_update(None, "query_only", true)?;
        let writer =
            Writer::start(db, syncs).map_err(|e| StoreError::Foreign(format!("no thread can be started: {e}")))?;
        Ok(Store { reader: Mutex::new(reader), writer })
    }

    fn db(&self) -> MutexGuard<'_, Connection> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes, whole, or not at all where `body` fails.
    fn write<T: Send + 'static>(&self, body: impl FnOnce(&Connection) -> Result<T> + Send + 'static) -> Result<T> {
        self.writer.write(true, body).wait()
    }
}

fn migrate(db: &mut Connection, migrations: &[&str], path: &Path) -> Result<()> {
    let foreign = |why: String| Err(StoreError::Foreign(format!("{}: {why}", path.display())));
    let number = |db: &Connection, name: &str| db.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let is_empty = db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))? == 0;
    if !is_empty && number(db, "application_id")? != APPLICATION {
        return foreign("a database of another program; name another data folder".into());
    }
    let version = usize::try_from(number(db, "user_version")?).unwrap_or(usize::MAX);
    if version > migrations.len() {
        let known = migrations.len();
        return foreign(format!("its schema has version {version}, this program knows {known}; run a later tandem"));
    }
    for (step, sql) in migrations.iter().enumerate().skip(version) {
        let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(sql)?;
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", (step + 1) as i64)?;
        transaction.commit()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(refused.contains("version 5, this program knows 4; run a later tandem"), "{refused}");
    }

    /// What a service of any earlier version left goes on under this one, from the first version on.
    #[test]
    fn files_of_earlier_versions_are_taken_forwards() {
        for version in 1..MIGRATIONS.len() {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("jobs.db");
            let mut db = Connection::open(&path).unwrap();
            migrate(&mut db, &MIGRATIONS[..version], &path).unwrap();
            db.execute_batch(
                "INSERT INTO keys VALUES ('k', 'p', 'h', 1, 2, 3, 4, 'c', 0, 5);
                 INSERT INTO jobs (id, request, digest, key, witness, witness_bytes, priority, rank, state, created_ms) VALUES
                 ('waits', 'r', 'd', 'k', 'w', 7, 0, 1, 'pending', 1), ('done', NULL, 'd', 'k', 'w', 7, 0, 0, 'done', 0);
                 INSERT INTO results (job, attempt, proof, publics, seconds, device) VALUES ('done', 1, '{}', '[]', 1.5, 'CPU')",
            )
            .unwrap();
            drop(db);
            let store = Store::open(&path, true).unwrap();
            let result = store.result("done").unwrap().unwrap();
            assert_eq!((result.seconds, result.times), (1.5, None), "version {version}");
            // No token's, under the caller's id that it had.
            let job = store.job("waits").unwrap().unwrap();
            assert_eq!((job.token, job.request.as_deref()), (None, Some("r")), "version {version}");
            let claim = store.claim("0", 9, 0, None).unwrap().unwrap();
            assert_eq!(
                (claim.lease.job.as_str(), claim.is_alone, claim.is_sealed),
                ("waits", false, false),
                "version {version}"
            );
            let new = NewToken { name: "a".into(), role: Role::Submit, jobs: None, rate: None };
            let token = store.add_token(&new, 1).unwrap();
            assert_eq!(store.token(&token).unwrap().unwrap().name, "a", "version {version}");
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
        let more: i64 = store
            .db()
            .query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'more'", [], |row| row.get(0))
            .unwrap();
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
