//! Discrete Fourier transforms of complex numbers: the passes of [`super::passes`]. Powers of roots of unity are made on the host, each rounded once.

use super::distributed::{distributed_plan, Bits};
use super::passes::{kept_powers, passes, split, upload, Numbers, Work, BITS, MIN_BITS};
use super::spread::Shards;
use super::{Launcher, Shape};
use crate::backend::{Cuda, CudaBuf};
use crate::ffi;
use crate::lane::LaneCtx;
use std::marker::PhantomData;
use std::sync::Arc;
use tandem_cuda::DeviceBuffer;
use tandem_ops::ntt::fft::{log_size, root, MAX_LOG_N};
use tandem_ops::{Buffer, Complex, Complex32, Complex64, Direction, Fft, Order, Result, Spread};

const OP: &str = "fft";

/// Complex numbers of a precision.
trait Pairs: Complex + Numbers<Stored = Self> {
    /// Transforms of a few numbers by their definition.
    const SUM: Launcher<ffi::tandem_ntt_small_sum_args>;
}

macro_rules! complex {
    ($numbers:ident, $twiddles:ident, $pass:ident, $spread:ident, $sum:ident) => {
        impl Numbers for $numbers {
            type Stored = Self;
            const ORDER_BITS: u32 = MAX_LOG_N;
            const TWIDDLES: Launcher<ffi::tandem_ntt_small_twiddles_args> = ffi::$twiddles;
            const PASS: Launcher<ffi::tandem_ntt_small_pass_args> = ffi::$pass;
            const SPREAD: Launcher<ffi::tandem_ntt_small_spread_args> = ffi::$spread;

            fn one() -> u64 {
                1f64.to_bits()
            }
            fn powers(ctx: &LaneCtx) -> Result<DeviceBuffer<u32>> {
                upload(ctx, &powers(split::<Self>()))
            }
            fn table(places: &[(u64, u32)], inverse: bool) -> Result<Vec<Self>> {
                let power = |&(exponent, bits): &(u64, u32)| root::<Self>(exponent, bits);
                let conjugate = |x: Self| if inverse { x.conjugate() } else { x };
                Ok(places.iter().map(power).map(conjugate).collect())
            }
        }

        impl Pairs for $numbers {
            const SUM: Launcher<ffi::tandem_ntt_small_sum_args> = ffi::$sum;
        }

        impl Fft<$numbers> for Cuda {
            fn fft_batch(&self, data: &mut CudaBuf<$numbers>, count: usize, direction: Direction) -> Result<()> {
                fft_batch(self, data, count, direction)
            }

            fn fft_spread(&self, shards: &mut [&mut CudaBuf<$numbers>], direction: Direction) -> Result<()> {
                let spread = Spread::of_complex(shards.iter().map(|shard| shard.len()))?;
                if let [only] = shards {
                    return fft_batch(self, only, 1, direction);
                }
                Shards::new(self, shards, spread)?.run(|shards| spread_over(shards, direction))
            }
        }
    };
}
complex!(
    Complex32,
    tandem_ntt_small_twiddles_complex32,
    tandem_ntt_small_pass_complex32,
    tandem_ntt_small_spread_complex32,
    tandem_ntt_small_sum_complex32
);
complex!(
    Complex64,
    tandem_ntt_small_twiddles_complex64,
    tandem_ntt_small_pass_complex64,
    tandem_ntt_small_spread_complex64,
    tandem_ntt_small_sum_complex64
);

/// The first 2^split powers of the root of unity of the highest order, then every 2^split-th. Of either precision they are doubles.
fn powers(split: u32) -> Vec<Complex64> {
    let power = |i: u64, step: u32| root(i << step, MAX_LOG_N);
    (0..1 << split).map(|i| power(i, 0)).chain((0..1 << split).map(|i| power(i, split))).collect()
}

/// 1/n of an inverse transform as an argument; none of a forward one.
fn scale_of(log_n: u32, direction: Direction) -> Option<u64> {
    (direction == Direction::Inverse).then(|| (1.0 / (1u64 << log_n) as f64).to_bits())
}

/// Passes over what lies on a lane.
fn work<T: Pairs>(ctx: &LaneCtx, count: u64, log_n: u32, scale: Option<u64>) -> Work<'_, T> {
    let inverse = scale.is_some();
    Work { ctx, count, log_n, reversed: false, inverse, scale, coset: None, of: PhantomData }
}

fn fft_batch<T: Pairs>(cuda: &Cuda, data: &mut CudaBuf<T>, count: usize, direction: Direction) -> Result<()> {
    let log_n = log_size(data.len(), count)?;
    let scale = scale_of(log_n, direction);
    if log_n < MIN_BITS {
        let spread = Spread { log_n, log_shards: 0 };
        return Shards::new(cuda, &mut [data], spread)?.run(|shards| sums(shards, count as u64, scale));
    }
    let ctx = cuda.lane(OP, data.lane())?;
    let passes = passes(log_n, false, ctx.least_passes);
    work::<T>(ctx, count as u64, log_n, scale).run(&passes, data.ptr().cast().raw(), true)
}

/// A transform that is spread over lanes: the passes of [`super::distributed`].
fn spread_over<T: Pairs>(shards: &mut Shards<'_, T>, direction: Direction) -> Result<()> {
    let Spread { log_n, log_shards } = shards.spread;
    let scale = scale_of(log_n, direction);
    let shape = Shape { log_n, direction, odd: false, input: Order::Natural, output: Order::Natural };
    let memory = shards.shards.iter().map(|shard| shard.ctx.properties.memory_bytes).min().unwrap_or(0);
    let Some(plan) = distributed_plan(Bits { passes: shards.least_passes(), ..BITS }, &shape, log_shards, memory)
    else {
        return sums(shards, 1, scale);
    };
    let contexts: Vec<_> = shards.shards.iter().map(|shard| shard.ctx.clone()).collect();
    let works: Vec<_> =
        contexts.iter().map(Arc::as_ref).map(|ctx| work::<T>(ctx, 1, log_n - log_shards, scale)).collect();
    shards.passes(&plan, |shards, i, shard| works[shard].spread(shards, &plan, i, shard))
}

/// Transforms of fewer numbers than passes need, by the definition.
fn sums<T: Pairs>(shards: &mut Shards<'_, T>, count: u64, scale: Option<u64>) -> Result<()> {
    let Spread { log_n, log_shards } = shards.spread;
    shards.tiny(|at, shard, shards| {
        let args = ffi::tandem_ntt_small_sum_args {
            shards,
            output: at.other(),
            powers: kept_powers::<T>(&at.ctx)?,
            scale: scale.unwrap_or_else(T::one),
            count,
            order_bits: T::ORDER_BITS,
            split: split::<T>(),
            log_n,
            log_shards,
            shard,
            inverse: scale.is_some().into(),
        };
        // SAFETY: all shards and the output have `count` times 2^(log_n - log_shards) numbers, which this lane can reach; the stream has waited for
        // what was done to the shards, and they stay until all lanes have read them.
        at.ctx.launch(OP, |stream| unsafe { T::SUM(&args, stream) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The product of two kept powers is the power of the whole exponent, but for their roundings.
    #[test]
    fn kept_powers_make_all_others() {
        let split = split::<Complex32>();
        let table = powers(split);
        let mask = (1 << split) - 1;
        for i in 0..3000u64 {
            let exponent = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            let product = table[(exponent & mask) as usize] * table[(1 << split) + (exponent >> split) as usize];
            let [re, im] = (product - root(exponent, MAX_LOG_N)).parts();
            assert!(re.hypot(im) <= 11.3 * Complex64::ROUNDING, "{exponent}: {re:e}, {im:e}");
        }
    }

    #[test]
    fn tables_of_the_inverse_are_conjugates() {
        let places = [(0, 4), (1, 4), (5, 9), (511, 9)];
        let [forward, inverse] = [false, true].map(|inverse| Complex32::table(&places, inverse).unwrap());
        assert!(forward.iter().zip(&inverse).all(|(&x, &y)| x.conjugate() == y));
        assert!((forward[1] - root(1, 4)).parts() == [0.0, 0.0] && forward[2] != forward[3]);
    }
}
