//! Processes that are killed, stop, leave, or are started with other options. The others name them, at once or after the timeout.

use super::{meet, open, play, rank, text, Cast, Scene};
use rustix::process::{getpid, kill_process, Signal as Blow};
use std::time::{Duration, Instant};
use tandem_fabric::exec::Combine;
use tandem_fabric::topology::Topology;
use tandem_fabric::{
    Collectives, Compare, Error, Fault, FaultKind, Meeting, OneSided, Options, Signal, Symmetric, Team,
};

pub(super) const SCENES: &[Scene] = &[
    ("killed in a put", killed_in_a_put),
    ("killed in a collective", killed_in_a_collective),
    ("killed before a barrier", || lost_before_a_barrier(true)),
    ("panics before a barrier", || lost_before_a_barrier(false)),
    ("killed in an allocation", killed_in_an_allocation),
    ("stops before a barrier", stops_before_a_barrier),
    ("stops before an allocation", stops_before_an_allocation),
    ("leaves", leaves),
    ("ends in order", ends_in_order),
    ("other window", other_window),
    ("other call", other_call),
    ("other size", other_size),
];

/// Longer than any of these drills takes: who waits for it has not noticed.
pub(super) const LONG: Duration = Duration::from_secs(60);
/// How soon a process that ends is noticed, on a machine that does much else.
pub(super) const SOON: Duration = Duration::from_secs(15);
pub(super) const SHORT: Duration = Duration::from_secs(3);
/// The one that something happens to, of three.
pub(super) const VICTIM: usize = 1;

pub(super) fn patient() -> Options {
    Options { timeout: LONG, ..Options::default() }
}

pub(super) fn strike(blow: Blow) {
    kill_process(getpid(), blow).unwrap();
}

/// Kills this process in a while, wherever it is then.
fn strike_later() {
    std::thread::spawn(|| {
        std::thread::sleep(Duration::from_millis(60));
        strike(Blow::KILL);
    });
}

pub(super) fn fault(error: Error) -> Fault {
    match error {
        Error::Fault(fault) => *fault,
        other => panic!("{other:?} is no fault"),
    }
}

/// Sees that a fault says that the victim's process has ended.
pub(super) fn is_loss(team: &Team, found: &Fault, begun: Instant) {
    assert!(begun.elapsed() < SOON, "noticed after {:?}", begun.elapsed());
    assert_eq!((found.kind, found.peer, found.process), (FaultKind::Process, Some(VICTIM), team.process_of(VICTIM)));
    let text = team.check().unwrap_err().to_string();
    let pid = team.process_of(VICTIM).unwrap().pid;
    assert!(text.contains(&format!("PE 1 of process 1 (pid {pid}")) && text.contains(") is lost"), "{text}");
}

/// Sees that a part of the team without the victim goes on.
fn goes_on(spared: &Team, memory: &Symmetric<u64>) {
    for queue in spared.queues() {
        queue.put(memory, memory, 1 - queue.me()).unwrap();
    }
    spared.barrier().unwrap();
    spared.synchronize().unwrap();
    spared.read(0, memory).unwrap();
    // Of several nodes, memory is there as long as its process is.
    meet(spared);
}

fn killed_in_a_put() {
    let team = open(patient());
    let spared = team.split(&[0, 2]).unwrap();
    let [data, word]: [Symmetric<u64>; 2] = [team.alloc(1 << 18).unwrap(), team.alloc(1).unwrap()];
    meet(&team);
    if rank() == VICTIM {
        strike_later();
        loop {
            (0..3).for_each(|pe| team.queue(VICTIM).put(&data, &data, pe).unwrap());
            team.queue(VICTIM).synchronize().unwrap();
        }
    }
    let begun = Instant::now();
    let queue = team.queue(rank());
    queue.signal_wait_until(&word, Compare::Eq, 1, Some(VICTIM)).unwrap();
    is_loss(&team, &fault(queue.synchronize().unwrap_err()), begun);
    // The host's waits and all else of the team are over too.
    assert_eq!(fault(team.wait_until(rank(), &word, Compare::Eq, 1, None).unwrap_err()).peer, Some(VICTIM));
    assert_eq!(fault(team.alloc::<u8>(1).unwrap_err()).peer, Some(VICTIM));
    goes_on(&spared, &data.slice(0..100).unwrap());
    // New memory needs all processes.
    let text = spared.alloc::<u8>(1).unwrap_err().to_string();
    assert!(text.contains("process 1 (pid"), "{text}");
}

fn killed_in_a_collective() {
    let team = open(patient());
    let all = Collectives::new(&team, &Topology::preset("dgx1-v100").unwrap()).unwrap();
    let [small, large]: [Symmetric<u64>; 2] = [team.alloc(100).unwrap(), team.alloc(200_000).unwrap()];
    if rank() == VICTIM {
        strike_later();
    }
    let begun = Instant::now();
    let error = loop {
        let done =
            all.all_reduce(Combine::Sum, &small, &small).and_then(|()| all.all_reduce(Combine::Max, &large, &large));
        if let Err(error) = done.and_then(|()| team.synchronize()) {
            break error;
        }
    };
    assert!(begun.elapsed() < SOON, "noticed after {:?}", begun.elapsed());
    match error {
        // Where it was lost as memory was agreed on.
        Error::Processes { problem, .. } => assert!(problem.contains("process 1 (pid"), "{problem}"),
        error => is_loss(&team, &fault(error), begun),
    }
}

fn lost_before_a_barrier(is_killed: bool) {
    let team = open(patient());
    let spared = team.split(&[0, 2]).unwrap();
    let memory: Symmetric<u64> = team.alloc(100).unwrap();
    meet(&team);
    if rank() == VICTIM {
        // The others are in the barrier.
        std::thread::sleep(Duration::from_millis(100));
        if is_killed {
            strike(Blow::KILL);
        }
        panic!("on purpose");
    }
    let begun = Instant::now();
    team.barrier().unwrap();
    is_loss(&team, &fault(team.synchronize().unwrap_err()), begun);
    goes_on(&spared, &memory);
}

fn killed_in_an_allocation() {
    let team = open(patient());
    if rank() == VICTIM {
        strike_later();
    }
    let begun = Instant::now();
    let error = loop {
        if let Err(error) = team.alloc::<u64>(1 << 14) {
            break error;
        }
    };
    assert!(begun.elapsed() < SOON, "noticed after {:?}", begun.elapsed());
    match error {
        Error::Processes { problem, .. } => assert!(problem.contains("process 1 (pid"), "{problem}"),
        error => is_loss(&team, &fault(error), begun),
    }
}

pub(super) fn hasty() -> Options {
    Options { timeout: SHORT, ..Options::default() }
}

/// Stops this process. Its threads may run on for a moment, and must not go on to what it is to miss.
pub(super) fn stop() {
    strike(Blow::STOP);
    std::thread::sleep(LONG);
}

fn stops_before_a_barrier() {
    let team = open(hasty());
    meet(&team);
    if rank() == VICTIM {
        stop();
    }
    let begun = Instant::now();
    team.barrier().unwrap();
    let found = fault(team.synchronize().unwrap_err());
    assert!(begun.elapsed() < LONG / 2, "{:?}", begun.elapsed());
    assert_eq!((found.kind, found.peer, found.process), (FaultKind::Barrier, Some(VICTIM), team.process_of(VICTIM)));
    let pid = team.process_of(VICTIM).unwrap().pid;
    assert!(found.to_string().contains(&format!("in vain for PE 1 of process 1 (pid {pid}) at barrier")), "{found}");
}

fn stops_before_an_allocation() {
    let team = open(hasty());
    meet(&team);
    if rank() == VICTIM {
        stop();
    }
    let begun = Instant::now();
    let text = team.alloc::<u64>(1 << 20).unwrap_err().to_string();
    assert!(begun.elapsed() < LONG / 2, "{:?}", begun.elapsed());
    assert!(text.contains("process 1 (pid"), "{text}");
    let text = team.alloc::<u64>(1).unwrap_err().to_string();
    assert!(text.contains("agree on nothing any more"), "{text}");
}

/// Who drops its team has left: its memory is there, nothing is wrong, and nobody waits for it in vain.
fn leaves() {
    let team = open(patient());
    let word: Symmetric<u64> = team.alloc(1).unwrap();
    let last: Symmetric<u64> = team.alloc(1).unwrap();
    let spared = team.split(&[0, 2]).unwrap();
    if rank() == VICTIM {
        let queue = team.queue(VICTIM);
        (0..3).for_each(|pe| queue.signal_op(&word, Signal::Set(5), pe).unwrap());
        // Not waited for: to leave is to do first what was told.
        drop((team, spared));
        std::thread::sleep(Duration::from_millis(300));
        return;
    }
    let begun = Instant::now();
    let queue = team.queue(rank());
    queue.signal_wait_until(&word, Compare::Eq, 5, Some(VICTIM)).unwrap();
    queue.synchronize().unwrap();
    std::thread::sleep(Duration::from_millis(600));
    team.check().unwrap();
    assert_eq!(team.read(VICTIM, &word).unwrap(), [5]);
    let text = team.alloc::<u8>(1).unwrap_err().to_string();
    assert!(text.contains("process 1 (pid") || text.contains("agree on nothing"), "{text}");
    // The other one is through with this too before one of them waits in vain.
    meet(&spared);
    let waited = queue.signal_wait_until(&last, Compare::Eq, 1, Some(VICTIM)).and_then(|()| queue.synchronize());
    let found = fault(waited.unwrap_err());
    assert_eq!((found.kind, found.peer), (FaultKind::Wait, Some(VICTIM)));
    assert!(begun.elapsed() < SOON, "noticed after {:?}", begun.elapsed());
}

/// The end of a process that is done is no fault of the others, whoever ends first.
fn ends_in_order() {
    let team = open(patient());
    let memory: Symmetric<u64> = team.alloc(10).unwrap();
    meet(&team);
    std::thread::sleep(Duration::from_millis(100 * rank() as u64));
    (0..3).for_each(|pe| drop(team.read(pe, &memory).unwrap()));
    team.check().unwrap();
}

fn differs(options: Options) {
    let text = super::try_open(1, options).err().unwrap().to_string();
    assert!(text.contains("process 0 (pid") && text.contains("process 1 (pid"), "{text}");
    assert!(text.contains("window: 4194304") && text.contains("window: 8388608"), "{text}");
}

fn other_window() {
    let window = if rank() == VICTIM { 8 << 20 } else { 4 << 20 };
    differs(Options { window, ..Options::default() });
}

fn other_call() {
    let team = open(patient());
    let text = team.alloc::<u8>(if rank() == VICTIM { 5 } else { 4 }).err().unwrap().to_string();
    assert!(
        text.contains("says: allocate 4 bytes; process 1 (pid") && text.contains("says: allocate 5 bytes"),
        "{text}"
    );
    // All know, so all go on.
    team.alloc::<u8>(6).unwrap();
    meet(&team);
}

fn other_size() {
    let meeting = Meeting::from_env().unwrap().unwrap().within(SOON);
    let text = Team::sim_in(meeting, 1, hasty()).err().unwrap().to_string();
    assert!(text.contains("one of 2") && text.contains("one of 3") && text.contains("process 0 (pid"), "{text}");
}

/// Plays a scene in which the second of three processes does not end well, and says how it ended.
pub(super) fn drill(scene: &str) -> String {
    drill_of(Cast::start(scene, &[1, 1, 1], |_, _| {}))
}

pub(super) fn drill_of(mut cast: Cast) -> String {
    cast.succeed((0..cast.0.len()).filter(|&rank| rank != VICTIM));
    let mut victim = cast.0[VICTIM].take().unwrap();
    let state = std::fs::read_to_string(format!("/proc/{}/stat", victim.id())).unwrap_or_default();
    let _ = victim.kill();
    // What the operating system says of it, such as `T` for one that is stopped; then how it ended.
    let state = state.rsplit(") ").next().and_then(|rest| rest.chars().next()).unwrap_or('?');
    format!("{state} {}", text(&victim.wait_with_output().unwrap()))
}

#[test]
fn a_killed_process_is_named_at_once() {
    for scene in ["killed in a put", "killed in a collective", "killed before a barrier", "killed in an allocation"] {
        let end = drill(scene);
        assert!(end.contains("signal: 9"), "{scene}: {end}");
    }
}

#[test]
fn a_panic_is_no_farewell() {
    let end = drill("panics before a barrier");
    assert!(end.contains("on purpose"), "{end}");
}

#[test]
fn a_process_that_stops_is_named_after_the_timeout() {
    for scene in ["stops before a barrier", "stops before an allocation"] {
        let end = drill(scene);
        assert!(end.starts_with("T "), "{scene}: {end}");
    }
}

#[test]
fn to_leave_is_no_fault() {
    play("leaves", &[1, 1, 1]);
    play("ends in order", &[1, 1, 1]);
}

#[test]
fn processes_that_differ_are_named() {
    play("other window", &[1, 1, 1]);
    play("other call", &[1, 1, 1]);
    let mut cast = Cast::start("other size", &[1, 1], |rank, command| {
        command.env(Meeting::RANK_AND_SIZE.1, (2 + rank).to_string());
    });
    cast.succeed([0, 1]);
}
