//! What the host computes over vectors when a key is loaded, and over the public values: inverses and powers.

use ark_ff::Field;
use rayon::prelude::*;

/// Elements that one task takes at least.
const GRAIN: usize = 1 << 10;

/// Elements of one task, such that each thread has a few.
fn grain(len: usize) -> usize {
    len.div_ceil(4 * rayon::current_num_threads()).max(GRAIN)
}

/// Replaces each element that is not zero by its inverse; zero stays.
pub(crate) fn invert<F: Field>(values: &mut [F]) {
    let grain = grain(values.len());
    values.par_chunks_mut(grain).for_each(ark_ff::batch_inversion);
}

/// 1, x, x^2, ..
pub(crate) fn powers<F: Field>(x: F, len: usize) -> Vec<F> {
    let mut powers = vec![F::ZERO; len];
    let grain = grain(len);
    powers.par_chunks_mut(grain).enumerate().for_each(|(task, chunk)| {
        let mut power = x.pow([(task * grain) as u64]);
        for to in chunk {
            *to = power;
            power *= x;
        }
    });
    powers
}

/// L1 and the polynomial of the public values at `xi`, for a domain of `n` powers of `w`.
pub(crate) fn lagrange<F: Field>(publics: &[F], xi: F, w: F, n: usize) -> (F, F) {
    // L_i = w^i (xi^n - 1) / (n (xi - w^i))
    let rows = powers(w, publics.len().max(1));
    let mut values: Vec<F> = rows.iter().map(|row| xi - row).collect();
    invert(&mut values);
    let factor = (xi.pow([n as u64]) - F::ONE) * F::from(n as u64).inverse().unwrap_or(F::ONE);
    values.iter_mut().zip(rows).for_each(|(value, row)| *value *= factor * row);
    (values[0], -publics.iter().zip(&values).map(|(x, l)| *x * l).sum::<F>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_bn254::Fr;
    use ark_ff::{AdditiveGroup, UniformRand, Zero};
    use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};

    const SIZES: [usize; 14] = [0, 1, 2, 3, 7, 1023, 1024, 1025, 2047, 2048, 2049, 5000, 8191, 8193];

    fn random(n: usize, seed: u64) -> Vec<Fr> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        (0..n).map(|_| Fr::rand(&mut rng)).collect()
    }

    #[test]
    fn inverses_times_their_elements_are_one() {
        for n in SIZES {
            let mut values = random(n, 1);
            values.iter_mut().step_by(5).for_each(|v| *v = Fr::ZERO);
            let before = values.clone();
            invert(&mut values);
            for (i, (inverse, value)) in values.iter().zip(&before).enumerate() {
                assert_eq!(*inverse * value, if i % 5 == 0 { Fr::ZERO } else { Fr::ONE });
                assert!(i % 5 != 0 || inverse.is_zero());
            }
        }
    }

    #[test]
    fn powers_are_those_of_their_numbers() {
        for n in SIZES {
            for x in [Fr::ZERO, Fr::ONE, -Fr::ONE, random(1, 4)[0]] {
                let powers = powers(x, n);
                assert!(
                    powers.len() == n && powers.iter().enumerate().step_by(97).all(|(i, p)| *p == x.pow([i as u64]))
                );
            }
        }
    }
}
