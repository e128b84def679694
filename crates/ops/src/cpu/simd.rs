//! Whether the processor's wide registers are used, and vectors of field elements in them.

use crate::{Mont, NttField};
use rayon::prelude::*;
use std::sync::OnceLock;
use tandem_field_simd::{Avx512, Field};
use zeroize::Zeroizing;

/// Elements that one task takes.
const CHUNK: usize = 1 << 10;

/// Leaves AVX-512 alone where it is `0`.
const VARIABLE: &str = "TANDEM_AVX512";

/// AVX-512 where the processor has it, unless the environment forbids it.
pub(super) fn default() -> Option<Avx512> {
    static FOUND: OnceLock<Option<Avx512>> = OnceLock::new();
    *FOUND.get_or_init(|| if std::env::var_os(VARIABLE).is_some_and(|v| v == "0") { None } else { Avx512::detect() })
}

/// A scalar field whose arithmetic the processor does eight at a time.
#[derive(Clone, Copy)]
pub(super) struct Eight {
    pub(super) field: &'static dyn Field,
    pub(super) simd: Avx512,
}

impl Eight {
    pub(super) fn of<F: NttField>(simd: Option<Avx512>) -> Option<Self> {
        Some(Eight { field: F::simd()?, simd: simd? })
    }

    /// An element's words.
    pub(super) fn words<F: NttField>(x: F::Ark) -> [u64; 4] {
        bytemuck::cast_slice(&[F::element(x)]).try_into().unwrap_or_default()
    }

    /// Multiplies all by `factor`.
    pub(super) fn scale<F: NttField>(self, data: &mut [F::Element], factor: F::Ark) {
        let k = Self::words::<F>(factor);
        data.par_chunks_mut(CHUNK).for_each(|chunk| {
            let (eights, rest) = chunk.split_at_mut(chunk.len() / 8 * 8);
            self.field.scale(self.simd, bytemuck::cast_slice_mut(eights), None, &k);
            rest.iter_mut().for_each(|x| *x = F::element(F::value(*x) * factor));
        });
    }

    /// a_i = a_i b_i, and what `then` makes of it, which is told i. As many b as a.
    pub(super) fn mul<F: NttField>(
        self,
        a: &mut [F::Element],
        b: &[F::Element],
        then: impl Fn(&mut F::Element, usize) + Sync,
    ) {
        let chunks = a.par_chunks_mut(CHUNK).zip(b.par_chunks(CHUNK)).enumerate();
        chunks.for_each(|(c, (a, b))| {
            let eights = a.len() / 8 * 8;
            self.field.mul(self.simd, bytemuck::cast_slice_mut(&mut a[..eights]), bytemuck::cast_slice(&b[..eights]));
            let rest = a[eights..].iter_mut().zip(&b[eights..]);
            rest.for_each(|(a, b)| *a = F::element(F::value(*a) * F::value(*b)));
            a.iter_mut().enumerate().for_each(|(i, a)| then(a, c * CHUNK + i));
        });
    }
}

/// The first i for which c_i is not a_i b_i: as many of each, all factors below the modulus. It works on the thread that calls.
pub fn wrong_product<F: NttField<Element = Mont>>(a: &[Mont], b: &[Mont], c: &[Mont]) -> Option<usize> {
    first_wrong::<F>(default(), a, b, c)
}

fn first_wrong<F: NttField<Element = Mont>>(simd: Option<Avx512>, a: &[Mont], b: &[Mont], c: &[Mont]) -> Option<usize> {
    const BLOCK: usize = 64;
    let eight = Eight::of::<F>(simd);
    let mut words = Zeroizing::new([0u64; 4 * BLOCK]);
    let blocks = a.chunks(BLOCK).zip(b.chunks(BLOCK)).zip(c.chunks(BLOCK));
    for (block, ((a, b), c)) in blocks.enumerate() {
        let products: &mut [Mont] = bytemuck::cast_slice_mut(&mut words[..4 * a.len()]);
        products.copy_from_slice(a);
        let eights = if eight.is_some() { a.len() / 8 * 8 } else { 0 };
        if let Some(Eight { field, simd }) = eight {
            field.mul(simd, bytemuck::cast_slice_mut(&mut products[..eights]), bytemuck::cast_slice(&b[..eights]));
        }
        let rest = products[eights..].iter_mut().zip(&b[eights..]);
        rest.for_each(|(x, b)| *x = F::element(F::value(*x) * F::value(*b)));
        if let Some(at) = products.iter().zip(c).position(|(product, c)| product != c) {
            return Some(block * BLOCK + at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bls12_381, Bn254, Curve};
    use ark_ff::UniformRand;
    use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};

    /// With the processor's wide registers, where it has them, and without.
    fn wrong_products_are_found<C: Curve>() {
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        for len in [0, 1, 7, 8, 9, 63, 64, 65, 200] {
            let mut draw = || (0..len).map(|_| C::Fr::rand(&mut rng)).collect::<Vec<_>>();
            let (a, b) = (draw(), draw());
            let c: Vec<Mont> = a.iter().zip(&b).map(|(a, b)| C::mont(*a * b)).collect();
            let [a, b] = [a, b].map(|side| side.into_iter().map(C::mont).collect::<Vec<_>>());
            for simd in [None, default()] {
                assert_eq!(first_wrong::<C>(simd, &a, &b, &c), None);
                for at in 0..len {
                    let mut wrong = c.clone();
                    wrong[at].0[at % 4] ^= 1 << (at % 64);
                    assert_eq!(first_wrong::<C>(simd, &a, &b, &wrong), Some(at), "of {len}");
                }
            }
        }
    }

    #[test]
    fn products_that_are_wrong_are_found() {
        wrong_products_are_found::<Bn254>();
        wrong_products_are_found::<Bls12_381>();
    }
}
