//! Fields that transforms are over: the scalar fields of the curves, and two small ones.

use crate::wire::{BabyBear, Goldilocks, Wire};
use ark_ff::{AdditiveGroup, FftField, PrimeField, SmallFp, SmallFpConfig};

/// Names a field at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldId {
    /// The scalar field of BN254.
    Bn254,
    /// The scalar field of BLS12-381.
    Bls12_381,
    /// 2^64 - 2^32 + 1.
    Goldilocks,
    /// 15 * 2^27 + 1.
    BabyBear,
}

impl std::fmt::Display for FieldId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            FieldId::Bn254 => "bn254",
            FieldId::Bls12_381 => "bls12-381",
            FieldId::Goldilocks => "Goldilocks",
            FieldId::BabyBear => "BabyBear",
        })
    }
}

/// A field with roots of unity of order 2^k, as a type. A curve stands for its scalar field.
pub trait NttField: Copy + std::fmt::Debug + Send + Sync + 'static {
    /// Its name.
    const FIELD: FieldId;
    /// Its elements on the wire.
    type Element: Wire + Default;
    /// Its elements in arkworks.
    type Ark: PrimeField;

    /// The wire form of `x`.
    fn element(x: Self::Ark) -> Self::Element;
    /// The element that has this wire form.
    fn value(x: Self::Element) -> Self::Ark;
    /// The primitive 2^`log_n`-th root of unity that transforms use, the square of the next. `None` above the
    /// 2-adicity.
    fn root_of_unity(log_n: u32) -> Option<Self::Ark>;
    /// Its arithmetic eight at a time, where there is one.
    fn simd() -> Option<&'static dyn tandem_field_simd::Field> {
        None
    }
}

pub use small::{BabyBearConfig, GoldilocksConfig};

/// The small fields in arkworks.
mod small {
    // What the derive makes is not documented.
    #![allow(missing_docs)]
    use ark_ff::SmallFpConfig;

    #[derive(Debug, SmallFpConfig)]
    #[modulus = "18446744069414584321"]
    #[generator = "7"]
    pub struct GoldilocksConfig;

    #[derive(Debug, SmallFpConfig)]
    #[modulus = "2013265921"]
    #[generator = "31"]
    pub struct BabyBearConfig;
}

/// The root of order 2^`log_n` below arkworks's of the highest order, which is the generator's power.
fn root<F: FftField>(log_n: u32) -> Option<F> {
    let squarings = F::TWO_ADICITY.checked_sub(log_n)?;
    Some((0..squarings).fold(F::TWO_ADIC_ROOT_OF_UNITY, |w, _| w.square()))
}

impl NttField for Goldilocks {
    const FIELD: FieldId = FieldId::Goldilocks;
    type Element = Goldilocks;
    type Ark = SmallFp<GoldilocksConfig>;

    #[inline]
    fn element(x: Self::Ark) -> Goldilocks {
        Goldilocks(x.into_bigint().0[0])
    }
    #[inline]
    fn value(x: Goldilocks) -> Self::Ark {
        SmallFp::new(x.0)
    }
    /// 7^((p-1)/2^log_n), as in Plonky3.
    fn root_of_unity(log_n: u32) -> Option<Self::Ark> {
        root(log_n)
    }
}

impl NttField for BabyBear {
    const FIELD: FieldId = FieldId::BabyBear;
    type Element = BabyBear;
    type Ark = SmallFp<BabyBearConfig>;

    // arkworks takes R = 2^31, the wire 2^32.
    #[inline]
    fn element(x: Self::Ark) -> BabyBear {
        BabyBear(x.double().value)
    }
    #[inline]
    fn value(x: BabyBear) -> Self::Ark {
        let x = x.0 % BabyBearConfig::MODULUS;
        SmallFp::from_raw((if x & 1 == 1 { x + BabyBearConfig::MODULUS } else { x }) >> 1)
    }
    /// 31^((p-1)/2^log_n), as in Plonky3.
    fn root_of_unity(log_n: u32) -> Option<Self::Ark> {
        root(log_n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bls12_381, Bn254};
    use ark_ff::{Field, UniformRand};
    use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};

    fn elements_round_trip_and_roots_are_primitive<F: NttField>() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for x in [F::Ark::ZERO, F::Ark::ONE, -F::Ark::ONE, F::Ark::rand(&mut rng), F::Ark::rand(&mut rng)] {
            assert_eq!(F::value(F::element(x)), x);
        }
        assert_eq!(F::element(F::Ark::ZERO), F::Element::default());
        let s = F::Ark::TWO_ADICITY;
        assert_eq!(F::root_of_unity(s + 1), None);
        assert_eq!(F::root_of_unity(0), Some(F::Ark::ONE));
        for k in 1..=s {
            let w = F::root_of_unity(k).unwrap();
            assert_eq!(w.pow([1 << (k - 1)]), -F::Ark::ONE, "primitive 2^{k}-th root");
            assert_eq!(F::root_of_unity(k - 1), Some(w * w));
        }
    }

    #[test]
    fn all_fields() {
        elements_round_trip_and_roots_are_primitive::<Bn254>();
        elements_round_trip_and_roots_are_primitive::<Bls12_381>();
        elements_round_trip_and_roots_are_primitive::<Goldilocks>();
        elements_round_trip_and_roots_are_primitive::<BabyBear>();
    }

    /// Against products in 128 bits: neither arkworks' reduction nor the wire form is taken on trust.
    #[test]
    fn small_fields_multiply_integers() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let (p, q) = (u128::from(GoldilocksConfig::MODULUS), u64::from(BabyBearConfig::MODULUS));
        for i in 0..1000u64 {
            let mut draw = || u64::rand(&mut rng);
            let edges = [0, 1, 0xffff_ffff, 1 << 32, GoldilocksConfig::MODULUS - 1];
            let a = if i < 25 { edges[i as usize % 5] } else { draw() % GoldilocksConfig::MODULUS };
            let b = if i < 25 { edges[i as usize / 5] } else { draw() % GoldilocksConfig::MODULUS };
            let product = Goldilocks::value(Goldilocks(a)) * Goldilocks::value(Goldilocks(b));
            assert_eq!(u128::from(Goldilocks::element(product).0), u128::from(a) * u128::from(b) % p);
            // In Montgomery form, a b 2^32 of a 2^32 and b 2^32.
            let (a, b) = (a % q, b % q);
            let form = |x: u64| BabyBear(((x << 32) % q) as u32);
            let product = BabyBear::value(form(a)) * BabyBear::value(form(b));
            assert_eq!(BabyBear::element(product), form(a * b % q));
        }
    }

    /// The roots of the highest order that Plonky3 has.
    #[test]
    fn roots_are_those_of_plonky3() {
        let root = Goldilocks::root_of_unity(32).map(Goldilocks::element);
        assert_eq!(root, Some(Goldilocks(1_753_635_133_440_165_772)));
        assert_eq!(BabyBear::root_of_unity(27).map(|w| w.into_bigint().0[0]), Some(0x1a42_7a41));
    }
}
