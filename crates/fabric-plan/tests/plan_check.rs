//! The checker of plans refuses every kind of damage: one plan by hand for each rule, and every kind of plan damaged in every place.

mod support;

use std::collections::BTreeMap;
use support::{graph, planned};
use tandem_fabric_plan::check::bound;
use tandem_fabric_plan::{check, Gain, Load, Operation, Plan, Ratio, Request, Route, Step, Tree, Witness};
use tandem_fabric_topology::{Device, DeviceKind, Link, LinkKind, Rate, Topology};

const GB: i64 = 1000;

fn r(num: i128, den: i128) -> Ratio {
    Ratio::new(num, den).unwrap()
}

/// The loads of steps at a rate, where there is a link; 0 of 0 where there is none.
fn reload(t: &Topology, plan: &mut Plan) {
    let mut sums: BTreeMap<(usize, usize), Ratio> = BTreeMap::new();
    let mut add = |path: &[usize], share: Ratio| {
        for hop in path.windows(2) {
            let sum = sums.entry((hop[0], hop[1])).or_insert(Ratio::ZERO);
            *sum = sum.plus(share).unwrap();
        }
    };
    let times = if plan.request.operation == Operation::AllToAll { plan.request.gpus.len() as i64 - 1 } else { 1 };
    for step in &plan.steps {
        match step {
            Step::Collect(trees) | Step::Spread(trees) => {
                trees.iter().for_each(|t| t.paths.iter().for_each(|p| add(p, t.share)));
            }
            Step::Send(routes) => {
                routes.iter().for_each(|r| add(&r.path, r.share.times(Ratio::whole(times)).unwrap()));
            }
        }
    }
    let pcie = plan.request.pcie || plan.request.operation.uses_host();
    let capacity = |from: usize, to: usize| -> i64 {
        let usable = t.links().iter().filter(|l| pcie || l.kind == LinkKind::NvLink);
        let one = |l: &Link| match (l.a, l.b) {
            ends if ends == (from, to) => l.forth.mbs(),
            ends if ends == (to, from) => l.back.mbs(),
            _ => 0,
        };
        usable.map(one).sum()
    };
    let load = |((from, to), share): ((usize, usize), Ratio)| Load {
        from,
        to,
        rate: share.times(plan.rate).unwrap(),
        capacity: capacity(from, to),
    };
    plan.loads = sums.into_iter().map(load).collect();
}

/// A plan that is as it says, but for what is wrong with its steps.
fn made(t: &Topology, request: Request, rate: i64, witness: Witness, steps: Vec<Step>) -> Plan {
    let bound = bound(t, &request, &witness).unwrap();
    let rate = Ratio::whole(rate * GB);
    let gain = Gain::NotAsked;
    let mut plan = Plan { request, rate, bound, witness, steps, loads: Vec::new(), gain, is_cut_short: false };
    reload(t, &mut plan);
    plan
}

fn tree(root: usize, share: Ratio, paths: &[&[usize]]) -> Tree {
    Tree { root, share, paths: paths.iter().map(|p| p.to_vec()).collect() }
}

fn route(share: Ratio, path: &[usize]) -> Route {
    Route { share, path: path.to_vec() }
}

/// Five GPUs, each joined to each by 10 GB/s.
fn mesh() -> Topology {
    graph(5, &(0..5).flat_map(|a| (a + 1..5).map(move |b| (a, b, 10, 10))).collect::<Vec<_>>())
}

#[track_caller]
fn refused(t: &Topology, plan: &Plan, part: &str) {
    let error = check(t, plan).unwrap_err().to_string();
    assert!(error.contains(part) && !error.contains('\n'), "expected {part:?} in {error:?}");
}

#[test]
fn no_link_carries_more_than_it_can() {
    let t = mesh();
    let request = || Request::new(Operation::Broadcast, &[0, 1, 2]);
    let plan = |rate| {
        let trees = vec![tree(0, r(1, 2), &[&[0, 1], &[1, 2]]), tree(0, r(1, 2), &[&[0, 1], &[0, 2]])];
        made(&t, request(), rate, Witness::Cut(vec![0]), vec![Step::Spread(trees)])
    };
    check(&t, &plan(10)).unwrap();
    refused(&t, &plan(11), "0 to 1 would carry 11000 of 10000 MB/s");
    let send = |rate| {
        let request = Request::new(Operation::Send, &[0, 1]).with_helpers(&[2]);
        let routes = vec![route(r(1, 2), &[0, 1]), route(r(1, 2), &[0, 2, 1])];
        made(&t, request, rate, Witness::Cut(vec![0]), vec![Step::Send(routes)])
    };
    check(&t, &send(20)).unwrap();
    refused(&t, &send(21), "the rate 21000 is above the bound 20000");
}

#[test]
fn trees_join_parents_first() {
    let t = mesh();
    let job = [0, 1, 2];
    let spread = |paths: &[&[usize]], helpers: &[usize]| {
        let request = Request::new(Operation::Broadcast, &job).with_helpers(helpers);
        made(&t, request, 1, Witness::Cut(vec![0]), vec![Step::Spread(vec![tree(0, Ratio::ONE, paths)])])
    };
    let collect = |paths: &[&[usize]], helpers: &[usize]| {
        let request = Request::new(Operation::Reduce, &job).with_helpers(helpers);
        made(&t, request, 1, Witness::Cut(vec![0]), vec![Step::Collect(vec![tree(0, Ratio::ONE, paths)])])
    };
    check(&t, &spread(&[&[0, 1], &[1, 2]], &[])).unwrap();
    check(&t, &collect(&[&[2, 1], &[1, 0]], &[])).unwrap();
    check(&t, &spread(&[&[0, 3, 4, 1], &[1, 3, 2]], &[3, 4])).unwrap();
    check(&t, &collect(&[&[2, 3, 1], &[1, 4, 3, 0]], &[3, 4])).unwrap();
    // The parent is not joined, or only afterwards.
    refused(&t, &spread(&[&[1, 2], &[0, 1]], &[]), "does not join one more");
    refused(&t, &collect(&[&[1, 0], &[2, 1]], &[]), "does not join one more");
    refused(&t, &spread(&[&[0, 1], &[3, 2]], &[3]), "does not join one more");
    refused(&t, &collect(&[&[2, 3], &[1, 0]], &[3]), "does not join one more");
    // Joined twice, and not at all.
    refused(&t, &spread(&[&[0, 1], &[0, 2], &[1, 2]], &[]), "does not join one more");
    refused(&t, &spread(&[&[0, 1], &[1, 0]], &[]), "does not join one more");
    refused(&t, &spread(&[&[0, 1]], &[]), "does not span the job");
    refused(&t, &collect(&[&[1, 0]], &[]), "does not span the job");
    refused(&t, &spread(&[&[0, 1], &[0, 3]], &[3]), "does not span the job");
    // A relay of the job; a relay twice.
    refused(&t, &spread(&[&[0, 1], &[0, 1, 2]], &[]), "passes a GPU of the job");
    refused(&t, &spread(&[&[0, 2, 1], &[0, 2]], &[]), "passes a GPU of the job");
    refused(&t, &collect(&[&[2, 1, 0], &[1, 0]], &[]), "passes a GPU of the job");
    refused(&t, &spread(&[&[0, 3, 4, 3, 1], &[0, 2]], &[3, 4]), "or a device twice");
    refused(&t, &collect(&[&[2, 0], &[1, 3, 4, 3, 0]], &[3, 4]), "or a device twice");
    // Too short; over a link that is not there; over a helper that was not named.
    refused(&t, &spread(&[&[0, 1], &[0, 2], &[0]], &[]), "fewer than two");
    refused(&t, &spread(&[&[0, 1], &[0, 2], &[]], &[]), "fewer than two");
    refused(&t, &spread(&[&[0, 3, 1], &[0, 2]], &[4]), "there is no link from 0 to 3");
}

#[test]
fn roots_are_of_the_job_and_have_their_shares() {
    let t = mesh();
    let all = [0, 1, 2];
    let star = |root: usize, share| {
        let others: Vec<Vec<usize>> = all.iter().filter(|&&v| v != root).map(|&v| vec![root, v]).collect();
        Tree { root, share, paths: others }
    };
    let back = |root: usize, share| {
        let paths = star(root, share).paths.into_iter().rev().map(|p| p.into_iter().rev().collect()).collect();
        Tree { root, share, paths }
    };
    let plan = |operation, steps| {
        let witness = match operation {
            Operation::AllReduce => Witness::Parts(vec![vec![0], vec![1], vec![2]]),
            _ => Witness::Cut(vec![0]),
        };
        made(&t, Request::new(operation, &all), 1, witness, steps)
    };
    let third = r(1, 3);
    let spread = |roots: &[(usize, Ratio)]| Step::Spread(roots.iter().map(|&(v, s)| star(v, s)).collect());
    let collect = |roots: &[(usize, Ratio)]| Step::Collect(roots.iter().map(|&(v, s)| back(v, s)).collect());
    let even = [(0, third), (1, third), (2, third)];
    let uneven = [(0, r(1, 2)), (1, r(1, 4)), (2, r(1, 4))];
    let half = [(0, r(1, 4)), (1, r(1, 4))];
    let double = [(0, Ratio::ONE), (1, Ratio::ONE)];
    use Operation::{AllGather, AllReduce, Broadcast, Reduce, ReduceScatter};
    check(&t, &plan(AllGather, vec![spread(&even)])).unwrap();
    check(&t, &plan(ReduceScatter, vec![collect(&even)])).unwrap();
    check(&t, &plan(AllReduce, vec![collect(&uneven), spread(&uneven)])).unwrap();
    check(&t, &plan(Broadcast, vec![spread(&[(0, r(1, 2)), (0, r(1, 2))])])).unwrap();
    for (operation, steps, part) in [
        (AllGather, vec![spread(&uneven)], "expected the shares"),
        (ReduceScatter, vec![collect(&uneven)], "expected the shares"),
        (AllGather, vec![spread(&even[..2])], "expected the shares"),
        (Broadcast, vec![spread(&[(0, r(1, 2))])], "expected the shares"),
        (Broadcast, vec![spread(&[(1, Ratio::ONE)])], "expected the shares"),
        (Reduce, vec![collect(&[(1, Ratio::ONE)])], "expected the shares"),
        (Reduce, vec![collect(&[(0, r(1, 2))])], "expected the shares"),
        // Shares that sum to a half or to two, roots that differ from those of the other step.
        (AllReduce, vec![collect(&half), spread(&half)], "do not add up to 1"),
        (AllReduce, vec![collect(&double), spread(&double)], "do not add up to 1"),
        (AllReduce, vec![collect(&even), spread(&uneven)], "expected the shares"),
        (AllReduce, vec![collect(&[(0, Ratio::ONE)]), spread(&[(1, Ratio::ONE)])], "expected the shares"),
        // Steps of another kind, in another order, or too few.
        (AllReduce, vec![spread(&even), collect(&even)], "not of the operation"),
        (AllReduce, vec![collect(&even)], "not of the operation"),
        (AllReduce, vec![collect(&even), spread(&even), spread(&even)], "not of the operation"),
        (Broadcast, vec![], "not of the operation"),
        (Reduce, vec![spread(&[(0, Ratio::ONE)])], "not of the operation"),
        (AllGather, vec![collect(&even)], "not of the operation"),
        (AllGather, vec![Step::Send(Vec::new())], "not of the operation"),
    ] {
        refused(&t, &plan(operation, steps), part);
    }
    let zero = plan(Broadcast, vec![spread(&[(0, Ratio::ONE), (0, Ratio::ZERO)])]);
    refused(&t, &zero, "no root in the job or no share");
    let negative = plan(Broadcast, vec![spread(&[(0, r(3, 2)), (0, r(-1, 2))])]);
    refused(&t, &negative, "no root in the job or no share");
    let helper = made(
        &t,
        Request::new(Broadcast, &all).with_helpers(&[3]),
        1,
        Witness::Cut(vec![0]),
        vec![Step::Spread(vec![tree(3, Ratio::ONE, &[&[3, 0], &[3, 1], &[3, 2]])])],
    );
    refused(&t, &helper, "no root in the job");
}

/// Three GPUs and two NUMA nodes.
fn machine() -> Topology {
    let kind = |d| if d < 3 { DeviceKind::Gpu } else { DeviceKind::Cpu };
    let device = |d| Device { name: format!("D{d}"), kind: kind(d), attributes: BTreeMap::new() };
    let rate = Rate::from_gbs(10.0).unwrap();
    let link = |(a, b, kind)| Link { a, b, kind, count: 1, forth: rate, back: rate };
    use LinkKind::{NvLink, Pcie, Socket};
    let links = [(0, 1, NvLink), (0, 3, Pcie), (1, 3, Pcie), (2, 4, Pcie), (3, 4, Socket)].map(link);
    Topology::new("machine", (0..5).map(device).collect(), links.into()).unwrap()
}

#[test]
fn routes_lead_from_where_the_data_is_to_where_it_goes() {
    let t = machine();
    let plan = |operation, gpus: &[usize], routes: &[(Ratio, &[usize])]| {
        let witness = match operation {
            Operation::Upload | Operation::Download => Witness::Cut(vec![3, 4]),
            _ => Witness::Cut(vec![gpus[0]]),
        };
        let request = Request { pcie: true, ..Request::new(operation, gpus) };
        let steps = vec![Step::Send(routes.iter().map(|(share, path)| route(*share, path)).collect())];
        made(&t, request, 1, witness, steps)
    };
    let half = r(1, 2);
    use Operation::{AllToAll, Download, Send, Upload};
    check(&t, &plan(Send, &[0, 1], &[(half, &[0, 1]), (half, &[0, 3, 1])])).unwrap();
    check(&t, &plan(Upload, &[0, 2], &[(half, &[3, 0]), (r(1, 4), &[4, 2]), (r(1, 4), &[3, 4, 2])])).unwrap();
    check(&t, &plan(Download, &[0, 2], &[(half, &[0, 3]), (half, &[2, 4])])).unwrap();
    check(&t, &plan(AllToAll, &[0, 1], &[(half, &[0, 1]), (half, &[1, 3, 0])])).unwrap();
    for (operation, gpus, routes, part) in [
        // Loops.
        (Send, &[0, 1][..], &[(Ratio::ONE, &[0, 3, 0, 1][..])][..], "loop"),
        (Send, &[0, 1], &[(Ratio::ONE, &[0, 1, 0, 1])], "loop"),
        (Upload, &[0], &[(Ratio::ONE, &[3, 4, 3, 0])], "loop"),
        // Shares of nothing, negative ones, ones that do not add up.
        (Send, &[0, 1], &[(Ratio::ONE, &[0, 1]), (Ratio::ZERO, &[0, 3, 1])], "no share"),
        (Send, &[0, 1], &[(r(3, 2), &[0, 1]), (r(-1, 2), &[0, 3, 1])], "no share"),
        (Send, &[0, 1], &[(half, &[0, 1])], "expected the shares"),
        (Send, &[0, 1], &[(half, &[0, 1]), (Ratio::ONE, &[0, 3, 1])], "expected the shares"),
        // Ends.
        (Send, &[0, 1], &[(Ratio::ONE, &[1, 0])], "expected the shares"),
        (Send, &[0, 1], &[(Ratio::ONE, &[0, 3])], "expected the shares"),
        (Send, &[0, 1], &[(Ratio::ONE, &[])], "a route is empty"),
        (Send, &[0, 1], &[(Ratio::ONE, &[0])], "expected the shares"),
        (Upload, &[0, 2], &[(r(3, 4), &[3, 0]), (r(1, 4), &[4, 2])], "expected the shares"),
        (Upload, &[0, 2], &[(Ratio::ONE, &[3, 0])], "expected the shares"),
        (Upload, &[0], &[(Ratio::ONE, &[0, 3])], "expected the shares"),
        (Download, &[0], &[(Ratio::ONE, &[3, 0])], "expected the shares"),
        (Download, &[0, 2], &[(half, &[0, 3]), (r(1, 4), &[2, 4])], "expected the shares"),
        (AllToAll, &[0, 1], &[(Ratio::ONE, &[0, 1])], "expected the shares"),
        (AllToAll, &[0, 1], &[(r(3, 4), &[0, 1]), (r(1, 4), &[1, 0])], "expected the shares"),
    ] {
        refused(&t, &plan(operation, gpus, routes), part);
    }
    // Without PCIe there is no such link, nor one that does not exist.
    let mut over = plan(Send, &[0, 1], &[(Ratio::ONE, &[0, 3, 1])]);
    over.request.pcie = false;
    over.bound = bound(&t, &over.request, &over.witness).unwrap();
    refused(&t, &over, "there is no link from 0 to 3");
    refused(&t, &plan(Send, &[0, 1], &[(Ratio::ONE, &[0, 4, 1])]), "there is no link from 0 to 4");
    let mut trees = plan(Send, &[0, 1], &[(Ratio::ONE, &[0, 1])]);
    trees.steps = vec![Step::Spread(vec![tree(0, Ratio::ONE, &[&[0, 1]])])];
    refused(&t, &trees, "not of the operation");
}

/// What bounds do not prove is refused, each kind.
#[test]
fn witnesses_prove_what_they_say() {
    let (t, m) = (mesh(), machine());
    let job: &[usize] = &[0, 1, 2];
    let refused = |t: &Topology, operation, gpus: &[usize], witness: Witness, part: &str| {
        let error = bound(t, &Request::new(operation, gpus), &witness).unwrap_err().to_string();
        assert!(error.contains(part), "{operation:?} {witness:?}: expected {part:?} in {error:?}");
        // Nor is a plan with it.
        let mut plan = planned(t, &Request::new(operation, gpus));
        plan.witness = witness;
        assert!(check(t, &plan).unwrap_err().to_string().contains(part), "{operation:?}");
    };
    let holds = |t: &Topology, operation, gpus: &[usize], witness: Witness, mbs: (i128, i128)| {
        let found = bound(t, &Request::new(operation, gpus), &witness);
        assert_eq!(found, Ok(r(mbs.0, mbs.1)), "{operation:?} {witness:?}");
    };
    use Operation::*;
    let parts = |sets: &[&[usize]]| Witness::Parts(sets.iter().map(|s| s.to_vec()).collect());
    let cut = |set: &[usize]| Witness::Cut(set.to_vec());
    // 20 GB/s enter each GPU from the other two.
    holds(&t, AllReduce, job, parts(&[&[0], &[1], &[2]]), (15_000, 1));
    holds(&t, AllReduce, job, parts(&[&[0, 1], &[2]]), (20_000, 1));
    let apart = "do not split the job";
    refused(&t, AllReduce, job, parts(&[&[0, 1], &[1, 2]]), apart);
    refused(&t, AllReduce, job, parts(&[&[0], &[1], &[2], &[2]]), apart);
    refused(&t, AllReduce, job, parts(&[&[0], &[1]]), apart);
    refused(&t, AllReduce, job, parts(&[&[0, 1, 2]]), apart);
    refused(&t, AllReduce, job, parts(&[&[0, 1, 2], &[3]]), apart);
    refused(&t, AllReduce, job, parts(&[&[0, 1, 2], &[]]), apart);
    refused(&t, AllReduce, job, parts(&[]), apart);
    let no_cut = "does not part the job";
    for operation in [AllReduce, AllGather, ReduceScatter, AllToAll] {
        refused(&t, operation, job, cut(&[0, 1, 2]), no_cut);
        refused(&t, operation, job, cut(&[]), no_cut);
        refused(&t, operation, job, cut(&[3, 4]), no_cut);
    }
    holds(&t, AllReduce, job, cut(&[0]), (20_000, 1));
    holds(&t, AllGather, job, cut(&[0]), (60_000, 1));
    holds(&t, AllGather, job, cut(&[0, 1]), (30_000, 1));
    holds(&t, ReduceScatter, job, cut(&[0, 1]), (30_000, 1));
    holds(&t, AllToAll, job, cut(&[0]), (30_000, 1));
    for operation in [Broadcast, Reduce] {
        holds(&t, operation, job, cut(&[0, 2]), (20_000, 1));
        refused(&t, operation, job, cut(&[1]), no_cut);
        refused(&t, operation, job, cut(&[]), no_cut);
        refused(&t, operation, job, cut(&[0, 1, 2]), no_cut);
    }
    holds(&t, Send, &[0, 1], cut(&[0]), (10_000, 1));
    refused(&t, Send, &[0, 1], cut(&[0, 1]), no_cut);
    refused(&t, Send, &[0, 1], cut(&[1]), no_cut);
    refused(&t, Send, &[0, 1], cut(&[]), no_cut);
    for operation in [Upload, Download] {
        holds(&m, operation, &[0, 2], cut(&[3, 4]), (20_000, 1));
        holds(&m, operation, &[0, 2], cut(&[3, 4, 0]), (20_000, 1));
        refused(&m, operation, &[0, 2], cut(&[]), no_cut);
        refused(&m, operation, &[0, 2], cut(&[3]), no_cut);
        refused(&m, operation, &[0, 2], cut(&[4, 1]), no_cut);
        refused(&m, operation, &[0, 2], cut(&[3, 4, 0, 2]), no_cut);
    }
    let prices = |list: &[(usize, usize, i128)]| {
        Witness::Prices(list.iter().map(|&(a, b, p)| (a, b, Ratio::new(p, 1).unwrap())).collect())
    };
    let pairs = [(0, 1, 1), (1, 0, 1), (0, 2, 1), (2, 0, 1), (1, 2, 1), (2, 1, 1)];
    holds(&t, AllToAll, job, prices(&pairs), (30_000, 1));
    refused(&t, AllToAll, job, prices(&[(0, 1, 2), (1, 0, -1)]), "a price of the bound is negative");
    assert!(bound(&t, &Request::new(AllToAll, job), &prices(&[])).is_err());
    // Prices of links that are not there are worth nothing.
    holds(&t, AllToAll, job, prices(&[&pairs[..], &[(0, 3, 100)]].concat()), (30_000, 1));
    for operation in [Broadcast, Reduce, AllGather, ReduceScatter, AllReduce] {
        refused(&t, operation, job, prices(&pairs), "not of the operation's kind");
    }
    for operation in [Broadcast, AllGather, AllToAll] {
        refused(&t, operation, job, parts(&[&[0], &[1], &[2]]), "not of the operation's kind");
    }
    let lone = graph(3, &[(0, 1, 1, 1)]);
    refused(&lone, AllToAll, job, prices(&[(0, 1, 1)]), "do not cover every pair");
}

/// Helpers and switches change what a bound may count: only what the request allows.
#[test]
fn bounds_count_what_may_be_used() {
    let t = machine();
    let of = |pcie| bound(&t, &Request { pcie, ..Request::new(Operation::Send, &[0, 1]) }, &Witness::Cut(vec![0]));
    assert_eq!((of(false), of(true)), (Ok(r(10_000, 1)), Ok(r(20_000, 1))));
    // A PCIe link between two GPUs, too.
    let (two, rate) = (graph(2, &[(0, 1, 10, 10)]), Rate::from_gbs(5.0).unwrap());
    let beside = Link { a: 0, b: 1, kind: LinkKind::Pcie, count: 1, forth: rate, back: rate };
    let links = two.links().iter().cloned().chain([beside]).collect();
    let t = Topology::new("both", two.devices().to_vec(), links).unwrap();
    let of = |pcie| bound(&t, &Request { pcie, ..Request::new(Operation::Send, &[0, 1]) }, &Witness::Cut(vec![0]));
    assert_eq!((of(false), of(true)), (Ok(r(10_000, 1)), Ok(r(15_000, 1))));
    let t = mesh();
    let of = |helpers: &[usize]| {
        bound(&t, &Request::new(Operation::Send, &[0, 1]).with_helpers(helpers), &Witness::Cut(vec![0]))
    };
    assert_eq!((of(&[]), of(&[2]), of(&[2, 4])), (Ok(r(10_000, 1)), Ok(r(20_000, 1)), Ok(r(30_000, 1))));
}

/// A way to damage a plan: which, and what it does at the `i`-th place; false where there is none.
type Damage = (&'static str, fn(&mut Plan, usize) -> bool);

fn tree_at(plan: &mut Plan, i: usize) -> Option<&mut Tree> {
    let all = plan.steps.iter_mut().flat_map(|step| match step {
        Step::Collect(trees) | Step::Spread(trees) => trees.iter_mut(),
        Step::Send(_) => [].iter_mut(),
    });
    { all }.nth(i)
}

fn route_at(plan: &mut Plan, i: usize) -> Option<&mut Route> {
    let all = plan.steps.iter_mut().flat_map(|step| match step {
        Step::Send(routes) => routes.iter_mut(),
        _ => [].iter_mut(),
    });
    { all }.nth(i)
}

fn on_tree(plan: &mut Plan, i: usize, damage: impl FnOnce(&mut Tree)) -> bool {
    tree_at(plan, i).map(damage).is_some()
}

fn on_route(plan: &mut Plan, i: usize, damage: impl FnOnce(&mut Route)) -> bool {
    route_at(plan, i).map(damage).is_some()
}

/// A place alone.
fn once(i: usize, damage: impl FnOnce()) -> bool {
    let is_first = i == 0;
    if is_first {
        damage();
    }
    is_first
}

fn times(share: Ratio, num: i128, den: i128) -> Ratio {
    share.times(r(num, den)).unwrap()
}

/// After each the loads are those of the steps, so that they are not what is found.
const STRUCTURE: [Damage; 21] = [
    ("faster than the bound", |p, i| once(i, || p.rate = p.bound.plus(r(1, 1000)).unwrap())),
    ("another bound", |p, i| once(i, || p.bound = p.bound.plus(r(1, 1000)).unwrap())),
    ("a smaller bound", |p, i| once(i, || p.bound = times(p.bound, 999, 1000))),
    ("a step less", |p, i| i < p.steps.len() && p.steps.remove(i) != Step::Send(Vec::new())),
    ("a step twice", |p, i| p.steps.get(i).cloned().map(|step| p.steps.push(step)).is_some()),
    ("a step of the other kind", |p, i| {
        let Some(step) = p.steps.get_mut(i) else { return false };
        *step = match std::mem::replace(step, Step::Send(Vec::new())) {
            Step::Collect(trees) => Step::Spread(trees),
            Step::Spread(trees) => Step::Collect(trees),
            Step::Send(_) => Step::Spread(Vec::new()),
        };
        true
    }),
    ("a tree less", |p, i| on_tree(p, i, |t| t.share = Ratio::ZERO)),
    ("a tree of half its share", |p, i| on_tree(p, i, |t| t.share = times(t.share, 1, 2))),
    ("a tree of twice its share", |p, i| on_tree(p, i, |t| t.share = times(t.share, 2, 1))),
    ("a tree of a negative share", |p, i| on_tree(p, i, |t| t.share = times(t.share, -1, 1))),
    ("a path less", |p, i| on_tree(p, i, |t| drop(t.paths.pop()))),
    ("a path twice", |p, i| on_tree(p, i, |t| t.paths.push(t.paths[0].clone()))),
    ("a path turned round", |p, i| on_tree(p, i, |t| t.paths[0].reverse())),
    ("a path of one device", |p, i| on_tree(p, i, |t| t.paths[0].truncate(1))),
    ("a path there and back and there", |p, i| {
        on_tree(p, i, |t| {
            let (first, rest) = (t.paths[0][0], t.paths[0].clone());
            t.paths[0] = [&[first, rest[1]], &rest[..]].concat();
        })
    }),
    ("another root", |p, i| {
        on_tree(p, i, |t| t.root = t.paths.iter().flatten().copied().find(|d| *d != t.root).unwrap())
    }),
    ("a route less", |p, i| on_route(p, i, |r| r.share = Ratio::ZERO)),
    ("a route of half its share", |p, i| on_route(p, i, |r| r.share = times(r.share, 1, 2))),
    ("a route turned round", |p, i| on_route(p, i, |r| r.path.reverse())),
    ("a route that is shorter", |p, i| on_route(p, i, |r| r.path.truncate(r.path.len() - 1))),
    ("a route there and back and there", |p, i| {
        on_route(p, i, |r| r.path = [&[r.path[0], r.path[1]], &r.path.clone()[..]].concat())
    }),
];

/// Every operation's plan, with and without helpers, damaged in every place.
#[test]
fn every_kind_of_plan_is_refused_when_damaged() {
    for (name, gpus, helpers) in [("dgx1-v100", &[0, 1, 6][..], &[2, 3, 4][..]), ("hgx-h100", &[0, 1, 2], &[])] {
        let t = Topology::preset(name).unwrap();
        for (operation, _) in Operation::ALL {
            let gpus = if operation == Operation::Send { &gpus[..2] } else { gpus };
            let good = planned(&t, &Request::new(operation, gpus).with_helpers(helpers));
            let is_sent = matches!(good.steps[0], Step::Send(_));
            for (what, damage) in STRUCTURE {
                let mut count = 0;
                for i in 0.. {
                    let mut plan = good.clone();
                    if !damage(&mut plan, i) {
                        break;
                    }
                    reload(&t, &mut plan);
                    let found = check(&t, &plan);
                    assert!(found.is_err(), "{name} {operation:?}: {what} at {i} passes: {:?}", plan.steps);
                    count += 1;
                }
                let is_for_this = if is_sent { "tree path root" } else { "route" };
                let is_other = is_for_this.split(' ').any(|word| what.contains(&format!(" {word}")));
                assert!(count > 0 || is_other, "{name} {operation:?}: {what} damaged nothing");
            }
            damaged_loads(&t, &good);
            other_requests(&t, &good);
        }
    }
}

fn damaged_loads(t: &Topology, good: &Plan) {
    for i in 0..good.loads.len() {
        for damage in [
            |l: &mut Load| l.rate = times(l.rate, 1, 2),
            |l: &mut Load| l.capacity += 1,
            |l: &mut Load| std::mem::swap(&mut l.from, &mut l.to),
        ] {
            let mut plan = good.clone();
            damage(&mut plan.loads[i]);
            assert!(check(t, &plan).unwrap_err().to_string().contains("loads"), "{i}");
        }
    }
    let mut slower = good.clone();
    slower.rate = times(slower.rate, 1, 2);
    assert!(check(t, &slower).is_err());
    reload(t, &mut slower);
    check(t, &slower).unwrap();
}

/// The plan is not one of any other operation, nor of another job or root.
fn other_requests(t: &Topology, good: &Plan) {
    let own = &good.request;
    let mut others: Vec<Request> =
        Operation::ALL.iter().map(|&(operation, _)| Request { operation, ..own.clone() }).collect();
    let more: Vec<usize> = own.gpus.iter().copied().chain([5]).collect();
    others.push(Request { gpus: more, ..own.clone() });
    others.push(Request { gpus: own.gpus[1..].to_vec(), ..own.clone() });
    if matches!(own.operation, Operation::Broadcast | Operation::Reduce) {
        others.push(Request { root: Some(own.gpus[1]), ..own.clone() });
    }
    for request in others.into_iter().filter(|request| request != own) {
        let mut plan = good.clone();
        plan.request = request;
        reload(t, &mut plan);
        if let Ok(bound) = bound(t, &plan.request, &plan.witness) {
            plan.bound = bound;
        }
        assert!(check(t, &plan).is_err(), "{:?} for {:?}", own, plan.request);
    }
}

/// What exhaustion over all sets of devices allows an upload: all that leaves a set with all CPUs, over the GPUs outside.
fn most_uploaded(t: &Topology, gpus: &[usize], is_down: bool) -> Ratio {
    let n = t.devices().len();
    let cpus: u32 = (0..n).filter(|&d| t.devices()[d].kind == DeviceKind::Cpu).fold(0, |m, d| m | 1 << d);
    let cut = |set: u32| {
        let crosses = |a: usize, b: usize| set >> a & 1 == 1 && set >> b & 1 == 0;
        let one = |l: &Link| {
            let (out, back) = if is_down { (l.back, l.forth) } else { (l.forth, l.back) };
            if crosses(l.a, l.b) {
                out.mbs()
            } else if crosses(l.b, l.a) {
                back.mbs()
            } else {
                0
            }
        };
        let all: i64 = t.links().iter().map(one).sum();
        let outside = gpus.iter().filter(|g| set >> **g & 1 == 0).count();
        (outside > 0).then(|| r(i128::from(all) * gpus.len() as i128, outside as i128))
    };
    (0..1u32 << n).filter(|set| set & cpus == cpus).filter_map(cut).min().unwrap()
}

/// Host memory over links of different rates: the slowest GPU's ways decide, and what they leave goes to nobody.
#[test]
fn uploads_and_downloads_over_unequal_links() {
    let build = |gpus: usize, cpus: usize, links: &[(usize, usize, u32, u32)]| {
        let kind = |d| if d < gpus { DeviceKind::Gpu } else { DeviceKind::Cpu };
        let device = |d| Device { name: format!("D{d}"), kind: kind(d), attributes: BTreeMap::new() };
        let rate = |gbs: u32| Rate::from_gbs(gbs.into()).unwrap();
        let link = |&(a, b, forth, back): &(usize, usize, u32, u32)| {
            let of = match (kind(a), kind(b)) {
                (DeviceKind::Gpu, DeviceKind::Gpu) => LinkKind::NvLink,
                (DeviceKind::Cpu, DeviceKind::Cpu) => LinkKind::Socket,
                _ => LinkKind::Pcie,
            };
            Link { a, b, kind: of, count: 1, forth: rate(forth), back: rate(back) }
        };
        Topology::new("host", (0..gpus + cpus).map(device).collect(), links.iter().map(link).collect()).unwrap()
    };
    let t = build(2, 1, &[(2, 0, 10, 12), (2, 1, 30, 34)]);
    let rate = |operation, gpus: &[usize]| planned(&t, &Request::new(operation, gpus)).rate;
    // GPU 0 gets 10 GB/s, and GPU 1 as much.
    assert_eq!(rate(Operation::Upload, &[0, 1]), r(20_000, 1));
    assert_eq!(rate(Operation::Download, &[0, 1]), r(24_000, 1));
    assert_eq!((rate(Operation::Upload, &[1]), rate(Operation::Download, &[1])), (r(30_000, 1), r(34_000, 1)));
    let mut seed = 4u64;
    let mut next = |n: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % n
    };
    for case in 0..200 {
        let (gpus, cpus) = (1 + next(4) as usize, 1 + next(2) as usize);
        let mut links = Vec::new();
        for a in 0..gpus + cpus {
            for b in a + 1..gpus + cpus {
                if next(3) > 0 {
                    links.push((a, b, 1 + next(30) as u32, 1 + next(30) as u32));
                }
            }
        }
        let t = build(gpus, cpus, &links);
        let job: Vec<usize> = (0..gpus).collect();
        for operation in [Operation::Upload, Operation::Download] {
            let plan = planned(&t, &Request::new(operation, &job));
            let expected = most_uploaded(&t, &job, operation == Operation::Download);
            assert_eq!((plan.rate, plan.bound), (expected, expected), "case {case} {operation:?} {links:?}");
        }
    }
}
