//! Verifies plans, independently of how they were made.

use super::{Load, Operation, Plan, Request, Step, Tree, Witness};
use crate::{Error, Ratio, Result};
use std::collections::{BTreeMap, BTreeSet};
use tandem_fabric_topology::{DeviceKind, Topology};

fn wrong<T>(message: impl Into<String>) -> Result<T> {
    Err(Error::WrongPlan(message.into()))
}

fn sized<T>(value: Option<T>) -> Result<T> {
    value.ok_or_else(|| Error::WrongPlan("fractions outgrow 128 bits".into()))
}

/// What every link may carry each way for this request, in MB/s, by its ends.
fn capacities(topology: &Topology, request: &Request) -> Result<BTreeMap<(usize, usize), i64>> {
    let (job, helpers, _) = request.devices(topology)?;
    let pcie = request.may_use_pcie();
    let allowed = |d: usize| match topology.devices()[d].kind {
        DeviceKind::Gpu => job.contains(&d) || helpers.contains(&d),
        DeviceKind::NvSwitch | DeviceKind::Memory => true,
        DeviceKind::PcieSwitch | DeviceKind::Cpu => pcie,
    };
    let mut out = BTreeMap::new();
    for link in topology.links() {
        if allowed(link.a) && allowed(link.b) && (pcie || link.kind.is_direct()) {
            *out.entry((link.a, link.b)).or_insert(0) += link.forth.mbs();
            *out.entry((link.b, link.a)).or_insert(0) += link.back.mbs();
        }
    }
    Ok(out)
}

/// How many times the data of the operation's size moves in a [`Step::Send`].
fn moved(request: &Request) -> i64 {
    if request.operation == Operation::AllToAll {
        request.gpus.len() as i64 - 1
    } else {
        1
    }
}

/// What each link carries if the steps run at `rate`.
pub(crate) fn loads(topology: &Topology, request: &Request, rate: Ratio, steps: &[Step]) -> Result<Vec<Load>> {
    let capacity = capacities(topology, request)?;
    let mut shares: BTreeMap<(usize, usize), Ratio> = BTreeMap::new();
    let mut add = |path: &[usize], share: Ratio| -> Result<()> {
        for hop in path.windows(2) {
            let sum = shares.entry((hop[0], hop[1])).or_insert(Ratio::ZERO);
            *sum = sized(sum.plus(share))?;
        }
        Ok(())
    };
    for step in steps {
        match step {
            Step::Collect(trees) | Step::Spread(trees) => {
                for tree in trees {
                    tree.paths.iter().try_for_each(|path| add(path, tree.share))?;
                }
            }
            Step::Send(routes) => {
                for route in routes {
                    add(&route.path, sized(route.share.times(Ratio::whole(moved(request))))?)?;
                }
            }
        }
    }
    let mut out = Vec::with_capacity(shares.len());
    for ((from, to), share) in shares {
        let Some(&capacity) = capacity.get(&(from, to)) else {
            return wrong(format!("there is no link from {from} to {to} that it may use"));
        };
        out.push(Load { from, to, rate: sized(rate.times(share))?, capacity });
    }
    Ok(out)
}

/// The rate that a witness allows at most, in MB/s; an error where it proves nothing.
pub fn bound(topology: &Topology, request: &Request, witness: &Witness) -> Result<Ratio> {
    let (job, _, _) = request.devices(topology)?;
    let capacity = capacities(topology, request)?;
    match (request.operation, witness) {
        (Operation::AllReduce, Witness::Parts(parts)) => bound_of_parts(&capacity, &job, parts),
        (Operation::AllToAll, Witness::Prices(prices)) => {
            bound_of_prices(&capacity, topology.devices().len(), &job, prices)
        }
        (_, Witness::Cut(inside)) => bound_of_cut(topology, request, &capacity, inside),
        _ => wrong("the bound is not of the operation's kind"),
    }
}

/// What all links into a set of devices carry together, in MB/s.
fn entering(capacity: &BTreeMap<(usize, usize), i64>, set: &BTreeSet<usize>) -> i64 {
    capacity.iter().filter(|((a, b), _)| !set.contains(a) && set.contains(b)).map(|(_, c)| c).sum()
}

/// What all links out of a set of devices carry together, in MB/s.
fn leaving(capacity: &BTreeMap<(usize, usize), i64>, set: &BTreeSet<usize>) -> i64 {
    capacity.iter().filter(|((a, b), _)| set.contains(a) && !set.contains(b)).map(|(_, c)| c).sum()
}

/// The bound on an allreduce by [`Witness::Parts`], sets of devices that split the job.
fn bound_of_parts(capacity: &BTreeMap<(usize, usize), i64>, job: &[usize], parts: &[Vec<usize>]) -> Result<Ratio> {
    // A GPU's data must reach all others: with t sets, t - 1 messages bring it together and t - 1 spread the sum.
    let sets: Vec<BTreeSet<usize>> = parts.iter().map(|p| p.iter().copied().collect()).collect();
    let holders = |d: &usize| sets.iter().filter(|s| s.contains(d)).count();
    if sets.len() < 2 || job.iter().any(|d| holders(d) != 1) || sets.iter().any(|s| !job.iter().any(|d| s.contains(d)))
    {
        return wrong("the sets of the bound do not split the job");
    }
    let all: i64 = sets.iter().map(|set| entering(capacity, set)).sum();
    sized(Ratio::new(all.into(), 2 * (sets.len() as i128 - 1)))
}

/// The bound on an all-to-all by [`Witness::Prices`], the dual of its linear program.
fn bound_of_prices(
    capacity: &BTreeMap<(usize, usize), i64>,
    devices: usize,
    job: &[usize],
    prices: &[(usize, usize, Ratio)],
) -> Result<Ratio> {
    let price: BTreeMap<(usize, usize), Ratio> = prices.iter().map(|&(a, b, p)| ((a, b), p)).collect();
    if prices.iter().any(|p| p.2 < Ratio::ZERO) {
        return wrong("a price of the bound is negative");
    }
    let mut all = Ratio::ZERO;
    for (edge, c) in capacity {
        let p = price.get(edge).copied().unwrap_or(Ratio::ZERO);
        all = sized(all.plus(sized(p.times(Ratio::whole(*c)))?))?;
    }
    let mut cost = Ratio::ZERO;
    for &s in job {
        let far = sized(distances(capacity, &price, devices, s))?;
        for t in job {
            let Some(d) = far[*t] else { return wrong("the prices do not cover every pair") };
            cost = sized(cost.plus(d))?;
        }
    }
    sized(sized(all.over(cost))?.times(Ratio::whole(job.len() as i64)))
}

/// The bound on any operation by [`Witness::Cut`], the devices on one side of a cut.
fn bound_of_cut(
    topology: &Topology,
    request: &Request,
    capacity: &BTreeMap<(usize, usize), i64>,
    inside: &[usize],
) -> Result<Ratio> {
    use Operation::{AllGather, AllToAll, Broadcast, Download, Reduce, ReduceScatter, Send, Upload};
    let (job, _, root) = request.devices(topology)?;
    let n = job.len() as i64;
    let set: BTreeSet<usize> = inside.iter().copied().collect();
    let k = job.iter().filter(|d| set.contains(d)).count() as i64;
    let carried = if request.operation.is_reversed() { entering(capacity, &set) } else { leaving(capacity, &set) };
    let carried = Ratio::whole(carried);
    let is_split = 0 < k && k < n;
    let is_sound = match request.operation {
        Broadcast | Reduce => set.contains(&root) && k < n,
        Send => set.contains(&job[0]) && !set.contains(&job[1]),
        Upload | Download => {
            let is_cpu = |d: &usize| topology.devices()[*d].kind == DeviceKind::Cpu;
            (0..topology.devices().len()).filter(is_cpu).all(|d| set.contains(&d)) && k < n
        }
        _ => is_split,
    };
    if !is_sound {
        return wrong("the cut of the bound does not part the job");
    }
    let (times, over) = match request.operation {
        AllGather | ReduceScatter => (n, k),
        Upload | Download => (n, n - k),
        AllToAll => (n, k * (n - k)),
        _ => (1, 1),
    };
    sized(carried.times(sized(Ratio::new(times.into(), over.into()))?))
}

/// The least price of a way from `s` to every device (Bellman and Ford).
fn distances(
    capacity: &BTreeMap<(usize, usize), i64>,
    price: &BTreeMap<(usize, usize), Ratio>,
    devices: usize,
    s: usize,
) -> Option<Vec<Option<Ratio>>> {
    let mut far = vec![None; devices];
    far[s] = Some(Ratio::ZERO);
    for _ in 0..devices {
        let mut is_changed = false;
        for edge in capacity.keys() {
            let Some(d) = far[edge.0] else { continue };
            let new = price.get(edge).copied().unwrap_or(Ratio::ZERO).plus(d)?;
            if far[edge.1].is_none_or(|old| new < old) {
                far[edge.1] = Some(new);
                is_changed = true;
            }
        }
        if !is_changed {
            break;
        }
    }
    Some(far)
}

/// Verifies a plan: every tree spans the job, every route joins what it should over links that exist and relays that are allowed, the
/// shares are right and add up to 1, no link carries more than it can, and the bound holds.
pub fn check(topology: &Topology, plan: &Plan) -> Result<()> {
    let request = &plan.request;
    let (job, _, root) = request.devices(topology)?;
    if bound(topology, request, &plan.witness)? != plan.bound {
        return wrong("the bound is not what its witness says");
    }
    if plan.rate > plan.bound {
        return wrong(format!("the rate {} is above the bound {}", plan.rate, plan.bound));
    }
    let loads = loads(topology, request, plan.rate, &plan.steps)?;
    if let Some(l) = loads.iter().find(|l| l.rate > Ratio::whole(l.capacity)) {
        return wrong(format!("{} to {} would carry {} of {} MB/s", l.from, l.to, l.rate, l.capacity));
    }
    if loads != plan.loads {
        return wrong("the loads are not those of its steps");
    }
    if plan.rate.is_zero() {
        return Ok(());
    }
    let even = sized(Ratio::new(1, job.len() as i128))?;
    match (request.operation, plan.steps.as_slice()) {
        (Operation::Broadcast, [Step::Spread(trees)]) | (Operation::Reduce, [Step::Collect(trees)]) => {
            spans(&job, trees, request.operation.is_reversed())?;
            expect(&by_root(trees)?, &BTreeMap::from([(root, Ratio::ONE)]))
        }
        (Operation::AllGather, [Step::Spread(trees)]) | (Operation::ReduceScatter, [Step::Collect(trees)]) => {
            spans(&job, trees, request.operation.is_reversed())?;
            expect(&by_root(trees)?, &job.iter().map(|&d| (d, even)).collect())
        }
        (Operation::AllReduce, [Step::Collect(first), Step::Spread(second)]) => {
            spans(&job, first, true)?;
            spans(&job, second, false)?;
            let shares = by_root(first)?;
            expect(&shares, &by_root(second)?)?;
            match shares.values().try_fold(Ratio::ZERO, |sum, s| sum.plus(*s)) {
                Some(Ratio::ONE) => Ok(()),
                _ => wrong("the shares do not add up to 1"),
            }
        }
        (_, [Step::Send(routes)]) => {
            let mut shares: BTreeMap<(usize, usize), Ratio> = BTreeMap::new();
            // Host memory is one place, whatever node it is on.
            let place = |d: usize| if topology.devices()[d].kind == DeviceKind::Cpu { usize::MAX } else { d };
            for route in routes {
                let (Some(&from), Some(&to)) = (route.path.first(), route.path.last()) else {
                    return wrong("a route is empty");
                };
                if route.path.iter().collect::<BTreeSet<_>>().len() != route.path.len() || route.share <= Ratio::ZERO {
                    return wrong("a route has a loop or no share");
                }
                let sum = shares.entry((place(from), place(to))).or_insert(Ratio::ZERO);
                *sum = sized(sum.plus(route.share))?;
            }
            let host = usize::MAX;
            let pairs: Vec<(usize, usize)> = match request.operation {
                Operation::Send => vec![(job[0], job[1])],
                Operation::Upload => job.iter().map(|&d| (host, d)).collect(),
                Operation::Download => job.iter().map(|&d| (d, host)).collect(),
                Operation::AllToAll => {
                    job.iter().flat_map(|&a| job.iter().filter(move |&&b| b != a).map(move |&b| (a, b))).collect()
                }
                _ => return wrong("these steps are not of the operation"),
            };
            let each = sized(Ratio::new(1, pairs.len() as i128))?;
            expect(&shares, &pairs.into_iter().map(|p| (p, each)).collect())
        }
        _ => wrong("these steps are not of the operation"),
    }
}

fn expect<K: Ord + std::fmt::Debug>(found: &BTreeMap<K, Ratio>, expected: &BTreeMap<K, Ratio>) -> Result<()> {
    if found != expected {
        return wrong(format!("expected the shares {expected:?}, found {found:?}"));
    }
    Ok(())
}

fn by_root(trees: &[Tree]) -> Result<BTreeMap<usize, Ratio>> {
    let mut out = BTreeMap::new();
    for tree in trees {
        let sum = out.entry(tree.root).or_insert(Ratio::ZERO);
        *sum = sized(sum.plus(tree.share))?;
    }
    Ok(out)
}

/// Every tree holds every GPU of the job, each joined once, parents first (last where data is collected); relays are not of the job.
fn spans(job: &[usize], trees: &[Tree], is_collected: bool) -> Result<()> {
    for tree in trees {
        if !job.contains(&tree.root) || tree.share <= Ratio::ZERO {
            return wrong("a tree has no root in the job or no share");
        }
        let mut joined = BTreeSet::from([tree.root]);
        let paths: Box<dyn Iterator<Item = &Vec<usize>>> =
            if is_collected { Box::new(tree.paths.iter().rev()) } else { Box::new(tree.paths.iter()) };
        for path in paths {
            let [first, relays @ .., last] = path.as_slice() else { return wrong("a path has fewer than two devices") };
            let (parent, child) = if is_collected { (last, first) } else { (first, last) };
            if !joined.contains(parent) || !joined.insert(*child) {
                return wrong(format!("the path {path:?} does not join one more GPU to its tree"));
            }
            if relays.iter().any(|r| job.contains(r)) || relays.iter().collect::<BTreeSet<_>>().len() != relays.len() {
                return wrong(format!("the path {path:?} passes a GPU of the job or a device twice"));
            }
        }
        if joined != job.iter().copied().collect() {
            return wrong("a tree does not span the job");
        }
    }
    Ok(())
}
