//! Discrete Fourier transforms on two backends, whose values are equal within an error.

use super::{Bufs, Dual};
use crate::ntt::fft::off;
use tandem_ops::ntt::fft::error_bound;
use tandem_ops::{Backend, Buffer, Complex, Direction, Fft, Result};

impl<L: Backend, R: Backend> Dual<L, R> {
    /// Compares vectors of 2^`log_n` numbers, or their shards, and puts what the left has in the place of what the right has: what comes next starts
    /// from the same.
    fn close<T: Complex>(&self, data: &mut Bufs<L, R, T>, log_n: u32, vector: usize) -> Result<()> {
        let (left, right) = (self.left.download(&data.0)?.wait()?, self.right.download(&data.1)?.wait()?);
        if left.len() != right.len() {
            return Err(self.disagree("fft", left.len().min(right.len())));
        }
        for (i, (left, right)) in left.chunks(vector).zip(right.chunks(vector)).enumerate() {
            let right: Vec<[f64; 2]> = right.iter().map(|x| x.parts()).collect();
            let finite = |part: &f64| part.is_finite();
            let finite =
                [left.iter().all(|x| x.parts().iter().all(finite)), right.iter().all(|parts| parts.iter().all(finite))];
            // Either has the error of its own. Shards have their part of it where values are alike.
            let close = finite == [true; 2] && off(left, &right) <= 2.0 * error_bound::<T>(log_n);
            if !close && finite != [false; 2] {
                return Err(self.disagree("fft", i * vector));
            }
        }
        self.right.write(&mut data.1, 0, &left)
    }
}

impl<T: Complex, L: Fft<T>, R: Fft<T>> Fft<T> for Dual<L, R> {
    fn fft_batch(&self, data: &mut Self::Buf<T>, count: usize, direction: Direction) -> Result<()> {
        let left = self.left.fft_batch(&mut data.0, count, direction);
        self.both("fft", left, self.right.fft_batch(&mut data.1, count, direction))?;
        let n = data.len() / count.max(1);
        self.close(data, n.max(1).ilog2(), n.max(1))
    }

    fn fft_spread(&self, shards: &mut [&mut Self::Buf<T>], direction: Direction) -> Result<()> {
        let both = shards.iter_mut().map(|shard| (&mut shard.0, &mut shard.1));
        let (mut left, mut right): (Vec<_>, Vec<_>) = both.unzip();
        let left = self.left.fft_spread(&mut left, direction);
        self.both("fft", left, self.right.fft_spread(&mut right, direction))?;
        let n = shards.iter().map(|shard| shard.len()).sum::<usize>().max(1);
        shards.iter_mut().try_for_each(|shard| {
            let len = shard.len().max(1);
            self.close(shard, n.ilog2(), len)
        })
    }
}
