//! Floating-point numbers of 16 bits, which the language has none of. Combined as floats, and rounded once: with 24 bits of precision, twice
//! theirs and two more, that is as rounding the exact sum or product.

use bytemuck::{Pod, Zeroable};
use std::cmp::Ordering;
use std::ops::{Add, Mul};

/// A number of IEEE 754's binary16, as its bits.
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable)]
#[repr(transparent)]
pub struct F16(pub u16);

/// The upper half of an `f32` (bfloat16), as its bits.
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable)]
#[repr(transparent)]
pub struct Bf16(pub u16);

impl From<f32> for F16 {
    /// The nearest, the even one of two.
    fn from(value: f32) -> Self {
        let (sign, bits) = ((value.to_bits() >> 16 & 0x8000) as u16, value.to_bits() & 0x7fff_ffff);
        F16(sign
            | match bits {
                0x7f80_0001.. => 0x7e00,
                // From 2^16 on.
                0x4780_0000.. => 0x7c00,
                // Below 2^-14 all are multiples of 2^-24, as are the floats around 0.5: the addition rounds.
                ..0x3880_0000 => ((f32::from_bits(bits) + 0.5).to_bits() - 0x3f00_0000) as u16,
                // Exponents of 112 less; a half of the last place is added, or a little less where the last bit is 0.
                _ => ((bits - (112 << 23) + 0xfff + (bits >> 13 & 1)) >> 13) as u16,
            })
    }
}

impl From<F16> for f32 {
    fn from(F16(bits): F16) -> f32 {
        let (sign, exponent, fraction) =
            (u32::from(bits & 0x8000) << 16, u32::from(bits >> 10 & 31), u32::from(bits & 0x3ff));
        let size = match exponent {
            // At most 10 bits, which a float has.
            0 => (fraction as f32 / (1u32 << 24) as f32).to_bits(),
            31 => 0x7f80_0000 | fraction << 13,
            _ => (exponent + 112) << 23 | fraction << 13,
        };
        f32::from_bits(sign | size)
    }
}

impl From<f32> for Bf16 {
    /// The nearest, the even one of two.
    fn from(value: f32) -> Self {
        let bits = value.to_bits();
        let rounded = if value.is_nan() { bits | 0x40_0000 } else { bits + 0x7fff + (bits >> 16 & 1) };
        Bf16((rounded >> 16) as u16)
    }
}

impl From<Bf16> for f32 {
    fn from(Bf16(bits): Bf16) -> f32 {
        f32::from_bits(u32::from(bits) << 16)
    }
}

macro_rules! arithmetic {
    ($($type:ident)*) => {$(
        impl Add for $type {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                (f32::from(self) + f32::from(other)).into()
            }
        }
        impl Mul for $type {
            type Output = Self;
            fn mul(self, other: Self) -> Self {
                (f32::from(self) * f32::from(other)).into()
            }
        }
        impl PartialEq for $type {
            fn eq(&self, other: &Self) -> bool {
                f32::from(*self) == f32::from(*other)
            }
        }
        impl PartialOrd for $type {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                f32::from(*self).partial_cmp(&f32::from(*other))
            }
        }
    )*};
}

arithmetic! { F16 Bf16 }

#[cfg(test)]
mod tests {
    use super::*;

    /// By its definition.
    fn value(bits: u16) -> f64 {
        let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 0x3ff));
        let size = match exponent {
            0 => fraction * 2f64.powi(-24),
            31 if fraction == 0.0 => f64::INFINITY,
            31 => f64::NAN,
            _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
        };
        if bits >> 15 == 1 {
            -size
        } else {
            size
        }
    }

    #[test]
    fn every_number_of_16_bits_and_what_is_between_two() {
        for bits in 0..=u16::MAX {
            let wide = f32::from(F16(bits));
            if value(bits).is_nan() {
                assert!(wide.is_nan() && f32::from(F16::from(wide)).is_nan(), "{bits:x}");
                continue;
            }
            assert!(f64::from(wide) == value(bits) && wide.is_sign_negative() == (bits >> 15 == 1), "{bits:x}");
            assert_eq!(F16::from(wide).0, bits);
            if bits & 0x7fff >= 0x7bff {
                continue;
            }
            let middle = ((value(bits) + value(bits + 1)) / 2.0) as f32;
            let beside = |step: i64| F16::from(f32::from_bits((i64::from(middle.to_bits()) + step) as u32)).0;
            assert_eq!([-1, 0, 1].map(beside), [bits, bits + (bits & 1), bits + 1], "{bits:x} and the next");
        }
        for (large, bits) in [(65519.996, 0x7bff), (65520.0, 0x7c00), (f32::MAX, 0x7c00), (-f32::INFINITY, 0xfc00)] {
            assert_eq!(F16::from(large).0, bits, "{large}");
        }
    }

    #[test]
    fn upper_halves_of_floats_are_the_nearest() {
        for i in 0..1_000_000u32 {
            let wide = f32::from_bits(i.wrapping_mul(0x9e37_79b1));
            let near = Bf16::from(wide);
            if wide.is_nan() {
                assert!(f32::from(near).is_nan(), "{wide}");
                continue;
            }
            let error = |bits: u16| (f64::from(f32::from(Bf16(bits))) - f64::from(wide)).abs();
            for other in [near.0.wrapping_sub(1), near.0.wrapping_add(1)] {
                let is_worse = error(near.0) < error(other) || error(near.0) == error(other) && near.0 % 2 == 0;
                assert!(is_worse || !error(other).is_finite() || !f32::from(near).is_finite(), "{wide}: {:x}", near.0);
            }
        }
        assert_eq!(Bf16::from(f32::MAX).0, 0x7f80);
    }
}
