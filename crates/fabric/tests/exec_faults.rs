//! Collectives in which one PE does not come: the fault names it and who waited, the team is unusable and says so, the process and
//! other teams live. On pretend PEs, and on the first two GPUs in each way of carrying out.

use std::time::{Duration, Instant};
use tandem_fabric::exec::{Combine, Tuning};
use tandem_fabric::topology::Topology;
use tandem_fabric::{Atomic, Collectives, Compare, Error, Fault, FaultKind, OneSided, Options, Symmetric, Team};

/// Of the team that has the fault.
const TIMEOUT: Duration = Duration::from_millis(300);
/// Of the teams that hold a PE up: whatever a test does, it is let go then.
const LONGEST_HOLD: Duration = Duration::from_secs(4);
/// No test may take longer.
const MOST: Duration = Duration::from_secs(10);

const NEVER: u64 = u64::MAX;

fn options(timeout: Duration) -> Options {
    Options { timeout, ..Options::default() }
}

fn collectives(team: &Team, tuning: Tuning) -> Collectives {
    let c = Collectives::of(team, &Topology::preset("h200-pair").unwrap(), &[0, 1], tuning).unwrap();
    // What was loaded and written for it is done.
    team.synchronize().unwrap();
    c
}

fn fault(error: Error) -> Fault {
    match error {
        Error::Fault(fault) => *fault,
        other => panic!("{other:?} is no fault"),
    }
}

/// Runs `test` with a maker of teams of two: of pretend PEs, and of GPUs where there are two. One test at a time, as in `teams`.
fn each(test: impl Fn(&dyn Fn(Options) -> Team)) {
    test(&|options| Team::sim(2, options).unwrap());
    each_cuda(test);
}

fn each_cuda(test: impl Fn(&dyn Fn(Options) -> Team)) {
    let gpus = tandem_cuda::testing::at_least(2);
    let _alone = tandem_cuda::testing::alone();
    if gpus.len() > 1 {
        test(&|options| Team::cuda(&gpus[..2], options).unwrap());
    }
}

/// The team's fault, once there is one.
fn await_fault(team: &Team) -> Fault {
    let begun = Instant::now();
    loop {
        if let Err(error) = team.check() {
            return fault(error);
        }
        assert!(begun.elapsed() < LONGEST_HOLD, "no fault");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A fault of this kind between these, in a text that names both.
fn expect_named(found: &Fault, kind: FaultKind, waiter: usize, peer: usize) {
    assert_eq!((found.kind, found.waiter, found.peer), (kind, waiter, Some(peer)), "{found}");
    let text = found.to_string();
    assert!(text.starts_with(&format!("PE {waiter} waited in vain for PE {peer}")), "{text}");
}

/// Whatever is asked of the team, it says the same.
fn expect_refused(c: &Collectives, memory: &[Symmetric<u32>; 2], found: &Fault) {
    let (team, [a, b]) = (c.team(), memory);
    let mut host = vec![0; 2 * a.len()];
    for error in [
        team.check().err(),
        c.all_reduce(Combine::Sum, a, b).err(),
        c.now().all_reduce(Combine::Sum, a, b).err(),
        c.send(0, 1, a, b).err(),
        c.now().send(1, 0, a, b).err(),
        c.upload(&host, a).err(),
        c.download(a, &mut host).err(),
        team.queue(0).put(a, b, 1).err(),
        team.barrier().err(),
        team.alloc::<u8>(1).err(),
        team.split(&[0]).err(),
        team.read(0, a).err(),
    ] {
        assert_eq!(fault(error.expect("the team is unusable")), *found);
    }
}

/// A team of the same PEs that is opened now does what it is told, in every way.
fn expect_works(team: &Team) {
    for tuning in [Tuning::default(), messages(), fused(), rings(), engines()] {
        let c = collectives(team, tuning);
        let (from, to) = (team.alloc::<u32>(1000).unwrap(), team.alloc::<u32>(1000).unwrap());
        for c in [c.now(), c.clone(), c.now()] {
            for pe in 0..2 {
                team.write(pe, &from, &(0..1000).map(|i| i + pe as u32).collect::<Vec<_>>()).unwrap();
                team.write(pe, &to, &[0; 1000]).unwrap();
            }
            c.all_reduce(Combine::Sum, &from, &to).unwrap();
            team.synchronize().unwrap();
            let sum: Vec<u32> = (0..1000).map(|i| 2 * i + 1).collect();
            assert_eq!([team.read(0, &to).unwrap(), team.read(1, &to).unwrap()], [sum.clone(), sum]);
        }
    }
}

fn messages() -> Tuning {
    Tuning { messages: NEVER, resident: 0, engines: NEVER, ..Tuning::default() }
}

fn fused() -> Tuning {
    Tuning { messages: 0, direct: NEVER, direct_pair: NEVER, engines: NEVER, resident: 0, ..Tuning::default() }
}

/// Fused kernels by a plan.
fn rings() -> Tuning {
    Tuning { direct: 0, direct_pair: 0, workers: 4, chunk: 1024, slots: 2, ..fused() }
}

/// Copy engines.
fn engines() -> Tuning {
    Tuning { engines: 0, resident: 0, ..Tuning::default() }
}

/// A word that work of a team waits for, until [`Hold::release`] or the team's timeout.
struct Hold {
    team: Team,
    word: Symmetric<u64>,
    pe: usize,
}

impl Hold {
    /// From here on the queue of the team's PE `pe` waits.
    fn new(team: Team, pe: usize) -> Self {
        let word = team.alloc(1).unwrap();
        team.queue(pe).wait_until(&word, Compare::Eq, 1, None).unwrap();
        Hold { team, word, pe }
    }

    /// Lets it go. The team has waited no longer than it may, and is as usable as before.
    fn release(self) {
        self.team.write(self.pe, &self.word, &[1]).unwrap();
        self.team.synchronize().unwrap();
        self.team.atomic(self.pe, &self.word, Atomic::Inc).unwrap();
        assert_eq!(self.team.read(self.pe, &self.word).unwrap(), [2]);
    }
}

/// What goes through queues, in kernels of messages and fused ones: one PE's queue is held up by another team's.
#[test]
fn a_queue_that_is_held_up() {
    each(|make| {
        for (tuning, name) in [(messages(), "messages"), (fused(), "fused"), (rings(), "rings")] {
            for (away, is_warm) in [(0, false), (1, true)] {
                let begun = Instant::now();
                let team = make(options(TIMEOUT));
                let c = collectives(&team, tuning);
                let memory = [(); 2].map(|()| team.alloc::<u32>(5000).unwrap());
                // With tables that are there, and rounds that were done; and without.
                for _ in 0..if is_warm { 3 } else { 0 } {
                    c.now().all_reduce(Combine::Sum, &memory[0], &memory[1]).unwrap();
                }
                let hold = Hold::new(make(options(LONGEST_HOLD)), away);
                team.queue(away).wait(&hold.team.queue(away).record().unwrap()).unwrap();
                let asked = Instant::now();
                c.all_reduce(Combine::Sum, &memory[0], &memory[1]).unwrap();
                let found = await_fault(&team);
                assert!(asked.elapsed() >= TIMEOUT, "{name}: {:?}", asked.elapsed());
                expect_named(&found, FaultKind::Wait, 1 - away, away);
                // Who waited is through with it, while the other is still held up.
                assert_eq!(fault(team.queue(1 - away).synchronize().unwrap_err()), found);
                expect_refused(&c, &memory, &found);
                hold.release();
                // What the one that was away finds when it comes does not change the fault.
                assert_eq!(fault(team.synchronize().unwrap_err()), found);
                expect_refused(&c, &memory, &found);
                expect_works(&make(Options::default()));
                drop((c, memory, team));
                assert!(begun.elapsed() < MOST, "{name}: {:?}", begun.elapsed());
            }
        }
    });
}

/// A queue is held up while the host waits for the queues, which end when the other team gives up.
#[test]
fn a_queue_that_is_held_up_while_the_host_waits() {
    each(|make| {
        let begun = Instant::now();
        let team = make(options(TIMEOUT));
        let c = collectives(&team, messages());
        let memory = [(); 2].map(|()| team.alloc::<u32>(5000).unwrap());
        let hold = Hold::new(make(options(4 * TIMEOUT)), 1);
        team.queue(1).wait(&hold.team.queue(1).record().unwrap()).unwrap();
        let found = fault(c.now().all_reduce(Combine::Sum, &memory[0], &memory[1]).unwrap_err());
        expect_named(&found, FaultKind::Wait, 0, 1);
        expect_refused(&c, &memory, &found);
        // The one that held it up had waited for nobody in particular.
        assert_eq!((fault(hold.team.check().unwrap_err())).peer, None);
        expect_works(&make(Options::default()));
        drop((c, memory, team, hold));
        assert!(begun.elapsed() < MOST, "{:?}", begun.elapsed());
    });
}

/// What goes by copy engines, which end no wait by themselves: the host does, where it waits for the copies or for a queue behind them.
#[test]
fn a_queue_that_is_held_up_before_copy_engines() {
    each_cuda(|make| {
        for (away, is_now) in [(0, true), (1, true), (0, false), (1, false)] {
            let begun = Instant::now();
            let team = make(options(TIMEOUT));
            let c = collectives(&team, engines());
            let memory = [(); 2].map(|()| team.alloc::<u32>(1 << 20).unwrap());
            c.now().all_reduce(Combine::Sum, &memory[0], &memory[1]).unwrap();
            let hold = Hold::new(make(options(LONGEST_HOLD)), away);
            let held = hold.team.queue(away).record().unwrap();
            team.queue(away).wait(&held).unwrap();
            let asked = Instant::now();
            let error = match is_now {
                true => c.now().all_reduce(Combine::Sum, &memory[0], &memory[1]).unwrap_err(),
                false => {
                    c.all_reduce(Combine::Sum, &memory[0], &memory[1]).unwrap();
                    team.synchronize().unwrap_err()
                }
            };
            let (found, took) = (fault(error), asked.elapsed());
            assert!(took >= TIMEOUT && took < LONGEST_HOLD / 2 && !held.is_done().unwrap(), "{took:?}");
            expect_named(&found, FaultKind::Copy, 1 - away, away);
            expect_refused(&c, &memory, &found);
            hold.release();
            drop((c, memory, team));
            expect_works(&make(Options::default()));
            assert!(begun.elapsed() < MOST, "{:?}", begun.elapsed());
        }
    });
}

/// A GPU all of whose multiprocessors are taken: by kernels of other teams with a block for each place, and more, that wait for a PE
/// that is held up. What is launched later does not begin.
struct Full {
    team: Team,
    parts: Vec<Collectives>,
    word: Symmetric<u64>,
    pe: usize,
    _memory: [Symmetric<u8>; 2],
}

impl Full {
    fn new(make: &dyn Fn(Options) -> Team, gpu: usize) -> Self {
        let begun = Instant::now();
        let (team, pe) = (make(options(LONGEST_HOLD)), 1 - gpu);
        let tuning = Tuning { workers: 1024, through_host: false, ..fused() };
        // Nothing may be allocated or loaded once kernels wait, as that may wait for them.
        let word = team.alloc(1).unwrap();
        let memory = [(); 2].map(|()| team.alloc::<u8>(64 << 20).unwrap());
        let send = |c: &Collectives| c.send(gpu, pe, &memory[0], &memory[1]).unwrap();
        // Each has as many blocks as the GPU holds of the largest kernel, which is a fourth of what it holds of any at the least.
        let parts: Vec<Collectives> = (0..4).map(|_| collectives(&team.split(&[0, 1]).unwrap(), tuning)).collect();
        for c in &parts {
            send(c);
            c.team().synchronize().unwrap();
        }
        let filled = Instant::now();
        for c in &parts {
            c.team().queue(pe).wait_until(&word, Compare::Eq, 1, None).unwrap();
            send(c);
        }
        std::thread::sleep(Duration::from_millis(50));
        // It would be empty again.
        assert!(filled.elapsed() < LONGEST_HOLD / 2, "filled in {:?} of {:?}", filled.elapsed(), begun.elapsed());
        Full { team, parts, word, pe, _memory: memory }
    }

    fn release(self) {
        self.team.write(self.pe, &self.word, &[1]).unwrap();
        self.parts.iter().for_each(|c| c.team().synchronize().unwrap());
    }
}

/// Small data that the host waits for, in kernels that stay: one does not begin, as its GPU is full.
#[test]
fn a_kernel_that_does_not_answer() {
    each_cuda(|make| {
        // PEs of one GPU have no resident kernels where it does not hold all of them.
        let team = make(options(TIMEOUT));
        if team.name(0) == team.name(1) {
            return;
        }
        drop(team);
        let usual = Tuning { linger_ns: 50_000, ..Tuning::default() };
        let split = Tuning { resident: NEVER, resident_split: 1 << 20, ..usual };
        for (tuning, len, is_copy) in [(usual, 1000, false), (split, 1 << 20, true)] {
            for away in [0, 1] {
                let begun = Instant::now();
                let team = make(options(TIMEOUT));
                let c = collectives(&team, tuning);
                let memory = [(); 2].map(|()| team.alloc::<u32>(len).unwrap());
                let call = || match is_copy {
                    true => c.now().send(0, 1, &memory[0], &memory[1]),
                    false => c.now().all_reduce(Combine::Sum, &memory[0], &memory[1]),
                };
                // What is needed is made, and the kernels have ended again.
                (0..3).for_each(|_| call().unwrap());
                assert_eq!(c.through_host() > 0.0, is_copy, "{}", c.through_host());
                let full = Full::new(make, away);
                let asked = Instant::now();
                let found = fault(call().unwrap_err());
                let took = asked.elapsed();
                // Who waits for another has as long again.
                assert!(took >= TIMEOUT && took < LONGEST_HOLD, "{took:?}");
                // The sender is named where it is away, though the receiver did not answer either.
                expect_named(&found, FaultKind::Command, 1 - away, away);
                assert!(found.wanted > found.seen && found.seen > 0, "{found}");
                expect_refused(&c, &memory, &found);
                full.release();
                // Memory that it would have written can go.
                drop(memory);
                assert_eq!(fault(team.synchronize().unwrap_err()), found);
                expect_works(&make(Options::default()));
                drop((c, team));
                assert!(begun.elapsed() < MOST, "{:?}", begun.elapsed());
            }
        }
    });
}

/// Of three PEs two wait, the one for the other: it is the one that does not come that is named.
#[test]
fn a_pe_that_does_not_come() {
    let timeout = Duration::from_millis(200);
    let team = Team::sim(3, options(timeout)).unwrap();
    let c = Collectives::new(&team, &Topology::preset("hgx-h200").unwrap()).unwrap();
    let (a, b) = (team.alloc::<u32>(1000).unwrap(), team.alloc::<u32>(1000).unwrap());
    team.queue(1)
        .run(move |_| {
            std::thread::sleep(8 * timeout);
            Ok(())
        })
        .unwrap();
    c.all_reduce(Combine::Sum, &a, &b).unwrap();
    assert_eq!(fault(team.synchronize().unwrap_err()).peer, Some(1));
    assert!(c.all_reduce(Combine::Sum, &a, &b).is_err() && team.check().is_err());
    // Another team is as it was.
    let other = Team::sim(2, Options::default()).unwrap();
    let c = Collectives::new(&other, &Topology::preset("hgx-h200").unwrap()).unwrap();
    let a = other.alloc::<u32>(1000).unwrap();
    c.now().all_reduce(Combine::Sum, &a, &a).unwrap();
}
