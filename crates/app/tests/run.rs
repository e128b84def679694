//! `tandem run`: what it passes on, with which status it ends, and that nothing is left.

mod support;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::{expect, run, tandem};

const SOON: Duration = Duration::from_secs(20);

/// How many processes have `mark` in their command line.
fn alive(mark: &str) -> usize {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(mark)).count()
}

fn until(condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < SOON, "it does not come");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn each_process_has_its_rank() {
    let script = "echo \"$TANDEM_RANK of $TANDEM_SIZE at $TANDEM_MEET\"; echo problem >&2";
    let (stdout, stderr) = run(0, &["run", "-n", "3", "sh", "-c", script]);
    let mut lines: Vec<&str> = stdout.lines().collect();
    lines.sort_unstable();
    let place = lines[0].split(" at ").nth(1).unwrap();
    let wanted: Vec<String> = (0..3).map(|rank| format!("[{rank}] {rank} of 3 at {place}")).collect();
    assert_eq!(lines, wanted);
    assert_eq!((0..3).filter(|rank| stderr.contains(&format!("[{rank}] problem\n"))).count(), 3, "{stderr}");
    assert!(!std::path::Path::new(place).exists());
    // What is behind the program is the program's.
    assert_eq!(
        run(0, &["run", "--processes", "1", "echo", "-n", "5", "--device", "moon", "--help"]).0,
        "[0] 5 --device moon --help\n"
    );
}

#[test]
fn the_first_that_fails_gives_the_status() {
    let script = "[ $TANDEM_RANK = 1 ] && exit 7; sleep 100";
    let begun = Instant::now();
    let (_, stderr) = run(7, &["run", "-n", "3", "sh", "-c", script]);
    assert!(stderr.contains("process 1 (pid ") && stderr.contains("exit status: 7; the others were ended"), "{stderr}");
    run(128 + 6, &["run", "-n", "2", "sh", "-c", "kill -6 $$"]);
    assert!(begun.elapsed() < SOON);
    for args in [
        &["run", "-n", "2", "/nowhere/at/all"][..],
        &["run", "-n", "0", "true"],
        &["run", "-n", "33", "true"],
        &["run", "-n", "2"],
        &["run", "true"],
    ] {
        let (stdout, stderr) = run(2, args);
        assert!(stdout.is_empty() && stderr.lines().count() == 1, "{args:?}: {stderr}");
    }
}

/// Ctrl-C, SIGTERM and SIGKILL leave no process.
#[test]
fn signals_end_all() {
    for (signal, status) in [("INT", Some(130)), ("TERM", Some(143)), ("KILL", None)] {
        let mark = format!("{}.{}", std::process::id(), status.unwrap_or(0));
        let mut command = tandem();
        command.args(["run", "-n", "3", "sleep", &format!("9{mark}")]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // It, and the three.
        until(|| alive(&mark) == 4);
        Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status().unwrap();
        let output = child.wait_with_output().unwrap();
        match status {
            Some(status) => drop(expect(status, output, &[signal])),
            None => assert!(output.status.code().is_none()),
        }
        until(|| alive(&mark) == 0);
    }
}

/// Each node is started by itself; ranks go on from node to node.
#[test]
fn nodes_are_started_one_by_one() {
    let script = "echo \"$TANDEM_RANK of $TANDEM_SIZE on $TANDEM_NODES at $TANDEM_NODES_AT\"";
    let node = |index: &str, at: &str, secret: &str| {
        let mut command = tandem();
        command.args(["run", "--nodes", "3", "--node", index, "--at", at, "-n", "2", "sh", "-c", script]);
        command.env("TANDEM_NODES_SECRET", secret);
        let end = command.output().unwrap();
        (end.status.code(), String::from_utf8(end.stdout).unwrap(), String::from_utf8(end.stderr).unwrap())
    };
    let secret = "a secret for this test";
    let (status, stdout, _) = node("1", "host-0:4300", secret);
    let mut lines: Vec<&str> = stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!((status, lines), (Some(0), vec!["[2] 2 of 6 on 3 at host-0:4300", "[3] 3 of 6 on 3 at host-0:4300"]));
    for (index, at, secret, words) in [
        ("3", "host-0:4300", secret, "node 3 of 3"),
        ("1", "host-0", secret, "\"host-0\" of process 0 is not HOST:PORT"),
        ("1", "host-0:43000000", secret, "is not HOST:PORT"),
        ("1", "host-0:4300", "", "fewer than 16 characters"),
    ] {
        let (status, stdout, stderr) = node(index, at, secret);
        assert!(status == Some(2) && stdout.is_empty() && stderr.contains(words), "{status:?} {stderr}");
    }
    run(2, &["run", "--nodes", "2", "-n", "1", "true"]);
    run(2, &["run", "--node", "0", "-n", "1", "true"]);
}
