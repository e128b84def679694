//! Nodes: the programs that take jobs from one database, and the leases by which they have them.

use super::db::{values, Db, Row};
use super::jobs::{close, locked};
use super::postgres::NOW;
use super::{lock, time_of, Lease, Result, Store};
use std::time::Instant;

/// How an attempt ended whose node was not heard of any more.
const EXPIRED: &str = "lease_expired";

/// How an attempt ended whose node left.
const LEFT: &str = "server_stopped";

/// Leases that are given back at a time: others wait no longer for it.
const AT_ONCE: u32 = 1000;

/// A program that takes jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// The version of the program.
    pub version: String,
    /// What it is at, as JSON.
    pub report: String,
    /// When it was started.
    pub started_ms: i64,
    /// When it was last heard of.
    pub seen_ms: i64,
}

impl Node {
    fn read(row: &Row) -> Result<Node> {
        Ok(Node {
            name: row.get("name")?,
            version: row.get("version")?,
            report: row.get("report")?,
            started_ms: row.get("started_ms")?,
            seen_ms: row.get("seen_ms")?,
        })
    }
}

impl Store {
    pub(super) fn hold<'a>(&self, leases: impl Iterator<Item = &'a Lease>) {
        if let Some(shared) = &self.shared {
            lock(&shared.held).extend(leases.cloned());
        }
    }

    /// The leases of a job that this node has.
    pub fn held(&self, job: &str) -> Vec<Lease> {
        let of = |shared: &super::Shared| lock(&shared.held).iter().filter(|lease| lease.job == job).cloned().collect();
        self.shared.as_ref().map_or(Vec::new(), of)
    }

    /// What the nodes have agreed on.
    ///
    /// # Errors
    /// The database failed.
    pub fn agreed(&self, name: &str) -> Result<Option<String>> {
        let row = self.db().row("SELECT value FROM installation WHERE name = ?1", values![name])?;
        row.map(|row| row.at(0)).transpose()
    }

    /// Has the nodes agree on this value, unless they have on another one before. Returns on which.
    ///
    /// # Errors
    /// The database failed.
    pub fn agree(&self, name: &str, value: &str) -> Result<String> {
        let (name, value) = (name.to_string(), value.to_string());
        self.write(move |db| {
            let sql = "INSERT INTO installation (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO NOTHING";
            db.execute(sql, values![&name, &value])?;
            let row = db.row("SELECT value FROM installation WHERE name = ?1", values![&name])?;
            row.ok_or(super::StoreError::Ended)?.at(0)
        })
    }

    /// A lease is not prolonged any more: its end is written down.
    pub fn release(&self, lease: &Lease) {
        if let Some(shared) = &self.shared {
            lock(&shared.held).remove(lease);
        }
    }

    /// Takes part under this node's name, in the place of an earlier start of the same name, whose jobs wait again. Returns how many.
    ///
    /// # Errors
    /// The database failed.
    pub fn join(&self, version: &str, report: &str, now: i64) -> Result<u64> {
        let Some(shared) = &self.shared else { return Ok(0) };
        let (node, run) = (shared.node.clone(), self.holder.run.clone());
        let (version, report) = (version.to_string(), report.to_string());
        let before = self.write(move |db| {
            let before = db.row("SELECT run FROM nodes WHERE name = ?1", values![&node])?;
            let sql = "INSERT INTO nodes (name, run, version, report, started_ms, seen_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?5) \
                       ON CONFLICT (name) DO UPDATE SET run = ?2, version = ?3, report = ?4, started_ms = ?5, seen_ms = ?5";
            db.execute(sql, values![&node, &run, version, report, now])?;
            before.map(|row| row.at::<String>(0)).transpose()
        })?;
        before.map_or(Ok(0), |before| self.give_back(&before))
    }

    /// Leaves: what this node still has waits for others. Returns how many jobs.
    ///
    /// # Errors
    /// The database failed.
    pub fn leave(&self) -> Result<u64> {
        if self.shared.is_none() {
            return Ok(0);
        }
        let jobs = self.give_back(&self.holder.run)?;
        let run = self.holder.run.clone();
        self.write(move |db| db.execute("DELETE FROM nodes WHERE run = ?1", values![run]))?;
        Ok(jobs)
    }

    /// Says that this node lives, and prolongs the leases of its jobs; the database's clock is looked at. Returns the leases that are
    /// lost: their jobs were cancelled, or went to other nodes while this one was not heard of. `None`: another program has taken
    /// this node's name.
    ///
    /// # Errors
    /// The database failed.
    pub fn beat(&self, report: &str) -> Result<Option<Vec<Lease>>> {
        let (Some(shared), Some(lease_ms)) = (&self.shared, self.holder.lease_ms) else { return Ok(Some(Vec::new())) };
        let held: Vec<Lease> = lock(&shared.held).iter().cloned().collect();
        let db = lock(&shared.beats);
        let mut lost = Vec::new();
        let sql = format!(
            "UPDATE jobs SET lease_until_ms = {NOW} + ?4 WHERE id = ?1 AND attempt = ?2 AND node = ?3 AND state = 'running'"
        );
        for lease in held {
            let prolonged = db.execute(&sql, values![&lease.job, lease.attempt, &self.holder.run, lease_ms])?;
            // One that has ended meanwhile was released by whoever ended it.
            if prolonged == 0 && lock(&shared.held).remove(&lease) {
                lost.push(lease);
            }
        }
        let time = time_of(&db)?;
        *lock(&shared.clock) = (time, Instant::now());
        let sql = "UPDATE nodes SET seen_ms = ?3, report = ?4 WHERE name = ?1 AND run = ?2";
        let known = db.execute(sql, values![&shared.node, &self.holder.run, time, report])?;
        if known == 0 && db.row("SELECT 1 FROM nodes WHERE name = ?1", values![&shared.node])?.is_some() {
            return Ok(None);
        }
        if known == 0 {
            // It was away for so long that it was forgotten.
            let sql =
                "INSERT INTO nodes (name, run, version, report, started_ms, seen_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?5) \
                       ON CONFLICT (name) DO NOTHING";
            db.execute(sql, values![&shared.node, &self.holder.run, env!("CARGO_PKG_VERSION"), report, time])?;
        }
        Ok(Some(lost))
    }

    /// Gives jobs whose lease is over back to the queue, and forgets nodes that were not heard of for an hour. Returns the leases.
    ///
    /// # Errors
    /// The database failed.
    pub fn expire_leases(&self) -> Result<Vec<Lease>> {
        if self.shared.is_none() {
            return Ok(Vec::new());
        }
        let late = format!("SELECT 1 FROM jobs WHERE state = 'running' AND lease_until_ms < {NOW} LIMIT 1");
        let gone = format!("SELECT 1 FROM nodes WHERE seen_ms < {NOW} - 3600000 LIMIT 1");
        let db = self.db();
        if db.row(&gone, &[])?.is_some() {
            db.execute(&format!("DELETE FROM nodes WHERE seen_ms < {NOW} - 3600000"), &[])?;
        }
        if db.row(&late, &[])?.is_none() {
            return Ok(Vec::new());
        }
        drop(db);
        self.free(
            format!("lease_until_ms < {NOW}"),
            None,
            (EXPIRED, "the node that had the job was not heard of any more"),
        )
    }

    /// The jobs of a start wait again.
    fn give_back(&self, run: &str) -> Result<u64> {
        let why = (LEFT, "the service ended while the job ran");
        self.free("node = ?2".into(), Some(run), why).map(|leases| leases.len() as u64)
    }

    fn free(
        &self,
        which: String,
        run: Option<&str>,
        (code, reason): (&'static str, &'static str),
    ) -> Result<Vec<Lease>> {
        let (run, now) = (run.map(String::from), self.now());
        self.write(move |db| {
            let sql = format!(
                "SELECT id, attempt FROM jobs WHERE state = 'running' AND {which} LIMIT ?1{}",
                locked(db, " SKIP LOCKED")
            );
            let all = values![AT_ONCE, run.clone()];
            let rows = db.rows(&sql, if run.is_some() { all } else { &all[..1] })?;
            let read = |row: &Row| Ok(Lease { job: row.at(0)?, attempt: row.at(1)? });
            let leases: Vec<Lease> = rows.iter().map(read).collect::<Result<_>>()?;
            for lease in &leases {
                close(db, lease, code, Some(reason), now)?;
                let sql = "UPDATE jobs SET state = 'pending', node = NULL, lease_until_ms = NULL, not_before_ms = 0 \
                           WHERE id = ?1";
                db.execute(sql, values![&lease.job])?;
            }
            if !leases.is_empty() {
                db.tell("")?;
            }
            Ok(leases)
        })
    }

    /// The nodes that were heard of lately, by name; none where the database is one service's alone.
    ///
    /// # Errors
    /// The database failed.
    pub fn nodes(&self) -> Result<Vec<Node>> {
        let Some(lease_ms) = self.holder.lease_ms else { return Ok(Vec::new()) };
        let sql = "SELECT * FROM nodes WHERE seen_ms > ?1 ORDER BY name";
        let since = self.now().saturating_sub(lease_ms);
        self.db().rows(sql, values![since])?.iter().map(Node::read).collect()
    }

    /// Hears of jobs that other nodes end, by their names, and of work, by an empty text, as long as the process lives. Returns at once
    /// where there are no other nodes.
    ///
    /// # Errors
    /// Nothing can be heard at all.
    pub fn listen(&self, hear: impl Fn(&str)) -> Result<()> {
        self.shared.as_ref().map_or(Ok(()), |shared| shared.address.listen(hear))
    }
}
