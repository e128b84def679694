//! Broadcast and all-reduce over packed trees: two GPUs of a DGX-1 use the links of those beside them. The plan is made for
//! the preset's topology, predicted at its rates, and carried out by pretend PEs, one for each GPU, with every byte checked.
//!
//! ```text
//! cargo run -p tandem-fabric --example trees
//! ```

use tandem_fabric::exec::{predict, schedule, Call, Combine, Shape, Tuning};
use tandem_fabric::plan::{check, plan, Operation, Plan, Request};
use tandem_fabric::topology::{LinkKind, Topology};
use tandem_fabric::{Collectives, Options, Result, Symmetric, Team};

/// Numbers of each PE: several chunks, and a multiple of nothing.
const LEN: usize = (1 << 18) + 4321;

fn main() -> Result<()> {
    println!("GB/s (algbw)                                    ring    bound     plan  at 1 GiB");
    for operation in [Operation::Broadcast, Operation::AllReduce] {
        for preset in ["dgx1-v100-4", "dgx1-v100"] {
            for job in [&[0, 1][..], &[0, 3], &[0, 1, 2], &[0, 1, 2, 3]] {
                let topology = Topology::preset(preset)?;
                let plan = best(&topology, operation, job)?;
                println!(
                    "{:<11} {:<12} GPUs {:<12} {:>8.1} {:>8.1} {:>8.1} {:>9.1}",
                    operation.name(),
                    topology.name(),
                    format!("{job:?}"),
                    ring(&topology, operation, job),
                    plan.bound.to_f64() / 1e3,
                    plan.gbs(),
                    predicted(&topology, &plan)?
                );
                carry_out(&topology, operation, job)?;
            }
        }
    }
    println!("\neverything arrived, and nothing else");
    Ok(())
}

/// The best packing of trees, with all GPUs outside the job as helpers.
fn best(topology: &Topology, operation: Operation, job: &[usize]) -> Result<Plan> {
    let helpers: Vec<usize> = (0..topology.gpus().len()).filter(|gpu| !job.contains(gpu)).collect();
    let plan = plan(topology, &Request::new(operation, job).with_helpers(&helpers))?;
    // The plan and its bound, by code that shares nothing with the planner.
    check(topology, &plan)?;
    Ok(plan)
}

/// The rate for 1 GiB where every link carries its rate and chunks flow one after the other.
fn predicted(topology: &Topology, plan: &Plan) -> Result<f64> {
    let mut plan = plan.clone();
    // Without a gain the plan does without its helpers.
    if matches!(plan.gain, tandem_fabric::plan::Gain::None(_)) {
        plan.request.helpers.clear();
    }
    let operation = plan.request.operation;
    let call = Call { operation, root: 0, part: 1 << 30, unit: 4, in_place: true };
    let shape = Shape { workers: 16, chunk: 1 << 20, slots: 4 };
    let seconds = predict(&schedule(topology, &plan, &call, &shape)?, topology)?;
    Ok((1u64 << 30) as f64 / seconds / 1e9)
}

/// What rings inside the job reach, each over whole NVLinks, as NCCL makes them: the most cycles through all GPUs of which no
/// two share a link in one direction.
fn ring(topology: &Topology, operation: Operation, job: &[usize]) -> f64 {
    let n = job.len();
    let (mut free, mut single) = (vec![vec![0; n]; n], 0.0);
    let place = |device: usize| job.iter().position(|&gpu| topology.gpus()[gpu] == device);
    for link in topology.links().iter().filter(|link| link.kind == LinkKind::NvLink) {
        if let (Some(a), Some(b)) = (place(link.a), place(link.b)) {
            (free[a][b], free[b][a]) = (link.count, link.count);
            single = link.forth.gbs() / f64::from(link.count);
        }
    }
    let mut orders = vec![vec![0]];
    for _ in 1..n {
        let longer = |order: &Vec<usize>| {
            (0..n).filter(|next| !order.contains(next)).map(|next| [&order[..], &[next]].concat()).collect::<Vec<_>>()
        };
        orders = orders.iter().flat_map(longer).collect();
    }
    let rate = f64::from(most(&mut free, &orders)) * single;
    match operation {
        Operation::AllReduce => rate * n as f64 / (2 * (n - 1)) as f64,
        _ => rate,
    }
}

/// The most cycles of `orders` that can be taken out of `free`.
fn most(free: &mut [Vec<u32>], orders: &[Vec<usize>]) -> u32 {
    let Some((first, others)) = orders.split_first() else { return 0 };
    let mut best = most(free, others);
    let arcs: Vec<(usize, usize)> = (0..first.len()).map(|i| (first[i], first[(i + 1) % first.len()])).collect();
    if arcs.iter().all(|&(a, b)| free[a][b] > 0) {
        arcs.iter().for_each(|&(a, b)| free[a][b] -= 1);
        best = best.max(1 + most(free, orders));
        arcs.iter().for_each(|&(a, b)| free[a][b] += 1);
    }
    best
}

/// Carries out the plan on pretend PEs. Helpers only forward: their own memory stays as it is.
fn carry_out(topology: &Topology, operation: Operation, job: &[usize]) -> Result<()> {
    let team = Team::sim(topology.gpus().len(), Options::default())?;
    // As if the data were large: small data would not take trees.
    let trees = Collectives::of(&team, topology, job, Tuning { direct: 0, ..Tuning::default() })?;
    let (from, to): (Symmetric<u32>, Symmetric<u32>) = (team.alloc(LEN)?, team.alloc(LEN)?);
    let own = |pe: usize| (0..LEN as u32).map(move |i| (i ^ pe as u32).wrapping_mul(2_654_435_761));
    for pe in 0..team.size() {
        team.write(pe, &from, &own(pe).collect::<Vec<_>>())?;
        team.write(pe, &to, &vec![u32::MAX; LEN])?;
    }
    match operation {
        Operation::AllReduce => trees.all_reduce(Combine::Sum, &from, &to)?,
        _ => trees.broadcast(job[0], &from, &to)?,
    }
    team.synchronize()?;
    let mut expected: Vec<u32> = own(job[0]).collect();
    if operation == Operation::AllReduce {
        for &pe in &job[1..] {
            expected.iter_mut().zip(own(pe)).for_each(|(sum, number)| *sum = sum.wrapping_add(number));
        }
    }
    for pe in 0..team.size() {
        let got = team.read(pe, &to)?;
        if job.contains(&pe) {
            assert!(got == expected, "{} of {job:?}: PE {pe} has something else", operation.name());
        } else {
            assert!(got.iter().all(|&x| x == u32::MAX), "{} of {job:?} wrote to helper {pe}", operation.name());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// GPUs 0 and 1, and 0 and 3, with the first four and with all eight.
    #[test]
    fn idle_links_are_used() {
        for (preset, job, rings, trees) in [
            ("dgx1-v100-4", [0, 1], 20.0, 80.0),
            ("dgx1-v100-4", [0, 3], 40.0, 80.0),
            ("dgx1-v100", [0, 1], 20.0, 120.0),
            ("dgx1-v100", [0, 3], 40.0, 120.0),
        ] {
            let topology = Topology::preset(preset).unwrap();
            for operation in [Operation::Broadcast, Operation::AllReduce] {
                assert_eq!(ring(&topology, operation, &job), rings, "{preset} {job:?}");
                let plan = best(&topology, operation, &job).unwrap();
                assert_eq!((plan.gbs(), plan.is_best()), (trees, true), "{} {preset} {job:?}", operation.name());
                let at_a_gigabyte = predicted(&topology, &plan).unwrap();
                assert!(at_a_gigabyte > 0.95 * trees && at_a_gigabyte <= trees, "{at_a_gigabyte}");
            }
        }
    }

    #[test]
    fn rings_are_counted() {
        let topology = Topology::preset("dgx1-v100").unwrap();
        // 0 - 1 and 0 - 2 are single links, 1 - 2 is double: one ring each way round, and the second link of 1 - 2 is idle.
        assert_eq!(ring(&topology, Operation::Broadcast, &[0, 1, 2]), 40.0);
        assert_eq!(ring(&topology, Operation::AllReduce, &[0, 1, 2]), 30.0);
        // 0 and 6 are not joined.
        assert_eq!(ring(&topology, Operation::Broadcast, &[0, 6]), 0.0);
    }

    /// With every byte checked.
    #[test]
    fn plans_are_carried_out() {
        main().unwrap();
    }
}
