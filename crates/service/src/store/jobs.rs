//! How a job moves from state to state. Each write of a worker's is fenced by its [`Lease`]: it counts only while the job is running in
//! that very attempt.

use super::{Form, Job, JobResult, KeyRow, Pending, Result, State, Store, StoreError};
use rusqlite::{params, Connection, OptionalExtension};

/// The right to end a job: it lasts until the job has another attempt or a final state.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Lease {
    /// The job.
    pub job: String,
    /// Its attempt.
    pub attempt: i64,
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
    /// The batch, its place in it, and its name there.
    pub batch: Option<(String, u64, String)>,
    /// The more, the sooner.
    pub priority: i64,
    /// When it fails unless it is done.
    pub deadline_ms: Option<i64>,
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

/// What came of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finished {
    /// The job is done. The blob is not needed any more.
    Done(String),
    /// The lease is over: the result was refused.
    Stale,
}

/// What came of an attempt that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failed {
    /// The job waits for another attempt.
    Again,
    /// The job has failed. The blob is not needed any more.
    Over(String),
    /// The lease is over: nothing was changed.
    Stale,
}

/// What came of a wish to cancel.
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
        self.write(move |db| jobs.iter().map(|job| submit(db, job, now, ageing_ms, limit)).collect())
    }

    /// Gives a worker the next job, if there is one. A worker on which the job failed gets it only after `elsewhere_ms` without another
    /// taking it. One with others in hand gets nothing while the next job is to be alone, or has a witness of more than `beside` bytes: no
    /// job behind it is taken before it.
    ///
    /// # Errors
    /// The database failed.
    pub fn claim(&self, worker: &str, now: i64, elsewhere_ms: i64, beside: Option<u64>) -> Result<Option<Claim>> {
        let waiting = "SELECT 1 FROM jobs WHERE state = 'pending' LIMIT 1";
        if self.db().prepare_cached(waiting)?.query_row([], |_| Ok(())).optional()?.is_none() {
            return Ok(None);
        }
        let worker = worker.to_string();
        let claim = move |db: &Connection| {
            let next: Option<(String, bool, u64)> = db
                .prepare_cached(
                    "SELECT id, alone, witness_bytes FROM jobs WHERE state = 'pending' AND form <> 'inputs' AND not_before_ms <= ?1 \
                     AND (avoid IS NOT ?2 OR not_before_ms + ?3 <= ?1) AND (deadline_ms IS NULL OR deadline_ms > ?1) \
                     ORDER BY rank, rowid LIMIT 1",
                )?
                .query_row((now, &worker, elsewhere_ms), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
                .optional()?;
            let fits =
                |(_, is_alone, bytes): &(String, bool, u64)| beside.is_none_or(|room| !is_alone && *bytes <= room);
            let Some((id, is_alone, _)) = next.filter(fits) else { return Ok(None) };
            let taken = "UPDATE jobs SET state = 'running', attempt = attempt + 1 WHERE id = ?1 RETURNING *";
            let claim = db.prepare_cached(taken)?.query_row([&id], |row| {
                let lease = Lease { job: id.clone(), attempt: row.get("attempt")? };
                let key: String = row.get("key")?;
                Ok((
                    lease,
                    key,
                    row.get("witness")?,
                    row.get("witness_bytes")?,
                    row.get("deadline_ms")?,
                    row.get("created_ms")?,
                    row.get("rank")?,
                    row.get::<_, String>("form")? != Form::Plain.name(),
                ))
            })?;
            let (lease, key, witness, witness_bytes, deadline_ms, created_ms, rank, is_sealed) = claim;
            let key = super::keys::key_in(db, &key)?;
            db.prepare_cached("INSERT INTO attempts (job, attempt, worker, begun_ms) VALUES (?1, ?2, ?3, ?4)")?
                .execute(params![lease.job, lease.attempt, worker, now])?;
            Ok(Some(Claim { lease, key, witness, witness_bytes, deadline_ms, created_ms, rank, is_alone, is_sealed }))
        };
        self.writer.write(false, claim).wait()
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
        let (lease, result) = (lease.clone(), result.clone());
        self.writer.write(true, move |db| {
            let Some(blob) = end(db, &lease, State::Done, None, now)? else { return Ok(Finished::Stale) };
            db.prepare_cached(
                "INSERT INTO results (job, attempt, proof, publics, seconds, device, remark, times) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?
            .execute(params![
                lease.job,
                lease.attempt,
                result.proof,
                result.publics,
                result.seconds,
                result.device,
                result.remark,
                result.times.and_then(|times| serde_json::to_string(&times).ok())
            ])?;
            Ok(Finished::Done(blob))
        })
    }

    /// Ends an attempt without a result. Unless there is to be another one, or where it has failed `limit` times, the job has failed.
    ///
    /// # Errors
    /// The database failed: it is to be told again.
    pub fn fail(&self, lease: &Lease, ending: &Ending, limit: i64, now: i64) -> Result<Failed> {
        let (lease, Ending { code, reason, again, counts, is_alone }) = (lease.clone(), ending.clone());
        self.write(move |db| {
            let Some(failures) = fenced(db, &lease)? else { return Ok(Failed::Stale) };
            let Some(wait) = again.filter(|_| !counts || failures + 1 < limit) else {
                let over = end(db, &lease, State::Failed, Some((&code, &reason)), now)?;
                return Ok(over.map_or(Failed::Stale, Failed::Over));
            };
            close(db, &lease, &code, Some(&reason), now)?;
            db.execute(
                "UPDATE jobs SET state = 'pending', failures = failures + ?2, not_before_ms = ?3, alone = alone OR ?4, \
                 avoid = CASE WHEN ?2 THEN (SELECT worker FROM attempts WHERE job = id AND attempts.attempt = jobs.attempt) \
                 ELSE avoid END WHERE id = ?1",
                params![lease.job, counts, now.saturating_add(wait), is_alone],
            )?;
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
            let sql = "SELECT state, attempt, witness FROM jobs WHERE id = ?1";
            let found: Option<(String, i64, String)> =
                db.query_row(sql, [&id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()?;
            let Some((state, attempt, blob)) = found else { return Ok(Cancelled::Unknown) };
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
            db.execute(sql, params![id, now])?;
            Ok(Cancelled::Now(blob, worker))
        })
    }

    /// Gives the jobs that were running when the program ended back to the queue. To be called before there are workers. Returns how
    /// many.
    ///
    /// # Errors
    /// The database failed.
    pub fn recover(&self, now: i64) -> Result<u64> {
        self.write(move |db| {
            let sql = "UPDATE attempts SET ended_ms = ?1, code = ?2, reason = 'the service ended while the job ran' \
                       WHERE ended_ms IS NULL";
            db.execute(sql, params![now, SERVER_STOPPED])?;
            let sql = "UPDATE jobs SET state = 'pending', not_before_ms = 0 WHERE state = 'running'";
            let jobs = db.execute(sql, [])?;
            // Set by a clock that may have been another one.
            db.execute("UPDATE jobs SET not_before_ms = 0 WHERE state = 'pending'", [])?;
            Ok(jobs as u64)
        })
    }

    /// Fails the waiting jobs whose deadline is over. Returns their names and blobs.
    ///
    /// # Errors
    /// The database failed.
    pub fn expire(&self, now: i64) -> Result<Vec<(String, String)>> {
        let late = "SELECT 1 FROM jobs WHERE state = 'pending' AND deadline_ms <= ?1";
        if self.db().prepare_cached(late)?.query_row([now], |_| Ok(())).optional()?.is_none() {
            return Ok(Vec::new());
        }
        self.write(move |db| {
            let mut rows = db.prepare_cached(
                "UPDATE jobs SET state = 'failed', ended_ms = ?1, code = 'deadline', reason = 'the deadline passed before a worker was free' \
                 WHERE state = 'pending' AND deadline_ms <= ?1 RETURNING id, witness",
            )?;
            let late = rows.query_map([now], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(late.collect::<std::result::Result<_, _>>()?)
        })
    }

    /// Forgets jobs that ended before `before`, with their results. Returns how many.
    ///
    /// # Errors
    /// The database failed.
    pub fn forget(&self, before: i64) -> Result<u64> {
        let old = "SELECT 1 FROM jobs WHERE ended_ms < ?1";
        if self.db().prepare_cached(old)?.query_row([before], |_| Ok(())).optional()?.is_none() {
            return Ok(0);
        }
        self.write(move |db| Ok(db.execute("DELETE FROM jobs WHERE ended_ms < ?1", [before])? as u64))
    }
}

/// Accepts a job, unless the caller's id stands for one already.
fn submit(db: &Connection, job: &NewJob, now: i64, ageing_ms: i64, limit: u64) -> Result<Submitted> {
    if let Some(before) = same_request(db, job)? {
        return Ok(Submitted { id: before, is_new: false });
    }
    if let Some(token) = &job.token {
        super::tokens::room(db, token)?;
    }
    let known = db.query_row("SELECT 1 FROM keys WHERE name = ?1", [&job.key], |_| Ok(())).optional()?;
    known.ok_or_else(|| StoreError::NoKey(job.key.clone()))?;
    let waiting = "SELECT count(*) FROM jobs WHERE state = 'pending'";
    if db.query_row(waiting, [], |row| row.get::<_, u64>(0))? >= limit {
        return Err(StoreError::QueueFull(limit));
    }
    db.prepare_cached(
        "INSERT INTO jobs (id, request, digest, key, witness, witness_bytes, priority, rank, state, deadline_ms, created_ms, token, \
         form, batch, item, item_name) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'pending', ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
    )?
    .execute(params![
        job.id,
        scoped(job),
        job.digest,
        job.key,
        job.witness,
        job.witness_bytes,
        job.priority,
        now.saturating_sub(job.priority.saturating_mul(ageing_ms)),
        job.deadline_ms,
        now,
        job.token,
        job.form.name(),
        job.batch.as_ref().map(|(batch, ..)| batch),
        job.batch.as_ref().map(|(_, item, _)| item),
        job.batch.as_ref().map(|(.., name)| name)
    ])?;
    Ok(Submitted { id: job.id.clone(), is_new: true })
}

/// The caller's id as it is kept. A space, which no id has, keeps ids of one token from those of another.
fn scoped(job: &NewJob) -> Option<String> {
    let request = job.request.as_ref()?;
    Some(job.token.as_ref().map_or(request.clone(), |token| format!("{token} {request}")))
}

/// The job that the caller's id stands for.
fn same_request(db: &Connection, job: &NewJob) -> Result<Option<String>> {
    let Some(request) = scoped(job) else { return Ok(None) };
    let sql = "SELECT id, digest FROM jobs WHERE request = ?1";
    let before: Option<(String, String)> =
        db.prepare_cached(sql)?.query_row([request], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    match before {
        Some((_, digest)) if digest != job.digest => Err(StoreError::OtherContent),
        before => Ok(before.map(|(id, _)| id)),
    }
}

/// How often the job has failed, while the lease is good.
fn fenced(db: &Connection, lease: &Lease) -> Result<Option<i64>> {
    let sql = "SELECT failures FROM jobs WHERE id = ?1 AND attempt = ?2 AND state = 'running'";
    Ok(db.prepare_cached(sql)?.query_row((&lease.job, lease.attempt), |row| row.get(0)).optional()?)
}

/// Ends a job, while the lease is good. Returns its blob.
fn end(db: &Connection, lease: &Lease, state: State, why: Option<(&str, &str)>, now: i64) -> Result<Option<String>> {
    let (code, reason) = (why.map(|(code, _)| code), why.map(|(_, reason)| reason));
    let blob = db
        .prepare_cached(
            "UPDATE jobs SET state = ?3, ended_ms = ?4, code = ?5, reason = ?6 \
             WHERE id = ?1 AND attempt = ?2 AND state = 'running' RETURNING witness",
        )?
        .query_row(params![lease.job, lease.attempt, state.name(), now, code, reason], |row| row.get(0))
        .optional()?;
    if blob.is_some() {
        close(db, lease, code.unwrap_or(state.name()), reason, now)?;
    }
    Ok(blob)
}

/// Notes how an attempt ended.
pub(super) fn close(db: &Connection, lease: &Lease, code: &str, reason: Option<&str>, now: i64) -> Result<()> {
    let sql = "UPDATE attempts SET ended_ms = ?3, code = ?4, reason = ?5 WHERE job = ?1 AND attempt = ?2";
    db.prepare_cached(sql)?.execute(params![lease.job, lease.attempt, now, code, reason])?;
    Ok(())
}

impl Job {
    /// Whether nothing more happens to it.
    pub fn is_final(&self) -> bool {
        self.state.is_final()
    }
}
