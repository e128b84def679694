//! Sums for measurements: points resident, split over lanes; random scalars, and such as are hard on buckets. One
//! result is checked before anything is timed.

use ark_ec::PrimeGroup;
use ark_ff::{BigInt, PrimeField, Zero};
use rayon::prelude::*;
use std::time::Instant;
use tandem_engine::{Engine, Error, Result};
use tandem_ops::cpu::Cpu;
use tandem_ops::{Bls12_381, Bn254, Canonical, Curve, CurveId, Group, Msm, ProofBackend, SplitMsm};
use tandem_ops_cuda::Cuda;

/// Sizes that a measurement may ask for: 2^1 to 2^28.
const LOG_SIZES: std::ops::RangeInclusive<u32> = 1..=28;
/// Sums that the points are loaded for, as those of a service's key are: all tables that pay.
const USES: u64 = 1_000_000;

/// What the scalars of a measurement are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ScalarKind {
    /// Random elements of the scalar field
    Random,
    /// All equal
    Equal,
    /// All 1
    One,
    /// 99 % zero
    Sparse,
    /// Each one of two
    Two,
    /// Below 2^15, so that all digits but the lowest are zero
    Window,
}

/// A sum to be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SumBench {
    /// Whether its points lie in G2, not in G1.
    pub(crate) g2: bool,
    /// What its scalars are.
    pub(crate) scalars: ScalarKind,
    /// Binary logarithm of the number of points.
    pub(crate) log_n: u32,
    /// Over how many lanes it is split; `None` for as many as is fastest.
    pub(crate) lanes: Option<usize>,
}

/// Times of sums.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Summed {
    /// Of each sum, from the call until the host has the result.
    pub(crate) seconds: Vec<f64>,
    /// Over how many lanes it was split.
    pub(crate) lanes: usize,
}

impl ScalarKind {
    fn make<C: Curve>(self, n: usize) -> Vec<Canonical> {
        let mut values = vec![Canonical([0; 4]); n];
        let random = random::<C>;
        let two = [random(1), random(2)];
        in_pieces(&mut values, |first, piece| {
            let word = |i: usize| mix((first + i) as u64);
            for (i, value) in piece.iter_mut().enumerate() {
                *value = match self {
                    ScalarKind::Random => random(word(i)),
                    ScalarKind::Equal => two[0],
                    ScalarKind::One => Canonical([1, 0, 0, 0]),
                    ScalarKind::Sparse if word(i) % 100 > 0 => Canonical([0; 4]),
                    ScalarKind::Sparse => random(word(i)),
                    ScalarKind::Two => two[(word(i) % 2) as usize],
                    ScalarKind::Window => Canonical([word(i) >> 49, 0, 0, 0]),
                };
            }
        });
        values
    }
}

/// A bijection without visible structure (the finaliser of SplitMix64).
fn mix(i: u64) -> u64 {
    let mut z = i.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The element of this seed, as an integer: the first below the modulus among random integers of as many bits, of which one
/// of four is at least the modulus (BN254), or one of ten (BLS12-381).
fn random<C: Curve>(seed: u64) -> Canonical {
    let unused = 256 - C::Fr::MODULUS_BIT_SIZE;
    let word = |k: u64| mix(seed.wrapping_mul(4).wrapping_add(k));
    let mut words = [word(0), word(1), word(2), word(3)];
    loop {
        let value = [words[0], words[1], words[2], words[3] >> unused];
        if BigInt(value) < C::Fr::MODULUS {
            return Canonical(value);
        }
        words = words.map(mix);
    }
}

/// Calls `f` with the first index and the elements of every piece, on several threads.
fn in_pieces<T: Send>(values: &mut [T], f: impl Fn(usize, &mut [T]) + Sync) {
    let size = values.len().div_ceil(rayon::current_num_threads()).max(1);
    values.par_chunks_mut(size).enumerate().for_each(|(number, piece)| f(number * size, piece));
}

/// The sum of value i times i + 2.
fn factor<C: Curve>(values: &[Canonical]) -> C::Fr {
    const PIECE: usize = 1 << 14;
    let mut sums = vec![C::Fr::zero(); values.len().div_ceil(PIECE)];
    in_pieces(&mut sums, |first, sums| {
        for (number, sum) in (first..).zip(sums) {
            let from = number * PIECE;
            let piece = values.iter().skip(from).take(PIECE);
            *sum = piece.zip(from as u64 + 2..).map(|(v, i)| C::Fr::from(ark_ff::BigInt(v.0)) * C::Fr::from(i)).sum();
        }
    });
    sums.into_iter().sum()
}

/// How long each of `runs` sums took over points and scalars that lie on the lanes of the engine's backend, digits included.
///
/// # Errors
/// The size or the number of lanes is out of range, or the points do not fit; the sum is wrong.
pub(crate) fn bench(engine: &Engine, curve: CurveId, what: SumBench, runs: usize) -> Result<Summed> {
    match (engine.backend::<Cpu>(), engine.backend::<Cuda>()) {
        (Some(cpu), _) => on_backend(&*cpu, curve, what, runs),
        (_, Some(cuda)) => on_backend(&*cuda, curve, what, runs),
        (None, None) => Err(Error::Device("nothing to measure on this backend".into())),
    }
}

fn on_backend<B: ProofBackend<Bn254> + ProofBackend<Bls12_381>>(
    backend: &B,
    curve: CurveId,
    what: SumBench,
    runs: usize,
) -> Result<Summed> {
    match (curve, what.g2) {
        (CurveId::Bn254, false) => bench_group::<Bn254, <Bn254 as Curve>::G1, B>(backend, what, runs),
        (CurveId::Bn254, true) => bench_group::<Bn254, <Bn254 as Curve>::G2, B>(backend, what, runs),
        (CurveId::Bls12_381, false) => bench_group::<Bls12_381, <Bls12_381 as Curve>::G1, B>(backend, what, runs),
        (CurveId::Bls12_381, true) => bench_group::<Bls12_381, <Bls12_381 as Curve>::G2, B>(backend, what, runs),
    }
}

/// Measures `runs` sums: digits of scalars that lie on the lanes, and the sums, until the host has the result. Each lane
/// holds its share of the points and of the scalars.
fn bench_group<C: Curve, G: Group<Curve = C>, B: ProofBackend<C> + Msm<G>>(
    backend: &B,
    SumBench { scalars, log_n, lanes, .. }: SumBench,
    runs: usize,
) -> Result<Summed> {
    if !LOG_SIZES.contains(&log_n) {
        let (least, most) = (LOG_SIZES.start(), LOG_SIZES.end());
        return Err(Error::input(format!("size 2^{log_n}: expected 2^{least} to 2^{most}")));
    }
    if let Some(lanes) = lanes.filter(|lanes| !(1..=backend.lanes()).contains(lanes)) {
        return Err(Error::input(format!("a sum over {lanes} lanes: expected 1 to {}", backend.lanes())));
    }
    let n = 1usize << log_n;
    let points = tandem_groth16::setup::sequence::<G>(n);
    let values = scalars.make::<C>(n);
    let lanes = lanes.unwrap_or_else(|| Msm::<G>::msm_lanes(backend, n));
    let split = SplitMsm::<G, B>::load(backend, lanes, points[..].into(), USES)?;
    drop(points);
    let scalars = split.upload(backend, &values)?;
    let sum = || split.sum(backend, &scalars)?.wait();
    // Point i is (i + 2) g.
    if sum()? != G::Ark::generator() * factor::<C>(&values) {
        return Err(Error::Device(format!("a sum of 2^{log_n} points is wrong: nothing to measure")));
    }
    let mut seconds = Vec::with_capacity(runs);
    for run in 0..=runs {
        backend.synchronize()?;
        let started = Instant::now();
        sum()?;
        // The first run warms up.
        if run > 0 {
            seconds.push(started.elapsed().as_secs_f64());
        }
    }
    Ok(Summed { seconds, lanes: split.lanes() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use tandem_engine::DeviceChoice;

    fn scalars_are_what_they_are_called<C: Curve>() {
        let n = 10_000;
        let count =
            |kind: ScalarKind, is: &dyn Fn(&Canonical) -> bool| kind.make::<C>(n).iter().filter(|v| is(v)).count();
        let distinct = |kind: ScalarKind| kind.make::<C>(n).iter().map(|v| v.0).collect::<HashSet<_>>().len();
        assert_eq!(distinct(ScalarKind::Random), n);
        assert_eq!((distinct(ScalarKind::Equal), distinct(ScalarKind::Two)), (1, 2));
        assert_eq!(count(ScalarKind::One, &|v| v.0 == [1, 0, 0, 0]), n);
        assert!((n / 200..n / 50).contains(&count(ScalarKind::Sparse, &|v| v.0 != [0; 4])));
        assert!(
            count(ScalarKind::Window, &|v| v.0[0] < 1 << 15 && v.0[1..] == [0; 3]) == n
                && distinct(ScalarKind::Window) > n / 2
        );
    }

    #[test]
    fn every_kind_of_scalars_is_what_it_is_called() {
        scalars_are_what_they_are_called::<Bn254>();
        scalars_are_what_they_are_called::<Bls12_381>();
    }

    /// All are below r, each sixteenth of 0..r has a sixteenth of them, and each bit of the low words is set in half: values
    /// below a power of two, or reduced modulo r, would leave the last sixteenths empty or half full.
    fn random_scalars_are_uniform<C: Curve>() {
        const N: usize = 1 << 16;
        let values = ScalarKind::Random.make::<C>(N);
        let modulus = C::Fr::MODULUS;
        assert!(values.iter().all(|v| BigInt(v.0) < modulus));
        // The highest words tell.
        let top = u128::from(modulus.0[3]);
        let mut counts = [0usize; 16];
        values.iter().for_each(|v| counts[(16 * u128::from(v.0[3]) / (top + 1)) as usize] += 1);
        let near = |count: usize, expected: usize| {
            // Six standard deviations.
            count.abs_diff(expected) < 6 * (expected as f64).sqrt() as usize
        };
        assert!(counts.iter().all(|&count| near(count, N / 16)), "{counts:?}");
        for (word, bit) in (0..3).flat_map(|word| (0..64).map(move |bit| (word, bit))) {
            let set = values.iter().filter(|v| v.0[word] >> bit & 1 == 1).count();
            assert!(near(set, N / 2), "bit {bit} of word {word} is set in {set}");
        }
    }

    #[test]
    fn random_scalars_are_uniform_below_the_order() {
        random_scalars_are_uniform::<Bn254>();
        random_scalars_are_uniform::<Bls12_381>();
    }

    /// However many threads make them.
    #[test]
    fn scalars_are_the_same_every_time() {
        let values = ScalarKind::Random.make::<Bn254>(5000);
        assert_eq!(values, ScalarKind::Random.make::<Bn254>(5000));
        assert!(values.iter().enumerate().all(|(i, &v)| v == random::<Bn254>(mix(i as u64))));
    }

    #[test]
    fn sums_are_split_as_they_are_told() {
        let backend = Cpu::new(3);
        type G = <Bls12_381 as Curve>::G2;
        let of = |log_n, lanes| {
            let what = SumBench { g2: true, scalars: ScalarKind::Random, log_n, lanes };
            bench_group::<Bls12_381, G, _>(&backend, what, 2)
        };
        for (log_n, lanes, expected) in [(5, None, 3), (5, Some(1), 1), (5, Some(2), 2), (1, Some(3), 2), (1, None, 2)]
        {
            let summed = of(log_n, lanes).unwrap();
            assert_eq!((summed.seconds.len(), summed.lanes), (2, expected), "2^{log_n}, {lanes:?}");
        }
        for (log_n, lanes) in [(0, None), (29, None), (5, Some(0)), (5, Some(4))] {
            assert_eq!(of(log_n, lanes).unwrap_err().exit_status(), 2);
        }
    }

    #[test]
    fn sums_that_are_wrong_are_not_measured() {
        use tandem_conformance::{Fault, Faulty};
        type G = <Bn254 as Curve>::G1;
        let what = SumBench { g2: false, scalars: ScalarKind::Random, log_n: 4, lanes: None };
        let of = |fault| bench_group::<Bn254, G, _>(&Faulty::new(1, fault), what, 1);
        of(Fault::None).unwrap();
        let error = of(Fault::MsmG1).unwrap_err();
        assert!(error.to_string().contains("is wrong: nothing to measure") && error.exit_status() == 3, "{error}");
    }

    #[test]
    fn factors_are_sums_of_products() {
        for n in [1, 2, 5, 40_000] {
            let expected: u64 = (0..n as u64).map(|i| i + 2).sum();
            assert_eq!(factor::<Bn254>(&ScalarKind::One.make::<Bn254>(n)), <Bn254 as Curve>::Fr::from(expected));
        }
    }

    #[test]
    fn an_engine_is_measured_on_both_curves_and_groups() {
        let engine = Engine::open(&DeviceChoice::Cpu).unwrap();
        let what = SumBench { g2: true, scalars: ScalarKind::Random, log_n: 60, lanes: None };
        assert!(bench(&engine, CurveId::Bn254, what, 1).is_err());
        let what = SumBench { scalars: ScalarKind::Two, log_n: 4, ..what };
        assert_eq!(bench(&engine, CurveId::Bn254, what, 2).unwrap().seconds.len(), 2);
        let what = SumBench { g2: false, scalars: ScalarKind::Random, ..what };
        assert_eq!(bench(&engine, CurveId::Bls12_381, what, 2).unwrap().seconds.len(), 2);
        let three = SumBench { lanes: Some(3), ..what };
        assert_eq!(bench(&engine, CurveId::Bn254, three, 2).unwrap_err().exit_status(), 2);
    }
}
