//! Processes that are started together end together.

use super::{text, Scene, SCENE};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tandem_fabric::{launch, Launch, Launched, Meeting, OneSided, Options, Symmetric, Team};

pub(super) const SCENES: &[Scene] = &[("launcher", launcher), ("launched", launched)];

/// Until when what is killed is gone, on a machine that does much else.
const SOON: Duration = Duration::from_secs(20);

/// Plays `tandem run`: the program and how many are in the environment.
fn launcher() {
    let words = std::env::var("TANDEM_TEST_FOLDER").unwrap();
    let mut words = words.split('\n');
    let processes = words.next().unwrap().parse().unwrap();
    // Behind what the harness has written on the line.
    println!();
    let end = launch(&Launch { command: words.map(Into::into).collect(), processes, node: None }, || false).unwrap();
    std::process::exit(end.status().into());
}

/// A team of the processes that were started.
fn launched() {
    let team = Team::sim_in(Meeting::from_env().unwrap().unwrap(), 1, Options::default()).unwrap();
    let sum: Symmetric<u64> = team.alloc(1).unwrap();
    for queue in team.queues() {
        (0..team.size()).for_each(|pe| queue.atomic(&sum, tandem_fabric::Atomic::Add(10), pe).unwrap());
    }
    super::meet(&team);
    println!("the sum is {}", team.read(0, &sum).unwrap()[0]);
    super::meet(&team);
}

fn start(processes: usize, words: &[&str]) -> std::process::Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "member", "--nocapture", "--test-threads=1"]).env(SCENE, "launcher");
    command.env("TANDEM_TEST_FOLDER", [&[&*processes.to_string()], words].concat().join("\n"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn run(processes: usize, words: &[&str]) -> Output {
    start(processes, words).wait_with_output().unwrap()
}

/// How many processes there are whose command line holds `mark`, with those that have ended and wait to be asked for left out.
fn alive(mark: &str) -> usize {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let has_mark = |entry: &std::fs::DirEntry| {
        std::fs::read(entry.path().join("cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(mark))
    };
    all.filter(has_mark).count()
}

fn gone(mark: &str) {
    let begun = Instant::now();
    while alive(mark) > 0 {
        assert!(begun.elapsed() < SOON, "{} processes are left", alive(mark));
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn each_gets_its_rank_and_prints_behind_it() {
    let end = run(3, &["sh", "-c", "echo $TANDEM_RANK of $TANDEM_SIZE; echo to stderr >&2; printf unended; cat"]);
    assert!(end.status.success(), "{}", text(&end));
    let (out, err) = (String::from_utf8(end.stdout).unwrap(), String::from_utf8(end.stderr).unwrap());
    for rank in 0..3 {
        let lines = |text: &str| text.lines().filter(|line| line.starts_with(&format!("[{rank}] "))).count();
        assert!(
            out.contains(&format!("[{rank}] {rank} of 3\n")) && out.contains(&format!("[{rank}] unended\n")),
            "{out}"
        );
        assert_eq!((lines(&out), lines(&err)), (2, 1), "{out}{err}");
    }
}

#[test]
fn they_are_a_team() {
    let exe = std::env::current_exe().unwrap();
    let inner = format!("{SCENE}=launched exec {} --exact member --nocapture", exe.display());
    let end = run(3, &["sh", "-c", &inner]);
    let out = String::from_utf8_lossy(&end.stdout).into_owned();
    assert!(end.status.success(), "{}", text(&end));
    assert_eq!(out.matches("the sum is 30").count(), 3, "{out}");
}

/// The first that fails gives the status; the others end, also those that do not listen and what they have started.
#[test]
fn one_that_fails_ends_all() {
    let mark = format!("{}0001", std::process::id());
    let script = |fails: &str| {
        format!("trap '' TERM; [ $TANDEM_RANK = 1 ] && sleep 0.3 && {fails}; sleep {mark} & sleep {mark}; sleep {mark}")
    };
    for (fails, status) in [("exit 7", 7), ("kill -9 $$", 137)] {
        let begun = Instant::now();
        let end = run(3, &["sh", "-c", &script(fails)]);
        assert_eq!(end.status.code(), Some(status), "{}", text(&end));
        assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
        gone(&mark);
    }
}

/// A process that ends well takes with it what it has started and left behind.
#[test]
fn nothing_stays_in_the_background() {
    let mark = format!("{}0004", std::process::id());
    let end = run(2, &["sh", "-c", &format!("sleep {mark} & exit 0")]);
    assert!(end.status.success(), "{}", text(&end));
    gone(&mark);
}

/// Whatever ends who has started them ends them.
#[test]
fn they_end_with_who_has_started_them() {
    let mark = format!("{}0002", std::process::id());
    let mut launcher = start(3, &["sleep", &mark]);
    let begun = Instant::now();
    // It, and the three.
    while alive(&mark) < 3 {
        assert!(begun.elapsed() < SOON, "they do not start");
        std::thread::sleep(Duration::from_millis(10));
    }
    launcher.kill().unwrap();
    launcher.wait().unwrap();
    gone(&mark);
}

#[test]
fn who_is_asked_to_end_them_does() {
    let mark = format!("{}0003", std::process::id());
    let command = ["sleep", &mark].map(Into::into).to_vec();
    let begun = Instant::now();
    let end =
        launch(&Launch { command, processes: 2, node: None }, || begun.elapsed() > Duration::from_millis(200)).unwrap();
    assert_eq!((end.clone(), end.status()), (Launched::Asked, 143));
    gone(&mark);
}

#[test]
fn what_cannot_be_started_is_an_error() {
    for (processes, command, words) in [
        (0, vec!["true".into()], "0 processes"),
        (33, vec!["true".into()], "33 processes"),
        (2, vec![], "no program"),
        (2, vec!["/nowhere/at/all".into()], "/nowhere/at/all"),
    ] {
        let error = launch(&Launch { command, processes, node: None }, || false).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}
