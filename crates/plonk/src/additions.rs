//! Signals that the circuit does not have, each the sum of two earlier ones.
//!
//! A sum of many terms is a tree of additions. Those of one level need the levels before it alone: a lane makes them all at once, by two
//! gathers and two products. A key whose additions follow one another, as in a chain, has too many levels for that, and the host makes them.

use crate::key::FIRST;
use crate::{Addition, Result};
use ark_ff::{AdditiveGroup, Field};
use rayon::prelude::*;
use tandem_ops::{memory, Buffer, Canonical, Curve, Gather, Mont, Unaligned, VecOps};

/// Additions that one task of the host makes at least. A level with fewer is made by the thread that asks.
const GRAIN: usize = 1 << 10;

/// Most levels that a lane makes: a level is some ten launches. A sum of 2^64 terms has as many.
const LEVELS_MAX: usize = 64;

/// Bytes of an addition on a lane: two numbers of signals and two factors.
pub(crate) const LANE_BYTES: usize = 2 * (size_of::<u32>() + size_of::<Mont>());

const OP: &str = "load key";

/// Additions by level.
pub(crate) struct Sorted {
    /// Signals of the circuit; the additions make those behind them, in their order here.
    variables: usize,
    additions: Vec<Addition>,
    /// Where each level ends.
    ends: Vec<usize>,
    /// The number that the key's signal of each addition has here, from the first one of an addition on.
    numbers: Vec<u32>,
}

impl Sorted {
    /// Puts additions in order. Each names signals that come before its own.
    ///
    /// # Errors
    /// Not enough memory.
    pub(crate) fn new(additions: Unaligned<'_, Addition>, variables: usize) -> Result<Self> {
        let count = additions.len();
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
            sorted[*place] = Addition { signals, ..addition };
            numbers.push((variables + *place) as u32);
            *place += 1;
        }
        Ok(Self { variables, additions: sorted, ends, numbers })
    }

    /// The number here of a key's signal.
    pub(crate) fn number(&self, signal: u32) -> u32 {
        renumbered(&self.numbers, self.variables, signal)
    }
}

/// Who makes the signals of additions: a pure decision. A lane does where there are few levels, and no more additions than the `domain` has
/// rows, which is what a key is said to take of its memory.
fn are_on_lane(additions: usize, levels: usize, domain: usize) -> bool {
    levels <= LEVELS_MAX && additions <= domain
}

/// Additions where their signals are made.
pub(crate) enum Additions<B: Gather> {
    /// On the first lane, level by level.
    OnLane(Vec<Level<B>>),
    /// By the host.
    OnHost(OnHost),
}

/// Additions that need none of each other, on the first lane.
pub(crate) struct Level<B: Gather> {
    /// The number of the first one's signal.
    first: usize,
    signals: [B::Map; 2],
    /// What the first signals are multiplied by, and the others after a change of sign.
    factors: [B::Buf<Mont>; 2],
}

impl<B: Gather> Additions<B> {
    /// Puts them where their signals are made, for a key of so many rows.
    ///
    /// # Errors
    /// Not enough memory.
    pub(crate) fn load<C: Curve>(backend: &B, sorted: Sorted, domain: usize) -> Result<Self> {
        match are_on_lane(sorted.additions.len(), sorted.ends.len(), domain) {
            true => Self::on_lane::<C>(backend, &sorted),
            false => Ok(Additions::OnHost(OnHost::new::<C>(sorted))),
        }
    }

    fn on_lane<C: Curve>(backend: &B, sorted: &Sorted) -> Result<Self> {
        let mut levels = Vec::with_capacity(sorted.ends.len());
        let mut start = 0;
        for &end in &sorted.ends {
            let (first, own) = (sorted.variables + start, &sorted.additions[start..end]);
            let map = |i: usize| -> Result<B::Map> {
                let mut signals = memory::reserve(OP, own.len())?;
                signals.extend(own.iter().map(|addition| addition.signals[i]));
                Ok(Gather::load_map(backend, FIRST, &signals, first)?)
            };
            let factors = |of: &dyn Fn(&Addition) -> Mont| -> Result<B::Buf<Mont>> {
                let mut factors = memory::reserve(OP, own.len())?;
                factors.extend(own.iter().map(of));
                Ok(backend.upload(FIRST, &factors)?)
            };
            let negative = |addition: &Addition| C::mont(-C::from_mont(addition.factors[1]));
            let factors = [factors(&|addition| addition.factors[0])?, factors(&negative)?];
            levels.push(Level { first, signals: [map(0)?, map(1)?], factors });
            start = end;
        }
        Ok(Additions::OnLane(levels))
    }
}

impl<B: Gather> Level<B> {
    /// Makes their signals of those before them.
    ///
    /// # Errors
    /// Those of the primitives.
    pub(crate) fn apply<C: Curve>(&self, backend: &B, signals: &mut B::Buf<Mont>) -> tandem_ops::Result<()>
    where
        B: VecOps<C>,
    {
        let [one, other] = &self.factors;
        let gathered = |map: &B::Map| {
            let mut values = backend.alloc(FIRST, one.len())?;
            backend.gather(map, signals, &mut values)?;
            Ok::<_, tandem_ops::Error>(values)
        };
        let (mut sum, mut less) = (gathered(&self.signals[0])?, gathered(&self.signals[1])?);
        VecOps::<C>::mul(backend, &mut less, other)?;
        VecOps::<C>::mul_sub(backend, &mut sum, one, &less)?;
        VecOps::<C>::add_scaled(backend, signals, self.first, 1, &sum, C::mont(C::Fr::ONE))
    }

    /// Bytes that they take.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.factors[0].len() * LANE_BYTES
    }
}

/// Additions that the host makes, on all threads where levels are wide.
pub(crate) struct OnHost {
    variables: usize,
    /// Factors of the circuit's signals are so large that their products with integers are in Montgomery form.
    sorted: Vec<Addition>,
    ends: Vec<usize>,
}

impl OnHost {
    fn new<C: Curve>(of: Sorted) -> Self {
        let Sorted { variables, additions: mut sorted, ends, .. } = of;
        let r = C::r();
        for addition in &mut sorted {
            for (signal, factor) in addition.signals.iter().zip(&mut addition.factors) {
                if (*signal as usize) < variables {
                    *factor = C::mont(C::from_mont(*factor) * r);
                }
            }
        }
        Self { variables, sorted, ends }
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
            // An integer taken for one in Montgomery form is 2^256 times too small, and a factor from `OnHost::new` as much too large.
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
    use tandem_ops::cpu::Cpu;
    use tandem_ops::{Backend, Bn254};

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
            let [sorted, on_host] = [0, 1].map(|_| Sorted::new(additions[..].into(), variables).unwrap());
            if back == 1 {
                assert_eq!(sorted.ends.len(), count);
            }
            let mut numbers: Vec<u32> = (0..expected.len() as u32).map(|signal| sorted.number(signal)).collect();
            let at = numbers.clone();
            numbers.sort_unstable();
            assert!(numbers.iter().copied().eq(0..expected.len() as u32));

            let integers: Vec<Canonical> = values.iter().map(|&x| Bn254::canonical(x)).collect();
            let mut made = vec![Mont::default(); count];
            OnHost::new::<Bn254>(on_host).apply::<Bn254>(&integers, &mut made);

            // The lane makes the same, however many levels there are.
            let cpu = Cpu::new(1);
            let Additions::OnLane(levels) = Additions::on_lane::<Bn254>(&cpu, &sorted).unwrap() else { panic!() };
            let mut signals: Vec<Mont> = values.iter().map(|&x| Bn254::mont(x)).collect();
            signals[0] = Mont::default();
            signals.resize(variables + count, Mont::default());
            let mut signals = cpu.upload(FIRST, &signals).unwrap();
            levels.iter().for_each(|level| level.apply::<Bn254>(&cpu, &mut signals).unwrap());
            assert_eq!(levels.iter().map(Level::bytes).sum::<usize>(), count * LANE_BYTES);

            for (signal, expected) in expected.iter().enumerate().skip(variables) {
                let at = at[signal] as usize;
                assert_eq!(Bn254::from_mont(made[at - variables]), *expected);
                assert_eq!(Bn254::from_mont(signals.as_slice()[at]), *expected);
            }
        }
    }

    /// Not those of a chain, nor more than a key is said to take memory for.
    #[test]
    fn a_lane_makes_what_has_few_levels() {
        assert!(are_on_lane(0, 0, 8) && are_on_lane(8, 64, 8));
        assert!(!are_on_lane(65, 65, 128) && !are_on_lane(9, 1, 8));
        let rng = &mut ChaCha8Rng::seed_from_u64(2);
        for (back, on_lane) in [(1, false), (u32::MAX, true)] {
            let additions = random(7, 100, back, rng);
            let sorted = Sorted::new(additions[..].into(), 7).unwrap();
            let loaded = Additions::load::<Bn254>(&Cpu::new(1), sorted, 128).unwrap();
            assert_eq!(matches!(loaded, Additions::OnLane(_)), on_lane);
        }
    }
}
