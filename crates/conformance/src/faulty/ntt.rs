//! What goes wrong with transforms.

use super::{Fault, Faulty};
use tandem_ops::{
    cpu, Backend, Buffer, Complex, Curve, Direction, Fft, Mont, Ntt, NttField, NttOp, NttProducts, NttSpread, Order,
    Result,
};

impl<F: NttField> Ntt<F> for Faulty {
    fn ntt_batch(&self, data: &mut cpu::Buf<F::Element>, count: usize, op: NttOp<F::Element>) -> Result<()> {
        let done = Ntt::<F>::ntt_batch(&self.cpu, data, count, op);
        if self.fault == Fault::NttLength && !data.len().is_power_of_two() {
            return Ok(());
        }
        let zero = tandem_ops::Coset::Shift(F::Element::default());
        if self.fault == Fault::NttCosetOfZero && op.coset == zero && data.len().is_power_of_two() {
            return Ok(());
        }
        self.flip(Fault::Ntt, data)?;
        if count > 1 {
            self.flip(Fault::NttBatch, data)?;
        }
        let reversed = op.input == Order::BitReversed && op.output == Order::BitReversed;
        if op.direction == Direction::Inverse && op.coset == tandem_ops::Coset::Odd && reversed && data.len() == 1 << 12
        {
            self.flip(Fault::NttOneForm, data)?;
        }
        done
    }
}

impl<C: Curve> NttProducts<C> for Faulty {
    fn ntt_of_product(&self, a: &cpu::Buf<Mont>, b: &cpu::Buf<Mont>, op: NttOp) -> Result<cpu::Buf<Mont>> {
        let mut product = NttProducts::<C>::ntt_of_product(&self.cpu, a, b, op)?;
        self.flip(Fault::NttOfProduct, &mut product)?;
        Ok(product)
    }
    fn product_less_ntt(
        &self,
        a: &cpu::Buf<Mont>,
        b: &cpu::Buf<Mont>,
        c: cpu::Buf<Mont>,
        op: NttOp,
    ) -> Result<cpu::Buf<Mont>> {
        let mut less = NttProducts::<C>::product_less_ntt(&self.cpu, a, b, c, op)?;
        self.flip(Fault::ProductLessNtt, &mut less)?;
        Ok(less)
    }
}

impl<F: NttField> NttSpread<F> for Faulty {
    fn ntt_spread(&self, shards: &mut [&mut cpu::Buf<F::Element>], op: NttOp<F::Element>) -> Result<()> {
        let done = NttSpread::<F>::ntt_spread(&self.cpu, shards, op);
        if self.fault == Fault::NttShards && shards.iter().any(|shard| shard.len() != shards[0].len()) {
            return Ok(());
        }
        if let [.., last] = shards {
            if last.len() > 1 {
                self.flip(Fault::NttSpread, last)?;
            }
        }
        done
    }
    fn ntt_lanes(&self, log_n: u32) -> usize {
        NttSpread::<F>::ntt_lanes(&self.cpu, log_n)
    }
}

impl Faulty {
    /// Makes the value number `at` of the buffer by `wrong`.
    fn spoil_value<T: Complex>(&self, buf: &mut cpu::Buf<T>, at: usize, wrong: impl FnOnce(T) -> T) -> Result<()> {
        match buf.as_slice().get(at).copied() {
            Some(value) => self.cpu.write(buf, at, &[wrong(value)]),
            None => Ok(()),
        }
    }

    /// What has gone wrong in a buffer after a transform.
    fn spoil_values<T: Complex>(&self, buf: &mut cpu::Buf<T>, direction: Direction) -> Result<()> {
        let last = buf.len().saturating_sub(1);
        if self.fault == Fault::FftScale && direction == Direction::Inverse {
            let all: Vec<T> = buf.as_slice().iter().map(|x| x.times(2.0)).collect();
            self.cpu.write(buf, 0, &all)?;
        }
        if self.fault == Fault::FftValue {
            self.spoil_value(buf, last, |x| x.times(1.125))?;
        }
        if self.fault == Fault::FftFinite {
            let finite = |x: T| if x.parts().iter().all(|part| part.is_finite()) { x } else { T::new(1.0, 0.0) };
            let all: Vec<T> = buf.as_slice().iter().map(|&x| finite(x)).collect();
            self.cpu.write(buf, 0, &all)?;
        }
        Ok(())
    }
}

impl<T: Complex> Fft<T> for Faulty {
    fn fft_batch(&self, data: &mut cpu::Buf<T>, count: usize, direction: Direction) -> Result<()> {
        if self.fault == Fault::FftSign {
            let all: Vec<T> = data.as_slice().iter().map(|x| x.conjugate()).collect();
            self.cpu.write(data, 0, &all)?;
        }
        let done = self.cpu.fft_batch(data, count, direction);
        if self.fault == Fault::FftLength && !data.len().is_power_of_two() {
            return Ok(());
        }
        if done.is_ok() {
            self.spoil_values(data, direction)?;
        }
        done
    }

    fn fft_spread(&self, shards: &mut [&mut cpu::Buf<T>], direction: Direction) -> Result<()> {
        let done = self.cpu.fft_spread(shards, direction);
        if self.fault == Fault::FftShards && shards.iter().any(|shard| shard.len() != shards[0].len()) {
            return Ok(());
        }
        if let (true, [.., last]) = (self.fault == Fault::FftSpread, shards) {
            self.spoil_value(last, 0, |x| x.times(1.125))?;
        }
        done
    }
}
