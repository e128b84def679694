//! Big integers as text: snarkjs writes them as decimal strings and also reads hexadecimal ones.

use crate::limits;
use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// Limbs of the widest coordinate.
pub(super) const LIMBS: usize = 6;

/// A number of a JSON file, below 2^384.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Number(pub(super) [u64; LIMBS]);

impl Number {
    /// Reads decimal digits, or hexadecimal ones behind `0x`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text.len() > limits::JSON_NUMBER_MAX {
            return None;
        }
        let (digits, radix) = match text.strip_prefix("0x") {
            Some(hex) => (hex, 16),
            None => (text, 10),
        };
        if digits.is_empty() {
            return None;
        }
        digits.chars().try_fold(Self([0; LIMBS]), |n, c| n.times_plus(radix, c.to_digit(radix)?))
    }

    /// `self * factor + digit`; `None` if it does not fit.
    fn times_plus(mut self, factor: u32, digit: u32) -> Option<Self> {
        let mut carry = u128::from(digit);
        for limb in &mut self.0 {
            carry += u128::from(*limb) * u128::from(factor);
            *limb = carry as u64;
            carry >>= 64;
        }
        (carry == 0).then_some(self)
    }
}

/// The decimal digits of a number, least significant limb first.
pub(super) fn to_decimal(limbs: &[u64]) -> String {
    /// The largest power of ten in a limb, and its number of zeros.
    const CHUNK: (u64, usize) = (10_000_000_000_000_000_000, 19);
    let mut rest = limbs.to_vec();
    let mut chunks = Vec::new();
    while rest.iter().any(|&limb| limb != 0) {
        let mut remainder = 0u128;
        for limb in rest.iter_mut().rev() {
            let x = remainder << 64 | u128::from(*limb);
            *limb = (x / u128::from(CHUNK.0)) as u64;
            remainder = x % u128::from(CHUNK.0);
        }
        chunks.push(remainder as u64);
    }
    let mut text = chunks.pop().unwrap_or(0).to_string();
    for chunk in chunks.iter().rev() {
        text.push_str(&format!("{chunk:0width$}", width = CHUNK.1));
    }
    text
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Of;
        impl Visitor<'_> for Of {
            type Value = Number;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a whole number of at most 384 bits as a decimal string")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Number, E> {
                // The text itself is not repeated: it may be long.
                Number::parse(text)
                    .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Other("another string"), &self))
            }
            fn visit_u64<E: Error>(self, value: u64) -> Result<Number, E> {
                let mut limbs = [0; LIMBS];
                limbs[0] = value;
                Ok(Number(limbs))
            }
        }
        deserializer.deserialize_any(Of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        for (text, limbs) in [
            ("0", [0; 6]),
            ("1", [1, 0, 0, 0, 0, 0]),
            ("18446744073709551615", [u64::MAX, 0, 0, 0, 0, 0]),
            ("18446744073709551616", [0, 1, 0, 0, 0, 0]),
            ("10000000000000000000", [10_000_000_000_000_000_000, 0, 0, 0, 0, 0]),
            // 2^192 + 5 and 2^384 - 1, by a calculator.
            ("6277101735386680763835789423207666416102355444464034512901", [5, 0, 0, 1, 0, 0]),
            (
                "39402006196394479212279040100143613805079739270465446667948293404245721771497210611414266254884915640806627990306815",
                [u64::MAX; 6],
            ),
        ] {
            assert_eq!(Number::parse(text), Some(Number(limbs)), "{text}");
            assert_eq!(to_decimal(&limbs), text);
        }
        assert_eq!(Number::parse("0xfF"), Number::parse("255"));
        assert_eq!(Number::parse("0007"), Number::parse("7"));
    }

    #[test]
    fn what_is_no_number() {
        let too_large = "39402006196394479212279040100143613805079739270465446667948293404245721771497210611414266254884915640806627990306816";
        for text in ["", "0x", "-1", "+1", " 1", "1 ", "1.0", "1e3", "a", "٣", too_large, &"0".repeat(161)] {
            assert_eq!(Number::parse(text), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_number(limbs: [u64; 6]) {
            assert_eq!(Number::parse(&to_decimal(&limbs)), Some(Number(limbs)));
        }
    }
}
