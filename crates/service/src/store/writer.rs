//! The one thread that writes. What waits for it is one transaction, so that jobs that come at once share one sync of the disk.

use super::db::Db;
use super::{Result, StoreError};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::thread::JoinHandle;

/// Writes of one transaction at most.
const MOST: usize = 64;

/// The thread, which ends with this when everything is written.
pub(super) struct Writer {
    /// `None` where it is told to end.
    writes: Option<Sender<Write>>,
    thread: Option<JoinHandle<()>>,
}

struct Write {
    /// Whether it must be on the disk before anybody hears of it.
    is_synced: bool,
    task: Box<dyn Task + Send>,
}

/// Something to write, for somebody who waits.
trait Task {
    /// Writes; whether it stays.
    fn run(&mut self, db: &dyn Db) -> bool;
    /// Tells who waits, after the transaction: `failed` where that failed.
    fn tell(self: Box<Self>, failed: Option<&StoreError>);
}

struct Body<F, T> {
    body: Option<F>,
    value: Option<Result<T>>,
    to: Sender<Result<T>>,
}

impl<T, F: FnOnce(&dyn Db) -> Result<T>> Task for Body<F, T> {
    fn run(&mut self, db: &dyn Db) -> bool {
        self.value = self.body.take().map(|body| body(db));
        self.value.as_ref().is_some_and(Result::is_ok)
    }

    fn tell(self: Box<Self>, failed: Option<&StoreError>) {
        let value = match (self.value, failed) {
            (Some(Err(error)), _) => Err(error),
            (_, Some(error)) => Err(error.of_all()),
            (Some(value), None) => value,
            (None, None) => Err(StoreError::Ended),
        };
        // Who does not wait any more need not hear of it.
        let _ = self.to.send(value);
    }
}

/// Something that is being written.
#[must_use]
pub struct Pending<T>(Receiver<Result<T>>);

impl<T> Pending<T> {
    /// Waits until it is written, and, unless it was a claim, on the disk.
    ///
    /// # Errors
    /// It was refused, or the database failed.
    pub fn wait(self) -> Result<T> {
        self.0.recv().unwrap_or(Err(StoreError::Ended))
    }
}

impl Writer {
    /// Writes to `db`.
    pub(super) fn start(db: Box<dyn Db + Send>) -> std::io::Result<Writer> {
        let (writes, inbox) = channel::<Write>();
        let thread = std::thread::Builder::new().name("database".into()).spawn(move || {
            while let Ok(first) = inbox.recv() {
                let batch: Vec<_> = std::iter::once(first).chain(inbox.try_iter().take(MOST - 1)).collect();
                commit(&*db, batch);
            }
        })?;
        Ok(Writer { writes: Some(writes), thread: Some(thread) })
    }

    /// Has `body` written, whole, or not at all where it fails. Without `is_synced` it may be lost with the machine's power, as if it had
    /// not been written, but not with the process.
    pub(super) fn write<T: Send + 'static>(
        &self,
        is_synced: bool,
        body: impl FnOnce(&dyn Db) -> Result<T> + Send + 'static,
    ) -> Pending<T> {
        let (to, reply) = channel();
        let task = Box::new(Body { body: Some(body), value: None, to });
        if let Some(writes) = &self.writes {
            // Where the thread has ended, nobody replies.
            let _ = writes.send(Write { is_synced, task });
        }
        Pending(reply)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.writes = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn commit(db: &dyn Db, mut batch: Vec<Write>) {
    let outcome = transaction(db, &mut batch);
    if outcome.is_err() {
        db.rollback();
    }
    batch.into_iter().for_each(|write| write.task.tell(outcome.as_ref().err()));
}

fn transaction(db: &dyn Db, batch: &mut [Write]) -> Result<()> {
    db.begin(batch.iter().any(|write| write.is_synced))?;
    if let [write] = batch {
        match write.task.run(db) {
            true => db.commit()?,
            false => db.rollback(),
        }
        return Ok(());
    }
    for write in batch {
        // What fails goes by itself.
        db.batch("SAVEPOINT one")?;
        if !write.task.run(db) {
            db.batch("ROLLBACK TO one")?;
        }
        db.batch("RELEASE one")?;
    }
    db.commit()
}

#[cfg(test)]
mod tests {
    use super::super::db::values;
    use super::super::sqlite::Sqlite;
    use super::*;
    use rusqlite::Connection;

    fn count(db: &dyn Db) -> u64 {
        db.number("SELECT count(*) FROM x", &[]).unwrap()
    }

    fn open(path: &std::path::Path) -> Sqlite {
        Sqlite::of(Connection::open(path).unwrap())
    }

    /// Writes that wait are one transaction; of these, what fails leaves nothing, and the others stay.
    #[test]
    fn writes_share_a_transaction_and_fail_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let db = Connection::open(&path).unwrap();
        db.execute_batch("PRAGMA journal_mode = wal; CREATE TABLE x (n INTEGER UNIQUE)").unwrap();
        let writer = Writer::start(Box::new(Sqlite::of(db))).unwrap();
        let (go, gate) = channel::<()>();
        let first = writer.write(true, move |_| Ok(gate.recv().is_ok()));
        let add = |n: u64| {
            let path = path.clone();
            writer.write(true, move |db| {
                db.execute("INSERT INTO x VALUES (?1)", values![n])?;
                match n {
                    // Of the same transaction nobody else sees anything.
                    4 => Ok(4 + count(&open(&path))),
                    3 => Err(StoreError::NoKey("three".into())),
                    _ => Ok(n),
                }
            })
        };
        // The fourth is there already.
        let others = [1, 2, 3, 2, 4].map(add);
        go.send(()).unwrap();
        assert!(first.wait().unwrap());
        let told = others.map(|pending| pending.wait().map_err(|error| error.to_string()));
        assert_eq!((&told[0], &told[1], &told[4]), (&Ok(1), &Ok(2), &Ok(4)));
        assert!(told[2].as_ref().unwrap_err().contains("three") && told[3].as_ref().unwrap_err().contains("UNIQUE"));
        assert_eq!(writer.write(true, |db| Ok(count(db))).wait().unwrap(), 3);
        drop(writer);
        assert_eq!(count(&open(&path)), 3);
    }

    /// Nobody is told of what a transaction that failed would have written.
    #[test]
    fn a_transaction_that_fails_fails_all() {
        let db = Connection::open_in_memory().unwrap();
        // Checked at the end of a transaction.
        let deferred = "CREATE TABLE p (n INTEGER PRIMARY KEY); \
                        CREATE TABLE x (n INTEGER REFERENCES p (n) DEFERRABLE INITIALLY DEFERRED)";
        db.execute_batch(&format!("PRAGMA foreign_keys = on; {deferred}")).unwrap();
        let writer = Writer::start(Box::new(Sqlite::of(db))).unwrap();
        let add = |n: i64| writer.write(true, move |db| db.execute("INSERT INTO x VALUES (?1)", values![n]));
        for pending in [1, 2, 3].map(add) {
            assert!(matches!(pending.wait(), Err(StoreError::Database(_))));
        }
        assert_eq!(writer.write(true, |db| Ok(count(db))).wait().unwrap(), 0);
    }
}
