//! What happened lately, for people who watch. Nothing here reads a proof or a public value.

use super::{Result, State, Store, Times};
use rusqlite::Row;

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
    fn read(row: &Row<'_>) -> rusqlite::Result<RecentAttempt> {
        Ok(RecentAttempt {
            job: row.get("job")?,
            token: row.get("token")?,
            key: row.get("key")?,
            worker: row.get("worker")?,
            begun_ms: row.get("begun_ms")?,
            ended_ms: row.get("ended_ms")?,
            code: row.get("code")?,
            times: row.get::<_, Option<String>>("times")?.and_then(|times| serde_json::from_str(&times).ok()),
        })
    }
}

impl Store {
    /// The jobs that ended after `since`, the youngest first.
    ///
    /// # Errors
    /// The database failed.
    pub fn recent_ends(&self, since: i64) -> Result<Vec<RecentEnd>> {
        let db = self.db();
        let sql = "SELECT state, created_ms, ended_ms FROM jobs WHERE ended_ms > ?1 ORDER BY ended_ms DESC LIMIT ?2";
        let mut rows = db.prepare_cached(sql)?;
        let read = |row: &Row<'_>| {
            let state = State::from_name(&row.get::<_, String>(0)?).unwrap_or(State::Failed);
            Ok(RecentEnd { state, created_ms: row.get(1)?, ended_ms: row.get(2)? })
        };
        let ends = rows.query_map((since, ENDS), read)?.collect::<std::result::Result<_, _>>()?;
        Ok(ends)
    }

    /// The tries of the jobs that run, and of those that ended after `since`, `limit` jobs of each at most; in the order of their begin.
    ///
    /// # Errors
    /// The database failed.
    pub fn recent_attempts(&self, since: i64, limit: u32) -> Result<Vec<RecentAttempt>> {
        let db = self.db();
        let sql = "SELECT a.job, j.token, j.key, a.worker, a.begun_ms, a.ended_ms, a.code, r.times FROM ( \
                       SELECT * FROM (SELECT id, token, key FROM jobs WHERE ended_ms > ?1 ORDER BY ended_ms DESC LIMIT ?2) \
                       UNION ALL SELECT * FROM (SELECT id, token, key FROM jobs WHERE state = 'running' LIMIT ?2) \
                   ) j JOIN attempts a ON a.job = j.id LEFT JOIN results r ON r.job = a.job AND r.attempt = a.attempt \
                   ORDER BY a.begun_ms, a.job, a.attempt";
        let mut rows = db.prepare_cached(sql)?;
        let attempts = rows.query_map((since, limit), RecentAttempt::read)?.collect::<std::result::Result<_, _>>()?;
        Ok(attempts)
    }

    /// How many jobs wait, and how many run.
    ///
    /// # Errors
    /// The database failed.
    pub fn open_jobs(&self) -> Result<[u64; 2]> {
        let db = self.db();
        let sql = "SELECT (SELECT count(*) FROM jobs WHERE state = 'pending'), \
                          (SELECT count(*) FROM jobs WHERE state = 'running')";
        let mut rows = db.prepare_cached(sql)?;
        Ok(rows.query_row([], |row| Ok([row.get(0)?, row.get(1)?]))?)
    }
}
