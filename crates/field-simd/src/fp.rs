//! Eight numbers modulo p at a time, in Montgomery form with R = 2^(52 L).

use crate::prime::Prime;
use crate::words::{all, LIMB, MASK, V};
use core::arch::x86_64::*;
use core::marker::PhantomData;

/// Eight numbers; vector i holds their limbs of 2^(52 i). Limbs are below 2^52 where nothing else is said.
pub(crate) struct Fp<M, const L: usize>(pub(crate) [V; L], PhantomData<M>);

impl<M, const L: usize> Clone for Fp<M, L> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}
impl<M, const L: usize> Copy for Fp<M, L> {}

impl<M: Prime<L>, const L: usize> Fp<M, L> {
    #[inline]
    pub(crate) fn of(limbs: [V; L]) -> Self {
        Fp(limbs, PhantomData)
    }

    /// One number eight times.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(crate) fn same(limbs: [u64; L]) -> Self {
        let mut out = [_mm512_setzero_si512(); L];
        for i in 0..L {
            out[i] = all(limbs[i]);
        }
        Self::of(out)
    }

    /// The Montgomery product, below 2p: for factors below 4p, and for one below 8p and one below 2p.
    ///
    /// Limb products of 104 bits go in halves of 52 to sums of 64: 4 L halves at most meet in one of them. After
    /// each limb of b the lowest limb is cancelled and dropped (P. L. Montgomery).
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(crate) fn mul(self, b: Self) -> Self {
        let zero = _mm512_setzero_si512();
        let (a, b) = (self.0, b.0);
        let inverse = all(M::NEGATIVE_INVERSE);
        let mut sum = [zero; L];
        for factor in b {
            for j in 0..L {
                sum[j] = _mm512_madd52lo_epu64(sum[j], a[j], factor);
            }
            let q = _mm512_madd52lo_epu64(zero, sum[0], inverse);
            for j in 0..L {
                sum[j] = _mm512_madd52lo_epu64(sum[j], q, all(M::P[j]));
            }
            let carry = _mm512_srli_epi64::<52>(sum[0]);
            for j in 0..L - 1 {
                sum[j] = sum[j + 1];
            }
            sum[L - 1] = zero;
            sum[0] = _mm512_add_epi64(sum[0], carry);
            for j in 0..L {
                sum[j] = _mm512_madd52hi_epu64(sum[j], a[j], factor);
                sum[j] = _mm512_madd52hi_epu64(sum[j], q, all(M::P[j]));
            }
        }
        Self::of(sum).carried()
    }

    /// This number with its limbs, of any sign and size, brought below 2^52.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(crate) fn carried(self) -> Self {
        let mut x = self.0;
        for i in 0..L - 1 {
            x[i + 1] = _mm512_add_epi64(x[i + 1], _mm512_srai_epi64::<52>(x[i]));
            x[i] = _mm512_and_si512(x[i], all(MASK));
        }
        Self::of(x)
    }

    /// a + b, limbs not carried.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(crate) fn plus(self, b: Self) -> Self {
        let mut x = self.0;
        for i in 0..L {
            x[i] = _mm512_add_epi64(x[i], b.0[i]);
        }
        Self::of(x)
    }

    /// a - b, limbs not carried.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(crate) fn minus(self, b: Self) -> Self {
        let mut x = self.0;
        for i in 0..L {
            x[i] = _mm512_sub_epi64(x[i], b.0[i]);
        }
        Self::of(x)
    }

    /// x - k where that is not negative, else x; k in limbs, those of x and of the result not carried.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(crate) fn less(self, k: [u64; L]) -> Self {
        let t = self.minus(Self::same(k));
        let mut top = t.0[0];
        for i in 1..L {
            top = _mm512_add_epi64(t.0[i], _mm512_srai_epi64::<{ LIMB as u32 }>(top));
        }
        Self::choose(_mm512_cmplt_epi64_mask(top, _mm512_setzero_si512()), t, self)
    }

    /// Where a number is below p.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(crate) fn below_p(self) -> __mmask8 {
        // What is taken away from a number changes it.
        let (mut changed, less) = (self.0, self.less(M::P));
        for i in 0..L {
            changed[i] = _mm512_xor_si512(changed[i], less.0[i]);
        }
        Self::of(changed).zeros()
    }

    /// A number below 4p, limbs not carried, as the number below p.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(crate) fn reduced(self) -> Self {
        self.less(M::P2).less(M::P).carried()
    }

    /// Those of b where a bit of `mask` is set, and of a elsewhere.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(crate) fn choose(mask: __mmask8, a: Self, b: Self) -> Self {
        let mut x = a.0;
        for i in 0..L {
            x[i] = _mm512_mask_blend_epi64(mask, a.0[i], b.0[i]);
        }
        Self::of(x)
    }

    /// Where all limbs are 0.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(crate) fn zeros(self) -> __mmask8 {
        let any = self.0.into_iter().fold(_mm512_setzero_si512(), |any, x| _mm512_or_si512(any, x));
        _mm512_testn_epi64_mask(any, any)
    }
}
