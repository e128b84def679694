//! Jobs that come as inputs, batches, every protocol, and what lies on the disk.

use crate::support::{self, codes, refused, stage, wait_for, Service};
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tandem_engine::{CurveId, Proof, Publics, Verifier};
use tandem_service::client::{CallError, Content, Method};

const WORKER: &str = "workers = ['cpu']";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn program() -> PathBuf {
    root().join("crates/witness/tests/data/multiplier.wasm")
}

/// A service with a key of the multiplier, c = a b, which has a program.
fn multiplier(settings: &str) -> Service {
    let service = Service::start(settings);
    let r1cs = std::fs::read(root().join("crates/app/tests/data/multiplier.r1cs")).unwrap();
    support::make_key_of(service.folder.path(), "product", &r1cs);
    put(&service, "/v1/keys/product", &service.at("product.zkey")).unwrap();
    let key = put(&service, "/v1/keys/product/program", &program()).unwrap();
    assert!(key["program"]["bytes"].as_u64().unwrap() > 0);
    service
}

fn put(service: &Service, path: &str, file: &Path) -> Result<Value, CallError> {
    service.client().call(Method::PUT, path, &[], Content::File(file))
}

fn inputs(service: &Service, inputs: &Value, id: Option<&str>) -> Result<Value, CallError> {
    let headers: Vec<_> = id.iter().map(|id| ("idempotency-key", *id)).collect();
    service.client().call(Method::POST, "/v1/jobs?key=product", &headers, Content::Json(inputs))
}

fn id(job: &Value) -> String {
    job["id"].as_str().unwrap().into()
}

fn public(service: &Service, id: &str) -> Value {
    let verifier =
        Verifier::from_json(tandem_engine::export_vkey(&service.at("product.zkey")).unwrap().as_bytes()).unwrap();
    service.verify(&verifier, id);
    service.client().get(&format!("/v1/jobs/{id}/result")).unwrap()["public"].clone()
}

#[test]
fn inputs_become_a_witness_and_a_proof() {
    let service = multiplier(WORKER);
    let job = inputs(&service, &json!({"a": "3", "b": ["11"]}), Some("x")).unwrap();
    let ended = service.ended(&id(&job));
    assert_eq!((ended["state"].as_str(), codes(&ended)), (Some("done"), vec!["calculated", "done"]), "{ended}");
    assert_eq!(public(&service, &id(&job)), json!(["33"]));
    // The same id is the same job; other inputs are refused.
    assert_eq!(id(&inputs(&service, &json!({"a": "3", "b": ["11"]}), Some("x")).unwrap()), id(&job));
    assert_eq!(refused(inputs(&service, &json!({"a": "4", "b": ["11"]}), Some("x"))), (409, "other_content".into()));
    wait_for("no witness stays", || service.witnesses().is_empty());
    assert_eq!(service.metric("tandem_calculate_seconds_count"), 1.0);
    // What is wrong with inputs is told once, by the program's own words, and without a value.
    let secret = "9876543210";
    for (wrong, part) in [
        (json!({"a": secret}), "missing"),
        (json!({"a": secret, "b": "1", "c": secret}), "signal c is not an input"),
        (json!({"a": secret, "b": format!("{secret}x")}), "signal b"),
        (json!([secret]), "expected an object"),
    ] {
        let ended = service.ended(&id(&inputs(&service, &wrong, None).unwrap()));
        assert_eq!((ended["state"].as_str(), codes(&ended)), (Some("failed"), vec!["bad_input"]), "{ended}");
        assert!(ended["error"]["message"].as_str().unwrap().contains(part), "{ended}");
        assert!(!ended.to_string().contains(secret), "{ended}");
    }
    let log = std::fs::read_to_string(service.at("log")).unwrap();
    assert!(log.contains("code=bad_input") && !log.contains(secret));
    // A witness by itself is still taken.
    let wtns = service.at("product.wtns");
    std::fs::write(&wtns, support::files::wtns(&support::files::BN254_R, &[1, 6, 2, 3].map(support::files::element)))
        .unwrap();
    let job = service.client().call(Method::POST, "/v1/jobs?key=product", &[], Content::File(&wtns)).unwrap();
    assert_eq!(codes(&service.ended(&id(&job))), ["done"]);
    assert_eq!(public(&service, &id(&job)), json!(["6"]));
}

#[test]
fn programs_are_checked_and_belong_to_a_key() {
    let service = multiplier(&format!("{WORKER}\nmax_inputs_mib = 1\ncalculator_memory_mib = 1"));
    assert_eq!(refused(put(&service, "/v1/keys/none/program", &program())), (404, "no_key".into()));
    assert_eq!(refused(put(&service, "/v1/keys/small/program", &service.at("small.zkey"))), (422, "bad_key".into()));
    let other = root().join("crates/witness/tests/data/operations.graph");
    assert_eq!(refused(put(&service, "/v1/keys/product/program", &other)), (409, "other_program".into()));
    let small = service.client().call(Method::POST, "/v1/jobs?key=small", &[], Content::Json(&json!({"a": 1})));
    assert_eq!(refused(small), (409, "no_program".into()));
    let large = json!({"a": "1".repeat(1 << 20)});
    assert_eq!(refused(inputs(&service, &large, None)), (413, "too_large".into()));
    // A limit ends it for good.
    let ended = service.ended(&id(&inputs(&service, &json!({"a": 1, "b": 2}), None).unwrap()));
    assert_eq!(codes(&ended), ["witness_limit"], "{ended}");
    // The program goes with its key.
    let folder = || std::fs::read_dir(service.at("data/keys")).unwrap().count();
    assert_eq!(folder(), 2);
    service.client().call(Method::DELETE, "/v1/keys/product", &[], Content::Empty).unwrap();
    assert_eq!(folder(), 0);
}

#[test]
fn a_calculator_that_ends_costs_an_attempt_and_no_job() {
    let mut service = multiplier(&format!("{WORKER}\ncalculators = 1"));
    // It dies once.
    std::fs::write(service.at("broken-calculator"), "").unwrap();
    let job = id(&inputs(&service, &json!({"a": 3, "b": 5}), None).unwrap());
    assert_eq!(codes(&service.ended(&job)), ["worker_died", "calculated", "done"]);
    // Cancelled while it calculates.
    std::fs::write(service.at("slow-calculator"), "").unwrap();
    let job = id(&inputs(&service, &json!({"a": 3, "b": 5}), None).unwrap());
    wait_for("the calculator", || stage(&service, &job) == "calculate");
    service.post(&format!("/v1/jobs/{job}/cancel")).unwrap();
    assert_eq!(service.ended(&job)["state"], "cancelled");
    wait_for("no inputs stay", || service.witnesses().is_empty());
    // Its deadline passes meanwhile. Where the machine is so busy that it passes before, there is no attempt, and a later one is tried.
    let late = |seconds: u32| {
        let path = format!("/v1/jobs?key=product&deadline_seconds={seconds}");
        let job = service.client().call(Method::POST, &path, &[], Content::Json(&json!({"a": 3, "b": 5}))).unwrap();
        let ended = service.ended(&id(&job));
        assert_eq!(ended["error"]["code"], "deadline", "{ended}");
        codes(&ended).into_iter().map(String::from).collect::<Vec<_>>()
    };
    let late = [1, 5, 25].into_iter().map(late).find(|codes| !codes.is_empty());
    assert_eq!(late.unwrap(), ["deadline"]);
    // The service is killed, and goes on.
    let job = id(&inputs(&service, &json!({"a": 3, "b": 7}), None).unwrap());
    wait_for("the calculator", || stage(&service, &job) == "calculate");
    service.kill();
    std::fs::remove_file(service.at("slow-calculator")).unwrap();
    service.restart();
    assert_eq!(codes(&service.ended(&job)), ["server_stopped", "calculated", "done"]);
    assert_eq!(public(&service, &job), json!(["21"]));
    // It is told to stop, and goes on.
    std::fs::write(service.at("slow-calculator"), "").unwrap();
    let job = id(&inputs(&service, &json!({"a": 4, "b": 7}), None).unwrap());
    wait_for("the calculator", || stage(&service, &job) == "calculate");
    service.stop();
    std::fs::remove_file(service.at("slow-calculator")).unwrap();
    service.restart();
    let ended = service.ended(&job);
    assert_eq!(codes(&ended)[1..], ["calculated", "done"], "{ended}");
    assert!(["given_back", "server_stopped"].contains(&codes(&ended)[0]), "{ended}");
}

/// The variables of a process, as it was started with them.
fn variables(pid: u32) -> BTreeMap<String, String> {
    let text = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    text.split('\0').filter_map(|line| line.split_once('=')).map(|(name, value)| (name.into(), value.into())).collect()
}

/// The processes that a process has started.
fn children(pid: u32) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let parent = |of: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{of}/stat")).ok()?;
        // The name of the program, which may have spaces, stands before.
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    all.filter(|of| parent(of) == Some(pid)).collect()
}

#[test]
fn circuits_programs_and_workers_run_without_the_credentials_of_the_store() {
    let mut service = multiplier(&format!("{WORKER}\ncalculators = 1"));
    service.stop();
    let secrets = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"];
    service.restart_with(&secrets.map(|name| (name, "a secret")));
    std::fs::write(service.at("slow-calculator"), "").unwrap();
    let job = id(&inputs(&service, &json!({"a": 3, "b": 5}), None).unwrap());
    // What each plays is seen when it has its own variables.
    let seen = || children(service.pid()).into_iter().map(variables).collect::<Vec<_>>();
    let plays = |role: &str| seen().iter().any(|of| of.get(support::CHILD).is_some_and(|played| played == role));
    wait_for("a worker and a calculator", || plays("cpu") && plays("calculate"));
    assert!(secrets.iter().all(|name| variables(service.pid())[*name] == "a secret"));
    for of in seen() {
        assert!(of["TANDEM_TEST_FOLDER"] == service.folder.path().display().to_string());
        assert!(secrets.iter().all(|name| !of.contains_key(*name)), "{:?}", of[support::CHILD]);
    }
    std::fs::remove_file(service.at("slow-calculator")).unwrap();
    assert_eq!(codes(&service.ended(&job)), ["calculated", "done"]);
}

/// All bytes of all files of a folder.
fn bytes_of(folder: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        all.extend(if path.is_dir() { bytes_of(&path) } else { std::fs::read(&path).unwrap() });
    }
    all
}

fn has(all: &[u8], some: &[u8]) -> bool {
    all.windows(some.len()).any(|window| window == some)
}

#[test]
fn nothing_of_a_witness_shows_on_the_disk_and_damage_is_told() {
    let service =
        multiplier(&format!("{WORKER}\nin_hand = 1\ncalculators = 1\nsurvives = 'kill'\nsmall_in_database = false"));
    service.fault("pause,key,1\npause,key,2");
    std::fs::write(service.at("slow-calculator"), "").unwrap();
    // Values that stand nowhere else by chance.
    let (a, b) = (0x9e37_79b1_u64, 0x85eb_ca77_u64);
    let witness = support::files::wtns(&support::files::BN254_R, &[1, a * b, a, b].map(support::files::element));
    std::fs::write(service.at("product.wtns"), witness).unwrap();
    let held: Vec<String> = (0..6).map(|_| id(&service.submit(None).unwrap())).collect();
    let product = id(&service.submit_to("/v1/jobs?key=product", None, "product.wtns").unwrap());
    inputs(&service, &json!({"a": "123456789123456789", "b": "987654321987654321"}), None).unwrap();
    wait_for("the first is held", || service.at("paused").exists());
    let all = bytes_of(&service.at("data"));
    // The jobs are there, and neither a value of a witness, nor the head of its file, nor the text of an input.
    assert!(has(&all, held[1].as_bytes()) && has(&all, product.as_bytes()));
    assert!(!has(&all, &(a * b).to_le_bytes()) && !has(&all, b"wtns\x02"));
    assert!(!has(&all, b"123456789123456789"));
    let blob = |job: &str| service.at("data/witnesses").join(job);
    let stored = |job: &str| std::fs::read(blob(job)).unwrap();
    // Changed, cut, swapped for another's, gone.
    let mut changed = stored(&held[1]);
    changed[100] ^= 1;
    std::fs::write(blob(&held[1]), changed).unwrap();
    let cut = stored(&held[2]);
    std::fs::write(blob(&held[2]), &cut[..cut.len() - 1]).unwrap();
    std::fs::write(blob(&held[3]), stored(&held[5])).unwrap();
    std::fs::remove_file(blob(&held[4])).unwrap();
    std::fs::remove_file(service.at("slow-calculator")).unwrap();
    std::fs::write(service.at("go"), "").unwrap();
    for (job, part) in [(1, "was changed"), (2, "expected"), (3, "that of another job"), (4, "No such file")] {
        let ended = service.ended(&held[job]);
        assert_eq!(codes(&ended), ["witness_lost"], "{ended}");
        let message = ended["error"]["message"].as_str().unwrap();
        assert!(message.contains(part) && !message.contains(&held[job]), "{message}");
    }
    assert_eq!(codes(&service.ended(&held[0])), ["done"]);
    assert_eq!(codes(&service.ended(&held[5])), ["done"]);
    assert_eq!(
        {
            service.ended(&product);
            public(&service, &product)
        },
        json!([(a * b).to_string()])
    );
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(service.at("data/witness_key")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn every_protocol_is_proved() {
    let service = Service::start(WORKER);
    let data = root().join("crates/formats/tests/data");
    for (name, curve, vkey) in [
        ("mul.plonk", CurveId::Bn254, "mul.plonk.vkey.json"),
        ("mul.fflonk", CurveId::Bn254, "mul.fflonk.vkey.json"),
        ("mul_bls.plonk", CurveId::Bls12_381, "mul_bls.plonk.vkey.json"),
        ("mul_bls", CurveId::Bls12_381, "mul_bls.vkey.json"),
    ] {
        put(&service, &format!("/v1/keys/{name}"), &data.join(format!("{name}.zkey"))).unwrap();
        let witness = data.join(format!("{}.wtns", name.split('.').next().unwrap()));
        let path = format!("/v1/jobs?key={name}");
        let job = service.client().call(Method::POST, &path, &[], Content::File(&witness)).unwrap();
        let ended = service.ended(&id(&job));
        assert_eq!(codes(&ended), ["done"], "{name}: {ended}");
        let result = service.client().get(&format!("/v1/jobs/{}/result", id(&job))).unwrap();
        let proof = Proof::from_json(curve, result["proof"].to_string().as_bytes()).unwrap();
        let publics = Publics::from_json(curve, result["public"].to_string().as_bytes()).unwrap();
        let verifier = Verifier::from_json(&std::fs::read(data.join(vkey)).unwrap()).unwrap();
        verifier.verify(&publics, &proof).unwrap();
    }
}

/// A tar archive of these files.
fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        builder.append_data(&mut header, name, *content).unwrap();
    }
    builder.into_inner().unwrap()
}

fn batch(service: &Service, bytes: &[u8], request: Option<&str>) -> Result<Value, CallError> {
    let path = service.at("batch.tar");
    std::fs::write(&path, bytes).unwrap();
    let headers: Vec<_> = request.iter().map(|id| ("idempotency-key", *id)).collect();
    service.client().call(Method::POST, "/v1/batches?key=product", &headers, Content::File(&path))
}

#[test]
fn a_batch_is_one_request_with_a_result_for_each() {
    let service = multiplier(WORKER);
    let wtns = support::files::wtns(&support::files::BN254_R, &[1, 6, 2, 3].map(support::files::element));
    let wrong = support::files::wtns(&support::files::BN254_R, &[1, 7, 2, 3].map(support::files::element));
    let files: [(&str, &[u8]); 3] = [("a.wtns", &wtns), ("b.json", b"{\"a\": 4, \"b\": 5}"), ("c.wtns", &wrong)];
    let first = batch(&service, &archive(&files), Some("one")).unwrap();
    assert_eq!(first["items"].as_array().unwrap().len(), 3);
    let ended = loop {
        let seen = service.client().get(&format!("/v1/batches/{}?wait=20", id(&first))).unwrap();
        if seen["ended"] == true {
            break seen;
        }
    };
    assert_eq!((&ended["counts"]["done"], &ended["counts"]["failed"]), (&json!(2), &json!(1)), "{ended}");
    let results = service.client().get(&format!("/v1/batches/{}/results", id(&first))).unwrap();
    let of = |item: usize| &results["items"][item];
    assert_eq!((&of(0)["name"], &of(0)["public"]), (&json!("a.wtns"), &json!(["6"])));
    assert_eq!((&of(1)["name"], &of(1)["public"]), (&json!("b.json"), &json!(["20"])));
    assert_eq!((&of(2)["name"], &of(2)["error"]["code"]), (&json!("c.wtns"), &json!("unsatisfied")));
    public(&service, of(0)["id"].as_str().unwrap());
    // The same again is the same batch, another under its id is refused and leaves nothing.
    assert_eq!(id(&batch(&service, &archive(&files), Some("one")).unwrap()), id(&first));
    assert_eq!(refused(batch(&service, &archive(&files[..2]), Some("one"))), (409, "other_content".into()));
    let (_, code) = refused(service.client().get("/v1/batches/none"));
    assert_eq!(code, "no_batch");
    // What is no archive, has no files, is cut off, or has what is no file.
    let whole = archive(&files);
    let large = archive(&[("a.wtns", &[0; 5000])]);
    for (bytes, expected) in [
        (&whole[..700], "bad_request"),
        (&whole[..whole.len() - 1024 - 600], "bad_request"),
        (&[7; 2000][..], "bad_request"),
        (&archive(&[])[..], "bad_request"),
        (&large[..], "too_large"),
    ] {
        assert_eq!(refused(batch(&service, bytes, None)).1, expected);
    }
    let mut link = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Symlink);
    header.set_size(0);
    link.append_link(&mut header, "a.wtns", "/etc/passwd").unwrap();
    assert_eq!(refused(batch(&service, &link.into_inner().unwrap(), None)).1, "bad_request");
    wait_for("nothing stays", || service.witnesses().is_empty());
    // Cancelled together.
    service.fault("pause,key,1\npause,beside key,1");
    let held = batch(&service, &archive(&[files[0], files[0], files[0]]), None).unwrap();
    let after = service.post(&format!("/v1/batches/{}/cancel", id(&held))).unwrap();
    assert_eq!((&after["ended"], &after["counts"]["done"]), (&json!(true), &json!(0)), "{after}");
}
