//! Teams of several processes, on pretend PEs: what a team of one process does, what becomes of it when a process ends or stops, and the
//! orders of memory between processes.
//!
//! A test starts this program again, once for each process, to play a scene ([`member`]).

mod drills;
mod gpus;
mod launch;
mod litmus;
#[allow(dead_code)]
#[path = "../../examples/lu.rs"]
mod lu;
mod nodes;
#[allow(dead_code, clippy::duplicate_mod)]
#[path = "../../examples/particles.rs"]
mod particles;
#[path = "../../examples/shift.rs"]
mod shift;
mod suite;

use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tandem_fabric::{Meeting, Options, Team};

/// The scene that a process plays, and how many PEs each has.
const SCENE: &str = "TANDEM_TEST_CHILD";
const PES: &str = "TANDEM_TEST_PES";
/// How many rounds the tests of memory orders have, if not a few.
const ROUNDS: &str = "TANDEM_TEST_ROUNDS";

/// No scene takes longer, on a machine that does other things too.
fn longest() -> Duration {
    Duration::from_secs(if std::env::var_os(ROUNDS).is_some() { 3600 } else { 240 })
}

/// What one process plays.
#[test]
fn member() {
    let Ok(scene) = std::env::var(SCENE) else { return };
    let play = [suite::SCENES, drills::SCENES, launch::SCENES, litmus::SCENES, nodes::SCENES, gpus::SCENES, SCENES]
        .concat()
        .into_iter()
        .find(|(name, _)| *name == scene);
    play.unwrap_or_else(|| panic!("no scene {scene}")).1();
}

type Scene = (&'static str, fn());
const SCENES: &[Scene] = &[
    ("shift", || shift::main().unwrap()),
    ("lu", || ran(lu::run(line("--n 61 --block 4")).map_err(|wrong| wrong.text))),
    ("particles", || ran(particles::run(line("--n 150 --steps 40")).map_err(|wrong| wrong.text))),
];

/// The arguments of an example, with the PEs of this process.
fn line(more: &str) -> Vec<String> {
    let device = if has_gpu() {
        format!("cuda:{}", own_gpus(own_pes()).iter().map(|gpu| gpu.index.to_string()).collect::<Vec<_>>().join(","))
    } else {
        format!("sim:{}", own_pes())
    };
    format!("--device {device} {more}").split_whitespace().map(String::from).collect()
}

/// The process with PE 0 checks what all have done.
fn ran(said: Result<String, String>) {
    assert_eq!(said.unwrap().contains("bit"), rank() == 0);
}

/// The rank of this process.
fn rank() -> usize {
    std::env::var("TANDEM_RANK").unwrap().parse().unwrap()
}

/// How many PEs this process has.
fn own_pes() -> usize {
    std::env::var(PES).unwrap().split(',').nth(rank()).unwrap().parse().unwrap()
}

/// Opens a team of pretend PEs, or where TANDEM_TEST_DEVICE is `cuda` one of GPUs: each PE has its own, as far as there are so many.
fn open(options: Options) -> Team {
    try_open(own_pes(), options).unwrap()
}

fn has_gpu() -> bool {
    std::env::var("TANDEM_TEST_DEVICE").is_ok_and(|device| device == "cuda")
}

fn try_open(pes: usize, options: Options) -> tandem_fabric::Result<Team> {
    let meeting = Meeting::from_env()?.unwrap();
    if has_gpu() {
        let devices: Vec<_> = own_gpus(pes).into_iter().map(|gpu| gpu.usable.unwrap()).collect();
        return Team::cuda_in(meeting, &devices, options);
    }
    Team::sim_in(meeting, pes, options)
}

/// The GPUs of this process's PEs.
fn own_gpus(pes: usize) -> Vec<tandem_cuda::Found> {
    let all: Vec<_> = tandem_cuda::probe().unwrap().into_iter().filter(|gpu| gpu.usable.is_ok()).collect();
    let list = std::env::var(PES).unwrap();
    let first: usize = list.split(',').take(rank()).map(|pes| pes.parse::<usize>().unwrap()).sum();
    (first..first + pes).map(|pe| all[pe % all.len()].clone()).collect()
}

/// Waits until the queues of all processes have come here.
fn meet(team: &Team) {
    team.barrier().unwrap();
    team.synchronize().unwrap();
}

/// The processes of a team, by rank.
struct Cast(Vec<Option<Child>>);

impl Cast {
    /// Processes with so many PEs each. `change` may give one other variables.
    fn start(scene: &str, pes: &[usize], change: impl Fn(usize, &mut Command)) -> Self {
        let place = Meeting::unique();
        let list = pes.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        let one = |rank: usize| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", "member", "--nocapture", "--test-threads=1"]);
            command.env(SCENE, scene).env(PES, &list).env(Meeting::PLACE, &place);
            // Enough for all of its PEs on one GPU, and no more, so that there are some for the others (Team::cuda).
            command.env("CUDA_DEVICE_MAX_CONNECTIONS", (8 * pes[rank].min(4)).to_string());
            command
                .env(Meeting::RANK_AND_SIZE.0, rank.to_string())
                .env(Meeting::RANK_AND_SIZE.1, pes.len().to_string());
            change(rank, &mut command);
            Some(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
        };
        Cast((0..pes.len()).map(one).collect())
    }

    /// What a process has printed when it has ended.
    fn end(&mut self, rank: usize) -> Output {
        let mut child = self.0[rank].take().unwrap();
        let begun = Instant::now();
        // What they print fits the pipe.
        while child.try_wait().unwrap().is_none() {
            if begun.elapsed() > longest() {
                child.kill().unwrap();
                panic!("process {rank} does not end: {}", text(&child.wait_with_output().unwrap()));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        child.wait_with_output().unwrap()
    }

    /// Sees that these processes end well.
    fn succeed(&mut self, ranks: impl IntoIterator<Item = usize>) {
        let ends: Vec<(usize, Output)> = ranks.into_iter().map(|rank| (rank, self.end(rank))).collect();
        let failed: Vec<String> = ends
            .iter()
            .filter(|(_, end)| !end.status.success())
            .map(|(rank, end)| format!("process {rank}: {}", text(end)))
            .collect();
        assert!(failed.is_empty(), "{}", failed.join("\n"));
    }
}

impl Drop for Cast {
    fn drop(&mut self) {
        for child in self.0.iter_mut().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn text(output: &Output) -> String {
    format!("{}: {}{}", output.status, String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Plays a scene that ends well in every process.
fn play(scene: &str, pes: &[usize]) {
    Cast::start(scene, pes, |_, _| {}).succeed(0..pes.len());
}

/// The examples, over one process and several.
#[test]
fn the_examples_run_over_processes() {
    for pes in [&[1][..], &[1, 1], &[1, 1, 1, 1]] {
        play("shift", pes);
    }
    for pes in [&[1, 1][..], &[1, 2, 1]] {
        play("lu", pes);
        play("particles", pes);
    }
}
