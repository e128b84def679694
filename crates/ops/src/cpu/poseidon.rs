//! Poseidon by its optimised tables.

use super::{one_lane, Buf, Cpu};
use crate::poseidon::{check_lengths, PoseidonParams, Tables};
use crate::{Buffer, Canonical, Curve, Mont, Poseidon, Result, Unaligned};
use ark_ff::PrimeField;
use rayon::prelude::*;

/// Hashes that one task computes at least.
const GRAIN: usize = 16;

impl<C: Curve> Poseidon<C> for Cpu {
    type Hasher = Tables<C::Fr>;

    fn hasher(&self, params: PoseidonParams) -> Result<Self::Hasher> {
        Ok(Tables::new(params))
    }

    fn poseidon(&self, hasher: &Self::Hasher, input: &Buf<Mont>, out: &mut Buf<Mont>) -> Result<()> {
        one_lane("poseidon", &[input.lane(), out.lane()])?;
        check_lengths(hasher.params(), input.len(), out.len())?;
        let columns = input.data.par_chunks_exact(hasher.params().arity());
        out.data.par_iter_mut().zip(columns).with_min_len(GRAIN).for_each_init(Vec::new, |state, (out, column)| {
            *out = C::mont(hasher.hash(column.iter().map(|&x| C::from_mont(x)), state));
        });
        Ok(())
    }

    fn poseidon_columns(
        &self,
        hasher: &Self::Hasher,
        input: Unaligned<'_, Canonical>,
        out: &mut [Canonical],
    ) -> Result<()> {
        check_lengths(hasher.params(), input.len(), out.len())?;
        let arity = hasher.params().arity();
        // As where elements are converted: an integer that is not below the modulus is reduced.
        let element = |x: Canonical| {
            C::from_canonical(x).unwrap_or_else(|| C::Fr::from_le_bytes_mod_order(bytemuck::bytes_of(&x)))
        };
        // The pretend GPUs of `sim` share the columns as real ones do.
        for lane in 0..self.lanes {
            let range = out.len() * lane / self.lanes..out.len() * (lane + 1) / self.lanes;
            let part = input.slice(range.start * arity..range.end * arity);
            let digests = out[range].par_iter_mut().enumerate().with_min_len(GRAIN);
            digests.for_each_init(Vec::new, |state, (i, out)| {
                let column = part.slice(i * arity..(i + 1) * arity);
                *out = C::canonical(hasher.hash(column.iter().map(element), state));
            });
        }
        Ok(())
    }
}
