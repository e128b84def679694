//! Transforms that are spread over lanes, in all their forms.

use super::forms;
use crate::{samples, Failure, Outcome, Suite};
use ark_ff::{AdditiveGroup, UniformRand};
use tandem_ops::ntt::MAX_SHARDS;
use tandem_ops::{naive, Backend, Lane, NttField, NttOp, NttSpread, Order, Spread};

/// Up to this size all forms are done at all numbers of shards; above it a form takes turns with the others.
const WHOLE: u32 = 8;

impl<B: Backend> Suite<'_, B> {
    /// Transforms over 1 to 16 shards, dealt to the lanes in turn, of every size up to 2^12 and of the largest size.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn ntt_spread<F: NttField>(&mut self) -> Outcome
    where
        B: NttSpread<F>,
    {
        let log_most = MAX_SHARDS.ilog2();
        let sizes = (0..=12.min(self.log_n)).chain((13..=self.log_n).rev().take(1));
        for (log_n, log_shards) in sizes.flat_map(|log_n| (0..=log_most.min(log_n)).map(move |m| (log_n, m))) {
            let rng = &mut samples::rng(u64::from(32 * log_n + log_shards));
            let input = samples::elements::<F>(1 << log_n, rng);
            let forms = forms(F::element(F::Ark::rand(rng)));
            let every = if log_n <= WHOLE { 1 } else { 5 };
            for op in forms.into_iter().skip((log_n + log_shards) as usize % every).step_by(every) {
                self.spread_transform::<F>(Spread { log_n, log_shards }, &input, op)?;
            }
        }
        self.spread_refusals::<F>()
    }

    fn spread_transform<F: NttField>(&mut self, spread: Spread, input: &[F::Ark], op: NttOp<F::Element>) -> Outcome
    where
        B: NttSpread<F>,
    {
        let what = format!("{op:?} of 2^{} elements in 2^{} shards", spread.log_n, spread.log_shards);
        let wire = samples::wire::<F>(input);
        let mut shards = self.shards::<F>(&spread.deal(op.input, &wire))?;
        NttSpread::<F>::ntt_spread(self.backend, &mut shards.iter_mut().collect::<Vec<_>>(), op)?;

        let natural = NttOp { input: Order::Natural, output: Order::Natural, ..op };
        let mut reference = self.reference.upload(Lane(0), &wire)?;
        tandem_ops::Ntt::<F>::ntt(&self.reference, &mut reference, natural)?;
        let expected = spread.deal(op.output, reference.as_slice());
        for (s, (shard, expected)) in shards.iter().zip(&expected).enumerate() {
            self.holds(shard, expected, format_args!("{what}: shard {s}, against the CPU"))?;
        }
        let index = input.len() / 3;
        let at = naive::ntt_at::<F>(input, natural, index).map(F::element);
        self.that(at == Some(reference.as_slice()[index]), format_args!("{what}: index {index}"))?;

        let direction = match op.direction {
            tandem_ops::Direction::Forward => tandem_ops::Direction::Inverse,
            tandem_ops::Direction::Inverse => tandem_ops::Direction::Forward,
        };
        let back = NttOp { direction, coset: op.coset, input: op.output, output: op.input };
        NttSpread::<F>::ntt_spread(self.backend, &mut shards.iter_mut().collect::<Vec<_>>(), back)?;
        for (s, (shard, dealt)) in shards.iter().zip(&spread.deal(op.input, &wire)).enumerate() {
            self.holds(shard, dealt, format_args!("{what}, and back: shard {s}"))?;
        }
        Ok(())
    }

    fn shards<F: NttField>(&self, parts: &[Vec<F::Element>]) -> Outcome<Vec<B::Buf<F::Element>>> {
        let lanes = self.backend.lanes();
        let upload = |(s, part): (usize, &Vec<F::Element>)| self.backend.upload(Lane(s % lanes), part);
        Ok(parts.iter().enumerate().map(upload).collect::<tandem_ops::Result<_>>()?)
    }

    fn spread_refusals<F: NttField>(&mut self) -> Outcome
    where
        B: NttSpread<F>,
    {
        let g = F::element(F::Ark::from(7u64));
        let zero = F::element(F::Ark::ZERO);
        let lengths: [&[usize]; 8] = [&[], &[8; 3], &[8, 4], &[4, 8], &[0; 2], &[3; 2], &[1; 32], &[8, 8, 8, 4]];
        for lengths in lengths {
            let parts: Vec<Vec<F::Element>> = lengths.iter().map(|&len| vec![g; len]).collect();
            for op in forms(g) {
                let mut shards = self.shards::<F>(&parts)?;
                let refused = NttSpread::<F>::ntt_spread(self.backend, &mut shards.iter_mut().collect::<Vec<_>>(), op);
                self.refused(refused, format_args!("{op:?} of shards of {lengths:?} elements"))?;
                for (shard, part) in shards.iter().zip(&parts) {
                    self.holds(shard, part, "a shard after a refused transform")?;
                }
            }
        }
        for op in forms(zero).into_iter().filter(|op| op.coset == tandem_ops::Coset::Shift(zero)) {
            let mut shards = self.shards::<F>(&[vec![g; 8], vec![g; 8]])?;
            let refused = NttSpread::<F>::ntt_spread(self.backend, &mut shards.iter_mut().collect::<Vec<_>>(), op);
            self.refused(refused, format_args!("{op:?} over a coset of zero"))?;
        }
        let lanes = self.backend.lanes();
        for log_n in 0..=32 {
            let advised = NttSpread::<F>::ntt_lanes(self.backend, log_n);
            let fits = advised.is_power_of_two() && advised <= lanes && advised.ilog2() <= log_n;
            if !fits {
                return Err(Failure(format!("2^{log_n} elements over {advised} of {lanes} lanes")));
            }
        }
        Ok(())
    }
}
