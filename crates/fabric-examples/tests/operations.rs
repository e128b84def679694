//! The device API on GPUs: every operation against a naive model of the memory of all PEs, accesses past the end, litmus
//! tests of the memory order.

#[path = "../../fabric/tests/teams/mod.rs"]
mod teams;

use std::time::Instant;
use tandem_fabric::{ffi as fabric, Error, FaultKind, OneSided, Options, Symmetric, Team};
use tandem_fabric_examples::{ffi, litmus, single, Litmus};
use teams::{each_cuda, numbers};

/// Bytes of each PE that the operations work on.
const BYTES: usize = 1 << 17;

/// Random numbers, one after the other.
struct Random(std::vec::IntoIter<u64>);

impl Random {
    fn new(seed: u64) -> Self {
        Random(numbers(200_000, seed).into_iter())
    }
    fn any(&mut self) -> u64 {
        self.0.next().expect("enough numbers")
    }
    fn below(&mut self, bound: usize) -> usize {
        (self.any() >> 8) as usize % bound
    }
}

/// The memory of every PE as it should be.
struct Model {
    bytes: Vec<Vec<u8>>,
    memory: Symmetric<u8>,
}

impl Model {
    fn new(team: &Team, seed: u64) -> Self {
        let memory = team.alloc(BYTES).unwrap();
        let bytes: Vec<Vec<u8>> = (0..team.size()).map(|pe| numbers(BYTES, seed * 100 + pe as u64)).collect();
        for (pe, bytes) in bytes.iter().enumerate() {
            team.write(pe, &memory, bytes).unwrap();
        }
        Model { bytes, memory }
    }

    fn copy(&mut self, (to_pe, to): (usize, usize), (from_pe, from): (usize, usize), bytes: usize) {
        let moved = self.bytes[from_pe][from..from + bytes].to_vec();
        self.bytes[to_pe][to..to + bytes].copy_from_slice(&moved);
    }

    fn word(&self, pe: usize, at: usize, bytes: usize) -> u64 {
        let mut word = [0; 8];
        word[..bytes].copy_from_slice(&self.bytes[pe][at..at + bytes]);
        u64::from_le_bytes(word)
    }

    fn set_word(&mut self, pe: usize, at: usize, bytes: usize, value: u64) {
        self.bytes[pe][at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
    }

    fn compare(&self, team: &Team, what: &str) {
        team.synchronize().unwrap();
        for (pe, expected) in self.bytes.iter().enumerate() {
            let found = team.read(pe, &self.memory).unwrap();
            let differs = found.iter().zip(expected).position(|(a, b)| a != b);
            assert_eq!(differs, None, "{what}: PE {pe} of {} differs at this byte", team.size());
        }
    }
}

/// Does one operation and changes the model likewise; says what it did.
fn operate(team: &Team, model: &mut Model, random: &mut Random) -> String {
    let (me, peer) = (random.below(team.size()), random.below(team.size()));
    let queue = team.queue(me);
    let op = [
        ffi::TANDEM_SINGLE_PUT,
        ffi::TANDEM_SINGLE_GET,
        ffi::TANDEM_SINGLE_IPUT,
        ffi::TANDEM_SINGLE_IGET,
        ffi::TANDEM_SINGLE_PUT_SIGNAL,
        ffi::TANDEM_SINGLE_P,
        ffi::TANDEM_SINGLE_G,
        ffi::TANDEM_SINGLE_ATOMIC,
        ffi::TANDEM_SINGLE_CHANGE,
    ][random.below(9)];
    let is_atomic = op == ffi::TANDEM_SINGLE_ATOMIC || op == ffi::TANDEM_SINGLE_CHANGE;
    let (element, alignment) = if is_atomic {
        [(4, 4), (8, 8)][random.below(2)]
    } else {
        [(1, 1), (2, 2), (4, 4), (8, 8), (12, 4), (16, 16)][random.below(6)]
    };
    let strided = op == ffi::TANDEM_SINGLE_IPUT || op == ffi::TANDEM_SINGLE_IGET;
    let quarter = BYTES / 4;
    let count = match random.below(4) {
        _ if op >= ffi::TANDEM_SINGLE_P => 1,
        0 if !strided => [0, 1, 2, 3, 7, 31, 32, 33, 255, 256, 257][random.below(11)],
        1 => random.below(100),
        _ if strided => random.below(100),
        _ => random.below(quarter / element),
    };
    let (to_stride, from_stride) = if strided { (1 + random.below(9), 1 + random.below(9)) } else { (1, 1) };
    // Targets in the first quarter, sources in the second, signals in the third.
    let mut place = |which: usize, elements: usize| {
        let room = (quarter - elements * element) / alignment;
        which * quarter + random.below(room.max(1)) * alignment
    };
    let (to, from) = (place(0, count * to_stride), place(1, count * from_stride));
    let signal = 2 * quarter + 8 * random.below(1000);
    let how = if op == ffi::TANDEM_SINGLE_PUT_SIGNAL {
        [fabric::TANDEM_AMO_SET, fabric::TANDEM_AMO_ADD][random.below(2)]
    } else if op == ffi::TANDEM_SINGLE_CHANGE {
        random.below(6) as i32
    } else {
        random.below(8) as i32
    };
    let mask = if element == 4 { u64::from(u32::MAX) } else { u64::MAX };
    let before = if is_atomic { model.word(peer, to, element) } else { 0 };
    let value = random.any() & mask;
    let expected = if random.below(2) == 0 { before } else { random.any() & mask };
    let base = queue.address(&model.memory).unwrap();
    let args = ffi::tandem_single_args {
        to: base + to as u64,
        from: base + from as u64,
        signal: base + signal as u64,
        to_stride: to_stride as u64,
        from_stride: from_stride as u64,
        count: count as u64,
        value,
        expected,
        op,
        how,
        scope: random.below(3) as i32,
        element: element as u32,
        peer: peer as u32,
        threads: [32, 64, 96, 100, 256, 512][random.below(6)],
    };
    // SAFETY: all places are inside the memory of the model.
    unsafe { single(queue, &args).unwrap() };
    queue.synchronize().unwrap();

    match op {
        ffi::TANDEM_SINGLE_PUT | ffi::TANDEM_SINGLE_P => model.copy((peer, to), (me, from), count * element),
        ffi::TANDEM_SINGLE_GET | ffi::TANDEM_SINGLE_G => model.copy((me, to), (peer, from), count * element),
        ffi::TANDEM_SINGLE_IPUT | ffi::TANDEM_SINGLE_IGET => {
            let (to_pe, from_pe) = if op == ffi::TANDEM_SINGLE_IPUT { (peer, me) } else { (me, peer) };
            for i in 0..count {
                let (t, f) = (to + i * to_stride * element, from + i * from_stride * element);
                model.copy((to_pe, t), (from_pe, f), element);
            }
        }
        ffi::TANDEM_SINGLE_PUT_SIGNAL => {
            model.copy((peer, to), (me, from), count * element);
            let old = model.word(peer, signal, 8);
            let new = if how == fabric::TANDEM_AMO_SET { value } else { old.wrapping_add(value) };
            model.set_word(peer, signal, 8, new);
        }
        _ => {
            let new = match how {
                fabric::TANDEM_AMO_SET => value,
                fabric::TANDEM_AMO_ADD => before.wrapping_add(value) & mask,
                fabric::TANDEM_AMO_INC => before.wrapping_add(1) & mask,
                fabric::TANDEM_AMO_AND => before & value,
                fabric::TANDEM_AMO_OR => before | value,
                fabric::TANDEM_AMO_XOR => before ^ value,
                fabric::TANDEM_AMO_COMPARE_SWAP if before == expected => value,
                _ => before,
            };
            model.set_word(peer, to, element, new);
            if op == ffi::TANDEM_SINGLE_ATOMIC {
                model.set_word(me, from, element, before);
            }
        }
    }
    format!(
        "operation {op} by {} of {count} elements of {element} bytes, {me} to {peer}, at {to} and {from}",
        args.scope
    )
}

#[test]
fn operations_agree_with_a_naive_model() {
    each_cuda(&Options::default(), |team| {
        let mut random = Random::new(team.size() as u64);
        let mut model = Model::new(team, 7);
        let mut last = String::new();
        for round in 0..4000 {
            last = operate(team, &mut model, &mut random);
            if round % 50 == 49 {
                model.compare(team, &last);
            }
        }
        model.compare(team, &last);
        // A wrong byte is found.
        model.bytes[0][12345] ^= 1;
        let found = team.read(0, &model.memory).unwrap();
        assert_ne!(found, model.bytes[0]);
    });
}

/// Waits for any and for some of several words, by each scope: every thread of the group gets the same, and it is right. Where there
/// are several PEs, another one raises the words while the kernel waits.
#[test]
fn waits_of_groups_agree_with_a_naive_model() {
    const WORDS: usize = 40;
    const THREADS: usize = 512;
    each_cuda(&Options::default(), |team| {
        let mut random = Random::new(31 + team.size() as u64);
        let (words, skip): (Symmetric<u64>, Symmetric<i32>) = (team.alloc(WORDS).unwrap(), team.alloc(WORDS).unwrap());
        let got: Symmetric<u64> = team.alloc(2 * THREADS + WORDS).unwrap();
        for round in 0..600 {
            let (me, other) = (random.below(team.size()), random.below(team.size()));
            let (count, wanted) = (1 + random.below(WORDS), random.any());
            let has_skip = random.below(2) == 0;
            let chosen = random.below(count);
            let mut skipped: Vec<i32> = (0..WORDS).map(|_| i32::from(random.below(3) == 0)).collect();
            skipped[chosen] = 0;
            let is_late = other != me && random.below(2) == 0;
            let mut now: Vec<u64> = (0..WORDS)
                .map(|_| if !is_late && random.below(4) == 0 { wanted } else { random.any() ^ 1 << 40 })
                .collect();
            now[chosen] = if is_late { wanted ^ 1 } else { wanted };
            team.write(me, &words, &now).unwrap();
            team.write(me, &skip, &skipped).unwrap();
            team.write(me, &got, &vec![u64::MAX - 1; got.len()]).unwrap();
            let queue = team.queue(me);
            let (op, first) =
                ([ffi::TANDEM_SINGLE_WAIT_ANY, ffi::TANDEM_SINGLE_WAIT_SOME][random.below(2)], random.below(count));
            let scope = random.below(3) as i32;
            let threads = [32, 64, 100, 256, 512][random.below(5)];
            let args = ffi::tandem_single_args {
                to: queue.address(&got).unwrap(),
                from: queue.address(&words).unwrap(),
                signal: if has_skip { queue.address(&skip).unwrap() } else { 0 },
                to_stride: 1,
                from_stride: 1,
                count: count as u64,
                value: wanted,
                expected: first as u64,
                op,
                how: fabric::TANDEM_CMP_EQ,
                scope,
                element: 8,
                peer: other as u32,
                threads,
            };
            // SAFETY: all places are inside memory of the team.
            unsafe { single(queue, &args).unwrap() };
            if is_late {
                now[chosen] = wanted;
                team.queue(other).p(&words.at(chosen).unwrap(), wanted, me).unwrap();
                team.queue(other).synchronize().unwrap();
            }
            queue.synchronize().unwrap();
            let fits = |i: &usize| now[*i] == wanted && !(has_skip && skipped[*i] != 0);
            let all: Vec<u64> = (0..count).filter(fits).map(|i| i as u64).collect();
            let group = [1, 32, threads as usize][scope as usize];
            let found = team.read(me, &got).unwrap();
            let what = format!("round {round}, operation {op}, scope {scope}, {threads} threads, late: {is_late}");
            let any = (first..count).chain(0..first).find(fits).unwrap() as u64;
            let expected = if op == ffi::TANDEM_SINGLE_WAIT_ANY { any } else { all.len() as u64 };
            assert!(found[..group].iter().all(|f| *f == expected), "{what}: {expected}, found {:?}", &found[..group]);
            assert!(found[group..THREADS].iter().all(|f| *f == u64::MAX - 1), "{what}: threads outside the group");
            if op == ffi::TANDEM_SINGLE_WAIT_SOME {
                let sum: u64 = all.iter().sum();
                let sums = &found[THREADS..][..group];
                assert!(sums.iter().all(|seen| *seen == sum), "{what}: indices as threads see them");
                assert_eq!(found[2 * THREADS..][..all.len()], all, "{what}");
            }
        }
    });
}

/// Puts, gets and atomics past the end of what is mapped, and of a PE that is not there: the fault names PE and place.
#[test]
fn accesses_past_the_end_are_found() {
    each_cuda(&Options::default(), |team| {
        let whole = team.split(&(0..team.size()).collect::<Vec<_>>()).unwrap();
        let (last, size) = (whole.size() - 1, whole.size() as u32);
        for (op, peer) in [
            (ffi::TANDEM_SINGLE_PUT, 0),
            (ffi::TANDEM_SINGLE_GET, 0),
            (ffi::TANDEM_SINGLE_IGET, 0),
            (ffi::TANDEM_SINGLE_P, size),
        ] {
            // Each fault makes a team unusable.
            let broken = whole.split(&(0..whole.size()).collect::<Vec<_>>()).unwrap();
            let memory: Symmetric<u8> = broken.alloc(256).unwrap();
            let queue = broken.queue(last);
            let handle = queue.handle().unwrap();
            let (here, end) = (queue.address(&memory).unwrap(), handle.own + handle.mapped);
            let past = if peer == size { here } else { end - 8 };
            let is_get = op == ffi::TANDEM_SINGLE_GET || op == ffi::TANDEM_SINGLE_IGET;
            let args = ffi::tandem_single_args {
                to: if is_get { here } else { past },
                from: if is_get { past } else { here },
                signal: 0,
                to_stride: 1,
                from_stride: if op == ffi::TANDEM_SINGLE_IGET { 3 } else { 1 },
                count: if op == ffi::TANDEM_SINGLE_IGET { 2 } else { 3 },
                value: 0,
                expected: 0,
                op,
                how: 0,
                scope: 2,
                element: 4,
                peer,
                threads: 64,
            };
            // SAFETY: the kernel checks what it accesses.
            unsafe { single(queue, &args).unwrap() };
            let Err(Error::Fault(fault)) = queue.synchronize() else { panic!("operation {op} went past the end") };
            println!("{fault}");
            let named = (peer < size).then_some(0);
            assert_eq!((fault.kind, fault.waiter, fault.peer), (FaultKind::Bounds, last, named.or(fault.peer)));
            assert_eq!(
                fault.wanted,
                if op == ffi::TANDEM_SINGLE_IGET {
                    16
                } else if peer == size {
                    4
                } else {
                    12
                }
            );
            assert!(matches!(queue.barrier(), Err(Error::Fault(_))), "the team is unusable");
        }
        // Other teams of the same GPUs are not.
        whole.barrier().unwrap();
        whole.synchronize().unwrap();
    });
}

/// Where the host keeps where allocations end: the last element of one can be put, the one behind it cannot, although it is
/// mapped, and memory that was freed cannot either.
#[test]
fn accesses_past_the_end_of_an_allocation_are_found() {
    each_cuda(&Options { checks: true, ..Options::default() }, |team| {
        let last = team.size() - 1;
        let attempt = |freed: bool, op: i32, offset: u64, elements: u64| {
            let alone = team.split(&(0..team.size()).collect::<Vec<_>>()).unwrap();
            let (memory, behind): (Symmetric<u32>, Symmetric<u32>) =
                (alone.alloc(75).unwrap(), alone.alloc(4).unwrap());
            let queue = alone.queue(last);
            let (at, other) = (queue.address(&memory).unwrap() + offset, queue.address(&behind).unwrap());
            if freed {
                const OTHER: usize = 4 << 20;
                let used = team.heap_bytes().1 + OTHER as u64;
                drop(memory);
                // An allocation takes back what was freed, once it has been wiped.
                while alone.alloc::<u8>(OTHER).is_ok_and(|_other| team.heap_bytes().1 >= used) {}
            }
            let is_get = op == ffi::TANDEM_SINGLE_GET;
            let args = ffi::tandem_single_args {
                to: if is_get { other } else { at },
                from: if is_get { at } else { other },
                signal: 0,
                to_stride: 1,
                from_stride: 1,
                count: elements,
                value: 0,
                expected: 0,
                op,
                how: 0,
                scope: 0,
                element: 4,
                peer: 0,
                threads: 32,
            };
            // SAFETY: the kernel checks what it accesses at the peer; `other` has four elements.
            unsafe { single(queue, &args).unwrap() };
            queue.synchronize()
        };
        for op in [ffi::TANDEM_SINGLE_PUT, ffi::TANDEM_SINGLE_GET] {
            attempt(false, op, 284, 4).unwrap();
            for (freed, offset, elements) in [(false, 288, 4), (false, 300, 1), (true, 0, 1)] {
                let Err(Error::Fault(fault)) = attempt(freed, op, offset, elements) else {
                    panic!("operation {op} of {elements} elements at {offset} was not found, freed: {freed}")
                };
                println!("{fault}");
                assert_eq!((fault.kind, fault.waiter, fault.peer), (FaultKind::Bounds, last, Some(0)));
                assert_eq!(fault.wanted, 4 * elements);
                let place = format!("byte {offset} of the 300 bytes");
                assert!(freed || fault.place.contains(&place), "{}", fault.place);
            }
        }
    });
}

/// A million rounds each: nothing forbidden happens; and without the fence between two writes and reads it does.
#[test]
fn litmus_tests_over_a_million_rounds() {
    each_cuda(&Options::default(), |team| {
        if team.size() < 2 {
            return;
        }
        const LANES: u32 = 64;
        const ROUNDS: u64 = 1 << 14;
        for test in [Litmus::Message, Litmus::MessageGroup, Litmus::PutSignal, Litmus::Buffering] {
            let start = Instant::now();
            let (forbidden, rounds) = litmus(team, test, LANES, ROUNDS).unwrap();
            println!("{test:?}: {forbidden} of {rounds} rounds, {:.1} s", start.elapsed().as_secs_f64());
            assert!(rounds >= 1_000_000, "{test:?}: {rounds} rounds were run");
            assert_eq!(forbidden, 0, "{test:?}");
        }
        // The tests can fail: these leave the order out.
        for test in [Litmus::MessageEarly, Litmus::BufferingLoud] {
            let (weak, rounds) = litmus(team, test, LANES, ROUNDS).unwrap();
            println!("{test:?}: {weak} of {rounds}");
            assert!(weak > 0, "{test:?} found nothing in {rounds} rounds");
        }
    });
}
