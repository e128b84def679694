//! Transforms that are spread over lanes, by their definition ([`crate::ntt::spread`]): each shard's own transform, the
//! exchange, and the transforms across the shards.

use super::{forward, negate_indices, reverse_bits, root, scale_by_powers, shift_of};
use crate::cpu::{Buf, Cpu};
use crate::ntt::Spread;
use crate::{Coset, Direction, Lane, Ntt, NttField, NttOp, NttSpread, Order, Result};
use ark_ff::{AdditiveGroup, Field};
use rayon::prelude::*;
use zeroize::Zeroizing;

impl<F: NttField> NttSpread<F> for Cpu {
    fn ntt_spread(&self, shards: &mut [&mut Buf<F::Element>], op: NttOp<F::Element>) -> Result<()> {
        let spread = Spread::of::<F>(shards.iter().map(|shard| shard.data.len()), &op)?;
        if let [shard] = shards {
            return Ntt::<F>::ntt(self, shard, op);
        }
        if spread.len() < spread.shards() {
            // Values of one transform across the shards belong to several of them.
            return self.in_one_place::<F>(spread, shards, op);
        }
        let inverse = op.direction == Direction::Inverse;
        let shift = shift_of::<F>(op.coset, spread.log_n)?;
        let roots = self.roots.get::<F>(spread.log_n, self.simd)?;
        let w = root::<F>(spread.log_n)?;
        let w = if inverse { w.inverse().unwrap_or(F::Ark::ZERO) } else { w };
        let count = spread.shards();
        let local = |data: &mut [F::Element]| {
            forward::<F>(data, &roots, Order::Natural, Order::Natural, false);
            if inverse {
                negate_indices::<F>(self.simd, data, Order::Natural, F::Ark::ONE);
            }
        };
        for (s, shard) in shards.iter_mut().enumerate() {
            let data = &mut shard.data;
            if op.input == Order::BitReversed {
                reverse_bits(data);
            }
            if op.coset != Coset::Subgroup && !inverse {
                scale_by_powers::<F>(self.simd, data, Order::Natural, shift.pow([s as u64]), shift.pow([count as u64]));
            }
            local(data);
            scale_by_powers::<F>(self.simd, data, Order::Natural, F::Ark::ONE, w.pow([s as u64]));
        }
        exchange(shards);
        // Shard s now has, from each shard in turn, the values number s, s + count, s + 2 count .. of its transform.
        let columns = spread.len() / count;
        let over_n = F::Ark::from(1u64 << spread.log_n).inverse().unwrap_or(F::Ark::ZERO);
        let unshift = shift.inverse().unwrap_or(F::Ark::ZERO);
        for (s, shard) in shards.iter_mut().enumerate() {
            let data = &mut shard.data;
            let across = (0..columns).into_par_iter().with_min_len(64).map(|c| {
                let mut column: Vec<F::Element> = (0..count).map(|from| data[from * columns + c]).collect();
                local(&mut column);
                column
            });
            let across: Vec<Vec<F::Element>> = across.collect();
            for (c, column) in across.into_iter().map(Zeroizing::new).enumerate() {
                column.iter().enumerate().for_each(|(t, &x)| data[t * columns + c] = x);
            }
            if inverse {
                let first = over_n * unshift.pow([s as u64]);
                scale_by_powers::<F>(self.simd, data, Order::Natural, first, unshift.pow([count as u64]));
            }
            if op.output == Order::BitReversed {
                reverse_bits(data);
            }
        }
        Ok(())
    }

    /// All lanes are the same processors: nothing is gained by more than one.
    fn ntt_lanes(&self, _log_n: u32) -> usize {
        1
    }
}

/// Sends element j of shard s to shard j mod L, to its part s of L equal ones, in the order of j.
pub(super) fn exchange<E: crate::Wire>(shards: &mut [&mut Buf<E>]) {
    let count = shards.len();
    let sent: Vec<Zeroizing<Vec<E>>> = (0..count)
        .map(|to| {
            let parts = shards.iter().flat_map(|from| from.data[to..].iter().step_by(count).copied());
            Zeroizing::new(parts.collect())
        })
        .collect();
    shards.iter_mut().zip(&sent).for_each(|(shard, received)| shard.data.copy_from_slice(received));
}

impl Cpu {
    /// Transforms the shards where all lie on one lane.
    fn in_one_place<F: NttField>(
        &self,
        spread: Spread,
        shards: &mut [&mut Buf<F::Element>],
        op: NttOp<F::Element>,
    ) -> Result<()> {
        let parts: Vec<&[F::Element]> = shards.iter().map(|shard| shard.as_slice()).collect();
        let mut whole = self.buf(Lane(0), spread.collect(op.input, &parts));
        let natural = NttOp { input: Order::Natural, output: Order::Natural, ..op };
        Ntt::<F>::ntt(self, &mut whole, natural)?;
        let dealt = spread.deal(op.output, &whole.data).into_iter().map(Zeroizing::new);
        shards.iter_mut().zip(dealt).for_each(|(shard, dealt)| shard.data.copy_from_slice(&dealt));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{naive, BabyBear, Backend, Bls12_381, Bn254, Goldilocks};
    use ark_ff::UniformRand;
    use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};

    /// Every form on 1 to 16 lanes.
    fn agrees_with_the_definition<F: NttField>() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for (log_shards, log_n) in
            [(0, 0), (0, 3), (1, 1), (1, 2), (1, 5), (2, 3), (2, 4), (2, 7), (3, 6), (3, 4), (4, 8)]
        {
            let spread = Spread { log_n, log_shards };
            let cpu = Cpu::new(spread.shards());
            let input: Vec<_> = (0..1 << log_n).map(|_| F::Ark::rand(&mut rng)).collect();
            let wire: Vec<_> = input.iter().map(|&x| F::element(x)).collect();
            let g = F::element(F::Ark::rand(&mut rng));
            for form in 0..24 {
                let order = |bit: u32| [Order::Natural, Order::BitReversed][form >> bit & 1];
                let direction = [Direction::Forward, Direction::Inverse][form >> 2 & 1];
                let coset = [Coset::Subgroup, Coset::Odd, Coset::Shift(g)][form >> 3];
                let op = NttOp { direction, coset, input: order(0), output: order(1) };
                let dealt = spread.deal(op.input, &wire);
                let upload = |(lane, shard): (usize, &Vec<_>)| cpu.upload(Lane(lane), shard).unwrap();
                let mut shards: Vec<_> = dealt.iter().enumerate().map(upload).collect();
                let mut all: Vec<_> = shards.iter_mut().collect();
                NttSpread::<F>::ntt_spread(&cpu, &mut all, op).unwrap();
                let got: Vec<_> = shards.iter().map(|shard| shard.as_slice()).collect();
                let natural = NttOp { input: Order::Natural, output: Order::Natural, ..op };
                let expected = naive::ntt::<F>(&input, natural).unwrap();
                let expected: Vec<_> = expected.into_iter().map(F::element).collect();
                assert_eq!(spread.collect(op.output, &got), expected, "{op:?}, {spread:?}");
            }
        }
    }

    #[test]
    fn all_fields() {
        agrees_with_the_definition::<Bn254>();
        agrees_with_the_definition::<Bls12_381>();
        agrees_with_the_definition::<Goldilocks>();
        agrees_with_the_definition::<BabyBear>();
    }
}
