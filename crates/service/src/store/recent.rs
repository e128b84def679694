//! What happened lately, for people who watch. Nothing here reads a proof or a public value.

use super::db::{values, Row};
use super::{Result, State, Store, Times};

/// Ends at most: so many are read in some milliseconds.
const ENDS: u32 = 20_000;

/// A job that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecentEnd {
    /// How.
    pub state: State,
    /// When it was accepted.
    pub created_ms: i64,
    /// When it ended.
    pub ended_ms: i64,
}

/// A try of a job that runs, or ended lately.
#[derive(Debug, Clone, PartialEq)]
pub struct RecentAttempt {
    /// The job.
    pub job: String,
    /// Whose it is.
    pub token: Option<String>,
    /// The name of its key.
    pub key: String,
    /// The worker that had it.
    pub worker: String,
    /// When the worker had it.
    pub begun_ms: i64,
    /// When the try ended; `None` while it runs.
    pub ended_ms: Option<i64>,
    /// How it ended.
    pub code: Option<String>,
    /// Its stages, where it gave the result.
    pub times: Option<Times>,
}

impl RecentAttempt {
    fn read(row: &Row) -> Result<RecentAttempt> {
        Ok(RecentAttempt {
            job: row.get("job")?,
            token: row.get("token")?,
            key: row.get("key")?,
            worker: row.get("worker")?,
            begun_ms: row.get("begun_ms")?,
            ended_ms: row.get("ended_ms")?,
            code: row.get("code")?,
            times: row.get::<Option<String>>("times")?.and_then(|times| serde_json::from_str(&times).ok()),
        })
    }
}

impl Store {
    /// The jobs that ended after `since`, the youngest first.
    ///
    /// # Errors
    /// The database failed.
    pub fn recent_ends(&self, since: i64) -> Result<Vec<RecentEnd>> {
        let sql = "SELECT state, created_ms, ended_ms FROM jobs WHERE ended_ms > ?1 ORDER BY ended_ms DESC LIMIT ?2";
        let read = |row: &Row| {
            let state = State::from_name(&row.at::<String>(0)?).unwrap_or(State::Failed);
            Ok(RecentEnd { state, created_ms: row.at(1)?, ended_ms: row.at(2)? })
        };
        self.db().rows(sql, values![since, ENDS])?.iter().map(read).collect()
    }

    /// The tries of the jobs that run, and of those that ended after `since`, `limit` jobs of each at most; in the order of their begin.
    ///
    /// # Errors
    /// The database failed.
    pub fn recent_attempts(&self, since: i64, limit: u32) -> Result<Vec<RecentAttempt>> {
        let sql = "SELECT a.job, j.token, j.key, a.worker, a.begun_ms, a.ended_ms, a.code, r.times FROM ( \
                       SELECT * FROM (SELECT id, token, key FROM jobs WHERE ended_ms > ?1 ORDER BY ended_ms DESC LIMIT ?2) x \
                       UNION ALL SELECT * FROM (SELECT id, token, key FROM jobs WHERE state = 'running' LIMIT ?2) y \
                   ) j JOIN attempts a ON a.job = j.id LEFT JOIN results r ON r.job = a.job AND r.attempt = a.attempt \
                   ORDER BY a.begun_ms, a.job, a.attempt";
        self.db().rows(sql, values![since, limit])?.iter().map(RecentAttempt::read).collect()
    }

    /// The stages of the attempt that gave a job's result.
    ///
    /// # Errors
    /// The database failed.
    pub fn times(&self, job: &str) -> Result<Option<Times>> {
        let row = self.db().row("SELECT times FROM results WHERE job = ?1", values![job])?;
        let times = row.map(|row| row.at::<Option<String>>(0)).transpose()?.flatten();
        Ok(times.and_then(|times| serde_json::from_str(&times).ok()))
    }

    /// How many jobs wait, and how many run.
    ///
    /// # Errors
    /// The database failed.
    pub fn open_jobs(&self) -> Result<[u64; 2]> {
        let sql = "SELECT (SELECT count(*) FROM jobs WHERE state = 'pending'), \
                          (SELECT count(*) FROM jobs WHERE state = 'running')";
        self.db().row(sql, &[])?.map_or(Ok([0, 0]), |row| Ok([row.at(0)?, row.at(1)?]))
    }
}
