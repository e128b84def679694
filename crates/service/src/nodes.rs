//! A node among those of a database: it says that it lives, hears of the others, and lets go of what it has lost.

use crate::core::{Core, AGAIN};
use crate::log::log;
use crate::store::{Lease, Near, StoreError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// The longest pause between two signs of life.
const BEAT: Duration = Duration::from_secs(5);

/// What other nodes know of one.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Report {
    pub(crate) workers: usize,
    pub(crate) ready: usize,
    pub(crate) jobs: usize,
    pub(crate) draining: bool,
    /// Hashes of the keys on devices whose workers are idle, or were since the report before.
    pub(crate) idle_keys: BTreeSet<String>,
}

impl Report {
    fn of(core: &Core) -> Report {
        let workers: Vec<_> = core.slots.iter().map(|slot| (slot.was_idle(), slot.status())).collect();
        let idle = workers.iter().filter(|(is_idle, _)| *is_idle && !core.is_draining());
        Report {
            workers: workers.len(),
            ready: workers.iter().filter(|(_, worker)| worker.is_ready).count(),
            jobs: workers.iter().map(|(_, worker)| worker.leases.len()).sum(),
            draining: core.is_draining(),
            idle_keys: idle.filter_map(|(_, worker)| worker.beat.as_ref()).flat_map(|beat| beat.keys.clone()).collect(),
        }
    }

    /// That of a node; what a later version writes otherwise is left out.
    pub(crate) fn read(text: &str) -> Report {
        serde_json::from_str(text).unwrap_or_default()
    }

    fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Core {
    /// Which jobs a worker with these keys would rather have.
    pub(crate) fn near(&self, keys: Vec<String>) -> Near {
        let elsewhere = self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Near { keys, ms: i64::from(self.config.affinity_seconds) * 1000, elsewhere }
    }

    /// Hears of a job that a node ended, or of work.
    fn heard(&self, job: &str) {
        if job.is_empty() {
            self.wake();
            self.wake_calculators();
            return;
        }
        let _ = self.ends.send(job.into());
        self.held.forget(job);
        // Where it was ended elsewhere, nobody wants what is done for it here.
        self.store.held(job).iter().for_each(|lease| self.stop(lease));
    }

    /// Whatever is done for this lease is not wanted any more.
    pub(crate) fn stop(&self, lease: &Lease) {
        // All are told: the one that has just taken the job may not have said so yet.
        self.slots.iter().for_each(|slot| slot.stop(lease));
        self.calculators.iter().for_each(|calculator| calculator.stop(lease));
    }

    /// Says that this node lives, again and again, on a thread that waits for nothing but the database.
    fn beat(&self) {
        let pause = (Duration::from_secs(self.config.lease_seconds.into()) / 4).min(BEAT);
        let mut is_away = false;
        loop {
            std::thread::sleep(if is_away { AGAIN.min(pause) } else { pause });
            let beat = self.store.beat(&Report::of(self).text()).and_then(|lost| Ok((lost, self.store.nodes()?)));
            is_away = beat.is_err();
            match beat {
                Ok((Some(lost), nodes)) => {
                    for lease in &lost {
                        log("lease_lost", &[("job", &lease.job)]);
                        self.metrics.add("tandem_leases_lost_total", &[], 1.0);
                        self.stop(lease);
                    }
                    let others = nodes.iter().filter(|node| node.name != self.config.node);
                    let keys: BTreeSet<_> = others.flat_map(|node| Report::read(&node.report).idle_keys).collect();
                    *self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner) = keys.into_iter().collect();
                }
                Ok((None, _)) => {
                    log("name_taken", &[("reason", "another program runs under this node's name; this one stops")]);
                    self.drain();
                    return;
                }
                Err(error) => self.database_failed(&error),
            }
        }
    }

    /// Gives jobs of nodes that were not heard of any more to others.
    pub(crate) fn expire_leases(&self) {
        match self.store.expire_leases() {
            Ok(lost) if lost.is_empty() => {}
            Ok(lost) => {
                self.metrics.add("tandem_leases_expired_total", &[], lost.len() as f64);
                lost.iter().for_each(|lease| log("lease_expired", &[("job", &lease.job)]));
                self.wake();
                self.wake_calculators();
            }
            Err(error) => self.database_failed(&error),
        }
    }

    pub(crate) fn database_failed(&self, error: &StoreError) {
        log("database_failed", &[("reason", &error.to_string())]);
        self.metrics.add("tandem_database_failures_total", &[], 1.0);
    }
}

/// Takes part among the nodes of a database, if there are several.
///
/// # Errors
/// One sentence: the database failed, or no thread can be started.
pub(crate) fn join(core: &Arc<Core>) -> Result<(), String> {
    if !core.store.is_shared() {
        return Ok(());
    }
    let node = &core.config.node;
    let back = core.store.join(env!("CARGO_PKG_VERSION"), &Report::of(core).text(), core.now_ms());
    let back = back.map_err(|e| format!("cannot take part as {node}: {e}"))?;
    log("joined", &[("node", node), ("jobs_back", &back.to_string())]);
    let (beating, listening) = (core.clone(), core.clone());
    let thread = |name: &str, body: Box<dyn FnOnce() + Send>| {
        let thread = std::thread::Builder::new().name(name.into()).spawn(body);
        thread.map(drop).map_err(|e| format!("no thread can be started: {e}"))
    };
    thread("beats", Box::new(move || beating.beat()))?;
    thread(
        "listens",
        Box::new(move || {
            // Without, ends of jobs are looked for from time to time.
            let heard = listening.store.listen(|job| listening.heard(job));
            heard.unwrap_or_else(|error| listening.database_failed(&error));
        }),
    )
}
