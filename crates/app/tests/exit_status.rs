//! Exit statuses: the verdict of a command stands whatever becomes of what it prints, and each way to end has its own.

mod support;

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use support::files::{squarings, wtns, BN254_R};
use support::{demo, expect, names, root, run_in, tandem, text};

/// A folder with the demo's files, a proof of it and one that is wrong.
fn place() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for name in ["zkey", "wtns", "vkey.json"] {
        fs::copy(demo(&format!("membership.{name}")), at.join(name)).unwrap();
    }
    run_in(at, 0, &["prove", "zkey", "wtns", "proof", "public", "--device", "cpu", "--quiet"]);
    let public = fs::read_to_string(at.join("public")).unwrap();
    let first = public.split('"').nth(1).unwrap();
    fs::write(at.join("wrong"), public.replacen(first, "5", 1)).unwrap();
    folder
}

/// What stdout is: read by nobody any more, or full.
fn closed() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

fn full() -> Stdio {
    OpenOptions::new().write(true).open("/dev/full").unwrap().into()
}

/// Runs the program with that stdout; fails the test unless it ends with `status`. Returns stderr.
#[track_caller]
fn run_to(stdout: Stdio, folder: &Path, status: i32, args: &[&str]) -> String {
    let child = tandem().current_dir(folder).args(args).stdout(stdout).stderr(Stdio::piped()).spawn().unwrap();
    expect(status, child.wait_with_output().unwrap(), args).1
}

#[test]
fn an_invalid_proof_is_invalid_whoever_reads() {
    let folder = place();
    let at = folder.path();
    for more in [&[][..], &["--json"], &["--json", "--trace", "t"]] {
        let verify = |public| [&["verify", "vkey.json", public, "proof"][..], more].concat();
        for stdout in [closed, full] {
            let _ = fs::remove_file(at.join("t"));
            run_to(stdout(), at, 1, &verify("wrong"));
            assert_eq!(at.join("t").exists(), more.contains(&"t"));
        }
        assert_eq!(run_to(closed(), at, 0, &verify("public")), "");
        let stderr = run_to(full(), at, 2, &verify("public"));
        assert!(stderr.contains("stdout: cannot write: No space left") && stderr.lines().count() == 1, "{stderr}");
    }
}

#[test]
fn what_must_be_finished_is_finished() {
    let folder = place();
    let at = folder.path();
    let trace = || {
        let text = fs::read(at.join("t")).unwrap();
        fs::remove_file(at.join("t")).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&text).unwrap();
        assert!(json["traceEvents"].as_array().unwrap().len() > 1);
    };
    let prove = ["prove", "zkey", "wtns", "p", "u", "--device", "cpu", "--json", "--trace", "t"];
    for (stdout, status) in [(closed(), 0), (full(), 2)] {
        run_to(stdout, at, status, &prove);
        trace();
        for name in ["p", "u"] {
            assert!(!fs::read(at.join(name)).unwrap().is_empty());
            fs::remove_file(at.join(name)).unwrap();
        }
    }
    // A trace shows also how far a command came that failed, and its own failure does not hide that.
    run_in(at, 1, &["verify", "vkey.json", "wrong", "proof", "--trace", "t"]);
    trace();
    run_in(at, 2, &["prove", "zkey", "public", "p", "u", "--device", "cpu", "--trace", "t"]);
    trace();
    let (_, stderr) = run_in(at, 1, &["verify", "vkey.json", "wrong", "proof", "--trace", "/dev/full", "--quiet"]);
    assert!(stderr.contains("/dev/full: cannot write"), "{stderr}");
    let (_, stderr) = run_in(at, 2, &["verify", "vkey.json", "public", "proof", "--trace", "/dev/full", "--quiet"]);
    assert!(stderr.contains("/dev/full: cannot write"), "{stderr}");
}

#[test]
fn results_that_cannot_be_printed() {
    let folder = place();
    let at = folder.path();
    let wasm = root().join("crates/witness/tests/data/multiplier.wasm");
    fs::copy(wasm, at.join("wasm")).unwrap();
    fs::write(at.join("input"), r#"{"a": 3, "b": 5}"#).unwrap();
    fs::write(at.join("r1cs"), squarings(5).0).unwrap();
    fs::write(at.join("words"), [1u8; 64]).unwrap();
    for (args, made) in [
        (&["inspect", "zkey"][..], ""),
        (&["inspect", "zkey", "--json"], ""),
        (&["doctor", "--device", "cpu"], ""),
        (&["doctor", "--json", "--device", "cpu"], ""),
        (&["cache"], ""),
        (&["prepare", "zkey", "--device", "cpu", "--json"], ""),
        (&["topo", "--preset", "dgx1-v100"], ""),
        (&["topo", "--preset", "dgx1-v100", "--draw", "-"], ""),
        (&["plan", "broadcast", "--gpus", "0,1", "--preset", "dgx1-v100"], ""),
        (&["completions", "bash"], ""),
        (&["--help"], ""),
        (&["--version"], ""),
        (&["reduce", "words", "--device", "cpu"], ""),
        (&["reduce", "words", "--device", "cpu", "--json"], ""),
        (&["hash", "poseidon", "words", "made", "--device", "cpu", "--json"], "made"),
        (&["sort", "words", "made", "--device", "cpu", "--json"], "made"),
        (&["witness", "wasm", "input", "made", "--json"], "made"),
        (&["setup", "r1cs", "made", "--json"], "made"),
        (&["ptau", "--test", "2", "made", "--json"], "made"),
        (&["bench", "ntt", "--log-n", "4", "--runs", "1", "--device", "cpu"], ""),
        (&["bench", "ntt", "--log-n", "4", "--runs", "1", "--device", "cpu", "--json", "-"], ""),
        (&["bench", "ntt", "--log-n", "4", "--runs", "1", "--device", "cpu", "--json", "made"], "made"),
        (
            &["bench", "broadcast", "-b", "4K", "-e", "4K", "-n", "1", "--device", "sim:2", "--plot", "made.svg"],
            "made.svg",
        ),
    ] {
        for (stdout, status) in [(closed(), 0), (full(), 2)] {
            let stderr = run_to(stdout, at, status, args);
            assert_eq!(stderr.contains("stdout: cannot write"), status == 2, "{args:?}: {stderr}");
            if !made.is_empty() {
                assert!(fs::metadata(at.join(made)).unwrap().len() > 0, "{args:?}");
                fs::remove_file(at.join(made)).unwrap();
            }
        }
    }
    // What cannot be done stays so.
    run_to(closed(), at, 2, &["inspect", "words"]);
    run_to(closed(), at, 3, &["doctor", "--device", "cuda"]);
}

#[test]
fn malformed_proofs_are_told_from_wrong_ones() {
    let folder = place();
    let at = folder.path();
    let proof: serde_json::Value = serde_json::from_slice(&fs::read(at.join("proof")).unwrap()).unwrap();
    let public: serde_json::Value = serde_json::from_slice(&fs::read(at.join("public")).unwrap()).unwrap();
    let verify = |status: i32, proof: &str, public: &str| {
        fs::write(at.join("p"), proof).unwrap();
        fs::write(at.join("u"), public).unwrap();
        let (stdout, stderr) = run_in(at, status, &["verify", "vkey.json", "u", "p"]);
        assert_eq!(stdout, if status == 1 { "INVALID\n" } else { "" }, "{proof}\n{public}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        let (stdout, _) = run_in(at, status, &["verify", "vkey.json", "u", "p", "--json"]);
        assert_eq!(stdout.contains("\"valid\":false"), status == 1, "{stdout}");
    };
    let with = |pointer: &str, value: serde_json::Value| {
        let mut proof = proof.clone();
        *proof.pointer_mut(pointer).unwrap() = value;
        proof.to_string()
    };
    let all = public.to_string();
    let p = "21888242871839275222246405745257275088696311157297823662689037894645226208583";
    let r = "21888242871839275222246405745257275088548364400416034343698204186575808495617";
    // Well formed, and not valid.
    for wrong in ["5", p, "1157920892373161954235709850086879078532699846656405640394575840079131296399"] {
        verify(1, &with("/pi_a/0", wrong.into()), &all);
        verify(1, &with("/pi_b/1/0", wrong.into()), &all);
        verify(1, &with("/pi_c/1", wrong.into()), &all);
    }
    let first = |value: &str| {
        let mut public = public.clone();
        public[0] = value.into();
        public.to_string()
    };
    verify(1, &proof.to_string(), &first("5"));
    verify(1, &proof.to_string(), &first(r));
    // Malformed, whatever else is wrong.
    for malformed in [
        "",
        "{",
        "[]",
        "null",
        &with("/pi_a", "5".into()),
        &with("/pi_b/0/1", "five".into()),
        &with("/curve", "x".into()),
    ] {
        verify(2, malformed, &all);
        verify(2, malformed, &first(r));
    }
    for malformed in ["", "{", "[", "[\"five\"]", "[]"] {
        verify(2, &proof.to_string(), malformed);
    }
    verify(2, &with("/pi_a/0", p.into()), "[\"five\"]");
}

/// The program at work on `verify`, whose public values it waits for: they come through the pipe "u".
fn waiting(folder: &Path, mut command: Command) -> (Child, File) {
    let _ = fs::remove_file(folder.join("u"));
    assert!(Command::new("mkfifo").arg(folder.join("u")).status().unwrap().success());
    let args = ["verify", "vkey.json", "u", "proof"];
    let child = command.current_dir(folder).args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Opening it waits until the program has opened the other end.
    let pipe = OpenOptions::new().write(true).open(folder.join("u")).unwrap();
    (child, pipe)
}

fn kill(child: &Child, signal: &str) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
}

/// The program behind commands of a shell.
fn after(script: &str) -> Command {
    let program = tandem();
    let mut command = Command::new("bash");
    command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.args(["-c", &format!("{script}; exec \"$@\""), "bash"]).arg(program.get_program());
    command
}

#[test]
fn each_signal_has_its_status() {
    let folder = place();
    for (signal, status) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129), ("-QUIT", 131), ("-XCPU", 152), ("-ABRT", 3)]
    {
        let (child, _pipe) = waiting(folder.path(), tandem());
        kill(&child, signal);
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.status.signal()), (Some(status), None), "{signal}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.lines().count() <= 1, "{signal}: {stderr}");
    }
    // Who started the program to outlive the terminal has it outlive the terminal.
    let (child, mut pipe) = waiting(folder.path(), after("trap '' HUP"));
    kill(&child, "-HUP");
    pipe.write_all(&fs::read(folder.path().join("public")).unwrap()).unwrap();
    drop(pipe);
    assert_eq!(expect(0, child.wait_with_output().unwrap(), &[]).0, "OK\n");
}

#[test]
fn memory_is_not_written_to_disk() {
    let folder = place();
    let before = names(folder.path()).len();
    let (child, _pipe) = waiting(folder.path(), after("ulimit -c unlimited"));
    let limits = fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().skip(4).take(2).collect::<Vec<_>>(), ["0", "0"], "{core}");
    // One whose usual action is a core file.
    kill(&child, "-ILL");
    let output = child.wait_with_output().unwrap();
    assert!(output.status.signal() == Some(4) && !output.status.core_dumped(), "{:?}", output.status);
    // The pipe alone has been added.
    assert_eq!(names(folder.path()).len(), before + 1);
}

#[test]
fn bad_files_give_2_and_missing_devices_3() {
    let folder = place();
    let at = folder.path();
    fs::write(at.join("other"), wtns(&BN254_R, &[support::files::element(1)])).unwrap();
    run_in(at, 2, &["prove", "zkey", "other", "p", "u", "--device", "cpu"]);
    run_in(at, 2, &["verify"]);
    run_in(at, 3, &["prove", "zkey", "wtns", "p", "u", "--device", "cuda:63"]);
    assert!(!text(at).is_empty() && !at.join("p").exists());
}
