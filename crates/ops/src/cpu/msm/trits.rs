//! Sums of points with factors -1, 0 and 1, several at once.
//!
//! A digit in the balanced form of base 3 is [`TRITS`] such factors. The points are added up by their digits first, and each of the
//! sums is then one over the digits there are: many sums for little more than one addition a point.

use super::buckets::{add_within_buckets, piece_of, sum_of_units, Sorted, Term};
use super::points::{self, Scratch};
use crate::cpu::simd;
use crate::{Group, Result};
use ark_ec::CurveGroup;

/// Sums that one digit a point makes.
pub const TRITS: u32 = 7;
/// The greatest digit: (3^7 - 1) / 2. The least is its negative.
pub const MOST: i32 = (3i32.pow(TRITS) - 1) / 2;

/// Factors of a digit that are summed apart from the others.
const LOWER: u32 = 3;

const OP: &str = "sums of trits";

/// Factor number `k` of a digit, which is the sum of its factors times 3^k.
pub fn trit(digit: i32, k: u32) -> i32 {
    // All digits are 0 or more with MOST added, and the factors then 0, 1 and 2.
    (digit + MOST) / 3i32.pow(k) % 3 - 1
}

/// Points that are summed again and again.
pub struct Points<G: Group>(points::Points<G>);

impl<G: Group> Points<G> {
    /// Those that `points` gives, `len` of them or fewer.
    ///
    /// # Errors
    /// Not enough memory.
    pub fn new(len: usize, points: impl Iterator<Item = <G::Ark as CurveGroup>::Affine>) -> Result<Self> {
        points::Points::of_affine(OP, simd::default(), len.min(Term::MAX_INDEX), points).map(Self)
    }

    /// For each k below [`TRITS`], the sum of the points with factor number k of their digits ([`trit`]). Digits are at most
    /// [`MOST`] in absolute value; the point without one does not count.
    ///
    /// # Errors
    /// A digit beyond; not enough memory.
    pub fn trit_sums(&self, mut digits: Vec<i32>) -> Result<Vec<G::Ark>> {
        if digits.len() > self.0.len() || digits.iter().any(|d| d.unsigned_abs() > MOST.unsigned_abs()) {
            let reason = format!("{} digits for {} points, expected at most {MOST}", digits.len(), self.0.len());
            return Err(crate::Error::invalid(OP, reason));
        }
        for (i, digit) in digits.iter_mut().enumerate() {
            if self.0.is_infinity(i) {
                *digit = 0;
            }
        }
        let (sums, digits) = add_by_digit(&self.0, &digits, MOST)?;
        // Once more by the lower and by the upper factors, of which there are few values.
        let unit = 3i32.pow(LOWER);
        let lower: Vec<i32> = digits.iter().map(|d| (d + MOST) % unit - unit / 2).collect();
        let upper: Vec<i32> = digits.iter().zip(&lower).map(|(d, lower)| (d - lower) / unit).collect();
        let mut all = Vec::with_capacity(TRITS as usize);
        for (part, trits) in [(lower, LOWER), (upper, TRITS - LOWER)] {
            let (sums, digits) = add_by_digit(&sums, &part, 3i32.pow(trits) / 2)?;
            for k in 0..trits {
                let factors = digits.iter().map(|&digit| trit(digit, k)).enumerate();
                let terms: Vec<_> = factors.filter(|(_, t)| *t != 0).map(|(i, t)| Term::new(i, t < 0)).collect();
                all.push(sum_of_units::<G>(&sums, &terms)?);
            }
        }
        Ok(all)
    }
}

/// Sums of the points by the absolute value of their digits, at most `most`, and the value of each; one value may have several. A
/// point of a negative digit is subtracted.
fn add_by_digit<G: Group>(
    points: &points::Points<G>,
    digits: &[i32],
    most: i32,
) -> Result<(points::Points<G>, Vec<i32>)> {
    let (mut sorted, mut scratch) = (Sorted::default(), Scratch::default());
    sorted.sort(digits, most as usize, |i| Term::new(i, false))?;
    let Sorted { terms, ends } = &sorted;
    let (mut sums, mut of_digit) = (Vec::new(), Vec::new());
    for start in (0..terms.len()).step_by(piece_of::<G>()) {
        let range = start..terms.len().min(start + piece_of::<G>());
        let first = add_within_buckets::<G>(points, terms, ends, range, &mut scratch)?;
        sums.extend_from_slice(&scratch.sums);
        for (digit, &count) in (first as i32..).zip(&scratch.counts) {
            of_digit.extend(std::iter::repeat_n(digit, count));
        }
    }
    Ok((points.alike(OP, &sums)?, of_digit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bls12_381, Bn254, Curve};
    use ark_ff::AdditiveGroup;

    #[test]
    fn digits_are_made_of_their_factors() {
        for digit in -MOST..=MOST {
            let factors: Vec<i32> = (0..TRITS).map(|k| trit(digit, k)).collect();
            assert!(factors.iter().all(|t| (-1..=1).contains(t)));
            assert_eq!(factors.iter().rev().fold(0, |sum, t| 3 * sum + t), digit);
        }
    }

    fn agrees_with_the_definition<G: Group>(len: usize) {
        let generator = <G::Ark as ark_ec::PrimeGroup>::generator();
        let mut multiples = vec![G::Ark::ZERO, generator, -generator];
        for i in 3..len {
            // Repetitions, opposites and infinities among them.
            multiples.push(if i % 10 < 7 { multiples[i - 1] + generator } else { multiples[i - 3] });
        }
        let affine = G::Ark::normalize_batch(&multiples);
        let points = Points::<G>::new(len, affine.iter().copied()).unwrap();
        for modulus in [1, 5, 2 * MOST as usize + 1] {
            let digits: Vec<i32> = (0..len).map(|i| (i * i % modulus) as i32 - MOST).collect();
            let sums = points.trit_sums(digits.clone()).unwrap();
            assert_eq!(sums.len(), TRITS as usize);
            for (k, sum) in (0..).zip(sums) {
                let expected = digits.iter().zip(&multiples).fold(G::Ark::ZERO, |sum, (&d, p)| match trit(d, k) {
                    0 => sum,
                    1 => sum + p,
                    _ => sum - p,
                });
                assert_eq!(sum, expected, "{len} points, digits modulo {modulus}, factor {k}");
            }
        }
    }

    #[test]
    fn sums_are_those_of_the_definition() {
        agrees_with_the_definition::<<Bn254 as Curve>::G1>(piece_of::<<Bn254 as Curve>::G1>() + 500);
        agrees_with_the_definition::<<Bn254 as Curve>::G2>(700);
        agrees_with_the_definition::<<Bls12_381 as Curve>::G1>(3);
    }

    #[test]
    fn digits_that_are_none_are_refused() {
        let points = Points::<<Bn254 as Curve>::G1>::new(1, [Default::default()].into_iter()).unwrap();
        assert!(points.trit_sums(vec![MOST]).is_ok() && points.trit_sums(vec![]).is_ok());
        for bad in [vec![MOST + 1], vec![-MOST - 1], vec![i32::MIN], vec![0, 0]] {
            assert!(points.trit_sums(bad).is_err());
        }
    }
}
