//! Collectives on pretend PEs and on GPUs: every element of every result against the definition.

use std::sync::Arc;
use tandem_cuda::{DeviceBuffer, Downloads, Pool, Stream};
use tandem_fabric::exec::{Combine, Number, Tuning};
use tandem_fabric::plan::Operation;
use tandem_fabric::topology::{DeviceKind, Topology};
use tandem_fabric::{Collectives, Error, OneSided, Options, Symmetric, Team};

/// Runs `test` on teams of the first GPU, of the first two, and so on.
fn each_cuda(test: impl Fn(&Team)) {
    let gpus = tandem_cuda::testing::gpus();
    for count in 1..=gpus.len() {
        test(&Team::cuda(&gpus[..count], Options::default()).unwrap());
    }
}

/// A machine with as many GPUs as the team has PEs: two that are bridged, or a box with a switch.
fn joined(team: &Team) -> Topology {
    preset(if team.size() > 2 { "hgx-h200" } else { "h200-pair" })
}

/// Ways to carry out the same.
fn tunings() -> [(&'static str, Tuning); 6] {
    let usual = Tuning::default();
    let never = u64::MAX;
    [
        ("as usual", usual),
        ("messages", Tuning { messages: never, workers: 5, resident: 0, ..usual }),
        (
            "direct kernels",
            Tuning { messages: 0, direct: never, direct_pair: never, engines: never, resident: 0, ..usual },
        ),
        (
            "planned kernels",
            Tuning {
                messages: 0,
                direct: 0,
                direct_pair: 0,
                straight: false,
                engines: never,
                resident: 0,
                workers: 7,
                chunk: 1024,
                slots: 2,
                ..usual
            },
        ),
        (
            "engines",
            Tuning {
                direct: 0,
                direct_pair: 0,
                engines: 0,
                resident: 0,
                engine_chunk: 1 << 16,
                host_chunk: 1 << 14,
                ..usual
            },
        ),
        (
            "resident",
            Tuning { resident: never, resident_root: never, resident_rounds: never, resident_split: 3000, ..usual },
        ),
    ]
}

/// Around everything that could matter: none, odd, powers of two, vectors, workers.
const COUNTS: [usize; 9] = [0, 1, 2, 3, 255, 1024, 4097, 20_001, 65_537];

struct Suite<'a, T: Number> {
    team: &'a Team,
    collectives: Collectives,
    job: Vec<usize>,
    value: fn(u64) -> T,
    seed: u64,
}

impl<T: Number + PartialEq + std::fmt::Debug> Suite<'_, T> {
    /// Memory of `len` elements with other numbers on every PE, and the numbers by PE.
    fn memory(&mut self, len: usize) -> (Symmetric<T>, Vec<Vec<T>>) {
        let memory = self.team.alloc::<T>(len).unwrap();
        let mut all = Vec::new();
        for pe in 0..self.team.size() {
            self.seed = self.seed.wrapping_add(1);
            let mut state = self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let mut next = || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (self.value)(state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 3)
            };
            let numbers: Vec<T> = (0..len).map(|_| next()).collect();
            self.team.write(pe, &memory, &numbers).unwrap();
            all.push(numbers);
        }
        (memory, all)
    }

    fn expect(&self, what: &str, memory: &Symmetric<T>, wanted: &[Vec<T>]) {
        for (pe, wanted) in wanted.iter().enumerate() {
            let found = self.team.read(pe, memory).unwrap();
            if found == *wanted {
                continue;
            }
            let at = found.iter().zip(wanted).position(|(a, b)| a != b).unwrap();
            let wrong = found.iter().zip(wanted).filter(|(a, b)| a != b).count();
            panic!(
                "{what} of {:?} in {}: {wrong} of {} wrong at PE {pe}, first {at}: {:?} not {:?}",
                self.job,
                self.team.size(),
                found.len(),
                found[at],
                wanted[at]
            );
        }
    }

    fn combined(&self, inputs: &[Vec<T>], range: std::ops::Range<usize>, how: Combine) -> Vec<T> {
        let mut sum = inputs[self.job[0]][range.clone()].to_vec();
        for &pe in &self.job[1..] {
            sum.iter_mut().zip(&inputs[pe][range.clone()]).for_each(|(a, b)| *a = a.combine(*b, how));
        }
        sum
    }

    /// Every operation with `count` elements a part.
    fn all(&mut self, name: &str, count: usize, how: Combine, is_now: bool) {
        let n = self.job.len();
        let collectives = if is_now { self.collectives.now() } else { self.collectives.clone() };
        let c = &collectives;
        let job = self.job.clone();
        let root = job[count % n];
        let done = |what: &str| {
            if !is_now {
                self.team.synchronize().unwrap_or_else(|e| panic!("{name}: {what}: {e}"));
            }
        };
        let what = |op: &str| format!("{name}, {count} elements, {how:?}, {op}");
        let (one, ones) = self.memory(count);
        let (many, manys) = self.memory(count * n);

        let (to, mut wanted) = self.memory(count);
        c.broadcast(root, &one, &to).unwrap();
        done("broadcast");
        job.iter().for_each(|&pe| wanted[pe] = ones[root].clone());
        self.expect(&what("broadcast"), &to, &wanted);

        let (to, mut wanted) = self.memory(count);
        c.reduce(how, root, &one, &to).unwrap();
        done("reduce");
        wanted[root] = self.combined(&ones, 0..count, how);
        self.expect(&what("reduce"), &to, &wanted);

        let (to, mut wanted) = self.memory(count);
        // Twice: the second time finds its counters as the first has left them.
        c.all_reduce(how, &one, &to).unwrap();
        c.all_reduce(how, &one, &to).unwrap();
        done("all-reduce");
        job.iter().for_each(|&pe| wanted[pe] = self.combined(&ones, 0..count, how));
        self.expect(&what("all-reduce"), &to, &wanted);

        let (to, mut wanted) = self.memory(count * n);
        c.all_gather(&one, &to).unwrap();
        done("all-gather");
        job.iter().for_each(|&pe| wanted[pe] = job.iter().flat_map(|&u| ones[u].clone()).collect());
        self.expect(&what("all-gather"), &to, &wanted);

        let part = |i: usize| i * count..(i + 1) * count;
        let (memory, before) = self.memory(count * n);
        let mut wanted = before.clone();
        c.all_gather_in_place(&memory).unwrap();
        done("all-gather in place");
        let parts: Vec<T> = (0..n).flat_map(|i| before[job[i]][part(i)].to_vec()).collect();
        job.iter().for_each(|&pe| wanted[pe] = parts.clone());
        self.expect(&what("all-gather in place"), &memory, &wanted);

        let (to, mut wanted) = self.memory(count);
        c.reduce_scatter(how, &many, &to).unwrap();
        done("reduce-scatter");
        (0..n).for_each(|i| wanted[job[i]] = self.combined(&manys, part(i), how));
        self.expect(&what("reduce-scatter"), &to, &wanted);

        let (to, mut wanted) = self.memory(count * n);
        c.all_to_all(&many, &to).unwrap();
        done("all-to-all");
        (0..n).for_each(|i| wanted[job[i]] = job.iter().flat_map(|&u| manys[u][part(i)].to_vec()).collect());
        self.expect(&what("all-to-all"), &to, &wanted);

        if n > 1 {
            let ((to, mut wanted), (back, mut backs)) = (self.memory(count), self.memory(count));
            c.send(job[n - 1], job[0], &one, &to).unwrap();
            done("send");
            wanted[job[0]] = ones[job[n - 1]].clone();
            self.expect(&what("send"), &to, &wanted);
            // Around in a ring, and back, at the same time.
            c.together(|group| {
                for i in 0..n {
                    group.send(job[i], job[(i + 1) % n], &one, &to)?;
                    group.send(job[(i + 1) % n], job[i], &one, &back)?;
                }
                Ok(())
            })
            .unwrap();
            done("together");
            for i in 0..n {
                wanted[job[(i + 1) % n]] = ones[job[i]].clone();
                backs[job[i]] = ones[job[(i + 1) % n]].clone();
            }
            self.expect(&what("sends together"), &to, &wanted);
            self.expect(&what("sends back"), &back, &backs);
        }
        self.expect(&what("the inputs"), &one, &ones);
        self.expect(&what("the inputs"), &many, &manys);

        // In place, one after the other without waiting in between.
        let (memory, before) = self.memory(count);
        c.all_reduce(how, &memory, &memory).unwrap();
        c.broadcast(root, &memory, &memory).unwrap();
        c.reduce(how, root, &memory, &memory).unwrap();
        done("in place");
        let mut wanted = before.clone();
        job.iter().for_each(|&pe| wanted[pe] = self.combined(&before, 0..count, how));
        let sum = self.combined(&wanted, 0..count, how);
        wanted[root] = sum;
        self.expect(&what("in place"), &memory, &wanted);
    }
}

fn suite<'a, T: Number + PartialEq + std::fmt::Debug>(
    team: &'a Team,
    topology: &Topology,
    job: &[usize],
    tuning: Tuning,
    value: fn(u64) -> T,
) -> Suite<'a, T> {
    let collectives = Collectives::of(team, topology, job, tuning).unwrap();
    Suite { team, collectives, job: job.to_vec(), value, seed: job.len() as u64 }
}

/// One team, every way, kind of number and way to combine in turns.
fn every_way(team: &Team, topology: &Topology, job: &[usize], counts: &[usize]) {
    for (i, (name, tuning)) in tunings().into_iter().enumerate() {
        for (j, &count) in counts.iter().enumerate() {
            let how = [Combine::Sum, Combine::Min, Combine::Max][(i + j) % 3];
            let is_now = name == "resident" || (i + j) % 4 == 3;
            // Floating-point numbers are whole and small, so that sums are exact in every order.
            match (i + j + job.len()) % 6 {
                0 => suite::<u32>(team, topology, job, tuning, |x| x as u32).all(name, count, how, is_now),
                1 => suite::<i32>(team, topology, job, tuning, |x| x as i32).all(name, count, how, is_now),
                2 => suite::<u64>(team, topology, job, tuning, |x| x).all(name, count, how, is_now),
                3 => suite::<i64>(team, topology, job, tuning, |x| (x << 3) as i64).all(name, count, how, is_now),
                4 => suite::<f32>(team, topology, job, tuning, |x| (x % 4001) as f32 - 2000.0)
                    .all(name, count, how, is_now),
                _ => suite::<f64>(team, topology, job, tuning, |x| (x % 400_001) as f64 - 2e5)
                    .all(name, count, how, is_now),
            }
        }
    }
}

fn preset(name: &str) -> Topology {
    Topology::preset(name).unwrap()
}

#[test]
fn pretend_pes() {
    for pes in 1..=8 {
        let team = Team::sim(pes, Options::default()).unwrap();
        let job: Vec<usize> = (0..pes).collect();
        let counts = if pes < 4 { &COUNTS[..8] } else { &COUNTS[..7] };
        every_way(&team, &preset("hgx-h200"), &job, counts);
        if pes == 8 {
            every_way(&team, &preset("dgx1-v100"), &[5, 0, 3], &COUNTS[..7]);
            every_way(&team, &preset("dgx1-v100"), &[0, 1], &COUNTS[3..8]);
        }
    }
}

/// One table again and again without a wait in between, each time with other numbers, by PEs that are held up at random: halves of rings are
/// used again, and no PE gets what belongs to another round.
#[test]
fn rounds_of_messages() {
    const ROUNDS: usize = 7;
    for pes in 2..=8 {
        let team = Team::sim(pes, Options::default()).unwrap();
        let job: Vec<usize> = (0..pes).collect();
        let c = Collectives::of(&team, &preset("hgx-h200"), &job, Tuning { workers: 5, ..Tuning::default() }).unwrap();
        for part in [1, 7, 31, 4097, (512 << 10) / pes] {
            let (from, to) = (team.alloc::<u8>(part * pes).unwrap(), team.alloc::<u8>(part * pes).unwrap());
            let byte = |round: usize, from: usize, to: usize, i: usize| (round * 89 + from * 31 + to * 7 + i) as u8;
            for round in 0..ROUNDS {
                for queue in team.queues() {
                    let from = from.clone();
                    let all = move |me| (0..part * pes).map(move |i| byte(round, me, i / part, i % part)).collect();
                    let program = move |pe: &tandem_fabric::Pe| {
                        let all: Vec<u8> = all(pe.me());
                        let pause = (round * 5 + pe.me() * 3) % 7 * 100;
                        std::thread::sleep(std::time::Duration::from_micros(pause as u64));
                        pe.store(&from, &all)
                    };
                    queue.run(program).unwrap();
                }
                c.all_to_all(&from, &to).unwrap();
                for queue in team.queues() {
                    let to = to.clone();
                    let program = move |pe: &tandem_fabric::Pe| {
                        let wanted = (0..part * pes).map(|i| byte(round, i / part, pe.me(), i % part));
                        assert!(
                            pe.load(&to)?.into_iter().eq(wanted),
                            "round {round} of {part} bytes on PE {}",
                            pe.me()
                        );
                        Ok(())
                    };
                    queue.run(program).unwrap();
                }
            }
            team.synchronize().unwrap();
        }
    }
}

/// Two PEs that do not reach each other, and links that are all of PCIe.
#[test]
fn through_host_memory() {
    let options = Options { apart: vec![(0, 1)], ..Options::default() };
    let team = Team::sim(2, options.clone()).unwrap();
    every_way(&team, &preset("h200-pair"), &[0, 1], &COUNTS[..7]);
    let team = Team::sim(4, Options::default()).unwrap();
    every_way(&team, &preset("bridge-pairs"), &[0, 1, 2, 3], &COUNTS[2..6]);
    let gpus = tandem_cuda::testing::at_least(2);
    if gpus.len() > 1 {
        let team = Team::cuda(&gpus[..2], options).unwrap();
        every_way(&team, &preset("h200-pair"), &[0, 1], &COUNTS);
    }
}

/// Two pairs, each of which has its bridge, while the driver refuses everything between them.
fn pairs() -> Options {
    Options { apart: vec![(0, 2), (0, 3), (1, 2), (1, 3)], ..Options::default() }
}

/// Every way of every operation where some PEs reach each other and others do not: over bridges, NVSwitches and PCIe switches.
#[test]
fn some_are_apart() {
    let team = Team::sim(4, pairs()).unwrap();
    for (name, job) in [
        ("bridge-pairs", &[0, 1, 2, 3][..]),
        ("bridge-pairs", &[3, 0]),
        ("bridge-pairs", &[1, 2, 3]),
        ("a100-mesh4", &[0, 1, 2, 3]),
        ("dgx1-v100-4", &[0, 1, 2, 3]),
        ("hgx-h200", &[2, 1, 0, 3]),
    ] {
        every_way(&team, &preset(name), job, &COUNTS[1..6]);
    }
    // GPUs 0 and 1 of that box are below one PCIe switch.
    let team = Team::sim(3, Options { apart: vec![(0, 1)], ..Options::default() }).unwrap();
    every_way(&team, &preset("hgx-h200"), &[0, 1, 2], &COUNTS[3..6]);
    every_way(&team, &preset("dgx1-v100"), &[0, 1], &COUNTS[3..6]);
    let gpus = tandem_cuda::testing::at_least(4);
    if gpus.len() > 3 {
        let team = Team::cuda(&gpus[..4], pairs()).unwrap();
        every_way(&team, &preset("bridge-pairs"), &[0, 1, 2, 3], &COUNTS);
    }
}

/// A pair that is not refused keeps its bridge, and does not go through host memory because others do.
#[test]
fn a_pair_keeps_its_links() {
    let check = |team: &Team| {
        let topology = preset("bridge-pairs");
        let is_host = |d: usize| topology.devices()[d].kind == DeviceKind::Cpu;
        for operation in [Operation::Send, Operation::AllReduce, Operation::AllGather, Operation::AllToAll] {
            // Loads between the first two, and those from or to a CPU.
            let loads = |c: &Collectives| {
                let plan = c.plan(operation).unwrap();
                let bridge = plan.loads.iter().filter(|load| load.from + load.to == 1).count();
                (bridge, plan.loads.iter().filter(|load| is_host(load.from) || is_host(load.to)).count())
            };
            let of = |job: &[usize]| loads(&Collectives::of(team, &topology, job, Tuning::default()).unwrap());
            let (bridge, host) = of(&[0, 1]);
            assert!(bridge > 0 && host == 0, "{operation:?}: {bridge} and {host}");
            let (bridge, host) = of(&[0, 2]);
            assert!(bridge == 0 && host > 0, "{operation:?}: {bridge} and {host}");
            if operation != Operation::Send {
                let (bridge, host) = of(&[0, 1, 2, 3]);
                assert!(bridge > 0 && host > 0, "{operation:?}: {bridge} and {host}");
            }
        }
        let c = Collectives::new(team, &topology).unwrap();
        let (from, to) = (team.alloc::<u64>(1000).unwrap(), team.alloc::<u64>(1000).unwrap());
        for (target, through) in [(1, 0.0), (2, 1.0), (3, 1.0)] {
            c.send(0, target, &from, &to).unwrap();
            team.synchronize().unwrap();
            assert_eq!(c.through_host(), through, "to {target}");
        }
    };
    check(&Team::sim(4, pairs()).unwrap());
    let gpus = tandem_cuda::testing::at_least(4);
    if gpus.len() > 3 {
        check(&Team::cuda(&gpus[..4], pairs()).unwrap());
    }
}

#[test]
fn gpus() {
    each_cuda(|team| {
        let job: Vec<usize> = (0..team.size()).collect();
        every_way(team, &preset("hgx-h200"), &job, &COUNTS);
        if team.size() == 2 {
            every_way(team, &joined(team), &[1, 0], &[5000, 300_001]);
        }
        // Larger than all rings.
        suite::<u32>(team, &joined(team), &job[..job.len().min(2)], Tuning::default(), |x| x as u32).all(
            "large",
            40_000_003,
            Combine::Sum,
            false,
        );
    });
}

/// Memory of the caller's own, in the order of its streams: what was told before is seen, and what is told after sees the parts.
#[test]
fn buffers_of_the_caller() {
    each_cuda(|team| gathers_buffers(team, false));
    // Teams whose queues are the buffers' streams.
    let streams: Vec<_> =
        tandem_cuda::testing::gpus().into_iter().map(|gpu| Arc::new(Stream::new(gpu).unwrap())).collect();
    for count in 1..=streams.len() {
        gathers_buffers(&Team::cuda_on(&streams[..count], Options::default()).unwrap(), true);
    }
}

fn gathers_buffers(team: &Team, is_own: bool) {
    let all: Vec<usize> = (0..team.size()).collect();
    let backwards: Vec<usize> = all.iter().rev().copied().collect();
    let device = |queue: &tandem_fabric::Queue| queue.stream().unwrap().device();
    let pools: Vec<_> = team.queues().iter().map(|queue| Arc::new(Pool::new(device(queue)).unwrap())).collect();
    for (job, (name, tuning)) in [&all, &backwards].into_iter().flat_map(|job| tunings().map(|way| (job, way))) {
        let c = Collectives::of(team, &preset("hgx-h200"), job, tuning).unwrap();
        let buffer = |pe: usize, len: usize| -> DeviceBuffer<u8> {
            let own = team.queue(pe).stream().unwrap();
            let stream = if is_own { own.clone() } else { Arc::new(Stream::new(own.device()).unwrap()) };
            pools[pe].alloc(&stream, len, true).unwrap()
        };
        for part in [0, 1, 31, 4096, 100_001, 3 << 20] {
            let len = part * job.len();
            let range = |i: usize| i * part..(i + 1) * part;
            let mut buffers: Vec<_> = job.iter().map(|&pe| buffer(pe, len)).collect();
            for (i, buffer) in buffers.iter_mut().enumerate() {
                // Much work first, so that what does not wait is seen.
                (0..16).for_each(|value| buffer.fill(0..len, value).unwrap());
                buffer.fill(range(i), 0x80 | i as u8).unwrap();
            }
            c.all_gather_buffers(&mut buffers).unwrap();
            let found: Vec<_> = buffers.iter().map(|b| Downloads::default().start(b).unwrap()).collect();
            // Nobody reads or writes them any more when their streams get here.
            drop(buffers);
            let wanted: Vec<u8> = (0..job.len()).flat_map(|i| vec![0x80 | i as u8; part]).collect();
            for (pe, found) in job.iter().zip(found) {
                assert!(found.wait().unwrap() == wanted, "{name}, job {job:?}, parts of {part}, PE {pe}");
            }
        }
        let lengths = job.iter().enumerate().map(|(i, &pe)| buffer(pe, job.len() + i)).collect::<Vec<_>>();
        for (mut bad, why) in [(Vec::new(), "0 buffers"), (lengths, "not all of")] {
            if bad.is_empty() || team.size() > 1 {
                let error = c.all_gather_buffers(&mut bad).unwrap_err().to_string();
                assert!(error.contains(why), "{error}");
            }
        }
        if team.size() > 1 && team.name(0) != team.name(1) {
            let mut turned: Vec<_> = job.iter().rev().map(|&pe| buffer(pe, job.len())).collect();
            let error = c.all_gather_buffers(&mut turned).unwrap_err().to_string();
            assert!(error.contains(&format!("for PE {}", job[0])), "{error}");
        }
    }
}

/// Parts of host memory to all and back, in the order of the job and after what the queues were told.
#[test]
fn host_memory() {
    let test = |team: &Team, topology: &Topology, job: &[usize]| {
        let mut suite = suite::<u32>(team, topology, job, Tuning::default(), |x| x as u32);
        for count in COUNTS.into_iter().chain([300_001]) {
            let (memory, mut wanted) = suite.memory(count);
            let (back, backs) = suite.memory(count * job.len());
            let from = backs[0].clone();
            let c = suite.collectives.clone();
            // What the queues were told before must not come after.
            c.all_reduce(Combine::Sum, &memory, &memory).unwrap();
            c.upload(&from, &memory).unwrap();
            job.iter().zip(0..).for_each(|(&pe, i)| wanted[pe] = from[i * count..(i + 1) * count].to_vec());
            suite.expect("upload", &memory, &wanted);
            c.all_gather(&memory, &back).unwrap();
            let mut got = vec![0; count * job.len()];
            c.download(&memory, &mut got).unwrap();
            assert!(got == from, "download of {count} elements");
            team.synchronize().unwrap();
            let mut gathered = backs.clone();
            job.iter().for_each(|&pe| gathered[pe] = from.clone());
            suite.expect("all-gather after upload", &back, &gathered);
        }
        let memory = team.alloc::<u32>(10).unwrap();
        let c = &suite.collectives;
        let text = c.upload(&[0; 9], &memory).unwrap_err().to_string();
        assert!(text.contains(&format!("9 elements of host memory for 10 of each of {} PEs", job.len())), "{text}");
        let mut host = vec![0; 10 * job.len()];
        let recorded = team.queue(job[0]).capture(|_| c.download(&memory, &mut host));
        let text = recorded.err().unwrap().to_string();
        assert!(text.contains("download") && text.contains("cannot be recorded"), "{text}");
    };
    for pes in [1, 2, 5] {
        let team = Team::sim(pes, Options::default()).unwrap();
        test(&team, &preset("hgx-h200"), &(0..pes).rev().collect::<Vec<_>>());
    }
    let team = Team::sim(4, Options::default()).unwrap();
    test(&team, &preset("dgx1-v100"), &[2, 0]);
    each_cuda(|team| test(team, &joined(team), &(0..team.size().min(2)).collect::<Vec<_>>()));
}

/// Copies that take the links and host memory: every byte arrives whatever the share, and the share moves to where both ways take
/// the same time, from above and from below.
#[test]
fn shares_of_two_ways() {
    let topology = preset("h200-pair");
    for (root, host_share) in [(0, 0.15), (1, 1.5)] {
        let team = Team::sim(2, Options::default()).unwrap();
        let tuning = Tuning {
            engines: 0,
            messages: 0,
            direct: 0,
            direct_pair: 0,
            host_chunk: 1 << 12,
            host_share,
            ..Tuning::default()
        };
        let mut suite = suite::<u32>(&team, &topology, &[0, 1], tuning, |x| x as u32);
        let count = 300_003;
        let mut shares = Vec::new();
        for _ in 0..25 {
            let ((from, numbers), (to, mut wanted)) = (suite.memory(count), suite.memory(count));
            suite.collectives.send(root, 1 - root, &from, &to).unwrap();
            wanted[1 - root] = numbers[root].clone();
            team.synchronize().unwrap();
            suite.expect("send over two ways", &to, &wanted);
            shares.push(suite.collectives.host_share());
        }
        assert!((shares[24] - 1.0).abs() < 0.1, "{shares:?}");
        assert!((shares[0] - 1.0).abs() > 0.1, "{shares:?}");
    }
}

/// Recorded once, done three times, each time with other numbers.
#[test]
fn graphs() {
    let test = |team: &Team| {
        let topology = preset("h200-pair");
        let tuning = Tuning { engines: u64::MAX, ..Tuning::default() };
        let mut suite = suite::<u32>(team, &topology, &[0, 1], tuning, |x| x as u32);
        for count in [1000, 700_000] {
            let (from, _) = suite.memory(count);
            let (to, _) = suite.memory(count);
            let c = suite.collectives.clone();
            // The tables are made before.
            c.now().all_reduce(Combine::Sum, &from, &to).unwrap();
            c.all_reduce(Combine::Sum, &from, &to).unwrap();
            team.synchronize().unwrap();
            let mut second = None;
            let first = team.queue(0).capture(|_| {
                second = Some(team.queue(1).capture(|_| c.all_reduce(Combine::Sum, &from, &to))?);
                Ok(())
            });
            let (first, second) = (first.unwrap(), second.unwrap());
            for _ in 0..3 {
                let (source, numbers) = suite.memory(count);
                for pe in 0..2 {
                    let data = team.read(pe, &source).unwrap();
                    team.write(pe, &from, &data).unwrap();
                }
                team.queue(0).launch(&first).unwrap();
                team.queue(1).launch(&second).unwrap();
                team.synchronize().unwrap();
                let sum = suite.combined(&numbers, 0..count, Combine::Sum);
                suite.expect("graphs", &to, &[sum.clone(), sum]);
            }
        }
    };
    // PEs that do not reach each other: through host memory.
    let apart = Options { apart: vec![(0, 1)], ..Options::default() };
    test(&Team::sim(2, Options::default()).unwrap());
    test(&Team::sim(2, apart.clone()).unwrap());
    let gpus = tandem_cuda::testing::at_least(2);
    if gpus.len() > 1 {
        test(&Team::cuda(&gpus[..2], Options::default()).unwrap());
        test(&Team::cuda(&gpus[..2], apart).unwrap());
    }
}

/// What makes no sense is refused before anything happens, and says why.
#[test]
fn bad_calls() {
    let team = Team::sim(3, Options::default()).unwrap();
    let topology = preset("hgx-h200");
    let text = |e: Error| e.to_string();
    let short = Topology::preset("h200-pair").unwrap();
    assert!(text(Collectives::new(&team, &short).err().unwrap()).contains("the topology has 2 GPUs, the team 3 PEs"));
    for (job, why) in [(&[][..], "at least one"), (&[3], "no PE 3"), (&[1, 2, 1], "PE 1 is named twice")] {
        let error = text(Collectives::of(&team, &topology, job, Tuning::default()).err().unwrap());
        assert!(error.contains(why), "{error}");
    }
    let c = Collectives::of(&team, &topology, &[0, 2], Tuning::default()).unwrap();
    let (a, b) = (team.alloc::<u32>(100).unwrap(), team.alloc::<u32>(100).unwrap());
    let other = Team::sim(3, Options::default()).unwrap();
    let foreign = other.alloc::<u32>(100).unwrap();
    let f = team.alloc::<f32>(100).unwrap();
    for (error, why) in [
        (c.broadcast(1, &a, &b), "PE 1, is not in the job"),
        (c.broadcast(0, &a, &b.slice(0..99).unwrap()), "100 elements in and 99 out"),
        (c.all_gather(&a, &b), "100 elements in and 100 out"),
        (c.all_gather_in_place(&a.slice(0..99).unwrap()), "99 elements of 4 bytes in 2 parts"),
        (c.all_gather_buffers::<u32>(&mut []), "0 buffers"),
        (c.all_to_all(&a.slice(0..99).unwrap(), &b.slice(0..99).unwrap()), "99 elements in"),
        (c.all_to_all(&a, &a), "overlap"),
        (c.all_reduce(Combine::Sum, &a.slice(0..50).unwrap(), &a.slice(40..90).unwrap()), "overlap"),
        (c.broadcast(0, &foreign, &a), "another world"),
        (c.send(1, 1, &a, &b), "two different PEs"),
        (c.send(0, 3, &a, &b), "two different PEs"),
        (
            c.together(|g| {
                g.all_reduce(Combine::Sum, &a, &b)?;
                g.all_reduce(Combine::Sum, &f, &f)
            }),
            "combine alike",
        ),
    ] {
        let error = text(error.unwrap_err());
        assert!(error.contains(why), "{error:?} does not say {why:?}");
    }
    team.synchronize().unwrap();
    assert!(team.read(0, &b).unwrap().iter().all(|&x| x == 0), "something has happened");
}
