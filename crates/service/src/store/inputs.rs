//! Jobs that come as inputs: a calculator makes the witness, and then they wait for a prover like others. Both are attempts of the job,
//! with leases.

use super::db::{values, Db};
use super::jobs::{close, locked, take_row, Lease, LOOKED_AT};
use super::{Result, Store};

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

/// What came of a witness that was calculated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Calculated {
    /// The job has it. The blob of the inputs, this one, is not needed any more.
    Now(String),
    /// It was taken before, and the answer was lost.
    Before,
    /// The lease is over: the witness is not needed.
    Stale,
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
        if self.db().row(waiting, &[])?.is_none() {
            return Ok(None);
        }
        let (of, worker) = (self.holder.clone(), self.worker(worker));
        let claim = move |db: &dyn Db| {
            let made = "SELECT count(*) FROM jobs WHERE state = 'pending' AND form = 'calculated'";
            if db.number(made, &[])? >= ahead {
                return Ok(None);
            }
            let sql = "SELECT id FROM jobs WHERE state = 'pending' AND form = 'inputs' AND not_before_ms <= ?1 \
                       AND (deadline_ms IS NULL OR deadline_ms > ?1) ORDER BY rank, rowid LIMIT ?2";
            // Of several, other nodes may be taking the first.
            let most = if db.is_shared() { LOOKED_AT } else { 1 };
            for row in db.rows(sql, values![now, most])? {
                let Some((lease, row)) = take_row(db, &row.at::<String>(0)?, &of, &worker, now)? else { continue };
                let (key, blob, bytes) = (row.get("key")?, row.get("witness")?, row.get("witness_bytes")?);
                return Ok(Some(InputsClaim { lease, key, blob, bytes, deadline_ms: row.get("deadline_ms")? }));
            }
            Ok(None)
        };
        let claim = self.writer.write(false, claim).wait()?;
        self.hold(claim.iter().map(|claim| &claim.lease));
        Ok(claim)
    }

    /// Takes the witness that was calculated of a job's inputs: the job waits for a prover.
    ///
    /// # Errors
    /// The database failed: it is to be told again.
    pub fn calculated(&self, lease: &Lease, blob: &str, bytes: u64, now: i64) -> Result<Calculated> {
        let (lease, blob, run) = (lease.clone(), blob.to_string(), self.holder.run.clone());
        self.write(move |db| {
            let sql = "SELECT witness FROM jobs WHERE id = ?1 AND attempt = ?2 AND node = ?3 AND state = 'running' \
                       AND form = 'inputs'";
            let sql = format!("{sql}{}", locked(db, ""));
            let Some(row) = db.row(&sql, values![&lease.job, lease.attempt, &run])? else {
                // A blob's name is used once: where the job has it, it was taken.
                let before = db.row("SELECT 1 FROM jobs WHERE id = ?1 AND witness = ?2", values![&lease.job, &blob])?;
                return Ok(if before.is_some() { Calculated::Before } else { Calculated::Stale });
            };
            let sql = "UPDATE jobs SET state = 'pending', node = NULL, lease_until_ms = NULL, form = 'calculated', witness = ?2, \
                       witness_bytes = ?3, not_before_ms = 0 WHERE id = ?1";
            db.execute(sql, values![&lease.job, &blob, bytes])?;
            close(db, &lease, CALCULATED, None, now)?;
            db.tell("")?;
            Ok(Calculated::Now(row.at(0)?))
        })
    }
}
