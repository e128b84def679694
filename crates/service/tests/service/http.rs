//! What callers do wrong, by mistake or on purpose: each gets an answer that says so, and nobody else notices.

use crate::support::{make_key, refused, wait_for, Service};
use std::collections::HashSet;
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};
use tandem_service::client::{Content, Method};

/// A worker of no use, so that jobs stay where they are.
const IDLE: &str = "workers = ['cpu']\nproof_seconds = 3600\nin_hand = 1";

fn idle(more: &str) -> Service {
    let service = Service::start(&format!("{IDLE}\n{more}"));
    service.fault("pause,key,1");
    service
}

#[test]
fn the_same_id_is_the_same_job() {
    let service = idle("");
    let client = service.client();
    make_key(service.folder.path(), "other", 11);
    client.call(Method::PUT, "/v1/keys/other", &[], Content::File(&service.at("other.zkey"))).unwrap();
    let first = service.submit(Some("a")).unwrap()["id"].clone();
    assert_eq!(service.submit(Some("a")).unwrap()["id"], first);
    // Another witness, another key, and the content of the first again.
    assert_eq!(
        refused(service.submit_to("/v1/jobs?key=small", Some("a"), "other.wtns")),
        (409, "other_content".into())
    );
    assert_eq!(
        refused(service.submit_to("/v1/jobs?key=other", Some("a"), "small.wtns")),
        (409, "other_content".into())
    );
    assert_eq!(service.submit(Some("a")).unwrap()["id"], first);
    assert_ne!(service.submit(Some("b")).unwrap()["id"], first);
    // Many at once are one too, and leave one witness.
    let ids: HashSet<String> = std::thread::scope(|scope| {
        let send = || service.submit(Some("c")).unwrap()["id"].as_str().unwrap().to_string();
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(send)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!((ids.len(), service.witnesses().len()), (1, 3));
}

/// A witness that is hashed by one thread while others write it: its whole content counts.
#[test]
fn the_same_id_is_the_same_large_witness() {
    let service = idle("");
    make_key(service.folder.path(), "large", 9000);
    service.client().call(Method::PUT, "/v1/keys/large", &[], Content::File(&service.at("large.zkey"))).unwrap();
    let content = std::fs::read(service.at("large.wtns")).unwrap();
    assert!(content.len() > 4 * 65536);
    let submit = |content: &[u8]| {
        std::fs::write(service.at("sent.wtns"), content).unwrap();
        service.submit_to("/v1/jobs?key=large", Some("a"), "sent.wtns")
    };
    let first = submit(&content).unwrap()["id"].clone();
    for at in [0, 65535, 65536, 4 * 65536, content.len() - 1] {
        let mut other = content.clone();
        other[at] ^= 1;
        assert_eq!(refused(submit(&other)), (409, "other_content".into()), "{at}");
    }
    assert_eq!(refused(submit(&content[..content.len() - 1])), (409, "other_content".into()));
    assert_eq!((submit(&content).unwrap()["id"].clone(), service.witnesses().len()), (first, 1));
}

#[test]
fn lengths_are_refused_before_anything_is_read() {
    let service = idle("max_key_mib = 1");
    let patience = Duration::from_secs(10);
    let huge = |method: &str, path: &str| {
        format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 107374182400\r\n\r\n")
    };
    for (method, path) in [("POST", "/v1/jobs?key=small"), ("PUT", "/v1/keys/k"), ("POST", "/v1/keys")] {
        let begun = Instant::now();
        let reply = service.raw(huge(method, path).as_bytes(), patience);
        assert!(
            reply.starts_with("HTTP/1.1 413 ") && reply.contains("\"too_large\"") && reply.contains(" bytes"),
            "{reply}"
        );
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
    // Without a length: cut off at the first byte that is too many.
    let mut chunked =
        b"POST /v1/jobs?key=small HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for _ in 0..64 {
        chunked.extend(b"400\r\n");
        chunked.extend([b'x'; 0x400]);
        chunked.extend(b"\r\n");
    }
    let reply = service.raw(&chunked, Duration::from_secs(2));
    assert!(reply.starts_with("HTTP/1.1 413 "), "{reply}");
    let head = format!("GET /health HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
    let reply = service.raw(head.as_bytes(), patience);
    assert!(reply.is_empty() || reply.starts_with("HTTP/1.1 431 "), "{reply}");
    // One that is taken in is too long all the same.
    let head =
        format!("GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX: {}\r\n\r\n", "x".repeat(17 << 10));
    let reply = service.raw(head.as_bytes(), patience);
    assert!(reply.starts_with("HTTP/1.1 431 "), "{reply}");
    let lines = format!("GET /health HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "a: b\r\n".repeat(100));
    let reply = service.raw(lines.as_bytes(), patience);
    assert!(reply.starts_with("HTTP/1.1 431 "), "{reply}");
    assert!(service.witnesses().is_empty());
}

#[test]
fn slow_and_vanishing_callers_hold_nothing_up() {
    let service = idle("header_seconds = 1\nstall_seconds = 1\nconnections = 120\nsmall_in_database = false");
    let head = b"POST /v1/jobs?key=small HTTP/1.1\r\nHost: localhost\r\nContent-Length: 400\r\n\r\nwtns";
    let open = |bytes: &[u8]| {
        let mut stream = TcpStream::connect(service.address()).unwrap();
        stream.write_all(bytes).unwrap();
        stream
    };
    // A byte now and then, after the head and in the middle of it; a hundred that go away.
    let (body, start) = (open(head), open(b"GET /hea"));
    let gone: Vec<_> = (0..100).map(|_| open(head)).collect();
    wait_for("the bodies", || service.witnesses().len() > 90);
    drop(gone);
    let begun = Instant::now();
    assert_eq!(service.client().get("/health").unwrap()["status"], "ok");
    assert!(begun.elapsed() < Duration::from_millis(900), "{:?}", begun.elapsed());
    wait_for("the slow ones to be closed", || {
        std::thread::sleep(Duration::from_millis(100));
        (&body).write_all(b"x").is_err() && (&start).write_all(b"l").is_err()
    });
    let reply = service.raw(head, Duration::from_secs(10));
    assert!(reply.starts_with("HTTP/1.1 408 ") && reply.contains("\"too_slow\""), "{reply}");
    wait_for("the halves to be removed", || service.witnesses().is_empty());
    assert!(service.submit(None).is_ok());
}

#[test]
fn malformed_requests_are_refused() {
    let service = idle("");
    let patience = Duration::from_secs(5);
    let long =
        format!("POST /v1/jobs?key=small HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: {}\r\n\r\n", "x".repeat(201));
    for (request, status) in [
        ("\r\n\r\n\0\u{1}garbage\r\n\r\n", "400"),
        ("GET / HTTP/9.9\r\n\r\n", "400"),
        ("GET /health HTTP/1.1\r\nHost: localhost\r\nbad header\r\n\r\n", "400"),
        ("POST /v1/jobs?key=small HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", "400"),
        (
            "POST /v1/jobs?key=small HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            "400",
        ),
        ("POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", "400"),
        ("POST /v1/jobs?key=small HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", "400"),
        ("POST /v1/jobs?key=small&priority=x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", "400"),
        ("POST /v1/jobs?key=small&prioritty=1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", "400"),
        ("POST /v1/jobs?key=small&key=small HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", "400"),
        ("POST /v1/jobs?key=none HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", "404"),
        (&long, "400"),
        ("POST /v1/keys HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{]", "400"),
        ("PUT /v1/keys/.. HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx", "400"),
        ("PUT /v1/keys/a%2fb HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx", "400"),
        ("PUT /v1/keys/bad HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nzkey", "422"),
        ("GET /v1/jobs/x HTTP/1.1\r\nHost: localhost\r\n\r\n", "404"),
        ("GET /v1/jobs/x?wait=soon HTTP/1.1\r\nHost: localhost\r\n\r\n", "400"),
        ("GET /v1/jobs?state=lost HTTP/1.1\r\nHost: localhost\r\n\r\n", "400"),
        ("GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n", "404"),
        ("DELETE /health HTTP/1.1\r\nHost: localhost\r\n\r\n", "405"),
        // Pages of browsers, and names that were made to point here.
        ("POST /v1/jobs?key=small HTTP/1.1\r\nHost: localhost\r\nOrigin: http://example.org\r\n\r\n", "403"),
        ("GET /v1/jobs HTTP/1.1\r\nHost: example.org\r\n\r\n", "403"),
        ("GET /v1/jobs HTTP/1.1\r\nConnection: close\r\n\r\n", "403"),
    ] {
        let request = request.replacen("\r\nHost", "\r\nConnection: close\r\nHost", 1);
        let reply = service.raw(request.as_bytes(), patience);
        assert!(reply.starts_with(&format!("HTTP/1.1 {status} ")), "{request:?}: {reply}");
        // Those that are no HTTP at all are refused before they are ours.
        if request.contains("Host") && !request.contains("bad header") && !reply.contains("content-length: 0") {
            let body: serde_json::Value = serde_json::from_str(reply.split("\r\n\r\n").nth(1).unwrap()).unwrap();
            assert!(body["error"]["code"].is_string() && body["error"]["message"].is_string(), "{reply}");
        }
    }
    assert!(service.witnesses().is_empty());
    assert_eq!(service.client().get("/v1/keys").unwrap()["keys"].as_array().unwrap().len(), 1);
}

#[test]
fn as_many_jobs_wait_as_may() {
    let service = idle("queue = 2");
    service.submit(None).unwrap();
    wait_for("the worker", || service.at("paused").exists());
    for _ in 0..2 {
        service.submit(Some("a")).unwrap();
        service.submit(None).ok();
    }
    assert_eq!(refused(service.submit(None)), (429, "queue_full".into()));
    // What was accepted is still the same job.
    service.submit(Some("a")).unwrap();
    assert_eq!(service.witnesses().len(), 3);
}

/// One content may lie in several files, each with a name: jobs of all are proved, also when one file is gone.
#[test]
fn a_key_may_have_several_names_and_files() {
    let service = Service::start("workers = ['cpu']");
    let client = service.client();
    let proves = |key: &str| {
        let id = service.submit_to(&format!("/v1/jobs?key={key}"), None, "small.wtns").unwrap()["id"].clone();
        assert_eq!(service.ended(id.as_str().unwrap())["state"], "done", "{key}");
    };
    proves("small");
    let file = service.at("small.zkey");
    client.call(Method::PUT, "/v1/keys/again", &[], Content::File(&file)).unwrap();
    proves("again");
    proves("small");
    client.call(Method::DELETE, "/v1/keys/again", &[], Content::Empty).unwrap();
    proves("small");
}

#[test]
fn keys_come_and_go() {
    let folder = tempfile::tempdir().unwrap();
    make_key(folder.path(), "inside", 10);
    let service = Service::start(&format!("workers = ['cpu']\nkey_folder = '{}'", folder.path().display()));
    let client = service.client();
    let register = |name: &str, path: &str| {
        let wanted = serde_json::json!({"name": name, "path": path});
        client.call(Method::POST, "/v1/keys", &[], Content::Json(&wanted))
    };
    let upload = |name: &str, file: &str| {
        client.call(Method::PUT, &format!("/v1/keys/{name}"), &[], Content::File(&service.at(file)))
    };
    assert_eq!(register("inside", "inside.zkey").unwrap()["uploaded"], false);
    // Out of the folder by name, by dots and by a link.
    std::os::unix::fs::symlink(service.at("small.zkey"), folder.path().join("link.zkey")).unwrap();
    let outside = service.at("small.zkey");
    for path in [outside.to_str().unwrap(), "../small.zkey", "link.zkey", "none.zkey", "."] {
        assert_eq!(refused(register("outside", path)), (403, "path_not_allowed".into()), "{path}");
    }
    make_key(service.folder.path(), "up", 9);
    assert_eq!(upload("up", "up.zkey").unwrap()["uploaded"], true);
    assert_eq!(upload("up", "up.zkey").unwrap()["variables"], 11);
    assert_eq!(refused(upload("up", "small.zkey")), (409, "other_key".into()));
    assert_eq!(refused(upload("cut", "up.wtns")), (422, "bad_key".into()));
    let files = || std::fs::read_dir(service.at("data/keys")).unwrap().count();
    assert_eq!(files(), 1);
    let id = service.submit_to("/v1/jobs?key=up", None, "up.wtns").unwrap()["id"].as_str().unwrap().to_string();
    assert_eq!(service.ended(&id)["state"], "done");
    // On the worker's device until it is taken off.
    let on = || client.get("/v1/keys/up").unwrap()["on"].as_array().unwrap().len();
    wait_for("the key on the device", || on() == 1);
    service.post("/v1/keys/up/evict").unwrap();
    wait_for("the key off the device", || on() == 0);
    // Not while a job needs it.
    service.fault("pause,key,1");
    let id = service.submit_to("/v1/jobs?key=up", None, "up.wtns").unwrap()["id"].as_str().unwrap().to_string();
    wait_for("the worker", || service.at("paused").exists());
    let remove = || client.call(Method::DELETE, "/v1/keys/up", &[], Content::Empty);
    assert_eq!(refused(remove()), (409, "key_in_use".into()));
    std::fs::write(service.at("go"), "").unwrap();
    assert_eq!(service.ended(&id)["state"], "done");
    remove().unwrap();
    assert_eq!((files(), refused(remove())), (0, (404, "no_key".into())));
    assert_eq!(refused(service.post("/v1/keys/up/evict")), (404, "no_key".into()));
}

/// Keys are loaded ahead: at the start, on demand and again after the end of a worker; what cannot be loaded is told.
#[test]
fn keys_are_loaded_before_a_job_needs_them() {
    let service = Service::start("workers = ['cpu', 'sim:2']\nkey_memory_mib = 1\npreload = ['small']");
    let client = service.client();
    let on = |name: &str| client.get(&format!("/v1/keys/{name}")).unwrap()["on"].as_array().unwrap().len();
    wait_for("what is loaded at the start", || on("small") == 2);
    let put = |name: &str| {
        let file = service.at(&format!("{name}.zkey"));
        client.call(Method::PUT, &format!("/v1/keys/{name}"), &[], Content::File(&file)).unwrap();
    };
    for (name, squarings) in [("one", 100), ("huge", 5000)] {
        make_key(service.folder.path(), name, squarings);
        put(name);
    }
    let jobs = client.get("/v1/jobs").unwrap();
    assert_eq!((on("one"), jobs["jobs"].as_array().unwrap().len()), (0, 0));
    let key = service.post("/v1/keys/one/preload?wait=60").unwrap();
    assert_eq!(key["on"], serde_json::json!(["0:cpu", "1:sim:2"]));
    assert_eq!(service.post("/v1/keys/one/preload?wait=60").unwrap(), key);
    // More than the budget, which is told with the numbers; no worker ends of that.
    let (status, code) = refused(service.post("/v1/keys/huge/preload?wait=60"));
    assert_eq!((status, code.as_str()), (507, "out_of_memory"));
    // A file that is another one now, and none.
    make_key(service.folder.path(), "changed", 50);
    put("changed");
    let hash = client.get("/v1/keys/changed").unwrap()["hash"].as_str().unwrap().to_string();
    let stored = service.at(&format!("data/keys/{hash}.zkey"));
    std::fs::copy(service.at("one.zkey"), &stored).unwrap();
    assert_eq!(refused(service.post("/v1/keys/changed/preload?wait=60")), (409, "key_lost".into()));
    assert_eq!(refused(service.post("/v1/keys/none/preload")), (404, "no_key".into()));
    assert_eq!(refused(service.post("/v1/keys/one/preload?wait=x")).1, "bad_request");
    let restarts = |worker: usize| client.get("/v1/workers").unwrap()["workers"][worker]["restarts"].as_u64().unwrap();
    assert_eq!([restarts(0), restarts(1)], [0, 0]);
    // Without waiting; and while it is loaded, a worker ends: who waits hears of that, and it is loaded when the worker is back.
    service.post("/v1/keys/one/evict").unwrap();
    wait_for("the key off the devices", || on("one") == 0);
    service.fault("pause,preload,0");
    service.post("/v1/keys/one/preload").unwrap();
    wait_for("the workers", || service.at("paused").exists());
    assert_eq!(on("one"), 0);
    std::fs::write(service.at("go"), "").unwrap();
    wait_for("the key", || on("one") == 2);
    std::fs::remove_file(service.at("go")).unwrap();
    std::fs::remove_file(service.at("paused")).unwrap();
    service.fault("kill,preload,0");
    let (status, code) = refused(service.post("/v1/keys/small/preload?wait=60"));
    assert_eq!((status, code.as_str()), (503, "worker_died"));
    std::fs::remove_file(service.at("fault")).unwrap();
    wait_for("what is loaded at the start, again", || on("small") == 2 && restarts(0) + restarts(1) > 0);
    let job = service.submit_to("/v1/jobs?key=one", None, "one.wtns").unwrap()["id"].as_str().unwrap().to_string();
    assert_eq!(service.ended(&job)["state"], "done");
}

/// A job for whose key there is no room while another is loaded ahead waits for that, and does not fail.
#[test]
fn a_job_waits_for_a_key_that_is_loaded_ahead() {
    let service = Service::start("workers = ['cpu']\nkey_proofs = 2");
    make_key(service.folder.path(), "other", 100);
    service.client().call(Method::PUT, "/v1/keys/other", &[], Content::File(&service.at("other.zkey"))).unwrap();
    for _ in 0..20 {
        service.post("/v1/keys/other/preload").unwrap();
        let job = service.submit(None).unwrap()["id"].as_str().unwrap().to_string();
        let ended = service.ended(&job);
        assert_eq!(ended["attempts"].as_array().unwrap().len(), 1, "{ended}");
    }
    // Ahead of a key that no job needs, the other one goes.
    service.post("/v1/keys/other/preload?wait=60").unwrap();
    let keys = service.client().get("/v1/workers").unwrap()["workers"][0]["keys"].clone();
    assert_eq!(keys.as_array().unwrap().len(), 1);
    // No key is known of that was not registered.
    let why = Service::refuses_node("workers = ['cpu']\npreload = ['none']");
    assert!(why.contains("preload: no key is called 'none'"), "{why}");
}

/// A key that does not come in the time of an attempt ends its worker, as a proof would.
#[test]
fn a_load_that_hangs_ends_its_worker() {
    let service = Service::start("workers = ['cpu']\nproof_seconds = 2");
    service.fault("hang,preload,0");
    assert_eq!(refused(service.post("/v1/keys/small/preload?wait=60")), (503, "worker_died".into()));
    let worker = || service.client().get("/v1/workers").unwrap()["workers"][0].clone();
    wait_for("the end of the worker", || worker()["restarts"] == 1);
    let log = std::fs::read_to_string(service.at("log")).unwrap();
    assert!(log.contains("loading a key took longer than proof_seconds, 2 s"), "{log}");
    std::fs::remove_file(service.at("fault")).unwrap();
    assert_eq!(service.post("/v1/keys/small/preload?wait=60").unwrap()["on"], serde_json::json!(["0:cpu"]));
}

/// A device that fails while a key is loaded ahead ends its worker: what is broken in a process goes with it.
#[test]
fn a_device_that_fails_while_a_key_is_loaded_ends_its_worker() {
    let service = Service::start("workers = ['strict']");
    let count = |name: &str| service.metric(&format!("tandem_{name}_total{{worker=\"0:strict\"}}"));
    let load = || service.post("/v1/keys/small/preload?wait=60");
    wait_for("the worker", || service.client().get("/ready").is_ok());
    std::fs::write(service.at("device"), "broken").unwrap();
    assert_eq!(refused(load()), (503, "device".into()));
    wait_for("the end of the worker", || count("worker_restarts") == 1.0);
    assert_eq!(count("device_failures"), 1.0);
    std::fs::remove_file(service.at("device")).unwrap();
    let log = std::fs::read_to_string(service.at("log")).unwrap();
    let refusal = log.lines().find(|line| line.contains("event=key_refused")).unwrap();
    assert!(refusal.contains("cudaErrorIllegalAddress") && log.contains("event=worker_ended"), "{log}");
    // The next process has a device that works.
    assert_eq!(load().unwrap()["on"], serde_json::json!(["0:strict"]));
    let job = service.submit(None).unwrap()["id"].as_str().unwrap().to_string();
    assert_eq!(service.ended(&job)["state"], "done");
    service.verify(&service.verifier(), &job);
    assert_eq!((count("worker_restarts"), count("device_failures")), (1.0, 1.0));
}
