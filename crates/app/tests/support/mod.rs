//! What the tests of the program share: running it, and running other people's tools.
#![allow(dead_code)] // each test program uses its own part

pub(crate) mod files;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A file of the demo.
pub(crate) fn demo(name: &str) -> PathBuf {
    root().join("demo").join(name)
}

/// The program that was built for the tests, or the one that `TANDEM_BINARY` names, such as that of a release.
pub(crate) fn binary() -> PathBuf {
    std::env::var_os("TANDEM_BINARY").map_or(env!("CARGO_BIN_EXE_tandem").into(), PathBuf::from)
}

/// The program, with a cache folder of the tests' own.
pub(crate) fn tandem() -> Command {
    let mut command = Command::new(binary());
    command.env("TANDEM_CACHE_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"));
    command
}

/// Runs the program; fails the test unless it ends with `status`. Returns stdout and stderr.
#[track_caller]
pub(crate) fn run(status: i32, args: &[&str]) -> (String, String) {
    expect(status, tandem().args(args).output().unwrap(), args)
}

/// Runs the program in a folder and expects a status; its stdout and stderr.
#[track_caller]
pub(crate) fn run_in(folder: &Path, status: i32, args: &[&str]) -> (String, String) {
    expect(status, tandem().current_dir(folder).args(args).output().unwrap(), args)
}

#[track_caller]
pub(crate) fn expect(status: i32, output: Output, what: &[&str]) -> (String, String) {
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{what:?}\nstdout: {stdout}\nstderr: {stderr}");
    (stdout, stderr)
}

/// The names of the files in a folder, hidden ones too, sorted.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A path as an argument.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Runs the program in a folder on what it must refuse: status 2, one line that has all of `parts`, no result, and no file more or less.
#[track_caller]
pub(crate) fn refused_in(folder: &Path, args: &[&str], parts: &[&str]) {
    let before = names(folder);
    let (stdout, stderr) = run_in(folder, 2, args);
    assert_eq!(stdout, "", "{args:?}");
    assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
    for part in parts {
        assert!(stderr.contains(part), "{args:?}: expected {part:?} in: {stderr}");
    }
    assert_eq!(names(folder), before, "{args:?}: {stderr}");
}

/// Starts a command, waits until `ready` or for two seconds at most, and interrupts it.
pub(crate) fn interrupted(
    folder: &Path,
    signal: &str,
    args: &[&str],
    ready: impl Fn(&[String]) -> bool,
) -> (Option<i32>, Duration) {
    let mut child = tandem().current_dir(folder).args(args).stderr(std::process::Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(2) && !ready(&names(folder)) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let sent = Instant::now();
    let killed = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(killed.success(), "it had ended already: {args:?}");
    (child.wait().unwrap().code(), sent.elapsed())
}

/// Interrupts a command that makes `out` of `in`, as soon as its hidden file is there: the old output stays as it was.
pub(crate) fn interrupts_leave_the_output(in_bytes: u64, args: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::File::create(folder.join("in")).unwrap().set_len(in_bytes).unwrap();
    fs::write(folder.join("out"), "mine").unwrap();
    let under_way = |names: &[String]| names.iter().any(|name| name.ends_with(".part"));
    for signal in ["-INT", "-TERM", "-KILL"] {
        let (status, _) = interrupted(folder, signal, args, under_way);
        assert_eq!(fs::read(folder.join("out")).unwrap(), b"mine");
        let names = names(folder);
        // What cannot be caught leaves a hidden file.
        match signal {
            "-KILL" => assert!(status.is_none() && names.len() == 3, "{status:?}, {names:?}"),
            "-INT" => assert!(status == Some(130) && names == ["in", "out"], "{status:?}, {names:?}"),
            _ => assert!(status == Some(143) && names == ["in", "out"], "{status:?}, {names:?}"),
        }
    }
}

/// A file of ones, "in", becomes so long while a command that makes a file of it reads it: it is refused, and nothing else is left.
pub(crate) fn changes_under_way_are_refused(in_bytes: usize, length: u64, args: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("in"), vec![1u8; in_bytes]).unwrap();
    let child = tandem().current_dir(at).args(args).stderr(std::process::Stdio::piped()).spawn().unwrap();
    // The output's hidden file is made when the input has been opened.
    let begun = Instant::now();
    while names(at).len() < 2 && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(1));
    }
    fs::OpenOptions::new().write(true).open(at.join("in")).unwrap().set_len(length).unwrap();
    let (_, stderr) = expect(2, child.wait_with_output().unwrap(), args);
    assert!(stderr.contains("in: ") && stderr.contains("changed while it was read"), "{length}: {stderr}");
    assert_eq!(names(at), ["in"]);
}

/// Appends so many ones to a file every millisecond while `body` runs, for a minute at most.
pub(crate) fn while_it_grows(path: &Path, bytes: usize, body: impl FnOnce()) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
            let begun = Instant::now();
            while !is_over.load(Ordering::Relaxed) && begun.elapsed() < Duration::from_secs(60) {
                file.write_all(&vec![1u8; bytes]).unwrap();
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        body();
        is_over.store(true, Ordering::Relaxed);
    });
}
