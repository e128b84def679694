//! Keys by name.

use super::db::{values, Db, Row};
use super::{Result, Store, StoreError};

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
    fn read(row: &Row) -> Result<KeyRow> {
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

/// The key of this name.
pub(super) fn key_in(db: &dyn Db, name: &str) -> Result<Option<KeyRow>> {
    db.row("SELECT * FROM keys WHERE name = ?1", values![name])?.as_ref().map(KeyRow::read).transpose()
}

impl Store {
    /// Names a key; whether it is new. The same content under the same name is the same key, wherever its file lies now.
    ///
    /// # Errors
    /// [`StoreError::OtherKey`] where the name has another content.
    pub fn add_key(&self, key: &KeyRow, now: i64) -> Result<bool> {
        let key = key.clone();
        self.write(move |db| {
            let before = key_in(db, &key.name)?.map(|before| before.hash);
            if let Some(hash) = before {
                if hash != key.hash {
                    return Err(StoreError::OtherKey(key.name.clone()));
                }
                let place = values![&key.name, &key.path, key.is_own];
                db.execute("UPDATE keys SET path = ?2, is_own = ?3 WHERE name = ?1 AND is_own = 0", place)?;
                return Ok(false);
            }
            let sql = "INSERT INTO keys VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT (name) DO NOTHING";
            let KeyRow { name, path, hash, bytes, variables, publics, domain, curve, is_own } = &key;
            let sizes = [*bytes, *variables, *publics, *domain];
            let row = values![name, path, hash, sizes[0], sizes[1], sizes[2], sizes[3], curve, *is_own, now];
            if db.execute(sql, row)? == 0 {
                // Another node has named it since.
                let same = key_in(db, name)?.is_some_and(|before| before.hash == *hash);
                return if same { Ok(false) } else { Err(StoreError::OtherKey(name.clone())) };
            }
            Ok(true)
        })
    }

    /// The key of this name.
    ///
    /// # Errors
    /// The database failed.
    pub fn key(&self, name: &str) -> Result<Option<KeyRow>> {
        key_in(&**self.db(), name)
    }

    /// All keys, by name.
    ///
    /// # Errors
    /// The database failed.
    pub fn keys(&self) -> Result<Vec<KeyRow>> {
        self.db().rows("SELECT * FROM keys ORDER BY name", &[])?.iter().map(KeyRow::read).collect()
    }

    /// Forgets a key, with the jobs that it ended. Returns the key, and whether no other name has its file.
    ///
    /// # Errors
    /// [`StoreError::NoKey`]; [`StoreError::KeyInUse`] where jobs that are not done need it.
    pub fn remove_key(&self, name: &str) -> Result<(KeyRow, bool)> {
        let name = name.to_string();
        self.write(move |db| {
            let name = name.as_str();
            let key = key_in(db, name)?.ok_or_else(|| StoreError::NoKey(name.into()))?;
            let waiting = "SELECT count(*) FROM jobs WHERE key = ?1 AND state IN ('pending', 'running')";
            let jobs = db.number(waiting, values![name])?;
            if jobs > 0 {
                return Err(StoreError::KeyInUse { name: name.into(), jobs });
            }
            db.execute("DELETE FROM jobs WHERE key = ?1", values![name])?;
            db.execute("DELETE FROM keys WHERE name = ?1", values![name])?;
            let others = db.number("SELECT count(*) FROM keys WHERE path = ?1", values![&key.path])?;
            Ok((key, others == 0))
        })
    }
}
