//! Contexts, regular parts of teams, and memory of the host as a team's.

mod teams;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use tandem_fabric::exec::Combine;
use tandem_fabric::{Atomic, Compare, Error, OneSided, Options, Signal, Space, Symmetric, Team};
use teams::{each, numbers};

/// Whatever each operation is, it is done when its event is reached, and nothing of another context need be.
#[test]
fn operations_of_a_context_agree_with_a_naive_model() {
    each(&Options::default(), |team| {
        let n = team.size();
        const LEN: usize = 3001;
        let alloc = || team.alloc::<u32>(LEN).unwrap();
        let (from, put, got) = (alloc(), alloc(), alloc());
        let (words, before): (Symmetric<u64>, Symmetric<u64>) = (team.alloc(3).unwrap(), team.alloc(1).unwrap());
        let values: Vec<Vec<u32>> = (0..n).map(|pe| numbers(LEN, 3 + pe as u64)).collect();
        for (pe, values) in values.iter().enumerate() {
            team.write(pe, &from, values).unwrap();
        }
        let contexts: Vec<_> = (0..n).map(|pe| team.context(pe).unwrap()).collect();
        for (me, context) in contexts.iter().enumerate() {
            let next = (me + 1) % n;
            let done = [
                context.put_signal_nbi(&put, &from, &words.at(0).unwrap(), Signal::Set(7), next).unwrap(),
                context.get_nbi(&got, &from, next).unwrap(),
                context.atomic_nbi(&words.at(1).unwrap(), Atomic::Add(5 + me as u64), 0).unwrap(),
                context.fetch_atomic_nbi(&words.at(2).unwrap(), Atomic::Add(9u64), next, &before).unwrap(),
            ];
            done.iter().for_each(|event| event.synchronize().unwrap());
            assert!(done.iter().all(|event| event.is_done().unwrap()) && context.me() == me);
        }
        for me in 0..n {
            assert!(team.read((me + 1) % n, &put).unwrap() == values[me], "put by PE {me} of {n}");
            assert!(team.read(me, &got).unwrap() == values[(me + 1) % n], "got by PE {me} of {n}");
            assert_eq!(team.read(me, &before).unwrap(), [0]);
            let sum = if me == 0 { (0..n as u64).map(|me| 5 + me).sum() } else { 0 };
            assert_eq!(team.read(me, &words).unwrap(), [7, sum, 9]);
        }
        let short = from.slice(0..5).unwrap();
        assert!(contexts[0].put_nbi(&put, &short, 0).is_err() && contexts[0].put_nbi(&put, &from, n).is_err());
        contexts[0].quiet().unwrap();
        assert!(team.context(n).is_err());
    });
}

/// A context whose operations wait for a program holds up neither another context's quiet, nor the queue's work.
#[test]
fn a_quiet_waits_for_its_own_context_alone() {
    for pes in 1..=8 {
        let team = Team::sim(pes, Options::default()).unwrap();
        let (from, held, free): (Symmetric<u64>, Symmetric<u64>, Symmetric<u64>) =
            (team.alloc(9).unwrap(), team.alloc(9).unwrap(), team.alloc(9).unwrap());
        let me = pes / 2;
        team.write(me, &from, &[3; 9]).unwrap();
        let is_open = Arc::new(AtomicBool::new(false));
        let (gate, gates) = (team.new_queue(me).unwrap(), is_open.clone());
        gate.run(move |_| {
            while !gates.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            Ok(())
        })
        .unwrap();
        let [a, b] = [0, 1].map(|_| team.context(me).unwrap());
        b.after(&gate.record().unwrap()).unwrap();
        let late = [b.put_nbi(&held, &from, 0).unwrap(), b.get_nbi(&held, &from, me).unwrap()];
        let soon = a.put_nbi(&free, &from, pes - 1).unwrap();
        a.fence().unwrap();
        a.quiet().unwrap();
        assert!(soon.is_done().unwrap() && team.read(pes - 1, &free).unwrap() == [3; 9]);
        // A third one that comes behind the second is held too.
        let c = team.context(me).unwrap();
        c.after(&late[1]).unwrap();
        let last = c.put_nbi(&held, &held, 0).unwrap();
        assert!(late.iter().chain([&last]).all(|event| !event.is_done().unwrap()));
        assert_eq!(team.read(0, &held).unwrap(), [0; 9]);
        is_open.store(true, Ordering::Release);
        b.quiet().unwrap();
        c.quiet().unwrap();
        assert!(team.read(0, &held).unwrap() == [3; 9] && last.is_done().unwrap());
    }
}

/// Data, a fence, a flag, which go by different queues of the context: who has the flag has the data. Without the fence some flag comes first.
#[test]
fn fences_order_what_is_told_before_and_after() {
    fn early(team: &Team, is_fenced: bool) -> usize {
        const LEN: usize = 1 << 16;
        let n = team.size();
        let (from, to): (Symmetric<u64>, Symmetric<u64>) = (team.alloc(LEN).unwrap(), team.alloc(LEN).unwrap());
        let (flag, last): (Symmetric<u64>, Symmetric<u64>) = (team.alloc(1).unwrap(), team.alloc(1).unwrap());
        let context = team.context(0).unwrap();
        let mut early = 0;
        for round in 1..=60 {
            team.write(0, &from, &vec![round; LEN]).unwrap();
            context.put_nbi(&to, &from, n - 1).unwrap();
            if is_fenced {
                context.fence().unwrap();
            }
            context.atomic_nbi(&flag, Atomic::Set(round), n - 1).unwrap();
            let reader = team.queue(n - 1);
            reader.wait_until(&flag, Compare::Ge, round, Some(0)).unwrap();
            reader.put(&last, &to.at(LEN - 1).unwrap(), n - 1).unwrap();
            reader.synchronize().unwrap();
            early += usize::from(team.read(n - 1, &last).unwrap() != [round]);
            context.quiet().unwrap();
        }
        early
    }
    each(&Options::default(), |team| assert_eq!(early(team, true), 0));
    let without: usize = (1..=8).map(|pes| early(&Team::sim(pes, Options::default()).unwrap(), false)).sum();
    assert!(without > 0, "a flag without a fence is never early: the test sees nothing");
}

#[test]
fn teams_split_by_strides_and_in_rows() {
    each(&Options::default(), |team| {
        let n = team.size();
        for start in 0..n {
            for stride in -3isize..=3 {
                for size in 0..=n + 1 {
                    let wanted: Option<Vec<usize>> = (0..size as isize)
                        .map(|i| usize::try_from(start as isize + i * stride).ok().filter(|&pe| pe < n))
                        .collect();
                    let wanted = wanted.filter(|pes| !pes.is_empty() && (stride != 0 || pes.len() == 1));
                    if n > 4 && wanted.is_some() && size % 3 != 1 {
                        continue;
                    }
                    let found = team.split_strided(start, stride, size);
                    assert_eq!(
                        found.ok().map(|part| part.members().to_vec()),
                        wanted,
                        "{start}, {stride}, {size} of {n}"
                    );
                }
            }
        }
        assert!(team.split_strided(usize::MAX, isize::MAX, 2).is_err() && team.split_strided(n, 1, 1).is_err());
        assert!(team.split_2d(0).err().unwrap().to_string().contains("at least one PE"));
        for columns in [1, 2, 3, n, n + 5] {
            let (rows, lines) = team.split_2d(columns).unwrap();
            let width = columns.min(n);
            assert_eq!((rows.len(), lines.len()), (n.div_ceil(width), width));
            for pe in 0..n {
                assert_eq!(rows[pe / width].members()[pe % width], pe);
                assert_eq!(lines[pe % width].members()[pe / width], pe);
            }
            let counted: usize = rows.iter().chain(&lines).map(Team::size).sum();
            assert_eq!(counted, 2 * n);
        }
        assert_eq!(team.node(n - 1).unwrap().size(), n);
        assert!(team.node(n).is_err() && team.sharing_memory(n).is_err());
        // A part of a part, and its barriers.
        let part = team.split_strided(n - 1, -1, n).unwrap();
        assert_eq!(part.split_strided(0, 1, 1).unwrap().members(), [n - 1]);
        part.barrier().unwrap();
        part.synchronize().unwrap();
    });
}

/// Sums along rows, then along columns of these, are the sum of all.
#[test]
fn rows_and_columns_sum_up() {
    let team = Team::sim(6, Options::default()).unwrap();
    let (from, to): (Symmetric<u64>, Symmetric<u64>) = (team.alloc(3).unwrap(), team.alloc(3).unwrap());
    let values: Vec<Vec<u64>> = (0..6).map(|pe| numbers(3, 9 + pe)).collect();
    (0..6).for_each(|pe| team.write(pe, &from, &values[pe]).unwrap());
    let (rows, columns) = team.split_2d(3).unwrap();
    for parts in [(&rows, &from, &to), (&columns, &to, &from)] {
        for queue in parts.0.iter().flat_map(Team::queues) {
            let (from, to) = (parts.1.clone(), parts.2.clone());
            queue.run(move |pe| pe.all_reduce(Combine::Sum, &from, &to)).unwrap();
        }
        parts.0.iter().for_each(|part| part.synchronize().unwrap());
    }
    let sums: Vec<u64> = (0..3).map(|i| values.iter().fold(0, |sum: u64, one| sum.wrapping_add(one[i]))).collect();
    (0..6).for_each(|pe| assert_eq!(team.read(pe, &from).unwrap(), sums));
}

#[test]
fn those_that_share_memory_are_a_team() {
    let apart = vec![(0, 3), (1, 3), (2, 4)];
    let team = Team::sim(5, Options { apart, ..Options::default() }).unwrap();
    for (pe, members) in [(0, &[0, 1, 2][..]), (2, &[0, 1, 2]), (3, &[2, 3]), (4, &[0, 1, 4])] {
        let part = team.sharing_memory(pe).unwrap();
        assert_eq!(part.members(), members, "of PE {pe}");
        part.all_reach().unwrap();
    }
    assert!(team.all_reach().is_err());
}

#[test]
fn memory_of_the_host_is_a_teams() {
    each(&Options::default(), |team| {
        let n = team.size();
        const LEN: usize = 5003;
        let host: Symmetric<u16> = team.alloc_in(Space::Host, LEN).unwrap();
        let here: Symmetric<u16> = team.alloc_in(Space::Device, LEN).unwrap();
        let flag: Symmetric<u64> = team.alloc_in(Space::Host, 2).unwrap();
        assert!(host.offset().is_none() && here.offset().is_some() && host.host_address(0).is_none());
        let places: std::collections::HashSet<u64> = (0..n).map(|pe| host.address(pe).unwrap()).collect();
        assert_eq!(places.len(), n);
        let values: Vec<Vec<u16>> = (0..n).map(|pe| numbers(LEN, 20 + pe as u64)).collect();
        for (pe, values) in values.iter().enumerate() {
            assert_eq!(team.read(pe, &host).unwrap(), vec![0; LEN], "it begins with zeros");
            team.write(pe, &here, values).unwrap();
        }
        for queue in team.queues() {
            let (me, next) = (queue.me(), (queue.me() + 1) % n);
            // To the next one's host memory, and when its own has come, from there to the PE.
            queue.put_signal(&host, &here, &flag.at(0).unwrap(), Signal::Set(1), next).unwrap();
            queue.signal_wait_until(&flag.at(0).unwrap(), Compare::Eq, 1, Some((me + n - 1) % n)).unwrap();
            queue.barrier().unwrap();
            queue.get(&here, &host, me).unwrap();
        }
        team.synchronize().unwrap();
        for pe in 0..n {
            let wanted = &values[(pe + n - 1) % n];
            assert!(
                team.read(pe, &host).unwrap() == *wanted && team.read(pe, &here).unwrap() == *wanted,
                "PE {pe} of {n}"
            );
        }
        let add = team.queue(0).atomic(&flag.at(1).unwrap(), Atomic::Add(1), n - 1);
        match team.is_cuda() {
            true => assert!(add.unwrap_err().to_string().contains("where GPUs have no atomics")),
            false => add.unwrap(),
        }
        team.synchronize().unwrap();
        // It is the team's own, and not given back as a user's is.
        assert!(team.unregister(flag).unwrap_err().to_string().contains("the team's own"));
        assert!(
            team.alloc_in::<u64>(Space::Host, 0).is_err() && team.alloc_in::<u64>(Space::Host, usize::MAX).is_err()
        );
        // As many as regions, and again when they are gone.
        for _ in 0..2 {
            let mut all = Vec::new();
            let full = loop {
                match team.alloc_in::<u8>(Space::Host, 1) {
                    Ok(memory) => all.push(memory),
                    Err(error) => break error,
                }
            };
            assert!(matches!(full, Error::Invalid { .. }) && full.to_string().contains("regions"), "{full}");
            // `host`, and perhaps the flag behind its last use.
            assert!((62..=63).contains(&all.len()), "{}", all.len());
        }
    });
}
