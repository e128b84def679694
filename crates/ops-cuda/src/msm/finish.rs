//! The end of a sum, on the host: what the buckets of each set came to, put together.

use super::plan::Shape;
use ark_ff::AdditiveGroup;
use tandem_ops::Group;

/// The sum of a shape's sums (`tandem_msm_sum_args.sums`), by Horner's rule from the highest bit of the highest place. Bucket set j
/// has the weight 2^(step_bits * j). In it bucket k has k + 1 times its points, so that the sum of all buckets counts once and that of
/// bit b 2^b times; if digits are odd it has 2 k + 1 times its points, and bits count twice as much.
///
/// # Panics
/// If there are not as many sums as the shape has.
pub(super) fn finish<G: Group>(shape: &Shape, sums: &[[G::Point; 2]]) -> G::Ark {
    let (step, bits, odd) = (shape.step_bits, shape.bucket_bits(), u32::from(shape.is_odd()));
    let mut result = G::Ark::ZERO;
    for weight in (0..step * (shape.bucket_sets - 1) + bits + odd).rev() {
        result.double_in_place();
        for (place, of_set) in (0u32..).step_by(step as usize).zip(sums.chunks_exact(bits as usize + 1)) {
            if let Some(bit) = weight.checked_sub(place + odd).filter(|bit| *bit < bits) {
                result += G::from_xyzz(&of_set[1 + bit as usize]);
            }
            if weight == place {
                result += G::from_xyzz(&of_set[0]);
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
        for (window_bits, step_bits, places, bucket_sets) in
            [(2, 2, 5u32, 1), (5, 5, 4, 4), (4, 4, 7, 3), (3, 1, 9, 1), (6, 1, 8, 8), (5, 1, 9, 2)]
        {
            let levels = places.div_ceil(bucket_sets);
            let shape = Shape {
                scalars: 1,
                window_bits,
                windows: places,
                step_bits,
                places,
                bucket_sets,
                levels,
                index_bits: 0,
            };
            let of_set = 1u64 << shape.bucket_bits();
            let mut expected = C::Fr::from(0u64);
            let mut sums = Vec::new();
            for set in 0..bucket_sets {
                let buckets: Vec<C::Fr> = (0..of_set)
                    .map(|_| C::Fr::from(if rng.next_u32() % 3 == 0 { 0 } else { rng.next_u64() }))
                    .collect();
                let place = C::Fr::from(2u64).pow([u64::from(step_bits * set)]);
                for (k, bucket) in (0..).zip(&buckets) {
                    let times = if shape.is_odd() { 2 * k + 1 } else { k + 1 };
                    expected += place * C::Fr::from(times) * bucket;
                }
                let mut push = |has: &dyn Fn(u64) -> bool| {
                    let sum: C::Fr = (0..).zip(&buckets).filter(|(k, _)| has(*k)).map(|(_, bucket)| *bucket).sum();
                    sums.push(xyzz::<G>(G::Ark::generator() * sum, BaseField::<G>::rand(&mut rng)));
                };
                push(&|_| true);
                (0..shape.bucket_bits()).for_each(|bit| push(&|k| k >> bit & 1 == 1));
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
