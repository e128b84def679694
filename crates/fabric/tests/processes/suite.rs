//! What a team does, over every way to divide 1 to 8 PEs among processes. Every process runs the same steps, tells its own PEs what to do,
//! and compares the memory of all with a model.

use super::{meet, open, play, Scene};
use std::collections::HashSet;
use std::time::Duration;
use tandem_fabric::exec::Combine;
use tandem_fabric::topology::Topology;
use tandem_fabric::{
    Atomic, Collectives, Compare, Distribution, Error, GlobalArray, HostLinks, Memory, OneSided, Options, Signal,
    Symmetric, Team,
};

pub(super) const SCENES: &[Scene] = &[("suite", suite), ("heap", heap), ("collectives", collectives)];

/// By scene: how PEs are divided among processes.
#[test]
fn one_to_eight_pes_in_one_to_eight_processes() {
    for pes in [&[1][..], &[3], &[1, 1], &[2, 1], &[1, 3, 1], &[4, 4], &[2, 2, 2, 2], &[1; 8]] {
        play("suite", pes);
    }
}

#[test]
fn heaps_grow_shrink_and_stay_equal() {
    for pes in [&[1, 1][..], &[1, 2], &[1; 4], &[1; 8]] {
        play("heap", pes);
    }
}

#[test]
fn collectives_are_those_of_one_process() {
    for pes in [&[1, 1][..], &[2, 1], &[1; 4], &[4, 4], &[1; 8]] {
        play("collectives", pes);
    }
}

/// Numbers that look like nothing, different for every seed.
pub(super) fn numbers(len: usize, seed: u64) -> Vec<u64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    };
    (0..len).map(|_| next()).collect()
}

fn bytes(len: usize, seed: u64) -> Vec<u8> {
    numbers(len, seed).into_iter().map(|x| (x >> 56) as u8).collect()
}

fn suite() {
    let team = open(Options::default());
    assert_eq!(team.local().len(), super::own_pes());
    for pe in team.local() {
        assert_eq!(
            team.process_of(pe).map(|process| (process.rank, process.pid)),
            Some((super::rank(), std::process::id()))
        );
    }
    writes_and_reads(&team);
    puts_and_gets(&team);
    strides_and_elements(&team);
    atomics(&team);
    signals(&team);
    waits(&team);
    barriers(&team);
    parts(&team);
    graphs(&team);
    if super::nodes::are_several() {
        super::nodes::programs_are_refused(&team);
    } else if !team.is_cuda() {
        programs(&team);
    }
    refusals(&team);
}

fn writes_and_reads(team: &Team) {
    for len in [0, 1, 7, 511, 513, 100_003] {
        let memory: Symmetric<u8> = team.alloc(len).unwrap();
        for pe in 0..team.size() {
            assert_eq!(team.read(pe, &memory).unwrap(), vec![0; len]);
        }
        meet(team);
        for pe in team.local() {
            team.write(pe, &memory, &bytes(len, pe as u64)).unwrap();
        }
        meet(team);
        for pe in 0..team.size() {
            assert!(team.read(pe, &memory).unwrap() == bytes(len, pe as u64), "{len} bytes of PE {pe}");
        }
        meet(team);
        // The memory of a PE of another process is written too.
        let next = |pe: usize| (pe + 1) % team.size();
        for pe in team.local() {
            team.write(next(pe), &memory, &bytes(len, 50 + pe as u64)).unwrap();
        }
        meet(team);
        for pe in 0..team.size() {
            assert!(team.read(next(pe), &memory).unwrap() == bytes(len, 50 + pe as u64), "{len} bytes after PE {pe}");
        }
        meet(team);
    }
}

fn puts_and_gets(team: &Team) {
    const LEN: usize = 70_001;
    let n = team.size();
    let (source, target): (Symmetric<u8>, Symmetric<u8>) = (team.alloc(LEN).unwrap(), team.alloc(LEN).unwrap());
    let from: Vec<Vec<u8>> = (0..n).map(|pe| bytes(LEN, 200 + pe as u64)).collect();
    let mut model: Vec<Vec<u8>> = vec![vec![0; LEN]; n];
    for pe in team.local() {
        team.write(pe, &source, &from[pe]).unwrap();
    }
    meet(team);
    // Odd places and lengths, everyone to everyone, no two to the same bytes.
    let part = LEN / n;
    for (i, len) in [0, 1, 3, 8, 17, 4096, part - 100].into_iter().enumerate() {
        for me in 0..n {
            let (pe, to, at) = ((me + i) % n, me * part + 7 + i, i * 3 + 1);
            if team.local().contains(&me) {
                let (to, from) = (target.slice(to..to + len).unwrap(), source.slice(at..at + len).unwrap());
                team.queue(me).put(&to, &from, pe).unwrap();
            }
            model[pe][to..to + len].copy_from_slice(&from[me][at..at + len]);
        }
        meet(team);
    }
    for (pe, wanted) in model.iter().enumerate() {
        assert!(team.read(pe, &target).unwrap() == *wanted, "target of PE {pe}");
    }
    meet(team);
    for queue in team.queues() {
        let pe = (queue.me() + 1) % n;
        queue.get(&target.slice(5..LEN - 3).unwrap(), &source.slice(2..LEN - 6).unwrap(), pe).unwrap();
    }
    meet(team);
    for me in 0..n {
        model[me][5..LEN - 3].copy_from_slice(&from[(me + 1) % n][2..LEN - 6]);
        assert!(team.read(me, &target).unwrap() == model[me], "after get, PE {me}");
    }
    meet(team);
}

fn strides_and_elements(team: &Team) {
    let n = team.size();
    let (a, b): (Symmetric<u32>, Symmetric<u32>) = (team.alloc(1000).unwrap(), team.alloc(1000).unwrap());
    let one: Symmetric<[u64; 2]> = team.alloc(n).unwrap();
    let values = |pe: usize| -> Vec<u32> { numbers(1000, pe as u64).into_iter().map(|x| x as u32).collect() };
    for pe in team.local() {
        team.write(pe, &a, &values(pe)).unwrap();
    }
    meet(team);
    for queue in team.queues() {
        let (me, pe) = (queue.me(), (queue.me() + 1) % n);
        queue.put_strided(&b, 7, &a, 5, 142, pe).unwrap();
        queue.get_strided(&b.slice(1..1000).unwrap(), 7, &a, 3, 100, pe).unwrap();
        queue.p(&one.at(me).unwrap(), [me as u64, u64::MAX - 5], pe).unwrap();
    }
    meet(team);
    for pe in 0..n {
        let (left, right) = (values((pe + n - 1) % n), values((pe + 1) % n));
        let mut wanted = vec![0; 1000];
        (0..142).for_each(|i| wanted[i * 7] = left[i * 5]);
        (0..100).for_each(|i| wanted[1 + i * 7] = right[i * 3]);
        assert_eq!(team.read(pe, &b).unwrap(), wanted, "PE {pe}");
        let writer = (pe + n - 1) % n;
        assert_eq!(team.read(pe, &one).unwrap()[writer], [writer as u64, u64::MAX - 5]);
    }
    meet(team);
}

fn atomics(team: &Team) {
    let n = team.size() as u64;
    let counts: Symmetric<u32> = team.alloc(4).unwrap();
    let old: Symmetric<u32> = team.alloc(50).unwrap();
    let at = |i: usize| counts.at(i).unwrap();
    for round in 0..50 {
        for queue in team.queues() {
            queue.fetch_atomic(&at(0), Atomic::Inc, 0, &old.at(round).unwrap()).unwrap();
            queue.atomic(&at(1), Atomic::Add(queue.me() as u32 + 1), team.size() - 1).unwrap();
            queue.atomic(&at(2), Atomic::Xor(1 << queue.me()), 0).unwrap();
        }
    }
    // From the host, on a word that PEs of other processes change too.
    let processes: HashSet<_> = (0..team.size()).map(|pe| team.process_of(pe).unwrap().rank).collect();
    for _ in 0..20 {
        team.atomic(0, &at(3), Atomic::Add(3)).unwrap();
    }
    meet(team);
    let (first, last) = (team.read(0, &counts).unwrap(), team.read(team.size() - 1, &counts).unwrap());
    assert_eq!((u64::from(first[0]), u64::from(last[1]), first[2]), (50 * n, 25 * n * (n + 1), 0));
    assert_eq!(first[3], 60 * processes.len() as u32);
    // Each count was seen once.
    let seen: HashSet<u32> = (0..team.size()).flat_map(|pe| team.read(pe, &old).unwrap()).collect();
    assert_eq!(seen.len() as u64, 50 * n);
    meet(team);
}

fn signals(team: &Team) {
    const LEN: usize = 4097;
    let n = team.size();
    let [out, inbox, copy]: [Symmetric<u64>; 3] = std::array::from_fn(|_| team.alloc(LEN).unwrap());
    let (ready, free): (Symmetric<u64>, Symmetric<u64>) = (team.alloc(1).unwrap(), team.alloc(1).unwrap());
    for round in 1..=10u64 {
        for queue in team.queues() {
            let me = queue.me();
            queue.synchronize().unwrap();
            team.write(me, &out, &vec![round * 1000 + me as u64; LEN]).unwrap();
            let (right, left) = ((me + 1) % n, (me + n - 1) % n);
            queue.signal_wait_until(&free, Compare::Ge, round - 1, Some(right)).unwrap();
            let signal = if round.is_multiple_of(2) { Signal::Set(round) } else { Signal::Add(1) };
            queue.put_signal(&inbox, &out, &ready, signal, right).unwrap();
            queue.signal_wait_until(&ready, Compare::Ge, round, Some(left)).unwrap();
            queue.put(&copy, &inbox, me).unwrap();
            queue.signal_op(&free, Signal::Add(1), left).unwrap();
        }
        team.synchronize().unwrap();
        for me in team.local() {
            let wanted = round * 1000 + ((me + n - 1) % n) as u64;
            assert!(team.read(me, &copy).unwrap().iter().all(|&x| x == wanted), "round {round}, PE {me}");
        }
    }
    meet(team);
}

fn waits(team: &Team) {
    let (first, last) = (0, team.size() - 1);
    let words: Symmetric<i32> = team.alloc(70).unwrap();
    let found: Symmetric<u64> = team.alloc(71).unwrap();
    let done: Symmetric<u64> = team.alloc(1).unwrap();
    if team.local().contains(&last) {
        let queue = team.queue(last);
        queue.wait_until_any(&words, Compare::Lt, 0, Some(first), &found.at(0).unwrap()).unwrap();
        queue.signal_op(&done, Signal::Set(1), first).unwrap();
        queue.wait_until(&words, Compare::Eq, 9, Some(first)).unwrap();
        queue.wait_until_some(&words, Compare::Ge, 9, Some(first), &found).unwrap();
    }
    if team.local().contains(&first) {
        // A queue of its own: that of the PE may be the one that waits.
        let queue = team.new_queue(first).unwrap();
        queue.p(&words.at(67).unwrap(), -3, last).unwrap();
        queue.synchronize().unwrap();
        team.wait_until(first, &done, Compare::Eq, 1, Some(last)).unwrap();
        assert_eq!(team.read(last, &found).unwrap()[0], 67);
        for i in (0..70).rev() {
            queue.atomic(&words.at(i).unwrap(), Atomic::Set(9), last).unwrap();
        }
        queue.synchronize().unwrap();
    }
    meet(team);
    let got = team.read(last, &found).unwrap();
    assert_eq!(got, [70].into_iter().chain(0..70).collect::<Vec<u64>>());
    // The host of any process waits for any PE's words.
    assert_eq!(team.wait_until_any(last, &words, Compare::Gt, 8, None).unwrap(), 0);
    meet(team);
}

fn barriers(team: &Team) {
    let n = team.size();
    let (seen, copies): (Symmetric<u32>, Symmetric<u32>) = (team.alloc(n).unwrap(), team.alloc(n * 20).unwrap());
    for round in 1..=20u32 {
        for queue in team.queues() {
            let me = queue.me();
            (0..n).for_each(|pe| queue.p(&seen.at(me).unwrap(), round, pe).unwrap());
            queue.barrier().unwrap();
            let at = (round as usize - 1) * n;
            queue.put(&copies.slice(at..at + n).unwrap(), &seen, me).unwrap();
            queue.barrier().unwrap();
        }
    }
    meet(team);
    for pe in 0..n {
        let wanted: Vec<u32> = (1..=20).flat_map(|round| vec![round; n]).collect();
        assert_eq!(team.read(pe, &copies).unwrap(), wanted, "PE {pe}");
    }
}

fn parts(team: &Team) {
    let n = team.size();
    let mine: Symmetric<u32> = team.alloc(1).unwrap();
    for pe in team.local() {
        team.write(pe, &mine, &[pe as u32]).unwrap();
    }
    meet(team);
    // Backwards, and of that every other: a process may have none of these.
    let reverse = team.split(&(0..n).rev().collect::<Vec<_>>()).unwrap();
    let half = reverse.split(&(0..n).step_by(2).collect::<Vec<_>>()).unwrap();
    let got: Symmetric<u32> = half.alloc(1).unwrap();
    for queue in half.queues() {
        queue.get(&got, &mine, (queue.me() + 1) % half.size()).unwrap();
        queue.barrier().unwrap();
    }
    half.synchronize().unwrap();
    meet(team);
    for pe in 0..half.size() {
        assert_eq!(half.read(pe, &got).unwrap(), [half.members()[(pe + 1) % half.size()] as u32]);
    }
    meet(team);
}

fn graphs(team: &Team) {
    let n = team.size();
    let (count, sum): (Symmetric<u64>, Symmetric<u64>) = (team.alloc(1).unwrap(), team.alloc(1).unwrap());
    let inbox: Symmetric<u64> = team.alloc(n).unwrap();
    let record = |queue: &tandem_fabric::Queue| {
        queue.capture(|queue| {
            let me = queue.me();
            queue.atomic(&count, Atomic::Inc, me)?;
            (0..n).try_for_each(|pe| queue.put(&inbox.at(me)?, &count, pe))?;
            queue.barrier()?;
            queue.atomic(&sum, Atomic::Add(1), (me + 1) % n)?;
            queue.barrier()
        })
    };
    let graphs: Vec<_> = team.queues().iter().map(record).collect::<Result<_, _>>().unwrap();
    for round in 1..=5u64 {
        team.queues().iter().zip(&graphs).for_each(|(queue, graph)| queue.launch(graph).unwrap());
        meet(team);
        for pe in 0..n {
            assert_eq!((team.read(pe, &inbox).unwrap(), team.read(pe, &sum).unwrap()), (vec![round; n], vec![round]));
        }
        meet(team);
    }
}

/// Operations that happen when they are called: work is handed out by a counter, and a lock excludes.
fn programs(team: &Team) {
    const TASKS: u64 = 200;
    let n = team.size();
    let (next, lock): (Symmetric<u64>, Symmetric<u32>) = (team.alloc(1).unwrap(), team.alloc(1).unwrap());
    let (results, count): (Symmetric<u64>, Symmetric<u64>) =
        (team.alloc(TASKS as usize).unwrap(), team.alloc(1).unwrap());
    for queue in team.queues() {
        let (next, lock, results, count) = (next.clone(), lock.clone(), results.clone(), count.clone());
        queue
            .run(move |pe| {
                loop {
                    let task = pe.fetch(&next, Atomic::Inc, 0)?;
                    if task >= TASKS {
                        break;
                    }
                    pe.p(&results.at(task as usize)?, task * task + 1, 0)?;
                }
                let mine = pe.me() as u32 + 1;
                for _ in 0..20 {
                    while pe.fetch(&lock, Atomic::CompareSwap { expected: 0, value: mine }, 0)? != 0 {
                        std::thread::yield_now();
                    }
                    let before = pe.g(&count, 0)?;
                    pe.p(&count, before + 1, 0)?;
                    assert_eq!(pe.fetch(&lock, Atomic::Set(0), 0)?, mine);
                }
                pe.barrier()
            })
            .unwrap();
    }
    team.synchronize().unwrap();
    meet(team);
    assert_eq!(team.read(0, &results).unwrap(), (0..TASKS).map(|task| task * task + 1).collect::<Vec<_>>());
    assert_eq!(team.read(0, &count).unwrap(), [20 * n as u64]);
    meet(team);
}

fn refusals(team: &Team) {
    let memory: Symmetric<u64> = team.alloc(4).unwrap();
    let own = team.local();
    let problem = |error: Option<Error>| error.map_or_else(String::new, |error| error.to_string());
    if let Some(pe) = (0..team.size()).find(|pe| !own.contains(pe)) {
        let process = team.process_of(pe).unwrap();
        assert_eq!(problem(team.new_queue(pe).err()), format!("make a queue: {process} has PE {pe}"));
        let asked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| team.queue(pe).me()));
        assert!(asked.is_err());
    }
    let buffers = (0..team.size()).map(|_| Memory::Host(vec![1u32])).collect();
    assert!(problem(team.register(buffers).err()).contains("several processes"));
    assert!(problem(HostLinks::new(team).upload(0, &memory, &[1; 4]).err()).contains("several processes"));
    meet(team);
}

fn heap() {
    // More than a heap grows by.
    let cap = if super::has_gpu() { 96 << 20 } else { 24 << 20 };
    let poor = super::open(Options { memory: vec![(1, cap)], ..Options::default() });
    let team = &poor;
    // Where things lie is the same for all: each tells all.
    let places: Vec<Symmetric<u8>> = (0..20).map(|i| team.alloc(1 + i * i * 1000).unwrap()).collect();
    let offsets: Symmetric<u64> = team.alloc(20 * team.size()).unwrap();
    for pe in team.local() {
        let mine: Vec<u64> = places.iter().map(|place| place.offset().unwrap()).collect();
        for to in 0..team.size() {
            team.write(to, &offsets.slice(20 * pe..20 * pe + 20).unwrap(), &mine).unwrap();
        }
    }
    meet(team);
    let told = team.read(0, &offsets).unwrap();
    assert!(told.chunks(20).all(|mine| mine == &told[..20]), "{told:?}");
    // Freed by all in another order each, wiped, used again: the heap does not grow with each round.
    for place in &places {
        (0..team.size()).for_each(|pe| team.write(pe, place, &vec![0xff; place.len()]).unwrap());
    }
    meet(team);
    let mut places = places;
    places.rotate_left(super::rank() % 7);
    drop(places);
    let mapped = team.heap_bytes().0;
    for round in 0..40u8 {
        let memory: Symmetric<u8> = team.alloc(1 << 20).unwrap();
        for pe in team.local() {
            assert!(team.read(pe, &memory).unwrap().iter().all(|&x| x == 0), "round {round}: not wiped");
            // A put that is under way when the handle goes is done before the memory is another's.
            team.queue(pe).put(&memory.slice(0..1000).unwrap(), &memory.slice(5000..6000).unwrap(), 0).unwrap();
        }
        meet(team);
        (0..team.size()).for_each(|pe| team.write(pe, &memory, &vec![round; 1 << 20]).unwrap());
        meet(team);
    }
    assert!(team.heap_bytes().0 <= mapped + (8 << 20), "{:?} from {mapped}", team.heap_bytes());
    // What one PE has no memory for none keeps, and all know whose it is.
    let before = team.heap_bytes().0;
    for _ in 0..3 {
        match team.alloc::<u8>(cap as usize + 1).err() {
            Some(Error::OutOfMemory { pe: 1, device, .. }) => assert_eq!(device, team.name(1)),
            other => panic!("{other:?}"),
        }
        assert_eq!(team.heap_bytes().0, before);
    }
    let fits: Symmetric<u8> = team.alloc(4 << 20).unwrap();
    let last = fits.at((4 << 20) - 1).unwrap();
    for pe in team.local() {
        team.queue(pe).p(&last, 7, (pe + 1) % team.size()).unwrap();
    }
    meet(team);
    (0..team.size()).for_each(|pe| assert_eq!(team.read(pe, &last).unwrap(), [7]));
    meet(team);
}

fn collectives() {
    let team = open(Options::default());
    let n = team.size();
    let all = Collectives::new(&team, &Topology::preset("dgx1-v100").unwrap()).unwrap();
    let values = |len: usize, pe: usize, round: u64| numbers(len, 1 + pe as u64 + 100 * round + len as u64);
    // Messages, copies by the PEs themselves, and plans through rings; each again and again with other numbers.
    for part in [1usize, 1000, 40_000, 300_000] {
        let [from, to]: [Symmetric<u64>; 2] = std::array::from_fn(|_| team.alloc(part).unwrap());
        let [wide_from, wide_to]: [Symmetric<u64>; 2] = std::array::from_fn(|_| team.alloc(part * n).unwrap());
        let rounds = if part > 100_000 { 1 } else { 3 };
        for round in 0..rounds {
            let narrow: Vec<Vec<u64>> = (0..n).map(|pe| values(part, pe, round)).collect();
            let wide: Vec<Vec<u64>> = (0..n).map(|pe| values(part * n, pe, round)).collect();
            for pe in team.local() {
                team.write(pe, &from, &narrow[pe]).unwrap();
                team.write(pe, &wide_from, &wide[pe]).unwrap();
            }
            meet(&team);
            let root = round as usize % n;
            let sum = |parts: &[&[u64]]| -> Vec<u64> {
                (0..part).map(|i| parts.iter().fold(0u64, |sum, of| sum.wrapping_add(of[i]))).collect()
            };
            let whole = |all: &[Vec<u64>]| all.iter().map(|of| &of[..]).collect::<Vec<_>>().concat();
            let slice = |pe: usize, i: usize| &wide[pe][i * part..(i + 1) * part];
            let narrow_all: Vec<&[u64]> = narrow.iter().map(|of| &of[..]).collect();
            let greatest: Vec<u64> = (0..part).map(|i| narrow.iter().map(|of| of[i]).max().unwrap()).collect();

            all.broadcast(root, &from, &to).unwrap();
            expect(&team, &to, "broadcast", |_| narrow[root].clone());
            all.all_reduce(Combine::Sum, &from, &to).unwrap();
            expect(&team, &to, "all-reduce", |_| sum(&narrow_all));
            all.all_reduce(Combine::Max, &from, &to).unwrap();
            expect(&team, &to, "greatest", |_| greatest.clone());
            all.all_gather(&from, &wide_to).unwrap();
            expect(&team, &wide_to, "all-gather", |_| whole(&narrow));
            all.reduce_scatter(Combine::Sum, &wide_from, &to).unwrap();
            let scattered = |pe: usize| sum(&(0..n).map(|from| slice(from, pe)).collect::<Vec<_>>());
            expect(&team, &to, "reduce-scatter", scattered);
            all.all_to_all(&wide_from, &wide_to).unwrap();
            expect(&team, &wide_to, "all-to-all", |pe| (0..n).map(|from| slice(from, pe)).collect::<Vec<_>>().concat());
            let before = team.read(0, &to).unwrap();
            meet(&team);
            all.reduce(Combine::Sum, root, &from, &to).unwrap();
            meet(&team);
            assert!(team.read(root, &to).unwrap() == sum(&narrow_all), "reduce to {root} of {part}");
            assert!(root == 0 || team.read(0, &to).unwrap() == before, "reduce touches the others");
            meet(&team);
            if n > 1 {
                all.now().send(n - 1, 0, &from, &to).unwrap();
                meet(&team);
                assert!(team.read(0, &to).unwrap() == narrow[n - 1], "send of {part}");
                meet(&team);
            }
        }
    }
    if super::nodes::are_several() {
        super::nodes::not_there(&team, &all);
    }
    arrays(&team, &all);
}

/// Waits for the queues of all, and compares what each PE has.
fn expect(team: &Team, memory: &Symmetric<u64>, what: &str, wanted: impl Fn(usize) -> Vec<u64>) {
    meet(team);
    for pe in 0..team.size() {
        assert!(team.read(pe, memory).unwrap() == wanted(pe), "{what} of {} elements: PE {pe}", memory.len());
    }
    meet(team);
}

fn arrays(team: &Team, ways: &Collectives) {
    let len = 100_003;
    let block: GlobalArray<u64> = GlobalArray::over(ways, len, Distribution::Block).unwrap();
    let cyclic: GlobalArray<u64> = GlobalArray::over(ways, len, Distribution::BlockCyclic(700)).unwrap();
    // A program of the host's, which GPUs do not run.
    let step = u64::from(!team.is_cuda());
    let last = len - 1;
    for round in 0..5 {
        let values = numbers(len, 77 + round);
        if super::rank() == 0 {
            block.write(0, &values).unwrap();
        }
        meet(team);
        if step > 0 {
            let slow = move |i: usize, x: &mut u64| {
                *x = x.wrapping_add(i as u64);
                if i == last {
                    std::thread::sleep(Duration::from_millis(30));
                }
            };
            block.forall(|_, _, _| 0, slow).unwrap();
        }
        // What was told before is copied, by whichever process.
        cyclic.assign(&block).unwrap();
        let wanted: Vec<u64> = values.iter().zip(0..).map(|(x, i)| x.wrapping_add(step * i)).collect();
        if super::nodes::are_several() && super::rank() == 0 {
            // It is done in all processes.
            block.write(0, &values).unwrap();
        }
        meet(team);
        assert!(cyclic.read(0..len).unwrap() == wanted, "round {round}");
        meet(team);
    }
}
