//! Eight coordinates at a time: numbers modulo p (D = 1), or a + b u with u^2 = -1 (D = 2).

use crate::fp::Fp;
use crate::prime::Prime;
use crate::words::{join, load, split, store, V};
use core::arch::x86_64::*;

/// Coefficients of 1 and u. p leaves room for factors of 8p: 64 p < 2^(52 L), as those of all coordinates here do.
pub(crate) struct Ext<M, const L: usize, const D: usize>(pub(crate) [Fp<M, L>; D]);

impl<M, const L: usize, const D: usize> Clone for Ext<M, L, D> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}
impl<M, const L: usize, const D: usize> Copy for Ext<M, L, D> {}

impl<M: Prime<L>, const L: usize, const D: usize> Ext<M, L, D> {
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(crate) fn zero() -> Self {
        Ext([Fp::same([0; L]); D])
    }

    /// 1 in Montgomery form.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(crate) fn one() -> Self {
        let mut out = [Fp::same([0; L]); D];
        out[0] = Fp::same(M::ONE);
        Ext(out)
    }

    /// The product, below 4p, for coefficients below 4p. Karatsuba where D = 2.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(crate) fn mul(self, b: Self) -> Self {
        let (a, b) = (self.0, b.0);
        let mut out = a;
        if D == 1 {
            out[0] = a[0].mul(b[0]);
        } else {
            let (low, high) = (a[0].mul(b[0]), a[1].mul(b[1]));
            let cross = a[0].plus(a[1]).carried().mul(b[0].plus(b[1]).carried());
            let p2 = Fp::same(M::P2);
            out[0] = low.minus(high).plus(p2).carried();
            out[1] = cross.minus(low).minus(high).plus(p2).plus(p2).less(M::P2).carried();
        }
        Ext(out)
    }

    /// The square, below 4p, for coefficients below 4p.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(crate) fn square(self) -> Self {
        let a = self.0;
        let mut out = a;
        if D == 1 {
            out[0] = a[0].mul(a[0]);
        } else {
            // (a + b)(a - b) + 2ab u
            let p2 = Fp::same(M::P2);
            let difference = a[0].minus(a[1]).plus(p2).plus(p2).carried();
            out[0] = a[0].plus(a[1]).carried().mul(difference);
            let product = a[0].mul(a[1]);
            out[1] = product.plus(product).carried();
        }
        Ext(out)
    }

    /// a + b, limbs not carried.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(crate) fn plus(self, b: Self) -> Self {
        let mut out = self.0;
        for i in 0..D {
            out[i] = out[i].plus(b.0[i]);
        }
        Ext(out)
    }

    /// a - b + p for b below p, limbs not carried.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(crate) fn minus(self, b: Self) -> Self {
        let mut out = self.0;
        for i in 0..D {
            out[i] = out[i].minus(b.0[i]).plus(Fp::same(M::P));
        }
        Ext(out)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(crate) fn carried(self) -> Self {
        let mut out = self.0;
        for x in &mut out {
            *x = x.carried();
        }
        Ext(out)
    }

    /// Coefficients below 6p, limbs not carried, as those below p.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(crate) fn reduced(self) -> Self {
        let mut out = self.0;
        for x in &mut out {
            *x = x.less(M::P2).reduced();
        }
        Ext(out)
    }

    /// Those of b where a bit of `mask` is set, and of a elsewhere.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(crate) fn choose(mask: __mmask8, a: Self, b: Self) -> Self {
        let mut out = a.0;
        for i in 0..D {
            out[i] = Fp::choose(mask, a.0[i], b.0[i]);
        }
        Ext(out)
    }

    /// Where all limbs are 0.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(crate) fn zeros(self) -> __mmask8 {
        let mut zeros = !0;
        for x in self.0 {
            zeros &= x.zeros();
        }
        zeros
    }

    /// Where a and b have the same limbs.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(crate) fn equal(self, b: Self) -> __mmask8 {
        let mut out = self.0;
        for i in 0..D {
            for j in 0..L {
                out[i].0[j] = _mm512_xor_si512(self.0[i].0[j], b.0[i].0[j]);
            }
        }
        Ext::<M, L, D>(out).zeros()
    }

    /// Where every coefficient is below p.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(crate) fn below_p(self) -> __mmask8 {
        let mut below = !0;
        for x in self.0 {
            below &= x.below_p();
        }
        below
    }

    /// From words, D numbers one after another.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(crate) fn split(words: &[V]) -> Self {
        let mut out = [Fp::same([0; L]); D];
        for (i, x) in out.iter_mut().enumerate() {
            *x = Fp::of(split(&words[i * M::WORDS..(i + 1) * M::WORDS]));
        }
        Ext(out)
    }

    /// To words. Limbs are carried.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(crate) fn join(self, words: &mut [V]) {
        for (i, x) in self.0.iter().enumerate() {
            join(&x.0, &mut words[i * M::WORDS..(i + 1) * M::WORDS]);
        }
    }

    /// Every coefficient times `factor`, below p. Coefficients are below 4p.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(crate) fn scaled(self, factor: [u64; L]) -> Self {
        let mut out = self.0;
        for x in &mut out {
            *x = x.mul(Fp::same(factor)).reduced();
        }
        Ext(out)
    }

    /// The numbers of other places: of place l ^ 4, l ^ 2 or l ^ 1 for `bit` 2, 1 or 0.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn swapped(self, bit: u32) -> Self {
        let mut out = self.0;
        for x in &mut out {
            for v in &mut x.0 {
                *v = match bit {
                    2 => _mm512_shuffle_i64x2::<0x4e>(*v, *v),
                    1 => _mm512_shuffle_i64x2::<0xb1>(*v, *v),
                    _ => _mm512_permutex_epi64::<0xb1>(*v),
                };
            }
        }
        Ext(out)
    }

    /// The inverses of eight numbers, none of them zero, by one inversion: `invert` is given a number x 2^(64 words) in
    /// words and puts x^-1 2^(64 words) in its place.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(crate) fn inverses(self, invert: &mut dyn FnMut(&mut [u64])) -> Self {
        let four = self.swapped(2);
        let pairs = self.mul(four);
        let two = pairs.swapped(1);
        let quarters = pairs.mul(two);
        let one = quarters.swapped(0);
        let total = quarters.mul(one).scaled(M::TO_WORDS);
        let mut words = [_mm512_setzero_si512(); 16];
        let words = &mut words[..D * M::WORDS];
        total.join(words);
        let mut number = [0; 16];
        for (number, v) in number.iter_mut().zip(words.iter()) {
            let mut eight = [0; 8];
            store(&mut eight, *v);
            *number = eight[0];
        }
        invert(&mut number[..D * M::WORDS]);
        for (number, v) in number.iter().zip(words.iter_mut()) {
            *v = load(&[*number; 8]);
        }
        Self::split(words).scaled(M::FROM_WORDS).mul(one).mul(two).mul(four)
    }
}
