//! Hashes that are wrong.

use super::{Fault, Faulty};
use tandem_ops::cpu::{self, Cpu};
use tandem_ops::{Buffer, Canonical, Curve, Mont, Poseidon, PoseidonParams, Result, Unaligned};

impl<C: Curve> Poseidon<C> for Faulty {
    type Hasher = <Cpu as Poseidon<C>>::Hasher;

    fn hasher(&self, params: PoseidonParams) -> Result<Self::Hasher> {
        Poseidon::<C>::hasher(&self.cpu, params)
    }
    fn poseidon(&self, hasher: &Self::Hasher, input: &cpu::Buf<Mont>, out: &mut cpu::Buf<Mont>) -> Result<()> {
        let done = Poseidon::<C>::poseidon(&self.cpu, hasher, input, out);
        if self.fault == Fault::PoseidonLength && input.len() < out.len() * hasher.params().arity() {
            return Ok(());
        }
        done.and_then(|()| self.flip(Fault::Poseidon, out))
    }
    fn poseidon_columns(
        &self,
        hasher: &Self::Hasher,
        input: Unaligned<'_, Canonical>,
        out: &mut [Canonical],
    ) -> Result<()> {
        Poseidon::<C>::poseidon_columns(&self.cpu, hasher, input, out)?;
        if let (Fault::PoseidonColumns, 11, Some(last)) = (self.fault, hasher.params().arity(), out.last_mut()) {
            last.0[0] ^= 1;
        }
        Ok(())
    }
}
