//! Numbers of many limbs as people read them.

/// Little-endian limbs in decimal digits; leaves zeros.
pub(super) fn decimal(limbs: &mut [u32]) -> String {
    // Nine digits at a time, the least first.
    const NINE: u64 = 1_000_000_000;
    let mut parts = Vec::new();
    while parts.is_empty() || limbs.iter().any(|&limb| limb != 0) {
        parts.push(limbs.iter_mut().rev().fold(0, |rest, limb| {
            let value = rest << 32 | u64::from(*limb);
            *limb = (value / NINE) as u32;
            value % NINE
        }));
    }
    let first = parts.pop().unwrap_or_default().to_string();
    parts.iter().rev().fold(first, |text, part| format!("{text}{part:09}"))
}

#[cfg(test)]
mod tests {
    use super::decimal;

    #[test]
    fn limbs_are_shown_in_decimal_digits() {
        let mut state = 1u128;
        let values =
            [0, 1, 9, 999_999_999, 1_000_000_000, 10u128.pow(18), 10u128.pow(18) + 7, u64::MAX.into(), u128::MAX];
        let random = std::iter::repeat_with(|| {
            state = state.wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645).wrapping_add(1);
            state
        });
        for value in values.into_iter().chain(random.take(100)) {
            let mut limbs = [0, 32, 64, 96].map(|shift| (value >> shift) as u32);
            assert_eq!(decimal(&mut limbs), value.to_string());
        }
    }
}
