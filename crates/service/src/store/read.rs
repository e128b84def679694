//! What can be asked of jobs.

use super::db::{values, Row};
use super::{Result, Store};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// Where a job is on its way. The last three are final, and the first of them that is reached stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// It waits for a worker.
    Pending,
    /// A worker has it.
    Running,
    /// Its result is there.
    Done,
    /// It cannot be done.
    Failed,
    /// The caller took it back.
    Cancelled,
}

impl State {
    /// All of them.
    pub const ALL: [State; 5] = [State::Pending, State::Running, State::Done, State::Failed, State::Cancelled];

    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            State::Pending => "pending",
            State::Running => "running",
            State::Done => "done",
            State::Failed => "failed",
            State::Cancelled => "cancelled",
        }
    }

    /// The state of this word.
    pub fn from_name(name: &str) -> Option<State> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Whether nothing more happens to the job.
    pub fn is_final(self) -> bool {
        matches!(self, State::Done | State::Failed | State::Cancelled)
    }
}

/// A job as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Whose it is; `None` where the service asked for no token.
    pub token: Option<String>,
    /// Its name.
    pub id: String,
    /// Whether it came as inputs of which no witness is calculated yet.
    pub is_inputs: bool,
    /// Its place in a batch, and its name there.
    pub item: Option<(u64, String)>,
    /// The caller's id.
    pub request: Option<String>,
    /// The key's name.
    pub key: String,
    /// The more, the sooner.
    pub priority: i64,
    /// Where it is.
    pub state: State,
    /// How often it was begun.
    pub attempt: i64,
    /// When it was accepted.
    pub created_ms: i64,
    /// When it reached its final state.
    pub ended_ms: Option<i64>,
    /// When it fails unless it is done.
    pub deadline_ms: Option<i64>,
    /// Why it failed, as a word.
    pub code: Option<String>,
    /// Why it failed, as a sentence.
    pub reason: Option<String>,
    /// The caller's span, as the header `traceparent` names it.
    pub traceparent: Option<String>,
}

/// One try of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Its number, from 1.
    pub attempt: i64,
    /// Who had it.
    pub worker: String,
    /// When it began.
    pub begun_ms: i64,
    /// When it ended.
    pub ended_ms: Option<i64>,
    /// How it ended, as a word; `done` for a result.
    pub code: Option<String>,
    /// How it ended, as a sentence.
    pub reason: Option<String>,
}

/// Seconds of the stages of a job with its worker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// Until its key is on the device.
    pub key: f64,
    /// Reading and checking the witness.
    pub read: f64,
    /// Handing it to the device, which copies it beside the proof before.
    pub upload: f64,
    /// Until the proof before was made.
    pub turn: f64,
    /// The proof, and its verification.
    pub proof: f64,
}

/// A verified proof.
#[derive(Debug, Clone, PartialEq)]
pub struct JobResult {
    /// The text of `proof.json`.
    pub proof: String,
    /// The text of `public.json`.
    pub publics: String,
    /// Seconds that the proof took.
    pub seconds: f64,
    /// The stages before it; `None` where version 1 made it.
    pub times: Option<Times>,
    /// What made it.
    pub device: String,
    /// What the device was short of, or did wrong.
    pub remark: Option<String>,
}

/// Numbers of jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// State, priority, number, and when the oldest was accepted, of those that are not done.
    pub open: Vec<(String, i64, u64, i64)>,
    /// State and number, of those that are.
    pub ended: Vec<(String, u64)>,
}

impl Job {
    fn read(row: &Row) -> Result<Job> {
        let state: String = row.get("state")?;
        let (token, request): (Option<String>, Option<String>) = (row.get("token")?, row.get("request")?);
        // It is kept behind its token.
        let own = |kept: String| kept.split_once(' ').map(|(_, request)| request.into()).unwrap_or(kept);
        let request = if token.is_some() { request.map(own) } else { request };
        Ok(Job {
            token,
            id: row.get("id")?,
            is_inputs: row.get::<String>("form")? == "inputs",
            item: row.get::<Option<u64>>("item")?.zip(row.get("item_name")?),
            request,
            key: row.get("key")?,
            priority: row.get("priority")?,
            // The schema admits no other words.
            state: State::from_name(&state).unwrap_or(State::Failed),
            attempt: row.get("attempt")?,
            created_ms: row.get("created_ms")?,
            ended_ms: row.get("ended_ms")?,
            deadline_ms: row.get("deadline_ms")?,
            code: row.get("code")?,
            reason: row.get("reason")?,
            traceparent: row.get("traceparent")?,
        })
    }
}

impl Store {
    /// The job of this name.
    ///
    /// # Errors
    /// The database failed.
    pub fn job(&self, id: &str) -> Result<Option<Job>> {
        self.db().row("SELECT * FROM jobs WHERE id = ?1", values![id])?.map(|row| Job::read(&row)).transpose()
    }

    /// The youngest jobs, of one state or of all, of one token or of all, `limit` at most.
    ///
    /// # Errors
    /// The database failed.
    pub fn jobs(&self, state: Option<State>, token: Option<&str>, limit: u32) -> Result<Vec<Job>> {
        let sql = "SELECT * FROM jobs WHERE (CAST(?1 AS TEXT) IS NULL OR state = ?1) \
                   AND (CAST(?2 AS TEXT) IS NULL OR token = ?2) ORDER BY created_ms DESC, rowid DESC LIMIT ?3";
        let rows = self.db().rows(sql, values![state.map(State::name), token, limit])?;
        rows.iter().map(Job::read).collect()
    }

    /// The jobs of a batch, in their order there.
    ///
    /// # Errors
    /// The database failed.
    pub fn batch(&self, id: &str) -> Result<Vec<Job>> {
        let rows = self.db().rows("SELECT * FROM jobs WHERE batch = ?1 ORDER BY item", values![id])?;
        rows.iter().map(Job::read).collect()
    }

    /// The batch of a job.
    ///
    /// # Errors
    /// The database failed.
    pub fn batch_of(&self, id: &str) -> Result<Option<String>> {
        let row = self.db().row("SELECT batch FROM jobs WHERE id = ?1", values![id])?;
        row.map_or(Ok(None), |row| row.at(0))
    }

    /// The tries of a job, in order.
    ///
    /// # Errors
    /// The database failed.
    pub fn attempts(&self, id: &str) -> Result<Vec<Attempt>> {
        let read = |row: &Row| {
            Ok(Attempt {
                attempt: row.get("attempt")?,
                worker: row.get("worker")?,
                begun_ms: row.get("begun_ms")?,
                ended_ms: row.get("ended_ms")?,
                code: row.get("code")?,
                reason: row.get("reason")?,
            })
        };
        let rows = self.db().rows("SELECT * FROM attempts WHERE job = ?1 ORDER BY attempt", values![id])?;
        rows.iter().map(read).collect()
    }

    /// The result of a job that is done.
    ///
    /// # Errors
    /// The database failed.
    pub fn result(&self, id: &str) -> Result<Option<JobResult>> {
        let read = |row: &Row| {
            Ok(JobResult {
                proof: row.get("proof")?,
                publics: row.get("publics")?,
                seconds: row.get("seconds")?,
                times: row.get::<Option<String>>("times")?.and_then(|times| serde_json::from_str(&times).ok()),
                device: row.get("device")?,
                remark: row.get("remark")?,
            })
        };
        self.db().row("SELECT * FROM results WHERE job = ?1", values![id])?.as_ref().map(read).transpose()
    }

    /// How many jobs are where.
    ///
    /// # Errors
    /// The database failed.
    pub fn counts(&self) -> Result<Counts> {
        let db = self.db();
        let sql = "SELECT state, priority, count(*), min(created_ms) FROM jobs WHERE state IN ('pending', 'running') \
                   GROUP BY state, priority";
        let read = |row: &Row| Ok((row.at(0)?, row.at(1)?, row.at(2)?, row.at(3)?));
        let open = db.rows(sql, &[])?.iter().map(read).collect::<Result<_>>()?;
        let sql = "SELECT state, count(*) FROM jobs WHERE state NOT IN ('pending', 'running') GROUP BY state";
        let read = |row: &Row| Ok((row.at(0)?, row.at(1)?));
        let ended = db.rows(sql, &[])?.iter().map(read).collect::<Result<_>>()?;
        Ok(Counts { open, ended })
    }

    /// The blobs that jobs may still need.
    ///
    /// # Errors
    /// The database failed.
    pub fn needed_blobs(&self) -> Result<HashSet<String>> {
        let sql = "SELECT witness FROM jobs WHERE state IN ('pending', 'running')";
        self.db().rows(sql, &[])?.iter().map(|row| row.at(0)).collect()
    }
}
