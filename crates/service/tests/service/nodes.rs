//! Several nodes on one PostgreSQL: killed, stopped, cut off, without their database. No accepted job is lost, none has two results.

use crate::support::postgres::Postgres;
use crate::support::proxy::Proxy;
use crate::support::{self, codes, drill, refused, wait_for, Service};
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use serde_json::{json, Value};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tandem_service::client::{Content, Method};

/// What nodes share: a database, a folder, and the key for witnesses, of which each has a file of its own.
pub(crate) struct Shared {
    pub(crate) server: Postgres,
    folder: tempfile::TempDir,
}

impl Shared {
    pub(crate) fn new() -> Shared {
        let shared = Shared { server: Postgres::start(), folder: tempfile::tempdir().unwrap() };
        std::fs::write(shared.key(), [7; 32]).unwrap();
        shared
    }

    fn key(&self) -> PathBuf {
        self.folder.path().join("key")
    }

    fn blobs(&self) -> PathBuf {
        self.folder.path().join("blobs")
    }

    pub(crate) fn settings(&self, name: &str, port: u16) -> String {
        let (url, blobs, key) = (self.server.url_by(port), self.blobs(), self.key());
        let (blobs, key) = (blobs.display(), key.display());
        format!(
            "database = '{url}'\nblobs = '{blobs}'\nwitness_key = '{key}'\nnode = '{name}'\nlease_seconds = 2\n\
             workers = ['cpu']\nattempts = 50\n"
        )
    }

    pub(crate) fn node(&self, name: &str) -> Service {
        Service::start(&self.settings(name, self.server.port))
    }

    /// Nothing of jobs that have ended is left.
    #[track_caller]
    fn is_clean(&self) {
        let left = || std::fs::read_dir(self.blobs().join("witnesses")).unwrap().count();
        wait_for("the witnesses to be removed", || left() == 0);
    }
}

fn id(job: &Value) -> String {
    job["id"].as_str().unwrap().into()
}

fn job(node: &Service, id: &str) -> Value {
    node.client().get(&format!("/v1/jobs/{id}")).unwrap()
}

fn workers(job: &Value) -> Vec<&str> {
    job["attempts"].as_array().unwrap().iter().map(|of| of["worker"].as_str().unwrap()).collect()
}

fn signal(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid as i32), signal).unwrap();
}

/// A node that is killed while it proves loses its lease, and another one has the job. It comes back by itself.
#[test]
fn the_job_of_a_node_that_is_killed_goes_to_another() {
    let shared = Shared::new();
    let mut first = shared.node("first");
    first.fault("pause,prove,1");
    let killed = id(&first.submit(None).unwrap());
    wait_for("the worker", || first.at("paused").exists());
    let second = shared.node("second");
    first.kill();
    let job = second.ended(&killed);
    assert_eq!((codes(&job), workers(&job)), (vec!["lease_expired", "done"], vec!["first/0:cpu", "second/0:cpu"]));
    second.verify(&second.verifier(), &killed);
    std::fs::remove_file(first.at("fault")).unwrap();
    first.restart();
    let nodes = || second.client().get("/v1/nodes").unwrap()["nodes"].as_array().unwrap().len();
    wait_for("both", || nodes() == 2);
    // What a node left is its own again at once, where it is started under the same name before the lease is over.
    first.fault("pause,prove,1");
    std::fs::remove_file(first.at("paused")).unwrap();
    signal(second.pid(), Signal::SIGSTOP);
    let again = id(&first.submit(None).unwrap());
    wait_for("the worker", || first.at("paused").exists());
    first.kill();
    first.restart();
    assert_eq!(codes(&first.ended(&again)), ["server_stopped", "done"]);
    signal(second.pid(), Signal::SIGCONT);
    assert_eq!(second.metric("tandem_leases_expired_total"), 1.0);
    shared.is_clean();
}

/// Node `first` proves while it cannot prolong its lease, and tells of its proof when another one has the job.
fn is_late(shared: &Shared, first: &Service, away: impl Fn(bool)) {
    first.fault("pause,answer,1");
    let late = id(&first.submit(None).unwrap());
    wait_for("the proof", || first.at("paused").exists());
    let second = shared.node("second");
    second.fault("pause,answer,2");
    away(true);
    wait_for("the other node", || second.at("paused").exists());
    // The proof is there, and nobody can be told.
    std::fs::write(first.at("go"), "").unwrap();
    std::thread::sleep(Duration::from_millis(300));
    away(false);
    let refused = || first.metric("tandem_stale_writes_total") + first.metric("tandem_leases_lost_total");
    wait_for("the refusal", || refused() > 0.0);
    let held = job(&second, &late);
    assert_eq!((held["state"].as_str(), held["attempt"].as_i64()), (Some("running"), Some(2)), "{held}");
    std::fs::write(second.at("go"), "").unwrap();
    let ended = second.ended(&late);
    assert_eq!((codes(&ended), workers(&ended)[1]), (vec!["lease_expired", "done"], "second/0:cpu"), "{ended}");
    second.verify(&second.verifier(), &late);
    // It goes on as before.
    std::fs::remove_file(first.at("fault")).unwrap();
    let next = id(&first.submit(None).unwrap());
    assert_eq!(first.ended(&next)["state"], "done");
    shared.is_clean();
}

#[test]
fn a_node_that_was_stopped_past_its_lease_tells_in_vain() {
    let shared = Shared::new();
    let first = shared.node("first");
    is_late(&shared, &first, |away| signal(first.pid(), if away { Signal::SIGSTOP } else { Signal::SIGCONT }));
}

#[test]
fn a_node_that_was_cut_off_past_its_lease_tells_in_vain() {
    let shared = Shared::new();
    let proxy = Proxy::start(shared.server.port);
    let first = Service::start(&shared.settings("first", proxy.port));
    is_late(&shared, &first, |away| proxy.cut(away));
}

/// A proof may take longer than a lease, as long as its node lives; and the database may end and come back meanwhile.
#[test]
fn a_proof_outlasts_leases_and_the_database() {
    let shared = Shared::new();
    let node = shared.node("only");
    node.fault("pause,prove,1");
    let long = id(&node.submit(None).unwrap());
    wait_for("the worker", || node.at("paused").exists());
    std::thread::sleep(Duration::from_millis(2500));
    assert_eq!(job(&node, &long)["attempt"], 1);
    shared.server.end();
    assert_eq!(refused(node.submit(Some("away"))), (503, "storage_failed".into()));
    std::fs::write(node.at("go"), "").unwrap();
    wait_for("the result", || node.metric("tandem_unwritten_results") == 1.0);
    shared.server.begin();
    wait_for("the database", || node.client().get("/v1/jobs").is_ok());
    let ended = node.ended(&long);
    assert_eq!(codes(&ended), ["done"], "{ended}");
    let away = id(&node.submit(Some("away")).unwrap());
    assert_eq!(node.ended(&away)["state"], "done");
    assert!(node.metric("tandem_database_failures_total") > 0.0);
    // What was refused while the database was away may have left its witness, for it was not known whether it was written.
}

/// A caller who is told that the database is away, for its answer was lost, sends again: the job is there, with its witness.
#[test]
fn a_job_that_was_accepted_unheard_keeps_its_witness() {
    let shared = Shared::new();
    let proxy = Proxy::start(shared.server.port);
    let node = Service::start(&shared.settings("far", proxy.port));
    proxy.lose("COMMIT");
    assert_eq!(refused(node.submit(Some("x"))), (503, "storage_failed".into()));
    assert!(proxy.has_lost());
    let sent = id(&node.submit(Some("x")).unwrap());
    let ended = node.ended(&sent);
    assert_eq!(codes(&ended), ["done"], "{ended}");
    node.verify(&node.verifier(), &sent);
}

/// Keys, ids, tokens' jobs and wishes to cancel are those of all nodes; witnesses are sealed for all of them.
#[test]
fn whatever_one_node_knows_all_know() {
    let shared = Shared::new();
    let [mut first, second] = ["first", "second"].map(|name| shared.node(name));
    let one = id(&first.submit(Some("x")).unwrap());
    assert_eq!(first.ended(&one)["state"], "done");
    assert_eq!(id(&second.submit(Some("x")).unwrap()), one);
    second.verify(&second.verifier(), &one);
    std::fs::write(second.at("other.wtns"), b"no such witness").unwrap();
    let other = second.submit_to("/v1/jobs?key=small", Some("x"), "other.wtns");
    assert_eq!(refused(other), (409, "other_content".into()));
    // The one that proves is told of a wish to cancel that another one heard.
    for node in [&first, &second] {
        node.fault("pause,prove,1");
    }
    let unwanted = id(&first.submit(None).unwrap());
    wait_for("a worker", || first.at("paused").exists() || second.at("paused").exists());
    let (idle, busy) = if first.at("paused").exists() { (&second, &first) } else { (&first, &second) };
    assert_eq!(idle.post(&format!("/v1/jobs/{unwanted}/cancel")).unwrap()["state"], "cancelled");
    let jobs = || busy.client().get("/v1/workers").unwrap()["workers"][0]["jobs"].as_array().unwrap().len();
    wait_for("the worker to let go", || jobs() == 0);
    for node in [&first, &second] {
        std::fs::write(node.at("go"), "").unwrap();
        let _ = std::fs::remove_file(node.at("fault"));
    }
    // A key that one node has by path is copied for all, with its program; each keeps copies of its own of what it proves with.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let r1cs = std::fs::read(root.join("crates/app/tests/data/multiplier.r1cs")).unwrap();
    support::make_key_of(second.folder.path(), "product", &r1cs);
    let put = |path: &str, file: &Path| first.client().call(Method::PUT, path, &[], Content::File(file)).unwrap();
    put("/v1/keys/product", &second.at("product.zkey"));
    put("/v1/keys/product/program", &root.join("crates/witness/tests/data/multiplier.wasm"));
    first.stop();
    assert_eq!(second.client().get("/v1/nodes").unwrap()["nodes"].as_array().unwrap().len(), 1);
    let key = second.post("/v1/keys/product/preload?wait=60").unwrap();
    assert_eq!(key["on"], json!(["0:cpu"]));
    let inputs = json!({"a": "3", "b": ["11"]});
    let product = second.client().call(Method::POST, "/v1/jobs?key=product", &[], Content::Json(&inputs)).unwrap();
    let ended = second.ended(&id(&product));
    assert_eq!(codes(&ended), ["calculated", "done"], "{ended}");
    let result = second.client().get(&format!("/v1/jobs/{}/result", id(&product))).unwrap();
    assert_eq!(result["public"], json!(["33"]));
    let files = std::fs::read_dir(second.at("data/key-cache")).unwrap().map(|file| file.unwrap().path());
    let copies = files.filter(|path| path.extension().unwrap() == "zkey").count();
    assert!((1..=2).contains(&copies), "{copies}");
    shared.is_clean();
}

/// A node that would seal with another key, or writes where the others do not read, is refused before it takes a job.
#[test]
fn a_node_that_shares_less_than_all_is_refused() {
    let shared = Shared::new();
    let first = shared.node("first");
    let settings = shared.settings("second", shared.server.port);
    let (key, blobs) = (shared.key().display().to_string(), shared.blobs().display().to_string());
    let own = tempfile::tempdir().unwrap();
    let other = own.path().join("other");
    std::fs::write(&other, [8; 32]).unwrap();
    let other = other.display().to_string();
    let none = own.path().join("none").display().to_string();
    for (settings, parts) in [
        (settings.replace(&key, &other), [other.as_str(), "another one than that of the other nodes; copy"]),
        (settings.replace(&key, &none), [none.as_str(), "another one than that of the other nodes; copy"]),
        (settings.replace(&blobs, &none), [none.as_str(), "mount theirs"]),
    ] {
        let why = Service::refuses_node(&settings);
        assert!(parts.iter().all(|part| why.contains(part)), "{why}");
    }
    assert!(!Path::new(&none).join("installation").exists());
    // Neither the database nor what nodes share has the key.
    let output = Command::new("grep").args(["-rlaP", r"\x07{32}"]).arg(shared.blobs()).output().unwrap();
    assert!(output.stdout.is_empty(), "{output:?}");
    let done = id(&first.submit(None).unwrap());
    assert_eq!(first.ended(&done)["state"], "done");
}

/// So long a job is left to the node that has its key, in milliseconds.
const GRACE_MS: i64 = 400;

/// The node of a job's attempt, which ended in a proof; `None` where that was begun so late that no node waits for another any more.
fn node_of(node: &Service, id: &str) -> Option<String> {
    let ended = node.ended(id);
    assert_eq!(codes(&ended), ["done"], "{ended}");
    let late = ended["attempts"][0]["begun_ms"].as_i64().unwrap() - ended["created_ms"].as_i64().unwrap();
    let name = workers(&ended)[0].split('/').next().unwrap().to_string();
    (late < GRACE_MS).then_some(name)
}

/// Whether each job went to the node that has its key; `None` where the machine was too busy to tell.
fn go_where_their_keys_are() -> Option<()> {
    let shared = Shared::new();
    let names = ["first", "second"];
    let nodes = names.map(|name| shared.node(name));
    support::make_key(nodes[0].folder.path(), "other", 120);
    let at = nodes[0].at("other.zkey");
    nodes[0].client().call(Method::PUT, "/v1/keys/other", &[], Content::File(&at)).unwrap();
    let witnesses = [nodes[0].at("small.wtns"), nodes[0].at("other.wtns")];
    let submit = |node: usize, key: usize| {
        let path = format!("/v1/jobs?key={}", ["small", "other"][key]);
        id(&nodes[node].client().call(Method::POST, &path, &[], Content::File(&witnesses[key])).unwrap())
    };
    // Each key becomes one node's, as the other one is stopped meanwhile.
    for key in 0..2 {
        signal(nodes[1 - key].pid(), Signal::SIGSTOP);
        let first = submit(key, key);
        let ended = nodes[key].ended(&first);
        signal(nodes[1 - key].pid(), Signal::SIGCONT);
        assert_eq!(workers(&ended), [["first/0:cpu", "second/0:cpu"][key]]);
    }
    // Until both know of it: each has told its own, and has been heard of twice since the other had.
    let seen = || {
        let all = nodes[0].client().get("/v1/nodes").unwrap()["nodes"].clone();
        let of = |name: &&str| all.as_array().unwrap().iter().find(|node| node["name"] == *name).cloned();
        names.iter().filter_map(of).collect::<Vec<Value>>()
    };
    let has_told = |node: &Value| node["idle_keys"].as_array().unwrap().len() == 1;
    wait_for("a key on each", || seen().iter().filter(|node| has_told(node)).count() == 2);
    for _ in 0..2 {
        let before = seen();
        let is_later = |(now, before): (&Value, &Value)| now["seen_ms"].as_i64() > before["seen_ms"].as_i64();
        wait_for("both to be heard of", || seen().iter().zip(&before).filter(|pair| is_later(*pair)).count() == 2);
    }
    for number in 0..12 {
        let key = number % 2;
        let one = submit((number / 2) % 2, key);
        assert_eq!(node_of(&nodes[0], &one)?, names[key], "{number}");
    }
    let keys =
        |node: &Service| node.client().get("/v1/workers").unwrap()["workers"][0]["keys"].as_array().unwrap().len();
    assert_eq!([keys(&nodes[0]), keys(&nodes[1])], [1, 1]);
    // But no job waits for a node that is busy or gone.
    signal(nodes[0].pid(), Signal::SIGSTOP);
    let elsewhere = submit(1, 0);
    let ended = nodes[1].ended(&elsewhere);
    signal(nodes[0].pid(), Signal::SIGCONT);
    assert_eq!(workers(&ended), ["second/0:cpu"]);
    Some(())
}

/// Jobs go to the node that has their key on its device while that is idle, whichever node is asked.
#[test]
fn jobs_go_where_their_keys_are() {
    assert!((0..5).any(|_| go_where_their_keys_are().is_some()), "five times the machine was too busy to tell");
}

/// Three nodes: workers and nodes are killed, one is cut off, the database ends for a while; callers send each job until it is accepted.
#[test]
fn jobs_outlive_nodes_and_their_database() {
    let shared = Shared::new();
    let proxy = Proxy::start(shared.server.port);
    let ports = [shared.server.port, shared.server.port, proxy.port];
    let nodes = [0, 1, 2].map(|node| Service::start(&shared.settings(&format!("n{node}"), ports[node])));
    drill::run(drill::jobs(300), nodes.into(), |round, nodes| match round % 8 {
        1 | 4 => drill::kill_worker(&nodes[round % 2]),
        2 | 6 => {
            let node = &mut nodes[round / 4 % 2];
            node.kill();
            node.restart();
        }
        3 => proxy.cut(true),
        5 => {
            shared.server.end();
            std::thread::sleep(Duration::from_millis(300));
            shared.server.begin();
        }
        7 => proxy.cut(false),
        _ => {}
    });
}
