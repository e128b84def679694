//! Programs that calculate the witnesses of keys' circuits.

use super::db::{values, Row};
use super::{Result, Store, StoreError};

/// A circuit's program, registered beside its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramRow {
    /// The key's name.
    pub key: String,
    /// The file: WebAssembly, or a graph of circom-witnesscalc.
    pub path: String,
    /// BLAKE3 of the file, in hexadecimal.
    pub hash: String,
    /// Bytes of the file.
    pub bytes: u64,
    /// Whether it was uploaded, so that the file is the service's to remove.
    pub is_own: bool,
}

impl ProgramRow {
    fn read(row: &Row) -> Result<ProgramRow> {
        Ok(ProgramRow {
            key: row.get("key")?,
            path: row.get("path")?,
            hash: row.get("hash")?,
            bytes: row.get("bytes")?,
            is_own: row.get("is_own")?,
        })
    }
}

impl Store {
    /// Gives a key its program; whether it is new. The same content again is the same program, wherever its file lies now.
    ///
    /// # Errors
    /// [`StoreError::NoKey`]; [`StoreError::OtherProgram`] where the key has another one.
    pub fn add_program(&self, program: &ProgramRow, now: i64) -> Result<bool> {
        let program = program.clone();
        self.write(move |db| {
            let ProgramRow { key, path, hash, bytes, is_own } = &program;
            super::keys::key_in(db, key)?.ok_or_else(|| StoreError::NoKey(key.clone()))?;
            let sql =
                "INSERT INTO programs (key, path, hash, bytes, is_own, created_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
                       ON CONFLICT (key) DO NOTHING";
            if db.execute(sql, values![key, path, hash, *bytes, *is_own, now])? == 1 {
                return Ok(true);
            }
            let before = db.row("SELECT hash FROM programs WHERE key = ?1", values![key])?;
            if before.map(|row| row.at::<String>(0)).transpose()?.as_ref() != Some(hash) {
                return Err(StoreError::OtherProgram(key.clone()));
            }
            let sql = "UPDATE programs SET path = ?2, is_own = ?3 WHERE key = ?1 AND is_own = 0";
            db.execute(sql, values![key, path, *is_own])?;
            Ok(false)
        })
    }

    /// The program of a key.
    ///
    /// # Errors
    /// The database failed.
    pub fn program(&self, key: &str) -> Result<Option<ProgramRow>> {
        let row = self.db().row("SELECT * FROM programs WHERE key = ?1", values![key])?;
        row.as_ref().map(ProgramRow::read).transpose()
    }

    /// All programs.
    ///
    /// # Errors
    /// The database failed.
    pub fn programs(&self) -> Result<Vec<ProgramRow>> {
        self.db().rows("SELECT * FROM programs ORDER BY key", &[])?.iter().map(ProgramRow::read).collect()
    }
}
