//! How long collectives of two GPUs take, from the call to completion on both, from one host thread; every result is checked.
//! `TANDEM_EXEC_BENCH=1` measures the choices of `exec::Tuning` too. Machines with fewer than two GPUs are passed over.

use std::time::Instant;
use tandem_fabric::exec::{Combine, Tuning};
use tandem_fabric::topology::Topology;
use tandem_fabric::{Collectives, Options, Symmetric, Team};

#[derive(Clone, Copy, PartialEq)]
enum What {
    Broadcast,
    Send,
    AllReduce,
    AllGather,
    ReduceScatter,
    AllToAll,
    Exchange,
}

use What::{AllGather, AllReduce, AllToAll, Broadcast, Exchange, ReduceScatter, Send};

struct Bench {
    team: Team,
    from: Symmetric<u32>,
    to: Symmetric<u32>,
    data: Vec<Vec<u32>>,
}

impl Bench {
    fn call(&self, c: &Collectives, what: What, from: &Symmetric<u32>, to: &Symmetric<u32>) {
        let done = match what {
            Broadcast => c.broadcast(0, from, to),
            Send => c.send(0, 1, from, to),
            AllReduce => c.all_reduce(Combine::Sum, from, to),
            AllGather => c.all_gather(from, to),
            ReduceScatter => c.reduce_scatter(Combine::Sum, from, to),
            AllToAll => c.all_to_all(from, to),
            Exchange => c.together(|g| {
                g.send(0, 1, from, to)?;
                g.send(1, 0, from, to)
            }),
        };
        done.unwrap();
    }

    /// Median microseconds of `bytes` by the convention of nccl-tests: the larger of input and output.
    fn time(&self, tuning: Tuning, what: What, bytes: usize, is_now: bool) -> f64 {
        let topology = Topology::preset("h200-pair").unwrap();
        let queued = Collectives::of(&self.team, &topology, &[0, 1], tuning).unwrap();
        let c = if is_now { queued.now() } else { queued };
        let len = bytes / 4;
        let (ins, outs) = match what {
            AllGather => (len / 2, len),
            ReduceScatter => (len, len / 2),
            _ => (len, len),
        };
        let (from, to) = (self.from.slice(0..ins).unwrap(), self.to.slice(0..outs).unwrap());
        for pe in 0..2 {
            // What was there before must not pass for a result.
            let ones = vec![!0u32; outs.min(1 << 20)];
            // Of large memory a part everywhere.
            for at in (0..outs).step_by(if outs > 1 << 25 { 1 << 24 } else { 1 << 20 }) {
                let end = outs.min(at + (1 << 20));
                self.team.write(pe, &to.slice(at..end).unwrap(), &ones[..end - at]).unwrap();
            }
        }
        let reps = (200_000_000 / (bytes + 100_000)).clamp(12, 1000);
        let mut times = Vec::new();
        for i in 0..reps + reps / 4 {
            let begun = Instant::now();
            self.call(&c, what, &from, &to);
            if !is_now {
                self.team.synchronize().unwrap();
            }
            if i >= reps / 4 {
                times.push(begun.elapsed().as_secs_f64() * 1e6);
            }
        }
        self.check(what, ins, outs, &to);
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }

    fn check(&self, what: What, ins: usize, outs: usize, to: &Symmetric<u32>) {
        let [a, b] = [&self.data[0][..ins], &self.data[1][..ins]];
        let half = outs / 2;
        for pe in 0..2 {
            let found = self.team.read(pe, to).unwrap();
            let equal = |x: &[u32], y: &[u32]| x == y;
            let sum = |found: &[u32], a: &[u32], b: &[u32]| {
                found.iter().zip(a).zip(b).all(|((f, a), b)| *f == a.wrapping_add(*b))
            };
            let is_right = match what {
                Broadcast => equal(&found, a),
                Send => pe == 0 || equal(&found, a),
                AllReduce => sum(&found, a, b),
                AllGather => equal(&found[..half], a) && equal(&found[half..], b),
                ReduceScatter => sum(&found, &a[pe * outs..(pe + 1) * outs], &b[pe * outs..(pe + 1) * outs]),
                AllToAll => {
                    let part = pe * half..(pe + 1) * half;
                    equal(&found[..half], &a[part.clone()]) && equal(&found[half..], &b[part])
                }
                Exchange => equal(&found, if pe == 0 { b } else { a }),
            };
            assert!(is_right, "a wrong result at PE {pe}");
        }
    }
}

fn random(len: usize, seed: u64) -> Vec<u32> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 16) as u32
    };
    (0..len).map(|_| next()).collect()
}

#[test]
fn figures() {
    let gpus = tandem_cuda::testing::gpus();
    if gpus.len() < 2 {
        eprintln!("passed over: fewer than two GPUs");
        return;
    }
    let most = 1 << 28;
    let team = Team::cuda(&gpus[..2], Options::default()).unwrap();
    let (from, to) = (team.alloc::<u32>(most).unwrap(), team.alloc::<u32>(most).unwrap());
    let data: Vec<Vec<u32>> = (0..2).map(|pe| random(most, 0x9e37_79b9_7f4a_7c15 + pe)).collect();
    (0..2).for_each(|pe| team.write(pe, &from, &data[pe]).unwrap());
    let bench = Bench { team, from, to, data };
    let usual = Tuning::default();
    let all = [
        ("broadcast", Broadcast),
        ("send", Send),
        ("all-reduce", AllReduce),
        ("all-gather", AllGather),
        ("reduce-scatter", ReduceScatter),
        ("all-to-all", AllToAll),
        ("send both ways", Exchange),
    ];
    let sizes = [4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20, 256 << 20, 1 << 30];
    let rate = |bytes: usize, us: f64| bytes as f64 / us / 1e3;
    println!("{:<16}{:>12}{:>12}{:>10}{:>12}{:>10}", "now | queued", "bytes", "us", "GB/s", "us", "GB/s");
    for (name, what) in all {
        for bytes in sizes {
            let (now, queued) = (bench.time(usual, what, bytes, true), bench.time(usual, what, bytes, false));
            let (a, b) = (rate(bytes, now), rate(bytes, queued));
            println!("{name:<16}{bytes:>12}{now:>12.2}{a:>10.1}{queued:>12.2}{b:>10.1}");
        }
    }
    if std::env::var("TANDEM_EXEC_BENCH").is_err() {
        return;
    }
    let show = |label: &str, tuning: Tuning, what: What, bytes: usize| {
        let us = bench.time(tuning, what, bytes, true);
        println!("{label:<40}{bytes:>12}{us:>12.2}{:>10.1}", rate(bytes, us));
    };
    for bytes in [16 << 20, 64 << 20, 256 << 20, 1 << 30] {
        for (name, what) in [("broadcast", Broadcast), ("all-reduce", AllReduce), ("reduce-scatter", ReduceScatter)] {
            for lanes in [64, 128] {
                let planned = Tuning { direct: 0, lanes, engines: u64::MAX, resident: 0, ..usual };
                show(&format!("{name} planned kernels, {lanes} lanes"), planned, what, bytes);
                let direct = Tuning { direct: u64::MAX, ..planned };
                show(&format!("{name} direct kernels, {lanes} lanes"), direct, what, bytes);
            }
            let resident = Tuning { resident: u64::MAX, ..usual };
            show(&format!("{name} resident"), resident, what, bytes);
            for (chunk, slots) in [(4 << 20, 4), (8 << 20, 4), (16 << 20, 3), (32 << 20, 2)] {
                let engines = Tuning { engines: 0, resident: 0, engine_chunk: chunk, engine_slots: slots, ..usual };
                if what == AllReduce {
                    show(&format!("{name} engines, {slots} x {} MiB", chunk >> 20), engines, what, bytes);
                }
            }
            if what == Broadcast {
                let engines = Tuning { engines: 0, resident: 0, ..usual };
                show("broadcast engines, host path", engines, what, bytes);
                show("broadcast engines alone", Tuning { through_host: false, ..engines }, what, bytes);
            }
        }
    }
}
