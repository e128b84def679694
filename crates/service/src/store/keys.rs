//! Keys by name.

use super::{Result, Store, StoreError};
use rusqlite::{params, Connection, OptionalExtension, Row};

/// A key that the service knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRow {
    /// Its name.
    pub name: String,
    /// The `.zkey` file.
    pub path: String,
    /// BLAKE3 of the file, in hexadecimal.
    pub hash: String,
    /// Bytes of the file.
    pub bytes: u64,
    /// Wires of the circuit.
    pub variables: u64,
    /// Public values.
    pub publics: u64,
    /// Rows of its domain.
    pub domain: u64,
    /// Its curve, such as `bn254`.
    pub curve: String,
    /// Whether it was uploaded, so that the file is the service's to remove.
    pub is_own: bool,
}

impl KeyRow {
    fn read(row: &Row<'_>) -> rusqlite::Result<KeyRow> {
        Ok(KeyRow {
            name: row.get("name")?,
            path: row.get("path")?,
            hash: row.get("hash")?,
            bytes: row.get("bytes")?,
            variables: row.get("variables")?,
            publics: row.get("publics")?,
            domain: row.get("domain")?,
            curve: row.get("curve")?,
            is_own: row.get("is_own")?,
        })
    }
}

/// The key of this name, which a job refers to.
pub(super) fn key_in(db: &Connection, name: &str) -> Result<KeyRow> {
    Ok(db.prepare_cached("SELECT * FROM keys WHERE name = ?1")?.query_row([name], KeyRow::read)?)
}

impl Store {
    /// Names a key; whether it is new. The same content under the same name is the same key, wherever its file lies now.
    ///
    /// # Errors
    /// [`StoreError::OtherKey`] where the name has another content.
    pub fn add_key(&self, key: &KeyRow, now: i64) -> Result<bool> {
        let key = key.clone();
        self.write(move |db| {
            let before: Option<String> =
                db.query_row("SELECT hash FROM keys WHERE name = ?1", [&key.name], |row| row.get(0)).optional()?;
            if let Some(hash) = before {
                if hash != key.hash {
                    return Err(StoreError::OtherKey(key.name.clone()));
                }
                let place = params![key.name, key.path, key.is_own];
                db.execute("UPDATE keys SET path = ?2, is_own = ?3 WHERE name = ?1 AND NOT is_own", place)?;
                return Ok(false);
            }
            db.execute(
                "INSERT INTO keys VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
                params![
                    key.name,
                    key.path,
                    key.hash,
                    key.bytes,
                    key.variables,
                    key.publics,
                    key.domain,
                    key.curve,
                    key.is_own,
                    now
                ],
            )?;
            Ok(true)
        })
    }

    /// The key of this name.
    ///
    /// # Errors
    /// The database failed.
    pub fn key(&self, name: &str) -> Result<Option<KeyRow>> {
        let db = self.db();
        let mut rows = db.prepare_cached("SELECT * FROM keys WHERE name = ?1")?;
        Ok(rows.query_row([name], KeyRow::read).optional()?)
    }

    /// All keys, by name.
    ///
    /// # Errors
    /// The database failed.
    pub fn keys(&self) -> Result<Vec<KeyRow>> {
        let db = self.db();
        let mut rows = db.prepare_cached("SELECT * FROM keys ORDER BY name")?;
        let keys = rows.query_map([], KeyRow::read)?.collect::<std::result::Result<_, _>>()?;
        Ok(keys)
    }

    /// Forgets a key, with the jobs that it ended. Returns the key, and whether no other name has its file.
    ///
    /// # Errors
    /// [`StoreError::NoKey`]; [`StoreError::KeyInUse`] where jobs that are not done need it.
    pub fn remove_key(&self, name: &str) -> Result<(KeyRow, bool)> {
        let name = name.to_string();
        self.write(move |db| {
            let name = name.as_str();
            let key = db.query_row("SELECT * FROM keys WHERE name = ?1", [name], KeyRow::read).optional()?;
            let key = key.ok_or_else(|| StoreError::NoKey(name.into()))?;
            let waiting = "SELECT count(*) FROM jobs WHERE key = ?1 AND state IN ('pending', 'running')";
            let jobs: u64 = db.query_row(waiting, [name], |row| row.get(0))?;
            if jobs > 0 {
                return Err(StoreError::KeyInUse { name: name.into(), jobs });
            }
            db.execute("DELETE FROM jobs WHERE key = ?1", [name])?;
            db.execute("DELETE FROM keys WHERE name = ?1", [name])?;
            let others: u64 =
                db.query_row("SELECT count(*) FROM keys WHERE path = ?1", [&key.path], |row| row.get(0))?;
            Ok((key, others == 0))
        })
    }
}
