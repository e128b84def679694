//! The moduli, and what is computed from each once.

use crate::words::{LIMB, MASK};

/// A prime p as a type, its numbers in L limbs of 52 bits: 8p < 2^(52 L), so that sums of a few wait for their reduction.
pub trait Prime<const L: usize>: Copy + 'static {
    /// p.
    const P: [u64; L];
    /// Words of 64 bits of a number below p: 4 or 6.
    const WORDS: usize;

    /// 2p.
    const P2: [u64; L] = doubled(Self::P);
    /// 4p.
    const P4: [u64; L] = doubled(Self::P2);
    /// -1/p modulo 2^52.
    const NEGATIVE_INVERSE: u64 = negative_inverse(Self::P[0]);
    /// R = 2^(52 L), which is 1 in Montgomery form.
    const ONE: [u64; L] = power(LIMB * L, Self::P);
    /// 2^(64 WORDS), which brings x R to x 2^(64 WORDS).
    const TO_WORDS: [u64; L] = power(64 * Self::WORDS, Self::P);
    /// 2^(2 52 L - 64 WORDS), which brings x 2^(64 WORDS) to x R.
    const FROM_WORDS: [u64; L] = power(2 * LIMB * L - 64 * Self::WORDS, Self::P);
}

macro_rules! prime {
    ($(#[$doc:meta])* $name:ident, $words:literal, $limbs:literal, [$($word:literal),*]) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl $name {
            /// p in words of 64 bits.
            pub(crate) const MODULUS: [u64; $words] = [$($word),*];
        }

        impl Prime<$limbs> for $name {
            const P: [u64; $limbs] = limbs(Self::MODULUS);
            const WORDS: usize = $words;
        }
    };
}
prime!(
    /// The field of BN254's coordinates.
    Bn254Fq, 4, 5,
    [0x3c208c16d87cfd47, 0x97816a916871ca8d, 0xb85045b68181585d, 0x30644e72e131a029]
);
prime!(
    /// The scalar field of BN254.
    Bn254Fr, 4, 5,
    [0x43e1f593f0000001, 0x2833e84879b97091, 0xb85045b68181585d, 0x30644e72e131a029]
);
prime!(
    /// The field of BLS12-381's coordinates.
    Bls12381Fq, 6, 8,
    [
        0xb9feffffffffaaab, 0x1eabfffeb153ffff, 0x6730d2a0f6b0f624, 0x64774b84f38512bf, 0x4b1ba7b6434bacd7,
        0x1a0111ea397fe69a
    ]
);
prime!(
    /// The scalar field of BLS12-381.
    Bls12381Fr, 4, 5,
    [0xffffffff00000001, 0x53bda402fffe5bfe, 0x3339d80809a1d805, 0x73eda753299d7d48]
);

const fn limbs<const N: usize, const L: usize>(words: [u64; N]) -> [u64; L] {
    let mut out = [0; L];
    let mut i = 0;
    while i < L {
        let (word, bit) = (i * LIMB / 64, i * LIMB % 64);
        if word < N {
            out[i] = words[word] >> bit;
        }
        if bit + LIMB > 64 && word + 1 < N {
            out[i] |= words[word + 1] << (64 - bit);
        }
        out[i] &= MASK;
        i += 1;
    }
    out
}

const fn doubled<const L: usize>(x: [u64; L]) -> [u64; L] {
    let mut out = [0; L];
    let (mut carry, mut i) = (0, 0);
    while i < L {
        let sum = 2 * x[i] + carry;
        (out[i], carry) = (sum & MASK, sum >> LIMB);
        i += 1;
    }
    out
}

const fn reduced<const L: usize>(x: [u64; L], p: [u64; L]) -> [u64; L] {
    let mut out = [0; L];
    let (mut borrow, mut i) = (0, 0);
    while i < L {
        let difference = x[i].wrapping_sub(p[i]).wrapping_sub(borrow);
        (out[i], borrow) = (difference & MASK, difference >> 63);
        i += 1;
    }
    if borrow == 1 {
        x
    } else {
        out
    }
}

/// 2^e modulo p.
const fn power<const L: usize>(e: usize, p: [u64; L]) -> [u64; L] {
    let mut x = [0; L];
    x[0] = 1;
    let mut i = 0;
    while i < e {
        x = reduced(doubled(x), p);
        i += 1;
    }
    x
}

/// By Newton's iteration, which doubles the number of right bits.
const fn negative_inverse(p: u64) -> u64 {
    let mut x = 1u64;
    let mut i = 0;
    while i < 6 {
        x = x.wrapping_mul(2u64.wrapping_sub(p.wrapping_mul(x)));
        i += 1;
    }
    x.wrapping_neg() & MASK
}

/// -x modulo p if `turn`, for x below p. Which it is decides no branch.
#[inline]
pub(crate) fn negate<const N: usize>(x: &mut [u64; N], p: &[u64; N], turn: bool) {
    let mut borrow = false;
    let mut negative = [0; N];
    for i in 0..N {
        let (difference, less) = p[i].overflowing_sub(x[i]);
        let (difference, lesser) = difference.overflowing_sub(u64::from(borrow));
        (negative[i], borrow) = (difference, less | lesser);
    }
    let mask = u64::from(turn & (x.iter().fold(0, |any, x| any | x) != 0)).wrapping_neg();
    for i in 0..N {
        x[i] ^= (x[i] ^ negative[i]) & mask;
    }
}
