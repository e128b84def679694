//! What a proof needs is made ready side by side: which error is told, that all of it ends, and that memory decides.

mod support;

use serde_json::Value;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use support::files::patched;
use support::{expect, names, root, run_in, tandem};

/// The circuit of one product: its program, inputs, a key, a witness, and files of each kind that are bad.
fn place() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::copy(root().join("crates/witness/tests/data/multiplier.wasm"), at.join("wasm")).unwrap();
    fs::copy(root().join("crates/app/tests/data/multiplier.r1cs"), at.join("r1cs")).unwrap();
    fs::write(at.join("input"), r#"{"a": 3, "b": 5}"#).unwrap();
    fs::write(at.join("other"), r#"{"a": 3}"#).unwrap();
    run_in(at, 0, &["setup", "r1cs", "key", "--seed", "x"]);
    run_in(at, 0, &["export-vkey", "key", "vkey"]);
    run_in(at, 0, &["witness", "wasm", "input", "wtns"]);
    let (key, wtns) = (fs::read(at.join("key")).unwrap(), fs::read(at.join("wtns")).unwrap());
    // Good by its header.
    fs::write(at.join("damaged"), patched(&key, 5, 0, &[0xff; 64])).unwrap();
    fs::write(at.join("cut"), &wtns[..wtns.len() - 1]).unwrap();
    folder
}

#[test]
fn errors_are_told_in_one_order() {
    let folder = place();
    let cuda = ["--device", "cuda:63"];
    let refused = |status, args: &[&str], said: &str| {
        let before = names(folder.path());
        let (_, stderr) = run_in(folder.path(), status, args);
        assert!(stderr.contains(said) && stderr.lines().count() == 1, "{args:?}: expected {said:?} in: {stderr}");
        assert_eq!(names(folder.path()), before);
    };
    for (witness, computed, key, device, status, said) in [
        // The witness first, whatever else is bad.
        ("cut", "other", "key", &[][..], 2, [": cut: ", ": other: "]),
        ("cut", "other", "damaged", &[], 2, [": cut: ", ": other: "]),
        ("cut", "other", "damaged", &cuda, 2, [": cut: ", ": other: "]),
        // Then the device.
        ("wtns", "input", "key", &cuda, 3, ["cuda:63"; 2]),
        ("wtns", "input", "damaged", &cuda, 3, ["cuda:63"; 2]),
        // A bad key is not blamed on the witness.
        ("wtns", "input", "damaged", &[], 2, [": damaged: "; 2]),
        // What is no key at all is told before anything is computed.
        ("cut", "other", "input", &[], 2, [": input: "; 2]),
    ] {
        let device = if device.is_empty() { &["--device", "cpu"] } else { device };
        refused(status, &[&["prove", key, witness, "p", "x"][..], device].concat(), said[0].trim_start_matches(": "));
        let full = ["fullprove", computed, "wasm", key, "p", "x"];
        refused(status, &[&full[..], device].concat(), said[1].trim_start_matches(": "));
    }
}

/// `prove` on a witness that comes through the pipe "late", with what the caller writes to it.
fn waiting(folder: &Path, more: &[&str]) -> (Child, fs::File) {
    let mut command = tandem();
    command.args(["prove", "key", "late", "p", "x", "--device", "cpu"]).args(more);
    piped(folder, command)
}

/// A command that reads the pipe "late", with what the caller writes to it.
fn piped(folder: &Path, mut command: Command) -> (Child, fs::File) {
    assert!(Command::new("mkfifo").arg(folder.join("late")).status().unwrap().success());
    let child = command.current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    (child, OpenOptions::new().write(true).open(folder.join("late")).unwrap())
}

/// Begin and end of a step of the host.
fn step(trace: &Path, name: &str) -> (f64, f64) {
    let trace: Value = serde_json::from_slice(&fs::read(trace).unwrap()).unwrap();
    let all = trace["traceEvents"].as_array().unwrap();
    let event = all.iter().find(|event| event["name"] == name && event["ph"] == "X" && event["pid"] == 0).unwrap();
    let begin = event["ts"].as_f64().unwrap();
    (begin, begin + event["dur"].as_f64().unwrap())
}

#[test]
fn the_key_is_loaded_while_the_witness_is_read() {
    let folder = place();
    let at = folder.path();
    let (child, mut pipe) = waiting(at, &["--trace", "t"]);
    std::thread::sleep(Duration::from_millis(1500));
    pipe.write_all(&fs::read(at.join("wtns")).unwrap()).unwrap();
    drop(pipe);
    expect(0, child.wait_with_output().unwrap(), &[]);
    assert_eq!(run_in(at, 0, &["verify", "vkey", "x", "p"]).0, "OK\n");
    let (witness, device, key) =
        (step(&at.join("t"), "read witness"), step(&at.join("t"), "open device"), step(&at.join("t"), "load key"));
    assert!(witness.1 - witness.0 > 1e6, "{witness:?}");
    assert!(device.0 < witness.1 && key.0 < witness.1 && key.1 < witness.1, "{witness:?} {device:?} {key:?}");
    assert!(step(&at.join("t"), "prove").0 >= witness.1);
}

/// Where there is no memory for both, the key waits for the end of the circuit's program.
#[test]
fn memory_for_both_is_there_or_the_key_waits() {
    let folder = place();
    let at = folder.path();
    for (limit, is_beside) in [("unlimited", true), ("4000000", false)] {
        let program = tandem();
        let mut command = Command::new("bash");
        command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.args(["-c", &format!("ulimit -v {limit}; exec \"$@\""), "bash"]).arg(program.get_program());
        // A tenth of what there is at least: a machine of 3 GB would say nothing.
        command.args(["fullprove", "late", "wasm", "key", "p", "x", "--device", "cpu", "--trace", "t"]);
        command.args(["--max-memory", if is_beside { "64" } else { "4096" }]);
        // The inputs come late: the program of so small a circuit is done before a thread has begun.
        let (child, mut pipe) = piped(at, command);
        std::thread::sleep(Duration::from_millis(1500));
        pipe.write_all(&fs::read(at.join("input")).unwrap()).unwrap();
        drop(pipe);
        expect(0, child.wait_with_output().unwrap(), &[limit]);
        fs::remove_file(at.join("late")).unwrap();
        let (witness, device) = (step(&at.join("t"), "witness"), step(&at.join("t"), "open device"));
        assert_eq!(device.0 < witness.1, is_beside, "{limit}: {witness:?} {device:?}");
        assert_eq!(run_in(at, 0, &["verify", "vkey", "x", "p"]).0, "OK\n");
    }
}

#[test]
fn a_signal_ends_all_of_it() {
    let folder = place();
    let at = folder.path();
    let before = names(at);
    for (signal, status) in [("-INT", 130), ("-TERM", 143)] {
        let (child, _pipe) = waiting(at, &[]);
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        expect(status, child.wait_with_output().unwrap(), &[signal]);
        fs::remove_file(at.join("late")).unwrap();
        assert_eq!(names(at), before);
    }
}
