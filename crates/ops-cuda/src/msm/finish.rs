//! The end of a sum, on the host: what the buckets of each set came to, put together.

use super::plan::Shape;
use ark_ff::AdditiveGroup;
use tandem_ops::Group;

/// The sum of a shape's sums (`tandem_msm_sum_args.sums`), by Horner's rule from the highest bit of the highest place. Bucket set j
/// has the weight 2^(step_bits * j), and its part of the buckets may have some powers of two more. There bucket k has k + 1 times its
/// points, so that the sum of all buckets counts once and that of bit b 2^b times; if digits are odd it has 2 k + 1 times its points, and
/// bits count twice as much.
///
/// # Panics
/// If there are not as many sums as the shape has.
pub(super) fn finish<G: Group>(shape: &Shape, sums: &[[G::Point; 2]]) -> G::Ark {
    assert_eq!(sums.len(), shape.sums());
    let mut result = G::Ark::ZERO;
    for weight in (0..shape.step_bits * (shape.bucket_sets - 1) + shape.window_bits).rev() {
        result.double_in_place();
        let mut rest = sums;
        for part in shape.parts() {
            for set in 0..part.sets {
                let (of_set, others) = rest.split_at(part.bits as usize + 1);
                let least = shape.step_bits * set + part.shift;
                if let Some(bit) = weight.checked_sub(least + u32::from(part.is_odd)).filter(|bit| *bit < part.bits) {
                    result += G::from_xyzz(&of_set[1 + bit as usize]);
                }
                if weight == least {
                    result += G::from_xyzz(&of_set[0]);
                }
                rest = others;
            }
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ec::{AffineRepr, CurveGroup, PrimeGroup};
    use ark_ff::{Field, UniformRand};
    use rand_chacha::rand_core::{RngCore, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use tandem_ops::curve::BaseField;
    use tandem_ops::{Bls12_381, Bn254, Curve};

    /// With zz = t^2 and zzz = t^3.
    fn xyzz<G: Group>(point: G::Ark, t: BaseField<G>) -> [G::Point; 2] {
        let wire = |x, y| G::from_ark(&G::from_xy(x, y));
        match point.into_affine().xy() {
            Some((x, y)) => [wire(x * t.square(), y * t * t.square()), wire(t.square(), t * t.square())],
            // Whatever x and y are.
            None => [wire(t, t), bytemuck::Zeroable::zeroed()],
        }
    }

    /// Against buckets of known logarithms, each with its multiple of its points.
    fn sums_of_buckets<C: Curve, G: Group<Curve = C>>() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for (window_bits, step_bits, places, bucket_sets, powers) in [
            (2, 2, 5u32, 1, 1),
            (5, 5, 4, 4, 1),
            (4, 4, 7, 3, 1),
            (3, 1, 9, 1, 1),
            (6, 1, 8, 8, 1),
            (5, 1, 9, 2, 1),
            (4, 4, 7, 1, 2),
            (7, 7, 3, 1, 3),
            (8, 8, 3, 1, 6),
        ] {
            let levels = places.div_ceil(bucket_sets) * powers;
            let shape = Shape {
                scalars: 1,
                window_bits,
                windows: places,
                step_bits,
                window_positions: places,
                bucket_sets,
                table_levels: levels,
                levels_per_window: powers,
                carry_free_windows: 0,
                index_bits: 0,
            };
            let mut expected = C::Fr::from(0u64);
            let mut sums = Vec::new();
            for (part, set) in shape.parts().flat_map(|part| (0..part.sets).map(move |set| (part, set))) {
                let buckets: Vec<C::Fr> = (0..1u64 << part.bits)
                    .map(|_| C::Fr::from(if rng.next_u32() % 3 == 0 { 0 } else { rng.next_u64() }))
                    .collect();
                let place = C::Fr::from(2u64).pow([u64::from(step_bits * set)]);
                for (k, bucket) in (0..).zip(&buckets) {
                    // One of digits that are odd, of all up to half a window, or of those that 2^powers divides.
                    let digit = if shape.is_odd() || powers > 1 && sums.len() < window_bits as usize - 1 {
                        2 * k + 1
                    } else {
                        (k + 1) << if powers > 1 { powers } else { 0 }
                    };
                    expected += place * C::Fr::from(digit) * bucket;
                }
                let mut push = |has: &dyn Fn(u64) -> bool| {
                    let sum: C::Fr = (0..).zip(&buckets).filter(|(k, _)| has(*k)).map(|(_, bucket)| *bucket).sum();
                    sums.push(xyzz::<G>(G::Ark::generator() * sum, BaseField::<G>::rand(&mut rng)));
                };
                push(&|_| true);
                (0..part.bits).for_each(|bit| push(&|k| k >> bit & 1 == 1));
            }
            assert_eq!(sums.len(), shape.sums());
            assert_eq!(finish::<G>(&shape, &sums), G::Ark::generator() * expected, "{shape:?}");
            let nothing = vec![xyzz::<G>(G::Ark::ZERO, BaseField::<G>::rand(&mut rng)); sums.len()];
            assert_eq!(finish::<G>(&shape, &nothing), G::Ark::ZERO);
        }
    }

    #[test]
    fn buckets_count_as_often_as_their_digit_says() {
        sums_of_buckets::<Bn254, <Bn254 as Curve>::G1>();
        sums_of_buckets::<Bn254, <Bn254 as Curve>::G2>();
        sums_of_buckets::<Bls12_381, <Bls12_381 as Curve>::G1>();
        sums_of_buckets::<Bls12_381, <Bls12_381 as Curve>::G2>();
    }
}
