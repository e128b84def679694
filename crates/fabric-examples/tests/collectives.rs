//! Collectives inside kernels, on GPUs: every kind of number, operation, scope and size against sums over all inputs, and many rounds of the
//! smallest ones.

#[path = "../../fabric/tests/naive/mod.rs"]
mod naive;
#[path = "../../fabric/tests/teams/mod.rs"]
mod teams;

use naive::{bits, operations, random, sums, Naive};
use std::time::Instant;
use tandem_cuda::Grid;
use tandem_fabric::exec::{Bf16, Combine, F16};
use tandem_fabric::kernels::{inside, Inside, Scope};
use tandem_fabric::{ffi as fabric, Error, FaultKind, Options, Symmetric, Team};
use tandem_fabric_examples::{collective, ffi};
use teams::{each_cuda, numbers};

const LENGTHS: [usize; 16] = [0, 1, 2, 3, 7, 8, 31, 32, 33, 63, 65, 129, 257, 1025, 4099, 70_001];
const SCOPES: [(i32, u32); 5] = [
    (fabric::TANDEM_SCOPE_THREAD, 1),
    (fabric::TANDEM_SCOPE_WARP, 32),
    (fabric::TANDEM_SCOPE_BLOCK, 32),
    (fabric::TANDEM_SCOPE_BLOCK, 100),
    (fabric::TANDEM_SCOPE_BLOCK, 512),
];

/// A kernel of one block on each PE does it; the results by PE, of so many elements.
struct Player<'a, T: bytemuck::Pod> {
    team: &'a Team,
    kind: i32,
    from: Symmetric<T>,
    to: Symmetric<T>,
    done: Symmetric<u64>,
    calls: u64,
}

impl<'a, T: bytemuck::Pod> Player<'a, T> {
    fn new(team: &'a Team, kind: i32) -> Self {
        let most = team.size() * LENGTHS[LENGTHS.len() - 1];
        let alloc = || team.alloc(most).unwrap();
        Player { team, kind, from: alloc(), to: alloc(), done: team.alloc(1).unwrap(), calls: 0 }
    }

    #[allow(clippy::too_many_arguments)] // of a test
    fn play(
        &mut self,
        what: i32,
        how: i32,
        root: usize,
        inputs: &[Vec<T>],
        count: usize,
        out: usize,
        scope: (i32, u32),
    ) -> Vec<Vec<T>> {
        for (pe, input) in inputs.iter().enumerate() {
            self.team.write(pe, &self.from.slice(0..input.len()).unwrap(), input).unwrap();
        }
        let args = |pe: usize| ffi::tandem_collective_args {
            to: self.team.queue(pe).address(&self.to).unwrap(),
            from: self.team.queue(pe).address(&self.from).unwrap(),
            done: self.team.queue(pe).address(&self.done).unwrap(),
            count: count as u64,
            what,
            how,
            scope: scope.0,
            root: root as u32,
        };
        let grid = Grid { blocks: 1, threads: scope.1, shared_bytes: 0 };
        // SAFETY: these are the kernel's arguments; all is memory of the team, and as long as the kernel touches.
        unsafe { self.team.launch(collective(self.kind).unwrap(), grid, args).unwrap() };
        self.team.synchronize().unwrap();
        self.calls += 1;
        let read = |pe: usize| {
            assert_eq!(self.team.read(pe, &self.done).unwrap(), [self.calls], "PE {pe}");
            self.team.read(pe, &self.to.slice(0..out).unwrap()).unwrap()
        };
        (0..self.team.size()).map(read).collect()
    }
}

fn kind<T: Naive>(team: &Team) {
    let n = team.size();
    let mut player = Player::<T>::new(team, T::KIND as i32);
    let mut dice = numbers::<u32>(10_000, n as u64).into_iter().map(|x| (x >> 8) as usize);
    let mut below = |bound: usize| dice.next().unwrap() % bound;
    for (round, len) in LENGTHS.into_iter().enumerate() {
        let inputs: Vec<Vec<T>> = (0..n).map(|pe| random(n * len, (900 * round + pe) as u64)).collect();
        let firsts: Vec<Vec<T>> = inputs.iter().map(|input| input[..len].to_vec()).collect();
        // By one thread much takes long.
        let mut scope = || SCOPES[if len > 5000 { 1 + below(4) } else { below(5) }];
        let all: Vec<Combine> = operations::<T>().collect();
        for k in [round, round + 1] {
            let (how, who) = (all[k % all.len()], scope());
            let found = player.play(fabric::TANDEM_INSIDE_ALL_REDUCE, how as i32, 0, &firsts, len, len, who);
            let wanted = sums(&firsts, how);
            found
                .iter()
                .for_each(|found| assert!(bits(found) == wanted, "{how:?} of {len} {:?} by {who:?}, {n} PEs", T::KIND));
        }
        let (root, who) = (round % n, scope());
        let found = player.play(fabric::TANDEM_INSIDE_BROADCAST, 0, root, &firsts, len, len, who);
        found.iter().for_each(|found| assert!(bits(found) == bits(&firsts[root]), "broadcast of {len} by {who:?}"));
        let who = scope();
        let found = player.play(fabric::TANDEM_INSIDE_ALL_GATHER, 0, 0, &firsts, len, n * len, who);
        found.iter().for_each(|found| assert!(bits(found) == bits(&firsts.concat()), "all-gather of {len} by {who:?}"));
        let who = scope();
        let found = player.play(fabric::TANDEM_INSIDE_ALL_TO_ALL, 0, 0, &inputs, len, n * len, who);
        for (me, found) in found.iter().enumerate() {
            let wanted: Vec<T> = inputs.iter().flat_map(|input| &input[me * len..][..len]).copied().collect();
            assert!(bits(found) == bits(&wanted), "all-to-all of {len} by {who:?}, PE {me}");
        }
    }
}

/// Numbers modulo 2^255 - 19, of 8 bits at a time.
fn field_sum(inputs: &[[u64; 4]]) -> [u64; 4] {
    let mut digits = [0u64; 33];
    for input in inputs {
        let bytes: Vec<u8> = input.iter().flat_map(|limb| limb.to_le_bytes()).collect();
        bytes.iter().zip(&mut digits).for_each(|(byte, digit)| *digit += u64::from(*byte));
    }
    // What is above 2^255 counts 19 times; twice is enough for so few.
    for _ in 0..4 {
        for i in 0..32 {
            digits[i + 1] += digits[i] >> 8;
            digits[i] &= 0xff;
        }
        let above = digits[32] << 1 | digits[31] >> 7;
        digits[31] &= 0x7f;
        digits[32] = 0;
        digits[0] += 19 * above;
    }
    let limb = |i: usize| (0..8).fold(0, |limb, k| limb | digits[8 * i + k] << (8 * k));
    let sum = [0, 1, 2, 3].map(limb);
    // 2^255 - 19 itself and what is above it, up to 2^255 - 1.
    let is_above = sum[3] == u64::MAX >> 1 && sum[2] == u64::MAX && sum[1] == u64::MAX && sum[0] >= u64::MAX - 18;
    if is_above {
        [sum[0] - (u64::MAX - 18), 0, 0, 0]
    } else {
        sum
    }
}

#[test]
fn collectives_agree_with_naive_models() {
    each_cuda(&Options::default(), |team| {
        kind::<u64>(team);
        kind::<F16>(team);
        kind::<f32>(team);
        if team.size() == 2 || team.size() == 3 || team.size() == 8 {
            kind::<u8>(team);
            kind::<i8>(team);
            kind::<u16>(team);
            kind::<i16>(team);
            kind::<u32>(team);
            kind::<i32>(team);
            kind::<i64>(team);
            kind::<Bf16>(team);
            kind::<f64>(team);
        }
        let mut player = Player::<[u64; 4]>::new(team, ffi::TANDEM_COLLECTIVE_FIELD);
        for (len, scope) in [(1, SCOPES[0]), (8, SCOPES[1]), (9, SCOPES[3]), (3000, SCOPES[4])] {
            let one = |pe: usize| {
                let words: Vec<u64> = numbers(4 * len, 70 + pe as u64);
                let mut limbs: Vec<[u64; 4]> =
                    words.chunks_exact(4).map(|limb| [limb[0], limb[1], limb[2], limb[3] >> 2]).collect();
                // Close below the modulus too.
                limbs[0] = [u64::MAX - 19, u64::MAX, u64::MAX, u64::MAX >> 1];
                limbs
            };
            let inputs: Vec<Vec<[u64; 4]>> = (0..team.size()).map(one).collect();
            let found = player.play(fabric::TANDEM_INSIDE_ALL_REDUCE, 0, 0, &inputs, len, len, scope);
            for i in 0..len {
                let wanted = field_sum(&inputs.iter().map(|input| input[i]).collect::<Vec<_>>());
                found.iter().for_each(|found| assert_eq!(found[i], wanted, "element {i} of {len}"));
            }
        }
    });
}

#[test]
fn sums_of_the_oracle_are_right() {
    let p = [u64::MAX - 18, u64::MAX, u64::MAX, u64::MAX >> 1];
    let less = [p[0] - 1, p[1], p[2], p[3]];
    assert_eq!(field_sum(&[p]), [0; 4]);
    assert_eq!(field_sum(&[less]), less);
    assert_eq!(field_sum(&[less, [2, 0, 0, 0]]), [1, 0, 0, 0]);
    assert_eq!(field_sum(&[less; 8]), [p[0] - 8, p[1], p[2], p[3]]);
    assert_eq!(field_sum(&[[5, 6, 7, 8], [u64::MAX, 1, 0, 0]]), [4, 8, 7, 8]);
}

/// Every round has other numbers, and is looked at by the kernels.
#[test]
fn many_rounds_bring_what_was_sent() {
    each_cuda(&Options::default(), |team| {
        let words: Symmetric<u64> = team.alloc(2 * team.size() + 1).unwrap();
        for what in Inside::ALL {
            for scope in [Scope::Thread, Scope::Warp, Scope::Block] {
                let is_long = what == Inside::AllReduce && scope == Scope::Warp && [2, 8].contains(&team.size());
                let rounds = if is_long { 1_000_000 } else { 20_000 };
                let begun = Instant::now();
                inside(team, what, scope, &words, rounds).unwrap();
                team.synchronize().unwrap();
                let each = begun.elapsed().as_secs_f64() * 1e6 / rounds as f64;
                println!("{what:?} of {} PEs by {scope:?}: {each:.2} us", team.size());
                for pe in 0..team.size() {
                    assert_eq!(team.read(pe, &words).unwrap()[2 * team.size()], 0, "{what:?} by {scope:?}, PE {pe}");
                }
            }
        }
        let few: Symmetric<u64> = team.alloc(2 * team.size()).unwrap();
        assert!(inside(team, Inside::Barrier, Scope::Warp, &few, 1).is_err());
    });
}

/// PE 1 does not come, by whatever scope it is waited for.
#[test]
fn a_collective_without_a_pe_ends() {
    let gpus = tandem_cuda::testing::at_least(2);
    if gpus.len() < 2 {
        return;
    }
    for (scope, len) in SCOPES.into_iter().zip([1, 32, 1, 1000, 1000]) {
        let options = Options { timeout: std::time::Duration::from_millis(300), ..Options::default() };
        let team = Team::cuda(&gpus[..2], options).unwrap();
        let memory: Symmetric<u64> = team.alloc(2 * len + 1).unwrap();
        let alone = team.queue(0);
        let at = alone.address(&memory).unwrap();
        let mut handle = alone.handle().unwrap();
        let mut own = ffi::tandem_collective_args {
            to: at,
            from: at + 8 * len as u64,
            done: at + 16 * len as u64,
            count: len as u64,
            what: fabric::TANDEM_INSIDE_ALL_REDUCE,
            how: fabric::TANDEM_EXEC_SUM,
            scope: scope.0,
            root: 0,
        };
        let mut addresses = [(&raw mut handle).cast::<u8>(), (&raw mut own).cast::<u8>()];
        let grid = Grid { blocks: 1, threads: scope.1, shared_bytes: 0 };
        let kernel = collective(fabric::TANDEM_EXEC_U64).unwrap();
        // SAFETY: these are the kernel's arguments, and live until the launch has copied them.
        unsafe { kernel.launch_cooperative(alone.stream().unwrap(), grid, &mut addresses).unwrap() };
        match team.synchronize() {
            Err(Error::Fault(fault)) => {
                let kind = if len <= 32 { FaultKind::Collective } else { FaultKind::Barrier };
                assert_eq!((fault.kind, fault.waiter, fault.peer, fault.wanted), (kind, 0, Some(1), 1), "{fault}");
            }
            other => panic!("{other:?}"),
        }
    }
}
