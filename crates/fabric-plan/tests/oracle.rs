//! Plans on known machines: the DGX-1V's table, meshes, switches.

mod support;

use support::{choose, gbs, graph, planned, Brute};
use tandem_fabric_plan::{Gain, Operation, Ratio, Request};
use tandem_fabric_topology::Topology;

/// One NVLink of a V100, GB/s.
const LINK: i128 = 20;

/// The best broadcast of any root is the same for all roots, since links carry as much back as forth.
fn links(rate: Ratio, times: i128) -> Ratio {
    rate.over(Ratio::new(LINK * 1000 * times, 1).unwrap()).unwrap()
}

fn broadcast(t: &Topology, gpus: &[usize], helpers: &[usize]) -> Ratio {
    let plan = planned(t, &Request::new(Operation::Broadcast, gpus).with_helpers(helpers));
    assert!(plan.is_best(), "{gpus:?} {helpers:?}");
    links(plan.rate, 1)
}

/// Of one GPU's part.
fn all_gather(t: &Topology, gpus: &[usize], helpers: &[usize]) -> Ratio {
    let plan = planned(t, &Request::new(Operation::AllGather, gpus).with_helpers(helpers));
    assert!(plan.is_best(), "{gpus:?} {helpers:?}");
    links(plan.rate, gpus.len() as i128)
}

fn others(n: usize, gpus: &[usize]) -> Vec<usize> {
    (0..n).filter(|g| !gpus.contains(g)).collect()
}

fn r(num: i128, den: i128) -> Ratio {
    Ratio::new(num, den).unwrap()
}

/// Job, broadcast without and with helpers, all-gather for each GPU without and with; in links.
type Row = (&'static [usize], [(i128, i128); 4]);

#[test]
fn four_gpus_of_a_dgx1v() {
    let t = Topology::preset("dgx1-v100-4").unwrap();
    let rows: [Row; 11] = [
        (&[0, 1], [(1, 1), (4, 1), (1, 1), (4, 1)]),
        (&[0, 2], [(1, 1), (4, 1), (1, 1), (4, 1)]),
        (&[1, 3], [(1, 1), (4, 1), (1, 1), (4, 1)]),
        (&[0, 3], [(2, 1), (4, 1), (2, 1), (4, 1)]),
        (&[1, 2], [(2, 1), (4, 1), (2, 1), (4, 1)]),
        (&[2, 3], [(2, 1), (5, 1), (2, 1), (5, 1)]),
        (&[0, 1, 2], [(2, 1), (4, 1), (1, 1), (2, 1)]),
        (&[0, 1, 3], [(2, 1), (4, 1), (1, 1), (2, 1)]),
        (&[0, 2, 3], [(3, 1), (4, 1), (3, 2), (2, 1)]),
        (&[1, 2, 3], [(3, 1), (4, 1), (3, 2), (2, 1)]),
        (&[0, 1, 2, 3], [(4, 1), (4, 1), (4, 3), (4, 3)]),
    ];
    for (gpus, expected) in rows {
        let help = others(4, gpus);
        let found = [
            broadcast(&t, gpus, &[]),
            broadcast(&t, gpus, &help),
            all_gather(&t, gpus, &[]),
            all_gather(&t, gpus, &help),
        ];
        assert_eq!(found, expected.map(|(a, b)| r(a, b)), "{gpus:?}");
    }
}

#[test]
fn pairs_of_a_dgx1v() {
    let t = Topology::preset("dgx1-v100").unwrap();
    let mut apart = 0;
    for gpus in choose(8, 2) {
        let alone = broadcast(&t, &gpus, &[]);
        assert!([r(0, 1), r(1, 1), r(2, 1)].contains(&alone), "{gpus:?}");
        apart += usize::from(alone.is_zero());
        assert_eq!(broadcast(&t, &gpus, &others(8, &gpus)), r(6, 1), "{gpus:?}");
        assert_eq!(all_gather(&t, &gpus, &others(8, &gpus)), r(6, 1), "{gpus:?}");
    }
    assert_eq!(apart, 12);
}

#[test]
fn triples_of_a_dgx1v() {
    let t = Topology::preset("dgx1-v100").unwrap();
    for gpus in choose(8, 3) {
        assert!(broadcast(&t, &gpus, &[]) <= r(3, 1), "{gpus:?}");
        assert!(all_gather(&t, &gpus, &[]) <= r(3, 2), "{gpus:?}");
        assert_eq!(broadcast(&t, &gpus, &others(8, &gpus)), r(6, 1), "{gpus:?}");
        assert_eq!(all_gather(&t, &gpus, &others(8, &gpus)), r(3, 1), "{gpus:?}");
    }
}

#[test]
fn quads_of_a_dgx1v() {
    let t = Topology::preset("dgx1-v100").unwrap();
    for gpus in choose(8, 4) {
        let (alone, helped) = (broadcast(&t, &gpus, &[]), broadcast(&t, &gpus, &others(8, &gpus)));
        assert!(alone <= r(4, 1) && helped >= alone && helped <= r(6, 1), "{gpus:?}");
        let (alone, helped) = (all_gather(&t, &gpus, &[]), all_gather(&t, &gpus, &others(8, &gpus)));
        assert!(alone <= r(4, 3) && helped >= alone && helped <= r(2, 1), "{gpus:?}");
    }
    let gpus = [0, 1, 2, 3];
    assert_eq!(broadcast(&t, &gpus, &[]), r(4, 1));
    assert_eq!(broadcast(&t, &gpus, &[4, 5, 6, 7]), r(6, 1));
    assert_eq!(all_gather(&t, &gpus, &[]), r(4, 3));
    assert_eq!(all_gather(&t, &gpus, &[4, 5, 6, 7]), r(2, 1));
}

#[test]
fn all_of_a_dgx1v() {
    let t = Topology::preset("dgx1-v100").unwrap();
    let all: Vec<usize> = (0..8).collect();
    // ForestColl: 137.1 GB/s.
    let plan = planned(&t, &Request::new(Operation::AllGather, &all));
    assert_eq!((plan.rate, plan.is_best()), (gbs(960, 7), true));
    let plan = planned(&t, &Request::new(Operation::ReduceScatter, &all));
    assert_eq!((plan.rate, plan.is_best()), (gbs(960, 7), true));
    let plan = planned(&t, &Request::new(Operation::AllReduce, &all));
    assert!(plan.is_best());
    // 24 links between 8 GPUs: 24 / 7 spanning trees.
    assert_eq!(plan.rate, gbs(24 * LINK, 7));
    let plan = planned(&t, &Request::new(Operation::AllToAll, &all));
    assert!(plan.is_best());
}

/// All-reduce, all-to-all and send of every job of a DGX-1V half are proved best.
#[test]
fn other_operations_on_a_dgx1v() {
    let t = Topology::preset("dgx1-v100-4").unwrap();
    for gpus in (2..=4).flat_map(|k| choose(4, k)) {
        for helpers in [vec![], others(4, &gpus)] {
            for operation in [Operation::AllReduce, Operation::AllToAll, Operation::Reduce, Operation::ReduceScatter] {
                let plan = planned(&t, &Request::new(operation, &gpus).with_helpers(&helpers));
                assert!(plan.is_best(), "{operation:?} {gpus:?} {helpers:?}: {} of {}", plan.rate, plan.bound);
            }
        }
    }
    // Blink+ found 80 GB/s by hand for these.
    for gpus in [[0, 1], [0, 3]] {
        let plan = planned(&t, &Request::new(Operation::AllReduce, &gpus).with_helpers(&others(4, &gpus)));
        assert_eq!(plan.rate, gbs(80, 1));
        let plan = planned(&t, &Request::new(Operation::Send, &gpus).with_helpers(&others(4, &gpus)));
        assert_eq!(plan.rate, gbs(80, 1));
    }
}

#[test]
fn all_reduce_on_a_whole_dgx1v() {
    let t = Topology::preset("dgx1-v100").unwrap();
    let mut short = Vec::new();
    for gpus in (2..=4).flat_map(|k| choose(8, k)) {
        for helpers in [vec![], others(8, &gpus)] {
            let plan = planned(&t, &Request::new(Operation::AllReduce, &gpus).with_helpers(&helpers));
            if !plan.is_best() {
                short.push((gpus.clone(), helpers, plan.rate, plan.bound));
            }
        }
    }
    assert_eq!(short, vec![]);
}

#[test]
fn meshes_gain_threefold_and_switches_nothing() {
    for (name, one) in [("a100-mesh4", 80.0), ("h100-mesh4", 123.6)] {
        let t = Topology::preset(name).unwrap();
        let plan = planned(&t, &Request::new(Operation::Broadcast, &[0, 1]).with_helpers(&[2, 3]));
        assert!(plan.is_best() && (plan.gbs() - 3.0 * one).abs() < 1e-9, "{name}: {}", plan.gbs());
        assert!(matches!(plan.gain, Gain::Over(_)));
    }
    for name in ["hgx-a100", "hgx-h100", "hgx-h200"] {
        let t = Topology::preset(name).unwrap();
        for operation in Operation::ALL.map(|(op, _)| op) {
            if operation.uses_host() {
                continue;
            }
            for gpus in [vec![0, 1], vec![0, 3, 5], vec![1, 2, 4, 7]] {
                if operation == Operation::Send && gpus.len() != 2 {
                    continue;
                }
                let helpers = others(8, &gpus);
                let plan = planned(&t, &Request::new(operation, &gpus).with_helpers(&helpers));
                assert!(plan.is_best(), "{name} {operation:?} {gpus:?}");
                assert!(matches!(&plan.gain, Gain::None(why) if why.contains("GB/s")), "{:?}", plan.gain);
            }
        }
    }
}

#[test]
fn rates_on_a_switch() {
    let t = Topology::preset("hgx-h100").unwrap();
    let all: Vec<usize> = (0..8).collect();
    let port = gbs(3708, 10);
    for (operation, times) in [
        (Operation::Broadcast, r(1, 1)),
        (Operation::Reduce, r(1, 1)),
        (Operation::AllGather, r(8, 7)),
        (Operation::ReduceScatter, r(8, 7)),
        (Operation::AllToAll, r(8, 7)),
        (Operation::AllReduce, r(4, 7)),
    ] {
        let plan = planned(&t, &Request::new(operation, &all));
        assert_eq!(plan.rate, port.times(times).unwrap(), "{operation:?}");
        assert!(plan.is_best(), "{operation:?}");
    }
}

#[test]
fn host_memory_over_several_slots() {
    let t = Topology::preset("h200-pair").unwrap();
    for operation in [Operation::Upload, Operation::Download] {
        let one = planned(&t, &Request::new(operation, &[0]));
        assert_eq!((one.rate, one.is_best()), (gbs(549, 10), true));
        let helped = planned(&t, &Request::new(operation, &[0]).with_helpers(&[1]));
        assert_eq!((helped.rate, helped.is_best(), helped.gain), (gbs(1098, 10), true, Gain::Over(gbs(549, 10))));
        let both = planned(&t, &Request::new(operation, &[0, 1]));
        assert_eq!((both.rate, both.is_best()), (gbs(1098, 10), true));
    }
    // Over NVLink and host memory at once.
    let send = Request { pcie: true, ..Request::new(Operation::Send, &[0, 1]) };
    assert_eq!(planned(&t, &send).rate, gbs(4529, 10));
    let broadcast = Request { pcie: true, ..Request::new(Operation::Broadcast, &[0, 1]) };
    assert_eq!(planned(&t, &broadcast).rate, gbs(4529, 10));
    // Pairs of a DGX-1V share a slot, four slots are 48 GB/s.
    let t = Topology::preset("dgx1-v100").unwrap();
    let plan = planned(&t, &Request::new(Operation::Upload, &[0]).with_helpers(&[1, 2, 3, 4, 5, 6, 7]));
    assert_eq!((plan.rate, plan.is_best()), (gbs(48, 1), true));
}

/// All-reduce over links that carry more one way than back.
#[test]
fn all_reduce_over_unlike_directions() {
    let best = |n: usize, links: &[(usize, usize, u32, u32)], rate: Ratio| {
        let plan = planned(&graph(n, links), &Request::new(Operation::AllReduce, &(0..n).collect::<Vec<_>>()));
        assert_eq!((plan.rate, plan.is_best()), (rate, true), "{links:?}: bound {}", plan.bound);
    };
    // What leaves one GPU of two binds.
    best(2, &[(0, 1, 100, 50)], gbs(50, 1));
    // Round a circle one way: to reduce and to spread are trees of their own.
    best(3, &[(0, 1, 10, 5), (1, 2, 10, 5), (2, 0, 10, 5)], gbs(1125, 100));
}

#[test]
fn gpus_that_are_not_joined() {
    let t = Topology::preset("bridge-pairs").unwrap();
    for operation in [Operation::Broadcast, Operation::AllGather, Operation::AllReduce, Operation::AllToAll] {
        let plan = planned(&t, &Request::new(operation, &[0, 2]));
        assert!(plan.rate.is_zero() && plan.is_best(), "{operation:?}");
        let plan = planned(&t, &Request { pcie: true, ..Request::new(operation, &[0, 2]) });
        assert!(!plan.rate.is_zero() && plan.is_best(), "{operation:?}");
    }
}

#[test]
fn every_small_job_of_a_dgx1v_equals_exhaustion() {
    for name in ["dgx1-v100", "dgx1-v100-4"] {
        let t = Topology::preset(name).unwrap();
        let n = t.gpus().len();
        for gpus in (2..=4).flat_map(|k| choose(n, k)) {
            for helpers in [vec![], others(n, &gpus)] {
                for operation in [Operation::Broadcast, Operation::AllGather, Operation::AllReduce] {
                    let request = Request::new(operation, &gpus).with_helpers(&helpers);
                    let expected = Brute::new(&t, &request).of(operation, &request).unwrap();
                    assert_eq!(planned(&t, &request).rate, expected, "{operation:?} {gpus:?} {helpers:?}");
                }
            }
        }
    }
}
