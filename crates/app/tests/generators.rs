//! Witnesses from graphs of circom-witnesscalc and from programs of this machine.

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use support::{demo, expect, names, refused_in, root, run_in, tandem, text};

/// The program, compiled once for all tests.
fn program() -> &'static [u8] {
    static PROGRAM: OnceLock<Vec<u8>> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let source = root().join("crates/app/tests/data/circuit.cpp");
        let args = ["-std=c++17", "-o", "circuit", text(&source)];
        let compiled = Command::new("c++").args(args).current_dir(folder.path()).output();
        expect(0, compiled.expect("c++ cannot be started; install it"), &args);
        fs::read(folder.path().join("circuit")).unwrap()
    })
}

/// A folder with a program that pretends to be circom's for the demo, and the demo's key.
fn place() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("circuit"), program()).unwrap();
    fs::set_permissions(at.join("circuit"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::copy(demo("membership.wtns"), at.join("circuit.dat")).unwrap();
    fs::copy(demo("membership.zkey"), at.join("key")).unwrap();
    for mode in ["good", "hang", "fail", "abort", "memory", "print", "large", "garbage"] {
        fs::write(at.join(mode), format!("{{\"{mode}\": 1}}")).unwrap();
    }
    folder
}

#[test]
fn a_graph_gives_the_witness_of_the_module() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for name in ["operations.wasm", "operations.graph"] {
        fs::copy(root().join("crates/witness/tests/data").join(name), at.join(name)).unwrap();
    }
    fs::write(at.join("in"), r#"{"a": 7, "b": [3, 5]}"#).unwrap();
    for (program, witness) in [("operations.wasm", "w1"), ("operations.graph", "w2")] {
        run_in(at, 0, &["witness", program, "in", witness]);
    }
    assert_eq!(fs::read(at.join("w1")).unwrap(), fs::read(at.join("w2")).unwrap());
    fs::write(at.join("in"), r#"{"a": 7}"#).unwrap();
    refused_in(at, &["witness", "operations.graph", "in", "w"], &["in: b (2 values) is missing"]);
    refused_in(
        at,
        &["prove", "operations.graph", "in", "p", "u"],
        &["this is a circom-witnesscalc graph", "tandem witness GRAPH"],
    );
}

#[test]
fn a_program_runs_only_where_it_is_asked_for() {
    let folder = place();
    let at = folder.path();
    refused_in(
        at,
        &["witness", "circuit", "good", "w"],
        &["circuit: this is an ELF program or library", "add --native"],
    );
    for relative in ["circuit", "./circuit"] {
        run_in(at, 0, &["witness", relative, "good", "w", "--native"]);
        assert_eq!(fs::read(at.join("w")).unwrap(), fs::read(demo("membership.wtns")).unwrap());
        fs::remove_file(at.join("w")).unwrap();
    }
    run_in(at, 0, &["fullprove", "good", "circuit", "key", "p", "u", "--native", "--device", "cpu"]);
    run_in(at, 0, &["verify", text(&demo("membership.vkey.json")), "u", "p"]);
    // The option makes no program of another file.
    refused_in(at, &["witness", "good", "good", "w", "--native"], &["good: this is a JSON file"]);
}

#[test]
fn how_a_program_failed_is_told() {
    let folder = place();
    let at = folder.path();
    let told = |mode: &str, status: i32, options: &[&str], parts: &[&str]| {
        let before = names(at);
        let (_, stderr) = run_in(at, status, &[&["witness", "circuit", mode, "w", "--native"], options].concat());
        let last = stderr.lines().last().unwrap_or_default();
        assert!(parts.iter().all(|part| last.contains(part)) && !stderr.contains('\x1b'), "{mode}: {stderr}");
        assert_eq!(names(at), before);
        stderr
    };
    let stderr =
        told("fail", 2, &[], &["circuit: the circuit's program ended with exit status 3 and said:", "Followed trace"]);
    assert!(stderr.contains("circuit: Failed assert in template Main line 7."), "{stderr}");
    told("abort", 2, &[], &["was ended by SIGABRT, with 8192 MiB of memory (--max-memory) and said nothing"]);
    told("memory", 2, &["--max-memory", "256"], &["ended with exit status 7"]);
    told("large", 2, &["--max-memory", "256"], &["the witness that circuit wrote: ", "expected"]);
    told("garbage", 2, &[], &["the witness that circuit wrote: "]);
    told("hang", 2, &["--max-seconds", "1"], &["was stopped after 1 s; --max-seconds sets the limit"]);
    fs::remove_file(at.join("circuit.dat")).unwrap();
    told("good", 2, &[], &["the witness that circuit wrote: "]);
    fs::write(at.join("circuit"), b"\x7fELF and no program").unwrap();
    told("good", 2, &[], &["ended with exit status 126 and said: cannot start: "]);
}

#[test]
fn what_a_program_prints_is_bounded() {
    let folder = place();
    let (_, stderr) = run_in(folder.path(), 0, &["witness", "circuit", "print", "w", "--native"]);
    assert_eq!(stderr.lines().filter(|line| line.starts_with("circuit: line ")).count(), 10_000);
    assert!(stderr.contains("circuit: (more lines are not shown)"));
}

fn is_alive(pid: &str) -> bool {
    // A zombie has no memory; nobody may have waited for the grandchild yet.
    fs::read_to_string(format!("/proc/{pid}/statm")).is_ok_and(|sizes| !sizes.starts_with("0 "))
}

/// Waits for the pids of the program and its child.
fn pids(file: &Path) -> Vec<String> {
    let begun = Instant::now();
    loop {
        let found: Vec<String> = fs::read_to_string(file).unwrap_or_default().lines().map(String::from).collect();
        if found.len() == 2 || begun.elapsed() > Duration::from_secs(10) {
            return found;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// With the child that it started itself.
#[test]
fn a_program_ends_with_what_waits_for_it() {
    let folder = place();
    let at = folder.path();
    let hang = |options: &[&str]| {
        let _ = fs::remove_file(at.join("pids"));
        let args = [&["witness", "circuit", "hang", "w", "--native", "--quiet"], options].concat();
        let child = tandem().current_dir(at).args(args).env("PIDS", at.join("pids")).spawn().unwrap();
        (child, pids(&at.join("pids")))
    };
    for (signal, status) in [("-INT", Some(130)), ("-TERM", Some(143))] {
        let (mut child, pids) = hang(&[]);
        assert!(pids.len() == 2 && pids.iter().all(|pid| is_alive(pid)), "{pids:?}");
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), status);
        assert!(!pids.iter().any(|pid| is_alive(pid)), "{signal}: {pids:?}");
    }
    let (mut child, pids) = hang(&["--max-seconds", "1"]);
    assert_eq!(child.wait().unwrap().code(), Some(2));
    assert!(pids.len() == 2 && !pids.iter().any(|pid| is_alive(pid)), "{pids:?}");
    let left = names(at);
    assert!(!left.iter().any(|name| name == "w" || name.contains("part")), "{left:?}");
    // Killed itself, it leaves the program to the system, which ends it.
    let (mut child, pids) = hang(&[]);
    child.kill().unwrap();
    child.wait().unwrap();
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(
        pids.iter().filter(|pid| is_alive(pid)).count(),
        1,
        "the program has ended, its own child is its own matter"
    );
    for pid in pids.iter().filter(|pid| is_alive(pid)) {
        Command::new("kill").args(["-KILL", pid]).status().unwrap();
    }
}
