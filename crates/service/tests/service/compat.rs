//! The interfaces of rapidsnark's proverServer and iden3's prover-server, called as their clients call them; and the drills of connections.

use crate::support::{self, wait_for, Service};
use serde_json::{json, Value};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tandem_service::client::{Content, Method};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn multiplier(settings: &str) -> Service {
    let service = Service::start(&format!("workers = ['cpu']\n{settings}"));
    let r1cs = std::fs::read(root().join("crates/app/tests/data/multiplier.r1cs")).unwrap();
    support::make_key_of(service.folder.path(), "product", &r1cs);
    let wasm = root().join("crates/witness/tests/data/multiplier.wasm");
    for (path, file) in [("product", service.at("product.zkey")), ("product/program", wasm)] {
        service.client().call(Method::PUT, &format!("/v1/keys/{path}"), &[], Content::File(&file)).unwrap();
    }
    service
}

/// A request with a body, as a plain client of HTTP sends it: the status, and the reply.
fn call(service: &Service, line: &str, body: &str) -> (u16, String) {
    let head = "Host: 127.0.0.1\r\nContent-Type: application/json\r\nConnection: close";
    let request = format!("{line} HTTP/1.1\r\n{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let reply = service.raw(request.as_bytes(), Duration::from_secs(30));
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), body.into())
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn other_interfaces_are_there_where_the_settings_say_so() {
    let service = multiplier("");
    for line in ["GET /status", "POST /input/product", "POST /cancel", "POST /start", "GET /api/v1/status"] {
        assert_eq!(call(&service, line, "").0, 404, "{line}");
    }
    assert_eq!(call(&service, "POST /api/v1/proof/generate", "{}").0, 404);
}

#[test]
fn callers_of_rapidsnark_are_served() {
    let service = multiplier("interfaces = ['rapidsnark']");
    let status = || value(&call(&service, "GET /status", "").1);
    assert_eq!(status(), json!({"status": "ready"}));
    assert_eq!(call(&service, "POST /start", ""), (200, String::new()));
    let ended = || {
        wait_for("the end", || status()["status"] != "busy");
        status()
    };
    assert_eq!(call(&service, "POST /input/product", "{\"a\": \"3\", \"b\": \"11\"}"), (200, String::new()));
    let made = ended();
    assert_eq!(made["status"], "success", "{made}");
    // Texts of JSON, as rapidsnark has them.
    assert_eq!(made["pubData"], "[\"33\"]");
    assert_eq!(value(made["proof"].as_str().unwrap())["protocol"], "groth16");
    assert_eq!(call(&service, "POST /input/product", "{\"a\": \"3\"}").0, 200);
    let failed = ended();
    assert!(failed["status"] == "failed" && failed["error"].as_str().unwrap().contains("missing"), "{failed}");
    // A new input aborts the one before; cancel aborts this.
    std::fs::write(service.at("slow-calculator"), "").unwrap();
    for _ in 0..2 {
        assert_eq!(call(&service, "POST /input/product", "{\"a\": \"3\", \"b\": \"11\"}").0, 200);
    }
    assert_eq!(status()["status"], "busy");
    assert_eq!(call(&service, "POST /cancel", ""), (200, String::new()));
    assert_eq!(status(), json!({"status": "aborted"}));
    let jobs = service.client().get("/v1/jobs?state=cancelled").unwrap();
    assert_eq!(jobs["jobs"].as_array().unwrap().len(), 2);
    assert_eq!(call(&service, "POST /input/none", "{}").0, 404);
}

#[test]
fn callers_of_prover_server_are_served() {
    let service = multiplier("interfaces = ['iden3']");
    assert_eq!(value(&call(&service, "GET /api/v1/status", "").1), json!({"status": "up and running"}));
    let generate = |body: &str| call(&service, "POST /api/v1/proof/generate", body);
    let (status, reply) = generate("{\"circuit_name\": \"product\", \"inputs\": {\"a\": \"3\", \"b\": \"11\"}}");
    assert_eq!(status, 200, "{reply}");
    let mut made = value(&reply);
    assert_eq!(made["pub_signals"], json!(["33"]));
    // What go-rapidsnark's types give back has these fields of the proof, and no others.
    let fields = ["pi_a", "pi_b", "pi_c", "protocol"];
    made["proof"].as_object_mut().unwrap().retain(|name, _| fields.contains(&name.as_str()));
    let verify = |zkp: &Value| {
        let body = json!({"circuit_name": "product", "zkp": zkp}).to_string();
        let (status, reply) = call(&service, "POST /api/v1/proof/verify", &body);
        assert_eq!(status, 200, "{reply}");
        value(&reply)["valid"] == true
    };
    assert!(verify(&made));
    let mut wrong = made.clone();
    wrong["pub_signals"] = json!(["34"]);
    assert!(!verify(&wrong));
    wrong["proof"]["pi_a"] = json!("none");
    assert!(!verify(&wrong));
    let error = |(status, reply): (u16, String)| {
        let reply = value(&reply);
        assert!(reply["code"] == 0 && !reply["error"].as_str().unwrap().is_empty(), "{reply}");
        (status, reply["details"].as_str().unwrap().to_string())
    };
    assert_eq!(error(generate("{\"circuit_name\": 5")), (400, "can't bind request".into()));
    assert_eq!(error(generate("{\"circuit_name\": \"x\", \"inputs\": {}}")), (400, "illegal circuitPath".into()));
    let failed = generate("{\"circuit_name\": \"product\", \"inputs\": {\"a\": \"3\"}}");
    assert_eq!(error(failed), (500, "can't generate identifier".into()));
    // A job whose caller goes is cancelled.
    std::fs::write(service.at("slow-calculator"), "").unwrap();
    let body = "{\"circuit_name\": \"product\", \"inputs\": {\"a\": \"3\", \"b\": \"11\"}}";
    let mut stream = TcpStream::connect(service.address()).unwrap();
    let head =
        format!("POST /api/v1/proof/generate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all((head + body).as_bytes()).unwrap();
    let jobs = |state: &str| service.client().get(&format!("/v1/jobs?state={state}")).unwrap()["jobs"].clone();
    wait_for("the job", || jobs("running").as_array().unwrap().len() == 1);
    drop(stream);
    wait_for("its end", || jobs("cancelled").as_array().unwrap().len() == 1);
}

/// A reader that takes nothing holds its connection no longer than stall_seconds: with one connection, another caller is served after it.
#[test]
fn a_reply_that_nobody_takes_ends_with_its_connection() {
    let service = Service::start("workers = ['cpu']\nconnections = 1\nstall_seconds = 1\nheader_seconds = 60");
    let mut stream = TcpStream::connect(service.address()).unwrap();
    // Each reply has 30 KiB; so many of them fill every buffer on the way.
    let request = "GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    while stream.write_all(request.repeat(100).as_bytes()).is_ok() {}
    let begun = Instant::now();
    assert!(service.client().get("/health").is_ok());
    assert!(begun.elapsed() < Duration::from_secs(20));
    drop(stream);
}

/// Callers that vanish, and one that sends a byte a second, are no more than connections that end.
#[test]
fn callers_that_vanish_or_dawdle_cost_nobody_else() {
    let service = Service::start("workers = ['cpu']\nconnections = 200\nstall_seconds = 2\nheader_seconds = 2");
    let line = "POST /v1/jobs?key=small HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 500\r\n\r\n";
    let vanished: Vec<_> = (0..100)
        .map(|number| {
            let mut stream = TcpStream::connect(service.address()).unwrap();
            stream.write_all(&line.as_bytes()[..line.len().min(number * 2)]).unwrap();
            stream.write_all(if number * 2 > line.len() { b"part" } else { b"" }).unwrap();
            stream
        })
        .collect();
    let mut slow = TcpStream::connect(service.address()).unwrap();
    slow.write_all(line.as_bytes()).unwrap();
    drop(vanished);
    let id = service.submit(None).unwrap()["id"].as_str().unwrap().to_string();
    assert_eq!(service.ended(&id)["state"], "done");
    let begun = Instant::now();
    slow.set_read_timeout(Some(Duration::from_millis(1000))).unwrap();
    let mut reply = Vec::new();
    let mut piece = [0; 512];
    while begun.elapsed() < Duration::from_secs(15) && slow.write_all(b"x").is_ok() {
        match slow.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => reply.extend_from_slice(&piece[..count]),
            Err(_) => {}
        }
    }
    assert!(String::from_utf8_lossy(&reply).starts_with("HTTP/1.1 408"), "{}", String::from_utf8_lossy(&reply));
    wait_for("no part of a witness stays", || service.witnesses().is_empty());
}

/// Requests that are damaged at random are refused or served: none is a defect, and the service goes on.
#[test]
fn damaged_requests_harm_nobody() {
    use rand::{Rng, SeedableRng};
    let service = multiplier("interfaces = ['rapidsnark', 'iden3']\nstall_seconds = 1\nheader_seconds = 1");
    let with = |line: &str, more: &str, body: &str| {
        format!("{line} HTTP/1.1\r\nHost: 127.0.0.1\r\n{more}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
    };
    let json = "Content-Type: application/json\r\n";
    let chunked = "POST /v1/jobs?key=small HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwtns\x02\r\n0\r\n\r\n";
    let seeds = [
        with("POST /v1/jobs?key=product&priority=-5&deadline_seconds=7", "Idempotency-Key: a\r\n", "wtns\x02\0\0\0"),
        with("POST /v1/jobs?key=product", json, "{\"a\": \"3\", \"b\": [\"11\"]}"),
        with("GET /v1/jobs?state=done&limit=10", "", ""),
        with("GET /v1/batches/0f1e2d3c4b5a6978?wait=0", "", ""),
        with("POST /v1/batches?key=product", "", &"a.json\0".repeat(200)),
        with("POST /v1/keys", json, "{\"name\": \"a\", \"path\": \"b\", \"program\": null}"),
        with("PUT /v1/keys/other", "", "zkey\x01\0\0\0\x0a\0\0\0"),
        with("PUT /v1/keys/small/program", "", "\0asm\x01\0\0\0"),
        with("GET /v1/trace?minutes=5", "Authorization: Bearer tandem_00_00\r\n", ""),
        with("POST /api/v1/proof/generate", json, "{\"circuit_name\": \"small\", \"inputs\": {\"a\": 1}}"),
        with(
            "POST /api/v1/proof/verify",
            json,
            "{\"circuit_name\": \"small\", \"zkp\": {\"proof\": {\"pi_a\": []}, \"pub_signals\": []}}",
        ),
        with("POST /input/small", json, "{}"),
        chunked.into(),
    ];
    let mut random = rand::rngs::StdRng::seed_from_u64(25);
    for _ in 0..1500 {
        let mut bytes = seeds[random.gen_range(0..seeds.len())].clone();
        for _ in 0..random.gen_range(0..6) {
            if bytes.is_empty() {
                break;
            }
            let at = random.gen_range(0..bytes.len());
            match random.gen_range(0..5) {
                0 => bytes[at] ^= 1 << random.gen_range(0..8),
                1 => bytes[at] = random.gen(),
                2 => drop(bytes.remove(at)),
                3 => bytes.insert(at, *b"\r\n \0%{}[]\"/?&=:,9\xff".get(random.gen_range(0..18)).unwrap()),
                _ => bytes.truncate(at + 1),
            }
        }
        let mut stream = TcpStream::connect(service.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut reply = Vec::new();
        let _ = stream.read_to_end(&mut reply);
        let reply = String::from_utf8_lossy(&reply);
        assert!(reply.is_empty() || reply.starts_with("HTTP/1."), "{reply}");
        assert!(!reply.contains("a defect of tandem"), "{:?}: {reply}", String::from_utf8_lossy(&bytes));
    }
    let id = service.submit(None).unwrap()["id"].as_str().unwrap().to_string();
    assert_eq!(service.ended(&id)["state"], "done");
    assert!(!std::fs::read_to_string(service.at("log")).unwrap().contains("panicked"));
}
