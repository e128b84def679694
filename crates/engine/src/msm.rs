//! Sums for measurements: points resident, split over all lanes; random scalars, and such as are hard on buckets. One
//! result is checked before anything is timed.

use crate::{Error, Result};
use ark_ec::PrimeGroup;
use ark_ff::Zero;
use std::time::Instant;
use tandem_ops::{Canonical, Curve, Group, Lane, Msm, MsmRequest, MsmSet, Pending, ProofBackend, Scalars};

/// Sizes that a measurement may ask for: 2^1 to 2^28.
const LOG_SIZES: std::ops::RangeInclusive<u32> = 1..=28;
/// Sums that the points are loaded for, as those of a service's key are: all tables that pay.
const USES: u64 = 1_000_000;

/// What the scalars of a measurement are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScalarKind {
    /// Pseudo-random integers below 2^253, which both curves' scalar fields hold.
    Random,
    /// One random integer, everywhere.
    Equal,
    /// 1 everywhere.
    One,
    /// 99 of 100 are 0, the others random.
    Sparse,
    /// One of two random integers.
    Two,
    /// Random integers below 2^15: all digits but the lowest are 0.
    Window,
}

impl ScalarKind {
    fn make(self, n: usize) -> Vec<Canonical> {
        let mut values = vec![Canonical([0; 4]); n];
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

fn random(seed: u64) -> Canonical {
    let word = |k: u64| mix(seed.wrapping_mul(4).wrapping_add(k));
    Canonical([word(0), word(1), word(2), word(3) >> 11])
}

/// Calls `f` with the first index and the elements of every piece, on several threads.
fn in_pieces<T: Send>(values: &mut [T], f: impl Fn(usize, &mut [T]) + Sync) {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let size = values.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        for (number, piece) in values.chunks_mut(size).enumerate() {
            let f = &f;
            scope.spawn(move || f(number * size, piece));
        }
    });
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

/// Seconds of each run: digits of scalars that lie on the lanes, and the sums, until the host has the result. Each lane
/// holds its share of the points and of the scalars.
pub(crate) fn bench<C: Curve, G: Group<Curve = C>, B: ProofBackend<C> + Msm<G>>(
    backend: &B,
    kind: ScalarKind,
    log_n: u32,
    runs: usize,
) -> Result<Vec<f64>> {
    if !LOG_SIZES.contains(&log_n) {
        let (least, most) = (LOG_SIZES.start(), LOG_SIZES.end());
        return Err(Error::input(format!("size 2^{log_n}: expected 2^{least} to 2^{most}")));
    }
    let n = 1usize << log_n;
    let points = tandem_groth16::setup::sequence::<G>(n);
    let values = kind.make(n);
    let lanes = backend.lanes().min(n);
    let mut shares = Vec::with_capacity(lanes);
    for lane in 0..lanes {
        let range = n * lane / lanes..n * (lane + 1) / lanes;
        let scalars = backend.upload(Lane(lane), &values[range.clone()])?;
        let free = backend.info().free_bytes.get(lane).copied().unwrap_or(0);
        // A quarter for digits and buckets.
        let set = MsmSet { g2: G::NAME == C::G2::NAME, first: 0, points: range.len() };
        let request = MsmRequest { scalars: range.len(), sets: vec![set], memory_bytes: free / 4 * 3, uses: USES };
        let plan = backend.plan(Lane(lane), &request)?;
        let bases = Msm::<G>::load(backend, Lane(lane), &plan, 0, points[range].into())?;
        shares.push((scalars, plan, bases));
    }
    drop(points);
    let sum = || -> tandem_ops::Result<G::Ark> {
        // All lanes are told of their digits first: the last one does not wait until the others have been told of their sums.
        let digits = shares
            .iter()
            .map(|(scalars, plan, _)| backend.digits(plan, Scalars::Canonical(scalars)))
            .collect::<tandem_ops::Result<Vec<_>>>()?;
        let parts = shares
            .iter()
            .zip(&digits)
            .map(|((_, _, bases), digits)| Msm::<G>::msm(backend, bases, digits))
            .collect::<tandem_ops::Result<Vec<Pending<G::Ark>>>>()?;
        parts.into_iter().try_fold(G::Ark::zero(), |sum, part| Ok(sum + part.wait()?))
    };
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
    backend.take_spans()?;
    Ok(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_ops::Bn254;

    #[test]
    fn scalars_are_what_they_are_called() {
        let n = 10_000;
        let count = |kind: ScalarKind, is: &dyn Fn(&Canonical) -> bool| kind.make(n).iter().filter(|v| is(v)).count();
        let distinct =
            |kind: ScalarKind| kind.make(n).iter().map(|v| v.0).collect::<std::collections::HashSet<_>>().len();
        assert_eq!(distinct(ScalarKind::Random), n);
        assert!(
            count(ScalarKind::Random, &|v| v.0[3] >> 53 == 0) == n
                && count(ScalarKind::Random, &|v| v.0[3] >> 52 == 1) > n / 3
        );
        assert_eq!((distinct(ScalarKind::Equal), distinct(ScalarKind::Two)), (1, 2));
        assert_eq!(count(ScalarKind::One, &|v| v.0 == [1, 0, 0, 0]), n);
        assert!((n / 200..n / 50).contains(&count(ScalarKind::Sparse, &|v| v.0 != [0; 4])));
        assert!(
            count(ScalarKind::Window, &|v| v.0[0] < 1 << 15 && v.0[1..] == [0; 3]) == n
                && distinct(ScalarKind::Window) > n / 2
        );
    }

    #[test]
    fn factors_are_sums_of_products() {
        for n in [1, 2, 5, 40_000] {
            let expected: u64 = (0..n as u64).map(|i| i + 2).sum();
            assert_eq!(factor::<Bn254>(&ScalarKind::One.make(n)), <Bn254 as Curve>::Fr::from(expected));
        }
    }
}
