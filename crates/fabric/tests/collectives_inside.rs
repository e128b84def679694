//! Collectives inside programs of pretend PEs, and from queues, over all kinds of numbers: against sums over all inputs.

mod naive;
mod teams;

use naive::{bits, operations, random, sums, Naive};
use std::sync::Arc;
use std::time::Duration;
use tandem_fabric::exec::{Bf16, Combine, F16};
use tandem_fabric::topology::Topology;
use tandem_fabric::{Collectives, Error, FaultKind, OneSided, Options, Pe, Symmetric, Team};

/// Runs a program on each PE of the team, and waits for all.
fn on_all(team: &Team, program: impl Fn(&Pe) -> tandem_fabric::Result<()> + Send + Sync + 'static) {
    let program = Arc::new(program);
    for queue in team.queues() {
        let program = program.clone();
        queue.run(move |pe| program(pe)).unwrap();
    }
    team.synchronize().unwrap();
}

/// The lengths at which something else begins.
const LENGTHS: [usize; 17] = [0, 1, 2, 3, 7, 8, 9, 31, 32, 33, 63, 65, 128, 129, 256, 257, 1025];

/// All collectives of one kind of number, one after the other in one program: nobody writes to the result of a PE that still compares.
fn kind<T: Naive>(team: &Team) {
    let n = team.size();
    for (round, len) in LENGTHS.into_iter().enumerate() {
        let seed = (1000 * round + 77 * n) as u64;
        let alloc = |len: usize| team.alloc::<T>(len).unwrap();
        let (from, to, many, all) = (alloc(len), alloc(len), alloc(n * len), alloc(n * len));
        let inputs: Arc<Vec<Vec<T>>> = Arc::new((0..n).map(|pe| random(n * len, seed + pe as u64)).collect());
        for (pe, input) in inputs.iter().enumerate() {
            team.write(pe, &from, &input[..len]).unwrap();
            team.write(pe, &many, input).unwrap();
        }
        on_all(team, move |pe| {
            let me = pe.me();
            let firsts: Vec<Vec<T>> = inputs.iter().map(|input| input[..len].to_vec()).collect();
            let same = |what: &str, found: &[T], wanted: &[u64]| {
                assert!(bits(found) == wanted, "{what} of {len} {:?}, PE {me} of {n}", T::KIND)
            };
            for how in operations::<T>() {
                pe.all_reduce(how, &from, &to)?;
                same("all_reduce", &pe.load(&to)?, &sums(&firsts, how));
            }
            for (root, wanted) in firsts.iter().enumerate() {
                pe.broadcast(root, &from, &to)?;
                same("broadcast", &pe.load(&to)?, &bits(wanted));
            }
            pe.all_gather(&from, &all)?;
            same("all_gather", &pe.load(&all)?, &bits(&firsts.concat()));
            pe.all_to_all(&many, &all)?;
            let parts = inputs.iter().flat_map(|input| &input[me * len..][..len]).copied();
            same("all_to_all", &pe.load(&all)?, &bits(&parts.collect::<Vec<T>>()));
            // In place.
            let own = all.slice(me * len..(me + 1) * len)?;
            pe.store(&own, &firsts[me])?;
            pe.all_gather(&own, &all)?;
            same("all_gather in place", &pe.load(&all)?, &bits(&firsts.concat()));
            pe.broadcast(n - 1, &from, &from)?;
            pe.all_reduce(Combine::Max, &from, &from)?;
            same("broadcast in place", &pe.load(&from)?, &bits(&firsts[n - 1]));
            Ok(())
        });
    }
}

#[test]
fn collectives_inside_programs_agree_with_naive_models() {
    for pes in 1..=8 {
        let team = Team::sim(pes, Options::default()).unwrap();
        kind::<u64>(&team);
        kind::<F16>(&team);
        if pes == 3 || pes == 8 {
            kind::<u8>(&team);
            kind::<i8>(&team);
            kind::<u16>(&team);
            kind::<i16>(&team);
            kind::<u32>(&team);
            kind::<i32>(&team);
            kind::<i64>(&team);
            kind::<Bf16>(&team);
            kind::<f32>(&team);
            kind::<f64>(&team);
        }
    }
}

/// Two teams at once, a PE in both of them by two queues.
#[test]
fn parts_of_a_team_do_not_meet_each_other() {
    let team = Team::sim(5, Options::default()).unwrap();
    let parts = [&[4, 0, 2][..], &[1, 2, 3], &[0]].map(|pes| team.split(pes).unwrap());
    let runs = parts.iter().enumerate().map(|(k, part)| {
        let (from, to): (Symmetric<u64>, Symmetric<u64>) = (team.alloc(40).unwrap(), team.alloc(40).unwrap());
        for queue in part.queues() {
            let (from, to) = (from.clone(), to.clone());
            queue
                .run(move |pe| {
                    for round in 0..300u64 {
                        let len = [1, 40][round as usize % 2];
                        let (from, to) = (from.slice(0..len)?, to.slice(0..len)?);
                        pe.store(&from, &vec![(round << 8) + (pe.me() as u64 + 1) * (k as u64 + 1); len])?;
                        pe.all_reduce(Combine::Sum, &from, &to)?;
                        let n = pe.size() as u64;
                        assert_eq!(pe.load(&to)?, vec![n * (round << 8) + n * (n + 1) / 2 * (k as u64 + 1); len]);
                    }
                    Ok(())
                })
                .unwrap();
        }
        part
    });
    runs.collect::<Vec<_>>().into_iter().for_each(|part| part.synchronize().unwrap());
}

/// Whoever does not come is named, and so is a PE that does two at once.
#[test]
fn collectives_that_cannot_end_do() {
    for len in [1, 1000] {
        let team = Team::sim(3, Options { timeout: Duration::from_millis(150), ..Options::default() }).unwrap();
        let memory: Symmetric<u64> = team.alloc(len).unwrap();
        for pe in [0, 1] {
            let memory = memory.clone();
            team.queue(pe).run(move |pe| pe.all_reduce(Combine::Xor, &memory, &memory)).unwrap();
        }
        match team.synchronize() {
            Err(Error::Fault(fault)) => {
                let wanted = if len == 1 { FaultKind::Collective } else { FaultKind::Barrier };
                assert_eq!((fault.kind, fault.peer, fault.seen, fault.wanted), (wanted, Some(2), 0, 1), "{fault}");
                assert!(fault.to_string().contains("waited in vain for PE 2"), "{fault}");
            }
            other => panic!("{other:?}"),
        }
        assert!(team.queue(2).run(|_| Ok(())).is_err());
    }
    let team = Team::sim(2, Options { timeout: Duration::from_secs(60), ..Options::default() }).unwrap();
    let word: Symmetric<u64> = team.alloc(1).unwrap();
    let beside = team.new_queue(0).unwrap();
    for queue in [team.queue(0), &beside] {
        let word = word.clone();
        queue.run(move |pe| pe.broadcast(0, &word, &word)).unwrap();
    }
    match team.queue(0).synchronize().and(beside.synchronize()) {
        Err(Error::Fault(fault)) => {
            assert_eq!((fault.kind, fault.waiter, fault.peer), (FaultKind::Overlap, 0, Some(0)));
            assert!(fault.to_string().contains("began collective 2 inside kernels when it had left 0 only"), "{fault}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_happens() {
    let team = Team::sim(2, Options::default()).unwrap();
    let (a, b): (Symmetric<f32>, Symmetric<f32>) = (team.alloc(6).unwrap(), team.alloc(5).unwrap());
    on_all(&team, move |pe| {
        let says = |result: tandem_fabric::Result<()>, text: &str| {
            let error = result.unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        };
        says(pe.broadcast(2, &a, &a), "there is no PE 2");
        says(pe.broadcast(0, &a, &b), "6 elements in and 5 out");
        says(pe.all_gather(&b, &a), "5 elements in and 6 out");
        says(pe.all_to_all(&b, &b), "5 elements in and 5 out, in 2 and 2 parts");
        says(pe.all_to_all(&a, &a), "overlap");
        says(pe.all_reduce(Combine::And, &a, &a), "And of F32, whose bits are not combined");
        // All of them are still at the first collective.
        pe.all_reduce(Combine::Max, &a, &a)
    });
}

/// The operations of queues, with the same numbers and the same oracle.
fn queued<T: Naive>(team: &Team) {
    let n = team.size();
    let collectives = Collectives::new(team, &Topology::preset("hgx-h200").unwrap()).unwrap();
    for (len, seed) in [(1, 5), (3, 6), (1000, 7), (70_001, 8)] {
        let alloc = |len: usize| team.alloc::<T>(len).unwrap();
        let (from, to, part) = (alloc(n * len), alloc(n * len), alloc(len));
        let inputs: Vec<Vec<T>> = (0..n).map(|pe| random(n * len, seed + pe as u64)).collect();
        for (pe, input) in inputs.iter().enumerate() {
            team.write(pe, &from, input).unwrap();
        }
        for how in operations::<T>() {
            collectives.all_reduce(how, &from, &to).unwrap();
            collectives.reduce_scatter(how, &from, &part).unwrap();
            team.synchronize().unwrap();
            if !T::IS_INTEGER && matches!(how, Combine::Sum | Combine::Product) && n > 2 {
                // Their order is the schedule's.
                continue;
            }
            let wanted = sums(&inputs, how);
            for pe in 0..n {
                let what = format!("{how:?} of {len} {:?}, PE {pe} of {n}", T::KIND);
                assert!(bits(&team.read(pe, &to).unwrap()) == wanted, "{what}");
                assert!(bits(&team.read(pe, &part).unwrap()) == wanted[pe * len..][..len], "{what}, scattered");
            }
        }
    }
    if !T::IS_INTEGER {
        let memory: Symmetric<T> = team.alloc(4).unwrap();
        let error = collectives.all_reduce(Combine::Or, &memory, &memory).unwrap_err().to_string();
        assert!(error.contains("whose bits are not combined"), "{error}");
    }
}

#[test]
fn queues_combine_every_kind_of_number() {
    let test = |team: &Team| {
        if ![2, 3, 8].contains(&team.size()) {
            return;
        }
        queued::<u8>(team);
        queued::<i8>(team);
        queued::<u16>(team);
        queued::<i16>(team);
        queued::<u32>(team);
        queued::<i32>(team);
        queued::<u64>(team);
        queued::<i64>(team);
        queued::<F16>(team);
        queued::<Bf16>(team);
        queued::<f32>(team);
        queued::<f64>(team);
    };
    teams::each(&Options::default(), test);
}
