//! Steps of a proof that the host does on coefficients and on values: the inverses and the running product of the permutation,
//! evaluation and division. What is kept meanwhile may tell of a witness, and is wiped.

use ark_ff::Field;
use rayon::prelude::*;
use zeroize::Zeroizing;

/// Elements that one task takes at least.
const GRAIN: usize = 1 << 10;

/// Elements of one task, such that each thread has a few.
fn grain(len: usize) -> usize {
    len.div_ceil(4 * rayon::current_num_threads()).max(GRAIN)
}

/// Replaces each element that is not zero by its inverse; zero stays.
pub(crate) fn invert<F: Field>(values: &mut [F]) {
    let grain = grain(values.len());
    values.par_chunks_mut(grain).for_each(|chunk| {
        let mut before = Zeroizing::new(Vec::with_capacity(chunk.len()));
        let mut product = F::ONE;
        for value in chunk.iter() {
            before.push(product);
            if !value.is_zero() {
                product *= value;
            }
        }
        let mut inverse = product.inverse().unwrap_or(F::ONE);
        for (value, before) in chunk.iter_mut().zip(before.iter()).rev() {
            if !value.is_zero() {
                let own = inverse * before;
                inverse *= *value;
                *value = own;
            }
        }
    });
}

/// Replaces element i by the product of those before it, the first by 1; returns the product of all.
pub(crate) fn running_product<F: Field>(values: &mut [F]) -> F {
    let grain = grain(values.len());
    let mut starts: Zeroizing<Vec<F>> =
        Zeroizing::new(values.par_chunks(grain).map(|chunk| chunk.iter().product()).collect());
    let mut product = F::ONE;
    for start in starts.iter_mut() {
        let total = *start;
        *start = product;
        product *= total;
    }
    values.par_chunks_mut(grain).zip(starts.par_iter()).for_each(|(chunk, start)| {
        let mut product = *start;
        for value in chunk {
            let own = *value;
            *value = product;
            product *= own;
        }
    });
    product
}

/// The value of the polynomial with these coefficients at `x`.
pub(crate) fn evaluate<F: Field>(coefficients: &[F], x: F) -> F {
    let grain = grain(coefficients.len());
    let step = x.pow([grain as u64]);
    let values: Zeroizing<Vec<F>> =
        Zeroizing::new(coefficients.par_chunks(grain).map(|chunk| horner(chunk, x, F::ZERO)).collect());
    horner(&values, step, F::ZERO)
}

fn horner<F: Field>(coefficients: &[F], x: F, above: F) -> F {
    coefficients.iter().rev().fold(above, |sum, c| sum * x + c)
}

/// Replaces a polynomial by its quotient by X - `x`, which is one coefficient shorter; returns the remainder, its value at `x`.
pub(crate) fn divide<F: Field>(coefficients: &mut Vec<F>, x: F) -> F {
    let grain = grain(coefficients.len());
    // Coefficient i of the quotient is the value at x of what stands above i, as a polynomial of its own.
    let values: Zeroizing<Vec<F>> =
        Zeroizing::new(coefficients.par_chunks(grain).map(|chunk| horner(chunk, x, F::ZERO)).collect());
    let step = x.pow([grain as u64]);
    let mut above = Zeroizing::new(vec![F::ZERO; values.len()]);
    for i in (1..values.len()).rev() {
        above[i - 1] = above[i] * step + values[i];
    }
    coefficients.par_chunks_mut(grain).zip(above.par_iter()).for_each(|(chunk, above)| {
        let mut sum = *above;
        for c in chunk.iter_mut().rev() {
            sum = sum * x + *c;
            *c = sum;
        }
    });
    if coefficients.is_empty() {
        return F::ZERO;
    }
    coefficients.remove(0)
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

/// a_i += k b_i for as many as `b` has.
pub(crate) fn add_scaled<F: Field>(a: &mut [F], b: &[F], k: F) {
    a.par_iter_mut().with_min_len(GRAIN).zip(b).for_each(|(a, b)| *a += k * b);
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
    fn running_products_are_those_of_one_loop() {
        for n in SIZES {
            let before = random(n, 2);
            let mut values = before.clone();
            let total = running_product(&mut values);
            let mut product = Fr::ONE;
            for (value, own) in values.iter().zip(&before) {
                assert_eq!(*value, product);
                product *= own;
            }
            assert_eq!(total, product);
        }
    }

    #[test]
    fn values_are_sums_of_powers_and_quotients_multiply_back() {
        for n in SIZES {
            let c = random(n, 3);
            for x in [Fr::ZERO, Fr::ONE, -Fr::ONE, random(1, 4)[0]] {
                let powers = powers(x, n);
                assert!(powers.iter().enumerate().step_by(97).all(|(i, p)| *p == x.pow([i as u64])));
                let value: Fr = c.iter().zip(&powers).map(|(c, p)| *c * p).sum();
                assert_eq!(evaluate(&c, x), value);
                let mut quotient = c.clone();
                assert_eq!(divide(&mut quotient, x), value, "{n}");
                assert_eq!(quotient.len(), n.saturating_sub(1));
                // q (X - x) + r
                let mut back = vec![Fr::ZERO; n];
                for (i, q) in quotient.iter().enumerate() {
                    back[i + 1] += q;
                    back[i] -= *q * x;
                }
                if n > 0 {
                    back[0] += value;
                }
                assert!(back == c);
            }
        }
    }

    #[test]
    fn sums_with_a_factor() {
        let (mut a, b, k) = (random(3000, 5), random(2000, 6), random(1, 7)[0]);
        let before = a.clone();
        add_scaled(&mut a, &b, k);
        assert!((0..3000).all(|i| a[i] == before[i] + b.get(i).map_or(Fr::ZERO, |b| *b * k)));
    }
}
