//! Fields of tables, and of the challenges that they are bound to.

use crate::field::GoldilocksConfig;
use crate::{Curve, Goldilocks, Goldilocks2, Mont, NttField, Wire};
use ark_ff::{AdditiveGroup, Field, Fp2, Fp2Config, PrimeField, SmallFp, SmallFpConfig};

/// A field of tables with the field of their challenges, as a type.
///
/// A prover who cheats gets through where a challenge is one of d roots: k d of as many elements as challenges have over k rounds. Of a curve's
/// scalar field with 2^254 that is nothing, of Goldilocks with 2^64 it is 2^-57 for k = 24, d = 4, and he may try as often as he likes where challenges
/// are hashes. Challenges of Goldilocks are of its quadratic extension, as in plonky2 and plonky3: 2^-121.
pub trait SumcheckField: NttField {
    /// A challenge on the wire, and an element of a table that is bound to one.
    type Challenge: Wire + Default;
    /// Its value in arkworks.
    type Extension: Field + Copy;

    /// The element of the challenges' field that `x` is.
    fn lift(x: Self::Ark) -> Self::Extension;
    /// `r` times an element of a table.
    fn scaled(r: Self::Extension, x: Self::Ark) -> Self::Extension;
    /// The wire form of `x`.
    fn challenge(x: Self::Extension) -> Self::Challenge;
    /// The element that has this wire form, which must be below the modulus.
    fn extension(x: Self::Challenge) -> Self::Extension;
    /// The same of any wire form; `None` if it is not below the modulus.
    fn checked(x: Self::Challenge) -> Option<Self::Extension>;
}

impl<C: Curve> SumcheckField for C {
    type Challenge = Mont;
    type Extension = C::Fr;

    #[inline]
    fn lift(x: C::Fr) -> C::Fr {
        x
    }
    #[inline]
    fn scaled(r: C::Fr, x: C::Fr) -> C::Fr {
        r * x
    }
    #[inline]
    fn challenge(x: C::Fr) -> Mont {
        C::mont(x)
    }
    #[inline]
    fn extension(x: Mont) -> C::Fr {
        C::from_mont(x)
    }
    fn checked(x: Mont) -> Option<C::Fr> {
        (ark_ff::BigInt(x.0) < C::Fr::MODULUS).then(|| C::from_mont(x))
    }
}

/// The extension of Goldilocks by a root of X^2 = 7 in arkworks. 7 generates the field's group, so that it is no square.
#[derive(Debug)]
pub struct Goldilocks2Config;

impl Fp2Config for Goldilocks2Config {
    type Fp = SmallFp<GoldilocksConfig>;
    const NONRESIDUE: Self::Fp = GoldilocksConfig::GENERATOR;
    /// 7^((p - 1) / 2) = -1.
    const FROBENIUS_COEFF_FP2_C1: &[Self::Fp] = &[GoldilocksConfig::ONE, GoldilocksConfig::NEG_ONE];
}

impl SumcheckField for Goldilocks {
    type Challenge = Goldilocks2;
    type Extension = Fp2<Goldilocks2Config>;

    #[inline]
    fn lift(x: Self::Ark) -> Self::Extension {
        Fp2::new(x, Self::Ark::ZERO)
    }
    #[inline]
    fn scaled(r: Self::Extension, x: Self::Ark) -> Self::Extension {
        Fp2::new(r.c0 * x, r.c1 * x)
    }
    #[inline]
    fn challenge(x: Self::Extension) -> Goldilocks2 {
        Goldilocks2([Goldilocks::element(x.c0).0, Goldilocks::element(x.c1).0])
    }
    #[inline]
    fn extension(x: Goldilocks2) -> Self::Extension {
        let [c0, c1] = x.0.map(|c| Goldilocks::value(Goldilocks(c)));
        Fp2::new(c0, c1)
    }
    fn checked(x: Goldilocks2) -> Option<Self::Extension> {
        x.0.iter().all(|&c| c < GoldilocksConfig::MODULUS).then(|| Self::extension(x))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bls12_381, Bn254};
    use ark_ff::UniformRand;
    use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};

    fn challenges_round_trip<F: SumcheckField>() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for _ in 0..20 {
            let (r, x) = (F::Extension::rand(&mut rng), F::Ark::rand(&mut rng));
            assert_eq!(F::checked(F::challenge(r)), Some(r));
            assert_eq!(F::extension(F::challenge(r)), r);
            assert_eq!(F::scaled(r, x), r * F::lift(x));
        }
        assert_eq!(F::challenge(F::Extension::ZERO), F::Challenge::default());
    }

    #[test]
    fn challenges_have_a_wire_form() {
        challenges_round_trip::<Bn254>();
        challenges_round_trip::<Bls12_381>();
        challenges_round_trip::<Goldilocks>();
    }

    #[test]
    fn what_is_not_below_the_modulus_is_no_challenge() {
        const P: u64 = GoldilocksConfig::MODULUS;
        for (x, is_one) in [([P - 1, P - 1], true), ([P, 0], false), ([0, P], false), ([u64::MAX, 1], false)] {
            assert_eq!(Goldilocks::checked(Goldilocks2(x)).is_some(), is_one, "{x:?}");
        }
        fn curve<C: Curve>() {
            let p = C::Fr::MODULUS.0;
            let below = [p[0] - 1, p[1], p[2], p[3]];
            assert!(C::checked(Mont(below)).is_some());
            assert!(C::checked(Mont(p)).is_none() && C::checked(Mont([u64::MAX; 4])).is_none());
        }
        curve::<Bn254>();
        curve::<Bls12_381>();
    }

    /// Against products in 128 bits: (a + b X)(c + d X) = a c + 7 b d + (a d + b c) X.
    #[test]
    fn the_extension_is_by_a_root_of_seven() {
        let p = u128::from(GoldilocksConfig::MODULUS);
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        for _ in 0..100 {
            let [a, b, c, d] = std::array::from_fn(|_| u128::from(u64::rand(&mut rng)) % p);
            let of = |x: u128, y: u128| Goldilocks::extension(Goldilocks2([x as u64, y as u64]));
            let product = Goldilocks::challenge(of(a, b) * of(c, d));
            let expected = [(a * c % p + 7 * (b * d % p)) % p, (a * d % p + b * c % p) % p];
            assert_eq!(product.0.map(u128::from), expected);
        }
    }
}
