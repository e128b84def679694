//! Where results go: files that appear whole or not at all, what is open already, and what a run that was killed leaves.

mod support;

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::files::{element, squarings, wtns, BN254_R};
use support::{binary, demo, expect, names, refused_in, root, run_in, tandem, text};

/// A folder with a key, its verification key, a circuit, its program, input and witness.
fn place() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for name in ["zkey", "wtns", "vkey.json"] {
        fs::copy(demo(&format!("membership.{name}")), at.join(name)).unwrap();
    }
    fs::copy(root().join("crates/witness/tests/data/multiplier.wasm"), at.join("wasm")).unwrap();
    fs::write(at.join("input"), r#"{"a": 3, "b": 5}"#).unwrap();
    fs::write(at.join("r1cs"), squarings(5).0).unwrap();
    fs::write(at.join("words"), (0..8u64).rev().flat_map(u64::to_le_bytes).collect::<Vec<_>>()).unwrap();
    folder
}

/// Runs a script in which "$1" is the program.
#[track_caller]
fn shell(at: &Path, status: i32, script: &str) -> (String, String) {
    let program = binary();
    let args = ["-c", script, "bash", text(&program)];
    expect(status, Command::new("bash").current_dir(at).args(args).output().unwrap(), &args)
}

/// Of `multiplier.wasm` and the input.
fn witness() -> Vec<u8> {
    wtns(&BN254_R, &[1, 15, 3, 5].map(element))
}

#[test]
fn what_is_open_is_written_to_and_keeps_what_it_has() {
    let folder = place();
    let at = folder.path();
    symlink("/dev/stdout", at.join("link")).unwrap();
    let all = [b"old".to_vec(), witness(), b"more".to_vec()].concat();
    let log = at.join("log");
    for name in ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/proc/thread-self/fd/1", "link"] {
        // As with > and as with >>.
        for append in [false, true] {
            fs::write(&log, "").unwrap();
            let mut file = OpenOptions::new().write(true).append(append).open(&log).unwrap();
            file.write_all(b"old").unwrap();
            let args = ["witness", "wasm", "input", name, "--quiet"];
            let child = tandem().current_dir(at).args(args).stdout(file.try_clone().unwrap()).spawn().unwrap();
            expect(0, child.wait_with_output().unwrap(), &args);
            file.write_all(b"more").unwrap();
            assert!(fs::read(&log).unwrap() == all, "{name}, {append}");
        }
    }
    assert!(at.join("link").is_symlink());
    for name in ["/dev/stderr", "/dev/fd/2"] {
        let output = tandem().current_dir(at).args(["witness", "wasm", "input", name, "--quiet"]).output().unwrap();
        assert!(output.status.success() && output.stderr == witness(), "{name}");
    }
    // Others that a shell opened, and those of another process.
    for (redirected, name) in [("3>log", "/dev/fd/3"), ("3>>log", "/proc/self/fd/3"), ("3>&1 >log 3>&1", "-")] {
        fs::write(&log, "").unwrap();
        let script =
            format!("{{ printf old >&3; \"$1\" witness wasm input {name} --quiet; printf more >&3; }} {redirected}");
        shell(at, 0, &script);
        assert!(fs::read(&log).unwrap() == all, "{name}");
    }
    fs::write(&log, "old").unwrap();
    let file = OpenOptions::new().write(true).open(&log).unwrap();
    let name = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    run_in(at, 0, &["witness", "wasm", "input", &name, "--quiet"]);
    assert!(fs::read(&log).unwrap() == all[..all.len() - 4]);
}

#[test]
fn every_command_writes_to_a_stream() {
    let folder = place();
    let at = folder.path();
    let output = |args: &[&str]| {
        let output = tandem().current_dir(at).args(args).stderr(Stdio::inherit()).output().unwrap();
        assert!(output.status.success(), "{args:?}");
        output.stdout
    };
    let file = |args: &[&str]| {
        run_in(at, 0, args);
        let bytes = fs::read(at.join("made")).unwrap();
        fs::remove_file(at.join("made")).unwrap();
        bytes
    };
    for args in [
        &["export-vkey", "zkey", "FILE"][..],
        &["export-solidity", "zkey", "FILE"],
        &["setup", "r1cs", "FILE", "--seed", "s", "--quiet"],
        &["ptau", "--test", "3", "FILE", "--quiet"],
        &["sort", "words", "FILE", "--device", "cpu", "--quiet"],
        &["hash", "poseidon", "words", "FILE", "--device", "cpu", "--quiet", "--tree"],
        &["witness", "wasm", "input", "FILE", "--quiet"],
    ] {
        let with = |name| args.iter().map(|arg| if *arg == "FILE" { name } else { *arg }).collect::<Vec<_>>();
        assert!(output(&with("-")) == file(&with("made")), "{args:?}");
    }
    // Both results of a proof, one after the other; and the trace.
    let both = output(&["prove", "zkey", "wtns", "-", "-", "--device", "cpu", "--quiet"]);
    let mut texts = serde_json::Deserializer::from_slice(&both).into_iter::<serde_json::Value>().map(Result::unwrap);
    assert!(texts.next().unwrap()["pi_a"].is_array() && texts.next().unwrap().is_array() && texts.next().is_none());
    let two = ["prove", "zkey", "wtns", "p", "u", "--more", "wtns", "-", "-", "--device", "cpu", "--quiet"];
    assert_eq!(serde_json::Deserializer::from_slice(&output(&two)).into_iter::<serde_json::Value>().count(), 2);
    let traced = output(&["inspect", "zkey", "--json", "--trace", "-"]);
    assert_eq!(serde_json::Deserializer::from_slice(&traced).into_iter::<serde_json::Value>().count(), 2);
    let plot = ["bench", "broadcast", "-b", "4K", "-e", "4K", "-n", "1", "--device", "sim:2", "--plot", "-", "--quiet"];
    assert!(String::from_utf8(output(&plot)).unwrap().contains("<svg "));
}

#[test]
fn inputs_come_through_pipes() {
    let folder = place();
    let at = folder.path();
    run_in(at, 0, &["prove", "zkey", "wtns", "proof", "public", "--device", "cpu", "--quiet"]);
    let (topology, _) = run_in(at, 0, &["topo", "--preset", "dgx1-v100", "--json"]);
    fs::write(at.join("topology"), topology).unwrap();
    // With `input` through a pipe, or as stdin itself.
    let fed = |input: &str, args: &[&str], status: i32, is_pipe: bool| {
        let mut command = tandem();
        command.current_dir(at).args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        if !is_pipe {
            command.stdin(File::open(at.join(input)).unwrap());
            return expect(status, command.output().unwrap(), args);
        }
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        // Who refuses does not read to the end.
        let _ = child.stdin.take().unwrap().write_all(&fs::read(at.join(input)).unwrap());
        expect(status, child.wait_with_output().unwrap(), args)
    };
    for is_pipe in [true, false] {
        for name in ["-", "/dev/stdin", "/dev/fd/0"] {
            assert_eq!(fed("vkey.json", &["verify", name, "public", "proof"], 0, is_pipe).0, "OK\n");
            assert_eq!(fed("public", &["verify", "vkey.json", name, "proof"], 0, is_pipe).0, "OK\n");
            assert_eq!(fed("proof", &["verify", "vkey.json", "public", name], 0, is_pipe).0, "OK\n");
            assert!(fed("vkey.json", &["export-solidity", name], 0, is_pipe).0.contains("contract Groth16Verifier"));
            fed("input", &["witness", "wasm", name, "w", "--quiet"], 0, is_pipe);
            assert!(fs::read(at.join("w")).unwrap() == witness());
            fed("wasm", &["witness", name, "input", "w2", "--quiet"], 0, is_pipe);
            fed("topology", &["topo", "--from", name], 0, is_pipe);
            let (_, stderr) = fed("public", &["verify", "vkey.json", name, "-"], 2, is_pipe);
            assert!(stderr.contains("two inputs"), "{stderr}");
        }
    }
    // What must know its length says so.
    for args in [
        &["prove", "-", "wtns", "p", "u", "--device", "cpu"][..],
        &["export-vkey", "-", "v"],
        &["setup", "-", "k"],
        &["sort", "-", "s"],
        &["reduce", "-"],
        &["hash", "poseidon", "-", "h"],
        &["inspect", "-"],
    ] {
        let (_, stderr) = fed("words", args, 2, true);
        assert!(stderr.contains("/dev/stdin: ") && stderr.contains("not a regular file"), "{args:?}: {stderr}");
    }
    fed("wtns", &["prove", "zkey", "-", "p", "u", "--device", "cpu", "--quiet"], 0, false);
    // A pipe with a name, and one of a shell's.
    let script = r#"mkfifo pipe; cat public > pipe & "$1" verify <(cat vkey.json) pipe <(cat proof)"#;
    assert_eq!(shell(at, 0, script).0, "OK\n");
    refused_in(at, &["verify", "vkey.json", "pipe", "./pipe"], &["two inputs"]);
}

#[test]
fn what_is_not_open_for_writing_is_refused() {
    let folder = place();
    let at = folder.path();
    for (redirected, name, part) in
        [("3<words", "/dev/fd/3", "open for reading only"), ("3>&-", "/dev/fd/3", "Bad file descriptor")]
    {
        let (_, stderr) = shell(at, 2, &format!("exec {redirected}; exec \"$1\" witness wasm input {name}"));
        assert!(stderr.contains(part) && stderr.contains(name), "{stderr}");
    }
    // What is read from does not grow by what is written.
    let mut words = OpenOptions::new().read(true).append(true).open(at.join("words")).unwrap();
    let args = ["sort", "words", "-", "--device", "cpu"];
    let child =
        tandem().current_dir(at).args(args).stdout(words.try_clone().unwrap()).stderr(Stdio::piped()).spawn().unwrap();
    let (_, stderr) = expect(2, child.wait_with_output().unwrap(), &args);
    assert!(stderr.contains("replace the input"), "{stderr}");
    let mut bytes = Vec::new();
    words.rewind().unwrap();
    words.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes.len(), 64);
}

#[test]
fn a_full_stream_leaves_the_old_file() {
    let folder = place();
    let at = folder.path();
    fs::write(at.join("proof"), "old").unwrap();
    let (_, stderr) = run_in(at, 2, &["prove", "zkey", "wtns", "proof", "/dev/full", "--device", "cpu"]);
    assert!(stderr.contains("/dev/full: cannot write"), "{stderr}");
    assert_eq!(fs::read(at.join("proof")).unwrap(), b"old");
}

#[test]
fn links_stay_links() {
    let folder = place();
    let at = folder.path();
    fs::create_dir(at.join("kept")).unwrap();
    fs::write(at.join("kept/old"), "old").unwrap();
    for (link, to) in [("a", "kept/old"), ("b", "kept/new"), ("c", "b2"), ("b2", "kept/newer")] {
        symlink(to, at.join(link)).unwrap();
    }
    for (link, file) in [("a", "kept/old"), ("b", "kept/new"), ("c", "kept/newer")] {
        run_in(at, 0, &["witness", "wasm", "input", link, "--quiet"]);
        assert!(at.join(link).is_symlink() && !at.join(file).is_symlink());
        assert!(fs::read(at.join(file)).unwrap() == witness(), "{link}");
    }
    symlink("none/new", at.join("lost")).unwrap();
    symlink("circle", at.join("circle")).unwrap();
    refused_in(at, &["witness", "wasm", "input", "lost"], &["lost: ", "No such file"]);
    refused_in(at, &["witness", "wasm", "input", "circle"], &["circle: ", "symbolic links"]);
    symlink("kept/next", at.join("d")).unwrap();
    refused_in(at, &["prove", "zkey", "wtns", "d", "kept/next"], &["two outputs"]);
}

#[test]
fn witnesses_are_their_owners_alone() {
    let folder = place();
    let at = folder.path();
    let mode = |name: &str| fs::metadata(at.join(name)).unwrap().permissions().mode() & 0o777;
    let under_umask = |command: &str| shell(at, 0, &format!("umask 022; exec \"$1\" {command}"));
    under_umask("witness wasm input w --quiet");
    under_umask("export-vkey zkey v");
    under_umask("bench setup --log-n 4 --runs 1 --keep .");
    assert_eq!(
        (mode("w"), mode("v"), mode("n4.wtns"), mode("n4.zkey"), mode("n4.r1cs")),
        (0o600, 0o644, 0o600, 0o644, 0o644)
    );
    for kept in [0o644, 0o640, 0o400] {
        fs::set_permissions(at.join("w"), fs::Permissions::from_mode(kept)).unwrap();
        under_umask("witness wasm input w --quiet");
        assert_eq!(mode("w"), kept);
    }
}

/// Starts a setup that takes a while, and waits until its hidden file is there.
fn under_way(at: &Path, out: &str) -> (std::process::Child, String) {
    let before = names(at);
    let args = ["setup", "big", out, "--quiet"];
    let child = tandem().current_dir(at).args(args).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    let is_new = |name: &String| name.ends_with(".part") && !before.contains(name);
    let mut part = None;
    while part.is_none() && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(2));
        part = names(at).into_iter().find(is_new);
    }
    (child, part.expect("a hidden file within a minute"))
}

#[test]
fn what_a_killed_run_leaves_is_removed_by_the_next() {
    let folder = place();
    let at = folder.path();
    fs::write(at.join("big"), squarings((1 << 16) - 10).0).unwrap();
    let (mut killed, dead) = under_way(at, "k");
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(names(at).contains(&dead));
    // Another's is let alone, whoever comes; the dead one goes.
    let (mut other, live) = under_way(at, "k");
    assert!(names(at).contains(&live) && !names(at).contains(&dead));
    run_in(at, 0, &["witness", "wasm", "input", "w", "--quiet"]);
    assert!(names(at).contains(&live));
    other.kill().unwrap();
    other.wait().unwrap();
    run_in(at, 0, &["witness", "wasm", "input", "w", "--quiet"]);
    assert!(names(at).iter().all(|name| !name.ends_with(".part")), "{:?}", names(at));
}

#[test]
fn names_that_are_no_text() {
    let folder = place();
    let at = folder.path();
    let name = OsStr::from_bytes(b"rows\xff.json");
    for _ in 0..2 {
        let bench = ["bench", "ntt", "--log-n", "4", "--runs", "1", "--device", "cpu", "--quiet", "--json"];
        expect(0, tandem().current_dir(at).args(bench).arg(name).output().unwrap(), &bench);
    }
    let rows = fs::read_to_string(at.join(name)).unwrap();
    let rows: Vec<serde_json::Value> = rows.lines().map(|row| serde_json::from_str(row).unwrap()).collect();
    assert_eq!(rows.len(), 2);
    assert!(rows[0]["command"].as_str().unwrap().contains("bench ntt"), "{rows:?}");
    expect(0, tandem().current_dir(at).args(["witness", "wasm", "input"]).arg(name).output().unwrap(), &[]);
    assert!(fs::read(at.join(name)).unwrap() == witness());
}

#[test]
fn rows_are_appended_to_what_is_open() {
    let folder = place();
    let at = folder.path();
    let log = at.join("log");
    for name in ["-", "/dev/stdout", "log"] {
        fs::write(&log, "old\n").unwrap();
        let file = OpenOptions::new().append(true).open(&log).unwrap();
        let args = ["bench", "ntt", "--log-n", "4..5", "--runs", "1", "--device", "cpu", "--quiet", "--json", name];
        let child = tandem().current_dir(at).args(args).stdout(file).spawn().unwrap();
        expect(0, child.wait_with_output().unwrap(), &args);
        let text = fs::read_to_string(&log).unwrap();
        assert!(text.starts_with("old\n") && text.matches("\"what\":\"ntt\"").count() == 2, "{name}: {text}");
    }
}
