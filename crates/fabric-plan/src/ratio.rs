//! Exact fractions.

use std::cmp::Ordering;
use std::fmt;

/// A fraction in lowest terms; the denominator is positive. Arithmetic gives `None` where 128 bits do not hold the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ratio {
    num: i128,
    den: i128,
}

pub(crate) fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        // Most operands fit 64 bits, where a division is ten times as fast.
        if let (Ok(x), Ok(y)) = (u64::try_from(a), u64::try_from(b)) {
            let (mut x, mut y) = (x, y);
            while y != 0 {
                (x, y) = (y, x % y);
            }
            return i128::from(x);
        }
        (a, b) = (b, a % b);
    }
    i128::try_from(a).unwrap_or(1)
}

impl Ratio {
    /// Nothing.
    pub const ZERO: Self = Self { num: 0, den: 1 };
    /// The whole.
    pub const ONE: Self = Self { num: 1, den: 1 };

    /// `num / den`, or `None` for a denominator of zero or at the edge of 128 bits.
    pub fn new(num: i128, den: i128) -> Option<Self> {
        if den == 0 || num == i128::MIN || den == i128::MIN {
            return None;
        }
        let g = gcd(num, den).max(1) * den.signum();
        Some(Self { num: num / g, den: den / g })
    }

    /// A whole number.
    pub fn whole(n: i64) -> Self {
        Self { num: n.into(), den: 1 }
    }

    /// The numerator.
    pub fn num(self) -> i128 {
        self.num
    }

    /// The denominator, at least 1.
    pub fn den(self) -> i128 {
        self.den
    }

    /// Whether this is zero.
    pub fn is_zero(self) -> bool {
        self.num == 0
    }

    /// The sum.
    pub fn plus(self, o: Self) -> Option<Self> {
        if self.den == o.den {
            return Self::new(self.num.checked_add(o.num)?, self.den);
        }
        let g = gcd(self.den, o.den);
        let num = self.num.checked_mul(o.den / g)?.checked_add(o.num.checked_mul(self.den / g)?)?;
        Self::new(num, self.den.checked_mul(o.den / g)?)
    }

    /// The difference.
    pub fn minus(self, o: Self) -> Option<Self> {
        self.plus(Self { num: -o.num, den: o.den })
    }

    /// The product.
    pub fn times(self, o: Self) -> Option<Self> {
        if self.num == 0 || o.num == 0 {
            return Some(Self::ZERO);
        }
        let (g, h) = (gcd(self.num, o.den), gcd(o.num, self.den));
        let (num, den) = ((self.num / g).checked_mul(o.num / h)?, (self.den / h).checked_mul(o.den / g)?);
        Some(Self { num, den })
    }

    /// The quotient; `None` also where `o` is zero.
    pub fn over(self, o: Self) -> Option<Self> {
        self.times(Self::new(o.den, o.num)?)
    }

    /// The nearest floating-point number.
    pub fn to_f64(self) -> f64 {
        self.num as f64 / self.den as f64
    }
}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ratio {
    /// Exact for every pair: continued fractions where the cross products would overflow.
    fn cmp(&self, other: &Self) -> Ordering {
        if let (Some(a), Some(b)) = (self.num.checked_mul(other.den), other.num.checked_mul(self.den)) {
            return a.cmp(&b);
        }
        let (mut a, mut b, mut flip) = (*self, *other, false);
        loop {
            let (p, q) = (a.num.div_euclid(a.den), b.num.div_euclid(b.den));
            let (r, s) = (a.num.rem_euclid(a.den), b.num.rem_euclid(b.den));
            let order = match p.cmp(&q) {
                Ordering::Equal => match (r == 0, s == 0) {
                    (true, true) => Ordering::Equal,
                    (true, false) => Ordering::Less,
                    (false, true) => Ordering::Greater,
                    (false, false) => {
                        (a, b) = (Self { num: a.den, den: r }, Self { num: b.den, den: s });
                        flip = !flip;
                        continue;
                    }
                },
                order => order,
            };
            return if flip { order.reverse() } else { order };
        }
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.den == 1 {
            return write!(f, "{}", self.num);
        }
        write!(f, "{}/{}", self.num, self.den)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic() {
        let r = |a, b| Ratio::new(a, b).unwrap();
        assert_eq!(r(6, -4), r(-3, 2));
        assert_eq!(r(1, 6).plus(r(1, 3)), Some(r(1, 2)));
        assert_eq!(r(1, 6).minus(r(1, 3)), Some(r(-1, 6)));
        assert_eq!(r(2, 3).times(r(-3, 4)), Some(r(-1, 2)));
        assert_eq!(r(2, 3).over(r(-4, 3)), Some(r(-1, 2)));
        assert_eq!(r(2, 3).over(Ratio::ZERO), None);
        assert_eq!(Ratio::new(1, 0), None);
        assert_eq!(r(i128::MAX, 1).plus(Ratio::ONE), None);
        assert_eq!(r(3, 2).to_string(), "3/2");
    }

    #[test]
    fn order_without_overflow() {
        let (a, b) = (Ratio::new(i128::MAX, i128::MAX - 1).unwrap(), Ratio::new(i128::MAX - 1, i128::MAX - 2).unwrap());
        // 1 + 1/(M-1) < 1 + 1/(M-2)
        assert_eq!((a.cmp(&b), b.cmp(&a), a.cmp(&a)), (Ordering::Less, Ordering::Greater, Ordering::Equal));
        assert!(Ratio::new(-1, 3) < Ratio::new(-1, 4));
    }
}
