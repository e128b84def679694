//! Discrete Fourier transforms of random numbers, of vectors and of arrays, on any device. Some values are compared with the definition before times are
//! told.

use super::ntt::{checked_value, timed, Transformed};
use super::random;
use rayon::prelude::*;
use tandem_engine::gpus::{self, Opened};
use tandem_engine::{DeviceChoice, DeviceReport, Error, Result};
use tandem_ops::ntt::fft::{self, Grid};
use tandem_ops::ntt::MAX_SHARDS;
use tandem_ops::{memory, naive, Buffer, Complex, Direction, Fft, Gather, Lane, Spread};
use tandem_ops_cuda::Cuda;

/// Values that are compared with the definition.
const CHECKED: usize = 8;
/// Numbers that one thread adds up at a time where a value is made by its definition.
const PART: usize = 1 << 14;

/// A device that transforms.
pub(crate) struct Transforms {
    on: Opened,
    report: DeviceReport,
}

impl Transforms {
    /// Opens up to `lanes` lanes of `choice`.
    ///
    /// # Errors
    /// As [`tandem_engine::Engine::open`].
    pub(crate) fn open(choice: &DeviceChoice, lanes: usize) -> Result<Self> {
        let (on, why) = gpus::open(choice, lanes)?;
        let report = on.report(why);
        Ok(Transforms { on, report })
    }

    /// What was opened.
    pub(crate) fn report(&self) -> &DeviceReport {
        &self.report
    }

    /// How long each of `runs` transforms of 2^`log_n` numbers took that lie on the lanes, forward and back in turn, after one to warm up.
    ///
    /// # Errors
    /// Not enough memory; a value is wrong.
    pub(crate) fn bench<T: Complex>(&self, log_n: u32, runs: usize) -> Result<Transformed>
    where
        Cuda: Fft<T>,
    {
        match &self.on {
            Opened::Cpu(cpu) => bench::<T, _>(cpu, log_n, runs),
            Opened::Cuda(cuda) => bench::<T, _>(cuda, log_n, runs),
        }
    }

    /// As [`Transforms::bench`], of an array with these sides whose slabs lie on as many lanes as it has planes and columns for.
    ///
    /// # Errors
    /// As there; there is no array with such sides.
    pub(crate) fn bench_array<T: Complex>(&self, sides: &[usize], runs: usize) -> Result<Transformed>
    where
        Cuda: Fft<T>,
    {
        match &self.on {
            Opened::Cpu(cpu) => bench_array::<T, _>(cpu, sides, runs),
            Opened::Cuda(cuda) => bench_array::<T, _>(cuda, sides, runs),
        }
    }
}

/// Whole numbers of 16 bits, which are the same with either precision: random, and the same each time.
fn input<T: Complex>(n: usize) -> Result<Vec<T>> {
    let mut words = memory::filled("bench fft", n, [0i16; 2])?;
    random::fill(bytemuck::cast_slice_mut(&mut words), |_| ());
    let mut numbers = memory::filled("bench fft", n, T::default())?;
    let each = numbers.par_iter_mut().with_min_len(PART).zip(&words);
    each.for_each(|(x, &[re, im])| *x = T::new(re.into(), im.into()));
    Ok(numbers)
}

fn bench<T: Complex, B: Fft<T>>(backend: &B, log_n: u32, runs: usize) -> Result<Transformed> {
    let log_shards = backend.lanes().clamp(1, MAX_SHARDS).ilog2().min(log_n);
    let spread = Spread { log_n, log_shards };
    let lanes = spread.shards();
    let numbers = input::<T>(1 << log_n)?;
    let mut shards = Vec::with_capacity(lanes);
    for s in 0..lanes {
        // A shard at a time: together they are as long as the numbers.
        let mut part = memory::reserve("bench fft", spread.len())?;
        part.extend(numbers.iter().skip(s).step_by(lanes).copied());
        shards.push(backend.upload(Lane(s), &part)?);
    }
    let mut all: Vec<_> = shards.iter_mut().collect();
    backend.fft_spread(&mut all, Direction::Forward)?;
    check(backend, &all.iter().map(|shard| &**shard).collect::<Vec<_>>(), &numbers)?;
    timed(backend, lanes, runs, |run| {
        backend.fft_spread(&mut all, if run % 2 == 0 { Direction::Inverse } else { Direction::Forward })
    })
}

fn bench_array<T: Complex, B: Fft<T> + Gather>(backend: &B, sides: &[usize], runs: usize) -> Result<Transformed> {
    let n: usize = sides.iter().product();
    let planes = sides.first().copied().unwrap_or(1);
    let count = 1 << backend.lanes().clamp(1, planes.min(n / planes).max(1)).ilog2();
    let lanes: Vec<Lane> = (0..count).map(Lane).collect();
    let grid = Grid::new(backend, &lanes, sides)?;
    let numbers = input::<T>(n)?;
    let slabs = numbers.chunks(n / count).zip(&lanes).map(|(part, &lane)| backend.upload(lane, part));
    let mut slabs = slabs.collect::<tandem_ops::Result<Vec<_>>>()?;
    grid.transform(backend, &mut slabs, Direction::Forward)?;
    check_array(backend, &slabs, &numbers, sides)?;
    timed(backend, count, runs, |run| {
        grid.transform(backend, &mut slabs, if run % 2 == 0 { Direction::Inverse } else { Direction::Forward })
    })
}

/// Fails unless some values in the shards are those of the numbers.
fn check<T: Complex, B: Fft<T>>(backend: &B, shards: &[&B::Buf<T>], numbers: &[T]) -> Result<()> {
    let (n, lanes) = (numbers.len(), shards.len());
    let defined = |k: usize| {
        let part = |(at, part): (usize, &[T])| {
            naive::dft_part(part.iter().map(|x| x.parts()), at * PART, n, Direction::Forward, k)
        };
        let sums: Vec<[f64; 2]> = numbers.par_chunks(PART).enumerate().map(part).collect();
        [0, 1].map(|of| naive::float_sum(sums.iter().map(|sum| sum[of])))
    };
    check_values(backend, |k| (shards[k % lanes], k / lanes), numbers, defined)
}

/// Fails unless some values in the slabs are those of the numbers: a value is one along each dimension in turn.
fn check_array<T: Complex, B: Fft<T>>(backend: &B, slabs: &[B::Buf<T>], numbers: &[T], sides: &[usize]) -> Result<()> {
    let len = numbers.len() / slabs.len();
    let defined = |k: usize| {
        let (mut values, mut rest): (Vec<[f64; 2]>, usize) = (Vec::new(), k);
        for (i, &side) in sides.iter().rev().enumerate() {
            let at = rest % side;
            rest /= side;
            let of = |row: &[T]| naive::dft_part(row.iter().map(|x| x.parts()), 0, side, Direction::Forward, at);
            values = match i {
                0 => numbers.par_chunks(side).map(of).collect(),
                _ => values.par_chunks(side).map(|row| naive::dft_at(row, Direction::Forward, at)).collect(),
            };
        }
        values.first().copied().unwrap_or_default()
    };
    check_values(backend, |k| (&slabs[k / len], k % len), numbers, defined)
}

/// Fails unless some values, which stand where `place` says, are those that the definition has. Errors of random numbers' values are alike: each is held
/// to the bound of all, relative to what values are on average.
fn check_values<'a, T: Complex, B: Fft<T>>(
    backend: &B,
    place: impl Fn(usize) -> (&'a B::Buf<T>, usize),
    numbers: &[T],
    defined: impl Fn(usize) -> [f64; 2],
) -> Result<()> {
    let n = numbers.len();
    let squares = |x: &T| x.parts().map(|part| part * part).iter().sum::<f64>();
    let average = numbers.par_iter().with_min_len(PART).map(squares).sum::<f64>().sqrt();
    let most = (fft::error_bound::<T>(n.ilog2()) + 8.0 / (1u64 << 53) as f64) * average;
    for i in 0..CHECKED {
        let k = checked_value(i, n.ilog2());
        let (buf, at) = place(k);
        let got = backend.download(&backend.copy(buf, at..at + 1, buf.lane())?)?.wait()?;
        let [re, im] = defined(k);
        let off = got.first().map(|x| (x.parts()[0] - re).hypot(x.parts()[1] - im));
        // Not so either where it is no number.
        if !off.is_some_and(|off| off <= most) {
            let what = format!("value {k} of a transform of {n} complex numbers is wrong: nothing to measure");
            return Err(Error::Device(what));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_ops::{cpu::Cpu, Backend, Complex32, Complex64, Order};

    /// What a transform of these numbers gives passes, and no longer where one number more or one value is off by a thousandth.
    #[test]
    fn wrong_values_are_noticed() {
        fn of<T: Complex>() {
            let cpu = Cpu::new(2);
            for log_n in [1, 9, 16] {
                let numbers = input::<T>(1 << log_n).unwrap();
                let values = |numbers: &[T]| {
                    let parts = Spread { log_n, log_shards: 1 }.deal(Order::Natural, numbers);
                    let mut shards = [0, 1].map(|s| cpu.upload(Lane(s), &parts[s]).unwrap());
                    cpu.fft_spread(&mut shards.iter_mut().collect::<Vec<_>>(), Direction::Forward).unwrap();
                    shards
                };
                let [a, b] = values(&numbers);
                check(&cpu, &[&a, &b], &numbers).unwrap();
                let mut wrong = numbers.clone();
                let average = numbers.iter().map(|x| x.parts()[0].abs()).sum::<f64>() / numbers.len() as f64;
                wrong[1] = wrong[1] + T::new(0.01 * average * (numbers.len() as f64).sqrt(), 0.0);
                assert!(check(&cpu, &[&a, &b], &wrong).is_err(), "2^{log_n}");
                let mut first = a.as_slice().to_vec();
                first[0] = T::new(f64::NAN, 0.0);
                let first = cpu.upload(Lane(0), &first).unwrap();
                assert!(check(&cpu, &[&first, &b], &numbers).is_err(), "2^{log_n}");
            }
        }
        of::<Complex32>();
        of::<Complex64>();
    }
    /// So it is for arrays, and no longer where the sides are others.
    #[test]
    fn wrong_values_of_arrays_are_noticed() {
        fn of<T: Complex>() {
            let cpu = Cpu::new(2);
            for sides in [&[4, 8][..], &[64, 32], &[16, 8, 32]] {
                let n: usize = sides.iter().product();
                let numbers = input::<T>(n).unwrap();
                let grid = Grid::new(&cpu, &[Lane(0), Lane(1)], sides).unwrap();
                let mut slabs = [0, 1].map(|l| cpu.upload(Lane(l), &numbers[n / 2 * l..n / 2 * (l + 1)]).unwrap());
                grid.transform(&cpu, &mut slabs, Direction::Forward).unwrap();
                check_array(&cpu, &slabs, &numbers, sides).unwrap();
                let mut wrong = numbers.clone();
                let average = numbers.iter().map(|x| x.parts()[0].abs()).sum::<f64>() / n as f64;
                wrong[1] = wrong[1] + T::new(0.01 * average * (n as f64).sqrt(), 0.0);
                assert!(check_array(&cpu, &slabs, &wrong, sides).is_err(), "{sides:?}");
                let other: Vec<usize> = sides.iter().rev().copied().collect();
                assert!(check_array(&cpu, &slabs, &numbers, &other).is_err(), "{sides:?}");
                slabs.reverse();
                assert!(check_array(&cpu, &slabs, &numbers, sides).is_err(), "{sides:?}");
            }
        }
        of::<Complex32>();
        of::<Complex64>();
    }
}
