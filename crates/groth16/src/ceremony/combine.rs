//! Sums of few points with coefficients, most of them small.

use ark_ff::{AdditiveGroup, BigInteger, PrimeField};
use rayon::prelude::*;
use tandem_ops::{Curve, Group};

/// Bits of a digit, odd and signed: at the least distance at which two of them can follow each other.
const WIDTH: usize = 4;

/// A coefficient's digits from the lowest bit on, and the odd multiples of its point that they take.
struct Term<G: Group> {
    digits: Vec<i64>,
    /// 1, 3, 5 and so on times the point.
    multiples: Vec<G::Ark>,
}

impl<G: Group> Term<G> {
    /// `None` where the product is zero.
    fn new(value: <G::Curve as Curve>::Fr, point: &G::Point) -> Option<Self> {
        // The shorter of the two integers that stand for it: -1 is as good as 1.
        let (plus, minus) = (value.into_bigint(), (-value).into_bigint());
        let is_minus = minus < plus;
        let mut digits = if is_minus { minus } else { plus }.find_wnaf(WIDTH)?;
        if is_minus {
            digits.iter_mut().for_each(|digit| *digit = -*digit);
        }
        let largest = digits.iter().map(|digit| digit.unsigned_abs() as usize).max().filter(|d| *d > 0)?;
        let point = G::Ark::from(G::to_ark(point));
        let mut multiples = vec![point];
        if largest > 1 {
            let twice = point.double();
            while multiples.len() <= largest / 2 {
                multiples.push(multiples[multiples.len() - 1] + twice);
            }
        }
        Some(Self { digits, multiples })
    }
}

/// The sum of each coefficient times the point of its row. All products of a group are summed bit by bit, so that they share their doublings
/// (Straus).
pub(super) fn combine<G: Group>(terms: &[(u32, <G::Curve as Curve>::Fr)], points: &[G::Point]) -> G::Ark {
    /// So many that doublings do not count, so few that their multiples stay in the cache.
    const GROUP: usize = 64;
    let of_group = |terms: &[(u32, <G::Curve as Curve>::Fr)]| {
        let term = |&(row, value): &(u32, _)| Term::<G>::new(value, &points[row as usize]);
        let terms: Vec<Term<G>> = terms.iter().filter_map(term).collect();
        let longest = terms.iter().map(|term| term.digits.len()).max().unwrap_or(0);
        let mut sum = G::Ark::ZERO;
        for bit in (0..longest).rev() {
            sum.double_in_place();
            for Term { digits, multiples } in &terms {
                match digits.get(bit) {
                    Some(&digit) if digit > 0 => sum += multiples[digit.unsigned_abs() as usize / 2],
                    Some(&digit) if digit < 0 => sum -= multiples[digit.unsigned_abs() as usize / 2],
                    _ => {}
                }
            }
        }
        sum
    };
    match terms.len() {
        0 => G::Ark::ZERO,
        1..=GROUP => of_group(terms),
        // The constant may stand in every row.
        _ => terms.par_chunks(GROUP).map(of_group).reduce(|| G::Ark::ZERO, |a, b| a + b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ec::{CurveGroup, PrimeGroup};
    use ark_ff::{Field, UniformRand};
    use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};
    use tandem_ops::{Bls12_381, Bn254};

    fn check<C: Curve, G: Group<Curve = C>>() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let ark: Vec<_> = (0..40).map(|_| (G::Ark::generator() * C::Fr::rand(&mut rng)).into_affine()).collect();
        let points: Vec<_> = ark.iter().map(G::from_ark).collect();
        let one = C::Fr::ONE;
        let special: Vec<C::Fr> = (0..40_u64).flat_map(|i| [C::Fr::from(i), -C::Fr::from(i)]).collect();
        let half = C::Fr::from(2_u64).inverse().unwrap();
        for count in [0, 1, 2, 3, 63, 64, 65, 200] {
            let value = |i: usize| match i % 4 {
                0 => C::Fr::rand(&mut ChaCha8Rng::seed_from_u64(i as u64)),
                1 => special[i % special.len()],
                2 => [one, -one, half, half - one, -half][i % 5],
                _ => C::Fr::from(u64::MAX - i as u64),
            };
            // Rows come more than once, and not in order.
            let terms: Vec<_> = (0..count).map(|i| ((i * 7 % 40) as u32, value(i))).collect();
            let naive = terms.iter().map(|(row, value)| ark[*row as usize] * value).fold(G::Ark::ZERO, |a, b| a + b);
            assert_eq!(combine::<G>(&terms, &points), naive, "{count} terms");
        }
        let cancelled = [(3, half), (3, -half), (4, C::Fr::ZERO)];
        assert_eq!(combine::<G>(&cancelled, &points), G::Ark::ZERO);
    }

    #[test]
    fn sums_are_those_of_single_products() {
        check::<Bn254, <Bn254 as Curve>::G1>();
        check::<Bn254, <Bn254 as Curve>::G2>();
        check::<Bls12_381, <Bls12_381 as Curve>::G1>();
        check::<Bls12_381, <Bls12_381 as Curve>::G2>();
    }
}
