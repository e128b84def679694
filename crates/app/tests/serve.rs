//! `tandem serve` and its clients, as people use them.

mod support;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use support::{binary, demo, expect, refused_in, root, run, tandem, text};

struct Server {
    process: Child,
    address: String,
}

impl Server {
    fn start(folder: &Path) -> Server {
        Self::start_with(folder, &[])
    }

    fn start_with(folder: &Path, options: &[&str]) -> Server {
        let mut command = tandem();
        command.args(["serve", "--listen", "127.0.0.1:0", "--device", "cpu", "--data", text(&folder.join("data"))]);
        command.args(options);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Server { process, address: address.trim().into() }
    }

    #[track_caller]
    fn run(&self, status: i32, args: &[&str]) -> (String, String) {
        expect(status, tandem().args(args).env("TANDEM_SERVER", &self.address).output().unwrap(), args)
    }

    /// Ends it by a signal: its exit status.
    fn end(mut self, signal: &str) -> Option<i32> {
        Command::new("kill").args([signal, &self.process.id().to_string()]).status().unwrap();
        self.process.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_job_from_submit_to_proof() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let server = Server::start(folder.path());
    let (zkey, wtns) = (demo("membership.zkey"), demo("membership.wtns"));
    let (proof, public) = (at("proof.json"), at("public.json"));
    server.run(0, &["submit", text(&zkey), text(&wtns), text(&proof), text(&public)]);
    let vkey = demo("membership.vkey.json");
    assert_eq!(run(0, &["verify", text(&vkey), text(&public), text(&proof)]).0, "OK\n");
    // By name, with an id; another content under that id is refused.
    server.run(0, &["keys", "add", "member", text(&zkey)]);
    let (id, _) = server.run(0, &["submit", "member", text(&wtns), "--id", "one"]);
    assert_eq!(server.run(0, &["submit", "member", text(&wtns), "--id", "one"]).0, id);
    std::fs::write(at("other.wtns"), "other").unwrap();
    let (_, error) = server.run(2, &["submit", "member", text(&at("other.wtns")), "--id", "one"]);
    assert!(error.contains("the id was used before"), "{error}");
    let id = id.trim();
    server.run(0, &["wait", id]);
    let (status, _) = server.run(0, &["status", id, "--json"]);
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert_eq!((status["state"].as_str(), status["attempts"][0]["code"].as_str()), (Some("done"), Some("done")));
    let (bad, _) = server.run(0, &["submit", "member", text(&at("other.wtns"))]);
    let (_, error) = server.run(2, &["wait", bad.trim(), text(&at("no.json")), text(&at("no2.json"))]);
    assert!(error.contains("failed: the witness") && !at("no.json").exists(), "{error}");
    let (_, error) = server.run(2, &["cancel", id]);
    assert!(error.contains("the job is done already"), "{error}");
    assert!(server.run(0, &["keys", "list"]).0.contains("member"));
    assert_eq!(server.run(0, &["keys", "preload", "member"]).0, "member on 0:auto\n");
    let (key, _) = server.run(0, &["keys", "preload", "member", "--json"]);
    let key: serde_json::Value = serde_json::from_str(&key).unwrap();
    assert_eq!((&key["on"][0], &key["loading"]), (&"0:auto".into(), &false.into()));
    let (_, error) = server.run(2, &["keys", "preload", "none"]);
    assert!(error.contains("no key is called 'none'"), "{error}");
    server.run(0, &["keys", "evict", "member"]);
    server.run(0, &["keys", "remove", "member"]);
    assert_eq!(server.end("-TERM"), Some(0));
}

#[test]
fn callers_show_tokens_that_a_command_makes() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let server = Server::start_with(folder.path(), &["--tokens"]);
    let data = at("data");
    let tokens = |args: &[&str]| run(0, &[&["tokens"], args, &["--data", text(&data)]].concat()).0;
    let (_, error) = server.run(2, &["keys", "list"]);
    assert!(error.contains("this service wants a token"), "{error}");
    let file = at("wallet.token");
    std::fs::write(&file, tokens(&["add", "wallet", "--role", "admin", "--jobs", "5"])).unwrap();
    let token = std::fs::read_to_string(&file).unwrap();
    let [id, secret] = [1, 2].map(|part| token.trim().split('_').nth(part).unwrap());
    let (zkey, wtns) = (demo("membership.zkey"), demo("membership.wtns"));
    let (proof, public) = (at("proof.json"), at("public.json"));
    let with_file = ["--token-file", text(&file)];
    server.run(0, &[&["submit", text(&zkey), text(&wtns), text(&proof), text(&public)], &with_file[..]].concat());
    // Or by the variable; the file comes before it.
    let by_variable = |status: i32, token: &str, args: &[&str]| {
        let mut command = tandem();
        command.args(args).env("TANDEM_SERVER", &server.address).env("TANDEM_TOKEN", token);
        expect(status, command.output().unwrap(), args).1
    };
    by_variable(0, &token, &["status"]);
    by_variable(0, "tandem_0_0", &[&["status"], &with_file[..]].concat());
    by_variable(0, &token, &["bench", "serve", text(&zkey), text(&wtns), "--jobs", "1"]);
    let list = tokens(&["list", "--json"]);
    assert!(list.contains("wallet") && list.contains("admin") && !list.contains(secret), "{list}");
    assert!(tokens(&["list"]).contains(id));
    tokens(&["revoke", id]);
    let error = by_variable(2, &token, &["status"]);
    assert!(error.contains("the token is unknown or was revoked") && !error.contains(secret), "{error}");
    let error = by_variable(2, "secret\u{1}", &["keys", "list"]);
    assert!(error.contains("the token: expected") && !error.contains("secret"), "{error}");
    std::fs::write(&file, " \n").unwrap();
    let (_, error) = server.run(2, &[&["status"], &with_file[..]].concat());
    assert!(error.contains("wallet.token: expected a token"), "{error}");
    refused_in(folder.path(), &["status", "--token", &token], &["--token"]);
    refused_in(folder.path(), &["tokens", "revoke", "none", "--data", text(&data)], &["no token has the id 'none'"]);
    refused_in(folder.path(), &["tokens", "add", "x", "--role", "root"], &["expected one of read, submit, admin"]);
}

/// Inputs in place of a witness, several as one, and the trace of what the service did.
#[test]
fn inputs_batches_and_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let server = Server::start(folder.path());
    let (r1cs, zkey, vkey) =
        (root().join("crates/app/tests/data/multiplier.r1cs"), at("product.zkey"), at("vkey.json"));
    run(0, &["setup", text(&r1cs), text(&zkey)]);
    run(0, &["export-vkey", text(&zkey), text(&vkey)]);
    let wasm = root().join("crates/witness/tests/data/multiplier.wasm");
    server.run(0, &["keys", "add", "product", text(&zkey), "--wasm", text(&wasm)]);
    std::fs::write(at("a.json"), "{\"a\": \"3\", \"b\": \"11\"}").unwrap();
    std::fs::write(at("b.json"), "{\"a\": \"4\", \"b\": \"11\"}").unwrap();
    std::fs::write(at("bad.json"), "{\"a\": \"3\"}").unwrap();
    let (proof, public) = (at("proof.json"), at("public.json"));
    server.run(0, &["submit", "product", text(&at("a.json")), text(&proof), text(&public)]);
    assert_eq!(run(0, &["verify", text(&vkey), text(&public), text(&proof)]).0, "OK\n");
    let out = at("proofs");
    let files = [at("a.json"), at("b.json"), at("bad.json")];
    let names: Vec<&str> = files.iter().map(|file| text(file)).collect();
    let (told, _) = server.run(2, &[&["batch", "product"], &names[..], &["--out", text(&out)]].concat());
    assert!(told.contains("a.json done") && told.contains("bad.json failed: "), "{told}");
    for (name, product) in [("a", "33"), ("b", "44")] {
        let [proof, public] = ["proof", "public"].map(|what| out.join(format!("{name}.{what}.json")));
        assert!(std::fs::read_to_string(&public).unwrap().contains(product));
        assert_eq!(run(0, &["verify", text(&vkey), text(&public), text(&proof)]).0, "OK\n");
    }
    assert!(!out.join("bad.proof.json").exists());
    let trace = at("trace.json");
    server.run(0, &["trace", text(&trace)]);
    let trace: serde_json::Value = serde_json::from_slice(&std::fs::read(trace).unwrap()).unwrap();
    let has = |name: &str| trace["traceEvents"].as_array().unwrap().iter().any(|event| event["name"] == name);
    assert!(has("proof") && has("product"), "{trace}");
}

/// Keys of bellperson: the circuit stays with who submits, or the witness file brings the sides of its constraints.
#[test]
fn keys_of_bellperson_are_served() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let data = |name: &str| root().join("crates/formats/tests/data").join(name);
    let server = Server::start_with(folder.path(), &["--worker", "sim:2", "--worker", "cpu"]);
    let (r1cs, wtns, key, vkey) = (data("mul_bls.r1cs"), data("mul_bls.wtns"), at("key.params"), at("v.json"));
    run(0, &["setup", "--params", text(&r1cs), text(&key), "--seed", "a test"]);
    run(0, &["export-vkey", text(&key), text(&vkey)]);
    server.run(0, &["keys", "add", "mul", text(&key)]);
    let verified = |name: &str| {
        let (proof, public) = (at(&format!("{name}.proof.json")), at(&format!("{name}.public.json")));
        assert_eq!(run(0, &["verify", text(&vkey), text(&public), text(&proof)]).0, "OK\n");
    };
    let (proof, public) = (at("one.proof.json"), at("one.public.json"));
    for key in ["mul", text(&key)] {
        server.run(0, &["submit", "--r1cs", text(&r1cs), key, text(&wtns), text(&proof), text(&public)]);
        verified("one");
    }
    // The same witness is the same job.
    let again = || server.run(0, &["submit", "--r1cs", text(&r1cs), "mul", text(&wtns), "--id", "one"]).0;
    assert_eq!(again(), again());
    let (plain, _) = server.run(0, &["submit", "mul", text(&wtns)]);
    let (_, error) = server.run(2, &["wait", plain.trim()]);
    assert!(error.contains("tandem submit --r1cs"), "{error}");
    let (_, error) = server.run(2, &["submit", "--r1cs", text(&data("mul.r1cs")), "mul", text(&wtns)]);
    assert!(error.contains("mul.r1cs: a circuit for bn254"), "{error}");
    let (_, error) = server.run(2, &["submit", "--r1cs", text(&r1cs), "none", text(&wtns)]);
    assert!(error.contains("no key is called 'none'"), "{error}");
    // Files with sides, as one batch over both workers; proofs come in their order.
    let names = ["a", "b", "c"].map(|name| at(&format!("{name}.wtns")));
    for file in &names {
        let witness = tandem_engine::Witness::read(&wtns).unwrap().with_circuit(&r1cs).unwrap();
        witness.write_with_sides(std::fs::File::create(file).unwrap()).unwrap();
    }
    let mut batch = vec!["batch", "mul", "--out", text(folder.path())];
    batch.extend(names.iter().map(|file| text(file)));
    assert_eq!(server.run(0, &batch).0, "a.wtns done\nb.wtns done\nc.wtns done\n");
    ["a", "b", "c"].into_iter().for_each(verified);
    server.run(0, &["prove", text(&key), text(&names[0]), text(&proof), text(&public), "--device", "cpu"]);
    verified("one");
    assert_eq!(server.end("-TERM"), Some(0));
}

#[test]
fn a_bench_drives_a_service() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let server = Server::start(folder.path());
    let (zkey, wtns, rows) = (demo("membership.zkey"), demo("membership.wtns"), at("rows.jsonl"));
    let plot = at("plot.svg");
    let files = [text(&zkey), text(&wtns), "--json", text(&rows)];
    let closed = ["-c", "1,2", "--jobs", "3", "--plot", text(&plot)];
    let (table, _) = server.run(0, &[&["bench", "serve"], &files[..], &closed].concat());
    assert!(
        table.contains("p99 ms") && table.contains("upload") && table.lines().all(|line| line.chars().count() <= 80),
        "{table}"
    );
    // A node may be called by several addresses; a service with another database is none.
    let nodes = ["--node", &server.address, "--node", &server.address];
    server.run(0, &[&["bench", "serve"], &files[..], &["--rate", "50", "--jobs", "4"], &nodes].concat());
    let elsewhere = tempfile::tempdir().unwrap();
    let other = Server::start(elsewhere.path());
    let nodes = ["--jobs", "1", "--node", &other.address];
    let (_, error) = server.run(2, &[&["bench", "serve", text(&zkey), text(&wtns)], &nodes[..]].concat());
    assert!(error.contains("expected a node of the same database"), "{error}");
    let (_, error) = server.run(2, &["bench", "serve", text(&zkey), text(&wtns), "--node", "http://10.0.0.1:1"]);
    assert!(error.contains("--node") && error.contains("https"), "{error}");
    let rows = std::fs::read_to_string(rows).unwrap();
    let rows: Vec<serde_json::Value> = rows.lines().map(|row| serde_json::from_str(row).unwrap()).collect();
    let load = |row: &serde_json::Value| (row["clients"].as_u64(), row["rate"].as_f64(), row["runs"].as_u64());
    let loads: Vec<_> = rows.iter().map(load).collect();
    assert_eq!(loads, [(Some(1), None, Some(3)), (Some(2), None, Some(3)), (None, Some(50.0), Some(4))]);
    assert_eq!([&rows[0]["nodes"], &rows[2]["nodes"]], [&serde_json::Value::Null, &3.into()]);
    for row in &rows {
        let number = |name: &str| row[name].as_f64().unwrap();
        assert!(number("ms_median") > 0.0 && number("ms_median") <= number("ms_max"), "{row}");
        assert!(number("ms_added") > 0.0 && number("ms_added") < number("ms_max"), "{row}");
        assert!((0.0..1.0).contains(&number("idle")) && number("proofs_per_s") > 0.0, "{row}");
        assert!((0.0..1.0).contains(&number("no_proof")), "{row}");
        let stages = row["ms_stages"].as_object().unwrap();
        assert!(stages.len() == 8 && stages["proof"].as_f64().unwrap() > 0.0, "{row}");
        assert!(stages.values().all(|ms| ms.as_f64().unwrap() >= 0.0), "{row}");
    }
    assert!(std::fs::read_to_string(plot).unwrap().contains("callers"));
    // A witness of another circuit ends it, and one that is missing.
    std::fs::write(at("other.wtns"), "other").unwrap();
    let (_, error) = server.run(3, &["bench", "serve", text(&zkey), text(&at("other.wtns")), "--jobs", "1"]);
    assert!(error.contains("nothing to measure"), "{error}");
    let (_, error) = server.run(2, &["bench", "serve", text(&zkey), text(&wtns), text(&zkey)]);
    assert!(error.contains("a witness after each key"), "{error}");
}

#[test]
fn settings_are_checked_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("tandem.toml"), "data = 'd'\nquue = 2\n").unwrap();
    refused_in(at, &["serve", "--listen", "0.0.0.0:80"], &["other machines can reach 0.0.0.0:80", "--without tls"]);
    refused_in(at, &["serve", "--config", "tandem.toml"], &["tandem.toml: line 2", "quue"]);
    refused_in(at, &["serve", "--data", "d", "--worker", "gpu"], &["workers: 'gpu'"]);
    std::fs::write(at.join("tandem.toml"), "data = 'd'\nattempts = 2\n").unwrap();
    let (config, _) =
        run(0, &["serve", "--config", text(&at.join("tandem.toml")), "--worker", "cpu", "--print-config"]);
    assert!(config.contains("attempts = 2") && config.contains("workers = [\"cpu\"]"), "{config}");
    let refused = tandem().args(["status", "--server", "127.0.0.1:1"]).output().unwrap();
    let (_, error) = expect(3, refused, &["status"]);
    assert!(error.contains("is tandem serve running there?"), "{error}");
    // A second one on the same folder.
    let server = Server::start(at);
    let data = at.join("data");
    let args = ["serve", "--data", text(&data), "--listen", "127.0.0.1:0"];
    // One that is not refused would stay.
    let second = Command::new("timeout").arg("20").arg(binary()).args(args).output().unwrap();
    let (_, error) = expect(2, second, &args);
    assert!(error.contains("another tandem serve"), "{error}");
    drop(server);
}
