//! How particles move, and what is checked of it.

use super::{failed, Result};
use bytemuck::{Pod, Zeroable};

/// A particle of mass 1. Its place counts 2^-64 of the square's side, so that it comes in again on the other side by itself; its speed is
/// what is added to the place in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Particle {
    pub(crate) id: u64,
    pub(crate) place: [u64; 2],
    pub(crate) speed: [i64; 2],
}

impl Particle {
    pub(crate) fn push(&mut self, push: &[i64; 2]) {
        self.speed.iter_mut().zip(push).for_each(|(speed, push)| *speed = speed.wrapping_add(*push));
    }

    pub(crate) fn drift(&mut self) {
        self.place.iter_mut().zip(self.speed).for_each(|(place, speed)| *place = place.wrapping_add_signed(speed));
    }
}

/// How far pushes reach: where the potential 4 (r^-12 - r^-6) + 1 has its least value, 0.
pub(crate) const REACH: f64 = 1.122_462_048_309_373;
/// Particles in a square of side 1.
const DENSITY: f64 = 0.6;
/// By how much of itself the energy may change: far more than steps of such a length make it.
const DRIFT: f64 = 1e-2;
/// The most pairs, over all steps, that the naive program looks at.
const NAIVE: usize = 2_000_000_000;

/// The side of the square, and the length of a step.
#[derive(Clone, Copy)]
pub(crate) struct Motion {
    pub(crate) side: f64,
    pub(crate) step: f64,
}

impl Motion {
    /// For n particles, and for so many PEs of a column or more.
    pub(crate) fn of(n: usize, pes: usize) -> Self {
        // A little more than the columns need, whatever is rounded.
        let least = (pes.max(3) as f64 + 0.01) * REACH;
        Motion { side: (n as f64 / DENSITY).sqrt().max(least), step: 0.002 }
    }

    /// What a count of places is long.
    fn unit(&self) -> f64 {
        self.side / 2f64.powi(64)
    }

    /// From one place to another, the shortest way.
    fn way(&self, from: &Particle, to: &Particle) -> [f64; 2] {
        [0, 1].map(|axis| to.place[axis].wrapping_sub(from.place[axis]) as i64 as f64 * self.unit())
    }

    /// Adds half of what `other` pushes `one` by in a step. It pushes back as much, to the last bit.
    pub(crate) fn add_push(&self, one: &Particle, other: &Particle, sum: &mut [i64; 2]) {
        let [x, y] = self.way(other, one);
        let square = x * x + y * y;
        if one.id == other.id || square >= REACH * REACH {
            return;
        }
        let s = square.recip().powi(3);
        let half = 24.0 * s * (2.0 * s - 1.0) / square * self.step * self.step / 2.0 / self.unit();
        sum[0] = sum[0].wrapping_add((half * x) as i64);
        sum[1] = sum[1].wrapping_add((half * y) as i64);
    }

    /// n particles in rows, with random speeds.
    pub(crate) fn particles(&self, n: usize, number: impl Fn(u64) -> u64) -> Vec<Particle> {
        let across = (1..).find(|across| across * across >= n).unwrap_or(1) as u64;
        let place = |index: u64| (u128::from(2 * index + 1) << 63).div_euclid(across.into()) as u64;
        // Between -4 and 4: fast enough to cross cells and to push each other soon.
        let speed = |index: u64| (number(index) as i64 as f64 / 2f64.powi(61) * self.step / self.unit()) as i64;
        let one = |id: u64| Particle {
            id,
            place: [place(id % across), place(id / across)],
            speed: [speed(2 * id), speed(2 * id + 1)],
        };
        (0..n as u64).map(one).collect()
    }

    /// Energy of motion, and of all pairs that push each other.
    pub(crate) fn energy(&self, particles: &[Particle]) -> f64 {
        let speed = |speed: i64| (speed as f64 * self.unit() / self.step).powi(2) / 2.0;
        let mut energy = particles.iter().flat_map(|particle| particle.speed).map(speed).sum();
        self.pairs(particles, |a, b| {
            let [x, y] = self.way(&particles[a], &particles[b]);
            let s = (x * x + y * y).recip().powi(3);
            energy += if x * x + y * y < REACH * REACH { 4.0 * s * (s - 1.0) + 1.0 } else { 0.0 };
        });
        energy
    }

    /// Calls `f` with every pair that may be near: neighbours by the first coordinate.
    fn pairs(&self, particles: &[Particle], mut f: impl FnMut(usize, usize)) {
        let mut order: Vec<usize> = (0..particles.len()).collect();
        order.sort_by_key(|&index| particles[index].place[0]);
        for (at, &a) in order.iter().enumerate() {
            let beyond = |b: usize| particles[b].place[0].wrapping_sub(particles[a].place[0]);
            // Round the square, up to those beside it, which have had the pair.
            let around = order[..at].iter().take_while(|&&b| beyond(b) != 0);
            let near = |b: &&usize| (beyond(**b) as f64 * self.unit()) < REACH;
            order[at + 1..].iter().chain(around).take_while(near).for_each(|&b| f(a, b));
        }
    }

    /// The plain program: all pairs, one thread.
    pub(crate) fn naive(&self, start: &[Particle], steps: usize) -> Vec<Particle> {
        let mut all = start.to_vec();
        let pushes = |all: &[Particle]| -> Vec<[i64; 2]> {
            let sum = |one: &Particle| {
                let mut sum = [0; 2];
                all.iter().for_each(|other| self.add_push(one, other, &mut sum));
                sum
            };
            all.iter().map(sum).collect()
        };
        for _ in 0..steps {
            let before = pushes(&all);
            all.iter_mut().zip(&before).for_each(|(particle, push)| particle.push(push));
            all.iter_mut().for_each(Particle::drift);
            let after = pushes(&all);
            all.iter_mut().zip(&after).for_each(|(particle, push)| particle.push(push));
        }
        all
    }

    /// Whether `all` are where so many steps from `start` lead: what there is to say.
    pub(crate) fn check(&self, start: &[Particle], all: &[Particle], steps: usize) -> Result<String> {
        let is_whole = all.len() == start.len() && all.iter().zip(start).all(|(a, b)| a.id == b.id);
        if !is_whole {
            return Err(failed(format!(
                "of {} particles {} have come to the end, or not the same",
                start.len(),
                all.len()
            )));
        }
        let momentum = |particles: &[Particle]| {
            [0, 1].map(|axis| particles.iter().map(|particle| i128::from(particle.speed[axis])).sum::<i128>())
        };
        if momentum(start) != momentum(all) {
            return Err(failed(format!("the momentum was {:?} and is {:?}", momentum(start), momentum(all))));
        }
        let (before, after) = (self.energy(start), self.energy(all));
        let drift = if before > 0.0 { (after - before).abs() / before } else { 0.0 };
        if drift.is_nan() || drift > DRIFT {
            return Err(failed(format!("the energy was {before} and is {after}")));
        }
        let naive = if steps.saturating_mul(2 * all.len()).saturating_mul(all.len()) > NAIVE {
            "not compared with all pairs, of which there are too many"
        } else {
            let plain = self.naive(start, steps);
            if let Some((a, b)) = all.iter().zip(&plain).find(|(a, b)| a != b) {
                return Err(failed(format!("{a:?}, and by all pairs {b:?}")));
            }
            "all where a program of all pairs has them, to the last bit"
        };
        Ok(format!("all there, the momentum to the last bit, the energy within {drift:.1e}; {naive}"))
    }
}
