//! Traces of jobs, as a collector gets them; and collectors that are away, slow or broken, which no job notices.

use crate::support::grpc::Caller;
use crate::support::{grpc, wait_for, Service};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tandem_service::client::{Content, Method};

/// Heads and bodies.
type Posts = Mutex<Vec<(String, Vec<u8>)>>;

/// A collector that keeps what is posted, and answers as it is told; with status 0 it does not answer.
struct Collector {
    address: String,
    posted: Arc<Posts>,
    status: Arc<AtomicU16>,
}

impl Collector {
    fn start() -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (posted, status) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicU16::new(200)));
        let (kept, answer) = (posted.clone(), status.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (kept, answer) = (kept.clone(), answer.clone());
                std::thread::spawn(move || serve(stream, &kept, &answer));
            }
        });
        Collector { address, posted, status }
    }

    fn settings(&self) -> String {
        format!("workers = ['cpu']\notlp = 'http://{}/base'\ninterfaces = ['grpc']", self.address)
    }

    fn posts(&self) -> usize {
        self.posted.lock().unwrap().len()
    }

    /// All spans so far, as OpenTelemetry's own package reads them.
    fn spans(&self) -> Option<Vec<Value>> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let python = root.join("../../.build/grpc-venv/bin/python");
        if !python.exists() {
            assert!(
                std::env::var_os("TANDEM_REQUIRE_GRPC").is_none(),
                "no messages of OTLP; run sh scripts/proto.sh --tools"
            );
            eprintln!("skipped: no messages of OTLP; sh scripts/proto.sh --tools installs them");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(python);
        command.arg(root.join("tests/service/support/otlp_decode.py"));
        for (number, (head, body)) in self.posted.lock().unwrap().iter().enumerate() {
            assert!(head.starts_with("POST /base/v1/traces HTTP/1.1\r\n"), "{head}");
            assert!(head.to_lowercase().contains("content-type: application/x-protobuf\r\n"), "{head}");
            let file = folder.path().join(number.to_string());
            std::fs::write(&file, body).unwrap();
            command.arg(file);
        }
        let done = command.output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        Some(serde_json::from_slice(&done.stdout).unwrap())
    }
}

fn serve(mut stream: TcpStream, kept: &Posts, answer: &AtomicU16) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read_exact(&mut byte).is_err() {
            return;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let length =
        head.to_lowercase().lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap();
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    match answer.load(Ordering::SeqCst) {
        0 => std::thread::sleep(Duration::from_secs(60)),
        status => {
            if status == 200 {
                kept.lock().unwrap().push((head, body));
            }
            let reply = format!("HTTP/1.1 {status} As told\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            let _ = stream.write_all(reply.as_bytes());
        }
    }
}

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const SPAN: &str = "b7ad6b7169203331";

fn submit(service: &Service, traceparent: &str) -> String {
    let content = Content::File(&service.folder.path().join("small.wtns"));
    let headers = [("traceparent", traceparent)];
    let job = service.client().call(Method::POST, "/v1/jobs?key=small&priority=3", &headers, content).unwrap();
    job["id"].as_str().unwrap().into()
}

fn told(service: &Service, outcome: &str) -> f64 {
    service.metric(&format!("tandem_traces_total{{outcome=\"{outcome}\"}}"))
}

/// The spans of a job, that of the job first.
fn of<'a>(spans: &'a [Value], trace: &str) -> Vec<&'a Value> {
    spans.iter().filter(|span| span["trace"] == trace).collect()
}

#[test]
fn a_job_is_a_trace_of_its_caller_s() {
    let collector = Collector::start();
    let service = Service::start(&collector.settings());
    // The first attempt dies.
    service.fault("kill,key,1");
    let id = submit(&service, &format!("00-{TRACE}-{SPAN}-01"));
    assert_eq!(service.ended(&id)["state"], "done");
    service.fault("");
    // Over gRPC, a job of no caller's, one whose caller keeps no trace, and one that is malformed.
    let caller = Caller::new(&service, None);
    let witness = std::fs::read(service.at("small.wtns")).unwrap();
    let mut request = caller.with(tokio_stream::iter(grpc::messages(grpc::head("small", "by-grpc"), &witness, 100)));
    let other = TRACE.replace('0', "1");
    request.metadata_mut().insert("traceparent", format!("00-{other}-{SPAN}-01").parse().unwrap());
    let by_grpc = caller.runtime.block_on(caller.client.clone().submit(request)).unwrap().into_inner().job.unwrap().id;
    let own = submit(&service, "no trace at all");
    let unsampled = submit(&service, &format!("00-{}-{SPAN}-00", TRACE.replace('0', "2")));
    for id in [&by_grpc, &own, &unsampled] {
        assert_eq!(service.ended(id)["state"], "done");
    }
    wait_for("the traces", || told(&service, "sent") == 3.0 && told(&service, "not_sampled") == 1.0);
    let Some(spans) = collector.spans() else { return };
    assert_eq!(spans.len(), of(&spans, TRACE).len() + of(&spans, &other).len() + of(&spans, &own).len());
    let job = service.client().get(&format!("/v1/jobs/{id}")).unwrap();
    let tree = of(&spans, TRACE);
    let names: Vec<_> = tree.iter().map(|span| span["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["job", "attempt", "attempt", "key", "read", "upload", "turn", "proof"]);
    let (root, attempts, stages) = (tree[0], &tree[1..3], &tree[3..]);
    assert_eq!(
        (&root["parent"], &root["kind"], &root["status"]),
        (&SPAN.into(), &"SPAN_KIND_SERVER".into(), &1.into())
    );
    assert_eq!((&root["resource"]["service.name"], &root["scope"]), (&"tandem".into(), &"tandem".into()));
    let attributes = &root["attributes"];
    assert_eq!(
        (&attributes["tandem.job"], &attributes["tandem.key"], &attributes["tandem.priority"]),
        (&id.clone().into(), &"small".into(), &3.into())
    );
    // Times and workers are those of the job.
    let ms = |value: &Value| (value.as_i64().unwrap() * 1_000_000) as u64;
    assert_eq!(
        (root["begun"].as_u64().unwrap(), root["ended"].as_u64().unwrap()),
        (ms(&job["created_ms"]), ms(&job["ended_ms"]))
    );
    for (span, attempt) in attempts.iter().zip(job["attempts"].as_array().unwrap()) {
        assert_eq!((&span["parent"], &span["attributes"]["tandem.worker"]), (&root["id"], &attempt["worker"]));
        assert_eq!(
            (span["begun"].as_u64().unwrap(), span["ended"].as_u64().unwrap()),
            (ms(&attempt["begun_ms"]), ms(&attempt["ended_ms"]))
        );
    }
    assert_eq!((&attempts[0]["status"], &attempts[0]["message"]), (&2.into(), &"worker_died".into()));
    for pair in stages.windows(2) {
        assert_eq!((&pair[0]["ended"], &pair[1]["parent"]), (&pair[1]["begun"], &attempts[1]["id"]));
    }
    assert!(stages[4]["ended"].as_u64() <= attempts[1]["ended"].as_u64());
    assert_eq!(of(&spans, &other)[0]["parent"], SPAN);
    assert_eq!(of(&spans, &own)[0]["parent"], "");
    // Nothing of the witness, the proof, or the caller's name for the job.
    let result = service.client().get(&format!("/v1/jobs/{by_grpc}/result")).unwrap();
    for (_, body) in collector.posted.lock().unwrap().iter() {
        let has = |part: &[u8]| body.windows(part.len()).any(|window| window == part);
        let values = witness[witness.len() - 32 * 13..].chunks(32);
        assert!(values.filter(|value| value[4..].iter().any(|byte| *byte != 0)).all(|value| !has(value)));
        assert!(!has(b"by-grpc") && !has(result["proof"]["pi_a"][0].as_str().unwrap().as_bytes()));
    }
}

/// No job waits for a collector: nobody listens, it answers with a failure, or not at all.
#[test]
fn a_collector_that_is_away_costs_traces_alone() {
    let collector = Collector::start();
    let service = Service::start(&collector.settings());
    let run = |jobs: usize| {
        let begun = Instant::now();
        for _ in 0..jobs {
            let id = submit(&service, "");
            assert_eq!(service.ended(&id)["state"], "done");
        }
        begun.elapsed()
    };
    run(2);
    wait_for("the first", || told(&service, "sent") == 2.0);
    // A refusal that does not pass is not repeated; one that may pass is.
    collector.status.store(400, Ordering::SeqCst);
    run(1);
    wait_for("the drop", || told(&service, "failed") == 1.0);
    collector.status.store(503, Ordering::SeqCst);
    run(1);
    std::thread::sleep(Duration::from_secs(1));
    collector.status.store(200, Ordering::SeqCst);
    wait_for("the repetition", || told(&service, "sent") == 3.0);
    // One that says nothing: jobs go on, and their names wait.
    collector.status.store(0, Ordering::SeqCst);
    assert!(run(5) < Duration::from_secs(5));
    std::thread::sleep(Duration::from_millis(700));
    assert!(run(5) < Duration::from_secs(5));
    collector.status.store(200, Ordering::SeqCst);
    wait_for("what waited", || told(&service, "sent") + told(&service, "failed") == 14.0);
    assert_eq!(service.client().get("/v1/jobs?state=done").unwrap()["jobs"].as_array().unwrap().len(), 14);
    let log = std::fs::read_to_string(service.at("log")).unwrap();
    assert!(log.contains("event=traces_dropped") && log.contains("status 400"), "{log}");
}

/// A service that ends tells what has just ended, and does not wait for a collector that says nothing.
#[test]
fn a_service_that_ends_tells_what_has_ended() {
    let collector = Collector::start();
    let mut service = Service::start(&collector.settings());
    let id = submit(&service, "");
    assert_eq!(service.ended(&id)["state"], "done");
    service.stop();
    assert_eq!(collector.posts(), 1);
    service.restart();
    collector.status.store(0, Ordering::SeqCst);
    let id = submit(&service, "");
    assert_eq!(service.ended(&id)["state"], "done");
    let begun = Instant::now();
    service.stop();
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
}
