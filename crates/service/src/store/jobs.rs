//! How a job moves from state to state. Each write of a worker's is fenced by its [`Lease`]: it counts only while the job is running in
//! that very attempt.

use super::db::{values, Db, Row};
use super::{Form, Job, JobResult, KeyRow, Pending, Result, State, Store, StoreError};

/// The right to end a job: it lasts until the job has another attempt or a final state.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Lease {
    /// The job.
    pub job: String,
    /// Its attempt.
    pub attempt: i64,
}

/// Who takes jobs, and for how long.
#[derive(Debug, Clone)]
pub(super) struct Holder {
    /// This start of this program: what it claims is its own.
    pub(super) run: String,
    /// How long a claim holds unless it is prolonged; `None`: as long as the program lives.
    pub(super) lease_ms: Option<i64>,
}

/// A job to be accepted.
#[derive(Debug, Clone)]
pub struct NewJob {
    /// The name to give it.
    pub id: String,
    /// Whose it is.
    pub token: Option<String>,
    /// The caller's id, unique among the jobs of its token.
    pub request: Option<String>,
    /// What stands for key and witness.
    pub digest: String,
    /// The key's name.
    pub key: String,
    /// What its blob is.
    pub form: Form,
    /// The blob.
    pub witness: String,
    /// Bytes of its content.
    pub witness_bytes: u64,
    /// The blob itself, where it is small: it lies in the database.
    pub content: Option<Vec<u8>>,
    /// The batch, its place in it, and its name there.
    pub batch: Option<(String, u64, String)>,
    /// The more, the sooner.
    pub priority: i64,
    /// When it fails unless it is done.
    pub deadline_ms: Option<i64>,
    /// The caller's span, as the header `traceparent` names it.
    pub traceparent: Option<String>,
}

/// What came of submitting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submitted {
    /// The job's name: that of the job before, where the caller's id was used with the same content.
    pub id: String,
    /// Whether the job was made now.
    pub is_new: bool,
}

/// A job for a worker.
#[derive(Debug, Clone)]
pub struct Claim {
    /// What the worker's writes are fenced by.
    pub lease: Lease,
    /// The key.
    pub key: KeyRow,
    /// The blob of the witness.
    pub witness: String,
    /// Its bytes.
    pub witness_bytes: u64,
    /// The blob itself, where it lies in the database.
    pub content: Option<Vec<u8>>,
    /// When it fails unless it is done.
    pub deadline_ms: Option<i64>,
    /// When it was accepted.
    pub created_ms: i64,
    /// Its place in the queue: the least comes first.
    pub rank: i64,
    /// Whether its worker is to have no other job in hand.
    pub is_alone: bool,
    /// Whether the blob is encrypted.
    pub is_sealed: bool,
}

/// How an attempt ended without a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// Why, as a word.
    pub code: String,
    /// Why, as a sentence.
    pub reason: String,
    /// How many milliseconds the job waits for the next attempt; `None` where there is none.
    pub again: Option<i64>,
    /// Whether it counts against the job.
    pub counts: bool,
    /// Whether later attempts are made with no other job in the worker's hand: what befell this one may be another's fault.
    pub is_alone: bool,
}

/// Which jobs a worker would rather have.
#[derive(Debug, Clone, Default)]
pub struct Near {
    /// Hashes of the keys that it has on its device.
    pub keys: Vec<String>,
    /// By how many milliseconds a job of such a key may be younger than one of another key and still come first.
    pub ms: i64,
    /// Hashes of the keys that idle workers of other nodes have: their jobs are left to these for a moment.
    pub elsewhere: Vec<String>,
}

/// What came of a result. A blob's name is empty where it lay in the database, which forgot it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finished {
    /// The job is done. The blob is not needed any more.
    Done(String),
    /// It was taken before, and the answer was lost. The blob is not needed any more.
    Before(String),
    /// The lease is over: the result was refused.
    Stale,
}

/// What came of an attempt that failed. A blob's name is as in [`Finished`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failed {
    /// The job waits for another attempt.
    Again,
    /// The job has failed. The blob is not needed any more.
    Over(String),
    /// The lease is over: nothing was changed.
    Stale,
}

/// What came of a wish to cancel. A blob's name is as in [`Finished`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cancelled {
    /// It is cancelled, with its blob and, if one had it, the lease of the worker.
    Now(String, Option<Lease>),
    /// It had ended before.
    Ended(State),
    /// There is no such job.
    Unknown,
}

/// The code of attempts that the service's own end cut off.
const SERVER_STOPPED: &str = "server_stopped";

impl Store {
    /// Accepts a job, unless the caller's id stands for one already. `ageing_ms` is what one step of priority is worth: so much longer a
    /// job of less priority waits before it comes first.
    ///
    /// # Errors
    /// [`StoreError::OtherContent`], [`StoreError::NoKey`], [`StoreError::QueueFull`].
    pub fn submit(&self, job: &NewJob, now: i64, ageing_ms: i64, limit: u64) -> Result<Submitted> {
        let submitted = self.submit_all(vec![job.clone()], now, ageing_ms, limit)?;
        submitted.into_iter().next().ok_or(StoreError::Ended)
    }

    /// [`Store::submit`] for several jobs: all of them, or none.
    ///
    /// # Errors
    /// As there.
    pub fn submit_all(&self, jobs: Vec<NewJob>, now: i64, ageing_ms: i64, limit: u64) -> Result<Vec<Submitted>> {
        self.write(move |db| {
            // Counted once: it takes longer the more there are.
            let mut room = limit.saturating_sub(db.number("SELECT count(*) FROM jobs WHERE state = 'pending'", &[])?);
            let one = |job: &NewJob| {
                let submitted = submit(db, job, now, ageing_ms, (room, limit))?;
                room -= u64::from(submitted.is_new);
                Ok(submitted)
            };
            jobs.iter().map(one).collect()
        })
    }

    /// Gives a worker the next job, if there is one. A worker on which the job failed gets it only after `elsewhere_ms` without another
    /// taking it. One with others in hand gets nothing while the next job is to be alone, or has a witness of more than `beside` bytes: no
    /// job behind it is taken before it.
    ///
    /// # Errors
    /// The database failed.
    pub fn claim(&self, worker: &str, now: i64, elsewhere_ms: i64, beside: Option<u64>) -> Result<Option<Claim>> {
        self.claim_near(worker, now, elsewhere_ms, beside, &Near::default())
    }

    /// [`Store::claim`] that would rather have some jobs than others.
    ///
    /// # Errors
    /// The database failed.
    pub fn claim_near(
        &self,
        worker: &str,
        now: i64,
        elsewhere_ms: i64,
        beside: Option<u64>,
        near: &Near,
    ) -> Result<Option<Claim>> {
        if self.db().row("SELECT 1 FROM jobs WHERE state = 'pending' LIMIT 1", &[])?.is_none() {
            return Ok(None);
        }
        let (of, near, worker) = (self.holder.clone(), near.clone(), self.worker(worker));
        let claim = move |db: &dyn Db| {
            for (id, is_alone) in candidates(db, &worker, now, elsewhere_ms, beside, &near)? {
                if let Some(claim) = take(db, &id, is_alone, &of, &worker, now)? {
                    return Ok(Some(claim));
                }
            }
            Ok(None)
        };
        let claim = self.writer.write(false, claim).wait()?;
        self.hold(claim.iter().map(|claim| &claim.lease));
        Ok(claim)
    }

    /// Takes the result of an attempt.
    ///
    /// # Errors
    /// The database failed: the result is to be given again.
    pub fn finish(&self, lease: &Lease, result: &JobResult, now: i64) -> Result<Finished> {
        self.begin_finish(lease, result, now).wait()
    }

    /// [`Store::finish`] without waiting: results that are begun together share a sync of the disk.
    pub fn begin_finish(&self, lease: &Lease, result: &JobResult, now: i64) -> Pending<Finished> {
        let (lease, result, run) = (lease.clone(), result.clone(), self.holder.run.clone());
        self.writer.write(true, move |db| {
            let Some(blob) = end(db, &lease, &run, State::Done, None, now)? else {
                return Ok(written_before(db, &lease, &run)?.map_or(Finished::Stale, Finished::Before));
            };
            let sql = "INSERT INTO results (job, attempt, proof, publics, seconds, device, remark, times) \
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
            let times = result.times.and_then(|times| serde_json::to_string(&times).ok());
            let JobResult { proof, publics, seconds, device, remark, .. } = &result;
            db.execute(sql, values![&lease.job, lease.attempt, proof, publics, *seconds, device, remark, times])?;
            db.tell(&lease.job)?;
            Ok(Finished::Done(blob))
        })
    }

    /// Ends an attempt without a result. Unless there is to be another one, or where it has failed `limit` times, the job has failed.
    ///
    /// # Errors
    /// The database failed: it is to be told again.
    pub fn fail(&self, lease: &Lease, ending: &Ending, limit: i64, now: i64) -> Result<Failed> {
        let (lease, Ending { code, reason, again, counts, is_alone }) = (lease.clone(), ending.clone());
        let run = self.holder.run.clone();
        self.write(move |db| {
            let Some(failures) = fenced(db, &lease, &run)? else { return Ok(Failed::Stale) };
            let Some(wait) = again.filter(|_| !counts || failures + 1 < limit) else {
                let over = end(db, &lease, &run, State::Failed, Some((&code, &reason)), now)?;
                db.tell(&lease.job)?;
                return Ok(over.map_or(Failed::Stale, Failed::Over));
            };
            close(db, &lease, &code, Some(&reason), now)?;
            let sql = "UPDATE jobs SET state = 'pending', node = NULL, lease_until_ms = NULL, failures = failures + ?2, \
                       not_before_ms = ?3, alone = CASE WHEN ?4 <> 0 THEN 1 ELSE alone END, avoid = CASE WHEN ?2 <> 0 \
                       THEN (SELECT worker FROM attempts WHERE job = id AND attempts.attempt = jobs.attempt) ELSE avoid END \
                       WHERE id = ?1";
            db.execute(sql, values![&lease.job, counts, now.saturating_add(wait), is_alone])?;
            db.tell("")?;
            Ok(Failed::Again)
        })
    }

    /// Cancels a job, whether it waits or runs.
    ///
    /// # Errors
    /// The database failed.
    pub fn cancel(&self, id: &str, now: i64) -> Result<Cancelled> {
        let id = id.to_string();
        self.write(move |db| {
            // Until the end of the transaction nobody else changes it.
            let sql = format!("SELECT state, attempt, witness FROM jobs WHERE id = ?1{}", locked(db, ""));
            let Some(row) = db.row(&sql, values![&id])? else { return Ok(Cancelled::Unknown) };
            let (state, attempt, blob): (String, i64, String) = (row.at(0)?, row.at(1)?, row.at(2)?);
            let state = State::from_name(&state).unwrap_or(State::Failed);
            if state.is_final() {
                return Ok(Cancelled::Ended(state));
            }
            let lease = Lease { job: id.clone(), attempt };
            let worker = (state == State::Running).then_some(lease.clone());
            if worker.is_some() {
                close(db, &lease, "cancelled", None, now)?;
            }
            let sql = "UPDATE jobs SET state = 'cancelled', ended_ms = ?2, code = 'cancelled' WHERE id = ?1";
            db.execute(sql, values![&id, now])?;
            let blob = left(db, &id, blob)?;
            db.tell(&id)?;
            Ok(Cancelled::Now(blob, worker))
        })
    }

    /// Gives the jobs that were running when the program ended back to the queue. To be called before there are workers. Returns how
    /// many. Of a database that nodes share, see [`Store::expire_leases`].
    ///
    /// # Errors
    /// The database failed.
    pub fn recover(&self, now: i64) -> Result<u64> {
        if self.is_shared() {
            return Ok(0);
        }
        self.write(move |db| {
            let sql = "UPDATE attempts SET ended_ms = ?1, code = ?2, reason = 'the service ended while the job ran' \
                       WHERE ended_ms IS NULL";
            db.execute(sql, values![now, SERVER_STOPPED])?;
            let sql = "UPDATE jobs SET state = 'pending', not_before_ms = 0 WHERE state = 'running'";
            let jobs = db.execute(sql, &[])?;
            // Set by a clock that may have been another one.
            db.execute("UPDATE jobs SET not_before_ms = 0 WHERE state = 'pending'", &[])?;
            Ok(jobs)
        })
    }

    /// Fails the waiting jobs whose deadline is over. Returns their names and blobs.
    ///
    /// # Errors
    /// The database failed.
    pub fn expire(&self, now: i64) -> Result<Vec<(String, String)>> {
        let late = "SELECT 1 FROM jobs WHERE state = 'pending' AND deadline_ms <= ?1 LIMIT 1";
        if self.db().row(late, values![now])?.is_none() {
            return Ok(Vec::new());
        }
        self.write(move |db| {
            let late = format!(
                "SELECT id FROM jobs WHERE state = 'pending' AND deadline_ms <= ?1{}",
                locked(db, " SKIP LOCKED")
            );
            let sql = format!(
                "UPDATE jobs SET state = 'failed', ended_ms = ?1, code = 'deadline', \
                 reason = 'the deadline passed before a worker was free' WHERE id IN ({late}) RETURNING id, witness"
            );
            let late: Vec<(String, String)> =
                db.rows(&sql, values![now])?.iter().map(|row| Ok((row.at(0)?, row.at(1)?))).collect::<Result<_>>()?;
            let one = |(id, blob): (String, String)| {
                let blob = left(db, &id, blob)?;
                db.tell(&id)?;
                Ok((id, blob))
            };
            late.into_iter().map(one).collect()
        })
    }

    /// Forgets jobs that ended before `before`, with their results. Returns how many.
    ///
    /// # Errors
    /// The database failed.
    pub fn forget(&self, before: i64) -> Result<u64> {
        let old = "SELECT 1 FROM jobs WHERE ended_ms < ?1 LIMIT 1";
        if self.db().row(old, values![before])?.is_none() {
            return Ok(0);
        }
        self.write(move |db| {
            let old = format!("SELECT id FROM jobs WHERE ended_ms < ?1{}", locked(db, " SKIP LOCKED"));
            db.execute(&format!("DELETE FROM jobs WHERE id IN ({old})"), values![before])
        })
    }
}

/// Accepts a job, unless the caller's id stands for one already.
fn submit(db: &dyn Db, job: &NewJob, now: i64, ageing_ms: i64, (room, limit): (u64, u64)) -> Result<Submitted> {
    if let Some(before) = same_request(db, job)? {
        return Ok(Submitted { id: before, is_new: false });
    }
    if let Some(token) = &job.token {
        super::tokens::room(db, token)?;
    }
    super::keys::key_in(db, &job.key)?.ok_or_else(|| StoreError::NoKey(job.key.clone()))?;
    if room == 0 {
        return Err(StoreError::QueueFull(limit));
    }
    let sql = "INSERT INTO jobs (id, request, digest, key, witness, witness_bytes, priority, rank, state, deadline_ms, created_ms, \
               token, form, batch, item, item_name, traceparent) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'pending', ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16) \
               ON CONFLICT (request) DO NOTHING";
    let NewJob { id, digest, key, witness, witness_bytes, priority, deadline_ms, token, .. } = job;
    let row = values![
        id,
        scoped(job),
        digest,
        key,
        witness,
        *witness_bytes,
        *priority,
        now.saturating_sub(priority.saturating_mul(ageing_ms)),
        *deadline_ms,
        now,
        token,
        job.form.name(),
        job.batch.as_ref().map(|(batch, ..)| batch.as_str()),
        job.batch.as_ref().map(|(_, item, _)| *item),
        job.batch.as_ref().map(|(.., name)| name.as_str()),
        job.traceparent.as_deref()
    ];
    if db.execute(sql, row)? == 0 {
        // Another node has taken the same one since.
        let before = same_request(db, job)?.ok_or(StoreError::OtherContent)?;
        return Ok(Submitted { id: before, is_new: false });
    }
    if let Some(content) = &job.content {
        db.execute("INSERT INTO witnesses (job, content) VALUES (?1, ?2)", values![id, content])?;
    }
    db.tell("")?;
    Ok(Submitted { id: id.clone(), is_new: true })
}

/// Words that keep rows from other nodes, where there are any, until the end of the transaction.
pub(super) fn locked(db: &dyn Db, how: &str) -> String {
    if db.is_shared() {
        format!(" FOR UPDATE{how}")
    } else {
        String::new()
    }
}

/// Jobs that are looked at for one whose key the worker has.
pub(super) const LOOKED_AT: u32 = 64;

/// So long a job is left to idle workers of other nodes that have its key.
const GRACE_MS: i64 = 400;

/// The jobs that a worker may have, the one that it is to have first in front.
fn candidates(
    db: &dyn Db,
    worker: &str,
    now: i64,
    elsewhere_ms: i64,
    beside: Option<u64>,
    near: &Near,
) -> Result<Vec<(String, bool)>> {
    let sql = "SELECT id, alone, witness_bytes, rank, key, created_ms FROM jobs \
               WHERE state = 'pending' AND form <> 'inputs' AND not_before_ms <= ?1 \
               AND (avoid IS DISTINCT FROM ?2 OR not_before_ms + ?3 <= ?1) AND (deadline_ms IS NULL OR deadline_ms > ?1) \
               ORDER BY rank, rowid LIMIT ?4";
    let has_choice = db.is_shared() || !near.keys.is_empty() || !near.elsewhere.is_empty();
    let most = if has_choice { LOOKED_AT } else { 1 };
    let names = |hashes: &[String]| {
        let mut names = Vec::new();
        for hash in hashes {
            let of = db.rows("SELECT name FROM keys WHERE hash = ?1", values![hash])?;
            names.extend(of.iter().map(|row| row.at::<String>(0)).collect::<Result<Vec<_>>>()?);
        }
        Ok::<_, StoreError>(names)
    };
    let rows = db.rows(sql, values![now, worker, elsewhere_ms, most])?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let (own, others) = (names(&near.keys)?, names(&near.elsewhere)?);
    let mut found: Vec<(i64, String, bool, u64)> = Vec::new();
    for row in &rows {
        let (key, created): (String, i64) = (row.at(4)?, row.at(5)?);
        let is_near = own.contains(&key);
        if is_near || !others.contains(&key) || created.saturating_add(GRACE_MS) <= now {
            let rank = row.at::<i64>(3)?.saturating_sub(if is_near { near.ms } else { 0 });
            found.push((rank, row.at(0)?, row.at(1)?, row.at(2)?));
        }
    }
    let fits =
        |(_, _, is_alone, bytes): &(i64, String, bool, u64)| beside.is_none_or(|room| !is_alone && *bytes <= room);
    // The first has waited longest: where it does not fit beside others, those behind it wait with it.
    if !found.first().is_some_and(fits) {
        return Ok(Vec::new());
    }
    // Sorting keeps the order of equals.
    found.sort_by_key(|(rank, ..)| *rank);
    Ok(found.into_iter().filter(fits).map(|(_, id, is_alone, _)| (id, is_alone)).collect())
}

/// Takes a job for this node, unless another node has it by now or is taking it.
fn take(db: &dyn Db, id: &str, is_alone: bool, of: &Holder, worker: &str, now: i64) -> Result<Option<Claim>> {
    let Some((lease, row)) = take_row(db, id, of, worker, now)? else { return Ok(None) };
    let key: String = row.get("key")?;
    let key = super::keys::key_in(db, &key)?.ok_or(StoreError::NoKey(key))?;
    let content = db.row("SELECT content FROM witnesses WHERE job = ?1", values![id])?;
    Ok(Some(Claim {
        lease,
        key,
        witness: row.get("witness")?,
        witness_bytes: row.get("witness_bytes")?,
        content: content.map(|content| content.at(0)).transpose()?,
        deadline_ms: row.get("deadline_ms")?,
        created_ms: row.get("created_ms")?,
        rank: row.get("rank")?,
        is_alone,
        is_sealed: row.get::<String>("form")? != Form::Plain.name(),
    }))
}

/// Begins an attempt of a job that waits, for who holds it and for how long; `None` where another node has it by now or is taking it.
pub(super) fn take_row(db: &dyn Db, id: &str, of: &Holder, worker: &str, now: i64) -> Result<Option<(Lease, Row)>> {
    let waits = format!("SELECT id FROM jobs WHERE id = ?1 AND state = 'pending'{}", locked(db, " SKIP LOCKED"));
    let sql = format!(
        "UPDATE jobs SET state = 'running', attempt = attempt + 1, node = ?2, lease_until_ms = ?3 \
         WHERE id IN ({waits}) AND state = 'pending' \
         RETURNING attempt, key, witness, witness_bytes, deadline_ms, created_ms, rank, form"
    );
    let until = of.lease_ms.map(|lease| now.saturating_add(lease));
    let Some(row) = db.row(&sql, values![id, &of.run, until])? else { return Ok(None) };
    let lease = Lease { job: id.into(), attempt: row.get("attempt")? };
    let sql = "INSERT INTO attempts (job, attempt, worker, begun_ms) VALUES (?1, ?2, ?3, ?4)";
    db.execute(sql, values![&lease.job, lease.attempt, worker, now])?;
    Ok(Some((lease, row)))
}

/// The caller's id as it is kept. A space, which no id has, keeps ids of one token from those of another.
fn scoped(job: &NewJob) -> Option<String> {
    let request = job.request.as_ref()?;
    Some(job.token.as_ref().map_or(request.clone(), |token| format!("{token} {request}")))
}

/// The job that the caller's id stands for.
fn same_request(db: &dyn Db, job: &NewJob) -> Result<Option<String>> {
    let Some(request) = scoped(job) else { return Ok(None) };
    match db.row("SELECT id, digest FROM jobs WHERE request = ?1", values![request])? {
        Some(before) if before.at::<String>(1)? != job.digest => Err(StoreError::OtherContent),
        Some(before) => before.at(0).map(Some),
        None => Ok(None),
    }
}

/// How often the job has failed, while the lease is good.
fn fenced(db: &dyn Db, lease: &Lease, run: &str) -> Result<Option<i64>> {
    let sql = "SELECT failures FROM jobs WHERE id = ?1 AND attempt = ?2 AND node = ?3 AND state = 'running'";
    let sql = format!("{sql}{}", locked(db, ""));
    db.row(&sql, values![&lease.job, lease.attempt, run])?.map(|row| row.at(0)).transpose()
}

/// Ends a job, while the lease is good. Returns its blob.
fn end(
    db: &dyn Db,
    lease: &Lease,
    run: &str,
    state: State,
    why: Option<(&str, &str)>,
    now: i64,
) -> Result<Option<String>> {
    let (code, reason) = (why.map(|(code, _)| code), why.map(|(_, reason)| reason));
    let sql = "UPDATE jobs SET state = ?3, ended_ms = ?4, code = ?5, reason = ?6 \
               WHERE id = ?1 AND attempt = ?2 AND node = ?7 AND state = 'running' RETURNING witness";
    let blob = db.row(sql, values![&lease.job, lease.attempt, state.name(), now, code, reason, run])?;
    let Some(blob) = blob else { return Ok(None) };
    close(db, lease, code.unwrap_or(state.name()), reason, now)?;
    left(db, &lease.job, blob.at(0)?).map(Some)
}

/// The blob that is to be removed when a job has ended: none where it lay here, and is gone now.
fn left(db: &dyn Db, job: &str, blob: String) -> Result<String> {
    let lay_here = db.execute("DELETE FROM witnesses WHERE job = ?1", values![job])? > 0;
    Ok(if lay_here { String::new() } else { blob })
}

/// The blob of a job that this very lease ended with a result.
fn written_before(db: &dyn Db, lease: &Lease, run: &str) -> Result<Option<String>> {
    let sql = "SELECT witness FROM jobs WHERE id = ?1 AND attempt = ?2 AND node = ?3 AND state = 'done'";
    db.row(sql, values![&lease.job, lease.attempt, run])?.map(|row| row.at(0)).transpose()
}

/// Notes how an attempt ended.
pub(super) fn close(db: &dyn Db, lease: &Lease, code: &str, reason: Option<&str>, now: i64) -> Result<()> {
    let sql = "UPDATE attempts SET ended_ms = ?3, code = ?4, reason = ?5 WHERE job = ?1 AND attempt = ?2";
    db.execute(sql, values![&lease.job, lease.attempt, now, code, reason]).map(drop)
}

impl Job {
    /// Whether nothing more happens to it.
    pub fn is_final(&self) -> bool {
        self.state.is_final()
    }
}
