//! Random graphs of up to 7 GPUs against exhaustion.

mod support;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use support::{graph, planned, random_links, Brute, Links};
use tandem_fabric_plan::{Operation, Ratio, Request};
use tandem_fabric_topology::{Link, Rate, Topology};

/// GPUs, links, the job's size (its GPUs are the first after a shuffle), the order.
fn case(is_symmetric: bool) -> impl Strategy<Value = (usize, Links, usize, Vec<usize>)> {
    (2usize..=7).prop_flat_map(move |n| {
        let links = random_links(n).prop_map(move |mut links| {
            if is_symmetric {
                links.iter_mut().for_each(|(_, _, forth, back)| *back = *forth);
            }
            links
        });
        (Just(n), links, 2..=n, Just((0..n).collect::<Vec<_>>()).prop_shuffle())
    })
}

fn run(cases: u32, is_symmetric: bool, test: impl Fn(usize, &Links, &[usize], &[usize])) {
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 20, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[if is_symmetric { 7 } else { 11 }; 32]);
    TestRunner::new_with_rng(config, rng)
        .run(&case(is_symmetric), |(n, links, k, order)| {
            let (job, helpers) = order.split_at(k);
            test(n, &links, job, helpers);
            Ok(())
        })
        .unwrap();
}

const TREES: [Operation; 4] = [Operation::Broadcast, Operation::Reduce, Operation::AllGather, Operation::ReduceScatter];

/// With links that carry as much back as forth, trees reach the least cut, with and without helpers.
#[test]
fn symmetric_graphs_equal_exhaustion() {
    run(600, true, |n, links, job, helpers| {
        let t = graph(n, links);
        for helpers in [&[], helpers] {
            let request = |operation| Request::new(operation, job).with_helpers(helpers);
            let brute = Brute::new(&t, &request(Operation::Broadcast));
            for operation in TREES {
                let request = request(operation);
                let expected = match operation {
                    Operation::ReduceScatter => brute.all_gather(),
                    _ => brute.of(operation, &request).unwrap(),
                };
                assert_eq!(planned(&t, &request).rate, expected, "{request:?} {links:?}");
            }
        }
    });
}

/// Without relays this holds for any rates.
#[test]
fn directed_graphs_equal_exhaustion() {
    run(600, false, |n, links, job, _| {
        let t = graph(n, links);
        for operation in [Operation::Broadcast, Operation::Reduce, Operation::AllGather] {
            let request = Request::new(operation, job);
            let expected = Brute::new(&t, &request).of(operation, &request).unwrap();
            assert_eq!(planned(&t, &request).rate, expected, "{request:?} {links:?}");
        }
        let send = Request::new(Operation::Send, &job[..2]).with_helpers(&job[2..]);
        assert_eq!(planned(&t, &send).rate, Brute::new(&t, &send).broadcast(job[0]), "{links:?}");
    });
}

/// With relays whose links differ by direction the bound holds, and a plan that misses it says so.
#[test]
fn directed_relays_stay_below_the_bound() {
    run(400, false, |n, links, job, helpers| {
        let t = graph(n, links);
        for operation in TREES {
            let request = Request::new(operation, job).with_helpers(helpers);
            let plan = planned(&t, &request);
            if let Some(bound) = Brute::new(&t, &request).of(operation, &request) {
                assert!(plan.bound == bound && plan.rate <= bound, "{request:?} {links:?}");
            }
            assert_eq!(plan.is_best(), plan.rate == plan.bound);
        }
    });
}

/// Without helpers, all-reduce packs as many spanning trees as partitions allow (Tutte, Nash-Williams).
#[test]
fn all_reduce_equals_exhaustion() {
    run(600, true, |n, links, job, helpers| {
        let t = graph(n, links);
        let request = Request::new(Operation::AllReduce, job);
        let expected = Brute::new(&t, &request).all_reduce();
        assert_eq!(planned(&t, &request).rate, expected, "{request:?} {links:?}");
        let request = request.with_helpers(helpers);
        let plan = planned(&t, &request);
        assert!(plan.rate <= Brute::new(&t, &request).all_reduce(), "{request:?} {links:?}");
    });
}

/// The linear program of all-to-all proves itself; a cut never allows less.
#[test]
fn all_to_all_proves_itself() {
    run(300, false, |n, links, job, helpers| {
        let t = graph(n, links);
        let request = Request::new(Operation::AllToAll, job).with_helpers(helpers);
        let plan = planned(&t, &request);
        // Simple fractions may not do for six or seven GPUs with rates at random; then the plan says so and is close.
        assert!(plan.is_best() || n > 5, "{request:?} {links:?}");
        let gap = 1.0 - plan.rate.to_f64() / plan.bound.to_f64();
        assert!(plan.rate.is_zero() || gap < 1e-7, "{request:?} {links:?} {gap}");
        // A cut with k of N GPUs inside lets k (N - k) pairs pass; all-gather's is looser by N - k.
        let gather = Brute::new(&t, &request).all_gather();
        assert!(plan.rate <= gather, "{request:?} {links:?}");
        assert!(plan.rate >= Ratio::ZERO);
    });
}

/// Rates as unlike as they may be: plans still pass the checker, and nothing overflows.
#[test]
fn extreme_rates_do_no_harm() {
    let sizes = [1u32, 2, 999, 123_457, 999_983, 1_000_000];
    run(150, false, |n, links, job, helpers| {
        let size = |i: usize, x: u32| sizes[(i * 7 + x as usize) % sizes.len()];
        let links: Links =
            links.iter().enumerate().map(|(i, &(a, b, x, y))| (a, b, size(i, x), size(i + 1, y))).collect();
        let t = graph(n, &links);
        for (operation, _) in Operation::ALL.iter().filter(|(op, _)| !op.uses_host()) {
            let job = if *operation == Operation::Send { &job[..2] } else { job };
            planned(&t, &Request::new(*operation, job).with_helpers(helpers));
        }
    });
}

/// Links from the slowest that there can be to the fastest.
#[test]
fn all_rates_that_there_can_be() {
    for n in [3, 5, 8] {
        let links: Links = (0..n)
            .flat_map(|a| (a + 1..n).map(move |b| (a, b, 1_000_000, 1_000_000)))
            .map(|(a, b, forth, back)| if b == a + 1 { (a, b, 1, 1) } else { (a, b, forth, back) })
            .collect();
        let fast = graph(n, &links);
        let slow = |l: &Link| Link { forth: Rate::from_gbs(0.001).unwrap(), ..*l };
        let links = fast.links().iter().map(|l| if l.forth.gbs() == 1.0 { slow(l) } else { l.clone() }).collect();
        let t = Topology::new("unlike", fast.devices().to_vec(), links).unwrap();
        for (operation, _) in Operation::ALL.into_iter().filter(|(op, _)| !op.uses_host() && *op != Operation::Send) {
            let plan = planned(&t, &Request::new(operation, &(0..n).collect::<Vec<_>>()));
            assert!(!plan.rate.is_zero(), "{operation:?} of {n}");
        }
    }
}

/// Sixteen GPUs joined at random, all of them or twelve with four helpers: every operation is planned within a second by a release build (here the
/// limit is for one without optimisation, on a busy machine), best or as near as is said.
#[test]
fn sixteen_gpus_joined_at_random() {
    let mut seed = 3u64;
    let mut next = |n: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % n
    };
    let all: Vec<usize> = (0..16).collect();
    let mut slowest = (0.0, String::new());
    for case in 0..18 {
        let (per_cent, is_symmetric) = ([20, 35, 60, 100][case % 4], case % 3 < 2);
        let mut links = Links::new();
        for a in 0..16 {
            for b in a + 1..16 {
                if b == a + 1 || next(100) < per_cent {
                    let mut rate = || if case % 2 == 0 { 20 * (1 + next(6)) as u32 } else { 1 + next(400) as u32 };
                    let forth = rate();
                    links.push((a, b, forth, if is_symmetric { forth } else { rate() }));
                }
            }
        }
        let t = graph(16, &links);
        for (job, helpers) in [(&all[..], &[][..]), (&all[..12], &all[12..])] {
            for (operation, name) in Operation::ALL.into_iter().filter(|(op, _)| !op.uses_host()) {
                let job = if operation == Operation::Send { &[0, 11][..] } else { job };
                let request = Request::new(operation, job).with_helpers(helpers);
                let start = std::time::Instant::now();
                let plan = planned(&t, &request);
                let took = start.elapsed().as_secs_f64();
                let gap = if plan.is_best() { 0.0 } else { plan.bound.to_f64() / plan.rate.to_f64() - 1.0 };
                let what = format!("{name} case {case}, {} helpers: {took:.3} s, gap {gap:.1e}", helpers.len());
                println!("{what}");
                let most = match operation {
                    Operation::AllToAll => 1e-7,
                    Operation::AllReduce if !is_symmetric => 1.0,
                    Operation::AllReduce if !helpers.is_empty() => 0.2,
                    _ if !is_symmetric && !helpers.is_empty() => 0.2,
                    _ => 0.0,
                };
                assert!(gap <= most, "{what}");
                if took > slowest.0 {
                    slowest = (took, what);
                }
            }
        }
    }
    println!("slowest: {}", slowest.1);
    assert!(slowest.0 < 20.0, "{}", slowest.1);
}
