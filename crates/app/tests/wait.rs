//! `tandem prove --wait`: jobs that come on stdin, and what is answered.

mod support;

use serde_json::{json, Value};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use support::files::patched;
use support::{demo, expect, names, root, run_in, tandem};

/// The demo's key and witness, and a circuit of one product.
fn place() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (name, file) in [("key", "membership.zkey"), ("w", "membership.wtns"), ("v", "membership.vkey.json")] {
        fs::copy(demo(file), at.join(name)).unwrap();
    }
    fs::copy(root().join("crates/witness/tests/data/multiplier.wasm"), at.join("wasm")).unwrap();
    fs::copy(root().join("crates/app/tests/data/multiplier.r1cs"), at.join("r1cs")).unwrap();
    fs::write(at.join("input"), r#"{"a": 3, "b": 5}"#).unwrap();
    run_in(at, 0, &["setup", "r1cs", "small", "--seed", "x"]);
    run_in(at, 0, &["export-vkey", "small", "small.vkey"]);
    folder
}

fn start(folder: &Path, more: &[&str], stdout: Stdio) -> (Child, ChildStdin) {
    let mut command = tandem();
    command.current_dir(folder).args(["prove", "--wait", "--device", "cpu"]).args(more);
    let mut child = command.stdin(Stdio::piped()).stdout(stdout).stderr(Stdio::piped()).spawn().unwrap();
    let stdin = child.stdin.take().unwrap();
    let id = child.id().to_string();
    // A process that does not end fails its test. Without one this thread goes with the test program.
    std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_secs(120));
        _ = Command::new("kill").args(["-KILL", &id]).status();
    });
    (child, stdin)
}

/// A process that answers.
struct Waiting {
    child: Child,
    jobs: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Waiting {
    fn start(folder: &Path, more: &[&str]) -> Self {
        let (mut child, jobs) = start(folder, more, Stdio::piped());
        let answers = BufReader::new(child.stdout.take().unwrap());
        Waiting { child, jobs, answers }
    }

    /// The answer to a line.
    fn ask(&mut self, line: impl AsRef<[u8]>) -> Value {
        self.jobs.write_all(line.as_ref()).unwrap();
        self.jobs.write_all(b"\n").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap()
    }

    /// Ends the jobs.
    #[track_caller]
    fn end(self, status: i32) -> String {
        drop(self.jobs);
        expect(status, self.child.wait_with_output().unwrap(), &[]).1
    }
}

fn job(id: Value) -> Value {
    json!({"id": id, "zkey": "key", "witness": "w", "proof": "p", "public": "x"})
}

#[test]
fn jobs_are_answered_one_by_one() {
    let folder = place();
    let at = folder.path();
    let mut waiting = Waiting::start(at, &[]);
    for (line, id) in [(1, json!("first")), (2, json!(2))] {
        let answer = waiting.ask(job(id.clone()).to_string());
        assert_eq!((&answer["ok"], &answer["id"], &answer["line"]), (&json!(true), &id, &json!(line)), "{answer}");
        assert_eq!((&answer["proof"], &answer["public"]), (&json!("p"), &json!("x")));
        assert!(answer["seconds"].as_f64() >= answer["proof_seconds"].as_f64() && answer["device"] != "", "{answer}");
        assert_eq!(run_in(at, 0, &["verify", "v", "x", "p"]).0, "OK\n");
        fs::remove_file(at.join("p")).unwrap();
    }
    // Blank lines are none; another key, and a witness that is computed.
    let computed = json!({"zkey": "small", "wasm": "wasm", "input": "input", "proof": "p", "public": "x"});
    let answer = waiting.ask(format!("\n  \n{computed}"));
    assert_eq!((&answer["ok"], &answer["id"], &answer["line"]), (&json!(true), &Value::Null, &json!(5)), "{answer}");
    assert_eq!(run_in(at, 0, &["verify", "small.vkey", "x", "p"]).0, "OK\n");
    waiting.end(0);
}

#[test]
fn what_is_no_job_is_answered_and_the_next_is_taken() {
    let folder = place();
    let at = folder.path();
    let key = fs::read(at.join("small")).unwrap();
    fs::write(at.join("damaged"), patched(&key, 5, 0, &[0xff; 64])).unwrap();
    let before = names(at);
    let mut waiting = Waiting::start(at, &[]);
    let with = |name: &str, value: Value| {
        let mut job = job(json!("x"));
        job[name] = value;
        job.to_string().into_bytes()
    };
    let nested = [&b"{\"id\":\"x\",\"zkey\":"[..], &b"[".repeat(5000)].concat();
    for (line, said) in [
        (b"nonsense".to_vec(), "the line is no job"),
        (b"{".to_vec(), "the line is no job"),
        (b"[]".to_vec(), "the line is no job"),
        (b"\xff\xfe".to_vec(), "the line is no job"),
        (nested, "the line is no job"),
        (br#"{"id": "x"}"#.to_vec(), "missing field `zkey`"),
        (with("other", json!(1)), "unknown field `other`"),
        (with("id", json!({"a": 1})), "a text or a number as id"),
        (with("wasm", json!("wasm")), "either witness, or wasm and input"),
        (with("zkey", json!("none")), "none: cannot open"),
        (with("zkey", json!("w")), "w: "),
        (with("zkey", json!("damaged")), "damaged: "),
        (with("witness", json!("none")), "none: "),
        (with("witness", json!("key")), "key: "),
        (with("witness", json!("/dev/stdin")), "/dev/stdin: is open already"),
        (with("proof", json!("/dev/stdout")), "/dev/stdout: is open already"),
        (with("proof", json!("none/p")), "none"),
        (with("proof", json!("key")), "replace the input key"),
        (with("proof", json!("x")), "named for two outputs"),
        (vec![b'x'; (64 << 10) + 1], "expected a line of at most 65536 bytes"),
        (vec![b' '; 1 << 20], "expected a line of at most 65536 bytes"),
    ] {
        let shown = String::from_utf8_lossy(&line[..line.len().min(80)]).into_owned();
        let answer = waiting.ask(&line);
        assert_eq!((&answer["ok"], &answer["status"]), (&json!(false), &json!(2)), "{shown}: {answer}");
        assert!(answer["error"].as_str().unwrap().contains(said), "{shown}: expected {said:?} in {answer}");
        let has_id = serde_json::from_slice::<Value>(&line).is_ok_and(|job| job["id"] == "x");
        assert_eq!(answer["id"], if has_id { json!("x") } else { answer["id"].clone() }, "{shown}");
    }
    assert_eq!(names(at), before);
    assert_eq!(waiting.ask(job(json!(1)).to_string())["ok"], true);
    waiting.end(0);
}

/// A key whose file was replaced is another key, and one for which there is no room is refused.
#[test]
fn keys_are_loaded_anew_and_within_the_budget() {
    let folder = place();
    let at = folder.path();
    let mut waiting = Waiting::start(at, &["--key-memory", "2"]);
    let answer = waiting.ask(job(Value::Null).to_string());
    assert_eq!((&answer["ok"], &answer["status"]), (&json!(false), &json!(3)), "{answer}");
    assert!(answer["error"].as_str().unwrap().contains("the store may take 2097152"), "{answer}");
    let small = json!({"zkey": "small", "wasm": "wasm", "input": "input", "proof": "p", "public": "x"}).to_string();
    assert_eq!(waiting.ask(&small)["ok"], true);
    run_in(at, 0, &["setup", "r1cs", "new", "--seed", "y"]);
    fs::rename(at.join("new"), at.join("small")).unwrap();
    assert_eq!(waiting.ask(&small)["ok"], true);
    run_in(at, 1, &["verify", "small.vkey", "x", "p"]);
    run_in(at, 0, &["export-vkey", "small", "small.vkey"]);
    assert_eq!(run_in(at, 0, &["verify", "small.vkey", "x", "p"]).0, "OK\n");
    waiting.end(0);
}

#[test]
fn jobs_without_answers_end_it() {
    let folder = place();
    // Nobody reads the answers, and stdin stays open.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let (child, mut jobs) = start(folder.path(), &[], writer.into());
    writeln!(jobs, "{}", job(json!(1))).unwrap();
    expect(0, child.wait_with_output().unwrap(), &[]);
    drop(jobs);
    // No jobs at all.
    assert_eq!(Waiting::start(folder.path(), &[]).end(0).lines().filter(|line| line.contains("error")).count(), 0);
}

#[test]
fn a_signal_ends_it_between_jobs() {
    let folder = place();
    let before = names(folder.path());
    for (signal, status) in [("-INT", 130), ("-TERM", 143)] {
        let mut waiting = Waiting::start(folder.path(), &[]);
        assert_eq!(waiting.ask("{}")["ok"], false);
        let id = waiting.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
        // Stdin is still open.
        let Waiting { child, jobs, .. } = waiting;
        expect(status, child.wait_with_output().unwrap(), &[signal]);
        drop(jobs);
    }
    assert_eq!(names(folder.path()), before);
}

#[test]
fn other_words_do_not_go_with_it() {
    let folder = place();
    for args in [
        &["prove", "--wait", "key", "w", "p", "x"][..],
        &["prove", "--wait", "--json"],
        &["prove"],
        &["prove", "key", "w", "p", "x", "--key-memory", "5"],
    ] {
        run_in(folder.path(), 2, args);
    }
}
