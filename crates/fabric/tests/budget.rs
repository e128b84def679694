//! Plans that are cut short: valid, said to be so, the same again.

#[path = "../../fabric-plan/tests/support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use support::{graph, planned};
use tandem_fabric::exec::{self, schedule, Call, Shape};
use tandem_fabric::plan::{check, plan_within, Budget, Error, Gain, Operation, Request};
use tandem_fabric::topology::{Device, DeviceKind, Link, LinkKind, Rate, Topology};

/// 32 GPUs, 56 NVSwitches and 4 NUMA nodes, one link in four of those that there can be, each with a rate at random each way.
fn tangle() -> Topology {
    let mut seed = 9u64;
    let mut next = |n: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % n
    };
    let kind = |d| match d {
        0..32 => DeviceKind::Gpu,
        32..88 => DeviceKind::NvSwitch,
        _ => DeviceKind::Cpu,
    };
    let device = |d| Device { name: format!("D{d}"), kind: kind(d), attributes: BTreeMap::new() };
    let mut links = Vec::new();
    for a in 0..92 {
        for b in a + 1..92 {
            if next(4) == 0 {
                let mut rate = || Rate::from_gbs((1 + next(400)) as f64).unwrap();
                links.push(Link { a, b, kind: LinkKind::NvLink, count: 1, forth: rate(), back: rate() });
            }
        }
    }
    Topology::new("tangle", (0..92).map(device).collect(), links).unwrap()
}

fn of(operation: Operation, gpus: usize) -> Request {
    let gpus: Vec<usize> = (0..if operation == Operation::Send { 2 } else { gpus }).collect();
    Request::new(operation, &gpus)
}

/// Whatever the budget, a plan comes out that the checker accepts, that moves something, and that says how far from the bound it is.
#[test]
fn plans_at_the_end_of_a_budget_are_valid() {
    let t = tangle();
    for (operation, name) in Operation::ALL {
        let mut rates = Vec::new();
        // At once; in the search for the bound; in that for the plan.
        for steps in [0, 300_000, 10_000_000] {
            let find = || plan_within(&t, &of(operation, 32), &Budget::of_steps(steps)).unwrap();
            let plan = find();
            assert!(steps > 1_000_000 || plan == find(), "{name} {steps}");
            check(&t, &plan).unwrap_or_else(|e| panic!("{name} {steps}: {e}"));
            assert!(!plan.rate.is_zero() && plan.rate <= plan.bound, "{name} {steps}");
            let json = plan.to_json(&t);
            assert_eq!(json["optimal"], plan.is_best());
            assert_eq!(json["gap"].as_f64(), plan.gap());
            assert_eq!(json["is_cut_short"], plan.is_cut_short);
            let (text, gap) = (plan.to_text(&t), plan.gap().unwrap());
            assert_eq!(text.contains("search stopped at its limit"), plan.is_cut_short, "{text}");
            assert_eq!(text.contains(&format!("by {:.2} % at most", gap * 100.0)), !plan.is_best(), "{text}");
            assert!(plan.is_cut_short || steps > 0, "{name}");
            println!("{name} {steps}: {:.1} GB/s, gap {gap:.2}, cut short {}", plan.gbs(), plan.is_cut_short);
            rates.push((plan.rate, plan.gap().unwrap(), plan.is_cut_short, plan.is_best()));
        }
        // Flows are done; trees are not, and are of some use.
        let is_flow = operation.uses_host() || operation == Operation::Send;
        let (rate, gap, is_cut_short, is_best) = rates[2];
        assert_eq!((is_best, is_cut_short), (is_flow, !is_flow), "{name}");
        // The linear program of an exchange needs more than this.
        let is_exchange = operation == Operation::AllToAll;
        assert!(rate > rates[0].0 || is_exchange && rate == rates[0].0, "{name}: {rates:?}");
        assert!(rates.is_sorted_by_key(|r| r.0) && gap < 6.0, "{name}: {rates:?}");
    }
}

/// With helpers both searches have a share; a budget that is enough changes nothing.
#[test]
fn budgets_that_are_enough_change_nothing() {
    let t = Topology::preset("dgx1-v100").unwrap();
    for (operation, name) in Operation::ALL {
        let request = of(operation, 3).with_helpers(&[4, 5, 6]);
        let whole = planned(&t, &request);
        assert!(!whole.is_cut_short, "{name}");
        let timed = Budget::of_time(std::time::Duration::from_secs(3600));
        assert_eq!(plan_within(&t, &request, &timed).unwrap(), whole, "{name}");
        let short = plan_within(&t, &request, &Budget::of_steps(0)).unwrap();
        check(&t, &short).unwrap();
        assert!(short.is_cut_short && !short.rate.is_zero() && short.rate <= whole.rate, "{name}");
        assert!(short.bound >= whole.bound, "{name}");
        // It can be carried out: what is collected and what is spread is the same, share by share.
        let call = Call { operation, root: 0, part: 4096, unit: 4, in_place: false };
        let mut short = short;
        if matches!(short.gain, Gain::None(_)) {
            short.request.helpers.clear();
        }
        let table = schedule(&t, &short, &call, &Shape { workers: 64, chunk: 1024, slots: 2 }).unwrap();
        exec::check(&table).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

#[test]
fn gpus_that_are_not_joined_are_found_at_once() {
    let t = graph(4, &[(0, 1, 1, 1), (2, 3, 1, 1)]);
    for (operation, name) in Operation::ALL.into_iter().filter(|(op, _)| !op.uses_host()) {
        let request = Request::new(operation, if operation == Operation::Send { &[0, 2] } else { &[0, 1, 2] });
        let plan = plan_within(&t, &request, &Budget::of_steps(0)).unwrap();
        check(&t, &plan).unwrap();
        assert_eq!((plan.rate.is_zero(), plan.gap()), (true, if plan.is_best() { None } else { plan.gap() }), "{name}");
        plan.to_text(&t);
        assert!(plan.to_json(&t)["gap"].is_null(), "{name}");
    }
}

#[test]
fn a_search_that_is_cancelled_has_no_plan() {
    let t = tangle();
    // Flows are found before anyone asks.
    let is_flow = |operation: Operation| operation.uses_host() || operation == Operation::Send;
    for (operation, name) in Operation::ALL.into_iter().filter(|(op, _)| !is_flow(*op)) {
        let budget = Budget::default().cancelled_by(|| true);
        assert_eq!(plan_within(&t, &of(operation, 32), &budget), Err(Error::Stopped), "{name}");
    }
}
