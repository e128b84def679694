//! gRPC: the same jobs, rules and words as over HTTP, by a client of gRPC's own and by the generated one.

use crate::support::grpc::{first, head, messages, piece, python, refused, Caller, PREFACE};
use crate::support::{make_key, wait_for, Service};
use hyper::StatusCode;
use std::time::{Duration, Instant};
use tandem_engine::{CurveId, Proof, Publics};
use tandem_service::client::{Content, Method};
use tandem_service::proto::Content as Kind;
use tandem_service::proto::*;
use tandem_service::store::{NewToken, Role, Store};
use tonic::codegen::Service as _;
use tonic::{Code, Status};

const ON: &str = "workers = ['cpu']\nproof_seconds = 3600\nin_hand = 1\ninterfaces = ['grpc']";

/// A service whose worker does not get on, so that jobs stay where they are.
fn idle(more: &str) -> Service {
    let service = Service::start(&format!("{ON}\n{more}"));
    service.fault("pause,key,1");
    service
}

/// Everything once by gRPC's own client: health, reflection, a proof, keys, refusals. What it sees is held against HTTP.
#[test]
fn a_client_of_others_gets_a_proof() {
    let folder = tempfile::tempdir().unwrap();
    make_key(folder.path(), "inside", 10);
    let service = Service::start(&format!(
        "workers = ['cpu']\ninterfaces = ['grpc']\nkey_folder = '{}'",
        folder.path().display()
    ));
    wait_for("the worker", || service.client().get("/ready").is_ok());
    let path = |name: &str| service.at(name).display().to_string();
    make_key(service.folder.path(), "up", 9);
    let Some(seen) = python(&["all", &service.address(), &path("small.wtns"), &path("up.zkey")]) else { return };
    let seen: serde_json::Value = serde_json::from_str(&seen).unwrap();
    let id = seen["job"]["id"].as_str().unwrap();
    // The job: what HTTP says, by other names where protobuf has others.
    let job = service.client().get(&format!("/v1/jobs/{id}")).unwrap();
    let of = &seen["job"];
    assert_eq!(of["state"], "STATE_DONE");
    assert_eq!((&of["requestId"], &of["key"], &of["priority"]), (&job["request"], &job["key"], &job["priority"]));
    for name in ["createdMs", "endedMs", "deadlineMs"] {
        let ours = name.replace("Ms", "_ms");
        assert!(job[&ours].is_i64(), "{job}");
        assert_eq!(of[name], job[&ours].to_string(), "{name}");
    }
    let (theirs, ours) = (&of["attempts"][0], &job["attempts"][0]);
    assert_eq!(
        (&theirs["worker"], &theirs["code"], theirs["attempt"].as_i64()),
        (&ours["worker"], &ours["code"], Some(1))
    );
    assert_eq!(theirs["endedMs"], ours["ended_ms"].to_string());
    // The result: the same, and valid.
    let result = service.client().get(&format!("/v1/jobs/{id}/result")).unwrap();
    let json = |name: &str| serde_json::from_str::<serde_json::Value>(seen["result"][name].as_str().unwrap()).unwrap();
    assert_eq!((json("proofJson"), json("publicJson")), (result["proof"].clone(), result["public"].clone()));
    assert_eq!(
        (&seen["result"]["device"], &seen["result"]["times"]["proof"]),
        (&result["device"], &result["times"]["proof"])
    );
    for of in ["result", "of_batch"] {
        let text = |name: &str| seen[of][name].as_str().unwrap().as_bytes().to_vec();
        let proof = Proof::from_json(CurveId::Bn254, &text("proofJson")).unwrap();
        let publics = Publics::from_json(CurveId::Bn254, &text("publicJson")).unwrap();
        service.verifier().verify(&publics, &proof).unwrap();
    }
    // A key, of the two ways and with all its fields.
    let key = service.client().get("/v1/keys/small").unwrap();
    let of = &seen["small"];
    assert_eq!((&of["hash"], &of["curve"], &of["on"]), (&key["hash"], &key["curve"], &key["on"]));
    for (name, ours) in [("bytes", "bytes"), ("variables", "variables"), ("publics", "public"), ("domain", "domain")] {
        assert_eq!(of[name], key[ours].to_string(), "{name}");
    }
    // It was removed again.
    assert!(service.client().get("/v1/keys/up").is_err());
    assert_eq!(service.metric("tandem_grpc_requests_total{method=\"WaitJob\",code=\"Ok\"}"), 1.0);
}

fn add(service: &Service, role: Role, [jobs, rate]: [Option<u64>; 2]) -> String {
    let store = Store::open(&service.at("data/jobs.db"), true).unwrap();
    store.add_token(&NewToken { name: "a test".into(), role, jobs, rate }, 1).unwrap()
}

/// How each call is answered.
fn all_calls(of: &Caller) -> Vec<(&'static str, Code)> {
    let code = |outcome: Result<(), Status>| outcome.map_or_else(|status| status.code(), |()| Code::Ok);
    let name = || "none".to_string();
    let mut client = of.client.clone();
    macro_rules! call {
        ($method:ident, $message:expr) => {{
            let request = of.with($message);
            code(of.runtime.block_on(client.$method(request)).map(|_| ()))
        }};
    }
    let upload = || tokio_stream::iter(vec![UploadRequest { part: Some(upload_request::Part::Name(name())) }]);
    vec![
        ("GetVersion", call!(get_version, GetVersionRequest {})),
        ("GetJob", call!(get_job, GetJobRequest { id: name() })),
        ("WaitJob", call!(wait_job, WaitJobRequest { id: name() })),
        ("ListJobs", call!(list_jobs, ListJobsRequest::default())),
        ("GetResult", call!(get_result, GetResultRequest { id: name() })),
        ("SubmitBatch", call!(submit_batch, tokio_stream::iter(batch_of("none", "", &[])))),
        ("GetBatch", call!(get_batch, GetBatchRequest { id: name() })),
        ("WaitBatch", call!(wait_batch, WaitBatchRequest { id: name() })),
        ("GetBatchResults", call!(get_batch_results, GetBatchResultsRequest { id: name() })),
        ("CancelBatch", call!(cancel_batch, CancelBatchRequest { id: name() })),
        ("ListKeys", call!(list_keys, ListKeysRequest {})),
        ("GetKey", call!(get_key, GetKeyRequest { name: name() })),
        ("Submit", call!(submit, tokio_stream::iter(vec![first(head("none", ""))]))),
        ("CancelJob", call!(cancel_job, CancelJobRequest { id: name() })),
        ("RegisterKey", call!(register_key, RegisterKeyRequest { name: "..".into(), ..Default::default() })),
        ("UploadKey", call!(upload_key, upload())),
        ("UploadProgram", call!(upload_program, upload())),
        ("RemoveKey", call!(remove_key, RemoveKeyRequest { name: name() })),
        ("PreloadKey", call!(preload_key, PreloadKeyRequest { name: name(), wait_seconds: 0 })),
        ("EvictKey", call!(evict_key, EvictKeyRequest { name: name() })),
    ]
}

#[test]
fn each_call_takes_its_role_and_no_less() {
    let service = Service::start(&format!("{ON}\ntokens = true"));
    // All that the description has: a call without a role would be refused to nobody.
    let described = include_str!("../../proto/tandem/v1/prover.proto");
    let needs = |method: &str| {
        let before = described.split(&format!("  rpc {method}(")).next().unwrap();
        let said = before.rsplit("Role: ").next().unwrap();
        match (method, said.split('.').next().unwrap()) {
            ("GetVersion", _) => 0,
            (_, role) => 1 + Role::ALL.iter().position(|known| known.name() == role).unwrap(),
        }
    };
    let unknown = format!("tandem_{}_{}", "0".repeat(16), "0".repeat(64));
    for token in [None, Some("garbage"), Some(unknown.as_str())] {
        let calls = all_calls(&Caller::new(&service, token));
        assert_eq!(calls.len(), described.matches("  rpc ").count());
        for (method, code) in calls {
            assert_eq!(code == Code::Unauthenticated, needs(method) > 0, "{method}: {code:?}");
        }
    }
    for (has, role) in (1..).zip(Role::ALL) {
        let token = add(&service, role, [None, None]);
        for (method, code) in all_calls(&Caller::new(&service, Some(&token))) {
            assert_eq!(
                code == Code::PermissionDenied && method != "RegisterKey",
                has < needs(method) && method != "RegisterKey",
                "{method} as {}: {code:?}",
                role.name()
            );
            assert_ne!(code, Code::Unauthenticated, "{method}");
        }
        // By path, nobody may here: the word says why.
        let caller = Caller::new(&service, Some(&token));
        let register =
            caller.with(RegisterKeyRequest { name: "k".into(), path: "k".into(), program_path: String::new() });
        let word = refused(caller.runtime.block_on(caller.client.clone().register_key(register))).1;
        assert_eq!(word, if role == Role::Admin { "path_not_allowed" } else { "role" });
    }
}

#[test]
fn a_job_is_there_for_its_token_alone() {
    let service = idle("tokens = true");
    let callers = [Role::Submit, Role::Submit, Role::Admin]
        .map(|role| Caller::new(&service, Some(&add(&service, role, [None, None]))));
    let [own, other, admin] = &callers;
    let id = own.submit(&service, "a").unwrap().job.unwrap().id;
    // Another may use the same id for a job of its own.
    let others = other.submit(&service, "a").unwrap();
    assert!(others.is_new && others.job.unwrap().id != id);
    macro_rules! call {
        ($of:expr, $method:ident, $message:ident) => {{
            let request = $of.with($message { id: id.clone() });
            $of.runtime.block_on($of.client.clone().$method(request)).map(|_| ())
        }};
    }
    let none = || (Code::NotFound, "no_job".to_string());
    assert_eq!(refused(call!(other, get_job, GetJobRequest)), none());
    assert_eq!(refused(call!(other, wait_job, WaitJobRequest)), none());
    assert_eq!(refused(call!(other, get_result, GetResultRequest)), none());
    assert_eq!(refused(call!(other, cancel_job, CancelJobRequest)), none());
    let listed = |of: &Caller| {
        let request = of.with(ListJobsRequest::default());
        of.runtime.block_on(of.client.clone().list_jobs(request)).unwrap().into_inner().jobs.len()
    };
    assert_eq!([own, other, admin].map(listed), [1, 1, 2]);
    assert!(call!(own, get_job, GetJobRequest).is_ok() && call!(admin, get_job, GetJobRequest).is_ok());
    assert!(call!(admin, cancel_job, CancelJobRequest).is_ok());
}

#[test]
fn quotas_and_rates_are_those_of_the_token() {
    let service = idle("tokens = true");
    let quota = Caller::new(&service, Some(&add(&service, Role::Submit, [Some(1), None])));
    quota.submit(&service, "a").unwrap();
    assert!(!quota.submit(&service, "a").unwrap().is_new);
    assert_eq!(refused(quota.submit(&service, "b")), (Code::ResourceExhausted, "token_jobs".into()));
    let rate = Caller::new(&service, Some(&add(&service, Role::Submit, [None, Some(2)])));
    rate.submit(&service, "a").unwrap();
    rate.submit(&service, "b").unwrap();
    let refusal = rate.submit(&service, "c").unwrap_err();
    let again: u64 = refusal.metadata().get("retry-after").unwrap().to_str().unwrap().parse().unwrap();
    assert!((20..=31).contains(&again), "{again}");
    assert_eq!(refused::<()>(Err(refusal)), (Code::ResourceExhausted, "token_rate".into()));
}

#[test]
fn the_same_id_is_the_same_job() {
    let service = idle("");
    make_key(service.folder.path(), "other", 11);
    let caller = Caller::new(&service, None);
    let first = caller.submit(&service, "a").unwrap();
    assert!(first.is_new && !caller.submit(&service, "a").unwrap().is_new);
    // Over HTTP it is the same, too.
    assert_eq!(service.submit(Some("a")).unwrap()["id"], first.job.unwrap().id);
    let other = std::fs::read(service.at("other.wtns")).unwrap();
    let outcome = caller.send(messages(head("small", "a"), &other, 1000));
    assert_eq!(refused(outcome), (Code::AlreadyExists, "other_content".into()));
    assert_eq!(service.witnesses().len(), 1);
}

#[test]
fn jobs_are_cancelled_while_they_wait_and_while_they_run() {
    let service = idle("");
    let caller = Caller::new(&service, None);
    let submit = |id: &str| caller.submit(&service, id).unwrap().job.unwrap().id;
    let [running, waiting] = ["a", "b"].map(submit);
    wait_for("the worker", || service.at("paused").exists());
    let get = |id: &str| {
        let request = caller.with(GetJobRequest { id: id.into() });
        caller.runtime.block_on(caller.client.clone().get_job(request)).unwrap().into_inner()
    };
    assert_eq!((get(&running).state(), get(&waiting).state()), (State::Running, State::Pending));
    wait_for("its stage", || get(&running).stage == "key");
    let cancel = |id: &str| {
        let request = caller.with(CancelJobRequest { id: id.into() });
        caller.runtime.block_on(caller.client.clone().cancel_job(request)).map(tonic::Response::into_inner)
    };
    // One that waits for it hears of it, with all that comes before.
    let mut waits = caller.client.clone();
    let request = caller.with(WaitJobRequest { id: running.clone() });
    let mut stream = caller.runtime.block_on(waits.wait_job(request)).unwrap().into_inner();
    assert_eq!(caller.runtime.block_on(stream.message()).unwrap().unwrap().state(), State::Running);
    for id in [&waiting, &running] {
        assert_eq!(cancel(id).unwrap().state(), State::Cancelled);
        // Once more is no error.
        assert_eq!(cancel(id).unwrap().state(), State::Cancelled);
    }
    let begun = Instant::now();
    let mut last = State::Running;
    while let Some(job) = caller.runtime.block_on(stream.message()).unwrap() {
        last = job.state();
    }
    assert_eq!(last, State::Cancelled);
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    let request = caller.with(GetResultRequest { id: running });
    let outcome = caller.runtime.block_on(caller.client.clone().get_result(request));
    assert_eq!(refused(outcome), (Code::FailedPrecondition, "no_result".into()));
    wait_for("the witnesses to be removed", || service.witnesses().is_empty());
    // What has ended another way cannot be.
    std::fs::write(service.at("go"), "").unwrap();
    let id = submit("c");
    assert_eq!(service.ended(&id)["state"], "done");
    assert_eq!(refused(cancel(&id)), (Code::FailedPrecondition, "already_ended".into()));
}

/// A service that is told to stop takes no more, says so to those who wait, and finishes what runs.
#[test]
fn a_service_that_drains_says_so() {
    let mut service = idle("");
    let caller = Caller::new(&service, None);
    let id = caller.submit(&service, "a").unwrap().job.unwrap().id;
    wait_for("the worker", || service.at("paused").exists());
    let request = caller.with(WaitJobRequest { id: id.clone() });
    let mut stream = caller.runtime.block_on(caller.client.clone().wait_job(request)).unwrap().into_inner();
    caller.runtime.block_on(stream.message()).unwrap().unwrap();
    std::fs::write(service.at("stop"), "").unwrap();
    // The stream ends, and the job has not.
    let mut last = State::Running;
    while let Some(job) = caller.runtime.block_on(stream.message()).unwrap() {
        last = job.state();
    }
    assert_eq!(last, State::Running);
    let refusal = caller.submit(&service, "b").unwrap_err();
    assert!(refusal.metadata().contains_key("retry-after"));
    assert_eq!(refused::<()>(Err(refusal)), (Code::Unavailable, "draining".into()));
    wait_for("health to say so", || {
        python(&["health", &service.address()]).as_deref().unwrap_or("NOT_SERVING\n") == "NOT_SERVING\n"
    });
    std::fs::write(service.at("go"), "").unwrap();
    service.stop();
    service.restart();
    assert_eq!(service.ended(&id)["state"], "done");
}

/// What is no submission is refused in words, and leaves nothing.
#[test]
fn what_is_wrong_with_a_stream_is_said() {
    let service = idle("max_key_mib = 1");
    let caller = Caller::new(&service, None);
    let witness = std::fs::read(service.at("small.wtns")).unwrap();
    let with = |change: &dyn Fn(&mut SubmitHead)| {
        let mut head = head("small", "");
        change(&mut head);
        messages(head, &witness, 200)
    };
    let bad = |messages: Vec<SubmitRequest>, part: &str, word: &str| {
        let refusal = caller.send(messages).unwrap_err();
        assert!(refusal.message().contains(part), "{refusal:?}");
        assert_eq!(refused::<()>(Err(refusal)), (Code::InvalidArgument, word.into()));
    };
    bad(vec![], "the first message", "bad_request");
    bad(vec![piece(b"x")], "the first message", "bad_request");
    bad(vec![SubmitRequest { part: None }], "the first message", "bad_request");
    bad(vec![first(head("small", ""))], "the witness is missing", "bad_request");
    bad(vec![first(head("small", "")), first(head("small", ""))], "after the first", "bad_request");
    bad(vec![first(head("small", "")), SubmitRequest { part: None }], "after the first", "bad_request");
    bad(with(&|head| head.key.clear()), "which key", "bad_request");
    bad(with(&|head| head.priority = 101), "-100 to 100", "bad_request");
    bad(with(&|head| head.deadline_seconds = 366 * 24 * 3600 + 1), "deadline_seconds", "bad_request");
    bad(with(&|head| head.request_id = "a b".into()), "200 letters", "bad_request");
    bad(with(&|head| head.request_id = "x".repeat(201)), "200 letters", "bad_request");
    bad(with(&|head| head.content = 3), "content=3", "bad_request");
    // More than the circuit can have, in one message and in many, and a message that is too large of itself.
    bad(messages(head("small", ""), &vec![0; 1 << 19], 1 << 19), "at most", "too_large");
    bad(messages(head("small", ""), &vec![0; 1 << 19], 100), "at most", "too_large");
    bad(messages(head("small", ""), &vec![0; (1 << 20) + 1], 2 << 20), "too large", "too_large");
    let outcome = caller.send(with(&|head| head.key = "none".into()));
    assert_eq!(refused(outcome), (Code::NotFound, "no_key".into()));
    let outcome = caller.send(with(&|head| head.content = tandem_service::proto::Content::Inputs.into()));
    assert_eq!(refused(outcome), (Code::FailedPrecondition, "no_program".into()));
    // A key: none by its header, and of more bytes than a key may have.
    let upload = |name: &str, content: &[u8]| {
        let parts = std::iter::once(upload_request::Part::Name(name.into()));
        let parts = parts.chain(content.chunks(1000).map(|piece| upload_request::Part::Piece(piece.to_vec().into())));
        let messages: Vec<_> = parts.map(|part| UploadRequest { part: Some(part) }).collect();
        caller.runtime.block_on(caller.client.clone().upload_key(tokio_stream::iter(messages)))
    };
    assert_eq!(refused(upload("k", b"no key")), (Code::InvalidArgument, "bad_key".into()));
    assert_eq!(refused(upload("k", &vec![0; (1 << 20) + 1])), (Code::InvalidArgument, "too_large".into()));
    assert_eq!(refused(upload("../k", b"zkey")), (Code::InvalidArgument, "bad_request".into()));
    let list = |request: ListJobsRequest| caller.runtime.block_on(caller.client.clone().list_jobs(request));
    assert_eq!(refused(list(ListJobsRequest { limit: 1001, state: 0 })).0, Code::InvalidArgument);
    assert_eq!(refused(list(ListJobsRequest { limit: 0, state: 6 })).0, Code::InvalidArgument);
    wait_for("what was begun to be removed", || service.witnesses().is_empty());
    assert_eq!(std::fs::read_dir(service.at("data/keys")).unwrap().count(), 0);
    // The connection is as good as before.
    assert!(caller.submit(&service, "a").unwrap().is_new);
}

#[test]
fn a_list_is_of_a_state() {
    let service = idle("");
    let caller = Caller::new(&service, None);
    for id in ["a", "b", "c"] {
        caller.submit(&service, id).unwrap();
    }
    wait_for("the worker", || service.at("paused").exists());
    let list = |state: State, limit: u32| {
        let request = ListJobsRequest { state: state.into(), limit };
        let jobs = caller.runtime.block_on(caller.client.clone().list_jobs(request)).unwrap().into_inner().jobs;
        jobs.into_iter().map(|job| job.request_id).collect::<Vec<_>>()
    };
    assert_eq!(list(State::Unspecified, 0).len(), 3);
    assert_eq!((list(State::Running, 0), list(State::Unspecified, 1)), (vec!["a".into()], vec!["c".to_string()]));
    assert_eq!((list(State::Pending, 9).len(), list(State::Done, 0).len()), (2, 0));
}

/// HTTP's addresses answer over HTTP/2 by the same rules, and over HTTP/1 as ever.
#[test]
fn http_answers_over_both() {
    let service = idle("");
    let caller = Caller::new(&service, None);
    let get = |path: &str, host: &str, origin: Option<&str>| {
        let mut request = hyper::Request::get(format!("http://{host}{path}"));
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        let request = request.body(tonic::body::Body::empty()).unwrap();
        let mut channel = caller.channel.clone();
        caller.runtime.block_on(async move { channel.call(request).await.unwrap().status() })
    };
    let status = get("/health", "127.0.0.1", None);
    assert_eq!(status, StatusCode::OK);
    assert_eq!(get("/v1/nothing", "127.0.0.1", None), StatusCode::NOT_FOUND);
    assert_eq!(get("/health", "example.org", None), StatusCode::FORBIDDEN);
    assert_eq!(get("/health", "127.0.0.1", Some("http://example.org")), StatusCode::FORBIDDEN);
    let uploaded =
        service.client().call(Method::POST, "/v1/jobs?key=small", &[], Content::File(&service.at("small.wtns")));
    assert!(uploaded.unwrap()["id"].is_string());
    assert!(service
        .raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", Duration::from_secs(5))
        .contains("200 OK"));
}

/// A page of another site, by itself or by a name that was made to point here, may call as little as over HTTP.
#[test]
fn pages_of_other_sites_may_not_call() {
    let service = idle("");
    let caller = Caller::new(&service, None);
    let mut request = caller.with(ListKeysRequest {});
    request.metadata_mut().insert("origin", "http://example.org".parse().unwrap());
    let outcome = caller.runtime.block_on(caller.client.clone().list_keys(request));
    assert_eq!(refused(outcome), (Code::PermissionDenied, "forbidden".into()));
    let origin = hyper::Uri::from_static("http://example.org");
    let mut named = prover_client::ProverClient::with_origin(caller.channel.clone(), origin);
    let outcome = caller.runtime.block_on(named.list_keys(caller.with(ListKeysRequest {})));
    assert_eq!(refused(outcome), (Code::PermissionDenied, "forbidden".into()));
}

#[test]
fn it_is_off_unless_it_is_asked_for() {
    let service = Service::start("workers = ['cpu']");
    let reply = service.raw(PREFACE, Duration::from_secs(5));
    assert!(reply.is_empty() || reply.starts_with("HTTP/1.1 4") || reply.starts_with("HTTP/1.1 505"), "{reply}");
}

/// The messages of a batch.
fn batch_of(key: &str, id: &str, files: &[(&str, Kind, &[u8])]) -> Vec<SubmitBatchRequest> {
    use submit_batch_request::Part;
    let head = BatchHead { key: key.into(), request_id: id.into(), ..BatchHead::default() };
    let file = |(name, content, bytes): &(&str, Kind, &[u8])| {
        let file = BatchFile { name: name.to_string(), content: (*content).into() };
        let pieces: Vec<Part> = bytes.chunks(77).map(|piece| Part::Piece(piece.to_vec().into())).collect();
        std::iter::once(Part::File(file)).chain(pieces).collect::<Vec<_>>()
    };
    let parts = std::iter::once(Part::Head(head)).chain(files.iter().flat_map(file));
    parts.map(|part| SubmitBatchRequest { part: Some(part) }).collect()
}

/// A batch is taken as a whole or not at all, and nothing of one that is not stays.
#[test]
fn batches_are_whole_or_leave_nothing() {
    let service = idle("");
    let caller = Caller::new(&service, None);
    let submit = |messages: Vec<SubmitBatchRequest>| {
        let request = caller.with(tokio_stream::iter(messages));
        caller.runtime.block_on(caller.client.clone().submit_batch(request)).map(tonic::Response::into_inner)
    };
    let witness = std::fs::read(service.at("small.wtns")).unwrap();
    let good = ("a", Kind::Witness, &witness[..]);
    let long = vec![0; 100_000];
    let many = vec![("x", Kind::Witness, &witness[..40]); 1001];
    let no_file = SubmitBatchRequest { part: batch_of("small", "", &[good])[2].part.clone() };
    let unknown = {
        let mut sent = batch_of("small", "", &[good, good]);
        let Some(submit_batch_request::Part::File(file)) = &mut sent[1].part else { panic!() };
        file.content = 7;
        sent
    };
    let twice = [batch_of("small", "", &[good]), batch_of("small", "", &[good])].concat();
    for (sent, code, word) in [
        (batch_of("none", "", &[good]), Code::NotFound, "no_key"),
        (batch_of("", "", &[good]), Code::InvalidArgument, "bad_request"),
        (batch_of("small", "a b", &[good]), Code::InvalidArgument, "bad_request"),
        (batch_of("small", "", &[]), Code::InvalidArgument, "bad_request"),
        (batch_of("small", "", &[good, ("b", Kind::Witness, &[])]), Code::InvalidArgument, "too_large"),
        (batch_of("small", "", &[good, ("b", Kind::Witness, &long)]), Code::InvalidArgument, "too_large"),
        (batch_of("small", "", &[good, ("b", Kind::Inputs, b"{}")]), Code::FailedPrecondition, "no_program"),
        (batch_of("small", "", &many), Code::InvalidArgument, "bad_request"),
        (vec![batch_of("small", "", &[good])[0].clone(), no_file], Code::InvalidArgument, "bad_request"),
        (unknown, Code::InvalidArgument, "bad_request"),
        (twice, Code::InvalidArgument, "bad_request"),
    ] {
        assert_eq!(refused(submit(sent)), (code, word.into()));
    }
    // One whose caller goes after whole files.
    let messages = batch_of("small", "", &[good, good]);
    let endless = tokio_stream::StreamExt::chain(tokio_stream::iter(messages), tokio_stream::pending());
    let mut client = caller.client.clone();
    let request = caller.with(endless);
    caller.runtime.block_on(async {
        let sending = client.submit_batch(request);
        assert!(tokio::time::timeout(Duration::from_millis(500), sending).await.is_err());
    });
    wait_for("nothing of it stays", || service.witnesses().is_empty());
    let jobs = service.client().get("/v1/jobs").unwrap();
    assert_eq!(jobs["jobs"].as_array().unwrap().len(), 0, "{jobs}");
    // A whole one has a blob for each job, and is cancelled as one; its stream ends with it.
    let batch = submit(batch_of("small", "whole", &[good, good, good])).unwrap().batch.unwrap();
    assert_eq!((batch.items.len(), service.witnesses().len()), (3, 3));
    let over = service.client().get(&format!("/v1/batches/{}", batch.id)).unwrap();
    assert_eq!(over["items"][2]["id"], batch.items[2].job.as_ref().unwrap().id);
    let request = caller.with(WaitBatchRequest { id: batch.id.clone() });
    let mut stream = caller.runtime.block_on(caller.client.clone().wait_batch(request)).unwrap().into_inner();
    assert!(!caller.runtime.block_on(stream.message()).unwrap().unwrap().is_ended);
    let cancel = caller.with(CancelBatchRequest { id: batch.id });
    let ended = caller.runtime.block_on(caller.client.clone().cancel_batch(cancel)).unwrap().into_inner();
    assert!(ended.is_ended && ended.counts.as_ref().unwrap().cancelled == 3, "{ended:?}");
    let mut last = None;
    while let Some(batch) = caller.runtime.block_on(stream.message()).unwrap() {
        last = Some(batch);
    }
    assert_eq!(last.unwrap(), ended);
    wait_for("the witnesses to be removed", || service.witnesses().is_empty());
}
