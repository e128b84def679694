//! Small witnesses, which lie in the database, sealed, as long as their jobs wait or run.

use crate::support::{codes, make_key, wait_for, Service};
use rusqlite::Connection;
use serde_json::Value;
use tandem_service::client::{Content, Method};

fn database(service: &Service) -> Connection {
    Connection::open(service.at("data/jobs.db")).unwrap()
}

/// What lies in the database of each job.
fn rows(service: &Service) -> Vec<(String, Vec<u8>)> {
    let db = database(service);
    let mut statement = db.prepare("SELECT job, content FROM witnesses").unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

fn files(service: &Service) -> usize {
    std::fs::read_dir(service.at("data/witnesses")).unwrap().count()
}

fn id(job: &Value) -> String {
    job["id"].as_str().unwrap().into()
}

/// A service whose worker stops before it reads a job's witness.
fn paused(settings: &str) -> (Service, String) {
    let service = Service::start(&format!("workers = ['cpu']\nin_hand = 1\n{settings}"));
    service.fault("pause,witness,1");
    let first = id(&service.submit(None).unwrap());
    wait_for("the worker", || service.at("paused").exists());
    (service, first)
}

fn go(service: &Service) {
    std::fs::remove_file(service.at("fault")).unwrap();
    std::fs::write(service.at("go"), "").unwrap();
}

/// Whether one has a part of the other, zeros aside.
fn shows(within: &[u8], of: &[u8]) -> bool {
    let tells = |part: &&[u8]| part.iter().filter(|byte| **byte != 0).count() > 12;
    let mut parts = of.windows(24).step_by(4).filter(tells).peekable();
    assert!(parts.peek().is_some());
    parts.any(|part| within.windows(24).any(|window| window == part))
}

#[test]
fn a_small_witness_lies_in_the_database_until_its_job_ends() {
    let (mut service, first) = paused("");
    let second = id(&service.submit(Some("a")).unwrap());
    // Once more is the same one.
    assert_eq!(id(&service.submit(Some("a")).unwrap()), second);
    let (rows, content) = (rows(&service), std::fs::read(service.at("small.wtns")).unwrap());
    assert_eq!((rows.len(), files(&service)), (2, 0));
    for (_, sealed) in &rows {
        assert_eq!(sealed.len(), content.len() + 16);
        assert!(!shows(sealed, &content));
    }
    // Nor does the database show any of it.
    for file in ["jobs.db", "jobs.db-wal"] {
        let bytes = std::fs::read(service.at("data").join(file)).unwrap();
        assert!(!shows(&bytes, &content), "{file}");
    }
    let verifier = service.verifier();
    // All of it is there after the service is killed.
    service.kill();
    go(&service);
    service.restart();
    for job in [&first, &second] {
        assert_eq!(service.ended(job)["state"], "done");
        service.verify(&verifier, job);
    }
    assert!(self::rows(&service).is_empty());
    service.stop();
    // Nor is anything left where it lay, once the log is taken over into the file.
    database(&service).query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let file = std::fs::read(service.at("data/jobs.db")).unwrap();
    for (_, sealed) in &rows {
        assert!(!shows(&file, sealed));
    }
}

/// Whatever ends a job takes its witness along: its caller, its deadline, its own fault.
#[test]
fn a_small_witness_goes_with_its_job() {
    let (service, first) = paused("");
    let cancelled = id(&service.submit(None).unwrap());
    let late = id(&service.submit_to("/v1/jobs?key=small&deadline_seconds=1", None, "small.wtns").unwrap());
    std::fs::write(service.at("bad.wtns"), b"no witness").unwrap();
    let bad = id(&service.submit_to("/v1/jobs?key=small", None, "bad.wtns").unwrap());
    assert_eq!(rows(&service).len(), 4);
    service.post(&format!("/v1/jobs/{cancelled}/cancel")).unwrap();
    assert_eq!(service.ended(&late)["error"]["code"], "deadline");
    assert_eq!(rows(&service).into_iter().map(|(job, _)| job).collect::<Vec<_>>().len(), 2);
    service.post(&format!("/v1/jobs/{first}/cancel")).unwrap();
    go(&service);
    assert_eq!(service.ended(&bad)["error"]["code"], "bad_input");
    assert!(rows(&service).is_empty());
    // Another attempt has it again.
    service.fault("kill,prove,1");
    let again = id(&service.submit(None).unwrap());
    assert_eq!(codes(&service.ended(&again)), ["worker_died", "done"]);
    service.verify(&service.verifier(), &again);
    assert!(rows(&service).is_empty());
}

/// What was changed in the database, or is another job's, is noticed.
#[test]
fn a_small_witness_that_was_changed_is_refused() {
    let (service, first) = paused("");
    let [changed, moved, cut] = [0; 3].map(|_| id(&service.submit(None).unwrap()));
    let of = |job: &str| rows(&service).into_iter().find(|(found, _)| found == job).unwrap().1;
    let set = |job: &str, content: &[u8]| {
        database(&service).execute("UPDATE witnesses SET content = ?2 WHERE job = ?1", (job, content)).unwrap();
    };
    let mut content = of(&changed);
    content[40] ^= 1;
    set(&changed, &content);
    set(&moved, &of(&cut));
    set(&cut, &of(&cut)[..99]);
    go(&service);
    assert_eq!(service.ended(&first)["state"], "done");
    for job in [changed, moved, cut] {
        let job = service.ended(&job);
        assert_eq!((job["error"]["code"].as_str(), codes(&job).len()), (Some("witness_lost"), 1), "{job}");
        assert!(job["error"]["message"].as_str().unwrap().contains("submit it again"), "{job}");
    }
    assert!(rows(&service).is_empty());
}

/// What is not small is a file, and so is everything where the database is to have no witness; batches are files.
#[test]
fn others_are_files() {
    let (service, _) = paused("");
    // 76 bytes of head, and 32 for each wire: squarings and two more.
    for (name, squarings, is_small) in [("most", 2043, true), ("more", 2044, false)] {
        make_key(service.folder.path(), name, squarings);
        let zkey = service.at(&format!("{name}.zkey"));
        service.client().call(Method::PUT, &format!("/v1/keys/{name}"), &[], Content::File(&zkey)).unwrap();
        let before = (rows(&service).len(), files(&service));
        let job = service.submit_to(&format!("/v1/jobs?key={name}"), None, &format!("{name}.wtns")).unwrap();
        let after = (rows(&service).len(), files(&service));
        assert_eq!((after.0 - before.0, after.1 - before.1), (usize::from(is_small), usize::from(!is_small)));
        service.post(&format!("/v1/jobs/{}/cancel", id(&job))).unwrap();
    }
    let archive = [service.at("small.wtns")];
    service.client().call(Method::POST, "/v1/batches?key=small", &[], Content::Archive(&archive)).unwrap();
    assert_eq!((rows(&service).len(), files(&service)), (1, 1));
    let (none, _) = paused("small_in_database = false");
    assert_eq!((rows(&none).len(), files(&none)), (0, 1));
}
