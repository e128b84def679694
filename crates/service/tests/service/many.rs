//! Many jobs of several sizes on a CPU and on two pretended GPUs, with a kill after so many proofs, each time of a worker or of the
//! service: every job has one result, and that is right.

use crate::support::{make_key, Service};
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};
use tandem_engine::Verifier;
use tandem_service::client::{CallError, Client, Content, Method};
use tandem_service::store::{State, Store};

/// How many, where not 150: with 10,000 it takes minutes, and is not for every day.
const JOBS: &str = "TANDEM_DRILL_JOBS";

#[test]
fn jobs_of_mixed_sizes_survive_kills() {
    let jobs = std::env::var(JOBS).map_or(150, |jobs| jobs.parse().unwrap());
    survive(jobs, if jobs < 1000 { 15 } else { 100 });
}

/// Names of keys, their squarings, and how many of ten jobs are of them.
const KEYS: [(&str, u32, usize); 3] = [("small", 12, 6), ("middle", 120, 3), ("large", 1000, 1)];

fn key_of(job: usize) -> &'static str {
    let (mut at, mut key) = (job % 10, KEYS[0].0);
    for (name, _, share) in KEYS {
        key = name;
        if at < share {
            break;
        }
        at -= share;
    }
    key
}

fn survive(jobs: usize, every: usize) {
    let mut service = Service::start("workers = ['cpu', 'sim:2']\nattempts = 50");
    for (name, squarings, _) in &KEYS[1..] {
        make_key(service.folder.path(), name, *squarings);
        let at = service.at(&format!("{name}.zkey"));
        service.client().call(Method::PUT, &format!("/v1/keys/{name}"), &[], Content::File(&at)).unwrap();
    }
    let (folder, database) = (service.folder.path().to_path_buf(), service.at("data/jobs.db"));
    let mut kills = 0;
    let ids = std::thread::scope(|scope| {
        let folder = &folder;
        let sender = |part: usize| scope.spawn(move || send(folder, (0..jobs).filter(|job| job % 4 == part)));
        let senders: Vec<_> = (0..4).map(sender).collect();
        let mut killed = 0;
        let begun = Instant::now();
        while results(&database) < jobs {
            assert!(begun.elapsed() < Duration::from_secs(3600), "{} results of {jobs}", results(&database));
            std::thread::sleep(Duration::from_millis(20));
            if results(&database) < killed + every {
                continue;
            }
            killed += every;
            kills += 1;
            match kills % 3 {
                0 => {
                    service.kill();
                    service.restart();
                }
                number => {
                    let workers = service.client().get("/v1/workers").unwrap();
                    if let Some(pid) = workers["workers"][number - 1]["pid"].as_u64() {
                        // It may have gone already.
                        let _ = kill(Pid::from_raw(pid as i32), Signal::SIGKILL);
                    }
                }
            }
        }
        senders.into_iter().flat_map(|sender| sender.join().unwrap()).collect::<HashMap<String, usize>>()
    });
    // No two jobs are one.
    assert_eq!(ids.len(), jobs);
    let verifier = |name: &str| {
        let vkey = tandem_engine::export_vkey(&service.at(&format!("{name}.zkey"))).unwrap();
        (name.to_string(), Verifier::from_json(vkey.as_bytes()).unwrap())
    };
    let verifiers: HashMap<_, _> = KEYS.iter().map(|(name, ..)| verifier(name)).collect();
    for (id, job) in &ids {
        service.verify(&verifiers[key_of(*job)], id);
    }
    service.stop();
    assert!(service.witnesses().is_empty(), "{:?}", service.witnesses());
    let store = Store::open(&database, true).unwrap();
    let mut again = 0;
    for id in ids.keys() {
        let (job, attempts) = (store.job(id).unwrap().unwrap(), store.attempts(id).unwrap());
        let done = attempts.iter().filter(|attempt| attempt.code.as_deref() == Some("done")).count();
        assert!(job.state == State::Done && done == 1, "{job:?} {attempts:?}");
        assert!(attempts.iter().all(|attempt| attempt.ended_ms.is_some()), "{attempts:?}");
        again += attempts.len() - 1;
    }
    println!("{jobs} jobs, {jobs} proofs, {kills} kills, {again} attempts more than jobs");
    assert!(kills >= jobs / every - 1 && again > 0, "{kills} kills, {again} attempts that were cut off");
}

/// Sends jobs, each again until it is accepted: ids of the service, and numbers.
fn send(folder: &Path, jobs: impl Iterator<Item = usize>) -> Vec<(String, usize)> {
    let one = |job: usize| {
        let (key, request) = (key_of(job), format!("job-{job}"));
        let (path, witness) = (format!("/v1/jobs?key={key}"), folder.join(format!("{key}.wtns")));
        loop {
            let client = std::fs::read_to_string(folder.join("address")).ok().and_then(|at| Client::new(&at).ok());
            let headers = [("idempotency-key", request.as_str())];
            match client.map(|client| client.call(Method::POST, &path, &headers, Content::File(&witness))) {
                Some(Ok(sent)) => break (sent["id"].as_str().unwrap().to_string(), job),
                Some(Err(CallError::Unreachable(_))) | None => std::thread::sleep(Duration::from_millis(5)),
                Some(Err(other)) => panic!("{other:?}"),
            }
        }
    };
    jobs.map(one).collect()
}

/// Results that are written down, whether the service runs or not.
fn results(database: &Path) -> usize {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let count = |db: rusqlite::Connection| db.query_row("SELECT count(*) FROM results", [], |row| row.get(0));
    rusqlite::Connection::open_with_flags(database, flags).and_then(count).unwrap_or(0)
}
