//! Schedules of presets and of random graphs are proved right, and damaged ones are found out.

#[path = "../../fabric-plan/tests/support/mod.rs"]
mod support;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use support::{graph, planned, random_links};
use tandem_fabric::exec::{check, direct, messages, predict, schedule, Call, Place, Schedule, Shape, MAX_STAGING};
use tandem_fabric::plan::{Operation, Request};
use tandem_fabric::topology::{Topology, PRESETS};

fn call(operation: Operation, part: u64, unit: u64, in_place: bool) -> Call {
    let in_place = in_place && !matches!(operation, Operation::AllToAll | Operation::Upload | Operation::Download);
    Call { operation, root: 0, part: part / unit * unit, unit, in_place }
}

const SHAPES: [Shape; 4] = [
    Shape { workers: 1, chunk: 4096, slots: 1 },
    Shape { workers: 1, chunk: 16, slots: 3 },
    Shape { workers: 13, chunk: 48, slots: 2 },
    Shape { workers: 64, chunk: 1 << 20, slots: 4 },
];

/// Sizes around everything that could matter: none, odd, powers of two, more than all rings hold.
const SIZES: [u64; 12] = [0, 1, 2, 15, 16, 17, 255, 257, 1023, 4096, 20_001, 65_537];

#[track_caller]
fn proved(topology: &Topology, request: &Request, call: &Call, shape: &Shape) -> Option<Schedule> {
    let plan = planned(topology, request);
    if plan.rate.is_zero() {
        assert!(schedule(topology, &plan, call, shape).is_err(), "GPUs that are not joined");
        return None;
    }
    // A chunk of 16 bytes in a large buffer is a lot of paper.
    let shape = Shape { chunk: shape.chunk.max(call.part / 40 / 16 * 16), ..*shape };
    let table = schedule(topology, &plan, call, &shape).unwrap_or_else(|e| panic!("{request:?} {call:?}: {e}"));
    check(&table).unwrap_or_else(|e| panic!("{request:?} {call:?} {shape:?}: {e}"));
    assert!(table.staging.iter().all(|&bytes| bytes <= MAX_STAGING));
    Some(table)
}

#[test]
fn random_graphs() {
    let case = (2usize..=6).prop_flat_map(|n| {
        let links = random_links(n);
        let order = Just((0..n).collect::<Vec<_>>()).prop_shuffle();
        (Just(n), links, 2..=n, order, 0..Operation::ALL.len(), 0..SIZES.len(), 0..SHAPES.len(), 0u32..4, any::<bool>())
    });
    let config = Config { cases: 1500, failure_persistence: None, max_shrink_iters: 30, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[23; 32]);
    let proved_count = std::cell::Cell::new(0);
    TestRunner::new_with_rng(config, rng)
        .run(&case, |(n, links, k, order, op, size, shape, unit, in_place)| {
            let operation = Operation::ALL[op].0;
            if operation.uses_host() {
                return Ok(());
            }
            let (job, helpers) = order.split_at(if operation == Operation::Send { 2 } else { k });
            let request = Request::new(operation, job).with_helpers(helpers);
            let call = call(operation, SIZES[size], 1 << unit, in_place);
            let table = proved(&graph(n, &links), &request, &call, &SHAPES[shape]);
            proved_count.set(proved_count.get() + usize::from(table.is_some()));
            let table = direct(&call, job.len(), SHAPES[shape].workers).unwrap();
            check(&table).unwrap_or_else(|e| panic!("direct {call:?} for {}: {e}", job.len()));
            let table = messages(&call, job.len(), SHAPES[shape].workers).unwrap();
            check(&table).unwrap_or_else(|e| panic!("messages {call:?} for {}: {e}", job.len()));
            Ok(())
        })
        .unwrap();
    assert!(proved_count.get() > 500, "too few graphs were joined: {}", proved_count.get());
}

#[test]
fn presets() {
    for (name, _) in PRESETS {
        let topology = Topology::preset(name).unwrap();
        let gpus = topology.gpus().len();
        for (operation, _) in Operation::ALL {
            let jobs: Vec<Vec<usize>> = match operation {
                Operation::Send => vec![vec![gpus - 1, 0]],
                _ => vec![vec![1, 0], (0..gpus).collect()],
            };
            for job in jobs {
                let helpers: Vec<usize> = (0..gpus).filter(|g| !job.contains(g)).collect();
                for pcie in [false, true] {
                    // Trees over every path of eight GPUs through PCIe are many; they are planned elsewhere.
                    let request = Request { pcie, ..Request::new(operation, &job).with_helpers(&helpers) };
                    let shape = Shape { workers: 2, chunk: 8192, slots: 2 };
                    for part in [1, 40_008] {
                        proved(&topology, &request, &call(operation, part, 1, part > 1), &shape);
                    }
                }
            }
        }
    }
}

/// With chunks that are small against the data, a schedule on paper comes close to its plan's rate.
#[test]
fn predicted_times_approach_the_plan() {
    let part = 1u64 << 30;
    let mut cases = 0;
    for (name, job, helpers) in [
        ("dgx1-v100", &[0, 1][..], &[2, 3][..]),
        ("dgx1-v100", &[0, 1, 2, 3], &[4, 5, 6, 7]),
        ("dgx1-v100", &[0, 1, 2, 3, 4, 5, 6, 7], &[]),
        ("h200-pair", &[0, 1], &[]),
        ("a100-mesh4", &[0, 1, 2, 3], &[]),
        ("hgx-h200", &[0, 1, 2, 3], &[]),
    ] {
        let topology = Topology::preset(name).unwrap();
        for (operation, _) in Operation::ALL {
            if operation == Operation::Send && job.len() != 2 {
                continue;
            }
            let request = Request::new(operation, job).with_helpers(helpers);
            let plan = planned(&topology, &request);
            let shape = Shape { workers: 1, chunk: 1 << 20, slots: 4 };
            let table = schedule(&topology, &plan, &call(operation, part, 1, true), &shape).unwrap();
            let seconds = predict(&table, &topology).unwrap();
            let size = match operation {
                Operation::AllGather | Operation::ReduceScatter | Operation::AllToAll => part * job.len() as u64,
                Operation::Upload | Operation::Download => part * job.len() as u64,
                _ => part,
            };
            let rate = size as f64 / seconds / 1e9;
            assert!(rate <= plan.gbs() * 1.0001, "{name} {operation:?}: {rate} of {}", plan.gbs());
            assert!(rate >= plan.gbs() * 0.8, "{name} {operation:?} of {job:?}: {rate} of {}", plan.gbs());
            cases += 1;
        }
    }
    assert!(cases > 40);
}

/// What stays at home takes few workers from what goes over links, however many PEs there are.
#[test]
fn workers_of_an_exchange_are_at_the_links() {
    let topology = Topology::preset("hgx-h200").unwrap();
    let shape = Shape { workers: 128, chunk: 256 << 10, slots: 4 };
    for pes in 2..=8usize {
        let job: Vec<usize> = (0..pes).collect();
        let call = call(Operation::AllToAll, 128 << 20, 4, false);
        let planned = schedule(&topology, &planned(&topology, &Request::new(Operation::AllToAll, &job)), &call, &shape);
        for (name, table) in [("planned", planned.unwrap()), ("direct", direct(&call, pes, shape.workers).unwrap())] {
            check(&table).unwrap();
            let count = |to: usize| table.transfers.iter().filter(|t| t.at == 0 && t.targets[0].node == to).count();
            let (home, away): (usize, Vec<usize>) = (count(0), (1..pes).map(count).collect());
            assert!(away.iter().all(|each| *each == away[0]), "{name} {pes}: {away:?}");
            let links = away.len() * away[0];
            assert!(home + links <= shape.workers && home > 0, "{name} {pes}: {home} and {away:?}");
            // As many as fill a link, or nearly all.
            assert!(links >= 96, "{name} {pes}: {home} and {away:?}");
        }
    }
}

/// Whatever is changed in a schedule, the check finds it.
#[test]
fn damaged_schedules_are_found_out() {
    let topology = Topology::preset("dgx1-v100").unwrap();
    let request = Request::new(Operation::AllReduce, &[0, 1, 2]).with_helpers(&[3]);
    let shape = Shape { workers: 1, chunk: 1024, slots: 2 };
    let good = proved(&topology, &request, &call(Operation::AllReduce, 50_000, 4, false), &shape).unwrap();
    let is_ring = |s: &tandem_fabric::exec::Endpoint| matches!(s.place, Place::Ring(_));
    let mut damaged = Vec::new();
    for t in 0..good.transfers.len() {
        let mut change = |what: &str, f: &dyn Fn(&mut Schedule)| {
            let mut bad = good.clone();
            f(&mut bad);
            if bad != good {
                damaged.push((format!("{what} of transfer {t}"), bad));
            }
        };
        change("bytes", &|s| s.transfers[t].bytes -= 1);
        change("no source", &|s| {
            s.transfers[t].sources.pop();
        });
        change("no target", &|s| {
            s.transfers[t].targets.pop();
        });
        change("source twice", &|s| {
            let again = s.transfers[t].sources[0];
            s.transfers[t].sources.push(again);
        });
        change("source elsewhere", &|s| {
            s.transfers[t].sources.iter_mut().filter(|s| !is_ring(s)).for_each(|s| s.at += 16);
        });
        change("target elsewhere", &|s| {
            s.transfers[t].targets.iter_mut().filter(|s| !is_ring(s)).for_each(|s| s.at += 16);
        });
        change("does not wait", &|s| {
            s.transfers[t].sources.iter_mut().filter(|s| s.place == Place::Output).for_each(|s| s.channel = None);
        });
        change("gone", &|s| {
            s.transfers.remove(t);
        });
        change("twice", &|s| {
            let again = s.transfers[t].clone();
            s.transfers.push(again);
        });
        change("done by another", &|s| s.transfers[t].at = (s.transfers[t].at + 1) % s.pes);
    }
    for c in 0..good.channels.len() {
        let mut bad = good.clone();
        bad.channels[c].chunks += 1;
        damaged.push((format!("chunks of channel {c}"), bad));
        if good.channels[c].ring.is_some() {
            let mut bad = good.clone();
            if let Some(ring) = &mut bad.channels[c].ring {
                ring.at += 16;
            }
            damaged.push((format!("ring of channel {c}"), bad));
        }
    }
    assert!(damaged.len() > 60, "{}", damaged.len());
    for (what, bad) in damaged {
        assert!(check(&bad).is_err(), "{what} is not noticed");
    }
}

/// Without helpers and host memory, what is gathered lies in the callers' memory and nowhere else: it may be secret.
#[test]
fn an_all_gather_among_the_job_stages_nothing() {
    let mut found = 0;
    for (name, _) in PRESETS {
        let topology = Topology::preset(name).unwrap();
        for n in 2..=topology.gpus().len() {
            let request = Request::new(Operation::AllGather, &(0..n).collect::<Vec<_>>());
            for shape in SHAPES {
                let table = proved(&topology, &request, &call(Operation::AllGather, 20_001, 1, true), &shape);
                assert!(table.iter().all(|table| table.staging.iter().all(|bytes| *bytes == 0)), "{name}, {n} GPUs");
                found += table.iter().count();
            }
        }
    }
    assert!(found > 50, "{found} tables");
}

#[test]
fn calls_that_make_no_sense_are_refused() {
    let topology = Topology::preset("h200-pair").unwrap();
    let plan = planned(&topology, &Request::new(Operation::Broadcast, &[0, 1]));
    let shape = SHAPES[0];
    let good = call(Operation::Broadcast, 100, 4, false);
    assert!(schedule(&topology, &plan, &good, &shape).is_ok());
    for (bad, text) in [
        (Call { root: 1, ..good }, "root"),
        (Call { root: 2, ..good }, "root"),
        (Call { unit: 3, ..good }, "1, 2, 4 or 8"),
        (Call { part: 101, ..good }, "whole number"),
        (Call { part: u64::MAX - 3, ..good }, "at most"),
        (Call { operation: Operation::AllReduce, ..good }, "planned for broadcast"),
    ] {
        let error = schedule(&topology, &plan, &bad, &shape).unwrap_err().to_string();
        assert!(error.contains(text) || error.contains("the plan is for broadcast"), "{bad:?}: {error}");
    }
    for bad in [Shape { workers: 0, ..shape }, Shape { chunk: 8, ..shape }, Shape { slots: 0, ..shape }] {
        assert!(schedule(&topology, &plan, &good, &bad).is_err());
    }
    for table in [direct, messages] {
        assert!(table(&call(Operation::Upload, 100, 1, false), 2, 1).is_err());
        assert!(table(&call(Operation::Send, 100, 1, false), 3, 1).is_err());
        assert!(table(&Call { in_place: true, ..call(Operation::AllToAll, 100, 1, false) }, 3, 1).is_err());
    }
}
