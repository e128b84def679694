//! Collective launches of kernels that wait for each other, on GPUs.

#[path = "../../fabric/tests/teams/mod.rs"]
mod teams;

use bytemuck::{Pod, Zeroable};
use std::time::Duration;
use tandem_cuda::Grid;
use tandem_fabric::{Error, OneSided, Options, Symmetric, Team};
use teams::each_cuda;

/// tandem_meet_args.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Meet {
    count: u64,
    wrong: u64,
    rounds: u64,
}

fn meet() -> tandem_cuda::Kernel {
    tandem_fabric_examples::meet().unwrap()
}

#[test]
fn kernels_of_all_pes_meet() {
    each_cuda(&Options::default(), |team| {
        let n = team.size() as u64;
        let (count, wrong): (Symmetric<u64>, Symmetric<u64>) = (team.alloc(1).unwrap(), team.alloc(1).unwrap());
        let one = Grid { blocks: 1, threads: 128, shared_bytes: 0 };
        let most = team.resident_blocks(meet(), one).unwrap() as u32;
        let mut expected = 0;
        for (blocks, rounds) in [(1, 1000), (7, 100), (most, 20)] {
            for pe in 0..team.size() {
                team.write(pe, &count, &[0]).unwrap();
            }
            let arguments = |pe: usize| Meet {
                count: team.queue(pe).address(&count).unwrap(),
                wrong: team.queue(pe).address(&wrong).unwrap(),
                rounds,
            };
            // SAFETY: these are the kernel's arguments, addresses of live words.
            unsafe { team.launch(meet(), Grid { blocks, ..one }, arguments).unwrap() };
            team.synchronize().unwrap();
            expected = u64::from(blocks) * rounds * n;
            for pe in 0..team.size() {
                assert_eq!(team.read(pe, &wrong).unwrap(), [0], "{blocks} blocks, PE {pe}");
                assert_eq!(team.read(pe, &count).unwrap(), [expected]);
            }
        }
        // One block more is refused, with a number, and nothing runs.
        let too_many = Grid { blocks: most + 1, ..one };
        // SAFETY: as above.
        let error = unsafe { team.launch(meet(), too_many, |_| Meet::zeroed()) }.unwrap_err();
        assert!(matches!(error, Error::NotResident(_)), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("PE 0 (cuda:0)") && text.contains(&format!("holds {most} of its blocks")), "{text}");
        // SAFETY: as above.
        assert!(unsafe { team.launch(meet(), Grid { blocks: 0, ..one }, |_| Meet::zeroed()) }.is_err());
        team.synchronize().unwrap();
        assert_eq!(team.read(0, &count).unwrap(), [expected]);
    });
}

/// The limit of a kernel's shared memory is the kernel's, not the caller's.
#[test]
fn two_sizes_of_shared_memory_at_once() {
    let gpus = tandem_cuda::testing::gpus();
    let Some(gpu) = gpus.first() else { return };
    std::thread::scope(|scope| {
        for shared_bytes in [50 << 10, 64 << 10, 200 << 10] {
            scope.spawn(move || {
                let team = Team::cuda(std::slice::from_ref(gpu), Options::default()).unwrap();
                let (count, wrong): (Symmetric<u64>, Symmetric<u64>) = (team.alloc(1).unwrap(), team.alloc(1).unwrap());
                let grid = Grid { blocks: 1, threads: 32, shared_bytes };
                let arguments = |pe: usize| Meet {
                    count: count.address(pe).unwrap(),
                    wrong: wrong.address(pe).unwrap(),
                    rounds: 1,
                };
                for launch in 1..=300 {
                    team.write(0, &count, &[0]).unwrap();
                    // SAFETY: these are the kernel's arguments, addresses of live words.
                    let launched = unsafe { team.launch(meet(), grid, arguments) };
                    launched.unwrap_or_else(|e| panic!("{shared_bytes} bytes, launch {launch}: {e}"));
                    team.synchronize().unwrap();
                    assert_eq!((team.read(0, &count).unwrap(), team.read(0, &wrong).unwrap()), (vec![1], vec![0]));
                }
            });
        }
    });
    let team = Team::cuda(&gpus[..1], Options::default()).unwrap();
    let grid = Grid { blocks: 1, threads: 32, shared_bytes: 100 << 20 };
    // SAFETY: nothing is launched.
    assert!(unsafe { team.launch(meet(), grid, |_| Meet::zeroed()) }.is_err());
    team.synchronize().unwrap();
}

#[test]
fn a_kernel_that_waits_in_vain_ends() {
    let gpus = tandem_cuda::testing::at_least(2);
    if gpus.len() < 2 {
        return;
    }
    let team = Team::cuda(&gpus[..2], Options { timeout: Duration::from_millis(300), ..Options::default() }).unwrap();
    let words: Symmetric<u64> = team.alloc(2).unwrap();
    let alone = team.queue(0);
    let arguments = Meet {
        count: alone.address(&words.at(0).unwrap()).unwrap(),
        wrong: alone.address(&words.at(1).unwrap()).unwrap(),
        rounds: 1000,
    };
    // PE 1 does not come: what Team::launch does, on one PE.
    let mut handle = alone.handle().unwrap();
    let mut own = arguments;
    let mut addresses = [(&raw mut handle).cast::<u8>(), (&raw mut own).cast::<u8>()];
    let grid = Grid { blocks: 4, threads: 64, shared_bytes: 0 };
    // SAFETY: these are the kernel's arguments, and live until the launch has copied them.
    unsafe { meet().launch_cooperative(alone.stream().unwrap(), grid, &mut addresses).unwrap() };
    match team.synchronize() {
        Err(Error::Fault(fault)) => assert_eq!((fault.waiter, fault.peer), (0, Some(1)), "{fault}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_team_that_is_dropped_finishes_its_work() {
    each_cuda(&Options::default(), |team| {
        let n = team.size();
        let inner = team.split(&(0..n).collect::<Vec<_>>()).unwrap();
        let (count, wrong): (Symmetric<u64>, Symmetric<u64>) = (team.alloc(1).unwrap(), team.alloc(1).unwrap());
        let arguments =
            |pe: usize| Meet { count: count.address(pe).unwrap(), wrong: wrong.address(pe).unwrap(), rounds: 20_000 };
        // SAFETY: these are the kernel's arguments, addresses of live words.
        unsafe { inner.launch(meet(), Grid { blocks: 2, threads: 32, shared_bytes: 0 }, arguments).unwrap() };
        // Its state and its records are in use; so is the memory of what goes next.
        drop(inner);
        let rest = (count.offset(), count.clone());
        drop(count);
        for _ in 0..50 {
            assert_ne!(team.alloc::<u64>(1).unwrap().offset(), rest.0);
        }
        team.wait_until(0, &rest.1, tandem_fabric::Compare::Eq, 20_000 * 2 * n as u64, None).unwrap();
        assert_eq!(team.read(0, &wrong).unwrap(), [0]);
    });
    // A whole world that goes away while a kernel waits in it.
    each_cuda(&Options { timeout: Duration::from_millis(300), ..Options::default() }, |team| {
        let word: Symmetric<u64> = team.alloc(1).unwrap();
        team.queue(0).wait_until(&word, tandem_fabric::Compare::Eq, 1, None).unwrap();
    });
    each_cuda(&Options::default(), |team| {
        team.barrier().unwrap();
        team.synchronize().unwrap();
    });
}
