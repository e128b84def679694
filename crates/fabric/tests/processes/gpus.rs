//! GPUs of several nodes: each process is a node with one GPU, and NVSHMEM carries what queues and the host do with the others. Here they are of
//! one host. Where TANDEM_TEST_NODES is set (scripts/gpu-nvshmem.sh); else these are skipped.

use super::drills::{drill_of, fault, hasty, patient, stop, strike, SOON, VICTIM};
use super::nodes::start;
use super::suite::numbers;
use super::{has_gpu, meet, rank, try_open, Scene};
use rustix::process::Signal as Blow;
use std::time::{Duration, Instant};
use tandem_fabric::kernels::{self, Scope, Transfer};
use tandem_fabric::topology::Topology;
use tandem_fabric::{
    Atomic, Collectives, Compare, Distribution, Error, FaultKind, GlobalArray, Meeting, OneSided, Options, Signal,
    Space, Symmetric, Team,
};

pub(super) const SCENES: &[Scene] = &[
    ("sizes of GPUs", sizes),
    ("random steps of GPUs", random_steps),
    ("reads and writes of GPUs", reads_and_writes),
    ("arrays of GPUs", arrays),
    ("refusals of GPUs", refusals),
    ("one after the other", one_after_the_other),
    ("other windows of GPUs", other_windows),
    ("no library", no_library),
    ("killed in a wait", killed_in_a_wait),
    ("killed in puts", killed_in_puts),
    ("stops in a wait", || stops(false)),
    ("stops before a barrier of GPUs", || stops(true)),
];

/// How many GPUs there are for these tests, 2 to 4: on a single one two PEs share it. 0 where they are not asked for.
fn gpus() -> usize {
    if !has_gpu() || std::env::var_os("TANDEM_TEST_NODES").is_none() {
        return 0;
    }
    let found = tandem_cuda::probe().unwrap().iter().filter(|gpu| gpu.usable.is_ok()).count();
    assert!(found > 0, "no GPU can be used");
    found.clamp(2, 4)
}

/// Plays scenes with 2 processes, and with as many as there are GPUs.
fn play(scenes: &[&str]) {
    let most = gpus();
    if most == 0 {
        return println!("SKIPPED, as no GPUs of several nodes are asked for");
    }
    for scene in scenes {
        for pes in [2, most].iter().take(if most > 2 { 2 } else { 1 }) {
            start(scene, &vec![1; *pes], *pes).succeed(0..*pes);
            println!("{scene}: {pes} processes");
        }
    }
}

fn window() -> Options {
    Options { window: 256 << 20, ..patient() }
}

fn open(options: Options) -> Team {
    try_open(1, options).unwrap()
}

fn bytes(len: usize, seed: u64) -> Vec<u8> {
    let words = numbers(len.div_ceil(8), seed);
    words.iter().flat_map(|word| word.to_ne_bytes()).take(len).collect()
}

/// 0, 1, 2, odd ones, 2^k and 2^k +- 1, up to 16 MiB.
fn lengths() -> Vec<usize> {
    let powers = [4, 9, 12, 16, 20].into_iter().flat_map(|k| [(1 << k) - 1, 1 << k, (1 << k) + 1]);
    [0, 1, 2, 3, 5, 7, 8].into_iter().chain(powers).chain([(1 << 24) - 1, 1 << 24]).collect()
}

/// Each length by a put, a get, and a put with a signal that the target waits for, at odd places, against plain copies.
fn sizes() {
    let team = open(window());
    let (n, me) = (team.size(), rank());
    let room = (1 << 24) + 16;
    let [from, put, got, sent]: [Symmetric<u8>; 4] = std::array::from_fn(|_| team.alloc(room).unwrap());
    let word: Symmetric<u64> = team.alloc(1).unwrap();
    let source = |pe: usize| bytes(room, 40 + pe as u64);
    team.write(me, &from, &source(me)).unwrap();
    meet(&team);
    let (next, before) = ((me + 1) % n, (me + n - 1) % n);
    let (of_next, of_before) = (source(next), source(before));
    let queue = team.queue(me);
    for (round, len) in lengths().into_iter().enumerate() {
        let (to, at) = (round % 5, round % 7 + 1);
        let part = |memory: &Symmetric<u8>, at: usize| memory.slice(at..at + len).unwrap();
        for memory in [&put, &got, &sent] {
            team.write(me, memory, &vec![0xee; room]).unwrap();
        }
        meet(&team);
        queue.put(&part(&put, to), &part(&from, at), next).unwrap();
        queue.get(&part(&got, to), &part(&from, at), next).unwrap();
        queue.put_signal(&part(&sent, to), &part(&from, at), &word, Signal::Add(3), next).unwrap();
        queue.signal_wait_until(&word, Compare::Ge, 3 * (round as u64 + 1), Some(before)).unwrap();
        // What came before the signal is here already.
        let copy = team.alloc::<u8>(room).unwrap();
        queue.put(&copy, &sent, me).unwrap();
        queue.synchronize().unwrap();
        let wanted = |of: &[u8]| {
            let mut all = vec![0xee; room];
            all[to..to + len].copy_from_slice(&of[at..at + len]);
            all
        };
        assert!(team.read(me, &copy).unwrap() == wanted(&of_before), "{len} bytes with a signal");
        assert!(team.read(me, &got).unwrap() == wanted(&of_next), "{len} bytes got");
        meet(&team);
        assert!(team.read(me, &put).unwrap() == wanted(&of_before), "{len} bytes put");
        assert!(
            team.read(next, &put).unwrap()[..room - 1] == {
                let mut all = vec![0xee; room - 1];
                all[to..to + len].copy_from_slice(&source(me)[at..at + len]);
                all
            }[..],
            "{len} bytes read from PE {next}"
        );
        meet(&team);
    }
    assert_eq!(team.read(me, &word).unwrap(), [3 * lengths().len() as u64]);
    meet(&team);
}

/// Each round every PE does some steps at random to places of its own at random PEs; all processes know all steps.
fn random_steps() {
    const LEN: usize = 3000;
    let team = open(window());
    let (n, here) = (team.size(), rank());
    let [data, from]: [Symmetric<u16>; 2] = std::array::from_fn(|_| team.alloc(LEN * n).unwrap());
    let sums: Symmetric<i64> = team.alloc(n).unwrap();
    let ones: Symmetric<[u8; 13]> = team.alloc(n).unwrap();
    let source: Vec<u16> = numbers(LEN * n, 5).into_iter().map(|x| x as u16).collect();
    team.write(here, &from, &source).unwrap();
    let (mut model, mut model_sums) = (vec![vec![0u16; LEN * n]; n], vec![vec![0i64; n]; n]);
    let mut model_ones = vec![vec![[0u8; 13]; n]; n];
    meet(&team);
    for round in 0..40u64 {
        for me in 0..n {
            let mut random = numbers(60, 1 + round * 100 + me as u64).into_iter();
            let mut next = |below: usize| (random.next().unwrap() % below as u64) as usize;
            let queue = (me == here).then(|| team.queue(me));
            let own = me * LEN;
            for _ in 0..6 {
                let (pe, len, kind) = (next(n), next(LEN / 4), next(6));
                let (to, at) = (own + next(LEN / 4), own + next(LEN / 4));
                let (there, near) = (data.slice(to..to + len).unwrap(), from.slice(at..at + len).unwrap());
                let sum = sums.at(me).unwrap();
                match kind {
                    0 => {
                        queue.iter().for_each(|queue| queue.put(&there, &near, pe).unwrap());
                        model[pe][to..to + len].copy_from_slice(&source[at..at + len]);
                    }
                    1 => {
                        queue.iter().for_each(|queue| queue.get(&there, &near, pe).unwrap());
                        model[me][to..to + len].copy_from_slice(&source[at..at + len]);
                    }
                    2 => {
                        let value = round as u16 * 7 + to as u16;
                        queue.iter().for_each(|queue| queue.p(&data.at(to).unwrap(), value, pe).unwrap());
                        model[pe][to] = value;
                    }
                    3 => {
                        let value: [u8; 13] = bytes(13, round + to as u64).try_into().unwrap();
                        queue.iter().for_each(|queue| queue.p(&ones.at(me).unwrap(), value, pe).unwrap());
                        model_ones[pe][me] = value;
                    }
                    4 => {
                        let add = Atomic::Add(to as i64 - 700);
                        queue.iter().for_each(|queue| queue.atomic(&sum, add, pe).unwrap());
                        model_sums[pe][me] += to as i64 - 700;
                    }
                    _ => {
                        queue.iter().for_each(|queue| queue.atomic(&sum, Atomic::Set(-(len as i64)), pe).unwrap());
                        queue.iter().for_each(|queue| queue.atomic(&sum, Atomic::Inc, pe).unwrap());
                        model_sums[pe][me] = 1 - len as i64;
                    }
                }
            }
        }
        meet(&team);
        for pe in 0..n {
            assert!(team.read(pe, &data).unwrap() == model[pe], "round {round}, PE {pe}");
            assert_eq!(team.read(pe, &sums).unwrap(), model_sums[pe], "round {round}, PE {pe}");
            assert_eq!(team.read(pe, &ones).unwrap(), model_ones[pe], "round {round}, PE {pe}");
        }
        meet(&team);
    }
}

/// The host reads and writes all memory, in several pieces too; words that it waits for are set by others; parts of a team have barriers.
fn reads_and_writes() {
    let team = open(window());
    let (n, me) = (team.size(), rank());
    let next = (me + 1) % n;
    for len in [0, 1, 7, 511, 100_003, (9 << 20) + 5] {
        let memory: Symmetric<u8> = team.alloc(len).unwrap();
        (0..n).for_each(|pe| assert!(team.read(pe, &memory).unwrap() == vec![0; len], "{len} zeros"));
        meet(&team);
        team.write(next, &memory, &bytes(len, me as u64)).unwrap();
        meet(&team);
        for pe in 0..n {
            assert!(team.read((pe + 1) % n, &memory).unwrap() == bytes(len, pe as u64), "{len} bytes after PE {pe}");
        }
        meet(&team);
    }
    let word: Symmetric<u64> = team.alloc(1).unwrap();
    team.queue(me).signal_op(&word, Signal::Set(9), next).unwrap();
    (0..n).for_each(|pe| team.wait_until(pe, &word, Compare::Eq, 9, None).unwrap());
    meet(&team);
    let (pair, back) = (team.split(&[1, 0]).unwrap(), team.split(&(0..n).rev().collect::<Vec<_>>()).unwrap());
    for round in 0..20u64 {
        for part in [&back, &pair] {
            for queue in part.queues() {
                let other = (queue.me() + 1) % part.size();
                queue.p(&word, 100 * round + queue.me() as u64, other).unwrap();
                queue.barrier().unwrap();
                queue.synchronize().unwrap();
                let (own, from) = (queue.me(), (queue.me() + part.size() - 1) % part.size());
                assert_eq!(part.read(own, &word).unwrap(), [100 * round + from as u64]);
                queue.barrier().unwrap();
            }
            part.synchronize().unwrap();
        }
    }
    meet(&team);
}

fn arrays() {
    let team = open(window());
    let len = 100_003;
    let [block, cyclic]: [GlobalArray<u64>; 2] =
        [Distribution::Block, Distribution::BlockCyclic(700)].map(|dealt| GlobalArray::new(&team, len, dealt).unwrap());
    for round in 0..3 {
        let values = numbers(len, 77 + round);
        if rank() == 0 {
            block.write(0, &values).unwrap();
        }
        meet(&team);
        cyclic.assign(&block).unwrap();
        meet(&team);
        assert!(cyclic.read(0..len).unwrap() == values, "round {round}");
        meet(&team);
    }
}

/// What another node's GPU is not reached by says so, in words, and does nothing.
fn refusals() {
    let team = open(window());
    let (n, me) = (team.size(), rank());
    let far = (me + 1) % n;
    let queue = team.queue(me);
    let (words, narrow): (Symmetric<u64>, Symmetric<u32>) = (team.alloc(64).unwrap(), team.alloc(1).unwrap());
    let word = words.at(0).unwrap();
    let direct = |result: tandem_fabric::Result<()>| match result {
        Err(Error::NoPeer { reason, .. }) => assert!(reason.contains("needs a direct link"), "{reason}"),
        other => panic!("{other:?}"),
    };
    direct(team.reaches(me, far));
    let how = Transfer { is_get: false, peer: far, bytes: 256, scope: Scope::Block, blocks: 1, threads: 64, rounds: 1 };
    direct(kernels::transfer(queue, &words.slice(0..32).unwrap(), &words.slice(32..64).unwrap(), how));
    direct(kernels::pingpong(&team, kernels::Ball::Signal, &words, 1));
    assert_eq!(queue.handle().unwrap().apart, ((1u32 << n) - 1) & !(1 << me));
    let said = |result: tandem_fabric::Result<()>, words: &str| {
        let text = result.unwrap_err().to_string();
        assert!(text.contains(words), "{text}");
    };
    said(queue.put_strided(&words, 2, &words, 2, 5, far), "gathered here first");
    said(queue.atomic(&word, Atomic::Xor(1), far), "set and added to");
    said(queue.atomic(&narrow, Atomic::Add(1), far), "words of 64 bits");
    said(queue.fetch_atomic(&word, Atomic::Inc, far, &words.at(1).unwrap()), "is not told");
    said(team.atomic(far, &word, Atomic::Add(1)).map(drop), "is not told");
    said(queue.capture(|queue| queue.put(&words, &words, far)).map(drop), "recording a graph");
    said(queue.capture(|queue| queue.barrier()).map(drop), "recording a graph");
    said(queue.run(|_| Ok(())), "runs kernels");
    said(Collectives::new(&team, &Topology::preset("dgx1-v100").unwrap()).map(drop), "GPUs of several nodes");
    said(team.alloc_in::<u8>(Space::Host, 1).map(drop), "several processes");
    // Its own memory is reached as always.
    assert_eq!(team.atomic(me, &word, Atomic::Add(5)).unwrap(), 0);
    queue.put_strided(&words.slice(8..64).unwrap(), 2, &words.slice(0..8).unwrap(), 2, 4, me).unwrap();
    queue.synchronize().unwrap();
    assert_eq!(team.read(me, &words).unwrap().into_iter().sum::<u64>(), 10);
    meet(&team);
    (0..n).for_each(|pe| assert_eq!(team.read(pe, &words).unwrap().into_iter().sum::<u64>(), 10, "PE {pe}"));
    meet(&team);
    // One at a time.
    let text = try_open(1, window()).err().unwrap().to_string();
    assert!(text.contains("process 0 (pid") && text.contains("one at a time"), "{text}");
    team.check().unwrap();
    meet(&team);
}

/// Teams in a row in one process: a larger one, and again a smaller one, whose memory is zero.
fn one_after_the_other() {
    for (round, mib) in [64usize, 700, 64].into_iter().enumerate() {
        let team = open(Options { window: (mib as u64) << 20, ..patient() });
        let next = (rank() + 1) % team.size();
        let memory: Symmetric<u8> = team.alloc(3 << 20).unwrap();
        assert!(team.read(next, &memory).unwrap().iter().all(|&byte| byte == 0), "round {round}");
        meet(&team);
        team.write(next, &memory, &bytes(3 << 20, round as u64)).unwrap();
        meet(&team);
        assert!(team.read(rank(), &memory).unwrap() == bytes(3 << 20, round as u64), "round {round}");
        let full = team.alloc::<u8>(mib << 20).unwrap_err().to_string();
        assert!(full.contains("Options::window"), "{full}");
        meet(&team);
    }
}

fn other_windows() {
    let window = if rank() == VICTIM { 8 << 20 } else { 4 << 20 };
    let text = try_open(1, Options { window, ..Options::default() }).err().unwrap().to_string();
    assert!(text.contains("process 0 (pid") && text.contains("process 1 (pid"), "{text}");
    assert!(text.contains("window: 4194304") && text.contains("window: 8388608"), "{text}");
}

/// One process has no NVSHMEM: all say which.
fn no_library() {
    if rank() == VICTIM {
        std::env::set_var("TANDEM_NVSHMEM", "/nowhere/libnvshmem_host.so.3");
    }
    let text = try_open(1, window()).err().unwrap().to_string();
    assert!(text.contains("process 1 (pid") && text.contains("/nowhere/libnvshmem_host.so.3"), "{text}");
    assert!(text.contains("TANDEM_NVSHMEM"), "{text}");
}

/// The victim dies while the others wait for it, in a queue, in a barrier or by the host.
fn killed_in_a_wait() {
    let team = open(window());
    let word: Symmetric<u64> = team.alloc(1).unwrap();
    meet(&team);
    if rank() == VICTIM {
        std::thread::sleep(Duration::from_millis(300));
        strike(Blow::KILL);
    }
    let begun = Instant::now();
    let queue = team.queue(rank());
    queue.signal_wait_until(&word, Compare::Eq, 1, Some(VICTIM)).unwrap();
    queue.barrier().unwrap();
    let found = fault(queue.synchronize().unwrap_err());
    assert!(begun.elapsed() < SOON, "noticed after {:?}", begun.elapsed());
    assert_eq!((found.kind, found.peer, found.process), (FaultKind::Process, Some(VICTIM), team.process_of(VICTIM)));
    let waited = team.wait_until(rank(), &word, Compare::Eq, 1, None);
    assert_eq!(fault(waited.unwrap_err()).peer, Some(VICTIM));
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
}

/// The victim dies in the middle of the others' puts to it.
fn killed_in_puts() {
    let team = open(window());
    let data: Symmetric<u64> = team.alloc(1 << 20).unwrap();
    meet(&team);
    if rank() == VICTIM {
        std::thread::sleep(Duration::from_millis(200));
        strike(Blow::KILL);
    }
    let (begun, queue) = (Instant::now(), team.queue(rank()));
    let error = loop {
        if let Err(error) = queue.put(&data, &data, VICTIM).and_then(|()| queue.synchronize()) {
            break error;
        }
        assert!(begun.elapsed() < SOON, "nobody has noticed");
    };
    let found = fault(error);
    assert_eq!((found.kind, found.peer, found.process), (FaultKind::Process, Some(VICTIM), team.process_of(VICTIM)));
}

/// The victim stops while the others wait for it: they name it after the timeout.
fn stops(is_barrier: bool) {
    let team = open(Options { window: 256 << 20, ..hasty() });
    let word: Symmetric<u64> = team.alloc(1).unwrap();
    meet(&team);
    if rank() == VICTIM {
        stop();
    }
    let begun = Instant::now();
    let queue = team.queue(rank());
    let kind = if is_barrier {
        queue.barrier().unwrap();
        FaultKind::Barrier
    } else {
        queue.signal_wait_until(&word, Compare::Eq, 1, Some(VICTIM)).unwrap();
        FaultKind::Wait
    };
    let found = fault(queue.synchronize().unwrap_err());
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert_eq!((found.kind, found.peer, found.process), (kind, Some(VICTIM), team.process_of(VICTIM)), "{found}");
}

/// Plays a scene in which the second process does not end well, and says how it ended.
fn drill(scene: &str, pes: usize) -> String {
    drill_of(start(scene, &vec![1; pes], pes))
}

#[test]
fn steps_and_sizes() {
    play(&["sizes of GPUs", "random steps of GPUs"]);
}

#[test]
fn order_between_nodes() {
    play(&["all to all between nodes"]);
    if gpus() > 0 {
        for scene in ["message passing between nodes", "store buffering between nodes"] {
            start(scene, &[1, 1], 2).succeed(0..2);
        }
    }
}

#[test]
fn the_host_and_arrays() {
    play(&["reads and writes of GPUs", "arrays of GPUs"]);
}

#[test]
fn refusals_in_words() {
    play(&["refusals of GPUs"]);
}

#[test]
fn teams_in_a_row() {
    play(&["one after the other"]);
}

#[test]
fn those_that_differ() {
    play(&["other windows of GPUs", "no library", "other call"]);
}

#[test]
fn one_that_is_killed() {
    let pes = gpus();
    for scene in ["killed in a wait", "killed in puts"].iter().filter(|_| pes > 0) {
        let end = drill(scene, pes);
        assert!(end.contains("signal: 9"), "{scene}: {end}");
    }
}

#[test]
fn one_that_stops() {
    let pes = gpus();
    for scene in ["stops in a wait", "stops before a barrier of GPUs"].iter().filter(|_| pes > 0) {
        let end = drill(scene, pes);
        assert!(end.starts_with("T "), "{scene}: {end}");
    }
}

/// With three GPUs: what a part of a team does without the one that is lost, and a fault of one PE that all see.
#[test]
fn parts_go_on() {
    if gpus() >= 3 {
        start("a wait in vain", &[1, 1, 1], 3).succeed(0..3);
        start("leaves its node", &[1, 1, 1], 3).succeed(0..3);
        let end = drill_of(start("killed in a put between nodes", &[1, 1, 1], 3));
        assert!(end.contains("signal: 9"), "{end}");
    }
}

/// More than one process on a node, as the environment says it: the call says what is wanted. Needs no GPU but one that can be named.
#[test]
fn two_processes_on_a_node_are_refused() {
    if gpus() == 0 {
        return;
    }
    let device = tandem_cuda::probe().unwrap().into_iter().find_map(|gpu| gpu.usable.ok()).unwrap();
    let meeting = Meeting::new(&Meeting::unique(), 0, 4).unwrap().across(2, "127.0.0.1:9", "a secret of these tests");
    let text = Team::cuda_in(meeting.unwrap(), &[device], Options::default()).err().unwrap().to_string();
    assert!(text.contains("4 processes on 2 nodes") && text.contains("-n 1"), "{text}");
}
