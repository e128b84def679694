//! Discrete Fourier transforms, on one lane and spread over lanes. Values are equal within [`fft::error_bound`].

use crate::{samples, Outcome, Suite};
use rand_chacha::{rand_core::RngCore, ChaCha8Rng};
use std::fmt::Display;
use tandem_ops::ntt::{fft, MAX_SHARDS};
use tandem_ops::{naive, Backend, Buffer, Complex, Direction, Fft, Lane, Order, Spread};

/// Sizes up to this are compared with the definition at every number.
const WHOLE: u32 = 6;
/// Sizes and numbers of vectors.
const BATCHES: [(u32, usize); 9] = [(0, 5), (1, 3), (2, 3), (3, 131), (4, 33), (5, 3), (6, 35), (9, 5), (11, 3)];
/// What the definition itself is off by, relative to values of random numbers.
pub(super) const DEFINITION: f64 = 8.0 / (1u64 << 53) as f64;

pub(super) fn random<T: Complex>(n: usize, rng: &mut ChaCha8Rng) -> Vec<T> {
    let mut part = || (rng.next_u64() as i64) as f64 / 2f64.powi(63);
    (0..n).map(|_| T::new(part(), part())).collect()
}

fn parts<T: Complex>(x: &[T]) -> Vec<[f64; 2]> {
    x.iter().map(|x| x.parts()).collect()
}

/// The root of the sum of the squares of all differences, relative to that of the values that were expected.
pub(crate) fn off<T: Complex>(got: &[T], expected: &[[f64; 2]]) -> f64 {
    let square = |re: f64, im: f64| re * re + im * im;
    let all = got.iter().zip(expected).map(|(x, e)| square(x.parts()[0] - e[0], x.parts()[1] - e[1]));
    let (all, of) = (naive::float_sum(all), naive::float_sum(expected.iter().map(|e| square(e[0], e[1]))));
    if all == 0.0 {
        0.0
    } else {
        (all / of).sqrt()
    }
}

pub(super) fn directions() -> [Direction; 2] {
    [Direction::Forward, Direction::Inverse]
}

impl<B: Backend> Suite<'_, B> {
    /// Transforms of every size up to 2^12 and of the largest, batches, transforms that are spread over 1 to 16 shards, vectors that are not
    /// finite, and what is refused.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn fft<T: Complex>(&mut self) -> Outcome
    where
        B: Fft<T>,
    {
        let sizes: Vec<u32> = (0..=12.min(self.log_n)).chain((13..=self.log_n).rev().take(1)).collect();
        let last = self.backend.lanes() - 1;
        for &log_n in &sizes {
            let input = random::<T>(1 << log_n, &mut samples::rng(400 + u64::from(log_n)));
            for direction in directions() {
                let lane = Lane(log_n as usize % (last + 1));
                self.fourier(lane, &input, direction)?;
                for log_shards in 0..=MAX_SHARDS.ilog2().min(log_n) {
                    self.spread_fourier(Spread { log_n, log_shards }, &input, direction)?;
                }
            }
        }
        for (log_n, count) in BATCHES {
            let input = random::<T>(count << log_n, &mut samples::rng(500 + u64::from(log_n)));
            for direction in directions() {
                let mut buf = self.backend.upload(Lane(last), &input)?;
                self.backend.fft_batch(&mut buf, count, direction)?;
                let got = self.backend.download(&buf)?.wait()?;
                for (i, (got, vector)) in got.chunks(1 << log_n).zip(input.chunks(1 << log_n)).enumerate() {
                    let what = format_args!("{direction:?} of 2^{log_n} complex numbers, vector {i} of {count}");
                    self.values(got, vector, direction, what)?;
                }
            }
        }
        self.not_finite::<T>()?;
        self.fft_refusals::<T>()
    }

    /// Compares with the definition, or, where there are more, with the CPU and at some places with the definition.
    fn values<T: Complex>(&mut self, got: &[T], of: &[T], direction: Direction, what: impl Display) -> Outcome {
        let (n, log_n) = (of.len(), of.len().ilog2());
        let most = fft::error_bound::<T>(log_n) + DEFINITION;
        self.that(got.len() == n, format_args!("{what}: the length"))?;
        let input = parts(of);
        if log_n <= WHOLE {
            let expected: Vec<_> = (0..n).map(|k| naive::dft_at(&input, direction, k)).collect();
            let off = off(got, &expected);
            return self.that(off <= most, format_args!("{what}: off by {off:e}, expected {most:e} at most"));
        }
        let mut reference = self.reference.upload(Lane(0), of)?;
        self.reference.fft(&mut reference, direction)?;
        let expected = parts(reference.as_slice());
        // The CPU has an error as well.
        let differ = off(got, &expected);
        let what = what.to_string();
        self.that(
            differ <= 2.0 * most,
            format_args!("{what}: off by {differ:e} from the CPU, expected {most:e} at most"),
        )?;
        let places = [1, n / 3, n - 1];
        let defined = places.map(|k| naive::dft_at(&input, direction, k));
        let off = off(&places.map(|k| got[k]), &defined);
        self.that(off <= most, format_args!("{what}: off by {off:e} at some places, expected {most:e} at most"))
    }

    fn fourier<T: Complex>(&mut self, lane: Lane, input: &[T], direction: Direction) -> Outcome
    where
        B: Fft<T>,
    {
        let mut buf = self.backend.upload(lane, input)?;
        self.backend.fft(&mut buf, direction)?;
        let on = buf.lane();
        let got = self.backend.download(&buf)?.wait()?;
        let what = format!("{direction:?} of {} complex numbers", input.len());
        self.that(on == lane, format_args!("{what}: the lane"))?;
        self.values(&got, input, direction, what)
    }

    fn spread_fourier<T: Complex>(&mut self, spread: Spread, input: &[T], direction: Direction) -> Outcome
    where
        B: Fft<T>,
    {
        let lanes = self.backend.lanes();
        let dealt = spread.deal(Order::Natural, input);
        let upload = |(s, part): (usize, &Vec<T>)| self.backend.upload(Lane(s % lanes), part);
        let mut shards = dealt.iter().enumerate().map(upload).collect::<tandem_ops::Result<Vec<_>>>()?;
        self.backend.fft_spread(&mut shards.iter_mut().collect::<Vec<_>>(), direction)?;
        let got = shards.iter().map(|shard| self.backend.download(shard)?.wait());
        let got = got.collect::<tandem_ops::Result<Vec<_>>>()?;
        let what = format!("{direction:?} of 2^{} complex numbers in 2^{} shards", spread.log_n, spread.log_shards);
        for (s, shard) in shards.iter().enumerate() {
            self.that(shard.lane() == Lane(s % lanes), format_args!("{what}: the lane of shard {s}"))?;
        }
        self.values(&spread.collect(Order::Natural, &got), input, direction, what)
    }

    /// A NaN or an infinity is in every value of its vector, and in no value of another one.
    fn not_finite<T: Complex>(&mut self) -> Outcome
    where
        B: Fft<T>,
    {
        for (log_n, wrong) in [(0u32, f64::INFINITY), (2, f64::NAN), (5, f64::NEG_INFINITY), (11, f64::NAN)] {
            let n = 1usize << log_n;
            for direction in directions() {
                let mut input = random::<T>(2 * n, &mut samples::rng(600 + u64::from(log_n)));
                input[n + n / 3] = T::new(0.5, wrong);
                let mut buf = self.backend.upload(Lane(0), &input)?;
                self.backend.fft_batch(&mut buf, 2, direction)?;
                let got = self.backend.download(&buf)?.wait()?;
                let finite = |x: &T| x.parts().iter().all(|part| part.is_finite());
                let holds = got[..n].iter().all(finite) && !got[n..].iter().any(finite);
                self.that(holds, format_args!("{direction:?} of 2^{log_n} complex numbers of which one is {wrong}"))?;
            }
        }
        Ok(())
    }

    fn fft_refusals<T: Complex>(&mut self) -> Outcome
    where
        B: Fft<T>,
    {
        let one = T::new(1.0, 2.0);
        for (n, count) in [(0, 1), (3, 1), (12, 1), (1000, 1), (8, 0), (0, 0), (8, 3), (12, 2), (8, 16)] {
            let mut buf = self.backend.upload(Lane(0), &vec![one; n])?;
            let refused = self.backend.fft_batch(&mut buf, count, Direction::Forward);
            self.refused(refused, format_args!("{count} vectors of together {n} complex numbers"))?;
            self.holds(&buf, &vec![one; n], "a vector after a refused transform")?;
        }
        let lanes = self.backend.lanes();
        let lengths: [&[usize]; 7] = [&[], &[8; 3], &[8, 4], &[4, 8], &[0; 2], &[3; 2], &[1; 32]];
        for lengths in lengths {
            let alloc = |(s, &len): (usize, &usize)| self.backend.alloc::<T>(Lane(s % lanes), len);
            let mut shards = lengths.iter().enumerate().map(alloc).collect::<tandem_ops::Result<Vec<_>>>()?;
            let refused = self.backend.fft_spread(&mut shards.iter_mut().collect::<Vec<_>>(), Direction::Inverse);
            self.refused(refused, format_args!("shards of {lengths:?} complex numbers"))?;
        }
        Ok(())
    }
}
