//! What teams do when something goes wrong: on pretend PEs, and on GPUs where there are any.

mod teams;

use std::time::{Duration, Instant};
use tandem_fabric::{Atomic, Compare, Error, Fault, FaultKind, OneSided, Options, Signal, Symmetric, Team};
use teams::{each, numbers};

const TIMEOUT: Duration = Duration::from_millis(300);

fn hasty() -> Options {
    Options { timeout: TIMEOUT, ..Options::default() }
}

fn fault(error: Error) -> Fault {
    match error {
        Error::Fault(fault) => *fault,
        other => panic!("{other:?} is no fault"),
    }
}

#[test]
fn a_peer_that_never_signals_is_named() {
    each(&hasty(), |team| {
        let n = team.size();
        let (waiter, silent) = (n - 1, n / 2);
        let spared = team.split(&(0..n).collect::<Vec<_>>()).unwrap();
        let words: Symmetric<u64> = team.alloc(9).unwrap();
        team.write(waiter, &words, &[3; 9]).unwrap();
        let begun = Instant::now();
        let queue = team.queue(waiter);
        queue.signal_wait_until(&words.at(5).unwrap(), Compare::Eq, 4, Some(silent)).unwrap();
        // Waits that come later end at once, here and on other PEs; else this would take half a minute.
        for _ in 0..100 {
            if queue.wait_until(&words, Compare::Eq, 4, None).is_err() {
                break;
            }
        }
        let found = fault(queue.synchronize().unwrap_err());
        let took = begun.elapsed();
        assert!(took >= TIMEOUT && took < TIMEOUT * 80, "{took:?}");
        assert_eq!((found.kind, found.waiter, found.peer), (FaultKind::Wait, waiter, Some(silent)));
        assert_eq!((found.seen, found.wanted), (3, 4));
        assert!(found.place.contains("byte 40 of the 72 bytes"), "{}", found.place);
        let text = team.check().unwrap_err().to_string();
        let expected = format!("the team is unusable: PE {waiter} waited in vain for PE {silent}: byte 40 of the 72");
        assert!(text.starts_with(&expected) && text.ends_with("was 3, wanted 4"), "{text}");

        // The team says so from now on, whatever is asked of it.
        for error in [
            queue.put(&words, &words, 0).err(),
            team.queue(0).barrier().err(),
            team.queue(0).signal_op(&words.at(0).unwrap(), Signal::Set(1), 0).err(),
            team.alloc::<u8>(1).err(),
            team.split(&[0]).err(),
            team.write(0, &words, &[1; 9]).err(),
            team.read(0, &words).err(),
            team.atomic(0, &words.at(0).unwrap(), Atomic::Inc).err(),
            team.synchronize().err(),
            team.check().err(),
        ] {
            assert_eq!(fault(error.unwrap()), found);
        }

        // Others go on: one with the same PEs and memory, and a new one.
        spared.queue(0).put(&words, &words, n - 1).unwrap();
        spared.barrier().unwrap();
        spared.synchronize().unwrap();
        let fresh = spared.split(&[waiter]).unwrap();
        fresh.barrier().unwrap();
        fresh.synchronize().unwrap();
    });
}

#[test]
fn a_pe_that_stays_away_from_a_barrier_is_named() {
    each(&hasty(), |team| {
        let n = team.size();
        team.barrier().unwrap();
        team.synchronize().unwrap();
        if n == 1 {
            return;
        }
        // All but one come to the second, twice.
        let away = n - 1;
        for queue in &team.queues()[..away] {
            queue.barrier().unwrap();
            let _ = queue.barrier();
        }
        let found = fault(team.synchronize().unwrap_err());
        assert_eq!((found.kind, found.peer), (FaultKind::Barrier, Some(away)));
        assert!(found.waiter < away && (found.seen, found.wanted) == (1, 2), "{found:?}");
        let text = found.to_string();
        assert!(text.contains(&format!("in vain for PE {away} at barrier 2: it has come to 1")), "{text}");
    });
}

#[test]
fn waits_that_find_nothing_end_too() {
    each(&hasty(), |team| {
        let pe = team.size() - 1;
        for some in [false, true] {
            let part = team.split(&[pe]).unwrap();
            let words: Symmetric<i32> = part.alloc(40).unwrap();
            let found: Symmetric<u64> = part.alloc(41).unwrap();
            let queue = part.queue(0);
            if some {
                queue.wait_until_some(&words, Compare::Lt, 0, None, &found).unwrap();
            } else {
                queue.wait_until_any(&words, Compare::Gt, 0, None, &found.at(0).unwrap()).unwrap();
            }
            let found = fault(queue.synchronize().unwrap_err());
            assert_eq!((found.kind, found.waiter, found.peer), (FaultKind::Wait, 0, None));
            assert!(found.to_string().contains("a PE that was not named"), "{found}");
        }
        team.check().unwrap();
    });
}

#[test]
fn the_host_waits_no_longer_either() {
    each(&hasty(), |team| {
        let n = team.size();
        let words: Symmetric<u32> = team.alloc(3).unwrap();
        team.write(n - 1, &words, &[7, 8, 7]).unwrap();
        // A queue of another PE that waits ends with the host's wait.
        let patient = team.queue(0);
        patient.wait_until(&words, Compare::Eq, 9, None).unwrap();
        let found = fault(team.wait_until(n - 1, &words, Compare::Eq, 7, Some(0)).unwrap_err());
        // The queue's own wait may have ended first.
        if found.peer == Some(0) {
            assert_eq!((found.waiter, found.seen, found.wanted), (n - 1, 8, 7));
            assert!(found.place.contains("byte 4 of"), "{found:?}");
        }
        assert!(matches!(patient.synchronize(), Err(Error::Fault(_))));
    });
    each(&hasty(), |team| {
        for some in [false, true] {
            let part = team.split(&[team.size() - 1]).unwrap();
            let words: Symmetric<u32> = part.alloc(3).unwrap();
            let failed = if some {
                part.wait_until_some(0, &words, Compare::Gt, 6, None).unwrap_err()
            } else {
                part.wait_until_any(0, &words, Compare::Gt, 6, None).unwrap_err()
            };
            let found = fault(failed);
            assert_eq!((found.kind, found.waiter, found.seen, found.wanted), (FaultKind::Wait, 0, 0, 6));
            assert!(found.place.contains("byte 0 of"), "{found:?}");
            assert!(part.check().is_err(), "the team is unusable");
        }
        team.check().unwrap();
    });
}

#[test]
fn a_graph_that_waits_in_vain_ends() {
    each(&hasty(), |team| {
        let word: Symmetric<u64> = team.alloc(1).unwrap();
        let queue = team.queue(0);
        let graph = queue
            .capture(|queue| {
                queue.signal_wait_until(&word, Compare::Ge, 1, Some(0))?;
                queue.signal_op(&word, Signal::Set(0), 0)
            })
            .unwrap();
        team.write(0, &word, &[1]).unwrap();
        queue.launch(&graph).unwrap();
        queue.synchronize().unwrap();
        queue.launch(&graph).unwrap();
        let found = fault(queue.synchronize().unwrap_err());
        assert_eq!((found.waiter, found.peer, found.seen, found.wanted), (0, Some(0), 0, 1));
        assert!(matches!(queue.launch(&graph), Err(Error::Fault(_))));
    });
}

#[test]
fn memory_that_one_pe_lacks_is_kept_by_none() {
    let check = |team: &Team, poor: usize, cap: usize| {
        let kept: Symmetric<u32> = team.alloc(1000).unwrap();
        let values: Vec<u32> = numbers(1000, 5);
        team.write(0, &kept, &values).unwrap();
        let before = team.heap_bytes();
        for _ in 0..3 {
            match team.alloc::<u8>(cap + 1).err() {
                Some(Error::OutOfMemory { pe, device, wanted, reason }) => {
                    assert_eq!((pe, device), (poor, team.name(poor)));
                    assert!(wanted + before.0 > cap as u64 && reason.contains(&cap.to_string()), "{wanted}: {reason}");
                }
                other => panic!("{other:?}"),
            }
            assert_eq!(team.heap_bytes(), before);
        }
        // What fits is given, and the memory that was there is what it was.
        let half: Symmetric<u8> = team.alloc(cap / 2).unwrap();
        team.queue(0).put(&half.at(cap / 2 - 1).unwrap(), &half.at(0).unwrap(), poor).unwrap();
        assert_eq!(team.read(0, &kept).unwrap(), values);
        assert!(team.alloc::<u8>(cap / 2).is_err());
        team.synchronize().unwrap();
    };
    for pes in 1..=8 {
        for poor in [0, pes - 1] {
            let options = Options { memory: vec![(poor, 8 << 20)], ..Options::default() };
            check(&Team::sim(pes, options).unwrap(), poor, 8 << 20);
        }
    }
    let gpus = tandem_cuda::testing::gpus();
    for count in 1..=gpus.len() {
        let options = Options { memory: vec![(count - 1, 256 << 20)], ..Options::default() };
        check(&Team::cuda(&gpus[..count], options).unwrap(), count - 1, 256 << 20);
        // And what no device has.
        let team = Team::cuda(&gpus[..count], Options::default()).unwrap();
        let all = gpus[0].memory_info().unwrap().1 as usize;
        match team.alloc::<u8>(all) {
            Err(Error::OutOfMemory { pe: 0, reason, .. }) => assert!(reason.contains("bytes free"), "{reason}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(team.alloc::<u8>(5).map(|memory| team.read(0, &memory).unwrap()).unwrap(), [0; 5]);
    }
}

#[test]
fn a_window_has_an_end() {
    // Windows are multiples of 2 MiB.
    let options = Options { window: 1 << 20, ..Options::default() };
    let team = Team::sim(3, options).unwrap();
    let error = team.alloc::<u8>(2 << 20).err().unwrap().to_string();
    assert!(error.contains("do not fit") && error.contains("Options::window"), "{error}");
    // What was freed is waited for before that is said.
    let half: Symmetric<u8> = team.alloc(1200 << 10).unwrap();
    team.queue(1).wait_until(&half.slice(0..8).unwrap().cast::<u64>().unwrap(), Compare::Eq, 1, None).unwrap();
    team.atomic(1, &half.slice(0..8).unwrap().cast::<u64>().unwrap(), Atomic::Inc).unwrap();
    drop(half);
    let again: Symmetric<u8> = team.alloc(1400 << 10).unwrap();
    assert!(team.read(1, &again).unwrap().iter().all(|&x| x == 0));
}

/// What kernels do is refused between PEs that are apart, before anything happens.
#[test]
fn pes_that_are_apart_are_told_so() {
    let check = |team: &Team| {
        let n = team.size();
        let a: Symmetric<u64> = team.alloc(8).unwrap();
        let (word, other) = (a.at(0).unwrap(), a.at(1).unwrap());
        for (me, pe) in [(0, 1), (1, 0)] {
            let queue = team.queue(me);
            let errors = [
                team.reaches(me, pe),
                queue.put_strided(&a, 2, &a, 1, 3, pe),
                queue.get_strided(&a, 1, &a, 2, 3, pe),
                queue.p(&other, 5, pe),
                queue.put_signal(&other, &other, &word, Signal::Set(1), pe),
                queue.signal_op(&word, Signal::Set(1), pe),
                queue.atomic(&word, Atomic::Inc, pe),
                queue.fetch_atomic(&word, Atomic::Inc, pe, &other),
                // A recording cannot hold a copy through the host.
                queue.capture(|queue| queue.put(&a, &a, pe)).map(drop),
                queue.capture(|queue| queue.get(&a, &a, pe)).map(drop),
            ];
            for (i, error) in errors.into_iter().enumerate() {
                let text = format!("PE {me} does not reach the memory of PE {pe}: the options say so");
                assert_eq!(error.unwrap_err().to_string(), text, "{i}");
            }
        }
        // A barrier of one queue needs everyone to reach everyone, whoever asks, and says so before anyone waits.
        for queue in team.queues() {
            assert!(matches!(queue.barrier(), Err(Error::NoPeer { from: 0, to: 1, .. })));
        }
        // The host reaches everyone, and so do PEs that are not apart.
        team.write(1, &a, &[9; 8]).unwrap();
        assert_eq!(team.read(1, &a).unwrap(), [9; 8]);
        for pe in (0..n).filter(|pe| *pe != 1) {
            team.reaches(0, pe).unwrap();
            team.queue(0).atomic(&word, Atomic::Inc, pe).unwrap();
        }
        team.synchronize().unwrap();
        let alone = team.split(&[1]).unwrap();
        alone.queue(0).barrier().unwrap();
        alone.synchronize().unwrap();
    };
    each_apart(check);
}

/// A fault ends the waits of those that the PE reaches. The others are left alone: their memory is not there for it.
#[test]
fn a_fault_of_pes_that_are_apart_is_one() {
    each_apart(|team| {
        let spared = team.split(&(0..team.size()).collect::<Vec<_>>()).unwrap();
        let word: Symmetric<u64> = team.alloc(1).unwrap();
        for queue in team.queues() {
            queue.wait_until(&word, Compare::Eq, 1, Some(0)).unwrap();
        }
        let found = fault(team.synchronize().unwrap_err());
        assert_eq!((found.kind, found.peer, found.wanted), (FaultKind::Wait, Some(0), 1));
        spared.queue(0).put(&word, &word, 1).unwrap();
        spared.barrier().unwrap();
        spared.synchronize().unwrap();
    });
}

/// Copies of a queue go through the host, in its order, and barriers of the team order them.
#[test]
fn copies_between_pes_that_are_apart() {
    each_apart(|team| {
        for len in [0, 1, 5, 4099, 3_000_001] {
            let [from, to, back]: [Symmetric<u8>; 3] = std::array::from_fn(|_| team.alloc(len).unwrap());
            let contents: Vec<u8> = numbers(len, len as u64);
            for (me, pe) in [(0, 1), (1, 0)] {
                team.write(me, &from, &contents).unwrap();
                team.write(pe, &to, &vec![1; len]).unwrap();
                // There, to a third place beside it, and back, once the other PE's queue has got so far.
                team.queue(me).put(&to, &from, pe).unwrap();
                team.barrier().unwrap();
                team.queue(pe).put(&back, &to, pe).unwrap();
                team.barrier().unwrap();
                team.queue(me).get(&back, &back, pe).unwrap();
                team.synchronize().unwrap();
                assert!(team.read(pe, &to).unwrap() == contents, "{len} bytes to {pe}");
                assert!(team.read(me, &back).unwrap() == contents, "{len} bytes from {pe}");
            }
        }
        // Registered memory, and parts of it.
        let mine: Vec<Vec<u32>> = (0..team.size()).map(|pe| numbers(1000, pe as u64)).collect();
        let memory = team.register(teams::buffers(team, &mine)).unwrap();
        team.queue(1).get(&memory.slice(3..10).unwrap(), &memory.slice(500..507).unwrap(), 0).unwrap();
        team.barrier().unwrap();
        team.queue(0).put(&memory.slice(990..1000).unwrap(), &memory.slice(0..10).unwrap(), 1).unwrap();
        team.synchronize().unwrap();
        let mut wanted = mine.clone();
        wanted[1][3..10].copy_from_slice(&mine[0][500..507]);
        wanted[1][990..].copy_from_slice(&mine[0][..10]);
        let found: Vec<Vec<u32>> = team.unregister(memory).unwrap().into_iter().map(teams::contents).collect();
        assert!(found == wanted);
        // Barriers again and again: none is passed before all have come.
        let count: Symmetric<u64> = team.alloc(1).unwrap();
        for round in 1..20 {
            for (pe, queue) in team.queues().iter().enumerate() {
                queue.atomic(&count, Atomic::Set(round), pe).unwrap();
            }
            team.barrier().unwrap();
            let seen: Symmetric<u64> = team.alloc(1).unwrap();
            team.queue(0).get(&seen, &count, 1).unwrap();
            team.barrier().unwrap();
            team.queue(0).synchronize().unwrap();
            assert_eq!(team.read(0, &seen).unwrap(), [round]);
        }
        assert!(matches!(team.queue(1).capture(|_| team.barrier()), Err(Error::NoPeer { .. })));
        team.synchronize().unwrap();
    });
}

/// Teams of pretend PEs, and of GPUs where there are some, of which PEs 0 and 1 are apart.
fn each_apart(test: impl Fn(&Team)) {
    let options = Options { apart: vec![(0, 1)], ..hasty() };
    for pes in 2..=8 {
        test(&Team::sim(pes, options.clone()).unwrap());
    }
    let gpus = tandem_cuda::testing::at_least(2);
    for count in 2..=gpus.len() {
        test(&Team::cuda(&gpus[..count], options.clone()).unwrap());
    }
}
