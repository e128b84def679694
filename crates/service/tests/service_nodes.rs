//! Several nodes on one PostgreSQL: killed, cut off, without their database. No accepted job is lost, none has two results.

#[path = "support/postgres.rs"]
mod postgres;
mod support;

use postgres::{shared, wait_long, Postgres, Proxy};
use std::time::Duration;
use support::{codes, refused, wait_for, Service};
use tandem_service::client::{CallError, Content, Method};
use tandem_service::store::{Cancelled, Finished, JobResult, KeyRow, NewJob, State, Store, StoreError};

#[test]
fn child() {
    support::play();
}

fn connect(server: &Postgres, node: &str, lease: Duration) -> Store {
    let tls = rustls::ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into());
    let tls = tls.with_safe_default_protocol_versions().unwrap();
    let tls = tls.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
    Store::connect(&server.url(), tls, node, lease).unwrap()
}

fn key() -> KeyRow {
    KeyRow {
        name: "k".into(),
        path: "k.zkey".into(),
        hash: "h".into(),
        bytes: 1,
        variables: 1,
        publics: 1,
        domain: 1,
        curve: "bn254".into(),
        is_own: true,
    }
}

fn job(id: &str, request: Option<&str>, digest: &str) -> NewJob {
    NewJob {
        id: id.into(),
        token: None,
        request: request.map(String::from),
        digest: digest.into(),
        key: "k".into(),
        witness: id.into(),
        witness_bytes: 1,
        priority: 0,
        deadline_ms: None,
    }
}

fn result() -> JobResult {
    let (proof, publics, device) = ("{}".into(), "[]".into(), "CPU".into());
    JobResult { proof, publics, seconds: 1.0, times: None, device, remark: None }
}

/// Leases pass, by the database's clock, unless they are prolonged; what is late is refused; a claim is one node's.
#[test]
fn leases_are_fenced_and_prolonged() {
    let server = Postgres::start();
    let lease = Duration::from_millis(400);
    let (a, b) = (connect(&server, "a", lease), connect(&server, "b", lease));
    assert!(a.add_key(&key(), 0).unwrap() && !b.add_key(&key(), 0).unwrap());
    for store in [&a, &b] {
        store.join("1", "{}", store.now()).unwrap();
    }
    assert_eq!(a.nodes().unwrap().iter().map(|node| node.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert!(a.submit(&job("j", Some("r"), "d"), a.now(), 1000, 10).unwrap().is_new);
    // A clock that is an hour ahead or behind, as that of a node may be, is not asked about leases.
    let first = a.claim("0", a.now(), 0, None).unwrap().unwrap();
    assert!(b.claim("0", b.now(), 0, None).unwrap().is_none());
    for _ in 0..4 {
        std::thread::sleep(lease / 2);
        assert_eq!(a.beat("{}").unwrap(), Some(vec![]));
        assert!(b.expire_leases().unwrap().is_empty());
    }
    std::thread::sleep(lease * 3 / 2);
    assert_eq!(b.expire_leases().unwrap(), [first.lease.clone()]);
    let second = b.claim("0", b.now(), 0, None).unwrap().unwrap();
    assert_eq!(second.lease.attempt, 2);
    assert_eq!(a.beat("{}").unwrap(), Some(vec![first.lease.clone()]));
    assert_eq!(a.finish(&first.lease, &result(), a.now()).unwrap(), Finished::Stale);
    // The right attempt of the wrong node.
    assert_eq!(a.finish(&second.lease, &result(), a.now()).unwrap(), Finished::Stale);
    assert_eq!(b.finish(&second.lease, &result(), b.now()).unwrap(), Finished::Done("j".into()));
    assert_eq!(b.finish(&second.lease, &result(), b.now()).unwrap(), Finished::Before("j".into()));
    assert_eq!(a.cancel("j", a.now()).unwrap(), Cancelled::Ended(State::Done));
    let told: Vec<_> = a.attempts("j").unwrap().into_iter().map(|of| (of.worker, of.code.unwrap())).collect();
    let expected = [("a/0", "lease_expired"), ("b/0", "done")].map(|(w, c)| (w.to_string(), c.to_string()));
    assert_eq!(told, expected);
    assert_eq!(a.result("j").unwrap(), Some(result()));
    // A start of the same name takes the place of the one before, and its jobs wait again at once.
    assert!(b.submit(&job("l", None, "d"), b.now(), 1000, 10).unwrap().is_new);
    b.claim("0", b.now(), 0, None).unwrap().unwrap();
    let again = connect(&server, "b", lease);
    assert_eq!(again.join("1", "{}", again.now()).unwrap(), 1);
    assert_eq!(b.beat("{}").unwrap(), None);
    again.claim("0", again.now(), 0, None).unwrap().unwrap();
    assert_eq!((again.leave().unwrap(), again.open_jobs().unwrap()), (1, [1, 0]));
}

/// The same id on two nodes at once is one job; with other content it is refused. Workers that ask at once get different jobs.
#[test]
fn nodes_that_write_at_once_agree() {
    let server = Postgres::start();
    let stores = [0, 1, 2].map(|node| connect(&server, &node.to_string(), Duration::from_secs(60)));
    stores[0].add_key(&key(), 0).unwrap();
    for round in 0..20 {
        let request = format!("r{round}");
        let submitted = std::thread::scope(|scope| {
            let one = |number: usize| {
                let (store, request) = (&stores[number], &request);
                let digest = if number == 2 { "other" } else { "same" };
                let submit = move || {
                    store.submit(&job(&format!("{round}-{number}"), Some(request), digest), store.now(), 1000, 1000)
                };
                scope.spawn(submit)
            };
            [0, 1, 2].map(one).map(|thread| thread.join().unwrap())
        });
        let ids: std::collections::HashSet<_> = submitted.iter().flatten().map(|of| of.id.clone()).collect();
        let new = submitted.iter().flatten().filter(|of| of.is_new).count();
        let refused = submitted.iter().filter(|of| matches!(of, Err(StoreError::OtherContent))).count();
        assert_eq!((ids.len(), new), (1, 1), "{submitted:?}");
        assert!(refused == 1 || refused == 2, "{submitted:?}");
    }
    let mut all: Vec<String> = std::thread::scope(|scope| {
        let take = |store: &'static str, at: &Store| {
            std::iter::from_fn(|| at.claim(store, at.now(), 0, None).unwrap()).map(|claim| claim.lease.job).collect()
        };
        let threads = stores.each_ref().map(|store| scope.spawn(move || -> Vec<String> { take("0", store) }));
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let taken = all.len();
    all.sort();
    all.dedup();
    assert_eq!((taken, all.len()), (20, 20));
}

/// Three nodes: one is killed and comes back, one is cut off from the database, which ends for a while itself.
#[test]
fn jobs_outlive_nodes_and_their_database() {
    let jobs: usize = std::env::var("TANDEM_DRILL_JOBS").map_or(60, |jobs| jobs.parse().unwrap());
    let (server, blobs) = (Postgres::start(), tempfile::tempdir().unwrap());
    let proxy = Proxy::start(server.port);
    let urls = [server.url(), server.url(), server.url_by(proxy.port)];
    let mut nodes: Vec<Service> =
        (0..3).map(|node| Service::start(&shared(&urls[node], &blobs.path().join("b"), &format!("n{node}")))).collect();
    wait_for("all nodes", || nodes[0].client().get("/v1/nodes").unwrap()["nodes"].as_array().unwrap().len() == 3);
    let send = |node: &Service, number: usize| {
        let (request, witness) = (format!("job-{number}"), node.at("small.wtns"));
        let headers = [("idempotency-key", request.as_str())];
        node.client().call(Method::POST, "/v1/jobs?key=small", &headers, Content::File(&witness))
    };
    let mut ids = std::collections::BTreeSet::new();
    for number in 0..jobs {
        if number == jobs / 4 {
            nodes[1].kill();
        }
        if number == jobs / 3 {
            proxy.cut(true);
        }
        if number == jobs / 2 {
            server.end();
        }
        if number == jobs / 2 + 2 {
            server.begin();
            nodes[1].restart();
        }
        if number == jobs * 3 / 4 {
            proxy.cut(false);
        }
        let is_down = (jobs / 2..jobs / 2 + 2).contains(&number);
        match send(&nodes[0], number) {
            Ok(sent) => drop(ids.insert(sent["id"].as_str().unwrap().to_string())),
            Err(CallError::Refused { status: 503, .. }) if is_down => {}
            Err(other) => panic!("{number}: {other:?}"),
        }
    }
    for number in jobs / 2..jobs / 2 + 2 {
        ids.insert(send(&nodes[1], number).unwrap()["id"].as_str().unwrap().to_string());
    }
    assert_eq!(ids.len(), jobs);
    // The same job, by whichever node it is sent again.
    assert!(ids.contains(send(&nodes[2], 0).unwrap()["id"].as_str().unwrap()));
    let store = connect(&server, "watches", Duration::from_secs(60));
    wait_long("all jobs", || store.open_jobs().unwrap() == [0, 0]);
    let verifier = nodes[0].verifier();
    let mut again = 0;
    for (number, id) in ids.iter().enumerate() {
        let job = nodes[number % 3].ended(id);
        let done = codes(&job).into_iter().filter(|code| *code == "done").count();
        assert!(job["state"] == "done" && done == 1, "{job}");
        again += codes(&job).len() - 1;
        nodes[0].verify(&verifier, id);
    }
    println!("{jobs} jobs, {jobs} proofs, {again} attempts more than jobs");
    for node in &mut nodes {
        node.stop();
    }
    assert!(std::fs::read_dir(blobs.path().join("b/witnesses")).unwrap().next().is_none());
    assert!(store.nodes().unwrap().is_empty());
}

/// A key is uploaded to one node, and another one proves with its own copy; a job of other content is refused by any.
#[test]
fn keys_and_ids_are_those_of_all_nodes() {
    let (server, blobs) = (Postgres::start(), tempfile::tempdir().unwrap());
    let node = |name: &str| Service::start(&shared(&server.url(), &blobs.path().join("b"), name));
    let mut first = node("first");
    let id = first.submit(Some("x")).unwrap()["id"].as_str().unwrap().to_string();
    assert_eq!(first.ended(&id)["state"], "done");
    first.stop();
    let second = node("second");
    assert_eq!(second.submit(Some("x")).unwrap()["id"].as_str(), Some(id.as_str()));
    second.verify(&second.verifier(), &id);
    support::make_key(second.folder.path(), "other", 12);
    std::fs::write(second.at("other.wtns"), b"no such witness").unwrap();
    let refusal = second.submit_to("/v1/jobs?key=small", Some("x"), "other.wtns");
    assert_eq!(refused(refusal), (409, "other_content".into()));
    let next = second.submit(None).unwrap()["id"].as_str().unwrap().to_string();
    assert_eq!(second.ended(&next)["state"], "done");
    let copies = std::fs::read_dir(second.at("data/key-cache")).unwrap().count();
    assert_eq!(copies, 1);
}
