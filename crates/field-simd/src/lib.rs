#![doc = include_str!("../README.md")]
// Limbs of several numbers are walked together.
#![allow(clippy::needless_range_loop)]

mod ext;
mod field;
mod fp;
mod ntt;
mod points;
mod prime;
mod words;

pub use field::{Columns, Field, Wide};
use points::Levels;
use prime::Prime;
use std::collections::TryReserveError;

pub use prime::{Bls12381Fq, Bls12381Fr, Bn254Fq, Bn254Fr};

/// Proof that this processor has AVX-512 with IFMA, and that the system keeps its registers.
#[derive(Clone, Copy, Debug)]
pub struct Avx512(());

impl Avx512 {
    /// `None` where the processor lacks it.
    pub fn detect() -> Option<Self> {
        let there = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512ifma");
        there.then_some(Avx512(()))
    }
}

/// A group of a curve with a = 0, over Fp, or over Fp2 with u^2 = -1.
///
/// A point is [`Group::WORDS`] words of 64 bits, least significant first: x, then y; over Fp2 each is c0, then c1. All are below p.
/// Infinity is all zero. Two Montgomery forms occur: *plain*, x 2^(64 words), which arkworks and files have, and
/// *wide*, x 2^(52 limbs), in which sums are made.
pub trait Group {
    /// Words of a point.
    const WORDS: usize;

    /// Memory that additions use, and use again in the next call.
    type Scratch: Default + Send;

    /// Plain points as wide ones.
    fn widen(processor: Avx512, points: &mut [u64]);

    /// Wide points as plain ones.
    fn narrow(processor: Avx512, points: &mut [u64]);

    /// Whether each of these plain points is infinity, or has coordinates below p with y^2 = x^3 + b, for a plain coordinate b. Any words
    /// may be asked about; points that are not whole are not looked at.
    fn hold(processor: Avx512, points: &[u64], b: &[u64]) -> bool;

    /// Replaces y by -y in the points for whose index `which` holds.
    fn negate(points: &mut [u64], which: impl Fn(usize) -> bool);

    /// Adds neighbours within each group of `counts[i]` wide points, again and again while there are `least` pairs or more.
    /// Returns the number of points that are left; they stand first, in the order of their groups, of which `counts` then has
    /// the sizes. `invert` replaces a plain coordinate, which is not zero, by its inverse, plain.
    ///
    /// # Errors
    /// No memory for what a level holds.
    fn add_in_pairs(
        processor: Avx512,
        scratch: &mut Self::Scratch,
        points: &mut [u64],
        counts: &mut [usize],
        least: usize,
        invert: &mut dyn FnMut(&mut [u64]),
    ) -> Result<usize, TryReserveError>;
}

macro_rules! group {
    ($(#[$doc:meta])* $name:ident, $prime:ty, $limbs:literal, $degree:literal, $words:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl Group for $name {
            const WORDS: usize = $words;

            type Scratch = Levels<$prime, $limbs, $degree>;

            fn widen(_: Avx512, points: &mut [u64]) {
                let (points, _) = points.as_chunks_mut();
                // SAFETY: there is an `Avx512` only where the processor has what the function needs.
                unsafe { points::scale::<$prime, $limbs, $degree, $words>(points, <$prime>::FROM_WORDS) }
            }

            fn narrow(_: Avx512, points: &mut [u64]) {
                let (points, _) = points.as_chunks_mut();
                // SAFETY: there is an `Avx512` only where the processor has what the function needs.
                unsafe { points::scale::<$prime, $limbs, $degree, $words>(points, <$prime>::TO_WORDS) }
            }

            fn hold(_: Avx512, points: &[u64], b: &[u64]) -> bool {
                let (points, _) = points.as_chunks();
                // SAFETY: there is an `Avx512` only where the processor has what the function needs.
                unsafe { points::hold::<$prime, $limbs, $degree, $words>(points, b) }
            }

            #[inline]
            fn negate(points: &mut [u64], which: impl Fn(usize) -> bool) {
                let (points, _) = points.as_chunks_mut::<$words>();
                for (i, point) in points.iter_mut().enumerate() {
                    for y in point[$words / 2..].as_chunks_mut().0 {
                        prime::negate(y, &<$prime>::MODULUS, which(i));
                    }
                }
            }

            fn add_in_pairs(
                _: Avx512,
                levels: &mut Self::Scratch,
                points: &mut [u64],
                counts: &mut [usize],
                least: usize,
                invert: &mut dyn FnMut(&mut [u64]),
            ) -> Result<usize, TryReserveError> {
                let (mut points, _) = points.as_chunks_mut::<$words>();
                levels.reserve(points.len())?;
                while counts.iter().map(|n| n / 2).sum::<usize>() >= least.max(1) {
                    // SAFETY: there is an `Avx512` only where the processor has what the function needs.
                    let left = unsafe { levels.add(points, counts, invert) };
                    points = &mut points[..left];
                }
                Ok(points.len())
            }
        }
    };
}
group!(
    /// G1 of BN254.
    Bn254G1, Bn254Fq, 5, 1, 8
);
group!(
    /// G2 of BN254.
    Bn254G2, Bn254Fq, 5, 2, 16
);
group!(
    /// G1 of BLS12-381.
    Bls12381G1, Bls12381Fq, 8, 1, 12
);
group!(
    /// G2 of BLS12-381.
    Bls12381G2, Bls12381Fq, 8, 2, 24
);
