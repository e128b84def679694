//! Two jobs in the hand of one worker: what befalls one of them, the other, or the worker.

use crate::support::{self, codes, stage, wait_for, Service};
use std::time::Duration;

fn submit(service: &Service) -> String {
    service.submit(None).unwrap()["id"].as_str().unwrap().into()
}

/// Has a worker stop in its first proof, until there is a file `go`, and suffer another fault.
fn paused(service: &Service, fault: &str) -> String {
    service.fault(&format!("pause,turn,1\n{fault}"));
    let first = submit(service);
    wait_for("the worker", || service.at("paused").exists());
    first
}

fn go(service: &Service) {
    std::fs::write(service.at("go"), "").unwrap();
}

/// Number of the worker, and the jobs that it has in hand.
fn hands(service: &Service) -> Vec<Vec<String>> {
    let workers = service.client().get("/v1/workers").unwrap();
    let jobs = |worker: &serde_json::Value| {
        worker["jobs"].as_array().unwrap().iter().map(|job| job["job"].as_str().unwrap().into()).collect()
    };
    workers["workers"].as_array().unwrap().iter().map(jobs).collect()
}

fn restarts(service: &Service) -> u64 {
    service.client().get("/v1/workers").unwrap()["workers"][0]["restarts"].as_u64().unwrap()
}

#[test]
fn the_next_job_is_read_and_uploaded_beside_the_proof() {
    let service = Service::start("workers = ['cpu']");
    let first = paused(&service, "");
    let (second, third) = (submit(&service), submit(&service));
    wait_for("the one beside it", || stage(&service, &second) == "prove");
    assert_eq!(hands(&service), [[first.clone(), second.clone()]]);
    let job = service.client().get(&format!("/v1/jobs/{third}")).unwrap();
    assert_eq!((job["state"].as_str(), job["attempt"].as_u64()), (Some("pending"), Some(0)));
    go(&service);
    let verifier = service.verifier();
    for id in [&first, &second, &third] {
        assert_eq!(codes(&service.ended(id)), ["done"]);
        service.verify(&verifier, id);
    }
    // What the one took for waiting is no part of its proof.
    let result = service.client().get(&format!("/v1/jobs/{second}/result")).unwrap();
    let times = ["key", "read", "upload", "turn", "proof"].map(|name| result["times"][name].as_f64().unwrap());
    assert!(times.iter().all(|time| *time >= 0.0) && result["seconds"] == result["times"]["proof"], "{result}");
}

/// More than one, where more than two jobs are in hand.
#[test]
fn several_witnesses_are_read_beside_a_proof() {
    let service = Service::start("workers = ['cpu']\nin_hand = 3");
    let first = paused(&service, "pause,beside witness,1");
    let (second, third) = (submit(&service), submit(&service));
    wait_for("both of them", || [&second, &third].iter().all(|id| stage(&service, id) == "witness"));
    go(&service);
    for id in [&first, &second, &third] {
        assert_eq!(codes(&service.ended(id)), ["done"]);
    }
}

/// Those that are read go to the device by their place in the queue, whichever came to the worker first.
#[test]
fn witnesses_that_are_read_go_to_the_device_by_priority() {
    let service = Service::start("workers = ['cpu']\nin_hand = 5");
    let first = paused(&service, "step,beside turn,1");
    let urgent = |priority: i32| {
        let path = format!("/v1/jobs?key=small&priority={priority}");
        service.submit_to(&path, None, "small.wtns").unwrap()["id"].as_str().unwrap().to_string()
    };
    let next = urgent(0);
    wait_for("the next one", || stage(&service, &next) == "prove");
    let waiting: Vec<String> = [-1, 7, 3].map(urgent).into();
    wait_for("the others", || waiting.iter().all(|id| stage(&service, id) == "wait"));
    let last = urgent(100);
    assert_eq!(hands(&service)[0].len(), 5, "{last} waits in the queue");
    go(&service);
    // The end of the first made room on the device for the best of those that waited, and in the hand for the last job.
    wait_for("the last job", || stage(&service, &last) == "wait");
    // Each stops at its turn.
    for (place, id) in [&next, &waiting[1], &last, &waiting[2], &waiting[0]].into_iter().enumerate() {
        wait_for("its turn", || stage(&service, id) == "turn");
        std::fs::write(service.at(&format!("step{place}")), "").unwrap();
        assert_eq!(codes(&service.ended(id)), ["done"]);
    }
    assert_eq!(codes(&service.ended(&first)), ["done"]);
}

/// The witnesses in hand have a bound together, and what waits for room keeps its place.
#[test]
fn witnesses_in_hand_have_a_bound() {
    let service = Service::start("workers = ['cpu']\nin_hand = 4\nwitness_memory_mib = 2");
    // Of more than a MiB, in a key of few constraints.
    let (r1cs, wtns) = support::files::squarings_of(10, 33_000);
    std::fs::write(service.at("large.wtns"), wtns).unwrap();
    support::make_key_of(service.folder.path(), "large", &r1cs);
    let at = service.at("large.zkey");
    use tandem_service::client::{Content, Method};
    service.client().call(Method::PUT, "/v1/keys/large", &[], Content::File(&at)).unwrap();
    let first = paused(&service, "");
    let large = || {
        let job = service.submit_to("/v1/jobs?key=large", None, "large.wtns").unwrap();
        job["id"].as_str().unwrap().to_string()
    };
    let (second, third, small) = (large(), large(), submit(&service));
    wait_for("the one beside it", || hands(&service)[0].len() == 2);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(hands(&service), [[first.clone(), second.clone()]]);
    go(&service);
    for id in [&first, &second, &third, &small] {
        assert_eq!(codes(&service.ended(id)), ["done"]);
    }
}

/// What is not synced outlives the end of the process all the same.
#[test]
fn without_a_sync_a_kill_loses_nothing() {
    let mut service = Service::start("workers = ['cpu']\nsurvives = 'kill'");
    let done = submit(&service);
    assert_eq!(codes(&service.ended(&done)), ["done"]);
    let first = paused(&service, "");
    let others: Vec<String> = (0..20).map(|_| submit(&service)).collect();
    service.kill();
    std::fs::remove_file(service.at("fault")).unwrap();
    service.restart();
    assert_eq!(codes(&service.ended(&first)), ["server_stopped", "done"]);
    let verifier = service.verifier();
    for id in others.iter().chain([&done, &first]) {
        assert_eq!(codes(&service.ended(id)).last(), Some(&"done"));
        service.verify(&verifier, id);
    }
}

/// Which of the two ended the worker is not known: it counts against neither (either would fail at its first failure), and each is
/// tried again with no other beside it.
#[test]
fn a_worker_that_dies_with_two_jobs_gives_both_back() {
    let service = Service::start("workers = ['cpu']\nattempts = 1");
    let verifier = service.verifier();
    for stage in ["beside key", "beside witness", "beside upload witness", "beside prove"] {
        let first = paused(&service, &format!("kill,{stage},1\npause,turn,2"));
        std::fs::remove_file(service.at("paused")).unwrap();
        let second = submit(&service);
        wait_for("the second attempt", || service.at("paused").exists());
        // Alone: neither the other one nor a third is beside it.
        let third = submit(&service);
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(hands(&service), [[first.clone()]], "{stage}");
        go(&service);
        for id in [&first, &second] {
            assert_eq!(codes(&service.ended(id)), ["worker_died", "done"], "{stage}");
            service.verify(&verifier, id);
        }
        assert_eq!(codes(&service.ended(&third)), ["done"], "{stage}");
        std::fs::remove_file(service.at("go")).unwrap();
        std::fs::remove_file(service.at("paused")).unwrap();
    }
    // Alone it counts.
    service.fault("kill,witness,1");
    let alone = submit(&service);
    assert_eq!(codes(&service.ended(&alone)), ["worker_died"]);
    wait_for("the last end of the worker", || restarts(&service) == 5);
}

#[test]
fn a_worker_that_freezes_with_two_jobs_gives_both_back() {
    let service = Service::start("workers = ['cpu']\nattempts = 1\nbeat_seconds = 3");
    let first = paused(&service, "freeze,beside prove,1");
    let second = submit(&service);
    for id in [&first, &second] {
        assert_eq!(codes(&service.ended(id)), ["worker_hung", "done"]);
    }
}

/// The proof that hangs is told from the job that waits behind it.
#[test]
fn a_proof_that_hangs_does_not_count_against_the_next_job() {
    let service = Service::start("workers = ['cpu']\nattempts = 1\nproof_seconds = 5");
    service.fault("hang,turn,1");
    let first = submit(&service);
    wait_for("the proof", || stage(&service, &first) == "turn");
    let second = submit(&service);
    assert_eq!(codes(&service.ended(&first)), ["worker_hung"]);
    assert_eq!(codes(&service.ended(&second)), ["worker_ended", "done"]);
}

/// Its time runs from the end of the proof before.
#[test]
fn a_job_that_hangs_beside_a_proof_is_ended_in_its_time() {
    let service = Service::start("workers = ['cpu']\nproof_seconds = 5");
    let first = paused(&service, "hang,beside witness,1");
    let second = submit(&service);
    wait_for("the one beside it", || stage(&service, &second) == "witness");
    go(&service);
    assert_eq!(codes(&service.ended(&first)), ["done"]);
    let job = service.ended(&second);
    assert_eq!(codes(&job), ["worker_hung", "done"], "{job}");
}

/// Waiting behind another one is none of its time.
#[test]
fn the_time_of_a_job_does_not_run_while_another_is_proved() {
    let service = Service::start("workers = ['cpu']\nproof_seconds = 6");
    let first = paused(&service, "slow,beside turn,1");
    let second = submit(&service);
    wait_for("the one beside it", || stage(&service, &second) == "prove");
    std::thread::sleep(Duration::from_secs(4));
    go(&service);
    for id in [&first, &second] {
        assert_eq!(codes(&service.ended(id)), ["done"]);
    }
}

/// At once for the caller, and without the end of the worker.
#[test]
fn a_job_beside_a_proof_is_cancelled_and_ends_at_its_deadline() {
    let service = Service::start("workers = ['cpu']");
    let first = paused(&service, "");
    let cancelled = submit(&service);
    wait_for("the one beside it", || stage(&service, &cancelled) == "prove");
    assert_eq!(service.post(&format!("/v1/jobs/{cancelled}/cancel")).unwrap()["state"], "cancelled");
    // Its place is free, though the proof goes on.
    let late = service.submit_to("/v1/jobs?key=small&deadline_seconds=2", None, "small.wtns").unwrap();
    let late = late["id"].as_str().unwrap().to_string();
    wait_for("the next one", || stage(&service, &late) == "prove");
    let job = service.ended(&late);
    assert_eq!((codes(&job), job["error"]["code"].as_str()), (vec!["deadline"], Some("deadline")), "{job}");
    let last = submit(&service);
    wait_for("the last one", || stage(&service, &last) == "prove");
    assert_eq!(hands(&service), [[first.clone(), last.clone()]]);
    go(&service);
    for id in [&first, &last] {
        assert_eq!(codes(&service.ended(id)), ["done"]);
    }
    assert_eq!(restarts(&service), 0);
    wait_for("the witnesses to be removed", || service.witnesses().is_empty());
}

#[test]
fn a_job_beside_a_proof_goes_to_a_worker_that_is_idle() {
    let service = Service::start("workers = ['cpu', 'sim:2']");
    wait_for("both workers", || service.client().get("/ready").is_ok_and(|ready| ready["workers"] == 2));
    // While a worker is idle, none has a second job, and nothing has to be given back.
    let two = || {
        service.fault("pause,turn,1");
        let running = [submit(&service), submit(&service)];
        wait_for("both proofs", || running.iter().all(|id| stage(&service, id) == "turn"));
        assert!(hands(&service).iter().all(|hands| hands.len() == 1));
        running
    };
    for _ in 0..6 {
        let running = two();
        go(&service);
        for id in &running {
            assert_eq!(codes(&service.ended(id)), ["done"]);
        }
        std::fs::remove_file(service.at("go")).unwrap();
    }
    let running = two();
    let beside = submit(&service);
    wait_for("the one beside one of them", || stage(&service, &beside) == "prove");
    let with = hands(&service).into_iter().position(|hands| hands.contains(&beside)).unwrap();
    let other = &hands(&service)[1 - with][0];
    let first = running.iter().find(|id| *id != other).unwrap();
    // A worker in this test does not hear that its job is cancelled, and is ended: another one is idle then.
    service.post(&format!("/v1/jobs/{other}/cancel")).unwrap();
    let job = service.ended(&beside);
    assert_eq!(codes(&job), ["given_back", "done"], "{job}");
    assert_ne!(job["attempts"][0]["worker"], job["attempts"][1]["worker"]);
    assert_eq!(stage(&service, first), "turn");
    go(&service);
    assert_eq!(codes(&service.ended(first)), ["done"]);
}

/// Two keys of which one has room at a time: the second job waits for the first one's to be done with its key.
#[test]
fn keys_that_do_not_fit_together_take_turns() {
    let service = Service::start("workers = ['cpu']\nkey_proofs = 1000");
    support::make_key(service.folder.path(), "other", 11);
    let put = tandem_service::client::Content::File;
    let at = service.at("other.zkey");
    service.client().call(tandem_service::client::Method::PUT, "/v1/keys/other", &[], put(&at)).unwrap();
    let first = paused(&service, "");
    let other =
        service.submit_to("/v1/jobs?key=other", None, "other.wtns").unwrap()["id"].as_str().unwrap().to_string();
    wait_for("the one beside it", || stage(&service, &other) == "key");
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(stage(&service, &other), "key");
    go(&service);
    for id in [&first, &other] {
        assert_eq!(codes(&service.ended(id)), ["done"]);
    }
    assert_eq!(restarts(&service), 0);
}
