//! Plans that are found in rounds, where the exact ones take too long: in each round every root sends along the cheapest ways, and links
//! that many of them take become dearer. Every round is a plan with all that came before it; the best of them is kept.

use super::budget::Clock;
use super::net::Net;
use super::{check, Operation, Request, Route, Step, Tree};
use crate::{Error, Ratio, Result};
use std::collections::BTreeMap;
use tandem_fabric_topology::{DeviceKind, Topology};

/// Trees or sets of paths at most: with many, plans are more than their tables are worth.
pub(super) const MOST: usize = 1024;
/// Trees or sets of paths at most where a plan is improved, which has few.
pub(super) const FEW: usize = 64;
/// Rounds at most.
const MOST_ROUNDS: usize = 256;
/// By how much a round raises the price of the link with the greatest load.
const DEARER: f64 = 0.3;

/// Ways from one place to all others.
type Ways = Vec<Vec<usize>>;

/// A root with its ways in each direction, so that what it collects and what it spreads stay together; and how often they were taken.
type Taken = BTreeMap<(usize, Vec<Ways>), i128>;

/// What one round makes of one root.
#[derive(Clone, Copy)]
enum Shape {
    /// Trees in which GPUs of the job pass on what they get.
    Tree,
    /// A path to each target.
    Paths,
}

/// The best steps of all rounds, of `most` trees or sets of paths, and their rate; nothing moves where the GPUs are not joined. The first round is always made.
pub(super) fn rounds(
    topology: &Topology,
    request: &Request,
    net: &Net,
    clock: &Clock,
    most: usize,
) -> Result<(Vec<Step>, Ratio)> {
    let (_, _, root) = request.devices(topology)?;
    let hosts: Vec<usize> = (0..net.n).filter(|&u| topology.devices()[net.device[u]].kind == DeviceKind::Cpu).collect();
    let root: Vec<usize> = (0..net.n).filter(|&u| net.device[u] == root).collect();
    let each = |list: &[usize]| list.iter().map(|&u| vec![u]).collect::<Vec<_>>();
    // What starts together is one place.
    let (sources, shape) = match request.operation {
        Operation::Broadcast | Operation::Reduce => (each(&root), Shape::Tree),
        Operation::AllGather | Operation::ReduceScatter | Operation::AllReduce => (each(&net.job), Shape::Tree),
        Operation::AllToAll => (each(&net.job), Shape::Paths),
        Operation::Send => (each(&net.job[..1]), Shape::Paths),
        Operation::Upload | Operation::Download => (vec![hosts], Shape::Paths),
    };
    let directions: &[bool] = match request.operation {
        Operation::AllReduce => &[true, false],
        operation if operation.is_reversed() => &[true],
        _ => &[false],
    };
    let nets = [net.clone(), net.reversed()];
    let mut prices: BTreeMap<(usize, usize), f64> = net.edges().map(|(u, v, c)| ((u, v), 1.0 / c as f64)).collect();
    let mut taken = Taken::new();
    let mut best = (Vec::new(), Ratio::ZERO);
    for round in 0..MOST_ROUNDS.min(most.div_ceil(sources.len())) {
        let mut loads: BTreeMap<(usize, usize), f64> = BTreeMap::new();
        for from in &sources {
            let mut all = Vec::with_capacity(directions.len());
            for &back in directions {
                let edge = |u: usize, v: usize| if back { (v, u) } else { (u, v) };
                let price = |u, v| prices.get(&edge(u, v)).copied().unwrap_or(f64::INFINITY);
                let Some(ways) = cheapest(&nets[usize::from(back)], from, shape, price) else { return Ok(best) };
                for hop in ways.iter().flat_map(|way| way.windows(2)) {
                    let edge = edge(hop[0], hop[1]);
                    *loads.entry(edge).or_default() += 1.0 / net.at(edge.0, edge.1) as f64;
                }
                all.push(ways);
                if clock.is_cancelled() {
                    return Err(Error::Stopped);
                }
            }
            *taken.entry((from.first().copied().unwrap_or(0), all)).or_default() += 1;
        }
        let all = (round as i128 + 1) * sources.len() as i128;
        let steps = directions.iter().enumerate().map(|(i, &back)| step(net, &taken, (i, back), all, shape));
        let Some(steps) = steps.collect::<Option<Vec<_>>>() else { return Ok(best) };
        let Some(rate) = rate(topology, request, &steps) else { return Ok(best) };
        if rate > best.1 {
            best = (steps, rate);
        }
        let edges = (net.n * net.n * sources.len() * directions.len()) as u64;
        if clock.take(edges).is_err() {
            break;
        }
        let worst = loads.values().copied().fold(f64::MIN_POSITIVE, f64::max);
        for (edge, load) in loads {
            prices.entry(edge).and_modify(|p| *p *= 1.0 + DEARER * load / worst);
        }
    }
    Ok(best)
}

/// The greatest rate at which no link carries more than it can.
fn rate(topology: &Topology, request: &Request, steps: &[Step]) -> Option<Ratio> {
    let loads = check::loads(topology, request, Ratio::ONE, steps).ok()?;
    let rates = loads.iter().map(|l| Ratio::whole(l.capacity).over(l.rate));
    rates.collect::<Option<Vec<_>>>()?.into_iter().min()
}

/// The ways that were taken in one direction as a step; `all` is how often anything was taken.
fn step(net: &Net, taken: &Taken, (direction, back): (usize, bool), all: i128, shape: Shape) -> Option<Step> {
    let path = |way: &Vec<usize>| {
        let mut path: Vec<usize> = way.iter().map(|&u| net.device[u]).collect();
        if back {
            path.reverse();
        }
        path
    };
    match shape {
        Shape::Tree => {
            let tree = |((root, ways), times): (&(usize, Vec<Ways>), &i128)| {
                let mut paths: Vec<_> = ways[direction].iter().map(path).collect();
                if back {
                    paths.reverse();
                }
                Some(Tree { root: net.device[*root], share: Ratio::new(*times, all)?, paths })
            };
            let trees = taken.iter().map(tree).collect::<Option<_>>()?;
            Some(if back { Step::Collect(trees) } else { Step::Spread(trees) })
        }
        Shape::Paths => {
            let mut routes: BTreeMap<Vec<usize>, i128> = BTreeMap::new();
            let mut each = 0;
            for ((_, ways), times) in taken {
                each = ways[direction].len() as i128;
                ways[direction].iter().for_each(|way| *routes.entry(path(way)).or_default() += times);
            }
            let route = |(path, times)| Some(Route { share: Ratio::new(times, all * each)?, path });
            Some(Step::Send(routes.into_iter().map(route).collect::<Option<_>>()?))
        }
    }
}

/// A way to every GPU of the job that is not in `from`, those nearest first (Dijkstra; in a tree, what has reached a GPU starts there anew).
/// `None` where one cannot be reached.
fn cheapest(net: &Net, from: &[usize], shape: Shape, price: impl Fn(usize, usize) -> f64) -> Option<Vec<Vec<usize>>> {
    let mut far = vec![(f64::INFINITY, usize::MAX); net.n];
    let mut before = vec![None; net.n];
    let mut is_done = vec![false; net.n];
    from.iter().for_each(|&u| far[u] = (0.0, 0));
    let mut ways = Vec::new();
    loop {
        let open = (0..net.n).filter(|&u| !is_done[u] && far[u].0.is_finite());
        let Some(u) = open.min_by(|&a, &b| far[a].0.total_cmp(&far[b].0).then(far[a].1.cmp(&far[b].1))) else { break };
        is_done[u] = true;
        if net.is_job(u) && !from.contains(&u) {
            let mut way = vec![u];
            while let Some(w) = before[way[way.len() - 1]] {
                way.push(w);
                if matches!(shape, Shape::Tree) && net.is_job(w) {
                    break;
                }
            }
            way.reverse();
            ways.push(way);
            if matches!(shape, Shape::Tree) {
                far[u] = (0.0, 0);
            }
        }
        for v in (0..net.n).filter(|&v| net.at(u, v) > 0 && !is_done[v]) {
            let new = (far[u].0 + price(u, v), far[u].1 + 1);
            if new < far[v] {
                (far[v], before[v]) = (new, Some(u));
            }
        }
    }
    let targets = net.job.iter().filter(|v| !from.contains(v)).count();
    (ways.len() == targets).then_some(ways)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Budget;

    /// More rounds give no slower plan: a round may spoil what those before it have, and the best of all is kept.
    #[test]
    fn more_rounds_are_no_slower() {
        for name in ["dgx1-v100", "hgx-h200", "h100-mesh4", "a100-mesh4", "ring5"] {
            let topology = Topology::preset(name).unwrap();
            let gpus: Vec<usize> = (0..topology.gpus().len()).collect();
            for operation in [Operation::Broadcast, Operation::AllGather, Operation::AllReduce, Operation::AllToAll] {
                let request = Request::new(operation, &gpus);
                let (job, ..) = request.devices(&topology).unwrap();
                let clock = Budget::default().begin();
                let net = Net::new(&topology, &job, &[], true, clock.clone());
                // As many as give one round, two, and so on.
                let sources = if operation == Operation::Broadcast { 1 } else { gpus.len() };
                let rate = |count: usize| rounds(&topology, &request, &net, &clock, count * sources).unwrap().1;
                let rates: Vec<Ratio> = (1..=12).map(rate).collect();
                assert!(!rates[0].is_zero(), "{name}, {}", operation.name());
                assert!(rates.windows(2).all(|w| w[0] <= w[1]), "{name}, {}: {rates:?}", operation.name());
            }
        }
    }
}
