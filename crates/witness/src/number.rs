//! Integers as text, of any size and sign, reduced modulo the circuit's prime.

use zeroize::Zeroizing;

/// Characters of one number. The longest that can be meant, a 384-bit field element in binary, has 386.
const NUMBER_CHARS_MAX: usize = 1024;

/// An odd modulus as little-endian 32-bit limbs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Modulus(Vec<u32>);

impl Modulus {
    /// `None` unless it is odd, above 2 and has no leading zero bits to spare beyond one limb.
    pub(crate) fn new(limbs: Vec<u32>) -> Option<Self> {
        let odd = limbs.first().is_some_and(|low| low & 1 == 1);
        let large = limbs.iter().skip(1).any(|&limb| limb != 0) || limbs.first().is_some_and(|&low| low > 2);
        (odd && large).then_some(Self(limbs))
    }

    /// Little-endian bytes.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|limb| limb.to_le_bytes()).collect()
    }

    /// Whether `limbs`, of the same length, is below the modulus.
    pub(crate) fn is_above(&self, limbs: &[u32]) -> bool {
        self.0.iter().rev().gt(limbs.iter().rev())
    }

    /// A small integer in `[0, modulus)`.
    pub(crate) fn integer(&self, magnitude: u64, is_negative: bool) -> Zeroizing<Vec<u32>> {
        let mut value = Zeroizing::new(vec![0u32; self.0.len()]);
        for bit in (0..u64::BITS - magnitude.leading_zeros()).rev() {
            self.mul_add(&mut value, 2, (magnitude >> bit & 1) as u32);
        }
        if is_negative {
            self.negate(&mut value);
        }
        value
    }

    /// Reads what JavaScript's `BigInt` reads: decimal digits with an optional sign, or digits after `0x`, `0o`, `0b`;
    /// spaces around are ignored. Unlike `BigInt`, an empty text is not zero. The result is in `[0, modulus)`.
    pub(crate) fn parse(&self, text: &str) -> Result<Zeroizing<Vec<u32>>, &'static str> {
        let text = text.trim();
        if text.len() > NUMBER_CHARS_MAX {
            return Err("has more than 1024 characters");
        }
        let (negative, digits, radix) = match text.as_bytes() {
            [b'0', b'x' | b'X', ..] => (false, &text[2..], 16),
            [b'0', b'o' | b'O', ..] => (false, &text[2..], 8),
            [b'0', b'b' | b'B', ..] => (false, &text[2..], 2),
            [b'-', ..] => (true, &text[1..], 10),
            [b'+', ..] => (false, &text[1..], 10),
            _ => (false, text, 10),
        };
        if digits.is_empty() {
            return Err("is not a number");
        }
        let mut value = Zeroizing::new(vec![0u32; self.0.len()]);
        for digit in digits.chars() {
            let digit = digit.to_digit(radix).ok_or("is not an integer in decimal or after 0x")?;
            self.mul_add(&mut value, radix, digit);
        }
        if negative {
            self.negate(&mut value);
        }
        Ok(value)
    }

    fn negate(&self, value: &mut [u32]) {
        if value.iter().all(|&limb| limb == 0) {
            return;
        }
        let mut borrow = 0i64;
        for (limb, &modulus) in value.iter_mut().zip(&self.0) {
            let difference = i64::from(modulus) - i64::from(*limb) + borrow;
            *limb = difference as u32;
            borrow = difference >> 32;
        }
    }

    /// `value = value * factor + digit`, reduced: the product is below 16 moduli, so a few subtractions do.
    fn mul_add(&self, value: &mut [u32], factor: u32, digit: u32) {
        let mut carry = u64::from(digit);
        for limb in value.iter_mut() {
            carry += u64::from(*limb) * u64::from(factor);
            *limb = carry as u32;
            carry >>= 32;
        }
        let mut high = carry as i64;
        while high > 0 || !self.is_above(value) {
            let mut borrow = 0i64;
            for (limb, &modulus) in value.iter_mut().zip(&self.0) {
                let difference = i64::from(*limb) - i64::from(modulus) + borrow;
                *limb = difference as u32;
                borrow = difference >> 32;
            }
            high += borrow;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modulus(value: u64) -> Modulus {
        Modulus::new(vec![value as u32, (value >> 32) as u32]).unwrap()
    }

    fn parse(text: &str, p: u64) -> Result<u64, &'static str> {
        let limbs = modulus(p).parse(text)?;
        Ok(u64::from(limbs[0]) | u64::from(limbs[1]) << 32)
    }

    #[test]
    fn numbers_reduce_as_wide_integers_do() {
        // Against 128-bit arithmetic, with a small modulus, one of a single limb, and one that fills both limbs.
        for p in [3u64, 97, 0xffff_fffb, 0x1_0000_000f, 0xffff_ffff_ffff_ffc5] {
            for value in [0u128, 1, 2, 9, 10, 96, 97, 98, u64::MAX as u128, u128::MAX, 1 << 64, (p as u128) << 3] {
                let expected = (value % u128::from(p)) as u64;
                assert_eq!(parse(&value.to_string(), p), Ok(expected), "{value} mod {p}");
                assert_eq!(parse(&format!("0x{value:x}"), p), Ok(expected));
                assert_eq!(parse(&format!("0X{value:X}"), p), Ok(expected));
                assert_eq!(parse(&format!("0b{value:b}"), p), Ok(expected));
                assert_eq!(parse(&format!("0o{value:o}"), p), Ok(expected));
                assert_eq!(parse(&format!(" +{value}\n"), p), Ok(expected));
                assert_eq!(parse(&format!("-{value}"), p), Ok((p - expected) % p));
                if let Ok(small) = u64::try_from(value) {
                    let number = |limbs: &[u32]| u64::from(limbs[0]) | u64::from(limbs[1]) << 32;
                    assert_eq!(number(&modulus(p).integer(small, false)), expected);
                    assert_eq!(number(&modulus(p).integer(small, true)), (p - expected) % p);
                }
            }
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", " ", "-", "+", "0x", "x", "1.5", "1e3", "0xg", "--1", "-0x1", "1 2", "1_000", "0b2", "١"] {
            assert!(parse(text, 97).is_err(), "{text:?}");
        }
        assert!(parse(&"1".repeat(1024), 97).is_ok());
        assert!(parse(&"1".repeat(1025), 97).is_err());
    }

    #[test]
    fn moduli_must_be_odd_and_above_two() {
        for limbs in [vec![], vec![0], vec![1], vec![2], vec![4], vec![0, 1], vec![1, 0]] {
            assert_eq!(Modulus::new(limbs.clone()), None, "{limbs:?}");
        }
        assert!(Modulus::new(vec![3]).is_some() && Modulus::new(vec![1, 1]).is_some());
    }
}
