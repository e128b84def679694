//! Jobs that come as inputs: a calculator makes the witness, and then they wait for a prover like others. Both are attempts of the job,
//! with leases.

use super::jobs::{close, Lease};
use super::{Result, Store};
use rusqlite::{params, Connection, OptionalExtension};

/// What the blob of a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A witness as it came: what services before version 4 stored.
    Plain,
    /// A sealed witness.
    Witness,
    /// Sealed inputs, of which a witness is to be calculated.
    Inputs,
    /// A sealed witness that was calculated.
    Calculated,
}

impl Form {
    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Form::Plain => "plain",
            Form::Witness => "witness",
            Form::Inputs => "inputs",
            Form::Calculated => "calculated",
        }
    }
}

/// Inputs for a calculator.
#[derive(Debug, Clone)]
pub struct InputsClaim {
    /// What its writes are fenced by.
    pub lease: Lease,
    /// The key's name.
    pub key: String,
    /// The blob of the inputs.
    pub blob: String,
    /// Bytes of its content.
    pub bytes: u64,
    /// When the job fails unless it is done.
    pub deadline_ms: Option<i64>,
}

/// The code of an attempt that gave a witness.
const CALCULATED: &str = "calculated";

impl Store {
    /// Gives a calculator the next job that came as inputs, if there is one, and unless `ahead` calculated witnesses wait already.
    ///
    /// # Errors
    /// The database failed.
    pub fn claim_inputs(&self, worker: &str, now: i64, ahead: u64) -> Result<Option<InputsClaim>> {
        let waiting = "SELECT 1 FROM jobs WHERE state = 'pending' AND form = 'inputs' LIMIT 1";
        if self.db().prepare_cached(waiting)?.query_row([], |_| Ok(())).optional()?.is_none() {
            return Ok(None);
        }
        let worker = worker.to_string();
        let claim = move |db: &Connection| {
            let made = "SELECT count(*) FROM jobs WHERE state = 'pending' AND form = 'calculated'";
            if db.prepare_cached(made)?.query_row([], |row| row.get::<_, u64>(0))? >= ahead {
                return Ok(None);
            }
            let claim = db
                .prepare_cached(
                    "UPDATE jobs SET state = 'running', attempt = attempt + 1 WHERE id = \
                     (SELECT id FROM jobs WHERE state = 'pending' AND form = 'inputs' AND not_before_ms <= ?1 \
                      AND (deadline_ms IS NULL OR deadline_ms > ?1) ORDER BY rank, rowid LIMIT 1) \
                     RETURNING id, attempt, key, witness, witness_bytes, deadline_ms",
                )?
                .query_row([now], |row| {
                    let lease = Lease { job: row.get(0)?, attempt: row.get(1)? };
                    let (key, blob) = (row.get(2)?, row.get(3)?);
                    Ok(InputsClaim { lease, key, blob, bytes: row.get(4)?, deadline_ms: row.get(5)? })
                })
                .optional()?;
            if let Some(InputsClaim { lease, .. }) = &claim {
                db.prepare_cached("INSERT INTO attempts (job, attempt, worker, begun_ms) VALUES (?1, ?2, ?3, ?4)")?
                    .execute(params![lease.job, lease.attempt, worker, now])?;
            }
            Ok(claim)
        };
        self.writer.write(false, claim).wait()
    }

    /// Takes the witness that was calculated of a job's inputs: the job waits for a prover. Returns the blob of the inputs, which is not
    /// needed any more; `None` where the lease is over, and then the witness is not needed.
    ///
    /// # Errors
    /// The database failed: it is to be told again.
    pub fn calculated(&self, lease: &Lease, blob: &str, bytes: u64, now: i64) -> Result<Option<String>> {
        let (lease, blob) = (lease.clone(), blob.to_string());
        self.write(move |db| {
            let sql = "SELECT witness FROM jobs WHERE id = ?1 AND attempt = ?2 AND state = 'running' AND form = 'inputs'";
            let inputs: Option<String> =
                db.prepare_cached(sql)?.query_row((&lease.job, lease.attempt), |row| row.get(0)).optional()?;
            if inputs.is_some() {
                db.prepare_cached(
                    "UPDATE jobs SET state = 'pending', form = 'calculated', witness = ?2, witness_bytes = ?3, not_before_ms = 0 \
                     WHERE id = ?1",
                )?
                .execute(params![lease.job, blob, bytes])?;
                close(db, &lease, CALCULATED, None, now)?;
            }
            Ok(inputs)
        })
    }
}
