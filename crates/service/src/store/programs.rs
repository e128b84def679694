//! Programs that calculate the witnesses of keys' circuits.

use super::{Result, Store, StoreError};
use rusqlite::{params, OptionalExtension, Row};

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
    fn read(row: &Row<'_>) -> rusqlite::Result<ProgramRow> {
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
            let known = db.query_row("SELECT 1 FROM keys WHERE name = ?1", [key], |_| Ok(())).optional()?;
            known.ok_or_else(|| StoreError::NoKey(key.clone()))?;
            let before: Option<String> =
                db.query_row("SELECT hash FROM programs WHERE key = ?1", [key], |row| row.get(0)).optional()?;
            match before {
                Some(before) if before != *hash => Err(StoreError::OtherProgram(key.clone())),
                Some(_) => {
                    let sql = "UPDATE programs SET path = ?2, is_own = ?3 WHERE key = ?1 AND is_own = 0";
                    db.execute(sql, params![key, path, is_own])?;
                    Ok(false)
                }
                None => {
                    db.execute(
                        "INSERT INTO programs (key, path, hash, bytes, is_own, created_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                        params![key, path, hash, bytes, is_own, now],
                    )?;
                    Ok(true)
                }
            }
        })
    }

    /// The program of a key.
    ///
    /// # Errors
    /// The database failed.
    pub fn program(&self, key: &str) -> Result<Option<ProgramRow>> {
        let db = self.db();
        let mut rows = db.prepare_cached("SELECT * FROM programs WHERE key = ?1")?;
        Ok(rows.query_row([key], ProgramRow::read).optional()?)
    }

    /// All programs.
    ///
    /// # Errors
    /// The database failed.
    pub fn programs(&self) -> Result<Vec<ProgramRow>> {
        let db = self.db();
        let mut rows = db.prepare_cached("SELECT * FROM programs ORDER BY key")?;
        let programs = rows.query_map([], ProgramRow::read)?.collect::<std::result::Result<_, _>>()?;
        Ok(programs)
    }
}
