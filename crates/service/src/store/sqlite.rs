//! Jobs in a file of SQLite: for one service at a time.

use super::db::{Db, Row, Value};
use super::{Result, StoreError, MIGRATIONS};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{params_from_iter, Connection, ToSql, TransactionBehavior};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long one connection to the file waits for another.
const BUSY: Duration = Duration::from_secs(5);

/// What marks the file as ours, in its header: "TNDM".
const APPLICATION: i64 = 0x544e_444d;

/// A connection to the file.
pub(super) struct Sqlite {
    pub(super) db: Connection,
    /// Whether transactions outlive a loss of power.
    syncs: bool,
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Null => ValueRef::Null,
            Value::Int(number) => ValueRef::Integer(*number),
            Value::Real(number) => ValueRef::Real(*number),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> StoreError {
        use rusqlite::ErrorCode::{DiskFull, SystemIoFailure};
        match &error {
            rusqlite::Error::SqliteFailure(code, _) if matches!(code.code, DiskFull | SystemIoFailure) => {
                StoreError::Full(error.to_string())
            }
            _ => StoreError::Database(error.to_string()),
        }
    }
}

/// A connection that reads, and one that writes.
pub(super) fn open(path: &Path, syncs: bool) -> Result<[Sqlite; 2]> {
    let mut db = Connection::open(path)?;
    db.busy_timeout(BUSY)?;
    db.pragma_update(None, "journal_mode", "wal")?;
    db.pragma_update(None, "foreign_keys", true)?;
    // Pages of witnesses that are gone are overwritten.
    db.pragma_update(None, "secure_delete", true)?;
    migrate(&mut db, &MIGRATIONS, path)?;
    let reader = Connection::open(path)?;
    reader.busy_timeout(BUSY)?;
    reader.pragma_update(None, "query_only", true)?;
    Ok([Sqlite { db: reader, syncs }, Sqlite { db, syncs }])
}

pub(super) fn migrate(db: &mut Connection, migrations: &[&str], path: &Path) -> Result<()> {
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

impl Sqlite {
    #[cfg(test)]
    pub(super) fn of(db: Connection) -> Sqlite {
        Sqlite { db, syncs: true }
    }
}

impl Db for Sqlite {
    fn execute(&self, sql: &str, values: &[Value]) -> Result<u64> {
        Ok(self.db.prepare_cached(sql)?.execute(params_from_iter(values))? as u64)
    }

    fn rows(&self, sql: &str, values: &[Value]) -> Result<Vec<Row>> {
        let mut statement = self.db.prepare_cached(sql)?;
        let names: Arc<[String]> = statement.column_names().into_iter().map(String::from).collect();
        let read = |row: &rusqlite::Row<'_>| {
            let value = |at| {
                Ok(match row.get_ref(at)? {
                    ValueRef::Integer(number) => Value::Int(number),
                    ValueRef::Real(number) => Value::Real(number),
                    ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
                    ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
                    ValueRef::Null => Value::Null,
                })
            };
            Ok(Row { names: names.clone(), values: (0..names.len()).map(value).collect::<rusqlite::Result<_>>()? })
        };
        let rows = statement.query_map(params_from_iter(values), read)?.collect::<rusqlite::Result<_>>()?;
        Ok(rows)
    }

    fn batch(&self, sql: &str) -> Result<()> {
        Ok(self.db.execute_batch(sql)?)
    }

    fn begin(&self, is_synced: bool) -> Result<()> {
        self.db.pragma_update(None, "synchronous", if self.syncs && is_synced { "full" } else { "normal" })?;
        self.batch("BEGIN IMMEDIATE")
    }

    fn commit(&self) -> Result<()> {
        self.batch("COMMIT")
    }

    fn rollback(&self) {
        let _ = self.batch("ROLLBACK");
    }

    fn tell(&self, _: &str) -> Result<()> {
        Ok(())
    }

    fn is_shared(&self) -> bool {
        false
    }
}
