//! Signals that the circuit does not have, each the sum of two earlier ones.

use crate::{Addition, Result};
use ark_ff::AdditiveGroup;
use rayon::prelude::*;
use tandem_ops::{memory, Canonical, Curve, Mont, Unaligned};

/// Additions that one task makes at least. A level with fewer is made by the thread that asks.
const GRAIN: usize = 1 << 10;

const OP: &str = "load key";

/// Additions by level. A level needs the signals of the levels before it alone, so that all threads share it.
pub(crate) struct Additions {
    /// Signals of the circuit; the additions make those behind them, in their order here.
    variables: usize,
    sorted: Vec<Addition>,
    /// Where each level ends.
    ends: Vec<usize>,
    /// The number that the key's signal of each addition has here, from the first one of an addition on.
    numbers: Vec<u32>,
}

impl Additions {
    /// Puts additions in order. Each names signals that come before its own.
    ///
    /// # Errors
    /// Not enough memory.
    pub(crate) fn new<C: Curve>(additions: Unaligned<'_, Addition>, variables: usize) -> Result<Self> {
        let (count, r) = (additions.len(), C::r());
        let mut levels: Vec<u32> = memory::reserve(OP, count)?;
        let mut ends: Vec<usize> = Vec::new();
        for addition in additions.iter() {
            let of = |signal: u32| (signal as usize).checked_sub(variables).map_or(0, |i| levels[i] + 1);
            let level = addition.signals.map(of).into_iter().max().unwrap_or(0);
            levels.push(level);
            match ends.get_mut(level as usize) {
                Some(size) => *size += 1,
                // A level above the last one is the next.
                None => ends.push(1),
            }
        }
        let mut next = 0;
        let mut places: Vec<usize> = memory::reserve(OP, ends.len())?;
        for end in &mut ends {
            places.push(next);
            next += *end;
            *end = next;
        }
        let mut sorted = memory::filled(OP, count, Addition::default())?;
        let mut numbers: Vec<u32> = memory::reserve(OP, count)?;
        for (addition, level) in additions.iter().zip(&levels) {
            let place = &mut places[*level as usize];
            let signals = addition.signals.map(|signal| renumbered(&numbers, variables, signal));
            // The circuit's signals come as integers: with this factor their products are in Montgomery form at once.
            let factor = |i: usize| match (signals[i] as usize) < variables {
                true => C::mont(C::from_mont(addition.factors[i]) * r),
                false => addition.factors[i],
            };
            sorted[*place] = Addition { signals, factors: [factor(0), factor(1)] };
            numbers.push((variables + *place) as u32);
            *place += 1;
        }
        Ok(Self { variables, sorted, ends, numbers })
    }

    /// The number here of a key's signal.
    pub(crate) fn number(&self, signal: u32) -> u32 {
        renumbered(&self.numbers, self.variables, signal)
    }

    /// How many signals they make.
    pub(crate) fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Makes the signals behind the circuit's, whose `values` are below the modulus; signal 0 counts as zero. `made` is as long as there
    /// are additions.
    pub(crate) fn apply<C: Curve>(&self, values: &[Canonical], made: &mut [Mont]) {
        let mut start = 0;
        for &end in &self.ends {
            let (before, rest) = made.split_at_mut(start);
            let own = &mut rest[..end - start];
            // An integer taken for one in Montgomery form is 2^256 times too small, and a factor from `Additions::new` as much too large.
            let value = |signal: u32| match (signal as usize).checked_sub(self.variables) {
                Some(addition) => C::from_mont(before[addition]),
                None if signal == 0 => C::Fr::ZERO,
                None => C::from_mont(Mont(values[signal as usize].0)),
            };
            let make = |(to, addition): (&mut Mont, &Addition)| {
                let ([one, other], [k, l]) = (addition.signals.map(value), addition.factors.map(C::from_mont));
                *to = C::mont(k * one + l * other);
            };
            let of = &self.sorted[start..end];
            match own.len() < GRAIN {
                true => own.iter_mut().zip(of).for_each(make),
                false => own.par_iter_mut().with_min_len(GRAIN).zip(of).for_each(make),
            }
            start = end;
        }
    }
}

fn renumbered(numbers: &[u32], variables: usize, signal: u32) -> u32 {
    (signal as usize).checked_sub(variables).map_or(signal, |i| numbers[i])
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ff::UniformRand;
    use rand_chacha::rand_core::{RngCore, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use tandem_ops::Bn254;

    type Fr = <Bn254 as Curve>::Fr;

    /// Additions of `count` signals, each of which is up to `back` before its own.
    fn random(variables: usize, count: usize, back: u32, rng: &mut ChaCha8Rng) -> Vec<Addition> {
        let one = |i: usize, rng: &mut ChaCha8Rng| {
            let own = (variables + i) as u32;
            own - 1 - rng.next_u32() % back.min(own)
        };
        (0..count)
            .map(|i| {
                let signals = [one(i, rng), one(i, rng)];
                Addition { signals, factors: [Bn254::mont(Fr::rand(rng)), Bn254::mont(Fr::rand(rng))] }
            })
            .collect()
    }

    /// Wide, deep, a chain, and none.
    #[test]
    fn signals_are_those_of_one_loop() {
        let rng = &mut ChaCha8Rng::seed_from_u64(1);
        for (variables, count, back) in
            [(1, 0, 1), (1, 1, 1), (3, 5, 2), (5000, 9000, u32::MAX), (7, 3000, 1), (40, 3000, 50)]
        {
            let additions = random(variables, count, back, rng);
            let values: Vec<Fr> = (0..variables).map(|_| Fr::rand(rng)).collect();
            let mut expected = values.clone();
            expected[0] = Fr::ZERO;
            for addition in &additions {
                let [one, other] = addition.signals.map(|signal| expected[signal as usize]);
                let [k, l] = addition.factors.map(Bn254::from_mont);
                expected.push(k * one + l * other);
            }
            let sorted = Additions::new::<Bn254>(additions[..].into(), variables).unwrap();
            let values: Vec<Canonical> = values.iter().map(|&x| Bn254::canonical(x)).collect();
            let mut made = vec![Mont::default(); count];
            sorted.apply::<Bn254>(&values, &mut made);
            for (signal, expected) in expected.iter().enumerate().skip(variables) {
                assert_eq!(Bn254::from_mont(made[sorted.number(signal as u32) as usize - variables]), *expected);
            }
            let mut numbers: Vec<u32> = (0..expected.len() as u32).map(|signal| sorted.number(signal)).collect();
            numbers.sort_unstable();
            assert!(numbers.iter().copied().eq(0..expected.len() as u32));
            if back == 1 {
                assert_eq!(sorted.ends.len(), count);
            }
        }
    }
}
