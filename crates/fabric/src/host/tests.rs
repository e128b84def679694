//! A link that does not come: its PE is named in time, and nothing is lost or freed too early. On pretend PEs, and on GPUs where there
//! are some.

use super::*;
use crate::{Compare, Fault, FaultKind, OneSided, Options, Queue};
use std::time::{Duration, Instant};
use tandem_cuda::{Device, Pinned};

/// Of the team that has the fault.
const TIMEOUT: Duration = Duration::from_millis(300);
/// Whatever a test does, what is held up is let go then.
const LONGEST_HOLD: Duration = Duration::from_secs(4);
const BYTES: usize = 4 << 20;

fn options(timeout: Duration) -> Options {
    Options { timeout, ..Options::default() }
}

/// Makers of teams of two PEs, and the GPUs of the last, if there are two.
fn each(test: impl Fn(&dyn Fn(Options) -> Team, &[Device])) {
    test(&|options| Team::sim(2, options).unwrap(), &[]);
    let gpus = tandem_cuda::testing::at_least(2);
    let _alone = tandem_cuda::testing::alone();
    if gpus.len() > 1 {
        test(&|options| Team::cuda(&gpus[..2], options).unwrap(), &gpus[..2]);
    }
}

/// A point that another team's queue reaches when `word` is 1, or when it gives up.
fn hold(team: &Team, pe: usize) -> (crate::Event, Symmetric<u64>) {
    let word = team.alloc(1).unwrap();
    team.queue(pe).wait_until(&word, Compare::Eq, 1, None).unwrap();
    (team.queue(pe).record().unwrap(), word)
}

/// Has the queues of a link wait.
fn hold_up(workers: &Mutex<Vec<Worker>>, via: usize, event: &crate::Event) {
    let mut workers = lock(workers);
    let held: Vec<&Queue> = workers.iter_mut().filter(|w| w.via == via).map(|w| &w.queue).collect();
    assert!(!held.is_empty());
    held.into_iter().for_each(|queue| queue.wait(event).unwrap());
}

/// Ends a hold. Streams that wait may share a queue of the hardware with the one that would write: then the hold ends by its timeout.
pub(crate) fn let_go(team: &Team, pe: usize, word: &Symmetric<u64>, is_over: impl Fn() -> bool) {
    let begun = Instant::now();
    let _ = team.write(pe, word, &[1]).and_then(|()| team.synchronize());
    while !is_over() {
        assert!(begun.elapsed() < 2 * LONGEST_HOLD, "it is held up for ever");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn fault(error: Error) -> Fault {
    match error {
        Error::Fault(fault) => *fault,
        other => panic!("{other:?} is no fault"),
    }
}

fn expect_named(found: &Fault, waiter: usize, peer: usize) {
    assert_eq!((found.kind, found.waiter, found.peer), (FaultKind::Copy, waiter, Some(peer)), "{found}");
    assert!(found.seen >= TIMEOUT.as_millis() as u64 && found.wanted > 0, "{found}");
    let text = found.to_string();
    assert!(
        text.starts_with(&format!("PE {waiter} waited in vain for PE {peer}")) && text.contains("timeout"),
        "{text}"
    );
}

/// The least time of the model by trying: `k` links cost as much as the time of `k` times `cost` bytes.
#[test]
fn links_are_worth_their_cost() {
    for cost in [1, 6 << 20, 31 << 20] {
        for bytes in [0, 1, 3, 1 << 20, 12 << 20, (12 << 20) + 1, 64 << 20, 100_000_007, 1 << 30, 5 << 30] {
            let time = |k: usize| bytes as f64 / k as f64 + (k * cost) as f64;
            let found = worth(bytes, cost);
            assert!(found == 1 || time(found) < time(found - 1), "{bytes} {cost} {found}");
            assert!(time(found) <= time(found + 1), "{bytes} {cost} {found}");
        }
    }
    assert_eq!([16, 64, 256, 1024].map(|mib: usize| worth(mib << 20, PINNED_COST)), [2, 3, 7, 13]);
    assert_eq!([16, 64, 256, 1024].map(|mib: usize| worth(mib << 20, PAGEABLE_COST)), [1, 2, 3, 6]);
}

/// Memory that is not page-locked: the call ends with the bound, while the copies are still held up.
#[test]
fn a_link_that_does_not_come_is_named() {
    each(|make, _| {
        for (pe, via, is_upload) in [(0, 1, true), (1, 1, true), (1, 0, false), (0, 0, false)] {
            let team = make(options(TIMEOUT));
            let links = HostLinks::new(&team).for_all();
            let there = team.alloc::<u8>(BYTES).unwrap();
            let mut host = vec![7; BYTES];
            links.upload(pe, &there, &host).unwrap();
            let other = make(options(LONGEST_HOLD));
            let (event, word) = hold(&other, via);
            hold_up(&links.pageable, via, &event);
            let asked = Instant::now();
            let error = match is_upload {
                true => links.upload(pe, &there, &host).unwrap_err(),
                false => links.download(pe, &there, &mut host).unwrap_err(),
            };
            let took = asked.elapsed();
            assert!(took >= TIMEOUT && took < LONGEST_HOLD / 2, "{took:?}");
            assert!(!event.is_done().unwrap());
            let found = fault(error);
            expect_named(&found, pe, via);
            // The team says so from now on, and what it used can go while the copies are held up.
            assert_eq!(fault(team.check().unwrap_err()), found);
            assert_eq!(fault(links.upload(pe, &there, &host).unwrap_err()), found);
            drop((links, there));
            let_go(&other, via, &word, || event.is_done().unwrap());
            drop(team);
            // A new team of the same PEs works.
            let team = make(Options::default());
            let (links, there) = (HostLinks::new(&team).for_all(), team.alloc::<u8>(BYTES).unwrap());
            links.upload(pe, &there, &host).unwrap();
            assert!(team.read(pe, &there).unwrap() == host);
        }
    });
}

/// Page-locked memory, which GPUs access themselves: everybody knows of the fault in time, and the call returns when they have let go.
#[test]
fn page_locked_memory_is_given_back_when_no_device_uses_it() {
    each(|make, gpus| {
        let Some(&device) = gpus.first() else { return };
        let team = make(options(TIMEOUT));
        let links = HostLinks::new(&team).for_all();
        let there = team.alloc::<u8>(BYTES).unwrap();
        let mut host = Pinned::new(device, BYTES).unwrap();
        assert!(links.upload(0, &there, host.bytes()).unwrap().is_pinned);
        let other = make(options(LONGEST_HOLD));
        let (event, word) = hold(&other, 1);
        hold_up(&links.pinned, 1, &event);
        let asked = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while team.check().is_ok() && asked.elapsed() < LONGEST_HOLD {
                    std::thread::sleep(Duration::from_millis(1));
                }
                // Told while the call is still waiting.
                assert!(asked.elapsed() < LONGEST_HOLD / 2 && !event.is_done().unwrap());
                let_go(&other, 1, &word, || event.is_done().unwrap());
            });
            expect_named(&fault(links.download(0, &there, host.bytes()).unwrap_err()), 0, 1);
            assert!(event.is_done().unwrap());
        });
    });
}
