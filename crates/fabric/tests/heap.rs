//! Teams and one-sided operations: one suite, run on pretend PEs, one to eight of them, and on every number of GPUs that
//! the machine has. Where there is none the latter are passed over, or fail if `TANDEM_REQUIRE_GPU=1`.

mod teams;

use std::time::Duration;
use tandem_fabric::{Atomic, Compare, Error, OneSided, Options, Signal, Symmetric, Team, Word};
use teams::{each, numbers};

#[test]
fn memory_is_zero_and_then_what_was_written() {
    each(&Options::default(), |team| {
        for len in [0, 1, 2, 7, 511, 512, 513, 100_003] {
            let memory: Symmetric<u8> = team.alloc(len).unwrap();
            assert_eq!((memory.len(), memory.is_empty(), memory.bytes()), (len, len == 0, len as u64));
            for pe in 0..team.size() {
                assert_eq!(team.read(pe, &memory).unwrap(), vec![0; len]);
            }
            let contents: Vec<Vec<u8>> = (0..team.size()).map(|pe| numbers(len, pe as u64)).collect();
            for (pe, bytes) in contents.iter().enumerate() {
                team.write(pe, &memory, bytes).unwrap();
            }
            for (pe, bytes) in contents.iter().enumerate() {
                assert!(team.read(pe, &memory).unwrap() == *bytes, "{len} bytes of PE {pe}");
            }
            // Freed memory is wiped before it is used again.
            drop(memory);
            team.synchronize().unwrap();
            let again: Symmetric<u8> = team.alloc(len).unwrap();
            assert_eq!(team.read(team.size() - 1, &again).unwrap(), vec![0; len]);
        }
    });
}

#[test]
fn offsets_are_the_same_everywhere_and_reused() {
    each(&Options::default(), |team| {
        let a: Symmetric<u64> = team.alloc(1000).unwrap();
        let b: Symmetric<u64> = team.alloc(1000).unwrap();
        let window = |m: &Symmetric<u64>, pe| m.address(pe).unwrap() - m.offset().unwrap();
        for pe in 0..team.size() {
            assert_eq!(window(&a, pe), window(&b, pe), "a window begins where it begins");
        }
        assert_eq!(a.address(team.size()), None);
        // Addresses are by PE of the world, whatever a team that was split off calls it.
        let turned = team.split(&(0..team.size()).rev().collect::<Vec<_>>()).unwrap();
        for pe in 0..turned.size() {
            let at = turned.queue(pe).address(&a).unwrap();
            assert_eq!(a.address(turned.members()[pe]), Some(at));
            assert_eq!(team.queue(team.size() - 1 - pe).address(&a).unwrap(), at);
        }
        assert_eq!(b.slice(10..20).unwrap().offset().unwrap(), b.offset().unwrap() + 80);
        let (first, (mapped, used)) = (a.offset(), team.heap_bytes());
        drop(a);
        team.synchronize().unwrap();
        // The wipe of what was freed may still be under way; then another place is taken.
        let mut places: Vec<Symmetric<u64>> = Vec::new();
        while places.last().is_none_or(|place| place.offset() != first) {
            assert!(places.len() < 1000, "freed memory is not used again");
            places.push(team.alloc(1000).unwrap());
            std::thread::sleep(Duration::from_micros(100));
        }
        drop(places);
        // Two hundred times 512 KiB do not add up.
        for _ in 0..200 {
            drop(team.alloc::<u64>(1 << 16).unwrap());
            team.synchronize().unwrap();
            std::thread::sleep(Duration::from_micros(50));
        }
        assert!(team.heap_bytes().0 < mapped + (64 << 20), "{:?} from {mapped} and {used}", team.heap_bytes());
    });
}

/// What this process reads and writes at their addresses is what pretend PEs have, wherever the heap has grown.
#[test]
fn pretend_pes_lie_in_this_process() {
    each(&Options { window: 32 << 20, ..Options::default() }, |team| {
        let arrays: Vec<Symmetric<u8>> = [1, 70_000, 3, 200_001].map(|len| team.alloc(len).unwrap()).into();
        for (memory, pe) in arrays.iter().flat_map(|memory| (0..team.size()).map(move |pe| (memory, pe))) {
            let Some(at) = memory.host_address(pe) else {
                assert!(team.is_cuda(), "PE {pe} has no address");
                continue;
            };
            let apart = at.wrapping_sub(memory.host_address(0).unwrap());
            assert_eq!(apart, memory.address(pe).unwrap() - memory.address(0).unwrap());
            let bytes: Vec<u8> = numbers(memory.len(), pe as u64);
            team.write(pe, memory, &bytes).unwrap();
            // SAFETY: the memory of a pretend PE, which no queue is using.
            let seen = unsafe { std::slice::from_raw_parts_mut(at as *mut u8, memory.len()) };
            assert!(*seen == bytes);
            seen[0] ^= 255;
            assert_eq!(team.read(pe, memory).unwrap()[0], !bytes[0]);
        }
        assert_eq!((arrays[0].host_address(team.size()), team.is_cuda()), (None, arrays[0].host_address(0).is_none()));
    });
}

#[test]
fn put_and_get_move_exactly_what_they_say() {
    each(&Options::default(), |team| {
        let n = team.size();
        const LEN: usize = 70_001;
        let (source, target): (Symmetric<u8>, Symmetric<u8>) = (team.alloc(LEN).unwrap(), team.alloc(LEN).unwrap());
        let mut model: Vec<Vec<u8>> = (0..n).map(|pe| numbers(LEN, 100 + pe as u64)).collect();
        let from: Vec<Vec<u8>> = (0..n).map(|pe| numbers(LEN, 200 + pe as u64)).collect();
        for (pe, (target_bytes, source_bytes)) in model.iter().zip(&from).enumerate() {
            team.write(pe, &target, target_bytes).unwrap();
            team.write(pe, &source, source_bytes).unwrap();
        }
        // Odd places and lengths, everyone to everyone, no two to the same bytes.
        let part = LEN / n;
        for (me, source_of_me) in from.iter().enumerate() {
            for (i, len) in [0, 1, 3, 8, 17, 4096, part - 100].into_iter().enumerate() {
                let pe = (me + i) % n;
                let (to, at) = (me * part + 7 + i, i * 3 + 1);
                let queue = team.queue(me);
                queue.put(&target.slice(to..to + len).unwrap(), &source.slice(at..at + len).unwrap(), pe).unwrap();
                model[pe][to..to + len].copy_from_slice(&source_of_me[at..at + len]);
                // The next writes over some of it, in order.
                team.synchronize().unwrap();
            }
        }
        for (pe, (target_bytes, source_bytes)) in model.iter().zip(&from).enumerate() {
            assert!(team.read(pe, &target).unwrap() == *target_bytes, "target of PE {pe}");
            assert!(team.read(pe, &source).unwrap() == *source_bytes, "source of PE {pe}");
        }
        for me in 0..n {
            let pe = (me + 1) % n;
            team.queue(me).get(&target.slice(5..LEN - 3).unwrap(), &source.slice(2..LEN - 6).unwrap(), pe).unwrap();
        }
        team.synchronize().unwrap();
        for me in 0..n {
            model[me][5..LEN - 3].copy_from_slice(&from[(me + 1) % n][2..LEN - 6]);
            assert!(team.read(me, &target).unwrap() == model[me], "after get, PE {me}");
        }
    });
}

fn strided_of<T: Word>(team: &Team, make: impl Fn(u64) -> T) {
    let n = team.size();
    let (a, b): (Symmetric<T>, Symmetric<T>) = (team.alloc(1000).unwrap(), team.alloc(1000).unwrap());
    let values = |seed: u64| -> Vec<T> { numbers::<u64>(1000, seed).into_iter().map(&make).collect() };
    let sources: Vec<Vec<T>> = (0..n).map(|pe| values(pe as u64)).collect();
    for (count, to_stride, from_stride) in [(0, 1, 1), (1, 500, 999), (333, 3, 1), (142, 7, 5), (999, 1, 1)] {
        for put in [true, false] {
            let mut model: Vec<Vec<T>> = (0..n).map(|pe| values(50 + pe as u64)).collect();
            for (pe, (source, target)) in sources.iter().zip(&model).enumerate() {
                team.write(pe, &a, source).unwrap();
                team.write(pe, &b, target).unwrap();
            }
            let (to, from) = (b.slice(1..1000).unwrap(), a.slice(1..1000).unwrap());
            for me in 0..n {
                let pe = (me + 1) % n;
                let queue = team.queue(me);
                let (reader, writer) = if put { (pe, me) } else { (me, pe) };
                if put {
                    queue.put_strided(&to, to_stride, &from, from_stride, count, pe).unwrap();
                } else {
                    queue.get_strided(&to, to_stride, &from, from_stride, count, pe).unwrap();
                }
                for i in 0..count {
                    model[reader][1 + i * to_stride] = sources[writer][1 + i * from_stride];
                }
            }
            team.synchronize().unwrap();
            for (pe, expected) in model.iter().enumerate() {
                assert_eq!(team.read(pe, &b).unwrap(), *expected, "{count} of {to_stride} from {from_stride}, PE {pe}");
            }
        }
    }
}

#[test]
fn strides_leave_gaps_alone() {
    each(&Options::default(), |team| {
        strided_of::<u32>(team, |x| x as u32);
        strided_of::<i64>(team, |x| x as i64);
        // Elements of 3 and 24 bytes.
        let (a, b): (Symmetric<[u8; 3]>, Symmetric<[u8; 3]>) = (team.alloc(9).unwrap(), team.alloc(9).unwrap());
        let values: Vec<[u8; 3]> = numbers(27, 3).chunks(3).map(|c: &[u8]| c.try_into().unwrap()).collect();
        team.write(0, &a, &values).unwrap();
        team.queue(0).put_strided(&b, 4, &a, 2, 3, team.size() - 1).unwrap();
        team.queue(0).synchronize().unwrap();
        let got = team.read(team.size() - 1, &b).unwrap();
        let expected = |i: usize| if i.is_multiple_of(4) { values[i / 2] } else { [0; 3] };
        assert_eq!(got, (0..9).map(expected).collect::<Vec<_>>());
        let wide: Symmetric<[u64; 3]> = team.alloc(4).unwrap();
        team.write(0, &wide, &[[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]]).unwrap();
        let target: Symmetric<[u64; 3]> = team.alloc(4).unwrap();
        team.queue(0).put_strided(&target, 1, &wide, 3, 2, 0).unwrap();
        team.queue(0).synchronize().unwrap();
        assert_eq!(team.read(0, &target).unwrap(), [[1, 2, 3], [10, 11, 12], [0; 3], [0; 3]]);
    });
}

#[test]
fn p_writes_one_element_and_nothing_else() {
    each(&Options::default(), |team| {
        let pe = team.size() - 1;
        let bytes: Symmetric<u8> = team.alloc(64).unwrap();
        let mut model: Vec<u8> = numbers(64, 9);
        team.write(pe, &bytes, &model).unwrap();
        let queue = team.queue(0);
        queue.p(&bytes.at(3).unwrap(), 0xab, pe).unwrap();
        queue.p(&bytes.slice(10..12).unwrap().cast().unwrap().at(0).unwrap(), 0x0102u16, pe).unwrap();
        queue.p(&bytes.slice(16..24).unwrap().cast().unwrap(), u64::MAX - 5, pe).unwrap();
        queue.p(&bytes.slice(32..48).unwrap().cast().unwrap(), [7u64, 8], pe).unwrap();
        queue.p(&bytes.slice(49..54).unwrap().cast().unwrap(), [1u8, 2, 3, 4, 5], pe).unwrap();
        queue.synchronize().unwrap();
        model[3] = 0xab;
        model[10..12].copy_from_slice(&0x0102u16.to_ne_bytes());
        model[16..24].copy_from_slice(&(u64::MAX - 5).to_ne_bytes());
        model[32..40].copy_from_slice(&7u64.to_ne_bytes());
        model[40..48].copy_from_slice(&8u64.to_ne_bytes());
        model[49..54].copy_from_slice(&[1, 2, 3, 4, 5]);
        assert_eq!(team.read(pe, &bytes).unwrap(), model);
    });
}

fn atomics_of<T: Word>(team: &Team, values: [T; 4]) {
    let [a, b, c, d] = values;
    let n = team.size();
    let (word, old): (Symmetric<T>, Symmetric<T>) = (team.alloc(3).unwrap(), team.alloc(3).unwrap());
    // The neighbours must stay.
    let middle = word.at(1).unwrap();
    let steps = [
        Atomic::Set(a),
        Atomic::Add(b),
        Atomic::Inc,
        Atomic::Or(c),
        Atomic::And(d),
        Atomic::Xor(a),
        Atomic::CompareSwap { expected: a, value: b },
        Atomic::Set(c),
        Atomic::CompareSwap { expected: c, value: d },
        Atomic::Fetch,
    ];
    for (me, pe) in [(0, n - 1), (n - 1, 0), (0, 0)] {
        let queue = team.queue(me);
        team.write(pe, &word, &[a; 3]).unwrap();
        team.write(me, &old, &[b; 3]).unwrap();
        let mut before = a;
        for step in steps {
            queue.fetch_atomic(&middle, step, pe, &old.at(1).unwrap()).unwrap();
            queue.synchronize().unwrap();
            let got = team.read(me, &old).unwrap();
            assert_eq!(got, [b, before, b], "what {step:?} fetched");
            let now = team.read(pe, &word).unwrap();
            assert_eq!((now[0], now[2]), (a, a), "{step:?} changed a neighbour");
            before = now[1];
            // From the host, and without fetching, on an equal start.
            let other = team.alloc::<T>(1).unwrap();
            team.write(pe, &other, &[got[1]]).unwrap();
            assert_eq!(team.atomic(pe, &other, step).unwrap(), got[1]);
            assert_eq!(team.read(pe, &other).unwrap(), [before]);
            team.write(pe, &other, &[got[1]]).unwrap();
            queue.atomic(&other, step, pe).unwrap();
            queue.synchronize().unwrap();
            assert_eq!(team.read(pe, &other).unwrap(), [before], "{step:?}");
        }
        assert_eq!(before, d);
    }
}

#[test]
fn atomics_change_one_word() {
    each(&Options::default(), |team| {
        atomics_of::<u32>(team, [0xdead_beef, 0xffff_0001, 0x0f0f_0f0f, 0x1234_5678]);
        atomics_of::<i32>(team, [-7, i32::MIN, 0x7070_7070, -1]);
        atomics_of::<u64>(team, [u64::MAX, 0x8000_0000_0000_0001, 0xff00_ff00, 0x1234_5678_9abc_def0]);
        atomics_of::<i64>(team, [-1, i64::MIN, i64::MAX, -0x1234_5678_9abc]);
    });
}

#[test]
fn counts_of_all_pes_add_up() {
    each(&Options::default(), |team| {
        let n = team.size();
        let counts: Symmetric<u32> = team.alloc(2).unwrap();
        for _ in 0..50 {
            for queue in team.queues() {
                queue.atomic(&counts.at(0).unwrap(), Atomic::Inc, 0).unwrap();
                queue.atomic(&counts.at(1).unwrap(), Atomic::Add(queue.me() as u32 + 1), n - 1).unwrap();
            }
        }
        team.synchronize().unwrap();
        assert_eq!(team.read(0, &counts).unwrap()[0], 50 * n as u32);
        assert_eq!(team.read(n - 1, &counts).unwrap()[1], (50 * n * (n + 1) / 2) as u32);
    });
}

#[test]
fn a_signal_comes_after_its_data() {
    each(&Options::default(), |team| {
        let n = team.size();
        const LEN: usize = 4097;
        let (out, inbox): (Symmetric<u64>, Symmetric<u64>) = (team.alloc(LEN).unwrap(), team.alloc(LEN).unwrap());
        let copy: Symmetric<u64> = team.alloc(LEN).unwrap();
        let (ready, free): (Symmetric<u64>, Symmetric<u64>) = (team.alloc(1).unwrap(), team.alloc(1).unwrap());
        let mut sums = vec![0u64; n];
        for round in 1..=20u64 {
            for me in 0..n {
                team.queue(me).synchronize().unwrap();
                team.write(me, &out, &vec![round * 1000 + me as u64; LEN]).unwrap();
                let (right, left) = ((me + 1) % n, (me + n - 1) % n);
                let queue = team.queue(me);
                // The right neighbour has taken what it got last time.
                queue.signal_wait_until(&free, Compare::Ge, round - 1, Some(right)).unwrap();
                let signal = if round.is_multiple_of(2) { Signal::Set(round) } else { Signal::Add(1) };
                queue.put_signal(&inbox, &out, &ready, signal, right).unwrap();
                queue.signal_wait_until(&ready, Compare::Ge, round, Some(left)).unwrap();
                queue.put(&copy, &inbox, me).unwrap();
                queue.signal_op(&free, Signal::Add(1), left).unwrap();
            }
            team.synchronize().unwrap();
            for (me, sum) in sums.iter_mut().enumerate() {
                let got = team.read(me, &copy).unwrap();
                let expected = round * 1000 + ((me + n - 1) % n) as u64;
                assert!(got.iter().all(|&x| x == expected), "round {round}, PE {me}: {} for {expected}", got[0]);
                *sum += got[0];
            }
        }
        assert!(sums.iter().all(|&sum| sum > 0));
    });
}

/// Waits for words of a type; `word` makes them of numbers from -5 to 10, in their order.
fn waits_of<T: Word + PartialEq + std::fmt::Debug>(team: &Team, word: impl Fn(i64) -> T) {
    let n = team.size();
    let (pe, other) = (n - 1, 0);
    let queue = team.queue(pe);
    let words: Symmetric<T> = team.alloc(70).unwrap();
    let found: Symmetric<u64> = team.alloc(71).unwrap();
    let first = found.at(0).unwrap();
    team.write(pe, &words, &[word(-5); 70]).unwrap();
    for (compare, value) in
        [(Compare::Eq, -5), (Compare::Ne, 5), (Compare::Gt, -6), (Compare::Ge, -5), (Compare::Lt, 0), (Compare::Le, -5)]
    {
        queue.wait_until(&words, compare, word(value), None).unwrap();
    }
    queue.synchronize().unwrap();
    let sender = team.new_queue(other).unwrap();
    queue.wait_until_any(&words, Compare::Gt, word(0), Some(other), &first).unwrap();
    sender.p(&words.at(67).unwrap(), word(3), pe).unwrap();
    queue.synchronize().unwrap();
    assert_eq!(team.read(pe, &first).unwrap(), [67]);
    sender.p(&words.at(2).unwrap(), word(4), pe).unwrap();
    sender.p(&words.at(69).unwrap(), word(5), pe).unwrap();
    sender.synchronize().unwrap();
    queue.wait_until_some(&words, Compare::Gt, word(0), Some(other), &found).unwrap();
    queue.synchronize().unwrap();
    assert_eq!(team.read(pe, &found).unwrap()[..4], [3, 2, 67, 69]);
    // All of them, one after the other, the last one first.
    queue.wait_until(&words, Compare::Eq, word(9), Some(other)).unwrap();
    for i in (0..70).rev() {
        sender.atomic(&words.at(i).unwrap(), Atomic::Set(word(9)), pe).unwrap();
    }
    queue.synchronize().unwrap();
    assert_eq!(team.read(pe, &words).unwrap(), [word(9); 70]);
    queue.wait_until(&words.slice(4..4).unwrap(), Compare::Eq, word(1), None).unwrap();
    // The host waits too.
    sender.atomic(&words.at(5).unwrap(), Atomic::Set(word(10)), pe).unwrap();
    team.wait_until(pe, &words.at(5).unwrap(), Compare::Eq, word(10), Some(other)).unwrap();
    assert_eq!(team.wait_until_any(pe, &words, Compare::Gt, word(9), Some(other)).unwrap(), 5);
    sender.atomic(&words.at(60).unwrap(), Atomic::Set(word(10)), pe).unwrap();
    let rest = words.slice(6..70).unwrap();
    assert_eq!(team.wait_until_some(pe, &rest, Compare::Gt, word(9), Some(other)).unwrap(), [54]);
    assert_eq!(team.wait_until_some(pe, &words, Compare::Eq, word(10), None).unwrap(), [5, 60]);
    assert_eq!(team.wait_until_any(pe, &words, Compare::Ne, word(10), None).unwrap(), 0);
}

#[test]
fn waits_compare_and_find() {
    each(&Options::default(), |team| {
        waits_of(team, |x| x as i32);
        // Unsigned words are not signed ones, and all bits of the wide ones count.
        waits_of(team, |x| (x + (1 << 31)) as u32);
        waits_of(team, |x| x << 33);
        waits_of(team, |x| ((x + 16) as u64) << 59 >> 1 | 1 << 63);
    });
}

#[test]
fn barriers_let_nobody_through_early() {
    each(&Options::default(), |team| {
        let n = team.size();
        let (seen, copies): (Symmetric<u32>, Symmetric<u32>) = (team.alloc(n).unwrap(), team.alloc(n * 20).unwrap());
        for round in 1..=20u32 {
            for queue in team.queues() {
                let me = queue.me();
                for pe in 0..n {
                    queue.p(&seen.at(me).unwrap(), round, pe).unwrap();
                }
                queue.barrier().unwrap();
                let at = (round as usize - 1) * n;
                queue.put(&copies.slice(at..at + n).unwrap(), &seen, me).unwrap();
                queue.barrier().unwrap();
            }
        }
        team.barrier().unwrap();
        team.synchronize().unwrap();
        for pe in 0..n {
            let got = team.read(pe, &copies).unwrap();
            let expected: Vec<u32> = (1..=20).flat_map(|round| vec![round; n]).collect();
            assert_eq!(got, expected, "PE {pe}");
        }
    });
}

#[test]
fn queues_order_by_events() {
    each(&Options::default(), |team| {
        let (a, b): (Symmetric<u64>, Symmetric<u64>) = (team.alloc(1 << 16).unwrap(), team.alloc(1 << 16).unwrap());
        let pe = team.size() - 1;
        let (first, second) = (team.new_queue(0).unwrap(), team.new_queue(pe).unwrap());
        for round in 0..10u64 {
            let values = numbers::<u64>(1 << 16, round);
            team.write(0, &a, &values).unwrap();
            first.put(&b, &a, pe).unwrap();
            let sent = first.record().unwrap();
            second.wait(&sent).unwrap();
            second.get(&a, &b, pe).unwrap();
            second.synchronize().unwrap();
            assert!(sent.is_done().unwrap());
            sent.synchronize().unwrap();
            assert!(team.read(pe, &a).unwrap() == values, "round {round}");
        }
    });
}

#[test]
fn teams_split_and_number_their_own() {
    each(&Options::default(), |team| {
        let n = team.size();
        let mine: Symmetric<u32> = team.alloc(1).unwrap();
        for pe in 0..n {
            team.write(pe, &mine, &[pe as u32]).unwrap();
        }
        // Backwards, and of that every other.
        let order: Vec<usize> = (0..n).rev().collect();
        let reverse = team.split(&order).unwrap();
        assert_eq!(reverse.members(), order);
        let some: Vec<usize> = (0..n).step_by(2).collect();
        let half = reverse.split(&some).unwrap();
        assert_eq!(half.members(), some.iter().map(|&pe| n - 1 - pe).collect::<Vec<_>>());
        let got: Symmetric<u32> = half.alloc(1).unwrap();
        for queue in half.queues() {
            queue.get(&got, &mine, (queue.me() + 1) % half.size()).unwrap();
            queue.barrier().unwrap();
        }
        // Barriers of other teams do not count.
        team.barrier().unwrap();
        team.synchronize().unwrap();
        half.synchronize().unwrap();
        for (pe, &world) in half.members().iter().enumerate() {
            let expected = half.members()[(pe + 1) % half.size()] as u32;
            assert_eq!(half.read(pe, &got).unwrap(), [expected]);
            assert_eq!(team.read(world, &got).unwrap(), [expected]);
        }
        for (pes, problem) in [(vec![], "at least one"), (vec![0, 0], "twice"), (vec![n], "there is no PE")] {
            let error = team.split(&pes).err().unwrap().to_string();
            assert!(error.contains(problem), "{error}");
        }
    });
}

#[test]
fn graphs_do_it_again() {
    each(&Options::default(), |team| {
        let n = team.size();
        let (count, sum): (Symmetric<u64>, Symmetric<u64>) = (team.alloc(1).unwrap(), team.alloc(1).unwrap());
        let inbox: Symmetric<u64> = team.alloc(n).unwrap();
        let graphs: Vec<_> = team
            .queues()
            .iter()
            .map(|queue| {
                queue.capture(|queue| {
                    let me = queue.me();
                    queue.atomic(&count, Atomic::Inc, me)?;
                    for pe in 0..n {
                        queue.put(&inbox.at(me)?, &count, pe)?;
                    }
                    queue.barrier()?;
                    queue.atomic(&sum, Atomic::Add(1), (me + 1) % n)?;
                    queue.barrier()
                })
            })
            .collect::<Result<_, _>>()
            .unwrap();
        team.synchronize().unwrap();
        assert_eq!(team.read(0, &count).unwrap(), [0], "nothing is done while recording");
        // The graphs keep what they work on.
        let (offset, copy) = (inbox.offset(), inbox.clone());
        drop(inbox);
        assert!((0..20).all(|_| team.alloc::<u64>(n).unwrap().offset() != offset));
        for round in 1..=5u64 {
            for (queue, graph) in team.queues().iter().zip(&graphs) {
                queue.launch(graph).unwrap();
            }
            team.synchronize().unwrap();
            for pe in 0..n {
                assert_eq!(team.read(pe, &copy).unwrap(), vec![round; n]);
                assert_eq!(team.read(pe, &sum).unwrap(), [round]);
            }
        }
        let other = team.new_queue(0).unwrap();
        assert!(other.launch(&graphs[0]).unwrap_err().to_string().contains("another queue"));
        // A recording that fails leaves the queue as it was.
        let failed = team.queue(0).capture(|queue| {
            assert!(queue.record().is_err() && queue.capture(|_| Ok(())).is_err());
            queue.put(&sum, &copy, 0)
        });
        assert_eq!(failed.is_err(), n != 1);
        team.queue(0).atomic(&count, Atomic::Set(77), 0).unwrap();
        team.queue(0).synchronize().unwrap();
        assert_eq!(team.read(0, &count).unwrap(), [77]);
    });
}

#[test]
fn users_register_their_own_memory() {
    each(&Options::default(), |team| {
        let n = team.size();
        const LEN: usize = 1003;
        let contents: Vec<Vec<u32>> = (0..n).map(|pe| numbers(LEN, 40 + pe as u64)).collect();
        let region = team.register(teams::buffers(team, &contents)).unwrap();
        assert_eq!((region.len(), region.offset()), (LEN, None));
        let heap: Symmetric<u32> = team.alloc(LEN).unwrap();
        for queue in team.queues() {
            let (me, pe) = (queue.me(), (queue.me() + 1) % n);
            queue.get(&heap, &region, pe).unwrap();
            queue.barrier().unwrap();
            queue.atomic(&region.at(LEN - 1).unwrap(), Atomic::Add(me as u32 + 1), pe).unwrap();
            queue.p(&region.at(0).unwrap(), me as u32, pe).unwrap();
        }
        team.synchronize().unwrap();
        let mut expected = contents.clone();
        for me in 0..n {
            assert!(team.read(me, &heap).unwrap() == contents[(me + 1) % n]);
            expected[(me + 1) % n][0] = me as u32;
            let last = &mut expected[(me + 1) % n][LEN - 1];
            *last = last.wrapping_add(me as u32 + 1);
        }
        let part = region.slice(1..2).unwrap();
        assert!(team.unregister(part).unwrap_err().to_string().contains("another handle"));
        let back = team.unregister(region).unwrap();
        for (pe, buffer) in back.into_iter().enumerate() {
            assert!(teams::contents(buffer) == expected[pe], "PE {pe}");
        }
        // Too few, and of different lengths.
        let short: Vec<Vec<u32>> = (0..n).map(|pe| vec![1; 4 + pe]).collect();
        assert_eq!(team.register(teams::buffers(team, &short)).is_err(), n > 1);
        assert!(team.register(teams::buffers(team, &contents[1..])).is_err());
        assert!(team.unregister(heap).unwrap_err().to_string().contains("team's own"));
        // As many as there can be, and room again when one is gone.
        let one = vec![vec![1u32]; n];
        let mut many: Vec<_> = (0..63).map(|_| team.register(teams::buffers(team, &one)).unwrap()).collect();
        while let Ok(more) = team.register(teams::buffers(team, &one)) {
            many.push(more);
            assert!(many.len() <= 64);
        }
        assert_eq!(many.len(), 64);
        team.unregister(many.pop().unwrap()).unwrap();
        many.push(team.register(teams::buffers(team, &one)).unwrap());
    });
}

#[test]
fn misuse_is_an_error_before_anything_happens() {
    each(&Options::default(), |team| {
        let n = team.size();
        let a: Symmetric<u64> = team.alloc(10).unwrap();
        let b: Symmetric<u64> = team.alloc(9).unwrap();
        let other = Team::sim(1, Options::default()).unwrap();
        let foreign: Symmetric<u64> = other.alloc(10).unwrap();
        let queue = team.queue(0);
        let errors = [
            (a.slice(3..11).err(), "3 to 11 of 10"),
            (a.slice(std::ops::Range { start: 4, end: 3 }).err(), "4 to 3"),
            (a.at(10).err(), "of 10"),
            (a.at(usize::MAX).err(), "of 10"),
            (a.slice(0..3).unwrap().cast::<[u64; 2]>().err(), "24 bytes"),
            (queue.put(&a, &b, 0).err(), "9 elements to a place of 10"),
            (queue.put(&a, &a, n).err(), "there is no PE"),
            (queue.get(&a, &a, usize::MAX).err(), "there is no PE"),
            (queue.put(&a, &foreign, 0).err(), "another world"),
            (queue.get(&foreign, &foreign, 0).err(), "another world"),
            (queue.put_strided(&a, 4, &a, 1, 4, 0).err(), "stride 4"),
            (queue.put_strided(&a, 0, &a, 1, 4, 0).err(), "stride 0"),
            (queue.get_strided(&a, 1, &b, 1, 10, 0).err(), "of 9 elements"),
            (queue.get_strided(&a, 1, &a, usize::MAX, 3, 0).err(), "stride"),
            (queue.p(&a, 1, 0).err(), "10 elements"),
            (queue.atomic(&a, Atomic::Inc, 0).err(), "10 elements where one"),
            (queue.fetch_atomic(&a.at(0).unwrap(), Atomic::Inc, 0, &b).err(), "9 elements where one"),
            (queue.put_signal(&b, &b, &a, Signal::Set(1), 0).err(), "10 elements where one"),
            (queue.wait_until(&a, Compare::Eq, 0, Some(n)).err(), "there is no PE"),
            (queue.wait_until_any(&a.slice(0..0).unwrap(), Compare::Eq, 0, None, &b.at(0).unwrap()).err(), "no word"),
            (queue.wait_until_some(&b, Compare::Eq, 0, None, &b).err(), "one more is needed"),
            (team.wait_until_any(0, &a.slice(0..0).unwrap(), Compare::Eq, 0, None).err(), "no word"),
            (team.wait_until_any(0, &a, Compare::Eq, 0, Some(n)).err(), "there is no PE"),
            (team.wait_until_some(0, &a.slice(0..0).unwrap(), Compare::Eq, 0, None).err(), "no word"),
            (team.wait_until_some(n, &a, Compare::Eq, 0, None).err(), "there is no PE"),
            (team.write(n, &a, &[0; 10]).err(), "there is no PE"),
            (team.write(0, &a, &[0; 9]).err(), "9 elements to a place of 10"),
            (team.read(n, &a).err(), "there is no PE"),
            (team.read(0, &foreign).err(), "another world"),
            (team.new_queue(n).err(), "there is no PE"),
            (team.alloc::<()>(3).err(), "0 bytes"),
            (team.alloc::<u64>(usize::MAX).err(), "elements of 8 bytes"),
            (team.alloc::<u8>(usize::MAX).err(), "do not fit"),
        ];
        for (i, (error, words)) in errors.into_iter().enumerate() {
            let error = error.unwrap_or_else(|| panic!("case {i} ({words}) is no error"));
            assert!(matches!(error, Error::Invalid { .. }), "case {i}: {error:?}");
            assert!(error.to_string().contains(words), "case {i}: {error}");
        }
        team.synchronize().unwrap();
        assert_eq!(team.read(0, &b).unwrap(), [0; 9]);
    });
}

#[test]
fn opening_is_checked() {
    for (pes, options, words) in [
        (0, Options::default(), "0 PEs"),
        (33, Options::default(), "33 PEs"),
        (2, Options { apart: vec![(0, 2)], ..Options::default() }, "name PE 2"),
        (2, Options { apart: vec![(1, 1)], ..Options::default() }, "from itself"),
        (2, Options { memory: vec![(5, 1)], ..Options::default() }, "name PE 5"),
        (2, Options { window: u64::MAX, ..Options::default() }, "the largest is"),
        (2, Options { memory: vec![(1, 1)], ..Options::default() }, "PE 1 (sim:1)"),
    ] {
        let error = Team::sim(pes, options).err().unwrap().to_string();
        assert!(error.contains(words), "{error}");
    }
    assert!(Team::sim(32, Options { timeout: Duration::MAX, ..Options::default() }).is_ok());
    assert!(Team::cuda(&[], Options::default()).is_err());
    let gpus = tandem_cuda::testing::gpus();
    // Several PEs of one GPU wait for each other in more queues than the driver makes.
    if let (Some(&gpu), Err(_)) = (gpus.first(), std::env::var("CUDA_DEVICE_MAX_CONNECTIONS")) {
        let error = Team::cuda(&[gpu, gpu], Options::default()).err().unwrap().to_string();
        assert!(
            error.contains("cuda:0 is named 2 times") && error.contains("CUDA_DEVICE_MAX_CONNECTIONS=16"),
            "{error}"
        );
    }
}
