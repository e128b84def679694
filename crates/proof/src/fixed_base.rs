//! Many multiples of one point.
//!
//! A scalar is cut into signed digits of `bits` bits; a table holds the multiples of every window's power of the point,
//! so a product is one addition a window. The additions are affine and share their inversions over a block of
//! products: six multiplications each where a mixed addition takes eleven.

use crate::{Progress, Result};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{AdditiveGroup, Field, PrimeField};
use rayon::prelude::*;
use tandem_ops::{memory, Curve, Group};

/// What memory is taken for, in messages.
const OP: &str = "setup";

type Base<G> = <<G as Group>::Ark as CurveGroup>::BaseField;
type Fr<G> = <<G as Group>::Curve as Curve>::Fr;

/// Products that share an inversion: so many that it does not count, so few that they stay in the cache.
const BLOCK: usize = 1024;

/// The multiples of a point.
pub struct Table<G: Group> {
    bits: u32,
    /// `windows[w][d - 1]` = d * 2^(bits * w) * point, for d from 1 to 2^(bits - 1).
    windows: Vec<Vec<(Base<G>, Base<G>)>>,
}

/// The number of digits that scalars of `scalar_bits` bits have, one more for the last carry.
fn digits(scalar_bits: u32, bits: u32) -> u32 {
    (scalar_bits + 1).div_ceil(bits)
}

/// The window that makes `count` products cheapest, by additions: an entry of the table costs about four of a product.
fn window(count: usize, scalar_bits: u32) -> u32 {
    let cost = |bits: &u32| u64::from(digits(scalar_bits, *bits)) * (count as u64 + (4 << (bits - 1)));
    (2..=16).min_by_key(cost).unwrap_or(8)
}

impl<G: Group> Table<G> {
    /// The bytes of a table for about `count` products.
    pub fn bytes(count: usize) -> u64 {
        let scalar_bits = Fr::<G>::MODULUS_BIT_SIZE;
        let bits = window(count, scalar_bits);
        (u64::from(digits(scalar_bits, bits)) * size_of::<(Base<G>, Base<G>)>() as u64) << (bits - 1)
    }

    /// A table of the multiples of `point`, which is not infinity, for about `count` products.
    ///
    /// # Errors
    /// Not enough memory.
    pub fn new(point: G::Ark, count: usize) -> Result<Self> {
        let scalar_bits = Fr::<G>::MODULUS_BIT_SIZE;
        let bits = window(count, scalar_bits);
        let mut bases = vec![point];
        for _ in 1..digits(scalar_bits, bits) {
            let mut next = bases[bases.len() - 1];
            for _ in 0..bits {
                next.double_in_place();
            }
            bases.push(next);
        }
        let bases = G::Ark::normalize_batch(&bases);
        /// Multiples that are made affine at once.
        const PIECE: usize = 1 << 10;
        let window = |base: &<G::Ark as CurveGroup>::Affine| -> Result<Vec<(Base<G>, Base<G>)>> {
            let mut multiple = G::Ark::ZERO;
            let len = 1 << (bits - 1);
            let mut row = memory::reserve(OP, len)?;
            for at in (0..len).step_by(PIECE) {
                let piece: Vec<_> = (at..len.min(at + PIECE))
                    .map(|_| {
                        multiple += base;
                        multiple
                    })
                    .collect();
                // No entry is infinity: the group's order is a prime above 2^bits.
                row.extend(G::Ark::normalize_batch(&piece).iter().filter_map(AffineRepr::xy));
            }
            Ok(row)
        };
        let windows = bases.par_iter().map(window).collect::<Result<_>>()?;
        Ok(Self { bits, windows })
    }

    /// The products of the point with `scalars`, handed on in order and in pieces of bounded size.
    ///
    /// # Errors
    /// Those of `out`; [`crate::Error::Interrupted`].
    pub fn multiply(
        &self,
        scalars: &[Fr<G>],
        progress: &dyn Progress,
        mut out: impl FnMut(&[G::Point]) -> Result<()>,
    ) -> Result<()> {
        /// 2^16 points of 64 to 192 bytes.
        const PIECE: usize = 1 << 16;
        for piece in scalars.chunks(PIECE) {
            if progress.cancelled() {
                return Err(crate::Error::Interrupted);
            }
            let points: Vec<Vec<G::Point>> = piece.par_chunks(BLOCK).map(|block| self.block(block)).collect();
            out(&points.concat())?;
            progress.advance(piece.len() as u64);
        }
        Ok(())
    }

    fn block(&self, scalars: &[Fr<G>]) -> Vec<G::Point> {
        let n = scalars.len();
        let digits = self.signed_digits(scalars);
        let mut sums: Vec<Option<(Base<G>, Base<G>)>> = vec![None; n];
        let mut slopes: Vec<Slope<Base<G>>> = Vec::with_capacity(n);
        let mut products = Vec::with_capacity(n);
        for (window, digits) in self.windows.iter().zip(digits.chunks(n)) {
            slopes.clear();
            for (i, &digit) in digits.iter().enumerate().filter(|(_, d)| **d != 0) {
                let (x, y) = window[digit.unsigned_abs() as usize - 1];
                let y = if digit < 0 { -y } else { y };
                match sums[i] {
                    None => sums[i] = Some((x, y)),
                    Some((sx, sy)) if sx != x => {
                        slopes.push(Slope { at: i, x, numerator: y - sy, denominator: x - sx });
                    }
                    // The tangent; y is not zero in a group of odd order.
                    Some((sx, sy)) if sy == y => {
                        let xx = sx.square();
                        slopes.push(Slope { at: i, x, numerator: xx.double() + xx, denominator: sy.double() });
                    }
                    Some(_) => sums[i] = None,
                }
            }
            invert_denominators(&mut slopes, &mut products);
            for slope in &slopes {
                if let Some((sx, sy)) = &mut sums[slope.at] {
                    let l = slope.numerator * slope.denominator;
                    let x = l.square() - *sx - slope.x;
                    *sy = l * (*sx - x) - *sy;
                    *sx = x;
                }
            }
        }
        let zero = <<G::Ark as CurveGroup>::Affine as AffineRepr>::zero();
        sums.iter().map(|sum| G::from_ark(&sum.map_or(zero, |(x, y)| G::from_xy(x, y)))).collect()
    }

    /// The digits of all scalars, window by window; each is from -2^(bits-1) to 2^(bits-1).
    fn signed_digits(&self, scalars: &[Fr<G>]) -> Vec<i32> {
        let (n, bits) = (scalars.len(), self.bits as usize);
        let mut digits = vec![0; n * self.windows.len()];
        for (i, scalar) in scalars.iter().enumerate() {
            let integer = scalar.into_bigint();
            let limbs: &[u64] = integer.as_ref();
            let mut carry = 0;
            for w in 0..self.windows.len() {
                let (limb, shift) = (w * bits / 64, w * bits % 64);
                let low = limbs.get(limb).map_or(0, |l| l >> shift);
                // Shifted in two steps: by 64 bits where shift is 0.
                let high = limbs.get(limb + 1).map_or(0, |l| (l << 1) << (63 - shift));
                let mut digit = ((low | high) & ((1 << bits) - 1)) as i32 + carry;
                carry = i32::from(digit > 1 << (bits - 1));
                digit -= carry << bits;
                digits[w * n + i] = digit;
            }
        }
        digits
    }
}

/// A line through a sum and what is added to it.
struct Slope<F> {
    at: usize,
    x: F,
    numerator: F,
    denominator: F,
}

/// Replaces all denominators, none of which is zero, by their inverses.
fn invert_denominators<F: Field>(slopes: &mut [Slope<F>], products: &mut Vec<F>) {
    products.clear();
    let mut product = F::ONE;
    for slope in slopes.iter() {
        products.push(product);
        product *= slope.denominator;
    }
    let mut inverse = product.inverse().unwrap_or(F::ZERO);
    for (slope, before) in slopes.iter_mut().zip(products).rev() {
        let own = inverse * *before;
        inverse *= slope.denominator;
        slope.denominator = own;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Silent;
    use ark_ec::PrimeGroup;
    use ark_ff::UniformRand;
    use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};
    use tandem_ops::{Bls12_381, Bn254, G1, G2};

    fn products<G: Group>(table: &Table<G>, scalars: &[Fr<G>]) -> Vec<G::Point> {
        let mut all = Vec::new();
        table
            .multiply(scalars, &Silent, |points| {
                all.extend_from_slice(points);
                Ok(())
            })
            .unwrap();
        all
    }

    fn agrees<G: Group>() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let point = G::Ark::rand(&mut rng);
        for count in [1, 300, 5000] {
            let table = Table::<G>::new(point, count).unwrap();
            let one = Fr::<G>::from(1u64);
            let half = Fr::<G>::from(2u64).pow([u64::from(table.bits) - 1]);
            let mut scalars = vec![Fr::<G>::from(0u64), one, -one, -one - one, half, half + one, half + half, -half];
            scalars.extend((0..count.min(40)).map(|_| Fr::<G>::rand(&mut rng)));
            let expected: Vec<_> = scalars.iter().map(|k| G::from_ark(&(point * k).into_affine())).collect();
            assert_eq!(products(&table, &scalars), expected, "{count} products");
            assert!(products(&table, &[]).is_empty());
        }
    }

    #[test]
    fn products_are_those_of_double_and_add() {
        agrees::<G1<Bn254>>();
        agrees::<G2<Bn254>>();
        agrees::<G1<Bls12_381>>();
        agrees::<G2<Bls12_381>>();
    }

    #[test]
    fn sums_that_meet_themselves_and_their_negatives_are_right() {
        // A table whose second window repeats the first, and one where it is its negative: no real table makes a
        // sum meet its own point or the opposite one at its second window.
        let g = <G1<Bn254> as Group>::Ark::generator();
        for sign in [1i64, -1] {
            let mut table = Table::<G1<Bn254>>::new(g, 1).unwrap();
            table.windows[1] = table.windows[0].iter().map(|&(x, y)| (x, if sign < 0 { -y } else { y })).collect();
            let one_one = Fr::<G1<Bn254>>::from(1 + (1u64 << table.bits));
            let expected = if sign < 0 { <G1<Bn254> as Group>::Ark::ZERO } else { g + g };
            assert_eq!(products(&table, &[one_one]), [G1::<Bn254>::from_ark(&expected.into_affine())]);
        }
    }

    #[test]
    fn larger_jobs_take_larger_windows() {
        assert!(window(1, 254) < window(1 << 10, 254) && window(1 << 10, 254) < window(1 << 22, 254));
    }
}
