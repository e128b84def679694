//! Circuits of any size for tests and measurements, with witnesses that satisfy them.
//!
//! Wire 0 is the constant, then come the public outputs, a seed, and one wire for each constraint but the last ones,
//! which define the outputs. A constraint either makes its wire a bit, v (v - 1) = 0, or a value of full size,
//! v = (d + k)(u + 3 d), where u is the wire before and d the last one of full size.

use crate::setup::{Circuit, Constraint};
use crate::{Error, Result};
use ark_ff::{AdditiveGroup, Field, UniformRand};
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha12Rng;
use tandem_ops::{Canonical, Curve};

/// A circuit of a given size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Synthetic {
    /// Number of constraints; more than `publics`.
    pub constraints: usize,
    /// Number of public outputs.
    pub publics: usize,
    /// Share of the constraints that define wires of full size, 0 to 1.
    pub dense: f64,
}

impl Synthetic {
    /// The largest circuit with one public output whose domain has 2^`log_domain` rows.
    pub fn of_domain(log_domain: u32, dense: f64) -> Self {
        Self { constraints: (1 << log_domain) - 2, publics: 1, dense }
    }

    /// The largest circuit with one public output whose gates, of PLONK or FFLONK, leave two of 2^`log_domain` rows, 8 at least, free.
    pub fn of_gates(log_domain: u32, dense: f64) -> Self {
        let of = |constraints: usize| Self { constraints, publics: 1, dense };
        let rows = (1usize << log_domain) - 2;
        let guess = (rows as f64 / (1.0 + dense)) as usize + 2;
        let fits = |circuit: &Self| circuit.gates() <= rows;
        (2..=guess.min(rows)).rev().map(of).find(fits).unwrap_or(of(2))
    }

    /// Gates of its PLONK key: the row of each public output, and one for each constraint, two where B has two terms.
    fn gates(&self) -> usize {
        self.publics + self.constraints + (self.inner() as f64 * self.dense) as usize
    }

    fn is_dense(&self, constraint: usize) -> bool {
        // The share of the first n constraints is n * dense, rounded down, for every n.
        let upto = |n: usize| (n as f64 * self.dense) as usize;
        upto(constraint + 1) > upto(constraint)
    }

    fn inner(&self) -> usize {
        self.constraints.saturating_sub(self.publics)
    }

    fn check(&self) -> Result<()> {
        if self.constraints > self.publics && (0.0..=1.0).contains(&self.dense) && self.constraints < 1 << 31 {
            return Ok(());
        }
        let Self { constraints, publics, dense } = self;
        Err(Error::Circuit(format!("no circuit of {constraints} constraints, {publics} outputs, dense share {dense}")))
    }

    /// Calls `row` with each constraint, whether it is dense, and the wire that it defines.
    fn each<C: Curve>(&self, mut row: impl FnMut(&Constraint<C>, bool, usize) -> Result<()>) -> Result<()> {
        self.check()?;
        let one = C::Fr::ONE;
        let three = C::Fr::from(3u64);
        let seed = self.publics + 1;
        let mut last_dense = seed;
        let mut constraint = Constraint::<C> { a: Vec::new(), b: Vec::new(), c: Vec::new() };
        for i in 0..self.constraints {
            constraint.a.clear();
            constraint.b.clear();
            constraint.c.clear();
            let d = last_dense as u32;
            if i >= self.inner() {
                // output j = (d + j) * 1
                let j = i - self.inner();
                constraint.a.extend([(d, one), (0, C::Fr::from(j as u64))]);
                constraint.b.push((0, one));
                constraint.c.push((j as u32 + 1, one));
                row(&constraint, true, j + 1)?;
                continue;
            }
            let wire = seed + 1 + i;
            let v = wire as u32;
            if self.is_dense(i) {
                constraint.a.extend([(d, one), (0, C::Fr::from(i as u64 % 1000 + 1))]);
                constraint.b.extend([(v - 1, one), (d, three)]);
                constraint.c.push((v, one));
                last_dense = wire;
            } else {
                constraint.a.push((v, one));
                constraint.b.extend([(v, one), (0, -one)]);
            }
            row(&constraint, self.is_dense(i), wire)?;
        }
        Ok(())
    }

    /// A witness that satisfies the circuit, drawn from `seed`.
    ///
    /// # Errors
    /// [`Error::Circuit`] for sizes that make no circuit.
    pub fn witness<C: Curve>(&self, seed: u64) -> Result<Vec<Canonical>> {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        let mut values = vec![C::Fr::ZERO; Circuit::<C>::variables(self)];
        values[0] = C::Fr::ONE;
        values[self.publics + 1] = C::Fr::rand(&mut rng);
        self.each::<C>(|constraint, dense, wire| {
            let sum = |terms: &[(u32, C::Fr)]| -> C::Fr { terms.iter().map(|(w, k)| values[*w as usize] * k).sum() };
            values[wire] = if dense {
                sum(&constraint.a) * sum(&constraint.b)
            } else {
                C::Fr::from(u64::from(rng.next_u32() & 1))
            };
            Ok(())
        })?;
        Ok(values.into_iter().map(C::canonical).collect())
    }
}

impl<C: Curve> Circuit<C> for Synthetic {
    fn constraints(&self) -> usize {
        self.constraints
    }

    fn variables(&self) -> usize {
        self.publics + 2 + self.inner()
    }

    fn publics(&self) -> usize {
        self.publics
    }

    fn walk(&self, row: &mut dyn FnMut(&Constraint<C>) -> Result<()>) -> Result<()> {
        self.each::<C>(|constraint, _, _| row(constraint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_ops::Bn254;

    #[test]
    fn witnesses_satisfy_their_circuits() {
        for (constraints, publics, dense) in [(1, 0, 0.0), (2, 1, 1.0), (100, 0, 0.5), (101, 7, 0.3), (50, 49, 1.0)] {
            let circuit = Synthetic { constraints, publics, dense };
            let witness = circuit.witness::<Bn254>(5).unwrap();
            let values: Vec<_> = witness.iter().map(|&x| Bn254::from_canonical(x).unwrap()).collect();
            let (mut rows, mut large) = (0, 0);
            Circuit::<Bn254>::walk(&circuit, &mut |row| {
                let sum =
                    |terms: &[(u32, _)]| terms.iter().map(|(w, k)| values[*w as usize] * k).sum::<ark_bn254::Fr>();
                assert_eq!(sum(&row.a) * sum(&row.b), sum(&row.c));
                rows += 1;
                Ok(())
            })
            .unwrap();
            assert_eq!(rows, constraints);
            large += witness[publics + 2..].iter().filter(|x| x.0[1..] != [0; 3]).count();
            assert_eq!(large, ((constraints - publics) as f64 * dense) as usize);
        }
    }

    #[test]
    fn impossible_sizes_are_refused() {
        for (constraints, publics, dense) in [(0, 0, 0.5), (3, 3, 0.5), (3, 4, 0.5), (3, 1, 1.1), (3, 1, f64::NAN)] {
            assert!(Synthetic { constraints, publics, dense }.witness::<Bn254>(0).is_err());
        }
    }
}
