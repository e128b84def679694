//! Whether the processor's wide registers are used, and vectors of field elements in them.

use crate::NttField;
use rayon::prelude::*;
use std::sync::OnceLock;
use tandem_field_simd::{Avx512, Field};

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
