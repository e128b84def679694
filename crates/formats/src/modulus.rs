//! The moduli of both curves as limbs, and the checks that values stay below them.

use tandem_ops::CurveId;

const BN254_P: [u64; 4] = [0x3c208c16d87cfd47, 0x97816a916871ca8d, 0xb85045b68181585d, 0x30644e72e131a029];
const BN254_R: [u64; 4] = [0x43e1f593f0000001, 0x2833e84879b97091, 0xb85045b68181585d, 0x30644e72e131a029];
const BLS12_381_P: [u64; 6] = [
    0xb9feffffffffaaab,
    0x1eabfffeb153ffff,
    0x6730d2a0f6b0f624,
    0x64774b84f38512bf,
    0x4b1ba7b6434bacd7,
    0x1a0111ea397fe69a,
];
const BLS12_381_R: [u64; 4] = [0xffffffff00000001, 0x53bda402fffe5bfe, 0x3339d80809a1d805, 0x73eda753299d7d48];

/// The modulus of the coordinates, least significant limb first.
pub(crate) const fn base(curve: CurveId) -> &'static [u64] {
    match curve {
        CurveId::Bn254 => &BN254_P,
        CurveId::Bls12_381 => &BLS12_381_P,
    }
}

/// The modulus of the scalars, which is the order of both groups.
pub(crate) const fn scalar(curve: CurveId) -> &'static [u64; 4] {
    match curve {
        CurveId::Bn254 => &BN254_R,
        CurveId::Bls12_381 => &BLS12_381_R,
    }
}

/// The curve whose coordinates have this modulus (little-endian bytes).
pub(crate) fn curve_of_base(bytes: &[u8]) -> Option<CurveId> {
    CurveId::ALL.iter().copied().find(|&c| bytemuck::cast_slice::<u64, u8>(base(c)) == bytes)
}

/// The curve whose scalars have this modulus (little-endian bytes).
pub fn curve_of_scalar(bytes: &[u8]) -> Option<CurveId> {
    CurveId::ALL.iter().copied().find(|&c| bytemuck::cast_slice::<u64, u8>(scalar(c)) == bytes)
}

/// Whether `x` < `modulus`, both least significant limb first and of equal length.
#[inline]
pub(crate) fn is_below(x: &[u64], modulus: &[u64]) -> bool {
    for (a, b) in x.iter().zip(modulus).rev() {
        if a != b {
            return a < b;
        }
    }
    false
}

/// Index of the first little-endian number of `LIMBS` limbs in `bytes` that is not below `modulus`.
pub(crate) fn first_not_below<const LIMBS: usize>(bytes: &[u8], modulus: &[u64]) -> Option<usize> {
    bytes.chunks_exact(LIMBS * 8).position(|n| {
        let x: [u64; LIMBS] = bytemuck::pod_read_unaligned(n);
        !is_below(&x, modulus)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ec::pairing::Pairing;
    use ark_ff::PrimeField;
    use tandem_ops::{Bls12_381, Bn254, Curve};

    fn agrees<C: Curve>() {
        assert_eq!(<C::Fr as PrimeField>::MODULUS.0, *scalar(C::ID));
        assert_eq!(<<C::Pairing as Pairing>::BaseField as PrimeField>::MODULUS.as_ref(), base(C::ID));
        assert_eq!(<C::Fr as ark_ff::FftField>::TWO_ADICITY, crate::limits::two_adicity(C::ID));
    }

    #[test]
    fn constants_are_those_of_arkworks() {
        agrees::<Bn254>();
        agrees::<Bls12_381>();
    }

    #[test]
    fn comparison_at_the_border() {
        for &curve in CurveId::ALL {
            let p = base(curve).to_vec();
            assert!(!is_below(&p, &p));
            let mut below = p.clone();
            below[0] -= 1;
            assert!(is_below(&below, &p));
            let mut above = p.clone();
            above[p.len() - 1] += 1;
            above[0] = 0;
            assert!(!is_below(&above, &p));
        }
        let mut bytes = vec![0u8; 96];
        bytes[64..].copy_from_slice(bytemuck::cast_slice(scalar(CurveId::Bn254)));
        assert_eq!(first_not_below::<4>(&bytes, scalar(CurveId::Bn254)), Some(2));
        assert_eq!(first_not_below::<4>(&bytes[..64], scalar(CurveId::Bn254)), None);
    }
}
