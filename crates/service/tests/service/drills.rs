//! What ends when it should not: the service, workers in each stage, disks, witnesses. No accepted job is lost, none has two results.

use crate::support::{self, codes, refused, stage, wait_for, Service};
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tandem_service::client::{CallError, Client, Content, Method};
use tandem_service::store::{State, Store};

/// Callers send 200 jobs and send each again until it is accepted, while the service and its workers are killed at random.
#[test]
fn two_hundred_jobs_survive_kills() {
    const JOBS: usize = 200;
    let mut service = Service::start("workers = ['cpu', 'sim:2']\nattempts = 50");
    let address = service.at("address");
    let witness = service.at("small.wtns");
    let all_sent = AtomicBool::new(false);
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let mut kills = 0;
    let ids: HashSet<String> = std::thread::scope(|scope| {
        let send = |half: usize| {
            let (address, witness) = (&address, &witness);
            move || {
                let mut ids = Vec::new();
                for number in (0..JOBS).filter(|number| number % 2 == half) {
                    let request = format!("job-{number}");
                    loop {
                        let client = std::fs::read_to_string(address).ok().and_then(|at| Client::new(&at).ok());
                        let headers = [("idempotency-key", request.as_str())];
                        let send = |client: Client| {
                            client.call(Method::POST, "/v1/jobs?key=small", &headers, Content::File(witness))
                        };
                        match client.map(send) {
                            Some(Ok(job)) => break ids.push(job["id"].as_str().unwrap().to_string()),
                            Some(Err(CallError::Unreachable(_))) | None => std::thread::sleep(Duration::from_millis(5)),
                            Some(Err(other)) => panic!("{other:?}"),
                        }
                    }
                }
                ids
            }
        };
        let senders = [scope.spawn(send(0)), scope.spawn(send(1))];
        let killer = scope.spawn(|| {
            let begun = Instant::now();
            while !all_sent.load(Ordering::SeqCst) || begun.elapsed() < Duration::from_secs(3) {
                std::thread::sleep(Duration::from_millis(50 + next(350)));
                kills += 1;
                if next(3) == 0 {
                    let workers = service.client().get("/v1/workers").unwrap();
                    let pid = workers["workers"][next(2) as usize]["pid"].as_u64();
                    if let Some(pid) = pid {
                        // It may have gone already.
                        let _ = kill(Pid::from_raw(pid as i32), Signal::SIGKILL);
                    }
                } else {
                    service.kill();
                    service.restart();
                }
            }
        });
        let ids = senders.into_iter().flat_map(|sender| sender.join().unwrap()).collect();
        all_sent.store(true, Ordering::SeqCst);
        killer.join().unwrap();
        ids
    });
    assert_eq!(ids.len(), JOBS);
    let verifier = service.verifier();
    for id in &ids {
        assert_eq!(service.ended(id)["state"], "done");
        service.verify(&verifier, id);
    }
    service.stop();
    assert!(service.witnesses().is_empty(), "{:?}", service.witnesses());
    let store = Store::open(&service.at("data/jobs.db"), true).unwrap();
    assert_eq!(store.jobs(None, None, 1000).unwrap().len(), JOBS);
    let mut again = 0;
    for id in &ids {
        let attempts = store.attempts(id).unwrap();
        let done = attempts.iter().filter(|attempt| attempt.code.as_deref() == Some("done")).count();
        assert!(done == 1 && attempts.iter().all(|attempt| attempt.ended_ms.is_some()), "{attempts:?}");
        again += attempts.len() - 1;
    }
    println!("{kills} kills, {again} attempts more than jobs");
    assert!(kills > 5 && again > 0, "{kills} kills, {again} attempts that were cut off");
}

#[test]
fn a_worker_killed_in_any_stage_costs_an_attempt_and_no_job() {
    let service = Service::start("workers = ['cpu']");
    let verifier = service.verifier();
    for stage in ["key", "witness", "prove", "MSM B2", "MSM A", "MSM H", "answer"] {
        service.fault(&format!("kill,{stage},1"));
        let id = service.submit(None).unwrap()["id"].as_str().unwrap().to_string();
        let job = service.ended(&id);
        assert_eq!(codes(&job), ["worker_died", "done"], "{stage}: {job}");
        service.verify(&verifier, &id);
    }
    service.fault("panic,prove,1");
    let id = service.submit(None).unwrap()["id"].as_str().unwrap().to_string();
    assert_eq!(codes(&service.ended(&id)), ["worker_died", "done"]);
    let restarts = service.client().get("/v1/workers").unwrap()["workers"][0]["restarts"].as_u64();
    assert_eq!(restarts, Some(8));
}

/// Each time one worker has the job first; the other one is there for it, and the first comes back.
#[test]
fn a_worker_that_hangs_is_ended_and_the_job_is_done_elsewhere() {
    let service = Service::start("workers = ['cpu', 'sim:2']\nbeat_seconds = 3\nproof_seconds = 8");
    for (fault, why) in [("freeze", "no sign of life"), ("hang", "longer than proof_seconds")] {
        service.fault(&format!("{fault},prove,1"));
        let id = service.submit(None).unwrap()["id"].as_str().unwrap().to_string();
        let job = service.ended(&id);
        assert_eq!(codes(&job), ["worker_hung", "done"], "{job}");
        assert!(job["attempts"][0]["message"].as_str().unwrap().contains(why), "{job}");
        assert_ne!(job["attempts"][0]["worker"], job["attempts"][1]["worker"]);
    }
    wait_for("both workers", || service.client().get("/ready").is_ok_and(|ready| ready["workers"] == 2));
}

#[test]
fn a_job_that_kills_every_worker_fails_in_the_end() {
    let service = Service::start("workers = ['cpu']\nattempts = 1");
    service.fault("kill,prove,1");
    let id = service.submit(None).unwrap()["id"].as_str().unwrap().to_string();
    let job = service.ended(&id);
    assert_eq!((codes(&job), job["error"]["code"].as_str()), (vec!["worker_died"], Some("worker_died")));
    assert_eq!(refused(service.client().get(&format!("/v1/jobs/{id}/result"))), (409, "no_result".into()));
    wait_for("the witnesses to be removed", || service.witnesses().is_empty());
}

/// A device that cannot be had now is asked for again.
#[test]
fn a_device_that_is_broken_at_first_is_opened_again() {
    let mut service = Service::start("workers = ['cpu']");
    // A worker that still starts would take the device for broken in place of the next one.
    wait_for("the worker", || service.client().get("/ready").is_ok());
    service.kill();
    std::fs::write(service.at("broken-device"), "").unwrap();
    service.restart();
    let id = service.submit(None).unwrap()["id"].as_str().unwrap().to_string();
    assert_eq!(service.ended(&id)["state"], "done");
    let workers = service.client().get("/v1/workers").unwrap();
    assert_eq!(workers["workers"][0]["restarts"], 1, "{workers}");
}

#[test]
fn witnesses_and_keys_that_are_wrong_fail_at_once() {
    let service = Service::start("workers = ['cpu']\nsmall_in_database = false");
    // Cut on the service's own disk, after it was accepted.
    service.fault("pause,key,1");
    let id = service.submit(None).unwrap()["id"].as_str().unwrap().to_string();
    wait_for("the worker", || service.at("paused").exists());
    let blob = service.at("data/witnesses").join(&id);
    std::fs::OpenOptions::new().write(true).open(blob).unwrap().set_len(100).unwrap();
    std::fs::write(service.at("go"), "").unwrap();
    let job = service.ended(&id);
    assert_eq!((job["error"]["code"].as_str(), codes(&job).len()), (Some("witness_lost"), 1), "{job}");
    // Malformed, cut by the caller, of another circuit, not satisfying.
    let good = std::fs::read(service.at("small.wtns")).unwrap();
    let other = support::files::squarings(11).1;
    let mut wrong = good.clone();
    let last = wrong.len() - 32;
    wrong[last] = 2;
    for (bytes, code) in
        [(&b"no witness"[..], "bad_input"), (&good[..99], "bad_input"), (&other, "bad_input"), (&wrong, "bad_input")]
    {
        std::fs::write(service.at("other.wtns"), bytes).unwrap();
        let id =
            service.submit_to("/v1/jobs?key=small", None, "other.wtns").unwrap()["id"].as_str().unwrap().to_string();
        let job = service.ended(&id);
        assert!(job["state"] == "failed" && codes(&job).len() == 1, "{job}");
        assert!([code, "unsatisfied"].contains(&job["error"]["code"].as_str().unwrap()), "{job}");
        let said = job["error"]["message"].as_str().unwrap();
        assert!(said.contains("the witness") && !said.contains("data/"), "{said}");
    }
    wait_for("the witnesses to be removed", || service.witnesses().is_empty());
    // The key's file changed since it was registered, and the worker that knew it is gone.
    let pid = service.client().get("/v1/workers").unwrap()["workers"][0]["pid"].as_u64().unwrap();
    kill(Pid::from_raw(pid as i32), Signal::SIGKILL).unwrap();
    support::make_key(service.folder.path(), "small2", 12);
    std::fs::copy(service.at("small2.zkey"), service.at("small.zkey")).unwrap();
    let id = service.submit(None).unwrap()["id"].as_str().unwrap().to_string();
    let job = service.ended(&id);
    assert_eq!(job["error"]["code"], "key_lost", "{job}");
}

/// Files of a service may have so many bytes.
fn limit(service: &Service, bytes: &str) {
    let (pid, most) = (service.pid().to_string(), format!("--fsize={bytes}:unlimited"));
    assert!(std::process::Command::new("prlimit").args(["--pid", &pid, &most]).status().unwrap().success());
}

/// An upload of more than is in memory at a time is given up where the disk is full, and leaves nothing.
#[test]
fn a_full_disk_ends_an_upload() {
    let service = Service::start("workers = ['cpu']");
    std::fs::write(service.at("large"), vec![7; 12 << 20]).unwrap();
    let upload = || service.client().call(Method::PUT, "/v1/keys/large", &[], Content::File(&service.at("large")));
    let count = |status: &str| {
        service.metric(&format!("tandem_http_requests_total{{route=\"/v1/keys/{{name}}\",status=\"{status}\"}}"))
    };
    limit(&service, "1000000");
    // The connection may be closed before the answer is read.
    assert!(upload().is_err());
    wait_for("the refusal", || count("507") == 1.0);
    let files = || std::fs::read_dir(service.at("data/keys")).unwrap().count();
    wait_for("the file to be removed", || files() == 0);
    limit(&service, "unlimited");
    assert_eq!(refused(upload()), (422, "bad_key".into()));
    assert_eq!((files(), count("507")), (0, 1.0));
}

/// Files may not grow for a while, those of the database neither; what was accepted before is done after.
#[test]
fn a_full_disk_loses_nothing() {
    let mut service = Service::start("workers = ['cpu']");
    service.fault("pause,prove,1");
    let id = service.submit(None).unwrap()["id"].as_str().unwrap().to_string();
    wait_for("the worker", || service.at("paused").exists());
    let limit = |bytes: &str| limit(&service, bytes);
    limit("64");
    assert_eq!(refused(service.submit(Some("while-full"))), (507, "storage_full".into()));
    std::fs::write(service.at("go"), "").unwrap();
    // The proof is there and cannot be written down.
    let metrics = || service.raw(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n", Duration::from_secs(5));
    wait_for("a failure", || metrics().contains("tandem_database_failures_total"));
    assert_eq!(service.client().get(&format!("/v1/jobs/{id}")).unwrap()["state"], "running");
    limit("unlimited");
    assert_eq!(codes(&service.ended(&id)), ["done"]);
    let later = service.submit(Some("while-full")).unwrap()["id"].as_str().unwrap().to_string();
    assert_eq!(service.ended(&later)["state"], "done");
    service.stop();
    wait_for("the witnesses to be removed", || service.witnesses().is_empty());
}

#[test]
fn jobs_are_cancelled_and_end_at_their_deadline() {
    let service = Service::start("workers = ['cpu']\nin_hand = 1");
    service.fault("pause,prove,1");
    let running = service.submit(None).unwrap()["id"].as_str().unwrap().to_string();
    wait_for("the worker", || service.at("paused").exists());
    let pending = service.submit(None).unwrap()["id"].as_str().unwrap().to_string();
    let late = service.submit_to("/v1/jobs?key=small&deadline_seconds=1", None, "small.wtns").unwrap();
    let late = late["id"].as_str().unwrap().to_string();
    for id in [&pending, &running, &running] {
        assert_eq!(service.post(&format!("/v1/jobs/{id}/cancel")).unwrap()["state"], "cancelled");
    }
    let job = service.ended(&late);
    assert_eq!((job["error"]["code"].as_str(), codes(&job).len()), (Some("deadline"), 0), "{job}");
    std::fs::write(service.at("go"), "").unwrap();
    std::fs::remove_file(service.at("fault")).unwrap();
    let next = service.submit(None).unwrap()["id"].as_str().unwrap().to_string();
    assert_eq!(service.ended(&next)["state"], "done");
    assert_eq!(service.ended(&running)["state"], "cancelled");
    assert_eq!(refused(service.post(&format!("/v1/jobs/{next}/cancel"))), (409, "already_ended".into()));
    assert_eq!(refused(service.post("/v1/jobs/none/cancel")), (404, "no_job".into()));
    wait_for("the witnesses to be removed", || service.witnesses().is_empty());
}

/// While running jobs end, nothing new is taken; what waits is done by the next service on the same files.
#[test]
fn a_stop_ends_what_runs_and_keeps_what_waits() {
    let mut service = Service::start("workers = ['cpu']");
    service.fault("pause,turn,1");
    let running = service.submit(None).unwrap()["id"].as_str().unwrap().to_string();
    wait_for("the worker", || service.at("paused").exists());
    let waiting = service.submit(None).unwrap()["id"].as_str().unwrap().to_string();
    wait_for("the one beside it", || stage(&service, &waiting) == "prove");
    std::fs::write(service.at("stop"), "").unwrap();
    wait_for("draining", || service.client().get("/ready").is_err());
    assert_eq!(refused(service.submit(None)), (503, "draining".into()));
    let state = || service.client().get(&format!("/v1/jobs/{waiting}")).unwrap()["state"].clone();
    wait_for("the one that is not begun", || state() == "pending");
    // A second one stays off the folder meanwhile.
    let lock = service.at("data/lock");
    assert!(nix::fcntl::Flock::lock(std::fs::File::open(lock).unwrap(), nix::fcntl::FlockArg::LockExclusiveNonblock)
        .is_err());
    std::fs::write(service.at("go"), "").unwrap();
    std::fs::remove_file(service.at("fault")).unwrap();
    service.stop();
    {
        let store = Store::open(&service.at("data/jobs.db"), true).unwrap();
        let state = |id: &str| store.job(id).unwrap().unwrap().state;
        assert_eq!((state(&running), state(&waiting)), (State::Done, State::Pending));
    }
    // What a kill leaves behind is removed at the start: a witness without a job, a half of one, a half of a key.
    for name in ["witnesses/0f1e", "witnesses/0f1e.part", "keys/0f1e.part"] {
        std::fs::write(service.at("data").join(name), "left").unwrap();
    }
    service.restart();
    // It was in the worker's hand, and not begun.
    assert_eq!(codes(&service.ended(&waiting)), ["given_back", "done"]);
    assert!(
        service.witnesses().iter().all(|name| !name.starts_with("0f1e")) && !service.at("data/keys/0f1e.part").exists()
    );
    service.verify(&service.verifier(), &running);
}

/// A device that fails, and whose proof the CPU makes, is told from one whose proof is wrong. Either ends its worker.
#[test]
fn a_device_that_fails_is_told_from_one_that_computes_wrongly() {
    let service = Service::start("workers = ['stepped']");
    let verifier = service.verifier();
    let count = |name: &str| service.metric(&format!("tandem_{name}_total{{worker=\"0:stepped\"}}"));
    let mut ends = 0.0;
    for (device, counted, said) in [
        ("broken", [1.0, 0.0], "the proof was made on the CPU"),
        ("wrong", [1.0, 1.0], "failed its check"),
        ("right", [1.0, 1.0], ""),
    ] {
        service.fault("pause,turn,1");
        let id = service.submit(None).unwrap()["id"].as_str().unwrap().to_string();
        wait_for("the proof", || service.at("paused").exists());
        std::fs::write(service.at("device"), device).unwrap();
        std::fs::write(service.at("go"), "").unwrap();
        let job = service.ended(&id);
        assert_eq!(job["state"], "done", "{job}");
        service.verify(&verifier, &id);
        let result = service.client().get(&format!("/v1/jobs/{id}/result")).unwrap();
        let remark = result["remark"].as_str().unwrap_or_default();
        assert!(remark.contains(said) && remark.is_empty() == said.is_empty(), "{device}: {result}");
        ends += f64::from(u8::from(device != "right"));
        wait_for("the end of the worker", || count("worker_restarts") == ends);
        assert_eq!([count("device_failures"), count("wrong_proofs")], counted, "{device}");
        for file in ["device", "go", "paused"] {
            std::fs::remove_file(service.at(file)).unwrap();
        }
    }
}
