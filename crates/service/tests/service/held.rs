//! Large witnesses, which a worker gets in memory beside their files. Whatever becomes of it, no memory stays with a witness in it.

use crate::nodes::Shared;
use crate::support::{codes, make_key, wait_for, Service};
use std::time::{Duration, Instant};
use tandem_engine::Verifier;
use tandem_service::client::{Content, Method};
use tandem_service::store::Store;

/// A service with a key called `large`, whose witnesses have more than 256 KiB.
fn large(settings: &str) -> Service {
    let service = Service::start(settings);
    add_large(&service);
    service
}

pub(crate) fn add_large(service: &Service) {
    make_key(service.folder.path(), "large", 9000);
    service.client().call(Method::PUT, "/v1/keys/large", &[], Content::File(&service.at("large.zkey"))).unwrap();
}

fn submit(service: &Service) -> String {
    let job = service.submit_to("/v1/jobs?key=large", None, "large.wtns").unwrap();
    job["id"].as_str().unwrap().to_string()
}

pub(crate) fn verifier(service: &Service) -> Verifier {
    Verifier::from_json(tandem_engine::export_vkey(&service.at("large.zkey")).unwrap().as_bytes()).unwrap()
}

/// How many witnesses workers were given from memory, and from blobs.
fn given(service: &Service) -> [f64; 2] {
    ["memory", "blob"].map(|from| service.metric(&format!("tandem_witnesses_given_total{{from=\"{from}\"}}")))
}

pub(crate) fn bytes(service: &Service, state: &str) -> f64 {
    service.metric(&format!("tandem_held_memory_bytes{{state=\"{state}\"}}"))
}

/// At once: before it is looked for what was not heard of.
#[track_caller]
fn has_soon(service: &Service, expected: f64) {
    let begun = Instant::now();
    wait_for("the memory to be overwritten", || bytes(service, "used") == expected);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[track_caller]
pub(crate) fn nothing_is_left(service: &Service) {
    has_soon(service, 0.0);
    wait_for("the witnesses to be removed", || service.witnesses().is_empty());
}

/// Has the worker stop before it reads the witness of a job, which this is.
fn paused(service: &Service) -> String {
    let _ = std::fs::remove_file(service.at("go"));
    service.fault("pause,witness,1");
    let id = submit(service);
    wait_for("the worker", || service.at("paused").exists());
    std::fs::remove_file(service.at("paused")).unwrap();
    id
}

fn go(service: &Service) {
    std::fs::remove_file(service.at("fault")).unwrap();
    std::fs::write(service.at("go"), "").unwrap();
}

/// The file is not even looked at; the next attempt has nothing else.
#[test]
fn the_first_attempt_has_it_in_memory_and_the_next_from_the_file() {
    let service = large("workers = ['cpu']\nin_hand = 1");
    let verifier = verifier(&service);
    let id = paused(&service);
    assert!(bytes(&service, "used") > 256.0 * 1024.0);
    let file = service.at("data/witnesses").join(&id);
    std::fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(100).unwrap();
    go(&service);
    assert_eq!(codes(&service.ended(&id)), ["done"]);
    service.verify(&verifier, &id);
    assert_eq!(given(&service), [1.0, 0.0]);
    nothing_is_left(&service);
    // The memory of the first serves the next.
    let idle = bytes(&service, "idle");
    service.fault("kill,witness,1");
    let id = submit(&service);
    assert_eq!(codes(&service.ended(&id)), ["worker_died", "done"]);
    service.verify(&verifier, &id);
    assert_eq!(given(&service), [2.0, 1.0]);
    nothing_is_left(&service);
    assert_eq!(bytes(&service, "idle"), idle);
}

/// A worker that hangs while it reads is ended before its memory is used again; one that is told to let go of a job has it until it does.
#[test]
fn memory_stays_with_a_worker_until_it_is_read_or_the_worker_is_ended() {
    let service = large("workers = ['cpu']\nin_hand = 1\nbeat_seconds = 4");
    service.fault("freeze,witness,1");
    let id = submit(&service);
    let job = service.ended(&id);
    // On a slow machine one that only starts may be silent for too long.
    assert!(codes(&job).starts_with(&["worker_hung"]) && codes(&job).ends_with(&["done"]), "{job}");
    service.verify(&verifier(&service), &id);
    nothing_is_left(&service);
    let id = paused(&service);
    assert_eq!(service.post(&format!("/v1/jobs/{id}/cancel")).unwrap()["state"], "cancelled");
    assert!(bytes(&service, "used") > 0.0);
    go(&service);
    nothing_is_left(&service);
}

/// Jobs that are cancelled, late or refused while they wait take their memory with them.
#[test]
fn memory_goes_with_the_job_that_waits() {
    let service = large("workers = ['cpu']\nin_hand = 1\nqueue = 3");
    let running = paused(&service);
    let alone = bytes(&service, "used");
    let cancelled = submit(&service);
    let late = service.submit_to("/v1/jobs?key=large&deadline_seconds=4", None, "large.wtns").unwrap()["id"].clone();
    let first = service.submit_to("/v1/jobs?key=large", Some("a"), "large.wtns").unwrap()["id"].clone();
    assert_eq!(bytes(&service, "used"), 4.0 * alone);
    // Again, and one too many.
    assert_eq!(service.submit_to("/v1/jobs?key=large", Some("a"), "large.wtns").unwrap()["id"], first);
    assert!(service.submit_to("/v1/jobs?key=large", None, "large.wtns").is_err());
    assert_eq!(service.ended(late.as_str().unwrap())["error"]["code"], "deadline");
    service.post(&format!("/v1/jobs/{cancelled}/cancel")).unwrap();
    has_soon(&service, 2.0 * alone);
    go(&service);
    for id in [running.as_str(), first.as_str().unwrap()] {
        assert_eq!(service.ended(id)["state"], "done");
    }
    assert_eq!(given(&service), [2.0, 0.0]);
    nothing_is_left(&service);
}

/// The end of a job of which the service was not told, as where a notice of another node was lost.
#[test]
fn memory_goes_where_an_end_was_not_heard_of() {
    let service = large("workers = ['cpu']\nin_hand = 1");
    let running = paused(&service);
    let alone = bytes(&service, "used");
    let [waiting, ended] = [submit(&service), submit(&service)];
    let store = Store::open(&service.at("data/jobs.db"), true).unwrap();
    store.cancel(&ended, store.now()).unwrap();
    assert_eq!(bytes(&service, "used"), 3.0 * alone);
    wait_for("the memory of the job that ended", || bytes(&service, "used") == 2.0 * alone);
    go(&service);
    for id in [&running, &waiting] {
        assert_eq!(service.ended(id)["state"], "done");
    }
    assert_eq!(given(&service), [2.0, 0.0]);
}

#[test]
fn past_the_bound_and_without_memory_files_are_read() {
    let service = large("workers = ['cpu']\nin_hand = 1\nheld_memory_mib = 1");
    let running = paused(&service);
    let ids: Vec<_> = (0..5).map(|_| submit(&service)).collect();
    assert!(bytes(&service, "used") <= f64::from(1 << 20));
    go(&service);
    for id in ids.iter().chain([&running]) {
        assert_eq!(service.ended(id)["state"], "done");
    }
    let [memory, blob] = given(&service);
    assert!(memory == 3.0 && blob == 3.0, "{memory} {blob}");
    nothing_is_left(&service);
    let none = large("workers = ['cpu']\nheld_memory_mib = 0");
    let id = submit(&none);
    assert_eq!(none.ended(&id)["state"], "done");
    assert_eq!((given(&none), bytes(&none, "idle")), ([0.0, 1.0], 0.0));
    // Small ones have none.
    let id = service.submit(None).unwrap()["id"].as_str().unwrap().to_string();
    assert_eq!((service.ended(&id)["state"].clone(), given(&service)), ("done".into(), [3.0, 4.0]));
}

/// What is in memory is lost with the service, and no job is.
#[test]
fn a_service_that_is_killed_goes_on_from_files() {
    let mut service = large("workers = ['cpu']\nin_hand = 1");
    let ids = [paused(&service), submit(&service)];
    service.kill();
    go(&service);
    service.restart();
    for id in &ids {
        assert_eq!(service.ended(id)["state"], "done");
        service.verify(&verifier(&service), id);
    }
    assert_eq!(given(&service), [0.0, 2.0]);
    nothing_is_left(&service);
}

/// A job that another node takes is read there from the shared folder; here its memory goes when it ends.
#[test]
fn another_node_reads_the_file() {
    let shared = Shared::new();
    let a = large(&format!("{}in_hand = 1\n", shared.settings("a", shared.server.port)));
    let first = paused(&a);
    let alone = bytes(&a, "used");
    let second = submit(&a);
    assert_eq!(bytes(&a, "used"), 2.0 * alone);
    let b = shared.node("b");
    assert_eq!(a.ended(&second)["state"], "done");
    has_soon(&a, alone);
    go(&a);
    assert_eq!(a.ended(&first)["state"], "done");
    has_soon(&a, 0.0);
    // On a slow machine leases end, and jobs are claimed more than once.
    let ([held, _], [none, read]) = (given(&a), given(&b));
    assert!(held >= 1.0 && none == 0.0 && read >= 1.0, "{held} {none} {read}");
}
