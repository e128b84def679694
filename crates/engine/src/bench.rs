//! Single primitives, for measurements.

use crate::{Error, Result};
use std::time::Instant;
use tandem_ops::{
    Backend, Buffer, Canonical, Coset, Curve, Direction, Group, Lane, Msm, MsmRequest, MsmSet, NttOp, Order,
    ProofBackend, Scalars,
};

/// Sizes that a measurement may ask for: 2^1 to 2^28.
const LOG_SIZES: std::ops::RangeInclusive<u32> = 1..=28;

fn check(log_n: u32) -> Result<usize> {
    if LOG_SIZES.contains(&log_n) {
        return Ok(1 << log_n);
    }
    Err(Error::input(format!("size 2^{log_n}: expected 2^{} to 2^{}", LOG_SIZES.start(), LOG_SIZES.end())))
}

/// Pseudo-random integers below 2^253, which both curves' scalar fields hold.
fn integers(n: usize) -> Vec<Canonical> {
    let mut bytes = vec![0; n * 32];
    blake3::Hasher::new_derive_key("tandem bench scalars").finalize_xof().fill(&mut bytes);
    let limb = |c: &[u8], i: usize| u64::from_le_bytes(std::array::from_fn(|b| c[i * 8 + b]));
    bytes.chunks_exact(32).map(|c| Canonical([limb(c, 0), limb(c, 1), limb(c, 2), limb(c, 3) >> 11])).collect()
}

/// One forward transform, elements in natural order in and bit-reversed out, without the transfer.
pub(crate) fn ntt<C: Curve, B: ProofBackend<C>>(backend: &B, log_n: u32, runs: usize) -> Result<Vec<f64>> {
    let n = check(log_n)?;
    let input = backend.upload(Lane(0), &integers(n))?;
    let mut data = backend.alloc(Lane(0), n)?;
    backend.to_mont(&input, &mut data)?;
    drop(input);
    let op = NttOp {
        direction: Direction::Forward,
        coset: Coset::Subgroup,
        input: Order::Natural,
        output: Order::BitReversed,
    };
    timed(backend, runs, || backend.ntt(&mut data, op))
}

/// One sum: digits of scalars that lie on the device, and the sum itself, on the first lane.
pub(crate) fn msm<C: Curve, G: Group<Curve = C>, B: ProofBackend<C> + Msm<G>>(
    backend: &B,
    g2: bool,
    log_n: u32,
    runs: usize,
) -> Result<Vec<f64>> {
    let n = check(log_n)?;
    let points = tandem_groth16::setup::sequence::<G>(n);
    let scalars = backend.upload(Lane(0), &integers(n))?;
    let free = backend.info().free_bytes.first().copied().unwrap_or(0);
    // Half for the points; the rest for digits and buckets.
    let request =
        MsmRequest { scalars: scalars.len(), sets: vec![MsmSet { g2, first: 0, points: n }], memory_bytes: free / 2 };
    let plan = backend.plan(Lane(0), &request)?;
    let bases = Msm::<G>::load(backend, Lane(0), &plan, 0, points.as_slice().into())?;
    drop(points);
    timed(backend, runs, || {
        let digits = backend.digits(&plan, Scalars::Canonical(&scalars))?;
        Msm::<G>::msm(backend, &bases, &digits)?.wait().map(drop)
    })
}

/// Seconds of each run, after one that does not count.
fn timed<B: Backend>(backend: &B, runs: usize, mut work: impl FnMut() -> tandem_ops::Result<()>) -> Result<Vec<f64>> {
    let mut seconds = Vec::with_capacity(runs);
    for run in 0..=runs {
        backend.synchronize()?;
        let started = Instant::now();
        work()?;
        backend.synchronize()?;
        if run > 0 {
            seconds.push(started.elapsed().as_secs_f64());
        }
    }
    backend.take_spans()?;
    Ok(seconds)
}
