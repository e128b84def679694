//! Between numbers that lie one after another in words of 64 bits and vectors that hold a part of eight numbers each.

use core::arch::x86_64::*;

/// Eight words of 64 bits, one of each of eight numbers.
pub(crate) type V = __m512i;

/// Bits of a limb: what the multiplier of IFMA takes.
pub(crate) const LIMB: usize = 52;
/// The bits of a limb.
pub(crate) const MASK: u64 = (1 << LIMB) - 1;

/// The eight words as a vector.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn load(words: &[u64; 8]) -> V {
    // SAFETY: the reference is to 64 bytes that may be read, and the load takes any address.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

/// Writes a vector's eight words.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn store(words: &mut [u64; 8], v: V) {
    // SAFETY: the reference is to 64 bytes that may be written, and the store takes any address.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), v) }
}

/// One number in all places.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn all(word: u64) -> V {
    _mm512_set1_epi64(word.cast_signed())
}

/// Word j of vector i becomes word i of vector j.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn transpose(r: [V; 8]) -> [V; 8] {
    // Even and odd columns of pairs of rows, then quarters of vectors: t[i] has rows 2i and 2i + 1.
    let even = [0, 2, 4, 6].map(|i: usize| _mm512_unpacklo_epi64(r[i], r[i + 1]));
    let odd = [0, 2, 4, 6].map(|i: usize| _mm512_unpackhi_epi64(r[i], r[i + 1]));
    let columns = |t: [V; 4]| {
        let s0 = _mm512_shuffle_i64x2::<0x88>(t[0], t[1]);
        let s1 = _mm512_shuffle_i64x2::<0xdd>(t[0], t[1]);
        let s2 = _mm512_shuffle_i64x2::<0x88>(t[2], t[3]);
        let s3 = _mm512_shuffle_i64x2::<0xdd>(t[2], t[3]);
        [
            _mm512_shuffle_i64x2::<0x88>(s0, s2),
            _mm512_shuffle_i64x2::<0x88>(s1, s3),
            _mm512_shuffle_i64x2::<0xdd>(s0, s2),
            _mm512_shuffle_i64x2::<0xdd>(s1, s3),
        ]
    };
    let (e, o) = (columns(even), columns(odd));
    [e[0], o[0], e[1], o[1], e[2], o[2], e[3], o[3]]
}

/// Word w of the eight numbers in vector w. W is 8 or more.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn gather<const W: usize>(from: [&[u64; W]; 8]) -> [V; W] {
    let mut out = [_mm512_setzero_si512(); W];
    let mut at = 0;
    while at < W {
        // The last part may overlap the one before.
        let start = at.min(W - 8);
        let mut rows = [_mm512_setzero_si512(); 8];
        for (row, words) in rows.iter_mut().zip(&from) {
            if let Some(part) = words[start..].first_chunk() {
                *row = load(part);
            }
        }
        out[start..start + 8].copy_from_slice(&transpose(rows));
        at = start + 8;
    }
    out
}

/// The eight numbers whose words w are in vector w. W is 8 or more.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn scatter<const W: usize>(words: &[V; W]) -> [[u64; W]; 8] {
    let mut out = [[0; W]; 8];
    let mut at = 0;
    while at < W {
        let start = at.min(W - 8);
        let mut rows = [_mm512_setzero_si512(); 8];
        rows.copy_from_slice(&words[start..start + 8]);
        for (number, row) in out.iter_mut().zip(transpose(rows)) {
            if let Some(part) = number[start..].first_chunk_mut() {
                store(part, row);
            }
        }
        at = start + 8;
    }
    out
}

/// Word w of eight numbers of four words, which lie one after another, in vector w.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn gather_four(from: &[u64; 32]) -> [V; 4] {
    let (parts, _) = from.as_chunks();
    let (a, b, c, d) = (load(&parts[0]), load(&parts[1]), load(&parts[2]), load(&parts[3]));
    let low = |a, b| _mm512_shuffle_i64x2::<0x88>(a, b);
    let high = |a, b| _mm512_shuffle_i64x2::<0xdd>(a, b);
    let (first, second) = (low(a, b), low(c, d));
    let (third, fourth) = (high(a, b), high(c, d));
    // Pieces of 128 bits: number 0 to 3 in `first`, 4 to 7 in `second`, their words 0 and 1; then words 2 and 3.
    let order = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
    let other = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
    [
        _mm512_permutex2var_epi64(first, order, second),
        _mm512_permutex2var_epi64(first, other, second),
        _mm512_permutex2var_epi64(third, order, fourth),
        _mm512_permutex2var_epi64(third, other, fourth),
    ]
}

/// Eight numbers of four words, one after another, whose words w are in vector w.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn scatter_four(words: [V; 4], to: &mut [u64; 32]) {
    let order = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
    let other = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
    // Words 0 and 1 of numbers 0 to 3 and 4 to 7, then words 2 and 3.
    let first = _mm512_permutex2var_epi64(words[0], order, words[1]);
    let second = _mm512_permutex2var_epi64(words[0], other, words[1]);
    let third = _mm512_permutex2var_epi64(words[2], order, words[3]);
    let fourth = _mm512_permutex2var_epi64(words[2], other, words[3]);
    let pairs = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    let others = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    let rows = [
        _mm512_permutex2var_epi64(first, pairs, third),
        _mm512_permutex2var_epi64(first, others, third),
        _mm512_permutex2var_epi64(second, pairs, fourth),
        _mm512_permutex2var_epi64(second, others, fourth),
    ];
    for (to, row) in to.as_chunks_mut().0.iter_mut().zip(rows) {
        store(to, row);
    }
}

/// Limbs of 52 bits of numbers in words of 64.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn split<const L: usize>(words: &[V]) -> [V; L] {
    let mut limbs = [_mm512_setzero_si512(); L];
    for (i, limb) in limbs.iter_mut().enumerate() {
        let (word, bit) = (i * LIMB / 64, i * LIMB % 64);
        let mut x = _mm512_srlv_epi64(words[word], all(bit as u64));
        if bit + LIMB > 64 && word + 1 < words.len() {
            x = _mm512_or_si512(x, _mm512_sllv_epi64(words[word + 1], all(64 - bit as u64)));
        }
        *limb = _mm512_and_si512(x, all(MASK));
    }
    limbs
}

/// Words of 64 bits of numbers in limbs of 52.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn join<const L: usize>(limbs: &[V; L], words: &mut [V]) {
    for (k, word) in words.iter_mut().enumerate() {
        let (limb, bit) = (k * 64 / LIMB, k * 64 % LIMB);
        let mut x = _mm512_srlv_epi64(limbs[limb], all(bit as u64));
        let mut have = LIMB - bit;
        let mut next = limb + 1;
        while have < 64 && next < L {
            x = _mm512_or_si512(x, _mm512_sllv_epi64(limbs[next], all(have as u64)));
            have += LIMB;
            next += 1;
        }
        *word = x;
    }
}
