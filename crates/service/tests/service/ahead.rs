//! Witnesses that a worker reads while they come. Nothing of that is a job: whatever becomes of it, jobs that are accepted are done, and
//! no place and no memory stays taken.

use crate::held::{add_large, bytes, nothing_is_left, verifier};
use crate::support::files::BN254_R;
use crate::support::grpc::{self, messages, Caller};
use crate::support::{codes, refused, stage, wait_for, Service};
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Bytes of a `.wtns` file before its values.
const HEAD: usize = 76;

/// A service whose worker has the key `large` on its device and has used it.
fn warm(settings: &str) -> Service {
    let service = Service::start(settings);
    add_large(&service);
    let job = service.submit_to("/v1/jobs?key=large", None, "large.wtns").unwrap();
    assert_eq!(service.ended(job["id"].as_str().unwrap())["state"], "done");
    wait_for("the key", || !worker(&service)["keys"].as_array().unwrap().is_empty());
    service
}

fn worker(service: &Service) -> Value {
    service.client().get("/v1/workers").unwrap()["workers"][0].clone()
}

fn read_ahead(service: &Service) -> f64 {
    service.metric("tandem_witnesses_read_ahead_total")
}

/// A submission on its way.
struct Body {
    stream: TcpStream,
    rest: Vec<u8>,
}

/// Sends a body to its middle. Where `is_told`, the worker reads it from then on.
fn half_of(service: &Service, content: &[u8], id: &str, is_told: bool) -> Body {
    let _ = std::fs::remove_file(service.at("noted"));
    service.fault("note,ahead,0");
    let body = begin(service, content, id);
    wait_for("the body", || bytes(service, "used") > 0.0);
    if is_told {
        wait_for("the worker to read", || service.at("noted").exists());
    }
    body
}

fn begin(service: &Service, content: &[u8], id: &str) -> Body {
    let mut stream = TcpStream::connect(service.address()).unwrap();
    let length = content.len();
    let head = format!(
        "POST /v1/jobs?key=large HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nIdempotency-Key: {id}\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let (now, rest) = content.split_at(length / 2);
    stream.write_all(now).unwrap();
    Body { stream, rest: rest.to_vec() }
}

/// Submits a body that comes in pieces and does not say its length.
fn chunked(service: &Service, content: &[u8]) -> String {
    let head = "POST /v1/jobs?key=large HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut request = head.as_bytes().to_vec();
    for piece in content.chunks(70_000) {
        request.extend(format!("{:x}\r\n", piece.len()).bytes());
        request.extend_from_slice(piece);
        request.extend(b"\r\n");
    }
    request.extend(b"0\r\n\r\n");
    let reply = service.raw(&request, Duration::from_secs(60));
    let job: Value = serde_json::from_str(reply.split_once("\r\n\r\n").unwrap().1).unwrap();
    job["id"].as_str().unwrap_or_else(|| panic!("{reply}")).into()
}

fn witness(service: &Service) -> Vec<u8> {
    std::fs::read(service.at("large.wtns")).unwrap()
}

impl Body {
    /// Sends what is left. Returns the status and the answer.
    fn finish(mut self) -> (u16, Value) {
        self.stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        // A service that is being stopped may have closed it.
        let _ = self.stream.write_all(&self.rest);
        let mut reply = String::new();
        let _ = self.stream.read_to_string(&mut reply);
        let status = reply.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let body = reply.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        (status, serde_json::from_str(body).unwrap_or_default())
    }

    #[track_caller]
    fn accepted(self) -> String {
        let (status, job) = self.finish();
        assert_eq!(status, 201, "{job}");
        job["id"].as_str().unwrap().into()
    }
}

/// A place for one witness, which is free: the next one is read ahead.
#[track_caller]
fn the_place_is_free(service: &Service) {
    let before = read_ahead(service);
    let id = half_of(service, &witness(service), "free", true).accepted();
    assert_eq!(codes(&service.ended(&id)), ["done"]);
    assert_eq!(read_ahead(service), before + 1.0);
}

#[test]
fn a_witness_is_read_while_it_comes() {
    let service = warm("workers = ['cpu']\nin_hand = 1");
    let before = service.witnesses();
    let body = half_of(&service, &witness(&service), "a", true);
    // It is no job yet.
    assert_eq!(service.metric("tandem_jobs{state=\"done\"}"), 1.0);
    assert_eq!(worker(&service)["jobs"], Value::Array(Vec::new()));
    assert_eq!(read_ahead(&service), 0.0);
    let id = body.accepted();
    assert_eq!(codes(&service.ended(&id)), ["done"]);
    service.verify(&verifier(&service), &id);
    assert_eq!(read_ahead(&service), 1.0);
    nothing_is_left(&service);
    assert!(before.is_empty());
}

/// A body that breaks off, and one that is refused at its end.
#[test]
fn what_is_no_job_leaves_its_place() {
    let service = warm("workers = ['cpu']\nin_hand = 1");
    drop(half_of(&service, &witness(&service), "a", true));
    nothing_is_left(&service);
    the_place_is_free(&service);
    // The same id, and another value of the last wire.
    let mut other = witness(&service);
    let at = other.len() - 32;
    other[at] ^= 1;
    let (status, refusal) = half_of(&service, &other, "free", true).finish();
    assert_eq!((status, refusal["error"]["code"].as_str()), (409, Some("other_content")));
    nothing_is_left(&service);
    // The same content again is the same job.
    let (status, job) = half_of(&service, &witness(&service), "free", true).finish();
    assert_eq!((status, job["state"].as_str()), (200, Some("done")));
    nothing_is_left(&service);
    let id = half_of(&service, &witness(&service), "b", true).accepted();
    service.ended(&id);
    service.verify(&verifier(&service), &id);
    assert_eq!((read_ahead(&service), worker(&service)["restarts"].as_u64()), (2.0, Some(0)));
}

/// Bodies that do not say how long they are, over HTTP and gRPC: those of the usual length are read ahead, and others for their job.
#[test]
fn what_does_not_say_its_length_is_read_while_it_comes() {
    let service = warm("workers = ['cpu']\nin_hand = 1\ninterfaces = ['grpc']");
    let verifier = verifier(&service);
    let whole = witness(&service);
    let caller = Caller::new(&service, None);
    let over_grpc = || caller.send(messages(grpc::head("large", ""), &whole, 100_000)).unwrap().job.unwrap().id;
    // A section that none knows is behind the values; the last value is missing.
    let mut longer = whole.clone();
    longer[8] += 1;
    longer.extend([9, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3]);
    let shorter = &whole[..whole.len() - 32];
    for (content, state, ahead) in [
        (None, "done", 1.0),
        (Some(&whole[..]), "done", 2.0),
        (Some(&longer[..]), "done", 2.0),
        (Some(shorter), "failed", 2.0),
    ] {
        let id = content.map_or_else(over_grpc, |content| chunked(&service, content));
        let job = service.ended(&id);
        assert_eq!((job["state"].as_str(), read_ahead(&service)), (Some(state), ahead), "{job}");
        if state == "done" {
            service.verify(&verifier, &id);
        }
    }
    nothing_is_left(&service);
}

/// A witness that satisfies nothing, and one that is none: the job says so, as without reading ahead.
#[test]
fn what_is_wrong_with_it_is_told_by_its_job() {
    let service = warm("workers = ['cpu']\nin_hand = 1");
    let (mut unsatisfied, mut none) = (witness(&service), witness(&service));
    let at = none.len() - 32;
    unsatisfied[at] ^= 1;
    none[at..].fill(0xff);
    for (content, id, code, ahead) in [(unsatisfied, "a", "unsatisfied", 0.0), (none, "b", "bad_input", 0.0)] {
        let id = half_of(&service, &content, id, true).accepted();
        let job = service.ended(&id);
        assert_eq!((job["error"]["code"].as_str(), read_ahead(&service)), (Some(code), ahead), "{job}");
        nothing_is_left(&service);
    }
    the_place_is_free(&service);
}

/// Whoever dies while it reads ahead had no job in hand.
#[test]
fn a_worker_that_dies_while_it_reads_ahead_costs_no_attempt() {
    let service = warm("workers = ['cpu']\nin_hand = 1");
    let body = half_of(&service, &witness(&service), "a", true);
    let pid = worker(&service)["pid"].as_u64().unwrap();
    kill(Pid::from_raw(pid as i32), Signal::SIGKILL).unwrap();
    wait_for("its end", || worker(&service)["restarts"] == 1);
    let id = body.accepted();
    let job = service.ended(&id);
    assert_eq!(codes(&job), ["done"], "{job}");
    service.verify(&verifier(&service), &id);
    assert_eq!(read_ahead(&service), 0.0);
    nothing_is_left(&service);
    wait_for("the key", || !worker(&service)["keys"].as_array().unwrap().is_empty());
    the_place_is_free(&service);
}

/// The attempt waits for what is read ahead, and is let go of without it.
#[test]
fn a_job_is_cancelled_while_its_witness_is_read() {
    let service = warm("workers = ['cpu']\nin_hand = 1");
    service.fault("pause,ahead,0");
    let id = service.submit_to("/v1/jobs?key=large", None, "large.wtns").unwrap()["id"].clone();
    let id = id.as_str().unwrap();
    wait_for("the worker", || service.at("paused").exists());
    wait_for("the attempt", || stage(&service, id) == "witness");
    assert_eq!(service.post(&format!("/v1/jobs/{id}/cancel")).unwrap()["state"], "cancelled");
    // The next job has its place, while the other thread has not begun to read.
    service.fault("note,ahead,0");
    let next = service.submit_to("/v1/jobs?key=large", None, "large.wtns").unwrap()["id"].clone();
    assert_eq!(codes(&service.ended(next.as_str().unwrap())), ["done"]);
    std::fs::write(service.at("go"), "").unwrap();
    nothing_is_left(&service);
    assert_eq!(service.ended(id)["state"], "cancelled");
    the_place_is_free(&service);
    assert_eq!(worker(&service)["restarts"], 0);
}

/// The second attempt of a job has the file, whatever the first one had read.
#[test]
fn the_next_attempt_reads_the_file() {
    let service = warm("workers = ['cpu']\nin_hand = 1");
    let body = half_of(&service, &witness(&service), "a", true);
    service.fault("kill,wait,1");
    let id = body.accepted();
    assert_eq!(codes(&service.ended(&id)), ["worker_died", "done"]);
    service.verify(&verifier(&service), &id);
    assert_eq!(read_ahead(&service), 0.0);
    assert_eq!(service.metric("tandem_witnesses_given_total{from=\"blob\"}"), 1.0);
    nothing_is_left(&service);
}

/// What a worker has read is for the attempt whose order says so. Here another one has the first attempt, and the memory has the witness of
/// another job before the worker looks into it.
#[test]
fn what_was_read_ahead_is_no_witness_of_a_later_attempt() {
    let service = Service::start("workers = ['cpu', 'cpu']\nin_hand = 2");
    add_large(&service);
    let workers = || service.client().get("/v1/workers").unwrap()["workers"].as_array().unwrap().clone();
    let are_ready = || workers().iter().all(|worker| worker["ready"] == true);
    let submit = |witness: &str| {
        let job = service.submit_to("/v1/jobs?key=large", None, witness).unwrap();
        job["id"].as_str().unwrap().to_string()
    };
    wait_for("the workers", are_ready);
    // One of them is at a proof, and has the key alone.
    service.fault("step,turn,1");
    let first = submit("large.wtns");
    wait_for("its turn", || stage(&service, &first) == "turn");
    service.post("/v1/keys/large/evict").unwrap();
    let with_key = || workers().iter().filter(|worker| !worker["keys"].as_array().unwrap().is_empty()).count();
    wait_for("the key", || with_key() == 1);
    let alone = bytes(&service, "used");
    // So it gets the next witness, and stops before it reads any of it. The other one, which is idle, gets the job, and dies.
    service.fault("pause,ahead,0\nkill,witness,1");
    let body = begin(&service, &witness(&service), "a");
    wait_for("the worker to read", || service.at("paused").exists());
    let second = body.accepted();
    let attempts = || service.client().get(&format!("/v1/jobs/{second}")).unwrap()["attempts"].clone();
    wait_for("the first attempt", || attempts()[0]["code"] == "worker_died");
    wait_for("the memory", || bytes(&service, "used") == alone);
    wait_for("the other worker", are_ready);
    // x_0 = -1, which has the same square.
    let mut other = witness(&service);
    let mut minus_one = BN254_R;
    minus_one[0] -= 1;
    other[HEAD + 32..][..32].copy_from_slice(&minus_one);
    std::fs::write(service.at("other.wtns"), other).unwrap();
    service.fault("pause,witness,1");
    let third = submit("other.wtns");
    wait_for("the memory", || bytes(&service, "used") == 2.0 * alone);
    wait_for("its worker", || stage(&service, &third) == "witness");
    wait_for("the second attempt", || attempts().as_array().unwrap().len() == 2);
    std::fs::write(service.at("go"), "").unwrap();
    std::fs::write(service.at("step0"), "").unwrap();
    let verifier = verifier(&service);
    let minus_one = "21888242871839275222246405745257275088548364400416034343698204186575808495616";
    for (id, public, ends) in
        [(&first, "1", vec!["done"]), (&second, "1", vec!["worker_died", "done"]), (&third, minus_one, vec!["done"])]
    {
        let job = service.ended(id);
        // A job that was not begun goes back to the queue, as where the machine is busy.
        let begun: Vec<_> = codes(&job).into_iter().filter(|&code| code != "given_back").collect();
        assert_eq!(begun, ends);
        service.verify(&verifier, id);
        let result = service.client().get(&format!("/v1/jobs/{id}/result")).unwrap();
        assert_eq!(result["public"], serde_json::json!([public]));
    }
    assert_eq!(read_ahead(&service), 0.0);
    nothing_is_left(&service);
}

/// What is read ahead has the places that jobs leave, and gives them back to jobs.
#[test]
fn jobs_come_before_what_is_read_ahead() {
    // Three witnesses fit, of two places.
    for (settings, told) in
        [("in_hand = 2", [true, true, false]), ("in_hand = 9\nwitness_memory_mib = 1", [true, true, true])]
    {
        let service = warm(&format!("workers = ['cpu']\n{settings}"));
        let content = witness(&service);
        let ids = ["a", "b", "c"];
        let bodies: Vec<_> = (0..3).map(|i| half_of(&service, &content, ids[i], told[i])).collect();
        let last = half_of(&service, &content, "d", false);
        std::thread::sleep(Duration::from_millis(300));
        assert!(!service.at("noted").exists(), "{settings}");
        // Two in hand, one of which is proved while the other is read: none of them waits for bodies.
        let whole = service.submit_to("/v1/jobs?key=large", None, "large.wtns").unwrap();
        assert_eq!(codes(&service.ended(whole["id"].as_str().unwrap())), ["done"]);
        for body in bodies.into_iter().chain([last]) {
            let id = body.accepted();
            assert_eq!(codes(&service.ended(&id)), ["done"]);
            service.verify(&verifier(&service), &id);
        }
        // The oldest one gave its place to the job that was there.
        let all = told.iter().filter(|told| **told).count() as f64;
        assert!(read_ahead(&service) < all, "{settings}: {}", read_ahead(&service));
        nothing_is_left(&service);
    }
}

/// A body that comes slowly does not keep its place.
#[test]
fn what_comes_slowly_is_not_read_ahead() {
    let service = warm("workers = ['cpu']\nin_hand = 1");
    let slow = half_of(&service, &witness(&service), "slow", true);
    std::thread::sleep(Duration::from_millis(5500));
    the_place_is_free(&service);
    let before = read_ahead(&service);
    assert_eq!(codes(&service.ended(&slow.accepted())), ["done"]);
    assert_eq!(read_ahead(&service), before);
    nothing_is_left(&service);
}

/// A service that drains reads nothing ahead any more. What it accepted is there after the next start.
#[test]
fn a_service_stops_while_a_witness_comes() {
    let mut service = warm("workers = ['cpu']\nin_hand = 1");
    let body = half_of(&service, &witness(&service), "a", true);
    std::fs::write(service.at("stop"), "").unwrap();
    wait_for("the worker to end", || service.client().get("/ready").is_err());
    let (status, job) = body.finish();
    service.stop();
    std::fs::remove_file(service.at("fault")).unwrap();
    service.restart();
    match status {
        201 => {
            let id = job["id"].as_str().unwrap();
            assert_eq!(service.ended(id)["state"], "done");
            service.verify(&verifier(&service), id);
        }
        // The connection was closed with the service: the caller sends it again.
        _ => {
            let job = service.submit_to("/v1/jobs?key=large", Some("a"), "large.wtns").unwrap();
            assert_eq!(service.ended(job["id"].as_str().unwrap())["state"], "done");
        }
    }
    nothing_is_left(&service);
    let missing = refused(service.client().get("/v1/jobs/none"));
    assert_eq!(missing.0, 404);
}
