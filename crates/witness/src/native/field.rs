//! Integers of 256 bits modulo a prime of up to 255 bits: what circom's field functions compute with, in Montgomery's form where they
//! use it. `R` is 2^256.

/// Little-endian limbs.
pub(crate) type Limbs = [u64; 4];

/// A prime with the constants that belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) prime: Limbs,
    /// Bits of the prime.
    pub(crate) bits: u32,
    /// `-1 / prime` modulo 2^64.
    inverse: u64,
    /// `R`, which is 1 in Montgomery's form, and its second and third power.
    pub(crate) one: Limbs,
    pub(crate) r2: Limbs,
    pub(crate) r3: Limbs,
}

impl Field {
    /// Of an odd prime whose highest limb is not 0 and leaves a bit free.
    pub(crate) fn new(prime: Limbs) -> Self {
        // Each of Newton's steps doubles the bits that are right, from 1 to 64.
        let inverse = (0..6).fold(1u64, |x, _| x.wrapping_mul(2u64.wrapping_sub(prime[0].wrapping_mul(x))));
        let bits = 256 - prime[3].leading_zeros();
        let mut field = Self { prime, bits, inverse: inverse.wrapping_neg(), one: [0; 4], r2: [0; 4], r3: [0; 4] };
        let times_r = |x| (0..256).fold(x, |x, _| field.add(x, x));
        let one = times_r([1, 0, 0, 0]);
        let r2 = times_r(one);
        (field.one, field.r2, field.r3) = (one, r2, times_r(r2));
        field
    }

    pub(crate) fn add(&self, x: Limbs, y: Limbs) -> Limbs {
        let (sum, carry) = add(x, y);
        self.reduced(sum, carry)
    }

    pub(crate) fn sub(&self, x: Limbs, y: Limbs) -> Limbs {
        let (difference, borrow) = sub(x, y);
        if borrow {
            add(difference, self.prime).0
        } else {
            difference
        }
    }

    pub(crate) fn neg(&self, x: Limbs) -> Limbs {
        self.sub([0; 4], x)
    }

    /// A value below 2^257, less the prime once where it is not below the prime.
    pub(crate) fn reduced(&self, value: Limbs, carry: bool) -> Limbs {
        let (less, borrow) = sub(value, self.prime);
        if carry || !borrow {
            less
        } else {
            value
        }
    }

    /// `x y / R`, by Montgomery's reduction limb by limb.
    pub(crate) fn mul(&self, x: Limbs, y: Limbs) -> Limbs {
        let mut t = [0u64; 5];
        for limb in y {
            let mut carry = 0;
            for (t, x) in t.iter_mut().zip(x) {
                (*t, carry) = multiply_add(*t, x, limb, carry);
            }
            let (high, over) = t[4].overflowing_add(carry);
            let m = t[0].wrapping_mul(self.inverse);
            let (_, mut carry) = multiply_add(t[0], m, self.prime[0], 0);
            for i in 1..4 {
                (t[i - 1], carry) = multiply_add(t[i], m, self.prime[i], carry);
            }
            let (low, again) = high.overflowing_add(carry);
            t[3] = low;
            t[4] = u64::from(over) + u64::from(again);
        }
        self.reduced([t[0], t[1], t[2], t[3]], t[4] != 0)
    }

    /// `x y R`: the product in Montgomery's form of numbers that are not.
    pub(crate) fn mul_into_montgomery(&self, x: Limbs, y: Limbs) -> Limbs {
        if let ([x, 0, 0, 0], [y, 0, 0, 0]) = (x, y) {
            let (low, high) = multiply_add(0, x, y, 0);
            return self.mul([low, high, 0, 0], self.r2);
        }
        self.mul(self.r3, self.mul(x, y))
    }

    /// `-1 / prime` modulo 2^64.
    pub(super) fn inverse(&self) -> u64 {
        self.inverse
    }

    /// The largest number that is not negative.
    pub(crate) fn half(&self) -> Limbs {
        halved(self.prime)
    }
}

/// `a + b c + carry`, as low and high limb.
fn multiply_add(a: u64, b: u64, c: u64, carry: u64) -> (u64, u64) {
    let wide = u128::from(b) * u128::from(c) + u128::from(a) + u128::from(carry);
    (wide as u64, (wide >> 64) as u64)
}

fn halved(x: Limbs) -> Limbs {
    [x[0] >> 1 | x[1] << 63, x[1] >> 1 | x[2] << 63, x[2] >> 1 | x[3] << 63, x[3] >> 1]
}

pub(crate) fn add(x: Limbs, y: Limbs) -> (Limbs, bool) {
    let (mut sum, mut carry) = ([0; 4], false);
    for i in 0..4 {
        let wide = u128::from(x[i]) + u128::from(y[i]) + u128::from(carry);
        (sum[i], carry) = (wide as u64, wide >> 64 != 0);
    }
    (sum, carry)
}

pub(crate) fn sub(x: Limbs, y: Limbs) -> (Limbs, bool) {
    let (mut difference, mut borrow) = ([0; 4], false);
    for i in 0..4 {
        let (once, first) = x[i].overflowing_sub(y[i]);
        let (twice, second) = once.overflowing_sub(u64::from(borrow));
        (difference[i], borrow) = (twice, first | second);
    }
    (difference, borrow)
}

pub(crate) fn is_above(x: Limbs, y: Limbs) -> bool {
    sub(y, x).1
}

/// Quotient and rest; `None` of a division by 0.
pub(crate) fn divide(x: Limbs, y: Limbs) -> Option<(Limbs, Limbs)> {
    if let [divisor, 0, 0, 0] = y {
        return divide_by_limb(x, divisor);
    }
    let (size, of_x) = (limbs_of(y), limbs_of(x));
    if of_x < size {
        return Some(([0; 4], x));
    }
    // Knuth's algorithm D (The Art of Computer Programming, 4.3.1): the divisor's highest bit is set, so that the two highest limbs of what is
    // left, by its highest, are at most 2 above the next limb of the quotient.
    let count = y[size - 1].leading_zeros();
    let (y, mut rest) = (shifted(y, count), wide_shifted(x, count));
    let (high, next) = (y[size - 1], y[size - 2]);
    let mut quotient = [0; 4];
    for i in (0..=of_x - size).rev() {
        let top = u128::from(rest[i + size]) << 64 | u128::from(rest[i + size - 1]);
        let mut guess = (top / u128::from(high)).min(u64::MAX.into());
        let mut left = top - guess * u128::from(high);
        while left >> 64 == 0 && guess * u128::from(next) > (left << 64 | u128::from(rest[i + size - 2])) {
            guess -= 1;
            left += u128::from(high);
        }
        let mut limb = guess as u64;
        if subtract_times(&mut rest[i..=i + size], &y[..size], limb) {
            // It was 1 too much.
            limb -= 1;
            let mut carry = 0;
            for (rest, y) in rest[i..=i + size].iter_mut().zip(y.into_iter().chain([0])) {
                let wide = u128::from(*rest) + u128::from(y) + carry;
                (*rest, carry) = (wide as u64, wide >> 64);
            }
        }
        quotient[i] = limb;
    }
    let [a, b, c, d, e] = rest;
    let down = |low: u64, high: u64| low >> count | high.checked_shl(64 - count).unwrap_or(0);
    Some((quotient, [down(a, b), down(b, c), down(c, d), down(d, e)]))
}

/// `x - y times`, modulo 2^64 for each limb of `x`, and whether it was below 0. `x` is one limb longer.
fn subtract_times(x: &mut [u64], y: &[u64], times: u64) -> bool {
    let (mut carry, mut borrow) = (0u64, false);
    for (i, x) in x.iter_mut().enumerate() {
        let (low, high) = multiply_add(0, y.get(i).copied().unwrap_or(0), times, carry);
        let (once, first) = x.overflowing_sub(low);
        let (twice, second) = once.overflowing_sub(borrow.into());
        (*x, carry, borrow) = (twice, high, first | second);
    }
    borrow
}

/// Limb by limb from the highest.
fn divide_by_limb(mut x: Limbs, divisor: u64) -> Option<(Limbs, Limbs)> {
    let mut rest = 0;
    for limb in x.iter_mut().rev() {
        let wide = u128::from(rest) << 64 | u128::from(*limb);
        *limb = wide.checked_div(divisor.into())? as u64;
        rest = (wide % u128::from(divisor)) as u64;
    }
    Some((x, [rest, 0, 0, 0]))
}

/// Limbs of a number, without those above its highest.
fn limbs_of(x: Limbs) -> usize {
    x.iter().rposition(|&limb| limb != 0).map_or(0, |high| high + 1)
}

/// A number times a power of two below 2^64 that leaves no bit behind.
fn shifted(x: Limbs, count: u32) -> Limbs {
    let [a, b, c, d, _] = wide_shifted(x, count);
    [a, b, c, d]
}

/// A number times a power of two below 2^64.
fn wide_shifted(x: Limbs, count: u32) -> [u64; 5] {
    std::array::from_fn(|i| {
        let near = x.get(i).map_or(0, |x| x << count);
        let far = i.checked_sub(1).map_or(0, |i| x[i].checked_shr(64 - count).unwrap_or(0));
        near | far
    })
}

#[cfg(test)]
mod tests {
    use super::{add, divide, Field, Limbs};
    use num_bigint::BigUint;

    /// Random limbs, always the same.
    fn random(state: &mut u64) -> Limbs {
        std::array::from_fn(|_| {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *state ^ *state >> 29
        })
    }

    /// Beside another implementation, for numbers of every length.
    #[test]
    fn quotients_and_inverses_are_right() {
        let number = |limbs: [u64; 4]| BigUint::from_bytes_le(&limbs.map(u64::to_le_bytes).concat());
        let cut = |limbs: [u64; 4], bits: usize| {
            let kept = |i: usize| (bits.saturating_sub(64 * i)).min(64) as u32;
            std::array::from_fn(|i| limbs[i] & u64::MAX.checked_shr(64 - kept(i)).unwrap_or(0))
        };
        let mut state = 7;
        for bits in 0..=256 {
            for other in [0, 1, 2, 31, 63, 64, 65, 127, 128, 129, 192, 193, 255, 256, bits] {
                let (x, y) = (cut(random(&mut state), bits), cut(random(&mut state), other));
                let found = divide(x, y).map(|(quotient, rest)| (number(quotient), number(rest)));
                let (x, y) = (number(x), number(y));
                assert_eq!(found, (y != BigUint::ZERO).then(|| (&x / &y, &x % &y)), "{x} / {y}");
            }
        }
        // Limbs at which the first guess of one is wrong.
        let edges = [0, 1, 1 << 63, (1 << 63) - 1, u64::MAX - 1, u64::MAX];
        for _ in 0..20_000 {
            let mut edge = || std::array::from_fn(|i| edges[(random(&mut state)[i] >> 40) as usize % edges.len()]);
            let (x, y): (Limbs, Limbs) = (edge(), edge());
            let found = divide(x, y).map(|(quotient, rest)| (number(quotient), number(rest)));
            let (x, y) = (number(x), number(y));
            assert_eq!(found, (y != BigUint::ZERO).then(|| (&x / &y, &x % &y)), "{x} / {y}");
        }
        for (prime, _) in super::super::templates::TEMPLATES {
            let field = Field::new(*prime);
            let prime = number(field.prime);
            for bits in 0..=256 {
                let x = cut(random(&mut state), bits);
                for x in [x, field.neg(field.reduced(cut(x, 253), false))] {
                    let inverse = number(field.invert(x));
                    assert!(inverse < prime);
                    assert_eq!(number(x) * inverse % &prime, BigUint::from(u8::from(x != [0; 4])), "{x:x?}");
                }
            }
            // Words of zeros, of ones and of one bit, above the prime too, and multiples of it.
            let times = |n: u8| (0..n).fold([0; 4], |x, _| add(x, field.prime).0);
            let odd = |state: &mut u64| std::array::from_fn(|i| edges[(random(state)[i] >> 40) as usize % edges.len()]);
            for x in (0..5).map(times).chain((0..20_000).map(|_| odd(&mut state))) {
                let inverse = number(field.invert(x));
                let is_zero = number(x) % &prime == BigUint::ZERO;
                assert!(inverse < prime && (!is_zero || inverse == BigUint::ZERO), "{x:x?}");
                assert_eq!(number(x) * inverse % &prime, BigUint::from(u8::from(!is_zero)), "{x:x?}");
            }
            for (x, y) in [(0, 0), (1, u64::MAX), (u64::MAX, u64::MAX), (3, 5)] {
                let (x, y) = ([x, 0, 0, 0], [y, 0, 0, 0]);
                assert_eq!(field.mul_into_montgomery(x, y), field.mul(field.r3, field.mul(x, y)));
            }
        }
    }
}
