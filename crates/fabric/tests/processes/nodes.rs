//! Teams over several nodes: processes that share no memory, and reach each other by TCP. Here they are of one host; between two network
//! namespaces they have links of their own, which can be cut.

use super::drills::{drill_of, fault, hasty, is_loss, patient, stop, strike, SOON, VICTIM};
use super::suite::numbers;
use super::{meet, open, rank, Cast, Scene, ROUNDS};
use rustix::process::Signal as Blow;
use std::collections::HashMap;
use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};
use tandem_fabric::exec::Tuning;
use tandem_fabric::plan::Operation;
use tandem_fabric::topology::Topology;
use tandem_fabric::{
    Atomic, Collectives, Compare, Distribution, Error, FaultKind, GlobalArray, Meeting, OneSided, Signal, Symmetric,
    Team,
};

pub(super) const SCENES: &[Scene] = &[
    ("random steps", random_steps),
    ("message passing between nodes", message_passing),
    ("store buffering between nodes", store_buffering),
    ("all to all between nodes", all_to_all),
    ("killed in a put between nodes", killed_in_a_put),
    ("stops in a put between nodes", stops_in_a_put),
    ("stops before a barrier between nodes", stops_before_a_barrier),
    ("a wait in vain", a_wait_in_vain),
    ("leaves its node", leaves),
    ("is cut off", is_cut_off),
];

/// The file that says that the link may be cut.
const FILE: &str = "TANDEM_TEST_FOLDER";

/// Whether this process is of a team over several nodes.
pub(super) fn are_several() -> bool {
    std::env::var_os(Meeting::NODES.0).is_some()
}

/// Processes with so many PEs each, on `nodes` nodes. They meet at `host`; `change` may change how they are started.
fn start_at(host: &str, scene: &str, pes: &[usize], nodes: usize, change: impl Fn(usize, &mut Command)) -> Cast {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let places: Vec<String> = (0..nodes).map(|_| Meeting::unique()).collect();
    Cast::start(scene, pes, |rank, command| {
        command.env(Meeting::PLACE, &places[rank * nodes / pes.len()]);
        command.env(Meeting::NODES.0, nodes.to_string()).env(Meeting::NODES.1, format!("{host}:{port}"));
        command.env(Meeting::NODES.2, "a secret that these tests share");
        change(rank, command);
    })
}

pub(super) fn start(scene: &str, pes: &[usize], nodes: usize) -> Cast {
    start_at("127.0.0.1", scene, pes, nodes, |_, _| {})
}

fn play(scene: &str, pes: &[usize], nodes: usize) {
    start(scene, pes, nodes).succeed(0..pes.len());
}

#[test]
fn one_to_eight_pes_on_two_to_four_nodes() {
    for (pes, nodes) in [(&[1, 1][..], 2), (&[2, 1], 2), (&[1, 2, 3], 3), (&[1, 1, 1, 1], 2), (&[1; 8], 4)] {
        play("suite", pes, nodes);
    }
}

#[test]
fn heaps_of_nodes_grow_shrink_and_stay_equal() {
    for (pes, nodes) in [(&[1, 1][..], 2), (&[1, 2, 1, 1], 2)] {
        play("heap", pes, nodes);
    }
}

#[test]
fn the_examples_run_over_nodes() {
    for (pes, nodes) in [(&[1, 1][..], 2), (&[2, 1, 1], 3)] {
        play("lu", pes, nodes);
        play("particles", pes, nodes);
    }
}

/// Programs, as kernels, reach no PE of another node, and say so.
pub(super) fn programs_are_refused(team: &Team) {
    let word: Symmetric<u64> = team.alloc(1).unwrap();
    for queue in team.queues() {
        let (me, word) = (queue.me(), word.clone());
        let far = (0..team.size()).find(|&pe| team.reaches(me, pe).is_err()).unwrap();
        queue
            .run(move |pe| {
                let all = [
                    pe.p(&word, 1, far),
                    pe.put(&word, &word, far),
                    pe.signal_op(&word, Signal::Set(1), far),
                    pe.g(&word, far).map(drop),
                    pe.fetch(&word, Atomic::Inc, far).map(drop),
                    pe.barrier(),
                ];
                for one in all {
                    let Err(Error::NoPeer { reason, .. }) = one else { panic!("{one:?}") };
                    assert!(reason.contains("on nodes") && reason.contains("needs a direct link"), "{reason}");
                }
                pe.p(&word, 7, me)
            })
            .unwrap();
    }
    team.synchronize().unwrap();
    meet(team);
    (0..team.size()).for_each(|pe| assert_eq!(team.read(pe, &word).unwrap(), [7]));
    meet(team);
}

/// Over 1 to 8 PEs of 2 to 4 nodes, with sizes of one piece and of several.
#[test]
fn collectives_over_nodes_are_those_of_one_process() {
    for (pes, nodes) in [(&[1, 1][..], 2), (&[2, 1], 2), (&[1, 2, 1], 3), (&[1; 4], 2), (&[2, 2, 2, 2], 4)] {
        play("collectives", pes, nodes);
    }
}

/// What a team of several nodes does not do is refused, in every process alike.
pub(super) fn not_there(team: &Team, all: &Collectives) {
    let (memory, wide): (Symmetric<u64>, Symmetric<u64>) =
        (team.alloc(8).unwrap(), team.alloc(8 * team.size()).unwrap());
    let queue = &team.queues()[0];
    let recorded = queue.capture(|_| all.broadcast(0, &memory, &memory)).err().unwrap().to_string();
    assert!(recorded.contains("over several nodes cannot be recorded"), "{recorded}");
    // What short runs of an array take the host to is no step of a queue.
    let [block, cyclic] =
        [Distribution::Block, Distribution::Cyclic].map(|dealt| GlobalArray::<u64>::new(team, 100, dealt).unwrap());
    match queue.capture(|_| cyclic.assign(&block)).err() {
        Some(Error::NoPeer { reason, .. }) => assert!(reason.contains("needs a direct link"), "{reason}"),
        other => panic!("{other:?}"),
    }
    assert!(all.plan(Operation::Broadcast).is_err());
    let topology = Topology::preset("dgx1-v100").unwrap();
    let some = Collectives::of(team, &topology, &[0], Tuning::default()).err().unwrap().to_string();
    assert!(some.contains("all of its PEs"), "{some}");
    // In place, each PE's own part being there.
    for pe in team.local() {
        team.write(pe, &wide.slice(8 * pe..8 * pe + 8).unwrap(), &numbers(8, pe as u64)).unwrap();
    }
    meet(team);
    all.all_gather_in_place(&wide).unwrap();
    meet(team);
    let wanted: Vec<u64> = (0..team.size()).flat_map(|pe| numbers(8, pe as u64)).collect();
    (0..team.size()).for_each(|pe| assert_eq!(team.read(pe, &wide).unwrap(), wanted, "PE {pe}"));
    meet(team);
}

#[test]
fn random_steps_do_what_a_model_does() {
    for (pes, nodes) in [(&[1, 1][..], 2), (&[2, 1, 1], 3), (&[1, 2, 1, 1], 2)] {
        play("random steps", pes, nodes);
    }
}

/// Each round every PE does some steps at random to places of its own at random PEs; all processes know all steps.
fn random_steps() {
    const LEN: usize = 3000;
    let team = open(patient());
    let n = team.size();
    let [data, from]: [Symmetric<u16>; 2] = std::array::from_fn(|_| team.alloc(LEN * n).unwrap());
    let [sums, old]: [Symmetric<u64>; 2] = std::array::from_fn(|_| team.alloc(n).unwrap());
    let source: Vec<u16> = numbers(LEN * n, 5).into_iter().map(|x| x as u16).collect();
    team.local().into_iter().for_each(|pe| team.write(pe, &from, &source).unwrap());
    let (mut model, mut model_sums) = (vec![vec![0u16; LEN * n]; n], vec![vec![0u64; n]; n]);
    meet(&team);
    for round in 0..30u64 {
        let mut last_old: HashMap<usize, u64> = HashMap::new();
        for me in 0..n {
            let mut random = numbers(40, 1 + round * 100 + me as u64).into_iter();
            let mut next = |below: usize| (random.next().unwrap() % below as u64) as usize;
            let queue = team.local().contains(&me).then(|| team.queue(me));
            let own = me * LEN;
            for _ in 0..4 {
                let (pe, len, kind) = (next(n), next(LEN / 4), next(5));
                let (to, at) = (own + next(LEN / 4), own + next(LEN / 4));
                let (there, here) = (data.slice(to..to + len).unwrap(), from.slice(at..at + len).unwrap());
                match kind {
                    0 => {
                        queue.iter().for_each(|queue| queue.put(&there, &here, pe).unwrap());
                        model[pe][to..to + len].copy_from_slice(&source[at..at + len]);
                    }
                    1 => {
                        queue.iter().for_each(|queue| queue.get(&there, &here, pe).unwrap());
                        model[me][to..to + len].copy_from_slice(&source[at..at + len]);
                    }
                    2 => {
                        let (wide, narrow) = (data.slice(own..own + LEN).unwrap(), from.slice(own..own + LEN).unwrap());
                        let count = len / 4;
                        queue.iter().for_each(|queue| queue.put_strided(&wide, 5, &narrow, 3, count, pe).unwrap());
                        (0..count).for_each(|i| model[pe][own + 5 * i] = source[own + 3 * i]);
                    }
                    3 => {
                        let value = round as u16 * 7 + to as u16;
                        queue.iter().for_each(|queue| queue.p(&data.at(to).unwrap(), value, pe).unwrap());
                        model[pe][to] = value;
                    }
                    _ => {
                        let (word, into) = (sums.at(me).unwrap(), old.at(me).unwrap());
                        let add = Atomic::Add(to as u64 + 1);
                        queue.iter().for_each(|queue| queue.fetch_atomic(&word, add, pe, &into).unwrap());
                        last_old.insert(me, model_sums[pe][me]);
                        model_sums[pe][me] += to as u64 + 1;
                    }
                }
            }
        }
        meet(&team);
        for pe in 0..n {
            assert!(team.read(pe, &data).unwrap() == model[pe], "round {round}, PE {pe}");
            assert_eq!(team.read(pe, &sums).unwrap(), model_sums[pe], "round {round}, PE {pe}");
        }
        last_old.iter().for_each(|(&me, &was)| assert_eq!(team.read(me, &old).unwrap()[me], was, "round {round}"));
        meet(&team);
    }
}

fn rounds() -> usize {
    std::env::var(ROUNDS).map_or(300, |text| text.parse().expect("TANDEM_TEST_ROUNDS is a number"))
}

/// Data, then a signal: who sees the signal sees the data.
fn message_passing() {
    let (team, rounds) = (open(patient()), rounds());
    let (data, word): (Symmetric<u64>, Symmetric<u64>) = (team.alloc(1).unwrap(), team.alloc(1).unwrap());
    let log: Symmetric<u64> = team.alloc(rounds + 1).unwrap();
    for queue in team.queues().iter().filter(|queue| queue.me() < 2) {
        let other = 1 - queue.me();
        for round in 1..=rounds {
            let number = round as u64;
            if queue.me() == 0 {
                queue.p(&data, number * 3, other).unwrap();
                queue.signal_op(&word, Signal::Set(number), other).unwrap();
                queue.signal_wait_until(&word, Compare::Ge, number, Some(other)).unwrap();
            } else {
                queue.signal_wait_until(&word, Compare::Ge, number, Some(other)).unwrap();
                queue.put(&log.at(round).unwrap(), &data, 1).unwrap();
                queue.signal_op(&word, Signal::Set(number), other).unwrap();
            }
        }
    }
    team.synchronize().unwrap();
    meet(&team);
    let wanted: Vec<u64> = (0..=rounds as u64).map(|round| round * 3).collect();
    assert!(team.read(1, &log).unwrap() == wanted, "a signal came before its data");
    meet(&team);
}

/// Each writes to the other, then reads what the other wrote: at least one sees it.
fn store_buffering() {
    let (team, rounds) = (open(patient()), rounds());
    let (data, log): (Symmetric<u64>, Symmetric<u64>) = (team.alloc(1).unwrap(), team.alloc(rounds + 1).unwrap());
    for round in 1..=rounds {
        for queue in team.queues() {
            queue.p(&data, round as u64, 1 - queue.me()).unwrap();
            queue.put(&log.at(round).unwrap(), &data, queue.me()).unwrap();
            queue.barrier().unwrap();
        }
    }
    meet(&team);
    let [a, b] = [0, 1].map(|pe| team.read(pe, &log).unwrap());
    let neither = (1..=rounds).filter(|&round| a[round] < round as u64 && b[round] < round as u64).count();
    assert_eq!(neither, 0, "rounds in which neither has seen the other");
    meet(&team);
}

/// Everyone writes to all and counts up a word of all: who has counted all sees all.
fn all_to_all() {
    let (team, rounds) = (open(patient()), rounds() / 4);
    let n = team.size();
    let (data, word): (Symmetric<u64>, Symmetric<u64>) = (team.alloc(n).unwrap(), team.alloc(1).unwrap());
    let log: Symmetric<u64> = team.alloc(n * rounds).unwrap();
    for round in 1..=rounds {
        for queue in team.queues() {
            for to in 0..n {
                queue.p(&data.at(queue.me()).unwrap(), round as u64, to).unwrap();
                queue.atomic(&word, Atomic::Add(1), to).unwrap();
            }
            queue.wait_until(&word, Compare::Ge, (round * n) as u64, None).unwrap();
            queue.put(&log.slice((round - 1) * n..round * n).unwrap(), &data, queue.me()).unwrap();
            queue.barrier().unwrap();
        }
    }
    meet(&team);
    let wanted: Vec<u64> = (1..=rounds as u64).flat_map(|round| vec![round; n]).collect();
    (0..n).for_each(|pe| assert!(team.read(pe, &log).unwrap() == wanted, "a count came before its data"));
    meet(&team);
}

#[test]
fn steps_between_nodes_keep_their_order() {
    play("message passing between nodes", &[1, 1], 2);
    play("store buffering between nodes", &[1, 1], 2);
    play("all to all between nodes", &[1, 1, 1], 3);
    play("all to all between nodes", &[1, 1, 1, 1], 2);
}

/// Large puts that go on until something happens to their target, or their source.
fn killed_in_a_put() {
    let team = open(patient());
    let spared = team.split(&[0, 2]).unwrap();
    let [data, word]: [Symmetric<u64>; 2] = [team.alloc(1 << 18).unwrap(), team.alloc(1).unwrap()];
    meet(&team);
    if rank() == VICTIM {
        std::thread::spawn(|| {
            std::thread::sleep(Duration::from_millis(100));
            strike(Blow::KILL);
        });
        loop {
            (0..3).for_each(|pe| team.queue(VICTIM).put(&data, &data, pe).unwrap());
            team.queue(VICTIM).synchronize().unwrap();
        }
    }
    let begun = Instant::now();
    let queue = team.queue(rank());
    let error = if rank() == 0 {
        // To the victim, in the middle of which it dies.
        loop {
            if let Err(error) = queue.put(&data, &data, VICTIM).and_then(|()| queue.synchronize()) {
                break error;
            }
        }
    } else {
        queue.signal_wait_until(&word, Compare::Eq, 1, Some(VICTIM)).unwrap();
        queue.synchronize().unwrap_err()
    };
    is_loss(&team, &fault(error), begun);
    // A part without the victim goes on.
    for queue in spared.queues() {
        queue.put(&data.slice(0..9).unwrap(), &data.slice(9..18).unwrap(), 1 - queue.me()).unwrap();
    }
    meet(&spared);
    // What the victim has is out of reach, and that is said at once.
    let text = team.read(VICTIM, &word).unwrap_err().to_string();
    assert!(text.contains("process 1 (pid"), "{text}");
    meet(&spared);
}

/// In the middle of a put: what its node can take of it fills up, and nothing moves any more.
fn stops_in_a_put() {
    let team = open(hasty());
    let data: Symmetric<u64> = team.alloc(4 << 20).unwrap();
    meet(&team);
    if rank() == VICTIM {
        stop();
    }
    std::thread::sleep(Duration::from_millis(200));
    let begun = Instant::now();
    let queue = team.queue(rank());
    queue.put(&data, &data, VICTIM).unwrap();
    let found = fault(queue.synchronize().unwrap_err());
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert_eq!((found.kind, found.peer, found.process), (FaultKind::Copy, Some(VICTIM), team.process_of(VICTIM)));
    assert!(found.to_string().contains("process 1 (pid") && found.to_string().contains("on node 1"), "{found}");
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
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    // Its node does not answer, or it does not come.
    assert!(matches!(found.kind, FaultKind::Copy | FaultKind::Barrier), "{found}");
    assert_eq!((found.peer, found.process), (Some(VICTIM), team.process_of(VICTIM)));
}

/// A wait of one PE that nobody ends is a fault that all nodes see.
fn a_wait_in_vain() {
    let team = open(hasty());
    let word: Symmetric<u64> = team.alloc(3).unwrap();
    meet(&team);
    let begun = Instant::now();
    let queue = team.queue(rank());
    if rank() == 2 {
        queue.wait_until(&word.at(1).unwrap(), Compare::Eq, 5, Some(0)).unwrap();
    } else {
        // Far longer than the others' timeout would let it, but for the fault.
        std::thread::sleep(Duration::from_millis(1500));
        queue.wait_until(&word, Compare::Eq, 9, None).unwrap();
    }
    let found = fault(queue.synchronize().unwrap_err());
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert_eq!((found.kind, found.waiter, found.peer, found.wanted), (FaultKind::Wait, 2, Some(0), 5), "{found}");
    assert!(found.place.contains("byte 8 of the 24 bytes"), "{found}");
    assert_eq!(fault(team.check().unwrap_err()), found);
    // Nobody ends before all have seen it.
    std::thread::sleep(Duration::from_millis(500));
}

/// Who drops its team has left, and its memory has gone: an error, and no fault.
fn leaves() {
    let team = open(patient());
    let word: Symmetric<u64> = team.alloc(1).unwrap();
    let spared = team.split(&[0, 2]).unwrap();
    if rank() == VICTIM {
        (0..3).for_each(|pe| team.queue(VICTIM).signal_op(&word, Signal::Set(5), pe).unwrap());
        drop((team, spared));
        return;
    }
    let queue = team.queue(rank());
    queue.signal_wait_until(&word, Compare::Eq, 5, Some(VICTIM)).unwrap();
    queue.synchronize().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let begun = Instant::now();
    let text = team.read(VICTIM, &word).unwrap_err().to_string();
    assert!(text.contains("process 1 (pid") && text.contains("has left"), "{text}");
    let put = queue.put(&word, &word, VICTIM).and_then(|()| queue.synchronize());
    assert!(put.unwrap_err().to_string().contains("has left"));
    team.check().unwrap();
    meet(&spared);
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
}

#[test]
fn a_node_that_dies_is_named_at_once() {
    let end = drill_of(start("killed in a put between nodes", &[1, 1, 1], 3));
    assert!(end.contains("signal: 9"), "{end}");
    for scene in ["killed before a barrier", "killed in an allocation", "killed in a collective"] {
        let end = drill_of(start(scene, &[1, 1, 1], 3));
        assert!(end.contains("signal: 9"), "{scene}: {end}");
    }
    let end = drill_of(start("panics before a barrier", &[1, 1, 1], 3));
    assert!(end.contains("on purpose"), "{end}");
}

#[test]
fn a_node_that_stops_is_named_after_the_timeout() {
    for scene in ["stops in a put between nodes", "stops before a barrier between nodes", "stops before an allocation"]
    {
        let end = drill_of(start(scene, &[1, 1, 1], 3));
        assert!(end.starts_with("T "), "{scene}: {end}");
    }
}

#[test]
fn faults_and_farewells_reach_other_nodes() {
    play("a wait in vain", &[1, 1, 1], 3);
    play("leaves its node", &[1, 1, 1], 3);
    play("other window", &[1, 1, 1], 3);
    play("other call", &[1, 1, 1], 3);
}

/// Two namespaces of networks, joined by one link. They go with it.
struct Spaces([String; 2]);

const ADDRESSES: [&str; 2] = ["10.231.7.1", "10.231.7.2"];

fn ip(words: &str) -> Result<(), String> {
    let output = Command::new("ip").args(words.split(' ')).output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        Ok(())
    } else {
        Err(format!("ip {words}: {text}"))
    }
}

impl Spaces {
    fn make() -> Result<Self, String> {
        let id = std::process::id();
        let spaces = Spaces([format!("tandem-{id}-a"), format!("tandem-{id}-b")]);
        let [a, b] = &spaces.0;
        ip(&format!("netns add {a}"))?;
        ip(&format!("netns add {b}"))?;
        ip(&format!("link add ta netns {a} type veth peer name tb netns {b}"))?;
        for (space, (link, address)) in spaces.0.iter().zip(["ta", "tb"].iter().zip(ADDRESSES)) {
            ip(&format!("-n {space} addr add {address}/24 dev {link}"))?;
            ip(&format!("-n {space} link set {link} up"))?;
            ip(&format!("-n {space} link set lo up"))?;
        }
        Ok(spaces)
    }

    /// Starts a process in the namespace of its node.
    fn enter(&self, node: usize, command: &mut Command) {
        let mut inside = Command::new("ip");
        inside.args(["netns", "exec", &self.0[node]]).arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            value.iter().for_each(|value| _ = inside.env(name, value));
        }
        *command = inside;
    }
}

impl Drop for Spaces {
    fn drop(&mut self) {
        self.0.iter().for_each(|space| _ = ip(&format!("netns delete {space}")));
    }
}

/// The link goes down while one end puts to the other, and that one waits.
fn is_cut_off() {
    let team = open(hasty());
    let data: Symmetric<u64> = team.alloc(1 << 18).unwrap();
    meet(&team);
    let begun = Instant::now();
    let queue = team.queue(rank());
    let error = if rank() == 0 {
        std::fs::write(std::env::var(FILE).unwrap(), "").unwrap();
        loop {
            if let Err(error) = queue.put(&data, &data, 1).and_then(|()| queue.synchronize()) {
                break error;
            }
        }
    } else {
        // It waits for nothing, and is told nothing: the stream itself has to find out.
        loop {
            std::thread::sleep(Duration::from_millis(20));
            if let Err(error) = team.check() {
                break error;
            }
            assert!(begun.elapsed() < SOON, "nobody has noticed that the link is down");
        }
    };
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    let found = fault(error);
    assert_eq!((found.peer, found.process), (Some(1 - rank()), team.process_of(1 - rank())), "{found}");
}

#[test]
fn nodes_of_two_networks_are_joined_and_cut() {
    let spaces = match Spaces::make() {
        Ok(spaces) => spaces,
        Err(why) => return println!("SKIPPED, as there are no network namespaces here: {why}"),
    };
    for (scene, pes) in [("suite", &[1, 1, 1, 1][..]), ("random steps", &[2, 1])] {
        let enter = |rank: usize, command: &mut Command| spaces.enter(rank * 2 / pes.len(), command);
        start_at(ADDRESSES[0], scene, pes, 2, enter).succeed(0..pes.len());
    }
    let file = format!("{}-ready", Meeting::unique());
    let mut cast = start_at(ADDRESSES[0], "is cut off", &[1, 1], 2, |rank, command| {
        command.env(FILE, &file);
        spaces.enter(rank, command);
    });
    let begun = Instant::now();
    while std::fs::remove_file(&file).is_err() {
        assert!(begun.elapsed() < super::longest(), "they do not meet");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(300));
    ip(&format!("-n {} link set tb down", spaces.0[1])).unwrap();
    cast.succeed([0, 1]);
}
