//! What trees move over links, seen in trials on pretend PEs, against the plan's own counts; and what GPUs hold for it.

#[path = "../../fabric-plan/tests/support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use support::planned;
use tandem_fabric::exec::trial::{table, trial};
use tandem_fabric::exec::{Combine, Tuning, MAX_STAGING};
use tandem_fabric::plan::{Operation, Request};
use tandem_fabric::topology::Topology;
use tandem_fabric::{Collectives, Memory, Options, Team};

const PRESETS: [(&str, &[usize], &[usize]); 6] = [
    ("dgx1-v100", &[0, 1], &[2, 3]),
    ("dgx1-v100", &[0, 3, 5], &[1, 2, 4, 6, 7]),
    ("hgx-h200", &[0, 1, 2, 3], &[]),
    ("ring5", &[0, 1, 2, 3, 4], &[]),
    ("bridge-pairs", &[0, 2], &[1, 3]),
    ("l40s-8", &[0, 4], &[1, 5]),
];

/// Every operation on several machines: the links carry what the plan's loads say, each tree what its share says, and nothing else.
#[test]
fn links_carry_what_the_plan_says() {
    let mut seen = 0;
    for (preset, gpus, helpers) in PRESETS {
        let topology = Topology::preset(preset).unwrap();
        for (operation, name) in Operation::ALL {
            let gpus = if operation == Operation::Send { &gpus[..2] } else { gpus };
            let mut request = Request::new(operation, gpus).with_helpers(helpers);
            request.pcie = preset == "l40s-8" || preset == "bridge-pairs";
            let plan = planned(&topology, &request);
            let what = format!("{name} on {preset}");
            // Of no round size, in parts or in trees.
            let bytes = 3_000_040;
            let tried = trial(&topology, &plan, bytes, || false).unwrap_or_else(|e| panic!("{what}: {e}"));
            let traffic = tried.traffic();
            // Each range of a tree ends within a grain of its share, and what trees carry is cut for workers without loss.
            for one in &traffic {
                let passes = (one.planned / bytes as f64).ceil().max(1.0) * 8.0;
                let off = (one.bytes as f64 - one.planned).abs();
                assert!(off <= 32.0 * passes, "{what}: tree {}: {} of {}", one.tree, one.bytes, one.planned);
                assert!(one.chunks > 0 && one.begun <= one.ended, "{what}: {one:?}");
            }
            // By link, against what the planner itself counted.
            let mut links: BTreeMap<(usize, usize), u64> = BTreeMap::new();
            traffic.iter().for_each(|one| *links.entry((one.from, one.to)).or_default() += one.bytes);
            assert_eq!(links.len(), plan.loads.len(), "{what}");
            for load in &plan.loads {
                let wanted = load.rate.to_f64() / plan.rate.to_f64() * bytes as f64;
                let found = links[&(load.from, load.to)] as f64;
                let off = (found - wanted).abs();
                assert!(off <= 1000.0 + wanted * 1e-4, "{what}: {} > {}: {found} of {wanted}", load.from, load.to);
                seen += 1;
            }
        }
    }
    assert!(seen > 200, "{seen}");
}

/// However large a call, its chunks on their way fit into the bound, and a helper has no part of the data itself.
#[test]
fn what_a_helper_holds_is_bounded() {
    for (preset, gpus, helpers) in PRESETS {
        let topology = Topology::preset(preset).unwrap();
        for (operation, name) in Operation::ALL {
            let gpus = if operation == Operation::Send { &gpus[..2] } else { gpus };
            let plan = planned(&topology, &Request::new(operation, gpus).with_helpers(helpers));
            for bytes in [1 << 20, 1 << 30, 1 << 40] {
                let Ok(table) = table(&topology, &plan, bytes) else { continue };
                let most = table.staging.iter().max().copied().unwrap_or(0);
                assert!(most <= MAX_STAGING, "{name} on {preset}, {bytes} bytes: {most}");
            }
        }
    }
}

/// Operations that are done at once share the bound; the memory of the team grows by no more than that.
#[test]
fn operations_at_once_share_the_memory_of_rings() {
    const LEN: usize = 6 << 20;
    let topology = Topology::preset("dgx1-v100").unwrap();
    let tuning = Tuning {
        messages: 0,
        direct: 0,
        direct_pair: 0,
        through_host: false,
        chunk: 4 << 20,
        slots: 16,
        ..Tuning::default()
    };
    let team = Team::sim(8, Options::default()).unwrap();
    let job = [0, 1];
    let trees = Collectives::of(&team, &topology, &job, tuning).unwrap();
    let part = team.split(&job).unwrap();
    // Memory of the job's own PEs: helpers have none of it.
    let memory = |seed: u32| {
        let of = |pe: u32| Memory::Host((0..LEN as u32).map(|i| (i ^ seed).wrapping_mul(pe + 3)).collect());
        part.register::<u32>((0..2).map(of).collect()).unwrap()
    };
    let from: Vec<_> = (0..3).map(memory).collect();
    let to: Vec<_> = (10..13).map(memory).collect();
    let before = team.heap_bytes().1;
    trees.together(|g| (0..3).try_for_each(|i| g.broadcast(0, &from[i], &to[i]))).unwrap();
    team.synchronize().unwrap();
    for (from, to) in from.iter().zip(&to) {
        assert_eq!(part.read(1, to).unwrap(), part.read(0, from).unwrap());
    }
    let rings = team.heap_bytes().1 - before;
    // Besides rings there are the counters.
    assert!(rings <= MAX_STAGING + (1 << 20) && rings > 1 << 20, "{rings}");
    trees.all_reduce(Combine::Xor, &from[0], &to[0]).unwrap();
    team.synchronize().unwrap();
    let sum: Vec<u32> =
        part.read(0, &from[0]).unwrap().iter().zip(part.read(1, &from[0]).unwrap()).map(|(a, b)| a ^ b).collect();
    assert!(part.read(0, &to[0]).unwrap() == sum && part.read(1, &to[0]).unwrap() == sum);
}

#[test]
fn trials_refuse_what_they_cannot_do() {
    let topology = Topology::preset("dgx1-v100").unwrap();
    let plan = planned(&topology, &Request::new(Operation::AllGather, &[0, 1, 2]));
    let why = |bytes: u64| trial(&topology, &plan, bytes, || false).unwrap_err().to_string();
    assert!(why(7).contains("8 bytes for each part at least, found 7"), "{}", why(7));
    assert!(why(1 << 40).contains("of host memory, 2147483648 at most"), "{}", why(1 << 40));
    let stopped = trial(&topology, &plan, 1 << 24, || true);
    // It may be done before it looks.
    assert!(stopped.is_ok() || stopped.unwrap_err().to_string().contains("was stopped"));
    // GPUs that nothing joins have a plan that moves nothing.
    let none = planned(&topology, &Request::new(Operation::Broadcast, &[0, 6]));
    assert!(trial(&topology, &none, 1 << 20, || false).unwrap_err().to_string().contains("moves nothing"));
}
