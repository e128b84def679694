//! Programs of pretend PEs: operations that happen when they are called, as in a kernel.

mod teams;

use std::time::Duration;
use tandem_fabric::{Atomic, Compare, Error, OneSided, Options, Signal, Symmetric, Team};
use teams::numbers;

fn each_sim(test: impl Fn(&Team)) {
    for pes in 1..=8 {
        test(&Team::sim(pes, Options::default()).unwrap());
    }
}

#[test]
fn a_ring_shifts() {
    each_sim(|team| {
        let n = team.size();
        let (data, inbox): (Symmetric<u16>, Symmetric<u16>) = (team.alloc(1001).unwrap(), team.alloc(1001).unwrap());
        let ready: Symmetric<u64> = team.alloc(1).unwrap();
        let values: Vec<Vec<u16>> = (0..n).map(|pe| numbers(1001, pe as u64)).collect();
        for (pe, values) in values.iter().enumerate() {
            team.write(pe, &data, values).unwrap();
        }
        for queue in team.queues() {
            let (data, inbox, ready) = (data.clone(), inbox.clone(), ready.clone());
            queue
                .run(move |pe| {
                    let (me, n) = (pe.me(), pe.size());
                    for round in 1..=n as u64 {
                        pe.put_signal(&inbox, &data, &ready, Signal::Set(round), (me + 1) % n)?;
                        pe.signal_wait_until(&ready, Compare::Ge, round, Some((me + n - 1) % n))?;
                        pe.store(&data, &pe.load(&inbox)?)?;
                        // Nobody overwrites an inbox that has not been read.
                        pe.barrier()?;
                    }
                    Ok(())
                })
                .unwrap();
        }
        team.synchronize().unwrap();
        for (pe, values) in values.iter().enumerate() {
            assert!(team.read(pe, &data).unwrap() == *values, "once around, PE {pe}");
        }
    });
}

#[test]
fn work_is_handed_out_and_collected() {
    each_sim(|team| {
        let n = team.size();
        const TASKS: u64 = 200;
        let next: Symmetric<u64> = team.alloc(1).unwrap();
        let results: Symmetric<u64> = team.alloc(TASKS as usize).unwrap();
        let done: Symmetric<u32> = team.alloc(n).unwrap();
        let order: Symmetric<u64> = team.alloc(n + 1).unwrap();
        for queue in team.queues() {
            let (next, results, done, order) = (next.clone(), results.clone(), done.clone(), order.clone());
            queue
                .run(move |pe| {
                    loop {
                        let task = pe.fetch(&next, Atomic::Inc, 0)?;
                        if task >= TASKS {
                            break;
                        }
                        pe.p(&results.at(task as usize)?, task * task + 1, 0)?;
                    }
                    pe.fence();
                    pe.atomic(&done.at(pe.me())?, Atomic::Or(1), 0)?;
                    pe.quiet();
                    if pe.me() == 0 {
                        // Whoever is done is crossed off.
                        let mut left = pe.size();
                        while left > 0 {
                            for index in pe.wait_some(&done, Compare::Eq, 1, None)? {
                                assert_eq!(pe.fetch(&done.at(index)?, Atomic::Set(2), 0)?, 1);
                                pe.atomic(&order.at(index)?, Atomic::Set(left as u64), 0)?;
                                left -= 1;
                            }
                        }
                        assert_eq!(pe.wait_any(&done, Compare::Gt, 1, None)?, 0);
                        assert_eq!(pe.g(&done.at(pe.size() - 1)?, 0)?, 2);
                    }
                    pe.barrier()
                })
                .unwrap();
        }
        team.synchronize().unwrap();
        let expected: Vec<u64> = (0..TASKS).map(|task| task * task + 1).collect();
        assert_eq!(team.read(0, &results).unwrap(), expected);
        let mut order = team.read(0, &order).unwrap();
        order.sort_unstable();
        assert_eq!(order, (0..=n as u64).collect::<Vec<_>>());
    });
}

#[test]
fn locks_by_compare_and_swap_exclude() {
    each_sim(|team| {
        let n = team.size();
        let (lock, count): (Symmetric<u32>, Symmetric<u64>) = (team.alloc(1).unwrap(), team.alloc(1).unwrap());
        for queue in team.queues() {
            let (lock, count) = (lock.clone(), count.clone());
            queue
                .run(move |pe| {
                    let mine = pe.me() as u32 + 1;
                    for _ in 0..50 {
                        while pe.fetch(&lock, Atomic::CompareSwap { expected: 0, value: mine }, 0)? != 0 {
                            std::thread::yield_now();
                        }
                        let before = pe.g(&count, 0)?;
                        pe.p(&count, before + 1, 0)?;
                        assert_eq!(pe.fetch(&lock, Atomic::Set(0), 0)?, mine);
                    }
                    Ok(())
                })
                .unwrap();
        }
        team.synchronize().unwrap();
        assert_eq!(team.read(0, &count).unwrap(), [50 * n as u64]);
    });
}

#[test]
fn programs_that_fail_are_reported_once() {
    let team = Team::sim(2, Options { timeout: Duration::from_millis(100), ..Options::default() }).unwrap();
    let words: Symmetric<u64> = team.alloc(4).unwrap();
    let queue = team.queue(0);
    let misuse = words.clone();
    queue.run(move |pe| pe.put(&misuse, &misuse.slice(0..1)?, 1)).unwrap();
    queue.run(|_| panic!("a test")).unwrap();
    assert!(queue.synchronize().unwrap_err().to_string().contains("1 elements to a place of 4"));
    queue.synchronize().unwrap();
    queue.run(|_| panic!("a test")).unwrap();
    assert!(queue.synchronize().unwrap_err().to_string().contains("it panicked"));
    // What a GPU needs is not there.
    let error = queue.call("launch", |_, _| 0).unwrap_err();
    assert!(error.to_string().contains("a pretend PE has no stream") && queue.handle().is_none());
    // A fault inside a program ends it, and the team.
    let word = words.at(2).unwrap();
    queue
        .run(move |pe| match pe.signal_wait_until(&word, Compare::Eq, 1, Some(1)) {
            Err(Error::Fault(fault)) => Err(Error::Fault(fault)),
            other => panic!("{other:?}"),
        })
        .unwrap();
    match queue.synchronize() {
        Err(Error::Fault(fault)) => assert_eq!((fault.waiter, fault.peer), (0, Some(1))),
        other => panic!("{other:?}"),
    }
    assert!(queue.run(|_| Ok(())).is_err());
}

#[test]
fn memory_lives_as_long_as_programs_use_it() {
    let team = Team::sim(3, Options::default()).unwrap();
    for round in 0..50u64 {
        let memory: Symmetric<u64> = team.alloc(100).unwrap();
        for queue in team.queues() {
            let memory = memory.clone();
            queue
                .run(move |pe| {
                    let (me, n) = (pe.me() as u64, pe.size());
                    pe.store(&memory, &[round * 10 + me; 100])?;
                    std::thread::yield_now();
                    assert_eq!(pe.load(&memory)?, [round * 10 + me; 100]);
                    assert!(n == 3);
                    Ok(())
                })
                .unwrap();
        }
        // Dropped here, and by the programs.
    }
    team.synchronize().unwrap();
    // A team that is dropped finishes what it was told.
    let word: Symmetric<u32> = team.alloc(1).unwrap();
    let part = team.split(&[1, 2]).unwrap();
    let count = word.clone();
    for _ in 0..100 {
        part.queue(0).atomic(&count, Atomic::Inc, 1).unwrap();
    }
    drop(part);
    team.wait_until(2, &word, Compare::Eq, 100, Some(1)).unwrap();
}
