//! Single primitives, for measurements. One result of each is checked before anything is timed.

use crate::{Error, Result};
use ark_ff::Zero;
use tandem_ops::{Canonical, Coset, Curve, Direction, Lane, NttOp, Order, ProofBackend};

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

fn element<C: Curve>(value: &Canonical) -> C::Fr {
    C::Fr::from(ark_ff::BigInt(value.0))
}

/// One forward transform, elements in natural order in and bit-reversed out, without the transfer, by the device's clock.
pub(crate) fn ntt<C: Curve, B: ProofBackend<C>>(backend: &B, log_n: u32, runs: usize) -> Result<Vec<f64>> {
    let n = check(log_n)?;
    let values = integers(n);
    let input = backend.upload(Lane(0), &values)?;
    let mut data = backend.alloc(Lane(0), n)?;
    backend.to_mont(&input, &mut data)?;
    drop(input);
    let op = NttOp {
        direction: Direction::Forward,
        coset: Coset::Subgroup,
        input: Order::Natural,
        output: Order::BitReversed,
    };
    backend.ntt(&mut data, op)?;
    // Value 1, which stands at the place n / 2, is the polynomial's value at w.
    let got = backend.download(&backend.copy(&data, n / 2..n / 2 + 1, Lane(0))?)?.wait()?;
    let root = C::root_of_unity(log_n).ok_or_else(|| Error::input(format!("size 2^{log_n}: above the 2-adicity")))?;
    let expected = values.iter().rev().fold(C::Fr::zero(), |sum, v| sum * root + element::<C>(v));
    if got.first() != Some(&C::mont(expected)) {
        return Err(Error::Device(format!("a transform of 2^{log_n} elements is wrong: nothing to measure")));
    }
    backend.take_spans()?;
    for _ in 0..=runs {
        let span = backend.begin(Lane(0), "transform");
        backend.ntt(&mut data, op)?;
        backend.end(span);
    }
    // The first run warms up.
    Ok(backend.take_spans()?.iter().skip(1).map(|span| span.duration_us / 1e6).collect())
}
