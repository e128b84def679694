//! Schedules carried out by threads with random timing, and messages in orders at random; every byte of every output is compared with the
//! definition.

#[path = "../../fabric-plan/tests/support/mod.rs"]
mod support;

mod naive;
mod teams;

use naive::Naive;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::{graph, planned, random_links};
use tandem_fabric::exec::mail::Layout;
use tandem_fabric::exec::sim::{Bound, Bytes, Run};
use tandem_fabric::exec::worker::{Words, Worker};
use tandem_fabric::exec::{check, direct, messages, schedule, Bf16, Call, Combine, Kind, Schedule, Shape, F16};
use tandem_fabric::plan::{Gain, Operation, Plan, Request, Step};
use tandem_fabric::topology::{DeviceKind, Topology};

/// One block of memory for each node and use. A lock for each: what is tested is the order, and a race would be found by
/// its wrong bytes.
struct Blocks(Vec<Mutex<Vec<u8>>>);

const SPACE: u64 = 1 << 32;

impl Bytes for Blocks {
    fn read(&self, from: u64, to: &mut [u8]) {
        let at = (from % SPACE) as usize;
        to.copy_from_slice(&self.0[(from / SPACE) as usize].lock().unwrap()[at..at + to.len()]);
    }
    fn write(&self, to: u64, from: &[u8]) {
        let at = (to % SPACE) as usize;
        self.0[(to / SPACE) as usize].lock().unwrap()[at..at + from.len()].copy_from_slice(from);
    }
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

/// Bytes of a node's input and output.
fn sizes(call: &Call, pes: usize) -> (u64, u64) {
    let all = call.part * pes as u64;
    match call.operation {
        Operation::AllGather => (call.part, all),
        Operation::ReduceScatter => (all, call.part),
        Operation::AllToAll => (all, all),
        _ => (call.part, call.part),
    }
}

/// The outputs by the definition; `None` where nothing is written.
fn expected<T: Naive>(call: &Call, how: Combine, inputs: &[Vec<u8>]) -> Vec<Option<Vec<u8>>> {
    let n = inputs.len();
    let part = call.part as usize;
    let all = |at: usize| {
        let numbers =
            |u: usize| inputs[u][at..at + part].chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned::<T>);
        let mut sum: Vec<T> = numbers(0).collect();
        for u in 1..n {
            sum = sum.into_iter().zip(numbers(u)).map(|(a, b)| a.naive(b, how)).collect();
        }
        bytemuck::cast_slice(&sum).to_vec()
    };
    (0..n)
        .map(|v| match call.operation {
            Operation::Broadcast => Some(inputs[call.root].clone()),
            Operation::Reduce => (v == call.root).then(|| all(0)),
            Operation::AllReduce => Some(all(0)),
            Operation::AllGather => Some(inputs.concat()),
            Operation::ReduceScatter => Some(all(v * part)),
            Operation::AllToAll => Some(inputs.iter().flat_map(|i| &i[v * part..(v + 1) * part]).copied().collect()),
            Operation::Send => (v == 1).then(|| inputs[0].clone()),
            _ => None,
        })
        .collect()
}

fn carried_out<T: Naive>(tables: &[Schedule], how: Combine, seed: u64, value: impl Fn(u64) -> T) {
    let mut random = Random(seed | 1);
    let mut blocks = Vec::new();
    let mut parts = Vec::new();
    let mut inputs = Vec::new();
    for table in tables {
        let nodes = table.host() + 1;
        let (input, output) = sizes(&table.call, table.pes);
        let of = |bytes: u64, random: &mut Random| -> Vec<u8> {
            (0..bytes / size_of::<T>() as u64)
                .flat_map(|_| bytemuck::bytes_of(&value(random.next())).to_vec())
                .collect()
        };
        let data: Vec<Vec<u8>> = (0..table.pes).map(|_| of(input, &mut random)).collect();
        let first = blocks.len() as u64;
        for node in 0..nodes {
            blocks.push(Mutex::new(data.get(node).cloned().unwrap_or_default()));
            blocks.push(Mutex::new(if node < table.pes { of(output, &mut random) } else { Vec::new() }));
            blocks.push(Mutex::new(vec![0xa5; table.staging[node] as usize]));
        }
        let at = |which: u64| (0..nodes as u64).map(|node| (first + 3 * node + which) * SPACE).collect();
        parts.push(Bound {
            schedule: Arc::new(table.clone()),
            numbers: Some((T::KIND, how)),
            pes: (0..nodes).collect(),
            input: at(0),
            output: at(1),
            staging: at(2),
        });
        inputs.push((first, data));
    }
    let blocks = Blocks(blocks);
    let before: Vec<Vec<u8>> = blocks.0.iter().map(|b| b.lock().unwrap().clone()).collect();
    let workers = tables[0].host();
    let run = Run::new(parts);
    std::thread::scope(|scope| {
        for node in 0..workers {
            let (run, blocks) = (&run, &blocks);
            let seed = random.next();
            // The second round finds the counters as the first has left them, and other nodes still in it.
            scope.spawn(move || {
                run.pe(node, blocks, Duration::from_secs(20), || false, seed).unwrap();
                run.pe(node, blocks, Duration::from_secs(20), || false, seed ^ 55).unwrap();
            });
        }
    });
    for (table, (first, data)) in tables.iter().zip(inputs) {
        for (v, wanted) in expected::<T>(&table.call, how, &data).into_iter().enumerate() {
            let at = first as usize + 3 * v;
            let found = blocks.0[at + 1].lock().unwrap().clone();
            // Where nothing is to be written, nothing is.
            assert!(found == wanted.unwrap_or_else(|| before[at + 1].clone()), "{:?}: output of {v}", table.call);
            assert!(*blocks.0[at].lock().unwrap() == data[v], "{:?}: input of {v}", table.call);
        }
    }
}

/// Buffers, and the words in which PEs send each other messages.
struct Mailed {
    blocks: Blocks,
    words: Vec<AtomicU64>,
}

const WORDS: u64 = 1 << 60;

impl Bytes for Mailed {
    fn read(&self, from: u64, to: &mut [u8]) {
        self.blocks.read(from, to);
    }
    fn write(&self, to: u64, from: &[u8]) {
        self.blocks.write(to, from);
    }
}

impl Words for Mailed {
    type Word = AtomicU64;
    fn words(&self, at: u64, count: u64, mut f: impl FnMut(u64, &AtomicU64)) {
        let first = (at - WORDS) / 8;
        (0..count).for_each(|i| f(i, &self.words[(first + i) as usize]));
    }
}

/// Several rounds of a table of messages, each with other numbers. One thread goes through the workers of all PEs in an order that follows from
/// the seed, so that what fails does so again; a PE may be as far ahead of the others as the protocol lets it.
fn explored<T: Naive>(table: &Schedule, workers: usize, how: Combine, seed: u64, value: impl Fn(u64) -> T) {
    const ROUNDS: usize = 5;
    let mut random = Random(seed | 1);
    let (n, call) = (table.pes, &table.call);
    let (input, output) = sizes(call, n);
    let of = |bytes: u64, random: &mut Random| -> Vec<u8> {
        let numbers = (0..bytes.div_ceil(size_of::<T>() as u64)).map(|_| value(random.next()));
        let mut out: Vec<u8> = numbers.flat_map(|number| bytemuck::bytes_of(&number).to_vec()).collect();
        out.truncate(bytes as usize);
        out
    };
    let inputs: Vec<Vec<Vec<u8>>> = (0..ROUNDS).map(|_| (0..n).map(|_| of(input, &mut random)).collect()).collect();
    let before = of(output, &mut random);
    let wanted: Vec<_> = inputs.iter().map(|data| expected::<T>(call, how, data)).collect();
    let layout = Layout::new(table, workers).unwrap();
    let memory = Mailed {
        blocks: Blocks((0..n).flat_map(|_| [Mutex::new(Vec::new()), Mutex::new(before.clone())]).collect()),
        words: (0..n * layout.words).map(|_| AtomicU64::new(0)).collect(),
    };
    let at = |which: u64| (0..=n as u64).map(|node| (2 * node + which) * SPACE).collect();
    let numbers = Some((T::KIND, how));
    let schedule = Arc::new(table.clone());
    let bound = Bound { schedule, numbers, pes: (0..=n).collect(), input: at(0), output: at(1), staging: Vec::new() };
    let base: Vec<u64> = (0..n).map(|pe| WORDS + 8 * (pe * layout.words) as u64).collect();
    let begin = |pe: usize, round: usize| -> Vec<Worker> {
        *memory.blocks.0[2 * pe].lock().unwrap() = inputs[round][pe].clone();
        let (own, rows) = layout.own(&bound, pe, &base);
        let words = own.chunks((own.len() / layout.workers).max(1));
        words.map(|words| Worker::new(words.to_vec(), rows, round as u64 + 1, numbers)).collect()
    };
    // The PEs that have something left: who, its round, its workers.
    let mut open: Vec<(usize, usize, Vec<Worker>)> = (0..n).map(|pe| (pe, 0, begin(pe, 0))).collect();
    let mut in_vain = 0;
    while !open.is_empty() {
        let i = (random.next() % open.len() as u64) as usize;
        // Mostly a little; now and then a PE does all that it can.
        let steps = [1, 1, 7, 1000][(random.next() % 4) as usize];
        let (pe, round, workers) = &mut open[i];
        for _ in 0..steps {
            workers.retain(|worker| !worker.is_done());
            if workers.is_empty() {
                let found = memory.blocks.0[2 * *pe + 1].lock().unwrap().clone();
                // Where nothing is to be written, nothing is.
                assert!(
                    found == *wanted[*round][*pe].as_ref().unwrap_or(&before),
                    "{call:?}, seed {seed}: round {round}, output of {pe}"
                );
                *round += 1;
                if *round == ROUNDS {
                    break;
                }
                *workers = begin(*pe, *round);
                continue;
            }
            let worker = (random.next() % workers.len() as u64) as usize;
            let pairs = 1 + random.next() % [1, 3, 64][(random.next() % 3) as usize];
            match workers[worker].step(&memory, pairs) {
                Ok(()) => in_vain = 0,
                Err(missing) => {
                    in_vain += 1;
                    assert!(in_vain < 100_000, "{call:?}, seed {seed}: PE {pe} in round {round}: {missing:?}");
                }
            }
        }
        if *round == ROUNDS {
            open.swap_remove(i);
        }
    }
}

/// Every operation on every number of PEs; sizes around everything that could matter: none, odd, words, workers.
#[test]
fn messages_in_any_order() {
    for (i, n) in (2..=8).enumerate() {
        for (j, operation) in OPERATIONS.into_iter().enumerate() {
            let pes = if operation == Operation::Send { 2 } else { n };
            let is_sum = matches!(operation, Operation::Reduce | Operation::AllReduce | Operation::ReduceScatter);
            for (k, part) in [0u64, 1, 7, 8, 15, 16, 1000, 4097].into_iter().enumerate() {
                let (kind, how) = (KINDS[(i + j + k) % KINDS.len()], Combine::ALL[(i + k) % HOWS]);
                let unit = if is_sum { kind.bytes() } else { 1 };
                let call = Call { operation, root: (i + k) % pes, part: part / unit * unit, unit, in_place: false };
                let workers = 1 + (i + k) % 5;
                let table = messages(&call, pes, workers).unwrap();
                of_kind(&[table], Some(workers), kind, how, (i * 1000 + j * 100 + k) as u64);
            }
        }
    }
}

/// Of one table of messages for so many workers, or by threads.
fn done<T: Naive>(tables: &[Schedule], workers: Option<usize>, how: Combine, seed: u64, value: impl Fn(u64) -> T) {
    match workers {
        Some(workers) => explored(&tables[0], workers, how, seed, value),
        None => carried_out(tables, how, seed, value),
    }
}

fn of_kind(tables: &[Schedule], workers: Option<usize>, kind: Kind, how: Combine, seed: u64) {
    let is_float = matches!(kind, Kind::F16 | Kind::Bf16 | Kind::F32 | Kind::F64);
    // Bits of floating-point numbers are not combined.
    let how = if is_float && how.is_of_bits() { Combine::Product } else { how };
    if is_float && how == Combine::Product {
        // Signs and powers of two, so that products are exact in every order.
        let power = |x: u64| [1.0f32, -1.0, 2.0, -2.0, 0.5, -0.5][(x % 6) as usize];
        return match kind {
            Kind::F16 => done::<F16>(tables, workers, how, seed, |x| power(x).into()),
            Kind::Bf16 => done::<Bf16>(tables, workers, how, seed, |x| power(x).into()),
            Kind::F32 => done::<f32>(tables, workers, how, seed, power),
            _ => done::<f64>(tables, workers, how, seed, |x| power(x).into()),
        };
    }
    // Floating-point numbers are whole and small, so that sums are exact in every order.
    match kind {
        Kind::U32 => done::<u32>(tables, workers, how, seed, |x| x as u32),
        Kind::I32 => done::<i32>(tables, workers, how, seed, |x| x as i32),
        Kind::U64 => done::<u64>(tables, workers, how, seed, |x| x),
        Kind::I64 => done::<i64>(tables, workers, how, seed, |x| x as i64),
        Kind::F32 => done::<f32>(tables, workers, how, seed, |x| (x % 4001) as f32 - 2000.0),
        Kind::F64 => done::<f64>(tables, workers, how, seed, |x| (x % 400_001) as f64 - 200_000.0),
        Kind::U8 => done::<u8>(tables, workers, how, seed, |x| x as u8),
        Kind::I8 => done::<i8>(tables, workers, how, seed, |x| x as i8),
        Kind::U16 => done::<u16>(tables, workers, how, seed, |x| x as u16),
        Kind::I16 => done::<i16>(tables, workers, how, seed, |x| x as i16),
        Kind::F16 => done::<F16>(tables, workers, how, seed, |x| ((x % 201) as f32 - 100.0).into()),
        Kind::Bf16 => done::<Bf16>(tables, workers, how, seed, |x| ((x % 33) as f32 - 16.0).into()),
    }
}

const KINDS: [Kind; 12] = [
    Kind::U32,
    Kind::I32,
    Kind::U64,
    Kind::I64,
    Kind::F32,
    Kind::F64,
    Kind::U8,
    Kind::I8,
    Kind::U16,
    Kind::I16,
    Kind::F16,
    Kind::Bf16,
];
/// Ways to combine.
const HOWS: usize = Combine::ALL.len();
const OPERATIONS: [Operation; 7] = [
    Operation::Broadcast,
    Operation::Reduce,
    Operation::AllReduce,
    Operation::AllGather,
    Operation::ReduceScatter,
    Operation::AllToAll,
    Operation::Send,
];

#[test]
fn random_graphs_and_sizes() {
    let case = (2usize..=5).prop_flat_map(|n| {
        let links = random_links(n);
        let order = Just((0..n).collect::<Vec<_>>()).prop_shuffle();
        let what = (0..OPERATIONS.len(), 0..KINDS.len(), 0..HOWS);
        (Just(n), links, 2..=n, order, what, (0u64..3000, 1usize..5, 1u64..40, 1u64..4), any::<u64>())
    });
    let config = Config { cases: 300, failure_persistence: None, max_shrink_iters: 10, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[31; 32]);
    TestRunner::new_with_rng(config, rng)
        .run(&case, |(n, links, k, order, (op, kind, how), (count, workers, chunk, slots), seed)| {
            let (operation, kind, how) = (OPERATIONS[op], KINDS[kind], Combine::ALL[how]);
            let (job, helpers) = order.split_at(if operation == Operation::Send { 2 } else { k });
            let topology = graph(n, &links);
            let plan = planned(&topology, &Request::new(operation, job).with_helpers(helpers));
            let call = Call { operation, root: 0, part: count * kind.bytes(), unit: kind.bytes(), in_place: false };
            let shape = Shape { workers, chunk: chunk * 64, slots };
            of_kind(&[direct(&call, job.len(), workers).unwrap()], None, kind, how, seed);
            of_kind(&[messages(&call, job.len(), workers).unwrap()], Some(workers), kind, how, seed);
            if !plan.rate.is_zero() {
                let table = schedule(&topology, &plan, &call, &shape).unwrap();
                check(&table).unwrap();
                of_kind(&[table], None, kind, how, seed);
            }
            Ok(())
        })
        .unwrap();
}

/// What plans that combine look like, by how often each was carried out.
#[derive(Debug, Default)]
struct Seen {
    relayed: usize,
    through_host: usize,
    branching: usize,
    chains: usize,
    rings: usize,
}

impl Seen {
    fn count(&mut self, topology: &Topology, plan: &Plan) {
        let kind = |device: usize| topology.devices()[device].kind;
        let trees = plan.steps.iter().flat_map(|step| match step {
            Step::Collect(trees) | Step::Spread(trees) => trees.iter(),
            Step::Send(_) => panic!("a reduction sends"),
        });
        let (mut is_relayed, mut is_hosted, mut branches) = (false, false, false);
        for tree in trees {
            let inner = || tree.paths.iter().flat_map(|path| &path[1..path.len() - 1]);
            is_relayed |= inner().any(|&device| kind(device) == DeviceKind::Gpu);
            is_hosted |= inner().any(|&device| kind(device) == DeviceKind::Cpu);
            let near = |path: &Vec<usize>| [path[0], path[path.len() - 1]];
            let ends: Vec<usize> = tree.paths.iter().flat_map(near).collect();
            branches |= ends.iter().any(|end| ends.iter().filter(|other| *other == end).count() > 2);
        }
        self.relayed += usize::from(is_relayed);
        self.through_host += usize::from(is_hosted);
        self.branching += usize::from(branches);
        self.chains += usize::from(!branches);
        // Those of a reduce-scatter are the rotations of rings, or refused.
        let may_be_rings = plan.request.operation == Operation::ReduceScatter && plan.request.gpus.len() > 2;
        self.rings += usize::from(may_be_rings && plan.to_nccl_graph(topology).is_ok());
    }
}

/// Sums, products, extremes and bits, of every kind of number, over every kind of way that there is from 1 to 8 PEs: straight, as messages,
/// over trees that branch and chains, over rings, through GPUs that only forward, through host memory. A helper's memory holds what no operation has as its
/// neutral element, so that one that takes part in a product is seen.
#[test]
fn every_combination_over_every_way() {
    let reductions = [Operation::Reduce, Operation::AllReduce, Operation::ReduceScatter];
    let mut seen = Seen::default();
    let mut turn = 0;
    // Products, and two other ways to combine in turns; another kind of number each time.
    let mut all = |table: &Schedule, workers: Option<usize>, unit: u64| {
        for how in [Combine::Product, Combine::ALL[turn % HOWS], Combine::ALL[(turn + 3) % HOWS]] {
            let kinds: Vec<Kind> = KINDS.into_iter().filter(|kind| kind.bytes() == unit).collect();
            of_kind(std::slice::from_ref(table), workers, kinds[turn % kinds.len()], how, turn as u64 + 1);
            turn += 1;
        }
    };
    for n in 1..=8 {
        let job: Vec<usize> = (0..n).collect();
        for (i, operation) in reductions.into_iter().enumerate() {
            let unit = [1, 2, 4, 8][(n + i) % 4];
            let call = Call { operation, root: n / 2, part: 999 * unit, unit, in_place: false };
            all(&direct(&call, n, 3).unwrap(), None, unit);
            if n > 1 {
                all(&messages(&call, n, 2).unwrap(), Some(2), unit);
            }
            for (preset, pcie) in
                [("hgx-h200", false), ("dgx1-v100", false), ("ring5", false), ("l40s-8", true), ("bridge-pairs", true)]
            {
                let topology = Topology::preset(preset).unwrap();
                let gpus = topology.gpus().len();
                if n < 2 || n > gpus {
                    continue;
                }
                let helpers: Vec<usize> = (n..gpus).collect();
                for helpers in [&[][..], &helpers] {
                    let mut request = Request::new(operation, &job).with_helpers(helpers);
                    request.root = (operation == Operation::Reduce).then_some(n / 2);
                    request.pcie = pcie;
                    let mut plan = planned(&topology, &request);
                    if plan.rate.is_zero() {
                        continue;
                    }
                    seen.count(&topology, &plan);
                    if matches!(plan.gain, Gain::None(_)) {
                        plan.request.helpers.clear();
                    }
                    let table = schedule(&topology, &plan, &call, &Shape { workers: 4, chunk: 512, slots: 2 }).unwrap();
                    check(&table).unwrap();
                    all(&table, None, unit);
                }
            }
        }
    }
    println!("{seen:?}");
    assert!(
        [seen.relayed, seen.through_host, seen.branching, seen.chains, seen.rings].iter().all(|&n| n > 0),
        "{seen:?}"
    );
}

/// Several operations at once, on the same nodes.
#[test]
fn several_at_once() {
    let topology = tandem_fabric::topology::Topology::preset("dgx1-v100").unwrap();
    let shape = Shape { workers: 2, chunk: 256, slots: 2 };
    for seed in 1..6 {
        let tables: Vec<Schedule> = OPERATIONS[..6]
            .iter()
            .map(|&operation| {
                let plan = planned(&topology, &Request::new(operation, &[0, 1, 2, 3]).with_helpers(&[4, 5, 6, 7]));
                let mut plan = plan;
                // A plan that does without helpers still has their nodes.
                plan.request.helpers = vec![4, 5, 6, 7];
                let call = Call { operation, root: 0, part: 4000 * seed, unit: 4, in_place: false };
                schedule(&topology, &plan, &call, &shape).unwrap()
            })
            .collect();
        of_kind(&tables, None, Kind::U32, Combine::Sum, seed);
    }
}

/// A node that never comes is named.
#[test]
fn a_missing_node_is_named() {
    let call = Call { operation: Operation::AllReduce, root: 0, part: 4096, unit: 4, in_place: false };
    let table = direct(&call, 3, 1).unwrap();
    let blocks = Blocks((0..12).map(|_| Mutex::new(vec![1; 4096])).collect());
    let at = |which: u64| (0..4).map(|node| (3 * node + which) * SPACE).collect();
    let numbers = Some((Kind::U32, Combine::Sum));
    let pes = (0..4).collect();
    let bound = Bound { schedule: Arc::new(table), numbers, pes, input: at(0), output: at(1), staging: at(2) };
    let run = Run::new(vec![bound]);
    std::thread::scope(|scope| {
        for node in [0, 2] {
            let (run, blocks) = (&run, &blocks);
            scope.spawn(move || {
                let stuck = run.pe(node, blocks, Duration::from_millis(300), || false, 1).unwrap_err();
                assert_eq!((stuck.waiter, stuck.peer), (node, 1));
            });
        }
    });
}
