//! The number-theoretic transform, in all its forms.

mod cube;
pub(crate) mod fft;
mod grid;
mod products;
mod spread;

use crate::{samples, Failure, Outcome, Suite};
use ark_ff::{AdditiveGroup, UniformRand};
use tandem_ops::{naive, Backend, Coset, Direction, Lane, Ntt, NttField, NttOp, Order};

/// Sizes up to this are compared with the definition at every element.
const WHOLE: usize = 64;

/// Sizes and numbers of vectors.
const BATCHES: [(u32, usize); 10] =
    [(0, 5), (1, 3), (2, 3), (3, 131), (4, 33), (5, 3), (6, 35), (9, 5), (10, 2), (11, 3)];

/// Every form of a transform, with the shift `g` for cosets of any shift.
pub(crate) fn forms<E: Copy>(g: E) -> Vec<NttOp<E>> {
    let mut forms = Vec::new();
    for direction in [Direction::Forward, Direction::Inverse] {
        for coset in [Coset::Subgroup, Coset::Odd, Coset::Shift(g)] {
            for input in [Order::Natural, Order::BitReversed] {
                for output in [Order::Natural, Order::BitReversed] {
                    forms.push(NttOp { direction, coset, input, output });
                }
            }
        }
    }
    forms
}

impl<B: Backend> Suite<'_, B> {
    /// Transforms of every size up to 2^12 and of the largest size in all 24 forms, of the sizes between in three of
    /// them, and batches.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn ntt<F: NttField>(&mut self) -> Outcome
    where
        B: Ntt<F>,
    {
        let last = self.backend.lanes() - 1;
        for log_n in (0..=12.min(self.log_n)).chain((13..=self.log_n).rev().take(1)) {
            let rng = &mut samples::rng(u64::from(log_n));
            let input = samples::elements::<F>(1 << log_n, rng);
            for op in forms(F::element(F::Ark::rand(rng))) {
                self.transform::<F>(Lane(log_n as usize % (last + 1)), &input, op)?;
            }
        }
        for log_n in 13..self.log_n {
            let rng = &mut samples::rng(u64::from(log_n));
            let input = samples::elements::<F>(1 << log_n, rng);
            let forms = forms(F::element(F::Ark::rand(rng)));
            for op in forms.into_iter().skip(log_n as usize % 7).step_by(7).take(3) {
                self.transform::<F>(Lane(log_n as usize % (last + 1)), &input, op)?;
            }
        }
        for (log_n, count) in BATCHES {
            let rng = &mut samples::rng(100 + u64::from(log_n));
            let input = samples::elements::<F>(count << log_n, rng);
            for op in forms(F::element(F::Ark::rand(rng))) {
                self.batch::<F>(Lane(last), &input, count, op)?;
            }
        }
        self.refusals::<F>()
    }

    /// Each vector of a batch is transformed as it is by itself.
    fn batch<F: NttField>(&mut self, lane: Lane, input: &[F::Ark], count: usize, op: NttOp<F::Element>) -> Outcome
    where
        B: Ntt<F>,
    {
        let n = input.len() / count;
        let what = format!("{op:?} of {count} times {n} elements");
        let wire = samples::wire::<F>(input);
        let mut expected = Vec::with_capacity(wire.len());
        for vector in input.chunks(n) {
            if n <= 8 {
                let output = naive::ntt::<F>(vector, op).ok_or_else(|| Failure(format!("{what}: is not defined")))?;
                expected.extend(samples::wire::<F>(&output));
            } else {
                let mut reference = self.reference.upload(Lane(0), &samples::wire::<F>(vector))?;
                Ntt::<F>::ntt(&self.reference, &mut reference, op)?;
                expected.extend_from_slice(reference.as_slice());
            }
        }
        let mut buf = self.backend.upload(lane, &wire)?;
        Ntt::<F>::ntt_batch(self.backend, &mut buf, count, op)?;
        self.holds(&buf, &expected, &what)
    }

    fn transform<F: NttField>(&mut self, lane: Lane, input: &[F::Ark], op: NttOp<F::Element>) -> Outcome
    where
        B: Ntt<F>,
    {
        let n = input.len();
        let what = format!("{op:?} of {n} elements");
        let wire = samples::wire::<F>(input);
        let mut buf = self.backend.upload(lane, &wire)?;
        Ntt::<F>::ntt(self.backend, &mut buf, op)?;
        if n <= WHOLE {
            let expected = naive::ntt::<F>(input, op).ok_or_else(|| Failure(format!("{what}: is not defined")))?;
            self.holds(&buf, &samples::wire::<F>(&expected), &what)?;
        } else {
            let got = self.backend.download(&buf)?.wait()?;
            for i in [1, n / 3, n - 1] {
                let value = F::value(got[naive::place(op.output, i, n.ilog2())]);
                self.that(Some(value) == naive::ntt_at::<F>(input, op, i), format_args!("{what}: index {i}"))?;
            }
            let mut reference = self.reference.upload(Lane(0), &wire)?;
            Ntt::<F>::ntt(&self.reference, &mut reference, op)?;
            self.holds(&buf, reference.as_slice(), format_args!("{what}, against the CPU"))?;
        }
        // There and back again.
        let direction = match op.direction {
            Direction::Forward => Direction::Inverse,
            Direction::Inverse => Direction::Forward,
        };
        let back = NttOp { direction, coset: op.coset, input: op.output, output: op.input };
        Ntt::<F>::ntt(self.backend, &mut buf, back)?;
        self.holds(&buf, &wire, format_args!("{what}, and back"))
    }

    fn refusals<F: NttField>(&mut self) -> Outcome
    where
        B: Ntt<F>,
    {
        let g = F::element(F::Ark::from(7u64));
        for n in [0, 3, 5, 6, 12, 1000] {
            let values = vec![g; n];
            for op in forms(g) {
                let mut buf = self.backend.upload(Lane(0), &values)?;
                let refused = Ntt::<F>::ntt(self.backend, &mut buf, op);
                self.refused(refused, format_args!("{op:?} of {n} elements"))?;
                self.holds(&buf, &values, "a vector after a refused transform")?;
            }
        }
        for (n, count) in [(8, 0), (0, 0), (8, 3), (12, 2), (8, 16)] {
            let values = vec![g; n];
            let mut buf = self.backend.upload(Lane(0), &values)?;
            let refused = Ntt::<F>::ntt_batch(self.backend, &mut buf, count, forms(g)[0]);
            self.refused(refused, format_args!("{count} vectors of together {n} elements"))?;
            self.holds(&buf, &values, "a batch after a refused transform")?;
        }
        for op in forms(F::element(F::Ark::ZERO)).into_iter().filter(|op| matches!(op.coset, Coset::Shift(_))) {
            for n in [1, 8] {
                let mut buf = self.backend.upload(Lane(0), &vec![g; n])?;
                let refused = Ntt::<F>::ntt(self.backend, &mut buf, op);
                self.refused(refused, format_args!("{op:?} of {n} elements over a coset of zero"))?;
            }
        }
        Ok(())
    }
}
