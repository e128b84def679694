//! Transforms of batches over any field, in any form, on the first lane, for measurements.

use super::ntt::{Transformed, Transformer};
use super::ntt_input::Input;
use ark_ff::{FftField, Field};
use tandem_engine::{Error, Result};
use tandem_ops::{
    naive, BabyBear, Bls12_381, Bn254, Coset, Direction, FieldId, Goldilocks, Lane, Ntt, NttField, NttOp, Order,
};

/// Values that are compared with the polynomials'.
const CHECKED: usize = 8;
/// Elements of all vectors together.
const MAX_LOG_ELEMENTS: u32 = 34;

/// Over which points a batch is transformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Points {
    /// The subgroup.
    Subgroup,
    /// The odd powers of the 2n-th root of unity.
    Odd,
    /// The subgroup times a random element.
    Shifted,
}

/// Transforms of `count` vectors in one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Batch {
    /// Over which field.
    pub(crate) field: FieldId,
    /// Coefficients to values, or back.
    pub(crate) direction: Direction,
    /// Over which points.
    pub(crate) points: Points,
    /// Order of what comes in.
    pub(crate) input: Order,
    /// Order of what goes out.
    pub(crate) output: Order,
    /// How many vectors.
    pub(crate) count: usize,
}

/// A backend without its type, for batches.
pub(crate) trait Batching: Send + Sync {
    fn batch(&self, batch: &Batch, log_n: u32, runs: usize) -> Result<Vec<f64>>;
}

impl<B: Ntt<Bn254> + Ntt<Bls12_381> + Ntt<Goldilocks> + Ntt<BabyBear>> Batching for B {
    fn batch(&self, batch: &Batch, log_n: u32, runs: usize) -> Result<Vec<f64>> {
        match batch.field {
            FieldId::Bn254 => bench::<Bn254, B>(self, batch, log_n, runs),
            FieldId::Bls12_381 => bench::<Bls12_381, B>(self, batch, log_n, runs),
            FieldId::Goldilocks => bench::<Goldilocks, B>(self, batch, log_n, runs),
            FieldId::BabyBear => bench::<BabyBear, B>(self, batch, log_n, runs),
        }
    }
}

impl Transformer {
    /// How long each of `runs` transforms of `batch` took, whose vectors of 2^`log_n` elements lie on the first lane.
    /// Some values are checked first, or coefficients.
    ///
    /// # Errors
    /// The size is out of range or does not fit; a value is wrong.
    pub(crate) fn bench_batch(&self, batch: &Batch, log_n: u32, runs: usize) -> Result<Transformed> {
        Ok(Transformed { seconds: self.batching().batch(batch, log_n, runs)?, lanes: 1 })
    }
}

/// Puts `count` vectors into memory of `backend`, in this order, by one inverse transform.
fn upload<F: NttField, B: Ntt<F>>(
    input: &Input<F>,
    count: usize,
    order: Order,
    backend: &B,
) -> Result<B::Buf<F::Element>> {
    let (n, period) = (1usize << input.log_n, input.period.len());
    let mut data = backend.alloc(Lane(0), count * n)?;
    let spectra = (0..count.min(period)).map(|v| input.spectrum(v)).collect::<tandem_ops::Result<Vec<_>>>()?;
    if n == period {
        // Whole vectors, which repeat: many at a time.
        let some = spectra.concat();
        let some = some.repeat((1usize << 16).div_ceil(some.len()).min(count.div_ceil(spectra.len())));
        for at in (0..count * n).step_by(some.len()) {
            backend.write(&mut data, at, &some[..some.len().min(count * n - at)])?;
        }
    } else {
        for v in 0..count {
            backend.write(&mut data, v * n, &spectra[v % period])?;
        }
    }
    Ntt::<F>::ntt_batch(backend, &mut data, count, input.to_coefficients(order))?;
    Ok(data)
}

/// Numbers below `bound`, spread by the golden ratio, even ones and odd ones.
fn spread(i: usize, bound: usize) -> usize {
    ((i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) as usize % bound
}

fn bench<F: NttField, B: Ntt<F>>(backend: &B, batch: &Batch, log_n: u32, runs: usize) -> Result<Vec<f64>> {
    let most = F::Ark::TWO_ADICITY - u32::from(batch.points == Points::Odd);
    let root = F::root_of_unity(log_n).filter(|_| log_n <= most);
    let root = root.ok_or_else(|| Error::input(format!("size 2^{log_n}: expected up to 2^{most} for {}", F::FIELD)))?;
    if batch.count == 0 || batch.count > 1 << (MAX_LOG_ELEMENTS - log_n) {
        let reason = format!("{} vectors of 2^{log_n}: expected 1 to 2^{}", batch.count, MAX_LOG_ELEMENTS - log_n);
        return Err(Error::input(reason));
    }
    let input = Input::<F>::new(log_n, log_n);
    let shift = match batch.points {
        Points::Subgroup => F::Ark::ONE,
        Points::Odd => F::root_of_unity(log_n + 1).unwrap_or(F::Ark::ONE),
        Points::Shifted => input.ratio + F::Ark::ONE,
    };
    let coset = match batch.points {
        Points::Subgroup => Coset::Subgroup,
        Points::Odd => Coset::Odd,
        Points::Shifted => Coset::Shift(F::element(shift)),
    };
    let op = NttOp { direction: batch.direction, coset, input: batch.input, output: batch.output };

    let order = if op.direction == Direction::Forward { op.input } else { Order::Natural };
    let mut data = upload(&input, batch.count, order, backend)?;
    if op.direction == Direction::Inverse {
        let there = NttOp { direction: Direction::Forward, coset, input: Order::Natural, output: op.input };
        Ntt::<F>::ntt_batch(backend, &mut data, batch.count, there)?;
    }
    Ntt::<F>::ntt_batch(backend, &mut data, batch.count, op)?;
    for i in 0..CHECKED {
        let (vector, k) = (spread(i, batch.count), spread(i + 100, 1 << log_n));
        let place = (vector << log_n) + naive::place(op.output, k, log_n);
        let got = backend.download(&backend.copy(&data, place..place + 1, Lane(0))?)?.wait()?;
        let expected = match op.direction {
            Direction::Forward => input.value(vector, shift * root.pow([k as u64])),
            Direction::Inverse => input.coefficient(vector, k),
        };
        if got.first() != Some(&F::element(expected)) {
            let what = format!("element {k} of vector {vector} of a transform is wrong: nothing to measure");
            return Err(Error::Device(what));
        }
    }

    backend.take_spans()?;
    for _ in 0..=runs {
        let span = backend.begin(Lane(0), "transform");
        Ntt::<F>::ntt_batch(backend, &mut data, batch.count, op)?;
        backend.end(span);
    }
    // The first run warms up.
    Ok(backend.take_spans()?.iter().skip(1).map(|span| span.duration_us / 1e6).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_and_form_is_measured() {
        let on = Transformer::open(&"cpu".parse().unwrap()).unwrap();
        let orders = [Order::Natural, Order::BitReversed];
        for field in [FieldId::Bn254, FieldId::Bls12_381, FieldId::Goldilocks, FieldId::BabyBear] {
            for direction in [Direction::Forward, Direction::Inverse] {
                for points in [Points::Subgroup, Points::Odd, Points::Shifted] {
                    for (input, output) in orders.into_iter().flat_map(|i| orders.map(|o| (i, o))) {
                        for (log_n, count) in [(0, 1), (1, 3), (5, 3), (9, 1)] {
                            let batch = Batch { field, direction, points, input, output, count };
                            let times = on.bench_batch(&batch, log_n, 2).unwrap();
                            assert!(times.seconds.len() == 2 && times.lanes == 1, "{batch:?}, 2^{log_n}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn sizes_out_of_range_are_refused() {
        let on = Transformer::open(&"cpu".parse().unwrap()).unwrap();
        let batch = Batch {
            field: FieldId::BabyBear,
            direction: Direction::Forward,
            points: Points::Odd,
            input: Order::Natural,
            output: Order::Natural,
            count: 1,
        };
        for (log_n, count) in [(27, 1), (28, 1), (64, 1), (4, 0), (4, usize::MAX)] {
            assert_eq!(on.bench_batch(&Batch { count, ..batch }, log_n, 1).unwrap_err().exit_status(), 2);
        }
    }

    /// A wrong transform is not measured: the values do not fit those of another polynomial.
    #[test]
    fn values_are_those_of_the_polynomials() {
        let input = Input::<Goldilocks>::new(6, 6);
        let y = <Goldilocks as NttField>::Ark::from(12_345u64);
        for vector in [0, 1, 70] {
            let naive = (0..64).rev().fold(y - y, |sum, i| sum * y + input.coefficient(vector, i));
            assert_eq!(input.value(vector, y), naive);
            assert_ne!(input.value(vector, y), input.value(vector + 1, y));
        }
    }
}
