//! Data that come to several GPUs in pieces and pass through the fabric. Where there are not two GPUs each test is passed over, or
//! fails if `TANDEM_REQUIRE_GPU=1` and there is none.

use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;
use std::time::Instant;
use tandem_ops::{Backend, HostBuf, Lane, Mont, Timeline};
use tandem_ops_cuda::{Cuda, Device};
use zeroize::Zeroizing;

fn gpus() -> Option<Vec<Device>> {
    let gpus = tandem_cuda::testing::at_least(2);
    (gpus.len() > 1).then_some(gpus)
}

fn random(len: usize, seed: u64) -> Vec<Mont> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..len).map(|_| Mont([0; 4].map(|_: u64| rng.next_u64()))).collect()
}

/// What came to all of `lanes` from memory of either kind.
fn check(cuda: &Cuda, lanes: &[Lane], values: &[Mont]) {
    let mut locked = cuda.host_buf::<Mont>(values.len()).unwrap();
    locked.copy_from_slice(values);
    let pageable = HostBuf::from(Zeroizing::new(values.to_vec()));
    // Both before anything is waited for.
    let bufs =
        [locked, pageable].map(|source| cuda.upload_to_all(lanes, &Arc::new(source), &Timeline::none()).unwrap());
    for (buf, lane) in bufs.iter().flat_map(|bufs| bufs.iter().zip(lanes)) {
        let found = cuda.download(buf).unwrap().wait().unwrap();
        assert!(found == values, "{} values on {lane:?} of {lanes:?}", values.len());
    }
}

#[test]
fn every_size_comes_to_every_set_of_lanes() {
    let Some(gpus) = gpus() else { return };
    let cuda = Cuda::open(&gpus[..gpus.len().min(8)]).unwrap();
    let mut all: Vec<Lane> = (0..cuda.lanes()).map(Lane).collect();
    let mut sizes: Vec<usize> = (0..10).collect();
    sizes.extend((4..22).step_by(3).flat_map(|k| [(1 << k) - 1, 1 << k, (1 << k) + 1]));
    for (i, n) in sizes.into_iter().enumerate() {
        let values = random(n, i as u64);
        check(&cuda, &all, &values);
        check(&cuda, &all[1..], &values);
        all.reverse();
    }
}

/// One upload behind the other, each dropped before it is done, from several threads.
#[test]
fn uploads_follow_each_other() {
    let Some(gpus) = gpus() else { return };
    let cuda = Cuda::open(&gpus[..2]).unwrap();
    let lanes = [Lane(0), Lane(1)];
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let cuda = &cuda;
            scope.spawn(move || {
                for round in 0..20 {
                    let values = random(100_001 + 7 * round, (100 * thread + round) as u64);
                    let mut source = cuda.host_buf::<Mont>(values.len()).unwrap();
                    source.copy_from_slice(&values);
                    let source = Arc::new(source);
                    drop(cuda.upload_to_all(&lanes, &source, &Timeline::none()).unwrap());
                    let bufs = cuda.upload_to_all(&lanes, &source, &Timeline::none()).unwrap();
                    let found = bufs.iter().map(|buf| cuda.download(buf).unwrap()).collect::<Vec<_>>();
                    drop(bufs);
                    for found in found {
                        assert!(found.wait().unwrap() == values, "thread {thread}, round {round}");
                    }
                }
            });
        }
    });
}

/// Where NVLink joins two GPUs, a half goes to each over its own link, and the trace shows that they exchange them.
#[test]
fn joined_gpus_exchange_pieces() {
    let Some(gpus) = gpus() else { return };
    let topology = tandem_fabric::probe::topology(&gpus[..2]).unwrap();
    let is_joined = topology.links().iter().any(|link| link.kind.is_direct());
    let cuda = Cuda::open(&gpus[..2]).unwrap();
    let exchanged = |source: HostBuf<Mont>| {
        let source = Arc::new(source);
        let timeline = cuda.timeline();
        let bufs = cuda.upload_to_all(&[Lane(1), Lane(0)], &source, &timeline).unwrap();
        assert!(bufs.iter().all(|buf| cuda.download(buf).unwrap().wait().unwrap() == source[..]));
        let spans = timeline.take().unwrap();
        let mut lanes: Vec<usize> = spans.iter().filter(|s| s.name == "exchange pieces").map(|s| s.lane.0).collect();
        lanes.sort_unstable();
        lanes
    };
    let pageable = || HostBuf::from(Zeroizing::new(random(100_001, 1)));
    // Who has not said that there will be uploads does not wait for the fabric to be opened.
    assert!(exchanged(pageable()).is_empty());
    let both = if is_joined { vec![0, 1] } else { vec![] };
    assert_eq!(exchanged(cuda.host_buf::<Mont>(1 << 20).unwrap()), both);
    assert_eq!(exchanged(pageable()), both);
}

/// It is opened meanwhile for who has said so, and then serves uploads from any memory.
#[test]
fn expected_uploads_find_the_fabric_open() {
    let Some(gpus) = gpus() else { return };
    let topology = tandem_fabric::probe::topology(&gpus[..2]).unwrap();
    let is_joined = topology.links().iter().any(|link| link.kind.is_direct());
    // Nobody has to wait for it.
    drop(expecting(&gpus));
    let cuda = expecting(&gpus);
    let begun = Instant::now();
    let values = random(100_001, 2);
    loop {
        let source = Arc::new(HostBuf::from(Zeroizing::new(values.clone())));
        let timeline = cuda.timeline();
        let bufs = cuda.upload_to_all(&[Lane(0), Lane(1)], &source, &timeline).unwrap();
        assert!(bufs.iter().all(|buf| cuda.download(buf).unwrap().wait().unwrap() == values));
        let is_exchanged = timeline.take().unwrap().iter().any(|span| span.name == "exchange pieces");
        assert!(is_joined || !is_exchanged);
        if is_exchanged || !is_joined {
            break;
        }
        assert!(begun.elapsed().as_secs() < 20, "nothing was exchanged");
    }
}

fn expecting(gpus: &[Device]) -> Cuda {
    let cuda = Cuda::open(&gpus[..2]).unwrap();
    cuda.expect_uploads_to_all(&[Lane(0), Lane(1)]);
    // Neither of a lane that there is not, nor of one alone.
    cuda.expect_uploads_to_all(&[Lane(0), Lane(2)]);
    cuda.expect_uploads_to_all(&[Lane(1)]);
    cuda
}
