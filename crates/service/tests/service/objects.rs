//! Nodes whose blobs are in a bucket, and what befalls the store and what is in it.

use crate::support::postgres::Postgres;
use crate::support::proxy::Proxy;
use crate::support::s3::S3;
use crate::support::{self, codes, drill, refused, wait_for, Service};
use serde_json::{json, Value};
use std::path::Path;
use std::time::Duration;
use tandem_service::client::{Content, Method};

struct Shared {
    database: Postgres,
    store: S3,
    folder: tempfile::TempDir,
}

impl Shared {
    fn new(test: &str) -> Option<Shared> {
        let store = S3::start(&format!("service::objects::{test}"))?;
        let shared = Shared { database: Postgres::start(), store, folder: tempfile::tempdir().unwrap() };
        std::fs::write(shared.folder.path().join("key"), [7; 32]).unwrap();
        Some(shared)
    }

    fn settings(&self, name: &str, port: u16) -> String {
        let (url, key) = (self.database.url(), self.folder.path().join("key"));
        format!(
            "database = '{url}'\nwitness_key = '{}'\nnode = '{name}'\nlease_seconds = 2\nstall_seconds = 1\n\
             workers = ['cpu']\nattempts = 4\nsmall_in_database = false\n{}",
            key.display(),
            self.store.settings(port)
        )
    }

    fn node(&self, name: &str) -> Service {
        Service::start(&self.settings(name, self.store.port))
    }

    /// Nothing of jobs that have ended is left.
    #[track_caller]
    fn is_clean(&self) {
        wait_for("the witnesses to be removed", || self.store.names("unit/witnesses").is_empty());
        assert_eq!(self.store.parts(), 0);
    }
}

fn id(job: &Value) -> String {
    job["id"].as_str().unwrap().into()
}

fn reason(job: &Value) -> &str {
    job["attempts"].as_array().unwrap().last().unwrap()["message"].as_str().unwrap()
}

/// The log of a node says this.
#[track_caller]
fn says(node: &Service, words: &str) {
    wait_for(words, || std::fs::read_to_string(node.at("log")).unwrap().contains(words));
}

fn forget_copies(node: &Service) {
    for file in std::fs::read_dir(node.at("data/key-cache")).unwrap() {
        std::fs::remove_file(file.unwrap().path()).unwrap();
    }
}

/// Witnesses, inputs, keys and programs, small ones and such as take several parts, from one node to another.
#[test]
fn what_one_node_takes_another_proves() {
    let Some(shared) = Shared::new("what_one_node_takes_another_proves") else { return };
    let [mut first, second] = ["first", "second"].map(|name| shared.node(name));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let r1cs = std::fs::read(root.join("crates/app/tests/data/multiplier.r1cs")).unwrap();
    support::make_key_of(first.folder.path(), "product", &r1cs);
    // 9.6 MB of witness and a key of several parts, of which the circuit needs little.
    let (r1cs, wtns) = support::files::squarings_of(12, 300_000);
    std::fs::write(first.at("large.wtns"), wtns).unwrap();
    support::make_key_of(first.folder.path(), "large", &r1cs);
    let put = |path: &str, file: &Path| first.client().call(Method::PUT, path, &[], Content::File(file)).unwrap();
    put("/v1/keys/product", &first.at("product.zkey"));
    put("/v1/keys/product/program", &root.join("crates/witness/tests/data/multiplier.wasm"));
    put("/v1/keys/large", &first.at("large.zkey"));
    let small = id(&first.submit(Some("x")).unwrap());
    let large = id(&first.submit_to("/v1/jobs?key=large", None, "large.wtns").unwrap());
    let inputs = json!({"a": "3", "b": ["11"]});
    let product = first.client().call(Method::POST, "/v1/jobs?key=product", &[], Content::Json(&inputs)).unwrap();
    for one in [&small, &large] {
        assert_eq!(codes(&first.ended(one)), ["done"]);
    }
    assert_eq!(codes(&first.ended(&id(&product))), ["calculated", "done"]);
    first.stop();
    // The other one has no copy of anything.
    forget_copies(&second);
    let again = second.client().call(Method::POST, "/v1/jobs?key=product", &[], Content::Json(&inputs)).unwrap();
    assert_eq!(codes(&second.ended(&id(&again))), ["calculated", "done"]);
    let result = second.client().get(&format!("/v1/jobs/{}/result", id(&again))).unwrap();
    assert_eq!(result["public"], json!(["33"]));
    std::fs::copy(first.at("large.wtns"), second.at("large.wtns")).unwrap();
    let large = id(&second.submit_to("/v1/jobs?key=large", None, "large.wtns").unwrap());
    assert_eq!(codes(&second.ended(&large)), ["done"]);
    second.verify(&second.verifier(), &small);
    shared.is_clean();
    // What a node has of its own are copies of keys.
    assert!(!second.at("data/witnesses").exists() && !second.at("data/keys").exists());
    assert!(!shared.store.names("unit/keys").is_empty());
    second.client().call(Method::DELETE, "/v1/keys/large", &[], Content::Empty).unwrap();
    wait_for("the key to go", || shared.store.names("unit/keys").len() == 3);
}

/// Jobs that were accepted wait for the store as they wait for the database; nothing counts against them.
#[test]
fn a_store_that_is_away_costs_no_attempt() {
    let Some(shared) = Shared::new("a_store_that_is_away_costs_no_attempt") else { return };
    let node = shared.node("only");
    let other = id(&node.submit(None).unwrap());
    assert_eq!(node.ended(&other)["state"], "done");
    node.fault("pause,witness,1");
    let waits = id(&node.submit(None).unwrap());
    wait_for("the worker", || node.at("paused").exists());
    shared.store.end();
    assert_eq!(refused(node.submit(Some("away"))), (503, "storage_failed".into()));
    let inputs = node.client().call(Method::POST, "/v1/jobs?key=small", &[], Content::File(&node.at("small.wtns")));
    assert_eq!(refused(inputs), (503, "storage_failed".into()));
    std::fs::write(node.at("go"), "").unwrap();
    let failed = || {
        codes(&node.client().get(&format!("/v1/jobs/{waits}")).unwrap())
            .iter()
            .filter(|code| **code == "storage_failed")
            .count()
    };
    // More often than a job may fail.
    wait_for("attempts", || failed() >= 5);
    shared.store.begin();
    let ended = node.ended(&waits);
    let (last, others) = codes(&ended).split_last().map(|(last, others)| (*last, others.to_vec())).unwrap();
    assert!(last == "done" && others.iter().all(|code| *code == "storage_failed"), "{ended}");
    let why = ended["attempts"][0]["message"].as_str().unwrap().to_string();
    assert!(why.contains("the witness") && !why.contains("Signature"), "{why}");
    let away = id(&node.submit(Some("away")).unwrap());
    assert_eq!(node.ended(&away)["state"], "done");
    shared.is_clean();
}

#[test]
fn witnesses_that_are_lost_or_damaged_are_told() {
    let Some(shared) = Shared::new("witnesses_that_are_lost_or_damaged_are_told") else { return };
    let node = shared.node("only");
    let damage = |file: &Path, how: &str| {
        let mut bytes = std::fs::read(file).unwrap();
        match how {
            "NoSuchKey" => return std::fs::remove_file(file).unwrap(),
            "damaged" => bytes[40] ^= 1,
            _ => drop(bytes.remove(0)),
        }
        std::fs::write(file, bytes).unwrap();
    };
    for expected in ["NoSuchKey", "damaged", "bytes, expected"] {
        let _ = std::fs::remove_file(node.at("paused"));
        let _ = std::fs::remove_file(node.at("go"));
        node.fault("pause,key,1");
        let lost = id(&node.submit(None).unwrap());
        wait_for("the worker", || node.at("paused").exists());
        let names = shared.store.names("unit/witnesses");
        assert_eq!(names.len(), 1);
        damage(&shared.store.at(&format!("unit/witnesses/{}", names[0])), expected);
        std::fs::write(node.at("go"), "").unwrap();
        let ended = node.ended(&lost);
        assert_eq!((ended["state"].as_str(), codes(&ended)), (Some("failed"), vec!["witness_lost"]), "{ended}");
        assert!(reason(&ended).contains(expected), "{ended}");
    }
    shared.is_clean();
}

/// A key that somebody removed is put there again by a node that has it. Without one it is told.
#[test]
fn a_key_that_is_lost_is_had_from_a_node_that_has_it() {
    let Some(shared) = Shared::new("a_key_that_is_lost_is_had_from_a_node_that_has_it") else { return };
    let first = shared.node("first");
    support::make_key(first.folder.path(), "other", 120);
    let file = first.at("other.zkey");
    first.client().call(Method::PUT, "/v1/keys/other", &[], Content::File(&file)).unwrap();
    let name = shared
        .store
        .names("unit/keys")
        .into_iter()
        .find(|name| {
            std::fs::read(shared.store.at(&format!("unit/keys/{name}"))).unwrap() == std::fs::read(&file).unwrap()
        })
        .unwrap();
    let stored = shared.store.at(&format!("unit/keys/{name}"));
    let submit = || id(&first.submit_to("/v1/jobs?key=other", None, "other.wtns").unwrap());
    // From its copy, also where it is cut.
    std::fs::remove_file(&stored).unwrap();
    says(&first, "key_published");
    wait_for("the key", || stored.exists());
    std::fs::write(&stored, "cut").unwrap();
    wait_for("the key", || std::fs::read(&stored).unwrap() == std::fs::read(&file).unwrap());
    assert_eq!(first.ended(&submit())["state"], "done");
    // Nobody has it: whoever asks is told, and registers it again.
    forget_copies(&first);
    std::fs::remove_file(&stored).unwrap();
    says(&first, "key_missing");
    let lost = first.ended(&submit());
    // The worker still has it on its device, or it is said what is missing.
    assert!(lost["state"] == "done" || reason(&lost).contains("somebody has removed it"), "{lost}");
    let second = shared.node("second");
    drop(first);
    std::fs::copy(second.at("small.wtns"), second.at("any.wtns")).unwrap();
    std::fs::write(second.at("other.zkey"), "").unwrap();
    support::make_key(second.folder.path(), "other", 120);
    let lost = id(&second.submit_to("/v1/jobs?key=other", None, "other.wtns").unwrap());
    let ended = second.ended(&lost);
    assert_eq!(codes(&ended), ["key_lost"; 4], "{ended}");
    assert!(reason(&ended).contains(&name) && reason(&ended).contains("somebody has removed it"), "{ended}");
    second.client().call(Method::PUT, "/v1/keys/other", &[], Content::File(&second.at("other.zkey"))).unwrap();
    let done = id(&second.submit_to("/v1/jobs?key=other", None, "other.wtns").unwrap());
    assert_eq!(second.ended(&done)["state"], "done");
}

/// A node whose bucket is another one, emptied, missing, or not its own to read does not start.
#[test]
fn a_node_with_another_bucket_is_refused() {
    let Some(shared) = Shared::new("a_node_with_another_bucket_is_refused") else { return };
    let first = shared.node("first");
    let settings = shared.settings("second", shared.store.port);
    let wrong = shared.store.write_credentials("wrong", "access", "wrong").display().to_string();
    let right = shared.store.credentials().display().to_string();
    let port = shared.store.port.to_string();
    std::fs::create_dir_all(shared.store.at("../other")).unwrap();
    std::fs::create_dir_all(shared.store.at("marked")).unwrap();
    std::fs::write(shared.store.at("marked/installation"), "another").unwrap();
    for (settings, parts) in [
        (
            settings.replace("s3://tandem/unit", "s3://other/unit"),
            ["s3://other/unit/installation", "name theirs in blobs"],
        ),
        (
            settings.replace("s3://tandem/unit", "s3://tandem/marked"),
            ["s3://tandem/marked/installation", "name theirs in blobs"],
        ),
        (settings.replace("s3://tandem/unit", "s3://missing/unit"), ["s3://missing/unit", "NoSuchBucket"]),
        (settings.replace(&right, &wrong), ["SignatureDoesNotMatch", "credentials"]),
        (settings.replace(&right, "/nonexistent"), ["/nonexistent", "credentials"]),
        (settings.replace(&format!("127.0.0.1:{port}"), "127.0.0.1:1"), ["http://127.0.0.1:1", "refused"]),
    ] {
        let why = Service::refuses_node(&settings);
        assert!(parts.iter().all(|part| why.contains(part)) && !why.contains("secret"), "{why}");
    }
    let done = id(&first.submit(None).unwrap());
    assert_eq!(first.ended(&done)["state"], "done");
}

/// Three nodes: workers and nodes are killed, the store ends, is silent, or out of one node's reach.
#[test]
fn jobs_outlive_nodes_and_their_store() {
    let Some(shared) = Shared::new("jobs_outlive_nodes_and_their_store") else { return };
    let proxy = Proxy::start(shared.store.port);
    let ports = [shared.store.port, shared.store.port, proxy.port];
    let nodes = [0, 1, 2].map(|node| Service::start(&shared.settings(&format!("n{node}"), ports[node])));
    drill::run(drill::jobs(90).min(1000), nodes.into(), |round, nodes| match round % 8 {
        1 => drill::kill_worker(&nodes[round % 2]),
        2 | 6 => {
            let node = &mut nodes[round / 4 % 2];
            node.kill();
            node.restart();
        }
        3 => proxy.cut(true),
        4 => {
            shared.store.freeze(true);
            std::thread::sleep(Duration::from_millis(1500));
            shared.store.freeze(false);
        }
        5 => {
            shared.store.end();
            std::thread::sleep(Duration::from_millis(300));
            shared.store.begin();
        }
        7 => proxy.cut(false),
        _ => {}
    });
    // Those of submissions that were refused may be left, as in a folder, and nothing of jobs.
    let left = shared.store.names("unit/witnesses").len();
    println!("{left} witnesses left");
}
