//! Copy engines that do not come, on the GPUs that there are: also on a single one.

use super::*;
use crate::planner::Algorithm;
use crate::{Compare, Error, FaultKind, OneSided, Options};
use std::time::{Duration, Instant};

/// Of the team that has the fault.
const TIMEOUT: Duration = Duration::from_millis(300);
/// Whatever a test does, what is held up is let go then.
const LONGEST_HOLD: Duration = Duration::from_secs(4);
const LEN: usize = 1 << 20;

fn item(operation: Operation, pes: usize, part: u64) -> Item {
    Item {
        call: Call { operation, root: 0, part, unit: 4, in_place: false },
        job: (0..pes).collect(),
        numbers: None,
        input: vec![0; pes],
        output: vec![0; pes],
        keep: Vec::new(),
        at_once: 1,
    }
}

/// Among more than two PEs kernels do what engines do between two, in small chunks where PEs pass on what they get.
#[test]
fn more_than_two_pes() {
    let team = Team::sim(4, Options::default()).unwrap();
    let machine = Topology::preset("hgx-h200").unwrap();
    let tuning = Tuning { straight: false, ..Tuning::default() };
    let collectives = Collectives::of(&team, &machine, &[0, 1, 2, 3], tuning).unwrap();
    let planner = &collectives.executor.planner;
    let chunk = |operation, pes, part: u64| planner.shape(&item(operation, pes, part << 20), 128).chunk >> 10;
    assert_eq!([16, 64, 1024].map(|part| chunk(Operation::Broadcast, 4, part)), [64, 64, 128]);
    // What each has of an all-gather is a fourth of what passes.
    assert_eq!([16, 64].map(|part| chunk(Operation::AllGather, 4, part)), [64, 128]);
    for (operation, pes) in [(Operation::Broadcast, 2), (Operation::AllGather, 2), (Operation::AllToAll, 4)] {
        assert_eq!(chunk(operation, pes, 64), 256, "{operation:?} {pes}");
    }
    let engines = |pes, part: u64| planner.is_for_engines(&[item(Operation::Broadcast, pes, part << 20)]);
    assert_eq!([(2, 64), (2, 128), (4, 128)].map(|(pes, part)| engines(pes, part)), [false, true, false]);
    let (copied, sum) = (item(Operation::Broadcast, 2, 128 << 20), (Kind::F32, Combine::Sum));
    assert!(planner.is_copied(&copied) && !planner.is_copied(&item(Operation::Broadcast, 4, 128 << 20)));
    assert!(!planner.is_for_engines(&[Item { numbers: Some(sum), ..copied }]));
}

/// Where a plan gains nothing over reaching into each other's memory, no data are passed on.
#[test]
fn exchanges_go_straight_where_plans_are_no_faster() {
    use Operation::{AllGather, AllReduce, AllToAll, Broadcast, Reduce, ReduceScatter};
    let way = |preset: &str, pes: usize, tuning| {
        let team = Team::sim(8, Options::default()).unwrap();
        let machine = Topology::preset(preset).unwrap();
        let job: Vec<usize> = (0..pes).collect();
        let collectives = Collectives::of(&team, &machine, &job, tuning).unwrap();
        let planner = &collectives.executor.planner;
        [AllToAll, AllGather, ReduceScatter, AllReduce, Broadcast, Reduce].map(|operation| {
            [1 << 20, 1 << 30].map(|part| planner.way(&item(operation, pes, part)) == Algorithm::Direct)
        })
    };
    // A switch joins all at the same rate; only what has one root gains by a chain.
    let (both, small) = ([true; 2], [true, false]);
    for pes in [3, 4, 8] {
        assert_eq!(way("hgx-h200", pes, Tuning::default()), [both, both, both, both, small, small], "{pes}");
    }
    let never = Tuning { straight: false, ..Tuning::default() };
    assert_eq!(way("hgx-h200", 8, never), [small; 6]);
    // Links of different rates are used best by trees, also those that GPUs beside the job have.
    assert_eq!(way("dgx1-v100", 8, Tuning::default()), [small; 6]);
    assert_eq!(way("dgx1-v100", 3, Tuning::default()), [small; 6]);
    // Who sends slowly gives its part of an all-gather to one that passes it on; what it exchanges goes to each anyway.
    let json = r#"{"format":"tandem-topology","version":1,"name":"t",
        "devices":[{"name":"GPU0","kind":"gpu"},{"name":"GPU1","kind":"gpu"},{"name":"GPU2","kind":"gpu"},{"name":"S","kind":"nvswitch"}],
        "links":[{"a":"GPU0","b":"S","kind":"nvlink","gbs_ab":200,"gbs_ba":200},{"a":"GPU1","b":"S","kind":"nvlink","gbs_ab":200,"gbs_ba":200},
                 {"a":"GPU2","b":"S","kind":"nvlink","gbs_ab":50,"gbs_ba":200}]}"#;
    let (team, slow) = (Team::sim(3, Options::default()).unwrap(), Topology::from_json(json).unwrap());
    let collectives = Collectives::new(&team, &slow).unwrap();
    let is_direct = |operation| collectives.executor.planner.way(&item(operation, 3, 1 << 30)) == Algorithm::Direct;
    assert_eq!([AllToAll, AllGather].map(is_direct), [true, false]);
    // Two pass nothing on, and have a bound of their own.
    assert_eq!(way("hgx-h200", 2, Tuning::default()), [small; 6]);
}

/// A PE whose copies are held up is named in time, where the host waits for them and where it waits for a queue behind them.
#[test]
fn copies_that_do_not_come() {
    let gpus = tandem_cuda::testing::at_least(1);
    let _alone = tandem_cuda::testing::alone();
    if gpus.is_empty() {
        return;
    }
    let gpus = &gpus[..gpus.len().min(2)];
    let machine = Topology::preset("h200-pair").unwrap();
    let tuning = Tuning { engines: 0, resident: 0, through_host: false, ..Tuning::default() };
    let open = |timeout| Team::cuda(gpus, Options { timeout, ..Options::default() }).unwrap();
    let collectives =
        |team: &Team| Collectives::of(team, &machine, &(0..gpus.len()).collect::<Vec<_>>(), tuning).unwrap();
    for is_now in [true, false] {
        let team = open(TIMEOUT);
        let c = collectives(&team);
        let (from, to) = (team.alloc::<u32>(LEN).unwrap(), team.alloc::<u32>(LEN).unwrap());
        // PE 0 sends, so its streams carry all.
        c.now().broadcast(0, &from, &to).unwrap();
        let other = open(LONGEST_HOLD);
        let word = other.alloc::<u64>(1).unwrap();
        other.queue(0).wait_until(&word, Compare::Eq, 1, None).unwrap();
        let held = other.queue(0).stream().unwrap().record().unwrap();
        c.executor.gpus.as_ref().unwrap().hold_up(0, &held).unwrap();
        let asked = Instant::now();
        let error = match is_now {
            true => c.now().broadcast(0, &from, &to).unwrap_err(),
            false => {
                c.broadcast(0, &from, &to).unwrap();
                team.queue(gpus.len() - 1).synchronize().unwrap_err()
            }
        };
        let took = asked.elapsed();
        assert!(took >= TIMEOUT && took < LONGEST_HOLD / 2 && !held.is_done().unwrap(), "{took:?}");
        let Error::Fault(fault) = error else { panic!("{error} is no fault") };
        assert_eq!((fault.kind, fault.peer, fault.waiter), (FaultKind::Copy, Some(0), gpus.len() - 1), "{fault}");
        assert!(fault.seen >= TIMEOUT.as_millis() as u64 && fault.wanted >= 4 * LEN as u64, "{fault}");
        assert!(team.check().is_err() && c.now().broadcast(0, &from, &to).is_err());
        // Everything goes while copies are held up; their memory is freed behind them.
        drop((c, from, to));
        crate::host::tests::let_go(&other, 0, &word, || held.is_done().unwrap());
        drop(team);
        let team = open(Options::default().timeout);
        let c = collectives(&team);
        let (from, to) = (team.alloc::<u32>(LEN).unwrap(), team.alloc::<u32>(LEN).unwrap());
        let data: Vec<u32> = (0..LEN as u32).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
        team.write(0, &from, &data).unwrap();
        c.now().broadcast(0, &from, &to).unwrap();
        assert!((0..gpus.len()).all(|pe| team.read(pe, &to).unwrap() == data));
    }
}
