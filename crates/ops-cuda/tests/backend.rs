//! The backend on a real GPU: what conformance cannot ask of every backend. Where there is no GPU each test is passed
//! over, or fails if `TANDEM_REQUIRE_GPU=1`.

use ark_ec::{CurveGroup, PrimeGroup};
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use tandem_ops::cpu::Cpu;
use tandem_ops::timeline::UPLOADS;
use tandem_ops::{
    Backend, Bls12_381, Bn254, Buffer, Canonical, Coset, Curve, DeviceKind, Direction, Error, Family, Group, Lane,
    Mont, Msm, MsmRequest, MsmSet, Ntt, NttOp, NttSpread, Order, Poseidon, PoseidonParams, Reduce, ReduceOp, ReduceWay,
    ScalarRecoding, Scalars, Timeline, VecOps,
};
use tandem_ops_cuda::{Cuda, Device};

type G1 = <Bn254 as Curve>::G1;

fn cuda() -> Option<Cuda> {
    let devices = tandem_cuda::testing::gpus();
    (!devices.is_empty()).then(|| Cuda::open(&devices[..1]).unwrap())
}

/// Whether a tool watches every access, which takes seconds for a small sum: the suite is asked for small sizes then.
fn is_watched() -> bool {
    tandem_conformance::largest() < 14
}

fn random<C: Curve>(len: usize, seed: u64) -> Vec<C::Fr> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..len).map(|_| ark_ff::UniformRand::rand(&mut rng)).collect()
}

fn wire<C: Curve>(values: &[C::Fr]) -> Vec<Mont> {
    values.iter().map(|&x| C::mont(x)).collect()
}

#[test]
fn a_team_needs_gpus() {
    let Err(error) = Cuda::open(&[]) else { panic!("a team of none was opened") };
    assert!(matches!(error, Error::Invalid { .. }), "{error}");
    assert_eq!(error.to_string().contains("built without CUDA"), tandem_ops_cuda::built_with().is_none(), "{error}");
    if let Some(&device) = tandem_cuda::testing::gpus().first() {
        // Two lanes of one GPU have half of its memory each.
        let free = |lanes: &[Device]| tandem_ops::Backend::info(&Cuda::open(lanes).unwrap()).free_bytes;
        let (one, two) = (free(&[device]), free(&[device, device]));
        assert!(
            two.len() == 2 && two.iter().all(|&bytes| bytes > one[0] / 4 && bytes < one[0] / 4 * 3),
            "{one:?} {two:?}"
        );
    }
}

#[test]
fn says_what_it_is() {
    let Some(cuda) = cuda() else { return };
    let info = cuda.info();
    assert_eq!((info.kind, info.lane_names.len(), cuda.lanes()), (DeviceKind::Cuda, 1, 1));
    assert!(info.lane_names[0].contains("(cuda:0)") && info.free_bytes[0] > 1 << 30, "{info:?}");
}

#[test]
fn memory_is_zero_then_what_was_written() {
    let Some(cuda) = cuda() else { return };
    // Dirty memory first, so that zeros are not there by chance.
    let mut bytes = vec![0u8; 40 << 20];
    ChaCha8Rng::seed_from_u64(1).fill_bytes(&mut bytes);
    drop(cuda.upload(Lane(0), &bytes).unwrap());
    let mut buf = cuda.alloc::<u8>(Lane(0), bytes.len()).unwrap();
    assert!(cuda.download(&buf).unwrap().wait().unwrap().iter().all(|&b| b == 0));
    cuda.write(&mut buf, 3, &bytes[3..]).unwrap();
    let got = cuda.download(&buf).unwrap();
    // The download is of the contents at this point.
    cuda.write(&mut buf, 0, &bytes[..3]).unwrap();
    let got = got.wait().unwrap();
    assert!(got[..3] == [0; 3] && got[3..] == bytes[3..]);
    assert!(cuda.download(&buf).unwrap().wait().unwrap() == bytes);

    let copy = cuda.copy(&buf, 5..bytes.len() - 1, Lane(0)).unwrap();
    drop(buf);
    assert!(cuda.download(&copy).unwrap().wait().unwrap() == bytes[5..bytes.len() - 1]);
}

#[test]
fn misuse_is_an_error() {
    let Some(cuda) = cuda() else { return };
    let mut buf = cuda.alloc::<Mont>(Lane(0), 4).unwrap();
    let short = cuda.alloc::<Mont>(Lane(0), 3).unwrap();
    let value = Mont([1, 2, 3, 4]);
    let errors = [
        cuda.alloc::<Mont>(Lane(1), 4).err(),
        cuda.write(&mut buf, 1, &[value; 4]).err(),
        cuda.write(&mut buf, usize::MAX, &[value; 2]).err(),
        cuda.copy(&buf, 2..5, Lane(0)).err(),
        cuda.copy(&buf, std::ops::Range { start: 3, end: 2 }, Lane(0)).err(),
        cuda.copy(&buf, 0..4, Lane(7)).err(),
        VecOps::<Bn254>::add(&cuda, &mut buf, &short).err(),
        VecOps::<Bn254>::mul_sub(&cuda, &mut buf, &short, &short).err(),
    ];
    for (i, error) in errors.iter().enumerate() {
        assert!(matches!(error, Some(Error::Invalid { .. })), "case {i}: {error:?}");
    }
    let past = cuda.write(&mut buf, 1, &[value; 4]).unwrap_err().to_string();
    assert!(past.contains("4 elements at 1 of a buffer of 4"), "{past}");
    match cuda.alloc::<Mont>(Lane(0), 1 << 45).err() {
        Some(Error::OutOfMemory { wanted, free, device, .. }) => {
            assert_eq!(wanted, 32 << 45);
            assert!(free > 0 && free < wanted && device.contains("cuda:0"));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(cuda.download(&buf).unwrap().wait().unwrap(), [Mont::default(); 4]);
    cuda.synchronize().unwrap();
}

#[test]
fn spans_follow_each_other() {
    let Some(cuda) = cuda() else { return };
    let a = wire::<Bn254>(&random::<Bn254>(1 << 16, 1));
    let mut a = cuda.upload(Lane(0), &a).unwrap();
    let b = cuda.copy(&a, 0..1 << 16, Lane(0)).unwrap();
    let timeline = cuda.timeline();
    let whole = timeline.begin(Lane(0), "whole");
    for name in ["first", "second"] {
        let span = timeline.begin(Lane(0), name);
        for _ in 0..100 {
            VecOps::<Bn254>::mul(&cuda, &mut a, &b).unwrap();
        }
        timeline.end(span);
    }
    timeline.end(whole);
    let never_ended = timeline.begin(Lane(0), "open");
    let spans = timeline.take().unwrap();
    assert_eq!(spans.iter().map(|s| s.name).collect::<Vec<_>>(), ["first", "second", "whole"]);
    let [first, second, whole] = &spans[..] else { panic!("{spans:?}") };
    assert!(first.start_us >= 0.0 && first.duration_us > 10.0, "{spans:?}");
    // Events resolve about half a microsecond.
    assert!(second.start_us >= first.start_us + first.duration_us - 1.0, "{spans:?}");
    assert!(whole.duration_us >= first.duration_us + second.duration_us - 2.0, "{spans:?}");
    timeline.end(never_ended);
    timeline.end(never_ended);
    assert_eq!(timeline.take().unwrap().len(), 1);
}

fn arithmetic<C: Curve>() {
    let Some(cuda) = cuda() else { return };
    let upload = |values: &[C::Fr]| cuda.upload(Lane(0), &wire::<C>(values)).unwrap();
    for n in [0, 1, 2, 255, 256, 257, 1 << 14, (1 << 20) + 3] {
        // The largest size is for the loop over the grid, and repeats its values to be quick.
        let part = n.min(1 << 14);
        let [a, b, c] = [1, 2, 3].map(|seed| {
            let some = random::<C>(part, seed);
            (0..n).map(|i| some[i % part.max(1)]).collect::<Vec<_>>()
        });
        let k = random::<C>(1, 4)[0];
        let (db, dc) = (upload(&b), upload(&c));
        let check = |name: &str, run: &dyn Fn(&mut _), expected: &dyn Fn(usize) -> C::Fr| {
            let mut buf = upload(&a);
            run(&mut buf);
            let got = cuda.download(&buf).unwrap().wait().unwrap();
            assert_eq!(got.len(), n);
            let expected = |i: usize| C::mont(expected(i));
            // The first `part` decide all.
            let first: Vec<Mont> = (0..part).map(expected).collect();
            assert!((0..n).all(|i| got[i] == first[i % part]), "{name} of {n}");
        };
        check("add", &|x| VecOps::<C>::add(&cuda, x, &db).unwrap(), &|i| a[i] + b[i]);
        check("sub", &|x| VecOps::<C>::sub(&cuda, x, &db).unwrap(), &|i| a[i] - b[i]);
        check("mul", &|x| VecOps::<C>::mul(&cuda, x, &db).unwrap(), &|i| a[i] * b[i]);
        check("scale", &|x| VecOps::<C>::scale(&cuda, x, C::mont(k)).unwrap(), &|i| a[i] * k);
        check("mul_sub", &|x| VecOps::<C>::mul_sub(&cuda, x, &db, &dc).unwrap(), &|i| a[i] * b[i] - c[i]);

        let da = upload(&a);
        let mut integers = cuda.alloc(Lane(0), n).unwrap();
        VecOps::<C>::to_canonical(&cuda, &da, &mut integers).unwrap();
        let got = cuda.download(&integers).unwrap().wait().unwrap();
        let first: Vec<_> = (0..part).map(|i| C::canonical(a[i])).collect();
        assert!((0..n).all(|i| got[i] == first[i % part]), "to_canonical of {n}");
        let mut back = cuda.alloc(Lane(0), n).unwrap();
        VecOps::<C>::to_mont(&cuda, &integers, &mut back).unwrap();
        assert!(cuda.download(&back).unwrap().wait().unwrap() == wire::<C>(&a), "to_mont of {n}");
        assert_eq!(back.len(), n);
    }
}

#[test]
fn arithmetic_bn254() {
    arithmetic::<Bn254>();
}

#[test]
fn arithmetic_bls12_381() {
    arithmetic::<Bls12_381>();
}

/// Copies from one GPU's memory to another's go over the link between them where there is one. Through the host they would
/// not reach 60 GB/s.
#[test]
fn copies_between_gpus_take_their_link() {
    let gpus = tandem_cuda::testing::at_least(2);
    let [first, second, ..] = &gpus[..] else { return };
    if !first.can_access(*second).unwrap() || !second.can_access(*first).unwrap() {
        tandem_cuda::testing::skipped("the first two GPUs have no link");
        return;
    }
    let cuda = Cuda::open(&[*first, *second]).unwrap();
    let bytes = 256 << 20;
    for (from, to) in [(Lane(0), Lane(1)), (Lane(1), Lane(0))] {
        let source = cuda.alloc::<u8>(from, bytes).unwrap();
        // Other programs on these GPUs slow some of them down.
        let timeline = cuda.timeline();
        for _ in 0..32 {
            let span = timeline.begin(from, "copy");
            drop(cuda.copy(&source, 0..bytes, to).unwrap());
            timeline.end(span);
        }
        let fastest = timeline.take().unwrap().iter().map(|s| s.duration_us).fold(f64::INFINITY, f64::min);
        let rate = bytes as f64 / fastest / 1e3;
        println!("lane {} to lane {}: {rate:.0} GB/s", from.0, to.0);
        assert!(rate > 60.0, "lane {} to lane {}: {rate} GB/s", from.0, to.0);
    }
}

/// G, 2 G, 3 G and so on in G1 of BN254, loaded by a plan for them.
fn multiples(cuda: &Cuda, n: usize) -> (<Cuda as ScalarRecoding<Bn254>>::Plan, <Cuda as Msm<G1>>::Bases) {
    let one = <G1 as Group>::Ark::generator();
    let multiples: Vec<_> = std::iter::successors(Some(one), |point| Some(*point + one)).take(n).collect();
    let points: Vec<_> = <G1 as Group>::Ark::normalize_batch(&multiples).iter().map(G1::from_ark).collect();
    let request = MsmRequest {
        scalars: n,
        sets: vec![MsmSet { g2: false, first: 0, points: n }],
        memory_bytes: 1 << 30,
        uses: 100,
        pipelined: false,
    };
    let plan = ScalarRecoding::<Bn254>::plan(cuda, Lane(0), &request).unwrap();
    let bases = Msm::<G1>::load(cuda, Lane(0), &plan, 0, points.as_slice().into()).unwrap();
    (plan, bases)
}

fn halves_of_tables<C: Curve>()
where
    Cuda: Ntt<C>,
    Cpu: Ntt<C>,
{
    let devices = tandem_cuda::testing::gpus();
    // Two passes, and three.
    for log_n in [10, 11, 14, 17, 19, 20].into_iter().filter(|&log_n| log_n <= 11 || !is_watched()) {
        let Some(first) = devices.first() else { return };
        // Half a table and all smaller ones have room; a whole one would take more than its share.
        let cuda = Cuda::with_memory(&[*first], 16 * (32 << log_n) * 7).unwrap();
        // Room for one table of a half, and no other beside it.
        let without = Cuda::with_memory(&[*first], 16 * (32 << log_n)).unwrap();
        let cpu = Cpu::new(1);
        let values = wire::<C>(&random::<C>(1 << log_n, log_n));
        for (direction, coset) in [
            (Direction::Forward, Coset::Subgroup),
            (Direction::Forward, Coset::Odd),
            (Direction::Inverse, Coset::Subgroup),
            (Direction::Inverse, Coset::Odd),
        ] {
            let op = NttOp { direction, coset, input: Order::Natural, output: Order::BitReversed };
            let mut expected = cpu.upload(Lane(0), &values).unwrap();
            Ntt::<C>::ntt(&cpu, &mut expected, op).unwrap();
            let expected = cpu.download(&expected).unwrap().wait().unwrap();
            for (backend, runs) in [(&cuda, 2), (&without, 1)] {
                for _ in 0..runs {
                    let mut got = backend.upload(Lane(0), &values).unwrap();
                    Ntt::<C>::ntt(backend, &mut got, op).unwrap();
                    let got = backend.download(&got).unwrap().wait().unwrap();
                    assert!(got == expected, "{op:?} of 2^{log_n} elements");
                }
            }
        }
    }
}

/// The plan of the largest transforms, with the table of its half and where there is no room for that.
#[test]
fn transforms_with_half_a_table() {
    halves_of_tables::<Bn254>();
    halves_of_tables::<Bls12_381>();
}

/// Kernels that a plan has loaded ahead are waited for where nothing is summed, and by the sum that needs them.
#[test]
fn what_is_loaded_ahead_is_waited_for() {
    let Some(first) = tandem_cuda::testing::gpus().first().copied() else { return };
    for n in [1, 2, 1000] {
        let sets = vec![MsmSet { g2: false, first: 0, points: n }, MsmSet { g2: true, first: 0, points: n - 1 }];
        let request = MsmRequest { scalars: n, sets, memory_bytes: 1 << 30, uses: 1, pipelined: true };
        let cuda = Cuda::open(&[first]).unwrap();
        ScalarRecoding::<Bn254>::plan(&cuda, Lane(0), &request).unwrap();
        ScalarRecoding::<Bls12_381>::plan(&cuda, Lane(0), &request).unwrap();
        drop(cuda);
        let cuda = Cuda::open(&[first]).unwrap();
        let (plan, bases) = multiples(&cuda, n);
        let scalars = cuda.upload(Lane(0), &vec![Canonical([1, 0, 0, 0]); n]).unwrap();
        let digits = ScalarRecoding::<Bn254>::recode(&cuda, &plan, Scalars::Canonical(&scalars)).unwrap();
        let sum = Msm::<G1>::msm(&cuda, &bases, &digits, &Timeline::none()).unwrap().wait().unwrap();
        let expected = <Bn254 as Curve>::Fr::from((n * (n + 1) / 2) as u64);
        assert_eq!(sum, <G1 as Group>::Ark::generator() * expected, "{n}");
    }
}

/// A plan says how digits lie in memory, which differs from curve to curve.
#[test]
fn a_plan_of_another_curve_is_refused() {
    type Other = <Bls12_381 as Curve>::G1;
    let Some(cuda) = cuda() else { return };
    let (plan, _) = multiples(&cuda, 16);
    let scalars = cuda.upload(Lane(0), &wire::<Bls12_381>(&random::<Bls12_381>(16, 1))).unwrap();
    let digits = ScalarRecoding::<Bls12_381>::recode(&cuda, &plan, Scalars::Mont(&scalars)).map(drop);
    let points = vec![Other::from_ark(&<Other as Group>::Ark::generator().into_affine()); 16];
    let bases = Msm::<Other>::load(&cuda, Lane(0), &plan, 0, points.as_slice().into()).map(drop);
    for refused in [digits, bases] {
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("a plan for") && error.contains("used for"), "{error}");
    }
}

/// Two GPUs that reach each other's memory, and one of which is late with what it was told.
fn late() -> Option<Cuda> {
    let gpus = tandem_cuda::testing::at_least(2);
    let [first, second, ..] = &gpus[..] else { return None };
    if !first.can_access(*second).unwrap() || !second.can_access(*first).unwrap() {
        tandem_cuda::testing::skipped("the first two GPUs do not reach each other");
        return None;
    }
    Some(Cuda::open(&[*first, *second]).unwrap())
}

/// Work of some milliseconds for a lane.
fn keep_busy(cuda: &Cuda, lane: Lane) {
    let op =
        NttOp { direction: Direction::Forward, coset: Coset::Subgroup, input: Order::Natural, output: Order::Natural };
    let mut busy = cuda.alloc::<Mont>(lane, 1 << 22).unwrap();
    (0..8).for_each(|_| Ntt::<Bn254>::ntt(cuda, &mut busy, op).unwrap());
}

/// What one lane reads of another is what that lane has been told to put there, however late that is.
#[test]
fn reductions_wait_for_who_holds_the_elements() {
    let Some(cuda) = late() else { return };
    let n = 1 << 16;
    let values: Vec<u64> = (0..n as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let sum = values.iter().fold(0u64, |sum, value| sum.wrapping_add(*value));
    for lane in [Lane(0), Lane(1)] {
        let mut part = cuda.alloc::<u64>(lane, n).unwrap();
        let source = cuda.upload(lane, &values).unwrap();
        cuda.synchronize().unwrap();
        keep_busy(&cuda, lane);
        part = {
            let late = cuda.copy(&source, 0..n, lane).unwrap();
            drop(part);
            late
        };
        let got = cuda.reduce::<u64>(ReduceOp::Sum, &[&part], Some(ReduceWay::Peer)).unwrap();
        assert_eq!(got.wait().unwrap(), sum, "{lane:?}");
    }
}

/// Shards send to memory that a late lane still uses for something else: not before it has done that.
#[test]
fn spread_transforms_wait_for_late_lanes() {
    const LOG_SHARD: u32 = 16;
    let Some(cuda) = late() else { return };
    let n = 1 << LOG_SHARD;
    let op =
        NttOp { direction: Direction::Forward, coset: Coset::Subgroup, input: Order::Natural, output: Order::Natural };
    let values = wire::<Bn254>(&random::<Bn254>(n, 4));
    for lane in [Lane(0), Lane(1)] {
        let mut shards = [Lane(0), Lane(1)].map(|lane| cuda.upload(lane, &values).unwrap());
        let used = cuda.upload(lane, &values).unwrap();
        cuda.synchronize().unwrap();
        keep_busy(&cuda, lane);
        let copied = cuda.copy(&used, 0..n, lane).unwrap();
        // The lane's next allocation of this size takes its memory, once the copy has been made.
        drop(used);
        let [a, b] = &mut shards;
        NttSpread::<Bn254>::ntt_spread(&cuda, &mut [a, b], op).unwrap();
        assert!(cuda.download(&copied).unwrap().wait().unwrap() == values, "{lane:?}");
    }
}

#[test]
fn a_hasher_serves_the_lanes_that_it_was_made_for() {
    let Some(cuda) = late() else { return };
    let params = PoseidonParams::new(Family::Circomlib, 2).unwrap();
    let alone = Cuda::open(&tandem_cuda::testing::gpus()[..1]).unwrap();
    let hasher = Poseidon::<Bn254>::hasher(&alone, params).unwrap();
    let input = cuda.upload(Lane(1), &wire::<Bn254>(&random::<Bn254>(2, 1))).unwrap();
    let mut out = cuda.alloc::<Mont>(Lane(1), 1).unwrap();
    let error = Poseidon::<Bn254>::poseidon(&cuda, &hasher, &input, &mut out).unwrap_err().to_string();
    assert!(error.contains("lane 1; the hasher is for 1"), "{error}");
}

/// Held by tests that time copies, or make many: there is one engine for them.
static COPIES: Mutex<()> = Mutex::new(());

/// The upload begins after eight transforms were enqueued, and ends before them. What is uploaded is there for what comes then.
#[test]
fn an_upload_beside_a_lanes_order_does_not_wait_for_it() {
    const LOG_N: usize = 22;
    let Some(cuda) = cuda() else { return };
    let _alone = COPIES.lock().unwrap_or_else(PoisonError::into_inner);
    let (lane, n) = (Lane(0), 1 << LOG_N);
    let (values, other) = (wire::<Bn254>(&random::<Bn254>(n, 1)), wire::<Bn254>(&random::<Bn254>(1 << 16, 2)));
    let op =
        NttOp { direction: Direction::Forward, coset: Coset::Subgroup, input: Order::Natural, output: Order::Natural };
    let mut busy = cuda.upload(lane, &values).unwrap();
    let mut source = cuda.host_buf::<Mont>(other.len()).unwrap();
    source.copy_from_slice(&other);
    let source = std::sync::Arc::new(source);
    // The first of everything opens and grows what later calls find.
    for is_first in [true, false] {
        let timeline = cuda.timeline();
        let work = timeline.begin(lane, "transforms");
        for _ in 0..8 {
            Ntt::<Bn254>::ntt(&cuda, &mut busy, op).unwrap();
        }
        timeline.end(work);
        let upload = timeline.begin_in(lane, UPLOADS, "upload");
        let arriving = cuda.upload_beside(lane, &source, source.len()).unwrap();
        timeline.end(upload);
        let arrived = cuda.arrived(arriving).unwrap();
        let copied = cuda.copy(&arrived, 0..other.len(), lane).unwrap();
        drop(arrived);
        assert_eq!(cuda.download(&copied).unwrap().wait().unwrap(), other);
        let spans = timeline.take().unwrap();
        let ended = |name| {
            let span = spans.iter().find(|span| span.name == name).unwrap();
            span.start_us + span.duration_us
        };
        assert!(is_first || ended("upload") < ended("transforms"), "{spans:?}");
    }
}

/// What is dealt is copied while the lane that it goes to does what it was told before, and while its own lane goes on. One GPU alone has nobody to
/// deal to.
#[test]
fn what_is_dealt_waits_for_nothing_but_its_source() {
    const LOG_N: usize = 22;
    let gpus = tandem_cuda::testing::at_least(2);
    let Some(pair) = gpus.get(..2) else { return };
    let cuda = Cuda::open(pair).unwrap();
    let _alone = COPIES.lock().unwrap_or_else(PoisonError::into_inner);
    let (n, part) = (1 << LOG_N, 1 << 16);
    let (values, other) = (wire::<Bn254>(&random::<Bn254>(n, 1)), wire::<Bn254>(&random::<Bn254>(2 * part, 2)));
    let op =
        NttOp { direction: Direction::Forward, coset: Coset::Subgroup, input: Order::Natural, output: Order::Natural };
    let mut busy = [0, 1].map(|lane| cuda.upload(Lane(lane), &values).unwrap());
    // The first of everything opens and grows what later calls find.
    for is_first in [true, false] {
        let source = cuda.upload(Lane(0), &other).unwrap();
        cuda.synchronize().unwrap();
        let timeline = cuda.timeline();
        let transforms = |busy: &mut <Cuda as Backend>::Buf<Mont>| {
            let work = timeline.begin(busy.lane(), "transforms");
            (0..8).for_each(|_| Ntt::<Bn254>::ntt(&cuda, busy, op).unwrap());
            timeline.end(work);
        };
        transforms(&mut busy[1]);
        let dealt = cuda.deal(vec![source], &[(0..part, Lane(0)), (part..2 * part, Lane(1))], &timeline).unwrap();
        transforms(&mut busy[0]);
        for (arriving, expected) in dealt.into_iter().flatten().zip(other.chunks(part)) {
            let arrived = cuda.arrived(arriving).unwrap();
            assert_eq!(cuda.download(&arrived).unwrap().wait().unwrap(), expected);
        }
        let spans = timeline.take().unwrap();
        let copied = spans.iter().find(|span| span.name == "copy to lane").unwrap();
        for transforms in spans.iter().filter(|span| span.name == "transforms") {
            let ends = |span: &tandem_ops::Span| span.start_us + span.duration_us;
            assert!(is_first || ends(copied) < ends(transforms), "{spans:?}");
        }
    }
}

/// Of one GPU and of all that reach each other.
#[test]
fn copies_are_counted_where_they_are_enqueued() {
    let gpus = tandem_cuda::testing::gpus();
    for count in [1, gpus.len()].into_iter().filter(|count| *count <= gpus.len() && *count > 0) {
        tandem_conformance::copies(&Cuda::open(&gpus[..count]).unwrap()).unwrap();
    }
}

/// Kernels of the lane's order find what was uploaded beside it, however long that takes.
#[test]
fn what_arrived_is_there_for_kernels() {
    const LOG_N: usize = 22;
    let Some(cuda) = cuda() else { return };
    let _alone = COPIES.lock().unwrap_or_else(PoisonError::into_inner);
    let (n, part) = (1 << if is_watched() { 8 } else { LOG_N }, 1 << 8);
    let values = random::<Bn254>(part, 3);
    let doubled = wire::<Bn254>(&values.iter().map(|x| *x + x).collect::<Vec<_>>());
    let mut source = cuda.host_buf::<Mont>(n).unwrap();
    source.chunks_mut(part).for_each(|chunk| chunk.copy_from_slice(&wire::<Bn254>(&values)));
    let source = std::sync::Arc::new(source);
    for _ in 0..4 {
        let arriving = cuda.upload_beside(Lane(0), &source, source.len()).unwrap();
        let mut sum = cuda.arrived(arriving).unwrap();
        let two = <Bn254 as Curve>::Fr::from(2u64);
        VecOps::<Bn254>::scale(&cuda, &mut sum, Bn254::mont(two)).unwrap();
        let sum = cuda.download(&sum).unwrap().wait().unwrap();
        assert!(sum.chunks(part).all(|chunk| chunk == doubled));
    }
}

/// The sums of a batch are waited for while those of the next are made: a device is told of all batches in much less
/// time than it takes for them. Large ones, so that a host that is busy with other programs tells of them soon enough, too.
#[test]
fn batches_of_sums_do_not_wait_for_each_other() {
    const BATCHES: usize = 8;
    let Some(cuda) = cuda() else { return };
    let n = if is_watched() { 1 << 8 } else { 1 << 20 };
    let (plan, bases) = multiples(&cuda, n);
    let scalars: Vec<_> =
        (0..2).map(|seed| cuda.upload(Lane(0), &wire::<Bn254>(&random::<Bn254>(n, seed))).unwrap()).collect();
    let sum = |batch: usize| {
        let digits = ScalarRecoding::<Bn254>::recode(&cuda, &plan, Scalars::Mont(&scalars[batch % 2])).unwrap();
        Msm::<G1>::msm(&cuda, &bases, &digits, &Timeline::none()).unwrap()
    };
    let alone: Vec<_> = (0..2).map(|batch| sum(batch).wait().unwrap()).collect();
    assert_ne!(alone[0], alone[1]);

    // Other programs may keep the host from telling: the least counts.
    let shares = (0..6).map(|_| {
        let start = Instant::now();
        let pending: Vec<_> = (0..BATCHES).map(sum).collect();
        let told = start.elapsed();
        for (batch, pending) in pending.into_iter().enumerate() {
            assert_eq!(pending.wait().unwrap(), alone[batch % 2], "batch {batch}");
        }
        told.as_secs_f64() / start.elapsed().as_secs_f64()
    });
    let least = shares.fold(1.0, f64::min);
    assert!(least < 0.5 || is_watched(), "the host was busy telling for {least:.2} of the time");
}
