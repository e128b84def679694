//! Products against arkworks, on random numbers and on edges; transforms against the sum that defines them.
#![forbid(unsafe_code)]

use ark_ff::{AdditiveGroup, BigInt, FftField, Field as _, Fp, MontBackend, MontConfig, UniformRand};
use rand_chacha::rand_core::SeedableRng;
use rand_chacha::ChaCha8Rng;
use tandem_field_simd::{Avx512, Bls12381Fr, Bn254Fr, Columns, Field};

type Of<P> = Fp<MontBackend<P, 4>, 4>;

fn words<P: MontConfig<4>>(numbers: &[Of<P>]) -> Vec<u64> {
    numbers.iter().flat_map(|x| x.0 .0).collect()
}

/// Numbers whose Montgomery forms are 0, 1, 2, p - 1, p - 2 and such with all limbs full, then random ones.
fn numbers<P: MontConfig<4>>(count: usize, seed: u64) -> Vec<Of<P>> {
    let p = P::MODULUS.0;
    let less = |k: u64| [p[0] - k, p[1], p[2], p[3]];
    let full = [u64::MAX, u64::MAX, u64::MAX, p[3] - 1];
    let edges =
        [[0; 4], [1, 0, 0, 0], [2, 0, 0, 0], less(1), less(2), full, [0, 0, 0, p[3]], [0, u64::MAX, 0, 1 << 60]];
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut all: Vec<_> = (0..count).map(|_| Of::<P>::rand(&mut rng)).collect();
    for (i, x) in all.iter_mut().enumerate().take(count / 2) {
        *x = Fp::new_unchecked(BigInt(edges[(i + i / 8 * seed as usize) % 8]));
    }
    all
}

fn products<P: MontConfig<4>>(field: &dyn Field) {
    let Some(processor) = Avx512::detect() else {
        eprintln!("skipped: this processor has no AVX-512 IFMA");
        return;
    };
    for round in 0..if cfg!(debug_assertions) { 8 } else { 500 } {
        let (a, b) = (numbers::<P>(2048, 2 * round), numbers::<P>(2048, 2 * round + 1));
        let mut product = words(&a);
        field.mul(processor, &mut product, &words(&b));
        assert!(product == words(&a.iter().zip(&b).map(|(a, b)| *a * b).collect::<Vec<_>>()));
        let mut scaled = words(&a);
        field.scale(processor, &mut scaled, None, &b[9].0 .0);
        assert!(scaled == words(&a.iter().map(|a| *a * b[9]).collect::<Vec<_>>()));
        let wide = field.widen(processor, &words(&b));
        let mut scaled = words(&a);
        field.scale(processor, &mut scaled, Some(&wide), &b[10].0 .0);
        assert!(scaled == words(&a.iter().zip(&b).map(|(x, y)| *x * y * b[10]).collect::<Vec<_>>()));
    }
}

/// Place `i` read backwards.
fn reversed(i: usize, n: usize) -> usize {
    i.reverse_bits() >> (usize::BITS - n.ilog2())
}

/// sum over j of a_j (g w^i)^j.
fn value<P: MontConfig<4>>(a: &[Of<P>], x: Of<P>) -> Of<P> {
    a.iter().rev().fold(Of::<P>::ZERO, |sum, a| sum * x + a)
}

fn transforms<P: MontConfig<4>>(field: &dyn Field) {
    let Some(processor) = Avx512::detect() else { return };
    for n in [8usize, 16, 64, 128] {
        // Of twice the order, for the odd powers.
        let root = |order: usize| Of::<P>::TWO_ADIC_ROOT_OF_UNITY.pow([1 << (Of::<P>::TWO_ADICITY - order.ilog2())]);
        let mut table = vec![Of::<P>::ONE; 16.max(2 * n)];
        for (place, power) in table.iter_mut().enumerate().skip(1) {
            let h = 1 << place.ilog2();
            *power = root(2 * h).pow([(place - h) as u64]);
        }
        let roots = field.roots(processor, &words(&table[table.len() / 2..])).unwrap();
        assert_eq!(roots.len(), table.len());
        let a = numbers::<P>(n, n as u64);
        let at = |i: usize, odd: bool| if odd { root(2 * n).pow([2 * i as u64 + 1]) } else { root(n).pow([i as u64]) };
        let natural = |odd: bool| -> Vec<_> { (0..n).map(|i| value(&a, at(i, odd))).collect() };
        let permuted = |x: &[Of<P>]| -> Vec<_> { (0..n).map(|i| x[reversed(i, n)]).collect() };

        let mut frequency = words(&a);
        field.frequency(processor, &mut frequency, &roots);
        assert!(frequency == words(&permuted(&natural(false))), "frequency of {n}");
        for odd in [false, true] {
            let mut time = words(&permuted(&a));
            field.time(processor, &mut time, &roots, odd);
            assert!(time == words(&natural(odd)), "time of {n}, {odd}");
        }
        // Columns first, then each row, is the whole.
        for rows in [2, n / 8] {
            let (stride, mut data) = (n / rows, words(&a));
            let mut parts: Vec<&mut [u64]> = data.chunks_mut(4 * stride).collect();
            if stride >= 8 {
                field.columns(processor, &mut parts, Columns { roots: &roots, stride, column: 0, time: None });
                data.chunks_mut(4 * stride).for_each(|row| field.frequency(processor, row, &roots));
                assert!(data == frequency, "{rows} rows of {n}");
            }
        }
    }
}

#[test]
fn bn254() {
    products::<ark_bn254::FrConfig>(&Bn254Fr);
    transforms::<ark_bn254::FrConfig>(&Bn254Fr);
}

#[test]
fn bls12_381() {
    products::<ark_bls12_381::FrConfig>(&Bls12381Fr);
    transforms::<ark_bls12_381::FrConfig>(&Bls12381Fr);
}
